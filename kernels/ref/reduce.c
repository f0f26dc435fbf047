/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over axes, and Softmax. Floats are summed in double, in row-major order of what is reduced, and rounded
 * once. Integer sums wrap; a mean is the 64-bit sum's quotient, truncated. Over nothing: a sum is 0, a maximum the
 * type's lowest value, a mean NaN (for integers: a division by zero). A NaN anywhere is the maximum. */
#include "ref.h"

#include <math.h>

enum { REDUCE_SUM, REDUCE_MEAN, REDUCE_MAX };

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

static rondo_status reduce_sum_build(rondo__ref_builder *b) { return reduce_build(b, RONDO__REF_PRODUCT_TYPES); }

static rondo_status reduce_max_build(rondo__ref_builder *b) {
    return reduce_build(b, RONDO__REF_PRODUCT_TYPES | RONDO__REF_BIT(I8) | RONDO__REF_BIT(U8) | RONDO__REF_BIT(BOOL));
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
        reason = rondo__ref_read_axes(axes, rondo__ref_address(words[1]), in->rank, &mask);
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

static double reduce_floats(int kind, rondo_dtype dtype, const void *in, int64_t base, const reduce_plan *plan) {
    double result = kind == REDUCE_MAX ? -(double)INFINITY : 0.0;
    int64_t index[RONDO_RANK_MAX] = {0};
    for (int64_t i = 0; i < plan->gone_count; i++) {
        double x = rondo__ref_get(dtype, in, base + rondo__ref_offset(plan->gone, plan->gone_strides, index));
        if (kind != REDUCE_MAX) {
            result += x;
        } else if (x > result || x != x) {
            result = x;
        }
        (void)rondo__ref_next(plan->gone, plan->gone_dims, index);
    }
    return kind == REDUCE_MEAN ? result / (double)plan->gone_count : result;
}

static int64_t reduce_lowest(rondo_dtype dtype) {
    switch (dtype) {
    case RONDO_DTYPE_I8: return INT8_MIN;
    case RONDO_DTYPE_I32: return INT32_MIN;
    case RONDO_DTYPE_I64: return INT64_MIN;
    default: return 0;
    }
}

static int32_t reduce_integers(int kind, rondo_dtype dtype, const void *in, int64_t base, const reduce_plan *plan,
                               uint64_t *out) {
    const bool wide = dtype == RONDO_DTYPE_U64, is_unsigned = wide || dtype == RONDO_DTYPE_U32;
    uint64_t result = kind == REDUCE_MAX ? (uint64_t)reduce_lowest(dtype) : 0;
    int64_t index[RONDO_RANK_MAX] = {0};
    for (int64_t i = 0; i < plan->gone_count; i++) {
        int64_t x = rondo__ref_get_int(dtype, in, base + rondo__ref_offset(plan->gone, plan->gone_strides, index));
        if (kind != REDUCE_MAX) {
            result += (uint64_t)x;
        } else if (wide ? (uint64_t)x > result : x > (int64_t)result) {
            result = (uint64_t)x;
        }
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
        if (rondo__ref_is_float(in->dtype)) {
            rondo__ref_put(in->dtype, out, i, reduce_floats(kind, in->dtype, data, base, &plan));
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

static int32_t reduce_sum_run(const rondo__ref_kernel *k, const uint64_t *words) {
    return reduce_run_as(REDUCE_SUM, k, words);
}

static int32_t reduce_mean_run(const rondo__ref_kernel *k, const uint64_t *words) {
    return reduce_run_as(REDUCE_MEAN, k, words);
}

static int32_t reduce_max_run(const rondo__ref_kernel *k, const uint64_t *words) {
    return reduce_run_as(REDUCE_MAX, k, words);
}

/* -------------------------------------------------------------------------------------------------- Softmax */

static rondo_status softmax_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *out = rondo__ref_output(k, 0);
    rondo_status status = rondo__ref_need_types(b, "the input", in, RONDO__REF_FLOAT_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, in->dtype);
    if (!status) status = rondo__ref_need_shape_of(b, "the output", out, in);
    if (!status) status = rondo__ref_attribute_axis(b, -1, in->rank, false, &k->as.axis);
    if (!status) rondo__ref_allow_in_place(k, 0);
    return status;
}

/* Three passes over each line, so that output and input may be the same memory. */
static int32_t softmax_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0];
    const int64_t n = in->dims[k->as.axis];
    int64_t after = 1;
    if (in->count == 0) return RONDO__REF_OK;
    for (int32_t d = (int32_t)k->as.axis + 1; d < in->rank; d++) after *= in->dims[d];
    const void *from = rondo__ref_address(words[0]);
    void *to = rondo__ref_address(words[1]);
    for (int64_t line = 0; line < in->count / n; line++) {
        const int64_t base = line / after * n * after + line % after;
        double most = -(double)INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++) {
            double x = rondo__ref_get(in->dtype, from, base + i * after);
            if (x > most || x != x) most = x;
        }
        for (int64_t i = 0; i < n; i++) sum += exp(rondo__ref_get(in->dtype, from, base + i * after) - most);
        for (int64_t i = 0; i < n; i++) {
            double x = rondo__ref_get(in->dtype, from, base + i * after);
            rondo__ref_put(in->dtype, to, base + i * after, exp(x - most) / sum);
        }
    }
    return RONDO__REF_OK;
}

const rondo__ref_operator rondo__ref_reduce_operators[] = {
    {"ReduceMax", 1, 2, 1, 1, "keepdims noop_with_empty_axes", reduce_max_build, reduce_max_run, NULL},
    {"ReduceMean", 1, 2, 1, 1, "keepdims noop_with_empty_axes", reduce_sum_build, reduce_mean_run, NULL},
    {"ReduceSum", 1, 2, 1, 1, "keepdims noop_with_empty_axes", reduce_sum_build, reduce_sum_run, NULL},
    {"Softmax", 1, 1, 1, 1, "axis", softmax_build, softmax_run, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
