/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that only give the same bytes another shape, one after the other, are one Reshape of what the first takes: then
 * equal shapes are seen to be equal, and what ends where it began is nothing. */
#include "compile/walk.h"

/* All of one input's bytes, in their order, under another shape. */
static bool reshapes_is(const rondo__compile_walk *w, const rondo__ir_node_data *node) {
    rondo__compile_view view;
    return node && node->output_count == 1 && rondo__compile_view_of(w->graph, node, 0, &view) &&
           rondo__compile_bytes(w->graph, view.source) == rondo__compile_bytes(w->graph, node->outputs[0]);
}

static rondo_status reshapes_node(rondo__compile_walk *w, rondo__ir_node_data *node) {
    const rondo__ir_node_data *first = rondo__compile_walk_producer(w, node->inputs[0]);
    int64_t dims[RONDO_RANK_MAX];
    rondo_ir_value shape = RONDO_IR_NONE;
    if (!reshapes_is(w, first)) return RONDO_OK;
    rondo_ir_value source = first->inputs[0];
    int32_t rank = rondo__compile_dims(w->graph, node->outputs[0], dims);
    for (int32_t i = 0; i < rank; i++) {
        if (dims[i] == 0) return RONDO_OK; /* has another meaning to Reshape, and costs nothing */
    }
    RONDO__TRY(rondo__compile_changed(w->state, "node '%s' (%s): the bytes of '%s' under another shape", node->name,
                                      node->operator_name, rondo__ir_value_at(w->graph, source)->name));
    if (rondo__compile_same_dims(w->graph, source, node->outputs[0])) {
        rondo__compile_walk_drop(w, node, source);
        return RONDO_OK;
    }
    RONDO__TRY(
        rondo__ir_constant_add(w->graph, NULL, "shape", RONDO_DTYPE_I64, 1, &(const int64_t){rank}, dims, &shape));
    return rondo__compile_walk_rewrite(w, node, "Reshape", (const rondo_ir_value[]){source, shape}, 2, NULL, 0);
}

rondo_status rondo__compile_reshapes(rondo__compile_state *state) {
    rondo__compile_walk walk;
    RONDO__TRY(rondo__compile_walk_begin(state, &walk));
    for (size_t n = 0; n < walk.graph->nodes.count; n++) {
        rondo__ir_node_data *node = rondo__compile_walk_at(&walk, n);
        if (reshapes_is(&walk, node)) RONDO__TRY(reshapes_node(&walk, node));
    }
    return rondo__compile_walk_end(&walk);
}
