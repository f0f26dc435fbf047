/* SPDX-License-Identifier: Apache-2.0
 *
 * Troubles that allocators under captured graphs are known for, one test each, named as docs/cases.md numbers them. */
#include "memory/memory_testing.h"

#include <stdio.h>
#include <stdlib.h>

static const rondo_memory_filter by_thread = RONDO_MEMORY_FILTER_INIT;

/* The number that follows `name` in a text; UINT64_MAX when it is not there. */
static uint64_t number_after(const char *text, const char *name) {
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) : UINT64_MAX;
}

/* C01: work that a capture forks to a second stream finds its memory in the graph's pool, too. */
static void test_c01_all_streams_of_a_capture_use_its_pool(rondo_test *t) {
    world w;
    recorded r0, r1;
    rondo_memory_filter f = RONDO_MEMORY_FILTER_INIT;
    world_open(t, &w, "sim", NULL);
    rondo_stream *s0 = world_stream(t, &w), *s1 = world_stream(t, &w);
    char *x = take(t, s0, 4096), *y = take(t, s1, 4096);
    rondo_pool_id pool = {rondo__registry_next_id(rondo__instance_registry(w.instance)), 0};
    f.kind = RONDO_MEMORY_FILTER_CAPTURE;
    f.capture_id = 31;
    T_OK(t, rondo_memory_pool_begin(w.device, pool, &f));
    record_begin(t, &r0, s0, 31);
    char *z = take(t, s0, 4096);
    record_begin(t, &r1, s1, 31);
    char *v = take(t, s1, 4096);
    record_end(&r1);
    record_end(&r0);
    T_OK(t, rondo_memory_pool_end(w.device, pool));
    T_TRUE(t, rondo__memory_pool_of(w.memory, address_of(z)).automatic == pool.automatic);
    T_TRUE(t, rondo__memory_pool_of(w.memory, address_of(v)).automatic == pool.automatic);
    T_TRUE(t, rondo__memory_pool_of(w.memory, address_of(x)).automatic == 0);
    T_TRUE(t, rondo__memory_pool_of(w.memory, address_of(y)).automatic == 0);
    char *all[] = {x, y, z, v};
    for (int i = 0; i < 4; i++) give(t, &w, all[i]);
}

/* One capture on four streams: each block is used by the next stream, too. */
static void c03_round(rondo_test *t, world *w, rondo_stream **streams, uint64_t count) {
    static recorded r[4]; /* looked at when the test ends */
    for (int i = 0; i < 4; i++) record_begin(t, &r[i], streams[i], 9);
    for (uint64_t i = 0; i < count; i++) {
        char *a = take(t, streams[i % 4], 512);
        T_OK(t, rondo_memory_record_stream(w->device, a, streams[(i + 1) % 4]));
        give(t, w, a);
    }
    for (int i = 0; i < 4; i++) record_end(&r[i]);
    T_OK(t, rondo_memory_trim(w->device));
    T_EQ(t, figures(t, w).pending_bytes, 0);
}

/* C03: marks of other streams cost the same in a long capture as in a short one, and enqueue nothing. */
static void test_c03_many_uses_in_a_capture(rondo_test *t) {
    world w;
    rondo_stream *streams[4];
    uint64_t before = 0, after = 0;
    world_open(t, &w, "sim", NULL);
    for (int i = 0; i < 4; i++) streams[i] = world_stream(t, &w);
    T_OK(t, rondo_device_counter(w.device, "launches", &before));
    /* Anything quadratic in the marks would not end before the test's limit. */
    c03_round(t, &w, streams, 200000);
    T_OK(t, rondo_device_counter(w.device, "launches", &after));
    T_EQ(t, after, before);
}

/* C05: the text of an out-of-memory failure tells what graph pools hold, and its figures add up. */
static void test_c05_out_of_memory_tells_what_pools_hold(rondo_test *t) {
    world w;
    void *b = NULL;
    char text[2048];
    world_open(t, &w, "sim", "memory=209715200"); /* 200 MiB */
    rondo_stream *s = world_stream(t, &w);
    rondo_pool_id pool = begin_thread(t, &w), small = {0, 0};
    rondo__memory_pool_label(w.memory, pool, "decoder step");
    char *graph = take(t, s, 90 * MIB), *held = take(t, s, 20 * MIB);
    T_OK(t, rondo_memory_pool_end(w.device, pool));
    small = begin_thread(t, &w);
    char *little = take(t, s, 100);
    T_OK(t, rondo_memory_pool_end(w.device, small));
    give(t, &w, held);
    char *used = take(t, s, 30 * MIB), *freed = take(t, s, 3 * MIB);
    give(t, &w, freed);
    /* A stream that captures keeps its cached memory. */
    recorded r;
    record_begin(t, &r, s, 3);
    rondo_status status = rondo_memory_allocate_on(s, 70 * MIB, &b);
    (void)rondo_status_format(status, text, sizeof text);
    record_end(&r);
    T_FAILS(t, status, OUT_OF_MEMORY, NULL);
    uint64_t reserved = number_after(text, "for 73400320 bytes: "), allocated = number_after(text, "of which "),
             pools = number_after(text, "are allocated, "), reusable = number_after(text, "by graph pools and ");
    T_EQ(t, reserved, figures(t, &w).reserved_bytes);
    T_EQ(t, pools, 112 * MIB);
    T_EQ(t, reusable, 20 * MIB);
    T_EQ(t, allocated + pools + reusable, reserved);
    T_TRUE(t, strstr(text, "of decoder step: 115343360 bytes, of which 94371840 are live") != NULL);
    char *all[] = {graph, little, used};
    for (int i = 0; i < 3; i++) give(t, &w, all[i]);
}

/* C07: what the default pool has cached makes room for a private one. */
static void test_c07_a_pool_gets_what_the_default_pool_cached(rondo_test *t) {
    world w;
    world_open(t, &w, "sim", "memory=104857600"); /* 100 MiB */
    rondo_stream *s = world_stream(t, &w);
    give(t, &w, take(t, s, 70 * MIB));
    rondo_pool_id pool = begin_thread(t, &w);
    char *a = take(t, s, 60 * MIB);
    T_EQ(t, figures_of(t, &w, pool).reserved_bytes, 60 * MIB);
    T_EQ(t, figures(t, &w).reserved_bytes, 60 * MIB);
    give(t, &w, a);
}

/* C09: a graph may keep several pools alive. */
static void test_c09_several_pools_of_one_graph(rondo_test *t) {
    world w;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = rondo_stream_default(w.device);
    rondo_pool_id p = begin_thread(t, &w);
    char *a = take(t, s, 1000);
    rondo_pool_id q = begin_thread(t, &w);
    char *b = take(t, s, 1000);
    T_OK(t, rondo_memory_pool_end(w.device, q));
    rondo_pool_id found = rondo__memory_pool_of(w.memory, address_of(b));
    T_EQ(t, found.user, q.user);
    T_OK(t, rondo_memory_pool_retain(w.device, found)); /* as one does who uses a pool of somebody else's */
    T_OK(t, rondo_memory_pool_end(w.device, p));
    T_OK(t, rondo_memory_pool_release(w.device, q)); /* the user's handle goes */
    give(t, &w, b);
    T_OK(t, rondo_memory_trim(w.device));
    T_TRUE(t, figures_of(t, &w, q).reserved_bytes > 0);
    char *filler = take(t, s, 1000);
    T_TRUE(t, rondo__memory_pool_of(w.memory, address_of(filler)).user == 0);
    T_OK(t, rondo_memory_pool_release(w.device, q));
    give(t, &w, filler);
    give(t, &w, a);
}

/* Four operators in a chain, each result freed when the next is there. */
static void run_chain(rondo_test *t, world *w, rondo_stream *s, uint64_t size, char **out_result) {
    char *x = take(t, s, size);
    for (int i = 0; i < 3; i++) {
        char *y = take(t, s, size);
        give(t, w, x);
        x = y;
    }
    *out_result = x;
}

/* C11 and C13: sizes that share a pool need about what the largest needs, when results are not kept. */
static void test_c11_c13_sizes_that_share_a_pool(rondo_test *t) {
    static world w[3]; /* a pool each; one for all; one for all, and results kept */
    uint64_t reserved[3];
    for (int how = 0; how < 3; how++) {
        world_open(t, &w[how], "cpu", NULL);
        rondo_stream *s = rondo_stream_default(w[how].device);
        rondo_pool_id pool = rondo_pool_handle(w[how].instance);
        for (uint64_t size = 11; size > 0; size--) {
            char *result = NULL;
            if (!how) pool = rondo_pool_handle(w[how].instance);
            T_OK(t, rondo_memory_pool_begin(w[how].device, pool, &by_thread));
            run_chain(t, &w[how], s, size * 10 * MIB, &result);
            T_OK(t, rondo_memory_pool_end(w[how].device, pool));
            if (how < 2) give(t, &w[how], result);
        }
        reserved[how] = figures(t, &w[how]).reserved_bytes;
    }
    T_EQ(t, reserved[0], 2 * 660 * MIB);
    T_EQ(t, reserved[1], 220 * MIB);
    T_TRUE(t, reserved[2] >= 660 * MIB);
}

/* C13: a result that was not kept is known to be dead. */
static void test_c13_a_dead_result_is_known(rondo_test *t) {
    static rondo_lease lease;
    world w;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = rondo_stream_default(w.device);
    (void)begin_thread(t, &w);
    lease = (rondo_lease){0};
    char *a = take(t, s, 4096);
    T_OK(t, rondo_memory_lease(w.device, a, RONDO_LEASE_REPLAY, &lease));
    T_EQ(t, lease.block, address_of(a));
    give(t, &w, a);
    T_EQ(t, lease.block, 0);
    char *b = take(t, s, 4096); /* the same address is another block */
    if (!rondo_test_failing(t)) T_TRUE(t, a == b);
    T_EQ(t, lease.block, 0);
    give(t, &w, b);
}

/* C15: segments that grow are refused by name; checkpoints of a tree with a branch are in checkpoint_test.c. */
static void test_c15_growing_segments_are_refused(rondo_test *t) {
    world w;
    rondo_memory_settings settings = RONDO_MEMORY_SETTINGS_INIT;
    world_open(t, &w, "cpu", NULL);
    settings.expandable_segments = 1;
    T_FAILS(t, rondo_memory_configure(w.device, &settings), UNSUPPORTED, "expandable_segments");
}

/* Eleven units, then small ones of which every third is kept, then eleven again with twelve in all. */
static rondo_status c17_round(rondo_test *t, world *w, char *kept[], int *out_kept, uint64_t keep_whole,
                              void **out_big) {
    rondo_memory_settings settings = RONDO_MEMORY_SETTINGS_INIT;
    world_open(t, w, "sim", "memory=276824064"); /* 264 MiB */
    settings.max_split_bytes = keep_whole;
    T_OK(t, rondo_memory_configure(w->device, &settings));
    rondo_stream *s = world_stream(t, w);
    char *blocks[12];
    give(t, w, take(t, s, 242 * MIB));
    for (int i = 0; i < 12; i++) blocks[i] = take(t, s, 3 * MIB / 2);
    for (int i = 0; i < 12; i++) {
        if (i % 3 == 2) kept[(*out_kept)++] = blocks[i];
        else give(t, w, blocks[i]);
    }
    return rondo_memory_allocate_on(s, 242 * MIB, out_big);
}

/* C17: a large segment that small blocks have cut up is told of by a figure, and can be kept whole. */
static void test_c17_fragmentation(rondo_test *t) {
    static world w[2];
    char *kept[8];
    int count = 0;
    void *big = NULL;
    rondo_status status = c17_round(t, &w[0], kept, &count, 0, &big);
    char text[2048];
    (void)rondo_status_format(status, text, sizeof text);
    T_FAILS(t, status, OUT_OF_MEMORY, "fragmentation ");
    uint64_t percent = number_after(text, "fragmentation "), largest = number_after(text, "largest piece "),
             reusable = number_after(text, "by graph pools and ");
    T_TRUE(t, percent <= 100 && largest < reusable && reusable < 242 * MIB);
    T_EQ(t, percent, (uint64_t)(100.0 * (1.0 - (double)largest / (double)reusable)));
    for (int i = 0; i < count; i++) give(t, &w[0], kept[i]);
    count = 0;
    T_OK(t, c17_round(t, &w[1], kept, &count, 24 * MIB, &big));
    give(t, &w[1], big);
    for (int i = 0; i < count; i++) give(t, &w[1], kept[i]);
}

static int32_t host_nothing(void *user) {
    (void)user;
    return 0;
}

/* C19: a capture that stays open elsewhere does not keep others from using their memory again. */
static void test_c19_a_long_capture_elsewhere(rondo_test *t) {
    world w;
    recorded r;
    world_open(t, &w, "sim", NULL);
    rondo_stream *captured = world_stream(t, &w), *s = world_stream(t, &w), *second = world_stream(t, &w);
    record_begin(t, &r, captured, 8);
    for (int i = 0; i < 50; i++) {
        char *a = take(t, s, 25 * MIB);
        T_OK(t, rondo_stream_host_call(second, host_nothing, NULL));
        T_OK(t, rondo_memory_record_stream(w.device, a, second));
        give(t, &w, a);
        T_OK(t, rondo_stream_synchronize(second));
    }
    T_TRUE(t, figures(t, &w).reserved_bytes <= 52 * MIB);
    record_end(&r);
}

/* C21: memory that a graph allocated and its user kept comes back, also after the graph's pool went. */
static void test_c21_memory_kept_from_graphs(rondo_test *t) {
    world w;
    world_open(t, &w, "sim", NULL);
    rondo_stream *s = world_stream(t, &w);
    uint64_t after_first = 0;
    for (int i = 0; i < 100; i++) {
        rondo_pool_id pool = begin_thread(t, &w);
        char *temporary = take(t, s, 3 * MIB), *kept = take(t, s, 4 * MIB);
        give(t, &w, temporary);
        T_OK(t, rondo_memory_pool_end(w.device, pool));
        T_OK(t, rondo_memory_pool_release(w.device, pool)); /* the graph goes */
        give(t, &w, kept);
        if (i == 0) after_first = figures(t, &w).reserved_bytes;
        T_EQ(t, figures(t, &w).reserved_bytes, after_first);
    }
    T_EQ(t, figures(t, &w).allocated_bytes, 0);
}

/* A27: memory that was freed inside a capture is the graph's until the graph goes. */
static void test_a27_memory_freed_in_a_capture_stays_the_graphs(rondo_test *t) {
    world w;
    recorded r;
    rondo_memory_filter f = RONDO_MEMORY_FILTER_INIT;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = world_stream(t, &w);
    rondo_pool_id pool = rondo_pool_handle(w.instance);
    f.kind = RONDO_MEMORY_FILTER_CAPTURE;
    f.capture_id = 12;
    T_OK(t, rondo_memory_pool_begin(w.device, pool, &f));
    record_begin(t, &r, s, 12);
    char *temporary = take(t, s, 4096);
    give(t, &w, temporary);
    record_end(&r);
    T_OK(t, rondo_memory_pool_end(w.device, pool));
    char *canary = take(t, s, 4096);
    T_TRUE(t, canary != temporary);
    memset(canary, 7, 4096);
    for (int i = 0; i < 4096 && !rondo_test_failing(t); i++) {
        T_TRUE(t, temporary + i < canary || temporary + i >= canary + 4096);
    }
    T_OK(t, rondo_memory_trim(w.device));
    if (!rondo_test_failing(t)) T_EQ(t, figures_of(t, &w, pool).reserved_bytes, 2 * MIB);
    give(t, &w, canary);
    T_OK(t, rondo_memory_pool_release(w.device, pool));
    canary = take(t, s, 4096);
    give(t, &w, canary);
}

/* A29: an input that is freed makes the graph stale, by block and not by address; a block of its own pool does not. */
static void test_a29_a_freed_input_is_found_out(rondo_test *t) {
    static rondo__memory_watcher first, second;
    world w;
    rondo__memory_reference r;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = rondo_stream_default(w.device);
    rondo__memory_watcher_init(&first, 1);
    rondo__memory_watcher_init(&second, 2);
    char *x = take(t, s, 4096);
    first.pool = second.pool = begin_thread(t, &w);
    char *output = take(t, s, 4096); /* of the first graph; the second reads it */
    rondo_status status = rondo__memory_resolve(w.memory, address_of(x) + 1, 100, &first, &r); /* a view */
    if (!status) status = rondo__memory_resolve(w.memory, address_of(output), 0, &second, &r);
    give(t, &w, output);
    T_EQ(t, atomic_load(&second.stale), RONDO__STALE_NOT);
    T_OK(t, rondo_memory_pool_end(w.device, first.pool));
    give(t, &w, x);
    char *z = take(t, s, 4096);
    uint32_t stale = atomic_load(&first.stale);
    rondo__memory_unwatch(w.memory, &first);
    rondo__memory_unwatch(w.memory, &second);
    give(t, &w, z);
    T_OK(t, status);
    T_EQ(t, stale, RONDO__STALE_FREED);
    if (!rondo_test_failing(t)) T_TRUE(t, x == z);
}

/* A39: pinned memory that a captured copy reads stays with the graph, and asking for more in a capture works. */
static void test_a39_pinned_memory_of_a_captured_copy(rondo_test *t) {
    static rondo__memory_watcher graph;
    world w;
    recorded r;
    void *h = NULL, *more = NULL, *h2 = NULL, *h3 = NULL;
    world_open(t, &w, "sim", NULL);
    rondo_stream *s = world_stream(t, &w);
    rondo__memory_watcher_init(&graph, 1);
    record_begin(t, &r, s, 2);
    T_OK(t, rondo_memory_host_allocate(w.device, 4096, &h));
    rondo_status status = rondo__memory_hold(w.memory, &graph, address_of(h), 4096);
    if (!status) status = rondo__memory_hold(w.memory, &graph, address_of(h) + 8, 16); /* again */
    if (!status) memset(h, 5, 4096);
    rondo_status_release(rondo_memory_host_free(w.device, h));
    if (!status) status = rondo_memory_host_allocate(w.device, 4096, &more);
    record_end(&r);
    if (!status) status = rondo_memory_host_allocate(w.device, 4096, &h2);
    if (!status) {
        memset(h2, 9, 4096);
        T_TRUE(t, h != more && h != h2 && ((unsigned char *)h)[4095] == 5);
        T_EQ(t, atomic_load(&graph.stale), RONDO__STALE_NOT);
        T_FAILS(t, rondo_memory_host_free(w.device, h), INVALID_ARGUMENT, NULL); /* it was freed once */
        T_TRUE(t, !rondo__memory_is_pinned(w.memory, h, 1));
    }
    T_OK(t, rondo__memory_check(w.memory));
    rondo__memory_unwatch(w.memory, &graph); /* the graph goes */
    T_OK(t, rondo__memory_check(w.memory));
    T_OK(t, status);
    T_OK(t, rondo_memory_host_allocate(w.device, 4096, &h3));
    if (!rondo_test_failing(t)) T_TRUE(t, h == h3);
    T_OK(t, rondo_memory_host_free(w.device, more));
    T_OK(t, rondo_memory_host_free(w.device, h2));
    T_OK(t, rondo_memory_host_free(w.device, h3));
}

/* Held device memory, and what cannot be held. */
static void test_memory_that_a_graph_holds(rondo_test *t) {
    static rondo__memory_watcher graph, other;
    world w;
    rondo__memory_reference r;
    char local;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = rondo_stream_default(w.device);
    rondo__memory_watcher_init(&graph, 1);
    rondo__memory_watcher_init(&other, 2);
    char *a = take(t, s, 1000);
    T_FAILS(t, rondo__memory_hold(w.memory, &graph, address_of(&local), 1), NOT_FOUND, "no live allocation");
    T_FAILS(t, rondo__memory_hold(w.memory, &graph, address_of(a) + 999, 2), NOT_FOUND, "no live allocation");
    rondo_status status = rondo__memory_hold(w.memory, &graph, address_of(a), 1000);
    if (!status) status = rondo__memory_hold(w.memory, &other, address_of(a), 1000);
    if (!status) status = rondo__memory_resolve(w.memory, address_of(a), 0, NULL, &r);
    give(t, &w, a);
    if (!status) {
        T_TRUE(t, rondo__memory_alive(w.memory, &r) && figures(t, &w).pending_bytes >= 1000);
        rondo__memory_unwatch(w.memory, &graph);
        T_TRUE(t, figures(t, &w).pending_bytes >= 1000);
    }
    rondo__memory_unwatch(w.memory, &other);
    rondo__memory_unwatch(w.memory, &graph);
    T_OK(t, status);
    T_TRUE(t, !rondo__memory_alive(w.memory, &r) && figures(t, &w).pending_bytes == 0);
    /* Freed and still alive: the watcher goes first, the block after. */
    a = take(t, s, 1000);
    status = rondo__memory_hold(w.memory, &graph, address_of(a), 1);
    rondo__memory_unwatch(w.memory, &graph);
    T_OK(t, status);
    give(t, &w, a);
    T_OK(t, rondo__memory_check(w.memory));
}

RONDO_TEST_MAIN(T(test_c01_all_streams_of_a_capture_use_its_pool), T_PLAIN(test_c03_many_uses_in_a_capture),
                T_PLAIN(test_c05_out_of_memory_tells_what_pools_hold),
                T_PLAIN(test_c07_a_pool_gets_what_the_default_pool_cached), T(test_c09_several_pools_of_one_graph),
                T_PLAIN(test_c11_c13_sizes_that_share_a_pool), T(test_c13_a_dead_result_is_known),
                T(test_c15_growing_segments_are_refused), T_PLAIN(test_c17_fragmentation),
                T_PLAIN(test_c19_a_long_capture_elsewhere), T_PLAIN(test_c21_memory_kept_from_graphs),
                T(test_a27_memory_freed_in_a_capture_stays_the_graphs), T(test_a29_a_freed_input_is_found_out),
                T(test_a39_pinned_memory_of_a_captured_copy), T(test_memory_that_a_graph_holds))
