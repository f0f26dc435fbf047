/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this room share: the import in progress, the scope of names, and a node on its way into the ir.
 *
 * Everything temporary lives in one scratch arena or is borrowed from the file's bytes; everything that stays lives in
 * the graph's arena. Failures name tensor, node or byte; the outermost function puts the file's name in front.
 */
#ifndef RONDO_SRC_IMPORT_ONNX_ONNX_H
#define RONDO_SRC_IMPORT_ONNX_ONNX_H

#include <rondo/compiler.h>

#include "base/log.h"
#include "import/common/common.h"
#include "ir/ir.h"
#include "ops/ops.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw data is little-endian and is copied as it is");

#define RONDO__ONNX_GRAPH_DEPTH_MAX 63u
#define RONDO__ONNX_IR_MIN 3
#define RONDO__ONNX_IR_MAX 13
#define RONDO__ONNX_OPSET_MIN 1
#define RONDO__ONNX_OPSET_MAX 27
#define RONDO__ONNX_OPSETS_MAX 256u
#define RONDO__ONNX_ATTRIBUTES_MAX 64u

/* ------------------------------------------------------------------------------------------------------ files */

/* Where external data may be, and the file of the tensor before. */
typedef struct rondo__onnx_store {
    rondo_allocator allocator;
    const char *model; /* path as given; null: the model came from memory */
    const char *root;  /* from the options; null: the model's folder */
    char *folder;      /* of the model, as given */
    char *allowed;     /* real path of the folder that all data must stay in */
    char *location;    /* last one opened */
    int32_t descriptor;
    uint64_t size;
} rondo__onnx_store;

void rondo__onnx_store_init(rondo__onnx_store *store, const rondo_allocator *allocator, const char *model,
                            const char *root);
void rondo__onnx_store_deinit(rondo__onnx_store *store);

/* The model's own file. Large raw data of the main graph's initializers is not in `bytes`: what lies there is anything. */
typedef struct rondo__onnx_file {
    rondo__import_file bytes;
    rondo__buffer holes;
    const char *path;
    int32_t descriptor; /* open as long as there may be something to read */
} rondo__onnx_file;

/* As rondo__import_file_read. */
RONDO_MUST_USE rondo_status rondo__onnx_file_read(const rondo_allocator *allocator, const char *path, uint64_t maximum,
                                                  rondo__onnx_file *out_file);
void rondo__onnx_file_release(rondo__onnx_file *file);
/* Whether they can be looked at where they are; null has all. */
bool rondo__onnx_file_has(const rondo__onnx_file *file, rondo__pb_bytes bytes);
/* From memory or from the file: IO. */
RONDO_MUST_USE rondo_status rondo__onnx_file_copy(const rondo__onnx_file *file, rondo__pb_bytes bytes, void *out);

/* ----------------------------------------------------------------------------------------------------- import */

typedef struct rondo__onnx_opset {
    rondo__pb_bytes domain;
    int64_t version;
} rondo__onnx_opset;

/* Operator sets that a model, or one of its functions, imports. */
typedef struct rondo__onnx_opsets {
    rondo__onnx_opset *entries;
    uint32_t count;
    int64_t onnx; /* version of ONNX's own domain; 0: not imported */
} rondo__onnx_opsets;

#define RONDO__ONNX_CALLS_MAX 64u          /* functions within functions */
#define RONDO__ONNX_INLINED_MAX (1u << 16) /* nodes that calls of functions make, all together */

/* A function of the model; read when it is first called. */
typedef struct rondo__onnx_function {
    rondo__pb_reader reader;
    const char *name; /* domain::Name */
    rondo__onnx_opsets opsets;
    const rondo__pb_bytes *inputs, *outputs, *attributes, *defaults,
        *nodes; /* names; attributes and nodes as messages */
    uint32_t input_count, output_count, attribute_count, default_count, node_count;
    bool read;
    bool open; /* being called */
} rondo__onnx_function;

typedef struct rondo__onnx_context {
    rondo_allocator allocator;
    rondo_instance *instance;
    const rondo__log *log; /* may be null */
    const char *file;      /* for log lines */
    const rondo__onnx_file *source; /* null: the model came from memory */
    rondo__arena scratch;
    rondo__pb_budget budget;
    rondo__onnx_store store;
    rondo__onnx_opsets model_opsets;
    const rondo__onnx_opsets *opsets; /* of what is being read: the model, or a function */
    rondo__buffer function_list;      /* rondo__onnx_function */
    uint32_t inlined, calls;
    bool blamed; /* a function has been named in the failure */
    uint32_t nodes;
    bool unsorted;                 /* a value is used before the node that makes it */
    rondo__import_names functions; /* "domain::Name" of the model's own functions, to their place */
    rondo__import_refusals refusals;
    char shown[4][176]; /* texts for messages, used in turn */
    uint32_t shown_next;
} rondo__onnx_context;

typedef struct rondo__onnx_scope rondo__onnx_scope;
typedef struct rondo__onnx_node rondo__onnx_node;
/* What a function's optional input is where the call does not give it. */
#define RONDO__ONNX_ABSENT (UINT32_MAX - 1u)
struct rondo__onnx_scope {
    rondo__onnx_context *context;
    rondo__onnx_scope *parent;
    rondo_ir_graph *graph;
    rondo__import_names values;   /* to rondo_ir_value, or RONDO__ONNX_ABSENT */
    const rondo__onnx_node *call; /* of the function whose body this is; null: a graph */
    uint32_t depth;
};

struct rondo__onnx_node {
    rondo__onnx_scope *scope;
    rondo__pb_reader reader; /* of the NodeProto, for its attributes */
    rondo__pb_bytes name, type, domain;
    const rondo__pb_bytes *input_names, *output_names, *attribute_messages;
    uint32_t input_name_count, output_name_count, attribute_message_count;
    rondo__onnx_function *function; /* of the model, which it calls; null: none */
    /* What becomes of it. Converters change these; the arrays have room for RONDO__ONNX_SPARE more. */
    const char *operator_name;
    int64_t version;
    rondo_ir_value *inputs, *outputs;
    rondo_attribute *attributes;
    uint32_t input_count, output_count, attribute_count;
    bool refused; /* was noted as unsupported: nothing is made of it */
    bool done;    /* a Constant, whose value has been taken */
};

#define RONDO__ONNX_SPARE 8u

/* Text for a message: cut to a bounded length. Valid until the fourth call from here. */
const char *rondo__onnx_shown(rondo__onnx_context *context, rondo__pb_bytes text);
/* "'name' (Type)"; nodes without a name are called by their first output. */
const char *rondo__onnx_label(rondo__onnx_node *node);
/* Notes that this node cannot be; the import goes on to find the others. reason must be a literal or null. */
RONDO_MUST_USE rondo_status rondo__onnx_refuse(rondo__onnx_node *node, const char *reason);

/* ----------------------------------------------------------------------------------------------------- tensors */

typedef struct rondo__onnx_external {
    rondo__pb_bytes location;
    uint64_t offset, length;
    bool has_location, has_offset, has_length, has_checksum;
} rondo__onnx_external;

typedef struct rondo__onnx_tensor {
    rondo__pb_bytes name;
    rondo_dtype dtype;
    int32_t rank;
    int64_t dims[RONDO_RANK_MAX];
    int64_t elements;
    size_t bytes;        /* in memory: compact, sub-byte types packed, strings sizeof(rondo_string) each */
    uint32_t data_field; /* number of the field with the data; 0: a tensor without elements */
    rondo__pb_bytes raw;
    rondo__onnx_external external;
    rondo__pb_reader reader; /* at the start of the message */
} rondo__onnx_tensor;

/* Reads and checks all but the data's values. Allocates nothing. */
RONDO_MUST_USE rondo_status rondo__onnx_tensor_read(rondo__onnx_context *context, const rondo__pb_reader *reader,
                                                    rondo__onnx_tensor *out_tensor);
/* Writes tensor->bytes bytes; the bytes of strings go to the arena. */
RONDO_MUST_USE rondo_status rondo__onnx_tensor_fill(rondo__onnx_context *context, const rondo__onnx_tensor *tensor,
                                                    rondo__arena *arena, void *out);
RONDO_MUST_USE rondo_status rondo__onnx_tensor_constant(rondo__onnx_context *context, rondo_ir_graph *graph,
                                                        const rondo__onnx_tensor *tensor,
                                                        const rondo__ir_constant **out_constant);
/* One StringStringEntryProto of external_data. */
RONDO_MUST_USE rondo_status rondo__onnx_external_entry(rondo__onnx_context *context, const rondo__pb_reader *reader,
                                                       rondo__onnx_external *external);
RONDO_MUST_USE rondo_status rondo__onnx_external_check(rondo__onnx_context *context, const rondo__onnx_tensor *tensor);
/* Opens the file and sees that the bytes are there: before anything is allocated for them. */
RONDO_MUST_USE rondo_status rondo__onnx_external_locate(rondo__onnx_context *context, const rondo__onnx_tensor *tensor);
RONDO_MUST_USE rondo_status rondo__onnx_external_fill(rondo__onnx_context *context, const rondo__onnx_tensor *tensor,
                                                      void *out);

/* ------------------------------------------------------------------------------------------------- types, graph */

typedef struct rondo__onnx_info {
    rondo__pb_bytes name;
    rondo__ir_type type; /* in the scratch arena */
    bool typed;
    const char *unknown; /* "map" and the like: a type that is not known here */
} rondo__onnx_info;

/* One ValueInfoProto. */
RONDO_MUST_USE rondo_status rondo__onnx_info_read(rondo__onnx_context *context, const rondo__pb_reader *reader,
                                                  rondo__onnx_info *out_info);
/* Whether a constant is of a declared type: CORRUPT names it. */
RONDO_MUST_USE rondo_status rondo__onnx_info_matches(rondo__onnx_context *context, const rondo__onnx_info *info,
                                                     const rondo__ir_constant *constant);

/* A graph from its message; parent null for the model's own. The graph belongs to the caller, or to the parent's. */
RONDO_MUST_USE rondo_status rondo__onnx_graph_read(rondo__onnx_context *context, rondo__onnx_scope *parent,
                                                   const rondo__pb_reader *reader, rondo_ir_graph **out_graph);
/* RONDO_IR_NONE when no scope has it, RONDO__ONNX_ABSENT for what a call does not give. */
RONDO_MUST_USE rondo_status rondo__onnx_scope_find(rondo__onnx_scope *scope, rondo__pb_bytes name,
                                                   rondo_ir_value *out_value);

/* An OperatorSetIdProto. `opsets` has room for one more. */
RONDO_MUST_USE rondo_status rondo__onnx_opset_read(rondo__onnx_context *context, rondo__pb_reader *reader,
                                                   rondo__onnx_opsets *opsets);

/* --------------------------------------------------------------------------------------------------- functions */

/* Notes a FunctionProto. */
RONDO_MUST_USE rondo_status rondo__onnx_function_add(rondo__onnx_context *context, const rondo__pb_reader *reader);
/* "domain::Name", "domain::Name::overload". */
RONDO_MUST_USE rondo_status rondo__onnx_function_key(rondo__onnx_context *context, rondo__pb_bytes domain,
                                                     rondo__pb_bytes name, rondo__pb_bytes overload,
                                                     rondo__pb_bytes *out_key);
/* Puts the function's nodes in place of a node whose inputs and outputs are known. */
RONDO_MUST_USE rondo_status rondo__onnx_function_call(rondo__onnx_node *node);
/* The attribute that a body's node refers to; null when the call does not give it and it has no default. */
const rondo_attribute *rondo__onnx_function_attribute(const rondo__onnx_scope *scope, rondo__pb_bytes name);
/* Whether the scope is in the body of a function, at any depth. */
bool rondo__onnx_function_is_around(const rondo__onnx_scope *scope);

/* ------------------------------------------------------------------------------------------------------- nodes */

/* The names in a NodeProto, and which operator it is. */
RONDO_MUST_USE rondo_status rondo__onnx_node_read(rondo__onnx_scope *scope, const rondo__pb_reader *reader,
                                                  rondo__onnx_node *out_node);
/* Resolves, converts and adds it. */
RONDO_MUST_USE rondo_status rondo__onnx_node_build(rondo__onnx_node *node);
/* The value of a Constant's one output; null when the node was refused. */
RONDO_MUST_USE rondo_status rondo__onnx_constant_node(rondo__onnx_node *node, const rondo__ir_constant **out_constant);
/* Reads attribute `message` of a node. With graphs_only, reads those that hold a graph and leaves out->kind NONE for
 * the others. Its name is null where it refers to one that the call of the function does not give. */
RONDO_MUST_USE rondo_status rondo__onnx_attribute_read(rondo__onnx_node *node, rondo__pb_bytes message,
                                                       bool graphs_only, rondo_attribute *out_attribute);

/* --------------------------------------------------------------------------------------------------- converters */

/* Brings a node of an older version into the newest form, or refuses what its version does not allow. */
RONDO_MUST_USE rondo_status rondo__onnx_convert(rondo__onnx_node *node);
typedef rondo_status (*rondo__onnx_converter)(rondo__onnx_node *node);
RONDO_MUST_USE rondo_status rondo__onnx_convert_axes(rondo__onnx_node *node);
RONDO_MUST_USE rondo_status rondo__onnx_convert_split(rondo__onnx_node *node);
RONDO_MUST_USE rondo_status rondo__onnx_convert_slice(rondo__onnx_node *node);
RONDO_MUST_USE rondo_status rondo__onnx_convert_pad(rondo__onnx_node *node);
RONDO_MUST_USE rondo_status rondo__onnx_convert_clip(rondo__onnx_node *node);
RONDO_MUST_USE rondo_status rondo__onnx_convert_softmax(rondo__onnx_node *node);
RONDO_MUST_USE rondo_status rondo__onnx_convert_if(rondo__onnx_node *node);

/* For converters. */
const rondo_attribute *rondo__onnx_attribute(const rondo__onnx_node *node, const char *name);
void rondo__onnx_attribute_remove(rondo__onnx_node *node, const char *name);
/* An int64 constant of rank 1 (rank 0 with count 1 and scalar true) named after the node. */
RONDO_MUST_USE rondo_status rondo__onnx_ints(rondo__onnx_node *node, const char *stem, const int64_t *values,
                                             uint32_t count, rondo_ir_value *out_value);
/* A scalar of a float type: the number as float16, float32, float64 or bfloat16. */
RONDO_MUST_USE rondo_status rondo__onnx_scalar(rondo__onnx_node *node, const char *stem, rondo_dtype dtype,
                                               float number, rondo_ir_value *out_value);
/* Puts a value at that place of the inputs, with absent ones before it. */
void rondo__onnx_input_set(rondo__onnx_node *node, uint32_t index, rondo_ir_value value);
/* A further node with one output. */
RONDO_MUST_USE rondo_status rondo__onnx_extra(rondo__onnx_node *node, const char *operator_name,
                                              const rondo_ir_value *inputs, uint32_t input_count,
                                              const rondo_attribute *attributes, uint32_t attribute_count,
                                              rondo_ir_value *out_value);
/* Element type of a value as far as it can be told before inference; UNDEFINED when it cannot. */
rondo_dtype rondo__onnx_dtype_of(const rondo_ir_graph *graph, rondo_ir_value value);

#endif
