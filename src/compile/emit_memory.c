/* SPDX-License-Identifier: Apache-2.0
 *
 * Temporaries and scratch as intervals of steps. A step that may run in place makes its output where an input dies. */
#include "base/checked.h"
#include "compile/emit.h"
#include "compile/plan_memory.h"

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

static void emit_memory_in_place(rondo__emit *e, uint32_t s) {
    const rondo__emit_step *step = rondo__emit_step_at(e, s);
    rondo_ir_value into = RONDO_IR_NONE, from = RONDO_IR_NONE;
    bool copy = step->copy_into != RONDO_IR_NONE || step->copy_output != RONDO__PLAN_NONE;
    if (copy || step->choice.facts.in_place_inputs == 0) return;
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
        e->values[into].chain = e->values[from].chain;
        return;
    }
}

/* A temporary that is used, and that is the head of its chain when `head`. */
static bool emit_memory_counts(const rondo__emit *e, size_t value, bool head) {
    const rondo__emit_value *v = &e->values[value];
    return v->kind == RONDO__EMIT_TEMPORARY && v->root == value && v->first <= v->last &&
           (!head || v->chain == value) && rondo__compile_bytes(e->graph, (rondo_ir_value)value) > 0;
}

/* intervals[number[head]] covers the lives of all in the chain. */
static size_t emit_memory_intervals(rondo__emit *e, rondo__layout_interval *intervals, uint32_t *number) {
    size_t count = 0;
    for (size_t i = 0; i < e->graph->values.count; i++) {
        if (!emit_memory_counts(e, i, true)) continue;
        number[i] = (uint32_t)count;
        intervals[count++] = (rondo__layout_interval){rondo__compile_bytes(e->graph, (rondo_ir_value)i),
                                                      e->values[i].first, e->values[i].last, 0};
    }
    for (size_t i = 0; i < e->graph->values.count; i++) {
        if (!emit_memory_counts(e, i, false)) continue;
        rondo__layout_interval *chain = &intervals[number[e->values[i].chain]];
        if (e->values[i].last > chain->last) chain->last = e->values[i].last;
    }
    for (size_t s = 0; s < e->steps.count; s++) {
        uint64_t bytes = rondo__emit_step_at(e, s)->choice.facts.scratch_bytes;
        if (bytes > 0) intervals[count++] = (rondo__layout_interval){bytes, (uint32_t)s, (uint32_t)s, 0};
    }
    return count;
}

/* Everything at a place of its own. */
static rondo_status emit_memory_apart(rondo__emit *e, rondo__layout_interval *intervals, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = 0;
        intervals[i].offset = e->arena_bytes;
        if (!rondo__checked_align_u64(intervals[i].bytes, RONDO__LAYOUT_ALIGNMENT, &bytes) ||
            !rondo__checked_add_u64(e->arena_bytes, bytes, &e->arena_bytes)) {
            return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "the temporaries take more bytes than can be counted");
        }
    }
    return RONDO_OK;
}

rondo_status rondo__emit_memory(rondo__emit *e) {
    rondo__compile_state *state = e->state;
    bool reuse = !(state->options.flags & RONDO_COMPILE_NO_REUSE);
    void *memory = NULL;
    uint64_t total = 0;
    for (size_t s = 0; reuse && s < e->steps.count; s++) emit_memory_in_place(e, (uint32_t)s);
    size_t most = e->graph->values.count + e->steps.count;
    RONDO__TRY(rondo__arena_allocate_array(&state->arena, most, sizeof(rondo__layout_interval), &memory));
    rondo__layout_interval *intervals = memory;
    RONDO__TRY(rondo__arena_allocate_array(&state->arena, e->graph->values.count, sizeof(uint32_t), &memory));
    uint32_t *number = memory;
    size_t count = emit_memory_intervals(e, intervals, number);
    RONDO__TRY(rondo__plan_memory(&state->allocator, intervals, count, state->options.level == RONDO_COMPILE_O3, &total,
                                  &e->arena_bound));
    e->arena_bytes = total;
    if (!reuse) {
        e->arena_bytes = 0;
        RONDO__TRY(emit_memory_apart(e, intervals, count));
    }
    for (size_t i = 0; i < e->graph->values.count; i++) {
        if (emit_memory_counts(e, i, false)) e->values[i].arena = intervals[number[e->values[i].chain]].offset;
    }
    size_t scratch = count;
    for (size_t s = e->steps.count; s-- > 0;) {
        rondo__emit_step *step = rondo__emit_step_at(e, s);
        if (step->choice.facts.scratch_bytes > 0) step->scratch_offset = intervals[--scratch].offset;
    }
    return RONDO_OK;
}
