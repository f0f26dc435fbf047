/* SPDX-License-Identifier: Apache-2.0
 *
 * Edits that a prototype must allow. The node is checked as it would be, then changed. */
#include <rondo/ir.h>
#include <string.h>

#include "ir/edit.h"
#include "ops/infer.h"

rondo_status rondo_ir_graph_set_attribute(rondo_ir_graph *graph, rondo_ir_value node,
                                          const rondo_attribute *attribute) {
    rondo_ir_node index;
    RONDO__TRY(rondo__ir_edit_node(graph, node, &index));
    if (!attribute || !attribute->name) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "node '%s': the attribute to set is null or has no name",
                           rondo__ir_node_at(graph, index)->name);
    }
    rondo__ir_node_data wanted = *rondo__ir_node_at(graph, index);
    void *pointer;
    size_t room = (size_t)wanted.attribute_count + 1u;
    RONDO__TRY(rondo__allocate_array(&graph->allocator, room, sizeof *attribute, &pointer));
    rondo_attribute *attributes = pointer;
    uint32_t at = 0;
    for (uint32_t i = 0; i < wanted.attribute_count; i++) {
        if (strcmp(wanted.attributes[i].name, attribute->name) != 0) attributes[at++] = wanted.attributes[i];
    }
    attributes[at++] = *attribute;
    wanted.attributes = attributes;
    wanted.attribute_count = at;
    rondo_status status = rondo__ops_check_model_node(graph, &wanted);
    rondo__free(&graph->allocator, pointer, room * sizeof *attribute);
    return status ? status : rondo__ir_attribute_set(graph, index, attribute);
}

static rondo_status edit_set_input(rondo_ir_graph *graph, rondo_ir_node index, rondo__ir_node_data *wanted,
                                   rondo_ir_value value) {
    rondo__ir_sorter sorter;
    rondo_ir_node producer = value == RONDO_IR_NONE ? RONDO_IR_NONE : rondo__ir_value_at(graph, value)->producer;
    RONDO__TRY(rondo__ops_check_model_node(graph, wanted));
    RONDO__TRY(rondo__ir_edit_check_edge(graph, index, producer, "an input from"));
    RONDO__TRY(rondo__ir_sorter_init(&sorter, graph, 0));
    rondo__ir_node_data *data = rondo__ir_node_at(graph, index);
    data->inputs = wanted->inputs;
    data->input_count = wanted->input_count;
    rondo_status status = RONDO_OK;
    if (producer != RONDO_IR_NONE && producer > index) status = rondo__ir_sorter_run(&sorter);
    rondo__ir_sorter_deinit(&sorter);
    return status;
}

rondo_status rondo_ir_graph_set_input(rondo_ir_graph *graph, rondo_ir_value node, uint32_t index,
                                      rondo_ir_value value) {
    rondo_ir_node at;
    RONDO__TRY(rondo__ir_edit_node(graph, node, &at));
    rondo__ir_node_data wanted = *rondo__ir_node_at(graph, at);
    if (value != RONDO_IR_NONE && value >= graph->values.count) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s': input %u is to be value %u, which does not exist",
                           wanted.name, index, value);
    }
    uint32_t count = index < wanted.input_count ? wanted.input_count : index + 1u;
    if (index >= 1u << 16) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s' cannot have an input %u", wanted.name, index);
    }
    void *pointer;
    RONDO__TRY(rondo__arena_allocate_array(&graph->arena, count, sizeof(rondo_ir_value), &pointer));
    rondo_ir_value *inputs = pointer;
    for (uint32_t i = 0; i < count; i++) inputs[i] = i < wanted.input_count ? wanted.inputs[i] : RONDO_IR_NONE;
    inputs[index] = value;
    wanted.inputs = inputs;
    wanted.input_count = count;
    return edit_set_input(graph, at, &wanted, value);
}

/* What the new node takes must not be made from what it will stand for. */
static rondo_status edit_check_insert(const rondo_ir_graph *graph, rondo_ir_value after, const char *name,
                                      const rondo_ir_value *inputs, uint32_t input_count) {
    uint8_t *behind;
    RONDO__TRY(rondo__ir_edit_behind(graph, RONDO_IR_NONE, after, &behind));
    rondo_status status = RONDO_OK;
    for (uint32_t i = 0; i < input_count && !status; i++) {
        if (inputs[i] == RONDO_IR_NONE || inputs[i] >= graph->values.count) continue; /* add_node says so */
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, inputs[i]);
        if (data->producer == RONDO_IR_NONE || !behind[data->producer]) continue;
        status = RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE,
                             "node '%s': input %u, '%s', is made from '%s', behind which the node is to stand", name, i,
                             data->name, rondo__ir_value_at(graph, after)->name);
    }
    rondo__ir_edit_behind_free(graph, behind);
    return status;
}

rondo_status rondo_ir_graph_insert_node(rondo_ir_graph *graph, rondo_ir_value after, const char *operator_name,
                                        const char *name, const rondo_ir_value *inputs, uint32_t input_count,
                                        const rondo_attribute *attributes, uint32_t attribute_count,
                                        rondo_ir_value *out_values, uint32_t output_count) {
    if (!graph || after >= graph->values.count || !operator_name || (input_count && !inputs) || !output_count) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                           "to insert a node a graph, one of its values, an operator, inputs and an output are needed");
    }
    const char *shown = name && *name ? name : operator_name;
    rondo__ir_sorter sorter;
    RONDO__TRY(edit_check_insert(graph, after, shown, inputs, input_count));
    RONDO__TRY(rondo__ir_sorter_init(&sorter, graph, 1));
    rondo_status status = rondo_ir_graph_add_node(graph, operator_name, name, inputs, input_count, attributes,
                                                  attribute_count, out_values, output_count);
    if (!status) {
        rondo__ir_node_data *node = rondo__ir_node_at(graph, rondo__ir_value_at(graph, out_values[0])->producer);
        rondo__ir_value_replace(graph, after, out_values[0]);
        for (uint32_t i = 0; i < node->input_count; i++) { /* its own use stays */
            if (node->inputs[i] == out_values[0]) node->inputs[i] = after;
        }
        for (uint32_t i = 0; i < node->attribute_count; i++) {
            rondo_ir_graph *branch = rondo__ir_attribute_graph(&node->attributes[i]);
            for (size_t v = 0; branch && v < branch->values.count; v++) {
                rondo__ir_value_data *data = rondo__ir_value_at(branch, (rondo_ir_value)v);
                if (data->outer == out_values[0]) data->outer = after;
            }
            if (branch) rondo__ir_names_of(branch)->outers_stale = true;
        }
        status = rondo__ir_sorter_run(&sorter);
    }
    rondo__ir_sorter_deinit(&sorter);
    return status;
}
