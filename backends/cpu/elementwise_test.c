/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise strips against the C library's double functions, in units in the last place over the whole range of
 * float32, and the operators against the reference under broadcast. */
#include "compare_testing.h"

/* Distance in units in the last place of the exact value. */
static double elementwise_ulp(float got, double want) {
    const float near = (float)want;
    if (got == near || (got != got && want != want)) return 0.0;
    if (got != got || want != want || __builtin_isinf(got)) return 1e9;
    if (__builtin_isinf(near)) return (double)got == (double)__FLT_MAX__ ? 1.0 : 1e9;
    int exponent;
    (void)frexp(fabs((double)near) < 0x1p-126 ? 0x1p-126 : (double)near, &exponent);
    return fabs((double)got - want) / ldexp(1.0, exponent - 24);
}

static double elementwise_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

/* Every 1499th float: the step is odd and prime, so all exponents and endings of the mantissa come by; then the floats
 * around the places where something changes. */
static uint32_t elementwise_next(uint64_t *at) {
    static const float edges[] = {0.0f,
                                  -0.0f,
                                  1.0f,
                                  -1.0f,
                                  0.625f,
                                  -0.625f,
                                  88.72284f,
                                  -87.33655f,
                                  -103.97208f,
                                  89.0f,
                                  -104.0f,
                                  0x1p-126f,
                                  -0x1p-126f,
                                  0x1p-149f,
                                  0x1.fffffep127f,
                                  -0x1.fffffep127f,
                                  0.70710678f,
                                  1.41421356f,
                                  __builtin_inff(),
                                  -__builtin_inff(),
                                  __builtin_nanf("")};
    enum { EDGES = sizeof edges / sizeof *edges, AROUND = 4096 };
    uint32_t bits;
    if (*at <= UINT32_MAX) {
        bits = (uint32_t)*at;
        *at += 1499;
        if (*at > UINT32_MAX) *at = (uint64_t)1 << 33;
        return bits;
    }
    const uint64_t n = *at - ((uint64_t)1 << 33);
    memcpy(&bits, &edges[n / AROUND], sizeof bits);
    *at = n + 1 < (uint64_t)EDGES * AROUND ? *at + 1 : UINT64_MAX;
    return bits + (uint32_t)(n % AROUND) - AROUND / 2;
}

static void elementwise_sweep(rondo_test *t, const rondo__cpu_set *set, uint32_t unary, double (*exact)(double),
                              double bound) {
    enum { BATCH = 1023 };
    static float x[BATCH], y[BATCH];
    const float parameter[2] = {0.0f, 0.0f};
    double worst = 0.0;
    for (uint64_t at = 0; at != UINT64_MAX;) {
        size_t n = 0;
        for (; n < BATCH && at != UINT64_MAX; n++) {
            const uint32_t bits = elementwise_next(&at);
            memcpy(&x[n], &bits, sizeof bits);
        }
        set->unary[unary](x, y, n, parameter);
        for (size_t i = 0; i < n; i++) {
            const double ulp = elementwise_ulp(y[i], exact((double)x[i]));
            if (ulp > worst) worst = ulp;
            if (ulp > bound)
                rondo_test_fail(t, __FILE__, __LINE__, "unary %u of set %s at %a: %a is %g ulp from %a", unary,
                                set->name, (double)x[i], (double)y[i], ulp, exact((double)x[i]));
        }
    }
    if (getenv("RONDO_TEST_VERBOSE")) fprintf(stderr, "set %s unary %u: worst %.3f ulp\n", set->name, unary, worst);
}

static void test_ulp(rondo_test *t) {
    for (uint32_t s = 0; rondo__cpu_set_at(s); s++) {
        const rondo__cpu_set *set = rondo__cpu_set_at(s);
        if (!rondo__cpu_set_runs(set)) continue;
        elementwise_sweep(t, set, RONDO__CPU_EXP, exp, 2.0);
        elementwise_sweep(t, set, RONDO__CPU_LOG, log, 2.0);
        elementwise_sweep(t, set, RONDO__CPU_TANH, tanh, 4.0);
        elementwise_sweep(t, set, RONDO__CPU_SIGMOID, elementwise_sigmoid, 4.0);
        elementwise_sweep(t, set, RONDO__CPU_SQRT, sqrt, 0.5);
    }
}

static void test_unary(rondo_test *t) {
    static const char *const names[] = {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "Exp",
                                        "Log",  "Sqrt",      "Neg",     "Abs",  "Reciprocal"};
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (int i = 0; i < 400; i++) {
            c->special = i % 2;
            c->signs = true;
            const int64_t dims[3] = {(int64_t)compare_random(c, 4), 1 + (int64_t)compare_random(c, 20),
                                     1 + (int64_t)compare_random(c, 5)};
            const int32_t rank = (int32_t)compare_random(c, 4);
            compare_begin(c, names[i % 10]);
            compare_in(c, RONDO_DTYPE_F32, rank, dims, false);
            if (i % 10 == 1 && compare_random(c, 2)) compare_float(c, "alpha", 0.2f);
            compare_out(c, RONDO_DTYPE_F32, rank, dims);
            compare_run(c, 6e-7);
            T_TRUE(t, !c->refused);
        }
        compare_clear(c);
    }
}

static void test_clip_and_pow(rondo_test *t) {
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (int i = 0; i < 200; i++) {
            const int64_t count = (int64_t)compare_random(c, 40);
            compare_begin(c, i % 2 ? "Clip" : "Pow");
            c->special = c->signs = true;
            compare_in(c, RONDO_DTYPE_F32, 1, &count, false);
            c->special = false;
            float *number = compare_in(c, RONDO_DTYPE_F32, 0, NULL, true);
            if (i % 2 == 0) *number = compare_random(c, 2) ? 2.0f : 0.5f;
            if (i % 2 == 1 && compare_random(c, 2)) compare_in(c, RONDO_DTYPE_F32, 0, NULL, true);
            compare_out(c, RONDO_DTYPE_F32, 1, &count);
            compare_run(c, 3e-7);
            T_TRUE(t, !c->refused);
        }
        compare_clear(c);
    }
}

/* Shapes a and b that broadcast to out, of random rank. */
static int32_t elementwise_shapes(compare *c, int64_t *a, int64_t *b, int64_t *out, int32_t *a_from, int32_t *b_from) {
    const int32_t rank = (int32_t)compare_random(c, 6);
    for (int32_t d = 0; d < rank; d++) {
        out[d] = (int64_t)(compare_random(c, 20) ? 1 + compare_random(c, d == rank - 1 ? 20 : 4) : 0);
        const uint64_t how = compare_random(c, 5);
        a[d] = how == 0 ? 1 : out[d];
        b[d] = how == 1 ? 1 : out[d];
        if (how == 2) out[d] = a[d] = b[d] = 1;
    }
    *a_from = *b_from = 0;
    const uint64_t which = compare_random(c, 3);
    int32_t *from = which == 0 ? a_from : b_from;
    if (which < 2 && rank > 0) *from = (int32_t)compare_random(c, (uint64_t)rank + 1);
    for (int32_t d = 0; d < rank; d++) {
        if (d < *from && (which == 0 ? b : a)[d] == 1) out[d] = 1;
    }
    return rank;
}

static void test_binary(rondo_test *t) {
    static const char *const names[] = {"Add", "Sub", "Mul", "Div", "Max", "Min"};
    static const char *const activations[] = {"Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip"};
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (int i = 0; i < 1200; i++) {
            int64_t a[6], b[6], out[6];
            int32_t a_from, b_from;
            const int32_t rank = elementwise_shapes(c, a, b, out, &a_from, &b_from);
            c->special = compare_random(c, 2);
            c->signs = true;
            compare_begin(c, names[i % 6]);
            compare_in(c, RONDO_DTYPE_F32, rank - a_from, a + a_from, false);
            compare_in(c, RONDO_DTYPE_F32, rank - b_from, b + b_from, false);
            if (i % 6 == 0 && compare_random(c, 2)) {
                const uint64_t which = compare_random(c, 5);
                compare_string(c, "rondo.activation", activations[which]);
                if (which == 4) compare_float(c, "rondo.alpha", -0.5f);
                if (which == 4) compare_float(c, "rondo.beta", 0.5f);
            }
            compare_out(c, RONDO_DTYPE_F32, rank, out);
            compare_run(c, 6e-7);
            T_TRUE(t, !c->refused);
        }
        compare_clear(c);
    }
}

/* One strip longer than the chunk after which a fused activation runs. */
static void test_long_activated(rondo_test *t) {
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (int kind = 0; kind < 3; kind++) {
            const int64_t count = 5003, one = 1;
            compare_begin(c, "Add");
            compare_in(c, RONDO_DTYPE_F32, 1, kind == 1 ? &one : &count, false);
            compare_in(c, RONDO_DTYPE_F32, 1, kind == 2 ? &one : &count, false);
            compare_string(c, "rondo.activation", "Tanh");
            compare_out(c, RONDO_DTYPE_F32, 1, &count);
            compare_run(c, 6e-7);
            T_TRUE(t, !c->refused);
        }
        compare_clear(c);
    }
}

/* Types without a fast kernel are refused, not run wrongly. */
/* The strips that take numbers of their own, and Equal under broadcast. */
static void test_hard_and_equal(rondo_test *t) {
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (int i = 0; i < 200; i++) {
            const int64_t dims[2] = {1 + (int64_t)compare_random(c, 5), 1 + (int64_t)compare_random(c, 40)};
            const uint64_t which = compare_random(c, 3);
            compare_begin(c, which == 0 ? "HardSigmoid" : which == 1 ? "HardSwish" : "Gelu");
            compare_in(c, RONDO_DTYPE_F32, 2, dims, false);
            for (size_t at = 0; at < c->in[0].bytes / 4; at++) ((float *)(void *)c->in[0].data)[at] *= 4.0f;
            if (which == 0 && compare_random(c, 2)) {
                compare_float(c, "alpha", 0.3f);
                compare_float(c, "beta", 0.25f);
            }
            if (which == 2) compare_string(c, "approximate", "tanh");
            compare_out(c, RONDO_DTYPE_F32, 2, dims);
            compare_run(c, 1e-6);
            if (c->refused) rondo_test_fail(c->t, __FILE__, __LINE__, "refused");
            compare_begin(c, "Equal");
            for (int side = 0; side < 2; side++) {
                const int64_t own[2] = {compare_random(c, 2) ? 1 : dims[0], compare_random(c, 2) ? 1 : dims[1]};
                const bool all = side == 1 && (c->in[0].dims[0] != dims[0] || c->in[0].dims[1] != dims[1]);
                int32_t *number = compare_in(c, RONDO_DTYPE_I32, 2, all ? dims : own, false);
                for (size_t at = 0; at < c->in[side].bytes / 4; at++) number[at] = (int32_t)compare_random(c, 3);
            }
            int64_t out[2];
            for (int d = 0; d < 2; d++)
                out[d] = c->in[0].dims[d] > c->in[1].dims[d] ? c->in[0].dims[d] : c->in[1].dims[d];
            compare_out(c, RONDO_DTYPE_BOOL, 2, out);
            compare_run(c, 0.0);
            if (c->refused) rondo_test_fail(c->t, __FILE__, __LINE__, "refused");
        }
        compare_clear(c);
    }
}

/* Windows that overlap, leave numbers over, or are the whole plane. */
static void test_pools(rondo_test *t) {
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (int i = 0; i < 300; i++) {
            int64_t in[4] = {1 + (int64_t)compare_random(c, 2), 1 + (int64_t)compare_random(c, 4)},
                    out[4] = {in[0], in[1], 1, 1};
            int64_t kernel[2], step[2];
            const bool pairs = compare_random(c, 2);
            for (int d = 0; d < 2; d++) {
                kernel[d] = pairs && d ? 2 : 1 + (int64_t)compare_random(c, 3);
                step[d] = pairs && d ? 2 : 1 + (int64_t)compare_random(c, 3);
                in[2 + d] = kernel[d] + (int64_t)compare_random(c, 80);
            }
            const uint64_t which = compare_random(c, 4);
            compare_begin(c, which == 0 ? "GlobalAveragePool" : which == 1 ? "GlobalMaxPool" : "MaxPool");
            compare_in(c, RONDO_DTYPE_F32, 4, in, false);
            for (int d = 0; which > 1 && d < 2; d++) out[2 + d] = (in[2 + d] - kernel[d]) / step[d] + 1;
            if (which > 1) {
                compare_ints(c, "kernel_shape", 2, kernel);
                compare_ints(c, "strides", 2, step);
            }
            compare_out(c, RONDO_DTYPE_F32, 4, out);
            compare_run(c, which == 0 ? 1e-5 : 0.0);
            if (c->refused) rondo_test_fail(c->t, __FILE__, __LINE__, "refused");
        }
        compare_clear(c);
    }
}

static void test_refusals(rondo_test *t) {
    compare *c = compare_start(t, "base");
    const int64_t dims[2] = {2, 3}, other[2] = {3, 3};
    compare_begin(c, "Add");
    compare_in(c, RONDO_DTYPE_I64, 2, dims, false);
    compare_in(c, RONDO_DTYPE_I64, 2, dims, false);
    compare_out(c, RONDO_DTYPE_I64, 2, dims);
    rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
    T_FAILS(t, c->cpu.table->find(c->cpu.self, &c->request, &facts), UNSUPPORTED, "Add (node): only float32");
    compare_begin(c, "Mul");
    compare_in(c, RONDO_DTYPE_F32, 2, dims, false);
    compare_in(c, RONDO_DTYPE_F32, 2, other, false);
    compare_out(c, RONDO_DTYPE_F32, 2, other);
    T_FAILS(t, c->cpu.table->find(c->cpu.self, &c->request, &facts), UNSUPPORTED, "do not broadcast");
    compare_begin(c, "NoSuchThing");
    T_FAILS(t, c->cpu.table->find(c->cpu.self, &c->request, &facts), UNSUPPORTED, "NoSuchThing");
}

RONDO_TEST_MAIN(T_PLAIN(test_ulp), T_PLAIN(test_unary), T_PLAIN(test_clip_and_pow), T_PLAIN(test_binary),
                T_PLAIN(test_long_activated), T_PLAIN(test_hard_and_equal), T_PLAIN(test_pools), T_PLAIN(test_refusals))
