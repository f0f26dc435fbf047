/* SPDX-License-Identifier: Apache-2.0
 *
 * What a graph keeps so that its replays find it: the pools of graphs that became its children, with their temporaries, and
 * what a capture takes from a pool beside its own. And that memory which moves into a pool is no temporary of its graphs. */
#include <stdio.h>
#include <stdlib.h>

#include "graph/graph_testing.h"

typedef struct kept_fixture {
    graph_fixture f;
    rondo_graph *child, *graph, *outer;
    void *block, *pinned, *canaries[16];
} kept_fixture;

static void kept_close(kept_fixture *k) {
    rondo_graph_release(k->outer);
    rondo_graph_release(k->graph);
    rondo_graph_release(k->child);
    for (unsigned i = 0; i < 16; i++)
        if (k->canaries[i]) rondo_status_release(rondo_memory_free(k->f.device, k->canaries[i]));
    if (k->block) rondo_status_release(rondo_memory_free(k->f.device, k->block));
    if (k->pinned) rondo_status_release(rondo_memory_host_free(k->f.device, k->pinned));
}

static void kept_open(rondo_test *t, kept_fixture *k, const char *device) {
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    gt_open(t, &k->f, device);
    k->child = k->graph = k->outer = NULL;
    k->block = k->pinned = NULL;
    memset(k->canaries, 0, sizeof k->canaries);
    T_DEFER(t, kept_close, k);
    options.keep_graph = 1; /* for dumps */
    T_OK(t, rondo_graph_create(k->f.device, NULL, &k->child));
    T_OK(t, rondo_graph_create(k->f.device, &options, &k->graph));
    T_OK(t, rondo_graph_create(k->f.device, NULL, &k->outer));
}

static rondo_status take(kept_fixture *k, uint64_t size) {
    return rondo_memory_allocate_on(k->f.stream, size, &k->block);
}

static rondo_status give(kept_fixture *k) {
    void *block = k->block;
    k->block = NULL;
    return rondo_memory_free(k->f.device, block);
}

/* Everything that the device hands out now is written over. */
static void fill_memory(rondo_test *t, kept_fixture *k) {
    for (unsigned i = 0; i < 16; i++) {
        T_OK(t, rondo_memory_allocate_on(k->f.stream, i % 2 ? GT_BYTES : 1u << 20, &k->canaries[i]));
        T_OK(t, rondo_stream_fill(k->f.stream, k->canaries[i], 0x5a, i % 2 ? GT_BYTES : 1u << 20));
    }
    T_OK(t, rondo_stream_synchronize(k->f.stream));
}

static void expect_canaries(rondo_test *t, kept_fixture *k) {
    for (unsigned i = 0; i < 16; i++)
        for (unsigned j = 0; j < GT_BYTES; j++) T_EQ(t, ((unsigned char *)k->canaries[i])[j], 0x5a);
}

/* b2 = (b0 + b1) + 7s, through a temporary and pinned memory that are both freed in the capture. */
static rondo_status capture_child(kept_fixture *k) {
    RONDO__TRY(rondo_memory_host_allocate(k->f.device, GT_BYTES, &k->pinned));
    for (unsigned i = 0; i < GT_FLOATS; i++) ((float *)k->pinned)[i] = 7.0f;
    RONDO__TRY(gt_begin(&k->f, k->child));
    RONDO__TRY(take(k, GT_BYTES));
    RONDO__TRY(gt_add(&k->f, k->f.buffers[0], k->f.buffers[1], k->block));
    RONDO__TRY(rondo_stream_copy(k->f.stream, k->f.buffers[3], k->pinned, GT_BYTES, RONDO_COPY_HOST_TO_DEVICE));
    RONDO__TRY(gt_add(&k->f, k->block, k->f.buffers[3], k->f.buffers[2]));
    RONDO__TRY(give(k));
    void *pinned = k->pinned;
    k->pinned = NULL;
    RONDO__TRY(rondo_memory_host_free(k->f.device, pinned));
    return rondo_graph_capture_end(k->child, k->f.stream);
}

static void expect_result(rondo_test *t, kept_fixture *k, rondo_graph *graph) {
    memset(k->f.buffers[2], 0, GT_BYTES);
    memset(k->f.buffers[3], 0, GT_BYTES);
    T_OK(t, gt_replay(&k->f, graph));
    for (unsigned i = 0; i < GT_FLOATS; i++) T_NEAR(t, k->f.buffers[2][i], i + 100.0 + i + 7.0, 0.0);
}

/* A child with temporaries, twice, in a graph that is itself a child: all of them may go, and what they used is nobody
 * else's as long as the outermost is there. */
static void test_temporaries_of_children(rondo_test *t, const char *device) {
    kept_fixture k;
    rondo_pool_id pool;
    rondo_memory_statistics statistics = RONDO_MEMORY_STATISTICS_INIT;
    kept_open(t, &k, device);
    T_OK(t, capture_child(&k));
    T_OK(t, rondo_graph_pool(k.child, &pool));
    T_OK(t, gt_begin(&k.f, k.graph));
    T_OK(t, rondo_graph_replay(k.child, k.f.stream));
    T_OK(t, rondo_graph_replay(k.child, k.f.stream));
    T_OK(t, rondo_graph_capture_end(k.graph, k.f.stream));
    rondo_graph_reset(k.child);
    expect_result(t, &k, k.graph);
    T_OK(t, gt_begin(&k.f, k.outer));
    T_OK(t, rondo_graph_replay(k.graph, k.f.stream));
    T_OK(t, rondo_graph_capture_end(k.outer, k.f.stream));
    rondo_graph_reset(k.graph);
    T_OK(t, rondo_memory_trim(k.f.device));
    T_OK(t, rondo__memory_pool_trim(k.f.device->memory, pool, NULL, 0)); /* as a manager does that needs it no more */
    fill_memory(t, &k);
    void *host = NULL; /* where the pinned memory was, if it were free */
    T_OK(t, rondo_memory_host_allocate(k.f.device, GT_BYTES, &host));
    memset(host, 1, GT_BYTES);
    T_OK(t, rondo_memory_host_free(k.f.device, host));
    expect_result(t, &k, k.outer);
    expect_canaries(t, &k);
    T_OK(t, rondo_memory_get_statistics(k.f.device, pool, &statistics));
    rondo_graph_reset(k.outer);
    T_FAILS(t, rondo_memory_get_statistics(k.f.device, pool, &statistics), NOT_FOUND, NULL);
    T_OK(t, rondo__memory_check(k.f.device->memory));
}
GT_BOTH(test_temporaries_of_children)

/* The pool of a child is brought back to a layout without a block that the parent's nodes use. */
static void test_a_childs_pool_is_brought_back(rondo_test *t, const char *device) {
    kept_fixture k;
    rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
    rondo_memory_checkpoint *checkpoint = NULL;
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    kept_open(t, &k, device);
    rondo_pool_id pool = rondo_pool_handle(k.f.instance);
    T_OK(t, rondo_memory_pool_begin(k.f.device, pool, &filter));
    T_OK(t, rondo_memory_pool_end(k.f.device, pool));
    T_OK(t, rondo_memory_checkpoint_create(k.f.device, pool, &checkpoint));
    T_DEFER(t, rondo_memory_checkpoint_release, checkpoint);
    T_OK(t, rondo_graph_capture_begin(k.child, k.f.stream, pool, 0));
    T_OK(t, take(&k, GT_BYTES));
    T_OK(t, gt_add(&k.f, k.f.buffers[0], k.f.buffers[1], k.block));
    T_OK(t, rondo_graph_capture_end(k.child, k.f.stream));
    T_OK(t, gt_begin(&k.f, k.graph));
    T_OK(t, rondo_graph_replay(k.child, k.f.stream));
    T_OK(t, gt_add(&k.f, k.block, k.f.buffers[1], k.f.buffers[2]));
    T_OK(t, rondo_graph_capture_end(k.graph, k.f.stream));
    T_OK(t, gt_replay(&k.f, k.graph));
    T_NEAR(t, k.f.buffers[2][3], 3.0 + 103.0 + 103.0, 0.0);
    T_OK(t, rondo_memory_checkpoint_restore(checkpoint, &delta));
    k.block = NULL;
    rondo_memory_delta_release(k.f.device, &delta);
    T_FAILS(t, rondo_graph_replay(k.graph, k.f.stream), STALE, "brought back to a layout");
    T_OK(t, rondo_memory_pool_release(k.f.device, pool));
}
GT_BOTH(test_a_childs_pool_is_brought_back)

static void read_whole(rondo_test *t, const char *path, char *text, size_t capacity) {
    FILE *file = fopen(path, "r");
    T_TRUE(t, file != NULL);
    size_t length = fread(text, 1, capacity - 1u, file);
    (void)fclose(file);
    text[length] = '\0';
}

/* C09. A capture into P takes a temporary from Q, whose handle then goes: the graph keeps both, and says so. */
static void test_c09_a_graph_keeps_several_pools(rondo_test *t, const char *device) {
    static char text[1u << 16];
    char path[512], both[96];
    kept_fixture k;
    rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
    rondo_memory_statistics statistics = RONDO_MEMORY_STATISTICS_INIT;
    kept_open(t, &k, device);
    rondo_pool_id p = rondo_pool_handle(k.f.instance), q = rondo_pool_handle(k.f.instance);
    T_OK(t, rondo_graph_capture_begin(k.graph, k.f.stream, p, 0));
    T_OK(t, rondo_memory_pool_begin(k.f.device, q, &filter));
    T_OK(t, take(&k, GT_BYTES));
    T_OK(t, rondo_memory_pool_end(k.f.device, q));
    T_OK(t, gt_add(&k.f, k.f.buffers[0], k.f.buffers[1], k.block));
    T_OK(t, gt_add(&k.f, k.block, k.f.buffers[1], k.f.buffers[2]));
    T_OK(t, give(&k));
    T_OK(t, rondo_graph_capture_end(k.graph, k.f.stream));
    /* Others of Q do not get it, and when the handle has gone nobody does. */
    T_OK(t, rondo_memory_pool_begin(k.f.device, q, &filter));
    T_OK(t, take(&k, GT_BYTES));
    T_OK(t, rondo_memory_pool_end(k.f.device, q));
    T_OK(t, rondo_stream_fill(k.f.stream, k.block, 0x5a, GT_BYTES));
    T_OK(t, rondo_memory_pool_release(k.f.device, q));
    T_OK(t, rondo_memory_pool_release(k.f.device, q));
    fill_memory(t, &k);
    T_OK(t, gt_replay(&k.f, k.graph));
    T_NEAR(t, k.f.buffers[2][3], 3.0 + 103.0 + 103.0, 0.0);
    expect_canaries(t, &k);
    for (unsigned i = 0; i < GT_BYTES; i++) T_EQ(t, ((unsigned char *)k.block)[i], 0x5a);
    (void)snprintf(path, sizeof path, "%s/g.json", rondo_test_folder(t));
    T_OK(t, rondo_graph_debug_dump(k.graph, path));
    read_whole(t, path, text, sizeof text);
    (void)snprintf(both, sizeof both, "\"pools\": [[0, %llu], [0, %llu]]", (unsigned long long)p.user,
                   (unsigned long long)q.user);
    T_TRUE(t, strstr(text, both) != NULL);
    T_OK(t, give(&k));
    T_OK(t, rondo_memory_get_statistics(k.f.device, (rondo_pool_id){0, 0}, &statistics));
    T_TRUE(t, statistics.pending_bytes >= GT_BYTES); /* it waits for the graph */
    rondo_graph_reset(k.graph);                      /* now it is everybody's */
    T_OK(t, rondo_memory_get_statistics(k.f.device, (rondo_pool_id){0, 0}, &statistics));
    T_EQ(t, statistics.pending_bytes, 0);
    T_OK(t, rondo__memory_check(k.f.device->memory));
}
GT_BOTH(test_c09_a_graph_keeps_several_pools)

/* An input is freed, and the segment that it was in becomes one of the graph's own pool: that does not make it a temporary
 * of the graph's. */
static void test_memory_that_moves_into_the_pool(rondo_test *t, const char *device) {
    enum { MEBIBYTE = 1 << 20 };
    kept_fixture k;
    kept_open(t, &k, device);
    rondo_pool_id pool = rondo_pool_handle(k.f.instance);
    T_OK(t, take(&k, GT_BYTES));
    const void *input = k.block;
    T_OK(t, rondo_graph_capture_begin(k.graph, k.f.stream, pool, 0));
    T_OK(t, rondo_memory_allocate_on(k.f.stream, GT_BYTES, &k.canaries[0]));
    T_OK(t, gt_add(&k.f, input, k.f.buffers[1], k.canaries[0]));
    T_OK(t, rondo_graph_capture_end(k.graph, k.f.stream));
    T_OK(t, give(&k));
    T_OK(t, rondo_graph_capture_begin(k.child, k.f.stream, pool, 0));
    for (unsigned i = 1; i < 4; i++) T_OK(t, rondo_memory_allocate_on(k.f.stream, MEBIBYTE, &k.canaries[i]));
    T_OK(t, rondo_graph_capture_end(k.child, k.f.stream));
    if (!rondo_test_failing(t)) T_TRUE(t, input == k.canaries[1] || input == k.canaries[2] || input == k.canaries[3]);
    T_FAILS(t, rondo_graph_replay(k.graph, k.f.stream), STALE, "argument 0");
}
GT_BOTH(test_memory_that_moves_into_the_pool)

RONDO_TEST_MAIN(GT_ENTRIES(test_temporaries_of_children), GT_ENTRIES(test_a_childs_pool_is_brought_back),
                GT_ENTRIES(test_c09_a_graph_keeps_several_pools), GT_ENTRIES(test_memory_that_moves_into_the_pool))
