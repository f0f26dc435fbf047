/* SPDX-License-Identifier: Apache-2.0
 *
 * Who mentions what: one edge for each pair of watcher and allocation, found in constant time from the pair, from the
 * allocation and from the watcher. */
#ifndef RONDO_SRC_MEMORY_WATCH_H
#define RONDO_SRC_MEMORY_WATCH_H

#include "memory/memory.h"
#include "memory/ranges.h"

struct rondo__memory_edge {
    rondo__allocation *allocation;
    rondo__memory_watcher *watcher;
    rondo__memory_edge *allocation_next, **allocation_link; /* link: the pointer that points here */
    rondo__memory_edge *watcher_next, **watcher_link;
    rondo__memory_edge *bucket_next;
};

typedef struct rondo__watch {
    rondo_allocator allocator;
    rondo__memory_edge **buckets;
    size_t bucket_count; /* 0 or a power of two */
    size_t count;
} rondo__watch;

void rondo__watch_init(rondo__watch *watch, const rondo_allocator *allocator);
/* Frees every edge that is left; allocations and watchers are no longer looked at. */
void rondo__watch_deinit(rondo__watch *watch);
/* Once a pair: a second time changes nothing. */
RONDO_MUST_USE rondo_status rondo__watch_add(rondo__watch *watch, rondo__allocation *allocation,
                                             rondo__memory_watcher *watcher);
/* The allocation goes: marks its watchers stale and drops its edges. */
void rondo__watch_freed(rondo__watch *watch, rondo__allocation *allocation);
void rondo__watch_drop(rondo__watch *watch, rondo__memory_watcher *watcher);

#endif
