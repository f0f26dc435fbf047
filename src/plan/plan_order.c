/* SPDX-License-Identifier: Apache-2.0
 *
 * Clocks of the steps, and the search for races. Each lane is looked at alone: while all steps pass in their order, two
 * trees know which step of the lane touched a byte last, and which wrote it last. Whoever touches the byte afterwards must
 * come after that one, and so comes after all before it. Time grows with the logarithm of the pieces that are touched. */
#include "plan/plan_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

rondo_status rondo__plan_order_make(rondo__plan_order *order, const rondo_plan *plan) {
    uint32_t lanes = plan->lane_count, last[RONDO__PLAN_LANES_MAX];
    void *memory = NULL, *recorders_memory = NULL;
    *order = (rondo__plan_order){.allocator = plan->allocator, .lanes = lanes};
    RONDO__TRY(rondo__allocate_array(&plan->allocator, (size_t)plan->step_count * lanes, sizeof(uint32_t), &memory));
    order->clocks = memory;
    order->size = (size_t)plan->step_count * lanes * sizeof(uint32_t);
    RONDO__TRY(rondo__allocate_array(&plan->allocator, plan->event_count, sizeof(uint32_t), &recorders_memory));
    uint32_t *recorders = recorders_memory;
    memset(last, 0xff, sizeof last);
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const rondo__plan_step *step = &plan->steps[s];
        uint32_t *clock = &order->clocks[(size_t)s * lanes];
        if (last[step->lane] == RONDO__PLAN_NONE) memset(clock, 0, lanes * sizeof *clock);
        else memcpy(clock, &order->clocks[(size_t)last[step->lane] * lanes], lanes * sizeof *clock);
        for (uint32_t w = 0; w < step->wait_count; w++) {
            const uint32_t *other = &order->clocks[(size_t)recorders[step->waits[w]] * lanes];
            for (uint32_t l = 0; l < lanes; l++) clock[l] = clock[l] > other[l] ? clock[l] : other[l];
        }
        clock[step->lane] = s + 1u;
        last[step->lane] = s;
        if (step->record != RONDO__PLAN_NONE) recorders[step->record] = s;
    }
    rondo__free(&plan->allocator, recorders_memory, plan->event_count * sizeof(uint32_t));
    return RONDO_OK;
}

void rondo__plan_order_deinit(rondo__plan_order *order) { rondo__free(&order->allocator, order->clocks, order->size); }

/* --------------------------------------------------------------------------------------------------------- races */

typedef struct race_access {
    uint64_t begin, end;
    uint32_t step, write;
} race_access;

/* A node of a tree: the last step + 1 that touched all of its pieces at once, and that touched any of them. */
typedef struct race_node {
    uint32_t all, any;
} race_node;

typedef struct race_search {
    const rondo_plan *plan;
    const rondo__plan_order *order;
    race_access *accesses;
    uint64_t *cuts;   /* sorted, none twice */
    race_node *trees; /* touched, then written */
    size_t count, cut_count, pieces, capacity, tree_size;
} race_search;

static bool race_written(const rondo__plan_buffer *buffer) {
    return buffer->kind == RONDO__PLAN_OUTPUT || buffer->kind == RONDO__PLAN_TEMPORARY;
}

/* Outputs lie behind the arena, one after the other, in the order of their slots. */
static void race_add(race_search *r, const uint64_t *outputs, const rondo__plan_operand *operand, uint32_t step,
                     bool write) {
    if (operand->buffer == RONDO__PLAN_NONE || operand->bytes == 0) return;
    const rondo__plan_buffer *buffer = &r->plan->buffers[operand->buffer];
    if (!race_written(buffer)) return;
    uint64_t base = buffer->kind == RONDO__PLAN_OUTPUT ? outputs[buffer->slot] : buffer->offset;
    r->accesses[r->count++] =
        (race_access){base + operand->offset, base + operand->offset + operand->bytes, step, write};
}

static rondo_status race_collect(race_search *r, uint64_t *outputs) {
    const rondo_plan *p = r->plan;
    uint64_t end = p->arena_bytes;
    for (uint32_t i = 0; i < p->output_count; i++) {
        outputs[i] = end;
        if (!rondo__checked_add_u64(end, p->outputs[i].bytes, &end)) {
            return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "the outputs have more bytes than can be counted");
        }
    }
    for (uint32_t s = 0; s < p->step_count; s++) {
        const rondo__plan_step *step = &p->steps[s];
        for (uint32_t i = 0; i < step->input_count; i++) race_add(r, outputs, &step->inputs[i], s, false);
        for (uint32_t i = 0; i < step->output_count; i++) race_add(r, outputs, &step->outputs[i], s, true);
        if (step->scratch_bytes == 0) continue;
        r->accesses[r->count++] =
            (race_access){step->scratch_offset, step->scratch_offset + step->scratch_bytes, s, true};
    }
    return RONDO_OK;
}

static int race_compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static size_t race_piece(const race_search *r, uint64_t cut) {
    const uint64_t *found = bsearch(&cut, r->cuts, r->cut_count, sizeof cut, race_compare);
    return (size_t)(found - r->cuts);
}

/* From here on `begin` and `end` are pieces between cuts. */
static void race_cut(race_search *r) {
    size_t kept = 0;
    for (size_t i = 0; i < r->count; i++) {
        r->cuts[2 * i] = r->accesses[i].begin;
        r->cuts[2 * i + 1] = r->accesses[i].end;
    }
    qsort(r->cuts, 2 * r->count, sizeof *r->cuts, race_compare);
    for (size_t i = 0; i < 2 * r->count; i++) {
        if (kept == 0 || r->cuts[kept - 1] != r->cuts[i]) r->cuts[kept++] = r->cuts[i];
    }
    r->cut_count = kept;
    for (size_t i = 0; i < r->count; i++) {
        r->accesses[i].begin = race_piece(r, r->accesses[i].begin);
        r->accesses[i].end = race_piece(r, r->accesses[i].end);
    }
}

static uint32_t race_max(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* The way up from both ends of the pieces [begin, end): what was done to nodes above counts, too. */
static uint32_t race_last(const race_search *r, const race_node *tree, const race_access *access) {
    size_t low = access->begin + r->pieces, high = access->end - 1u + r->pieces;
    uint32_t last = 0;
    for (size_t node = low; node; node /= 2) last = race_max(last, tree[node].all);
    for (size_t node = high; node; node /= 2) last = race_max(last, tree[node].all);
    for (high++; low < high; low /= 2, high /= 2) {
        if (low & 1u) last = race_max(last, tree[low++].any);
        if (high & 1u) last = race_max(last, tree[--high].any);
    }
    return last;
}

static void race_mark(race_node *tree, size_t node, uint32_t step) {
    tree[node].all = step;
    for (; node; node /= 2) tree[node].any = step;
}

/* Steps come in their order, so what is put is always the last. */
static void race_put(const race_search *r, race_node *tree, const race_access *access) {
    for (size_t low = access->begin + r->pieces, high = access->end + r->pieces; low < high; low /= 2, high /= 2) {
        if (low & 1u) race_mark(tree, low++, access->step + 1u);
        if (high & 1u) race_mark(tree, --high, access->step + 1u);
    }
}

static void race_look(const race_search *r, uint32_t lane, rondo__plan_race *out_race) {
    race_node *touched = r->trees, *written = r->trees + 2 * r->pieces;
    memset(r->trees, 0, r->tree_size);
    for (size_t i = 0; i < r->count; i++) {
        const race_access *access = &r->accesses[i];
        if (r->plan->steps[access->step].lane == lane) {
            race_put(r, touched, access);
            if (access->write) race_put(r, written, access);
            continue;
        }
        uint32_t last = race_last(r, access->write ? touched : written, access);
        if (last <= r->order->clocks[(size_t)access->step * r->order->lanes + lane]) continue;
        *out_race = (rondo__plan_race){true, last - 1u, access->step};
        return;
    }
}

static rondo_status race_search_all(race_search *r, rondo__plan_race *out_race) {
    const rondo_allocator *allocator = &r->plan->allocator;
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_array(allocator, r->capacity, sizeof *r->accesses, &memory));
    r->accesses = memory;
    RONDO__TRY(rondo__allocate_array(allocator, r->capacity, 2 * sizeof *r->cuts, &memory));
    r->cuts = memory;
    RONDO__TRY(rondo__allocate_array(allocator, r->plan->output_count, sizeof(uint64_t), &memory));
    rondo_status status = race_collect(r, memory);
    rondo__free(allocator, memory, r->plan->output_count * sizeof(uint64_t));
    if (status || r->count == 0) return status;
    race_cut(r);
    for (r->pieces = 1; r->pieces < r->cut_count;) r->pieces *= 2;
    RONDO__TRY(rondo__allocate_array(allocator, r->pieces, 4 * sizeof *r->trees, &memory));
    r->trees = memory;
    r->tree_size = r->pieces * 4 * sizeof *r->trees;
    for (uint32_t lane = 0; lane < r->order->lanes && !out_race->found; lane++) race_look(r, lane, out_race);
    return RONDO_OK;
}

rondo_status rondo__plan_find_race(const rondo__plan_order *order, const rondo_plan *plan, rondo__plan_race *out_race) {
    race_search looked = {.plan = plan, .order = order};
    *out_race = (rondo__plan_race){false, 0, 0};
    for (uint32_t s = 0; s < plan->step_count; s++) {
        looked.capacity += (size_t)plan->steps[s].input_count + plan->steps[s].output_count + 1u;
    }
    rondo_status status = race_search_all(&looked, out_race);
    rondo__free(&plan->allocator, looked.trees, looked.tree_size);
    rondo__free(&plan->allocator, looked.cuts, looked.capacity * 2 * sizeof *looked.cuts);
    rondo__free(&plan->allocator, looked.accesses, looked.capacity * sizeof *looked.accesses);
    return status;
}
