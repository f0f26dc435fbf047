/* SPDX-License-Identifier: Apache-2.0
 *
 * The public functions on graphs that need prototypes: adding a node by its operator, and checking a whole graph. */
#include <stdio.h>
#include <string.h>

#include "ops/infer.h"

/* A node's outputs are made after it was checked, so that a refused node leaves nothing behind. */
static rondo_status build_check(rondo_ir_graph *graph, const char *operator_name, const char *name,
                                const rondo_ir_value *inputs, uint32_t input_count, const rondo_attribute *attributes,
                                uint32_t attribute_count, uint32_t output_count) {
    const rondo__ops_prototype *prototype = rondo__ops_lookup(graph, operator_name);
    if (!prototype) {
        return RONDO__FAIL(NOT_FOUND, PROTOTYPE, "node '%s': there is no operator '%s'", name, operator_name);
    }
    for (uint32_t i = 0; i < input_count; i++) {
        if (inputs[i] == RONDO_IR_NONE || inputs[i] < graph->values.count) continue;
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s' (%s): input %u is value %u, which does not exist",
                           name, operator_name, i, inputs[i]);
    }
    void *pointer;
    RONDO__TRY(rondo__allocate_array(&graph->allocator, output_count, sizeof(rondo_ir_value), &pointer));
    rondo__ir_node_data node = {.operator_name = operator_name,
                                .name = name,
                                .inputs = (rondo_ir_value *)(uintptr_t)inputs, /* only read */
                                .outputs = pointer,
                                .attributes = (rondo_attribute *)(uintptr_t)attributes,
                                .input_count = input_count,
                                .output_count = output_count,
                                .attribute_count = attribute_count};
    rondo_status status = rondo__ops_check_model_node(graph, &node);
    rondo__free(&graph->allocator, pointer, output_count * sizeof(rondo_ir_value));
    return status;
}

/* "Add0:0", the first output of node Add0, as the field writes it; a made name when that one is taken or too long. */
static rondo_status build_output(rondo_ir_graph *graph, const char *name, const char *shown, uint32_t output,
                                 rondo_ir_value *out_value) {
    char text[256];
    int length = name && *name ? snprintf(text, sizeof text, "%s:%u", name, (unsigned)output) : -1;
    bool usable = length > 0 && (size_t)length < sizeof text && rondo__ir_value_find(graph, text) == RONDO_IR_NONE;
    return rondo__ir_value_add(graph, usable ? text : NULL, shown, NULL, out_value);
}

/* `made` is apart from the caller's arrays: its inputs and outputs may be one variable. */
static rondo_status build_add(rondo_ir_graph *graph, const char *operator_name, const char *name,
                              const rondo_ir_value *inputs, uint32_t input_count, const rondo_attribute *attributes,
                              uint32_t attribute_count, rondo_ir_value *made, uint32_t output_count) {
    const char *shown = name && *name ? name : operator_name;
    for (uint32_t i = 0; i < output_count; i++) {
        RONDO__TRY(build_output(graph, name, shown, i, &made[i]));
    }
    RONDO__TRY(rondo__ir_node_add(graph, operator_name, name, inputs, input_count, made, output_count, attributes,
                                  attribute_count, NULL));
    graph->nodes_in_model++;
    return RONDO_OK;
}

rondo_status rondo_ir_graph_add_node(rondo_ir_graph *graph, const char *operator_name, const char *name,
                                     const rondo_ir_value *inputs, uint32_t input_count,
                                     const rondo_attribute *attributes, uint32_t attribute_count,
                                     rondo_ir_value *out_values, uint32_t output_count) {
    if (!graph || !operator_name || (input_count && !inputs) || (attribute_count && !attributes) ||
        (output_count && !out_values)) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a node needs a graph, an operator and the arrays it counts");
    }
    const char *shown = name && *name ? name : operator_name;
    RONDO__TRY(
        build_check(graph, operator_name, shown, inputs, input_count, attributes, attribute_count, output_count));
    void *made = NULL;
    RONDO__TRY(rondo__allocate_array(&graph->allocator, output_count, sizeof(rondo_ir_value), &made));
    rondo_status status =
        build_add(graph, operator_name, name, inputs, input_count, attributes, attribute_count, made, output_count);
    if (!status && output_count) memcpy(out_values, made, output_count * sizeof(rondo_ir_value));
    rondo__free(&graph->allocator, made, output_count * sizeof(rondo_ir_value));
    return status;
}

static rondo_status build_verify_nodes(const rondo_ir_graph *graph) {
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)i);
        if (!node->dead) RONDO__TRY(rondo__ops_check_node(graph, node));
    }
    for (size_t i = 0; i < graph->subgraphs.count; i++) {
        RONDO__TRY(build_verify_nodes(*RONDO__BUFFER_AT(&graph->subgraphs, rondo_ir_graph *, i)));
    }
    return RONDO_OK;
}

rondo_status rondo_ir_graph_verify(const rondo_ir_graph *graph) {
    if (!graph) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "there is no graph to verify");
    RONDO__TRY(rondo__ir_verify(graph));
    return build_verify_nodes(graph);
}
