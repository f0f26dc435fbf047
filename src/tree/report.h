/* SPDX-License-Identifier: Apache-2.0
 *
 * What a report is made of: figures that are gathered under the tree's lock, and then only written. */
#ifndef RONDO_SRC_TREE_REPORT_H
#define RONDO_SRC_TREE_REPORT_H

#include "tree/tree.h"

/* Whose the bytes of the pool are. */
typedef struct rondo__tree_memory {
    bool known;                    /* the ops tell what is reserved */
    uint64_t reserved, allocated;  /* as the ops tell */
    uint64_t live, live_count;     /* outputs that somebody uses */
    uint64_t waiting;              /* of outputs and input copies of recordings, and used by nobody now */
    uint64_t rest;                 /* reserved, and neither: temporaries of recordings, rounding, free parts */
    uint64_t shared;               /* of more than one recording */
    uint64_t apart;                /* that recordings would need if each had its own: outputs and input copies */
    uint64_t simple, simple_count; /* reserved by pools of the simple path */
} rondo__tree_memory;

RONDO_MUST_USE rondo_status rondo__tree_measure(rondo_tree *tree, rondo__tree_memory *out_memory);

/* Bytes of one recording in the pool: copies of its inputs, and its outputs. */
typedef struct rondo__tree_bytes {
    uint64_t inputs, outputs, host;
} rondo__tree_bytes;
rondo__tree_bytes rondo__tree_node_bytes(const rondo__tree_node *node);

#endif
