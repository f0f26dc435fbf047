/* SPDX-License-Identifier: Apache-2.0
 *
 * What random programs found (random_test.c), each as short as it still goes wrong. */
#include "tree/tree_testing.h"

#define INC                                                                                 \
    {                                                                                       \
        .name = "inc", .inputs = 1, .outputs = 1, .steps = { P_ADDS(1, 0, 1), P_RETURN(1) } \
    }
/* x += 1 in place, and what it is then; x is a parameter. */
#define COUNT                                                                                                 \
    {                                                                                                         \
        .name = "count", .inputs = 1, .outputs = 1, .steps = {P_ADDS_IN(0, 1), P_ADDS(1, 0, 0), P_RETURN(1)}, \
        .statics = {0}, .static_count = 1, .mutated = {0}, .mutated_count = 1                                 \
    }

/* A recording that does nothing has no graph, and nothing of it can be bound. */
static void empty_recording(rondo_test *t, tt_kind kind, bool rebind) {
    tt_world w;
    th_model f = {.name = "f", .inputs = 2, .outputs = 2, .steps = {P_VIEW(2, 1, 1), P_RETURN(2), P_RETURN(0)}};
    th_tensor *kept[5];
    tt_prepare(t, &w, kind);
    if (rebind) w.ops.flags |= RONDO_GRAPH_OPS_REBIND;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 5; i++) {
        th_tensor *y[2];
        tt_invocation(&w);
        kept[i] = tt_new(&w, (float)i); /* each time elsewhere */
        T_OK(t, tt_try(&w, id, TT_IN(tt_new(&w, 7), tt_keep(&w, kept[i])), 2, y));
        tt_ramp(&w, y[0], (float)i + 1, 1);
        tt_ramp(&w, y[1], 7, 1);
        T_TRUE(t, y[0]->storage == kept[i]->storage);
        tt_drop(&w, y[0]);
        tt_drop(&w, y[1]);
    }
    tt_counts(&w, 1, 1, 3, 0);
    T_EQ(t, tt_function(&w, id).copies, 0);
}

static void test_inputs_of_an_empty_recording(rondo_test *t, tt_kind kind) { empty_recording(t, kind, false); }
static void test_bound_inputs_of_an_empty_recording(rondo_test *t, tt_kind kind) { empty_recording(t, kind, true); }

/* An output that is to be a copy is one in whatever way the call is made: here it lies on an output of the path. */
static void test_owned_output_of_a_direct_call(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_model g = {.name = "g",
                  .inputs = 1,
                  .outputs = 2,
                  .steps = {P_VIEW(1, 0, 1), P_RETURN(1), P_RETURN(0)},
                  .owned = {0},
                  .owned_count = 1,
                  .skip = "it is for the test"};
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), direct = tt_add(&w, &g);
    for (int i = 0; i < 4; i++) {
        th_tensor *y, *mine, *same;
        tt_invocation(&w);
        y = tt_call(&w, inc, tt_new(&w, (float)i));
        tt_pair(&w, direct, tt_keep(&w, y), &mine, &same);
        T_TRUE(t, mine->storage != y->storage && same->storage == y->storage);
        tt_drop(&w, same);
        tt_drop(&w, y);
        tt_invocation(&w);
        tt_drop(&w, tt_call(&w, inc, tt_new(&w, 100)));
        tt_ramp(&w, mine, (float)i + 2, 1);
        tt_drop(&w, mine);
    }
}

/* A function that is removed while the path has several warm-ups of it. */
static void test_removed_after_several_warm_ups(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = INC;
    tt_open(t, &w, kind);
    uint32_t gone = tt_add(&w, &f), stays = tt_add(&w, &g);
    th_tensor *a = tt_call(&w, gone, tt_new_of(&w, 0, 4, 1)), *b = tt_call(&w, gone, tt_new_of(&w, 0, 6, 1));
    T_OK(t, rondo_tree_remove_function(w.tree, gone));
    T_EQ(t, tt_info(&w).functions, 2); /* its outputs are in use */
    tt_ramp(&w, a, 2, 1);
    tt_drop(&w, a);
    tt_drop(&w, b);
    for (int i = 0; i < 3; i++) {
        th_tensor *y = tt_call(&w, stays, tt_new(&w, (float)i));
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
    }
    T_EQ(t, tt_info(&w).functions, 1);
}

/* The same, and the path is left with its pool. */
static void test_removed_and_reset(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *a = tt_call(&w, id, tt_new_of(&w, 0, 4, 1)), *b = tt_call(&w, id, tt_new_of(&w, 0, 6, 1));
    T_OK(t, rondo_tree_remove_function(w.tree, id));
    T_OK(t, rondo_tree_reset(w.tree));
    T_EQ(t, tt_info(&w).functions, 0);
    tt_ramp(&w, a, 2, 1);
    tt_ramp(&w, b, 2, 1);
    tt_drop(&w, a);
    tt_drop(&w, b);
}

/* Where outputs move out of the way, an input that is one stays the caller's: what is written to it is seen. */
static void test_written_input_moves_and_stays_the_callers(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_model g = {.name = "g",
                  .inputs = 1,
                  .outputs = 1,
                  .steps = {P_ADDS_IN(0, 10), P_VIEW(1, 0, 1), P_RETURN(1)},
                  .mutated = {0},
                  .mutated_count = 1};
    tt_prepare(t, &w, kind);
    w.options.conflict = RONDO_TREE_CONFLICT_COPY;
    tt_start(&w);
    uint32_t inc = tt_add(&w, &f), write = tt_add(&w, &g);
    for (int i = 0; i < 5; i++) {
        tt_invocation(&w);
        th_tensor *x = tt_call(&w, inc, tt_new(&w, (float)i));
        rondo_tree_mark_step(w.tree);
        th_tensor *y = tt_call(&w, write, tt_keep(&w, x));
        T_TRUE(t, y->storage == x->storage);
        tt_ramp(&w, x, (float)i + 11, 1);
        tt_ramp(&w, y, (float)i + 12, 1);
        tt_drop(&w, x);
        tt_drop(&w, y);
    }
    T_EQ(t, tt_info(&w).carried, 5);
}

/* Launches of a sealed sequence that go as one, but for those that somebody could not wait for. */
static void sealed_counts(tt_world *w, tt_kind kind, uint32_t *id, th_model *f, th_tensor *x[3]) {
    tt_prepare(w->t, w, kind);
    w->options.seal_after = 1;
    w->table.flags |= RONDO_TENSOR_HOST_FLUSHES;
    w->ops.flags |= RONDO_GRAPH_OPS_CHILD_GRAPHS;
    tt_start(w);
    for (int k = 0; k < 3; k++) {
        id[k] = tt_add(w, &f[k]);
        x[k] = tt_new(w, 0);
    }
}

static void test_flush_within_a_sealed_sequence(rondo_test *t, tt_kind kind) {
    tt_world w = {.t = t};
    th_model f[3] = {COUNT, COUNT, COUNT};
    uint32_t id[3];
    th_tensor *x[3];
    sealed_counts(&w, kind, id, f, x);
    for (int i = 0; i < 24; i++) {
        th_tensor *y[3];
        tt_invocation(&w);
        for (int k = 0; k < 3; k++) {
            y[k] = tt_call(&w, id[k], tt_keep(&w, x[k]));
            if (i >= 8 && i % 3 == k) T_OK(t, rondo_tree_flush(w.tree));
            if (i >= 16 && i % 3 != k) T_OK(t, rondo_tree_flush(w.tree));
        }
        for (int k = 0; k < 3; k++) {
            tt_ramp(&w, y[k], (float)i + 1, 1);
            tt_ramp(&w, x[k], (float)i + 1, 1); /* each once */
            tt_drop(&w, y[k]);
        }
    }
    T_TRUE(t, tt_info(&w).sealed >= 60);
    for (int k = 0; k < 3; k++) tt_drop(&w, x[k]);
}

/* What is owed is launched before the sequence is given up for a function that goes. */
static void test_removed_within_a_sealed_sequence(rondo_test *t, tt_kind kind) {
    tt_world w = {.t = t};
    th_model f[3] = {COUNT, COUNT, COUNT};
    uint32_t id[3];
    th_tensor *x[3], *y[3];
    sealed_counts(&w, kind, id, f, x);
    for (int i = 0; i < 8; i++) {
        tt_invocation(&w);
        for (int k = 0; k < 3; k++) y[k] = tt_call(&w, id[k], tt_keep(&w, x[k]));
        for (int k = 0; k < 3; k++) tt_drop(&w, y[k]);
    }
    tt_invocation(&w);
    y[0] = tt_call(&w, id[0], tt_keep(&w, x[0]));
    T_OK(t, rondo_tree_remove_function(w.tree, id[2]));
    tt_ramp(&w, y[0], 9, 1);
    tt_ramp(&w, x[0], 9, 1);
    T_TRUE(t, tt_info(&w).sealed > 0);
    tt_drop(&w, y[0]);
    for (int k = 0; k < 3; k++) tt_drop(&w, x[k]);
}

/* A launch that fails is told, and made at the next occasion. */
static void test_owed_launch_fails(rondo_test *t, tt_kind kind) {
    tt_world w = {.t = t};
    th_model f[3] = {COUNT, COUNT, COUNT};
    uint32_t id[3];
    th_tensor *x[3], *y[3];
    sealed_counts(&w, kind, id, f, x);
    for (int i = 0; i < 20; i++) {
        tt_invocation(&w);
        for (int k = 0; k < 3; k++) {
            y[k] = tt_call(&w, id[k], tt_keep(&w, x[k]));
            if (i < 8 || k != 1) continue;
            w.faults.entry = TT_FAULT_REPLAY;
            w.faults.nth = 1u + (uint64_t)i % 2u; /* of the two that are owed */
            T_FAILS(t, rondo_tree_flush(w.tree), DEVICE_LOST, "REPLAY was made to fail");
        }
        for (int k = 0; k < 3; k++) {
            tt_ramp(&w, y[k], (float)i + 1, 1);
            tt_ramp(&w, x[k], (float)i + 1, 1);
            tt_drop(&w, y[k]);
        }
    }
    T_TRUE(t, tt_info(&w).sealed >= 40);
    for (int k = 0; k < 3; k++) tt_drop(&w, x[k]);
}

/* A recording that fails after it was given an output of the path that nobody else has: the output comes back, with the
 * memory that it had, and what is allocated next lies elsewhere. */
static void test_given_input_of_a_failed_recording(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, h = INC;
    th_model g = {.name = "g",
                  .inputs = 1,
                  .outputs = 2,
                  .steps = {P_FAIL(1 << RONDO_TREE_RECORD), P_VIEW(1, 0, 1), P_RETURN(0), P_RETURN(1)}};
    tt_prepare(t, &w, kind);
    w.options.record_after = 1;
    tt_start(&w);
    uint32_t inc = tt_add(&w, &f), other = tt_add(&w, &h), fails = tt_add(&w, &g);
    for (int i = 0; i < 4; i++) {
        th_tensor *a, *b;
        tt_invocation(&w);
        tt_pair(&w, fails, tt_call(&w, inc, tt_new(&w, (float)i)), &a, &b);
        T_EQ(t, tt_info(&w).live, 1);
        T_EQ(t, tt_live(&w), i ? 0 : 1); /* replays know nothing of blocks */
        T_TRUE(t, a->storage == b->storage);
        th_tensor *y = tt_call(&w, other, tt_new(&w, 100));
        tt_ramp(&w, y, 101, 1);
        tt_ramp(&w, a, (float)i + 1, 1);
        tt_ramp(&w, b, (float)i + 2, 1);
        tt_drop(&w, y);
        tt_drop(&w, a);
        tt_ramp(&w, b, (float)i + 2, 1);
        tt_drop(&w, b);
        T_EQ(t, tt_live(&w), 0);
    }
}

/* A warm-up that fails after it put memory away: the pool is left to that memory, and nobody else is blamed for it. */
static void test_failed_warm_up_leaves_memory(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f",
                  .inputs = 1,
                  .outputs = 1,
                  .steps = {P_ADDS(1, 0, 1), P_KEEP(1), P_FAIL(1 << RONDO_TREE_WARMUP), P_RETURN(1)}};
    th_model g = INC;
    tt_open(t, &w, kind);
    uint32_t fails = tt_add(&w, &f), inc = tt_add(&w, &g);
    th_tensor *y = NULL;
    T_FAILS(t, tt_try(&w, fails, TT_IN(tt_new(&w, 1)), 1, &y), KERNEL_FAILED, "on purpose");
    T_EQ(t, tt_info(&w).pool.user, 0);
    for (int i = 0; i < 4; i++) {
        tt_invocation(&w);
        y = tt_call(&w, inc, tt_new(&w, (float)i));
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
    }
    tt_counts(&w, 1, 1, 2, 0);
    T_EQ(t, tt_function(&w, inc).stopped, RONDO_TREE_REASON_NONE);
}

/* A constant that is given as an input, too, is not bound to where the next input lies. */
static void test_constant_as_an_input(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {
        .name = "f", .inputs = 1, .outputs = 2, .steps = {P_CONSTANT(1, 0), P_ADD(2, 0, 1), P_RETURN(1), P_RETURN(2)}};
    tt_prepare(t, &w, kind);
    w.ops.flags |= RONDO_GRAPH_OPS_REBIND;
    w.options.record_after = 1;
    tt_start(&w);
    th_tensor *constant = tt_new(&w, 1);
    f.constants[f.constant_count++] = th_keep(&w.host, constant);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 4; i++) {
        th_tensor *a, *b;
        tt_invocation(&w);
        tt_pair(&w, id, i ? tt_new(&w, 10) : tt_keep(&w, constant), &a, &b);
        T_TRUE(t, a->storage == constant->storage);
        tt_ramp(&w, a, 1, 1);
        tt_ramp(&w, b, i ? 11 : 2, 2);
        tt_drop(&w, a);
        tt_drop(&w, b);
    }
    tt_drop(&w, constant);
    T_EQ(t, tt_info(&w).directs, 0);
}

/* Some inputs are copied and others bound: the slots of those have no gaps between them. */
static void test_inputs_that_are_copied_and_bound(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f",
                  .inputs = 4,
                  .outputs = 1,
                  .steps = {P_VIEW(4, 0, 1), P_ADD(5, 4, 1), P_ADD(6, 5, 2), P_ADD(7, 6, 3), P_RETURN(7)},
                  .statics = {2},
                  .static_count = 1};
    tt_prepare(t, &w, kind);
    w.ops.flags |= RONDO_GRAPH_OPS_REBIND;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    th_tensor *parameter = tt_new_of(&w, 0, 3, 1000);
    for (int i = 0; i < 5; i++) {
        tt_invocation(&w);
        th_tensor *x = tt_new(&w, (float)i), *view = tt_eager(&w, (th_step)P_VIEW(1, 0, 1), x), *y = NULL;
        th_tensor *const inputs[4] = {x, view, tt_keep(&w, parameter), tt_new_of(&w, 0, 3, 100)};
        T_OK(t, tt_try(&w, id, 4, inputs, 1, &y));
        tt_ramp(&w, y, 1102 + 2 * (float)i, 4);
        tt_drop(&w, y);
    }
    tt_drop(&w, parameter);
    tt_counts(&w, 1, 1, 3, 0);
    T_EQ(t, tt_function(&w, id).copies, 6); /* of x and its view */
}

/* What a step before made on one stream is copied behind it by a call on another, which nobody else has ordered. */
static void taken_over_by_another_stream(rondo_test *t, tt_kind kind, rondo_tree_conflict conflict) {
    tt_world w;
    th_model f = INC;
    float values[TT_FLOATS];
    tt_prepare(t, &w, kind);
    w.options.conflict = conflict;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 6; i++) {
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i)), *z = NULL;
        rondo_tree_mark_step(w.tree);
        T_OK(t, tt_try_on(&w, w.other, id, TT_IN(tt_keep(&w, y)), 1, &z));
        T_OK(t, tt_read_on(&w, w.other, z, values));
        for (int k = 0; k < TT_FLOATS; k++) T_NEAR(t, values[k], i + 2 + k, 0);
        if (conflict == RONDO_TREE_CONFLICT_COPY) {
            T_OK(t, tt_read_on(&w, w.other, y, values));
            for (int k = 0; k < TT_FLOATS; k++) T_NEAR(t, values[k], i + 1 + k, 0);
        }
        tt_drop(&w, y);
        tt_drop(&w, z);
        T_OK(t, md_stream_wait(&w.device, w.stream, w.other));
        rondo_tree_mark_step(w.tree);
    }
}

static void test_carried_to_another_stream(rondo_test *t, tt_kind kind) {
    taken_over_by_another_stream(t, kind, RONDO_TREE_CONFLICT_ERROR);
}
static void test_moved_by_another_stream(rondo_test *t, tt_kind kind) {
    taken_over_by_another_stream(t, kind, RONDO_TREE_CONFLICT_COPY);
}

#define TESTS(X)                                      \
    X(test_inputs_of_an_empty_recording)              \
    X(test_bound_inputs_of_an_empty_recording)        \
    X(test_owned_output_of_a_direct_call)             \
    X(test_removed_after_several_warm_ups)            \
    X(test_removed_and_reset)                         \
    X(test_written_input_moves_and_stays_the_callers) \
    X(test_flush_within_a_sealed_sequence)            \
    X(test_removed_within_a_sealed_sequence)          \
    X(test_owed_launch_fails)                         \
    X(test_given_input_of_a_failed_recording)         \
    X(test_failed_warm_up_leaves_memory)              \
    X(test_constant_as_an_input)                      \
    X(test_inputs_that_are_copied_and_bound)          \
    X(test_carried_to_another_stream)                 \
    X(test_moved_by_another_stream)

TT_MAIN(TESTS)
