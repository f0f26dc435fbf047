/* SPDX-License-Identifier: Apache-2.0
 *
 * The sorted list in chunks: two binary searches to find, one short move to insert. A full chunk is halved; a chunk that
 * becomes small is joined to its neighbour, so that a long life of allocating and freeing leaves no crumbs. */
#include "memory/ranges.h"

#include <string.h>

#define RONDO__RANGES_PARTS_MAX (1u << 24)

void rondo__ranges_init(rondo__ranges *ranges, const rondo_allocator *allocator) {
    ranges->allocator = *allocator;
    ranges->count = 0;
    rondo__buffer_init(&ranges->parts, allocator, sizeof(rondo__ranges_part), RONDO__RANGES_PARTS_MAX);
}

static rondo__ranges_part *ranges_part(const rondo__ranges *ranges, size_t index) {
    return RONDO__BUFFER_AT(&ranges->parts, rondo__ranges_part, index);
}

void rondo__ranges_deinit(rondo__ranges *ranges) {
    for (size_t i = 0; i < ranges->parts.count; i++) {
        rondo__free(&ranges->allocator, ranges_part(ranges, i)->chunk, sizeof(rondo__ranges_chunk));
    }
    rondo__buffer_deinit(&ranges->parts);
    ranges->count = 0;
}

/* How many parts start at or below the address. */
static size_t ranges_parts_upto(const rondo__ranges *ranges, uint64_t address) {
    const rondo__ranges_part *parts = ranges->parts.data;
    size_t low = 0, high = ranges->parts.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2u;
        if (parts[middle].first <= address) low = middle + 1u;
        else high = middle;
    }
    return low;
}

/* How many bases of the chunk are at or below the address. */
static uint32_t ranges_bases_upto(const rondo__ranges_chunk *chunk, uint64_t address) {
    uint32_t low = 0, high = chunk->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2u;
        if (chunk->bases[middle] <= address) low = middle + 1u;
        else high = middle;
    }
    return low;
}

rondo__allocation *rondo__ranges_at_or_below(const rondo__ranges *ranges, uint64_t address) {
    size_t parts = ranges_parts_upto(ranges, address);
    if (!parts) return NULL;
    const rondo__ranges_chunk *chunk = ranges_part(ranges, parts - 1u)->chunk;
    return chunk->allocations[ranges_bases_upto(chunk, address) - 1u];
}

rondo__allocation *rondo__ranges_at_or_above(const rondo__ranges *ranges, uint64_t address) {
    size_t parts = ranges_parts_upto(ranges, address);
    if (parts) {
        const rondo__ranges_chunk *chunk = ranges_part(ranges, parts - 1u)->chunk;
        uint32_t at = ranges_bases_upto(chunk, address);
        if (chunk->bases[at - 1u] == address) return chunk->allocations[at - 1u];
        if (at < chunk->count) return chunk->allocations[at];
    }
    return parts < ranges->parts.count ? ranges_part(ranges, parts)->chunk->allocations[0] : NULL;
}

static void ranges_chunk_insert(rondo__ranges_chunk *chunk, uint32_t at, rondo__allocation *allocation) {
    size_t after = chunk->count - at;
    memmove(&chunk->bases[at + 1u], &chunk->bases[at], after * sizeof chunk->bases[0]);
    memmove(&chunk->allocations[at + 1u], &chunk->allocations[at], after * sizeof chunk->allocations[0]);
    chunk->bases[at] = allocation->base;
    chunk->allocations[at] = allocation;
    chunk->count++;
}

/* An empty chunk as part number `index`; its first is set by the caller. */
static rondo_status ranges_add_part(rondo__ranges *ranges, size_t index, rondo__ranges_chunk **out_chunk) {
    void *memory = NULL;
    rondo__ranges_part part = {0};
    RONDO__TRY(rondo__allocate(&ranges->allocator, sizeof(rondo__ranges_chunk), &memory));
    part.chunk = memory;
    part.chunk->count = 0;
    rondo_status status = rondo__buffer_append(&ranges->parts, &part, 1);
    if (status) {
        rondo__free(&ranges->allocator, memory, sizeof(rondo__ranges_chunk));
        return status;
    }
    memmove(ranges_part(ranges, index + 1u), ranges_part(ranges, index),
            (ranges->parts.count - 1u - index) * sizeof part);
    *ranges_part(ranges, index) = part;
    *out_chunk = memory;
    return RONDO_OK;
}

static void ranges_remove_part(rondo__ranges *ranges, size_t index) {
    rondo__free(&ranges->allocator, ranges_part(ranges, index)->chunk, sizeof(rondo__ranges_chunk));
    memmove(ranges_part(ranges, index), ranges_part(ranges, index + 1u),
            (ranges->parts.count - 1u - index) * sizeof(rondo__ranges_part));
    ranges->parts.count--;
}

/* Moves entries [from, count) of one chunk to the end of another. */
static void ranges_move(rondo__ranges_chunk *to, rondo__ranges_chunk *source, uint32_t from) {
    uint32_t moved = source->count - from;
    memcpy(&to->bases[to->count], &source->bases[from], moved * sizeof to->bases[0]);
    memcpy(&to->allocations[to->count], &source->allocations[from], moved * sizeof to->allocations[0]);
    to->count += moved;
    source->count = from;
}

/* Halves a full chunk. New allocations tend to come in order of address: then the last chunk stays full instead. */
static rondo_status ranges_split(rondo__ranges *ranges, size_t index, uint32_t at) {
    rondo__ranges_chunk *fresh = NULL;
    bool append = index + 1u == ranges->parts.count && at == RONDO__RANGES_CHUNK;
    RONDO__TRY(ranges_add_part(ranges, index + 1u, &fresh));
    ranges_move(fresh, ranges_part(ranges, index)->chunk, append ? RONDO__RANGES_CHUNK - 1u : RONDO__RANGES_CHUNK / 2u);
    ranges_part(ranges, index + 1u)->first = fresh->bases[0];
    return RONDO_OK;
}

static rondo_status ranges_check_free(const rondo__ranges *ranges, const rondo__allocation *allocation) {
    const rondo__allocation *below = rondo__ranges_at_or_below(ranges, allocation->base);
    const rondo__allocation *above = rondo__ranges_at_or_above(ranges, allocation->base);
    bool overlap = (below && allocation->base - below->base < below->size) ||
                   (above && above->base - allocation->base < allocation->size);
    if (!overlap) return RONDO_OK;
    return RONDO__FAIL(ALREADY_EXISTS, MEMORY,
                       "the backend gave out %llu bytes at 0x%llx, which overlap a live "
                       "allocation",
                       (unsigned long long)allocation->size, (unsigned long long)allocation->base);
}

rondo_status rondo__ranges_insert(rondo__ranges *ranges, rondo__allocation *allocation) {
    rondo__ranges_chunk *chunk = NULL;
    RONDO__TRY(ranges_check_free(ranges, allocation));
    if (!ranges->parts.count) RONDO__TRY(ranges_add_part(ranges, 0, &chunk));
    size_t parts = chunk ? 0 : ranges_parts_upto(ranges, allocation->base);
    size_t index = parts ? parts - 1u : 0;
    uint32_t at = chunk ? 0 : ranges_bases_upto(ranges_part(ranges, index)->chunk, allocation->base);
    if (ranges_part(ranges, index)->chunk->count == RONDO__RANGES_CHUNK) {
        RONDO__TRY(ranges_split(ranges, index, at));
        uint32_t kept = ranges_part(ranges, index)->chunk->count;
        if (at > kept) {
            index++;
            at -= kept;
        }
    }
    rondo__ranges_part *part = ranges_part(ranges, index);
    ranges_chunk_insert(part->chunk, at, allocation);
    part->first = part->chunk->bases[0];
    ranges->count++;
    return RONDO_OK;
}

/* Joins part `index` with the one after it when both fit well into one. */
static void ranges_join(rondo__ranges *ranges, size_t index) {
    if (index + 1u >= ranges->parts.count) return;
    rondo__ranges_chunk *left = ranges_part(ranges, index)->chunk, *right = ranges_part(ranges, index + 1u)->chunk;
    if (left->count + right->count > RONDO__RANGES_CHUNK / 2u) return;
    ranges_move(left, right, 0);
    ranges_remove_part(ranges, index + 1u);
}

void rondo__ranges_remove(rondo__ranges *ranges, const rondo__allocation *allocation) {
    size_t index = ranges_parts_upto(ranges, allocation->base) - 1u;
    rondo__ranges_chunk *chunk = ranges_part(ranges, index)->chunk;
    uint32_t at = ranges_bases_upto(chunk, allocation->base) - 1u;
    size_t after = chunk->count - at - 1u;
    memmove(&chunk->bases[at], &chunk->bases[at + 1u], after * sizeof chunk->bases[0]);
    memmove(&chunk->allocations[at], &chunk->allocations[at + 1u], after * sizeof chunk->allocations[0]);
    chunk->count--;
    ranges->count--;
    if (!chunk->count) {
        ranges_remove_part(ranges, index);
        return;
    }
    ranges_part(ranges, index)->first = chunk->bases[0];
    ranges_join(ranges, index);
    if (index) ranges_join(ranges, index - 1u);
}
