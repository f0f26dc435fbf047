/* SPDX-License-Identifier: Apache-2.0
 *
 * Why there is no memory, in figures that add up: what is reserved is allocated, or held by pools, or reusable. */
#include "memory/table.h"

typedef struct oom_figures {
    uint64_t allocated, held, reusable, largest; /* largest: reusable piece */
    const rondo__pool *most;                     /* the private pool that holds most */
} oom_figures;

static void oom_count(const rondo__cache *cache, oom_figures *out) {
    *out = (oom_figures){0};
    for (const rondo__segment *segment = cache->own.segments; segment; segment = segment->next) {
        for (const rondo__block *block = segment->first; block; block = block->next) {
            if (block->state != RONDO__BLOCK_FREE) continue;
            out->reusable += block->size;
            if (out->largest < block->size) out->largest = block->size;
        }
    }
    out->allocated = cache->own.counts.reserved_bytes - out->reusable;
    out->held = cache->total.reserved_bytes - cache->own.counts.reserved_bytes;
    for (size_t i = 0; i < cache->pools.count; i++) {
        const rondo__pool *pool = *RONDO__BUFFER_AT(&cache->pools, rondo__pool *, i);
        if (!out->most || out->most->counts.reserved_bytes < pool->counts.reserved_bytes) out->most = pool;
    }
}

/* 0 when all that is reusable is one piece, towards 100 the smaller its pieces are. */
static unsigned oom_fragmentation(const oom_figures *f) {
    return f->reusable ? (unsigned)(100.0 * (1.0 - (double)f->largest / (double)f->reusable)) : 0u;
}

rondo_status rondo__cache_out_of_memory(rondo__cache *cache, const rondo__pool *pool, const rondo__request *request,
                                        rondo_status reason) {
    oom_figures f;
    oom_count(cache, &f);
    rondo_status status = RONDO__FAIL(
        OUT_OF_MEMORY, MEMORY,
        "device '%s': no %smemory for %llu bytes%s: %llu bytes are reserved, of which %llu are "
        "allocated, %llu are held by graph pools and %llu are reusable (largest piece %llu, fragmentation %u%%)",
        cache->memory->device->properties.name, cache->pinned ? "pinned host " : "", (unsigned long long)request->size,
        pool == &cache->own ? "" : " in a graph's pool", (unsigned long long)cache->total.reserved_bytes,
        (unsigned long long)f.allocated, (unsigned long long)f.held, (unsigned long long)f.reusable,
        (unsigned long long)f.largest, oom_fragmentation(&f));
    if (f.most && f.held) {
        status = rondo__status_note(status, "most is held by pool {%llu, %llu}%s%s: %llu bytes, of which %llu are live",
                                    (unsigned long long)f.most->id.automatic, (unsigned long long)f.most->id.user,
                                    f.most->label[0] ? " of " : "", f.most->label,
                                    (unsigned long long)f.most->counts.reserved_bytes,
                                    (unsigned long long)f.most->counts.allocated_bytes);
    }
    if (cache->total.pending_bytes) {
        status = rondo__status_note(status, "%llu bytes are freed but wait for another stream or a capture",
                                    (unsigned long long)cache->total.pending_bytes);
    }
    status = rondo__status_note(status, "%s", rondo_status_message(reason));
    rondo_status_release(reason);
    return status;
}
