/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that work along axes: reductions and softmax. */
#include "ops/infer.h"

static rondo_status reduce_infer(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    bool keep = rondo__ops_attribute_int(infer->request, "keepdims", 1) != 0;
    bool noop = rondo__ops_attribute_int(infer->request, "noop_with_empty_axes", 0) != 0;
    int64_t dims[RONDO_RANK_MAX];
    int32_t rank = 0;
    uint32_t mask;
    RONDO__TRY(rondo__ops_axes(infer, 1, input->rank, false, &mask));
    if (!mask && !noop) mask = UINT32_MAX;
    for (int32_t i = 0; i < input->rank; i++) {
        bool reduced = (mask & 1u << i) != 0;
        if (!reduced || keep) dims[rank++] = reduced ? 1 : input->dims[i];
    }
    rondo__ops_result(infer, 0, input->dtype, rank, dims);
    return RONDO_OK;
}

static const rondo__ops_attribute reduce_attributes[] = {{"keepdims", RONDO_ATTRIBUTE_INT, 0, "1"},
                                                         {"noop_with_empty_axes", RONDO_ATTRIBUTE_INT, 0, "0"}};

#define REDUCE_SUM_TYPES (RONDO__OPS_FLOATS | RONDO__OPS_WIDE_INTS)
static const rondo__ops_operand reduce_sum_inputs[] = {{"data", REDUCE_SUM_TYPES, 'T', 0, 0, 0},
                                                       {"axes", RONDO__OPS_BIT(I64), 0, 1, 0, 0}};
static const rondo__ops_operand reduce_sum_outputs[] = {{"reduced", REDUCE_SUM_TYPES, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_ReduceSum = {.name = "ReduceSum",
                                                   .summary = "Sum along axes, without axes along all",
                                                   RONDO__OPS_INPUTS(reduce_sum_inputs),
                                                   RONDO__OPS_OUTPUTS(reduce_sum_outputs),
                                                   RONDO__OPS_ATTRIBUTES(reduce_attributes),
                                                   .shape_inputs = 1u << 1,
                                                   .infer = reduce_infer};
const rondo__ops_prototype rondo__ops_ReduceMean = {.name = "ReduceMean",
                                                    .summary = "Mean along axes, without axes along all",
                                                    RONDO__OPS_INPUTS(reduce_sum_inputs),
                                                    RONDO__OPS_OUTPUTS(reduce_sum_outputs),
                                                    RONDO__OPS_ATTRIBUTES(reduce_attributes),
                                                    .shape_inputs = 1u << 1,
                                                    .infer = reduce_infer};

#define REDUCE_MAX_TYPES (REDUCE_SUM_TYPES | RONDO__OPS_BIT(I8) | RONDO__OPS_BIT(U8) | RONDO__OPS_BIT(BOOL))
static const rondo__ops_operand reduce_max_inputs[] = {{"data", REDUCE_MAX_TYPES, 'T', 0, 0, 0},
                                                       {"axes", RONDO__OPS_BIT(I64), 0, 1, 0, 0}};
static const rondo__ops_operand reduce_max_outputs[] = {{"reduced", REDUCE_MAX_TYPES, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_ReduceMax = {.name = "ReduceMax",
                                                   .summary = "Largest along axes, without axes along all",
                                                   RONDO__OPS_INPUTS(reduce_max_inputs),
                                                   RONDO__OPS_OUTPUTS(reduce_max_outputs),
                                                   RONDO__OPS_ATTRIBUTES(reduce_attributes),
                                                   .shape_inputs = 1u << 1,
                                                   .infer = reduce_infer};
#undef REDUCE_MAX_TYPES
#undef REDUCE_SUM_TYPES

static rondo_status reduce_infer_softmax(rondo__ops_infer *infer) {
    int32_t axis;
    RONDO__TRY(rondo__ops_axis(infer, "axis", rondo__ops_attribute_int(infer->request, "axis", -1),
                               infer->request->inputs[0].rank, &axis));
    return rondo__ops_infer_same(infer);
}

static const rondo__ops_operand reduce_softmax_inputs[] = {{"input", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_operand reduce_softmax_outputs[] = {{"output", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_attribute reduce_softmax_attributes[] = {{"axis", RONDO_ATTRIBUTE_INT, 0, "-1"}};
const rondo__ops_prototype rondo__ops_Softmax = {.name = "Softmax",
                                                 .summary = "exp(x) over its sum along one axis",
                                                 RONDO__OPS_INPUTS(reduce_softmax_inputs),
                                                 RONDO__OPS_OUTPUTS(reduce_softmax_outputs),
                                                 RONDO__OPS_ATTRIBUTES(reduce_softmax_attributes),
                                                 .infer = reduce_infer_softmax};
