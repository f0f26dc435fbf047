/* SPDX-License-Identifier: Apache-2.0
 *
 * Trees over tables that lack what is optional or can do more, trees by their keys, calls that are wrong, random numbers,
 * and sequences that are sealed. */
#include "tree/tree_testing.h"

#define INC                                                                                 \
    {                                                                                       \
        .name = "inc", .inputs = 1, .outputs = 1, .steps = { P_ADDS(1, 0, 1), P_RETURN(1) } \
    }
#define DOUBLE                                                                                 \
    {                                                                                          \
        .name = "double", .inputs = 1, .outputs = 1, .steps = { P_MULS(1, 0, 2), P_RETURN(1) } \
    }

/* f and g behind each other, with warm-up, recording, replay, checkpoint and a step that is marked. */
static void walk(tt_world *w, uint32_t inc, uint32_t twice) {
    for (int i = 0; i < 8; i++) {
        tt_invocation(w);
        if (i == 5) rondo_tree_mark_step(w->tree);
        th_tensor *y = tt_call(w, inc, tt_new(w, (float)i)), *z = tt_call(w, i % 3 ? twice : inc, tt_keep(w, y));
        if (i % 3) tt_ramp(w, z, 2 * (float)i + 2, 2);
        else tt_ramp(w, z, (float)i + 2, 1);
        tt_ramp(w, y, (float)i + 1, 1);
        tt_drop(w, y);
        tt_drop(w, z);
    }
    T_EQ(w->t, tt_info(w).directs, 0);
    T_TRUE(w->t, tt_info(w).replays >= 5);
}

/* ----------------------------------------------------------------------------------------------------- tables */

static void test_without_optional_members(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    tt_prepare(t, &w, kind);
    w.ops.caching_allocator_enabled = NULL;
    w.ops.pool_bytes = NULL;
    w.ops.trim_pool = NULL;
    w.ops.memory_snapshot = NULL;
    w.ops.prepare_for_capture = NULL;
    w.ops.declare_slot = NULL;
    w.ops.bind = NULL;
    w.table.check = NULL;
    w.table.copy_inputs = NULL;
    w.table.evacuate = NULL;
    w.table.enter = NULL;
    w.table.leave = NULL;
    w.options.byte_limit = 1000; /* nobody can say how many they are */
    w.options.recording_limit = 3;
    tt_start(&w);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g);
    walk(&w, inc, twice);
    T_EQ(t, tt_info(&w).pool_reserved, 0);
    T_EQ(t, w.host.entered, 0);
    if (!w.device.native) T_TRUE(t, w.faults.calls[TT_FAULT_COPY] > 0);
}

static void test_with_optional_members(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g);
    walk(&w, inc, twice);
    rondo_tree_info info = tt_info(&w);
    T_EQ(t, info.pool_reserved, md_segments(&w.device, info.pool.user) * MD_SEGMENT);
    T_EQ(t, w.host.entered, info.warmups + info.records);
    T_EQ(t, w.device.prepared, info.warmups + info.records);
    T_EQ(t, w.faults.calls[TT_FAULT_COPY], 0);
    T_TRUE(t, info.host_bytes > 0);
}

/* Every member that is not optional is asked for by name. */
static void test_missing_members(rondo_test *t, tt_kind kind) {
    tt_world w;
    rondo_tree *tree = NULL;
    tt_prepare(t, &w, kind);
    rondo_graph_ops ops = w.ops;
    rondo_tensor_host table = w.table;
#define LACKS(part, member)                                                                    \
    do {                                                                                       \
        w.part.member = NULL;                                                                  \
        T_FAILS(t, rondo_tree_open(w.instance, &w.options, &tree), INVALID_ARGUMENT, #member); \
        T_TRUE(t, !tree);                                                                      \
        w.ops = ops;                                                                           \
        w.table = table;                                                                       \
    } while (0)
    LACKS(ops, is_graph_capture_supported);
    LACKS(ops, graph_pool_handle);
    LACKS(ops, begin_allocate_current_thread_to_pool);
    LACKS(ops, end_allocate_to_pool);
    LACKS(ops, release_pool);
    LACKS(ops, get_checkpoint_state);
    LACKS(ops, release_checkpoint_state);
    LACKS(ops, set_checkpoint_pool_state);
    LACKS(ops, check_pool_live_allocations);
    LACKS(ops, raw_delete);
    LACKS(ops, create_stream);
    LACKS(ops, release_stream);
    LACKS(ops, stream_wait);
    LACKS(ops, synchronize);
    LACKS(ops, create_graph);
    LACKS(ops, capture_begin);
    LACKS(ops, capture_end);
    LACKS(ops, abort);
    LACKS(ops, replay);
    LACKS(ops, release_graph);
    LACKS(ops, copy);
    LACKS(ops, bind);
    LACKS(table, facts);
    LACKS(table, describe);
    LACKS(table, run);
    LACKS(table, retain);
    LACKS(table, release);
    LACKS(table, make_input);
    LACKS(table, keep);
    LACKS(table, drop);
    LACKS(table, make_outputs);
    LACKS(table, own);
    if (kind == TT_WEAK) {
        LACKS(table, watch);
        LACKS(table, alive);
        LACKS(table, unwatch);
    } else {
        LACKS(table, adopt);
    }
}

static void test_device_without_capture(rondo_test *t, tt_kind kind) {
    tt_world w;
    rondo_tree *tree = NULL;
    tt_prepare(t, &w, kind);
    w.device.no_capture = true;
    T_FAILS(t, rondo_tree_open(w.instance, &w.options, &tree), UNSUPPORTED, "model");
    w.device.no_capture = false;
    w.device.uncached = true;
    T_FAILS(t, rondo_tree_open(w.instance, &w.options, &tree), UNSUPPORTED,
            "cudagraph capture requires the caching allocator; current allocator is uncached");
    T_TRUE(t, !tree);
}

/* Inputs that move are bound, not copied. */
static void test_bound_inputs(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {
        .name = "f", .inputs = 2, .outputs = 2, .steps = {P_ADD(2, 0, 1), P_VIEW(3, 0, 1), P_RETURN(2), P_RETURN(3)}};
    th_tensor *held[16];
    tt_prepare(t, &w, kind);
    w.ops.flags |= RONDO_GRAPH_OPS_REBIND;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 8; i++) {
        th_tensor *a = held[2 * i] = tt_new(&w, (float)i), *b = held[2 * i + 1] = tt_new(&w, 100), *y[2];
        bool turned = i == 5, same = i == 6; /* in each other's place; one tensor for both */
        tt_invocation(&w);
        th_tensor *in[2] = {tt_keep(&w, turned ? b : a), tt_keep(&w, turned || same ? a : b)};
        T_OK(t, tt_try(&w, id, 2, in, 2, y));
        tt_ramp(&w, y[0], same ? 2 * (float)i : (float)i + 100, 2);
        tt_ramp(&w, y[1], turned ? 101 : (float)i + 1, 1);
        T_TRUE(t, y[1]->storage == (turned ? b : a)->storage);
        tt_drop(&w, y[0]);
        tt_drop(&w, y[1]);
    }
    T_EQ(t, tt_function(&w, id).copies, 0);
    tt_counts(&w, 1, 1, 6, 0);
    if (!w.device.native) T_TRUE(t, w.faults.calls[TT_FAULT_BIND] > 0);
}

/* An input that lies in the middle of its storage, one that lies over another, and one that is a part of a bound one. */
static void test_bound_inputs_that_overlap(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f", .inputs = 2, .outputs = 1, .steps = {P_ADD(2, 0, 1), P_RETURN(2)}};
    tt_prepare(t, &w, kind);
    w.ops.flags |= RONDO_GRAPH_OPS_REBIND;
    tt_start(&w);
    for (int first = 0; first < 3; first++) { /* what is recorded */
        uint32_t id = tt_add(&w, &f);
        for (int i = 0; i < 7; i++) {
            int form = i < 2 ? first : i % 3;
            th_tensor *whole = tt_new_of(&w, 0, 5, (float)i), *a, *b;
            if (form == 0) a = tt_eager(&w, (th_step)P_VIEW(1, 0, 1), whole), b = tt_new(&w, 0);
            else if (form == 1) a = tt_eager(&w, (th_step)P_VIEW(1, 0, 1), whole), b = tt_keep(&w, a);
            else a = tt_new(&w, 0), b = tt_eager(&w, (th_step)P_VIEW(1, 0, 1), whole);
            tt_invocation(&w);
            th_tensor *y = tt_call2(&w, id, a, b);
            if (form == 1) tt_ramp(&w, y, 2 * (float)i + 2, 2);
            else tt_ramp(&w, y, (float)i + 1, 2);
            tt_drop(&w, y);
            tt_drop(&w, whole);
        }
        T_EQ(t, tt_function(&w, id).directs, 0);
        w.model_count = 0; /* one model, three functions */
    }
}

static rondo_status fixed_end(void *user, void *graph, void *stream, rondo_tree_graph_facts *out_facts) {
    RONDO__TRY(md_capture_end(user, graph, stream, out_facts));
    out_facts->fixed = 1;
    return RONDO_OK;
}

/* Graphs that turn out not to be bindable: their inputs are copied from the next recording on. */
static void test_graphs_that_cannot_be_bound(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_tensor *held[8];
    tt_prepare(t, &w, kind);
    w.ops.flags |= RONDO_GRAPH_OPS_REBIND;
    w.ops.capture_end = fixed_end;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 8; i++) {
        held[i] = tt_new(&w, (float)i);
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_keep(&w, held[i]));
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
    }
    tt_counts(&w, 1, 2, 5, 0);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_BIND_FIXED), 1);
    T_EQ(t, w.faults.calls[TT_FAULT_BIND], 0);
}

/* ------------------------------------------------------------------------------------------------ trees, calls */

static void test_trees_by_key(rondo_test *t, tt_kind kind) {
    tt_world w;
    rondo_tree *same = NULL, *other = NULL;
    th_model f = INC;
    tt_open(t, &w, kind);
    T_OK(t, rondo_tree_open(w.instance, &w.options, &same));
    T_TRUE(t, same == w.tree);
    w.options.context = 7;
    T_OK(t, rondo_tree_open(w.instance, &w.options, &other));
    T_TRUE(t, other != w.tree);
    rondo_tree_release(other);
    w.options.index = 1;
    T_OK(t, rondo_tree_open(w.instance, &w.options, &other));
    T_TRUE(t, other != w.tree);
    rondo_tree_release(other);
    rondo_tree_release(same);
    uint32_t id = tt_add(&w, &f); /* it is still there */
    th_tensor *y = tt_call(&w, id, tt_new(&w, 1));
    tt_ramp(&w, y, 2, 1);
}

/* Two trees of one device have nothing of each other. */
static void test_two_trees(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    rondo_tree *trees[2];
    uint32_t ids[2];
    tt_open(t, &w, kind);
    trees[0] = w.tree;
    ids[0] = tt_add(&w, &f);
    w.options.context = 1;
    T_OK(t, rondo_tree_open(w.instance, &w.options, &trees[1]));
    T_DEFER(t, rondo_tree_release, trees[1]);
    w.tree = trees[1];
    ids[1] = tt_add(&w, &g);
    th_tensor *y[2] = {NULL, NULL};
    for (int i = 0; i < 5; i++) {
        tt_invocation(&w);
        for (int j = 0; j < 2; j++) {
            tt_drop(&w, y[j]);
            w.tree = trees[j];
            y[j] = tt_call(&w, ids[j], j ? tt_keep(&w, y[0]) : tt_new(&w, (float)i));
        }
        tt_ramp(&w, y[0], (float)i + 1, 1);
        tt_ramp(&w, y[1], 2 * (float)i + 2, 2);
    }
    for (int j = 0; j < 2; j++) {
        w.tree = trees[j];
        tt_counts(&w, 1, 1, 3, 0);
        tt_drop(&w, y[j]);
    }
    w.tree = trees[0];
}

/* Wrong calls are refused, take the inputs all the same, and change nothing. */
static void test_wrong_calls(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_tensor *out[2];
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    T_FAILS(t, tt_try(&w, id + 1, TT_IN(tt_new(&w, 1)), 1, out), NOT_FOUND, NULL);
    T_FAILS(t, tt_try(&w, id, TT_IN(tt_new(&w, 1), tt_new(&w, 2)), 1, out), INVALID_ARGUMENT, "inc");
    T_FAILS(t, tt_try(&w, id, TT_IN(tt_new(&w, 1)), 2, out), INVALID_ARGUMENT, "inc");
    T_EQ(t, w.host.tensor_count, 0);
    T_FAILS(t, rondo_tree_run(NULL, id, w.stream, NULL, 0, NULL, 0), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_tree_reset(NULL), INVALID_ARGUMENT, NULL);
    rondo_tree_release(NULL);
    rondo_tree_mark_step(NULL);
    rondo_tree_set_running_backward(NULL);
    rondo_tree_function wrong = RONDO_TREE_FUNCTION_INIT;
    uint32_t one = 1, number = 0;
    wrong.input_count = wrong.output_count = 1;
    wrong.static_inputs = &one;
    wrong.static_count = 1;
    T_FAILS(t, rondo_tree_add_function(w.tree, &wrong, &number), INVALID_ARGUMENT, "static");
    wrong.static_count = 0;
    wrong.mutated_inputs = &one;
    wrong.mutated_count = 1;
    T_FAILS(t, rondo_tree_add_function(w.tree, &wrong, &number), INVALID_ARGUMENT, "mutated");
    wrong.mutated_count = 0;
    wrong.owned_outputs = &one;
    wrong.owned_count = 1;
    T_FAILS(t, rondo_tree_add_function(w.tree, &wrong, &number), INVALID_ARGUMENT, "owned");
    wrong.owned_count = 0;
    wrong.mode = 3;
    T_FAILS(t, rondo_tree_add_function(w.tree, &wrong, &number), INVALID_ARGUMENT, "mode");
    tt_counts(&w, 0, 0, 0, 0);
    T_EQ(t, tt_info(&w).functions, 1);
    th_tensor *y = tt_call(&w, id, tt_new(&w, 1));
    tt_ramp(&w, y, 2, 1);
}

static void test_names_of_reasons(rondo_test *t, tt_kind kind) {
    (void)kind;
    T_STR(t, rondo_tree_reason_name(RONDO_TREE_REASON_STATIC_MOVED), "STATIC_MOVED");
    T_STR(t, rondo_tree_reason_text(RONDO_TREE_REASON_MANAGED_MOVED), "cudagraph managed tensor data pointer changed");
    T_STR(t, rondo_tree_reason_name(RONDO_TREE_REASON_COUNT), "unknown");
    T_STR(t, rondo_tree_reason_text(-1), "unknown");
    for (rondo_tree_reason i = 0; i < RONDO_TREE_REASON_COUNT; i++) {
        T_TRUE(t, *rondo_tree_reason_text(i) != 0);
        for (rondo_tree_reason j = 0; j < i; j++)
            T_TRUE(t, strcmp(rondo_tree_reason_name(i), rondo_tree_reason_name(j)) != 0);
    }
}

/* The model that is given with a function goes with it. */
static void count_release(void *model) { ((th_model *)model)->released++; }

static void test_models_are_released(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = INC;
    rondo_tree_function function = RONDO_TREE_FUNCTION_INIT;
    uint32_t id = 0, other = 0;
    tt_open(t, &w, kind);
    function.name = "inc";
    function.model = &f;
    function.release_model = count_release;
    function.input_count = function.output_count = 1;
    T_OK(t, rondo_tree_add_function(w.tree, &function, &id));
    function.model = &g;
    T_OK(t, rondo_tree_add_function(w.tree, &function, &other));
    th_tensor *y = tt_call(&w, id, tt_new(&w, 1));
    T_OK(t, rondo_tree_remove_function(w.tree, id)); /* its output is alive: the path needs it */
    tt_ramp(&w, y, 2, 1);
    tt_drop(&w, y);
    tt_invocation(&w);
    tt_drop(&w, tt_call(&w, other, tt_new(&w, 1)));
    T_EQ(t, f.released, 1);
    T_EQ(t, g.released, 0);
    rondo_tree_release(w.tree);
    w.tree = NULL;
    T_EQ(t, f.released, 1);
    T_EQ(t, g.released, 1);
}

/* ---------------------------------------------------------------------------------------------- random numbers */

/* Draws go on from call to call, in every phase, and a seed brings them back. The simple path has made a draw more when it
 * begins, of its warm-up, which is in its first call. */
static void random_numbers(rondo_test *t, tt_kind kind, bool simple) {
    tt_world w;
    th_model f = {.name = "f",
                  .inputs = 1,
                  .outputs = 1,
                  .steps = {P_RANDOM(1, 0), P_ADD(2, 0, 1), P_RETURN(2)},
                  .simple = simple};
    float first[7][TT_FLOATS], again[TT_FLOATS];
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *form = tt_new(&w, 0);
    w.host.cell[0] = 99;
    w.host.cell[1] = 0;
    for (int i = 0; i < 7; i++) { /* the framework's own */
        th_tensor *y = tt_eager(&w, (th_step)P_RANDOM(1, 0), form);
        T_OK(t, tt_read(&w, y, first[i]));
        for (int j = 0; j < i; j++) T_TRUE(t, memcmp(first[i], first[j], sizeof again) != 0);
        tt_drop(&w, y);
    }
    for (int round = 0; round < 2; round++) {
        w.host.cell[1] = 0;
        for (int i = 0; i < 6; i++) {
            const float *wanted = first[i + (simple && !round)];
            th_tensor *zero = tt_eager(&w, (th_step)P_MULS(1, 0, 0), form);
            tt_invocation(&w);
            th_tensor *y = tt_call(&w, id, zero);
            T_OK(t, tt_read(&w, y, again));
            for (int j = 0; j < TT_FLOATS; j++) T_NEAR(t, again[j], wanted[j], 0);
            tt_drop(&w, y);
        }
    }
    if (!simple) tt_counts(&w, 1, 1, 10, 0);
    T_EQ(t, tt_info(&w).directs, 0);
    T_EQ(t, f.runs[RONDO_TREE_RECORD], 1);
}

static void test_random_numbers(rondo_test *t, tt_kind kind) { random_numbers(t, kind, false); }
static void test_random_numbers_of_the_simple_path(rondo_test *t, tt_kind kind) { random_numbers(t, kind, true); }

/* ---------------------------------------------------------------------------------------------------- sequences */

/* One training step of f and g, its input at one place, as a loader with a buffer does. */
static void sealed_steps(tt_world *w, uint32_t inc, uint32_t twice, th_tensor *x, int count, float *value) {
    for (int i = 0; i < count; i++) {
        tt_invocation(w);
        th_tensor *y = tt_call(w, inc, tt_keep(w, x));
        th_tensor *z = tt_call(w, twice, y), *u = tt_call(w, inc, z);
        tt_ramp(w, u, 2 * *value + 3, 2);
        tt_drop(w, u);
        tt_eager_add(w, x, 1);
        ++*value;
    }
}

static void sealed(rondo_test *t, tt_kind kind, bool flushes) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    float value = 0;
    f.statics[f.static_count++] = 0;
    tt_prepare(t, &w, kind);
    w.options.seal_after = 3;
    if (flushes) {
        w.table.flags |= RONDO_TENSOR_HOST_FLUSHES;
        w.ops.flags |= RONDO_GRAPH_OPS_CHILD_GRAPHS;
    }
    tt_start(&w);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g);
    th_tensor *x = tt_new(&w, 0);
    sealed_steps(&w, inc, twice, x, 20, &value);
    T_EQ(t, tt_info(&w).sealed, 3 * 14); /* 2 steps before the first replays, which are repeated 3 times */
    uint64_t launched = w.faults.calls[TT_FAULT_REPLAY];
    sealed_steps(&w, inc, twice, x, 10, &value);
    launched = w.faults.calls[TT_FAULT_REPLAY] - launched;
    if (!w.device.native) T_EQ(t, launched, flushes ? 10 : 30);
    /* Something else in between: the same function, another input. */
    tt_invocation(&w);
    th_tensor *other = tt_new(&w, 100), *y = tt_call(&w, inc, tt_keep(&w, other));
    tt_ramp(&w, y, 101, 1);
    tt_drop(&w, y);
    tt_drop(&w, other);
    sealed_steps(&w, inc, twice, x, 20, &value);
    /* A sequence that stops in the middle, is read there, and goes on. */
    tt_invocation(&w);
    y = tt_call(&w, inc, tt_keep(&w, x));
    tt_ramp(&w, y, value + 1, 1);
    th_tensor *z = tt_call(&w, twice, tt_keep(&w, y));
    tt_ramp(&w, z, 2 * value + 2, 2);
    tt_ramp(&w, y, value + 1, 1);
    tt_drop(&w, y);
    tt_drop(&w, z);
    sealed_steps(&w, inc, twice, x, 20, &value);
    T_EQ(t, tt_info(&w).directs, 0);
}

static void test_sealed_sequence(rondo_test *t, tt_kind kind) { sealed(t, kind, false); }
static void test_sealed_sequence_as_one_launch(rondo_test *t, tt_kind kind) { sealed(t, kind, true); }

/* In a sealed sequence an output that was dead at the recording, and whose memory the next one writes, is kept once. */
static void test_sealed_sequence_and_what_lives(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f",
                  .inputs = 1,
                  .outputs = 2,
                  .steps = {P_ADDS(1, 0, 1), P_MULS(2, 0, 2), P_RETURN(1), P_RETURN(2)},
                  .statics = {0},
                  .static_count = 1};
    th_model g = INC;
    tt_prepare(t, &w, kind);
    w.options.seal_after = 2;
    tt_start(&w);
    uint32_t two = tt_add(&w, &f), inc = tt_add(&w, &g);
    th_tensor *x = tt_new(&w, 5);
    for (int i = 0; i < 40; i++) {
        bool keep = i % 13 == 12;
        th_tensor *a, *b;
        tt_invocation(&w);
        tt_pair(&w, two, tt_keep(&w, x), &a, &b);
        if (!keep) tt_drop(&w, b);
        th_tensor *z = tt_call(&w, inc, tt_keep(&w, a));
        tt_ramp(&w, z, 7, 1);
        tt_ramp(&w, a, 6, 1);
        if (keep) {
            tt_ramp(&w, b, 10, 2);
            tt_drop(&w, b);
        }
        tt_drop(&w, a);
        tt_drop(&w, z);
    }
    T_TRUE(t, tt_info(&w).sealed >= 20);
    T_EQ(t, tt_function(&w, inc).recordings, 2);
}

/* Outputs of a sealed sequence that are kept are stale in the next step, as ever. */
static void test_sealed_sequence_overwrites(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_tensor *before = NULL;
    f.statics[f.static_count++] = 0;
    tt_prepare(t, &w, kind);
    w.options.seal_after = 2;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    th_tensor *x = tt_new(&w, 5);
    for (int i = 0; i < 20; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_keep(&w, x));
        if (before) tt_stale(&w, before, "overwritten by a subsequent run");
        tt_drop(&w, before);
        tt_ramp(&w, y, 6, 1);
        before = y;
    }
    tt_drop(&w, before);
    T_TRUE(t, tt_info(&w).sealed >= 10);
}

#define TESTS(EACH, MODEL)                       \
    EACH(test_without_optional_members)          \
    MODEL(test_with_optional_members)            \
    MODEL(test_missing_members)                  \
    MODEL(test_device_without_capture)           \
    EACH(test_bound_inputs)                      \
    EACH(test_bound_inputs_that_overlap)         \
    MODEL(test_graphs_that_cannot_be_bound)      \
    MODEL(test_trees_by_key)                     \
    MODEL(test_two_trees)                        \
    EACH(test_wrong_calls)                       \
    EACH(test_names_of_reasons)                  \
    EACH(test_models_are_released)               \
    EACH(test_random_numbers)                    \
    EACH(test_random_numbers_of_the_simple_path) \
    EACH(test_sealed_sequence)                   \
    EACH(test_sealed_sequence_as_one_launch)     \
    EACH(test_sealed_sequence_and_what_lives)    \
    EACH(test_sealed_sequence_overwrites)

TT_MAIN_EACH(TESTS)
