/* SPDX-License-Identifier: Apache-2.0
 *
 * Several threads make, use and destroy the same few things at random, so that each handle may be gone when it is used. What a
 * call answers is not looked at: that it comes back, touches nothing that is gone, and that nothing is left. */
#include <stdatomic.h>

#include "acl_testing.h"

enum { THREADS = 4, PLACES = 5 };

typedef struct bed {
    aclrtContext context;
    aclrtFuncHandle work;
    atomic_long told;
    _Atomic(aclrtStream) streams[PLACES];
    _Atomic(aclrtEvent) events[PLACES];
    _Atomic(aclmdlRI) models[PLACES], parts[PLACES];
    _Atomic(aclrtTaskGrp) groups[PLACES];
    _Atomic(aclrtBinHandle) binary;
    _Atomic(aclrtFuncHandle) function;
} bed;

typedef struct user {
    bed *b;
    uint64_t random, rounds;
    pthread_t thread;
} user;

static bed the_bed; /* for functions that are only given a number */

static size_t draw(user *u, size_t most) {
    u->random = u->random * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(u->random >> 33) % most;
}

static int32_t nothing(const aclsim_launch *launch) {
    (void)launch;
    return 0;
}

static aclrtBinHandle load(aclrtFuncHandle *out) {
    static const aclsim_kernel kernels[] = {{"nothing", nothing, ACLSIM_CUBE, 2}};
    aclsim_image image = {ACLSIM_MAGIC, 1, kernels};
    aclrtBinHandle binary = NULL;
    if (aclrtBinaryLoadFromData(&image, sizeof image, NULL, &binary)) return NULL;
    (void)aclrtBinaryGetFunction(binary, "nothing", out);
    return binary;
}

/* Told that a graph goes. */
static void tell(void *place) {
    atomic_fetch_add(&the_bed.told, 1);
    (void)aclmdlRIDestroy(the_bed.models[(size_t)(uintptr_t)place]);
}

/* Run by a stream. */
static void call_back(void *place) {
    size_t at = (size_t)(uintptr_t)place;
    if (aclrtSetCurrentContext(the_bed.context)) return;
    (void)aclrtSynchronizeStreamWithTimeout(the_bed.streams[at], 1);
    (void)aclmdlRIDestroy(the_bed.models[at]);
    (void)aclrtRecordEvent(the_bed.events[at], the_bed.streams[(at + 1) % PLACES]);
}

static void use_streams(user *u, size_t a, size_t c) {
    bed *b = u->b;
    acl_add_arguments arguments = {NULL, 1};
    aclrtStream made = NULL;
    switch (draw(u, 9)) {
    case 0:
    case 1:
        if (!b->streams[a] && !aclrtCreateStream(&made)) b->streams[a] = made;
        break;
    case 2:
        (void)aclrtDestroyStreamForce(b->streams[a]);
        b->streams[a] = NULL;
        break;
    case 3:
        (void)aclrtDestroyStream(b->streams[a]);
        b->streams[a] = NULL;
        break;
    case 4: (void)aclrtSynchronizeStreamWithTimeout(b->streams[a], 1); break;
    case 5: (void)aclrtStreamAbort(b->streams[a]); break;
    case 6: (void)aclrtLaunchHostFunc(b->streams[a], call_back, (void *)(uintptr_t)c); break;
    case 7: (void)aclrtSynchronizeDeviceWithTimeout(1); break;
    default:
        (void)aclrtLaunchKernelWithHostArgs(draw(u, 2) ? b->function : b->work, 1, b->streams[a], NULL, &arguments,
                                            sizeof arguments, NULL, 0);
    }
}

static void use_events(user *u, size_t a, size_t c) {
    bed *b = u->b;
    aclrtEvent made = NULL;
    switch (draw(u, 5)) {
    case 0:
        if (!b->events[a] && !aclrtCreateEventExWithFlag(&made, ACL_EVENT_SYNC)) b->events[a] = made;
        break;
    case 1: (void)aclrtDestroyEvent(atomic_exchange(&b->events[a], NULL)); break;
    case 2: (void)aclrtRecordEvent(b->events[a], b->streams[c]); break;
    case 3: (void)aclrtStreamWaitEventWithTimeout(b->streams[c], b->events[a], 1); break;
    default: (void)aclrtSynchronizeEventWithTimeout(b->events[a], 1);
    }
}

static void use_captures(user *u, size_t a, size_t c) {
    bed *b = u->b;
    aclmdlRI model = NULL, parts[2] = {NULL};
    aclmdlRICondHandle condition = NULL;
    switch (draw(u, 6)) {
    case 0: (void)aclmdlRICaptureBegin(b->streams[a], (aclmdlRICaptureMode)draw(u, 3)); break;
    case 1: (void)aclmdlRICaptureToModelRIBegin(b->streams[a], b->parts[c], ACL_MODEL_RI_CAPTURE_MODE_RELAXED); break;
    case 2:
        if (aclmdlRICaptureGetInfo(b->streams[a], NULL, &model) ||
            aclmdlRICondHandleCreate(model, (uint32_t)draw(u, 2), ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &condition))
            break;
        (void)aclmdlRIAddCondTask(
            (aclmdlRICondTaskParams){condition, ACL_MODEL_RI_COND_TYPE_IF, 1 + (uint32_t)draw(u, 2), parts},
            b->streams[a], 0);
        b->parts[c] = parts[0];
        break;
    default:
        if (aclmdlRICaptureEnd(b->streams[a], &model) || !model) break;
        (void)aclmdlRIDestroyRegisterCallback(model, tell, (void *)(uintptr_t)c);
        (void)aclmdlRIDestroy(atomic_exchange(&b->models[c], model));
    }
}

static void use_graphs(user *u, size_t a, size_t c) {
    bed *b = u->b;
    aclrtTaskGrp group = NULL;
    aclrtFuncHandle function = NULL;
    switch (draw(u, 8)) {
    case 0: (void)aclmdlRIDestroy(b->models[a]); break;
    case 1: (void)aclmdlRICaptureTaskGrpBegin(b->streams[a]); break;
    case 2:
        if (!aclmdlRICaptureTaskGrpEnd(b->streams[a], &group)) b->groups[c] = group;
        break;
    case 3: (void)aclmdlRICaptureTaskUpdateBegin(b->streams[a], b->groups[c]); break;
    case 4: (void)aclmdlRICaptureTaskUpdateEnd(b->streams[a]); break;
    case 5:
        (void)aclrtBinaryUnLoad(atomic_exchange(&b->binary, load(&function)));
        b->function = function;
        break;
    default: (void)aclmdlRIExecuteAsync(b->models[a], b->streams[c]);
    }
}

static void *use(void *argument) {
    static void (*const uses[])(user * u, size_t a, size_t c) = {use_streams, use_events, use_captures, use_graphs};
    user *u = argument;
    for (uint64_t i = 0; i < u->rounds; i++) {
        (void)aclrtSetDevice(0);
        uses[draw(u, 4)](u, draw(u, PLACES), draw(u, PLACES));
        (void)aclGetRecentErrMsg();
    }
    return NULL;
}

static void test_everything_at_once(rondo_test *t) {
    A_OPEN(t);
    bed *b = &the_bed;
    user users[THREADS];
    aclrtFuncHandle function = NULL;
    b->work = acl_function(t, "sleep");
    b->binary = load(&function);
    b->function = function;
    A_OK(t, aclrtGetCurrentContext(&b->context));
    T_EQ(t, acl_control(t)->set("DESTROY_MS", 5), 0);
    for (size_t i = 0; i < THREADS; i++) {
        users[i] = (user){.b = b, .random = rondo_test_random(t), .rounds = 10000 / rondo_test_stride()};
        T_EQ(t, pthread_create(&users[i].thread, NULL, use, &users[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) T_EQ(t, pthread_join(users[i].thread, NULL), 0);
    A_OK(t, aclrtBinaryUnLoad(b->binary));
    A_OK(t, aclrtResetDeviceForce(0));
    T_TRUE(t, b->told > 0);
    static const char *const counted[] = {"streams", "events", "models", "contexts", "notifies", "hardware_streams"};
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) T_EQ(t, acl_control(t)->alive(counted[i]), 0);
}

RONDO_TEST_MAIN(T_PLAIN(test_everything_at_once))
