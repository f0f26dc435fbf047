/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums, maxima and softmax of one row. */
#include "kernels.h"
#include "vmath.h"

float V_NAME(sum)(const float *x, size_t count) {
    vf a = v_set(0.0f), b = a, c = a, d = a;
    size_t i = 0;
    for (; i + 4 * V_LANES <= count; i += 4 * V_LANES) {
        a += v_load(x + i);
        b += v_load(x + i + V_LANES);
        c += v_load(x + i + 2 * V_LANES);
        d += v_load(x + i + 3 * V_LANES);
    }
    for (; i + V_LANES <= count; i += V_LANES) a += v_load(x + i);
    if (i < count) b += v_load_part(x + i, count - i);
    return v_sum((a + b) + (c + d));
}

/* NaN wins: a lane that has met one keeps it. */
V_INLINE vf reduce_max(vf a, vf b) { return v_select(v_is_nan(a), a, v_max(a, b)); }

float V_NAME(maximum)(const float *x, size_t count) {
    vf a = v_set(-__builtin_inff());
    size_t i = 0;
    for (; i + V_LANES <= count; i += V_LANES) a = reduce_max(a, v_load(x + i));
    float part[V_LANES];
    memcpy(part, &a, sizeof part);
    float best = part[0];
    for (size_t lane = 1; lane < V_LANES; lane++) best = part[lane] <= best || best != best ? best : part[lane];
    for (; i < count; i++) best = x[i] <= best || best != best ? best : x[i];
    return best;
}

void V_NAME(softmax)(const float *x, float *y, size_t count) {
    if (count == 0) return;
    const vf most = v_set(V_NAME(maximum)(x, count));
    vf total = v_set(0.0f);
    size_t i = 0;
    for (; i + V_LANES <= count; i += V_LANES) {
        vf e = v_exp(v_load(x + i) - most);
        total += e;
        v_store(y + i, e);
    }
    float sum = v_sum(total);
    if (i < count) {
        float part[V_LANES];
        vf e = v_exp(v_load_part(x + i, count - i) - most);
        memcpy(part, &e, sizeof part);
        for (size_t lane = 0; i + lane < count; lane++) sum += part[lane];
        v_store_part(y + i, e, count - i);
    }
    const vf all = v_set(sum);
    for (i = 0; i + V_LANES <= count; i += V_LANES) v_store(y + i, v_load(y + i) / all);
    if (i < count) v_store_part(y + i, v_load_part(y + i, count - i) / all, count - i);
}

/* The even and the odd numbers of two vectors. */
V_INLINE void reduce_part_pairs(vf a, vf b, vf *even, vf *odd) {
#if V_LANES == 16
    *even = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *odd = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#elif V_LANES == 8
    *even = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    *odd = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    *even = __builtin_shufflevector(a, b, 0, 2, 4, 6);
    *odd = __builtin_shufflevector(a, b, 1, 3, 5, 7);
#endif
}

void V_NAME(maximum_pairs)(const float *x, float *y, size_t count) {
    size_t i = 0;
    for (; i + V_LANES <= count; i += V_LANES) {
        vf even, odd;
        reduce_part_pairs(v_load(x + 2 * i), v_load(x + 2 * i + V_LANES), &even, &odd);
        v_store(y + i, v_select(v_is_nan(even), even, v_max(even, odd)));
    }
    for (; i < count; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        y[i] = a != a || a > b ? a : b;
    }
}
