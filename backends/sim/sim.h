/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulator: a device that does nothing until somebody waits for it.
 *
 *   plugin.c    the entry, two devices, settings
 *   device.c    properties, catalogues, counts
 *   memory.c    the device's memory: limit, poison, quarantine, which ranges are alive
 *   stream.c    queues: what is enqueued is copied here
 *   schedule.c  picks the next operation among the streams that could go on, and runs it
 *   event.c     points in streams that others wait for
 */
#ifndef RONDO_BACKENDS_SIM_SIM_H
#define RONDO_BACKENDS_SIM_SIM_H

#include <pthread.h>
#include <stdatomic.h>

#include <rondo/plugin.h>

#define RONDO__SIM_ALIGNMENT 256u
#define RONDO__SIM_DEVICES 2u
#define RONDO__SIM_MEMORY ((uint64_t)1 << 30)      /* bytes, unless the settings say otherwise */
#define RONDO__SIM_QUARANTINE ((uint64_t)32 << 20) /* bytes of freed memory kept poisoned */
#define RONDO__SIM_QUARANTINE_BLOCKS 1024u         /* at most, so that looking through them stays cheap */
#define RONDO__SIM_FRESH 0xCD                      /* memory that nobody has written */
#define RONDO__SIM_FREED 0xDB                      /* memory that is no longer anybody's */

#define RONDO__SIM_COUNTS(X)        \
    X(LAUNCHES, "launches")         \
    X(COPIES, "copies")             \
    X(FILLS, "fills")               \
    X(HOST_CALLS, "host_calls")     \
    X(SYNCHRONIZES, "synchronizes") \
    X(EVENTS, "events")             \
    X(ALLOCATIONS, "allocations")

enum {
#define RONDO_X(name, text) RONDO__SIM_COUNT_##name,
    RONDO__SIM_COUNTS(RONDO_X)
#undef RONDO_X
        RONDO__SIM_COUNT_OF
};

typedef struct rondo__sim_device rondo__sim_device;

typedef struct rondo__sim_block {
    uint64_t base, size;
} rondo__sim_block;

/* Sorted by base. */
typedef struct rondo__sim_blocks {
    rondo__sim_block *items;
    size_t count, capacity;
} rondo__sim_blocks;

/* A record of an event: one each time, so that a wait means the record before it and no other. */
typedef struct rondo__sim_marker {
    uint32_t references;
    bool done, failed;
} rondo__sim_marker;

typedef struct rondo__sim_event {
    rondo__sim_device *device;
    rondo__sim_marker *last; /* null: never recorded */
} rondo__sim_event;

typedef enum rondo__sim_kind {
    RONDO__SIM_LAUNCH,
    RONDO__SIM_COPY,
    RONDO__SIM_FILL,
    RONDO__SIM_HOST_CALL,
    RONDO__SIM_RECORD,
    RONDO__SIM_WAIT
} rondo__sim_kind;

/* Something enqueued, in one block of `size` bytes: a launch is followed by its words, arguments and name, a copy from
 * the host by its data. */
typedef struct rondo__sim_operation {
    struct rondo__sim_operation *next;
    size_t size;
    rondo__sim_kind kind;
    uint32_t argument_count;
    rondo_kernel kernel;
    rondo_host_function function;
    void *user;
    uint64_t destination, source, bytes;
    rondo_copy_kind direction;
    uint8_t value;
    rondo__sim_marker *marker;
    const uint64_t *words;
    const rondo_argument *arguments;
    const char *name; /* never null */
} rondo__sim_operation;

typedef struct rondo__sim_stream {
    rondo__sim_device *device;
    struct rondo__sim_stream *next, *previous;
    rondo__sim_operation *first, **end; /* end: where the next one goes */
    bool running;                       /* one of its operations is being run */
    bool capturing;
    rondo_status failure; /* the first since the last synchronise; what follows is dropped */
    uint64_t dropped;
} rondo__sim_stream;

struct rondo__sim_device {
    const rondo_host_api *host;
    uint32_t index;
    pthread_mutex_t mutex; /* everything below */
    pthread_cond_t idle;   /* signalled when an operation has run */
    bool executing;        /* one operation at a time on the whole device; runs without the mutex */
    pthread_t executor;
    uint64_t random;
    uint64_t limit, used;
    rondo__sim_blocks live;
    rondo__sim_block quarantine[RONDO__SIM_QUARANTINE_BLOCKS]; /* in order of freeing */
    size_t quarantine_count;
    uint64_t quarantined;       /* bytes */
    rondo__sim_stream *streams; /* in order of creation */
    uint64_t counts[RONDO__SIM_COUNT_OF];
};

extern const rondo_device_table rondo__sim_device_table;
extern const rondo_memory_table rondo__sim_memory_table;
extern const rondo_stream_table rondo__sim_stream_table;

void *rondo__sim_allocate(const rondo__sim_device *device, size_t size, size_t alignment);
void rondo__sim_release(const rondo__sim_device *device, void *pointer, size_t size, size_t alignment);

rondo_status rondo__sim_device_open(const rondo_host_api *host, uint32_t index, uint64_t seed, uint64_t memory,
                                    rondo__sim_device **out_device);

/* Takes the mutex, unless the caller is a kernel or host function that this very device runs: INVALID_STATE. */
rondo_status rondo__sim_enter(rondo__sim_device *device, const char *what);
void rondo__sim_leave(rondo__sim_device *device);

/* The rest is called with the mutex held. */

/* What is wrong with [address, address + bytes) as device memory: null when it lies in one live allocation. bytes 0 asks
 * for the address alone. */
const char *rondo__sim_range_problem(const rondo__sim_device *device, uint64_t address, uint64_t bytes);
/* Whether any byte of the range belongs to the device, alive or not. */
bool rondo__sim_range_is_device(const rondo__sim_device *device, uint64_t address, uint64_t bytes);
/* Gives back all the memory that is left. */
void rondo__sim_memory_close(rondo__sim_device *device);

/* Runs one operation of some stream that can go on, or waits for the one that another thread runs. False: nothing can
 * go on and nothing runs. */
bool rondo__sim_step(rondo__sim_device *device);
/* The operation is over, run or dropped. */
void rondo__sim_operation_finish(rondo__sim_device *device, rondo__sim_operation *operation, bool failed);
static inline bool rondo__sim_stream_is_done(const rondo__sim_stream *stream) {
    return !stream->first && !stream->running;
}

/* A zeroed operation with `extra` bytes behind it. */
rondo_status rondo__sim_operation_make(rondo__sim_device *device, rondo__sim_kind kind, size_t extra,
                                       rondo__sim_operation **out_operation);
void rondo__sim_push(rondo__sim_stream *stream, rondo__sim_operation *operation, int count);
/* INVALID_STATE while the stream captures. */
rondo_status rondo__sim_check_stream(const rondo__sim_stream *stream, const char *what);

void rondo__sim_marker_release(rondo__sim_device *device, rondo__sim_marker *marker);

/* Entries of the stream table that event.c has. */
rondo_status rondo__sim_event_create(void *device, void **out_event);
void rondo__sim_event_destroy(void *device, void *event);
rondo_status rondo__sim_event_record(void *event, void *stream);
rondo_status rondo__sim_event_wait(void *event, void *stream);
rondo_status rondo__sim_event_query(void *event, bool *out_done);
rondo_status rondo__sim_event_synchronize(void *event);

#endif
