/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a step ends and the next begins: invocations, marks, forwards that wait for their backward, values that go on. */
#include "tree/tree_testing.h"

#define INC                                                                                 \
    {                                                                                       \
        .name = "inc", .inputs = 1, .outputs = 1, .steps = { P_ADDS(1, 0, 1), P_RETURN(1) } \
    }
#define DOUBLE                                                                                 \
    {                                                                                          \
        .name = "double", .inputs = 1, .outputs = 1, .steps = { P_MULS(1, 0, 2), P_RETURN(1) } \
    }
/* y = x * w, and x for the backward; w is a parameter */
#define FORWARD                                                                                           \
    {                                                                                                     \
        .name = "forward", .inputs = 2, .outputs = 2,                                                     \
        .steps = {P_MUL(2, 0, 1), P_ADDS(3, 0, 0), P_RETURN(2), P_RETURN(3)}, .mode = RONDO_TREE_FORWARD, \
        .statics = {1}, .static_count = 1                                                                 \
    }
/* of the gradient of y, x and w: the gradients of x and of w */
#define BACKWARD                                                                                          \
    {                                                                                                     \
        .name = "backward", .inputs = 3, .outputs = 2,                                                    \
        .steps = {P_MUL(3, 0, 2), P_MUL(4, 0, 1), P_RETURN(3), P_RETURN(4)}, .mode = RONDO_TREE_BACKWARD, \
        .statics = {2}, .static_count = 1                                                                 \
    }

typedef struct training {
    tt_world *w;
    uint32_t forward, backward;
    th_tensor *parameter;
} training;

/* y of (x, x + 1, ...) * (w, w, ...), and what is saved. */
static void forward(training *n, float x, th_tensor **out_y, th_tensor **out_saved) {
    th_tensor *out[2];
    T_OK(n->w->t, tt_try(n->w, n->forward, TT_IN(tt_new(n->w, x), tt_keep(n->w, n->parameter)), 2, out));
    *out_y = out[0];
    *out_saved = out[1];
}

static void backward(training *n, th_tensor *gradient, th_tensor *saved, th_tensor **out_x, th_tensor **out_w) {
    th_tensor *out[2];
    T_OK(n->w->t, tt_try(n->w, n->backward, TT_IN(gradient, saved, tt_keep(n->w, n->parameter)), 2, out));
    *out_x = out[0];
    *out_w = out[1];
}

static th_tensor *constant(tt_world *w, float value) {
    th_tensor *x = tt_new(w, 0);
    T_OK(w->t, th_apply(w->stream, TH_END, x, x, NULL, value));
    return x;
}

static void training_open(training *n, tt_world *w, th_model *f, th_model *b) {
    *n = (training){w, tt_add(w, f), tt_add(w, b), constant(w, 3)};
}

/* The backward follows the forward in one path, on another thread's turn or not. */
static void test_forward_backward(rondo_test *t, tt_kind kind) {
    tt_world w;
    training n;
    th_model f = FORWARD, b = BACKWARD;
    tt_open(t, &w, kind);
    training_open(&n, &w, &f, &b);
    for (int i = 0; i < 6; i++) {
        th_tensor *y, *saved, *gx, *gw;
        tt_invocation(&w);
        forward(&n, (float)i, &y, &saved);
        tt_ramp(&w, y, 3 * (float)i, 3);
        T_EQ(t, tt_info(&w).live, 2);
        backward(&n, constant(&w, 2), saved, &gx, &gw); /* the tape gives what it saved away */
        T_EQ(t, tt_info(&w).live, 3);
        T_EQ(t, tt_info(&w).depth, 2);
        tt_ramp(&w, gx, 6, 0);
        tt_ramp(&w, gw, 2 * (float)i, 2);
        tt_drop(&w, y);
        T_EQ(t, tt_info(&w).live, 2);
        tt_drop(&w, gx);
        tt_drop(&w, gw);
        T_EQ(t, tt_info(&w).live, 0);
    }
    tt_counts(&w, 2, 2, 8, 0);
    T_EQ(t, tt_info(&w).roots, 1);
    T_EQ(t, tt_function(&w, n.backward).roots, 0);
}

/* One forward, two backwards of it: both find what was saved. */
static void test_two_backwards(rondo_test *t, tt_kind kind) {
    tt_world w;
    training n;
    th_model f = FORWARD, b = BACKWARD;
    tt_open(t, &w, kind);
    training_open(&n, &w, &f, &b);
    for (int i = 0; i < 6; i++) {
        th_tensor *y, *saved, *gx[2], *gw[2];
        tt_invocation(&w);
        forward(&n, (float)i, &y, &saved);
        for (int j = 0; j < 2; j++) backward(&n, constant(&w, 2), j ? saved : tt_keep(&w, saved), &gx[j], &gw[j]);
        for (int j = 0; j < 2; j++) {
            tt_ramp(&w, gx[j], 6, 0);
            tt_ramp(&w, gw[j], 2 * (float)i, 2);
        }
        tt_ramp(&w, y, 3 * (float)i, 3);
        tt_drop(&w, y);
        for (int j = 0; j < 2; j++) {
            tt_drop(&w, gx[j]);
            tt_drop(&w, gw[j]);
        }
    }
    tt_counts(&w, 3, 3, 12, 0);
}

/* Three forwards, their backwards in every order: each finds its own forward's numbers. */
static void test_backwards_in_any_order(rondo_test *t, tt_kind kind) {
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    tt_world w;
    training n;
    th_model f = FORWARD, b = BACKWARD;
    tt_open(t, &w, kind);
    training_open(&n, &w, &f, &b);
    for (int i = 0; i < 18; i++) {
        th_tensor *y[3], *saved[3];
        tt_invocation(&w);
        for (int j = 0; j < 3; j++) forward(&n, (float)(i + 10 * j), &y[j], &saved[j]);
        for (int j = 0; j < 3; j++) {
            int which = orders[i % 6][j];
            th_tensor *gx, *gw;
            backward(&n, constant(&w, 2), saved[which], &gx, &gw);
            tt_ramp(&w, gw, 2 * (float)(i + 10 * which), 2);
            tt_ramp(&w, y[which], 3 * (float)(i + 10 * which), 3);
            tt_drop(&w, y[which]);
            tt_drop(&w, gx);
            tt_drop(&w, gw);
        }
    }
    T_EQ(t, tt_info(&w).directs, 0);
    T_TRUE(t, tt_info(&w).replays >= 30);
}

/* Sizes that change from step to step. */
static void test_dynamic_backward(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {
        .name = "f", .inputs = 1, .outputs = 1, .steps = {P_MUL(1, 0, 0), P_RETURN(1)}, .mode = RONDO_TREE_FORWARD};
    th_model b = {.name = "b",
                  .inputs = 2,
                  .outputs = 1,
                  .steps = {P_MUL(2, 0, 1), P_MULS(3, 2, 2), P_RETURN(3)},
                  .mode = RONDO_TREE_BACKWARD};
    tt_open(t, &w, kind);
    uint32_t square = tt_add(&w, &f), derive = tt_add(&w, &b);
    for (int i = 0; i < 8; i++) {
        int64_t size = i % 2 ? 5 : 9;
        float values[9];
        tt_invocation(&w);
        th_tensor *x = tt_new_of(&w, 0, size, (float)i), *y = tt_call(&w, square, tt_keep(&w, x));
        th_tensor *g = tt_call2(&w, derive, tt_new_of(&w, 0, size, 1), x);
        T_OK(t, tt_read(&w, y, values));
        for (int j = 0; j < size; j++) T_NEAR(t, values[j], (i + j) * (i + j), 0);
        T_OK(t, tt_read(&w, g, values));
        for (int j = 0; j < size; j++) T_NEAR(t, values[j], 2 * (1 + j) * (i + j), 0);
        tt_drop(&w, y);
        tt_drop(&w, g);
    }
    tt_counts(&w, 4, 4, 8, 0);
}

/* While a backward is due a new invocation ends nothing; one backward is enough. */
static void test_forward_generation(rondo_test *t, tt_kind kind) {
    tt_world w;
    training n;
    th_model f = FORWARD, b = BACKWARD;
    tt_open(t, &w, kind);
    training_open(&n, &w, &f, &b);
    for (int i = 0; i < 5; i++) {
        th_tensor *y[2], *saved[2], *gx, *gw;
        for (int j = 0; j < 2; j++) {
            tt_invocation(&w);
            forward(&n, (float)(i + 10 * j), &y[j], &saved[j]);
        }
        tt_ramp(&w, y[0], 3 * (float)i, 3);
        tt_ramp(&w, y[1], 3 * (float)(i + 10), 3);
        T_EQ(t, tt_info(&w).live, 4);
        backward(&n, constant(&w, 1), saved[1], &gx, &gw);
        tt_ramp(&w, gw, (float)(i + 10), 1);
        tt_ramp(&w, saved[0], (float)i, 1);
        tt_drop(&w, gx);
        tt_drop(&w, gw);
        tt_drop(&w, y[1]);
        T_EQ(t, tt_info(&w).live, 2);
        tt_invocation(&w);
        th_tensor *next, *next_saved;
        forward(&n, 1, &next, &next_saved); /* a new step: the old forward's outputs are used up */
        tt_stale(&w, y[0], "overwritten");
        tt_ramp(&w, next, 3, 3);
        tt_drop(&w, y[0]);
        tt_drop(&w, saved[0]);
        tt_drop(&w, next);
        tt_drop(&w, next_saved);
    }
    T_EQ(t, tt_info(&w).directs, 0);
}

/* Forwards whose outputs are kept and whose backward never comes: said once, nothing recorded, everything right. */
static void test_warn_on_pending_backward(rondo_test *t, tt_kind kind) {
    tt_world w;
    training n;
    th_model f = FORWARD, b = BACKWARD;
    th_tensor *y[6], *saved[6];
    tt_open(t, &w, kind);
    training_open(&n, &w, &f, &b);
    for (int i = 0; i < 6; i++) {
        tt_invocation(&w);
        forward(&n, (float)i, &y[i], &saved[i]);
    }
    for (int i = 0; i < 6; i++) tt_ramp(&w, y[i], 3 * (float)i, 3);
    tt_counts(&w, 6, 0, 0, 0);
    T_EQ(t, w.warnings, 1);
    T_TRUE(t, strstr(w.warning, "forward") && strstr(w.warning, "backward"));
    T_TRUE(t, tt_reason(&w, n.forward, RONDO_TREE_REASON_PENDING_BACKWARD) >= 1);
}

/* Forwards whose outputs are dropped wait for no backward. */
static void test_forward_backward_not_called(rondo_test *t, tt_kind kind) {
    tt_world w;
    training n;
    th_model f = FORWARD, b = BACKWARD;
    tt_open(t, &w, kind);
    training_open(&n, &w, &f, &b);
    for (int i = 0; i < 6; i++) {
        th_tensor *y, *saved;
        tt_invocation(&w);
        forward(&n, (float)i, &y, &saved);
        tt_ramp(&w, y, 3 * (float)i, 3);
        tt_drop(&w, y);
        tt_drop(&w, saved);
    }
    tt_counts(&w, 1, 1, 4, 0);
    T_EQ(t, tt_reason(&w, n.forward, RONDO_TREE_REASON_PENDING_BACKWARD), 0);
    T_EQ(t, w.warnings, 0);
}

/* The backward runs outside the tree. */
static void test_forward_with_backward_elsewhere(rondo_test *t, tt_kind kind) {
    tt_world w;
    training n;
    th_model f = FORWARD, b = BACKWARD;
    th_tensor *y = NULL, *saved = NULL, *before = NULL, *before_saved = NULL;
    tt_open(t, &w, kind);
    training_open(&n, &w, &f, &b);
    for (int i = 0; i < 6; i++) {
        tt_invocation(&w);
        forward(&n, (float)i, &y, &saved);
        tt_ramp(&w, y, 3 * (float)i, 3);
        rondo_tree_set_running_backward(w.tree);
        if (before) tt_stale(&w, before, "overwritten");
        tt_drop(&w, before);
        tt_drop(&w, before_saved);
        before = y;
        before_saved = saved;
    }
    tt_counts(&w, 1, 1, 4, 0);
    T_EQ(t, w.warnings, 0);
}

/* A backward that is refused by a gate is one, too. */
static void test_forward_with_skipped_backward(rondo_test *t, tt_kind kind) {
    tt_world w;
    training n;
    th_model f = FORWARD, b = BACKWARD;
    th_tensor *before = NULL;
    b.skip = "disabling graphs due to incompatible op item";
    tt_open(t, &w, kind);
    training_open(&n, &w, &f, &b);
    for (int i = 0; i < 6; i++) {
        th_tensor *y, *saved, *gx, *gw;
        tt_invocation(&w);
        forward(&n, (float)i, &y, &saved);
        backward(&n, constant(&w, 2), saved, &gx, &gw);
        tt_ramp(&w, gw, 2 * (float)i, 2);
        tt_drop(&w, gx);
        tt_drop(&w, gw);
        tt_drop(&w, before);
        before = y; /* alive when the next forward comes */
    }
    tt_counts(&w, 1, 1, 4, 6);
    T_EQ(t, tt_info(&w).recordings, 1);
    T_EQ(t, tt_reason(&w, n.backward, RONDO_TREE_REASON_SKIPPED), 6);
    T_EQ(t, w.warnings, 0);
}

/* Whoever marks steps does not wait for backwards: by the tree's call, and by the host's count. */
static void mark_step(rondo_test *t, tt_kind kind, bool of_host) {
    tt_world w;
    training n;
    th_model f = FORWARD, b = BACKWARD;
    th_tensor *y, *saved, *before = NULL, *before_saved = NULL;
    tt_open(t, &w, kind);
    training_open(&n, &w, &f, &b);
    for (int i = 0; i < 6; i++) {
        if (of_host) tt_mark(&w);
        else rondo_tree_mark_step(w.tree);
        forward(&n, (float)i, &y, &saved);
        tt_ramp(&w, y, 3 * (float)i, 3);
        if (before) tt_stale(&w, before, "overwritten");
        tt_drop(&w, before);
        tt_drop(&w, before_saved);
        before = y;
        before_saved = saved;
    }
    tt_counts(&w, 1, 1, 4, 0);
    T_EQ(t, w.warnings, 0);
    T_TRUE(t, tt_info(&w).steps >= 5);
}

static void test_mark_step(rondo_test *t, tt_kind kind) { mark_step(t, kind, false); }
static void test_mark_step_of_the_host(rondo_test *t, tt_kind kind) { mark_step(t, kind, true); }

/* A host that counts nothing: only marks divide, and deaths. */
static void test_host_without_generations(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_tensor *old[3] = {0}, *y[3];
    tt_prepare(t, &w, kind);
    w.table.generation = NULL;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 5; i++) {
        rondo_tree_mark_step(w.tree);
        for (int j = 0; j < 3; j++) y[j] = tt_call(&w, id, tt_new(&w, (float)(i + 10 * j)));
        for (int j = 0; j < 3; j++) {
            tt_ramp(&w, y[j], (float)(i + 10 * j + 1), 1);
            if (old[j]) tt_stale(&w, old[j], "overwritten");
            tt_drop(&w, old[j]);
            old[j] = y[j];
        }
        T_EQ(t, tt_info(&w).depth, 3);
    }
    tt_counts(&w, 3, 3, 9, 0);
    for (int j = 0; j < 3; j++) tt_drop(&w, y[j]);
    for (int i = 0; i < 3; i++) { /* everything is dead: some recording fits */
        th_tensor *z = tt_call(&w, id, tt_new(&w, (float)i));
        tt_ramp(&w, z, (float)i + 1, 1);
        tt_drop(&w, z);
    }
    tt_counts(&w, 3, 3, 12, 0);
    T_TRUE(t, tt_info(&w).recordings == 3);
}

/* What a new invocation is fed with belongs to its step. */
static void test_output_of_the_invocation_before(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    th_tensor *y = NULL, *z = NULL;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g);
    for (int i = 0; i < 6; i++) {
        th_tensor *before = y;
        tt_drop(&w, z);
        tt_invocation(&w);
        y = tt_call(&w, inc, tt_new(&w, (float)i));
        if (before) tt_stale(&w, before, "overwritten");
        tt_drop(&w, before);
        tt_invocation(&w);
        z = tt_call(&w, twice, tt_keep(&w, y));
        tt_ramp(&w, z, 2 * (float)i + 2, 2);
        tt_ramp(&w, y, (float)i + 1, 1); /* still alive */
        T_EQ(t, tt_info(&w).depth, 2);
    }
    tt_counts(&w, 2, 2, 8, 0);
    T_EQ(t, tt_info(&w).carried, 0);
}

/* f(f(x)), each an invocation of its own. */
static void test_function_of_itself(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 6; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i));
        tt_invocation(&w);
        th_tensor *z = tt_call(&w, id, tt_keep(&w, y));
        tt_ramp(&w, z, (float)i + 2, 1);
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
        tt_drop(&w, z);
    }
    tt_counts(&w, 2, 2, 8, 0);
}

/* x = f(x) without end: the path does not grow without end, and no value is lost. */
static void test_loop(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_prepare(t, &w, kind);
    w.options.loop_limit = 3;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    th_tensor *x = tt_new(&w, 0);
    for (int i = 1; i <= 60; i++) {
        tt_invocation(&w);
        x = tt_call(&w, id, x);
        T_TRUE(t, tt_info(&w).depth <= 4);
        if (i % 7 == 0) tt_ramp(&w, x, (float)i, 1);
    }
    tt_ramp(&w, x, 60, 1);
    T_TRUE(t, tt_info(&w).recordings <= 4);
    T_TRUE(t, tt_info(&w).carried >= 10);
    T_TRUE(t, tt_info(&w).replays >= 40);
    T_EQ(t, tt_info(&w).directs, 0);
}

/* The caller also holds what goes into the loop. */
static void test_loop_whose_inputs_are_kept(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_tensor *held[24];
    tt_prepare(t, &w, kind);
    w.options.loop_limit = 2;
    w.options.conflict = RONDO_TREE_CONFLICT_COPY;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    th_tensor *x = tt_new(&w, 0);
    for (int i = 0; i < 24; i++) {
        tt_invocation(&w);
        held[i] = x;
        x = tt_call(&w, id, tt_keep(&w, x));
    }
    tt_ramp(&w, x, 24, 1);
    for (int i = 0; i < 24; i++) tt_ramp(&w, held[i], (float)i, 1);
}

/* A mark ends the step also for what is handed in: its value goes over. */
static void test_marked_step_with_an_output_as_input(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g);
    for (int i = 0; i < 6; i++) {
        rondo_tree_mark_step(w.tree);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i));
        rondo_tree_mark_step(w.tree);
        th_tensor *z = tt_call(&w, twice, y);
        tt_ramp(&w, z, 2 * (float)i + 2, 2);
        T_EQ(t, tt_info(&w).depth, 1);
        tt_drop(&w, z);
    }
    T_EQ(t, tt_info(&w).carried, 6);
    tt_counts(&w, 2, 2, 8, 0);
    T_EQ(t, tt_info(&w).roots, 2);
}

/* A value that goes from step to step, as a state does. */
static void test_state_over_marked_steps(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {
        .name = "f", .inputs = 2, .outputs = 2, .steps = {P_ADD(2, 0, 1), P_MULS(3, 2, 10), P_RETURN(2), P_RETURN(3)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *state = constant(&w, 0);
    float sum = 0;
    for (int i = 0; i < 12; i++) {
        th_tensor *y[2];
        rondo_tree_mark_step(w.tree);
        T_OK(t, tt_try(&w, id, TT_IN(state, constant(&w, (float)i)), 2, y));
        sum += (float)i;
        tt_ramp(&w, y[1], 10 * sum, 0);
        tt_drop(&w, y[1]);
        state = y[0];
    }
    tt_ramp(&w, state, sum, 0);
    tt_counts(&w, 1, 1, 10, 0);
    T_EQ(t, tt_info(&w).carried, 11);
}

/* One input twice, or two views of it. */
static void test_carried_aliases(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_model g = {.name = "g", .inputs = 2, .outputs = 1, .steps = {P_ADD(2, 0, 1), P_RETURN(2)}};
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), add = tt_add(&w, &g);
    for (int i = 0; i < 6; i++) {
        rondo_tree_mark_step(w.tree);
        th_tensor *y = tt_call(&w, inc, tt_new_of(&w, 0, 5, (float)i));
        th_tensor *a = tt_eager(&w, (th_step)P_VIEW(1, 0, 1), y), *b = tt_eager(&w, (th_step)P_VIEW(1, 0, 1), y);
        tt_drop(&w, y);
        rondo_tree_mark_step(w.tree);
        th_tensor *z = tt_call2(&w, add, i % 2 ? tt_keep(&w, b) : a, b);
        tt_ramp(&w, z, 2 * (float)i + 4, 2);
        if (i % 2) tt_drop(&w, a);
        tt_drop(&w, z);
    }
}

#define TESTS(EACH, MODEL)                         \
    EACH(test_forward_backward)                    \
    EACH(test_two_backwards)                       \
    EACH(test_backwards_in_any_order)              \
    EACH(test_dynamic_backward)                    \
    EACH(test_forward_generation)                  \
    EACH(test_warn_on_pending_backward)            \
    EACH(test_forward_backward_not_called)         \
    EACH(test_forward_with_backward_elsewhere)     \
    EACH(test_forward_with_skipped_backward)       \
    EACH(test_mark_step)                           \
    EACH(test_mark_step_of_the_host)               \
    EACH(test_host_without_generations)            \
    EACH(test_output_of_the_invocation_before)     \
    EACH(test_function_of_itself)                  \
    EACH(test_loop)                                \
    EACH(test_loop_whose_inputs_are_kept)          \
    EACH(test_marked_step_with_an_output_as_input) \
    EACH(test_state_over_marked_steps)             \
    EACH(test_carried_aliases)

TT_MAIN_EACH(TESTS)
