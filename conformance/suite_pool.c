/* SPDX-License-Identifier: Apache-2.0
 *
 * The caching allocator on this device: blocks of streams, private pools, checkpoints and leases. What is proved is that
 * no block is ever given to two, on whatever stream, and that a pool is exactly what it is said to be. */
#include <stdio.h>
#include <string.h>

#include "conf.h"

static void *pool_block_on(conf *t, rondo_stream *stream, uint64_t bytes) {
    void *pointer = NULL;
    WANT_OK(t, rondo_memory_allocate_on(stream, bytes, &pointer));
    conf_keep(t, CONF_MEMORY, pointer);
    return pointer;
}

/* A block goes back and comes again in the order of its stream: nobody waits, and all is right. */
static void pool_same_stream(conf *t) {
    rondo_stream *stream = conf_stream(t);
    char *out = conf_memory(t, 100 * 8);
    for (uint64_t i = 0; i < 100; ++i) {
        char *block = pool_block_on(t, stream, conf_between(t, 1, 64) * 512);
        WANT(t, ((uintptr_t)block & (t->properties->allocation_alignment - 1)) == 0, "a stream's block lies at %p",
             (void *)block);
        conf_spin(t, stream, 1000);
        conf_iota(t, stream, block, 8, 4000 + i);
        conf_copy(t, stream, block, out + i * 8, 8);
        conf_drop(t, block);
    }
    conf_want64(t, stream, out, 100, 4000, 1, "blocks that came and went in a stream");
}

/* What one stream freed is not another's while the first still uses it. */
static void pool_other_stream(conf *t) {
    rondo_stream *first = conf_stream(t), *second = conf_stream(t);
    char *out = conf_memory(t, 800);
    for (uint64_t i = 0; i < 50; ++i) {
        char *block = pool_block_on(t, first, 800);
        conf_spin(t, first, 20000);
        conf_iota(t, first, block, 100, i);
        conf_copy(t, first, block, out, 800);
        conf_drop(t, block);
        char *other = pool_block_on(t, second, 800);
        conf_iota(t, second, other, 100, 999000);
        conf_want64(t, second, other, 100, 999000, 1, "a block of a second stream");
        conf_drop(t, other);
        conf_want64(t, first, out, 100, i, 1, "what a first stream made of a block that it freed");
    }
}

static void pool_record_stream(conf *t) {
    rondo_stream *owner = conf_stream(t), *user = conf_stream(t);
    rondo_event *ready = conf_event(t), *read = conf_event(t);
    char *out = conf_memory(t, 800);
    for (uint64_t i = 0; i < 50; ++i) {
        char *block = pool_block_on(t, owner, 800);
        conf_iota(t, owner, block, 100, i);
        WANT_OK(t, rondo_event_record(ready, owner));
        WANT_OK(t, rondo_event_wait(ready, user));
        conf_spin(t, user, 20000);
        conf_copy(t, user, block, out, 800);
        WANT_OK(t, rondo_memory_record_stream(t->device, block, user));
        conf_drop(t, block);
        char *next = pool_block_on(t, owner, 800);
        conf_iota(t, owner, next, 100, 999000);
        conf_want64(t, user, out, 100, i, 1, "what a second stream read of a block that its owner had freed");
        conf_want64(t, owner, next, 100, 999000, 1, "the owner's next block");
        conf_drop(t, next);
        WANT_OK(t, rondo_event_record(read, user));
        WANT_OK(t, rondo_event_wait(read, owner));
    }
}

static void pool_refuses(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_pool_id none = {0, 0}, both = {1, 1}, pool = rondo_pool_handle(t->instance),
                  other = rondo_pool_handle(t->instance);
    rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
    rondo_memory_checkpoint *checkpoint = NULL;
    void *pointer = NULL;
    bool equal;
    char *block = pool_block_on(t, stream, 512);
    WANT(t, pool.user && !pool.automatic && other.user != pool.user, "pool handles are not unique");
    WANT_CODE(t, rondo_memory_allocate_on(stream, 0, &pointer), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_memory_allocate_on(NULL, 8, &pointer), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_memory_record_stream(t->device, block + 8, stream), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_memory_record_stream(t->device, block, NULL), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_memory_pool_begin(t->device, none, &filter), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_memory_pool_begin(t->device, both, &filter), INVALID_ARGUMENT);
    filter.kind = 3;
    WANT_CODE(t, rondo_memory_pool_begin(t->device, pool, &filter), INVALID_ARGUMENT);
    filter.kind = RONDO_MEMORY_FILTER_THREAD;
    WANT_CODE(t, rondo_memory_pool_retain(t->device, pool), NOT_FOUND);
    WANT_CODE(t, rondo_memory_pool_release(t->device, pool), NOT_FOUND);
    WANT_CODE(t, rondo_memory_pool_live(t->device, pool, NULL, 0, &equal), NOT_FOUND);
    WANT_CODE(t, rondo_memory_checkpoint_create(t->device, pool, &checkpoint), NOT_FOUND);
    WANT_OK(t, rondo_memory_pool_begin(t->device, pool, &filter));
    WANT_CODE(t, rondo_memory_pool_begin(t->device, pool, &filter), INVALID_STATE);
    WANT_CODE(t, rondo_memory_pool_release(t->device, pool), INVALID_STATE);
    WANT_OK(t, rondo_memory_pool_end(t->device, pool));
    WANT_CODE(t, rondo_memory_pool_end(t->device, pool), INVALID_STATE);
    WANT_OK(t, rondo_memory_pool_retain(t->device, pool));
    WANT_OK(t, rondo_memory_pool_release(t->device, pool));
    WANT_OK(t, rondo_memory_pool_release(t->device, pool));
    WANT_CODE(t, rondo_memory_pool_begin(t->device, pool, &filter), NOT_FOUND);
    WANT_CODE(t, rondo_memory_pool_release(t->device, pool), NOT_FOUND);
}

static bool pool_holds(conf *t, rondo_pool_id pool, void *const *expected, uint64_t count) {
    bool equal = false;
    WANT_OK(t, rondo_memory_pool_live(t->device, pool, (const void *const *)expected, count, &equal));
    return equal;
}

typedef struct pool_asker {
    rondo_device *device;
    void *pointer;
    rondo_code code;
} pool_asker;

static void *pool_ask(void *argument) {
    pool_asker *w = argument;
    w->code = conf_code(rondo_memory_allocate(w->device, 1024, &w->pointer));
    return NULL;
}

/* What a diversion takes, and what it leaves. */
static void pool_diversion(conf *t) {
    rondo_stream *stream = conf_stream(t), *beside = conf_stream(t);
    for (rondo_memory_filter_kind kind = RONDO_MEMORY_FILTER_THREAD; kind <= RONDO_MEMORY_FILTER_STREAM; ++kind) {
        rondo_pool_id pool = rondo_pool_handle(t->instance);
        rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
        pool_asker asker = {t->device, NULL, RONDO_CODE_OK};
        void *inside[2] = {NULL, NULL};
        filter.kind = kind;
        filter.stream = stream;
        char *before = pool_block_on(t, stream, 1024);
        WANT_OK(t, rondo_memory_pool_begin(t->device, pool, &filter));
        inside[0] = pool_block_on(t, stream, 1024);
        inside[1] = pool_block_on(t, kind == RONDO_MEMORY_FILTER_THREAD ? beside : stream, 3u << 20);
        if (kind == RONDO_MEMORY_FILTER_STREAM) (void)pool_block_on(t, beside, 1024);
        conf_threads(t, 1, pool_ask, &asker, sizeof asker);
        WANT_OK(t, rondo_memory_pool_end(t->device, pool));
        WANT(t, !asker.code, "an allocation beside a diversion gave '%s'", rondo_code_name(asker.code));
        conf_keep(t, CONF_MEMORY, asker.pointer);
        (void)pool_block_on(t, stream, 1024);
        WANT(t, pool_holds(t, pool, inside, 2), "filter %d: the pool does not hold what was asked for meanwhile",
             (int)kind);
        WANT(t, !pool_holds(t, pool, inside, 1), "filter %d: the pool says to hold less than it does", (int)kind);
        conf_iota(t, stream, inside[0], 128, 5);
        conf_iota(t, stream, before, 128, 6);
        conf_want64(t, stream, inside[0], 128, 5, 1, "a block of a pool");
        conf_want64(t, stream, before, 128, 6, 1, "a block from before");
        conf_drop(t, inside[1]);
        WANT(t, pool_holds(t, pool, inside, 1), "a block that was freed is still the pool's");
        conf_drop(t, inside[0]);
        WANT(t, pool_holds(t, pool, NULL, 0), "an empty pool holds something");
        WANT_OK(t, rondo_memory_pool_release(t->device, pool));
    }
}

/* ------------------------------------------------------------------------------------------------- checkpoints */

static void pool_release_checkpoint(void *checkpoint) { rondo_memory_checkpoint_release(checkpoint); }

enum { POOL_BLOCKS = 64 };

typedef struct pool_bed {
    rondo_stream *stream;
    rondo_pool_id pool;
    void *blocks[POOL_BLOCKS];
} pool_bed;

/* Blocks come and go; `steps` 0 only makes the pool, with the use that stays. */
static void pool_shuffle(conf *t, pool_bed *bed, int steps) {
    rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
    filter.kind = RONDO_MEMORY_FILTER_STREAM;
    filter.stream = bed->stream;
    WANT_OK(t, rondo_memory_pool_begin(t->device, bed->pool, &filter));
    for (int i = 0; i < steps; ++i) {
        void **block = &bed->blocks[conf_between(t, 0, POOL_BLOCKS - 1)];
        if (*block) {
            WANT_OK(t, rondo_memory_free(t->device, *block));
            *block = NULL;
        } else {
            WANT_OK(t,
                    rondo_memory_allocate_on(bed->stream, conf_between(t, 1, 1ull << conf_between(t, 4, 21)), block));
        }
    }
    WANT_OK(t, rondo_memory_pool_end(t->device, bed->pool));
    if (steps) WANT_OK(t, rondo_memory_pool_release(t->device, bed->pool)); /* the use that this begin added */
}

static pool_bed pool_make(conf *t) {
    pool_bed bed = {.stream = conf_stream(t), .pool = rondo_pool_handle(t->instance)};
    pool_shuffle(t, &bed, 0);
    return bed;
}

static bool pool_has(void *const *list, uint64_t count, const void *pointer) {
    for (uint64_t i = 0; i < count; ++i)
        if (list[i] == pointer) return true;
    return false;
}

static uint64_t pool_live_of(const pool_bed *bed, void **out) {
    uint64_t count = 0;
    for (int i = 0; i < POOL_BLOCKS; ++i)
        if (bed->blocks[i]) out[count++] = bed->blocks[i];
    return count;
}

static void pool_restore(conf *t, rondo_memory_checkpoint *checkpoint, const pool_bed *then, pool_bed *now) {
    void *wanted[POOL_BLOCKS], *live[POOL_BLOCKS];
    uint64_t wanted_count = pool_live_of(then, wanted), live_count = pool_live_of(now, live);
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    WANT_OK(t, rondo_memory_checkpoint_restore(checkpoint, &delta));
    uint64_t missing = 0, strange = 0;
    for (uint64_t i = 0; i < live_count; ++i)
        missing += !pool_has(wanted, wanted_count, live[i]) && !pool_has(delta.freed, delta.freed_count, live[i]);
    for (uint64_t i = 0; i < wanted_count; ++i)
        missing += !pool_has(live, live_count, wanted[i]) && !pool_has(delta.created, delta.created_count, wanted[i]);
    for (uint64_t i = 0; i < delta.created_count; ++i) strange += !pool_has(wanted, wanted_count, delta.created[i]);
    for (uint64_t i = 0; i < delta.freed_count; ++i) strange += !pool_has(live, live_count, delta.freed[i]);
    rondo_memory_delta_release(t->device, &delta);
    *now = *then;
    WANT(t, !missing && !strange, "the lists of a restore lack %llu blocks and name %llu too many",
         (unsigned long long)missing, (unsigned long long)strange);
    WANT(t, pool_holds(t, now->pool, wanted, wanted_count), "a restored pool holds other blocks than the checkpoint");
}

static void pool_end(conf *t, pool_bed *bed) {
    for (int i = 0; i < POOL_BLOCKS; ++i)
        if (bed->blocks[i]) WANT_OK(t, rondo_memory_free(t->device, bed->blocks[i]));
    WANT_OK(t, rondo_memory_pool_release(t->device, bed->pool));
}

/* From any state to any other, there and back, again and again. */
static void pool_checkpoints(conf *t) {
    enum { POINTS = 4 };
    pool_bed bed = pool_make(t), points[POINTS];
    rondo_memory_checkpoint *checkpoints[POINTS];
    for (int i = 0; i < POINTS; ++i) {
        pool_shuffle(t, &bed, 200);
        points[i] = bed;
        WANT_OK(t, rondo_memory_checkpoint_create(t->device, bed.pool, &checkpoints[i]));
        conf_keep_other(t, checkpoints[i], pool_release_checkpoint);
    }
    for (int round = 0; round < 40; ++round) {
        uint64_t pick = conf_between(t, 0, POINTS - 1);
        if (round % 3) pool_shuffle(t, &bed, 50);
        pool_restore(t, checkpoints[pick], &points[pick], &bed);
        for (int i = 0; i < POOL_BLOCKS; i += 7)
            if (bed.blocks[i]) WANT_OK(t, rondo_stream_fill(bed.stream, bed.blocks[i], 1, 1));
        conf_sync(t, bed.stream);
    }
    pool_end(t, &bed);
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    WANT_CODE(t, rondo_memory_checkpoint_restore(checkpoints[0], &delta), NOT_FOUND);
}

static void pool_leases(conf *t) {
    pool_bed bed = pool_make(t);
    rondo_lease *leases = conf_host(t, 3 * sizeof *leases);
    rondo_memory_checkpoint *checkpoint = NULL;
    pool_shuffle(t, &bed, 100);
    void *live[POOL_BLOCKS];
    uint64_t count = pool_live_of(&bed, live);
    WANT(t, count >= 3, "the test has only %llu blocks", (unsigned long long)count);
    WANT_OK(t, rondo_memory_checkpoint_create(t->device, bed.pool, &checkpoint));
    conf_keep_other(t, checkpoint, pool_release_checkpoint);
    for (int i = 0; i < 3; ++i) {
        WANT_OK(t, rondo_memory_lease(t->device, live[i], RONDO_LEASE_REPLAY, &leases[i]));
        WANT(t, leases[i].block == (uint64_t)(uintptr_t)live[i] && leases[i].owner == RONDO_LEASE_REPLAY,
             "a lease is not the block's");
    }
    rondo_lease again = {0, 0, 0, 0};
    WANT_CODE(t, rondo_memory_lease(t->device, live[0], RONDO_LEASE_REPLAY, &again), ALREADY_EXISTS);
    WANT_CODE(t, rondo_memory_lease(t->device, (char *)live[0] + 1, RONDO_LEASE_REPLAY, &again), INVALID_ARGUMENT);
    rondo_memory_unlease(t->device, &leases[2]);
    WANT_OK(t, rondo_memory_free(t->device, live[1]));
    WANT(t, leases[1].block == 0, "a lease outlives its block");
    for (int i = 0; i < POOL_BLOCKS; ++i)
        if (bed.blocks[i] == live[1]) bed.blocks[i] = NULL;
    pool_bed then = bed;
    for (int i = 0; i < POOL_BLOCKS; ++i)
        if (!then.blocks[i]) {
            then.blocks[i] = live[1];
            break;
        }
    pool_restore(t, checkpoint, &then, &bed);
    WANT(t, leases[0].block == (uint64_t)(uintptr_t)live[0], "a restore took the lease of a block that stayed");
    WANT(t, leases[1].block == 0, "a restore gave a dead lease its block again");
    rondo_memory_unlease(t->device, &leases[0]);
    pool_end(t, &bed);
}

/* A graph whose memory a restore or a release takes away is stale; so is one whose block came back as another. */
static void pool_stale(conf *t) {
    pool_bed bed = pool_make(t);
    rondo_graph *graph = conf_graph(t);
    rondo_memory_checkpoint *checkpoint = NULL;
    WANT_OK(t, rondo_memory_checkpoint_create(t->device, bed.pool, &checkpoint));
    conf_keep_other(t, checkpoint, pool_release_checkpoint);
    pool_bed then = bed;
    while (!bed.blocks[0]) pool_shuffle(t, &bed, 5);
    conf_begin(t, graph, bed.stream);
    WANT_OK(t, rondo_stream_fill(bed.stream, bed.blocks[0], 1, 1));
    conf_end(t, graph, bed.stream);
    conf_replay(t, graph, bed.stream);
    conf_sync(t, bed.stream);
    pool_restore(t, checkpoint, &then, &bed);
    WANT_CODE(t, rondo_graph_replay(graph, bed.stream), STALE);
    conf_want_usable(t, bed.stream, "a replay of what a restore had taken away");
    pool_end(t, &bed);
}

/* ---------------------------------------------------------------------------------------- figures and settings */

static rondo_memory_statistics pool_statistics(conf *t, rondo_pool_id pool) {
    rondo_memory_statistics statistics = RONDO_MEMORY_STATISTICS_INIT;
    WANT_OK(t, rondo_memory_get_statistics(t->device, pool, &statistics));
    return statistics;
}

static void pool_figures(conf *t) {
    static const rondo_pool_id device = {0, 0};
    pool_bed bed = pool_make(t);
    for (int round = 0; round < 30; ++round) {
        void *live[POOL_BLOCKS];
        pool_shuffle(t, &bed, 30);
        uint64_t count = pool_live_of(&bed, live);
        rondo_memory_statistics one = pool_statistics(t, bed.pool), all = pool_statistics(t, device);
        WANT(t, one.allocations == count, "%llu blocks are counted, %llu are alive",
             (unsigned long long)one.allocations, (unsigned long long)count);
        WANT(t,
             one.requested_bytes <= one.allocated_bytes && one.allocated_bytes <= one.reserved_bytes &&
                 one.allocated_bytes <= one.allocated_peak && one.reserved_bytes <= one.reserved_peak,
             "asked for, allocated, reserved: %llu, %llu, %llu", (unsigned long long)one.requested_bytes,
             (unsigned long long)one.allocated_bytes, (unsigned long long)one.reserved_bytes);
        WANT(t, one.allocated_bytes + one.inactive_bytes + one.pending_bytes <= one.reserved_bytes,
             "parts are more than the whole");
        WANT(t, all.allocated_bytes >= one.allocated_bytes && all.reserved_bytes >= one.reserved_bytes,
             "a pool has more than the device");
    }
    pool_end(t, &bed);
    conf_reopen(t, t->settings);
    void *big = conf_memory(t, 30u << 20);
    conf_drop(t, big);
    WANT_OK(t, rondo_memory_trim(t->device));
    rondo_memory_statistics left = pool_statistics(t, device);
    WANT(t, left.reserved_bytes == 0 && left.segments == 0 && left.allocated_bytes == 0,
         "after a trim of an empty device %llu bytes in %llu segments are kept",
         (unsigned long long)left.reserved_bytes, (unsigned long long)left.segments);
    rondo_pool_id unknown = rondo_pool_handle(t->instance);
    WANT_CODE(t, rondo_memory_get_statistics(t->device, unknown, &left), NOT_FOUND);
}

typedef struct pool_text {
    char bytes[65536];
    size_t size;
    bool fails;
} pool_text;

static int32_t pool_write(void *user, const char *data, size_t size) {
    pool_text *text = user;
    if (text->fails) return 1;
    size_t room = sizeof text->bytes - 1 - text->size, take = size < room ? size : room;
    memcpy(text->bytes + text->size, data, take);
    text->size += take;
    return 0;
}

static void pool_snapshot(conf *t) {
    static const rondo_pool_id device = {0, 0};
    static const char *const words[] = {"\"segments\"", "\"blocks\"", "\"total_size\"", "\"allocated_size\"",
                                        "active_allocated"};
    pool_text *text = conf_host(t, sizeof *text);
    rondo_stream *stream = conf_stream(t);
    for (int i = 0; i < 5; ++i) (void)pool_block_on(t, stream, 1000u << i);
    WANT_OK(t, rondo_memory_snapshot(t->device, device, pool_write, text));
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        WANT(t, strstr(text->bytes, words[i]), "a snapshot lacks %s", words[i]);
    text->fails = true;
    WANT_CODE(t, rondo_memory_snapshot(t->device, device, pool_write, text), IO);
}

static void pool_settings(conf *t) {
    rondo_memory_settings settings = RONDO_MEMORY_SETTINGS_INIT;
    settings.expandable_segments = 1;
    WANT_CODE(t, rondo_memory_configure(t->device, &settings), UNSUPPORTED);
    settings.expandable_segments = 0;
    settings.roundup_divisions = 3;
    WANT_CODE(t, rondo_memory_configure(t->device, &settings), INVALID_ARGUMENT);
    settings.roundup_divisions = 8;
    settings.max_split_bytes = 1;
    WANT_CODE(t, rondo_memory_configure(t->device, &settings), INVALID_ARGUMENT);
    settings.max_split_bytes = 32u << 20;
    WANT_OK(t, rondo_memory_configure(t->device, &settings));
    WANT_CODE(t, rondo_memory_set_fraction(t->device, 0.0), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_memory_set_fraction(t->device, 1.5), INVALID_ARGUMENT);
    conf_want_usable(t, conf_stream(t), "settings of the allocator");
}

/* The text of an out-of-memory says where the memory is, and how to have it again. */
static void pool_out_of_memory(conf *t) {
    void *pointer = NULL, *held = conf_memory(t, 4u << 20);
    WANT_OK(t, rondo_memory_set_fraction(t->device, 64.0 * 1024 * 1024 / (double)t->properties->memory_total));
    WANT_TEXT(t, rondo_memory_allocate(t->device, 200u << 20, &pointer), OUT_OF_MEMORY, "reserved");
    WANT_TEXT(t, rondo_memory_allocate(t->device, 200u << 20, &pointer), OUT_OF_MEMORY, "graph pools");
    conf_drop(t, held);
    WANT_OK(t, rondo_memory_set_fraction(t->device, 1.0));
    (void)conf_memory(t, 200u << 20);
}

#define POOL(name, what, function) \
    { {"pool." name, "pool memory", what}, 0, function }
static const conf_test tests[] = {
    POOL("same_stream", "A freed block is used again by its own stream, in order and without waiting.",
         pool_same_stream),
    POOL("other_stream", "A block that one stream freed is not another's while it is in use.", pool_other_stream),
    POOL("record_stream", "A block that another stream uses, too, waits for that stream.", pool_record_stream),
    POOL("refuses", "Impossible pools, blocks and orders of calls are refused.", pool_refuses),
    POOL("diversion", "A diversion takes what its filter says and nothing else; the pool knows its live blocks.",
         pool_diversion),
    {{"pool.checkpoints", "pool memory checkpoint",
      "A pool goes from any state to any checkpoint, and says what it freed and made."},
     0,
     pool_checkpoints},
    {{"pool.leases", "pool memory lease checkpoint",
      "A lease ends with its block, and a restore keeps those of blocks that stay."},
     0,
     pool_leases},
    {{"pool.stale", "pool memory stale graph checkpoint", "A graph is stale when a restore took its memory away."},
     CONF_NEEDS_GRAPH,
     pool_stale},
    POOL("figures", "Figures add up, and a trim gives back what nobody uses.", pool_figures),
    POOL("snapshot", "A snapshot names segments and blocks.", pool_snapshot),
    POOL("settings", "Settings that cannot be are refused.", pool_settings),
    {{"pool.out_of_memory", "pool memory", "OUT_OF_MEMORY says where the memory is; a limit can be lifted."},
     CONF_NEEDS_OWN_MEMORY,
     pool_out_of_memory},
};
CONF_SUITE(conf_suite_pool, tests);
