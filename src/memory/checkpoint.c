/* SPDX-License-Identifier: Apache-2.0
 *
 * The exact layout of a pool, kept and brought back. A restore writes the chain of blocks anew, segment by segment, and
 * leaves alone what is the same in both layouts: no allocating and freeing is replayed, and nothing in it can fail once
 * it has begun. */
#include "memory/checkpoint.h"

#include <string.h>

#include "memory/block.h"
#include "memory/poison.h"
#include "memory/rebuild.h"

/* ------------------------------------------------------------------------------------------------------- keep */

static void checkpoint_count(const rondo__pool *pool, uint64_t *out_segments, uint64_t *out_blocks) {
    *out_segments = *out_blocks = 0;
    for (const rondo__segment *segment = pool->segments; segment; segment = segment->next) {
        ++*out_segments;
        for (const rondo__block *block = segment->first; block; block = block->next) ++*out_blocks;
    }
}

static void checkpoint_fill(rondo_memory_checkpoint *checkpoint, const rondo__pool *pool) {
    rondo__saved_segment *saved = checkpoint->segments;
    rondo__saved_block *next = checkpoint->blocks;
    for (const rondo__segment *segment = pool->segments; segment; segment = segment->next, saved++) {
        *saved = (rondo__saved_segment){
            segment->range.base, segment->range.size, segment->kind, segment->touched >= pool->cut, next, 0};
        for (const rondo__block *block = segment->first; block; block = block->next) {
            bool live = block->state == RONDO__BLOCK_LIVE;
            *next++ = (rondo__saved_block){block->size, block->allocation.size, live};
            saved->count++;
            saved->needed |= live;
            checkpoint->live += live;
        }
    }
}

/* Everything that could wait for a stream is waited for, so that a layout is what it says. The mutex is held after. */
static rondo_status checkpoint_enter(rondo__cache *cache, rondo_pool_id id, rondo__pool **out_pool) {
    rondo__device_drain(cache->memory->device);
    rondo__cache_settle(cache);
    rondo__mutex_lock(&cache->memory->mutex);
    rondo__cache_wake(cache);
    RONDO__TRY(rondo__cache_find_pool(cache, id, out_pool));
    if (*out_pool == &cache->own) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "checkpoints are of private pools: {0, 0} is the device's own");
    }
    if (!(*out_pool)->pending) return RONDO_OK;
    return RONDO__FAIL(INVALID_STATE, MEMORY,
                       "%llu freed blocks of pool {%llu, %llu} are still used by a stream that "
                       "captures, or by a graph",
                       (unsigned long long)(*out_pool)->pending, (unsigned long long)id.automatic,
                       (unsigned long long)id.user);
}

static rondo_status checkpoint_make(rondo__cache *cache, rondo__pool *pool, rondo_memory_checkpoint **out_checkpoint) {
    const rondo_allocator *allocator = &cache->memory->allocator;
    uint64_t segments = 0, blocks = 0;
    void *memory = NULL;
    checkpoint_count(pool, &segments, &blocks);
    size_t size = sizeof(rondo_memory_checkpoint) + (size_t)segments * sizeof(rondo__saved_segment) +
                  (size_t)blocks * sizeof(rondo__saved_block);
    RONDO__TRY(rondo__allocate(allocator, size, &memory));
    rondo_memory_checkpoint *checkpoint = memory;
    *checkpoint = (rondo_memory_checkpoint){.device = cache->memory->device,
                                            .size = size,
                                            .pool = pool->id,
                                            .segment_count = segments,
                                            .block_count = blocks};
    checkpoint->segments = (rondo__saved_segment *)(void *)(checkpoint + 1);
    checkpoint->blocks = (rondo__saved_block *)(void *)(checkpoint->segments + segments);
    checkpoint_fill(checkpoint, pool);
    pool->cut = cache->memory->next_generation;
    *out_checkpoint = checkpoint;
    return RONDO_OK;
}

rondo_status rondo_memory_checkpoint_create(rondo_device *device, rondo_pool_id id,
                                            rondo_memory_checkpoint **out_checkpoint) {
    rondo__pool *pool = NULL;
    if (!device || !out_checkpoint) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "a checkpoint needs a device and a place");
    }
    rondo__cache *cache = &device->memory->cache;
    rondo_status status = checkpoint_enter(cache, id, &pool);
    if (!status) status = checkpoint_make(cache, pool, out_checkpoint);
    rondo__mutex_unlock(&device->memory->mutex);
    if (!status) rondo_device_retain(device);
    return status;
}

void rondo_memory_checkpoint_release(rondo_memory_checkpoint *checkpoint) {
    if (!checkpoint) return;
    rondo_device *device = checkpoint->device;
    rondo__free(&device->allocator, checkpoint, checkpoint->size);
    rondo_device_release(device);
}

/* ------------------------------------------------------------------------------------------------ before a restore */

/* The two lists are one block of memory, with its size in front. */
typedef struct checkpoint_lists {
    uint64_t size, reserved;
    void *pointers[];
} checkpoint_lists;

static rondo_status checkpoint_make_lists(const rondo__cache *cache, uint64_t freed, uint64_t created,
                                          rondo_memory_delta *delta) {
    size_t size = sizeof(checkpoint_lists) + (size_t)(freed + created) * sizeof(void *);
    void *memory = NULL;
    RONDO__TRY(rondo__allocate(&cache->memory->allocator, size, &memory));
    checkpoint_lists *lists = memory;
    lists->size = size;
    delta->freed = lists->pointers;
    delta->created = lists->pointers + freed;
    delta->freed_count = delta->created_count = 0;
    return RONDO_OK;
}

void rondo_memory_delta_release(rondo_device *device, rondo_memory_delta *delta) {
    if (!device || !delta || !delta->freed) return;
    checkpoint_lists *lists = (checkpoint_lists *)(void *)((char *)delta->freed - offsetof(checkpoint_lists, pointers));
    rondo__free(&device->allocator, lists, (size_t)lists->size);
    delta->freed = delta->created = NULL;
    delta->freed_count = delta->created_count = 0;
}

rondo__segment *rondo__saved_segment_now(const rondo__cache *cache, const rondo__pool *pool,
                                         const rondo__saved_segment *saved) {
    rondo__allocation *range = rondo__ranges_at_or_below(&cache->segments, saved->base);
    rondo__segment *segment = (rondo__segment *)(void *)range;
    bool same = range && range->base == saved->base && range->size == saved->size && segment->pool == pool &&
                segment->kind == saved->kind;
    return same ? segment : NULL;
}

static uint64_t checkpoint_lacks(const rondo__segment *segment, const rondo__saved_segment *saved) {
    uint64_t count = 0;
    for (const rondo__block *block = segment->first; block; block = block->next) count++;
    return saved->count > count ? saved->count - count : 0;
}

static bool checkpoint_is_free(const rondo__saved_segment *saved) {
    return saved->count == 1 && !saved->blocks[0].live;
}

/* All segments are there, but for wholly free ones, which may have gone meanwhile (trim.c); and blocks enough to write
 * every chain. */
static rondo_status checkpoint_prepare(rondo__cache *cache, rondo__pool *pool,
                                       const rondo_memory_checkpoint *checkpoint) {
    uint64_t lacking = 0;
    for (rondo__segment *segment = pool->segments; segment; segment = segment->next) segment->kept = false;
    for (uint64_t i = 0; i < checkpoint->segment_count; i++) {
        rondo__segment *segment = rondo__saved_segment_now(cache, pool, &checkpoint->segments[i]);
        if (!segment && checkpoint_is_free(&checkpoint->segments[i])) continue;
        if (!segment) {
            return RONDO__FAIL(CORRUPT, MEMORY,
                               "the segment of %llu bytes at 0x%llx, which the checkpoint of pool {%llu, "
                               "%llu} has, is gone",
                               (unsigned long long)checkpoint->segments[i].size,
                               (unsigned long long)checkpoint->segments[i].base, (unsigned long long)pool->id.automatic,
                               (unsigned long long)pool->id.user);
        }
        segment->kept = true;
        lacking += checkpoint_lacks(segment, &checkpoint->segments[i]);
    }
    return rondo__cache_reserve(cache, lacking);
}

/* --------------------------------------------------------------------------------------------------- restore */

static void checkpoint_end_block(rondo__cache *cache, rondo__block *block, rondo_memory_delta *delta) {
    delta->freed[delta->freed_count++] = (void *)(uintptr_t)block->allocation.base;
    while (block->uses) rondo__cache_forget_use(cache, block);
    rondo__block_end(cache, block, RONDO__PAST_RESTORED);
    block->state = RONDO__BLOCK_FREE;
    rondo__poison_taken_back(cache, block);
}

/* Blocks of the segment that are not in the saved layout go; the others stay chained by `next`. Two walks in order of
 * address, side by side. */
static rondo__block *checkpoint_retire(rondo__cache *cache, rondo__segment *segment, const rondo__saved_segment *saved,
                                       rondo_memory_delta *delta) {
    rondo__block *kept = NULL, **link = &kept, *next = NULL;
    uint64_t at = segment->range.base, i = 0;
    for (rondo__block *block = segment->first; block; block = next) {
        next = block->next;
        while (i < saved->count && at < block->allocation.base) at += saved->blocks[i++].size;
        bool live = block->state == RONDO__BLOCK_LIVE;
        if (i < saved->count && at == block->allocation.base && saved->blocks[i].size == block->size &&
            saved->blocks[i].live == live) {
            /* A free one may have other neighbours now, which decides how it is counted. */
            if (!live) rondo__block_uncount(cache, block);
            *link = block;
            link = &block->next;
            continue;
        }
        if (live) checkpoint_end_block(cache, block, delta);
        else rondo__block_remove(cache, block);
        rondo__block_drop(cache, block);
    }
    *link = NULL;
    return kept;
}

static void checkpoint_write(rondo__cache *cache, rondo__segment *segment, const rondo__saved_segment *saved,
                             rondo_memory_delta *delta) {
    rondo__block *kept = checkpoint_retire(cache, segment, saved, delta), *previous = NULL;
    uint64_t at = segment->range.base;
    for (uint64_t i = 0; i < saved->count; at += saved->blocks[i++].size) {
        rondo__block *block = kept;
        bool fresh = !kept || kept->allocation.base != at;
        if (fresh) block = rondo__block_make(cache, segment, at, saved->blocks[i].size);
        else kept = kept->next;
        block->previous = previous;
        if (previous) previous->next = block;
        else segment->first = block;
        previous = block;
        block->next = NULL;
        block->kept = !fresh;
    }
    const rondo__saved_block *was = saved->blocks;
    for (rondo__block *block = segment->first; block; block = block->next, was++) {
        if (was->live && !block->kept) {
            rondo__block_live(cache, block, was->requested);
            delta->created[delta->created_count++] = (void *)(uintptr_t)block->allocation.base;
        } else if (!was->live && block->kept) {
            rondo__block_count(cache, block);
        } else if (!was->live) {
            block->stamp = cache->memory->frees;
            rondo__block_insert(cache, block);
        }
    }
}

static void checkpoint_apply(rondo__cache *cache, rondo__pool *pool, const rondo_memory_checkpoint *checkpoint,
                             rondo_memory_delta *delta) {
    for (uint64_t i = 0; i < checkpoint->segment_count; i++) {
        const rondo__saved_segment *saved = &checkpoint->segments[i];
        rondo__segment *segment = rondo__saved_segment_now(cache, pool, saved);
        if (segment) checkpoint_write(cache, segment, saved, delta);
    }
    for (rondo__segment *segment = pool->segments; segment; segment = segment->next) {
        rondo__saved_block whole = {segment->range.size, 0, false};
        rondo__saved_segment saved = {segment->range.base, segment->range.size, segment->kind, false, &whole, 1};
        if (!segment->kept) checkpoint_write(cache, segment, &saved, delta);
    }
    pool->cut = cache->memory->next_generation;
}

rondo_status rondo_memory_checkpoint_restore(rondo_memory_checkpoint *checkpoint, rondo_memory_delta *out_delta) {
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    rondo__rebuild rebuild = {0};
    rondo__pool *pool = NULL;
    if (!checkpoint || !out_delta || out_delta->struct_size < sizeof delta) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY,
                           "a restore needs a checkpoint, and a delta that starts from "
                           "RONDO_MEMORY_DELTA_INIT");
    }
    rondo__cache *cache = &checkpoint->device->memory->cache;
    rondo_status status = checkpoint_enter(cache, checkpoint->pool, &pool);
    if (!status) status = checkpoint_prepare(cache, pool, checkpoint);
    if (!status) status = checkpoint_make_lists(cache, pool->counts.allocations, checkpoint->live, &delta);
    /* Free blocks that the pool may have then: those of the checkpoint, and one a segment that is newer. */
    uint64_t most_free = checkpoint->block_count - checkpoint->live + (pool ? pool->counts.segments : 0);
    if (!status && most_free >= RONDO__REBUILD_LEAST) {
        status = rondo__rebuild_begin(cache, most_free, &rebuild);
        if (status) rondo_memory_delta_release(checkpoint->device, &delta);
    }
    if (!status) {
        cache->restores = true;
        checkpoint_apply(cache, pool, checkpoint, &delta);
        cache->restores = false;
        if (cache->rebuilds) rondo__rebuild_end(cache, pool, &rebuild);
        *out_delta = delta;
        rondo__cache_assert(cache);
    }
    rondo__mutex_unlock(&cache->memory->mutex);
    return status;
}
