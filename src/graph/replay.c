/* SPDX-License-Identifier: Apache-2.0
 *
 * Replay. On an inline device it is a few compares, the test of one flag, and the list: no lock, no allocation, no
 * system call. The flag says that some memory the graph watches was freed; whether the graph still mentions it is then
 * looked up, and only that is an error.
 */
#include "graph/direct.h"

rondo_status rondo_graph_instantiate(rondo_graph *graph) {
    if (!graph) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "instantiate without a graph");
    RONDO__TRY(rondo__graph_check(graph, RONDO__GRAPH_INSTANTIATE));
    RONDO__TRY(rondo__ticket_wait(&graph->ticket));
    RONDO__TRY(rondo__call_list_seal(graph->list));
    rondo__graph_set_state(graph, RONDO_GRAPH_READY);
    return RONDO_OK;
}

static rondo_status replay_pool_is_gone(const rondo_graph *graph, uint32_t why) {
    return RONDO__FAIL(STALE, MEMORY,
                       "pool {%llu, %llu} of graph '%s' %s: the addresses of its nodes are no longer its own",
                       (unsigned long long)graph->pool.automatic, (unsigned long long)graph->pool.user, graph->name,
                       why == RONDO__STALE_RESTORED ? "was brought back to a layout without a block that the graph uses"
                                                    : "was released");
}

/* Something was freed. The flag goes down first: what is freed during the look raises it again. */
static rondo_status replay_check_stale(rondo_graph *graph) {
    uint_least32_t why = atomic_exchange_explicit(&graph->watcher.stale, RONDO__STALE_NOT, memory_order_seq_cst);
    rondo_status status = why > RONDO__STALE_FREED ? replay_pool_is_gone(graph, (uint32_t)why)
                                                   : rondo__call_list_explain_stale(graph->list);
    if (!status) status = rondo__graph_explain_slots(graph);
    if (!status) return RONDO_OK;
    rondo__memory_raise_stale(&graph->watcher, why);
    return rondo__status_note(status, "replay of graph '%s' was refused and nothing ran", graph->name);
}

static rondo_status replay_look(rondo_graph *graph, const rondo_stream *stream) {
    RONDO__TRY(rondo__graph_check(graph, RONDO__GRAPH_REPLAY));
    if (stream->device != graph->device)
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "graph '%s' is of device '%s:%d', the stream of '%s:%d'",
                           graph->name, graph->device->properties.name, (int)graph->device->properties.index,
                           stream->device->properties.name, (int)stream->device->properties.index);
    if (rondo__graph_state_of(graph) == RONDO_GRAPH_CAPTURED) RONDO__TRY(rondo_graph_instantiate(graph));
    return RONDO_OK;
}

/* What is refused is missing from the graph that the stream captures; only a graph that is asked to replay into itself is as
 * it was, as after any call that its state forbids. */
static rondo_status replay_check(rondo_graph *graph, const rondo_stream *stream) {
    rondo_status status = replay_look(graph, stream);
    return rondo__graph_of(stream) == graph ? status : rondo__stream_refuse(stream, status);
}

/* Into a capture: nothing runs, and what is refused would be missing there. */
static rondo_status replay_embed(rondo_graph *graph, rondo_stream *stream) {
    if (atomic_load_explicit(&graph->watcher.stale, memory_order_acquire))
        RONDO__TRY(rondo__stream_refuse(stream, replay_check_stale(graph)));
    rondo_graph *parent = rondo__graph_of(stream);
    if (!parent || !(parent->direct || graph->direct)) return rondo__graph_embed(graph, stream);
    uint32_t lane;
    RONDO__TRY(rondo__graph_enter(parent, stream, &lane));
    return rondo__graph_leave(parent, rondo__direct_embed(parent, graph, stream));
}

static rondo_status replay_before(rondo_graph *graph, rondo_stream *stream) {
    rondo_status status = graph->generators.count ? rondo__graph_write_cells(graph, stream) : RONDO_OK;
    if (!status && graph->copies) status = rondo__graph_copy_slots(graph, stream, true);
    if (status) rondo__graph_give_numbers_back(graph);
    return status;
}

/* Its nodes have changed since it was captured. */
static void replay_make_driver(rondo_graph *graph) {
    rondo__driver_graph_drop(&graph->driver, graph->device);
    rondo__driver_graph_make(&graph->driver, graph->list, graph->lanes, graph->name);
}

/* What only the run shows that the device's graph lacks costs that graph, and not the replay. */
static rondo_status replay_driver(rondo_graph *graph, rondo_stream *stream) {
    RONDO__TRY(rondo__call_list_check_waits(graph->list));
    rondo_status status = rondo__driver_graph_launch(&graph->driver, graph->list, stream);
    if (!status || graph->direct || !rondo__driver_graph_lacks(status)) return status;
    rondo_status landed = rondo__ticket_wait(&graph->ticket);
    if (landed) return rondo__status_first(status, landed);
    rondo__driver_graph_give_up(&graph->driver, graph->list, graph->name, status);
    return rondo__call_list_run_lanes(graph->list, stream, graph->lanes);
}

static rondo_status replay_run(rondo_graph *graph, rondo_stream *stream) {
    if (graph->around) RONDO__TRY(replay_before(graph, stream));
    if (__builtin_expect(graph->driver.stale, 0)) replay_make_driver(graph);
    RONDO__TRY_NOTE(graph->driver.graph ? replay_driver(graph, stream)
                                        : rondo__call_list_run_lanes(graph->list, stream, graph->lanes),
                    "replay of graph '%s'", graph->name);
    return graph->copies ? rondo__graph_copy_slots(graph, stream, false) : RONDO_OK;
}

RONDO__HOT rondo_status rondo_graph_replay(rondo_graph *graph, rondo_stream *stream) {
    if (!stream) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "replay needs a stream");
    if (!graph) return rondo__stream_refuse(stream, RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "replay needs a graph"));
    if (rondo__graph_state_of(graph) != RONDO_GRAPH_READY || stream->device != graph->device ||
        rondo__stream_recorder(stream)) {
        RONDO__TRY(replay_check(graph, stream));
        if (rondo__stream_recorder(stream)) return replay_embed(graph, stream);
    }
    if (atomic_load_explicit(&graph->watcher.stale, memory_order_acquire)) RONDO__TRY(replay_check_stale(graph));
    RONDO__TRY(rondo__ticket_before(&graph->ticket, stream));
    rondo_status status = replay_run(graph, stream);
    if (!status) graph->replays++;
    if (graph->ticket.immediate) return status;
    return rondo__status_first(status, rondo__ticket_after(&graph->ticket, stream)); /* part of it may be on its way */
}
