/* SPDX-License-Identifier: Apache-2.0
 *
 * What is illegal while a stream captures, each with its number, as is and with the strict switch; and how a capture ends. */
#include "acl_testing.h"

typedef struct bed {
    rondo_test *t;
    aclrtStream captured, other;
    aclrtEvent event;
    aclmdlRI ready;     /* captured before */
    aclrtTaskGrp group; /* of it */
    aclmdlRI built;
    void *cell;
    void *pinned;
    char pageable[64];
} bed;

static aclError stream_synchronize(bed *b) { return aclrtSynchronizeStream(b->captured); }
static aclError stream_synchronize_timeout(bed *b) { return aclrtSynchronizeStreamWithTimeout(b->captured, 100); }
static aclError stream_query(bed *b) {
    aclrtStreamStatus status;
    return aclrtStreamQuery(b->captured, &status);
}
static aclError stream_destroy(bed *b) { return aclrtDestroyStream(b->captured); }
static aclError stream_destroy_force(bed *b) { return aclrtDestroyStreamForce(b->captured); }
static aclError device_synchronize(bed *b) {
    (void)b;
    return aclrtSynchronizeDevice();
}
static aclError device_synchronize_timeout(bed *b) {
    (void)b;
    return aclrtSynchronizeDeviceWithTimeout(100);
}
static aclError event_query(bed *b) {
    aclrtEventRecordedStatus status;
    return aclrtQueryEventStatus(b->event, &status);
}
static aclError event_synchronize(bed *b) { return aclrtSynchronizeEvent(b->event); }
static aclError event_synchronize_timeout(bed *b) { return aclrtSynchronizeEventWithTimeout(b->event, 100); }
static aclError event_elapsed(bed *b) {
    float ms;
    return aclrtEventElapsedTime(&ms, b->event, b->event);
}
static aclError event_timestamp(bed *b) {
    uint64_t at;
    return aclrtEventGetTimestamp(b->event, &at);
}
static aclError graph_launch(bed *b) { return aclmdlRIExecuteAsync(b->ready, b->captured); }
static aclError capture_again(bed *b) { return aclmdlRICaptureBegin(b->captured, ACL_MODEL_RI_CAPTURE_MODE_RELAXED); }
static aclError bind(bed *b) { return aclmdlRIBindStream(b->built, b->captured, ACL_MODEL_STREAM_FLAG_HEAD); }
static aclError unbind(bed *b) { return aclmdlRIUnbindStream(b->built, b->captured); }
static aclError end_task(bed *b) { return aclmdlRIEndTask(b->built, b->captured); }
static aclError overflow_check(bed *b) {
    aclrtStreamAttrValue value = {.overflowSwitch = 1};
    return aclrtSetStreamAttribute(b->captured, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &value);
}
static aclError tag(bed *b) {
    aclrtStreamAttrValue value = {.userCustomTag = 1};
    return aclrtSetStreamAttribute(b->captured, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value);
}
static aclError update_begin(bed *b) { return aclmdlRICaptureTaskUpdateBegin(b->captured, b->group); }
static aclError update_end(bed *b) { return aclmdlRICaptureTaskUpdateEnd(b->captured); }
static aclError record_default(bed *b) { return aclrtRecordEvent(b->event, NULL); }
static aclError wait_default(bed *b) { return aclrtStreamWaitEvent(NULL, b->event); }
static aclError reset_default(bed *b) { return aclrtResetEvent(b->event, NULL); }
static aclError pageable(bed *b) {
    return aclrtMemcpyAsync(b->cell, 8, b->pageable, 8, ACL_MEMCPY_HOST_TO_DEVICE, b->captured);
}
static aclError reset_captured(bed *b) { return aclrtResetEvent(b->event, b->other); }
static aclError free_and_synchronize(bed *b) { return aclrtFreeWithDevSync(b->cell); }
static aclError abort_stream(bed *b) { return aclrtStreamAbort(b->captured); }
static aclError callback(bed *b) {
    return aclrtLaunchCallback((aclrtCallback)free, NULL, ACL_CALLBACK_NO_BLOCK, b->captured);
}

static aclmdlRI graph_now(const bed *b) {
    aclmdlRI model = NULL;
    A_OK(b->t, aclmdlRICaptureGetInfo(b->captured, NULL, &model));
    return model;
}
static aclmdlRITask task_now(const bed *b) {
    aclrtStream streams[2];
    aclmdlRITask tasks[8];
    uint32_t stream_count = 2, task_count = 8;
    A_OK(b->t, aclmdlRIGetStreams(graph_now(b), streams, &stream_count));
    A_OK(b->t, aclmdlRIGetTasksByStream(streams[0], tasks, &task_count));
    return tasks[1];
}
static aclError graph_destroy(bed *b) { return aclmdlRIDestroy(graph_now(b)); }
static aclError graph_execute(bed *b) { return aclmdlRIExecuteAsync(graph_now(b), b->other); }
static aclError graph_update(bed *b) { return aclmdlRIUpdate(graph_now(b)); }
static aclError graph_abort(bed *b) { return aclmdlRIAbort(graph_now(b)); }
static aclError graph_streams(bed *b) {
    aclrtStream stream = NULL;
    uint32_t room = 0;
    return aclmdlRIGetStreams(graph_now(b), &stream, &room);
}
static aclError task_disable(bed *b) { return aclmdlRITaskDisable(task_now(b)); }
static aclError task_set(bed *b) {
    aclmdlRITaskParams params;
    A_OK(b->t, aclmdlRITaskGetParams(task_now(b), &params));
    return aclmdlRITaskSetParams(task_now(b), &params);
}
static aclError launch_on_a_shadow(bed *b) {
    aclrtStream stream = NULL;
    uint32_t room = 1;
    A_OK(b->t, aclmdlRIGetStreams(graph_now(b), &stream, &room));
    return aclrtMemsetAsync(b->cell, 8, 0, 8, stream);
}
static aclError host_to_host(bed *b) {
    return aclrtMemcpyAsync(b->pageable, 8, b->pageable, 8, ACL_MEMCPY_HOST_TO_HOST, b->captured);
}
static aclError no_blocks(bed *b) { return aclrtLaunchKernel(acl_function(b->t, "add"), 0, b->cell, 8, b->captured); }
static aclError no_mode(bed *b) { return aclmdlRICaptureBegin(b->captured, (aclmdlRICaptureMode)7); }
static aclError value_between(bed *b) { return aclrtValueWrite((char *)b->cell + 4, 1, 0, b->captured); }
static aclError activate(bed *b) { return aclrtActiveStream(b->captured, b->captured); }
static aclError no_failure_mode(bed *b) { return aclrtSetStreamFailureMode(b->captured, 9); }

static const struct {
    const char *name;
    aclError (*call)(bed *b);
    aclError want;
} rows[] = {{"aclrtSynchronizeStream", stream_synchronize, 107027},
            {"aclrtSynchronizeStreamWithTimeout", stream_synchronize_timeout, 107027},
            {"aclrtStreamQuery", stream_query, 107027},
            {"aclrtDestroyStream", stream_destroy, 107027},
            {"aclrtDestroyStreamForce", stream_destroy_force, 107027},
            {"aclrtStreamAbort", abort_stream, 107027},
            {"aclrtSynchronizeDevice", device_synchronize, 107027},
            {"aclrtSynchronizeDeviceWithTimeout", device_synchronize_timeout, 107027},
            {"aclrtQueryEventStatus", event_query, 107028},
            {"aclrtSynchronizeEvent", event_synchronize, 107028},
            {"aclrtSynchronizeEventWithTimeout", event_synchronize_timeout, 107028},
            {"aclrtEventElapsedTime", event_elapsed, 107028},
            {"aclrtEventGetTimestamp", event_timestamp, 107028},
            {"aclmdlRIExecuteAsync", graph_launch, 107027},
            {"aclmdlRICaptureBegin", capture_again, 107027},
            {"aclmdlRIBindStream", bind, 107027},
            {"aclmdlRIUnbindStream", unbind, 107027},
            {"aclmdlRIEndTask", end_task, 107027},
            {"float overflow check", overflow_check, 107027},
            {"stream tag", tag, 107027},
            {"aclmdlRICaptureTaskUpdateBegin", update_begin, 107027},
            {"aclmdlRICaptureTaskUpdateEnd", update_end, 107027},
            {"record on the default stream", record_default, 107031},
            {"wait on the default stream", wait_default, 107031},
            {"reset on the default stream", reset_default, 107031},
            {"reset on another stream", reset_captured, 107000},
            {"aclrtFreeWithDevSync", free_and_synchronize, 107027},
            {"pageable copy", pageable, 107000},
            {"aclmdlRIDestroy of the graph", graph_destroy, 107026},
            {"aclmdlRIExecuteAsync of the graph", graph_execute, 107026},
            {"aclmdlRIUpdate", graph_update, 107040},
            {"aclmdlRIAbort", graph_abort, 207000},
            {"aclmdlRIGetStreams without room", graph_streams, 107039},
            {"aclmdlRITaskDisable", task_disable, 107040},
            {"aclmdlRITaskSetParams", task_set, 107040},
            {"a fill on its shadow", launch_on_a_shadow, 107005},
            {"aclrtLaunchCallback", callback, 207000},
            {"copy from host to host", host_to_host, 207000},
            {"launch of 0 blocks", no_blocks, 107000},
            {"capture mode 7", no_mode, 107000},
            {"value between two words", value_between, 107008},
            {"aclrtActiveStream", activate, 107005},
            {"failure mode 9", no_failure_mode, 107000}};
enum { ROWS = sizeof rows / sizeof rows[0] };

static bed bed_open(rondo_test *t) {
    bed b = {.t = t};
    aclrtFuncHandle add = acl_function(t, "add");
    b.captured = acl_stream(t);
    b.other = acl_stream(t);
    b.event = acl_event(t);
    b.cell = acl_cell(t, 0);
    A_OK(t, aclrtMallocHost(&b.pinned, 64));
    acl_begin(t, b.captured);
    A_OK(t, aclmdlRICaptureTaskGrpBegin(b.captured));
    A_OK(t, acl_launch(add, b.captured, b.cell, 1));
    A_OK(t, aclmdlRICaptureTaskGrpEnd(b.captured, &b.group));
    b.ready = acl_end(t, b.captured);
    A_OK(t, aclmdlRIBuildBegin(&b.built, 0));
    return b;
}

static void check_rows(rondo_test *t, bool strict) {
    A_OPEN(t);
    bed b = bed_open(t);
    if (strict) T_EQ(t, acl_control(t)->set("STRICT", 1), 0);
    for (int i = 0; i < ROWS; i++) {
        aclmdlRI model = NULL;
        acl_begin(t, b.captured);
        A_OK(t, aclrtRecordEvent(b.event, b.captured));
        A_OK(t, acl_launch(acl_function(t, "add"), b.captured, b.cell, 1));
        aclError got = rows[i].call(&b);
        if (got != rows[i].want)
            rondo_test_fail(t, __FILE__, __LINE__, "%s: %d, not %d", rows[i].name, got, rows[i].want);
        T_EQ(t, acl_status(t, b.captured),
             strict ? ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED : ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
        A_IS(t, aclmdlRICaptureEnd(b.captured, &model), strict ? 507903 : 0);
        if (strict) {
            const char *text = aclGetRecentErrMsg();
            T_TRUE(t, text && strstr(text, "was broken"));
        }
        T_EQ(t, model == NULL, strict);
        T_EQ(t, acl_status(t, b.captured), ACL_MODEL_RI_CAPTURE_STATUS_NONE);
        A_OK(t, aclrtSynchronizeStream(b.captured)); /* nothing of the capture is left */
        if (model) A_OK(t, aclmdlRIDestroy(model));
    }
}

static void test_illegal_calls(rondo_test *t) { check_rows(t, false); }
static void test_illegal_calls_strict(rondo_test *t) { check_rows(t, true); }

/* Strict, too: what all captures of a context stand against breaks each of them, and none of another context. */
static void test_a_call_that_two_captures_forbid(rondo_test *t) {
    A_OPEN(t);
    aclrtContext first = NULL, second = NULL;
    aclrtStream s[2] = {acl_stream(t), acl_stream(t)};
    A_OK(t, aclrtGetCurrentContext(&first));
    A_OK(t, aclrtCreateContext(&second, 0));
    aclrtStream elsewhere = acl_stream(t);
    aclmdlRI none = NULL;
    T_EQ(t, acl_control(t)->set("STRICT", 1), 0);
    acl_begin(t, elsewhere);
    A_OK(t, aclrtSetCurrentContext(first));
    acl_begin(t, s[0]);
    acl_begin(t, s[1]);
    A_IS(t, aclrtSynchronizeDevice(), 107027);
    for (int i = 0; i < 2; i++) A_IS(t, aclmdlRICaptureEnd(s[i], &none), 507903);
    A_OK(t, aclrtSetCurrentContext(second));
    (void)acl_end(t, elsewhere);
    A_OK(t, aclrtDestroyContext(second));
    A_OK(t, aclrtSetCurrentContext(first));
}

static void test_others(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t);
    acl_begin(t, b.captured);
    A_IS(t, callback(&b), 207000);
    aclrtEvent ipc = NULL;
    A_IS(t, aclrtCreateEventExWithFlag(&ipc, ACL_EVENT_IPC), 207000);
    A_IS(t, aclmdlRICaptureBegin(NULL, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), 100000);
    aclrtStream standard = NULL, persistent = NULL;
    A_OK(t, aclrtCtxGetCurrentDefaultStream(&standard));
    A_IS(t, aclmdlRICaptureBegin(standard, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), 107031);
    A_IS(t, aclmdlRICaptureBegin(b.other, (aclmdlRICaptureMode)3), 107000);
    A_OK(t, aclrtCreateStreamWithConfig(&persistent, 0, ACL_STREAM_PERSISTENT));
    A_IS(t, aclmdlRICaptureBegin(persistent, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), 107017);
    A_IS(t, aclmdlRICaptureGetInfo(b.other, NULL, NULL), 100000);
    aclmdlRI now = NULL, same = NULL;
    A_OK(t, aclmdlRICaptureGetInfo(b.captured, NULL, &now));
    A_IS(t, aclmdlRIExecuteAsync(now, b.other), 107026);
    A_IS(t, aclmdlRIDestroy(now), 107026);
    same = acl_end(t, b.captured);
    T_TRUE(t, same == now);
    A_OK(t, aclmdlRICaptureGetInfo(b.captured, NULL, &now));
    T_TRUE(t, now == NULL);
    /* What was legal all the time. */
    A_OK(t, aclmdlRIDestroy(same));
    A_OK(t, aclmdlRIDestroy(same)); /* unknown by now */
}

/* ------------------------------------------------------------------------------------------------ how it ends */

typedef struct ender {
    aclrtContext context;
    aclrtStream stream;
    aclmdlRI model;
    aclError error;
} ender;

static void *end_elsewhere(void *argument) {
    ender *e = argument;
    if (aclrtSetCurrentContext(e->context) == ACL_SUCCESS) e->error = aclmdlRICaptureEnd(e->stream, &e->model);
    return NULL;
}

static void *begin_elsewhere(void *argument) {
    ender *e = argument;
    if (aclrtSetCurrentContext(e->context) == ACL_SUCCESS)
        e->error = aclmdlRICaptureBegin(e->stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL);
    return NULL;
}

static aclError end_in_thread(rondo_test *t, aclrtStream stream) {
    ender e = {.stream = stream, .error = -1};
    pthread_t thread;
    A_OK(t, aclrtGetCurrentContext(&e.context));
    T_EQ(t, pthread_create(&thread, NULL, end_elsewhere, &e), 0);
    T_EQ(t, pthread_join(thread, NULL), 0);
    return e.error;
}

static void fork_to(rondo_test *t, aclrtStream from, aclrtStream to) {
    aclrtEvent event = acl_event(t);
    A_OK(t, aclrtRecordEvent(event, from));
    A_OK(t, aclrtStreamWaitEvent(to, event));
}

/* Faults are piled up, and each is found before the next: wrong stream, thread, invalid, inner graph, group, unjoined, notify. */
static void test_order_of_checks(rondo_test *t) {
    static const aclError wants[] = {107036, 107038, 507903, 107045, 107033, 107025, 207009, 0};
    A_OPEN(t);
    const aclsim_control *control = acl_control(t);
    for (int fault = 0; fault < 8; fault++) { /* all faults from this one on are there */
        aclrtStream origin = acl_stream(t), side = acl_stream(t);
        aclrtEvent plain = NULL;
        aclmdlRI model = NULL, now = NULL, inside = NULL;
        aclmdlRICondHandle condition = NULL;
        A_OK(t, aclrtCreateEvent(&plain));
        A_OK(t, aclmdlRICaptureBegin(origin, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
        A_OK(t, aclmdlRICaptureGetInfo(origin, NULL, &now));
        if (fault <= 5) fork_to(t, origin, side);
        if (fault <= 3) {
            A_OK(t, aclmdlRICondHandleCreate(now, 0, 0, &condition));
            aclmdlRICondTaskParams params = {condition, ACL_MODEL_RI_COND_TYPE_IF, 1, &inside};
            A_OK(t, aclmdlRIAddCondTask(params, origin, 0));
        }
        if (fault <= 4) A_OK(t, aclmdlRICaptureTaskGrpBegin(origin));
        if (fault <= 2) A_IS(t, aclrtRecordEvent(plain, origin), 207000); /* breaks it */
        T_EQ(t, control->set("NOTIFIES", fault <= 6 ? 0 : 1024), 0);
        aclError got = fault == 0   ? aclmdlRICaptureEnd(side, &model)
                       : fault == 1 ? end_in_thread(t, origin)
                                    : aclmdlRICaptureEnd(origin, &model);
        if (got != wants[fault])
            rondo_test_fail(t, __FILE__, __LINE__, "fault %d: %d, not %d: %s", fault, got, wants[fault],
                            aclGetRecentErrMsg());
        bool goes_on = fault == 0;
        T_EQ(t, acl_status(t, origin) != ACL_MODEL_RI_CAPTURE_STATUS_NONE, goes_on);
        if (goes_on) A_IS(t, aclmdlRICaptureEnd(origin, &model), 507903);
        T_EQ(t, model == NULL, fault != 7);
        A_IS(t, aclmdlRICaptureEnd(origin, &model), 107029); /* it is over, whatever it was */
        A_IS(t, aclmdlRICaptureEnd(side, &model), 107029);
    }
    T_EQ(t, control->alive("models"), 1);
}

static void test_thread_of_a_relaxed_capture(rondo_test *t) {
    A_OPEN(t);
    aclrtStream stream = acl_stream(t);
    A_OK(t, aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    A_OK(t, end_in_thread(t, stream));
    for (int mode = 0; mode < 2; mode++) {
        A_OK(t, aclmdlRICaptureBegin(stream, (aclmdlRICaptureMode)mode));
        A_IS(t, end_in_thread(t, stream), 107038);
        T_EQ(t, acl_status(t, stream), ACL_MODEL_RI_CAPTURE_STATUS_NONE);
    }
    /* A thread that ended is not the one that the system gives the same name afterwards. */
    for (int i = 0; i < 20; i++) {
        ender e = {.stream = stream, .error = -1};
        pthread_t thread;
        A_OK(t, aclrtGetCurrentContext(&e.context));
        T_EQ(t, pthread_create(&thread, NULL, begin_elsewhere, &e), 0);
        T_EQ(t, pthread_join(thread, NULL), 0);
        A_OK(t, e.error);
        A_IS(t, end_in_thread(t, stream), 107038);
    }
}

/* What a broken capture gets from then on. */
static void test_broken(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t);
    aclrtEvent plain = NULL;
    aclmdlRI model = (aclmdlRI)t;
    A_OK(t, aclrtCreateEvent(&plain));
    acl_begin(t, b.captured);
    A_IS(t, aclrtStreamWaitEvent(b.captured, plain), 207000);
    T_EQ(t, acl_status(t, b.captured), ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED);
    A_IS(t, acl_launch(acl_function(t, "add"), b.captured, b.cell, 1), 507903);
    A_IS(t, aclrtMemsetAsync(b.cell, 8, 0, 8, b.captured), 507903);
    A_IS(t, aclmdlRICaptureEnd(b.captured, &model), 507903);
    T_TRUE(t, model == NULL);
    T_TRUE(t, strstr(aclGetRecentErrMsg(), "aclrtStreamWaitEvent answered 207000"));
    T_EQ(t, acl_read(t, b.cell), 0);
}

/* Captured, then run: captured work does not run, and a run does it all again. */
static void test_runs(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t);
    aclrtFuncHandle add = acl_function(t, "add");
    int64_t five = 5;
    memcpy(b.pinned, &five, 8);
    acl_begin(t, b.captured);
    A_OK(t, aclrtMemcpyAsync(b.cell, 8, b.pinned, 8, ACL_MEMCPY_HOST_TO_DEVICE, b.captured));
    A_OK(t, acl_launch(add, b.captured, b.cell, 2));
    A_OK(t, acl_launch(add, b.captured, b.cell, 30));
    A_OK(t, aclrtMemcpyAsync((char *)b.pinned + 8, 8, b.cell, 8, ACL_MEMCPY_DEVICE_TO_HOST, b.captured));
    aclmdlRI model = acl_end(t, b.captured);
    T_EQ(t, acl_read(t, b.cell), 0);
    acl_control(t)->clear_counts();
    for (int64_t i = 0; i < 5; i++) {
        memcpy(b.pinned, &i, 8);
        A_OK(t, aclmdlRIExecuteAsync(model, i % 2 ? b.other : NULL));
        A_OK(t, aclrtSynchronizeStream(i % 2 ? b.other : NULL));
        int64_t back = 0;
        memcpy(&back, (char *)b.pinned + 8, 8);
        T_EQ(t, back, i + 32);
    }
    T_EQ(t, acl_control(t)->count("aclmdlRIExecuteAsync"), 5);
    T_EQ(t, acl_control(t)->count("replays"), 5);
    A_OK(t, aclmdlRIDestroy(model));
}

RONDO_TEST_MAIN(T_PLAIN(test_illegal_calls), T_PLAIN(test_illegal_calls_strict),
                T_PLAIN(test_a_call_that_two_captures_forbid), T_PLAIN(test_others), T_PLAIN(test_order_of_checks),
                T_PLAIN(test_thread_of_a_relaxed_capture), T_PLAIN(test_broken), T_PLAIN(test_runs))
