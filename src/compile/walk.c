/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk of passes that replace values by values. */
#include "compile/walk.h"

rondo_status rondo__compile_walk_begin(rondo__compile_state *state, rondo__compile_walk *out_walk) {
    *out_walk = (rondo__compile_walk){.state = state, .graph = state->graph, .known = state->graph->values.count};
    RONDO__TRY(rondo__compile_identity_map(state, &out_walk->map));
    return rondo__compile_count_uses(state, &out_walk->uses);
}

rondo__ir_node_data *rondo__compile_walk_at(rondo__compile_walk *walk, size_t n) {
    rondo__ir_node_data *node = rondo__ir_node_at(walk->graph, (rondo_ir_node)n);
    if (node->dead) return NULL;
    for (uint32_t i = 0; walk->dropped && i < node->input_count; i++) {
        /* What replaces a value was there before it: no chain is longer than one. */
        if (node->inputs[i] < walk->known) node->inputs[i] = walk->map[node->inputs[i]];
    }
    if (rondo__ir_node_held(node)) return NULL;
    return node;
}

rondo_status rondo__compile_walk_end(rondo__compile_walk *walk) {
    rondo_ir_value *map = walk->map;
    if (!walk->dropped) return RONDO_OK;
    if (walk->graph->values.count > walk->known) {
        RONDO__TRY(rondo__compile_identity_map(walk->state, &map));
        for (size_t i = 0; i < walk->known; i++) map[i] = walk->map[i];
    }
    rondo__ir_values_replace(walk->graph, map);
    return RONDO_OK;
}

rondo__ir_node_data *rondo__compile_walk_producer(const rondo__compile_walk *walk, rondo_ir_value value) {
    if (value == RONDO_IR_NONE) return NULL;
    rondo_ir_node producer = rondo__ir_value_at(walk->graph, value)->producer;
    return producer == RONDO_IR_NONE ? NULL : rondo__ir_node_at(walk->graph, producer);
}

uint32_t rondo__compile_walk_uses(const rondo__compile_walk *walk, rondo_ir_value value) {
    return value < walk->known ? walk->uses[value] : 1;
}

static void walk_count(rondo__compile_walk *walk, rondo_ir_value value, uint32_t more, uint32_t less) {
    if (value < walk->known) walk->uses[value] += more - less;
}

void rondo__compile_walk_drop(rondo__compile_walk *walk, rondo__ir_node_data *node, rondo_ir_value value) {
    rondo_ir_value output = node->outputs[0];
    walk_count(walk, value, walk->uses[output], 0);
    for (uint32_t i = 0; i < node->input_count; i++) walk_count(walk, node->inputs[i], 0, 1);
    walk->uses[output] = 0;
    walk->map[output] = value;
    walk->dropped = true;
    rondo__ir_value_at(walk->graph, output)->producer = RONDO_IR_NONE;
    node->dead = true;
}

void rondo__compile_walk_set_input(rondo__compile_walk *walk, rondo__ir_node_data *node, uint32_t input,
                                   rondo_ir_value value) {
    walk_count(walk, node->inputs[input], 0, 1);
    walk_count(walk, value, 1, 0);
    node->inputs[input] = value;
}

rondo_status rondo__compile_walk_rewrite(rondo__compile_walk *walk, rondo__ir_node_data *node,
                                         const char *operator_name, const rondo_ir_value *inputs, uint32_t input_count,
                                         const rondo_attribute *attributes, uint32_t attribute_count) {
    rondo_ir_graph *graph = walk->graph;
    void *copied = NULL, *described = NULL;
    RONDO__TRY(rondo__arena_copy(&graph->arena, inputs, input_count * sizeof *inputs, &copied));
    RONDO__TRY(rondo__arena_allocate_array(&graph->arena, attribute_count, sizeof *attributes, &described));
    for (uint32_t i = 0; i < attribute_count; i++) {
        RONDO__TRY(rondo__ir_attribute_copy(graph, &attributes[i], (rondo_attribute *)described + i));
    }
    for (uint32_t i = 0; i < node->input_count; i++) walk_count(walk, node->inputs[i], 0, 1);
    for (uint32_t i = 0; i < input_count; i++) walk_count(walk, inputs[i], 1, 0);
    node->operator_name = operator_name;
    node->inputs = copied;
    node->input_count = input_count;
    node->attributes = described;
    node->attribute_count = attribute_count;
    return RONDO_OK;
}
