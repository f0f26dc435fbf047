/* SPDX-License-Identifier: Apache-2.0
 *
 * What is cut off a graph because it depends on data: nodes that wait for nothing but the plan are steps, those that need
 * what a step makes are the rest, a graph of its own. */
#include <stdio.h>
#include <string.h>

#include "compile/passes/resolve.h"

#define RESOLVE_CUT_ARENA_MAX ((size_t)1 << 32)

/* ------------------------------------------------------------------------------------------------- during the walk */

/* Values of the graph under work for what the node's own graphs take from around them. */
static rondo_status resolve_cut_outers(rondo__resolve *r, const rondo__ir_node_data *from, bool *out_late) {
    size_t depth = r->frames.count - 1;
    for (uint32_t a = 0; a < from->attribute_count; a++) {
        if (from->attributes[a].kind != RONDO_ATTRIBUTE_GRAPH) continue;
        const rondo_ir_graph *branch = from->attributes[a].value.graph;
        for (size_t v = 0; v < branch->values.count; v++) {
            rondo_ir_value outer = rondo__ir_value_at(branch, (rondo_ir_value)v)->outer, value = RONDO_IR_NONE;
            if (outer == RONDO_IR_NONE) continue;
            RONDO__TRY(rondo__resolve_map(r, depth, outer, &value));
            if (rondo__resolve_at(r, value)->late) *out_late = true;
        }
    }
    return RONDO_OK;
}

rondo_status rondo__resolve_is_late(rondo__resolve *r, const rondo__ir_node_data *from, const rondo_ir_value *inputs,
                                    bool *out_late) {
    *out_late = false;
    for (uint32_t i = 0; i < from->input_count; i++) {
        if (inputs[i] != RONDO_IR_NONE && rondo__resolve_at(r, inputs[i])->late) *out_late = true;
    }
    return r->late.count > 0 ? resolve_cut_outers(r, from, out_late) : RONDO_OK;
}

rondo_status rondo__resolve_leave(rondo__resolve *r, const rondo__ir_node_data *from, const rondo_ir_value *inputs,
                                  const rondo_ir_value *outputs, const char *why) {
    size_t depth = r->frames.count - 1;
    bool late = false;
    if (!outputs) {
        void *memory = NULL;
        RONDO__TRY(rondo__arena_allocate_array(&r->state->arena, from->output_count, sizeof(rondo_ir_value), &memory));
        RONDO__TRY(rondo__resolve_outputs(r, depth, from, memory));
        outputs = memory;
    }
    RONDO__TRY(resolve_cut_outers(r, from, &late));
    for (uint32_t i = 0; i < from->output_count; i++) {
        if (outputs[i] != RONDO_IR_NONE) rondo__resolve_at(r, outputs[i])->late = true;
    }
    const rondo__resolve_frame *frame = RONDO__BUFFER_AT(&r->frames, rondo__resolve_frame, depth);
    if (frame->graph->control_count) {
        return RONDO__FAIL(UNSUPPORTED, META,
                           "node '%s' (%s) depends on data, and graph '%s' has control edges: it cannot be cut there",
                           from->name, from->operator_name, frame->graph->name);
    }
    rondo__resolve_late left = {from, frame->graph, frame->map, inputs, outputs, why};
    return rondo__buffer_append(&r->late, &left, 1);
}

/* ------------------------------------------------------------------------------------------------------- the cut */

typedef struct resolve_cutting {
    rondo__resolve *r;
    rondo__compile_cut *cut;
    rondo__buffer made;        /* rondo_ir_value: outputs of the plan */
    rondo__buffer constants;   /* const rondo__ir_constant * */
    rondo__buffer rest_inputs; /* rondo__compile_slot */
    rondo__buffer captured;    /* rondo_ir_value */
    rondo_ir_value *outer_map;
    const rondo__resolve_late *late; /* whose body is being taken out */
} resolve_cutting;

static const rondo__ir_constant *resolve_cut_constant(const rondo__resolve *r, rondo_ir_value value) {
    const rondo__ir_constant *constant = rondo__ir_value_at(r->graph, value)->constant;
    const rondo__resolve_known *known = rondo__resolve_at(r, value);
    if (constant) return constant;
    return rondo__resolve_is_firm(r, known) ? known->constant : NULL;
}

/* Where a value of the graph under work comes from. What the plan makes becomes an output of it. */
static rondo_status resolve_cut_slot(resolve_cutting *c, rondo_ir_value value, rondo__compile_slot *out_slot) {
    rondo__resolve_known *known = rondo__resolve_at(c->r, value);
    const rondo__ir_constant *constant = resolve_cut_constant(c->r, value);
    if (known->slot == RONDO__COMPILE_SLOT_NONE && constant) {
        RONDO__TRY(rondo__buffer_append(&c->constants, &constant, 1));
        known->slot = RONDO__COMPILE_SLOT(RONDO__COMPILE_FROM_CONSTANT, (uint32_t)c->constants.count - 1u);
    } else if (known->slot == RONDO__COMPILE_SLOT_NONE && !known->late) {
        RONDO__TRY(rondo__buffer_append(&c->made, &value, 1));
        known->slot = RONDO__COMPILE_SLOT(RONDO__COMPILE_FROM_PLAN, (uint32_t)c->made.count - 1u);
    }
    *out_slot = known->slot;
    return RONDO_OK;
}

static rondo_status resolve_cut_slots(resolve_cutting *c, const rondo_ir_value *values, uint32_t count,
                                      const rondo__compile_slot **out_slots) {
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&c->cut->arena, count, sizeof(rondo__compile_slot), &memory));
    rondo__compile_slot *slots = memory;
    for (uint32_t i = 0; i < count; i++) {
        slots[i] = RONDO__COMPILE_SLOT_NONE;
        if (values[i] != RONDO_IR_NONE) RONDO__TRY(resolve_cut_slot(c, values[i], &slots[i]));
    }
    *out_slots = slots;
    return RONDO_OK;
}

/* ---- steps */

static const rondo__ir_constant *resolve_cut_outer_constant(void *user, rondo_ir_value outer) {
    const resolve_cutting *c = user;
    return resolve_cut_constant(c->r, c->late->map[outer]);
}

static rondo_status resolve_cut_body(resolve_cutting *c, const rondo__resolve_late *late,
                                     const rondo_attribute *attribute, rondo__compile_body *out_body) {
    rondo__ir_lifting lifting = {resolve_cut_outer_constant, c, c->r->graph};
    c->captured.count = 0;
    c->late = late;
    out_body->attribute = attribute->name;
    RONDO__TRY(rondo__ir_branch_lift(attribute->value.graph, &lifting, &c->captured, &out_body->graph));
    rondo_ir_value *values = c->captured.data;
    out_body->captured_count = (uint32_t)c->captured.count;
    for (uint32_t i = 0; i < out_body->captured_count; i++) values[i] = late->map[values[i]];
    return resolve_cut_slots(c, values, out_body->captured_count, &out_body->captured);
}

static rondo_status resolve_cut_attributes(resolve_cutting *c, const rondo__resolve_late *late,
                                           rondo__compile_step *step) {
    const rondo__ir_node_data *from = late->from;
    void *attributes = NULL, *bodies = NULL;
    RONDO__TRY(
        rondo__arena_allocate_array(&c->cut->arena, from->attribute_count, sizeof(rondo_attribute), &attributes));
    RONDO__TRY(
        rondo__arena_allocate_array(&c->cut->arena, from->attribute_count, sizeof(rondo__compile_body), &bodies));
    step->attributes = attributes;
    step->bodies = bodies;
    for (uint32_t i = 0; i < from->attribute_count; i++) {
        const rondo_attribute *a = &from->attributes[i];
        if (strncmp(a->name, RONDO__OPS_NOTE, sizeof RONDO__OPS_NOTE - 1u) == 0) continue;
        if (a->kind != RONDO_ATTRIBUTE_GRAPH) {
            ((rondo_attribute *)attributes)[step->attribute_count++] = *a;
            continue;
        }
        rondo__compile_body *body = (rondo__compile_body *)bodies + step->body_count;
        rondo_status status = resolve_cut_body(c, late, a, body);
        if (body->graph) step->body_count++; /* what frees the cut must see it */
        if (status) return status;
    }
    return RONDO_OK;
}

static rondo_status resolve_cut_step(resolve_cutting *c, const rondo__resolve_late *late, rondo__compile_step *step) {
    const rondo__ir_node_data *from = late->from;
    void *memory = NULL;
    *step = (rondo__compile_step){.operator_name = from->operator_name,
                                  .name = from->name,
                                  .why = late->why,
                                  .input_count = from->input_count,
                                  .output_count = from->output_count};
    c->cut->step_count++;
    RONDO__TRY(resolve_cut_slots(c, late->inputs, from->input_count, &step->inputs));
    RONDO__TRY(rondo__arena_allocate_array(&c->cut->arena, from->output_count, sizeof(rondo__compile_slot), &memory));
    rondo__compile_slot *outputs = memory;
    for (uint32_t i = 0; i < from->output_count; i++) {
        outputs[i] = RONDO__COMPILE_SLOT_NONE;
        if (late->outputs[i] == RONDO_IR_NONE) continue;
        outputs[i] = RONDO__COMPILE_SLOT(RONDO__COMPILE_FROM_STEP, c->cut->step_values++);
        rondo__resolve_at(c->r, late->outputs[i])->slot = outputs[i];
    }
    step->outputs = outputs;
    return resolve_cut_attributes(c, late, step);
}

/* ---- the rest */

static rondo_status resolve_rest_value(resolve_cutting *c, rondo_ir_value value, rondo_ir_value *out_value) {
    static const rondo__ir_type unknown = {
        RONDO__IR_TENSOR, RONDO_DTYPE_UNDEFINED, -1, RONDO_FORMAT_ND, RONDO_FORMAT_ND, NULL, NULL};
    rondo_ir_graph *rest = c->cut->rest;
    rondo__resolve_known *known = rondo__resolve_at(c->r, value);
    const rondo__ir_value_data *data = rondo__ir_value_at(c->r->graph, value);
    const rondo__ir_constant *constant = resolve_cut_constant(c->r, value);
    *out_value = known->rest;
    if (known->rest != RONDO_IR_NONE) return RONDO_OK;
    RONDO__TRY(rondo__ir_value_add(rest, NULL, data->name, &unknown, out_value));
    known->rest = *out_value;
    if (constant) {
        rondo__ir_value_data *made = rondo__ir_value_at(rest, *out_value);
        RONDO__TRY(rondo__ir_type_from_dims(rest, constant->dtype, constant->rank, constant->dims, &made->type));
        made->constant = constant;
        return RONDO_OK;
    }
    rondo__compile_slot slot;
    RONDO__TRY(resolve_cut_slot(c, value, &slot));
    RONDO__TRY(rondo__ir_input_add(rest, *out_value));
    return rondo__buffer_append(&c->rest_inputs, &slot, 1);
}

static rondo_status resolve_rest_branch(resolve_cutting *c, const rondo__resolve_late *late,
                                        const rondo_ir_graph *branch, rondo_ir_graph **out_copy) {
    for (size_t v = 0; v < branch->values.count; v++) {
        rondo_ir_value outer = rondo__ir_value_at(branch, (rondo_ir_value)v)->outer;
        if (outer != RONDO_IR_NONE) RONDO__TRY(resolve_rest_value(c, late->map[outer], &c->outer_map[outer]));
    }
    return rondo__ir_branch_copy(c->cut->rest, branch, c->outer_map, out_copy);
}

static rondo_status resolve_rest_node(resolve_cutting *c, const rondo__resolve_late *late) {
    static const rondo__ir_type unknown = {
        RONDO__IR_TENSOR, RONDO_DTYPE_UNDEFINED, -1, RONDO_FORMAT_ND, RONDO_FORMAT_ND, NULL, NULL};
    const rondo__ir_node_data *from = late->from;
    size_t count = (size_t)from->input_count + from->output_count;
    void *memory = NULL;
    rondo_ir_node added = 0;
    RONDO__TRY(rondo__arena_allocate_array(&c->r->state->arena, count, sizeof(rondo_ir_value), &memory));
    rondo_ir_value *inputs = memory, *outputs = inputs + from->input_count;
    for (uint32_t i = 0; i < from->input_count; i++) {
        inputs[i] = RONDO_IR_NONE;
        if (late->inputs[i] != RONDO_IR_NONE) RONDO__TRY(resolve_rest_value(c, late->inputs[i], &inputs[i]));
    }
    for (uint32_t i = 0; i < from->output_count; i++) {
        outputs[i] = RONDO_IR_NONE;
        if (late->outputs[i] == RONDO_IR_NONE) continue;
        const char *stem = rondo__ir_value_at(c->r->graph, late->outputs[i])->name;
        RONDO__TRY(rondo__ir_value_add(c->cut->rest, NULL, stem, &unknown, &outputs[i]));
        rondo__resolve_at(c->r, late->outputs[i])->rest = outputs[i];
    }
    RONDO__TRY(
        rondo__arena_allocate_array(&c->r->state->arena, from->attribute_count, sizeof(rondo_attribute), &memory));
    rondo_attribute *attributes = memory;
    for (uint32_t i = 0; i < from->attribute_count; i++) {
        attributes[i] = from->attributes[i];
        if (attributes[i].kind != RONDO_ATTRIBUTE_GRAPH) continue;
        rondo_ir_graph *copy = NULL;
        RONDO__TRY(resolve_rest_branch(c, late, from->attributes[i].value.graph, &copy));
        attributes[i].value.graph = copy;
    }
    return rondo__ir_node_add(c->cut->rest, from->operator_name, from->name, inputs, from->input_count, outputs,
                              from->output_count, attributes, from->attribute_count, &added);
}

static rondo_status resolve_rest_create(resolve_cutting *c) {
    const rondo_ir_graph *source = c->r->state->source;
    rondo_ir_graph *graph = c->r->graph;
    size_t most = 0;
    void *memory = NULL;
    RONDO__TRY(rondo__ir_graph_create(&graph->allocator, source->instance, source->name, NULL, &c->cut->rest));
    rondo__ir_graph_share_operators(c->cut->rest, source->operators);
    c->cut->rest->opset = source->opset;
    c->cut->rest->nodes_in_model = source->nodes_in_model;
    c->cut->rest->source = graph;
    rondo_ir_graph_retain(graph);
    for (size_t i = 0; i < c->r->late.count; i++) {
        const rondo__resolve_late *late = RONDO__BUFFER_AT(&c->r->late, rondo__resolve_late, i);
        if (late->graph->values.count > most) most = late->graph->values.count;
    }
    RONDO__TRY(rondo__arena_allocate_array(&c->r->state->arena, most, sizeof(rondo_ir_value), &memory));
    c->outer_map = memory;
    return RONDO_OK;
}

/* ---- outputs */

static rondo_status resolve_cut_output(resolve_cutting *c, rondo_ir_value value, const char *name,
                                       rondo__compile_slot *out_slot) {
    rondo__resolve_known *known = rondo__resolve_at(c->r, value);
    if (!known->late || known->slot != RONDO__COMPILE_SLOT_NONE) return resolve_cut_slot(c, value, out_slot);
    RONDO__TRY(rondo__ir_output_add(c->cut->rest, known->rest, name));
    *out_slot = RONDO__COMPILE_SLOT(RONDO__COMPILE_FROM_REST, (uint32_t)c->cut->rest->outputs.count - 1u);
    return RONDO_OK;
}

static rondo_status resolve_cut_outputs(resolve_cutting *c, const rondo__resolve_frame *source) {
    const rondo_ir_graph *graph = source->graph;
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&c->cut->arena, graph->outputs.count, sizeof(rondo__compile_slot), &memory));
    rondo__compile_slot *outputs = memory;
    c->cut->outputs = outputs;
    c->cut->output_count = (uint32_t)graph->outputs.count;
    for (uint32_t i = 0; i < c->cut->output_count; i++) {
        rondo_ir_value value = RONDO_IR_NONE;
        RONDO__TRY(rondo__resolve_map(c->r, 0, rondo__ir_output_at(graph, i), &value));
        RONDO__TRY(resolve_cut_output(c, value, *RONDO__BUFFER_AT(&graph->output_names, const char *, i), &outputs[i]));
    }
    return RONDO_OK;
}

/* The graph under work gives what the plan must give, in the order of its slots. */
static rondo_status resolve_cut_plan(resolve_cutting *c) {
    rondo_ir_graph *graph = c->r->graph;
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        rondo__ir_value_at(graph, rondo__ir_output_at(graph, i))->flags &= ~(uint32_t)RONDO__IR_VALUE_OUTPUT;
    }
    graph->outputs.count = 0;
    graph->output_names.count = 0;
    for (uint32_t i = 0; i < c->made.count; i++) {
        rondo_ir_value value = *RONDO__BUFFER_AT(&c->made, rondo_ir_value, i);
        char name[160];
        (void)snprintf(name, sizeof name, "%.128s#%u", rondo__ir_value_at(graph, value)->name, i);
        RONDO__TRY(rondo__ir_output_add(graph, value, name));
    }
    return RONDO_OK;
}

static rondo_status resolve_cut_keep(resolve_cutting *c) {
    void *memory = NULL;
    RONDO__TRY(rondo__arena_copy(&c->cut->arena, c->constants.data, c->constants.count * sizeof(void *), &memory));
    c->cut->constants = memory;
    c->cut->constant_count = (uint32_t)c->constants.count;
    RONDO__TRY(rondo__arena_copy(&c->cut->arena, c->rest_inputs.data,
                                 c->rest_inputs.count * sizeof(rondo__compile_slot), &memory));
    c->cut->rest_inputs = memory;
    c->cut->rest_input_count = (uint32_t)c->rest_inputs.count;
    return RONDO_OK;
}

static rondo_status resolve_cut_make(resolve_cutting *c, const rondo__resolve_frame *source) {
    size_t count = c->r->late.count, steps = 0;
    void *memory = NULL;
    for (uint32_t i = 0; i < c->r->graph->inputs.count; i++) {
        rondo__resolve_at(c->r, rondo__ir_input_at(c->r->graph, i))->slot =
            RONDO__COMPILE_SLOT(RONDO__COMPILE_FROM_INPUT, i);
    }
    for (size_t i = 0; i < count; i++) steps += RONDO__BUFFER_AT(&c->r->late, rondo__resolve_late, i)->why != NULL;
    RONDO__TRY(rondo__arena_allocate_array(&c->cut->arena, steps, sizeof(rondo__compile_step), &memory));
    rondo__compile_step *made = memory;
    c->cut->steps = made;
    for (size_t i = 0; i < count; i++) {
        const rondo__resolve_late *late = RONDO__BUFFER_AT(&c->r->late, rondo__resolve_late, i);
        if (!late->why) continue;
        RONDO__TRY(rondo__compile_remark(c->r->state, "node '%s' (%s) runs between plans: %s", late->from->name,
                                         late->from->operator_name, late->why));
        RONDO__TRY(resolve_cut_step(c, late, &made[c->cut->step_count]));
    }
    if (steps < count) RONDO__TRY(resolve_rest_create(c));
    for (size_t i = 0; i < count; i++) {
        const rondo__resolve_late *late = RONDO__BUFFER_AT(&c->r->late, rondo__resolve_late, i);
        if (!late->why) RONDO__TRY(resolve_rest_node(c, late));
    }
    RONDO__TRY(resolve_cut_outputs(c, source));
    RONDO__TRY(resolve_cut_plan(c));
    return resolve_cut_keep(c);
}

rondo_status rondo__resolve_cut(rondo__resolve *r, const rondo__resolve_frame *source) {
    rondo__compile_state *state = r->state;
    resolve_cutting c = {.r = r};
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(&state->allocator, sizeof(rondo__compile_cut), &memory));
    state->cut = c.cut = memory;
    c.cut->allocator = state->allocator;
    rondo__arena_init(&c.cut->arena, &state->allocator, RESOLVE_CUT_ARENA_MAX);
    c.cut->holds = r->graph;
    rondo_ir_graph_retain(r->graph);
    rondo__buffer_init(&c.made, &state->allocator, sizeof(rondo_ir_value), RONDO__IR_VALUES_MAX);
    rondo__buffer_init(&c.constants, &state->allocator, sizeof(void *), RONDO__IR_VALUES_MAX);
    rondo__buffer_init(&c.rest_inputs, &state->allocator, sizeof(rondo__compile_slot), RONDO__IR_VALUES_MAX);
    rondo__buffer_init(&c.captured, &state->allocator, sizeof(rondo_ir_value), RONDO__IR_VALUES_MAX);
    rondo_status status = resolve_cut_make(&c, source);
    rondo__buffer_deinit(&c.captured);
    rondo__buffer_deinit(&c.rest_inputs);
    rondo__buffer_deinit(&c.constants);
    rondo__buffer_deinit(&c.made);
    return status;
}

void rondo__compile_cut_free(rondo__compile_cut *cut) {
    if (!cut) return;
    for (uint32_t i = 0; i < cut->step_count; i++) {
        for (uint32_t b = 0; b < cut->steps[i].body_count; b++) rondo_ir_graph_release(cut->steps[i].bodies[b].graph);
    }
    rondo_ir_graph_release(cut->rest);
    rondo_ir_graph_release(cut->holds);
    rondo_allocator allocator = cut->allocator;
    rondo__arena_deinit(&cut->arena);
    rondo__free(&allocator, cut, sizeof *cut);
}
