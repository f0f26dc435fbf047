/* SPDX-License-Identifier: Apache-2.0
 *
 * The type of a value: copied into a graph, made from sizes, asked, and written for people. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/private.h"

#define IR_TYPE_NESTING_MAX 8

static rondo_status ir_type_copy_dims(rondo_ir_graph *graph, const rondo__ir_type *type, rondo__ir_type *out_type) {
    void *pointer;
    RONDO__TRY(rondo__arena_allocate_array(&graph->arena, (size_t)type->rank, sizeof(rondo__ir_dim), &pointer));
    rondo__ir_dim *dims = pointer;
    for (int32_t i = 0; i < type->rank; i++) {
        dims[i] = type->dims[i];
        if (dims[i].value < -1) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "axis %d has size %lld: give a size, or -1 for an open one",
                               i, (long long)dims[i].value);
        }
        if (dims[i].value >= 0) {
            dims[i].minimum = dims[i].maximum = dims[i].value;
        } else if (dims[i].maximum <= 0) {
            dims[i].maximum = INT64_MAX; /* no bound was given */
        }
        if (dims[i].minimum < 0) dims[i].minimum = 0;
        if (dims[i].symbol) {
            RONDO__TRY(rondo__arena_string(&graph->arena, dims[i].symbol, strlen(dims[i].symbol), &dims[i].symbol));
        }
    }
    out_type->dims = dims;
    return RONDO_OK;
}

rondo_status rondo__ir_type_copy(rondo_ir_graph *graph, const rondo__ir_type *type, rondo__ir_type *out_type) {
    const rondo__ir_type *from = type;
    rondo__ir_type *to = out_type;
    for (int depth = 0;; depth++) {
        if (depth > IR_TYPE_NESTING_MAX) {
            return RONDO__FAIL(OUT_OF_RANGE, PROTOTYPE, "a type nests sequences and optionals deeper than %d",
                               IR_TYPE_NESTING_MAX);
        }
        if (from->dtype < 0 || from->dtype >= RONDO_DTYPE_COUNT) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "%d is no data type", (int)from->dtype);
        }
        if (from->rank < -1 || from->rank > RONDO_RANK_MAX || (from->rank > 0 && !from->dims)) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "rank %d: at most %d axes, with their sizes",
                               (int)from->rank, RONDO_RANK_MAX);
        }
        rondo__ir_type copy = *from;
        copy.dims = NULL;
        copy.element = NULL;
        if (from->rank > 0) RONDO__TRY(ir_type_copy_dims(graph, from, &copy));
        rondo__ir_type *element = NULL;
        if (from->kind != RONDO__IR_TENSOR && from->element) {
            void *pointer;
            RONDO__TRY(rondo__arena_allocate(&graph->arena, sizeof *element, &pointer));
            element = pointer;
            copy.element = element;
        }
        const rondo__ir_type *next = from->element;
        *to = copy;
        if (!element) return RONDO_OK;
        from = next;
        to = element;
    }
}

rondo_status rondo__ir_type_from_dims(rondo_ir_graph *graph, rondo_dtype dtype, int32_t rank, const int64_t *dims,
                                      rondo__ir_type *out_type) {
    rondo__ir_dim copied[RONDO_RANK_MAX];
    rondo__ir_type type = {.dtype = dtype, .rank = rank, .dims = copied};
    for (int32_t i = 0; i < rank && i < RONDO_RANK_MAX; i++) copied[i] = (rondo__ir_dim){.value = dims[i]};
    return rondo__ir_type_copy(graph, &type, out_type);
}

bool rondo__ir_type_concrete(const rondo__ir_type *type, int64_t *dims) {
    if (type->kind != RONDO__IR_TENSOR || type->dtype == RONDO_DTYPE_UNDEFINED || type->rank < 0) return false;
    for (int32_t i = 0; i < type->rank; i++) {
        if (type->dims[i].value < 0) return false;
    }
    for (int32_t i = 0; i < type->rank; i++) dims[i] = type->dims[i].value;
    return true;
}

typedef struct ir_type_writer {
    char *buffer;
    size_t capacity, used;
} ir_type_writer;

RONDO_PRINTF(2, 3) static void ir_type_write(ir_type_writer *writer, const char *format, ...) {
    if (writer->used + 1u >= writer->capacity) return;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(writer->buffer + writer->used, writer->capacity - writer->used, format, arguments);
    va_end(arguments);
    if (length < 0) return;
    writer->used += (size_t)length;
    if (writer->used >= writer->capacity) writer->used = writer->capacity - 1u;
}

static void ir_type_write_dims(ir_type_writer *writer, const rondo__ir_type *type) {
    ir_type_write(writer, "%s[", type->dtype == RONDO_DTYPE_UNDEFINED ? "?" : rondo_dtype_name(type->dtype));
    if (type->rank < 0) ir_type_write(writer, "...");
    for (int32_t i = 0; i < type->rank; i++) {
        const rondo__ir_dim *dim = &type->dims[i];
        if (i) ir_type_write(writer, ",");
        if (dim->value >= 0) {
            ir_type_write(writer, "%lld", (long long)dim->value);
        } else {
            ir_type_write(writer, "%s", dim->symbol ? dim->symbol : "?");
        }
    }
    ir_type_write(writer, "]");
}

void rondo__ir_type_text(const rondo__ir_type *type, char *buffer, size_t capacity) {
    if (!capacity) return;
    buffer[0] = '\0';
    ir_type_writer writer = {buffer, capacity, 0};
    int depth = 0;
    while (type->kind != RONDO__IR_TENSOR && depth <= IR_TYPE_NESTING_MAX) {
        ir_type_write(&writer, "%s(", type->kind == RONDO__IR_SEQUENCE ? "sequence" : "optional");
        depth++;
        if (!type->element) break;
        type = type->element;
    }
    if (type->kind == RONDO__IR_TENSOR) ir_type_write_dims(&writer, type);
    while (depth-- > 0) ir_type_write(&writer, ")");
    for (size_t i = 0; i < writer.used; i++) { /* a symbol must not forge a line */
        if ((unsigned char)buffer[i] < 0x20u || buffer[i] == 0x7f) buffer[i] = '?';
    }
}
