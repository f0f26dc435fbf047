/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax along the last axis, and reductions over neighbouring axes: [outer][reduced][inner]. */
#include "planner.h"

#include <string.h>

typedef enum reduce_kind { REDUCE_SUM = 0, REDUCE_MEAN = 1, REDUCE_MAX = 2 } reduce_kind;

typedef struct reduce_context {
    const rondo__cpu_set *set;
    float (*row)(const float *x, size_t count);
    uint64_t outer, reduced, inner;
    uint32_t out;
    uint32_t mean;
    rondo__cpu_binary_strip fold; /* rows into rows */
    float divisor;
} reduce_context;

static int32_t reduce_lanes_run(const void *context, const uint64_t *words) {
    const reduce_context *c = context;
    const float *x = RONDO__CPU_AT(float, words[0]);
    float *y = RONDO__CPU_AT(float, words[c->out]);
    for (uint64_t i = 0; i < c->outer; i++, x += c->reduced) y[i] = c->row(x, c->reduced) / c->divisor;
    return 0;
}

static int32_t reduce_rows_run(const void *context, const uint64_t *words) {
    const reduce_context *c = context;
    const float *x = RONDO__CPU_AT(float, words[0]);
    float *y = RONDO__CPU_AT(float, words[c->out]);
    for (uint64_t i = 0; i < c->outer; i++, y += c->inner) {
        memcpy(y, x, c->inner * sizeof *y);
        x += c->inner;
        for (uint64_t r = 1; r < c->reduced; r++, x += c->inner) c->fold(y, x, y, c->inner);
        if (c->mean) c->set->binary[RONDO__CPU_DIV][RONDO__CPU_SCALAR_B](y, &c->divisor, y, c->inner);
    }
    return 0;
}

/* Which axes: bit d set for axis d. */
static rondo_status reduce_axes(const rondo__cpu_plan *plan, const rondo_operand *in, uint32_t *out_mask) {
    const rondo_operand *axes = rondo__cpu_input(plan, 1);
    int64_t given[RONDO_RANK_MAX];
    uint32_t count = 0, mask = 0;
    if (axes && !rondo__cpu_constant_ints(axes, given, RONDO_RANK_MAX, &count))
        return rondo__cpu_refuse(plan, "only constant axes have a fast kernel");
    for (uint32_t i = 0; i < count; i++) {
        int32_t axis;
        if (!rondo__cpu_axis(given[i], in->rank, &axis)) return rondo__cpu_refuse(plan, "an axis is out of range");
        mask |= 1u << axis;
    }
    if (count == 0) {
        if (rondo__cpu_attribute_int(plan, "noop_with_empty_axes", 0) != 0)
            return rondo__cpu_refuse(plan, "a reduction over nothing has no fast kernel");
        mask = (uint32_t)(((uint64_t)1 << in->rank) - 1u);
    }
    *out_mask = mask;
    return RONDO_OK;
}

static rondo_status reduce_plan(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 1, 2, 1);
    if (status) return status;
    const rondo_operand *in = rondo__cpu_input(plan, 0), *out = rondo__cpu_output(plan, 0);
    if (!rondo__cpu_is(in, RONDO_DTYPE_F32) || !rondo__cpu_is(out, RONDO_DTYPE_F32))
        return rondo__cpu_refuse(plan, "only float32 has a fast kernel");
    uint32_t mask = 0;
    status = reduce_axes(plan, in, &mask);
    if (status) return status;
    uint64_t size[3] = {1, 1, 1}; /* outer, reduced, inner */
    uint32_t part = 0;
    for (int32_t d = 0; d < in->rank; d++) {
        const bool reduced = mask >> d & 1u;
        if (in->dims[d] == 1) continue;
        if (part == 0 && reduced) part = 1;
        if (part == 1 && !reduced) part = 2;
        if (part == 2 && reduced) return rondo__cpu_refuse(plan, "axes that are not neighbours have no fast kernel");
        size[part] *= (uint64_t)in->dims[d];
    }
    if (size[1] == 0) return rondo__cpu_refuse(plan, "a reduction of no numbers has no fast kernel");
    if (rondo__cpu_elements(out) != size[0] * size[2])
        return rondo__cpu_refuse(plan, "the output's shape does not fit");
    reduce_context *c;
    status = rondo__cpu_context(plan, sizeof *c, &c);
    if (status) return status;
    const uint32_t kind = rondo__cpu_operator_find(plan->request->operator_name)->detail;
    *c = (reduce_context){.set = plan->set,
                          .row = kind == REDUCE_MAX ? plan->set->maximum : plan->set->sum,
                          .outer = size[0],
                          .reduced = size[1],
                          .inner = size[2],
                          .out = rondo__cpu_word_out(plan, 0),
                          .mean = kind == REDUCE_MEAN,
                          .divisor = kind == REDUCE_MEAN ? (float)size[1] : 1.0f,
                          .fold =
                              plan->set->binary[kind == REDUCE_MAX ? RONDO__CPU_MAX : RONDO__CPU_ADD][RONDO__CPU_BOTH]};
    if (size[2] == 0) c->outer = 0;
    if (rondo__cpu_input(plan, 1)) plan->facts.absorbed_inputs = 2;
    plan->kernel.function = size[2] == 1 ? reduce_lanes_run : reduce_rows_run;
    plan->facts.variant = plan->set->variant[size[2] == 1 ? RONDO__CPU_VARIANT_REDUCE : RONDO__CPU_VARIANT_REDUCE_ROWS];
    return RONDO_OK;
}

/* The mean or the largest of each plane. */
static rondo_status reduce_plan_planes(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 1, 1, 1);
    if (status) return status;
    const rondo_operand *in = rondo__cpu_input(plan, 0), *out = rondo__cpu_output(plan, 0);
    if (!rondo__cpu_is(in, RONDO_DTYPE_F32) || !rondo__cpu_is(out, RONDO_DTYPE_F32))
        return rondo__cpu_refuse(plan, "only float32 has a fast kernel");
    if (in->rank < 3) return rondo__cpu_refuse(plan, "only planes of channels have a fast kernel");
    const uint64_t planes = rondo__cpu_span(in, 0, 2), size = rondo__cpu_span(in, 2, in->rank);
    if (size == 0 || rondo__cpu_elements(out) != planes)
        return rondo__cpu_refuse(plan, "the output's shape does not fit");
    reduce_context *c;
    status = rondo__cpu_context(plan, sizeof *c, &c);
    if (status) return status;
    const bool mean = rondo__cpu_operator_find(plan->request->operator_name)->detail == REDUCE_MEAN;
    *c = (reduce_context){.set = plan->set,
                          .row = mean ? plan->set->sum : plan->set->maximum,
                          .outer = planes,
                          .reduced = size,
                          .inner = 1,
                          .out = rondo__cpu_word_out(plan, 0),
                          .divisor = mean ? (float)size : 1.0f};
    plan->kernel.function = reduce_lanes_run;
    plan->facts.variant = plan->set->variant[RONDO__CPU_VARIANT_REDUCE];
    return RONDO_OK;
}

typedef struct reduce_softmax {
    void (*row)(const float *x, float *y, size_t count);
    uint64_t rows, count;
} reduce_softmax;

static int32_t reduce_softmax_run(const void *context, const uint64_t *words) {
    const reduce_softmax *c = context;
    const float *x = RONDO__CPU_AT(float, words[0]);
    float *y = RONDO__CPU_AT(float, words[1]);
    for (uint64_t r = 0; r < c->rows; r++, x += c->count, y += c->count) c->row(x, y, c->count);
    return 0;
}

static rondo_status reduce_plan_softmax(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 1, 1, 1);
    if (status) return status;
    const rondo_operand *in = rondo__cpu_input(plan, 0), *out = rondo__cpu_output(plan, 0);
    int32_t axis;
    if (!rondo__cpu_is(in, RONDO_DTYPE_F32) || !rondo__cpu_is(out, RONDO_DTYPE_F32) || !rondo__cpu_same_shape(in, out))
        return rondo__cpu_refuse(plan, "only float32 has a fast kernel");
    if (!rondo__cpu_axis(rondo__cpu_attribute_int(plan, "axis", -1), in->rank, &axis) ||
        rondo__cpu_span(in, axis + 1, in->rank) != 1)
        return rondo__cpu_refuse(plan, "only the last axis has a fast kernel");
    reduce_softmax *c;
    status = rondo__cpu_context(plan, sizeof *c, &c);
    if (status) return status;
    *c = (reduce_softmax){plan->set->softmax, rondo__cpu_span(in, 0, axis), (uint64_t)in->dims[axis]};
    plan->kernel.function = reduce_softmax_run;
    plan->facts.in_place_inputs = 1;
    plan->facts.variant = plan->set->variant[RONDO__CPU_VARIANT_SOFTMAX];
    return RONDO_OK;
}

const rondo__cpu_operator rondo__cpu_reduce_operators[] = {
    {"ReduceSum", reduce_plan, REDUCE_SUM},
    {"ReduceMean", reduce_plan, REDUCE_MEAN},
    {"ReduceMax", reduce_plan, REDUCE_MAX},
    {"GlobalAveragePool", reduce_plan_planes, REDUCE_MEAN},
    {"GlobalMaxPool", reduce_plan_planes, REDUCE_MAX},
    {"Softmax", reduce_plan_softmax, 0},
};
const uint32_t rondo__cpu_reduce_operator_count =
    sizeof rondo__cpu_reduce_operators / sizeof *rondo__cpu_reduce_operators;
