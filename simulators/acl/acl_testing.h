/* SPDX-License-Identifier: Apache-2.0
 *
 * What the simulator's tests share: a device that is set and put back as it was, kernels, and checks of exact numbers. */
#ifndef SIMULATORS_ACL_TESTING_H
#define SIMULATORS_ACL_TESTING_H

#include <acl/acl.h>
#include <acl_simulator.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/harness.h"

/* The exact number, and the library's own words when it is another. */
#define A_IS(t, call, want)                                                                              \
    do {                                                                                                 \
        int acl_got = (call), acl_want = (want);                                                         \
        if (acl_got != acl_want) {                                                                       \
            const char *acl_text = aclGetRecentErrMsg();                                                 \
            rondo_test_fail(t, __FILE__, __LINE__, "%s is %d, not %d: %.400s", #call, acl_got, acl_want, \
                            acl_text ? acl_text : "");                                                   \
        }                                                                                                \
    } while (0)
#define A_OK(t, call) A_IS(t, call, ACL_SUCCESS)

static inline const aclsim_control *acl_control(rondo_test *t) {
    aclrtFuncHandle handle = NULL;
    const aclsim_control *control = NULL;
    A_OK(t, aclrtBinaryGetFunction(NULL, ACLSIM_CONTROL, &handle));
    memcpy(&control, &handle, sizeof control);
    return control;
}

static inline void acl_close(void *unused) {
    (void)unused;
    aclrtFuncHandle handle = NULL;
    const aclsim_control *control = NULL;
    if (aclrtBinaryGetFunction(NULL, ACLSIM_CONTROL, &handle)) return;
    memcpy(&control, &handle, sizeof control);
    (void)aclrtResetDeviceForce(0);
    (void)aclrtResetDeviceForce(1);
    (void)aclFinalize();
    const char *const names[] = {"DEVICES",     "MEMORY",      "STREAMS", "EVENTS", "NOTIFIES", "QUEUE",     "UPDATES",
                                 "SOFTWARE_SQ", "TASK_UPDATE", "STRICT",  "DELAY",  "SEED",     "DESTROY_MS"};
    const int64_t values[] = {2, 1 << 30, 1984, 65536, 1024, 2048, 1 << 20, 1, 1, 0, 0, 1, 10000};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) (void)control->set(names[i], values[i]);
    aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
    (void)aclmdlRICaptureThreadExchangeMode(&mode);
    (void)aclGetRecentErrMsg();
    (void)aclGetRecentErrMsg();
}

/* Device 0 is set, and all of it goes at the end. */
#define A_OPEN(t)                    \
    do {                             \
        T_DEFER(t, acl_close, NULL); \
        A_OK(t, aclInit(NULL));      \
        A_OK(t, aclrtSetDevice(0));  \
    } while (0)

static inline aclrtStream acl_stream(rondo_test *t) {
    aclrtStream stream = NULL;
    A_OK(t, aclrtCreateStream(&stream));
    return stream;
}

static inline aclrtEvent acl_event(rondo_test *t) {
    aclrtEvent event = NULL;
    A_OK(t, aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    return event;
}

static inline void *acl_memory(rondo_test *t, size_t bytes) {
    void *memory = NULL;
    A_OK(t, aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    return memory;
}

/* --------------------------------------------------------------------------------------------------- kernels */

/* add1: *p += n. */
typedef struct acl_add_arguments {
    int64_t *p;
    int64_t n;
} acl_add_arguments;

static inline int32_t acl_add(const aclsim_launch *launch) {
    const acl_add_arguments *a = launch->arguments;
    *a->p += a->n;
    return 0;
}

static inline int32_t acl_set(const aclsim_launch *launch) {
    const acl_add_arguments *a = launch->arguments;
    *a->p = a->n;
    return 0;
}

static inline int32_t acl_sleep(const aclsim_launch *launch) {
    const acl_add_arguments *a = launch->arguments;
    (void)usleep((useconds_t)a->n);
    return 0;
}

static inline int32_t acl_break(const aclsim_launch *launch) {
    (void)launch;
    return 3;
}

static const aclsim_kernel acl_kernels[] = {{"add", acl_add, ACLSIM_VECTOR, 2},
                                            {"set", acl_set, ACLSIM_CUBE, 2},
                                            {"sleep", acl_sleep, ACLSIM_VECTOR, 2},
                                            {"aicpu", acl_add, ACLSIM_AICPU, 2},
                                            {"break", acl_break, ACLSIM_VECTOR, 0}};

static inline aclrtFuncHandle acl_function(rondo_test *t, const char *name) {
    static aclrtBinHandle binary; /* it stays, as a program's own does */
    aclsim_image image = {ACLSIM_MAGIC, sizeof acl_kernels / sizeof acl_kernels[0], acl_kernels};
    aclrtFuncHandle function = NULL;
    if (!binary) A_OK(t, aclrtBinaryLoadFromData(&image, sizeof image, NULL, &binary));
    A_OK(t, aclrtBinaryGetFunction(binary, name, &function));
    return function;
}

static inline aclError acl_launch(aclrtFuncHandle function, aclrtStream stream, void *p, int64_t n) {
    acl_add_arguments arguments = {p, n};
    return aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, &arguments, sizeof arguments, NULL, 0);
}

/* One word of device memory, read when the stream is done. */
static inline int64_t acl_read(rondo_test *t, const void *p) {
    int64_t value = 0;
    A_OK(t, aclrtMemcpy(&value, 8, p, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    return value;
}

static inline void *acl_cell(rondo_test *t, int64_t value) {
    void *p = acl_memory(t, 8);
    A_OK(t, aclrtMemcpy(p, 8, &value, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    return p;
}

static inline aclmdlRICaptureStatus acl_status(rondo_test *t, aclrtStream stream) {
    aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
    A_OK(t, aclmdlRICaptureGetInfo(stream, &status, NULL));
    return status;
}

static inline void acl_begin(rondo_test *t, aclrtStream stream) {
    A_OK(t, aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
}

static inline aclmdlRI acl_end(rondo_test *t, aclrtStream stream) {
    aclmdlRI model = NULL;
    A_OK(t, aclmdlRICaptureEnd(stream, &model));
    return model;
}

#endif
