/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes while somebody uses it: by another thread, by a function that it runs itself, under work that is on its way. */
#include <stdatomic.h>

#include "acl_testing.h"

/* A thread in the test's own context. What it calls waits; the test knows that it was called by the simulator's own count. */
typedef struct caller {
    rondo_test *t;
    pthread_t thread;
    aclrtContext context;
    aclError (*call)(struct caller *c);
    void *object, *memory;
    aclError error;
} caller;

static void *caller_run(void *argument) {
    caller *c = argument;
    c->error = aclrtSetCurrentContext(c->context);
    if (!c->error) c->error = c->call(c);
    return NULL;
}

static void caller_start(rondo_test *t, caller *c, aclError (*call)(caller *c), void *object) {
    c->t = t;
    c->call = call;
    c->object = object;
    A_OK(t, aclrtGetCurrentContext(&c->context));
    T_EQ(t, pthread_create(&c->thread, NULL, caller_run, c), 0);
}

static aclError caller_end(rondo_test *t, caller *c) {
    T_EQ(t, pthread_join(c->thread, NULL), 0);
    return c->error;
}

/* Until the function was called that often since the counts were cleared, and a little more: it waits by then. */
static void until_called(rondo_test *t, const char *name, uint64_t times) {
    while (acl_control(t)->count(name) < times) (void)usleep(100);
    (void)usleep(20000);
}

/* The stream waits for an event that is a flag; whoever raises it lets the stream go on. */
static aclrtEvent hold(rondo_test *t, aclrtStream s) {
    aclrtEvent flag = NULL;
    A_OK(t, aclrtCreateEventWithFlag(&flag, ACL_EVENT_SYNC));
    A_OK(t, aclrtStreamWaitEvent(s, flag));
    return flag;
}

static aclmdlRI graph_of_one(rondo_test *t, aclrtStream s, void *cell) {
    acl_begin(t, s);
    A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 1));
    return acl_end(t, s);
}

static aclError call_destroy_graph(caller *c) { return aclmdlRIDestroy(c->object); }
static aclError call_destroy_stream(caller *c) { return aclrtDestroyStream(c->object); }
static aclError call_synchronize(caller *c) { return aclrtSynchronizeStream(c->object); }
static aclError call_synchronize_device(caller *c) {
    (void)c;
    return aclrtSynchronizeDevice();
}
static aclError call_abort(caller *c) { return aclrtStreamAbort(c->object); }
static aclError call_reset(caller *c) {
    (void)c;
    return aclrtResetDeviceForce(0);
}

/* ------------------------------------------------------------------------------------------- by several threads */

static void test_a_graph_destroyed_by_several(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t), u = acl_stream(t);
    aclmdlRI model = graph_of_one(t, s, acl_cell(t, 0));
    aclrtEvent flag = hold(t, s);
    caller callers[4];
    A_OK(t, aclmdlRIExecuteAsync(model, s));
    acl_control(t)->clear_counts();
    for (int i = 0; i < 4; i++) caller_start(t, &callers[i], call_destroy_graph, model);
    until_called(t, "aclmdlRIDestroy", 4);
    A_OK(t, aclrtRecordEvent(flag, u));
    for (int i = 0; i < 4; i++) A_OK(t, caller_end(t, &callers[i])); /* a graph that is gone is none to complain of */
    T_EQ(t, acl_control(t)->alive("models"), 0);
}

static void test_a_stream_destroyed_by_several(rondo_test *t) {
    A_OPEN(t);
    for (int force = 0; force < 2; force++) {
        aclrtStream s = acl_stream(t), u = acl_stream(t);
        aclrtEvent flag = hold(t, s);
        caller callers[4];
        int done = 0;
        acl_control(t)->clear_counts();
        for (int i = 0; i < 4; i++) caller_start(t, &callers[i], call_destroy_stream, s);
        until_called(t, "aclrtDestroyStream", 4);
        if (force) A_OK(t, aclrtDestroyStreamForce(s));
        else A_OK(t, aclrtRecordEvent(flag, u));
        for (int i = 0; i < 4; i++) {
            aclError error = caller_end(t, &callers[i]);
            done += error == 0;
            if (error) T_EQ(t, error, 107017);
        }
        T_EQ(t, done, !force); /* one of them did it */
        T_EQ(t, acl_control(t)->alive("streams"), 2 + (uint64_t)force);
    }
}

/* ------------------------------------------------------------------------------------------------- under who waits */

/* Who waits for a stream that is destroyed learns whether the work was done. */
static void test_a_stream_goes_under_who_waits_for_it(rondo_test *t) {
    A_OPEN(t);
    for (int force = 0; force < 2; force++) {
        aclrtStream s = acl_stream(t), u = acl_stream(t);
        aclrtEvent flag = hold(t, s);
        caller waits = {0}, destroys = {0}, device = {0};
        acl_control(t)->clear_counts();
        caller_start(t, &waits, call_synchronize, s);
        caller_start(t, &device, call_synchronize_device, NULL);
        until_called(t, "aclrtSynchronizeStream", 1);
        until_called(t, "aclrtSynchronizeDevice", 1);
        if (force) A_OK(t, aclrtDestroyStreamForce(s));
        else {
            caller_start(t, &destroys, call_destroy_stream, s);
            until_called(t, "aclrtDestroyStream", 1);
            A_OK(t, aclrtRecordEvent(flag, u));
            A_OK(t, caller_end(t, &destroys));
        }
        A_IS(t, caller_end(t, &waits), force ? 107023 : 0);
        A_OK(t, caller_end(t, &device));
        A_OK(t, aclrtDestroyStream(u));
    }
}

static aclError call_copy_in(caller *c) {
    char from[64] = "";
    return aclrtMemcpyAsync(c->memory, 64, from, 64, ACL_MEMCPY_HOST_TO_DEVICE, c->object);
}

static aclError call_copy_out(caller *c) {
    char to[64] = "";
    aclError error = aclrtMemcpyAsync(to, 64, c->memory, 64, ACL_MEMCPY_DEVICE_TO_HOST, c->object);
    for (size_t i = 0; i < sizeof to; i++)
        if (to[i]) return -1;
    return error;
}

/* A copy of pageable memory waits for its stream. Meanwhile the stream goes; or the memory, and what was freed is not kept
 * for ever; or somebody else gets memory at that place. */
static void test_a_copy_that_waits(rondo_test *t) {
    A_OPEN(t);
    aclError (*const calls[])(caller * c) = {call_copy_in, call_copy_out};
    for (int way = 0; way < 6; way++) {
        aclrtStream s = acl_stream(t), u = acl_stream(t);
        aclrtEvent flag = hold(t, s);
        caller copies = {.memory = acl_memory(t, 64)};
        acl_control(t)->clear_counts();
        caller_start(t, &copies, calls[way % 2], s);
        until_called(t, "aclrtMemcpyAsync", 1);
        if (way / 2) A_OK(t, aclrtFree(copies.memory));
        for (int i = 0; way / 2 == 2 && i < 1100; i++) A_OK(t, aclrtFree(acl_memory(t, 64)));
        if (way / 2) A_OK(t, aclrtRecordEvent(flag, u));
        else A_OK(t, aclrtDestroyStreamForce(s));
        A_IS(t, caller_end(t, &copies), way / 2 ? 107000 : 107017);
    }
}

/* Work of a stream that comes to memory that was freed meanwhile, just now or long ago. */
static void test_memory_goes_under_work(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t), u = acl_stream(t);
    void *other = acl_memory(t, 64), *pinned = NULL;
    for (int way = 0; way < 14; way++) {
        void *gone = acl_cell(t, 0);
        A_OK(t, aclrtMallocHost(&pinned, 64));
        A_OK(t, aclrtMemset(other, 64, 0, 64));
        aclrtEvent flag = hold(t, s);
        switch (way / 2) {
        case 0: A_OK(t, aclrtMemcpyAsync(gone, 8, other, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, s)); break;
        case 1: A_OK(t, aclrtMemcpyAsync(other, 8, gone, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, s)); break;
        case 2: A_OK(t, aclrtMemcpyAsync(other, 8, pinned, 8, ACL_MEMCPY_HOST_TO_DEVICE, s)); break;
        case 3: A_OK(t, aclrtMemsetAsync(gone, 8, 1, 8, s)); break;
        case 4: A_OK(t, aclrtValueWrite(gone, 1, 0, s)); break;
        case 5: A_OK(t, aclrtValueWait(gone, 1, ACL_VALUE_WAIT_EQ, s)); break;
        default: A_OK(t, aclrtLaunchKernel(acl_function(t, "add"), 1, gone, 8, s)); break;
        }
        A_OK(t, aclrtFree(gone));
        A_OK(t, aclrtFreeHost(pinned));
        for (int i = 0; way % 2 && i < 1100; i++) A_OK(t, aclrtFree(acl_memory(t, 4096)));
        A_OK(t, aclrtRecordEvent(flag, u));
        A_IS(t, aclrtSynchronizeStream(s), 507015);
        T_TRUE(t, strstr(aclGetRecentErrMsg(), "lies in memory that was freed"));
        T_EQ(t, acl_read(t, other), 0);
        A_OK(t, aclrtDestroyEvent(flag));
    }
}

/* The same in a graph, where it waits, and where the memory was freed long ago. */
static void test_memory_goes_under_a_graph_that_waits(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t);
    void *gone = acl_cell(t, 0);
    acl_begin(t, s);
    A_OK(t, aclrtValueWait(gone, 1, ACL_VALUE_WAIT_EQ, s));
    aclmdlRI model = acl_end(t, s);
    acl_control(t)->clear_counts();
    A_OK(t, aclmdlRIExecuteAsync(model, s));
    until_called(t, "replays", 1);
    A_OK(t, aclrtFree(gone));
    A_OK(t, aclrtValueWrite(acl_cell(t, 0), 1, 0, NULL)); /* it looks again */
    A_IS(t, aclrtSynchronizeStream(s), 507015);
    for (int i = 0; i < 1100; i++) A_OK(t, aclrtFree(acl_memory(t, 4096)));
    A_OK(t, aclmdlRIExecuteAsync(model, s));
    A_IS(t, aclrtSynchronizeStream(s), 507015);
}

/* ---------------------------------------------------------------------------------- by a function that it runs itself */

typedef struct inside {
    aclrtContext context;
    aclrtStream s;
    aclrtEvent before, behind; /* recorded on it */
    aclmdlRI graph;
    void *cell;
    aclError errors[12];
} inside;

static void call_from_inside(void *argument) {
    inside *n = argument;
    char pageable[8];
    int i = 0;
    n->errors[i++] = aclrtSetCurrentContext(n->context);
    n->errors[i++] = aclrtDestroyStream(n->s);
    n->errors[i++] = aclrtDestroyStreamForce(n->s);
    n->errors[i++] = aclrtSynchronizeStream(n->s);
    n->errors[i++] = aclrtStreamAbort(n->s);
    n->errors[i++] = aclrtSynchronizeDevice();
    n->errors[i++] = aclrtResetDeviceForce(0);
    n->errors[i++] = aclrtFreeWithDevSync(n->cell);
    n->errors[i++] = aclrtMemcpyAsync(pageable, 8, n->cell, 8, ACL_MEMCPY_DEVICE_TO_HOST, n->s);
    n->errors[i++] = aclmdlRIExecute(n->graph, -1);
    n->errors[i++] = aclrtSynchronizeEvent(n->before);
    n->errors[i++] = aclrtSynchronizeEvent(n->behind);
}

static void check_inside(rondo_test *t, inside *n, const char *where, aclError execute) {
    for (int i = 0; i < 12; i++) {
        aclError want = i == 0 || i == 10 ? 0 : i == 9 ? execute : 107000;
        if (n->errors[i] != want)
            rondo_test_fail(t, __FILE__, __LINE__, "%s, call %d: %d, not %d", where, i, n->errors[i], want);
        n->errors[i] = -1;
    }
}

static inside *exception_inside;
static void exception(aclrtExceptionInfo *info) {
    (void)info;
    if (exception_inside) call_from_inside(exception_inside);
    exception_inside = NULL;
}

static void *take_report(void *argument) {
    *(aclError *)argument = aclrtProcessReport(20000);
    return NULL;
}

/* What waits for its stream can wait for ever, if the stream waits for it. It is refused, and the stream goes on. */
static void test_functions_and_their_own_stream(rondo_test *t) {
    A_OPEN(t);
    inside n = {.s = acl_stream(t), .before = acl_event(t), .behind = acl_event(t), .cell = acl_cell(t, 0)};
    aclrtStream u = acl_stream(t);
    aclrtEvent flag = NULL;
    pthread_t thread;
    aclError taken = -1;
    A_OK(t, aclrtGetCurrentContext(&n.context));
    n.graph = graph_of_one(t, n.s, n.cell);
    A_OK(t, aclrtRecordEvent(n.before, n.s));
    flag = hold(t, n.s);
    A_OK(t, aclrtLaunchHostFunc(n.s, call_from_inside, &n));
    A_OK(t, aclrtRecordEvent(n.behind, n.s));
    A_OK(t, aclrtRecordEvent(flag, u));
    A_OK(t, aclrtSynchronizeStream(n.s));
    check_inside(t, &n, "a function of the host", 0);
    T_EQ(t, acl_read(t, n.cell), 1);
    aclrtStream own = n.s;
    A_OK(t, aclrtCtxGetCurrentDefaultStream(&n.s));
    flag = hold(t, NULL);
    A_OK(t, aclrtLaunchHostFunc(NULL, call_from_inside, &n));
    A_OK(t, aclrtRecordEvent(n.behind, NULL));
    A_OK(t, aclrtRecordEvent(flag, u));
    A_OK(t, aclrtSynchronizeStream(NULL));
    check_inside(t, &n, "a function of the host on the default stream", 107000);
    n.s = own;
    T_EQ(t, pthread_create(&thread, NULL, take_report, &taken), 0);
    A_OK(t, aclrtSubscribeReport((uint64_t)thread, n.s));
    flag = hold(t, n.s);
    A_OK(t, aclrtLaunchCallback(call_from_inside, &n, ACL_CALLBACK_BLOCK, n.s));
    A_OK(t, aclrtRecordEvent(n.behind, n.s));
    A_OK(t, aclrtRecordEvent(flag, u));
    A_OK(t, aclrtSynchronizeStream(n.s));
    T_EQ(t, pthread_join(thread, NULL), 0);
    A_OK(t, taken);
    check_inside(t, &n, "a callback that blocks", 0);
    exception_inside = &n;
    A_OK(t, aclrtExceptionInfoCallbackRegister(exception));
    flag = hold(t, n.s);
    A_OK(t, acl_launch(acl_function(t, "break"), n.s, NULL, 0));
    A_OK(t, aclrtRecordEvent(n.behind, n.s));
    A_OK(t, aclrtRecordEvent(flag, u));
    A_IS(t, aclrtSynchronizeStream(n.s), 507015);
    A_OK(t, aclrtExceptionInfoCallbackUnregister(exception));
    check_inside(t, &n, "the function of exceptions", 0);
    A_OK(t, acl_launch(acl_function(t, "add"), n.s, n.cell, 1));
    A_OK(t, aclrtDestroyStream(n.s));
    T_EQ(t, acl_read(t, n.cell), 4);
}

typedef struct within {
    aclrtContext context;
    aclmdlRI graph;
    aclrtEvent flag;
    aclError destroy, execute, wait;
    int32_t timeout;
} within;

static void call_from_within(void *argument) {
    within *w = argument;
    if (aclrtSetCurrentContext(w->context)) return;
    if (w->graph) w->destroy = aclmdlRIDestroy(w->graph);
    if (w->graph) w->execute = aclmdlRIExecute(w->graph, w->timeout);
    w->wait = aclrtSynchronizeEventWithTimeout(w->flag, w->timeout);
}

/* A function of a graph's run does not wait for that run, nor for a flag that only its own stream is yet to raise. */
static void test_a_function_that_waits_for_its_run(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t), other = acl_stream(t);
    within w = {.destroy = -1, .execute = -1, .wait = -1, .timeout = 20000};
    A_OK(t, aclrtGetCurrentContext(&w.context));
    A_OK(t, aclrtCreateEventWithFlag(&w.flag, ACL_EVENT_SYNC));
    acl_begin(t, s);
    A_OK(t, aclrtLaunchHostFunc(s, call_from_within, &w));
    w.graph = acl_end(t, s);
    aclrtEvent first = hold(t, s);
    A_OK(t, aclmdlRIExecuteAsync(w.graph, s));
    A_OK(t, aclrtRecordEvent(w.flag, s));
    A_OK(t, aclrtRecordEvent(first, other));
    A_OK(t, aclrtSynchronizeStream(s));
    T_EQ(t, w.destroy, 107000);
    T_EQ(t, w.execute, 107000);
    T_EQ(t, w.wait, 107000);
    A_OK(t, aclmdlRIDestroy(w.graph));
    /* Another stream raises it. */
    w.graph = NULL;
    A_OK(t, aclrtResetEvent(w.flag, s));
    first = hold(t, s);
    aclrtEvent second = hold(t, other);
    A_OK(t, aclrtLaunchHostFunc(s, call_from_within, &w));
    A_OK(t, aclrtRecordEvent(w.flag, other));
    A_OK(t, aclrtRecordEvent(w.flag, s));
    aclrtStream third = acl_stream(t);
    A_OK(t, aclrtRecordEvent(first, third));
    A_OK(t, aclrtSynchronizeStream(third));
    A_OK(t, aclrtRecordEvent(second, third));
    A_OK(t, aclrtSynchronizeDevice());
    T_EQ(t, w.wait, 0);
}

/* A device is synchronised without streams that nobody waits for. */
static void test_streams_apart(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = NULL;
    A_OK(t, aclrtCreateStreamWithConfig(&s, 0, ACL_STREAM_PERSISTENT));
    (void)hold(t, s);
    A_OK(t, aclrtSynchronizeDeviceWithTimeout(20));
    A_OK(t, aclrtFreeWithDevSync(acl_cell(t, 0)));
    A_OK(t, aclrtStreamAbort(s));
}

/* ------------------------------------------------------------------------------------------------ who is told */

typedef struct told {
    void *memory;
    aclmdlRI graph, other;
    aclError free_error, destroy_error;
    int calls;
} told;

static void tell(void *argument) {
    told *d = argument;
    d->calls++;
    d->free_error = d->memory ? aclrtFree(d->memory) : 0;
    d->destroy_error = aclmdlRIDestroy(d->other);
    if (!d->destroy_error && d->graph) d->destroy_error = aclmdlRIDestroy(d->graph); /* gone by now */
}

/* Who is told that a graph goes may call the library, and even let another graph go. */
static void test_who_is_told_calls_back(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t), side = acl_stream(t);
    aclrtContext mine = NULL, other = NULL;
    aclrtEvent fork = acl_event(t);
    void *cell = acl_cell(t, 0);
    told first = {.memory = acl_memory(t, 8), .free_error = -1}, second = {.free_error = -1}, none = {0};
    first.graph = graph_of_one(t, s, cell);
    first.other = second.graph = graph_of_one(t, s, cell);
    second.other = first.graph;
    A_OK(t, aclmdlRIDestroyRegisterCallback(first.graph, tell, &first));
    A_OK(t, aclmdlRIDestroyRegisterCallback(second.graph, tell, &second));
    A_OK(t, aclmdlRIDestroy(first.graph));
    T_TRUE(t, first.calls == 1 && first.free_error == 0 && first.destroy_error == 0);
    T_TRUE(t, second.calls == 1 && second.free_error == 0 && second.destroy_error == 0);
    T_EQ(t, acl_control(t)->alive("models"), 0);
    /* Eight of them, and one that is called off. */
    aclmdlRI model = graph_of_one(t, s, cell);
    for (int i = 0; i < 8; i++) A_OK(t, aclmdlRIDestroyRegisterCallback(model, tell, &none));
    A_IS(t, aclmdlRIDestroyRegisterCallback(model, tell, &none), 207012);
    A_OK(t, aclmdlRIDestroyUnregisterCallback(model, tell));
    A_IS(t, aclmdlRIDestroyUnregisterCallback(model, (aclrtCallback)free), 107000);
    none.other = model;
    A_OK(t, aclmdlRIDestroy(model));
    T_EQ(t, none.calls, 7);
    /* Also of a capture that fails, with a context, and with the device. */
    for (int way = 0; way < 3; way++) {
        told d = {.memory = acl_memory(t, 8), .free_error = -1, .other = cell};
        A_OK(t, aclrtGetCurrentContext(&mine));
        if (way == 1) A_OK(t, aclrtCreateContext(&other, 0));
        if (way == 1) s = acl_stream(t);
        acl_begin(t, s);
        A_OK(t, aclmdlRICaptureGetInfo(s, NULL, &model));
        A_OK(t, aclmdlRIDestroyRegisterCallback(model, tell, &d));
        if (way == 0) {
            A_OK(t, aclrtRecordEvent(fork, s));
            A_OK(t, aclrtStreamWaitEvent(side, fork));
            A_IS(t, aclmdlRICaptureEnd(s, &model), 107025);
        } else A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 1));
        if (way == 1) A_OK(t, aclrtDestroyContext(other));
        if (way == 1) A_OK(t, aclrtSetCurrentContext(mine));
        if (way == 1) s = acl_stream(t);
        if (way == 2) A_OK(t, aclrtResetDevice(0));
        T_EQ(t, d.calls, 1);
        T_EQ(t, d.free_error, way ? 107002 : 0); /* the thread has no context any more */
        A_OK(t, d.destroy_error);
        if (way == 1) A_OK(t, aclrtFree(d.memory));
    }
}

/* -------------------------------------------------------------------------------------------------- ways out */

static aclmdlRI endless(rondo_test *t, aclrtStream s, int way, void *cell) {
    aclrtStream inner = acl_stream(t);
    aclmdlRI now = NULL, part = NULL;
    aclmdlRICondHandle condition = NULL;
    acl_begin(t, s);
    A_OK(t, aclmdlRICaptureGetInfo(s, NULL, &now));
    A_OK(t, aclmdlRICondHandleCreate(now, 1, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &condition));
    aclmdlRICondTaskParams params = {condition, way < 2 ? ACL_MODEL_RI_COND_TYPE_WHILE : ACL_MODEL_RI_COND_TYPE_IF, 1,
                                     &part};
    A_OK(t, aclmdlRIAddCondTask(params, s, 0));
    A_OK(t, aclmdlRICaptureToModelRIBegin(inner, part, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    if (way == 1) A_OK(t, acl_launch(acl_function(t, "sleep"), inner, cell, 100));
    if (way == 2) A_OK(t, aclrtValueWait(cell, 5, ACL_VALUE_WAIT_EQ, inner));
    A_OK(t, aclmdlRICaptureEnd(inner, NULL));
    A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 100));
    return acl_end(t, s);
}

/* A loop that does not end, with a body and without, and a part that waits: each ends by each of the ways out. */
static void test_ways_out_of_parts(rondo_test *t) {
    A_OPEN(t);
    for (int way = 0; way < 9; way++) {
        T_EQ(t, acl_control(t)->set("DESTROY_MS", 20), 0);
        aclrtStream s = acl_stream(t), clean = acl_stream(t);
        void *cell = acl_cell(t, 0);
        aclmdlRI model = endless(t, s, way % 3, cell);
        acl_control(t)->clear_counts();
        A_OK(t, aclmdlRIExecuteAsync(model, s));
        until_called(t, "replays", 2);
        A_IS(t, aclrtSynchronizeStreamWithTimeout(s, 1), 507046);
        A_IS(t, aclmdlRIDestroy(model), 107037);
        if (way / 3 == 2) {
            A_OK(t, aclrtResetDeviceForce(0));
            T_EQ(t, acl_control(t)->alive("models"), 0);
            A_OK(t, aclrtSetDevice(0));
            continue;
        }
        if (way / 3 == 0) {
            A_OK(t, aclrtStreamAbort(s));
            A_IS(t, aclrtSynchronizeStream(s), 107023);
            T_TRUE(t, strstr(aclGetRecentErrMsg(), "the run was aborted"));
        } else A_OK(t, aclrtDestroyStreamForce(s));
        T_EQ(t, acl_read(t, cell), 0); /* what comes behind was not run */
        A_OK(t, aclmdlRIDestroy(model));
        A_OK(t, aclrtSynchronizeStream(clean));
    }
}

typedef struct gate {
    atomic_bool entered, open;
} gate;

static void pass(void *argument) {
    gate *g = argument;
    g->entered = true;
    while (!g->open) (void)usleep(100);
}

/* Between two tasks of a graph: the first ends, the second does not begin. */
static void test_abort_between_tasks(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t);
    void *cell = acl_cell(t, 0);
    gate g = {false, false};
    acl_begin(t, s);
    A_OK(t, aclrtLaunchHostFunc(s, pass, &g));
    A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 1));
    aclmdlRI model = acl_end(t, s);
    acl_control(t)->clear_counts();
    A_OK(t, aclmdlRIExecuteAsync(model, s));
    A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 10));
    while (!g.entered) (void)usleep(100);
    caller aborts = {0};
    caller_start(t, &aborts, call_abort, s);
    until_called(t, "aclrtStreamAbort", 1);
    g.open = true;
    A_OK(t, caller_end(t, &aborts));
    A_IS(t, aclrtSynchronizeStream(s), 107023);
    T_EQ(t, acl_read(t, cell), 0);
    A_OK(t, aclmdlRIExecuteAsync(model, s)); /* it was that run's */
    A_OK(t, aclrtSynchronizeStream(s));
    T_EQ(t, acl_read(t, cell), 1);
}

/* A stream that waits for a callback that nobody takes, or that does not come to its end. */
static void test_ways_out_of_callbacks(rondo_test *t) {
    A_OPEN(t);
    for (int way = 0; way < 6; way++) {
        T_EQ(t, acl_control(t)->set("DESTROY_MS", 20), 0);
        aclrtStream s = acl_stream(t);
        gate g = {false, false};
        pthread_t thread = pthread_self();
        aclError taken = 0;
        bool takes = way >= 3;
        if (takes) T_EQ(t, pthread_create(&thread, NULL, take_report, &taken), 0);
        A_OK(t, aclrtSubscribeReport((uint64_t)thread, s));
        A_OK(t, aclrtLaunchCallback(pass, &g, ACL_CALLBACK_BLOCK, s));
        A_IS(t, aclrtSynchronizeStreamWithTimeout(s, 5), 507046);
        while (takes && !g.entered) (void)usleep(100);
        if (way % 3 == 0) A_OK(t, aclrtStreamAbort(s));
        if (way % 3 == 1) A_OK(t, aclrtDestroyStreamForce(s));
        if (way % 3 == 2) A_OK(t, aclrtResetDeviceForce(0));
        g.open = true;
        if (takes) T_EQ(t, pthread_join(thread, NULL), 0);
        A_OK(t, taken);
        T_EQ(t, g.entered, takes);
        if (way % 3 == 2) A_OK(t, aclrtSetDevice(0));
        A_IS(t, aclrtProcessReport(1), 507012); /* it is nobody's any more */
    }
}

/* ------------------------------------------------------------------------------------------------ whole devices */

/* Who sets the device while another thread resets it begins anew, and keeps what is made from then on. */
static void test_set_while_reset(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t);
    void *old = acl_cell(t, 0);
    gate g = {false, false};
    caller resets = {0};
    A_OK(t, aclrtLaunchHostFunc(s, pass, &g));
    A_OK(t, acl_launch(acl_function(t, "add"), s, old, 1));
    acl_control(t)->clear_counts();
    caller_start(t, &resets, call_reset, NULL);
    until_called(t, "aclrtResetDeviceForce", 1);
    A_IS(t, aclrtResetDeviceForce(0), 107001); /* it is on its way */
    A_OK(t, aclrtSetDevice(0));
    aclrtStream fresh = acl_stream(t);
    void *cell = acl_cell(t, 5);
    A_IS(t, aclrtSynchronizeStream(s), 107003);
    g.open = true;
    A_OK(t, caller_end(t, &resets));
    A_OK(t, acl_launch(acl_function(t, "add"), fresh, cell, 1));
    A_OK(t, aclrtSynchronizeStream(fresh));
    T_EQ(t, acl_read(t, cell), 6);
    A_IS(t, aclrtFree(old), 107000);
    A_IS(t, aclrtSynchronizeStream(s), 107017);
    T_EQ(t, acl_control(t)->alive("contexts"), 1);
}

static aclError call_destroy_context(caller *c) { return aclrtDestroyContext(c->object); }

static void test_a_context_destroyed_by_several(rondo_test *t) {
    A_OPEN(t);
    aclrtContext mine = NULL, other = NULL;
    aclrtStream u = acl_stream(t);
    caller callers[3], waits = {0};
    int done = 0;
    A_OK(t, aclrtGetCurrentContext(&mine));
    A_OK(t, aclrtCreateContext(&other, 0));
    aclrtEvent flag = hold(t, acl_stream(t));
    acl_control(t)->clear_counts();
    caller_start(t, &waits, call_synchronize_device, NULL);
    until_called(t, "aclrtSynchronizeDevice", 1);
    for (int i = 0; i < 3; i++) caller_start(t, &callers[i], call_destroy_context, other);
    until_called(t, "aclrtDestroyContext", 3);
    A_OK(t, aclrtSetCurrentContext(mine));
    A_OK(t, aclrtRecordEvent(flag, u));
    for (int i = 0; i < 3; i++) {
        aclError error = caller_end(t, &callers[i]);
        done += error == 0;
        if (error) T_EQ(t, error, 107017);
    }
    T_EQ(t, done, 1);
    A_OK(t, caller_end(t, &waits));
    T_EQ(t, acl_control(t)->alive("contexts"), 1);
}

/* ---------------------------------------------------------------------------------------------------- kernels */

static aclrtBinHandle load(rondo_test *t, aclrtFuncHandle *out) {
    aclsim_image image = {ACLSIM_MAGIC, sizeof acl_kernels / sizeof acl_kernels[0], acl_kernels};
    aclrtBinHandle binary = NULL;
    A_OK(t, aclrtBinaryLoadFromData(&image, sizeof image, NULL, &binary));
    A_OK(t, aclrtBinaryGetFunction(binary, "add", out));
    return binary;
}

/* A binary goes while a graph, a launch on its way, an update and arguments have its kernel: each says so when it is its turn. */
static void test_a_binary_goes(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t), u = acl_stream(t);
    aclrtFuncHandle add = NULL, stays = acl_function(t, "add");
    aclrtBinHandle binary = load(t, &add);
    aclrtArgsHandle arguments = NULL;
    aclrtTaskGrp group = NULL;
    void *cell = acl_cell(t, 0);
    acl_begin(t, s);
    A_OK(t, acl_launch(stays, s, cell, 1));
    A_OK(t, acl_launch(add, s, cell, 10));
    aclmdlRI of_it = acl_end(t, s);
    acl_begin(t, s);
    A_OK(t, aclmdlRICaptureTaskGrpBegin(s));
    A_OK(t, acl_launch(stays, s, cell, 100));
    A_OK(t, aclmdlRICaptureTaskGrpEnd(s, &group));
    aclmdlRI updated = acl_end(t, s);
    A_OK(t, aclmdlRIExecuteAsync(of_it, s));
    A_OK(t, aclrtSynchronizeStream(s));
    T_EQ(t, acl_read(t, cell), 11);
    A_OK(t, aclrtKernelArgsInit(add, &arguments));
    aclrtEvent flag = hold(t, u);
    A_OK(t, acl_launch(add, u, cell, 1000));
    A_OK(t, aclmdlRICaptureTaskUpdateBegin(s, group));
    A_OK(t, acl_launch(add, s, cell, 10000));
    A_OK(t, aclrtBinaryUnLoad(binary));
    A_IS(t, aclrtBinaryUnLoad(binary), 107017);
    A_IS(t, acl_launch(add, u, cell, 1), 107017);
    A_OK(t, aclmdlRICaptureTaskUpdateEnd(s));
    A_OK(t, aclrtRecordEvent(flag, NULL));
    A_IS(t, aclrtSynchronizeStream(u), 507027);
    T_TRUE(t, strstr(aclGetRecentErrMsg(), "kernel 'add': its binary was unloaded"));
    A_OK(t, aclrtSynchronizeStream(s));
    for (int i = 0; i < 2; i++) {
        A_OK(t, aclmdlRIExecuteAsync(i ? updated : of_it, s));
        A_IS(t, aclrtSynchronizeStream(s), 507027);
        T_TRUE(t, strstr(aclGetRecentErrMsg(), i ? "task 1: kernel 'add'" : "task 2: kernel 'add'"));
    }
    T_EQ(t, acl_read(t, cell), 11); /* a run that is refused does nothing */
    binary = load(t, &add);         /* the same image: another binary, and another function */
    A_OK(t, aclrtKernelArgsFinalize(arguments));
    A_IS(t, aclrtLaunchKernelWithConfig(add, 1, s, NULL, arguments, NULL), 107000);
    A_OK(t, aclmdlRIDestroy(of_it));
    A_OK(t, aclmdlRIDestroy(updated));
    A_OK(t, acl_launch(add, s, cell, 1));
    A_OK(t, aclrtSynchronizeStream(s));
    T_EQ(t, acl_read(t, cell), 12);
    A_OK(t, aclrtBinaryUnLoad(binary));
}

RONDO_TEST_MAIN(T_PLAIN(test_a_function_that_waits_for_its_run), T_PLAIN(test_streams_apart),
                T_PLAIN(test_a_graph_destroyed_by_several), T_PLAIN(test_a_stream_destroyed_by_several),
                T_PLAIN(test_a_stream_goes_under_who_waits_for_it), T_PLAIN(test_a_copy_that_waits),
                T_PLAIN(test_memory_goes_under_work), T_PLAIN(test_memory_goes_under_a_graph_that_waits),
                T_PLAIN(test_functions_and_their_own_stream), T_PLAIN(test_who_is_told_calls_back),
                T_PLAIN(test_ways_out_of_parts), T_PLAIN(test_abort_between_tasks), T_PLAIN(test_ways_out_of_callbacks),
                T_PLAIN(test_set_while_reset), T_PLAIN(test_a_context_destroyed_by_several),
                T_PLAIN(test_a_binary_goes))
