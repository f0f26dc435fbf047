/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this room share: the prototypes by name, sets of types, and the helpers of inference. */
#ifndef RONDO_SRC_OPS_INFER_H
#define RONDO_SRC_OPS_INFER_H

#include "ops/ops.h"

#define RONDO__OPS_BIT(x) (1u << RONDO_DTYPE_##x)
#define RONDO__OPS_FLOATS (RONDO__OPS_BIT(F16) | RONDO__OPS_BIT(F32) | RONDO__OPS_BIT(F64) | RONDO__OPS_BIT(BF16))
#define RONDO__OPS_SIGNED_INTS (RONDO__OPS_BIT(I8) | RONDO__OPS_BIT(I16) | RONDO__OPS_BIT(I32) | RONDO__OPS_BIT(I64))
#define RONDO__OPS_UNSIGNED_INTS (RONDO__OPS_BIT(U8) | RONDO__OPS_BIT(U16) | RONDO__OPS_BIT(U32) | RONDO__OPS_BIT(U64))
#define RONDO__OPS_WIDE_INTS (RONDO__OPS_BIT(I32) | RONDO__OPS_BIT(I64) | RONDO__OPS_BIT(U32) | RONDO__OPS_BIT(U64))
#define RONDO__OPS_INDEX (RONDO__OPS_BIT(I32) | RONDO__OPS_BIT(I64))
#define RONDO__OPS_SIGNED (RONDO__OPS_FLOATS | RONDO__OPS_SIGNED_INTS)
#define RONDO__OPS_NUMBERS (RONDO__OPS_SIGNED | RONDO__OPS_UNSIGNED_INTS)
#define RONDO__OPS_COMPLEX (RONDO__OPS_BIT(C64) | RONDO__OPS_BIT(C128))
/* What every data-moving operator took from the start, and the narrow types that later versions added. */
#define RONDO__OPS_CLASSIC (RONDO__OPS_NUMBERS | RONDO__OPS_BIT(BOOL) | RONDO__OPS_BIT(STRING) | RONDO__OPS_COMPLEX)
#define RONDO__OPS_NARROW                                                                                             \
    (RONDO__OPS_BIT(F8E4M3FN) | RONDO__OPS_BIT(F8E4M3FNUZ) | RONDO__OPS_BIT(F8E5M2) | RONDO__OPS_BIT(F8E5M2FNUZ) |    \
     RONDO__OPS_BIT(F8E8M0) | RONDO__OPS_BIT(F4E2M1) | RONDO__OPS_BIT(U4) | RONDO__OPS_BIT(I4) | RONDO__OPS_BIT(U2) | \
     RONDO__OPS_BIT(I2))
#define RONDO__OPS_ANY (RONDO__OPS_CLASSIC | RONDO__OPS_NARROW)

#define RONDO__OPS_COUNT(array) (uint32_t)(sizeof(array) / sizeof *(array))
#define RONDO__OPS_INPUTS(array) .inputs = array, .input_count = RONDO__OPS_COUNT(array)
#define RONDO__OPS_OUTPUTS(array) .outputs = array, .output_count = RONDO__OPS_COUNT(array)
#define RONDO__OPS_ATTRIBUTES(array) .attributes = array, .attribute_count = RONDO__OPS_COUNT(array)

/* The table, sorted by name as strcmp does. */
/* clang-format off */
#define RONDO__OPS_LIST(X)                                                                                           \
    X(Abs) X(Acos) X(Acosh) X(Add) X(And) X(ArgMax) X(ArgMin) X(Asin) X(Asinh) X(Atan) X(Atanh) X(AveragePool)       \
    X(BatchNormalization) X(BitCast) X(BitShift) X(BitwiseAnd) X(BitwiseNot) X(BitwiseOr) X(BitwiseXor) X(Cast)      \
    X(CastLike) X(Ceil) X(Celu) X(Clip) X(Compress) X(Concat) X(ConcatFromSequence) X(Constant) X(ConstantOfShape)   \
    X(Conv) X(Cos) X(Cosh) X(CumProd) X(CumSum) X(Div) X(Elu) X(Equal) X(Erf) X(Exp) X(Expand) X(EyeLike) X(Flatten) \
    X(Floor) X(Gather) X(GatherElements) X(GatherND) X(Gelu) X(Gemm) X(GlobalAveragePool) X(GlobalMaxPool)           \
    X(Greater) X(GreaterOrEqual) X(GroupNormalization) X(HardSigmoid) X(HardSwish) X(Hardmax) X(Identity) X(If)      \
    X(InstanceNormalization) X(IsInf) X(IsNaN) X(LRN) X(LSTM) X(LayerNormalization) X(LeakyRelu) X(Less)             \
    X(LessOrEqual) X(Log) X(LogSoftmax) X(Loop) X(LpNormalization) X(LpPool) X(MatMul) X(Max) X(MaxPool) X(Mean)     \
    X(Min) X(Mish) X(Mod) X(Mul) X(Neg) X(NegativeLogLikelihoodLoss) X(NonMaxSuppression) X(NonZero) X(Not)          \
    X(OneHot) X(Optional) X(OptionalGetElement) X(OptionalHasElement) X(Or) X(PRelu) X(Pad) X(Pow)                   \
    X(RMSNormalization) X(Range) X(Reciprocal) X(ReduceL1) X(ReduceL2) X(ReduceLogSum) X(ReduceLogSumExp)            \
    X(ReduceMax) X(ReduceMean) X(ReduceMin) X(ReduceProd) X(ReduceSum) X(ReduceSumSquare) X(Relu) X(Reshape)         \
    X(Round) X(Scan) X(ScatterElements) X(ScatterND) X(Selu) X(SequenceAt) X(SequenceConstruct)   \
    X(SequenceEmpty) X(SequenceErase) X(SequenceInsert) X(SequenceLength) X(SequenceMap) X(Shape) X(Shrink)          \
    X(Sigmoid) X(Sign) X(Sin) X(Sinh) X(Size) X(Slice) X(Softmax) X(SoftmaxCrossEntropyLoss) X(Softplus) X(Softsign) \
    X(Split) X(SplitToSequence) X(Sqrt) X(Squeeze) X(Sub) X(Sum) X(Swish) X(Tan) X(Tanh) X(ThresholdedRelu) X(Tile)  \
    X(TopK) X(Transpose) X(Trilu) X(Unique) X(Unsqueeze) X(Where) X(Xor)
/* clang-format on */
#define RONDO__OPS_DECLARE(name) extern const rondo__ops_prototype rondo__ops_##name;
RONDO__OPS_LIST(RONDO__OPS_DECLARE)
#undef RONDO__OPS_DECLARE

/* Known names, right kinds, none twice, all required there; with `internal` also those that start with "rondo.". */
RONDO_MUST_USE rondo_status rondo__ops_check_attributes(const rondo__ops_prototype *prototype, const char *node,
                                                        const rondo_attribute *attributes, uint32_t count,
                                                        bool internal, rondo_layer layer);

/* What stands before any inference: attributes, and number, presence, types and shapes of the operands. META errors. */
RONDO_MUST_USE rondo_status rondo__ops_check_request(const rondo__ops_prototype *prototype,
                                                     const rondo_kernel_request *request);

const char *rondo__ops_node_name(const rondo_kernel_request *request);
/* A failure of inference that names the node; the text says what does not fit. */
#define RONDO__OPS_FAIL(infer, code, format, ...)                                              \
    RONDO__FAIL(code, META, "node '%s' (%s): " format, rondo__ops_node_name((infer)->request), \
                (infer)->request->operator_name, ##__VA_ARGS__)

/* Null for an optional input that is absent. */
static inline const rondo_operand *rondo__ops_input(const rondo__ops_infer *infer, uint32_t index) {
    if (index >= infer->request->input_count || infer->request->inputs[index].dtype == RONDO_DTYPE_UNDEFINED) {
        return NULL;
    }
    return &infer->request->inputs[index];
}

void rondo__ops_result(rondo__ops_infer *infer, uint32_t index, rondo_dtype dtype, int32_t rank, const int64_t *dims);
/* Brings an axis into 0 .. count - 1; axis may be -count .. count - 1. */
RONDO_MUST_USE rondo_status rondo__ops_axis(const rondo__ops_infer *infer, const char *what, int64_t axis,
                                            int32_t count, int32_t *out_axis);
/* The values of a one-dimensional input of int32 or int64, at most `maximum`. When they are not known: needs_value_of
 * and UNSUPPORTED. An input without elements is known without a value. */
RONDO_MUST_USE rondo_status rondo__ops_values(rondo__ops_infer *infer, uint32_t index, const char *name,
                                              int64_t *values, uint32_t maximum, uint32_t *out_count);
/* The axes of such an input as a mask of normalised axes. Twice the same is refused unless `repeats`. */
RONDO_MUST_USE rondo_status rondo__ops_axes(rondo__ops_infer *infer, uint32_t index, int32_t rank, bool repeats,
                                            uint32_t *out_mask);
/* The ints of an attribute: null when it is absent; else there are `count` of them, all at least `minimum`. */
RONDO_MUST_USE rondo_status rondo__ops_ints(const rondo__ops_infer *infer, const char *name, uint32_t count,
                                            int64_t minimum, const int64_t **out_ints);
/* Absent, or one of the words, which have a space after each. */
RONDO_MUST_USE rondo_status rondo__ops_word(const rondo__ops_infer *infer, const char *name, const char *words);
/* Every input broadcast together into result 0 of `dtype`. */
RONDO_MUST_USE rondo_status rondo__ops_infer_broadcast(rondo__ops_infer *infer, rondo_dtype dtype);
/* Result 0 is as input 0. */
RONDO_MUST_USE rondo_status rondo__ops_infer_same(rondo__ops_infer *infer);

#endif
