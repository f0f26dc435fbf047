/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams that join a capture, and events of outside. */
#include "acl_testing.h"

/* x = (0 + 1) on one stream, then + 10 on another, then * by adding on the first again: the order is that of the edges. */
static void test_two_streams(rondo_test *t) {
    A_OPEN(t);
    aclrtStream first = acl_stream(t), second = acl_stream(t);
    aclrtEvent out = acl_event(t), back = acl_event(t);
    aclrtFuncHandle add = acl_function(t, "add"), set = acl_function(t, "set");
    void *cell = acl_cell(t, 0);
    for (int delay = 0; delay <= 50; delay += 50) {
        T_EQ(t, acl_control(t)->set("DELAY", delay), 0);
        acl_begin(t, first);
        A_OK(t, acl_launch(set, first, cell, 1));
        A_OK(t, aclrtRecordEvent(out, first));
        A_OK(t, aclrtStreamWaitEvent(second, out));
        T_EQ(t, acl_status(t, second), ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
        A_OK(t, acl_launch(add, second, cell, 10));
        A_OK(t, aclrtRecordEvent(out, second)); /* the same event again: the newest record counts */
        A_OK(t, aclrtRecordEvent(back, second));
        A_OK(t, aclrtStreamWaitEvent(first, back));
        A_OK(t, acl_launch(add, first, cell, 100));
        aclmdlRI model = acl_end(t, first);
        T_EQ(t, acl_status(t, second), ACL_MODEL_RI_CAPTURE_STATUS_NONE);
        for (int i = 0; i < 20; i++) A_OK(t, aclmdlRIExecuteAsync(model, second));
        A_OK(t, aclrtSynchronizeStream(second));
        T_EQ(t, acl_read(t, cell), 111);
        A_OK(t, aclmdlRIDestroy(model));
    }
}

static void test_joined_through_another(rondo_test *t) {
    A_OPEN(t);
    aclrtStream a = acl_stream(t), b = acl_stream(t), c = acl_stream(t);
    aclrtEvent e[4];
    for (int i = 0; i < 4; i++) e[i] = acl_event(t);
    acl_begin(t, a);
    A_OK(t, aclrtRecordEvent(e[0], a));
    A_OK(t, aclrtStreamWaitEvent(b, e[0]));
    A_OK(t, aclrtRecordEvent(e[1], b));
    A_OK(t, aclrtStreamWaitEvent(c, e[1]));
    A_OK(t, aclrtRecordEvent(e[2], c));
    A_OK(t, aclrtStreamWaitEvent(b, e[2]));
    A_OK(t, aclrtRecordEvent(e[3], b));
    A_OK(t, aclrtStreamWaitEvent(a, e[3]));
    (void)acl_end(t, a);
}

/* Each way of not being joined. */
static void test_unjoined(rondo_test *t) {
    A_OPEN(t);
    aclrtFuncHandle add = acl_function(t, "add");
    void *cell = acl_cell(t, 0);
    for (int way = 0; way < 4; way++) {
        aclrtStream a = acl_stream(t), b = acl_stream(t);
        aclrtEvent out = acl_event(t), back = acl_event(t);
        aclmdlRI model = NULL;
        acl_begin(t, a);
        A_OK(t, aclrtRecordEvent(out, a));
        A_OK(t, aclrtStreamWaitEvent(b, out));
        if (way >= 1) A_OK(t, acl_launch(add, b, cell, 1));
        if (way >= 2) A_OK(t, aclrtRecordEvent(back, b)); /* nobody waits */
        if (way >= 3) {
            A_OK(t, aclrtStreamWaitEvent(a, back));
            A_OK(t, acl_launch(add, b, cell, 1)); /* behind its last record */
        }
        A_IS(t, aclmdlRICaptureEnd(a, &model), 107025);
        T_TRUE(t, strstr(aclGetRecentErrMsg(), "was forked into the capture by the record that is task 1"));
        /* Both streams are free, and a capture works at once. */
        acl_begin(t, b);
        A_OK(t, aclrtSynchronizeStream(a));
        (void)acl_end(t, b);
    }
}

static void test_kinds_of_events(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t);
    aclrtEvent events[4] = {0}, before = acl_event(t);
    aclmdlRI model = NULL;
    A_OK(t, aclrtCreateEvent(&events[0]));
    A_OK(t, aclrtCreateEventWithFlag(&events[1], ACL_EVENT_SYNC));
    A_OK(t, aclrtCreateEventWithFlag(&events[2], ACL_EVENT_TIME_LINE));
    A_OK(t, aclrtCreateEventExWithFlag(&events[3], ACL_EVENT_TIME_LINE));
    for (int i = 0; i < 8; i++) {
        acl_begin(t, s);
        A_IS(t, i < 4 ? aclrtRecordEvent(events[i], s) : aclrtStreamWaitEvent(s, events[i - 4]), 207000);
        A_IS(t, aclmdlRICaptureEnd(s, &model), 507903);
    }
    A_OK(t, aclrtRecordEvent(before, s));
    for (int i = 0; i < 2; i++) { /* recorded outside, and never recorded */
        acl_begin(t, s);
        A_IS(t, aclrtStreamWaitEvent(s, i ? acl_event(t) : before), 107024);
        A_IS(t, aclmdlRICaptureEnd(s, &model), 507903);
    }
    acl_begin(t, s);
    A_IS(t, aclrtResetEvent(before, s), 207000);
    A_IS(t, aclmdlRICaptureEnd(s, &model), 507903);
}

static void test_two_captures_are_apart(rondo_test *t) {
    A_OPEN(t);
    aclrtStream a = acl_stream(t), b = acl_stream(t);
    aclrtEvent event = acl_event(t);
    aclmdlRI model = NULL;
    acl_begin(t, a);
    acl_begin(t, b);
    A_OK(t, aclrtRecordEvent(event, a));
    A_IS(t, aclrtStreamWaitEvent(b, event), 107032);
    A_IS(t, aclmdlRICaptureEnd(b, &model), 507903);
    A_IS(t, aclmdlRICaptureEnd(a, &model), 507903);
}

/* An event may be of another context than the stream that it is recorded on: the end of the capture frees it all the same. */
static void test_event_of_another_context(rondo_test *t) {
    A_OPEN(t);
    aclrtContext mine = NULL, other = NULL;
    aclrtEvent event = acl_event(t);
    aclrtEventRecordedStatus status;
    A_OK(t, aclrtGetCurrentContext(&mine));
    for (int ended = 0; ended < 2; ended++) { /* else the capture goes with its context */
        A_OK(t, aclrtCreateContext(&other, 0));
        aclrtStream s = acl_stream(t);
        acl_begin(t, s);
        A_OK(t, aclrtRecordEvent(event, s));
        A_IS(t, aclrtQueryEventStatus(event, &status), 107028);
        aclmdlRI model = ended ? acl_end(t, s) : NULL;
        if (ended) A_OK(t, aclrtQueryEventStatus(event, &status));
        if (ended) A_OK(t, aclmdlRIDestroy(model));
        A_OK(t, aclrtDestroyContext(other));
        A_OK(t, aclrtSetCurrentContext(mine));
        A_OK(t, aclrtQueryEventStatus(event, &status));
        A_OK(t, aclrtSynchronizeEvent(event));
        aclrtStream here = acl_stream(t);
        A_OK(t, aclrtStreamWaitEvent(here, event));
        A_OK(t, aclrtSynchronizeStream(here));
    }
}

/* A failure that was told is forgiven to events of other contexts, too. */
static void test_failure_of_another_context(rondo_test *t) {
    A_OPEN(t);
    aclrtContext mine = NULL, other = NULL;
    aclrtEvent event = acl_event(t);
    aclrtStream here = acl_stream(t);
    A_OK(t, aclrtGetCurrentContext(&mine));
    A_OK(t, aclrtCreateContext(&other, 0));
    aclrtStream s = acl_stream(t);
    A_OK(t, aclrtSetStreamFailureMode(s, ACL_STOP_ON_FAILURE));
    A_OK(t, acl_launch(acl_function(t, "break"), s, NULL, 0));
    A_OK(t, aclrtRecordEvent(event, s));
    A_IS(t, aclrtSynchronizeStream(s), 507015);
    A_OK(t, aclrtSetCurrentContext(mine));
    A_OK(t, aclrtStreamWaitEvent(here, event));
    A_OK(t, aclrtSynchronizeStream(here));
}

/* ---------------------------------------------------------------------------------------- events of outside */

/* The old way: the graph waits for and resets an event that another stream records. */
static void test_external_old(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t), u = acl_stream(t);
    aclrtEvent event = NULL;
    void *cell = acl_cell(t, 0);
    A_OK(t, aclrtCreateEventWithFlag(&event, ACL_EVENT_EXTERNAL));
    acl_begin(t, s);
    A_OK(t, aclrtStreamWaitEvent(s, event));
    A_OK(t, aclrtResetEvent(event, s));
    A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 1));
    aclmdlRI model = acl_end(t, s);
    for (int i = 0; i < 10; i++) {
        A_OK(t, aclmdlRIExecuteAsync(model, s));
        A_IS(t, aclrtSynchronizeStreamWithTimeout(s, 2), 507046); /* nobody recorded it yet */
        T_EQ(t, acl_read(t, cell), i);
        A_OK(t, aclrtRecordEvent(event, u));
        A_OK(t, aclrtSynchronizeStream(s));
        T_EQ(t, acl_read(t, cell), i + 1);
    }
}

static void test_external_new(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t), u = acl_stream(t);
    aclrtEvent in = acl_event(t), out = acl_event(t), inside = acl_event(t);
    void *cell = acl_cell(t, 0);
    aclmdlRI model = NULL;
    A_IS(t, aclrtRecordEventWithFlag(out, s, ACL_EVENT_RECORD_EXTERNAL), 107029);
    A_IS(t, aclrtStreamWaitEventWithFlag(s, in, 0, ACL_EVENT_WAIT_EXTERNAL), 107029);
    acl_begin(t, s);
    A_OK(t, aclrtStreamWaitEventWithFlag(s, in, 0, ACL_EVENT_WAIT_EXTERNAL));
    A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 1));
    A_OK(t, aclrtRecordEventWithFlag(out, s, ACL_EVENT_RECORD_EXTERNAL));
    model = acl_end(t, s);
    A_OK(t, acl_launch(acl_function(t, "sleep"), u, cell, 3000));
    A_OK(t, acl_launch(acl_function(t, "set"), u, cell, 41));
    A_OK(t, aclrtRecordEvent(in, u));
    A_OK(t, aclmdlRIExecuteAsync(model, s)); /* waits for the record */
    A_OK(t, aclrtSynchronizeStream(s));
    A_OK(t, aclrtSynchronizeEvent(out));
    T_EQ(t, acl_read(t, cell), 42);
    /* A record that comes after the launch is nothing to wait for: not even one behind it on its own stream. */
    A_OK(t, aclmdlRIExecuteAsync(model, s));
    A_OK(t, aclrtRecordEvent(in, s));
    A_OK(t, aclrtSynchronizeStreamWithTimeout(s, 20000));
    T_EQ(t, acl_read(t, cell), 43);
    /* Once an event is of one use, it keeps to it; a graph has one task of it; conditions have none. */
    for (int way = 0; way < 4; way++) {
        acl_begin(t, s);
        if (way == 0) A_IS(t, aclrtRecordEvent(in, s), 107000);
        if (way == 1) {
            A_OK(t, aclrtRecordEvent(inside, s));
            A_IS(t, aclrtRecordEventWithFlag(inside, s, ACL_EVENT_RECORD_EXTERNAL), 107000);
        }
        if (way == 2) {
            A_OK(t, aclrtStreamWaitEventWithFlag(s, in, 0, ACL_EVENT_WAIT_EXTERNAL));
            A_IS(t, aclrtStreamWaitEventWithFlag(s, in, 0, ACL_EVENT_WAIT_EXTERNAL), 107000);
        }
        if (way == 3) {
            A_OK(t, aclrtStreamWaitEventWithFlag(s, in, 0, ACL_EVENT_WAIT_EXTERNAL));
            A_IS(t, aclrtRecordEventWithFlag(in, s, ACL_EVENT_RECORD_EXTERNAL), 107000);
        }
        A_IS(t, aclmdlRICaptureEnd(s, &model), 507903);
    }
    T_EQ(t, acl_control(t)->set("SOFTWARE_SQ", 0), 0);
    acl_begin(t, s);
    A_IS(t, aclrtRecordEventWithFlag(out, s, ACL_EVENT_RECORD_EXTERNAL), 207000);
    A_IS(t, aclmdlRICaptureEnd(s, &model), 507903);
}

/* As the vendor's sample does it: a stream waits right behind the launch for what the run is going to record; each time, and
 * also where the run fails before it comes to that. */
static void test_a_wait_right_behind_a_launch(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t), u = acl_stream(t);
    aclrtEvent out = acl_event(t);
    void *cell = acl_cell(t, 0), *seen = acl_cell(t, 0);
    acl_begin(t, s);
    A_OK(t, acl_launch(acl_function(t, "sleep"), s, cell, 2000));
    A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 1));
    A_OK(t, aclrtRecordEventWithFlag(out, s, ACL_EVENT_RECORD_EXTERNAL));
    aclmdlRI model = acl_end(t, s);
    for (int i = 0; i < 5; i++) {
        aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
        A_OK(t, aclmdlRIExecuteAsync(model, s));
        A_OK(t, aclrtQueryEventStatus(out, &status));
        T_EQ(t, status, ACL_EVENT_RECORDED_STATUS_NOT_READY);
        A_OK(t, aclrtStreamWaitEvent(u, out));
        A_OK(t, aclrtMemcpyAsync(seen, 8, cell, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, u));
        A_OK(t, aclrtSynchronizeStream(u));
        T_EQ(t, acl_read(t, seen), i + 1);
        A_OK(t, aclrtSynchronizeStream(s));
    }
    aclmdlRI failing = NULL;
    acl_begin(t, s);
    A_OK(t, acl_launch(acl_function(t, "break"), s, cell, 0));
    A_OK(t, aclrtRecordEventWithFlag(out, s, ACL_EVENT_RECORD_EXTERNAL));
    failing = acl_end(t, s);
    A_OK(t, aclmdlRIExecuteAsync(failing, s));
    A_OK(t, aclrtStreamWaitEvent(u, out));
    A_OK(t, aclrtSynchronizeStreamWithTimeout(u, 20000)); /* it is over, if not as it should be */
    T_TRUE(t, aclrtSynchronizeStream(s) != 0);
}

/* A lane that waits for outside does not hold up the others. */
static void test_lanes_wait_on_their_own(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t), side = acl_stream(t), u = acl_stream(t);
    aclrtEvent fork = acl_event(t), join = acl_event(t), outside = NULL, reached = acl_event(t);
    void *cell = acl_cell(t, 0);
    A_OK(t, aclrtCreateEventWithFlag(&outside, ACL_EVENT_EXTERNAL));
    acl_begin(t, s);
    A_OK(t, aclrtRecordEvent(fork, s));
    A_OK(t, aclrtStreamWaitEvent(side, fork));
    A_OK(t, aclrtStreamWaitEvent(side, outside));
    A_OK(t, aclrtResetEvent(outside, side));
    A_OK(t, aclrtRecordEvent(join, side));
    A_OK(t, acl_launch(acl_function(t, "set"), s, cell, 7));
    A_OK(t, aclrtRecordEventWithFlag(reached, s, ACL_EVENT_RECORD_EXTERNAL));
    A_OK(t, aclrtStreamWaitEvent(s, join));
    aclmdlRI model = acl_end(t, s);
    A_OK(t, aclmdlRIExecuteAsync(model, s));
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    while (acl_read(t, cell) != 7) (void)usleep(100);
    A_OK(t, aclrtQueryEventStatus(reached, &status));
    A_OK(t, aclrtRecordEvent(outside, u));
    A_OK(t, aclrtSynchronizeStream(s));
    A_OK(t, aclrtQueryEventStatus(reached, &status));
    T_EQ(t, status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
}

/* Streams that are not captured do not join either. */
static void test_flags_that_do_not_join(rondo_test *t) {
    static const uint32_t flags[] = {ACL_STREAM_PERSISTENT, ACL_STREAM_CPU_SCHEDULE, ACL_STREAM_DEVICE_USE_ONLY};
    A_OPEN(t);
    aclrtStream s = acl_stream(t), other = NULL;
    aclrtEvent fork = acl_event(t);
    aclmdlRI none = NULL;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        A_OK(t, aclrtCreateStreamWithConfig(&other, 0, flags[i]));
        acl_begin(t, s);
        A_OK(t, aclrtRecordEvent(fork, s));
        A_IS(t, aclrtStreamWaitEvent(other, fork), 107017);
        T_EQ(t, acl_status(t, other), ACL_MODEL_RI_CAPTURE_STATUS_NONE);
        A_OK(t, aclrtSynchronizeStream(other));
        A_IS(t, aclmdlRICaptureEnd(s, &none), 507903);
    }
}

RONDO_TEST_MAIN(T_PLAIN(test_two_streams), T_PLAIN(test_flags_that_do_not_join), T_PLAIN(test_joined_through_another),
                T_PLAIN(test_unjoined), T_PLAIN(test_kinds_of_events), T_PLAIN(test_two_captures_are_apart),
                T_PLAIN(test_event_of_another_context), T_PLAIN(test_failure_of_another_context),
                T_PLAIN(test_external_old), T_PLAIN(test_external_new), T_PLAIN(test_a_wait_right_behind_a_launch),
                T_PLAIN(test_lanes_wait_on_their_own))
