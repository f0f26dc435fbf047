/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs out, what fails on demand, in which order things may go, and that nothing is left after very many captures. */
#include "acl_testing.h"

enum { EVERYTHING = 9 };
static const char *const counted[EVERYTHING] = {"streams", "events", "models",   "contexts",        "memory",
                                                "host",    "blocks", "notifies", "hardware_streams"};

static void now_alive(rondo_test *t, uint64_t *out) {
    for (int i = 0; i < EVERYTHING; i++) out[i] = acl_control(t)->alive(counted[i]);
}

static void want_alive(rondo_test *t, const uint64_t *want, const char *after) {
    for (int i = 0; i < EVERYTHING; i++) {
        uint64_t got = acl_control(t)->alive(counted[i]);
        if (got != want[i])
            rondo_test_fail(t, __FILE__, __LINE__, "after %s: %s is %llu, not %llu", after, counted[i],
                            (unsigned long long)got, (unsigned long long)want[i]);
    }
}

/* Without software queues each captured stream holds a hardware one while the graph lives; with them, while it runs. */
static void test_streams_run_out(rondo_test *t) {
    A_OPEN(t);
    const aclsim_control *control = acl_control(t);
    uint32_t left = 0;
    aclrtStream s = acl_stream(t), more = NULL;
    aclmdlRI models[4] = {NULL}, none = NULL;
    T_EQ(t, control->set("SOFTWARE_SQ", 0), 0);
    A_OK(t, aclrtGetStreamAvailableNum(&left));
    T_EQ(t, left, 1984 - 2);
    T_EQ(t, control->set("STREAMS", 5), 0);
    for (int i = 0; i < 3; i++) {
        acl_begin(t, s);
        models[i] = acl_end(t, s);
    }
    A_IS(t, aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), 207005);
    T_TRUE(t, strstr(aclGetRecentErrMsg(), "needs 1 hardware stream(s) of device 0; 5 of 5 are in use"));
    A_IS(t, aclrtCreateStream(&more), 207008);
    A_OK(t, aclmdlRIDestroy(models[0]));
    more = acl_stream(t);
    T_EQ(t, control->set("STREAMS", 6), 0);
    aclrtEvent fork = acl_event(t);
    acl_begin(t, s);
    A_OK(t, aclrtRecordEvent(fork, s));
    A_IS(t, aclrtStreamWaitEvent(more, fork), 207005); /* the fork is what does not fit, and breaks it */
    A_IS(t, aclmdlRICaptureEnd(s, &none), 507903);
    T_EQ(t, control->set("SOFTWARE_SQ", 1), 0);
    T_EQ(t, control->set("STREAMS", 5), 0);
    acl_begin(t, s);
    models[0] = acl_end(t, s); /* queues are bound when it runs */
    A_IS(t, aclmdlRIExecuteAsync(models[0], s), 207005);
    A_OK(t, aclmdlRIDestroy(models[1]));
    A_OK(t, aclmdlRIExecuteAsync(models[0], s));
    A_OK(t, aclrtSynchronizeStream(s));
}

/* A long capture goes on in further streams. */
static void test_cascade(rondo_test *t) {
    A_OPEN(t);
    const aclsim_control *control = acl_control(t);
    aclrtStream s = acl_stream(t);
    void *cell = acl_cell(t, 0);
    aclmdlRI none = NULL;
    T_EQ(t, control->set("SOFTWARE_SQ", 0), 0);
    T_EQ(t, control->set("QUEUE", 10), 0);
    acl_begin(t, s);
    for (int i = 0; i < 35; i++) A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 1));
    T_EQ(t, control->alive("hardware_streams"), 2 + 1 + 3);
    aclmdlRI model = acl_end(t, s);
    A_OK(t, aclmdlRIExecuteAsync(model, s));
    A_OK(t, aclrtSynchronizeStream(s));
    T_EQ(t, acl_read(t, cell), 35);
    T_EQ(t, control->set("STREAMS", 7), 0);
    acl_begin(t, s);
    for (int i = 0; i < 10; i++) A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 1));
    A_IS(t, acl_launch(acl_function(t, "add"), s, cell, 1), 207005);
    A_IS(t, aclmdlRICaptureEnd(s, &none), 507903);
    A_OK(t, aclmdlRIDestroy(model));
    T_EQ(t, control->alive("hardware_streams"), 2);
}

static void test_events_and_notifies_run_out(rondo_test *t) {
    A_OPEN(t);
    const aclsim_control *control = acl_control(t);
    aclrtStream s = acl_stream(t);
    aclrtEvent a = NULL, b = NULL, lazy = acl_event(t);
    aclmdlRI first = NULL, none = NULL;
    uint32_t left = 0;
    T_EQ(t, control->set("EVENTS", 1), 0);
    A_OK(t, aclrtGetEventAvailNum(&left));
    T_EQ(t, left, 1);
    A_OK(t, aclrtCreateEventWithFlag(&a, ACL_EVENT_SYNC));
    A_IS(t, aclrtCreateEventWithFlag(&b, ACL_EVENT_SYNC), 207007);
    A_IS(t, aclrtRecordEvent(lazy, s), 207007); /* it gets its id here */
    A_OK(t, aclrtDestroyEvent(a));
    A_OK(t, aclrtRecordEvent(lazy, s));
    T_EQ(t, control->set("NOTIFIES", 1), 0);
    acl_begin(t, s);
    first = acl_end(t, s);
    acl_begin(t, s);
    A_IS(t, aclmdlRICaptureEnd(s, &none), 207009);
    A_OK(t, aclmdlRIDestroy(first));
    acl_begin(t, s);
    (void)acl_end(t, s);
}

/* --------------------------------------------------------------------------------------------- failures on demand */

/* A program that uses what there is; the first call that fails ends it, and it cleans up as far as it has got. */
typedef struct program {
    aclrtStream s, side;
    aclrtEvent fork, join;
    aclmdlRI model;
    void *cell, *pinned;
} program_parts;

static aclError program_make(program_parts *p) {
    aclError error = aclrtCreateStream(&p->s);
    if (!error) error = aclrtCreateStream(&p->side);
    if (!error) error = aclrtCreateEventExWithFlag(&p->fork, ACL_EVENT_SYNC);
    if (!error) error = aclrtCreateEventExWithFlag(&p->join, ACL_EVENT_SYNC);
    if (!error) error = aclrtMalloc(&p->cell, 8, ACL_MEM_MALLOC_HUGE_FIRST);
    if (!error) error = aclrtMallocHost(&p->pinned, 8);
    if (!error) memset(p->pinned, 0, 8);
    return error;
}

static aclError program_record(const program_parts *p, aclrtFuncHandle add) {
    aclError error = aclrtMemcpyAsync(p->cell, 8, p->pinned, 8, ACL_MEMCPY_HOST_TO_DEVICE, p->s);
    if (!error) error = aclrtRecordEvent(p->fork, p->s);
    if (!error) error = aclrtStreamWaitEvent(p->side, p->fork);
    if (!error) error = acl_launch(add, p->side, p->cell, 5);
    if (!error) error = aclrtRecordEvent(p->join, p->side);
    if (!error) error = aclrtStreamWaitEvent(p->s, p->join);
    return error ? error : aclrtMemcpyAsync(p->pinned, 8, p->cell, 8, ACL_MEMCPY_DEVICE_TO_HOST, p->s);
}

static aclError program_capture(program_parts *p, aclrtFuncHandle add) {
    aclError error = aclmdlRICaptureBegin(p->s, ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
    if (error) return error;
    error = program_record(p, add);
    if (!error) error = aclmdlRICaptureEnd(p->s, &p->model);
    if (!error) return error;
    aclmdlRI lost = NULL;
    (void)aclmdlRICaptureEnd(p->s, &lost); /* whatever it answers */
    if (lost) (void)aclmdlRIDestroy(lost);
    return error;
}

static aclError program_clean(program_parts *p) {
    aclError error = p->model ? aclmdlRIDestroy(p->model) : ACL_SUCCESS;
    if (error) (void)aclmdlRIDestroy(p->model);
    if (p->pinned) (void)aclrtFreeHost(p->pinned);
    if (p->cell) (void)aclrtFree(p->cell);
    if (p->join) (void)aclrtDestroyEvent(p->join);
    if (p->fork) (void)aclrtDestroyEvent(p->fork);
    if (p->side) (void)aclrtDestroyStream(p->side);
    if (p->s) (void)aclrtDestroyStream(p->s);
    return error;
}

static aclError program(rondo_test *t, int64_t *out) {
    program_parts p = {0};
    aclrtFuncHandle add = acl_function(t, "add");
    aclError error = program_make(&p);
    if (!error) error = program_capture(&p, add);
    if (!error) error = aclmdlRIExecuteAsync(p.model, p.s);
    if (!error) error = aclrtSynchronizeStream(p.s);
    if (!error) memcpy(out, p.pinned, 8);
    aclError clean = program_clean(&p);
    return error ? error : clean;
}

/* The simulator's nth allocation fails, for each n: the call says so, and nothing is left. */
static void test_allocations_fail(rondo_test *t) {
    A_OPEN(t);
    uint64_t before[EVERYTHING];
    int64_t got = 0;
    (void)acl_function(t, "add");
    A_OK(t, program(t, &got));
    now_alive(t, before);
    uint64_t n = 1;
    for (;; n++) {
        T_EQ(t, acl_control(t)->fail("alloc", n, ACL_ERROR_BAD_ALLOC), 0);
        got = 0;
        aclError error = program(t, &got);
        T_EQ(t, acl_control(t)->fail("alloc", 0, 0), 0);
        want_alive(t, before, "an allocation that failed");
        if (!error) break;
        T_TRUE(t, error == ACL_ERROR_BAD_ALLOC || error == ACL_ERROR_RT_MEMORY_ALLOCATION || error == 507903);
    }
    T_EQ(t, got, 5);
    T_TRUE(t, n > 15);
}

typedef struct broken_by {
    aclrtStream s;
    void *cell, *pinned;
    aclrtFuncHandle add;
    aclrtArgsHandle arguments;
    aclmdlRICondHandle condition;
} broken_by;

static aclError by_launch(const broken_by *b) { return acl_launch(b->add, b->s, b->cell, 10); }
static aclError by_launch_from_device(const broken_by *b) { return aclrtLaunchKernel(b->add, 1, b->cell, 16, b->s); }
static aclError by_launch_of_array(const broken_by *b) {
    void *cell = b->cell, *args[2] = {&cell, &cell};
    return aclrtLaunchKernelWithArgsArray(b->add, 1, b->s, NULL, args);
}
static aclError by_launch_with_config(const broken_by *b) {
    return aclrtLaunchKernelWithConfig(b->add, 1, b->s, NULL, b->arguments, NULL);
}
static aclError by_copy(const broken_by *b) {
    return aclrtMemcpyAsync(b->pinned, 8, b->cell, 8, ACL_MEMCPY_DEVICE_TO_HOST, b->s);
}
static aclError by_copy_2d(const broken_by *b) {
    return aclrtMemcpy2dAsync(b->pinned, 8, b->cell, 8, 8, 1, ACL_MEMCPY_DEVICE_TO_HOST, b->s);
}
static aclError by_fill(const broken_by *b) { return aclrtMemsetAsync(b->cell, 8, 0, 8, b->s); }
static aclError by_value_write(const broken_by *b) { return aclrtValueWrite(b->cell, 1, 0, b->s); }
static aclError by_value_wait(const broken_by *b) { return aclrtValueWait(b->cell, 1, ACL_VALUE_WAIT_GEQ, b->s); }
static void nothing(void *unused) { (void)unused; }
static aclError by_host_function(const broken_by *b) { return aclrtLaunchHostFunc(b->s, nothing, NULL); }
static aclError by_group(const broken_by *b) { return aclmdlRICaptureTaskGrpBegin(b->s); }
static aclError by_condition(const broken_by *b) {
    aclmdlRI parts[2] = {NULL};
    aclmdlRICondTaskParams params = {.handle = b->condition, .type = (aclmdlRICondTaskType)0, .size = 2};
    params.modelRIArray = parts;
    return aclmdlRIAddCondTask(params, b->s, 0);
}

/* Without memory for what a captured stream was to do, the capture is broken: a graph would lack it. */
static void test_allocations_of_a_capture_fail(rondo_test *t) {
    static const struct {
        const char *name;
        aclError (*call)(const broken_by *);
        uint64_t allocations; /* so many at least */
    } rows[] = {{"aclrtLaunchKernelWithHostArgs", by_launch, 2},
                {"aclrtLaunchKernel", by_launch_from_device, 2},
                {"aclrtLaunchKernelWithArgsArray", by_launch_of_array, 2},
                {"aclrtLaunchKernelWithConfig", by_launch_with_config, 2},
                {"aclrtMemcpyAsync", by_copy, 1},
                {"aclrtMemcpy2dAsync", by_copy_2d, 1},
                {"aclrtMemsetAsync", by_fill, 1},
                {"aclrtValueWrite", by_value_write, 1},
                {"aclrtValueWait", by_value_wait, 1},
                {"aclrtLaunchHostFunc", by_host_function, 1},
                {"aclmdlRICaptureTaskGrpBegin", by_group, 1},
                {"aclmdlRIAddCondTask", by_condition, 4}};
    A_OPEN(t);
    broken_by b = {acl_stream(t), acl_memory(t, 16), NULL, acl_function(t, "add"), NULL, NULL};
    A_OK(t, aclrtMallocHost(&b.pinned, 8));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (uint64_t nth = 1; nth <= rows[i].allocations; nth++) {
            aclmdlRI model = NULL;
            int64_t word = 0;
            aclrtParamHandle place = NULL;
            acl_begin(t, b.s);
            A_OK(t, acl_launch(b.add, b.s, b.cell, 1));
            A_OK(t, aclmdlRICaptureGetInfo(b.s, NULL, &model));
            A_OK(t, aclmdlRICondHandleCreate(model, 1, 0, &b.condition));
            A_OK(t, aclrtKernelArgsInit(b.add, &b.arguments));
            A_OK(t, aclrtKernelArgsAppend(b.arguments, &word, sizeof word, &place));
            A_OK(t, aclrtKernelArgsFinalize(b.arguments));
            T_EQ(t, acl_control(t)->fail("alloc", nth, ACL_ERROR_BAD_ALLOC), 0);
            A_IS(t, rows[i].call(&b), 200000);
            T_EQ(t, acl_control(t)->fail("alloc", 0, 0), 0);
            if (acl_status(t, b.s) != ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED)
                rondo_test_fail(t, __FILE__, __LINE__, "%s, allocation %d: the capture goes on", rows[i].name,
                                (int)nth);
            A_IS(t, acl_launch(b.add, b.s, b.cell, 100), 507903);
            A_IS(t, aclmdlRICaptureEnd(b.s, &model), 507903);
            T_TRUE(t, !model);
        }
    }
}

/* A run that there is no memory for gives back the hardware streams that it was to have. */
static void test_a_run_without_memory(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t);
    acl_begin(t, s);
    A_OK(t, acl_launch(acl_function(t, "add"), s, acl_cell(t, 0), 1));
    aclmdlRI model = acl_end(t, s);
    T_EQ(t, acl_control(t)->alive("hardware_streams"), 2);
    T_EQ(t, acl_control(t)->fail("alloc", 1, ACL_ERROR_BAD_ALLOC), 0);
    A_IS(t, aclmdlRIExecuteAsync(model, s), 200000);
    T_EQ(t, acl_control(t)->alive("hardware_streams"), 2);
}

/* Each function fails once. */
static void test_calls_fail(rondo_test *t) {
    static const char *const names[] = {
        "aclrtCreateStream",  "aclrtCreateEventExWithFlag", "aclrtMalloc",
        "aclrtMallocHost",    "aclmdlRICaptureBegin",       "aclrtMemcpyAsync",
        "aclrtRecordEvent",   "aclrtStreamWaitEvent",       "aclrtLaunchKernelWithHostArgs",
        "aclmdlRICaptureEnd", "aclmdlRIExecuteAsync",       "aclrtSynchronizeStream",
        "aclmdlRIDestroy"};
    A_OPEN(t);
    uint64_t before[EVERYTHING];
    int64_t got = 0;
    A_OK(t, program(t, &got));
    now_alive(t, before);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (uint64_t nth = 1; nth <= 2; nth++) {
            T_EQ(t, acl_control(t)->fail(names[i], nth, 507899), 0);
            aclError error = program(t, &got);
            T_TRUE(t, error == 507899 || nth == 2);
            T_EQ(t, acl_control(t)->fail(names[i], 0, 0), 0);
            want_alive(t, before, names[i]);
        }
    }
    T_TRUE(t, acl_control(t)->fail("nothing", 1, 1) != 0 && acl_control(t)->count("nothing") == UINT64_MAX);
}

/* An end that was told to fail is an end all the same: of the stream that began, and of those that joined. */
static void test_an_end_that_is_told_to_fail(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t), side = acl_stream(t);
    aclrtEvent fork = acl_event(t);
    void *cell = acl_cell(t, 0);
    aclmdlRI model = NULL;
    acl_begin(t, s);
    A_OK(t, aclrtRecordEvent(fork, s));
    A_OK(t, aclrtStreamWaitEvent(side, fork));
    T_EQ(t, acl_control(t)->fail("aclmdlRICaptureEnd", 1, 507899), 0);
    A_IS(t, aclmdlRICaptureEnd(s, &model), 507899);
    T_TRUE(t, strstr(aclGetRecentErrMsg(), "it was told to fail") && !model);
    A_IS(t, aclmdlRICaptureEnd(s, &model), 107029);
    T_EQ(t, acl_control(t)->alive("models"), 0);
    A_OK(t, acl_launch(acl_function(t, "add"), side, cell, 1));
    A_OK(t, aclrtSynchronizeStream(side));
    acl_begin(t, s);
    A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 1));
    model = acl_end(t, s);
    A_OK(t, aclmdlRIExecuteAsync(model, s));
    A_OK(t, aclrtSynchronizeStream(s));
    T_EQ(t, acl_read(t, cell), 2);
}

/* ------------------------------------------------------------------------------------------------- orders of the end */

/* Stream, events, graph and memory go in every order while a replay is on its way. */
static void destroy_in(rondo_test *t, const int *order, int64_t delay) {
    aclrtStream s = acl_stream(t);
    aclrtEvent event = acl_event(t), after = acl_event(t);
    void *cell = acl_cell(t, 0), *scratch = acl_memory(t, 64);
    aclrtFuncHandle add = acl_function(t, "add"), sleep = acl_function(t, "sleep");
    acl_begin(t, s);
    A_OK(t, acl_launch(sleep, s, scratch, delay));
    A_OK(t, aclrtRecordEvent(event, s));
    A_OK(t, acl_launch(add, s, cell, 1));
    aclmdlRI model = acl_end(t, s);
    A_OK(t, aclmdlRIExecuteAsync(model, s));
    A_OK(t, aclrtRecordEvent(after, s));
    for (int i = 0; i < 4; i++) {
        switch (order[i]) {
        case 0: A_OK(t, aclrtDestroyStream(s)); break;
        case 1:
            A_OK(t, aclrtDestroyEvent(event));
            A_OK(t, aclrtDestroyEvent(after));
            break;
        case 2: A_OK(t, aclmdlRIDestroy(model)); break;
        default: A_OK(t, aclrtFreeWithDevSync(scratch)); /* the one way to free what work still uses */
        }
    }
    A_OK(t, aclrtSynchronizeDevice());
    T_EQ(t, acl_read(t, cell), 1);
    A_OK(t, aclrtFree(cell));
}

static void test_destroyed_in_every_order(rondo_test *t) {
    A_OPEN(t);
    uint64_t before[EVERYTHING];
    (void)acl_function(t, "add");
    now_alive(t, before);
    for (int code = 0; code < 256; code++) {
        int order[4], seen = 0;
        for (int i = 0; i < 4; i++) {
            order[i] = code >> (2 * i) & 3;
            seen |= 1 << order[i];
        }
        if (seen != 15) continue;
        destroy_in(t, order, 0);
        destroy_in(t, order, 2000);
        want_alive(t, before, "destroying in another order");
    }
}

/* Memory that goes under a graph: the next run says so, by task and address, and the stream works again afterwards. */
static void test_freed_under_a_graph(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t);
    void *cell = acl_cell(t, 0), *pinned = NULL;
    A_OK(t, aclrtMallocHost(&pinned, 8));
    for (int way = 0; way < 3; way++) {
        void *gone = acl_cell(t, 0);
        acl_begin(t, s);
        A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 1));
        if (way == 0) A_OK(t, acl_launch(acl_function(t, "add"), s, gone, 1));
        if (way == 1) A_OK(t, aclrtMemcpyAsync(pinned, 8, gone, 8, ACL_MEMCPY_DEVICE_TO_HOST, s));
        if (way == 2) A_OK(t, aclrtMemsetAsync(gone, 8, 0, 8, s));
        aclmdlRI model = acl_end(t, s);
        A_OK(t, aclmdlRIExecuteAsync(model, s));
        A_OK(t, aclrtSynchronizeStream(s));
        A_OK(t, aclrtFree(gone));
        A_OK(t, aclmdlRIExecuteAsync(model, s));
        A_IS(t, aclrtSynchronizeStream(s), 507015);
        T_TRUE(t, strstr(aclGetRecentErrMsg(), "task 2: ") != NULL);
        A_OK(t, aclmdlRIDestroy(model));
    }
    T_EQ(t, acl_read(t, cell), 3); /* a run that is refused does nothing */
}

/* A device that is reset takes all with it, also while work is on its way. */
static void test_reset(rondo_test *t) {
    A_OPEN(t);
    for (int i = 0; i < 10; i++) {
        aclrtStream s = acl_stream(t);
        void *cell = acl_cell(t, 0);
        acl_begin(t, s);
        A_OK(t, acl_launch(acl_function(t, "sleep"), s, cell, 500));
        aclmdlRI model = acl_end(t, s);
        A_OK(t, aclmdlRIExecuteAsync(model, s));
        if (i % 2) acl_begin(t, acl_stream(t)); /* and while something captures */
        A_OK(t, aclrtResetDevice(0));
        for (int k = 0; k < EVERYTHING; k++)
            if (strcmp(counted[k], "host") && strcmp(counted[k], "blocks"))
                T_EQ(t, acl_control(t)->alive(counted[k]), 0);
        A_OK(t, aclrtSetDevice(0));
    }
}

/* ----------------------------------------------------------------------------------------------------------- soak */

static void soak_round(rondo_test *t, aclrtStream s, aclrtStream side, const aclrtEvent *e, void *cell, void *pinned) {
    aclrtFuncHandle add = acl_function(t, "add"), set = acl_function(t, "set");
    uint64_t draw = rondo_test_random(t);
    int64_t value = (int64_t)(draw % 1000), want = value;
    acl_begin(t, s);
    A_OK(t, acl_launch(set, s, cell, value));
    if (draw & 1024) {
        A_OK(t, aclrtRecordEvent(e[0], s));
        A_OK(t, aclrtStreamWaitEvent(side, e[0]));
        A_OK(t, acl_launch(add, side, cell, 1000));
        A_OK(t, aclrtRecordEvent(e[1], side));
        A_OK(t, aclrtStreamWaitEvent(s, e[1]));
        want += 1000;
    }
    if (draw & 2048) {
        A_OK(t, acl_launch(add, s, cell, 7));
        want += 7;
    }
    A_OK(t, aclrtMemcpyAsync(pinned, 8, cell, 8, ACL_MEMCPY_DEVICE_TO_HOST, s));
    aclmdlRI model = acl_end(t, s);
    A_OK(t, aclmdlRIExecuteAsync(model, draw & 4096 ? side : s));
    A_OK(t, aclrtSynchronizeStream(draw & 4096 ? side : s));
    T_EQ(t, *(int64_t *)pinned, want);
    A_OK(t, aclmdlRIDestroy(model));
}

/* RONDO_ACL_SOAK rounds (200,000 in the long form), under random delays: values are right, and nothing grows. */
static void test_soak(rondo_test *t) {
    const char *text = getenv("RONDO_ACL_SOAK");
    long rounds = text && *text ? strtol(text, NULL, 10) : 2000;
    A_OPEN(t);
    uint64_t before[EVERYTHING];
    aclrtStream s = acl_stream(t), side = acl_stream(t);
    aclrtEvent events[2] = {acl_event(t), acl_event(t)};
    void *cell = acl_cell(t, 0), *pinned = NULL;
    A_OK(t, aclrtMallocHost(&pinned, 8));
    T_EQ(t, acl_control(t)->set("DELAY", 3), 0);
    soak_round(t, s, side, events, cell, pinned);
    now_alive(t, before);
    for (long i = 0; i < rounds; i++) soak_round(t, s, side, events, cell, pinned);
    want_alive(t, before, "the soak");
}

RONDO_TEST_MAIN(T_PLAIN(test_streams_run_out), T_PLAIN(test_cascade), T_PLAIN(test_events_and_notifies_run_out),
                T_PLAIN(test_allocations_of_a_capture_fail), T_PLAIN(test_a_run_without_memory),
                T_PLAIN(test_allocations_fail), T_PLAIN(test_calls_fail), T_PLAIN(test_an_end_that_is_told_to_fail),
                T_PLAIN(test_destroyed_in_every_order), T_PLAIN(test_freed_under_a_graph), T_PLAIN(test_reset),
                T_PLAIN(test_soak))
