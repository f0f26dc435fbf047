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

#endif
