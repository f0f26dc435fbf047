/* SPDX-License-Identifier: Apache-2.0
 *
 * What a checkpoint holds: for each segment its blocks in order of address. Addresses of blocks follow from the sizes. */
#ifndef RONDO_SRC_MEMORY_CHECKPOINT_H
#define RONDO_SRC_MEMORY_CHECKPOINT_H

#include "memory/cache.h"

typedef struct rondo__saved_block {
    uint64_t size, requested;
    bool live;
} rondo__saved_block;

typedef struct rondo__saved_segment {
    uint64_t base, size;
    uint32_t kind;
    bool needed; /* it has live blocks, or was allocated from since the layout before this one */
    const rondo__saved_block *blocks;
    uint64_t count;
} rondo__saved_segment;

/* One block of memory of `size` bytes, the lists behind it. */
struct rondo_memory_checkpoint {
    rondo_device *device; /* retained */
    size_t size;
    rondo_pool_id pool;
    uint64_t segment_count, block_count, live;
    rondo__saved_segment *segments;
    rondo__saved_block *blocks;
};

/* The pool's segment that it was; null when it is gone. */
rondo__segment *rondo__saved_segment_now(const rondo__cache *cache, const rondo__pool *pool,
                                         const rondo__saved_segment *saved);

#endif
