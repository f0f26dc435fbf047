/* SPDX-License-Identifier: Apache-2.0
 *
 * The room's own view of a device's memory. */
#ifndef RONDO_SRC_MEMORY_TABLE_H
#define RONDO_SRC_MEMORY_TABLE_H

#include "memory/cache.h"
#include "memory/watch.h"

#define RONDO__MEMORY_HISTORY 256u

/* How a block came to be no longer live: what becomes of its watchers, and what explain says. */
typedef enum rondo__past {
    RONDO__PAST_FREED = 1,
    RONDO__PAST_HOST_FREED = 2,
    RONDO__PAST_RESTORED = 3,
    RONDO__PAST_CLOSED = 4
} rondo__past;

/* The last frees, to explain what became of an address. */
typedef struct rondo__memory_past {
    uint64_t generation, number; /* number: the how manieth free of the device */
    rondo__past how;
} rondo__memory_past;

struct rondo__memory {
    rondo_device *device;
    rondo_allocator allocator;
    rondo__mutex mutex;
    rondo__cache cache, pinned;
    rondo__watch watch;
    uint64_t next_generation, frees;
    /* Raised by every free, before the memory goes back: what a watcher remembers is good while this stays. */
    atomic_uint_fast64_t epoch;
    rondo__memory_past history[RONDO__MEMORY_HISTORY]; /* free number n at n modulo its size */
};

/* hold.c, under the mutex: an edge to a live block. Where it is of the watcher's own pool, one to the pool's anchor, too;
 * a block that the capture took from another private pool is held. out_temporary: the pool is the watcher's own, or kept. */
RONDO_MUST_USE rondo_status rondo__watch_block(rondo__memory *memory, rondo__block *block,
                                               rondo__memory_watcher *watcher, rondo__memory_edge **out_edge,
                                               bool *out_temporary);

/* Only under the mutex is it raised. */
static inline void rondo__memory_raise_epoch(rondo__memory *memory) {
    uint_fast64_t epoch = atomic_load_explicit(&memory->epoch, memory_order_relaxed);
    atomic_store_explicit(&memory->epoch, epoch + 1u, memory_order_release);
}

#endif
