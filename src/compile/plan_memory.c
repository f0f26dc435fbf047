/* SPDX-License-Identifier: Apache-2.0
 *
 * Placing intervals: the tightest gap among the ranges of those that live at the same time, in two orders. */
#include "compile/plan_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "compile/plan_memory_gaps.h"

/* Largest first looks at everything placed so far: beyond this it costs more than it saves. */
#define LAYOUT_LARGEST_FIRST_MAX 4096u

typedef struct layout_order {
    uint64_t bytes; /* aligned */
    uint64_t offset;
    uint32_t first, last, until;
    uint32_t index;
    const uint32_t *ends, *begins;
} layout_order;

typedef struct layout_plan {
    layout_order *order;
    size_t count;
    uint32_t lanes;
    uint32_t *numbers; /* places in order: by offset while the largest come first, by their end in time order */
    uint32_t *blocks;  /* in time order: the range of each */
    rondo__layout_gaps gaps;
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

/* The tightest gap that holds `bytes` between ranges that begin ever later, else the end. */
typedef struct layout_fit {
    uint64_t bytes, end, best, best_gap;
} layout_fit;

static void layout_fit_add(layout_fit *fit, const layout_order *range) {
    if (range->offset > fit->end && range->offset - fit->end >= fit->bytes &&
        range->offset - fit->end < fit->best_gap) {
        fit->best = fit->end;
        fit->best_gap = range->offset - fit->end;
    }
    if (range->offset + range->bytes > fit->end) fit->end = range->offset + range->bytes;
}

/* Whether the one surely ends before the other begins. */
static bool layout_before(const layout_plan *p, const layout_order *one, const layout_order *other) {
    if (p->lanes == 1) return one->last < other->first;
    for (uint32_t l = 0; l < p->lanes; l++) {
        if (one->ends[l] > other->begins[l]) return false;
    }
    return true;
}

static uint64_t layout_largest_first(layout_plan *p) {
    uint64_t total = 0;
    qsort(p->order, p->count, sizeof *p->order, layout_by_size);
    for (size_t i = 0; i < p->count; i++) {
        layout_order *now = &p->order[i];
        layout_fit fit = {now->bytes, 0, 0, UINT64_MAX};
        for (size_t k = 0; k < i; k++) {
            const layout_order *other = &p->order[p->numbers[k]];
            if (!layout_before(p, other, now) && !layout_before(p, now, other)) layout_fit_add(&fit, other);
        }
        now->offset = fit.best_gap != UINT64_MAX ? fit.best : fit.end;
        if (now->offset + now->bytes > total) total = now->offset + now->bytes;
        size_t at = i;
        while (at > 0 && p->order[p->numbers[at - 1]].offset > now->offset) at--;
        memmove(&p->numbers[at + 1], &p->numbers[at], (i - at) * sizeof *p->numbers);
        p->numbers[at] = (uint32_t)i;
    }
    return total;
}

static uint32_t layout_end(const layout_order *interval, bool until) {
    return until ? interval->until : interval->last;
}

/* The places in order by the step of their end: merged, as qsort knows no context. */
static void layout_by_end(layout_plan *p, bool until) {
    const layout_order *order = p->order;
    uint32_t *numbers = p->numbers, *spare = p->blocks;
    for (size_t i = 0; i < p->count; i++) numbers[i] = (uint32_t)i;
    for (size_t width = 1; width < p->count; width *= 2) {
        for (size_t begin = 0; begin < p->count; begin += 2 * width) {
            size_t middle = begin + width < p->count ? begin + width : p->count;
            size_t end = begin + 2 * width < p->count ? begin + 2 * width : p->count;
            for (size_t a = begin, b = middle, to = begin; to < end; to++) {
                bool left = b == end || (a < middle && layout_end(&order[numbers[a]], until) <=
                                                           layout_end(&order[numbers[b]], until));
                spare[to] = left ? numbers[a++] : numbers[b++];
            }
        }
        memcpy(numbers, spare, p->count * sizeof *numbers);
    }
}

/* In order of time. */
static uint64_t layout_most_alive(layout_plan *p) {
    uint64_t alive = 0, most = 0;
    size_t ended = 0;
    layout_by_end(p, false);
    for (size_t i = 0; i < p->count; i++) {
        while (p->order[p->numbers[ended]].last < p->order[i].first) alive -= p->order[p->numbers[ended++]].bytes;
        alive += p->order[i].bytes;
        if (alive > most) most = alive;
    }
    return most;
}

static uint64_t layout_in_time(layout_plan *p, uint64_t *out_bound) {
    uint64_t total = 0;
    size_t ended = 0;
    qsort(p->order, p->count, sizeof *p->order, layout_by_time);
    *out_bound = layout_most_alive(p);
    if (p->lanes > 1) layout_by_end(p, true);
    for (size_t i = 0; i < p->count; i++) {
        layout_order *now = &p->order[i];
        while (p->order[p->numbers[ended]].until < now->first) {
            uint32_t other = p->numbers[ended++];
            if (p->order[other].bytes > 0) rondo__layout_gaps_give(&p->gaps, p->blocks[other]);
        }
        now->offset = 0;
        if (now->bytes == 0) continue;
        p->blocks[i] = rondo__layout_gaps_take(&p->gaps, now->bytes);
        now->offset = p->gaps.blocks[p->blocks[i]].begin;
        if (now->offset + now->bytes > total) total = now->offset + now->bytes;
    }
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
        const rondo__layout_interval *v = &intervals[i];
        p->order[i] = (layout_order){bytes, 0, v->first, v->last, v->until, (uint32_t)i, v->ends, v->begins};
    }
    return RONDO_OK;
}

static void layout_keep(const layout_plan *p, rondo__layout_interval *intervals) {
    for (size_t i = 0; i < p->count; i++) intervals[p->order[i].index].offset = p->order[i].offset;
}

static void layout_plan_memory(layout_plan *p, rondo__layout_interval *intervals, bool thorough,
                               rondo__layout_result *out) {
    out->total = out->in_time = layout_in_time(p, &out->bound);
    layout_keep(p, intervals);
    if (out->total == out->bound || (p->count > LAYOUT_LARGEST_FIRST_MAX && !thorough)) return;
    out->largest_first = layout_largest_first(p);
    if (out->largest_first >= out->total) return;
    out->total = out->largest_first;
    layout_keep(p, intervals);
}

rondo_status rondo__plan_memory(const rondo_allocator *allocator, rondo__layout_interval *intervals, size_t count,
                                uint32_t lanes, bool thorough, rondo__layout_result *out_result) {
    layout_plan p = {.count = count, .lanes = lanes};
    void *order = NULL, *numbers = NULL, *blocks = NULL;
    *out_result = (rondo__layout_result){.largest_first = UINT64_MAX};
    if (count == 0) return RONDO_OK;
    if (count >= UINT32_MAX / 2u) return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "%zu temporaries are too many", count);
    rondo_status status = rondo__layout_gaps_init(&p.gaps, allocator, count);
    if (!status) status = rondo__allocate_array(allocator, count, sizeof(layout_order), &order);
    if (!status) status = rondo__allocate_array(allocator, count, sizeof(uint32_t), &numbers);
    if (!status) status = rondo__allocate_array(allocator, count, sizeof(uint32_t), &blocks);
    p.order = order;
    p.numbers = numbers;
    p.blocks = blocks;
    if (!status) status = layout_prepare(&p, intervals);
    if (!status) layout_plan_memory(&p, intervals, thorough, out_result);
    rondo__free(allocator, blocks, count * sizeof(uint32_t));
    rondo__free(allocator, numbers, count * sizeof(uint32_t));
    rondo__free(allocator, order, count * sizeof(layout_order));
    rondo__layout_gaps_deinit(&p.gaps, allocator);
    return status;
}
