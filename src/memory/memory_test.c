/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocation table of real devices: what an address means, who is told when it stops meaning it. */
#include "memory/memory.h"

#include <pthread.h>
#include <stdio.h>

#include "harness/harness.h"

typedef struct world {
    rondo_instance *instance;
    rondo_device *device;
} world;

static void world_close(world *w) {
    rondo_device_release(w->device);
    rondo_instance_release(w->instance);
}

static void world_open(rondo_test *t, world *w, const char *name) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    *w = (world){0};
    options.allocator = rondo_test_allocator(t);
    options.ignore_plugin_path = 1;
    T_DEFER(t, world_close, w);
    T_OK(t, rondo_instance_create(&options, &w->instance));
    T_OK(t, rondo_device_open(w->instance, name, NULL, &w->device));
}

typedef struct watched {
    world *world;
    rondo__memory_watcher watcher;
} watched;

static void watched_close(watched *w) { rondo__memory_unwatch(w->world->device->memory, &w->watcher); }

static void watched_open(rondo_test *t, watched *w, world *where, uint64_t id) {
    w->world = where;
    rondo__memory_watcher_init(&w->watcher, id);
    T_DEFER(t, watched_close, w);
}

static uint64_t address_of(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

static bool is_stale(watched *w) { return atomic_load(&w->watcher.stale) != 0; }

static void check_public_calls(rondo_test *t, const char *name) {
    world w;
    void *a = NULL, *b = NULL, *pinned = NULL;
    uint64_t bytes = 9, count = 9;
    world_open(t, &w, name);
    T_OK(t, rondo_memory_allocate(w.device, 100, &a));
    T_OK(t, rondo_memory_allocate(w.device, 1, &b));
    T_EQ(t, address_of(a) % rondo_device_info(w.device)->allocation_alignment, 0);
    T_EQ(t, address_of(b) % rondo_device_info(w.device)->allocation_alignment, 0);
    rondo_memory_usage(w.device, &bytes, &count);
    T_EQ(t, bytes, 101);
    T_EQ(t, count, 2);
    T_OK(t, rondo_memory_host_allocate(w.device, 64, &pinned));
    rondo_memory_usage(w.device, &bytes, &count);
    T_EQ(t, bytes, 101); /* host memory is not the device's */
    T_TRUE(t, rondo__memory_is_pinned(w.device->memory, pinned, 64));
    T_TRUE(t, rondo__memory_is_pinned(w.device->memory, (char *)pinned + 63, 1));
    T_TRUE(t, !rondo__memory_is_pinned(w.device->memory, pinned, 65));
    T_TRUE(t, !rondo__memory_is_pinned(w.device->memory, a, 1));
    T_FAILS(t, rondo_memory_free(w.device, pinned), INVALID_ARGUMENT, "not the start of a live allocation");
    T_FAILS(t, rondo_memory_host_free(w.device, a), INVALID_ARGUMENT, "not the start of a live host allocation");
    T_FAILS(t, rondo_memory_free(w.device, (char *)a + 1), INVALID_ARGUMENT, "not the start");
    T_FAILS(t, rondo_memory_free(w.device, NULL), INVALID_ARGUMENT, "not the start");
    T_FAILS(t, rondo_memory_allocate(w.device, 0, &a), INVALID_ARGUMENT, "above 0");
    T_FAILS(t, rondo_memory_allocate(NULL, 1, &a), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_memory_allocate(w.device, 1, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_memory_allocate(w.device, UINT64_MAX, &b), OUT_OF_MEMORY, NULL);
    T_FAILS(t, rondo_memory_allocate(w.device, ((uint64_t)1 << 63) + 1, &b), OUT_OF_MEMORY, NULL);
    T_OK(t, rondo_memory_free(w.device, a));
    T_FAILS(t, rondo_memory_free(w.device, a), INVALID_ARGUMENT, "not the start");
    T_OK(t, rondo_memory_host_free(w.device, pinned));
    T_FAILS(t, rondo_memory_host_free(w.device, pinned), INVALID_ARGUMENT, NULL);
    T_OK(t, rondo_memory_free(w.device, b));
    rondo_memory_usage(w.device, &bytes, &count);
    T_EQ(t, bytes, 0);
    T_EQ(t, count, 0);
}

static void test_public_calls_on_cpu(rondo_test *t) { check_public_calls(t, "cpu"); }

static void test_public_calls_on_sim(rondo_test *t) { check_public_calls(t, "sim"); }

static void test_big_blocks_are_usable(rondo_test *t) {
    world w;
    void *a = NULL;
    world_open(t, &w, "cpu");
    T_OK(t, rondo_memory_allocate(w.device, (3u << 20) + 5u, &a));
    T_EQ(t, address_of(a) % (2u << 20), 0);
    memset(a, 1, (3u << 20) + 5u);
    T_OK(t, rondo_memory_free(w.device, a));
}

static void test_resolves_every_byte(rondo_test *t) {
    world w;
    watched x;
    void *a = NULL;
    char foreign[4];
    rondo__memory_reference r;
    world_open(t, &w, "cpu");
    watched_open(t, &x, &w, 1);
    T_OK(t, rondo_memory_allocate(w.device, 256, &a));
    rondo__memory *memory = w.device->memory;
    for (int pass = 0; pass < 2; pass++) { /* the second pass is answered from what the watcher remembers */
        for (uint64_t i = 0; i < 256; i += 5) {
            T_OK(t, rondo__memory_resolve(memory, address_of(a) + i, 256 - i, &x.watcher, &r));
            T_EQ(t, r.base, address_of(a));
            T_EQ(t, r.size, 256);
            T_OK(t, rondo__memory_resolve(memory, address_of(a) + i, 0, &x.watcher, &r));
            T_EQ(t, r.base, address_of(a));
            T_FAILS(t, rondo__memory_resolve(memory, address_of(a) + i, 257 - i, &x.watcher, &r), OUT_OF_RANGE,
                    "cross an end of the allocation of 256 bytes");
        }
    }
    T_OK(t, rondo__memory_resolve(memory, address_of(foreign), 4, &x.watcher, &r));
    T_EQ(t, r.base, 0);
    T_TRUE(t, rondo__memory_alive(memory, &r));
    /* Starts before ours and runs into it. */
    T_FAILS(t, rondo__memory_resolve(memory, address_of(a) - 1, 2, &x.watcher, &r), OUT_OF_RANGE, "cross an end");
    T_OK(t, rondo__memory_resolve(memory, address_of(a) - 1, 1, &x.watcher, &r));
    T_EQ(t, r.base, 0);
    T_TRUE(t, !is_stale(&x));
}

static void test_freed_memory_is_stale_and_explained(rondo_test *t) {
    world w;
    watched x, y, z;
    void *a = NULL, *b = NULL;
    char text[256];
    rondo__memory_reference ra, rb, again;
    world_open(t, &w, "sim");
    watched_open(t, &x, &w, 1);
    watched_open(t, &y, &w, 2);
    watched_open(t, &z, &w, 3);
    rondo__memory *memory = w.device->memory;
    T_OK(t, rondo_memory_allocate(w.device, 4096, &a));
    T_OK(t, rondo_memory_allocate(w.device, 64, &b));
    T_OK(t, rondo__memory_resolve(memory, address_of(a), 0, &x.watcher, &ra));
    T_OK(t, rondo__memory_resolve(memory, address_of(a) + 5, 1, &y.watcher, &ra));
    T_OK(t, rondo__memory_resolve(memory, address_of(b), 0, &x.watcher, &rb));
    T_OK(t, rondo__memory_resolve(memory, address_of(b), 0, &z.watcher, &rb));
    T_OK(t, rondo__memory_resolve(memory, address_of(a), 0, NULL, &ra)); /* looks only */
    rondo__memory_explain(memory, &ra, text, sizeof text);
    T_STR(t, text, "alive");
    T_OK(t, rondo_memory_free(w.device, a));
    T_TRUE(t, is_stale(&x) && is_stale(&y) && !is_stale(&z));
    T_TRUE(t, !rondo__memory_alive(memory, &ra) && rondo__memory_alive(memory, &rb));
    rondo__memory_explain(memory, &ra, text, sizeof text);
    T_STR(t, text, "freed by rondo_memory_free, 1st free of the device; now part of no allocation");
    /* What the watcher remembered of it is forgotten. */
    T_OK(t, rondo__memory_resolve(memory, address_of(a), 0, &x.watcher, &again));
    T_EQ(t, again.base, 0);
    T_OK(t, rondo_memory_free(w.device, b));
    T_TRUE(t, is_stale(&z));
    rondo__memory_explain(memory, &rb, text, sizeof text);
    T_STR(t, text, "freed by rondo_memory_free, 2nd free of the device; now part of no allocation");
    rondo__memory_explain(memory, &(rondo__memory_reference){0}, text, sizeof text);
    T_STR(t, text, "not memory of this device's allocator");
    rondo__memory_explain(memory, &rb, text, 10);
    T_STR(t, text, "freed by ");
}

static void test_pinned_memory_goes_stale_too(rondo_test *t) {
    world w;
    watched x;
    void *a = NULL;
    char text[256];
    rondo__memory_reference r;
    world_open(t, &w, "cpu");
    watched_open(t, &x, &w, 1);
    T_OK(t, rondo_memory_host_allocate(w.device, 32, &a));
    T_OK(t, rondo__memory_resolve(w.device->memory, address_of(a) + 8, 8, &x.watcher, &r));
    T_EQ(t, r.base, address_of(a));
    T_OK(t, rondo_memory_host_free(w.device, a));
    T_TRUE(t, is_stale(&x));
    rondo__memory_explain(w.device->memory, &r, text, sizeof text);
    T_STR(t, text, "freed by rondo_memory_host_free, 1st free of the device; now part of no allocation");
}

static void test_unwatched_is_not_told(rondo_test *t) {
    world w;
    watched x;
    void *a = NULL;
    rondo__memory_reference r;
    world_open(t, &w, "cpu");
    watched_open(t, &x, &w, 1);
    T_OK(t, rondo_memory_allocate(w.device, 8, &a));
    T_OK(t, rondo__memory_resolve(w.device->memory, address_of(a), 0, &x.watcher, &r));
    rondo__memory_unwatch(w.device->memory, &x.watcher);
    rondo__memory_unwatch(w.device->memory, &x.watcher);
    T_OK(t, rondo_memory_free(w.device, a));
    T_TRUE(t, !is_stale(&x));
    /* Watching anew does not trust what was remembered before. */
    T_OK(t, rondo_memory_allocate(w.device, 8, &a));
    T_OK(t, rondo__memory_resolve(w.device->memory, address_of(a), 0, &x.watcher, &r));
    rondo__memory_unwatch(w.device->memory, &x.watcher);
    T_OK(t, rondo__memory_resolve(w.device->memory, address_of(a), 0, &x.watcher, &r));
    T_OK(t, rondo_memory_free(w.device, a));
    T_TRUE(t, is_stale(&x));
}

static void test_left_memory_is_freed_with_a_line(rondo_test *t) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    rondo_instance *instance = NULL;
    rondo_device *device = NULL;
    void *a = NULL;
    options.allocator = rondo_test_allocator(t);
    options.ignore_plugin_path = 1;
    T_OK(t, rondo_instance_create(&options, &instance));
    rondo_status status = rondo_device_open(instance, "sim", NULL, &device);
    if (!status) status = rondo_memory_allocate(device, 100, &a);
    if (!status) status = rondo_memory_host_allocate(device, 100, &a);
    rondo_device_release(device); /* the harness sees that nothing is left */
    rondo_instance_release(instance);
    T_OK(t, status);
}

/* ------------------------------------------------------------------------------------------ against a naive model */

#define BUFFERS 40
#define WATCHERS 12

typedef struct naive {
    world w;
    rondo__memory_watcher watchers[WATCHERS];
    bool stale[WATCHERS];
    void *pointers[BUFFERS];
    uint64_t sizes[BUFFERS];
    rondo__memory_reference references[BUFFERS]; /* of the first resolve since it was allocated */
    bool mentions[BUFFERS][WATCHERS];
} naive;

static naive the_naive;

static void naive_close(naive *n) {
    for (int i = 0; i < WATCHERS; i++) rondo__memory_unwatch(n->w.device->memory, &n->watchers[i]);
}

static void naive_toggle(rondo_test *t, naive *n, size_t i) {
    if (n->pointers[i]) {
        T_OK(t, rondo_memory_free(n->w.device, n->pointers[i]));
        n->pointers[i] = NULL;
        for (int j = 0; j < WATCHERS; j++) {
            if (n->mentions[i][j]) n->stale[j] = true;
            n->mentions[i][j] = false;
        }
        if (n->references[i].base) T_TRUE(t, !rondo__memory_alive(n->w.device->memory, &n->references[i]));
        n->references[i].base = 0;
    } else {
        n->sizes[i] = 1 + rondo_test_random(t) % 500;
        T_OK(t, rondo_memory_allocate(n->w.device, n->sizes[i], &n->pointers[i]));
    }
}

static void naive_resolve(rondo_test *t, naive *n, size_t i, size_t j) {
    rondo__memory_reference r;
    if (!n->pointers[i]) return;
    uint64_t offset = rondo_test_random(t) % n->sizes[i], length = rondo_test_random(t) % (n->sizes[i] - offset + 1);
    T_OK(t,
         rondo__memory_resolve(n->w.device->memory, address_of(n->pointers[i]) + offset, length, &n->watchers[j], &r));
    T_EQ(t, r.base, address_of(n->pointers[i]));
    T_EQ(t, r.size, n->sizes[i]);
    if (n->references[i].base) T_EQ(t, r.generation, n->references[i].generation);
    n->references[i] = r;
    n->mentions[i][j] = true;
}

/* The watcher's graph goes and another comes. */
static void naive_renew(naive *n, size_t j) {
    rondo__memory_unwatch(n->w.device->memory, &n->watchers[j]);
    atomic_store(&n->watchers[j].stale, 0u);
    n->stale[j] = false;
    for (int i = 0; i < BUFFERS; i++) n->mentions[i][j] = false;
}

static void check_naive(rondo_test *t, const char *name) {
    naive *n = &the_naive;
    *n = (naive){0};
    world_open(t, &n->w, name);
    for (int j = 0; j < WATCHERS; j++) rondo__memory_watcher_init(&n->watchers[j], (uint64_t)j + 1);
    T_DEFER(t, naive_close, n);
    for (int step = 0; step < 20000; step++) {
        size_t i = rondo_test_random(t) % BUFFERS, j = rondo_test_random(t) % WATCHERS;
        switch (rondo_test_random(t) % 16) {
        case 0: naive_toggle(t, n, i); break;
        case 1: naive_renew(n, j); break;
        default: naive_resolve(t, n, i, j); break;
        }
        for (j = 0; j < WATCHERS; j++) T_EQ(t, atomic_load(&n->watchers[j].stale), n->stale[j]);
    }
}

static void test_agrees_with_a_naive_model_on_cpu(rondo_test *t) { check_naive(t, "cpu"); }

static void test_agrees_with_a_naive_model_on_sim(rondo_test *t) { check_naive(t, "sim"); }

/* ------------------------------------------------------------------------------------------------------ threads */

typedef struct worker {
    world *w;
    uint64_t seed;
    int failures;
} worker;

static void *worker_run(void *argument) {
    worker *self = argument;
    rondo__memory_watcher watcher;
    rondo__memory_watcher_init(&watcher, self->seed);
    for (int i = 0; i < 500; i++) {
        rondo__memory_reference r;
        void *a = NULL;
        rondo_status status = rondo_memory_allocate(self->w->device, 1 + self->seed * 16, &a);
        if (!status) status = rondo__memory_resolve(self->w->device->memory, address_of(a), 0, &watcher, &r);
        if (status || r.base != address_of(a) || atomic_load(&watcher.stale)) self->failures++;
        rondo_status_release(status);
        rondo_status_release(rondo_memory_free(self->w->device, a));
        if (!atomic_load(&watcher.stale)) self->failures++;
        atomic_store(&watcher.stale, 0u);
    }
    rondo__memory_unwatch(self->w->device->memory, &watcher);
    return NULL;
}

static void check_threads(rondo_test *t, const char *name) {
    world w;
    worker workers[4];
    pthread_t threads[4];
    world_open(t, &w, name);
    for (uint64_t i = 0; i < 4; i++) {
        workers[i] = (worker){&w, i + 1, 0};
        T_EQ(t, pthread_create(&threads[i], NULL, worker_run, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) T_EQ(t, workers[i].failures, 0);
}

static void test_threads_on_cpu(rondo_test *t) { check_threads(t, "cpu"); }

static void test_threads_on_sim(rondo_test *t) { check_threads(t, "sim"); }

static void test_pool_handles_are_unique(rondo_test *t) {
    world w;
    world_open(t, &w, "cpu");
    rondo_pool_id a = rondo_pool_handle(w.instance), b = rondo_pool_handle(w.instance), none = rondo_pool_handle(NULL);
    T_TRUE(t, a.user && b.user && a.user != b.user && !a.automatic && !b.automatic);
    T_TRUE(t, !none.user && !none.automatic);
}

RONDO_TEST_MAIN(T(test_public_calls_on_cpu), T(test_public_calls_on_sim), T(test_big_blocks_are_usable),
                T(test_resolves_every_byte), T(test_freed_memory_is_stale_and_explained),
                T(test_pinned_memory_goes_stale_too), T(test_unwatched_is_not_told),
                T(test_left_memory_is_freed_with_a_line), T_PLAIN(test_agrees_with_a_naive_model_on_cpu),
                T_PLAIN(test_agrees_with_a_naive_model_on_sim), T_PLAIN(test_threads_on_cpu),
                T_PLAIN(test_threads_on_sim), T(test_pool_handles_are_unique))
