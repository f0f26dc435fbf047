/* SPDX-License-Identifier: Apache-2.0
 *
 * What must hold of a graph at any time, prototypes apart. Passes may call it after each step. */
#include "ir/private.h"

typedef struct ir_verify {
    const rondo_ir_graph *graph;
    uint8_t *defined; /* a byte a value */
    rondo__ir_table seen;
} ir_verify;

static rondo_status ir_verify_graph(const rondo_ir_graph *graph, uint32_t depth);

static rondo_status ir_verify_unique(ir_verify *verify, const char *what, const char *name) {
    if (!name || !*name) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s': %s has no name", verify->graph->name, what);
    }
    if (rondo__ir_table_find(&verify->seen, name) != RONDO_IR_NONE) {
        return RONDO__FAIL(ALREADY_EXISTS, PROTOTYPE, "graph '%s' has %s '%s' twice", verify->graph->name, what, name);
    }
    RONDO__TRY(rondo__ir_table_reserve(&verify->seen));
    rondo__ir_table_insert(&verify->seen, name, 0);
    return RONDO_OK;
}

static rondo_status ir_verify_type(const rondo_ir_graph *graph, const rondo__ir_value_data *data) {
    const rondo__ir_type *type = &data->type;
    const rondo__ir_constant *constant = data->constant;
    if (type->dtype < 0 || type->dtype >= RONDO_DTYPE_COUNT || type->rank < -1 || type->rank > RONDO_RANK_MAX ||
        (type->rank > 0 && !type->dims)) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s': value '%s' has a malformed type", graph->name,
                           data->name);
    }
    if (!constant) return RONDO_OK;
    bool same = type->kind == RONDO__IR_TENSOR && type->rank == constant->rank && type->dtype == constant->dtype;
    for (int32_t i = 0; same && i < type->rank; i++) {
        same = type->dims[i].value < 0 || type->dims[i].value == constant->dims[i];
    }
    if (!same) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s': the type of '%s' is not that of its constant",
                           graph->name, data->name);
    }
    return RONDO_OK;
}

static rondo_status ir_verify_values(ir_verify *verify) {
    const rondo_ir_graph *graph = verify->graph;
    for (size_t i = 0; i < graph->values.count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, (rondo_ir_value)i);
        RONDO__TRY(ir_verify_unique(verify, "a value", data->name));
        RONDO__TRY(ir_verify_type(graph, data));
        if (data->outer != RONDO_IR_NONE && (!graph->parent || data->outer >= graph->parent->values.count)) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s': '%s' stands for a value that does not exist",
                               graph->name, data->name);
        }
        verify->defined[i] = data->constant != NULL || data->outer != RONDO_IR_NONE;
    }
    for (size_t i = 0; i < graph->inputs.count; i++) {
        rondo_ir_value input = rondo__ir_input_at(graph, (uint32_t)i);
        if (input >= graph->values.count) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s': input %zu is no value", graph->name, i);
        }
        verify->defined[input] = 1;
    }
    return RONDO_OK;
}

/* The values that a branch takes from this graph must be there before the node that has the branch. */
static rondo_status ir_verify_branch(const ir_verify *verify, const rondo__ir_node_data *node,
                                     const rondo_attribute *attribute, uint32_t depth) {
    const rondo_ir_graph *branch = rondo__ir_attribute_graph(attribute);
    if (!branch) {
        if (attribute->kind != RONDO_ATTRIBUTE_GRAPH) return RONDO_OK;
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s': attribute '%s' has no graph", node->name,
                           attribute->name);
    }
    if (branch->parent != verify->graph) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s': branch '%s' belongs to another graph", node->name,
                           attribute->name);
    }
    RONDO__TRY_NOTE(ir_verify_graph(branch, depth + 1u), "in branch '%s' of node '%s'", attribute->name, node->name);
    for (size_t i = 0; i < branch->values.count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(branch, (rondo_ir_value)i);
        if (data->outer == RONDO_IR_NONE || verify->defined[data->outer]) continue;
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE,
                           "node '%s': branch '%s' uses '%s', which is not defined before the node", node->name,
                           attribute->name, rondo__ir_value_at(verify->graph, data->outer)->name);
    }
    return RONDO_OK;
}

static rondo_status ir_verify_controls(const rondo_ir_graph *graph, rondo_ir_node index) {
    const rondo__ir_node_data *node = rondo__ir_node_at(graph, index);
    for (uint32_t i = 0; i < node->control_count; i++) {
        rondo_ir_node before = node->controls[i];
        if (before >= graph->nodes.count || rondo__ir_node_at(graph, before)->dead) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s': control edge %u comes from no node", node->name,
                               i);
        }
        if (before >= index) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE,
                               "node '%s': control edge %u comes from '%s', which does not stand before it", node->name,
                               i, rondo__ir_node_at(graph, before)->name);
        }
    }
    return RONDO_OK;
}

static rondo_status ir_verify_node(ir_verify *verify, rondo_ir_node index, uint32_t depth) {
    const rondo_ir_graph *graph = verify->graph;
    const rondo__ir_node_data *node = rondo__ir_node_at(graph, index);
    if (node->dead) return RONDO_OK;
    RONDO__TRY(ir_verify_unique(verify, "a node", node->name));
    if (!node->operator_name || !*node->operator_name) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s' names no operator", node->name);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        rondo_ir_value value = node->inputs[i];
        if (value == RONDO_IR_NONE) continue;
        if (value >= graph->values.count) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s': input %u is no value", node->name, i);
        }
        if (!verify->defined[value]) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s': input '%s' is not defined before its use",
                               node->name, rondo__ir_value_at(graph, value)->name);
        }
    }
    RONDO__TRY(ir_verify_controls(graph, index));
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        RONDO__TRY(ir_verify_branch(verify, node, &node->attributes[i], depth));
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        rondo_ir_value value = node->outputs[i];
        if (value == RONDO_IR_NONE) continue;
        if (value >= graph->values.count) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s': output %u is no value", node->name, i);
        }
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, value);
        if (data->producer != index || data->producer_output != i) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s': output '%s' says that something else makes it",
                               node->name, data->name);
        }
        verify->defined[value] = 1;
    }
    return RONDO_OK;
}

static rondo_status ir_verify_outputs(ir_verify *verify) {
    const rondo_ir_graph *graph = verify->graph;
    for (size_t i = 0; i < graph->outputs.count; i++) {
        rondo_ir_value output = rondo__ir_output_at(graph, (uint32_t)i);
        const char *name = *RONDO__BUFFER_AT(&graph->output_names, const char *, i);
        RONDO__TRY(ir_verify_unique(verify, "an output", name));
        if (output >= graph->values.count || !verify->defined[output]) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s': nothing makes its output '%s'", graph->name,
                               name);
        }
    }
    return RONDO_OK;
}

static rondo_status ir_verify_all(ir_verify *verify, uint32_t depth) {
    RONDO__TRY(ir_verify_values(verify));
    rondo__ir_table_clear(&verify->seen);
    for (size_t i = 0; i < verify->graph->nodes.count; i++) {
        RONDO__TRY(ir_verify_node(verify, (rondo_ir_node)i, depth));
    }
    rondo__ir_table_clear(&verify->seen);
    return ir_verify_outputs(verify);
}

static rondo_status ir_verify_graph(const rondo_ir_graph *graph, uint32_t depth) {
    if (depth >= RONDO__IR_DEPTH_MAX) {
        return RONDO__FAIL(OUT_OF_RANGE, PROTOTYPE, "graph '%s' lies deeper than %u branches inside one another",
                           graph->name, RONDO__IR_DEPTH_MAX);
    }
    ir_verify verify = {.graph = graph};
    size_t bytes = graph->values.count;
    void *defined;
    RONDO__TRY(rondo__allocate_zeroed(&graph->allocator, bytes, &defined));
    verify.defined = defined;
    rondo__ir_table_init(&verify.seen, &graph->allocator, (uint64_t)(uintptr_t)defined);
    rondo_status status = ir_verify_all(&verify, depth);
    rondo__ir_table_deinit(&verify.seen);
    rondo__free(&graph->allocator, defined, bytes);
    return status;
}

rondo_status rondo__ir_verify(const rondo_ir_graph *graph) { return ir_verify_graph(graph, 0); }
