/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers: replays give fresh ones, and the same as the same calls without a capture. */
#include <math.h>
#include <string.h>

#include "conf.h"

enum { RANDOM_COUNT = 1001 };

static void random_release(void *generator) { rondo_generator_release(generator); }

static rondo_generator *random_make(conf *t, uint64_t seed) {
    rondo_generator *generator = NULL;
    WANT_OK(t, rondo_generator_create(t->device, seed, &generator));
    conf_keep_other(t, generator, random_release);
    return generator;
}

static uint64_t random_offset(conf *t, rondo_generator *generator) {
    uint64_t offset = UINT64_MAX;
    WANT_OK(t, rondo_generator_get_offset(generator, &offset));
    return offset;
}

static void random_bits(conf *t, rondo_stream *stream, rondo_generator *generator, void *out, uint64_t count) {
    WANT_OK(t, rondo_random_fill(stream, generator, RONDO_DISTRIBUTION_BITS, out, count, 0.0f, 0.0f));
}

static void random_eager(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_generator *generator = random_make(t, 0x1234567890u);
    uint32_t *got = conf_host(t, RANDOM_COUNT * 4);
    void *memory = conf_memory(t, RANDOM_COUNT * 4);
    static const uint64_t counts[] = {1, 4, 5, 64, 1000, RANDOM_COUNT};
    WANT(t, random_offset(t, generator) == 0, "a generator starts at offset %llu",
         (unsigned long long)random_offset(t, generator));
    for (size_t k = 0; k < sizeof counts / sizeof *counts; ++k) {
        uint64_t before = random_offset(t, generator), after;
        random_bits(t, stream, generator, memory, counts[k]);
        after = random_offset(t, generator);
        WANT(t, after % 4 == 0 && after >= before + counts[k], "%llu numbers moved the offset from %llu to %llu",
             (unsigned long long)counts[k], (unsigned long long)before, (unsigned long long)after);
        conf_download(t, stream, got, memory, counts[k] * 4);
        for (uint64_t i = 0; i < counts[k]; ++i)
            WANT(t, got[i] == conf_philox_number(0x1234567890u, before + i),
                 "number %llu from offset %llu is not Philox's", (unsigned long long)i, (unsigned long long)before);
    }
}

/* Two fills of each kind, eagerly with one generator, replayed with another of the same seed. */
static void random_work(conf *t, rondo_stream *stream, rondo_generator *generator, char *out) {
    random_bits(t, stream, generator, out, 100);
    for (rondo_distribution d = RONDO_DISTRIBUTION_UNIFORM; d <= RONDO_DISTRIBUTION_DROPOUT; ++d)
        WANT_OK(t, rondo_random_fill(stream, generator, d, out + 400 * d, 100, 0.25f, 0.75f));
}

static void random_replay(conf *t) {
    enum { SIZE = 2000, ROUNDS = 5 };
    rondo_stream *stream = conf_stream(t);
    rondo_generator *eager = random_make(t, 99), *captured = random_make(t, 99);
    rondo_graph *graph = conf_graph(t);
    char *out = conf_memory(t, SIZE), *want[ROUNDS], *got = conf_host(t, SIZE);
    for (int i = 0; i < ROUNDS; ++i) {
        want[i] = conf_host(t, SIZE);
        random_work(t, stream, eager, out);
        conf_download(t, stream, want[i], out, SIZE);
        for (int k = 0; k < i; ++k)
            WANT(t, memcmp(want[i], want[k], SIZE) != 0, "two eager rounds give the same numbers");
    }
    conf_begin(t, graph, stream);
    random_work(t, stream, captured, out);
    conf_end(t, graph, stream);
    WANT(t, random_offset(t, captured) == 0, "a capture moves the generator");
    for (int i = 0; i < ROUNDS; ++i) {
        conf_replay(t, graph, stream);
        conf_download(t, stream, got, out, SIZE);
        WANT(t, memcmp(got, want[i], SIZE) == 0, "replay %d gives other numbers than the same calls without a capture",
             i);
    }
    WANT(t, random_offset(t, captured) == random_offset(t, eager),
         "replays moved the offset to %llu, eager calls to %llu", (unsigned long long)random_offset(t, captured),
         (unsigned long long)random_offset(t, eager));
}

static void random_in_flight(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_generator *generator = random_make(t, 7);
    rondo_graph *graph = conf_graph(t);
    uint32_t got[20];
    char *slot = conf_memory(t, 4), *out = conf_memory(t, sizeof got);
    WANT_OK(t, rondo_graph_declare_slot(graph, 0, slot, 4, RONDO_ACCESS_WRITE, RONDO_SLOT_REBIND));
    conf_begin(t, graph, stream);
    conf_spin(t, stream, 10000);
    random_bits(t, stream, generator, slot, 1);
    conf_end(t, graph, stream);
    uint64_t offsets[20];
    for (uint64_t i = 0; i < 20; ++i) {
        offsets[i] = random_offset(t, generator);
        WANT_OK(t, rondo_graph_bind(graph, 0, out + i * 4));
        conf_replay(t, graph, stream);
    }
    conf_download(t, stream, got, out, sizeof got);
    for (int i = 0; i < 20; ++i)
        WANT(t, got[i] == conf_philox_number(7, offsets[i]), "replay %d of twenty in flight", i);
}

static void random_reseed(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_generator *generator = random_make(t, 1);
    rondo_graph *graph = conf_graph(t);
    uint32_t got[8];
    uint64_t seed = 0;
    char *out = conf_memory(t, sizeof got);
    conf_begin(t, graph, stream);
    random_bits(t, stream, generator, out, 8);
    conf_end(t, graph, stream);
    for (uint64_t round = 0; round < 6; ++round) {
        uint64_t offset = round % 2 ? 4 * round : 0;
        WANT_OK(t, rondo_generator_set_seed(generator, 1000 + round));
        if (round % 2) WANT_OK(t, rondo_generator_set_offset(generator, offset));
        WANT_OK(t, rondo_generator_get_seed(generator, &seed));
        WANT(t, seed == 1000 + round && random_offset(t, generator) == offset, "seed and offset are not what was set");
        conf_replay(t, graph, stream);
        conf_download(t, stream, got, out, sizeof got);
        for (uint64_t i = 0; i < 8; ++i)
            WANT(t, got[i] == conf_philox_number(1000 + round, offset + i),
                 "a seed set between replays does not act at the next");
    }
    WANT_CODE(t, rondo_generator_set_offset(generator, 6), INVALID_ARGUMENT);
}

static void random_during_capture(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_generator *generator = random_make(t, 1);
    rondo_graph *graph = conf_graph(t);
    uint64_t value;
    char *out = conf_memory(t, 64);
    for (int abort = 0; abort < 2; ++abort) {
        conf_begin(t, graph, stream);
        random_bits(t, stream, generator, out, 8);
        WANT_CODE(t, rondo_generator_set_seed(generator, 5), INVALID_STATE);
        WANT_CODE(t, rondo_generator_get_seed(generator, &value), INVALID_STATE);
        WANT_CODE(t, rondo_generator_set_offset(generator, 8), INVALID_STATE);
        WANT_CODE(t, rondo_generator_get_offset(generator, &value), INVALID_STATE);
        if (abort) WANT_OK(t, rondo_graph_abort(graph));
        else conf_end(t, graph, stream);
        WANT_OK(t, rondo_generator_set_seed(generator, 5));
        WANT(t, random_offset(t, generator) == 0, "a new seed does not set the offset to 0");
        rondo_graph_reset(graph);
    }
}

/* Two graphs share a generator, which may be released before them. */
static void random_shared(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_generator *generator = random_make(t, 3);
    rondo_graph *graphs[2] = {conf_graph(t), conf_graph(t)};
    uint32_t got[4];
    char *out = conf_memory(t, sizeof got);
    for (int i = 0; i < 2; ++i) {
        conf_begin(t, graphs[i], stream);
        random_bits(t, stream, generator, out, 4);
        conf_end(t, graphs[i], stream);
    }
    conf_drop(t, generator);
    for (uint64_t i = 0; i < 8; ++i) {
        conf_replay(t, graphs[conf_between(t, 0, 1)], stream);
        conf_download(t, stream, got, out, sizeof got);
        for (uint64_t k = 0; k < 4; ++k)
            WANT(t, got[k] == conf_philox_number(3, i * 4 + k), "replay %llu of two graphs", (unsigned long long)i);
    }
}

/* Means and bounds; the numbers themselves are the replay tests' concern. */
static void random_distributions(conf *t) {
    enum { COUNT = 20000 };
    const double count = COUNT;
    rondo_stream *stream = conf_stream(t);
    rondo_generator *generator = random_make(t, 11);
    float *got = conf_host(t, COUNT * 4);
    uint8_t *bytes = conf_host(t, COUNT);
    void *memory = conf_memory(t, COUNT * 4);
    double mean = 0, square = 0, ones = 0, kept = 0;
    WANT_OK(t, rondo_random_fill(stream, generator, RONDO_DISTRIBUTION_UNIFORM, memory, COUNT, -2.0f, 6.0f));
    conf_download(t, stream, got, memory, COUNT * 4);
    for (int i = 0; i < COUNT; ++i) {
        WANT(t, got[i] >= -2.0f && got[i] < 6.0f, "a uniform number in [-2, 6) is %g", (double)got[i]);
        mean += (double)got[i] / count;
    }
    WANT(t, fabs(mean - 2.0) < 0.1, "the mean of uniform numbers in [-2, 6) is %g", mean);
    WANT_OK(t, rondo_random_fill(stream, generator, RONDO_DISTRIBUTION_NORMAL, memory, COUNT, 3.0f, 2.0f));
    conf_download(t, stream, got, memory, COUNT * 4);
    mean = 0;
    for (int i = 0; i < COUNT; ++i) {
        WANT(t, isfinite(got[i]), "a normal number is not finite");
        mean += (double)got[i] / count;
        square += ((double)got[i] - 3.0) * ((double)got[i] - 3.0) / count;
    }
    WANT(t, fabs(mean - 3.0) < 0.1 && fabs(sqrt(square) - 2.0) < 0.1,
         "normal numbers (3, 2) have mean %g, deviation %g", mean, sqrt(square));
    WANT_OK(t, rondo_random_fill(stream, generator, RONDO_DISTRIBUTION_BERNOULLI, memory, COUNT, 0.3f, 0.0f));
    conf_download(t, stream, bytes, memory, COUNT);
    for (int i = 0; i < COUNT; ++i) {
        WANT(t, bytes[i] <= 1, "a choice is %u", (unsigned)bytes[i]);
        ones += bytes[i];
    }
    WANT(t, fabs(ones / count - 0.3) < 0.02, "of choices at 0.3, %g are 1", ones / count);
    WANT_OK(t, rondo_random_fill(stream, generator, RONDO_DISTRIBUTION_DROPOUT, memory, COUNT, 0.2f, 0.0f));
    conf_download(t, stream, got, memory, COUNT * 4);
    for (int i = 0; i < COUNT; ++i) {
        WANT(t, got[i] == 0.0f || fabs((double)got[i] - 1.25) < 1e-6, "a dropout factor at 0.2 is %g", (double)got[i]);
        kept += got[i] != 0.0f;
    }
    WANT(t, fabs(kept / count - 0.8) < 0.02, "dropout at 0.2 keeps %g", kept / count);
}

#define RANDOM(name, what, function) \
    { {"random." name, "random graph", what}, CONF_NEEDS_GRAPH | CONF_NEEDS_HOST_KERNELS, function }
static const conf_test tests[] = {
    {{"random.eager", "random", "Outside a capture a generator gives Philox's numbers, one after the other."},
     CONF_NEEDS_HOST_KERNELS,
     random_eager},
    RANDOM("replay", "Replays give fresh numbers, those of the same calls without a capture.", random_replay),
    RANDOM("in_flight", "Replays in flight each have their own numbers.", random_in_flight),
    RANDOM("reseed", "Seed and offset set between replays act at the next.", random_reseed),
    RANDOM("during_capture", "While a capture uses it, a generator is not asked or set.", random_during_capture),
    RANDOM("shared", "Graphs share a generator, and hold it.", random_shared),
    {{"random.distributions", "random", "Distributions have their bounds, means and deviations."},
     CONF_NEEDS_HOST_KERNELS,
     random_distributions},
};
CONF_SUITE(conf_suite_random, tests);
