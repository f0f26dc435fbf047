/* SPDX-License-Identifier: Apache-2.0
 *
 * Troubles that users of graph capture reported elsewhere, each as the smallest sequence that shows it; docs/cases.md lists
 * them all and where the others are. */
#include <pthread.h>
#include <stdlib.h>

#include "graph/graph_testing.h"

typedef struct cases_fixture {
    graph_fixture f;
    rondo_graph *graph;
    rondo_device *second;
    rondo_stream *far_stream;
    rondo_event *event;
    float *far[3]; /* of the second device */
} cases_fixture;

static void cases_close(cases_fixture *c) {
    rondo_graph_release(c->graph);
    rondo_event_release(c->event);
    for (unsigned i = 0; i < 3; i++)
        if (c->far[i]) rondo_status_release(rondo_memory_free(c->second, c->far[i]));
    rondo_stream_release(c->far_stream);
    rondo_device_release(c->second);
}

static void cases_open(rondo_test *t, cases_fixture *c, const char *device, bool second) {
    gt_open(t, &c->f, device);
    c->graph = NULL;
    c->second = NULL;
    c->far_stream = NULL;
    c->event = NULL;
    memset(c->far, 0, sizeof c->far);
    T_DEFER(t, cases_close, c);
    if (!second) {
        T_OK(t, rondo_graph_create(c->f.device, NULL, &c->graph));
        return;
    }
    T_OK(t, rondo_device_open(c->f.instance, "sim:1", NULL, &c->second));
    T_OK(t, rondo_stream_create(c->second, NULL, &c->far_stream));
    for (unsigned i = 0; i < 3; i++) {
        T_OK(t, rondo_memory_allocate(c->second, GT_BYTES, (void **)&c->far[i]));
        for (unsigned j = 0; j < GT_FLOATS; j++) c->far[i][j] = (float)(10u * i + j);
    }
}

/* A01: nothing depends on a current device. Work of the second device is captured there while the first is open and
 * in use, and what is of different devices is refused at once, naming both. */
static void test_a01_second_device(rondo_test *t) {
    cases_fixture c;
    cases_open(t, &c, "sim", true);
    T_OK(t, rondo_graph_create(c.second, NULL, &c.graph));
    T_FAILS(t, rondo_graph_capture_begin(c.graph, c.f.stream, (rondo_pool_id){0, 0}, 0), INVALID_ARGUMENT, "'sim:1'");
    T_FAILS(t, rondo_graph_capture_begin(c.graph, c.f.stream, (rondo_pool_id){0, 0}, 0), INVALID_ARGUMENT, "'sim:0'");
    T_OK(t, rondo_graph_capture_begin(c.graph, c.far_stream, (rondo_pool_id){0, 0}, 0));
    T_OK(t, gt_add_named(&c.f, c.far_stream, "far", c.far[0], c.far[1], c.far[2]));
    T_OK(t, gt_add(&c.f, c.f.buffers[0], c.f.buffers[1], c.f.buffers[2])); /* the first device runs on */
    T_OK(t, rondo_stream_synchronize(c.f.stream));
    T_OK(t, rondo_graph_capture_end(c.graph, c.far_stream));
    T_OK(t, rondo_graph_replay(c.graph, c.far_stream));
    T_OK(t, rondo_stream_synchronize(c.far_stream));
    T_NEAR(t, c.far[2][1], 12.0, 0.0);
    T_NEAR(t, c.f.buffers[2][1], 102.0, 0.0);
    T_FAILS(t, rondo_graph_replay(c.graph, c.f.stream), INVALID_ARGUMENT, "'sim:1'");
}

/* A05: there is no stream that all others wait for. Another thread's work on the default stream neither joins a capture
 * nor breaks it. */
static void *a05_work(void *argument) {
    cases_fixture *c = argument;
    rondo_stream *stream = rondo_stream_default(c->f.device);
    rondo_status status = gt_add_named(&c->f, stream, "aside", c->f.buffers[3], c->f.buffers[3], c->f.buffers[4]);
    if (!status) status = rondo_stream_synchronize(stream);
    return status;
}

static void test_a05_the_default_stream_is_apart(rondo_test *t, const char *device) {
    cases_fixture c;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    pthread_t thread;
    void *status;
    cases_open(t, &c, device, false);
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, gt_add(&c.f, c.f.buffers[0], c.f.buffers[1], c.f.buffers[2]));
    T_EQ(t, pthread_create(&thread, NULL, a05_work, &c), 0);
    (void)pthread_join(thread, &status);
    T_OK(t, (rondo_status)status);
    T_NEAR(t, c.f.buffers[4][1], 602.0, 0.0); /* it ran */
    T_OK(t, rondo_graph_capture_end(c.graph, c.f.stream));
    T_OK(t, rondo_graph_get_info(c.graph, &info));
    T_EQ(t, info.nodes, 1);
    rondo_graph_reset(c.graph);
    T_EQ(t, c.f.warnings, 0);
    T_OK(t, rondo_stream_synchronize(c.f.stream));
}
GT_BOTH(test_a05_the_default_stream_is_apart)

/* A31: an input that arrives at a new address. A slot says that it may; with policy copy the graph reads it wherever it
 * is bound to, and an address that nobody bound is one that the graph does not look at. */
static void test_a31_input_at_a_new_address(rondo_test *t, const char *device) {
    cases_fixture c;
    cases_open(t, &c, device, false);
    T_OK(t, rondo_graph_declare_slot(c.graph, 0, c.f.buffers[0], GT_BYTES, RONDO_ACCESS_READ, RONDO_SLOT_COPY));
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, gt_add(&c.f, c.f.buffers[0], c.f.buffers[1], c.f.buffers[2]));
    T_OK(t, rondo_graph_capture_end(c.graph, c.f.stream));
    for (unsigned fresh = 3; fresh < 8; fresh++) {
        T_OK(t, rondo_graph_bind(c.graph, 0, c.f.buffers[fresh]));
        T_OK(t, gt_replay(&c.f, c.graph));
        T_NEAR(t, c.f.buffers[2][2], 100.0 * fresh + 2 + 102, 0.0);
    }
    T_OK(t, gt_free(&c.f, 7)); /* where it was last */
    T_FAILS(t, rondo_graph_replay(c.graph, c.f.stream), STALE, "slot 0");
}
GT_BOTH(test_a31_input_at_a_new_address)

/* A33: only the source of one copy moves from step to step: each step sees its own bytes. */
static void test_a33_moving_source(rondo_test *t, const char *device) {
    cases_fixture c;
    cases_open(t, &c, device, false);
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, rondo_stream_copy(c.f.stream, c.f.buffers[2], c.f.buffers[0], 8, RONDO_COPY_DEVICE_TO_DEVICE));
    T_OK(t, gt_add(&c.f, c.f.buffers[2], c.f.buffers[1], c.f.buffers[3]));
    T_OK(t, rondo_graph_capture_end(c.graph, c.f.stream));
    for (unsigned step = 0; step < 3; step++) {
        const rondo_argument arguments[3] = {{gt_word(c.f.buffers[2]), 0, RONDO_ACCESS_WRITE, 0},
                                             {gt_word(c.f.buffers[0] + 2u * step), 0, RONDO_ACCESS_READ, 0},
                                             {8, 0, RONDO_ACCESS_VALUE, 0}};
        T_OK(t, rondo_graph_update(c.graph, 0, arguments, 3));
        T_OK(t, gt_replay(&c.f, c.graph));
        T_NEAR(t, c.f.buffers[3][1], 2.0 * step + 1 + 101, 0.0);
    }
}
GT_BOTH(test_a33_moving_source)

/* A41, A43: what a launch is given by value is kept by value, every byte of it, for each node its own; more words than an
 * entry has, too. */
typedef struct narrow {
    uint32_t a;
    uint64_t b;
    float c;
    char d[12];
} narrow;

static unsigned narrow_seen;

static int32_t narrow_kernel(const void *context, const uint64_t *words) {
    const narrow *want = context;
    char d[16];
    float c;
    memcpy(&c, &words[2], sizeof c);
    memcpy(d, &words[3], sizeof d);
    bool same = words[0] == want->a && words[1] == want->b && c == want->c && memcmp(d, want->d, 12) == 0;
    for (unsigned i = 5; i < 9; i++) same = same && words[i] == want->a + i;
    narrow_seen += same;
    return !same;
}

static rondo_status narrow_launch(const cases_fixture *c, const narrow *values, uint32_t words) {
    rondo_argument arguments[9] = {{values->a, 0, RONDO_ACCESS_VALUE, 0}, {values->b, 0, RONDO_ACCESS_VALUE, 0}};
    rondo_call call = {sizeof call, words, {narrow_kernel, values}, arguments, "narrow"};
    char d[16] = {0};
    memcpy(d, values->d, 12);
    memcpy(&arguments[2].word, &values->c, 4);
    memcpy(&arguments[3].word, d, 8);
    memcpy(&arguments[4].word, d + 8, 8);
    for (uint32_t i = 5; i < words; i++) arguments[i].word = values->a + i;
    rondo_status status = rondo_stream_launch(c->f.stream, &call);
    memset(arguments, 0xff, sizeof arguments); /* copied by now */
    return status;
}

static void test_a41_a43_values_are_kept(rondo_test *t, const char *device) {
    static const narrow one = {0xfffffffe, UINT64_C(0xfedcba9876543210), -0.0f, "twelve bytes"},
                        two = {7, 1, 3.5f, "\1\2\3\4\5\6\7\10\11\12\13"};
    cases_fixture c;
    cases_open(t, &c, device, false);
    narrow_seen = 0;
    T_OK(t, narrow_launch(&c, &one, 9)); /* eagerly */
    T_OK(t, rondo_stream_synchronize(c.f.stream));
    T_EQ(t, narrow_seen, 1);
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, narrow_launch(&c, &one, 9));
    T_OK(t, narrow_launch(&c, &two, 9));
    T_OK(t, rondo_graph_capture_end(c.graph, c.f.stream));
    T_EQ(t, narrow_seen, 1);
    for (int i = 0; i < 3; i++) T_OK(t, gt_replay(&c.f, c.graph));
    T_EQ(t, narrow_seen, 7);
}
GT_BOTH(test_a41_a43_values_are_kept)

/* D05, D17: an event and a stream of two devices are refused in any order; a stream whose first use is an event works. */
static void test_d05_d17_events_of_two_devices(rondo_test *t) {
    cases_fixture c;
    cases_open(t, &c, "sim", true);
    T_OK(t, rondo_event_create(c.second, &c.event));
    T_FAILS(t, rondo_event_record(c.event, c.f.stream), INVALID_ARGUMENT, "'sim:1'");
    T_OK(t, rondo_event_record(c.event, c.far_stream));
    T_FAILS(t, rondo_event_wait(c.event, c.f.stream), INVALID_ARGUMENT, "'sim:0'");
    T_OK(t, rondo_event_synchronize(c.event));
    /* In a capture, too, which goes on. */
    T_OK(t, rondo_graph_create(c.second, NULL, &c.graph));
    T_OK(t, rondo_graph_capture_begin(c.graph, c.far_stream, (rondo_pool_id){0, 0}, 0));
    T_OK(t, rondo_event_record(c.event, c.far_stream));
    T_FAILS(t, rondo_event_wait(c.event, c.f.stream), INVALID_ARGUMENT, "'sim:0'");
    T_OK(t, rondo_graph_capture_end(c.graph, c.far_stream));
}

/* D15: a stream made while another captures, maybe at the address of one that went, is in no capture; two captures at
 * once take random numbers of one generator each for itself. */
static void test_d15_identity_is_a_capture_id(rondo_test *t, const char *device) {
    cases_fixture c;
    rondo_graph *other = NULL;
    rondo_stream *gone = NULL;
    rondo_generator *generator = NULL;
    rondo_capture_status status = RONDO_CAPTURE_STATUS_INIT;
    uint32_t first[4], second[8];
    cases_open(t, &c, device, false);
    T_OK(t, rondo_graph_create(c.f.device, NULL, &other));
    T_DEFER(t, rondo_graph_release, other);
    T_OK(t, rondo_generator_create(c.f.device, 3, &generator));
    T_DEFER(t, rondo_generator_release, generator);
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, rondo_random_fill(c.f.stream, generator, RONDO_DISTRIBUTION_BITS, c.f.buffers[0], 4, 0, 0));
    for (int i = 0; i < 4; i++) {
        T_OK(t, rondo_stream_create(c.f.device, NULL, &gone));
        rondo_status asked = rondo_stream_capture_status(gone, &status);
        rondo_stream_release(gone);
        T_OK(t, asked);
        T_EQ(t, status.active, 0);
    }
    T_OK(t, rondo_graph_capture_begin(other, c.f.other, (rondo_pool_id){0, 0}, 0));
    T_OK(t, rondo_random_fill(c.f.other, generator, RONDO_DISTRIBUTION_BITS, c.f.buffers[1], 8, 0, 0));
    T_OK(t, rondo_random_fill(c.f.stream, generator, RONDO_DISTRIBUTION_BITS, c.f.buffers[2], 4, 0, 0));
    T_OK(t, rondo_graph_capture_end(other, c.f.other));
    T_OK(t, rondo_graph_capture_end(c.graph, c.f.stream));
    T_OK(t, gt_replay(&c.f, c.graph));
    T_OK(t, rondo_graph_replay(other, c.f.other));
    T_OK(t, rondo_stream_synchronize(c.f.other));
    for (unsigned block = 0; block < 4; block++) {
        const float *from = block == 0 ? c.f.buffers[0] : block == 1 ? c.f.buffers[2] : c.f.buffers[1];
        memcpy(second, from, sizeof second);
        rondo__rng_philox(block, 3, first);
        T_EQ(t, memcmp(first, second + (block == 3 ? 4 : 0), sizeof first), 0);
    }
}
GT_BOTH(test_d15_identity_is_a_capture_id)

RONDO_TEST_MAIN(T(test_a01_second_device), GT_ENTRIES(test_a05_the_default_stream_is_apart),
                GT_ENTRIES(test_a31_input_at_a_new_address), GT_ENTRIES(test_a33_moving_source),
                GT_ENTRIES(test_a41_a43_values_are_kept), T(test_d05_d17_events_of_two_devices),
                GT_ENTRIES(test_d15_identity_is_a_capture_id))
