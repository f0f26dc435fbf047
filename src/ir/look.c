/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program may ask about the values and nodes of a graph. */
#include <rondo/ir.h>
#include <string.h>

#include "base/sized.h"
#include "ir/private.h"

static rondo_ir_node look_producer(const rondo_ir_graph *graph, rondo_ir_value value) {
    return graph && value < graph->values.count ? rondo__ir_value_at(graph, value)->producer : RONDO_IR_NONE;
}

static rondo_ir_value look_first(const rondo__ir_node_data *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != RONDO_IR_NONE) return node->outputs[i];
    }
    return RONDO_IR_NONE;
}

rondo_ir_value rondo_ir_graph_find_value(const rondo_ir_graph *graph, const char *name) {
    return graph ? rondo__ir_value_find(graph, name) : RONDO_IR_NONE;
}

rondo_ir_node rondo__ir_node_find(const rondo_ir_graph *graph, const char *name) {
    rondo_ir_node node = name ? rondo__ir_table_find(&rondo__ir_names_of(graph)->nodes, name) : RONDO_IR_NONE;
    if (node >= graph->nodes.count || rondo__ir_node_at(graph, node)->dead) return RONDO_IR_NONE;
    return strcmp(rondo__ir_node_at(graph, node)->name, name) == 0 ? node : RONDO_IR_NONE; /* it may have another now */
}

rondo_ir_value rondo_ir_graph_find_node(const rondo_ir_graph *graph, const char *name) {
    rondo_ir_node node = graph ? rondo__ir_node_find(graph, name) : RONDO_IR_NONE;
    return node == RONDO_IR_NONE ? RONDO_IR_NONE : look_first(rondo__ir_node_at(graph, node));
}

rondo_ir_value rondo_ir_graph_input_value(const rondo_ir_graph *graph, uint32_t index) {
    return graph && index < graph->inputs.count ? rondo__ir_input_at(graph, index) : RONDO_IR_NONE;
}

rondo_ir_value rondo_ir_graph_output_value(const rondo_ir_graph *graph, uint32_t index) {
    return graph && index < graph->outputs.count ? rondo__ir_output_at(graph, index) : RONDO_IR_NONE;
}

rondo_status rondo_ir_graph_get_value(const rondo_ir_graph *graph, rondo_ir_value value,
                                      rondo_ir_value_info *out_info) {
    if (!graph || value >= graph->values.count) {
        return RONDO__FAIL(OUT_OF_RANGE, PROTOTYPE, "graph '%s' has no value %u", graph ? graph->name : "", value);
    }
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_INPUT, "rondo_ir_value_info", out_info));
    const rondo__ir_value_data *data = rondo__ir_value_at(graph, value);
    rondo_ir_value_info info = RONDO_IR_VALUE_INFO_INIT;
    info.name = data->name;
    info.dtype = data->type.kind == RONDO__IR_TENSOR ? data->type.dtype : RONDO_DTYPE_UNDEFINED;
    info.rank = data->type.kind == RONDO__IR_TENSOR ? data->type.rank : -1;
    info.format = data->type.format;
    info.origin_format = data->type.origin_format;
    info.attributes = data->attributes;
    info.attribute_count = data->attribute_count;
    info.constant = data->constant ? data->constant->data : NULL;
    if (data->flags & RONDO__IR_VALUE_INPUT) info.flags |= RONDO_IR_VALUE_IS_INPUT;
    if (data->flags & RONDO__IR_VALUE_OUTPUT) info.flags |= RONDO_IR_VALUE_IS_OUTPUT;
    if (data->constant) info.flags |= RONDO_IR_VALUE_IS_CONSTANT;
    if (data->outer != RONDO_IR_NONE) info.flags |= RONDO_IR_VALUE_IS_OUTER;
    if (data->producer != RONDO_IR_NONE) {
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, data->producer);
        info.output = data->producer_output;
        info.node_name = node->name;
        info.operator_name = node->operator_name;
    }
    rondo__sized_write(&info, sizeof info, out_info);
    return RONDO_OK;
}

int64_t rondo_ir_graph_value_dim(const rondo_ir_graph *graph, rondo_ir_value value, int32_t axis,
                                 const char **out_symbol) {
    if (out_symbol) *out_symbol = NULL;
    if (!graph || value >= graph->values.count) return -1;
    const rondo__ir_type *type = &rondo__ir_value_at(graph, value)->type;
    if (type->kind != RONDO__IR_TENSOR || axis < 0 || axis >= type->rank) return -1;
    if (out_symbol && type->dims[axis].value < 0) *out_symbol = type->dims[axis].symbol;
    return type->dims[axis].value;
}

rondo_status rondo_ir_graph_get_node(const rondo_ir_graph *graph, rondo_ir_value node, rondo_ir_node_info *out_info) {
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_INPUT, "rondo_ir_node_info", out_info));
    rondo_ir_node index = look_producer(graph, node);
    if (index == RONDO_IR_NONE) {
        return RONDO__FAIL(NOT_FOUND, PROTOTYPE, "graph '%s': no node makes value %u", graph ? graph->name : "", node);
    }
    const rondo__ir_node_data *data = rondo__ir_node_at(graph, index);
    rondo_ir_node_info info = RONDO_IR_NODE_INFO_INIT;
    info.input_count = data->input_count;
    info.output_count = data->output_count;
    info.attribute_count = data->attribute_count;
    info.control_count = data->control_count;
    info.name = data->name;
    info.operator_name = data->operator_name;
    info.inputs = data->inputs;
    info.outputs = data->outputs;
    info.attributes = data->attributes;
    rondo__sized_write(&info, sizeof info, out_info);
    return RONDO_OK;
}

rondo_ir_value rondo_ir_graph_node_at(const rondo_ir_graph *graph, uint32_t index) {
    for (size_t n = 0; graph && n < graph->nodes.count; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)n);
        if (!node->dead && index-- == 0) return look_first(node);
    }
    return RONDO_IR_NONE;
}

rondo_ir_value rondo_ir_graph_control(const rondo_ir_graph *graph, rondo_ir_value node, uint32_t index) {
    rondo_ir_node at = look_producer(graph, node);
    if (at == RONDO_IR_NONE || index >= rondo__ir_node_at(graph, at)->control_count) return RONDO_IR_NONE;
    return look_first(rondo__ir_node_at(graph, rondo__ir_node_at(graph, at)->controls[index]));
}
