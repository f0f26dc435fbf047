/* SPDX-License-Identifier: Apache-2.0
 *
 * A NodeProto, first its names (so that all values of a graph are known before any is looked up), then, in a second
 * round, its inputs, attributes and form. */
#include <string.h>

#include "import/onnx/onnx.h"

enum {
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7,
    NODE_OVERLOAD = 8
};

static rondo_status node_count(rondo__pb_reader reader, rondo__onnx_node *node, rondo__pb_bytes *overload) {
    rondo__pb_field field;
    while (rondo__pb_next(&reader, &field)) {
        rondo__pb_bytes *text = NULL;
        switch (field.number) {
        case NODE_INPUT: node->input_name_count++; break;
        case NODE_OUTPUT: node->output_name_count++; break;
        case NODE_ATTRIBUTE: node->attribute_message_count++; break;
        case NODE_NAME: text = &node->name; break;
        case NODE_TYPE: text = &node->type; break;
        case NODE_DOMAIN: text = &node->domain; break;
        case NODE_OVERLOAD: text = overload; break;
        default: break;
        }
        if (!text) continue;
        RONDO__TRY(rondo__pb_once(&reader, &field));
        RONDO__TRY(rondo__pb_get_text(&reader, &field, text));
    }
    return rondo__pb_end(&reader);
}

static rondo_status node_collect(rondo__pb_reader reader, rondo__onnx_node *node) {
    rondo__arena *scratch = &node->scope->context->scratch;
    void *inputs, *outputs, *attributes;
    RONDO__TRY(rondo__arena_allocate_array(scratch, node->input_name_count, sizeof(rondo__pb_bytes), &inputs));
    RONDO__TRY(rondo__arena_allocate_array(scratch, node->output_name_count, sizeof(rondo__pb_bytes), &outputs));
    RONDO__TRY(
        rondo__arena_allocate_array(scratch, node->attribute_message_count, sizeof(rondo__pb_bytes), &attributes));
    node->input_names = inputs;
    node->output_names = outputs;
    node->attribute_messages = attributes;
    rondo__pb_bytes *input = inputs, *output = outputs, *attribute = attributes;
    rondo__pb_field field;
    while (rondo__pb_next(&reader, &field)) {
        if (field.number == NODE_INPUT) RONDO__TRY(rondo__pb_get_text(&reader, &field, input++));
        else if (field.number == NODE_OUTPUT) RONDO__TRY(rondo__pb_get_text(&reader, &field, output++));
        else if (field.number == NODE_ATTRIBUTE) RONDO__TRY(rondo__pb_get_bytes(&reader, &field, attribute++));
    }
    return rondo__pb_end(&reader);
}

static rondo_status node_opset(rondo__onnx_node *node) {
    rondo__onnx_context *context = node->scope->context;
    if (rondo__import_is(node->domain, "ai.onnx")) node->domain.size = 0;
    if (!node->domain.size) {
        node->version = context->opsets->onnx;
    } else {
        for (uint32_t i = 0; i < context->opsets->count && !node->version; i++) {
            const rondo__onnx_opset *opset = &context->opsets->entries[i];
            if (opset->domain.size == node->domain.size &&
                memcmp(opset->domain.data, node->domain.data, node->domain.size) == 0)
                node->version = opset->version;
        }
    }
    if (node->version) return RONDO_OK;
    return RONDO__FAIL(CORRUPT, FILE, "node %s: the model imports no operator set of domain '%s'",
                       rondo__onnx_label(node),
                       node->domain.size ? rondo__onnx_shown(context, node->domain) : "ai.onnx");
}

/* "Conv", or "domain::Name"; and whether it is a function of the model. */
static rondo_status node_operator(rondo__onnx_node *node, rondo__pb_bytes overload) {
    rondo__onnx_context *context = node->scope->context;
    rondo__pb_bytes key;
    RONDO__TRY(rondo__onnx_function_key(context, node->domain, node->type, (rondo__pb_bytes){0}, &key));
    if (node->domain.size) RONDO__TRY(rondo__import_text(&context->scratch, key, &node->operator_name));
    else RONDO__TRY(rondo__import_text(&context->scratch, node->type, &node->operator_name));
    if (!context->functions.count) return RONDO_OK;
    if (overload.size) RONDO__TRY(rondo__onnx_function_key(context, node->domain, node->type, overload, &key));
    const uint32_t index = rondo__import_names_find(&context->functions, key);
    if (index != RONDO__IMPORT_NAMES_NONE)
        node->function = RONDO__BUFFER_AT(&context->function_list, rondo__onnx_function, index);
    return RONDO_OK;
}

rondo_status rondo__onnx_node_read(rondo__onnx_scope *scope, const rondo__pb_reader *reader,
                                   rondo__onnx_node *out_node) {
    memset(out_node, 0, sizeof *out_node);
    out_node->scope = scope;
    out_node->reader = *reader;
    rondo__pb_bytes overload = {0};
    RONDO__TRY(node_count(*reader, out_node, &overload));
    RONDO__TRY(node_collect(*reader, out_node));
    if (!out_node->type.size)
        return RONDO__FAIL(CORRUPT, FILE, "node %s names no operator", rondo__onnx_label(out_node));
    scope->context->nodes++;
    RONDO__TRY(node_opset(out_node));
    return node_operator(out_node, overload);
}

/* ------------------------------------------------------------------------------------------------ second round */

static rondo_status node_inputs(rondo__onnx_node *node) {
    rondo__onnx_context *context = node->scope->context;
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&context->scratch, (size_t)node->input_name_count + RONDO__ONNX_SPARE,
                                           sizeof(rondo_ir_value), &memory));
    node->inputs = memory;
    for (uint32_t i = 0; i < node->input_name_count; i++) {
        node->inputs[i] = RONDO_IR_NONE;
        if (!node->input_names[i].size) continue; /* absent */
        RONDO__TRY(rondo__onnx_scope_find(node->scope, node->input_names[i], &node->inputs[i]));
        if (node->inputs[i] == RONDO_IR_NONE)
            return RONDO__FAIL(CORRUPT, FILE, "node %s: its input '%s' is not defined", rondo__onnx_label(node),
                               rondo__onnx_shown(context, node->input_names[i]));
        if (node->inputs[i] == RONDO__ONNX_ABSENT) node->inputs[i] = RONDO_IR_NONE;
        else node->input_count = i + 1; /* absent ones at the end are dropped */
    }
    return RONDO_OK;
}

static rondo_status node_outputs(rondo__onnx_node *node) {
    rondo__onnx_scope *scope = node->scope;
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&scope->context->scratch, node->output_name_count, sizeof(rondo_ir_value),
                                           &memory));
    node->outputs = memory;
    node->output_count = node->output_name_count;
    for (uint32_t i = 0; i < node->output_count; i++)
        node->outputs[i] = node->output_names[i].size ? rondo__import_names_find(&scope->values, node->output_names[i])
                                                      : RONDO_IR_NONE;
    return RONDO_OK;
}

static rondo_status node_attributes(rondo__onnx_node *node, bool graphs_only) {
    rondo__onnx_context *context = node->scope->context;
    if (node->attribute_message_count > RONDO__ONNX_ATTRIBUTES_MAX)
        return RONDO__FAIL(CORRUPT, FILE, "node %s has %u attributes; at most %u are allowed", rondo__onnx_label(node),
                           node->attribute_message_count, RONDO__ONNX_ATTRIBUTES_MAX);
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&context->scratch, (size_t)node->attribute_message_count + RONDO__ONNX_SPARE,
                                           sizeof(rondo_attribute), &memory));
    node->attributes = memory;
    for (uint32_t i = 0; i < node->attribute_message_count; i++) {
        rondo_attribute *attribute = &node->attributes[node->attribute_count];
        RONDO__TRY(rondo__onnx_attribute_read(node, node->attribute_messages[i], graphs_only, attribute));
        if (!attribute->name) continue;
        if (rondo__onnx_attribute(node, attribute->name))
            return RONDO__FAIL(CORRUPT, FILE, "node %s gives attribute '%.100s' twice", rondo__onnx_label(node),
                               attribute->name);
        node->attribute_count++;
    }
    return RONDO_OK;
}

static rondo_status node_emit(rondo__onnx_node *node) {
    rondo__onnx_scope *scope = node->scope;
    rondo__pb_bytes called = node->name;
    for (uint32_t i = 0; i < node->output_name_count && !called.size; i++) called = node->output_names[i];
    const char *name;
    RONDO__TRY(rondo__import_text(&scope->context->scratch, called, &name));
    rondo_ir_node made;
    RONDO__TRY(rondo__ir_node_add(scope->graph, node->operator_name, name, node->inputs, node->input_count,
                                  node->outputs, node->output_count, node->attributes, node->attribute_count, &made));
    return rondo__ops_check_model_node(scope->graph, rondo__ir_node_at(scope->graph, made));
}

/* An operator that a program registered, which answers to this domain, version and type. */
static rondo_status node_registered(rondo__onnx_node *node, bool *out_registered) {
    rondo__arena *scratch = &node->scope->context->scratch;
    const char *domain, *type;
    RONDO__TRY(rondo__import_text(scratch, node->domain, &domain));
    RONDO__TRY(rondo__import_text(scratch, node->type, &type));
    const rondo__ops_prototype *prototype = rondo__ops_lookup_onnx(node->scope->graph, domain, type, node->version);
    *out_registered = prototype != NULL;
    if (prototype) node->operator_name = prototype->name;
    return RONDO_OK;
}

/* What a program registered comes before a function of the model, which tells those how to do it who have nothing better;
 * that comes before what is built in. */
rondo_status rondo__onnx_node_build(rondo__onnx_node *node) {
    bool known = !node->function && rondo__ops_find(node->operator_name);
    bool registered = false;
    if (!known) RONDO__TRY(node_registered(node, &registered));
    known = known || registered;
    RONDO__TRY(node_inputs(node));
    RONDO__TRY(node_outputs(node));
    if (node->function && !registered) return rondo__onnx_function_call(node);
    if (!known) RONDO__TRY(rondo__onnx_refuse(node, NULL));
    /* Also of an unknown operator: there may be others in its graphs. */
    RONDO__TRY(node_attributes(node, !known));
    if (known && !registered) RONDO__TRY(rondo__onnx_convert(node));
    return node->refused ? RONDO_OK : node_emit(node);
}

/* ---------------------------------------------------------------------------------------------- for converters */

const rondo_attribute *rondo__onnx_attribute(const rondo__onnx_node *node, const char *name) {
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (strcmp(node->attributes[i].name, name) == 0) return &node->attributes[i];
    return NULL;
}

void rondo__onnx_attribute_remove(rondo__onnx_node *node, const char *name) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (strcmp(node->attributes[i].name, name) != 0) node->attributes[kept++] = node->attributes[i];
    node->attribute_count = kept;
}

rondo_status rondo__onnx_ints(rondo__onnx_node *node, const char *stem, const int64_t *values, uint32_t count,
                              rondo_ir_value *out_value) {
    int64_t dims = count;
    return rondo__ir_constant_add(node->scope->graph, NULL, stem, RONDO_DTYPE_I64, 1, &dims, values, out_value);
}

rondo_status rondo__onnx_scalar(rondo__onnx_node *node, const char *stem, rondo_dtype dtype, float number,
                                rondo_ir_value *out_value) {
    double wide = (double)number;
    const void *data = dtype == RONDO_DTYPE_F64 ? (const void *)&wide : (const void *)&number;
    return rondo__ir_constant_add(node->scope->graph, NULL, stem, dtype, 0, NULL, data, out_value);
}

void rondo__onnx_input_set(rondo__onnx_node *node, uint32_t index, rondo_ir_value value) {
    while (node->input_count <= index) node->inputs[node->input_count++] = RONDO_IR_NONE;
    node->inputs[index] = value;
}

rondo_status rondo__onnx_extra(rondo__onnx_node *node, const char *operator_name, const rondo_ir_value *inputs,
                               uint32_t input_count, const rondo_attribute *attributes, uint32_t attribute_count,
                               rondo_ir_value *out_value) {
    rondo_ir_graph *graph = node->scope->graph;
    rondo_ir_node made;
    RONDO__TRY(rondo__ir_value_add(graph, NULL, operator_name, NULL, out_value));
    RONDO__TRY(rondo__ir_node_add(graph, operator_name, NULL, inputs, input_count, out_value, 1, attributes,
                                  attribute_count, &made));
    return rondo__ops_check_model_node(graph, rondo__ir_node_at(graph, made));
}

/* Most operators give the type of their first input; a walk back along it is enough for what the converters ask. */
rondo_dtype rondo__onnx_dtype_of(const rondo_ir_graph *graph, rondo_ir_value value) {
    static const char *const bools[] = {"Equal", "Greater", "Less", "Not", "And", "Or"};
    for (uint32_t steps = 0; steps < 64 && value != RONDO_IR_NONE; steps++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, value);
        if (data->type.dtype != RONDO_DTYPE_UNDEFINED) return data->type.dtype;
        if (data->outer != RONDO_IR_NONE) {
            value = data->outer;
            graph = graph->parent;
            continue;
        }
        if (data->producer == RONDO_IR_NONE) break;
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, data->producer);
        for (size_t i = 0; i < sizeof bools / sizeof *bools; i++)
            if (strcmp(node->operator_name, bools[i]) == 0) return RONDO_DTYPE_BOOL;
        if (strcmp(node->operator_name, "Shape") == 0 || strcmp(node->operator_name, "Size") == 0)
            return RONDO_DTYPE_I64;
        if (strcmp(node->operator_name, "Cast") == 0)
            return (rondo_dtype)rondo__ir_attribute_int(node, "to", RONDO_DTYPE_UNDEFINED);
        if (strcmp(node->operator_name, "If") == 0) break;
        if (strcmp(node->operator_name, "ConstantOfShape") == 0) {
            const rondo_attribute *filled = rondo__ir_attribute_find(node, "value");
            return filled && filled->kind == RONDO_ATTRIBUTE_TENSOR ? filled->value.tensor->dtype : RONDO_DTYPE_F32;
        }
        uint32_t input = strcmp(node->operator_name, "Where") == 0 ? 1 : 0;
        value = input < node->input_count ? node->inputs[input] : RONDO_IR_NONE;
    }
    return RONDO_DTYPE_UNDEFINED;
}
