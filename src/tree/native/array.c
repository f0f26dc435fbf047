/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays: made, shared, asked. */
#include "base/sized.h"
#include "tree/native/native.h"

/* --------------------------------------------------------------------------------------------------------- make */

static void array_describe_as(rondo_array *array, const rondo__layout *layout, rondo_tensor_place place) {
    rondo__layout_put(layout, array);
    array->own.place = (uint8_t)place;
    array->word = rondo__layout_word(layout, place, array->own.device);
}

static rondo_status array_no_place(const char *what) {
    return RONDO__FAIL(INVALID_ARGUMENT, TREE, "%s: the device, the stream or the place for the array is null", what);
}

rondo_status rondo_array_create(rondo_stream *stream, rondo_dtype dtype, int32_t rank, const int64_t *shape,
                                rondo_array **out_array) {
    rondo__layout layout;
    rondo_array *array = NULL;
    void *memory = NULL;
    if (!stream || !out_array) return array_no_place("rondo_array_create");
    RONDO__TRY(rondo__layout_make(dtype, rank, shape, NULL, &layout));
    RONDO__TRY(rondo__unit_make(stream->device, NULL, &array));
    rondo_status status = layout.bytes ? rondo_memory_allocate_on(stream, layout.bytes, &memory) : RONDO_OK;
    if (status) {
        rondo__unit_drop(array);
        return status;
    }
    array_describe_as(array, &layout, RONDO_TENSOR_DEVICE);
    rondo__storage_put(&array->own, (uint64_t)(uintptr_t)memory, layout.bytes,
                       memory ? RONDO__STORAGE_BLOCK : RONDO__STORAGE_NOTHING);
    *out_array = array;
    return RONDO_OK;
}

rondo_status rondo_array_create_host(rondo_device *device, rondo_dtype dtype, int32_t rank, const int64_t *shape,
                                     rondo_array **out_array) {
    rondo__layout layout;
    rondo_array *array = NULL;
    void *memory = NULL;
    if (!device || !out_array) return array_no_place("rondo_array_create_host");
    RONDO__TRY(rondo__layout_make(dtype, rank, shape, NULL, &layout));
    RONDO__TRY(rondo__unit_make(device, NULL, &array));
    rondo_status status = layout.bytes ? rondo_memory_host_allocate(device, layout.bytes, &memory) : RONDO_OK;
    if (status) {
        rondo__unit_drop(array);
        return status;
    }
    array_describe_as(array, &layout, RONDO_TENSOR_HOST);
    rondo__storage_put(&array->own, (uint64_t)(uintptr_t)memory, layout.bytes,
                       memory ? RONDO__STORAGE_PINNED : RONDO__STORAGE_NOTHING);
    *out_array = array;
    return RONDO_OK;
}

rondo_status rondo_array_create_value(rondo_device *device, uint64_t value, rondo_array **out_array) {
    rondo_array *array = NULL;
    if (!device || !out_array) return array_no_place("rondo_array_create_value");
    RONDO__TRY(rondo__unit_make(device, NULL, &array));
    array->own.place = RONDO_TENSOR_NONE;
    array->word = array->value = value;
    *out_array = array;
    return RONDO_OK;
}

rondo_status rondo_array_wrap(rondo_device *device, rondo_tensor_place place, void *memory, uint64_t bytes,
                              rondo_dtype dtype, int32_t rank, const int64_t *shape, const int64_t *strides,
                              rondo_array **out_array) {
    rondo__layout layout;
    rondo_array *array = NULL;
    if (!device || !out_array) return array_no_place("rondo_array_wrap");
    if (place != RONDO_TENSOR_DEVICE && place != RONDO_TENSOR_HOST) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_array_wrap: memory lies on the device or with the host");
    }
    RONDO__TRY(rondo__layout_make(dtype, rank, shape, strides, &layout));
    if (layout.bytes && !memory) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_array_wrap: an array with elements needs memory");
    }
    if (layout.bytes > bytes) {
        return RONDO__FAIL(OUT_OF_RANGE, TREE,
                           "rondo_array_wrap: the last element ends %llu bytes from the first, "
                           "of %llu that were given",
                           (unsigned long long)layout.bytes, (unsigned long long)bytes);
    }
    RONDO__TRY(rondo__unit_make(device, NULL, &array));
    array_describe_as(array, &layout, place);
    rondo__storage_put(&array->own, (uint64_t)(uintptr_t)memory, memory ? bytes : 0, RONDO__STORAGE_WRAPPED);
    *out_array = array;
    return RONDO_OK;
}

rondo_status rondo_array_alias(rondo_array *array, int32_t rank, const int64_t *shape, const int64_t *strides,
                               uint64_t offset, rondo_array **out_array) {
    rondo__layout layout;
    rondo_array *alias = NULL;
    uint64_t start = 0, end = 0;
    if (!array || !out_array) return array_no_place("rondo_array_alias");
    rondo__storage *storage = array->storage;
    if (storage->place == RONDO_TENSOR_NONE) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_array_alias: a number has no elements to look at");
    }
    RONDO__TRY(rondo__layout_make(array->dtype, rank, shape, strides, &layout));
    RONDO__TRY(rondo__layout_offset(array->dtype, offset, &start));
    if (!rondo__checked_add_u64(start, layout.bytes, &end) || end > rondo__storage_bytes(storage)) {
        return RONDO__FAIL(OUT_OF_RANGE, TREE,
                           "rondo_array_alias: %llu bytes from byte %llu on pass the storage's end at %llu",
                           (unsigned long long)layout.bytes, (unsigned long long)start,
                           (unsigned long long)rondo__storage_bytes(storage));
    }
    RONDO__TRY(rondo__unit_make(storage->device, NULL, &alias));
    rondo__layout_put(&layout, alias);
    alias->word = rondo__layout_word(&layout, storage->place, storage->device);
    alias->offset = start;
    rondo__ref_retain(&storage->references);
    alias->storage = storage;
    *out_array = alias;
    return RONDO_OK;
}

/* --------------------------------------------------------------------------------------------------------- life */

void rondo_array_retain(rondo_array *array) {
    if (array) rondo__ref_retain(&array->references);
}

static void array_end(rondo_array *array) {
    rondo__storage *storage = array->storage;
    bool own = storage == &array->own;
    rondo__storage_release(storage); /* its own ends the unit */
    if (!own) rondo__unit_end(array);
}

void rondo_array_release(rondo_array *array) {
    if (!array) return;
    /* Who has the only reference needs no atomic change: nobody else can make another. */
    if (atomic_load_explicit(&array->references, memory_order_acquire) == 1u ||
        rondo__ref_release(&array->references)) {
        array_end(array);
    }
}

/* ---------------------------------------------------------------------------------------------------------- ask */

rondo_status rondo_array_data(const rondo_array *array, void **out_pointer) {
    if (!array || !out_pointer || array->storage->place == RONDO_TENSOR_NONE) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE,
                           "rondo_array_data needs an array with elements, and a place for the address");
    }
    const rondo__storage *storage = array->storage;
    /* The address first: while the lease lives, it is good. */
    uint64_t address = rondo__storage_address(storage);
    RONDO__TRY(rondo__storage_check(storage));
    *out_pointer = (void *)(uintptr_t)(address + array->offset);
    return RONDO_OK;
}

rondo_status rondo_array_get_details(const rondo_array *array, rondo_array_details *out_details) {
    rondo_array_details details = RONDO_ARRAY_DETAILS_INIT;
    if (!array) return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_array_get_details: the array is null");
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_TREE, "rondo_array_details", out_details));
    const rondo__storage *storage = array->storage;
    details.place = storage->place;
    details.device = storage->device;
    details.storage = storage;
    if (storage->place == RONDO_TENSOR_NONE) {
        details.value = array->value;
    } else {
        details.dtype = array->dtype;
        details.rank = array->rank;
        details.shape = array->shape;
        details.strides = array->strides;
        details.offset = array->offset * 8u / rondo_dtype_bits(array->dtype);
        details.bytes = array->bytes;
        details.storage_bytes = rondo__storage_bytes(storage);
        details.leased = rondo__storage_lease(storage) != NULL;
    }
    rondo__sized_write(&details, sizeof details, out_details);
    return RONDO_OK;
}
