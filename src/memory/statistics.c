/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures that are kept as things happen, so that asking costs nothing; and the settings. */
#include <string.h>

#include "base/sized.h"
#include "memory/block.h"
#include "memory/classes.h"

static rondo_status statistics_of(rondo__cache *cache, rondo_pool_id id, rondo_memory_statistics *out_statistics) {
    rondo__pool *pool = NULL;
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_MEMORY, "rondo_memory_statistics", out_statistics));
    rondo__mutex_lock(&cache->memory->mutex);
    rondo__cache_wake(cache);
    rondo_status status = rondo__cache_find_pool(cache, id, &pool);
    if (!status) {
        const rondo_memory_statistics *found = pool == &cache->own ? &cache->total : &pool->counts;
        rondo__sized_write(found, sizeof *found, out_statistics);
    }
    rondo__mutex_unlock(&cache->memory->mutex);
    return status;
}

rondo_status rondo_memory_get_statistics(rondo_device *device, rondo_pool_id pool,
                                         rondo_memory_statistics *out_statistics) {
    if (!device || !out_statistics) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "statistics need a device and a place");
    }
    return statistics_of(&device->memory->cache, pool, out_statistics);
}

rondo_status rondo_memory_reset_peaks(rondo_device *device, rondo_pool_id id) {
    rondo__pool *pool = NULL;
    if (!device) return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "rondo_memory_reset_peaks needs a device");
    rondo__cache *cache = &device->memory->cache;
    rondo__mutex_lock(&device->memory->mutex);
    rondo_status status = rondo__cache_find_pool(cache, id, &pool);
    if (!status) {
        rondo_memory_statistics *counts = pool == &cache->own ? &cache->total : &pool->counts;
        counts->allocated_peak = counts->allocated_bytes;
        counts->requested_peak = counts->requested_bytes;
        counts->allocations_peak = counts->allocations;
        counts->reserved_peak = counts->reserved_bytes;
        counts->segments_peak = counts->segments;
    }
    rondo__mutex_unlock(&device->memory->mutex);
    return status;
}

rondo_status rondo__memory_pinned_statistics(rondo__memory *memory, rondo_pool_id pool,
                                             rondo_memory_statistics *out_statistics) {
    return statistics_of(&memory->pinned, pool, out_statistics);
}

static rondo_status statistics_bad_settings(const rondo_memory_settings *s) {
    if (s->expandable_segments) {
        return RONDO__FAIL(UNSUPPORTED, MEMORY,
                           "expandable_segments: segments that grow in place do not exist here; "
                           "max_split_bytes keeps large ones whole");
    }
    if (s->max_split_bytes && s->max_split_bytes < RONDO__CLASS_LARGE_SEGMENT) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "max_split_bytes is %llu: 0, or at least %llu",
                           (unsigned long long)s->max_split_bytes, (unsigned long long)RONDO__CLASS_LARGE_SEGMENT);
    }
    if (s->roundup_divisions > 64u || (s->roundup_divisions & (s->roundup_divisions - 1u)) != 0) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "roundup_divisions is %u: a power of two up to 64, or 0",
                           s->roundup_divisions);
    }
    if (!(s->collect_above >= 0.0 && s->collect_above < 1.0)) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "collect_above is %g: from 0 (never) to below 1",
                           s->collect_above);
    }
    return RONDO_OK;
}

rondo_status rondo_memory_configure(rondo_device *device, const rondo_memory_settings *settings) {
    rondo_memory_settings own = RONDO_MEMORY_SETTINGS_INIT;
    if (!device) return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "rondo_memory_configure needs a device");
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_MEMORY, "rondo_memory_settings", settings));
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_MEMORY, "rondo_memory_settings", settings, &own, sizeof own));
    RONDO__TRY(statistics_bad_settings(&own));
    rondo__mutex_lock(&device->memory->mutex);
    device->memory->cache.settings = own;
    device->memory->cache.shape++;
    __atomic_store_n(&device->memory->cache.divisions, own.roundup_divisions, __ATOMIC_RELAXED);
    rondo__mutex_unlock(&device->memory->mutex);
    return RONDO_OK;
}

rondo_status rondo_memory_set_fraction(rondo_device *device, double fraction) {
    uint64_t free_bytes = 0, total = 0;
    if (!device) return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "rondo_memory_set_fraction: the device is null");
    if (!(fraction > 0.0 && fraction <= 1.0)) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "the fraction is %g: above 0 and up to 1", fraction);
    }
    RONDO__TRY(rondo_device_memory_info(device, &free_bytes, &total));
    if (!total) {
        return RONDO__FAIL(UNSUPPORTED, MEMORY, "device '%s' does not say how much memory it has",
                           device->properties.name);
    }
    rondo__mutex_lock(&device->memory->mutex);
    device->memory->cache.limit = (uint64_t)(fraction * (double)total);
    rondo__mutex_unlock(&device->memory->mutex);
    return RONDO_OK;
}
