/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiler: graphs of operators, their ways in, plans out, and sessions over both.
 *
 * The rules for ownership, threads and statuses are those of runtime.h. Compiling needs no device.
 */
#ifndef RONDO_COMPILER_H
#define RONDO_COMPILER_H

#include <rondo/runtime.h>
#include <rondo/types.h>

RONDO_EXTERN_C_BEGIN

/* Receives text piece by piece. Nonzero stops the writer, which then fails with IO. */
typedef int32_t (*rondo_write_function)(void *user, const char *data, size_t size);

typedef int32_t rondo_dump_format;
enum { RONDO_DUMP_TEXT = 0, RONDO_DUMP_DOT = 1, RONDO_DUMP_JSON = 2 };

/* ----------------------------------------------------------------------------------------------- host tensor */

/* A tensor that owns compact row-major host memory, aligned to 64 bytes. Reference counted. */
typedef struct rondo_tensor rondo_tensor;
/* Zeroed. INVALID_ARGUMENT: negative dim, rank above RONDO_RANK_MAX, type without a size; OUT_OF_RANGE: too large. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tensor_create(rondo_instance *instance, rondo_dtype dtype, int32_t rank,
                                                          const int64_t *dims, rondo_tensor **out_tensor);
RONDO_API void rondo_tensor_retain(rondo_tensor *tensor);
RONDO_API void rondo_tensor_release(rondo_tensor *tensor);
RONDO_API const rondo_tensor_view *rondo_tensor_get_view(const rondo_tensor *tensor); /* borrowed */
RONDO_API uint64_t rondo_tensor_bytes(const rondo_tensor *tensor);
/* A file with one serialised onnx.TensorProto, as in ONNX's backend tests. IO, CORRUPT (file), UNSUPPORTED (type). */
RONDO_API RONDO_MUST_USE rondo_status rondo_tensor_read_onnx(rondo_instance *instance, const char *path,
                                                             rondo_tensor **out_tensor);

/* ------------------------------------------------------------------------------------------------------ graph */

/* Tensor, Node, Graph. Values and nodes are numbered; a number is meaningful in its own graph only. */
typedef struct rondo_ir_graph rondo_ir_graph;
typedef uint32_t rondo_ir_value;
typedef uint32_t rondo_ir_node;
#define RONDO_IR_NONE UINT32_MAX

RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_create(rondo_instance *instance, const char *name,
                                                            rondo_ir_graph **out_graph);
RONDO_API void rondo_ir_graph_retain(rondo_ir_graph *graph);
RONDO_API void rondo_ir_graph_release(rondo_ir_graph *graph);

/* dims: -1 is a size that is not fixed; dim_names may be null, or hold the name of a symbol for such a size. Equal
 * names are equal sizes. Names of values are unique in a graph: ALREADY_EXISTS. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_add_input(rondo_ir_graph *graph, const char *name,
                                                               rondo_dtype dtype, int32_t rank, const int64_t *dims,
                                                               const char *const *dim_names, rondo_ir_value *out_value);
/* Copies the compact data. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_add_constant(rondo_ir_graph *graph, const char *name,
                                                                  rondo_dtype dtype, int32_t rank, const int64_t *dims,
                                                                  const void *data, rondo_ir_value *out_value);
/* A node by its prototype: NOT_FOUND (prototype) for an unknown operator, INVALID_ARGUMENT (prototype) for a wrong
 * number of inputs or outputs, an unknown attribute or one of another kind. An absent optional input is RONDO_IR_NONE.
 * name may be null: one is made. Writes output_count values; output i of a named node is called "NAME:i". */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_add_node(rondo_ir_graph *graph, const char *operator_name,
                                                              const char *name, const rondo_ir_value *inputs,
                                                              uint32_t input_count, const rondo_attribute *attributes,
                                                              uint32_t attribute_count, rondo_ir_value *out_values,
                                                              uint32_t output_count);
/* Appends an output. name may be null: the value's own. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_add_output(rondo_ir_graph *graph, rondo_ir_value value,
                                                                const char *name);
/* Every reference defined before its use, no cycle, names unique, prototypes kept. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_verify(const rondo_ir_graph *graph);
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_dump(const rondo_ir_graph *graph, rondo_dump_format format,
                                                          rondo_write_function write, void *user);

typedef struct rondo_ir_graph_info {
    uint32_t struct_size;
    uint32_t inputs, outputs;
    uint32_t nodes; /* subgraphs included */
    uint32_t subgraphs;
    uint32_t reserved;
    uint64_t constant_bytes;
    const char *name; /* borrowed */
    int64_t opset;    /* of ONNX's own domain; 0 when built by hand */
} rondo_ir_graph_info;
#define RONDO_IR_GRAPH_INFO_INIT \
    { sizeof(rondo_ir_graph_info), 0, 0, 0, 0, 0, 0, 0, 0 }
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_get_info(const rondo_ir_graph *graph,
                                                              rondo_ir_graph_info *out_info);
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_input(const rondo_ir_graph *graph, uint32_t index,
                                                           rondo_tensor_info *out_info);
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_output(const rondo_ir_graph *graph, uint32_t index,
                                                            rondo_tensor_info *out_info);
/* Symbol of an input's dim, or null. */
RONDO_API const char *rondo_ir_graph_input_symbol(const rondo_ir_graph *graph, uint32_t index, int32_t axis);
/* Calls visit once for each operator type with its number of nodes, subgraphs included, sorted by name. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_count_operators(
    const rondo_ir_graph *graph, void (*visit)(void *user, const char *name, uint32_t count), void *user);

/* -------------------------------------------------------------------------------------------------- ways in */

typedef struct rondo_onnx_options {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t file_bytes_max;   /* 0: 2 GiB */
    const char *external_root; /* folder that external data must stay in; null: the model's own */
} rondo_onnx_options;
#define RONDO_ONNX_OPTIONS_INIT \
    { sizeof(rondo_onnx_options), 0, 0, 0 }

/* Reads an ONNX model, strictly. NOT_FOUND and IO (file): cannot be read; CORRUPT (file): not an ONNX model, truncated,
 * out of limits, inconsistent, naming the node; UNSUPPORTED (converter): the message counts and the notes list all
 * operators that have no prototype, with domain, version and type. options may be null. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_import(rondo_instance *instance, const char *path,
                                                        const rondo_onnx_options *options, rondo_ir_graph **out_graph);
/* The same from memory, which may go afterwards. `name` is used in messages. External data is refused. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_import_memory(rondo_instance *instance, const char *name,
                                                               const void *data, size_t size,
                                                               const rondo_onnx_options *options,
                                                               rondo_ir_graph **out_graph);

typedef struct rondo_tf_options {
    uint32_t struct_size;
    uint32_t output_count;
    const char *const *outputs; /* "node" or "node:1": what is wanted, in this order; count 0: see below */
    uint64_t file_bytes_max;    /* 0: 2 GiB */
} rondo_tf_options;
#define RONDO_TF_OPTIONS_INIT \
    { sizeof(rondo_tf_options), 0, 0, 0 }

/* Reads a frozen TensorFlow graph (a GraphDef whose variables have become constants), strictly. Its inputs are its
 * Placeholders in the file's order, with outputs given those that they need; a PlaceholderWithDefault is its default.
 * Without outputs given, every result that no other node takes is one. Names are the nodes'; a further result of a node is
 * "node:1". Control inputs only order effects: they are checked and left out, and so are Assert and NoOp.
 * Codes as of rondo_onnx_import; NOT_FOUND (input): an output that is not there. UNSUPPORTED (converter) lists all operators
 * that are not known, and those that are used in a way that is not, with the reason. options may be null. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tf_import(rondo_instance *instance, const char *path,
                                                      const rondo_tf_options *options, rondo_ir_graph **out_graph);
/* The same from memory, which may go afterwards. `name` is used in messages. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tf_import_memory(rondo_instance *instance, const char *name,
                                                             const void *data, size_t size,
                                                             const rondo_tf_options *options,
                                                             rondo_ir_graph **out_graph);

/* --------------------------------------------------------------------------------------------------- compile */

/* A size that the model leaves open: by input and axis, or by symbol (input null). */
typedef struct rondo_dim_binding {
    const char *input;
    const char *symbol;
    int64_t size;
    int32_t axis;
    uint32_t reserved;
} rondo_dim_binding;

/* The value of an input that is known now. Only small integer and bool tensors that reach a condition or a shape are
 * used; they become guards of the plan, others are ignored. */
typedef struct rondo_value_binding {
    const char *input;
    const rondo_tensor_view *value;
} rondo_value_binding;

/* What one run of a pass did. Everything is borrowed for the call. */
typedef struct rondo_pass_report {
    uint32_t struct_size;
    uint32_t index; /* among the passes that ran: a pass may run several times */
    const char *name;
    const rondo_ir_graph *graph; /* as the pass left it */
    uint32_t nodes;              /* alive now */
    uint32_t changes;
    const char *const *remarks; /* its reasons; with RONDO_COMPILE_EXPLAIN one for each change */
    uint32_t remark_count;
    uint32_t reserved;
    uint64_t ns;
} rondo_pass_report;

typedef struct rondo_compile_options {
    uint32_t struct_size;
    uint32_t dim_count;
    uint32_t value_count;
    uint32_t flags; /* RONDO_COMPILE_* */
    const rondo_dim_binding *dims;
    const rondo_value_binding *values;
    /* "cpu,ref": where kernels are looked for, best first; null: that. Several targets, each of which is a device when the
     * plan runs: "npu;cpu,ref". "npu:Conv,MatMul;cpu,ref" gives the first nodes of those operators alone. A node goes to
     * the first that has a kernel for it. */
    const char *catalogues;
    const char *passes;      /* "fold,dead": these passes, once each in this order; null: what the level says */
    const char *without;     /* "duplicates,fuse-bias": passes to leave out; null: none */
    int32_t level;           /* RONDO_COMPILE_O0 ... */
    uint32_t lanes;          /* independent steps run on so many streams at most, 16 at most; 1: one after the other;
                               0: as many as pay, by a guess of each step's time */
    uint64_t fold_bytes_max; /* of one result that is worked out now, unless what it is made of is larger; 0: 16 MiB */
    void (*after_pass)(void *user, const rondo_pass_report *report); /* called on this thread; null: nobody asks */
    void *user;
} rondo_compile_options;
#define RONDO_COMPILE_OPTIONS_INIT \
    { sizeof(rondo_compile_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
enum {
    RONDO_COMPILE_NO_FUSION = 1u << 0,  /* without fuse-bias and fuse-activation */
    RONDO_COMPILE_NO_FOLDING = 1u << 1, /* without fold: only what conditions and shapes need is worked out */
    RONDO_COMPILE_NO_REUSE = 1u << 2,   /* every buffer has memory of its own */
    RONDO_COMPILE_EXPLAIN = 1u << 3,    /* a remark for each change, not only for each decision */
    RONDO_COMPILE_VERIFY = 1u << 4      /* the graph is checked after each pass; INTERNAL names the pass */
};
/* How much is done. What must run runs at every level. */
enum {
    RONDO_COMPILE_LEVEL_DEFAULT = 0, /* O2 */
    RONDO_COMPILE_O0 = 1,            /* nothing else: what is written is what runs, in memory of its own */
    RONDO_COMPILE_O1 = 2,            /* folding, dead code, duplicates, what changes nothing: every bit is kept */
    RONDO_COMPILE_O2 = 3,            /* and rules of arithmetic that keep every value, layout clean-up, fusion */
    RONDO_COMPILE_O3 = 4             /* and the memory plan tries all its orders, whatever the time */
};

/* A pass as `rondo passes` lists it. Names and sentences are static. */
typedef struct rondo_pass_info {
    uint32_t struct_size;
    int32_t level; /* from which on it runs; RONDO_COMPILE_O0 for what must run */
    const char *name;
    const char *summary;
    uint32_t required; /* 1: it always runs, at its place, and cannot be listed or left out */
    uint32_t reserved;
} rondo_pass_info;
#define RONDO_PASS_INFO_INIT \
    { sizeof(rondo_pass_info), 0, 0, 0, 0, 0 }
/* Pass `index` in the order in which they run first. NOT_FOUND past the end. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compile_pass(uint32_t index, rondo_pass_info *out_info);

/* Specialises the graph to concrete sizes and makes a plan. The graph is not changed. Either out parameter may be null;
 * out_compiled receives the graph as it was after the last pass. INVALID_ARGUMENT (input): an open size or needed value
 * was not given, named; (meta): the sizes do not fit, naming the node; (none): a pass that there is not, or one that
 * must run and is listed; UNSUPPORTED: a node without a kernel (kernel), with every catalogue's reason, or a condition
 * that depends on data (meta). Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compile(rondo_instance *instance, const rondo_ir_graph *graph,
                                                    const rondo_compile_options *options, rondo_ir_graph **out_compiled,
                                                    rondo_plan **out_plan);
/* Steps, buffers with offsets and life times, guards, slots, and why each kernel was picked. */
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_dump(const rondo_plan *plan, rondo_dump_format format,
                                                      rondo_write_function write, void *user);
/* Sentence `index` of what the compiler decided and why ("node a: bias of b fused"); null past the end. */
RONDO_API const char *rondo_plan_remark(const rondo_plan *plan, uint32_t index);

/* --------------------------------------------------------------------------------------------------- session */

/* Graphs under numbers of the caller's, specialised as runs need it.
 *   create -> add_graph* -> run* -> remove_graph* -> release
 * What a call answers, by what has become of its graph number (all other states are the session's, which has none):
 *
 *   call            | never added     | added, never run | run before     | last run failed | runs in flight   | removed
 *   add_graph       | OK              | ALREADY_EXISTS   | ALREADY_EXISTS | ALREADY_EXISTS  | ALREADY_EXISTS   | OK
 *   run             | NOT_FOUND       | compiles         | OK             | OK              | OK, behind them  | NOT_FOUND
 *   run_on_stream   | NOT_FOUND       | compiles         | OK             | OK              | OK, behind them  | NOT_FOUND
 *     ... captured  | NOT_FOUND       | INVALID_STATE    | recorded       | recorded        | recorded         | NOT_FOUND
 *   get_info        | NOT_FOUND       | OK               | OK             | OK              | OK               | NOT_FOUND
 *   set_profile     | OK              | OK               | OK             | OK              | OK               | OK
 *   set_buckets     | NOT_FOUND       | OK               | OK             | OK              | OK               | NOT_FOUND
 *   remove_graph    | NOT_FOUND       | OK               | OK             | OK              | waits, then OK   | NOT_FOUND
 *   release (last)  | done            | done             | done           | done            | waits, then done | done
 *
 * "Captured" is a run on a stream that a capture of the caller's records, with sizes that ran before; other sizes are in
 * the state "never run". What a session refuses changes nothing of it.
 *
 * Weights of 4 KiB and more that are equal to the byte as the kernels want them are on the device once, for all graphs of the
 * session and all sizes of each; they go with the last graph that uses them.
 *
 * Thread-safe: calls of one session take their turn, each the whole of it. Memory that the session lends (run) is overwritten
 * by the next run of the graph, whoever asks for it: threads that share a graph bring memory for its outputs. */
typedef struct rondo_session rondo_session;

/* Device memory of the program's own. allocate returns an address of the device, aligned to its allocation_alignment, or
 * null; release gets what was asked for, after the last work that uses it. Both are called by any thread that calls the
 * session, inside the call; they must not call the session. */
typedef struct rondo_device_memory {
    void *self;
    void *(*allocate)(void *self, uint64_t bytes);
    void (*release)(void *self, void *pointer, uint64_t bytes);
} rondo_device_memory;

typedef struct rondo_session_options {
    uint32_t struct_size;
    uint32_t specialisations_max; /* kept a graph, the least recently used goes first; 0: 8 */
    uint32_t record_after;        /* runs of a specialisation before it is captured; 0: captured at once */
    uint32_t flags;               /* RONDO_COMPILE_NO_* for its graphs */
    rondo_device_memory memory;   /* for weights, arenas, inputs and outputs; allocate null: the device's own */
    int32_t level;                /* RONDO_COMPILE_O0 ..., as of rondo_compile_options; so are these two: */
    uint32_t reserved;
    const char *passes;  /* copied */
    const char *without; /* copied */
    const char *cache;   /* folder of a compile cache (cache.h), copied; null: none */
} rondo_session_options;
#define RONDO_SESSION_OPTIONS_INIT \
    { sizeof(rondo_session_options), 0, 0, 0, {0, 0, 0}, 0, 0, 0, 0, 0 }

/* Thread-safe. Holds the device. INVALID_ARGUMENT: unknown flags or level, or memory with one function of two. Names of passes
 * are looked at when the first run compiles. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_create(rondo_device *device, const rondo_session_options *options,
                                                           rondo_session **out_session);
RONDO_API void rondo_session_retain(rondo_session *session);
/* The last release waits for the runs in flight. Graphs that captured a run on a stream must be gone by then. */
RONDO_API void rondo_session_release(rondo_session *session);
/* Keeps a reference to the graph, which must not change while it is added. ALREADY_EXISTS keeps the first. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_add_graph(rondo_session *session, uint32_t id,
                                                              rondo_ir_graph *graph);
/* The same with a copy, constants included: the graph may change or go afterwards. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_add_graph_copy(rondo_session *session, uint32_t id,
                                                                   const rondo_ir_graph *graph);
/* Waits for the graph's runs in flight. What a capture of the caller's recorded stays for it until the session is released.
 * NOT_FOUND. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_remove_graph(rondo_session *session, uint32_t id);
/* Runs on host tensors, in the graph's order, and waits. Shapes and dtypes of inputs choose or make a specialisation.
 * For each output: with data given, its shape and dtype must be right and it is written; with data null the whole view
 * is filled in and points to memory of the session, valid until the next run of this graph or its removal.
 * What depends on data runs between plans (docs/compile.md, "Regions"); then data decides shapes of outputs, and memory given for
 * one must be of the shape that came out.
 * NOT_FOUND: id. INVALID_ARGUMENT (input): count, dtype, rank or a fixed size, naming the input; memory that does not fit.
 * UNSUPPORTED (input): an output that is no tensor. A failed run leaves the session usable. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_run(rondo_session *session, uint32_t id,
                                                        const rondo_tensor_view *inputs, uint32_t input_count,
                                                        rondo_tensor_view *outputs, uint32_t output_count);

typedef struct rondo_session_run_options {
    uint32_t struct_size;
    uint32_t value_count;
    const rondo_value_binding *values; /* host tensors: what inputs hold that decide a branch or a shape */
    rondo_host_function done;          /* called behind the run, by the stream; null: nobody is told */
    void *done_user;
} rondo_session_run_options;
#define RONDO_SESSION_RUN_OPTIONS_INIT \
    { sizeof(rondo_session_run_options), 0, 0, 0, 0 }

/* Enqueues a run on tensors in device memory, all of them the caller's, and copies nothing. They must live until the stream
 * is through with them. Views are compact, and those of outputs are written at their data. Runs on other streams, or on
 * other memory, go beside each other as long as a specialisation has a context free for them, else one behind the other.
 * The first run for some sizes compiles and loads, which takes its time; later ones only enqueue.
 *   Nothing looks at the data here. Where a value decides a branch or a shape, the caller states it in options.values and
 * vouches that the device tensor holds it; it chooses the specialisation. Values that decide nothing are ignored.
 *   While a capture records the stream, the run is recorded for these very addresses; sizes and values must have run before
 * (INVALID_STATE (capture), which invalidates the capture). What it needs is kept until the session's release.
 *   `done` runs as any host call of a stream does: not after work that failed, at every replay of a graph that recorded it
 * (which is opaque then), and it must not call the session.
 *   A graph of which something must run between plans cannot be enqueued: UNSUPPORTED, of layer capture while one records (which
 * it invalidates, and nothing else), naming the first such node and why.
 * Failures of the work come as the stream's do; the call's own name the input or output as rondo_session_run's do, and add
 * UNSUPPORTED (input): strides. options may be null. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_run_on_stream(
    rondo_session *session, uint32_t id, rondo_stream *stream, const rondo_tensor_view *inputs, uint32_t input_count,
    const rondo_tensor_view *outputs, uint32_t output_count, const rondo_session_run_options *options);

/* From now on runs on host tensors whose open size `name` (a symbol of the model, "INPUT.AXIS", or several of them with
 * commas between that are one size) is not one of `sizes` run for the next larger one: inputs are filled up with copies of
 * their last row, outputs are cut back, and so fewer specialisations do for all sizes. Only where that is provably right:
 * before its first run in a bucket a size is compiled to a graph, and so is the bucket's, and both must keep the rows of that
 * axis apart in every node, for these sizes and guarded values; else the run is UNSUPPORTED (meta) and names the node. Sizes of 0 and above the largest bucket run as
 * they are, and so do runs on streams. Results are those of the unfilled run up to the rounding of another kernel.
 *   Sizes are positive and ascending: INVALID_ARGUMENT. count 0: no buckets any more. NOT_FOUND: id, or a size that no input
 * has. UNSUPPORTED (input): an input that has it twice. One size a graph: a second call takes the place of the first. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_set_buckets(rondo_session *session, uint32_t id, const char *name,
                                                                const int64_t *sizes, uint32_t count);
typedef struct rondo_bucket_info {
    uint32_t struct_size;
    uint32_t reserved;
    int64_t size;
    uint64_t runs;   /* that it served */
    uint64_t filled; /* of them smaller ones */
    uint64_t rows;   /* that were asked for, by all runs */
} rondo_bucket_info;
#define RONDO_BUCKET_INFO_INIT \
    { sizeof(rondo_bucket_info), 0, 0, 0, 0, 0 }
/* Bucket `index` in order of size. NOT_FOUND: id. OUT_OF_RANGE: past the end. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_bucket(rondo_session *session, uint32_t id, uint32_t index,
                                                               rondo_bucket_info *out_info);

typedef struct rondo_session_info {
    uint32_t struct_size;
    uint32_t specialisations; /* alive now, of the graph asked */
    uint64_t runs, compiles, captures, replays;
    uint64_t compile_ns, capture_ns, copy_ns, run_ns; /* totals */
    uint64_t cache_hits;                              /* of the compiles: plans that were an entry of the cache */
    uint64_t bucket_misses;                           /* runs of a size that no bucket holds */
} rondo_session_info;
#define RONDO_SESSION_INFO_INIT \
    { sizeof(rondo_session_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_info(rondo_session *session, uint32_t id,
                                                             rondo_session_info *out_info);

RONDO_EXTERN_C_END

#endif
