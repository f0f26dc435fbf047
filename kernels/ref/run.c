/* SPDX-License-Identifier: Apache-2.0
 *
 * What running kernels share: strided copies, sums of products, activations, and reading shape-like operands. */
#include "ref.h"

#include <math.h>

void rondo__ref_compact(int32_t rank, const int64_t *dims, int64_t *strides) {
    int64_t stride = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        strides[d] = stride;
        /* An empty tensor's strides are never used; they must only not overflow. */
        if (__builtin_mul_overflow(stride, dims[d], &stride)) stride = 0;
    }
}

/* One row; the switch gives memcpy a constant size, which makes it a plain load and store of any type. */
static void run_copy_row(size_t size, int64_t n, unsigned char *out, int64_t out_step, const unsigned char *in,
                         int64_t in_step) {
    if (out_step == 1 && in_step == 1) {
        memmove(out, in, (size_t)n * size);
        return;
    }
    int64_t bytes = (int64_t)size;
    for (int64_t i = 0; i < n; i++) {
        unsigned char *to = out + i * out_step * bytes;
        const unsigned char *from = in + i * in_step * bytes;
        switch (size) {
        case 1: *to = *from; break;
        case 2: memcpy(to, from, 2); break;
        case 4: memcpy(to, from, 4); break;
        default: memcpy(to, from, 8); break;
        }
    }
}

void rondo__ref_copy(size_t size, int32_t rank, const int64_t *dims, void *out, const int64_t *out_strides,
                     const void *in, const int64_t *in_strides) {
    for (int32_t d = 0; d < rank; d++) {
        if (dims[d] == 0) return;
    }
    int64_t index[RONDO_RANK_MAX] = {0};
    int32_t outer = rank > 0 ? rank - 1 : 0;
    int64_t n = rank > 0 ? dims[outer] : 1;
    int64_t out_step = rank > 0 ? out_strides[outer] : 1, in_step = rank > 0 ? in_strides[outer] : 1;
    do {
        run_copy_row(size, n, (unsigned char *)out + rondo__ref_offset(outer, out_strides, index) * (int64_t)size,
                     out_step, (const unsigned char *)in + rondo__ref_offset(outer, in_strides, index) * (int64_t)size,
                     in_step);
    } while (rondo__ref_next(outer, dims, index));
}

int32_t rondo__ref_run_view(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *out = &k->tensors[k->input_count];
    if (out->count > 0) {
        memmove(rondo__ref_address(rondo__ref_output_word(k, words, 0)), rondo__ref_address(words[0]),
                (size_t)out->count * out->size);
    }
    return RONDO__REF_OK;
}

double rondo__ref_dot(rondo_dtype dtype, int64_t n, const void *a, int64_t a_step, const void *b, int64_t b_step) {
    double sum = 0;
    if (dtype == RONDO_DTYPE_F32) {
        const float *x = (const float *)a, *y = (const float *)b;
        for (int64_t i = 0; i < n; i++) sum += (double)x[i * a_step] * (double)y[i * b_step];
    } else {
        const double *x = (const double *)a, *y = (const double *)b;
        for (int64_t i = 0; i < n; i++) sum += x[i * a_step] * y[i * b_step];
    }
    return sum;
}

uint64_t rondo__ref_dot_int(rondo_dtype dtype, int64_t n, const void *a, int64_t a_step, const void *b,
                            int64_t b_step) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (uint64_t)rondo__ref_get_int(dtype, a, i * a_step) * (uint64_t)rondo__ref_get_int(dtype, b, i * b_step);
    }
    return sum;
}

/* Written so that exp only ever sees what cannot overflow. */
double rondo__ref_sigmoid(double x) {
    if (x >= 0) return 1.0 / (1.0 + exp(-x));
    double e = exp(x);
    return e / (1.0 + e);
}

static double run_activation(const rondo__ref_activation *activation, double x) {
    switch (activation->kind) {
    case RONDO__REF_ACT_RELU: return x < 0 ? 0 : x;
    case RONDO__REF_ACT_SIGMOID: return rondo__ref_sigmoid(x);
    case RONDO__REF_ACT_TANH: return tanh(x);
    case RONDO__REF_ACT_LEAKY_RELU: return x < 0 ? (double)activation->alpha * x : x;
    case RONDO__REF_ACT_CLIP:
        x = x < (double)activation->alpha ? (double)activation->alpha : x;
        return x > (double)activation->beta ? (double)activation->beta : x;
    default: return x;
    }
}

void rondo__ref_activate(const rondo__ref_activation *activation, rondo_dtype dtype, void *data, int64_t count) {
    if (activation->kind == RONDO__REF_ACT_NONE) return;
    for (int64_t i = 0; i < count; i++) {
        rondo__ref_put(dtype, data, i, run_activation(activation, rondo__ref_get(dtype, data, i)));
    }
}

int32_t rondo__ref_read_axes(const rondo__ref_tensor *t, const void *data, int32_t rank, bool repeats,
                             uint32_t *out_mask) {
    uint32_t mask = 0;
    for (int64_t i = 0; i < t->count; i++) {
        int64_t axis = rondo__ref_get_int(t->dtype, data, i);
        if (axis < -rank || axis >= rank) return RONDO__REF_BAD_VALUE;
        uint32_t bit = 1u << (axis < 0 ? axis + rank : axis);
        if (mask & bit && !repeats) return RONDO__REF_BAD_VALUE;
        mask |= bit;
    }
    *out_mask = mask;
    return RONDO__REF_OK;
}

int32_t rondo__ref_check_dims(const rondo__ref_tensor *t, int32_t rank, const int64_t *dims) {
    if (t->rank != rank) return RONDO__REF_SHAPE_MISMATCH;
    for (int32_t d = 0; d < rank; d++) {
        if (t->dims[d] != dims[d]) return RONDO__REF_SHAPE_MISMATCH;
    }
    return RONDO__REF_OK;
}
