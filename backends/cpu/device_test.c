/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU as a device: work has run when the call returns, and a list runs to its end or to the first failure. */
#include "device/device.h"

#include <pthread.h>
#include <stdio.h>

#include "harness/harness.h"

static rondo_device *open_device(rondo_test *t) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    rondo_instance *instance = NULL;
    rondo_device *device = NULL;
    options.allocator = rondo_test_allocator(t);
    options.ignore_plugin_path = 1;
    T_OK(t, rondo_instance_create(&options, &instance));
    T_DEFER(t, rondo_instance_release, instance);
    T_OK(t, rondo_device_open(instance, "cpu", NULL, &device));
    T_DEFER(t, rondo_device_release, device);
    return device;
}

static uint64_t counter(rondo_test *t, rondo_device *device, const char *name) {
    uint64_t value = 0;
    T_OK(t, rondo_device_counter(device, name, &value));
    return value;
}

/* words[0]: address of a number, to which the others are added. A context makes it fail when the number is above 100. */
static int32_t kernel_add(const void *context, const uint64_t *words) {
    uint64_t *sum = (uint64_t *)(uintptr_t)words[0];
    *sum += words[1] + words[2] + words[3] + words[4];
    return context && *sum > 100 ? -5 : 0;
}

static int32_t host_bump(void *user) { return ++*(int *)user > 3 ? 9 : 0; }

static void test_calls_run_at_once(rondo_test *t) {
    rondo_device *device = open_device(t);
    rondo_stream *stream = rondo_stream_default(device);
    uint64_t sum = 1, copy = 0;
    bool done = false;
    int ran = 0;
    rondo_argument arguments[5] = {{(uint64_t)(uintptr_t)&sum, 8, RONDO_ACCESS_BOTH, 0}, {10, 0, 0, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel = (rondo_kernel){kernel_add, "limited"};
    call.arguments = arguments;
    call.argument_count = 5;
    call.name = "adds";
    T_OK(t, rondo_stream_launch(stream, &call));
    T_EQ(t, sum, 11);
    T_OK(t, rondo_stream_copy(stream, &copy, &sum, 8, RONDO_COPY_DEVICE_TO_DEVICE));
    T_EQ(t, copy, 11);
    T_OK(t, rondo_stream_fill(stream, &copy, 0xff, 7));
    T_EQ(t, copy, 0x00ffffffffffffff);
    T_OK(t, rondo_stream_host_call(stream, host_bump, &ran));
    T_EQ(t, ran, 1);
    T_OK(t, rondo_stream_query(stream, &done));
    T_TRUE(t, done);
    arguments[1].word = 100;
    T_FAILS(t, rondo_stream_launch(stream, &call), KERNEL_FAILED, "cpu: call 'adds': its kernel failed with reason -5");
    T_OK(t, rondo_stream_synchronize(stream)); /* it was reported already */
    ran = 3;
    T_FAILS(t, rondo_stream_host_call(stream, host_bump, &ran), KERNEL_FAILED, "host function failed with reason 9");
    T_EQ(t, counter(t, device, "launches"), 2);
    T_EQ(t, counter(t, device, "copies"), 1);
    T_EQ(t, counter(t, device, "fills"), 1);
    T_EQ(t, counter(t, device, "host_calls"), 2);
    T_EQ(t, counter(t, device, "synchronizes"), 1);
    uint64_t value;
    T_FAILS(t, rondo_device_counter(device, "nothing", &value), NOT_FOUND, "no counter 'nothing'");
}

static void test_overlapping_copies(rondo_test *t) {
    rondo_device *device = open_device(t);
    char text[8] = "abcdefg";
    T_OK(t, rondo_stream_copy(rondo_stream_default(device), text + 1, text, 6, RONDO_COPY_DEVICE_TO_DEVICE));
    T_STR(t, text, "aabcdef");
}

static void test_counts_outlive_their_stream(rondo_test *t) {
    rondo_device *device = open_device(t);
    for (int i = 0; i < 3; i++) {
        rondo_stream *stream = NULL;
        char byte;
        T_OK(t, rondo_stream_create(device, NULL, &stream));
        rondo_status status = rondo_stream_fill(stream, &byte, 1, 1);
        rondo_stream_release(stream);
        T_OK(t, status);
    }
    T_EQ(t, counter(t, device, "fills"), 3);
}

static rondo_list_entry entry_of(uint64_t *sum, uint64_t value, const void *context) {
    return (rondo_list_entry){kernel_add, context, {(uint64_t)(uintptr_t)sum, value, 0, 0, 1}, RONDO_LIST_CALL, 0, 0};
}

static void test_a_list_of_calls(rondo_test *t) {
    rondo_device *device = open_device(t);
    rondo_stream *stream = rondo_stream_default(device);
    static rondo_list_entry entries[200];
    uint64_t sum = 0, failed = 5;
    for (int i = 0; i < 200; i++) entries[i] = entry_of(&sum, 2, NULL);
    rondo_list list = {sizeof list, RONDO_LIST_ONLY_CALLS, entries, 200};
    T_OK(t, rondo__stream_execute(stream, &list, &failed));
    T_EQ(t, failed, UINT64_MAX);
    T_EQ(t, sum, 600);
    T_EQ(t, counter(t, device, "launches"), 200);
    for (int i = 0; i < 200; i++) entries[i].context = "limited";
    sum = 0;
    T_FAILS(t, rondo__stream_execute(stream, &list, &failed), KERNEL_FAILED,
            "entry 33 of the list failed with reason -5");
    T_EQ(t, failed, 33);
    T_EQ(t, sum, 102);
    T_EQ(t, counter(t, device, "launches"), 234);
    list.count = 0;
    T_OK(t, rondo__stream_execute(stream, &list, &failed));
    T_EQ(t, failed, UINT64_MAX);
}

static void test_a_list_of_everything(rondo_test *t) {
    rondo_device *device = open_device(t);
    rondo_stream *stream = rondo_stream_default(device);
    uint64_t sum = 0, failed = 5, function = 0;
    int64_t go = 0;
    int ran = 0;
    rondo_host_function pointer = host_bump;
    memcpy(&function, &pointer, sizeof pointer);
    rondo_list_entry entries[6] = {
        entry_of(&sum, 1, NULL),
        {NULL, NULL, {(uint64_t)(uintptr_t)&go, 4}, RONDO_LIST_JUMP, 0, 0},
        entry_of(&sum, 10, NULL),
        {NULL, NULL, {0}, RONDO_LIST_WAIT, 0, 0},
        {NULL, NULL, {function, (uint64_t)(uintptr_t)&ran}, RONDO_LIST_HOST, 0, 0},
        {NULL, NULL, {0}, RONDO_LIST_RECORD, 0, 0},
    };
    rondo_list list = {sizeof list, 0, entries, 6};
    T_OK(t, rondo__stream_execute(stream, &list, &failed));
    T_TRUE(t, sum == 2 && ran == 1 && failed == UINT64_MAX);
    go = 1;
    T_OK(t, rondo__stream_execute(stream, &list, &failed));
    T_TRUE(t, sum == 2 + 2 + 11 && ran == 2);
    ran = 3;
    T_FAILS(t, rondo__stream_execute(stream, &list, &failed), KERNEL_FAILED,
            "entry 4 of the list failed with reason 9");
    T_EQ(t, failed, 4);
    T_EQ(t, counter(t, device, "launches"), 5);
    T_EQ(t, counter(t, device, "host_calls"), 3);
}

static void test_properties(rondo_test *t) {
    rondo_device *device = open_device(t), *other = NULL;
    uint64_t free_bytes = 0, total = 0;
    const rondo_device_properties *p = rondo_device_info(device);
    T_STR(t, p->name, "cpu");
    T_TRUE(t, (p->capabilities & RONDO_DEVICE_INLINE) != 0 && (p->capabilities & RONDO_DEVICE_HOST_ADDRESSABLE) != 0 &&
                  (p->capabilities & RONDO_DEVICE_GRAPH_CAPABLE) != 0 &&
                  (p->capabilities & RONDO_DEVICE_HOST_KERNELS) != 0);
    T_TRUE(t, p->dlpack_type == 1 && p->allocation_alignment == 64);
    T_OK(t, rondo_device_memory_info(device, &free_bytes, &total));
    T_TRUE(t, total > 0 && free_bytes <= total && total == p->memory_total);
    T_FAILS(t, rondo_device_open(rondo_device_instance(device), "cpu:1", NULL, &other), OUT_OF_RANGE,
            "has 1 device here");
    T_FAILS(t, rondo_device_open(rondo_device_instance(device), "cpu", "threads=2", &other), ALREADY_EXISTS, NULL);
}

static void test_settings_are_refused(rondo_test *t) {
    rondo_instance *instance = NULL;
    rondo_device *device = NULL;
    T_OK(t, rondo_instance_create(NULL, &instance));
    T_DEFER(t, rondo_instance_release, instance);
    T_FAILS(t, rondo_device_open(instance, "cpu", "threads=2", &device), INVALID_ARGUMENT, "'threads=2' is unknown");
}

typedef struct worker {
    rondo_device *device;
    uint64_t sum;
    bool failed;
} worker;

static void *worker_run(void *argument) {
    worker *self = argument;
    rondo_stream *stream = NULL;
    rondo_list_entry entries[10];
    uint64_t failed;
    rondo_status status = rondo_stream_create(self->device, NULL, &stream);
    for (int i = 0; i < 10; i++) entries[i] = entry_of(&self->sum, 0, NULL);
    rondo_list list = {sizeof list, RONDO_LIST_ONLY_CALLS, entries, 10};
    for (int i = 0; i < 1000 && !status; i++) status = rondo__stream_execute(stream, &list, &failed);
    self->failed = status != RONDO_OK;
    rondo_status_release(status);
    rondo_stream_release(stream);
    return NULL;
}

static void test_streams_of_several_threads(rondo_test *t) {
    rondo_device *device = open_device(t);
    worker workers[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (worker){device, 0, false};
        T_EQ(t, pthread_create(&threads[i], NULL, worker_run, &workers[i]), 0);
    }
    (void)counter(t, device, "launches"); /* may be read at any time */
    for (int i = 0; i < 4; i++) (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) T_TRUE(t, !workers[i].failed && workers[i].sum == 10000);
    T_EQ(t, counter(t, device, "launches"), 40000);
}

RONDO_TEST_MAIN(T(test_calls_run_at_once), T(test_overlapping_copies), T(test_counts_outlive_their_stream),
                T(test_a_list_of_calls), T(test_a_list_of_everything), T(test_properties), T(test_settings_are_refused),
                T_PLAIN(test_streams_of_several_threads))
