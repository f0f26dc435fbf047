/* SPDX-License-Identifier: Apache-2.0
 *
 * Reported troubles about memory, each with whole graphs: captured, replayed, and dropped. docs/cases.md lists them;
 * src/memory has the same ones for the allocator alone. */
#include <stdlib.h>

#include "graph/graph_testing.h"

#define MEBIBYTE ((uint64_t)1 << 20)
#define REPORTS_GRAPHS 4u

typedef struct reports_fixture {
    graph_fixture f;
    rondo_graph *graphs[REPORTS_GRAPHS];
    void *blocks[REPORTS_GRAPHS];
} reports_fixture;

static void reports_close(reports_fixture *r) {
    for (unsigned i = 0; i < REPORTS_GRAPHS; i++) rondo_graph_release(r->graphs[i]);
    for (unsigned i = 0; i < REPORTS_GRAPHS; i++)
        if (r->blocks[i]) rondo_status_release(rondo_memory_free(r->f.device, r->blocks[i]));
}

static void reports_open(rondo_test *t, reports_fixture *r, const char *device) {
    gt_open(t, &r->f, device);
    memset(r->graphs, 0, sizeof r->graphs);
    memset(r->blocks, 0, sizeof r->blocks);
    T_DEFER(t, reports_close, r);
    for (unsigned i = 0; i < REPORTS_GRAPHS; i++) T_OK(t, rondo_graph_create(r->f.device, NULL, &r->graphs[i]));
}

static rondo_status take(reports_fixture *r, unsigned block, uint64_t size) {
    return rondo_memory_allocate_on(r->f.stream, size, &r->blocks[block]);
}

static rondo_status give(reports_fixture *r, unsigned block) {
    void *memory = r->blocks[block];
    r->blocks[block] = NULL;
    return rondo_memory_free(r->f.device, memory);
}

static rondo_memory_statistics figures(rondo_test *t, const reports_fixture *r) {
    rondo_memory_statistics statistics = RONDO_MEMORY_STATISTICS_INIT;
    T_OK(t, rondo_memory_get_statistics(r->f.device, (rondo_pool_id){0, 0}, &statistics));
    return statistics;
}

/* A03. All work of a capture went to another stream, or to the host: the end says so once, and a replay does nothing. */
static void test_a03_work_went_elsewhere(rondo_test *t, const char *device) {
    reports_fixture r;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    reports_open(t, &r, device);
    T_OK(t, gt_begin(&r.f, r.graphs[0]));
    T_OK(t, gt_add_named(&r.f, r.f.other, "aside", r.f.buffers[0], r.f.buffers[1], r.f.buffers[2]));
    T_OK(t, rondo_stream_synchronize(r.f.other));
    for (unsigned i = 0; i < GT_FLOATS; i++) r.f.buffers[3][i] = 2.0f * r.f.buffers[2][i];
    T_OK(t, rondo_graph_capture_end(r.graphs[0], r.f.stream));
    T_EQ(t, r.f.warnings, 1);
    T_OK(t, rondo_graph_get_info(r.graphs[0], &info));
    T_TRUE(t, info.empty && info.nodes == 0 && info.edges == 0);
    r.f.buffers[2][1] = -1.0f;
    for (int i = 0; i < 3; i++) T_OK(t, gt_replay(&r.f, r.graphs[0]));
    T_NEAR(t, r.f.buffers[2][1], -1.0, 0.0);
    T_NEAR(t, r.f.buffers[3][2], 2.0 * 104.0, 0.0);
    T_EQ(t, r.f.warnings, 1);
}
GT_BOTH(test_a03_work_went_elsewhere)

/* A29. The input is known to the graph by a view into it; it is freed, and its memory, or memory like it, is another's with
 * other values. The replay says which, and nothing runs. */
static void test_a29_a_view_of_a_freed_input(rondo_test *t, const char *device) {
    reports_fixture r;
    reports_open(t, &r, device);
    T_OK(t, take(&r, 0, GT_BYTES + 4));
    float *view = (float *)r.blocks[0] + 1;
    T_OK(t, rondo_stream_copy(r.f.stream, view, r.f.buffers[1], GT_BYTES, RONDO_COPY_DEVICE_TO_DEVICE));
    T_OK(t, gt_begin(&r.f, r.graphs[0]));
    T_OK(t, gt_add_named(&r.f, r.f.stream, "doubled", view, view, r.f.buffers[2]));
    T_OK(t, rondo_graph_capture_end(r.graphs[0], r.f.stream));
    T_OK(t, gt_replay(&r.f, r.graphs[0]));
    T_NEAR(t, r.f.buffers[2][3], 206.0, 0.0);
    T_OK(t, give(&r, 0));
    T_OK(t, take(&r, 1, GT_BYTES + 4));
    T_OK(t, rondo_stream_fill(r.f.stream, r.blocks[1], 0x41, GT_BYTES + 4));
    T_OK(t, rondo_stream_synchronize(r.f.stream));
    T_FAILS(t, rondo_graph_replay(r.graphs[0], r.f.stream), STALE, "node 0 'doubled', argument 0");
    T_OK(t, rondo_stream_synchronize(r.f.stream));
    T_NEAR(t, r.f.buffers[2][3], 206.0, 0.0);
}
GT_BOTH(test_a29_a_view_of_a_freed_input)

/* A29. What one graph leaves in a pool and another of that pool reads is no concern of the check, freed or not. */
static void test_a29_results_inside_a_pool(rondo_test *t, const char *device) {
    reports_fixture r;
    reports_open(t, &r, device);
    rondo_pool_id pool = rondo_pool_handle(r.f.instance);
    T_OK(t, rondo_graph_capture_begin(r.graphs[0], r.f.stream, pool, 0));
    T_OK(t, take(&r, 0, GT_BYTES));
    T_OK(t, gt_add(&r.f, r.f.buffers[0], r.f.buffers[1], r.blocks[0]));
    T_OK(t, rondo_graph_capture_end(r.graphs[0], r.f.stream));
    T_OK(t, rondo_graph_capture_begin(r.graphs[1], r.f.stream, pool, 0));
    T_OK(t, gt_add(&r.f, r.blocks[0], r.f.buffers[1], r.f.buffers[2]));
    T_OK(t, rondo_graph_capture_end(r.graphs[1], r.f.stream));
    T_OK(t, give(&r, 0));
    for (unsigned i = 0; i < 3; i++) {
        r.f.buffers[0][1] = (float)i;
        T_OK(t, rondo_graph_replay(r.graphs[0], r.f.stream));
        T_OK(t, gt_replay(&r.f, r.graphs[1]));
        T_NEAR(t, r.f.buffers[2][1], i + 202.0, 0.0);
    }
}
GT_BOTH(test_a29_results_inside_a_pool)

static uint64_t number_after(const char *text, const char *name) {
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) : UINT64_MAX;
}

/* C05. A device of 200 MiB, of which a graph's pool has 120: the text says so, by the graph's name, and adds up. */
static void test_c05_the_graph_that_holds_most(rondo_test *t) {
    static reports_fixture r;
    char text[2048];
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    void *more = NULL;
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    rondo_graph *large = NULL, *little = NULL;
    void *blocks[3] = {NULL};
    gt_open(t, &r.f, "cpu");
    T_OK(t, rondo_device_open(r.f.instance, "sim:1", "memory=209715200", &device));
    T_DEFER(t, rondo_device_release, device);
    T_OK(t, rondo_stream_create(device, NULL, &stream));
    T_DEFER(t, rondo_stream_release, stream);
    options.name = "decoder step";
    T_OK(t, rondo_graph_create(device, &options, &large));
    T_DEFER(t, rondo_graph_release, large);
    options.name = "embedding";
    T_OK(t, rondo_graph_create(device, &options, &little));
    T_DEFER(t, rondo_graph_release, little);
    T_OK(t, rondo_graph_capture_begin(large, stream, (rondo_pool_id){0, 0}, 0));
    T_OK(t, rondo_memory_allocate_on(stream, 120 * MEBIBYTE, &blocks[0]));
    T_OK(t, rondo_stream_fill(stream, blocks[0], 0, 1));
    T_OK(t, rondo_memory_free(device, blocks[0])); /* a temporary: held all the same */
    T_OK(t, rondo_graph_capture_end(large, stream));
    T_OK(t, rondo_graph_capture_begin(little, stream, (rondo_pool_id){0, 0}, 0));
    T_OK(t, rondo_memory_allocate_on(stream, 20 * MEBIBYTE, &blocks[1]));
    T_OK(t, rondo_stream_fill(stream, blocks[1], 0, 1));
    T_OK(t, rondo_graph_capture_end(little, stream));
    T_OK(t, rondo_memory_allocate_on(stream, 30 * MEBIBYTE, &blocks[2]));
    rondo_status status = rondo_memory_allocate_on(stream, 40 * MEBIBYTE, &more);
    (void)rondo_status_format(status, text, sizeof text);
    T_FAILS(t, status, OUT_OF_MEMORY, "most is held by pool");
    T_EQ(t, number_after(text, "for 41943040 bytes: "), 170 * MEBIBYTE);
    T_EQ(t, number_after(text, "of which "), 30 * MEBIBYTE);
    T_EQ(t, number_after(text, "are allocated, "), 140 * MEBIBYTE);
    T_EQ(t, number_after(text, "by graph pools and "), 0);
    T_TRUE(t, strstr(text, "of decoder step: 125829120 bytes, of which 0 are live") != NULL);
    /* The graph goes, and there is room. */
    rondo_graph_reset(large);
    T_OK(t, rondo_memory_allocate_on(stream, 40 * MEBIBYTE, &more));
    T_OK(t, rondo_memory_free(device, more));
    T_OK(t, rondo_memory_free(device, blocks[1]));
    T_OK(t, rondo_memory_free(device, blocks[2]));
}

/* C11, C13. Sizes captured from the largest down, each a chain of temporaries, with a pool each and with one for all: as
 * much as the sum, and as the largest. Replayed in turn, each result is right when it is read before the next replay. */
static rondo_status chain_capture(reports_fixture *r, unsigned graph, rondo_pool_id pool, uint64_t size) {
    void *from = r->f.buffers[graph], *to = NULL;
    RONDO__TRY(rondo_graph_capture_begin(r->graphs[graph], r->f.stream, pool, 0));
    for (int i = 0; i < 3; i++) {
        RONDO__TRY(rondo_memory_allocate_on(r->f.stream, size, &to));
        RONDO__TRY(gt_add(&r->f, from, r->f.buffers[4], to));
        if (i) RONDO__TRY(rondo_memory_free(r->f.device, from));
        from = to;
    }
    RONDO__TRY(rondo_stream_copy(r->f.stream, r->f.buffers[5], to, GT_BYTES, RONDO_COPY_DEVICE_TO_DEVICE));
    RONDO__TRY(rondo_memory_free(r->f.device, to));
    return rondo_graph_capture_end(r->graphs[graph], r->f.stream);
}

static void test_c11_c13_sizes_share_a_pool(rondo_test *t) {
    static reports_fixture r;
    reports_open(t, &r, "cpu");
    for (unsigned shared = 0; shared < 2; shared++) {
        rondo_pool_id pool = {0, 0};
        if (shared) pool = rondo_pool_handle(r.f.instance);
        T_OK(t, rondo_memory_trim(r.f.device));
        uint64_t before = figures(t, &r).reserved_bytes;
        for (unsigned i = 0; i < REPORTS_GRAPHS; i++)
            T_OK(t, chain_capture(&r, i, pool, (REPORTS_GRAPHS - i) * 10 * MEBIBYTE));
        /* A chain needs two of its size at a time. */
        T_EQ(t, figures(t, &r).reserved_bytes - before, shared ? 80 * MEBIBYTE : 200 * MEBIBYTE);
        for (unsigned k = 0; k < 3 * REPORTS_GRAPHS; k++) {
            unsigned graph = (k * 7u + 1u) % REPORTS_GRAPHS;
            T_OK(t, gt_replay(&r.f, r.graphs[graph]));
            for (unsigned j = 0; j < GT_FLOATS; j++)
                T_NEAR(t, r.f.buffers[5][j], 100.0 * graph + j + 3.0 * (400.0 + j), 0.0);
        }
        for (unsigned i = 0; i < REPORTS_GRAPHS; i++) rondo_graph_reset(r.graphs[i]);
    }
}

/* C21. A graph whose body allocates what its user keeps: a hundred times captured, launched three times, dropped, and the
 * array freed after it. Nothing grows, and the array holds what the last launch wrote. */
static void test_c21_arrays_kept_from_graphs(rondo_test *t, const char *device) {
    reports_fixture r;
    uint64_t reserved = 0;
    reports_open(t, &r, device);
    for (unsigned round = 0; round < 100; round++) {
        T_OK(t, gt_begin(&r.f, r.graphs[0]));
        T_OK(t, take(&r, 0, 3 * MEBIBYTE));
        T_OK(t, take(&r, 1, 3 * MEBIBYTE));
        T_OK(t, gt_add(&r.f, r.f.buffers[0], r.f.buffers[1], r.blocks[1]));
        T_OK(t, gt_add(&r.f, r.blocks[1], r.f.buffers[1], r.blocks[0]));
        T_OK(t, give(&r, 1));
        T_OK(t, rondo_graph_capture_end(r.graphs[0], r.f.stream));
        for (int launch = 0; launch < 3; launch++) T_OK(t, gt_replay(&r.f, r.graphs[0]));
        rondo_graph_reset(r.graphs[0]);
        T_NEAR(t, ((float *)r.blocks[0])[3], 3.0 + 2.0 * 103.0, 0.0);
        T_OK(t, give(&r, 0));
        if (!round) reserved = figures(t, &r).reserved_bytes;
        T_EQ(t, figures(t, &r).reserved_bytes, reserved);
    }
    T_EQ(t, figures(t, &r).pending_bytes, 0);
}
GT_BOTH(test_c21_arrays_kept_from_graphs)

/* C03. Marks of other streams and frees inside a capture add no node, and what they kept is used again when it is over. */
static void test_c03_marks_add_no_nodes(rondo_test *t, const char *device) {
    enum { MANY = 2000 };
    reports_fixture r;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    reports_open(t, &r, device);
    T_OK(t, gt_begin(&r.f, r.graphs[0]));
    for (int i = 0; i < MANY; i++) {
        T_OK(t, take(&r, 0, 512));
        T_OK(t, rondo_stream_fill(r.f.stream, r.blocks[0], 1, 512));
        T_OK(t, rondo_memory_record_stream(r.f.device, r.blocks[0], r.f.other));
        T_OK(t, give(&r, 0));
    }
    T_OK(t, rondo_graph_capture_end(r.graphs[0], r.f.stream));
    T_OK(t, rondo_graph_get_info(r.graphs[0], &info));
    T_TRUE(t, info.nodes == MANY && info.fills == MANY && info.lanes == 1 && info.edges == MANY - 1);
    for (int i = 0; i < 2; i++) T_OK(t, gt_replay(&r.f, r.graphs[0]));
    rondo_graph_reset(r.graphs[0]);
    T_EQ(t, figures(t, &r).pending_bytes, 0);
}
GT_BOTH(test_c03_marks_add_no_nodes)

RONDO_TEST_MAIN(GT_ENTRIES(test_a03_work_went_elsewhere), GT_ENTRIES(test_a29_a_view_of_a_freed_input),
                GT_ENTRIES(test_a29_results_inside_a_pool), T_PLAIN(test_c05_the_graph_that_holds_most),
                T_PLAIN(test_c11_c13_sizes_share_a_pool), GT_PLAIN_ENTRIES(test_c21_arrays_kept_from_graphs),
                GT_PLAIN_ENTRIES(test_c03_marks_add_no_nodes))
