/* SPDX-License-Identifier: Apache-2.0
 *
 * One walk forward over the graph, as passes do it that replace values by values. Private to this room.
 *
 * A node is seen with its inputs as they are by now; what it drops is passed by in all that follows, and in the graph's
 * outputs when the walk ends. Uses stay counted on the way. Everything is linear in the graph. */
#ifndef RONDO_SRC_COMPILE_WALK_H
#define RONDO_SRC_COMPILE_WALK_H

#include "compile/pass.h"

typedef struct rondo__compile_walk {
    rondo__compile_state *state;
    rondo_ir_graph *graph;
    rondo_ir_value *map; /* of the values that there were when the walk began */
    uint32_t *uses;
    size_t known; /* how many those were */
    bool dropped;
} rondo__compile_walk;

RONDO_MUST_USE rondo_status rondo__compile_walk_begin(rondo__compile_state *state, rondo__compile_walk *out_walk);
/* Node n with its inputs as they are by now; null when it is dead, or held where it is by control edges. */
rondo__ir_node_data *rondo__compile_walk_at(rondo__compile_walk *walk, size_t n);
RONDO_MUST_USE rondo_status rondo__compile_walk_end(rondo__compile_walk *walk);

/* Who makes a value; null for inputs and constants. */
rondo__ir_node_data *rondo__compile_walk_producer(const rondo__compile_walk *walk, rondo_ir_value value);
uint32_t rondo__compile_walk_uses(const rondo__compile_walk *walk, rondo_ir_value value);
/* The node dies; `value`, of the same type and sizes, takes the place of its only output. */
void rondo__compile_walk_drop(rondo__compile_walk *walk, rondo__ir_node_data *node, rondo_ir_value value);
void rondo__compile_walk_set_input(rondo__compile_walk *walk, rondo__ir_node_data *node, uint32_t input,
                                   rondo_ir_value value);
/* Another operator with other inputs; the outputs stay. Arrays are copied. */
RONDO_MUST_USE rondo_status rondo__compile_walk_rewrite(rondo__compile_walk *walk, rondo__ir_node_data *node,
                                                        const char *operator_name, const rondo_ir_value *inputs,
                                                        uint32_t input_count, const rondo_attribute *attributes,
                                                        uint32_t attribute_count);

#endif
