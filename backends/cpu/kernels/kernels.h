/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of one kernel set share: each function under the set's own name. */
#ifndef RONDO_BACKENDS_CPU_KERNELS_KERNELS_H
#define RONDO_BACKENDS_CPU_KERNELS_KERNELS_H

#include "../set.h"
#include "simd.h"

extern const rondo__cpu_unary_strip V_NAME(unary_strips)[RONDO__CPU_UNARY_COUNT];
extern const rondo__cpu_binary_strip V_NAME(binary_strips)[RONDO__CPU_BINARY_COUNT][RONDO__CPU_KINDS];
void V_NAME(gemm)(const rondo__cpu_gemm *gemm, const float *x, const float *w, const float *bias, float *y);
void V_NAME(dot)(const rondo__cpu_gemm *gemm, const float *x, const float *w, const float *bias, float *y);
void V_NAME(conv)(const rondo__cpu_conv *conv, const float *x, const float *w, const float *bias, float *y,
                  float *scratch);
void V_NAME(flat)(const rondo__cpu_flat *flat, const float *x, const float *w, const float *bias, float *y);
void V_NAME(turn)(const float *x, float *y, size_t channels, size_t length, size_t before, size_t after);
void V_NAME(lstm)(const rondo__cpu_lstm_size *size, const float *packed, const float *x, const float *h, const float *c,
                  float *out_h, float *out_c);
float V_NAME(sum)(const float *x, size_t count);
float V_NAME(maximum)(const float *x, size_t count);
void V_NAME(maximum_pairs)(const float *x, float *y, size_t count);
void V_NAME(softmax)(const float *x, float *y, size_t count);
extern const rondo__cpu_set V_NAME(set);

V_INLINE vf v_finish(uint32_t finish, vf a, vf p, vf q) {
    const vf zero = v_set(0.0f), one = v_set(1.0f);
    switch (finish) {
    case RONDO__CPU_FINISH_LEAKY: return v_max(q, v_select((vi)(a < zero), a * p, a));
    case RONDO__CPU_FINISH_HARD_SIGMOID: return v_min(one, v_max(zero, v_fma(a, p, q)));
    case RONDO__CPU_FINISH_HARD_SWISH: return a * v_min(one, v_max(zero, v_fma(a, p, q)));
    default: return v_min(q, v_max(p, a));
    }
}

/* Tile sizes that follow from the number of registers. */
enum {
    V_WIDE_ONE = 8,
    V_WIDE_TWO = 4,
    V_WIDE_MORE = V_REGISTERS == 32 ? 4 : 3,
    V_WIDEST = 8,
    V_CONV_TILE = V_REGISTERS == 32 ? 8 : 4,
    V_CONV_VECTORS = 3
};

#endif
