/* SPDX-License-Identifier: Apache-2.0
 *
 * What nobody has been given is poisoned, and what work in flight still uses is not. */
#include "memory/memory_testing.h"

/* As backends/sim writes them. */
#define RONDO__SIM_FRESH 0xCD
#define RONDO__SIM_FREED 0xDB

#if defined(__SANITIZE_ADDRESS__)
#define CHECKED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHECKED 1
#endif
#endif

#ifdef CHECKED
int __asan_address_is_poisoned(const volatile void *address);
static bool is_poisoned(const void *pointer) { return __asan_address_is_poisoned(pointer) != 0; }
#endif

static bool is_all(const unsigned char *bytes, uint64_t count, unsigned char value) {
    for (uint64_t i = 0; i < count; i++) {
        if (bytes[i] != value) return false;
    }
    return true;
}

/* A block of no stream out of a pool: it is freed after a wait, so the backend may overwrite it. */
static void test_the_backend_is_told_of_reuse(rondo_test *t) {
    world w;
    void *a = NULL, *b = NULL;
    world_open(t, &w, "sim", NULL);
    (void)begin_thread(t, &w);
    T_OK(t, rondo_memory_allocate(w.device, 1000, &a));
    unsigned char *bytes = a;
    T_TRUE(t, is_all(bytes, 1000, RONDO__SIM_FRESH));
    if (rondo_test_failing(t)) return;
    T_TRUE(t, is_all(bytes + 1000, 2000, RONDO__SIM_FREED)); /* nobody's so far */
    memset(bytes, 1, 1000);
    T_OK(t, rondo_memory_free(w.device, a));
    T_TRUE(t, is_all(bytes, 1000, RONDO__SIM_FREED));
    T_OK(t, rondo_memory_allocate(w.device, 900, &b));
    T_TRUE(t, a == b && is_all(bytes, 900, RONDO__SIM_FRESH) && is_all(bytes + 900, 100, RONDO__SIM_FREED));
}

/* A block of a stream is freed while its work has not run: nothing may be written there. */
static void test_work_in_flight_is_left_alone(rondo_test *t) {
    world w;
    char host[64] = {0};
    world_open(t, &w, "sim", NULL);
    rondo_stream *s = world_stream(t, &w);
    char *a = take(t, s, 64);
    T_OK(t, rondo_stream_fill(s, a, 7, 64));
    T_OK(t, rondo_stream_synchronize(s));
    T_OK(t, rondo_stream_copy(s, host, a, 64, RONDO_COPY_DEVICE_TO_HOST));
    give(t, &w, a);
    char *b = take(t, s, 64); /* the next owner's work comes after in the same stream */
    T_OK(t, rondo_stream_fill(s, b, 8, 64));
    T_OK(t, rondo_stream_synchronize(s));
    T_TRUE(t, is_all((unsigned char *)host, 64, 7));
    give(t, &w, b);
}

/* What replays wrote into a block while it was not live is there when a restore makes it live again. */
static void test_a_restore_leaves_contents(rondo_test *t, const char *device) {
    world w;
    void *a = NULL, *b = NULL;
    rondo_memory_checkpoint *checkpoint = NULL;
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    world_open(t, &w, device, NULL);
    rondo_pool_id pool = begin_thread(t, &w);
    T_OK(t, rondo_memory_allocate(w.device, 1000, &a));
    b = take(t, rondo_stream_default(w.device), 1000);
    T_OK(t, rondo_memory_pool_end(w.device, pool));
    T_OK(t, rondo_memory_checkpoint_create(w.device, pool, &checkpoint));
    T_DEFER(t, rondo_memory_checkpoint_release, checkpoint);
    T_OK(t, rondo_memory_free(w.device, a));
    T_OK(t, rondo_memory_free(w.device, b));
    memset(a, 7, 1000);
    memset(b, 8, 1000);
    T_OK(t, rondo_memory_checkpoint_restore(checkpoint, &delta));
    T_EQ(t, delta.created_count, 2);
    rondo_memory_delta_release(w.device, &delta);
    T_TRUE(t, is_all(a, 1000, 7) && is_all(b, 1000, 8));
    T_OK(t, rondo_memory_free(w.device, a));
    T_OK(t, rondo_memory_free(w.device, b));
}

static void test_a_restore_leaves_contents_on_cpu(rondo_test *t) { test_a_restore_leaves_contents(t, "cpu"); }
static void test_a_restore_leaves_contents_on_sim(rondo_test *t) { test_a_restore_leaves_contents(t, "sim"); }

#ifdef CHECKED
/* Where no block of a private pool was so far, nothing may be touched; where one was, its graphs may. When the pool is gone
 * nobody may. */
static void test_the_sanitizer_knows_private_pools(rondo_test *t) {
    world w;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = rondo_stream_default(w.device);
    rondo_pool_id pool = begin_thread(t, &w);
    char *a = take(t, s, 1000), *large = take(t, s, 3 * MIB);
    T_TRUE(t, !is_poisoned(a) && !is_poisoned(a + 999) && !is_poisoned(large) && !is_poisoned(large + 3 * MIB - 1));
    if (!rondo_test_failing(t))
        T_TRUE(t, is_poisoned(a + 1000) && is_poisoned(a + 1024) && is_poisoned(large + 3 * MIB));
    give(t, &w, a);
    give(t, &w, large);
    T_TRUE(t, !is_poisoned(a) && !is_poisoned(large));
    T_OK(t, rondo_memory_pool_end(w.device, pool));
    T_OK(t, rondo_memory_pool_release(w.device, pool));
    if (!rondo_test_failing(t)) T_TRUE(t, is_poisoned(a) && is_poisoned(a + 999) && is_poisoned(large));
    T_OK(t, rondo_memory_trim(w.device));
}

static void test_the_sanitizer_knows_what_is_nobodys(rondo_test *t) {
    world w;
    void *pinned = NULL;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = rondo_stream_default(w.device);
    char *a = take(t, s, 1000), *b = take(t, s, 100);
    T_OK(t, rondo_memory_host_allocate(w.device, 100, &pinned));
    T_TRUE(t, !is_poisoned(a) && !is_poisoned(a + 999) && !is_poisoned(b));
    if (!rondo_test_failing(t))
        T_TRUE(t, is_poisoned(a + 1000) && is_poisoned(b + 104) && is_poisoned((char *)pinned + 104));
    give(t, &w, a);
    T_TRUE(t, is_poisoned(a) && is_poisoned(a + 999) && !is_poisoned(b));
    T_OK(t, rondo_memory_host_free(w.device, pinned));
    T_TRUE(t, is_poisoned(pinned));
    give(t, &w, b);
    T_OK(t, rondo_memory_trim(w.device));
}
#define CHECKED_TESTS , T(test_the_sanitizer_knows_private_pools), T(test_the_sanitizer_knows_what_is_nobodys)
#else
#define CHECKED_TESTS
#endif

RONDO_TEST_MAIN(T(test_the_backend_is_told_of_reuse), T(test_work_in_flight_is_left_alone),
                T(test_a_restore_leaves_contents_on_cpu), T(test_a_restore_leaves_contents_on_sim) CHECKED_TESTS)
