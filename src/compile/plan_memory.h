/* SPDX-License-Identifier: Apache-2.0
 *
 * Where temporaries lie: intervals of steps in, offsets out. A pure function that knows nothing of graphs or plans. */
#ifndef RONDO_SRC_COMPILE_PLAN_MEMORY_H
#define RONDO_SRC_COMPILE_PLAN_MEMORY_H

#include "base/allocator.h"

#define RONDO__LAYOUT_ALIGNMENT 64u

/* With several lanes, `ends` and `begins` have a number a lane: ends[lane] is the last step + 1 of that lane that uses the
 * bytes, 0 for none; begins[lane] is the last step + 1 of that lane that comes before all steps that use them. */
typedef struct rondo__layout_interval {
    uint64_t bytes;
    uint32_t first, last; /* steps, both included; first <= last */
    uint32_t until;       /* not below last: all later steps come after those that use the bytes. One lane: last */
    const uint32_t *ends, *begins; /* null with one lane */
    uint64_t offset;               /* out: aligned to RONDO__LAYOUT_ALIGNMENT */
} rondo__layout_interval;

typedef struct rondo__layout_result {
    uint64_t total;
    uint64_t bound;         /* the most that is alive at one step: no plan is smaller */
    uint64_t in_time;       /* what the two ways took; */
    uint64_t largest_first; /* UINT64_MAX: it was not tried */
} rondo__layout_result;

/* Intervals that share a step get distinct ranges, and with several lanes all of which one does not surely end before the
 * other begins. Two ways are tried, largest first and in order of time, each into
 * the tightest gap; the smaller result is kept. In order of time costs count * log count; largest first looks at every
 * pair, so it is tried for small counts only, unless `thorough`. OUT_OF_RANGE when the sum overflows. */
RONDO_MUST_USE rondo_status rondo__plan_memory(const rondo_allocator *allocator, rondo__layout_interval *intervals,
                                               size_t count, uint32_t lanes, bool thorough,
                                               rondo__layout_result *out_result);

#endif
