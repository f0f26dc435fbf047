/* SPDX-License-Identifier: Apache-2.0
 *
 * Free ranges by size. Everything but the look into one list takes the same time however many ranges there are. */
#include "compile/plan_memory_gaps.h"

#include <string.h>

#define LAYOUT_NONE UINT32_MAX
/* Where more gaps of nearly one size wait, a tighter one saves less than an eighth of it. */
#define LAYOUT_GAPS_LOOKED_AT 64u

rondo_status rondo__layout_gaps_init(rondo__layout_gaps *gaps, const rondo_allocator *allocator, size_t most) {
    void *memory = NULL;
    memset(gaps, 0, sizeof *gaps);
    memset(gaps->bins, 0xff, sizeof gaps->bins);
    gaps->last = LAYOUT_NONE;
    gaps->capacity = 2 * most + 1; /* between two that are taken at most one is free */
    RONDO__TRY(rondo__allocate_array(allocator, gaps->capacity, sizeof *gaps->blocks, &memory));
    gaps->blocks = memory;
    RONDO__TRY(rondo__allocate_array(allocator, gaps->capacity, sizeof *gaps->spare, &memory));
    gaps->spare = memory;
    return RONDO_OK;
}

void rondo__layout_gaps_deinit(rondo__layout_gaps *gaps, const rondo_allocator *allocator) {
    rondo__free(allocator, gaps->spare, gaps->capacity * sizeof *gaps->spare);
    rondo__free(allocator, gaps->blocks, gaps->capacity * sizeof *gaps->blocks);
}

/* Of 64 bytes each; larger ones stand in later lists. */
static uint32_t layout_gaps_bin(uint64_t units) {
    if (units < 16) return (uint32_t)units;
    uint32_t log = 63u - (uint32_t)__builtin_clzll(units);
    return 16u + (log - 4u) * 8u + (uint32_t)(units >> (log - 3u) & 7u);
}

static uint32_t layout_gaps_bin_of(const rondo__layout_block *block) {
    return layout_gaps_bin((block->end - block->begin) / 64u);
}

static void layout_gaps_list(rondo__layout_gaps *gaps, uint32_t at) {
    rondo__layout_block *block = &gaps->blocks[at];
    uint32_t bin = layout_gaps_bin_of(block), first = gaps->bins[bin];
    block->free = true;
    block->bin_before = LAYOUT_NONE;
    block->bin_after = first;
    if (first != LAYOUT_NONE) gaps->blocks[first].bin_before = at;
    gaps->bins[bin] = at;
    gaps->full[bin / 64u] |= UINT64_C(1) << bin % 64u;
}

static void layout_gaps_unlist(rondo__layout_gaps *gaps, uint32_t at) {
    rondo__layout_block *block = &gaps->blocks[at];
    uint32_t bin = layout_gaps_bin_of(block);
    if (block->bin_after != LAYOUT_NONE) gaps->blocks[block->bin_after].bin_before = block->bin_before;
    if (block->bin_before != LAYOUT_NONE) gaps->blocks[block->bin_before].bin_after = block->bin_after;
    else gaps->bins[bin] = block->bin_after;
    if (gaps->bins[bin] == LAYOUT_NONE) gaps->full[bin / 64u] &= ~(UINT64_C(1) << bin % 64u);
    block->free = false;
}

/* A new block behind `before`. */
static uint32_t layout_gaps_add(rondo__layout_gaps *gaps, uint32_t before, uint64_t begin, uint64_t end) {
    uint32_t at = gaps->spare_count > 0 ? gaps->spare[--gaps->spare_count] : gaps->made++;
    uint32_t after = before != LAYOUT_NONE ? gaps->blocks[before].after : LAYOUT_NONE;
    gaps->blocks[at] = (rondo__layout_block){begin, end, before, after, LAYOUT_NONE, LAYOUT_NONE, false};
    if (before != LAYOUT_NONE) gaps->blocks[before].after = at;
    if (after != LAYOUT_NONE) gaps->blocks[after].before = at;
    else gaps->last = at;
    return at;
}

static void layout_gaps_remove(rondo__layout_gaps *gaps, uint32_t at) {
    const rondo__layout_block *block = &gaps->blocks[at];
    if (block->before != LAYOUT_NONE) gaps->blocks[block->before].after = block->after;
    if (block->after != LAYOUT_NONE) gaps->blocks[block->after].before = block->before;
    else gaps->last = block->before;
    gaps->spare[gaps->spare_count++] = at;
}

/* The tightest of a list that is large enough, the lowest of equals. */
static uint32_t layout_gaps_tightest(const rondo__layout_gaps *gaps, uint32_t bin, uint64_t bytes) {
    uint32_t best = LAYOUT_NONE, looked = 0;
    for (uint32_t at = gaps->bins[bin]; at != LAYOUT_NONE && looked < LAYOUT_GAPS_LOOKED_AT; looked++) {
        const rondo__layout_block *block = &gaps->blocks[at], *other = &gaps->blocks[best != LAYOUT_NONE ? best : at];
        uint64_t size = block->end - block->begin, least = other->end - other->begin;
        bool better = best == LAYOUT_NONE || size < least || (size == least && block->begin < other->begin);
        if (size >= bytes && better) best = at;
        at = block->bin_after;
    }
    return best;
}

static uint32_t layout_gaps_find(const rondo__layout_gaps *gaps, uint64_t bytes) {
    uint32_t bin = layout_gaps_bin(bytes / 64u);
    uint32_t found = layout_gaps_tightest(gaps, bin, bytes);
    if (found != LAYOUT_NONE) return found;
    bin++;
    for (uint32_t word = bin / 64u; word < sizeof gaps->full / sizeof *gaps->full; word++) {
        uint64_t full = gaps->full[word];
        if (word == bin / 64u) full &= ~UINT64_C(0) << bin % 64u;
        if (full) return layout_gaps_tightest(gaps, word * 64u + (uint32_t)__builtin_ctzll(full), bytes);
    }
    return LAYOUT_NONE;
}

uint32_t rondo__layout_gaps_take(rondo__layout_gaps *gaps, uint64_t bytes) {
    uint32_t at = layout_gaps_find(gaps, bytes);
    if (at == LAYOUT_NONE) {
        uint64_t end = gaps->last != LAYOUT_NONE ? gaps->blocks[gaps->last].end : 0;
        return layout_gaps_add(gaps, gaps->last, end, end + bytes);
    }
    layout_gaps_unlist(gaps, at);
    uint64_t begin = gaps->blocks[at].begin, end = gaps->blocks[at].end;
    if (end - begin > bytes) {
        gaps->blocks[at].end = begin + bytes;
        layout_gaps_list(gaps, layout_gaps_add(gaps, at, begin + bytes, end));
    }
    return at;
}

void rondo__layout_gaps_give(rondo__layout_gaps *gaps, uint32_t at) {
    rondo__layout_block *block = &gaps->blocks[at];
    uint32_t before = block->before, after = block->after;
    if (after != LAYOUT_NONE && gaps->blocks[after].free) {
        layout_gaps_unlist(gaps, after);
        block->end = gaps->blocks[after].end;
        layout_gaps_remove(gaps, after);
    }
    if (before != LAYOUT_NONE && gaps->blocks[before].free) {
        layout_gaps_unlist(gaps, before);
        block->begin = gaps->blocks[before].begin;
        layout_gaps_remove(gaps, before);
    }
    if (block->after == LAYOUT_NONE) layout_gaps_remove(gaps, at); /* what is behind the last is no gap */
    else layout_gaps_list(gaps, at);
}
