/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a block comes from, in this order: the pool's best fit; a free segment of the device's own pool; a new segment.
 * Where the backend checks its memory (it asked to be told of reuse), blocks of no stream come from it one by one, so that
 * it sees the edges of each and a freed one is not at once another's.
 *
 * When the device has no more: what streams have finished with since, large segments that would be too large, everything
 * that is cached, and last a segment of just the bytes that were asked for. */
#include "memory/block.h"
#include "memory/classes.h"
#include "memory/tree.h"

static rondo__block *allocate_find(rondo__cache *cache, rondo__pool *pool, const rondo__request *request) {
    rondo__block *block = rondo__tree_best(pool->free[request->kind], request->stream, request->rounded);
    if (!block || !rondo__class_takes(cache, block, request)) return NULL;
    rondo__block_remove(cache, block);
    return block;
}

/* Whether the block that rests would be joined and then cut again to just what it is: it begins where the joined one
 * would, and no other block fits its size better. */
static bool allocate_proves(const rondo__cache *cache, const rondo__block *block, rondo__block *root) {
    if (block->segment->exact || cache->settings.max_split_bytes ||
        (block->previous && block->previous->state == RONDO__BLOCK_FREE)) {
        return false;
    }
    const rondo__block *next = block->next, *rival = rondo__tree_best(root, block->stream, block->size);
    uint64_t size = block->size;
    if (next && next->state == RONDO__BLOCK_FREE) {
        size += next->size;
        if (rival == next) rival = rondo__tree_from(root, next->stream, next->size, next->allocation.base + 1u);
    }
    return !rival || rival->size > size || (rival->size == size && rival->allocation.base > block->allocation.base);
}

/* The block that rests, if it is what is wanted. */
static inline rondo__block *allocate_resting(rondo__cache *cache, rondo__pool *pool, const rondo__request *request) {
    rondo__block *block = cache->resting;
    if (!block || block->size != request->rounded || block->stream != request->stream || block->segment->pool != pool) {
        return NULL;
    }
    if (block != cache->proven || cache->shape != cache->proven_shape) {
        if (!allocate_proves(cache, block, pool->free[request->kind])) return NULL;
        cache->proven = block;
        cache->proven_shape = cache->shape;
    }
    cache->resting = NULL;
    return block;
}

/* A private pool takes a free segment of the device's own pool, of the size that it would ask the backend for. */
static rondo__block *allocate_adopt(rondo__cache *cache, rondo__pool *pool, const rondo__request *request) {
    uint64_t bytes = rondo__class_segment(cache, request);
    if (pool == &cache->own) return NULL;
    rondo__block *block = rondo__tree_best(cache->own.free[request->kind], request->stream, bytes);
    if (!block || block->segment->range.size != bytes || block->segment->exact || block->size != bytes) return NULL;
    rondo__block_remove(cache, block);
    rondo__segment_move(block->segment, pool);
    return block;
}

static rondo_status allocate_take(rondo__cache *cache, rondo__pool *pool, const rondo__request *request,
                                  rondo__block **out_block, bool *out_short) {
    if (cache->apart && request->stream == RONDO__NO_STREAM && pool == &cache->own) {
        return rondo__segment_take(cache, pool, request, request->size, true, out_block, out_short);
    }
    *out_short = false;
    *out_block = allocate_find(cache, pool, request);
    if (!*out_block) *out_block = allocate_adopt(cache, pool, request);
    if (*out_block) return RONDO_OK;
    return rondo__segment_take(cache, pool, request, rondo__class_segment(cache, request), false, out_block, out_short);
}

/* Waits for the device without the mutex, and frees what was waited for. What was freed up to the returned number is
 * used by nothing in flight. */
static uint64_t allocate_wait(rondo__cache *cache) {
    rondo__memory *memory = cache->memory;
    uint64_t stamp = memory->frees;
    rondo__mutex_unlock(&memory->mutex);
    rondo__device_drain(memory->device);
    rondo__cache_settle(cache);
    rondo__mutex_lock(&memory->mutex);
    rondo__cache_wake(cache);
    return stamp;
}

/* Room is made step by step. The mutex was given up between, so everything is looked up anew. */
static rondo_status allocate_make_room(rondo__cache *cache, const rondo__request *request, rondo__block **out_block,
                                       bool *out_short) {
    uint64_t stamp = allocate_wait(cache);
    rondo__pool *pool = rondo__cache_divert(cache, request);
    rondo_status status = RONDO_OK;
    cache->total.allocation_retries++;
    pool->counts.allocation_retries++;
    *out_short = true;
    for (int step = 0; step < 3 && *out_short; step++) {
        rondo_status_release(status);
        if (step == 1) rondo__cache_collect_oversize(cache, request, stamp);
        if (step == 2) rondo__cache_collect_all(cache, stamp);
        *out_short = false;
        status = rondo__cache_reserve(cache, 2);
        if (!status) status = allocate_take(cache, pool, request, out_block, out_short);
    }
    return status;
}

/* The device had no memory. */
static rondo_status allocate_retry(rondo__cache *cache, const rondo__request *request, rondo__block **out_block) {
    bool is_short = true;
    rondo_status status = RONDO_OK;
    if (cache->total.reserved_bytes > cache->total.allocated_bytes) {
        status = allocate_make_room(cache, request, out_block, &is_short);
        if (!is_short) return status;
    }
    rondo_status_release(status);
    rondo__pool *pool = rondo__cache_divert(cache, request);
    status = rondo__segment_take(cache, pool, request, request->size, true, out_block, &is_short);
    if (!is_short) return status;
    cache->total.out_of_memory++;
    pool->counts.out_of_memory++;
    return rondo__cache_out_of_memory(cache, pool, request, status);
}

/* More is reserved than the settings' part of the limit: old segments go before a new one comes. */
static bool allocate_is_full(const rondo__cache *cache) {
    if (cache->settings.collect_above <= 0.0 || cache->limit == UINT64_MAX) return false;
    return (double)cache->total.reserved_bytes > cache->settings.collect_above * (double)cache->limit;
}

static rondo_status allocate_miss(rondo__cache *cache, const rondo__request *request, rondo__block **out_block) {
    rondo__pool *pool = rondo__cache_divert(cache, request);
    rondo_status status = RONDO_OK;
    bool is_short = false;
    if (allocate_is_full(cache)) {
        rondo__cache_collect_old(cache, allocate_wait(cache));
        pool = rondo__cache_divert(cache, request);
        status = rondo__cache_reserve(cache, 2);
    }
    if (!status) status = allocate_take(cache, pool, request, out_block, &is_short);
    if (!is_short) return status;
    rondo_status_release(status);
    return allocate_retry(cache, request, out_block);
}

rondo_status rondo__cache_allocate(rondo__cache *cache, const rondo__request *request, uint64_t *out_address) {
    rondo__memory *memory = cache->memory;
    rondo__block *block = NULL;
    rondo_status status = RONDO_OK;
    rondo__mutex_lock(&memory->mutex);
    if (cache->waiting || cache->parked) {
        rondo__mutex_unlock(&memory->mutex);
        rondo__cache_settle(cache);
        rondo__mutex_lock(&memory->mutex);
    }
    block = allocate_resting(cache, rondo__cache_divert(cache, request), request);
    if (block) {
        rondo__block_live(cache, block, request->size);
    } else {
        rondo__cache_wake(cache);
        if (!cache->spare) status = rondo__cache_reserve(cache, 2);
        if (!status) block = allocate_find(cache, rondo__cache_divert(cache, request), request);
        if (!status && !block) status = allocate_miss(cache, request, &block);
        if (!status) rondo__block_give(cache, block, request);
    }
    if (!status) *out_address = block->allocation.base;
    rondo__cache_assert(cache);
    rondo__mutex_unlock(&memory->mutex);
    return status;
}
