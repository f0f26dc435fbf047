/* SPDX-License-Identifier: Apache-2.0
 *
 * What other passes made constant is worked out. Resolve folds as it walks; this finds what became constant since. Nodes
 * stand in an order of definition before use, so one walk sees all that follows from what it finds. */
#include "compile/pass.h"

typedef struct fold {
    rondo__compile_state *state;
    rondo_ir_graph *graph;
    rondo__compile_request request;
} fold;

static bool fold_is_constant(const fold *f, const rondo__ir_node_data *node) {
    const rondo__ops_prototype *prototype = rondo__ops_lookup(f->graph, node->operator_name);
    if (!prototype || prototype->flags & (RONDO__OPS_RANDOM | RONDO__OPS_CONTROL) || node->input_count == 0)
        return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == RONDO_IR_NONE) continue;
        if (!rondo__ir_value_at(f->graph, node->inputs[i])->constant) return false;
    }
    return true;
}

static rondo_status fold_node(fold *f, rondo_ir_node index) {
    const rondo__ir_node_data *node = rondo__ir_node_at(f->graph, index);
    bool done = false;
    void *memory = NULL;
    if (rondo__ir_node_held(node) || !fold_is_constant(f, node)) return RONDO_OK;
    RONDO__TRY(rondo__compile_request_make(&f->request, f->graph, node));
    RONDO__TRY(rondo__arena_allocate_array(&f->state->arena, node->output_count, sizeof(void *), &memory));
    const rondo__ir_constant **constants = memory;
    RONDO__TRY(rondo__compile_evaluate(f->state, &f->request, constants, &done));
    if (!done) return RONDO_OK;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == RONDO_IR_NONE) continue;
        rondo__ir_value_data *value = rondo__ir_value_at(f->graph, node->outputs[i]);
        value->constant = constants[i];
        value->producer = RONDO_IR_NONE;
    }
    rondo__ir_node_kill(f->graph, index);
    return rondo__compile_changed(f->state, "node '%s' (%s): all that it takes is constant", node->name,
                                  node->operator_name);
}

rondo_status rondo__compile_fold(rondo__compile_state *state) {
    fold f = {.state = state, .graph = state->graph};
    rondo__compile_request_init(&f.request, &state->allocator);
    rondo_status status = RONDO_OK;
    for (size_t n = 0; !status && n < f.graph->nodes.count; n++) {
        if (!rondo__ir_node_at(f.graph, (rondo_ir_node)n)->dead) status = fold_node(&f, (rondo_ir_node)n);
    }
    rondo__compile_request_deinit(&f.request);
    return status;
}
