/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over axes, and Softmax. Floats are summed in double, in row-major order of what is reduced, and rounded
 * once. Integer sums wrap; a mean is the 64-bit sum's quotient, truncated. Over nothing: a sum is 0, a maximum the
 * type's lowest value, a mean NaN (for integers: a division by zero). A NaN anywhere is the maximum. */
#include "ref.h"

#include <math.h>

enum {
    REDUCE_SUM,
    REDUCE_MEAN,
    REDUCE_MAX,
    REDUCE_MIN,
    REDUCE_PROD,
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_SUM_SQUARE,
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP
};

static rondo_status reduce_build(rondo__ref_builder *b, uint32_t types) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *axes = rondo__ref_optional_input(k, 1);
    int64_t keep = 1, noop = 0;
    rondo_status status = rondo__ref_need_types(b, "the input", in, types);
    if (!status) status = rondo__ref_need_same_type(b, "the output", rondo__ref_output(k, 0), in->dtype);
    if (!status && axes) status = rondo__ref_need_same_type(b, "the axes", axes, RONDO_DTYPE_I64);
    if (!status && axes && axes->rank != 1) {
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the axes must have rank 1, not %d", (int)axes->rank);
    }
    if (!status) status = rondo__ref_attribute_int(b, "keepdims", &keep);
    if (!status) status = rondo__ref_attribute_int(b, "noop_with_empty_axes", &noop);
    k->as.reduce.keep = keep;
    k->as.reduce.noop = noop;
    return status;
}

static rondo_status reduce_sum_build(rondo__ref_builder *b) {
    return reduce_build(b, RONDO__REF_PRODUCT_TYPES | RONDO__REF_HALF_TYPES);
}

static rondo_status reduce_max_build(rondo__ref_builder *b) {
    return reduce_build(b, RONDO__REF_PRODUCT_TYPES | RONDO__REF_HALF_TYPES | RONDO__REF_BIT(I8) | RONDO__REF_BIT(U8) |
                               RONDO__REF_BIT(BOOL));
}

/* The axes that go and those that stay, each with its stride in the input. */
typedef struct reduce_plan {
    int32_t kept, gone;
    int64_t kept_dims[RONDO_RANK_MAX], kept_strides[RONDO_RANK_MAX];
    int64_t gone_dims[RONDO_RANK_MAX], gone_strides[RONDO_RANK_MAX];
    int64_t gone_count;
} reduce_plan;

static int32_t reduce_read(const rondo__ref_kernel *k, const uint64_t *words, reduce_plan *plan) {
    const rondo__ref_tensor *in = &k->tensors[0], *axes = rondo__ref_optional_input(k, 1);
    uint32_t mask = 0;
    int64_t strides[RONDO_RANK_MAX], dims[RONDO_RANK_MAX];
    int32_t reason = RONDO__REF_OK, rank = 0;
    if (axes && axes->count > 0) {
        reason = rondo__ref_read_axes(axes, rondo__ref_address(words[1]), in->rank, false, &mask);
    } else if (!k->as.reduce.noop) {
        mask = (1u << in->rank) - 1u;
    }
    if (reason) return reason;
    plan->kept = plan->gone = 0;
    plan->gone_count = 1;
    rondo__ref_compact(in->rank, in->dims, strides);
    for (int32_t d = 0; d < in->rank; d++) {
        if (mask >> d & 1u) {
            plan->gone_dims[plan->gone] = in->dims[d];
            plan->gone_strides[plan->gone++] = strides[d];
            if (__builtin_mul_overflow(plan->gone_count, in->dims[d], &plan->gone_count)) return RONDO__REF_BAD_VALUE;
            if (k->as.reduce.keep) dims[rank++] = 1;
        } else {
            plan->kept_dims[plan->kept] = in->dims[d];
            plan->kept_strides[plan->kept++] = strides[d];
            dims[rank++] = in->dims[d];
        }
    }
    return rondo__ref_check_dims(&k->tensors[k->input_count], rank, dims);
}

static double reduce_start(int kind) {
    switch (kind) {
    case REDUCE_MAX: return -(double)INFINITY;
    case REDUCE_MIN: return (double)INFINITY;
    case REDUCE_PROD: return 1.0;
    default: return 0.0;
    }
}

static double reduce_step(int kind, double result, double x, double most) {
    switch (kind) {
    case REDUCE_MAX: return x > result || x != x ? x : result;
    case REDUCE_MIN: return x < result || x != x ? x : result;
    case REDUCE_PROD: return result * x;
    case REDUCE_L1: return result + fabs(x);
    case REDUCE_L2:
    case REDUCE_SUM_SQUARE: return result + x * x;
    case REDUCE_LOG_SUM_EXP: return result + exp(x - most);
    default: return result + x;
    }
}

static double reduce_real_at(rondo_dtype dtype, const void *in, int64_t i) {
    if (rondo__ref_is_real(dtype)) return rondo__ref_get_real(dtype, in, i);
    int64_t x = rondo__ref_get_int(dtype, in, i);
    return dtype == RONDO_DTYPE_U64 ? (double)(uint64_t)x : (double)x;
}

/* One pass over what goes; `most` is what LogSumExp takes off first, so that exp cannot overflow. */
static double reduce_pass(int kind, rondo_dtype dtype, const void *in, int64_t base, const reduce_plan *plan,
                          double most) {
    double result = reduce_start(kind);
    int64_t index[RONDO_RANK_MAX] = {0};
    for (int64_t i = 0; i < plan->gone_count; i++) {
        double x = reduce_real_at(dtype, in, base + rondo__ref_offset(plan->gone, plan->gone_strides, index));
        result = reduce_step(kind, result, x, most);
        (void)rondo__ref_next(plan->gone, plan->gone_dims, index);
    }
    return result;
}

static double reduce_floats(int kind, rondo_dtype dtype, const void *in, int64_t base, const reduce_plan *plan) {
    double most = 0;
    if (kind == REDUCE_LOG_SUM_EXP) most = reduce_pass(REDUCE_MAX, dtype, in, base, plan, 0);
    if (isinf(most)) return most;
    double result = reduce_pass(kind, dtype, in, base, plan, most);
    switch (kind) {
    case REDUCE_MEAN: return result / (double)plan->gone_count;
    case REDUCE_L2: return sqrt(result);
    case REDUCE_LOG_SUM: return log(result);
    case REDUCE_LOG_SUM_EXP: return log(result) + most;
    default: return result;
    }
}

/* The lowest or the highest number of a type, as 64 bits. */
static uint64_t reduce_limit(rondo_dtype dtype, bool highest) {
    switch (dtype) {
    case RONDO_DTYPE_I8: return (uint64_t)(int64_t)(highest ? INT8_MAX : INT8_MIN);
    case RONDO_DTYPE_I32: return (uint64_t)(int64_t)(highest ? INT32_MAX : INT32_MIN);
    case RONDO_DTYPE_I64: return (uint64_t)(highest ? INT64_MAX : INT64_MIN);
    case RONDO_DTYPE_U8: return highest ? UINT8_MAX : 0;
    case RONDO_DTYPE_U32: return highest ? UINT32_MAX : 0;
    case RONDO_DTYPE_BOOL: return highest ? 1 : 0;
    default: return highest ? UINT64_MAX : 0;
    }
}

static uint64_t reduce_integer_step(int kind, bool wide, uint64_t result, int64_t x) {
    switch (kind) {
    case REDUCE_MAX: return (wide ? (uint64_t)x > result : x > (int64_t)result) ? (uint64_t)x : result;
    case REDUCE_MIN: return (wide ? (uint64_t)x < result : x < (int64_t)result) ? (uint64_t)x : result;
    case REDUCE_PROD: return result * (uint64_t)x;
    case REDUCE_L1: return result + (!wide && x < 0 ? 0u - (uint64_t)x : (uint64_t)x);
    case REDUCE_SUM_SQUARE: return result + (uint64_t)x * (uint64_t)x;
    default: return result + (uint64_t)x;
    }
}

/* Roots and logarithms of integers are taken in double and cut, everything else stays in 64 bits and wraps. */
static int32_t reduce_integers(int kind, rondo_dtype dtype, const void *in, int64_t base, const reduce_plan *plan,
                               uint64_t *out) {
    const bool wide = dtype == RONDO_DTYPE_U64, is_unsigned = wide || dtype == RONDO_DTYPE_U32;
    if (kind == REDUCE_L2 || kind == REDUCE_LOG_SUM || kind == REDUCE_LOG_SUM_EXP) {
        *out = rondo__ref_to_integer(reduce_floats(kind, dtype, in, base, plan), dtype);
        return RONDO__REF_OK;
    }
    uint64_t result = kind == REDUCE_MAX || kind == REDUCE_MIN ? reduce_limit(dtype, kind == REDUCE_MIN) : 0;
    if (kind == REDUCE_PROD) result = 1;
    int64_t index[RONDO_RANK_MAX] = {0};
    for (int64_t i = 0; i < plan->gone_count; i++) {
        int64_t x = rondo__ref_get_int(dtype, in, base + rondo__ref_offset(plan->gone, plan->gone_strides, index));
        result = reduce_integer_step(kind, wide, result, x);
        (void)rondo__ref_next(plan->gone, plan->gone_dims, index);
    }
    if (kind == REDUCE_MEAN) {
        if (plan->gone_count == 0) return RONDO__REF_ZERO_DIVISOR;
        result = is_unsigned ? result / (uint64_t)plan->gone_count : (uint64_t)((int64_t)result / plan->gone_count);
    }
    *out = result;
    return RONDO__REF_OK;
}

static int32_t reduce_run_as(int kind, const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0], *result = &k->tensors[k->input_count];
    reduce_plan plan;
    int32_t reason = reduce_read(k, words, &plan);
    if (reason) return reason;
    const void *data = rondo__ref_address(words[0]);
    void *out = rondo__ref_address(rondo__ref_output_word(k, words, 0));
    int64_t index[RONDO_RANK_MAX] = {0};
    for (int64_t i = 0; i < result->count; i++) {
        int64_t base = rondo__ref_offset(plan.kept, plan.kept_strides, index);
        if (rondo__ref_is_real(in->dtype)) {
            rondo__ref_put_real(in->dtype, out, i, reduce_floats(kind, in->dtype, data, base, &plan));
        } else {
            uint64_t value = 0;
            reason = reduce_integers(kind, in->dtype, data, base, &plan, &value);
            if (reason) return reason;
            rondo__ref_put_int(in->dtype, out, i, value);
        }
        (void)rondo__ref_next(plan.kept, plan.kept_dims, index);
    }
    return RONDO__REF_OK;
}

#define REDUCE_RUN(name, kind)                                                              \
    static int32_t reduce_##name##_run(const rondo__ref_kernel *k, const uint64_t *words) { \
        return reduce_run_as(kind, k, words);                                               \
    }
REDUCE_RUN(sum, REDUCE_SUM)
REDUCE_RUN(mean, REDUCE_MEAN)
REDUCE_RUN(max, REDUCE_MAX)
REDUCE_RUN(min, REDUCE_MIN)
REDUCE_RUN(prod, REDUCE_PROD)
REDUCE_RUN(l1, REDUCE_L1)
REDUCE_RUN(l2, REDUCE_L2)
REDUCE_RUN(sum_square, REDUCE_SUM_SQUARE)
REDUCE_RUN(log_sum, REDUCE_LOG_SUM)
REDUCE_RUN(log_sum_exp, REDUCE_LOG_SUM_EXP)

/* -------------------------------------------------------------------------------------------------- Softmax */

enum { SOFTMAX_PLAIN, SOFTMAX_LOG, SOFTMAX_HARD };

static rondo_status softmax_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *out = rondo__ref_output(k, 0);
    rondo_status status = rondo__ref_need_types(b, "the input", in, RONDO__REF_REAL_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, in->dtype);
    if (!status) status = rondo__ref_need_shape_of(b, "the output", out, in);
    if (!status) status = rondo__ref_attribute_axis(b, -1, in->rank, false, &k->as.axis);
    if (!status) rondo__ref_allow_in_place(k, 0);
    return status;
}

/* One line of n elements, each `step` after the one before. Three passes, so that output and input may be the same
 * memory. Hardmax is 1 at the first of the largest. */
static void softmax_line(int kind, rondo_dtype dtype, const void *from, void *to, int64_t base, int64_t n,
                         int64_t step) {
    double most = -(double)INFINITY, sum = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = rondo__ref_get_real(dtype, from, base + i * step);
        if (!(x > most) && x == x) continue;
        if (x > most || most == most) at = i;
        most = x;
    }
    for (int64_t i = 0; i < n; i++) sum += exp(rondo__ref_get_real(dtype, from, base + i * step) - most);
    for (int64_t i = 0; i < n; i++) {
        double x = rondo__ref_get_real(dtype, from, base + i * step) - most;
        double value = kind == SOFTMAX_PLAIN ? exp(x) / sum : kind == SOFTMAX_LOG ? x - log(sum) : i == at ? 1.0 : 0.0;
        rondo__ref_put_real(dtype, to, base + i * step, value);
    }
}

static int32_t softmax_run_as(int kind, const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0];
    const int64_t n = in->dims[k->as.axis];
    int64_t after = 1;
    if (in->count == 0) return RONDO__REF_OK;
    for (int32_t d = (int32_t)k->as.axis + 1; d < in->rank; d++) after *= in->dims[d];
    for (int64_t line = 0; line < in->count / n; line++) {
        softmax_line(kind, in->dtype, rondo__ref_address(words[0]), rondo__ref_address(words[1]),
                     line / after * n * after + line % after, n, after);
    }
    return RONDO__REF_OK;
}

static int32_t softmax_run(const rondo__ref_kernel *k, const uint64_t *words) {
    return softmax_run_as(SOFTMAX_PLAIN, k, words);
}

static int32_t softmax_log_run(const rondo__ref_kernel *k, const uint64_t *words) {
    return softmax_run_as(SOFTMAX_LOG, k, words);
}

static int32_t softmax_hard_run(const rondo__ref_kernel *k, const uint64_t *words) {
    return softmax_run_as(SOFTMAX_HARD, k, words);
}

#define REDUCE_OPERATOR(name, build, run) \
    { name, 1, 2, 1, 1, "keepdims noop_with_empty_axes", build, run, NULL }

const rondo__ref_operator rondo__ref_reduce_operators[] = {
    {"Hardmax", 1, 1, 1, 1, "axis", softmax_build, softmax_hard_run, NULL},
    {"LogSoftmax", 1, 1, 1, 1, "axis", softmax_build, softmax_log_run, NULL},
    REDUCE_OPERATOR("ReduceL1", reduce_sum_build, reduce_l1_run),
    REDUCE_OPERATOR("ReduceL2", reduce_sum_build, reduce_l2_run),
    REDUCE_OPERATOR("ReduceLogSum", reduce_sum_build, reduce_log_sum_run),
    REDUCE_OPERATOR("ReduceLogSumExp", reduce_sum_build, reduce_log_sum_exp_run),
    REDUCE_OPERATOR("ReduceMax", reduce_max_build, reduce_max_run),
    REDUCE_OPERATOR("ReduceMean", reduce_sum_build, reduce_mean_run),
    REDUCE_OPERATOR("ReduceMin", reduce_max_build, reduce_min_run),
    REDUCE_OPERATOR("ReduceProd", reduce_sum_build, reduce_prod_run),
    REDUCE_OPERATOR("ReduceSum", reduce_sum_build, reduce_sum_run),
    REDUCE_OPERATOR("ReduceSumSquare", reduce_sum_build, reduce_sum_square_run),
    {"Softmax", 1, 1, 1, 1, "axis", softmax_build, softmax_run, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
