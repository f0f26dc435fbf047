/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor, Node, Graph as the compiler sees them.
 *
 * A graph owns an arena; everything that hangs on it (names, types, dims, attributes, constants) lives there and goes
 * with it. Values and nodes are numbered and never renumbered: a pass marks what it removes as dead, and
 * rondo__ir_clone drops the dead. Nodes are kept in an order in which every value is defined before it is used.
 * A subgraph (a branch of If) is a graph of its own whose values may stand for a value of the graph around it.
 */
#ifndef RONDO_SRC_IR_IR_H
#define RONDO_SRC_IR_IR_H

#include <rondo/compiler.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/thread.h"

struct rondo__shared; /* base/instance.h */

typedef int32_t rondo__ir_kind;
enum { RONDO__IR_TENSOR = 0, RONDO__IR_SEQUENCE = 1, RONDO__IR_OPTIONAL = 2 };

/* value >= 0: known. value -1: open, `symbol` names it or is null. minimum and maximum bound an open size. */
typedef struct rondo__ir_dim {
    int64_t value;
    const char *symbol;
    int64_t minimum, maximum;
} rondo__ir_dim;

typedef struct rondo__ir_type rondo__ir_type;
struct rondo__ir_type {
    rondo__ir_kind kind;
    rondo_dtype dtype;          /* of a tensor; UNDEFINED: not known yet */
    int32_t rank;               /* -1: not known yet */
    rondo_format format;        /* how it is stored */
    rondo_format origin_format; /* what the model means */
    const rondo__ir_dim *dims;
    const rondo__ir_type *element; /* of a sequence or an optional */
};

/* Compact row-major host data. String tensors hold rondo_string elements. */
typedef struct rondo__ir_constant {
    rondo_dtype dtype;
    int32_t rank;
    const int64_t *dims;
    const void *data; /* aligned to 64 bytes */
    size_t bytes;
} rondo__ir_constant;

enum { RONDO__IR_VALUE_INPUT = 1u << 0, RONDO__IR_VALUE_OUTPUT = 1u << 1 };

typedef struct rondo__ir_value_data {
    const char *name; /* unique in its graph */
    rondo__ir_type type;
    const rondo__ir_constant *constant; /* null when not known */
    rondo_ir_node producer;             /* RONDO_IR_NONE: input, constant or outer */
    uint32_t producer_output;
    rondo_ir_value outer; /* in a subgraph: the value of the parent that it stands for, else RONDO_IR_NONE */
    uint32_t flags;
    uint32_t attribute_count;    /* notes of whoever built the graph: kept, and read by nothing here */
    rondo_attribute *attributes; /* of any kind but GRAPH */
} rondo__ir_value_data;

typedef struct rondo__ir_node_data {
    const char *operator_name;   /* "Conv", or "domain::Name" outside ONNX's own domain */
    const char *name;            /* unique in its graph, never null */
    rondo_ir_value *inputs;      /* RONDO_IR_NONE: absent */
    rondo_ir_value *outputs;     /* RONDO_IR_NONE: not wanted */
    rondo_attribute *attributes; /* of kind GRAPH: value.graph is a rondo_ir_graph owned by this graph */
    uint32_t input_count, output_count, attribute_count;
    bool dead;
    /* Control edges: nodes that must have run before this one, whatever data says. They stand before it. */
    rondo_ir_node *controls;
    uint32_t control_count;
    uint32_t awaited; /* nodes, dead ones apart, that name this one among theirs */
} rondo__ir_node_data;

struct rondo_ir_graph {
    rondo__ref_count references;
    rondo_allocator allocator;
    rondo__arena arena;
    const char *name;
    rondo_ir_graph *parent; /* of a subgraph; not retained */
    rondo_instance *instance;
    struct rondo__shared *operators; /* the instance's registered prototypes, retained; null: built-in ones alone */
    int64_t opset;                   /* version of ONNX's own domain that the model declared; 0: built by hand */
    uint32_t nodes_in_model;         /* nodes when it was imported or built, subgraphs included; clones keep it */
    rondo__buffer values;            /* rondo__ir_value_data */
    rondo__buffer nodes;             /* rondo__ir_node_data */
    rondo__buffer inputs;            /* rondo_ir_value */
    rondo__buffer outputs;           /* rondo_ir_value */
    rondo__buffer output_names;      /* const char * */
    rondo__buffer subgraphs;         /* rondo_ir_graph *, owned */
    void *name_index;                /* hash of value names */
    size_t control_count;            /* control edges that were ever added; 0: no node has any */
    rondo__buffer input_sizes, output_sizes; /* int64_t *: what rondo_ir_graph_input and _output lend out */
    rondo_ir_graph *source;                  /* retained: the graph whose constants a copy shares */
};

#define RONDO__IR_VALUES_MAX (1u << 26)
#define RONDO__IR_NODES_MAX (1u << 26)

static inline rondo__ir_value_data *rondo__ir_value_at(const rondo_ir_graph *graph, rondo_ir_value value) {
    return RONDO__BUFFER_AT(&graph->values, rondo__ir_value_data, value);
}
static inline rondo__ir_node_data *rondo__ir_node_at(const rondo_ir_graph *graph, rondo_ir_node node) {
    return RONDO__BUFFER_AT(&graph->nodes, rondo__ir_node_data, node);
}
/* Whether the node has control edges: a pass that merges, replaces or moves nodes leaves such a one where it is. */
static inline bool rondo__ir_node_held(const rondo__ir_node_data *node) {
    return node->control_count > 0 || node->awaited > 0;
}
static inline rondo_ir_value rondo__ir_input_at(const rondo_ir_graph *graph, uint32_t index) {
    return *RONDO__BUFFER_AT(&graph->inputs, rondo_ir_value, index);
}
static inline rondo_ir_value rondo__ir_output_at(const rondo_ir_graph *graph, uint32_t index) {
    return *RONDO__BUFFER_AT(&graph->outputs, rondo_ir_value, index);
}

/* Building without prototypes: the public functions of compiler.h check these first. parent may be null; with one, the
 * new graph is owned by it. */
RONDO_MUST_USE rondo_status rondo__ir_graph_create(const rondo_allocator *allocator, rondo_instance *instance,
                                                   const char *name, rondo_ir_graph *parent,
                                                   rondo_ir_graph **out_graph);
/* The registered prototypes that the graph may have; branches and copies have those of the graph that they come from. The
 * instance itself may be gone by then. */
void rondo__ir_graph_share_operators(rondo_ir_graph *graph, struct rondo__shared *operators);
/* name null: one is made from `stem`. */
RONDO_MUST_USE rondo_status rondo__ir_value_add(rondo_ir_graph *graph, const char *name, const char *stem,
                                                const rondo__ir_type *type, rondo_ir_value *out_value);
/* RONDO_IR_NONE when there is none of that name. */
rondo_ir_value rondo__ir_value_find(const rondo_ir_graph *graph, const char *name);
/* A value of `subgraph` that stands for `outer` of its parent: one a value, made when first asked for. */
RONDO_MUST_USE rondo_status rondo__ir_value_outer(rondo_ir_graph *subgraph, rondo_ir_value outer,
                                                  rondo_ir_value *out_value);
RONDO_MUST_USE rondo_status rondo__ir_input_add(rondo_ir_graph *graph, rondo_ir_value value);
RONDO_MUST_USE rondo_status rondo__ir_output_add(rondo_ir_graph *graph, rondo_ir_value value, const char *name);
/* Copies the compact data into the graph's arena and returns the constant, or with copy false keeps the pointer, which
 * must live as long as the graph. */
RONDO_MUST_USE rondo_status rondo__ir_constant_make(rondo_ir_graph *graph, rondo_dtype dtype, int32_t rank,
                                                    const int64_t *dims, const void *data, bool copy,
                                                    const rondo__ir_constant **out_constant);
/* A value with that constant and its type. */
RONDO_MUST_USE rondo_status rondo__ir_constant_add(rondo_ir_graph *graph, const char *name, const char *stem,
                                                   rondo_dtype dtype, int32_t rank, const int64_t *dims,
                                                   const void *data, rondo_ir_value *out_value);
/* Appends a node that makes existing values; copies arrays and attributes (not graphs) into the arena. Each output
 * value gets its producer. name null: one is made from the operator's. */
RONDO_MUST_USE rondo_status rondo__ir_node_add(rondo_ir_graph *graph, const char *operator_name, const char *name,
                                               const rondo_ir_value *inputs, uint32_t input_count,
                                               const rondo_ir_value *outputs, uint32_t output_count,
                                               const rondo_attribute *attributes, uint32_t attribute_count,
                                               rondo_ir_node *out_node);
/* `node` waits for `before`: nothing changes when it does already. INVALID_ARGUMENT: one of them does not exist or is
 * dead, or they are the same. The order is the caller's to keep. */
RONDO_MUST_USE rondo_status rondo__ir_control_add(rondo_ir_graph *graph, rondo_ir_node node, rondo_ir_node before);
/* NOT_FOUND when there is no such edge. */
RONDO_MUST_USE rondo_status rondo__ir_control_remove(rondo_ir_graph *graph, rondo_ir_node node, rondo_ir_node before);
/* The node dies: nobody waits for it, and it waits for nobody. Its outputs have no producer any more. */
void rondo__ir_node_kill(rondo_ir_graph *graph, rondo_ir_node node);
/* One by one: kind, name, value. Tensors, lists of strings and graphs are equal to nothing: rare, and not worth it. */
bool rondo__ir_attributes_equal(const rondo_attribute *a, uint32_t a_count, const rondo_attribute *b, uint32_t b_count);
/* Copies an attribute deeply into the graph's arena; kind GRAPH keeps the pointer. */
RONDO_MUST_USE rondo_status rondo__ir_attribute_copy(rondo_ir_graph *graph, const rondo_attribute *attribute,
                                                     rondo_attribute *out_copy);
/* Adds an attribute to a node, or replaces the one of that name. */
RONDO_MUST_USE rondo_status rondo__ir_attribute_set(rondo_ir_graph *graph, rondo_ir_node node,
                                                    const rondo_attribute *attribute);
/* The same for a value's notes; a graph is refused. */
RONDO_MUST_USE rondo_status rondo__ir_value_attribute_set(rondo_ir_graph *graph, rondo_ir_value value,
                                                          const rondo_attribute *attribute);
/* ALREADY_EXISTS: there is a node of that name. */
RONDO_MUST_USE rondo_status rondo__ir_node_rename(rondo_ir_graph *graph, rondo_ir_node node, const char *name);
/* Of that name and alive, or RONDO_IR_NONE; in graphs whose nodes passes have replaced it may miss some. */
rondo_ir_node rondo__ir_node_find(const rondo_ir_graph *graph, const char *name);
/* Takes a graph of its own, with the caller's reference, as a branch of `graph`; one that is its branch already stays.
 * INVALID_ARGUMENT: it belongs to another graph, is `graph` itself or around it, or others hold it too. */
RONDO_MUST_USE rondo_status rondo__ir_graph_adopt(rondo_ir_graph *graph, rondo_ir_graph *branch);
/* Null when absent. */
const rondo_attribute *rondo__ir_attribute_find(const rondo__ir_node_data *node, const char *name);
int64_t rondo__ir_attribute_int(const rondo__ir_node_data *node, const char *name, int64_t otherwise);
/* Every use of `from` as a node's input or a graph's output (of this graph, and as `outer` in its subgraphs) becomes
 * `to`. */
void rondo__ir_value_replace(rondo_ir_graph *graph, rondo_ir_value from, rondo_ir_value to);
/* The same for many at once, in one walk over the graph: `map` has an entry a value, which is the value itself when it
 * stays. Chains are followed (and shortened in the map); there must be no ring. */
void rondo__ir_values_replace(rondo_ir_graph *graph, rondo_ir_value *map);
RONDO_MUST_USE rondo_status rondo__ir_type_from_dims(rondo_ir_graph *graph, rondo_dtype dtype, int32_t rank,
                                                     const int64_t *dims, rondo__ir_type *out_type);
/* Whether every size is known; then writes them (dims holds RONDO_RANK_MAX). */
bool rondo__ir_type_concrete(const rondo__ir_type *type, int64_t *dims);
/* A copy without dead nodes and without values nobody mentions. Constant data is shared when share is true (the source
 * must then outlive the copy: the copy retains it), else copied. */
RONDO_MUST_USE rondo_status rondo__ir_clone(const rondo_ir_graph *graph, bool share, rondo_ir_graph **out_graph);
/* A copy of a branch as a branch of `to`, which owns it. `outer_map` says which value of `to` stands for each value of the
 * graph around the branch. Constants are shared: whoever owns their data must outlive `to`. */
RONDO_MUST_USE rondo_status rondo__ir_branch_copy(rondo_ir_graph *to, const rondo_ir_graph *branch,
                                                  const rondo_ir_value *outer_map, rondo_ir_graph **out_copy);
/* A branch as a graph of its own. What it takes from the graph around it becomes a constant where `constant_of` gives one,
 * else an input behind its own; `captured` gets those values of the graph around it (rondo_ir_value), in order. All
 * constants are shared: `holds`, which the copy retains, keeps their data. */
typedef struct rondo__ir_lifting {
    const rondo__ir_constant *(*constant_of)(void *user, rondo_ir_value outer); /* null when it is not known */
    void *user;
    rondo_ir_graph *holds;
} rondo__ir_lifting;
RONDO_MUST_USE rondo_status rondo__ir_branch_lift(const rondo_ir_graph *branch, const rondo__ir_lifting *lifting,
                                                  rondo__buffer *captured, rondo_ir_graph **out_graph);
/* Sorts the nodes so that every value is defined before its use. CORRUPT (file) names a node on a cycle. */
RONDO_MUST_USE rondo_status rondo__ir_sort(rondo_ir_graph *graph);
/* Structure only (no prototypes): references in range, definitions before uses, names unique, at any nesting depth. */
RONDO_MUST_USE rondo_status rondo__ir_verify(const rondo_ir_graph *graph);
/* "float32[1,576]", "float32[batch,?]" for messages; always terminated. */
void rondo__ir_type_text(const rondo__ir_type *type, char *buffer, size_t capacity);

#endif
