/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocator as a whole: its beginning and end, spare blocks, and from an address to its block. */
#include "memory/cache.h"

#include "memory/block.h"
#include "memory/classes.h"

#define RONDO__CACHE_SLAB 64u
#define RONDO__CACHE_POOLS_MAX (1u << 20)

/* Blocks are made by the slab and stay until the end. */
typedef struct rondo__slab {
    struct rondo__slab *next;
    rondo__block blocks[RONDO__CACHE_SLAB];
} rondo__slab;

void rondo__cache_init(rondo__cache *cache, rondo__memory *memory, bool pinned) {
    const rondo_device *device = memory->device;
    *cache = (rondo__cache){.memory = memory, .pinned = pinned, .limit = UINT64_MAX, .random = 0x9e3779b97f4a7c15u};
    cache->unit = RONDO__CLASS_BLOCK;
    if (!pinned && cache->unit < device->properties.allocation_alignment) {
        cache->unit = device->properties.allocation_alignment;
    }
    cache->tells = rondo__poison_is_told(cache);
    cache->apart = !pinned && device->table->memory->on_reuse;
    cache->settings = (rondo_memory_settings)RONDO_MEMORY_SETTINGS_INIT;
    cache->own.cache = cache;
    cache->own.uses = 1;
    rondo__ranges_init(&cache->segments, &memory->allocator);
    rondo__buffer_init(&cache->pools, &memory->allocator, sizeof(rondo__pool *), RONDO__CACHE_POOLS_MAX);
    rondo__buffer_init(&cache->diversions, &memory->allocator, sizeof(rondo__diversion), RONDO__CACHE_POOLS_MAX);
    rondo__buffer_init(&cache->events, &memory->allocator, sizeof(void *), RONDO__CACHE_POOLS_MAX);
    rondo__buffer_init(&cache->queues, &memory->allocator, sizeof(rondo__queue), RONDO__CACHE_POOLS_MAX);
}

rondo_status rondo__cache_reserve(rondo__cache *cache, uint64_t blocks) {
    while (cache->spare_count < blocks) {
        void *memory = NULL;
        RONDO__TRY(rondo__allocate_zeroed(&cache->memory->allocator, sizeof(rondo__slab), &memory));
        rondo__slab *slab = memory;
        slab->next = cache->slabs;
        cache->slabs = slab;
        /* The first of the slab is the next to be used. */
        for (uint32_t i = RONDO__CACHE_SLAB; i-- > 0;) {
            slab->blocks[i].left = cache->spare;
            cache->spare = &slab->blocks[i];
        }
        cache->spare_count += RONDO__CACHE_SLAB;
        cache->made_count += RONDO__CACHE_SLAB;
    }
    return RONDO_OK;
}

/* The blocks of a segment end; one is left, free and in no tree. */
static void cache_close_segment(rondo__cache *cache, rondo__segment *segment) {
    rondo__block *block = segment->first;
    for (rondo__block *next = NULL; block; block = next) {
        next = block->next;
        if (block->state == RONDO__BLOCK_LIVE) {
            while (block->uses) rondo__cache_forget_use(cache, block);
            rondo__block_end(cache, block, RONDO__PAST_CLOSED);
        }
        rondo__watch_gone(&cache->memory->watch, &block->allocation, &segment->pool->anchor, RONDO__STALE_FREED);
        if (block != segment->first) rondo__block_drop(cache, block);
    }
}

void rondo__cache_deinit(rondo__cache *cache) {
    const rondo_allocator *allocator = &cache->memory->allocator;
    rondo__allocation *range;
    rondo__cache_wake(cache);
    while ((range = rondo__ranges_at_or_above(&cache->segments, 0)) != NULL) {
        rondo__segment *segment = (rondo__segment *)(void *)range;
        cache_close_segment(cache, segment);
        rondo__segment_give_back(cache, segment);
    }
    rondo__cache_drop_waits(cache);
    rondo__cache_drop_pools(cache);
    while (cache->slabs) {
        rondo__slab *slab = cache->slabs;
        cache->slabs = slab->next;
        rondo__free(allocator, slab, sizeof *slab);
    }
    rondo__ranges_deinit(&cache->segments);
    rondo__buffer_deinit(&cache->pools);
    rondo__buffer_deinit(&cache->diversions);
    rondo__buffer_deinit(&cache->events);
    rondo__buffer_deinit(&cache->queues);
}

rondo__segment *rondo__cache_find_segment(rondo__cache *cache, uint64_t address) {
    rondo__allocation *range = rondo__ranges_at_or_below(&cache->segments, address);
    if (!range || address - range->base >= range->size) return NULL;
    cache->recent = (rondo__segment *)(void *)range;
    return cache->recent;
}
