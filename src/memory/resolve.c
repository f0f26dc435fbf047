/* SPDX-License-Identifier: Apache-2.0
 *
 * From an address to its allocation, when a call is recorded; and from a remembered allocation to what became of it.
 *
 * Recording asks for the same few buffers again and again. So a watcher keeps the last ones it met and looks there
 * first, without the mutex: it watches them already, hence a free that happens meanwhile still marks it stale. */
#include <stdio.h>

#include "memory/block.h"

void rondo__memory_watcher_init(rondo__memory_watcher *watcher, uint64_t id) {
    *watcher = (rondo__memory_watcher){.id = id};
    atomic_init(&watcher->stale, 0);
    atomic_init(&watcher->changed, 0);
}

static rondo_status resolve_past_end(const rondo__memory *memory, uint64_t address, uint64_t length, uint64_t base,
                                     uint64_t size) {
    return RONDO__FAIL(OUT_OF_RANGE, MEMORY,
                       "device '%s': %llu bytes at 0x%llx cross an end of the allocation of %llu "
                       "bytes at 0x%llx",
                       memory->device->properties.name, (unsigned long long)length, (unsigned long long)address,
                       (unsigned long long)size, (unsigned long long)base);
}

/* The live block that has the address among the bytes that were asked for. */
static rondo__block *resolve_find(rondo__memory *memory, uint64_t address) {
    rondo__block *block = rondo__cache_at(&memory->cache, address);
    if (!block) block = rondo__cache_at(&memory->pinned, address);
    bool live = block && block->state == RONDO__BLOCK_LIVE && address - block->allocation.base < block->allocation.size;
    return live ? block : NULL;
}

/* The first live block after the address, if it starts before `length` bytes have passed. */
static const rondo__block *resolve_next(rondo__memory *memory, uint64_t address, uint64_t length) {
    const rondo__block *block = rondo__cache_at(&memory->cache, address);
    if (block) block = block->next;
    for (uint64_t at = address; at - address < length;) {
        while (block && block->allocation.base - address < length) {
            if (block->state == RONDO__BLOCK_LIVE) return block;
            at = block->allocation.base;
            block = block->next;
        }
        if (block) return NULL;
        const rondo__allocation *range = rondo__ranges_at_or_above(&memory->cache.segments, at + 1u);
        if (!range) return NULL;
        at = range->base;
        block = ((const rondo__segment *)(const void *)range)->first;
    }
    return NULL;
}

/* In no live block. Memory that was given back is known as ours while its segment is, and is never taken for somebody
 * else's. Else it is not ours, unless the range runs into one of ours. */
static rondo_status resolve_foreign(rondo__memory *memory, uint64_t address, uint64_t length,
                                    rondo__memory_reference *out_reference) {
    const rondo__block *inside = rondo__cache_at(&memory->cache, address);
    if (!inside) inside = rondo__cache_at(&memory->pinned, address);
    if (inside && inside->state == RONDO__BLOCK_LIVE) {
        return resolve_past_end(memory, address, length, inside->allocation.base, inside->allocation.size);
    }
    if (inside) {
        return RONDO__FAIL(STALE, MEMORY,
                           "device '%s': 0x%llx lies in memory that was freed: name memory that is allocated",
                           memory->device->properties.name, (unsigned long long)address);
    }
    const rondo__block *next = resolve_next(memory, address, length);
    if (next) return resolve_past_end(memory, address, length, next->allocation.base, next->allocation.size);
    *out_reference = (rondo__memory_reference){0};
    return RONDO_OK;
}

static void resolve_remember(rondo__memory_watcher *watcher, uint64_t epoch, const rondo__memory_reference *reference) {
    if (watcher->epoch != epoch) {
        for (uint32_t i = 0; i < RONDO__MEMORY_RECENT; i++) watcher->recent[i].size = 0;
        watcher->epoch = epoch;
    }
    watcher->recent[watcher->recent_next] = *reference;
    watcher->recent_next = (watcher->recent_next + 1u) % RONDO__MEMORY_RECENT;
}

static rondo_status resolve_locked(rondo__memory *memory, uint64_t address, uint64_t length,
                                   rondo__memory_watcher *watcher, rondo__memory_reference *out_reference) {
    rondo__memory_edge *edge = NULL;
    rondo__block *block = resolve_find(memory, address);
    if (!block) return resolve_foreign(memory, address, length, out_reference);
    rondo__memory_reference reference = {block->allocation.base, block->allocation.size, block->allocation.generation,
                                         false, 0};
    if (length > reference.size - (address - reference.base)) {
        return resolve_past_end(memory, address, length, reference.base, reference.size);
    }
    if (watcher) {
        RONDO__TRY(rondo__watch_block(memory, block, watcher, &edge, &reference.temporary));
        resolve_remember(watcher, atomic_load_explicit(&memory->epoch, memory_order_relaxed), &reference);
    }
    *out_reference = reference;
    return RONDO_OK;
}

rondo_status rondo__memory_resolve(rondo__memory *memory, uint64_t address, uint64_t length,
                                   rondo__memory_watcher *watcher, rondo__memory_reference *out_reference) {
    if (watcher && watcher->epoch == atomic_load_explicit(&memory->epoch, memory_order_acquire)) {
        for (uint32_t i = 0; i < RONDO__MEMORY_RECENT; i++) {
            const rondo__memory_reference *recent = &watcher->recent[i];
            if (address - recent->base < recent->size && length <= recent->size - (address - recent->base)) {
                *out_reference = *recent;
                return RONDO_OK;
            }
        }
    }
    rondo__mutex_lock(&memory->mutex);
    rondo_status status = resolve_locked(memory, address, length, watcher, out_reference);
    rondo__mutex_unlock(&memory->mutex);
    return status;
}

/* The block is not live, or the range passes its end. */
static rondo_status resolve_check_slowly(rondo__memory *memory, const rondo__block *block, uint64_t address,
                                         uint64_t bytes) {
    const rondo__segment *segment = block->segment;
    rondo__memory_reference reference;
    bool seen = segment->exact && segment->pool->cache->apart;
    bool temporary = block->state != RONDO__BLOCK_LIVE && segment->pool != &segment->pool->cache->own &&
                     bytes <= segment->range.size - (address - segment->range.base);
    if (seen || temporary) return RONDO_OK;
    return resolve_locked(memory, address, bytes, NULL, &reference);
}

static inline rondo_status resolve_check(rondo__memory *memory, uint64_t address, uint64_t bytes) {
    const rondo__block *block = address ? rondo__cache_at(&memory->cache, address) : NULL;
    if (!block && address && memory->pinned.segments.count) block = rondo__cache_at(&memory->pinned, address);
    if (!block) return RONDO_OK;
    uint64_t offset = address - block->allocation.base, size = block->allocation.size;
    if (block->state == RONDO__BLOCK_LIVE && offset < size && bytes <= size - offset) return RONDO_OK;
    return resolve_check_slowly(memory, block, address, bytes);
}

rondo_status rondo__memory_check_ranges(rondo__memory *memory, uint64_t a, uint64_t b, uint64_t bytes) {
    rondo__mutex_lock(&memory->mutex);
    rondo_status status = resolve_check(memory, a, bytes);
    if (!status) status = resolve_check(memory, b, bytes);
    rondo__mutex_unlock(&memory->mutex);
    return status;
}

/* The very allocation, live or held. */
static bool resolve_is(rondo__cache *cache, const rondo__memory_reference *reference) {
    const rondo__block *block = rondo__cache_at(cache, reference->base);
    return block && block->allocation.base == reference->base &&
           block->allocation.generation == reference->generation && (block->state == RONDO__BLOCK_LIVE || block->holds);
}

bool rondo__memory_alive(rondo__memory *memory, const rondo__memory_reference *reference) {
    if (!reference->base) return true;
    rondo__mutex_lock(&memory->mutex);
    bool alive = resolve_is(&memory->cache, reference) || resolve_is(&memory->pinned, reference);
    rondo__mutex_unlock(&memory->mutex);
    return alive;
}

bool rondo__memory_take_ended(rondo__memory *memory, rondo__memory_watcher *watcher,
                              rondo__memory_reference out_ended[RONDO__MEMORY_ENDED], uint32_t *out_count) {
    rondo__mutex_lock(&memory->mutex);
    uint32_t count = watcher->ended_count;
    bool known = count <= RONDO__MEMORY_ENDED;
    for (uint32_t i = 0; known && i < count; i++) out_ended[i] = watcher->ended[i];
    watcher->ended_count = 0;
    atomic_store_explicit(&watcher->changed, 0u, memory_order_release);
    rondo__mutex_unlock(&memory->mutex);
    *out_count = known ? count : 0;
    return known;
}

bool rondo__memory_alive_for(rondo__memory *memory, const rondo__memory_reference *reference,
                             const rondo__memory_watcher *watcher) {
    if (rondo__memory_alive(memory, reference)) return true;
    if (!reference->temporary) return false;
    rondo__mutex_lock(&memory->mutex);
    const rondo__block *block = rondo__cache_at(&memory->cache, reference->base);
    if (!block) block = rondo__cache_at(&memory->pinned, reference->base);
    bool kept = block && rondo__watch_find(&memory->watch, &block->segment->pool->anchor, watcher);
    rondo__mutex_unlock(&memory->mutex);
    return kept;
}

rondo_pool_id rondo__memory_pool_of(rondo__memory *memory, uint64_t address) {
    rondo_pool_id id = {0, 0};
    rondo__mutex_lock(&memory->mutex);
    const rondo__block *block = resolve_find(memory, address);
    if (block) id = block->segment->pool->id;
    rondo__mutex_unlock(&memory->mutex);
    return id;
}

static const char *resolve_ordinal(uint64_t number) {
    if (number % 100u >= 11u && number % 100u <= 13u) return "th";
    return number % 10u == 1u ? "st" : number % 10u == 2u ? "nd" : number % 10u == 3u ? "rd" : "th";
}

static const char *resolve_how(rondo__past how) {
    switch (how) {
    case RONDO__PAST_HOST_FREED: return "freed by rondo_memory_host_free";
    case RONDO__PAST_RESTORED: return "taken away by rondo_memory_checkpoint_restore";
    default: return "freed by rondo_memory_free";
    }
}

static const rondo__memory_past *resolve_past(const rondo__memory *memory, uint64_t generation) {
    for (uint32_t i = 0; i < RONDO__MEMORY_HISTORY; i++) {
        if (memory->history[i].number && memory->history[i].generation == generation) return &memory->history[i];
    }
    return NULL;
}

void rondo__memory_explain(rondo__memory *memory, const rondo__memory_reference *reference, char *buffer,
                           size_t capacity) {
    char freed[96], now[96];
    if (!reference->base || rondo__memory_alive(memory, reference)) {
        (void)snprintf(buffer, capacity, "%s", reference->base ? "alive" : "not memory of this device's allocator");
        return;
    }
    rondo__mutex_lock(&memory->mutex);
    const rondo__memory_past *past = resolve_past(memory, reference->generation);
    if (past) {
        (void)snprintf(freed, sizeof freed, "%s, %llu%s free of the device", resolve_how(past->how),
                       (unsigned long long)past->number, resolve_ordinal(past->number));
    } else {
        (void)snprintf(freed, sizeof freed, "freed, more than %u frees ago", RONDO__MEMORY_HISTORY);
    }
    const rondo__block *live = resolve_find(memory, reference->base);
    if (live) {
        (void)snprintf(now, sizeof now, "part of a live allocation of %llu bytes",
                       (unsigned long long)live->allocation.size);
    } else {
        (void)snprintf(now, sizeof now, "part of no allocation");
    }
    rondo__mutex_unlock(&memory->mutex);
    (void)snprintf(buffer, capacity, "%s; now %s", freed, now);
}

bool rondo__memory_is_pinned(rondo__memory *memory, const void *pointer, uint64_t bytes) {
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    rondo__mutex_lock(&memory->mutex);
    const rondo__block *block = rondo__cache_at(&memory->pinned, address);
    uint64_t offset = block ? address - block->allocation.base : 0;
    bool pinned = block && block->state == RONDO__BLOCK_LIVE && offset < block->allocation.size &&
                  bytes <= block->allocation.size - offset;
    rondo__mutex_unlock(&memory->mutex);
    return pinned;
}
