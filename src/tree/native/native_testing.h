/* SPDX-License-Identifier: Apache-2.0
 *
 * What the room's tests share: a device and short ways to make arrays; and leases without a tree, which count who tells
 * them what. They stand in for the tree's own, so a test program that includes this has no tree. */
#ifndef RONDO_SRC_TREE_NATIVE_NATIVE_TESTING_H
#define RONDO_SRC_TREE_NATIVE_NATIVE_TESTING_H

#include "harness/harness.h"
#include "memory/memory.h"
#include "tree/native/native.h"

typedef struct native_world {
    rondo_test *t;
    rondo_instance *instance;
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph_ops ops;
    rondo_tensor_host host;
} native_world;

static inline void nt_close(native_world *w) {
    if (w->host.destroy) w->host.destroy(w->host.user);
    if (w->ops.destroy) w->ops.destroy(w->ops.user);
    rondo_stream_release(w->stream);
    rondo_device_release(w->device);
    rondo_instance_release(w->instance);
}

static inline void nt_open(rondo_test *t, native_world *w, const char *device,
                           const rondo_array_host_options *options) {
    rondo_instance_options instance = RONDO_INSTANCE_OPTIONS_INIT;
    *w = (native_world){.t = t, .ops = RONDO_GRAPH_OPS_INIT, .host = RONDO_TENSOR_HOST_INIT};
    instance.allocator = rondo_test_allocator(t);
    instance.ignore_plugin_path = 1;
    T_DEFER(t, nt_close, w);
    T_OK(t, rondo_instance_create(&instance, &w->instance));
    T_OK(t, rondo_device_open(w->instance, device, NULL, &w->device));
    T_OK(t, rondo_stream_create(w->device, NULL, &w->stream));
    T_OK(t, rondo_graph_ops_native(w->device, &w->ops));
    T_OK(t, rondo_tensor_host_native(w->device, options, &w->host));
}

static inline void nt_release(rondo_array **place) {
    rondo_array_release(*place);
    *place = NULL;
}

/* count float32 elements on the stream: start, start + 1, ... */
static inline void nt_fill(native_world *w, const rondo_array *array, float start) {
    float values[64];
    void *pointer = NULL;
    uint64_t count = array->bytes / sizeof(float);
    for (uint64_t i = 0; i < count && i < 64; i++) values[i] = start + (float)i;
    T_OK(w->t, rondo_array_data(array, &pointer));
    T_OK(w->t, rondo_stream_copy(w->stream, pointer, values, array->bytes, RONDO_COPY_HOST_TO_DEVICE));
}

/* The first element of it, in memory: of a view the first that it begins at. */
static inline float nt_at(native_world *w, uint64_t address) {
    float value = -1.0f;
    T_OK(w->t, rondo_stream_copy(w->stream, &value, (const void *)(uintptr_t)address, sizeof value,
                                 RONDO_COPY_DEVICE_TO_HOST));
    T_OK(w->t, rondo_stream_synchronize(w->stream));
    return value;
}

static inline float nt_first(native_world *w, const rondo_array *array) {
    void *pointer = NULL;
    T_OK(w->t, rondo_array_data(array, &pointer));
    return nt_at(w, (uint64_t)(uintptr_t)pointer);
}

static inline uint64_t nt_live(const native_world *w) {
    uint64_t bytes = 0, count = 0;
    rondo_memory_usage(w->device, &bytes, &count);
    return count;
}

/* The thread sanitizer takes twenty times as long, and has nothing to see where allocations fail in turn on one thread. */
#if defined(__SANITIZE_THREAD__)
#define NT_THREADS_ONLY 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NT_THREADS_ONLY 1
#endif
#endif
#if defined(NT_THREADS_ONLY)
#define NT(function) T_PLAIN(function)
#else
#define NT(function) T(function)
#endif

/* One test a device. */
#define NT_BOTH(name)                                            \
    static void name##_on_cpu(rondo_test *t) { name(t, "cpu"); } \
    static void name##_on_sim(rondo_test *t) { name(t, "sim"); }
#define NT_ENTRIES(name) NT(name##_on_cpu), NT(name##_on_sim)

#endif
