/* SPDX-License-Identifier: Apache-2.0
 *
 * From an address to its allocation, when a call is recorded; and from a remembered allocation to what became of it.
 *
 * Recording asks for the same few buffers again and again. So a watcher keeps the last ones it met and looks there
 * first, without the mutex: it watches them already, hence a free that happens meanwhile still marks it stale. */
#include <stdio.h>

#include "memory/table.h"

void rondo__memory_watcher_init(rondo__memory_watcher *watcher, uint64_t id) {
    *watcher = (rondo__memory_watcher){.id = id};
    atomic_init(&watcher->stale, 0);
}

static rondo_status resolve_past_end(const rondo__memory *memory, uint64_t address, uint64_t length, uint64_t base,
                                     uint64_t size) {
    return RONDO__FAIL(OUT_OF_RANGE, MEMORY,
                       "device '%s': %llu bytes at 0x%llx cross an end of the allocation of %llu "
                       "bytes at 0x%llx",
                       memory->device->properties.name, (unsigned long long)length, (unsigned long long)address,
                       (unsigned long long)size, (unsigned long long)base);
}

static rondo__allocation *resolve_find(const rondo__ranges *ranges, uint64_t address) {
    rondo__allocation *allocation = rondo__ranges_at_or_below(ranges, address);
    return allocation && address - allocation->base < allocation->size ? allocation : NULL;
}

/* Not ours, unless the range runs into one of ours. */
static rondo_status resolve_foreign(const rondo__memory *memory, uint64_t address, uint64_t length,
                                    rondo__memory_reference *out_reference) {
    const rondo__allocation *next = rondo__ranges_at_or_above(&memory->device_ranges, address);
    if (next && next->base - address < length) {
        return resolve_past_end(memory, address, length, next->base, next->size);
    }
    *out_reference = (rondo__memory_reference){0, 0, 0};
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
    rondo__allocation *allocation = resolve_find(&memory->device_ranges, address);
    if (!allocation) allocation = resolve_find(&memory->pinned_ranges, address);
    if (!allocation) return resolve_foreign(memory, address, length, out_reference);
    if (length > allocation->size - (address - allocation->base)) {
        return resolve_past_end(memory, address, length, allocation->base, allocation->size);
    }
    rondo__memory_reference reference = {allocation->base, allocation->size, allocation->generation};
    if (watcher) {
        RONDO__TRY(rondo__watch_add(&memory->watch, allocation, watcher));
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

void rondo__memory_unwatch(rondo__memory *memory, rondo__memory_watcher *watcher) {
    rondo__mutex_lock(&memory->mutex);
    rondo__watch_drop(&memory->watch, watcher);
    watcher->epoch = 0;
    rondo__mutex_unlock(&memory->mutex);
}

static bool resolve_is(const rondo__ranges *ranges, const rondo__memory_reference *reference) {
    const rondo__allocation *allocation = rondo__ranges_at_or_below(ranges, reference->base);
    return allocation && allocation->base == reference->base && allocation->generation == reference->generation;
}

bool rondo__memory_alive(rondo__memory *memory, const rondo__memory_reference *reference) {
    if (!reference->base) return true;
    rondo__mutex_lock(&memory->mutex);
    bool alive = resolve_is(&memory->device_ranges, reference) || resolve_is(&memory->pinned_ranges, reference);
    rondo__mutex_unlock(&memory->mutex);
    return alive;
}

static const char *resolve_ordinal(uint64_t number) {
    if (number % 100u >= 11u && number % 100u <= 13u) return "th";
    return number % 10u == 1u ? "st" : number % 10u == 2u ? "nd" : number % 10u == 3u ? "rd" : "th";
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
        (void)snprintf(freed, sizeof freed, "freed by %s, %llu%s free of the device",
                       past->pinned ? "rondo_memory_host_free" : "rondo_memory_free", (unsigned long long)past->number,
                       resolve_ordinal(past->number));
    } else {
        (void)snprintf(freed, sizeof freed, "freed, more than %u frees ago", RONDO__MEMORY_HISTORY);
    }
    const rondo__allocation *live = resolve_find(&memory->device_ranges, reference->base);
    if (!live) live = resolve_find(&memory->pinned_ranges, reference->base);
    if (live) {
        (void)snprintf(now, sizeof now, "part of a live allocation of %llu bytes", (unsigned long long)live->size);
    } else {
        (void)snprintf(now, sizeof now, "part of no allocation");
    }
    rondo__mutex_unlock(&memory->mutex);
    (void)snprintf(buffer, capacity, "%s; now %s", freed, now);
}

bool rondo__memory_is_pinned(rondo__memory *memory, const void *pointer, uint64_t bytes) {
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    rondo__mutex_lock(&memory->mutex);
    const rondo__allocation *allocation = resolve_find(&memory->pinned_ranges, address);
    bool pinned = allocation && bytes <= allocation->size - (address - allocation->base);
    rondo__mutex_unlock(&memory->mutex);
    return pinned;
}
