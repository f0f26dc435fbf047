/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph trees: functions that are called again and again are run once to warm up, recorded once, and replayed from then
 * on, all in one memory pool, for any device (rondo_graph_ops) and any framework of tensors (rondo_tensor_host).
 *
 * What is recorded is a tree: a node is one recording of one function after the recordings before it, because its
 * addresses depend on what was alive then. docs/trees.md tells the whole. The rules of runtime.h hold here, too.
 */
#ifndef RONDO_TREE_H
#define RONDO_TREE_H

#include <rondo/runtime.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_tree rondo_tree;

/* ------------------------------------------------------------------------------------------------------ lease */

/* An output that a tree handed out lives on memory that the tree will use again. Its storage holds a lease and the epoch
 * that came with it, asks the lease before its memory is used, and tells it when it ends. Whoever ends the memory first,
 * the other learns it. Thread-safe, except that a storage ends once. */
typedef struct rondo_tree_lease rondo_tree_lease;

RONDO_API bool rondo_tree_lease_alive(const rondo_tree_lease *lease, uint64_t epoch);
/* Success while it is alive; else STALE (tree), which names the function that made the output, the later run that took
 * its memory, and the two remedies. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_lease_check(const rondo_tree_lease *lease, uint64_t epoch);
/* The storage has ended, or has other memory now: exactly once for each epoch that it was given. Gives the memory back
 * where it is the allocator's; never waits for the tree. */
RONDO_API void rondo_tree_lease_release(rondo_tree_lease *lease, uint64_t epoch);
/* What the host ties to it (rondo_tree_output); for its poison and evacuate functions. Of weak hosts it is what watch gave
 * for the storage that is alive. */
RONDO_API void *rondo_tree_lease_storage(const rondo_tree_lease *lease);
RONDO_API void rondo_tree_lease_set_storage(rondo_tree_lease *lease, void *storage);
/* Address and bytes of the storage's memory in the pool. */
RONDO_API uint64_t rondo_tree_lease_pointer(const rondo_tree_lease *lease);
RONDO_API uint64_t rondo_tree_lease_bytes(const rondo_tree_lease *lease);

/* ------------------------------------------------------------------------------------------------- graph ops */

/* A block of the tree's pool that a storage outside lives on. `storage` is the host's (a weak one of a foreign host). */
typedef struct rondo_tree_block {
    uint64_t pointer;
    void *storage;
} rondo_tree_block;

typedef struct rondo_tree_copy {
    uint64_t destination, source, bytes;
    void *tensor;   /* the source: the host's */
    void *metadata; /* of the destination: what the host kept for it */
} rondo_tree_copy;

typedef struct rondo_tree_graph_facts {
    uint64_t nodes; /* 0: nothing was recorded, and it is never replayed */
    uint64_t bytes; /* host memory that the graph keeps */
    uint32_t fixed; /* 1: its addresses cannot be bound anew */
    uint32_t reserved;
} rondo_tree_graph_facts;

/* What a device does for a tree. Members marked optional may be null. `user` comes first everywhere. Streams and graphs
 * are the device's own handles. Called with the tree's lock held, by the thread that called the tree. */
typedef struct rondo_graph_ops {
    uint32_t struct_size;
    uint32_t flags; /* RONDO_GRAPH_OPS_* */
    void *user;
    bool (*is_graph_capture_supported)(void *user);
    bool (*caching_allocator_enabled)(void *user); /* optional: true */

    /* Pools. What the calling thread allocates between begin and end comes from the pool. begin raises the pool's use
     * count, which release lowers; the pool ends at 0. */
    rondo_status (*graph_pool_handle)(void *user, rondo_pool_id *out_pool);
    rondo_status (*begin_allocate_current_thread_to_pool)(void *user, rondo_pool_id pool);
    rondo_status (*end_allocate_to_pool)(void *user, rondo_pool_id pool);
    rondo_status (*release_pool)(void *user, rondo_pool_id pool);
    /* The pool's exact layout, and back to it. After set, blocks of `live` belong to their storages; every other block
     * that the state has alive is freed (`dead` lists those that the tree knows). A failure changes nothing. */
    rondo_status (*get_checkpoint_state)(void *user, rondo_pool_id pool, void **out_state);
    void (*release_checkpoint_state)(void *user, void *state);
    rondo_status (*set_checkpoint_pool_state)(void *user, rondo_pool_id pool, void *state, const rondo_tree_block *live,
                                              uint64_t live_count, const uint64_t *dead, uint64_t dead_count);
    rondo_status (*check_pool_live_allocations)(void *user, rondo_pool_id pool, const uint64_t *expected,
                                                uint64_t expected_count, bool *out_equal);
    /* Frees a live block of the pool. From any thread. */
    rondo_status (*raw_delete)(void *user, uint64_t pointer);
    /* Optional. Bytes that the pool has from the device, and of those that are live. */
    rondo_status (*pool_bytes)(void *user, rondo_pool_id pool, uint64_t *out_reserved, uint64_t *out_allocated);
    /* Optional. Gives back the pool's segments that hold no live block and that none of the states has touched. */
    rondo_status (*trim_pool)(void *user, rondo_pool_id pool, void *const *states, uint64_t state_count);
    /* Optional. Addresses and sizes (`bytes` may be null) of the pool's live blocks; returns how many there are. */
    uint64_t (*memory_snapshot)(void *user, rondo_pool_id pool, rondo_tree_block *blocks, uint64_t *bytes,
                                uint64_t capacity);
    /* Optional. Around each warm-up (recording false) and each recording: workspaces of libraries are cleared, say. */
    rondo_status (*prepare_for_capture)(void *user, bool recording, bool enter);

    /* Streams. */
    rondo_status (*create_stream)(void *user, void **out_stream);
    void (*release_stream)(void *user, void *stream);
    void (*retain_stream)(void *user, void *stream); /* optional: the tree keeps the stream that it used last */
    rondo_status (*stream_wait)(void *user, void *stream, void *other); /* stream goes on after what other has now */
    rondo_status (*synchronize)(void *user, void *stream);

    /* Graphs. replay goes to any stream. release waits behind the last replay. abort ends a capture in any condition;
     * stream and pool are usable afterwards. */
    rondo_status (*create_graph)(void *user, const char *name, void **out_graph);
    rondo_status (*capture_begin)(void *user, void *graph, void *stream, rondo_pool_id pool, rondo_capture_mode mode);
    rondo_status (*capture_end)(void *user, void *graph, void *stream, rondo_tree_graph_facts *out_facts);
    void (*abort)(void *user, void *graph);
    rondo_status (*replay)(void *user, void *graph, void *stream);
    void (*release_graph)(void *user, void *graph);
    /* Optional, together. Before capture_begin: the range may be bound anew (slots are 0, 1, ... in this order); then: it is
     * at `address` from now on. */
    rondo_status (*declare_slot)(void *user, void *graph, uint32_t slot, uint64_t address, uint64_t bytes);
    rondo_status (*bind)(void *user, void *graph, uint32_t slot, uint64_t address);
    /* Device to device, in stream order. */
    rondo_status (*copy)(void *user, void *stream, const rondo_tree_copy *copies, uint64_t count);
    /* Optional. The tree and the last of its leases are gone: nothing of the ops is called any more. */
    void (*destroy)(void *user);
} rondo_graph_ops;
#define RONDO_GRAPH_OPS_INIT \
    { .struct_size = sizeof(rondo_graph_ops) }
enum {
    RONDO_GRAPH_OPS_REBIND = 1u << 0,      /* binding is cheaper than copying: inputs that move are bound */
    RONDO_GRAPH_OPS_CHILD_GRAPHS = 1u << 1 /* replay on a capturing stream makes a child: sequences become one graph */
};

/* -------------------------------------------------------------------------------------------------- tensor host */

typedef int32_t rondo_tensor_place;
enum {
    RONDO_TENSOR_NONE = 0,   /* not a tensor: a number, nothing */
    RONDO_TENSOR_DEVICE = 1, /* on the tree's device */
    RONDO_TENSOR_HOST = 2,   /* in host memory */
    RONDO_TENSOR_OTHER = 3   /* on another device */
};

typedef struct rondo_tensor_facts {
    rondo_tensor_place place;
    int32_t rank;
    uint64_t pointer;                /* lowest byte that belongs to it; 0: no memory */
    uint64_t bytes;                  /* from there to the end of its last element */
    uint64_t storage, storage_bytes; /* the memory that it is a part of */
    rondo_tree_lease *lease;         /* of its storage, when a tree gave it one; else null */
    uint64_t epoch;
} rondo_tensor_facts;

/* How an output comes to be at a replay. */
typedef int32_t rondo_tree_output_kind;
enum {
    RONDO_TREE_OUTPUT_KEPT = 0, /* the very object that was kept: numbers, nothing, tensors without memory, constants */
    RONDO_TREE_OUTPUT_FRESH = 1, /* a new storage on the lease's memory, which has the lease and the epoch */
    RONDO_TREE_OUTPUT_ALIAS = 2, /* on the storage that output `index` of this call has got */
    RONDO_TREE_OUTPUT_PATH = 3,  /* on the living storage that has the lease: an output of an earlier run */
    RONDO_TREE_OUTPUT_INPUT = 4  /* on the storage of input `index` of this call, `offset` behind the input */
};
typedef struct rondo_tree_output {
    rondo_tree_output_kind kind;
    uint32_t index;
    uint32_t shared; /* 1: other outputs lie on the same storage, so that the object cannot be used again */
    uint32_t reserved;
    void *metadata; /* what keep made */
    rondo_tree_lease *lease;
    uint64_t epoch;
    int64_t offset; /* of kind INPUT: bytes from the input's first byte to the output's */
} rondo_tree_output;

typedef int32_t rondo_tree_phase;
enum {
    RONDO_TREE_DIRECT = 0, /* an ordinary call, in ordinary memory */
    RONDO_TREE_WARMUP = 1, /* an ordinary call, in the pool, on the tree's stream */
    RONDO_TREE_RECORD = 2, /* under capture: work is recorded, nothing runs */
    RONDO_TREE_REPLAY = 3
};

typedef struct rondo_tree_run_context {
    uint32_t struct_size;
    rondo_tree_phase phase;
    rondo_tree *tree;
    uint32_t function;
    uint32_t reserved;
    void *model;  /* as it was given with the function */
    void *stream; /* that the work goes to */
} rondo_tree_run_context;

/* What a framework of tensors does for a tree. A tensor is a pointer of the host's that stands for one reference; null is
 * none. Functions that make one give a reference; functions that take an array of them by `void **` consume: they set
 * the entries to null. Called with the tree's lock held, by the thread that called the tree; never in the middle of a
 * release of the host's. They must not call the tree, but run may (such a call goes directly). */
typedef struct rondo_tensor_host {
    uint32_t struct_size;
    uint32_t flags; /* RONDO_TENSOR_HOST_* */
    void *user;
    /* The hot one. For each tensor its pointer (rondo_tensor_facts) and a word that is the same for the same data type,
     * shape, strides and place, and else with near certainty another (for numbers: the value). False: some tensor cannot
     * be used, and check says why. */
    bool (*facts)(void *user, void *const *tensors, uint32_t count, uint64_t *pointers, uint64_t *words);
    rondo_status (*check)(void *user, void *tensor); /* optional */
    rondo_status (*describe)(void *user, void *tensor, rondo_tensor_facts *out_facts);
    /* Runs the model. Consumes all inputs, also on failure; a failure makes no outputs. */
    rondo_status (*run)(void *user, const rondo_tree_run_context *context, void **inputs, uint32_t input_count,
                        void **outputs, uint32_t output_count);
    void *(*retain)(void *user, void *tensor);
    void (*release)(void *user, void **tensors, uint32_t count);
    /* A tensor like this one in new memory (from the pool: allocation is diverted), without contents. */
    rondo_status (*make_input)(void *user, void *like, void *stream, void **out_tensor);
    /* Optional: copies into recorded inputs; null: ops->copy of the bytes. */
    rondo_status (*copy_inputs)(void *user, void *stream, const rondo_tree_copy *copies, uint64_t count);
    /* What make_outputs needs to build such a tensor again; for kind KEPT the tensor itself. */
    rondo_status (*keep)(void *user, void *tensor, bool itself, void **out_metadata);
    void (*drop)(void *user, void *metadata);
    /* The storage has the lease now: it tells it when it ends instead of freeing its memory. */
    void (*adopt)(void *user, void *tensor, rondo_tree_lease *lease, uint64_t epoch);
    /* `inputs` are the call's, as far as they have not been released. A failure makes none of them. */
    rondo_status (*make_outputs)(void *user, const rondo_tree_output *outputs, uint32_t count, void *const *inputs,
                                 void **out_tensors);
    /* A copy in ordinary memory, enqueued on the stream. Consumes nothing. */
    rondo_status (*own)(void *user, void *stream, void *tensor, void **out_tensor);
    /* Optional. The storage's memory is about to be used again: from now on its use fails with this text, and (weak
     * hosts) its end frees nothing. Hosts that ask the lease need none. `storage`: what lease_set_storage was given, or
     * the weak reference. */
    void (*poison)(void *user, void *storage, const char *message);
    /* Optional. Moves the storage to ordinary memory, contents copied on the stream; it forgets its lease. */
    rondo_status (*evacuate)(void *user, void *stream, void *storage, uint64_t pointer, uint64_t bytes);
    /* Optional: around warm-up and recording. */
    rondo_status (*enter)(void *user, rondo_tree_phase phase, void *stream);
    void (*leave)(void *user, rondo_tree_phase phase);
    /* Optional. Which step the host is in; below 0 when somebody marked it (counting down), else counting up with each
     * outermost call of compiled code. Null: rondo_tree_mark_step alone divides steps. */
    int64_t (*generation)(void *user);
    /* Of hosts whose allocator is not Rondo's (RONDO_TENSOR_HOST_WEAK): a weak reference to the tensor's storage,
     * whether the storage is alive, and its release. `adopt` is then not called. */
    rondo_status (*watch)(void *user, void *tensor, void **out_weak);
    bool (*alive)(void *user, void *weak);
    void (*unwatch)(void *user, void *weak);
    /* Optional. The tree is gone: nothing of the host is called any more. */
    void (*destroy)(void *user);
    /* Optional. Of the simple path, which hands out the same tensors at each call: these have just been written anew, in
     * the place of what they held since the call before. Who has saved them for a backward is to find out. */
    void (*overwritten)(void *user, void *const *tensors, uint32_t count);
} rondo_tensor_host;
#define RONDO_TENSOR_HOST_INIT \
    { .struct_size = sizeof(rondo_tensor_host) }
enum {
    /* Storages cannot hold leases: they are watched. Nobody is told when one ends, so that none may end while another
     * thread is inside the tree: who ends them holds the lock (of the host's) under which the tree is called. */
    RONDO_TENSOR_HOST_WEAK = 1u << 0,
    /* The host calls rondo_tree_flush before it lets anybody read an output or enqueue other work: launches of a sealed
     * sequence may wait for its last call. */
    RONDO_TENSOR_HOST_FLUSHES = 1u << 1,
    /* Storages of the tree's outputs end one at a time, and never while another thread is inside the tree: with one
     * thread, or under one lock of the host's. Their ends then cost no atomic operation. */
    RONDO_TENSOR_HOST_SERIAL = 1u << 2
};

/* ------------------------------------------------------------------------------------------------------- tree */

typedef int32_t rondo_tree_conflict;
enum {
    RONDO_TREE_CONFLICT_ERROR = 0, /* an output whose memory is used again fails when it is used */
    RONDO_TREE_CONFLICT_COPY = 1   /* it is moved to ordinary memory first (the host's evacuate) */
};

typedef struct rondo_tree_options {
    uint32_t struct_size;
    int32_t index;                 /* of the device */
    const char *type;              /* of the device */
    uint64_t context;              /* the host's: one a user thread, say. Trees are one a (type, index, context) */
    const rondo_graph_ops *ops;    /* copied */
    const rondo_tensor_host *host; /* copied */
    uint32_t record_after;         /* the call of a size that is recorded; 1: no warm-up */
    uint32_t always_warm_up;       /* 1: nothing is ever recorded */
    uint32_t rerecord_limit;       /* recordings of a function after the same node because an address changed */
    uint32_t size_limit;           /* sizes of a function that are recorded; 0: any */
    uint32_t size_warning;         /* sizes of a function that are warned of once; 0: never */
    uint32_t recording_limit;      /* recordings of the tree: the least recently used go; 0: any */
    uint32_t loop_limit;           /* how often a function may follow itself in a path, fed with what the path made */
    uint32_t seal_after;           /* times that a sequence has to repeat before it is sealed; 0: never */
    uint32_t cost_samples;         /* replays after which a function that gains nothing is called directly; 0: never */
    uint32_t strict;               /* 1: a call that is not graphed fails with its reason, instead of going directly */
    uint32_t check_pool; /* 1: after each warm-up and recording the pool holds what the tree knows, else an error */
    rondo_tree_conflict conflict;
    uint64_t byte_limit;           /* of the pool; 0: none */
    uint64_t (*clock)(void *user); /* nanoseconds; null: the monotonic clock */
    void *clock_user;
} rondo_tree_options;
#define RONDO_TREE_OPTIONS_INIT                                                                                 \
    {                                                                                                           \
        .struct_size = sizeof(rondo_tree_options), .record_after = 2, .rerecord_limit = 128, .size_warning = 8, \
        .recording_limit = 4096, .loop_limit = 8, .seal_after = 16, .cost_samples = 64, .check_pool = 1         \
    }

/* The tree of that key, with a reference; made if there is none. Else it keeps the options and tables that it has. Success
 * takes the tables over in either case: their `destroy` is called when nobody needs them. Thread-safe. UNSUPPORTED (tree): the device captures no graphs, or its caching allocator is off. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_open(rondo_instance *instance, const rondo_tree_options *options,
                                                      rondo_tree **out_tree);
RONDO_API void rondo_tree_retain(rondo_tree *tree);
/* The last release resets it. Outputs that are alive stay usable. */
RONDO_API void rondo_tree_release(rondo_tree *tree);
/* Drops all recordings and their memory; functions stay and are warmed up anew. Outputs that are alive stay usable: the
 * allocator has them from now on. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_reset(rondo_tree *tree);

typedef int32_t rondo_tree_mode;
enum { RONDO_TREE_INFERENCE = 0, RONDO_TREE_FORWARD = 1, RONDO_TREE_BACKWARD = 2 };

typedef struct rondo_tree_function {
    uint32_t struct_size;
    rondo_tree_mode mode;
    const char *name;                   /* for messages; copied */
    void *model;                        /* for the host's run */
    void (*release_model)(void *model); /* optional: when the function goes */
    uint32_t input_count, output_count;
    const uint32_t *static_inputs; /* indices of inputs whose addresses rarely change (parameters): never copied */
    uint32_t static_count;
    uint32_t mutated_count;
    const uint32_t *mutated_inputs; /* indices of inputs that it writes */
    void *const *constants;         /* tensors that it uses besides; kept alive */
    uint32_t constant_count;
    uint32_t owned_count;
    const uint32_t *owned_outputs; /* indices of outputs that are returned as copies in ordinary memory */
    const char *skip;              /* not null: never graphed, and why (a verdict of rondo_gates_check) */
    uint32_t simple; /* 1: the non-tree path: its own pool, one recording, the same outputs at each call */
    uint32_t reserved;
} rondo_tree_function;
#define RONDO_TREE_FUNCTION_INIT \
    { .struct_size = sizeof(rondo_tree_function) }

/* INVALID_ARGUMENT: an index out of range. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_add_function(rondo_tree *tree, const rondo_tree_function *function,
                                                              uint32_t *out_function);
/* Its recordings, and what was recorded after them, go. NOT_FOUND. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_remove_function(rondo_tree *tree, uint32_t function);

/* Calls a function: warms up, records, replays or calls it directly, with the same results. Consumes the inputs, also on
 * failure. `stream` is the caller's current stream. Thread-safe: calls of one tree come one after the other; a call from
 * inside a call goes directly. STALE (tree): an input is an output whose memory was used again; what the model fails
 * with; with `strict`, UNSUPPORTED (tree) with the reason why it is not graphed. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_run(rondo_tree *tree, uint32_t function, void *stream, void **inputs,
                                                     uint32_t input_count, void **outputs, uint32_t output_count);

/* A new step begins: outputs of calls before it are used up. Thread-safe. */
RONDO_API void rondo_tree_mark_step(rondo_tree *tree);
/* A backward of the step runs elsewhere than in the tree: forwards that wait for one wait no more. */
RONDO_API void rondo_tree_set_running_backward(rondo_tree *tree);
/* From inside a model that warms up: what it sets up is not there yet, so that the next call with the same sizes warms up
 * once more, instead of being recorded. At any other time, and on any other thread, nothing. */
RONDO_API void rondo_tree_mark_warmup_incomplete(rondo_tree *tree);
/* Launches what a sealed sequence still owes (RONDO_TENSOR_HOST_FLUSHES). */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_flush(rondo_tree *tree);

/* -------------------------------------------------------------------------------------------- reasons, report */

/* Why a call was not replayed. Each has a counter a function.   name, number, sentence */
#define RONDO_TREE_REASONS(X)                                                                       \
    X(NONE, 0, "replayed")                                                                          \
    X(WARMUP, 1, "warm-up before the recording")                                                    \
    X(FIRST, 2, "recorded for the first time here")                                                 \
    X(STATIC_MOVED, 3, "static input data pointer changed")                                         \
    X(MANAGED_MOVED, 4, "cudagraph managed tensor data pointer changed")                            \
    X(OUTPUT_LIVE, 5, "expected dead indices before graph are live")                                \
    X(INPUT_DIED_NOT, 6, "an output that the recording consumed is still in use")                   \
    X(VALUE_CHANGED, 7, "the value of a host tensor changed")                                       \
    X(MUTATED, 8, "mutated inputs that are neither static nor outputs of the tree")                 \
    X(RERECORD_LIMIT, 9, "recorded too often after the same run")                                   \
    X(SIZE_LIMIT, 10, "too many sizes")                                                             \
    X(SIZE_RARE, 11, "this size was not seen often enough")                                         \
    X(BYTE_LIMIT, 12, "the pool has reached its limit of bytes")                                    \
    X(NOT_FASTER, 13, "replaying is not faster than calling")                                       \
    X(REJECTED, 14, "it cannot be captured")                                                        \
    X(SKIPPED, 15, "a gate refused it")                                                             \
    X(NESTED, 16, "called from inside another call of the tree")                                    \
    X(PENDING_BACKWARD, 17, "warm-up goes on because a backward of an earlier forward has not run") \
    X(HOST_INPUT, 18, "an input is a tensor in host memory")                                        \
    X(OTHER_DEVICE, 19, "an input is on another device")                                            \
    X(UNTRACKED, 20, "memory that is none of its outputs stayed in the pool")                       \
    X(BIND_FIXED, 21, "its inputs cannot be bound anew")                                            \
    X(WARMUP_PATH, 22, "a warm-up can only be followed by warm-ups")                                \
    X(EVICTED, 23, "its recording was dropped to keep a limit")

typedef int32_t rondo_tree_reason;
enum {
#define RONDO_X(name, number, text) RONDO_TREE_REASON_##name = number,
    RONDO_TREE_REASONS(RONDO_X)
#undef RONDO_X
        RONDO_TREE_REASON_COUNT = 24
};
RONDO_API const char *rondo_tree_reason_text(rondo_tree_reason reason);
RONDO_API const char *rondo_tree_reason_name(rondo_tree_reason reason); /* "STATIC_MOVED" */

typedef int32_t rondo_tree_state;
enum { RONDO_TREE_NOTHING = 0, RONDO_TREE_WARMING = 1, RONDO_TREE_RECORDING = 2, RONDO_TREE_EXECUTING = 3 };

typedef struct rondo_tree_info {
    uint32_t struct_size;
    rondo_tree_state state;
    uint32_t functions, recordings, roots;
    uint32_t depth;                                      /* nodes of the current path */
    uint64_t directs, warmups, records, replays, sealed; /* calls; sealed are replays, too */
    uint64_t checkpoints;                                /* times that the pool was brought back */
    uint64_t steps;                                      /* paths that ended */
    uint64_t carried;                                    /* inputs that came over from a path that ended */
    uint64_t evacuated;
    uint64_t evicted;                       /* recordings dropped */
    uint64_t live;                          /* outputs of the current path that are alive */
    uint64_t pool_reserved, pool_allocated; /* bytes; 0 when the ops do not tell */
    uint64_t host_bytes;                    /* that recordings keep */
    rondo_pool_id pool;
} rondo_tree_info;
#define RONDO_TREE_INFO_INIT \
    { .struct_size = sizeof(rondo_tree_info) }
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_get_info(rondo_tree *tree, rondo_tree_info *out_info);

typedef struct rondo_tree_function_info {
    uint32_t struct_size;
    rondo_tree_mode mode;
    const char *name; /* borrowed until the function is removed */
    uint32_t recordings, roots, sizes;
    rondo_tree_reason stopped; /* why it is not graphed any more; NONE: it may be */
    uint64_t directs, warmups, records, replays;
    uint64_t reasons[RONDO_TREE_REASON_COUNT];           /* how often */
    uint64_t copies;                                     /* inputs copied before replays */
    uint64_t direct_ns, warmup_ns, record_ns, replay_ns; /* least seen on the host; 0: never */
} rondo_tree_function_info;
#define RONDO_TREE_FUNCTION_INFO_INIT \
    { .struct_size = sizeof(rondo_tree_function_info) }
/* NOT_FOUND. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_get_function_info(rondo_tree *tree, uint32_t function,
                                                                   rondo_tree_function_info *out_info);

/* Each function: its state, recordings by size, why it was not replayed, times, bytes, hits; then the memory view. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_report(rondo_tree *tree, bool json, rondo_memory_write write,
                                                        void *user);

RONDO_EXTERN_C_END

#endif
