/* SPDX-License-Identifier: Apache-2.0
 *
 * Which live allocation an address belongs to: a sorted list of start addresses, cut into chunks so that neither finding
 * nor inserting moves more than a few kilobytes, also among a million allocations. */
#ifndef RONDO_SRC_MEMORY_RANGES_H
#define RONDO_SRC_MEMORY_RANGES_H

#include "base/buffer.h"

/* A stretch of memory: a segment, or (first in it) a block. The edges are those of watch.h. */
typedef struct rondo__allocation {
    uint64_t base, size, generation;
    struct rondo__memory_edge *edges;
} rondo__allocation;

#define RONDO__RANGES_CHUNK 256u

typedef struct rondo__ranges_chunk {
    uint32_t count;
    uint64_t bases[RONDO__RANGES_CHUNK]; /* ascending */
    rondo__allocation *allocations[RONDO__RANGES_CHUNK];
} rondo__ranges_chunk;

typedef struct rondo__ranges_part {
    uint64_t first; /* the chunk's least base; a chunk is never empty */
    rondo__ranges_chunk *chunk;
} rondo__ranges_part;

typedef struct rondo__ranges {
    rondo_allocator allocator;
    rondo__buffer parts; /* rondo__ranges_part, ascending */
    uint64_t count;
} rondo__ranges;

void rondo__ranges_init(rondo__ranges *ranges, const rondo_allocator *allocator);
/* The allocations themselves are the caller's. */
void rondo__ranges_deinit(rondo__ranges *ranges);
/* The allocation with the greatest base that is not above `address`; null when there is none. It may end before it. */
rondo__allocation *rondo__ranges_at_or_below(const rondo__ranges *ranges, uint64_t address);
/* The one with the least base that is not below; null when there is none. */
rondo__allocation *rondo__ranges_at_or_above(const rondo__ranges *ranges, uint64_t address);
/* ALREADY_EXISTS when it overlaps a live one. */
RONDO_MUST_USE rondo_status rondo__ranges_insert(rondo__ranges *ranges, rondo__allocation *allocation);
/* It is there. */
void rondo__ranges_remove(rondo__ranges *ranges, const rondo__allocation *allocation);

#endif
