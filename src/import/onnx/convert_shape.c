/* SPDX-License-Identifier: Apache-2.0
 *
 * Old forms whose attributes became inputs: axes, parts, bounds and paddings. */
#include <string.h>

#include "import/onnx/onnx.h"

/* An ints attribute as a constant at that place of the inputs, when the node has it. */
static rondo_status convert_ints_input(rondo__onnx_node *node, const char *name, uint32_t index) {
    const rondo_attribute *attribute = rondo__onnx_attribute(node, name);
    if (!attribute) return RONDO_OK;
    if (attribute->kind != RONDO_ATTRIBUTE_INTS)
        return RONDO__FAIL(CORRUPT, FILE, "node %s: attribute '%s' must be ints", rondo__onnx_label(node), name);
    rondo_ir_value value;
    RONDO__TRY(rondo__onnx_ints(node, name, attribute->value.ints, attribute->count, &value));
    rondo__onnx_attribute_remove(node, name);
    rondo__onnx_input_set(node, index, value);
    return RONDO_OK;
}

static rondo_status convert_required(rondo__onnx_node *node, const char *name) {
    if (rondo__onnx_attribute(node, name)) return RONDO_OK;
    return RONDO__FAIL(CORRUPT, FILE, "node %s: version %lld of the operator needs attribute '%s'",
                       rondo__onnx_label(node), (long long)node->version, name);
}

/* Without its data a node gets no inputs from us, so that the prototype's check sees that it has none. */
static bool convert_bare(const rondo__onnx_node *node) {
    return node->input_count == 0 || node->inputs[0] == RONDO_IR_NONE;
}

rondo_status rondo__onnx_convert_axes(rondo__onnx_node *node) {
    if (convert_bare(node)) return RONDO_OK;
    if (strcmp(node->operator_name, "Unsqueeze") == 0) RONDO__TRY(convert_required(node, "axes"));
    return convert_ints_input(node, "axes", 1);
}

rondo_status rondo__onnx_convert_split(rondo__onnx_node *node) {
    if (convert_bare(node)) return RONDO_OK;
    RONDO__TRY(convert_ints_input(node, "split", 1));
    if (node->input_count > 1) return RONDO_OK;
    /* Before version 18 equal parts were what remained when no sizes were given. */
    node->attributes[node->attribute_count++] = (rondo_attribute){
        .name = "num_outputs", .kind = RONDO_ATTRIBUTE_INT, .count = 1, .value.i = node->output_count};
    return RONDO_OK;
}

rondo_status rondo__onnx_convert_slice(rondo__onnx_node *node) {
    if (convert_bare(node)) return RONDO_OK;
    RONDO__TRY(convert_required(node, "starts"));
    RONDO__TRY(convert_required(node, "ends"));
    RONDO__TRY(convert_ints_input(node, "starts", 1));
    RONDO__TRY(convert_ints_input(node, "ends", 2));
    return convert_ints_input(node, "axes", 3);
}

/* A float attribute as a scalar of the data's type at that place of the inputs. */
static rondo_status convert_float_input(rondo__onnx_node *node, const char *name, bool always, float otherwise,
                                        uint32_t index) {
    const rondo_attribute *attribute = rondo__onnx_attribute(node, name);
    if (!attribute && !always) return RONDO_OK;
    if (attribute && attribute->kind != RONDO_ATTRIBUTE_FLOAT)
        return RONDO__FAIL(CORRUPT, FILE, "node %s: attribute '%s' must be a float", rondo__onnx_label(node), name);
    float number = attribute ? attribute->value.f : otherwise;
    rondo_dtype dtype = rondo__onnx_dtype_of(node->scope->graph, node->inputs[0]);
    if (dtype == RONDO_DTYPE_UNDEFINED) dtype = RONDO_DTYPE_F32; /* another type is then found by inference */
    if (dtype != RONDO_DTYPE_F32 && dtype != RONDO_DTYPE_F64)
        return rondo__onnx_refuse(node, "its old form on another type than float32 or float64");
    rondo_ir_value value;
    RONDO__TRY(rondo__onnx_scalar(node, name, dtype, number, &value));
    rondo__onnx_attribute_remove(node, name);
    rondo__onnx_input_set(node, index, value);
    return RONDO_OK;
}

rondo_status rondo__onnx_convert_pad(rondo__onnx_node *node) {
    if (convert_bare(node)) return RONDO_OK;
    RONDO__TRY(convert_required(node, "pads"));
    RONDO__TRY(convert_ints_input(node, "pads", 1));
    return convert_float_input(node, "value", false, 0.0f, 2);
}

/* The old bounds were numbers with the largest floats as defaults: an infinity is brought down to them. */
rondo_status rondo__onnx_convert_clip(rondo__onnx_node *node) {
    if (convert_bare(node)) return RONDO_OK;
    RONDO__TRY(convert_float_input(node, "min", true, -0x1.fffffep+127f, 1));
    return node->refused ? RONDO_OK : convert_float_input(node, "max", true, 0x1.fffffep+127f, 2);
}
