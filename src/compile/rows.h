/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a graph may be run for more rows than there are. */
#ifndef RONDO_SRC_COMPILE_ROWS_H
#define RONDO_SRC_COMPILE_ROWS_H

#include "ir/ir.h"

#define RONDO__ROWS_NONE (-1)

/* `few` and `many` are one graph compiled (`fold` and `dead` alone) for `rows` and for `more` rows of an input size, every other
 * size and value being the same. RONDO_OK: the first `rows` rows of each output of `many` are that output of `few`, if
 * the first rows of its inputs are those of few's, whatever the others hold. out_axes: an entry an output, the axis of its
 * rows, or RONDO__ROWS_NONE where it has none and is the same. UNSUPPORTED (meta) names the first node of which that is
 * not known, or which mixes rows. */
RONDO_MUST_USE rondo_status rondo__rows_independent(const rondo_allocator *allocator, const rondo_ir_graph *few,
                                                    const rondo_ir_graph *many, int64_t rows, int64_t more,
                                                    int32_t *out_axes);

/* A node as its rule sees it: types of `few`, and of each operand the axis of its rows. */
typedef struct rondo__rows_node {
    const rondo_ir_graph *graph;
    const rondo__ir_node_data *node;
    const int32_t *axes; /* by value */
    bool elementwise;
} rondo__rows_node;
/* Whether row i of each output depends on rows i of the inputs alone. The axes are known to have the sizes of rows. */
bool rondo__rows_rule(const rondo__rows_node *node);

#endif
