/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise strips: one vector after another, then the rest with a partial one. */
#include "kernels.h"
#include "vmath.h"

#define UNARY_STRIP(name, expression)                                                          \
    static void unary_##name(const float *x, float *y, size_t count, const float *parameter) { \
        const vf p = v_set(parameter[0]), q = v_set(parameter[1]);                             \
        (void)p, (void)q;                                                                      \
        size_t i = 0;                                                                          \
        for (; i + V_LANES <= count; i += V_LANES) {                                           \
            vf a = v_load(x + i);                                                              \
            v_store(y + i, expression);                                                        \
        }                                                                                      \
        if (i < count) {                                                                       \
            vf a = v_load_part(x + i, count - i);                                              \
            v_store_part(y + i, expression, count - i);                                        \
        }                                                                                      \
    }

/* Pow with exponent 1/2: as Sqrt, but +0 for -0 and +infinity for -infinity. */
V_INLINE vf elementwise_root(vf a) {
    const vf infinite = v_set(__builtin_inff());
    return v_select((vi)(a == -infinite), infinite, v_sqrt(a) + v_set(0.0f));
}

/* x (1 + tanh(u)) / 2 is x times the logistic function of 2u; u = sqrt(2 / pi) (x + 0.044715 x^3). */
V_INLINE vf elementwise_gelu(vf a) {
    const vf once = v_set(0x1.988454p0f), cube = v_set(0x1.2444f2p-4f); /* 2 sqrt(2 / pi), and that times 0.044715 */
    return a * v_sigmoid(a * v_fma(a * a, cube, once));
}

V_INLINE vf elementwise_max(vf a, vf b) { return v_select(v_is_nan(a), a, v_max(a, b)); }

V_INLINE vf elementwise_min(vf a, vf b) { return v_select(v_is_nan(a), a, v_min(a, b)); }

UNARY_STRIP(relu, v_relu(a))
UNARY_STRIP(leaky, v_finish(RONDO__CPU_FINISH_LEAKY, a, p, q))
UNARY_STRIP(sigmoid, v_sigmoid(a))
UNARY_STRIP(tanh, v_tanh(a))
UNARY_STRIP(exp, v_exp(a))
UNARY_STRIP(log, v_log(a))
UNARY_STRIP(sqrt, v_sqrt(a))
UNARY_STRIP(neg, -a)
UNARY_STRIP(abs, v_abs(a))
UNARY_STRIP(reciprocal, v_set(1.0f) / a)
UNARY_STRIP(clip, v_min(q, v_max(p, a)))
UNARY_STRIP(square, a *a)
UNARY_STRIP(root, elementwise_root(a))
UNARY_STRIP(hard_sigmoid, v_finish(RONDO__CPU_FINISH_HARD_SIGMOID, a, p, q))
UNARY_STRIP(hard_swish, v_finish(RONDO__CPU_FINISH_HARD_SWISH, a, p, q))
UNARY_STRIP(gelu_tanh, elementwise_gelu(a))

#define BINARY_LOOP(name, count, load_a, load_b, part_a, part_b, expression) \
    size_t i = 0;                                                            \
    for (; i + V_LANES <= count; i += V_LANES) {                             \
        vf a = load_a, b = load_b;                                           \
        v_store(y + i, expression);                                          \
    }                                                                        \
    if (i < count) {                                                         \
        vf a = part_a, b = part_b;                                           \
        v_store_part(y + i, expression, count - i);                          \
    }

#define BINARY_STRIPS(name, expression)                                                              \
    static void binary_##name(const float *x, const float *z, float *y, size_t count) {              \
        BINARY_LOOP(name, count, v_load(x + i), v_load(z + i), v_load_part(x + i, count - i),        \
                    v_load_part(z + i, count - i), expression)                                       \
    }                                                                                                \
    static void binary_##name##_scalar_b(const float *x, const float *z, float *y, size_t count) {   \
        const vf one = v_set(*z);                                                                    \
        BINARY_LOOP(name, count, v_load(x + i), one, v_load_part(x + i, count - i), one, expression) \
    }                                                                                                \
    static void binary_##name##_scalar_a(const float *x, const float *z, float *y, size_t count) {   \
        const vf one = v_set(*x);                                                                    \
        BINARY_LOOP(name, count, one, v_load(z + i), one, v_load_part(z + i, count - i), expression) \
    }

BINARY_STRIPS(add, a + b)
BINARY_STRIPS(sub, a - b)
BINARY_STRIPS(mul, a *b)
BINARY_STRIPS(div, a / b)
BINARY_STRIPS(max, elementwise_max(a, b))
BINARY_STRIPS(min, elementwise_min(a, b))

const rondo__cpu_unary_strip V_NAME(unary_strips)[RONDO__CPU_UNARY_COUNT] = {
#define RONDO_X(id, name) unary_##name,
    RONDO__CPU_UNARIES(RONDO_X)
#undef RONDO_X
};

const rondo__cpu_binary_strip V_NAME(binary_strips)[RONDO__CPU_BINARY_COUNT][RONDO__CPU_KINDS] = {
#define RONDO_X(id, name) {binary_##name, binary_##name##_scalar_b, binary_##name##_scalar_a},
    RONDO__CPU_BINARIES(RONDO_X)
#undef RONDO_X
};
