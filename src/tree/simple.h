/* SPDX-License-Identifier: Apache-2.0
 *
 * The non-tree path: one recording of a function in a pool of its own. It stands beside the tree: no node, no lease, no
 * path. What it hands out is the same at each call, so its memory is used again by the next call of the function, and
 * by nobody else. */
#ifndef RONDO_SRC_TREE_SIMPLE_H
#define RONDO_SRC_TREE_SIMPLE_H

#include "tree/tree.h"

typedef struct rondo__tree_simple {
    rondo__tree_size *size; /* that it was recorded for */
    rondo_pool_id pool;     /* {0, 0}: none yet */
    void *graph;            /* null: nothing to replay */
    rondo_tree_graph_facts facts;
    void **buffers; /* by input: the static copy; null where the input is used as it is */
    void **outputs; /* the kept ones */
    void **written; /* of them, borrowed: those whose memory a replay writes, which is no static input's */
    rondo__tree_fixed *fixed;
    rondo__tree_moving *moving;
    rondo__tree_value *values;
    rondo_tree_copy *copies;
    uint32_t fixed_count, moving_count, value_count, written_count;
    uint64_t low, high; /* all buffers lie in there */
    uint64_t runs, samples, replay_ns, record_ns;
} rondo__tree_simple;

/* Null: it has none. */
static inline const rondo__tree_simple *rondo__tree_simple_of(const rondo__tree_function *function) {
    return function->simple_state;
}

#endif
