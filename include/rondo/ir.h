/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs by hand, beyond adding to them (compiler.h): looking at them, control edges, edits, branches, and keeping them
 * in files.
 *
 * A node is named by any value that it makes: such a number stays the same through every edit, as all values' do. What
 * these functions refuse they leave as it was; they need the graph to themselves, as every change does. Failures are of
 * the layer prototype, and name the node, and the input or output.
 */
#ifndef RONDO_IR_H
#define RONDO_IR_H

#include <rondo/compiler.h>

RONDO_EXTERN_C_BEGIN

/* ----------------------------------------------------------------------------------------------- looking at it */

/* The value of that name, or RONDO_IR_NONE. */
RONDO_API rondo_ir_value rondo_ir_graph_find_value(const rondo_ir_graph *graph, const char *name);
/* The first value that the node of that name makes, or RONDO_IR_NONE. */
RONDO_API rondo_ir_value rondo_ir_graph_find_node(const rondo_ir_graph *graph, const char *name);
/* The value behind input or output `index` of the graph; RONDO_IR_NONE past the end. */
RONDO_API rondo_ir_value rondo_ir_graph_input_value(const rondo_ir_graph *graph, uint32_t index);
RONDO_API rondo_ir_value rondo_ir_graph_output_value(const rondo_ir_graph *graph, uint32_t index);

enum {
    RONDO_IR_VALUE_IS_INPUT = 1u << 0,
    RONDO_IR_VALUE_IS_OUTPUT = 1u << 1,
    RONDO_IR_VALUE_IS_CONSTANT = 1u << 2,
    RONDO_IR_VALUE_IS_OUTER = 1u << 3 /* of a branch: stands for a value of the graph around it */
};

/* Everything is valid until the graph changes. */
typedef struct rondo_ir_value_info {
    uint32_t struct_size;
    uint32_t flags; /* RONDO_IR_VALUE_IS_* */
    const char *name;
    rondo_dtype dtype; /* UNDEFINED: not known yet */
    int32_t rank;      /* -1: not known yet */
    rondo_format format, origin_format;
    const rondo_attribute *attributes; /* notes of whoever built the graph */
    uint32_t attribute_count;
    uint32_t output;           /* of the node that makes it, which one it is */
    const void *constant;      /* compact row-major data of a constant, else null */
    const char *node_name;     /* of the node that makes it; null: nothing does */
    const char *operator_name; /* of that node */
} rondo_ir_value_info;
#define RONDO_IR_VALUE_INFO_INIT \
    { sizeof(rondo_ir_value_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* OUT_OF_RANGE: there is no such value. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_get_value(const rondo_ir_graph *graph, rondo_ir_value value,
                                                               rondo_ir_value_info *out_info);
/* A size, or -1 where it is open or the axis is none; out_symbol, which may be null, receives its name or null. */
RONDO_API int64_t rondo_ir_graph_value_dim(const rondo_ir_graph *graph, rondo_ir_value value, int32_t axis,
                                           const char **out_symbol);

/* Everything is valid until the graph changes. */
typedef struct rondo_ir_node_info {
    uint32_t struct_size;
    uint32_t input_count, output_count, attribute_count;
    uint32_t control_count; /* control edges that lead to it */
    uint32_t reserved;
    const char *name, *operator_name;
    const rondo_ir_value *inputs;  /* RONDO_IR_NONE: absent */
    const rondo_ir_value *outputs; /* RONDO_IR_NONE: not wanted */
    const rondo_attribute *attributes;
} rondo_ir_node_info;
#define RONDO_IR_NODE_INFO_INIT \
    { sizeof(rondo_ir_node_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* The node that makes the value. NOT_FOUND: nothing makes it. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_get_node(const rondo_ir_graph *graph, rondo_ir_value node,
                                                              rondo_ir_node_info *out_info);
/* The first value of the index-th node in the order in which they run, branches apart; RONDO_IR_NONE past the end. */
RONDO_API rondo_ir_value rondo_ir_graph_node_at(const rondo_ir_graph *graph, uint32_t index);
/* The first value of the node that control edge `index` of this node comes from; RONDO_IR_NONE past the end. */
RONDO_API rondo_ir_value rondo_ir_graph_control(const rondo_ir_graph *graph, rondo_ir_value node, uint32_t index);

/* ----------------------------------------------------------------------------------------------- control edges */

/* `node` runs after `before`, whatever data says, and `before` runs even where nobody uses what it makes. Compilation keeps
 * the order of the two among the steps of the plan, and leaves nodes with control edges as they are: not merged, not
 * fused, not passed by. One whose result is a constant is computed while compiling, before anything runs. Once is enough.
 * INVALID_ARGUMENT: nothing makes one of the values, or the edge would close a cycle. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_add_control(rondo_ir_graph *graph, rondo_ir_value node,
                                                                 rondo_ir_value before);
/* NOT_FOUND: there is no such edge. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_remove_control(rondo_ir_graph *graph, rondo_ir_value node,
                                                                    rondo_ir_value before);

/* ------------------------------------------------------------------------------------------------------- edits */

/* Input `index` of the node becomes `value`, or absent with RONDO_IR_NONE; past the last input the list grows, with what is
 * between absent. INVALID_ARGUMENT: the prototype does not allow it, or it would close a cycle. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_set_input(rondo_ir_graph *graph, rondo_ir_value node,
                                                               uint32_t index, rondo_ir_value value);
/* Adds the attribute, or replaces the one of that name. Names that begin with "user." are free on every node: notes, which
 * nothing reads but whoever wrote them. INVALID_ARGUMENT: the prototype has no such attribute, or one of another kind. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_set_attribute(rondo_ir_graph *graph, rondo_ir_value node,
                                                                   const rondo_attribute *attribute);
/* Every use of `from`, by nodes, as an output of the graph (which keeps its name) and inside branches, becomes one of `to`.
 * INVALID_ARGUMENT: the data types are known and differ, or it would close a cycle: `to` is made from `from`
 * (rondo_ir_graph_insert_node is for that). */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_replace_uses(rondo_ir_graph *graph, rondo_ir_value from,
                                                                  rondo_ir_value to);
/* Takes a node out, with its control edges. INVALID_STATE: one of its values is still used; the message says where. Its
 * values stay as numbers and are made by nothing. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_remove_node(rondo_ir_graph *graph, rondo_ir_value node);
/* Adds a node as rondo_ir_graph_add_node does, and puts it behind `after`: whoever else used that value uses the first
 * output of the new node instead. Its inputs may be `after`, and whatever is not made from it. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_insert_node(rondo_ir_graph *graph, rondo_ir_value after,
                                                                 const char *operator_name, const char *name,
                                                                 const rondo_ir_value *inputs, uint32_t input_count,
                                                                 const rondo_attribute *attributes,
                                                                 uint32_t attribute_count, rondo_ir_value *out_values,
                                                                 uint32_t output_count);

/* ---------------------------------------------------------------------------------------------------- branches */

/* A graph that a node of `graph` will hold as an attribute of kind GRAPH (value.graph): it is made and changed as any
 * graph, belongs to `graph`, and goes with it, so do not release it. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_add_branch(rondo_ir_graph *graph, const char *name,
                                                                rondo_ir_graph **out_branch);
/* The value of `branch` that stands for `outer` of the graph around it, made when first asked for. From further out, ask
 * level by level. INVALID_ARGUMENT: it is no branch, or there is no such value. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_outer_value(rondo_ir_graph *branch, rondo_ir_value outer,
                                                                 rondo_ir_value *out_value);
/* Makes a graph of its own a branch of `graph`, which takes over the caller's reference; that of a branch of `graph`
 * already stays as it is. INVALID_ARGUMENT: others hold it, it is a branch of another graph, or it is around `graph`;
 * OUT_OF_RANGE: too deep. Then it remains the caller's. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_adopt(rondo_ir_graph *graph, rondo_ir_graph *branch);

/* ------------------------------------------------------------------------------------------------------- files */

typedef int32_t rondo_ir_file_format;
enum {
    RONDO_IR_FILE_TEXT = 0,  /* to be read, compared and edited */
    RONDO_IR_FILE_BINARY = 1 /* smaller, and faster to load */
};

/* What a text begins with; the binary form begins with 0x89 and "RONDOIR". */
#define RONDO_IR_TEXT_MAGIC "rondo-graph"

/* Writes the whole graph: what was loaded from it is the same graph, number by number of constants, bit by bit. The same
 * graph gives the same bytes. docs/graph-file.md has the grammar. INVALID_ARGUMENT: a branch; its graph is what to save. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_save(const rondo_ir_graph *graph, rondo_ir_file_format format,
                                                          rondo_write_function write, void *user);
/* Reads either form. NOT_FOUND, IO (file): cannot be read. CORRUPT (file): not such a file, cut, malformed; the message has
 * the line of a text, or the byte. UNSUPPORTED: a newer version (file), or operators that have no prototype (prototype):
 * the notes list all of them. Else what rondo_ir_graph_verify refuses. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_load(rondo_instance *instance, const char *path,
                                                          rondo_ir_graph **out_graph);
/* The same from memory, which may go afterwards; `name` is used in messages. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_load_memory(rondo_instance *instance, const char *name,
                                                                 const void *data, size_t size,
                                                                 rondo_ir_graph **out_graph);
/* Whether the first bytes of a file are those of either form; 12 bytes are enough. */
RONDO_API bool rondo_ir_graph_is_file(const void *data, size_t size);

RONDO_EXTERN_C_END

#endif
