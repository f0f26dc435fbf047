/* SPDX-License-Identifier: Apache-2.0
 *
 * A Constant node becomes the constant of its output. Its tensor goes straight from the file into the graph: models
 * keep all of their weights in such nodes. */
#include <string.h>

#include "import/onnx/onnx.h"

/* The tensor of attribute "value", found without reading it as an attribute, which would copy it. */
static rondo_status constant_tensor(rondo__onnx_node *node, const rondo__ir_constant **out_constant, bool *out_found) {
    rondo__onnx_context *context = node->scope->context;
    *out_found = false;
    if (node->attribute_message_count != 1) return RONDO_OK;
    rondo__pb_reader reader, inner;
    rondo__pb_field field;
    rondo__pb_bytes name = {0}, message = {0};
    int32_t type = 0;
    uint32_t tensors = 0, others = 0;
    RONDO__TRY(rondo__pb_enter_bytes(&node->reader, node->attribute_messages[0], &reader));
    while (rondo__pb_next(&reader, &field)) {
        if (field.number == 1) RONDO__TRY(rondo__pb_get_text(&reader, &field, &name));
        else if (field.number == 20) RONDO__TRY(rondo__pb_int32(&reader, &field, &type));
        else if (field.number == 5) {
            tensors++;
            RONDO__TRY(rondo__pb_get_bytes(&reader, &field, &message));
        } else if (field.number != 13) others++; /* a reference, too */
    }
    RONDO__TRY(rondo__pb_end(&reader));
    /* Anything unusual is left to the strict reader of attributes. */
    if (type != 4 || tensors != 1 || others || !rondo__import_is(name, "value")) return RONDO_OK;
    *out_found = true;
    rondo__onnx_tensor tensor;
    RONDO__TRY(rondo__pb_enter_bytes(&reader, message, &inner));
    RONDO__TRY(rondo__onnx_tensor_read(context, &inner, &tensor));
    return rondo__onnx_tensor_constant(context, node->scope->graph, &tensor, out_constant);
}

static rondo_status constant_make(rondo__onnx_node *node, rondo_dtype dtype, bool list, uint32_t count,
                                  const void *data, const rondo__ir_constant **out_constant) {
    int64_t dims = count;
    return rondo__ir_constant_make(node->scope->graph, dtype, list ? 1 : 0, list ? &dims : NULL, data, true,
                                   out_constant);
}

static rondo_status constant_value(rondo__onnx_node *node, const rondo_attribute *attribute,
                                   const rondo__ir_constant **out_constant) {
    static const struct {
        const char *name;
        rondo_attribute_kind kind;
        rondo_dtype dtype;
    } forms[] = {
        {"value", RONDO_ATTRIBUTE_TENSOR, 0},
        {"value_float", RONDO_ATTRIBUTE_FLOAT, RONDO_DTYPE_F32},
        {"value_floats", RONDO_ATTRIBUTE_FLOATS, RONDO_DTYPE_F32},
        {"value_int", RONDO_ATTRIBUTE_INT, RONDO_DTYPE_I64},
        {"value_ints", RONDO_ATTRIBUTE_INTS, RONDO_DTYPE_I64},
        {"value_string", RONDO_ATTRIBUTE_STRING, RONDO_DTYPE_STRING},
        {"value_strings", RONDO_ATTRIBUTE_STRINGS, RONDO_DTYPE_STRING},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(attribute->name, forms[i].name) != 0) continue;
        if (attribute->kind != forms[i].kind) break;
        if (i > 0 && node->version < 12)
            return RONDO__FAIL(CORRUPT, FILE,
                               "node %s: attribute '%s' exists from version 12 of the operator on, not in %lld",
                               rondo__onnx_label(node), attribute->name, (long long)node->version);
        const rondo_tensor_view *view = attribute->value.tensor;
        switch (attribute->kind) {
        case RONDO_ATTRIBUTE_TENSOR:
            return rondo__ir_constant_make(node->scope->graph, view->dtype, view->rank, view->shape, view->data, true,
                                           out_constant);
        case RONDO_ATTRIBUTE_FLOATS:
        case RONDO_ATTRIBUTE_INTS:
        case RONDO_ATTRIBUTE_STRINGS:
            return constant_make(node, forms[i].dtype, true, attribute->count, attribute->value.ints, out_constant);
        default: return constant_make(node, forms[i].dtype, false, 1, &attribute->value, out_constant);
        }
    }
    if (strcmp(attribute->name, "sparse_value") == 0) return rondo__onnx_refuse(node, "attribute sparse_value");
    return RONDO__FAIL(CORRUPT, FILE, "node %s: attribute '%.100s' is none of Constant's, or of another kind",
                       rondo__onnx_label(node), attribute->name);
}

rondo_status rondo__onnx_constant_node(rondo__onnx_node *node, const rondo__ir_constant **out_constant) {
    *out_constant = NULL;
    if (node->input_name_count || node->output_name_count != 1 || !node->output_names[0].size)
        return RONDO__FAIL(CORRUPT, FILE, "node %s: a Constant has no inputs and one output", rondo__onnx_label(node));
    if (node->attribute_message_count != 1)
        return RONDO__FAIL(CORRUPT, FILE, "node %s: a Constant has exactly one value, not %u", rondo__onnx_label(node),
                           node->attribute_message_count);
    bool found;
    RONDO__IMPORT_TRY(constant_tensor(node, out_constant, &found), "node %s", rondo__onnx_label(node));
    if (found) return RONDO_OK;
    rondo_attribute attribute;
    RONDO__TRY(rondo__onnx_attribute_read(node, node->attribute_messages[0], false, &attribute));
    if (node->refused) return RONDO_OK;
    if (!attribute.name)
        return RONDO__FAIL(CORRUPT, FILE, "node %s: the call of its function does not give its value",
                           rondo__onnx_label(node));
    return constant_value(node, &attribute, out_constant);
}
