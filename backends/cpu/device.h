/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU as a device: memory is host memory, and a stream runs each call when it is enqueued. */
#ifndef RONDO_BACKENDS_CPU_DEVICE_H
#define RONDO_BACKENDS_CPU_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include <rondo/plugin.h>

/* What is counted. */
#define RONDO__CPU_COUNTS(X)        \
    X(LAUNCHES, "launches")         \
    X(COPIES, "copies")             \
    X(FILLS, "fills")               \
    X(HOST_CALLS, "host_calls")     \
    X(SYNCHRONIZES, "synchronizes") \
    X(EVENTS, "events")             \
    X(ALLOCATIONS, "allocations")

enum {
#define RONDO_X(name, text) RONDO__CPU_COUNT_##name,
    RONDO__CPU_COUNTS(RONDO_X)
#undef RONDO_X
        RONDO__CPU_COUNT_OF
};

/* Written by one thread at a time and read by any: a plain load and store, without a locked instruction. */
typedef struct rondo__cpu_counts {
    atomic_uint_fast64_t values[RONDO__CPU_COUNT_OF];
} rondo__cpu_counts;

static inline void rondo__cpu_count(rondo__cpu_counts *counts, int what, uint64_t by) {
    uint64_t value = atomic_load_explicit(&counts->values[what], memory_order_relaxed);
    atomic_store_explicit(&counts->values[what], value + by, memory_order_relaxed);
}

typedef struct rondo__cpu_device rondo__cpu_device;

typedef struct rondo__cpu_stream {
    rondo__cpu_device *device;
    struct rondo__cpu_stream *next, *previous; /* under the device's mutex */
    rondo__cpu_counts counts;
} rondo__cpu_stream;

struct rondo__cpu_device {
    const rondo_host_api *host;
    pthread_mutex_t mutex;
    rondo__cpu_stream *streams;
    rondo__cpu_counts counts; /* of streams that are gone, and allocations; under the mutex */
};

extern const rondo_stream_table rondo__cpu_stream_table;
extern const rondo_device_table rondo__cpu_device_table;

rondo_status rondo__cpu_device_open(const rondo_host_api *host, rondo__cpu_device **out_device);

#endif
