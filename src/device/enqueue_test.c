/* SPDX-License-Identifier: Apache-2.0
 *
 * The public calls on a stream: what is refused before anybody sees it, and that a recorder gets all the rest. */
#include <stdio.h>

#include "device/device.h"
#include "harness/harness.h"

/* -------------------------------------------------------------------------------------- a recorder that writes down */

typedef struct notebook {
    rondo__recorder recorder;
    char text[1024];
    bool abandoned;
} notebook;

static rondo_status note(rondo__recorder *recorder, const char *format, unsigned long long a, unsigned long long b,
                         unsigned long long c, long long d) {
    notebook *n = (notebook *)(void *)recorder;
    char line[128];
    (void)snprintf(line, sizeof line, format, a, b, c, d);
    size_t used = strlen(n->text);
    (void)snprintf(n->text + used, sizeof n->text - used, "%s;", line);
    return RONDO_OK;
}

static rondo_status note_launch(rondo__recorder *recorder, rondo_stream *stream, const rondo_call *call) {
    (void)stream;
    return note(recorder, "launch %llu", call->argument_count, 0, 0, 0);
}

static rondo_status note_copy(rondo__recorder *recorder, rondo_stream *stream, uint64_t to, uint64_t from,
                              uint64_t bytes, rondo_copy_kind kind) {
    (void)stream;
    return note(recorder, "copy %llu %llu %llu %lld", to, from, bytes, kind);
}

static rondo_status note_fill(rondo__recorder *recorder, rondo_stream *stream, uint64_t to, uint8_t value,
                              uint64_t bytes) {
    (void)stream;
    return note(recorder, "fill %llu %llu %llu", to, value, bytes, 0);
}

static rondo_status note_host(rondo__recorder *recorder, rondo_stream *stream, rondo_host_function function,
                              void *user) {
    (void)stream, (void)function, (void)user;
    return note(recorder, "host", 0, 0, 0, 0);
}

static rondo_status note_refuse(rondo__recorder *recorder, rondo_stream *stream, const char *what) {
    (void)recorder, (void)stream;
    return RONDO__FAIL(INVALID_STATE, CAPTURE, "%s is not for a capture", what);
}

static void note_status(rondo__recorder *recorder, rondo_capture_status *out_status) {
    (void)recorder;
    out_status->active = 1;
    out_status->mode = RONDO_CAPTURE_MODE_RELAXED;
    out_status->id = 77;
}

static void note_abandon(rondo__recorder *recorder, rondo_stream *stream) {
    notebook *n = (notebook *)(void *)recorder;
    n->abandoned = true;
    rondo__stream_record(stream, NULL, RONDO_CAPTURE_MODE_DEFAULT);
}

static const rondo__recorder_table note_table = {.launch = note_launch,
                                                 .copy = note_copy,
                                                 .fill = note_fill,
                                                 .host_call = note_host,
                                                 .refuse = note_refuse,
                                                 .status = note_status,
                                                 .abandon = note_abandon};

/* --------------------------------------------------------------------------------------------------------- helpers */

static rondo_device *open_device(rondo_test *t, const char *name) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    rondo_instance *instance = NULL;
    rondo_device *device = NULL;
    options.allocator = rondo_test_allocator(t);
    options.ignore_plugin_path = 1;
    T_OK(t, rondo_instance_create(&options, &instance));
    T_DEFER(t, rondo_instance_release, instance);
    T_OK(t, rondo_device_open(instance, name, NULL, &device));
    T_DEFER(t, rondo_device_release, device);
    return device;
}

static rondo_stream *open_stream(rondo_test *t, rondo_device *device) {
    rondo_stream *stream = NULL;
    T_OK(t, rondo_stream_create(device, NULL, &stream));
    T_DEFER(t, rondo_stream_release, stream);
    return stream;
}

static int32_t kernel_nothing(const void *context, const uint64_t *words) {
    (void)context, (void)words;
    return 0;
}

static int32_t host_nothing(void *user) {
    (void)user;
    return 0;
}

/* ----------------------------------------------------------------------------------------------------------- tests */

static void check_bad_calls(rondo_test *t, rondo_stream *stream) {
    static rondo_argument arguments[RONDO_ARGUMENT_MAX];
    rondo_call call = RONDO_CALL_INIT;
    char a[8] = {0};
    bool done;
    T_FAILS(t, rondo_stream_launch(stream, NULL), INVALID_ARGUMENT, "the call is null");
    T_FAILS(t, rondo_stream_launch(stream, &call), INVALID_ARGUMENT, "kernel's function is null");
    call.kernel.function = kernel_nothing;
    T_FAILS(t, rondo_stream_launch(NULL, &call), INVALID_ARGUMENT, "the stream is null");
    call.struct_size = 8;
    T_FAILS(t, rondo_stream_launch(stream, &call), INVALID_ARGUMENT, "struct_size is not set");
    call.struct_size = sizeof call;
    call.argument_count = 2;
    T_FAILS(t, rondo_stream_launch(stream, &call), INVALID_ARGUMENT, "arguments are null");
    call.arguments = arguments;
    call.argument_count = RONDO_ARGUMENT_MAX + 1;
    T_FAILS(t, rondo_stream_launch(stream, &call), INVALID_ARGUMENT, "65 arguments are more than 64");
    call.argument_count = RONDO_ARGUMENT_MAX;
    arguments[63].access = 4;
    call.name = "who";
    T_FAILS(t, rondo_stream_launch(stream, &call), INVALID_ARGUMENT, "call 'who': argument 63 has access 4");
    arguments[63].access = 0;
    T_FAILS(t, rondo_stream_copy(stream, a, a + 4, 4, 0), INVALID_ARGUMENT, "0 is no direction");
    T_FAILS(t, rondo_stream_copy(stream, a, a + 4, 4, 4), INVALID_ARGUMENT, "4 is no direction");
    T_FAILS(t, rondo_stream_copy(stream, NULL, a, 4, 1), INVALID_ARGUMENT, "the destination is null");
    T_FAILS(t, rondo_stream_copy(stream, a, NULL, 4, 1), INVALID_ARGUMENT, "the source is null");
    T_FAILS(t, rondo_stream_copy(stream, a, a, UINT64_MAX, 1), INVALID_ARGUMENT, "pass the end of all memory");
    T_FAILS(t, rondo_stream_copy(NULL, a, a, 1, 1), INVALID_ARGUMENT, "the stream is null");
    T_OK(t, rondo_stream_copy(stream, NULL, NULL, 0, 1));
    T_FAILS(t, rondo_stream_fill(stream, NULL, 1, 1), INVALID_ARGUMENT, "the destination is null");
    T_FAILS(t, rondo_stream_fill(stream, a, 1, UINT64_MAX), INVALID_ARGUMENT, "pass the end of all memory");
    T_FAILS(t, rondo_stream_fill(NULL, a, 1, 1), INVALID_ARGUMENT, "the stream is null");
    T_OK(t, rondo_stream_fill(stream, NULL, 1, 0));
    T_FAILS(t, rondo_stream_host_call(stream, NULL, NULL), INVALID_ARGUMENT, "the function is null");
    T_FAILS(t, rondo_stream_host_call(NULL, host_nothing, NULL), INVALID_ARGUMENT, "the stream is null");
    T_FAILS(t, rondo_stream_synchronize(NULL), INVALID_ARGUMENT, "the stream is null");
    T_FAILS(t, rondo_stream_query(NULL, &done), INVALID_ARGUMENT, "the stream is null");
    T_FAILS(t, rondo_stream_query(stream, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_stream_capture_status(stream, NULL), INVALID_ARGUMENT, NULL);
}

static void test_bad_calls_are_refused_on_cpu(rondo_test *t) {
    check_bad_calls(t, rondo_stream_default(open_device(t, "cpu")));
}

static void test_bad_calls_are_refused_on_sim(rondo_test *t) {
    check_bad_calls(t, rondo_stream_default(open_device(t, "sim")));
}

static void check_recorder(rondo_test *t, const char *name) {
    notebook n = {.recorder = {.table = &note_table}};
    rondo_device *device = open_device(t, name);
    rondo_stream *stream = open_stream(t, device), *other = open_stream(t, device);
    rondo_event *event = NULL;
    rondo_capture_status status = RONDO_CAPTURE_STATUS_INIT;
    rondo_call call = RONDO_CALL_INIT;
    uint64_t launches = 9;
    bool done = false;
    call.kernel.function = kernel_nothing;
    T_OK(t, rondo_event_create(device, &event));
    T_DEFER(t, rondo_event_release, event);
    T_OK(t, rondo_stream_capture_status(stream, &status));
    T_TRUE(t, !status.active && !status.id);
    rondo__stream_record(stream, &n.recorder, RONDO_CAPTURE_MODE_RELAXED);
    T_OK(t, rondo_stream_launch(stream, &call));
    T_OK(t, rondo_stream_copy(stream, (void *)4, (void *)5, 6, RONDO_COPY_DEVICE_TO_DEVICE));
    T_OK(t, rondo_stream_fill(stream, (void *)7, 8, 9));
    T_OK(t, rondo_stream_host_call(stream, host_nothing, NULL));
    T_STR(t, n.text, "launch 0;copy 4 5 6 3;fill 7 8 9;host;");
    T_FAILS(t, rondo_stream_synchronize(stream), INVALID_STATE, "rondo_stream_synchronize is not for a capture");
    T_FAILS(t, rondo_stream_query(stream, &done), INVALID_STATE, "rondo_stream_query");
    T_FAILS(t, rondo_event_record(event, stream), INVALID_STATE, "rondo_event_record");
    T_FAILS(t, rondo_event_wait(event, stream), INVALID_STATE, "rondo_event_wait");
    T_FAILS(t, rondo_stream_fill(stream, NULL, 8, 9), INVALID_ARGUMENT, NULL); /* refused before it is recorded */
    T_STR(t, n.text, "launch 0;copy 4 5 6 3;fill 7 8 9;host;");
    T_OK(t, rondo_stream_capture_status(stream, &status));
    T_TRUE(t, status.active == 1 && status.id == 77 && status.mode == RONDO_CAPTURE_MODE_RELAXED);
    T_OK(t, rondo_stream_launch(other, &call)); /* other streams run */
    T_OK(t, rondo__device_synchronize(device)); /* and are waited for, this one is not */
    T_OK(t, rondo_device_counter(device, "launches", &launches));
    T_EQ(t, launches, 1);
    /* An older caller knows fewer fields. */
    rondo_capture_status small = {.struct_size = 8, .mode = 55};
    T_OK(t, rondo_stream_capture_status(stream, &small));
    T_TRUE(t, small.active == 1 && small.mode == 55 && small.struct_size == 8);
    rondo__stream_record(stream, NULL, RONDO_CAPTURE_MODE_DEFAULT);
    T_OK(t, rondo_stream_launch(stream, &call));
    T_OK(t, rondo_stream_synchronize(stream));
    T_OK(t, rondo_device_counter(device, "launches", &launches));
    T_EQ(t, launches, 2);
}

static void test_a_recorder_gets_the_work_on_cpu(rondo_test *t) { check_recorder(t, "cpu"); }

static void test_a_recorder_gets_the_work_on_sim(rondo_test *t) { check_recorder(t, "sim"); }

static void test_a_released_stream_abandons_its_capture(rondo_test *t) {
    notebook n = {.recorder = {.table = &note_table}};
    rondo_device *device = open_device(t, "sim");
    rondo_stream *stream = NULL;
    T_OK(t, rondo_stream_create(device, NULL, &stream));
    rondo__stream_record(stream, &n.recorder, RONDO_CAPTURE_MODE_DEFAULT);
    rondo_stream_release(stream);
    T_TRUE(t, n.abandoned);
}

static void test_stream_options(rondo_test *t) {
    rondo_device *device = open_device(t, "cpu");
    rondo_stream_options options = RONDO_STREAM_OPTIONS_INIT;
    rondo_stream *stream = NULL;
    options.flags = RONDO_STREAM_ASYNCHRONOUS;
    T_FAILS(t, rondo_stream_create(device, &options, &stream), UNSUPPORTED, "RONDO_STREAM_ASYNCHRONOUS");
    options.flags = 8;
    T_FAILS(t, rondo_stream_create(device, &options, &stream), INVALID_ARGUMENT, "unknown stream flags 0x8");
    options.struct_size = 4; /* a caller without flags */
    T_OK(t, rondo_stream_create(device, &options, &stream));
    T_TRUE(t, rondo_stream_device(stream) == device);
    rondo_stream_release(stream);
    options.struct_size = 0;
    T_FAILS(t, rondo_stream_create(device, &options, &stream), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_stream_create(NULL, NULL, &stream), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_stream_create(device, NULL, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_stream_wrap(device, NULL, &stream), UNSUPPORTED, "cannot wrap");
}

/* ---------------------------------------------------------------------------------------------- kernels by name */

static void run_add(rondo_test *t, rondo_device *device, const rondo_kernel *kernel, bool counted) {
    float host[3][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}, {0}};
    rondo_stream *stream = rondo_stream_default(device);
    rondo_argument arguments[4] = {0};
    rondo_call call = RONDO_CALL_INIT;
    void *memory = NULL;
    T_OK(t, rondo_memory_allocate(device, sizeof host, &memory));
    for (uint32_t i = 0; i < 3; i++) {
        arguments[i] = (rondo_argument){(uint64_t)(uintptr_t)memory + i * sizeof host[0], sizeof host[0],
                                        i < 2 ? RONDO_ACCESS_READ : RONDO_ACCESS_WRITE, 0};
    }
    arguments[3].word = 4;
    call.kernel = *kernel;
    call.arguments = arguments;
    call.argument_count = counted ? 4 : 3;
    call.name = "sum";
    T_OK(t, rondo_stream_copy(stream, memory, host, sizeof host, RONDO_COPY_HOST_TO_DEVICE));
    T_OK(t, rondo_stream_launch(stream, &call));
    T_OK(t, rondo_stream_copy(stream, host, memory, sizeof host, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_stream_synchronize(stream));
    for (int i = 0; i < 4; i++) T_NEAR(t, host[2][i], 11 * (i + 1), 0);
    T_OK(t, rondo_memory_free(device, memory));
}

static void check_kernels(rondo_test *t, const char *name) {
    rondo_device *device = open_device(t, name);
    rondo_kernel add, contract, other;
    const int64_t shape[2] = {2, 2}, negative[1] = {-1};
    T_OK(t, rondo_kernel_prepare(device, "Add", 2, RONDO_DTYPE_F32, 2, shape, &add));
    run_add(t, device, &add, false);
    T_OK(t, rondo_kernel_find(device, "rondo.add", &contract));
    run_add(t, device, &contract, true);
    T_FAILS(t, rondo_kernel_find(device, "rondo.nothing", &other), UNSUPPORTED, "offers 'rondo.nothing'");
    T_FAILS(t, rondo_kernel_prepare(device, "Nothing", 2, RONDO_DTYPE_F32, 2, shape, &other), UNSUPPORTED, "'Nothing'");
    T_FAILS(t, rondo_kernel_prepare(device, "Add", 0, RONDO_DTYPE_F32, 2, shape, &other), INVALID_ARGUMENT, "0 inputs");
    T_FAILS(t, rondo_kernel_prepare(device, "Add", 64, RONDO_DTYPE_F32, 2, shape, &other), INVALID_ARGUMENT,
            "64 inputs");
    T_FAILS(t, rondo_kernel_prepare(device, "Add", 2, RONDO_DTYPE_F32, 17, shape, &other), INVALID_ARGUMENT, "sizes");
    T_FAILS(t, rondo_kernel_prepare(device, "Add", 2, RONDO_DTYPE_F32, 1, NULL, &other), INVALID_ARGUMENT, "sizes");
    T_FAILS(t, rondo_kernel_prepare(device, "Add", 2, RONDO_DTYPE_F32, 1, negative, &other), INVALID_ARGUMENT,
            "negative");
    T_FAILS(t, rondo_kernel_prepare(NULL, "Add", 2, RONDO_DTYPE_F32, 2, shape, &other), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_kernel_find(device, NULL, &other), INVALID_ARGUMENT, NULL);
    rondo_kernel_release(device, add);
    rondo_kernel_release(device, add); /* no longer known: told in the log, nothing more */
    rondo_kernel_release(device, (rondo_kernel){0});
    /* `contract` goes with the device. */
}

static void test_kernels_by_name_on_cpu(rondo_test *t) { check_kernels(t, "cpu"); }

static void test_kernels_by_name_on_sim(rondo_test *t) { check_kernels(t, "sim"); }

RONDO_TEST_MAIN(T(test_bad_calls_are_refused_on_cpu), T(test_bad_calls_are_refused_on_sim),
                T(test_a_recorder_gets_the_work_on_cpu), T(test_a_recorder_gets_the_work_on_sim),
                T(test_a_released_stream_abandons_its_capture), T(test_stream_options), T(test_kernels_by_name_on_cpu),
                T(test_kernels_by_name_on_sim))
