/* SPDX-License-Identifier: Apache-2.0
 *
 * Staleness that could be missed: a reason that another one hides, and the short cuts of recording when a temporary makes
 * room for another. Each of these replays would read memory that is no longer the graph's. */
#include "graph/graph_testing.h"

typedef struct stale_fixture {
    graph_fixture f;
    rondo_graph *graph;
    rondo_memory_checkpoint *checkpoint;
    rondo_pool_id pool;
    float *blocks[3];
} stale_fixture;

static void stale_close(stale_fixture *s) {
    rondo_graph_release(s->graph);
    for (unsigned i = 0; i < 3; i++)
        if (s->blocks[i]) rondo_status_release(rondo_memory_free(s->f.device, s->blocks[i]));
    rondo_memory_checkpoint_release(s->checkpoint);
    rondo_status_release(rondo_memory_pool_release(s->f.device, s->pool));
}

/* A pool of one's own, and the layout it has while it is empty. */
static void stale_open(rondo_test *t, stale_fixture *s, const char *device) {
    rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
    gt_open(t, &s->f, device);
    s->graph = NULL;
    s->checkpoint = NULL;
    memset(s->blocks, 0, sizeof s->blocks);
    s->pool = rondo_pool_handle(s->f.instance);
    T_OK(t, rondo_memory_pool_begin(s->f.device, s->pool, &filter));
    T_DEFER(t, stale_close, s);
    T_OK(t, rondo_memory_pool_end(s->f.device, s->pool));
    T_OK(t, rondo_memory_checkpoint_create(s->f.device, s->pool, &s->checkpoint));
    T_OK(t, rondo_graph_create(s->f.device, NULL, &s->graph));
}

static rondo_status stale_begin(stale_fixture *s) {
    return rondo_graph_capture_begin(s->graph, s->f.stream, s->pool, RONDO_CAPTURE_MODE_GLOBAL);
}

static rondo_status take(stale_fixture *s, unsigned block, uint64_t size) {
    void *memory;
    RONDO__TRY(rondo_memory_allocate_on(s->f.stream, size, &memory));
    s->blocks[block] = memory;
    return RONDO_OK;
}

static rondo_status give(stale_fixture *s, unsigned block) {
    void *memory = s->blocks[block];
    s->blocks[block] = NULL;
    return rondo_memory_free(s->f.device, memory);
}

/* What lives in the pool is gone after it. */
static void restore(rondo_test *t, stale_fixture *s, uint64_t freed) {
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    T_OK(t, rondo_memory_checkpoint_restore(s->checkpoint, &delta));
    uint64_t count = delta.freed_count;
    rondo_memory_delta_release(s->f.device, &delta);
    memset(s->blocks, 0, sizeof s->blocks);
    T_EQ(t, count, freed);
}

static rondo_status update(stale_fixture *s, uint64_t node, const void *a, const void *out) {
    const rondo_argument arguments[4] = {{gt_word(a), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(a), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(out), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                         {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    return rondo_graph_update(s->graph, node, arguments, 4);
}

/* block 0 = b0 + b1; b2 = block 0 + b1; b3 = b0 + b0 */
static void capture(rondo_test *t, stale_fixture *s) {
    T_OK(t, stale_begin(s));
    T_OK(t, take(s, 0, GT_BYTES));
    T_OK(t, gt_add(&s->f, s->f.buffers[0], s->f.buffers[1], s->blocks[0]));
    T_OK(t, gt_add(&s->f, s->blocks[0], s->f.buffers[1], s->f.buffers[2]));
    T_OK(t, gt_add(&s->f, s->f.buffers[0], s->f.buffers[0], s->f.buffers[3]));
    T_OK(t, rondo_graph_capture_end(s->graph, s->f.stream));
    T_OK(t, gt_replay(&s->f, s->graph));
    T_NEAR(t, s->f.buffers[2][1], 1.0 + 101.0 + 101.0, 0.0);
}

/* An update looks for what was freed; it does not forget that the pool was brought back. */
static void test_an_update_hides_no_restore(rondo_test *t, const char *device) {
    stale_fixture s;
    stale_open(t, &s, device);
    capture(t, &s);
    restore(t, &s, 1);
    T_OK(t, update(&s, 2, s.f.buffers[1], s.f.buffers[3]));
    T_FAILS(t, rondo_graph_replay(s.graph, s.f.stream), STALE, "brought back to a layout");
    T_FAILS(t, rondo_graph_replay(s.graph, s.f.stream), STALE, "brought back to a layout");
}
GT_BOTH(test_an_update_hides_no_restore)

/* Memory that the graph mentioned once, and no more, is freed: that is no concern of its replays. What comes after is. */
static void test_a_free_hides_no_restore(rondo_test *t, const char *device) {
    stale_fixture s;
    stale_open(t, &s, device);
    capture(t, &s);
    const void *block = s.blocks[0];
    T_OK(t, update(&s, 0, s.f.buffers[1], block));
    T_OK(t, update(&s, 2, s.f.buffers[1], s.f.buffers[3]));
    T_OK(t, gt_free(&s.f, 0));
    restore(t, &s, 1);
    T_FAILS(t, rondo_graph_replay(s.graph, s.f.stream), STALE, "brought back to a layout");
}
GT_BOTH(test_a_free_hides_no_restore)

/* And without the restore it is none. */
static void test_a_free_of_what_is_not_mentioned(rondo_test *t, const char *device) {
    stale_fixture s;
    stale_open(t, &s, device);
    capture(t, &s);
    T_OK(t, update(&s, 0, s.f.buffers[1], s.blocks[0]));
    T_OK(t, update(&s, 2, s.f.buffers[1], s.f.buffers[3]));
    T_OK(t, gt_free(&s.f, 0));
    T_OK(t, gt_replay(&s.f, s.graph));
    T_NEAR(t, s.f.buffers[2][1], 3 * 101.0, 0.0);
}
GT_BOTH(test_a_free_of_what_is_not_mentioned)

/* A temporary is freed in the capture and its place given out again, in two pieces: what is recorded there is of the new
 * block, with its bounds. */
static void test_a_temporary_makes_room(rondo_test *t, const char *device) {
    enum { HALF = 512 };
    stale_fixture s;
    rondo_memory_statistics statistics = RONDO_MEMORY_STATISTICS_INIT;
    stale_open(t, &s, device);
    T_OK(t, stale_begin(&s));
    T_OK(t, take(&s, 0, 2 * HALF));
    T_OK(t, rondo_stream_fill(s.f.stream, s.blocks[0], 1, 2 * HALF));
    const char *place = (const char *)s.blocks[0];
    T_OK(t, give(&s, 0));
    T_OK(t, take(&s, 1, HALF));
    T_OK(t, take(&s, 2, HALF));
    if (!rondo_test_failing(t)) T_TRUE(t, (char *)s.blocks[1] == place && (char *)s.blocks[2] == place + HALF);
    T_OK(t, rondo_stream_fill(s.f.stream, s.blocks[1], 2, HALF));
    T_FAILS(t, rondo_stream_fill(s.f.stream, s.blocks[1], 3, 2 * HALF), OUT_OF_RANGE, "cross an end");
    T_FAILS(t, rondo_graph_capture_end(s.graph, s.f.stream), CAPTURE_INVALIDATED, "cross an end");
    T_OK(t, rondo_memory_get_statistics(s.f.device, s.pool, &statistics));
    T_EQ(t, statistics.allocations, 2);
}
GT_BOTH(test_a_temporary_makes_room)

/* The block in the temporary's place is mentioned, though the temporary was before it: a restore that takes it away counts. */
static void test_a_block_in_a_temporarys_place(rondo_test *t, const char *device) {
    stale_fixture s;
    stale_open(t, &s, device);
    T_OK(t, stale_begin(&s));
    T_OK(t, take(&s, 0, GT_BYTES));
    T_OK(t, gt_add(&s.f, s.f.buffers[0], s.f.buffers[1], s.blocks[0]));
    T_OK(t, give(&s, 0));
    T_OK(t, take(&s, 1, GT_BYTES));
    T_OK(t, gt_add(&s.f, s.f.buffers[0], s.f.buffers[1], s.blocks[1]));
    T_OK(t, rondo_graph_capture_end(s.graph, s.f.stream));
    T_OK(t, gt_replay(&s.f, s.graph));
    restore(t, &s, 1);
    T_FAILS(t, rondo_graph_replay(s.graph, s.f.stream), STALE, "brought back to a layout");
}
GT_BOTH(test_a_block_in_a_temporarys_place)

/* A temporary a node, mostly in a place where another was: the graph needs no more for it than for one that stays. A view
 * into each is looked at, too. */
static void test_many_temporaries(rondo_test *t, const char *device) {
    enum { MANY = 20000, SIZE = 512 };
    stale_fixture s;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    uint64_t bytes[2] = {0};
    stale_open(t, &s, device);
    for (unsigned way = 0; way < 2; way++) {
        rondo_graph_reset(s.graph);
        T_OK(t, stale_begin(&s));
        T_OK(t, take(&s, 0, SIZE));
        for (unsigned i = 0; i < MANY; i++) {
            T_OK(t, rondo_stream_fill(s.f.stream, s.blocks[0], (uint8_t)(i % 200u), SIZE));
            T_OK(t, rondo_stream_copy(s.f.stream, s.f.buffers[0], (char *)s.blocks[0] + 8, 4,
                                      RONDO_COPY_DEVICE_TO_DEVICE));
            if (!way) continue;
            unsigned other = i % 3u ? 0 : 1;
            if (other) T_OK(t, take(&s, 1, SIZE)); /* so that there are two places */
            T_OK(t, give(&s, 0));
            if (other) s.blocks[0] = s.blocks[1], s.blocks[1] = NULL;
            else T_OK(t, take(&s, 0, SIZE));
        }
        T_OK(t, give(&s, 0));
        T_OK(t, rondo_graph_capture_end(s.graph, s.f.stream));
        T_OK(t, rondo_graph_get_info(s.graph, &info));
        bytes[way] = info.bytes;
        T_OK(t, gt_replay(&s.f, s.graph));
        T_EQ(t, ((unsigned char *)s.f.buffers[0])[3], (MANY - 1) % 200);
    }
    T_TRUE(t, bytes[1] < bytes[0] + 4096);
}
GT_BOTH(test_many_temporaries)

RONDO_TEST_MAIN(GT_PLAIN_ENTRIES(test_many_temporaries), GT_ENTRIES(test_an_update_hides_no_restore),
                GT_ENTRIES(test_a_free_hides_no_restore), GT_ENTRIES(test_a_free_of_what_is_not_mentioned),
                GT_ENTRIES(test_a_temporary_makes_room), GT_ENTRIES(test_a_block_in_a_temporarys_place))
