/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver that answers some calls as an odd one would: the functions below are this library's, all others those of the simulated
 * one, which it needs. RONDO_ODD="aclrtSetDevice=507000,aclmdlRIExecuteAsync=207000" says what they answer instead of doing
 * anything, always and without a word; a test may say how often. The rest goes on to the simulated library. */
#include <acl/acl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ODD_VISIBLE __attribute__((visibility("default")))
#define ODD_CALLS(X)                                                                                \
    X(aclrtGetDeviceCount, (uint32_t * count), (count))                                             \
    X(aclrtSetDevice, (int32_t device), (device))                                                   \
    X(aclrtGetMemInfo, (aclrtMemAttr attr, size_t * left, size_t * total), (attr, left, total))     \
    X(aclrtMallocHost, (void **host, size_t size), (host, size))                                    \
    X(aclrtPointerGetAttributes, (const void *p, aclrtPtrAttributes *about), (p, about))            \
    X(aclrtSetStreamFailureMode, (aclrtStream s, uint64_t mode), (s, mode))                         \
    X(aclrtGetStreamAvailableNum, (uint32_t * count), (count))                                      \
    X(aclrtGetEventAvailNum, (uint32_t * count), (count))                                           \
    X(aclrtLaunchHostFunc, (aclrtStream s, aclrtHostFunc f, void *user), (s, f, user))              \
    X(aclrtBinaryLoadFromData,                                                                      \
      (const void *data, size_t size, const aclrtBinaryLoadOptions *options, aclrtBinHandle *b),    \
      (data, size, options, b))                                                                     \
    X(aclrtRecordEventWithFlag, (aclrtEvent e, aclrtStream s, uint32_t flag), (e, s, flag))         \
    X(aclrtStreamWaitEventWithFlag, (aclrtStream s, aclrtEvent e, uint32_t timeout, uint32_t flag), \
      (s, e, timeout, flag))                                                                        \
    X(aclmdlRICaptureBegin, (aclrtStream s, aclmdlRICaptureMode mode), (s, mode))                   \
    X(aclmdlRICaptureEnd, (aclrtStream s, aclmdlRI * out), (s, out))                                \
    X(aclmdlRICaptureThreadExchangeMode, (aclmdlRICaptureMode * mode), (mode))                      \
    X(aclmdlRIExecuteAsync, (aclmdlRI graph, aclrtStream s), (graph, s))                            \
    X(aclmdlRICaptureTaskGrpBegin, (aclrtStream s), (s))                                            \
    X(aclmdlRICaptureTaskGrpEnd, (aclrtStream s, aclrtTaskGrp * group), (s, group))                 \
    X(aclmdlRICaptureTaskUpdateBegin, (aclrtStream s, aclrtTaskGrp group), (s, group))              \
    X(aclmdlRICaptureTaskUpdateEnd, (aclrtStream s), (s))                                           \
    X(aclmdlRISetName, (aclmdlRI graph, const char *name), (graph, name))                           \
    X(aclmdlRIDebugJsonPrint, (aclmdlRI graph, const char *path, uint32_t flags), (graph, path, flags))

enum {
#define ODD_NUMBER(name, arguments, values) ODD_##name,
    ODD_CALLS(ODD_NUMBER)
#undef ODD_NUMBER
        ODD_COUNT
};

static const char *const odd_names[ODD_COUNT] = {
#define ODD_NAME(name, arguments, values) #name,
    ODD_CALLS(ODD_NAME)
#undef ODD_NAME
};
static int odd_answers[ODD_COUNT];
static unsigned odd_left[ODD_COUNT]; /* answers; 0: without an end */
static void *odd_next[ODD_COUNT];

/* The next `times` calls answer `error`, 0: all of them do; with the error 0 it does what it is for. False: there is no such call. */
ODD_VISIBLE bool odd_answer(const char *name, int error, unsigned times);
bool odd_answer(const char *name, int error, unsigned times) {
    for (int i = 0; i < ODD_COUNT; i++) {
        if (strcmp(name, odd_names[i]) != 0) continue;
        odd_answers[i] = error;
        odd_left[i] = times;
        return true;
    }
    return false;
}

static int odd_take(int call) {
    int error = odd_answers[call];
    if (error && odd_left[call] && --odd_left[call] == 0) odd_answers[call] = 0;
    return error;
}

__attribute__((constructor)) static void odd_load(void) {
    const char *text = getenv("RONDO_ODD");
    for (int i = 0; i < ODD_COUNT; i++) odd_next[i] = dlsym(RTLD_NEXT, odd_names[i]);
    while (text && *text) {
        char name[64];
        int error = 0;
        if (sscanf(text, "%63[A-Za-z0-9]=%d", name, &error) != 2 || !odd_answer(name, error, 0))
            (void)fprintf(stderr, "odd driver: no such call: %s\n", text);
        text += strcspn(text, ",");
        text += *text == ',';
    }
}

#define ODD_FUNCTION(name, arguments, values)              \
    ODD_VISIBLE aclError name arguments {                  \
        aclError(*next) arguments = NULL;                  \
        int error = odd_take(ODD_##name);                  \
        if (error) return error;                           \
        memcpy(&next, &odd_next[ODD_##name], sizeof next); \
        return next values;                                \
    }
ODD_CALLS(ODD_FUNCTION)
