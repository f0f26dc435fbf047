/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes whose outputs nobody uses go; optional outputs that nobody uses are not asked for. */
#include "compile/pass.h"

rondo_status rondo__compile_dead(rondo__compile_state *state) {
    rondo_ir_graph *graph = state->graph;
    uint32_t *uses = NULL;
    RONDO__TRY(rondo__compile_count_uses(state, &uses));
    for (size_t n = graph->nodes.count; n-- > 0;) {
        rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)n);
        if (node->dead) continue;
        bool used = node->awaited > 0; /* somebody waits for it to run, whatever it gives */
        for (uint32_t i = 0; i < node->output_count && !used; i++) {
            used = node->outputs[i] != RONDO_IR_NONE && uses[node->outputs[i]] > 0;
        }
        if (!used) {
            node->dead = true;
            RONDO__TRY(rondo__compile_changed(state, "node '%s' (%s): nothing uses what it gives", node->name,
                                              node->operator_name));
            for (uint32_t i = 0; i < node->control_count; i++) {
                rondo__ir_node_at(graph, node->controls[i])->awaited--;
            }
            for (uint32_t i = 0; i < node->input_count; i++) {
                if (node->inputs[i] != RONDO_IR_NONE) uses[node->inputs[i]]--;
            }
            continue;
        }
        const rondo__ops_prototype *prototype = rondo__ops_lookup(graph, node->operator_name);
        for (uint32_t i = 0; prototype && i < node->output_count && i < prototype->output_count; i++) {
            rondo_ir_value value = node->outputs[i];
            if (value == RONDO_IR_NONE || uses[value] > 0 || !prototype->outputs[i].optional) continue;
            rondo__ir_value_at(graph, value)->producer = RONDO_IR_NONE;
            node->outputs[i] = RONDO_IR_NONE;
        }
    }
    return RONDO_OK;
}
