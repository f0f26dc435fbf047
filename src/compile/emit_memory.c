/* SPDX-License-Identifier: Apache-2.0
 *
 * Temporaries and scratch as intervals of steps. A step that may run in place makes its output where an input dies. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "compile/emit.h"
#include "compile/plan_memory.h"

/* What is needed to tell the lives of storages. The arrays are there with several lanes only. */
typedef struct emit_memory {
    rondo__emit *e;
    rondo__layout_interval *intervals;
    uint32_t *number; /* of the interval of a root */
    uint32_t lanes, target;
    uint32_t *ends, *begins;             /* of each root, a number a lane, as in plan_memory.h */
    uint32_t *chain_ends, *chain_begins; /* of each interval */
    uint32_t
        *later; /* a step, a number a lane: the steps of that lane below it come before this step and all after it */
} emit_memory;

/* A whole temporary; its root. */
static bool emit_memory_temporary(const rondo__emit *e, rondo_ir_value value, rondo_ir_value *out_root) {
    uint64_t offset = 0;
    if (value == RONDO_IR_NONE) return false;
    *out_root = rondo__emit_root(e, value, &offset);
    return e->values[*out_root].kind == RONDO__EMIT_TEMPORARY && rondo__emit_is_whole(e, value);
}

/* How many operands of the step lie in the storage. */
static uint32_t emit_memory_mentions(const rondo__emit *e, const rondo__emit_step *step, rondo_ir_value root) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < step->node.input_count + step->node.output_count; i++) {
        bool input = i < step->node.input_count;
        rondo_ir_value value = input ? step->node.inputs[i] : step->node.outputs[i - step->node.input_count];
        uint64_t offset = 0;
        if (value != RONDO_IR_NONE && rondo__emit_root(e, value, &offset) == root) count++;
    }
    return count;
}

/* Whether everything that uses the storage comes before the step, but for the step itself. */
static bool emit_memory_after(const emit_memory *m, uint32_t s, rondo_ir_value root) {
    if (m->lanes == 1) return true; /* it is the last that uses it */
    const uint32_t *clock = rondo__streams_clock(&m->e->streams, s), *ends = &m->ends[(size_t)root * m->lanes];
    for (uint32_t l = 0; l < m->lanes; l++) {
        if (ends[l] > clock[l]) return false;
    }
    return true;
}

static void emit_memory_in_place(const emit_memory *m, uint32_t s) {
    rondo__emit *e = m->e;
    const rondo__emit_step *step = rondo__emit_step_at(e, s);
    rondo_ir_value into = RONDO_IR_NONE, from = RONDO_IR_NONE;
    if (rondo__emit_is_copy(step) || step->choice.facts.in_place_inputs == 0) return;
    if (!emit_memory_temporary(e, step->node.outputs[0], &into) || e->values[into].first != s) return;
    for (uint32_t i = 0; i < step->node.input_count && i < 32; i++) {
        if (!(step->choice.facts.in_place_inputs >> i & 1u)) continue;
        if (!emit_memory_temporary(e, step->node.inputs[i], &from)) continue;
        if (e->values[from].last != s || from == into || emit_memory_mentions(e, step, from) != 1) continue;
        if (rondo__compile_bytes(e->graph, from) != rondo__compile_bytes(e->graph, into)) continue;
        if (rondo__ir_value_at(e->graph, step->node.inputs[i])->type.dtype !=
            rondo__ir_value_at(e->graph, step->node.outputs[0])->type.dtype) {
            continue;
        }
        if (!emit_memory_after(m, s, from)) continue;
        e->values[into].chain = e->values[from].chain;
        return;
    }
}

/* A temporary that is used, and that is the head of its chain when `head`. */
static bool emit_memory_counts(const rondo__emit *e, size_t value, uint32_t target, bool head) {
    const rondo__emit_value *v = &e->values[value];
    return v->kind == RONDO__EMIT_TEMPORARY && v->target == target && v->root == value && v->first <= v->last &&
           (!head || v->chain == value) && rondo__compile_bytes(e->graph, (rondo_ir_value)value) > 0;
}

/* The steps of a lane that come before this one, which does not come before itself. */
static uint32_t emit_memory_before(const emit_memory *m, uint32_t s, uint32_t lane) {
    return m->e->lanes[s].lane == lane ? s : rondo__streams_clock(&m->e->streams, s)[lane];
}

static void emit_memory_use(const emit_memory *m, rondo_ir_value value, uint32_t s) {
    uint64_t offset = 0;
    rondo_ir_value root = rondo__emit_root(m->e, value, &offset);
    uint32_t *ends = &m->ends[(size_t)root * m->lanes], *begins = &m->begins[(size_t)root * m->lanes];
    ends[m->e->lanes[s].lane] = s + 1u;
    for (uint32_t l = 0; l < m->lanes; l++) {
        uint32_t before = emit_memory_before(m, s, l);
        if (before < begins[l]) begins[l] = before;
    }
}

static void emit_memory_uses(const emit_memory *m) {
    const rondo__emit *e = m->e;
    memset(m->begins, 0xff, e->graph->values.count * m->lanes * sizeof(uint32_t));
    for (uint32_t s = 0; s < e->steps.count; s++) {
        const rondo__emit_step *step = rondo__emit_step_at(e, s);
        for (uint32_t i = 0; i < step->node.input_count; i++) {
            if (step->node.inputs[i] != RONDO_IR_NONE) emit_memory_use(m, step->node.inputs[i], s);
        }
        if (step->copy_into != RONDO_IR_NONE) emit_memory_use(m, step->copy_into, s);
        if (rondo__emit_is_copy(step)) continue;
        for (uint32_t i = 0; i < step->node.output_count; i++) {
            if (step->node.outputs[i] != RONDO_IR_NONE) emit_memory_use(m, step->node.outputs[i], s);
        }
    }
    for (size_t s = e->steps.count; s-- > 0;) {
        const uint32_t *next = &m->later[(s + 1) * m->lanes];
        for (uint32_t l = 0; l < m->lanes; l++) {
            uint32_t before = emit_memory_before(m, (uint32_t)s, l);
            m->later[s * m->lanes + l] = s + 1 < e->steps.count && next[l] < before ? next[l] : before;
        }
    }
}

/* Of intervals of several values the uses of all count. */
static void emit_memory_chain(const emit_memory *m, uint32_t interval, rondo_ir_value root) {
    uint32_t *ends = &m->chain_ends[(size_t)interval * m->lanes],
             *begins = &m->chain_begins[(size_t)interval * m->lanes];
    for (uint32_t l = 0; l < m->lanes; l++) {
        uint32_t end = m->ends[(size_t)root * m->lanes + l], begin = m->begins[(size_t)root * m->lanes + l];
        if (end > ends[l]) ends[l] = end;
        if (begin < begins[l]) begins[l] = begin;
    }
}

static void emit_memory_scratch(const emit_memory *m, uint32_t interval, uint32_t s) {
    for (uint32_t l = 0; l < m->lanes; l++) {
        m->chain_ends[(size_t)interval * m->lanes + l] = m->e->lanes[s].lane == l ? s + 1u : 0;
        m->chain_begins[(size_t)interval * m->lanes + l] = emit_memory_before(m, s, l);
    }
}

/* The last step that may run while somebody still uses the bytes: behind it, all come later. */
static void emit_memory_until(const emit_memory *m, size_t interval) {
    rondo__layout_interval *v = &m->intervals[interval];
    uint32_t low = v->last + 1u, high = (uint32_t)m->e->steps.count;
    v->until = v->last;
    if (m->lanes == 1) return;
    v->ends = &m->chain_ends[interval * m->lanes];
    v->begins = &m->chain_begins[interval * m->lanes];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        bool later = true;
        for (uint32_t l = 0; l < m->lanes; l++) later = later && v->ends[l] <= m->later[(size_t)middle * m->lanes + l];
        if (later) high = middle;
        else low = middle + 1u;
    }
    v->until = low - 1u;
}

static uint64_t emit_memory_scratch_of(const emit_memory *m, size_t s) {
    const rondo__emit_step *step = rondo__emit_step_at(m->e, s);
    return rondo__emit_target(m->e, step) == m->target ? step->choice.facts.scratch_bytes : 0;
}

/* intervals[number[head]] covers the lives of all in the chain. */
static size_t emit_memory_intervals(emit_memory *m) {
    const rondo__emit *e = m->e;
    size_t count = 0;
    for (size_t i = 0; i < e->graph->values.count; i++) {
        if (!emit_memory_counts(e, i, m->target, true)) continue;
        m->number[i] = (uint32_t)count;
        m->intervals[count++] = (rondo__layout_interval){.bytes = rondo__compile_bytes(e->graph, (rondo_ir_value)i),
                                                         .first = e->values[i].first,
                                                         .last = e->values[i].last};
    }
    for (size_t i = 0; i < e->graph->values.count; i++) {
        if (!emit_memory_counts(e, i, m->target, false)) continue;
        uint32_t number = m->number[e->values[i].chain];
        rondo__layout_interval *chain = &m->intervals[number];
        if (e->values[i].last > chain->last) chain->last = e->values[i].last;
        if (m->lanes > 1) emit_memory_chain(m, number, (rondo_ir_value)i);
    }
    for (uint32_t s = 0; s < e->steps.count; s++) {
        uint64_t bytes = emit_memory_scratch_of(m, s);
        if (bytes == 0) continue;
        if (m->lanes > 1) emit_memory_scratch(m, (uint32_t)count, s);
        m->intervals[count++] = (rondo__layout_interval){.bytes = bytes, .first = s, .last = s};
    }
    for (size_t i = 0; i < count; i++) emit_memory_until(m, i);
    return count;
}

/* Everything at a place of its own. */
static rondo_status emit_memory_apart(const emit_memory *m, size_t count) {
    rondo__layout_interval *intervals = m->intervals;
    uint64_t *end = &m->e->arena_bytes[m->target];
    *end = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = 0;
        intervals[i].offset = *end;
        if (!rondo__checked_align_u64(intervals[i].bytes, RONDO__LAYOUT_ALIGNMENT, &bytes) ||
            !rondo__checked_add_u64(*end, bytes, end)) {
            return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "the temporaries take more bytes than can be counted");
        }
    }
    return RONDO_OK;
}

static rondo_status emit_memory_room(emit_memory *m) {
    rondo__arena *arena = &m->e->state->arena;
    size_t values = m->e->graph->values.count, steps = m->e->steps.count, most = values + steps;
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(arena, most, sizeof(rondo__layout_interval), &memory));
    m->intervals = memory;
    RONDO__TRY(rondo__arena_allocate_array(arena, values, sizeof(uint32_t), &memory));
    m->number = memory;
    if (m->lanes == 1) return RONDO_OK;
    size_t row = m->lanes * sizeof(uint32_t);
    RONDO__TRY(rondo__arena_allocate_array(arena, values, row, &memory));
    m->ends = memory;
    RONDO__TRY(rondo__arena_allocate_array(arena, values, row, &memory));
    m->begins = memory;
    RONDO__TRY(rondo__arena_allocate_array(arena, most, row, &memory));
    m->chain_ends = memory;
    RONDO__TRY(rondo__arena_allocate_array(arena, most, row, &memory));
    m->chain_begins = memory;
    memset(m->chain_begins, 0xff, most * row);
    RONDO__TRY(rondo__arena_allocate_array(arena, steps, row, &memory));
    m->later = memory;
    emit_memory_uses(m);
    return RONDO_OK;
}

static rondo_status emit_memory_remark(rondo__emit *e, const rondo__layout_result *result) {
    bool tried = result->largest_first != UINT64_MAX, won = tried && result->largest_first < result->in_time;
    if (result->total == 0) return RONDO_OK;
    if (!tried) {
        return rondo__compile_remark(
            e->state, "memory: in order of time %" PRIu64 " bytes, at least %" PRIu64 " needed%s", result->in_time,
            result->bound, result->in_time == result->bound ? "" : "; too many to try the largest first");
    }
    return rondo__compile_remark(e->state,
                                 "memory: in order of time %" PRIu64 " bytes, largest first %" PRIu64
                                 ", at least %" PRIu64 " needed: %s is taken",
                                 result->in_time, result->largest_first, result->bound,
                                 won ? "the latter" : "the former");
}

static rondo_status emit_memory_target(emit_memory *m, bool reuse) {
    rondo__emit *e = m->e;
    rondo__layout_result result;
    size_t count = emit_memory_intervals(m);
    RONDO__TRY(rondo__plan_memory(&e->state->allocator, m->intervals, count, m->lanes,
                                  e->state->options.level == RONDO_COMPILE_O3, &result));
    e->arena_bytes[m->target] = result.total;
    e->arena_bound[m->target] = result.bound;
    RONDO__TRY(reuse ? emit_memory_remark(e, &result) : emit_memory_apart(m, count));
    for (size_t i = 0; i < e->graph->values.count; i++) {
        if (!emit_memory_counts(e, i, m->target, false)) continue;
        e->values[i].arena = m->intervals[m->number[e->values[i].chain]].offset;
    }
    for (size_t s = e->steps.count; s-- > 0;) {
        if (emit_memory_scratch_of(m, s) > 0) rondo__emit_step_at(e, s)->scratch_offset = m->intervals[--count].offset;
    }
    return RONDO_OK;
}

rondo_status rondo__emit_memory(rondo__emit *e) {
    emit_memory m = {.e = e, .lanes = e->streams.lanes > 1 ? e->streams.lanes : 1u};
    bool reuse = !(e->state->options.flags & RONDO_COMPILE_NO_REUSE);
    RONDO__TRY(emit_memory_room(&m));
    for (size_t s = 0; reuse && s < e->steps.count; s++) emit_memory_in_place(&m, (uint32_t)s);
    for (; m.target < e->state->targets->count; m.target++) RONDO__TRY(emit_memory_target(&m, reuse));
    return RONDO_OK;
}
