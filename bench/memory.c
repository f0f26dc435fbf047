/* SPDX-License-Identifier: Apache-2.0
 *
 * What a block costs that is there already: allocate and free, in turns with the C library's pair behind a mutex of the
 * same kind. And what a checkpoint of a pool of ten thousand blocks costs, and its way back. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "bench.h"

/* Turns are short, so that what else the machine does meets either side of a turn alike, or falls out of the median. */
enum { HIT_TURNS = 501, HIT_ROUNDS = 400, POOL_BLOCKS = 10000, POOL_ROUNDS = 51 };

static double hit_ours(const bench_setup *setup, uint64_t size) {
    uint64_t start = bench_now_ns();
    for (int i = 0; i < HIT_ROUNDS; ++i) {
        void *block;
        bench_must(rondo_memory_allocate_on(setup->stream, size, &block));
        bench_must(rondo_memory_free(setup->device, block));
    }
    return (double)(bench_now_ns() - start) / (double)HIT_ROUNDS;
}

static double hit_theirs(pthread_mutex_t *mutex, uint64_t size) {
    uint64_t start = bench_now_ns();
    for (int i = 0; i < HIT_ROUNDS; ++i) {
        (void)pthread_mutex_lock(mutex);
        char *volatile block = malloc(size);
        (void)pthread_mutex_unlock(mutex);
        (void)pthread_mutex_lock(mutex);
        free(block);
        (void)pthread_mutex_unlock(mutex);
    }
    return (double)(bench_now_ns() - start) / (double)HIT_ROUNDS;
}

/* The ratio is the median of the turns' own ratios: both sides of a turn are measured within some 20 us, the one first
 * that was second in the turn before. */
static void hit_row(const bench_setup *setup, bench_report *report, const char *name, uint64_t size) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static double ours[HIT_TURNS], theirs[HIT_TURNS], ratios[HIT_TURNS];
    if (!bench_wants(report, name)) return;
    (void)hit_ours(setup, size); /* the segment is there from now on, and their threshold has settled */
    (void)hit_theirs(&mutex, size);
    for (int i = 0; i < HIT_TURNS; ++i) {
        if (i % 2) theirs[i] = hit_theirs(&mutex, size);
        ours[i] = hit_ours(setup, size);
        if (i % 2 == 0) theirs[i] = hit_theirs(&mutex, size);
        ratios[i] = ours[i] / theirs[i];
    }
    double value = bench_median(ours, HIT_TURNS), peer = bench_median(theirs, HIT_TURNS);
    bench_row row = {.value = value, .unit = "ns", .ratio = bench_median(ratios, HIT_TURNS), .bar = 3};
    row.bar_on_ratio = true;
    (void)snprintf(row.name, sizeof row.name, "%s", name);
    (void)snprintf(row.note, sizeof row.note,
                   "allocate and free; malloc and free behind a mutex take %.1f ns; turns' ratios %.2f to %.2f", peer,
                   ratios[HIT_TURNS / 10], ratios[HIT_TURNS - HIT_TURNS / 10]);
    bench_add(report, &row);
}

static void pool_row(bench_report *report, const char *name, double *samples, const char *note) {
    bench_row row = {.value = bench_median(samples, POOL_ROUNDS) / 1e6, .unit = "ms", .ratio = (double)NAN, .bar = 1};
    if (!bench_wants(report, name)) return;
    (void)snprintf(row.name, sizeof row.name, "%s", name);
    (void)snprintf(row.note, sizeof row.note, "%s", note);
    bench_add(report, &row);
}

/* Sizes differ, every other block is alive at the checkpoint, and all are freed before the way back. */
static void pool_rows(const bench_setup *setup, bench_report *report) {
    static void *blocks[POOL_BLOCKS];
    double create[POOL_ROUNDS], restore[POOL_ROUNDS];
    rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
    rondo_pool_id pool = rondo_pool_handle(setup->instance);
    if (!bench_wants(report, "checkpoint_10000") && !bench_wants(report, "restore_10000")) return;
    bench_must(rondo_memory_pool_begin(setup->device, pool, &filter));
    for (int i = 0; i < POOL_BLOCKS; ++i) {
        bench_must(rondo_memory_allocate_on(setup->stream, 512u * (1u + (uint64_t)i * 7u % 5u), &blocks[i]));
    }
    for (int i = 0; i < POOL_BLOCKS; i += 2) bench_must(rondo_memory_free(setup->device, blocks[i]));
    for (int round = 0; round < POOL_ROUNDS; ++round) {
        rondo_memory_checkpoint *checkpoint;
        rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
        uint64_t start = bench_now_ns();
        bench_must(rondo_memory_checkpoint_create(setup->device, pool, &checkpoint));
        create[round] = (double)(bench_now_ns() - start);
        for (int i = 1; i < POOL_BLOCKS; i += 2) bench_must(rondo_memory_free(setup->device, blocks[i]));
        start = bench_now_ns();
        bench_must(rondo_memory_checkpoint_restore(checkpoint, &delta));
        restore[round] = (double)(bench_now_ns() - start);
        rondo_memory_delta_release(setup->device, &delta);
        rondo_memory_checkpoint_release(checkpoint);
    }
    for (int i = 1; i < POOL_BLOCKS; i += 2) bench_must(rondo_memory_free(setup->device, blocks[i]));
    bench_must(rondo_memory_pool_end(setup->device, pool));
    bench_must(rondo_memory_pool_release(setup->device, pool));
    pool_row(report, "checkpoint_10000", create, "of a pool of 10,000 blocks");
    pool_row(report, "restore_10000", restore, "5,000 blocks come back and cut up what is free");
}

void bench_memory(const bench_setup *setup, bench_report *report) {
    hit_row(setup, report, "alloc_hit_512", 512);
    hit_row(setup, report, "alloc_hit_64k", 65536);
    hit_row(setup, report, "alloc_hit_4m", 4u << 20);
    pool_rows(setup, report);
}
