/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory through the allocator that was passed down. Free gets the size. */
#ifndef RONDO_SRC_BASE_ALLOCATOR_H
#define RONDO_SRC_BASE_ALLOCATOR_H

#include "base/status.h"

/* size 0 gives null and success. */
RONDO_MUST_USE rondo_status rondo__allocate(const rondo_allocator *allocator, size_t size, void **out_pointer);
RONDO_MUST_USE rondo_status rondo__allocate_zeroed(const rondo_allocator *allocator, size_t size, void **out_pointer);
/* count * size, checked: OUT_OF_RANGE on overflow. Zeroed. */
RONDO_MUST_USE rondo_status rondo__allocate_array(const rondo_allocator *allocator, size_t count, size_t size,
                                                  void **out_pointer);
RONDO_MUST_USE rondo_status rondo__allocate_aligned(const rondo_allocator *allocator, size_t size, size_t alignment,
                                                    void **out_pointer);
/* Says that a block will be filled from end to end now: where the system can, its pages are taken in one go, which costs
 * a fifth of a fault for each. Small blocks are left alone. */
void rondo__prefault(void *pointer, size_t size);
/* Null pointers are accepted. */
void rondo__free(const rondo_allocator *allocator, void *pointer, size_t size);
void rondo__free_aligned(const rondo_allocator *allocator, void *pointer, size_t size, size_t alignment);
RONDO_MUST_USE rondo_status rondo__reallocate(const rondo_allocator *allocator, void **pointer, size_t old_size,
                                              size_t new_size);
/* A copy with a terminator; free with strlen + 1. Null gives null. */
RONDO_MUST_USE rondo_status rondo__string_copy(const rondo_allocator *allocator, const char *text, char **out_text);
void rondo__string_free(const rondo_allocator *allocator, char *text);

#endif
