/* SPDX-License-Identifier: Apache-2.0
 *
 * Edges between watchers and allocations, chained in a hash table by pair and in two lists. */
#include "memory/watch.h"

#define RONDO__WATCH_FIRST 64u

void rondo__watch_init(rondo__watch *watch, const rondo_allocator *allocator) {
    *watch = (rondo__watch){.allocator = *allocator};
}

static size_t watch_hash(const rondo__allocation *allocation, const rondo__memory_watcher *watcher) {
    uint64_t h = (uint64_t)(uintptr_t)allocation * 0x9e3779b97f4a7c15u;
    h ^= ((uint64_t)(uintptr_t)watcher >> 4) * 0xc2b2ae3d27d4eb4fu;
    return (size_t)(h ^ (h >> 29));
}

static rondo__memory_edge **watch_bucket(const rondo__watch *watch, const rondo__allocation *allocation,
                                         const rondo__memory_watcher *watcher) {
    return &watch->buckets[watch_hash(allocation, watcher) & (watch->bucket_count - 1u)];
}

void rondo__watch_deinit(rondo__watch *watch) {
    for (size_t i = 0; i < watch->bucket_count; i++) {
        rondo__memory_edge *edge = watch->buckets[i];
        while (edge) {
            rondo__memory_edge *next = edge->bucket_next;
            edge->watcher->edges = NULL;
            rondo__free(&watch->allocator, edge, sizeof *edge);
            edge = next;
        }
    }
    rondo__free(&watch->allocator, watch->buckets, watch->bucket_count * sizeof(rondo__memory_edge *));
    rondo__watch_init(watch, &watch->allocator);
}

static rondo_status watch_grow(rondo__watch *watch) {
    rondo__watch grown = *watch;
    void *memory = NULL;
    grown.bucket_count = watch->bucket_count ? watch->bucket_count * 2u : RONDO__WATCH_FIRST;
    RONDO__TRY(rondo__allocate_array(&watch->allocator, grown.bucket_count, sizeof(rondo__memory_edge *), &memory));
    grown.buckets = memory;
    for (size_t i = 0; i < watch->bucket_count; i++) {
        rondo__memory_edge *edge = watch->buckets[i];
        while (edge) {
            rondo__memory_edge *next = edge->bucket_next;
            rondo__memory_edge **bucket = watch_bucket(&grown, edge->allocation, edge->watcher);
            edge->bucket_next = *bucket;
            *bucket = edge;
            edge = next;
        }
    }
    rondo__free(&watch->allocator, watch->buckets, watch->bucket_count * sizeof(rondo__memory_edge *));
    *watch = grown;
    return RONDO_OK;
}

rondo_status rondo__watch_add(rondo__watch *watch, rondo__allocation *allocation, rondo__memory_watcher *watcher,
                              rondo__memory_edge **out_edge) {
    void *memory = NULL;
    if (watch->count >= watch->bucket_count) RONDO__TRY(watch_grow(watch));
    rondo__memory_edge *edge = rondo__watch_find(watch, allocation, watcher);
    if (edge) {
        *out_edge = edge;
        return RONDO_OK;
    }
    rondo__memory_edge **bucket = watch_bucket(watch, allocation, watcher);
    RONDO__TRY(rondo__allocate(&watch->allocator, sizeof(rondo__memory_edge), &memory));
    edge = memory;
    *edge = (rondo__memory_edge){.allocation = allocation,
                                 .watcher = watcher,
                                 .allocation_next = allocation->edges,
                                 .allocation_link = &allocation->edges,
                                 .watcher_next = watcher->edges,
                                 .watcher_link = &watcher->edges,
                                 .bucket_next = *bucket};
    if (allocation->edges) allocation->edges->allocation_link = &edge->allocation_next;
    if (watcher->edges) watcher->edges->watcher_link = &edge->watcher_next;
    allocation->edges = watcher->edges = *bucket = edge;
    watch->count++;
    *out_edge = edge;
    return RONDO_OK;
}

void rondo__watch_remove(rondo__watch *watch, rondo__memory_edge *edge) {
    rondo__memory_edge **link = watch_bucket(watch, edge->allocation, edge->watcher);
    while (*link != edge) link = &(*link)->bucket_next;
    *link = edge->bucket_next;
    *edge->allocation_link = edge->allocation_next;
    if (edge->allocation_next) edge->allocation_next->allocation_link = edge->allocation_link;
    *edge->watcher_link = edge->watcher_next;
    if (edge->watcher_next) edge->watcher_next->watcher_link = edge->watcher_link;
    rondo__free(&watch->allocator, edge, sizeof *edge);
    watch->count--;
}

rondo__memory_edge *rondo__watch_find(const rondo__watch *watch, const rondo__allocation *allocation,
                                      const rondo__memory_watcher *watcher) {
    rondo__memory_edge *edge = watch->bucket_count ? *watch_bucket(watch, allocation, watcher) : NULL;
    while (edge && (edge->allocation != allocation || edge->watcher != watcher)) edge = edge->bucket_next;
    return edge;
}

/* Under the memory's mutex. */
static void watch_change(rondo__memory_watcher *watcher, const rondo__allocation *allocation) {
    if (watcher->ended_count < RONDO__MEMORY_ENDED)
        watcher->ended[watcher->ended_count] =
            (rondo__memory_reference){allocation->base, allocation->size, allocation->generation, true, 0};
    if (watcher->ended_count <= RONDO__MEMORY_ENDED) watcher->ended_count++;
    atomic_store_explicit(&watcher->changed, 1u, memory_order_release);
}

void rondo__watch_freed(rondo__watch *watch, rondo__allocation *allocation, const rondo__allocation *anchor) {
    for (rondo__memory_edge *edge = allocation->edges, *next = NULL; edge; edge = next) {
        next = edge->allocation_next;
        if (edge->holds) continue;
        if (rondo__watch_find(watch, anchor, edge->watcher)) watch_change(edge->watcher, allocation);
        else rondo__memory_raise_stale(edge->watcher, RONDO__STALE_FREED);
        rondo__watch_remove(watch, edge);
    }
}

void rondo__watch_gone(rondo__watch *watch, rondo__allocation *allocation, const rondo__allocation *anchor,
                       uint32_t reason) {
    while (allocation->edges) {
        rondo__memory_watcher *watcher = allocation->edges->watcher;
        bool own = rondo__watch_find(watch, anchor, watcher) != NULL;
        watch_change(watcher, allocation);
        if (!own) rondo__memory_raise_stale(watcher, RONDO__STALE_FREED);
        else if (reason != RONDO__STALE_RESTORED || !watcher->managed) rondo__memory_raise_stale(watcher, reason);
        rondo__watch_remove(watch, allocation->edges);
    }
}
