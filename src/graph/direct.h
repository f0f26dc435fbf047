/* SPDX-License-Identifier: Apache-2.0
 *
 * Captures of streams that are somebody else's (rondo_stream_wrap), on devices whose driver captures. Their owner enqueues work
 * there that Rondo never sees, so the driver records, and what comes through Rondo goes on to it. The graph is the driver's alone:
 * it has no slots, nodes that nobody can count, and in its list only the events outside of it that it records and waits for. */
#ifndef RONDO_SRC_GRAPH_DIRECT_H
#define RONDO_SRC_GRAPH_DIRECT_H

#include "graph/graph.h"

bool rondo__direct_wanted(const rondo_stream *stream);
/* UNSUPPORTED for what such a graph cannot have: slots. */
RONDO_MUST_USE rondo_status rondo__direct_begin(rondo_graph *graph, rondo_stream *stream, rondo_capture_mode mode);
/* Ends it with the driver, while the stream is still the capture's; what came of it is the graph's, unless `keep` is false. */
RONDO_MUST_USE rondo_status rondo__direct_end(rondo_graph *graph, bool keep);
/* A record marks a place in the driver's capture; a stream that waits for it is part of the capture from then on. */
RONDO_MUST_USE rondo_status rondo__direct_record(rondo_graph *graph, rondo_event *event, rondo_stream *stream,
                                                 bool external);
RONDO_MUST_USE rondo_status rondo__direct_wait(rondo_graph *graph, rondo_event *event, rondo_stream *stream,
                                               bool external);
/* A replay into the capture: the child's list is enqueued once more; UNSUPPORTED where it has none. */
RONDO_MUST_USE rondo_status rondo__direct_embed(rondo_graph *graph, const rondo_graph *child, rondo_stream *stream);

#endif
