/* SPDX-License-Identifier: Apache-2.0
 *
 * Prototypes of elementwise functions whose operands all are alike: one row an operator. */
#include "ops/infer.h"

/* Input and output of one type, with the same shape. */
#define MATH_UNARY(operator_, in, out, set, text, ...)                                                 \
    static const rondo__ops_operand math_inputs_##operator_[] = {{in, set, 'T', 0, 0, 0}};             \
    static const rondo__ops_operand math_outputs_##operator_[] = {{out, set, 'T', 0, 0, 0}};           \
    const rondo__ops_prototype rondo__ops_##operator_ = {.name = #operator_,                           \
                                                         .summary = text,                              \
                                                         RONDO__OPS_INPUTS(math_inputs_##operator_),   \
                                                         RONDO__OPS_OUTPUTS(math_outputs_##operator_), \
                                                         __VA_ARGS__.flags = RONDO__OPS_ELEMENTWISE,   \
                                                         .infer = rondo__ops_infer_same}
/* Its attributes come last, with a comma. */
#define MATH_WITH(array) RONDO__OPS_ATTRIBUTES(array),

/* Two inputs of one type, broadcast. */
#define MATH_BINARY(operator_, set, left, right, out, more, text, infer_, ...)                                \
    static const rondo__ops_operand math_inputs_##operator_[] = {{left, set, 'T', 0, 0, 0},                   \
                                                                 {right, set, 'T', 0, 0, 0}};                 \
    static const rondo__ops_operand math_outputs_##operator_[] = {out};                                       \
    const rondo__ops_prototype rondo__ops_##operator_ = {.name = #operator_,                                  \
                                                         .summary = text,                                     \
                                                         RONDO__OPS_INPUTS(math_inputs_##operator_),          \
                                                         RONDO__OPS_OUTPUTS(math_outputs_##operator_),        \
                                                         __VA_ARGS__.flags = RONDO__OPS_ELEMENTWISE | (more), \
                                                         .infer = infer_}
#define MATH_SAME(name, set) \
    { name, set, 'T', 0, 0, 0 }
#define MATH_BOOL(name) \
    { name, RONDO__OPS_BIT(BOOL), 0, 0, 0, 0 }

static rondo_status math_infer_first(rondo__ops_infer *infer) {
    return rondo__ops_infer_broadcast(infer, infer->request->inputs[0].dtype);
}

/* An empty text is Gelu's default, too. */
static rondo_status math_infer_gelu(rondo__ops_infer *infer) {
    const char *word = rondo__ops_attribute_string(infer->request, "approximate", "");
    if (*word) RONDO__TRY(rondo__ops_word(infer, "approximate", "none tanh "));
    return rondo__ops_infer_same(infer);
}

static rondo_status math_infer_shift(rondo__ops_infer *infer) {
    RONDO__TRY(rondo__ops_word(infer, "direction", "LEFT RIGHT "));
    return math_infer_first(infer);
}

static rondo_status math_infer_bool(rondo__ops_infer *infer) {
    return rondo__ops_infer_broadcast(infer, RONDO_DTYPE_BOOL);
}

/* The second input may only be stretched. */
static rondo_status math_infer_prelu(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    RONDO__TRY(math_infer_first(infer));
    bool same = infer->outputs[0].rank == input->rank;
    for (int32_t i = 0; same && i < input->rank; i++) same = infer->outputs[0].dims[i] == input->dims[i];
    if (same) return RONDO_OK;
    return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input 'slope' does not broadcast to the shape of 'X'");
}

static rondo_status math_infer_test(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    rondo__ops_result(infer, 0, RONDO_DTYPE_BOOL, input->rank, input->dims);
    return RONDO_OK;
}

#define MATH_INTS (RONDO__OPS_SIGNED_INTS | RONDO__OPS_UNSIGNED_INTS)

MATH_UNARY(Acos, "input", "output", RONDO__OPS_FLOATS, "Arc cosine", );
MATH_UNARY(Acosh, "input", "output", RONDO__OPS_FLOATS, "Inverse hyperbolic cosine", );
MATH_UNARY(Asin, "input", "output", RONDO__OPS_FLOATS, "Arc sine", );
MATH_UNARY(Asinh, "input", "output", RONDO__OPS_FLOATS, "Inverse hyperbolic sine", );
MATH_UNARY(Atan, "input", "output", RONDO__OPS_FLOATS, "Arc tangent", );
MATH_UNARY(Atanh, "input", "output", RONDO__OPS_FLOATS, "Inverse hyperbolic tangent", );
MATH_UNARY(BitwiseNot, "X", "Y", MATH_INTS, "Every bit turned", );
MATH_UNARY(Ceil, "X", "Y", RONDO__OPS_FLOATS, "The next integer above", );
static const rondo__ops_attribute math_attributes_Celu[] = {{"alpha", RONDO_ATTRIBUTE_FLOAT, 0, "1"}};
MATH_UNARY(Celu, "X", "Y", RONDO__OPS_BIT(F32), "The value, or alpha * (exp(x / alpha) - 1) when it is negative",
           MATH_WITH(math_attributes_Celu));
MATH_UNARY(Cos, "input", "output", RONDO__OPS_FLOATS, "Cosine", );
MATH_UNARY(Cosh, "input", "output", RONDO__OPS_FLOATS, "Hyperbolic cosine", );
static const rondo__ops_attribute math_attributes_Elu[] = {{"alpha", RONDO_ATTRIBUTE_FLOAT, 0, "1"}};
MATH_UNARY(Elu, "X", "Y", RONDO__OPS_FLOATS, "The value, or alpha * (exp(x) - 1) when it is negative",
           MATH_WITH(math_attributes_Elu));
MATH_UNARY(Erf, "input", "output", RONDO__OPS_FLOATS, "Error function", );
MATH_UNARY(Floor, "X", "Y", RONDO__OPS_FLOATS, "The next integer below", );
static const rondo__ops_attribute math_attributes_Gelu[] = {{"approximate", RONDO_ATTRIBUTE_STRING, 0, "none"}};
static const rondo__ops_operand math_inputs_Gelu[] = {{"X", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_operand math_outputs_Gelu[] = {{"Y", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Gelu = {.name = "Gelu",
                                              .summary =
                                                  "x times the normal distribution at x, or its approximation by tanh",
                                              RONDO__OPS_INPUTS(math_inputs_Gelu),
                                              RONDO__OPS_OUTPUTS(math_outputs_Gelu),
                                              RONDO__OPS_ATTRIBUTES(math_attributes_Gelu),
                                              .flags = RONDO__OPS_ELEMENTWISE,
                                              .infer = math_infer_gelu};
static const rondo__ops_attribute math_attributes_HardSigmoid[] = {{"alpha", RONDO_ATTRIBUTE_FLOAT, 0, "0.2"},
                                                                   {"beta", RONDO_ATTRIBUTE_FLOAT, 0, "0.5"}};
MATH_UNARY(HardSigmoid, "X", "Y", RONDO__OPS_FLOATS, "alpha * x + beta, kept between 0 and 1",
           MATH_WITH(math_attributes_HardSigmoid));
MATH_UNARY(HardSwish, "X", "Y", RONDO__OPS_FLOATS, "x times (x / 6 + 1/2 kept between 0 and 1)", );
MATH_UNARY(Mish, "X", "Y", RONDO__OPS_FLOATS, "x * tanh(log(1 + exp(x)))", );
MATH_UNARY(Round, "X", "Y", RONDO__OPS_FLOATS, "The nearest integer, of two the even one", );
static const rondo__ops_attribute math_attributes_Selu[] = {{"alpha", RONDO_ATTRIBUTE_FLOAT, 0, "1.6732632"},
                                                            {"gamma", RONDO_ATTRIBUTE_FLOAT, 0, "1.050701"}};
MATH_UNARY(Selu, "X", "Y", RONDO__OPS_FLOATS, "gamma times: the value, or alpha * (exp(x) - 1) when it is not positive",
           MATH_WITH(math_attributes_Selu));
static const rondo__ops_attribute math_attributes_Shrink[] = {{"bias", RONDO_ATTRIBUTE_FLOAT, 0, "0"},
                                                              {"lambd", RONDO_ATTRIBUTE_FLOAT, 0, "0.5"}};
MATH_UNARY(Shrink, "input", "output", RONDO__OPS_NUMBERS & ~RONDO__OPS_BIT(BF16),
           "The value brought nearer to 0 by bias where it is further than lambd, else 0",
           MATH_WITH(math_attributes_Shrink));
MATH_UNARY(Sign, "input", "output", RONDO__OPS_NUMBERS, "-1, 0 or 1", );
MATH_UNARY(Sin, "input", "output", RONDO__OPS_FLOATS, "Sine", );
MATH_UNARY(Sinh, "input", "output", RONDO__OPS_FLOATS, "Hyperbolic sine", );
MATH_UNARY(Softplus, "X", "Y", RONDO__OPS_FLOATS, "log(1 + exp(x))", );
MATH_UNARY(Softsign, "input", "output", RONDO__OPS_FLOATS, "x / (1 + |x|)", );
static const rondo__ops_attribute math_attributes_Swish[] = {{"alpha", RONDO_ATTRIBUTE_FLOAT, 0, "1"}};
MATH_UNARY(Swish, "X", "Y", RONDO__OPS_FLOATS, "x * sigmoid(alpha * x)", MATH_WITH(math_attributes_Swish));
MATH_UNARY(Tan, "input", "output", RONDO__OPS_FLOATS, "Tangent", );
static const rondo__ops_attribute math_attributes_ThresholdedRelu[] = {{"alpha", RONDO_ATTRIBUTE_FLOAT, 0, "1"}};
MATH_UNARY(ThresholdedRelu, "X", "Y", RONDO__OPS_FLOATS, "The value where it is above alpha, else 0",
           MATH_WITH(math_attributes_ThresholdedRelu));

#define MATH_TEST_TYPES                                                                                   \
    (RONDO__OPS_FLOATS | RONDO__OPS_BIT(F8E4M3FN) | RONDO__OPS_BIT(F8E4M3FNUZ) | RONDO__OPS_BIT(F8E5M2) | \
     RONDO__OPS_BIT(F8E5M2FNUZ))
static const rondo__ops_operand math_test_inputs[] = {{"X", MATH_TEST_TYPES, 0, 0, 0, 0}};
static const rondo__ops_operand math_test_outputs[] = {{"Y", RONDO__OPS_BIT(BOOL), 0, 0, 0, 0}};
#undef MATH_TEST_TYPES
static const rondo__ops_attribute math_isinf_attributes[] = {{"detect_negative", RONDO_ATTRIBUTE_INT, 0, "1"},
                                                             {"detect_positive", RONDO_ATTRIBUTE_INT, 0, "1"}};
const rondo__ops_prototype rondo__ops_IsInf = {.name = "IsInf",
                                               .summary = "Whether the value is infinite",
                                               RONDO__OPS_INPUTS(math_test_inputs),
                                               RONDO__OPS_OUTPUTS(math_test_outputs),
                                               RONDO__OPS_ATTRIBUTES(math_isinf_attributes),
                                               .flags = RONDO__OPS_ELEMENTWISE,
                                               .infer = math_infer_test};
const rondo__ops_prototype rondo__ops_IsNaN = {.name = "IsNaN",
                                               .summary = "Whether the value is not a number",
                                               RONDO__OPS_INPUTS(math_test_inputs),
                                               RONDO__OPS_OUTPUTS(math_test_outputs),
                                               .flags = RONDO__OPS_ELEMENTWISE,
                                               .infer = math_infer_test};

static const rondo__ops_attribute math_shift_attributes[] = {{"direction", RONDO_ATTRIBUTE_STRING, 1, NULL}};
static const rondo__ops_attribute math_mod_attributes[] = {{"fmod", RONDO_ATTRIBUTE_INT, 0, "0"}};
MATH_BINARY(BitShift, RONDO__OPS_UNSIGNED_INTS, "X", "Y", MATH_SAME("Z", RONDO__OPS_UNSIGNED_INTS), 0,
            "X shifted by Y bits, LEFT or RIGHT", math_infer_shift, MATH_WITH(math_shift_attributes));
MATH_BINARY(BitwiseAnd, MATH_INTS, "A", "B", MATH_SAME("C", MATH_INTS), RONDO__OPS_COMMUTES, "The bits that both have",
            math_infer_first, );
MATH_BINARY(BitwiseOr, MATH_INTS, "A", "B", MATH_SAME("C", MATH_INTS), RONDO__OPS_COMMUTES, "The bits that either has",
            math_infer_first, );
MATH_BINARY(BitwiseXor, MATH_INTS, "A", "B", MATH_SAME("C", MATH_INTS), RONDO__OPS_COMMUTES,
            "The bits that just one has", math_infer_first, );
MATH_BINARY(GreaterOrEqual, RONDO__OPS_NUMBERS, "A", "B", MATH_BOOL("C"), 0, "Whether the first is not smaller",
            math_infer_bool, );
MATH_BINARY(LessOrEqual, RONDO__OPS_NUMBERS, "A", "B", MATH_BOOL("C"), 0, "Whether the first is not larger",
            math_infer_bool, );
MATH_BINARY(Mod, RONDO__OPS_NUMBERS, "A", "B", MATH_SAME("C", RONDO__OPS_NUMBERS), 0,
            "Remainder with the sign of B, with fmod that of A", math_infer_first, MATH_WITH(math_mod_attributes));
MATH_BINARY(PRelu, RONDO__OPS_FLOATS | RONDO__OPS_WIDE_INTS, "X", "slope",
            MATH_SAME("Y", RONDO__OPS_FLOATS | RONDO__OPS_WIDE_INTS), 0,
            "The value, or the value times slope when it is negative", math_infer_prelu, );
MATH_BINARY(Xor, RONDO__OPS_BIT(BOOL), "A", "B", MATH_BOOL("C"), RONDO__OPS_COMMUTES, "Whether just one is true",
            math_infer_bool, );

static const rondo__ops_operand math_many_inputs[] = {{"data_0", RONDO__OPS_FLOATS, 'T', 0, 1, 0}};
static const rondo__ops_operand math_mean_outputs[] = {{"mean", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_operand math_sum_outputs[] = {{"sum", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Mean = {.name = "Mean",
                                              .summary = "Mean of the inputs",
                                              RONDO__OPS_INPUTS(math_many_inputs),
                                              RONDO__OPS_OUTPUTS(math_mean_outputs),
                                              .flags = RONDO__OPS_ELEMENTWISE,
                                              .infer = math_infer_first};
const rondo__ops_prototype rondo__ops_Sum = {.name = "Sum",
                                             .summary = "Sum of the inputs",
                                             RONDO__OPS_INPUTS(math_many_inputs),
                                             RONDO__OPS_OUTPUTS(math_sum_outputs),
                                             .flags = RONDO__OPS_ELEMENTWISE,
                                             .infer = math_infer_first};
