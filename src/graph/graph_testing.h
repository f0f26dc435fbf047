/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of graphs and contexts share: a device with its contract kernels, and short ways to enqueue. Only test
 * programs include it. */
#ifndef RONDO_SRC_GRAPH_GRAPH_TESTING_H
#define RONDO_SRC_GRAPH_GRAPH_TESTING_H

#include <string.h>

#include "graph/graph.h"
#include "harness/harness.h"

#define GT_BUFFERS 8u
#define GT_FLOATS 16u
#define GT_BYTES (GT_FLOATS * sizeof(float))

#define GT_LARGE 12352u /* a size that nothing else has */

typedef struct graph_fixture {
    rondo_test *t;
    rondo_allocator allocator;
    _Alignas(4096) char place[GT_LARGE]; /* where the one allocation of GT_LARGE bytes lies */
    bool place_taken;
    rondo_instance *instance;
    rondo_device *device;
    rondo_stream *stream, *other;
    rondo_kernel add, fill, copy;
    float *buffers[GT_BUFFERS];
    unsigned warnings;
    char warning[256];
} graph_fixture;

static inline void gt_log(void *user, rondo_log_level level, const char *text) {
    graph_fixture *f = user;
    if (level != RONDO_LOG_WARNING) return;
    f->warnings++;
    size_t length = strlen(text) < sizeof f->warning - 1u ? strlen(text) : sizeof f->warning - 1u;
    memcpy(f->warning, text, length);
    f->warning[length] = '\0';
}

static inline void *gt_reallocate(void *self, void *pointer, size_t old_size, size_t new_size, size_t alignment) {
    graph_fixture *f = self;
    rondo_allocator under = rondo_allocator_default();
    if (pointer == f->place) {
        if (new_size) return NULL;
        f->place_taken = false;
        return NULL;
    }
    if (!pointer && new_size == GT_LARGE && !f->place_taken) {
        f->place_taken = true;
        return f->place;
    }
    return under.reallocate(under.self, pointer, old_size, new_size, alignment);
}

static inline void gt_close(graph_fixture *f) {
    for (unsigned i = 0; i < GT_BUFFERS; i++)
        if (f->buffers[i]) rondo_status_release(rondo_memory_free(f->device, f->buffers[i]));
    if (f->add.function) rondo_kernel_release(f->device, f->add);
    if (f->fill.function) rondo_kernel_release(f->device, f->fill);
    if (f->copy.function) rondo_kernel_release(f->device, f->copy);
    rondo_stream_release(f->other);
    rondo_stream_release(f->stream);
    rondo_device_release(f->device);
    rondo_instance_release(f->instance);
}

static inline void gt_open(rondo_test *t, graph_fixture *f, const char *device) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    *f = (graph_fixture){.t = t};
    f->allocator = (rondo_allocator){f, gt_reallocate};
    options.allocator = &f->allocator;
    options.ignore_plugin_path = 1;
    options.log = gt_log;
    options.log_user = f;
    T_DEFER(t, gt_close, f);
    T_OK(t, rondo_instance_create(&options, &f->instance));
    T_OK(t, rondo_device_open(f->instance, device, NULL, &f->device));
    T_OK(t, rondo_stream_create(f->device, NULL, &f->stream));
    T_OK(t, rondo_stream_create(f->device, NULL, &f->other));
    T_OK(t, rondo_kernel_find(f->device, "rondo.add", &f->add));
    T_OK(t, rondo_kernel_find(f->device, "rondo.fill", &f->fill));
    T_OK(t, rondo_kernel_find(f->device, "rondo.copy", &f->copy));
    for (unsigned i = 0; i < GT_BUFFERS; i++) {
        void *memory;
        T_OK(t, rondo_memory_allocate(f->device, GT_BYTES, &memory));
        f->buffers[i] = memory;
        for (unsigned j = 0; j < GT_FLOATS; j++) f->buffers[i][j] = (float)(100u * i + j);
    }
}

static inline uint64_t gt_word(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

/* out = a + b over a buffer. */
static inline rondo_status gt_add_named(const graph_fixture *f, rondo_stream *stream, const char *name, const void *a,
                                        const void *b, void *out) {
    const rondo_argument arguments[4] = {{gt_word(a), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(b), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(out), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                         {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.argument_count = 4;
    call.kernel = f->add;
    call.arguments = arguments;
    call.name = name;
    return rondo_stream_launch(stream, &call);
}

static inline rondo_status gt_add(const graph_fixture *f, const void *a, const void *b, void *out) {
    return gt_add_named(f, f->stream, "add", a, b, out);
}

static inline rondo_status gt_begin(const graph_fixture *f, rondo_graph *graph) {
    return rondo_graph_capture_begin(graph, f->stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL);
}

/* Replays once and waits. */
static inline rondo_status gt_replay(const graph_fixture *f, rondo_graph *graph) {
    RONDO__TRY(rondo_graph_replay(graph, f->stream));
    return rondo_stream_synchronize(f->stream);
}

static inline rondo_status gt_free(graph_fixture *f, unsigned buffer) {
    void *memory = f->buffers[buffer];
    f->buffers[buffer] = NULL;
    return rondo_memory_free(f->device, memory);
}

/* A buffer of GT_LARGE bytes, all of which lie at one place, one after the other: as an allocator that gives an address
 * out again at once. On cpu, where device memory comes from the instance's allocator. */
static inline void gt_enlarge(graph_fixture *f, unsigned buffer) {
    void *memory;
    T_OK(f->t, gt_free(f, buffer));
    T_OK(f->t, rondo_memory_allocate(f->device, GT_LARGE, &memory));
    f->buffers[buffer] = memory;
    for (unsigned i = 0; i < GT_FLOATS; i++) f->buffers[buffer][i] = (float)(100u * buffer + i);
}

/* Frees such a buffer and allocates it anew, at the same address. */
static inline void gt_recycle(graph_fixture *f, unsigned buffer) {
    void *before = f->buffers[buffer];
    gt_enlarge(f, buffer);
    T_TRUE(f->t, f->buffers[buffer] == before);
}

/* One test a device that runs contract kernels. */
#define GT_BOTH(name)                                            \
    static void name##_on_cpu(rondo_test *t) { name(t, "cpu"); } \
    static void name##_on_sim(rondo_test *t) { name(t, "sim"); }
#define GT_ENTRIES(name) T(name##_on_cpu), T(name##_on_sim)
#define GT_PLAIN_ENTRIES(name) T_PLAIN(name##_on_cpu), T_PLAIN(name##_on_sim)

#endif
