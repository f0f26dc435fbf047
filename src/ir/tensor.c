/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor that owns its host memory. */
#include "ir/tensor.h"

#include <string.h>

#include "base/allocator.h"
#include "base/instance.h"
#include "ir/private.h"

#define TENSOR_ALIGNMENT 64u

rondo_status rondo__tensor_create(const rondo_allocator *allocator, rondo_dtype dtype, int32_t rank,
                                  const int64_t *dims, rondo_tensor **out_tensor) {
    int64_t elements = 0;
    size_t bytes = 0;
    if (dtype == RONDO_DTYPE_STRING) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a host tensor cannot hold strings, which have no fixed size");
    }
    RONDO__TRY_NOTE(rondo__ir_data_size(dtype, rank, dims, &elements, &bytes), "while making a host tensor");
    void *pointer;
    RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(rondo_tensor), &pointer));
    rondo_tensor *tensor = pointer;
    size_t allocated = bytes ? bytes : 1u;
    rondo_status status = rondo__allocate_aligned(allocator, allocated, TENSOR_ALIGNMENT, &pointer);
    if (status) {
        rondo__free(allocator, tensor, sizeof *tensor);
        return status;
    }
    memset(pointer, 0, allocated);
    rondo__ref_init(&tensor->references);
    tensor->allocator = *allocator;
    tensor->bytes = bytes;
    tensor->allocated = allocated;
    for (int32_t i = 0; i < rank; i++) tensor->dims[i] = dims[i];
    tensor->view =
        (rondo_tensor_view){.data = pointer, .device_type = 1, .rank = rank, .dtype = dtype, .shape = tensor->dims};
    *out_tensor = tensor;
    return RONDO_OK;
}

rondo_status rondo_tensor_create(rondo_instance *instance, rondo_dtype dtype, int32_t rank, const int64_t *dims,
                                 rondo_tensor **out_tensor) {
    if (!instance || !out_tensor) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a tensor needs an instance and a place for the result");
    }
    return rondo__tensor_create(&rondo__instance_base_of(instance)->allocator, dtype, rank, dims, out_tensor);
}

void rondo_tensor_retain(rondo_tensor *tensor) {
    if (tensor) rondo__ref_retain(&tensor->references);
}

void rondo_tensor_release(rondo_tensor *tensor) {
    if (!tensor || !rondo__ref_release(&tensor->references)) return;
    rondo_allocator allocator = tensor->allocator;
    rondo__free_aligned(&allocator, tensor->view.data, tensor->allocated, TENSOR_ALIGNMENT);
    rondo__free(&allocator, tensor, sizeof *tensor);
}

const rondo_tensor_view *rondo_tensor_get_view(const rondo_tensor *tensor) { return tensor ? &tensor->view : NULL; }

uint64_t rondo_tensor_bytes(const rondo_tensor *tensor) { return tensor ? tensor->bytes : 0; }
