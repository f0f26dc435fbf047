/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs that a function writes: which of them can be in a recording, and that each call writes once. */
#include "tree/tree_testing.h"

/* x += 1; the result is another tensor */
#define BUMP                                                                                                 \
    {                                                                                                        \
        .name = "bump", .inputs = 1, .outputs = 1, .steps = {P_ADDS_IN(0, 1), P_MULS(1, 0, 2), P_RETURN(1)}, \
        .mutated = {0}, .mutated_count = 1                                                                   \
    }
#define INC                                                                                 \
    {                                                                                       \
        .name = "inc", .inputs = 1, .outputs = 1, .steps = { P_ADDS(1, 0, 1), P_RETURN(1) } \
    }

static void test_mutation_of_an_ordinary_input(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = BUMP;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *x = tt_new(&w, 0);
    for (int i = 1; i <= 5; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_keep(&w, x));
        tt_ramp(&w, x, (float)i, 1);
        tt_ramp(&w, y, 2 * (float)i, 2);
        tt_drop(&w, y);
    }
    tt_counts(&w, 0, 0, 0, 5);
    T_EQ(t, tt_info(&w).roots, 0);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_MUTATED), 5);
    T_EQ(t, w.warnings, 1); /* once a function */
    T_TRUE(t, strstr(w.warning, "bump") && strstr(w.warning, "mutated inputs"));
}

static void test_mutation_of_a_buffer(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = BUMP;
    f.statics[f.static_count++] = 0;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *buffer = tt_new(&w, 0);
    for (int i = 1; i <= 6; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_keep(&w, buffer));
        tt_ramp(&w, buffer, (float)i, 1); /* once in warm-up, record and replay */
        tt_ramp(&w, y, 2 * (float)i, 2);
        tt_drop(&w, y);
    }
    tt_counts(&w, 1, 1, 4, 0);
    T_EQ(t, w.warnings, 0);
}

static void test_mutation_of_an_output_of_the_path(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = BUMP;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), bump = tt_add(&w, &g);
    for (int i = 0; i < 6; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i)), *z = tt_call(&w, bump, tt_keep(&w, y));
        tt_ramp(&w, y, (float)i + 2, 1);
        tt_ramp(&w, z, 2 * (float)i + 4, 2);
        tt_drop(&w, y);
        tt_drop(&w, z);
    }
    tt_counts(&w, 2, 2, 8, 0);
    T_EQ(t, w.warnings, 0);
}

/* An output of the path now, an ordinary tensor then, and back. */
static void test_mutation_switches(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = BUMP;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), bump = tt_add(&w, &g);
    for (int i = 0; i < 12; i++) {
        bool ordinary = i >= 3 && i % 2;
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i));
        th_tensor *x = ordinary ? tt_eager(&w, (th_step)P_ADDS(1, 0, 5), y) : tt_keep(&w, y);
        th_tensor *z = tt_call(&w, bump, tt_keep(&w, x));
        float first = (float)i + (ordinary ? 7 : 2);
        tt_ramp(&w, x, first, 1);
        tt_ramp(&w, z, 2 * first, 2);
        tt_ramp(&w, y, (float)i + (ordinary ? 1 : 2), 1);
        tt_drop(&w, x);
        tt_drop(&w, y);
        tt_drop(&w, z);
    }
    T_EQ(t, tt_function(&w, bump).directs, 5);
    T_EQ(t, tt_reason(&w, bump, RONDO_TREE_REASON_MUTATED), 5);
    T_EQ(t, tt_function(&w, inc).directs, 0);
    T_EQ(t, w.warnings, 1); /* whatever parents it has */
}

/* The same function behind two parents: it warns once. */
static void test_mutation_warns_once_for_all_parents(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = BUMP,
             h = {.name = "double", .inputs = 1, .outputs = 1, .steps = {P_MULS(1, 0, 2), P_RETURN(1)}};
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &h), bump = tt_add(&w, &g);
    for (int i = 0; i < 8; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, i % 2 ? inc : twice, tt_new(&w, 1)), *x = tt_new(&w, (float)i);
        th_tensor *z = tt_call(&w, bump, tt_keep(&w, x));
        tt_ramp(&w, x, (float)i + 1, 1);
        tt_drop(&w, x);
        tt_drop(&w, y);
        tt_drop(&w, z);
    }
    T_EQ(t, w.warnings, 1);
    T_EQ(t, tt_function(&w, bump).directs, 8);
    tt_counts(&w, 2, 2, 4, 8);
}

/* One function writes a buffer, the next one reads it: in every phase it sees what was written. */
static void test_mutation_reaches_the_next_function(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "write",
                  .inputs = 2,
                  .outputs = 1,
                  .steps = {P_COPY_IN(1, 0), P_ADDS(2, 0, 1), P_RETURN(2)},
                  .statics = {1},
                  .static_count = 1,
                  .mutated = {1},
                  .mutated_count = 1};
    th_model g = {.name = "read",
                  .inputs = 2,
                  .outputs = 1,
                  .steps = {P_ADD(2, 0, 1), P_RETURN(2)},
                  .statics = {1},
                  .static_count = 1};
    tt_open(t, &w, kind);
    uint32_t write = tt_add(&w, &f), read = tt_add(&w, &g);
    th_tensor *buffer = tt_new(&w, 0);
    for (int i = 0; i < 6; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call2(&w, write, tt_new(&w, (float)i), tt_keep(&w, buffer));
        th_tensor *z = tt_call2(&w, read, y, tt_keep(&w, buffer));
        tt_ramp(&w, z, 2 * (float)i + 1, 2);
        tt_ramp(&w, buffer, (float)i, 1);
        tt_drop(&w, z);
    }
    tt_counts(&w, 2, 2, 8, 0);
}

/* A constant of the function that it writes. */
static void test_mutation_of_a_constant(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f",
                  .inputs = 1,
                  .outputs = 1,
                  .steps = {P_CONSTANT(1, 0), P_ADDS_IN(1, 1), P_ADD(2, 0, 1), P_RETURN(2)}};
    tt_open(t, &w, kind);
    th_tensor *constant = tt_new(&w, 0);
    f.constants[f.constant_count++] = th_keep(&w.host, constant);
    uint32_t id = tt_add(&w, &f);
    for (int i = 1; i <= 6; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_new(&w, 100));
        tt_ramp(&w, constant, (float)i, 1);
        tt_ramp(&w, y, 100 + (float)i, 2);
        tt_drop(&w, y);
    }
    tt_counts(&w, 1, 1, 4, 0);
}

/* The function writes an input and returns it. */
static void test_mutated_input_is_returned(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_model g = {.name = "g",
                  .inputs = 1,
                  .outputs = 1,
                  .steps = {P_ADDS_IN(0, 1), P_RETURN(0)},
                  .mutated = {0},
                  .mutated_count = 1};
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), bump = tt_add(&w, &g);
    for (int i = 0; i < 6; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i)), *z = tt_call(&w, bump, tt_keep(&w, y));
        T_TRUE(t, y->storage == z->storage);
        tt_ramp(&w, z, (float)i + 2, 1);
        tt_eager_add(&w, z, 1);
        tt_ramp(&w, y, (float)i + 3, 1);
        tt_drop(&w, y);
        tt_drop(&w, z);
    }
    tt_counts(&w, 2, 2, 8, 0);
}

/* Two forwards hand on what a third one writes: a loop that updates its state in place. */
static void test_state_in_place(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_model g = {.name = "g",
                  .inputs = 2,
                  .outputs = 1,
                  .steps = {P_ADD(2, 0, 1), P_COPY_IN(0, 2), P_MULS(3, 2, 10), P_RETURN(3)},
                  .mutated = {0},
                  .mutated_count = 1};
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), accumulate = tt_add(&w, &g);
    for (int round = 0; round < 5; round++) {
        tt_invocation(&w);
        th_tensor *state = tt_call(&w, inc, tt_new(&w, -1)); /* 0, 1, 2, 3 */
        for (int i = 1; i <= 3; i++) {
            th_tensor *z = tt_call2(&w, accumulate, tt_keep(&w, state), tt_new(&w, (float)i));
            float sum = (float)(i * (i + 1) / 2);
            tt_ramp(&w, z, 10 * sum, (float)(10 * (i + 1)));
            tt_ramp(&w, state, sum, (float)(i + 1));
            tt_drop(&w, z);
        }
        tt_drop(&w, state);
    }
    T_EQ(t, tt_info(&w).directs, 0);
    T_EQ(t, tt_function(&w, accumulate).recordings, 3);
}

/* What it is handed was an output of the step that a mark has ended: the tree cannot write there for it. */
static void test_mutation_of_what_was_an_output(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = BUMP;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), bump = tt_add(&w, &g);
    for (int i = 0; i < 5; i++) {
        rondo_tree_mark_step(w.tree);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i));
        rondo_tree_mark_step(w.tree);
        th_tensor *z = tt_call(&w, bump, tt_keep(&w, y));
        tt_ramp(&w, z, 2 * (float)i + 4, 2);
        float values[TT_FLOATS];
        rondo_status status = tt_read(&w, y, values);
        if (status) T_EQ(t, rondo_status_code(status), RONDO_CODE_STALE); /* else it has what was written */
        else T_NEAR(t, values[0], (float)i + 2, 0);
        rondo_status_release(status);
        tt_drop(&w, y);
        tt_drop(&w, z);
    }
}

/* A scalar in host memory that the function writes, by the host: no replay would. Whether it is said to be static or not. */
static void host_scalar(rondo_test *t, tt_kind kind, bool is_static) {
    tt_world w;
    th_model f = {.name = "f",
                  .inputs = 2,
                  .outputs = 1,
                  .steps = {P_ADDH_IN(1, 1), P_ADDH(2, 0, 1), P_RETURN(2)},
                  .mutated = {1},
                  .mutated_count = 1,
                  .statics = {1},
                  .static_count = is_static};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *scalar = tt_in_host(&w, 10);
    for (int i = 1; i <= 5; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call2(&w, id, tt_new(&w, 0), tt_keep(&w, scalar));
        tt_ramp(&w, y, 10 + (float)i, 1);
        T_NEAR(t, *(const float *)md_memory(th_data(scalar)), 10 + i, 0);
        tt_drop(&w, y);
    }
    T_EQ(t, tt_function(&w, id).replays, 0);
}

static void test_mutation_of_a_host_scalar(rondo_test *t, tt_kind kind) { host_scalar(t, kind, false); }
static void test_mutation_of_a_static_host_scalar(rondo_test *t, tt_kind kind) { host_scalar(t, kind, true); }

#define TESTS(EACH, MODEL)                         \
    EACH(test_mutation_of_an_ordinary_input)       \
    EACH(test_mutation_of_a_buffer)                \
    EACH(test_mutation_of_an_output_of_the_path)   \
    EACH(test_mutation_switches)                   \
    EACH(test_mutation_warns_once_for_all_parents) \
    EACH(test_mutation_reaches_the_next_function)  \
    EACH(test_mutation_of_a_constant)              \
    EACH(test_mutation_of_a_host_scalar)           \
    EACH(test_mutation_of_a_static_host_scalar)    \
    EACH(test_mutated_input_is_returned)           \
    EACH(test_state_in_place)                      \
    EACH(test_mutation_of_what_was_an_output)

TT_MAIN_EACH(TESTS)
