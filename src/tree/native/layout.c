/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes and strides: how many bytes they span, and the word that tells them apart. */
#include <string.h>

#include "tree/native/native.h"

static rondo_status layout_check(rondo_dtype dtype, int32_t rank, const int64_t *shape, const int64_t *strides) {
    if (!rondo_dtype_bits(dtype)) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "an array of data type %d (%s) has no elements that memory holds",
                           (int)dtype, rondo_dtype_name(dtype));
    }
    if (rank < 0 || rank > RONDO_RANK_MAX || (rank && !shape)) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "an array of rank %d: ranks go from 0 to %d, and need a shape",
                           (int)rank, RONDO_RANK_MAX);
    }
    for (int32_t i = 0; i < rank; i++) {
        if (shape[i] >= 0 && (!strides || strides[i] >= 0)) continue;
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "an array's dimension %d has %s %lld, which is below 0", (int)i,
                           shape[i] < 0 ? "size" : "stride", (long long)(shape[i] < 0 ? shape[i] : strides[i]));
    }
    return RONDO_OK;
}

static rondo_status layout_too_large(void) {
    return RONDO__FAIL(OUT_OF_RANGE, TREE, "an array of more elements than can be counted");
}

/* Compact row-major ones; out-of-range products do not matter where there are no elements. */
static bool layout_compact(rondo__layout *layout, int64_t elements) {
    int64_t step = 1;
    for (int32_t i = layout->rank; i-- > 0;) {
        layout->strides[i] = step;
        int64_t size = layout->shape[i] > 0 ? layout->shape[i] : 1;
        if (!rondo__checked_mul_i64(step, size, &step)) {
            if (elements) return false;
            step = 1;
        }
    }
    return true;
}

/* The last element's place, in elements. There is one. */
static bool layout_last(const rondo__layout *layout, int64_t *out_last) {
    int64_t last = 0, along = 0;
    for (int32_t i = 0; i < layout->rank; i++) {
        if (!rondo__checked_mul_i64(layout->shape[i] - 1, layout->strides[i], &along)) return false;
        if (!rondo__checked_add_i64(last, along, &last)) return false;
    }
    *out_last = last;
    return true;
}

rondo_status rondo__layout_make(rondo_dtype dtype, int32_t rank, const int64_t *shape, const int64_t *strides,
                                rondo__layout *out_layout) {
    rondo__layout layout = {.dtype = dtype, .rank = rank};
    int64_t elements = 0, last = 0;
    RONDO__TRY(layout_check(dtype, rank, shape, strides));
    if (rank) memcpy(layout.shape, shape, (size_t)rank * sizeof(int64_t));
    if (!rondo__checked_elements(rank, shape, &elements) || !layout_compact(&layout, elements)) {
        return layout_too_large();
    }
    bool compact = !strides || memcmp(layout.strides, strides, (size_t)rank * sizeof(int64_t)) == 0;
    if (!compact && rondo_dtype_bits(dtype) < 8u) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "elements of %s share bytes: such an array is compact",
                           rondo_dtype_name(dtype));
    }
    if (!compact) memcpy(layout.strides, strides, (size_t)rank * sizeof(int64_t));
    if (elements) {
        if (!layout_last(&layout, &last) || last == INT64_MAX) return layout_too_large();
        RONDO__TRY(rondo_dtype_bytes(dtype, (uint64_t)last + 1u, &layout.bytes));
    }
    *out_layout = layout;
    return RONDO_OK;
}

rondo_status rondo__layout_offset(rondo_dtype dtype, uint64_t elements, uint64_t *out_bytes) {
    uint64_t bits = 0;
    if (!rondo__checked_mul_u64(elements, rondo_dtype_bits(dtype), &bits)) return layout_too_large();
    if (bits % 8u) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "element %llu of %s does not begin a byte",
                           (unsigned long long)elements, rondo_dtype_name(dtype));
    }
    *out_bytes = bits / 8u;
    return RONDO_OK;
}

static uint64_t layout_mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    return hash ^ (hash >> 29);
}

uint64_t rondo__layout_word(const rondo__layout *layout, rondo_tensor_place place, const rondo_device *device) {
    uint64_t hash = layout_mix((uint64_t)layout->dtype, (uint64_t)layout->rank << 8 | (uint64_t)place);
    if (place == RONDO_TENSOR_DEVICE) {
        hash = layout_mix(hash, (uint64_t)(uint32_t)device->properties.index);
        for (const char *name = device->properties.name; *name; name++) hash = layout_mix(hash, (uint8_t)*name);
    }
    for (int32_t i = 0; i < layout->rank; i++) {
        hash = layout_mix(hash, (uint64_t)layout->shape[i]);
        hash = layout_mix(hash, (uint64_t)layout->strides[i]);
    }
    return hash;
}

void rondo__layout_put(const rondo__layout *layout, rondo_array *array) {
    array->dtype = layout->dtype;
    array->rank = layout->rank;
    array->bytes = layout->bytes;
    memcpy(array->shape, layout->shape, (size_t)layout->rank * sizeof(int64_t));
    memcpy(array->strides, layout->strides, (size_t)layout->rank * sizeof(int64_t));
}
