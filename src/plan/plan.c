/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan's life and what can be asked of it. Everything it points to lies in its arena, so one deinit takes it all. */
#include "plan/plan.h"

#include <string.h>

#include "base/checked.h"
#include "base/sized.h"

/* An arena block header or a handful of names is nothing; a plan of more than this many bytes of description is not
 * one that a model needs. Constants are not in it. */
#define RONDO__PLAN_ARENA_MAX ((size_t)1 << 36)

rondo_status rondo__plan_create(const rondo_allocator *allocator, const char *name, rondo_plan **out) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(rondo_plan), &memory));
    rondo_plan *plan = memory;
    rondo__ref_init(&plan->references);
    plan->allocator = *allocator;
    rondo__arena_init(&plan->arena, allocator, RONDO__PLAN_ARENA_MAX);
    plan->target = "";
    if (!name) name = "";
    rondo_status status = rondo__arena_string(&plan->arena, name, strlen(name), &plan->name);
    if (status) {
        rondo_plan_release(plan);
        return status;
    }
    *out = plan;
    return RONDO_OK;
}

void rondo_plan_retain(rondo_plan *plan) {
    if (plan) rondo__ref_retain(&plan->references);
}

void rondo_plan_release(rondo_plan *plan) {
    if (!plan || !rondo__ref_release(&plan->references)) return;
    rondo_allocator allocator = plan->allocator;
    if (plan->keeps && plan->keeps_release) plan->keeps_release(plan->keeps);
    if (plan->file && plan->file_release) plan->file_release(plan->file);
    rondo__arena_deinit(&plan->arena);
    rondo__free(&allocator, plan, sizeof(rondo_plan));
}

rondo_status rondo_plan_get_info(const rondo_plan *plan, rondo_plan_info *out_info) {
    if (!plan) return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_plan_get_info: plan is null");
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_NONE, "rondo_plan_info", out_info));
    rondo_plan_info info = RONDO_PLAN_INFO_INIT;
    info.segments = plan->segment_count;
    info.nodes_in = plan->nodes_in;
    info.calls = plan->step_count;
    info.inputs = plan->input_count;
    info.outputs = plan->output_count;
    info.arena_bytes = plan->arena_bytes;
    info.arena_lower_bound = plan->arena_lower_bound;
    info.weight_bytes = plan->constant_bytes;
    rondo__sized_write(&info, sizeof info, out_info);
    return RONDO_OK;
}

static rondo_status plan_port_info(const rondo__plan_port *ports, uint32_t count, const char *what, uint32_t index,
                                   rondo_tensor_info *out_info) {
    if (index >= count) {
        return RONDO__FAIL(OUT_OF_RANGE, NONE, "%s %u does not exist: the plan has %u", what, index, count);
    }
    const rondo__plan_port *port = &ports[index];
    out_info->name = port->name;
    out_info->dtype = port->dtype;
    out_info->rank = port->rank;
    out_info->dims = port->dims;
    out_info->bytes = port->bytes;
    return RONDO_OK;
}

rondo_status rondo_plan_input(const rondo_plan *plan, uint32_t index, rondo_tensor_info *out_info) {
    if (!plan || !out_info) return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_plan_input: plan or out_info is null");
    return plan_port_info(plan->inputs, plan->input_count, "input", index, out_info);
}

rondo_status rondo_plan_output(const rondo_plan *plan, uint32_t index, rondo_tensor_info *out_info) {
    if (!plan || !out_info) return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_plan_output: plan or out_info is null");
    return plan_port_info(plan->outputs, plan->output_count, "output", index, out_info);
}

const char *rondo_plan_remark(const rondo_plan *plan, uint32_t index) {
    return plan && index < plan->remark_count ? plan->remarks[index] : NULL;
}

static void plan_operands(const rondo__plan_operand *from, uint32_t count, rondo_operand *to) {
    for (uint32_t i = 0; i < count; i++) {
        to[i] = (rondo_operand){from[i].dtype, from[i].rank, from[i].dims, from[i].constant, from[i].format, 0};
    }
}

void rondo__plan_request(const rondo__plan_step *step, rondo_operand *inputs, rondo_operand *outputs,
                         rondo_kernel_request *out_request) {
    plan_operands(step->inputs, step->input_count, inputs);
    plan_operands(step->outputs, step->output_count, outputs);
    rondo_kernel_request request = RONDO_KERNEL_REQUEST_INIT;
    request.input_count = step->input_count;
    request.output_count = step->output_count;
    request.attribute_count = step->attribute_count;
    request.operator_name = step->operator_name;
    request.inputs = inputs;
    request.outputs = outputs;
    request.attributes = step->attributes;
    request.node_name = step->node_name;
    *out_request = request;
}

bool rondo__plan_is_transfer(const rondo__plan_step *step) {
    return strcmp(step->operator_name, RONDO__PLAN_TRANSFER) == 0;
}

uint32_t rondo__plan_word_count(const rondo__plan_step *step) {
    return step->input_count + step->output_count + (step->scratch_bytes > 0 ? 1u : 0u) +
           (step->packed_bytes > 0 ? 1u : 0u);
}
