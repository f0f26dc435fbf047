/* SPDX-License-Identifier: Apache-2.0
 *
 * A tree of pieces of bytes with a holder each. It recurses over its own depth, which is the logarithm of the pieces. */
#include "plan/plan_ranges.h"

#include <stdlib.h>
#include <string.h>

rondo_status rondo__plan_ranges_init(rondo__plan_ranges *ranges, const rondo_allocator *allocator, size_t holders) {
    void *memory = NULL;
    memset(ranges, 0, sizeof *ranges);
    ranges->allocator = *allocator;
    ranges->cut_capacity = 2 * holders;
    RONDO__TRY(rondo__allocate_array(allocator, ranges->cut_capacity, sizeof *ranges->cuts, &memory));
    ranges->cuts = memory;
    RONDO__TRY(rondo__allocate_array(allocator, holders, sizeof *ranges->until, &memory));
    ranges->until = memory;
    return RONDO_OK;
}

void rondo__plan_ranges_deinit(rondo__plan_ranges *ranges) {
    const rondo_allocator *allocator = &ranges->allocator;
    rondo__free(allocator, ranges->whole, 2 * ranges->pieces);
    rondo__free(allocator, ranges->longest, 2 * ranges->pieces * sizeof *ranges->longest);
    rondo__free(allocator, ranges->until, ranges->cut_capacity / 2 * sizeof *ranges->until);
    rondo__free(allocator, ranges->cuts, ranges->cut_capacity * sizeof *ranges->cuts);
}

void rondo__plan_ranges_cut(rondo__plan_ranges *ranges, uint32_t holder, uint64_t begin, uint64_t end, uint32_t until) {
    ranges->cuts[ranges->cut_count++] = begin;
    ranges->cuts[ranges->cut_count++] = end;
    ranges->until[holder] = until;
}

static int plan_ranges_compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

rondo_status rondo__plan_ranges_ready(rondo__plan_ranges *ranges) {
    size_t kept = 0, pieces = 1;
    void *memory = NULL;
    if (ranges->cut_count > 0) qsort(ranges->cuts, ranges->cut_count, sizeof *ranges->cuts, plan_ranges_compare);
    for (size_t i = 0; i < ranges->cut_count; i++) {
        if (kept == 0 || ranges->cuts[kept - 1] != ranges->cuts[i]) ranges->cuts[kept++] = ranges->cuts[i];
    }
    ranges->cut_count = kept;
    while (pieces < kept) pieces *= 2;
    RONDO__TRY(rondo__allocate_array(&ranges->allocator, 2 * pieces, sizeof *ranges->longest, &memory));
    ranges->longest = memory;
    ranges->pieces = pieces;
    memset(ranges->longest, 0xff, 2 * pieces * sizeof *ranges->longest);
    RONDO__TRY(rondo__allocate_zeroed(&ranges->allocator, 2 * pieces, &memory));
    ranges->whole = memory;
    return RONDO_OK;
}

static size_t plan_ranges_piece(const rondo__plan_ranges *ranges, uint64_t cut) {
    const uint64_t *found = bsearch(&cut, ranges->cuts, ranges->cut_count, sizeof cut, plan_ranges_compare);
    return found ? (size_t)(found - ranges->cuts) : 0;
}

static uint32_t plan_ranges_longer(const rondo__plan_ranges *ranges, uint32_t a, uint32_t b) {
    if (a == RONDO__PLAN_NOBODY || b == RONDO__PLAN_NOBODY) return a == RONDO__PLAN_NOBODY ? b : a;
    return ranges->until[a] >= ranges->until[b] ? a : b;
}

/* `node` stands for the pieces [low, low + size); those of [from, to) are asked for. */
static uint32_t plan_ranges_find(const rondo__plan_ranges *ranges, size_t node, size_t low, size_t size, size_t from,
                                 size_t to) {
    if (to <= low || low + size <= from) return RONDO__PLAN_NOBODY;
    if (ranges->whole[node] || (from <= low && low + size <= to)) return ranges->longest[node];
    size_t half = size / 2;
    return plan_ranges_longer(ranges, plan_ranges_find(ranges, 2 * node, low, half, from, to),
                              plan_ranges_find(ranges, 2 * node + 1, low + half, half, from, to));
}

static void plan_ranges_put(rondo__plan_ranges *ranges, uint32_t holder, size_t node, size_t low, size_t size,
                            size_t from, size_t to) {
    if (to <= low || low + size <= from) return;
    if (from <= low && low + size <= to) {
        ranges->longest[node] = holder;
        ranges->whole[node] = 1;
        return;
    }
    for (size_t child = 2 * node; ranges->whole[node] && child < 2 * node + 2; child++) {
        ranges->longest[child] = ranges->longest[node];
        ranges->whole[child] = 1;
    }
    size_t half = size / 2;
    ranges->whole[node] = 0;
    plan_ranges_put(ranges, holder, 2 * node, low, half, from, to);
    plan_ranges_put(ranges, holder, 2 * node + 1, low + half, half, from, to);
    ranges->longest[node] = plan_ranges_longer(ranges, ranges->longest[2 * node], ranges->longest[2 * node + 1]);
}

uint32_t rondo__plan_ranges_longest(const rondo__plan_ranges *ranges, uint64_t begin, uint64_t end) {
    return plan_ranges_find(ranges, 1, 0, ranges->pieces, plan_ranges_piece(ranges, begin),
                            plan_ranges_piece(ranges, end));
}

void rondo__plan_ranges_hold(rondo__plan_ranges *ranges, uint32_t holder, uint64_t begin, uint64_t end) {
    plan_ranges_put(ranges, holder, 1, 0, ranges->pieces, plan_ranges_piece(ranges, begin),
                    plan_ranges_piece(ranges, end));
}
