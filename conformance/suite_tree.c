/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph trees on this device, through the ready tables: whatever is warmed up, recorded or replayed, in whatever order,
 * gives what the plain calls give, and an output whose memory was used again is never read. */
#include <rondo/array.h>
#include <stdio.h>
#include <string.h>

#include "conf.h"

enum { COUNT = 64, BYTES = COUNT * 8 };

/* What a model does with its inputs; all are of int64[COUNT]. */
typedef enum tree_kind {
    TREE_SUM,      /* [a + b] */
    TREE_TWO,      /* [a + b, the same tensor, a + a] */
    TREE_INPUT,    /* [b itself] */
    TREE_IN_PLACE, /* b += a, and [b itself] */
    TREE_WAITS,    /* [a + b], and waits for the stream: no capture bears it */
    TREE_DRAWS     /* [numbers of the generator, 2 x COUNT of 32 bits] */
} tree_kind;

typedef struct tree_model {
    rondo_array_model model;
    tree_kind kind;
    rondo_kernel add;
    rondo_generator *generator;
    uint32_t calls;
} tree_model;

typedef struct tree_case {
    conf *t;
    rondo_tree *tree;
    rondo_stream *stream;
} tree_case;

static rondo_status tree_add(rondo_kernel kernel, rondo_stream *stream, const rondo_array *a, const rondo_array *b,
                             const rondo_array *out) {
    void *x = NULL, *y = NULL, *z = NULL;
    rondo_status status = rondo_array_data(a, &x);
    if (!status) status = rondo_array_data(b, &y);
    if (!status) status = rondo_array_data(out, &z);
    if (status) return status;
    /* The kernel adds 32 bits at a time; no sum here has a carry between its halves. */
    rondo_argument arguments[] = {CONF_READ(x, BYTES), CONF_READ(y, BYTES), CONF_WRITE(z, BYTES),
                                  CONF_VALUE(COUNT * 2)};
    return conf_launch(stream, kernel, "add", arguments, 4);
}

static rondo_status tree_sum(const tree_model *model, rondo_stream *stream, rondo_array *a, rondo_array *b,
                             rondo_array **out) {
    rondo_status status = rondo_array_create(stream, RONDO_DTYPE_I64, 1, (const int64_t[]){COUNT}, out);
    return status ? status : tree_add(model->add, stream, a, b, *out);
}

static rondo_status tree_draw(const tree_model *model, rondo_stream *stream, rondo_array **out) {
    void *memory = NULL;
    rondo_status status = rondo_array_create(stream, RONDO_DTYPE_I64, 1, (const int64_t[]){COUNT}, out);
    if (!status) status = rondo_array_data(*out, &memory);
    if (status) return status;
    return rondo_random_fill(stream, model->generator, RONDO_DISTRIBUTION_BITS, memory, (uint64_t)COUNT * 2u, 0, 0);
}

/* Nothing here may end the test: the tree is in the middle of a call. */
static rondo_status tree_run_model(void *user, rondo_stream *stream, rondo_array **inputs, uint32_t input_count,
                                   rondo_array **outputs, uint32_t output_count) {
    tree_model *model = user;
    rondo_status status = NULL;
    (void)input_count;
    (void)output_count;
    model->calls++;
    if (model->kind == TREE_DRAWS) return tree_draw(model, stream, &outputs[0]);
    if (model->kind == TREE_INPUT || model->kind == TREE_IN_PLACE) {
        if (model->kind == TREE_IN_PLACE) status = tree_add(model->add, stream, inputs[0], inputs[1], inputs[1]);
        if (status) return status;
        outputs[0] = inputs[1];
        inputs[1] = NULL;
        return NULL;
    }
    status = tree_sum(model, stream, inputs[0], inputs[1], &outputs[0]);
    if (!status && model->kind == TREE_WAITS) status = rondo_stream_synchronize(stream);
    if (!status && model->kind == TREE_TWO) {
        rondo_array_retain(outputs[0]);
        outputs[1] = outputs[0];
        status = tree_sum(model, stream, inputs[0], inputs[0], &outputs[2]);
    }
    return status;
}

static void tree_release(void *tree) { rondo_tree_release(tree); }
static void tree_release_tensor(void *tensor) { rondo_array_release(tensor); }

static tree_case tree_start(conf *t, const rondo_tree_options *wanted) {
    tree_case c = {.t = t};
    rondo_tree_options options = RONDO_TREE_OPTIONS_INIT;
    rondo_graph_ops ops = RONDO_GRAPH_OPS_INIT;
    rondo_tensor_host host = RONDO_TENSOR_HOST_INIT;
    if (!(t->properties->capabilities & RONDO_DEVICE_TREES_CAPABLE)) conf_skip(t, "the device has no trees");
    if (wanted) options = *wanted;
    else options.cost_samples = 0; /* what a replay gains is not asked for here */
    c.stream = conf_stream(t);
    WANT_OK(t, rondo_graph_ops_native(t->device, &ops));
    WANT_OK(t, rondo_tensor_host_native(t->device, NULL, &host));
    options.type = t->properties->name;
    options.index = t->properties->index;
    options.context = conf_random(t);
    options.ops = &ops;
    options.host = &host;
    rondo_status status = rondo_tree_open(t->instance, &options, &c.tree);
    if (status) {
        ops.destroy(ops.user);
        host.destroy(host.user);
    }
    WANT_OK(t, status);
    conf_keep_other(t, c.tree, tree_release);
    return c;
}

static uint32_t tree_function(tree_case *c, tree_model *model, tree_kind kind) {
    static const uint32_t second = 1;
    uint32_t number = 0;
    *model = (tree_model){.kind = kind, .add = conf_kernel(c->t, CONF_ADD), .generator = model->generator};
    model->model = (rondo_array_model){tree_run_model, model};
    rondo_tree_function function = RONDO_TREE_FUNCTION_INIT;
    function.name = kind == TREE_SUM ? "sum" : "other";
    function.model = &model->model;
    function.input_count = kind == TREE_DRAWS ? 0 : 2;
    function.output_count = kind == TREE_TWO ? 3 : 1;
    if (kind != TREE_DRAWS) {
        function.static_inputs = &second;
        function.static_count = 1;
    }
    if (kind == TREE_IN_PLACE) {
        function.mutated_inputs = &second;
        function.mutated_count = 1;
    }
    WANT_OK(c->t, rondo_tree_add_function(c->tree, &function, &number));
    return number;
}

/* first, first + step, ... in memory of its own. */
static rondo_array *tree_tensor(tree_case *c, uint64_t first) {
    rondo_array *tensor = NULL;
    void *memory = NULL;
    WANT_OK(c->t, rondo_array_create(c->stream, RONDO_DTYPE_I64, 1, (const int64_t[]){COUNT}, &tensor));
    conf_keep_other(c->t, tensor, tree_release_tensor);
    WANT_OK(c->t, rondo_array_data(tensor, &memory));
    conf_iota(c->t, c->stream, memory, COUNT, first);
    return tensor;
}

/* Keeps what it is given; the outputs are the test's. */
static void tree_call_on(tree_case *c, uint32_t function, rondo_stream *stream, rondo_array *a, rondo_array *b,
                         rondo_array **outputs, uint32_t output_count) {
    void *inputs[2] = {a, b}, *made[4] = {NULL};
    rondo_array_retain(a);
    rondo_array_retain(b);
    WANT_OK(c->t, rondo_tree_run(c->tree, function, stream, inputs, a ? 2 : 0, made, output_count));
    WANT(c->t, !inputs[0] && !inputs[1], "the call left inputs");
    for (uint32_t i = 0; i < output_count; i++) {
        outputs[i] = made[i];
        conf_keep_other(c->t, made[i], tree_release_tensor);
    }
}

static rondo_array *tree_call(tree_case *c, uint32_t function, rondo_array *a, rondo_array *b) {
    rondo_array *output = NULL;
    tree_call_on(c, function, c->stream, a, b, &output, 1);
    return output;
}

static void tree_want(tree_case *c, const rondo_array *tensor, uint64_t first, uint64_t step, const char *what) {
    void *memory = NULL;
    WANT_OK(c->t, rondo_array_data(tensor, &memory));
    conf_want64(c->t, c->stream, memory, COUNT, first, step, what);
}

static rondo_tree_info tree_info(tree_case *c) {
    rondo_tree_info info = RONDO_TREE_INFO_INIT;
    WANT_OK(c->t, rondo_tree_get_info(c->tree, &info));
    return info;
}

/* Warm-up, recording, replays, with inputs that come from elsewhere each time. */
static void tree_phases(conf *t) {
    tree_model model = {.kind = TREE_SUM};
    tree_case c = tree_start(t, NULL);
    uint32_t sum = tree_function(&c, &model, TREE_SUM);
    rondo_array *parameter = tree_tensor(&c, 1000), *moving[6];
    for (uint64_t i = 0; i < 6; i++) moving[i] = tree_tensor(&c, i * 7u);
    for (uint64_t i = 0; i < 6; i++) {
        rondo_tree_mark_step(c.tree);
        rondo_array *out = tree_call(&c, sum, moving[i], parameter);
        tree_want(&c, out, 1000 + i * 7u, 2, "a + b in warm-up, recording and replays");
        conf_drop(t, out);
    }
    rondo_tree_info info = tree_info(&c);
    WANT(t, info.warmups == 1 && info.records == 1 && info.replays == 4 && !info.directs,
         "of six calls %llu were warmed up, %llu recorded, %llu replayed, %llu direct",
         (unsigned long long)info.warmups, (unsigned long long)info.records, (unsigned long long)info.replays,
         (unsigned long long)info.directs);
    WANT(t, model.calls == 2, "the model ran %u times", model.calls);
}

/* A parameter at another address is another recording; back at the first, that one's. */
static void tree_parameter(conf *t) {
    tree_model model = {.kind = TREE_SUM};
    tree_case c = tree_start(t, NULL);
    uint32_t sum = tree_function(&c, &model, TREE_SUM);
    rondo_array *parameters[2] = {tree_tensor(&c, 100), tree_tensor(&c, 200)}, *x = tree_tensor(&c, 5);
    static const int order[] = {0, 0, 0, 1, 1, 0, 1, 0};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        rondo_tree_mark_step(c.tree);
        rondo_array *out = tree_call(&c, sum, x, parameters[order[i]]);
        tree_want(&c, out, 105u + 100u * (uint64_t)order[i], 2, "a + the parameter of this call");
        conf_drop(t, out);
    }
    rondo_tree_info info = tree_info(&c);
    WANT(t, info.recordings == 2 && info.roots == 2, "two addresses made %u recordings", info.recordings);
}

/* g(f(x)) from the first call on, without a mark between the two. */
static void tree_path(conf *t) {
    tree_model first = {.kind = TREE_SUM}, second = {.kind = TREE_SUM};
    tree_case c = tree_start(t, NULL);
    uint32_t f = tree_function(&c, &first, TREE_SUM), g = tree_function(&c, &second, TREE_SUM);
    rondo_array *p = tree_tensor(&c, 10), *q = tree_tensor(&c, 20), *x = tree_tensor(&c, 1);
    for (int i = 0; i < 6; i++) {
        rondo_tree_mark_step(c.tree);
        rondo_array *y = tree_call(&c, f, x, p), *z = tree_call(&c, g, y, q);
        tree_want(&c, y, 11, 2, "f(x), after g has run");
        tree_want(&c, z, 31, 3, "g(f(x))");
        conf_drop(t, y);
        conf_drop(t, z);
    }
    rondo_tree_info info = tree_info(&c);
    WANT(t, info.recordings == 2 && info.roots == 1 && info.replays == 8, "%u recordings, %u roots, %llu replays",
         info.recordings, info.roots, (unsigned long long)info.replays);
}

/* Where paths part the pool goes back to what it was there: what is alive stays whole in every phase of the branch. */
static void tree_branch(conf *t) {
    tree_model models[4] = {0};
    uint32_t functions[4];
    tree_case c = tree_start(t, NULL);
    for (int i = 0; i < 4; i++) functions[i] = tree_function(&c, &models[i], i ? TREE_SUM : TREE_TWO);
    rondo_array *p = tree_tensor(&c, 10), *x = tree_tensor(&c, 1);
    for (int i = 0; i < 24; i++) {
        int branch = 1 + (int)conf_between(t, 0, 2);
        rondo_array *roots[3];
        rondo_tree_mark_step(c.tree);
        tree_call_on(&c, functions[0], c.stream, x, p, roots, 3);
        if (i % 2) conf_drop(t, roots[2]);
        rondo_array *out = tree_call(&c, functions[branch], roots[0], p);
        rondo_array *more = tree_call(&c, functions[branch % 3 + 1], out, p);
        tree_want(&c, roots[1], 11, 2, "an output of the root, after a branch");
        if (i % 2 == 0) tree_want(&c, roots[2], 2, 2, "another output of the root, after a branch");
        tree_want(&c, out, 21, 3, "the branch");
        tree_want(&c, more, 31, 4, "what follows the branch");
        conf_drop(t, out);
        conf_drop(t, more);
        conf_drop(t, roots[0]);
        conf_drop(t, roots[1]);
        if (i % 2 == 0) conf_drop(t, roots[2]);
    }
    rondo_tree_info info = tree_info(&c);
    WANT(t, info.checkpoints > 0 && info.replays > 10, "%llu checkpoints, %llu replays",
         (unsigned long long)info.checkpoints, (unsigned long long)info.replays);
}

/* The same words whether the output was made by a warm-up, a recording or a replay. */
static void tree_dead_output(conf *t) {
    tree_model model = {.kind = TREE_SUM};
    tree_case c = tree_start(t, NULL);
    uint32_t sum = tree_function(&c, &model, TREE_SUM);
    rondo_array *p = tree_tensor(&c, 10), *x = tree_tensor(&c, 1), *kept = NULL;
    for (int i = 0; i < 8; i++) {
        void *memory = NULL, *inputs[2] = {NULL, NULL}, *made = NULL;
        rondo_tree_mark_step(c.tree);
        rondo_array *out = tree_call(&c, sum, x, p);
        if (kept) {
            WANT_TEXT(t, rondo_array_data(kept, &memory), STALE, "overwritten by a subsequent run");
            inputs[0] = kept;
            inputs[1] = p;
            rondo_array_retain(kept);
            rondo_array_retain(p);
            WANT_CODE(t, rondo_tree_run(c.tree, sum, c.stream, inputs, 2, &made, 1), STALE);
            conf_drop(t, kept);
        }
        tree_want(&c, out, 11, 2, "an output, after an older one was refused");
        kept = out;
    }
}

/* Outputs that are inputs, or lie on the same memory, are that after a replay, too. */
static void tree_aliases(conf *t) {
    tree_model same = {.kind = TREE_INPUT}, two = {.kind = TREE_TWO};
    tree_case c = tree_start(t, NULL);
    uint32_t identity = tree_function(&c, &same, TREE_INPUT), pair = tree_function(&c, &two, TREE_TWO);
    rondo_array *p = tree_tensor(&c, 10), *x = tree_tensor(&c, 1);
    void *want = NULL, *got = NULL, *other = NULL;
    WANT_OK(t, rondo_array_data(p, &want));
    for (int i = 0; i < 5; i++) {
        rondo_array *three[3];
        rondo_tree_mark_step(c.tree);
        rondo_array *out = tree_call(&c, identity, x, p);
        WANT_OK(t, rondo_array_data(out, &got));
        WANT(t, got == want, "an output that is an input lies at %p instead of %p", got, want);
        tree_call_on(&c, pair, c.stream, x, p, three, 3);
        WANT_OK(t, rondo_array_data(three[0], &got));
        WANT_OK(t, rondo_array_data(three[1], &other));
        WANT(t, got == other, "outputs of one memory lie at %p and %p", got, other);
        tree_want(&c, three[1], 11, 2, "an output that shares its memory");
        tree_want(&c, three[2], 2, 2, "an output of its own");
        conf_drop(t, out);
        for (int k = 0; k < 3; k++) conf_drop(t, three[k]);
    }
}

/* What a model writes into its parameter is written once a call, however the call goes. */
static void tree_in_place(conf *t) {
    tree_model model = {.kind = TREE_IN_PLACE};
    tree_case c = tree_start(t, NULL);
    uint32_t add = tree_function(&c, &model, TREE_IN_PLACE);
    rondo_array *state = tree_tensor(&c, 0), *x = tree_tensor(&c, 3);
    for (uint64_t i = 1; i <= 6; i++) {
        rondo_tree_mark_step(c.tree);
        conf_drop(t, tree_call(&c, add, x, state));
        tree_want(&c, state, 3 * i, 1 + i, "a parameter that each call adds to");
    }
    WANT(t, tree_info(&c).replays == 4, "%llu replays", (unsigned long long)tree_info(&c).replays);
}

/* A model that no capture bears runs directly, with the same inputs, and says why from then on. */
static void tree_uncapturable(conf *t) {
    tree_model bad = {.kind = TREE_WAITS}, good = {.kind = TREE_SUM};
    tree_case c = tree_start(t, NULL);
    uint32_t waits = tree_function(&c, &bad, TREE_WAITS), sum = tree_function(&c, &good, TREE_SUM);
    rondo_array *p = tree_tensor(&c, 10), *x = tree_tensor(&c, 1);
    for (int i = 0; i < 5; i++) {
        rondo_tree_mark_step(c.tree);
        rondo_array *y = tree_call(&c, sum, x, p), *z = tree_call(&c, waits, y, p);
        tree_want(&c, z, 21, 3, "a function that cannot be captured");
        tree_want(&c, y, 11, 2, "the output that it was given");
        conf_drop(t, y);
        conf_drop(t, z);
    }
    rondo_tree_function_info info = RONDO_TREE_FUNCTION_INFO_INIT;
    WANT_OK(t, rondo_tree_get_function_info(c.tree, waits, &info));
    WANT(t, info.stopped == RONDO_TREE_REASON_REJECTED && info.directs == 4, "reason %s, %llu direct calls",
         rondo_tree_reason_name(info.stopped), (unsigned long long)info.directs);
    conf_want_usable(t, c.stream, "a recording that was refused");
}

/* Outputs outlive the recordings, and the tree. */
static void tree_outlives(conf *t) {
    tree_model model = {.kind = TREE_SUM};
    tree_case c = tree_start(t, NULL);
    uint32_t sum = tree_function(&c, &model, TREE_SUM);
    rondo_array *p = tree_tensor(&c, 10), *x = tree_tensor(&c, 1), *out[3];
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++) {
            rondo_tree_mark_step(c.tree);
            out[i] = tree_call(&c, sum, x, p);
            if (k < 3) conf_drop(t, out[i]);
        }
        WANT_OK(t, rondo_tree_reset(c.tree));
        WANT(t, !tree_info(&c).recordings, "recordings are left after a reset");
    }
    conf_drop(t, c.tree);
    for (int i = 0; i < 3; i++) tree_want(&c, out[i], 11, 2, "an output whose tree is gone");
}

/* Calls from one stream and another: each sees what the ones before have done. */
static void tree_streams(conf *t) {
    tree_model model = {.kind = TREE_SUM};
    tree_case c = tree_start(t, NULL);
    uint32_t sum = tree_function(&c, &model, TREE_SUM);
    rondo_stream *streams[2] = {c.stream, conf_stream(t)};
    rondo_array *p = tree_tensor(&c, 10), *x = tree_tensor(&c, 1);
    conf_sync(t, c.stream);
    for (int i = 0; i < 12; i++) {
        rondo_array *y = NULL, *z = NULL;
        void *memory = NULL;
        rondo_stream *last = streams[(i / 3) % 2];
        rondo_tree_mark_step(c.tree);
        tree_call_on(&c, sum, streams[i % 2], x, p, &y, 1);
        tree_call_on(&c, sum, last, y, p, &z, 1);
        WANT_OK(t, rondo_array_data(z, &memory));
        conf_want64(t, last, memory, COUNT, 21, 3, "calls from two streams");
        conf_drop(t, y);
        conf_drop(t, z);
    }
}

/* Each call draws what the same calls without a tree draw. */
static void tree_random(conf *t) {
    tree_model model = {.kind = TREE_DRAWS};
    tree_case c = tree_start(t, NULL);
    WANT_OK(t, rondo_generator_create(t->device, 99, &model.generator));
    conf_keep_other(t, model.generator, (void (*)(void *))rondo_generator_release);
    uint32_t draw = tree_function(&c, &model, TREE_DRAWS);
    uint32_t got[COUNT * 2];
    uint64_t number = 0;
    for (int i = 0; i < 6; i++) {
        void *memory = NULL;
        rondo_tree_mark_step(c.tree);
        rondo_array *out = tree_call(&c, draw, NULL, NULL);
        WANT_OK(t, rondo_array_data(out, &memory));
        conf_download(t, c.stream, got, memory, sizeof got);
        for (uint32_t k = 0; k < COUNT * 2; k++, number++) {
            uint32_t want = conf_philox_number(99, number);
            WANT(t, got[k] == want, "call %d, number %u: %08x instead of %08x", i, k, got[k], want);
        }
        conf_drop(t, out);
    }
    WANT(t, tree_info(&c).replays == 4, "%llu replays", (unsigned long long)tree_info(&c).replays);
}

/* A sequence that repeats is sealed, and a deviation is right from its first call. */
static void tree_sealed(conf *t) {
    tree_model models[2] = {0};
    rondo_tree_options options = RONDO_TREE_OPTIONS_INIT;
    options.cost_samples = 0;
    options.seal_after = 3;
    tree_case c = tree_start(t, &options);
    uint32_t f = tree_function(&c, &models[0], TREE_SUM), g = tree_function(&c, &models[1], TREE_SUM);
    rondo_array *p = tree_tensor(&c, 10), *x[2] = {tree_tensor(&c, 1), tree_tensor(&c, 2)};
    for (int i = 0; i < 40; i++) {
        uint64_t odd = i % 10 == 9;
        rondo_tree_mark_step(c.tree);
        rondo_array *y = tree_call(&c, f, x[odd], p), *z = i % 10 == 8 ? NULL : tree_call(&c, g, y, p);
        tree_want(&c, y, 11 + odd, 2, "the first of a sequence");
        if (z) tree_want(&c, z, 21 + odd, 3, "the second of a sequence");
        conf_drop(t, y);
        if (z) conf_drop(t, z);
    }
    WANT(t, tree_info(&c).sealed > 5, "%llu sealed calls of 78", (unsigned long long)tree_info(&c).sealed);
}

/* Nothing grows while the same steps go on. */
static void tree_flat(conf *t) {
    tree_model models[3] = {0};
    uint32_t functions[3];
    uint64_t reserved = 0;
    tree_case c = tree_start(t, NULL);
    for (int i = 0; i < 3; i++) functions[i] = tree_function(&c, &models[i], TREE_SUM);
    rondo_array *p = tree_tensor(&c, 10), *x = tree_tensor(&c, 1);
    for (int i = 0; i < 200; i++) {
        rondo_tree_mark_step(c.tree);
        rondo_array *y = tree_call(&c, functions[0], x, p), *z = tree_call(&c, functions[1 + i % 2], y, p);
        if (i == 50) reserved = tree_info(&c).pool_reserved;
        conf_drop(t, y);
        conf_drop(t, z);
    }
    WANT(t, tree_info(&c).pool_reserved == reserved, "the pool went from %llu to %llu bytes",
         (unsigned long long)reserved, (unsigned long long)tree_info(&c).pool_reserved);
    WANT(t, tree_info(&c).recordings == 3, "%u recordings", tree_info(&c).recordings);
}

#define TREE(name, tags, what, function) \
    { {"tree." name, "tree graph " tags, what}, CONF_NEEDS_GRAPH, function }
static const conf_test tests[] = {
    TREE("phases", "", "A function is warmed up, recorded, replayed; inputs may come from anywhere.", tree_phases),
    TREE("parameter", "", "A parameter that moves is recorded anew, and the old recording is kept.", tree_parameter),
    TREE("path", "", "One function's output is another's input, from the first call on.", tree_path),
    TREE("branch", "memory checkpoint", "Paths part, and what is alive there stays whole.", tree_branch),
    TREE("dead_output", "stale",
         "An output whose memory was used again is refused, with the same words in every phase.", tree_dead_output),
    TREE("aliases", "", "Outputs on the memory of inputs or of each other are that in replays, too.", tree_aliases),
    TREE("in_place", "", "A parameter that a function writes is written once a call.", tree_in_place),
    TREE("uncapturable", "failure", "What cannot be captured runs directly, with the same result, and is said.",
         tree_uncapturable),
    TREE("outlives", "memory", "Outputs stay whole when the recordings and the tree are gone.", tree_outlives),
    TREE("streams", "stream", "Calls from several streams come after one another.", tree_streams),
    TREE("random", "random", "Replays draw the numbers that plain calls would draw.", tree_random),
    TREE("sealed", "", "A sealed sequence is left at the first call that is another.", tree_sealed),
    TREE("flat", "memory", "The same steps again and again take no more memory.", tree_flat),
};
CONF_SUITE(conf_suite_tree, tests);
