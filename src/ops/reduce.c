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
#define REDUCE_MAX_TYPES (REDUCE_SUM_TYPES | RONDO__OPS_BIT(I8) | RONDO__OPS_BIT(U8) | RONDO__OPS_BIT(BOOL))
static const rondo__ops_operand reduce_max_inputs[] = {{"data", REDUCE_MAX_TYPES, 'T', 0, 0, 0},
                                                       {"axes", RONDO__OPS_BIT(I64), 0, 1, 0, 0}};
static const rondo__ops_operand reduce_max_outputs[] = {{"reduced", REDUCE_MAX_TYPES, 'T', 0, 0, 0}};
#undef REDUCE_MAX_TYPES
#undef REDUCE_SUM_TYPES

/* `like` says which of the two above its operands are. */
#define REDUCE_PROTOTYPE(operator_, like, text)                                                                 \
    const rondo__ops_prototype rondo__ops_##operator_ = {.name = #operator_,                                    \
                                                         .summary = text " along axes, without axes along all", \
                                                         RONDO__OPS_INPUTS(reduce_##like##_inputs),             \
                                                         RONDO__OPS_OUTPUTS(reduce_##like##_outputs),           \
                                                         RONDO__OPS_ATTRIBUTES(reduce_attributes),              \
                                                         .shape_inputs = 1u << 1,                               \
                                                         .infer = reduce_infer}
REDUCE_PROTOTYPE(ReduceL1, sum, "Sum of absolute values");
REDUCE_PROTOTYPE(ReduceL2, sum, "Root of the sum of squares");
REDUCE_PROTOTYPE(ReduceLogSum, sum, "Logarithm of the sum");
REDUCE_PROTOTYPE(ReduceLogSumExp, sum, "Logarithm of the sum of exp(x)");
REDUCE_PROTOTYPE(ReduceMax, max, "Largest");
REDUCE_PROTOTYPE(ReduceMean, sum, "Mean");
REDUCE_PROTOTYPE(ReduceMin, max, "Smallest");
REDUCE_PROTOTYPE(ReduceProd, sum, "Product");
REDUCE_PROTOTYPE(ReduceSum, sum, "Sum");
REDUCE_PROTOTYPE(ReduceSumSquare, sum, "Sum of squares");

static rondo_status reduce_infer_softmax(rondo__ops_infer *infer) {
    int32_t axis;
    RONDO__TRY(rondo__ops_axis(infer, "axis", rondo__ops_attribute_int(infer->request, "axis", -1),
                               infer->request->inputs[0].rank, &axis));
    return rondo__ops_infer_same(infer);
}

static const rondo__ops_operand reduce_softmax_inputs[] = {{"input", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_operand reduce_softmax_outputs[] = {{"output", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_attribute reduce_softmax_attributes[] = {{"axis", RONDO_ATTRIBUTE_INT, 0, "-1"}};
#define REDUCE_SOFTMAX(operator_, text)                                                                    \
    const rondo__ops_prototype rondo__ops_##operator_ = {.name = #operator_,                               \
                                                         .summary = text " along one axis",                \
                                                         RONDO__OPS_INPUTS(reduce_softmax_inputs),         \
                                                         RONDO__OPS_OUTPUTS(reduce_softmax_outputs),       \
                                                         RONDO__OPS_ATTRIBUTES(reduce_softmax_attributes), \
                                                         .infer = reduce_infer_softmax}
REDUCE_SOFTMAX(Hardmax, "1 at the first of the largest, else 0,");
REDUCE_SOFTMAX(LogSoftmax, "Logarithm of exp(x) over its sum");
REDUCE_SOFTMAX(Softmax, "exp(x) over its sum");
