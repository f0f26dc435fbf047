/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this room share: the import in progress, TensorFlow's nodes and values on their way into the ir, and
 * what converters are made of.
 *
 * Everything temporary lives in one scratch arena or is borrowed from the file's bytes; everything that stays lives in the
 * graph's arena. Failures name node or byte; the outermost function puts the file's name in front. */
#ifndef RONDO_SRC_IMPORT_TF_TF_H
#define RONDO_SRC_IMPORT_TF_TF_H

#include <rondo/compiler.h>

#include "base/log.h"
#include "import/common/common.h"
#include "ir/ir.h"
#include "ops/ops.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensor_content is little-endian and is copied as it is");

#define RONDO__TF_ATTRIBUTES_MAX 256u
/* Bytes of constants that the file gives by repeating one number, all of them together. */
#define RONDO__TF_REPEATED_MAX ((size_t)64 << 20)

typedef struct rondo__tf_node rondo__tf_node;
typedef rondo_status (*rondo__tf_converter)(rondo__tf_node *node);

typedef uint8_t rondo__tf_rank_rule;
enum {
    RONDO__TF_RANK_OPEN,  /* the converter says it, or nobody */
    RONDO__TF_RANK_FIRST, /* that of the first input */
    RONDO__TF_RANK_WIDEST /* that of the input with the most axes */
};

#define RONDO__TF_ANY UINT8_MAX

/* One of TensorFlow's operators. */
typedef struct rondo__tf_row {
    const char *type;
    rondo__tf_converter convert;
    const char *operator_name; /* of the prototype, where one is enough */
    const char *attributes;    /* that it may have, with a space between; those that start with '_' are remarks */
    const char *dtype;         /* of its outputs: the attribute that says it, or ":bool"; null: the converter does */
    uint8_t inputs_min, inputs_max;
    uint8_t outputs; /* RONDO__TF_ANY: as many as the attribute `count` says, or without one as there are inputs */
    rondo__tf_rank_rule rank;
    const char *count;
} rondo__tf_row;

/* An output of a node. */
typedef struct rondo__tf_value {
    rondo_ir_value plain; /* as TensorFlow has it; RONDO_IR_NONE: not made, or not yet */
    rondo_ir_value moved; /* of four axes, with the channels in second place; RONDO_IR_NONE: not made */
    rondo_dtype dtype;    /* UNDEFINED: not known */
    int32_t rank;         /* -1: not known */
} rondo__tf_value;

typedef struct rondo__tf_edge {
    uint32_t node, port;
} rondo__tf_edge;

typedef struct rondo__tf_attribute {
    rondo__pb_bytes key, message;
} rondo__tf_attribute;

typedef struct rondo__tf_context {
    rondo_allocator allocator;
    rondo_instance *instance;
    const rondo__log *log; /* may be null */
    const char *file;
    rondo__arena scratch;
    rondo__pb_budget budget;
    rondo__import_names names;     /* of nodes */
    rondo__import_names functions; /* of the graph's library */
    rondo__import_refusals refusals;
    rondo__tf_node *nodes;
    uint32_t node_count;
    rondo_ir_graph *graph;
    uint32_t *order; /* nodes that are wanted, each after those that it takes from */
    uint32_t ordered;
    uint32_t made; /* nodes and values named so far */
    size_t repeated;
    rondo__tf_node *cycle; /* a node that waits for itself */
} rondo__tf_context;

struct rondo__tf_node {
    rondo__tf_context *context;
    rondo__pb_reader reader; /* of the NodeDef */
    const char *name, *type;
    const rondo__tf_row *row; /* null: not known */
    const rondo__pb_bytes *input_names;
    rondo__tf_edge *inputs; /* data only */
    rondo__tf_attribute *attributes;
    rondo__tf_value *outputs;
    uint32_t input_name_count, input_count, attribute_count, output_count;
    uint8_t state; /* of the walk that orders them */
    bool used;     /* some node takes its data */
    bool refused;
};

/* ------------------------------------------------------------------------------------------------------- nodes */

/* The row of an operator, or null. */
const rondo__tf_row *rondo__tf_row_of(const char *type);
/* Why an operator without a row cannot be had, where there is more to say than that; else null. */
const char *rondo__tf_why_not(const char *type);
/* Names, inputs and attributes of one NodeDef; nothing is looked up yet. */
RONDO_MUST_USE rondo_status rondo__tf_node_read(rondo__tf_context *context, const rondo__pb_reader *reader,
                                                rondo__tf_node *out_node);
/* Inputs by name, the operator's row, and what the row asks of the node. */
RONDO_MUST_USE rondo_status rondo__tf_node_resolve(rondo__tf_node *node);
/* Its attributes' names: those that the row does not know refuse the node. */
RONDO_MUST_USE rondo_status rondo__tf_node_check(rondo__tf_node *node);
/* Notes that this node cannot be. reason: a literal, or null for an operator that is not known. */
RONDO_MUST_USE rondo_status rondo__tf_refuse(rondo__tf_node *node, const char *reason);
#define RONDO__TF_CORRUPT(node, format, ...) \
    RONDO__FAIL(CORRUPT, FILE, "node '%.180s' (%.60s): " format, (node)->name, (node)->type, ##__VA_ARGS__)

/* Attributes: absent ones leave the default in place; one of another kind is CORRUPT. */
bool rondo__tf_has(const rondo__tf_node *node, const char *key);
RONDO_MUST_USE rondo_status rondo__tf_attr_int(rondo__tf_node *node, const char *key, int64_t *value);
RONDO_MUST_USE rondo_status rondo__tf_attr_bool(rondo__tf_node *node, const char *key, bool *value);
RONDO_MUST_USE rondo_status rondo__tf_attr_float(rondo__tf_node *node, const char *key, float *value);
RONDO_MUST_USE rondo_status rondo__tf_attr_text(rondo__tf_node *node, const char *key, const char **value);
/* UNDEFINED for a type that is not known here. */
RONDO_MUST_USE rondo_status rondo__tf_attr_type(rondo__tf_node *node, const char *key, rondo_dtype *value);
RONDO_MUST_USE rondo_status rondo__tf_attr_ints(rondo__tf_node *node, const char *key, uint32_t maximum,
                                                int64_t *values, uint32_t *count);
/* rank -1: no shape, or one of unknown rank; dims -1: open. */
RONDO_MUST_USE rondo_status rondo__tf_attr_shape(rondo__tf_node *node, const char *key, int32_t *rank, int64_t *dims);
/* A tensor; refuses the node where its type is not known here. */
RONDO_MUST_USE rondo_status rondo__tf_attr_tensor(rondo__tf_node *node, const char *key,
                                                  const rondo__ir_constant **out_constant);

/* ------------------------------------------------------------------------------------------------ types, tensors */

/* Of TensorFlow's number; UNDEFINED when it is none of ours. */
rondo_dtype rondo__tf_dtype(int64_t number);
RONDO_MUST_USE rondo_status rondo__tf_shape_read(rondo__pb_reader *reader, int32_t *out_rank, int64_t *out_dims);
/* out_constant stays null when the type is none of ours. */
RONDO_MUST_USE rondo_status rondo__tf_tensor_read(rondo__tf_context *context, const rondo__pb_reader *reader,
                                                  const rondo__ir_constant **out_constant);

/* ---------------------------------------------------------------------------------------------- for converters */

rondo__tf_value *rondo__tf_value_at(const rondo__tf_node *node, uint32_t input);
/* What is known of an input's value: null when it is not a constant. */
const rondo__ir_constant *rondo__tf_constant_at(const rondo__tf_node *node, uint32_t input);
/* An input as TensorFlow has it; one that was made with its channels moved is moved back, once. */
RONDO_MUST_USE rondo_status rondo__tf_take(rondo__tf_node *node, uint32_t input, rondo_ir_value *out_value);
/* An input of four axes with the channels in second place; moved there, once, where it is not. */
RONDO_MUST_USE rondo_status rondo__tf_take_moved(rondo__tf_node *node, uint32_t input, rondo_ir_value *out_value);
/* The numbers of a constant of rank 0 or 1; refuses the node, with `reason`, where the input is not a constant. */
RONDO_MUST_USE rondo_status rondo__tf_take_ints(rondo__tf_node *node, uint32_t input, const char *reason,
                                                int64_t values[RONDO_RANK_MAX], uint32_t *out_count);
/* The one number of a constant. */
RONDO_MUST_USE rondo_status rondo__tf_take_int(rondo__tf_node *node, uint32_t input, const char *reason,
                                               int64_t *out_value);
/* An input as int64 of rank 1: what shapes, axes and counts are here. */
RONDO_MUST_USE rondo_status rondo__tf_take_list(rondo__tf_node *node, uint32_t input, rondo_ir_value *out_value);

/* Inputs of an elementwise operator, all as TensorFlow has them or all with the channels moved: the latter where one is so
 * and the others can be at no cost. */
RONDO_MUST_USE rondo_status rondo__tf_take_alike(rondo__tf_node *node, rondo_ir_value *values, bool *out_moved);
/* The last node of an elementwise operator with one output. */
RONDO_MUST_USE rondo_status rondo__tf_end_alike(rondo__tf_node *node, bool moved, const char *operator_name,
                                                const rondo_ir_value *inputs, uint32_t input_count,
                                                const rondo_attribute *attributes, uint32_t attribute_count);
/* The output is this value, which has its channels in second place. */
void rondo__tf_end_moved(rondo__tf_node *node, rondo_ir_value value);

/* A node on the way to this one's outputs. */
RONDO_MUST_USE rondo_status rondo__tf_step(rondo__tf_node *node, const char *operator_name,
                                           const rondo_ir_value *inputs, uint32_t input_count,
                                           const rondo_attribute *attributes, uint32_t attribute_count,
                                           rondo_ir_value *out_value);
/* The same with several outputs. */
RONDO_MUST_USE rondo_status rondo__tf_steps(rondo__tf_node *node, const char *operator_name,
                                            const rondo_ir_value *inputs, uint32_t input_count,
                                            const rondo_attribute *attributes, uint32_t attribute_count,
                                            rondo_ir_value *out_values, uint32_t output_count);
/* The node that makes all of this one's outputs. */
RONDO_MUST_USE rondo_status rondo__tf_end(rondo__tf_node *node, const char *operator_name, const rondo_ir_value *inputs,
                                          uint32_t input_count, const rondo_attribute *attributes,
                                          uint32_t attribute_count);
/* Constants: numbers as a list, one number of a type (a float type or an integer one). */
RONDO_MUST_USE rondo_status rondo__tf_list(rondo__tf_node *node, const int64_t *values, uint32_t count,
                                           rondo_ir_value *out_value);
RONDO_MUST_USE rondo_status rondo__tf_number(rondo__tf_node *node, rondo_dtype dtype, double number,
                                             rondo_ir_value *out_value);
/* Steps that many converters take. */
RONDO_MUST_USE rondo_status rondo__tf_cast(rondo__tf_node *node, rondo_ir_value value, rondo_dtype from, rondo_dtype to,
                                           rondo_ir_value *out_value);
RONDO_MUST_USE rondo_status rondo__tf_transpose(rondo__tf_node *node, rondo_ir_value value, const int64_t *perm,
                                                uint32_t rank, rondo_ir_value *out_value);
/* Unsqueeze, Squeeze: axes as a list. */
RONDO_MUST_USE rondo_status rondo__tf_axes(rondo__tf_node *node, const char *operator_name, rondo_ir_value value,
                                           const int64_t *axes, uint32_t count, rondo_ir_value *out_value);
/* The output is a value that there is already. */
void rondo__tf_alias(rondo__tf_node *node, uint32_t output, rondo_ir_value value);

static inline rondo_attribute rondo__tf_int(const char *name, int64_t value) {
    return (rondo_attribute){.name = name, .kind = RONDO_ATTRIBUTE_INT, .count = 1, .value.i = value};
}
static inline rondo_attribute rondo__tf_float(const char *name, float value) {
    return (rondo_attribute){.name = name, .kind = RONDO_ATTRIBUTE_FLOAT, .count = 1, .value.f = value};
}
static inline rondo_attribute rondo__tf_ints(const char *name, const int64_t *values, uint32_t count) {
    return (rondo_attribute){.name = name, .kind = RONDO_ATTRIBUTE_INTS, .count = count, .value.ints = values};
}
static inline rondo_attribute rondo__tf_text(const char *name, const char *text, size_t size) {
    return (rondo_attribute){.name = name, .kind = RONDO_ATTRIBUTE_STRING, .count = 1, .value.s = {text, size}};
}

/* --------------------------------------------------------------------------------------------------- converters */

/* clang-format off */
#define RONDO__TF_CONVERTERS(X)                                                                                        \
    X(add_n) X(arg) X(band_part) X(batch_norm) X(bias) X(binary) X(broadcast_to) X(cast) X(clip) X(concat) X(const)    \
    X(conv) X(cumulate) X(depth_to_space) X(depthwise) X(einsum) X(erfc) X(expand_dims) X(expm1) X(fill) X(finite)     \
    X(floor_divide) X(gather) X(gather_nd) X(l2_loss) X(leaky) X(like) X(log1p) X(lrn) X(matmul) X(modulo) X(no_nan)   \
    X(not_equal) X(nothing) X(one_hot) X(pack) X(pad) X(placeholder) X(pool) X(range) X(rank) X(reduce) X(relu6)       \
    X(reshape) X(reverse) X(rsqrt) X(same) X(scatter_nd) X(select) X(shape) X(size) X(slice) X(softmax)                \
    X(space_to_depth) X(split) X(square) X(squared_difference) X(squeeze) X(strided_slice) X(tile) X(top_k)            \
    X(transpose) X(unary) X(unpack)
/* clang-format on */
#define RONDO__TF_DECLARE(name) RONDO_MUST_USE rondo_status rondo__tf_convert_##name(rondo__tf_node *node);
RONDO__TF_CONVERTERS(RONDO__TF_DECLARE)
#undef RONDO__TF_DECLARE

#endif
