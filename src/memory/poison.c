/* SPDX-License-Identifier: Apache-2.0
 *
 * Telling of reuse. A backend may overwrite what it is told of, so it is told only where nothing in flight can use the
 * range: on devices that have finished when the call returns, and for blocks of no stream, which are freed after a wait.
 *
 * Segments made for one block come from the backend and go back to it with that block: it needs no telling.
 *
 * In a private pool only that is poisoned which no block was in so far: graphs use all the rest. */
#include "memory/poison.h"

#include "memory/table.h"

#if defined(__SANITIZE_ADDRESS__)
#define RONDO__POISON_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RONDO__POISON_ASAN 1
#endif
#endif

#ifndef RONDO__POISON_ASAN
#define RONDO__POISON_ASAN 0
#endif

#if RONDO__POISON_ASAN
void __asan_poison_memory_region(const volatile void *address, size_t size);
void __asan_unpoison_memory_region(const volatile void *address, size_t size);
static void poison_asan(const rondo__cache *cache, uint64_t address, uint64_t bytes, bool given) {
    if (!cache->pinned && !(cache->memory->device->properties.capabilities & RONDO_DEVICE_HOST_ADDRESSABLE)) return;
    if (given) __asan_unpoison_memory_region((const void *)(uintptr_t)address, (size_t)bytes);
    else __asan_poison_memory_region((const void *)(uintptr_t)address, (size_t)bytes);
}
#else
static void poison_asan(const rondo__cache *cache, uint64_t address, uint64_t bytes, bool given) {
    (void)cache, (void)address, (void)bytes, (void)given;
}
#endif

bool rondo__poison_is_told(const rondo__cache *cache) {
    const rondo_device *device = cache->memory->device;
    bool host = cache->pinned || (device->properties.capabilities & RONDO_DEVICE_HOST_ADDRESSABLE) != 0;
    return (RONDO__POISON_ASAN && host) || (!cache->pinned && device->table->memory->on_reuse);
}

static void poison_backend(const rondo__cache *cache, const rondo__block *block, uint64_t bytes, bool given) {
    const rondo_device *device = cache->memory->device;
    if (cache->pinned || !device->table->memory->on_reuse) return;
    if (block->stream == RONDO__NO_STREAM || rondo__device_is_inline(device))
        device->table->memory->on_reuse(device->handle, block->allocation.base, bytes, given);
}

/* A block that a restore brings back holds what replays wrote there meanwhile. */
void rondo__poison_tell_given(const rondo__cache *cache, const rondo__block *block) {
    if (block->segment->exact) return;
    poison_asan(cache, block->allocation.base, block->allocation.size, true);
    if (!cache->restores) poison_backend(cache, block, block->allocation.size, true);
}

/* A freed block of a private pool is a temporary: the graphs of the pool use it at each replay. */
void rondo__poison_tell_taken_back(const rondo__cache *cache, const rondo__block *block) {
    if (block->segment->exact) return;
    poison_backend(cache, block, block->size, false);
    if (block->segment->pool == &cache->own) poison_asan(cache, block->allocation.base, block->size, false);
}

void rondo__poison_fresh(const rondo__cache *cache, const rondo__block *block) {
    if (!cache->tells || block->segment->exact) return;
    poison_backend(cache, block, block->size, false);
    poison_asan(cache, block->allocation.base, block->size, false);
}

void rondo__poison_retired(const rondo__cache *cache, const rondo__block *block) {
    if (cache->tells && !block->segment->exact) poison_asan(cache, block->allocation.base, block->size, false);
}

void rondo__poison_forget(const rondo__cache *cache, const rondo__segment *segment) {
    if (!segment->exact) poison_asan(cache, segment->range.base, segment->range.size, true);
}

#undef RONDO__POISON_ASAN
