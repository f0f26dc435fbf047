/* SPDX-License-Identifier: Apache-2.0
 *
 * Private pools: who uses them, and which allocations go there. A filter is data, so that nothing foreign runs under the
 * mutex. */
#include <stdio.h>
#include <string.h>

#include "base/sized.h"
#include "memory/block.h"

/* ------------------------------------------------------------------------------------------------ looking up */

static inline bool pool_id_before(rondo_pool_id a, rondo_pool_id b) {
    return a.automatic != b.automatic ? a.automatic < b.automatic : a.user < b.user;
}

static inline bool pool_id_is(rondo_pool_id a, rondo_pool_id b) {
    return a.automatic == b.automatic && a.user == b.user;
}

/* How many pools come before the id. */
static size_t pool_index(const rondo__cache *cache, rondo_pool_id id) {
    rondo__pool *const *pools = cache->pools.data;
    size_t low = 0, high = cache->pools.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2u;
        if (pool_id_before(pools[middle]->id, id)) low = middle + 1u;
        else high = middle;
    }
    return low;
}

rondo__pool *rondo__cache_pool(rondo__cache *cache, rondo_pool_id id) {
    size_t index = pool_index(cache, id);
    if (!id.automatic && !id.user) return &cache->own;
    if (index == cache->pools.count) return NULL;
    rondo__pool *pool = *RONDO__BUFFER_AT(&cache->pools, rondo__pool *, index);
    return pool_id_is(pool->id, id) ? pool : NULL;
}

static rondo_status pool_not_found(rondo_pool_id id) {
    return RONDO__FAIL(NOT_FOUND, MEMORY, "there is no pool {%llu, %llu}: it was released, or never begun",
                       (unsigned long long)id.automatic, (unsigned long long)id.user);
}

static rondo_status pool_released(rondo_pool_id id) {
    return RONDO__FAIL(NOT_FOUND, MEMORY,
                       "pool {%llu, %llu} was released, and an id is never used again: take a new one "
                       "from rondo_pool_handle",
                       (unsigned long long)id.automatic, (unsigned long long)id.user);
}

rondo_status rondo__cache_find_pool(rondo__cache *cache, rondo_pool_id id, rondo__pool **out_pool) {
    rondo__pool *pool = rondo__cache_pool(cache, id);
    if (!pool || !pool->uses) return pool_not_found(id);
    *out_pool = pool;
    return RONDO_OK;
}

static bool pool_was_released(const rondo__cache *cache, rondo_pool_id id) {
    const rondo__released *released = cache->released;
    if (!released) return false;
    if (id.automatic > released->greatest.automatic || id.user > released->greatest.user) return false;
    if (id.automatic ? id.automatic <= released->forgotten.automatic : id.user <= released->forgotten.user) return true;
    for (uint64_t i = 0; i < RONDO__CACHE_RELEASED && i < released->count; i++) {
        if (pool_id_is(released->ids[i], id)) return true;
    }
    return false;
}

static void pool_raise(rondo_pool_id *bound, rondo_pool_id id) {
    if (bound->automatic < id.automatic) bound->automatic = id.automatic;
    if (bound->user < id.user) bound->user = id.user;
}

static void pool_remember_released(rondo__cache *cache, rondo_pool_id id) {
    rondo__released *released = cache->released;
    rondo_pool_id *place = &released->ids[released->count++ % RONDO__CACHE_RELEASED];
    pool_raise(&released->forgotten, *place);
    pool_raise(&released->greatest, id);
    *place = id;
}

/* ------------------------------------------------------------------------------------------------- life, uses */

static rondo_status pool_make(rondo__cache *cache, rondo_pool_id id, rondo__pool **out_pool) {
    const rondo_allocator *allocator = &cache->memory->allocator;
    void *memory = NULL;
    if (!cache->released && !cache->pinned) {
        RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(rondo__released), &memory));
        cache->released = memory;
    }
    if (pool_was_released(cache, id)) return pool_released(id);
    RONDO__TRY(rondo__buffer_reserve(&cache->pools, cache->pools.count + 1u));
    RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(rondo__pool), &memory));
    rondo__pool *pool = memory;
    pool->cache = cache;
    pool->id = id;
    pool->uses = 1;
    size_t index = pool_index(cache, id), after = cache->pools.count - index;
    rondo__pool **place = RONDO__BUFFER_AT(&cache->pools, rondo__pool *, index);
    memmove(place + 1, place, after * sizeof *place);
    *place = pool;
    cache->pools.count++;
    *out_pool = pool;
    return RONDO_OK;
}

static void pool_destroy(rondo__cache *cache, rondo__pool *pool) {
    size_t index = pool_index(cache, pool->id);
    rondo__pool **place = RONDO__BUFFER_AT(&cache->pools, rondo__pool *, index);
    rondo__watch_gone(&cache->memory->watch, &pool->anchor, &pool->anchor, RONDO__STALE_POOL_RELEASED);
    cache->pools.count--;
    memmove(place, place + 1, (cache->pools.count - index) * sizeof *place);
    rondo__free(&cache->memory->allocator, pool, sizeof *pool);
}

void rondo__pool_empty(rondo__cache *cache, rondo__pool *pool) {
    for (rondo__segment *segment = pool->segments, *next = NULL; segment; segment = next) {
        next = segment->next;
        if (!rondo__segment_is_free(segment)) continue;
        rondo__block *block = segment->first;
        rondo__block_remove(cache, block);
        rondo__segment_move(segment, &cache->own);
        rondo__poison_retired(cache, block);
        rondo__block_insert(cache, block);
    }
    if (!pool->segments) pool_destroy(cache, pool);
}

void rondo__cache_drop_pools(rondo__cache *cache) {
    while (cache->pools.count) pool_destroy(cache, *RONDO__BUFFER_AT(&cache->pools, rondo__pool *, 0));
    rondo__free(&cache->memory->allocator, cache->released, sizeof(rondo__released));
    cache->released = NULL;
}

/* ------------------------------------------------------------------------------------------------- diversions */

rondo__pool *rondo__cache_find_diversion(rondo__cache *cache, const rondo__request *request) {
    uint64_t thread = rondo__thread_id();
    for (size_t i = request->divert ? cache->diversions.count : 0; i-- > 0;) {
        const rondo__diversion *diversion = RONDO__BUFFER_AT(&cache->diversions, rondo__diversion, i);
        uint64_t value = diversion->kind == RONDO_MEMORY_FILTER_THREAD   ? thread
                         : diversion->kind == RONDO_MEMORY_FILTER_STREAM ? request->stream
                                                                         : request->capture;
        if (diversion->value != value) continue;
        if (diversion->kind != RONDO_MEMORY_FILTER_STREAM ||
            rondo__stream_born(cache->memory->device, value) == diversion->born)
            return diversion->pool;
    }
    return &cache->own;
}

static rondo_status pool_filter(const rondo__cache *cache, const rondo_memory_filter *filter, rondo__diversion *out) {
    rondo_memory_filter own = RONDO_MEMORY_FILTER_INIT;
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_MEMORY, "rondo_memory_filter", filter));
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_MEMORY, "rondo_memory_filter", filter, &own, sizeof own));
    out->kind = own.kind;
    switch (own.kind) {
    case RONDO_MEMORY_FILTER_THREAD: out->value = rondo__thread_id(); return RONDO_OK;
    case RONDO_MEMORY_FILTER_STREAM:
        if (!own.stream || own.stream->device != cache->memory->device || cache->pinned) break;
        out->value = own.stream->id;
        out->born = own.stream->born;
        return RONDO_OK;
    case RONDO_MEMORY_FILTER_CAPTURE:
        if (!own.capture_id || cache->pinned) break;
        out->value = own.capture_id;
        return RONDO_OK;
    default:
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "a diversion's filter has the unknown kind %d", (int)own.kind);
    }
    return RONDO__FAIL(INVALID_ARGUMENT, MEMORY,
                       cache->pinned ? "pinned host memory is of no stream: divert it by thread"
                                     : "a diversion by stream or capture needs a stream of the device, "
                                       "or the id of a capture");
}

static rondo_status pool_begin_with(rondo__cache *cache, rondo_pool_id id, rondo__diversion *diversion) {
    rondo__pool *pool = rondo__cache_pool(cache, id);
    if (pool && !pool->uses && !cache->pinned) return pool_released(id);
    if (pool && pool->recording) {
        return RONDO__FAIL(INVALID_STATE, MEMORY, "pool {%llu, %llu} records already: end that first",
                           (unsigned long long)id.automatic, (unsigned long long)id.user);
    }
    RONDO__TRY(rondo__buffer_reserve(&cache->diversions, cache->diversions.count + 1u));
    if (pool) pool->uses++;
    else RONDO__TRY(pool_make(cache, id, &pool));
    pool->recording = true;
    diversion->pool = pool;
    *RONDO__BUFFER_AT(&cache->diversions, rondo__diversion, cache->diversions.count) = *diversion;
    cache->diversions.count++;
    return RONDO_OK;
}

rondo_status rondo__cache_pool_begin(rondo__cache *cache, rondo_pool_id id, const rondo_memory_filter *filter) {
    rondo__diversion diversion = {0};
    if ((id.automatic != 0) == (id.user != 0)) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY,
                           "a pool id has exactly one part that is not 0, but {%llu, %llu} has "
                           "not",
                           (unsigned long long)id.automatic, (unsigned long long)id.user);
    }
    RONDO__TRY(pool_filter(cache, filter, &diversion));
    rondo__mutex_lock(&cache->memory->mutex);
    rondo_status status = pool_begin_with(cache, id, &diversion);
    rondo__mutex_unlock(&cache->memory->mutex);
    return status;
}

rondo_status rondo__cache_pool_end(rondo__cache *cache, rondo_pool_id id) {
    rondo__mutex_lock(&cache->memory->mutex);
    rondo__pool *pool = rondo__cache_pool(cache, id);
    bool recording = pool && pool->recording;
    if (recording) {
        size_t index = 0;
        rondo__diversion *diversions = cache->diversions.data;
        while (diversions[index].pool != pool) index++;
        cache->diversions.count--;
        memmove(&diversions[index], &diversions[index + 1u], (cache->diversions.count - index) * sizeof *diversions);
        pool->recording = false;
    }
    rondo__mutex_unlock(&cache->memory->mutex);
    if (recording) return RONDO_OK;
    return RONDO__FAIL(INVALID_STATE, MEMORY, "pool {%llu, %llu} does not record", (unsigned long long)id.automatic,
                       (unsigned long long)id.user);
}

rondo_status rondo__cache_pool_retain(rondo__cache *cache, rondo_pool_id id) {
    rondo__pool *pool = NULL;
    rondo__mutex_lock(&cache->memory->mutex);
    rondo_status status = rondo__cache_find_pool(cache, id, &pool);
    if (!status && pool != &cache->own) pool->uses++;
    rondo__mutex_unlock(&cache->memory->mutex);
    return status;
}

void rondo__pool_let_go(rondo__cache *cache, rondo__pool *pool) {
    if (--pool->uses) return;
    rondo__cache_wake(cache);
    /* Which ids are used up the device's own pools say: a graph that goes takes its pinned memory along, and the next one
     * of a pool that others keep begins with none. */
    if (!cache->pinned) pool_remember_released(cache, pool->id);
    rondo__watch_gone(&cache->memory->watch, &pool->anchor, &pool->anchor, RONDO__STALE_POOL_RELEASED);
    rondo__memory_raise_epoch(cache->memory);
    rondo__pool_empty(cache, pool);
}

static rondo_status pool_release_locked(rondo__cache *cache, rondo_pool_id id) {
    rondo__pool *pool = NULL;
    rondo__cache_wake(cache);
    RONDO__TRY(rondo__cache_find_pool(cache, id, &pool));
    if (pool == &cache->own) return RONDO_OK;
    if (pool->uses == pool->kept + 1u && pool->recording) {
        return RONDO__FAIL(INVALID_STATE, MEMORY,
                           "pool {%llu, %llu} still records: end that before its last use is "
                           "released",
                           (unsigned long long)id.automatic, (unsigned long long)id.user);
    }
    rondo__pool_let_go(cache, pool);
    return RONDO_OK;
}

rondo_status rondo__cache_pool_release(rondo__cache *cache, rondo_pool_id id) {
    rondo__mutex_lock(&cache->memory->mutex);
    rondo_status status = pool_release_locked(cache, id);
    rondo__cache_assert(cache);
    rondo__mutex_unlock(&cache->memory->mutex);
    return status;
}

/* ----------------------------------------------------------------------------------------------- public calls */

static rondo_status pool_no_device(const char *what) {
    return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "%s: the device is null", what);
}

rondo_status rondo_memory_pool_begin(rondo_device *device, rondo_pool_id pool, const rondo_memory_filter *filter) {
    return device ? rondo__cache_pool_begin(&device->memory->cache, pool, filter)
                  : pool_no_device("rondo_memory_pool_begin");
}

rondo_status rondo_memory_pool_end(rondo_device *device, rondo_pool_id pool) {
    return device ? rondo__cache_pool_end(&device->memory->cache, pool) : pool_no_device("rondo_memory_pool_end");
}

rondo_status rondo_memory_pool_retain(rondo_device *device, rondo_pool_id pool) {
    return device ? rondo__cache_pool_retain(&device->memory->cache, pool) : pool_no_device("rondo_memory_pool_retain");
}

rondo_status rondo_memory_pool_release(rondo_device *device, rondo_pool_id pool) {
    return device ? rondo__cache_pool_release(&device->memory->cache, pool)
                  : pool_no_device("rondo_memory_pool_release");
}

rondo_status rondo__memory_pinned_begin(rondo__memory *memory, rondo_pool_id pool, const rondo_memory_filter *filter) {
    return rondo__cache_pool_begin(&memory->pinned, pool, filter);
}

rondo_status rondo__memory_pinned_end(rondo__memory *memory, rondo_pool_id pool) {
    return rondo__cache_pool_end(&memory->pinned, pool);
}

rondo_status rondo__memory_pinned_release(rondo__memory *memory, rondo_pool_id pool) {
    return rondo__cache_pool_release(&memory->pinned, pool);
}

void rondo__memory_pool_label(rondo__memory *memory, rondo_pool_id id, const char *label) {
    rondo__mutex_lock(&memory->mutex);
    rondo__pool *pool = rondo__cache_pool(&memory->cache, id);
    if (pool && pool != &memory->cache.own) (void)snprintf(pool->label, sizeof pool->label, "%s", label ? label : "");
    rondo__mutex_unlock(&memory->mutex);
}

/* Each of the expected is a live block of the pool, and another than those before. */
static bool pool_live_equal(rondo__cache *cache, const rondo__pool *pool, const void *const *expected, uint64_t count) {
    if (pool->counts.allocations != count) return false;
    cache->round++;
    for (uint64_t i = 0; i < count; i++) {
        rondo__block *block = rondo__cache_live(cache, (uint64_t)(uintptr_t)expected[i]);
        if (!block || block->segment->pool != pool || block->round == cache->round) return false;
        block->round = cache->round;
    }
    return true;
}

rondo_status rondo_memory_pool_live(rondo_device *device, rondo_pool_id id, const void *const *expected,
                                    uint64_t expected_count, bool *out_equal) {
    rondo__pool *pool = NULL;
    if (!device || (expected_count && !expected) || !out_equal) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY,
                           "rondo_memory_pool_live needs a device, the expected blocks and a "
                           "place for the answer");
    }
    rondo__mutex_lock(&device->memory->mutex);
    rondo_status status = rondo__cache_find_pool(&device->memory->cache, id, &pool);
    if (!status) *out_equal = pool_live_equal(&device->memory->cache, pool, expected, expected_count);
    rondo__mutex_unlock(&device->memory->mutex);
    return status;
}
