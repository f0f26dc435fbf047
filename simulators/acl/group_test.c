/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks that change after their capture: in groups, or one by one. */
#include "acl_testing.h"

typedef struct bed {
    aclrtStream s, u, other;
    aclrtFuncHandle add, set;
    void *cell;
    aclmdlRI model;
    aclrtTaskGrp group;
} bed;

/* set 1, then the group: add 1, add 10; then add 100. */
static bed bed_open(rondo_test *t) {
    bed b = {acl_stream(t),          acl_stream(t),  acl_stream(t), acl_function(t, "add"),
             acl_function(t, "set"), acl_cell(t, 0), NULL,          NULL};
    acl_begin(t, b.s);
    A_OK(t, acl_launch(b.set, b.s, b.cell, 1));
    A_OK(t, aclmdlRICaptureTaskGrpBegin(b.s));
    A_OK(t, acl_launch(b.add, b.s, b.cell, 1));
    A_OK(t, acl_launch(b.add, b.s, b.cell, 10));
    A_OK(t, aclmdlRICaptureTaskGrpEnd(b.s, &b.group));
    A_OK(t, acl_launch(b.add, b.s, b.cell, 100));
    b.model = acl_end(t, b.s);
    return b;
}

static int64_t bed_run(rondo_test *t, const bed *b) {
    A_OK(t, aclmdlRIExecuteAsync(b->model, b->s));
    A_OK(t, aclrtSynchronizeStream(b->s));
    return acl_read(t, b->cell);
}

static void test_update(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t);
    T_EQ(t, bed_run(t, &b), 112);
    for (int64_t i = 0; i < 20; i++) {
        A_OK(t, aclmdlRICaptureTaskUpdateBegin(b.u, b.group));
        A_OK(t, acl_launch(b.add, b.u, b.cell, i));
        A_OK(t, acl_launch(b.add, b.u, b.cell, 1000 * i));
        A_OK(t, aclmdlRICaptureTaskUpdateEnd(b.u));
        A_OK(t, aclrtSynchronizeStream(b.u));
        T_EQ(t, bed_run(t, &b), 101 + 1001 * i);
    }
    /* Two on their way at once: the later one counts. */
    for (int64_t i = 1; i <= 2; i++) {
        A_OK(t, aclmdlRICaptureTaskUpdateBegin(b.u, b.group));
        A_OK(t, acl_launch(b.add, b.u, b.cell, i));
        A_OK(t, acl_launch(b.add, b.u, b.cell, 0));
        A_OK(t, aclmdlRICaptureTaskUpdateEnd(b.u));
    }
    A_OK(t, aclrtSynchronizeStream(b.u));
    T_EQ(t, bed_run(t, &b), 103);
    A_OK(t, aclmdlRIDestroy(b.model));
}

/* The update overlaps the run: the graph waits for an event of outside before the group. Each step sees its own values. */
static void test_e12_update_and_replay_keep_their_order(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t);
    aclrtEvent ready = NULL, done = acl_event(t);
    A_OK(t, aclrtCreateEventWithFlag(&ready, ACL_EVENT_EXTERNAL));
    acl_begin(t, b.s);
    A_OK(t, aclrtStreamWaitEvent(b.s, ready));
    A_OK(t, aclrtResetEvent(ready, b.s));
    A_OK(t, aclmdlRICaptureTaskGrpBegin(b.s));
    A_OK(t, acl_launch(b.set, b.s, b.cell, -1));
    A_OK(t, aclmdlRICaptureTaskGrpEnd(b.s, &b.group));
    b.model = acl_end(t, b.s);
    T_EQ(t, acl_control(t)->set("DELAY", 20), 0);
    for (int64_t i = 0; i < 300; i++) {
        A_OK(t, aclmdlRIExecuteAsync(b.model, b.s));
        A_OK(t, aclmdlRICaptureTaskUpdateBegin(b.u, b.group));
        A_OK(t, acl_launch(b.set, b.u, b.cell, i));
        A_OK(t, aclmdlRICaptureTaskUpdateEnd(b.u));
        A_OK(t, aclrtRecordEvent(ready, b.u));
        A_OK(t, aclrtRecordEvent(done, b.s));
        A_OK(t, aclrtStreamWaitEvent(b.u, done));
        A_OK(t, aclrtSynchronizeStream(b.s));
        T_EQ(t, acl_read(t, b.cell), i);
    }
}

/* The event is never signalled: no hang, but the wait that was asked for, and a way out. */
static void test_update_that_never_comes(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t);
    aclrtEvent ready = NULL;
    A_OK(t, aclrtCreateEventWithFlag(&ready, ACL_EVENT_EXTERNAL));
    acl_begin(t, b.s);
    A_OK(t, aclrtStreamWaitEvent(b.s, ready));
    aclmdlRI model = acl_end(t, b.s);
    T_EQ(t, acl_control(t)->set("DESTROY_MS", 5), 0);
    A_OK(t, aclmdlRIExecuteAsync(model, b.s));
    A_IS(t, aclrtSynchronizeStreamWithTimeout(b.s, 5), 507046);
    A_IS(t, aclmdlRIDestroy(model), 107037);
    A_OK(t, aclrtStreamAbort(b.s));
    A_IS(t, aclrtSynchronizeStream(b.s), 107023);
    A_OK(t, aclmdlRIDestroy(model));
}

static void test_refusals_while_capturing(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t);
    aclrtEvent out = acl_event(t);
    aclmdlRI model = NULL;
    aclrtTaskGrp group = NULL;
    A_IS(t, aclmdlRICaptureTaskGrpBegin(b.s), 107029);
    A_IS(t, aclmdlRICaptureTaskGrpEnd(b.s, &group), 107029);
    for (int way = 0; way < 6; way++) {
        acl_begin(t, b.s);
        A_OK(t, aclrtRecordEvent(out, b.s));
        A_OK(t, aclrtStreamWaitEvent(b.other, out));
        if (way == 5) { /* no group is open */
            A_IS(t, aclmdlRICaptureTaskGrpEnd(b.s, &group), 107033);
        } else A_OK(t, aclmdlRICaptureTaskGrpBegin(b.s));
        if (way == 0) A_IS(t, aclmdlRICaptureTaskGrpBegin(b.s), 107033);
        if (way == 1) A_IS(t, acl_launch(b.add, b.other, b.cell, 1), 107034);
        if (way == 2) A_IS(t, aclrtMemsetAsync(b.cell, 8, 0, 8, b.s), 507009);
        if (way == 3) A_IS(t, acl_launch(acl_function(t, "aicpu"), b.s, b.cell, 1), 507009);
        if (way == 4) A_IS(t, aclmdlRICaptureTaskGrpEnd(b.other, &group), 107033);
        T_EQ(t, acl_status(t, b.s), ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED);
        A_IS(t, aclmdlRICaptureEnd(b.s, &model), 507903);
    }
    T_EQ(t, acl_control(t)->set("TASK_UPDATE", 0), 0);
    acl_begin(t, b.s);
    A_IS(t, aclmdlRICaptureTaskGrpBegin(b.s), 207000);
    (void)acl_end(t, b.s);
    A_IS(t, aclmdlRICaptureTaskUpdateBegin(b.u, b.group), 207000);
}

static void test_refusals_while_updating(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t);
    A_IS(t, aclmdlRICaptureTaskUpdateEnd(b.u), 107033);
    A_IS(t, aclmdlRICaptureTaskUpdateBegin(b.u, t), 107017);
    A_OK(t, aclmdlRICaptureTaskUpdateBegin(b.u, b.group));
    A_IS(t, aclmdlRICaptureTaskUpdateBegin(b.u, b.group), 107033);
    A_IS(t, aclmdlRICaptureTaskUpdateBegin(b.other, b.group), 107033);
    A_IS(t, aclrtMemsetAsync(b.cell, 8, 0, 8, b.u), 507009);
    A_OK(t, acl_launch(b.add, b.u, b.cell, 5));
    A_IS(t, aclmdlRICaptureTaskUpdateEnd(b.u), 507000); /* unfinished */
    A_OK(t, aclmdlRICaptureTaskUpdateBegin(b.u, b.group));
    for (int i = 0; i < 3; i++) A_OK(t, acl_launch(b.add, b.u, b.cell, 5));
    A_IS(t, aclmdlRICaptureTaskUpdateEnd(b.u), 507000); /* too many */
    T_EQ(t, bed_run(t, &b), 112);                       /* nothing has changed */
    A_OK(t, aclmdlRICaptureTaskUpdateBegin(b.other, b.group));
    A_OK(t, aclmdlRIDestroy(b.model));
    A_IS(t, aclmdlRICaptureTaskUpdateEnd(b.other), 107033);
}

/* The graph of a group goes in the middle of an update: what was launched for it is nobody's, and runs nowhere. */
static void test_update_of_a_graph_that_went(rondo_test *t) {
    A_OPEN(t);
    bed gone = bed_open(t), stays = bed_open(t);
    for (int launches = 0; launches < 3; launches++) {
        A_OK(t, aclmdlRICaptureTaskUpdateBegin(stays.u, gone.group));
        for (int i = 0; i < launches; i++) A_OK(t, acl_launch(gone.add, stays.u, gone.cell, 1000));
        A_OK(t, aclmdlRIDestroy(gone.model));
        A_IS(t, acl_launch(gone.add, stays.u, gone.cell, 1000), 107033); /* neither an update nor work of its own */
        A_IS(t, aclmdlRICaptureTaskUpdateBegin(stays.u, stays.group), 107033);
        A_IS(t, aclmdlRICaptureBegin(stays.u, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), 107033);
        A_IS(t, aclmdlRIExecuteAsync(stays.model, stays.u), 507009);
        A_IS(t, aclmdlRICaptureTaskUpdateEnd(stays.u), 107033);
        T_TRUE(t, strstr(aclGetRecentErrMsg(), "went with its graph"));
        A_OK(t, aclmdlRICaptureTaskUpdateBegin(stays.u, stays.group));
        A_OK(t, acl_launch(stays.add, stays.u, stays.cell, 2));
        A_OK(t, acl_launch(stays.add, stays.u, stays.cell, 20));
        A_OK(t, aclmdlRICaptureTaskUpdateEnd(stays.u));
        A_OK(t, aclrtSynchronizeStream(stays.u));
        T_EQ(t, bed_run(t, &stays), 123);
        T_EQ(t, acl_read(t, gone.cell), 0);
        gone = bed_open(t);
    }
    /* The stream goes in the middle of one: the group is free for the next. */
    A_OK(t, aclmdlRICaptureTaskUpdateBegin(stays.u, stays.group));
    A_OK(t, acl_launch(stays.add, stays.u, stays.cell, 3));
    A_OK(t, aclrtDestroyStream(stays.u));
    A_OK(t, aclmdlRICaptureTaskUpdateBegin(stays.other, stays.group));
    A_IS(t, aclmdlRICaptureTaskUpdateEnd(stays.other), 507000);
    A_OK(t, aclmdlRIDestroy(stays.model));
}

/* ------------------------------------------------------------------------------------------------ one by one */

static aclmdlRITask task_at(rondo_test *t, aclmdlRI model, uint32_t index) {
    aclrtStream streams[4];
    aclmdlRITask tasks[16];
    uint32_t count = 0;
    A_OK(t, aclmdlRIGetStreams(model, NULL, &count));
    T_EQ(t, count, 1);
    A_OK(t, aclmdlRIGetStreams(model, streams, &count));
    A_OK(t, aclmdlRIGetTasksByStream(streams[0], NULL, &count));
    T_TRUE(t, index < count);
    uint32_t few = count - 1;
    A_IS(t, aclmdlRIGetTasksByStream(streams[0], tasks, &few), 107039);
    A_OK(t, aclmdlRIGetTasksByStream(streams[0], tasks, &count));
    return tasks[index];
}

static void test_edit(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t);
    aclmdlRITask last = task_at(t, b.model, 3), second = task_at(t, b.model, 1);
    aclmdlRITaskType type;
    aclmdlRITaskParams params;
    uint32_t sequence = 0;
    A_OK(t, aclmdlRITaskGetType(last, &type));
    T_EQ(t, type, ACL_MODEL_RI_TASK_KERNEL);
    A_OK(t, aclmdlRITaskGetSeqId(last, &sequence));
    T_EQ(t, sequence, 4);
    A_OK(t, aclmdlRITaskGetParams(second, &params));
    T_TRUE(t, params.taskGrp == b.group);
    A_OK(t, aclmdlRITaskGetParams(last, &params));
    T_TRUE(t, params.kernelTaskParams.funcHandle == b.add && params.kernelTaskParams.argsSize == 16 && !params.taskGrp);
    acl_add_arguments arguments = {b.cell, 5000};
    params.kernelTaskParams.args = &arguments;
    A_OK(t, aclmdlRITaskSetParams(last, &params));
    A_IS(t, aclmdlRIExecuteAsync(b.model, b.s), 507011); /* not before the update */
    A_OK(t, aclmdlRIUpdate(b.model));
    T_EQ(t, bed_run(t, &b), 5012);
    A_OK(t, aclmdlRITaskDisable(second));
    A_OK(t, aclmdlRIUpdate(b.model));
    T_EQ(t, bed_run(t, &b), 5011);
}

static void test_edit_refusals(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t);
    aclmdlRITask task = task_at(t, b.model, 3);
    aclmdlRITaskParams params;
    A_OK(t, aclmdlRITaskGetParams(task, &params));
    /* While it runs. */
    acl_begin(t, b.s);
    A_OK(t, acl_launch(acl_function(t, "sleep"), b.s, b.cell, 20000));
    aclrtEvent in = acl_event(t);
    A_OK(t, aclrtRecordEvent(in, b.s));
    A_OK(t, aclrtStreamWaitEvent(b.s, in));
    aclmdlRI slow = acl_end(t, b.s);
    aclmdlRITask record = task_at(t, slow, 1), sleep = task_at(t, slow, 0);
    A_OK(t, aclmdlRIExecuteAsync(slow, b.s));
    aclmdlRITaskParams of_sleep;
    A_OK(t, aclmdlRITaskGetParams(sleep, &of_sleep));
    A_IS(t, aclmdlRITaskSetParams(sleep, &of_sleep), 107040);
    A_IS(t, aclmdlRIUpdate(slow), 107040);
    A_OK(t, aclrtSynchronizeStream(b.s));
    /* Events are not set. */
    aclmdlRITaskParams of_record;
    A_OK(t, aclmdlRITaskGetParams(record, &of_record));
    T_EQ(t, of_record.type, ACL_MODEL_RI_TASK_EVENT_RECORD);
    A_IS(t, aclmdlRITaskSetParams(record, &of_record), 107000);
    A_IS(t, aclmdlRITaskDisable(record), 107000);
    /* An edit that fails leaves a graph that neither runs nor is updated. */
    params.kernelTaskParams.funcHandle = t;
    A_IS(t, aclmdlRITaskSetParams(task, &params), 107017);
    A_IS(t, aclmdlRIUpdate(b.model), 107040);
    A_IS(t, aclmdlRIExecuteAsync(b.model, b.s), 507011);
    T_EQ(t, acl_control(t)->set("SOFTWARE_SQ", 0), 0);
    A_IS(t, aclmdlRITaskGetParams(task, &params), 207000);
    A_IS(t, aclmdlRIUpdate(slow), 207000);
}

static aclmdlRI graph_of_value(rondo_test *t, const bed *b, bool waits, aclmdlRITask *out) {
    acl_begin(t, b->s);
    if (waits) A_OK(t, aclrtValueWait(b->cell, 5, ACL_VALUE_WAIT_EQ, b->s));
    else A_OK(t, aclrtValueWrite(b->cell, 5, 0, b->s));
    aclmdlRI model = acl_end(t, b->s);
    *out = task_at(t, model, 0);
    return model;
}

/* What the calls refuse, edits refuse: places that are null, unaligned, of the host, freed, past an end; flags. */
static void test_edit_places(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t);
    void *freed = acl_cell(t, 0), *pinned = NULL;
    int64_t pageable = 0;
    aclmdlRITaskParams params;
    aclmdlRITask task = NULL;
    A_OK(t, aclrtMallocHost(&pinned, 64));
    A_OK(t, aclrtFree(freed));
    for (int waits = 0; waits < 2; waits++) {
        const struct {
            void *place;
            uint32_t flag;
            aclError want;
        } rows[] = {{NULL, 0, 100000},      {(char *)b.cell + 4, 0, 107008},
                    {(void *)8, 0, 107000}, {&pageable, 0, 107000},
                    {pinned, 0, 107000},    {freed, 0, 107000},
                    {b.cell, 4, 107000},    {(char *)b.cell + 8, 0, 0}};
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            aclmdlRI model = graph_of_value(t, &b, waits, &task);
            A_OK(t, aclmdlRITaskGetParams(task, &params));
            params.valueWaitTaskParams.devAddr = rows[i].place;
            if (waits) params.valueWaitTaskParams.flag = rows[i].flag;
            aclError want = waits || rows[i].flag != 4 ? rows[i].want : 0; /* a write has no flag */
            A_IS(t, aclmdlRITaskSetParams(task, &params), want);
            A_IS(t, aclmdlRIUpdate(model), want ? 107040 : 0);
            A_OK(t, aclmdlRIDestroy(model));
        }
    }
    /* A kernel's arguments, where they lie on the device. */
    void *const places[] = {&pageable, pinned, freed, (void *)8, b.cell};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        bed one = bed_open(t);
        task = task_at(t, one.model, 3);
        A_OK(t, aclmdlRITaskGetParams(task, &params));
        params.kernelTaskParams.isHostArgs = 0;
        params.kernelTaskParams.args = places[i];
        A_IS(t, aclmdlRITaskSetParams(task, &params), i < 4 ? 107000 : 0);
        A_IS(t, aclmdlRIUpdate(one.model), i < 4 ? 107040 : 0);
    }
}

/* A wait's flag is edited as well, and counts from the update on. */
static void test_edit_flag(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t);
    aclmdlRITask task = NULL;
    aclmdlRITaskParams params;
    aclmdlRI model = graph_of_value(t, &b, true, &task);
    A_OK(t, aclmdlRITaskGetParams(task, &params));
    T_EQ(t, params.valueWaitTaskParams.flag, ACL_VALUE_WAIT_EQ);
    params.valueWaitTaskParams.flag = ACL_VALUE_WAIT_GEQ;
    A_OK(t, aclmdlRITaskSetParams(task, &params));
    A_OK(t, aclmdlRITaskGetParams(task, &params));
    T_EQ(t, params.valueWaitTaskParams.flag, ACL_VALUE_WAIT_GEQ);
    A_OK(t, aclmdlRIUpdate(model));
    A_OK(t, aclrtValueWrite(b.cell, 6, 0, b.s));
    A_OK(t, aclmdlRIExecuteAsync(model, b.s));
    A_OK(t, aclrtSynchronizeStreamWithTimeout(b.s, 20000));
}

/* A stream that updates a group is no part of another graph meanwhile: its launches would go astray. */
static void test_an_updating_stream_stays_out(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t), u = NULL;
    aclrtEvent fork = acl_event(t);
    void *cell = acl_cell(t, 0);
    aclrtTaskGrp group = NULL;
    aclmdlRI none = NULL, built = NULL;
    A_OK(t, aclrtCreateStreamWithConfig(&u, 0, ACL_STREAM_FAST_LAUNCH));
    acl_begin(t, s);
    A_OK(t, aclmdlRICaptureTaskGrpBegin(s));
    A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 1));
    A_OK(t, aclmdlRICaptureTaskGrpEnd(s, &group));
    aclmdlRI model = acl_end(t, s);
    A_OK(t, aclmdlRICaptureTaskUpdateBegin(u, group));
    acl_begin(t, s);
    A_OK(t, aclrtRecordEvent(fork, s));
    A_IS(t, aclrtStreamWaitEvent(u, fork), 107033);
    T_EQ(t, acl_status(t, s), ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED);
    A_IS(t, aclmdlRICaptureEnd(s, &none), 507903);
    A_IS(t, aclmdlRICaptureBegin(u, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), 107033);
    A_OK(t, acl_launch(acl_function(t, "add"), u, cell, 7));
    A_OK(t, aclmdlRICaptureTaskUpdateEnd(u));
    A_OK(t, aclrtSynchronizeStream(u));
    A_OK(t, aclmdlRIExecuteAsync(model, s));
    A_OK(t, aclrtSynchronizeStream(s));
    T_EQ(t, acl_read(t, cell), 7);
    /* Nor of a graph that is built. */
    A_OK(t, aclrtCreateStreamWithConfig(&u, 0, ACL_STREAM_PERSISTENT));
    A_OK(t, aclmdlRICaptureTaskUpdateBegin(u, group));
    A_OK(t, aclmdlRIBuildBegin(&built, 0));
    A_IS(t, aclmdlRIBindStream(built, u, ACL_MODEL_STREAM_FLAG_HEAD), 107033);
    A_OK(t, acl_launch(acl_function(t, "add"), u, cell, 5));
    A_OK(t, aclmdlRICaptureTaskUpdateEnd(u));
}

/* An event of a capture stays one, where its record outside does not come about. */
static void test_a_record_that_fails_outside(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t);
    aclrtStream s = acl_stream(t), u = acl_stream(t), side = acl_stream(t);
    aclrtEvent fork = acl_event(t);
    A_OK(t, aclmdlRICaptureTaskUpdateBegin(u, b.group));
    acl_begin(t, s);
    A_OK(t, aclrtRecordEvent(fork, s));
    A_IS(t, aclrtRecordEvent(fork, u), 507009);
    A_OK(t, aclrtStreamWaitEvent(side, fork));
    T_EQ(t, acl_status(t, side), ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
    aclmdlRI none = NULL;
    A_IS(t, aclmdlRICaptureEnd(s, &none), 107025);
}

/* Setting a task that is left out takes it in again; an edit that failed is over only with one of that task. */
static void test_edit_after_an_edit(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t);
    aclmdlRITask last = task_at(t, b.model, 3), second = task_at(t, b.model, 1);
    aclmdlRITaskParams params;
    A_OK(t, aclmdlRITaskGetParams(last, &params));
    A_OK(t, aclmdlRITaskDisable(last));
    A_OK(t, aclmdlRIUpdate(b.model));
    T_EQ(t, bed_run(t, &b), 12);
    A_OK(t, aclmdlRITaskSetParams(last, &params));
    A_OK(t, aclmdlRIUpdate(b.model));
    T_EQ(t, bed_run(t, &b), 112);
    params.kernelTaskParams.numBlocks = 0;
    A_IS(t, aclmdlRITaskSetParams(last, &params), 107000);
    A_OK(t, aclmdlRITaskDisable(second));
    A_IS(t, aclmdlRIUpdate(b.model), 107040);
    A_IS(t, aclmdlRIExecuteAsync(b.model, b.s), 507011);
    A_OK(t, aclmdlRITaskDisable(last));
    A_OK(t, aclmdlRIUpdate(b.model));
    T_EQ(t, bed_run(t, &b), 11);
}

static void test_edit_values(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t);
    acl_begin(t, b.s);
    A_OK(t, aclrtValueWrite(b.cell, 17, 0, b.s));
    b.model = acl_end(t, b.s);
    T_EQ(t, bed_run(t, &b), 17);
    aclmdlRITask task = task_at(t, b.model, 0);
    aclmdlRITaskParams params;
    A_OK(t, aclmdlRITaskGetParams(task, &params));
    T_EQ(t, params.valueWriteTaskParams.value, 17);
    params.valueWriteTaskParams.value = 18;
    A_OK(t, aclmdlRITaskSetParams(task, &params));
    A_OK(t, aclmdlRIUpdate(b.model));
    T_EQ(t, bed_run(t, &b), 18);
}

RONDO_TEST_MAIN(T_PLAIN(test_update), T_PLAIN(test_e12_update_and_replay_keep_their_order),
                T_PLAIN(test_update_that_never_comes), T_PLAIN(test_an_updating_stream_stays_out),
                T_PLAIN(test_a_record_that_fails_outside), T_PLAIN(test_refusals_while_capturing),
                T_PLAIN(test_refusals_while_updating), T_PLAIN(test_update_of_a_graph_that_went), T_PLAIN(test_edit),
                T_PLAIN(test_edit_refusals), T_PLAIN(test_edit_values), T_PLAIN(test_edit_places),
                T_PLAIN(test_edit_flag), T_PLAIN(test_edit_after_an_edit))
