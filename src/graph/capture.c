/* SPDX-License-Identifier: Apache-2.0
 *
 * Capture: from begin to end or abort.
 *
 * A capture diverts the allocator, then pinned host memory, then the stream. Whatever ends it, the order of undoing is
 * the reverse (detach): the recorder leaves its streams, the backend is told, the diversions end, and only then is
 * anything reported. A failure on the way never keeps a stream or a pool.
 */
#include <string.h>

#include "graph/direct.h"

static bool capture_is_pool(rondo_pool_id pool) { return pool.automatic || pool.user; }

/* The capture is over for all that it took from elsewhere. Under the mutex. */
static void capture_detach(rondo_graph *graph) {
    if (!graph->stream) return;
    rondo__device_capture_end(graph->device, &graph->recorder);
    for (size_t i = graph->streams.count; i-- > 0;)
        rondo__stream_record(RONDO__BUFFER_AT(&graph->streams, rondo__graph_stream, i)->stream, NULL, graph->mode);
    graph->streams.count = 0;
    graph->stream = NULL;
    RONDO__IGNORE(rondo__memory_pinned_end(graph->device->memory, graph->pool));
    RONDO__IGNORE(rondo_memory_pool_end(graph->device, graph->pool));
    rondo__graph_close_generators(graph);
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

/* The list, the slots, the ticket: all that can fail, before anything is taken from elsewhere. */
static rondo_status capture_prepare(rondo_graph *graph) {
    rondo__memory_watcher_init(&graph->watcher, graph->capture_id);
    graph->watcher.managed = graph->managed;
    graph->streams.count = graph->idle.count = graph->open.count = 0;
    RONDO__TRY(rondo__buffer_reserve(&graph->streams, 1));
    RONDO__TRY(rondo__call_list_create(graph->device, &graph->watcher, &graph->list));
    RONDO__TRY(rondo__graph_open_slots(graph));
    return rondo__ticket_prepare(&graph->ticket);
}

void rondo__graph_settle(rondo_stream *stream) {
    if (rondo__device_is_inline(stream->device)) return;
    rondo__mutex_lock(&stream->mutex);
    rondo_status status = stream->device->table->stream->synchronize(stream->handle);
    stream->pending = rondo__status_first(stream->pending, status);
    rondo__mutex_unlock(&stream->mutex);
}

/* What the capture allocates goes to its pool: device memory of its streams, host memory of its thread. */
static rondo_status capture_divert(rondo_graph *graph, rondo_pool_id pool) {
    rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
    rondo__memory *memory = graph->device->memory;
    filter.kind = RONDO_MEMORY_FILTER_CAPTURE;
    filter.capture_id = graph->capture_id;
    if (!capture_is_pool(pool)) pool.automatic = graph->capture_id;
    RONDO__TRY_NOTE(rondo_memory_pool_begin(graph->device, pool, &filter), "the pool of graph '%s'", graph->name);
    filter.kind = RONDO_MEMORY_FILTER_THREAD;
    rondo_status status = rondo__memory_pinned_begin(memory, pool, &filter);
    if (status) {
        RONDO__IGNORE(rondo_memory_pool_end(graph->device, pool));
        RONDO__IGNORE(rondo_memory_pool_release(graph->device, pool));
        return rondo__status_note(status, "the pool of graph '%s' for host memory", graph->name);
    }
    if (*graph->name) rondo__memory_pool_label(memory, pool, graph->name);
    graph->pool = graph->watcher.pool = pool;
    graph->watcher.since = rondo__memory_generation(memory);
    return RONDO_OK;
}

/* A stream that captures cannot be waited for, so memory that is freed during the capture would not wait for what the
 * stream still had to do before it: that is waited for here. */
static void capture_start(rondo_graph *graph, rondo_stream *stream, rondo_capture_mode mode) {
    if (!graph->direct) rondo__graph_settle(stream);
    graph->stream = stream;
    *RONDO__BUFFER_AT(&graph->streams, rondo__graph_stream, 0) = (rondo__graph_stream){stream, 0};
    graph->streams.count = 1;
    graph->thread = rondo__thread_id();
    graph->mode = mode;
    graph->first_error[0] = '\0';
    __atomic_store_n(&graph->unsafe, NULL, __ATOMIC_RELAXED);
    graph->replays = 0;
    graph->recorder = (rondo__recorder){&rondo__graph_recorder, graph->capture_id, NULL};
    rondo__graph_set_state(graph, RONDO_GRAPH_CAPTURING);
    rondo__device_capture_begin(graph->device, &graph->recorder);
    rondo__stream_record(stream, &graph->recorder, mode);
}

/* The driver is asked last, when all is diverted. */
static rondo_status capture_begin_direct(rondo_graph *graph, rondo_stream *stream, rondo_capture_mode mode) {
    rondo__graph_settle(stream); /* nothing can be waited for afterwards */
    rondo_status status = rondo__direct_begin(graph, stream, mode);
    if (!status) return RONDO_OK;
    RONDO__IGNORE(rondo__memory_pinned_end(graph->device->memory, graph->pool));
    RONDO__IGNORE(rondo_memory_pool_end(graph->device, graph->pool));
    return rondo__status_note(status, "at the beginning of the capture of graph '%s'", graph->name);
}

rondo_status rondo_graph_capture_begin(rondo_graph *graph, rondo_stream *stream, rondo_pool_id pool,
                                       rondo_capture_mode mode) {
    if (!graph || !stream) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "capture_begin needs a graph and a stream");
    rondo__mutex_lock(&graph->mutex);
    rondo_status status = capture_check_begin(graph, stream, pool, mode);
    if (!status) {
        graph->capture_id = rondo__registry_next_id(rondo__instance_registry(graph->device->instance));
        status = capture_prepare(graph);
        if (!status) status = capture_divert(graph, pool);
        if (!status && rondo__direct_wanted(stream)) status = capture_begin_direct(graph, stream, mode);
        if (status) rondo__graph_forget(graph);
    }
    if (!status) capture_start(graph, stream, mode);
    rondo__mutex_unlock(&graph->mutex);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- end */

void rondo__graph_forget(rondo_graph *graph) {
    rondo__driver_graph_drop(&graph->driver, graph->device);
    graph->direct = false;
    rondo__lanes_destroy(graph->lanes);
    graph->lanes = NULL;
    rondo__call_list_destroy(graph->list);
    graph->list = NULL;
    rondo__memory_unwatch(graph->device->memory, &graph->watcher);
    rondo__graph_free_slots(graph);
    rondo__graph_free_generators(graph);
    graph->idle.count = graph->open.count = 0;
    graph->around = false;
    if (!capture_is_pool(graph->pool)) return;
    RONDO__IGNORE(rondo__memory_pinned_release(graph->device->memory, graph->pool));
    RONDO__IGNORE(rondo_memory_pool_release(graph->device, graph->pool));
    graph->pool = (rondo_pool_id){0, 0};
}

void rondo__graph_drop_capture(rondo_graph *graph) {
    rondo__mutex_lock(&graph->mutex);
    rondo_graph_state state = rondo__graph_state_of(graph);
    if (state == RONDO_GRAPH_CAPTURING || state == RONDO_GRAPH_INVALIDATED) {
        if (graph->direct) rondo_status_release(rondo__direct_end(graph, false)); /* it is dropped, whatever it says */
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
    if (graph->open.count && rondo__graph_state_of(graph) == RONDO_GRAPH_CAPTURING)
        return RONDO__FAIL(INVALID_STATE, CAPTURE,
                           "graph '%s': %zu condition(s) have no end yet: call rondo_graph_condition_end; the capture "
                           "goes on",
                           graph->name, graph->open.count);
    return RONDO_OK;
}

/* The streams are free again; makes the list final, or fails and leaves nothing. */
static rondo_status capture_finish(rondo_graph *graph) {
    if (rondo__graph_state_of(graph) == RONDO_GRAPH_INVALIDATED)
        return RONDO__FAIL(CAPTURE_INVALIDATED, CAPTURE, "the capture of graph '%s' was broken by: %s", graph->name,
                           rondo__graph_first_error(graph));
    RONDO__TRY(rondo__graph_check_joined(graph));
    RONDO__TRY(rondo__call_list_seal(graph->list));
    if (rondo__call_list_needs_lanes(graph->list))
        RONDO__TRY_NOTE(rondo__lanes_create(graph->device, rondo__call_list_lanes(graph->list), &graph->lanes),
                        "at the end of the capture of graph '%s'", graph->name);
    rondo__graph_close_slots(graph);
    if (graph->direct) return RONDO_OK; /* there is one already */
    rondo__driver_graph_make(&graph->driver, graph->list, graph->lanes, graph->name);
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
    bool direct = graph->direct, kept = graph->keep_graph && !direct;
    rondo_status driver =
        direct ? rondo__direct_end(graph, rondo__graph_state_of(graph) == RONDO_GRAPH_CAPTURING) : RONDO_OK;
    capture_detach(graph); /* first: nobody can break it any more */
    status = rondo__status_first(capture_finish(graph), driver);
    if (status) rondo__graph_forget(graph);
    rondo__graph_set_state(graph, status ? RONDO_GRAPH_EMPTY : kept ? RONDO_GRAPH_CAPTURED : RONDO_GRAPH_READY);
    bool empty = !status && !direct && rondo__call_list_count(graph->list) == 0;
    rondo__mutex_unlock(&graph->mutex);
    if (!status && direct && graph->keep_graph && !graph->told) {
        graph->told = true;
        rondo__log_write(graph->device->log, RONDO_LOG_WARNING,
                         "graph '%s': keep_graph has no effect: what the driver captured runs as it is", graph->name);
    }
    if (empty && !graph->managed)
        rondo__log_write(graph->device->log, RONDO_LOG_WARNING,
                         "graph '%s' is empty: nothing was enqueued on the stream that captured. Was the work sent to "
                         "another stream or device?",
                         graph->name);
    return status;
}
