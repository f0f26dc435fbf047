/* SPDX-License-Identifier: Apache-2.0
 *
 * Capture modes: the whole table by calls, against rules written another way; that the page shows the same table; and that
 * a mode which is none changes nothing. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/graph_testing.h"

/* The rules as the drivers put them. A thread that is relaxed may do anything, and to a relaxed capture anything may be
 * done. A thread's own capture it may not endanger; another's only if neither side insists on the whole process. */
static bool rule_allows(rondo_capture_mode capture, rondo_capture_mode thread, bool other) {
    if (thread == RONDO_CAPTURE_MODE_RELAXED || capture == RONDO_CAPTURE_MODE_RELAXED) return true;
    if (!other) return false;
    bool process = capture == RONDO_CAPTURE_MODE_GLOBAL || capture == RONDO_CAPTURE_MODE_DEFAULT;
    return !(process && (thread == RONDO_CAPTURE_MODE_GLOBAL || thread == RONDO_CAPTURE_MODE_DEFAULT));
}

static void test_table(rondo_test *t) {
    for (rondo_capture_mode capture = -1; capture <= RONDO_CAPTURE_MODE_COUNT; capture++)
        for (rondo_capture_mode thread = -1; thread <= RONDO_CAPTURE_MODE_COUNT; thread++)
            for (int other = 0; other < 2; other++) {
                bool known = capture >= 0 && capture < RONDO_CAPTURE_MODE_COUNT && thread >= 0 &&
                             thread < RONDO_CAPTURE_MODE_COUNT;
                T_EQ(t, rondo_capture_mode_allows(capture, thread, other, false), known);
                T_EQ(t, rondo_capture_mode_allows(capture, thread, other, true),
                     known && rule_allows(capture, thread, other));
            }
}

/* docs/graph.md has each row of the table, in the words that tools/capture-modes writes. */
static void test_page_is_up_to_date(rondo_test *t) {
    static char page[1u << 20];
    char line[160];
    FILE *file = fopen("docs/graph.md", "r");
    if (!file) rondo_test_skip(t, "docs/graph.md is not here");
    size_t length = fread(page, 1, sizeof page - 1u, file);
    (void)fclose(file);
    page[length] = '\0';
    unsigned rows = 0;
    for (unsigned i = 0; i < RONDO__MODE_ROWS; i++)
        for (unsigned other = 0; other < 2; other++) {
            (void)snprintf(line, sizeof line, "\n| %s | %s | %s | allowed | %s |\n",
                           rondo__mode_name(rondo__modes[i].capture), rondo__mode_name(rondo__modes[i].thread),
                           other ? "another" : "the capture's",
                           rondo__modes[i].allowed[other] ? "allowed" : "refused, and the capture is invalid");
            if (!strstr(page, line)) rondo_test_fail(t, __FILE__, __LINE__, "docs/graph.md lacks%s", line);
            rows++;
        }
    T_EQ(t, rows, 18);
    unsigned shown = 0;
    for (const char *at = strstr(page, "| allowed |"); at; at = strstr(at + 1, "| allowed |")) shown++;
    T_TRUE(t, shown >= 18);
}

static void test_exchange(rondo_test *t) {
    rondo_capture_mode before = 99;
    T_FAILS(t, rondo_capture_mode_exchange(RONDO_CAPTURE_MODE_DEFAULT, &before), INVALID_ARGUMENT,
            "no mode of a thread");
    T_FAILS(t, rondo_capture_mode_exchange(4, &before), INVALID_ARGUMENT, "4 is no mode");
    T_FAILS(t, rondo_capture_mode_exchange(-1, &before), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_capture_mode_exchange(RONDO_CAPTURE_MODE_RELAXED, NULL), INVALID_ARGUMENT, "place");
    T_EQ(t, before, 99);
    T_OK(t, rondo_capture_mode_exchange(RONDO_CAPTURE_MODE_RELAXED, &before));
    T_EQ(t, before, RONDO_CAPTURE_MODE_GLOBAL);
    T_OK(t, rondo_capture_mode_exchange(RONDO_CAPTURE_MODE_GLOBAL, &before));
    T_EQ(t, before, RONDO_CAPTURE_MODE_RELAXED);
}

/* ------------------------------------------------------------------------------------------- by calls, on threads */

typedef struct caller {
    rondo_device *device;
    rondo_capture_mode thread;
    rondo_code code;
    bool unsafe;
} caller;

/* One call in a mode, which the thread leaves as it was. */
static void *caller_run(void *argument) {
    caller *c = argument;
    rondo_capture_mode before = RONDO_CAPTURE_MODE_GLOBAL, now;
    void *memory = NULL;
    rondo_status status = RONDO_OK;
    if (c->thread != RONDO_CAPTURE_MODE_DEFAULT) status = rondo_capture_mode_exchange(c->thread, &before);
    if (!status && c->unsafe) status = rondo_memory_trim(c->device);
    else if (!status) {
        status = rondo_memory_allocate(c->device, 64, &memory);
        if (!status) status = rondo_memory_free(c->device, memory);
    }
    c->code = rondo_status_code(status);
    rondo_status_release(status);
    rondo_status_release(rondo_capture_mode_exchange(before, &now));
    return NULL;
}

static void caller_call(rondo_test *t, caller *c, bool other) {
    pthread_t thread;
    c->code = RONDO_CODE_INTERNAL;
    if (!other) {
        (void)caller_run(c);
        return;
    }
    T_EQ(t, pthread_create(&thread, NULL, caller_run, c), 0);
    (void)pthread_join(thread, NULL);
}

/* A17. The 18 rows, each with one safe and one unsafe call; DEFAULT beside them. */
static void test_a17_capture_modes(rondo_test *t, const char *device) {
    graph_fixture f;
    rondo_graph *graph = NULL;
    gt_open(t, &f, device);
    T_OK(t, rondo_graph_create(f.device, NULL, &graph));
    T_DEFER(t, rondo_graph_release, graph);
    for (unsigned i = 0; i < 4u * 4u * 2u * 2u; i++) {
        rondo_capture_mode mode = (rondo_capture_mode)(i % 4u);
        caller c = {f.device, (rondo_capture_mode)(i / 4u % 4u), RONDO_CODE_INTERNAL, (i / 32u) != 0};
        bool other = (i / 16u % 2u) != 0;
        bool allowed = !c.unsafe || rule_allows(mode, c.thread, other);
        T_OK(t, rondo_graph_capture_begin(graph, f.stream, (rondo_pool_id){0, 0}, mode));
        T_OK(t, gt_add(&f, f.buffers[0], f.buffers[1], f.buffers[2]));
        caller_call(t, &c, other);
        if (c.code == RONDO_CODE_OUT_OF_MEMORY && rondo_test_failing(t)) return;
        T_EQ(t, c.code, allowed ? RONDO_CODE_OK : RONDO_CODE_INVALID_STATE);
        T_EQ(t, rondo_graph_get_state(graph), allowed ? RONDO_GRAPH_CAPTURING : RONDO_GRAPH_INVALIDATED);
        if (!allowed) {
            T_FAILS(t, gt_add(&f, f.buffers[0], f.buffers[1], f.buffers[2]), CAPTURE_INVALIDATED, "rondo_memory_trim");
            T_FAILS(t, rondo_graph_capture_end(graph, f.stream), CAPTURE_INVALIDATED, "rondo_memory_trim");
            continue;
        }
        T_OK(t, rondo_graph_capture_end(graph, f.stream));
        T_OK(t, gt_replay(&f, graph));
        T_NEAR(t, f.buffers[2][1], 102.0, 0.0);
        rondo_graph_reset(graph);
    }
    /* With no capture anything goes. */
    T_OK(t, rondo_memory_trim(f.device));
}
GT_BOTH(test_a17_capture_modes)

/* A mode that is none is refused before anything changes. */
static void test_a17_unknown_mode(rondo_test *t, const char *device) {
    graph_fixture f;
    rondo_graph *graph = NULL;
    rondo_memory_statistics before = RONDO_MEMORY_STATISTICS_INIT, after = RONDO_MEMORY_STATISTICS_INIT;
    rondo_capture_status status = RONDO_CAPTURE_STATUS_INIT;
    gt_open(t, &f, device);
    T_OK(t, rondo_graph_create(f.device, NULL, &graph));
    T_DEFER(t, rondo_graph_release, graph);
    T_OK(t, rondo_memory_get_statistics(f.device, (rondo_pool_id){0, 0}, &before));
    for (rondo_capture_mode mode = -3; mode < 8; mode++) {
        if (mode >= 0 && mode < RONDO_CAPTURE_MODE_COUNT) continue;
        T_FAILS(t, rondo_graph_capture_begin(graph, f.stream, (rondo_pool_id){0, 0}, mode), INVALID_ARGUMENT, "mode");
        T_EQ(t, rondo_graph_get_state(graph), RONDO_GRAPH_EMPTY);
        T_OK(t, rondo_stream_capture_status(f.stream, &status));
        T_EQ(t, status.active, 0);
    }
    T_OK(t, rondo_memory_get_statistics(f.device, (rondo_pool_id){0, 0}, &after));
    T_EQ(t, memcmp(&before, &after, sizeof before), 0);
}
GT_BOTH(test_a17_unknown_mode)

/* A15. A thread asks an event of before the capture again and again, while another captures 200 times: asking is a safe
 * call, so that it disturbs no capture in any mode. */
typedef struct watchdog {
    rondo_event *event;
    atomic_bool stop;
    atomic_uint asked, failed;
} watchdog;

static void *watchdog_run(void *argument) {
    watchdog *w = argument;
    while (!atomic_load(&w->stop)) {
        bool done;
        rondo_status status = rondo_event_query(w->event, &done);
        if (status) (void)atomic_fetch_add(&w->failed, 1u);
        rondo_status_release(status);
        (void)atomic_fetch_add(&w->asked, 1u);
    }
    return NULL;
}

static void a15_capture(rondo_test *t, graph_fixture *f, rondo_graph *graph) {
    for (unsigned i = 0; i < 3u * 200u; i++) {
        rondo_capture_mode mode = RONDO_CAPTURE_MODE_GLOBAL + (rondo_capture_mode)(i % 3u);
        T_OK(t, rondo_graph_capture_begin(graph, f->stream, (rondo_pool_id){0, 0}, mode));
        T_OK(t, gt_add(f, f->buffers[0], f->buffers[1], f->buffers[2]));
        T_OK(t, rondo_graph_capture_end(graph, f->stream));
        rondo_graph_reset(graph);
    }
}

static void watchdog_stop(watchdog *w) { atomic_store(&w->stop, true); }

static void test_a15_polling_disturbs_no_capture(rondo_test *t, const char *device) {
    graph_fixture f;
    rondo_graph *graph = NULL;
    static watchdog w;
    pthread_t thread;
    gt_open(t, &f, device);
    T_OK(t, rondo_graph_create(f.device, NULL, &graph));
    T_DEFER(t, rondo_graph_release, graph);
    w.event = NULL;
    atomic_store(&w.stop, false);
    atomic_store(&w.asked, 0u);
    atomic_store(&w.failed, 0u);
    T_OK(t, rondo_event_create(f.device, &w.event));
    T_DEFER(t, rondo_event_release, w.event);
    T_OK(t, rondo_event_record(w.event, f.other));
    T_EQ(t, pthread_create(&thread, NULL, watchdog_run, &w), 0);
    while (!atomic_load(&w.asked)) {}
    a15_capture(t, &f, graph);
    watchdog_stop(&w);
    (void)pthread_join(thread, NULL);
    T_EQ(t, atomic_load(&w.failed), 0);
    T_TRUE(t, atomic_load(&w.asked) > 0);
}
GT_BOTH(test_a15_polling_disturbs_no_capture)

RONDO_TEST_MAIN(T(test_table), T(test_page_is_up_to_date), T(test_exchange), GT_ENTRIES(test_a17_capture_modes),
                GT_ENTRIES(test_a17_unknown_mode), GT_PLAIN_ENTRIES(test_a15_polling_disturbs_no_capture))
