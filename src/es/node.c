/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes: whose they are, what they take, what they give. */
#include <rondo/ir.h>
#include <stdio.h>
#include <string.h>

#include "base/sized.h"
#include "es/private.h"

#define ES_NODE_OPERANDS_MAX (1 << 20)

static bool es_node_is_around(const rondo_es_builder *builder, const rondo_es_builder *inner) {
    while (inner && inner != builder) inner = inner->around;
    return inner == builder;
}

/* The innermost builder of the tensors, or the one that was named. */
static rondo_es_builder *es_node_owner(const rondo_es_node *node) {
    rondo_es_builder *owner = node->owner;
    for (int64_t i = 0; i < (int64_t)node->input_count + (node->more ? node->more_count : 0); i++) {
        const rondo_es_tensor *tensor =
            i < (int64_t)node->input_count ? node->inputs[i] : node->more[i - (int64_t)node->input_count];
        if (tensor && (!owner || es_node_is_around(owner, tensor->builder))) owner = tensor->builder;
    }
    return owner;
}

static rondo_status es_node_inputs(rondo_es_builder *builder, const rondo_es_node *node, rondo_ir_value **out_inputs,
                                   uint32_t *out_count) {
    void *pointer;
    uint32_t count = 0;
    RONDO__TRY(rondo__arena_allocate_array(&builder->arena, node->input_count + (size_t)node->more_count,
                                           sizeof(rondo_ir_value), &pointer));
    rondo_ir_value *inputs = pointer;
    for (uint32_t i = 0; i < node->input_count + (uint32_t)node->more_count; i++) {
        const rondo_es_tensor *tensor = i < node->input_count ? node->inputs[i] : node->more[i - node->input_count];
        inputs[i] = RONDO_IR_NONE;
        if (!tensor && i < node->input_count) continue;
        if (!tensor) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "%s: tensor %u of its list is null", node->operator_name,
                               i - node->input_count);
        }
        RONDO__TRY(rondo__es_bring(builder, tensor, &inputs[i]));
        count = i + 1u;
    }
    *out_inputs = inputs;
    *out_count = count;
    return RONDO_OK;
}

static rondo_status es_node_outputs(rondo_es_builder *builder, const rondo_ir_value *values, uint32_t count,
                                    rondo_es_tensor ***out_tensors) {
    void *pointer;
    RONDO__TRY(rondo__arena_allocate_array(&builder->arena, count, sizeof(rondo_es_tensor *), &pointer));
    rondo_es_tensor **tensors = pointer;
    for (uint32_t i = 0; i < count; i++) RONDO__TRY(rondo__es_holder(builder, values[i], &tensors[i]));
    *out_tensors = tensors;
    return RONDO_OK;
}

/* "Add0": the operator without its domain, and how many nodes there were. */
static const char *es_node_name(const rondo_es_builder *builder, const char *operator_name, char *text,
                                size_t capacity) {
    const char *domain = strstr(operator_name, "::");
    int length = snprintf(text, capacity, "%s%u", domain ? domain + 2 : operator_name, builder->made);
    return length > 0 && (size_t)length < capacity ? text : NULL;
}

static rondo_status es_node_add(rondo_es_builder *builder, const rondo_es_node *node, rondo_es_tensor ***out_tensors) {
    rondo_ir_graph *graph = rondo__es_graph(builder);
    rondo_ir_value *inputs = NULL;
    uint32_t input_count = 0;
    void *values;
    char name[128];
    if (!graph) return RONDO_OK; /* there is a failure already */
    if (node->more_count < 0 || node->more_count > ES_NODE_OPERANDS_MAX || (node->more_count && !node->more) ||
        node->output_count < 1 || node->output_count > ES_NODE_OPERANDS_MAX) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "%s: a list of %lld tensors, or %lld outputs, cannot be",
                           node->operator_name, (long long)node->more_count, (long long)node->output_count);
    }
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        rondo_ir_graph *branch =
            node->attributes[i].kind == RONDO_ATTRIBUTE_GRAPH ? node->attributes[i].value.graph : NULL;
        if (branch) RONDO__TRY(rondo_ir_graph_adopt(graph, branch));
    }
    RONDO__TRY(es_node_inputs(builder, node, &inputs, &input_count));
    RONDO__TRY(
        rondo__arena_allocate_array(&builder->arena, (size_t)node->output_count, sizeof(rondo_ir_value), &values));
    RONDO__TRY(rondo_ir_graph_add_node(
        graph, node->operator_name, es_node_name(builder, node->operator_name, name, sizeof name), inputs, input_count,
        node->attributes, node->attribute_count, values, (uint32_t)node->output_count));
    builder->made++;
    return es_node_outputs(builder, values, (uint32_t)node->output_count, out_tensors);
}

/* Graphs that did not become branches go here. */
static void es_node_drop_graphs(const rondo_es_node *node) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        rondo_ir_graph *graph =
            node->attributes[i].kind == RONDO_ATTRIBUTE_GRAPH ? node->attributes[i].value.graph : NULL;
        bool again = false; /* the same graph twice is dropped once */
        for (uint32_t k = 0; k < i; k++) {
            again = again ||
                    (node->attributes[k].kind == RONDO_ATTRIBUTE_GRAPH && node->attributes[k].value.graph == graph);
        }
        if (graph && !again && !graph->parent) rondo_ir_graph_release(graph);
    }
}

rondo_es_tensor **rondo_es_add(const rondo_es_node *given) {
    rondo_es_node node = RONDO_ES_NODE_INIT;
    rondo_es_tensor **tensors = NULL;
    rondo_status status = rondo__sized_read(RONDO_LAYER_INPUT, "rondo_es_node", given, &node, sizeof node);
    if (status || !node.operator_name || (node.input_count && !node.inputs) ||
        (node.attribute_count && !node.attributes)) {
        rondo_status_release(status);
        return NULL;
    }
    rondo_es_builder *builder = es_node_owner(&node);
    if (builder) {
        status = es_node_add(builder, &node, &tensors);
        if (status) {
            rondo__es_fail(builder, rondo__status_note(status, "in rondo_es_%s", node.operator_name));
            tensors = NULL;
        }
    }
    if (!tensors) es_node_drop_graphs(&node);
    return tensors;
}
