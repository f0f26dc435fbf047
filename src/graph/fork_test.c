/* SPDX-License-Identifier: Apache-2.0
 *
 * Captures of several streams: fork, join, what may not be joined, and that the order is kept under every seed of the
 * simulator, which also finds two accesses without an order between them. */
#include <stdio.h>
#include <stdlib.h>

#include "graph/graph_testing.h"

#define FORK_STREAMS 4u
#define FORK_EVENTS 64u
#define FORK_SEEDS 25u

typedef struct fork_fixture {
    graph_fixture f;
    rondo_graph *graph;
    rondo_stream *streams[FORK_STREAMS]; /* [0] and [1] are the fixture's */
    rondo_event *events[FORK_EVENTS];
} fork_fixture;

static void fork_close(fork_fixture *c) {
    for (unsigned i = 0; i < FORK_EVENTS; i++) rondo_event_release(c->events[i]);
    rondo_graph_release(c->graph);
    for (unsigned i = 2; i < FORK_STREAMS; i++) rondo_stream_release(c->streams[i]);
}

static void fork_open(rondo_test *t, fork_fixture *c, const char *device) {
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    gt_open(t, &c->f, device);
    memset(c->streams, 0, sizeof c->streams);
    memset(c->events, 0, sizeof c->events);
    c->graph = NULL;
    T_DEFER(t, fork_close, c);
    options.name = "g";
    T_OK(t, rondo_graph_create(c->f.device, &options, &c->graph));
    c->streams[0] = c->f.stream;
    c->streams[1] = c->f.other;
    for (unsigned i = 2; i < FORK_STREAMS; i++) T_OK(t, rondo_stream_create(c->f.device, NULL, &c->streams[i]));
    for (unsigned i = 0; i < 8u; i++) T_OK(t, rondo_event_create(c->f.device, &c->events[i]));
}

/* `to` waits for what `from` has, by event number `event`. */
static rondo_status after(fork_fixture *c, unsigned event, unsigned from, unsigned to) {
    RONDO__TRY(rondo_event_record(c->events[event], c->streams[from]));
    return rondo_event_wait(c->events[event], c->streams[to]);
}

static rondo_status add_on(const fork_fixture *c, unsigned stream, unsigned a, unsigned b, unsigned out) {
    char name[16];
    (void)snprintf(name, sizeof name, "b%u", out);
    return gt_add_named(&c->f, c->streams[stream], name, c->f.buffers[a], c->f.buffers[b], c->f.buffers[out]);
}

static void expect_streams_free(fork_fixture *c) {
    rondo_capture_status status = RONDO_CAPTURE_STATUS_INIT;
    for (unsigned i = 0; i < FORK_STREAMS; i++) {
        T_OK(c->f.t, rondo_stream_capture_status(c->streams[i], &status));
        T_EQ(c->f.t, status.active, 0);
        T_EQ(c->f.t, status.id, 0);
        T_OK(c->f.t, rondo_stream_synchronize(c->streams[i]));
    }
}

static void expect_diamond(fork_fixture *c) {
    for (unsigned i = 0; i < GT_FLOATS; i++) { /* buffers 0 and 1 are i and 100 + i */
        double sum = 100.0 + 2 * i;
        T_NEAR(c->f.t, c->f.buffers[2][i], sum, 0.0);
        T_NEAR(c->f.t, c->f.buffers[3][i], sum + i, 0.0);
        T_NEAR(c->f.t, c->f.buffers[4][i], sum + 100 + i, 0.0);
        T_NEAR(c->f.t, c->f.buffers[5][i], 2 * sum + 100 + 2 * i, 0.0);
    }
}

static rondo_status capture_diamond(fork_fixture *c) {
    RONDO__TRY(gt_begin(&c->f, c->graph));
    RONDO__TRY(add_on(c, 0, 0, 1, 2));
    RONDO__TRY(after(c, 0, 0, 1));
    RONDO__TRY(add_on(c, 1, 2, 1, 4));
    RONDO__TRY(add_on(c, 0, 2, 0, 3));
    RONDO__TRY(after(c, 1, 1, 0));
    RONDO__TRY(add_on(c, 0, 3, 4, 5));
    return rondo_graph_capture_end(c->graph, c->f.stream);
}

static void test_diamond(rondo_test *t, const char *device) {
    fork_fixture c;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    fork_open(t, &c, device);
    T_OK(t, capture_diamond(&c));
    expect_streams_free(&c);
    T_OK(t, rondo_graph_get_info(c.graph, &info));
    T_EQ(t, info.nodes, 4);
    T_EQ(t, info.lanes, 2);
    T_EQ(t, info.edges, 4);
    for (unsigned round = 0; round < 4; round++) { /* on any stream of the device, one it was captured on or not */
        for (unsigned b = 2; b < 6; b++) T_OK(t, rondo_stream_fill(c.streams[round], c.f.buffers[b], 0xff, GT_BYTES));
        T_OK(t, rondo_graph_replay(c.graph, c.streams[round]));
        T_OK(t, rondo_stream_synchronize(c.streams[round]));
        expect_diamond(&c);
    }
    /* And once more over itself, without anybody waiting in between. */
    T_OK(t, rondo_graph_replay(c.graph, c.streams[2]));
    T_OK(t, rondo_graph_replay(c.graph, c.streams[3]));
    T_OK(t, rondo_stream_synchronize(c.streams[3]));
    expect_diamond(&c);
}
GT_BOTH(test_diamond)

/* 0 forks 1, 1 forks 2 before it has work of its own, 2 joins 1, 1 joins 0; stream 2 comes back a second time. */
static void test_nested_forks(rondo_test *t, const char *device) {
    fork_fixture c;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    rondo_capture_status first = RONDO_CAPTURE_STATUS_INIT, status = RONDO_CAPTURE_STATUS_INIT;
    fork_open(t, &c, device);
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, after(&c, 0, 0, 1)); /* before any node */
    T_OK(t, after(&c, 1, 1, 2));
    T_OK(t, rondo_stream_capture_status(c.streams[0], &first));
    for (unsigned i = 1; i < 4; i++) {
        T_OK(t, rondo_stream_capture_status(c.streams[i], &status));
        T_EQ(t, status.active, i < 3);
        T_EQ(t, status.id, i < 3 ? first.id : 0);
    }
    T_OK(t, add_on(&c, 2, 0, 1, 2));
    T_OK(t, after(&c, 2, 2, 1));
    T_OK(t, add_on(&c, 1, 2, 2, 3));
    T_OK(t, add_on(&c, 0, 0, 0, 4));
    T_OK(t, after(&c, 3, 1, 0));
    T_OK(t, add_on(&c, 0, 3, 4, 5));
    T_OK(t, after(&c, 4, 0, 2)); /* the same stream again */
    T_OK(t, add_on(&c, 2, 5, 5, 6));
    T_OK(t, after(&c, 5, 2, 0));
    T_OK(t, add_on(&c, 0, 6, 0, 7));
    T_OK(t, rondo_graph_capture_end(c.graph, c.f.stream));
    expect_streams_free(&c);
    T_OK(t, rondo_graph_get_info(c.graph, &info));
    T_EQ(t, info.lanes, 3);
    T_EQ(t, info.nodes, 6);
    T_EQ(t, info.edges, 5); /* 2-3, 3-5, 4-5, 5-6, 6-7 */
    for (int round = 0; round < 3; round++) T_OK(t, gt_replay(&c.f, c.graph));
    for (unsigned i = 0; i < GT_FLOATS; i++) {
        double five = 2.0 * (100 + 2 * i) + 2 * i;
        T_NEAR(t, c.f.buffers[5][i], five, 0.0);
        T_NEAR(t, c.f.buffers[7][i], 2 * five + i, 0.0);
    }
}
GT_BOTH(test_nested_forks)

/* A fork without work needs no join; waiting for what is known already adds nothing. */
static void test_fork_without_work(rondo_test *t, const char *device) {
    fork_fixture c;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    fork_open(t, &c, device);
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, add_on(&c, 0, 0, 1, 2));
    T_OK(t, after(&c, 0, 0, 1));
    T_OK(t, after(&c, 1, 0, 0)); /* itself */
    T_OK(t, rondo_event_wait(c.events[0], c.streams[0]));
    T_OK(t, rondo_event_wait(c.events[7], c.streams[0])); /* never recorded: holds nothing up */
    T_OK(t, add_on(&c, 0, 2, 1, 3));
    T_OK(t, rondo_graph_capture_end(c.graph, c.f.stream));
    T_OK(t, rondo_graph_get_info(c.graph, &info));
    T_EQ(t, info.lanes, 2);
    T_EQ(t, info.edges, 1);
    T_OK(t, gt_replay(&c.f, c.graph));
    T_NEAR(t, c.f.buffers[3][1], 102.0 + 101.0, 0.0);
    expect_streams_free(&c);
}
GT_BOTH(test_fork_without_work)

static void test_a07_unjoined(rondo_test *t, const char *device) {
    fork_fixture c;
    fork_open(t, &c, device);
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, add_on(&c, 0, 0, 1, 2));
    T_OK(t, after(&c, 0, 0, 1));
    T_OK(t, add_on(&c, 1, 2, 1, 3));
    T_OK(t, after(&c, 1, 1, 0)); /* joined so far */
    T_OK(t, add_on(&c, 1, 3, 1, 4));
    T_FAILS(t, rondo_graph_capture_end(c.graph, c.f.stream), CAPTURE_UNJOINED, "node 2 'b4'");
    T_EQ(t, rondo_graph_get_state(c.graph), RONDO_GRAPH_EMPTY);
    expect_streams_free(&c);
    T_NEAR(t, c.f.buffers[4][0], 400.0, 0.0); /* nothing ran */
    T_OK(t, capture_diamond(&c));
    T_OK(t, gt_replay(&c.f, c.graph));
    expect_diamond(&c);
}
GT_BOTH(test_a07_unjoined)

/* A13. Whatever the reason that the end fails, the same streams, and others, capture again at once. */
static void test_a13_failed_end_unwinds(rondo_test *t, const char *device) {
    fork_fixture c;
    uint64_t bytes, before, after_all;
    fork_open(t, &c, device);
    rondo_memory_usage(c.f.device, &bytes, &before);
    for (unsigned way = 0; way < 3; way++) {
        void *memory = NULL;
        T_OK(t, gt_begin(&c.f, c.graph));
        T_OK(t, add_on(&c, 0, 0, 1, 2));
        T_OK(t, after(&c, 0, 0, 1));
        T_OK(t, rondo_memory_allocate_on(c.streams[1], GT_BYTES, &memory));
        rondo_status status = add_on(&c, 1, 2, 1, 3);
        if (!status && way == 0) status = rondo_stream_synchronize(c.streams[1]);
        rondo_code code = rondo_status_code(status);
        rondo_status_release(status);
        status = rondo_memory_free(c.f.device, memory);
        T_OK(t, status);
        if (way == 0) T_TRUE(t, code == RONDO_CODE_INVALID_STATE || code == RONDO_CODE_OUT_OF_MEMORY);
        if (way == 2) T_OK(t, rondo_graph_abort(c.graph));
        else rondo_status_release(rondo_graph_capture_end(c.graph, c.f.stream));
        T_EQ(t, rondo_graph_get_state(c.graph), RONDO_GRAPH_EMPTY);
        expect_streams_free(&c);
        rondo_memory_usage(c.f.device, &bytes, &after_all);
        T_EQ(t, after_all, before);
        T_OK(t, rondo_graph_capture_begin(c.graph, c.streams[1 + way], (rondo_pool_id){0, 0}, (rondo_capture_mode)way));
        T_OK(t, rondo_graph_abort(c.graph));
    }
    T_OK(t, capture_diamond(&c));
    T_OK(t, gt_replay(&c.f, c.graph));
    expect_diamond(&c);
}
GT_BOTH(test_a13_failed_end_unwinds)

/* A11. A stream of one capture that waits for an event of another: both are over, no matter which way. */
static void test_a11_merge(rondo_test *t, const char *device) {
    fork_fixture c;
    rondo_graph *second = NULL;
    fork_open(t, &c, device);
    T_OK(t, rondo_graph_create(c.f.device, NULL, &second));
    T_DEFER(t, rondo_graph_release, second);
    for (int way = 0; way < 2; way++) {
        T_OK(t, gt_begin(&c.f, c.graph));
        T_OK(t, add_on(&c, 0, 0, 1, 2));
        T_OK(t, after(&c, 0, 0, 1)); /* stream 1 is in the first */
        T_OK(t, rondo_graph_capture_begin(second, c.streams[2], (rondo_pool_id){0, 0}, 0));
        T_OK(t, add_on(&c, 2, 0, 1, 3));
        if (way == 0) T_FAILS(t, after(&c, 1, 2, 1), CAPTURE_MERGED, "two captures");
        else T_FAILS(t, after(&c, 1, 1, 2), CAPTURE_MERGED, "'g'");
        T_EQ(t, rondo_graph_get_state(c.graph), RONDO_GRAPH_INVALIDATED);
        T_EQ(t, rondo_graph_get_state(second), RONDO_GRAPH_INVALIDATED);
        T_FAILS(t, rondo_graph_capture_end(second, c.streams[2]), CAPTURE_INVALIDATED, "two captures");
        T_FAILS(t, rondo_graph_capture_end(c.graph, c.f.stream), CAPTURE_INVALIDATED, "two captures");
        expect_streams_free(&c);
    }
    T_OK(t, capture_diamond(&c));
    T_OK(t, gt_replay(&c.f, c.graph));
    expect_diamond(&c);
}
GT_BOTH(test_a11_merge)

static void test_events_of_a_capture(rondo_test *t, const char *device) {
    fork_fixture c;
    bool done;
    fork_open(t, &c, device);
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, add_on(&c, 0, 0, 1, 2));
    T_OK(t, rondo_event_record(c.events[0], c.streams[0]));
    T_FAILS(t, rondo_event_query(c.events[0], &done), INVALID_STATE, "recorded in a capture");
    T_FAILS(t, rondo_event_synchronize(c.events[0]), INVALID_STATE, "recorded in a capture");
    T_FAILS(t, rondo_event_wait_external(c.events[0], c.streams[0]), INVALID_ARGUMENT, "this very capture");
    T_FAILS(t, rondo_event_wait(c.events[0], c.streams[1]), CAPTURE_INVALIDATED, "this very capture");
    expect_streams_free(&(fork_fixture){.f = c.f, .streams = {c.streams[1], c.streams[2], c.streams[3], c.streams[1]}});
    T_FAILS(t, rondo_graph_capture_end(c.graph, c.f.stream), CAPTURE_INVALIDATED, NULL);
    /* The capture is over: the event marks nothing. */
    T_FAILS(t, rondo_event_wait(c.events[0], c.streams[1]), INVALID_STATE, "recorded in a capture");
    T_OK(t, gt_begin(&c.f, c.graph));
    T_FAILS(t, rondo_event_wait(c.events[0], c.streams[0]), INVALID_ARGUMENT, "a capture that is over");
    T_OK(t, rondo_graph_abort(c.graph));
    /* Recorded anew it is an event like any other. */
    T_OK(t, rondo_event_record(c.events[0], c.streams[0]));
    T_OK(t, rondo_event_wait(c.events[0], c.streams[1]));
    T_OK(t, rondo_event_synchronize(c.events[0]));
    T_OK(t, rondo_event_query(c.events[0], &done));
    T_EQ(t, done, 1);
}
GT_BOTH(test_events_of_a_capture)

/* Work outside is waited for, and work outside waits, at each replay. */
static void test_external_events(rondo_test *t, const char *device) {
    fork_fixture c;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    fork_open(t, &c, device);
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, rondo_event_wait_external(c.events[0], c.streams[0]));
    T_OK(t, add_on(&c, 0, 2, 2, 3));
    T_OK(t, rondo_event_record_external(c.events[1], c.streams[0]));
    T_OK(t, rondo_graph_capture_end(c.graph, c.f.stream));
    T_OK(t, rondo_graph_get_info(c.graph, &info));
    T_EQ(t, info.events, 2);
    T_EQ(t, info.nodes, 3);
    T_FAILS(t, rondo_graph_update(c.graph, 0, &(rondo_argument){0, 0, 0, 0}, 1), UNSUPPORTED, "an event");
    rondo_event_release(c.events[0]); /* the graph keeps it */
    rondo_event *first = c.events[0];
    c.events[0] = NULL;
    for (unsigned round = 0; round < 2; round++) {
        T_OK(t, add_on(&c, 1, round, round, 2)); /* written elsewhere */
        T_OK(t, rondo_event_record(first, c.streams[1]));
        T_OK(t, rondo_graph_replay(c.graph, c.streams[0]));
        T_OK(t, rondo_event_wait(c.events[1], c.streams[2]));
        T_OK(t, add_on(&c, 2, 3, 3, 4)); /* read elsewhere */
        T_OK(t, rondo_event_synchronize(c.events[1]));
        T_OK(t, rondo_stream_synchronize(c.streams[2]));
        T_NEAR(t, c.f.buffers[4][1], 8.0 * (100.0 * round + 1), 0.0);
    }
}
GT_BOTH(test_external_events)

/* A stream of a capture that goes away takes the whole of it along. */
static void test_joined_stream_released(rondo_test *t, const char *device) {
    fork_fixture c;
    fork_open(t, &c, device);
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, after(&c, 0, 0, 3));
    rondo_stream_release(c.streams[3]);
    c.streams[3] = NULL;
    T_EQ(t, rondo_graph_get_state(c.graph), RONDO_GRAPH_EMPTY);
    T_OK(t, rondo_stream_create(c.f.device, NULL, &c.streams[3]));
    expect_streams_free(&c);
}
GT_BOTH(test_joined_stream_released)

/* The failure of work in a lane reaches whoever waits for the stream of the replay, and the next replay starts clean. */
static int32_t failing(const void *context, const uint64_t *words) {
    (void)words;
    return *(const int32_t *)context;
}

static void test_failure_in_a_lane(rondo_test *t, const char *device) {
    fork_fixture c;
    static int32_t reason;
    rondo_call call = RONDO_CALL_INIT;
    fork_open(t, &c, device);
    reason = 3;
    call.kernel = (rondo_kernel){failing, &reason};
    call.name = "breaks";
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, after(&c, 0, 0, 1));
    T_OK(t, rondo_stream_launch(c.streams[1], &call));
    T_OK(t, add_on(&c, 1, 0, 1, 2));
    T_OK(t, after(&c, 1, 1, 0));
    T_OK(t, add_on(&c, 0, 2, 2, 3));
    T_OK(t, rondo_graph_capture_end(c.graph, c.f.stream));
    T_FAILS(t, gt_replay(&c.f, c.graph), KERNEL_FAILED, "breaks");
    reason = 0;
    T_OK(t, gt_replay(&c.f, c.graph));
    T_NEAR(t, c.f.buffers[3][1], 204.0, 0.0);
}
GT_BOTH(test_failure_in_a_lane)

/* --------------------------------------------------------------------------------------- random graphs, all seeds */

typedef struct access_log {
    int writer_event, writer_stream;
    int reader_event[FORK_STREAMS];
} access_log;

typedef struct random_run {
    fork_fixture *c;
    access_log logs[GT_BUFFERS];
    float model[GT_BUFFERS][GT_FLOATS];
    int event_of[FORK_STREAMS]; /* the newest event of a stream; -1: none */
    unsigned events;
} random_run;

/* The stream waits for an event of a stream, if it is another's. */
static void random_wait(random_run *r, int event, unsigned from, unsigned to) {
    if (event >= 0 && from != to) T_OK(r->c->f.t, rondo_event_wait(r->c->events[event], r->c->streams[to]));
}

static void random_step(random_run *r) {
    rondo_test *t = r->c->f.t;
    unsigned s = (unsigned)(rondo_test_random(t) >> 40) % FORK_STREAMS, a = (unsigned)(rondo_test_random(t) >> 40) % 8u,
             b = (unsigned)(rondo_test_random(t) >> 40) % 8u, out = (unsigned)(rondo_test_random(t) >> 40) % 8u;
    if (out == a || out == b) out = (a + 1u) % 8u == b ? (b + 1u) % 8u : (a + 1u) % 8u;
    if (out == a || out == b) return;
    random_wait(r, r->logs[a].writer_event, (unsigned)r->logs[a].writer_stream, s);
    random_wait(r, r->logs[b].writer_event, (unsigned)r->logs[b].writer_stream, s);
    random_wait(r, r->logs[out].writer_event, (unsigned)r->logs[out].writer_stream, s);
    for (unsigned i = 0; i < FORK_STREAMS; i++) random_wait(r, r->logs[out].reader_event[i], i, s);
    T_OK(t, add_on(r->c, s, a, b, out));
    int event = (int)r->events++;
    T_OK(t, rondo_event_record(r->c->events[event], r->c->streams[s]));
    r->event_of[s] = event;
    r->logs[a].reader_event[s] = r->logs[b].reader_event[s] = event;
    r->logs[out].writer_event = event;
    r->logs[out].writer_stream = (int)s;
    for (unsigned i = 0; i < FORK_STREAMS; i++) r->logs[out].reader_event[i] = -1;
    for (unsigned i = 0; i < GT_FLOATS; i++) r->model[out][i] = r->model[a][i] + r->model[b][i];
}

static void random_graph(fork_fixture *c) {
    rondo_test *t = c->f.t;
    static random_run r;
    r = (random_run){.c = c};
    for (unsigned b = 0; b < GT_BUFFERS; b++) {
        r.logs[b] = (access_log){-1, 0, {-1, -1, -1, -1}};
        for (unsigned i = 0; i < GT_FLOATS; i++) r.model[b][i] = c->f.buffers[b][i] = (float)(b + i) * 0.125f;
    }
    for (unsigned s = 0; s < FORK_STREAMS; s++) r.event_of[s] = -1;
    T_OK(t, gt_begin(&c->f, c->graph));
    T_OK(t, rondo_event_record(c->events[r.events], c->streams[0]));
    for (unsigned s = 1; s < FORK_STREAMS; s++) T_OK(t, rondo_event_wait(c->events[r.events], c->streams[s]));
    r.events++;
    for (unsigned i = 0; i < 40u; i++) random_step(&r);
    for (unsigned s = 1; s < FORK_STREAMS; s++) random_wait(&r, r.event_of[s], s, 0);
    T_OK(t, rondo_graph_capture_end(c->graph, c->f.stream));
    T_OK(t, gt_replay(&c->f, c->graph));
    for (unsigned b = 0; b < GT_BUFFERS; b++) T_EQ(t, memcmp(r.model[b], c->f.buffers[b], GT_BYTES), 0);
    rondo_graph_reset(c->graph);
}

static fork_fixture random_fixtures[FORK_SEEDS]; /* closed when the test ends */

static void test_random_graphs(rondo_test *t, const char *device, fork_fixture *c) {
    fork_open(t, c, device);
    for (unsigned i = 8; i < FORK_EVENTS; i++) T_OK(t, rondo_event_create(c->f.device, &c->events[i]));
    for (int i = 0; i < 40; i++) random_graph(c);
}

static void test_random_graphs_on_cpu(rondo_test *t) { test_random_graphs(t, "cpu", random_fixtures); }
static void test_random_graphs_on_sim(rondo_test *t) {
    char seed[16];
    for (unsigned s = 0; s < FORK_SEEDS; s++) {
        (void)snprintf(seed, sizeof seed, "%u", s);
        (void)setenv("RONDO_SIM_SEED", seed, 1);
        test_random_graphs(t, "sim", &random_fixtures[s]);
    }
    (void)unsetenv("RONDO_SIM_SEED");
}

/* ------------------------------------------------------------------------------------------------------ many nodes */

/* Two lanes that exchange every 8 nodes; each lane counts its own nodes up by adding ones. */
static void many(rondo_test *t, const char *device, unsigned nodes) {
    fork_fixture c;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    fork_open(t, &c, device);
    for (unsigned i = 0; i < GT_FLOATS; i++) {
        c.f.buffers[0][i] = 1.0f;
        for (unsigned b = 1; b < 5; b++) c.f.buffers[b][i] = 0.0f;
    }
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, after(&c, 0, 0, 1));
    for (unsigned i = 0; i < nodes; i++) {
        unsigned lane = i & 1u, at = (i / 2u) & 1u; /* lane 0 swings between buffers 1 and 2, lane 1 between 3 and 4 */
        T_OK(t, gt_add_named(&c.f, c.streams[lane], "one", c.f.buffers[0], c.f.buffers[1 + 2 * lane + at],
                             c.f.buffers[1 + 2 * lane + 1 - at]));
        if (i % 8u == 7u) {
            T_OK(t, after(&c, 1, 0, 1));
            T_OK(t, after(&c, 2, 1, 0));
        }
    }
    T_OK(t, after(&c, 3, 1, 0));
    T_OK(t, rondo_graph_capture_end(c.graph, c.f.stream));
    T_OK(t, rondo_graph_get_info(c.graph, &info));
    T_EQ(t, info.nodes, nodes);
    T_EQ(t, info.lanes, 2);
    T_TRUE(t, info.bytes / nodes < 160);
    T_OK(t, gt_replay(&c.f, c.graph));
    T_NEAR(t, c.f.buffers[1][3], nodes / 2u, 0.0); /* an even number of steps each */
    T_NEAR(t, c.f.buffers[3][3], nodes / 2u, 0.0);
}
static void test_many_nodes_on_cpu(rondo_test *t) { many(t, "cpu", 1000000); }
static void test_many_nodes_on_sim(rondo_test *t) { many(t, "sim", 20000); }

RONDO_TEST_MAIN(GT_ENTRIES(test_diamond), GT_ENTRIES(test_nested_forks), GT_ENTRIES(test_fork_without_work),
                GT_ENTRIES(test_a07_unjoined), GT_ENTRIES(test_a13_failed_end_unwinds), GT_ENTRIES(test_a11_merge),
                GT_ENTRIES(test_events_of_a_capture), GT_ENTRIES(test_external_events),
                GT_ENTRIES(test_joined_stream_released), GT_ENTRIES(test_failure_in_a_lane),
                GT_PLAIN_ENTRIES(test_random_graphs), GT_PLAIN_ENTRIES(test_many_nodes))
