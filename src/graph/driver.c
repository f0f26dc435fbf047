/* SPDX-License-Identifier: Apache-2.0
 *
 * Making, following and launching a device's own graph. */
#include "graph/driver.h"
#include "graph/list_private.h"

const rondo_graph_table *rondo__driver_graph_table(const rondo_device *device) {
    const rondo_graph_table *table = device->table->graph;
    bool whole = table && table->capture_begin && table->capture_end && table->launch && table->destroy;
    return whole ? table : NULL;
}

/* Conditions stay with the list, and so do events outside of the graph where the device has none. */
static bool driver_fits(const rondo__call_list *list) {
    const uint64_t *counts = list->counts;
    bool outside = counts[RONDO__LIST_RECORD] || counts[RONDO__LIST_WAIT];
    return list->entry_count && !list->lowered && !counts[RONDO__LIST_CONDITION] &&
           (!outside || rondo__device_has_outside_events(list->device));
}

/* Nobody else may reach a stream that the device captures, as who waits for all work of the device would. */
static void driver_hold(rondo_stream *stream, const rondo__lanes *lanes, bool hold) {
    void (*turn)(rondo__mutex *) = hold ? rondo__mutex_lock : rondo__mutex_unlock;
    turn(&stream->mutex);
    for (uint32_t i = 1; lanes && i < lanes->stream_count; i++) turn(&lanes->streams[i]->mutex);
}

static bool driver_forked(const rondo__call_list *list, uint32_t lane) {
    const rondo__buffer *steps = &list->order->steps;
    for (size_t i = 0; i < steps->count; i++) {
        const rondo__order_step *step = RONDO__BUFFER_AT(steps, const rondo__order_step, i);
        if (step->wait && step->lane == lane) return true;
    }
    return false;
}

/* Each lane that was forked is joined, also one that nobody waits for any more: drivers ask for that. */
static rondo_status driver_join(const rondo__call_list *list, rondo_stream *stream, const rondo__lanes *lanes) {
    for (uint32_t lane = 1; lane < lanes->stream_count; lane++) {
        if (!driver_forked(list, lane)) continue;
        RONDO__TRY(rondo__event_record(lanes->events[0], lanes->streams[lane]));
        RONDO__TRY(rondo__event_wait(lanes->events[0], stream));
    }
    return RONDO_OK;
}

static rondo_status driver_record(const rondo_graph_table *table, rondo_stream *stream, const rondo__call_list *list,
                                  const rondo__lanes *lanes, void **out_graph) {
    RONDO__TRY(table->capture_begin(stream->handle, RONDO_CAPTURE_MODE_RELAXED));
    rondo_status status = rondo__call_list_enqueue(list, stream, lanes);
    if (!status && lanes) status = driver_join(list, stream, lanes);
    rondo_status end = table->capture_end(stream->handle, out_graph);
    if (status && !end) {
        table->destroy(stream->device->handle, *out_graph, NULL);
        *out_graph = NULL;
    }
    return rondo__status_first(status, end);
}

static rondo_status driver_capture(const rondo__call_list *list, const rondo__lanes *lanes,
                                   rondo__driver_graph *driver) {
    const rondo_graph_table *table = rondo__driver_graph_table(list->device);
    rondo_stream *stream = NULL;
    void *graph = NULL, *executable = NULL;
    RONDO__TRY(rondo_stream_create(list->device, NULL, &stream));
    driver_hold(stream, lanes, true);
    rondo_status status = driver_record(table, stream, list, lanes, &graph);
    for (uint32_t i = 1; lanes && i < lanes->stream_count; i++)
        atomic_store_explicit(&lanes->streams[i]->side_of, 0, memory_order_relaxed);
    driver_hold(stream, lanes, false);
    if (!status && table->instantiate) {
        status = table->instantiate(list->device->handle, graph, &executable);
        if (status) table->destroy(list->device->handle, graph, NULL);
    }
    rondo_stream_release(stream);
    if (status) return status;
    driver->graph = graph;
    driver->executable = table->instantiate ? executable : graph;
    return RONDO_OK;
}

static void driver_refused(rondo__driver_graph *driver, const rondo__call_list *list, const char *name,
                           const char *since, rondo_status status) {
    driver->refused = true;
    rondo__log_write(list->device->log, RONDO_LOG_WARNING,
                     "graph '%s' is replayed node by node%s, not as a graph of device '%s:%d': %s", name, since,
                     list->device->properties.name, (int)list->device->properties.index, rondo_status_message(status));
    rondo_status_release(status);
}

void rondo__driver_graph_make(rondo__driver_graph *driver, const rondo__call_list *list, const rondo__lanes *lanes,
                              const char *name) {
    driver->stale = false;
    if (driver->refused || !rondo__driver_graph_table(list->device) || !driver_fits(list)) return;
    rondo_status status = driver_capture(list, lanes, driver);
    if (!status) return;
    driver_refused(driver, list, name, "", status);
}

bool rondo__driver_graph_lacks(rondo_status status) {
    rondo_code code = rondo_status_code(status);
    return code == RONDO_CODE_UNSUPPORTED || code == RONDO_CODE_OUT_OF_RANGE || code == RONDO_CODE_OUT_OF_MEMORY;
}

void rondo__driver_graph_give_up(rondo__driver_graph *driver, const rondo__call_list *list, const char *name,
                                 rondo_status status) {
    rondo__driver_graph_drop(driver, list->device);
    driver_refused(driver, list, name, " from now on", status);
}

void rondo__driver_graph_follow(rondo__driver_graph *driver, const rondo__call_list *list, uint64_t entry) {
    const rondo_graph_table *table = list->device->table->graph;
    rondo__call_list_node node;
    if (!driver->graph || driver->stale) return;
    rondo__call_list_describe(list, entry, &node);
    driver->stale = node.kind != RONDO__LIST_KERNEL || !table->update;
    if (driver->stale) return;
    rondo_status status = table->update(driver->executable, entry, node.arguments, node.argument_count);
    driver->stale = status != RONDO_OK;
    rondo_status_release(status); /* it is captured anew instead */
}

void rondo__driver_graph_drop(rondo__driver_graph *driver, rondo_device *device) {
    if (driver->graph)
        device->table->graph->destroy(device->handle, driver->graph,
                                      device->table->graph->instantiate ? driver->executable : NULL);
    *driver = (rondo__driver_graph){0};
}

rondo_status rondo__driver_graph_launch(const rondo__driver_graph *driver, const rondo__call_list *list,
                                        rondo_stream *stream) {
    rondo__mutex_lock(&stream->mutex);
    rondo_status status = stream->device->table->graph->launch(driver->executable, stream->handle);
    if (!status) rondo__call_list_note_records(list);
    rondo__mutex_unlock(&stream->mutex);
    return status;
}
