/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing the plan down. All but the constants' bytes is copied into the plan's arena. */
#include <string.h>

#include "base/checked.h"
#include "compile/emit.h"

static rondo_status emit_string(rondo_plan *plan, const char *text, const char **out_text) {
    *out_text = NULL;
    return text ? rondo__arena_string(&plan->arena, text, strlen(text), out_text) : RONDO_OK;
}

static rondo_status emit_dims(rondo_plan *plan, const rondo_ir_graph *graph, rondo_ir_value value, int32_t *out_rank,
                              const int64_t **out_dims) {
    int64_t dims[RONDO_RANK_MAX] = {0};
    void *memory = NULL;
    *out_rank = rondo__compile_dims(graph, value, dims);
    RONDO__TRY(rondo__arena_copy(&plan->arena, dims, (size_t)*out_rank * sizeof *dims, &memory));
    *out_dims = memory;
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------ attributes */

static rondo_status emit_strings(rondo_plan *plan, const rondo_string *from, uint32_t count, rondo_string *to) {
    for (uint32_t i = 0; i < count; i++) {
        to[i].size = from[i].size;
        RONDO__TRY(rondo__arena_string(&plan->arena, from[i].size ? from[i].data : "", from[i].size, &to[i].data));
    }
    return RONDO_OK;
}

static rondo_status emit_tensor(rondo_plan *plan, const rondo_tensor_view *from, const rondo_tensor_view **out_view) {
    void *memory = NULL;
    int64_t elements = 0;
    uint64_t bytes = 0;
    RONDO__TRY(rondo__arena_allocate(&plan->arena, sizeof(rondo_tensor_view), &memory));
    rondo_tensor_view *view = memory;
    *view = *from;
    if (!rondo__checked_elements(from->rank, from->shape, &elements)) {
        return RONDO__FAIL(OUT_OF_RANGE, PROTOTYPE, "a tensor attribute has more elements than can be counted");
    }
    RONDO__TRY(rondo_dtype_bytes(from->dtype, (uint64_t)elements, &bytes));
    RONDO__TRY(rondo__arena_copy(&plan->arena, from->shape, (size_t)from->rank * sizeof *from->shape, &memory));
    view->shape = memory;
    RONDO__TRY(rondo__arena_allocate_aligned(&plan->arena, (size_t)bytes, 64, &memory));
    if (bytes > 0) memcpy(memory, (const uint8_t *)from->data + from->byte_offset, (size_t)bytes);
    view->data = memory;
    view->byte_offset = 0;
    view->strides = NULL;
    *out_view = view;
    return RONDO_OK;
}

static rondo_status emit_attribute(rondo_plan *plan, const rondo_attribute *from, rondo_attribute *to) {
    void *memory = NULL;
    *to = *from;
    RONDO__TRY(emit_string(plan, from->name, &to->name));
    switch (from->kind) {
    case RONDO_ATTRIBUTE_STRING: return emit_strings(plan, &from->value.s, 1, &to->value.s);
    case RONDO_ATTRIBUTE_INTS:
        RONDO__TRY(rondo__arena_copy(&plan->arena, from->value.ints, from->count * sizeof(int64_t), &memory));
        to->value.ints = memory;
        return RONDO_OK;
    case RONDO_ATTRIBUTE_FLOATS:
        RONDO__TRY(rondo__arena_copy(&plan->arena, from->value.floats, from->count * sizeof(float), &memory));
        to->value.floats = memory;
        return RONDO_OK;
    case RONDO_ATTRIBUTE_STRINGS:
        RONDO__TRY(rondo__arena_allocate_array(&plan->arena, from->count, sizeof(rondo_string), &memory));
        to->value.strings = memory;
        return emit_strings(plan, from->value.strings, from->count, memory);
    case RONDO_ATTRIBUTE_TENSOR: return emit_tensor(plan, from->value.tensor, &to->value.tensor);
    default: return RONDO_OK;
    }
}

/* --------------------------------------------------------------------------------------------------- buffers */

static rondo_status emit_ports(rondo__emit *e, rondo_plan *plan, bool input) {
    size_t count = input ? e->graph->inputs.count : e->graph->outputs.count;
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&plan->arena, count, sizeof(rondo__plan_port), &memory));
    rondo__plan_port *ports = memory;
    for (uint32_t i = 0; i < count; i++) {
        rondo_ir_value value = input ? rondo__ir_input_at(e->graph, i) : rondo__ir_output_at(e->graph, i);
        const char *name = input ? rondo__ir_value_at(e->graph, value)->name
                                 : *RONDO__BUFFER_AT(&e->graph->output_names, const char *, i);
        RONDO__TRY(emit_string(plan, name, &ports[i].name));
        RONDO__TRY(emit_dims(plan, e->graph, value, &ports[i].rank, &ports[i].dims));
        ports[i].dtype = rondo__ir_value_at(e->graph, value)->type.dtype;
        ports[i].bytes = rondo__compile_bytes(e->graph, value);
        ports[i].buffer = RONDO__PLAN_NONE;
    }
    if (input) {
        plan->inputs = ports;
        plan->input_count = (uint32_t)count;
    } else {
        plan->outputs = ports;
        plan->output_count = (uint32_t)count;
    }
    return RONDO_OK;
}

static const rondo__plan_buffer_kind emit_kinds[] = {
    [RONDO__EMIT_INPUT] = RONDO__PLAN_INPUT,
    [RONDO__EMIT_CONSTANT] = RONDO__PLAN_CONSTANT,
    [RONDO__EMIT_OUTPUT] = RONDO__PLAN_OUTPUT,
    [RONDO__EMIT_TEMPORARY] = RONDO__PLAN_TEMPORARY,
};

static rondo_status emit_value_buffer(rondo__emit *e, rondo_plan *plan, size_t i) {
    rondo__emit_value *v = &e->values[i];
    const rondo__ir_value_data *data = rondo__ir_value_at(e->graph, (rondo_ir_value)i);
    rondo__plan_buffer *b = &plan->buffers[plan->buffer_count];
    /* An output goes by the name that users know, whatever the value inside is called. */
    if (v->kind == RONDO__EMIT_OUTPUT) b->name = plan->outputs[v->slot].name;
    else RONDO__TRY(emit_string(plan, data->name, &b->name));
    b->kind = emit_kinds[v->kind];
    b->slot = v->slot;
    b->bytes = rondo__compile_bytes(e->graph, (rondo_ir_value)i);
    if (v->kind == RONDO__EMIT_TEMPORARY) {
        b->offset = v->arena;
        b->target = v->target;
        b->first_step = v->first;
        b->last_step = v->last;
    } else if (v->kind == RONDO__EMIT_CONSTANT) {
        b->data = v->read ? data->constant->data : NULL;
        if (!rondo__checked_add_u64(plan->constant_bytes, b->bytes, &plan->constant_bytes)) {
            return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "the constants take more bytes than can be counted");
        }
    } else if (v->kind == RONDO__EMIT_INPUT) {
        plan->inputs[v->slot].buffer = plan->buffer_count;
    } else {
        plan->outputs[v->slot].buffer = plan->buffer_count;
    }
    v->buffer = plan->buffer_count++;
    return RONDO_OK;
}

/* The storages that steps use, kind by kind; then a buffer for each output that is a copy. */
static rondo_status emit_buffers(rondo__emit *e, rondo_plan *plan) {
    void *memory = NULL;
    size_t count = e->graph->values.count, used = plan->output_count;
    for (size_t i = 0; i < count; i++) used += e->values[i].root == i && e->values[i].first <= e->values[i].last;
    RONDO__TRY(rondo__arena_allocate_array(&plan->arena, used, sizeof(rondo__plan_buffer), &memory));
    plan->buffers = memory;
    for (rondo__emit_kind kind = RONDO__EMIT_INPUT; kind <= RONDO__EMIT_TEMPORARY; kind++) {
        for (size_t i = 0; i < count; i++) {
            const rondo__emit_value *v = &e->values[i];
            if (v->kind != kind || v->root != i || v->first > v->last) continue;
            RONDO__TRY(emit_value_buffer(e, plan, i));
        }
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        if (plan->outputs[i].buffer != RONDO__PLAN_NONE) continue;
        rondo__plan_buffer *b = &plan->buffers[plan->buffer_count];
        *b = (rondo__plan_buffer){
            .name = plan->outputs[i].name, .kind = RONDO__PLAN_OUTPUT, .slot = i, .bytes = plan->outputs[i].bytes};
        plan->outputs[i].buffer = plan->buffer_count++;
    }
    return RONDO_OK;
}

/* ----------------------------------------------------------------------------------------------------- steps */

static rondo_status emit_operand(rondo__emit *e, rondo_plan *plan, rondo_ir_value value, rondo__plan_operand *operand) {
    memset(operand, 0, sizeof *operand);
    operand->buffer = RONDO__PLAN_NONE;
    if (value == RONDO_IR_NONE) return RONDO_OK;
    const rondo__ir_value_data *data = rondo__ir_value_at(e->graph, value);
    rondo_ir_value root = rondo__emit_root(e, value, &operand->offset);
    operand->buffer = e->values[root].buffer;
    operand->dtype = data->type.dtype;
    operand->format = data->type.format;
    operand->bytes = rondo__compile_bytes(e->graph, value);
    operand->constant = data->constant ? data->constant->data : NULL;
    return emit_dims(plan, e->graph, value, &operand->rank, &operand->dims);
}

static rondo_status emit_step(rondo__emit *e, rondo_plan *plan, const rondo__emit_step *from, rondo__plan_step *step) {
    const rondo__ir_node_data *node = &from->node;
    void *memory = NULL;
    RONDO__TRY(emit_string(plan, node->operator_name, &step->operator_name));
    RONDO__TRY(emit_string(plan, node->name, &step->node_name));
    bool transfer = rondo__emit_is_transfer(from);
    RONDO__TRY(emit_string(plan, transfer ? "rondo" : from->choice.catalogue.table->name, &step->catalogue));
    RONDO__TRY(emit_string(plan, transfer ? "copy between targets" : from->choice.facts.variant, &step->variant));
    size_t operands = (size_t)node->input_count + node->output_count;
    RONDO__TRY(rondo__arena_allocate_array(&plan->arena, operands, sizeof(rondo__plan_operand), &memory));
    rondo__plan_operand *inputs = memory, *outputs = inputs + node->input_count;
    for (uint32_t i = 0; i < node->input_count; i++) RONDO__TRY(emit_operand(e, plan, node->inputs[i], &inputs[i]));
    for (uint32_t i = 0; i < node->output_count; i++) RONDO__TRY(emit_operand(e, plan, node->outputs[i], &outputs[i]));
    if (rondo__emit_is_copy(from)) {
        outputs[0].constant = NULL;
        outputs[0].offset = from->copy_offset;
        outputs[0].buffer = from->copy_output != RONDO__PLAN_NONE ? plan->outputs[from->copy_output].buffer
                                                                  : e->values[from->copy_into].buffer;
    }
    RONDO__TRY(rondo__arena_allocate_array(&plan->arena, node->attribute_count, sizeof(rondo_attribute), &memory));
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        RONDO__TRY(emit_attribute(plan, &node->attributes[i], (rondo_attribute *)memory + i));
    }
    step->attributes = memory;
    step->inputs = inputs;
    step->outputs = outputs;
    step->input_count = node->input_count;
    step->output_count = node->output_count;
    step->attribute_count = node->attribute_count;
    step->absorbed_inputs = from->choice.facts.absorbed_inputs;
    step->packed_bytes = from->choice.facts.packed_bytes;
    step->scratch_bytes = from->choice.facts.scratch_bytes;
    step->scratch_offset = from->scratch_offset;
    step->record = RONDO__PLAN_NONE;
    step->segment = from->segment;
    return RONDO_OK;
}

/* An event for each step that another lane waits for. */
static rondo_status emit_lanes(rondo__emit *e, rondo_plan *plan) {
    void *memory = NULL;
    size_t count = e->streams.waits.count;
    RONDO__TRY(rondo__arena_allocate_array(&plan->arena, count, sizeof(uint32_t), &memory));
    uint32_t *waits = memory;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const rondo__streams_step *from = &e->lanes[s];
        rondo__plan_step *step = &plan->steps[s];
        step->lane = from->lane;
        if (from->awaited) step->record = plan->event_count++;
        step->wait_count = from->wait_count;
        step->waits = from->wait_count > 0 ? &waits[from->first_wait] : NULL;
    }
    for (size_t i = 0; i < count; i++) {
        waits[i] = plan->steps[*RONDO__BUFFER_AT(&e->streams.waits, const uint32_t, i)].record;
    }
    return RONDO_OK;
}

static rondo_status emit_guards(rondo__emit *e, rondo_plan *plan) {
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&plan->arena, e->state->binding_count, sizeof(rondo__plan_guard), &memory));
    plan->guards = memory;
    for (uint32_t i = 0; i < e->state->binding_count; i++) {
        const rondo__compile_binding *binding = &e->state->bindings[i];
        if (!binding->needed) continue;
        RONDO__TRY(rondo__arena_copy(&plan->arena, binding->constant->data, binding->constant->bytes, &memory));
        plan->guards[plan->guard_count++] = (rondo__plan_guard){binding->input, 1, memory, binding->constant->bytes};
    }
    return RONDO_OK;
}

static rondo_status emit_targets(const rondo__emit *e, rondo_plan *plan) {
    const rondo__targets *targets = e->state->targets;
    void *memory = NULL;
    plan->segment_count = e->segment_count;
    for (uint32_t t = 0; t < targets->count; t++) {
        if (!rondo__checked_add_u64(plan->arena_bytes, e->arena_bytes[t], &plan->arena_bytes)) {
            return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "the temporaries take more bytes than can be counted");
        }
        plan->arena_lower_bound += e->arena_bound[t];
    }
    if (targets->count == 1) return RONDO_OK;
    plan->target_count = targets->count;
    RONDO__TRY(rondo__arena_copy(&plan->arena, e->segment_targets, e->segment_count * sizeof(uint32_t), &memory));
    plan->segment_targets = memory;
    RONDO__TRY(rondo__arena_allocate_array(&plan->arena, targets->count, sizeof(rondo__plan_target), &memory));
    plan->targets = memory;
    for (uint32_t t = 0; t < targets->count; t++) {
        plan->targets[t].arena_bytes = e->arena_bytes[t];
        plan->targets[t].arena_lower_bound = e->arena_bound[t];
        RONDO__TRY(emit_string(plan, targets->at[t].text, &plan->targets[t].name));
    }
    return RONDO_OK;
}

static rondo_status emit_all(rondo__emit *e, rondo_plan *plan) {
    const rondo__compile_state *state = e->state;
    void *memory = NULL;
    rondo_ir_graph_retain(e->graph);
    plan->keeps = e->graph;
    plan->keeps_release = rondo_ir_graph_release;
    plan->nodes_in = e->graph->nodes_in_model;
    plan->lane_count = e->streams.lanes > 1 ? e->streams.lanes : 1u;
    RONDO__TRY(emit_string(plan, state->targets->text, &plan->target));
    RONDO__TRY(emit_targets(e, plan));
    RONDO__TRY(emit_ports(e, plan, true));
    RONDO__TRY(emit_ports(e, plan, false));
    RONDO__TRY(emit_buffers(e, plan));
    RONDO__TRY(emit_guards(e, plan));
    RONDO__TRY(rondo__arena_allocate_array(&plan->arena, e->steps.count, sizeof(rondo__plan_step), &memory));
    plan->steps = memory;
    for (size_t s = 0; s < e->steps.count; s++) {
        RONDO__TRY(emit_step(e, plan, rondo__emit_step_at(e, s), &plan->steps[s]));
    }
    plan->step_count = (uint32_t)e->steps.count;
    if (plan->lane_count > 1) RONDO__TRY(emit_lanes(e, plan));
    RONDO__TRY(rondo__arena_allocate_array(&plan->arena, state->remarks.count, sizeof(char *), &memory));
    plan->remarks = memory;
    for (size_t i = 0; i < state->remarks.count; i++) {
        RONDO__TRY(emit_string(plan, *RONDO__BUFFER_AT(&state->remarks, const char *, i), &plan->remarks[i]));
    }
    plan->remark_count = (uint32_t)state->remarks.count;
    return rondo__plan_verify(plan, false);
}

rondo_status rondo__emit_write(rondo__emit *e, rondo_plan **out_plan) {
    rondo_plan *plan = NULL;
    RONDO__TRY(rondo__plan_create(&e->state->allocator, e->graph->name, &plan));
    rondo_status status = emit_all(e, plan);
    if (status) {
        rondo_plan_release(plan);
        return status;
    }
    *out_plan = plan;
    return RONDO_OK;
}

static rondo_status emit_plan(rondo__emit *e) {
    RONDO__TRY(rondo__emit_partition(e));
    RONDO__TRY(rondo__emit_storages(e));
    RONDO__TRY(rondo__emit_steps(e));
    RONDO__TRY(rondo__emit_streams(e));
    RONDO__TRY(rondo__emit_memory(e));
    return rondo__emit_write(e, &e->state->plan);
}

/* With several targets the plan is that of a graph with transfers, which the caller does not see. */
rondo_status rondo__compile_emit(rondo__compile_state *state) {
    rondo_ir_graph *graph = state->graph;
    if (state->targets->count > 1) RONDO__TRY(rondo__ir_clone(graph, true, &state->graph));
    rondo__emit e = {.state = state, .graph = state->graph};
    rondo__buffer_init(&e.steps, &state->allocator, sizeof(rondo__emit_step), RONDO__IR_NODES_MAX);
    rondo__compile_request_init(&e.request, &state->allocator);
    rondo__streams_init(&e.streams, &state->allocator);
    rondo_status status = emit_plan(&e);
    rondo__streams_deinit(&e.streams);
    rondo__compile_request_deinit(&e.request);
    rondo__buffer_deinit(&e.steps);
    if (state->graph != graph) rondo_ir_graph_release(state->graph);
    state->graph = graph;
    return status;
}
