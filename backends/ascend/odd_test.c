/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend over drivers that misbehave: captures that do not end, devices that do not open, calls that answer 207000 or have no
 * streams left, failures without a word. The simulated library fails a call once; tests/ascend/odd_driver.c always. */
#include "backends/ascend/ascend_testing.h"

typedef bool (*odd_function)(const char *name, int error, unsigned times); /* 0: each time */

static odd_function odd_of(rondo_test *t) {
    const char *path = getenv("RONDO_TEST_ODD_LIBRARY");
    odd_function function = NULL;
    if (!path || access(path, R_OK)) rondo_test_skip(t, "RONDO_TEST_ODD_LIBRARY names no library");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) rondo_test_fail(t, __FILE__, __LINE__, "%s", dlerror());
    void *symbol = dlsym(library, "odd_answer");
    T_TRUE(t, symbol != NULL);
    memcpy(&function, &symbol, sizeof symbol);
    older_library = path;
    return function; /* the backend has it open, too, and for good */
}

static const char *const odd_calls[] = {"aclrtGetDeviceCount",
                                        "aclrtSetDevice",
                                        "aclrtGetMemInfo",
                                        "aclrtMallocHost",
                                        "aclrtPointerGetAttributes",
                                        "aclrtSetStreamFailureMode",
                                        "aclrtGetStreamAvailableNum",
                                        "aclrtGetEventAvailNum",
                                        "aclrtLaunchHostFunc",
                                        "aclrtBinaryLoadFromData",
                                        "aclrtRecordEventWithFlag",
                                        "aclrtStreamWaitEventWithFlag",
                                        "aclmdlRICaptureBegin",
                                        "aclmdlRICaptureEnd",
                                        "aclmdlRICaptureThreadExchangeMode",
                                        "aclmdlRIExecuteAsync",
                                        "aclmdlRICaptureTaskGrpBegin",
                                        "aclmdlRICaptureTaskGrpEnd",
                                        "aclmdlRICaptureTaskUpdateBegin",
                                        "aclmdlRICaptureTaskUpdateEnd",
                                        "aclmdlRISetName",
                                        "aclmdlRIDebugJsonPrint"};
enum { ODD_CALLS = sizeof odd_calls / sizeof odd_calls[0] };

typedef struct odd_bed {
    odd_function answer;
    bed b;
} odd_bed;

static void odd_back(void *pointer) {
    const odd_bed *o = pointer;
    for (int i = 0; o->answer && i < ODD_CALLS; i++) (void)o->answer(odd_calls[i], 0, 0);
    older_library = NULL;
    log_level = RONDO_LOG_INFO;
}

static void odd_open(rondo_test *t, const char *settings, odd_bed *o) {
    *o = (odd_bed){0};
    T_DEFER(t, odd_back, o); /* runs behind all that needs the driver to be itself */
    o->answer = odd_of(t);
    bed_open(t, settings, &o->b);
}

static int times(const char *text) {
    int count = 0;
    for (const char *found = lines; (found = strstr(found, text)) != NULL; found++) count++;
    return count;
}

/* ------------------------------------------------------------------------------------------------------- work */

/* A fork on the side, a join: a, copied to b there, and b to c. */
static rondo_graph *capture_fork(rondo_test *t, const bed *b, uint64_t start) {
    rondo_graph *graph = open_graph(t, b);
    rondo_event *out = open_event(t, b), *back = open_event(t, b);
    T_OK(t, rondo_graph_capture_begin(graph, b->stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, iota(b, b->stream, b->a, start));
    T_OK(t, rondo_event_record(out, b->stream));
    T_OK(t, rondo_event_wait(out, b->side));
    T_OK(t, copy(b, b->side, b->a, b->b));
    T_OK(t, rondo_event_record(back, b->side));
    T_OK(t, rondo_event_wait(back, b->stream));
    T_OK(t, copy(b, b->stream, b->b, b->c));
    T_OK(t, rondo_graph_capture_end(graph, b->stream));
    return graph;
}

static void replay_and_want(rondo_test *t, const bed *b, rondo_graph *graph, uint64_t start) {
    for (int i = 0; i < 3; i++) {
        T_OK(t, rondo_stream_fill(b->stream, b->c, 0xff, 64));
        T_OK(t, rondo_stream_synchronize(b->stream));
        T_OK(t, rondo_graph_replay(graph, i == 1 ? b->side : b->stream));
        T_OK(t, rondo_stream_synchronize(b->side));
        want(t, b, b->c, start);
    }
}

static void update_iota(rondo_test *t, const bed *b, rondo_graph *graph, uint64_t start) {
    rondo_argument arguments[] = {
        {(uint64_t)(uintptr_t)b->a, 64, RONDO_ACCESS_WRITE, 0}, {8, 0, 0, 0}, {start, 0, 0, 0}};
    T_OK(t, rondo_graph_update(graph, 0, arguments, 3));
}

/* ------------------------------------------------------------------------------------------- ends that fail */

/* The driver's own failure at an end that does nothing: asked once more, the stream is free, and the next graph is the driver's. */
static void test_an_end_that_does_not_end_is_asked_for_again(rondo_test *t) {
    odd_bed o;
    odd_open(t, NULL, &o);
    const bed b = o.b;
    uint64_t models = b.control->alive("models");
    T_TRUE(t, o.answer("aclmdlRICaptureEnd", 507000, 1));
    rondo_graph *graph = capture_fork(t, &b, 5);
    T_TRUE(t, !is_native(t, graph));
    T_EQ(t, times("is replayed node by node"), 1);
    T_TRUE(t, strstr(lines, "aclmdlRICaptureEnd: the driver gives no reason [507000]") != NULL);
    T_EQ(t, b.control->alive("models"), models);
    replay_and_want(t, &b, graph, 5);
    rondo_graph *next = capture_fork(t, &b, 6);
    T_TRUE(t, is_native(t, next));
    replay_and_want(t, &b, next, 6);
}

/* On another library's stream, where nothing else can end it. */
static void test_an_end_that_does_not_end_frees_a_wrapped_stream(rondo_test *t) {
    odd_bed o;
    vendor v;
    odd_open(t, NULL, &o);
    vendor_open(t, &v);
    const bed b = o.b;
    uint64_t models = b.control->alive("models");
    rondo_stream *stream = wrap(t, &b, v.stream), *side = wrap(t, &b, v.side);
    rondo_graph *graph = open_graph(t, &b);
    rondo_event *out = open_event(t, &b);
    for (int way = 0; way < 3; way++) {
        T_OK(t, rondo_graph_capture_begin(graph, stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
        T_OK(t, iota(&b, stream, b.a, 1));
        if (way == 1) { /* the second end has a reason of its own */
            T_OK(t, rondo_event_record(out, stream));
            T_OK(t, rondo_event_wait(out, side));
            T_OK(t, iota(&b, side, b.b, 1));
        }
        T_TRUE(t, o.answer("aclmdlRICaptureEnd", 207009, 1));
        if (way == 2) T_OK(t, rondo_graph_abort(graph));
        else
            T_FAILS(t, rondo_graph_capture_end(graph, stream), OUT_OF_RANGE,
                    "aclmdlRICaptureEnd: the driver gives no reason [207009]");
        T_EQ(t, v.set(b.c, 64, 0x22, 64, v.stream), 0);
        T_OK(t, rondo_stream_synchronize(stream));
        T_OK(t, rondo_stream_synchronize(side));
        T_EQ(t, b.control->alive("models"), models);
        uint64_t got = 0;
        T_OK(t, rondo_stream_copy(b.stream, &got, b.c, 8, RONDO_COPY_DEVICE_TO_HOST));
        T_OK(t, rondo_stream_synchronize(b.stream));
        T_EQ(t, got, 0x2222222222222222);
    }
}

/* A driver that never ends one: what it has captured is left to it, streams and events are others, and no graph is its own. */
static void test_a_driver_that_never_ends_a_capture(rondo_test *t) {
    odd_bed o;
    odd_open(t, NULL, &o);
    T_TRUE(t, o.answer("aclmdlRICaptureEnd", 507000, 0));
    rondo_graph *first = capture_fork(t, &o.b, 5), *second = capture_fork(t, &o.b, 6);
    T_TRUE(t, !is_native(t, first) && !is_native(t, second));
    replay_and_want(t, &o.b, first, 5);
    replay_and_want(t, &o.b, second, 6);
    T_EQ(t, o.b.control->count("aclmdlRICaptureBegin"), 1);
    T_EQ(t, times("aclmdlRICaptureEnd: the driver gives no reason [507000]"), 1);
    T_EQ(t, times("ascend:0: no graphs of its own: aclmdlRICaptureEnd failed and left its stream captured"), 1);
    vendor v;
    vendor_open(t, &v);
    rondo_stream *stream = wrap(t, &o.b, v.stream);
    rondo_graph *direct = open_graph(t, &o.b);
    T_FAILS(t, rondo_graph_capture_begin(direct, stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL), UNSUPPORTED,
            "left its stream captured");
    T_OK(t, iota(&o.b, stream, o.b.a, 9));
    T_OK(t, rondo_stream_synchronize(stream));
    want(t, &o.b, o.b.a, 9);
}

/* A group that the driver does not close costs the graph that it is in, and no other. */
static void test_a_task_group_that_does_not_end(rondo_test *t) {
    bed b;
    bed_open(t, NULL, &b);
    T_EQ(t, b.control->fail("aclmdlRICaptureTaskGrpEnd", 2, 507000), 0);
    rondo_graph *graph = capture_fork(t, &b, 5);
    replay_and_want(t, &b, graph, 5);
    T_TRUE(t, strstr(lines, "aclmdlRICaptureTaskGrpEnd: it was told to fail") != NULL);
    rondo_graph *next = capture_fork(t, &b, 6);
    T_TRUE(t, is_native(t, next));
    update_iota(t, &b, next, 7);
    replay_and_want(t, &b, next, 7);
    T_EQ(t, b.control->count("aclmdlRICaptureTaskUpdateBegin"), 1);
}

/* A launch that the driver refuses does not leave its group open. */
static void test_a_failed_launch_closes_its_task_group(rondo_test *t) {
    bed b;
    vendor v;
    bed_open(t, NULL, &b);
    vendor_open(t, &v);
    rondo_stream *stream = wrap(t, &b, v.stream);
    rondo_graph *graph = open_graph(t, &b);
    T_OK(t, rondo_graph_capture_begin(graph, stream, no_pool, RONDO_CAPTURE_MODE_GLOBAL));
    T_EQ(t, b.control->fail("aclrtLaunchKernelWithHostArgs", 1, 207001), 0);
    T_FAILS(t, iota(&b, stream, b.a, 1), OUT_OF_MEMORY, "[207001]");
    T_EQ(t, b.control->count("aclmdlRICaptureTaskGrpBegin"), 1);
    T_EQ(t, b.control->count("aclmdlRICaptureTaskGrpEnd"), 1);
    rondo_graph_reset(graph);
    T_OK(t, rondo_stream_synchronize(stream));
}

/* Captured anew, with what was to be updated; later updates go through groups again. */
static void test_an_update_that_does_not_end(rondo_test *t) {
    bed b;
    bed_open(t, NULL, &b);
    rondo_graph *graph = capture_fork(t, &b, 5);
    T_EQ(t, b.control->fail("aclmdlRICaptureTaskUpdateEnd", 1, 507000), 0);
    update_iota(t, &b, graph, 6);
    replay_and_want(t, &b, graph, 6);
    T_EQ(t, b.control->count("aclmdlRICaptureBegin"), 2);
    update_iota(t, &b, graph, 7);
    replay_and_want(t, &b, graph, 7);
    T_EQ(t, b.control->count("aclmdlRICaptureBegin"), 2);
    T_TRUE(t, is_native(t, graph));
}

/* The thread's mode is put back, although the driver refused to once. */
static void test_a_threads_mode_is_put_back(rondo_test *t) {
    bed b;
    vendor v;
    int (*exchange)(int *) = NULL;
    int mode = 0;
    void *memory = NULL;
    bed_open(t, NULL, &b);
    vendor_open(t, &v);
    vendor_find(t, &v, "aclmdlRICaptureThreadExchangeMode", &exchange);
    T_EQ(t, b.control->fail("aclmdlRICaptureThreadExchangeMode", 2, 507000), 0);
    T_OK(t, rondo_memory_allocate(b.device, 64u << 20, &memory));
    T_TRUE(t, b.control->count("aclmdlRICaptureThreadExchangeMode") >= 2);
    T_EQ(t, exchange(&mode), 0);
    T_EQ(t, mode, 0);
}

/* --------------------------------------------------------------------------------------- devices that do not open */

static void test_a_driver_that_cannot_count(rondo_test *t) {
    static const int errors[] = {207004, 507000, 207000};
    odd_bed o = {0};
    T_DEFER(t, odd_back, &o);
    o.answer = odd_of(t);
    for (int i = 0; i < 3; i++) {
        rondo_device *device = NULL;
        uint32_t count = 9;
        bool has = false;
        char number[16];
        rondo_instance *instance = open_instance(t, library_path(t));
        (void)snprintf(number, sizeof number, "[%d]", errors[i]);
        T_TRUE(t, o.answer("aclrtGetDeviceCount", errors[i], 0));
        T_FAILS(t, rondo_device_type_count(instance, "ascend", &count), UNAVAILABLE, "aclrtGetDeviceCount: ");
        T_FAILS(t, rondo_device_type_count(instance, "ascend", &count), UNAVAILABLE, number);
        T_FAILS(t, rondo_device_open(instance, "ascend", NULL, &device), UNAVAILABLE, number);
        T_OK(t, rondo_device_has_graph_impl(instance, NULL, &has)); /* another accelerator is the current one */
        T_TRUE(t, has);
        T_TRUE(t, o.answer("aclrtGetDeviceCount", 0, 0));
        T_OK(t, rondo_device_type_count(instance, "ascend", &count));
        T_EQ(t, count, 2);
    }
}

/* ------------------------------------------------------------------------------------------- calls that do nothing */

/* The graph is captured, and does not run: nodes do, from the first replay on, and it is said once. */
static void no_execute(rondo_test *t, odd_bed *o, int error, const char *number) {
    odd_open(t, NULL, o);
    uint64_t models = o->b.control->alive("models"); /* another test may have left some to the driver */
    rondo_graph *graph = capture_fork(t, &o->b, 5);
    T_TRUE(t, is_native(t, graph));
    T_TRUE(t, o->answer("aclmdlRIExecuteAsync", error, 0));
    replay_and_want(t, &o->b, graph, 5);
    T_TRUE(t, !is_native(t, graph));
    T_EQ(t, times("is replayed node by node from now on"), 1);
    T_TRUE(t, strstr(lines, number) != NULL);
    T_EQ(t, o->b.control->alive("models"), models);
    update_iota(t, &o->b, graph, 6);
    replay_and_want(t, &o->b, graph, 6);
    T_EQ(t, times("is replayed node by node"), 1);
    o->b.control->clear_counts();
    rondo_graph *next = capture_fork(t, &o->b, 7);
    replay_and_want(t, &o->b, next, 7);
    T_EQ(t, o->b.control->count("aclmdlRICaptureBegin"), error == 207000 ? 0 : 1); /* streams may be there next time */
}

static void test_graphs_that_cannot_be_launched(rondo_test *t) {
    odd_bed o;
    no_execute(t, &o, 207000, "aclmdlRIExecuteAsync answered 207000");
    T_EQ(t, times("ascend:0: no graphs of its own: aclmdlRIExecuteAsync answered 207000"), 1);
    T_TRUE(t, strstr(lines, "it said before") != NULL);
}

static void test_graphs_without_streams_at_launch(rondo_test *t) {
    odd_bed beds[2]; /* till the end of the test */
    no_execute(t, &beds[0], 207005, "[207005]");
    no_execute(t, &beds[1], 207008, "[207008]");
}

/* Streams run out between capture and replay, as the simulator's do: nodes go on. */
static void test_streams_run_out_before_a_replay(rondo_test *t) {
    bed b;
    bed_open(t, NULL, &b);
    rondo_graph *graph = capture_fork(t, &b, 5);
    T_TRUE(t, is_native(t, graph));
    T_EQ(t, b.control->set("STREAMS", (int64_t)b.control->alive("hardware_streams") + 1), 0);
    replay_and_want(t, &b, graph, 5);
    T_TRUE(t, !is_native(t, graph));
    T_EQ(t, times("is replayed node by node from now on"), 1);
    T_TRUE(t, strstr(lines, "[207005]") != NULL);
}

/* What is known at the capture is said then: its runs would need one stream more than there are. */
static void test_streams_are_counted_at_the_capture(rondo_test *t) {
    bed b;
    bed_open(t, NULL, &b);
    /* One more for the lane of its own, and one for the stream that it is captured on, which is free again afterwards. */
    T_EQ(t, b.control->set("STREAMS", (int64_t)b.control->alive("hardware_streams") + 2), 0);
    uint64_t models = b.control->alive("models");
    rondo_graph *graph = capture_fork(t, &b, 5);
    T_TRUE(t, !is_native(t, graph));
    T_TRUE(t, strstr(lines, "a run of the graph takes 2 hardware streams, and 1 are left") != NULL);
    T_EQ(t, b.control->alive("models"), models);
    replay_and_want(t, &b, graph, 5);
    T_EQ(t, b.control->count("aclmdlRIExecuteAsync"), 0);
    T_EQ(t, times("is replayed node by node"), 1);
    /* Without software queues they are taken when it is captured: enough then is enough. */
    T_EQ(t, b.control->set("SOFTWARE_SQ", 0), 0);
    T_EQ(t, b.control->set("STREAMS", (int64_t)b.control->alive("hardware_streams") + 4), 0);
    rondo_graph *held = capture_fork(t, &b, 6);
    T_TRUE(t, is_native(t, held));
    replay_and_want(t, &b, held, 6);
}

static int32_t count_up(void *counter) {
    (*(int *)counter)++;
    return 0;
}

/* Each of them answers 207000 all the time: all else goes on, values are right, and it is told once. */
static void go_without(rondo_test *t, odd_bed *o, const char *call, const char *told) {
    void *pinned = NULL;
    uint64_t left = 0, total = 0;
    int counter = 0;
    char path[512], line[512];
    *lines = 0;
    *o = (odd_bed){0};
    T_DEFER(t, odd_back, o);
    o->answer = odd_of(t);
    T_TRUE(t, o->answer(call, 207000, 0));
    bed_open(t, NULL, &o->b);
    rondo_graph *graph = capture_fork(t, &o->b, 5);
    replay_and_want(t, &o->b, graph, 5);
    update_iota(t, &o->b, graph, 6);
    replay_and_want(t, &o->b, graph, 6);
    rondo_graph *next = capture_fork(t, &o->b, 7);
    replay_and_want(t, &o->b, next, 7);
    T_OK(t, rondo_memory_host_allocate(o->b.device, 256, &pinned));
    memset(pinned, 0, 256);
    T_OK(t, rondo_stream_copy(o->b.stream, pinned, o->b.c, 64, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_stream_synchronize(o->b.stream));
    T_EQ(t, *(uint64_t *)pinned, 7);
    T_OK(t, rondo_memory_host_free(o->b.device, pinned));
    rondo_status status = rondo_stream_host_call(o->b.stream, count_up, &counter);
    T_EQ(t, rondo_status_code(status), strcmp(call, "aclrtLaunchHostFunc") ? RONDO_CODE_OK : RONDO_CODE_UNSUPPORTED);
    rondo_status_release(status);
    T_OK(t, rondo_stream_synchronize(o->b.stream));
    status = rondo_device_memory_info(o->b.device, &left, &total);
    T_EQ(t, rondo_status_code(status), strcmp(call, "aclrtGetMemInfo") ? RONDO_CODE_OK : RONDO_CODE_UNSUPPORTED);
    rondo_status_release(status);
    (void)snprintf(path, sizeof path, "%s/graph.json", rondo_test_folder(t));
    rondo_status_release(rondo_graph_debug_dump(next, path));
    (void)snprintf(line, sizeof line, "ascend:0: %s", told);
    T_EQ(t, times(line), 1);
    T_EQ(t, times("107002"), 0);
    odd_back(o);
}

static void test_each_call_that_answers_207000(rondo_test *t) {
    static const char *const calls[][2] = {
        {"aclrtGetMemInfo", "no size of its memory: aclrtGetMemInfo answered 207000"},
        {"aclrtMallocHost", "no pinned host memory: aclrtMallocHost answered 207000"},
        {"aclrtPointerGetAttributes", "no checks of a copy's direction: aclrtPointerGetAttributes answered 207000"},
        {"aclrtGetEventAvailNum", "no count of what is left of events: aclrtGetEventAvailNum answered 207000"},
        {"aclrtSetStreamFailureMode", "no streams that stop at a failure: aclrtSetStreamFailureMode answered 207000"},
        {"aclrtGetStreamAvailableNum",
         "no count of what is left of streams: aclrtGetStreamAvailableNum answered 207000"},
        {"aclrtLaunchHostFunc", "no host functions: aclrtLaunchHostFunc answered 207000"},
        {"aclmdlRICaptureBegin", "no graphs of its own: aclmdlRICaptureBegin answered 207000"},
        {"aclmdlRICaptureEnd", "no graphs of its own: aclmdlRICaptureEnd answered 207000"},
        {"aclmdlRICaptureThreadExchangeMode",
         "no capture modes of threads: aclmdlRICaptureThreadExchangeMode answered 207000"},
        {"aclmdlRIExecuteAsync", "no graphs of its own: aclmdlRIExecuteAsync answered 207000"},
        {"aclmdlRICaptureTaskGrpBegin", "no updates of captured kernels: aclmdlRICaptureTaskGrpBegin answered 207000"},
        {"aclmdlRICaptureTaskGrpEnd", "no updates of captured kernels: aclmdlRICaptureTaskGrpEnd answered 207000"},
        {"aclmdlRICaptureTaskUpdateBegin",
         "no updates of captured kernels: aclmdlRICaptureTaskUpdateBegin answered 207000"},
        {"aclmdlRISetName", "no names of its own graphs: aclmdlRISetName answered 207000"}};
    enum { CALLS = sizeof calls / sizeof calls[0] };
    odd_bed beds[CALLS];
    for (size_t i = 0; i < CALLS; i++) go_without(t, &beds[i], calls[i][0], calls[i][1]);
}

/* ------------------------------------------------------------------------------------------------- whose words */

/* What a tolerated failure said is no later failure's reason: here nobody had a context, and the call says nothing. */
static void *count_alone(void *argument) {
    const odd_bed *o = argument;
    void *memory = NULL;
    rondo_status status = rondo_memory_host_allocate(o->b.device, 64u << 20, &memory);
    return status;
}

static void test_a_tolerated_failures_words_are_gone(rondo_test *t) {
    odd_bed o;
    pthread_t thread;
    void *status = NULL;
    odd_open(t, NULL, &o);
    T_TRUE(t, o.answer("aclrtMallocHost", 507899, 0));
    T_EQ(t, pthread_create(&thread, NULL, count_alone, &o), 0);
    T_EQ(t, pthread_join(thread, &status), 0);
    T_FAILS(t, (rondo_status)status, DEVICE_LOST, "aclrtMallocHost: the driver gives no reason [507899]");
}

/* Nor are those of a failure of somebody else's, where they name another number; a call's own are. */
static void test_words_with_another_number(rondo_test *t) {
    odd_bed o;
    vendor v;
    void *memory = NULL;
    odd_open(t, NULL, &o);
    vendor_open(t, &v);
    T_TRUE(t, v.destroy(&o) != 0); /* says so, and nobody asks */
    T_TRUE(t, o.answer("aclrtMallocHost", 507899, 0));
    T_FAILS(t, rondo_memory_host_allocate(o.b.device, 64u << 20, &memory), DEVICE_LOST,
            "aclrtMallocHost: the driver gives no reason [507899]");
    T_TRUE(t, o.answer("aclrtMallocHost", 0, 0));
    T_EQ(t, o.b.control->fail("aclrtMallocHost", 1, 507899), 0);
    T_FAILS(t, rondo_memory_host_allocate(o.b.device, 64u << 20, &memory), DEVICE_LOST,
            "aclrtMallocHost: it was told to fail (error 507899) [507899]");
}

/* ------------------------------------------------------------------------------------------------ what is missing */

/* Each group by its first symbol: told when the device opens, and once more where it is first missed. */
static void test_each_group_that_is_missing_is_told(rondo_test *t) {
    static const char *const groups[][3] = {{"aclFinalizeReference", "no counted end of the library", ""},
                                            {"aclrtGetSocName", "no name of the chip", "1"},
                                            {"aclrtPointerGetAttributes", "no checks of a copy's direction", "1"},
                                            {"aclrtSetStreamFailureMode", "no streams that stop at a failure", "1"},
                                            {"aclrtGetStreamAvailableNum", "no count of what is left of streams", "1"},
                                            {"aclrtGetEventAvailNum", "no count of what is left of events", "1"},
                                            {"aclmdlRICaptureBegin", "no graphs of its own", "1"},
                                            {"aclmdlRICaptureGetInfo", "no graphs of its own", "1"},
                                            {"aclmdlRICaptureTaskGrpBegin", "no updates of captured kernels", "1"},
                                            {"aclrtRecordEventWithFlag", "no events outside of graphs in its own", ""},
                                            {"aclmdlRITaskSetParams", "no task edit", ""},
                                            {"aclmdlRICondHandleCreate", "no conditions in its own graphs", ""},
                                            {"aclmdlRISetName", "no names of its own graphs", "1"},
                                            {"aclmdlRIDebugJsonPrint", "no pictures of its own graphs", ""}};
    enum { GROUPS = sizeof groups / sizeof groups[0] };
    odd_bed beds[GROUPS] = {0};
    for (size_t i = 0; i < GROUPS; i++) {
        odd_bed *o = &beds[i];
        char path[512], line[1024];
        T_DEFER(t, odd_back, o);
        write_older_library(t, groups[i][0], path, sizeof path);
        older_library = path;
        log_level = RONDO_LOG_DEBUG;
        bed_open(t, NULL, &o->b);
        (void)snprintf(line, sizeof line, "ascend:0: %s: %s has no %s", groups[i][1], path, groups[i][0]);
        rondo_graph *graph = capture_fork(t, &o->b, 5);
        replay_and_want(t, &o->b, graph, 5);
        T_EQ(t, times(line), *groups[i][2] ? 2 : 1);
        odd_back(o);
    }
}

RONDO_TEST_MAIN(T_PLAIN(test_an_end_that_does_not_end_is_asked_for_again),
                T_PLAIN(test_an_end_that_does_not_end_frees_a_wrapped_stream),
                T_PLAIN(test_a_driver_that_never_ends_a_capture), T_PLAIN(test_a_task_group_that_does_not_end),
                T_PLAIN(test_a_failed_launch_closes_its_task_group), T_PLAIN(test_an_update_that_does_not_end),
                T_PLAIN(test_a_threads_mode_is_put_back), T_PLAIN(test_a_driver_that_cannot_count),
                T_PLAIN(test_graphs_that_cannot_be_launched), T_PLAIN(test_graphs_without_streams_at_launch),
                T_PLAIN(test_streams_run_out_before_a_replay), T_PLAIN(test_streams_are_counted_at_the_capture),
                T_PLAIN(test_each_call_that_answers_207000), T_PLAIN(test_a_tolerated_failures_words_are_gone),
                T_PLAIN(test_words_with_another_number), T_PLAIN(test_each_group_that_is_missing_is_told))
