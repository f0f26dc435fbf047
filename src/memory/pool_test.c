/* SPDX-License-Identifier: Apache-2.0
 *
 * Private pools: ids, uses, which allocations go there, what becomes of their memory, and whose graphs are told. */
#include "memory/memory_testing.h"

#include <pthread.h>

static const rondo_memory_filter by_thread = RONDO_MEMORY_FILTER_INIT;

static void test_ids_and_filters_are_checked(rondo_test *t) {
    world w, v;
    rondo_memory_filter f = RONDO_MEMORY_FILTER_INIT;
    world_open(t, &w, "cpu", NULL);
    world_open(t, &v, "sim", NULL);
    rondo_pool_id id = rondo_pool_handle(w.instance);
    T_FAILS(t, rondo_memory_pool_begin(w.device, (rondo_pool_id){0, 0}, &f), INVALID_ARGUMENT, "{0, 0}");
    T_FAILS(t, rondo_memory_pool_begin(w.device, (rondo_pool_id){3, 4}, &f), INVALID_ARGUMENT, "{3, 4}");
    T_FAILS(t, rondo_memory_pool_begin(NULL, id, &f), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_memory_pool_begin(w.device, id, NULL), INVALID_ARGUMENT, "RONDO_MEMORY_FILTER_INIT");
    f.kind = 9;
    T_FAILS(t, rondo_memory_pool_begin(w.device, id, &f), INVALID_ARGUMENT, "unknown kind 9");
    f.kind = RONDO_MEMORY_FILTER_CAPTURE;
    T_FAILS(t, rondo_memory_pool_begin(w.device, id, &f), INVALID_ARGUMENT, "capture");
    f.kind = RONDO_MEMORY_FILTER_STREAM;
    T_FAILS(t, rondo_memory_pool_begin(w.device, id, &f), INVALID_ARGUMENT, "stream");
    f.stream = rondo_stream_default(v.device);
    T_FAILS(t, rondo_memory_pool_begin(w.device, id, &f), INVALID_ARGUMENT, "stream of the device");
    f.stream = rondo_stream_default(w.device);
    T_FAILS(t, rondo__memory_pinned_begin(w.memory, id, &f), INVALID_ARGUMENT, "by thread");
    T_FAILS(t, rondo_memory_pool_end(w.device, id), INVALID_STATE, "does not record");
    T_FAILS(t, rondo_memory_pool_release(w.device, id), NOT_FOUND, NULL);
    T_FAILS(t, rondo_memory_pool_retain(w.device, id), NOT_FOUND, NULL);
    T_FAILS(t, rondo_memory_pool_end(NULL, id), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_memory_pool_release(NULL, id), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_memory_pool_retain(NULL, id), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_memory_pool_live(w.device, id, NULL, 1, (bool[1]){0}), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_memory_pool_live(w.device, id, NULL, 0, (bool[1]){0}), NOT_FOUND, NULL);
}

static void test_uses_are_counted(rondo_test *t) {
    world w;
    world_open(t, &w, "cpu", NULL);
    rondo_pool_id id = begin_thread(t, &w);
    T_FAILS(t, rondo_memory_pool_begin(w.device, id, &by_thread), INVALID_STATE, "records already");
    T_FAILS(t, rondo_memory_pool_release(w.device, id), INVALID_STATE, "still records");
    T_OK(t, rondo_memory_pool_end(w.device, id));
    T_FAILS(t, rondo_memory_pool_end(w.device, id), INVALID_STATE, "does not record");
    T_OK(t, rondo_memory_pool_begin(w.device, id, &by_thread)); /* 2 */
    T_OK(t, rondo_memory_pool_end(w.device, id));
    T_OK(t, rondo_memory_pool_retain(w.device, id)); /* 3 */
    for (int i = 0; i < 3; i++) {
        (void)figures_of(t, &w, id);
        T_OK(t, rondo_memory_pool_release(w.device, id));
    }
    T_FAILS(t, rondo_memory_pool_release(w.device, id), NOT_FOUND, "released");
    T_FAILS(t, rondo_memory_pool_begin(w.device, id, &by_thread), NOT_FOUND, "never used again");
    T_FAILS(t, rondo_memory_pool_retain(w.device, id), NOT_FOUND, NULL);
}

/* Ids of long ago are refused, too, and remembering them takes no more memory. */
static void test_released_ids_stay_released(rondo_test *t) {
    world w;
    world_open(t, &w, "cpu", NULL);
    rondo_pool_id first = begin_thread(t, &w), kept = rondo_pool_handle(w.instance);
    T_OK(t, rondo_memory_pool_end(w.device, first));
    T_OK(t, rondo_memory_pool_release(w.device, first));
    T_OK(t, rondo_memory_pool_begin(w.device, kept, &by_thread));
    T_OK(t, rondo_memory_pool_end(w.device, kept));
    for (int i = 0; i < 10000; i++) {
        rondo_pool_id id = rondo_pool_handle(w.instance);
        if (i % 2) id = (rondo_pool_id){id.user, 0};
        T_OK(t, rondo_memory_pool_begin(w.device, id, &by_thread));
        T_OK(t, rondo_memory_pool_end(w.device, id));
        T_OK(t, rondo_memory_pool_release(w.device, id));
        T_FAILS(t, rondo_memory_pool_begin(w.device, id, &by_thread), NOT_FOUND, "never used again");
    }
    T_FAILS(t, rondo_memory_pool_begin(w.device, first, &by_thread), NOT_FOUND, "never used again");
    T_OK(t, rondo_memory_pool_begin(w.device, kept, &by_thread)); /* was in use all the time */
}

static rondo_pool_id pool_of(world *w, const char *pointer) {
    return rondo__memory_pool_of(w->memory, address_of(pointer));
}

static void test_the_newest_diversion_wins(rondo_test *t) {
    world w;
    recorded r;
    world_open(t, &w, "sim", NULL);
    rondo_stream *a = world_stream(t, &w), *b = world_stream(t, &w), *c = world_stream(t, &w);
    rondo_memory_filter f = RONDO_MEMORY_FILTER_INIT;
    rondo_pool_id thread = begin_thread(t, &w), stream = rondo_pool_handle(w.instance),
                  capture = rondo_pool_handle(w.instance);
    f.kind = RONDO_MEMORY_FILTER_STREAM;
    f.stream = a;
    T_OK(t, rondo_memory_pool_begin(w.device, stream, &f));
    f.kind = RONDO_MEMORY_FILTER_CAPTURE;
    f.capture_id = 77;
    T_OK(t, rondo_memory_pool_begin(w.device, capture, &f));
    record_begin(t, &r, b, 77);
    char *x = take(t, a, 100), *y = take(t, b, 100), *z = take(t, c, 100);
    void *none = NULL;
    uint64_t own = 0;
    T_OK(t, rondo_memory_allocate(w.device, 100, &none)); /* of no stream: the thread's */
    T_OK(t, rondo__memory_allocate(w.memory, 100, &own)); /* what executables take is never diverted */
    T_TRUE(t, pool_of(&w, x).user == stream.user && pool_of(&w, y).user == capture.user);
    T_TRUE(t, pool_of(&w, z).user == thread.user && pool_of(&w, none).user == thread.user);
    T_TRUE(t, rondo__memory_pool_of(w.memory, own).user == 0);
    T_OK(t, rondo_memory_pool_end(w.device, stream)); /* in whatever order */
    char *again = take(t, a, 100);
    T_TRUE(t, pool_of(&w, again).user == thread.user);
    record_end(&r);
    char *later = take(t, b, 100);
    T_TRUE(t, pool_of(&w, later).user == thread.user);
    char *all[] = {x, y, z, none, again, later};
    for (int i = 0; i < 6; i++) give(t, &w, all[i]);
    T_OK(t, rondo__memory_free(w.memory, own));
    T_OK(t, rondo__memory_check(w.memory));
}

static void *allocate_elsewhere(void *argument) {
    void **found = argument;
    rondo_status_release(rondo_memory_allocate_on(found[0], 100, &found[1]));
    return NULL;
}

static void test_a_thread_diverts_itself_alone(rondo_test *t) {
    world w;
    pthread_t thread;
    world_open(t, &w, "cpu", NULL);
    rondo_pool_id id = begin_thread(t, &w);
    void *found[2] = {rondo_stream_default(w.device), NULL};
    char *mine = take(t, found[0], 100);
    T_EQ(t, pthread_create(&thread, NULL, allocate_elsewhere, found), 0);
    (void)pthread_join(thread, NULL);
    T_TRUE(t, pool_of(&w, mine).user == id.user);
    if (found[1]) {
        T_TRUE(t, pool_of(&w, found[1]).user == 0);
        give(t, &w, found[1]);
    }
    give(t, &w, mine);
}

static void test_memory_of_a_released_pool_is_used_again(rondo_test *t) {
    world w;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = rondo_stream_default(w.device);
    for (int round = 0; round < 1000; round++) {
        rondo_pool_id id = begin_thread(t, &w);
        char *a = take(t, s, 1000), *b = take(t, s, 3 * MIB), *c = take(t, s, 70 * KIB);
        give(t, &w, b);
        T_OK(t, rondo_memory_pool_end(w.device, id));
        T_OK(t, rondo_memory_pool_release(w.device, id));
        give(t, &w, a);
        give(t, &w, c); /* may well be after the pool */
        T_FAILS(t, rondo_memory_pool_release(w.device, id), NOT_FOUND, NULL);
    }
    T_EQ(t, figures(t, &w).reserved_bytes, 22 * MIB);
    T_EQ(t, figures(t, &w).segment_allocations, 2);
    T_OK(t, rondo_memory_trim(w.device));
    T_EQ(t, figures(t, &w).reserved_bytes, 0);
}

static void test_a_pool_in_use_keeps_its_memory(rondo_test *t) {
    world w;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = rondo_stream_default(w.device);
    rondo_pool_id id = begin_thread(t, &w);
    give(t, &w, take(t, s, 1000));
    T_OK(t, rondo_memory_pool_end(w.device, id));
    T_OK(t, rondo_memory_trim(w.device));
    uint64_t bytes = figures_of(t, &w, id).reserved_bytes;
    if (!rondo_test_failing(t)) T_EQ(t, bytes, 2 * MIB);
    char *a = take(t, s, 1000);
    T_TRUE(t, pool_of(&w, a).user == 0);
    give(t, &w, a);
    T_OK(t, rondo_memory_pool_release(w.device, id));
    T_OK(t, rondo_memory_trim(w.device));
    T_EQ(t, figures(t, &w).reserved_bytes, 0);
}

/* A private pool takes over free segments of the device's own pool, whole ones alone. */
static void test_a_pool_takes_over_whole_segments(rondo_test *t) {
    world w;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = rondo_stream_default(w.device);
    char *whole = take(t, s, 40 * MIB);
    give(t, &w, whole);
    char *half = take(t, s, 20 * MIB);
    (void)begin_thread(t, &w);
    char *a = take(t, s, 3 * MIB); /* would have its segment of 20 MiB in the other half */
    T_TRUE(t, a < whole || a >= whole + 40 * MIB);
    T_EQ(t, figures(t, &w).reserved_bytes, 60 * MIB);
    give(t, &w, half);
    char *b = take(t, s, 40 * MIB);
    T_TRUE(t, b == whole);
    T_EQ(t, figures(t, &w).reserved_bytes, 60 * MIB);
    give(t, &w, a);
    give(t, &w, b);
}

static bool live_is(rondo_test *t, world *w, rondo_pool_id id, const void *const *expected, uint64_t count) {
    bool equal = false;
    T_OK(t, rondo_memory_pool_live(w->device, id, expected, count, &equal));
    return equal;
}

/* The number of a stream comes again; the diversion was of the stream. */
static void test_a_stream_that_went_diverts_nothing(rondo_test *t) {
    world w;
    rondo_stream *gone = NULL, *next = NULL;
    rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
    world_open(t, &w, "cpu", NULL);
    rondo_pool_id id = rondo_pool_handle(w.instance);
    T_OK(t, rondo_stream_create(w.device, NULL, &gone));
    uint64_t number = gone->id;
    filter.kind = RONDO_MEMORY_FILTER_STREAM;
    filter.stream = gone;
    rondo_status status = rondo_memory_pool_begin(w.device, id, &filter);
    rondo_stream_release(gone);
    T_OK(t, status);
    T_OK(t, rondo_stream_create(w.device, NULL, &next));
    T_DEFER(t, rondo_stream_release, next);
    T_EQ(t, next->id, number);
    char *a = take(t, next, 1000);
    T_EQ(t, rondo__memory_pool_of(w.memory, address_of(a)).user, 0);
    give(t, &w, a);
    T_OK(t, rondo_memory_pool_end(w.device, id));
    filter.stream = next;
    T_OK(t, rondo_memory_pool_begin(w.device, id, &filter));
    a = take(t, next, 1000);
    T_EQ(t, rondo__memory_pool_of(w.memory, address_of(a)).user, id.user);
    give(t, &w, a);
}

static void test_live_blocks_are_compared(rondo_test *t) {
    world w;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = rondo_stream_default(w.device);
    char *outside = take(t, s, 100);
    rondo_pool_id id = begin_thread(t, &w);
    T_TRUE(t, live_is(t, &w, id, NULL, 0));
    const void *all[] = {take(t, s, 100), take(t, s, 2000), take(t, s, 2 * MIB), outside};
    T_TRUE(t, live_is(t, &w, id, all, 3));
    T_TRUE(t, !live_is(t, &w, id, all, 2));
    T_TRUE(t, !live_is(t, &w, id, all, 4));
    T_TRUE(t, !live_is(t, &w, id, all + 1, 3));
    const void *twice[] = {all[0], all[1], all[1]}, *inside[] = {all[0], all[1], (const char *)all[2] + 1};
    T_TRUE(t, !live_is(t, &w, id, twice, 3) && !live_is(t, &w, id, inside, 3));
    give(t, &w, (void *)(uintptr_t)all[1]);
    T_TRUE(t, !live_is(t, &w, id, all, 3));
    const void *left[] = {all[2], all[0]};
    T_TRUE(t, live_is(t, &w, id, left, 2));
    for (int i = 0; i < 4; i++) {
        if (i != 1) give(t, &w, (void *)(uintptr_t)all[i]);
    }
}

/* Blocks of a graph's own pool are temporaries: only the end of the pool makes the graph stale. */
static void test_own_blocks_do_not_make_stale(rondo_test *t) {
    static rondo__memory_watcher own, other;
    world w;
    rondo__memory_reference r, foreign;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = rondo_stream_default(w.device);
    rondo_pool_id id = begin_thread(t, &w);
    rondo__memory_watcher_init(&own, 1);
    rondo__memory_watcher_init(&other, 2);
    own.pool = id;
    char *a = take(t, s, 1000), *b = take(t, s, 1000);
    rondo_status status = rondo__memory_resolve(w.memory, address_of(a), 0, &own, &r);
    if (!status) status = rondo__memory_resolve(w.memory, address_of(a), 0, &other, &foreign);
    give(t, &w, a);
    if (!status) {
        T_EQ(t, atomic_load(&own.stale), RONDO__STALE_NOT);
        T_EQ(t, atomic_load(&other.stale), RONDO__STALE_FREED);
        T_TRUE(t, !rondo__memory_alive(w.memory, &r));
        T_TRUE(t, r.temporary && rondo__memory_alive_for(w.memory, &r, &own));
        T_TRUE(t, !foreign.temporary && !rondo__memory_alive_for(w.memory, &foreign, &other));
        T_TRUE(t, !rondo__memory_alive_for(w.memory, &foreign, &own)); /* it was none of its temporaries */
        char *c = take(t, s, 1000); /* and its reuse within the pool does not either */
        give(t, &w, c);
        T_EQ(t, atomic_load(&own.stale), RONDO__STALE_NOT);
    }
    T_OK(t, rondo_memory_pool_end(w.device, id));
    T_OK(t, rondo_memory_pool_release(w.device, id));
    if (!status) T_EQ(t, atomic_load(&own.stale), RONDO__STALE_POOL_RELEASED); /* although a block of it is alive */
    give(t, &w, b);
    if (!status) T_TRUE(t, !rondo__memory_alive_for(w.memory, &r, &own));
    rondo__memory_unwatch(w.memory, &own);
    rondo__memory_unwatch(w.memory, &other);
    T_OK(t, status);
}

/* Pinned host memory has pools by the same ids, apart from the device's. */
static void test_pinned_memory_has_pools(rondo_test *t) {
    world w;
    void *a = NULL, *b = NULL;
    rondo_memory_statistics s = RONDO_MEMORY_STATISTICS_INIT;
    world_open(t, &w, "sim", NULL);
    rondo_pool_id id = rondo_pool_handle(w.instance);
    T_OK(t, rondo__memory_pinned_begin(w.memory, id, &by_thread));
    T_OK(t, rondo_memory_host_allocate(w.device, 1000, &a));
    T_OK(t, rondo__memory_pinned_end(w.memory, id));
    T_OK(t, rondo_memory_host_allocate(w.device, 1000, &b));
    T_OK(t, rondo__memory_pinned_statistics(w.memory, id, &s));
    T_EQ(t, s.requested_bytes, 1000);
    T_OK(t, rondo__memory_pinned_statistics(w.memory, (rondo_pool_id){0, 0}, &s));
    T_EQ(t, s.requested_bytes, 2000);
    T_OK(t, rondo_memory_host_free(w.device, a));
    T_OK(t, rondo_memory_host_free(w.device, b));
    T_OK(t, rondo__memory_pinned_release(w.memory, id));
    T_OK(t, rondo__memory_check(w.memory));
    T_OK(t, rondo_memory_trim(w.device));
    T_OK(t, rondo__memory_pinned_statistics(w.memory, (rondo_pool_id){0, 0}, &s));
    T_EQ(t, s.reserved_bytes, 0);
}

/* A pool that its owner keeps takes graph after graph, each with pinned memory of its own. */
static void test_a_kept_pool_takes_pinned_memory_again(rondo_test *t) {
    world w;
    world_open(t, &w, "sim", NULL);
    rondo_stream *stream = NULL;
    rondo_graph *graph = NULL;
    rondo_pool_id id = rondo_pool_handle(w.instance);
    T_OK(t, rondo_stream_create(w.device, NULL, &stream));
    T_OK(t, rondo_graph_create(w.device, NULL, &graph));
    T_OK(t, rondo_memory_pool_begin(w.device, id, &by_thread));
    T_OK(t, rondo_memory_pool_end(w.device, id));
    for (int round = 0; round < 3; round++) {
        void *pinned = NULL;
        T_OK(t, rondo_graph_capture_begin(graph, stream, id, RONDO_CAPTURE_MODE_RELAXED));
        T_OK(t, rondo_memory_host_allocate(w.device, 1000, &pinned));
        T_OK(t, rondo_graph_capture_end(graph, stream));
        T_OK(t, rondo_memory_host_free(w.device, pinned));
        rondo_graph_reset(graph);
    }
    rondo_graph_release(graph);
    T_OK(t, rondo_memory_pool_release(w.device, id));
    T_FAILS(t, rondo_memory_pool_begin(w.device, id, &by_thread), NOT_FOUND, NULL);
    T_OK(t, rondo__memory_check(w.memory));
    rondo_stream_release(stream);
}

RONDO_TEST_MAIN(T(test_ids_and_filters_are_checked), T(test_uses_are_counted), T_PLAIN(test_released_ids_stay_released),
                T(test_the_newest_diversion_wins), T_PLAIN(test_a_thread_diverts_itself_alone),
                T_PLAIN(test_memory_of_a_released_pool_is_used_again), T(test_a_pool_in_use_keeps_its_memory),
                T_PLAIN(test_a_pool_takes_over_whole_segments), T(test_live_blocks_are_compared),
                T(test_a_stream_that_went_diverts_nothing), T(test_own_blocks_do_not_make_stale),
                T(test_pinned_memory_has_pools), T_PLAIN(test_a_kept_pool_takes_pinned_memory_again))
