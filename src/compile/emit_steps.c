/* SPDX-License-Identifier: Apache-2.0
 *
 * Which steps there are, in which order, and whose kernel runs each. All nodes without a kernel are told at once. */
#include <string.h>

#include "compile/emit.h"

static rondo_status emit_steps_append(rondo__emit *e, rondo_ir_node from) {
    rondo__emit_step step = {.node = *rondo__ir_node_at(e->graph, from),
                             .copy_into = RONDO_IR_NONE,
                             .copy_output = RONDO__PLAN_NONE,
                             .from = from,
                             .segment = e->node_segments ? e->node_segments[from] : 0};
    return rondo__buffer_append(&e->steps, &step, 1);
}

/* A copy reads one value and writes somewhere else what has the same sizes. */
static rondo_status emit_steps_copy(rondo__emit *e, rondo_ir_value value, rondo_ir_value into, uint64_t offset,
                                    uint32_t output, uint32_t segment) {
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&e->state->arena, 2, sizeof(rondo_ir_value), &memory));
    rondo_ir_value *operands = memory;
    operands[0] = operands[1] = value;
    rondo__emit_step step = {
        .copy_into = into, .copy_offset = offset, .copy_output = output, .from = RONDO_IR_NONE, .segment = segment};
    step.node.operator_name = "Identity";
    step.node.name = rondo__ir_value_at(e->graph, value)->name;
    step.node.inputs = operands;
    step.node.outputs = operands + 1;
    step.node.input_count = step.node.output_count = 1;
    return rondo__buffer_append(&e->steps, &step, 1);
}

static rondo_status emit_steps_parts(rondo__emit *e, rondo_ir_node n) {
    const rondo__ir_node_data *node = rondo__ir_node_at(e->graph, n);
    uint32_t segment = e->node_segments ? e->node_segments[n] : 0;
    uint64_t base = 0, at = 0, offset = 0;
    rondo_ir_value whole = rondo__emit_root(e, node->outputs[0], &base);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == RONDO_IR_NONE) continue;
        uint64_t bytes = rondo__compile_bytes(e->graph, node->inputs[i]);
        bool there = rondo__emit_root(e, node->inputs[i], &offset) == whole && offset == base + at;
        if (bytes > 0 && !there) {
            RONDO__TRY(emit_steps_copy(e, node->inputs[i], whole, base + at, RONDO__PLAN_NONE, segment));
        }
        at += bytes;
    }
    return rondo__compile_remark(e->state, "node '%s': its parts are made where they belong", node->name);
}

static bool emit_steps_is_empty(const rondo__emit *e, const rondo__ir_node_data *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != RONDO_IR_NONE && rondo__compile_bytes(e->graph, node->outputs[i]) > 0) return false;
    }
    return true;
}

static rondo_status emit_steps_list(rondo__emit *e) {
    for (size_t i = 0; i < e->graph->nodes.count; i++) {
        rondo_ir_node n = e->node_order ? e->node_order[i] : (rondo_ir_node)i;
        const rondo__ir_node_data *node = rondo__ir_node_at(e->graph, n);
        if (node->dead || e->nodes[n] == RONDO__EMIT_NODE_VIEW || emit_steps_is_empty(e, node)) continue;
        if (e->nodes[n] == RONDO__EMIT_NODE_PARTS) {
            RONDO__TRY(emit_steps_parts(e, n));
        } else {
            RONDO__TRY(emit_steps_append(e, n));
        }
    }
    for (uint32_t i = 0; i < e->graph->outputs.count; i++) {
        rondo_ir_value value = e->output_copies[i];
        if (value == RONDO_IR_NONE || rondo__compile_bytes(e->graph, value) == 0) continue;
        if (e->segment_targets && e->segment_targets[e->segment_count - 1u] != 0)
            e->segment_count++; /* there is room */
        RONDO__TRY(emit_steps_copy(e, value, RONDO_IR_NONE, 0, i, e->segment_count - 1u));
        RONDO__TRY(rondo__compile_remark(e->state, "output '%s' is copied: it %s",
                                         *RONDO__BUFFER_AT(&e->graph->output_names, const char *, i),
                                         "is an input, a constant, a piece of something or another output as well"));
    }
    return RONDO_OK;
}

/* ---------------------------------------------------------------------------------------------- who runs it */

static rondo_status emit_steps_choose(rondo__emit *e) {
    rondo_status all = RONDO_OK;
    uint32_t failed = 0;
    for (size_t s = 0; s < e->steps.count; s++) {
        rondo__emit_step *step = rondo__emit_step_at(e, s);
        rondo_status status = RONDO_OK;
        if (rondo__emit_is_transfer(step)) continue;
        if ((uint64_t)step->node.input_count + step->node.output_count + 2u > RONDO_ARGUMENT_MAX) {
            status = RONDO__FAIL(UNSUPPORTED, KERNEL, "node '%s' (%s) has %u operands, a call takes %d",
                                 step->node.name, step->node.operator_name,
                                 step->node.input_count + step->node.output_count, RONDO_ARGUMENT_MAX - 2);
        } else {
            /* Copies run where they are needed, whatever that target is meant for. */
            status = rondo__emit_is_copy(step)
                         ? rondo__compile_choose_on(e->state, &e->request, &step->node, rondo__emit_target(e, step),
                                                    true, &step->choice)
                         : rondo__compile_choose(e->state, &e->request, &step->node, &step->choice);
        }
        if (!status) continue;
        if (rondo_status_code(status) != RONDO_CODE_UNSUPPORTED) {
            rondo_status_release(all);
            return status;
        }
        failed++;
        if (!all) {
            all = status;
            continue;
        }
        all = rondo__status_note(all, "%s", rondo_status_message(status));
        for (size_t i = 0; i < rondo_status_note_count(status); i++) {
            all = rondo__status_note(all, "%s", rondo_status_note(status, i));
        }
        rondo_status_release(status);
    }
    return failed > 1 ? rondo__status_note(all, "%u nodes have no kernel", failed) : all;
}

/* ---------------------------------------------------------------------------------------------------- lives */

static void emit_steps_touch(rondo__emit *e, rondo_ir_value value, uint32_t step) {
    uint64_t offset = 0;
    rondo__emit_value *root = &e->values[rondo__emit_root(e, value, &offset)];
    if (step < root->first) root->first = step;
    if (step > root->last) root->last = step;
}

static void emit_steps_lives(rondo__emit *e) {
    for (size_t s = 0; s < e->steps.count; s++) {
        const rondo__emit_step *step = rondo__emit_step_at(e, s);
        bool copy = rondo__emit_is_copy(step);
        for (uint32_t i = 0; i < step->node.input_count; i++) {
            uint64_t offset = 0;
            if (step->node.inputs[i] == RONDO_IR_NONE) continue;
            emit_steps_touch(e, step->node.inputs[i], (uint32_t)s);
            if (i < 64 && (step->choice.facts.absorbed_inputs >> i & 1u)) continue;
            e->values[rondo__emit_root(e, step->node.inputs[i], &offset)].read = true;
        }
        if (copy) {
            if (step->copy_into != RONDO_IR_NONE) emit_steps_touch(e, step->copy_into, (uint32_t)s);
            continue;
        }
        for (uint32_t i = 0; i < step->node.output_count; i++) {
            if (step->node.outputs[i] != RONDO_IR_NONE) emit_steps_touch(e, step->node.outputs[i], (uint32_t)s);
        }
    }
}

rondo_status rondo__emit_steps(rondo__emit *e) {
    RONDO__TRY(emit_steps_list(e));
    RONDO__TRY(emit_steps_choose(e));
    emit_steps_lives(e);
    return RONDO_OK;
}
