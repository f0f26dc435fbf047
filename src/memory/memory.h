/* SPDX-License-Identifier: Apache-2.0
 *
 * A device's memory for the other rooms: which address belongs to which live block, of which generation, and which
 * graphs mention it. What applications see is in runtime.h; the caching allocator underneath is cache.h.
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
    bool temporary;      /* of a pool that is the watcher's own, or kept by it */
    uint8_t note;        /* of who keeps it */
} rondo__memory_reference;

#define RONDO__MEMORY_RECENT 8u
#define RONDO__MEMORY_ENDED 8u

/* Why a watcher is stale; the greatest reason stays. The first one only says that something was freed, and whoever finds
 * that it is not mentioned any more takes it down; the others are for good, for no look at the blocks tells of them. */
enum {
    RONDO__STALE_NOT = 0,
    RONDO__STALE_FREED = 1,        /* a block was freed; its address may belong to another since */
    RONDO__STALE_RESTORED = 2,     /* its own pool was brought back to a layout without a block that it mentions */
    RONDO__STALE_POOL_RELEASED = 3 /* its own pool is gone */
};

/* Who mentions an allocation. `stale` is set to one of the above. One a graph. Zeroed, or init, before its first use;
 * after that the memory room's, but for `stale`, `id`, `pool`, `since` and `managed`.
 *
 * Blocks of the watcher's own pool are temporaries to it: it does not become stale when one is freed, only when the pool
 * is released, or restored to a layout that takes away a block that was live and is mentioned. A tree manager, which
 * restores between replays and answers for their order, sets `managed`: then a restore does not count. */
typedef struct rondo__memory_watcher {
    atomic_uint_least32_t stale;
    /* Set when a block that it met ended without making it stale: what it remembers of such addresses is no longer true.
     * rondo__memory_take_ended says which, and takes it down. */
    atomic_uint_least32_t changed;
    bool managed;
    uint64_t id;        /* of the capture: unique */
    rondo_pool_id pool; /* its own; {0, 0}: none. Set before the first resolve */
    /* The first generation of the capture, or 0. What was allocated since, in another private pool than its own, it holds
     * (rondo__memory_hold): such a block is a temporary of the capture, too, but its pool has other users, who would be
     * given it. Set before the first resolve. */
    uint64_t since;
    /* The allocations it met last, all of them watched; good while `epoch` is the device's. Resolving one of them takes
     * no lock: only the thread that resolves looks here. */
    uint64_t epoch;
    rondo__memory_reference recent[RONDO__MEMORY_RECENT];
    uint32_t recent_next;
    rondo__memory_edge *edges; /* under the memory's mutex, as the rest */
    uint32_t ended_count;      /* may pass the capacity: then nobody knows which */
    rondo__memory_reference ended[RONDO__MEMORY_ENDED];
} rondo__memory_watcher;

void rondo__memory_watcher_init(rondo__memory_watcher *watcher, uint64_t id);

/* A reason more. Any thread. */
static inline void rondo__memory_raise_stale(rondo__memory_watcher *watcher, uint_least32_t reason) {
    uint_least32_t before = atomic_load_explicit(&watcher->stale, memory_order_relaxed);
    while (before < reason && !atomic_compare_exchange_weak_explicit(&watcher->stale, &before, reason,
                                                                     memory_order_seq_cst, memory_order_relaxed)) {}
}

RONDO_MUST_USE rondo_status rondo__memory_create(rondo_device *device, rondo__memory **out_memory);
/* Frees what is still allocated (with one warning that counts it). */
void rondo__memory_destroy(rondo__memory *memory);

/* Resolves [address, address + length) (length 0: to the end) and makes `watcher` a watcher of the allocation, once.
 * Not ours: succeeds with base 0. Freed, in a segment that is still ours: STALE (memory). Beyond the end of its allocation: OUT_OF_RANGE
 * (memory). The allocations that a watcher
 * met last cost it a few nanoseconds; one watcher is used by one thread at a time. A null watcher only looks. */
RONDO_MUST_USE rondo_status rondo__memory_resolve(rondo__memory *memory, uint64_t address, uint64_t length,
                                                  rondo__memory_watcher *watcher,
                                                  rondo__memory_reference *out_reference);
/* What is known of two ranges that work outside captures touches; address 0: none. OUT_OF_RANGE: it crosses an end of an
 * allocation. STALE: it lies in memory that was freed, but for that of private pools, where results of replays lie whether
 * or not their blocks are live. What starts in no memory of ours, and blocks whose edges the backend sees itself, are fine. */
RONDO_MUST_USE rondo_status rondo__memory_check_ranges(rondo__memory *memory, uint64_t a, uint64_t b, uint64_t bytes);
/* Takes the watcher away from every allocation, and lets go what it holds. */
void rondo__memory_unwatch(rondo__memory *memory, rondo__memory_watcher *watcher);
/* Whether the very allocation is still alive. True for what is not ours (base 0): nobody can tell. */
bool rondo__memory_alive(rondo__memory *memory, const rondo__memory_reference *reference);
/* The same for a watcher, whose pools' temporaries count as alive, freed or not, while the pool has their memory. To tell
 * which argument made a graph stale. */
bool rondo__memory_alive_for(rondo__memory *memory, const rondo__memory_reference *reference,
                             const rondo__memory_watcher *watcher);
/* The block stays until the watcher lets go (unwatch), whoever frees it meanwhile: for host memory that a captured copy
 * reads, and memory that a graph gives away. Freeing it then makes the watcher no staler. NOT_FOUND (memory): no live
 * block has the range. Host and device memory. */
RONDO_MUST_USE rondo_status rondo__memory_hold(rondo__memory *memory, rondo__memory_watcher *watcher, uint64_t address,
                                               uint64_t length);
/* `to` keeps what `from` keeps: its pools, of which it has a use each until unwatch, and the blocks that it holds. */
RONDO_MUST_USE rondo_status rondo__memory_inherit(rondo__memory *memory, rondo__memory_watcher *to,
                                                  const rondo__memory_watcher *from);
/* A reference of the watcher that it inherits from becomes its own: to a block that is live or held, or to a temporary of a
 * pool. STALE: it was freed meanwhile. */
RONDO_MUST_USE rondo_status rondo__memory_take_over(rondo__memory *memory, rondo__memory_reference *reference,
                                                    rondo__memory_watcher *watcher);
/* The temporaries that ended since it was asked last (`changed`). False: there were too many, and it may be any. */
bool rondo__memory_take_ended(rondo__memory *memory, rondo__memory_watcher *watcher,
                              rondo__memory_reference out_ended[RONDO__MEMORY_ENDED], uint32_t *out_count);
/* The generation that the next allocation will have. */
uint64_t rondo__memory_generation(rondo__memory *memory);
/* The private pools that the watcher keeps memory of: its own, those it keeps, and those of device blocks that it holds,
 * each once. The count may be greater than the capacity; so many are written. */
size_t rondo__memory_pools_kept(rondo__memory *memory, const rondo__memory_watcher *watcher, rondo_pool_id *out_pools,
                                size_t capacity);
/* The pool of the live block that the address is in; {0, 0}: the device's own, or not ours. */
rondo_pool_id rondo__memory_pool_of(rondo__memory *memory, uint64_t address);
/* Gives the backend those wholly free segments of the pool that none of the layouts needs: no live block of the layout lies
 * there, and none came there between the layout before it (kept, or brought back) and it. So a manager that keeps a
 * layout after each recording keeps what its recordings use, freed or not. Waits for the device; segments of streams that
 * capture stay. NOT_FOUND; nothing else can fail. */
RONDO_MUST_USE rondo_status rondo__memory_pool_trim(rondo__memory *memory, rondo_pool_id pool,
                                                    const rondo_memory_checkpoint *const *checkpoints, uint64_t count);
/* The pool's first live block at or above the address, and the bytes that were asked for; false: there is none. */
bool rondo__memory_pool_next(rondo__memory *memory, rondo_pool_id pool, uint64_t from, uint64_t *out_address,
                             uint64_t *out_bytes);
/* A name for a pool in out-of-memory texts: that of its graph. Nothing happens when there is no such pool. */
void rondo__memory_pool_label(rondo__memory *memory, rondo_pool_id pool, const char *label);
/* rondo_memory_pool_begin, _end and _release for pinned host memory, which has pools of its own under the same ids.
 * Filters: thread only, for host memory is of no stream. */
RONDO_MUST_USE rondo_status rondo__memory_pinned_begin(rondo__memory *memory, rondo_pool_id pool,
                                                       const rondo_memory_filter *filter);
RONDO_MUST_USE rondo_status rondo__memory_pinned_end(rondo__memory *memory, rondo_pool_id pool);
RONDO_MUST_USE rondo_status rondo__memory_pinned_release(rondo__memory *memory, rondo_pool_id pool);
RONDO_MUST_USE rondo_status rondo__memory_pinned_statistics(rondo__memory *memory, rondo_pool_id pool,
                                                            rondo_memory_statistics *out_statistics);
/* Walks everything: INTERNAL (memory) with the first invariant that does not hold. */
RONDO_MUST_USE rondo_status rondo__memory_check(rondo__memory *memory);
/* "freed by rondo_memory_free, 3rd free of the device; now part of a live allocation of 4096 bytes": for messages. */
void rondo__memory_explain(rondo__memory *memory, const rondo__memory_reference *reference, char *buffer,
                           size_t capacity);
/* Pinned host memory that was allocated through rondo_memory_host_allocate: true if the range is inside one. */
bool rondo__memory_is_pinned(rondo__memory *memory, const void *pointer, uint64_t bytes);

/* For the executable's and the context's own memory: as the public functions, without touching pools of the user. */
RONDO_MUST_USE rondo_status rondo__memory_allocate(rondo__memory *memory, uint64_t size, uint64_t *out_address);
RONDO_MUST_USE rondo_status rondo__memory_free(rondo__memory *memory, uint64_t address);

#endif
