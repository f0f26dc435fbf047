/* SPDX-License-Identifier: Apache-2.0
 *
 * For authors of backends and kernel catalogues: the one entry point, the six tables, and the host's services.
 *
 *   backend    enumerate cheaply, open                      one per device type
 *   device     properties, memory info, catalogues, load    one per opened device
 *   memory     raw allocate and free, pinned host memory
 *   stream     create, wrap, order, events, synchronise, capture status, optional execute_list
 *   catalogue  static, opened without a driver: find, pack, prepare
 *   graph      native capture and replay; optional
 *
 * A table entry marked (optional: ...) may be null; the text says what the core does instead. Everything else must be
 * there, and what a backend cannot do answers RONDO_CODE_UNSUPPORTED with a sentence that names it.
 *
 * Rules for every entry. Tables and their strings stay valid until the plugin's shutdown. `void *` handles are the
 * backend's own and opaque to the core. A function that fails leaves its out parameters unset and nothing behind.
 * Entries may be called from any thread; the core never calls two entries on the same stream at the same time, nor on
 * the same event, but streams of one device are used from several threads at once. Statuses, memory and log lines come
 * from the host table, never from elsewhere.
 */
#ifndef RONDO_PLUGIN_H
#define RONDO_PLUGIN_H

#include <rondo/types.h>

RONDO_EXTERN_C_BEGIN

/* Raised when an entry changes its meaning; adding at the end of a table does not raise it. */
#define RONDO_PLUGIN_ABI 1u

/* ------------------------------------------------------------------------------------------------- catalogue */

/* One operand of a kernel request. Shapes are concrete: every size is a number. */
typedef struct rondo_operand {
    rondo_dtype dtype; /* UNDEFINED marks an optional operand that is absent */
    int32_t rank;
    const int64_t *dims;
    const void *constant; /* its value in host memory when it is known when the plan is made, else null. Valid only
                             during the call that gets the request: copy what you keep */
    rondo_format format;
    uint32_t reserved;
} rondo_operand;

/* What a step of a plan asks for. Operators have the form of their prototype (the newest ONNX form: axes as inputs and
 * so on). Operands are compact row-major. Internal attributes that the compiler adds start with "rondo.": a catalogue that
 * does not know one refuses the request.
 *
 * "rondo.sizes" = 1 asks for a kernel whose output sizes depend on data (NonZero): the outputs' dims are bounds, and one
 * output more stands behind the node's own, int64, into which the kernel writes the true dims of each wanted output, one
 * after the other. Its elements lie compact at the beginning of each output. */
typedef struct rondo_kernel_request {
    uint32_t struct_size;
    uint32_t input_count;
    uint32_t output_count;
    uint32_t attribute_count;
    const char *operator_name; /* "Conv"; "domain::Name" outside ONNX's own domain */
    const rondo_operand *inputs;
    const rondo_operand *outputs; /* an unwanted optional output has dtype UNDEFINED */
    const rondo_attribute *attributes;
    const char *node_name; /* for messages; may be null */
} rondo_kernel_request;
#define RONDO_KERNEL_REQUEST_INIT \
    { sizeof(rondo_kernel_request), 0, 0, 0, 0, 0, 0, 0, 0 }

/* What the catalogue says about a request that it accepts. The words of the call are, in this order: one for each input
 * (0 when absent or absorbed), one for each output (0 when unwanted), then scratch when scratch_bytes > 0, then the
 * packed block when packed_bytes > 0. */
typedef struct rondo_kernel_facts {
    uint32_t struct_size;
    uint32_t in_place_inputs; /* bit i: output 0 may be the very memory of input i, given equal dtype and size */
    uint64_t absorbed_inputs; /* bit i: constant input i is wholly in the packed block or the context */
    uint64_t packed_bytes;
    uint64_t scratch_bytes; /* aligned to 64 bytes, contents undefined before and after */
    const char *variant;    /* which kernel was picked and why, for `rondo dump --stage plan`; static text */
} rondo_kernel_facts;
#define RONDO_KERNEL_FACTS_INIT \
    { sizeof(rondo_kernel_facts), 0, 0, 0, 0, 0 }

enum { RONDO_CATALOGUE_HOST = 1u << 0 /* its kernels are host functions, which the compiler may run */ };

/* Every catalogue has, besides operators, the six contract kernels of conformance, on compact arrays:
 *   rondo.fill   words: out, count, value                 out[i] = value, 64-bit integers
 *   rondo.add    words: a, b, out, count                  float32
 *   rondo.copy   words: in, out, bytes
 *   rondo.iota   words: out, count, start                 out[i] = start + i, 64-bit integers
 *   rondo.spin   words: nanoseconds                       busy for about that long
 *   rondo.philox words: out, count, seed, offset          Philox4x32-10, out[i] the i-th 32-bit number of the stream
 * They are requested by that name without operands, and take their words as written here. */
typedef struct rondo_catalogue_table {
    uint32_t struct_size;
    uint32_t flags;
    const char *name;       /* "ref", "cpu" */
    const char *kernel_set; /* tag of the packed form: what was packed under one tag is never used under another */
    /* The index-th operator name, or null past the end. */
    const char *(*operator_at)(void *self, uint32_t index);
    /* Accepts or refuses. UNSUPPORTED with a reason (dtype, rank, attribute) when refused. */
    rondo_status (*find)(void *self, const rondo_kernel_request *request, rondo_kernel_facts *out_facts);
    /* Fills the packed block of facts.packed_bytes bytes at `out` in host memory, aligned to 64 bytes.
     * (optional: no request ever has packed_bytes) */
    rondo_status (*pack)(void *self, const rondo_kernel_request *request, void *out);
    /* Makes the kernel. The context belongs to the caller until release. */
    rondo_status (*prepare)(void *self, const rondo_kernel_request *request, rondo_kernel *out_kernel);
    void (*release)(void *self, rondo_kernel kernel);
} rondo_catalogue_table;

typedef struct rondo_catalogue {
    const rondo_catalogue_table *table;
    void *self;
} rondo_catalogue;

/* ---------------------------------------------------------------------------------------------------- memory */

typedef struct rondo_memory_table {
    uint32_t struct_size;
    uint32_t reserved;
    /* Raw device memory: aligned to properties.allocation_alignment, size > 0. OUT_OF_MEMORY when there is none. */
    rondo_status (*allocate)(void *device, uint64_t size, uint64_t *out_address);
    /* Never fails for a live address and the size it was allocated with; work that uses it has finished. */
    void (*free)(void *device, uint64_t address, uint64_t size);
    /* Host memory that asynchronous copies may use. (optional: the host allocator's memory) */
    rondo_status (*host_allocate)(void *device, uint64_t size, void **out_pointer);
    void (*host_free)(void *device, void *pointer, uint64_t size);
    /* Tells the backend that the core's allocator gave a range out again or took it back, so that it can poison it.
     * (optional: nothing) */
    void (*on_reuse)(void *device, uint64_t address, uint64_t size, bool taken);
} rondo_memory_table;

/* ---------------------------------------------------------------------------------------------------- stream */

enum {
    RONDO_STREAM_DEFAULT = 0,
    RONDO_STREAM_ASYNCHRONOUS = 1u << 0 /* work runs apart from the caller where the device leaves the choice */
};

typedef struct rondo_stream_table {
    uint32_t struct_size;
    uint32_t reserved;
    rondo_status (*create)(void *device, uint32_t flags, int32_t priority, void **out_stream);
    /* A stream over a native handle that the caller keeps. (optional: UNSUPPORTED) */
    rondo_status (*wrap)(void *device, void *native, void **out_stream);
    /* Finishes or drops nothing: the core synchronises first. */
    void (*destroy)(void *device, void *stream);
    /* Enqueue in order. All data is copied before the return. */
    rondo_status (*launch)(void *stream, const rondo_call *call);
    rondo_status (*copy)(void *stream, uint64_t destination, uint64_t source, uint64_t bytes, rondo_copy_kind kind);
    rondo_status (*fill)(void *stream, uint64_t address, uint8_t value, uint64_t bytes);
    rondo_status (*host_call)(void *stream, rondo_host_function function, void *user);
    /* Waits for everything enqueued; returns and clears the first failure since the last synchronise: KERNEL_FAILED
     * names the call. */
    rondo_status (*synchronize)(void *stream);
    rondo_status (*query)(void *stream, bool *out_done);
    rondo_status (*event_create)(void *device, void **out_event);
    void (*event_destroy)(void *device, void *event);
    rondo_status (*event_record)(void *event, void *stream);
    /* The stream's later work waits for the event's last record; an event never recorded holds nothing up. */
    rondo_status (*event_wait)(void *event, void *stream);
    rondo_status (*event_query)(void *event, bool *out_done);
    rondo_status (*event_synchronize)(void *event);
    /* The core records a capture on this stream itself (active) or stopped doing so. While active it enqueues nothing
     * here; a backend with strict rules refuses what reaches it all the same. (optional: nothing) */
    void (*capture_changed)(void *stream, bool active, rondo_capture_mode mode);
    /* Runs a whole list in order; the list and its words stay until the stream's work has finished. Stops at the first
     * nonzero kernel and writes the entry's index to out_failed (which is UINT64_MAX otherwise).
     * (optional: the core launches entry by entry) */
    rondo_status (*execute_list)(void *stream, const rondo_list *list, uint64_t *out_failed);
    /* What is enqueued until the matching end runs only where the int64 at `address`, in device memory, is not 0 when the
     * stream gets there; records and waits in between happen all the same. They nest. An end needs nothing that its begin
     * did not put by. (optional, both or none: conditions in graphs are UNSUPPORTED, unless execute_list runs them) */
    rondo_status (*condition_begin)(void *stream, uint64_t address);
    void (*condition_end)(void *stream);
} rondo_stream_table;

/* ----------------------------------------------------------------------------------------------------- graph */

/* Native graphs: an optimisation a device may offer. Without this table, or where an entry is null, the core replays
 * its own call list, with the same results. */
typedef struct rondo_graph_table {
    uint32_t struct_size;
    uint32_t reserved;
    rondo_status (*capture_begin)(void *stream, rondo_capture_mode mode);
    /* Whatever it answers, the stream is not captured any more. */
    rondo_status (*capture_end)(void *stream, void **out_graph);
    rondo_status (*instantiate)(void *device, void *graph, void **out_executable); /* (optional: graph is executable) */
    /* UNSUPPORTED, OUT_OF_RANGE and OUT_OF_MEMORY: it does not run here; the core replays its own list from then on. */
    rondo_status (*launch)(void *executable, void *stream);
    rondo_status (*update)(void *executable, uint64_t node, const rondo_argument *arguments, uint32_t argument_count);
    void (*destroy)(void *device, void *graph, void *executable);
    rondo_status (*debug_print)(void *graph, const char *path);
    /* Exchanges the calling thread's capture mode. */
    rondo_status (*thread_mode)(void *device, rondo_capture_mode mode, rondo_capture_mode *out_before);
    /* On a stream that the device captures: a node, numbered as the others are, that records or waits for an event
     * outside of the graph at each launch. What is enqueued behind a launch and waits for the event waits for that
     * record; a wait is for the record that was the latest at the launch. (optional, both or none: the core replays
     * such graphs node by node) */
    rondo_status (*event_record)(void *event, void *stream);
    rondo_status (*event_wait)(void *event, void *stream);
} rondo_graph_table;

/* ---------------------------------------------------------------------------------------- device and backend */

typedef struct rondo_device_table {
    uint32_t struct_size;
    uint32_t reserved;
    const rondo_memory_table *memory;
    const rondo_stream_table *stream;
    const rondo_graph_table *graph; /* (optional) */
    rondo_status (*properties)(void *device, rondo_device_properties *out_properties);
    rondo_status (*memory_info)(void *device, uint64_t *out_free, uint64_t *out_total);
    /* Names of the catalogues whose kernels run here, best first; null past the end. */
    const char *(*catalogue_at)(void *device, uint32_t index);
    /* Loads device code and makes its kernels known by name. (optional: UNSUPPORTED) */
    rondo_status (*load)(void *device, const void *image, uint64_t bytes, void **out_module);
    rondo_status (*module_kernel)(void *module, const char *name, rondo_kernel *out_kernel);
    void (*unload)(void *device, void *module);
    /* A named count for tests and reports ("launches", "copies", ...); NOT_FOUND for others. (optional: NOT_FOUND) */
    rondo_status (*counter)(void *device, const char *name, uint64_t *out_value);
    void (*close)(void *device);
} rondo_device_table;

typedef struct rondo_backend_table {
    uint32_t struct_size;
    uint32_t capabilities; /* RONDO_DEVICE_*: what all its devices can do, known without opening one */
    const char *name;      /* the device type: lower case, [a-z0-9_]+ */
    const char *description;
    /* Cheap: opens no driver it can avoid. Zero devices is not an error; UNAVAILABLE says why there is no driver. */
    rondo_status (*enumerate)(void *self, uint32_t *out_count);
    /* settings: "key=value,key=value" or null; an unknown key is INVALID_ARGUMENT. */
    rondo_status (*open)(void *self, uint32_t index, const char *settings, const rondo_device_table **out_table,
                         void **out_device);
} rondo_backend_table;

typedef struct rondo_backend {
    const rondo_backend_table *table;
    void *self;
} rondo_backend;

/* ------------------------------------------------------------------------------------------ the plugin's entry */

typedef struct rondo_host_api {
    uint32_t struct_size;
    uint32_t abi;
    void *host; /* first argument of the functions below */
    rondo_allocator allocator;
    /* Makes a failure; the message is bounded to 1023 bytes. Never returns null: use the macro below. */
    rondo_status (*status_make)(rondo_code code, rondo_layer layer, const char *file, int32_t line, const char *format,
                                ...) RONDO_PRINTF(5, 6);
    /* Adds a note and returns the same status. */
    rondo_status (*status_note)(rondo_status status, const char *format, ...) RONDO_PRINTF(2, 3);
    rondo_code (*status_code)(rondo_status status);
    void (*status_release)(rondo_status status);
    void (*log)(void *host, rondo_log_level level, const char *text);
    /* A catalogue registered by any plugin of the instance, those loaded later too. NOT_FOUND. */
    rondo_status (*find_catalogue)(void *host, const char *name, rondo_catalogue *out_catalogue);
} rondo_host_api;

#define RONDO_PLUGIN_FAIL(host_api, code, layer, ...) \
    ((host_api)->status_make(RONDO_CODE_##code, RONDO_LAYER_##layer, __FILE__, (int32_t)__LINE__, __VA_ARGS__))

typedef struct rondo_plugin_api {
    uint32_t struct_size;
    uint32_t abi;
    const char *name;
    const char *version;
    uint32_t backend_count;
    uint32_t catalogue_count;
    const rondo_backend *backends;
    const rondo_catalogue *catalogues;
    void *self;
    void (*shutdown)(void *self); /* the last call; every device is closed. May be null */
} rondo_plugin_api;

/* The one symbol of a plugin: `rondo_plugin_entry` in a shared library, `rondo_plugin_entry_<name>` when embedded.
 * `abi` is the host's RONDO_PLUGIN_ABI: a plugin that needs a newer one returns UNSUPPORTED. Called once an instance;
 * keep nothing in globals. */
typedef rondo_status (*rondo_plugin_entry_function)(uint32_t abi, const rondo_host_api *host,
                                                    const rondo_plugin_api **out_api);
#define RONDO_PLUGIN_ENTRY_SYMBOL "rondo_plugin_entry"

RONDO_EXTERN_C_END

#endif
