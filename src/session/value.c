/* SPDX-License-Identifier: Apache-2.0
 *
 * Values: making them, sharing them, cutting and joining tensors. */
#include "session/value.h"

#include <string.h>

#include "base/checked.h"
#include "base/instance.h"
#include "ir/ir.h"
#include "session/session.h"

/* -------------------------------------------------------------------------------------------------------- making */

static rondo_status value_create(const rondo_allocator *allocator, rondo_value_kind kind, rondo_dtype dtype,
                                 rondo_value **out_value) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(rondo_value), &memory));
    rondo_value *value = memory;
    rondo__ref_init(&value->references);
    value->allocator = *allocator;
    value->kind = kind;
    value->dtype = dtype;
    *out_value = value;
    return RONDO_OK;
}

static rondo_status value_bytes(rondo_dtype dtype, int32_t rank, const int64_t *dims, size_t *out_bytes) {
    int64_t elements = 0;
    uint64_t bytes = 0;
    if (rank < 0 || rank > RONDO_RANK_MAX || !rondo__checked_elements(rank, dims, &elements)) {
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "a tensor has more elements than can be counted");
    }
    RONDO__TRY(rondo_dtype_bytes(dtype, (uint64_t)elements, &bytes));
    if (bytes > SIZE_MAX) return RONDO__FAIL(OUT_OF_RANGE, INPUT, "a tensor has more bytes than there are addresses");
    *out_bytes = (size_t)bytes;
    return RONDO_OK;
}

static rondo_status value_shaped(const rondo_allocator *allocator, rondo_dtype dtype, int32_t rank, const int64_t *dims,
                                 rondo_value **out_value) {
    size_t bytes = 0;
    RONDO__TRY(value_bytes(dtype, rank, dims, &bytes));
    RONDO__TRY(value_create(allocator, RONDO_VALUE_TENSOR, dtype, out_value));
    (*out_value)->rank = rank;
    (*out_value)->bytes = bytes;
    for (int32_t i = 0; i < rank; i++) (*out_value)->dims[i] = dims[i];
    return RONDO_OK;
}

rondo_status rondo__value_tensor(const rondo_allocator *allocator, rondo_dtype dtype, int32_t rank, const int64_t *dims,
                                 rondo_value **out_value) {
    rondo_value *value = NULL;
    RONDO__TRY(value_shaped(allocator, dtype, rank, dims, &value));
    rondo_status status = rondo__allocate_aligned(allocator, value->bytes, 64, &value->data);
    if (status) {
        rondo_value_release(value);
        return status;
    }
    value->capacity = value->bytes;
    *out_value = value;
    return RONDO_OK;
}

rondo_status rondo__value_borrow(const rondo_allocator *allocator, rondo_dtype dtype, int32_t rank, const int64_t *dims,
                                 const void *data, rondo_value **out_value) {
    RONDO__TRY(value_shaped(allocator, dtype, rank, dims, out_value));
    (*out_value)->data = (void *)(uintptr_t)data;
    return RONDO_OK;
}

void rondo__value_shrink(rondo_value *value, const int64_t *dims) {
    size_t bytes = 0;
    rondo_status status = value_bytes(value->dtype, value->rank, dims, &bytes);
    rondo_status_release(status); /* cannot fail: what is smaller can be counted, too */
    for (int32_t i = 0; i < value->rank; i++) value->dims[i] = dims[i];
    value->bytes = bytes;
}

rondo_status rondo__value_list(const rondo_allocator *allocator, rondo_value_kind kind, rondo_dtype dtype,
                               rondo_value *const *items, uint32_t count, rondo_value **out_value) {
    rondo_value *value = NULL;
    void *memory = NULL;
    RONDO__TRY(value_create(allocator, kind, dtype, &value));
    rondo_status status = rondo__allocate_array(allocator, count, sizeof(rondo_value *), &memory);
    if (status) {
        rondo_value_release(value);
        return status;
    }
    value->items = memory;
    value->count = count;
    for (uint32_t i = 0; i < count; i++) {
        value->items[i] = items[i];
        rondo_value_retain(items[i]);
    }
    *out_value = value;
    return RONDO_OK;
}

void rondo_value_retain(rondo_value *value) {
    if (value) rondo__ref_retain(&value->references);
}

/* What a value holds is at most a sequence in an optional, so this goes three levels down and no more. */
void rondo_value_release(rondo_value *value) {
    if (!value || !rondo__ref_release(&value->references)) return;
    rondo_allocator allocator = value->allocator;
    rondo__values_release(value->items, value->count);
    rondo__free(&allocator, value->items, value->count * sizeof(rondo_value *));
    if (value->capacity) rondo__free_aligned(&allocator, value->data, value->capacity, 64);
    rondo__free(&allocator, value, sizeof *value);
}

void rondo__values_release(rondo_value **values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        rondo_value_release(values[i]);
        values[i] = NULL;
    }
}

/* -------------------------------------------------------------------------------------------------------- public */

rondo_status rondo_value_from_tensor(rondo_instance *instance, const rondo_tensor_view *view, rondo_value **out_value) {
    rondo_value *value = NULL;
    if (!instance || !view || !out_value || view->rank < 0 || view->rank > RONDO_RANK_MAX ||
        (view->rank > 0 && !view->shape)) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                           "rondo_value_from_tensor: instance, view or out_value is null, or "
                           "the view has no shape");
    }
    RONDO__TRY(rondo__value_tensor(&rondo__instance_base_of(instance)->allocator, view->dtype, view->rank, view->shape,
                                   &value));
    rondo_status status = rondo__session_gather(view, value->data, value->bytes);
    if (status) {
        rondo_value_release(value);
        return status;
    }
    *out_value = value;
    return RONDO_OK;
}

rondo_status rondo_value_from_sequence(rondo_instance *instance, rondo_dtype dtype, rondo_value *const *tensors,
                                       uint32_t count, rondo_value **out_value) {
    if (!instance || !out_value || (count > 0 && !tensors)) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                           "rondo_value_from_sequence: instance, tensors or out_value is null");
    }
    for (uint32_t i = 0; i < count; i++) {
        const rondo_value *item = tensors[i];
        if (!item || item->kind != RONDO_VALUE_TENSOR || (dtype != RONDO_DTYPE_UNDEFINED && item->dtype != dtype) ||
            item->dtype != tensors[0]->dtype) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                               "item %u of a sequence is no tensor, or of another type than the sequence", i);
        }
    }
    if (count > 0) dtype = tensors[0]->dtype;
    return rondo__value_list(&rondo__instance_base_of(instance)->allocator, RONDO_VALUE_SEQUENCE, dtype, tensors, count,
                             out_value);
}

rondo_status rondo_value_from_optional(rondo_instance *instance, rondo_value *element, rondo_value **out_value) {
    if (!instance || !out_value) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "rondo_value_from_optional: instance or out_value is null");
    }
    if (element && element->kind == RONDO_VALUE_OPTIONAL) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "an optional holds a tensor or a sequence, not another optional");
    }
    return rondo__value_list(&rondo__instance_base_of(instance)->allocator, RONDO_VALUE_OPTIONAL,
                             element ? element->dtype : RONDO_DTYPE_UNDEFINED, &element, element ? 1 : 0, out_value);
}

rondo_value_kind rondo_value_get_kind(const rondo_value *value) { return value ? value->kind : RONDO_VALUE_TENSOR; }

void rondo__value_view(const rondo_value *value, rondo_tensor_view *out_view) {
    *out_view = (rondo_tensor_view){
        .data = value->data, .device_type = 1, .rank = value->rank, .dtype = value->dtype, .shape = value->dims};
}

bool rondo_value_tensor(const rondo_value *value, rondo_tensor_view *out_view) {
    if (!value || !out_view || value->kind != RONDO_VALUE_TENSOR) return false;
    rondo__value_view(value, out_view);
    return true;
}

uint32_t rondo_value_count(const rondo_value *value) { return value ? value->count : 0; }

rondo_value *rondo_value_item(const rondo_value *value, uint32_t index) {
    return value && index < value->count ? value->items[index] : NULL;
}

static rondo_value_kind value_kind_of(const rondo_ir_graph *graph, rondo_ir_value value) {
    switch (rondo__ir_value_at(graph, value)->type.kind) {
    case RONDO__IR_SEQUENCE: return RONDO_VALUE_SEQUENCE;
    case RONDO__IR_OPTIONAL: return RONDO_VALUE_OPTIONAL;
    default: return RONDO_VALUE_TENSOR;
    }
}

rondo_status rondo_ir_graph_input_kind(const rondo_ir_graph *graph, uint32_t index, rondo_value_kind *out_kind) {
    if (!graph || !out_kind || index >= graph->inputs.count) {
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "there is no graph, or it has no input %u", index);
    }
    *out_kind = value_kind_of(graph, rondo__ir_input_at(graph, index));
    return RONDO_OK;
}

rondo_status rondo_ir_graph_output_kind(const rondo_ir_graph *graph, uint32_t index, rondo_value_kind *out_kind) {
    if (!graph || !out_kind || index >= graph->outputs.count) {
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "there is no graph, or it has no output %u", index);
    }
    *out_kind = value_kind_of(graph, rondo__ir_output_at(graph, index));
    return RONDO_OK;
}

/* --------------------------------------------------------------------------------------------- cutting and joining */

typedef struct value_axis {
    size_t before, element; /* slices before the axis; bytes of one place of it */
    int64_t size;
} value_axis;

/* Types of less than a byte have no places that could be moved. */
static rondo_status value_axis_of(const rondo_value *value, int32_t axis, value_axis *out) {
    uint32_t bits = rondo_dtype_bits(value->dtype);
    if (bits == 0 || bits % 8u) {
        return RONDO__FAIL(UNSUPPORTED, INPUT, "%s cannot be cut or joined", rondo_dtype_name(value->dtype));
    }
    *out = (value_axis){1, bits / 8u, axis < value->rank ? value->dims[axis] : 1};
    for (int32_t i = 0; i < axis; i++) out->before *= (size_t)value->dims[i];
    for (int32_t i = axis + 1; i < value->rank; i++) out->element *= (size_t)value->dims[i];
    return RONDO_OK;
}

rondo_status rondo__value_cut(const rondo_allocator *allocator, const rondo_value *value, int32_t axis, int64_t begin,
                              int64_t length, bool drop, rondo_value **out_value) {
    value_axis at;
    int64_t dims[RONDO_RANK_MAX];
    int32_t rank = 0;
    RONDO__TRY(value_axis_of(value, axis, &at));
    for (int32_t i = 0; i < value->rank; i++) {
        if (i == axis && drop) continue;
        dims[rank++] = i == axis ? length : value->dims[i];
    }
    RONDO__TRY(rondo__value_tensor(allocator, value->dtype, rank, dims, out_value));
    if ((*out_value)->bytes == 0) return RONDO_OK;
    const size_t row = (size_t)length * at.element, stride = (size_t)at.size * at.element;
    const unsigned char *from = (const unsigned char *)value->data + (size_t)begin * at.element;
    unsigned char *to = (*out_value)->data;
    for (size_t i = 0; i < at.before; i++) memcpy(to + i * row, from + i * stride, row);
    return RONDO_OK;
}

static rondo_status value_join_dims(rondo_value *const *items, uint32_t count, int32_t axis, bool stack,
                                    int64_t *dims) {
    const rondo_value *first = items[0];
    int64_t total = 0;
    for (uint32_t n = 0; n < count; n++) {
        const rondo_value *item = items[n];
        bool fits = item->kind == RONDO_VALUE_TENSOR && item->dtype == first->dtype && item->rank == first->rank;
        for (int32_t i = 0; fits && i < first->rank; i++) {
            fits = item->dims[i] == first->dims[i] || (i == axis && !stack);
        }
        if (!fits) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                               "tensor %u is of another type or shape than the first: they cannot be joined", n);
        }
        if (!rondo__checked_add_i64(total, stack ? 1 : item->dims[axis], &total)) {
            return RONDO__FAIL(OUT_OF_RANGE, INPUT, "joined, the tensors are too long");
        }
    }
    for (int32_t i = 0; i < axis; i++) dims[i] = first->dims[i];
    dims[axis] = total;
    for (int32_t i = axis + (stack ? 0 : 1); i < first->rank; i++) dims[i + (stack ? 1 : 0)] = first->dims[i];
    return RONDO_OK;
}

rondo_status rondo__value_join(const rondo_allocator *allocator, rondo_value *const *items, uint32_t count,
                               int64_t axis, bool stack, rondo_value **out_value) {
    int64_t dims[RONDO_RANK_MAX + 1];
    value_axis at;
    if (count == 0) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "nothing is there to be joined");
    int32_t rank = items[0]->rank + (stack ? 1 : 0);
    if (rank > RONDO_RANK_MAX)
        return RONDO__FAIL(UNSUPPORTED, INPUT, "joined, they have more than %d axes", RONDO_RANK_MAX);
    if (axis < -(int64_t)rank || axis >= rank) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "axis %lld is not within %d and %d", (long long)axis, -rank,
                           rank - 1);
    }
    int32_t along = (int32_t)(axis < 0 ? axis + rank : axis);
    RONDO__TRY(value_join_dims(items, count, along, stack, dims));
    rondo_value *joined = NULL;
    RONDO__TRY(rondo__value_tensor(allocator, items[0]->dtype, rank, dims, &joined));
    rondo_status status = value_axis_of(joined, along, &at);
    if (status) {
        rondo_value_release(joined);
        return status;
    }
    *out_value = joined;
    unsigned char *to = joined->data;
    for (uint32_t n = 0; n < count && joined->bytes > 0; n++) {
        const size_t row = (stack ? 1u : (size_t)items[n]->dims[along]) * at.element;
        const size_t stride = (size_t)at.size * at.element;
        const unsigned char *from = items[n]->data;
        for (size_t i = 0; i < at.before && row > 0; i++) memcpy(to + i * stride, from + i * row, row);
        to += row;
    }
    return RONDO_OK;
}
