/* SPDX-License-Identifier: Apache-2.0
 *
 * The caching allocator: segments taken from the backend, cut into blocks, that pools keep and hand out again. A device
 * has two of it, one over its own memory and one over pinned host memory.
 *
 *   classes.h     sizes: rounding, small and large, when to cut
 *   segment.c     from the backend and back, and from pool to pool
 *   block.h       giving out, taking back; block.c: cutting, joining
 *   allocate.c    where a block is looked for, in which order; out of memory
 *   free.c        who has to be waited for
 *   wait.c        other streams that use a block: events, and captures in progress
 *   pool.c        private pools, use counts, diversions
 *   collect.c     what goes back to the backend, and when
 *   hold.c        blocks and pools that watchers keep
 *   checkpoint.c  a pool's exact layout, kept and brought back; rebuild.c: its tree at once
 *   trim.c        what none of some layouts needs goes back to the backend
 *   snapshot.c    segments and blocks as JSON
 *   check.c       every invariant, walked
 *
 * Everything here is under the memory's mutex unless it says otherwise.
 */
#ifndef RONDO_SRC_MEMORY_CACHE_H
#define RONDO_SRC_MEMORY_CACHE_H

#include "memory/marks.h"
#include "memory/memory.h"
#include "memory/ranges.h"

typedef struct rondo__block rondo__block;
typedef struct rondo__segment rondo__segment;
typedef struct rondo__pool rondo__pool;
typedef struct rondo__cache rondo__cache;

/* The key of blocks that no stream owns. Streams are numbered from 1. A number that comes again belongs to a stream
 * whose predecessor has finished everything. */
#define RONDO__NO_STREAM 0u

/* A block is used by work of another stream. */
typedef struct rondo__use {
    struct rondo__use *next;
    rondo__block *block;
    uint64_t stream;
    void *event; /* the backend's. Null: the next event in the queue tells for this use, too */
} rondo__use;

/* The uses by one stream whose blocks were freed, in that order. */
typedef struct rondo__queue {
    uint64_t stream;
    uint64_t uses; /* those of live blocks included: the queue is there before it is needed */
    rondo__use *first, *last;
    rondo__use *front;  /* the first that has an event */
    rondo__use *marked; /* the last that has one */
} rondo__queue;

enum {
    RONDO__BLOCK_FREE = 0,
    RONDO__BLOCK_LIVE = 1,
    RONDO__BLOCK_PENDING = 2 /* freed; somebody still uses it */
};

struct rondo__block {
    rondo__allocation allocation;  /* its start, the size that was asked for, generation, edges. First member */
    uint64_t size;                 /* as rounded */
    rondo__block *next, *previous; /* by address, in the segment */
    uint8_t state;
    bool parked;       /* pending until nothing captures; left is the next such */
    bool kept;         /* checkpoint.c: is in both layouts */
    uint32_t priority; /* free: in the tree */
    uint64_t stream;
    rondo__block *left, *right; /* free: the tree. Spare: left is the next one */
    rondo__segment *segment;
    rondo__use *uses; /* live */
    rondo_lease *lease;
    uint32_t waits; /* pending: uses that are not over */
    uint32_t holds; /* watchers that keep it */
    uint64_t stamp; /* free: the number of the free that made it so */
    uint64_t round; /* pool.c: the last count that met it */
};

struct rondo__segment {
    rondo__allocation range; /* first member */
    rondo__pool *pool;
    rondo__segment *previous, *next; /* of the pool */
    uint64_t stream;
    uint32_t kind;
    bool exact; /* made for one block, never cut */
    bool kept;  /* checkpoint.c, trim.c */
    rondo__block *first;
    uint64_t touched; /* generation of the block that was made live here last */
    /* Where blocks start, in parts of 2^shift bytes; no part has two starts. */
    uint32_t shift;
    rondo__marks marks;
    rondo__block **starts; /* set where there is a mark */
    size_t parts;
};

enum { RONDO__POOL_SMALL = 0, RONDO__POOL_LARGE = 1 };

struct rondo__pool {
    rondo__allocation anchor; /* has an edge to each watcher whose own pool this is. First member */
    rondo__cache *cache;
    rondo_pool_id id;
    uint64_t uses; /* 0: released. The device's own pool has 1 */
    uint64_t kept; /* of them, those of watchers */
    bool recording;
    rondo__segment *segments;
    rondo__block *free[2];
    rondo_memory_statistics counts;
    uint64_t pending; /* blocks */
    uint64_t cut;     /* blocks of this generation and later came after its layout was last kept or brought back */
    char label[48];
};

typedef struct rondo__diversion {
    rondo__pool *pool;
    rondo_memory_filter_kind kind;
    uint64_t value; /* thread, stream or capture */
    uint64_t born;  /* of a stream: another that has its number is not meant */
} rondo__diversion;

#define RONDO__CACHE_RELEASED 4096u

/* Ids that were released, so that they are not used again: the last ones, and a bound on those forgotten. An id above the
 * greatest one ever released is new without a look at them, and that is what captures come with. */
typedef struct rondo__released {
    rondo_pool_id ids[RONDO__CACHE_RELEASED];
    uint64_t count;
    rondo_pool_id forgotten; /* the greatest, each part for itself */
    rondo_pool_id greatest;  /* of all of them, likewise */
} rondo__released;

struct rondo__cache {
    rondo__memory *memory;
    bool pinned;
    bool tells;    /* of reuse: poison.c has somebody to tell */
    bool apart;    /* blocks of no stream get segments of their own: the backend checks edges and reuse */
    uint64_t unit; /* sizes are multiples of it */
    rondo__ranges segments;
    rondo__segment *recent; /* the one that an address was last found in, or null */
    rondo__pool own;
    rondo__buffer pools;       /* rondo__pool *, by id */
    rondo__buffer diversions;  /* rondo__diversion, the newest last */
    rondo__released *released; /* made with the first private pool */
    rondo_memory_statistics total;
    rondo_memory_settings settings;
    uint32_t divisions; /* the settings' roundup_divisions. Atomic: read without the mutex */
    uint64_t limit;     /* of reserved bytes; UINT64_MAX: none */
    rondo__block *spare;
    uint64_t spare_count, made_count;
    struct rondo__slab *slabs;
    uint64_t random, round;
    /* The block that was freed last, if it is not joined yet: free, in no tree. It is often the one that is wanted next,
     * and then need not be joined and cut again. Whoever looks at free blocks joins it first (rondo__cache_wake). */
    rondo__block *resting;
    uint64_t shape; /* raised whenever a block enters a tree or leaves one, and by new settings */
    /* The block that was last found to be what its joining and cutting would give, and the shape then: as long as that
     * stays, it need not be found out again. */
    rondo__block *proven;
    uint64_t proven_shape;
    rondo__block *parked; /* by `left` */
    rondo__buffer queues; /* rondo__queue, one a stream that is waited for */
    uint64_t waiting;     /* uses in them */
    bool rebuilds;
    bool restores;        /* blocks that become live are brought back */
    bool asking;          /* somebody looks through them, without the mutex at times */
    rondo__buffer events; /* void *: events to be used again. Of who asks */
    uint64_t unchecked;   /* operations since check.c looked */
};

/* What is wanted. */
typedef struct rondo__request {
    uint64_t size, rounded;
    uint64_t stream, capture;
    bool divert; /* to the pool that a diversion names, the calling thread's among them */
    uint32_t kind;
} rondo__request;

/* ---- cache.c */
void rondo__cache_init(rondo__cache *cache, rondo__memory *memory, bool pinned);
/* Gives back everything, whatever its state. */
void rondo__cache_deinit(rondo__cache *cache);
/* The segment that has the address; null when there is none. */
rondo__segment *rondo__cache_find_segment(rondo__cache *cache, uint64_t address);
static inline rondo__segment *rondo__cache_segment(rondo__cache *cache, uint64_t address) {
    rondo__segment *segment = cache->recent;
    if (segment && address - segment->range.base < segment->range.size) return segment;
    return rondo__cache_find_segment(cache, address);
}
/* Spare blocks, so that what follows cannot fail. */
RONDO_MUST_USE rondo_status rondo__cache_reserve(rondo__cache *cache, uint64_t blocks);

/* ---- segment.c */
/* Takes `bytes` from the backend into the pool; its one block is free and in no tree. out_short: the failure is that the
 * device (or the limit) has no more; a lack of host memory is another thing. */
RONDO_MUST_USE rondo_status rondo__segment_take(rondo__cache *cache, rondo__pool *pool, const rondo__request *request,
                                                uint64_t bytes, bool exact, rondo__block **out_block, bool *out_short);
/* The segment's one block is in no tree. Work that uses it has finished. */
void rondo__segment_give_back(rondo__cache *cache, rondo__segment *segment);
/* To another pool. Its one block is free and in no tree. */
void rondo__segment_move(rondo__segment *segment, rondo__pool *pool);
static inline bool rondo__segment_is_free(const rondo__segment *segment) {
    return segment->first->state == RONDO__BLOCK_FREE && !segment->first->next;
}
static inline rondo__block *rondo__segment_at(const rondo__segment *segment, uint64_t address) {
    uint64_t at = (address - segment->range.base) >> segment->shift;
    if (!rondo__marks_has(&segment->marks, at)) at = rondo__marks_at_or_below(&segment->marks, at);
    rondo__block *block = segment->starts[at];
    return block->allocation.base > address ? block->previous : block;
}
/* The block that the address is in, whatever its state; null when no segment has it. */
static inline rondo__block *rondo__cache_at(rondo__cache *cache, uint64_t address) {
    const rondo__segment *segment = rondo__cache_segment(cache, address);
    return segment ? rondo__segment_at(segment, address) : NULL;
}
/* The live one that starts there. */
static inline rondo__block *rondo__cache_live(rondo__cache *cache, uint64_t address) {
    const rondo__segment *segment = rondo__cache_segment(cache, address);
    uint64_t at = segment ? (address - segment->range.base) >> segment->shift : 0;
    if (!segment || !rondo__marks_has(&segment->marks, at)) return NULL;
    rondo__block *block = segment->starts[at];
    return block->allocation.base == address && block->state == RONDO__BLOCK_LIVE ? block : NULL;
}
static inline void rondo__segment_mark(rondo__segment *segment, rondo__block *block) {
    uint64_t at = (block->allocation.base - segment->range.base) >> segment->shift;
    rondo__marks_add(&segment->marks, at);
    segment->starts[at] = block;
}
static inline void rondo__segment_unmark(rondo__segment *segment, const rondo__block *block) {
    rondo__marks_remove(&segment->marks, (block->allocation.base - segment->range.base) >> segment->shift);
}

/* ---- allocate.c: take the mutex */
RONDO_MUST_USE rondo_status rondo__cache_allocate(rondo__cache *cache, const rondo__request *request,
                                                  uint64_t *out_address);
/* ---- free.c: takes the mutex */
RONDO_MUST_USE rondo_status rondo__cache_free(rondo__cache *cache, uint64_t address);
/* ---- oom.c */
rondo_status rondo__cache_out_of_memory(rondo__cache *cache, const rondo__pool *pool, const rondo__request *request,
                                        rondo_status reason);

/* ---- wait.c */
/* Takes the mutex. Looks which uses are over, and frees their blocks. Asks the backend, hence not under the mutex. */
void rondo__cache_settle(rondo__cache *cache);
/* The uses of a block that has ended become waits. */
void rondo__cache_await_uses(rondo__cache *cache, rondo__block *block);
static inline void rondo__cache_await(rondo__cache *cache, rondo__block *block) {
    if (block->uses) rondo__cache_await_uses(cache, block);
}
/* A use of a live block that is to end without waiting, because the device has been waited for. */
void rondo__cache_forget_use(rondo__cache *cache, rondo__block *block);
/* Gives back events and what waits for them. */
void rondo__cache_drop_waits(rondo__cache *cache);
/* Whether a capture records the stream of that number (0: any stream). */
bool rondo__cache_captures(rondo_device *device, uint64_t stream);

/* ---- pool.c */
rondo__pool *rondo__cache_pool(rondo__cache *cache, rondo_pool_id id);
/* NOT_FOUND for an unknown or released one. {0, 0} is the device's own. */
RONDO_MUST_USE rondo_status rondo__cache_find_pool(rondo__cache *cache, rondo_pool_id id, rondo__pool **out_pool);
rondo__pool *rondo__cache_find_diversion(rondo__cache *cache, const rondo__request *request);
static inline rondo__pool *rondo__cache_divert(rondo__cache *cache, const rondo__request *request) {
    return cache->diversions.count ? rondo__cache_find_diversion(cache, request) : &cache->own;
}
/* A pool without uses: its free segments become the device's own; without segments it goes. */
void rondo__pool_empty(rondo__cache *cache, rondo__pool *pool);
void rondo__cache_drop_pools(rondo__cache *cache);
RONDO_MUST_USE rondo_status rondo__cache_pool_begin(rondo__cache *cache, rondo_pool_id id,
                                                    const rondo_memory_filter *filter);
RONDO_MUST_USE rondo_status rondo__cache_pool_retain(rondo__cache *cache, rondo_pool_id id);
/* One use less. At 0 it is released: then it does not record. */
void rondo__pool_let_go(rondo__cache *cache, rondo__pool *pool);
RONDO_MUST_USE rondo_status rondo__cache_pool_end(rondo__cache *cache, rondo_pool_id id);
RONDO_MUST_USE rondo_status rondo__cache_pool_release(rondo__cache *cache, rondo_pool_id id);

/* ---- collect.c: only segments freed up to `stamp` are looked at, and none whose stream captures */
void rondo__cache_collect_all(rondo__cache *cache, uint64_t stamp);
/* The settings' oldest ones. */
void rondo__cache_collect_old(rondo__cache *cache, uint64_t stamp);
/* Large ones of the request's stream that it might not take: enough for it, or nothing. */
void rondo__cache_collect_oversize(rondo__cache *cache, const rondo__request *request, uint64_t stamp);

/* ---- check.c */
RONDO_MUST_USE rondo_status rondo__cache_check(rondo__cache *cache);
/* After an operation, in debug builds. */
#ifdef NDEBUG
static inline void rondo__cache_assert(rondo__cache *cache) { (void)cache; }
#else
void rondo__cache_assert(rondo__cache *cache);
#endif

#endif
