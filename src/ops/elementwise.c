/* SPDX-License-Identifier: Apache-2.0
 *
 * Prototypes of elementwise operators: one input, two inputs with broadcast, choices. */
#include "ops/infer.h"

static rondo_status elementwise_infer_first(rondo__ops_infer *infer) {
    return rondo__ops_infer_broadcast(infer, infer->request->inputs[0].dtype);
}

static rondo_status elementwise_infer_bool(rondo__ops_infer *infer) {
    return rondo__ops_infer_broadcast(infer, RONDO_DTYPE_BOOL);
}

static const rondo__ops_operand elementwise_abs_inputs[] = {{"X", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_abs_outputs[] = {{"Y", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Abs = {.name = "Abs",
                                             .summary = "Absolute value",
                                             RONDO__OPS_INPUTS(elementwise_abs_inputs),
                                             RONDO__OPS_OUTPUTS(elementwise_abs_outputs),
                                             .flags = RONDO__OPS_ELEMENTWISE,
                                             .infer = rondo__ops_infer_same};

static const rondo__ops_operand elementwise_neg_inputs[] = {{"X", RONDO__OPS_SIGNED, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_neg_outputs[] = {{"Y", RONDO__OPS_SIGNED, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Neg = {.name = "Neg",
                                             .summary = "The value with its sign turned",
                                             RONDO__OPS_INPUTS(elementwise_neg_inputs),
                                             RONDO__OPS_OUTPUTS(elementwise_neg_outputs),
                                             .flags = RONDO__OPS_ELEMENTWISE,
                                             .infer = rondo__ops_infer_same};

static const rondo__ops_operand elementwise_exp_inputs[] = {{"input", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_exp_outputs[] = {{"output", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Exp = {.name = "Exp",
                                             .summary = "e to the power of the value",
                                             RONDO__OPS_INPUTS(elementwise_exp_inputs),
                                             RONDO__OPS_OUTPUTS(elementwise_exp_outputs),
                                             .flags = RONDO__OPS_ELEMENTWISE,
                                             .infer = rondo__ops_infer_same};

static const rondo__ops_operand elementwise_log_inputs[] = {{"input", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_log_outputs[] = {{"output", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Log = {.name = "Log",
                                             .summary = "Natural logarithm",
                                             RONDO__OPS_INPUTS(elementwise_log_inputs),
                                             RONDO__OPS_OUTPUTS(elementwise_log_outputs),
                                             .flags = RONDO__OPS_ELEMENTWISE,
                                             .infer = rondo__ops_infer_same};

static const rondo__ops_operand elementwise_sqrt_inputs[] = {{"X", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_sqrt_outputs[] = {{"Y", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Sqrt = {.name = "Sqrt",
                                              .summary = "Square root",
                                              RONDO__OPS_INPUTS(elementwise_sqrt_inputs),
                                              RONDO__OPS_OUTPUTS(elementwise_sqrt_outputs),
                                              .flags = RONDO__OPS_ELEMENTWISE,
                                              .infer = rondo__ops_infer_same};

static const rondo__ops_operand elementwise_reciprocal_inputs[] = {{"X", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_reciprocal_outputs[] = {{"Y", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Reciprocal = {.name = "Reciprocal",
                                                    .summary = "One over the value",
                                                    RONDO__OPS_INPUTS(elementwise_reciprocal_inputs),
                                                    RONDO__OPS_OUTPUTS(elementwise_reciprocal_outputs),
                                                    .flags = RONDO__OPS_ELEMENTWISE,
                                                    .infer = rondo__ops_infer_same};

static const rondo__ops_operand elementwise_relu_inputs[] = {{"X", RONDO__OPS_SIGNED, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_relu_outputs[] = {{"Y", RONDO__OPS_SIGNED, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Relu = {.name = "Relu",
                                              .summary = "The value, or 0 when it is negative",
                                              RONDO__OPS_INPUTS(elementwise_relu_inputs),
                                              RONDO__OPS_OUTPUTS(elementwise_relu_outputs),
                                              .flags = RONDO__OPS_ELEMENTWISE,
                                              .infer = rondo__ops_infer_same};

static const rondo__ops_operand elementwise_sigmoid_inputs[] = {{"X", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_sigmoid_outputs[] = {{"Y", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Sigmoid = {.name = "Sigmoid",
                                                 .summary = "1 / (1 + exp(-x))",
                                                 RONDO__OPS_INPUTS(elementwise_sigmoid_inputs),
                                                 RONDO__OPS_OUTPUTS(elementwise_sigmoid_outputs),
                                                 .flags = RONDO__OPS_ELEMENTWISE,
                                                 .infer = rondo__ops_infer_same};

static const rondo__ops_operand elementwise_tanh_inputs[] = {{"input", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_tanh_outputs[] = {{"output", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Tanh = {.name = "Tanh",
                                              .summary = "Hyperbolic tangent",
                                              RONDO__OPS_INPUTS(elementwise_tanh_inputs),
                                              RONDO__OPS_OUTPUTS(elementwise_tanh_outputs),
                                              .flags = RONDO__OPS_ELEMENTWISE,
                                              .infer = rondo__ops_infer_same};

static const rondo__ops_operand elementwise_not_inputs[] = {{"X", RONDO__OPS_BIT(BOOL), 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_not_outputs[] = {{"Y", RONDO__OPS_BIT(BOOL), 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Not = {.name = "Not",
                                             .summary = "Logical negation",
                                             RONDO__OPS_INPUTS(elementwise_not_inputs),
                                             RONDO__OPS_OUTPUTS(elementwise_not_outputs),
                                             .flags = RONDO__OPS_ELEMENTWISE,
                                             .infer = rondo__ops_infer_same};

static const rondo__ops_operand elementwise_leakyrelu_inputs[] = {{"X", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_leakyrelu_outputs[] = {{"Y", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_attribute elementwise_leakyrelu_attributes[] = {{"alpha", RONDO_ATTRIBUTE_FLOAT, 0, "0.01"}};
const rondo__ops_prototype rondo__ops_LeakyRelu = {.name = "LeakyRelu",
                                                   .summary = "The value, or alpha times the value when it is negative",
                                                   RONDO__OPS_INPUTS(elementwise_leakyrelu_inputs),
                                                   RONDO__OPS_OUTPUTS(elementwise_leakyrelu_outputs),
                                                   RONDO__OPS_ATTRIBUTES(elementwise_leakyrelu_attributes),
                                                   .flags = RONDO__OPS_ELEMENTWISE,
                                                   .infer = rondo__ops_infer_same};

static const rondo__ops_operand elementwise_add_inputs[] = {{"A", RONDO__OPS_NUMBERS, 'T', 0, 0, 0},
                                                            {"B", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_add_outputs[] = {{"C", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Add = {.name = "Add",
                                             .summary = "Sum",
                                             RONDO__OPS_INPUTS(elementwise_add_inputs),
                                             RONDO__OPS_OUTPUTS(elementwise_add_outputs),
                                             .flags = RONDO__OPS_ELEMENTWISE | RONDO__OPS_COMMUTES,
                                             .infer = elementwise_infer_first};

static const rondo__ops_operand elementwise_sub_inputs[] = {{"A", RONDO__OPS_NUMBERS, 'T', 0, 0, 0},
                                                            {"B", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_sub_outputs[] = {{"C", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Sub = {.name = "Sub",
                                             .summary = "Difference",
                                             RONDO__OPS_INPUTS(elementwise_sub_inputs),
                                             RONDO__OPS_OUTPUTS(elementwise_sub_outputs),
                                             .flags = RONDO__OPS_ELEMENTWISE,
                                             .infer = elementwise_infer_first};

static const rondo__ops_operand elementwise_mul_inputs[] = {{"A", RONDO__OPS_NUMBERS, 'T', 0, 0, 0},
                                                            {"B", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_mul_outputs[] = {{"C", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Mul = {.name = "Mul",
                                             .summary = "Product",
                                             RONDO__OPS_INPUTS(elementwise_mul_inputs),
                                             RONDO__OPS_OUTPUTS(elementwise_mul_outputs),
                                             .flags = RONDO__OPS_ELEMENTWISE | RONDO__OPS_COMMUTES,
                                             .infer = elementwise_infer_first};

static const rondo__ops_operand elementwise_div_inputs[] = {{"A", RONDO__OPS_NUMBERS, 'T', 0, 0, 0},
                                                            {"B", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_div_outputs[] = {{"C", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Div = {.name = "Div",
                                             .summary = "Quotient, of integers rounded towards zero",
                                             RONDO__OPS_INPUTS(elementwise_div_inputs),
                                             RONDO__OPS_OUTPUTS(elementwise_div_outputs),
                                             .flags = RONDO__OPS_ELEMENTWISE,
                                             .infer = elementwise_infer_first};

static const rondo__ops_operand elementwise_and_inputs[] = {{"A", RONDO__OPS_BIT(BOOL), 'T', 0, 0, 0},
                                                            {"B", RONDO__OPS_BIT(BOOL), 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_and_outputs[] = {{"C", RONDO__OPS_BIT(BOOL), 0, 0, 0, 0}};
const rondo__ops_prototype rondo__ops_And = {.name = "And",
                                             .summary = "Logical and",
                                             RONDO__OPS_INPUTS(elementwise_and_inputs),
                                             RONDO__OPS_OUTPUTS(elementwise_and_outputs),
                                             .flags = RONDO__OPS_ELEMENTWISE | RONDO__OPS_COMMUTES,
                                             .infer = elementwise_infer_bool};

static const rondo__ops_operand elementwise_or_inputs[] = {{"A", RONDO__OPS_BIT(BOOL), 'T', 0, 0, 0},
                                                           {"B", RONDO__OPS_BIT(BOOL), 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_or_outputs[] = {{"C", RONDO__OPS_BIT(BOOL), 0, 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Or = {.name = "Or",
                                            .summary = "Logical or",
                                            RONDO__OPS_INPUTS(elementwise_or_inputs),
                                            RONDO__OPS_OUTPUTS(elementwise_or_outputs),
                                            .flags = RONDO__OPS_ELEMENTWISE | RONDO__OPS_COMMUTES,
                                            .infer = elementwise_infer_bool};

static const rondo__ops_operand elementwise_equal_inputs[] = {
    {"A", RONDO__OPS_NUMBERS | RONDO__OPS_BIT(BOOL) | RONDO__OPS_BIT(STRING), 'T', 0, 0, 0},
    {"B", RONDO__OPS_NUMBERS | RONDO__OPS_BIT(BOOL) | RONDO__OPS_BIT(STRING), 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_equal_outputs[] = {{"C", RONDO__OPS_BIT(BOOL), 0, 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Equal = {.name = "Equal",
                                               .summary = "Whether the values are equal",
                                               RONDO__OPS_INPUTS(elementwise_equal_inputs),
                                               RONDO__OPS_OUTPUTS(elementwise_equal_outputs),
                                               .flags = RONDO__OPS_ELEMENTWISE | RONDO__OPS_COMMUTES,
                                               .infer = elementwise_infer_bool};

static const rondo__ops_operand elementwise_less_inputs[] = {{"A", RONDO__OPS_NUMBERS, 'T', 0, 0, 0},
                                                             {"B", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_less_outputs[] = {{"C", RONDO__OPS_BIT(BOOL), 0, 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Less = {.name = "Less",
                                              .summary = "Whether the first is smaller",
                                              RONDO__OPS_INPUTS(elementwise_less_inputs),
                                              RONDO__OPS_OUTPUTS(elementwise_less_outputs),
                                              .flags = RONDO__OPS_ELEMENTWISE,
                                              .infer = elementwise_infer_bool};

static const rondo__ops_operand elementwise_greater_inputs[] = {{"A", RONDO__OPS_NUMBERS, 'T', 0, 0, 0},
                                                                {"B", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_greater_outputs[] = {{"C", RONDO__OPS_BIT(BOOL), 0, 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Greater = {.name = "Greater",
                                                 .summary = "Whether the first is larger",
                                                 RONDO__OPS_INPUTS(elementwise_greater_inputs),
                                                 RONDO__OPS_OUTPUTS(elementwise_greater_outputs),
                                                 .flags = RONDO__OPS_ELEMENTWISE,
                                                 .infer = elementwise_infer_bool};

static const rondo__ops_operand elementwise_max_inputs[] = {{"data_0", RONDO__OPS_NUMBERS, 'T', 0, 1, 0}};
static const rondo__ops_operand elementwise_max_outputs[] = {{"max", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Max = {.name = "Max",
                                             .summary = "Largest of the inputs",
                                             RONDO__OPS_INPUTS(elementwise_max_inputs),
                                             RONDO__OPS_OUTPUTS(elementwise_max_outputs),
                                             .flags = RONDO__OPS_ELEMENTWISE | RONDO__OPS_COMMUTES,
                                             .infer = elementwise_infer_first};

static const rondo__ops_operand elementwise_min_inputs[] = {{"data_0", RONDO__OPS_NUMBERS, 'T', 0, 1, 0}};
static const rondo__ops_operand elementwise_min_outputs[] = {{"min", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Min = {.name = "Min",
                                             .summary = "Smallest of the inputs",
                                             RONDO__OPS_INPUTS(elementwise_min_inputs),
                                             RONDO__OPS_OUTPUTS(elementwise_min_outputs),
                                             .flags = RONDO__OPS_ELEMENTWISE | RONDO__OPS_COMMUTES,
                                             .infer = elementwise_infer_first};

static const rondo__ops_operand elementwise_pow_inputs[] = {{"X", RONDO__OPS_FLOATS | RONDO__OPS_INDEX, 'T', 0, 0, 0},
                                                            {"Y", RONDO__OPS_NUMBERS, 0, 0, 0, 0}};
static const rondo__ops_operand elementwise_pow_outputs[] = {{"Z", RONDO__OPS_FLOATS | RONDO__OPS_INDEX, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Pow = {.name = "Pow",
                                             .summary = "X to the power of Y, in the type of X",
                                             RONDO__OPS_INPUTS(elementwise_pow_inputs),
                                             RONDO__OPS_OUTPUTS(elementwise_pow_outputs),
                                             .flags = RONDO__OPS_ELEMENTWISE,
                                             .infer = elementwise_infer_first};

static rondo_status elementwise_infer_where(rondo__ops_infer *infer) {
    return rondo__ops_infer_broadcast(infer, infer->request->inputs[1].dtype);
}

static const rondo__ops_operand elementwise_where_inputs[] = {{"condition", RONDO__OPS_BIT(BOOL), 0, 0, 0, 0},
                                                              {"X", RONDO__OPS_CLASSIC, 'T', 0, 0, 0},
                                                              {"Y", RONDO__OPS_CLASSIC, 'T', 0, 0, 0}};
static const rondo__ops_operand elementwise_where_outputs[] = {{"output", RONDO__OPS_CLASSIC, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Where = {.name = "Where",
                                               .summary = "X where the condition holds, Y elsewhere",
                                               RONDO__OPS_INPUTS(elementwise_where_inputs),
                                               RONDO__OPS_OUTPUTS(elementwise_where_outputs),
                                               .flags = RONDO__OPS_ELEMENTWISE,
                                               .infer = elementwise_infer_where};

static rondo_status elementwise_infer_clip(rondo__ops_infer *infer) {
    static const char *const names[] = {"input", "min", "max"};
    for (uint32_t i = 1; i < 3; i++) {
        const rondo_operand *bound = rondo__ops_input(infer, i);
        if (!bound || bound->rank == 0 || (bound->rank == 1 && bound->dims[0] == 1)) continue;
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input '%s' must be one number", names[i]);
    }
    return rondo__ops_infer_same(infer);
}

static const rondo__ops_operand elementwise_clip_inputs[] = {{"input", RONDO__OPS_NUMBERS, 'T', 0, 0, 0},
                                                             {"min", RONDO__OPS_NUMBERS, 'T', 1, 0, 0},
                                                             {"max", RONDO__OPS_NUMBERS, 'T', 1, 0, 0}};
static const rondo__ops_operand elementwise_clip_outputs[] = {{"output", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Clip = {.name = "Clip",
                                              .summary = "The value kept between min and max",
                                              RONDO__OPS_INPUTS(elementwise_clip_inputs),
                                              RONDO__OPS_OUTPUTS(elementwise_clip_outputs),
                                              .flags = RONDO__OPS_ELEMENTWISE,
                                              .infer = elementwise_infer_clip};

#define ELEMENTWISE_CAST_TYPES (RONDO__OPS_ANY & ~RONDO__OPS_COMPLEX)

#define ELEMENTWISE_ROUND_MODES "up down nearest "

static rondo_status elementwise_infer_cast(rondo__ops_infer *infer) {
    int64_t to = rondo__ops_attribute_int(infer->request, "to", 0);
    if (to <= RONDO_DTYPE_UNDEFINED || to >= RONDO_DTYPE_COUNT || !(ELEMENTWISE_CAST_TYPES & 1u << to)) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute 'to' is %lld, which is no type to cast to",
                               (long long)to);
    }
    RONDO__TRY(rondo__ops_word(infer, "round_mode", ELEMENTWISE_ROUND_MODES));
    const rondo_operand *input = &infer->request->inputs[0];
    rondo__ops_result(infer, 0, (rondo_dtype)to, input->rank, input->dims);
    return RONDO_OK;
}

static const rondo__ops_operand elementwise_cast_inputs[] = {{"input", ELEMENTWISE_CAST_TYPES, 0, 0, 0, 0}};
static const rondo__ops_operand elementwise_cast_outputs[] = {{"output", ELEMENTWISE_CAST_TYPES, 0, 0, 0, 0}};
static const rondo__ops_attribute elementwise_cast_attributes[] = {{"round_mode", RONDO_ATTRIBUTE_STRING, 0, "up"},
                                                                   {"saturate", RONDO_ATTRIBUTE_INT, 0, "1"},
                                                                   {"to", RONDO_ATTRIBUTE_INT, 1, NULL}};
const rondo__ops_prototype rondo__ops_Cast = {.name = "Cast",
                                              .summary = "The value in another type",
                                              RONDO__OPS_INPUTS(elementwise_cast_inputs),
                                              RONDO__OPS_OUTPUTS(elementwise_cast_outputs),
                                              RONDO__OPS_ATTRIBUTES(elementwise_cast_attributes),
                                              .flags = RONDO__OPS_ELEMENTWISE,
                                              .infer = elementwise_infer_cast};

static rondo_status elementwise_infer_castlike(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    RONDO__TRY(rondo__ops_word(infer, "round_mode", ELEMENTWISE_ROUND_MODES));
    rondo__ops_result(infer, 0, infer->request->inputs[1].dtype, input->rank, input->dims);
    return RONDO_OK;
}

static const rondo__ops_operand elementwise_castlike_inputs[] = {{"input", ELEMENTWISE_CAST_TYPES, 0, 0, 0, 0},
                                                                 {"target_type", ELEMENTWISE_CAST_TYPES, 'U', 0, 0, 0}};
static const rondo__ops_operand elementwise_castlike_outputs[] = {{"output", ELEMENTWISE_CAST_TYPES, 'U', 0, 0, 0}};
static const rondo__ops_attribute elementwise_castlike_attributes[] = {{"round_mode", RONDO_ATTRIBUTE_STRING, 0, "up"},
                                                                       {"saturate", RONDO_ATTRIBUTE_INT, 0, "1"}};
/* Not elementwise by its flag: the second input is no operand that broadcasts. */
const rondo__ops_prototype rondo__ops_CastLike = {.name = "CastLike",
                                                  .summary = "The value in the type of another",
                                                  RONDO__OPS_INPUTS(elementwise_castlike_inputs),
                                                  RONDO__OPS_OUTPUTS(elementwise_castlike_outputs),
                                                  RONDO__OPS_ATTRIBUTES(elementwise_castlike_attributes),
                                                  .infer = elementwise_infer_castlike};
#undef ELEMENTWISE_CAST_TYPES
#undef ELEMENTWISE_ROUND_MODES

#define ELEMENTWISE_BITS_TYPES (RONDO__OPS_ANY & ~RONDO__OPS_BIT(STRING))

static rondo_status elementwise_infer_bitcast(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    int64_t to = rondo__ops_attribute_int(infer->request, "to", 0);
    if (to <= RONDO_DTYPE_UNDEFINED || to >= RONDO_DTYPE_COUNT ||
        rondo_dtype_bits((rondo_dtype)to) != rondo_dtype_bits(input->dtype)) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute 'to' is %lld, which is no type of %u bits",
                               (long long)to, rondo_dtype_bits(input->dtype));
    }
    rondo__ops_result(infer, 0, (rondo_dtype)to, input->rank, input->dims);
    return RONDO_OK;
}

static const rondo__ops_operand elementwise_bitcast_inputs[] = {{"input", ELEMENTWISE_BITS_TYPES, 0, 0, 0, 0}};
static const rondo__ops_operand elementwise_bitcast_outputs[] = {{"output", ELEMENTWISE_BITS_TYPES, 0, 0, 0, 0}};
static const rondo__ops_attribute elementwise_bitcast_attributes[] = {{"to", RONDO_ATTRIBUTE_INT, 1, NULL}};
const rondo__ops_prototype rondo__ops_BitCast = {.name = "BitCast",
                                                 .summary = "The same bits as another type of their width",
                                                 RONDO__OPS_INPUTS(elementwise_bitcast_inputs),
                                                 RONDO__OPS_OUTPUTS(elementwise_bitcast_outputs),
                                                 RONDO__OPS_ATTRIBUTES(elementwise_bitcast_attributes),
                                                 .infer = elementwise_infer_bitcast};
#undef ELEMENTWISE_BITS_TYPES
