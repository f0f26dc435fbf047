/* SPDX-License-Identifier: Apache-2.0
 *
 * Several threads at once: no block is two threads', none is lost, and everything adds up at the end. */
#include "memory/memory_testing.h"

#include <pthread.h>

#define THREADS 8u
#define HELD 24u

/* A thread sanitizer takes some twenty times as long. */
#if defined(__SANITIZE_THREAD__)
#define SLOWER 16u
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLOWER 16u
#endif
#endif
#ifndef SLOWER
#define SLOWER 1u
#endif

typedef struct worker {
    world *w;
    rondo_stream *stream, *other;
    uint64_t seed, steps;
    bool crowded; /* also pools, checkpoints, trims, leases, settings and figures */
    const char *problem;
    rondo_lease leases[HELD];
} worker;

static uint64_t worker_random(worker *self) {
    self->seed ^= self->seed << 13;
    self->seed ^= self->seed >> 7;
    self->seed ^= self->seed << 17;
    return self->seed;
}

static void worker_must(worker *self, rondo_status status) {
    if (status && !self->problem) self->problem = rondo_code_name(rondo_status_code(status));
    rondo_status_release(status);
}

typedef struct holding {
    unsigned char *pointer;
    uint64_t size;
    unsigned char canary;
} holding;

static bool is_host(const worker *self) {
    return (self->w->device->properties.capabilities & RONDO_DEVICE_HOST_ADDRESSABLE) != 0;
}

static void worker_take(worker *self, holding *h, rondo_lease *lease) {
    static const uint64_t most[] = {512, 4096, 64 * KIB, MIB};
    void *pointer = NULL;
    h->size = 512 + worker_random(self) % most[worker_random(self) % 4];
    worker_must(self, rondo_memory_allocate_on(self->stream, h->size, &pointer));
    h->pointer = pointer;
    if (!pointer) return;
    h->canary = (unsigned char)worker_random(self);
    if (is_host(self)) {
        /* The ends, and one byte in each 512: all that another block could overlap. */
        for (uint64_t i = 0; i < h->size; i += 512) h->pointer[i] = h->canary;
        h->pointer[h->size - 1] = h->canary;
    }
    if (self->crowded && worker_random(self) % 4 == 0) {
        worker_must(self, rondo_memory_lease(self->w->device, pointer, RONDO_LEASE_REPLAY, lease));
    }
    if (self->crowded && worker_random(self) % 4 == 0) {
        worker_must(self, rondo_memory_record_stream(self->w->device, pointer, self->other));
    }
}

static void worker_give(worker *self, holding *h, const rondo_lease *lease) {
    for (uint64_t i = 0; is_host(self) && i < h->size; i += 512) {
        if (h->pointer[i] != h->canary) self->problem = "a canary changed";
    }
    if (is_host(self) && h->pointer[h->size - 1] != h->canary) self->problem = "a canary changed";
    worker_must(self, rondo_memory_free(self->w->device, h->pointer));
    h->pointer = NULL;
    if (__atomic_load_n(&lease->block, __ATOMIC_ACQUIRE)) self->problem = "a lease outlived its block";
}

/* A pool of the thread's own, from its beginning to its end, with a checkpoint in it. */
static void worker_pool(worker *self) {
    rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
    rondo_pool_id id = rondo_pool_handle(self->w->instance);
    rondo_memory_checkpoint *checkpoint = NULL;
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    void *a = NULL, *b = NULL;
    worker_must(self, rondo_memory_pool_begin(self->w->device, id, &filter));
    worker_must(self, rondo_memory_allocate_on(self->stream, 1000, &a));
    worker_must(self, rondo_memory_checkpoint_create(self->w->device, id, &checkpoint));
    worker_must(self, rondo_memory_allocate_on(self->stream, 5000, &b));
    if (checkpoint) worker_must(self, rondo_memory_checkpoint_restore(checkpoint, &delta));
    if (delta.freed_count != 1 || delta.created_count != 0 || delta.freed[0] != b) self->problem = "a restore is wrong";
    rondo_memory_delta_release(self->w->device, &delta);
    rondo_memory_checkpoint_release(checkpoint);
    worker_must(self, rondo_memory_free(self->w->device, a));
    worker_must(self, rondo_memory_pool_end(self->w->device, id));
    worker_must(self, rondo_memory_pool_release(self->w->device, id));
}

static int32_t write_nowhere(void *user, const char *data, size_t size) {
    *(size_t *)user += size + (data[0] == '\0');
    return 0;
}

/* Settings, figures and layouts, of a device that everybody uses. */
static void worker_look(worker *self, uint64_t step) {
    static const uint32_t divisions[] = {0, 4, 16};
    rondo_memory_settings settings = RONDO_MEMORY_SETTINGS_INIT;
    rondo_memory_statistics s = RONDO_MEMORY_STATISTICS_INIT;
    rondo_device *device = self->w->device;
    uint64_t bytes = 0, count = 0;
    size_t written = 0;
    settings.roundup_divisions = divisions[step % 3];
    worker_must(self, rondo_memory_configure(device, &settings));
    worker_must(self, rondo_memory_get_statistics(device, (rondo_pool_id){0, 0}, &s));
    worker_must(self, rondo_memory_snapshot(device, (rondo_pool_id){0, 0}, write_nowhere, &written));
    rondo_memory_usage(device, &bytes, &count);
    if (s.allocated_bytes > s.reserved_bytes || !written) self->problem = "figures do not fit";
}

static void *worker_run(void *argument) {
    worker *self = argument;
    holding held[HELD] = {{0}};
    for (uint64_t step = 0; step < self->steps && !self->problem; step++) {
        uint64_t i = worker_random(self) % HELD;
        if (held[i].pointer) worker_give(self, &held[i], &self->leases[i]);
        else worker_take(self, &held[i], &self->leases[i]);
        if (self->crowded && step % 100 == 7) worker_pool(self);
        if (self->crowded && step % 250 == 9) worker_look(self, step);
        if (self->crowded && step % 1000 == 8) worker_must(self, rondo_memory_trim(self->w->device));
        if (step % 1000 == 9) worker_must(self, rondo__memory_check(self->w->memory));
    }
    for (uint64_t i = 0; i < HELD; i++) {
        if (held[i].pointer) worker_give(self, &held[i], &self->leases[i]);
    }
    return NULL;
}

/* `shared`: all on one stream, so that they cut and join each other's neighbours. */
static void check_threads(rondo_test *t, const char *device, bool shared, bool crowded, uint64_t steps) {
    static worker workers[THREADS];
    static world w;
    rondo_stream *streams[THREADS];
    pthread_t threads[THREADS];
    world_open(t, &w, device, NULL);
    for (uint32_t i = 0; i < THREADS; i++) streams[i] = world_stream(t, &w);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.w = &w,
                              .stream = streams[shared ? 0 : i],
                              .other = streams[(i + 1) % THREADS],
                              .seed = 77 + i,
                              .steps = steps / SLOWER,
                              .crowded = crowded};
        T_EQ(t, pthread_create(&threads[i], NULL, worker_run, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) (void)pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (workers[i].problem) rondo_test_fail(t, __FILE__, __LINE__, "thread %u: %s", i, workers[i].problem);
    }
    T_OK(t, rondo_memory_trim(w.device));
    rondo_memory_statistics s = figures(t, &w);
    T_EQ(t, s.allocated_bytes, 0);
    T_EQ(t, s.pending_bytes, 0);
    T_EQ(t, s.allocations, 0);
    T_EQ(t, s.inactive_bytes, 0);
    T_EQ(t, s.reserved_bytes, 0);
    T_OK(t, rondo__memory_check(w.memory));
}

/* C23: a million operations in all, on one stream. */
static void test_c23_threads_that_cut_and_join_neighbours(rondo_test *t) {
    check_threads(t, "cpu", true, false, 125000);
}

static void test_threads_with_streams_of_their_own(rondo_test *t) { check_threads(t, "cpu", false, false, 10000); }

static void test_everything_at_once_on_cpu(rondo_test *t) { check_threads(t, "cpu", false, true, 4000); }

static void test_everything_at_once_on_sim(rondo_test *t) { check_threads(t, "sim", false, true, 1500); }

RONDO_TEST_MAIN(T_PLAIN(test_c23_threads_that_cut_and_join_neighbours), T_PLAIN(test_threads_with_streams_of_their_own),
                T_PLAIN(test_everything_at_once_on_cpu), T_PLAIN(test_everything_at_once_on_sim))
