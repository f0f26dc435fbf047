/* SPDX-License-Identifier: Apache-2.0
 *
 * A TensorProto is read twice: first its shape, type and where its data is, until it is certain that the data has
 * exactly the size that the shape asks for; then the data, straight to where it stays. */
#include "import/onnx/onnx.h"

#include <string.h>

#include "base/checked.h"

/* Numbers of TensorProto's fields. */
enum {
    TENSOR_DIMS = 1,
    TENSOR_DTYPE = 2,
    TENSOR_SEGMENT = 3,
    TENSOR_FLOATS = 4,
    TENSOR_INT32S = 5,
    TENSOR_STRINGS = 6,
    TENSOR_INT64S = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_DOUBLES = 10,
    TENSOR_UINT64S = 11,
    TENSOR_EXTERNAL = 13,
    TENSOR_LOCATION = 14
};

static const char *tensor_field_name(uint32_t field) {
    switch (field) {
    case TENSOR_FLOATS: return "float_data";
    case TENSOR_INT32S: return "int32_data";
    case TENSOR_STRINGS: return "string_data";
    case TENSOR_INT64S: return "int64_data";
    case TENSOR_RAW: return "raw_data";
    case TENSOR_DOUBLES: return "double_data";
    case TENSOR_UINT64S: return "uint64_data";
    case TENSOR_EXTERNAL: return "external_data";
    default: return "no data";
    }
}

/* The typed field that holds data of a type when it is not raw. */
static uint32_t tensor_field_of(rondo_dtype dtype) {
    switch (dtype) {
    case RONDO_DTYPE_F32:
    case RONDO_DTYPE_C64: return TENSOR_FLOATS;
    case RONDO_DTYPE_F64:
    case RONDO_DTYPE_C128: return TENSOR_DOUBLES;
    case RONDO_DTYPE_I64: return TENSOR_INT64S;
    case RONDO_DTYPE_U32:
    case RONDO_DTYPE_U64: return TENSOR_UINT64S;
    case RONDO_DTYPE_STRING: return TENSOR_STRINGS;
    default: return TENSOR_INT32S;
    }
}

typedef struct tensor_scan {
    rondo__onnx_tensor *tensor;
    size_t entries; /* in the one data field that has any */
    bool external, dtype_seen;
} tensor_scan;

static rondo_status tensor_scan_dims(rondo__pb_reader *reader, const rondo__pb_field *field,
                                     rondo__onnx_tensor *tensor) {
    size_t count;
    RONDO__TRY(rondo__pb_count_varints(reader, field, &count));
    if (count > (size_t)(RONDO_RANK_MAX - tensor->rank))
        return RONDO__FAIL(CORRUPT, FILE, "more than %d dims", RONDO_RANK_MAX);
    const uint8_t *at = field->payload.data;
    for (size_t i = 0; i < count; i++) tensor->dims[tensor->rank++] = (int64_t)rondo__pb_take_varint(&at);
    return RONDO_OK;
}

static rondo_status tensor_scan_data(rondo__pb_reader *reader, const rondo__pb_field *field, tensor_scan *scan) {
    size_t count = 1;
    switch (field->number) {
    case TENSOR_FLOATS: RONDO__TRY(rondo__pb_count_fixed(reader, field, 4, &count)); break;
    case TENSOR_DOUBLES: RONDO__TRY(rondo__pb_count_fixed(reader, field, 8, &count)); break;
    case TENSOR_STRINGS: {
        rondo__pb_bytes bytes;
        RONDO__TRY(rondo__pb_get_bytes(reader, field, &bytes));
        break;
    }
    case TENSOR_RAW:
        RONDO__TRY(rondo__pb_once(reader, field));
        RONDO__TRY(rondo__pb_get_bytes(reader, field, &scan->tensor->raw));
        count = scan->tensor->raw.size;
        break;
    default: RONDO__TRY(rondo__pb_count_varints(reader, field, &count)); break;
    }
    if (!count) return RONDO_OK;
    if (scan->tensor->data_field && scan->tensor->data_field != field->number)
        return RONDO__FAIL(CORRUPT, FILE, "data in two fields, %s and %s", tensor_field_name(scan->tensor->data_field),
                           tensor_field_name(field->number));
    scan->tensor->data_field = field->number;
    scan->entries += count;
    return RONDO_OK;
}

static rondo_status tensor_scan_field(rondo__onnx_context *context, rondo__pb_reader *reader,
                                      const rondo__pb_field *field, tensor_scan *scan) {
    rondo__onnx_tensor *tensor = scan->tensor;
    switch (field->number) {
    case TENSOR_DIMS: return tensor_scan_dims(reader, field, tensor);
    case TENSOR_DTYPE:
        RONDO__TRY(rondo__pb_once(reader, field));
        scan->dtype_seen = true;
        return rondo__pb_int32(reader, field, &tensor->dtype);
    case TENSOR_SEGMENT: return RONDO__FAIL(UNSUPPORTED, CONVERTER, "a tensor in segments");
    case TENSOR_NAME:
        RONDO__TRY(rondo__pb_once(reader, field));
        return rondo__pb_get_text(reader, field, &tensor->name);
    case TENSOR_FLOATS:
    case TENSOR_INT32S:
    case TENSOR_STRINGS:
    case TENSOR_INT64S:
    case TENSOR_RAW:
    case TENSOR_DOUBLES:
    case TENSOR_UINT64S: return tensor_scan_data(reader, field, scan);
    case TENSOR_EXTERNAL: {
        rondo__pb_reader entry;
        RONDO__TRY(rondo__pb_enter(reader, field, &entry));
        return rondo__onnx_external_entry(context, &entry, &tensor->external);
    }
    case TENSOR_LOCATION: {
        int32_t location;
        RONDO__TRY(rondo__pb_once(reader, field));
        RONDO__TRY(rondo__pb_int32(reader, field, &location));
        if (location < 0 || location > 1)
            return RONDO__FAIL(CORRUPT, FILE, "data_location %d; 0 and 1 exist", location);
        scan->external = location == 1;
        return RONDO_OK;
    }
    default: return RONDO_OK;
    }
}

static rondo_status tensor_size(rondo__onnx_tensor *tensor) {
    for (int32_t i = 0; i < tensor->rank; i++)
        if (tensor->dims[i] < 0) return RONDO__FAIL(CORRUPT, FILE, "dim %d is %lld", i, (long long)tensor->dims[i]);
    uint64_t bytes;
    bool fits = rondo__checked_elements(tensor->rank, tensor->dims, &tensor->elements);
    if (fits && tensor->dtype == RONDO_DTYPE_STRING) {
        fits = rondo__checked_mul_u64((uint64_t)tensor->elements, sizeof(rondo_string), &bytes);
    } else if (fits) {
        rondo_status status = rondo_dtype_bytes(tensor->dtype, (uint64_t)tensor->elements, &bytes);
        if (rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY) return status;
        fits = !status;
        rondo_status_release(status);
    }
    if (!fits || bytes > SIZE_MAX / 4)
        return RONDO__FAIL(CORRUPT, FILE, "its dims multiply to more bytes than any memory has");
    tensor->bytes = (size_t)bytes;
    return RONDO_OK;
}

/* How many entries of the typed field the shape asks for. */
static uint64_t tensor_entries_wanted(const rondo__onnx_tensor *tensor) {
    if (tensor->data_field == TENSOR_RAW) return tensor->bytes;
    if (tensor->dtype == RONDO_DTYPE_C64 || tensor->dtype == RONDO_DTYPE_C128) return (uint64_t)tensor->elements * 2;
    /* Types under a byte: an entry is a byte of packed elements. */
    uint32_t bits = rondo_dtype_bits(tensor->dtype);
    return bits && bits < 8 ? tensor->bytes : (uint64_t)tensor->elements;
}

static rondo_status tensor_check(rondo__onnx_context *context, const tensor_scan *scan) {
    rondo__onnx_tensor *tensor = scan->tensor;
    if (!scan->dtype_seen || tensor->dtype <= 0 || tensor->dtype >= RONDO_DTYPE_COUNT)
        return RONDO__FAIL(CORRUPT, FILE, "data type %d does not exist", tensor->dtype);
    RONDO__TRY(tensor_size(tensor));
    if (scan->external) {
        if (tensor->data_field)
            return RONDO__FAIL(CORRUPT, FILE, "data in two fields, %s and external_data",
                               tensor_field_name(tensor->data_field));
        tensor->data_field = TENSOR_EXTERNAL;
        return rondo__onnx_external_check(context, tensor);
    }
    if (tensor->external.has_location)
        return RONDO__FAIL(CORRUPT, FILE, "external data, but its data_location says that it is inside the model");
    uint32_t field = tensor->data_field;
    if (field && field != tensor_field_of(tensor->dtype) &&
        (field != TENSOR_RAW || tensor->dtype == RONDO_DTYPE_STRING))
        return RONDO__FAIL(CORRUPT, FILE, "%s data in the field %s", rondo_dtype_name(tensor->dtype),
                           tensor_field_name(field));
    uint64_t wanted = tensor_entries_wanted(tensor);
    if (wanted != scan->entries)
        return RONDO__FAIL(CORRUPT, FILE, "its dims ask for %llu %s, but %s has %zu", (unsigned long long)wanted,
                           field == TENSOR_RAW ? "bytes" : "entries", field ? tensor_field_name(field) : "it",
                           scan->entries);
    return RONDO_OK;
}

rondo_status rondo__onnx_tensor_read(rondo__onnx_context *context, const rondo__pb_reader *reader,
                                     rondo__onnx_tensor *out_tensor) {
    memset(out_tensor, 0, sizeof *out_tensor);
    out_tensor->reader = *reader;
    rondo__pb_reader walk = *reader;
    rondo__pb_field field;
    tensor_scan scan = {.tensor = out_tensor};
    rondo_status status = RONDO_OK;
    while (!status && rondo__pb_next(&walk, &field)) status = tensor_scan_field(context, &walk, &field, &scan);
    if (!status) status = rondo__pb_end(&walk);
    if (!status) status = tensor_check(context, &scan);
    if (status && !out_tensor->name.size) out_tensor->name = rondo__import_field_text(*reader, TENSOR_NAME);
    RONDO__IMPORT_TRY(status, "tensor '%s'", rondo__onnx_shown(context, out_tensor->name));
    return RONDO_OK;
}

/* --------------------------------------------------------------------------------------------------- the data */

typedef struct tensor_sink {
    rondo_dtype dtype;
    uint8_t *at;
    rondo__arena *arena; /* of strings' bytes */
} tensor_sink;

static rondo_status tensor_outside(int64_t value, rondo_dtype dtype) {
    return RONDO__FAIL(CORRUPT, FILE, "%lld is no %s", (long long)value, rondo_dtype_name(dtype));
}

/* The range of int32_data's entries for a type; of bit patterns, also what a writer gets by extending the sign. */
static void tensor_range(rondo_dtype dtype, int64_t *minimum, int64_t *maximum) {
    uint32_t bits = rondo_dtype_bits(dtype);
    switch (dtype) {
    case RONDO_DTYPE_BOOL: *minimum = 0, *maximum = 1; break;
    case RONDO_DTYPE_I8: *minimum = INT8_MIN, *maximum = INT8_MAX; break;
    case RONDO_DTYPE_U8: *minimum = 0, *maximum = UINT8_MAX; break;
    case RONDO_DTYPE_I16: *minimum = INT16_MIN, *maximum = INT16_MAX; break;
    case RONDO_DTYPE_U16: *minimum = 0, *maximum = UINT16_MAX; break;
    case RONDO_DTYPE_I32: *minimum = INT32_MIN, *maximum = INT32_MAX; break;
    default:
        *minimum = bits > 8 ? INT16_MIN : INT8_MIN;
        *maximum = bits > 8 ? UINT16_MAX : UINT8_MAX;
        break;
    }
}

static rondo_status tensor_put_int32s(const rondo__pb_field *field, size_t count, tensor_sink *sink) {
    const uint8_t *at = field->payload.data;
    uint32_t bits = rondo_dtype_bits(sink->dtype);
    size_t width = bits <= 8 ? 1 : bits / 8;
    int64_t minimum, maximum;
    tensor_range(sink->dtype, &minimum, &maximum);
    for (size_t i = 0; i < count; i++) {
        int64_t value = (int64_t)rondo__pb_take_varint(&at);
        if (value < minimum || value > maximum) return tensor_outside(value, sink->dtype);
        memcpy(sink->at, &value, width);
        sink->at += width;
    }
    return RONDO_OK;
}

static rondo_status tensor_put_wide(const rondo__pb_field *field, size_t count, tensor_sink *sink) {
    const uint8_t *at = field->payload.data;
    size_t width = sink->dtype == RONDO_DTYPE_U32 ? 4 : 8;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = rondo__pb_take_varint(&at);
        if (width == 4 && value > UINT32_MAX) return tensor_outside((int64_t)value, sink->dtype);
        memcpy(sink->at, &value, width);
        sink->at += width;
    }
    return RONDO_OK;
}

static rondo_status tensor_put_string(const rondo__pb_field *field, tensor_sink *sink) {
    rondo_string string = {.size = field->payload.size};
    RONDO__TRY(rondo__import_text(sink->arena, field->payload, &string.data));
    memcpy(sink->at, &string, sizeof string);
    sink->at += sizeof string;
    return RONDO_OK;
}

static rondo_status tensor_put(rondo__pb_reader *reader, const rondo__pb_field *field, tensor_sink *sink) {
    size_t count = 0;
    switch (field->number) {
    case TENSOR_FLOATS:
    case TENSOR_DOUBLES:
        if (field->payload.size) memcpy(sink->at, field->payload.data, field->payload.size);
        sink->at += field->payload.size;
        return RONDO_OK;
    case TENSOR_STRINGS: return tensor_put_string(field, sink);
    case TENSOR_INT32S:
        RONDO__TRY(rondo__pb_count_varints(reader, field, &count));
        return tensor_put_int32s(field, count, sink);
    default: RONDO__TRY(rondo__pb_count_varints(reader, field, &count)); return tensor_put_wide(field, count, sink);
    }
}

/* Kernels read a bool as 0 or 1. */
static rondo_status tensor_check_bools(const rondo__onnx_tensor *tensor, const void *data) {
    if (tensor->dtype != RONDO_DTYPE_BOOL) return RONDO_OK;
    const uint8_t *bytes = data;
    for (size_t i = 0; i < tensor->bytes; i++)
        if (bytes[i] > 1) return tensor_outside(bytes[i], RONDO_DTYPE_BOOL);
    return RONDO_OK;
}

static rondo_status tensor_fill(rondo__onnx_context *context, const rondo__onnx_tensor *tensor, rondo__arena *arena,
                                void *out) {
    switch (tensor->data_field) {
    case 0: return RONDO_OK;
    case TENSOR_RAW:
        RONDO__TRY(rondo__onnx_file_copy(context->source, tensor->raw, out));
        return tensor_check_bools(tensor, out);
    case TENSOR_EXTERNAL:
        RONDO__TRY(rondo__onnx_external_locate(context, tensor));
        RONDO__TRY(rondo__onnx_external_fill(context, tensor, out));
        return tensor_check_bools(tensor, out);
    default: break;
    }
    tensor_sink sink = {.dtype = tensor->dtype, .at = out, .arena = arena};
    rondo__pb_reader walk = tensor->reader;
    rondo__pb_field field;
    while (rondo__pb_next(&walk, &field))
        if (field.number == tensor->data_field) RONDO__TRY(tensor_put(&walk, &field, &sink));
    return rondo__pb_end(&walk);
}

rondo_status rondo__onnx_tensor_fill(rondo__onnx_context *context, const rondo__onnx_tensor *tensor,
                                     rondo__arena *arena, void *out) {
    RONDO__IMPORT_TRY(tensor_fill(context, tensor, arena, out), "tensor '%s'",
                      rondo__onnx_shown(context, tensor->name));
    return RONDO_OK;
}

static rondo_status tensor_constant(rondo__onnx_context *context, rondo_ir_graph *graph,
                                    const rondo__onnx_tensor *tensor, const rondo__ir_constant **out_constant) {
    if (tensor->data_field == TENSOR_RAW && rondo__onnx_file_has(context->source, tensor->raw)) {
        RONDO__TRY(tensor_check_bools(tensor, tensor->raw.data));
        return rondo__ir_constant_make(graph, tensor->dtype, tensor->rank, tensor->dims, tensor->raw.data, true,
                                       out_constant);
    }
    if (tensor->data_field == TENSOR_EXTERNAL) RONDO__TRY(rondo__onnx_external_locate(context, tensor));
    void *data = NULL;
    RONDO__TRY(rondo__arena_take(&graph->arena, tensor->bytes, 64, &data));
    RONDO__TRY(tensor_fill(context, tensor, &graph->arena, data));
    return rondo__ir_constant_make(graph, tensor->dtype, tensor->rank, tensor->dims, data, false, out_constant);
}

rondo_status rondo__onnx_tensor_constant(rondo__onnx_context *context, rondo_ir_graph *graph,
                                         const rondo__onnx_tensor *tensor, const rondo__ir_constant **out_constant) {
    RONDO__IMPORT_TRY(tensor_constant(context, graph, tensor, out_constant), "tensor '%s'",
                      rondo__onnx_shown(context, tensor->name));
    return RONDO_OK;
}
