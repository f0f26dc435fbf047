/* SPDX-License-Identifier: Apache-2.0
 *
 * Where values lie: views in what they are views of, the parts of a Concat in the whole, outputs where the caller wants
 * them. What is left has a storage of its own. */
#include <string.h>

#include "compile/emit.h"

/* A Concat that is not run may cost this many copies of parts that cannot be made in their place. */
#define EMIT_PART_COPIES_MAX 1u

/* Chains are halved on the way, so that views of views of views stay cheap. */
rondo_ir_value rondo__emit_root(const rondo__emit *e, rondo_ir_value value, uint64_t *out_offset) {
    uint64_t offset = 0;
    while (e->values[value].root != value) {
        rondo__emit_value *v = &e->values[value];
        const rondo__emit_value *next = &e->values[v->root];
        if (next->root != v->root) {
            v->offset += next->offset;
            v->root = next->root;
        }
        offset += v->offset;
        value = v->root;
    }
    *out_offset = offset;
    return value;
}

bool rondo__emit_is_whole(const rondo__emit *e, rondo_ir_value value) {
    uint64_t offset = 0;
    rondo_ir_value root = rondo__emit_root(e, value, &offset);
    return offset == 0 && rondo__compile_bytes(e->graph, value) == rondo__compile_bytes(e->graph, root);
}

static rondo_status emit_storage_start(rondo__emit *e) {
    void *memory = NULL;
    size_t count = e->graph->values.count;
    RONDO__TRY(rondo__arena_allocate_array(&e->state->arena, count, sizeof(rondo__emit_value), &memory));
    e->values = memory;
    for (size_t i = 0; i < count; i++) {
        rondo__emit_value *v = &e->values[i];
        v->root = v->chain = (rondo_ir_value)i;
        v->buffer = RONDO__PLAN_NONE;
        v->first = UINT32_MAX;
        const rondo__ir_value_data *data = rondo__ir_value_at(e->graph, (rondo_ir_value)i);
        if (data->constant) {
            v->kind = RONDO__EMIT_CONSTANT;
        } else if (data->producer != RONDO_IR_NONE) {
            v->kind = RONDO__EMIT_TEMPORARY;
            if (e->segment_targets) v->target = e->segment_targets[e->node_segments[data->producer]];
        }
    }
    for (size_t i = 0; i < e->graph->inputs.count; i++) {
        rondo__emit_value *v = &e->values[rondo__ir_input_at(e->graph, (uint32_t)i)];
        v->kind = RONDO__EMIT_INPUT;
        v->slot = (uint32_t)i;
    }
    RONDO__TRY(rondo__arena_allocate_array(&e->state->arena, e->graph->nodes.count, 1, &memory));
    e->nodes = memory;
    RONDO__TRY(rondo__arena_allocate_array(&e->state->arena, e->graph->outputs.count, sizeof(rondo_ir_value), &memory));
    e->output_copies = memory;
    return RONDO_OK;
}

static void emit_storage_views(rondo__emit *e) {
    for (size_t n = 0; n < e->graph->nodes.count; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(e->graph, (rondo_ir_node)n);
        rondo__compile_view view;
        bool all = true;
        if (node->dead) continue;
        for (uint32_t i = 0; i < node->output_count && all; i++) {
            all = node->outputs[i] == RONDO_IR_NONE || rondo__compile_view_of(e->graph, node, i, &view);
        }
        if (!all) continue;
        e->nodes[n] = RONDO__EMIT_NODE_VIEW;
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (node->outputs[i] == RONDO_IR_NONE || !rondo__compile_view_of(e->graph, node, i, &view)) continue;
            e->values[node->outputs[i]].root = view.source;
            e->values[node->outputs[i]].offset = view.offset;
        }
    }
}

static void emit_storage_mark_outputs(rondo__emit *e) {
    uint64_t offset = 0;
    for (size_t i = 0; i < e->graph->outputs.count; i++) {
        e->values[rondo__emit_root(e, rondo__ir_output_at(e->graph, (uint32_t)i), &offset)].is_output = true;
    }
}

/* ------------------------------------------------------------------------------------------------- parts */

static bool emit_part_axis(const rondo__emit *e, const rondo__ir_node_data *node) {
    int64_t dims[RONDO_RANK_MAX];
    int32_t rank = rondo__compile_dims(e->graph, node->outputs[0], dims);
    int64_t axis = rondo__ir_attribute_int(node, "axis", 0);
    if (axis < 0) axis += rank;
    for (int64_t i = 0; i < axis && i < rank; i++) {
        if (dims[i] != 1) return false;
    }
    return rondo_dtype_bits(rondo__ir_value_at(e->graph, node->outputs[0])->type.dtype) >= 8;
}

static bool emit_part_fits(const rondo__emit *e, rondo_ir_value part, rondo_ir_value whole) {
    uint64_t offset = 0;
    rondo_ir_value root = rondo__emit_root(e, part, &offset);
    const rondo__emit_value *v = &e->values[root];
    return root != whole && v->kind == RONDO__EMIT_TEMPORARY && !v->is_output && rondo__emit_is_whole(e, part);
}

/* The same part twice: only one can be made in place. */
static bool emit_part_seen(const rondo__emit *e, const rondo__ir_node_data *node, uint32_t input) {
    uint64_t offset = 0;
    rondo_ir_value root = rondo__emit_root(e, node->inputs[input], &offset);
    for (uint32_t i = 0; i < input; i++) {
        if (rondo__emit_root(e, node->inputs[i], &offset) == root) return true;
    }
    return false;
}

static void emit_storage_parts(rondo__emit *e, size_t n) {
    const rondo__ir_node_data *node = rondo__ir_node_at(e->graph, (rondo_ir_node)n);
    if (node->output_count != 1 || node->input_count < 2 || !emit_part_axis(e, node)) return;
    rondo_ir_value whole = node->outputs[0];
    uint32_t copies = 0;
    bool many = node->input_count + 3u > RONDO_ARGUMENT_MAX; /* more than a call can take: however many copies */
    for (uint32_t i = 0; i < node->input_count && !many; i++) {
        if (node->inputs[i] == RONDO_IR_NONE || rondo__compile_bytes(e->graph, node->inputs[i]) == 0) continue;
        if (!emit_part_fits(e, node->inputs[i], whole) || emit_part_seen(e, node, i)) copies++;
        if (copies > EMIT_PART_COPIES_MAX) return;
    }
    e->nodes[n] = RONDO__EMIT_NODE_PARTS;
    uint64_t at = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint64_t offset = 0, bytes = 0;
        if (node->inputs[i] == RONDO_IR_NONE) continue;
        bytes = rondo__compile_bytes(e->graph, node->inputs[i]);
        /* A part that was placed just now has `whole` as its root and does not fit again. */
        if (bytes > 0 && emit_part_fits(e, node->inputs[i], whole)) {
            rondo__emit_value *root = &e->values[rondo__emit_root(e, node->inputs[i], &offset)];
            root->root = whole;
            root->offset = at;
            root->placed = true;
        }
        at += bytes;
    }
}

/* ----------------------------------------------------------------------------------------------- outputs */

/* An output that is all of a storage that steps make is made in the caller's memory. */
static void emit_storage_outputs(rondo__emit *e) {
    for (size_t i = 0; i < e->graph->outputs.count; i++) {
        rondo_ir_value value = rondo__ir_output_at(e->graph, (uint32_t)i);
        uint64_t offset = 0;
        rondo__emit_value *root = &e->values[rondo__emit_root(e, value, &offset)];
        e->output_copies[i] = value;
        if (root->kind != RONDO__EMIT_TEMPORARY || !rondo__emit_is_whole(e, value)) continue;
        root->kind = RONDO__EMIT_OUTPUT;
        root->slot = (uint32_t)i;
        e->output_copies[i] = RONDO_IR_NONE;
    }
}

rondo_status rondo__emit_storages(rondo__emit *e) {
    RONDO__TRY(emit_storage_start(e));
    emit_storage_views(e);
    emit_storage_mark_outputs(e);
    for (size_t n = 0; n < e->graph->nodes.count; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(e->graph, (rondo_ir_node)n);
        if (node->dead || e->nodes[n] != RONDO__EMIT_NODE_RUNS || strcmp(node->operator_name, "Concat") != 0) continue;
        if (!(e->state->options.flags & RONDO_COMPILE_NO_REUSE)) emit_storage_parts(e, n);
    }
    emit_storage_outputs(e);
    return RONDO_OK;
}
