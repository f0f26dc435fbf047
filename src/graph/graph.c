/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph's life, and the plain questions about it. */
#include "graph/graph.h"
#include "base/sized.h"

#include <string.h>

rondo_status rondo_graph_create(rondo_device *device, const rondo_graph_options *options, rondo_graph **out_graph) {
    rondo_graph_options all = RONDO_GRAPH_OPTIONS_INIT;
    void *memory;
    if (!device || !out_graph)
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "a graph needs a device and a place to be put");
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_CAPTURE, "rondo_graph_options", options, &all, sizeof all));
    if (!(device->properties.capabilities & RONDO_DEVICE_GRAPH_CAPABLE))
        return RONDO__FAIL(UNSUPPORTED, CAPTURE, "device '%s:%d' has no graphs", device->properties.name,
                           (int)device->properties.index);
    RONDO__TRY(rondo__allocate_zeroed(&device->allocator, sizeof(rondo_graph), &memory));
    rondo_graph *graph = memory;
    rondo_status status = rondo__string_copy(&device->allocator, all.name ? all.name : "", &graph->name);
    if (status) {
        rondo__free(&device->allocator, graph, sizeof *graph);
        return status;
    }
    rondo__ref_init(&graph->references);
    graph->allocator = device->allocator;
    graph->device = device;
    rondo_device_retain(device);
    graph->keep_graph = all.keep_graph != 0;
    atomic_init(&graph->state, RONDO_GRAPH_EMPTY);
    rondo__memory_watcher_init(&graph->watcher, 0);
    rondo__mutex_init(&graph->mutex);
    rondo__buffer_init(&graph->streams, &graph->allocator, sizeof(rondo__graph_stream), UINT32_MAX - 1u);
    rondo__buffer_init(&graph->idle, &graph->allocator, sizeof(uint32_t), UINT32_MAX - 1u);
    rondo__buffer_init(&graph->open, &graph->allocator, sizeof(uint64_t), UINT32_MAX - 1u);
    rondo__buffer_init(&graph->generators, &graph->allocator, sizeof(rondo__rng_use), UINT32_MAX - 1u);
    rondo__buffer_init(&graph->slots, &graph->allocator, sizeof(rondo__graph_slot), UINT32_MAX - 1u);
    rondo__ticket_init(&graph->ticket, device);
    graph->ticket.flight.uses = rondo__graph_uses;
    *out_graph = graph;
    return RONDO_OK;
}

void rondo__graph_manage(rondo_graph *graph) { graph->managed = true; }

void rondo_graph_retain(rondo_graph *graph) {
    if (graph) rondo__ref_retain(&graph->references);
}

void rondo_graph_reset(rondo_graph *graph) {
    if (!graph) return;
    rondo__graph_drop_capture(graph);
    rondo__ticket_deinit(&graph->ticket);
    rondo__graph_set_state(graph, RONDO_GRAPH_EMPTY);
    rondo__graph_forget(graph);
    graph->slots.count = 0;
}

void rondo_graph_release(rondo_graph *graph) {
    if (!graph || !rondo__ref_release(&graph->references)) return;
    rondo_graph_reset(graph);
    rondo__buffer_deinit(&graph->slots);
    rondo__buffer_deinit(&graph->generators);
    rondo__buffer_deinit(&graph->open);
    rondo__buffer_deinit(&graph->idle);
    rondo__buffer_deinit(&graph->streams);
    rondo__mutex_deinit(&graph->mutex);
    rondo_allocator allocator = graph->allocator;
    rondo_device *device = graph->device;
    rondo__string_free(&allocator, graph->name);
    rondo__free(&allocator, graph, sizeof *graph);
    rondo_device_release(device);
}

rondo_graph_state rondo_graph_get_state(const rondo_graph *graph) {
    return graph ? rondo__graph_state_of(graph) : RONDO_GRAPH_EMPTY;
}

rondo_status rondo_graph_enable_debug_mode(rondo_graph *graph) {
    if (!graph) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "enable_debug_mode without a graph");
    RONDO__TRY(rondo__graph_check(graph, RONDO__GRAPH_ENABLE_DEBUG));
    graph->debug = true;
    return RONDO_OK;
}

rondo_status rondo_graph_pool(rondo_graph *graph, rondo_pool_id *out_pool) {
    if (!graph || !out_pool)
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "pool needs a graph and a place for its answer");
    RONDO__TRY(rondo__graph_check(graph, RONDO__GRAPH_POOL));
    *out_pool = graph->pool;
    return RONDO_OK;
}

rondo_status rondo_graph_get_info(rondo_graph *graph, rondo_graph_info *out_info) {
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    uint64_t counts[RONDO__LIST_KINDS];
    if (!graph) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "get_info without a graph");
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_CAPTURE, "rondo_graph_info", out_info));
    RONDO__TRY(rondo__graph_check(graph, RONDO__GRAPH_INFO));
    rondo__call_list_counts(graph->list, counts);
    info.state = rondo__graph_state_of(graph);
    info.nodes = rondo__call_list_count(graph->list);
    info.empty = info.nodes == 0 && !graph->direct;
    info.opaque = graph->direct || counts[RONDO__LIST_HOST_CALL] != 0;
    info.unverified = graph->direct || rondo__call_list_unverified(graph->list) || rondo__graph_slots_unverified(graph);
    const rondo__order *order = rondo__call_list_lanes(graph->list);
    const char *child;
    info.lanes = order ? (uint32_t)order->lanes.count : info.nodes ? 1u : 0u;
    info.edges = rondo__order_edges(order, info.nodes);
    info.conditions = counts[RONDO__LIST_CONDITION];
    info.events = counts[RONDO__LIST_RECORD] + counts[RONDO__LIST_WAIT];
    while (rondo__call_list_child(graph->list, (size_t)info.children, &child)) info.children++;
    info.slots = (uint32_t)graph->slots.count;
    info.native = graph->driver.graph != NULL;
    info.kernels = counts[RONDO__LIST_KERNEL];
    info.copies = counts[RONDO__LIST_COPY];
    info.fills = counts[RONDO__LIST_FILL];
    info.host_calls = counts[RONDO__LIST_HOST_CALL];
    info.bytes = sizeof *graph + (uint64_t)graph->slots.capacity * sizeof(rondo__graph_slot) +
                 rondo__call_list_bytes(graph->list);
    info.replays = graph->replays;
    rondo__sized_write(&info, sizeof info, out_info);
    return RONDO_OK;
}
