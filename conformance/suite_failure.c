/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes wrong around a capture, and that nothing of it is left behind. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "conf.h"

static const rondo_pool_id no_pool = {0, 0};

/* Stream, graph and memory work as if nothing had happened; `other` too. */
static void failure_want_clean(conf *t, rondo_graph *graph, rondo_stream *stream, const char *after) {
    rondo_capture_status status = RONDO_CAPTURE_STATUS_INIT;
    char *memory = conf_memory(t, 64);
    WANT(t, rondo_graph_get_state(graph) == RONDO_GRAPH_EMPTY, "%s: the graph is not empty", after);
    WANT_OK(t, rondo_stream_capture_status(stream, &status));
    WANT(t, !status.active && !status.invalidated && !status.id, "%s: the stream still captures", after);
    conf_want_usable(t, stream, after);
    conf_begin(t, graph, stream);
    conf_iota(t, stream, memory, 8, 55);
    conf_end(t, graph, stream);
    conf_replay(t, graph, stream);
    conf_want64(t, stream, memory, 8, 55, 1, after);
    rondo_graph_reset(graph);
    conf_drop(t, memory);
}

static void failure_break(conf *t, rondo_stream *stream, int way, void *memory) {
    bool done;
    rondo_argument beyond[] = {CONF_WRITE(memory, 4096), CONF_VALUE(8), CONF_VALUE(1)};
    if (way == 0) WANT_CODE(t, rondo_stream_synchronize(stream), INVALID_STATE);
    if (way == 1) WANT_CODE(t, rondo_stream_query(stream, &done), INVALID_STATE);
    if (way == 2) WANT_CODE(t, conf_launch(stream, conf_kernel(t, CONF_IOTA), "beyond", beyond, 3), OUT_OF_RANGE);
}

/* Each way of breaking a capture, each way of ending it. */
static void failure_invalidation(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 64);
    (void)conf_kernel(t, CONF_IOTA);
    for (int way = 0; way < 3; ++way) {
        for (int end = 0; end < 3; ++end) {
            rondo_capture_status status = RONDO_CAPTURE_STATUS_INIT;
            conf_begin(t, graph, stream);
            conf_iota(t, stream, memory, 8, 1);
            failure_break(t, stream, way, memory);
            WANT(t, rondo_graph_get_state(graph) == RONDO_GRAPH_INVALIDATED, "way %d does not invalidate", way);
            WANT_OK(t, rondo_stream_capture_status(stream, &status));
            WANT(t, status.active && status.invalidated, "a broken capture does not say so");
            rondo_argument arguments[] = {CONF_WRITE(memory, 64), CONF_VALUE(8), CONF_VALUE(1)};
            WANT_CODE(t, conf_launch(stream, conf_kernel(t, CONF_IOTA), "iota", arguments, 3), CAPTURE_INVALIDATED);
            WANT_CODE(t, rondo_stream_fill(stream, memory, 1, 8), CAPTURE_INVALIDATED);
            if (end == 0) WANT_CODE(t, rondo_graph_capture_end(graph, stream), CAPTURE_INVALIDATED);
            if (end == 1) WANT_OK(t, rondo_graph_abort(graph));
            if (end == 2) rondo_graph_reset(graph);
            failure_want_clean(t, graph, stream, "a capture that was broken");
            conf_want64(t, stream, memory, 8, 0, 0, "what a broken capture had recorded");
        }
    }
}

/* The end tells the first error, not the last. */
static void failure_first_error(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 64);
    rondo_argument beyond[] = {CONF_WRITE(memory, 4096), CONF_VALUE(8), CONF_VALUE(1)};
    conf_begin(t, graph, stream);
    WANT_CODE(t, conf_launch(stream, conf_kernel(t, CONF_IOTA), "first_trouble", beyond, 3), OUT_OF_RANGE);
    WANT_TEXT(t, conf_launch(stream, conf_kernel(t, CONF_IOTA), "second_trouble", beyond, 3), CAPTURE_INVALIDATED,
              "first_trouble");
    WANT_TEXT(t, rondo_graph_capture_end(graph, stream), CAPTURE_INVALIDATED, "first_trouble");
    failure_want_clean(t, graph, stream, "a capture with two errors");
}

/* An illegal call on one stream is no concern of a capture on another. */
static void failure_elsewhere(conf *t) {
    rondo_stream *first = conf_stream(t), *second = conf_stream(t);
    rondo_graph *broken = conf_graph(t), *whole = conf_graph(t);
    char *memory = conf_memory(t, 64);
    conf_begin(t, broken, first);
    conf_begin(t, whole, second);
    conf_iota(t, second, memory, 8, 1);
    WANT_CODE(t, rondo_stream_synchronize(first), INVALID_STATE);
    conf_iota(t, second, memory, 8, 12);
    WANT_CODE(t, rondo_graph_capture_end(broken, first), CAPTURE_INVALIDATED);
    conf_end(t, whole, second);
    conf_replay(t, whole, first);
    conf_want64(t, first, memory, 8, 12, 1, "a capture beside one that was broken");
}

static void failure_abort(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 64);
    for (int i = 0; i < 30; ++i) {
        conf_begin(t, graph, stream);
        for (int k = 0; k < i; ++k) conf_iota(t, stream, memory, 8, 9);
        WANT_OK(t, rondo_graph_abort(graph));
        failure_want_clean(t, graph, stream, "an abort");
    }
    conf_want64(t, stream, memory, 8, 0, 0, "what aborted captures had recorded");
}

typedef struct failure_thread {
    rondo_graph *graph;
    rondo_stream *stream;
    rondo_code code;
} failure_thread;

static void *failure_abort_work(void *argument) {
    failure_thread *w = argument;
    w->code = conf_code(rondo_graph_abort(w->graph));
    return NULL;
}

static void *failure_end_work(void *argument) {
    failure_thread *w = argument;
    w->code = conf_code(rondo_graph_capture_end(w->graph, w->stream));
    return NULL;
}

static void failure_abort_from_thread(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 64);
    for (rondo_capture_mode mode = 0; mode < RONDO_CAPTURE_MODE_COUNT; ++mode) {
        failure_thread work = {graph, stream, RONDO_CODE_OK};
        WANT_OK(t, rondo_graph_capture_begin(graph, stream, no_pool, mode));
        conf_iota(t, stream, memory, 8, 9);
        conf_threads(t, 1, failure_abort_work, &work, sizeof work);
        WANT(t, !work.code, "an abort from another thread gives '%s'", rondo_code_name(work.code));
        WANT_CODE(t, rondo_graph_capture_end(graph, stream), INVALID_STATE);
        failure_want_clean(t, graph, stream, "an abort from another thread");
    }
    conf_want64(t, stream, memory, 8, 0, 0, "what aborted captures had recorded");
}

/* Only a relaxed capture ends on another thread than it began on. */
static void failure_end_from_thread(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 64);
    for (rondo_capture_mode mode = 0; mode < RONDO_CAPTURE_MODE_COUNT; ++mode) {
        failure_thread work = {graph, stream, RONDO_CODE_OK};
        bool relaxed = mode == RONDO_CAPTURE_MODE_RELAXED;
        WANT_OK(t, rondo_graph_capture_begin(graph, stream, no_pool, mode));
        conf_iota(t, stream, memory, 8, 60u + (unsigned)mode);
        conf_threads(t, 1, failure_end_work, &work, sizeof work);
        WANT(t, work.code == (relaxed ? RONDO_CODE_OK : RONDO_CODE_INVALID_STATE),
             "an end on another thread, mode %d, gives '%s'", (int)mode, rondo_code_name(work.code));
        if (!relaxed) conf_end(t, graph, stream);
        conf_replay(t, graph, stream);
        conf_want64(t, stream, memory, 8, 60u + (unsigned)mode, 1, "a capture that another thread tried to end");
        rondo_graph_reset(graph);
    }
}

typedef struct failure_hammer {
    rondo_stream *stream;
    rondo_kernel kernel;
    void *memory;
    rondo_graph *graph;
    bool aborts;
    uint32_t wrong;
} failure_hammer;

/* Records until the abort comes; what may come back then is ABORTED, or success as an ordinary launch. */
static void *failure_hammer_work(void *argument) {
    failure_hammer *w = argument;
    if (w->aborts) {
        uint64_t until = conf_now() + 300000;
        while (conf_now() < until) {}
        w->wrong = conf_code(rondo_graph_abort(w->graph)) != RONDO_CODE_OK;
        return NULL;
    }
    rondo_argument arguments[] = {CONF_WRITE(w->memory, 64), CONF_VALUE(8), CONF_VALUE(3)};
    for (int i = 0; i < 2000 && rondo_graph_get_state(w->graph) == RONDO_GRAPH_CAPTURING; ++i) {
        rondo_code code = conf_code(conf_launch(w->stream, w->kernel, "iota", arguments, 3));
        if (code != RONDO_CODE_OK && code != RONDO_CODE_ABORTED) w->wrong++;
    }
    return NULL;
}

static void failure_abort_races(conf *t) {
    for (int round = 0; round < 20; ++round) {
        rondo_stream *stream = conf_stream(t);
        rondo_graph *graph = conf_graph(t);
        void *memory = conf_memory(t, 64);
        failure_hammer work[2] = {{stream, conf_kernel(t, CONF_IOTA), memory, graph, false, 0},
                                  {NULL, {NULL, NULL}, NULL, graph, true, 0}};
        WANT_OK(t, rondo_graph_capture_begin(graph, stream, no_pool, RONDO_CAPTURE_MODE_RELAXED));
        conf_threads(t, 2, failure_hammer_work, work, sizeof *work);
        WANT(t, !work[0].wrong && !work[1].wrong, "an abort in the middle of recording gave a wrong code");
        conf_sync(t, stream);
        failure_want_clean(t, graph, stream, "an abort in the middle of recording");
        conf_drop(t, graph);
        conf_drop(t, memory);
        conf_drop(t, stream);
    }
}

/* A kernel that fails stops its replay, is named, and leaves stream and graph usable. */
static int32_t failure_kernel(const void *context, const uint64_t *words) {
    (void)words;
    return __atomic_load_n((const int32_t *)context, __ATOMIC_SEQ_CST);
}

static void failure_in_replay(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *before = conf_memory(t, 64), *after = conf_memory(t, 64);
    int32_t *reason = conf_host(t, sizeof *reason);
    rondo_kernel kernel = {failure_kernel, reason};
    rondo_argument none[] = {CONF_VALUE(0)};
    conf_begin(t, graph, stream);
    conf_iota(t, stream, before, 8, 1);
    WANT_OK(t, conf_launch(stream, kernel, "the_one_that_fails", none, 1));
    conf_iota(t, stream, after, 8, 2);
    conf_end(t, graph, stream);
    for (int round = 0; round < 4; ++round) {
        char text[1024];
        *reason = round % 2 ? 0 : 5;
        WANT_OK(t, rondo_stream_fill(stream, before, 0, 64));
        WANT_OK(t, rondo_stream_fill(stream, after, 0, 64));
        conf_sync(t, stream);
        rondo_code code = conf_failure_of(stream, rondo_graph_replay(graph, stream), text, sizeof text);
        WANT(t, code == (round % 2 ? RONDO_CODE_OK : RONDO_CODE_KERNEL_FAILED), "round %d gave '%s'", round,
             rondo_code_name(code));
        conf_want64(t, stream, before, 8, 1, 1, "what stands before a failing node");
        if (round % 2) conf_want64(t, stream, after, 8, 2, 1, "a replay after one that failed");
        else conf_want64(t, stream, after, 8, 0, 0, "what stands behind a failing node");
        WANT(t, rondo_graph_get_state(graph) == RONDO_GRAPH_READY, "a failing replay changed the state");
    }
}

/* A graph of two streams: the slot is filled, on the side is what fails, behind the join the node that is updated. */
typedef struct failure_bed {
    rondo_stream *stream, *side, *other;
    rondo_graph *graph;
    int32_t *reason;
    char *slots[2], *after[2];
    uint32_t told; /* how often a failure that names the node came back */
} failure_bed;

static failure_bed failure_make(conf *t, bool forks) {
    rondo_event *out = conf_event(t), *back = conf_event(t);
    rondo_argument none[] = {CONF_VALUE(0)};
    failure_bed bed = {.stream = conf_stream(t), .side = conf_stream(t), .other = conf_stream(t)};
    bed.graph = conf_graph(t);
    bed.reason = conf_host(t, sizeof *bed.reason);
    for (int i = 0; i < 2; ++i) {
        bed.slots[i] = conf_memory(t, 64);
        bed.after[i] = conf_memory(t, 64);
    }
    rondo_kernel kernel = {failure_kernel, bed.reason};
    WANT_OK(t, rondo_graph_declare_slot(bed.graph, 0, bed.slots[0], 64, RONDO_ACCESS_WRITE, RONDO_SLOT_REBIND));
    conf_begin(t, bed.graph, bed.stream);
    conf_iota(t, bed.stream, bed.slots[0], 8, 10);
    WANT_OK(t, rondo_event_record(out, bed.stream));
    WANT_OK(t, rondo_event_wait(out, bed.side));
    WANT_OK(t, conf_launch(forks ? bed.side : bed.stream, kernel, "the_one_that_fails", none, 1));
    WANT_OK(t, rondo_event_record(back, bed.side));
    WANT_OK(t, rondo_event_wait(back, bed.stream));
    conf_iota(t, bed.stream, bed.after[0], 8, 20);
    conf_end(t, bed.graph, bed.stream);
    return bed;
}

static void failure_hear(conf *t, failure_bed *bed, rondo_status status) {
    char text[1024];
    if (!status) return;
    rondo_status_format(status, text, sizeof text);
    WANT(t, strstr(text, "the_one_that_fails"), "a failure does not name its call: %s", text);
    WANT_CODE(t, status, KERNEL_FAILED);
    bed->told++;
}

/* A replay that failed is over. Whoever changes the graph next waits for that and no more; the failure is told once, where
 * the work was enqueued or where it is waited for; then all is as ever, on other streams too. */
static void failure_then_change(conf *t) {
    for (int forks = 0; forks < 2; ++forks) {
        failure_bed bed = failure_make(t, forks);
        for (int round = 0; round < 3; ++round) {
            int to = round % 2;
            rondo_argument iota[] = {CONF_WRITE(bed.after[to], 64), CONF_VALUE(8), CONF_VALUE(30 + round)};
            *bed.reason = 4;
            bed.told = 0;
            failure_hear(t, &bed, rondo_graph_replay(bed.graph, bed.stream));
            WANT_OK(t, rondo_graph_bind(bed.graph, 0, bed.slots[to]));
            WANT_OK(t, rondo_graph_update(bed.graph, 2, iota, 3));
            failure_hear(t, &bed, rondo_stream_synchronize(bed.stream));
            WANT(t, bed.told == 1, "the failure of a replay was told %u times", (unsigned)bed.told);
            conf_sync(t, bed.stream);
            *bed.reason = 0;
            for (int i = 0; i < 2; ++i) {
                WANT_OK(t, rondo_stream_fill(bed.other, bed.slots[i], 0, 64));
                WANT_OK(t, rondo_stream_fill(bed.other, bed.after[i], 0, 64));
            }
            conf_replay(t, bed.graph, bed.other);
            conf_want64(t, bed.other, bed.slots[to], 8, 10, 1, "a slot that was bound after a failure");
            conf_want64(t, bed.other, bed.after[to], 8, 30 + (uint64_t)round, 1,
                        "a node that was updated after a failure");
            conf_want64(t, bed.other, bed.slots[!to], 8, 0, 0, "where the slot was bound before the failure");
            conf_want64(t, bed.other, bed.after[!to], 8, 0, 0, "where the node wrote before the failure");
        }
    }
}

/* The failure is told first; then the graph goes on elsewhere at once, and nobody hears of it again. */
static void failure_then_elsewhere(conf *t) {
    for (int forks = 0; forks < 2; ++forks) {
        failure_bed bed = failure_make(t, forks);
        for (int round = 0; round < 3; ++round) {
            *bed.reason = 4;
            bed.told = 0;
            failure_hear(t, &bed, rondo_graph_replay(bed.graph, bed.stream));
            failure_hear(t, &bed, rondo_stream_synchronize(bed.stream));
            WANT(t, bed.told == 1, "the failure of a replay was told %u times", (unsigned)bed.told);
            *bed.reason = 0;
            conf_replay(t, bed.graph, bed.other);
            conf_want64(t, bed.other, bed.after[0], 8, 20, 1, "a replay on another stream than the one that failed");
            WANT_OK(t, rondo_stream_fill(bed.other, bed.after[0], 0, 64));
            conf_sync(t, bed.other);
        }
        conf_drop(t, bed.graph);
        conf_want_usable(t, bed.stream, "a graph that failed and is gone");
    }
}

/* A graph that goes takes no failure along. */
static void failure_then_gone(conf *t) {
    for (int forks = 0; forks < 2; ++forks) {
        failure_bed bed = failure_make(t, forks);
        *bed.reason = 4;
        failure_hear(t, &bed, rondo_graph_replay(bed.graph, bed.stream));
        conf_drop(t, bed.graph);
        failure_hear(t, &bed, rondo_stream_synchronize(bed.stream));
        WANT(t, bed.told == 1, "the failure of a graph that is gone was told %u times", (unsigned)bed.told);
        conf_want_usable(t, bed.stream, "a graph that failed and is gone");
    }
}

/* Where the host runs the device's lists, the failure of a node is told by its name; elsewhere at least the stream's is. */
static void failure_of_host_call(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    uint32_t *called = conf_host(t, sizeof *called);
    conf_begin(t, graph, stream);
    WANT_OK(t, rondo_stream_host_call(stream, conf_count_call, called));
    WANT_OK(t, rondo_stream_host_call(stream, conf_failing_call, NULL));
    conf_end(t, graph, stream);
    for (uint32_t round = 1; round <= 3; ++round) {
        rondo_code code = conf_failure_of(stream, rondo_graph_replay(graph, stream), NULL, 0);
        WANT(t, code == RONDO_CODE_KERNEL_FAILED, "a failing host call in a replay gave '%s'", rondo_code_name(code));
        WANT(t, *called == round, "the host call before it ran %u times in %u replays", (unsigned)*called,
             (unsigned)round);
        conf_want_usable(t, stream, "a replay that failed");
    }
}

/* A failure that was pending when a capture began is still told afterwards, once. */
static void failure_before_capture(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 64);
    rondo_status early = rondo_stream_host_call(stream, conf_failing_call, NULL);
    conf_begin(t, graph, stream);
    conf_iota(t, stream, memory, 8, 1);
    conf_end(t, graph, stream);
    rondo_code code = conf_failure_of(stream, early, NULL, 0);
    WANT(t, code == RONDO_CODE_KERNEL_FAILED, "a failure from before a capture came out as '%s'",
         rondo_code_name(code));
    conf_sync(t, stream);
    conf_replay(t, graph, stream);
    conf_want64(t, stream, memory, 8, 1, 1, "a graph whose stream had failed before");
}

/* Many broken captures leave nothing alive: the device's own count says so at the end. */
static void failure_leaves_nothing(conf *t) {
    uint64_t bytes = 0, before = 0, after = 0;
    rondo_stream *stream = conf_stream(t);
    char *memory = conf_memory(t, 64);
    (void)conf_kernel(t, CONF_IOTA);
    rondo_memory_usage(t->device, &bytes, &before);
    for (int i = 0; i < 300; ++i) {
        rondo_graph *graph = conf_graph(t);
        WANT_OK(t, rondo_graph_declare_slot(graph, 0, memory, 64, RONDO_ACCESS_BOTH, RONDO_SLOT_COPY));
        conf_begin(t, graph, stream);
        conf_iota(t, stream, memory, 8, 1);
        if (i % 3 == 1) failure_break(t, stream, 0, memory);
        if (i % 3 != 2) WANT_OK(t, rondo_graph_abort(graph));
        conf_drop(t, graph);
    }
    rondo_memory_usage(t->device, &bytes, &after);
    WANT(t, after == before, "300 broken captures left %llu allocations", (unsigned long long)(after - before));
    conf_want_usable(t, stream, "300 broken captures");
}

#define FAILURE(name, what, function) \
    { {"failure." name, "failure capture graph", what}, CONF_NEEDS_GRAPH, function }
static const conf_test tests[] = {
    FAILURE("invalidation", "Every illegal call breaks the capture and nothing else, however it is ended.",
            failure_invalidation),
    FAILURE("first_error", "The end of a broken capture tells its first error.", failure_first_error),
    FAILURE("elsewhere", "A capture does not suffer from another's end.", failure_elsewhere),
    FAILURE("abort", "An abort drops the work and frees stream and graph.", failure_abort),
    FAILURE("abort_thread", "An abort may come from another thread, in every mode.", failure_abort_from_thread),
    FAILURE("end_thread", "Only a relaxed capture ends on another thread.", failure_end_from_thread),
    FAILURE("abort_race", "An abort may come in the middle of recording.", failure_abort_races),
    {{"failure.in_replay", "failure replay graph", "A failing kernel stops its replay; stream and graph go on."},
     CONF_NEEDS_GRAPH | CONF_NEEDS_HOST_KERNELS | CONF_NEEDS_STOP,
     failure_in_replay},
    {{"failure.then_change", "failure replay graph slot update fork",
      "After a replay that failed, slots are bound and nodes updated; the failure is told once, by name, elsewhere."},
     CONF_NEEDS_GRAPH | CONF_NEEDS_HOST_KERNELS,
     failure_then_change},
    {{"failure.then_elsewhere", "failure replay graph fork", "A failure that was told is no concern of other streams."},
     CONF_NEEDS_GRAPH | CONF_NEEDS_HOST_KERNELS,
     failure_then_elsewhere},
    {{"failure.then_gone", "failure replay graph fork destruction", "A graph that goes takes no failure along."},
     CONF_NEEDS_GRAPH | CONF_NEEDS_HOST_KERNELS,
     failure_then_gone},
    {{"failure.host_call", "failure capture graph", "A failing host call fails its replay, each time once."},
     CONF_NEEDS_GRAPH | CONF_NEEDS_HOST_CALLS,
     failure_of_host_call},
    {{"failure.before_capture", "failure capture graph", "A failure from before a capture is told after it."},
     CONF_NEEDS_GRAPH | CONF_NEEDS_HOST_CALLS,
     failure_before_capture},
    FAILURE("leaves_nothing", "Broken captures leave no memory behind.", failure_leaves_nothing),
};
CONF_SUITE(conf_suite_failure, tests);
