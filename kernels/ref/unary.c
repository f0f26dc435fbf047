/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of one element: a row of code for each data type. float32 functions are computed in double and rounded
 * once; integers wrap; NaN stays NaN. */
#include "ref.h"

#include <math.h>

typedef void (*unary_row)(int64_t n, const void *in, void *out, float alpha);

/* x is the element, `type` its type, alpha the attribute as a double. */
#define UNARY_ROW(dtype, type, suffix, name, expression)                                      \
    static void unary_##name##_##suffix(int64_t n, const void *in, void *out, float alpha_) { \
        const type *from = (const type *)in;                                                  \
        type *to = (type *)out;                                                               \
        const double alpha = (double)alpha_;                                                  \
        (void)alpha;                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                     \
            const type x = from[i];                                                           \
            to[i] = (type)(expression);                                                       \
        }                                                                                     \
    }
#define UNARY_ENTRY(dtype, type, suffix, name, ...) [RONDO_DTYPE_##dtype] = unary_##name##_##suffix,

#define UNARY_FLOAT(name, expression)                  \
    RONDO__REF_EACH_FLOAT(UNARY_ROW, name, expression) \
    static const unary_row unary_##name##_rows[RONDO_DTYPE_COUNT] = {RONDO__REF_EACH_FLOAT(UNARY_ENTRY, name, )};

/* clang-format off */
UNARY_FLOAT(sqrt, sqrt((double)x))
UNARY_FLOAT(exp, exp((double)x))
UNARY_FLOAT(log, log((double)x))
UNARY_FLOAT(tanh, tanh((double)x))
UNARY_FLOAT(sigmoid, rondo__ref_sigmoid((double)x))
UNARY_FLOAT(reciprocal, 1.0 / (double)x)
UNARY_FLOAT(leaky, x < 0 ? alpha * (double)x : (double)x)

RONDO__REF_EACH_FLOAT(UNARY_ROW, relu, x < 0 ? 0 : x)
RONDO__REF_EACH_SIGNED(UNARY_ROW, relu, x < 0 ? 0 : x)
static const unary_row unary_relu_rows[RONDO_DTYPE_COUNT] = {
    RONDO__REF_EACH_FLOAT(UNARY_ENTRY, relu, ) RONDO__REF_EACH_SIGNED(UNARY_ENTRY, relu, )};

RONDO__REF_EACH_FLOAT(UNARY_ROW, neg, -x)
RONDO__REF_EACH_SIGNED(UNARY_ROW, neg, 0u - (uint64_t)x)
static const unary_row unary_neg_rows[RONDO_DTYPE_COUNT] = {
    RONDO__REF_EACH_FLOAT(UNARY_ENTRY, neg, ) RONDO__REF_EACH_SIGNED(UNARY_ENTRY, neg, )};

RONDO__REF_EACH_FLOAT(UNARY_ROW, abs, fabs((double)x))
RONDO__REF_EACH_SIGNED(UNARY_ROW, abs, x < 0 ? 0u - (uint64_t)x : (uint64_t)x)
RONDO__REF_EACH_UNSIGNED(UNARY_ROW, abs, x)
static const unary_row unary_abs_rows[RONDO_DTYPE_COUNT] = {RONDO__REF_EACH_NUMBER(UNARY_ENTRY, abs, )};

UNARY_ROW(BOOL, uint8_t, b8, not, x == 0)
static const unary_row unary_not_rows[RONDO_DTYPE_COUNT] = {[RONDO_DTYPE_BOOL] = unary_not_b8};

/* clang-format on */

static uint32_t unary_types(const unary_row *rows) {
    uint32_t types = 0;
    for (uint32_t d = 0; d < RONDO_DTYPE_COUNT; d++) types |= rows[d] ? 1u << d : 0;
    return types;
}

static rondo_status unary_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *out = rondo__ref_output(k, 0);
    k->as.alpha = 0.01f;
    rondo_status status = rondo__ref_need_types(b, "the input", in, unary_types((const unary_row *)k->op->rows));
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, in->dtype);
    if (!status) status = rondo__ref_need_shape_of(b, "the output", out, in);
    if (!status) status = rondo__ref_attribute_float(b, "alpha", &k->as.alpha);
    if (!status) rondo__ref_allow_in_place(k, 0);
    return status;
}

static int32_t unary_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const unary_row row = ((const unary_row *)k->op->rows)[k->tensors[0].dtype];
    row(k->tensors[0].count, rondo__ref_address(words[0]), rondo__ref_address(words[1]), k->as.alpha);
    return RONDO__REF_OK;
}

#define UNARY_OPERATOR(name, attributes, rows) \
    { name, 1, 1, 1, 1, attributes, unary_build, unary_run, rows }

const rondo__ref_operator rondo__ref_unary_operators[] = {
    UNARY_OPERATOR("Abs", "", unary_abs_rows),
    UNARY_OPERATOR("Exp", "", unary_exp_rows),
    UNARY_OPERATOR("LeakyRelu", "alpha", unary_leaky_rows),
    UNARY_OPERATOR("Log", "", unary_log_rows),
    UNARY_OPERATOR("Neg", "", unary_neg_rows),
    UNARY_OPERATOR("Not", "", unary_not_rows),
    UNARY_OPERATOR("Reciprocal", "", unary_reciprocal_rows),
    UNARY_OPERATOR("Relu", "", unary_relu_rows),
    UNARY_OPERATOR("Sigmoid", "", unary_sigmoid_rows),
    UNARY_OPERATOR("Sqrt", "", unary_sqrt_rows),
    UNARY_OPERATOR("Tanh", "", unary_tanh_rows),
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
