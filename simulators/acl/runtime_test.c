/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices, streams, events, memory, kernels, host functions: outside of captures. */
#include "acl_testing.h"

static void test_devices(rondo_test *t) {
    A_OPEN(t);
    uint32_t count = 0;
    int32_t device = -1, least = 0, greatest = 9;
    aclrtContext first = NULL, second = NULL, now = NULL;
    aclrtRunMode mode;
    A_OK(t, aclrtGetDeviceCount(&count));
    T_EQ(t, count, 2);
    A_IS(t, aclrtSetDevice(2), 107001);
    A_IS(t, aclrtSetDevice(-1), 107001);
    A_OK(t, aclrtGetDevice(&device));
    T_EQ(t, device, 0);
    A_OK(t, aclrtGetCurrentContext(&first));
    A_IS(t, aclrtDestroyContext(first), 107000);
    A_OK(t, aclrtCreateContext(&second, 1));
    A_OK(t, aclrtGetDevice(&device));
    T_EQ(t, device, 1); /* it became the current one, and with it its device */
    A_OK(t, aclrtSetCurrentContext(first));
    A_OK(t, aclrtGetCurrentContext(&now));
    T_TRUE(t, now == first);
    A_OK(t, aclrtDestroyContext(second));
    A_IS(t, aclrtSetCurrentContext(second), 107017);
    A_OK(t, aclrtGetRunMode(&mode));
    T_EQ(t, mode, ACL_HOST);
    A_OK(t, aclrtDeviceGetStreamPriorityRange(&least, &greatest));
    T_TRUE(t, least > greatest);
    /* Counted. */
    A_OK(t, aclrtSetDevice(0));
    A_OK(t, aclrtResetDevice(0));
    A_OK(t, aclrtSynchronizeDevice());
    A_OK(t, aclrtResetDevice(0));
    A_IS(t, aclrtSynchronizeDevice(), 107002);
    A_IS(t, aclrtGetDevice(&device), 107002);
    A_IS(t, aclrtResetDeviceForce(0), 107001);
}

static void *no_context(void *argument) {
    aclrtStream stream = NULL;
    *(aclError *)argument = aclrtCreateStream(&stream);
    return NULL;
}

static void test_streams(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t), theirs = NULL, persistent = NULL, standard = NULL;
    aclrtContext mine = NULL, other = NULL;
    aclrtStreamStatus status;
    aclError error = 0;
    pthread_t thread;
    void *cell = acl_cell(t, 0);
    T_EQ(t, pthread_create(&thread, NULL, no_context, &error), 0);
    T_EQ(t, pthread_join(thread, NULL), 0);
    T_EQ(t, error, 107002);
    A_OK(t, acl_launch(acl_function(t, "sleep"), s, cell, 20000));
    A_OK(t, aclrtStreamQuery(s, &status));
    T_EQ(t, status, ACL_STREAM_STATUS_NOT_READY);
    A_IS(t, aclrtSynchronizeStreamWithTimeout(s, 1), 507046);
    A_IS(t, aclrtSynchronizeStreamWithTimeout(s, 0), 107000);
    A_IS(t, aclrtSynchronizeStreamWithTimeout(s, -2), 107000);
    A_OK(t, aclrtSynchronizeStreamWithTimeout(s, -1));
    A_OK(t, aclrtStreamQuery(s, &status));
    T_EQ(t, status, ACL_STREAM_STATUS_COMPLETE);
    A_OK(t, aclrtGetCurrentContext(&mine));
    A_OK(t, aclrtCreateContext(&other, 0));
    A_OK(t, aclrtCreateStream(&theirs));
    A_OK(t, aclrtSetCurrentContext(mine));
    A_IS(t, aclrtSynchronizeStream(theirs), 107003);
    A_IS(t, aclrtDestroyStream(theirs), 107003);
    A_OK(t, aclrtCreateStreamWithConfig(&persistent, 0, ACL_STREAM_PERSISTENT));
    A_OK(t, acl_launch(acl_function(t, "sleep"), persistent, cell, 5000));
    A_OK(t, aclrtSynchronizeStream(persistent)); /* does nothing */
    A_OK(t, aclrtStreamQuery(persistent, &status));
    T_EQ(t, status, ACL_STREAM_STATUS_NOT_READY);
    A_OK(t, aclrtCtxGetCurrentDefaultStream(&standard));
    A_IS(t, aclrtDestroyStream(standard), 107000);
    A_IS(t, aclrtDestroyStream(t), 107017);
    A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 3));
    A_OK(t, aclrtDestroyStream(s)); /* waits */
    T_EQ(t, acl_read(t, cell), 3);
    A_IS(t, aclrtSynchronizeStream(s), 107017);
}

static void test_failures(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t);
    void *cell = acl_cell(t, 0);
    aclrtFuncHandle add = acl_function(t, "add"), bad = acl_function(t, "break");
    for (int stop = 0; stop < 2; stop++) {
        A_OK(t, aclrtSetStreamFailureMode(s, (uint64_t)stop));
        A_OK(t, acl_launch(bad, s, cell, 0));
        A_OK(t, acl_launch(add, s, cell, 1));
        A_IS(t, aclrtSynchronizeStream(s), 507015);
        T_TRUE(t, strstr(aclGetRecentErrMsg(), "kernel 'break', block 0 of 1, ended with 3"));
        T_EQ(t, acl_read(t, cell), 1); /* the second time, what comes behind is dropped */
        int64_t back = 8;              /* also a copy that waits for the stream */
        A_OK(t, acl_launch(bad, s, cell, 0));
        A_OK(t, aclrtMemcpyAsync(&back, 8, cell, 8, ACL_MEMCPY_DEVICE_TO_HOST, s));
        A_IS(t, aclrtSynchronizeStream(s), 507015);
        T_EQ(t, back, stop ? 8 : 1);
        A_OK(t, aclrtSynchronizeStream(s));
    }
    A_OK(t, acl_launch(add, s, cell, 1));
    A_OK(t, aclrtSynchronizeStream(s));
    T_EQ(t, acl_read(t, cell), 2);
}

static void test_events(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t), u = acl_stream(t);
    aclrtEvent plain = NULL, flag = NULL, ex = acl_event(t), timed[2] = {NULL};
    aclrtEventRecordedStatus status;
    aclrtEventStatus old;
    aclrtEventWaitStatus waits;
    void *cell = acl_cell(t, 0);
    aclrtFuncHandle sleep = acl_function(t, "sleep"), add = acl_function(t, "add");
    float ms = -1;
    uint32_t id = 0;
    A_OK(t, aclrtCreateEvent(&plain));
    A_OK(t, aclrtCreateEventWithFlag(&flag, ACL_EVENT_SYNC));
    A_OK(t, aclrtQueryEventStatus(ex, &status));
    T_EQ(t, status, ACL_EVENT_RECORDED_STATUS_COMPLETE); /* before its first record */
    A_IS(t, aclrtQueryEvent(ex, &old), 207000);
    A_IS(t, aclrtQueryEventWaitStatus(ex, &waits), 207000);
    A_IS(t, aclrtResetEvent(ex, s), 107000);
    A_IS(t, aclrtResetEvent(plain, s), 107000);
    A_IS(t, aclrtGetEventId(ex, &id), 107000);
    A_OK(t, aclrtGetEventId(flag, &id));
    /* A wait is for the record that was the latest then. */
    A_OK(t, acl_launch(sleep, s, cell, 10000));
    A_OK(t, acl_launch(add, s, cell, 1));
    A_OK(t, aclrtRecordEvent(ex, s));
    A_OK(t, aclrtStreamWaitEvent(u, ex));
    A_OK(t, aclrtQueryEventStatus(ex, &status));
    T_EQ(t, status, ACL_EVENT_RECORDED_STATUS_NOT_READY);
    A_OK(t, acl_launch(add, u, cell, 10));
    A_IS(t, aclrtSynchronizeEventWithTimeout(ex, 1), 507047);
    A_OK(t, aclrtSynchronizeEvent(ex));
    A_OK(t, aclrtSynchronizeStream(u));
    T_EQ(t, acl_read(t, cell), 11);
    A_OK(t, aclrtGetEventId(ex, &id));
    /* A flag is raised, and lowered by hand. */
    A_OK(t, aclrtStreamWaitEvent(u, flag));
    A_IS(t, aclrtSynchronizeStreamWithTimeout(u, 2), 507046);
    A_OK(t, aclrtRecordEvent(flag, s));
    A_OK(t, aclrtSynchronizeStream(u));
    A_OK(t, aclrtQueryEventWaitStatus(flag, &waits));
    T_EQ(t, waits, ACL_EVENT_WAIT_STATUS_COMPLETE);
    A_OK(t, aclrtResetEvent(flag, u));
    A_OK(t, aclrtStreamWaitEventWithTimeout(u, flag, 2));
    A_IS(t, aclrtSynchronizeStream(u), 107019);
    /* Times. */
    for (int i = 0; i < 2; i++) A_OK(t, aclrtCreateEventExWithFlag(&timed[i], ACL_EVENT_TIME_LINE));
    A_IS(t, aclrtEventElapsedTime(&ms, timed[0], timed[1]), 107006);
    A_OK(t, aclrtRecordEvent(timed[0], s));
    A_OK(t, acl_launch(sleep, s, cell, 3000));
    A_OK(t, aclrtRecordEvent(timed[1], s));
    A_IS(t, aclrtEventElapsedTime(&ms, timed[0], timed[1]), 507006);
    A_OK(t, aclrtSynchronizeEvent(timed[1]));
    A_OK(t, aclrtEventElapsedTime(&ms, timed[0], timed[1]));
    T_TRUE(t, ms >= 3.0f);
    A_IS(t, aclrtEventElapsedTime(&ms, timed[1], timed[0]), 107007);
    A_IS(t, aclrtEventElapsedTime(&ms, ex, timed[0]), 107006);
    /* Destroying one that is in use does not wait. */
    A_OK(t, acl_launch(sleep, s, cell, 5000));
    A_OK(t, aclrtRecordEvent(ex, s));
    A_OK(t, aclrtStreamWaitEvent(u, ex));
    A_OK(t, aclrtDestroyEvent(ex));
    A_IS(t, aclrtRecordEvent(ex, s), 107017);
    A_OK(t, aclrtSynchronizeStream(u));
    A_IS(t, aclrtCreateEventWithFlag(&ex, ACL_EVENT_EXTERNAL | ACL_EVENT_SYNC), 107000);
    A_IS(t, aclrtCreateEventExWithFlag(&ex, ACL_EVENT_EXTERNAL), 107000);
}

/* Records of one event on two streams are reached in another order: each wait is for its own. */
static void test_records_overtake(rondo_test *t) {
    A_OPEN(t);
    aclrtStream slow = acl_stream(t), quick = acl_stream(t), waits = acl_stream(t);
    aclrtEvent event = acl_event(t);
    void *cell = acl_cell(t, 0), *seen = acl_cell(t, 0);
    A_OK(t, acl_launch(acl_function(t, "sleep"), slow, cell, 10000));
    A_OK(t, acl_launch(acl_function(t, "set"), slow, cell, 7));
    A_OK(t, aclrtRecordEvent(event, slow));
    A_OK(t, aclrtStreamWaitEvent(waits, event));
    A_OK(t, aclrtRecordEvent(event, quick));
    A_OK(t, aclrtSynchronizeEvent(event)); /* the latest one */
    A_OK(t, aclrtMemcpyAsync(seen, 8, cell, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, waits));
    A_OK(t, aclrtSynchronizeStream(waits));
    T_EQ(t, acl_read(t, seen), 7);
}

/* Who waits for work that was dropped behind a failure fails, too; not any more once the failure was told. */
static void test_failures_travel(rondo_test *t) {
    A_OPEN(t);
    aclrtStream fails = acl_stream(t), waits = acl_stream(t);
    aclrtEvent event = acl_event(t);
    void *cell = acl_cell(t, 0);
    for (int told = 0; told < 2; told++) {
        A_OK(t, aclrtSetStreamFailureMode(fails, ACL_STOP_ON_FAILURE));
        A_OK(t, acl_launch(acl_function(t, "break"), fails, cell, 0));
        A_OK(t, aclrtRecordEvent(event, fails));
        A_OK(t, aclrtSynchronizeEvent(event));
        if (told) A_IS(t, aclrtSynchronizeStream(fails), 507015);
        A_OK(t, aclrtStreamWaitEvent(waits, event));
        A_IS(t, aclrtSynchronizeStream(waits), told ? 0 : 507015);
        if (!told) A_IS(t, aclrtSynchronizeStream(fails), 507015);
    }
}

static void test_memory(rondo_test *t) {
    A_OPEN(t);
    void *p = NULL, *pinned = NULL, *here = acl_memory(t, 100), *freed = acl_memory(t, 100);
    char pageable[64] = "";
    aclrtPtrAttributes about;
    size_t left = 0, all = 0;
    A_IS(t, aclrtMalloc(&p, 0, ACL_MEM_MALLOC_HUGE_FIRST), 107000);
    A_IS(t, aclrtMalloc(NULL, 8, ACL_MEM_MALLOC_HUGE_FIRST), 100000);
    A_IS(t, aclrtMalloc(&p, 8, (aclrtMemMallocPolicy)(ACL_MEM_MALLOC_NORMAL_ONLY | ACL_MEM_TYPE_HIGH_BAND_WIDTH)),
         107000);
    A_IS(t, aclrtMalloc(&p, (size_t)2 << 30, ACL_MEM_MALLOC_HUGE_FIRST), 207001);
    T_EQ(t, (uintptr_t)here % 64, 0);
    A_OK(t, aclrtGetMemInfo(ACL_HBM_MEM, &left, &all));
    T_EQ(t, all - left, 2 * 160); /* each rounded up to 32, and 32 more */
    A_IS(t, aclrtFree(NULL), 100000);
    A_OK(t, aclrtFree(freed));
    A_IS(t, aclrtFree(freed), 107000);
    T_TRUE(t, strstr(aclGetRecentErrMsg(), "was freed before"));
    A_IS(t, aclrtFree((char *)here + 32), 107000);
    A_IS(t, aclrtFree(pageable), 107000);
    A_OK(t, aclrtMallocHost(&pinned, 64));
    A_IS(t, aclrtFree(pinned), 107000);
    A_IS(t, aclrtFreeHost(here), 107000);
    A_OK(t, aclrtSetDevice(1));
    A_IS(t, aclrtFree(here), 107000); /* of another device */
    T_TRUE(t, strstr(aclGetRecentErrMsg(), "memory of device 0, the current one is 1"));
    A_OK(t, aclrtSetDevice(0));
    A_OK(t, aclrtPointerGetAttributes(here, &about));
    T_EQ(t, about.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
    A_OK(t, aclrtPointerGetAttributes(pinned, &about));
    T_EQ(t, about.location.type, ACL_MEM_LOCATION_TYPE_HOST);
    A_OK(t, aclrtPointerGetAttributes(pageable, &about));
    T_EQ(t, about.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    A_OK(t, aclrtHostRegisterV2(pageable, sizeof pageable, 0));
    A_OK(t, aclrtPointerGetAttributes(pageable, &about));
    T_EQ(t, about.location.type, ACL_MEM_LOCATION_TYPE_HOST);
    A_OK(t, aclrtHostUnregister(pageable));
    A_IS(t, aclrtHostUnregister(pageable), 107000);
    /* Who uses what was freed, or more than there is. */
    A_IS(t, aclrtMemcpy(here, 100, freed, 100, ACL_MEMCPY_DEVICE_TO_DEVICE), 107000);
    A_IS(t, aclrtMemsetAsync(freed, 8, 0, 8, NULL), 107000);
    A_IS(t, aclrtMemcpy(here, 1000, pinned, 1000, ACL_MEMCPY_HOST_TO_DEVICE), 107000);
    A_IS(t, aclrtMemcpy(here, 4, pinned, 8, ACL_MEMCPY_HOST_TO_DEVICE), 107000);
    A_OK(t, acl_launch(acl_function(t, "add"), NULL, freed, 1));
    A_IS(t, aclrtSynchronizeStream(NULL), 507015);
    T_TRUE(t, strstr(aclGetRecentErrMsg(), "lies in memory that was freed"));
    A_IS(t, aclrtMemcpyAsync(pinned, 8, pageable, 8, ACL_MEMCPY_HOST_TO_HOST, NULL), 207000);
    A_OK(t, aclrtMemcpyAsync(here, 8, here, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
}

/* Pageable memory makes a copy wait for the stream; pinned memory is read when the copy's turn comes. */
static void test_copies(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t);
    void *cell = acl_cell(t, 0), *pinned = NULL;
    int64_t value = 5, back = 0;
    A_OK(t, aclrtMallocHost(&pinned, 8));
    memcpy(pinned, &value, 8);
    A_OK(t, acl_launch(acl_function(t, "sleep"), s, cell, 5000));
    A_OK(t, aclrtMemcpyAsync(cell, 8, pinned, 8, ACL_MEMCPY_HOST_TO_DEVICE, s));
    value = 6;
    memcpy(pinned, &value, 8);
    A_OK(t, aclrtMemcpyAsync(&back, 8, cell, 8, ACL_MEMCPY_DEVICE_TO_HOST, s));
    T_EQ(t, back, 6);
    char grid[4][8];
    void *rows = acl_memory(t, 64);
    A_OK(t, aclrtMemset(rows, 64, 'a', 64));
    A_OK(t, aclrtMemset(rows, 64, 'b', 10));
    memset(grid, '.', sizeof grid);
    A_OK(t, aclrtMemcpy2d(grid, 8, rows, 4, 4, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    T_TRUE(t, memcmp(grid, "bbbb....bbbb....bbaa....aaaa....", 32) == 0);
    A_IS(t, aclrtMemcpy2d(grid, 2, rows, 4, 4, 4, ACL_MEMCPY_DEVICE_TO_HOST), 107000);
    A_OK(t, aclrtValueWait(cell, 9, ACL_VALUE_WAIT_EQ, s));
    A_IS(t, aclrtSynchronizeStreamWithTimeout(s, 2), 507046);
    A_OK(t, aclrtValueWrite(cell, 9, 0, NULL));
    A_OK(t, aclrtSynchronizeStream(s));
    A_IS(t, aclrtValueWrite((char *)cell + 4, 9, 0, NULL), 107008);
}

static int32_t sum_blocks(const aclsim_launch *launch) {
    int64_t *const *out = launch->arguments;
    (*out)[launch->block] = launch->blocks;
    return 0;
}

static int32_t follow(const aclsim_launch *launch) {
    const struct {
        int64_t *out;
        const int64_t *table; /* filled in by a placeholder */
        int64_t values[2];
    } *a = launch->arguments;
    *a->out = a->table[0] + a->table[1];
    return 0;
}

static void test_kernels(rondo_test *t) {
    A_OPEN(t);
    static const aclsim_kernel kernels[] = {{"blocks", sum_blocks, ACLSIM_VECTOR, 1},
                                            {"follow", follow, ACLSIM_CUBE, 0}};
    aclsim_image image = {ACLSIM_MAGIC, 2, kernels};
    aclrtBinHandle binary = NULL;
    aclrtFuncHandle blocks = NULL, table = NULL, none = NULL, add = acl_function(t, "add");
    void *out = acl_memory(t, 64), *cell = acl_cell(t, 0), *words = NULL;
    int64_t back[4] = {0};
    A_IS(t, aclrtBinaryLoadFromData("an elf", 6, NULL, &binary), 107000);
    A_IS(t, aclrtBinaryLoadFromFile("/nothing.o", NULL, &binary), 100003);
    A_OK(t, aclrtBinaryLoadFromData(&image, sizeof image, NULL, &binary));
    A_IS(t, aclrtBinaryGetFunction(binary, "nothing", &none), 507027);
    A_OK(t, aclrtBinaryGetFunction(binary, "blocks", &blocks));
    A_OK(t, aclrtBinaryGetFunction(binary, "follow", &table));
    /* Arguments in device memory, as an array, with placeholders, one by one. */
    words = acl_memory(t, 8);
    A_OK(t, aclrtMemcpy(words, 8, &out, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    A_OK(t, aclrtLaunchKernel(blocks, 3, words, 8, NULL));
    A_OK(t, aclrtSynchronizeStream(NULL));
    A_OK(t, aclrtMemcpy(back, 32, out, 32, ACL_MEMCPY_DEVICE_TO_HOST));
    T_TRUE(t, back[0] == 3 && back[1] == 3 && back[2] == 3 && back[3] != 3);
    A_IS(t, aclrtLaunchKernel(blocks, 3, &out, 8, NULL), 107000);
    A_IS(t, aclrtLaunchKernel(blocks, 0, words, 8, NULL), 107000);
    int64_t n = 4;
    void *array[] = {&cell, &n};
    A_OK(t, aclrtLaunchKernelWithArgsArray(add, 1, NULL, NULL, array));
    struct {
        void *out;
        uint64_t table;
        int64_t values[2];
    } host = {cell, 0, {20, 22}};
    aclrtPlaceHolderInfo place = {8, 16};
    A_OK(t, aclrtSynchronizeStream(NULL));
    T_EQ(t, acl_read(t, cell), 4);
    A_OK(t, aclrtLaunchKernelWithHostArgs(table, 1, NULL, NULL, &host, sizeof host, &place, 1));
    A_OK(t, aclrtSynchronizeStream(NULL));
    T_EQ(t, acl_read(t, cell), 42);
    aclrtArgsHandle arguments = NULL;
    aclrtParamHandle param = NULL, second = NULL;
    void *buffer = NULL;
    A_OK(t, aclrtKernelArgsInit(table, &arguments));
    A_OK(t, aclrtKernelArgsAppend(arguments, &cell, 8, &param));
    A_OK(t, aclrtKernelArgsAppendPlaceHolder(arguments, &second));
    A_OK(t, aclrtKernelArgsGetPlaceHolderBuffer(arguments, second, 16, &buffer));
    memcpy(buffer, (int64_t[]){1, 2}, 16);
    A_OK(t, aclrtKernelArgsParaUpdate(arguments, param, &cell, 8));
    A_IS(t, aclrtLaunchKernelWithConfig(table, 1, NULL, NULL, arguments, NULL), 107000);
    A_OK(t, aclrtKernelArgsFinalize(arguments));
    A_OK(t, aclrtLaunchKernelWithConfig(table, 1, NULL, NULL, arguments, NULL));
    A_OK(t, aclrtSynchronizeStream(NULL));
    T_EQ(t, acl_read(t, cell), 3);
    A_OK(t, aclrtBinaryUnLoad(binary));
    A_IS(t, aclrtLaunchKernel(blocks, 1, words, 8, NULL), 107017);
}

static void slow_count(void *argument) {
    (void)usleep(2000);
    ++*(int *)argument;
}

static void *report(void *argument) {
    (void)argument;
    for (int i = 0; i < 2; i++) (void)aclrtProcessReport(1000);
    return NULL;
}

static void test_host_functions(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t);
    int count = 0;
    pthread_t thread;
    for (int i = 0; i < 3; i++) A_OK(t, aclrtLaunchHostFunc(s, slow_count, &count));
    A_OK(t, aclrtSynchronizeStream(s));
    T_EQ(t, count, 3);
    A_IS(t, aclrtLaunchCallback(slow_count, &count, ACL_CALLBACK_BLOCK, s), 107015);
    T_EQ(t, pthread_create(&thread, NULL, report, NULL), 0);
    A_OK(t, aclrtSubscribeReport((uint64_t)thread, s));
    A_IS(t, aclrtSubscribeReport((uint64_t)thread, s), 107011);
    A_OK(t, aclrtLaunchCallback(slow_count, &count, ACL_CALLBACK_BLOCK, s));
    A_OK(t, aclrtSynchronizeStream(s));
    T_EQ(t, count, 4); /* the stream waited for it */
    A_OK(t, aclrtLaunchCallback(slow_count, &count, ACL_CALLBACK_NO_BLOCK, s));
    T_EQ(t, pthread_join(thread, NULL), 0);
    T_EQ(t, count, 5);
    A_OK(t, aclrtUnSubscribeReport((uint64_t)thread, s));
    A_IS(t, aclrtUnSubscribeReport((uint64_t)thread, s), 107012);
    A_IS(t, aclrtProcessReport(1), 507012);
    /* In a graph: run at each replay. */
    acl_begin(t, s);
    A_OK(t, aclrtLaunchHostFunc(s, slow_count, &count));
    aclmdlRI model = acl_end(t, s);
    for (int i = 0; i < 2; i++) A_OK(t, aclmdlRIExecuteAsync(model, s));
    A_OK(t, aclrtSynchronizeStream(s));
    T_EQ(t, count, 7);
}

/* A wait for a value sees what a call of the host puts there, however long it has waited. */
static void test_value_that_the_host_writes(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t);
    uint64_t *cell = acl_cell(t, 0), *pinned = NULL;
    A_OK(t, aclrtMallocHost((void **)&pinned, 8));
    *pinned = 2;
    A_OK(t, aclrtValueWait(cell, 1, ACL_VALUE_WAIT_EQ, s));
    (void)usleep(20000);
    A_OK(t, aclrtMemset(cell, 8, 1, 1));
    A_OK(t, aclrtSynchronizeStreamWithTimeout(s, 10000));
    A_OK(t, aclrtValueWait(cell, 2, ACL_VALUE_WAIT_EQ, s));
    (void)usleep(20000);
    A_OK(t, aclrtMemcpy(cell, 8, pinned, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    A_OK(t, aclrtSynchronizeStreamWithTimeout(s, 10000));
    A_OK(t, aclrtFreeHost(pinned));
}

RONDO_TEST_MAIN(T_PLAIN(test_value_that_the_host_writes), T_PLAIN(test_devices), T_PLAIN(test_streams),
                T_PLAIN(test_failures), T_PLAIN(test_events), T_PLAIN(test_records_overtake),
                T_PLAIN(test_failures_travel), T_PLAIN(test_memory), T_PLAIN(test_copies), T_PLAIN(test_kernels),
                T_PLAIN(test_host_functions))
