/* SPDX-License-Identifier: Apache-2.0
 *
 * Freeing. A block of a stream is free at once, because later work of the stream comes after; other streams that use it
 * are waited for by wait.c. A block of no stream is free when the device has finished, and this waits for it. */
#include "memory/block.h"

/* A live block ends, and is free unless somebody still uses it. Those that a capture may have recorded without a stream
 * that tells stay until nothing captures; the device's own pool needs no such care, for its graphs go stale. */
static void free_block(rondo__cache *cache, rondo__block *block, bool finished) {
    rondo__block_end(cache, block, cache->pinned ? RONDO__PAST_HOST_FREED : RONDO__PAST_FREED);
    rondo__cache_await(cache, block);
    if (block->stream == RONDO__NO_STREAM && block->segment->pool != &cache->own &&
        rondo__cache_captures(cache->memory->device, RONDO__NO_STREAM)) {
        block->parked = true;
        block->left = cache->parked;
        cache->parked = block;
    }
    if (rondo__block_is_used(block)) rondo__block_pend(cache, block);
    else rondo__block_free(cache, block, finished);
}

static rondo_status free_not_found(const rondo__cache *cache, uint64_t address) {
    return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "%s: 0x%llx is not the start of a live %sallocation of device '%s'",
                       cache->pinned ? "rondo_memory_host_free" : "rondo_memory_free", (unsigned long long)address,
                       cache->pinned ? "host " : "", cache->memory->device->properties.name);
}

rondo_status rondo__cache_free(rondo__cache *cache, uint64_t address) {
    rondo__memory *memory = cache->memory;
    bool finished = rondo__device_is_inline(memory->device);
    rondo__mutex_lock(&memory->mutex);
    rondo__block *block = rondo__cache_live(cache, address);
    if (block && !finished && (block->stream == RONDO__NO_STREAM || block->segment->exact)) {
        uint64_t generation = block->allocation.generation;
        rondo__mutex_unlock(&memory->mutex);
        rondo__device_drain(memory->device);
        rondo__mutex_lock(&memory->mutex);
        finished = true;
        block = rondo__cache_live(cache, address);
        if (block && block->allocation.generation != generation) block = NULL;
    }
    if (block) free_block(cache, block, finished);
    bool waiting = cache->waiting != 0;
    rondo__cache_assert(cache);
    rondo__mutex_unlock(&memory->mutex);
    if (!block) return free_not_found(cache, address);
    if (waiting) rondo__cache_settle(cache);
    return RONDO_OK;
}
