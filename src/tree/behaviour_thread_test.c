/* SPDX-License-Identifier: Apache-2.0
 *
 * Trees and threads: calls come one after the other, outputs end on any thread at any time, a backward runs elsewhere than
 * its forward, and nothing is bound to a thread. */
#include <stdatomic.h>

#include "tree/tree_testing.h"

#define THREADS 4
#define CALLS 150

/* A model each, whose output is the caller's own, since another thread's call is another step. */
typedef struct worker {
    tt_world *w;
    th_model model;
    uint32_t id, number;
    void *stream;
    pthread_t thread;
    bool strict_values; /* outputs are owned: they cannot be overwritten */
    unsigned wrong;
} worker;

static void *work(void *argument) {
    worker *me = argument;
    tt_world *w = me->w;
    for (int i = 0; i < CALLS; i++) {
        th_tensor *x = NULL, *y = NULL;
        float values[TT_FLOATS], first = (float)(me->number * 1000) + (float)i;
        md_call store = {.kernel = th_kernel_store, .addresses = 1u};
        rondo_status status = th_compact(&w->host, me->stream, 0, TT_FLOATS, &x);
        if (!status) {
            float initial[TT_FLOATS] = {first, first, first, first};
            store.words[0] = th_data(x);
            store.words[1] = store.bytes[0] = sizeof initial;
            memcpy(&store.words[2], initial, sizeof initial);
            status = md_launch(me->stream, &store);
        }
        if (!status) status = tt_try_on(w, me->stream, me->id, 1, (th_tensor *[]){tt_held(x)}, 1, &y);
        if (!status) status = tt_read_on(w, me->stream, y, values);
        bool stale = !me->strict_values && rondo_status_code(status) == RONDO_CODE_STALE;
        if (!stale && (status || values[0] != first + (float)me->number || values[3] != values[0])) me->wrong++;
        rondo_status_release(status);
        tt_drop(w, y);
    }
    return NULL;
}

static void several(rondo_test *t, tt_kind kind, bool owned) {
    tt_world w;
    worker workers[THREADS];
    tt_open(t, &w, kind);
    for (uint32_t i = 0; i < THREADS; i++) {
        worker *me = &workers[i];
        *me = (worker){.w = &w, .number = i + 1, .strict_values = owned};
        me->model = (th_model){
            .name = "worker", .inputs = 1, .outputs = 1, .steps = {P_ADDS(1, 0, (float)(i + 1)), P_RETURN(1)}};
        me->model.owned_count = owned;
        me->id = tt_add(&w, &me->model);
        T_OK(t, md_create_stream(&w.device, &me->stream));
        w.stream_count++;
    }
    for (uint32_t i = 0; i < THREADS; i++) T_EQ(t, pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (uint32_t i = 0; i < THREADS; i++) (void)pthread_join(workers[i].thread, NULL);
    for (uint32_t i = 0; i < THREADS; i++) {
        T_EQ(t, workers[i].wrong, 0);
        rondo_tree_function_info info = tt_function(&w, workers[i].id);
        T_EQ(t, info.warmups + info.records + info.replays + info.directs, CALLS);
        if (info.directs)
            rondo_test_fail(t, __FILE__, __LINE__, "%llu direct calls: %s", (unsigned long long)info.directs,
                            w.warning[0] ? w.warning : rondo_tree_reason_name(info.stopped));
    }
}

static void test_threads_share_a_tree(rondo_test *t, tt_kind kind) { several(t, kind, true); }
static void test_threads_overwrite_each_other(rondo_test *t, tt_kind kind) { several(t, kind, false); }

/* ------------------------------------------------------------------------------------------ ends on other threads */

#define QUEUE 64

typedef struct reaper {
    tt_world *w;
    pthread_t thread;
    _Atomic(th_tensor *) queue[QUEUE];
    atomic_bool stop;
} reaper;

static bool reap(reaper *r) {
    bool any = false;
    for (unsigned i = 0; i < QUEUE; i++) {
        th_tensor *x = atomic_exchange(&r->queue[i], NULL);
        any = any || x;
        tt_enter(r->w);
        th_drop(&r->w->host, x);
        tt_leave(r->w);
    }
    return any;
}

static void *reaping(void *argument) {
    reaper *r = argument;
    while (!atomic_load(&r->stop)) (void)reap(r);
    while (reap(r)) continue;
    return NULL;
}

static void hand_over(reaper *r, unsigned at, th_tensor *x) {
    x->held--;
    th_tensor *before = atomic_exchange(&r->queue[at % QUEUE], x);
    tt_enter(r->w);
    th_drop(&r->w->host, before);
    tt_leave(r->w);
}

/* Outputs of warm-ups, recordings and replays end on another thread, while the tree uses their memory again, brings the
 * pool back, and resets. */
static void test_outputs_end_on_another_thread(rondo_test *t, tt_kind kind) {
    tt_world w;
    reaper r = {.w = &w};
    th_model models[6];
    uint32_t ids[6];
    tt_open(t, &w, kind);
    for (int i = 0; i < 6; i++) {
        models[i] = (th_model){.name = "f",
                               .inputs = 1,
                               .outputs = 2,
                               .steps = {P_ADDS(1, 0, (float)i), P_MULS(2, 0, 2), P_RETURN(1), P_RETURN(2)}};
        ids[i] = tt_add(&w, &models[i]);
    }
    T_EQ(t, pthread_create(&r.thread, NULL, reaping, &r), 0);
    for (unsigned i = 0; i < 400; i++) {
        th_tensor *a, *b, *c, *d;
        unsigned second = 1 + (i / 7) % 5;
        tt_invocation(&w);
        tt_pair(&w, ids[0], tt_new(&w, (float)i), &a, &b);
        tt_ramp(&w, a, (float)i, 1);
        tt_pair(&w, ids[second], tt_keep(&w, b), &c, &d);
        tt_ramp(&w, c, 2 * (float)i + (float)second, 2);
        tt_ramp(&w, d, 4 * (float)i, 4);
        hand_over(&r, i, a);
        hand_over(&r, i + 17, b);
        hand_over(&r, i + 31, c);
        hand_over(&r, i + 43, d);
        if (i % 150 != 149) continue;
        tt_enter(&w);
        rondo_status status = rondo_tree_reset(w.tree);
        tt_leave(&w);
        T_OK(t, status);
    }
    atomic_store(&r.stop, true);
    (void)pthread_join(r.thread, NULL);
    (void)reap(&r);
    T_EQ(t, tt_info(&w).live, 0);
    T_EQ(t, tt_info(&w).directs, 0);
}

/* The tree goes while its outputs end elsewhere. */
static void test_tree_goes_while_outputs_end(rondo_test *t, tt_kind kind) {
    tt_world w;
    reaper r = {.w = &w};
    th_model f = {
        .name = "f", .inputs = 1, .outputs = 2, .steps = {P_ADDS(1, 0, 1), P_MULS(2, 0, 2), P_RETURN(1), P_RETURN(2)}};
    tt_open(t, &w, kind);
    T_EQ(t, pthread_create(&r.thread, NULL, reaping, &r), 0);
    for (unsigned round = 0; round < 30; round++) {
        uint32_t id = tt_add(&w, &f);
        for (unsigned i = 0; i < 1 + round % 4; i++) {
            th_tensor *a, *b;
            tt_invocation(&w);
            tt_pair(&w, id, tt_new(&w, 1), &a, &b);
            tt_ramp(&w, b, 2, 2);
            hand_over(&r, round + i, a);
            hand_over(&r, round + i + 9, b);
        }
        tt_enter(&w);
        rondo_tree_release(w.tree);
        tt_leave(&w);
        w.tree = NULL;
        w.model_count = 0;
        tt_start(&w);
    }
    atomic_store(&r.stop, true);
    (void)pthread_join(r.thread, NULL);
    (void)reap(&r);
}

/* ----------------------------------------------------------------------------------------- forwards and backwards */

typedef struct handoff {
    tt_world *w;
    uint32_t id;
    th_tensor *input, *output;
    rondo_status status;
} handoff;

static void *run_there(void *argument) {
    handoff *h = argument;
    h->status = tt_try(h->w, h->id, 1, &h->input, 1, &h->output);
    return NULL;
}

/* As an autograd engine does: the backward is another thread's, a new one each time. */
static void test_backward_on_another_thread(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {
        .name = "f", .inputs = 1, .outputs = 1, .steps = {P_MULS(1, 0, 3), P_RETURN(1)}, .mode = RONDO_TREE_FORWARD};
    th_model b = {
        .name = "b", .inputs = 1, .outputs = 1, .steps = {P_ADDS(1, 0, 1), P_RETURN(1)}, .mode = RONDO_TREE_BACKWARD};
    tt_open(t, &w, kind);
    uint32_t forward = tt_add(&w, &f), backward = tt_add(&w, &b);
    for (int i = 0; i < 8; i++) {
        pthread_t thread;
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, forward, tt_new(&w, (float)i));
        handoff h = {.w = &w, .id = backward, .input = tt_keep(&w, y)};
        T_EQ(t, pthread_create(&thread, NULL, run_there, &h), 0);
        (void)pthread_join(thread, NULL);
        T_OK(t, h.status);
        tt_ramp(&w, h.output, 3 * (float)i + 1, 3);
        tt_ramp(&w, y, 3 * (float)i, 3);
        tt_drop(&w, y);
        tt_drop(&w, h.output);
    }
    tt_counts(&w, 2, 2, 12, 0);
    T_EQ(t, tt_info(&w).roots, 1);
}

/* A model that is called directly may wait for a thread that calls the tree. */
static rondo_status (*plain_run)(void *user, const rondo_tree_run_context *context, void **inputs, uint32_t input_count,
                                 void **outputs, uint32_t output_count);
static handoff waited;

static rondo_status run_and_wait(void *user, const rondo_tree_run_context *context, void **inputs, uint32_t input_count,
                                 void **outputs, uint32_t output_count) {
    pthread_t thread;
    if (context->phase == RONDO_TREE_DIRECT && waited.input) {
        if (pthread_create(&thread, NULL, run_there, &waited)) return RONDO__FAIL(BUSY, INPUT, "no thread");
        tt_leave(waited.w);
        (void)pthread_join(thread, NULL);
        tt_enter(waited.w);
        waited.input = NULL;
    }
    return plain_run(user, context, inputs, input_count, outputs, output_count);
}

static void test_direct_call_waits_for_another(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f", .inputs = 1, .outputs = 1, .steps = {P_ADDS(1, 0, 1), P_RETURN(1)}};
    th_model g = {.name = "g", .inputs = 1, .outputs = 1, .steps = {P_ADDS(1, 0, 2), P_RETURN(1)}, .skip = "it waits"};
    tt_prepare(t, &w, kind);
    plain_run = w.table.run;
    w.table.run = run_and_wait;
    tt_start(&w);
    uint32_t inc = tt_add(&w, &f), waits = tt_add(&w, &g);
    for (int i = 0; i < 4; i++) {
        tt_invocation(&w);
        waited = (handoff){.w = &w, .id = inc, .input = tt_new(&w, (float)i)};
        th_tensor *y = tt_call(&w, waits, tt_new(&w, 1));
        tt_ramp(&w, y, 3, 1);
        T_OK(t, waited.status);
        tt_ramp(&w, waited.output, (float)i + 1, 1);
        tt_drop(&w, waited.output);
        tt_drop(&w, y);
    }
    tt_counts(&w, 1, 1, 2, 4);
}

/* Marks and questions from everywhere, while calls go on. */
static void *nag(void *argument) {
    worker *me = argument;
    for (int i = 0; i < 300; i++) {
        rondo_tree_info info = RONDO_TREE_INFO_INIT;
        rondo_tree_mark_step(me->w->tree);
        rondo_tree_set_running_backward(me->w->tree);
        tt_enter(me->w);
        rondo_status status = rondo_tree_get_info(me->w->tree, &info);
        if (status || info.functions < 1) me->wrong++;
        rondo_status_release(status);
        status = rondo_tree_flush(me->w->tree);
        tt_leave(me->w);
        me->wrong += status != RONDO_OK;
        rondo_status_release(status);
    }
    return NULL;
}

static void test_marks_from_another_thread(rondo_test *t, tt_kind kind) {
    tt_world w;
    worker me = {.w = &w};
    th_model f = {.name = "f", .inputs = 1, .outputs = 1, .steps = {P_ADDS(1, 0, 1), P_RETURN(1)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    T_EQ(t, pthread_create(&me.thread, NULL, nag, &me), 0);
    for (int i = 0; i < 300; i++) {
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i)); /* nobody else calls: it is fresh until the next */
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
    }
    (void)pthread_join(me.thread, NULL);
    T_EQ(t, me.wrong, 0);
    tt_counts(&w, 1, 1, 298, 0);
}

#define TESTS(EACH, MODEL)                   \
    EACH(test_threads_share_a_tree)          \
    EACH(test_threads_overwrite_each_other)  \
    EACH(test_outputs_end_on_another_thread) \
    EACH(test_tree_goes_while_outputs_end)   \
    EACH(test_backward_on_another_thread)    \
    EACH(test_direct_call_waits_for_another) \
    EACH(test_marks_from_another_thread)

TT_MAIN_EACH(TESTS)
