/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that nobody has been given is not to be touched: the backend is told, so that it can poison it, and in builds
 * with the address sanitizer so is that. */
#ifndef RONDO_SRC_MEMORY_POISON_H
#define RONDO_SRC_MEMORY_POISON_H

#include "memory/cache.h"

/* Whether there is anybody to tell. */
bool rondo__poison_is_told(const rondo__cache *cache);
void rondo__poison_tell_given(const rondo__cache *cache, const rondo__block *block);
void rondo__poison_tell_taken_back(const rondo__cache *cache, const rondo__block *block);

static inline void rondo__poison_given(const rondo__cache *cache, const rondo__block *block) {
    if (cache->tells) rondo__poison_tell_given(cache, block);
}

static inline void rondo__poison_taken_back(const rondo__cache *cache, const rondo__block *block) {
    if (cache->tells) rondo__poison_tell_taken_back(cache, block);
}

/* All of a segment that was just taken. */
void rondo__poison_fresh(const rondo__cache *cache, const rondo__block *block);
/* All of a segment whose private pool is gone. */
void rondo__poison_retired(const rondo__cache *cache, const rondo__block *block);
/* The segment goes back to the backend. */
void rondo__poison_forget(const rondo__cache *cache, const rondo__segment *segment);

#endif
