/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens to some blocks: cut from the front of a free one, joined to free neighbours, waited for. */
#include "memory/block.h"

#include "memory/classes.h"
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
    cache->shape++;
    if (!cache->rebuilds || segment->kind != RONDO__POOL_SMALL) {
        rondo__tree_insert(&segment->pool->free[segment->kind], block, block_random(cache));
    }
    rondo__block_count(cache, block);
}

void rondo__block_remove(rondo__cache *cache, rondo__block *block) {
    rondo__segment *segment = block->segment;
    cache->shape++;
    rondo__block_uncount(cache, block);
    if (!cache->rebuilds || segment->kind != RONDO__POOL_SMALL) {
        rondo__tree_remove(&segment->pool->free[segment->kind], block);
    }
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

void rondo__block_tell_end(rondo__cache *cache, rondo__block *block, rondo__past past) {
    rondo__memory *memory = cache->memory;
    const rondo__allocation *anchor = &block->segment->pool->anchor;
    if (past == RONDO__PAST_RESTORED || past == RONDO__PAST_CLOSED) {
        rondo__watch_gone(&memory->watch, &block->allocation, anchor, RONDO__STALE_RESTORED);
        block->holds = 0;
    } else if (block->allocation.edges) {
        rondo__watch_freed(&memory->watch, &block->allocation, anchor);
    }
    if (block->lease) {
        __atomic_store_n(&block->lease->owner, RONDO_LEASE_OVER, __ATOMIC_RELAXED);
        __atomic_store_n(&block->lease->block, 0u, __ATOMIC_RELEASE);
        block->lease = NULL;
    }
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

void rondo__block_unpend(rondo__cache *cache, const rondo__block *block) {
    rondo__pool *pool = block->segment->pool;
    pool->counts.pending_bytes -= block->size;
    cache->total.pending_bytes -= block->size;
    pool->pending--;
}

void rondo__block_leave(rondo__cache *cache, rondo__block *block) {
    rondo__segment *segment = block->segment;
    rondo__pool *pool = segment->pool;
    if (pool->uses) {
        rondo__segment_give_back(cache, segment);
        return;
    }
    block_settle(cache, block);
    rondo__pool_empty(cache, pool);
}
