/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a block: free, live, pending, free. Cut from the front of a free one, joined to free neighbours. */
#include "memory/classes.h"
#include "memory/poison.h"
#include "memory/table.h"

#include "memory/tree.h"

rondo__block *rondo__block_make(rondo__cache *cache, rondo__segment *segment, uint64_t base, uint64_t size) {
    rondo__block *block = cache->spare;
    cache->spare = block->left;
    cache->spare_count--;
    block->allocation.base = base;
    block->size = size;
    block->stream = segment->stream;
    block->segment = segment;
    block->previous = block->next = block->left = NULL;
    block->state = RONDO__BLOCK_FREE;
    rondo__segment_mark(segment, block);
    return block;
}

/* What a spare block holds but for its place is nothing: see block_end and block_free. */
void rondo__block_drop(rondo__cache *cache, rondo__block *block) {
    rondo__segment_unmark(block->segment, block);
    block->allocation.base = block->allocation.size = 0;
    block->segment = NULL;
    block->right = NULL;
    block->left = cache->spare;
    cache->spare = block;
    cache->spare_count++;
}

static inline bool block_is_part(const rondo__block *block) { return block->previous || block->next; }

void rondo__block_count(rondo__cache *cache, const rondo__block *block) {
    if (!block_is_part(block)) return;
    block->segment->pool->counts.inactive_bytes += block->size;
    cache->total.inactive_bytes += block->size;
}

void rondo__block_uncount(rondo__cache *cache, const rondo__block *block) {
    if (!block_is_part(block)) return;
    block->segment->pool->counts.inactive_bytes -= block->size;
    cache->total.inactive_bytes -= block->size;
}

static inline uint32_t block_random(rondo__cache *cache) {
    uint64_t x = cache->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    cache->random = x;
    return (uint32_t)(x >> 32);
}

void rondo__block_insert(rondo__cache *cache, rondo__block *block) {
    rondo__segment *segment = block->segment;
    if (!cache->rebuilds || segment->kind != RONDO__POOL_SMALL) {
        rondo__tree_insert(&segment->pool->free[segment->kind], block, block_random(cache));
    }
    rondo__block_count(cache, block);
}

void rondo__block_remove(rondo__cache *cache, rondo__block *block) {
    rondo__segment *segment = block->segment;
    rondo__block_uncount(cache, block);
    if (!cache->rebuilds || segment->kind != RONDO__POOL_SMALL) {
        rondo__tree_remove(&segment->pool->free[segment->kind], block);
    }
}

static inline void block_count_live(rondo_memory_statistics *counts, const rondo__block *block) {
    counts->allocated_bytes += block->size;
    if (counts->allocated_peak < counts->allocated_bytes) counts->allocated_peak = counts->allocated_bytes;
    counts->requested_bytes += block->allocation.size;
    counts->allocations++;
}

static inline void block_count_end(rondo_memory_statistics *counts, const rondo__block *block) {
    counts->allocated_bytes -= block->size;
    counts->requested_bytes -= block->allocation.size;
    counts->allocations--;
}

void rondo__block_live(rondo__cache *cache, rondo__block *block, uint64_t requested) {
    block->state = RONDO__BLOCK_LIVE;
    block->allocation.size = requested;
    block->allocation.generation = cache->memory->next_generation++;
    block->segment->touched = block->allocation.generation;
    block_count_live(&block->segment->pool->counts, block);
    block_count_live(&cache->total, block);
    rondo__poison_given(cache, block);
}

void rondo__block_give(rondo__cache *cache, rondo__block *block, const rondo__request *request) {
    if (rondo__class_cuts(cache, block, request)) {
        rondo__block *rest = rondo__block_make(cache, block->segment, block->allocation.base + request->rounded,
                                               block->size - request->rounded);
        rest->stamp = block->stamp;
        rest->previous = block;
        rest->next = block->next;
        if (rest->next) rest->next->previous = rest;
        block->next = rest;
        block->size = request->rounded;
        rondo__block_insert(cache, rest);
    }
    rondo__block_live(cache, block, request->size);
}

static void block_remember(rondo__memory *memory, const rondo__block *block, rondo__past past) {
    memory->frees++;
    memory->history[memory->frees % RONDO__MEMORY_HISTORY] =
        (rondo__memory_past){block->allocation.generation, memory->frees, past};
}

void rondo__block_end(rondo__cache *cache, rondo__block *block, rondo__past past) {
    rondo__memory *memory = cache->memory;
    rondo__pool *pool = block->segment->pool;
    if (past == RONDO__PAST_RESTORED || past == RONDO__PAST_CLOSED) {
        rondo__watch_gone(&memory->watch, &block->allocation, &pool->anchor, RONDO__STALE_RESTORED);
        block->holds = 0;
    } else if (block->allocation.edges) {
        rondo__watch_freed(&memory->watch, &block->allocation, &pool->anchor);
    }
    if (block->lease) {
        __atomic_store_n(&block->lease->owner, RONDO_LEASE_OVER, __ATOMIC_RELAXED);
        __atomic_store_n(&block->lease->block, 0u, __ATOMIC_RELEASE);
        block->lease = NULL;
    }
    block_remember(memory, block, past);
    rondo__memory_raise_epoch(memory);
    block_count_end(&pool->counts, block);
    block_count_end(&cache->total, block);
}

void rondo__block_pend(rondo__cache *cache, rondo__block *block) {
    rondo__pool *pool = block->segment->pool;
    block->state = RONDO__BLOCK_PENDING;
    pool->counts.pending_bytes += block->size;
    cache->total.pending_bytes += block->size;
    pool->pending++;
}

/* The free neighbour goes into the block, or the block into the one before it. */
static rondo__block *block_join(rondo__cache *cache, rondo__block *before, rondo__block *after) {
    before->size += after->size;
    if (before->stamp < after->stamp) before->stamp = after->stamp;
    before->next = after->next;
    if (after->next) after->next->previous = before;
    rondo__block_drop(cache, after);
    return before;
}

/* Into its free neighbours, and into the tree. */
static void block_settle(rondo__cache *cache, rondo__block *block) {
    if (block->previous && block->previous->state == RONDO__BLOCK_FREE) {
        rondo__block_remove(cache, block->previous);
        block = block_join(cache, block->previous, block);
    }
    if (block->next && block->next->state == RONDO__BLOCK_FREE) {
        rondo__block_remove(cache, block->next);
        block = block_join(cache, block, block->next);
    }
    rondo__block_insert(cache, block);
}

void rondo__block_wake(rondo__cache *cache) {
    rondo__block *block = cache->resting;
    cache->resting = NULL;
    block_settle(cache, block);
}

void rondo__block_free(rondo__cache *cache, rondo__block *block, bool finished) {
    rondo__segment *segment = block->segment;
    rondo__pool *pool = segment->pool;
    rondo__cache_wake(cache);
    if (block->state == RONDO__BLOCK_PENDING) {
        pool->counts.pending_bytes -= block->size;
        cache->total.pending_bytes -= block->size;
        pool->pending--;
    }
    block->state = RONDO__BLOCK_FREE;
    block->stamp = cache->memory->frees;
    block->allocation.size = 0;
    rondo__poison_taken_back(cache, block);
    if (segment->exact && finished && pool == &cache->own) {
        rondo__segment_give_back(cache, segment);
    } else if (pool->uses) {
        cache->resting = block;
    } else {
        block_settle(cache, block);
        rondo__pool_empty(cache, pool);
    }
}
