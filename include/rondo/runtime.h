/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime: instance, devices, memory, streams, kernels, graphs, executables.
 *
 * Ownership: create and retain give the caller a reference, release takes one away; null is accepted by release.
 * Accessors borrow. Out parameters come last and are unset on failure unless said otherwise.
 * Threads: objects are thread-compatible (one thread at a time) unless marked thread-safe; reference counts always are.
 * Sizes are bytes, times nanoseconds, unless said otherwise. A function that returns rondo_status may always return
 * OUT_OF_MEMORY, and INVALID_ARGUMENT for a null object or a struct_size of 0; other codes are listed with it.
 */
#ifndef RONDO_RUNTIME_H
#define RONDO_RUNTIME_H

#include <rondo/types.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_instance rondo_instance;
typedef struct rondo_device rondo_device;
typedef struct rondo_stream rondo_stream;
typedef struct rondo_event rondo_event;
typedef struct rondo_graph rondo_graph;
typedef struct rondo_plan rondo_plan;
typedef struct rondo_executable rondo_executable;
typedef struct rondo_context rondo_context;

RONDO_API const char *rondo_version(void);

/* -------------------------------------------------------------------------------------------------- instance */

typedef struct rondo_instance_options {
    uint32_t struct_size;
    rondo_log_level log_level;        /* lines above it are dropped */
    const rondo_allocator *allocator; /* null: the default */
    rondo_log_function log;           /* null: lines are dropped; the library never prints */
    void *log_user;
    const char *const *plugins; /* files to load besides those found on RONDO_PLUGIN_PATH */
    uint32_t plugin_count;
    uint32_t ignore_plugin_path; /* 1: do not look at RONDO_PLUGIN_PATH */
} rondo_instance_options;
#define RONDO_INSTANCE_OPTIONS_INIT \
    { sizeof(rondo_instance_options), RONDO_LOG_WARNING, 0, 0, 0, 0, 0, 0 }

/* Registers the embedded plugins (ref, cpu, sim) and those asked for. options may be null. Thread-safe.
 * NOT_FOUND or UNSUPPORTED (loading) for a named plugin that cannot be used. */
RONDO_API RONDO_MUST_USE rondo_status rondo_instance_create(const rondo_instance_options *options,
                                                            rondo_instance **out_instance);
RONDO_API void rondo_instance_retain(rondo_instance *instance);
/* Plugins are shut down when the last reference goes; devices hold one. */
RONDO_API void rondo_instance_release(rondo_instance *instance);

/* ---------------------------------------------------------------------------------------- registry, devices */

/* Device types in the order of registration; null past the end. Thread-safe. */
RONDO_API const char *rondo_device_type_at(rondo_instance *instance, uint32_t index);
/* One line about the type; null when unknown. */
RONDO_API const char *rondo_device_type_description(rondo_instance *instance, const char *type);
/* How many devices of the type there are. NOT_FOUND for an unknown type, UNAVAILABLE (with why) without a driver. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_type_count(rondo_instance *instance, const char *type,
                                                              uint32_t *out_count);
/* Whether the type has a graph implementation. Null asks for the current accelerator: the first type that has a device
 * and is not "cpu"; NOT_FOUND if there is none, and for an unknown type. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_has_graph_impl(rondo_instance *instance, const char *type,
                                                                  bool *out_has);

/* Opens "cpu", "sim" or "sim:1" ("type" or "type:index"). A device is opened once an instance: further opens return the
 * same object with another reference, and settings must then be null or equal (else ALREADY_EXISTS). settings is
 * "key=value,..." for the backend. Thread-safe. NOT_FOUND, OUT_OF_RANGE, UNAVAILABLE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_open(rondo_instance *instance, const char *name,
                                                        const char *settings, rondo_device **out_device);
RONDO_API void rondo_device_retain(rondo_device *device);
/* Closes with the last reference. Streams, events, graphs, executables and sessions hold one; allocations do not, and
 * what is left of them is freed with a warning that counts them. */
RONDO_API void rondo_device_release(rondo_device *device);
/* Borrowed, constant. */
RONDO_API const rondo_device_properties *rondo_device_info(const rondo_device *device);
RONDO_API rondo_instance *rondo_device_instance(const rondo_device *device);
/* Free and total bytes of the device. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_memory_info(rondo_device *device, uint64_t *out_free,
                                                               uint64_t *out_total);
/* A count the backend keeps ("launches", "copies", "fills", "host_calls", "synchronizes"). NOT_FOUND. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_counter(rondo_device *device, const char *name, uint64_t *out_value);

/* ---------------------------------------------------------------------------------------------------- memory */

/* Device memory, aligned to the device's allocation_alignment. size 0 is INVALID_ARGUMENT. Thread-safe. Legal during
 * a capture: the core allocates apart from the stream. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_allocate(rondo_device *device, uint64_t size, void **out_pointer);
/* Waits until the device's streams have finished what was enqueued, then frees. Graphs that mention the range become
 * stale. INVALID_ARGUMENT for a pointer that is not the start of a live allocation. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_free(rondo_device *device, void *pointer);
/* Host memory for asynchronous copies. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_host_allocate(rondo_device *device, uint64_t size,
                                                                 void **out_pointer);
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_host_free(rondo_device *device, void *pointer);
/* Bytes and allocations alive now. */
RONDO_API void rondo_memory_usage(const rondo_device *device, uint64_t *out_bytes, uint64_t *out_allocations);
/* A handle for a pool of one's own ({0, n}, unique in the instance). The pool appears with its first use. */
RONDO_API rondo_pool_id rondo_pool_handle(rondo_instance *instance);

/* ------------------------------------------------------------------------------------- caching allocator, pools */

/* Memory comes from the device in segments, is cut into blocks, and is kept when it is freed: sizes are rounded to 512
 * bytes; up to 1 MiB a block is cut from a segment of 2 MiB, up to 10 MiB from one of 20 MiB, above it has a segment of
 * its own. docs/memory.md tells the whole. All functions here are thread-safe. OUT_OF_MEMORY says what is allocated,
 * held by graph pools and reusable. */

/* A block for work of one stream, from the pool that a diversion names, else from the device's own. Freed with
 * rondo_memory_free: at once and without waiting, because later work of the same stream comes after; work of other
 * streams is told with rondo_memory_record_stream before the free. Legal during a capture of the stream: the block then
 * belongs to the graph's pool. (rondo_memory_allocate gives a block of no stream, whose free waits for all of them.) */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_allocate_on(rondo_stream *stream, uint64_t size, void **out_pointer);
/* The block is used by work of `stream` too: once freed, it is given to nobody before what that stream has enqueued until
 * then is done; if it captures, before the capture is over. Nobody waits. INVALID_ARGUMENT: not the start of a live
 * block. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_record_stream(rondo_device *device, void *pointer,
                                                                 rondo_stream *stream);

/* Which allocations a diversion takes; data, never a callback. */
typedef int32_t rondo_memory_filter_kind;
enum {
    RONDO_MEMORY_FILTER_THREAD = 0, /* of the calling thread */
    RONDO_MEMORY_FILTER_STREAM = 1, /* for `stream` */
    RONDO_MEMORY_FILTER_CAPTURE = 2 /* for streams that the capture `capture_id` records */
};
typedef struct rondo_memory_filter {
    uint32_t struct_size;
    rondo_memory_filter_kind kind;
    rondo_stream *stream;
    uint64_t capture_id;
} rondo_memory_filter;
#define RONDO_MEMORY_FILTER_INIT \
    { sizeof(rondo_memory_filter), 0, 0, 0 }
/* Makes the pool with use count 1, or raises its use count. The newest diversion that fits an allocation wins. What
 * executables and contexts allocate for themselves is never diverted.
 * INVALID_ARGUMENT: {0, 0} or both parts set; INVALID_STATE: the pool is already recording; NOT_FOUND: released. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_pool_begin(rondo_device *device, rondo_pool_id pool,
                                                              const rondo_memory_filter *filter);
/* Ends the diversion; the use stays until rondo_memory_pool_release. INVALID_STATE: not recording. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_pool_end(rondo_device *device, rondo_pool_id pool);
/* Raises the use count of a pool that is in use, so that it outlives its other users. NOT_FOUND. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_pool_retain(rondo_device *device, rondo_pool_id pool);
/* Lowers the use count. At 0 the pool's segments go to the device's own pool, each when its last block is freed, and the
 * id is never used again; graphs whose pool it was are stale. INVALID_STATE: it would be 0 while the pool records.
 * NOT_FOUND: released. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_pool_release(rondo_device *device, rondo_pool_id pool);
/* Whether the live blocks of the pool are exactly these. NOT_FOUND. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_pool_live(rondo_device *device, rondo_pool_id pool,
                                                             const void *const *expected, uint64_t expected_count,
                                                             bool *out_equal);

/* The exact block layout of a private pool at a moment; no contents. It outlives the pool. Waits for the device. NOT_FOUND;
 * INVALID_STATE: a freed block is still used by a stream that captures, or by a graph that holds it. */
typedef struct rondo_memory_checkpoint rondo_memory_checkpoint;
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_checkpoint_create(rondo_device *device, rondo_pool_id pool,
                                                                     rondo_memory_checkpoint **out_checkpoint);
RONDO_API void rondo_memory_checkpoint_release(rondo_memory_checkpoint *checkpoint);
/* Brings the pool back to that layout, in time that is linear in its blocks. Blocks that were live and are not in it are
 * freed, those in it that were not are live again, with a new generation; a block that is in both stays as it is, lease
 * and all. Both lists are the caller's to act on (release with rondo_memory_delta_release). Waits for the device. A
 * failure changes nothing. NOT_FOUND: the pool was released. INVALID_STATE: as at create. CORRUPT (memory): a segment of
 * the checkpoint is gone. */
typedef struct rondo_memory_delta {
    uint32_t struct_size;
    uint32_t reserved;
    void **freed;
    void **created;
    uint64_t freed_count, created_count;
} rondo_memory_delta;
#define RONDO_MEMORY_DELTA_INIT \
    { sizeof(rondo_memory_delta), 0, 0, 0, 0, 0 }
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_checkpoint_restore(rondo_memory_checkpoint *checkpoint,
                                                                      rondo_memory_delta *out_delta);
RONDO_API void rondo_memory_delta_release(rondo_device *device, rondo_memory_delta *delta);

/* A lease says who may use a block: its word is compared by whoever needs to know whether the block is alive, and the
 * free path clears it. The lease must stay where it is until the block is freed or the lease taken away. `block` and
 * `owner` are written atomically: read them so where another thread may free. The holder may change `owner`. */
typedef struct rondo_lease {
    uint64_t block; /* address, 0: over */
    uint64_t generation;
    uint32_t owner; /* RONDO_LEASE_* */
    uint32_t reserved;
} rondo_lease;
enum { RONDO_LEASE_OVER = 0, RONDO_LEASE_REPLAY = 1, RONDO_LEASE_ALLOCATOR = 2 };
/* One lease a block: ALREADY_EXISTS. INVALID_ARGUMENT: not the start of a live block. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_lease(rondo_device *device, void *pointer, uint32_t owner,
                                                         rondo_lease *lease);
RONDO_API void rondo_memory_unlease(rondo_device *device, rondo_lease *lease);

typedef struct rondo_memory_statistics {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t allocated_bytes, allocated_peak, allocations; /* live blocks, as rounded */
    uint64_t requested_bytes;                              /* live blocks, as asked for */
    uint64_t reserved_bytes, reserved_peak, segments;      /* taken from the device */
    uint64_t inactive_bytes;                               /* free parts of segments that are not wholly free */
    uint64_t pending_bytes;                                /* freed, and waiting for another stream */
    uint64_t segment_allocations, segment_frees, allocation_retries, out_of_memory;
    uint64_t allocations_peak, requested_peak, segments_peak;
    /* Since the beginning: what was freed is such a sum less what is live now. */
    uint64_t allocations_sum, allocated_sum, requested_sum, reserved_sum;
} rondo_memory_statistics;
#define RONDO_MEMORY_STATISTICS_INIT \
    { sizeof(rondo_memory_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* {0, 0}: the whole device, else one pool. Kept up to date, so that asking costs nothing. NOT_FOUND. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_get_statistics(rondo_device *device, rondo_pool_id pool,
                                                                  rondo_memory_statistics *out_statistics);
/* The peaks begin again, from what is there now. {0, 0}: the whole device's, else one pool's. NOT_FOUND. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_reset_peaks(rondo_device *device, rondo_pool_id pool);
/* Segments and blocks as JSON, with the fields of PyTorch's memory snapshot. {0, 0}: all pools. A `write` that returns
 * nonzero ends it: IO. */
typedef int32_t (*rondo_memory_write)(void *user, const char *data, size_t size);
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_snapshot(rondo_device *device, rondo_pool_id pool,
                                                            rondo_memory_write write, void *user);
/* Waits for the device, then gives it back the free segments of its own pool, device and pinned host memory, but for
 * those of streams that capture. Private pools keep theirs until they are released: their graphs use them. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_trim(rondo_device *device);
/* Reserves at most this part of the device's memory, above 0 and up to 1. UNSUPPORTED where its size is unknown. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_set_fraction(rondo_device *device, double fraction);

typedef struct rondo_memory_settings {
    uint32_t struct_size;
    uint32_t
        roundup_divisions;    /* sizes go up to one of so many steps between powers of two; 0, or a power of 2 to 64 */
    uint64_t max_split_bytes; /* blocks of that size are kept whole, for such requests; 0: none, else at least 20 MiB */
    uint64_t max_waste_bytes; /* what such a request may leave unused of a block */
    double collect_above;     /* above this part of the fraction's bytes old free segments go back; 0: never */
    uint32_t expandable_segments; /* segments that grow in place: UNSUPPORTED */
    uint32_t reserved;
} rondo_memory_settings;
#define RONDO_MEMORY_SETTINGS_INIT \
    { sizeof(rondo_memory_settings), 0, 0, 20u << 20, 0.0, 0, 0 }
/* For what is allocated from now on. INVALID_ARGUMENT, UNSUPPORTED. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_configure(rondo_device *device,
                                                             const rondo_memory_settings *settings);

/* --------------------------------------------------------------------------------------------- stream, event */

typedef struct rondo_stream_options {
    uint32_t struct_size;
    uint32_t flags; /* RONDO_STREAM_* of plugin.h: 0, or 1 for asynchronous */
    int32_t priority;
    uint32_t reserved;
} rondo_stream_options;
#define RONDO_STREAM_OPTIONS_INIT \
    { sizeof(rondo_stream_options), 0, 0, 0 }

RONDO_API RONDO_MUST_USE rondo_status rondo_stream_create(rondo_device *device, const rondo_stream_options *options,
                                                          rondo_stream **out_stream);
/* A stream over the vendor's native handle, which stays the caller's. UNSUPPORTED where the backend cannot. */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_wrap(rondo_device *device, void *native, rondo_stream **out_stream);
RONDO_API void rondo_stream_retain(rondo_stream *stream);
/* The last release synchronises. A stream that still captures is aborted first. */
RONDO_API void rondo_stream_release(rondo_stream *stream);
/* The device's default stream, borrowed; made with the device. */
RONDO_API rondo_stream *rondo_stream_default(rondo_device *device);
RONDO_API rondo_device *rondo_stream_device(const rondo_stream *stream);

/* Enqueue. Data is copied before the return. While a capture records the stream, the work is recorded instead of run.
 * Failures of the work itself (KERNEL_FAILED, naming the call) come here on inline devices, else at synchronize. */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_launch(rondo_stream *stream, const rondo_call *call);
/* kind names the direction. In a capture, host memory of an asynchronous copy must be pinned (host_allocate) on devices
 * that are not host addressable, else INVALID_ARGUMENT (capture). */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_copy(rondo_stream *stream, void *destination, const void *source,
                                                        uint64_t bytes, rondo_copy_kind kind);
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_fill(rondo_stream *stream, void *destination, uint8_t value,
                                                        uint64_t bytes);
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_host_call(rondo_stream *stream, rondo_host_function function,
                                                             void *user);
/* INVALID_STATE while the stream captures (and the capture is invalidated): there is nothing to wait for. */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_synchronize(rondo_stream *stream);
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_query(rondo_stream *stream, bool *out_done);

typedef struct rondo_capture_status {
    uint32_t struct_size;
    uint32_t active;      /* 1 while a capture records the stream */
    uint32_t invalidated; /* 1 after an illegal call */
    rondo_capture_mode mode;
    uint64_t id; /* of the capture, never reused in an instance; 0 when inactive */
} rondo_capture_status;
#define RONDO_CAPTURE_STATUS_INIT \
    { sizeof(rondo_capture_status), 0, 0, 0, 0 }
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_capture_status(rondo_stream *stream,
                                                                  rondo_capture_status *out_status);

RONDO_API RONDO_MUST_USE rondo_status rondo_event_create(rondo_device *device, rondo_event **out_event);
RONDO_API void rondo_event_retain(rondo_event *event);
RONDO_API void rondo_event_release(rondo_event *event);
/* Event and stream must belong to one device: INVALID_ARGUMENT. In a capture, record and wait make no work but order:
 * a stream that waits for an event recorded in a capture joins that capture (fork); the stream that began it waits for
 * an event of the other to join it again. A wait that would join two captures is CAPTURE_MERGED and invalidates both.
 * Waiting in a capture for an event recorded outside any is INVALID_ARGUMENT (capture) and invalidates: use the
 * external forms. An event recorded in a capture cannot be queried or synchronised: INVALID_STATE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_event_record(rondo_event *event, rondo_stream *stream);
RONDO_API RONDO_MUST_USE rondo_status rondo_event_wait(rondo_event *event, rondo_stream *stream);
/* Nodes of the graph that record and wait for an event outside it, at every replay. Outside a capture as the plain
 * forms. */
RONDO_API RONDO_MUST_USE rondo_status rondo_event_record_external(rondo_event *event, rondo_stream *stream);
RONDO_API RONDO_MUST_USE rondo_status rondo_event_wait_external(rondo_event *event, rondo_stream *stream);
RONDO_API RONDO_MUST_USE rondo_status rondo_event_query(rondo_event *event, bool *out_done);
RONDO_API RONDO_MUST_USE rondo_status rondo_event_synchronize(rondo_event *event);

/* --------------------------------------------------------------------------------------------------- kernels */

/* A kernel of the device's catalogues (the first that accepts), for use in calls. `shape` and `dtype` describe every
 * operand; elementwise operators only: the compiler's plans are the way to all others. The call's words are the inputs,
 * then the outputs. UNSUPPORTED (kernel) with the catalogues' reasons. */
RONDO_API RONDO_MUST_USE rondo_status rondo_kernel_prepare(rondo_device *device, const char *operator_name,
                                                           uint32_t input_count, rondo_dtype dtype, int32_t rank,
                                                           const int64_t *shape, rondo_kernel *out_kernel);
/* A contract kernel by name ("rondo.add", see plugin.h). */
RONDO_API RONDO_MUST_USE rondo_status rondo_kernel_find(rondo_device *device, const char *name,
                                                        rondo_kernel *out_kernel);
/* No graph or enqueued call uses it any more. */
RONDO_API void rondo_kernel_release(rondo_device *device, rondo_kernel kernel);

/* ----------------------------------------------------------------------------------------------------- graph */

/*   empty --begin--> capturing --end--> captured (keep_graph) --instantiate--> ready
 *                        |     \--end--> ready (else)
 *                        \-- illegal call --> invalidated --end or abort--> empty
 * The table (state x call) is docs/graph.md and src/graph/state.c. A call in a wrong state is INVALID_STATE (capture)
 * and changes nothing unless said otherwise. Thread-compatible, but abort may come from any thread. */
typedef int32_t rondo_graph_state;
enum {
    RONDO_GRAPH_EMPTY = 0,
    RONDO_GRAPH_CAPTURING = 1,
    RONDO_GRAPH_INVALIDATED = 2,
    RONDO_GRAPH_CAPTURED = 3,
    RONDO_GRAPH_READY = 4
};

/* The calling thread's own mode, which together with a capture's decides whether an unsafe call (one that could break a
 * capture: allocating from the device itself, synchronising the device) is allowed; docs/graph.md has the table. Starts
 * as global. DEFAULT is INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_capture_mode_exchange(rondo_capture_mode mode,
                                                                  rondo_capture_mode *out_before);
/* What a call on the given thread would get, as data: other_thread says whether another thread than the caller began
 * the capture. */
RONDO_API bool rondo_capture_mode_allows(rondo_capture_mode capture, rondo_capture_mode thread, bool other_thread,
                                         bool unsafe_call);

typedef struct rondo_graph_options {
    uint32_t struct_size;
    uint32_t keep_graph; /* 1: capture_end leads to captured, and instantiate may be repeated */
    const char *name;    /* for messages; may be null */
} rondo_graph_options;
#define RONDO_GRAPH_OPTIONS_INIT \
    { sizeof(rondo_graph_options), 0, 0 }

RONDO_API RONDO_MUST_USE rondo_status rondo_graph_create(rondo_device *device, const rondo_graph_options *options,
                                                         rondo_graph **out_graph);
RONDO_API void rondo_graph_retain(rondo_graph *graph);
/* Waits behind the last replay. A capture in progress is aborted. */
RONDO_API void rondo_graph_release(rondo_graph *graph);
RONDO_API rondo_graph_state rondo_graph_get_state(const rondo_graph *graph);

typedef int32_t rondo_slot_policy;
enum {
    RONDO_SLOT_REBIND = 0, /* bind writes the new address into every call that mentions the slot */
    RONDO_SLOT_COPY = 1    /* the graph has its own buffer; bind copies from the new address at each replay */
};

/* Declares before capture that [address, address + length) is rebindable. Legal in empty. Slots are numbered from 0 by
 * the caller without gaps (ALREADY_EXISTS, OUT_OF_RANGE); ranges must not overlap (INVALID_ARGUMENT). `access` says
 * what the graph does with it: a written slot of policy copy is copied out after the replay. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_declare_slot(rondo_graph *graph, uint32_t slot, void *address,
                                                               uint64_t length, uint32_t access,
                                                               rondo_slot_policy policy);
/* Legal in empty. What is allocated for streams of the capture comes from the pool, of which the graph keeps one use until
 * it is reset; {0, 0}: one of its own. INVALID_STATE: the stream already captures, or the pool records already.
 * NOT_FOUND: the pool was released. INVALID_ARGUMENT: unknown mode, stream of another device, or the default stream where
 * the device refuses it. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_capture_begin(rondo_graph *graph, rondo_stream *stream,
                                                                rondo_pool_id pool, rondo_capture_mode mode);
/* Legal in capturing and invalidated. Another stream, or (unless relaxed) another thread: INVALID_STATE and the capture
 * goes on. CAPTURE_INVALIDATED carries the first error and leads to empty. No nodes: success, info().empty, and one
 * warning in the log. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_capture_end(rondo_graph *graph, rondo_stream *stream);
/* Legal in capturing and invalidated, from any thread: drops the work, leads to empty. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_abort(rondo_graph *graph);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_instantiate(rondo_graph *graph);
/* Legal in ready and captured (instantiates first), on any stream of the device, any number of times. STALE names node,
 * argument and where it was freed. On a stream that captures, the graph becomes a child node of the one being captured:
 * its calls are copied, so it may be released afterwards. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_replay(rondo_graph *graph, rondo_stream *stream);
/* Legal in ready. Waits for a replay in flight. UNSUPPORTED for an opaque graph (one with host calls), by name. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_bind(rondo_graph *graph, uint32_t slot, void *address);
/* Legal in ready. Replaces the arguments of node `node` (its index in capture order). Same count as recorded. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_update(rondo_graph *graph, uint64_t node,
                                                         const rondo_argument *arguments, uint32_t argument_count);
/* Legal in empty. Keeps names and arguments for debug_dump. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_enable_debug_mode(rondo_graph *graph);
/* Legal in captured and ready. The ending picks the form: .dot, .json, .txt. Needs debug mode or keep_graph. IO. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_debug_dump(rondo_graph *graph, const char *path);
/* Any state, leads to empty: ends a capture, waits behind the last replay. Slots are forgotten. */
RONDO_API void rondo_graph_reset(rondo_graph *graph);
/* Legal in captured and ready. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_pool(rondo_graph *graph, rondo_pool_id *out_pool);

typedef struct rondo_graph_info {
    uint32_t struct_size;
    rondo_graph_state state;
    uint32_t empty;      /* 1: captured no node */
    uint32_t opaque;     /* 1: holds host calls */
    uint32_t unverified; /* 1: mentions memory that is not Rondo's, whose life cannot be watched */
    uint32_t lanes;
    uint32_t slots;
    uint32_t native; /* 1: replays launch a graph of the device's own driver */
    uint64_t nodes;
    uint64_t kernels, copies, fills, host_calls;
    uint64_t bytes;   /* state the graph keeps, host memory */
    uint64_t replays; /* since capture */
    uint64_t edges;   /* from a node to one that comes after it and after nothing in between */
    uint64_t conditions;
    uint64_t events;   /* records of events outside the graph, and waits for such */
    uint64_t children; /* graphs whose nodes became some of these */
} rondo_graph_info;
#define RONDO_GRAPH_INFO_INIT \
    { sizeof(rondo_graph_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* Legal in captured and ready. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_info(rondo_graph *graph, rondo_graph_info *out_info);

/* What is enqueued on the capturing stream between the two calls runs only in replays that find a nonzero int64 at
 * `condition`, in device memory. May be nested. UNSUPPORTED where the backend neither runs whole lists on the host nor has
 * conditions of its own. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_condition_begin(rondo_stream *stream, const void *condition);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_condition_end(rondo_stream *stream);

/* ---------------------------------------------------------------------------------------------------- random */

/* A Philox4x32-10 generator. Outside a capture each fill advances its offset. In a capture the fills read seed and offset
 * from cells beside the graph's pool: every replay starts where the generator stands and advances it by what the capture
 * used, so replays give fresh numbers, and the same ones as the same calls without a capture. Thread-safe. */
typedef struct rondo_generator rondo_generator;
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_create(rondo_device *device, uint64_t seed,
                                                             rondo_generator **out_generator);
RONDO_API void rondo_generator_retain(rondo_generator *generator);
RONDO_API void rondo_generator_release(rondo_generator *generator);
/* Seed and offset act at the next fill or replay; a new seed sets the offset to 0. Offsets are multiples of 4:
 * INVALID_ARGUMENT. All four are INVALID_STATE (capture), by name, while a capture uses the generator. */
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_set_seed(rondo_generator *generator, uint64_t seed);
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_get_seed(rondo_generator *generator, uint64_t *out_seed);
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_set_offset(rondo_generator *generator, uint64_t offset);
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_get_offset(rondo_generator *generator, uint64_t *out_offset);

typedef int32_t rondo_distribution;
enum {
    RONDO_DISTRIBUTION_BITS = 0,      /* uint32 */
    RONDO_DISTRIBUTION_UNIFORM = 1,   /* float32 in [a, b) */
    RONDO_DISTRIBUTION_NORMAL = 2,    /* float32, mean a, deviation b */
    RONDO_DISTRIBUTION_BERNOULLI = 3, /* uint8: 1 with probability a */
    RONDO_DISTRIBUTION_DROPOUT = 4    /* float32: 0 with probability a, else 1 / (1 - a) */
};
/* count elements at `out` in device memory. */
RONDO_API RONDO_MUST_USE rondo_status rondo_random_fill(rondo_stream *stream, rondo_generator *generator,
                                                        rondo_distribution distribution, void *out, uint64_t count,
                                                        float a, float b);

/* --------------------------------------------------------------------------- plan, executable, context */

/* A plan is plain data made by the compiler (compiler.h). Immutable, thread-safe. */
RONDO_API void rondo_plan_retain(rondo_plan *plan);
RONDO_API void rondo_plan_release(rondo_plan *plan);

typedef struct rondo_tensor_info {
    const char *name; /* borrowed from the object asked */
    rondo_dtype dtype;
    int32_t rank;
    const int64_t *dims; /* in a model -1 stands for a size that is not fixed */
    uint64_t bytes;      /* 0 when not fixed */
} rondo_tensor_info;

typedef struct rondo_plan_info {
    uint32_t struct_size;
    uint32_t segments;
    uint32_t nodes_in; /* of the model, subgraphs included */
    uint32_t calls;    /* steps */
    uint32_t inputs, outputs;
    uint64_t arena_bytes;       /* temporaries */
    uint64_t weight_bytes;      /* constants as the plan holds them */
    uint64_t arena_lower_bound; /* the most bytes alive at one step: no arena is smaller */
} rondo_plan_info;
#define RONDO_PLAN_INFO_INIT \
    { sizeof(rondo_plan_info), 0, 0, 0, 0, 0, 0, 0, 0 }
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_get_info(const rondo_plan *plan, rondo_plan_info *out_info);
/* OUT_OF_RANGE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_input(const rondo_plan *plan, uint32_t index,
                                                       rondo_tensor_info *out_info);
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_output(const rondo_plan *plan, uint32_t index,
                                                        rondo_tensor_info *out_info);

/* Plan x device: prepared kernels and packed weights. Immutable, thread-safe. Holds plan and device. */
RONDO_API RONDO_MUST_USE rondo_status rondo_executable_create(rondo_device *device, rondo_plan *plan,
                                                              rondo_executable **out_executable);
/* For a plan of several targets (rondo_compile_options.catalogues), a device for each in their order, which may be the same;
 * holds them. Inputs and outputs are in the memory of the first. Values go from one to the other through host memory, and
 * a run waits on the host where they do; no capture takes it (UNSUPPORTED). INVALID_ARGUMENT: another number of devices. */
RONDO_API RONDO_MUST_USE rondo_status rondo_executable_create_on(rondo_device *const *devices, uint32_t device_count,
                                                                 rondo_plan *plan, rondo_executable **out_executable);
RONDO_API void rondo_executable_retain(rondo_executable *executable);
RONDO_API void rondo_executable_release(rondo_executable *executable);

/* Executable x memory: an arena, baked addresses, one run in flight. Holds the executable. */
RONDO_API RONDO_MUST_USE rondo_status rondo_context_create(rondo_executable *executable, rondo_context **out_context);
RONDO_API void rondo_context_retain(rondo_context *context);
RONDO_API void rondo_context_release(rondo_context *context);
/* Device addresses of inputs and outputs, in the plan's order, kept until bound again. Buffers must hold the plan's
 * bytes and be aligned to the element. Waits for a run in flight. OUT_OF_RANGE, INVALID_ARGUMENT (null). An output that
 * lies over an input or another output is INVALID_ARGUMENT when a run is asked for. */
RONDO_API RONDO_MUST_USE rondo_status rondo_context_bind_input(rondo_context *context, uint32_t index, void *address);
RONDO_API RONDO_MUST_USE rondo_status rondo_context_bind_output(rondo_context *context, uint32_t index, void *address);
/* Enqueues one run through the context's own list. Everything must be bound: INVALID_STATE names what is not. */
RONDO_API RONDO_MUST_USE rondo_status rondo_context_run(rondo_context *context, rondo_stream *stream);
/* The same step by step through rondo_stream_launch: what a capture records, and the way to compare with. */
RONDO_API RONDO_MUST_USE rondo_status rondo_context_run_eager(rondo_context *context, rondo_stream *stream);

RONDO_EXTERN_C_END

#endif
