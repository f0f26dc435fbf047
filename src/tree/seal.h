/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences that repeat. A trail is the nodes that were replayed from a root to the end of the path. When the same trail,
 * with the same addresses, has come often enough, it is sealed: the next call is then known beforehand, and one compare of
 * its inputs takes the place of looking for it. Where the host allows it (RONDO_TENSOR_HOST_FLUSHES), launches wait for
 * the last of a run of nodes that need nothing of the host's between them, and go as one graph. */
#ifndef RONDO_SRC_TREE_SEAL_H
#define RONDO_SRC_TREE_SEAL_H

#include "tree/tree.h"

typedef struct rondo__tree_sealed {
    rondo__tree_node *node;
    uint64_t *pointers; /* of all its inputs */
    void *graph;        /* launched in place of those that waited and this one; null: each for itself */
    uint32_t before;    /* how many those are */
    bool waits;         /* its launch waits for a later one */
} rondo__tree_sealed;

struct rondo__tree_seal {
    rondo__buffer trail, before; /* rondo__tree_node * */
    bool steady;                 /* the trail so far came with the addresses of the last time */
    uint32_t repeats;
    rondo__tree_sealed *sequence; /* null: not sealed */
    uint32_t count, position;
    uint32_t waiting;   /* launches owed: of the nodes before `position` */
    rondo__buffer held; /* void *: inputs of calls whose launches are owed, which read them then */
    void *waiting_stream;
};

/* A replay of the current path. */
void rondo__tree_trail(rondo_tree *tree, rondo__tree_node *node);
/* The path ends; or something else than a replay happened in it. */
void rondo__tree_trail_end(rondo_tree *tree);
void rondo__tree_trail_break(rondo_tree *tree);
/* The call as the sequence expects it. *out_done false: it is another, and nothing has happened. */
RONDO_MUST_USE rondo_status rondo__tree_run_sealed(rondo__tree_call *call, bool *out_done);
/* Keeps what is left of the inputs until the launch. There is room. */
void rondo__tree_seal_hold(rondo__tree_call *call);
/* Launches what is owed. */
RONDO_MUST_USE rondo_status rondo__tree_settle(rondo_tree *tree);
void rondo__tree_seal_deinit(rondo_tree *tree);

static inline bool rondo__tree_is_sealed(const rondo_tree *tree) { return tree->seal && tree->seal->sequence; }

#endif
