/* SPDX-License-Identifier: Apache-2.0
 *
 * The non-tree path: one recording in a pool of its own, the same objects each time, and a direct call with its reason
 * wherever that one recording cannot serve. */
#include "tree/simple.h"
#include "tree/tree_testing.h"

#define INC                                                                                              \
    {                                                                                                    \
        .name = "inc", .inputs = 1, .outputs = 1, .simple = 1, .steps = { P_ADDS(1, 0, 1), P_RETURN(1) } \
    }
/* x + w, of which w is a parameter */
#define SHIFT                                                                                            \
    {                                                                                                    \
        .name = "shift", .inputs = 2, .outputs = 1, .simple = 1, .steps = {P_ADD(2, 0, 1), P_RETURN(2)}, \
        .statics = {1}, .static_count = 1                                                                \
    }

static void test_same_objects(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_tensor *first = NULL;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 6; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i));
        tt_ramp(&w, y, (float)i + 1, 1);
        if (!first) first = y;
        else tt_drop(&w, y);
        T_TRUE(t, y == first);
    }
    tt_ramp(&w, first, 6, 1); /* it shows the last call, as it always has */
    tt_counts(&w, 1, 1, 5, 0);
    T_EQ(t, f.runs[RONDO_TREE_WARMUP], 1);
    T_EQ(t, f.runs[RONDO_TREE_RECORD], 1);
    T_EQ(t, f.runs[RONDO_TREE_DIRECT], 0);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_FIRST), 1);
    T_EQ(t, tt_function(&w, id).copies, 5);
    T_EQ(t, tt_function(&w, id).recordings, 1);
    T_EQ(t, tt_function(&w, id).sizes, 1);
    /* It is no part of the tree. */
    T_EQ(t, tt_info(&w).state, RONDO_TREE_NOTHING);
    T_EQ(t, tt_info(&w).recordings, 1);
    T_EQ(t, tt_info(&w).roots, 0);
    T_EQ(t, tt_info(&w).pool.user, 0);
    T_EQ(t, md_pools_used(&w.device), 1);
    tt_drop(&w, first);
}

/* Two of them, and a tree, each with memory of its own: nobody takes another's. */
static void test_beside_the_tree(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = INC, h = {.name = "h", .inputs = 1, .outputs = 1, .steps = {P_MULS(1, 0, 2), P_RETURN(1)}};
    tt_open(t, &w, kind);
    uint32_t one = tt_add(&w, &f), two = tt_add(&w, &g), twice = tt_add(&w, &h);
    for (int i = 0; i < 5; i++) {
        tt_invocation(&w);
        th_tensor *a = tt_call(&w, twice, tt_new(&w, (float)i));
        th_tensor *b = tt_call(&w, one, tt_keep(&w, a));
        th_tensor *c = tt_call(&w, two, tt_keep(&w, b));
        th_tensor *d = tt_call(&w, twice, tt_keep(&w, c)); /* the path goes on behind a */
        tt_ramp(&w, a, 2 * (float)i, 2);
        tt_ramp(&w, b, 2 * (float)i + 1, 2);
        tt_ramp(&w, c, 2 * (float)i + 2, 2);
        tt_ramp(&w, d, 4 * (float)i + 4, 4);
        tt_drop(&w, a);
        tt_drop(&w, b);
        tt_drop(&w, c);
        tt_drop(&w, d);
    }
    T_EQ(t, tt_function(&w, one).replays, 4);
    T_EQ(t, tt_function(&w, two).replays, 4);
    T_EQ(t, tt_function(&w, twice).records, 2);
    T_EQ(t, tt_function(&w, twice).replays, 6);
    T_EQ(t, tt_info(&w).checkpoints, 0);
    T_EQ(t, md_pools_used(&w.device), 3);
}

/* What it gave out is an input like any other. */
static void test_own_output_as_input(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *x = tt_call(&w, id, tt_new(&w, 10));
    for (int i = 1; i < 6; i++) {
        x = tt_call(&w, id, x);
        tt_ramp(&w, x, 11 + (float)i, 1);
    }
    tt_counts(&w, 1, 1, 5, 0);
    tt_drop(&w, x);
}

/* Outputs that are the recording's own inputs: what is copied in must not be what was just copied over. */
static void test_outputs_on_inputs(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model swap = {.name = "swap", .inputs = 2, .outputs = 2, .simple = 1, .steps = {P_RETURN(1), P_RETURN(0)}};
    th_model tail = {.name = "tail",
                     .inputs = 2,
                     .outputs = 2,
                     .simple = 1,
                     .steps = {P_VIEW(2, 0, 2), P_ADDS(3, 1, 1), P_RETURN(2), P_RETURN(3)}};
    th_tensor *y[2], *z[2];
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &swap), other = tt_add(&w, &tail);
    T_OK(t, tt_try(&w, id, TT_IN(tt_new(&w, 10), tt_new(&w, 20)), 2, y));
    tt_ramp(&w, y[0], 20, 1);
    tt_ramp(&w, y[1], 10, 1);
    for (int i = 0; i < 3; i++) {
        T_OK(t, tt_try(&w, id, TT_IN(y[0], y[1]), 2, z));
        T_TRUE(t, z[0] == y[0] && z[1] == y[1]);
        tt_ramp(&w, z[0], i % 2 ? 20 : 10, 1);
        tt_ramp(&w, z[1], i % 2 ? 10 : 20, 1);
    }
    T_TRUE(t, tt_function(&w, id).replays == 3);
    T_EQ(t, swap.runs[RONDO_TREE_RECORD], 1);
    /* Both buffers are refilled from one of them. */
    T_OK(t, tt_try(&w, id, TT_IN(tt_keep(&w, z[0]), tt_keep(&w, z[0])), 2, y));
    tt_ramp(&w, y[0], 10, 1);
    tt_ramp(&w, y[1], 10, 1);
    for (int i = 0; i < 2; i++) tt_drop(&w, y[i]), tt_drop(&w, z[i]);
    T_TRUE(t, w.faults.calls[TT_FAULT_OWN] > 0);
    T_OK(t, tt_try(&w, other, TT_IN(tt_new(&w, 0), tt_new(&w, 5)), 2, y));
    tt_ramp(&w, y[0], 2, 1);
    tt_ramp(&w, y[1], 6, 1);
    for (int i = 0; i < 2; i++) tt_drop(&w, y[i]);
}

/* What lies in the buffer already is not copied. */
static void test_identity(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "same", .inputs = 1, .outputs = 1, .simple = 1, .steps = {P_RETURN(0)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *x = tt_call(&w, id, tt_new(&w, 3));
    for (int i = 0; i < 3; i++) x = tt_call(&w, id, x);
    tt_ramp(&w, x, 3, 1);
    T_EQ(t, tt_function(&w, id).copies, 0);
    T_EQ(t, w.faults.calls[TT_FAULT_OWN], 0);
    tt_drop(&w, x);
}

static void test_static_inputs(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = SHIFT;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *a = tt_new(&w, 10), *b = tt_new(&w, 100);
    for (int i = 0; i < 6; i++) {
        th_tensor *weight = i == 2 || i == 4 ? b : a;
        th_tensor *y = tt_call2(&w, id, tt_new(&w, (float)i), tt_keep(&w, weight));
        tt_ramp(&w, y, (weight == a ? 10 : 100) + (float)i, 2);
        tt_drop(&w, y);
        if (i == 2) tt_eager_add(&w, a, 0); /* in place: nothing has moved */
    }
    tt_counts(&w, 1, 1, 3, 2);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_STATIC_MOVED), 2);
    T_EQ(t, tt_function(&w, id).copies, 3); /* never the static one */
    tt_eager_add(&w, a, 1000);
    th_tensor *y = tt_call2(&w, id, tt_new(&w, 0), tt_keep(&w, a));
    tt_ramp(&w, y, 1010, 2);
    tt_drop(&w, y);
    tt_drop(&w, a);
    tt_drop(&w, b);
}

static void test_values_and_sizes(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model number = {
        .name = "number", .inputs = 2, .outputs = 1, .simple = 1, .steps = {P_ADDN(2, 0, 1), P_RETURN(2)}};
    th_model scalar = {
        .name = "scalar", .inputs = 2, .outputs = 1, .simple = 1, .steps = {P_ADDH(2, 0, 1), P_RETURN(2)}};
    tt_open(t, &w, kind);
    uint32_t n = tt_add(&w, &number), s = tt_add(&w, &scalar);
    for (int i = 0; i < 6; i++) {
        const int64_t value = i % 3 == 2 ? 7 : 3;
        th_tensor *y = tt_call2(&w, n, tt_new(&w, (float)i), tt_number(&w, value));
        tt_ramp(&w, y, (float)(i + value), 1);
        tt_drop(&w, y);
        y = tt_call2(&w, s, tt_new(&w, (float)i), tt_in_host(&w, (float)value));
        tt_ramp(&w, y, (float)(i + value), 1);
        tt_drop(&w, y);
    }
    T_EQ(t, tt_function(&w, n).replays, 3);
    T_EQ(t, tt_reason(&w, n, RONDO_TREE_REASON_SIZE_LIMIT), 2);
    T_EQ(t, tt_function(&w, s).replays, 3);
    T_EQ(t, tt_reason(&w, s, RONDO_TREE_REASON_VALUE_CHANGED), 2);
    th_tensor *y = tt_call2(&w, n, tt_new_of(&w, 2, 3, 5), tt_number(&w, 3));
    tt_ramp(&w, y, 8, 1);
    tt_drop(&w, y);
    T_EQ(t, tt_reason(&w, n, RONDO_TREE_REASON_SIZE_LIMIT), 3);
    T_EQ(t, tt_function(&w, n).sizes, 3);
    T_EQ(t, tt_function(&w, n).records, 1);
    /* More sizes than anybody keeps: the recorded one stays. */
    for (int i = 100; i < 6000; i++) tt_drop(&w, tt_call2(&w, n, tt_new(&w, 0), tt_number(&w, i)));
    T_TRUE(t, tt_function(&w, n).sizes < 5000);
    y = tt_call2(&w, n, tt_new(&w, 1), tt_number(&w, 3));
    tt_ramp(&w, y, 4, 1);
    tt_drop(&w, y);
    T_EQ(t, tt_function(&w, n).replays, 4);
}

/* A call that writes an input writes it once. */
static void test_mutation(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "count",
                  .inputs = 2,
                  .outputs = 1,
                  .simple = 1,
                  .mutated = {1},
                  .mutated_count = 1,
                  .statics = {1},
                  .static_count = 1,
                  .steps = {P_ADDS_IN(1, 1), P_ADD(2, 0, 1), P_RETURN(2)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *count = tt_new(&w, 0);
    for (int i = 1; i < 4; i++) {
        th_tensor *y = tt_call2(&w, id, tt_new(&w, 100), tt_keep(&w, count));
        tt_ramp(&w, y, 100 + (float)i, 2);
        tt_ramp(&w, count, (float)i, 1);
        tt_drop(&w, y);
    }
    tt_counts(&w, 0, 0, 0, 3);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_MUTATED), 3);
    T_EQ(t, tt_function(&w, id).stopped, RONDO_TREE_REASON_MUTATED);
    T_EQ(t, w.warnings, 1);
    T_TRUE(t, strstr(w.warning, "'count' is called directly from now on") != NULL);
    tt_drop(&w, count);
}

static void test_kinds_of_outputs(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "many",
                  .inputs = 1,
                  .outputs = 6,
                  .simple = 1,
                  .steps = {P_ADDS(1, 0, 1), P_VIEW(2, 1, 2), P_NUMBER(3, 42), P_NOTHING(4), P_CONSTANT(5, 0),
                            P_EMPTY(6, 0), P_RETURN(1), P_RETURN(2), P_RETURN(3), P_RETURN(4), P_RETURN(5),
                            P_RETURN(6)}};
    th_tensor *y[6], *first[6];
    tt_open(t, &w, kind);
    f.constants[0] = tt_new(&w, 77);
    f.constant_count = 1;
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 3; i++) {
        T_OK(t, tt_try(&w, id, TT_IN(tt_new(&w, (float)i)), 6, y));
        tt_ramp(&w, y[0], (float)i + 1, 1);
        tt_ramp(&w, y[1], (float)i + 3, 1);
        T_EQ(t, y[2]->number, 42);
        T_TRUE(t, !y[3]);
        tt_ramp(&w, y[4], 77, 1);
        T_EQ(t, th_elements(y[5]), 0);
        if (!i) memcpy(first, y, sizeof first);
        T_EQ(t, memcmp(first, y, sizeof first), 0);
        for (int k = 0; k < 6; k++) tt_drop(&w, y[k]);
    }
    f.constants[0]->held--; /* the model's now */
}

/* Views alone need no graph. */
static void test_nothing_to_launch(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "view", .inputs = 1, .outputs = 1, .simple = 1, .steps = {P_VIEW(1, 0, 1), P_RETURN(1)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 3; i++) {
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i));
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
    }
    tt_counts(&w, 1, 1, 2, 0);
    T_TRUE(t, !w.device.graphs);
}

static void test_owned_outputs(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_tensor *y[3];
    f.owned[0] = 0;
    f.owned_count = 1;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 3; i++) y[i] = tt_call(&w, id, tt_new(&w, 10 * (float)i));
    for (int i = 0; i < 3; i++) {
        tt_ramp(&w, y[i], 10 * (float)i + 1, 1);
        tt_drop(&w, y[i]);
    }
    tt_counts(&w, 1, 1, 2, 0);
}

/* ------------------------------------------------------------------------------------------------- other ways */

static void test_refused_inputs_and_outputs(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "in_host", .inputs = 1, .outputs = 1, .simple = 1, .steps = {P_HOST(1, 5), P_RETURN(1)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 3; i++) {
        th_tensor *y = tt_call(&w, id, tt_new(&w, 0));
        T_EQ(t, *(float *)md_memory(th_data(y)), 5);
        tt_drop(&w, y);
    }
    tt_counts(&w, 1, 0, 0, 3);
    T_EQ(t, tt_function(&w, id).stopped, RONDO_TREE_REASON_REJECTED);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_REJECTED), 3);
    T_TRUE(t, strstr(w.warning, "lies in host memory") != NULL);
    T_EQ(t, md_pools_used(&w.device), 0);
    /* A host tensor with dimensions cannot be part of a recording. */
    th_model g = INC;
    th_tensor *x = NULL, *y = NULL;
    g.inputs = 2;
    uint32_t other = tt_add(&w, &g);
    for (int i = 0; i < 3; i++) {
        T_OK(t, th_in_host(&w.host, true, 0, &x));
        y = tt_call2(&w, other, tt_new(&w, 4), tt_held(x));
        tt_ramp(&w, y, 5, 1);
        tt_drop(&w, y);
    }
    T_EQ(t, tt_reason(&w, other, RONDO_TREE_REASON_HOST_INPUT), 3);
    T_EQ(t, tt_function(&w, other).stopped, RONDO_TREE_REASON_NONE);
    y = tt_call2(&w, other, tt_new(&w, 4), NULL); /* another size */
    tt_ramp(&w, y, 5, 1);
    tt_drop(&w, y);
    T_EQ(t, tt_function(&w, other).recordings, 1);
}

static void test_failing_models(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model warm = {.name = "warm",
                     .inputs = 1,
                     .outputs = 1,
                     .simple = 1,
                     .steps = {P_ADDS(1, 0, 1), P_FAIL(1 << RONDO_TREE_WARMUP), P_RETURN(1)}};
    th_model record = {.name = "record",
                       .inputs = 1,
                       .outputs = 1,
                       .simple = 1,
                       .steps = {P_ADDS(1, 0, 1), P_FAIL(1 << RONDO_TREE_RECORD), P_RETURN(1)}};
    th_model broken = {
        .name = "broken", .inputs = 1, .outputs = 1, .simple = 1, .steps = {P_ADDS(1, 0, 1), P_BREAK(), P_RETURN(1)}};
    th_tensor *y = NULL;
    tt_open(t, &w, kind);
    uint32_t a = tt_add(&w, &warm), b = tt_add(&w, &record), c = tt_add(&w, &broken);
    /* The model's own failure is the caller's. */
    for (int i = 0; i < 2; i++)
        T_FAILS(t, tt_try(&w, a, TT_IN(tt_new(&w, 0)), 1, &y), KERNEL_FAILED, "warm fails on purpose");
    T_EQ(t, tt_function(&w, a).stopped, RONDO_TREE_REASON_NONE);
    /* What only cannot be captured is called. */
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 2; k++) {
            y = tt_call(&w, k ? b : c, tt_new(&w, (float)i));
            tt_ramp(&w, y, (float)i + 1, 1);
            tt_drop(&w, y);
        }
    }
    T_EQ(t, tt_reason(&w, b, RONDO_TREE_REASON_REJECTED), 3);
    T_EQ(t, tt_reason(&w, c, RONDO_TREE_REASON_REJECTED), 3);
    T_EQ(t, record.runs[RONDO_TREE_RECORD], 1);
    T_EQ(t, md_pools_used(&w.device), 0);
    T_EQ(t, w.warnings, 2);
}

static void test_options(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_prepare(t, &w, kind);
    w.options.record_after = 1;
    w.options.strict = 1;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 3; i++) {
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i));
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
    }
    tt_counts(&w, 0, 1, 2, 0);
    th_tensor *y = NULL;
    T_FAILS(t, tt_try(&w, id, TT_IN(tt_new_of(&w, 0, 5, 0)), 1, &y), UNSUPPORTED, "too many sizes");
}

static void test_always_warm_up(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_prepare(t, &w, kind);
    w.options.always_warm_up = 1;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 3; i++) {
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i));
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
    }
    tt_counts(&w, 0, 0, 0, 3);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_WARMUP), 3);
}

/* A backward of this kind ends the wait of a tree's forwards. */
static void test_backward(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "forward",
                  .inputs = 1,
                  .outputs = 1,
                  .mode = RONDO_TREE_FORWARD,
                  .steps = {P_MULS(1, 0, 2), P_RETURN(1)}};
    th_model b = INC;
    th_tensor *before = NULL;
    b.mode = RONDO_TREE_BACKWARD;
    tt_open(t, &w, kind);
    uint32_t forward = tt_add(&w, &f), backward = tt_add(&w, &b);
    for (int i = 0; i < 5; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, forward, tt_new(&w, (float)i));
        th_tensor *g = tt_call(&w, backward, tt_keep(&w, y));
        tt_ramp(&w, g, 2 * (float)i + 1, 2);
        tt_drop(&w, g);
        tt_drop(&w, before);
        before = y;
    }
    T_EQ(t, tt_reason(&w, forward, RONDO_TREE_REASON_PENDING_BACKWARD), 0);
    T_EQ(t, tt_function(&w, forward).replays, 3);
    tt_drop(&w, before);
}

/* ----------------------------------------------------------------------------------------------- life, streams */

static void test_reset_and_removal(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *a = tt_call(&w, id, tt_new(&w, 1));
    T_OK(t, rondo_tree_reset(w.tree));
    T_EQ(t, tt_function(&w, id).recordings, 0);
    T_EQ(t, md_pools_used(&w.device), 0);
    tt_ramp(&w, a, 2, 1);
    th_tensor *b = tt_call(&w, id, tt_new(&w, 5));
    T_TRUE(t, a != b);
    tt_ramp(&w, a, 2, 1); /* nobody takes its memory */
    tt_ramp(&w, b, 6, 1);
    T_EQ(t, tt_function(&w, id).records, 2);
    T_OK(t, rondo_tree_remove_function(w.tree, id));
    T_EQ(t, md_pools_used(&w.device), 0);
    tt_ramp(&w, b, 6, 1);
    T_EQ(t, tt_info(&w).recordings, 0);
    tt_drop(&w, a);
    tt_drop(&w, b);
    T_EQ(t, md_live(&w.device, UINT64_MAX, NULL), 0);
}

/* Two streams that nobody orders but the tree: the second call's work comes behind the first's, whichever stream is
 * waited for first. */
static void test_streams(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {
        .name = "f", .inputs = 1, .outputs = 1, .simple = 1, .steps = {P_SIDE(1, 0, 1), P_MULS(2, 1, 2), P_RETURN(2)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *x = tt_new(&w, 50), *a = NULL;
    T_OK(t, tt_try(&w, id, TT_IN(tt_keep(&w, x)), 1, &a));
    T_OK(t,
         md_synchronize(&w.device, w.host.last_stream)); /* the side stream first: it waits for the caller's itself */
    tt_ramp(&w, a, 102, 2);
    for (int i = 0; i < 4; i++) {
        th_tensor *y = NULL, *z = NULL;
        T_OK(t, md_stream_wait(&w.device, w.other, w.stream)); /* for x */
        T_OK(t, tt_try_on(&w, w.other, id, 1, (th_tensor *[]){tt_keep(&w, x)}, 1, &y));
        T_OK(t, tt_try(&w, id, TT_IN(tt_new(&w, (float)i)), 1, &z));
        T_TRUE(t, y == a && z == a);
        tt_ramp(&w, z, 2 * (float)i + 2, 2);
        T_OK(t, md_synchronize(&w.device, w.other));
        tt_ramp(&w, z, 2 * (float)i + 2, 2);
        tt_drop(&w, y);
        tt_drop(&w, z);
    }
    tt_counts(&w, 1, 1, 8, 0);
    tt_drop(&w, a);
    tt_drop(&w, x);
}

static uint64_t tick(void *user) {
    uint64_t *now = user;
    return *now += 1500;
}

static void test_times(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    uint64_t now = 0;
    tt_prepare(t, &w, kind);
    w.options.cost_samples = 2;
    w.options.clock = tick;
    w.options.clock_user = &now;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 5; i++) tt_drop(&w, tt_call(&w, id, tt_new(&w, 0)));
    rondo_tree_function_info info = tt_function(&w, id);
    T_EQ(t, info.warmup_ns, 1500);
    T_EQ(t, info.record_ns, 1500);
    T_EQ(t, info.replay_ns, 1500);
    T_EQ(t, now, 8 * 1500); /* warm-up, recording, and two samples: nobody asks for the time later */
    tt_counts(&w, 1, 1, 4, 0);
}

/* ------------------------------------------------------------------------------------------------------ faults */

/* Two inputs, one of them static, and a call that fits; returns what the first failure was. */
static rondo_status one_call(tt_world *w, uint32_t id, th_tensor *weight, float x) {
    th_tensor *y = NULL;
    rondo_status status = tt_try(w, id, TT_IN(tt_new(w, x), tt_keep(w, weight)), 1, &y);
    if (status) return status;
    tt_ramp(w, y, x + 100, 2);
    tt_drop(w, y);
    return RONDO_OK;
}

/* `entry` fails once, at its nth call: then the call fails with that, or is right, and the next ones are right. False: it
 * was not called as often. */
static bool fail_once(tt_world *w, th_model *model, th_tensor *weight, uint64_t nth, unsigned *failed) {
    rondo_test *t = w->t;
    const tt_fault_entry entry = w->faults.entry;
    uint32_t id = tt_add(w, model);
    uint64_t left = nth;
    w->model_count = 0;
    w->faults = (tt_faults){.entry = entry};
    for (int i = 0; i < 3; i++) {
        th_tensor *x = tt_new(w, (float)i), *y = NULL; /* nothing of the test's own fails */
        w->faults.nth = left;
        rondo_status status = tt_try(w, id, TT_IN(x, tt_keep(w, weight)), 1, &y);
        left = w->faults.nth;
        w->faults.nth = 0;
        if (status) {
            (*failed)++;
            T_FAILS(t, status, DEVICE_LOST, tt_fault_name(entry));
            continue;
        }
        tt_ramp(w, y, (float)i + 100, 2);
        tt_drop(w, y);
    }
    const bool fired = w->faults.fired;
    T_OK(t, one_call(w, id, weight, 7));
    T_OK(t, rondo_tree_remove_function(w->tree, id));
    T_EQ(t, md_pools_used(&w->device), 0);
    T_EQ(t, md_live(&w->device, UINT64_MAX, NULL), 1);
    return fired;
}

static void test_each_failure(rondo_test *t, tt_kind kind) {
    static tt_world worlds[TT_FAULT_COUNT];
    static const struct {
        tt_fault_entry entry;
        unsigned times; /* in three calls */
    } some[] = {{TT_FAULT_STREAM_CREATE, 1}, {TT_FAULT_POOL_HANDLE, 1},   {TT_FAULT_POOL_BEGIN, 3},
                {TT_FAULT_MAKE_INPUT, 1},    {TT_FAULT_KEEP, 1},          {TT_FAULT_ENTER, 2},
                {TT_FAULT_PREPARE, 4},       {TT_FAULT_CAPTURE_BEGIN, 1}, {TT_FAULT_CAPTURE_END, 1},
                {TT_FAULT_REPLAY, 3},        {TT_FAULT_COPY_INPUTS, 3}};
    unsigned times[TT_FAULT_COUNT] = {0}, failed = 0;
    th_model f = SHIFT;
    for (tt_fault_entry entry = 0; entry < TT_FAULT_COUNT; entry++) {
        tt_world *w = &worlds[entry];
        tt_open(t, w, kind);
        w->faults.entry = entry;
        th_tensor *weight = tt_new(w, 100);
        for (uint64_t nth = 1; fail_once(w, &f, weight, nth, &failed); nth++) times[entry]++;
        tt_drop(w, weight);
    }
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (times[some[i].entry] != some[i].times)
            rondo_test_fail(t, __FILE__, __LINE__, "%s failed %u times, not %u", tt_fault_name(some[i].entry),
                            times[some[i].entry], some[i].times);
    T_TRUE(t, failed > 5);
}

static void test_each_allocation(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = SHIFT;
    uint64_t n = 1;
    tt_open(t, &w, kind);
    th_tensor *weight = tt_new(&w, 100);
    for (bool again = true; again; n++) {
        uint32_t id = tt_add(&w, &f);
        w.model_count = 0;
        w.refused = false;
        w.refuse = n;
        for (int i = 0; i < 3; i++) {
            rondo_status status = one_call(&w, id, weight, (float)i);
            if (status) T_FAILS(t, status, OUT_OF_MEMORY, NULL);
        }
        again = w.refused;
        w.refuse = 0;
        T_OK(t, one_call(&w, id, weight, 7));
        T_EQ(t, tt_function(&w, id).stopped, RONDO_TREE_REASON_NONE); /* there may be memory later */
        T_EQ(t, tt_function(&w, id).recordings, 1);
        T_OK(t, rondo_tree_remove_function(w.tree, id));
        T_EQ(t, md_pools_used(&w.device), 0);
    }
    T_TRUE(t, n > 8);
    tt_drop(&w, weight);
}

#define TESTS(X)                       \
    X(test_same_objects)               \
    X(test_beside_the_tree)            \
    X(test_own_output_as_input)        \
    X(test_outputs_on_inputs)          \
    X(test_identity)                   \
    X(test_static_inputs)              \
    X(test_values_and_sizes)           \
    X(test_mutation)                   \
    X(test_kinds_of_outputs)           \
    X(test_nothing_to_launch)          \
    X(test_owned_outputs)              \
    X(test_refused_inputs_and_outputs) \
    X(test_failing_models)             \
    X(test_options)                    \
    X(test_always_warm_up)             \
    X(test_backward)                   \
    X(test_reset_and_removal)          \
    X(test_streams)                    \
    X(test_times)                      \
    X(test_each_failure)               \
    X(test_each_allocation)
TT_MAIN(TESTS)
