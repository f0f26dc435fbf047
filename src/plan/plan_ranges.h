/* SPDX-License-Identifier: Apache-2.0
 *
 * Who holds which bytes until when: ranges are put one over the other, and the longest holder of any byte of a range is
 * found in time that grows with the logarithm of their number. Private to this room. */
#ifndef RONDO_SRC_PLAN_PLAN_RANGES_H
#define RONDO_SRC_PLAN_PLAN_RANGES_H

#include "base/allocator.h"

#define RONDO__PLAN_NOBODY UINT32_MAX

/* A tree over the pieces between all places where a range begins or ends. */
typedef struct rondo__plan_ranges {
    rondo_allocator allocator;
    uint64_t *cuts; /* sorted, none twice */
    size_t cut_count, cut_capacity;
    uint32_t *longest; /* a node: who holds a piece below it longest; the pieces come after the inner nodes */
    uint8_t *whole;    /* a node: its holder has all of it, whatever stands below */
    size_t pieces;     /* a power of two */
    uint32_t *until;   /* a holder: the last step */
} rondo__plan_ranges;

/* Holder i has the bytes [begins[i], ends[i]), none of them empty, until step until[i]. */
RONDO_MUST_USE rondo_status rondo__plan_ranges_init(rondo__plan_ranges *ranges, const rondo_allocator *allocator,
                                                    size_t holders);
/* Before the first of the two below. */
void rondo__plan_ranges_cut(rondo__plan_ranges *ranges, uint32_t holder, uint64_t begin, uint64_t end, uint32_t until);
RONDO_MUST_USE rondo_status rondo__plan_ranges_ready(rondo__plan_ranges *ranges);
uint32_t rondo__plan_ranges_longest(const rondo__plan_ranges *ranges, uint64_t begin, uint64_t end);
/* The holder has these bytes from now on. */
void rondo__plan_ranges_hold(rondo__plan_ranges *ranges, uint32_t holder, uint64_t begin, uint64_t end);
void rondo__plan_ranges_deinit(rondo__plan_ranges *ranges);

#endif
