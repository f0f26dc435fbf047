/* SPDX-License-Identifier: Apache-2.0
 *
 * The room's own view of a device's memory. */
#ifndef RONDO_SRC_MEMORY_TABLE_H
#define RONDO_SRC_MEMORY_TABLE_H

#include "memory/ranges.h"
#include "memory/watch.h"

#define RONDO__MEMORY_HISTORY 256u

/* The last frees, to explain what became of an address. */
typedef struct rondo__memory_past {
    uint64_t generation, number; /* number: the how manieth free of the device */
    bool pinned;
} rondo__memory_past;

struct rondo__memory {
    rondo_device *device;
    rondo_allocator allocator;
    rondo__mutex mutex;
    rondo__ranges device_ranges, pinned_ranges;
    rondo__watch watch;
    uint64_t bytes; /* of device memory, alive */
    uint64_t next_generation, frees;
    /* Raised by every free, before the memory goes back: what a watcher remembers is good while this stays. */
    atomic_uint_fast64_t epoch;
    rondo__memory_past history[RONDO__MEMORY_HISTORY]; /* free number n at n modulo its size */
};

#endif
