/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs on a device whose memory the host cannot address: entry by entry, copies with their direction, host memory
 * only when pinned, and the ticket behind each replay. */
#include "graph/far_testing.h"

#include "graph/graph.h"

typedef struct far_graph {
    far_fixture f;
    rondo_graph *graph;
    void *a, *b, *out, *pinned;
    far_kernel add;
    float pageable[FAR_FLOATS];
} far_graph;

static void far_graph_close(far_graph *g) {
    rondo_graph_release(g->graph);
    if (g->a) rondo_status_release(rondo_memory_free(g->f.device, g->a));
    if (g->b) rondo_status_release(rondo_memory_free(g->f.device, g->b));
    if (g->out) rondo_status_release(rondo_memory_free(g->f.device, g->out));
    if (g->pinned) rondo_status_release(rondo_memory_host_free(g->f.device, g->pinned));
}

static void far_graph_open(rondo_test *t, far_graph *g) {
    memset(g, 0, sizeof *g);
    far_fixture_open(t, &g->f);
    g->add.count = FAR_FLOATS;
    T_DEFER(t, far_graph_close, g);
    T_OK(t, rondo_memory_allocate(g->f.device, FAR_BYTES, &g->a));
    T_OK(t, rondo_memory_allocate(g->f.device, FAR_BYTES, &g->b));
    T_OK(t, rondo_memory_allocate(g->f.device, FAR_BYTES, &g->out));
    T_OK(t, rondo_memory_host_allocate(g->f.device, FAR_BYTES, &g->pinned));
    for (unsigned i = 0; i < FAR_FLOATS; i++) {
        ((float *)g->pinned)[i] = (float)i;
        g->pageable[i] = 1.0f;
    }
    T_OK(t, rondo_graph_create(g->f.device, NULL, &g->graph));
}

static rondo_status far_add(far_graph *g) {
    const rondo_argument arguments[3] = {{(uint64_t)(uintptr_t)g->a, FAR_BYTES, RONDO_ACCESS_READ, 0},
                                         {(uint64_t)(uintptr_t)g->b, FAR_BYTES, RONDO_ACCESS_READ, 0},
                                         {(uint64_t)(uintptr_t)g->out, FAR_BYTES, RONDO_ACCESS_WRITE, 0}};
    rondo_call call = {sizeof call, 3, {NULL, &g->add}, arguments, "add"};
    return rondo_stream_launch(g->f.stream, &call);
}

static rondo_status far_begin(far_graph *g) {
    return rondo_graph_capture_begin(g->graph, g->f.stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL);
}

static void test_capture_and_replay(rondo_test *t) {
    far_graph g;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    far_graph_open(t, &g);
    T_FAILS(t, rondo_graph_capture_begin(g.graph, rondo_stream_default(g.f.device), (rondo_pool_id){0, 0}, 0),
            INVALID_ARGUMENT, "default stream");
    T_OK(t, far_begin(&g));
    T_OK(t, rondo_stream_copy(g.f.stream, g.a, g.pinned, FAR_BYTES, RONDO_COPY_HOST_TO_DEVICE));
    T_OK(t, rondo_stream_copy(g.f.stream, g.b, g.a, FAR_BYTES, RONDO_COPY_DEVICE_TO_DEVICE));
    T_OK(t, rondo_stream_fill(g.f.stream, g.b, 0, 4));
    T_OK(t, far_add(&g));
    T_OK(t, rondo_stream_copy(g.f.stream, g.pinned, g.out, FAR_BYTES, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_graph_capture_end(g.graph, g.f.stream));
    T_EQ(t, far.copies, 0);
    ((float *)g.pinned)[0] = 9.0f;
    T_OK(t, rondo_graph_replay(g.graph, g.f.stream));
    T_NEAR(t, ((float *)g.pinned)[0], 9.0, 0.0);
    T_NEAR(t, ((float *)g.pinned)[5], 10.0, 0.0);
    T_EQ(t, far.copies, 3);
    T_EQ(t, far.host_to_device, 1);
    T_EQ(t, far.device_to_host, 1);
    T_OK(t, rondo_graph_get_info(g.graph, &info));
    T_EQ(t, info.unverified, 0); /* pinned memory is watched */
    T_OK(t, rondo_memory_host_free(g.f.device, g.pinned));
    g.pinned = NULL;
    T_OK(t, rondo_graph_replay(g.graph, g.f.stream)); /* the graph holds it */
    T_EQ(t, far.copies, 6);
    T_OK(t, rondo_memory_free(g.f.device, g.b));
    g.b = NULL;
    T_FAILS(t, rondo_graph_replay(g.graph, g.f.stream), STALE, "node 1 'copy', argument 0");
}

static void test_pageable_copies_are_refused(rondo_test *t) {
    far_graph g;
    far_graph_open(t, &g);
    T_OK(t, rondo_stream_copy(g.f.stream, g.a, g.pageable, FAR_BYTES, RONDO_COPY_HOST_TO_DEVICE)); /* eager: fine */
    for (int i = 0; i < 2; i++) {
        T_OK(t, far_begin(&g));
        T_OK(t, far_add(&g));
        if (i)
            T_FAILS(t, rondo_stream_copy(g.f.stream, g.pageable, g.out, 8, RONDO_COPY_DEVICE_TO_HOST), INVALID_ARGUMENT,
                    "rondo_memory_host_allocate");
        else
            T_FAILS(t, rondo_stream_copy(g.f.stream, g.a, g.pageable, 8, RONDO_COPY_HOST_TO_DEVICE), INVALID_ARGUMENT,
                    "node 1");
        T_FAILS(t, rondo_graph_capture_end(g.graph, g.f.stream), CAPTURE_INVALIDATED, "pageable");
    }
    /* Nor by an update. */
    T_OK(t, far_begin(&g));
    T_OK(t, rondo_stream_copy(g.f.stream, g.a, g.pinned, FAR_BYTES, RONDO_COPY_HOST_TO_DEVICE));
    T_OK(t, rondo_graph_capture_end(g.graph, g.f.stream));
    const rondo_argument arguments[3] = {{(uint64_t)(uintptr_t)g.a, 0, RONDO_ACCESS_BOTH, 0},
                                         {(uint64_t)(uintptr_t)g.pageable, 0, RONDO_ACCESS_BOTH, 0},
                                         {8, 0, 0, 0}};
    T_FAILS(t, rondo_graph_update(g.graph, 0, arguments, 3), INVALID_ARGUMENT, "pageable");
    T_OK(t, rondo_graph_replay(g.graph, g.f.stream));
}

/* It is given its nodes one by one, and has no conditions of its own. */
static void test_no_conditions(rondo_test *t) {
    far_graph g;
    far_graph_open(t, &g);
    T_OK(t, far_begin(&g));
    T_FAILS(t, rondo_graph_condition_begin(g.f.stream, g.a), UNSUPPORTED,
            "rondo_graph_condition_begin: device 'far:0'");
    T_FAILS(t, rondo_graph_capture_end(g.graph, g.f.stream), CAPTURE_INVALIDATED, "condition_begin");
}

/* An event behind each replay; who changes, and who replays elsewhere, waits for it. */
static void test_the_ticket(rondo_test *t) {
    far_graph g;
    far_graph_open(t, &g);
    T_OK(t, rondo_graph_declare_slot(g.graph, 0, g.a, FAR_BYTES, RONDO_ACCESS_READ, RONDO_SLOT_REBIND));
    T_OK(t, far_begin(&g));
    T_OK(t, far_add(&g));
    T_OK(t, rondo_graph_capture_end(g.graph, g.f.stream));
    T_OK(t, rondo_graph_replay(g.graph, g.f.stream));
    T_OK(t, rondo_graph_replay(g.graph, g.f.stream));
    T_EQ(t, far.records, 2);
    T_EQ(t, far.waits, 0); /* one stream keeps its own order */
    T_OK(t, rondo_graph_replay(g.graph, g.f.other));
    T_EQ(t, far.records, 3);
    T_EQ(t, far.waits, 1);
    T_EQ(t, far.synchronizes, 0);
    T_OK(t, rondo_graph_bind(g.graph, 0, g.b));
    T_EQ(t, far.synchronizes, 1);
    T_OK(t, rondo_graph_bind(g.graph, 0, g.a)); /* nothing flies any more */
    T_EQ(t, far.synchronizes, 1);
    T_OK(t, rondo_graph_replay(g.graph, g.f.stream));
    T_EQ(t, far.waits, 1);
    rondo_graph_reset(g.graph);
    T_EQ(t, far.synchronizes, 2);
}

/* A child whose pinned memory was freed in its capture: the copy goes on from it, the child gone and its memory asked for
 * again. */
static void test_a_child_with_pinned_memory(rondo_test *t) {
    far_graph g;
    rondo_graph *child = NULL;
    void *again = NULL;
    float back[FAR_FLOATS] = {0};
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    far_graph_open(t, &g);
    T_OK(t, rondo_graph_create(g.f.device, NULL, &child));
    T_DEFER(t, rondo_graph_release, child);
    T_OK(t, rondo_graph_capture_begin(child, g.f.stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, rondo_stream_copy(g.f.stream, g.a, g.pinned, FAR_BYTES, RONDO_COPY_HOST_TO_DEVICE));
    T_OK(t, rondo_memory_host_free(g.f.device, g.pinned));
    g.pinned = NULL;
    T_OK(t, rondo_graph_capture_end(child, g.f.stream));
    T_OK(t, far_begin(&g));
    T_OK(t, rondo_graph_replay(child, g.f.stream));
    T_OK(t, rondo_graph_capture_end(g.graph, g.f.stream));
    T_OK(t, rondo_graph_get_info(g.graph, &info));
    T_EQ(t, info.unverified, 0);
    rondo_graph_reset(child);
    T_OK(t, rondo_memory_host_allocate(g.f.device, FAR_BYTES, &again));
    memset(again, 0, FAR_BYTES);
    rondo_status status = rondo_graph_replay(g.graph, g.f.stream);
    rondo_status_release(rondo_memory_host_free(g.f.device, again));
    T_OK(t, status);
    T_OK(t, rondo_stream_copy(g.f.stream, back, g.a, FAR_BYTES, RONDO_COPY_DEVICE_TO_HOST));
    for (unsigned i = 0; i < FAR_FLOATS; i++) T_NEAR(t, back[i], i, 0.0);
}

RONDO_TEST_MAIN(T(test_a_child_with_pinned_memory), T(test_capture_and_replay), T(test_pageable_copies_are_refused),
                T(test_no_conditions), T(test_the_ticket))
