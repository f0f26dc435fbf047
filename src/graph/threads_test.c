/* SPDX-License-Identifier: Apache-2.0
 *
 * Several threads on one device, each with graphs of its own: what they share is the device's memory, its lists of streams,
 * captures and replays in flight, and the captures that one aborts for another. For the thread sanitizer as much as for the
 * values. */
#include <pthread.h>
#include <stdlib.h>

#include "graph/graph_testing.h"

#define THREADS 4u
#define ROUNDS 600u
#define ROUNDS_OF_TOOLS 60u /* valgrind, and sanitizers by way of ./dev check */

typedef struct thread_work thread_work;
struct thread_work {
    graph_fixture *f;
    thread_work *neighbour;
    unsigned number, rounds;
    rondo_stream *stream, *side;
    rondo_event *fork, *join;
    rondo_graph *graph;  /* its own */
    rondo_graph *victim; /* captured here, aborted by a neighbour */
    rondo_stream *victims;
    const char *problem;
    char text[512];
};

static thread_work works[THREADS];

static bool must(thread_work *w, rondo_status status) {
    if (status && !w->problem) {
        (void)rondo_status_format(status, w->text, sizeof w->text);
        w->problem = w->text;
    }
    bool good = !status;
    rondo_status_release(status);
    return good;
}

static void must_fail(thread_work *w, rondo_status status, rondo_code code, const char *what) {
    if (rondo_status_code(status) != code && !w->problem) w->problem = what;
    rondo_status_release(status);
}

/* out = (a + b) + b, the second sum in a lane of its own, over a temporary of the graph's pool. */
static rondo_status capture_lanes(thread_work *w, const float *a, const float *b, float *out) {
    void *temporary = NULL;
    RONDO__TRY(rondo_graph_capture_begin(w->graph, w->stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    RONDO__TRY(rondo_memory_allocate_on(w->stream, GT_BYTES, &temporary));
    rondo_status status = gt_add_named(w->f, w->stream, "first", a, b, temporary);
    if (!status) status = rondo_event_record(w->fork, w->stream);
    if (!status) status = rondo_event_wait(w->fork, w->side);
    if (!status) status = gt_add_named(w->f, w->side, "second", temporary, b, out);
    if (!status) status = rondo_event_record(w->join, w->side);
    if (!status) status = rondo_event_wait(w->join, w->stream);
    rondo_status freed = rondo_memory_free(w->f->device, temporary);
    status = status ? status : freed;
    return status ? status : rondo_graph_capture_end(w->graph, w->stream);
}

/* To and from the device by copies, for that is how the host may touch it on every device. */
static void round_of_values(thread_work *w, unsigned round) {
    rondo_device *device = w->f->device;
    void *memory[3] = {NULL, NULL, NULL};
    float values[GT_FLOATS], got[GT_FLOATS] = {0};
    for (unsigned i = 0; i < GT_FLOATS; i++) values[i] = (float)(w->number * 1000u + round + i);
    for (unsigned i = 0; i < 3; i++) (void)must(w, rondo_memory_allocate_on(w->stream, GT_BYTES, &memory[i]));
    if (w->problem) return;
    for (unsigned i = 0; i < 2; i++)
        (void)must(w, rondo_stream_copy(w->stream, memory[i], values, GT_BYTES, RONDO_COPY_HOST_TO_DEVICE));
    if (must(w, capture_lanes(w, memory[0], memory[1], memory[2])) &&
        must(w, rondo_graph_replay(w->graph, w->stream)) && must(w, rondo_graph_replay(w->graph, w->side)) &&
        must(w, rondo_stream_synchronize(w->side)) &&
        must(w, rondo_stream_copy(w->stream, got, memory[2], GT_BYTES, RONDO_COPY_DEVICE_TO_HOST)) &&
        must(w, rondo_stream_synchronize(w->stream))) {
        for (unsigned i = 0; i < GT_FLOATS; i++)
            if (got[i] != 3.0f * values[i]) w->problem = "a value is wrong";
    }
    (void)must(w, rondo_memory_free(device, memory[round % 3u]));
    must_fail(w, rondo_graph_replay(w->graph, w->stream), RONDO_CODE_STALE, "a replay of freed memory was not refused");
    for (unsigned i = 1; i < 3; i++) (void)must(w, rondo_memory_free(device, memory[(round + i) % 3u]));
    rondo_graph_reset(w->graph);
}

/* A capture that a neighbour may end at any moment: whatever comes of it is right, but for what is left behind. */
static void round_of_a_victim(thread_work *w) {
    rondo_status_release(
        rondo_graph_capture_begin(w->victim, w->victims, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_RELAXED));
    for (int i = 0; i < 4; i++)
        rondo_status_release(rondo_stream_fill(w->victims, w->f->buffers[w->number], 0, GT_BYTES));
    rondo_status_release(rondo_graph_capture_end(w->victim, w->victims));
    rondo_graph_reset(w->victim);
    (void)must(w, rondo_stream_synchronize(w->victims));
}

static void *thread_run(void *argument) {
    thread_work *w = argument;
    for (unsigned round = 0; round < w->rounds && !w->problem; round++) {
        round_of_values(w, round);
        round_of_a_victim(w);
        rondo_status_release(rondo_graph_abort(w->neighbour->victim));
        if (round % 50u == 49u) (void)must(w, rondo_memory_trim(w->f->device));
    }
    return NULL;
}

static void threads_close(graph_fixture *f) {
    (void)f;
    for (unsigned i = 0; i < THREADS; i++) {
        rondo_graph_release(works[i].graph);
        rondo_graph_release(works[i].victim);
        rondo_event_release(works[i].fork);
        rondo_event_release(works[i].join);
        rondo_stream_release(works[i].side);
        rondo_stream_release(works[i].stream);
        rondo_stream_release(works[i].victims);
    }
}

static void threads_open(rondo_test *t, graph_fixture *f, const char *device) {
    gt_open(t, f, device);
    memset(works, 0, sizeof works);
    T_DEFER(t, threads_close, f);
    for (unsigned i = 0; i < THREADS; i++) {
        thread_work *w = &works[i];
        w->f = f;
        w->neighbour = &works[(i + 1u) % THREADS];
        w->number = i;
        w->rounds = getenv("RONDO_TEST_PLAIN") ? ROUNDS_OF_TOOLS : ROUNDS;
        T_OK(t, rondo_stream_create(f->device, NULL, &w->stream));
        T_OK(t, rondo_stream_create(f->device, NULL, &w->side));
        T_OK(t, rondo_stream_create(f->device, NULL, &w->victims));
        T_OK(t, rondo_event_create(f->device, &w->fork));
        T_OK(t, rondo_event_create(f->device, &w->join));
        T_OK(t, rondo_graph_create(f->device, NULL, &w->graph));
        T_OK(t, rondo_graph_create(f->device, NULL, &w->victim));
    }
}

static void test_graphs_of_several_threads(rondo_test *t, const char *device) {
    static graph_fixture f;
    pthread_t threads[THREADS];
    rondo_memory_statistics before = RONDO_MEMORY_STATISTICS_INIT, after = RONDO_MEMORY_STATISTICS_INIT;
    threads_open(t, &f, device);
    T_OK(t, rondo_memory_get_statistics(f.device, (rondo_pool_id){0, 0}, &before));
    for (unsigned i = 0; i < THREADS; i++) T_EQ(t, pthread_create(&threads[i], NULL, thread_run, &works[i]), 0);
    for (unsigned i = 0; i < THREADS; i++) (void)pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < THREADS; i++)
        if (works[i].problem) rondo_test_fail(t, __FILE__, __LINE__, "thread %u: %s", i, works[i].problem);
    T_OK(t, rondo_memory_trim(f.device));
    T_OK(t, rondo_memory_get_statistics(f.device, (rondo_pool_id){0, 0}, &after));
    T_EQ(t, after.allocations, before.allocations);
    T_EQ(t, after.allocated_bytes, before.allocated_bytes);
    T_EQ(t, after.reserved_bytes, before.reserved_bytes);
    T_EQ(t, after.pending_bytes, 0);
    T_OK(t, rondo__memory_check(f.device->memory));
}
GT_BOTH(test_graphs_of_several_threads)

RONDO_TEST_MAIN(GT_PLAIN_ENTRIES(test_graphs_of_several_threads))
