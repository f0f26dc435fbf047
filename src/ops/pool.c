/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling over the axes after batch and channel. */
#include <string.h>

#include "ops/infer.h"

static rondo_status pool_axis(rondo__ops_infer *infer, int32_t axis, const char *auto_pad, const int64_t window[5],
                              int64_t *out) {
    const int64_t size = infer->request->inputs[0].dims[axis], kernel = window[0], stride = window[1];
    const int64_t limit = INT32_MAX;
    for (uint32_t i = 0; i < 5; i++) {
        if (size <= limit && window[i] <= limit) continue;
        return RONDO__OPS_FAIL(infer, OUT_OF_RANGE, "axis %d and its window reach beyond what is counted", axis);
    }
    if (strncmp(auto_pad, "SAME_", 5) == 0) {
        *out = size / stride + (size % stride != 0);
        return RONDO_OK;
    }
    int64_t span = size + window[3] + window[4] - ((kernel - 1) * window[2] + 1);
    if (span < 0) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "a window of %lld does not fit on axis %d of size %lld",
                               (long long)kernel, axis, (long long)size);
    }
    bool up = rondo__ops_attribute_int(infer->request, "ceil_mode", 0) != 0;
    *out = span / stride + 1;
    /* A window that starts behind all elements is left out. */
    if (up && span % stride != 0 && *out * stride < size + window[3]) ++*out;
    return RONDO_OK;
}

static rondo_status pool_infer(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    const char *auto_pad = rondo__ops_attribute_string(infer->request, "auto_pad", "NOTSET");
    const int64_t *kernel, *strides, *dilations, *pads;
    int64_t dims[RONDO_RANK_MAX];
    if (input->rank < 3) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the input has rank %d", input->rank);
    if (strcmp(auto_pad, "NOTSET") != 0 && strcmp(auto_pad, "VALID") != 0 && strcmp(auto_pad, "SAME_UPPER") != 0 &&
        strcmp(auto_pad, "SAME_LOWER") != 0) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "there is no auto_pad '%s'", auto_pad);
    }
    if (rondo__ops_attribute_int(infer->request, "p", 2) < 1) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute 'p' must be 1 or more");
    }
    const uint32_t spatial = (uint32_t)input->rank - 2u;
    RONDO__TRY(rondo__ops_ints(infer, "kernel_shape", spatial, 1, &kernel));
    RONDO__TRY(rondo__ops_ints(infer, "strides", spatial, 1, &strides));
    RONDO__TRY(rondo__ops_ints(infer, "dilations", spatial, 1, &dilations));
    RONDO__TRY(rondo__ops_ints(infer, "pads", 2u * spatial, 0, &pads));
    if (!kernel) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute 'kernel_shape' is missing");
    for (uint32_t i = 0; pads && strcmp(auto_pad, "NOTSET") != 0 && i < 2u * spatial; i++) {
        if (!pads[i]) continue;
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "auto_pad '%s' and pads exclude each other", auto_pad);
    }
    for (uint32_t d = 0; d < spatial; d++) {
        const int64_t window[5] = {kernel[d], strides ? strides[d] : 1, dilations ? dilations[d] : 1,
                                   pads ? pads[d] : 0, pads ? pads[spatial + d] : 0};
        RONDO__TRY(pool_axis(infer, (int32_t)d + 2, auto_pad, window, &dims[2u + d]));
    }
    dims[0] = input->dims[0];
    dims[1] = input->dims[1];
    rondo__ops_result(infer, 0, input->dtype, input->rank, dims);
    rondo__ops_result(infer, 1, RONDO_DTYPE_I64, input->rank, dims);
    return RONDO_OK;
}

static rondo_status pool_infer_global(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    int64_t dims[RONDO_RANK_MAX];
    if (input->rank < 2) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the input has rank %d", input->rank);
    for (int32_t d = 0; d < input->rank; d++) dims[d] = d < 2 ? input->dims[d] : 1;
    for (int32_t d = 2; d < input->rank; d++)
        if (!input->dims[d]) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "axis %d has no elements", d);
    rondo__ops_result(infer, 0, input->dtype, input->rank, dims);
    return RONDO_OK;
}

#define POOL_MAX_TYPES (RONDO__OPS_FLOATS | RONDO__OPS_BIT(I8) | RONDO__OPS_BIT(U8))
static const rondo__ops_operand pool_inputs[] = {{"X", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_operand pool_outputs[] = {{"Y", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_operand pool_max_inputs[] = {{"X", POOL_MAX_TYPES, 'T', 0, 0, 0}};
static const rondo__ops_operand pool_max_outputs[] = {{"Y", POOL_MAX_TYPES, 'T', 0, 0, 0},
                                                      {"Indices", RONDO__OPS_BIT(I64), 0, 1, 0, 0}};
#undef POOL_MAX_TYPES

#define POOL_PADS \
    {"auto_pad", RONDO_ATTRIBUTE_STRING, 0, "NOTSET"}, { "ceil_mode", RONDO_ATTRIBUTE_INT, 0, "0" }
#define POOL_INTS(name) \
    { name, RONDO_ATTRIBUTE_INTS, 0, NULL }
#define POOL_SHAPE \
    POOL_INTS("dilations"), { "kernel_shape", RONDO_ATTRIBUTE_INTS, 1, NULL }
static const rondo__ops_attribute pool_average_attributes[] = {
    POOL_PADS, {"count_include_pad", RONDO_ATTRIBUTE_INT, 0, "0"}, POOL_SHAPE, POOL_INTS("pads"), POOL_INTS("strides")};
static const rondo__ops_attribute pool_norm_attributes[] = {
    POOL_PADS, POOL_SHAPE, {"p", RONDO_ATTRIBUTE_INT, 0, "2"}, POOL_INTS("pads"), POOL_INTS("strides")};
static const rondo__ops_attribute pool_max_attributes[] = {
    POOL_PADS, POOL_SHAPE, POOL_INTS("pads"), {"storage_order", RONDO_ATTRIBUTE_INT, 0, "0"}, POOL_INTS("strides")};

const rondo__ops_prototype rondo__ops_AveragePool = {.name = "AveragePool",
                                                     .summary = "Mean of each window",
                                                     RONDO__OPS_INPUTS(pool_inputs),
                                                     RONDO__OPS_OUTPUTS(pool_outputs),
                                                     RONDO__OPS_ATTRIBUTES(pool_average_attributes),
                                                     .infer = pool_infer};
const rondo__ops_prototype rondo__ops_LpPool = {.name = "LpPool",
                                                .summary = "Norm of each window",
                                                RONDO__OPS_INPUTS(pool_inputs),
                                                RONDO__OPS_OUTPUTS(pool_outputs),
                                                RONDO__OPS_ATTRIBUTES(pool_norm_attributes),
                                                .infer = pool_infer};
const rondo__ops_prototype rondo__ops_MaxPool = {.name = "MaxPool",
                                                 .summary = "Largest of each window, and where it is",
                                                 RONDO__OPS_INPUTS(pool_max_inputs),
                                                 RONDO__OPS_OUTPUTS(pool_max_outputs),
                                                 RONDO__OPS_ATTRIBUTES(pool_max_attributes),
                                                 .infer = pool_infer};
const rondo__ops_prototype rondo__ops_GlobalAveragePool = {.name = "GlobalAveragePool",
                                                           .summary = "Mean of each channel",
                                                           RONDO__OPS_INPUTS(pool_inputs),
                                                           RONDO__OPS_OUTPUTS(pool_outputs),
                                                           .infer = pool_infer_global};
const rondo__ops_prototype rondo__ops_GlobalMaxPool = {.name = "GlobalMaxPool",
                                                       .summary = "Largest of each channel",
                                                       RONDO__OPS_INPUTS(pool_inputs),
                                                       RONDO__OPS_OUTPUTS(pool_outputs),
                                                       .infer = pool_infer_global};
