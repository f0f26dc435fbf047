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
 *   order.c     what is known to come before what: a clock a stream
 *   shadow.c    who touched which bytes: races, and writes behind a call's back
 *   span.c      which ranges touch a given one
 *   settings.c  what is asked for when a device is opened
 *   fault.c     the tables that the core sees: every entry counts its calls and fails when asked to
 *   mutations.c, mutations_work.c, mutations_order.c
 *               deliberate faults, for tests of tests
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
    X(CONDITIONS, "conditions")     \
    X(SYNCHRONIZES, "synchronizes") \
    X(EVENTS, "events")             \
    X(ALLOCATIONS, "allocations")

enum {
#define RONDO_X(name, text) RONDO__SIM_COUNT_##name,
    RONDO__SIM_COUNTS(RONDO_X)
#undef RONDO_X
        RONDO__SIM_COUNT_OF
};

/* Entries of the tables by plugin.h's names, and whether they can fail: what returns nothing is only counted. */
#define RONDO__SIM_ENTRIES(X)                    \
    X(ENUMERATE, "enumerate", 1)                 \
    X(OPEN, "open", 1)                           \
    X(PROPERTIES, "properties", 1)               \
    X(MEMORY_INFO, "memory_info", 1)             \
    X(CATALOGUE_AT, "catalogue_at", 0)           \
    X(COUNTER, "counter", 1)                     \
    X(CLOSE, "close", 0)                         \
    X(ALLOCATE, "allocate", 1)                   \
    X(FREE, "free", 0)                           \
    X(HOST_ALLOCATE, "host_allocate", 1)         \
    X(HOST_FREE, "host_free", 0)                 \
    X(ON_REUSE, "on_reuse", 0)                   \
    X(CREATE, "create", 1)                       \
    X(DESTROY, "destroy", 0)                     \
    X(LAUNCH, "launch", 1)                       \
    X(COPY, "copy", 1)                           \
    X(FILL, "fill", 1)                           \
    X(HOST_CALL, "host_call", 1)                 \
    X(SYNCHRONIZE, "synchronize", 1)             \
    X(QUERY, "query", 1)                         \
    X(EVENT_CREATE, "event_create", 1)           \
    X(EVENT_DESTROY, "event_destroy", 0)         \
    X(EVENT_RECORD, "event_record", 1)           \
    X(EVENT_WAIT, "event_wait", 1)               \
    X(EVENT_QUERY, "event_query", 1)             \
    X(EVENT_SYNCHRONIZE, "event_synchronize", 1) \
    X(CAPTURE_CHANGED, "capture_changed", 0)     \
    X(CONDITION_BEGIN, "condition_begin", 1)     \
    X(CONDITION_END, "condition_end", 0)
enum {
#define RONDO_X(name, text, fails) RONDO__SIM_ENTRY_##name,
    RONDO__SIM_ENTRIES(RONDO_X)
#undef RONDO_X
        RONDO__SIM_ENTRY_OF,
    RONDO__SIM_ENTRY_ANY = RONDO__SIM_ENTRY_OF /* a device's entries that can fail, counted together */
};

/* Fails the nth call of an entry; nth 0: all of them. */
typedef struct rondo__sim_fault {
    int entry;
    uint64_t nth;
    rondo_code code;
} rondo__sim_fault;
#define RONDO__SIM_FAULTS_MAX 16u

typedef struct rondo__sim_settings {
    uint64_t seed, memory;
    bool races, sums;
    int mutation; /* RONDO__SIM_MUTATION_NONE, or one of mutations.h */
    uint32_t fault_count;
    rondo__sim_fault faults[RONDO__SIM_FAULTS_MAX];
} rondo__sim_settings;

/* How often each entry was called; one of the plugin, for what is called before there is a device, one a device. */
typedef struct rondo__sim_calls {
    atomic_uint_least64_t of[RONDO__SIM_ENTRY_OF + 1];
    atomic_uint_least64_t faults; /* injected */
} rondo__sim_calls;

typedef struct rondo__sim_device rondo__sim_device;

/* How far each stream is known to have come, by the stream's slot. Shared and constant; null: nothing is known. */
typedef struct rondo__sim_clock {
    uint32_t references, count;
    uint64_t times[];
} rondo__sim_clock;

/* Who an operation was, for as long as the bytes it touched remember it. */
typedef struct rondo__sim_label {
    uint32_t references, slot;
    uint64_t time; /* the time of its stream */
    uint64_t bytes;
    int kind;
    char name[];
} rondo__sim_label;

/* [base, end) among others, never empty. */
typedef struct rondo__sim_span {
    uint64_t base, end;
    uint64_t highest; /* end of it and all below it in the tree */
    struct rondo__sim_span *left, *right;
    uint32_t priority, reserved;
} rondo__sim_span;

typedef struct rondo__sim_spans {
    rondo__sim_span *root;
    uint64_t random;
    uint64_t steps; /* nodes visited so far: what it costs, for tests */
} rondo__sim_spans;

/* Bytes with one history. Reads that come before another kept read are not kept: who comes after the later one comes
 * after both. */
#define RONDO__SIM_CELL_READS 4u
typedef struct rondo__sim_cell {
    rondo__sim_span span; /* first */
    rondo__sim_label *write, *reads[RONDO__SIM_CELL_READS];
} rondo__sim_cell;

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
    bool done;
    uint64_t failure; /* the number of the failure that its stream had; 0: none */
    rondo__sim_clock *clock;
} rondo__sim_marker;

typedef struct rondo__sim_event {
    rondo__sim_device *device;
    rondo__sim_marker *last; /* null: never recorded */
    uint64_t mutant;         /* mutations: a count of its own */
} rondo__sim_event;

typedef enum rondo__sim_kind {
    RONDO__SIM_LAUNCH,
    RONDO__SIM_COPY,
    RONDO__SIM_FILL,
    RONDO__SIM_HOST_CALL,
    RONDO__SIM_RECORD,
    RONDO__SIM_WAIT,
    RONDO__SIM_BEGIN, /* of a condition: its source */
    RONDO__SIM_END
} rondo__sim_kind;
/* What is dropped behind a failure, and passed over where a condition does not hold. */
static inline bool rondo__sim_kind_is_work(rondo__sim_kind kind) { return kind <= RONDO__SIM_HOST_CALL; }

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
    bool passed_over; /* work: a condition did not hold */
    bool forgiven;    /* a wait: the work it is for had failed, and that had been told, before it was enqueued */
    const uint64_t *words;
    const rondo_argument *arguments;
    const char *name; /* never null */
    rondo__sim_clock *clock;
    rondo__sim_label *label;
    uint64_t tracked, summed;      /* bit i: range i is in the shadow, has a sum */
    uint64_t *sums;                /* of the ranges; null for those that have none */
    rondo__sim_span *writes;       /* of the ranges: those that it is going to write are in the device's tree */
    uint64_t own_sum;              /* a copy's */
    rondo__sim_span own_writes[2]; /* a copy's or fill's */
    uint64_t pinned;               /* a copy's source when it is pinned host memory, else 0 */
} rondo__sim_operation;

typedef struct rondo__sim_stream {
    rondo__sim_device *device;
    struct rondo__sim_stream *next, *previous;
    rondo__sim_operation *first, **end; /* end: where the next one goes */
    bool running;                       /* one of its operations is being run */
    bool capturing;
    rondo_status failure; /* the first since the last synchronise; what follows is dropped */
    uint64_t failure_number;
    uint64_t dropped;
    uint64_t skipping;          /* conditions begun and not ended, from the first that does not hold on */
    rondo__sim_operation *ends; /* of conditions that were begun; put by so that an end cannot fail */
    uint32_t slot;
    uint64_t time;           /* operations so far, by all streams that had the slot */
    rondo__sim_clock *clock; /* what it knows of others */
    uint64_t host_version;   /* what the host knew when it was last looked at */
    uint64_t mutant;         /* mutations: a count of its own */
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
    uint64_t failures; /* so far, each a number */
    rondo__sim_blocks pinned;
    /* order.c: slots of streams, and how far the host has seen each */
    uint64_t *slot_times, *host_times;
    bool *slot_used;
    uint32_t slot_count;
    uint64_t host_version;
    /* shadow.c */
    rondo__sim_spans cells;       /* of rondo__sim_cell, which do not overlap */
    rondo__sim_spans pending;     /* what is enqueued is going to write there */
    rondo__sim_cell *spare;       /* by span.right */
    size_t spare_count, promised; /* promised: to what is enqueued, at most spare_count */
    rondo__sim_settings settings; /* constant */
    rondo__sim_calls calls;
    rondo__sim_calls *plugin_calls;
    void *mutant; /* what a mutation remembers */
};

/* The device itself. */
extern const rondo_device_table rondo__sim_device_table;
extern const rondo_memory_table rondo__sim_memory_table;
extern const rondo_stream_table rondo__sim_stream_table;
/* The same with counts and injected failures: what the core sees. */
extern const rondo_device_table rondo__sim_fault_device_table;
extern const rondo_memory_table rondo__sim_fault_memory_table;
extern const rondo_stream_table rondo__sim_fault_stream_table;

/* Counts the call; the failure that the settings ask for at this call, if any. */
rondo_status rondo__sim_fault_of(const rondo_host_api *host, rondo__sim_calls *calls,
                                 const rondo__sim_settings *settings, int entry);
/* RONDO__SIM_ENTRY_OF when there is none of the name; _ANY for "any". */
int rondo__sim_entry_find(const char *name, size_t length);
bool rondo__sim_entry_fails(int entry);

void rondo__sim_settings_init(rondo__sim_settings *settings);
/* The environment, then the text, which may be null. INVALID_ARGUMENT. */
rondo_status rondo__sim_settings_read(const rondo_host_api *host, const char *text, rondo__sim_settings *settings);

void *rondo__sim_allocate(const rondo__sim_device *device, size_t size, size_t alignment);
void rondo__sim_release(const rondo__sim_device *device, void *pointer, size_t size, size_t alignment);

rondo_status rondo__sim_device_open(const rondo_host_api *host, uint32_t index, const rondo__sim_settings *settings,
                                    rondo__sim_device **out_device);

/* Takes the mutex, unless the caller is a kernel or host function that this very device runs: INVALID_STATE. */
rondo_status rondo__sim_enter(rondo__sim_device *device, const char *what);
void rondo__sim_leave(rondo__sim_device *device);

/* The rest is called with the mutex held. */

/* What is wrong with [address, address + bytes) as device memory: null when it lies in one live allocation. bytes 0 asks
 * for the address alone. */
const char *rondo__sim_range_problem(const rondo__sim_device *device, uint64_t address, uint64_t bytes);
/* Bytes from there to the end of its live allocation; 0 where there is none. */
uint64_t rondo__sim_range_rest(const rondo__sim_device *device, uint64_t address);
/* Whether any byte of the range belongs to the device, alive or not. */
bool rondo__sim_range_is_device(const rondo__sim_device *device, uint64_t address, uint64_t bytes);
/* Gives back all the memory that is left. */
void rondo__sim_memory_close(rondo__sim_device *device);

/* Runs one operation of some stream that can go on, or waits for the one that another thread runs. False: nothing can
 * go on and nothing runs. */
bool rondo__sim_step(rondo__sim_device *device);
/* The operation is over; failure: 0 when it ran, the number of why it was dropped, RONDO__SIM_FAILURE_NEVER_TOLD. */
#define RONDO__SIM_FAILURE_NEVER_TOLD UINT64_MAX
void rondo__sim_operation_finish(rondo__sim_device *device, rondo__sim_operation *operation, uint64_t failure);
/* Whether the work before the record failed and no synchronise has told it. */
bool rondo__sim_marker_is_failed(const rondo__sim_device *device, const rondo__sim_marker *marker);
static inline bool rondo__sim_stream_is_done(const rondo__sim_stream *stream) {
    return !stream->first && !stream->running;
}

/* A zeroed operation with `extra` bytes behind it. */
rondo_status rondo__sim_operation_make(rondo__sim_device *device, rondo__sim_kind kind, size_t extra,
                                       rondo__sim_operation **out_operation);
/* Enqueues, or fails and releases the operation. */
rondo_status rondo__sim_push(rondo__sim_stream *stream, rondo__sim_operation *operation, int count);
/* INVALID_STATE while the stream captures. */
rondo_status rondo__sim_check_stream(const rondo__sim_stream *stream, const char *what);

void rondo__sim_marker_release(rondo__sim_device *device, rondo__sim_marker *marker);

/* order.c. Clocks are counted references; a null one is older than everything. */
rondo_status rondo__sim_slot_take(rondo__sim_stream *stream);
void rondo__sim_slot_give_back(rondo__sim_stream *stream);
void rondo__sim_clock_release(rondo__sim_device *device, rondo__sim_clock *clock);
/* The stream learns what the host knows; its next operation gets a time. */
rondo_status rondo__sim_order_enqueue(rondo__sim_stream *stream, rondo__sim_operation *operation);
/* A clock of everything the stream has enqueued. */
rondo_status rondo__sim_order_snapshot(rondo__sim_stream *stream, rondo__sim_clock **out_clock);
rondo_status rondo__sim_order_join(rondo__sim_stream *stream, const rondo__sim_clock *clock);
/* The host has seen the end of all that the stream, or the clock, knows. */
void rondo__sim_order_host_saw(rondo__sim_stream *stream);
void rondo__sim_order_host_saw_clock(rondo__sim_device *device, const rondo__sim_clock *clock);
bool rondo__sim_order_host_saw_all(const rondo__sim_device *device);
bool rondo__sim_order_before(const rondo__sim_label *label, uint32_t slot, const rondo__sim_clock *clock);
void rondo__sim_order_close(rondo__sim_device *device);

/* shadow.c */
rondo_status rondo__sim_shadow_enter(rondo__sim_device *device, rondo__sim_operation *operation, uint32_t slot,
                                     uint64_t time);
rondo_status rondo__sim_shadow_check(rondo__sim_device *device, const rondo__sim_operation *operation);
void rondo__sim_shadow_leave(rondo__sim_device *device, rondo__sim_operation *operation, bool executed);
/* Whose life is over: nobody's history. */
void rondo__sim_shadow_forget(rondo__sim_device *device, uint64_t address, uint64_t bytes);
/* Nothing is enqueued and the host knows it: all history is before whatever comes. */
void rondo__sim_shadow_settle(rondo__sim_device *device);
void rondo__sim_shadow_close(rondo__sim_device *device);
/* Whether [address, address + bytes) is pinned host memory of the device. */
bool rondo__sim_range_is_pinned(const rondo__sim_device *device, uint64_t address, uint64_t bytes);

/* span.c. The memory is the caller's. */
void rondo__sim_span_add(rondo__sim_spans *spans, rondo__sim_span *span);
void rondo__sim_span_remove(rondo__sim_spans *spans, const rondo__sim_span *span);
/* The first of those that touch [base, end), by where they begin; null: none does. */
rondo__sim_span *rondo__sim_span_first(rondo__sim_spans *spans, uint64_t base, uint64_t end);

/* Entries of the stream table that event.c has. */
rondo_status rondo__sim_event_create(void *device, void **out_event);
void rondo__sim_event_destroy(void *device, void *event);
rondo_status rondo__sim_event_record(void *event, void *stream);
rondo_status rondo__sim_event_wait(void *event, void *stream);
rondo_status rondo__sim_event_query(void *event, bool *out_done);
rondo_status rondo__sim_event_synchronize(void *event);

#endif
