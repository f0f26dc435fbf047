/* SPDX-License-Identifier: Apache-2.0
 *
 * Gemm and MatMul against the reference on random shapes, for every kernel set that runs here. */
#include "compare_testing.h"

/* Sums of `depth` products of numbers below 4: the bound grows with the depth. */
static double product_bound(uint64_t depth) { return 1e-7 * (10.0 + (double)depth); }

static const char *const product_activations[] = {NULL, "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip"};

static void product_activation(compare *c) {
    const char *name = product_activations[compare_random(c, 6)];
    if (!name) return;
    compare_string(c, "rondo.activation", name);
    if (compare_random(c, 2)) compare_float(c, "rondo.alpha", -0.25f);
    if (compare_random(c, 2)) compare_float(c, "rondo.beta", 1.5f);
}

static int64_t product_size(compare *c) {
    static const int64_t picks[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 24, 31, 32, 33, 64, 100};
    return compare_random(c, 4) ? picks[compare_random(c, 17)] : 1 + (int64_t)compare_random(c, 130);
}

static void product_gemm_once(compare *c) {
    const int64_t m = product_size(c), n = product_size(c), k = product_size(c);
    const bool turn_a = compare_random(c, 4) == 0, turn_b = compare_random(c, 2);
    compare_begin(c, "Gemm");
    compare_in(c, RONDO_DTYPE_F32, 2, (int64_t[]){turn_a ? k : m, turn_a ? m : k}, compare_random(c, 8) == 0);
    compare_in(c, RONDO_DTYPE_F32, 2, (int64_t[]){turn_b ? n : k, turn_b ? k : n}, compare_random(c, 3) > 0);
    const bool constant = compare_random(c, 2);
    switch (compare_random(c, 6)) {
    case 0: compare_in(c, RONDO_DTYPE_F32, 1, (int64_t[]){n}, constant); break;
    case 1: compare_in(c, RONDO_DTYPE_F32, 2, (int64_t[]){1, n}, constant); break;
    case 2: compare_in(c, RONDO_DTYPE_F32, 2, (int64_t[]){m, 1}, constant); break;
    case 3: compare_in(c, RONDO_DTYPE_F32, 2, (int64_t[]){m, n}, constant); break;
    case 4: compare_in(c, RONDO_DTYPE_F32, 0, NULL, constant); break;
    default: break;
    }
    if (turn_a) compare_int(c, "transA", 1);
    if (turn_b) compare_int(c, "transB", 1);
    if (compare_random(c, 4) == 0) compare_float(c, "alpha", 0.5f);
    if (compare_random(c, 4) == 0) compare_float(c, "beta", compare_random(c, 2) ? 0.0f : -1.5f);
    product_activation(c);
    compare_out(c, RONDO_DTYPE_F32, 2, (int64_t[]){m, n});
    compare_run(c, product_bound((uint64_t)k));
    if (c->refused) rondo_test_fail(c->t, __FILE__, __LINE__, "Gemm was refused");
}

static void test_gemm(rondo_test *t) {
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (int i = 0; i < 500; i++) product_gemm_once(c);
        compare_clear(c);
    }
}

static void product_matmul_once(compare *c) {
    int64_t a[5], b[5], out[5];
    const int64_t m = product_size(c), n = product_size(c), k = 1 + product_size(c);
    const int32_t lead = (int32_t)compare_random(c, 3);
    int32_t a_rank = 0, b_rank = 0, rank = 0;
    const bool flat_b = compare_random(c, 2);
    for (int32_t d = 0; d < lead; d++) {
        const int64_t dim = 1 + (int64_t)compare_random(c, 3);
        const uint64_t how = compare_random(c, 3);
        out[rank++] = how == 2 && flat_b ? dim : dim;
        a[a_rank++] = how == 1 && !flat_b ? 1 : dim;
        if (!flat_b) b[b_rank++] = how == 2 ? 1 : dim;
    }
    const bool row = lead == 0 && compare_random(c, 5) == 0, column = flat_b && compare_random(c, 5) == 0;
    if (!row) a[a_rank++] = m;
    a[a_rank++] = k;
    b[b_rank++] = k;
    if (!column) b[b_rank++] = n;
    if (!row) out[rank++] = m;
    if (!column) out[rank++] = n;
    compare_begin(c, "MatMul");
    compare_in(c, RONDO_DTYPE_F32, a_rank, a, false);
    compare_in(c, RONDO_DTYPE_F32, b_rank, b, compare_random(c, 2));
    if (!column && compare_random(c, 2))
        compare_in(c, RONDO_DTYPE_F32, 1, (int64_t[]){compare_random(c, 3) ? n : 1}, compare_random(c, 2));
    product_activation(c);
    compare_out(c, RONDO_DTYPE_F32, rank, out);
    compare_run(c, product_bound((uint64_t)k));
    const bool empty = m == 0 || n == 0;
    if (c->refused && !empty) rondo_test_fail(c->t, __FILE__, __LINE__, "MatMul was refused");
}

static void test_matmul(rondo_test *t) {
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (int i = 0; i < 500; i++) product_matmul_once(c);
        compare_clear(c);
    }
}

/* NaN and infinities pass through a product: depth 1, so that no order of sums can matter. */
static void test_special(rondo_test *t) {
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        c->special = true;
        for (int i = 0; i < 60; i++) {
            const int64_t m = 1 + (int64_t)compare_random(c, 6), n = 1 + (int64_t)compare_random(c, 40);
            compare_begin(c, "Gemm");
            compare_in(c, RONDO_DTYPE_F32, 2, (int64_t[]){m, 1}, false);
            compare_in(c, RONDO_DTYPE_F32, 2, (int64_t[]){1, n}, compare_random(c, 2));
            if (i % 2) compare_string(c, "rondo.activation", "Relu");
            compare_out(c, RONDO_DTYPE_F32, 2, (int64_t[]){m, n});
            compare_run(c, 1e-7);
            T_TRUE(t, !c->refused);
        }
        compare_clear(c);
    }
}

/* Large enough for every block width, several row tiles and a long depth. */
static void test_large(rondo_test *t) {
    static const int64_t sizes[][3] = {{1, 512, 256}, {1, 32, 1536}, {4, 258, 256}, {13, 200, 300}, {64, 129, 65}};
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
            for (int constant = 0; constant < 2; constant++) {
                compare_begin(c, "Gemm");
                compare_in(c, RONDO_DTYPE_F32, 2, (int64_t[]){m, k}, false);
                compare_in(c, RONDO_DTYPE_F32, 2, (int64_t[]){n, k}, constant);
                compare_in(c, RONDO_DTYPE_F32, 1, (int64_t[]){n}, constant);
                compare_int(c, "transB", 1);
                compare_out(c, RONDO_DTYPE_F32, 2, (int64_t[]){m, n});
                compare_run(c, product_bound((uint64_t)k));
                T_TRUE(t, !c->refused);
            }
        }
        compare_clear(c);
    }
}

RONDO_TEST_MAIN(T_PLAIN(test_gemm), T_PLAIN(test_matmul), T_PLAIN(test_special), T_PLAIN(test_large))
