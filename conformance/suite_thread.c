/* SPDX-License-Identifier: Apache-2.0
 *
 * Several threads, each with streams and graphs of its own, on one device. */
#include <string.h>

#include "conf.h"

enum { THREADS = 4 };
static const rondo_pool_id no_pool = {0, 0};

typedef struct thread_worker {
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_event *event;
    rondo_kernel iota, copy;
    char *a, *b;
    uint64_t seed, wrong;
    rondo_code code;
    int rounds;
} thread_worker;

/* Keeps the first failure; true while there is none. */
static bool thread_went(thread_worker *w, rondo_status status) {
    rondo_code code = conf_code(status);
    if (!w->code) w->code = code;
    return !w->code;
}

static bool thread_iota(thread_worker *w, uint64_t start) {
    rondo_argument arguments[] = {CONF_WRITE(w->a, 800), CONF_VALUE(100), CONF_VALUE(start)};
    return thread_went(w, conf_launch(w->stream, w->iota, "iota", arguments, 3));
}

static bool thread_copy(thread_worker *w) {
    rondo_argument arguments[] = {CONF_READ(w->a, 800), CONF_WRITE(w->b, 800), CONF_VALUE(800)};
    return thread_went(w, conf_launch(w->stream, w->copy, "copy", arguments, 3));
}

static bool thread_look(thread_worker *w, uint64_t start) {
    uint64_t host[100];
    if (!thread_went(w, rondo_stream_copy(w->stream, host, w->b, 800, RONDO_COPY_DEVICE_TO_HOST)) ||
        !thread_went(w, rondo_stream_synchronize(w->stream)))
        return false;
    for (uint64_t i = 0; i < 100; ++i) w->wrong += host[i] != start + i;
    return true;
}

static void *thread_eager(void *argument) {
    thread_worker *w = argument;
    for (int i = 0; i < w->rounds; ++i) {
        uint64_t start = w->seed + (uint64_t)i * 1000;
        if (!thread_iota(w, start) || !thread_copy(w) || !thread_look(w, start)) break;
    }
    return NULL;
}

static void *thread_captures(void *argument) {
    thread_worker *w = argument;
    for (int i = 0; i < w->rounds && !w->code; ++i) {
        uint64_t start = w->seed + (uint64_t)i * 1000;
        if (!thread_went(w, rondo_graph_capture_begin(w->graph, w->stream, no_pool, RONDO_CAPTURE_MODE_THREAD_LOCAL)))
            break;
        (void)(thread_iota(w, start) && thread_copy(w));
        if (i % 5 == 4) {
            (void)thread_went(w, rondo_graph_abort(w->graph));
            continue;
        }
        if (!thread_went(w, rondo_graph_capture_end(w->graph, w->stream))) break;
        for (int k = 0; k < 3 && !w->code; ++k) {
            (void)thread_went(w, rondo_graph_replay(w->graph, w->stream));
            (void)thread_went(w, rondo_event_record(w->event, w->stream));
            (void)thread_went(w, rondo_event_synchronize(w->event));
        }
        (void)thread_look(w, start);
        rondo_graph_reset(w->graph);
    }
    return NULL;
}

static void *thread_makes_objects(void *argument) {
    thread_worker *w = argument;
    for (int i = 0; i < w->rounds && !w->code; ++i) {
        rondo_stream *stream = NULL;
        rondo_event *event = NULL;
        rondo_graph *graph = NULL;
        void *memory = NULL;
        if (thread_went(w, rondo_stream_create(w->device, NULL, &stream)) &&
            thread_went(w, rondo_event_create(w->device, &event)) &&
            thread_went(w, rondo_memory_allocate(w->device, 800, &memory)) &&
            thread_went(w, rondo_graph_create(w->device, NULL, &graph))) {
            (void)thread_went(w, rondo_stream_fill(stream, memory, 1, 800));
            (void)thread_went(w, rondo_event_record(event, stream));
            (void)thread_went(w, rondo_event_wait(event, w->stream));
        }
        rondo_event_release(event);
        if (memory) (void)thread_went(w, rondo_memory_free(w->device, memory));
        rondo_stream_release(stream);
        rondo_graph_release(graph);
        uint64_t start = w->seed + (uint64_t)i;
        (void)(thread_iota(w, start) && thread_copy(w) && thread_look(w, start));
    }
    return NULL;
}

static void thread_run(conf *t, void *(*function)(void *), int rounds) {
    thread_worker workers[THREADS];
    memset(workers, 0, sizeof workers);
    for (uint64_t i = 0; i < THREADS; ++i) {
        thread_worker *w = &workers[i];
        *w = (thread_worker){
            .device = t->device, .stream = conf_stream(t), .event = conf_event(t), .seed = i << 32, .rounds = rounds};
        if (function == thread_captures) w->graph = conf_graph(t);
        w->iota = conf_kernel(t, CONF_IOTA);
        w->copy = conf_kernel(t, CONF_COPY);
        w->a = conf_memory(t, 800);
        w->b = conf_memory(t, 800);
    }
    conf_threads(t, THREADS, function, workers, sizeof *workers);
    for (int i = 0; i < THREADS; ++i) {
        conf_want_room(t, workers[i].code, "a thread got 'out of range'");
        WANT(t, !workers[i].code, "thread %d got '%s'", i, rondo_code_name(workers[i].code));
        WANT(t, !workers[i].wrong, "thread %d saw %llu wrong numbers", i, (unsigned long long)workers[i].wrong);
    }
}

static void thread_streams(conf *t) { thread_run(t, thread_eager, 200); }
static void thread_graphs(conf *t) { thread_run(t, thread_captures, 100); }
static void thread_objects(conf *t) { thread_run(t, thread_makes_objects, 60); }

typedef struct thread_opener {
    rondo_instance *instance;
    const char *name;
    rondo_device *device;
    rondo_code code;
} thread_opener;

static void *thread_opens(void *argument) {
    thread_opener *w = argument;
    for (int i = 0; i < 50 && !w->code; ++i) {
        rondo_device *device = NULL;
        bool has;
        w->code = conf_code(rondo_device_open(w->instance, w->name, NULL, &device));
        if (!w->code && device != w->device) w->code = RONDO_CODE_INTERNAL;
        if (!w->code)
            w->code = conf_code(rondo_device_has_graph_impl(w->instance, rondo_device_info(device)->name, &has));
        rondo_device_release(device);
    }
    return NULL;
}

static void thread_registry(conf *t) {
    thread_opener workers[THREADS];
    for (int i = 0; i < THREADS; ++i)
        workers[i] = (thread_opener){t->instance, t->device_name, t->device, RONDO_CODE_OK};
    conf_threads(t, THREADS, thread_opens, workers, sizeof *workers);
    for (int i = 0; i < THREADS; ++i) WANT(t, !workers[i].code, "a thread got '%s'", rondo_code_name(workers[i].code));
}

static const conf_test tests[] = {
    {{"thread.streams", "thread stream", "Threads enqueue on streams of their own."}, 0, thread_streams},
    {{"thread.graphs", "thread graph capture",
      "Threads capture, abort and replay graphs of their own at the same time."},
     CONF_NEEDS_GRAPH,
     thread_graphs},
    {{"thread.objects", "thread destruction", "Threads make and release streams, events, graphs and memory."},
     CONF_NEEDS_GRAPH,
     thread_objects},
    {{"thread.registry", "thread registry", "The registry is asked and the device opened by many at once."},
     0,
     thread_registry},
};
CONF_SUITE(conf_suite_thread, tests);
