/* SPDX-License-Identifier: Apache-2.0
 *
 * Replay. On an inline device it is a few compares, the test of one flag, and the list: no lock, no allocation, no
 * system call. The flag says that some memory the graph watches was freed; whether the graph still mentions it is then
 * looked up, and only that is an error.
 */
#include "graph/graph.h"

rondo_status rondo_graph_instantiate(rondo_graph *graph) {
    if (!graph) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "instantiate without a graph");
    RONDO__TRY(rondo__graph_check(graph, RONDO__GRAPH_INSTANTIATE));
    RONDO__TRY(rondo__ticket_wait(&graph->ticket));
    RONDO__TRY(rondo__call_list_seal(graph->list));
    rondo__graph_set_state(graph, RONDO_GRAPH_READY);
    return RONDO_OK;
}

/* Something was freed. The flag goes down first: what is freed during the look raises it again. */
static rondo_status replay_check_stale(rondo_graph *graph) {
    atomic_store_explicit(&graph->watcher.stale, 0u, memory_order_seq_cst);
    rondo_status status = rondo__call_list_explain_stale(graph->list);
    if (!status) status = rondo__graph_explain_slots(graph);
    if (!status) return RONDO_OK;
    atomic_store_explicit(&graph->watcher.stale, 1u, memory_order_seq_cst);
    return rondo__status_note(status, "replay of graph '%s' was refused and nothing ran", graph->name);
}

static rondo_status replay_check(rondo_graph *graph, rondo_stream *stream) {
    RONDO__TRY(rondo__graph_check(graph, RONDO__GRAPH_REPLAY));
    if (stream->device != graph->device)
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "graph '%s' is of device '%s:%d', the stream of '%s:%d'",
                           graph->name, graph->device->properties.name, (int)graph->device->properties.index,
                           stream->device->properties.name, (int)stream->device->properties.index);
    if (rondo__stream_recorder(stream))
        return rondo__graph_refuse_on(
            stream,
            RONDO__FAIL(UNSUPPORTED, CAPTURE,
                        "replay of graph '%s' on a stream that captures: child graphs are not there yet, and the "
                        "capture is now invalid",
                        graph->name));
    if (rondo__graph_state_of(graph) == RONDO_GRAPH_CAPTURED) RONDO__TRY(rondo_graph_instantiate(graph));
    return RONDO_OK;
}

static rondo_status replay_run(const rondo_graph *graph, rondo_stream *stream) {
    if (graph->copies) RONDO__TRY(rondo__graph_copy_slots(graph, stream, true));
    RONDO__TRY_NOTE(rondo__call_list_run(graph->list, stream), "replay of graph '%s'", graph->name);
    return graph->copies ? rondo__graph_copy_slots(graph, stream, false) : RONDO_OK;
}

rondo_status rondo_graph_replay(rondo_graph *graph, rondo_stream *stream) {
    if (!graph || !stream) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "replay needs a graph and a stream");
    if (rondo__graph_state_of(graph) != RONDO_GRAPH_READY || stream->device != graph->device ||
        rondo__stream_recorder(stream))
        RONDO__TRY(replay_check(graph, stream));
    if (atomic_load_explicit(&graph->watcher.stale, memory_order_acquire)) RONDO__TRY(replay_check_stale(graph));
    RONDO__TRY(rondo__ticket_before(&graph->ticket, stream));
    rondo_status status = replay_run(graph, stream);
    if (!status) graph->replays++;
    if (graph->ticket.immediate) return status;
    return rondo__status_first(status, rondo__ticket_after(&graph->ticket, stream)); /* part of it may be on its way */
}
