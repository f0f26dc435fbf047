/* SPDX-License-Identifier: Apache-2.0
 *
 * Every invariant of the allocator, walked. In debug builds after each operation (of a large one, after each so many, so
 * that the walk costs about the same as what it follows). */
#include <assert.h>

#include "memory/block.h"
#include "memory/classes.h"
#include "memory/tree.h"

#define RONDO__CHECK_BLOCKS_AN_OPERATION 32u

#define RONDO__CHECK_THAT(condition, segment, what)           \
    do {                                                      \
        if (!(condition)) return check_failed(segment, what); \
    } while (0)

static rondo_status check_failed(const rondo__segment *segment, const char *what) {
    return RONDO__FAIL(INTERNAL, MEMORY, "segment of %llu bytes at 0x%llx: %s",
                       segment ? (unsigned long long)segment->range.size : 0u,
                       segment ? (unsigned long long)segment->range.base : 0u, what);
}

static rondo_status check_block(const rondo__cache *cache, const rondo__segment *segment, const rondo__block *block) {
    const rondo__block *next = block->next;
    RONDO__CHECK_THAT(block->segment == segment && block->stream == segment->stream, segment, "a block is elsewhere");
    RONDO__CHECK_THAT(!next || next->previous == block, segment, "the chain is broken");
    RONDO__CHECK_THAT(rondo__segment_at(segment, block->allocation.base) == block &&
                          rondo__segment_at(segment, block->allocation.base + block->size - 1u) == block,
                      segment, "a block is not found by its address");
    RONDO__CHECK_THAT(segment->exact || block->size % cache->unit == 0, segment, "a block's size is not rounded");
    RONDO__CHECK_THAT(segment->exact || segment->kind == RONDO__POOL_SMALL || block->size > RONDO__CLASS_SMALL, segment,
                      "a large segment has a small block");
    if (block->state == RONDO__BLOCK_FREE) {
        bool rests = block == cache->resting, next_rests = next && next == cache->resting;
        RONDO__CHECK_THAT(!next || next->state != RONDO__BLOCK_FREE || rests || next_rests, segment,
                          "two free blocks are not joined");
        RONDO__CHECK_THAT(rondo__tree_has(segment->pool->free[segment->kind], block) != rests, segment,
                          "a free block is lost");
        RONDO__CHECK_THAT(!block->allocation.edges && !block->lease && !block->uses && !rondo__block_is_used(block),
                          segment, "a free block is in use");
        return RONDO_OK;
    }
    RONDO__CHECK_THAT(block->allocation.size && block->allocation.size <= block->size, segment,
                      "a block is smaller than what was asked for");
    RONDO__CHECK_THAT(block->state == RONDO__BLOCK_LIVE ? !block->waits && !block->parked : rondo__block_is_used(block),
                      segment, "a block waits for nothing");
    return RONDO_OK;
}

static void check_count(const rondo__cache *cache, rondo_memory_statistics *counts, const rondo__block *block) {
    if (block->state == RONDO__BLOCK_LIVE) {
        counts->allocations++;
        counts->allocated_bytes += block->size;
        counts->requested_bytes += block->allocation.size;
    } else if (block->state == RONDO__BLOCK_PENDING) {
        counts->pending_bytes += block->size;
    } else if (block != cache->resting && (block->previous || block->next)) {
        counts->inactive_bytes += block->size;
    }
}

static rondo_status check_segment(const rondo__cache *cache, const rondo__segment *segment,
                                  rondo_memory_statistics *counts) {
    uint64_t at = segment->range.base;
    RONDO__CHECK_THAT(segment->first && !segment->first->previous, segment, "its first block is not first");
    for (const rondo__block *block = segment->first; block; block = block->next) {
        RONDO__CHECK_THAT(block->allocation.base == at && block->size, segment, "there is a gap, or an overlap");
        at += block->size;
        RONDO__CHECK_THAT(at <= segment->range.base + segment->range.size, segment, "a block passes the end");
        RONDO__TRY(check_block(cache, segment, block));
        check_count(cache, counts, block);
        counts->segment_frees += block->state == RONDO__BLOCK_FREE && block != cache->resting;
        counts->out_of_memory += block->state == RONDO__BLOCK_PENDING;
    }
    RONDO__CHECK_THAT(at == segment->range.base + segment->range.size, segment, "its blocks end before it");
    return RONDO_OK;
}

static bool check_equal(const rondo_memory_statistics *a, const rondo_memory_statistics *b) {
    return a->allocated_bytes == b->allocated_bytes && a->allocations == b->allocations &&
           a->requested_bytes == b->requested_bytes && a->reserved_bytes == b->reserved_bytes &&
           a->segments == b->segments && a->inactive_bytes == b->inactive_bytes && a->pending_bytes == b->pending_bytes;
}

/* In order, without recursion: the next one is looked for by its key. */
static uint64_t check_tree_size(rondo__block *root) {
    uint64_t count = 0;
    rondo__block *stack[128];
    size_t depth = 0;
    while (root || depth) {
        while (root && depth < sizeof stack / sizeof stack[0]) {
            stack[depth++] = root;
            root = root->left;
        }
        if (!depth) break;
        root = stack[--depth];
        count++;
        root = root->right;
    }
    return count;
}

static rondo_status check_pool(rondo__cache *cache, const rondo__pool *pool, rondo_memory_statistics *total) {
    rondo_memory_statistics counts = {0};
    for (const rondo__segment *segment = pool->segments; segment; segment = segment->next) {
        RONDO__CHECK_THAT(segment->pool == pool, segment, "it is of another pool");
        const rondo__allocation *range = rondo__ranges_at_or_below(&cache->segments, segment->range.base);
        RONDO__CHECK_THAT(range == &segment->range, segment, "it is not found by its address");
        counts.segments++;
        counts.reserved_bytes += segment->range.size;
        RONDO__TRY(check_segment(cache, segment, &counts));
    }
    RONDO__CHECK_THAT(check_tree_size(pool->free[0]) + check_tree_size(pool->free[1]) == counts.segment_frees,
                      pool->segments, "the trees of the pool have more than its free blocks");
    RONDO__CHECK_THAT(pool->pending == counts.out_of_memory, pool->segments,
                      "the pool's pending blocks are miscounted");
    RONDO__CHECK_THAT(check_equal(&counts, &pool->counts), pool->segments, "the statistics of the pool are wrong");
    total->allocations += counts.allocations;
    total->allocated_bytes += counts.allocated_bytes;
    total->requested_bytes += counts.requested_bytes;
    total->reserved_bytes += counts.reserved_bytes;
    total->segments += counts.segments;
    total->inactive_bytes += counts.inactive_bytes;
    total->pending_bytes += counts.pending_bytes;
    return RONDO_OK;
}

rondo_status rondo__cache_check(rondo__cache *cache) {
    rondo_memory_statistics total = {0};
    RONDO__TRY(check_pool(cache, &cache->own, &total));
    for (size_t i = 0; i < cache->pools.count; i++) {
        RONDO__TRY(check_pool(cache, *RONDO__BUFFER_AT(&cache->pools, rondo__pool *, i), &total));
    }
    RONDO__CHECK_THAT(check_equal(&total, &cache->total), NULL, "the statistics of the device are wrong");
    RONDO__CHECK_THAT(total.segments == cache->segments.count, NULL, "segments are in no pool");
    return RONDO_OK;
}

rondo_status rondo__memory_check(rondo__memory *memory) {
    rondo__mutex_lock(&memory->mutex);
    rondo_status status = rondo__cache_check(&memory->cache);
    if (!status) status = rondo__cache_check(&memory->pinned);
    rondo__mutex_unlock(&memory->mutex);
    return status;
}

#ifndef NDEBUG
void rondo__cache_assert(rondo__cache *cache) {
    if (++cache->unchecked * RONDO__CHECK_BLOCKS_AN_OPERATION < cache->made_count - cache->spare_count) return;
    cache->unchecked = 0;
    rondo_status status = rondo__cache_check(cache);
    /* For want of memory the failure may be just a word, but it is one. */
    assert(!status);
    rondo_status_release(status);
}
#endif

#undef RONDO__CHECK_THAT
