/* SPDX-License-Identifier: Apache-2.0
 *
 * exp, log, tanh and the logistic function on vectors, each within 4 ulp of the exact value for every float.
 *
 * The coefficients are minimax fits made for these ranges. Overflow, underflow into denormals, infinities and NaN come
 * out as the exact function has them: no denormal is flushed.
 */
#ifndef RONDO_BACKENDS_CPU_KERNELS_VMATH_H
#define RONDO_BACKENDS_CPU_KERNELS_VMATH_H

#include "simd.h"

/* e^x: x = n ln 2 + r, e^r as a polynomial, and 2^n in two factors so that results below 2^-126 round once. */
V_INLINE vf v_exp(vf x) {
    const vf magic = v_set(0x1.8p23f);
    x = v_min(v_set(89.0f), v_max(v_set(-104.0f), x));
    vf shifted = v_fma(x, v_set(0x1.715476p0f), magic); /* 1 / ln 2; the integer lands in the low bits */
    vi n = (vi)((vu)shifted - (vu)magic);
    vf whole = shifted - magic;
    vf r = v_fma(whole, v_set(-0x1.63p-1f), x); /* ln 2 in two parts; the first product is exact */
    r = v_fma(whole, v_set(0x1.bd0106p-13f), r);
    vf q = v_fma(r, v_set(0x1.a1b5cep-13f), v_set(0x1.6d974cp-10f));
    q = v_fma(r, q, v_set(0x1.11107ep-7f));
    q = v_fma(r, q, v_set(0x1.55548p-5f));
    q = v_fma(r, q, v_set(0x1.555556p-3f));
    q = v_fma(r, q, v_set(0.5f));
    vf e = v_fma(r * r, q, r) + v_set(1.0f);
    vi half = n >> 1;
    vf low = (vf)(((vu)half + 127u) << 23), high = (vf)(((vu)n - (vu)half + 127u) << 23);
    return e * low * high;
}

/* 1 / (1 + e^-x), through e^-|x| so that nothing overflows. */
V_INLINE vf v_sigmoid(vf x) {
    const vf one = v_set(1.0f);
    vf e = v_exp((vf)((vi)x | v_seti(INT32_MIN)));
    return v_select((vi)(x < v_set(0.0f)), e, one) / (one + e);
}

V_INLINE vf v_tanh(vf x) {
    const vf one = v_set(1.0f);
    vf z = x * x, small = v_set(0x1.12f3bep-9f);
    small = v_fma(small, z, v_set(-0x1.0a5ef8p-7f));
    small = v_fma(small, z, v_set(0x1.633b66p-6f));
    small = v_fma(small, z, v_set(-0x1.b9e782p-5f));
    small = v_fma(small, z, v_set(0x1.111044p-3f));
    small = v_fma(small, z, v_set(-0x1.555554p-2f));
    small = v_fma(small * z, x, x);
    vf size = v_abs(x);
    vf e = v_exp(size + size);
    vf large = one - v_set(2.0f) / (e + one);
    vi sign = (vi)x & v_seti(INT32_MIN); /* of both: small of -0 comes out as 0 */
    return (vf)((vi)v_select((vi)(size < v_set(0.625f)), small, large) | sign);
}

/* x = 2^e m, m within sqrt(2) of 1; log m as a polynomial in m - 1. */
V_INLINE vf v_log(vf x) {
    const vf zero = v_set(0.0f);
    vi tiny = (vi)(x < v_set(0x1p-126f));
    vf scaled = v_select(tiny, x * v_set(0x1p23f), x);
    vi bits = (vi)((vu)scaled - (vu)v_seti(0x3f3504f3)); /* sqrt(1/2): so the exponent counts from there */
    vi e = (bits >> 23) - (tiny & v_seti(23));
    vf m = (vf)((bits & v_seti(0x007fffff)) + v_seti(0x3f3504f3));
    vf f = m - v_set(1.0f);
    vf g = v_fma(f, v_set(0x1.14c9d8p-4f), v_set(-0x1.deffe2p-4f));
    g = v_fma(f, g, v_set(0x1.e728a6p-4f));
    g = v_fma(f, g, v_set(-0x1.fc07cap-4f));
    g = v_fma(f, g, v_set(0x1.23322ap-3f));
    g = v_fma(f, g, v_set(-0x1.555cccp-3f));
    g = v_fma(f, g, v_set(0x1.99a4f6p-3f));
    g = v_fma(f, g, v_set(-0x1.000006p-2f));
    g = v_fma(f, g, v_set(0x1.555546p-2f));
    vf s = f * f;
    vf exponent = __builtin_convertvector(e, vf);
    vf low = v_fma(exponent, v_set(-0x1.bd0106p-13f), g * f * s);
    low = v_fma(s, v_set(-0.5f), low);
    vf result = v_fma(exponent, v_set(0x1.63p-1f), f + low);
    const vf infinite = v_set(__builtin_inff());
    result = v_select((vi)(x == infinite), infinite, result);
    result = v_select((vi)(x == zero), -infinite, result);
    return v_select((vi)(x < zero) | v_is_nan(x), v_set(__builtin_nanf("")), result);
}

#endif
