/* SPDX-License-Identifier: Apache-2.0
 *
 * Conv and LSTM against the reference on random shapes, for every kernel set that runs here. */
#include "compare_testing.h"

static double conv_bound(int64_t depth) { return 1e-7 * (10.0 + (double)depth); }

static int64_t conv_reach(int64_t kernel, int64_t spread) { return (kernel - 1) * spread + 1; }

typedef struct conv_case {
    int64_t batch, groups, channels, outputs; /* of one group */
    int64_t size[2], kernel[2], step[2], spread[2], before[2], after[2];
} conv_case;

static void conv_once(compare *c, const conv_case *k, uint32_t dims, bool constant) {
    int64_t x[4] = {k->batch, k->groups * k->channels}, w[4] = {k->groups * k->outputs, k->channels};
    int64_t y[4] = {k->batch, k->groups * k->outputs}, pads[4];
    int64_t depth = k->channels;
    for (uint32_t i = 0; i < dims; i++) {
        const int64_t padded = k->size[i] + k->before[i] + k->after[i], reach = conv_reach(k->kernel[i], k->spread[i]);
        if (padded < reach) return;
        x[2 + i] = k->size[i];
        w[2 + i] = k->kernel[i];
        y[2 + i] = (padded - reach) / k->step[i] + 1;
        pads[i] = k->before[i];
        pads[dims + i] = k->after[i];
        depth *= k->kernel[i];
    }
    compare_begin(c, "Conv");
    compare_in(c, RONDO_DTYPE_F32, 2 + (int32_t)dims, x, false);
    compare_in(c, RONDO_DTYPE_F32, 2 + (int32_t)dims, w, constant);
    if (compare_random(c, 3)) compare_in(c, RONDO_DTYPE_F32, 1, w, compare_random(c, 2));
    compare_int(c, "group", k->groups);
    compare_ints(c, "strides", dims, k->step);
    compare_ints(c, "dilations", dims, k->spread);
    compare_ints(c, "pads", 2 * dims, pads);
    static const char *const activations[] = {"Relu", "Sigmoid", "LeakyRelu", "Clip", "Tanh"};
    const uint64_t pick = compare_random(c, 8);
    if (pick < 5) compare_string(c, "rondo.activation", activations[pick]);
    compare_out(c, RONDO_DTYPE_F32, 2 + (int32_t)dims, y);
    compare_run(c, conv_bound(depth));
    if (c->refused) rondo_test_fail(c->t, __FILE__, __LINE__, "Conv was refused");
}

static void test_conv(rondo_test *t) {
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (int i = 0; i < 700; i++) {
            conv_case k = {.batch = 1 + (int64_t)compare_random(c, 2),
                           .groups = 1,
                           .channels = 1 + (int64_t)compare_random(c, 9),
                           .outputs = 1 + (int64_t)compare_random(c, compare_random(c, 3) ? 10 : 70)};
            if (compare_random(c, 4) == 0) k.groups = 1 + (int64_t)compare_random(c, 3);
            if (compare_random(c, 6) == 0) k.channels = k.outputs = 1; /* depthwise */
            const uint32_t dims = compare_random(c, 4) ? 1 : 2;
            for (uint32_t d = 0; d < dims; d++) {
                k.size[d] = 1 + (int64_t)compare_random(c, dims == 1 && compare_random(c, 2) ? 80 : 9);
                k.kernel[d] = 1 + (int64_t)compare_random(c, compare_random(c, 5) ? 4 : 20);
                k.step[d] = 1 + (int64_t)compare_random(c, 4);
                k.spread[d] = 1 + (int64_t)compare_random(c, 3);
                k.before[d] = (int64_t)compare_random(c, 4);
                k.after[d] = (int64_t)compare_random(c, 4);
            }
            conv_once(c, &k, dims, compare_random(c, 4) > 0);
        }
        compare_clear(c);
    }
}

/* Rows as long as the input's, in two dims and as a line that goes down: the direct kernel, through all its tiles, edges
 * on each side, kernels wider than the input, and weights that are read for a group of columns at a time. */
static void test_direct(rondo_test *t) {
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (int i = 0; i < 400; i++) {
            conv_case k = {.batch = 1 + (int64_t)compare_random(c, 2),
                           .groups = compare_random(c, 4) ? 1 : 1 + (int64_t)compare_random(c, 5),
                           .channels = 1 + (int64_t)compare_random(c, 9),
                           .outputs = 1 + (int64_t)compare_random(c, 20),
                           .step = {1, 1}};
            const bool down = compare_random(c, 4) == 0;
            for (uint32_t d = 0; d < 2; d++) {
                k.size[d] = down && d ? 1 : 1 + (int64_t)compare_random(c, 3) * (int64_t)compare_random(c, 20);
                k.kernel[d] = down && d ? 1 : 1 + (int64_t)compare_random(c, 5);
                k.spread[d] = 1 + (int64_t)compare_random(c, 2);
                const int64_t pad = (k.kernel[d] - 1) * k.spread[d];
                k.before[d] = d == 1 ? (int64_t)compare_random(c, (uint64_t)pad + 1) : (int64_t)compare_random(c, 3);
                k.after[d] = d == 1 ? pad - k.before[d] : (int64_t)compare_random(c, 3);
            }
            conv_once(c, &k, 2, true);
        }
        static const conv_case large = {1, 1, 150, 260, {97, 1}, {4, 1}, {1, 1}, {1, 1}, {1, 0}, {0, 0}};
        conv_once(c, &large, 2, true);
        compare_clear(c);
    }
}

/* The layers of a speech detector: few columns, taps that only see padding. */
static void test_few_columns(rondo_test *t) {
    static const conv_case cases[] = {
        {1, 1, 1, 258, {640}, {256}, {128}, {1}, {0}, {0}}, {1, 1, 129, 128, {4}, {3}, {1}, {1}, {1}, {1}},
        {1, 1, 128, 64, {4}, {3}, {2}, {1}, {1}, {1}},      {1, 1, 64, 64, {2}, {3}, {2}, {1}, {1}, {1}},
        {1, 1, 64, 128, {1}, {3}, {1}, {1}, {1}, {1}},      {2, 1, 128, 1, {1}, {1}, {1}, {1}, {0}, {0}},
        {1, 1, 5, 40, {3}, {7}, {1}, {1}, {3}, {3}},        {1, 1, 3, 33, {2}, {3}, {5}, {4}, {9}, {9}},
    };
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            for (int again = 0; again < 4; again++) conv_once(c, &cases[i], 1, true);
        }
        compare_clear(c);
    }
}

static void test_auto_pad(rondo_test *t) {
    static const char *const pads[] = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (int i = 0; i < 60; i++) {
            const int64_t size = 5 + (int64_t)compare_random(c, 30), kernel = 1 + (int64_t)compare_random(c, 5);
            const int64_t step = 1 + (int64_t)compare_random(c, 3);
            const char *pad = pads[i % 3];
            compare_begin(c, "Conv");
            compare_in(c, RONDO_DTYPE_F32, 3, (int64_t[]){1, 3, size}, false);
            compare_in(c, RONDO_DTYPE_F32, 3, (int64_t[]){17, 3, kernel}, i % 2);
            compare_string(c, "auto_pad", pad);
            compare_ints(c, "strides", 1, &step);
            const int64_t out = i % 3 == 2 ? (size - kernel) / step + 1 : (size + step - 1) / step;
            compare_out(c, RONDO_DTYPE_F32, 3, (int64_t[]){1, 17, out});
            compare_run(c, conv_bound(3 * kernel));
            T_TRUE(t, !c->refused);
        }
        compare_clear(c);
    }
}

/* Weights that are not finite are left to the reference: padding would turn them into NaN. */
static void test_infinite_weights(rondo_test *t) {
    compare *c = compare_start(t, "base");
    compare_begin(c, "Conv");
    compare_in(c, RONDO_DTYPE_F32, 3, (int64_t[]){1, 1, 4}, false);
    float *w = compare_in(c, RONDO_DTYPE_F32, 3, (int64_t[]){1, 1, 3}, true);
    w[1] = __builtin_inff();
    compare_ints(c, "pads", 2, (int64_t[]){1, 1});
    compare_out(c, RONDO_DTYPE_F32, 3, (int64_t[]){1, 1, 4});
    compare_run(c, 1e-6);
    T_TRUE(t, c->refused);
}

static void lstm_once(compare *c) {
    const int64_t sequence = 1 + (int64_t)compare_random(c, 4), batch = 1 + (int64_t)compare_random(c, 3);
    const int64_t input = 1 + (int64_t)compare_random(c, 20), hidden = 1 + (int64_t)compare_random(c, 50);
    compare_begin(c, "LSTM");
    compare_in(c, RONDO_DTYPE_F32, 3, (int64_t[]){sequence, batch, input}, false);
    compare_in(c, RONDO_DTYPE_F32, 3, (int64_t[]){1, 4 * hidden, input}, true);
    compare_in(c, RONDO_DTYPE_F32, 3, (int64_t[]){1, 4 * hidden, hidden}, true);
    const uint64_t shape = compare_random(c, 4);
    if (shape > 0) {
        if (compare_random(c, 3)) {
            compare_in(c, RONDO_DTYPE_F32, 2, (int64_t[]){1, 8 * hidden}, true);
        } else {
            compare_in_absent(c);
        }
    }
    if (shape > 1) {
        compare_in_absent(c);
        compare_in(c, RONDO_DTYPE_F32, 3, (int64_t[]){1, batch, hidden}, false);
    }
    if (shape > 2) compare_in(c, RONDO_DTYPE_F32, 3, (int64_t[]){1, batch, hidden}, false);
    compare_int(c, "hidden_size", hidden);
    const int64_t y[] = {sequence, 1, batch, hidden};
    const uint64_t wanted = 1 + compare_random(c, 7);
    if (wanted & 1u) {
        compare_out(c, RONDO_DTYPE_F32, 4, y);
    } else {
        c->request.output_count++;
    }
    if (wanted & 2u) {
        compare_out(c, RONDO_DTYPE_F32, 3, y + 1);
    } else {
        c->request.output_count++;
    }
    if (wanted & 4u) compare_out(c, RONDO_DTYPE_F32, 3, y + 1);
    compare_run(c, 4.0 * conv_bound(input + hidden));
    if (c->refused) rondo_test_fail(c->t, __FILE__, __LINE__, "LSTM was refused");
}

static void test_lstm(rondo_test *t) {
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (int i = 0; i < 150; i++) lstm_once(c);
        compare_clear(c);
    }
}

RONDO_TEST_MAIN(T_PLAIN(test_conv), T_PLAIN(test_direct), T_PLAIN(test_few_columns), T_PLAIN(test_auto_pad),
                T_PLAIN(test_infinite_weights), T_PLAIN(test_lstm))
