/* SPDX-License-Identifier: Apache-2.0
 *
 * Slots: declared before capture, bound before a replay, by both policies, and what they refuse. */
#include "graph/graph_testing.h"

typedef struct slots_fixture {
    graph_fixture f;
    rondo_graph *graph;
} slots_fixture;

static void slots_open(rondo_test *t, slots_fixture *s, const char *device) {
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    gt_open(t, &s->f, device);
    options.name = "g";
    T_OK(t, rondo_graph_create(s->f.device, &options, &s->graph));
    T_DEFER(t, rondo_graph_release, s->graph);
}

/* Slot 0 is buffer 0 (read), slot 1 is buffer 2 (written): 2 = 0 + 1, twice over with its halves. */
static void slots_capture(slots_fixture *s, rondo_slot_policy policy) {
    rondo_test *t = s->f.t;
    T_OK(t, rondo_graph_declare_slot(s->graph, 0, s->f.buffers[0], GT_BYTES, RONDO_ACCESS_READ, policy));
    T_OK(t, rondo_graph_declare_slot(s->graph, 1, s->f.buffers[2], GT_BYTES, RONDO_ACCESS_WRITE, policy));
    T_OK(t, gt_begin(&s->f, s->graph));
    T_OK(t, gt_add(&s->f, s->f.buffers[0], s->f.buffers[1], s->f.buffers[2]));
    T_OK(t, rondo_graph_capture_end(s->graph, s->f.stream));
}

static void test_declare_checks(rondo_test *t, const char *device) {
    slots_fixture s;
    slots_open(t, &s, device);
    rondo_graph *g = s.graph;
    float *a = s.f.buffers[0], *b = s.f.buffers[1];
    T_FAILS(t, rondo_graph_declare_slot(g, 1, a, GT_BYTES, 1, 0), OUT_OF_RANGE, "the next one is 0, not 1");
    T_OK(t, rondo_graph_declare_slot(g, 0, a, GT_BYTES, 1, 0));
    T_FAILS(t, rondo_graph_declare_slot(g, 0, b, GT_BYTES, 1, 0), ALREADY_EXISTS, "slot 0");
    T_FAILS(t, rondo_graph_declare_slot(g, 1, a + 4, 4, 1, 0), INVALID_ARGUMENT, "overlaps that of slot 0");
    T_FAILS(t, rondo_graph_declare_slot(g, 1, NULL, 4, 1, 0), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_declare_slot(g, 1, b, 0, 1, 0), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_declare_slot(g, 1, b, UINT64_MAX, 1, 0), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_declare_slot(g, 1, b, 4, 0, 0), INVALID_ARGUMENT, "access");
    T_FAILS(t, rondo_graph_declare_slot(g, 1, b, 4, 4, 0), INVALID_ARGUMENT, "access");
    T_FAILS(t, rondo_graph_declare_slot(g, 1, b, 4, 1, 2), INVALID_ARGUMENT, "policy");
    /* A slot longer than its allocation is found when the capture begins; nothing stays behind. */
    T_OK(t, rondo_graph_declare_slot(g, 1, b, GT_BYTES + 1, 1, 0));
    T_FAILS(t, gt_begin(&s.f, g), OUT_OF_RANGE, "slot 1");
    T_EQ(t, rondo_graph_get_state(g), RONDO_GRAPH_EMPTY);
    rondo_graph_reset(g); /* forgets them */
    T_OK(t, rondo_graph_declare_slot(g, 0, b, GT_BYTES, 1, 0));
    T_OK(t, gt_begin(&s.f, g));
    T_OK(t, rondo_graph_abort(g));
    T_FAILS(t, rondo_graph_declare_slot(g, 0, b, GT_BYTES, 1, 0), ALREADY_EXISTS, NULL); /* abort does not */
}
GT_BOTH(test_declare_checks)

static void bind_and_check(rondo_test *t, const char *device, rondo_slot_policy policy) {
    slots_fixture s;
    slots_open(t, &s, device);
    slots_capture(&s, policy);
    T_OK(t, gt_replay(&s.f, s.graph)); /* where they were declared */
    T_NEAR(t, s.f.buffers[2][1], 102.0, 0.0);
    T_OK(t, rondo_graph_bind(s.graph, 0, s.f.buffers[5]));
    T_OK(t, gt_replay(&s.f, s.graph));
    T_NEAR(t, s.f.buffers[2][1], 602.0, 0.0);
    T_OK(t, rondo_graph_bind(s.graph, 1, s.f.buffers[6]));
    s.f.buffers[2][1] = -1.0f;
    s.f.buffers[5][1] = 1.0f; /* read at the replay, not at bind */
    T_OK(t, gt_replay(&s.f, s.graph));
    T_NEAR(t, s.f.buffers[2][1], -1.0, 0.0);
    T_NEAR(t, s.f.buffers[6][1], 102.0, 0.0);
    for (unsigned i = 0; i < GT_FLOATS; i++) T_NEAR(t, s.f.buffers[6][i], i == 1 ? 102.0 : 600.0 + 2.0 * i, 0.0);
    T_FAILS(t, rondo_graph_bind(s.graph, 2, s.f.buffers[6]), OUT_OF_RANGE, "no slot 2");
    T_FAILS(t, rondo_graph_bind(s.graph, 0, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_bind(s.graph, 0, s.f.buffers[7] + 1), OUT_OF_RANGE, "slot 0");
    T_OK(t, gt_replay(&s.f, s.graph)); /* a refused bind changed nothing */
    T_NEAR(t, s.f.buffers[6][1], 102.0, 0.0);
}
static void test_rebind(rondo_test *t, const char *device) { bind_and_check(t, device, RONDO_SLOT_REBIND); }
static void test_copy(rondo_test *t, const char *device) { bind_and_check(t, device, RONDO_SLOT_COPY); }
GT_BOTH(test_rebind)
GT_BOTH(test_copy)

/* Many calls, parts of the slot, calls of more words than an entry holds, copies and fills: all follow. */
static int32_t sum_kernel(const void *context, const uint64_t *words) {
    (void)context;
    float *out = (float *)(uintptr_t)words[6];
    *out = 0.0f;
    for (int i = 0; i < 6; i++) *out += *(const float *)(uintptr_t)words[i];
    return 0;
}

static void test_parts_of_a_slot(rondo_test *t, const char *device) {
    slots_fixture s;
    slots_open(t, &s, device);
    float *in = s.f.buffers[0], *out = s.f.buffers[3];
    rondo_argument arguments[7];
    for (unsigned i = 0; i < 6; i++) arguments[i] = (rondo_argument){gt_word(in + i), 4, RONDO_ACCESS_READ, 0};
    arguments[6] = (rondo_argument){gt_word(out + 2), 4, RONDO_ACCESS_WRITE, 0};
    rondo_call call = RONDO_CALL_INIT;
    call.argument_count = 7;
    call.arguments = arguments;
    call.kernel.function = sum_kernel;
    T_OK(t, rondo_graph_declare_slot(s.graph, 0, in, GT_BYTES, RONDO_ACCESS_READ, RONDO_SLOT_REBIND));
    T_OK(t, rondo_graph_declare_slot(s.graph, 1, out, GT_BYTES, RONDO_ACCESS_BOTH, RONDO_SLOT_COPY));
    T_OK(t, gt_begin(&s.f, s.graph));
    T_OK(t, rondo_stream_launch(s.f.stream, &call));
    T_OK(t, rondo_stream_copy(s.f.stream, out, in + 7, 8, RONDO_COPY_DEVICE_TO_DEVICE));
    T_OK(t, rondo_stream_fill(s.f.stream, out + 4, 0, 4));
    T_OK(t, rondo_graph_capture_end(s.graph, s.f.stream));
    T_OK(t, rondo_graph_bind(s.graph, 0, s.f.buffers[4]));
    T_OK(t, rondo_graph_bind(s.graph, 1, s.f.buffers[5]));
    T_OK(t, gt_replay(&s.f, s.graph));
    const double want[6] = {407, 408, 2415, 503, 0, 505};
    for (int i = 0; i < 6; i++) T_NEAR(t, s.f.buffers[5][i], want[i], 0.0);
    T_NEAR(t, out[2], 302.0, 0.0); /* the declared buffer is left alone */
}
GT_BOTH(test_parts_of_a_slot)

/* A slot that is written, not wholly, keeps its other bytes. */
static void test_partly_written_copy_slot(rondo_test *t, const char *device) {
    slots_fixture s;
    slots_open(t, &s, device);
    T_OK(t, rondo_graph_declare_slot(s.graph, 0, s.f.buffers[0], GT_BYTES, RONDO_ACCESS_WRITE, RONDO_SLOT_COPY));
    T_OK(t, gt_begin(&s.f, s.graph));
    T_OK(t, rondo_stream_fill(s.f.stream, s.f.buffers[0] + 1, 0, 4));
    T_OK(t, rondo_graph_capture_end(s.graph, s.f.stream));
    T_OK(t, rondo_graph_bind(s.graph, 0, s.f.buffers[1]));
    T_OK(t, gt_replay(&s.f, s.graph));
    T_NEAR(t, s.f.buffers[1][0], 100.0, 0.0);
    T_NEAR(t, s.f.buffers[1][1], 0.0, 0.0);
    T_NEAR(t, s.f.buffers[1][2], 102.0, 0.0);
    T_NEAR(t, s.f.buffers[0][1], 1.0, 0.0);
}
GT_BOTH(test_partly_written_copy_slot)

static void expect_refused(slots_fixture *s, rondo_status status, rondo_code code, const char *part) {
    rondo_test *t = s->f.t;
    rondo_test_code(t, status, code, part, "refused", __FILE__, __LINE__);
    T_EQ(t, rondo_graph_get_state(s->graph), RONDO_GRAPH_INVALIDATED);
    T_FAILS(t, rondo_graph_capture_end(s->graph, s->f.stream), CAPTURE_INVALIDATED, part);
    rondo_graph_reset(s->graph);
}

static void test_what_a_slot_refuses(rondo_test *t, const char *device) {
    slots_fixture s;
    slots_open(t, &s, device);
    float *b = s.f.buffers[0];
    T_OK(t, rondo_graph_declare_slot(s.graph, 0, b, GT_BYTES, RONDO_ACCESS_READ, RONDO_SLOT_COPY));
    T_OK(t, gt_begin(&s.f, s.graph));
    expect_refused(&s, rondo_stream_fill(s.f.stream, b, 0, 4), RONDO_CODE_INVALID_ARGUMENT, "read only");
    T_OK(t, rondo_graph_declare_slot(s.graph, 0, b, 16, RONDO_ACCESS_BOTH, RONDO_SLOT_REBIND));
    T_OK(t, gt_begin(&s.f, s.graph));
    expect_refused(&s, rondo_stream_fill(s.f.stream, b + 1, 0, 16), RONDO_CODE_OUT_OF_RANGE,
                   "beyond the end of slot 0");
    T_OK(t, rondo_graph_declare_slot(s.graph, 0, b + 4, 16, RONDO_ACCESS_BOTH, RONDO_SLOT_REBIND));
    T_OK(t, gt_begin(&s.f, s.graph));
    expect_refused(&s, rondo_stream_fill(s.f.stream, b + 2, 0, 16), RONDO_CODE_INVALID_ARGUMENT,
                   "reaches into the slot");
    /* An argument of unknown length ends with its allocation, so it reaches in as well. */
    const rondo_argument argument = {gt_word(b + 2), 0, RONDO_ACCESS_BOTH, 0};
    rondo_call call = RONDO_CALL_INIT;
    call.argument_count = 1;
    call.arguments = &argument;
    call.kernel = s.f.fill;
    T_OK(t, rondo_graph_declare_slot(s.graph, 0, b + 4, 16, RONDO_ACCESS_BOTH, RONDO_SLOT_REBIND));
    T_OK(t, gt_begin(&s.f, s.graph));
    expect_refused(&s, rondo_stream_launch(s.f.stream, &call), RONDO_CODE_INVALID_ARGUMENT, "give its length");
}
GT_BOTH(test_what_a_slot_refuses)

static void stale_and_bound(rondo_test *t, const char *device, rondo_slot_policy policy) {
    slots_fixture s;
    slots_open(t, &s, device);
    slots_capture(&s, policy);
    T_OK(t, gt_free(&s.f, 0));
    /* Not bound yet: the declared address is gone, and using it would be wrong. */
    T_FAILS(t, rondo_graph_replay(s.graph, s.f.stream), STALE, "slot 0: address");
    T_FAILS(t, rondo_graph_replay(s.graph, s.f.stream), STALE, "Bind the slot anew");
    T_OK(t, rondo_graph_bind(s.graph, 0, s.f.buffers[5]));
    T_OK(t, gt_replay(&s.f, s.graph));
    T_NEAR(t, s.f.buffers[2][1], 602.0, 0.0);
    T_OK(t, gt_free(&s.f, 5));
    T_FAILS(t, rondo_graph_replay(s.graph, s.f.stream), STALE, "where it was bound");
    T_OK(t, rondo_graph_bind(s.graph, 0, s.f.buffers[6]));
    T_OK(t, gt_replay(&s.f, s.graph));
    T_NEAR(t, s.f.buffers[2][1], 702.0, 0.0);
    /* What is no slot is not mended by a bind. */
    T_OK(t, gt_free(&s.f, 1));
    T_OK(t, rondo_graph_bind(s.graph, 0, s.f.buffers[7]));
    T_FAILS(t, rondo_graph_replay(s.graph, s.f.stream), STALE, "node 0 'add', argument 1");
}
static void test_stale_rebind_slot(rondo_test *t, const char *device) { stale_and_bound(t, device, RONDO_SLOT_REBIND); }
static void test_stale_copy_slot(rondo_test *t, const char *device) { stale_and_bound(t, device, RONDO_SLOT_COPY); }
GT_BOTH(test_stale_rebind_slot)
GT_BOTH(test_stale_copy_slot)

static int32_t do_nothing(void *user) {
    (void)user;
    return 0;
}

static void test_opaque_graph_refuses_bind(rondo_test *t, const char *device) {
    slots_fixture s;
    slots_open(t, &s, device);
    T_OK(t, rondo_graph_declare_slot(s.graph, 0, s.f.buffers[0], GT_BYTES, RONDO_ACCESS_READ, RONDO_SLOT_REBIND));
    T_OK(t, gt_begin(&s.f, s.graph));
    T_OK(t, gt_add(&s.f, s.f.buffers[0], s.f.buffers[1], s.f.buffers[2]));
    T_OK(t, rondo_stream_host_call(s.f.stream, do_nothing, NULL));
    T_OK(t, rondo_graph_capture_end(s.graph, s.f.stream));
    T_FAILS(t, rondo_graph_bind(s.graph, 0, s.f.buffers[5]), UNSUPPORTED, "'g' is opaque: node 1 is a host call");
    T_OK(t, gt_replay(&s.f, s.graph));
    T_NEAR(t, s.f.buffers[2][1], 102.0, 0.0);
}
GT_BOTH(test_opaque_graph_refuses_bind)

static void test_bind_waits_for_the_replay(rondo_test *t, const char *device) {
    slots_fixture s;
    slots_open(t, &s, device);
    slots_capture(&s, RONDO_SLOT_COPY);
    T_OK(t, rondo_graph_replay(s.graph, s.f.stream));
    T_OK(t, rondo_graph_bind(s.graph, 0, s.f.buffers[5]));
    T_NEAR(t, s.f.buffers[2][1], 102.0, 0.0);
    T_OK(t, rondo_graph_replay(s.graph, s.f.stream));
    T_OK(t, rondo_graph_bind(s.graph, 1, s.f.buffers[6]));
    T_NEAR(t, s.f.buffers[2][1], 602.0, 0.0);
}
GT_BOTH(test_bind_waits_for_the_replay)

/* An update moves arguments into a slot and out of it, and bind follows. */
static void update_and_bind(rondo_test *t, const char *device, rondo_slot_policy policy) {
    slots_fixture s;
    slots_open(t, &s, device);
    slots_capture(&s, policy);
    rondo_argument arguments[4] = {{gt_word(s.f.buffers[4]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                   {gt_word(s.f.buffers[0]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                   {gt_word(s.f.buffers[2]), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                   {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    T_OK(t, rondo_graph_bind(s.graph, 0, s.f.buffers[5]));
    T_OK(t, rondo_graph_update(s.graph, 0, arguments, 4)); /* the declared address names the slot */
    T_OK(t, gt_replay(&s.f, s.graph));
    T_NEAR(t, s.f.buffers[2][1], 401.0 + 501.0, 0.0);
    T_OK(t, rondo_graph_bind(s.graph, 0, s.f.buffers[6]));
    T_OK(t, gt_replay(&s.f, s.graph));
    T_NEAR(t, s.f.buffers[2][1], 401.0 + 601.0, 0.0);
    arguments[1].word = gt_word(s.f.buffers[7]);
    arguments[2].word = gt_word(s.f.buffers[3]);
    T_OK(t, rondo_graph_update(s.graph, 0, arguments, 4));
    T_OK(t, rondo_graph_bind(s.graph, 0, s.f.buffers[5])); /* mentioned by nobody now */
    s.f.buffers[2][1] = -1.0f;
    T_OK(t, gt_replay(&s.f, s.graph));
    T_NEAR(t, s.f.buffers[3][1], 401.0 + 701.0, 0.0);
    T_NEAR(t, s.f.buffers[2][1], -1.0, 0.0);
}
static void test_update_rebind_slot(rondo_test *t, const char *device) {
    update_and_bind(t, device, RONDO_SLOT_REBIND);
}
static void test_update_copy_slot(rondo_test *t, const char *device) { update_and_bind(t, device, RONDO_SLOT_COPY); }
GT_BOTH(test_update_rebind_slot)
GT_BOTH(test_update_copy_slot)

/* The declared memory was freed and is somebody else's now: an update that names it means that one, not the slot. */
static void test_update_after_the_declared_memory_went(rondo_test *t, const char *device) {
    slots_fixture s;
    void *memory = NULL;
    slots_open(t, &s, device);
    slots_capture(&s, RONDO_SLOT_REBIND);
    T_OK(t, rondo_graph_bind(s.graph, 0, s.f.buffers[5]));
    T_OK(t, gt_free(&s.f, 0));
    T_OK(t, rondo_memory_allocate(s.f.device, GT_BYTES, &memory));
    s.f.buffers[0] = memory;
    for (unsigned i = 0; i < GT_FLOATS; i++) s.f.buffers[0][i] = 1.0f;
    const rondo_argument arguments[4] = {{gt_word(s.f.buffers[4]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(memory), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(s.f.buffers[3]), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                         {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    T_OK(t, rondo_graph_update(s.graph, 0, arguments, 4));
    T_OK(t, gt_replay(&s.f, s.graph));
    T_NEAR(t, s.f.buffers[3][1], 402.0, 0.0);
}
GT_BOTH(test_update_after_the_declared_memory_went)

/* A slot that nobody mentions may lose its memory; the update that brings it back into use finds that out. */
static void update_into_lost_slot(rondo_test *t, const char *device, rondo_slot_policy policy) {
    slots_fixture s;
    slots_open(t, &s, device);
    slots_capture(&s, policy);
    rondo_argument arguments[4] = {{gt_word(s.f.buffers[4]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                   {gt_word(s.f.buffers[1]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                   {gt_word(s.f.buffers[2]), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                   {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    T_OK(t, rondo_graph_bind(s.graph, 0, s.f.buffers[5]));
    T_OK(t, rondo_graph_update(s.graph, 0, arguments, 4));
    T_OK(t, gt_free(&s.f, 5));
    T_OK(t, gt_replay(&s.f, s.graph));
    T_FAILS(t, rondo_graph_update(s.graph, 9, arguments, 4), OUT_OF_RANGE, NULL);
    T_OK(t, gt_replay(&s.f, s.graph));
    T_NEAR(t, s.f.buffers[2][1], 401.0 + 101.0, 0.0);
    arguments[0].word = gt_word(s.f.buffers[0]);
    T_OK(t, rondo_graph_update(s.graph, 0, arguments, 4));
    T_FAILS(t, rondo_graph_replay(s.graph, s.f.stream), STALE, "slot 0");
}
static void test_lost_rebind_slot(rondo_test *t, const char *device) {
    update_into_lost_slot(t, device, RONDO_SLOT_REBIND);
}
static void test_lost_copy_slot(rondo_test *t, const char *device) {
    update_into_lost_slot(t, device, RONDO_SLOT_COPY);
}
GT_BOTH(test_lost_rebind_slot)
GT_BOTH(test_lost_copy_slot)

static void test_copy_buffers_go_with_the_graph(rondo_test *t, const char *device) {
    slots_fixture s;
    uint64_t bytes, before, with, after;
    slots_open(t, &s, device);
    rondo_memory_usage(s.f.device, &bytes, &before);
    slots_capture(&s, RONDO_SLOT_COPY);
    rondo_memory_usage(s.f.device, &bytes, &with);
    T_EQ(t, with, before + 2);
    T_OK(t, rondo_graph_replay(s.graph, s.f.stream));
    rondo_graph_reset(s.graph);
    rondo_memory_usage(s.f.device, &bytes, &after);
    T_EQ(t, after, before);
    T_NEAR(t, s.f.buffers[2][1], 102.0, 0.0);
}
GT_BOTH(test_copy_buffers_go_with_the_graph)

RONDO_TEST_MAIN(GT_ENTRIES(test_declare_checks), GT_ENTRIES(test_rebind), GT_ENTRIES(test_copy),
                GT_ENTRIES(test_parts_of_a_slot), GT_ENTRIES(test_partly_written_copy_slot),
                GT_ENTRIES(test_what_a_slot_refuses), GT_ENTRIES(test_stale_rebind_slot),
                GT_ENTRIES(test_stale_copy_slot), GT_ENTRIES(test_opaque_graph_refuses_bind),
                GT_ENTRIES(test_bind_waits_for_the_replay), GT_ENTRIES(test_update_rebind_slot),
                GT_ENTRIES(test_update_copy_slot), GT_ENTRIES(test_update_after_the_declared_memory_went),
                GT_ENTRIES(test_lost_rebind_slot), GT_ENTRIES(test_lost_copy_slot),
                GT_ENTRIES(test_copy_buffers_go_with_the_graph))
