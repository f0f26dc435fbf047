/* SPDX-License-Identifier: Apache-2.0
 *
 * Eager style: graphs by function calls. Each call adds to a graph that is being built, and what it returns stands for a
 * value of that graph; nothing is run.
 *
 *     rondo_es_tensor *x = rondo_es_input_with_details(b, 0, "x", RONDO_DTYPE_F32, RONDO_FORMAT_ND, dims, 2);
 *     rondo_es_tensor *y = rondo_es_input_with_details(b, 1, "y", RONDO_DTYPE_F32, RONDO_FORMAT_ND, dims, 2);
 *     rondo_es_set_output(rondo_es_Add(rondo_es_Add(x, y), y), 0);
 *     status = rondo_es_build_and_reset(b, &graph);
 *
 * rondo/es_operators.h, which the build generates, has a function for each operator. "rondo es-generate" makes such a header
 * of a library of a program's own operators. How the functions are made of prototypes:
 *   - tensors first, in the prototype's order; null leaves an optional one out; a dynamic one is an array and its length;
 *   - then the builder, only where no tensor has to be given: null is enough when one is;
 *   - then the lengths of dynamic outputs, then graphs, then attributes: required ones, then the others, each in the
 *     prototype's order;
 *   - an attribute that has the prototype's default is not put on the node; one that may be absent and has no default of
 *     its own is given by a pointer, or an array and its length, and null is absent;
 *   - one output is returned itself, several as a struct with their names; a dynamic one is an array that the builder owns;
 *   - a graph (rondo_ir_graph *) and a tensor (rondo_tensor *) as an attribute are taken over, also when the call fails.
 *
 * Failures stick: what fails returns null, and the first failure of a builder is told by rondo_es_build_and_reset. Null
 * tensors may be passed on, so nothing needs to be checked in between.
 *
 * Builders are thread-compatible. A tensor belongs to its builder and is gone when that is built, reset or released.
 */
#ifndef RONDO_ES_H
#define RONDO_ES_H

#include <rondo/compiler.h>
#include <string.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_es_builder rondo_es_builder;
typedef struct rondo_es_tensor rondo_es_tensor;

/* -------------------------------------------------------------------------------------------------- the builder */

/* name null: "graph". Holds nothing of the instance's but its operators; the instance must outlive it. */
RONDO_API RONDO_MUST_USE rondo_status rondo_es_builder_create(rondo_instance *instance, const char *name,
                                                              rondo_es_builder **out_builder);
/* A builder of a graph inside the one that `around` builds, for an operator with graphs. Tensors of `around`, or further
 * out, may be given to its functions beside its own; rondo_es_outer brings one in alone. Built before `around` is, its graph
 * belongs to that of `around`: pass it to an operator, do not release it. */
RONDO_API RONDO_MUST_USE rondo_status rondo_es_builder_create_branch(rondo_es_builder *around, const char *name,
                                                                     rondo_es_builder **out_builder);
RONDO_API void rondo_es_builder_release(rondo_es_builder *builder);

/* Hands over the graph and leaves the builder empty, to be used again; the first failure if there was one, with nothing
 * handed over, and the builder empty as well. A graph needs outputs 0 to n-1 and inputs 0 to m-1, each once:
 * INVALID_STATE names what is missing. The graph passes rondo_ir_graph_verify. */
RONDO_API RONDO_MUST_USE rondo_status rondo_es_build_and_reset(rondo_es_builder *builder, rondo_ir_graph **out_graph);

/* The graph under work, to be asked (rondo/ir.h); null where there is none yet. Borrowed. */
RONDO_API rondo_ir_graph *rondo_es_graph(rondo_es_builder *builder);
/* The tensor's builder, and its value in that graph; null and RONDO_IR_NONE of null. */
RONDO_API rondo_es_builder *rondo_es_owner(const rondo_es_tensor *tensor);
RONDO_API rondo_ir_value rondo_es_value(const rondo_es_tensor *tensor);
/* Whether a failure sticks to it. */
RONDO_API bool rondo_es_failed(const rondo_es_builder *builder);

/* ------------------------------------------------------------------------------------------- what graphs begin with */

/* Input `index` of the graph. Called "input_INDEX", a float32 without axes until something else is set. */
RONDO_API rondo_es_tensor *rondo_es_input(rondo_es_builder *builder, int64_t index);
/* name null: "input_INDEX". A size of -1 is open. */
RONDO_API rondo_es_tensor *rondo_es_input_with_details(rondo_es_builder *builder, int64_t index, const char *name,
                                                       rondo_dtype dtype, rondo_format format, const int64_t *shape,
                                                       int64_t rank);
/* A variable: memory of the program's that keeps its contents from run to run. It is an input of the graph, behind all that
 * rondo_es_input makes, in the order of `index`, with the note "variable" (its index): bind it once. */
RONDO_API rondo_es_tensor *rondo_es_variable(rondo_es_builder *builder, int64_t index, const char *name);
/* The compact data is copied. */
RONDO_API rondo_es_tensor *rondo_es_const(rondo_es_builder *builder, rondo_dtype dtype, const void *data,
                                          const int64_t *dims, int64_t rank);
/* The tensor of a graph around, in `branch`. */
RONDO_API rondo_es_tensor *rondo_es_outer(rondo_es_builder *branch, rondo_es_tensor *tensor);

/* rondo_es_const_float(builder, values, dims, rank), rondo_es_vector_float(builder, values, count),
 * rondo_es_scalar_float(builder, value), and so on. */
#define RONDO_ES_CONSTANTS(X) \
    X(float, float, F32)      \
    X(double, double, F64)    \
    X(int32, int32_t, I32) X(int64, int64_t, I64) X(uint32, uint32_t, U32) X(uint64, uint64_t, U64)
#define RONDO_X(name, type, dtype)                                                                       \
    static inline rondo_es_tensor *rondo_es_const_##name(rondo_es_builder *builder, const type *values,  \
                                                         const int64_t *dims, int64_t rank) {            \
        return rondo_es_const(builder, RONDO_DTYPE_##dtype, values, dims, rank);                         \
    }                                                                                                    \
    static inline rondo_es_tensor *rondo_es_vector_##name(rondo_es_builder *builder, const type *values, \
                                                          int64_t count) {                               \
        return rondo_es_const(builder, RONDO_DTYPE_##dtype, values, &count, 1);                          \
    }                                                                                                    \
    static inline rondo_es_tensor *rondo_es_scalar_##name(rondo_es_builder *builder, type value) {       \
        return rondo_es_const(builder, RONDO_DTYPE_##dtype, &value, NULL, 0);                            \
    }
RONDO_ES_CONSTANTS(RONDO_X)
#undef RONDO_X

/* ------------------------------------------------------------------------------------------------------- details */

/* All of these give false, and a failure that sticks, for what cannot be; false of a null tensor. */
RONDO_API bool rondo_es_set_dtype(rondo_es_tensor *tensor, rondo_dtype dtype);
/* Both how it is stored and what it means. */
RONDO_API bool rondo_es_set_format(rondo_es_tensor *tensor, rondo_format format);
RONDO_API bool rondo_es_set_shape(rondo_es_tensor *tensor, const int64_t *shape, int64_t rank);
/* Open sizes by their names; null is an open size without one. */
RONDO_API bool rondo_es_set_symbol_shape(rondo_es_tensor *tensor, const char *const *symbols, int64_t rank);
/* Of the node that makes the tensor. Nodes are called by operator and number ("Add0") until then. */
RONDO_API bool rondo_es_set_node_name(rondo_es_tensor *tensor, const char *name);
/* An attribute of the node that makes the tensor: one of its prototype's, or a note whose name begins with "user.". */
RONDO_API bool rondo_es_set_node_attribute(rondo_es_tensor *tensor, const rondo_attribute *attribute);
/* A note on the tensor itself, of any name. */
RONDO_API bool rondo_es_set_tensor_attribute(rondo_es_tensor *tensor, const rondo_attribute *attribute);
/* `tensor`'s node runs after the nodes of all `before` (rondo_ir_graph_add_control). */
RONDO_API bool rondo_es_add_control_edge(rondo_es_tensor *tensor, rondo_es_tensor *const *before, int64_t before_count);
/* Output `index` of the graph, by the value's own name. */
RONDO_API bool rondo_es_set_output(rondo_es_tensor *tensor, int64_t index);
RONDO_API bool rondo_es_set_output_named(rondo_es_tensor *tensor, int64_t index, const char *name);

/* -------------------------------------------------------------------------------- what generated functions are made of */

typedef struct rondo_es_node {
    uint32_t struct_size;
    uint32_t input_count, attribute_count;
    uint32_t reserved;
    const char *operator_name;
    rondo_es_builder *owner;        /* null: that of the tensors */
    rondo_es_tensor *const *inputs; /* null: absent; those at the end that are absent are left out */
    rondo_es_tensor *const *more;   /* of a dynamic input, behind the others */
    int64_t more_count;
    const rondo_attribute *attributes; /* graphs are taken over in any case */
    int64_t output_count;
} rondo_es_node;
#define RONDO_ES_NODE_INIT \
    { sizeof(rondo_es_node), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* Adds a node; the outputs, as many as were asked for, in an array that the builder owns; null when it failed. */
RONDO_API rondo_es_tensor **rondo_es_add(const rondo_es_node *node);

static inline rondo_attribute *rondo_es_next(rondo_attribute *list, uint32_t *count, const char *name,
                                             rondo_attribute_kind kind, int64_t elements) {
    rondo_attribute *next = &list[(*count)++];
    memset(next, 0, sizeof *next);
    next->name = name;
    next->kind = kind;
    next->count = elements >= 0 && elements <= (int64_t)UINT32_MAX ? (uint32_t)elements : 0;
    return next;
}
static inline void rondo_es_put_int(rondo_attribute *list, uint32_t *count, const char *name, int64_t value) {
    rondo_es_next(list, count, name, RONDO_ATTRIBUTE_INT, 1)->value.i = value;
}
static inline void rondo_es_put_float(rondo_attribute *list, uint32_t *count, const char *name, float value) {
    rondo_es_next(list, count, name, RONDO_ATTRIBUTE_FLOAT, 1)->value.f = value;
}
static inline void rondo_es_put_string(rondo_attribute *list, uint32_t *count, const char *name, const char *value) {
    rondo_attribute *next = rondo_es_next(list, count, name, RONDO_ATTRIBUTE_STRING, 1);
    next->value.s.data = value;
    next->value.s.size = value ? strlen(value) : 0;
}
static inline void rondo_es_put_ints(rondo_attribute *list, uint32_t *count, const char *name, const int64_t *values,
                                     int64_t elements) {
    rondo_es_next(list, count, name, RONDO_ATTRIBUTE_INTS, elements)->value.ints = values;
}
static inline void rondo_es_put_floats(rondo_attribute *list, uint32_t *count, const char *name, const float *values,
                                       int64_t elements) {
    rondo_es_next(list, count, name, RONDO_ATTRIBUTE_FLOATS, elements)->value.floats = values;
}
static inline void rondo_es_put_strings(rondo_attribute *list, uint32_t *count, const char *name,
                                        const rondo_string *values, int64_t elements) {
    rondo_es_next(list, count, name, RONDO_ATTRIBUTE_STRINGS, elements)->value.strings = values;
}
static inline void rondo_es_put_tensor(rondo_attribute *list, uint32_t *count, const char *name, rondo_tensor *value) {
    rondo_es_next(list, count, name, RONDO_ATTRIBUTE_TENSOR, 1)->value.tensor = rondo_tensor_get_view(value);
}
static inline void rondo_es_put_graph(rondo_attribute *list, uint32_t *count, const char *name, rondo_ir_graph *value) {
    rondo_es_next(list, count, name, RONDO_ATTRIBUTE_GRAPH, 1)->value.graph = value;
}
static inline bool rondo_es_same(const void *a, int64_t a_count, const void *b, int64_t b_count, size_t size) {
    return a_count == b_count && (a_count <= 0 || (a && memcmp(a, b, (size_t)a_count * size) == 0));
}

RONDO_EXTERN_C_END

#endif
