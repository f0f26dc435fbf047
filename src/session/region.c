/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph that was cut: its plan runs, then the steps that wait for the plan, then the rest, which is a graph of its own. */
#include "session/region.h"

#include <string.h>

#include "ops/operators.h"

/* ---------------------------------------------------------------------------------------------------------- life */

static rondo_status region_graph_create(const rondo_session *session, rondo_ir_graph *graph,
                                        rondo__session_graph **out_graph) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(&session->allocator, sizeof(rondo__session_graph), &memory));
    rondo__session_graph *made = memory;
    made->graph = graph;
    made->internal = true;
    made->info = (rondo_session_info)RONDO_SESSION_INFO_INIT;
    rondo_ir_graph_retain(graph);
    rondo__buffer_init(&made->specialisations, &session->allocator, sizeof(rondo__specialisation *), UINT32_MAX);
    *out_graph = made;
    return RONDO_OK;
}

static rondo_status region_constants(const rondo_session *session, rondo__region *region) {
    for (uint32_t i = 0; i < region->cut->constant_count; i++) {
        const rondo__ir_constant *c = region->cut->constants[i];
        RONDO__TRY(rondo__value_tensor(&session->allocator, c->dtype, c->rank, c->dims, &region->constants[i]));
        if (c->bytes) memcpy(region->constants[i]->data, c->data, region->constants[i]->bytes);
    }
    return RONDO_OK;
}

static rondo_status region_fill(const rondo_session *session, rondo__region *region) {
    const rondo__compile_cut *cut = region->cut;
    void *memory = NULL;
    uint32_t bodies = 0;
    for (uint32_t i = 0; i < cut->step_count; i++) bodies += cut->steps[i].body_count;
    RONDO__TRY(rondo__allocate_array(&session->allocator, bodies, sizeof(rondo__session_graph *), &memory));
    region->bodies = memory;
    region->body_count = bodies;
    RONDO__TRY(rondo__allocate_array(&session->allocator, cut->constant_count, sizeof(rondo_value *), &memory));
    region->constants = memory;
    bodies = 0;
    for (uint32_t i = 0; i < cut->step_count; i++) {
        for (uint32_t b = 0; b < cut->steps[i].body_count; b++) {
            RONDO__TRY(region_graph_create(session, cut->steps[i].bodies[b].graph, &region->bodies[bodies++]));
        }
    }
    if (cut->rest) RONDO__TRY(region_graph_create(session, cut->rest, &region->rest));
    return region_constants(session, region);
}

void rondo__region_destroy(rondo_session *session, rondo__region *region) {
    if (!region) return;
    for (uint32_t i = 0; i < region->body_count; i++) rondo__session_graph_destroy(session, region->bodies[i]);
    rondo__free(&session->allocator, region->bodies, region->body_count * sizeof(rondo__session_graph *));
    rondo__session_graph_destroy(session, region->rest);
    if (region->constants) {
        rondo__values_release(region->constants, region->cut->constant_count);
        rondo__free(&session->allocator, region->constants, region->cut->constant_count * sizeof(rondo_value *));
    }
    rondo__compile_cut_free(region->cut);
    rondo__free(&session->allocator, region, sizeof *region);
}

rondo_status rondo__region_create(rondo_session *session, rondo__compile_cut *cut, rondo__region **out_region) {
    void *memory = NULL;
    rondo_status status = rondo__allocate_zeroed(&session->allocator, sizeof(rondo__region), &memory);
    if (status) {
        rondo__compile_cut_free(cut);
        return status;
    }
    rondo__region *region = memory;
    region->cut = cut;
    status = region_fill(session, region);
    if (status) {
        rondo__region_destroy(session, region);
        return status;
    }
    *out_region = region;
    return RONDO_OK;
}

static void region_add(const rondo__session_graph *graph, rondo_session_info *info) {
    if (!graph) return;
    info->compiles += graph->info.compiles;
    info->captures += graph->info.captures;
    info->replays += graph->info.replays;
    info->compile_ns += graph->info.compile_ns;
    info->capture_ns += graph->info.capture_ns;
    rondo__region_add_info(graph, info);
}

void rondo__region_add_info(const rondo__session_graph *graph, rondo_session_info *info) {
    for (size_t i = 0; i < graph->specialisations.count; i++) {
        const rondo__specialisation *s = *RONDO__BUFFER_AT(&graph->specialisations, rondo__specialisation *, i);
        if (!s->region) continue;
        region_add(s->region->rest, info);
        for (uint32_t b = 0; b < s->region->body_count; b++) region_add(s->region->bodies[b], info);
    }
}

rondo_status rondo__region_refuse(const rondo__session_graph *graph, const rondo__specialisation *s,
                                  rondo_layer layer) {
    const rondo__compile_step *step = &s->region->cut->steps[0];
    return rondo__status_make(
        RONDO_CODE_UNSUPPORTED, layer, __FILE__, __LINE__,
        "graph %u is no plan from end to end: node '%s' (%s) runs between plans, for %s. A run on a "
        "stream looks at no data, and a capture cannot record what must: use rondo_session_run",
        graph->id, step->name, step->operator_name, step->why);
}

/* ------------------------------------------------------------------------------------------------------- running */

/* One run of a cut graph: the values that its slots mean. */
typedef struct region_run {
    rondo_session *session;
    const rondo__region *region;
    rondo_value *const *inputs;
    rondo_value **plan, **steps, **rest;
} region_run;

static rondo_value *region_value(const region_run *run, rondo__compile_slot slot) {
    uint32_t index = RONDO__COMPILE_SLOT_INDEX(slot);
    if (slot == RONDO__COMPILE_SLOT_NONE) return NULL;
    switch (RONDO__COMPILE_SLOT_KIND(slot)) {
    case RONDO__COMPILE_FROM_INPUT: return run->inputs[index];
    case RONDO__COMPILE_FROM_PLAN: return run->plan[index];
    case RONDO__COMPILE_FROM_STEP: return run->steps[index];
    case RONDO__COMPILE_FROM_REST: return run->rest[index];
    default: return run->region->constants[index];
    }
}

static void region_values(const region_run *run, const rondo__compile_slot *slots, uint32_t count,
                          rondo_value **values) {
    for (uint32_t i = 0; i < count; i++) values[i] = region_value(run, slots[i]);
}

static uint32_t region_step_values(const rondo__compile_step *step) {
    uint32_t count = step->input_count + step->output_count;
    for (uint32_t b = 0; b < step->body_count; b++) count += step->bodies[b].captured_count;
    return count;
}

static rondo_status region_step(const region_run *run, const rondo__compile_step *step,
                                rondo__session_graph *const *bodies, void *memory) {
    rondo_value *const *captured[2] = {NULL, NULL};
    rondo_value **inputs = memory, **outputs = inputs + step->input_count, **next = outputs + step->output_count;
    region_values(run, step->inputs, step->input_count, inputs);
    for (uint32_t b = 0; b < step->body_count && b < 2; b++) {
        region_values(run, step->bodies[b].captured, step->bodies[b].captured_count, next);
        captured[b] = next;
        next += step->bodies[b].captured_count;
    }
    rondo__region_step s = {run->session, step, bodies, captured, inputs, outputs, run->region->cut->holds};
    rondo_status status = rondo__region_step_run(&s);
    status = rondo__operators_explain(run->region->cut->holds->operators, status);
    for (uint32_t i = 0; i < step->output_count; i++) {
        if (step->outputs[i] == RONDO__COMPILE_SLOT_NONE || status) rondo_value_release(outputs[i]);
        else run->steps[RONDO__COMPILE_SLOT_INDEX(step->outputs[i])] = outputs[i];
    }
    return status ? rondo__status_note(status, "at node '%s' (%s), which runs between plans: %s", step->name,
                                       step->operator_name, step->why)
                  : RONDO_OK;
}

static rondo_status region_steps(const region_run *run) {
    const rondo__compile_cut *cut = run->region->cut;
    uint32_t body = 0;
    for (uint32_t i = 0; i < cut->step_count; i++) {
        const rondo__compile_step *step = &cut->steps[i];
        size_t count = region_step_values(step);
        void *memory = NULL;
        RONDO__TRY(rondo__allocate_array(&run->session->allocator, count, sizeof(rondo_value *), &memory));
        rondo_status status = region_step(run, step, run->region->bodies + body, memory);
        rondo__free(&run->session->allocator, memory, count * sizeof(rondo_value *));
        if (status) return status;
        body += step->body_count;
    }
    return RONDO_OK;
}

static rondo_status region_rest(const region_run *run) {
    const rondo__compile_cut *cut = run->region->cut;
    void *memory = NULL;
    if (!run->region->rest) return RONDO_OK;
    RONDO__TRY(rondo__allocate_array(&run->session->allocator, cut->rest_input_count, sizeof(rondo_value *), &memory));
    region_values(run, cut->rest_inputs, cut->rest_input_count, memory);
    rondo_status status = rondo__region_run(run->session, run->region->rest, memory, run->rest);
    rondo__free(&run->session->allocator, memory, cut->rest_input_count * sizeof(rondo_value *));
    return status;
}

/* The plan's outputs into values of their own. */
static rondo_status region_plan(rondo_session *session, rondo__session_graph *graph, rondo__specialisation *s,
                                rondo_value *const *inputs, rondo_value **outputs) {
    uint32_t in = s->plan->input_count, out = s->plan->output_count;
    void *memory = NULL;
    size_t bytes = in * sizeof(rondo__session_tensor) + out * sizeof(rondo_tensor_view);
    RONDO__TRY(rondo__allocate_zeroed(&session->allocator, bytes, &memory));
    rondo__session_tensor *tensors = memory;
    rondo_tensor_view *views = (rondo_tensor_view *)(void *)(tensors + in);
    rondo_status status = RONDO_OK;
    for (uint32_t i = 0; i < in; i++) {
        if (inputs[i]->kind != RONDO_VALUE_TENSOR) continue;
        tensors[i] = (rondo__session_tensor){inputs[i]->data, NULL, inputs[i]->bytes};
    }
    for (uint32_t i = 0; i < out && !status; i++) {
        const rondo__plan_port *port = &s->plan->outputs[i];
        status = rondo__value_tensor(&session->allocator, port->dtype, port->rank, port->dims, &outputs[i]);
        if (!status) rondo__value_view(outputs[i], &views[i]);
    }
    if (!status) status = rondo__session_specialised(session, graph, s, tensors, views);
    rondo__free(&session->allocator, memory, bytes);
    if (status) rondo__values_release(outputs, out);
    return status;
}

static rondo_status region_cut_run(const region_run *run, rondo_value **outputs) {
    const rondo__compile_cut *cut = run->region->cut;
    RONDO__TRY(region_steps(run));
    RONDO__TRY(region_rest(run));
    for (uint32_t i = 0; i < cut->output_count; i++) {
        outputs[i] = region_value(run, cut->outputs[i]);
        rondo_value_retain(outputs[i]);
    }
    return RONDO_OK;
}

rondo_status rondo__region_specialised(rondo_session *session, rondo__session_graph *graph, rondo__specialisation *s,
                                       rondo_value *const *inputs, rondo_value **outputs) {
    const rondo__region *region = s->region;
    uint32_t made = s->plan ? s->plan->output_count : 0;
    void *memory = NULL;
    s->used = ++session->clock;
    if (!region) return region_plan(session, graph, s, inputs, outputs);
    uint32_t steps = region->cut->step_values, rest = region->rest ? (uint32_t)region->cut->rest->outputs.count : 0;
    size_t count = (size_t)made + steps + rest;
    RONDO__TRY(rondo__allocate_array(&session->allocator, count, sizeof(rondo_value *), &memory));
    rondo_value **values = memory;
    region_run run = {session, region, inputs, values, values + made, values + made + steps};
    rondo_status status = made ? region_plan(session, graph, s, inputs, values) : RONDO_OK;
    if (!status) status = region_cut_run(&run, outputs);
    rondo__values_release(values, count);
    rondo__free(&session->allocator, memory, count * sizeof(rondo_value *));
    return status;
}

static rondo_status region_run_on(rondo_session *session, rondo__session_graph *graph, rondo_value *const *inputs,
                                  rondo_value **outputs, void *memory) {
    uint32_t count = (uint32_t)graph->graph->inputs.count;
    rondo__session_tensor *tensors = memory;
    rondo_tensor_view *views = (rondo_tensor_view *)(void *)(tensors + count);
    rondo__specialisation *s = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (inputs[i]->kind == RONDO_VALUE_TENSOR) {
            rondo__value_view(inputs[i], &views[i]);
            tensors[i].bytes = inputs[i]->bytes; /* without the data: what decides is done between plans, by no guard */
        }
    }
    RONDO__TRY(rondo__session_specialise(session, graph, views, tensors, true, &s));
    return rondo__region_specialised(session, graph, s, inputs, outputs);
}

rondo_status rondo__region_run(rondo_session *session, rondo__session_graph *graph, rondo_value *const *inputs,
                               rondo_value **outputs) {
    size_t bytes = graph->graph->inputs.count * (sizeof(rondo__session_tensor) + sizeof(rondo_tensor_view));
    void *memory = NULL;
    if (session->depth == RONDO__REGION_DEPTH_MAX) {
        return RONDO__FAIL(UNSUPPORTED, META, "graph '%s': more than %u regions that wait for each other",
                           graph->graph->name, RONDO__REGION_DEPTH_MAX);
    }
    for (size_t i = 0; i < graph->graph->inputs.count; i++) {
        if (!inputs[i])
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "graph '%s': input %zu is absent", graph->graph->name, i);
    }
    RONDO__TRY(rondo__allocate_zeroed(&session->allocator, bytes, &memory));
    session->depth++;
    rondo_status status = region_run_on(session, graph, inputs, outputs, memory);
    session->depth--;
    rondo__free(&session->allocator, memory, bytes);
    return status;
}
