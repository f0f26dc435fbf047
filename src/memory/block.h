/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a block: free, live, pending, free. What every allocation and every free passes through is inline here, for
 * the two together cost little more than their mutex; what happens now and then is block.c. */
#ifndef RONDO_SRC_MEMORY_BLOCK_H
#define RONDO_SRC_MEMORY_BLOCK_H

#include "memory/poison.h"
#include "memory/table.h"

rondo__block *rondo__block_make(rondo__cache *cache, rondo__segment *segment, uint64_t base, uint64_t size);
void rondo__block_drop(rondo__cache *cache, rondo__block *block);
/* Into the tree of its segment's pool, and out of it. While a restore rebuilds the trees (cache->rebuilds), only the
 * statistics' part is done. */
void rondo__block_insert(rondo__cache *cache, rondo__block *block);
void rondo__block_remove(rondo__cache *cache, rondo__block *block);
/* The statistics' part of the two: a block that stays in the tree while its neighbours change. */
void rondo__block_count(rondo__cache *cache, const rondo__block *block);
void rondo__block_uncount(rondo__cache *cache, const rondo__block *block);
/* From free (in no tree) to live; what is left over goes back into the tree. A spare block is there. */
void rondo__block_give(rondo__cache *cache, rondo__block *block, const rondo__request *request);
/* Somebody still uses a block that has ended. */
void rondo__block_pend(rondo__cache *cache, rondo__block *block);
static inline bool rondo__block_is_used(const rondo__block *block) {
    return block->waits || block->holds || block->parked;
}

/* ---------------------------------------------------------------------------------------------------------- live */

static inline void rondo__block_count_live(rondo_memory_statistics *counts, const rondo__block *block) {
    counts->allocated_bytes += block->size;
    if (counts->allocated_peak < counts->allocated_bytes) counts->allocated_peak = counts->allocated_bytes;
    counts->requested_bytes += block->allocation.size;
    if (counts->requested_peak < counts->requested_bytes) counts->requested_peak = counts->requested_bytes;
    counts->allocations++;
    if (counts->allocations_peak < counts->allocations) counts->allocations_peak = counts->allocations;
    counts->allocations_sum++;
    counts->allocated_sum += block->size;
    counts->requested_sum += block->allocation.size;
}

/* Makes a block live that has its size. */
static inline void rondo__block_live(rondo__cache *cache, rondo__block *block, uint64_t requested) {
    block->state = RONDO__BLOCK_LIVE;
    block->allocation.size = requested;
    block->allocation.generation = cache->memory->next_generation++;
    block->segment->touched = block->allocation.generation;
    rondo__block_count_live(&block->segment->pool->counts, block);
    rondo__block_count_live(&cache->total, block);
    rondo__poison_given(cache, block);
}

/* ----------------------------------------------------------------------------------------------------------- end */

static inline void rondo__block_count_end(rondo_memory_statistics *counts, const rondo__block *block) {
    counts->allocated_bytes -= block->size;
    counts->requested_bytes -= block->allocation.size;
    counts->allocations--;
}

/* Watchers and lease learn of the end. */
void rondo__block_tell_end(rondo__cache *cache, rondo__block *block, rondo__past past);

/* A live block ends: watchers, lease, history, counts. rondo__block_pend or rondo__block_free follows. */
static inline void rondo__block_end(rondo__cache *cache, rondo__block *block, rondo__past past) {
    rondo__memory *memory = cache->memory;
    if (block->allocation.edges || block->lease || block->holds) rondo__block_tell_end(cache, block, past);
    memory->frees++;
    memory->history[memory->frees % RONDO__MEMORY_HISTORY] =
        (rondo__memory_past){block->allocation.generation, memory->frees, past};
    rondo__memory_raise_epoch(memory);
    rondo__block_count_end(&block->segment->pool->counts, block);
    rondo__block_count_end(&cache->total, block);
}

/* ---------------------------------------------------------------------------------------------------------- free */

/* Joins the block that rests. */
void rondo__block_wake(rondo__cache *cache);
static inline void rondo__cache_wake(rondo__cache *cache) {
    if (cache->resting) rondo__block_wake(cache);
}
/* Not pending any more. */
void rondo__block_unpend(rondo__cache *cache, const rondo__block *block);
/* A free block, in no tree, that does not rest: its segment goes back, or its pool has no users. */
void rondo__block_leave(rondo__cache *cache, rondo__block *block);

/* Nobody uses a block that has ended: it becomes free, and is joined to its neighbours when it has rested. May give its
 * segment to another pool, or back to the backend (when `finished`: nothing in flight uses it). */
static inline void rondo__block_free(rondo__cache *cache, rondo__block *block, bool finished) {
    const rondo__segment *segment = block->segment;
    const rondo__pool *pool = segment->pool;
    rondo__cache_wake(cache);
    if (block->state == RONDO__BLOCK_PENDING) rondo__block_unpend(cache, block);
    block->state = RONDO__BLOCK_FREE;
    block->stamp = cache->memory->frees;
    block->allocation.size = 0;
    rondo__poison_taken_back(cache, block);
    if (!pool->uses || (segment->exact && finished && pool == &cache->own)) rondo__block_leave(cache, block);
    else cache->resting = block;
}

#endif
