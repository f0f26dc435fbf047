/* SPDX-License-Identifier: Apache-2.0
 *
 * A device for the tests of trees, all in host memory: blocks of pools, and streams whose work runs only when somebody waits
 * for it; ops_testing.h has what trees need besides. Work of a stream that nobody ordered behind another's
 * runs as late as it may, so that a wait that is missing shows in the values. Fresh memory is filled with NaN in stream
 * order, in graphs too, so that what reads memory that was used again does not find its old values there.
 *
 * Every entry that returns a status can be made to fail (faults_testing.h). */
#ifndef RONDO_SRC_TREE_DEVICE_TESTING_H
#define RONDO_SRC_TREE_DEVICE_TESTING_H

#include <math.h>
#include <pthread.h>
#include <rondo/tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tree/bridge_testing.h"
#include "tree/faults_testing.h"

#define MD_ALIGN ((uint64_t)64)
#define MD_SEGMENT ((uint64_t)16384)
#define MD_WORDS 10u
#define MD_POOLS 64u
#define MD_SLOTS 32u

/* ------------------------------------------------------------------------------------------------------- parts */

typedef struct md_call {
    md_kernel kernel;
    uint64_t words[MD_WORDS];
    uint32_t addresses; /* bit i: words[i] is an address; that of word 0 is written, others are read */
    uint64_t bytes[3];  /* behind them, for a native device */
} md_call;

/* A call, or a wait for what `other` had before `position`. */
typedef struct md_item {
    md_call call;
    uint64_t other, position;
} md_item;

typedef struct md_graph md_graph;
typedef struct md_stream {
    md_device *device;
    rondo_stream *native; /* of a native device: what this stands for */
    struct md_stream *next;
    uint64_t number; /* 1, 2, ... */
    md_item *items;
    uint64_t count, capacity, done;
    md_graph *capture;
} md_stream;

struct md_graph {
    md_device *device;
    struct md_graph *next;
    char name[64];
    md_call *calls;
    uint64_t count, capacity, pool, replays;
    md_stream *stream; /* while it captures */
    bool invalid, ended;
    struct {
        uint64_t address, bytes, now;
    } slots[MD_SLOTS];
};

typedef struct md_block {
    struct md_block *next; /* by address */
    uint64_t address, bytes, requested;
    bool live;
} md_block;

typedef struct md_segment {
    struct md_segment *next;
    char *memory;
    uint64_t bytes, pool, stream; /* of one pool and one stream */
    md_block *blocks;
} md_segment;

typedef struct md_pool {
    uint64_t uses;
    bool made, over, recording, by_thread;
    pthread_t thread;
} md_pool;

/* The layout of a pool: a copy of each segment's blocks. */
typedef struct md_state {
    md_device *device;
    uint64_t pool, count;
    struct {
        md_segment *segment;
        md_block *blocks;
    } * segments;
} md_state;

struct md_device {
    rondo_device *native;  /* not null: everything is that device's */
    pthread_mutex_t mutex; /* recursive */
    tt_faults *faults;
    md_stream *streams;
    md_graph *graphs;
    md_segment *segments;
    md_pool pools[MD_POOLS]; /* 0: ordinary memory */
    uint64_t pool_count, stream_count;
    uint64_t states, checkpoints, launches, prepared, unprepared;
    uint64_t wrong; /* things that a device does not forgive: a block freed twice, a use of what is over */
    char wrong_text[160];
    bool no_capture, uncached;
    bool halves; /* a replay that is made to fail has run half of what it should */
    bool clean;  /* fresh memory is not filled now */
    /* A foreign host's storages: what the device does to one that `live` names. */
    void (*own_storage)(void *user, void *storage);
    void *own_user;
};

static inline void md_lock(md_device *d) { (void)pthread_mutex_lock(&d->mutex); }
static inline void md_unlock(md_device *d) { (void)pthread_mutex_unlock(&d->mutex); }

static inline void md_wrong(md_device *d, const char *text) {
    if (!d->wrong++) (void)snprintf(d->wrong_text, sizeof d->wrong_text, "%s", text);
}

static inline uint64_t md_address(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

/* The only way from an address to what is there. */
static inline void *md_memory(uint64_t address) {
    void *pointer;
    memcpy(&pointer, &address, sizeof pointer);
    return pointer;
}

/* ----------------------------------------------------------------------------------------------------- streams */

static inline md_stream *md_stream_of(md_device *d, uint64_t number) {
    for (md_stream *s = d->streams; s; s = s->next)
        if (s->number == number) return s;
    return NULL;
}

static inline rondo_status md_enqueue(md_stream *s, const md_item *item) {
    if (s->count == s->capacity) {
        uint64_t capacity = s->capacity ? 2u * s->capacity : 64u;
        md_item *items = realloc(s->items, capacity * sizeof *items);
        if (!items) return RONDO__FAIL(OUT_OF_MEMORY, DRIVER, "no memory for a stream's work");
        s->items = items;
        s->capacity = capacity;
    }
    s->items[s->count++] = *item;
    return RONDO_OK;
}

static inline void md_drain(md_stream *s, uint64_t position) {
    while (s->done < position && s->done < s->count) {
        md_item item = s->items[s->done++];
        if (item.call.kernel) {
            item.call.kernel(s->device, item.call.words);
        } else {
            md_stream *other = md_stream_of(s->device, item.other);
            if (other) md_drain(other, item.position);
        }
    }
    if (s->done < s->count || s->count < 4096u) return;
    /* Forget them: whoever waits for this stream waits for something that is done. */
    for (md_stream *each = s->device->streams; each; each = each->next)
        for (uint64_t i = each->done; i < each->count; i++)
            if (each->items[i].other == s->number) each->items[i].position = 0;
    s->count = s->done = 0;
}

static inline rondo_status md_graph_append(md_graph *g, const md_call *call) {
    if (g->count == g->capacity) {
        uint64_t capacity = g->capacity ? 2u * g->capacity : 16u;
        md_call *calls = realloc(g->calls, capacity * sizeof *calls);
        if (!calls) return RONDO__FAIL(OUT_OF_MEMORY, DRIVER, "no memory for a graph's calls");
        g->calls = calls;
        g->capacity = capacity;
    }
    g->calls[g->count++] = *call;
    return RONDO_OK;
}

static inline rondo_status md_launch_locked(md_stream *s, const md_call *call) {
    md_item item = {.call = *call};
    if (s->native) return nb_launch(s->native, call->kernel, call->words, MD_WORDS, call->addresses, call->bytes);
    if (s->capture) return md_graph_append(s->capture, call);
    s->device->launches++;
    return md_enqueue(s, &item);
}

static inline rondo_status md_launch(md_stream *s, const md_call *call) {
    md_lock(s->device);
    rondo_status status = tt_fault(s->device->faults, TT_FAULT_LAUNCH);
    if (!status) status = md_launch_locked(s, call);
    if (status && s->capture) s->capture->invalid = true;
    md_unlock(s->device);
    return status;
}

/* Takes the reference of a native stream. */
static inline rondo_status md_add_stream(md_device *d, rondo_stream *native, md_stream **out_stream) {
    md_stream *s = calloc(1, sizeof *s);
    if (!s) {
        rondo_stream_release(native);
        return RONDO__FAIL(OUT_OF_MEMORY, DRIVER, "no memory for a stream");
    }
    md_lock(d);
    *s = (md_stream){.device = d, .native = native, .next = d->streams, .number = ++d->stream_count};
    d->streams = s;
    md_unlock(d);
    *out_stream = s;
    return RONDO_OK;
}

static inline rondo_status md_create_stream(void *user, void **out_stream) {
    md_device *d = user;
    md_stream *s = NULL;
    rondo_stream *native = NULL;
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_STREAM_CREATE));
    if (d->native) RONDO__TRY(rondo_stream_create(d->native, NULL, &native));
    RONDO__TRY(md_add_stream(d, native, &s));
    *out_stream = s;
    return RONDO_OK;
}

/* What a tree knows a stream by, and back. Null: no memory. */
static inline void *md_handle(md_stream *s) { return s->native ? (void *)s->native : s; }
static inline md_stream *md_of_handle(md_device *d, void *handle) {
    md_stream *s = d->native ? d->streams : handle;
    if (!d->native) return s;
    md_lock(d);
    while (s && s->native != handle) s = s->next;
    md_unlock(d);
    if (s) return s;
    rondo_stream_retain(handle);
    rondo_status_release(md_add_stream(d, handle, &s));
    return s;
}

static inline void md_release_stream(void *user, void *stream) {
    md_device *d = user;
    md_stream *s = stream, **link = &d->streams;
    md_lock(d);
    if (s->capture) md_wrong(d, "a stream was released while it captures");
    md_drain(s, s->count);
    while (*link != s) link = &(*link)->next;
    *link = s->next;
    md_unlock(d);
    rondo_stream_release(s->native);
    free(s->items);
    free(s);
}

static inline rondo_status md_stream_wait(void *user, void *stream, void *other) {
    md_device *d = user;
    md_stream *s = stream, *o = other;
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_STREAM_WAIT));
    if (s == o) return RONDO_OK;
    if (d->native) return nb_wait(d->native, s->native, o->native);
    md_lock(d);
    rondo_status status = RONDO_OK;
    if (o->capture && !s->capture) {
        s->capture = o->capture; /* a fork: it records there, too */
    } else if (s->capture && s->capture != o->capture) {
        s->capture->invalid = true;
        status = RONDO__FAIL(INVALID_STATE, CAPTURE, "work that is not captured cannot be waited for");
    } else if (!s->capture) {
        status = md_enqueue(s, &(md_item){.other = o->number, .position = o->count});
    }
    md_unlock(d);
    return status;
}

static inline rondo_status md_synchronize(void *user, void *stream) {
    md_device *d = user;
    md_stream *s = stream;
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_SYNCHRONIZE));
    if (d->native) return rondo_stream_synchronize(s->native);
    md_lock(d);
    rondo_status status = RONDO_OK;
    if (s->capture) {
        s->capture->invalid = true;
        status = RONDO__FAIL(INVALID_STATE, CAPTURE, "a stream that captures cannot be waited for");
    } else {
        md_drain(s, s->count);
    }
    md_unlock(d);
    return status;
}

/* ------------------------------------------------------------------------------------------------------ memory */

static inline void md_kernel_fill_nan(md_device *device, const uint64_t *words) {
    float *to = md_memory(words[0]);
    (void)device;
    for (uint64_t i = 0; i < words[1] / sizeof *to; i++) to[i] = NAN;
}

static inline void md_blocks_free(md_block *block) {
    while (block) {
        md_block *next = block->next;
        free(block);
        block = next;
    }
}

static inline bool md_blocks_copy(const md_block *from, md_block **out_blocks) {
    md_block *first = NULL, **link = &first;
    for (; from; from = from->next) {
        md_block *block = malloc(sizeof *block);
        if (!block) {
            md_blocks_free(first);
            return false;
        }
        *block = *from;
        block->next = NULL;
        *link = block;
        link = &block->next;
    }
    *out_blocks = first;
    return true;
}

static inline rondo_status md_segment_add(md_device *d, uint64_t pool, uint64_t stream, uint64_t bytes) {
    md_segment *segment = calloc(1, sizeof *segment);
    md_block *block = calloc(1, sizeof *block);
    uint64_t size = bytes > MD_SEGMENT ? bytes : MD_SEGMENT;
    void *memory = NULL;
    if (!segment || !block || posix_memalign(&memory, MD_ALIGN, size)) {
        free(segment);
        free(block);
        return RONDO__FAIL(OUT_OF_MEMORY, MEMORY, "no memory for a segment of %llu bytes", (unsigned long long)size);
    }
    *block = (md_block){.address = md_address(memory), .bytes = size};
    *segment = (md_segment){.memory = memory, .bytes = size, .pool = pool, .stream = stream, .blocks = block};
    md_segment **link = &d->segments; /* behind the others, so that old segments fill up first */
    while (*link) link = &(*link)->next;
    *link = segment;
    return RONDO_OK;
}

/* A private pool takes over a free segment of ordinary memory before it asks for a new one, as allocators do. */
static inline bool md_segment_take(md_device *d, uint64_t pool, uint64_t stream, uint64_t bytes) {
    for (md_segment *s = d->segments; pool && s; s = s->next) {
        if (s->pool || s->blocks->live || s->blocks->next || s->bytes < bytes) continue;
        for (md_stream *each = d->streams; each; each = each->next) md_drain(each, each->count);
        s->pool = pool;
        s->stream = stream;
        return true;
    }
    return false;
}

/* The first free piece that is large enough. */
static inline md_block *md_find_free(md_device *d, uint64_t pool, uint64_t stream, uint64_t bytes) {
    for (md_segment *s = d->segments; s; s = s->next) {
        if (s->pool != pool || s->stream != stream) continue;
        for (md_block *b = s->blocks; b; b = b->next)
            if (!b->live && b->bytes >= bytes) return b;
    }
    return NULL;
}

/* Where the calling thread's memory for the stream comes from now. */
static inline uint64_t md_pool_for(md_device *d, const md_stream *s) {
    if (s && s->capture) return s->capture->pool;
    for (uint64_t i = 1; i <= d->pool_count; i++)
        if (d->pools[i].recording && d->pools[i].by_thread && pthread_equal(d->pools[i].thread, pthread_self()))
            return i;
    return 0;
}

static inline rondo_status md_allocate_locked(md_device *d, md_stream *s, uint64_t bytes, uint64_t *out_address) {
    uint64_t pool = md_pool_for(d, s), size = (bytes + MD_ALIGN - 1u) / MD_ALIGN * MD_ALIGN;
    md_block *block = md_find_free(d, pool, s->number, size);
    if (!block) {
        if (!md_segment_take(d, pool, s->number, size)) RONDO__TRY(md_segment_add(d, pool, s->number, size));
        block = md_find_free(d, pool, s->number, size);
    }
    md_block *rest = block->bytes > size ? malloc(sizeof *rest) : NULL;
    if (block->bytes > size && !rest) return RONDO__FAIL(OUT_OF_MEMORY, MEMORY, "no memory for a block");
    md_call fill = {md_kernel_fill_nan, {block->address, size}, 1u, {size}};
    rondo_status status = d->clean ? RONDO_OK : md_launch_locked(s, &fill);
    if (status) {
        free(rest);
        return status;
    }
    if (rest) {
        *rest = (md_block){.next = block->next, .address = block->address + size, .bytes = block->bytes - size};
        block->next = rest;
        block->bytes = size;
    }
    block->live = true;
    block->requested = bytes;
    *out_address = block->address;
    return RONDO_OK;
}

/* Memory for work of the stream. */
static inline rondo_status md_allocate(md_device *d, md_stream *s, uint64_t bytes, uint64_t *out_address) {
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_ALLOCATE));
    if (d->native) {
        RONDO__TRY(nb_allocate(s->native, bytes, out_address));
        md_call fill = {md_kernel_fill_nan, {*out_address, bytes}, 1u, {bytes}};
        md_lock(d);
        rondo_status filled = d->clean ? RONDO_OK : md_launch_locked(s, &fill);
        md_unlock(d);
        if (filled) (void)nb_free(d->native, *out_address);
        return filled;
    }
    md_lock(d);
    rondo_status status = md_allocate_locked(d, s, bytes, out_address);
    md_unlock(d);
    return status;
}

static inline void md_join(md_block *block) {
    while (block->next && !block->live && !block->next->live) {
        md_block *next = block->next;
        block->bytes += next->bytes;
        block->next = next->next;
        free(next);
    }
}

static inline md_block *md_block_at(md_device *d, uint64_t address, md_segment **out_segment) {
    for (md_segment *s = d->segments; s; s = s->next) {
        if (address < md_address(s->memory) || address >= md_address(s->memory) + s->bytes) continue;
        for (md_block *b = s->blocks; b; b = b->next)
            if (address >= b->address && address < b->address + b->bytes) {
                if (out_segment) *out_segment = s;
                return b;
            }
    }
    return NULL;
}

static inline bool md_free_block(md_device *d, uint64_t address) {
    if (d->native) {
        if (nb_free(d->native, address)) return true;
        md_wrong(d, "a block was freed that is not alive");
        return false;
    }
    md_segment *segment = NULL;
    md_block *block = md_block_at(d, address, &segment);
    if (!block || block->address != address || !block->live) {
        md_wrong(d, "a block was freed that is not alive");
        return false;
    }
    block->live = false;
    for (md_block *b = segment->blocks; b; b = b->next) md_join(b);
    return true;
}

static inline void md_free(md_device *d, uint64_t address) {
    md_lock(d);
    (void)md_free_block(d, address);
    md_unlock(d);
}

static inline rondo_status md_raw_delete(void *user, uint64_t pointer) {
    md_device *d = user;
    md_lock(d);
    bool done = md_free_block(d, pointer);
    rondo_status status = tt_fault(d->faults, TT_FAULT_RAW_DELETE);
    md_unlock(d);
    if (!done && !status) status = RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "no live block starts there");
    return status;
}

/* Live blocks and their bytes; of one pool, or of all (UINT64_MAX). */
static inline uint64_t md_live(md_device *d, uint64_t pool, uint64_t *out_bytes) {
    uint64_t count = 0, bytes = 0;
    if (d->native) {
        rondo_memory_statistics statistics = nb_statistics(d->native, pool == UINT64_MAX ? 0 : pool);
        if (out_bytes) *out_bytes = statistics.allocated_bytes;
        return statistics.allocations;
    }
    md_lock(d);
    for (md_segment *s = d->segments; s; s = s->next)
        for (md_block *b = s->blocks; b; b = b->next)
            if (b->live && (pool == UINT64_MAX || s->pool == pool)) count++, bytes += b->bytes;
    md_unlock(d);
    if (out_bytes) *out_bytes = bytes;
    return count;
}

static inline uint64_t md_segments(md_device *d, uint64_t pool) {
    uint64_t count = 0;
    if (d->native) return nb_statistics(d->native, pool).segments;
    md_lock(d);
    for (md_segment *s = d->segments; s; s = s->next) count += s->pool == pool;
    md_unlock(d);
    return count;
}

static inline void md_kernel_copy(md_device *device, const uint64_t *words) {
    (void)device;
    memmove(md_memory(words[0]), md_memory(words[1]), words[2]);
}

static inline rondo_status md_copy_one(md_stream *s, uint64_t destination, uint64_t source, uint64_t bytes) {
    md_call call = {md_kernel_copy, {destination, source, bytes}, 3u, {bytes, bytes}};
    return bytes ? md_launch_locked(s, &call) : RONDO_OK;
}

#endif
