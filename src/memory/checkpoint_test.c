/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints: what comes back, what is told, what is refused, and what it costs. Random layouts are in model_test.c. */
#include "memory/memory_testing.h"

#include "memory/checkpoint.h"

typedef struct pooled {
    world w;
    rondo_stream *stream;
    rondo_pool_id pool;
    rondo_memory_checkpoint *checkpoint;
    rondo_memory_delta delta;
} pooled;

static void pooled_close(pooled *p) {
    rondo_memory_checkpoint_release(p->checkpoint);
    rondo_memory_delta_release(p->w.device, &p->delta);
}

static void pooled_open(rondo_test *t, pooled *p, const char *device) {
    *p = (pooled){.delta = RONDO_MEMORY_DELTA_INIT};
    world_open(t, &p->w, device, NULL);
    T_DEFER(t, pooled_close, p);
    p->stream = world_stream(t, &p->w);
    p->pool = begin_thread(t, &p->w);
}

static void keep(rondo_test *t, pooled *p) {
    rondo_memory_checkpoint_release(p->checkpoint);
    p->checkpoint = NULL;
    T_OK(t, rondo_memory_checkpoint_create(p->w.device, p->pool, &p->checkpoint));
}

static void restore(rondo_test *t, pooled *p) {
    rondo_memory_delta_release(p->w.device, &p->delta);
    T_OK(t, rondo_memory_checkpoint_restore(p->checkpoint, &p->delta));
    T_OK(t, rondo__memory_check(p->w.memory));
}

static void test_a_layout_comes_back(rondo_test *t) {
    pooled p;
    pooled_open(t, &p, "cpu");
    char *a = take(t, p.stream, 1000), *b = take(t, p.stream, 3000), *c = take(t, p.stream, 512);
    give(t, &p.w, b);
    keep(t, &p);
    restore(t, &p);
    T_TRUE(t, p.delta.freed_count == 0 && p.delta.created_count == 0);
    char *d = take(t, p.stream, 600), *e = take(t, p.stream, 4 * MIB);
    give(t, &p.w, a);
    restore(t, &p);
    T_EQ(t, p.delta.created_count, 1);
    T_TRUE(t, p.delta.created[0] == a);
    T_EQ(t, p.delta.freed_count, 2);
    T_TRUE(t, (p.delta.freed[0] == d) != (p.delta.freed[1] == d));
    T_TRUE(t, (p.delta.freed[0] == e) != (p.delta.freed[1] == e));
    const void *live[] = {a, c};
    bool equal = false;
    T_OK(t, rondo_memory_pool_live(p.w.device, p.pool, live, 2, &equal));
    T_TRUE(t, equal);
    /* What was freed may not be freed again; what came back must be. */
    T_FAILS(t, rondo_memory_free(p.w.device, d), INVALID_ARGUMENT, NULL);
    give(t, &p.w, a);
    give(t, &p.w, c);
    restore(t, &p);
    T_EQ(t, p.delta.created_count, 2);
}

/* C15 in little: a tree of layouts, restored to the fork, with another child recorded. */
static void test_two_children_of_one_layout(rondo_test *t) {
    pooled p;
    rondo_memory_checkpoint *child = NULL;
    pooled_open(t, &p, "sim");
    char *root = take(t, p.stream, 5000);
    keep(t, &p);
    char *left = take(t, p.stream, 9000), *leaf = take(t, p.stream, 700);
    T_OK(t, rondo_memory_checkpoint_create(p.w.device, p.pool, &child));
    T_DEFER(t, rondo_memory_checkpoint_release, child);
    restore(t, &p);
    char *right = take(t, p.stream, 300);
    T_TRUE(t, right == left); /* the fork's memory is used again */
    give(t, &p.w, right);
    rondo_memory_delta_release(p.w.device, &p.delta);
    T_OK(t, rondo_memory_checkpoint_restore(child, &p.delta));
    T_EQ(t, p.delta.created_count, 2);
    give(t, &p.w, leaf);
    give(t, &p.w, left);
    give(t, &p.w, root);
}

/* A restore needs blocks to write its chains with; others have taken them meanwhile. */
static void test_a_layout_of_many_blocks(rondo_test *t) {
    pooled p;
    static char *blocks[300], *others[300];
    pooled_open(t, &p, "cpu");
    for (int i = 0; i < 300; i++) blocks[i] = take(t, p.stream, 512);
    keep(t, &p);
    for (int i = 0; i < 300; i++) give(t, &p.w, blocks[i]);
    T_OK(t, rondo_memory_pool_end(p.w.device, p.pool));
    for (int i = 0; i < 300; i++) others[i] = take(t, p.stream, 512);
    restore(t, &p);
    T_EQ(t, p.delta.created_count, 300);
    for (int i = 0; i < 300; i++) {
        T_TRUE(t, p.delta.created[i] == blocks[i]);
        give(t, &p.w, blocks[i]);
        give(t, &p.w, others[i]);
    }
    T_OK(t, rondo__memory_check(p.w.memory));
}

/* So many free blocks that the tree is written anew; blocks of several streams, and one segment more than then. */
static void test_a_tree_is_written_anew(rondo_test *t) {
    pooled p;
    char *blocks[90];
    pooled_open(t, &p, "cpu");
    rondo_stream *streams[] = {p.stream, world_stream(t, &p.w), rondo_stream_default(p.w.device)};
    for (uint64_t i = 0; i < 90; i++) blocks[i] = take(t, streams[i % 3], 512 * (1 + i * 7 % 5));
    for (int i = 0; i < 90; i++) {
        if (i / 3 % 2) give(t, &p.w, blocks[i]);
    }
    keep(t, &p);
    for (int i = 0; i < 90; i++) {
        if (i / 3 % 2 == 0) give(t, &p.w, blocks[i]);
    }
    char *newer = take(t, p.stream, MIB), *large = take(t, p.stream, 2 * MIB), *more = take(t, p.stream, MIB);
    restore(t, &p);
    T_EQ(t, p.delta.created_count, 45);
    T_EQ(t, p.delta.freed_count, 3);
    T_TRUE(t, newer && large && more);
    char *a = take(t, streams[1], 512 * (1 + 4 * 7 % 5)); /* as large as the second stream's first free one */
    if (!rondo_test_failing(t)) T_TRUE(t, a == blocks[4]);
    T_OK(t, rondo__memory_check(p.w.memory));
}

static void test_leases_across_a_restore(rondo_test *t) {
    static rondo_lease la, lb, lc;
    pooled p;
    pooled_open(t, &p, "cpu");
    la = lb = lc = (rondo_lease){0};
    char *a = take(t, p.stream, 1000);
    keep(t, &p);
    char *b = take(t, p.stream, 1000);
    T_OK(t, rondo_memory_lease(p.w.device, a, RONDO_LEASE_REPLAY, &la));
    T_OK(t, rondo_memory_lease(p.w.device, b, RONDO_LEASE_ALLOCATOR, &lb));
    T_FAILS(t, rondo_memory_lease(p.w.device, a, RONDO_LEASE_REPLAY, &lc), ALREADY_EXISTS, "has a lease");
    T_FAILS(t, rondo_memory_lease(p.w.device, a + 1, RONDO_LEASE_REPLAY, &lc), INVALID_ARGUMENT, "not the start");
    T_FAILS(t, rondo_memory_lease(p.w.device, a, 9, &lc), INVALID_ARGUMENT, "owner");
    T_TRUE(t, la.block == address_of(a) && la.owner == RONDO_LEASE_REPLAY && la.generation);
    restore(t, &p);
    T_TRUE(t, la.block == address_of(a) && la.owner == RONDO_LEASE_REPLAY); /* it is in both */
    T_TRUE(t, lb.block == 0 && lb.owner == RONDO_LEASE_OVER);
    rondo_memory_unlease(p.w.device, &la);
    T_TRUE(t, la.block == 0 && la.owner == RONDO_LEASE_OVER);
    rondo_memory_unlease(p.w.device, &la);
    uint64_t generation = la.generation;
    T_OK(t, rondo_memory_lease(p.w.device, a, RONDO_LEASE_ALLOCATOR, &la));
    T_EQ(t, la.generation, generation);
    give(t, &p.w, a);
    T_EQ(t, la.block, 0);
    restore(t, &p);
    T_OK(t, rondo_memory_lease(p.w.device, a, RONDO_LEASE_REPLAY, &la)); /* what comes back is another */
    T_TRUE(t, la.generation > generation);
    rondo_memory_unlease(p.w.device, NULL);
    rondo_memory_unlease(p.w.device, &la);
}

static void unwatch(rondo_test *t, world *w, rondo__memory_watcher *watchers, int count) {
    (void)t;
    for (int i = 0; i < count; i++) rondo__memory_unwatch(w->memory, &watchers[i]);
}

static void test_who_is_stale_after_a_restore(rondo_test *t) {
    static rondo__memory_watcher watchers[5]; /* kept, gone, managed, temporary, foreign */
    pooled p;
    rondo__memory_reference r, gone;
    char why[256];
    pooled_open(t, &p, "cpu");
    for (uint64_t i = 0; i < 5; i++) {
        rondo__memory_watcher_init(&watchers[i], i + 1);
        if (i < 4) watchers[i].pool = p.pool;
    }
    watchers[2].managed = true;
    char *a = take(t, p.stream, 1000);
    keep(t, &p);
    char *b = take(t, p.stream, 1000), *c = take(t, p.stream, 1000);
    rondo_status status = rondo__memory_resolve(p.w.memory, address_of(a), 0, &watchers[0], &r);
    for (int i = 1; i < 3 && !status; i++)
        status = rondo__memory_resolve(p.w.memory, address_of(b), 0, &watchers[i], &gone);
    if (!status) status = rondo__memory_resolve(p.w.memory, address_of(c), 0, &watchers[3], &r);
    if (!status) status = rondo__memory_resolve(p.w.memory, address_of(b), 0, &watchers[4], &r);
    give(t, &p.w, c);
    if (!status) status = rondo_memory_checkpoint_restore(p.checkpoint, &p.delta);
    if (!status) {
        static const uint32_t want[] = {RONDO__STALE_NOT, RONDO__STALE_RESTORED, RONDO__STALE_NOT, RONDO__STALE_NOT,
                                        RONDO__STALE_FREED};
        for (int i = 0; i < 5; i++) T_EQ(t, atomic_load(&watchers[i].stale), want[i]);
        rondo__memory_explain(p.w.memory, &gone, why, sizeof why);
        T_STR(t, why,
              "taken away by rondo_memory_checkpoint_restore, 2nd free of the device; now part of no allocation");
    }
    unwatch(t, &p.w, watchers, 5);
    T_OK(t, status);
}

/* A block that a graph holds goes with a restore, too, if it is live; if it was freed, there is no restore. */
static void test_held_blocks(rondo_test *t) {
    static rondo__memory_watcher graph;
    pooled p;
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    pooled_open(t, &p, "cpu");
    rondo__memory_watcher_init(&graph, 1);
    char *a = take(t, p.stream, 512);
    keep(t, &p);
    char *b = take(t, p.stream, 512);
    rondo_status held = rondo__memory_hold(p.w.memory, &graph, address_of(a), 0), refused = RONDO_OK;
    if (!held) held = rondo__memory_hold(p.w.memory, &graph, address_of(b), 0);
    if (!held) held = rondo_memory_checkpoint_restore(p.checkpoint, &p.delta);
    uint64_t freed = p.delta.freed_count;
    uint32_t stale = atomic_load(&graph.stale);
    give(t, &p.w, a);
    if (!held) refused = rondo_memory_checkpoint_restore(p.checkpoint, &delta);
    rondo__memory_unwatch(p.w.memory, &graph);
    T_OK(t, rondo__memory_check(p.w.memory));
    T_OK(t, held);
    T_EQ(t, freed, 1);
    T_EQ(t, stale, RONDO__STALE_FREED); /* it is not the graph's own pool */
    T_FAILS(t, refused, INVALID_STATE, "or by a graph");
    restore(t, &p);
    b = take(t, p.stream, 512);
    T_OK(t, rondo__memory_check(p.w.memory));
    give(t, &p.w, b);
    T_EQ(t, figures(t, &p.w).pending_bytes, 0);
}

static void test_what_is_refused(rondo_test *t) {
    pooled p;
    recorded r;
    rondo_memory_checkpoint *other = NULL;
    pooled_open(t, &p, "sim");
    rondo_stream *captured = world_stream(t, &p.w);
    T_FAILS(t, rondo_memory_checkpoint_create(p.w.device, (rondo_pool_id){0, 0}, &other), INVALID_ARGUMENT, "private");
    T_FAILS(t, rondo_memory_checkpoint_create(p.w.device, (rondo_pool_id){0, 999}, &other), NOT_FOUND, "{0, 999}");
    T_FAILS(t, rondo_memory_checkpoint_create(NULL, p.pool, &other), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_memory_checkpoint_restore(NULL, &p.delta), INVALID_ARGUMENT, NULL);
    char *a = take(t, p.stream, 512);
    keep(t, &p);
    T_OK(t, rondo_memory_record_stream(p.w.device, a, captured));
    record_begin(t, &r, captured, 4);
    give(t, &p.w, a);
    rondo_status create = rondo_memory_checkpoint_create(p.w.device, p.pool, &other);
    rondo_status back = rondo_memory_checkpoint_restore(p.checkpoint, &p.delta);
    record_end(&r);
    T_FAILS(t, create, INVALID_STATE, "still used by a stream that captures");
    T_FAILS(t, back, INVALID_STATE, NULL);
    restore(t, &p); /* now it is over */
    T_EQ(t, p.delta.created_count, 1);
    /* A use by another stream does not stop a restore: it waits. */
    char *b = take(t, p.stream, 512);
    T_OK(t, rondo_memory_record_stream(p.w.device, b, captured));
    restore(t, &p);
    T_EQ(t, p.delta.freed_count, 1);
    give(t, &p.w, a);
    T_OK(t, rondo_memory_pool_end(p.w.device, p.pool));
    T_OK(t, rondo_memory_pool_release(p.w.device, p.pool));
    T_FAILS(t, rondo_memory_checkpoint_restore(p.checkpoint, &p.delta), NOT_FOUND, "released");
}

/* No way of the public interface takes a segment from a pool in use; were it gone, nothing is touched. */
static void test_a_segment_that_is_gone(rondo_test *t) {
    pooled p;
    pooled_open(t, &p, "cpu");
    char *a = take(t, p.stream, 512);
    keep(t, &p);
    give(t, &p.w, a);
    p.checkpoint->segments[0].size -= 512;
    T_FAILS(t, rondo_memory_checkpoint_restore(p.checkpoint, &p.delta), CORRUPT, "is gone");
    T_OK(t, rondo__memory_check(p.w.memory));
}

/* A pool of `count` blocks, every other one alive at the checkpoint, everything freed before the restore. */
static uint64_t cost_of(rondo_test *t, pooled *p, char **blocks, uint64_t count, uint64_t *out_create) {
    uint64_t least = UINT64_MAX;
    *out_create = UINT64_MAX;
    for (uint64_t i = 0; i < count; i++) blocks[i] = take(t, p->stream, 512 * (1 + i * 7 % 5));
    for (uint64_t i = 0; i < count; i += 2) give(t, &p->w, blocks[i]);
    for (int round = 0; round < 5; round++) {
        uint64_t start = rondo__now_ns();
        keep(t, p);
        uint64_t middle = rondo__now_ns();
        for (uint64_t i = 1; i < count; i += 2) give(t, &p->w, blocks[i]);
        uint64_t again = rondo__now_ns();
        rondo_memory_delta_release(p->w.device, &p->delta);
        T_OK(t, rondo_memory_checkpoint_restore(p->checkpoint, &p->delta));
        uint64_t end = rondo__now_ns();
        T_EQ(t, p->delta.created_count, count / 2);
        if (middle - start < *out_create) *out_create = middle - start;
        if (end - again < least) least = end - again;
    }
    for (uint64_t i = 1; i < count; i += 2) give(t, &p->w, blocks[i]);
    return least;
}

/* Times are printed, and only held to what no machine and no sanitizer would miss; the bench has the bar. */
static void test_ten_thousand_blocks(rondo_test *t) {
    static char *blocks[100000];
    for (uint64_t count = 10000; count <= 100000; count *= 10) {
        static pooled p[2];
        pooled *each = &p[count == 10000];
        pooled_open(t, each, "cpu");
        uint64_t create = 0, back = cost_of(t, each, blocks, count, &create);
        T_OK(t, rondo__memory_check(each->w.memory));
        T_TRUE(t, create < count * 10000 && back < count * 20000);
    }
}

RONDO_TEST_MAIN(T(test_a_layout_comes_back), T(test_two_children_of_one_layout), T_PLAIN(test_a_layout_of_many_blocks),
                T(test_a_tree_is_written_anew), T(test_leases_across_a_restore), T(test_who_is_stale_after_a_restore),
                T(test_held_blocks), T(test_what_is_refused), T(test_a_segment_that_is_gone),
                T_PLAIN(test_ten_thousand_blocks))
