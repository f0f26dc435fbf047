/* SPDX-License-Identifier: Apache-2.0
 *
 * What is warmed up, recorded and replayed, and which trees come of it. */
#include "tree/tree_testing.h"

#define INC                                                                                 \
    {                                                                                       \
        .name = "inc", .inputs = 1, .outputs = 1, .steps = { P_ADDS(1, 0, 1), P_RETURN(1) } \
    }
#define DOUBLE                                                                                 \
    {                                                                                          \
        .name = "double", .inputs = 1, .outputs = 1, .steps = { P_MULS(1, 0, 2), P_RETURN(1) } \
    }
#define LESS                                                                                  \
    {                                                                                         \
        .name = "less", .inputs = 1, .outputs = 1, .steps = { P_ADDS(1, 0, -3), P_RETURN(1) } \
    }
/* x + w, of which w is a parameter */
#define SHIFT                                                                                               \
    {                                                                                                       \
        .name = "shift", .inputs = 2, .outputs = 1, .steps = {P_ADD(2, 0, 1), P_RETURN(2)}, .statics = {1}, \
        .static_count = 1                                                                                   \
    }

/* The first call is a warm-up, the second is recorded, all others are replayed; with the same results. */
static void test_warmup_record_replay(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 6; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i));
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
    }
    tt_counts(&w, 1, 1, 4, 0);
    T_EQ(t, f.runs[RONDO_TREE_WARMUP], 1);
    T_EQ(t, f.runs[RONDO_TREE_RECORD], 1);
    T_EQ(t, f.runs[RONDO_TREE_DIRECT], 0);
    T_EQ(t, f.runs[RONDO_TREE_REPLAY], 0);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_WARMUP), 1);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_FIRST), 1);
    T_EQ(t, tt_function(&w, id).copies, tt_binds(&w) ? 0 : 4);
    T_EQ(t, tt_info(&w).checkpoints, 0);
}

/* A model that has not set up what it needs asks for another warm-up, three times; at a recording, a replay and outside of a
 * call asking means nothing. */
static rondo_status (*plain_run)(void *user, const rondo_tree_run_context *context, void **inputs, uint32_t input_count,
                                 void **outputs, uint32_t output_count);
static uint32_t incomplete;
static rondo_status run_incomplete(void *user, const rondo_tree_run_context *context, void **inputs,
                                   uint32_t input_count, void **outputs, uint32_t output_count) {
    if (context->phase != RONDO_TREE_WARMUP || incomplete) rondo_tree_mark_warmup_incomplete(context->tree);
    if (context->phase == RONDO_TREE_WARMUP && incomplete) incomplete--;
    return plain_run(user, context, inputs, input_count, outputs, output_count);
}

static void warmup_incomplete(rondo_test *t, tt_kind kind, uint32_t record_after) {
    tt_world w;
    th_model f = INC;
    tt_prepare(t, &w, kind);
    plain_run = w.table.run;
    w.table.run = run_incomplete;
    w.options.record_after = record_after;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    incomplete = 3;
    rondo_tree_mark_warmup_incomplete(NULL);
    for (int i = 0; i < 8; i++) {
        rondo_tree_mark_warmup_incomplete(w.tree);
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i));
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
    }
    if (record_after == 1) tt_counts(&w, 0, 1, 7, 0); /* there is no warm-up to ask in */
    else tt_counts(&w, 4, 1, 3, 0);
    T_EQ(t, incomplete, record_after == 1 ? 3u : 0u);
}

static void test_warmup_incomplete(rondo_test *t, tt_kind kind) { warmup_incomplete(t, kind, 2); }
static void test_no_warmup_incomplete(rondo_test *t, tt_kind kind) { warmup_incomplete(t, kind, 1); }

static void test_run_simple(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = DOUBLE;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int64_t size = 4; size <= 8; size += 4) {
        for (int i = 0; i < 3; i++) {
            tt_invocation(&w);
            th_tensor *y = tt_call(&w, id, tt_new_of(&w, 0, size, (float)i));
            T_EQ(t, th_elements(y), size);
            tt_ramp(&w, y, 2 * (float)i, 2);
            tt_drop(&w, y);
        }
    }
    tt_counts(&w, 2, 2, 2, 0);
    T_EQ(t, tt_info(&w).roots, 2);
    T_EQ(t, tt_info(&w).recordings, 2);
    T_EQ(t, tt_function(&w, id).sizes, 2);
    T_EQ(t, tt_function(&w, id).roots, 2);
}

/* Sizes that come in turns do not disturb one another. */
static void test_separate_recordings(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f", .inputs = 2, .outputs = 1, .steps = {P_ADD(2, 0, 1), P_RETURN(2)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 12; i++) {
        int64_t rows = i % 3 ? 2 : 0, columns = 2 + i % 3;
        tt_invocation(&w);
        th_tensor *y = tt_call2(&w, id, tt_new_of(&w, rows, columns, 1), tt_new_of(&w, rows, columns, (float)i));
        tt_ramp(&w, y, 1 + (float)i, 2);
        tt_drop(&w, y);
    }
    tt_counts(&w, 3, 3, 6, 0);
    T_EQ(t, tt_info(&w).roots, 3);
}

static void test_function_called_several_times(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 4; i++) {
        th_tensor *y[3];
        tt_invocation(&w);
        y[0] = tt_call(&w, id, tt_new(&w, (float)i));
        y[1] = tt_call(&w, id, tt_keep(&w, y[0]));
        y[2] = tt_call(&w, id, tt_keep(&w, y[1]));
        for (int j = 0; j < 3; j++) tt_ramp(&w, y[j], (float)(i + j + 1), 1);
        for (int j = 0; j < 3; j++) tt_drop(&w, y[j]);
    }
    tt_counts(&w, 3, 3, 6, 0);
    T_EQ(t, tt_info(&w).roots, 1);
    T_EQ(t, tt_info(&w).recordings, 3);
}

static void test_end_recording_early(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g);
    for (int i = 0; i < 2; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, 1)), *z = tt_call(&w, twice, tt_keep(&w, y));
        tt_ramp(&w, z, 4, 2);
        tt_drop(&w, y);
        tt_drop(&w, z);
    }
    tt_counts(&w, 2, 2, 0, 0);
    /* In one invocation; everything is dead before the second call. */
    tt_invocation(&w);
    tt_drop(&w, tt_call(&w, inc, tt_new(&w, 1)));
    th_tensor *z = tt_call(&w, twice, tt_new(&w, 10));
    tt_ramp(&w, z, 20, 2);
    tt_counts(&w, 2, 3, 1, 0);
    T_EQ(t, tt_info(&w).roots, 2);
    T_EQ(t, tt_info(&w).recordings, 3);
    T_EQ(t, tt_function(&w, twice).roots, 1);
    T_EQ(t, tt_function(&w, twice).recordings, 2);
    tt_drop(&w, z);
}

/* f and then g or h, as the data say. */
static void test_execution_into_recording(rondo_test *t, tt_kind kind) {
    static const struct {
        bool less;
        uint64_t warmups, records, replays, checkpoints;
    } rounds[] = {{false, 2, 0, 0, 0}, {false, 2, 2, 0, 0}, {false, 2, 2, 2, 0}, {true, 3, 2, 3, 1},
                  {true, 3, 3, 4, 2},  {true, 3, 3, 6, 2},  {false, 3, 3, 8, 2}};
    tt_world w;
    th_model f = INC, g = DOUBLE, h = LESS;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g), less = tt_add(&w, &h);
    for (unsigned i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i));
        th_tensor *z = tt_call(&w, rounds[i].less ? less : twice, tt_keep(&w, y));
        tt_ramp(&w, y, (float)i + 1, 1);
        if (rounds[i].less) tt_ramp(&w, z, (float)i - 2, 1);
        else tt_ramp(&w, z, 2 * (float)i + 2, 2);
        tt_counts(&w, rounds[i].warmups, rounds[i].records, rounds[i].replays, 0);
        T_EQ(t, tt_info(&w).checkpoints, rounds[i].checkpoints);
        T_EQ(t, tt_info(&w).live, 2);
        if (i < 2 || i == 3 || i == 4) T_EQ(t, tt_live(&w), 2); /* the allocator knows what lives */
        tt_drop(&w, y);
        T_EQ(t, tt_info(&w).live, 1);
        tt_drop(&w, z);
        T_EQ(t, tt_info(&w).live, 0);
        if (i < 2 || i == 3 || i == 4) T_EQ(t, tt_live(&w), 0);
    }
    T_EQ(t, tt_info(&w).roots, 1);
    T_EQ(t, tt_info(&w).recordings, 3);
}

/* Outputs that die one by one: the pool has exactly what lives. */
static void test_accumulate_multiple_recordings(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 4; i++) {
        th_tensor *y[3];
        tt_invocation(&w);
        for (int j = 0; j < 3; j++) {
            y[j] = tt_call(&w, id, tt_new_of(&w, 0, 16 * (j + 1), (float)j));
            T_EQ(t, tt_info(&w).live, j + 1);
            if (i < 2) T_EQ(t, tt_live(&w), j + 1);
        }
        for (int j = 0; j < 3; j++) {
            tt_ramp(&w, y[j], (float)j + 1, 1);
            tt_drop(&w, y[j]);
            T_EQ(t, tt_info(&w).live, 2 - j);
            if (i < 2) T_EQ(t, tt_live(&w), 2 - j);
        }
    }
    tt_counts(&w, 3, 3, 6, 0);
}

/* Another pattern of what is alive is another recording, without anything having moved. */
static void test_other_liveness_other_recording(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {
        .name = "f", .inputs = 1, .outputs = 2, .steps = {P_ADDS(1, 0, 1), P_MULS(2, 0, 2), P_RETURN(1), P_RETURN(2)}};
    th_model g = LESS;
    tt_open(t, &w, kind);
    uint32_t two = tt_add(&w, &f), less = tt_add(&w, &g);
    for (int i = 0; i < 6; i++) {
        bool keep = i == 3 || i == 4;
        th_tensor *a, *b;
        tt_invocation(&w);
        tt_pair(&w, two, tt_new(&w, (float)i), &a, &b);
        if (!keep) tt_drop(&w, b);
        th_tensor *z = tt_call(&w, less, tt_keep(&w, a));
        tt_ramp(&w, z, (float)i - 2, 1);
        tt_ramp(&w, a, (float)i + 1, 1);
        if (keep) {
            tt_ramp(&w, b, 2 * (float)i, 2);
            tt_drop(&w, b);
        }
        tt_drop(&w, a);
        tt_drop(&w, z);
    }
    T_EQ(t, tt_function(&w, less).recordings, 2);
    T_EQ(t, tt_reason(&w, less, RONDO_TREE_REASON_OUTPUT_LIVE), 1);
    T_EQ(t, tt_reason(&w, less, RONDO_TREE_REASON_RERECORD_LIMIT), 0);
    T_EQ(t, tt_info(&w).records, 3);
}

static void test_dynamic_warmup(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f", .inputs = 2, .outputs = 1, .steps = {P_ADDN(2, 0, 1), P_RETURN(2)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int64_t key = 1; key <= 3; key++) {
        for (int i = 0; i < 3; i++) {
            tt_invocation(&w);
            th_tensor *y = tt_call2(&w, id, tt_new(&w, (float)i), tt_number(&w, key));
            tt_ramp(&w, y, (float)(i + key), 1);
            tt_drop(&w, y);
        }
    }
    tt_counts(&w, 3, 3, 3, 0);
    T_EQ(t, f.runs[RONDO_TREE_WARMUP], 3);
    T_EQ(t, f.runs[RONDO_TREE_RECORD], 3);
    T_EQ(t, tt_function(&w, id).sizes, 3);
}

/* ------------------------------------------------------------------------------------------- addresses that move */

/* A call that keeps the parameter. */
static void shift(tt_world *w, uint32_t id, float x, th_tensor *parameter, float first) {
    tt_invocation(w);
    th_tensor *y = tt_call2(w, id, tt_new(w, x), tt_keep(w, parameter));
    tt_ramp(w, y, first, 2);
    tt_drop(w, y);
}

static void test_rerecord_if_static_input_moved(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = SHIFT;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *a = tt_new(&w, 10), *b = tt_new(&w, 20);
    for (int i = 0; i < 3; i++) shift(&w, id, 1, a, 11);
    shift(&w, id, 2, b, 22); /* recorded at once: the size is warm */
    tt_counts(&w, 1, 2, 1, 0);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_STATIC_MOVED), 1);
    shift(&w, id, 3, a, 13); /* the first one is still there */
    shift(&w, id, 4, b, 24);
    tt_counts(&w, 1, 2, 3, 0);
    tt_eager_add(&w, b, 1); /* it is read where it is, not copied */
    shift(&w, id, 4, b, 25);
    T_EQ(t, tt_function(&w, id).copies, tt_binds(&w) ? 0 : 4);
    T_EQ(t, tt_info(&w).roots, 2);
}

static void test_no_rerecord_if_other_input_moves(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = SHIFT;
    th_tensor *held[8];
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *parameter = tt_new(&w, 10);
    for (int i = 0; i < 8; i++) {
        held[i] = tt_new(&w, (float)i); /* kept, so that each has its own address */
        tt_invocation(&w);
        th_tensor *y = tt_call2(&w, id, tt_keep(&w, held[i]), tt_keep(&w, parameter));
        tt_ramp(&w, y, (float)i + 10, 2);
        tt_ramp(&w, held[i], (float)i, 1);
        tt_drop(&w, y);
    }
    tt_counts(&w, 1, 1, 6, 0);
}

static void test_child_records_anew(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = SHIFT;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), add = tt_add(&w, &g);
    th_tensor *parameters[2] = {tt_new(&w, 10), tt_new(&w, 20)};
    for (int i = 0; i < 8; i++) {
        int which = i >= 4 && i != 6;
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i));
        th_tensor *z = tt_call2(&w, add, y, tt_keep(&w, parameters[which]));
        tt_ramp(&w, z, (float)(i + 1 + 10 * (which + 1)), 2);
        tt_drop(&w, z);
    }
    T_EQ(t, tt_function(&w, inc).recordings, 1);
    T_EQ(t, tt_function(&w, add).recordings, 2);
    tt_counts(&w, 2, 3, 11, 0);
    T_EQ(t, tt_info(&w).checkpoints, 1);
}

static void test_parent_records_anew_and_so_does_its_child(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = SHIFT, g = INC;
    tt_open(t, &w, kind);
    uint32_t add = tt_add(&w, &f), inc = tt_add(&w, &g);
    th_tensor *parameters[2] = {tt_new(&w, 10), tt_new(&w, 20)};
    for (int i = 0; i < 8; i++) {
        int which = i >= 4 && i != 6;
        tt_invocation(&w);
        th_tensor *y = tt_call2(&w, add, tt_new(&w, (float)i), tt_keep(&w, parameters[which]));
        th_tensor *z = tt_call(&w, inc, y);
        tt_ramp(&w, z, (float)(i + 1 + 10 * (which + 1)), 2);
        tt_drop(&w, z);
    }
    T_EQ(t, tt_function(&w, add).recordings, 2);
    T_EQ(t, tt_function(&w, inc).recordings, 2);
    tt_counts(&w, 2, 4, 10, 0);
}

/* An input that was an output of the path, and is something else now. */
static void test_tensor_no_longer_in_pool(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g);
    for (int i = 0; i < 6; i++) {
        bool other = i >= 3;
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i));
        th_tensor *z = tt_call(&w, twice, other ? tt_eager(&w, (th_step)P_ADDS(1, 0, 5), y) : tt_keep(&w, y));
        tt_ramp(&w, z, 2 * (float)(i + 1 + (other ? 5 : 0)), 2);
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
        tt_drop(&w, z);
    }
    tt_counts(&w, 2, 3, 7, 0);
    T_EQ(t, tt_reason(&w, twice, RONDO_TREE_REASON_MANAGED_MOVED), 1);
    T_EQ(t, tt_info(&w).checkpoints, 1);
    T_EQ(t, tt_info(&w).roots, 1);
    T_EQ(t, tt_function(&w, twice).recordings, 2);
}

/* Why something was recorded again is in the report and in the log. */
static void test_rerecording_tells_its_reason(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = SHIFT;
    tt_text text;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *a = tt_new(&w, 10), *b = tt_new(&w, 20);
    for (int i = 0; i < 3; i++) shift(&w, id, 1, a, 11);
    tt_report(&w, false, &text);
    T_TRUE(t, strstr(text.data, "shift") != NULL);
    T_TRUE(t, !strstr(text.data, "static input data pointer changed"));
    shift(&w, id, 2, b, 22);
    tt_report(&w, false, &text);
    T_TRUE(t, strstr(text.data, "static input data pointer changed") != NULL);
    tt_report(&w, true, &text);
    T_TRUE(t, text.data[0] == '{');
    T_TRUE(t, strstr(text.data, "STATIC_MOVED") != NULL);
    T_TRUE(t, strstr(w.debug, "Recording function=0 'shift', mode=inference") != NULL);
    T_TRUE(t, strstr(w.debug, "Re-recording function=0 'shift'") != NULL);
    T_TRUE(t, strstr(w.debug, "reason=static input data pointer changed") != NULL);
}

static void test_live_outputs_multiple_graphs(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE, h = LESS;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g), less = tt_add(&w, &h);
    for (int i = 0; i < 4; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i)), *z = tt_call(&w, twice, tt_keep(&w, y));
        tt_ramp(&w, z, 2 * (float)i + 2, 2);
        tt_drop(&w, y);
        tt_drop(&w, z);
    }
    T_EQ(t, tt_info(&w).checkpoints, 0);
    for (int i = 0; i < 3; i++) { /* behind both, which live */
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i)), *z = tt_call(&w, twice, tt_keep(&w, y));
        th_tensor *u = tt_call(&w, less, tt_keep(&w, z));
        tt_ramp(&w, u, 2 * (float)i - 1, 2);
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_ramp(&w, z, 2 * (float)i + 2, 2);
        T_EQ(t, tt_info(&w).depth, 3);
        tt_drop(&w, y);
        tt_drop(&w, z);
        tt_drop(&w, u);
    }
    T_EQ(t, tt_info(&w).checkpoints, 2);
}

static void test_nothing_is_ever_recorded(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_prepare(t, &w, kind);
    w.options.always_warm_up = 1;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 4; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i));
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
    }
    tt_counts(&w, 4, 0, 0, 0);
}

static void test_recorded_at_the_first_call(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_prepare(t, &w, kind);
    w.options.record_after = 1;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 3; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i));
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
    }
    tt_counts(&w, 0, 1, 2, 0);
}

/* Numbers, nothing, and tensors without elements come back as they are. */
static void test_outputs_that_are_no_memory(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f",
                  .inputs = 2,
                  .outputs = 5,
                  .steps = {P_ADDS(2, 0, 1), P_NUMBER(3, 42), P_NOTHING(4), P_EMPTY(5, 0), P_EMPTY(6, 1), P_RETURN(2),
                            P_RETURN(3), P_RETURN(4), P_RETURN(5), P_RETURN(6)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 4; i++) {
        th_tensor *y[5] = {0}, *in[2] = {tt_new(&w, (float)i), tt_new_of(&w, 0, 0, 0)};
        tt_invocation(&w);
        T_OK(t, tt_try(&w, id, 2, in, 5, y));
        tt_ramp(&w, y[0], (float)i + 1, 1);
        T_TRUE(t, y[1] && !y[1]->storage && y[1]->number == 42);
        T_TRUE(t, !y[2]);
        T_EQ(t, th_elements(y[3]), 0);
        T_EQ(t, y[3]->storage->place, RONDO_TENSOR_DEVICE);
        T_EQ(t, th_elements(y[4]), 0);
        T_EQ(t, y[4]->storage->place, RONDO_TENSOR_HOST);
        T_EQ(t, tt_info(&w).live, 1);
        for (int j = 0; j < 5; j++) tt_drop(&w, y[j]);
        T_EQ(t, tt_info(&w).live, 0);
    }
    tt_counts(&w, 1, 1, 2, 0);
}

#define TESTS(EACH, MODEL)                               \
    EACH(test_warmup_record_replay)                      \
    EACH(test_warmup_incomplete)                         \
    EACH(test_no_warmup_incomplete)                      \
    EACH(test_run_simple)                                \
    EACH(test_separate_recordings)                       \
    EACH(test_function_called_several_times)             \
    EACH(test_end_recording_early)                       \
    EACH(test_execution_into_recording)                  \
    EACH(test_accumulate_multiple_recordings)            \
    EACH(test_other_liveness_other_recording)            \
    EACH(test_dynamic_warmup)                            \
    EACH(test_rerecord_if_static_input_moved)            \
    EACH(test_no_rerecord_if_other_input_moves)          \
    EACH(test_child_records_anew)                        \
    EACH(test_parent_records_anew_and_so_does_its_child) \
    EACH(test_tensor_no_longer_in_pool)                  \
    EACH(test_rerecording_tells_its_reason)              \
    EACH(test_live_outputs_multiple_graphs)              \
    EACH(test_nothing_is_ever_recorded)                  \
    EACH(test_recorded_at_the_first_call)                \
    EACH(test_outputs_that_are_no_memory)

TT_MAIN_EACH(TESTS)
