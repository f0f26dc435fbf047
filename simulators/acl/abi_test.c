/* SPDX-License-Identifier: Apache-2.0
 *
 * The sizes, offsets and numbers that programs have compiled in. */
#include "acl_testing.h"

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field)
SIZE(aclError, 4);
SIZE(aclrtMemLocation, 8);
SIZE(aclrtPtrAttributes, 28);
AT(aclrtPtrAttributes, pageSize, 8);
AT(aclrtPtrAttributes, rsv, 12);
SIZE(aclrtMallocAttribute, 12);
SIZE(aclrtMallocConfig, 16);
SIZE(aclrtLaunchKernelAttr, 20);
SIZE(aclrtLaunchKernelAttrValue, 16);
SIZE(aclrtLaunchKernelCfg, 16);
SIZE(aclrtPlaceHolderInfo, 8);
SIZE(aclrtStreamConfigHandle, 32);
SIZE(aclmdlRITaskParams, 200);
AT(aclmdlRITaskParams, rsv0, 4);
AT(aclmdlRITaskParams, taskGrp, 16);
AT(aclmdlRITaskParams, opInfoPtr, 24);
AT(aclmdlRITaskParams, opInfoSize, 32);
AT(aclmdlRITaskParams, rsv1, 40);
AT(aclmdlRITaskParams, kernelTaskParams, 72);
SIZE(aclmdlRIKernelTaskParams, 88);
AT(aclmdlRIKernelTaskParams, cfg, 8);
AT(aclmdlRIKernelTaskParams, args, 16);
AT(aclmdlRIKernelTaskParams, isHostArgs, 24);
AT(aclmdlRIKernelTaskParams, argsSize, 32);
AT(aclmdlRIKernelTaskParams, numBlocks, 40);
AT(aclmdlRIKernelTaskParams, rsv, 44);
SIZE(aclmdlRIEventRecordTaskParams, 16);
SIZE(aclmdlRIEventWaitTaskParams, 16);
SIZE(aclmdlRIEventResetTaskParams, 16);
AT(aclmdlRIEventRecordTaskParams, eventFlag, 8);
AT(aclmdlRIEventRecordTaskParams, eventRecordFlag, 12);
SIZE(aclmdlRIValueWriteTaskParams, 16);
SIZE(aclmdlRIValueWaitTaskParams, 24);
AT(aclmdlRIValueWaitTaskParams, flag, 16);
SIZE(aclmdlRICondTaskParams, 24);
AT(aclmdlRICondTaskParams, type, 8);
AT(aclmdlRICondTaskParams, size, 12);
AT(aclmdlRICondTaskParams, modelRIArray, 16);
SIZE(aclrtIpcEventHandle, 64);

static void test_numbers(rondo_test *t) {
    T_EQ(t, ACL_MEMCPY_DEVICE_TO_DEVICE, 3);
    T_EQ(t, ACL_MEM_MALLOC_NORMAL_ONLY, 2);
    T_EQ(t, ACL_EVENT_EXTERNAL, 0x20);
    T_EQ(t, ACL_EVENT_RECORDED_STATUS_COMPLETE, 1);
    T_EQ(t, ACL_EVENT_STATUS_COMPLETE, 0); /* the old one is the other way round */
    T_EQ(t, ACL_MODEL_RI_CAPTURE_MODE_RELAXED, 2);
    T_EQ(t, ACL_MODEL_RI_TASK_VALUE_WAIT, 6);
    T_EQ(t, ACL_MODEL_RI_COND_TYPE_IF, 0);
    T_EQ(t, ACL_MODEL_RI_COND_TYPE_WHILE, 1);
    T_EQ(t, ACL_MODEL_RI_COND_TYPE_SWITCH, 2);
    T_EQ(t, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, 1);
    T_EQ(t, ACL_BF16, 27);
    T_EQ(t, ACL_ERROR_RT_STREAM_CAPTURED, 107027);
    T_EQ(t, ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, 507903);
    T_EQ(t, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, 207000);
}

static void test_refused(rondo_test *t) {
    uint32_t id = 0;
    A_OPEN(t);
    A_IS(t, aclrtUnmapMem(&id), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    A_IS(t, aclrtMemsetD32(&id, 4, 1, 1), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    A_IS(t, aclrtReleaseMemAddress(&id), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    A_IS(t, aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    A_IS(t, aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    A_OK(t, aclrtGetLastError(ACL_RT_THREAD_LEVEL));
    const char *text = aclGetRecentErrMsg();
    T_TRUE(t, text && strstr(text, "aclrtReleaseMemAddress failed. Reason: "));
    T_TRUE(t, strstr(strstr(text, "aclrtMemsetD32"), "aclrtUnmapMem") != NULL); /* newest first */
    T_TRUE(t, aclGetRecentErrMsg() == NULL);
}

static void *other_thread(void *argument) {
    const char **text = argument;
    *text = aclGetRecentErrMsg();
    return NULL;
}

static void test_errors_are_a_threads_own(rondo_test *t) {
    pthread_t thread;
    const char *theirs = "";
    A_OPEN(t);
    A_IS(t, aclrtFree(NULL), ACL_ERROR_INVALID_PARAM);
    T_EQ(t, pthread_create(&thread, NULL, other_thread, &theirs), 0);
    T_EQ(t, pthread_join(thread, NULL), 0);
    T_TRUE(t, theirs == NULL);
    T_TRUE(t, aclGetRecentErrMsg() != NULL);
}

static void test_init(rondo_test *t) {
    uint64_t left = 9;
    void *memory = NULL;
    T_DEFER(t, acl_close, NULL);
    A_IS(t, aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_UNINITIALIZE);
    A_OK(t, aclInit(NULL));
    A_IS(t, aclInit(NULL), ACL_ERROR_REPEAT_INITIALIZE);
    A_OK(t, aclFinalizeReference(&left));
    T_EQ(t, left, 1);
    A_IS(t, aclInit(NULL), ACL_ERROR_REPEAT_INITIALIZE);
    A_OK(t, aclFinalize()); /* all at once */
    A_IS(t, aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
    A_IS(t, aclFinalizeReference(&left), ACL_ERROR_REPEAT_FINALIZE);
    A_OK(t, aclInit(NULL));
}

static void test_versions(rondo_test *t) {
    char text[256] = "";
    int32_t number = 0;
    char runtime[] = "runtime", none[] = "nothing";
    A_OK(t, aclsysGetVersionStr(runtime, text));
    A_OK(t, aclsysGetVersionNum(runtime, &number));
    T_TRUE(t, strstr(text, "simulated") && number > 0);
    A_IS(t, aclsysGetVersionStr(none, text), ACL_ERROR_INVALID_FILE);
    T_TRUE(t, strstr(aclrtGetSocName(), "simulated"));
}

RONDO_TEST_MAIN(T_PLAIN(test_numbers), T_PLAIN(test_refused), T_PLAIN(test_errors_are_a_threads_own),
                T_PLAIN(test_init), T_PLAIN(test_versions))
