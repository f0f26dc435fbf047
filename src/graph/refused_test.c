/* SPDX-License-Identifier: Apache-2.0
 *
 * Work that is refused while a stream captures is missing from the graph, so the capture is over, whoever refused: this
 * room, or those in front of it for a malformed call. And null objects are found out in every state of a graph. */
#include "graph/graph_testing.h"

typedef struct refused_fixture {
    graph_fixture f;
    rondo_graph *graph, *empty;
    rondo_device *second;
    rondo_event *far_event;
    rondo_generator *generator;
} refused_fixture;

static void refused_close(refused_fixture *r) {
    rondo_graph_release(r->graph);
    rondo_graph_release(r->empty);
    rondo_generator_release(r->generator);
    rondo_event_release(r->far_event);
    rondo_device_release(r->second);
}

static void refused_open(rondo_test *t, refused_fixture *r, const char *device) {
    gt_open(t, &r->f, device);
    r->graph = r->empty = NULL;
    r->second = NULL;
    r->far_event = NULL;
    r->generator = NULL;
    T_DEFER(t, refused_close, r);
    T_OK(t, rondo_device_open(r->f.instance, "sim:1", NULL, &r->second));
    T_OK(t, rondo_event_create(r->second, &r->far_event));
    T_OK(t, rondo_generator_create(r->second, 1, &r->generator));
    T_OK(t, rondo_graph_create(r->f.device, NULL, &r->graph));
    T_OK(t, rondo_graph_create(r->f.device, NULL, &r->empty));
}

static rondo_status act_launch_null(refused_fixture *r) { return rondo_stream_launch(r->f.stream, NULL); }
static rondo_status act_launch_nothing(refused_fixture *r) {
    rondo_call call = RONDO_CALL_INIT;
    return rondo_stream_launch(r->f.stream, &call);
}
static rondo_status act_launch_access(refused_fixture *r) {
    const rondo_argument argument = {0, 0, 4, 0};
    rondo_call call = {sizeof call, 1, r->f.add, &argument, "strange"};
    return rondo_stream_launch(r->f.stream, &call);
}
static rondo_status act_copy_null(refused_fixture *r) {
    return rondo_stream_copy(r->f.stream, NULL, r->f.buffers[0], 4, RONDO_COPY_DEVICE_TO_DEVICE);
}
static rondo_status act_copy_from_null(refused_fixture *r) {
    return rondo_stream_copy(r->f.stream, r->f.buffers[0], NULL, 4, RONDO_COPY_HOST_TO_DEVICE);
}
static rondo_status act_copy_direction(refused_fixture *r) {
    return rondo_stream_copy(r->f.stream, r->f.buffers[0], r->f.buffers[1], 4, 9);
}
static rondo_status act_fill_null(refused_fixture *r) { return rondo_stream_fill(r->f.stream, NULL, 0, 4); }
static rondo_status act_fill_all(refused_fixture *r) {
    return rondo_stream_fill(r->f.stream, r->f.buffers[0], 0, UINT64_MAX);
}
static rondo_status act_host_null(refused_fixture *r) { return rondo_stream_host_call(r->f.stream, NULL, NULL); }
static rondo_status act_record_null(refused_fixture *r) { return rondo_event_record(NULL, r->f.stream); }
static rondo_status act_wait_null(refused_fixture *r) { return rondo_event_wait(NULL, r->f.stream); }
static rondo_status act_record_far(refused_fixture *r) { return rondo_event_record(r->far_event, r->f.stream); }
static rondo_status act_wait_far(refused_fixture *r) { return rondo_event_wait_external(r->far_event, r->f.stream); }
static rondo_status act_random_null(refused_fixture *r) {
    return rondo_random_fill(r->f.stream, NULL, 0, r->f.buffers[0], 4, 0, 0);
}
static rondo_status act_random_far(refused_fixture *r) {
    return rondo_random_fill(r->f.stream, r->generator, 0, r->f.buffers[0], 4, 0, 0);
}
static rondo_status act_replay_null(refused_fixture *r) { return rondo_graph_replay(NULL, r->f.stream); }
static rondo_status act_replay_empty(refused_fixture *r) { return rondo_graph_replay(r->empty, r->f.stream); }
static rondo_status act_condition_null(refused_fixture *r) { return rondo_graph_condition_begin(r->f.stream, NULL); }
static rondo_status act_condition_end(refused_fixture *r) { return rondo_graph_condition_end(r->f.stream); }

static const struct {
    rondo_status (*act)(refused_fixture *r);
    rondo_code code;
    const char *part;
} refused_acts[] = {
    {act_launch_null, RONDO_CODE_INVALID_ARGUMENT, "the call is null"},
    {act_launch_nothing, RONDO_CODE_INVALID_ARGUMENT, "kernel's function is null"},
    {act_launch_access, RONDO_CODE_INVALID_ARGUMENT, "access 4"},
    {act_copy_null, RONDO_CODE_INVALID_ARGUMENT, "the destination is null"},
    {act_copy_from_null, RONDO_CODE_INVALID_ARGUMENT, "the source is null"},
    {act_copy_direction, RONDO_CODE_INVALID_ARGUMENT, "9 is no direction"},
    {act_fill_null, RONDO_CODE_INVALID_ARGUMENT, "the destination is null"},
    {act_fill_all, RONDO_CODE_INVALID_ARGUMENT, "pass the end of all memory"},
    {act_host_null, RONDO_CODE_INVALID_ARGUMENT, "the function is null"},
    {act_record_null, RONDO_CODE_INVALID_ARGUMENT, "the event is null"},
    {act_wait_null, RONDO_CODE_INVALID_ARGUMENT, "the event is null"},
    {act_record_far, RONDO_CODE_INVALID_ARGUMENT, "the event belongs to device 'sim:1'"},
    {act_wait_far, RONDO_CODE_INVALID_ARGUMENT, "the event belongs to device 'sim:1'"},
    {act_random_null, RONDO_CODE_INVALID_ARGUMENT, "needs a generator"},
    {act_random_far, RONDO_CODE_INVALID_ARGUMENT, "the generator is of device 'sim:1'"},
    {act_replay_null, RONDO_CODE_INVALID_ARGUMENT, "replay needs a graph"},
    {act_replay_empty, RONDO_CODE_INVALID_STATE, "replay is not legal while it is empty"},
    {act_condition_null, RONDO_CODE_INVALID_ARGUMENT, "int64 in device memory"},
    {act_condition_end, RONDO_CODE_INVALID_STATE, "without a condition that has begun"},
};

static void test_refused_work_breaks_the_capture(rondo_test *t, const char *device) {
    refused_fixture r;
    refused_open(t, &r, device);
    for (size_t i = 0; i < sizeof refused_acts / sizeof *refused_acts; i++) {
        rondo_code code = refused_acts[i].code;
        const char *part = refused_acts[i].part;
        T_OK(t, gt_begin(&r.f, r.graph));
        rondo_test_code(t, refused_acts[i].act(&r), code, part, "refused work", __FILE__, __LINE__);
        T_EQ(t, rondo_graph_get_state(r.graph), RONDO_GRAPH_INVALIDATED);
        T_FAILS(t, gt_add(&r.f, r.f.buffers[0], r.f.buffers[1], r.f.buffers[2]), CAPTURE_INVALIDATED, part);
        T_FAILS(t, rondo_graph_capture_end(r.graph, r.f.stream), CAPTURE_INVALIDATED, part);
        /* The same outside a capture breaks nothing. */
        rondo_status outside = refused_acts[i].act(&r);
        T_TRUE(t, outside != RONDO_OK || rondo_test_failing(t));
        rondo_status_release(outside);
        T_OK(t, gt_add(&r.f, r.f.buffers[0], r.f.buffers[1], r.f.buffers[2]));
        T_OK(t, rondo_stream_synchronize(r.f.stream));
    }
}
GT_BOTH(test_refused_work_breaks_the_capture)

/* What is no work leaves the capture alone: questions, and calls that are about another graph. */
static void test_what_is_no_work(rondo_test *t, const char *device) {
    refused_fixture r;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    refused_open(t, &r, device);
    T_OK(t, gt_begin(&r.f, r.graph));
    T_FAILS(t, rondo_stream_capture_status(r.f.stream, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_stream_query(r.f.stream, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_capture_begin(r.empty, r.f.stream, (rondo_pool_id){0, 0}, 0), INVALID_STATE, NULL);
    T_FAILS(t, rondo_graph_capture_end(r.empty, r.f.stream), INVALID_STATE, NULL);
    T_FAILS(t, rondo_graph_replay(r.empty, r.f.other), INVALID_STATE, NULL);
    T_FAILS(t, rondo_graph_replay(r.graph, r.f.stream), INVALID_STATE, "while it is capturing");
    T_FAILS(t, rondo_stream_copy(r.f.other, NULL, NULL, 4, 1), INVALID_ARGUMENT, NULL);
    T_EQ(t, rondo_graph_get_state(r.graph), RONDO_GRAPH_CAPTURING);
    T_OK(t, gt_add(&r.f, r.f.buffers[0], r.f.buffers[1], r.f.buffers[2]));
    T_OK(t, rondo_graph_capture_end(r.graph, r.f.stream));
    T_OK(t, rondo_graph_get_info(r.graph, &info));
    T_EQ(t, info.nodes, 1);
}
GT_BOTH(test_what_is_no_work)

/* A null object is INVALID_ARGUMENT in every state, and changes nothing. */
static void nulls(rondo_test *t, rondo_graph *graph, rondo_graph_state state) {
    T_EQ(t, rondo_graph_get_state(graph), state);
    T_FAILS(t, rondo_graph_capture_begin(graph, NULL, (rondo_pool_id){0, 0}, 0), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_capture_end(graph, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_replay(graph, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_debug_dump(graph, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_pool(graph, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_get_info(graph, NULL), INVALID_ARGUMENT, NULL);
    T_EQ(t, rondo_graph_get_state(graph), state);
}

static void test_null_objects(rondo_test *t, const char *device) {
    refused_fixture r;
    rondo_graph *none = NULL;
    rondo_pool_id pool;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    rondo_graph_options keep = RONDO_GRAPH_OPTIONS_INIT;
    refused_open(t, &r, device);
    keep.keep_graph = 1;
    rondo_graph_release(r.graph);
    r.graph = NULL;
    T_OK(t, rondo_graph_create(r.f.device, &keep, &r.graph));
    nulls(t, r.graph, RONDO_GRAPH_EMPTY);
    T_OK(t, gt_begin(&r.f, r.graph));
    nulls(t, r.graph, RONDO_GRAPH_CAPTURING);
    T_FAILS(t, rondo_stream_synchronize(r.f.stream), INVALID_STATE, NULL);
    nulls(t, r.graph, RONDO_GRAPH_INVALIDATED);
    T_OK(t, rondo_graph_abort(r.graph));
    T_OK(t, gt_begin(&r.f, r.graph));
    T_OK(t, gt_add(&r.f, r.f.buffers[0], r.f.buffers[1], r.f.buffers[2]));
    T_OK(t, rondo_graph_capture_end(r.graph, r.f.stream));
    nulls(t, r.graph, RONDO_GRAPH_CAPTURED);
    T_OK(t, rondo_graph_instantiate(r.graph));
    nulls(t, r.graph, RONDO_GRAPH_READY);
    T_FAILS(t, rondo_graph_update(r.graph, 0, NULL, 4), INVALID_ARGUMENT, NULL);
    rondo_graph_retain(none);
    rondo_graph_release(none);
    rondo_graph_reset(none);
    T_EQ(t, rondo_graph_get_state(none), RONDO_GRAPH_EMPTY);
    T_FAILS(t, rondo_graph_create(NULL, NULL, &none), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_create(r.f.device, NULL, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_declare_slot(NULL, 0, r.f.buffers[0], 4, 1, 0), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_capture_begin(NULL, r.f.stream, (rondo_pool_id){0, 0}, 0), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_capture_end(NULL, r.f.stream), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_abort(NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_instantiate(NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_replay(NULL, r.f.stream), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_bind(NULL, 0, r.f.buffers[0]), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_update(NULL, 0, NULL, 0), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_enable_debug_mode(NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_debug_dump(NULL, "x.dot"), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_pool(NULL, &pool), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_get_info(NULL, &info), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_condition_begin(NULL, r.f.buffers[0]), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_condition_end(NULL), INVALID_ARGUMENT, NULL);
}
GT_BOTH(test_null_objects)

RONDO_TEST_MAIN(GT_ENTRIES(test_refused_work_breaks_the_capture), GT_ENTRIES(test_what_is_no_work),
                GT_ENTRIES(test_null_objects))
