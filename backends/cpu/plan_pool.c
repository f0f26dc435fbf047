/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool without padding: the rows of a window first, whole, then neighbours within the row that comes out. */
#include "planner.h"

typedef struct pool_context {
    const rondo__cpu_set *set;
    uint64_t planes, plane, width, out_height, out_width;
    uint64_t kernel[2], step[2];
    uint32_t out, scratch;
} pool_context;

static void pool_row(const pool_context *c, const float *row, float *y) {
    if (c->kernel[1] == 2 && c->step[1] == 2) {
        c->set->maximum_pairs(row, y, c->out_width);
        return;
    }
    for (uint64_t i = 0; i < c->out_width; i++, row += c->step[1]) y[i] = c->set->maximum(row, c->kernel[1]);
}

static int32_t pool_run(const void *context, const uint64_t *words) {
    const pool_context *c = context;
    const float *x = RONDO__CPU_AT(float, words[0]);
    float *y = RONDO__CPU_AT(float, words[c->out]), *scratch = RONDO__CPU_AT(float, words[c->scratch]);
    const rondo__cpu_binary_strip larger = c->set->binary[RONDO__CPU_MAX][RONDO__CPU_BOTH];
    for (uint64_t plane = 0; plane < c->planes; plane++, x += c->plane) {
        const float *rows = x;
        for (uint64_t row = 0; row < c->out_height; row++, rows += c->step[0] * c->width, y += c->out_width) {
            const float *best = rows;
            for (uint64_t k = 1; k < c->kernel[0]; k++, best = scratch)
                larger(best, rows + k * c->width, scratch, c->width);
            pool_row(c, best, y);
        }
    }
    return 0;
}

static rondo_status pool_read(const rondo__cpu_plan *plan, pool_context *c) {
    const rondo_operand *in = rondo__cpu_input(plan, 0), *out = rondo__cpu_output(plan, 0);
    int64_t kernel[2], step[2], spread[2], pads[4];
    if (!rondo__cpu_is(in, RONDO_DTYPE_F32) || !rondo__cpu_is(out, RONDO_DTYPE_F32))
        return rondo__cpu_refuse(plan, "only float32 has a fast kernel");
    if (in->rank != 4 || out->rank != 4) return rondo__cpu_refuse(plan, "only two dims have a fast kernel");
    if (!rondo__cpu_attribute_is(plan, "auto_pad", "NOTSET") && !rondo__cpu_attribute_is(plan, "auto_pad", "VALID"))
        return rondo__cpu_refuse(plan, "padding has no fast kernel");
    rondo_status status = rondo__cpu_attribute_ints(plan, "kernel_shape", 2, 1, kernel);
    if (!status) status = rondo__cpu_attribute_ints(plan, "strides", 2, 1, step);
    if (!status) status = rondo__cpu_attribute_ints(plan, "dilations", 2, 1, spread);
    if (!status) status = rondo__cpu_attribute_ints(plan, "pads", 4, 0, pads);
    if (status) return status;
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t size = in->dims[2 + i];
        if (pads[i] != 0 || pads[2 + i] != 0 || spread[i] != 1)
            return rondo__cpu_refuse(plan, "padding and dilation have no fast kernel");
        if (kernel[i] < 1 || step[i] < 1 || size < kernel[i] || (size - kernel[i]) / step[i] + 1 != out->dims[2 + i])
            return rondo__cpu_refuse(plan, "the output's size does not follow from the input's");
        c->kernel[i] = (uint64_t)kernel[i];
        c->step[i] = (uint64_t)step[i];
    }
    if (in->dims[0] != out->dims[0] || in->dims[1] != out->dims[1])
        return rondo__cpu_refuse(plan, "the output's shape does not fit");
    return RONDO_OK;
}

static rondo_status pool_plan(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 1, 1, 1);
    pool_context read = {.set = plan->set}, *c;
    if (!status) status = pool_read(plan, &read);
    if (status) return status;
    status = rondo__cpu_context(plan, sizeof *c, &c);
    if (status) return status;
    const rondo_operand *in = rondo__cpu_input(plan, 0), *out = rondo__cpu_output(plan, 0);
    *c = read;
    c->planes = rondo__cpu_span(in, 0, 2);
    c->plane = rondo__cpu_span(in, 2, 4);
    c->width = (uint64_t)in->dims[3];
    c->out_height = (uint64_t)out->dims[2];
    c->out_width = (uint64_t)out->dims[3];
    /* Rows that are not left over and not shared are one long row. */
    if (c->kernel[0] == 1 && c->step[0] == 1 && c->kernel[1] == c->step[1] && c->width % c->step[1] == 0) {
        c->width *= c->out_height * c->planes;
        c->out_width *= c->out_height * c->planes;
        c->out_height = c->planes = 1;
    }
    c->out = rondo__cpu_word_out(plan, 0);
    plan->facts.scratch_bytes = (uint64_t)in->dims[3] * sizeof(float);
    c->scratch = rondo__cpu_word_scratch(plan);
    plan->kernel.function = pool_run;
    plan->facts.variant = plan->set->variant[RONDO__CPU_VARIANT_POOL];
    return RONDO_OK;
}

const rondo__cpu_operator rondo__cpu_pool_operators[] = {{"MaxPool", pool_plan, 0}};
const uint32_t rondo__cpu_pool_operator_count = sizeof rondo__cpu_pool_operators / sizeof *rondo__cpu_pool_operators;
