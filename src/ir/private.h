/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this room share and nobody else may use. */
#ifndef RONDO_SRC_IR_PRIVATE_H
#define RONDO_SRC_IR_PRIVATE_H

#include "ir/names.h"

/* Branches inside branches; deeper graphs are refused, so that walks over subgraphs may recurse. */
#define RONDO__IR_DEPTH_MAX 64u

/* Copies dims, symbols and element types into the arena. */
RONDO_MUST_USE rondo_status rondo__ir_type_copy(rondo_ir_graph *graph, const rondo__ir_type *type,
                                                rondo__ir_type *out_type);
/* Elements and bytes of compact data; strings take sizeof(rondo_string). Refuses bad ranks, dims and types. */
RONDO_MUST_USE rondo_status rondo__ir_data_size(rondo_dtype dtype, int32_t rank, const int64_t *dims,
                                                int64_t *out_elements, size_t *out_bytes);
/* Copies compact elements into the arena, strings deeply. */
RONDO_MUST_USE rondo_status rondo__ir_data_copy(rondo_ir_graph *graph, rondo_dtype dtype, int64_t elements,
                                                size_t bytes, const void *data, const void **out_data);
/* The memory of a sort, taken before a change that must not fail half way: `more` nodes may be added in between. Branches
 * are left as they are. */
typedef struct rondo__ir_sorter {
    rondo_ir_graph *graph;
    size_t count;
    void *states, *stack, *order, *nodes;
} rondo__ir_sorter;
RONDO_MUST_USE rondo_status rondo__ir_sorter_init(rondo__ir_sorter *sorter, rondo_ir_graph *graph, size_t more);
/* Takes no memory, once. CORRUPT (file) names a node on a cycle, and nothing has moved. */
RONDO_MUST_USE rondo_status rondo__ir_sorter_run(const rondo__ir_sorter *sorter);
void rondo__ir_sorter_deinit(rondo__ir_sorter *sorter);
/* How deep a graph is: 0 without a parent. */
uint32_t rondo__ir_depth(const rondo_ir_graph *graph);
/* The subgraph of an attribute, or null for attributes of another kind. */
static inline rondo_ir_graph *rondo__ir_attribute_graph(const rondo_attribute *attribute) {
    return attribute->kind == RONDO_ATTRIBUTE_GRAPH ? (rondo_ir_graph *)attribute->value.graph : NULL;
}

#endif
