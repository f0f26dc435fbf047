/* SPDX-License-Identifier: Apache-2.0
 *
 * Which calls a capture forbids to whom: every row of the decision, by the call that it is about. */
#include "acl_testing.h"

/* The rule, written down anew: -1 is no capture. */
static bool mode_allowed(int context, int thread, int exchange) {
    switch (exchange) {
    case 2: return true;
    case 0: return context == -1 || !(context == 0 || thread == 1);
    default: return context == -1 || !(thread == 0 || thread == 1);
    }
}

typedef struct mode_caller {
    void *device, *host;
    aclrtStream stream;
    aclrtContext context;
    aclmdlRICaptureMode exchange;
    int copy, fill, async, copy2d, async2d, allocate;
} mode_caller;

static void mode_call(mode_caller *c) {
    char pageable[16];
    void *more = NULL;
    aclmdlRICaptureMode mode = c->exchange;
    (void)aclmdlRICaptureThreadExchangeMode(&mode);
    c->copy = aclrtMemcpy(c->device, 8, c->host, 8, ACL_MEMCPY_HOST_TO_DEVICE);
    c->copy2d = aclrtMemcpy2d(c->device, 8, c->host, 8, 4, 2, ACL_MEMCPY_HOST_TO_DEVICE);
    c->fill = aclrtMemset(c->device, 8, 0, 8);
    c->async = aclrtMemcpyAsync(pageable, 8, c->device, 8, ACL_MEMCPY_DEVICE_TO_HOST, c->stream);
    c->async2d = aclrtMemcpy2dAsync(pageable, 8, c->device, 8, 4, 2, ACL_MEMCPY_DEVICE_TO_HOST, c->stream);
    c->allocate = aclrtMalloc(&more, 8, ACL_MEM_MALLOC_HUGE_FIRST);
    if (more) (void)aclrtFree(more);
    (void)aclmdlRICaptureThreadExchangeMode(&mode);
}

static void *mode_thread(void *argument) {
    mode_caller *c = argument;
    if (aclrtSetCurrentContext(c->context) == ACL_SUCCESS) mode_call(c);
    return NULL;
}

static void mode_check(rondo_test *t, const mode_caller *c, int context, int thread) {
    bool allowed = mode_allowed(context, thread, (int)c->exchange);
    int sync = allowed ? 0 : 107030, async = allowed ? 0 : 107041;
    if (c->copy != sync || c->copy2d != sync || c->fill != sync || c->async != async || c->async2d != async)
        rondo_test_fail(t, __FILE__, __LINE__, "context %d, thread %d, own mode %d: %d %d %d %d %d, not %d and %d",
                        context, thread, (int)c->exchange, c->copy, c->copy2d, c->fill, c->async, c->async2d, sync,
                        async);
    T_EQ(t, c->allocate, 0); /* is no unsafe call */
}

/* One capture of each mode or none, asked by its own thread and by another, in each mode of theirs. */
static void test_table(rondo_test *t) {
    mode_caller c = {0};
    A_OPEN(t);
    aclrtStream captured = acl_stream(t);
    c.device = acl_memory(t, 64);
    A_OK(t, aclrtMallocHost(&c.host, 64));
    memset(c.host, 0, 64);
    c.stream = acl_stream(t);
    A_OK(t, aclrtGetCurrentContext(&c.context));
    for (int mode = -1; mode <= 2; mode++) {
        aclmdlRI model = NULL;
        if (mode >= 0) A_OK(t, aclmdlRICaptureBegin(captured, (aclmdlRICaptureMode)mode));
        for (int exchange = 0; exchange <= 2; exchange++) {
            c.exchange = (aclmdlRICaptureMode)exchange;
            mode_call(&c);
            mode_check(t, &c, mode, mode);
            pthread_t thread;
            T_EQ(t, pthread_create(&thread, NULL, mode_thread, &c), 0);
            T_EQ(t, pthread_join(thread, NULL), 0);
            mode_check(t, &c, mode, -1);
        }
        if (mode >= 0) A_OK(t, aclmdlRICaptureEnd(captured, &model)); /* nothing of it broke the capture */
    }
}

/* Two captures: the strictest one counts, and a thread's own is apart from the context's. */
static void test_two_captures(rondo_test *t) {
    mode_caller c = {0};
    A_OPEN(t);
    aclrtStream first = acl_stream(t), second = acl_stream(t);
    c.device = acl_memory(t, 64);
    A_OK(t, aclrtMallocHost(&c.host, 64));
    memset(c.host, 0, 64);
    c.stream = acl_stream(t);
    A_OK(t, aclrtGetCurrentContext(&c.context));
    for (int one = 0; one <= 2; one++) {
        for (int two = 0; two <= 2; two++) {
            int strictest = one < two ? one : two;
            A_OK(t, aclmdlRICaptureBegin(first, (aclmdlRICaptureMode)one));
            A_OK(t, aclmdlRICaptureBegin(second, (aclmdlRICaptureMode)two));
            for (int exchange = 0; exchange <= 2; exchange++) {
                c.exchange = (aclmdlRICaptureMode)exchange;
                mode_call(&c);
                mode_check(t, &c, strictest, strictest);
            }
            (void)acl_end(t, second);
            (void)acl_end(t, first);
        }
    }
}

/* What a thread captures counts in each context, where something is captured there at all. */
static void test_a_capture_in_another_context(rondo_test *t) {
    A_OPEN(t);
    aclrtContext first = NULL, second = NULL;
    aclrtStream one = acl_stream(t);
    aclmdlRI model = NULL;
    A_OK(t, aclrtGetCurrentContext(&first));
    for (int strict = 0; strict <= 1; strict++) {
        T_EQ(t, acl_control(t)->set("STRICT", strict), 0);
        A_OK(t, aclmdlRICaptureBegin(one, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
        A_OK(t, aclrtCreateContext(&second, 0));
        aclrtStream two = acl_stream(t);
        void *memory = acl_memory(t, 8);
        A_OK(t, aclrtMemset(memory, 8, 0, 8));
        acl_begin(t, two);
        A_IS(t, aclrtMemset(memory, 8, 0, 8), 107030);
        A_IS(t, aclmdlRICaptureEnd(two, &model), strict ? 507903 : 0);
        A_OK(t, aclrtDestroyContext(second));
        A_OK(t, aclrtSetCurrentContext(first));
        A_IS(t, aclmdlRICaptureEnd(one, &model), strict ? 507903 : 0);
    }
}

static void test_exchange(rondo_test *t) {
    A_OPEN(t);
    aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
    A_OK(t, aclmdlRICaptureThreadExchangeMode(&mode));
    T_EQ(t, mode, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL); /* what each thread begins with */
    mode = ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL;
    A_OK(t, aclmdlRICaptureThreadExchangeMode(&mode));
    T_EQ(t, mode, ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
    mode = (aclmdlRICaptureMode)3;
    A_IS(t, aclmdlRICaptureThreadExchangeMode(&mode), 107000);
    A_IS(t, aclmdlRICaptureThreadExchangeMode(NULL), 100000);
    aclrtStream stream = acl_stream(t);
    acl_begin(t, stream);
    (void)acl_end(t, stream);
    mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
    A_OK(t, aclmdlRICaptureThreadExchangeMode(&mode));
    T_EQ(t, mode, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL); /* a capture does not change it */
}

RONDO_TEST_MAIN(T_PLAIN(test_table), T_PLAIN(test_two_captures), T_PLAIN(test_a_capture_in_another_context),
                T_PLAIN(test_exchange))
