/* SPDX-License-Identifier: Apache-2.0
 *
 * Where outputs live, whose storage they have, and what becomes of their memory. */
#include "tree/tree_testing.h"

#define INC                                                                                 \
    {                                                                                       \
        .name = "inc", .inputs = 1, .outputs = 1, .steps = { P_ADDS(1, 0, 1), P_RETURN(1) } \
    }
#define DOUBLE                                                                                 \
    {                                                                                          \
        .name = "double", .inputs = 1, .outputs = 1, .steps = { P_MULS(1, 0, 2), P_RETURN(1) } \
    }
#define TWO                                                  \
    {                                                        \
        .name = "two", .inputs = 1, .outputs = 2, .steps = { \
            P_ADDS(1, 0, 1),                                 \
            P_MULS(2, 0, 2),                                 \
            P_RETURN(1),                                     \
            P_RETURN(2)                                      \
        }                                                    \
    }

/* A parameter, a view of it, and a constant that a function returns are those very storages. */
static void test_constant_output(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f",
                  .inputs = 2,
                  .outputs = 4,
                  .steps = {P_ADD(2, 0, 1), P_VIEW(3, 1, 1), P_CONSTANT(4, 0), P_RETURN(2), P_RETURN(1), P_RETURN(3),
                            P_RETURN(4)},
                  .statics = {1},
                  .static_count = 1};
    tt_open(t, &w, kind);
    th_tensor *parameter = tt_new(&w, 10);
    f.constants[f.constant_count++] = tt_give(tt_new(&w, 7));
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 5; i++) {
        th_tensor *y[4];
        tt_invocation(&w);
        T_OK(t, tt_try(&w, id, TT_IN(tt_new(&w, (float)i), tt_keep(&w, parameter)), 4, y));
        tt_ramp(&w, y[0], (float)i + 10, 2);
        tt_ramp(&w, y[1], 10, 1);
        tt_ramp(&w, y[2], 11, 1);
        tt_ramp(&w, y[3], 7, 1);
        T_TRUE(t, y[1]->storage == parameter->storage && y[2]->storage == parameter->storage);
        T_TRUE(t, y[3]->storage == f.constants[0]->storage);
        T_EQ(t, th_elements(y[2]), 3);
        T_EQ(t, tt_info(&w).live, 1); /* those are not the tree's */
        for (int j = 0; j < 4; j++) tt_drop(&w, y[j]);
    }
    tt_counts(&w, 1, 1, 3, 0);
    tt_ramp(&w, parameter, 10, 1);
}

/* The memory of an input's copy, once the model has let go of it, would do for the output. But then an address would say
 * that the output lies on the input. */
static void test_output_after_its_input_is_gone(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f",
                  .inputs = 1,
                  .outputs = 1,
                  .steps = {P_ADDS(1, 0, 1), P_DROP(0), P_ADDS(2, 1, 1), P_DROP(1), P_RETURN(2)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 5; i++) {
        tt_invocation(&w);
        th_tensor *x = tt_new(&w, (float)i), *y = tt_call(&w, id, tt_keep(&w, x));
        T_TRUE(t, y->storage != x->storage);
        tt_ramp(&w, y, (float)i + 2, 1);
        tt_ramp(&w, x, (float)i, 1);
        tt_drop(&w, x);
        tt_drop(&w, y);
    }
    tt_counts(&w, 1, 1, 3, 0);
}

static void test_alias_of_parameter_outlives_the_step(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f",
                  .inputs = 1,
                  .outputs = 2,
                  .steps = {P_VIEW(1, 0, 2), P_ADDS(2, 0, 1), P_RETURN(1), P_RETURN(2)},
                  .statics = {0},
                  .static_count = 1};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *parameter = tt_new(&w, 1), *views[4];
    for (int i = 0; i < 4; i++) {
        th_tensor *y;
        tt_invocation(&w);
        tt_pair(&w, id, tt_keep(&w, parameter), &views[i], &y);
        tt_ramp(&w, y, 2, 1);
        tt_drop(&w, y);
    }
    for (int i = 0; i < 4; i++) {
        tt_ramp(&w, views[i], 3, 1);
        T_TRUE(t, views[i]->storage == parameter->storage);
    }
    tt_counts(&w, 1, 1, 2, 0);
}

/* A dimension of stride 0 is copied as what it is. */
static void test_expanded_inputs(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f", .inputs = 2, .outputs = 1, .steps = {P_ADD(2, 0, 1), P_RETURN(2)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 5; i++) {
        float values[8];
        tt_invocation(&w);
        th_tensor *row = tt_new(&w, (float)i), *wide = tt_eager(&w, (th_step)P_EXPAND(1, 0, 2), row);
        th_tensor *y = tt_call2(&w, id, tt_new_of(&w, 2, 4, 100), wide);
        T_OK(t, tt_read(&w, y, values));
        for (int j = 0; j < 8; j++) T_NEAR(t, values[j], 100 + j + i + j % 4, 0);
        tt_drop(&w, row);
        tt_drop(&w, y);
    }
    tt_counts(&w, 1, 1, 3, 0);
}

/* a lives, b died after the replay: the checkpoint gives b back. */
static void test_tensor_dies_between_checkpoint(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = TWO, g = INC;
    th_tensor *a, *b;
    tt_open(t, &w, kind);
    uint32_t two = tt_add(&w, &f), inc = tt_add(&w, &g);
    for (int i = 0; i < 2; i++) {
        tt_invocation(&w);
        tt_pair(&w, two, tt_new(&w, 1), &a, &b);
        tt_drop(&w, a);
        tt_drop(&w, b);
    }
    tt_invocation(&w);
    tt_pair(&w, two, tt_new(&w, 5), &a, &b);
    tt_drop(&w, b);
    T_EQ(t, tt_info(&w).live, 1);
    T_EQ(t, tt_info(&w).checkpoints, 0);
    th_tensor *y = tt_call(&w, inc, tt_new(&w, 20)); /* a warm-up behind a replay */
    T_EQ(t, tt_info(&w).checkpoints, 1);
    T_EQ(t, tt_live(&w), 2);
    tt_drop(&w, y);
    T_EQ(t, tt_live(&w), 1);
    tt_ramp(&w, a, 6, 1);
    tt_drop(&w, a);
    T_EQ(t, tt_live(&w), 0);
    T_EQ(t, tt_info(&w).live, 0);
}

/* Two functions hand one storage on: there is one storage a block, however many tensors. */
static void test_one_storage_for_aliases_of_two_functions(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {
        .name = "f", .inputs = 1, .outputs = 2, .steps = {P_ADDS(1, 0, 1), P_VIEW(2, 1, 1), P_RETURN(1), P_RETURN(2)}};
    th_model g = {
        .name = "g", .inputs = 1, .outputs = 2, .steps = {P_VIEW(1, 0, 1), P_SAME(2, 0), P_RETURN(1), P_RETURN(2)}};
    tt_open(t, &w, kind);
    uint32_t first = tt_add(&w, &f), second = tt_add(&w, &g);
    for (int i = 0; i < 5; i++) {
        th_tensor *a, *b, *c, *d;
        tt_invocation(&w);
        tt_pair(&w, first, tt_new(&w, (float)i), &a, &b);
        T_TRUE(t, a->storage == b->storage);
        tt_pair(&w, second, tt_keep(&w, b), &c, &d);
        T_TRUE(t, c->storage == a->storage && d->storage == a->storage);
        tt_ramp(&w, c, (float)i + 3, 1);
        tt_ramp(&w, d, (float)i + 2, 1);
        T_EQ(t, th_elements(c), 2);
        tt_drop(&w, a);
        tt_drop(&w, b);
        tt_drop(&w, c);
        tt_ramp(&w, d, (float)i + 2, 1);
        T_EQ(t, tt_info(&w).live > 0, 1);
        tt_drop(&w, d);
        T_EQ(t, tt_info(&w).live, 0);
    }
    T_EQ(t, tt_info(&w).directs, 0);
    T_EQ(t, tt_info(&w).warmups, 2);
}

/* A child returns an input that is the parent's output, which nobody else holds. */
static void test_output_that_is_a_consumed_output(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_model g = {.name = "g", .inputs = 1, .outputs = 2, .steps = {P_ADDS(1, 0, 1), P_RETURN(0), P_RETURN(1)}};
    tt_open(t, &w, kind);
    uint32_t first = tt_add(&w, &f), second = tt_add(&w, &g);
    for (int i = 0; i < 5; i++) {
        th_tensor *a, *b;
        tt_invocation(&w);
        tt_pair(&w, second, tt_call(&w, first, tt_new(&w, (float)i)), &a, &b);
        tt_ramp(&w, a, (float)i + 1, 1);
        tt_ramp(&w, b, (float)i + 2, 1);
        tt_drop(&w, b);
        tt_ramp(&w, a, (float)i + 1, 1);
        tt_drop(&w, a);
    }
    tt_counts(&w, 2, 2, 6, 0);
}

/* The tree works behind what the caller's stream has, and the caller's stream behind the tree's. */
static void test_streams_are_ordered(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g);
    for (int i = 0; i < 5; i++) {
        th_tensor *x = tt_new(&w, 0), *y = NULL;
        for (int j = 0; j < 10 + i; j++) tt_eager_add(&w, x, 1); /* not done yet, while nobody asks */
        tt_invocation(&w);
        y = tt_call(&w, inc, x);
        tt_eager_add(&w, y, 1);
        th_tensor *z = tt_call(&w, twice, y);
        tt_ramp(&w, z, 2 * (float)(12 + i), 2);
        tt_drop(&w, z);
    }
    /* From another stream that was ordered behind the first. */
    for (int i = 0; i < 3; i++) {
        th_tensor *x = tt_new(&w, 1), *y = NULL;
        float values[TT_FLOATS];
        T_OK(t, md_stream_wait(&w.device, w.other, w.stream));
        tt_invocation(&w);
        T_OK(t, tt_try_on(&w, w.other, inc, 1, &x, 1, &y));
        T_OK(t, tt_read_on(&w, w.other, y, values));
        T_NEAR(t, values[0], 2, 0);
        tt_drop(&w, y);
        T_OK(t, md_stream_wait(&w.device, w.stream, w.other));
    }
}

/* Calls of one path on two streams: the tree's own work is in order, whatever the caller's streams are. */
static void test_calls_on_two_streams(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g);
    for (int i = 0; i < 6; i++) {
        float values[TT_FLOATS];
        th_tensor *z = NULL;
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i));
        T_OK(t, tt_try_on(&w, w.other, twice, 1, &y, 1, &z));
        T_OK(t, tt_read_on(&w, w.other, z, values));
        for (int j = 0; j < TT_FLOATS; j++) T_NEAR(t, values[j], 2 * (i + 1 + j), 0);
        tt_drop(&w, z);
    }
    tt_counts(&w, 2, 2, 8, 0);
}

/* Work that the model puts on a stream of its own is recorded with the rest. */
static void test_side_stream(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f",
                  .inputs = 1,
                  .outputs = 1,
                  .steps = {P_ADDS(1, 0, 1), P_SIDE(2, 1, 5), P_ADDS(3, 2, 1), P_RETURN(3)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 5; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i));
        tt_ramp(&w, y, (float)i + 7, 1);
        tt_drop(&w, y);
    }
    tt_counts(&w, 1, 1, 3, 0);
}

/* All memory of the pool is for one stream, so that recordings can use it after one another. */
static void test_single_stream_use(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = TWO, g = INC;
    tt_open(t, &w, kind);
    uint32_t two = tt_add(&w, &f), inc = tt_add(&w, &g);
    for (int i = 0; i < 4; i++) {
        th_tensor *a, *b;
        tt_invocation(&w);
        tt_pair(&w, two, tt_new(&w, (float)i), &a, &b);
        tt_drop(&w, tt_call(&w, inc, a));
        tt_drop(&w, b);
    }
    uint64_t pool = tt_info(&w).pool.user, stream = 0, segments = 0;
    for (const md_segment *s = w.device.segments; s; s = s->next) {
        if (s->pool != pool) continue;
        T_TRUE(t, !stream || s->stream == stream);
        stream = s->stream;
        segments++;
    }
    T_EQ(t, segments, 1);
    T_TRUE(t, stream != w.stream->number && stream != w.other->number);
}

/* An output that aliases an input that is copied aliases the caller's. */
static void test_output_aliases_input(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f",
                  .inputs = 1,
                  .outputs = 3,
                  .steps = {P_VIEW(1, 0, 1), P_SAME(2, 0), P_ADDS(3, 0, 1), P_RETURN(1), P_RETURN(2), P_RETURN(3)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 5; i++) {
        th_tensor *y[3], *whole = tt_new_of(&w, 0, 6, (float)i);
        th_tensor *x = i % 2 ? tt_eager(&w, (th_step)P_VIEW(1, 0, 2), whole) : tt_new(&w, (float)i + 2);
        tt_invocation(&w);
        T_OK(t, tt_try(&w, id, TT_IN(tt_keep(&w, x)), 3, y));
        T_TRUE(t, y[0]->storage == x->storage && y[1]->storage == x->storage);
        tt_ramp(&w, y[0], (float)i + 3, 1);
        tt_ramp(&w, y[1], (float)i + 2, 1);
        tt_ramp(&w, y[2], (float)i + 3, 1);
        tt_eager_add(&w, x, 10);
        tt_ramp(&w, y[0], (float)i + 13, 1); /* they follow it */
        tt_ramp(&w, y[2], (float)i + 3, 1);
        tt_drop(&w, x);
        tt_drop(&w, whole);
        tt_ramp(&w, y[1], (float)i + 12, 1);
        for (int j = 0; j < 3; j++) tt_drop(&w, y[j]);
    }
    tt_counts(&w, 1, 1, 3, 0);
}

/* Three outputs on two blocks die at different times; at a checkpoint each block is freed once. */
static void test_aliased_output_checkpoint(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f",
                  .inputs = 1,
                  .outputs = 3,
                  .steps = {P_ADDS(1, 0, 1), P_VIEW(2, 1, 1), P_MULS(3, 0, 2), P_RETURN(1), P_RETURN(2), P_RETURN(3)}};
    th_model g[4] = {INC, INC, INC, INC};
    tt_open(t, &w, kind);
    uint32_t three = tt_add(&w, &f), inc[4];
    for (int i = 0; i < 4; i++) inc[i] = tt_add(&w, &g[i]);
    for (int i = -2; i < 8; i++) {
        int dead = i < 0 ? 0 : i % 4; /* bit j: output j is dead before the checkpoint; both: a block is */
        th_tensor *y[3];
        tt_invocation(&w);
        T_OK(t, tt_try(&w, three, TT_IN(tt_new(&w, (float)i)), 3, y));
        for (int j = 0; j < 2; j++)
            if (dead >> j & 1) tt_drop(&w, y[j]);
        T_EQ(t, tt_info(&w).live, dead == 3 ? 1 : 2);
        if (i >= 0) { /* a warm-up, then a recording, each behind a replay */
            th_tensor *z = tt_call(&w, inc[dead], tt_new(&w, 50));
            tt_ramp(&w, z, 51, 1);
            T_EQ(t, tt_info(&w).checkpoints, i + 1);
            T_EQ(t, tt_live(&w), dead == 3 ? 2 : 3);
            tt_drop(&w, z);
        }
        for (int j = 0; j < 2; j++) {
            if (dead >> j & 1) continue;
            tt_ramp(&w, y[j], (float)(i + 1 + j), 1);
            tt_drop(&w, y[j]);
        }
        tt_ramp(&w, y[2], 2 * (float)i, 2);
        tt_drop(&w, y[2]);
        if (i >= 0) T_EQ(t, tt_live(&w), 0);
    }
    T_EQ(t, tt_info(&w).directs, 0);
}

/* One storage, two outputs: the block is free with the last. */
static void test_shared_output_storage_is_freed_with_the_last(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {
        .name = "f", .inputs = 1, .outputs = 2, .steps = {P_ADDS(1, 0, 1), P_VIEW(2, 1, 1), P_RETURN(1), P_RETURN(2)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 2; i++) {
        th_tensor *a, *b;
        tt_invocation(&w);
        tt_pair(&w, id, tt_new(&w, (float)i), &a, &b);
        T_EQ(t, tt_live(&w), 1);
        tt_drop(&w, i ? a : b);
        T_EQ(t, tt_live(&w), 1);
        tt_drop(&w, i ? b : a);
        T_EQ(t, tt_live(&w), 0);
    }
}

/* A view that the caller makes keeps an output alive. */
static void test_liveness_follows_views(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 5; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i)), *view = tt_eager(&w, (th_step)P_VIEW(1, 0, 2), y);
        tt_drop(&w, y);
        T_EQ(t, tt_info(&w).live, 1);
        tt_ramp(&w, view, (float)i + 3, 1);
        tt_drop(&w, view);
        T_EQ(t, tt_info(&w).live, 0);
    }
}

/* An output whose storage got other memory is dead for the tree, and alive for its holder. */
static void test_resized_output(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    th_tensor *held[6];
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g);
    for (int i = 0; i < 6; i++) {
        tt_invocation(&w);
        held[i] = tt_call(&w, inc, tt_new(&w, (float)i));
        T_OK(t, th_resize(&w.host, w.stream, held[i], 8));
        T_EQ(t, tt_info(&w).live, 0);
        T_OK(t, th_apply(w.stream, TH_END, held[i], held[i], NULL, (float)i));
        th_tensor *z = tt_call(&w, twice, tt_keep(&w, held[i]));
        tt_ramp(&w, z, 2 * (float)i, 0);
        tt_drop(&w, z);
    }
    for (int i = 0; i < 6; i++) tt_ramp(&w, held[i], (float)i, 0);
    T_EQ(t, tt_info(&w).directs, 0);
}

/* ---------------------------------------------------------------------------------------------- reset and release */

static void test_reset_with_live_outputs(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int calls = 1; calls <= 4; calls++) { /* the last one was warmed up, recorded, replayed, replayed */
        th_tensor *y = NULL;
        for (int i = 0; i < calls; i++) {
            tt_drop(&w, y);
            tt_invocation(&w);
            y = tt_call(&w, id, tt_new(&w, (float)i));
        }
        rondo_pool_id before = tt_info(&w).pool;
        T_OK(t, rondo_tree_reset(w.tree));
        T_EQ(t, tt_info(&w).recordings, 0);
        if (!w.device.native) T_TRUE(t, w.device.pools[before.user].over);
        tt_ramp(&w, y, (float)calls, 1);
        th_tensor *fresh = tt_call(&w, id, tt_new(&w, 50)); /* warmed up anew, elsewhere */
        tt_ramp(&w, fresh, 51, 1);
        tt_ramp(&w, y, (float)calls, 1);
        tt_drop(&w, y);
        tt_drop(&w, fresh);
        T_OK(t, rondo_tree_reset(w.tree));
    }
    T_EQ(t, tt_blocks(&w), 0);
}

static void release_after(rondo_test *t, tt_kind kind, int calls) {
    tt_world w;
    th_model f = TWO;
    th_tensor *a = NULL, *b = NULL;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < calls; i++) {
        tt_drop(&w, a);
        tt_drop(&w, b);
        tt_invocation(&w);
        tt_pair(&w, id, tt_new(&w, 3), &a, &b);
    }
    tt_drop(&w, b);
    rondo_tree_release(w.tree);
    w.tree = NULL;
    T_EQ(t, md_pools_used(&w.device), 0);
    T_EQ(t, tt_blocks(&w), 1);
    tt_ramp(&w, a, 4, 1);
    tt_drop(&w, a);
    T_EQ(t, tt_blocks(&w), 0);
}

static void test_release_after_warmup(rondo_test *t, tt_kind kind) { release_after(t, kind, 1); }
static void test_release_after_recording(rondo_test *t, tt_kind kind) { release_after(t, kind, 2); }
static void test_release_after_replay(rondo_test *t, tt_kind kind) { release_after(t, kind, 4); }

/* A function that goes takes its recordings, and what came after them, along. */
static void test_remove_function(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    th_tensor *y = NULL, *z = NULL;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g);
    for (int i = 0; i < 3; i++) {
        tt_drop(&w, y);
        tt_drop(&w, z);
        tt_invocation(&w);
        y = tt_call(&w, inc, tt_new(&w, 1));
        z = tt_call(&w, twice, tt_keep(&w, y));
    }
    T_OK(t, rondo_tree_remove_function(w.tree, inc));
    T_FAILS(t, rondo_tree_remove_function(w.tree, inc), NOT_FOUND, NULL);
    tt_ramp(&w, y, 2, 1); /* they live as long as the path does */
    tt_ramp(&w, z, 4, 2);
    tt_drop(&w, y);
    tt_drop(&w, z);
    for (int i = 0; i < 3; i++) {
        tt_invocation(&w);
        z = tt_call(&w, twice, tt_new(&w, (float)i));
        tt_ramp(&w, z, 2 * (float)i, 2);
        tt_drop(&w, z);
        T_EQ(t, tt_info(&w).recordings, 1);
    }
    T_EQ(t, tt_info(&w).functions, 1);
    T_EQ(t, tt_info(&w).roots, 1);
    T_EQ(t, tt_function(&w, twice).roots, 1);
}

/* ------------------------------------------------------------------------------------------- memory used again */

/* The same error in the 1st, 2nd and 100th call, whatever came before: the output names its maker and what took it. */
static void test_error_on_use_of_overwritten(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_tensor *before = NULL;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 8; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i));
        if (before) {
            tt_stale(&w, before, "overwritten by a subsequent run");
            tt_stale(&w, before, "inc");
            tt_drop(&w, before);
        }
        tt_ramp(&w, y, (float)i + 1, 1);
        before = y;
    }
    tt_counts(&w, 1, 1, 6, 0);
}

/* Also through another tensor on the same storage. */
static void test_error_on_use_of_overwritten_view(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 6; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i)), *view = tt_eager(&w, (th_step)P_VIEW(1, 0, 1), y);
        tt_drop(&w, y);
        tt_invocation(&w);
        tt_drop(&w, tt_call(&w, id, tt_new(&w, 9)));
        tt_stale(&w, view, "overwritten by a subsequent run");
        tt_drop(&w, view);
    }
}

/* A stale output as an input is refused before anything runs, and the tree goes on. */
static void test_stale_input(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = DOUBLE;
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), twice = tt_add(&w, &g);
    for (int i = 0; i < 5; i++) {
        th_tensor *z = NULL;
        tt_invocation(&w);
        th_tensor *old = tt_call(&w, inc, tt_new(&w, (float)i));
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i + 1));
        T_FAILS(t, tt_try(&w, twice, TT_IN(old), 1, &z), STALE, "overwritten");
        T_TRUE(t, !z);
        z = tt_call(&w, twice, y);
        tt_ramp(&w, z, 2 * (float)i + 4, 2);
        tt_drop(&w, z);
    }
    T_EQ(t, g.runs[RONDO_TREE_DIRECT], 0);
}

/* A copy that the caller made is the caller's. */
static void test_clone_survives(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_tensor *clones[5];
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 5; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i));
        clones[i] = tt_eager(&w, (th_step)P_ADDS(1, 0, 0), y);
        tt_drop(&w, y);
    }
    for (int i = 0; i < 5; i++) tt_ramp(&w, clones[i], (float)i + 1, 1);
}

/* With that policy an output that is still held moves out of the way. */
static void test_conflict_copies(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = TWO;
    th_tensor *a[6], *view[6];
    tt_prepare(t, &w, kind);
    w.options.conflict = RONDO_TREE_CONFLICT_COPY;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 6; i++) {
        th_tensor *b;
        tt_invocation(&w);
        tt_pair(&w, id, tt_new(&w, (float)i), &a[i], &b);
        view[i] = tt_eager(&w, (th_step)P_VIEW(1, 0, 2), a[i]);
        tt_drop(&w, b);
    }
    for (int i = 0; i < 6; i++) {
        tt_ramp(&w, a[i], (float)i + 1, 1);
        tt_ramp(&w, view[i], (float)i + 3, 1);
    }
    T_EQ(t, tt_info(&w).evacuated, 5);
    tt_counts(&w, 1, 1, 4, 0);
}

/* Outputs that are asked for as copies in ordinary memory outlive every step. */
static void test_owned_outputs(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = TWO;
    th_tensor *a[6], *b;
    f.owned[f.owned_count++] = 0;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 6; i++) {
        tt_invocation(&w);
        tt_pair(&w, id, tt_new(&w, (float)i), &a[i], &b);
        tt_ramp(&w, b, 2 * (float)i, 2);
        T_EQ(t, tt_info(&w).live, 1);
        tt_drop(&w, b);
    }
    for (int i = 0; i < 6; i++) {
        tt_ramp(&w, a[i], (float)i + 1, 1);
        T_TRUE(t, !a[i]->storage->lease);
    }
    tt_counts(&w, 1, 1, 4, 0);
}

/* Rounds without end: neither device nor host memory grows. */
static void test_rounds_do_not_grow(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = TWO, g = INC, h = DOUBLE;
    uint64_t segments = 0, host_bytes = 0;
    tt_open(t, &w, kind);
    uint32_t two = tt_add(&w, &f), inc = tt_add(&w, &g), twice = tt_add(&w, &h);
    for (int i = 0; i < 200; i++) {
        th_tensor *a, *b;
        tt_invocation(&w);
        tt_pair(&w, two, tt_new(&w, (float)i), &a, &b);
        tt_drop(&w, i % 3 ? a : b);
        th_tensor *z = tt_call(&w, i % 2 ? inc : twice, i % 3 ? b : a);
        float x = (float)i;
        if (i % 2) tt_ramp(&w, z, i % 3 ? 2 * x + 1 : x + 2, i % 3 ? 2 : 1);
        else tt_ramp(&w, z, i % 3 ? 4 * x : 2 * x + 2, i % 3 ? 4 : 2);
        tt_drop(&w, z);
        if (i == 50) {
            segments = md_segments(&w.device, tt_info(&w).pool.user) + md_segments(&w.device, 0);
            host_bytes = tt_info(&w).host_bytes;
        }
    }
    T_EQ(t, md_segments(&w.device, tt_info(&w).pool.user) + md_segments(&w.device, 0), segments);
    T_EQ(t, tt_info(&w).host_bytes, host_bytes);
    T_EQ(t, tt_info(&w).directs, 0);
}

#define TESTS(EACH, MODEL)                                  \
    EACH(test_constant_output)                              \
    EACH(test_output_after_its_input_is_gone)               \
    EACH(test_alias_of_parameter_outlives_the_step)         \
    EACH(test_expanded_inputs)                              \
    EACH(test_tensor_dies_between_checkpoint)               \
    EACH(test_one_storage_for_aliases_of_two_functions)     \
    EACH(test_output_that_is_a_consumed_output)             \
    EACH(test_streams_are_ordered)                          \
    EACH(test_calls_on_two_streams)                         \
    EACH(test_side_stream)                                  \
    MODEL(test_single_stream_use)                           \
    EACH(test_output_aliases_input)                         \
    EACH(test_aliased_output_checkpoint)                    \
    EACH(test_shared_output_storage_is_freed_with_the_last) \
    EACH(test_liveness_follows_views)                       \
    EACH(test_resized_output)                               \
    EACH(test_reset_with_live_outputs)                      \
    EACH(test_release_after_warmup)                         \
    EACH(test_release_after_recording)                      \
    EACH(test_release_after_replay)                         \
    EACH(test_remove_function)                              \
    EACH(test_error_on_use_of_overwritten)                  \
    EACH(test_error_on_use_of_overwritten_view)             \
    EACH(test_stale_input)                                  \
    EACH(test_clone_survives)                               \
    EACH(test_conflict_copies)                              \
    EACH(test_owned_outputs)                                \
    EACH(test_rounds_do_not_grow)

TT_MAIN_EACH(TESTS)
