/* SPDX-License-Identifier: Apache-2.0
 *
 * Control edges: order without data. And the end of a node, which takes its edges along. */
#include <string.h>

#include "ir/private.h"

static rondo_status control_check(const rondo_ir_graph *graph, rondo_ir_node node) {
    if (node < graph->nodes.count && !rondo__ir_node_at(graph, node)->dead) return RONDO_OK;
    return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s' has no node %u for a control edge", graph->name, node);
}

static uint32_t control_find(const rondo__ir_node_data *data, rondo_ir_node before) {
    uint32_t i = 0;
    while (i < data->control_count && data->controls[i] != before) i++;
    return i;
}

rondo_status rondo__ir_control_add(rondo_ir_graph *graph, rondo_ir_node node, rondo_ir_node before) {
    RONDO__TRY(control_check(graph, node));
    RONDO__TRY(control_check(graph, before));
    rondo__ir_node_data *data = rondo__ir_node_at(graph, node), *first = rondo__ir_node_at(graph, before);
    if (node == before) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s': it cannot wait for itself", data->name);
    }
    if (control_find(data, before) < data->control_count) return RONDO_OK;
    /* The room grows by doubling; a count that is a power of two may have filled it. */
    uint32_t count = data->control_count;
    if ((count & (count - 1u)) == 0) {
        void *pointer;
        size_t capacity = count ? (size_t)count * 2u : 1u;
        RONDO__TRY(rondo__arena_allocate_array(&graph->arena, capacity, sizeof *data->controls, &pointer));
        if (count) memcpy(pointer, data->controls, count * sizeof *data->controls);
        data->controls = pointer;
    }
    data->controls[data->control_count++] = before;
    first->awaited++;
    graph->control_count++;
    return RONDO_OK;
}

/* The order of those that stay is kept. */
static void control_drop(rondo__ir_node_data *data, uint32_t at) {
    uint32_t after = data->control_count - at - 1u;
    memmove(&data->controls[at], &data->controls[at + 1u], after * sizeof *data->controls);
    data->control_count--;
}

rondo_status rondo__ir_control_remove(rondo_ir_graph *graph, rondo_ir_node node, rondo_ir_node before) {
    RONDO__TRY(control_check(graph, node));
    RONDO__TRY(control_check(graph, before));
    rondo__ir_node_data *data = rondo__ir_node_at(graph, node);
    uint32_t at = control_find(data, before);
    if (at == data->control_count) {
        return RONDO__FAIL(NOT_FOUND, PROTOTYPE, "node '%s' has no control edge from '%s'", data->name,
                           rondo__ir_node_at(graph, before)->name);
    }
    control_drop(data, at);
    rondo__ir_node_at(graph, before)->awaited--;
    return RONDO_OK;
}

void rondo__ir_node_kill(rondo_ir_graph *graph, rondo_ir_node node) {
    rondo__ir_node_data *data = rondo__ir_node_at(graph, node);
    for (uint32_t i = 0; i < data->output_count; i++) {
        if (data->outputs[i] != RONDO_IR_NONE) rondo__ir_value_at(graph, data->outputs[i])->producer = RONDO_IR_NONE;
    }
    for (uint32_t i = 0; i < data->control_count; i++) rondo__ir_node_at(graph, data->controls[i])->awaited--;
    data->control_count = 0;
    for (size_t n = 0; n < graph->nodes.count && data->awaited; n++) {
        rondo__ir_node_data *other = rondo__ir_node_at(graph, (rondo_ir_node)n);
        uint32_t at = control_find(other, node);
        if (other->dead || at == other->control_count) continue;
        control_drop(other, at);
        data->awaited--;
    }
    data->dead = true;
}
