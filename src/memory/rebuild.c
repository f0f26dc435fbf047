/* SPDX-License-Identifier: Apache-2.0
 *
 * From all free blocks of a pool to its tree: for each stream the segments in order of address, twice. The first walk counts
 * the blocks of each size, the second puts each block in its place. */
#include "memory/rebuild.h"

#include <string.h>

#include "memory/block.h"
#include "memory/classes.h"
#include "memory/tree.h"

rondo_status rondo__rebuild_begin(rondo__cache *cache, uint64_t capacity, rondo__rebuild *out_rebuild) {
    rondo__rebuild r = {.capacity = capacity, .classes = RONDO__CLASS_SMALL_SEGMENT / cache->unit + 2u};
    void *memory = NULL;
    r.bytes = (size_t)r.classes * sizeof(uint64_t) + (size_t)capacity * sizeof(rondo__block *);
    RONDO__TRY(rondo__allocate(&cache->memory->allocator, r.bytes, &memory));
    r.places = memory;
    r.blocks = (rondo__block **)(void *)(r.places + r.classes);
    cache->rebuilds = true;
    *out_rebuild = r;
    return RONDO_OK;
}

static bool rebuild_takes(const rondo__segment *segment, const rondo__pool *pool, uint64_t stream) {
    return segment->pool == pool && segment->kind == RONDO__POOL_SMALL && !segment->exact && segment->stream == stream;
}

/* The least stream at or above `from`; UINT64_MAX: none. */
static uint64_t rebuild_next_stream(const rondo__pool *pool, uint64_t from) {
    uint64_t next = UINT64_MAX;
    for (const rondo__segment *segment = pool->segments; segment; segment = segment->next) {
        if (segment->stream >= from && segment->stream < next) next = segment->stream;
    }
    return next;
}

/* Counts, or (blocks given) puts into place. */
static void rebuild_walk(rondo__cache *cache, const rondo__pool *pool, uint64_t stream, uint64_t *places,
                         rondo__block **blocks) {
    const rondo__allocation *range;
    for (uint64_t at = 0; (range = rondo__ranges_at_or_above(&cache->segments, at)) != NULL; at = range->base + 1u) {
        const rondo__segment *segment = (const rondo__segment *)(const void *)range;
        if (!rebuild_takes(segment, pool, stream)) continue;
        for (rondo__block *block = segment->first; block; block = block->next) {
            if (block->state != RONDO__BLOCK_FREE) continue;
            uint64_t *place = &places[block->size / cache->unit];
            if (blocks) blocks[*place] = block;
            ++*place;
        }
    }
}

void rondo__rebuild_end(rondo__cache *cache, rondo__pool *pool, rondo__rebuild *rebuild) {
    uint64_t count = 0;
    for (uint64_t stream = 0; (stream = rebuild_next_stream(pool, stream)) != UINT64_MAX; stream++) {
        memset(rebuild->places, 0, (size_t)rebuild->classes * sizeof(uint64_t));
        rebuild_walk(cache, pool, stream, rebuild->places, NULL);
        for (uint64_t i = 0; i < rebuild->classes; i++) {
            uint64_t blocks = rebuild->places[i];
            rebuild->places[i] = count;
            count += blocks;
        }
        rebuild_walk(cache, pool, stream, rebuild->places, rebuild->blocks);
    }
    pool->free[RONDO__POOL_SMALL] = rondo__tree_build(rebuild->blocks, (size_t)count);
    cache->rebuilds = false;
    /* Those made for one block have sizes between. */
    for (rondo__segment *segment = pool->segments; segment; segment = segment->next) {
        if (!segment->exact || segment->kind != RONDO__POOL_SMALL || !rondo__segment_is_free(segment)) continue;
        rondo__block_insert(cache, segment->first);
    }
    rondo__free(&cache->memory->allocator, rebuild->places, rebuild->bytes);
}
