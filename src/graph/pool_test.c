/* SPDX-License-Identifier: Apache-2.0
 *
 * What a capture allocates: whose pool it goes to, how long it stays, and what becomes of it when pools go. */
#include <stdlib.h>

#include "graph/graph_testing.h"

typedef struct pool_fixture {
    graph_fixture f;
    rondo_graph *graph, *second;
    rondo_event *event, *back;
    void *blocks[4];
} pool_fixture;

static void pool_close(pool_fixture *p) {
    rondo_graph_release(p->graph);
    rondo_graph_release(p->second);
    rondo_event_release(p->event);
    rondo_event_release(p->back);
    for (unsigned i = 0; i < 4; i++)
        if (p->blocks[i]) rondo_status_release(rondo_memory_free(p->f.device, p->blocks[i]));
}

static void pool_open(rondo_test *t, pool_fixture *p, const char *device) {
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    gt_open(t, &p->f, device);
    p->graph = p->second = NULL;
    p->event = p->back = NULL;
    memset(p->blocks, 0, sizeof p->blocks);
    T_DEFER(t, pool_close, p);
    options.name = "g";
    T_OK(t, rondo_graph_create(p->f.device, &options, &p->graph));
    T_OK(t, rondo_graph_create(p->f.device, NULL, &p->second));
    T_OK(t, rondo_event_create(p->f.device, &p->event));
    T_OK(t, rondo_event_create(p->f.device, &p->back));
}

static bool in_pool(pool_fixture *p, const void *block, rondo_pool_id pool) {
    rondo_pool_id its = rondo__memory_pool_of(p->f.device->memory, gt_word(block));
    return its.automatic == pool.automatic && its.user == pool.user;
}

static rondo_status take(pool_fixture *p, rondo_stream *stream, unsigned block) {
    return rondo_memory_allocate_on(stream, GT_BYTES, &p->blocks[block]);
}

static rondo_status give(pool_fixture *p, unsigned block) {
    void *memory = p->blocks[block];
    p->blocks[block] = NULL;
    return rondo_memory_free(p->f.device, memory);
}

/* C01. What the forked stream allocates is of the graph's pool too; what others do is not. */
static void test_c01_forked_stream_allocates_in_the_pool(rondo_test *t, const char *device) {
    pool_fixture p;
    rondo_pool_id pool;
    const rondo_pool_id own = {0, 0};
    pool_open(t, &p, device);
    rondo_stream *outside = rondo_stream_default(p.f.device);
    T_OK(t, gt_begin(&p.f, p.graph));
    T_OK(t, take(&p, p.f.stream, 0));
    T_OK(t, gt_add(&p.f, p.f.buffers[0], p.f.buffers[1], p.blocks[0]));
    T_OK(t, rondo_event_record(p.event, p.f.stream));
    T_OK(t, rondo_event_wait(p.event, p.f.other));
    T_OK(t, take(&p, p.f.other, 1));
    T_OK(t, gt_add_named(&p.f, p.f.other, "w", p.blocks[0], p.f.buffers[1], p.blocks[1]));
    T_OK(t, rondo_event_record(p.back, p.f.other));
    T_OK(t, rondo_event_wait(p.back, p.f.stream));
    T_OK(t, take(&p, outside, 2));
    T_OK(t, rondo_graph_capture_end(p.graph, p.f.stream));
    T_OK(t, take(&p, p.f.stream, 3)); /* after the end */
    T_OK(t, rondo_graph_pool(p.graph, &pool));
    T_TRUE(t, in_pool(&p, p.blocks[0], pool));
    T_TRUE(t, in_pool(&p, p.blocks[1], pool));
    T_TRUE(t, in_pool(&p, p.blocks[2], own));
    T_TRUE(t, in_pool(&p, p.blocks[3], own));
    T_OK(t, gt_replay(&p.f, p.graph));
    T_NEAR(t, ((float *)p.blocks[1])[1], 1.0 + 2 * 101.0, 0.0);
}
GT_BOTH(test_c01_forked_stream_allocates_in_the_pool)

/* A27. A temporary that was freed inside the capture stays the graph's: what is allocated afterwards lies elsewhere. */
static void test_a27_temporaries_stay_the_graphs(rondo_test *t, const char *device) {
    pool_fixture p;
    rondo_pool_id pool;
    pool_open(t, &p, device);
    T_OK(t, gt_begin(&p.f, p.graph));
    T_OK(t, take(&p, p.f.stream, 0));
    const void *temporary = p.blocks[0];
    T_OK(t, gt_add(&p.f, p.f.buffers[0], p.f.buffers[1], p.blocks[0]));
    T_OK(t, gt_add(&p.f, p.blocks[0], p.f.buffers[1], p.f.buffers[2]));
    T_OK(t, give(&p, 0));
    T_OK(t, rondo_graph_capture_end(p.graph, p.f.stream));
    T_OK(t, take(&p, p.f.stream, 1));
    T_TRUE(t, p.blocks[1] != temporary);
    T_OK(t, rondo_stream_fill(p.f.stream, p.blocks[1], 0x5a, GT_BYTES));
    for (int i = 0; i < 5; i++) T_OK(t, gt_replay(&p.f, p.graph)); /* nor does the free make it stale */
    for (unsigned i = 0; i < GT_BYTES; i++) T_EQ(t, ((unsigned char *)p.blocks[1])[i], 0x5a);
    T_NEAR(t, p.f.buffers[2][1], 1.0 + 2 * 101.0, 0.0);
    /* It goes back with the graph. */
    T_OK(t, rondo_graph_pool(p.graph, &pool));
    rondo_graph_reset(p.graph);
    rondo_memory_statistics statistics = RONDO_MEMORY_STATISTICS_INIT;
    T_FAILS(t, rondo_memory_get_statistics(p.f.device, pool, &statistics), NOT_FOUND, NULL);
}
GT_BOTH(test_a27_temporaries_stay_the_graphs)

/* A39. Pinned memory that a captured copy reads is freed in the capture, and asked for again: in every mode. */
static void a39_in_mode(rondo_test *t, pool_fixture *p, rondo_capture_mode mode) {
    void *host = NULL, *again = NULL, *later = NULL;
    T_OK(t, rondo_memory_host_allocate(p->f.device, GT_BYTES, &host));
    for (unsigned i = 0; i < GT_FLOATS; i++) ((float *)host)[i] = 7.0f;
    rondo_status status = rondo_graph_capture_begin(p->graph, p->f.stream, (rondo_pool_id){0, 0}, mode);
    if (!status) status = rondo_stream_copy(p->f.stream, p->f.buffers[3], host, GT_BYTES, RONDO_COPY_HOST_TO_DEVICE);
    rondo_status freed = rondo_memory_host_free(p->f.device, host);
    if (!status) status = rondo_memory_host_allocate(p->f.device, GT_BYTES, &again);
    if (!status) status = rondo_graph_capture_end(p->graph, p->f.stream);
    if (!status) status = rondo_memory_host_allocate(p->f.device, GT_BYTES, &later);
    bool elsewhere = again != host && later != host;
    if (again) memset(again, 1, GT_BYTES);
    if (later) memset(later, 2, GT_BYTES);
    if (!status) status = gt_replay(&p->f, p->graph);
    if (later) rondo_status_release(rondo_memory_host_free(p->f.device, later));
    if (again) rondo_status_release(rondo_memory_host_free(p->f.device, again));
    T_OK(t, freed);
    T_OK(t, status);
    T_TRUE(t, elsewhere);
    T_NEAR(t, p->f.buffers[3][5], 7.0, 0.0);
    rondo_graph_reset(p->graph);
}

static void test_a39_pinned_memory_of_a_copy(rondo_test *t, const char *device) {
    pool_fixture p;
    pool_open(t, &p, device);
    for (rondo_capture_mode mode = 0; mode < RONDO_CAPTURE_MODE_COUNT; mode++) a39_in_mode(t, &p, mode);
}
GT_BOTH(test_a39_pinned_memory_of_a_copy)

/* One pool for two graphs: the second takes what the first gave up; the pool goes with the last. */
static void test_pools_are_shared(rondo_test *t, const char *device) {
    pool_fixture p;
    rondo_pool_id pool;
    rondo_memory_statistics statistics = RONDO_MEMORY_STATISTICS_INIT;
    pool_open(t, &p, device);
    rondo_pool_id handle = rondo_pool_handle(p.f.instance);
    T_OK(t, rondo_graph_capture_begin(p.graph, p.f.stream, handle, 0));
    T_FAILS(t, rondo_graph_capture_begin(p.second, p.f.other, handle, 0), INVALID_STATE, "records already");
    T_EQ(t, rondo_graph_get_state(p.second), RONDO_GRAPH_EMPTY);
    T_OK(t, take(&p, p.f.stream, 0));
    const void *temporary = p.blocks[0];
    T_OK(t, gt_add(&p.f, p.f.buffers[0], p.f.buffers[1], p.blocks[0]));
    T_OK(t, give(&p, 0));
    T_OK(t, rondo_graph_capture_end(p.graph, p.f.stream));
    T_OK(t, rondo_graph_pool(p.graph, &pool));
    T_TRUE(t, pool.user == handle.user && !pool.automatic);
    T_OK(t, rondo_graph_capture_begin(p.second, p.f.stream, pool, 0));
    T_OK(t, take(&p, p.f.stream, 1));
    if (!rondo_test_failing(t)) T_TRUE(t, p.blocks[1] == temporary);
    T_OK(t, gt_add(&p.f, p.f.buffers[0], p.f.buffers[0], p.blocks[1]));
    T_OK(t, rondo_graph_capture_end(p.second, p.f.stream));
    rondo_graph_reset(p.graph);
    T_OK(t, rondo_memory_get_statistics(p.f.device, pool, &statistics));
    T_EQ(t, statistics.allocations, 1);
    T_OK(t, gt_replay(&p.f, p.second));
    T_NEAR(t, ((float *)p.blocks[1])[2], 4.0, 0.0);
    T_OK(t, give(&p, 1));
    rondo_graph_reset(p.second);
    T_FAILS(t, rondo_memory_get_statistics(p.f.device, pool, &statistics), NOT_FOUND, NULL);
    T_FAILS(t, rondo_graph_capture_begin(p.graph, p.f.stream, pool, 0), NOT_FOUND, "never used again");
    T_EQ(t, rondo_graph_get_state(p.graph), RONDO_GRAPH_EMPTY);
}
GT_BOTH(test_pools_are_shared)

/* A pool that goes, or is brought back to a layout without a block of the graph's, makes the graph stale. */
static void test_pools_that_go(rondo_test *t, const char *device) {
    pool_fixture p;
    rondo_pool_id pool;
    rondo_memory_checkpoint *checkpoint = NULL;
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    pool_open(t, &p, device);
    rondo_pool_id handle = rondo_pool_handle(p.f.instance);
    T_OK(t, rondo_graph_capture_begin(p.second, p.f.stream, handle, 0));
    T_OK(t, take(&p, p.f.stream, 0));
    T_OK(t, gt_add(&p.f, p.f.buffers[0], p.f.buffers[1], p.blocks[0]));
    T_OK(t, rondo_graph_capture_end(p.second, p.f.stream));
    T_OK(t, rondo_memory_checkpoint_create(p.f.device, handle, &checkpoint));
    T_DEFER(t, rondo_memory_checkpoint_release, checkpoint);
    T_OK(t, rondo_graph_capture_begin(p.graph, p.f.stream, handle, 0));
    T_OK(t, take(&p, p.f.stream, 1));
    T_OK(t, gt_add(&p.f, p.f.buffers[0], p.f.buffers[1], p.blocks[1]));
    T_OK(t, rondo_graph_capture_end(p.graph, p.f.stream));
    T_OK(t, gt_replay(&p.f, p.graph));
    T_OK(t, rondo_memory_checkpoint_restore(checkpoint, &delta));
    p.blocks[1] = NULL;
    rondo_memory_delta_release(p.f.device, &delta);
    T_FAILS(t, rondo_graph_replay(p.graph, p.f.stream), STALE, "brought back to a layout");
    T_FAILS(t, rondo_graph_replay(p.graph, p.f.stream), STALE, "brought back to a layout");
    T_OK(t, gt_replay(&p.f, p.second));
    rondo_graph_reset(p.graph);
    T_OK(t, give(&p, 0));
    T_OK(t, rondo_graph_pool(p.second, &pool));
    T_OK(t, rondo_memory_pool_release(p.f.device, pool)); /* the graph's own use, taken away */
    T_FAILS(t, rondo_graph_replay(p.second, p.f.stream), STALE, "was released");
}
GT_BOTH(test_pools_that_go)

/* A tree's graph works on in layouts that its own blocks are not in, as long as its pool has the memory. */
static void test_a_managed_graph_survives_restores(rondo_test *t, const char *device) {
    pool_fixture p;
    rondo_memory_checkpoint *checkpoint = NULL;
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    pool_open(t, &p, device);
    rondo__graph_manage(p.graph);
    rondo__graph_manage(p.second); /* keeps the pool */
    rondo_pool_id pool = rondo_pool_handle(p.f.instance);
    T_OK(t, rondo_graph_capture_begin(p.second, p.f.stream, pool, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    T_OK(t, rondo_graph_capture_end(p.second, p.f.stream));
    T_EQ(t, p.f.warnings, 0); /* that it captured nothing */
    T_OK(t, rondo_memory_checkpoint_create(p.f.device, pool, &checkpoint));
    T_DEFER(t, rondo_memory_checkpoint_release, checkpoint);
    T_OK(t, rondo_graph_capture_begin(p.graph, p.f.stream, pool, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    T_OK(t, take(&p, p.f.stream, 0));
    T_OK(t, gt_add(&p.f, p.f.buffers[0], p.f.buffers[1], p.blocks[0]));
    T_OK(t, gt_add(&p.f, p.blocks[0], p.f.buffers[1], p.f.buffers[2]));
    T_OK(t, rondo_graph_capture_end(p.graph, p.f.stream));
    T_OK(t, rondo_memory_checkpoint_restore(checkpoint, &delta));
    T_EQ(t, delta.freed_count, 1);
    p.blocks[0] = NULL;
    rondo_memory_delta_release(p.f.device, &delta);
    T_OK(t, gt_free(&p.f, 7)); /* somebody's */
    T_OK(t, gt_replay(&p.f, p.graph));
    for (unsigned i = 0; i < GT_FLOATS; i++) T_EQ(t, p.f.buffers[2][i], 200 + 3 * i);
    T_OK(t, gt_free(&p.f, 1)); /* one of its arguments */
    T_FAILS(t, gt_replay(&p.f, p.graph), STALE, "argument 1");
    rondo_graph_reset(p.graph);
    T_OK(t, rondo_graph_capture_begin(p.graph, p.f.stream, pool, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    T_OK(t, take(&p, p.f.stream, 0));
    T_OK(t, gt_add(&p.f, p.f.buffers[0], p.f.buffers[3], p.blocks[0]));
    T_OK(t, give(&p, 0));
    T_OK(t, rondo_graph_capture_end(p.graph, p.f.stream));
    T_OK(t, gt_replay(&p.f, p.graph));
    rondo_graph_reset(p.second);
    T_OK(t, rondo_memory_pool_release(p.f.device, pool)); /* the graph's own use, taken away */
    T_FAILS(t, gt_replay(&p.f, p.graph), STALE, "was released");
}
GT_BOTH(test_a_managed_graph_survives_restores)

/* A pool that its user keeps goes on when a graph of it goes, also for pinned memory, of which a block is still alive. */
static void test_a_pool_outlives_its_graphs(rondo_test *t, const char *device) {
    pool_fixture p;
    rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
    void *pinned = NULL;
    pool_open(t, &p, device);
    rondo_pool_id pool = rondo_pool_handle(p.f.instance);
    T_OK(t, rondo_memory_pool_begin(p.f.device, pool, &filter));
    T_OK(t, rondo_memory_pool_end(p.f.device, pool));
    for (unsigned round = 0; round < 4; round++) {
        T_OK(t, rondo_graph_capture_begin(p.graph, p.f.stream, pool, 0));
        rondo_status status = round == 1 ? rondo_memory_host_allocate(p.f.device, GT_BYTES, &pinned) : RONDO_OK;
        if (!status) status = take(&p, p.f.stream, 0);
        if (!status) status = gt_add(&p.f, p.f.buffers[0], p.f.buffers[1], p.blocks[0]);
        if (!status) status = gt_add(&p.f, p.blocks[0], p.f.buffers[1], p.f.buffers[2]);
        if (!status) status = give(&p, 0);
        if (!status) status = rondo_graph_capture_end(p.graph, p.f.stream);
        if (!status) status = gt_replay(&p.f, p.graph);
        rondo_graph_reset(p.graph);
        if (round == 3 || status) {
            if (pinned) rondo_status_release(rondo_memory_host_free(p.f.device, pinned));
            pinned = NULL;
        }
        T_OK(t, status);
        T_NEAR(t, p.f.buffers[2][1], 1.0 + 2 * 101.0, 0.0);
    }
    T_OK(t, rondo__memory_check(p.f.device->memory));
    T_OK(t, rondo_memory_pool_release(p.f.device, pool));
    T_FAILS(t, rondo_graph_capture_begin(p.graph, p.f.stream, pool, 0), NOT_FOUND, "never used again");
}
GT_BOTH(test_a_pool_outlives_its_graphs)

/* Rounds of capture and reset leave the device as it was. */
static void test_rounds_do_not_grow(rondo_test *t) {
    pool_fixture p;
    rondo_memory_statistics before = RONDO_MEMORY_STATISTICS_INIT, after = RONDO_MEMORY_STATISTICS_INIT;
    pool_open(t, &p, "cpu");
    for (int i = 0; i < 20000; i++) {
        T_OK(t, gt_begin(&p.f, p.graph));
        T_OK(t, take(&p, p.f.stream, 0));
        T_OK(t, gt_add(&p.f, p.f.buffers[0], p.f.buffers[1], p.blocks[0]));
        T_OK(t, give(&p, 0));
        T_OK(t, rondo_graph_capture_end(p.graph, p.f.stream));
        rondo_graph_reset(p.graph);
        if (i == 10) T_OK(t, rondo_memory_get_statistics(p.f.device, (rondo_pool_id){0, 0}, &before));
    }
    T_OK(t, rondo_memory_get_statistics(p.f.device, (rondo_pool_id){0, 0}, &after));
    T_EQ(t, after.reserved_bytes, before.reserved_bytes);
    T_EQ(t, after.segments, before.segments);
    T_EQ(t, after.allocations, before.allocations);
}

RONDO_TEST_MAIN(GT_ENTRIES(test_c01_forked_stream_allocates_in_the_pool),
                GT_ENTRIES(test_a27_temporaries_stay_the_graphs), GT_ENTRIES(test_a39_pinned_memory_of_a_copy),
                GT_ENTRIES(test_pools_are_shared), GT_ENTRIES(test_a_pool_outlives_its_graphs),
                GT_ENTRIES(test_pools_that_go), GT_ENTRIES(test_a_managed_graph_survives_restores),
                T_PLAIN(test_rounds_do_not_grow))
