/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking and giving back ranges in order of time: the tightest of the gaps, found by size and not by looking at all of
 * them. Gaps stand in lists by size, eight to a doubling; of one list at most LAYOUT_GAPS_LOOKED_AT are compared. */
#ifndef RONDO_SRC_COMPILE_PLAN_MEMORY_GAPS_H
#define RONDO_SRC_COMPILE_PLAN_MEMORY_GAPS_H

#include "base/allocator.h"

#define RONDO__LAYOUT_BINS 480u

/* A range, taken or free. Ranges stand side by side from 0 to the end: no two free ones are neighbours, and the last is
 * taken. */
typedef struct rondo__layout_block {
    uint64_t begin, end;
    uint32_t before, after;         /* neighbours */
    uint32_t bin_before, bin_after; /* of a free one: in the list of its size */
    bool free;
} rondo__layout_block;

typedef struct rondo__layout_gaps {
    rondo__layout_block *blocks;
    uint32_t *spare; /* numbers of blocks that were given back */
    size_t capacity;
    uint32_t made, spare_count, last;
    uint32_t bins[RONDO__LAYOUT_BINS];
    uint64_t full[(RONDO__LAYOUT_BINS + 63u) / 64u];
} rondo__layout_gaps;

/* `most` ranges are taken at a time. */
RONDO_MUST_USE rondo_status rondo__layout_gaps_init(rondo__layout_gaps *gaps, const rondo_allocator *allocator,
                                                    size_t most);
void rondo__layout_gaps_deinit(rondo__layout_gaps *gaps, const rondo_allocator *allocator);
/* A range of that size, a multiple of 64 above 0; its number. */
uint32_t rondo__layout_gaps_take(rondo__layout_gaps *gaps, uint64_t bytes);
void rondo__layout_gaps_give(rondo__layout_gaps *gaps, uint32_t block);

#endif
