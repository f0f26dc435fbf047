/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of one or two elements, each written once: over doubles for the float types, over 64-bit integers for the
 * others. They are slower than rows by type (unary.c, binary.c) and take float16 and bfloat16, too. */
#include "ref.h"

#include <math.h>

typedef struct math_setting { /* attributes of the operator */
    double a, b;
    int64_t flag;
} math_setting;

typedef struct math_operator {
    uint32_t types;
    bool test; /* the result is a bool */
    double (*real)(double x, double y, const math_setting *s);
    uint64_t (*whole)(int64_t x, int64_t y, rondo_dtype dtype, const math_setting *s);
    struct {
        const char *name;
        double otherwise;
    } settings[2];    /* float attributes */
    const char *flag; /* an attribute with a value of its own: see math_flag */
} math_operator;

#define MATH_REAL(name, expression)                                        \
    static double math_##name(double x, double y, const math_setting *s) { \
        (void)y;                                                           \
        (void)s;                                                           \
        return expression;                                                 \
    }
#define MATH_WHOLE(name, expression)                                                                    \
    static uint64_t math_whole_##name(int64_t x, int64_t y, rondo_dtype dtype, const math_setting *s) { \
        (void)y;                                                                                        \
        (void)dtype;                                                                                    \
        (void)s;                                                                                        \
        return (uint64_t)(expression);                                                                  \
    }

/* clang-format off */
MATH_REAL(acos, acos(x))
MATH_REAL(acosh, acosh(x))
MATH_REAL(asin, asin(x))
MATH_REAL(asinh, asinh(x))
MATH_REAL(atan, atan(x))
MATH_REAL(atanh, atanh(x))
MATH_REAL(ceil, ceil(x))
MATH_REAL(celu, x > 0 ? x : x < 0 ? s->a * expm1(x / s->a) : x)
MATH_REAL(cos, cos(x))
MATH_REAL(cosh, cosh(x))
MATH_REAL(elu, x < 0 ? s->a * expm1(x) : x)
MATH_REAL(erf, erf(x))
MATH_REAL(floor, floor(x))
MATH_REAL(gelu, s->flag ? 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)))
                        : 0.5 * x * (1.0 + erf(x * 0.70710678118654752440)))
MATH_REAL(hard_sigmoid, fmax(0.0, fmin(1.0, s->a * x + s->b)))
MATH_REAL(hard_swish, x * fmax(0.0, fmin(1.0, x / 6.0 + 0.5)))
MATH_REAL(is_inf, isinf(x) && (x < 0 ? s->a : s->b) != 0)
MATH_REAL(is_nan, x != x)
MATH_REAL(round, nearbyint(x))
MATH_REAL(selu, s->b * (x > 0 ? x : s->a * expm1(x)))
MATH_REAL(shrink, x < -s->b ? x + s->a : x > s->b ? x - s->a : x != x ? x : 0.0)
MATH_REAL(sign, x > 0 ? 1.0 : x < 0 ? -1.0 : x)
MATH_REAL(sin, sin(x))
MATH_REAL(sinh, sinh(x))
MATH_REAL(softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))
MATH_REAL(softsign, x / (1.0 + fabs(x)))
MATH_REAL(swish, x * rondo__ref_sigmoid(s->a * x))
MATH_REAL(tan, tan(x))
MATH_REAL(thresholded, x > s->a ? x : x != x ? x : 0.0)
MATH_REAL(mish, x * tanh(math_softplus(x, 0, s)))
MATH_REAL(prelu, x < 0 ? x * y : x)

MATH_WHOLE(bit_and, x & y)
MATH_WHOLE(bit_not, ~x)
MATH_WHOLE(bit_or, x | y)
MATH_WHOLE(bit_xor, x ^ y)
MATH_WHOLE(prelu, dtype != RONDO_DTYPE_U64 && x < 0 ? (uint64_t)x * (uint64_t)y : (uint64_t)x)
MATH_WHOLE(sign, dtype == RONDO_DTYPE_U64 ? x != 0 : (x > 0) - (x < 0))
/* clang-format on */

static uint64_t math_whole_shrink(int64_t x, int64_t y, rondo_dtype dtype, const math_setting *s) {
    double result = math_shrink(dtype == RONDO_DTYPE_U64 ? (double)(uint64_t)x : (double)x, (double)y, s);
    return result < 0 ? (uint64_t)(int64_t)result : (uint64_t)result;
}

/* A shift by as many bits as there are, or more, leaves nothing. */
static uint64_t math_whole_shift(int64_t x, int64_t y, rondo_dtype dtype, const math_setting *s) {
    (void)dtype;
    uint64_t by = (uint64_t)y;
    if (by >= 64) return 0;
    return s->flag ? (uint64_t)x << by : (uint64_t)x >> by;
}

/* The remainder has the divisor's sign, with fmod the dividend's. */
static double math_mod(double x, double y, const math_setting *s) {
    double rest = fmod(x, y);
    if (s->flag) return rest;
    if (rest == 0) return copysign(0.0, y);
    return (rest < 0) != (y < 0) ? rest + y : rest;
}

static uint64_t math_whole_mod(int64_t x, int64_t y, rondo_dtype dtype, const math_setting *s) {
    if (dtype == RONDO_DTYPE_U64) return (uint64_t)x % (uint64_t)y;
    if (y == -1) return 0; /* the lowest number by -1 has no quotient */
    int64_t rest = x % y;
    return (uint64_t)(!s->flag && rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
}

/* ------------------------------------------------------------------------------------------------- building */

/* Attributes that are neither of the float settings: whether BitShift goes left, Gelu approximates, Mod is C's. */
static rondo_status math_flag(rondo__ref_builder *b, const char *name, int64_t *out) {
    const char *text = "";
    *out = 0;
    if (strcmp(name, "fmod") == 0) return rondo__ref_attribute_int(b, name, out);
    rondo_status status = rondo__ref_attribute_string(b, name, &text);
    if (status) return status;
    bool gelu = strcmp(name, "approximate") == 0;
    *out = strcmp(text, gelu ? "tanh" : "LEFT") == 0;
    if (*out || strcmp(text, gelu ? "none" : "RIGHT") == 0 || (gelu && !*text)) return RONDO_OK;
    return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "attribute '%s' cannot be '%s'", name, text);
}

static rondo_status math_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const math_operator *op = (const math_operator *)k->op->rows;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0);
    rondo_status status = rondo__ref_need_types(b, "the input", in, op->types);
    if (!status && k->input_count > 1)
        status = rondo__ref_need_same_type(b, "input 1", rondo__ref_input(k, 1), in->dtype);
    if (!status)
        status = rondo__ref_need_same_type(b, "the output", rondo__ref_output(k, 0),
                                           op->test ? RONDO_DTYPE_BOOL : in->dtype);
    if (!status) status = rondo__ref_build_walk(b, 0, k->input_count, &k->as.math.walk);
    for (uint32_t i = 0; i < 2 && !status && op->settings[i].name; i++) {
        float value = (float)op->settings[i].otherwise;
        int64_t number = value != 0;
        bool yes_or_no = op->test; /* IsInf's are integers */
        status = yes_or_no ? rondo__ref_attribute_int(b, op->settings[i].name, &number)
                           : rondo__ref_attribute_float(b, op->settings[i].name, &value);
        k->as.math.values[i] = yes_or_no ? (double)number : (double)value;
    }
    if (!status && op->flag) status = math_flag(b, op->flag, &k->as.math.flag);
    for (uint32_t i = 0; i < k->input_count && !status; i++) rondo__ref_allow_in_place(k, i);
    return status;
}

static int32_t math_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const math_operator *op = (const math_operator *)k->op->rows;
    const rondo__ref_walk *walk = &k->as.math.walk;
    const rondo__ref_tensor *result = &k->tensors[k->input_count];
    const rondo_dtype dtype = k->tensors[0].dtype;
    const math_setting setting = {k->as.math.values[0], k->as.math.values[1], k->as.math.flag};
    const void *left = rondo__ref_address(words[0]), *right = rondo__ref_address(words[k->input_count - 1]);
    void *out = rondo__ref_address(words[k->input_count]);
    const uint32_t second = k->input_count - 1;
    const bool real = rondo__ref_is_real(dtype), divides = op->whole == math_whole_mod;
    int64_t index[RONDO_RANK_MAX] = {0};
    for (int64_t i = 0; i < result->count; i++) {
        int64_t a = rondo__ref_offset(walk->rank, walk->strides[0], index);
        int64_t c = rondo__ref_offset(walk->rank, walk->strides[second], index);
        (void)rondo__ref_next(walk->rank, walk->dims, index);
        if (real) {
            double x = rondo__ref_get_real(dtype, left, a), y = second ? rondo__ref_get_real(dtype, right, c) : 0;
            double value = op->real(x, y, &setting);
            if (op->test) {
                ((uint8_t *)out)[i] = value != 0;
            } else {
                rondo__ref_put_real(dtype, out, i, value);
            }
            continue;
        }
        int64_t x = rondo__ref_get_int(dtype, left, a), y = second ? rondo__ref_get_int(dtype, right, c) : 0;
        if (divides && y == 0) return RONDO__REF_ZERO_DIVISOR;
        rondo__ref_put_int(dtype, out, i, op->whole(x, y, dtype, &setting));
    }
    return RONDO__REF_OK;
}

#define MATH_FUNCTION(name)                                                                        \
    static const math_operator math_of_##name = {RONDO__REF_REAL_TYPES,  false, math_##name, NULL, \
                                                 {{NULL, 0}, {NULL, 0}}, NULL}
#define MATH_INTEGER(name, flag)                                                                         \
    static const math_operator math_of_##name = {RONDO__REF_INT_TYPES,   false, NULL, math_whole_##name, \
                                                 {{NULL, 0}, {NULL, 0}}, flag}
#define MATH_SET(name, types, whole, ...) \
    static const math_operator math_of_##name = {types, false, math_##name, whole, {__VA_ARGS__}, NULL}
#define MATH_ROW(name, inputs, attributes, row) \
    { name, inputs, inputs, 1, 1, attributes, math_build, math_run, &math_of_##row }

MATH_FUNCTION(acos);
MATH_FUNCTION(acosh);
MATH_FUNCTION(asin);
MATH_FUNCTION(asinh);
MATH_FUNCTION(atan);
MATH_FUNCTION(atanh);
MATH_FUNCTION(ceil);
MATH_FUNCTION(cos);
MATH_FUNCTION(cosh);
MATH_FUNCTION(erf);
MATH_FUNCTION(floor);
MATH_FUNCTION(hard_swish);
MATH_FUNCTION(mish);
MATH_FUNCTION(round);
MATH_FUNCTION(sin);
MATH_FUNCTION(sinh);
MATH_FUNCTION(softplus);
MATH_FUNCTION(softsign);
MATH_FUNCTION(tan);
MATH_INTEGER(bit_and, NULL);
MATH_INTEGER(bit_not, NULL);
MATH_INTEGER(bit_or, NULL);
MATH_INTEGER(bit_xor, NULL);
MATH_INTEGER(shift, "direction");
MATH_SET(celu, RONDO__REF_REAL_TYPES, NULL, {"alpha", 1.0}, {NULL, 0});
MATH_SET(elu, RONDO__REF_REAL_TYPES, NULL, {"alpha", 1.0}, {NULL, 0});
MATH_SET(hard_sigmoid, RONDO__REF_REAL_TYPES, NULL, {"alpha", 0.2}, {"beta", 0.5});
MATH_SET(prelu, RONDO__REF_REAL_TYPES | RONDO__REF_PRODUCT_TYPES, math_whole_prelu, {NULL, 0}, {NULL, 0});
MATH_SET(selu, RONDO__REF_REAL_TYPES, NULL, {"alpha", 1.6732631921768188}, {"gamma", 1.0507010221481323});
MATH_SET(shrink, RONDO__REF_REAL_TYPES | RONDO__REF_INT_TYPES, math_whole_shrink, {"bias", 0.0}, {"lambd", 0.5});
MATH_SET(sign, RONDO__REF_REAL_TYPES | RONDO__REF_INT_TYPES, math_whole_sign, {NULL, 0}, {NULL, 0});
MATH_SET(swish, RONDO__REF_REAL_TYPES, NULL, {"alpha", 1.0}, {NULL, 0});
MATH_SET(thresholded, RONDO__REF_REAL_TYPES, NULL, {"alpha", 1.0}, {NULL, 0});
static const math_operator math_of_gelu = {RONDO__REF_REAL_TYPES,  false,        math_gelu, NULL,
                                           {{NULL, 0}, {NULL, 0}}, "approximate"};
static const math_operator math_of_mod = {
    RONDO__REF_REAL_TYPES | RONDO__REF_INT_TYPES, false, math_mod, math_whole_mod, {{NULL, 0}, {NULL, 0}}, "fmod"};
#define MATH_TEST_TYPES (RONDO__REF_REAL_TYPES | RONDO__REF_FLOAT8_TYPES)
static const math_operator math_of_is_inf = {
    MATH_TEST_TYPES, true, math_is_inf, NULL, {{"detect_negative", 1}, {"detect_positive", 1}}, NULL};
static const math_operator math_of_is_nan = {MATH_TEST_TYPES, true, math_is_nan, NULL, {{NULL, 0}, {NULL, 0}}, NULL};

const rondo__ref_operator rondo__ref_math_operators[] = {
    MATH_ROW("Acos", 1, "", acos),
    MATH_ROW("Acosh", 1, "", acosh),
    MATH_ROW("Asin", 1, "", asin),
    MATH_ROW("Asinh", 1, "", asinh),
    MATH_ROW("Atan", 1, "", atan),
    MATH_ROW("Atanh", 1, "", atanh),
    MATH_ROW("BitShift", 2, "direction", shift),
    MATH_ROW("BitwiseAnd", 2, "", bit_and),
    MATH_ROW("BitwiseNot", 1, "", bit_not),
    MATH_ROW("BitwiseOr", 2, "", bit_or),
    MATH_ROW("BitwiseXor", 2, "", bit_xor),
    MATH_ROW("Ceil", 1, "", ceil),
    MATH_ROW("Celu", 1, "alpha", celu),
    MATH_ROW("Cos", 1, "", cos),
    MATH_ROW("Cosh", 1, "", cosh),
    MATH_ROW("Elu", 1, "alpha", elu),
    MATH_ROW("Erf", 1, "", erf),
    MATH_ROW("Floor", 1, "", floor),
    MATH_ROW("Gelu", 1, "approximate", gelu),
    MATH_ROW("HardSigmoid", 1, "alpha beta", hard_sigmoid),
    MATH_ROW("HardSwish", 1, "", hard_swish),
    MATH_ROW("IsInf", 1, "detect_negative detect_positive", is_inf),
    MATH_ROW("IsNaN", 1, "", is_nan),
    MATH_ROW("Mish", 1, "", mish),
    MATH_ROW("Mod", 2, "fmod", mod),
    MATH_ROW("PRelu", 2, "", prelu),
    MATH_ROW("Round", 1, "", round),
    MATH_ROW("Selu", 1, "alpha gamma", selu),
    MATH_ROW("Shrink", 1, "bias lambd", shrink),
    MATH_ROW("Sign", 1, "", sign),
    MATH_ROW("Sin", 1, "", sin),
    MATH_ROW("Sinh", 1, "", sinh),
    MATH_ROW("Softplus", 1, "", softplus),
    MATH_ROW("Softsign", 1, "", softsign),
    MATH_ROW("Swish", 1, "alpha", swish),
    MATH_ROW("Tan", 1, "", tan),
    MATH_ROW("ThresholdedRelu", 1, "alpha", thresholded),
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
