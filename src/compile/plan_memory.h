/* SPDX-License-Identifier: Apache-2.0
 *
 * Where temporaries lie: intervals of steps in, offsets out. A pure function that knows nothing of graphs or plans. */
#ifndef RONDO_SRC_COMPILE_PLAN_MEMORY_H
#define RONDO_SRC_COMPILE_PLAN_MEMORY_H

#include "base/allocator.h"

#define RONDO__LAYOUT_ALIGNMENT 64u

typedef struct rondo__layout_interval {
    uint64_t bytes;
    uint32_t first, last; /* steps, both included; first <= last */
    uint64_t offset;      /* out: aligned to RONDO__LAYOUT_ALIGNMENT */
} rondo__layout_interval;

/* Intervals that share a step get distinct ranges. Two ways are tried, largest first and in order of time, each into
 * the tightest gap; the smaller result is kept. In order of time costs count * log count; largest first looks at every
 * pair, so it is tried for small counts only, unless `thorough`. *out_bound is the most that is alive at one step: no plan is smaller.
 * OUT_OF_RANGE when the sum overflows. */
RONDO_MUST_USE rondo_status rondo__plan_memory(const rondo_allocator *allocator, rondo__layout_interval *intervals,
                                               size_t count, bool thorough, uint64_t *out_total, uint64_t *out_bound);

#endif
