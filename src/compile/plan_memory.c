/* SPDX-License-Identifier: Apache-2.0
 *
 * Placing intervals: the tightest gap among the ranges of those that live at the same time, in two orders. */
#include "compile/plan_memory.h"

#include <stdlib.h>

#include "base/checked.h"

/* Largest first looks at everything placed so far: beyond this it costs more than it saves. */
#define LAYOUT_LARGEST_FIRST_MAX 4096u

typedef struct layout_order {
    uint64_t bytes; /* aligned */
    uint64_t offset;
    uint32_t first, last;
    uint32_t index;
} layout_order;

typedef struct layout_range {
    uint64_t begin, end;
} layout_range;

typedef struct layout_plan {
    layout_order *order;
    size_t count;
    layout_range *ranges; /* of the placed neighbours, sorted */
    uint32_t *active;     /* places in order, in time order */
} layout_plan;

static int layout_by_time(const void *a, const void *b) {
    const layout_order *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index ? 1 : 0;
}

static int layout_by_size(const void *a, const void *b) {
    const layout_order *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    uint32_t long_x = x->last - x->first, long_y = y->last - y->first;
    if (long_x != long_y) return long_x > long_y ? -1 : 1;
    return layout_by_time(a, b);
}

static int layout_by_begin(const void *a, const void *b) {
    const layout_range *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin ? 1 : 0;
}

/* The tightest gap that holds `bytes`, else the end. */
static uint64_t layout_fit(layout_range *ranges, size_t count, uint64_t bytes) {
    uint64_t end = 0, best = 0, best_gap = UINT64_MAX;
    if (count > 0) qsort(ranges, count, sizeof *ranges, layout_by_begin);
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].begin > end && ranges[i].begin - end >= bytes && ranges[i].begin - end < best_gap) {
            best = end;
            best_gap = ranges[i].begin - end;
        }
        if (ranges[i].end > end) end = ranges[i].end;
    }
    return best_gap != UINT64_MAX ? best : end;
}

static uint64_t layout_largest_first(layout_plan *p) {
    uint64_t total = 0;
    qsort(p->order, p->count, sizeof *p->order, layout_by_size);
    for (size_t i = 0; i < p->count; i++) {
        layout_order *now = &p->order[i];
        size_t near = 0;
        for (size_t k = 0; k < i; k++) {
            const layout_order *other = &p->order[k];
            if (other->first > now->last || other->last < now->first) continue;
            p->ranges[near++] = (layout_range){other->offset, other->offset + other->bytes};
        }
        now->offset = layout_fit(p->ranges, near, now->bytes);
        if (now->offset + now->bytes > total) total = now->offset + now->bytes;
    }
    return total;
}

static uint64_t layout_in_time(layout_plan *p, uint64_t *out_bound) {
    uint64_t total = 0, alive = 0, bound = 0;
    size_t active = 0;
    qsort(p->order, p->count, sizeof *p->order, layout_by_time);
    for (size_t i = 0; i < p->count; i++) {
        layout_order *now = &p->order[i];
        size_t kept = 0;
        for (size_t k = 0; k < active; k++) {
            const layout_order *other = &p->order[p->active[k]];
            if (other->last < now->first) {
                alive -= other->bytes;
                continue;
            }
            p->ranges[kept] = (layout_range){other->offset, other->offset + other->bytes};
            p->active[kept++] = p->active[k];
        }
        now->offset = layout_fit(p->ranges, kept, now->bytes);
        if (now->offset + now->bytes > total) total = now->offset + now->bytes;
        alive += now->bytes;
        if (alive > bound) bound = alive;
        p->active[kept++] = (uint32_t)i;
        active = kept;
    }
    *out_bound = bound;
    return total;
}

/* Nothing overflows below: the sum of all is known to fit. */
static rondo_status layout_prepare(layout_plan *p, const rondo__layout_interval *intervals) {
    uint64_t sum = 0;
    for (size_t i = 0; i < p->count; i++) {
        uint64_t bytes = 0;
        if (!rondo__checked_align_u64(intervals[i].bytes, RONDO__LAYOUT_ALIGNMENT, &bytes) ||
            !rondo__checked_add_u64(sum, bytes, &sum)) {
            return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "the temporaries take more bytes than can be counted");
        }
        p->order[i] = (layout_order){bytes, 0, intervals[i].first, intervals[i].last, (uint32_t)i};
    }
    return RONDO_OK;
}

static void layout_keep(const layout_plan *p, rondo__layout_interval *intervals) {
    for (size_t i = 0; i < p->count; i++) intervals[p->order[i].index].offset = p->order[i].offset;
}

rondo_status rondo__plan_memory(const rondo_allocator *allocator, rondo__layout_interval *intervals, size_t count,
                                uint64_t *out_total, uint64_t *out_bound) {
    layout_plan p = {.count = count};
    void *order = NULL, *ranges = NULL, *active = NULL;
    *out_total = *out_bound = 0;
    if (count == 0) return RONDO_OK;
    if (count >= UINT32_MAX) return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "%zu temporaries are too many", count);
    rondo_status status = rondo__allocate_array(allocator, count, sizeof(layout_order), &order);
    if (!status) status = rondo__allocate_array(allocator, count, sizeof(layout_range), &ranges);
    if (!status) status = rondo__allocate_array(allocator, count, sizeof(uint32_t), &active);
    p.order = order;
    p.ranges = ranges;
    p.active = active;
    if (!status) status = layout_prepare(&p, intervals);
    if (!status) {
        *out_total = layout_in_time(&p, out_bound);
        layout_keep(&p, intervals);
        if (*out_total > *out_bound && count <= LAYOUT_LARGEST_FIRST_MAX) {
            uint64_t other = layout_largest_first(&p);
            if (other < *out_total) {
                *out_total = other;
                layout_keep(&p, intervals);
            }
        }
    }
    rondo__free(allocator, active, count * sizeof(uint32_t));
    rondo__free(allocator, ranges, count * sizeof(layout_range));
    rondo__free(allocator, order, count * sizeof(layout_order));
    return status;
}
