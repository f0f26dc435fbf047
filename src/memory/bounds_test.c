/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies, fills and random numbers past the end of an allocation, or in one that was freed, are refused before anything is
 * enqueued: on cpu, whose backend knows no bounds, and on sim for the blocks of streams, of which it sees whole segments. */
#include <string.h>

#include "memory/memory_testing.h"

enum { SIZE = 700, REST = 1024 - SIZE };

typedef struct bounds {
    world w;
    rondo_stream *stream;
    rondo_generator *generator;
    unsigned char *a, *b; /* neighbours of SIZE bytes */
} bounds;

static void bounds_close(bounds *x) { rondo_generator_release(x->generator); }

static void bounds_open(rondo_test *t, bounds *x, const char *device) {
    world_open(t, &x->w, device, NULL);
    x->stream = world_stream(t, &x->w);
    x->generator = NULL;
    T_DEFER(t, bounds_close, x);
    T_OK(t, rondo_generator_create(x->w.device, 1, &x->generator));
    x->a = (unsigned char *)take(t, x->stream, SIZE);
    x->b = (unsigned char *)take(t, x->stream, SIZE);
    if (rondo_test_failing(t)) return; /* they may have segments of their own then */
    T_TRUE(t, x->a + 1024 == x->b);
    T_OK(t, rondo_stream_fill(x->stream, x->a, 1, SIZE));
    T_OK(t, rondo_stream_fill(x->stream, x->b, 2, SIZE));
}

static void bounds_unchanged(rondo_test *t, bounds *x) {
    T_OK(t, rondo_stream_synchronize(x->stream));
    for (int i = 0; i < SIZE; i++) T_TRUE(t, x->a[i] == 1 && x->b[i] == 2);
}

/* One byte too many, from the start and from the end; in the rest of the last piece of 512, and into the neighbour. */
static void test_past_the_end(rondo_test *t, const char *device) {
    bounds x;
    unsigned char host[2048] = {0};
    bounds_open(t, &x, device);
    if (rondo_test_failing(t)) return;
    T_FAILS(t, rondo_stream_fill(x.stream, x.a, 9, SIZE + 1), OUT_OF_RANGE, "cross an end of the allocation of 700");
    T_FAILS(t, rondo_stream_fill(x.stream, x.a + SIZE - 1, 9, 2), OUT_OF_RANGE, "rondo_stream_fill");
    T_FAILS(t, rondo_stream_fill(x.stream, x.a + SIZE, 9, 1), OUT_OF_RANGE, NULL);
    T_FAILS(t, rondo_stream_fill(x.stream, x.a + SIZE, 9, REST + 5), OUT_OF_RANGE, NULL);
    T_FAILS(t, rondo_stream_copy(x.stream, x.a, host, 1500, RONDO_COPY_HOST_TO_DEVICE), OUT_OF_RANGE,
            "rondo_stream_copy");
    T_FAILS(t, rondo_stream_copy(x.stream, host, x.a + 1, SIZE, RONDO_COPY_DEVICE_TO_HOST), OUT_OF_RANGE, NULL);
    T_FAILS(t, rondo_stream_copy(x.stream, x.b, x.a + 1, SIZE, RONDO_COPY_DEVICE_TO_DEVICE), OUT_OF_RANGE, NULL);
    T_FAILS(t, rondo_stream_copy(x.stream, x.a + 1, x.b, SIZE, RONDO_COPY_DEVICE_TO_DEVICE), OUT_OF_RANGE, NULL);
    T_FAILS(t, rondo_random_fill(x.stream, x.generator, RONDO_DISTRIBUTION_BITS, x.a, SIZE / 4 + 1, 0, 0), OUT_OF_RANGE,
            "rondo_random_fill");
    T_FAILS(t, rondo_random_fill(x.stream, x.generator, RONDO_DISTRIBUTION_BERNOULLI, x.a, SIZE + 1, 0, 0),
            OUT_OF_RANGE, NULL);
    uint64_t offset = 99;
    T_OK(t, rondo_generator_get_offset(x.generator, &offset));
    T_EQ(t, offset, 0); /* nothing was taken */
    bounds_unchanged(t, &x);
    /* To the last byte it is right. */
    T_OK(t, rondo_stream_copy(x.stream, x.b, x.a, SIZE, RONDO_COPY_DEVICE_TO_DEVICE));
    T_OK(t, rondo_stream_fill(x.stream, x.b + SIZE - 1, 2, 1));
    T_OK(t, rondo_stream_fill(x.stream, x.b + SIZE, 2, 0));
    T_OK(t, rondo_stream_copy(x.stream, host, x.b, SIZE, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_random_fill(x.stream, x.generator, RONDO_DISTRIBUTION_BITS, x.a, SIZE / 4, 0, 0));
    T_OK(t, rondo_stream_synchronize(x.stream));
    T_TRUE(t, host[0] == 1 && host[SIZE - 2] == 1 && host[SIZE - 1] == 2);
}

static void test_freed(rondo_test *t, const char *device) {
    bounds x;
    unsigned char host[64] = {0};
    bounds_open(t, &x, device);
    if (rondo_test_failing(t)) return;
    unsigned char *gone = (unsigned char *)take(t, x.stream, SIZE);
    T_OK(t, rondo_memory_free(x.w.device, gone));
    T_FAILS(t, rondo_stream_fill(x.stream, gone, 9, 1), STALE, "was freed");
    T_FAILS(t, rondo_stream_copy(x.stream, gone + 600, host, 64, RONDO_COPY_HOST_TO_DEVICE), STALE, "was freed");
    T_FAILS(t, rondo_stream_copy(x.stream, host, gone, 64, RONDO_COPY_DEVICE_TO_HOST), STALE, "was freed");
    T_FAILS(t, rondo_random_fill(x.stream, x.generator, RONDO_DISTRIBUTION_BITS, gone, 1, 0, 0), STALE, "was freed");
    bounds_unchanged(t, &x);
    /* In a private pool replays leave their results in blocks that are live and in others. */
    rondo_pool_id pool = begin_thread(t, &x.w);
    unsigned char *result = (unsigned char *)take(t, x.stream, SIZE);
    T_OK(t, rondo_memory_pool_end(x.w.device, pool));
    T_OK(t, rondo_memory_free(x.w.device, result));
    T_OK(t, rondo_stream_fill(x.stream, result, 5, SIZE));
    T_OK(t, rondo_stream_copy(x.stream, host, result, 64, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_stream_synchronize(x.stream));
    T_EQ(t, host[63], 5);
    T_FAILS(t, rondo_stream_fill(x.stream, result, 5, 4 * MIB), STALE, NULL); /* no further than the pool has memory */
}

/* The host's own memory, beside ours, is none of our business where the device shares it; pinned memory is. */
static void test_host_memory(rondo_test *t, const char *device, bool shared) {
    bounds x;
    void *pinned = NULL;
    unsigned char host[64];
    memset(host, 3, sizeof host);
    bounds_open(t, &x, device);
    if (rondo_test_failing(t)) return;
    T_OK(t, rondo_memory_host_allocate(x.w.device, 100, &pinned));
    memset(pinned, 4, 100);
    rondo_status good[] = {rondo_stream_copy(x.stream, x.a, host, 64, RONDO_COPY_HOST_TO_DEVICE),
                           rondo_stream_copy(x.stream, x.b, pinned, 100, RONDO_COPY_HOST_TO_DEVICE),
                           shared ? rondo_stream_fill(x.stream, host, 6, 64) : RONDO_OK};
    rondo_status bad = shared ? rondo_stream_copy(x.stream, x.a, pinned, 101, RONDO_COPY_HOST_TO_DEVICE) : RONDO_OK;
    rondo_status done = rondo_stream_synchronize(x.stream);
    rondo_status freed = rondo_memory_host_free(x.w.device, pinned);
    for (int i = 0; i < 3; i++) T_OK(t, good[i]);
    T_OK(t, done);
    T_OK(t, freed);
    if (shared) T_FAILS(t, bad, OUT_OF_RANGE, "the allocation of 100 bytes");
    T_TRUE(t, x.a[63] == 3 && x.a[64] == 1 && x.b[99] == 4 && x.b[100] == 2 && host[5] == (shared ? 6 : 3));
}

static void test_past_the_end_on_cpu(rondo_test *t) { test_past_the_end(t, "cpu"); }
static void test_past_the_end_on_sim(rondo_test *t) { test_past_the_end(t, "sim"); }
static void test_freed_on_cpu(rondo_test *t) { test_freed(t, "cpu"); }
static void test_freed_on_sim(rondo_test *t) { test_freed(t, "sim"); }
static void test_host_memory_on_cpu(rondo_test *t) { test_host_memory(t, "cpu", true); }
static void test_host_memory_on_sim(rondo_test *t) { test_host_memory(t, "sim", false); }

RONDO_TEST_MAIN(T(test_past_the_end_on_cpu), T(test_past_the_end_on_sim), T(test_freed_on_cpu), T(test_freed_on_sim),
                T(test_host_memory_on_cpu), T(test_host_memory_on_sim))
