/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything fails once: each call of each entry of the device's and of the framework's table, and each allocation of the
 * tree, one at a time, in the middle of a program that warms up, records, replays, branches, brings the pool back, writes
 * inputs, hands out aliases, trains, carries values over marked steps and lets outputs be overwritten. The call that meets
 * the failure says so, or has got round it; all others are right, before and after; and nothing is left over. */
#include "tree/tree_testing.h"

enum { INC, DOUBLE, LESS, TWO, BUMP, OWNED, LOOK, FORWARD, BACKWARD, MODELS };

static const th_model models[MODELS] = {
    [INC] = {.name = "inc", .inputs = 1, .outputs = 1, .steps = {P_ADDS(1, 0, 1), P_RETURN(1)}},
    [DOUBLE] = {.name = "double", .inputs = 1, .outputs = 1, .steps = {P_MULS(1, 0, 2), P_RETURN(1)}},
    [LESS] = {.name = "less", .inputs = 1, .outputs = 1, .steps = {P_ADDS(1, 0, -3), P_RETURN(1)}},
    [TWO] = {.name = "two",
             .inputs = 1,
             .outputs = 3,
             .steps = {P_ADDS(1, 0, 1), P_VIEW(2, 1, 1), P_RETURN(1), P_RETURN(2), P_RETURN(0)}},
    [BUMP] = {.name = "bump",
              .inputs = 2,
              .outputs = 1,
              .steps = {P_ADDS_IN(1, 1), P_ADD(2, 0, 1), P_RETURN(2)},
              .statics = {1},
              .static_count = 1,
              .mutated = {1},
              .mutated_count = 1},
    [OWNED] = {.name = "owned",
               .inputs = 1,
               .outputs = 2,
               .steps = {P_ADDS(1, 0, 1), P_MULS(2, 0, 3), P_RETURN(1), P_RETURN(2)},
               .owned = {0},
               .owned_count = 1},
    [LOOK] = {.name = "look", .inputs = 2, .outputs = 1, .steps = {P_ADDH(2, 0, 1), P_RETURN(2)}},
    [FORWARD] = {.name = "forward",
                 .inputs = 1,
                 .outputs = 2,
                 .steps = {P_MUL(1, 0, 0), P_ADDS(2, 0, 0), P_RETURN(1), P_RETURN(2)},
                 .mode = RONDO_TREE_FORWARD},
    [BACKWARD] = {.name = "backward",
                  .inputs = 2,
                  .outputs = 1,
                  .steps = {P_MUL(2, 0, 1), P_DROP(1), P_MULS(3, 2, 2), P_RETURN(3)},
                  .mode = RONDO_TREE_BACKWARD},
};

typedef enum setting { PLAIN, COPYING, BINDING, SEALING, SETTINGS } setting;

typedef struct scene {
    tt_world w;
    th_model models[MODELS];
    uint32_t ids[MODELS];
    th_tensor *buffer; /* that is written */
    float written;
    th_tensor *old; /* of the step before, with the value it had */
    float old_value;
    unsigned failures;
    uint64_t nth; /* that fails */
    setting how;
} scene;

static bool hit(const scene *s) { return s->w.faults.fired || s->w.refused; }

/* True when it went well; a failure must be the one that was asked for. */
static bool went(scene *s, rondo_status status) {
    rondo_code code = rondo_status_code(status);
    char text[512];
    if (!status) return true;
    (void)rondo_status_format(status, text, sizeof text);
    rondo_status_release(status);
    if (!hit(s) || s->failures++ || (code != RONDO_CODE_DEVICE_LOST && code != RONDO_CODE_OUT_OF_MEMORY))
        rondo_test_fail(s->w.t, __FILE__, __LINE__, "a call failed that was not made to, after %s: %s",
                        hit(s) ? tt_fault_name(s->w.faults.entry) : "nothing", text);
    return false;
}

/* Of a ramp; without failures on the way, for the reading is the test's. */
static void right_at(scene *s, const th_tensor *x, float first, float step, int line) {
    float values[TT_FLOATS];
    bool before = tt_pause();
    if (x) T_OK(s->w.t, tt_read(&s->w, x, values));
    for (uint64_t i = 0; x && i < th_elements(x); i++) {
        if (values[i] == first + (float)i * step) continue;
        rondo_test_fail(s->w.t, __FILE__, line, "element %llu is %g, not %g (allocation %d, %s, call %llu)",
                        (unsigned long long)i, (double)values[i], (double)(first + (float)i * step), s->w.refused,
                        s->w.faults.fired ? tt_fault_name(s->w.faults.entry) : "nothing", (unsigned long long)s->nth);
    }
    tt_resume(before);
}
#define right(s, x, first, step) right_at(s, x, first, step, __LINE__)

static th_tensor *call(scene *s, unsigned model, th_tensor *x) {
    th_tensor *y = NULL;
    return x && went(s, tt_try(&s->w, s->ids[model], 1, &x, 1, &y)) ? y : NULL;
}

static th_tensor *keep(scene *s, th_tensor *x) { return x ? tt_keep(&s->w, x) : NULL; }

static void chain(scene *s, int round, float x) {
    tt_world *w = &s->w;
    th_tensor *out[3] = {NULL, NULL, NULL};
    th_tensor *y = call(s, INC, tt_new(w, x)), *z = call(s, round % 4 == 3 ? LESS : DOUBLE, keep(s, y));
    float first = round % 4 == 3 ? x - 2 : 2 * x + 2, step = round % 4 == 3 ? 1 : 2;
    right(s, y, x + 1, 1);
    right(s, z, first, step);
    if (z && went(s, tt_try(w, s->ids[TWO], TT_IN(tt_keep(w, z)), 3, out))) {
        right(s, out[0], first + 1, step);
        right(s, out[1], first + 1 + step, step);
        right(s, out[2], first, step);
        T_TRUE(w->t, out[0]->storage == out[1]->storage && out[2]->storage == z->storage);
    }
    tt_drop(w, y);
    for (int i = 0; i < 3; i++) tt_drop(w, out[i]);
    right(s, z, first, step);
    tt_drop(w, z);
}

/* The call that fails has written once or not at all. */
static void write_buffer(scene *s, float x) {
    tt_world *w = &s->w;
    th_tensor *y = NULL;
    float now[TT_FLOATS];
    bool good = went(s, tt_try(w, s->ids[BUMP], TT_IN(tt_new(w, x), tt_keep(w, s->buffer)), 1, &y));
    bool before = tt_pause();
    T_OK(w->t, tt_read(w, s->buffer, now));
    tt_resume(before);
    if (good || now[0] != s->written) s->written++;
    right(s, s->buffer, s->written, 1);
    right(s, y, x + s->written, 2);
    tt_drop(w, y);
}

static void others(scene *s, int round, float x) {
    tt_world *w = &s->w;
    th_tensor *out[2] = {NULL, NULL}, *y = NULL;
    if (went(s, tt_try(w, s->ids[OWNED], TT_IN(tt_new(w, x)), 2, out))) {
        right(s, out[0], x + 1, 1);
        right(s, out[1], 3 * x, 3);
    }
    tt_drop(w, out[1]);
    if (went(s, tt_try(w, s->ids[LOOK], TT_IN(tt_new(w, x), tt_in_host(w, round < 4 ? 3 : 5)), 1, &y)))
        right(s, y, x + (round < 4 ? 3 : 5), 1);
    right(s, out[0], x + 1, 1); /* it is the caller's */
    tt_drop(w, y);
    tt_drop(w, out[0]);
}

static void train(scene *s, float x) {
    tt_world *w = &s->w;
    th_tensor *out[2] = {NULL, NULL}, *gradient = NULL;
    tt_invocation(w);
    if (went(s, tt_try(w, s->ids[FORWARD], TT_IN(tt_new_of(w, 0, 1, x)), 2, out))) {
        right(s, out[0], x * x, 0);
        if (went(s, tt_try(w, s->ids[BACKWARD], TT_IN(tt_new_of(w, 0, 1, 1), out[1]), 1, &gradient)))
            right(s, gradient, 2 * x, 0);
    }
    tt_drop(w, out[0]);
    tt_drop(w, gradient);
    rondo_tree_set_running_backward(w->tree); /* if the backward failed */
}

/* Values that go over a marked step, and outputs that were kept. */
static void steps(scene *s, float x) {
    tt_world *w = &s->w;
    float now[TT_FLOATS];
    rondo_tree_mark_step(w->tree);
    th_tensor *y = call(s, INC, tt_new(w, x));
    right(s, y, x + 1, 1);
    if (s->old) {
        bool before = tt_pause();
        rondo_status status = tt_read(w, s->old, now);
        bool stale = rondo_status_code(status) == RONDO_CODE_STALE;
        bool copied = w->options.conflict == RONDO_TREE_CONFLICT_COPY;
        rondo_status_release(status);
        if (!hit(s)) T_EQ(w->t, stale, !copied);
        if (!stale) T_NEAR(w->t, now[0], s->old_value, 0);
        tt_resume(before);
        tt_drop(w, s->old);
    }
    s->old = y;
    s->old_value = x + 1;
    th_tensor *in = call(s, DOUBLE, tt_new(w, x));
    rondo_tree_mark_step(w->tree);
    th_tensor *z = call(s, INC, in);
    right(s, z, 2 * x + 1, 2);
    tt_drop(w, z);
}

static void play(scene *s, int rounds) {
    for (int round = 0; round < rounds; round++) {
        float x = (float)(10 * round);
        th_tensor *between = s->how != SEALING && round % 2 ? tt_new(&s->w, 0) : NULL; /* inputs lie elsewhere */
        tt_invocation(&s->w);
        chain(s, round, x);
        tt_invocation(&s->w);
        write_buffer(s, x);
        tt_invocation(&s->w);
        others(s, round, x);
        train(s, x + 2);
        if (round >= 4) steps(s, x);
        tt_drop(&s->w, between);
    }
}

static void scene_open(rondo_test *t, scene *s, tt_kind kind, setting how) {
    *s = (scene){.how = how};
    tt_blank(t, &s->w, kind);
    tt_fill(&s->w);
    s->w.options.seal_after = 0;
    s->w.device.halves = true;
    if (how == COPYING) {
        s->w.options.conflict = RONDO_TREE_CONFLICT_COPY;
        s->w.options.recording_limit = 5;
        s->w.options.byte_limit = 1u << 24;
    }
    if (how == BINDING) s->w.ops.flags |= RONDO_GRAPH_OPS_REBIND;
    if (how == SEALING) {
        s->w.options.seal_after = 1;
        s->w.table.flags |= RONDO_TENSOR_HOST_FLUSHES;
        s->w.ops.flags |= RONDO_GRAPH_OPS_CHILD_GRAPHS;
        s->w.table.copy_inputs = NULL;
    }
    tt_start(&s->w);
    for (unsigned i = 0; i < MODELS; i++) {
        s->models[i] = models[i];
        s->ids[i] = tt_add(&s->w, &s->models[i]);
    }
    s->buffer = tt_new(&s->w, 0);
    memset(s->w.faults.calls, 0, sizeof s->w.faults.calls);
    s->w.allocations = 0;
}

/* After the failure: the whole program again, without one. */
static void scene_close(scene *s) {
    s->w.faults.nth = s->w.refuse = 0;
    unsigned before = s->failures;
    play(s, 3);
    T_EQ(s->w.t, s->failures, before);
    tt_close(&s->w);
}

#define ROUNDS 7

static void fail_calls(rondo_test *t, tt_kind kind, setting how) {
    static scene s;
    uint64_t calls[TT_FAULT_COUNT];
    scene_open(t, &s, kind, how);
    play(&s, ROUNDS);
    memcpy(calls, s.w.faults.calls, sizeof calls);
    T_EQ(t, s.failures, 0);
    T_EQ(t, tt_info(&s.w).directs, 0);
    T_TRUE(t, tt_info(&s.w).checkpoints > 0 && tt_info(&s.w).carried > 0);
    if (how == SEALING) T_TRUE(t, tt_info(&s.w).sealed > 0);
    if (how == COPYING) T_TRUE(t, tt_info(&s.w).evacuated > 0 && tt_info(&s.w).evicted > 0);
    scene_close(&s);
    for (tt_fault_entry entry = 0; entry < TT_FAULT_COUNT; entry++) {
        for (uint64_t nth = 1; nth <= calls[entry]; nth += rondo_test_stride()) {
            scene_open(t, &s, kind, how);
            s.w.faults.entry = entry;
            s.w.faults.nth = s.nth = nth;
            play(&s, ROUNDS);
            if (!s.w.faults.fired) rondo_test_fail(t, __FILE__, __LINE__, "%s was not called", tt_fault_name(entry));
            scene_close(&s);
        }
    }
}

static void test_every_call_fails(rondo_test *t, tt_kind kind) { fail_calls(t, kind, PLAIN); }
static void test_every_call_fails_with_limits_and_copies(rondo_test *t, tt_kind kind) { fail_calls(t, kind, COPYING); }
static void test_every_call_fails_with_binding(rondo_test *t, tt_kind kind) { fail_calls(t, kind, BINDING); }
static void test_every_call_fails_when_sealed(rondo_test *t, tt_kind kind) { fail_calls(t, kind, SEALING); }

static void fail_allocations(rondo_test *t, tt_kind kind, setting how) {
    static scene s;
    scene_open(t, &s, kind, how);
    play(&s, ROUNDS);
    uint64_t allocations = s.w.allocations;
    T_TRUE(t, allocations > 50);
    scene_close(&s);
    /* Most of a native device's are the device's own, which has tests for that. */
    for (uint64_t nth = 1; nth <= allocations; nth += rondo_test_stride() * (kind < TT_CPU ? 1u : 11u)) {
        scene_open(t, &s, kind, how);
        s.w.refuse = s.nth = nth;
        play(&s, ROUNDS);
        T_TRUE(t, s.w.refused);
        scene_close(&s);
    }
}

static void test_every_allocation_fails(rondo_test *t, tt_kind kind) {
    for (setting how = 0; how < SETTINGS; how++) fail_allocations(t, kind, how);
}

/* The scene is one that calls everything there is. */
static void test_everything_is_called(rondo_test *t, tt_kind kind) {
    static scene s;
    uint64_t calls[TT_FAULT_COUNT] = {0};
    for (setting how = 0; how < SETTINGS; how++) {
        scene_open(t, &s, kind, how);
        play(&s, ROUNDS);
        for (unsigned i = 0; i < TT_FAULT_COUNT; i++) calls[i] += s.w.faults.calls[i];
        scene_close(&s);
    }
    for (tt_fault_entry entry = 0; entry < TT_FAULT_COUNT; entry++) {
        /* The first is only called when something went wrong. */
        bool never = entry == TT_FAULT_SYNCHRONIZE || (entry == TT_FAULT_WATCH && kind == TT_LEASES);
        if (!calls[entry] != never)
            rondo_test_fail(t, __FILE__, __LINE__, "%s was called %llu times", tt_fault_name(entry),
                            (unsigned long long)calls[entry]);
    }
}

/* Every allocation of the program, those of the framework and of failures too. */
static void every_allocation(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = models[INC], g = models[TWO];
    tt_open(t, &w, kind);
    uint32_t inc = tt_add(&w, &f), two = tt_add(&w, &g);
    for (int i = 0; i < 4; i++) {
        th_tensor *out[3];
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i));
        T_OK(t, tt_try(&w, two, TT_IN(tt_keep(&w, y)), 3, out));
        tt_ramp(&w, out[1], (float)i + 3, 1);
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
        for (int j = 0; j < 3; j++) tt_drop(&w, out[j]);
    }
}
static void test_allocations_leases(rondo_test *t) { every_allocation(t, TT_LEASES); }
static void test_allocations_weak(rondo_test *t) { every_allocation(t, TT_WEAK); }

#define TESTS(EACH, MODEL)                             \
    MODEL(test_everything_is_called)                   \
    EACH(test_every_call_fails)                        \
    EACH(test_every_call_fails_with_limits_and_copies) \
    EACH(test_every_call_fails_with_binding)           \
    EACH(test_every_call_fails_when_sealed)            \
    EACH(test_every_allocation_fails)

TESTS(TT_EACH_KIND, TT_KINDS)
RONDO_TEST_MAIN(TESTS(TT_EACH_ENTRY, TT_ENTRIES) T(test_allocations_leases), T(test_allocations_weak))
