/* SPDX-License-Identifier: Apache-2.0
 *
 * A Transpose of a Transpose is one, or none. With nodes in between that work on each element by itself and that nobody
 * else sees, the two meet when together they are none: the nodes between then work on the elements where they lie. */
#include <string.h>

#include "compile/walk.h"

static bool transposes_is(const rondo__ir_node_data *node) {
    return node && strcmp(node->operator_name, "Transpose") == 0 && node->input_count == 1 && node->output_count == 1 &&
           node->inputs[0] != RONDO_IR_NONE;
}

/* Axis i of what it gives is axis perm[i] of what it takes. */
static bool transposes_perm(const rondo__compile_walk *w, const rondo__ir_node_data *node, int32_t *out_rank,
                            int64_t *perm) {
    int32_t rank = *out_rank = rondo__ir_value_at(w->graph, node->inputs[0])->type.rank;
    const rondo_attribute *given = rondo__ir_attribute_find(node, "perm");
    if (given && (given->kind != RONDO_ATTRIBUTE_INTS || (int64_t)given->count != rank)) return false;
    for (int32_t i = 0; i < rank; i++) perm[i] = given ? given->value.ints[i] : rank - 1 - i;
    return true;
}

static bool transposes_is_none(int32_t rank, const int64_t *perm) {
    for (int32_t i = 0; i < rank; i++) {
        if (perm[i] != i) return false;
    }
    return true;
}

/* Element by element with constants of one element: such a node does not care where its elements lie. */
static bool transposes_indifferent(const rondo__compile_walk *w, const rondo__ir_node_data *node, uint32_t *out_input) {
    const rondo__ops_prototype *prototype = rondo__ops_lookup(w->graph, node->operator_name);
    bool found = false;
    if (rondo__ir_node_held(node) || !prototype || prototype->registered ||
        !(prototype->flags & RONDO__OPS_ELEMENTWISE) || node->output_count != 1) {
        return false;
    }
    int32_t rank = rondo__ir_value_at(w->graph, node->outputs[0])->type.rank;
    for (uint32_t i = 0; i < node->input_count; i++) {
        int64_t dims[RONDO_RANK_MAX];
        if (node->inputs[i] == RONDO_IR_NONE) continue;
        int32_t own = rondo__compile_dims(w->graph, node->inputs[i], dims);
        bool one = rondo__ir_value_at(w->graph, node->inputs[i])->constant && own <= rank;
        for (int32_t d = 0; d < own; d++) one = one && dims[d] == 1;
        if (one) continue;
        if (found || own != rank) return false;
        *out_input = i;
        found = true;
    }
    return found;
}

/* The Transpose at the other end of a chain of such nodes, each with one use; null: there is none. */
static rondo__ir_node_data *transposes_other_end(const rondo__compile_walk *w, rondo_ir_value value) {
    for (;;) {
        rondo__ir_node_data *node = rondo__compile_walk_producer(w, value);
        uint32_t input = 0;
        if (!node || transposes_is(node)) return node;
        if (rondo__compile_walk_uses(w, value) != 1 || !transposes_indifferent(w, node, &input)) return NULL;
        value = node->inputs[input];
    }
}

/* The nodes between `last` and the Transpose `first` take what that takes, and have its sizes. */
static void transposes_relay(rondo__compile_walk *w, rondo_ir_value last, const rondo__ir_node_data *first) {
    const rondo__ir_type *type = &rondo__ir_value_at(w->graph, first->inputs[0])->type;
    for (rondo_ir_value value = last;;) {
        rondo__ir_node_data *node = rondo__compile_walk_producer(w, value);
        rondo__ir_type *own = &rondo__ir_value_at(w->graph, value)->type;
        uint32_t input = 0;
        (void)transposes_indifferent(w, node, &input);
        own->dims = type->dims;
        value = node->inputs[input];
        if (value != first->outputs[0]) continue;
        rondo__compile_walk_set_input(w, node, input, first->inputs[0]);
        return;
    }
}

static rondo_status transposes_node(rondo__compile_walk *w, rondo__ir_node_data *node) {
    int64_t outer[RONDO_RANK_MAX], inner[RONDO_RANK_MAX], both[RONDO_RANK_MAX];
    int32_t rank = 0, inner_rank = 0;
    rondo_ir_value taken = node->inputs[0];
    const rondo__ir_node_data *first = transposes_other_end(w, taken);
    if (!first || !transposes_perm(w, node, &rank, outer) || !transposes_perm(w, first, &inner_rank, inner)) {
        return RONDO_OK;
    }
    if (rank != inner_rank) return RONDO_OK;
    for (int32_t i = 0; i < rank; i++) both[i] = inner[outer[i]];
    bool none = transposes_is_none(rank, both), next = first->outputs[0] == taken;
    if (!none && !next) return RONDO_OK;
    RONDO__TRY(rondo__compile_changed(w->state, "node '%s' (Transpose): with '%s' before it, it is %s", node->name,
                                      first->name, none ? "none" : "one"));
    if (none && next) {
        rondo__compile_walk_drop(w, node, first->inputs[0]);
    } else if (none) {
        transposes_relay(w, taken, first);
        rondo__compile_walk_drop(w, node, taken);
    } else {
        rondo_attribute perm = {.name = "perm", .kind = RONDO_ATTRIBUTE_INTS, .count = (uint32_t)rank};
        perm.value.ints = both;
        rondo_ir_value source = first->inputs[0];
        RONDO__TRY(rondo__compile_walk_rewrite(w, node, "Transpose", &source, 1, &perm, 1));
    }
    return RONDO_OK;
}

rondo_status rondo__compile_transposes(rondo__compile_state *state) {
    rondo__compile_walk walk;
    RONDO__TRY(rondo__compile_walk_begin(state, &walk));
    for (size_t n = 0; n < walk.graph->nodes.count; n++) {
        rondo__ir_node_data *node = rondo__compile_walk_at(&walk, n);
        if (transposes_is(node)) RONDO__TRY(transposes_node(&walk, node));
    }
    return rondo__compile_walk_end(&walk);
}
