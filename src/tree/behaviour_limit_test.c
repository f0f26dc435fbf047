/* SPDX-License-Identifier: Apache-2.0
 *
 * What is not recorded, and why: limits, costs, functions that cannot be captured, inputs that cannot be in a recording.
 * The results are right all the same. */
#include "tree/tree_testing.h"

#define INC                                                                                 \
    {                                                                                       \
        .name = "inc", .inputs = 1, .outputs = 1, .steps = { P_ADDS(1, 0, 1), P_RETURN(1) } \
    }
#define DOUBLE                                                                                 \
    {                                                                                          \
        .name = "double", .inputs = 1, .outputs = 1, .steps = { P_MULS(1, 0, 2), P_RETURN(1) } \
    }
#define SHIFT                                                                                               \
    {                                                                                                       \
        .name = "shift", .inputs = 2, .outputs = 1, .steps = {P_ADD(2, 0, 1), P_RETURN(2)}, .statics = {1}, \
        .static_count = 1                                                                                   \
    }

/* One step of a function of one input and one output. */
static void step_of(tt_world *w, uint32_t id, int64_t size, float x, float first, float slope) {
    tt_invocation(w);
    th_tensor *y = tt_call(w, id, tt_new_of(w, 0, size, x));
    tt_ramp(w, y, first, slope);
    tt_drop(w, y);
}

static void shift(tt_world *w, uint32_t id, float x, th_tensor *parameter, float first) {
    tt_invocation(w);
    th_tensor *y = tt_call2(w, id, tt_new(w, x), tt_keep(w, parameter));
    tt_ramp(w, y, first, 2);
    tt_drop(w, y);
}

/* ----------------------------------------------------------------------------------------------------- limits */

static void test_rerecord_limit(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = SHIFT;
    tt_prepare(t, &w, kind);
    w.options.rerecord_limit = 0;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    th_tensor *a = tt_new(&w, 10), *b = tt_new(&w, 20);
    for (int i = 0; i < 3; i++) shift(&w, id, 1, a, 11);
    for (int i = 0; i < 3; i++) shift(&w, id, 2, b, 22);
    shift(&w, id, 3, a, 13);
    tt_counts(&w, 1, 1, 2, 3);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_RERECORD_LIMIT), 3);
    T_EQ(t, w.warnings, 1); /* only once */
    T_TRUE(t, strstr(w.warning, "shift") && strstr(w.warning, "static input data pointer changed"));
}

static void test_rerecord_limit_is_not_reached(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = SHIFT;
    tt_prepare(t, &w, kind);
    w.options.rerecord_limit = 1;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    th_tensor *a = tt_new(&w, 10), *b = tt_new(&w, 20), *c = tt_new(&w, 30);
    for (int i = 0; i < 3; i++) shift(&w, id, 1, a, 11);
    for (int i = 0; i < 3; i++) shift(&w, id, 2, b, 22);
    tt_counts(&w, 1, 2, 3, 0);
    T_EQ(t, w.warnings, 0);
    shift(&w, id, 2, c, 32); /* now it is */
    tt_counts(&w, 1, 2, 3, 1);
    T_EQ(t, w.warnings, 1);
}

/* The limit is one a parent: what was an output of the path and moves counts as well. */
static void test_rerecord_limit_for_outputs_of_the_path(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    tt_prepare(t, &w, kind);
    w.options.rerecord_limit = 0;
    tt_start(&w);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g);
    for (int i = 0; i < 6; i++) {
        bool other = i >= 3;
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i));
        th_tensor *z = tt_call(&w, twice, other ? tt_eager(&w, (th_step)P_ADDS(1, 0, 5), y) : tt_keep(&w, y));
        tt_ramp(&w, z, 2 * (float)(i + 1 + (other ? 5 : 0)), 2);
        tt_drop(&w, y);
        tt_drop(&w, z);
    }
    tt_counts(&w, 2, 2, 5, 3);
    T_EQ(t, tt_reason(&w, twice, RONDO_TREE_REASON_RERECORD_LIMIT), 3);
    T_TRUE(t, strstr(w.warning, "double") != NULL);
    T_EQ(t, tt_function(&w, inc).directs, 0);
}

static void test_many_sizes_warn_once(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_prepare(t, &w, kind);
    w.options.size_warning = 3;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int64_t size = 1; size <= 8; size++) {
        for (int i = 0; i < 3; i++) step_of(&w, id, size, 1, 2, 1);
        T_EQ(t, w.warnings, size > 3);
    }
    T_TRUE(t, strstr(w.warning, "inc") && strstr(w.warning, "sizes"));
    tt_counts(&w, 8, 8, 8, 0);
}

static void test_size_limit(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_prepare(t, &w, kind);
    w.options.size_limit = 2;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 4; i++)
        for (int64_t size = 1; size <= 4; size++) step_of(&w, id, size, 1, 2, 1);
    T_EQ(t, tt_info(&w).recordings, 2);
    T_TRUE(t, tt_reason(&w, id, RONDO_TREE_REASON_SIZE_LIMIT) >= 4);
    T_EQ(t, tt_info(&w).replays, 4);
}

/* What comes rarely is not even warmed up. */
static void test_record_after(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_prepare(t, &w, kind);
    w.options.record_after = 5;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 3; i++) step_of(&w, id, 7, 1, 2, 1);
    for (int i = 0; i < 7; i++) step_of(&w, id, 9, 1, 2, 1);
    tt_counts(&w, 1, 1, 2, 6);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_SIZE_RARE), 6);
}

/* The least recently used recording goes. */
static void test_recording_limit(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_prepare(t, &w, kind);
    w.options.recording_limit = 2;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int64_t size = 1; size <= 3; size++)
        for (int i = 0; i < 3; i++) step_of(&w, id, size, 1, 2, 1);
    T_EQ(t, tt_info(&w).recordings, 2);
    T_EQ(t, tt_info(&w).evicted, 1);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_EVICTED), 1);
    step_of(&w, id, 3, 1, 2, 1);
    step_of(&w, id, 2, 1, 2, 1);
    tt_counts(&w, 3, 3, 5, 0);
    step_of(&w, id, 1, 1, 2, 1); /* recorded again, in the place of 3 */
    step_of(&w, id, 2, 1, 2, 1);
    tt_counts(&w, 3, 4, 6, 0);
    T_EQ(t, tt_info(&w).evicted, 2);
}

/* What stands below an evicted recording cannot be reached any more: leaves go first. */
static void test_recording_limit_of_long_paths(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    tt_prepare(t, &w, kind);
    w.options.recording_limit = 3;
    tt_start(&w);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g);
    for (int i = 0; i < 30; i++) {
        int64_t size = 1 + i % 3;
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new_of(&w, 0, size, (float)i)), *z = tt_call(&w, twice, tt_keep(&w, y));
        tt_ramp(&w, z, 2 * (float)i + 2, 2);
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
        tt_drop(&w, z);
        T_TRUE(t, tt_info(&w).recordings <= 3);
    }
    T_TRUE(t, tt_info(&w).evicted > 0);
}

static void test_byte_limit(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    uint64_t most = 0;
    tt_prepare(t, &w, kind);
    w.options.byte_limit = 3 * MD_SEGMENT;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int64_t size = 1; size <= 12; size++) {
        for (int i = 0; i < 3; i++) {
            tt_invocation(&w);
            th_tensor *y = tt_call(&w, id, tt_new_of(&w, 0, size * 3000, 0));
            float last;
            T_OK(t, md_synchronize(&w.device, w.stream));
            memcpy(&last, md_memory(th_data(y) + (uint64_t)(size * 3000 - 1) * sizeof last), sizeof last);
            T_NEAR(t, last, size * 3000, 0);
            tt_drop(&w, y);
            rondo_tree_info info = tt_info(&w);
            if (info.pool_reserved > most) most = info.pool_reserved;
        }
    }
    T_TRUE(t, tt_reason(&w, id, RONDO_TREE_REASON_BYTE_LIMIT) + tt_info(&w).evicted > 0);
    /* What is over the limit is at most what the last call took. */
    T_TRUE(t, most <= 3 * MD_SEGMENT + 2 * 12 * 3000 * sizeof(float) + MD_SEGMENT);
}

/* ------------------------------------------------------------------------------------------------------ costs */

static uint64_t cost_now, cost_of_a_run;

static uint64_t cost_clock(void *user) {
    (void)user;
    return cost_now += 10;
}

static rondo_status cost_run(void *user, const rondo_tree_run_context *context, void **inputs, uint32_t input_count,
                             void **outputs, uint32_t output_count) {
    cost_now += cost_of_a_run;
    return th_run(user, context, inputs, input_count, outputs, output_count);
}

static void cost(rondo_test *t, tt_kind kind, uint64_t of_a_run, bool graphed) {
    tt_world w;
    th_model f = INC;
    tt_prepare(t, &w, kind);
    cost_now = 0;
    cost_of_a_run = of_a_run;
    w.options.clock = cost_clock;
    w.options.cost_samples = 4;
    w.table.run = cost_run;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 10; i++) step_of(&w, id, 4, (float)i, (float)i + 1, 1);
    if (graphed) tt_counts(&w, 1, 1, 8, 0);
    else tt_counts(&w, 1, 1, 4, 4);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_NOT_FASTER), graphed ? 0 : 4);
    T_EQ(t, tt_function(&w, id).replay_ns, 10);
    T_EQ(t, tt_function(&w, id).warmup_ns, 10 + of_a_run);
}

static void test_cost_of_a_fast_model(rondo_test *t, tt_kind kind) { cost(t, kind, 0, false); }
static void test_cost_of_a_slow_model(rondo_test *t, tt_kind kind) { cost(t, kind, 100, true); }

/* --------------------------------------------------------------------------------------------- cannot be captured */

/* A model that fails in a recording is called directly: its values are right, and others do not notice. */
static void rejected(rondo_test *t, tt_kind kind, th_step bad, const char *why) {
    tt_world w;
    th_model f = INC, h = DOUBLE;
    th_model g = {.name = "bad",
                  .inputs = 2,
                  .outputs = 2,
                  .steps = {P_ADD(2, 0, 1), P_HOST(4, 5), bad, P_ADDS(3, 2, 1), P_RETURN(2), P_RETURN(3)}};
    if (bad.op == TH_HOST) g.steps[5] = (th_step)P_RETURN(4);
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), refused = tt_add(&w, &g), twice = tt_add(&w, &h);
    for (int i = 0; i < 5; i++) {
        th_tensor *out[2];
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i)), *x = tt_new(&w, 7);
        T_OK(t, tt_try(&w, refused, TT_IN(tt_keep(&w, y), tt_keep(&w, x)), 2, out));
        tt_ramp(&w, out[0], (float)i + 8, 2);
        if (bad.op != TH_HOST) tt_ramp(&w, out[1], (float)i + 9, 2);
        tt_ramp(&w, x, 7, 1);
        th_tensor *z = tt_call(&w, twice, tt_keep(&w, y));
        tt_ramp(&w, z, 2 * (float)i + 2, 2);
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, x);
        tt_drop(&w, y);
        tt_drop(&w, z);
        tt_drop(&w, out[0]);
        tt_drop(&w, out[1]);
    }
    T_EQ(t, tt_function(&w, refused).stopped, RONDO_TREE_REASON_REJECTED);
    T_EQ(t, tt_reason(&w, refused, RONDO_TREE_REASON_REJECTED), 4);
    T_EQ(t, tt_function(&w, refused).recordings, 0);
    T_EQ(t, w.warnings, 1);
    T_TRUE(t, strstr(w.warning, "bad") && (w.device.native || strstr(w.warning, why)));
    tt_counts(&w, 3, 2, 6, 4);
    T_EQ(t, g.runs[RONDO_TREE_DIRECT], 4);
}

static void test_host_reads_a_value(rondo_test *t, tt_kind kind) {
    rejected(t, kind, (th_step)P_SYNC(2), "a stream that captures cannot be waited for");
}
static void test_capture_is_broken_silently(rondo_test *t, tt_kind kind) {
    rejected(t, kind, (th_step)P_BREAK(), "the capture was invalid");
}
static void test_model_fails_when_recorded(rondo_test *t, tt_kind kind) {
    rejected(t, kind, (th_step)P_FAIL(1 << RONDO_TREE_RECORD), "fails on purpose");
}
static void test_output_in_host_memory(rondo_test *t, tt_kind kind) {
    rejected(t, kind, (th_step)P_HOST(4, 5), "host memory");
}

/* The inputs of a recording that failed were the caller's last references. */
static void test_rejected_with_consumed_inputs(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {
        .name = "f", .inputs = 1, .outputs = 2, .steps = {P_ADDS(1, 0, 1), P_VIEW(2, 1, 1), P_RETURN(1), P_RETURN(2)}};
    th_model g = {.name = "g",
                  .inputs = 2,
                  .outputs = 1,
                  .steps = {P_ADD(2, 1, 1), P_DROP(0), P_DROP(1), P_ADDS(3, 2, 1), P_SYNC(3), P_RETURN(3)}};
    tt_open(t, &w, kind);
    uint32_t two = tt_add(&w, &f), bad = tt_add(&w, &g);
    for (int i = 0; i < 5; i++) {
        th_tensor *a, *b;
        tt_invocation(&w);
        tt_pair(&w, two, tt_new(&w, (float)i), &a, &b);
        th_tensor *z = tt_call2(&w, bad, a, b);
        tt_ramp(&w, z, 2 * (float)i + 5, 2);
        tt_drop(&w, z);
    }
    T_EQ(t, tt_function(&w, bad).stopped, RONDO_TREE_REASON_REJECTED);
}

/* A model that fails whatever one does gives its own failure, each time, and nothing is left of it. */
static void test_model_that_always_fails(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_model g = {.name = "bad", .inputs = 1, .outputs = 1, .steps = {P_ADDS(1, 0, 1), P_FAIL(15), P_RETURN(1)}};
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), bad = tt_add(&w, &g);
    for (int i = 0; i < 5; i++) {
        th_tensor *z = NULL;
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i));
        T_FAILS(t, tt_try(&w, bad, TT_IN(tt_keep(&w, y)), 1, &z), KERNEL_FAILED, "bad fails on purpose");
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
    }
    T_EQ(t, tt_function(&w, inc).recordings, 1);
    T_TRUE(t, tt_function(&w, inc).replays >= 2);
}

/* ------------------------------------------------------------------------------------------- memory that stays */

/* Somebody keeps a tensor that the model made: the values are right, its memory is never used again, the function is
 * stopped, and the others start anew in another pool. */
static void test_untracked_memory(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_model g = {.name = "hoarder",
                  .inputs = 1,
                  .outputs = 1,
                  .steps = {P_MULS(1, 0, 3), P_KEEP(1), P_ADDS(2, 1, 1), P_RETURN(2)}};
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), hoarder = tt_add(&w, &g);
    for (int i = 0; i < 3; i++) {
        tt_invocation(&w);
        tt_drop(&w, tt_call(&w, inc, tt_new(&w, 1)));
    }
    rondo_pool_id pool = tt_info(&w).pool;
    tt_invocation(&w);
    th_tensor *y = tt_call(&w, inc, tt_new(&w, 1)), *z = tt_call(&w, hoarder, tt_keep(&w, y));
    tt_ramp(&w, z, 7, 3);
    T_EQ(t, tt_function(&w, hoarder).stopped, RONDO_TREE_REASON_UNTRACKED);
    T_TRUE(t, tt_reason(&w, hoarder, RONDO_TREE_REASON_UNTRACKED) >= 1);
    T_TRUE(t, tt_info(&w).pool.user != pool.user);
    if (!w.device.native) T_TRUE(t, w.device.pools[pool.user].over);
    T_TRUE(t, strstr(w.warning, "hoarder") != NULL);
    for (int i = 0; i < 5; i++) {
        tt_invocation(&w);
        th_tensor *u = tt_call(&w, inc, tt_new(&w, (float)i)), *v = tt_call(&w, hoarder, tt_keep(&w, u));
        tt_ramp(&w, v, 3 * (float)i + 4, 3);
        tt_drop(&w, u);
        tt_drop(&w, v);
    }
    tt_ramp(&w, y, 2, 1); /* all of them as they were */
    tt_ramp(&w, z, 7, 3);
    tt_ramp(&w, g.kept[0], 6, 3);
    T_EQ(t, tt_function(&w, hoarder).directs, 5);
    T_TRUE(t, tt_function(&w, inc).replays >= 4);
}

/* The same when it happens while recording. */
static void test_untracked_memory_of_a_recording(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model g = {.name = "hoarder",
                  .inputs = 1,
                  .outputs = 1,
                  .steps = {P_MULS(1, 0, 3), P_KEEP(1), P_ADDS(2, 1, 1), P_RETURN(2)}};
    tt_prepare(t, &w, kind);
    w.options.record_after = 1;
    tt_start(&w);
    uint32_t hoarder = tt_add(&w, &g);
    for (int i = 0; i < 4; i++) {
        tt_invocation(&w);
        th_tensor *z = tt_call(&w, hoarder, tt_new(&w, (float)i));
        tt_ramp(&w, z, 3 * (float)i + 1, 3);
        tt_drop(&w, z);
    }
    T_EQ(t, tt_function(&w, hoarder).stopped, RONDO_TREE_REASON_UNTRACKED);
    T_EQ(t, tt_info(&w).recordings, 0);
    tt_ramp(&w, g.kept[1], 3, 3); /* of a direct call */
}

/* ------------------------------------------------------------------------------------------- inputs of other kinds */

static void test_value_of_a_host_tensor(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f", .inputs = 2, .outputs = 1, .steps = {P_ADDH(2, 0, 1), P_RETURN(2)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    static const float values[] = {3, 3, 3, 8, 8, 3, 8};
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call2(&w, id, tt_new(&w, (float)i), tt_in_host(&w, values[i]));
        tt_ramp(&w, y, (float)i + values[i], 1);
        tt_drop(&w, y);
    }
    tt_counts(&w, 1, 2, 4, 0);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_VALUE_CHANGED), 1);
}

/* A tensor in host memory that is no scalar, and one of another device. */
static void elsewhere(rondo_test *t, tt_kind kind, rondo_tensor_place place, rondo_tree_reason reason, bool strict) {
    tt_world w;
    th_model f = {.name = "f", .inputs = 2, .outputs = 1, .steps = {P_ADD(2, 0, 1), P_RETURN(2)}};
    tt_prepare(t, &w, kind);
    w.options.strict = strict;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 4; i++) {
        th_tensor *x = tt_new(&w, 10), *y = NULL;
        tt_invocation(&w);
        x->storage->place = place; /* the model does not mind */
        rondo_status status = tt_try(&w, id, TT_IN(tt_new(&w, (float)i), tt_keep(&w, x)), 1, &y);
        if (strict) {
            T_FAILS(t, status, UNSUPPORTED, rondo_tree_reason_text(reason));
        } else {
            T_OK(t, status);
            tt_ramp(&w, y, (float)i + 10, 2);
        }
        x->storage->place = RONDO_TENSOR_DEVICE;
        tt_drop(&w, x);
        tt_drop(&w, y);
    }
    tt_counts(&w, 0, 0, 0, 4);
    T_EQ(t, tt_reason(&w, id, reason), 4);
}

static void test_input_in_host_memory(rondo_test *t, tt_kind kind) {
    elsewhere(t, kind, RONDO_TENSOR_HOST, RONDO_TREE_REASON_HOST_INPUT, false);
}
static void test_input_of_another_device(rondo_test *t, tt_kind kind) {
    elsewhere(t, kind, RONDO_TENSOR_OTHER, RONDO_TREE_REASON_OTHER_DEVICE, false);
}
static void test_input_of_another_device_strict(rondo_test *t, tt_kind kind) {
    elsewhere(t, kind, RONDO_TENSOR_OTHER, RONDO_TREE_REASON_OTHER_DEVICE, true);
}

static void test_skipped_by_a_gate(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    f.skip = "disabling graphs due to incompatible op aten._local_scalar_dense";
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 3; i++) step_of(&w, id, 4, (float)i, (float)i + 1, 1);
    tt_counts(&w, 0, 0, 0, 3);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_SKIPPED), 3);
    T_EQ(t, f.runs[RONDO_TREE_DIRECT], 3);
}

/* Instead of a direct call: a failure with the reason. Warm-ups are no failures. */
static void test_strict(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = INC;
    th_model h = {.name = "bump",
                  .inputs = 1,
                  .outputs = 1,
                  .steps = {P_ADDS_IN(0, 1), P_ADDS(1, 0, 1), P_RETURN(1)},
                  .mutated = {0},
                  .mutated_count = 1};
    th_tensor *y = NULL;
    tt_prepare(t, &w, kind);
    w.options.strict = 1;
    tt_start(&w);
    g.skip = "the op aten.nonzero makes sizes";
    uint32_t inc = tt_add(&w, &f), skipped = tt_add(&w, &g), bump = tt_add(&w, &h);
    for (int i = 0; i < 4; i++) step_of(&w, inc, 4, (float)i, (float)i + 1, 1);
    T_FAILS(t, tt_try(&w, skipped, TT_IN(tt_new(&w, 1)), 1, &y), UNSUPPORTED, "aten.nonzero");
    th_tensor *x = tt_new(&w, 1);
    T_FAILS(t, tt_try(&w, bump, TT_IN(tt_keep(&w, x)), 1, &y), UNSUPPORTED, "mutated inputs");
    tt_ramp(&w, x, 1, 1); /* it has not run */
    T_EQ(t, g.runs[RONDO_TREE_DIRECT] + h.runs[RONDO_TREE_DIRECT], 0);
    tt_counts(&w, 1, 1, 2, 2);
}

/* An output that the recording let die, and that the caller keeps this time: another recording. */
static void test_input_that_does_not_die(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g);
    for (int i = 0; i < 8; i++) {
        bool keep = i == 3 || i == 4 || i == 6;
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i));
        th_tensor *z = tt_call(&w, twice, keep ? tt_keep(&w, y) : y);
        tt_ramp(&w, z, 2 * (float)i + 2, 2);
        if (keep) {
            tt_ramp(&w, y, (float)i + 1, 1);
            tt_drop(&w, y);
        }
        tt_drop(&w, z);
    }
    T_EQ(t, tt_function(&w, twice).recordings, 2);
    T_EQ(t, tt_reason(&w, twice, RONDO_TREE_REASON_INPUT_DIED_NOT), 1);
    tt_counts(&w, 2, 3, 11, 0);
}

/* A function that calls another of the tree: the inner one runs as a part of the outer one. */
static void test_nested_call(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = DOUBLE;
    tt_open(t, &w, kind);
    uint32_t inner = tt_add(&w, &f);
    th_model g = {.name = "outer",
                  .inputs = 1,
                  .outputs = 1,
                  .steps = {P_ADDS(1, 0, 1), P_CALL(2, 1, inner), P_ADDS(3, 2, 1), P_RETURN(3)}};
    uint32_t outer = tt_add(&w, &g);
    for (int i = 0; i < 5; i++) step_of(&w, outer, 4, (float)i, 2 * (float)i + 3, 2);
    T_EQ(t, tt_function(&w, outer).records, 1);
    T_EQ(t, tt_function(&w, outer).replays, 3);
    T_EQ(t, tt_reason(&w, inner, RONDO_TREE_REASON_NESTED), 2);
    T_EQ(t, tt_function(&w, inner).directs, 2);
}

#define TESTS(EACH, MODEL)                            \
    EACH(test_rerecord_limit)                         \
    EACH(test_rerecord_limit_is_not_reached)          \
    EACH(test_rerecord_limit_for_outputs_of_the_path) \
    EACH(test_many_sizes_warn_once)                   \
    EACH(test_size_limit)                             \
    EACH(test_record_after)                           \
    EACH(test_recording_limit)                        \
    EACH(test_recording_limit_of_long_paths)          \
    MODEL(test_byte_limit)                            \
    EACH(test_cost_of_a_fast_model)                   \
    EACH(test_cost_of_a_slow_model)                   \
    EACH(test_host_reads_a_value)                     \
    EACH(test_capture_is_broken_silently)             \
    EACH(test_model_fails_when_recorded)              \
    EACH(test_output_in_host_memory)                  \
    EACH(test_rejected_with_consumed_inputs)          \
    EACH(test_model_that_always_fails)                \
    EACH(test_untracked_memory)                       \
    EACH(test_untracked_memory_of_a_recording)        \
    EACH(test_value_of_a_host_tensor)                 \
    EACH(test_input_in_host_memory)                   \
    EACH(test_input_of_another_device)                \
    EACH(test_input_of_another_device_strict)         \
    EACH(test_skipped_by_a_gate)                      \
    EACH(test_strict)                                 \
    EACH(test_input_that_does_not_die)                \
    EACH(test_nested_call)

TT_MAIN_EACH(TESTS)
