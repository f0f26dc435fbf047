/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that was freed before it is named: refused where it is named, whatever way it comes in, as long as the segment
 * that it lay in is still ours; sim, which takes segments back at once, finds it when the work runs. */
#include "graph/graph_testing.h"

static void freed_graph(rondo_graph **graph) { rondo_graph_release(*graph); }

static void freed_graph_open(rondo_test *t, graph_fixture *f, rondo_graph **graph) {
    *graph = NULL;
    T_DEFER(t, freed_graph, graph);
    T_OK(t, rondo_graph_create(f->device, NULL, graph));
}

static void test_in_a_capture(rondo_test *t) {
    graph_fixture f;
    rondo_graph *graph;
    gt_open(t, &f, "cpu");
    freed_graph_open(t, &f, &graph);
    const void *gone = f.buffers[0];
    T_OK(t, gt_free(&f, 0));
    T_OK(t, gt_begin(&f, graph));
    T_FAILS(t, gt_add(&f, gone, f.buffers[1], f.buffers[2]), STALE, "memory that was freed");
    T_FAILS(t, rondo_graph_capture_end(graph, f.stream), CAPTURE_INVALIDATED, "memory that was freed");
    T_OK(t, gt_begin(&f, graph)); /* nothing is left behind */
    T_OK(t, gt_add(&f, f.buffers[1], f.buffers[3], f.buffers[2]));
    T_OK(t, rondo_graph_capture_end(graph, f.stream));
    T_OK(t, gt_replay(&f, graph));
}

static void test_found_when_it_runs(rondo_test *t) {
    graph_fixture f;
    rondo_graph *graph;
    gt_open(t, &f, "sim");
    freed_graph_open(t, &f, &graph);
    const void *gone = f.buffers[0];
    T_OK(t, gt_free(&f, 0));
    T_OK(t, gt_begin(&f, graph));
    rondo_status status = gt_add(&f, gone, f.buffers[1], f.buffers[2]);
    if (!status) {
        T_OK(t, rondo_graph_capture_end(graph, f.stream));
        T_FAILS(t, gt_replay(&f, graph), KERNEL_FAILED, "freed");
    }
    rondo_status_release(status);
}

static void freed_bound(rondo_test *t, rondo_slot_policy policy) {
    graph_fixture f;
    rondo_graph *graph;
    gt_open(t, &f, "cpu");
    freed_graph_open(t, &f, &graph);
    T_OK(t, rondo_graph_declare_slot(graph, 0, f.buffers[0], GT_BYTES, RONDO_ACCESS_READ, policy));
    T_OK(t, gt_begin(&f, graph));
    T_OK(t, gt_add(&f, f.buffers[0], f.buffers[1], f.buffers[2]));
    T_OK(t, gt_add(&f, f.buffers[3], f.buffers[1], f.buffers[4]));
    T_OK(t, rondo_graph_capture_end(graph, f.stream));
    void *gone = f.buffers[5];
    T_OK(t, gt_free(&f, 5));
    T_FAILS(t, rondo_graph_bind(graph, 0, gone), STALE, "memory that was freed");
    const rondo_argument arguments[4] = {{gt_word(gone), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(f.buffers[1]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(f.buffers[4]), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                         {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    T_FAILS(t, rondo_graph_update(graph, 1, arguments, 4), STALE, "memory that was freed");
    T_OK(t, gt_replay(&f, graph)); /* what was refused changed nothing */
}

static void test_rebound(rondo_test *t) { freed_bound(t, RONDO_SLOT_REBIND); }
static void test_copied(rondo_test *t) { freed_bound(t, RONDO_SLOT_COPY); }

/* Plain: without memory for a segment the allocator takes exact ones, which go back at once. */
RONDO_TEST_MAIN(T_PLAIN(test_in_a_capture), T_PLAIN(test_found_when_it_runs), T_PLAIN(test_rebound),
                T_PLAIN(test_copied))
