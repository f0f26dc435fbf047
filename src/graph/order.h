/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes: what comes before what in a capture of several streams.
 *
 * Nodes are numbered in the order of capture, which is one valid order of them all: an event is recorded before it is
 * waited for. A lane knows of every other one up to which node it has come after it (a clock); a point keeps what a lane
 * knew when an event was recorded. Only a wait that brings news becomes a step: a record in one lane, a wait in another.
 * Where one list runs as a whole, steps are not needed and nobody looks at them.
 */
#ifndef RONDO_SRC_GRAPH_ORDER_H
#define RONDO_SRC_GRAPH_ORDER_H

#include "base/allocator.h"
#include "base/buffer.h"

#define RONDO__ORDER_LANES_MAX 4096u
#define RONDO__ORDER_NONE UINT32_MAX

/* A node whose predecessors are not just the node before it in its lane. */
typedef struct rondo__order_edge {
    uint32_t from; /* RONDO__ORDER_NONE: it has no predecessor */
    uint32_t to;
} rondo__order_edge;

/* Comes before node `before`: the lane's stream records the event, or waits for it. */
typedef struct rondo__order_step {
    uint64_t before;
    uint64_t sequence; /* in time */
    uint32_t point;
    uint32_t event; /* number; baked by seal */
    uint16_t lane;
    bool wait;
} rondo__order_step;

typedef struct rondo__order_lane {
    rondo__buffer clock;  /* uint64_t, one a lane: its nodes below that number are before */
    rondo__buffer leaves; /* uint32_t: nodes that the next one comes after */
    uint64_t last;        /* its newest node + 1; 0: none */
    bool started;         /* something made it wait for the stream that began it all */
} rondo__order_lane;

typedef struct rondo__order {
    rondo_allocator allocator;
    rondo__buffer lanes;      /* rondo__order_lane */
    rondo__buffer points;     /* of order.c */
    rondo__buffer clocks;     /* uint64_t, of points */
    rondo__buffer leaves;     /* uint32_t, of points */
    rondo__buffer steps;      /* rondo__order_step */
    rondo__buffer edges;      /* rondo__order_edge, in order of `to` */
    rondo__buffer node_lanes; /* uint16_t: the lane of each node */
    uint64_t sequence;
    uint32_t events; /* how many are needed, after seal */
} rondo__order;

/* With lane 0, which has `nodes` nodes. */
RONDO_MUST_USE rondo_status rondo__order_create(const rondo_allocator *allocator, uint64_t nodes,
                                                rondo__order **out_order);
void rondo__order_destroy(rondo__order *order);
RONDO_MUST_USE rondo_status rondo__order_add_lane(rondo__order *order, uint32_t *out_lane);
/* Node `node` is about to be appended to the lane. A failure changes nothing that counts. */
RONDO_MUST_USE rondo_status rondo__order_reserve(rondo__order *order, uint32_t lane);
/* It was: there is room. */
void rondo__order_node(rondo__order *order, uint32_t lane, uint64_t node);
/* An event is recorded in the lane, behind the nodes below `nodes`. */
RONDO_MUST_USE rondo_status rondo__order_point(rondo__order *order, uint32_t lane, uint64_t nodes, uint32_t *out_point);
/* The lane waits for it. */
RONDO_MUST_USE rondo_status rondo__order_wait(rondo__order *order, uint32_t lane, uint64_t nodes, uint32_t point);
/* The first lane with work that lane 0 has not come after; RONDO__ORDER_NONE: all is joined. */
uint32_t rondo__order_unjoined(const rondo__order *order, uint64_t *out_node);
/* Steps get their place and events their numbers. No node, point or wait comes after it. */
RONDO_MUST_USE rondo_status rondo__order_seal(rondo__order *order);
uint32_t rondo__order_lane_of(const rondo__order *order, uint64_t node);
uint64_t rondo__order_bytes(const rondo__order *order);

/* Walks the edges node by node, in order: what each comes after. `order` may be null: one lane. */
typedef struct rondo__order_walk {
    const rondo__order *order;
    rondo__buffer last; /* uint32_t, one a lane */
    size_t edge;
} rondo__order_walk;
RONDO_MUST_USE rondo_status rondo__order_walk_begin(rondo__order_walk *walk, const rondo_allocator *allocator,
                                                    const rondo__order *order);
void rondo__order_walk_end(rondo__order_walk *walk);
/* Of each node in turn: *out_from is where its predecessors start, or the single one. The count. */
uint32_t rondo__order_walk_next(rondo__order_walk *walk, uint64_t node, const rondo__order_edge **out_edges,
                                rondo__order_edge *single);
uint64_t rondo__order_edges(const rondo__order *order, uint64_t nodes);

#endif
