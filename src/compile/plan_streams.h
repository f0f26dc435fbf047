/* SPDX-License-Identifier: Apache-2.0
 *
 * Which step runs in which lane, and what it waits for: dependencies in, lanes and waits out. A pure function that knows
 * nothing of graphs or plans. */
#ifndef RONDO_SRC_COMPILE_PLAN_STREAMS_H
#define RONDO_SRC_COMPILE_PLAN_STREAMS_H

#include "base/buffer.h"

typedef struct rondo__streams_step {
    uint64_t cost;                   /* about how long it takes, in nanoseconds */
    uint32_t first_need, need_count; /* of `needs`: earlier steps that it comes after; any order, some may be twice */
    uint32_t lane;                   /* out */
    uint32_t first_wait, wait_count; /* out: of `waits`: the steps of other lanes that it waits for */
    bool awaited;                    /* out: a step of another lane waits for it */
} rondo__streams_step;

typedef struct rondo__streams {
    rondo__buffer waits; /* uint32_t, numbers of steps */
    rondo__buffer clocks;
    uint32_t lanes;            /* that are used */
    uint32_t stride;           /* of the clocks */
    uint64_t serial, parallel; /* how long all steps take one after the other, and in their lanes */
} rondo__streams;

void rondo__streams_init(rondo__streams *streams, const rondo_allocator *allocator);
void rondo__streams_deinit(rondo__streams *streams);

/* Steps stand in an order in which they may run one after the other. A step goes on in the lane of something that it needs
 * where that came last there, else into a lane of its own, at most `lanes_max` in all. The waits are the fewest for these
 * lanes that order what the needs order, and order nothing else: one that another implies is left out. */
RONDO_MUST_USE rondo_status rondo__plan_streams(rondo__streams *streams, rondo__streams_step *steps, uint32_t count,
                                                const uint32_t *needs, uint32_t lanes_max, uint64_t wait_cost);
/* clock[lane]: the steps of that lane with a number below it come before the step, or are it. */
static inline const uint32_t *rondo__streams_clock(const rondo__streams *streams, uint32_t step) {
    return RONDO__BUFFER_AT(&streams->clocks, const uint32_t, (size_t)step * streams->stride);
}

#endif
