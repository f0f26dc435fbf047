/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes: what a request is rounded to, which segment is taken for it, and when a block is cut. */
#ifndef RONDO_SRC_MEMORY_CLASSES_H
#define RONDO_SRC_MEMORY_CLASSES_H

#include "memory/cache.h"

#define RONDO__CLASS_BLOCK ((uint64_t)512)              /* the least block, and its multiples */
#define RONDO__CLASS_SMALL ((uint64_t)1 << 20)          /* up to it a request is small */
#define RONDO__CLASS_SMALL_SEGMENT ((uint64_t)2 << 20)  /* for small requests */
#define RONDO__CLASS_LARGE_SEGMENT ((uint64_t)20 << 20) /* for larger ones, up to: */
#define RONDO__CLASS_OWN_SEGMENT ((uint64_t)10 << 20)   /* from here on a segment for itself */
#define RONDO__CLASS_ROUND_SEGMENT ((uint64_t)2 << 20)  /* of a multiple of this */

/* By the settings. OUT_OF_MEMORY (with what could not be had) when the size cannot be. */
RONDO_MUST_USE rondo_status rondo__class_round(const rondo__cache *cache, uint64_t size, uint64_t *out_rounded);
/* The same for a request, which it completes. Takes no mutex; size is above 0. */
static inline RONDO_MUST_USE rondo_status rondo__class_of(const rondo__cache *cache, uint64_t size,
                                                          rondo__request *out_request) {
    uint64_t rounded = (size + cache->unit - 1u) & ~(cache->unit - 1u);
    if (size > SIZE_MAX / 4u || __atomic_load_n(&cache->divisions, __ATOMIC_RELAXED) > 1u) {
        RONDO__TRY(rondo__class_round(cache, size, &rounded));
    }
    out_request->size = size;
    out_request->rounded = rounded;
    out_request->kind = rounded <= RONDO__CLASS_SMALL ? RONDO__POOL_SMALL : RONDO__POOL_LARGE;
    return RONDO_OK;
}
/* How much to take from the backend for it. */
uint64_t rondo__class_segment(const rondo__cache *cache, const rondo__request *request);

/* Whether a block of `size` is cut for a request. */
static inline bool rondo__class_cuts(const rondo__cache *cache, const rondo__block *block,
                                     const rondo__request *request) {
    uint64_t rest = block->size - request->rounded, most = cache->settings.max_split_bytes;
    if (block->segment->exact) return false;
    if (block->segment->kind == RONDO__POOL_SMALL) return rest >= cache->unit;
    return rest > RONDO__CLASS_SMALL && (!most || request->rounded < most);
}

/* Whether a request may take the block that fits best. */
static inline bool rondo__class_takes(const rondo__cache *cache, const rondo__block *block,
                                      const rondo__request *request) {
    uint64_t most = cache->settings.max_split_bytes;
    if (!most) return true;
    if (request->rounded < most) return block->size < most;
    return block->size - request->rounded < cache->settings.max_waste_bytes;
}

#endif
