/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions: a node that, where it does not hold, jumps over what was enqueued before its end. */
#include "graph/graph.h"

static rondo_status condition_graph(const char *what, rondo_stream *stream, rondo_graph **out_graph) {
    if (!stream) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "%s without a stream", what);
    *out_graph = rondo__graph_of(stream);
    if (*out_graph) return RONDO_OK;
    return RONDO__FAIL(INVALID_STATE, CAPTURE, "%s on a stream that does not capture: conditions are part of graphs",
                       what);
}

static rondo_status condition_open(rondo_graph *graph, uint32_t lane, uint64_t address) {
    uint64_t entry;
    RONDO__TRY(rondo__buffer_reserve(&graph->open, graph->open.count + 1u));
    RONDO__TRY(rondo__call_list_condition(graph->list, address, &entry));
    graph->open_lane = lane;
    return rondo__buffer_append(&graph->open, &entry, 1);
}

rondo_status rondo_graph_condition_begin(rondo_stream *stream, const void *condition) {
    rondo_graph *graph;
    uint32_t lane;
    RONDO__TRY(condition_graph("rondo_graph_condition_begin", stream, &graph));
    RONDO__TRY(rondo__graph_enter(graph, stream, &lane));
    return rondo__graph_leave(graph, condition_open(graph, lane, (uint64_t)(uintptr_t)condition));
}

rondo_status rondo_graph_condition_end(rondo_stream *stream) {
    rondo_graph *graph;
    uint32_t lane;
    RONDO__TRY(condition_graph("rondo_graph_condition_end", stream, &graph));
    RONDO__TRY(rondo__graph_enter(graph, stream, &lane));
    if (!graph->open.count)
        return rondo__graph_leave(
            graph,
            RONDO__FAIL(INVALID_STATE, CAPTURE,
                        "graph '%s': rondo_graph_condition_end without a condition that has begun", graph->name));
    graph->open.count--;
    rondo__call_list_condition_end(graph->list, *RONDO__BUFFER_AT(&graph->open, const uint64_t, graph->open.count),
                                   rondo__call_list_count(graph->list));
    return rondo__graph_leave(graph, RONDO_OK);
}
