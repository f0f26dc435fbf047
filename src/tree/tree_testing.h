/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of trees share: a tree over the model device (device_testing.h, ops_testing.h) or a native one, and the
 * model framework (tensors_testing.h, models_testing.h, host_testing.h), short ways to call and to look, and an end that counts everything.
 *
 *     static void test_adds(rondo_test *t, tt_kind kind) {
 *         tt_world w;
 *         tt_open(t, &w, kind);
 *         th_model f = {.name = "f", .inputs = 1, .outputs = 1, .steps = {P_ADDS(1, 0, 1), P_RETURN(1)}};
 *         uint32_t id = tt_add(&w, &f);
 *         th_tensor *y = tt_call(&w, id, tt_new(&w, 5)); // 5, 6, 7, 8
 *         tt_ramp(&w, y, 6, 1);
 *     }
 *     #define TESTS(X) X(test_adds)
 *     TT_MAIN(TESTS)                                     // with leases, and with storages that are watched
 *
 * References: tt_new and the calls give the test one, calls take those that are handed in (tt_keep adds one), tt_drop
 * gives one back. When the test ends the tree is released, and then nobody but the test may have any left. */
#ifndef RONDO_SRC_TREE_TREE_TESTING_H
#define RONDO_SRC_TREE_TREE_TESTING_H

#include "harness/harness.h"
#include "tree/host_testing.h"
#include "tree/ops_testing.h"

#define TT_FLOATS 4
#define TT_BYTES (TT_FLOATS * sizeof(float))
#define TT_LOG 4096u

/* The model framework with leases, and watched, on the model device; with leases on native ones. */
typedef enum tt_kind { TT_LEASES, TT_WEAK, TT_CPU, TT_SIM } tt_kind;

typedef struct tt_world {
    rondo_test *t;
    tt_kind kind;
    rondo_instance *instance;
    tt_faults faults;
    md_device device;
    th_host host;
    rondo_graph_ops ops;
    rondo_tensor_host table;
    rondo_tree_options options;
    rondo_tree *tree;
    bool opened;
    md_stream *stream, *other; /* the caller's */
    uint64_t stream_count;
    rondo_allocator allocator;
    uint64_t allocations, blocks; /* of the instance's allocator: so far, alive */
    uint64_t refuse;              /* the nth from now on is refused; 0: none */
    bool refused;
    th_model *models[64];
    uint32_t model_count;
    unsigned warnings;
    char warning[TT_LOG]; /* all of them, a line each */
    char debug[TT_LOG];   /* what the tree says of its recordings, as far as it fits */
} tt_world;

/* ------------------------------------------------------------------------------------------------ begin and end */

static inline void *tt_reallocate(void *self, void *pointer, size_t old_size, size_t new_size, size_t alignment) {
    tt_world *w = self;
    rondo_allocator under = rondo_allocator_default();
    if (new_size && !tt_paused) {
        (void)__atomic_fetch_add(&w->allocations, 1, __ATOMIC_RELAXED);
        if (w->refuse && --w->refuse == 0) {
            w->refused = true;
            return NULL;
        }
    }
    void *fresh = under.reallocate(under.self, pointer, old_size, new_size, alignment);
    if (!pointer && fresh) (void)__atomic_fetch_add(&w->blocks, 1, __ATOMIC_RELAXED);
    if (pointer && !new_size) (void)__atomic_fetch_sub(&w->blocks, 1, __ATOMIC_RELAXED);
    return fresh;
}

static inline void tt_log(void *user, rondo_log_level level, const char *text) {
    tt_world *w = user;
    if (level == RONDO_LOG_WARNING) w->warnings++;
    else if (level != RONDO_LOG_DEBUG || strncmp(text, "trees: ", 7)) return;
    char *to = level == RONDO_LOG_WARNING ? w->warning : w->debug;
    size_t used = strlen(to);
    (void)snprintf(to + used, TT_LOG - used, "%s\n", text);
}

static inline void tt_forget_kept(tt_world *w) {
    for (uint32_t m = 0; m < w->model_count; m++) {
        th_model *model = w->models[m];
        for (uint32_t i = 0; i < model->kept_count; i++) th_drop(&w->host, model->kept[i]);
        model->kept_count = 0;
        for (uint32_t i = 0; i < TH_LIST; i++) {
            th_drop(&w->host, model->constants[i]);
            model->constants[i] = NULL;
        }
    }
}

/* The tree goes first; what lives then is the test's. */
static inline void tt_check_end(tt_world *w) {
    rondo_test *t = w->t;
    for (const th_tensor *x = w->host.tensors; x; x = x->next)
        if (x->refs != x->held)
            rondo_test_fail(t, __FILE__, __LINE__, "%lld references to a tensor are left over",
                            (long long)(x->refs - x->held));
    T_EQ(t, w->host.weak_count, 0);
    T_EQ(t, w->host.metadata_count, 0);
    T_EQ(t, w->device.states, 0);
    T_TRUE(t, !w->device.graphs);
    T_EQ(t, w->host.entered, w->host.left);
    T_EQ(t, w->device.prepared, w->device.unprepared);
    T_EQ(t, w->host.called_back, 0);
}

static inline void tt_check_memory(tt_world *w) {
    rondo_test *t = w->t;
    if (w->host.cell != w->host.own_cell) T_TRUE(t, nb_free(w->device.native, md_address(w->host.cell)));
    T_EQ(t, w->host.tensor_count, 0);
    T_EQ(t, w->host.storage_count, 0);
    T_EQ(t, w->host.leased, 0);
    T_EQ(t, md_live(&w->device, UINT64_MAX, NULL), 0);
    T_EQ(t, md_pools_used(&w->device), 0);
    if (w->device.wrong)
        rondo_test_fail(t, __FILE__, __LINE__, "the device was misused %llu times; first: %s",
                        (unsigned long long)w->device.wrong, w->device.wrong_text);
    uint64_t streams = 0;
    for (const md_stream *s = w->device.streams; s; s = s->next) streams++;
    if (!w->device.native) T_EQ(t, streams, w->stream_count);
}

static inline void tt_release_instance(tt_world *w) {
    while (w->device.native && w->device.streams) md_release_stream(&w->device, w->device.streams);
    rondo_device_release(w->device.native);
    w->device.native = NULL;
    rondo_instance_release(w->instance);
    if (w->blocks)
        rondo_test_fail(w->t, __FILE__, __LINE__, "%llu blocks of the instance are left (%s)",
                        (unsigned long long)w->blocks, w->faults.fired ? tt_fault_name(w->faults.entry) : "no fault");
    md_close(&w->device);
    th_close(&w->host);
}

static inline void tt_release_tensors(tt_world *w) {
    while (w->host.tensors) {
        w->host.tensors->refs = 1;
        th_drop(&w->host, w->host.tensors);
    }
}

static inline void tt_release_tree(tt_world *w) {
    w->faults.nth = w->refuse = 0;
    rondo_tree_release(w->tree);
    w->tree = NULL;
    tt_forget_kept(w);
}

static inline void tt_blank(rondo_test *t, tt_world *w, tt_kind kind) {
    *w = (tt_world){.t = t, .kind = kind, .options = RONDO_TREE_OPTIONS_INIT};
    tt_resume(false); /* of a test that ended in the middle */
    md_open(&w->device, &w->faults);
    th_open(&w->host, &w->device, &w->faults, kind == TT_WEAK);
}

/* All kernels are made known before there are threads. */
static inline void tt_fill_native(tt_world *w) {
    void *cell = NULL;
    const md_kernel kernels[] = {md_kernel_fill_nan, md_kernel_copy, th_kernel, th_kernel_random, th_kernel_store};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) T_TRUE(w->t, nb_kernel_of(kernels[i]) != NULL);
    T_OK(w->t, rondo_device_open(w->instance, w->kind == TT_CPU ? "cpu" : "sim", NULL, &w->device.native));
    w->ops = (rondo_graph_ops)RONDO_GRAPH_OPS_INIT;
    T_OK(w->t, rondo_graph_ops_native(w->device.native, &w->ops));
    T_OK(w->t, rondo_memory_allocate(w->device.native, 2u * sizeof *w->host.cell, &cell));
    w->host.cell = cell;
    memcpy(w->host.cell, w->host.own_cell, sizeof w->host.own_cell);
}

static inline void tt_fill(tt_world *w) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    void *streams[3] = {NULL, NULL, NULL};
    w->allocator = (rondo_allocator){w, tt_reallocate};
    options.allocator = &w->allocator;
    options.ignore_plugin_path = 1;
    options.log = tt_log;
    options.log_level = RONDO_LOG_DEBUG;
    options.log_user = w;
    T_OK(w->t, rondo_instance_create(&options, &w->instance));
    if (w->kind >= TT_CPU) tt_fill_native(w);
    for (int i = 0; i < 3; i++) {
        T_OK(w->t, md_create_stream(&w->device, &streams[i]));
        w->stream_count++;
    }
    w->stream = streams[0];
    w->other = streams[1];
    w->host.side = streams[2];
    if (w->kind < TT_CPU) md_ops(&w->device, &w->ops);
    th_table(&w->host, &w->table);
    w->options.type = w->kind == TT_CPU ? "cpu" : w->kind == TT_SIM ? "sim" : "model";
    w->options.ops = &w->ops;
    w->options.host = &w->table;
    w->options.cost_samples = 0; /* times are not for tests; those that ask for it bring a clock */
}

/* Everything but the tree; options may be changed before tt_start. */
static inline void tt_prepare(rondo_test *t, tt_world *w, tt_kind kind) {
    tt_blank(t, w, kind);
    T_DEFER(t, tt_release_instance, w);
    T_DEFER(t, tt_check_memory, w);
    T_DEFER(t, tt_release_tensors, w);
    T_DEFER(t, tt_check_end, w);
    T_DEFER(t, tt_release_tree, w);
    tt_fill(w);
}

/* For tests of many worlds, one after the other: the end of one that was made with tt_blank and tt_fill. */
static inline void tt_close(tt_world *w) {
    tt_release_tree(w);
    tt_check_end(w);
    tt_release_tensors(w);
    tt_check_memory(w);
    tt_release_instance(w);
}

/* Also again, after the tree was released: which has then destroyed the native table. */
static inline void tt_start(tt_world *w) {
    if (w->opened && w->device.native) T_OK(w->t, rondo_graph_ops_native(w->device.native, &w->ops));
    T_OK(w->t, rondo_tree_open(w->instance, &w->options, &w->tree));
    w->opened = true;
}

static inline void tt_open(rondo_test *t, tt_world *w, tt_kind kind) {
    tt_prepare(t, w, kind);
    tt_start(w);
}

#define TT_KINDS(name)                                               \
    static void name##_leases(rondo_test *t) { name(t, TT_LEASES); } \
    static void name##_weak(rondo_test *t) { name(t, TT_WEAK); }
#define TT_ENTRIES(name) T_PLAIN(name##_leases), T_PLAIN(name##_weak),
/* Those that hold on every device. */
#define TT_EACH_KIND(name)                                        \
    TT_KINDS(name)                                                \
    static void name##_on_cpu(rondo_test *t) { name(t, TT_CPU); } \
    static void name##_on_sim(rondo_test *t) { name(t, TT_SIM); }
#define TT_EACH_ENTRY(name) TT_ENTRIES(name) T_PLAIN(name##_on_cpu), T_PLAIN(name##_on_sim),
/* TESTS(X) names all tests: X(test_one) X(test_two) ... */
#define TT_MAIN(TESTS) TESTS(TT_KINDS) RONDO_TEST_MAIN(TESTS(TT_ENTRIES))
/* TESTS(EACH, MODEL): those on every device, and those that look into the model device. */
#define TT_MAIN_EACH(TESTS) TESTS(TT_EACH_KIND, TT_KINDS) RONDO_TEST_MAIN(TESTS(TT_EACH_ENTRY, TT_ENTRIES))

/* --------------------------------------------------------------------------------------------------- references */

static inline th_tensor *tt_held(th_tensor *x) {
    if (x) x->held++;
    return x;
}

static inline th_tensor *tt_keep(tt_world *w, th_tensor *x) { return tt_held(th_keep(&w->host, x)); }

/* The reference is somebody else's from now on. */
static inline th_tensor *tt_give(th_tensor *x) {
    x->held--;
    return x;
}

/* Of a watched storage nobody is told when it ends: none may end while another thread is inside the tree, so that such a
 * framework has one lock for all. A model that waits for another thread gives it up meanwhile. */
static inline void tt_enter(tt_world *w) {
    if (w->host.weak) th_lock(&w->host);
}
static inline void tt_leave(tt_world *w) {
    if (w->host.weak) th_unlock(&w->host);
}

static inline void tt_drop(tt_world *w, th_tensor *x) {
    if (!x) return;
    x->held--;
    tt_enter(w);
    th_drop(&w->host, x);
    tt_leave(w);
}

/* Before anybody reads or enqueues something else. */
static inline void tt_flush(tt_world *w) {
    if (w->tree && w->table.flags & RONDO_TENSOR_HOST_FLUSHES) T_OK(w->t, rondo_tree_flush(w->tree));
}

/* first, first + 1, ... */
static inline th_tensor *tt_new_of(tt_world *w, int64_t rows, int64_t columns, float first) {
    th_tensor *x = NULL;
    md_call call = {.kernel = th_kernel_store, .addresses = 1u};
    float values[14];
    bool before = tt_pause();
    tt_flush(w);
    T_OK(w->t, th_compact(&w->host, w->stream, rows, columns, &x));
    for (uint64_t at = 0, count = th_elements(x); at < count; at += 14u) {
        uint64_t some = count - at < 14u ? count - at : 14u;
        for (uint64_t i = 0; i < some; i++) values[i] = first + (float)(at + i);
        call.words[0] = th_data(x) + at * sizeof(float);
        call.words[1] = call.bytes[0] = some * sizeof(float);
        memcpy(&call.words[2], values, some * sizeof(float));
        T_OK(w->t, md_launch(w->stream, &call));
    }
    tt_resume(before);
    return tt_held(x);
}

static inline th_tensor *tt_new(tt_world *w, float first) { return tt_new_of(w, 0, TT_FLOATS, first); }

static inline th_tensor *tt_number(tt_world *w, int64_t value) {
    th_tensor *x = NULL;
    T_OK(w->t, th_number(&w->host, value, &x));
    return tt_held(x);
}

static inline th_tensor *tt_in_host(tt_world *w, float value) {
    th_tensor *x = NULL;
    T_OK(w->t, th_in_host(&w->host, false, value, &x));
    return tt_held(x);
}

/* What a framework's own x.view, x.expand, x + 1 do, outside all trees. */
static inline th_tensor *tt_eager(tt_world *w, th_step step, th_tensor *x) {
    th_model model = {.name = "eager", .inputs = 1, .outputs = 1, .steps = {step, P_RETURN(1)}};
    rondo_tree_run_context context = {
        .struct_size = sizeof context, .phase = RONDO_TREE_DIRECT, .model = &model, .stream = md_handle(w->stream)};
    void *input = th_keep(&w->host, x), *output = NULL;
    bool before = tt_pause();
    tt_flush(w);
    T_OK(w->t, th_run(&w->host, &context, &input, 1, &output, 1));
    tt_resume(before);
    return tt_held(output);
}

/* x += scalar, outside all trees. */
static inline void tt_eager_add(tt_world *w, th_tensor *x, float scalar) {
    bool before = tt_pause();
    tt_flush(w);
    T_OK(w->t, th_apply(w->stream, TH_ADD, x, x, NULL, scalar));
    tt_resume(before);
}

/* Counts from now on: each outermost call of compiled code begins with it. */
static inline void tt_invocation(tt_world *w) {
    if (w->host.generation >= 0) w->host.generation++;
}

/* Somebody marks a step in the framework. */
static inline void tt_mark(tt_world *w) { w->host.generation = w->host.generation < 0 ? w->host.generation - 1 : -1; }

/* -------------------------------------------------------------------------------------------------------- calls */

static inline uint32_t tt_add(tt_world *w, th_model *m) {
    rondo_tree_function f = RONDO_TREE_FUNCTION_INIT;
    uint32_t id = UINT32_MAX;
    T_TRUE(w->t, w->model_count < 64u);
    w->models[w->model_count++] = m;
    f.mode = m->mode;
    f.name = m->name;
    f.model = m;
    f.input_count = m->inputs;
    f.output_count = m->outputs;
    f.static_inputs = m->statics;
    f.static_count = m->static_count;
    f.mutated_inputs = m->mutated;
    f.mutated_count = m->mutated_count;
    f.constants = (void *const *)m->constants;
    f.constant_count = m->constant_count;
    f.owned_outputs = m->owned;
    f.owned_count = m->owned_count;
    f.skip = m->skip;
    f.simple = m->simple;
    T_OK(w->t, rondo_tree_add_function(w->tree, &f, &id));
    return id;
}

/* Takes the references of `inputs`. */
static inline rondo_status tt_try_on(tt_world *w, md_stream *stream, uint32_t id, uint32_t input_count,
                                     th_tensor *const *inputs, uint32_t output_count, th_tensor **outputs) {
    void *in[TH_REGISTERS] = {0}, *out[TH_REGISTERS] = {0};
    for (uint32_t i = 0; i < input_count; i++) {
        in[i] = inputs[i];
        if (inputs[i]) inputs[i]->held--;
    }
    tt_enter(w);
    rondo_status status = rondo_tree_run(w->tree, id, md_handle(stream), in, input_count, out, output_count);
    tt_leave(w);
    for (uint32_t i = 0; i < input_count; i++) T_TRUE(w->t, !in[i]);
    for (uint32_t i = 0; i < output_count; i++) {
        outputs[i] = NULL;
        if (!status) outputs[i] = tt_held(out[i]);
    }
    return status;
}

static inline rondo_status tt_try(tt_world *w, uint32_t id, uint32_t input_count, th_tensor *const *inputs,
                                  uint32_t output_count, th_tensor **outputs) {
    return tt_try_on(w, w->stream, id, input_count, inputs, output_count, outputs);
}

#define TT_IN(...) \
    (uint32_t)(sizeof((th_tensor *[]){__VA_ARGS__}) / sizeof(th_tensor *)), (th_tensor *[]) { __VA_ARGS__ }

/* One output. */
static inline th_tensor *tt_one(tt_world *w, uint32_t id, uint32_t input_count, th_tensor *const *inputs) {
    th_tensor *y = NULL;
    T_OK(w->t, tt_try(w, id, input_count, inputs, 1, &y));
    return y;
}

static inline th_tensor *tt_call(tt_world *w, uint32_t id, th_tensor *x) { return tt_one(w, id, 1, &x); }
static inline th_tensor *tt_call2(tt_world *w, uint32_t id, th_tensor *a, th_tensor *b) {
    return tt_one(w, id, TT_IN(a, b));
}

/* Two outputs. */
static inline void tt_pair(tt_world *w, uint32_t id, th_tensor *x, th_tensor **out_a, th_tensor **out_b) {
    th_tensor *y[2] = {NULL, NULL};
    T_OK(w->t, tt_try(w, id, 1, &x, 2, y));
    *out_a = y[0];
    *out_b = y[1];
}

/* -------------------------------------------------------------------------------------------------------- looks */

/* Reads the elements in order, after what the caller's stream has. */
static inline rondo_status tt_read_on(tt_world *w, md_stream *stream, const th_tensor *x, float *values) {
    if (w->table.flags & RONDO_TENSOR_HOST_FLUSHES) RONDO__TRY(rondo_tree_flush(w->tree));
    RONDO__TRY(th_usable(x));
    if (stream->native) RONDO__TRY(rondo_stream_synchronize(stream->native));
    md_lock(&w->device);
    md_drain(stream, stream->count);
    md_unlock(&w->device);
    int64_t rows = x->rank == 2 ? x->shape[0] : 1, columns = x->rank ? x->shape[x->rank - 1] : 1;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            int64_t at = (x->rank == 2 ? r * x->strides[0] : 0) + c * (x->rank ? x->strides[x->rank - 1] : 0);
            memcpy(values++, md_memory(th_data(x) + (uint64_t)at * sizeof(float)), sizeof *values);
        }
    return RONDO_OK;
}

static inline rondo_status tt_read(tt_world *w, const th_tensor *x, float *values) {
    return tt_read_on(w, w->stream, x, values);
}

/* Its elements are first, first + step, ... */
static inline void tt_ramp_at(tt_world *w, const th_tensor *x, float first, float step, const char *file, int line) {
    float values[256];
    if (!x || !x->storage || th_elements(x) > 256u) {
        rondo_test_fail(w->t, file, line, "there is no such tensor");
        return;
    }
    rondo_test_ok(w->t, tt_read(w, x, values), "reading", file, line);
    for (uint64_t i = 0; i < th_elements(x); i++)
        if (values[i] != first + (float)i * step)
            rondo_test_fail(w->t, file, line, "element %llu is %g, not %g", (unsigned long long)i, (double)values[i],
                            (double)(first + (float)i * step));
}
#define tt_ramp(w, x, first, step) tt_ramp_at(w, x, first, step, __FILE__, __LINE__)

/* It cannot be used any more, and the failure says so. */
static inline void tt_stale_at(tt_world *w, const th_tensor *x, const char *part, const char *file, int line) {
    float values[256];
    rondo_test_code(w->t, tt_read(w, x, values), RONDO_CODE_STALE, part, "reading", file, line);
}
#define tt_stale(w, x, part) tt_stale_at(w, x, part, __FILE__, __LINE__)

static inline rondo_tree_info tt_info(tt_world *w) {
    rondo_tree_info info = RONDO_TREE_INFO_INIT;
    T_OK(w->t, rondo_tree_get_info(w->tree, &info));
    return info;
}

static inline rondo_tree_function_info tt_function(tt_world *w, uint32_t id) {
    rondo_tree_function_info info = RONDO_TREE_FUNCTION_INFO_INIT;
    T_OK(w->t, rondo_tree_get_function_info(w->tree, id, &info));
    return info;
}

static inline uint64_t tt_reason(tt_world *w, uint32_t id, rondo_tree_reason reason) {
    return tt_function(w, id).reasons[reason];
}

/* Live blocks of the device, but for its cell of random numbers. */
static inline uint64_t tt_blocks(tt_world *w) {
    return md_live(&w->device, UINT64_MAX, NULL) - (w->host.cell != w->host.own_cell);
}

/* Inputs that move are bound, not copied. */
static inline bool tt_binds(const tt_world *w) { return (w->ops.flags & RONDO_GRAPH_OPS_REBIND) != 0; }

/* Live blocks of the tree's pool. */
static inline uint64_t tt_live(tt_world *w) { return md_live(&w->device, tt_info(w).pool.user, NULL); }

/* Warm-ups, recordings, replays and direct calls so far, of all functions. */
static inline void tt_counts_at(tt_world *w, uint64_t warmups, uint64_t records, uint64_t replays, uint64_t directs,
                                const char *file, int line) {
    rondo_tree_info i = tt_info(w);
    if (i.warmups != warmups || i.records != records || i.replays != replays || i.directs != directs)
        rondo_test_fail(w->t, file, line,
                        "%llu warm-ups, %llu recordings, %llu replays, %llu direct calls; not %llu, "
                        "%llu, %llu, %llu",
                        (unsigned long long)i.warmups, (unsigned long long)i.records, (unsigned long long)i.replays,
                        (unsigned long long)i.directs, (unsigned long long)warmups, (unsigned long long)records,
                        (unsigned long long)replays, (unsigned long long)directs);
}
#define tt_counts(w, warmups, records, replays, directs) \
    tt_counts_at(w, warmups, records, replays, directs, __FILE__, __LINE__)

typedef struct tt_text {
    char data[16384];
    size_t size;
} tt_text;

static inline int32_t tt_write(void *user, const char *data, size_t size) {
    tt_text *text = user;
    if (text->size + size >= sizeof text->data) return 1;
    memcpy(text->data + text->size, data, size);
    text->size += size;
    text->data[text->size] = '\0';
    return 0;
}

static inline void tt_report(tt_world *w, bool json, tt_text *out_text) {
    *out_text = (tt_text){.size = 0};
    T_OK(w->t, rondo_tree_report(w->tree, json, tt_write, out_text));
}

#endif
