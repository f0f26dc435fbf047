/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers: published vectors, the arithmetic done another way, statistics of large fills, and that captures and
 * replays take of a generator what eager calls would. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/graph_testing.h"

/* ------------------------------------------------------------------------------------------------- the algorithm */

/* Philox4x32-10 by 128-bit products and a table of round keys, any counter and key. */
static void philox_model(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t keys[10][2], x[4];
    for (uint32_t r = 0; r < 10; r++) {
        keys[r][0] = key[0] + r * 2654435769u;
        keys[r][1] = key[1] + r * 3144134277u;
    }
    memcpy(x, counter, sizeof x);
    for (uint32_t r = 0; r < 10; r++) {
        unsigned __int128 left = (unsigned __int128)3528531795u * x[0], right = (unsigned __int128)3449720151u * x[2];
        uint32_t y[4] = {(uint32_t)(right >> 32) ^ x[1] ^ keys[r][0], (uint32_t)right,
                         (uint32_t)(left >> 32) ^ x[3] ^ keys[r][1], (uint32_t)left};
        memcpy(x, y, sizeof x);
    }
    memcpy(out, x, sizeof x);
}

/* Number n of the seed's row. */
static uint32_t number_of(uint64_t seed, uint64_t n) {
    const uint32_t counter[4] = {(uint32_t)(n / 4), (uint32_t)(n / 4 >> 32), 0, 0};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t out[4];
    philox_model(counter, key, out);
    return out[n % 4];
}

/* The three vectors that Random123 publishes for philox4x32, 10 rounds (kat_vectors). The second and third have counters
 * of more than 64 bits, which a fill never reaches: the model is held to them, and the code to the model. */
static void test_published_vectors(rondo_test *t) {
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    uint32_t out[4];
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        philox_model(vectors[i].counter, vectors[i].key, out);
        T_EQ(t, memcmp(out, vectors[i].out, sizeof out), 0);
    }
    rondo__rng_philox(0, 0, out);
    T_EQ(t, memcmp(out, vectors[0].out, sizeof out), 0);
    for (int i = 0; i < 10000; i++) {
        uint64_t block = rondo_test_random(t) >> (i % 64), seed = rondo_test_random(t);
        rondo__rng_philox(block, seed, out);
        const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), 0, 0};
        const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
        uint32_t want[4];
        philox_model(counter, key, want);
        T_EQ(t, memcmp(out, want, sizeof out), 0);
    }
}

/* ----------------------------------------------------------------------------------------------------- the fixture */

typedef struct random_fixture {
    graph_fixture f;
    rondo_generator *generator;
    rondo_graph *graph;
    void *out;
} random_fixture;

#define RANDOM_BYTES 4096u
#define RANDOM_SEED UINT64_C(0x123456789abcdef0)

static void random_close(random_fixture *r) {
    rondo_graph_release(r->graph);
    rondo_generator_release(r->generator);
    if (r->out) rondo_status_release(rondo_memory_free(r->f.device, r->out));
}

static void random_open(rondo_test *t, random_fixture *r, const char *device) {
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    gt_open(t, &r->f, device);
    r->generator = NULL;
    r->graph = NULL;
    r->out = NULL;
    T_DEFER(t, random_close, r);
    options.name = "g";
    T_OK(t, rondo_generator_create(r->f.device, RANDOM_SEED, &r->generator));
    T_OK(t, rondo_graph_create(r->f.device, &options, &r->graph));
    T_OK(t, rondo_memory_allocate(r->f.device, RANDOM_BYTES, &r->out));
}

static rondo_status fill(random_fixture *r, rondo_distribution distribution, uint64_t at, uint64_t count, float a,
                         float b) {
    return rondo_random_fill(r->f.stream, r->generator, distribution, (char *)r->out + at, count, a, b);
}

static uint64_t offset_of(random_fixture *r) {
    uint64_t offset = 0;
    T_OK(r->f.t, rondo_generator_get_offset(r->generator, &offset));
    return offset;
}

/* `count` bits at byte `at` are the numbers from `first` on. */
static void expect_bits(random_fixture *r, uint64_t seed, uint64_t at, uint64_t count, uint64_t first) {
    const uint32_t *out = (const uint32_t *)(void *)((char *)r->out + at);
    for (uint64_t i = 0; i < count; i++) T_EQ(r->f.t, out[i], number_of(seed, first + i));
}

/* ------------------------------------------------------------------------------------------------- distributions */

static double unit_of(uint64_t n) { return (double)number_of(RANDOM_SEED, n) / 4294967296.0; }

static void test_eager_fills(rondo_test *t, const char *device) {
    random_fixture r;
    uint64_t seed;
    random_open(t, &r, device);
    T_OK(t, rondo_generator_get_seed(r.generator, &seed));
    T_TRUE(t, seed == RANDOM_SEED);
    T_OK(t, rondo_stream_fill(r.f.stream, r.out, 0xee, RANDOM_BYTES));
    T_OK(t, fill(&r, RONDO_DISTRIBUTION_BITS, 0, 5, 0, 0)); /* 5 take 8 */
    T_EQ(t, offset_of(&r), 8);
    T_OK(t, fill(&r, RONDO_DISTRIBUTION_UNIFORM, 64, 7, -2.0f, 3.0f));
    T_OK(t, fill(&r, RONDO_DISTRIBUTION_NORMAL, 128, 6, 1.5f, 0.25f));
    T_OK(t, fill(&r, RONDO_DISTRIBUTION_BERNOULLI, 192, 9, 0.3f, 0));
    T_OK(t, fill(&r, RONDO_DISTRIBUTION_DROPOUT, 256, 8, 0.4f, 0));
    T_EQ(t, offset_of(&r), 8 + 8 + 8 + 12 + 8);
    T_OK(t, rondo_stream_synchronize(r.f.stream));
    const char *out = r.out;
    float x[9];
    expect_bits(&r, RANDOM_SEED, 0, 5, 0);
    memcpy(x, out + 64, sizeof x);
    for (unsigned i = 0; i < 7; i++) T_NEAR(t, x[i], -2.0 + 5.0 * unit_of(8 + i), 1e-6);
    memcpy(x, out + 128, sizeof x);
    for (unsigned i = 0; i < 6; i++) { /* polar form of a complex number, by its logarithm */
        uint64_t pair = 16 + i / 2 * 2;
        double radius = sqrt(-2.0 * log1p(-(1.0 - (unit_of(pair) + 1.0 / 4294967296.0)))),
               angle = 8.0 * atan(1.0) * unit_of(pair + 1);
        T_NEAR(t, x[i], 1.5 + 0.25 * radius * (i % 2 ? sin(angle) : cos(angle)), 2e-6);
    }
    for (unsigned i = 0; i < 9; i++) T_EQ(t, out[192 + i], unit_of(24 + i) < (double)0.3f);
    memcpy(x, out + 256, sizeof x);
    for (unsigned i = 0; i < 8; i++)
        T_NEAR(t, x[i], unit_of(36 + i) < (double)0.4f ? 0.0 : 1.0 / (1.0 - (double)0.4f), 1e-7);
    for (unsigned i = 20; i < 64; i++) T_EQ(t, (unsigned char)out[i], 0xee); /* nothing behind what was asked for */
    T_EQ(t, (unsigned char)out[201], 0xee);
}
GT_BOTH(test_eager_fills)

static void test_wrong_requests(rondo_test *t, const char *device) {
    random_fixture r;
    rondo_device *elsewhere = NULL;
    const float nan = (float)NAN, inf = (float)INFINITY;
    random_open(t, &r, device);
    T_FAILS(t, fill(&r, 5, 0, 4, 0, 0), INVALID_ARGUMENT, "5 is no distribution");
    T_FAILS(t, fill(&r, -1, 0, 4, 0, 0), INVALID_ARGUMENT, "-1 is no distribution");
    T_FAILS(t, fill(&r, RONDO_DISTRIBUTION_UNIFORM, 0, 4, 2, 1), INVALID_ARGUMENT, "from 2 to 1");
    T_FAILS(t, fill(&r, RONDO_DISTRIBUTION_UNIFORM, 0, 4, nan, 1), INVALID_ARGUMENT, "finite");
    T_FAILS(t, fill(&r, RONDO_DISTRIBUTION_UNIFORM, 0, 4, 0, inf), INVALID_ARGUMENT, "finite");
    T_FAILS(t, fill(&r, RONDO_DISTRIBUTION_NORMAL, 0, 4, 0, -1), INVALID_ARGUMENT, "deviation");
    T_FAILS(t, fill(&r, RONDO_DISTRIBUTION_BERNOULLI, 0, 4, 1.5f, 0), INVALID_ARGUMENT, "1.5 is no probability");
    T_FAILS(t, fill(&r, RONDO_DISTRIBUTION_DROPOUT, 0, 4, nan, 0), INVALID_ARGUMENT, "no probability");
    T_FAILS(t, fill(&r, RONDO_DISTRIBUTION_BITS, 0, UINT64_MAX, 0, 0), OUT_OF_RANGE, "any memory");
    T_FAILS(t, rondo_random_fill(r.f.stream, r.generator, 0, NULL, 4, 0, 0), INVALID_ARGUMENT, "nowhere");
    T_FAILS(t, rondo_random_fill(NULL, r.generator, 0, r.out, 4, 0, 0), INVALID_ARGUMENT, "a stream");
    T_FAILS(t, rondo_random_fill(r.f.stream, NULL, 0, r.out, 4, 0, 0), INVALID_ARGUMENT, "a generator");
    T_OK(t, rondo_random_fill(r.f.stream, r.generator, 0, NULL, 0, 0, 0));
    T_FAILS(t, rondo_generator_set_offset(r.generator, 6), INVALID_ARGUMENT, "6 is no multiple of 4");
    T_FAILS(t, rondo_generator_set_seed(NULL, 1), INVALID_ARGUMENT, "null");
    T_FAILS(t, rondo_generator_get_offset(r.generator, NULL), INVALID_ARGUMENT, "no place");
    T_FAILS(t, rondo_generator_create(NULL, 1, &r.generator), INVALID_ARGUMENT, "a device");
    T_EQ(t, offset_of(&r), 0);
    T_OK(t, rondo_device_open(r.f.instance, strcmp(device, "cpu") == 0 ? "sim" : "cpu", NULL, &elsewhere));
    T_DEFER(t, rondo_device_release, elsewhere);
    T_FAILS(t, rondo_random_fill(rondo_stream_default(elsewhere), r.generator, 0, r.out, 4, 0, 0), INVALID_ARGUMENT,
            "the generator is of device");
}
GT_BOTH(test_wrong_requests)

/* A million of each: mean, deviation and extremes where they must be, at six standard errors. */
static void test_statistics(rondo_test *t) {
    enum { COUNT = 1000000 };
    const double count = COUNT;
    random_fixture r;
    random_open(t, &r, "cpu");
    float *x = malloc(COUNT * sizeof *x);
    T_TRUE(t, x != NULL);
    T_DEFER(t, free, x);
    double sum = 0, square = 0, third = 0, neighbours = 0;
    T_OK(t, rondo_random_fill(r.f.stream, r.generator, RONDO_DISTRIBUTION_NORMAL, x, COUNT, 0, 1));
    for (int i = 0; i < COUNT; i++) {
        double v = (double)x[i];
        sum += v, square += v * v, third += v * v * v;
        if (i) neighbours += v * (double)x[i - 1];
    }
    T_NEAR(t, sum / count, 0.0, 6e-3);
    T_NEAR(t, square / count, 1.0, 6.0 * sqrt(2.0 / count));
    T_NEAR(t, third / count, 0.0, 6.0 * sqrt(15.0 / count));
    T_NEAR(t, neighbours / count, 0.0, 6e-3);
    T_OK(t, rondo_random_fill(r.f.stream, r.generator, RONDO_DISTRIBUTION_UNIFORM, x, COUNT, 0, 1));
    unsigned bins[16] = {0};
    for (int i = 0; i < COUNT; i++) {
        T_TRUE(t, x[i] >= 0.0f && x[i] < 1.0f);
        bins[(int)(x[i] * 16.0f)]++;
    }
    double chi = 0;
    for (int b = 0; b < 16; b++) chi += (bins[b] - count / 16.0) * (bins[b] - count / 16.0) / (count / 16.0);
    T_TRUE(t, chi < 60.0); /* 15 degrees of freedom: 60 has a chance of 2e-7 */
    double kept = 0;
    T_OK(t, rondo_random_fill(r.f.stream, r.generator, RONDO_DISTRIBUTION_DROPOUT, x, COUNT, 0.1f, 0));
    for (int i = 0; i < COUNT; i++) kept += (double)x[i];
    T_NEAR(t, kept / count, 1.0, 6.0 * sqrt(0.1 / 0.9 / count));
    uint8_t *bytes = (uint8_t *)x;
    double ones = 0;
    T_OK(t, rondo_random_fill(r.f.stream, r.generator, RONDO_DISTRIBUTION_BERNOULLI, bytes, COUNT, 0.25f, 0));
    for (int i = 0; i < COUNT; i++) ones += bytes[i];
    T_NEAR(t, ones / count, 0.25, 6.0 * sqrt(0.25 * 0.75 / count));
    /* The bounds of what was asked for. */
    T_OK(t, rondo_random_fill(r.f.stream, r.generator, RONDO_DISTRIBUTION_UNIFORM, x, COUNT, 1.0f,
                              nextafterf(1.0f, 2.0f)));
    for (int i = 0; i < COUNT; i++) T_TRUE(t, x[i] == 1.0f);
    T_OK(t, rondo_random_fill(r.f.stream, r.generator, RONDO_DISTRIBUTION_DROPOUT, x, 100, 1.0f, 0));
    for (int i = 0; i < 100; i++) T_TRUE(t, x[i] == 0.0f);
    T_OK(t, rondo_random_fill(r.f.stream, r.generator, RONDO_DISTRIBUTION_UNIFORM, x, 100, 3.0f, 3.0f));
    for (int i = 0; i < 100; i++) T_TRUE(t, x[i] == 3.0f);
}

/* ------------------------------------------------------------------------------------------- captures and replays */

/* 12 + 8 + 4 = 24 numbers a replay. */
static rondo_status capture_three(random_fixture *r) {
    RONDO__TRY(gt_begin(&r->f, r->graph));
    RONDO__TRY(fill(r, RONDO_DISTRIBUTION_BITS, 0, 10, 0, 0));
    RONDO__TRY(fill(r, RONDO_DISTRIBUTION_BITS, 64, 8, 0, 0));
    RONDO__TRY(fill(r, RONDO_DISTRIBUTION_BITS, 128, 1, 0, 0));
    return rondo_graph_capture_end(r->graph, r->f.stream);
}

static void expect_three(random_fixture *r, uint64_t seed, uint64_t first) {
    expect_bits(r, seed, 0, 10, first);
    expect_bits(r, seed, 64, 8, first + 12);
    expect_bits(r, seed, 128, 1, first + 20);
}

/* A25. Three fills, four replays, one eager call: each goes on where the one before ended. */
static void test_a25_replays_go_on(rondo_test *t, const char *device) {
    random_fixture r;
    random_open(t, &r, device);
    T_OK(t, fill(&r, RONDO_DISTRIBUTION_BITS, 192, 3, 0, 0));
    T_OK(t, capture_three(&r));
    T_EQ(t, offset_of(&r), 4); /* a capture takes nothing */
    for (unsigned i = 0; i < 4; i++) {
        T_OK(t, rondo_graph_replay(r.graph, i % 2 ? r.f.other : r.f.stream));
        T_OK(t, rondo_stream_synchronize(i % 2 ? r.f.other : r.f.stream));
        expect_three(&r, RANDOM_SEED, 4u + 24u * i);
    }
    T_EQ(t, offset_of(&r), 4 + 96);
    T_OK(t, fill(&r, RONDO_DISTRIBUTION_BITS, 192, 3, 0, 0));
    T_OK(t, rondo_stream_synchronize(r.f.stream));
    expect_bits(&r, RANDOM_SEED, 192, 3, 100);
    /* A new seed acts at the next replay, and so does an offset. */
    T_OK(t, rondo_generator_set_seed(r.generator, 99));
    T_OK(t, gt_replay(&r.f, r.graph));
    expect_three(&r, 99, 0);
    T_OK(t, rondo_generator_set_offset(r.generator, UINT64_C(1) << 40));
    T_OK(t, gt_replay(&r.f, r.graph));
    expect_three(&r, 99, UINT64_C(1) << 40);
    /* Two replays in a row that nobody waits for keep their own numbers: the second wins. */
    T_OK(t, rondo_graph_replay(r.graph, r.f.stream));
    T_OK(t, gt_replay(&r.f, r.graph));
    expect_three(&r, 99, (UINT64_C(1) << 40) + 48);
}
GT_BOTH(test_a25_replays_go_on)

/* A replay of which nothing ran takes no numbers: the first copy writes the cells, the second brings a slot in. */
static void test_a_replay_that_does_not_begin(rondo_test *t) {
    static random_fixture fixtures[3];
    char fail[16];
    for (int copy = 1; copy <= 3; copy++) {
        random_fixture *r = &fixtures[copy - 1];
        (void)snprintf(fail, sizeof fail, "copy:%d", copy);
        (void)setenv("RONDO_SIM_FAIL", fail, 1);
        random_open(t, r, "sim");
        (void)unsetenv("RONDO_SIM_FAIL");
        T_OK(t, rondo_graph_declare_slot(r->graph, 0, r->f.buffers[0], GT_BYTES, RONDO_ACCESS_READ, RONDO_SLOT_COPY));
        T_OK(t, gt_begin(&r->f, r->graph));
        T_OK(t, fill(r, RONDO_DISTRIBUTION_BITS, 0, 8, 0, 0));
        T_OK(t, gt_add(&r->f, r->f.buffers[0], r->f.buffers[1], r->f.buffers[2]));
        T_OK(t, rondo_graph_capture_end(r->graph, r->f.stream));
        if (copy < 3) {
            T_FAILS(t, rondo_graph_replay(r->graph, r->f.stream), INTERNAL, "call");
            T_OK(t, rondo_stream_synchronize(r->f.stream));
            T_EQ(t, offset_of(r), 0);
        }
        T_OK(t, gt_replay(&r->f, r->graph));
        expect_bits(r, RANDOM_SEED, 0, 8, 0);
        T_EQ(t, offset_of(r), 8);
    }
}

/* A21. Asking and setting while a capture uses it. */
static void test_a21_questions_in_a_capture(rondo_test *t, const char *device) {
    random_fixture r;
    uint64_t number = 77;
    random_open(t, &r, device);
    T_OK(t, gt_begin(&r.f, r.graph));
    T_OK(t, rondo_generator_get_seed(r.generator, &number)); /* not used by it yet */
    number = 77;
    T_OK(t, fill(&r, RONDO_DISTRIBUTION_BITS, 0, 4, 0, 0));
    T_FAILS(t, rondo_generator_get_seed(r.generator, &number), INVALID_STATE, "rondo_generator_get_seed");
    T_FAILS(t, rondo_generator_get_offset(r.generator, &number), INVALID_STATE, "rondo_generator_get_offset");
    T_FAILS(t, rondo_generator_set_seed(r.generator, 1), INVALID_STATE, "rondo_generator_set_seed");
    T_FAILS(t, rondo_generator_set_offset(r.generator, 4), INVALID_STATE, "rondo_generator_set_offset");
    T_EQ(t, number, 77);
    T_OK(t, rondo_graph_capture_end(r.graph, r.f.stream)); /* it was not broken */
    T_EQ(t, offset_of(&r), 0);
    T_OK(t, gt_replay(&r.f, r.graph));
    expect_bits(&r, RANDOM_SEED, 0, 4, 0);
}
GT_BOTH(test_a21_questions_in_a_capture)

/* A23. After a failed capture the generator goes on from before it. */
static void test_a23_after_a_failed_capture(rondo_test *t, const char *device) {
    random_fixture r;
    uint64_t bytes, before, after;
    random_open(t, &r, device);
    T_OK(t, fill(&r, RONDO_DISTRIBUTION_BITS, 0, 4, 0, 0));
    rondo_memory_usage(r.f.device, &bytes, &before);
    for (unsigned way = 0; way < 4; way++) {
        T_OK(t, gt_begin(&r.f, r.graph));
        T_OK(t, fill(&r, RONDO_DISTRIBUTION_BITS, 64, 40, 0, 0));
        if (way == 0) {
            T_FAILS(t, rondo_stream_synchronize(r.f.stream), INVALID_STATE, NULL);
            T_FAILS(t, fill(&r, RONDO_DISTRIBUTION_BITS, 64, 40, 0, 0), CAPTURE_INVALIDATED, NULL);
            T_FAILS(t, rondo_graph_capture_end(r.graph, r.f.stream), CAPTURE_INVALIDATED, NULL);
        } else if (way == 1) {
            T_OK(t, rondo_graph_abort(r.graph));
        } else if (way == 2) {
            rondo_graph_reset(r.graph);
        } else {
            T_FAILS(t, rondo_random_fill(r.f.stream, r.generator, 0, (char *)r.out + RANDOM_BYTES - 4, 40, 0, 0),
                    OUT_OF_RANGE, NULL);
            T_FAILS(t, rondo_graph_capture_end(r.graph, r.f.stream), CAPTURE_INVALIDATED, NULL);
        }
        rondo_memory_usage(r.f.device, &bytes, &after);
        T_EQ(t, after, before);
        T_EQ(t, offset_of(&r), 4 + 4u * way);
        T_OK(t, fill(&r, RONDO_DISTRIBUTION_BITS, 0, 4, 0, 0));
        T_OK(t, rondo_stream_synchronize(r.f.stream));
        expect_bits(&r, RANDOM_SEED, 0, 4, 4 + 4u * way);
    }
}
GT_BOTH(test_a23_after_a_failed_capture)

/* A19. The first random call of a program is in a capture, while a block waits for the stream: the cells are made apart
 * from both the pool and the stream. */
static void test_a19_first_random_call_in_a_capture(rondo_test *t, const char *device) {
    random_fixture r;
    void *block = NULL;
    random_open(t, &r, device);
    T_OK(t, rondo_memory_allocate_on(rondo_stream_default(r.f.device), 512, &block));
    rondo_status status =
        rondo_graph_capture_begin(r.graph, r.f.stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_THREAD_LOCAL);
    if (!status) status = rondo_memory_record_stream(r.f.device, block, r.f.stream);
    rondo_status freed = rondo_memory_free(r.f.device, block);
    T_OK(t, status);
    T_OK(t, freed);
    T_OK(t, fill(&r, RONDO_DISTRIBUTION_BITS, 0, 4, 0, 0));
    T_OK(t, rondo_graph_capture_end(r.graph, r.f.stream));
    T_OK(t, gt_replay(&r.f, r.graph));
    expect_bits(&r, RANDOM_SEED, 0, 4, 0);
    rondo_memory_statistics statistics = RONDO_MEMORY_STATISTICS_INIT;
    rondo_pool_id pool;
    T_OK(t, rondo_graph_pool(r.graph, &pool));
    T_OK(t, rondo_memory_get_statistics(r.f.device, pool, &statistics));
    T_EQ(t, statistics.allocations, 0);
}
GT_BOTH(test_a19_first_random_call_in_a_capture)

/* Two generators and two graphs, none in the way of another; a child takes its share of what its parent takes. */
static void test_several_generators(rondo_test *t, const char *device) {
    random_fixture r;
    rondo_generator *second = NULL;
    rondo_graph *parent = NULL;
    uint64_t offset;
    random_open(t, &r, device);
    T_OK(t, rondo_generator_create(r.f.device, 5, &second));
    T_DEFER(t, rondo_generator_release, second);
    T_OK(t, rondo_graph_create(r.f.device, NULL, &parent));
    T_DEFER(t, rondo_graph_release, parent);
    T_OK(t, gt_begin(&r.f, r.graph));
    T_OK(t, fill(&r, RONDO_DISTRIBUTION_BITS, 0, 4, 0, 0));
    T_OK(t, rondo_random_fill(r.f.stream, second, 0, (char *)r.out + 64, 8, 0, 0));
    T_OK(t, fill(&r, RONDO_DISTRIBUTION_BITS, 16, 4, 0, 0));
    T_OK(t, rondo_graph_capture_end(r.graph, r.f.stream));
    T_OK(t, gt_begin(&r.f, parent));
    T_OK(t, fill(&r, RONDO_DISTRIBUTION_BITS, 128, 16, 0, 0));
    T_OK(t, rondo_graph_replay(r.graph, r.f.stream));
    T_OK(t, rondo_stream_copy(r.f.stream, (char *)r.out + 256, r.out, 96, RONDO_COPY_DEVICE_TO_DEVICE));
    T_OK(t, rondo_graph_replay(r.graph, r.f.stream));
    T_OK(t, fill(&r, RONDO_DISTRIBUTION_BITS, 192, 4, 0, 0));
    T_OK(t, rondo_graph_capture_end(parent, r.f.stream));
    for (uint64_t round = 0; round < 2; round++) {
        uint64_t base = 44u * round, other = 24u * round; /* the parent takes 16 + 8 + 8 + 4, the child 8 and 8 */
        T_OK(t, gt_replay(&r.f, parent));
        expect_bits(&r, RANDOM_SEED, 128, 16, base);
        expect_bits(&r, RANDOM_SEED, 256, 8, base + 16);
        expect_bits(&r, 5, 256 + 64, 8, other);
        expect_bits(&r, RANDOM_SEED, 0, 8, base + 24);
        expect_bits(&r, 5, 64, 8, other + 8);
        expect_bits(&r, RANDOM_SEED, 192, 4, base + 32);
        T_OK(t, gt_replay(&r.f, r.graph));
        expect_bits(&r, RANDOM_SEED, 0, 8, base + 36);
        expect_bits(&r, 5, 64, 8, other + 16);
    }
    rondo_graph_reset(r.graph);
    T_OK(t, gt_replay(&r.f, parent)); /* it stands alone */
    expect_bits(&r, RANDOM_SEED, 192, 4, 88 + 32);
    T_OK(t, rondo_generator_get_offset(second, &offset));
    T_EQ(t, offset, 48 + 16);
    T_FAILS(t, rondo_graph_update(parent, 0, (rondo_argument[5]){{0, 0, 0, 0}}, 5), UNSUPPORTED, "random numbers");
}
GT_BOTH(test_several_generators)

RONDO_TEST_MAIN(T(test_published_vectors), GT_ENTRIES(test_eager_fills), GT_ENTRIES(test_wrong_requests),
                T_PLAIN(test_statistics), GT_ENTRIES(test_a25_replays_go_on),
                T_PLAIN(test_a_replay_that_does_not_begin), GT_ENTRIES(test_a21_questions_in_a_capture),
                GT_ENTRIES(test_a23_after_a_failed_capture), GT_ENTRIES(test_a19_first_random_call_in_a_capture),
                GT_ENTRIES(test_several_generators))
