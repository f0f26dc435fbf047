/* SPDX-License-Identifier: Apache-2.0
 *
 * What a capture by the driver does instead of recording. All under the graph's mutex. */
#include "graph/direct.h"

bool rondo__direct_wanted(const rondo_stream *stream) {
    return stream->wrapped && rondo__driver_graph_table(stream->device) != NULL;
}

rondo_status rondo__direct_begin(rondo_graph *graph, rondo_stream *stream, rondo_capture_mode mode) {
    if (graph->slots.count)
        return RONDO__FAIL(
            UNSUPPORTED, CAPTURE,
            "graph '%s': the stream is another library's, so its driver records the work, and slots cannot be "
            "bound there: capture on a stream of rondo_stream_create",
            graph->name);
    rondo__mutex_lock(&stream->mutex);
    rondo_status status = rondo__driver_graph_table(graph->device)->capture_begin(stream->handle, mode);
    rondo__mutex_unlock(&stream->mutex);
    graph->direct = !status;
    return status;
}

static void direct_settle(const rondo_graph_table *table, rondo_device *device, void *graph, void *executable,
                          rondo__driver_graph *out) {
    if (out) *out = (rondo__driver_graph){.graph = graph, .executable = table->instantiate ? executable : graph};
    else table->destroy(device->handle, graph, executable);
}

rondo_status rondo__direct_end(rondo_graph *graph, bool keep) {
    const rondo_graph_table *table = rondo__driver_graph_table(graph->device);
    rondo_stream *stream = graph->stream;
    void *captured = NULL, *executable = NULL;
    rondo__mutex_lock(&stream->mutex);
    rondo_status status = table->capture_end(stream->handle, &captured);
    if (!status && keep && table->instantiate) {
        status = table->instantiate(graph->device->handle, captured, &executable);
        if (status) table->destroy(graph->device->handle, captured, NULL);
    }
    rondo__mutex_unlock(&stream->mutex);
    if (!status) direct_settle(table, graph->device, captured, executable, keep ? &graph->driver : NULL);
    return status;
}

/* The graph's list, which is empty else, has the event, and looks after it at each replay. */
static rondo_status direct_keep(rondo_graph *graph, rondo_event *event, bool wait) {
    if (!rondo__device_has_outside_events(graph->device))
        return RONDO__FAIL(
            UNSUPPORTED, CAPTURE,
            "graph '%s': the stream is another library's, and graphs of device '%s:%d' have no events outside "
            "of them",
            graph->name, graph->device->properties.name, (int)graph->device->properties.index);
    return rondo__call_list_append_event(graph->list, event, wait);
}

static rondo_status direct_outside(rondo_graph *graph, rondo_event *event, rondo_stream *stream, bool wait) {
    RONDO__TRY(direct_keep(graph, event, wait));
    return rondo__event_outside(event, stream, wait);
}

rondo_status rondo__direct_record(rondo_graph *graph, rondo_event *event, rondo_stream *stream, bool external) {
    if (external) return direct_outside(graph, event, stream, false);
    RONDO__TRY(rondo__event_record(event, stream));
    event->capture = graph->capture_id;
    return RONDO_OK;
}

rondo_status rondo__direct_wait(rondo_graph *graph, rondo_event *event, rondo_stream *stream, bool external) {
    rondo__graph_stream joined = {stream, 0};
    if (external) return direct_outside(graph, event, stream, true);
    if (rondo__stream_recorder(stream) == &graph->recorder) return rondo__event_wait(event, stream);
    RONDO__TRY(rondo__buffer_reserve(&graph->streams, graph->streams.count + 1u));
    rondo__graph_settle(stream);
    RONDO__TRY(rondo__event_wait(event, stream));
    RONDO__TRY(rondo__buffer_append(&graph->streams, &joined, 1));
    rondo__stream_record(stream, &graph->recorder, graph->mode);
    return RONDO_OK;
}

/* They may outlive the child that has them. */
static rondo_status direct_keep_events(rondo_graph *graph, const rondo_graph *child) {
    rondo__call_list_node node;
    for (uint64_t i = 0; i < rondo__call_list_count(child->list); i++) {
        rondo__call_list_describe(child->list, i, &node);
        bool wait = node.kind == RONDO__LIST_WAIT;
        if (wait || node.kind == RONDO__LIST_RECORD) RONDO__TRY(direct_keep(graph, node.event, wait));
    }
    return RONDO_OK;
}

rondo_status rondo__direct_embed(rondo_graph *graph, const rondo_graph *child, rondo_stream *stream) {
    if (child->direct || child->around)
        return RONDO__FAIL(UNSUPPORTED, CAPTURE,
                           "graph '%s' cannot become a part of graph '%s', which its driver records: %s", child->name,
                           graph->name,
                           child->direct ? "it is a graph of the driver itself, and drivers do not nest them"
                                         : "its slots or random numbers are done around it at each replay");
    RONDO__TRY(direct_keep_events(graph, child));
    return rondo__call_list_enqueue(child->list, stream, child->lanes);
}
