/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder: what stands in for the backend on every stream of a capture. Work becomes nodes of the list, in the lane
 * of its stream; what cannot be recorded breaks the capture, and the first such failure is kept. */
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"

static rondo_graph *record_graph(rondo__recorder *recorder) { return (rondo_graph *)(void *)recorder; }

rondo_graph *rondo__graph_of(const rondo_stream *stream) {
    rondo__recorder *recorder = rondo__stream_recorder(stream);
    return recorder && recorder->table == &rondo__graph_recorder ? record_graph(recorder) : NULL;
}

/* --------------------------------------------------------------------------------------------- breaking a capture */

const char *rondo__graph_first_error(rondo_graph *graph) {
    const char *what = __atomic_load_n(&graph->unsafe, __ATOMIC_ACQUIRE);
    if (!graph->first_error[0] && what)
        (void)snprintf(graph->first_error, sizeof graph->first_error,
                       "%s, which a thread in a mode that forbids it called during the capture", what);
    return graph->first_error;
}

void rondo__graph_invalidate(rondo_graph *graph, rondo_status why) {
    if (rondo__graph_state_of(graph) != RONDO_GRAPH_CAPTURING) return;
    int used = snprintf(graph->first_error, sizeof graph->first_error, "%s", rondo_status_message(why));
    for (size_t i = 0; i < rondo_status_note_count(why) && used > 0 && (size_t)used < sizeof graph->first_error; i++)
        used += snprintf(graph->first_error + used, sizeof graph->first_error - (size_t)used, "; %s",
                         rondo_status_note(why, i));
    rondo__graph_set_state(graph, RONDO_GRAPH_INVALIDATED);
}

/* From any thread, under the device's mutex of captures: what it looks at stays as it is while the capture is there. */
static rondo_status record_unsafe(rondo__recorder *recorder, const char *what) {
    rondo_graph *graph = record_graph(recorder);
    bool other = graph->thread != rondo__thread_id();
    if (rondo_capture_mode_allows(graph->mode, rondo__mode_of_thread(), other, true)) return RONDO_OK;
    const char *none = NULL;
    rondo_graph_state state = RONDO_GRAPH_CAPTURING;
    (void)__atomic_compare_exchange_n(&graph->unsafe, &none, what, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    (void)atomic_compare_exchange_strong_explicit(&graph->state, &state, RONDO_GRAPH_INVALIDATED, memory_order_acq_rel,
                                                  memory_order_relaxed);
    return RONDO__FAIL(INVALID_STATE, CAPTURE,
                       "%s while %s captures graph '%s' in mode %s, and this thread's mode is %s: the capture is now "
                       "invalid. Wait for its end, capture in another mode, or exchange the thread's mode",
                       what, other ? "another thread" : "this thread", graph->name, rondo__mode_name(graph->mode),
                       rondo__mode_name(rondo__mode_of_thread()));
}

static bool record_hold(rondo__recorder *recorder) {
    rondo_graph *graph = record_graph(recorder);
    uint_least32_t count = atomic_load_explicit(&graph->references, memory_order_relaxed);
    while (count && !atomic_compare_exchange_weak_explicit(&graph->references, &count, count + 1u, memory_order_relaxed,
                                                           memory_order_relaxed)) {}
    return count != 0;
}

static void record_let_go(rondo__recorder *recorder) { rondo_graph_release(record_graph(recorder)); }

/* ------------------------------------------------------------------------------------------------ enter and leave */

static bool record_lane(const rondo_graph *graph, const rondo_stream *stream, uint32_t *out_lane) {
    *out_lane = 0;
    if (stream == graph->stream) return true;
    for (size_t i = 1; i < graph->streams.count; i++) {
        const rondo__graph_stream *each = RONDO__BUFFER_AT(&graph->streams, const rondo__graph_stream, i);
        *out_lane = each->lane;
        if (each->stream == stream) return true;
    }
    return false;
}

rondo_status rondo__graph_check_closed(const rondo_graph *graph, const char *what) {
    if (!graph->open.count) return RONDO_OK;
    return RONDO__FAIL(INVALID_STATE, CAPTURE,
                       "%s between rondo_graph_condition_begin and _end: what depends on a condition stays on one "
                       "stream, and nothing else of the capture comes in between",
                       what);
}

/* What is refused here is missing from the graph, too. */
static rondo_status record_refuse_enter(rondo_graph *graph, rondo_status status) {
    rondo__graph_invalidate(graph, status);
    rondo__mutex_unlock(&graph->mutex);
    return status;
}

rondo_status rondo__graph_enter(rondo_graph *graph, const rondo_stream *stream, uint32_t *out_lane) {
    rondo__mutex_lock(&graph->mutex);
    rondo_graph_state state = rondo__graph_state_of(graph);
    if (state == RONDO_GRAPH_CAPTURING && record_lane(graph, stream, out_lane)) {
        if (graph->open.count && *out_lane != graph->open_lane)
            return record_refuse_enter(graph, rondo__graph_check_closed(graph, "work of another stream"));
        rondo__call_list_lane(graph->list, *out_lane);
        return RONDO_OK; /* the table's row, without the look-up */
    }
    rondo_status status =
        state == RONDO_GRAPH_INVALIDATED
            ? RONDO__FAIL(CAPTURE_INVALIDATED, CAPTURE,
                          "the capture of graph '%s' is broken and records nothing more: end or abort it. Its first "
                          "error: %s",
                          graph->name, rondo__graph_first_error(graph))
            : RONDO__FAIL(ABORTED, CAPTURE, "the capture of graph '%s' was aborted meanwhile", graph->name);
    rondo__mutex_unlock(&graph->mutex);
    return status;
}

rondo_status rondo__graph_leave(rondo_graph *graph, rondo_status status) {
    if (status) rondo__graph_invalidate(graph, status);
    rondo__mutex_unlock(&graph->mutex);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- work */

static rondo_status record_launch(rondo__recorder *recorder, rondo_stream *stream, const rondo_call *call) {
    rondo_graph *graph = record_graph(recorder);
    uint32_t lane;
    RONDO__TRY(rondo__graph_enter(graph, stream, &lane));
    return rondo__graph_leave(graph, graph->direct ? rondo__stream_launch(stream, call)
                                                   : rondo__call_list_append_call(graph->list, call));
}

static uint64_t record_host_side(const rondo_graph *graph, uint64_t destination, uint64_t source, uint64_t bytes,
                                 rondo_copy_kind kind) {
    if (!bytes || kind == RONDO_COPY_DEVICE_TO_DEVICE ||
        (graph->device->properties.capabilities & RONDO_DEVICE_HOST_ADDRESSABLE))
        return 0;
    return kind == RONDO_COPY_HOST_TO_DEVICE ? source : destination;
}

rondo_status rondo__graph_check_copy(const rondo_graph *graph, uint64_t destination, uint64_t source, uint64_t bytes,
                                     rondo_copy_kind kind) {
    uint64_t host = record_host_side(graph, destination, source, bytes, kind);
    if (!host || rondo__memory_is_pinned(graph->device->memory, (const void *)(uintptr_t)host, bytes)) return RONDO_OK;
    return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE,
                       "node %llu: an asynchronous copy of %llu bytes with pageable host memory at 0x%llx cannot be "
                       "captured: take the memory from rondo_memory_host_allocate",
                       (unsigned long long)rondo__call_list_count(graph->list), (unsigned long long)bytes,
                       (unsigned long long)host);
}

/* Pinned memory that a node copies from or to stays as long as the graph, whoever frees it. */
static rondo_status record_hold_pinned(rondo_graph *graph, uint64_t destination, uint64_t source, uint64_t bytes,
                                       rondo_copy_kind kind) {
    rondo__memory *memory = graph->device->memory;
    if (!bytes || kind == RONDO_COPY_DEVICE_TO_DEVICE) return RONDO_OK;
    uint64_t host = kind == RONDO_COPY_HOST_TO_DEVICE ? source : destination;
    if (!rondo__memory_is_pinned(memory, (const void *)(uintptr_t)host, bytes)) return RONDO_OK;
    return rondo__memory_hold(memory, &graph->watcher, host, bytes);
}

rondo_status rondo__graph_append_copy(rondo_graph *graph, uint64_t destination, uint64_t source, uint64_t bytes,
                                      rondo_copy_kind kind) {
    RONDO__TRY(rondo__graph_check_copy(graph, destination, source, bytes, kind));
    RONDO__TRY(record_hold_pinned(graph, destination, source, bytes, kind));
    return rondo__call_list_append_copy(graph->list, destination, source, bytes, kind);
}

static rondo_status record_copy(rondo__recorder *recorder, rondo_stream *stream, uint64_t destination, uint64_t source,
                                uint64_t bytes, rondo_copy_kind kind) {
    rondo_graph *graph = record_graph(recorder);
    uint32_t lane;
    RONDO__TRY(rondo__graph_enter(graph, stream, &lane));
    if (!graph->direct)
        return rondo__graph_leave(graph, rondo__graph_append_copy(graph, destination, source, bytes, kind));
    rondo_status status = rondo__graph_check_copy(graph, destination, source, bytes, kind);
    if (!status) status = record_hold_pinned(graph, destination, source, bytes, kind);
    if (!status) status = rondo__stream_copy(stream, destination, source, bytes, kind);
    return rondo__graph_leave(graph, status);
}

static rondo_status record_fill(rondo__recorder *recorder, rondo_stream *stream, uint64_t address, uint8_t value,
                                uint64_t bytes) {
    rondo_graph *graph = record_graph(recorder);
    uint32_t lane;
    RONDO__TRY(rondo__graph_enter(graph, stream, &lane));
    return rondo__graph_leave(graph, graph->direct ? rondo__stream_fill(stream, address, value, bytes)
                                                   : rondo__call_list_append_fill(graph->list, address, value, bytes));
}

static rondo_status record_host_call(rondo__recorder *recorder, rondo_stream *stream, rondo_host_function function,
                                     void *user) {
    rondo_graph *graph = record_graph(recorder);
    uint32_t lane;
    RONDO__TRY(rondo__graph_enter(graph, stream, &lane));
    return rondo__graph_leave(graph, graph->direct ? rondo__stream_host_call(stream, function, user)
                                                   : rondo__call_list_append_host(graph->list, function, user));
}

static rondo_status record_refuse(rondo__recorder *recorder, rondo_stream *stream, const char *what) {
    rondo_graph *graph = record_graph(recorder);
    uint32_t lane;
    RONDO__TRY(rondo__graph_enter(graph, stream, &lane));
    return rondo__graph_leave(
        graph, RONDO__FAIL(INVALID_STATE, CAPTURE,
                           "%s on a stream that captures: graph '%s' records work instead of running it, so there is "
                           "nothing to wait for, and its capture is now invalid",
                           what, graph->name));
}

static void record_missing(rondo__recorder *recorder, rondo_status why) {
    rondo_graph *graph = record_graph(recorder);
    rondo__mutex_lock(&graph->mutex);
    rondo__graph_invalidate(graph, why);
    rondo__mutex_unlock(&graph->mutex);
}

static void record_status(rondo__recorder *recorder, rondo_capture_status *out_status) {
    rondo_graph *graph = record_graph(recorder);
    rondo__mutex_lock(&graph->mutex);
    rondo_graph_state state = rondo__graph_state_of(graph);
    out_status->active = state == RONDO_GRAPH_CAPTURING || state == RONDO_GRAPH_INVALIDATED;
    out_status->invalidated = state == RONDO_GRAPH_INVALIDATED;
    out_status->mode = graph->mode;
    out_status->id = out_status->active ? graph->capture_id : 0;
    rondo__mutex_unlock(&graph->mutex);
}

static void record_abandon(rondo__recorder *recorder, rondo_stream *stream) {
    (void)stream;
    rondo__graph_drop_capture(record_graph(recorder));
}

const rondo__recorder_table rondo__graph_recorder = {.launch = record_launch,
                                                     .copy = record_copy,
                                                     .fill = record_fill,
                                                     .host_call = record_host_call,
                                                     .refuse = record_refuse,
                                                     .missing = record_missing,
                                                     .status = record_status,
                                                     .abandon = record_abandon,
                                                     .event_record = rondo__graph_event_record,
                                                     .event_wait = rondo__graph_event_wait,
                                                     .unsafe = record_unsafe,
                                                     .hold = record_hold,
                                                     .let_go = record_let_go};
