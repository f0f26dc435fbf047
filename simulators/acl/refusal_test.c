/* SPDX-License-Identifier: Apache-2.0
 *
 * What is refused before anything is done: null pointers before all else, sizes beyond all memory, places that are taken; and
 * the words that go with a refusal. */
#include "acl_testing.h"

typedef struct bed {
    aclrtStream s, none;
    aclrtEvent event;
    aclrtFuncHandle add;
    aclmdlRI model;
    aclrtArgsHandle arguments;
    void *cell;
} bed;

/* Each beside at least one other argument that is wrong. */
static void test_null_pointers_come_first(rondo_test *t) {
    A_OPEN(t);
    bed b = {acl_stream(t), (aclrtStream)t, acl_event(t), acl_function(t, "add"), NULL, NULL, acl_cell(t, 0)};
    acl_begin(t, b.s);
    b.model = acl_end(t, b.s);
    A_OK(t, aclrtKernelArgsInit(b.add, &b.arguments));
    aclrtLaunchKernelCfg cfg = {NULL, 1};
    aclmdlRICondTaskParams no_handle = {NULL, (aclmdlRICondTaskType)9, 0, &b.model}, no_array = {t, 9, 0, NULL};
    aclrtParamHandle place = NULL;
    void *buffer = NULL;
    float ms = 0;
    char name[4];
    A_IS(t, aclrtCreateStreamWithConfig(NULL, 99, 0x4000), 100000);
    A_IS(t, aclrtCreateEvent(NULL), 100000);
    A_IS(t, aclrtCreateEventWithFlag(NULL, 0), 100000);
    A_IS(t, aclrtCreateEventExWithFlag(NULL, 0), 100000);
    A_IS(t, aclrtRecordEvent(NULL, b.none), 100000);
    A_IS(t, aclrtRecordEventWithFlag(NULL, b.none, 99), 100000);
    A_IS(t, aclrtResetEvent(NULL, b.none), 100000);
    A_IS(t, aclrtStreamWaitEvent(b.none, NULL), 100000);
    A_IS(t, aclrtStreamWaitEventWithTimeout(b.none, NULL, 0), 100000);
    A_IS(t, aclrtStreamWaitEventWithFlag(b.none, NULL, 1, 99), 100000);
    A_IS(t, aclrtSynchronizeEventWithTimeout(NULL, 0), 100000);
    A_IS(t, aclrtEventElapsedTime(&ms, (aclrtEvent)t, NULL), 100000);
    A_IS(t, aclrtEventElapsedTime(&ms, NULL, (aclrtEvent)t), 100000);
    A_IS(t, aclrtEventGetTimestamp((aclrtEvent)t, NULL), 100000);
    A_IS(t, aclrtMalloc(NULL, 0, (aclrtMemMallocPolicy)99), 100000);
    A_IS(t, aclrtHostRegisterV2(NULL, 0, 0), 100000);
    A_IS(t, aclrtMemcpy(NULL, 0, b.cell, 9, (aclrtMemcpyKind)99), 100000);
    A_IS(t, aclrtMemcpyAsync(NULL, 0, b.cell, 9, (aclrtMemcpyKind)99, b.none), 100000);
    A_IS(t, aclrtMemcpyAsync(b.cell, 0, NULL, 9, (aclrtMemcpyKind)99, b.none), 100000);
    A_IS(t, aclrtMemcpy2d(b.cell, 0, NULL, 0, 9, 9, (aclrtMemcpyKind)99), 100000);
    A_IS(t, aclrtMemcpy2dAsync(NULL, 0, b.cell, 0, 9, 9, (aclrtMemcpyKind)99, b.none), 100000);
    A_IS(t, aclrtMemset(NULL, 0, 0, 9), 100000);
    A_IS(t, aclrtMemsetAsync(NULL, 0, 0, 9, b.none), 100000);
    A_IS(t, aclrtValueWrite(NULL, 0, 9, b.none), 100000);
    A_IS(t, aclrtValueWait(NULL, 0, 9, b.none), 100000);
    A_IS(t, aclrtGetMemInfo((aclrtMemAttr)99, NULL, NULL), 100000);
    A_IS(t, aclrtBinaryGetFunction((aclrtBinHandle)t, "add", NULL), 100000);
    A_IS(t, aclrtLaunchKernel(NULL, 0, NULL, 0, b.none), 100000);
    A_IS(t, aclrtLaunchKernel((aclrtFuncHandle)t, 0, NULL, 8, b.none), 100000);
    A_IS(t, aclrtLaunchKernelV2(b.add, 0, b.cell, 8, &cfg, b.none), 100000);
    A_IS(t, aclrtLaunchKernelWithHostArgs((aclrtFuncHandle)t, 0, b.none, NULL, NULL, 8, NULL, 0), 100000);
    A_IS(t, aclrtLaunchKernelWithHostArgs((aclrtFuncHandle)t, 0, b.none, NULL, b.cell, 8, NULL, 1), 100000);
    A_IS(t, aclrtLaunchKernelWithHostArgs(b.add, 1, b.s, &cfg, &b, 8, NULL, 0), 100000);
    A_IS(t, aclrtLaunchKernelWithArgsArray((void *)t, 0, b.none, NULL, NULL), 100000);
    A_IS(t, aclrtLaunchKernelWithArgsArray(b.add, 1, b.none, NULL, (void *[]){&ms, NULL}), 100000);
    A_IS(t, aclrtLaunchKernelWithConfig(NULL, 0, b.none, NULL, (aclrtArgsHandle)t, NULL), 100000);
    A_IS(t, aclrtLaunchKernelWithConfig((aclrtFuncHandle)t, 0, b.none, NULL, NULL, NULL), 100000);
    A_IS(t, aclrtKernelArgsAppend(b.arguments, NULL, 0, &place), 100000);
    A_IS(t, aclrtKernelArgsAppend(b.arguments, &ms, 0, &place), 107000);
    A_IS(t, aclrtKernelArgsGetPlaceHolderBuffer((aclrtArgsHandle)t, NULL, 0, &buffer), 100000);
    A_IS(t, aclrtKernelArgsParaUpdate((aclrtArgsHandle)t, NULL, &ms, 0), 100000);
    A_IS(t, aclrtLaunchHostFunc(b.none, NULL, NULL), 100000);
    A_IS(t, aclrtLaunchCallback(NULL, NULL, (aclrtCallbackBlockType)9, b.none), 100000);
    A_IS(t, aclmdlRICaptureBegin(NULL, (aclmdlRICaptureMode)9), 100000);
    A_IS(t, aclmdlRICaptureToModelRIBegin(b.none, NULL, (aclmdlRICaptureMode)9), 100000);
    A_IS(t, aclmdlRICaptureGetInfo(b.none, NULL, NULL), 100000);
    A_IS(t, aclmdlRIExecuteAsync(NULL, b.none), 100000);
    A_IS(t, aclmdlRIExecute(NULL, 0), 100000);
    A_IS(t, aclmdlRIDebugJsonPrint(NULL, "/none/none", 9), 100000);
    A_IS(t, aclmdlRICaptureTaskGrpEnd(b.none, NULL), 100000);
    A_IS(t, aclmdlRICaptureTaskUpdateBegin(b.none, NULL), 100000);
    A_IS(t, aclmdlRIGetName(NULL, 0, name), 100000);
    A_IS(t, aclmdlRIBuildBegin(NULL, 9), 100000);
    A_IS(t, aclmdlRIBindStream(NULL, b.none, 9), 100000);
    A_IS(t, aclmdlRIEndTask(NULL, b.none), 100000);
    A_IS(t, aclmdlRIUnbindStream(NULL, b.none), 100000);
    A_IS(t, aclmdlRICondHandleCreate(b.model, 0, (aclmdlRICondHandleFlag)9, NULL), 100000);
    A_IS(t, aclmdlRIAddCondTask(no_handle, b.none, 9), 100000);
    A_IS(t, aclmdlRIAddCondTask(no_array, b.none, 9), 100000);
    A_IS(t, aclmdlRITaskSetParams((aclmdlRITask)t, NULL), 100000);
}

/* Rows and sizes whose product or end does not fit into an address. */
static void test_sizes_beyond_all_memory(rondo_test *t) {
    A_OPEN(t);
    void *cell = acl_memory(t, 64), *pinned = NULL, *more = NULL;
    aclrtStream s = acl_stream(t);
    A_OK(t, aclrtMallocHost(&pinned, 64));
    static const struct {
        size_t to_pitch, from_pitch, height;
    } rows[] = {{(size_t)1 << 63, (size_t)1 << 63, 3},
                {(size_t)1 << 63, 8, 3},
                {8, (size_t)1 << 63, 3},
                {(size_t)1 << 62, 8, 5},
                {8, 8, ((size_t)1 << 61) + 1},
                {8, 8, SIZE_MAX},
                {SIZE_MAX, SIZE_MAX, 2},
                {8, SIZE_MAX / 2, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        A_IS(t, aclrtMemcpy2d(cell, rows[i].to_pitch, pinned, rows[i].from_pitch, 8, rows[i].height, 1), 107000);
        A_IS(t, aclrtMemcpy2dAsync(cell, rows[i].to_pitch, pinned, rows[i].from_pitch, 8, rows[i].height, 1, s),
             107000);
    }
    A_IS(t, aclrtMemcpy(cell, SIZE_MAX, pinned, SIZE_MAX, ACL_MEMCPY_HOST_TO_DEVICE), 107000);
    A_IS(t, aclrtMemset(cell, SIZE_MAX, 0, SIZE_MAX), 107000);
    A_IS(t, aclrtMalloc(&more, SIZE_MAX / 2, ACL_MEM_MALLOC_HUGE_FIRST), 207001);
    A_IS(t, aclrtMalloc(&more, SIZE_MAX, ACL_MEM_MALLOC_HUGE_FIRST), 207001);
    A_IS(t, aclrtHostRegisterV2(t, SIZE_MAX, 0), 107000);
    T_TRUE(t, strstr(aclGetRecentErrMsg(), "reach beyond all memory"));
}

/* A range is registered when no byte of it is anything yet. */
static void test_registered_ranges(rondo_test *t) {
    A_OPEN(t);
    char *p = malloc(4096);
    void *pinned = NULL;
    T_DEFER(t, free, p);
    A_OK(t, aclrtMallocHost(&pinned, 4096));
    A_OK(t, aclrtHostRegisterV2(p + 1024, 1024, 0));
    A_IS(t, aclrtHostRegisterV2(p, 4096, 0), 107000);        /* around it */
    A_IS(t, aclrtHostRegisterV2(p, 1025, 0), 107000);        /* its beginning */
    A_IS(t, aclrtHostRegisterV2(p + 2047, 64, 0), 107000);   /* its end */
    A_IS(t, aclrtHostRegisterV2(p + 1024, 1024, 0), 107000); /* itself */
    A_IS(t, aclrtHostRegisterV2((char *)pinned - 8, 16, 0), 107000);
    A_OK(t, aclrtHostRegisterV2(p, 1024, 0));
    A_OK(t, aclrtHostRegisterV2(p + 2048, 2048, 0));
    for (int i = 0; i < 3; i++) A_OK(t, aclrtHostUnregister(p + i * 1024));
    A_OK(t, aclrtHostRegisterV2(p, 4096, 0));
    A_OK(t, aclrtHostUnregister(p));
}

/* Nobody fetches them: the oldest ones go, and what is left is whole. */
static void test_messages_that_nobody_fetches(rondo_test *t) {
    A_OPEN(t);
    void *memory = NULL;
    char path[300];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = 0;
    for (int i = 0; i < 1000; i++) {
        A_IS(t, i % 3 ? aclrtFree(NULL) : aclrtBinaryLoadFromFile(path, NULL, &memory), i % 3 ? 100000 : 100003);
        if (i % 7) continue;
        A_IS(t, aclrtMalloc(&memory, 0, ACL_MEM_MALLOC_HUGE_FIRST), 107000);
        if (i % 245 && i < 700) continue;
        const char *text = aclGetRecentErrMsg();
        size_t length = strlen(text);
        T_TRUE(t, strncmp(text, "EE1001: aclrtMalloc failed. Reason: 0 bytes are none (error 107000)", 67) == 0);
        T_TRUE(t, strcmp(text + length - 12, "call last):\n") == 0 && length <= 16384);
        T_TRUE(t, aclGetRecentErrMsg() == NULL);
    }
    for (int i = 0; i < 1000; i++) A_IS(t, aclrtFree(NULL), 100000);
    size_t messages = 0;
    for (const char *at = aclGetRecentErrMsg(); at && *at; messages++) {
        T_TRUE(t, strncmp(at, "EE1001: aclrtFree", 17) == 0);
        at = strstr(at, "call last):\n");
        at += 12;
    }
    T_TRUE(t, messages > 100); /* as many as there is room for */
}

/* Flags and values that there are not, and null at the end of a capture. */
static void test_flags_that_there_are_not(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t);
    aclrtEvent event = acl_event(t);
    aclrtStreamAttrValue mode = {.failureMode = 99};
    A_IS(t, aclrtStreamWaitEventWithFlag(s, event, 0, 9), 100000);
    A_IS(t, aclrtStreamWaitEventWithFlag(s, event, 5, ACL_EVENT_WAIT_EXTERNAL), 100000);
    A_IS(t, aclrtRecordEventWithFlag(event, s, 9), 100000);
    A_IS(t, aclrtSetStreamFailureMode(s, 99), 107000);
    A_IS(t, aclrtSetStreamAttribute(s, ACL_STREAM_ATTR_FAILURE_MODE, &mode), 107000);
    A_OK(t, aclrtGetStreamAttribute(s, ACL_STREAM_ATTR_FAILURE_MODE, &mode));
    T_EQ(t, mode.failureMode, ACL_CONTINUE_ON_FAILURE);
    A_IS(t, aclmdlRICaptureEnd(s, NULL), 100000);
    A_IS(t, aclmdlRICaptureEnd((aclrtStream)t, NULL), 100000);
    acl_begin(t, s);
    A_IS(t, aclmdlRICaptureEnd(s, NULL), 100000);
    T_EQ(t, acl_status(t, s), ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
    A_OK(t, aclmdlRIDestroy(acl_end(t, s)));
}

RONDO_TEST_MAIN(T_PLAIN(test_null_pointers_come_first), T_PLAIN(test_flags_that_there_are_not),
                T_PLAIN(test_sizes_beyond_all_memory), T_PLAIN(test_registered_ranges),
                T_PLAIN(test_messages_that_nobody_fetches))
