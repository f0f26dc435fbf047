/* SPDX-License-Identifier: Apache-2.0
 *
 * What a watcher keeps: blocks past their free, and uses of pools, so that temporaries stay where its calls expect them. An
 * edge to a pool's anchor says that blocks of the pool are temporaries to the watcher, one that holds has a use of it. */
#include "memory/block.h"

static bool hold_is_pool(rondo_pool_id a, rondo_pool_id b) { return a.automatic == b.automatic && a.user == b.user; }

static bool hold_is_anchor(const rondo__allocation *allocation) { return allocation->base == 0; }

static rondo__block *hold_block_of(const rondo__memory_edge *edge) { return (rondo__block *)(void *)edge->allocation; }

static rondo__pool *hold_pool_of(const rondo__memory_edge *edge) { return (rondo__pool *)(void *)edge->allocation; }

static void hold_block(rondo__block *block, rondo__memory_edge *edge) {
    if (!edge->holds) block->holds++;
    edge->holds = true;
}

rondo_status rondo__watch_block(rondo__memory *memory, rondo__block *block, rondo__memory_watcher *watcher,
                                rondo__memory_edge **out_edge, bool *out_temporary) {
    rondo__pool *pool = block->segment->pool;
    bool is_private = pool != &pool->cache->own;
    if (is_private && hold_is_pool(pool->id, watcher->pool))
        RONDO__TRY(rondo__watch_add(&memory->watch, &pool->anchor, watcher, out_edge));
    RONDO__TRY(rondo__watch_add(&memory->watch, &block->allocation, watcher, out_edge));
    *out_temporary = is_private && rondo__watch_find(&memory->watch, &pool->anchor, watcher);
    if (is_private && !*out_temporary && watcher->since && block->allocation.generation >= watcher->since)
        hold_block(block, *out_edge);
    return RONDO_OK;
}

/* The live block that has all of the range. */
static rondo__block *hold_find(rondo__memory *memory, uint64_t address, uint64_t length) {
    rondo__block *block = rondo__cache_at(&memory->cache, address);
    if (!block) block = rondo__cache_at(&memory->pinned, address);
    if (!block || block->state != RONDO__BLOCK_LIVE) return NULL;
    uint64_t offset = address - block->allocation.base, size = block->allocation.size;
    return offset < size && length <= size - offset ? block : NULL;
}

rondo_status rondo__memory_hold(rondo__memory *memory, rondo__memory_watcher *watcher, uint64_t address,
                                uint64_t length) {
    rondo__memory_edge *edge = NULL;
    bool temporary;
    rondo__mutex_lock(&memory->mutex);
    rondo__block *block = hold_find(memory, address, length);
    rondo_status status =
        block ? rondo__watch_block(memory, block, watcher, &edge, &temporary)
              : RONDO__FAIL(NOT_FOUND, MEMORY, "device '%s': %llu bytes at 0x%llx are in no live allocation",
                            memory->device->properties.name, (unsigned long long)length, (unsigned long long)address);
    if (!status) hold_block(block, edge);
    rondo__mutex_unlock(&memory->mutex);
    return status;
}

/* --------------------------------------------------------------------------------------------------- inheriting */

static rondo_status hold_pool(rondo__memory *memory, rondo__pool *pool, rondo__memory_watcher *watcher) {
    rondo__memory_edge *edge;
    if (hold_is_pool(pool->id, watcher->pool)) return RONDO_OK; /* its own: who made it has the use */
    RONDO__TRY(rondo__watch_add(&memory->watch, &pool->anchor, watcher, &edge));
    if (edge->holds) return RONDO_OK;
    edge->holds = true;
    pool->uses++;
    pool->kept++;
    return RONDO_OK;
}

static rondo_status hold_inherit(rondo__memory *memory, rondo__memory_watcher *to, const rondo__memory_watcher *from) {
    rondo__memory_edge *edge;
    if (from->pool.automatic || from->pool.user) {
        rondo__pool *pool = rondo__cache_pool(&memory->cache, from->pool);
        if (pool && pool->uses) RONDO__TRY(hold_pool(memory, pool, to));
    }
    for (const rondo__memory_edge *theirs = from->edges; theirs; theirs = theirs->watcher_next) {
        if (!theirs->holds) continue;
        if (hold_is_anchor(theirs->allocation)) {
            RONDO__TRY(hold_pool(memory, hold_pool_of(theirs), to));
            continue;
        }
        RONDO__TRY(rondo__watch_add(&memory->watch, theirs->allocation, to, &edge));
        hold_block(hold_block_of(theirs), edge);
    }
    return RONDO_OK;
}

rondo_status rondo__memory_inherit(rondo__memory *memory, rondo__memory_watcher *to,
                                   const rondo__memory_watcher *from) {
    rondo__mutex_lock(&memory->mutex);
    rondo_status status = hold_inherit(memory, to, from);
    rondo__mutex_unlock(&memory->mutex);
    return status;
}

/* A temporary that was freed has no block of its own, and needs none: its pool is kept. */
static rondo_status hold_take_over(rondo__memory *memory, rondo__memory_reference *reference,
                                   rondo__memory_watcher *watcher) {
    rondo__memory_edge *edge = NULL;
    bool temporary = false;
    rondo__block *block = rondo__cache_at(&memory->cache, reference->base);
    if (!block) block = rondo__cache_at(&memory->pinned, reference->base);
    bool same =
        block && block->allocation.base == reference->base && block->allocation.generation == reference->generation;
    if (same && block->state == RONDO__BLOCK_LIVE) {
        RONDO__TRY(rondo__watch_block(memory, block, watcher, &edge, &temporary));
        reference->temporary |= temporary;
        return RONDO_OK;
    }
    edge = same ? rondo__watch_find(&memory->watch, &block->allocation, watcher) : NULL;
    if (reference->temporary || (edge && edge->holds)) return RONDO_OK;
    return RONDO__FAIL(STALE, MEMORY, "device '%s': the allocation at 0x%llx was freed meanwhile",
                       memory->device->properties.name, (unsigned long long)reference->base);
}

rondo_status rondo__memory_take_over(rondo__memory *memory, rondo__memory_reference *reference,
                                     rondo__memory_watcher *watcher) {
    rondo__mutex_lock(&memory->mutex);
    rondo_status status = hold_take_over(memory, reference, watcher);
    rondo__mutex_unlock(&memory->mutex);
    return status;
}

/* -------------------------------------------------------------------------------------------------- letting go */

static void hold_let_go(rondo__memory *memory, rondo__memory_edge *edge) {
    bool anchor = hold_is_anchor(edge->allocation), holds = edge->holds;
    rondo__pool *pool = hold_pool_of(edge);
    rondo__block *block = hold_block_of(edge);
    rondo__watch_remove(&memory->watch, edge);
    if (!holds) return;
    if (anchor) {
        pool->kept--;
        rondo__pool_let_go(pool->cache, pool);
        return;
    }
    block->holds--;
    if (block->state == RONDO__BLOCK_PENDING && !rondo__block_is_used(block))
        rondo__block_free(block->segment->pool->cache, block, rondo__device_is_inline(memory->device));
}

void rondo__memory_unwatch(rondo__memory *memory, rondo__memory_watcher *watcher) {
    rondo__mutex_lock(&memory->mutex);
    while (watcher->edges) hold_let_go(memory, watcher->edges);
    watcher->epoch = 0;
    rondo__mutex_unlock(&memory->mutex);
}

/* ----------------------------------------------------------------------------------------------- looking at it */

uint64_t rondo__memory_generation(rondo__memory *memory) {
    rondo__mutex_lock(&memory->mutex);
    uint64_t generation = memory->next_generation;
    rondo__mutex_unlock(&memory->mutex);
    return generation;
}

size_t rondo__memory_pools_kept(rondo__memory *memory, const rondo__memory_watcher *watcher, rondo_pool_id *out_pools,
                                size_t capacity) {
    size_t count = 0;
    if (watcher->pool.automatic || watcher->pool.user) {
        if (capacity) out_pools[0] = watcher->pool;
        count = 1;
    }
    rondo__mutex_lock(&memory->mutex);
    for (const rondo__memory_edge *edge = watcher->edges; edge; edge = edge->watcher_next) {
        if (!edge->holds) continue;
        const rondo__pool *pool =
            hold_is_anchor(edge->allocation) ? hold_pool_of(edge) : hold_block_of(edge)->segment->pool;
        bool known = pool->cache != &memory->cache || pool == &pool->cache->own;
        for (size_t i = 0; i < count && i < capacity && !known; i++) known = hold_is_pool(out_pools[i], pool->id);
        if (known) continue;
        if (count < capacity) out_pools[count] = pool->id;
        count++;
    }
    rondo__mutex_unlock(&memory->mutex);
    return count;
}
