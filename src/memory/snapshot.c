/* SPDX-License-Identifier: Apache-2.0
 *
 * Segments and blocks as JSON: the field names and states of PyTorch's memory snapshot, so that its tools read it. */
#include "memory/block.h"

#define RONDO__SNAPSHOT_MAX ((size_t)1 << 32)

static const char *snapshot_state(const rondo__block *block) {
    switch (block->state) {
    case RONDO__BLOCK_LIVE: return "active_allocated";
    case RONDO__BLOCK_PENDING: return "active_pending_free";
    default: return "inactive";
    }
}

static rondo_status snapshot_block(rondo__buffer *text, const rondo__block *block) {
    uint64_t requested = block->state == RONDO__BLOCK_FREE ? 0 : block->allocation.size;
    return rondo__text_append(text,
                              "%s{\"address\":%llu,\"size\":%llu,\"requested_size\":%llu,\"state\":\"%s\","
                              "\"frames\":[]}",
                              block->previous ? "," : "", (unsigned long long)block->allocation.base,
                              (unsigned long long)block->size, (unsigned long long)requested, snapshot_state(block));
}

static rondo_status snapshot_segment(rondo__buffer *text, const rondo__cache *cache, const rondo__segment *segment,
                                     bool first) {
    uint64_t allocated = 0, active = 0, requested = 0;
    for (const rondo__block *block = segment->first; block; block = block->next) {
        if (block->state == RONDO__BLOCK_FREE) continue;
        active += block->size;
        requested += block->allocation.size;
        if (block->state == RONDO__BLOCK_LIVE) allocated += block->size;
    }
    RONDO__TRY(rondo__text_append(
        text,
        "%s\n{\"device\":%d,\"address\":%llu,\"total_size\":%llu,\"allocated_size\":%llu,\"active_size\":%llu,"
        "\"requested_size\":%llu,\"stream\":%llu,\"segment_type\":\"%s\",\"segment_pool_id\":[%llu,%llu],"
        "\"is_expandable\":false,\"frames\":[],\"blocks\":[",
        first ? "" : ",", (int)cache->memory->device->properties.index, (unsigned long long)segment->range.base,
        (unsigned long long)segment->range.size, (unsigned long long)allocated, (unsigned long long)active,
        (unsigned long long)requested, (unsigned long long)segment->stream,
        segment->kind == RONDO__POOL_SMALL ? "small" : "large", (unsigned long long)segment->pool->id.automatic,
        (unsigned long long)segment->pool->id.user));
    for (const rondo__block *block = segment->first; block; block = block->next) {
        RONDO__TRY(snapshot_block(text, block));
    }
    return rondo__text_append(text, "]}");
}

static rondo_status snapshot_write(rondo__buffer *text, rondo__cache *cache, rondo_pool_id id) {
    const rondo__pool *only = NULL;
    rondo__pool *pool = NULL;
    const rondo__allocation *range;
    bool first = true;
    rondo__cache_wake(cache);
    RONDO__TRY(rondo__cache_find_pool(cache, id, &pool));
    if (pool != &cache->own) only = pool;
    RONDO__TRY(rondo__text_append(text, "{\"segments\":["));
    for (uint64_t at = 0; (range = rondo__ranges_at_or_above(&cache->segments, at)) != NULL; at = range->base + 1u) {
        const rondo__segment *segment = (const rondo__segment *)(const void *)range;
        if (only && segment->pool != only) continue;
        RONDO__TRY(snapshot_segment(text, cache, segment, first));
        first = false;
    }
    /* A list of events a device, by its index, none of which is kept: without it a viewer does not offer the device. */
    RONDO__TRY(rondo__text_append(text, "],\n\"device_traces\":["));
    for (int32_t i = 0; i <= cache->memory->device->properties.index; i++)
        RONDO__TRY(rondo__text_append(text, i ? ",[]" : "[]"));
    return rondo__text_append(
        text,
        "],\"external_annotations\":[],\"allocator_settings\":{\"max_split_size\":%lld,"
        "\"garbage_collection_threshold\":%g,\"expandable_segments\":false,\"roundup_power2_divisions\":%u}}\n",
        cache->settings.max_split_bytes ? (long long)cache->settings.max_split_bytes : -1LL,
        cache->settings.collect_above, cache->settings.roundup_divisions);
}

rondo_status rondo_memory_snapshot(rondo_device *device, rondo_pool_id pool, rondo_memory_write write, void *user) {
    rondo__buffer text;
    if (!device || !write)
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "a snapshot needs a device and a write function");
    rondo__buffer_init(&text, &device->allocator, 1, RONDO__SNAPSHOT_MAX);
    rondo__mutex_lock(&device->memory->mutex);
    rondo_status status = snapshot_write(&text, &device->memory->cache, pool);
    rondo__mutex_unlock(&device->memory->mutex);
    int32_t refused = 0;
    if (!status) refused = write(user, rondo__text(&text), text.count);
    rondo__buffer_deinit(&text);
    if (status || !refused) return status;
    return RONDO__FAIL(IO, MEMORY, "the snapshot was not written: its write function returned %d", (int)refused);
}
