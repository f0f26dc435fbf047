/* SPDX-License-Identifier: Apache-2.0
 *
 * Segments: taken from the backend whole, given back whole, and handed from one pool to another when wholly free. */
#include "memory/block.h"
#include "memory/classes.h"
#include "memory/poison.h"

#define RONDO__SEGMENT_HOST_ALIGNMENT 64u

/* Calls into the driver are legal in whatever a capture of the thread forbids. */
static bool segment_relax(rondo_device *device, rondo_capture_mode *out_before) {
    const rondo_graph_table *graph = device->table->graph;
    if (!graph || !graph->thread_mode) return false;
    rondo_status status = graph->thread_mode(device->handle, RONDO_CAPTURE_MODE_RELAXED, out_before);
    rondo_status_release(status);
    return !status;
}

static void segment_restrict(rondo_device *device, rondo_capture_mode before) {
    rondo_capture_mode relaxed;
    rondo_status status = device->table->graph->thread_mode(device->handle, before, &relaxed);
    if (!status) return;
    rondo_status again = device->table->graph->thread_mode(device->handle, before, &relaxed);
    if (again)
        rondo__log_write(device->log, RONDO_LOG_ERROR,
                         "the driver's capture mode of a thread could not be put back: it stays relaxed: %s",
                         rondo_status_message(status));
    rondo_status_release(again);
    rondo_status_release(status);
}

static rondo_status segment_raw_take(const rondo__cache *cache, uint64_t bytes, uint64_t *out_address) {
    rondo__memory *memory = cache->memory;
    const rondo_memory_table *table = memory->device->table->memory;
    void *pointer = NULL;
    if (!cache->pinned) return table->allocate(memory->device->handle, bytes, out_address);
    if (table->host_allocate) {
        RONDO__TRY(table->host_allocate(memory->device->handle, bytes, &pointer));
    } else {
        RONDO__TRY(rondo__allocate_aligned(&memory->allocator, (size_t)bytes, RONDO__SEGMENT_HOST_ALIGNMENT, &pointer));
    }
    *out_address = (uint64_t)(uintptr_t)pointer;
    return RONDO_OK;
}

static void segment_raw_give_back(const rondo__cache *cache, uint64_t address, uint64_t bytes) {
    rondo__memory *memory = cache->memory;
    const rondo_memory_table *table = memory->device->table->memory;
    void *pointer = (void *)(uintptr_t)address;
    rondo_capture_mode before = 0;
    bool relaxed = segment_relax(memory->device, &before);
    if (!cache->pinned) {
        table->free(memory->device->handle, address, bytes);
    } else if (table->host_free) {
        table->host_free(memory->device->handle, pointer, bytes);
    } else {
        rondo__free_aligned(&memory->allocator, pointer, (size_t)bytes, RONDO__SEGMENT_HOST_ALIGNMENT);
    }
    if (relaxed) segment_restrict(memory->device, before);
}

static rondo_status segment_check_address(const rondo__cache *cache, uint64_t address, uint64_t bytes) {
    const rondo_device_properties *properties = &cache->memory->device->properties;
    uint64_t alignment = cache->pinned ? 1u : properties->allocation_alignment, end = 0;
    if (address && (address & (alignment - 1u)) == 0 && !__builtin_add_overflow(address, bytes, &end)) return RONDO_OK;
    return RONDO__FAIL(INTERNAL, MEMORY, "the backend of '%s' gave out 0x%llx, which is not aligned to %llu bytes",
                       properties->name, (unsigned long long)address, (unsigned long long)alignment);
}

static void segment_free_struct(rondo__cache *cache, rondo__segment *segment) {
    const rondo_allocator *allocator = &cache->memory->allocator;
    rondo__marks_deinit(&segment->marks, allocator);
    rondo__free(allocator, segment->starts, segment->parts * sizeof(rondo__block *));
    rondo__free(allocator, segment, sizeof *segment);
}

/* Blocks of a large segment have more than a mebibyte each, so that none of its parts has two starts; an exact segment
 * has one part. */
static uint32_t segment_shift(const rondo__cache *cache, const rondo__request *request, bool exact) {
    uint64_t part = request->kind == RONDO__POOL_SMALL ? cache->unit : RONDO__CLASS_SMALL;
    return exact ? 63u : (uint32_t)__builtin_ctzll(part);
}

/* Room for the segment's own lists, before there is memory. */
static rondo_status segment_make(rondo__cache *cache, const rondo__request *request, uint64_t bytes, bool exact,
                                 rondo__segment **out_segment) {
    const rondo_allocator *allocator = &cache->memory->allocator;
    void *memory = NULL;
    RONDO__TRY(rondo__cache_reserve(cache, 2));
    RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(rondo__segment), &memory));
    rondo__segment *segment = memory;
    segment->kind = request->kind;
    segment->stream = request->stream;
    segment->exact = exact;
    segment->shift = segment_shift(cache, request, exact);
    segment->parts = (size_t)((bytes - 1u) >> segment->shift) + 1u;
    memory = NULL;
    rondo_status status = rondo__marks_init(&segment->marks, allocator, segment->parts);
    if (!status) status = rondo__allocate(allocator, segment->parts * sizeof(rondo__block *), &memory);
    segment->starts = memory;
    if (status) {
        if (!memory) segment->parts = 0;
        segment_free_struct(cache, segment);
        return status;
    }
    *out_segment = segment;
    return RONDO_OK;
}

static void segment_count(rondo_memory_statistics *counts, const rondo__segment *segment) {
    counts->segments++;
    if (counts->segments_peak < counts->segments) counts->segments_peak = counts->segments;
    counts->reserved_bytes += segment->range.size;
    if (counts->reserved_peak < counts->reserved_bytes) counts->reserved_peak = counts->reserved_bytes;
}

static void segment_link(rondo__segment *segment, rondo__pool *pool) {
    segment->pool = pool;
    segment->previous = NULL;
    segment->next = pool->segments;
    if (pool->segments) pool->segments->previous = segment;
    pool->segments = segment;
    segment_count(&pool->counts, segment);
}

static void segment_unlink(rondo__segment *segment) {
    rondo__pool *pool = segment->pool;
    if (segment->previous) segment->previous->next = segment->next;
    else pool->segments = segment->next;
    if (segment->next) segment->next->previous = segment->previous;
    pool->counts.segments--;
    pool->counts.reserved_bytes -= segment->range.size;
}

static void segment_enter(rondo__cache *cache, rondo__pool *pool, rondo__segment *segment) {
    segment_link(segment, pool);
    segment->first = rondo__block_make(cache, segment, segment->range.base, segment->range.size);
    segment->first->stamp = cache->memory->frees;
    segment_count(&cache->total, segment);
    cache->total.segment_allocations++;
    pool->counts.segment_allocations++;
    cache->total.reserved_sum += segment->range.size;
    pool->counts.reserved_sum += segment->range.size;
    rondo__poison_fresh(cache, segment->first);
}

rondo_status rondo__segment_take(rondo__cache *cache, rondo__pool *pool, const rondo__request *request, uint64_t bytes,
                                 bool exact, rondo__block **out_block, bool *out_short) {
    rondo__segment *segment = NULL;
    rondo_capture_mode before = 0;
    *out_short = false;
    if (bytes > cache->limit || cache->total.reserved_bytes > cache->limit - bytes) {
        *out_short = true;
        return RONDO__FAIL(OUT_OF_MEMORY, MEMORY, "%llu bytes more pass the limit of %llu that was set",
                           (unsigned long long)bytes, (unsigned long long)cache->limit);
    }
    if ((bytes - 1u) >> segment_shift(cache, request, exact) >= RONDO__MARKS_MAX) { /* no device has as much */
        *out_short = true;
        return RONDO__FAIL(OUT_OF_MEMORY, MEMORY, "%llu bytes are more than one segment can hold",
                           (unsigned long long)bytes);
    }
    RONDO__TRY(segment_make(cache, request, bytes, exact, &segment));
    bool relaxed = segment_relax(cache->memory->device, &before);
    rondo_status status = segment_raw_take(cache, bytes, &segment->range.base);
    if (relaxed) segment_restrict(cache->memory->device, before);
    if (status) {
        *out_short = rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY;
        segment_free_struct(cache, segment);
        return status;
    }
    segment->range.size = bytes;
    status = segment_check_address(cache, segment->range.base, bytes);
    if (!status) status = rondo__ranges_insert(&cache->segments, &segment->range);
    if (status) {
        segment_raw_give_back(cache, segment->range.base, bytes);
        segment_free_struct(cache, segment);
        return status;
    }
    segment_enter(cache, pool, segment);
    *out_block = segment->first;
    return RONDO_OK;
}

void rondo__segment_give_back(rondo__cache *cache, rondo__segment *segment) {
    rondo__poison_forget(cache, segment);
    if (cache->recent == segment) cache->recent = NULL;
    segment->pool->counts.segment_frees++;
    segment_unlink(segment);
    cache->total.segments--;
    cache->total.segment_frees++;
    cache->total.reserved_bytes -= segment->range.size;
    rondo__ranges_remove(&cache->segments, &segment->range);
    rondo__block_drop(cache, segment->first);
    segment_raw_give_back(cache, segment->range.base, segment->range.size);
    segment_free_struct(cache, segment);
}

void rondo__segment_move(rondo__segment *segment, rondo__pool *pool) {
    segment_unlink(segment);
    segment_link(segment, pool);
}
