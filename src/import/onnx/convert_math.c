/* SPDX-License-Identifier: Apache-2.0
 *
 * Old forms with another meaning, and the checks of If. */
#include <string.h>

#include "import/onnx/onnx.h"

/* Before version 13 Softmax, LogSoftmax and Hardmax saw the input as a matrix, all axes from `axis` on being one. With
 * axis the last that is what they do today; else it is Flatten, Softmax, and a Reshape to the shape that the input has when it runs. */
rondo_status rondo__onnx_convert_softmax(rondo__onnx_node *node) {
    if (node->input_count != 1 || node->inputs[0] == RONDO_IR_NONE) return RONDO_OK;
    const rondo_attribute *given = rondo__onnx_attribute(node, "axis");
    if (given && given->kind != RONDO_ATTRIBUTE_INT)
        return RONDO__FAIL(CORRUPT, FILE, "node %s: attribute 'axis' must be an int", rondo__onnx_label(node));
    int64_t axis = given ? given->value.i : 1;
    rondo_ir_value data = node->inputs[0];
    int32_t rank = rondo__ir_value_at(node->scope->graph, data)->type.rank;
    if (rank >= 0 && (axis < -rank || axis >= rank))
        return RONDO__FAIL(CORRUPT, FILE, "node %s: axis %lld of a tensor of rank %d", rondo__onnx_label(node),
                           (long long)axis, rank);
    rondo_attribute last = {.name = "axis", .kind = RONDO_ATTRIBUTE_INT, .count = 1, .value.i = -1};
    rondo__onnx_attribute_remove(node, "axis");
    if (axis == -1 || axis == rank - 1) {
        node->attributes[node->attribute_count++] = last;
        return RONDO_OK;
    }
    rondo_attribute from = {.name = "axis", .kind = RONDO_ATTRIBUTE_INT, .count = 1, .value.i = axis};
    rondo_ir_value flat, soft, shape;
    RONDO__TRY(rondo__onnx_extra(node, "Shape", &data, 1, NULL, 0, &shape));
    RONDO__TRY(rondo__onnx_extra(node, "Flatten", &data, 1, &from, 1, &flat));
    RONDO__TRY(rondo__onnx_extra(node, node->operator_name, &flat, 1, &last, 1, &soft));
    /* The node itself becomes the last of them: it keeps its name and its output. */
    node->operator_name = "Reshape";
    node->inputs[0] = soft;
    rondo__onnx_input_set(node, 1, shape);
    return RONDO_OK;
}

static rondo_status convert_branch(rondo__onnx_node *node, const char *name) {
    const rondo_attribute *attribute = rondo__onnx_attribute(node, name);
    if (!attribute || attribute->kind != RONDO_ATTRIBUTE_GRAPH) return RONDO_OK; /* the prototype's check says so */
    const rondo_ir_graph *branch = attribute->value.graph;
    if (branch->inputs.count)
        return RONDO__FAIL(CORRUPT, FILE, "node %s: its %s has inputs; a branch takes values from around it instead",
                           rondo__onnx_label(node), name);
    if (branch->outputs.count != node->output_count)
        return RONDO__FAIL(CORRUPT, FILE, "node %s has %u outputs, but its %s has %zu", rondo__onnx_label(node),
                           node->output_count, name, branch->outputs.count);
    return RONDO_OK;
}

rondo_status rondo__onnx_convert_if(rondo__onnx_node *node) {
    RONDO__TRY(convert_branch(node, "then_branch"));
    return convert_branch(node, "else_branch");
}
