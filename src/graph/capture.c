/* SPDX-License-Identifier: Apache-2.0
 *
 * Capture: from begin to end, abort or an illegal call, and the recorder in between.
 *
 * Whatever ends a capture, the order of undoing is one (detach): the recorder leaves the stream, the backend is told,
 * and only then is anything reported. A failure on the way never keeps the stream.
 */
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"

/* The recorder leaves the stream. Under the mutex. */
static void capture_detach(rondo_graph *graph) {
    rondo_stream *stream = graph->stream;
    if (!stream) return;
    graph->stream = NULL;
    rondo__stream_record(stream, NULL, graph->mode);
}

/* Keeps the first error of a capture. Under the mutex. */
static void capture_invalidate(rondo_graph *graph, rondo_status why) {
    if (rondo__graph_state_of(graph) != RONDO_GRAPH_CAPTURING) return;
    int used = snprintf(graph->first_error, sizeof graph->first_error, "%s", rondo_status_message(why));
    for (size_t i = 0; i < rondo_status_note_count(why) && used > 0 && (size_t)used < sizeof graph->first_error; i++)
        used += snprintf(graph->first_error + used, sizeof graph->first_error - (size_t)used, "; %s",
                         rondo_status_note(why, i));
    rondo__graph_set_state(graph, RONDO_GRAPH_INVALIDATED);
}

/* -------------------------------------------------------------------------------------------------- the recorder */

static rondo_graph *capture_graph(rondo__recorder *recorder) { return (rondo_graph *)(void *)recorder; }

/* Takes the mutex and says whether work may be recorded; releases it again when it may not. */
static rondo_status capture_enter(rondo_graph *graph) {
    rondo__mutex_lock(&graph->mutex);
    rondo_graph_state state = rondo__graph_state_of(graph);
    if (state == RONDO_GRAPH_CAPTURING) return RONDO_OK; /* the table's row, without the look-up */
    rondo_status status =
        state == RONDO_GRAPH_INVALIDATED
            ? RONDO__FAIL(CAPTURE_INVALIDATED, CAPTURE,
                          "the capture of graph '%s' is broken and records nothing more: end or abort it. Its first "
                          "error: %s",
                          graph->name, graph->first_error)
            : RONDO__FAIL(ABORTED, CAPTURE, "the capture of graph '%s' was aborted meanwhile", graph->name);
    rondo__mutex_unlock(&graph->mutex);
    return status;
}

/* Work that was refused is missing from the graph, so its capture is over. */
static rondo_status capture_leave(rondo_graph *graph, rondo_status status) {
    if (status) capture_invalidate(graph, status);
    rondo__mutex_unlock(&graph->mutex);
    return status;
}

static rondo_status capture_launch(rondo__recorder *recorder, rondo_stream *stream, const rondo_call *call) {
    rondo_graph *graph = capture_graph(recorder);
    (void)stream;
    RONDO__TRY(capture_enter(graph));
    return capture_leave(graph, rondo__call_list_append_call(graph->list, call));
}

rondo_status rondo__graph_check_copy(const rondo_graph *graph, uint64_t destination, uint64_t source, uint64_t bytes,
                                     rondo_copy_kind kind) {
    if (!bytes || kind == RONDO_COPY_DEVICE_TO_DEVICE ||
        (graph->device->properties.capabilities & RONDO_DEVICE_HOST_ADDRESSABLE))
        return RONDO_OK;
    uint64_t host = kind == RONDO_COPY_HOST_TO_DEVICE ? source : destination;
    if (rondo__memory_is_pinned(graph->device->memory, (const void *)(uintptr_t)host, bytes)) return RONDO_OK;
    return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE,
                       "node %llu: an asynchronous copy of %llu bytes with pageable host memory at 0x%llx cannot be "
                       "captured: take the memory from rondo_memory_host_allocate",
                       (unsigned long long)rondo__call_list_count(graph->list), (unsigned long long)bytes,
                       (unsigned long long)host);
}

static rondo_status capture_copy(rondo__recorder *recorder, rondo_stream *stream, uint64_t destination, uint64_t source,
                                 uint64_t bytes, rondo_copy_kind kind) {
    rondo_graph *graph = capture_graph(recorder);
    (void)stream;
    RONDO__TRY(capture_enter(graph));
    rondo_status status = rondo__graph_check_copy(graph, destination, source, bytes, kind);
    if (!status) status = rondo__call_list_append_copy(graph->list, destination, source, bytes, kind);
    return capture_leave(graph, status);
}

static rondo_status capture_fill(rondo__recorder *recorder, rondo_stream *stream, uint64_t address, uint8_t value,
                                 uint64_t bytes) {
    rondo_graph *graph = capture_graph(recorder);
    (void)stream;
    RONDO__TRY(capture_enter(graph));
    return capture_leave(graph, rondo__call_list_append_fill(graph->list, address, value, bytes));
}

static rondo_status capture_host_call(rondo__recorder *recorder, rondo_stream *stream, rondo_host_function function,
                                      void *user) {
    rondo_graph *graph = capture_graph(recorder);
    (void)stream;
    RONDO__TRY(capture_enter(graph));
    return capture_leave(graph, rondo__call_list_append_host(graph->list, function, user));
}

static rondo_status capture_refuse(rondo__recorder *recorder, rondo_stream *stream, const char *what) {
    rondo_graph *graph = capture_graph(recorder);
    (void)stream;
    RONDO__TRY(capture_enter(graph));
    rondo_status status =
        strstr(what, "event")
            ? RONDO__FAIL(UNSUPPORTED, CAPTURE,
                          "%s on a stream that captures: fork and join through events are not there yet, so graph '%s' "
                          "cannot record it, and its capture is now invalid",
                          what, graph->name)
            : RONDO__FAIL(INVALID_STATE, CAPTURE,
                          "%s on a stream that captures: graph '%s' records work instead of running it, so there is "
                          "nothing to wait for, and its capture is now invalid",
                          what, graph->name);
    return capture_leave(graph, status);
}

static void capture_status(rondo__recorder *recorder, rondo_capture_status *out_status) {
    rondo_graph *graph = capture_graph(recorder);
    rondo__mutex_lock(&graph->mutex);
    rondo_graph_state state = rondo__graph_state_of(graph);
    out_status->active = state == RONDO_GRAPH_CAPTURING || state == RONDO_GRAPH_INVALIDATED;
    out_status->invalidated = state == RONDO_GRAPH_INVALIDATED;
    out_status->mode = graph->mode;
    out_status->id = out_status->active ? graph->capture_id : 0;
    rondo__mutex_unlock(&graph->mutex);
}

static void capture_abandon(rondo__recorder *recorder, rondo_stream *stream) {
    (void)stream;
    rondo__graph_drop_capture(capture_graph(recorder));
}

static const rondo__recorder_table capture_recorder = {
    capture_launch, capture_copy, capture_fill, capture_host_call, capture_refuse, capture_status, capture_abandon,
};

rondo_status rondo__graph_refuse_on(rondo_stream *stream, rondo_status status) {
    rondo__recorder *recorder = rondo__stream_recorder(stream);
    if (!recorder || recorder->table != &capture_recorder) return status;
    rondo_graph *graph = capture_graph(recorder);
    rondo__mutex_lock(&graph->mutex);
    capture_invalidate(graph, status);
    rondo__mutex_unlock(&graph->mutex);
    return status;
}

/* --------------------------------------------------------------------------------------------------------- begin */

static rondo_status capture_check_begin(const rondo_graph *graph, const rondo_stream *stream, rondo_pool_id pool,
                                        rondo_capture_mode mode) {
    if (mode < 0 || mode >= RONDO_CAPTURE_MODE_COUNT)
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "graph '%s': %d is no capture mode (0 to %d are)", graph->name,
                           (int)mode, RONDO_CAPTURE_MODE_COUNT - 1);
    if (pool.automatic && pool.user)
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE,
                           "graph '%s': pool {%llu, %llu} is none: exactly one part of a pool's name is set",
                           graph->name, (unsigned long long)pool.automatic, (unsigned long long)pool.user);
    RONDO__TRY(rondo__graph_check(graph, RONDO__GRAPH_CAPTURE_BEGIN));
    if (pool.automatic || pool.user)
        return RONDO__FAIL(UNSUPPORTED, CAPTURE, "graph '%s': private pools are not there yet: use pool {0, 0}",
                           graph->name);
    if (stream->device != graph->device)
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "graph '%s' is of device '%s:%d', the stream of '%s:%d'",
                           graph->name, graph->device->properties.name, (int)graph->device->properties.index,
                           stream->device->properties.name, (int)stream->device->properties.index);
    if (stream == stream->device->default_stream &&
        (graph->device->properties.capabilities & RONDO_DEVICE_CAPTURE_NOT_ON_DEFAULT_STREAM))
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE,
                           "graph '%s': device '%s:%d' does not capture on its default stream: create a stream",
                           graph->name, graph->device->properties.name, (int)graph->device->properties.index);
    if (rondo__stream_recorder(stream))
        return RONDO__FAIL(INVALID_STATE, CAPTURE,
                           "graph '%s': the stream already captures for another graph: end that capture first",
                           graph->name);
    return RONDO_OK;
}

/* The list, the slots, the ticket: all that can fail, before the stream is touched. */
static rondo_status capture_prepare(rondo_graph *graph) {
    rondo__memory_watcher_init(&graph->watcher, graph->capture_id);
    RONDO__TRY(rondo__call_list_create(graph->device, &graph->watcher, &graph->list));
    RONDO__TRY(rondo__graph_open_slots(graph));
    return rondo__ticket_prepare(&graph->ticket);
}

/* A stream that captures cannot be waited for, so memory that is freed during the capture would not wait for what the
 * stream still had to do before it: that is waited for here. A failure of it stays with the stream. */
static void capture_settle(rondo_stream *stream) {
    if (rondo__device_is_inline(stream->device)) return;
    rondo__mutex_lock(&stream->mutex);
    rondo_status status = stream->device->table->stream->synchronize(stream->handle);
    stream->pending = rondo__status_first(stream->pending, status);
    rondo__mutex_unlock(&stream->mutex);
}

rondo_status rondo_graph_capture_begin(rondo_graph *graph, rondo_stream *stream, rondo_pool_id pool,
                                       rondo_capture_mode mode) {
    if (!graph || !stream) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "capture_begin needs a graph and a stream");
    rondo__mutex_lock(&graph->mutex);
    rondo_status status = capture_check_begin(graph, stream, pool, mode);
    if (!status) {
        graph->capture_id = rondo__registry_next_id(rondo__instance_registry(graph->device->instance));
        status = capture_prepare(graph);
        if (status) rondo__graph_forget(graph);
    }
    if (!status) {
        capture_settle(stream);
        graph->stream = stream;
        graph->thread = rondo__thread_id();
        graph->mode = mode;
        graph->first_error[0] = '\0';
        graph->replays = 0;
        graph->recorder.table = &capture_recorder;
        rondo__graph_set_state(graph, RONDO_GRAPH_CAPTURING);
        rondo__stream_record(stream, &graph->recorder, mode);
    }
    rondo__mutex_unlock(&graph->mutex);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- end */

void rondo__graph_forget(rondo_graph *graph) {
    rondo__call_list_destroy(graph->list);
    graph->list = NULL;
    rondo__memory_unwatch(graph->device->memory, &graph->watcher);
    rondo__graph_free_slots(graph);
}

void rondo__graph_drop_capture(rondo_graph *graph) {
    rondo__mutex_lock(&graph->mutex);
    rondo_graph_state state = rondo__graph_state_of(graph);
    if (state == RONDO_GRAPH_CAPTURING || state == RONDO_GRAPH_INVALIDATED) {
        capture_detach(graph);
        rondo__graph_set_state(graph, RONDO_GRAPH_EMPTY);
        rondo__graph_forget(graph);
    }
    rondo__mutex_unlock(&graph->mutex);
}

rondo_status rondo_graph_abort(rondo_graph *graph) {
    if (!graph) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "abort without a graph");
    RONDO__TRY(rondo__graph_check(graph, RONDO__GRAPH_ABORT));
    rondo__graph_drop_capture(graph);
    return RONDO_OK;
}

/* What keeps the capture going when it is wrong. */
static rondo_status capture_check_end(const rondo_graph *graph, const rondo_stream *stream) {
    RONDO__TRY(rondo__graph_check(graph, RONDO__GRAPH_CAPTURE_END));
    if (stream != graph->stream)
        return RONDO__FAIL(INVALID_STATE, CAPTURE,
                           "graph '%s': a capture ends on the stream that it began on; it goes on", graph->name);
    if (graph->mode != RONDO_CAPTURE_MODE_RELAXED && graph->thread != rondo__thread_id())
        return RONDO__FAIL(INVALID_STATE, CAPTURE,
                           "graph '%s': a capture that is not relaxed ends on the thread that began it; it goes on",
                           graph->name);
    return RONDO_OK;
}

/* The stream is free again; makes the list final, or fails and leaves nothing. */
static rondo_status capture_finish(rondo_graph *graph, bool broken) {
    if (broken)
        return RONDO__FAIL(CAPTURE_INVALIDATED, CAPTURE, "the capture of graph '%s' was broken by: %s", graph->name,
                           graph->first_error);
    RONDO__TRY(rondo__call_list_seal(graph->list));
    rondo__graph_close_slots(graph);
    return RONDO_OK;
}

rondo_status rondo_graph_capture_end(rondo_graph *graph, rondo_stream *stream) {
    if (!graph || !stream) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "capture_end needs a graph and a stream");
    rondo__mutex_lock(&graph->mutex);
    rondo_status status = capture_check_end(graph, stream);
    if (status) {
        rondo__mutex_unlock(&graph->mutex);
        return status;
    }
    bool broken = rondo__graph_state_of(graph) == RONDO_GRAPH_INVALIDATED;
    capture_detach(graph);
    status = capture_finish(graph, broken);
    if (status) rondo__graph_forget(graph);
    rondo__graph_set_state(graph, status              ? RONDO_GRAPH_EMPTY
                                  : graph->keep_graph ? RONDO_GRAPH_CAPTURED
                                                      : RONDO_GRAPH_READY);
    bool empty = !status && rondo__call_list_count(graph->list) == 0;
    rondo__mutex_unlock(&graph->mutex);
    if (empty)
        rondo__log_write(graph->device->log, RONDO_LOG_WARNING,
                         "graph '%s' is empty: nothing was enqueued on the stream that captured. Was the work sent to "
                         "another stream or device?",
                         graph->name);
    return status;
}
