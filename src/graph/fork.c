/* SPDX-License-Identifier: Apache-2.0
 *
 * Fork and join. An event recorded in a capture is a point in it; a stream that waits for the point joins the capture, in
 * a lane of its own, until the capture ends. Two captures never meet. */
#include "graph/direct.h"

static rondo_graph *fork_graph(rondo__recorder *recorder) { return (rondo_graph *)(void *)recorder; }

static rondo_status fork_record(rondo_graph *graph, uint32_t lane, rondo_event *event) {
    rondo__order *order;
    uint32_t point;
    RONDO__TRY(rondo__graph_check_closed(graph, "rondo_event_record"));
    RONDO__TRY(rondo__call_list_order(graph->list, &order));
    RONDO__TRY(rondo__order_point(order, lane, rondo__call_list_count(graph->list), &point));
    event->capture = graph->capture_id;
    event->point = point;
    return RONDO_OK;
}

rondo_status rondo__graph_event_record(rondo__recorder *recorder, rondo_event *event, rondo_stream *stream,
                                       bool external) {
    rondo_graph *graph = fork_graph(recorder);
    uint32_t lane;
    RONDO__TRY(rondo__graph_enter(graph, stream, &lane));
    if (graph->direct) return rondo__graph_leave(graph, rondo__direct_record(graph, event, stream, external));
    return rondo__graph_leave(graph, external ? rondo__call_list_append_event(graph->list, event, false)
                                              : fork_record(graph, lane, event));
}

/* ---------------------------------------------------------------------------------------------------------- wait */

/* The other capture is told first, without this one's mutex: two mutexes of a kind are never held together. */
static rondo_status fork_merge(rondo_graph *graph, const rondo_event *event) {
    rondo__recorder *other = rondo__device_capture(graph->device, event->capture);
    if (!other)
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE,
                           "graph '%s': the event was last recorded in a capture that is over: record it in this one, "
                           "or outside any and use rondo_event_wait_external",
                           graph->name);
    rondo_graph *second = fork_graph(other);
    rondo_status status =
        RONDO__FAIL(CAPTURE_MERGED, CAPTURE,
                    "an event of the capture of graph '%s' is waited for in the capture of graph '%s': nothing may "
                    "connect two captures, and both are now invalid",
                    second->name, graph->name);
    rondo__mutex_lock(&second->mutex);
    rondo__graph_invalidate(second, status);
    rondo__mutex_unlock(&second->mutex);
    other->table->let_go(other);
    return status;
}

/* A stream that nobody records gets a lane. Under the mutex. */
static rondo_status fork_join(rondo_graph *graph, rondo__order *order, rondo_stream *stream, uint32_t *out_lane) {
    rondo__graph_stream joined = {stream, 0};
    if (stream == stream->device->default_stream &&
        (stream->device->properties.capabilities & RONDO_DEVICE_CAPTURE_NOT_ON_DEFAULT_STREAM))
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE,
                           "graph '%s': the default stream of device '%s:%d' cannot join a capture: create a stream",
                           graph->name, stream->device->properties.name, (int)stream->device->properties.index);
    RONDO__TRY(rondo__buffer_reserve(&graph->streams, graph->streams.count + 1u));
    RONDO__TRY(rondo__order_add_lane(order, &joined.lane));
    rondo__graph_settle(stream);
    RONDO__TRY(rondo__buffer_append(&graph->streams, &joined, 1));
    rondo__stream_record(stream, &graph->recorder, graph->mode);
    *out_lane = joined.lane;
    return RONDO_OK;
}

static rondo_status fork_wait(rondo_graph *graph, const rondo_event *event, rondo_stream *stream, bool member,
                              uint32_t lane) {
    rondo__order *order;
    RONDO__TRY(rondo__graph_check_closed(graph, "rondo_event_wait"));
    RONDO__TRY(rondo__call_list_order(graph->list, &order));
    if (!member) RONDO__TRY(fork_join(graph, order, stream, &lane));
    return rondo__order_wait(order, lane, rondo__call_list_count(graph->list), (uint32_t)event->point);
}

/* A stream of no capture, whose event is one of this capture's. */
static rondo_status fork_enter_guest(rondo_graph *graph) {
    uint32_t lane;
    rondo__mutex_lock(&graph->mutex);
    const rondo_stream *own = graph->stream;
    rondo__mutex_unlock(&graph->mutex);
    return rondo__graph_enter(graph, own, &lane); /* as the stream that began it would */
}

rondo_status rondo__graph_event_wait(rondo__recorder *recorder, rondo_event *event, rondo_stream *stream,
                                     bool external) {
    rondo_graph *graph = fork_graph(recorder);
    bool member = rondo__stream_recorder(stream) == recorder;
    uint32_t lane = 0;
    rondo_status wrong = RONDO_OK;
    if (event->capture && event->capture != recorder->id) wrong = fork_merge(graph, event);
    else if (external && event->capture)
        wrong = RONDO__FAIL(INVALID_ARGUMENT, CAPTURE,
                            "graph '%s': the event was recorded in this very capture: rondo_event_wait is its wait",
                            graph->name);
    else if (!external && !event->capture && event->recorded)
        wrong = RONDO__FAIL(INVALID_ARGUMENT, CAPTURE,
                            "graph '%s': the event was recorded outside any capture, so its work is no part of the "
                            "graph: use rondo_event_wait_external, or record it in the capture",
                            graph->name);
    rondo_status status = member ? rondo__graph_enter(graph, stream, &lane) : fork_enter_guest(graph);
    if (status) {
        rondo_status_release(wrong);
        return status;
    }
    if (wrong) return rondo__graph_leave(graph, wrong);
    if (graph->direct)
        status = event->capture || external ? rondo__direct_wait(graph, event, stream, external) : RONDO_OK;
    else if (external) status = rondo__call_list_append_event(graph->list, event, true);
    else if (event->capture) status = fork_wait(graph, event, stream, member, lane);
    return rondo__graph_leave(graph, status);
}

/* ----------------------------------------------------------------------------------------------------------- end */

rondo_status rondo__graph_check_joined(const rondo_graph *graph) {
    rondo__call_list_node node;
    uint64_t number;
    const rondo__order *order = rondo__call_list_lanes(graph->list);
    uint32_t lane = order ? rondo__order_unjoined(order, &number) : RONDO__ORDER_NONE;
    if (lane == RONDO__ORDER_NONE) return RONDO_OK;
    rondo__call_list_describe(graph->list, number, &node);
    return RONDO__FAIL(CAPTURE_UNJOINED, CAPTURE,
                       "graph '%s': lane %u has work that the stream which began the capture does not wait for, node "
                       "%llu '%s' last: record an event there and wait for it before the end. The capture is gone, "
                       "and its streams are free",
                       graph->name, (unsigned)lane, (unsigned long long)number, node.name);
}
