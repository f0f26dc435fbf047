/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that give exactly what they take, sizes and bytes, are passed by: Identity, a Cast to the same type, a Reshape
 * to the same shape, a Slice of the whole. */
#include "compile/pass.h"

rondo_status rondo__compile_simplify(rondo__compile_state *state) {
    rondo_ir_graph *graph = state->graph;
    rondo_ir_value *map = NULL;
    uint32_t removed = 0;
    RONDO__TRY(rondo__compile_identity_map(state, &map));
    for (size_t n = 0; n < graph->nodes.count; n++) {
        rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)n);
        rondo__compile_view view;
        if (node->dead || node->output_count != 1 || !rondo__compile_view_of(graph, node, 0, &view)) continue;
        if (rondo__ir_node_held(node)) continue;
        if (view.offset != 0 || !rondo__compile_same_dims(graph, view.source, node->outputs[0])) continue;
        map[node->outputs[0]] = view.source;
        rondo__ir_value_at(graph, node->outputs[0])->producer = RONDO_IR_NONE;
        node->dead = true;
        removed++;
        RONDO__TRY(
            rondo__compile_changed(state, "node '%s' (%s): gives what it takes", node->name, node->operator_name));
    }
    if (removed == 0) return RONDO_OK;
    rondo__ir_values_replace(graph, map);
    return rondo__compile_remark(state, "%u nodes that change nothing are gone", removed);
}
