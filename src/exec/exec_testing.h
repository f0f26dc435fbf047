/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans made by hand for the tests of this room: vectors of equal length, elementwise steps. */
#ifndef RONDO_SRC_EXEC_EXEC_TESTING_H
#define RONDO_SRC_EXEC_EXEC_TESTING_H

#include "exec/exec.h"
#include "harness/harness.h"

#define EP_FLOATS 16u
#define EP_BYTES (EP_FLOATS * sizeof(float))
#define EP_MAX 32u

typedef struct exec_plan {
    rondo_plan *plan;
    int64_t dims[1];
    _Alignas(64) float constants[4][EP_FLOATS];
    rondo__plan_buffer buffers[EP_MAX];
    rondo__plan_operand operands[EP_MAX * 3];
    rondo__plan_step steps[EP_MAX];
    rondo__plan_port inputs[8], outputs[8];
    uint32_t operand_count, constant_count;
} exec_plan;

static inline void ep_close(exec_plan *e) { rondo_plan_release(e->plan); }

static inline void ep_open(rondo_test *t, exec_plan *e) {
    memset(e, 0, sizeof *e);
    T_DEFER(t, ep_close, e);
    T_OK(t, rondo__plan_create(rondo_test_allocator(t), "by hand", &e->plan));
    e->dims[0] = EP_FLOATS;
    e->plan->target = "ref";
    e->plan->buffers = e->buffers;
    e->plan->steps = e->steps;
    e->plan->inputs = e->inputs;
    e->plan->outputs = e->outputs;
    e->plan->segment_count = e->plan->lane_count = 1;
}

static inline uint32_t ep_buffer(exec_plan *e, const char *name, rondo__plan_buffer_kind kind) {
    uint32_t index = e->plan->buffer_count++;
    e->buffers[index] = (rondo__plan_buffer){.name = name, .kind = kind, .bytes = EP_BYTES};
    return index;
}

static inline uint32_t ep_port(exec_plan *e, const char *name, bool input) {
    uint32_t buffer = ep_buffer(e, name, input ? RONDO__PLAN_INPUT : RONDO__PLAN_OUTPUT);
    uint32_t *count = input ? &e->plan->input_count : &e->plan->output_count;
    e->buffers[buffer].slot = *count;
    (input ? e->inputs : e->outputs)[(*count)++] =
        (rondo__plan_port){name, RONDO_DTYPE_F32, 1, e->dims, EP_BYTES, buffer};
    return buffer;
}

static inline uint32_t ep_temporary(exec_plan *e, const char *name) {
    uint32_t buffer = ep_buffer(e, name, RONDO__PLAN_TEMPORARY);
    e->buffers[buffer].offset = e->plan->arena_bytes;
    e->buffers[buffer].first_step = UINT32_MAX;
    e->plan->arena_bytes += (EP_BYTES + 63u) & ~(uint64_t)63u;
    return buffer;
}

/* Constant k holds k + 1, 2 (k + 1), 3 (k + 1), ... */
static inline uint32_t ep_constant(exec_plan *e, const char *name) {
    uint32_t buffer = ep_buffer(e, name, RONDO__PLAN_CONSTANT), k = e->constant_count++;
    for (uint32_t i = 0; i < EP_FLOATS; i++) e->constants[k][i] = (float)((k + 1u) * (i + 1u));
    e->buffers[buffer].data = e->constants[k];
    e->plan->constant_bytes += EP_BYTES;
    return buffer;
}

static inline rondo__plan_operand *ep_operand(exec_plan *e, uint32_t buffer) {
    rondo__plan_operand *operand = &e->operands[e->operand_count++];
    *operand = (rondo__plan_operand){buffer, RONDO_DTYPE_F32, 1, RONDO_FORMAT_ND, e->dims, 0, EP_BYTES, NULL};
    if (e->buffers[buffer].kind == RONDO__PLAN_CONSTANT) operand->constant = e->buffers[buffer].data;
    if (e->buffers[buffer].kind == RONDO__PLAN_TEMPORARY) {
        if (e->buffers[buffer].first_step == UINT32_MAX) e->buffers[buffer].first_step = e->plan->step_count;
        e->buffers[buffer].last_step = e->plan->step_count;
    }
    return operand;
}

/* b is RONDO__PLAN_NONE for an operator of one input. */
static inline rondo__plan_step *ep_step(exec_plan *e, const char *catalogue, const char *operator_name,
                                        const char *name, uint32_t a, uint32_t b, uint32_t out) {
    rondo__plan_step *step = &e->steps[e->plan->step_count];
    *step = (rondo__plan_step){.operator_name = operator_name,
                               .node_name = name,
                               .catalogue = catalogue,
                               .input_count = b == RONDO__PLAN_NONE ? 1 : 2,
                               .output_count = 1,
                               .record = RONDO__PLAN_NONE};
    step->inputs = ep_operand(e, a);
    if (b != RONDO__PLAN_NONE) (void)ep_operand(e, b);
    step->outputs = ep_operand(e, out);
    e->plan->step_count++;
    return step;
}

#endif
