/* SPDX-License-Identifier: Apache-2.0
 *
 * Giving cached segments back to the backend: free ones of the device's own pool. Private pools keep theirs, for their
 * graphs use them at each replay, until they are released. */
#include "memory/block.h"
#include "memory/classes.h"
#include "memory/tree.h"

static bool collect_may(const rondo__cache *cache, const rondo__segment *segment, uint64_t stamp) {
    if (!rondo__segment_is_free(segment) || segment->first->stamp > stamp) return false;
    return segment->stream == RONDO__NO_STREAM || !rondo__cache_captures(cache->memory->device, segment->stream);
}

static void collect_segment(rondo__cache *cache, rondo__segment *segment) {
    rondo__block_remove(cache, segment->first);
    rondo__segment_give_back(cache, segment);
}

void rondo__cache_collect_all(rondo__cache *cache, uint64_t stamp) {
    rondo__cache_wake(cache);
    for (rondo__segment *segment = cache->own.segments, *next = NULL; segment; segment = next) {
        next = segment->next;
        if (collect_may(cache, segment, stamp)) collect_segment(cache, segment);
    }
}

/* Large free segments older than their average, round by round, until enough is reserved no more. */
void rondo__cache_collect_old(rondo__cache *cache, uint64_t stamp) {
    uint64_t target = (uint64_t)(cache->settings.collect_above * (double)cache->limit);
    for (bool more = true; more && cache->total.reserved_bytes > target;) {
        uint64_t age = 0, count = 0;
        more = false;
        for (const rondo__segment *segment = cache->own.segments; segment; segment = segment->next) {
            if (segment->kind != RONDO__POOL_LARGE || !collect_may(cache, segment, stamp)) continue;
            age += stamp - segment->first->stamp;
            count++;
        }
        for (rondo__segment *segment = cache->own.segments, *next = NULL; segment; segment = next) {
            next = segment->next;
            if (cache->total.reserved_bytes <= target) break;
            if (segment->kind != RONDO__POOL_LARGE || !collect_may(cache, segment, stamp)) continue;
            if ((stamp - segment->first->stamp) * count < age) continue;
            collect_segment(cache, segment);
            more = true;
        }
    }
}

void rondo__cache_collect_oversize(rondo__cache *cache, const rondo__request *request, uint64_t stamp) {
    uint64_t most = cache->settings.max_split_bytes;
    if (!most || request->kind != RONDO__POOL_LARGE) return;
    for (rondo__segment *segment = cache->own.segments, *next = NULL; segment; segment = next) {
        next = segment->next;
        if (segment->stream != request->stream || segment->range.size < most) continue;
        if (segment->range.size < request->rounded || !collect_may(cache, segment, stamp)) continue;
        collect_segment(cache, segment);
        return;
    }
}

rondo_status rondo_memory_trim(rondo_device *device) {
    if (!device) return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "rondo_memory_trim: the device is null");
    RONDO__TRY(rondo__device_unsafe(device, "rondo_memory_trim"));
    rondo__memory *memory = device->memory;
    rondo__mutex_lock(&memory->mutex);
    uint64_t stamp = memory->frees;
    rondo__mutex_unlock(&memory->mutex);
    rondo__device_drain(device);
    rondo__cache_settle(&memory->cache);
    rondo__cache_settle(&memory->pinned);
    rondo__mutex_lock(&memory->mutex);
    /* What only now became free was waited for, too, but shows the number of its own end. */
    rondo__cache_collect_all(&memory->cache, stamp);
    rondo__cache_collect_all(&memory->pinned, stamp);
    rondo__cache_assert(&memory->cache);
    rondo__mutex_unlock(&memory->mutex);
    return RONDO_OK;
}
