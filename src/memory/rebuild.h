/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool's tree of small free blocks written anew: they come in order of address, are counted into their sizes, and the
 * sorted list becomes a tree. Linear where inserting one by one is not. */
#ifndef RONDO_SRC_MEMORY_REBUILD_H
#define RONDO_SRC_MEMORY_REBUILD_H

#include "memory/cache.h"

/* Below so many, one by one is faster. */
#define RONDO__REBUILD_LEAST 32u

typedef struct rondo__rebuild {
    rondo__block **blocks;
    uint64_t *places; /* by size: where the next block goes */
    uint64_t capacity, classes;
    size_t bytes;
} rondo__rebuild;

/* Room for `capacity` free blocks. Sets cache->rebuilds. */
RONDO_MUST_USE rondo_status rondo__rebuild_begin(rondo__cache *cache, uint64_t capacity, rondo__rebuild *out_rebuild);
/* Gives the pool its tree, and the room back. */
void rondo__rebuild_end(rondo__cache *cache, rondo__pool *pool, rondo__rebuild *rebuild);

#endif
