/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding in a set of small numbers: up until a word has something lower, then down to its greatest. */
#include "memory/marks.h"

#include <string.h>

rondo_status rondo__marks_init(rondo__marks *marks, const rondo_allocator *allocator, uint64_t count) {
    uint64_t words[RONDO__MARKS_LEVELS], total = 0;
    void *memory = NULL;
    memset(marks, 0, sizeof *marks);
    if (!count) return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "a segment of no parts");
    if (count > RONDO__MARKS_MAX) { /* no device has as much */
        return RONDO__FAIL(OUT_OF_MEMORY, MEMORY, "a segment of %llu parts is more than %llu",
                           (unsigned long long)count, (unsigned long long)RONDO__MARKS_MAX);
    }
    do {
        count = (count + 63u) / 64u;
        words[marks->levels++] = count;
        total += count;
    } while (count > 1u);
    RONDO__TRY(rondo__allocate_array(allocator, (size_t)total, sizeof(uint64_t), &memory));
    marks->bytes = (size_t)total * sizeof(uint64_t);
    uint64_t *next = memory;
    for (uint32_t level = 0; level < marks->levels; level++) {
        marks->words[level] = next;
        next += words[level];
    }
    return RONDO_OK;
}

void rondo__marks_deinit(rondo__marks *marks, const rondo_allocator *allocator) {
    rondo__free(allocator, marks->words[0], marks->bytes);
    memset(marks, 0, sizeof *marks);
}

static inline uint64_t marks_greatest(uint64_t word) { return 63u - (uint64_t)__builtin_clzll(word); }

uint64_t rondo__marks_at_or_below(const rondo__marks *marks, uint64_t at) {
    uint64_t word = marks->words[0][at >> 6] & (UINT64_MAX >> (63u - (at & 63u)));
    uint32_t level = 0;
    while (!word) {
        at >>= 6;
        if (++level == marks->levels) return UINT64_MAX;
        /* Strictly below: what is here has been looked at. */
        word = marks->words[level][at >> 6] & (((uint64_t)1 << (at & 63u)) - 1u);
    }
    uint64_t found = (at >> 6 << 6) | marks_greatest(word);
    while (level--) found = found << 6 | marks_greatest(marks->words[level][found]);
    return found;
}
