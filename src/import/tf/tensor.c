/* SPDX-License-Identifier: Apache-2.0
 *
 * TensorProto and TensorShapeProto. A tensor's data are its bytes, or a list of numbers of which the last stands for all
 * that are missing: what a few bytes of a file may become in memory is bounded. */
#include <string.h>

#include "base/checked.h"
#include "import/tf/tf.h"

enum {
    TF_TENSOR_DTYPE = 1,
    TF_TENSOR_SHAPE = 2,
    TF_TENSOR_CONTENT = 4,
    TF_TENSOR_FLOATS = 5,
    TF_TENSOR_DOUBLES = 6,
    TF_TENSOR_INTS = 7,
    TF_TENSOR_INT64S = 10,
    TF_TENSOR_BOOLS = 11,
    TF_TENSOR_HALVES = 13,
    TF_TENSOR_UINT32S = 16,
    TF_TENSOR_UINT64S = 17
};

typedef struct tf_tensor_type {
    uint8_t dtype, field, width; /* of a number in the field; 0: varint */
} tf_tensor_type;

/* By TensorFlow's DataType. */
static const tf_tensor_type tf_tensor_types[] = {
    [1] = {RONDO_DTYPE_F32, TF_TENSOR_FLOATS, 4},   [2] = {RONDO_DTYPE_F64, TF_TENSOR_DOUBLES, 8},
    [3] = {RONDO_DTYPE_I32, TF_TENSOR_INTS, 0},     [4] = {RONDO_DTYPE_U8, TF_TENSOR_INTS, 0},
    [5] = {RONDO_DTYPE_I16, TF_TENSOR_INTS, 0},     [6] = {RONDO_DTYPE_I8, TF_TENSOR_INTS, 0},
    [9] = {RONDO_DTYPE_I64, TF_TENSOR_INT64S, 0},   [10] = {RONDO_DTYPE_BOOL, TF_TENSOR_BOOLS, 0},
    [14] = {RONDO_DTYPE_BF16, TF_TENSOR_HALVES, 0}, [17] = {RONDO_DTYPE_U16, TF_TENSOR_INTS, 0},
    [19] = {RONDO_DTYPE_F16, TF_TENSOR_HALVES, 0},  [22] = {RONDO_DTYPE_U32, TF_TENSOR_UINT32S, 0},
    [23] = {RONDO_DTYPE_U64, TF_TENSOR_UINT64S, 0},
};

static const tf_tensor_type *tf_tensor_type_of(int64_t number) {
    if (number < 0 || (uint64_t)number >= sizeof tf_tensor_types / sizeof *tf_tensor_types) return &tf_tensor_types[0];
    return &tf_tensor_types[number];
}

rondo_dtype rondo__tf_dtype(int64_t number) { return tf_tensor_type_of(number)->dtype; }

/* ------------------------------------------------------------------------------------------------------- shapes */

static rondo_status tf_tensor_dim(rondo__pb_reader *reader, int64_t *out_size) {
    *out_size = 0; /* what is not written is 0 */
    rondo__pb_field field;
    while (rondo__pb_next(reader, &field)) {
        if (field.number != 1) continue;
        RONDO__TRY(rondo__pb_once(reader, &field));
        RONDO__TRY(rondo__pb_int64(reader, &field, out_size));
        if (*out_size < -1) return RONDO__FAIL(CORRUPT, FILE, "a dim of %lld", (long long)*out_size);
    }
    return rondo__pb_end(reader);
}

rondo_status rondo__tf_shape_read(rondo__pb_reader *reader, int32_t *out_rank, int64_t *out_dims) {
    int32_t rank = 0;
    int64_t unknown = 0;
    rondo__pb_field field;
    while (rondo__pb_next(reader, &field)) {
        if (field.number == 2) {
            rondo__pb_reader dim;
            if (rank == RONDO_RANK_MAX) return RONDO__FAIL(CORRUPT, FILE, "more than %d dims", RONDO_RANK_MAX);
            RONDO__TRY(rondo__pb_enter(reader, &field, &dim));
            RONDO__TRY(tf_tensor_dim(&dim, &out_dims[rank++]));
        } else if (field.number == 3) {
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_int64(reader, &field, &unknown));
        }
    }
    RONDO__TRY(rondo__pb_end(reader));
    if (unknown && rank) return RONDO__FAIL(CORRUPT, FILE, "a shape of unknown rank that has dims");
    *out_rank = unknown ? -1 : rank;
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------ tensors */

typedef struct tf_tensor_scan {
    const tf_tensor_type *type;
    int64_t dtype_number;
    int32_t rank;
    int64_t dims[RONDO_RANK_MAX];
    rondo__pb_bytes content;
    uint32_t field; /* with numbers; 0: none */
    size_t count;
    bool content_seen;
} tf_tensor_scan;

static rondo_status tf_tensor_count(rondo__pb_reader *reader, const rondo__pb_field *field, tf_tensor_scan *scan) {
    size_t count = 0;
    if (field->number == TF_TENSOR_FLOATS || field->number == TF_TENSOR_DOUBLES)
        RONDO__TRY(rondo__pb_count_fixed(reader, field, field->number == TF_TENSOR_FLOATS ? 4 : 8, &count));
    else RONDO__TRY(rondo__pb_count_varints(reader, field, &count));
    if (!count) return RONDO_OK;
    if (scan->field && scan->field != field->number)
        return RONDO__FAIL(CORRUPT, FILE, "numbers in two fields, %u and %u", scan->field, field->number);
    scan->field = field->number;
    scan->count += count;
    return RONDO_OK;
}

static bool tf_tensor_is_numbers(uint32_t field) {
    for (size_t i = 0; i < sizeof tf_tensor_types / sizeof *tf_tensor_types; i++)
        if (tf_tensor_types[i].dtype && tf_tensor_types[i].field == field) return true;
    return false;
}

static rondo_status tf_tensor_scan_all(rondo__pb_reader *reader, tf_tensor_scan *scan) {
    rondo__pb_field field;
    while (rondo__pb_next(reader, &field)) {
        if (field.number == TF_TENSOR_DTYPE) {
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_int64(reader, &field, &scan->dtype_number));
        } else if (field.number == TF_TENSOR_SHAPE) {
            rondo__pb_reader shape;
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_enter(reader, &field, &shape));
            RONDO__TRY(rondo__tf_shape_read(&shape, &scan->rank, scan->dims));
        } else if (field.number == TF_TENSOR_CONTENT) {
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_get_bytes(reader, &field, &scan->content));
            scan->content_seen = scan->content.size != 0;
        } else if (tf_tensor_is_numbers(field.number)) {
            RONDO__TRY(tf_tensor_count(reader, &field, scan));
        }
    }
    RONDO__TRY(rondo__pb_end(reader));
    scan->type = tf_tensor_type_of(scan->dtype_number);
    if (!scan->type->dtype) return RONDO_OK;
    if (scan->content_seen && scan->field) return RONDO__FAIL(CORRUPT, FILE, "bytes and numbers as well");
    if (scan->field && scan->field != scan->type->field)
        return RONDO__FAIL(CORRUPT, FILE, "numbers in field %u, but its type has them in field %u", scan->field,
                           scan->type->field);
    return RONDO_OK;
}

/* The low bytes of a number, as the type holds them. A number that the type does not have is refused. */
static rondo_status tf_tensor_put(rondo_dtype dtype, size_t width, uint64_t value, uint8_t *out) {
    const int64_t number = (int64_t)value;
    bool fits = true;
    switch (dtype) {
    case RONDO_DTYPE_BOOL: fits = value <= 1; break;
    case RONDO_DTYPE_I8: fits = number >= INT8_MIN && number <= INT8_MAX; break;
    case RONDO_DTYPE_I16: fits = number >= INT16_MIN && number <= INT16_MAX; break;
    case RONDO_DTYPE_I32: fits = number >= INT32_MIN && number <= INT32_MAX; break;
    case RONDO_DTYPE_U8: fits = value <= UINT8_MAX; break;
    case RONDO_DTYPE_U16:
    case RONDO_DTYPE_F16:
    case RONDO_DTYPE_BF16: fits = value <= UINT16_MAX; break;
    case RONDO_DTYPE_U32: fits = value <= UINT32_MAX; break;
    default: break;
    }
    if (!fits) return RONDO__FAIL(CORRUPT, FILE, "%lld is no %s", (long long)number, rondo_dtype_name(dtype));
    memcpy(out, &value, width);
    return RONDO_OK;
}

static rondo_status tf_tensor_numbers(rondo__pb_reader reader, const tf_tensor_scan *scan, size_t width, uint8_t *out) {
    rondo__pb_field field;
    while (rondo__pb_next(&reader, &field)) {
        if (field.number != scan->field) continue;
        const uint8_t *at = field.payload.data, *end = at + field.payload.size;
        while (at != end) {
            if (scan->type->width) {
                memcpy(out, at, width);
                at += width;
            } else {
                RONDO__TRY(tf_tensor_put(scan->type->dtype, width, rondo__pb_take_varint(&at), out));
            }
            out += width;
        }
    }
    return rondo__pb_end(&reader);
}

static rondo_status tf_tensor_fill(rondo__tf_context *context, const rondo__pb_reader *reader,
                                   const tf_tensor_scan *scan, int64_t elements, size_t bytes, uint8_t **out_data) {
    const size_t width = elements ? bytes / (size_t)elements : 0;
    void *memory = NULL;
    if (scan->content_seen) {
        if (scan->content.size != bytes)
            return RONDO__FAIL(CORRUPT, FILE, "%zu bytes of content where its shape asks for %zu", scan->content.size,
                               bytes);
        for (size_t i = 0; scan->type->dtype == RONDO_DTYPE_BOOL && i < bytes; i++)
            if (scan->content.data[i] > 1)
                return RONDO__FAIL(CORRUPT, FILE, "%u is no bool", (unsigned)scan->content.data[i]);
        *out_data = NULL;
        return RONDO_OK;
    }
    if (scan->count > (uint64_t)elements)
        return RONDO__FAIL(CORRUPT, FILE, "%zu numbers where its shape asks for %lld", scan->count,
                           (long long)elements);
    const size_t missing = bytes - scan->count * width;
    if (missing > RONDO__TF_REPEATED_MAX - context->repeated)
        return RONDO__FAIL(OUT_OF_RANGE, FILE, "its numbers repeat to %zu bytes; at most %zu are made in all", bytes,
                           RONDO__TF_REPEATED_MAX);
    context->repeated += missing;
    RONDO__TRY(rondo__arena_allocate_aligned(&context->graph->arena, bytes, 64, &memory));
    uint8_t *data = memory;
    if (bytes) memset(data, 0, bytes);
    if (scan->count) RONDO__TRY(tf_tensor_numbers(*reader, scan, width, data));
    for (size_t at = scan->count * width; scan->count && at < bytes; at += width)
        memcpy(data + at, data + at - width, width);
    *out_data = data;
    return RONDO_OK;
}

rondo_status rondo__tf_tensor_read(rondo__tf_context *context, const rondo__pb_reader *reader,
                                   const rondo__ir_constant **out_constant) {
    tf_tensor_scan scan = {0};
    rondo__pb_reader walk = *reader;
    *out_constant = NULL;
    RONDO__TRY(tf_tensor_scan_all(&walk, &scan));
    if (!scan.type->dtype) return RONDO_OK;
    int64_t elements;
    uint64_t bytes;
    if (scan.rank < 0) return RONDO__FAIL(CORRUPT, FILE, "a tensor of unknown rank");
    if (!rondo__checked_elements(scan.rank, scan.dims, &elements))
        return RONDO__FAIL(CORRUPT, FILE, "a shape that no tensor has");
    RONDO__TRY(rondo_dtype_bytes(scan.type->dtype, (uint64_t)elements, &bytes));
    uint8_t *data = NULL;
    RONDO__TRY(tf_tensor_fill(context, reader, &scan, elements, (size_t)bytes, &data));
    const bool copy = !data;
    return rondo__ir_constant_make(context->graph, scan.type->dtype, scan.rank, scan.dims,
                                   copy ? scan.content.data : data, copy, out_constant);
}
