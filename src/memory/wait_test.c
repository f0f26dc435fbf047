/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks that several streams use: when they may be given out again, and what captures hold up. On sim, where nothing
 * runs before it is asked for. */
#include "memory/memory_testing.h"

static int32_t host_count(void *user) {
    ++*(int *)user;
    return 0;
}

static void test_a_block_waits_for_the_other_stream(rondo_test *t) {
    world w;
    int ran = 0;
    world_open(t, &w, "sim", NULL);
    rondo_stream *s = world_stream(t, &w), *other = world_stream(t, &w);
    char *a = take(t, s, 4096);
    for (int i = 0; i < 20; i++) T_OK(t, rondo_stream_host_call(other, host_count, &ran));
    T_OK(t, rondo_memory_record_stream(w.device, a, other));
    T_OK(t, rondo_memory_record_stream(w.device, a, other)); /* once is enough */
    T_OK(t, rondo_memory_record_stream(w.device, a, s));     /* its own says nothing new */
    give(t, &w, a);
    T_FAILS(t, rondo_memory_free(w.device, a), INVALID_ARGUMENT, "not the start of a live");
    if (rondo_test_failing(t)) return;
    T_EQ(t, figures(t, &w).pending_bytes, 4096);
    T_EQ(t, figures(t, &w).allocations, 0);
    T_TRUE(t, ran < 20);
    /* Each allocation asks, and a question runs an operation. What is given is never the block before all has run. */
    for (int i = 0; i < 200 && figures(t, &w).pending_bytes; i++) {
        char *b = take(t, s, 4096);
        T_TRUE(t, b != a || ran == 20);
        give(t, &w, b);
    }
    T_EQ(t, ran, 20);
    T_EQ(t, figures(t, &w).pending_bytes, 0);
    char *b = take(t, s, 4096);
    T_TRUE(t, a == b);
    give(t, &w, b);
    T_OK(t, rondo__memory_check(w.memory));
}

static void test_what_comes_after_the_free_is_not_waited_for(rondo_test *t) {
    world w;
    int before = 0, after = 0;
    world_open(t, &w, "sim", NULL);
    rondo_stream *s = world_stream(t, &w), *other = world_stream(t, &w);
    char *a = take(t, s, 512);
    T_OK(t, rondo_stream_host_call(other, host_count, &before));
    T_OK(t, rondo_memory_record_stream(w.device, a, other));
    give(t, &w, a);
    for (int i = 0; i < 50; i++) T_OK(t, rondo_stream_host_call(other, host_count, &after));
    for (int i = 0; i < 100 && figures(t, &w).pending_bytes; i++) give(t, &w, take(t, s, 512));
    if (rondo_test_failing(t)) return;
    T_EQ(t, figures(t, &w).pending_bytes, 0);
    T_EQ(t, before, 1);
    T_TRUE(t, after < 50);
}

static void test_its_own_stream_is_not_waited_for(rondo_test *t) {
    world w;
    int ran = 0;
    world_open(t, &w, "sim", NULL);
    rondo_stream *s = world_stream(t, &w);
    char *a = take(t, s, 512);
    for (int i = 0; i < 9; i++) T_OK(t, rondo_stream_host_call(s, host_count, &ran));
    T_OK(t, rondo_memory_record_stream(w.device, a, s));
    give(t, &w, a);
    T_EQ(t, figures(t, &w).pending_bytes, 0);
    if (!rondo_test_failing(t)) T_EQ(t, ran, 0); /* freeing waits for nobody */
}

static void test_many_blocks_and_streams(rondo_test *t) {
    world w;
    rondo_stream *streams[4];
    char *blocks[24];
    int ran = 0;
    world_open(t, &w, "sim", NULL);
    for (int i = 0; i < 4; i++) streams[i] = world_stream(t, &w);
    for (int i = 0; i < 24; i++) {
        blocks[i] = take(t, streams[i % 4], 512 * (1 + (uint64_t)i % 5));
        for (int j = 0; j < 4; j++) {
            T_OK(t, rondo_stream_host_call(streams[j], host_count, &ran));
            if ((i >> j) & 1) T_OK(t, rondo_memory_record_stream(w.device, blocks[i], streams[j]));
        }
        if (i % 3 == 0) give(t, &w, blocks[i]);
        T_OK(t, rondo__memory_check(w.memory));
    }
    for (int i = 0; i < 24; i++) {
        if (i % 3) give(t, &w, blocks[i]);
    }
    T_OK(t, rondo_memory_trim(w.device)); /* waits for everything */
    rondo_memory_statistics s = figures(t, &w);
    T_TRUE(t, s.pending_bytes == 0 && s.allocated_bytes == 0);
    if (!rondo_test_failing(t)) T_EQ(t, s.reserved_bytes, 0);
    T_OK(t, rondo__memory_check(w.memory));
}

/* A stream that goes has finished. */
static void test_a_stream_may_go_before_the_free(rondo_test *t) {
    world w;
    rondo_stream *other = NULL;
    world_open(t, &w, "sim", NULL);
    rondo_stream *s = world_stream(t, &w);
    char *a = take(t, s, 512);
    T_OK(t, rondo_stream_create(w.device, NULL, &other));
    rondo_status status = rondo_memory_record_stream(w.device, a, other);
    rondo_stream_release(other);
    T_OK(t, status);
    give(t, &w, a);
    T_EQ(t, figures(t, &w).pending_bytes, 0);
}

/* C19: only the streams that capture hold anything up. */
static void check_captures(rondo_test *t, const char *name) {
    world w;
    recorded r;
    world_open(t, &w, name, NULL);
    rondo_stream *s = world_stream(t, &w), *other = world_stream(t, &w), *captured = world_stream(t, &w);
    char *a = take(t, s, 4096), *b = take(t, s, 4096);
    T_OK(t, rondo_memory_record_stream(w.device, a, captured));
    T_OK(t, rondo_memory_record_stream(w.device, b, other));
    record_begin(t, &r, captured, 5);
    give(t, &w, a);
    give(t, &w, b);
    T_OK(t, rondo_stream_synchronize(other));
    char *c = take(t, s, 4096);
    if (!rondo_test_failing(t)) T_EQ(t, figures(t, &w).pending_bytes, 4096);
    T_TRUE(t, c != a);
    if (!rondo_test_failing(t)) T_TRUE(t, c == b);
    record_end(&r);
    T_OK(t, rondo_stream_synchronize(captured));
    char *d = take(t, s, 4096);
    if (!rondo_test_failing(t) && figures(t, &w).pending_bytes) d = (give(t, &w, d), take(t, s, 4096));
    T_EQ(t, figures(t, &w).pending_bytes, 0);
    give(t, &w, c);
    give(t, &w, d);
    T_OK(t, rondo__memory_check(w.memory));
}

static void test_a_capture_holds_up_its_own_stream_on_cpu(rondo_test *t) { check_captures(t, "cpu"); }

static void test_a_capture_holds_up_its_own_stream_on_sim(rondo_test *t) { check_captures(t, "sim"); }

/* Memory of no stream, in a pool that is recorded: nobody can tell who uses it, so it stays until nothing captures. */
static void test_memory_of_no_stream_in_a_capture(rondo_test *t) {
    world w;
    recorded r;
    void *a = NULL, *b = NULL, *c = NULL;
    world_open(t, &w, "sim", NULL);
    rondo_stream *s = world_stream(t, &w);
    rondo_pool_id pool = begin_thread(t, &w);
    record_begin(t, &r, s, 5);
    T_OK(t, rondo_memory_allocate(w.device, 1000, &a));
    T_OK(t, rondo_memory_free(w.device, a));
    T_OK(t, rondo_memory_allocate(w.device, 1000, &b));
    T_TRUE(t, a != b);
    if (!rondo_test_failing(t)) T_EQ(t, figures_of(t, &w, pool).pending_bytes, 1024);
    T_OK(t, rondo__memory_check(w.memory));
    record_end(&r);
    T_OK(t, rondo_memory_allocate(w.device, 1000, &c));
    if (!rondo_test_failing(t)) T_TRUE(t, a == c);
    T_EQ(t, figures_of(t, &w, pool).pending_bytes, 0);
    T_OK(t, rondo_memory_free(w.device, b));
    T_OK(t, rondo_memory_free(w.device, c));
}

static void test_what_cannot_be_recorded(rondo_test *t) {
    world w, v;
    char local;
    world_open(t, &w, "sim", NULL);
    world_open(t, &v, "cpu", NULL);
    rondo_stream *s = rondo_stream_default(w.device);
    char *a = take(t, s, 512);
    T_FAILS(t, rondo_memory_record_stream(w.device, &local, s), INVALID_ARGUMENT, "not the start");
    T_FAILS(t, rondo_memory_record_stream(w.device, a + 1, s), INVALID_ARGUMENT, "not the start");
    T_FAILS(t, rondo_memory_record_stream(w.device, a, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_memory_record_stream(w.device, a, rondo_stream_default(v.device)), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_memory_record_stream(NULL, a, s), INVALID_ARGUMENT, NULL);
    give(t, &w, a);
}

/* A device may close with blocks that wait. */
static void test_closing_with_blocks_that_wait(rondo_test *t) {
    world w;
    int ran = 0;
    world_open(t, &w, "sim", NULL);
    rondo_stream *s = world_stream(t, &w), *other = world_stream(t, &w);
    char *a = take(t, s, 512), *b = take(t, s, 512);
    T_OK(t, rondo_memory_record_stream(w.device, a, other));
    T_OK(t, rondo_memory_record_stream(w.device, b, other));
    T_OK(t, rondo_stream_host_call(other, host_count, &ran));
    give(t, &w, a);
}

RONDO_TEST_MAIN(T(test_a_block_waits_for_the_other_stream), T(test_what_comes_after_the_free_is_not_waited_for),
                T(test_its_own_stream_is_not_waited_for), T(test_many_blocks_and_streams),
                T(test_a_stream_may_go_before_the_free), T(test_a_capture_holds_up_its_own_stream_on_cpu),
                T(test_a_capture_holds_up_its_own_stream_on_sim), T(test_memory_of_no_stream_in_a_capture),
                T(test_what_cannot_be_recorded), T(test_closing_with_blocks_that_wait))
