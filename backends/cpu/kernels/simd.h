/* SPDX-License-Identifier: Apache-2.0
 *
 * One vector type of RONDO__CPU_LANES floats, whatever the instruction set.
 *
 * The build compiles the kernels once a set, with RONDO__CPU_TAG (base, v3, v4) and RONDO__CPU_LANES (4, 8, 16). All is
 * written over the compilers' vector extensions; intrinsics stand only where those say too little (masked loads, fused
 * multiply-add, square root), each beside a plain form that means the same.
 *
 * NaN: v_max(a, b) and v_min(a, b) give b when either is NaN, as x86 does.
 */
#ifndef RONDO_BACKENDS_CPU_KERNELS_SIMD_H
#define RONDO_BACKENDS_CPU_KERNELS_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(RONDO__CPU_TAG) || !defined(RONDO__CPU_LANES)
#error "the build names the kernel set: RONDO__CPU_TAG, RONDO__CPU_LANES"
#endif

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#define V_LANES RONDO__CPU_LANES
#if V_LANES == 16 && defined(__AVX512F__)
#define V_IS_AVX512 1
#elif V_LANES == 8 && defined(__AVX2__) && defined(__FMA__)
#define V_IS_AVX2 1
#elif V_LANES == 4 && defined(__SSE2__)
#define V_IS_SSE2 1
#elif V_LANES == 4 && defined(__ARM_NEON) && defined(__aarch64__)
#define V_IS_NEON 1
#endif
/* Vector registers that a tile may fill. */
#if defined(V_IS_AVX512) || defined(V_IS_NEON)
#define V_REGISTERS 32
#else
#define V_REGISTERS 16
#endif

#define V_JOIN2(a, b) a##_##b
#define V_JOIN(a, b) V_JOIN2(a, b)
#define V_TEXT2(a) #a
#define V_TEXT(a) V_TEXT2(a)
/* The external name of this set's copy of a function. */
#define V_NAME(name) V_JOIN(rondo__cpu_##name, RONDO__CPU_TAG)

#define V_INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__)
#define V_UNROLL _Pragma("clang loop unroll(full)")
#else
#define V_UNROLL _Pragma("GCC unroll 32")
#endif

typedef float vf __attribute__((vector_size(4 * V_LANES)));
typedef int32_t vi __attribute__((vector_size(4 * V_LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * V_LANES))); /* where a sum of bits may wrap */
typedef float vf_loose __attribute__((vector_size(4 * V_LANES), aligned(4), may_alias));
typedef float v4f __attribute__((vector_size(16)));
typedef float v4f_loose __attribute__((vector_size(16), aligned(4), may_alias));

/* Keeps a vector in a register, where the compiler would rather read it from memory at each use. */
#if defined(V_IS_AVX512)
#define V_KEEP(a) __asm__("" : "+v"(a))
#elif defined(__x86_64__)
#define V_KEEP(a) __asm__("" : "+x"(a))
#elif defined(V_IS_NEON)
#define V_KEEP(a) __asm__("" : "+w"(a))
#else
#define V_KEEP(a) ((void)0)
#endif

V_INLINE vf v_load(const float *p) { return *(const vf_loose *)p; }

V_INLINE void v_store(float *p, vf a) { *(vf_loose *)p = a; }

V_INLINE vf v_set(float s) {
#if V_LANES == 16
    return (vf){s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s};
#elif V_LANES == 8
    return (vf){s, s, s, s, s, s, s, s};
#else
    return (vf){s, s, s, s};
#endif
}

V_INLINE vi v_seti(int32_t s) {
#if V_LANES == 16
    return (vi){s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s};
#elif V_LANES == 8
    return (vi){s, s, s, s, s, s, s, s};
#else
    return (vi){s, s, s, s};
#endif
}

#if defined(V_IS_AVX2)
/* Lane i of the mask for n lanes is bit i of n ones, as a sign. */
V_INLINE __m256i v_mask(size_t n) {
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    return _mm256_loadu_si256((const __m256i *)(const void *)(ones + 8 - n));
}
#endif

/* The first n lanes, 0 < n < lanes; the others are 0 and their memory is not touched. */
V_INLINE vf v_load_part(const float *p, size_t n) {
#if defined(V_IS_AVX512)
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
#elif defined(V_IS_AVX2)
    return (vf)_mm256_maskload_ps(p, v_mask(n));
#else
    vf a = v_set(0.0f);
    for (size_t i = 0; i < n; i++) a[i] = p[i];
    return a;
#endif
}

/* Lanes as bits, kept as the loads want them. */
#if defined(V_IS_AVX512)
typedef __mmask16 v_lanes;
#elif defined(V_IS_AVX2)
typedef __m256i v_lanes;
#else
typedef uint32_t v_lanes;
#endif

V_INLINE v_lanes v_lanes_of(uint32_t bits) {
#if defined(V_IS_AVX512)
    return (__mmask16)bits;
#elif defined(V_IS_AVX2)
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int32_t)bits), each), each);
#else
    return bits;
#endif
}

/* The lanes named; the others are 0 and their memory is not touched. */
V_INLINE vf v_load_lanes(const float *p, v_lanes lanes) {
#if defined(V_IS_AVX512)
    return (vf)_mm512_maskz_loadu_ps(lanes, p);
#elif defined(V_IS_AVX2)
    return (vf)_mm256_maskload_ps(p, lanes);
#else
    vf a = v_set(0.0f);
    for (size_t i = 0; i < V_LANES; i++) {
        if (lanes >> i & 1u) a[i] = p[i];
    }
    return a;
#endif
}

V_INLINE void v_store_part(float *p, vf a, size_t n) {
#if defined(V_IS_AVX512)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)a);
#elif defined(V_IS_AVX2)
    _mm256_maskstore_ps(p, v_mask(n), (__m256)a);
#else
    for (size_t i = 0; i < n; i++) p[i] = a[i];
#endif
}

/* a * b + c; one rounding where the processor has it. */
V_INLINE vf v_fma(vf a, vf b, vf c) {
#if defined(V_IS_AVX512)
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(V_IS_AVX2)
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(V_IS_NEON)
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

/* mask ? a : b, where a mask's lanes are all ones or all zeros. */
V_INLINE vf v_select(vi mask, vf a, vf b) {
#if defined(V_IS_AVX2)
    return (vf)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
#endif
}

V_INLINE vf v_max(vf a, vf b) {
#if defined(V_IS_AVX512)
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(V_IS_AVX2)
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(V_IS_SSE2)
    return (vf)_mm_max_ps((__m128)a, (__m128)b);
#else
    return v_select((vi)(a > b), a, b);
#endif
}

V_INLINE vf v_min(vf a, vf b) {
#if defined(V_IS_AVX512)
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(V_IS_AVX2)
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(V_IS_SSE2)
    return (vf)_mm_min_ps((__m128)a, (__m128)b);
#else
    return v_select((vi)(a < b), a, b);
#endif
}

V_INLINE vf v_sqrt(vf a) {
#if defined(V_IS_AVX512)
    return (vf)_mm512_sqrt_ps((__m512)a);
#elif defined(V_IS_AVX2)
    return (vf)_mm256_sqrt_ps((__m256)a);
#elif defined(V_IS_SSE2)
    return (vf)_mm_sqrt_ps((__m128)a);
#elif defined(V_IS_NEON)
    return (vf)vsqrtq_f32((float32x4_t)a);
#else
    for (size_t i = 0; i < V_LANES; i++) a[i] = __builtin_sqrtf(a[i]);
    return a;
#endif
}

V_INLINE vf v_abs(vf a) { return (vf)((vi)a & v_seti(0x7fffffff)); }

V_INLINE vi v_is_nan(vf a) { return (vi)(a != a); }

/* Negative becomes 0; NaN and -0 stay. */
V_INLINE vf v_relu(vf a) { return v_max(v_set(0.0f), a); }

V_INLINE float v_sum(vf a) {
    float part[V_LANES];
    memcpy(part, &a, sizeof part);
    for (size_t half = V_LANES / 2; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++) part[i] += part[i + half];
    }
    return part[0];
}

/* Four vectors of four, rows to columns. */
V_INLINE void v_turn4(v4f *a, v4f *b, v4f *c, v4f *d) {
    v4f p = __builtin_shufflevector(*a, *b, 0, 4, 1, 5), q = __builtin_shufflevector(*c, *d, 0, 4, 1, 5);
    v4f r = __builtin_shufflevector(*a, *b, 2, 6, 3, 7), s = __builtin_shufflevector(*c, *d, 2, 6, 3, 7);
    *a = __builtin_shufflevector(p, q, 0, 1, 4, 5);
    *b = __builtin_shufflevector(p, q, 2, 3, 6, 7);
    *c = __builtin_shufflevector(r, s, 0, 1, 4, 5);
    *d = __builtin_shufflevector(r, s, 2, 3, 6, 7);
}

#endif
