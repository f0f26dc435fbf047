/* SPDX-License-Identifier: Apache-2.0
 *
 * Operator prototypes: one data table, and shape and type inference.
 *
 * There is one prototype an operator, in the newest ONNX form that Rondo knows (axes as inputs, one Softmax). The
 * importer's converters bring older forms into it, so that inference, passes and kernels know one form only.
 * Inference works on concrete shapes: the compiler specialises first.
 */
#ifndef RONDO_SRC_OPS_OPS_H
#define RONDO_SRC_OPS_OPS_H

#include <rondo/plugin.h>

#include "base/status.h"
#include "ir/ir.h"

/* What the names of attributes begin with that are free on every node; the compiler leaves them behind. */
#define RONDO__OPS_NOTE "user."

/* Which types an operand may have: a bit a dtype (1u << RONDO_DTYPE_x). */
typedef uint32_t rondo__ops_types;

#define RONDO__OPS_ANY_NUMBER 2u

typedef struct rondo__ops_operand {
    const char *name;
    rondo__ops_types types;
    char type_variable; /* operands of one letter have one type; 0: on its own */
    uint8_t optional;
    uint8_t variadic; /* last only: one or more; RONDO__OPS_ANY_NUMBER: or none */
    uint8_t internal; /* no model may have it, only the compiler adds it */
} rondo__ops_operand;

typedef struct rondo__ops_attribute {
    const char *name;
    rondo_attribute_kind kind;
    uint8_t required;
    const char *default_text; /* for people: "1", "[1,1]", "constant"; null: none */
} rondo__ops_attribute;

/* What inference sees and fills in. All input dims are concrete; input.constant is its value when known. Every output
 * is filled in, wanted or not; the outputs' dims arrays have room for RONDO_RANK_MAX. */
typedef struct rondo__ops_prototype rondo__ops_prototype;
typedef struct rondo__ops_infer {
    const rondo__ops_prototype *prototype;
    const rondo_kernel_request *request; /* inputs and attributes; of the outputs only their number is looked at */
    rondo_operand *outputs;              /* to be filled in */
    int64_t (*output_dims)[RONDO_RANK_MAX];
    const char *needs_value_of; /* set when the answer needs the value of this input and it is not known: the shape of
                                   the outputs then depends on data */
} rondo__ops_infer;

enum {
    RONDO__OPS_VIEW = 1u << 0,        /* output 0 is input 0's bytes under another shape */
    RONDO__OPS_ELEMENTWISE = 1u << 1, /* with broadcast; output element i depends on elements i alone */
    RONDO__OPS_CONTROL = 1u << 2,     /* has subgraphs: no kernel, the compiler removes it */
    RONDO__OPS_RANDOM = 1u << 3,      /* never folded or merged */
    RONDO__OPS_COMMUTES = 1u << 4,
    RONDO__OPS_SIZED = 1u << 5, /* inference gives the most that there can be: data decides (rondo__kernel_run_sized) */
    RONDO__OPS_HOSTED = 1u << 6 /* takes or gives sequences or optionals: no kernel, a session does it between plans */
};

struct rondo__ops_prototype {
    const char *name; /* "Conv" */
    const char *summary;
    const rondo__ops_operand *inputs;
    const rondo__ops_operand *outputs;
    const rondo__ops_attribute *attributes;
    uint32_t input_count, output_count, attribute_count;
    uint32_t flags;
    uint64_t shape_inputs; /* bit i: the output's shape depends on the value of input i */
    rondo_status (*infer)(rondo__ops_infer *infer);
    const void *registered; /* what a program registered; null for those of the table */
};

/* As a node of the graph may name it: built in, or registered with the graph's instance. Null for an unknown name.
 * Thread-safe; what it gives stays as long as the graph does. */
const rondo__ops_prototype *rondo__ops_lookup(const rondo_ir_graph *graph, const char *operator_name);
/* The registered operator that a node of an ONNX model means; `domain` is "" for ONNX's own. Null when there is none. */
const rondo__ops_prototype *rondo__ops_lookup_onnx(const rondo_ir_graph *graph, const char *domain, const char *type,
                                                   int64_t version);
/* The same among the constant table alone. Null for an unknown name. Thread-safe. */
const rondo__ops_prototype *rondo__ops_find(const char *operator_name);
/* Sorted by name; null past the end. */
const rondo__ops_prototype *rondo__ops_at(uint32_t index);
/* Counts and kinds against the prototype, and the data types of operands where they are known: PROTOTYPE errors that
 * name node, operand and attribute. NOT_FOUND for an unknown operator. */
RONDO_MUST_USE rondo_status rondo__ops_check_node(const rondo_ir_graph *graph, const rondo__ir_node_data *node);
/* The same for a node that comes from outside: operands and attributes that only the compiler adds are refused. */
RONDO_MUST_USE rondo_status rondo__ops_check_model_node(const rondo_ir_graph *graph, const rondo__ir_node_data *node);
/* Dtypes and shapes of the outputs of an operator whose prototype is known; see below. */
RONDO_MUST_USE rondo_status rondo__ops_infer_with(const rondo__ops_prototype *prototype,
                                                  const rondo_kernel_request *request, rondo_operand *out_outputs,
                                                  int64_t (*output_dims)[RONDO_RANK_MAX]);
/* The same for an operator of the table, by its name. Dtypes and shapes of the outputs from concrete inputs. META errors that name the node; INVALID_ARGUMENT for what does
 * not fit, UNSUPPORTED for shapes that depend on data (the message names the input). */
RONDO_MUST_USE rondo_status rondo__ops_infer_request(const rondo_kernel_request *request, rondo_operand *out_outputs,
                                                     int64_t (*output_dims)[RONDO_RANK_MAX]);

/* Whether there is a value behind what its kind says. */
bool rondo__ops_attribute_present(const rondo_attribute *attribute);

/* Reading a request, for inference and for converters. */
const rondo_attribute *rondo__ops_attribute_find(const rondo_kernel_request *request, const char *name);
int64_t rondo__ops_attribute_int(const rondo_kernel_request *request, const char *name, int64_t otherwise);
float rondo__ops_attribute_float(const rondo_kernel_request *request, const char *name, float otherwise);
/* "" when absent. */
const char *rondo__ops_attribute_string(const rondo_kernel_request *request, const char *name, const char *otherwise);
/* Numpy's rule. false when they do not fit. */
bool rondo__ops_broadcast(int32_t rank_a, const int64_t *a, int32_t rank_b, const int64_t *b, int32_t *out_rank,
                          int64_t *out_dims);

#endif
