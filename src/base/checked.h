/* SPDX-License-Identifier: Apache-2.0
 *
 * Size arithmetic that says when it overflows. Each returns false, and leaves *out alone, on overflow. */
#ifndef RONDO_SRC_BASE_CHECKED_H
#define RONDO_SRC_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool rondo__checked_add_size(size_t a, size_t b, size_t *out) {
    size_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

static inline bool rondo__checked_mul_size(size_t a, size_t b, size_t *out) {
    size_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

static inline bool rondo__checked_add_u64(uint64_t a, uint64_t b, uint64_t *out) {
    uint64_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

static inline bool rondo__checked_mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
    uint64_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

static inline bool rondo__checked_add_i64(int64_t a, int64_t b, int64_t *out) {
    int64_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

static inline bool rondo__checked_mul_i64(int64_t a, int64_t b, int64_t *out) {
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

/* alignment: a power of two. */
static inline bool rondo__checked_align_u64(uint64_t value, uint64_t alignment, uint64_t *out) {
    uint64_t r;
    if (__builtin_add_overflow(value, alignment - 1u, &r)) return false;
    *out = r & ~(alignment - 1u);
    return true;
}

/* Product of dims; false for a negative dim or on overflow of int64. 1 for rank 0. A zero anywhere gives 0 even where
 * other dims would overflow. */
bool rondo__checked_elements(int32_t rank, const int64_t *dims, int64_t *out_elements);

#endif
