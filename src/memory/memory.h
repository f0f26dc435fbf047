/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocation table of a device: which address belongs to which live allocation, of which generation, and which
 * graphs mention it. Over raw allocation so far; the caching allocator with its pools comes to stand on the same table.
 *
 * Thread-safe: one mutex a device.
 */
#ifndef RONDO_SRC_MEMORY_MEMORY_H
#define RONDO_SRC_MEMORY_MEMORY_H

#include <stdatomic.h>

#include "device/device.h"

typedef struct rondo__allocation rondo__allocation;

typedef struct rondo__memory_edge rondo__memory_edge;

/* What a resolved argument remembers. Fits a cold array of one entry an argument. */
typedef struct rondo__memory_reference {
    uint64_t base; /* start of the allocation; 0: not ours */
    uint64_t size;
    uint64_t generation; /* of the allocation; never used twice in a device */
} rondo__memory_reference;

#define RONDO__MEMORY_RECENT 8u

/* Who mentions an allocation. `stale` is set to 1 when it is freed or given out anew. One a graph. Zeroed, or init,
 * before its first use; after that the memory room's, but for `stale` and `id`. */
typedef struct rondo__memory_watcher {
    atomic_uint_least32_t stale;
    uint64_t id; /* of the capture: unique */
    /* The allocations it met last, all of them watched; good while `epoch` is the device's. Resolving one of them takes
     * no lock: only the thread that resolves looks here. */
    uint64_t epoch;
    rondo__memory_reference recent[RONDO__MEMORY_RECENT];
    uint32_t recent_next;
    rondo__memory_edge *edges; /* under the memory's mutex */
} rondo__memory_watcher;

void rondo__memory_watcher_init(rondo__memory_watcher *watcher, uint64_t id);

RONDO_MUST_USE rondo_status rondo__memory_create(rondo_device *device, rondo__memory **out_memory);
/* Frees what is still allocated (with one warning that counts it). */
void rondo__memory_destroy(rondo__memory *memory);

/* Resolves [address, address + length) (length 0: to the end) and makes `watcher` a watcher of the allocation, once.
 * Not ours: succeeds with base 0. Beyond the end of its allocation: OUT_OF_RANGE (memory). The allocations that a watcher
 * met last cost it a few nanoseconds; one watcher is used by one thread at a time. A null watcher only looks. */
RONDO_MUST_USE rondo_status rondo__memory_resolve(rondo__memory *memory, uint64_t address, uint64_t length,
                                                  rondo__memory_watcher *watcher,
                                                  rondo__memory_reference *out_reference);
/* Takes the watcher away from every allocation. */
void rondo__memory_unwatch(rondo__memory *memory, rondo__memory_watcher *watcher);
/* Whether the very allocation is still alive. True for what is not ours (base 0): nobody can tell. */
bool rondo__memory_alive(rondo__memory *memory, const rondo__memory_reference *reference);
/* "freed by rondo_memory_free, 3rd free of the device; now part of a live allocation of 4096 bytes": for messages. */
void rondo__memory_explain(rondo__memory *memory, const rondo__memory_reference *reference, char *buffer,
                           size_t capacity);
/* Pinned host memory that was allocated through rondo_memory_host_allocate: true if the range is inside one. */
bool rondo__memory_is_pinned(rondo__memory *memory, const void *pointer, uint64_t bytes);

/* For the executable's and the context's own memory: as the public functions, without touching pools of the user. */
RONDO_MUST_USE rondo_status rondo__memory_allocate(rondo__memory *memory, uint64_t size, uint64_t *out_address);
RONDO_MUST_USE rondo_status rondo__memory_free(rondo__memory *memory, uint64_t address);

#endif
