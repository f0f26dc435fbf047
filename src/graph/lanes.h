/* SPDX-License-Identifier: Apache-2.0
 *
 * What a graph of several lanes owns to replay them: a stream for each lane but the first, which is the caller's, and the
 * events between them. Only on devices where work runs apart from the caller. */
#ifndef RONDO_SRC_GRAPH_LANES_H
#define RONDO_SRC_GRAPH_LANES_H

#include "device/device.h"
#include "graph/order.h"

typedef struct rondo__lanes {
    rondo_allocator allocator;
    uint32_t stream_count, event_count;
    rondo_stream **streams; /* by lane; [0] is null */
    rondo_event **events;
} rondo__lanes;

RONDO_MUST_USE rondo_status rondo__lanes_create(rondo_device *device, const rondo__order *order,
                                                rondo__lanes **out_lanes);
/* Waits for the streams. Null is accepted. */
void rondo__lanes_destroy(rondo__lanes *lanes);
/* What goes wrong in them is told to whoever waits for this stream. */
void rondo__lanes_work_for(const rondo__lanes *lanes, const rondo_stream *stream);
/* Waits for all, whatever the work's fate, which the stream that they worked for has then. */
void rondo__lanes_settle(const rondo__lanes *lanes);

static inline rondo_stream *rondo__lanes_stream(const rondo__lanes *lanes, uint32_t lane, rondo_stream *callers) {
    return lane ? lanes->streams[lane] : callers;
}

#endif
