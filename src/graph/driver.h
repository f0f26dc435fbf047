/* SPDX-License-Identifier: Apache-2.0
 *
 * A device's own graph of a call list. Where a backend captures natively, the sealed list is enqueued once on a stream that the
 * device captures, and replays launch what came of it; the results are those of the list. Where it cannot, or refuses, the list
 * is replayed as on any other device, and the log says why. */
#ifndef RONDO_SRC_GRAPH_DRIVER_H
#define RONDO_SRC_GRAPH_DRIVER_H

#include "graph/list.h"

typedef struct rondo__driver_graph {
    void *graph, *executable; /* null: none */
    bool stale;               /* the list has changed in a way that the device's graph cannot follow */
    bool refused;             /* it was tried, and said; not again for this capture */
} rondo__driver_graph;

/* Null where the backend does not capture. */
const rondo_graph_table *rondo__driver_graph_table(const rondo_device *device);
/* Makes it of a sealed list, or leaves it out. `name` is the graph's, for the log. Nothing of the list is in flight. */
void rondo__driver_graph_make(rondo__driver_graph *driver, const rondo__call_list *list, const rondo__lanes *lanes,
                              const char *name);
/* The arguments of a node have changed: the device's graph follows, or is stale. Nothing is in flight. */
void rondo__driver_graph_follow(rondo__driver_graph *driver, const rondo__call_list *list, uint64_t entry);
/* Nothing of it is in flight. */
void rondo__driver_graph_drop(rondo__driver_graph *driver, rondo_device *device);
/* A launch's answer that means that the device has no such thing, or has run out of what its graphs need: nothing is on its way. */
bool rondo__driver_graph_lacks(rondo_status status);
/* The list is replayed from now on, which the log says with the answer, used up here. Nothing of the graph is in flight. */
void rondo__driver_graph_give_up(rondo__driver_graph *driver, const rondo__call_list *list, const char *name,
                                 rondo_status status);
/* The list is the one that it was made of, and its waits were looked at; a graph of the driver alone has an empty one. */
RONDO_MUST_USE rondo_status rondo__driver_graph_launch(const rondo__driver_graph *driver, const rondo__call_list *list,
                                                       rondo_stream *stream);

#endif
