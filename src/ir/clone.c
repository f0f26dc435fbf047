/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy without the dead. First every value that something alive mentions is marked, then values and nodes are added
 * to a new graph in the old order, which keeps definitions before uses. */
#include <string.h>

#include "ir/private.h"

/* map[v]: the value of the copy; before it is made, 0 for a value that something mentions, else RONDO_IR_NONE. */
static void ir_clone_mark(rondo_ir_value *map, rondo_ir_value value) {
    if (value != RONDO_IR_NONE) map[value] = 0;
}

static rondo_status ir_clone_map_create(const rondo_ir_graph *graph, rondo_ir_value **out_map);

static void ir_clone_map_free(const rondo_ir_graph *graph, rondo_ir_value *map) {
    rondo__free(&graph->allocator, map, graph->values.count * sizeof *map);
}

static rondo_status ir_clone_mark_branch(rondo_ir_value *map, const rondo_ir_graph *branch) {
    rondo_ir_value *inner;
    RONDO__TRY(ir_clone_map_create(branch, &inner));
    for (size_t i = 0; i < branch->values.count; i++) {
        if (inner[i] != RONDO_IR_NONE) ir_clone_mark(map, rondo__ir_value_at(branch, (rondo_ir_value)i)->outer);
    }
    ir_clone_map_free(branch, inner);
    return RONDO_OK;
}

static rondo_status ir_clone_mark_all(const rondo_ir_graph *graph, rondo_ir_value *map) {
    for (size_t i = 0; i < graph->inputs.count; i++) ir_clone_mark(map, rondo__ir_input_at(graph, (uint32_t)i));
    for (size_t i = 0; i < graph->outputs.count; i++) ir_clone_mark(map, rondo__ir_output_at(graph, (uint32_t)i));
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)n);
        if (node->dead) continue;
        for (uint32_t i = 0; i < node->input_count; i++) ir_clone_mark(map, node->inputs[i]);
        for (uint32_t i = 0; i < node->output_count; i++) ir_clone_mark(map, node->outputs[i]);
        for (uint32_t i = 0; i < node->attribute_count; i++) {
            const rondo_ir_graph *branch = rondo__ir_attribute_graph(&node->attributes[i]);
            if (branch) RONDO__TRY(ir_clone_mark_branch(map, branch));
        }
    }
    return RONDO_OK;
}

static rondo_status ir_clone_map_create(const rondo_ir_graph *graph, rondo_ir_value **out_map) {
    void *pointer;
    RONDO__TRY(rondo__allocate_array(&graph->allocator, graph->values.count, sizeof(rondo_ir_value), &pointer));
    rondo_ir_value *map = pointer;
    if (graph->values.count) memset(map, 0xff, graph->values.count * sizeof *map); /* RONDO_IR_NONE */
    rondo_status status = ir_clone_mark_all(graph, map);
    if (status) {
        ir_clone_map_free(graph, map);
        return status;
    }
    *out_map = map;
    return RONDO_OK;
}

typedef struct ir_clone {
    const rondo_ir_graph *from;
    rondo_ir_graph *to;
    rondo_ir_value *map;
    const rondo_ir_value *outer_map; /* of the graph around `from`; null at the top */
    bool share;
} ir_clone;

static rondo_status ir_clone_value(ir_clone *clone, rondo_ir_value value) {
    const rondo__ir_value_data *from = rondo__ir_value_at(clone->from, value);
    RONDO__TRY(rondo__ir_value_add(clone->to, from->name, NULL, &from->type, &clone->map[value]));
    for (uint32_t i = 0; i < from->attribute_count; i++) {
        RONDO__TRY(rondo__ir_value_attribute_set(clone->to, clone->map[value], &from->attributes[i]));
    }
    rondo__ir_value_data *to = rondo__ir_value_at(clone->to, clone->map[value]);
    if (from->outer != RONDO_IR_NONE && clone->outer_map) {
        to->outer = clone->outer_map[from->outer];
        if (from->constant) to->constant = rondo__ir_value_at(clone->to->parent, to->outer)->constant;
        return RONDO_OK;
    }
    if (!from->constant) return RONDO_OK;
    const rondo__ir_constant *constant = from->constant;
    if (clone->share) {
        to->constant = constant;
        return RONDO_OK;
    }
    const rondo__ir_constant *copied;
    RONDO__TRY(rondo__ir_constant_make(clone->to, constant->dtype, constant->rank, constant->dims, constant->data, true,
                                       &copied));
    rondo__ir_value_at(clone->to, clone->map[value])->constant = copied;
    return RONDO_OK;
}

static rondo_status ir_clone_contents(ir_clone *clone);

static rondo_status ir_clone_branch(const ir_clone *clone, rondo_attribute *attribute) {
    const rondo_ir_graph *branch = rondo__ir_attribute_graph(attribute);
    rondo_ir_graph *copy;
    RONDO__TRY(rondo__ir_graph_create(&clone->to->allocator, clone->to->instance, branch->name, clone->to, &copy));
    attribute->value.graph = copy;
    rondo_ir_value *map;
    RONDO__TRY(ir_clone_map_create(branch, &map));
    ir_clone inner = {branch, copy, map, clone->map, clone->share};
    rondo_status status = ir_clone_contents(&inner);
    ir_clone_map_free(branch, map);
    rondo__ir_names_of(copy)->outers_stale = true;
    return status;
}

/* inputs, then outputs */
static void ir_clone_map_values(const ir_clone *clone, const rondo__ir_node_data *node, rondo_ir_value *values) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        values[i] = node->inputs[i] == RONDO_IR_NONE ? RONDO_IR_NONE : clone->map[node->inputs[i]];
    }
    values += node->input_count;
    for (uint32_t i = 0; i < node->output_count; i++) {
        values[i] = node->outputs[i] == RONDO_IR_NONE ? RONDO_IR_NONE : clone->map[node->outputs[i]];
    }
}

static rondo_status ir_clone_node(ir_clone *clone, const rondo__ir_node_data *node) {
    size_t count = (size_t)node->input_count + node->output_count;
    rondo_ir_value few[16];
    void *values = few;
    if (count > 16u) {
        RONDO__TRY(rondo__allocate_array(&clone->to->allocator, count, sizeof(rondo_ir_value), &values));
    }
    ir_clone_map_values(clone, node, values);
    rondo_ir_node added;
    rondo_status status = rondo__ir_node_add(clone->to, node->operator_name, node->name, values, node->input_count,
                                             (rondo_ir_value *)values + node->input_count, node->output_count,
                                             node->attributes, node->attribute_count, &added);
    if (values != few) rondo__free(&clone->to->allocator, values, count * sizeof(rondo_ir_value));
    for (uint32_t i = 0; !status && i < node->attribute_count; i++) {
        rondo_attribute *attribute = &rondo__ir_node_at(clone->to, added)->attributes[i];
        if (rondo__ir_attribute_graph(attribute)) status = ir_clone_branch(clone, attribute);
    }
    return status;
}

/* Dead nodes are left out, so nodes move up; the live ones keep their order. */
static rondo_status ir_clone_controls(const ir_clone *clone) {
    const rondo_ir_graph *from = clone->from;
    void *pointer;
    RONDO__TRY(rondo__allocate_array(&from->allocator, from->nodes.count, sizeof(rondo_ir_node), &pointer));
    rondo_ir_node *places = pointer, live = 0;
    rondo_status status = RONDO_OK;
    for (size_t n = 0; n < from->nodes.count && !status; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(from, (rondo_ir_node)n);
        places[n] = node->dead ? RONDO_IR_NONE : live++;
        for (uint32_t i = 0; i < node->control_count && !node->dead && !status; i++) {
            rondo_ir_node before = node->controls[i];
            if (before >= n || places[before] == RONDO_IR_NONE) continue; /* dead: there is nothing to wait for */
            status = rondo__ir_control_add(clone->to, places[n], places[before]);
        }
    }
    rondo__free(&from->allocator, pointer, from->nodes.count * sizeof *places);
    return status;
}

static rondo_status ir_clone_contents(ir_clone *clone) {
    const rondo_ir_graph *from = clone->from;
    for (size_t i = 0; i < from->values.count; i++) {
        if (clone->map[i] != RONDO_IR_NONE) RONDO__TRY(ir_clone_value(clone, (rondo_ir_value)i));
    }
    for (size_t i = 0; i < from->inputs.count; i++) {
        RONDO__TRY(rondo__ir_input_add(clone->to, clone->map[rondo__ir_input_at(from, (uint32_t)i)]));
    }
    for (size_t i = 0; i < from->nodes.count; i++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(from, (rondo_ir_node)i);
        if (!node->dead) RONDO__TRY(ir_clone_node(clone, node));
    }
    if (from->control_count) RONDO__TRY(ir_clone_controls(clone));
    for (size_t i = 0; i < from->outputs.count; i++) {
        RONDO__TRY(rondo__ir_output_add(clone->to, clone->map[rondo__ir_output_at(from, (uint32_t)i)],
                                        *RONDO__BUFFER_AT(&from->output_names, const char *, i)));
    }
    clone->to->opset = from->opset;
    clone->to->nodes_in_model = from->nodes_in_model;
    rondo__ir_names_of(clone->to)->made = rondo__ir_names_of(from)->made;
    return RONDO_OK;
}

rondo_status rondo__ir_clone(const rondo_ir_graph *graph, bool share, rondo_ir_graph **out_graph) {
    if (graph->parent) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "'%s' is a branch: copy the graph around it", graph->name);
    }
    rondo_ir_graph *copy;
    rondo_ir_value *map;
    RONDO__TRY(rondo__ir_graph_create(&graph->allocator, graph->instance, graph->name, NULL, &copy));
    rondo__ir_graph_share_operators(copy, graph->operators);
    rondo_status status = ir_clone_map_create(graph, &map);
    if (!status) {
        ir_clone clone = {graph, copy, map, NULL, share};
        status = ir_clone_contents(&clone);
        ir_clone_map_free(graph, map);
    }
    if (status) {
        rondo_ir_graph_release(copy);
        return rondo__status_note(status, "while copying graph '%s'", graph->name);
    }
    if (share) {
        /* Only the count changes: who holds the source may not see any difference. */
        copy->source = (rondo_ir_graph *)(uintptr_t)graph;
        rondo_ir_graph_retain(copy->source);
    }
    *out_graph = copy;
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------ branches alone */

rondo_status rondo__ir_branch_copy(rondo_ir_graph *to, const rondo_ir_graph *branch, const rondo_ir_value *outer_map,
                                   rondo_ir_graph **out_copy) {
    rondo_ir_value *map;
    RONDO__TRY(rondo__ir_graph_create(&to->allocator, to->instance, branch->name, to, out_copy));
    RONDO__TRY(ir_clone_map_create(branch, &map));
    ir_clone clone = {branch, *out_copy, map, outer_map, true};
    rondo_status status = ir_clone_contents(&clone);
    ir_clone_map_free(branch, map);
    rondo__ir_names_of(*out_copy)->outers_stale = true;
    return status;
}

static rondo_status ir_lift_outers(const ir_clone *clone, const rondo__ir_lifting *lifting, rondo__buffer *captured) {
    for (size_t i = 0; i < clone->from->values.count; i++) {
        const rondo__ir_value_data *from = rondo__ir_value_at(clone->from, (rondo_ir_value)i);
        if (from->outer == RONDO_IR_NONE || clone->map[i] == RONDO_IR_NONE) continue;
        rondo__ir_value_data *to = rondo__ir_value_at(clone->to, clone->map[i]);
        const rondo__ir_constant *c = lifting->constant_of(lifting->user, from->outer);
        if (!to->constant && c) RONDO__TRY(rondo__ir_type_from_dims(clone->to, c->dtype, c->rank, c->dims, &to->type));
        if (!to->constant) to->constant = c;
        if (to->constant) continue;
        RONDO__TRY(rondo__buffer_append(captured, &from->outer, 1));
        RONDO__TRY(rondo__ir_input_add(clone->to, clone->map[i]));
    }
    return RONDO_OK;
}

rondo_status rondo__ir_branch_lift(const rondo_ir_graph *branch, const rondo__ir_lifting *lifting,
                                   rondo__buffer *captured, rondo_ir_graph **out_graph) {
    rondo_ir_graph *copy;
    rondo_ir_value *map;
    RONDO__TRY(rondo__ir_graph_create(&branch->allocator, branch->instance, branch->name, NULL, &copy));
    rondo__ir_graph_share_operators(copy, lifting->holds->operators);
    rondo_status status = ir_clone_map_create(branch, &map);
    if (!status) {
        ir_clone clone = {branch, copy, map, NULL, true};
        status = ir_clone_contents(&clone);
        if (!status) status = ir_lift_outers(&clone, lifting, captured);
        ir_clone_map_free(branch, map);
    }
    if (status) {
        rondo_ir_graph_release(copy);
        return rondo__status_note(status, "while taking out branch '%s'", branch->name);
    }
    copy->source = lifting->holds;
    rondo_ir_graph_retain(lifting->holds);
    *out_graph = copy;
    return RONDO_OK;
}
