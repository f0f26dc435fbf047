/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plan of several lanes says about order, and nothing more: a step comes after the step before it in its lane, and
 * after the steps whose events it waits for. Private to this room. */
#ifndef RONDO_SRC_PLAN_PLAN_ORDER_H
#define RONDO_SRC_PLAN_PLAN_ORDER_H

#include "plan/plan.h"

/* clocks[step * lanes + lane]: the steps of that lane with a number below it come before the step, or are it. */
typedef struct rondo__plan_order {
    rondo_allocator allocator;
    uint32_t *clocks;
    size_t size;
    uint32_t lanes;
} rondo__plan_order;

/* Lanes, waits and records have been checked: a step waits for what an earlier one records. */
RONDO_MUST_USE rondo_status rondo__plan_order_make(rondo__plan_order *order, const rondo_plan *plan);
void rondo__plan_order_deinit(rondo__plan_order *order);

/* Two steps that touch the same byte, of which one at least writes it, and neither comes before the other. */
typedef struct rondo__plan_race {
    bool found;
    uint32_t first, second;
} rondo__plan_race;
/* Looks at all bytes that steps write: the arena and the outputs. A plan without a race gives what its steps give one
 * after the other. OUT_OF_RANGE: the outputs together have more bytes than can be counted. */
RONDO_MUST_USE rondo_status rondo__plan_find_race(const rondo__plan_order *order, const rondo_plan *plan,
                                                  rondo__plan_race *out_race);

#endif
