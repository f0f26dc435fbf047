/* SPDX-License-Identifier: Apache-2.0
 *
 * Replay: stale addresses are named and never used, order over streams, failures by name. */
#include "graph/graph_testing.h"

typedef struct replay_fixture {
    graph_fixture f;
    rondo_graph *graph;
} replay_fixture;

static void replay_open(rondo_test *t, replay_fixture *r, const char *device) {
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    gt_open(t, &r->f, device);
    options.name = "g";
    T_OK(t, rondo_graph_create(r->f.device, &options, &r->graph));
    T_DEFER(t, rondo_graph_release, r->graph);
}

/* node 0: 2 = 0 + 1; node 1 'Add_1': 4 = 2 + 3. */
static void replay_capture_two(replay_fixture *r) {
    rondo_test *t = r->f.t;
    T_OK(t, gt_begin(&r->f, r->graph));
    T_OK(t, gt_add_named(&r->f, r->f.stream, NULL, r->f.buffers[0], r->f.buffers[1], r->f.buffers[2]));
    T_OK(t, gt_add_named(&r->f, r->f.stream, "Add_1", r->f.buffers[2], r->f.buffers[3], r->f.buffers[4]));
    T_OK(t, rondo_graph_capture_end(r->graph, r->f.stream));
}

static void test_freed_input(rondo_test *t, const char *device) {
    replay_fixture r;
    replay_open(t, &r, device);
    replay_capture_two(&r);
    T_OK(t, gt_replay(&r.f, r.graph));
    T_NEAR(t, r.f.buffers[4][0], 400.0, 0.0);
    T_OK(t, gt_free(&r.f, 3));
    r.f.buffers[4][0] = -1.0f;
    for (int i = 0; i < 3; i++) {
        T_FAILS(t, rondo_graph_replay(r.graph, r.f.stream), STALE, "node 1 'Add_1', argument 1");
        T_FAILS(t, rondo_graph_replay(r.graph, r.f.stream), STALE, "freed by rondo_memory_free");
    }
    T_OK(t, rondo_stream_synchronize(r.f.stream));
    T_NEAR(t, r.f.buffers[4][0], -1.0, 0.0); /* nothing ran */
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    T_OK(t, rondo_graph_get_info(r.graph, &info));
    T_EQ(t, info.replays, 1);
}
GT_BOTH(test_freed_input)

/* The address is in use again, by somebody else: still stale. */
static void test_freed_and_given_out_again(rondo_test *t) {
    replay_fixture r;
    replay_open(t, &r, "cpu");
    gt_enlarge(&r.f, 0);
    replay_capture_two(&r);
    gt_recycle(&r.f, 0);
    T_FAILS(t, rondo_graph_replay(r.graph, r.f.stream), STALE, "node 0, argument 0");
}

static void test_other_memory_may_go(rondo_test *t, const char *device) {
    replay_fixture r;
    replay_open(t, &r, device);
    replay_capture_two(&r);
    T_OK(t, gt_free(&r.f, 6)); /* never mentioned */
    T_OK(t, gt_replay(&r.f, r.graph));
    /* An update that leaves a buffer makes its freeing harmless. */
    const rondo_argument arguments[4] = {{gt_word(r.f.buffers[5]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(r.f.buffers[1]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(r.f.buffers[2]), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                         {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    T_OK(t, rondo_graph_update(r.graph, 0, arguments, 4));
    T_OK(t, gt_free(&r.f, 0));
    T_OK(t, gt_replay(&r.f, r.graph));
    T_NEAR(t, r.f.buffers[4][1], 500.0 + 100.0 + 300.0 + 3.0, 0.0);
    /* And the other way: what it came to mention is watched. */
    T_OK(t, gt_free(&r.f, 5));
    T_FAILS(t, rondo_graph_replay(r.graph, r.f.stream), STALE, "node 0, argument 0");
}
GT_BOTH(test_other_memory_may_go)

/* The same address, freed and allocated anew, is fine once the node was updated to it. */
static void test_update_to_the_new_owner(rondo_test *t, const char *device) {
    replay_fixture r;
    void *memory = NULL;
    replay_open(t, &r, device);
    replay_capture_two(&r);
    T_OK(t, gt_free(&r.f, 0));
    T_OK(t, rondo_memory_allocate(r.f.device, GT_BYTES, &memory));
    r.f.buffers[0] = memory;
    for (unsigned i = 0; i < GT_FLOATS; i++) r.f.buffers[0][i] = 1.0f;
    T_FAILS(t, rondo_graph_replay(r.graph, r.f.stream), STALE, NULL);
    const rondo_argument arguments[4] = {{gt_word(memory), 0, RONDO_ACCESS_BOTH, 0},
                                         {gt_word(r.f.buffers[1]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(r.f.buffers[2]), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                         {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    T_OK(t, rondo_graph_update(r.graph, 0, arguments, 4));
    T_OK(t, gt_replay(&r.f, r.graph));
    T_NEAR(t, r.f.buffers[2][3], 104.0, 0.0);
}
GT_BOTH(test_update_to_the_new_owner)

/* Freed, left by an update, given out again, and come back to by another: it is the new owner's. */
static void test_update_back_to_an_address(rondo_test *t) {
    replay_fixture r;
    replay_open(t, &r, "cpu");
    gt_enlarge(&r.f, 0);
    replay_capture_two(&r);
    rondo_argument arguments[4] = {{gt_word(r.f.buffers[5]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                   {gt_word(r.f.buffers[1]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                   {gt_word(r.f.buffers[2]), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                   {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    uint64_t address = gt_word(r.f.buffers[0]);
    T_OK(t, rondo_graph_update(r.graph, 0, arguments, 4));
    gt_recycle(&r.f, 0);
    T_OK(t, gt_replay(&r.f, r.graph));
    arguments[0].word = address;
    T_OK(t, rondo_graph_update(r.graph, 0, arguments, 4));
    T_OK(t, gt_replay(&r.f, r.graph));
    T_NEAR(t, r.f.buffers[2][3], 106.0, 0.0);
    T_OK(t, gt_free(&r.f, 0));
    T_FAILS(t, rondo_graph_replay(r.graph, r.f.stream), STALE, "node 0, argument 0");
}

static void test_update_checks(rondo_test *t, const char *device) {
    replay_fixture r;
    replay_open(t, &r, device);
    T_OK(t, gt_begin(&r.f, r.graph));
    T_OK(t, gt_add(&r.f, r.f.buffers[0], r.f.buffers[1], r.f.buffers[2]));
    T_OK(t, rondo_stream_fill(r.f.stream, r.f.buffers[3], 1, 8));
    T_OK(t, rondo_stream_copy(r.f.stream, r.f.buffers[4], r.f.buffers[3], GT_BYTES, RONDO_COPY_DEVICE_TO_DEVICE));
    T_OK(t, rondo_graph_capture_end(r.graph, r.f.stream));
    rondo_argument arguments[4] = {{gt_word(r.f.buffers[0]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                   {gt_word(r.f.buffers[1]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                   {gt_word(r.f.buffers[5] + 1), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                   {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    T_FAILS(t, rondo_graph_update(r.graph, 0, arguments, 3), INVALID_ARGUMENT, "recorded with 4 arguments, not 3");
    T_FAILS(t, rondo_graph_update(r.graph, 0, NULL, 4), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_update(r.graph, 3, arguments, 4), OUT_OF_RANGE, "no node 3");
    T_FAILS(t, rondo_graph_update(r.graph, 0, arguments, 4), OUT_OF_RANGE, "argument 2 of node 0 'add'");
    T_OK(t, gt_replay(&r.f, r.graph)); /* a refused update changed nothing */
    T_NEAR(t, r.f.buffers[2][0], 100.0, 0.0);
    /* A fill and a copy are updated by their words. */
    const rondo_argument fill[3] = {{gt_word(r.f.buffers[3]), 0, RONDO_ACCESS_BOTH, 0}, {0, 0, 0, 0}, {4, 0, 0, 0}};
    const rondo_argument wide[3] = {{gt_word(r.f.buffers[3]), 0, RONDO_ACCESS_BOTH, 0}, {256, 0, 0, 0}, {4, 0, 0, 0}};
    const rondo_argument copy[3] = {{gt_word(r.f.buffers[6]), 0, RONDO_ACCESS_BOTH, 0},
                                    {gt_word(r.f.buffers[3]), 0, RONDO_ACCESS_BOTH, 0},
                                    {8, 0, 0, 0}};
    T_FAILS(t, rondo_graph_update(r.graph, 1, wide, 3), INVALID_ARGUMENT, "not a byte");
    T_OK(t, rondo_graph_update(r.graph, 1, fill, 3));
    T_OK(t, rondo_graph_update(r.graph, 2, copy, 3));
    r.f.buffers[3][0] = r.f.buffers[3][1] = 9.0f;
    T_OK(t, gt_replay(&r.f, r.graph));
    T_NEAR(t, r.f.buffers[6][0], 0.0, 0.0);
    T_NEAR(t, r.f.buffers[6][1], 9.0, 0.0);
    T_NEAR(t, r.f.buffers[6][2], 602.0, 0.0);
}
GT_BOTH(test_update_checks)

static int32_t refuse_call(void *user) { return *(int32_t *)user; }

static void test_host_calls_cannot_be_updated(rondo_test *t, const char *device) {
    replay_fixture r;
    int32_t answer = 0;
    replay_open(t, &r, device);
    T_OK(t, gt_begin(&r.f, r.graph));
    T_OK(t, rondo_stream_host_call(r.f.stream, refuse_call, &answer));
    T_OK(t, rondo_graph_capture_end(r.graph, r.f.stream));
    const rondo_argument arguments[2] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    T_FAILS(t, rondo_graph_update(r.graph, 0, arguments, 2), UNSUPPORTED, "host call");
    T_OK(t, gt_replay(&r.f, r.graph));
}
GT_BOTH(test_host_calls_cannot_be_updated)

static int32_t failing_kernel(const void *context, const uint64_t *words) {
    (void)context;
    return (int32_t)words[0];
}

/* A failing kernel stops the replay where it stands, and the message says which node it was. */
static void test_failure_names_the_node(rondo_test *t, const char *device) {
    replay_fixture r;
    replay_open(t, &r, device);
    const rondo_argument reason = {5, 0, RONDO_ACCESS_VALUE, 0};
    rondo_call call = RONDO_CALL_INIT;
    call.argument_count = 1;
    call.arguments = &reason;
    call.kernel.function = failing_kernel;
    call.name = "Broken_7";
    T_OK(t, gt_begin(&r.f, r.graph));
    T_OK(t, gt_add(&r.f, r.f.buffers[0], r.f.buffers[1], r.f.buffers[2]));
    T_OK(t, rondo_stream_launch(r.f.stream, &call));
    T_OK(t, gt_add(&r.f, r.f.buffers[0], r.f.buffers[1], r.f.buffers[3]));
    T_OK(t, rondo_graph_capture_end(r.graph, r.f.stream));
    T_FAILS(t, gt_replay(&r.f, r.graph), KERNEL_FAILED, "Broken_7");
    T_NEAR(t, r.f.buffers[2][0], 100.0, 0.0);
    T_NEAR(t, r.f.buffers[3][0], 300.0, 0.0);
    T_OK(t, rondo_stream_synchronize(r.f.stream));
}
GT_BOTH(test_failure_names_the_node)

/* A replay on another stream goes behind the one before: each adds 1 to what the last one left. */
static void test_replays_on_two_streams(rondo_test *t, const char *device) {
    replay_fixture r;
    replay_open(t, &r, device);
    for (unsigned i = 0; i < GT_FLOATS; i++) r.f.buffers[0][i] = 0.0f, r.f.buffers[1][i] = 1.0f;
    T_OK(t, gt_begin(&r.f, r.graph));
    T_OK(t, gt_add(&r.f, r.f.buffers[0], r.f.buffers[1], r.f.buffers[2]));
    T_OK(t, rondo_stream_copy(r.f.stream, r.f.buffers[0], r.f.buffers[2], GT_BYTES, RONDO_COPY_DEVICE_TO_DEVICE));
    T_OK(t, rondo_graph_capture_end(r.graph, r.f.stream));
    for (int i = 0; i < 10; i++) T_OK(t, rondo_graph_replay(r.graph, i % 3 ? r.f.other : r.f.stream));
    T_OK(t, rondo_stream_synchronize(r.f.other));
    T_OK(t, rondo_stream_synchronize(r.f.stream));
    T_NEAR(t, r.f.buffers[0][7], 10.0, 0.0);
}
GT_BOTH(test_replays_on_two_streams)

/* Update and release wait for what is in flight. */
static void test_change_waits_for_the_replay(rondo_test *t, const char *device) {
    replay_fixture r;
    replay_open(t, &r, device);
    replay_capture_two(&r);
    const rondo_argument arguments[4] = {{gt_word(r.f.buffers[5]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(r.f.buffers[1]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(r.f.buffers[6]), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                         {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    T_OK(t, rondo_graph_replay(r.graph, r.f.stream));
    T_OK(t, rondo_graph_update(r.graph, 0, arguments, 4));
    T_NEAR(t, r.f.buffers[2][1], 102.0, 0.0); /* it has finished, without a synchronise */
    T_OK(t, rondo_graph_replay(r.graph, r.f.stream));
    rondo_graph_reset(r.graph);
    T_NEAR(t, r.f.buffers[6][1], 602.0, 0.0);
}
GT_BOTH(test_change_waits_for_the_replay)

static void test_wrong_device(rondo_test *t, const char *device) {
    replay_fixture r;
    rondo_device *elsewhere = NULL;
    replay_open(t, &r, device);
    replay_capture_two(&r);
    T_OK(t, rondo_device_open(r.f.instance, strcmp(device, "cpu") == 0 ? "sim:1" : "cpu", NULL, &elsewhere));
    T_DEFER(t, rondo_device_release, elsewhere);
    T_FAILS(t, rondo_graph_replay(r.graph, rondo_stream_default(elsewhere)), INVALID_ARGUMENT, "device");
    T_OK(t, gt_replay(&r.f, r.graph));
}
GT_BOTH(test_wrong_device)

static void test_foreign_memory_is_unverified(rondo_test *t, const char *device) {
    replay_fixture r;
    static float mine[GT_FLOATS];
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    replay_open(t, &r, device);
    if (!(rondo_device_info(r.f.device)->capabilities & RONDO_DEVICE_HOST_ADDRESSABLE)) return;
    T_OK(t, gt_begin(&r.f, r.graph));
    T_OK(t, gt_add(&r.f, mine, r.f.buffers[1], r.f.buffers[2]));
    T_OK(t, rondo_graph_capture_end(r.graph, r.f.stream));
    T_OK(t, rondo_graph_get_info(r.graph, &info));
    T_EQ(t, info.unverified, 1);
    const rondo_argument arguments[4] = {{gt_word(r.f.buffers[0]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(r.f.buffers[1]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(r.f.buffers[2]), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                         {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    T_OK(t, rondo_graph_update(r.graph, 0, arguments, 4));
    T_OK(t, rondo_graph_get_info(r.graph, &info));
    T_EQ(t, info.unverified, 0);
}
GT_BOTH(test_foreign_memory_is_unverified)

RONDO_TEST_MAIN(GT_ENTRIES(test_freed_input), T(test_freed_and_given_out_again), GT_ENTRIES(test_other_memory_may_go),
                GT_ENTRIES(test_update_to_the_new_owner), T(test_update_back_to_an_address),
                GT_ENTRIES(test_update_checks), GT_ENTRIES(test_host_calls_cannot_be_updated),
                GT_ENTRIES(test_failure_names_the_node), GT_ENTRIES(test_replays_on_two_streams),
                GT_ENTRIES(test_change_waits_for_the_replay), GT_ENTRIES(test_wrong_device),
                GT_ENTRIES(test_foreign_memory_is_unverified))
