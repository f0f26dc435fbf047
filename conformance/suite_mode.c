/* SPDX-License-Identifier: Apache-2.0
 *
 * Capture modes: the table, counted out anew; a thread's own mode; and what calls of either kind get while a capture
 * lasts. */
#include "conf.h"

/* An unsafe call is allowed when either side is relaxed, or when the capture is another thread's and either side says
 * that threads do not concern each other. */
static bool mode_wanted(rondo_capture_mode capture, rondo_capture_mode thread, bool other, bool unsafe_call) {
    if (!unsafe_call) return true;
    if (capture == RONDO_CAPTURE_MODE_RELAXED || thread == RONDO_CAPTURE_MODE_RELAXED) return true;
    return other && (capture == RONDO_CAPTURE_MODE_THREAD_LOCAL || thread == RONDO_CAPTURE_MODE_THREAD_LOCAL);
}

static void mode_table(conf *t) {
    for (rondo_capture_mode capture = 0; capture < RONDO_CAPTURE_MODE_COUNT; ++capture)
        for (rondo_capture_mode thread = RONDO_CAPTURE_MODE_GLOBAL; thread < RONDO_CAPTURE_MODE_COUNT; ++thread)
            for (int other = 0; other < 2; ++other)
                for (int unsafe_call = 0; unsafe_call < 2; ++unsafe_call)
                    WANT(t,
                         rondo_capture_mode_allows(capture, thread, other, unsafe_call) ==
                             mode_wanted(capture, thread, other, unsafe_call),
                         "capture mode %d, thread mode %d, %s thread, %s call", (int)capture, (int)thread,
                         other ? "another" : "the same", unsafe_call ? "an unsafe" : "a safe");
    for (int unsafe_call = 0; unsafe_call < 2; ++unsafe_call)
        WANT(t,
             !rondo_capture_mode_allows(-1, 1, false, unsafe_call) &&
                 !rondo_capture_mode_allows(1, RONDO_CAPTURE_MODE_COUNT, true, unsafe_call),
             "a mode that does not exist allows calls");
}

static rondo_capture_mode mode_set(conf *t, rondo_capture_mode mode) {
    rondo_capture_mode before = -1;
    WANT_OK(t, rondo_capture_mode_exchange(mode, &before));
    return before;
}

static void *mode_other_thread(void *argument) {
    rondo_capture_mode *seen = argument;
    rondo_capture_mode before = -1;
    if (conf_code(rondo_capture_mode_exchange(RONDO_CAPTURE_MODE_THREAD_LOCAL, &before)) == RONDO_CODE_OK)
        *seen = before;
    return NULL;
}

static void mode_exchange(conf *t) {
    rondo_capture_mode before = -1, seen = -1;
    rondo_capture_mode first = mode_set(t, RONDO_CAPTURE_MODE_RELAXED);
    rondo_capture_mode second = mode_set(t, RONDO_CAPTURE_MODE_THREAD_LOCAL);
    rondo_code none = conf_code(rondo_capture_mode_exchange(RONDO_CAPTURE_MODE_DEFAULT, &before));
    rondo_code unknown = conf_code(rondo_capture_mode_exchange(RONDO_CAPTURE_MODE_COUNT, &before));
    conf_threads(t, 1, mode_other_thread, &seen, sizeof seen);
    rondo_capture_mode third = mode_set(t, first);
    WANT(t, second == RONDO_CAPTURE_MODE_RELAXED && third == RONDO_CAPTURE_MODE_THREAD_LOCAL,
         "exchanging gives %d and %d, not what was set", (int)second, (int)third);
    WANT(t, none == RONDO_CODE_INVALID_ARGUMENT && unknown == RONDO_CODE_INVALID_ARGUMENT,
         "modes of no thread give '%s' and '%s'", rondo_code_name(none), rondo_code_name(unknown));
    WANT(t, seen == RONDO_CAPTURE_MODE_GLOBAL, "a new thread starts in mode %d", (int)seen);
}

/* ------------------------------------------------------------------------------------------ while a capture lasts */

enum { MODE_BYTES = 24 << 20 }; /* more than what lies about in any cache: the device is asked */

typedef struct mode_caller {
    rondo_device *device;
    rondo_stream *stream; /* that does not capture */
    rondo_event *event;
    rondo_kernel iota;
    void *memory; /* of 64 bytes */
    rondo_capture_mode mode;
    rondo_code code;
    const char *what; /* the call that got it */
} mode_caller;

static bool mode_went(mode_caller *c, const char *what, rondo_status status) {
    if (!status) return true;
    c->what = what;
    c->code = conf_code(status);
    return false;
}

static bool mode_safe_memory(mode_caller *c) {
    void *memory = NULL, *pinned = NULL;
    bool good = mode_went(c, "rondo_memory_allocate", rondo_memory_allocate(c->device, MODE_BYTES, &memory)) &&
                mode_went(c, "rondo_memory_host_allocate", rondo_memory_host_allocate(c->device, MODE_BYTES, &pinned));
    if (memory) good = mode_went(c, "rondo_memory_free", rondo_memory_free(c->device, memory)) && good;
    if (pinned) good = mode_went(c, "rondo_memory_host_free", rondo_memory_host_free(c->device, pinned)) && good;
    return good;
}

static bool mode_safe_work(mode_caller *c) {
    const rondo_argument arguments[] = {CONF_WRITE(c->memory, 64), CONF_VALUE(8), CONF_VALUE(40)};
    char host[64];
    bool done;
    return mode_went(c, "rondo_stream_launch", conf_launch(c->stream, c->iota, "iota", arguments, 3)) &&
           mode_went(c, "rondo_stream_copy",
                     rondo_stream_copy(c->stream, host, c->memory, 64, RONDO_COPY_DEVICE_TO_HOST)) &&
           mode_went(c, "rondo_stream_fill", rondo_stream_fill(c->stream, c->memory, 1, 32)) &&
           mode_went(c, "rondo_event_record", rondo_event_record(c->event, c->stream)) &&
           mode_went(c, "rondo_event_wait", rondo_event_wait(c->event, c->stream)) &&
           mode_went(c, "rondo_event_query", rondo_event_query(c->event, &done)) &&
           mode_went(c, "rondo_event_synchronize", rondo_event_synchronize(c->event)) &&
           mode_went(c, "rondo_stream_query", rondo_stream_query(c->stream, &done)) &&
           mode_went(c, "rondo_stream_synchronize", rondo_stream_synchronize(c->stream));
}

static bool mode_safe_objects(mode_caller *c) {
    rondo_stream *stream = NULL;
    rondo_event *event = NULL;
    bool good = mode_went(c, "rondo_stream_create", rondo_stream_create(c->device, NULL, &stream)) &&
                mode_went(c, "rondo_event_create", rondo_event_create(c->device, &event));
    rondo_event_release(event);
    rondo_stream_release(stream);
    return good;
}

static void *mode_safe(void *argument) {
    mode_caller *c = argument;
    rondo_capture_mode before = RONDO_CAPTURE_MODE_GLOBAL;
    if (!mode_went(c, "rondo_capture_mode_exchange", rondo_capture_mode_exchange(c->mode, &before))) return NULL;
    (void)(mode_safe_work(c) && mode_safe_memory(c) && mode_safe_objects(c));
    (void)mode_went(c, "rondo_capture_mode_exchange", rondo_capture_mode_exchange(before, &before));
    return NULL;
}

static void *mode_unsafe(void *argument) {
    mode_caller *c = argument;
    rondo_capture_mode before = RONDO_CAPTURE_MODE_GLOBAL;
    if (!mode_went(c, "rondo_capture_mode_exchange", rondo_capture_mode_exchange(c->mode, &before))) return NULL;
    (void)mode_went(c, "rondo_memory_trim", rondo_memory_trim(c->device));
    (void)mode_went(c, "rondo_capture_mode_exchange", rondo_capture_mode_exchange(before, &before));
    return NULL;
}

/* One cell of the table: the capture either goes on and is whole, or is broken by the call and says so. */
static void mode_cell(conf *t, rondo_graph *graph, rondo_stream *stream, mode_caller *c, rondo_capture_mode capture,
                      bool other, bool unsafe_call) {
    static const rondo_pool_id none = {0, 0};
    void *(*call)(void *) = unsafe_call ? mode_unsafe : mode_safe;
    bool wanted = mode_wanted(capture, c->mode, other, unsafe_call);
    char *memory = conf_memory(t, 64);
    WANT_OK(t, rondo_graph_capture_begin(graph, stream, none, capture));
    conf_iota(t, stream, memory, 8, 6);
    c->code = RONDO_CODE_OK;
    if (other) conf_threads(t, 1, call, c, sizeof *c);
    else (void)call(c);
    WANT(t, c->code == (wanted ? RONDO_CODE_OK : RONDO_CODE_INVALID_STATE),
         "%s on %s thread in mode %d, beside a capture in mode %d, gives '%s'", c->code ? c->what : "an unsafe call",
         other ? "another" : "the same", (int)c->mode, (int)capture, rondo_code_name(c->code));
    WANT(t, rondo_graph_get_state(graph) == (wanted ? RONDO_GRAPH_CAPTURING : RONDO_GRAPH_INVALIDATED),
         "%s call on %s thread in mode %d leaves a capture in mode %d in state %d",
         unsafe_call ? "an unsafe" : "a safe", other ? "another" : "the same", (int)c->mode, (int)capture,
         (int)rondo_graph_get_state(graph));
    if (wanted) {
        conf_end(t, graph, stream);
        conf_replay(t, graph, stream);
        conf_want64(t, stream, memory, 8, 6, 1, "a capture with calls beside it");
    } else {
        WANT_TEXT(t, rondo_graph_capture_end(graph, stream), CAPTURE_INVALIDATED, "rondo_memory_trim");
        conf_want_usable(t, stream, "a capture that an unsafe call broke");
    }
    rondo_graph_reset(graph);
    conf_drop(t, memory);
}

static void mode_cells(conf *t, bool unsafe_call) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    mode_caller c = {.device = t->device,
                     .stream = conf_stream(t),
                     .event = conf_event(t),
                     .iota = conf_kernel(t, CONF_IOTA),
                     .memory = conf_memory(t, 64)};
    for (rondo_capture_mode capture = 0; capture < RONDO_CAPTURE_MODE_COUNT; ++capture) {
        for (c.mode = RONDO_CAPTURE_MODE_GLOBAL; c.mode < RONDO_CAPTURE_MODE_COUNT; ++c.mode) {
            for (int other = 0; other < 2; ++other) mode_cell(t, graph, stream, &c, capture, other, unsafe_call);
        }
    }
}

static void mode_safe_calls(conf *t) { mode_cells(t, false); }
static void mode_unsafe_calls(conf *t) { mode_cells(t, true); }

static const conf_test tests[] = {
    {{"mode.table", "mode capture", "The table of modes: capture x thread x whose x what."}, 0, mode_table},
    {{"mode.exchange", "mode capture thread", "A thread's own mode is its own, and starts as global."},
     0,
     mode_exchange},
    {{"mode.safe_calls", "mode capture thread graph",
      "Memory, objects and work on other streams go on beside a capture, in every mode and on every thread."},
     CONF_NEEDS_GRAPH,
     mode_safe_calls},
    {{"mode.unsafe_calls", "mode capture thread graph",
      "An unsafe call breaks the capture where the table refuses it, and harms nothing where it does not."},
     CONF_NEEDS_GRAPH,
     mode_unsafe_calls},
};
CONF_SUITE(conf_suite_mode, tests);
