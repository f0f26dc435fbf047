/* SPDX-License-Identifier: Apache-2.0
 *
 * A bump allocator: many small things of one lifetime, freed together. Thread-compatible. */
#ifndef RONDO_SRC_BASE_ARENA_H
#define RONDO_SRC_BASE_ARENA_H

#include "base/allocator.h"

typedef struct rondo__arena_block rondo__arena_block;
typedef struct rondo__arena {
    rondo_allocator allocator;
    rondo__arena_block *blocks;
    size_t used, capacity; /* of the newest block */
    size_t total;          /* bytes taken from the allocator */
    size_t maximum;        /* OUT_OF_RANGE above it */
} rondo__arena;

/* Takes nothing yet, so it cannot fail. A zeroed arena with an allocator is not enough: always init. */
void rondo__arena_init(rondo__arena *arena, const rondo_allocator *allocator, size_t maximum);
/* Also resets; init again before further use. */
void rondo__arena_deinit(rondo__arena *arena);
/* Zeroed, aligned to 16. size 0 gives a valid pointer of no use. */
RONDO_MUST_USE rondo_status rondo__arena_allocate(rondo__arena *arena, size_t size, void **out_pointer);
RONDO_MUST_USE rondo_status rondo__arena_allocate_array(rondo__arena *arena, size_t count, size_t size,
                                                        void **out_pointer);
RONDO_MUST_USE rondo_status rondo__arena_allocate_aligned(rondo__arena *arena, size_t size, size_t alignment,
                                                          void **out_pointer);
/* Not zeroed: what is there is to be filled at once. */
RONDO_MUST_USE rondo_status rondo__arena_take(rondo__arena *arena, size_t size, size_t alignment, void **out_pointer);
/* Copies. */
RONDO_MUST_USE rondo_status rondo__arena_copy(rondo__arena *arena, const void *data, size_t size, void **out_pointer);
RONDO_MUST_USE rondo_status rondo__arena_copy_aligned(rondo__arena *arena, const void *data, size_t size,
                                                      size_t alignment, void **out_pointer);
/* length bytes and a terminator. */
RONDO_MUST_USE rondo_status rondo__arena_string(rondo__arena *arena, const char *text, size_t length,
                                                const char **out_text);

#endif
