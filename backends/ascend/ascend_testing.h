/* SPDX-License-Identifier: Apache-2.0
 *
 * What the backend's tests are made of: the simulated library, or one like it, a device of it with three blocks of 64 bytes, and
 * the kernels that write there. */
#ifndef BACKENDS_ASCEND_ASCEND_TESTING_H
#define BACKENDS_ASCEND_ASCEND_TESTING_H

#include <acl_simulator.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rondo/runtime.h>

#include "backends/ascend/ascend.h"
#include "harness/harness.h"

static char lines[8192]; /* of the log, down to this level */
static rondo_log_level log_level = RONDO_LOG_INFO;

static inline void take_line(void *user, rondo_log_level level, const char *text) {
    (void)user, (void)level;
    size_t used = strlen(lines);
    (void)snprintf(lines + used, sizeof lines - used, "%s\n", text);
}

static const char *older_library; /* in place of the simulated one, while a test has it */

static inline const char *library_path(rondo_test *t) {
    const char *path = older_library ? older_library : getenv("RONDO_TEST_ACL_LIBRARY");
    if (!path || access(path, R_OK)) rondo_test_skip(t, "RONDO_TEST_ACL_LIBRARY names no simulated libascendcl.so");
    return path;
}

static inline rondo_instance *open_instance(rondo_test *t, const char *library) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    rondo_instance *instance = NULL;
    lines[0] = 0;
    options.allocator = rondo_test_allocator(t);
    options.ignore_plugin_path = 1;
    options.log = take_line;
    options.log_level = log_level;
    if (library) T_EQ(t, setenv("RONDO_ACL_LIBRARY", library, 1), 0);
    T_OK(t, rondo_instance_create(&options, &instance));
    T_DEFER(t, rondo_instance_release, instance);
    return instance;
}

static inline const aclsim_control *control_of(rondo_test *t) {
    void *library = dlopen(library_path(t), RTLD_NOW | RTLD_LOCAL);
    T_TRUE(t, library != NULL);
    int (*function)(void *, const char *, void **) = NULL;
    void *symbol = dlsym(library, "aclrtBinaryGetFunction"), *handle = NULL;
    memcpy(&function, &symbol, sizeof symbol);
    T_EQ(t, function(NULL, ACLSIM_CONTROL, &handle), 0);
    (void)dlclose(library); /* the backend has it open, and for good */
    return handle;
}

static inline void settings_back(void *pointer) {
    const aclsim_control *control = pointer;
    (void)control->set("STREAMS", 1984);
    (void)control->set("EVENTS", 65536);
    (void)control->set("TASK_UPDATE", 1);
    (void)control->set("SOFTWARE_SQ", 1);
    (void)control->set("DELAY", 0);
    (void)control->set("NOTIFIES", 1024);
    (void)control->fail("aclmdlRICaptureEnd", 0, 0);
    (void)control->fail("aclmdlRICaptureTaskGrpEnd", 0, 0);
    (void)control->fail("aclmdlRICaptureTaskUpdateEnd", 0, 0);
    (void)control->fail("aclmdlRICaptureThreadExchangeMode", 0, 0);
    (void)control->fail("aclrtLaunchKernelWithHostArgs", 0, 0);
    (void)control->fail("aclrtRecordEventWithFlag", 0, 0);
    (void)control->fail("aclrtRecordEvent", 0, 0);
}

typedef struct bed {
    const aclsim_control *control;
    rondo_device *device;
    rondo_stream *stream, *side;
    rondo_kernel iota, copy, spin;
    char *a, *b, *c;
} bed;

static inline void release_kernels(void *pointer) {
    const bed *b = pointer;
    if (b->iota.function) rondo_kernel_release(b->device, b->iota);
    if (b->copy.function) rondo_kernel_release(b->device, b->copy);
    if (b->spin.function) rondo_kernel_release(b->device, b->spin);
}

static inline rondo_stream *open_stream(rondo_test *t, rondo_device *device) {
    rondo_stream *stream = NULL;
    T_OK(t, rondo_stream_create(device, NULL, &stream));
    T_DEFER(t, rondo_stream_release, stream);
    return stream;
}

static inline void bed_open(rondo_test *t, const char *settings, bed *b) {
    *b = (bed){0};
    rondo_instance *instance = open_instance(t, library_path(t));
    T_OK(t, rondo_device_open(instance, "ascend", settings, &b->device));
    T_DEFER(t, rondo_device_release, b->device);
    b->control = control_of(t);
    T_DEFER(t, settings_back, (void *)(uintptr_t)b->control);
    T_DEFER(t, release_kernels, b);
    T_OK(t, rondo_kernel_find(b->device, "rondo.iota", &b->iota));
    T_OK(t, rondo_kernel_find(b->device, "rondo.copy", &b->copy));
    T_OK(t, rondo_kernel_find(b->device, "rondo.spin", &b->spin));
    b->stream = open_stream(t, b->device);
    b->side = open_stream(t, b->device);
    void *memory[3];
    for (int i = 0; i < 3; i++) {
        T_OK(t, rondo_memory_allocate(b->device, 64, &memory[i]));
        T_OK(t, rondo_stream_fill(b->stream, memory[i], 0, 64));
    }
    T_OK(t, rondo_stream_synchronize(b->stream));
    b->a = memory[0];
    b->b = memory[1];
    b->c = memory[2];
    b->control->clear_counts();
}

static inline rondo_status iota(const bed *b, rondo_stream *stream, void *out, uint64_t start) {
    rondo_argument arguments[] = {
        {(uint64_t)(uintptr_t)out, 64, RONDO_ACCESS_WRITE, 0}, {8, 0, 0, 0}, {start, 0, 0, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel = b->iota;
    call.arguments = arguments;
    call.argument_count = 3;
    call.name = "iota";
    return rondo_stream_launch(stream, &call);
}

static inline rondo_status copy(const bed *b, rondo_stream *stream, const void *from, void *to) {
    rondo_argument arguments[] = {{(uint64_t)(uintptr_t)from, 64, RONDO_ACCESS_READ, 0},
                                  {(uint64_t)(uintptr_t)to, 64, RONDO_ACCESS_WRITE, 0},
                                  {64, 0, 0, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel = b->copy;
    call.arguments = arguments;
    call.argument_count = 3;
    call.name = "copy";
    return rondo_stream_launch(stream, &call);
}

static inline rondo_status spin(const bed *b, rondo_stream *stream) {
    rondo_argument argument = {5000000, 0, 0, 0};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel = b->spin;
    call.arguments = &argument;
    call.argument_count = 1;
    return rondo_stream_launch(stream, &call);
}

static inline void want(rondo_test *t, const bed *b, const void *memory, uint64_t start) {
    uint64_t got[8];
    T_OK(t, rondo_stream_copy(b->stream, got, memory, 64, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_stream_synchronize(b->stream));
    for (uint64_t i = 0; i < 8; i++) T_EQ(t, got[i], start + i);
}

static inline rondo_graph *open_graph(rondo_test *t, const bed *b) {
    rondo_graph *graph = NULL;
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    options.name = "g";
    T_OK(t, rondo_graph_create(b->device, &options, &graph));
    T_DEFER(t, rondo_graph_release, graph);
    return graph;
}

static const rondo_pool_id no_pool = {0, 0};

static inline bool is_native(rondo_test *t, rondo_graph *graph) {
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    T_OK(t, rondo_graph_get_info(graph, &info));
    return info.native != 0;
}

static inline rondo_event *open_event(rondo_test *t, const bed *b) {
    rondo_event *event = NULL;
    T_OK(t, rondo_event_create(b->device, &event));
    T_DEFER(t, rondo_event_release, event);
    return event;
}

/* A copy of the library in which one symbol has another name. */
static inline void write_older_library(rondo_test *t, const char *symbol, char *path, size_t capacity) {
    FILE *from = fopen(library_path(t), "rb"), *to = NULL;
    T_TRUE(t, from != NULL);
    T_EQ(t, fseek(from, 0, SEEK_END), 0);
    size_t size = (size_t)ftell(from), length = strlen(symbol), found = 0;
    char *bytes = malloc(size);
    rewind(from);
    T_TRUE(t, bytes && fread(bytes, 1, size, from) == size);
    T_EQ(t, fclose(from), 0);
    for (size_t i = 0; i + length <= size; i++) {
        if (memcmp(bytes + i, symbol, length) != 0) continue;
        bytes[i + length - 1] = '_';
        found++;
    }
    (void)snprintf(path, capacity, "%s/libascendcl-%s.so", rondo_test_folder(t), symbol);
    to = fopen(path, "wb");
    T_TRUE(t, found && to && fwrite(bytes, 1, size, to) == size);
    T_EQ(t, fclose(to), 0);
    free(bytes);
}

static inline void forget_older_library(void *unused) {
    (void)unused;
    older_library = NULL;
}

/* What a vendor's package does by itself: its stream, its own launches. */
typedef struct vendor {
    void *library, *stream, *side;
    int (*create)(void **);
    int (*destroy)(void *);
    int (*set)(void *, size_t, int32_t, size_t, void *);
    int (*device)(int32_t);
} vendor;

static inline void vendor_find(rondo_test *t, vendor *v, const char *name, void *function) {
    void *symbol = dlsym(v->library, name);
    T_TRUE(t, symbol != NULL);
    memcpy(function, &symbol, sizeof symbol);
}

static inline void vendor_close(void *pointer) {
    vendor *v = pointer;
    if (v->stream) (void)v->destroy(v->stream);
    if (v->side) (void)v->destroy(v->side);
    (void)dlclose(v->library);
}

static inline void vendor_open(rondo_test *t, vendor *v) {
    *v = (vendor){.library = dlopen(library_path(t), RTLD_NOW | RTLD_LOCAL)};
    T_TRUE(t, v->library != NULL);
    T_DEFER(t, vendor_close, v);
    vendor_find(t, v, "aclrtCreateStream", &v->create);
    vendor_find(t, v, "aclrtDestroyStream", &v->destroy);
    vendor_find(t, v, "aclrtMemsetAsync", &v->set);
    vendor_find(t, v, "aclrtSetDevice", &v->device);
    T_EQ(t, v->device(0), 0);
    T_EQ(t, v->create(&v->stream), 0);
    T_EQ(t, v->create(&v->side), 0);
}

static inline rondo_stream *wrap(rondo_test *t, const bed *b, void *native) {
    rondo_stream *stream = NULL;
    T_OK(t, rondo_stream_wrap(b->device, native, &stream));
    T_DEFER(t, rondo_stream_release, stream);
    return stream;
}

#endif
