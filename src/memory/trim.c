/* SPDX-License-Identifier: Apache-2.0
 *
 * A private pool's segments are used by its graphs whether or not their blocks are live, so nothing here knows when one
 * is needed no more. Who recorded the graphs does: it kept the pool's layout after each, and a layout says where blocks
 * came since the one before. */
#include "memory/block.h"
#include "memory/checkpoint.h"

static void trim_keep(const rondo__cache *cache, const rondo__pool *pool, const rondo_memory_checkpoint *checkpoint) {
    for (uint64_t i = 0; i < checkpoint->segment_count; i++) {
        const rondo__saved_segment *saved = &checkpoint->segments[i];
        rondo__segment *segment = saved->needed ? rondo__saved_segment_now(cache, pool, saved) : NULL;
        if (segment) segment->kept = true;
    }
}

static rondo_status trim_locked(rondo__cache *cache, rondo_pool_id id,
                                const rondo_memory_checkpoint *const *checkpoints, uint64_t count, uint64_t stamp) {
    rondo_device *device = cache->memory->device;
    rondo__pool *pool = NULL;
    rondo__cache_wake(cache);
    RONDO__TRY(rondo__cache_find_pool(cache, id, &pool));
    if (pool == &cache->own) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "layouts are of private pools: {0, 0} is the device's own");
    }
    if (pool->kept)
        return RONDO_OK; /* by graphs that the manager knows nothing of: child graphs were copied into them */
    for (rondo__segment *segment = pool->segments; segment; segment = segment->next) segment->kept = false;
    for (uint64_t i = 0; i < count; i++) trim_keep(cache, pool, checkpoints[i]);
    for (rondo__segment *segment = pool->segments, *next = NULL; segment; segment = next) {
        next = segment->next;
        if (segment->kept || !rondo__segment_is_free(segment) || segment->first->stamp > stamp) continue;
        if (segment->stream != RONDO__NO_STREAM && rondo__cache_captures(device, segment->stream)) continue;
        rondo__block_remove(cache, segment->first);
        rondo__segment_give_back(cache, segment);
    }
    return RONDO_OK;
}

rondo_status rondo__memory_pool_trim(rondo__memory *memory, rondo_pool_id pool,
                                     const rondo_memory_checkpoint *const *checkpoints, uint64_t count) {
    rondo__mutex_lock(&memory->mutex);
    uint64_t stamp = memory->frees;
    rondo__mutex_unlock(&memory->mutex);
    rondo__device_drain(memory->device);
    rondo__cache_settle(&memory->cache);
    rondo__mutex_lock(&memory->mutex);
    rondo_status status = trim_locked(&memory->cache, pool, checkpoints, count, stamp);
    rondo__cache_assert(&memory->cache);
    rondo__mutex_unlock(&memory->mutex);
    return status;
}

/* The first live block of the segment at or above the address. */
static const rondo__block *trim_live_from(const rondo__segment *segment, uint64_t from) {
    for (const rondo__block *block = segment->first; block; block = block->next) {
        if (block->state == RONDO__BLOCK_LIVE && block->allocation.base >= from) return block;
    }
    return NULL;
}

static const rondo__block *trim_next(const rondo__cache *cache, const rondo__pool *pool, uint64_t from) {
    const rondo__allocation *range = rondo__ranges_at_or_below(&cache->segments, from);
    uint64_t at = range ? range->base : 0;
    for (; (range = rondo__ranges_at_or_above(&cache->segments, at)) != NULL; at = range->base + 1u) {
        const rondo__segment *segment = (const rondo__segment *)(const void *)range;
        const rondo__block *block = segment->pool == pool ? trim_live_from(segment, from) : NULL;
        if (block) return block;
    }
    return NULL;
}

bool rondo__memory_pool_next(rondo__memory *memory, rondo_pool_id pool, uint64_t from, uint64_t *out_address,
                             uint64_t *out_bytes) {
    rondo__mutex_lock(&memory->mutex);
    const rondo__pool *own = rondo__cache_pool(&memory->cache, pool);
    const rondo__block *block = own ? trim_next(&memory->cache, own, from) : NULL;
    if (block) {
        *out_address = block->allocation.base;
        *out_bytes = block->allocation.size;
    }
    rondo__mutex_unlock(&memory->mutex);
    return block != NULL;
}
