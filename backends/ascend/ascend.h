/* SPDX-License-Identifier: Apache-2.0
 *
 * The insides of the Ascend backend.
 *
 *   plugin.c    the type "ascend": how many devices there are, or why there are none
 *   library.c   libascendcl: where it is looked for, what it has
 *   feature.c   what a device can do of what not every library, driver or chip can: which is off, and why
 *   error.c     the driver's numbers as codes, with the driver's own message
 *   device.c    a device: its context, properties, binaries, counts
 *   memory.c    device memory at 512 bytes, pinned host memory
 *   stream.c    streams; event.c: events; call.c: kernels and host functions on a stream, and whose failure it was
 *   graph.c     captured graphs (aclmdlRI), their nodes, task groups; outside.c: events outside of them
 *
 * A library that accepts an image of C functions (simulators/acl) runs host kernels; a device's own library refuses it, and
 * only kernels of loaded binaries run there.
 */
#ifndef BACKENDS_ASCEND_ASCEND_H
#define BACKENDS_ASCEND_ASCEND_H

#include <pthread.h>
#include <rondo/plugin.h>
#include <stdatomic.h>

#define RONDO__ASCEND_ALIGNMENT 512u
#define RONDO__ASCEND_TEXT 512u
#define RONDO__ASCEND_NAME 96u

/* --------------------------------------------------------------------------------------------------- library.c */

#define RONDO__ASCEND_GROUPS(X) \
    X(core)                     \
    X(reference)                \
    X(about)                    \
    X(pointer)                  \
    X(failure)                  \
    X(limits)                   \
    X(ids)                      \
    X(capture)                  \
    X(taskgroup)                \
    X(external)                 \
    X(edit)                     \
    X(condition)                \
    X(name)                     \
    X(json)
enum {
#define RONDO_X(group) RONDO__ASCEND_GROUP_##group,
    RONDO__ASCEND_GROUPS(RONDO_X)
#undef RONDO_X
        RONDO__ASCEND_GROUP_COUNT
};

typedef struct rondo__ascend_api {
#define ACL_SYMBOL(group, result, name, arguments) result(*name) arguments;
#include "symbols.def"
} rondo__ascend_api;

/* One an instance; opened when it is first asked for a device. */
typedef struct rondo__ascend_library {
    const rondo_host_api *host;
    pthread_mutex_t mutex;
    void *handle; /* of dlopen; null: not opened yet, or not there */
    bool initialised;
    char path[256];
    rondo__ascend_api api;
    const char *lacks[RONDO__ASCEND_GROUP_COUNT]; /* the first symbol of the group that is not there; null: all are */
} rondo__ascend_library;

/* UNAVAILABLE says where it was looked for. */
RONDO_MUST_USE rondo_status rondo__ascend_library_open(rondo__ascend_library *library);
/* Opens it, too. UNAVAILABLE says why the driver gives none. */
RONDO_MUST_USE rondo_status rondo__ascend_library_count(rondo__ascend_library *library, uint32_t *out_count);
void rondo__ascend_library_close(rondo__ascend_library *library);

static inline bool rondo__ascend_has(const rondo__ascend_library *library, int group) { return !library->lacks[group]; }

/* --------------------------------------------------------------------------------------------------- feature.c */

/* A feature is a group of symbols, or what a call of `core` stands for. */
enum {
    RONDO__ASCEND_THREAD_MODE = RONDO__ASCEND_GROUP_COUNT,
    RONDO__ASCEND_HOST_FUNCTIONS,
    RONDO__ASCEND_HOST_KERNELS,
    RONDO__ASCEND_PINNED,
    RONDO__ASCEND_MEMORY_INFO,
    RONDO__ASCEND_FEATURE_COUNT
};

typedef struct rondo__ascend_device rondo__ascend_device;

/* False: it is off. What is missed for the first time goes to the log, unless it was told when that came out. */
bool rondo__ascend_can(rondo__ascend_device *device, int feature);
/* From now on, for the whole device. `why` is static text, `words` the driver's or null; the log has both, once. */
void rondo__ascend_switch_off(rondo__ascend_device *device, int feature, const char *why, const char *words);
/* True for 207000, which switches the feature off. */
bool rondo__ascend_refused_at(rondo__ascend_device *device, int feature, const char *why, int error);
#define RONDO__ASCEND_REFUSED(device, feature, name, error) \
    rondo__ascend_refused_at((device), (feature), #name " answered 207000", (error))
/* Of one that is off: a sentence's end, and UNSUPPORTED for `what`. */
void rondo__ascend_why_not(rondo__ascend_device *device, int feature, char *text, size_t capacity);
RONDO_MUST_USE rondo_status rondo__ascend_refusal(rondo__ascend_device *device, int feature, const char *what);
/* When a device is opened: the symbols that its library lacks, and what nobody asks it for. */
void rondo__ascend_tell(const rondo__ascend_device *device);

/* ----------------------------------------------------------------------------------------------------- error.c */

/* Null for 0. `call` is the driver's function; its message follows. */
RONDO_MUST_USE rondo_status rondo__ascend_error(const rondo__ascend_library *library, const char *call, int error);
/* As above, with another code than the number's own. */
RONDO_MUST_USE rondo_status rondo__ascend_error_as(const rondo__ascend_library *library, rondo_code code,
                                                   const char *call, int error);
rondo_code rondo__ascend_code(int error);
/* The driver's words about the failure that its last call of this thread gave as `error`; what it has is gone then. */
void rondo__ascend_words(const rondo__ascend_library *library, int error, char *text, size_t capacity);
/* Hands the number on of a call whose failure is no failure of ours: the driver's words go with it, so that a later failure
 * does not find them. */
int rondo__ascend_tolerate(const rondo__ascend_library *library, int error);
#define RONDO__ASCEND_CALL(library, name, ...) rondo__ascend_error((library), #name, (library)->api.name(__VA_ARGS__))
#define RONDO__ASCEND_TRY(library, name, ...) rondo__ascend_tolerate((library), (library)->api.name(__VA_ARGS__))
#define RONDO__ASCEND_NOT_SUPPORTED 207000

/* ------------------------------------------------------------------------------------------------ call.c: fates */

/* Where a kernel or host function of ours writes that it failed: of a stream, or of a graph. */
typedef struct rondo__ascend_fate {
    atomic_uint references;
    atomic_int state; /* 0: nothing, 1: being written, 2: failed */
    int32_t reason;
    bool host;
    char name[RONDO__ASCEND_NAME];
} rondo__ascend_fate;

typedef struct rondo__ascend_stream rondo__ascend_stream;
typedef struct rondo__ascend_graph rondo__ascend_graph;

rondo__ascend_fate *rondo__ascend_fate_make(const rondo_host_api *host);
void rondo__ascend_fate_release(const rondo_host_api *host, rondo__ascend_fate *fate);

/* A host function that is enqueued; it stays until its stream was waited for, or with its graph. */
typedef struct rondo__ascend_host_call {
    struct rondo__ascend_host_call *next;
    rondo_host_function function;
    void *user;
    rondo__ascend_fate *fate;
    atomic_bool done;
} rondo__ascend_host_call;
void rondo__ascend_host_calls_free(const rondo_host_api *host, rondo__ascend_host_call *first);

/* The call onto the native stream as a kernel launch. `fate` is told of its failure. */
RONDO_MUST_USE rondo_status rondo__ascend_launch(rondo__ascend_device *device, void *native, rondo_kernel kernel,
                                                 const uint64_t *words, uint32_t count, const char *name,
                                                 rondo__ascend_fate *fate);
RONDO_MUST_USE rondo_status rondo__ascend_host_call_enqueue(rondo__ascend_device *device, void *native,
                                                            rondo__ascend_host_call *call);
/* The functions that run host kernels, if the library takes them. */
rondo_status rondo__ascend_host_image(rondo__ascend_device *device);

/* A kernel of a binary: what rondo_kernel.context points to. */
typedef struct rondo__ascend_kernel {
    struct rondo__ascend_kernel *next;
    void *function;
    uint32_t blocks;
} rondo__ascend_kernel;

/* ---------------------------------------------------------------------------------------------------- device.c */

typedef struct rondo__ascend_block {
    struct rondo__ascend_block *next;
    uint64_t address;
    void *base;
} rondo__ascend_block;

#define RONDO__ASCEND_COUNTS(X)     \
    X(LAUNCHES, "launches")         \
    X(COPIES, "copies")             \
    X(FILLS, "fills")               \
    X(HOST_CALLS, "host_calls")     \
    X(EVENTS, "events")             \
    X(SYNCHRONIZES, "synchronizes") \
    X(ALLOCATIONS, "allocations")   \
    X(GRAPHS, "graphs")             \
    X(REPLAYS, "replays")           \
    X(UPDATES, "updates")
enum {
#define RONDO_X(name, text) RONDO__ASCEND_COUNT_##name,
    RONDO__ASCEND_COUNTS(RONDO_X)
#undef RONDO_X
        RONDO__ASCEND_COUNT_OF
};

struct rondo__ascend_device {
    const rondo_host_api *host;
    rondo__ascend_library *library;
    int32_t index;
    void *context;
    bool native, updates;                                       /* settings */
    _Atomic(const char *) off_why[RONDO__ASCEND_FEATURE_COUNT]; /* static text; null: it was not switched off */
    atomic_uint told;                                           /* bits of features: that they are off */
    pthread_mutex_t mutex;
    rondo__ascend_block *blocks, *pageable; /* of the device, and of the host where there is no pinned memory */
    void *spare;                            /* the first stream, which came with the device */
    atomic_bool abandoned;                  /* a capture that could not be ended still has streams and events */
    rondo__ascend_graph *captures;          /* going on */
    uint64_t capture_ids;
    atomic_uint events_aside;  /* driver's events that have no id yet */
    void *image, *run, *check; /* binary and functions of host kernels; null: none */
    atomic_uint_least64_t counts[RONDO__ASCEND_COUNT_OF];
};

extern const rondo_memory_table rondo__ascend_memory_table;
extern const rondo_stream_table rondo__ascend_stream_table;
extern const rondo_graph_table rondo__ascend_graph_table,
    rondo__ascend_graph_table_plain; /* plain: no events of outside */

RONDO_MUST_USE rondo_status rondo__ascend_device_open(rondo__ascend_library *library, uint32_t index,
                                                      const char *settings, const rondo_device_table **out_table,
                                                      rondo__ascend_device **out_device);
void *rondo__ascend_allocate(const rondo_host_api *host, size_t size);
void rondo__ascend_free(const rondo_host_api *host, void *pointer, size_t size);
static inline void rondo__ascend_count(rondo__ascend_device *device, int count) {
    atomic_fetch_add_explicit(&device->counts[count], 1, memory_order_relaxed);
}

/* Makes the device's context the calling thread's, and gives the thread its own back: another library may live in it. */
RONDO_MUST_USE rondo_status rondo__ascend_enter(const rondo__ascend_device *device, void **out_before);
void rondo__ascend_leave(const rondo__ascend_device *device, void *before);
/* Leaves and hands the status on. */
static inline rondo_status rondo__ascend_left(const rondo__ascend_device *device, void *before, rondo_status status) {
    rondo__ascend_leave(device, before);
    return status;
}

/* -------------------------------------------------------------------------------------------- stream.c, event.c */

struct rondo__ascend_stream {
    rondo__ascend_device *device;
    void *native;
    bool owned;
    rondo__ascend_fate *fate;
    rondo__ascend_graph *capture;  /* that records what comes here; null: none */
    rondo__ascend_stream *next;    /* of the same capture */
    rondo__ascend_fate **launched; /* of graphs that ran here since it was last waited for */
    size_t launched_count, launched_capacity;
    rondo__ascend_host_call *host_calls, **host_calls_end;
};

typedef struct rondo__ascend_event {
    rondo__ascend_device *device;
    void *native;
    uint64_t capture_id; /* of the capture that it was recorded in last; 0: none */
    /* The driver's events are of one use for good, inside of captures or outside of graphs, and of outside only where nothing
     * recorded them before: graphs get one of their own, which is the one of outside from then on. Null: no graph has it. */
    void *outside;
    bool recorded, moved; /* outside of captures; and `outside` has that record */
    bool has_id, outside_has_id;
} rondo__ascend_event;

/* A native stream that stops at failures, where those can be had. */
RONDO_MUST_USE rondo_status rondo__ascend_stream_open(rondo__ascend_device *device, void **out_native);
/* Asks what only an answer shows, once a device. */
void rondo__ascend_stream_probe(rondo__ascend_device *device);
/* False: nobody knows. */
bool rondo__ascend_streams_left(rondo__ascend_device *device, uint32_t *out_left);
RONDO_MUST_USE rondo_status rondo__ascend_stream_ran(rondo__ascend_stream *stream, rondo__ascend_fate *fate);
/* A driver's event, with an id set aside for it: OUT_OF_RANGE where none is left. It is given back in `shut`, or taken by the
 * first record outside of captures, which `mark` is. */
RONDO_MUST_USE rondo_status rondo__ascend_event_open(rondo__ascend_device *device, void **out_native);
int rondo__ascend_event_shut(rondo__ascend_device *device, void *native, bool has_id);
RONDO_MUST_USE rondo_status rondo__ascend_event_mark(rondo__ascend_device *device, void *native, void *stream,
                                                     bool *has_id);
rondo_status rondo__ascend_event_create(void *device, void **out_event);
void rondo__ascend_event_destroy(void *device, void *event);
rondo_status rondo__ascend_event_record(void *event, void *stream);
rondo_status rondo__ascend_event_wait(void *event, void *stream);
rondo_status rondo__ascend_event_query(void *event, bool *out_done);
rondo_status rondo__ascend_event_synchronize(void *event);
/* The one that has the latest record outside of captures. */
static inline void *rondo__ascend_event_now(const rondo__ascend_event *event) {
    return event->moved ? event->outside : event->native;
}

/* ----------------------------------------------------------------------------------------------------- graph.c */

/* What a capture has recorded, in order: nodes as the core counts them. */
typedef struct rondo__ascend_node {
    rondo_kernel kernel; /* both null: no kernel */
    void *group;         /* its task group; null: it cannot be updated */
    uint32_t count;
    uint64_t *words; /* as the graph has them now */
    char *name;
} rondo__ascend_node;

/* An event of outside, which a graph has once: recorded by it or waited for. */
typedef struct rondo__ascend_outside {
    struct rondo__ascend_outside *next;
    rondo__ascend_event *event;
    uint64_t node;
    bool wait;
} rondo__ascend_outside;

struct rondo__ascend_graph {
    rondo__ascend_device *device;
    rondo__ascend_graph *next; /* while it captures */
    rondo__ascend_stream *streams;
    uint64_t id;
    void *native;          /* aclmdlRI, once captured */
    uint32_t streams_left; /* when it began; UINT32_MAX: unknown */
    rondo__ascend_fate *fate;
    rondo__ascend_node *nodes;
    size_t node_count, node_capacity;
    rondo__ascend_host_call *host_calls;
    rondo__ascend_outside *outside;
    void *update_stream, *update_event;
    bool update_has_id;
    bool updated; /* the next run waits for the event */
};

/* ACL's number of a mode, and back. Null for what is none. */
RONDO_MUST_USE rondo_status rondo__ascend_mode(const rondo_host_api *host, rondo_capture_mode mode, int *out_mode);
/* One node more; `call` is null for what is no kernel. Group begin and end around a kernel's launch. */
RONDO_MUST_USE rondo_status rondo__ascend_graph_launch(rondo__ascend_stream *stream, const rondo_call *call);
RONDO_MUST_USE rondo_status rondo__ascend_graph_other(rondo__ascend_stream *stream);
/* outside.c: as nodes of the stream's capture; and around a launch. */
RONDO_MUST_USE rondo_status rondo__ascend_outside_record(void *event, void *stream);
RONDO_MUST_USE rondo_status rondo__ascend_outside_wait(void *event, void *stream);
RONDO_MUST_USE rondo_status rondo__ascend_outside_before(const rondo__ascend_graph *graph,
                                                         const rondo__ascend_stream *stream);
void rondo__ascend_outside_after(const rondo__ascend_graph *graph);
void rondo__ascend_outside_free(rondo__ascend_graph *graph);
/* The stream joins the capture that the event was recorded in. */
void rondo__ascend_graph_join(rondo__ascend_stream *stream, uint64_t capture_id);

#endif
