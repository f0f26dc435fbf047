/* SPDX-License-Identifier: Apache-2.0
 *
 * Values on the host, between plans: tensors, sequences, optionals. Made whole, then shared by reference. */
#ifndef RONDO_SRC_SESSION_VALUE_H
#define RONDO_SRC_SESSION_VALUE_H

#include <rondo/value.h>

#include "base/allocator.h"
#include "base/status.h"
#include "base/thread.h"

struct rondo_value {
    rondo__ref_count references;
    rondo_allocator allocator;
    rondo_value_kind kind;
    rondo_dtype dtype; /* of a tensor, and of a sequence's tensors where it is known */
    int32_t rank;
    int64_t dims[RONDO_RANK_MAX];
    void *data;      /* of a tensor: compact */
    size_t bytes;    /* that it has */
    size_t capacity; /* that are its own; 0: the data is somebody else's */
    rondo_value **items;
    uint32_t count;
};

/* With room for elements of these dims, contents undefined. */
RONDO_MUST_USE rondo_status rondo__value_tensor(const rondo_allocator *allocator, rondo_dtype dtype, int32_t rank,
                                                const int64_t *dims, rondo_value **out_value);
/* Over memory that somebody else keeps, longer than the value. */
RONDO_MUST_USE rondo_status rondo__value_borrow(const rondo_allocator *allocator, rondo_dtype dtype, int32_t rank,
                                                const int64_t *dims, const void *data, rondo_value **out_value);
/* Fewer elements than there is room for; before anybody shares it. */
void rondo__value_shrink(rondo_value *value, const int64_t *dims);
/* Retains the items. */
RONDO_MUST_USE rondo_status rondo__value_list(const rondo_allocator *allocator, rondo_value_kind kind,
                                              rondo_dtype dtype, rondo_value *const *items, uint32_t count,
                                              rondo_value **out_value);
void rondo__value_view(const rondo_value *value, rondo_tensor_view *out_view);
void rondo__values_release(rondo_value **values, size_t count);

/* `count` tensors of one type joined along an axis that each has, or with `stack` along a new one. */
RONDO_MUST_USE rondo_status rondo__value_join(const rondo_allocator *allocator, rondo_value *const *items,
                                              uint32_t count, int64_t axis, bool stack, rondo_value **out_value);
/* `length` places of an axis from `begin` on; with `drop` the axis, which is then of length 1, goes. */
RONDO_MUST_USE rondo_status rondo__value_cut(const rondo_allocator *allocator, const rondo_value *value, int32_t axis,
                                             int64_t begin, int64_t length, bool drop, rondo_value **out_value);

#endif
