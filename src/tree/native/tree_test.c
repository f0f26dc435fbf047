/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole, over both tables: programs of random calls, whose every value is computed here as well. An output is right,
 * or says that it is stale; it is never wrong. */
#include <pthread.h>

#include "tree/native/native_testing.h"

#define ELEMENTS 16
#define HELD 12
#define STATICS 2

typedef struct values {
    float of[ELEMENTS];
} values;

typedef struct held {
    rondo_array *array;
    values expected;
    uint64_t step;  /* of the program, when it was made */
    bool of_a_tree; /* it may become stale */
} held;

typedef struct program {
    native_world w;
    rondo_kernel add;
    rondo_tree *tree;
    rondo_array_model models[4];
    uint32_t functions[4];
    held held[HELD], statics[STATICS];
    void *inputs[2], *outputs[2];
    uint64_t step;
    bool no_growth; /* the function that writes its input is left out */
} program;

static program the_program;

/* ------------------------------------------------------------------------------------------------------- models */

static uint64_t address_in(const rondo_array *array) { return rondo__storage_address(array->storage) + array->offset; }

static rondo_status add_of(program *p, rondo_stream *stream, uint64_t a, uint64_t b, uint64_t out) {
    const uint64_t bytes = ELEMENTS * sizeof(float);
    const rondo_argument arguments[4] = {{a, bytes, RONDO_ACCESS_READ, 0},
                                         {b, bytes, RONDO_ACCESS_READ, 0},
                                         {out, bytes, RONDO_ACCESS_WRITE, 0},
                                         {ELEMENTS, 0, RONDO_ACCESS_VALUE, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.argument_count = 4;
    call.kernel = p->add;
    call.arguments = arguments;
    call.name = "add";
    return rondo_stream_launch(stream, &call);
}

static rondo_status sum_of(program *p, rondo_stream *stream, const rondo_array *a, const rondo_array *b,
                           rondo_array **out) {
    const int64_t shape = ELEMENTS;
    RONDO__TRY(rondo_array_create(stream, RONDO_DTYPE_F32, 1, &shape, out));
    return add_of(p, stream, address_in(a), address_in(b), address_in(*out));
}

/* a + b, by way of a temporary: (a + b) + a, and a view of it. Takes a away early. */
static rondo_status model_sum(void *user, rondo_stream *stream, rondo_array **inputs, uint32_t n, rondo_array **outputs,
                              uint32_t m) {
    program *p = user;
    rondo_array *middle = NULL;
    const int64_t shape = ELEMENTS;
    (void)n;
    (void)m;
    rondo_status status = sum_of(p, stream, inputs[0], inputs[1], &middle);
    if (!status) status = sum_of(p, stream, middle, inputs[0], &outputs[0]);
    rondo_array_release(middle);
    RONDO__TRY(status);
    rondo_array_release(inputs[0]);
    inputs[0] = NULL;
    return rondo_array_alias(outputs[0], 1, &shape, NULL, 0, &outputs[1]);
}

/* a itself, and a + b. */
static rondo_status model_pass(void *user, rondo_stream *stream, rondo_array **inputs, uint32_t n,
                               rondo_array **outputs, uint32_t m) {
    (void)n;
    (void)m;
    RONDO__TRY(sum_of(user, stream, inputs[0], inputs[1], &outputs[1]));
    outputs[0] = inputs[0];
    inputs[0] = NULL;
    return RONDO_OK;
}

/* b, which is static, grows by a; and two sums of it. */
static rondo_status model_grow(void *user, rondo_stream *stream, rondo_array **inputs, uint32_t n,
                               rondo_array **outputs, uint32_t m) {
    program *p = user;
    (void)n;
    (void)m;
    RONDO__TRY(add_of(p, stream, address_in(inputs[0]), address_in(inputs[1]), address_in(inputs[1])));
    RONDO__TRY(sum_of(p, stream, inputs[0], inputs[1], &outputs[0]));
    return sum_of(p, stream, outputs[0], inputs[1], &outputs[1]);
}

static values plus(const values *a, const values *b) {
    values sum;
    for (int i = 0; i < ELEMENTS; i++) sum.of[i] = a->of[i] + b->of[i];
    return sum;
}

/* What the functions do: to the outputs, and to b. */
static void compute(uint32_t function, const values *a, values *b, values out[2]) {
    values sum = plus(a, b);
    switch (function) {
    case 0: out[0] = out[1] = plus(&sum, a); break;
    case 1:
        out[0] = *a;
        out[1] = sum;
        break;
    case 2:
        *b = sum;
        out[0] = plus(a, b);
        out[1] = plus(&out[0], b);
        break;
    default: out[0] = out[1] = plus(&sum, a); break;
    }
}

/* ------------------------------------------------------------------------------------------------------ program */

static void program_close(program *p) {
    if (p->w.device) rondo_status_release(rondo__device_synchronize(p->w.device));
    for (int i = 0; i < 2; i++) {
        rondo_array_release(p->inputs[i]);
        rondo_array_release(p->outputs[i]);
    }
    for (int i = 0; i < HELD; i++) nt_release(&p->held[i].array);
    rondo_tree_release(p->tree);
    for (int i = 0; i < STATICS; i++) nt_release(&p->statics[i].array);
    if (p->w.device) rondo_status_release(rondo__device_synchronize(p->w.device));
}

static void program_write(program *p, held *h) {
    void *pointer = NULL;
    T_OK(p->w.t, rondo_array_data(h->array, &pointer));
    T_OK(p->w.t, rondo_stream_copy(p->w.stream, pointer, &h->expected, sizeof h->expected, RONDO_COPY_HOST_TO_DEVICE));
}

static void program_fill(program *p, held *h) {
    const int64_t shape = ELEMENTS;
    float start = (float)(rondo_test_random(p->w.t) % 64);
    T_OK(p->w.t, rondo_array_create(p->w.stream, RONDO_DTYPE_F32, 1, &shape, &h->array));
    for (int i = 0; i < ELEMENTS; i++) h->expected.of[i] = start + (float)i;
    h->of_a_tree = false;
    h->step = p->step;
    program_write(p, h);
}

static void program_add_functions(program *p) {
    static const uint32_t second = 1, both[] = {0, 1};
    rondo_tree_function f = RONDO_TREE_FUNCTION_INIT;
    static const char *const names[] = {"sum", "pass", "grow", "owned sum"};
    p->models[0] = p->models[3] = (rondo_array_model){model_sum, p};
    p->models[1] = (rondo_array_model){model_pass, p};
    p->models[2] = (rondo_array_model){model_grow, p};
    f.input_count = f.output_count = 2;
    for (uint32_t i = 0; i < 4; i++) {
        f.name = names[i];
        f.model = &p->models[i];
        f.static_inputs = f.mutated_inputs = &second;
        f.static_count = f.mutated_count = i == 2;
        f.owned_outputs = both;
        f.owned_count = i == 3 ? 2 : 0;
        T_OK(p->w.t, rondo_tree_add_function(p->tree, &f, &p->functions[i]));
    }
}

static void program_open(rondo_test *t, program *p, const char *device, rondo_tree_options options, uint32_t serial) {
    rondo_array_host_options host = RONDO_ARRAY_HOST_OPTIONS_INIT;
    memset(p, 0, sizeof *p);
    host.serial = serial;
    nt_open(t, &p->w, device, &host);
    T_DEFER(t, program_close, p);
    T_OK(t, rondo_kernel_find(p->w.device, "rondo.add", &p->add));
    options.type = device;
    options.ops = &p->w.ops;
    options.host = &p->w.host;
    T_OK(t, rondo_tree_open(p->w.instance, &options, &p->tree));
    p->w.ops.destroy = NULL; /* the tree's now */
    p->w.host.destroy = NULL;
    program_add_functions(p);
    for (int i = 0; i < STATICS; i++) program_fill(p, &p->statics[i]);
}

/* Right, or stale, and that only if a step has begun since; *out_stale says which. */
static void program_verify(program *p, const held *h, bool *out_stale) {
    void *pointer = NULL;
    values now;
    rondo_status status = rondo_array_data(h->array, &pointer);
    *out_stale = status != RONDO_OK;
    if (status) {
        T_TRUE(p->w.t, h->of_a_tree && h->step < p->step);
        T_FAILS(p->w.t, status, STALE, "overwritten by a subsequent run");
        return;
    }
    T_OK(p->w.t, rondo_stream_copy(p->w.stream, &now, pointer, sizeof now, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(p->w.t, rondo_stream_synchronize(p->w.stream));
    for (int i = 0; i < ELEMENTS; i++) T_EQ(p->w.t, now.of[i], h->expected.of[i]);
}

static held *program_some(program *p, bool empty) {
    uint64_t start = rondo_test_random(p->w.t);
    for (uint64_t i = 0; i < HELD; i++) {
        held *h = &p->held[(start + i) % HELD];
        if ((h->array == NULL) == empty) return h;
    }
    return NULL;
}

static void program_let_go(held *h) {
    rondo_array_release(h->array);
    h->array = NULL;
}

/* One that can be used; mostly an output of before. The rest is let go. */
static held *program_usable(program *p) {
    bool stale = false;
    for (held *h; rondo_test_random(p->w.t) % 4 && (h = program_some(p, false)) != NULL;) {
        program_verify(p, h, &stale);
        if (!stale) return h;
        program_let_go(h);
    }
    held *h = program_some(p, true);
    if (!h) program_let_go(h = &p->held[0]);
    program_fill(p, h);
    return h;
}

static bool program_small(const values *v) { return v->of[ELEMENTS - 1] < 1e6f; }

static void program_call(program *p) {
    rondo_test *t = p->w.t;
    uint32_t function = (uint32_t)(rondo_test_random(t) % 4);
    if (function == 2 && p->no_growth) function = 0;
    held *a = program_usable(p), *b = NULL;
    values out[2];
    b = function == 2 ? &p->statics[rondo_test_random(t) % STATICS] : rondo_test_random(t) % 4 ? a : &p->statics[1];
    if (!program_small(&a->expected) || !program_small(&b->expected)) { /* floats that are whole numbers stay exact */
        if (b != a && !program_small(&b->expected)) {
            for (int i = 0; i < ELEMENTS; i++) b->expected.of[i] = (float)i;
            program_write(p, b);
        } else {
            program_let_go(a);
        }
        return;
    }
    compute(function, &a->expected, &b->expected, out);
    bool was_of_a_tree = a->of_a_tree;
    uint64_t was_made = a->step;
    p->inputs[0] = a->array;
    p->inputs[1] = b->array;
    rondo_array_retain(p->inputs[1]);
    if (a == b || rondo_test_random(t) % 2) rondo_array_retain(p->inputs[0]);
    else a->array = NULL; /* given away */
    T_OK(t, rondo_tree_run(p->tree, p->functions[function], p->w.stream, p->inputs, 2, p->outputs, 2));
    T_TRUE(t, !p->inputs[0] && !p->inputs[1]);
    for (int i = 0; i < 2; i++) {
        bool stale = false;
        held *h = program_some(p, true);
        bool itself = function == 1 && i == 0;
        held made = {p->outputs[i], out[i], itself ? was_made : p->step, itself ? was_of_a_tree : function != 3};
        if (h && rondo_test_random(t) % 3) {
            *h = made;
            p->outputs[i] = NULL;
            program_verify(p, h, &stale);
        } else {
            program_verify(p, &made, &stale);
            rondo_array_release(p->outputs[i]);
            p->outputs[i] = NULL;
        }
        T_TRUE(t, !stale);
    }
}

static void program_run(program *p, int calls) {
    bool stale = false;
    for (int i = 0; i < calls; i++) {
        uint64_t what = rondo_test_random(p->w.t) % 32;
        held *h = program_some(p, false);
        if (what < 18) {
            program_call(p);
        } else if (what < 25 && h) {
            program_let_go(h);
        } else if (what < 30) {
            rondo_tree_mark_step(p->tree);
            p->step++;
        } else if (what == 30 && rondo_test_random(p->w.t) % 16 == 0) {
            T_OK(p->w.t, rondo_tree_reset(p->tree));
        }
        for (int k = 0; k < HELD; k++) {
            if (!p->held[k].array) continue;
            program_verify(p, &p->held[k], &stale);
            if (stale) program_let_go(&p->held[k]);
        }
        for (int k = 0; k < STATICS; k++) program_verify(p, &p->statics[k], &stale);
    }
}

/* A sequence of the same few calls, again and again, so that it is sealed. */
static void program_loop(program *p, int rounds) {
    rondo_test *t = p->w.t;
    held a = {0};
    program_fill(p, &a);
    p->held[0].array = a.array; /* let go with the rest */
    for (int round = 0; round < rounds; round++) {
        values now = a.expected, b, out[2];
        rondo_array_retain(a.array);
        p->inputs[0] = a.array;
        rondo_tree_mark_step(p->tree);
        p->step++;
        for (uint32_t function = 0; function < 3; function++) {
            held *s = &p->statics[0];
            if (function != 2) b = now;
            compute(function, &now, function == 2 ? &s->expected : &b, out);
            p->inputs[1] = function == 2 ? s->array : p->inputs[0];
            rondo_array_retain(p->inputs[1]);
            T_OK(t, rondo_tree_run(p->tree, p->functions[function], p->w.stream, p->inputs, 2, p->outputs, 2));
            held last = {p->outputs[1], out[1], p->step, true};
            bool stale = true;
            program_verify(p, &last, &stale);
            T_TRUE(t, !stale);
            rondo_array_release(p->outputs[0]);
            p->inputs[0] = p->outputs[1];
            p->outputs[0] = p->outputs[1] = NULL;
            now = out[1];
        }
        rondo_array_release(p->inputs[0]);
        p->inputs[0] = NULL;
        for (int i = 0; i < ELEMENTS; i++) p->statics[0].expected.of[i] = (float)(i + round % 7);
        program_write(p, &p->statics[0]);
    }
}

/* ---------------------------------------------------------------------------------------------------------- tests */

static rondo_tree_info info_of(program *p) {
    rondo_tree_info info = RONDO_TREE_INFO_INIT;
    T_OK(p->w.t, rondo_tree_get_info(p->tree, &info));
    return info;
}

static void check_programs(rondo_test *t, const char *device, int calls) {
    static const rondo_tree_conflict conflicts[] = {RONDO_TREE_CONFLICT_ERROR, RONDO_TREE_CONFLICT_COPY};
    program *p = &the_program;
    for (int round = 0; round < 4; round++) {
        rondo_tree_options options = RONDO_TREE_OPTIONS_INIT;
        options.conflict = conflicts[round & 1];
        options.record_after = 1 + (uint32_t)round % 3;
        options.seal_after = 2;
        options.cost_samples = 0;
        options.recording_limit = round < 2 ? 4096 : 12;
        program_open(t, p, device, options, (uint32_t)round & 1);
        program_run(p, calls);
        rondo_tree_info info = info_of(p);
        T_TRUE(t, info.replays > 20 && info.records > 3 && info.checkpoints > 0);
        T_TRUE(t, round < 2 || info.evicted > 0);
        T_EQ(t, info.evacuated > 0, round & 1);
        T_OK(t, rondo__memory_check(p->w.device->memory));
        uint64_t live = 0;
        program_close(p);
        p->tree = NULL;
        memset(p->held, 0, sizeof p->held);
        live = nt_live(&p->w);
        T_EQ(t, live, 0);
        nt_close(&p->w);
        p->w.device = NULL;
        p->w = (native_world){.t = t};
    }
}

static void test_random_programs_on_cpu(rondo_test *t) { check_programs(t, "cpu", 3000); }
static void test_random_programs_on_sim(rondo_test *t) { check_programs(t, "sim", 700); }

static void test_sealed_loops(rondo_test *t, const char *device) {
    program *p = &the_program;
    rondo_tree_options options = RONDO_TREE_OPTIONS_INIT;
    options.seal_after = 4;
    options.cost_samples = 0;
    program_open(t, p, device, options, 0);
    program_loop(p, 40);
    rondo_tree_info info = info_of(p);
    T_TRUE(t, info.sealed > 30);
}
static void test_sealed_loops_on_cpu(rondo_test *t) { test_sealed_loops(t, "cpu"); }
static void test_sealed_loops_on_sim(rondo_test *t) { test_sealed_loops(t, "sim"); }

/* Whatever allocation fails, what succeeded is right and nothing is left behind. */
static void test_a_short_program(rondo_test *t, const char *device, rondo_tree_conflict conflict, int calls) {
    program *p = &the_program;
    rondo_tree_options options = RONDO_TREE_OPTIONS_INIT;
    options.conflict = conflict;
    options.seal_after = 2;
    options.cost_samples = 0;
    program_open(t, p, device, options, 0);
    p->no_growth = true; /* it cannot be run half, and then again */
    program_run(p, calls);
    rondo_tree_info info = info_of(p);
    T_TRUE(t, rondo_test_failing(t) || (info.warmups && info.records && info.replays && info.checkpoints));
}
static void test_a_short_program_on_cpu(rondo_test *t) { test_a_short_program(t, "cpu", RONDO_TREE_CONFLICT_COPY, 16); }
static void test_a_short_program_on_sim(rondo_test *t) {
    test_a_short_program(t, "sim", RONDO_TREE_CONFLICT_ERROR, 24);
}

/* The tree goes, and its outputs stay usable. */
static void test_outputs_outlive_the_tree(rondo_test *t, const char *device) {
    program *p = &the_program;
    rondo_tree_options options = RONDO_TREE_OPTIONS_INIT;
    bool stale = false;
    program_open(t, p, device, options, 0);
    for (int call = 0; call < 4; call++) { /* warmed up, recorded, replayed twice */
        values out[2];
        held *a = &p->statics[0], *h = &p->held[0];
        program_let_go(h);
        program_let_go(&p->held[1]);
        compute(0, &a->expected, &a->expected, out);
        for (int i = 0; i < 2; i++) {
            rondo_array_retain(a->array);
            p->inputs[i] = a->array;
        }
        rondo_tree_mark_step(p->tree);
        T_OK(t, rondo_tree_run(p->tree, p->functions[0], p->w.stream, p->inputs, 2, p->outputs, 2));
        for (int i = 0; i < 2; i++) {
            p->held[i] = (held){p->outputs[i], out[i], 0, true};
            p->outputs[i] = NULL;
        }
    }
    T_TRUE(t, rondo_test_failing(t) || info_of(p).replays == 2);
    rondo_tree_release(p->tree);
    p->tree = NULL;
    p->step++;
    for (int i = 0; i < 2; i++) program_verify(p, &p->held[i], &stale);
    T_TRUE(t, !stale || rondo_test_failing(t)); /* without memory to hand them over they are given up */
    if (stale) return;
    uint64_t live = nt_live(&p->w);
    program_let_go(&p->held[0]);
    T_EQ(t, nt_live(&p->w), live); /* the view keeps it */
    program_let_go(&p->held[1]);
    T_EQ(t, nt_live(&p->w), live - 1);
}
NT_BOTH(test_outputs_outlive_the_tree)

/* ------------------------------------------------------------------------------------------------------- threads */

#define THREADS 3
#define THREAD_CALLS 600

typedef struct threaded {
    program *p;
    uint32_t number;
    atomic_uint_least64_t *failures;
} threaded;

static rondo_status thread_input(threaded *h, rondo_stream *stream, float start, values *out_values,
                                 rondo_array **out) {
    const int64_t shape = ELEMENTS;
    void *pointer = NULL;
    RONDO__TRY(rondo_array_create(stream, RONDO_DTYPE_F32, 1, &shape, out));
    for (int i = 0; i < ELEMENTS; i++) out_values->of[i] = start + (float)i + (float)h->number;
    RONDO__TRY(rondo_array_data(*out, &pointer));
    return rondo_stream_copy(stream, pointer, out_values, sizeof *out_values, RONDO_COPY_HOST_TO_DEVICE);
}

/* Copies are looked at; outputs of the tree's are only held and let go, by other threads' steps ended or moved. */
static bool thread_call(threaded *h, rondo_stream *stream, int call, rondo_array **kept) {
    program *p = h->p;
    values given, want[2], now;
    rondo_array *array = NULL;
    void *inputs[2] = {NULL}, *outputs[2] = {NULL}, *pointer = NULL;
    uint32_t function = call % 3 == 0 ? 3 : (uint32_t)(call % 2);
    rondo_status status = thread_input(h, stream, (float)(call % 32), &given, &array);
    if (!status) {
        rondo_array_retain(array);
        inputs[0] = inputs[1] = array;
        status = rondo_tree_run(p->tree, p->functions[function], stream, inputs, 2, outputs, 2);
    } else {
        rondo_array_release(array);
    }
    bool good = !status;
    rondo_status_release(status);
    if (good && function == 3) {
        values b = given;
        compute(3, &given, &b, want);
        status = rondo_array_data(outputs[1], &pointer);
        if (!status) status = rondo_stream_copy(stream, &now, pointer, sizeof now, RONDO_COPY_DEVICE_TO_HOST);
        if (!status) status = rondo_stream_synchronize(stream);
        good = !status && memcmp(&now, &want[1], sizeof now) == 0;
        rondo_status_release(status);
    }
    if (call % 5 == 0) rondo_tree_mark_step(p->tree);
    rondo_array_release(*kept);
    *kept = outputs[0];
    status = *kept ? rondo_array_data(*kept, &pointer) : RONDO_OK; /* or stale by now */
    rondo_status_release(status);
    rondo_array_release(outputs[1]);
    return good;
}

static void *thread_run(void *argument) {
    threaded *h = argument;
    rondo_stream *stream = NULL;
    rondo_array *kept = NULL;
    rondo_status status = rondo_stream_create(h->p->w.device, NULL, &stream);
    for (int call = 0; call < THREAD_CALLS && !status; call++) {
        if (!thread_call(h, stream, call, &kept)) (void)atomic_fetch_add(h->failures, 1u);
    }
    if (status) (void)atomic_fetch_add(h->failures, 1u);
    rondo_status_release(status);
    rondo_array_release(kept);
    rondo_stream_release(stream);
    return NULL;
}

static void test_threads_share_a_tree(rondo_test *t) {
    program *p = &the_program;
    for (int round = 0; round < 2; round++) {
        rondo_tree_options options = RONDO_TREE_OPTIONS_INIT;
        atomic_uint_least64_t failures;
        pthread_t threads[THREADS];
        threaded each[THREADS];
        options.conflict = round ? RONDO_TREE_CONFLICT_COPY : RONDO_TREE_CONFLICT_ERROR;
        options.context = (uint64_t)round;
        atomic_init(&failures, 0);
        program_open(t, p, "cpu", options, 0);
        for (uint32_t i = 0; i < THREADS; i++) {
            each[i] = (threaded){p, i, &failures};
            T_EQ(t, pthread_create(&threads[i], NULL, thread_run, &each[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) (void)pthread_join(threads[i], NULL);
        T_EQ(t, atomic_load(&failures), 0);
        T_TRUE(t, info_of(p).replays > 0);
        program_close(p);
        memset(p->held, 0, sizeof p->held);
        p->tree = NULL;
        T_EQ(t, nt_live(&p->w), 0);
        nt_close(&p->w);
        p->w = (native_world){.t = t};
    }
}

RONDO_TEST_MAIN(T_PLAIN(test_random_programs_on_cpu), T_PLAIN(test_random_programs_on_sim),
                T_PLAIN(test_sealed_loops_on_cpu), T_PLAIN(test_sealed_loops_on_sim), NT(test_a_short_program_on_cpu),
                NT(test_a_short_program_on_sim), NT_ENTRIES(test_outputs_outlive_the_tree),
                T_PLAIN(test_threads_share_a_tree))
