/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model declares of a value: its kind, element type and dims, where a dim may be a number, a name, or open. */
#include <stdio.h>
#include <string.h>

#include "import/onnx/onnx.h"

#define TYPES_NESTING_MAX 8u

typedef struct types_read {
    rondo__onnx_context *context;
    rondo__onnx_info *info;
} types_read;

static rondo_status types_dim(types_read *read, rondo__pb_reader *reader, rondo__ir_dim *out_dim) {
    rondo__ir_dim dim = {.value = -1, .maximum = INT64_MAX};
    rondo__pb_field field;
    while (rondo__pb_next(reader, &field)) {
        if (field.number == 1) {
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_int64(reader, &field, &dim.value));
            if (dim.value < -1) return RONDO__FAIL(CORRUPT, FILE, "a dim of %lld", (long long)dim.value);
        } else if (field.number == 2) {
            rondo__pb_bytes symbol;
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_get_text(reader, &field, &symbol));
            /* Some exporters write "?" for each size that they do not know: no name. */
            bool unknown = symbol.size == 1 && *(const char *)symbol.data == '?';
            if (symbol.size && !unknown) RONDO__TRY(rondo__import_text(&read->context->scratch, symbol, &dim.symbol));
        }
    }
    RONDO__TRY(rondo__pb_end(reader));
    if (dim.value >= 0) {
        if (dim.symbol) return RONDO__FAIL(CORRUPT, FILE, "a dim with both a size and a name");
        dim.minimum = dim.maximum = dim.value;
    }
    *out_dim = dim;
    return RONDO_OK;
}

static rondo_status types_shape(types_read *read, rondo__pb_reader *reader, rondo__ir_type *type) {
    rondo__ir_dim dims[RONDO_RANK_MAX];
    int32_t rank = 0;
    rondo__pb_field field;
    while (rondo__pb_next(reader, &field)) {
        if (field.number != 1) continue;
        if (rank == RONDO_RANK_MAX) return RONDO__FAIL(CORRUPT, FILE, "more than %d dims", RONDO_RANK_MAX);
        rondo__pb_reader dim;
        RONDO__TRY(rondo__pb_enter(reader, &field, &dim));
        RONDO__TRY(types_dim(read, &dim, &dims[rank++]));
    }
    RONDO__TRY(rondo__pb_end(reader));
    void *copy = NULL;
    RONDO__TRY(rondo__arena_copy(&read->context->scratch, dims, (size_t)rank * sizeof *dims, &copy));
    type->rank = rank;
    type->dims = copy;
    return RONDO_OK;
}

static rondo_status types_tensor(types_read *read, rondo__pb_reader *reader, rondo__ir_type *type) {
    bool typed = false;
    rondo__pb_field field;
    while (rondo__pb_next(reader, &field)) {
        if (field.number == 1) {
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_int32(reader, &field, &type->dtype));
            typed = type->dtype > 0 && type->dtype < RONDO_DTYPE_COUNT;
            if (!typed) return RONDO__FAIL(CORRUPT, FILE, "data type %d does not exist", type->dtype);
        } else if (field.number == 2) {
            rondo__pb_reader shape;
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_enter(reader, &field, &shape));
            RONDO__TRY(types_shape(read, &shape, type));
        }
    }
    RONDO__TRY(rondo__pb_end(reader));
    return typed ? RONDO_OK : RONDO__FAIL(CORRUPT, FILE, "a tensor type without an element type");
}

static rondo_status types_type(types_read *read, rondo__pb_reader *reader, uint32_t nesting, rondo__ir_type *type);

/* A sequence or an optional: field 1 is the type of what is in it. */
static rondo_status types_nested(types_read *read, rondo__pb_reader *reader, uint32_t nesting, rondo__ir_type *type) {
    if (nesting >= TYPES_NESTING_MAX)
        return RONDO__FAIL(CORRUPT, FILE, "a type nested deeper than %u", TYPES_NESTING_MAX);
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate(&read->context->scratch, sizeof(rondo__ir_type), &memory));
    rondo__ir_type *element = memory;
    rondo__pb_field field;
    while (rondo__pb_next(reader, &field)) {
        if (field.number != 1) continue;
        rondo__pb_reader inner;
        RONDO__TRY(rondo__pb_once(reader, &field));
        RONDO__TRY(rondo__pb_enter(reader, &field, &inner));
        RONDO__TRY(types_type(read, &inner, nesting + 1, element));
        type->element = element;
    }
    RONDO__TRY(rondo__pb_end(reader));
    if (!type->element) return RONDO__FAIL(CORRUPT, FILE, "a sequence or optional without an element type");
    return RONDO_OK;
}

static rondo_status types_type(types_read *read, rondo__pb_reader *reader, uint32_t nesting, rondo__ir_type *type) {
    *type = (rondo__ir_type){.rank = -1};
    bool typed = false;
    rondo__pb_field field;
    while (rondo__pb_next(reader, &field)) {
        if (field.number < 1 || field.number > 9 || field.number == 2 || field.number == 3 || field.number == 6)
            continue;
        if (typed) return RONDO__FAIL(CORRUPT, FILE, "a type of two kinds");
        typed = true;
        rondo__pb_reader inner;
        RONDO__TRY(rondo__pb_enter(reader, &field, &inner));
        switch (field.number) {
        case 1: RONDO__TRY(types_tensor(read, &inner, type)); break;
        case 4:
        case 9:
            type->kind = field.number == 4 ? RONDO__IR_SEQUENCE : RONDO__IR_OPTIONAL;
            RONDO__TRY(types_nested(read, &inner, nesting, type));
            break;
        case 5: read->info->unknown = "a map"; break;
        case 8: read->info->unknown = "a sparse tensor"; break;
        default: read->info->unknown = "opaque"; break;
        }
    }
    RONDO__TRY(rondo__pb_end(reader));
    if (!nesting) read->info->typed = typed;
    else if (!typed) return RONDO__FAIL(CORRUPT, FILE, "a type without a kind");
    return RONDO_OK;
}

static rondo_status types_info(types_read *read, rondo__pb_reader *reader) {
    rondo__pb_field field;
    while (rondo__pb_next(reader, &field)) {
        if (field.number == 1) {
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_get_text(reader, &field, &read->info->name));
        } else if (field.number == 2) {
            rondo__pb_reader type;
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_enter(reader, &field, &type));
            RONDO__TRY(types_type(read, &type, 0, &read->info->type));
        }
    }
    return rondo__pb_end(reader);
}

rondo_status rondo__onnx_info_read(rondo__onnx_context *context, const rondo__pb_reader *reader,
                                   rondo__onnx_info *out_info) {
    memset(out_info, 0, sizeof *out_info);
    out_info->type.rank = -1;
    types_read read = {context, out_info};
    rondo__pb_reader walk = *reader;
    rondo_status status = types_info(&read, &walk);
    if (status && !out_info->name.size) out_info->name = rondo__import_field_text(*reader, 1);
    RONDO__IMPORT_TRY(status, "type of '%s'", rondo__onnx_shown(context, out_info->name));
    return RONDO_OK;
}

rondo_status rondo__onnx_info_matches(rondo__onnx_context *context, const rondo__onnx_info *info,
                                      const rondo__ir_constant *constant) {
    if (!info->typed) return RONDO_OK;
    const rondo__ir_type *type = &info->type;
    bool same = !info->unknown && type->kind == RONDO__IR_TENSOR && type->dtype == constant->dtype &&
                (type->rank < 0 || type->rank == constant->rank);
    for (int32_t i = 0; same && i < type->rank; i++)
        same = type->dims[i].value < 0 || type->dims[i].value == constant->dims[i];
    if (same) return RONDO_OK;
    char declared[160], held[160];
    rondo__ir_dim dims[RONDO_RANK_MAX] = {{0}};
    for (int32_t i = 0; i < constant->rank; i++) dims[i].value = constant->dims[i];
    rondo__ir_type actual = {.dtype = constant->dtype, .rank = constant->rank, .dims = dims};
    if (info->unknown) (void)snprintf(declared, sizeof declared, "%s", info->unknown);
    else rondo__ir_type_text(type, declared, sizeof declared);
    rondo__ir_type_text(&actual, held, sizeof held);
    return RONDO__FAIL(CORRUPT, FILE, "'%s' is declared as %s, but its constant is %s",
                       rondo__onnx_shown(context, info->name), declared, held);
}
