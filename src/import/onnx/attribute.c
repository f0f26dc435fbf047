/* SPDX-License-Identifier: Apache-2.0
 *
 * An AttributeProto says its kind and holds one value of that kind; another value beside it is refused, since two
 * readers could take it two ways. */
#include <string.h>

#include "import/onnx/onnx.h"

/* Numbers of AttributeProto's fields; those up to the types' are also the kinds of values. */
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_S = 4,
    ATTRIBUTE_T = 5,
    ATTRIBUTE_G = 6,
    ATTRIBUTE_FLOATS = 7,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_STRINGS = 9,
    ATTRIBUTE_TYPE = 20,
    ATTRIBUTE_REFERENCE = 21
};

typedef struct attribute_kind {
    uint32_t field; /* that holds the value */
    rondo_attribute_kind kind;
    const char *name;
} attribute_kind;

/* By AttributeProto.AttributeType. */
static const attribute_kind attribute_kinds[] = {
    {0, 0, "undefined"},
    {ATTRIBUTE_F, RONDO_ATTRIBUTE_FLOAT, "float"},
    {ATTRIBUTE_I, RONDO_ATTRIBUTE_INT, "int"},
    {ATTRIBUTE_S, RONDO_ATTRIBUTE_STRING, "string"},
    {ATTRIBUTE_T, RONDO_ATTRIBUTE_TENSOR, "tensor"},
    {ATTRIBUTE_G, RONDO_ATTRIBUTE_GRAPH, "graph"},
    {ATTRIBUTE_FLOATS, RONDO_ATTRIBUTE_FLOATS, "floats"},
    {ATTRIBUTE_INTS, RONDO_ATTRIBUTE_INTS, "ints"},
    {ATTRIBUTE_STRINGS, RONDO_ATTRIBUTE_STRINGS, "strings"},
    {10, RONDO_ATTRIBUTE_NONE, "tensors"},
    {11, RONDO_ATTRIBUTE_NONE, "graphs"},
    {22, RONDO_ATTRIBUTE_NONE, "sparse tensor"},
    {23, RONDO_ATTRIBUTE_NONE, "sparse tensors"},
    {14, RONDO_ATTRIBUTE_NONE, "type"},
    {15, RONDO_ATTRIBUTE_NONE, "types"},
};

typedef struct attribute_scan {
    rondo__pb_bytes name, string, message;
    rondo__pb_bytes reference; /* an attribute of the function that the node is in */
    int32_t type;
    uint32_t value_field; /* 0: none seen */
    bool message_seen;
    int64_t i;
    float f;
    size_t count; /* of repeated values */
} attribute_scan;

static bool attribute_is_value(uint32_t field) {
    return (field >= ATTRIBUTE_F && field <= 11) || field == 14 || field == 15 || field == 22 || field == 23;
}

static rondo_status attribute_scan_value(rondo__pb_reader *reader, const rondo__pb_field *field, attribute_scan *scan) {
    if (scan->value_field && scan->value_field != field->number)
        return RONDO__FAIL(CORRUPT, FILE, "two values, in fields %u and %u", scan->value_field, field->number);
    scan->value_field = field->number;
    size_t count = 1;
    switch (field->number) {
    case ATTRIBUTE_F: RONDO__TRY(rondo__pb_once(reader, field)); return rondo__pb_float(reader, field, &scan->f);
    case ATTRIBUTE_I: RONDO__TRY(rondo__pb_once(reader, field)); return rondo__pb_int64(reader, field, &scan->i);
    case ATTRIBUTE_S:
        RONDO__TRY(rondo__pb_once(reader, field));
        return rondo__pb_get_bytes(reader, field, &scan->string);
    case ATTRIBUTE_T:
    case ATTRIBUTE_G:
        RONDO__TRY(rondo__pb_once(reader, field));
        scan->message_seen = true;
        return rondo__pb_get_bytes(reader, field, &scan->message);
    case ATTRIBUTE_FLOATS: RONDO__TRY(rondo__pb_count_fixed(reader, field, 4, &count)); break;
    case ATTRIBUTE_INTS: RONDO__TRY(rondo__pb_count_varints(reader, field, &count)); break;
    default: {
        rondo__pb_bytes bytes;
        RONDO__TRY(rondo__pb_get_bytes(reader, field, &bytes));
        break;
    }
    }
    scan->count += count;
    return RONDO_OK;
}

static rondo_status attribute_scan_all(rondo__pb_reader *reader, attribute_scan *scan) {
    rondo__pb_field field;
    while (rondo__pb_next(reader, &field)) {
        if (field.number == ATTRIBUTE_NAME) {
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_get_text(reader, &field, &scan->name));
        } else if (field.number == ATTRIBUTE_TYPE) {
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_int32(reader, &field, &scan->type));
        } else if (field.number == ATTRIBUTE_REFERENCE) {
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_get_text(reader, &field, &scan->reference));
        } else if (attribute_is_value(field.number)) {
            RONDO__TRY(attribute_scan_value(reader, &field, scan));
        }
    }
    RONDO__TRY(rondo__pb_end(reader));
    if (!scan->name.size) return RONDO__FAIL(CORRUPT, FILE, "an attribute without a name");
    if (scan->type <= 0 || scan->type >= (int32_t)(sizeof attribute_kinds / sizeof *attribute_kinds))
        return RONDO__FAIL(CORRUPT, FILE, "attribute type %d does not exist", scan->type);
    const attribute_kind *kind = &attribute_kinds[scan->type];
    if (scan->value_field && scan->value_field != kind->field)
        return RONDO__FAIL(CORRUPT, FILE, "it says that it is of type %s, but its value is in field %u", kind->name,
                           scan->value_field);
    if (scan->reference.size && scan->value_field)
        return RONDO__FAIL(CORRUPT, FILE, "a value, and a reference to another attribute");
    if (scan->reference.size) return RONDO_OK;
    if ((kind->kind == RONDO_ATTRIBUTE_TENSOR || kind->kind == RONDO_ATTRIBUTE_GRAPH) && !scan->message_seen)
        return RONDO__FAIL(CORRUPT, FILE, "a %s attribute without its %s", kind->name, kind->name);
    if (scan->count > UINT32_MAX) return RONDO__FAIL(CORRUPT, FILE, "%zu elements", scan->count);
    return RONDO_OK;
}

/* Second walk: the elements of floats, ints or strings into one array. */
static rondo_status attribute_list(rondo__onnx_context *context, rondo__pb_reader reader, uint32_t field_number,
                                   size_t element_size, rondo_attribute *out) {
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&context->scratch, out->count, element_size, &memory));
    uint8_t *at = memory;
    rondo__pb_field field;
    while (rondo__pb_next(&reader, &field)) {
        if (field.number != field_number) continue;
        const uint8_t *payload = field.payload.data, *end = payload + field.payload.size;
        if (field_number == ATTRIBUTE_FLOATS) {
            if (field.payload.size) memcpy(at, payload, field.payload.size);
            at += field.payload.size;
        } else if (field_number == ATTRIBUTE_INTS) {
            for (; payload != end; at += sizeof(int64_t)) {
                uint64_t value = rondo__pb_take_varint(&payload);
                memcpy(at, &value, sizeof value);
            }
        } else {
            rondo_string string = {.size = field.payload.size};
            RONDO__TRY(rondo__import_text(&context->scratch, field.payload, &string.data));
            memcpy(at, &string, sizeof string);
            at += sizeof string;
        }
    }
    RONDO__TRY(rondo__pb_end(&reader));
    out->value.ints = memory; /* all of the list members share this pointer's place */
    return RONDO_OK;
}

static rondo_status attribute_tensor(rondo__onnx_context *context, const rondo__pb_reader *reader,
                                     rondo__pb_bytes message, rondo_attribute *out) {
    rondo__pb_reader inner;
    rondo__onnx_tensor tensor;
    RONDO__TRY(rondo__pb_enter_bytes(reader, message, &inner));
    RONDO__TRY(rondo__onnx_tensor_read(context, &inner, &tensor));
    if (tensor.data_field == 13) RONDO__TRY(rondo__onnx_external_locate(context, &tensor));
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate(&context->scratch, sizeof(rondo_tensor_view), &memory));
    rondo_tensor_view *view = memory;
    RONDO__TRY(rondo__arena_copy(&context->scratch, tensor.dims, sizeof tensor.dims, &memory));
    *view = (rondo_tensor_view){.device_type = 1, .rank = tensor.rank, .dtype = tensor.dtype, .shape = memory};
    RONDO__TRY(rondo__arena_allocate_aligned(&context->scratch, tensor.bytes, 64, &view->data));
    RONDO__TRY(rondo__onnx_tensor_fill(context, &tensor, &context->scratch, view->data));
    out->value.tensor = view;
    return RONDO_OK;
}

static rondo_status attribute_value(rondo__onnx_node *node, const rondo__pb_reader *start, const attribute_scan *scan,
                                    rondo_attribute *out) {
    rondo__onnx_context *context = node->scope->context;
    const attribute_kind *kind = &attribute_kinds[scan->type];
    out->kind = kind->kind;
    out->count = 1;
    switch (kind->kind) {
    case RONDO_ATTRIBUTE_INT: out->value.i = scan->i; return RONDO_OK;
    case RONDO_ATTRIBUTE_FLOAT: out->value.f = scan->f; return RONDO_OK;
    case RONDO_ATTRIBUTE_STRING:
        out->value.s.size = scan->string.size;
        return rondo__import_text(&context->scratch, scan->string, &out->value.s.data);
    case RONDO_ATTRIBUTE_TENSOR: return attribute_tensor(context, start, scan->message, out);
    case RONDO_ATTRIBUTE_FLOATS:
        out->count = (uint32_t)scan->count;
        return attribute_list(context, *start, ATTRIBUTE_FLOATS, sizeof(float), out);
    case RONDO_ATTRIBUTE_INTS:
        out->count = (uint32_t)scan->count;
        return attribute_list(context, *start, ATTRIBUTE_INTS, sizeof(int64_t), out);
    case RONDO_ATTRIBUTE_STRINGS:
        out->count = (uint32_t)scan->count;
        return attribute_list(context, *start, ATTRIBUTE_STRINGS, sizeof(rondo_string), out);
    default: break;
    }
    out->kind = RONDO_ATTRIBUTE_NONE;
    /* What an empty optional would hold: the value says what it holds when it holds something. */
    if (kind->field == 14 && !node->domain.size && rondo__import_is(node->type, "Optional")) {
        out->name = NULL;
        return RONDO_OK;
    }
    return rondo__onnx_refuse(node, "an attribute of a type that is not supported");
}

/* The value that the call of the function gives. */
static rondo_status attribute_refer(rondo__onnx_node *node, const attribute_scan *scan, rondo_attribute *out) {
    const attribute_kind *kind = &attribute_kinds[scan->type];
    if (!rondo__onnx_function_is_around(node->scope))
        return RONDO__FAIL(CORRUPT, FILE, "a reference to a function's attribute outside a function");
    const rondo_attribute *given = rondo__onnx_function_attribute(node->scope, scan->reference);
    const char *name = out->name;
    *out = (rondo_attribute){0};
    if (!given) return RONDO_OK;
    if (given->kind != kind->kind)
        return RONDO__FAIL(CORRUPT, FILE, "it is of type %s, but what the function is given is not", kind->name);
    *out = *given;
    out->name = name;
    return RONDO_OK;
}

rondo_status rondo__onnx_attribute_read(rondo__onnx_node *node, rondo__pb_bytes message, bool graphs_only,
                                        rondo_attribute *out_attribute) {
    rondo__onnx_context *context = node->scope->context;
    *out_attribute = (rondo_attribute){0};
    attribute_scan scan = {0};
    rondo__pb_reader start;
    RONDO__TRY(rondo__pb_enter_bytes(&node->reader, message, &start));
    rondo__pb_reader walk = start;
    rondo_status status = attribute_scan_all(&walk, &scan);
    if (!status) status = rondo__import_text(&context->scratch, scan.name, &out_attribute->name);
    const bool refers = !status && scan.reference.size;
    bool graph = !status && !refers && attribute_kinds[scan.type].kind == RONDO_ATTRIBUTE_GRAPH;
    if (refers) status = attribute_refer(node, &scan, out_attribute);
    else if (!status && !graph && !graphs_only) status = attribute_value(node, &start, &scan, out_attribute);
    if (status)
        return rondo__import_within(status, "node %s: attribute '%s'", rondo__onnx_label(node),
                                    rondo__onnx_shown(context, scan.name));
    if (!graph) return RONDO_OK;
    /* What fails inside names its own node: adding each node around it would push the reason out of the message. */
    rondo__pb_reader inner;
    rondo_ir_graph *subgraph = NULL;
    RONDO__TRY(rondo__pb_enter_bytes(&start, scan.message, &inner));
    RONDO__TRY(rondo__onnx_graph_read(context, node->scope, &inner, &subgraph));
    out_attribute->kind = RONDO_ATTRIBUTE_GRAPH;
    out_attribute->count = 1;
    out_attribute->value.graph = subgraph;
    return RONDO_OK;
}
