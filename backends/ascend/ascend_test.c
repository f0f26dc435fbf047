/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend over the simulated library: what it says when there is none, how numbers become codes, and that graphs of the
 * driver give what the core's own list gives. */
#include "backends/ascend/ascend_testing.h"

/* ------------------------------------------------------------------------------------------------ without a library */

static void test_no_library(rondo_test *t) {
    rondo_device *device = NULL;
    uint32_t count = 9;
    bool has = true;
    rondo_instance *instance = open_instance(t, "/nowhere/libascendcl.so");
    T_FAILS(t, rondo_device_type_count(instance, "ascend", &count), UNAVAILABLE,
            "Ascend's runtime library is not here");
    T_FAILS(t, rondo_device_open(instance, "ascend", NULL, &device), UNAVAILABLE, "/nowhere/libascendcl.so");
    T_OK(t, rondo_device_has_graph_impl(instance, NULL, &has)); /* another accelerator is the current one, as ever */
    T_TRUE(t, has);
}

/* A library of another kind. */
static void test_wrong_library(rondo_test *t) {
    uint32_t count = 9;
    rondo_instance *instance = open_instance(t, "libm.so.6");
    T_FAILS(t, rondo_device_type_count(instance, "ascend", &count), UNAVAILABLE, "has no aclInit");
}

static void test_codes(rondo_test *t) {
    T_EQ(t, rondo__ascend_code(0), RONDO_CODE_OK);
    T_EQ(t, rondo__ascend_code(207001), RONDO_CODE_OUT_OF_MEMORY);
    T_EQ(t, rondo__ascend_code(207000), RONDO_CODE_UNSUPPORTED);
    T_EQ(t, rondo__ascend_code(207005), RONDO_CODE_OUT_OF_RANGE);
    T_EQ(t, rondo__ascend_code(107025), RONDO_CODE_CAPTURE_UNJOINED);
    T_EQ(t, rondo__ascend_code(107032), RONDO_CODE_CAPTURE_MERGED);
    T_EQ(t, rondo__ascend_code(507903), RONDO_CODE_CAPTURE_INVALIDATED);
    T_EQ(t, rondo__ascend_code(107037), RONDO_CODE_BUSY);
    T_EQ(t, rondo__ascend_code(507015), RONDO_CODE_KERNEL_FAILED);
    T_EQ(t, rondo__ascend_code(507012), RONDO_CODE_BUSY);
    T_EQ(t, rondo__ascend_code(507027), RONDO_CODE_NOT_FOUND);
    T_EQ(t, rondo__ascend_code(107004), RONDO_CODE_INVALID_ARGUMENT);
    T_EQ(t, rondo__ascend_code(207002), RONDO_CODE_OUT_OF_RANGE);
    T_EQ(t, rondo__ascend_code(207020), RONDO_CODE_OUT_OF_RANGE);
    T_EQ(t, rondo__ascend_code(1), RONDO_CODE_INTERNAL);
}

/* All four modes. */
static void test_modes(rondo_test *t) {
    static const int wants[] = {0, 0, 1, 2};
    bed b;
    bed_open(t, NULL, &b);
    for (rondo_capture_mode mode = 0; mode < RONDO_CAPTURE_MODE_COUNT; mode++) {
        int acl = -1;
        T_OK(t, rondo__ascend_mode(NULL, mode, &acl));
        T_EQ(t, acl, wants[mode]);
    }
}

/* --------------------------------------------------------------------------------------------------------- graphs */

/* One launch of the driver a replay; the same values with the core's own list. */
static void record_and_replay(rondo_test *t, const char *settings, bool native) {
    bed b;
    bed_open(t, settings, &b);
    rondo_graph *graph = open_graph(t, &b);
    T_OK(t, rondo_graph_capture_begin(graph, b.stream, no_pool, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    T_OK(t, iota(&b, b.stream, b.a, 5));
    T_OK(t, copy(&b, b.stream, b.a, b.b));
    T_OK(t, rondo_stream_copy(b.stream, b.c, b.b, 64, RONDO_COPY_DEVICE_TO_DEVICE));
    T_OK(t, rondo_graph_capture_end(graph, b.stream));
    native = native && !rondo_test_failing(t); /* without memory for it, the list is what there is */
    if (!rondo_test_failing(t)) T_EQ(t, is_native(t, graph), native);
    for (int i = 0; i < 4; i++) {
        T_OK(t, rondo_stream_fill(b.stream, b.c, 0xff, 64));
        T_OK(t, rondo_graph_replay(graph, b.stream));
        want(t, &b, b.c, 5);
    }
    if (rondo_test_failing(t)) return;
    T_EQ(t, b.control->count("aclmdlRIExecuteAsync"), native ? 4 : 0);
    T_EQ(t, b.control->count("replays"), native ? 4 : 0);
    T_EQ(t, b.control->count("aclmdlRICaptureBegin"), native);
}

static void test_native(rondo_test *t) { record_and_replay(t, NULL, true); }
static void test_list(rondo_test *t) { record_and_replay(t, "graphs=list", false); }
static void test_without_updates(rondo_test *t) { record_and_replay(t, "updates=off", true); }

static void test_settings(rondo_test *t) {
    rondo_device *device = NULL;
    rondo_instance *instance = open_instance(t, library_path(t));
    T_FAILS(t, rondo_device_open(instance, "ascend", "graphs=some", &device), INVALID_ARGUMENT, "graphs=native|list");
    T_FAILS(t, rondo_device_open(instance, "ascend", "colour=red", &device), INVALID_ARGUMENT, "is no setting");
    T_FAILS(t, rondo_device_open(instance, "ascend:7", NULL, &device), OUT_OF_RANGE, "7");
}

/* The driver refuses a capture: the graph is replayed all the same, and the log says why. */
static void test_a_refused_capture_is_replayed_by_the_list(rondo_test *t) {
    bed b;
    bed_open(t, NULL, &b);
    T_EQ(t, b.control->set("NOTIFIES", 0), 0);
    rondo_graph *graph = open_graph(t, &b);
    T_OK(t, rondo_graph_capture_begin(graph, b.stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, iota(&b, b.stream, b.a, 5));
    T_OK(t, rondo_graph_capture_end(graph, b.stream));
    T_TRUE(t, !is_native(t, graph));
    if (!rondo_test_failing(t)) T_TRUE(t, strstr(lines, "is replayed node by node") && strstr(lines, "[207009]"));
    T_OK(t, rondo_graph_replay(graph, b.stream));
    want(t, &b, b.a, 5);
}

/* Older drivers: task groups answer 207000, which costs updates and nothing else. */
static void test_updates_go_without_task_groups(rondo_test *t) {
    bed b;
    bed_open(t, NULL, &b);
    T_EQ(t, b.control->set("TASK_UPDATE", 0), 0);
    rondo_graph *graph = open_graph(t, &b);
    T_OK(t, rondo_graph_capture_begin(graph, b.stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, iota(&b, b.stream, b.a, 5));
    T_OK(t, rondo_graph_capture_end(graph, b.stream));
    T_TRUE(t, is_native(t, graph));
    rondo_argument arguments[] = {{(uint64_t)(uintptr_t)b.a, 64, RONDO_ACCESS_WRITE, 0}, {8, 0, 0, 0}, {9, 0, 0, 0}};
    T_OK(t, rondo_graph_update(graph, 0, arguments, 3));
    T_OK(t, rondo_graph_replay(graph, b.stream));
    want(t, &b, b.a, 9);
    T_EQ(t, b.control->count("aclmdlRICaptureBegin"), 2); /* captured anew */
    T_EQ(t, b.control->count("aclmdlRICaptureTaskUpdateBegin"), 0);
}

/* E08, E10: what is updated is what the next replay sees, through task groups; what did not change costs nothing. */
static void test_e10_updates(rondo_test *t) {
    bed b;
    bed_open(t, NULL, &b);
    T_EQ(t, b.control->set("DELAY", 5), 0);
    rondo_graph *graph = open_graph(t, &b);
    T_OK(t, rondo_graph_declare_slot(graph, 0, b.b, 64, RONDO_ACCESS_WRITE, RONDO_SLOT_REBIND));
    T_OK(t, rondo_graph_capture_begin(graph, b.stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, iota(&b, b.stream, b.a, 0));
    T_OK(t, copy(&b, b.stream, b.a, b.b));
    T_OK(t, rondo_graph_capture_end(graph, b.stream));
    for (uint64_t step = 0; step < 20; step++) {
        void *to = step % 2 ? b.b : b.c;
        rondo_argument arguments[] = {
            {(uint64_t)(uintptr_t)b.a, 64, RONDO_ACCESS_WRITE, 0}, {8, 0, 0, 0}, {step / 2, 0, 0, 0}};
        T_OK(t, rondo_graph_update(graph, 0, arguments, 3)); /* changes at every other step */
        T_OK(t, rondo_graph_bind(graph, 0, to));
        T_OK(t, rondo_graph_replay(graph, b.stream));
        want(t, &b, to, step / 2);
    }
    T_EQ(t, b.control->count("aclmdlRICaptureBegin"), 1);
    T_EQ(t, b.control->count("aclmdlRIExecuteAsync"), 20);
    T_EQ(t, b.control->count("aclmdlRICaptureTaskUpdateBegin"), 9 + 20);
}

/* E12: nobody waits for the host between the steps; each sees its own value. */
static void test_e12_a_thousand_steps(rondo_test *t) {
    enum { STEPS = 1000 };
    bed b;
    bed_open(t, NULL, &b);
    void *results = NULL;
    T_OK(t, rondo_memory_allocate(b.device, STEPS * 64, &results));
    T_EQ(t, b.control->set("DELAY", 3), 0);
    rondo_graph *graph = open_graph(t, &b);
    T_OK(t, rondo_graph_capture_begin(graph, b.stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, iota(&b, b.stream, b.a, 0));
    T_OK(t, rondo_graph_capture_end(graph, b.stream));
    for (uint64_t step = 0; step < STEPS; step++) {
        rondo_stream *stream = step % 2 ? b.side : b.stream;
        char *result = (char *)results + step * 64;
        rondo_argument arguments[] = {
            {(uint64_t)(uintptr_t)result, 64, RONDO_ACCESS_WRITE, 0}, {8, 0, 0, 0}, {step, 0, 0, 0}};
        T_OK(t, rondo_graph_update(graph, 0, arguments, 3));
        T_OK(t, rondo_graph_replay(graph, stream));
    }
    T_OK(t, rondo_stream_synchronize(b.side));
    T_OK(t, rondo_stream_synchronize(b.stream));
    T_EQ(t, b.control->count("aclmdlRICaptureTaskUpdateBegin"), STEPS);
    for (uint64_t step = 0; step < STEPS; step += 7) want(t, &b, (char *)results + step * 64, step);
}

/* E14: what does not fit is said before the driver does, by what is missing. */
static void test_e14_streams_are_counted_first(rondo_test *t) {
    bed b;
    rondo_stream *more = NULL;
    bed_open(t, NULL, &b);
    T_EQ(t, b.control->set("STREAMS", (int64_t)b.control->alive("hardware_streams")), 0);
    b.control->clear_counts();
    T_FAILS(t, rondo_stream_create(b.device, NULL, &more), OUT_OF_RANGE, "no hardware stream is left");
    T_EQ(t, b.control->count("aclrtCreateStreamWithConfig"), 0);
}

/* The same of events, whose ids the driver gives out at their first records: one that would get none is not made, and a graph
 * whose end could not be marked is refused before it runs. */
static void test_events_are_counted_first(rondo_test *t) {
    enum { MORE = 3 };
    bed b;
    vendor v;
    uint32_t left = 0;
    int (*ask)(uint32_t *) = NULL;
    rondo_event *events[MORE] = {NULL}, *one_more = NULL;
    bed_open(t, NULL, &b);
    vendor_open(t, &v);
    vendor_find(t, &v, "aclrtGetEventAvailNum", &ask);
    rondo_graph *graph = open_graph(t, &b);
    T_EQ(t, ask(&left), 0);
    T_EQ(t, b.control->set("EVENTS", 65536 - (int64_t)left + MORE), 0);
    for (int i = 0; i < MORE; i++) T_OK(t, rondo_event_create(b.device, &events[i]));
    for (int recorded = 0; recorded <= MORE; recorded++) {
        b.control->clear_counts();
        T_FAILS(t, rondo_event_create(b.device, &one_more), OUT_OF_RANGE, "no event is left");
        T_EQ(t, b.control->count("aclrtCreateEventExWithFlag"), 0);
        if (recorded < MORE) T_OK(t, rondo_event_record(events[recorded], b.stream));
    }
    T_FAILS(t, rondo_graph_capture_begin(graph, b.stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL), OUT_OF_RANGE,
            "no event is left");
    T_OK(t, rondo_stream_synchronize(b.stream));
    rondo_event_release(events[0]);
    T_OK(t, rondo_graph_capture_begin(graph, b.stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, iota(&b, b.stream, b.a, 5));
    T_OK(t, rondo_graph_capture_end(graph, b.stream));
    T_OK(t, rondo_graph_replay(graph, b.stream));
    want(t, &b, b.a, 5);
    for (int i = 1; i < MORE; i++) rondo_event_release(events[i]);
}

/* E16: a graph is replayed while another one is captured; it becomes nodes of it. */
static void test_e16_a_replay_inside_a_capture(rondo_test *t) {
    bed b;
    bed_open(t, NULL, &b);
    rondo_graph *inner = open_graph(t, &b), *outer = open_graph(t, &b);
    T_OK(t, rondo_graph_capture_begin(inner, b.stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, iota(&b, b.stream, b.a, 3));
    T_OK(t, rondo_graph_capture_end(inner, b.stream));
    T_OK(t, rondo_graph_capture_begin(outer, b.stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, rondo_graph_replay(inner, b.stream));
    T_OK(t, copy(&b, b.stream, b.a, b.b));
    T_OK(t, rondo_graph_capture_end(outer, b.stream));
    rondo_graph_reset(inner);
    T_OK(t, rondo_graph_replay(outer, b.stream));
    want(t, &b, b.b, 3);
    if (!rondo_test_failing(t)) T_EQ(t, b.control->count("aclmdlRIExecuteAsync"), 1);
}

static int32_t fail_with(const void *context, const uint64_t *words) {
    (void)context, (void)words;
    return 42;
}

static int32_t fail_host(void *user) {
    (void)user;
    return 7;
}

/* Eagerly and in a graph: the call by its name, once, and what is behind it does not run. */
static void test_failures_by_name(rondo_test *t) {
    bed b;
    bed_open(t, NULL, &b);
    rondo_graph *graph = open_graph(t, &b);
    rondo_call call = RONDO_CALL_INIT;
    call.kernel = (rondo_kernel){fail_with, NULL};
    call.name = "the_culprit";
    for (int in_graph = 0; in_graph < 2; in_graph++) {
        T_OK(t, rondo_stream_fill(b.stream, b.a, 0, 64));
        T_OK(t, rondo_stream_synchronize(b.stream));
        if (in_graph) T_OK(t, rondo_graph_capture_begin(graph, b.stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
        T_OK(t, rondo_stream_launch(b.stream, &call));
        T_OK(t, iota(&b, b.stream, b.a, 100));
        if (in_graph) T_OK(t, rondo_graph_capture_end(graph, b.stream));
        if (in_graph) T_OK(t, rondo_graph_replay(graph, b.stream));
        T_FAILS(t, rondo_stream_synchronize(b.stream), KERNEL_FAILED, "'the_culprit' failed: it returned 42");
        T_OK(t, rondo_stream_synchronize(b.stream));
        uint64_t got = 1;
        T_OK(t, rondo_stream_copy(b.stream, &got, b.a, 8, RONDO_COPY_DEVICE_TO_HOST));
        T_OK(t, rondo_stream_synchronize(b.stream));
        T_EQ(t, got, 0);
    }
    T_OK(t, rondo_stream_host_call(b.stream, fail_host, NULL));
    T_OK(t, iota(&b, b.stream, b.a, 100));
    T_FAILS(t, rondo_stream_synchronize(b.stream), KERNEL_FAILED, "a host function failed: it returned 7");
}

/* The driver's own number and sentence go along. */
static void test_the_drivers_words(rondo_test *t) {
    bed b;
    bed_open(t, NULL, &b);
    void *memory = NULL;
    T_FAILS(t, rondo_memory_allocate(b.device, (uint64_t)4 << 30, &memory), OUT_OF_MEMORY, "[207001]");
}

static void *own_context(void *argument) {
    const bed *b = argument;
    int (*set)(int32_t) = NULL;
    int (*now)(int32_t *) = NULL;
    void *library = dlopen(getenv("RONDO_ACL_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    void *symbol = dlsym(library, "aclrtSetDevice");
    memcpy(&set, &symbol, sizeof symbol);
    symbol = dlsym(library, "aclrtGetDevice");
    memcpy(&now, &symbol, sizeof symbol);
    int32_t device = -1;
    int error = set(1);
    rondo_status_release(iota(b, b->stream, b->a, 77));
    if (!error) error = now(&device);
    (void)dlclose(library);
    return (void *)(intptr_t)(error ? -1 : device);
}

/* Another library's device in the same thread is left as it was. */
static void test_a_threads_context_is_its_own(rondo_test *t) {
    bed b;
    pthread_t thread;
    void *device = NULL;
    bed_open(t, NULL, &b);
    T_EQ(t, pthread_create(&thread, NULL, own_context, &b), 0);
    T_EQ(t, pthread_join(thread, &device), 0);
    T_EQ(t, (intptr_t)device, 1);
    want(t, &b, b.a, 77);
}

/* Graphs of several lanes, captured natively, against the values of the same work done eagerly; under random delays. */
static void test_forks(rondo_test *t) {
    bed b;
    bed_open(t, NULL, &b);
    rondo_graph *graph = open_graph(t, &b);
    rondo_event *out = NULL, *back = NULL;
    T_OK(t, rondo_event_create(b.device, &out));
    T_DEFER(t, rondo_event_release, out);
    T_OK(t, rondo_event_create(b.device, &back));
    T_DEFER(t, rondo_event_release, back);
    T_EQ(t, b.control->set("DELAY", 20), 0);
    T_OK(t, rondo_graph_capture_begin(graph, b.stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, iota(&b, b.stream, b.a, 5));
    T_OK(t, rondo_event_record(out, b.stream));
    T_OK(t, rondo_event_wait(out, b.side));
    T_OK(t, copy(&b, b.side, b.a, b.b));
    T_OK(t, rondo_event_record(back, b.side));
    T_OK(t, rondo_event_wait(back, b.stream));
    T_OK(t, copy(&b, b.stream, b.b, b.c));
    T_OK(t, rondo_graph_capture_end(graph, b.stream));
    if (!rondo_test_failing(t)) T_TRUE(t, is_native(t, graph)); /* without memory for it, the list is what there is */
    for (int i = 0; i < 20; i++) {
        T_OK(t, rondo_stream_fill(b.stream, b.c, 0, 64));
        T_OK(t, rondo_graph_replay(graph, b.stream));
        want(t, &b, b.c, 5);
    }
    if (!rondo_test_failing(t)) T_EQ(t, b.control->count("aclmdlRIExecuteAsync"), 20);
}

/* -------------------------------------------------------------------------------------- events outside of graphs */

/* Each step writes a value on the side; the replay waits for it, and the side for what the replay records. A slot behind the wait
 * shows that nodes keep their numbers. */
static void steps_with_events(rondo_test *t, const bed *b, bool native) {
    enum { STEPS = 20 };
    void *results = NULL;
    rondo_event *in = open_event(t, b), *out = open_event(t, b);
    rondo_graph *graph = open_graph(t, b);
    T_OK(t, rondo_memory_allocate(b->device, (uint64_t)STEPS * 64, &results));
    T_EQ(t, b->control->set("DELAY", 30), 0);
    T_OK(t, rondo_graph_declare_slot(graph, 0, b->c, 64, RONDO_ACCESS_WRITE, RONDO_SLOT_REBIND));
    T_OK(t, spin(b, b->side));
    T_OK(t, iota(b, b->side, b->a, 0));
    T_OK(t, rondo_event_record(in, b->side)); /* before there is a graph that waits for it */
    T_OK(t, rondo_graph_capture_begin(graph, b->stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, rondo_event_wait_external(in, b->stream));
    T_OK(t, copy(b, b->stream, b->a, b->b));
    T_OK(t, copy(b, b->stream, b->b, b->c));
    T_OK(t, rondo_event_record_external(out, b->stream));
    T_OK(t, rondo_graph_capture_end(graph, b->stream));
    T_EQ(t, is_native(t, graph), native);
    for (uint64_t step = 0; step < STEPS; step++) {
        T_OK(t, rondo_graph_bind(graph, 0, (char *)results + step * 64));
        T_OK(t, rondo_graph_replay(graph, b->stream));
        T_OK(t, rondo_event_wait(out, b->side));
        T_OK(t, iota(b, b->side, b->a, 100 * (step + 1))); /* what the replay has read */
        T_OK(t, rondo_event_record(in, b->side));
    }
    T_OK(t, rondo_event_synchronize(out));
    T_OK(t, rondo_stream_synchronize(b->side)); /* the delays are set anew behind it */
    for (uint64_t step = 0; step < STEPS; step++) want(t, b, (char *)results + step * 64, 100 * step);
    T_EQ(t, b->control->count("aclmdlRIExecuteAsync"), native ? STEPS : 0);
    T_EQ(t, b->control->count("aclmdlRICaptureTaskUpdateBegin"), native ? STEPS : 0);
}

static void test_events_of_outside_are_in_the_graph(rondo_test *t) {
    bed b;
    bed_open(t, NULL, &b);
    steps_with_events(t, &b, true);
    T_EQ(t, b.control->count("aclmdlRICaptureBegin"), 1);
    T_EQ(t, b.control->count("aclrtStreamWaitEventWithFlag"), 1);
    T_EQ(t, b.control->count("aclrtRecordEventWithFlag"), 1);
    T_EQ(t, b.control->alive("models"), 1);
}

/* 207000: the driver is asked once, and graphs without such events stay its own. */
static void go_without_events(rondo_test *t, const bed *b, const char *which) {
    steps_with_events(t, b, false);
    T_TRUE(t, strstr(lines, "is replayed node by node") && strstr(lines, "[207000]"));
    T_TRUE(t, strstr(lines, which) != NULL);
    T_EQ(t, b->control->count("aclrtStreamWaitEventWithFlag"), 1);
    steps_with_events(t, b, false);
    T_EQ(t, b->control->count("aclrtStreamWaitEventWithFlag"), 1);
    T_TRUE(t, strstr(lines, "it said before") != NULL);
    rondo_graph *graph = open_graph(t, b);
    T_OK(t, rondo_graph_capture_begin(graph, b->stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, iota(b, b->stream, b->a, 5));
    T_OK(t, rondo_graph_capture_end(graph, b->stream));
    T_TRUE(t, is_native(t, graph));
}

static void test_older_firmware_has_no_events_of_outside(rondo_test *t) {
    bed b;
    bed_open(t, NULL, &b);
    T_EQ(t, b.control->set("SOFTWARE_SQ", 0), 0);
    go_without_events(t, &b, "node 0 waits for event");
}

static void test_records_of_outside_are_refused(rondo_test *t) {
    bed b;
    bed_open(t, NULL, &b);
    T_EQ(t, b.control->fail("aclrtRecordEventWithFlag", 1, 207000), 0);
    go_without_events(t, &b, "node 3 records event");
}

/* What the contract has no use for is told, as is what is missing. */
static void test_what_is_not_used_is_told(rondo_test *t) {
    char path[512];
    rondo_device *device = NULL;
    rondo_instance *whole = open_instance(t, library_path(t));
    T_OK(t, rondo_device_open(whole, "ascend", NULL, &device));
    rondo_device_release(device);
    T_TRUE(t, strstr(lines, "ascend:0: task edit: not used: ") &&
                  strstr(lines, "ascend:0: conditions in its own graphs: not used: "));
    T_TRUE(t, strstr(lines, "ascend:0: no ") == NULL);
    write_older_library(t, "aclmdlRITaskSetParams", path, sizeof path);
    T_DEFER(t, forget_older_library, path);
    older_library = path;
    rondo_instance *older = open_instance(t, library_path(t));
    T_OK(t, rondo_device_open(older, "ascend", NULL, &device));
    rondo_device_release(device);
    T_TRUE(t, strstr(lines, "no task edit: ") && strstr(lines, "has no aclmdlRITaskSetParams"));
    T_TRUE(t, strstr(lines, "conditions in its own graphs: not used: ") != NULL);
}

static void test_a_library_without_events_of_outside(rondo_test *t) {
    char path[512];
    bed b;
    write_older_library(t, "aclrtRecordEventWithFlag", path, sizeof path);
    T_DEFER(t, forget_older_library, &b);
    older_library = path;
    bed_open(t, NULL, &b);
    T_TRUE(t, strstr(lines, "no events outside of graphs") && strstr(lines, "has no aclrtRecordEventWithFlag"));
    steps_with_events(t, &b, false);
    T_EQ(t, b.control->count("aclrtStreamWaitEventWithFlag"), 0);
    T_EQ(t, b.control->count("aclmdlRICaptureBegin"), 0); /* not even tried */
}

/* The driver's graphs take an event once: said by event and nodes before it is asked, and the list does it. */
static void test_an_event_of_outside_twice(rondo_test *t) {
    static const char *const says[] = {"node 2 records event", "node 2 waits for event", "node 2 records event"};
    static const char *const of[] = {"which node 0 waits for already", "which node 0 waits for already",
                                     "which node 0 records already"};
    bed b;
    bed_open(t, NULL, &b);
    for (int way = 0; way < 3; way++) {
        lines[0] = 0;
        b.control->clear_counts();
        rondo_event *event = open_event(t, &b);
        rondo_graph *graph = open_graph(t, &b);
        T_OK(t, rondo_graph_capture_begin(graph, b.stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
        if (way == 2) T_OK(t, rondo_event_record_external(event, b.stream));
        else T_OK(t, rondo_event_wait_external(event, b.stream));
        T_OK(t, copy(&b, b.stream, b.a, b.b));
        if (way == 1) T_OK(t, rondo_event_wait_external(event, b.stream));
        else T_OK(t, rondo_event_record_external(event, b.stream));
        T_OK(t, rondo_graph_capture_end(graph, b.stream));
        T_TRUE(t, !is_native(t, graph));
        T_TRUE(t, strstr(lines, says[way]) && strstr(lines, of[way]));
        T_EQ(t, b.control->count("aclrtStreamWaitEventWithFlag") + b.control->count("aclrtRecordEventWithFlag"), 1);
        for (uint64_t step = 0; step < 3; step++) {
            T_OK(t, iota(&b, b.side, b.a, step));
            T_OK(t, rondo_event_record(event, b.side));
            if (way == 2) T_OK(t, rondo_stream_synchronize(b.side));
            T_OK(t, rondo_graph_replay(graph, b.stream));
            want(t, &b, b.b, step);
        }
        T_EQ(t, b.control->count("aclmdlRIExecuteAsync"), 0);
    }
}

/* ------------------------------------------------------------------------------- streams of another library */

/* The owner's launches and Rondo's are in one graph of the driver; fork and join go through Rondo. */
static void test_a_wrapped_stream_is_captured_by_the_driver(rondo_test *t) {
    bed b;
    vendor v;
    rondo_event *out = NULL, *back = NULL;
    rondo_capture_status status = RONDO_CAPTURE_STATUS_INIT;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    bed_open(t, NULL, &b);
    vendor_open(t, &v);
    rondo_stream *stream = wrap(t, &b, v.stream), *side = wrap(t, &b, v.side);
    rondo_graph *graph = open_graph(t, &b);
    T_OK(t, rondo_event_create(b.device, &out));
    T_DEFER(t, rondo_event_release, out);
    T_OK(t, rondo_event_create(b.device, &back));
    T_DEFER(t, rondo_event_release, back);
    for (int round = 0; round < 2; round++) {
        T_OK(t, rondo_graph_capture_begin(graph, stream, no_pool, RONDO_CAPTURE_MODE_THREAD_LOCAL));
        T_EQ(t, v.set(b.c, 64, 0x11, 64, v.stream), 0); /* Rondo does not see it */
        T_OK(t, iota(&b, stream, b.a, 30));
        T_OK(t, rondo_event_record(out, stream));
        T_OK(t, rondo_event_wait(out, side));
        T_OK(t, rondo_stream_capture_status(side, &status));
        T_TRUE(t, status.active && status.id);
        T_OK(t, copy(&b, side, b.a, b.b));
        T_OK(t, rondo_event_record(back, side));
        T_OK(t, rondo_event_wait(back, stream));
        T_OK(t, rondo_graph_capture_end(graph, stream));
        T_OK(t, rondo_stream_capture_status(side, &status));
        T_TRUE(t, !status.active);
        T_OK(t, rondo_graph_get_info(graph, &info));
        T_TRUE(t, info.native && !info.empty && info.opaque && info.unverified);
        uint64_t got[8];
        for (int i = 0; i < 3; i++) {
            T_OK(t, rondo_stream_fill(b.stream, b.c, 0, 64));
            T_OK(t, rondo_stream_fill(b.stream, b.b, 0, 64));
            T_OK(t, rondo_stream_synchronize(b.stream));
            T_OK(t, rondo_graph_replay(graph, i ? b.stream : stream));
            T_OK(t, rondo_stream_synchronize(stream));
            want(t, &b, b.b, 30);
            T_OK(t, rondo_stream_copy(b.stream, got, b.c, 64, RONDO_COPY_DEVICE_TO_HOST));
            T_OK(t, rondo_stream_synchronize(b.stream));
            T_EQ(t, got[0], 0x1111111111111111);
        }
        T_FAILS(t, rondo_graph_update(graph, 0, NULL, 0), UNSUPPORTED, "captured by the driver");
        rondo_graph_reset(graph);
    }
    T_EQ(t, b.control->count("aclmdlRIExecuteAsync"), 6);
    T_EQ(t, b.control->alive("models"), 0);
}

/* Each way of going wrong leaves graph and streams as they were. */
static void test_a_wrapped_streams_capture_fails(rondo_test *t) {
    bed b;
    vendor v;
    rondo_event *out = NULL;
    bed_open(t, NULL, &b);
    vendor_open(t, &v);
    rondo_stream *stream = wrap(t, &b, v.stream), *side = wrap(t, &b, v.side);
    rondo_graph *graph = open_graph(t, &b), *other = open_graph(t, &b);
    T_OK(t, rondo_event_create(b.device, &out));
    T_DEFER(t, rondo_event_release, out);
    for (int way = 0; way < 6; way++) {
        if (way == 4) {
            T_OK(t, rondo_graph_declare_slot(graph, 0, b.a, 64, RONDO_ACCESS_WRITE, RONDO_SLOT_REBIND));
            T_FAILS(t, rondo_graph_capture_begin(graph, stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL), UNSUPPORTED,
                    "slots");
            rondo_graph_reset(graph);
        }
        T_OK(t, rondo_graph_capture_begin(graph, stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
        T_OK(t, iota(&b, stream, b.a, 1));
        if (way == 0) { /* a fork that does not come back */
            T_OK(t, rondo_event_record(out, stream));
            T_OK(t, rondo_event_wait(out, side));
            T_OK(t, iota(&b, side, b.b, 1));
            T_FAILS(t, rondo_graph_capture_end(graph, stream), CAPTURE_UNJOINED, "[107025]");
        } else if (way == 1) {
            T_FAILS(t, rondo_stream_synchronize(stream), INVALID_STATE, "captures");
            T_FAILS(t, rondo_graph_capture_end(graph, stream), CAPTURE_INVALIDATED, "rondo_stream_synchronize");
        } else if (way == 5) { /* the driver's own trouble at the end */
            T_EQ(t, b.control->fail("aclmdlRICaptureEnd", 1, 507899), 0);
            T_FAILS(t, rondo_graph_capture_end(graph, stream), DEVICE_LOST, "[507899]");
        } else if (way == 2) T_OK(t, rondo_graph_abort(graph));
        else T_OK(t, rondo_graph_capture_end(graph, stream));
        rondo_graph_reset(graph);
        T_EQ(t, rondo_graph_get_state(graph), RONDO_GRAPH_EMPTY);
        T_OK(t, rondo_stream_synchronize(stream));
        T_OK(t, rondo_stream_synchronize(side));
    }
    T_EQ(t, b.control->alive("models"), 0);
    /* Drivers do not nest graphs: its own is refused, one with a list is enqueued once more. */
    T_OK(t, rondo_graph_capture_begin(other, b.stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, iota(&b, b.stream, b.a, 60));
    T_OK(t, rondo_graph_capture_end(other, b.stream));
    T_OK(t, rondo_graph_capture_begin(graph, stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, rondo_graph_replay(other, stream));
    T_OK(t, rondo_graph_capture_end(graph, stream));
    T_OK(t, rondo_graph_replay(graph, b.stream));
    want(t, &b, b.a, 60);
    rondo_graph_reset(other);
    T_OK(t, rondo_graph_capture_begin(other, b.stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_FAILS(t, rondo_graph_replay(graph, b.stream), UNSUPPORTED, "drivers do not nest");
    T_FAILS(t, rondo_graph_capture_end(other, b.stream), CAPTURE_INVALIDATED, "drivers do not nest");
}

/* One event, in captures as a fork and of outside: the driver would refuse one of its own for both. */
static void test_an_event_of_both_uses(rondo_test *t) {
    bed b;
    bed_open(t, NULL, &b);
    rondo_event *event = open_event(t, &b), *join = open_event(t, &b);
    rondo_graph *first = open_graph(t, &b), *second = open_graph(t, &b);
    T_OK(t, rondo_graph_capture_begin(first, b.stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, iota(&b, b.stream, b.a, 8));
    T_OK(t, rondo_event_record_external(event, b.stream));
    T_OK(t, rondo_graph_capture_end(first, b.stream));
    T_OK(t, rondo_graph_capture_begin(second, b.side, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, rondo_event_wait_external(event, b.side)); /* from graph to graph */
    T_OK(t, copy(&b, b.side, b.a, b.b));
    T_OK(t, rondo_graph_capture_end(second, b.side));
    T_TRUE(t, is_native(t, first) && is_native(t, second));
    T_EQ(t, b.control->set("DELAY", 200), 0);
    for (int i = 0; i < 10; i++) {
        T_OK(t, rondo_stream_fill(b.stream, b.a, 0, 64));
        T_OK(t, rondo_graph_replay(first, b.stream));
        T_OK(t, rondo_graph_replay(second, b.side));
        T_OK(t, rondo_stream_synchronize(b.side));
        want(t, &b, b.b, 8);
    }
    T_EQ(t, b.control->count("aclmdlRIExecuteAsync"), 20);
    vendor v;
    vendor_open(t, &v);
    rondo_stream *stream = wrap(t, &b, v.stream), *side = wrap(t, &b, v.side);
    rondo_graph *direct = open_graph(t, &b);
    T_OK(t, rondo_graph_capture_begin(direct, stream, no_pool, RONDO_CAPTURE_MODE_RELAXED));
    T_OK(t, rondo_event_record(event, stream));
    T_OK(t, rondo_event_wait(event, side));
    T_OK(t, iota(&b, side, b.c, 3));
    T_OK(t, rondo_event_record(join, side));
    T_OK(t, rondo_event_wait(join, stream));
    T_OK(t, rondo_graph_capture_end(direct, stream));
    T_FAILS(t, rondo_graph_replay(second, b.side), INVALID_STATE, "last recorded in a capture");
    T_OK(t, rondo_graph_replay(first, b.stream)); /* records it */
    T_OK(t, rondo_graph_replay(second, b.side));
    T_OK(t, rondo_graph_replay(direct, stream));
    T_OK(t, rondo_stream_synchronize(stream));
    want(t, &b, b.c, 3);
    rondo_graph_reset(direct);
    /* A graph that waits for one becomes a part of the driver's, and may go. */
    T_OK(t, rondo_graph_capture_begin(direct, stream, no_pool, RONDO_CAPTURE_MODE_RELAXED));
    T_OK(t, rondo_graph_replay(second, stream));
    T_OK(t, rondo_graph_capture_end(direct, stream));
    rondo_graph_reset(second);
    for (int i = 0; i < 10; i++) {
        T_OK(t, rondo_stream_fill(b.stream, b.a, 0, 64));
        T_OK(t, rondo_graph_replay(first, b.stream)); /* and records */
        T_OK(t, rondo_graph_replay(direct, stream));
        T_OK(t, rondo_stream_synchronize(stream));
        want(t, &b, b.b, 8);
    }
}

/* The graph of a stream of another library's waits for what the side records, and the side for what it records. */
static void test_events_of_outside_on_wrapped_streams(rondo_test *t) {
    enum { STEPS = 20 };
    bed b;
    vendor v;
    void *results = NULL;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    bed_open(t, NULL, &b);
    vendor_open(t, &v);
    rondo_stream *stream = wrap(t, &b, v.stream);
    rondo_event *in = NULL, *out = open_event(t, &b), *inside = open_event(t, &b);
    rondo_graph *graph = open_graph(t, &b);
    T_OK(t, rondo_event_create(b.device, &in));
    T_OK(t, rondo_memory_allocate(b.device, (uint64_t)STEPS * 64, &results));
    T_EQ(t, b.control->set("DELAY", 30), 0);
    T_OK(t, spin(&b, b.side));
    T_OK(t, iota(&b, b.side, b.a, 0));
    T_OK(t, rondo_event_record(in, b.side)); /* before there is a graph that waits for it */
    T_OK(t, rondo_graph_capture_begin(graph, stream, no_pool, RONDO_CAPTURE_MODE_RELAXED));
    T_OK(t, rondo_event_wait_external(in, stream));
    T_OK(t, copy(&b, stream, b.a, b.b));
    T_EQ(t, v.set(b.c, 64, 0x11, 64, v.stream), 0); /* Rondo does not see it */
    T_OK(t, rondo_event_record_external(out, stream));
    T_OK(t, rondo_graph_capture_end(graph, stream));
    T_OK(t, rondo_graph_get_info(graph, &info));
    T_EQ(t, info.events, 2);
    T_TRUE(t, info.native && info.opaque && info.unverified);
    T_EQ(t, b.control->count("aclrtStreamWaitEventWithFlag") + b.control->count("aclrtRecordEventWithFlag"), 2);
    for (uint64_t step = 0; step < STEPS; step++) {
        T_OK(t, rondo_graph_replay(graph, stream));
        T_OK(t, rondo_event_wait(out, b.side));
        T_OK(t, copy(&b, b.side, b.b, (char *)results + step * 64));
        T_OK(t, iota(&b, b.side, b.a, 100 * (step + 1))); /* what the replay has read */
        T_OK(t, rondo_event_record(in, b.side));
    }
    T_OK(t, rondo_event_synchronize(out));
    T_OK(t, rondo_stream_synchronize(b.side)); /* the delays are set anew behind it */
    T_OK(t, rondo_stream_synchronize(stream));
    for (uint64_t step = 0; step < STEPS; step++) want(t, &b, (char *)results + step * 64, 100 * step);
    T_EQ(t, b.control->count("aclmdlRIExecuteAsync"), STEPS);
    /* The graph keeps what it waits for. */
    rondo_event_release(in);
    T_OK(t, rondo_graph_replay(graph, stream));
    T_OK(t, rondo_stream_synchronize(stream));
    rondo_graph_reset(graph);
    /* One is of outside, or of the capture. */
    T_OK(t, rondo_graph_capture_begin(graph, stream, no_pool, RONDO_CAPTURE_MODE_RELAXED));
    T_OK(t, rondo_event_record(inside, stream));
    T_FAILS(t, rondo_event_wait_external(inside, stream), INVALID_ARGUMENT, "in this very capture");
    T_FAILS(t, rondo_graph_capture_end(graph, stream), CAPTURE_INVALIDATED, "in this very capture");
    /* And once a graph: what the driver has for that fits its graphs. */
    T_OK(t, rondo_graph_capture_begin(graph, stream, no_pool, RONDO_CAPTURE_MODE_RELAXED));
    T_OK(t, rondo_event_record_external(out, stream));
    T_FAILS(t, rondo_event_record_external(out, stream), UNSUPPORTED, "which node 0 records already");
    T_FAILS(t, rondo_graph_capture_end(graph, stream), CAPTURE_INVALIDATED, "records already");
    T_OK(t, rondo_stream_synchronize(stream));
}

static void test_keep_graph_has_no_effect_there(rondo_test *t) {
    bed b;
    vendor v;
    bed_open(t, NULL, &b);
    vendor_open(t, &v);
    rondo_stream *stream = wrap(t, &b, v.stream);
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    rondo_graph *graph = NULL;
    char path[512];
    options.keep_graph = 1;
    options.name = "kept";
    T_OK(t, rondo_graph_create(b.device, &options, &graph));
    T_DEFER(t, rondo_graph_release, graph);
    for (int i = 0; i < 2; i++) {
        rondo_graph_reset(graph);
        T_OK(t, rondo_graph_capture_begin(graph, stream, no_pool, RONDO_CAPTURE_MODE_RELAXED));
        T_OK(t, iota(&b, stream, b.a, 1));
        T_OK(t, rondo_graph_capture_end(graph, stream));
        T_EQ(t, rondo_graph_get_state(graph), RONDO_GRAPH_READY);
    }
    const char *first = strstr(lines, "keep_graph has no effect");
    T_TRUE(t, first && !strstr(first + 1, "keep_graph has no effect")); /* said once */
    (void)snprintf(path, sizeof path, "%s/graph.json", rondo_test_folder(t));
    T_OK(t, rondo_graph_debug_dump(graph, path));
    T_EQ(t, access(path, R_OK), 0);
    (void)snprintf(path, sizeof path, "%s/graph.dot", rondo_test_folder(t));
    T_FAILS(t, rondo_graph_debug_dump(graph, path), UNSUPPORTED, ".json only");
    T_OK(t, rondo_graph_replay(graph, b.stream));
    want(t, &b, b.a, 1);
}

RONDO_TEST_MAIN(T(test_no_library), T(test_wrong_library), T(test_codes), T(test_modes), T(test_native), T(test_list),
                T_PLAIN(test_without_updates), T(test_settings),
                T_PLAIN(test_a_refused_capture_is_replayed_by_the_list), T_PLAIN(test_updates_go_without_task_groups),
                T_PLAIN(test_e10_updates), T_PLAIN(test_e12_a_thousand_steps),
                T_PLAIN(test_e14_streams_are_counted_first), T_PLAIN(test_events_are_counted_first),
                T(test_e16_a_replay_inside_a_capture), T(test_failures_by_name), T_PLAIN(test_the_drivers_words),
                T_PLAIN(test_a_threads_context_is_its_own), T(test_forks),
                T(test_a_wrapped_stream_is_captured_by_the_driver), T_PLAIN(test_a_wrapped_streams_capture_fails),
                T_PLAIN(test_events_of_outside_are_in_the_graph), T_PLAIN(test_older_firmware_has_no_events_of_outside),
                T_PLAIN(test_records_of_outside_are_refused), T_PLAIN(test_a_library_without_events_of_outside),
                T_PLAIN(test_what_is_not_used_is_told), T_PLAIN(test_an_event_of_outside_twice),
                T_PLAIN(test_an_event_of_both_uses), T_PLAIN(test_events_of_outside_on_wrapped_streams),
                T(test_keep_graph_has_no_effect_there))
