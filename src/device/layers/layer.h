/* SPDX-License-Identifier: Apache-2.0
 *
 * What every layer is made of: tables that forward, handles, and two functions around each call.
 */
#ifndef RONDO_SRC_DEVICE_LAYERS_LAYER_H
#define RONDO_SRC_DEVICE_LAYERS_LAYER_H

#include "base/buffer.h"
#include "base/thread.h"
#include "device/layers/layers.h"

/* The entries that a layer forwards, by plugin.h's names. */
#define RONDO__LAYER_ENTRIES(X)                 \
    X(MEMORY_INFO, "memory_info")               \
    X(LOAD, "load")                             \
    X(MODULE_KERNEL, "module_kernel")           \
    X(UNLOAD, "unload")                         \
    X(ALLOCATE, "allocate")                     \
    X(FREE, "free")                             \
    X(HOST_ALLOCATE, "host_allocate")           \
    X(HOST_FREE, "host_free")                   \
    X(ON_REUSE, "on_reuse")                     \
    X(CREATE, "create")                         \
    X(WRAP, "wrap")                             \
    X(DESTROY, "destroy")                       \
    X(LAUNCH, "launch")                         \
    X(COPY, "copy")                             \
    X(FILL, "fill")                             \
    X(HOST_CALL, "host_call")                   \
    X(SYNCHRONIZE, "synchronize")               \
    X(QUERY, "query")                           \
    X(EVENT_CREATE, "event_create")             \
    X(EVENT_DESTROY, "event_destroy")           \
    X(EVENT_RECORD, "event_record")             \
    X(EVENT_WAIT, "event_wait")                 \
    X(EVENT_QUERY, "event_query")               \
    X(EVENT_SYNCHRONIZE, "event_synchronize")   \
    X(CAPTURE_CHANGED, "capture_changed")       \
    X(EXECUTE_LIST, "execute_list")             \
    X(CONDITION_BEGIN, "condition_begin")       \
    X(CONDITION_END, "condition_end")           \
    X(CAPTURE_BEGIN, "capture_begin")           \
    X(CAPTURE_END, "capture_end")               \
    X(INSTANTIATE, "instantiate")               \
    X(GRAPH_LAUNCH, "launch of a native graph") \
    X(UPDATE, "update")                         \
    X(GRAPH_DESTROY, "destroy of a native graph")

typedef int32_t rondo__layer_entry;
enum {
#define RONDO_X(name, text) RONDO__LAYER_##name,
    RONDO__LAYER_ENTRIES(RONDO_X)
#undef RONDO_X
        RONDO__LAYER_ENTRY_COUNT
};
const char *rondo__layer_entry_name(rondo__layer_entry entry);

typedef struct rondo__layer rondo__layer;

typedef enum rondo__layer_type {
    RONDO__LAYER_STREAM,
    RONDO__LAYER_EVENT,
    RONDO__LAYER_MODULE,
    RONDO__LAYER_GRAPH
} rondo__layer_type;

/* A handle. One that was destroyed stays readable for a while where the layer asks for that. */
typedef struct rondo__layer_object {
    rondo__layer *layer;
    void *lower;
    struct rondo__layer_object *next, *previous;
    rondo__layer_type type;
    uint32_t id; /* of its type, from 1 */
    bool alive;
    bool capturing, working; /* of a stream: it records; it has work that nobody has waited for */
    uint64_t busy;           /* of a stream: the thread that is inside, 0 for none; atomic */
} rondo__layer_object;

/* One call on its way down. `before` may change what is forwarded. */
typedef struct rondo__layer_call {
    rondo__layer_entry entry;
    rondo__layer_object *object; /* the handle it is about; null for the device's entries */
    rondo__layer_object *stream; /* of an event's or a native graph's entry */
    const rondo_call *call;
    rondo_call changed; /* room for another call */
    const rondo_list *list;
    uint64_t destination, source, bytes; /* memory entries: destination is the address */
    rondo_copy_kind kind;
    rondo_host_function function;
    void *user;
    bool active; /* on_reuse: taken; free: set by `before` to keep the memory for now */
    rondo_capture_mode mode;
    uint32_t flags;
    uint64_t began; /* the layer's own: when */
    bool nested;    /* the layer's own: the thread was inside already */
} rondo__layer_call;

typedef struct rondo__layer_hooks {
    const char *name;
    bool keeps_dead;
    bool hides_lists; /* no execute_list: lists come call by call */
    /* A failure is returned in the place of the call; where the entry returns nothing it is logged. */
    rondo_status (*before)(rondo__layer *layer, rondo__layer_call *call);
    /* What came back. `out` is what the entry made: an address. May turn a success into a failure, which takes back
     * nothing by itself. */
    rondo_status (*after)(rondo__layer *layer, rondo__layer_call *call, rondo_status status);
    rondo_status (*counter)(rondo__layer *layer, const char *name, uint64_t *out_value); /* NOT_FOUND; may be null */
    void (*close)(rondo__layer *layer);
} rondo__layer_hooks;

#define RONDO__LAYER_DEAD 256u
struct rondo__layer {
    const rondo__layer_hooks *hooks;
    rondo_allocator allocator;
    rondo__log log;
    const rondo_device_table *lower;
    void *device; /* below */
    rondo_device_properties properties;
    rondo_device_table table;
    rondo_memory_table memory;
    rondo_stream_table stream;
    rondo_graph_table graph;
    rondo__mutex mutex;           /* everything below */
    rondo__layer_object *objects; /* alive */
    uint32_t ids[RONDO__LAYER_GRAPH + 1];
    rondo__layer_object *dead[RONDO__LAYER_DEAD];
    uint32_t dead_next;
};

/* Reads the properties below and fills the tables. `layer` is zeroed memory whose first member is a rondo__layer, `size`
 * bytes of it, which `close` gives back. */
RONDO_MUST_USE rondo_status rondo__layer_init(rondo__layer *layer, const rondo__layer_hooks *hooks,
                                              const rondo_allocator *allocator, const rondo__log *log,
                                              const rondo_device_table *lower, void *device);
/* Frees what init and the handles took, not the layer. */
void rondo__layer_deinit(rondo__layer *layer);

RONDO_MUST_USE rondo_status rondo__validate_create(const rondo_allocator *allocator, const rondo__log *log,
                                                   const rondo_device_table *lower, void *device,
                                                   rondo__layer **out_layer);
/* `file` is where it writes when it is closed; `name` is the device's. */
RONDO_MUST_USE rondo_status rondo__trace_create(const rondo_allocator *allocator, const rondo__log *log,
                                                const rondo_device_table *lower, void *device, const char *file,
                                                const char *name, rondo__layer **out_layer);

#endif
