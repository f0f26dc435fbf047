/* SPDX-License-Identifier: Apache-2.0
 *
 * What the room's tests share: a device, streams, figures, and captures without a graph. */
#ifndef RONDO_SRC_MEMORY_MEMORY_TESTING_H
#define RONDO_SRC_MEMORY_MEMORY_TESTING_H

#include "harness/harness.h"
#include "memory/memory.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

typedef struct world {
    rondo_instance *instance;
    rondo_device *device;
    rondo__memory *memory;
} world;

static inline void world_close(world *w) {
    rondo_device_release(w->device);
    rondo_instance_release(w->instance);
}

static inline void world_open(rondo_test *t, world *w, const char *name, const char *settings) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    *w = (world){0};
    options.allocator = rondo_test_allocator(t);
    options.ignore_plugin_path = 1;
    T_DEFER(t, world_close, w);
    T_OK(t, rondo_instance_create(&options, &w->instance));
    T_OK(t, rondo_device_open(w->instance, name, settings, &w->device));
    w->memory = w->device->memory;
}

static inline rondo_stream *world_stream(rondo_test *t, world *w) {
    rondo_stream *stream = NULL;
    T_OK(t, rondo_stream_create(w->device, NULL, &stream));
    T_DEFER(t, rondo_stream_release, stream);
    return stream;
}

static inline char *take(rondo_test *t, rondo_stream *stream, uint64_t size) {
    void *pointer = NULL;
    T_OK(t, rondo_memory_allocate_on(stream, size, &pointer));
    return pointer;
}

static inline void give(rondo_test *t, world *w, void *pointer) { T_OK(t, rondo_memory_free(w->device, pointer)); }

static inline rondo_memory_statistics figures_of(rondo_test *t, world *w, rondo_pool_id pool) {
    rondo_memory_statistics s = RONDO_MEMORY_STATISTICS_INIT;
    T_OK(t, rondo_memory_get_statistics(w->device, pool, &s));
    return s;
}

static inline rondo_memory_statistics figures(rondo_test *t, world *w) {
    return figures_of(t, w, (rondo_pool_id){0, 0});
}

static inline rondo_pool_id begin_thread(rondo_test *t, world *w) {
    rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
    rondo_pool_id pool = rondo_pool_handle(w->instance);
    T_OK(t, rondo_memory_pool_begin(w->device, pool, &filter));
    return pool;
}

static inline uint64_t address_of(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

/* A capture as far as memory knows of it: something that records a stream. */
typedef struct recorded {
    rondo__recorder recorder;
    rondo_stream *stream;
    uint64_t id;
} recorded;

static inline void recorded_status(rondo__recorder *recorder, rondo_capture_status *out_status) {
    out_status->active = 1;
    out_status->id = ((recorded *)(void *)recorder)->id;
}

static inline void recorded_abandon(rondo__recorder *recorder, rondo_stream *stream) {
    (void)recorder;
    rondo__stream_record(stream, NULL, 0);
}

static inline void record_end(recorded *r) {
    if (r->stream) rondo__stream_record(r->stream, NULL, 0);
    r->stream = NULL;
}

static inline void record_begin(rondo_test *t, recorded *r, rondo_stream *stream, uint64_t id) {
    static const rondo__recorder_table table = {.status = recorded_status, .abandon = recorded_abandon};
    *r = (recorded){{.table = &table}, stream, id};
    T_DEFER(t, record_end, r);
    rondo__stream_record(stream, &r->recorder, 0);
}

#endif
