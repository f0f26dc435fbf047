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
    bool holds; /* keeps the block: see rondo__memory_hold. To an anchor: has a use of the pool */
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
/* Once a pair: a second time gives the same edge. */
RONDO_MUST_USE rondo_status rondo__watch_add(rondo__watch *watch, rondo__allocation *allocation,
                                             rondo__memory_watcher *watcher, rondo__memory_edge **out_edge);
/* The edge of a pair; null when there is none. */
rondo__memory_edge *rondo__watch_find(const rondo__watch *watch, const rondo__allocation *allocation,
                                      const rondo__memory_watcher *watcher);
/* The allocation, a block of the pool that has this anchor, was freed: marks its watchers stale but for those that have an
 * edge to the anchor, because the pool is theirs or they keep it, and drops its edges. Those that hold it stay as they
 * are. */
void rondo__watch_freed(rondo__watch *watch, rondo__allocation *allocation, const rondo__allocation *anchor);
/* It is gone, for this reason, also to those that hold it. May be the anchor itself. */
void rondo__watch_gone(rondo__watch *watch, rondo__allocation *allocation, const rondo__allocation *anchor,
                       uint32_t reason);
void rondo__watch_remove(rondo__watch *watch, rondo__memory_edge *edge);

#endif
