/* SPDX-License-Identifier: Apache-2.0
 *
 * rondo_tensor from the inside: for readers of tensor files, which have an allocator at hand and fill the data. */
#ifndef RONDO_SRC_IR_TENSOR_H
#define RONDO_SRC_IR_TENSOR_H

#include <rondo/compiler.h>

#include "base/status.h"
#include "base/thread.h"

struct rondo_tensor {
    rondo__ref_count references;
    rondo_allocator allocator;
    rondo_tensor_view view; /* data and shape point to what the tensor owns */
    int64_t dims[RONDO_RANK_MAX];
    size_t bytes;     /* of the elements */
    size_t allocated; /* never 0, so that the data pointer of an empty tensor is valid */
};

/* As rondo_tensor_create, over any allocator. The elements are zeroed; the maker writes them through view.data. */
RONDO_MUST_USE rondo_status rondo__tensor_create(const rondo_allocator *allocator, rondo_dtype dtype, int32_t rank,
                                                 const int64_t *dims, rondo_tensor **out_tensor);

#endif
