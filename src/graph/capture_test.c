/* SPDX-License-Identifier: Apache-2.0
 *
 * Capture: what may end one and who, what breaks one, and that nothing is left behind. */
#include <pthread.h>

#include "graph/graph_testing.h"

typedef struct capture_fixture {
    graph_fixture f;
    rondo_graph *graph;
} capture_fixture;

static void capture_open(rondo_test *t, capture_fixture *c, const char *device) {
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    gt_open(t, &c->f, device);
    options.name = "g";
    T_OK(t, rondo_graph_create(c->f.device, &options, &c->graph));
    T_DEFER(t, rondo_graph_release, c->graph);
}

static void expect_free(capture_fixture *c) {
    rondo_capture_status status = RONDO_CAPTURE_STATUS_INIT;
    T_OK(c->f.t, rondo_stream_capture_status(c->f.stream, &status));
    T_EQ(c->f.t, status.active, 0);
    T_EQ(c->f.t, status.id, 0);
    T_OK(c->f.t, rondo_stream_synchronize(c->f.stream));
}

/* The same object and the same stream capture and replay as if nothing had been. */
static void expect_usable(capture_fixture *c) {
    rondo_test *t = c->f.t;
    expect_free(c);
    T_OK(t, gt_begin(&c->f, c->graph));
    T_OK(t, gt_add(&c->f, c->f.buffers[0], c->f.buffers[1], c->f.buffers[7]));
    T_OK(t, rondo_graph_capture_end(c->graph, c->f.stream));
    T_OK(t, gt_replay(&c->f, c->graph));
    T_NEAR(t, c->f.buffers[7][1], c->f.buffers[0][1] + c->f.buffers[1][1], 0.0);
}

static void test_begin_checks(rondo_test *t, const char *device) {
    capture_fixture c;
    rondo_graph *second = NULL;
    rondo_device *elsewhere = NULL;
    capture_open(t, &c, device);
    const rondo_pool_id none = {0, 0};
    T_FAILS(t, rondo_graph_capture_begin(c.graph, c.f.stream, none, 4), INVALID_ARGUMENT, "4 is no capture mode");
    T_FAILS(t, rondo_graph_capture_begin(c.graph, c.f.stream, none, -1), INVALID_ARGUMENT, "capture mode");
    T_FAILS(t, rondo_graph_capture_begin(c.graph, c.f.stream, (rondo_pool_id){1, 1}, 0), INVALID_ARGUMENT, "{1, 1}");
    T_OK(t, rondo_device_open(c.f.instance, strcmp(device, "cpu") == 0 ? "sim" : "cpu", NULL, &elsewhere));
    T_DEFER(t, rondo_device_release, elsewhere);
    T_FAILS(t, rondo_graph_capture_begin(c.graph, rondo_stream_default(elsewhere), none, 0), INVALID_ARGUMENT,
            "device");
    T_EQ(t, rondo_graph_get_state(c.graph), RONDO_GRAPH_EMPTY);
    T_OK(t, rondo_graph_create(c.f.device, NULL, &second));
    T_DEFER(t, rondo_graph_release, second);
    T_OK(t, gt_begin(&c.f, c.graph));
    T_FAILS(t, gt_begin(&c.f, second), INVALID_STATE, "already captures");
    T_EQ(t, rondo_graph_get_state(second), RONDO_GRAPH_EMPTY);
    T_EQ(t, rondo_graph_get_state(c.graph), RONDO_GRAPH_CAPTURING);
    /* Two captures on two streams may overlap. */
    T_OK(t, rondo_graph_capture_begin(second, c.f.other, none, RONDO_CAPTURE_MODE_RELAXED));
    T_OK(t, gt_add_named(&c.f, c.f.other, "second", c.f.buffers[2], c.f.buffers[3], c.f.buffers[4]));
    T_OK(t, gt_add(&c.f, c.f.buffers[0], c.f.buffers[1], c.f.buffers[5]));
    T_OK(t, rondo_graph_capture_end(second, c.f.other));
    T_OK(t, rondo_graph_capture_end(c.graph, c.f.stream));
    T_OK(t, gt_replay(&c.f, second));
    T_OK(t, gt_replay(&c.f, c.graph));
    T_NEAR(t, c.f.buffers[4][0], 500.0, 0.0);
    T_NEAR(t, c.f.buffers[5][0], 100.0, 0.0);
}
GT_BOTH(test_begin_checks)

static void test_default_stream(rondo_test *t, const char *device) {
    capture_fixture c;
    capture_open(t, &c, device);
    rondo_stream *stream = rondo_stream_default(c.f.device);
    rondo_status status = rondo_graph_capture_begin(c.graph, stream, (rondo_pool_id){0, 0}, 0);
    if (rondo_device_info(c.f.device)->capabilities & RONDO_DEVICE_CAPTURE_NOT_ON_DEFAULT_STREAM)
        T_FAILS(t, status, INVALID_ARGUMENT, "default stream");
    else {
        T_OK(t, status);
        T_OK(t, rondo_graph_abort(c.graph));
    }
    expect_usable(&c);
}
GT_BOTH(test_default_stream)

static void test_status_while_capturing(rondo_test *t, const char *device) {
    capture_fixture c;
    capture_open(t, &c, device);
    rondo_capture_status status = RONDO_CAPTURE_STATUS_INIT;
    T_OK(t, rondo_graph_capture_begin(c.graph, c.f.stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    T_OK(t, rondo_stream_capture_status(c.f.stream, &status));
    T_EQ(t, status.active, 1);
    T_EQ(t, status.invalidated, 0);
    T_EQ(t, status.mode, RONDO_CAPTURE_MODE_THREAD_LOCAL);
    uint64_t id = status.id;
    T_TRUE(t, id != 0);
    T_FAILS(t, rondo_stream_synchronize(c.f.stream), INVALID_STATE, NULL);
    T_OK(t, rondo_stream_capture_status(c.f.stream, &status));
    T_EQ(t, status.invalidated, 1);
    T_OK(t, rondo_graph_abort(c.graph));
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, rondo_stream_capture_status(c.f.stream, &status));
    T_TRUE(t, status.id != id && status.id != 0);
    T_OK(t, rondo_graph_abort(c.graph));
}
GT_BOTH(test_status_while_capturing)

static rondo_status illegal_synchronize(graph_fixture *f) { return rondo_stream_synchronize(f->stream); }
static rondo_status illegal_query(graph_fixture *f) {
    bool done;
    return rondo_stream_query(f->stream, &done);
}
static rondo_status with_event(graph_fixture *f, rondo_status (*act)(rondo_event *, rondo_stream *)) {
    rondo_event *event = NULL;
    RONDO__TRY(rondo_event_create(f->device, &event));
    rondo_status status = act(event, f->stream);
    rondo_event_release(event);
    return status;
}
static rondo_status record_and_wait(rondo_event *event, rondo_stream *stream) {
    RONDO__TRY(rondo_event_record(event, rondo_stream_default(rondo_stream_device(stream))));
    return rondo_event_wait(event, stream);
}
static rondo_status illegal_wait(graph_fixture *f) { return with_event(f, record_and_wait); }
static rondo_status illegal_trim(graph_fixture *f) { return rondo_memory_trim(f->device); }
static rondo_status illegal_beyond(graph_fixture *f) {
    return gt_add_named(f, f->stream, "beyond", f->buffers[0] + 1, f->buffers[1], f->buffers[2]);
}

/* What cannot be recorded breaks the capture; the first error is what the end reports. */
static void test_illegal_work_invalidates(rondo_test *t, const char *device) {
    static const struct {
        rondo_status (*act)(graph_fixture *f);
        rondo_code code;
        const char *part;
    } acts[] = {
        {illegal_synchronize, RONDO_CODE_INVALID_STATE, "rondo_stream_synchronize"},
        {illegal_query, RONDO_CODE_INVALID_STATE, "rondo_stream_query"},
        {illegal_wait, RONDO_CODE_INVALID_ARGUMENT, "outside any capture"},
        {illegal_trim, RONDO_CODE_INVALID_STATE, "rondo_memory_trim"},
        {illegal_beyond, RONDO_CODE_OUT_OF_RANGE, "node 1 'beyond'"},
    };
    capture_fixture c;
    capture_open(t, &c, device);
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        T_OK(t, gt_begin(&c.f, c.graph));
        T_OK(t, gt_add(&c.f, c.f.buffers[0], c.f.buffers[1], c.f.buffers[2]));
        rondo_test_code(t, acts[i].act(&c.f), acts[i].code, acts[i].part, "illegal act", __FILE__, __LINE__);
        T_EQ(t, rondo_graph_get_state(c.graph), RONDO_GRAPH_INVALIDATED);
        /* Nothing more is recorded, nothing runs, and the first error stays. */
        T_FAILS(t, gt_add(&c.f, c.f.buffers[0], c.f.buffers[1], c.f.buffers[3]), CAPTURE_INVALIDATED, acts[i].part);
        T_FAILS(t, rondo_stream_fill(c.f.stream, c.f.buffers[4], 0, 4), CAPTURE_INVALIDATED, acts[i].part);
        T_FAILS(t, rondo_stream_synchronize(c.f.stream), CAPTURE_INVALIDATED, acts[i].part);
        T_FAILS(t, rondo_graph_capture_end(c.graph, c.f.stream), CAPTURE_INVALIDATED, acts[i].part);
        T_EQ(t, rondo_graph_get_state(c.graph), RONDO_GRAPH_EMPTY);
        T_NEAR(t, c.f.buffers[3][1], 301.0, 0.0);
        T_NEAR(t, c.f.buffers[4][0], 400.0, 0.0);
        expect_usable(&c);
        rondo_graph_reset(c.graph);
    }
}
GT_BOTH(test_illegal_work_invalidates)

static void test_end_on_the_wrong_stream(rondo_test *t, const char *device) {
    capture_fixture c;
    capture_open(t, &c, device);
    T_OK(t, gt_begin(&c.f, c.graph));
    T_FAILS(t, rondo_graph_capture_end(c.graph, c.f.other), INVALID_STATE, "it goes on");
    T_EQ(t, rondo_graph_get_state(c.graph), RONDO_GRAPH_CAPTURING);
    T_OK(t, gt_add(&c.f, c.f.buffers[0], c.f.buffers[1], c.f.buffers[2]));
    T_OK(t, rondo_graph_capture_end(c.graph, c.f.stream));
    T_OK(t, gt_replay(&c.f, c.graph));
    T_NEAR(t, c.f.buffers[2][3], 106.0, 0.0);
}
GT_BOTH(test_end_on_the_wrong_stream)

typedef struct thread_work {
    capture_fixture *c;
    rondo_code code;
    bool abort;
} thread_work;

static void *thread_end(void *argument) {
    thread_work *work = argument;
    rondo_status status =
        work->abort ? rondo_graph_abort(work->c->graph) : rondo_graph_capture_end(work->c->graph, work->c->f.stream);
    work->code = rondo_status_code(status);
    rondo_status_release(status);
    return NULL;
}

static rondo_code on_thread(capture_fixture *c, bool abort) {
    thread_work work = {c, RONDO_CODE_INTERNAL, abort};
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_end, &work) != 0) return RONDO_CODE_INTERNAL;
    (void)pthread_join(thread, NULL);
    return work.code;
}

static void test_end_on_another_thread(rondo_test *t, const char *device) {
    capture_fixture c;
    capture_open(t, &c, device);
    for (rondo_capture_mode mode = 0; mode < RONDO_CAPTURE_MODE_COUNT; mode++) {
        bool relaxed = mode == RONDO_CAPTURE_MODE_RELAXED;
        T_OK(t, rondo_graph_capture_begin(c.graph, c.f.stream, (rondo_pool_id){0, 0}, mode));
        T_OK(t, gt_add(&c.f, c.f.buffers[0], c.f.buffers[1], c.f.buffers[2]));
        T_EQ(t, on_thread(&c, false), relaxed ? RONDO_CODE_OK : RONDO_CODE_INVALID_STATE);
        T_EQ(t, rondo_graph_get_state(c.graph), relaxed ? RONDO_GRAPH_READY : RONDO_GRAPH_CAPTURING);
        if (!relaxed) T_OK(t, rondo_graph_capture_end(c.graph, c.f.stream));
        T_OK(t, gt_replay(&c.f, c.graph));
        rondo_graph_reset(c.graph);
    }
}
GT_BOTH(test_end_on_another_thread)

static void test_abort_from_another_thread(rondo_test *t, const char *device) {
    capture_fixture c;
    uint64_t bytes, before, after;
    capture_open(t, &c, device);
    rondo_memory_usage(c.f.device, &bytes, &before);
    T_OK(t, rondo_graph_declare_slot(c.graph, 0, c.f.buffers[0], GT_BYTES, RONDO_ACCESS_BOTH, RONDO_SLOT_COPY));
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, gt_add(&c.f, c.f.buffers[0], c.f.buffers[1], c.f.buffers[2]));
    T_EQ(t, on_thread(&c, true), RONDO_CODE_OK);
    T_EQ(t, rondo_graph_get_state(c.graph), RONDO_GRAPH_EMPTY);
    rondo_memory_usage(c.f.device, &bytes, &after);
    T_EQ(t, after, before); /* the slot's buffer went with the capture */
    T_FAILS(t, rondo_graph_capture_end(c.graph, c.f.stream), INVALID_STATE, "empty");
    T_FAILS(t, rondo_graph_abort(c.graph), INVALID_STATE, "empty");
    T_EQ(t, on_thread(&c, true), RONDO_CODE_INVALID_STATE);
    expect_usable(&c);
}
GT_BOTH(test_abort_from_another_thread)

/* One thread records as fast as it can while another aborts: every launch is recorded, refused or run, never lost in
 * between, and the stream comes out free. */
static void *thread_abort_now(void *argument) {
    capture_fixture *c = argument;
    while (rondo_graph_get_state(c->graph) != RONDO_GRAPH_CAPTURING) {}
    rondo_status_release(rondo_graph_abort(c->graph));
    return NULL;
}

static void test_abort_amid_recording(rondo_test *t, const char *device) {
    capture_fixture c;
    capture_open(t, &c, device);
    for (int round = 0; round < 50; round++) {
        pthread_t thread;
        T_EQ(t, pthread_create(&thread, NULL, thread_abort_now, &c), 0);
        T_OK(t, gt_begin(&c.f, c.graph));
        while (rondo_graph_get_state(c.graph) == RONDO_GRAPH_CAPTURING) {
            rondo_status status = gt_add(&c.f, c.f.buffers[0], c.f.buffers[1], c.f.buffers[2]);
            rondo_code code = rondo_status_code(status);
            rondo_status_release(status);
            T_TRUE(t, code == RONDO_CODE_OK || code == RONDO_CODE_ABORTED);
        }
        (void)pthread_join(thread, NULL);
        expect_free(&c);
    }
    expect_usable(&c);
}
GT_BOTH(test_abort_amid_recording)

/* A stream that goes away takes its capture along. */
static void test_stream_released_while_capturing(rondo_test *t, const char *device) {
    capture_fixture c;
    rondo_stream *stream = NULL;
    capture_open(t, &c, device);
    T_OK(t, rondo_stream_create(c.f.device, NULL, &stream));
    rondo_status status = rondo_graph_capture_begin(c.graph, stream, (rondo_pool_id){0, 0}, 0);
    if (!status) status = gt_add_named(&c.f, stream, "x", c.f.buffers[0], c.f.buffers[1], c.f.buffers[2]);
    rondo_stream_release(stream);
    T_OK(t, status);
    T_EQ(t, rondo_graph_get_state(c.graph), RONDO_GRAPH_EMPTY);
    expect_usable(&c);
}
GT_BOTH(test_stream_released_while_capturing)

static void test_graph_released_while_capturing(rondo_test *t, const char *device) {
    graph_fixture f;
    gt_open(t, &f, device);
    rondo_graph *graph = NULL;
    T_OK(t, rondo_graph_create(f.device, NULL, &graph));
    rondo_status status = gt_begin(&f, graph);
    if (!status) status = gt_add(&f, f.buffers[0], f.buffers[1], f.buffers[2]);
    rondo_graph_release(graph);
    T_OK(t, status);
    T_OK(t, gt_add(&f, f.buffers[0], f.buffers[1], f.buffers[2])); /* runs */
    T_OK(t, rondo_stream_synchronize(f.stream));
    T_NEAR(t, f.buffers[2][0], 100.0, 0.0);
}
GT_BOTH(test_graph_released_while_capturing)

static void test_memory_in_a_capture(rondo_test *t, const char *device) {
    capture_fixture c;
    void *memory = NULL;
    capture_open(t, &c, device);
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, rondo_memory_allocate(c.f.device, GT_BYTES, &memory));
    rondo_status status = gt_add(&c.f, c.f.buffers[0], c.f.buffers[1], memory);
    if (!status) status = rondo_graph_capture_end(c.graph, c.f.stream);
    if (!status) status = gt_replay(&c.f, c.graph);
    float got = status ? 0.0f : ((float *)memory)[2];
    rondo_status freed = rondo_memory_free(c.f.device, memory);
    T_OK(t, status);
    T_OK(t, freed);
    T_NEAR(t, got, 104.0, 0.0);
    T_FAILS(t, rondo_graph_replay(c.graph, c.f.stream), STALE, "node 0 'add', argument 2");
}
GT_BOTH(test_memory_in_a_capture)

/* Work from before the capture uses memory that is freed during it: it has run by then. */
static void test_free_during_a_capture(rondo_test *t, const char *device) {
    capture_fixture c;
    capture_open(t, &c, device);
    T_OK(t, gt_add(&c.f, c.f.buffers[0], c.f.buffers[1], c.f.buffers[2]));
    T_OK(t, gt_begin(&c.f, c.graph));
    T_OK(t, gt_free(&c.f, 0));
    T_OK(t, rondo_graph_abort(c.graph));
    T_OK(t, rondo_stream_synchronize(c.f.stream));
    T_NEAR(t, c.f.buffers[2][1], 102.0, 0.0);
}
GT_BOTH(test_free_during_a_capture)

static int32_t count_call(void *user) {
    ++*(int *)user;
    return 0;
}

static void test_every_kind_of_node(rondo_test *t, const char *device) {
    capture_fixture c;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    int calls = 0;
    void *host = NULL;
    capture_open(t, &c, device);
    T_OK(t, rondo_memory_host_allocate(c.f.device, GT_BYTES, &host));
    float *pinned = host;
    for (unsigned i = 0; i < GT_FLOATS; i++) pinned[i] = 7.0f;
    rondo_status status = gt_begin(&c.f, c.graph);
    if (!status) status = rondo_stream_copy(c.f.stream, c.f.buffers[0], pinned, GT_BYTES, RONDO_COPY_HOST_TO_DEVICE);
    if (!status)
        status = rondo_stream_copy(c.f.stream, c.f.buffers[1], c.f.buffers[0], GT_BYTES, RONDO_COPY_DEVICE_TO_DEVICE);
    if (!status) status = gt_add(&c.f, c.f.buffers[0], c.f.buffers[1], c.f.buffers[2]);
    if (!status) status = rondo_stream_host_call(c.f.stream, count_call, &calls);
    if (!status) status = rondo_stream_copy(c.f.stream, pinned, c.f.buffers[2], GT_BYTES, RONDO_COPY_DEVICE_TO_HOST);
    if (!status) status = rondo_stream_fill(c.f.stream, c.f.buffers[3], 0, 8);
    if (!status) status = rondo_graph_capture_end(c.graph, c.f.stream);
    for (int i = 0; i < 3 && !status; i++) status = gt_replay(&c.f, c.graph);
    float last = pinned[5], filled = c.f.buffers[3][1], rest = c.f.buffers[3][2];
    if (!status) status = rondo_graph_get_info(c.graph, &info);
    rondo_graph_reset(c.graph);
    rondo_status freed = rondo_memory_host_free(c.f.device, host);
    T_OK(t, status);
    T_OK(t, freed);
    T_NEAR(t, last, 56.0, 0.0); /* doubled by each replay */
    T_NEAR(t, filled, 0.0, 0.0);
    T_NEAR(t, rest, 302.0, 0.0);
    T_EQ(t, calls, 3);
    T_EQ(t, info.nodes, 6);
    T_EQ(t, info.kernels, 1);
    T_EQ(t, info.copies, 3);
    T_EQ(t, info.fills, 1);
    T_EQ(t, info.host_calls, 1);
    T_EQ(t, info.opaque, 1);
}
GT_BOTH(test_every_kind_of_node)

RONDO_TEST_MAIN(GT_ENTRIES(test_begin_checks), GT_ENTRIES(test_default_stream), GT_ENTRIES(test_status_while_capturing),
                GT_ENTRIES(test_illegal_work_invalidates), GT_ENTRIES(test_end_on_the_wrong_stream),
                GT_ENTRIES(test_end_on_another_thread), GT_ENTRIES(test_abort_from_another_thread),
                GT_PLAIN_ENTRIES(test_abort_amid_recording), GT_ENTRIES(test_stream_released_while_capturing),
                GT_ENTRIES(test_graph_released_while_capturing), GT_ENTRIES(test_memory_in_a_capture),
                GT_ENTRIES(test_free_during_a_capture), GT_ENTRIES(test_every_kind_of_node))
