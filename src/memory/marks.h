/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of small numbers that finds its greatest member at or below a number in constant time: a bit a number, and above
 * each 64 words one word that says which of them hold something. It tells which block of a segment an address is in. */
#ifndef RONDO_SRC_MEMORY_MARKS_H
#define RONDO_SRC_MEMORY_MARKS_H

#include "base/allocator.h"

#define RONDO__MARKS_LEVELS 4u
#define RONDO__MARKS_MAX ((uint64_t)1 << (6u * RONDO__MARKS_LEVELS)) /* the most numbers that a set can have */

typedef struct rondo__marks {
    uint64_t *words[RONDO__MARKS_LEVELS]; /* one block of memory; the last used level is one word */
    uint32_t levels;
    size_t bytes;
} rondo__marks;

/* Numbers from 0 to count - 1; OUT_OF_RANGE above 2^24. */
RONDO_MUST_USE rondo_status rondo__marks_init(rondo__marks *marks, const rondo_allocator *allocator, uint64_t count);
void rondo__marks_deinit(rondo__marks *marks, const rondo_allocator *allocator);
/* The greatest member that is not above `at`; UINT64_MAX when there is none. */
uint64_t rondo__marks_at_or_below(const rondo__marks *marks, uint64_t at);

static inline bool rondo__marks_has(const rondo__marks *marks, uint64_t at) {
    return (marks->words[0][at >> 6] >> (at & 63u)) & 1u;
}

static inline void rondo__marks_add(rondo__marks *marks, uint64_t at) {
    for (uint32_t level = 0; level < marks->levels; level++, at >>= 6) {
        uint64_t *word = &marks->words[level][at >> 6], before = *word;
        *word = before | (uint64_t)1 << (at & 63u);
        if (before) return;
    }
}

static inline void rondo__marks_remove(rondo__marks *marks, uint64_t at) {
    for (uint32_t level = 0; level < marks->levels; level++, at >>= 6) {
        uint64_t *word = &marks->words[level][at >> 6];
        *word &= ~((uint64_t)1 << (at & 63u));
        if (*word) return;
    }
}

#endif
