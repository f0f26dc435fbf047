/* SPDX-License-Identifier: Apache-2.0
 *
 * Side streams and events, made once with the graph. */
#include "graph/lanes.h"

static rondo_status lanes_fill(rondo__lanes *lanes, rondo_device *device, uint32_t streams, uint32_t events) {
    void *memory;
    RONDO__TRY(rondo__allocate_array(&lanes->allocator, streams, sizeof(rondo_stream *), &memory));
    lanes->streams = memory;
    for (; lanes->stream_count < streams; lanes->stream_count++) {
        lanes->streams[lanes->stream_count] = NULL;
        if (lanes->stream_count) RONDO__TRY(rondo_stream_create(device, NULL, &lanes->streams[lanes->stream_count]));
    }
    RONDO__TRY(rondo__allocate_array(&lanes->allocator, events, sizeof(rondo_event *), &memory));
    lanes->events = memory;
    for (; lanes->event_count < events; lanes->event_count++)
        RONDO__TRY(rondo_event_create(device, &lanes->events[lanes->event_count]));
    return RONDO_OK;
}

rondo_status rondo__lanes_create(rondo_device *device, const rondo__order *order, rondo__lanes **out_lanes) {
    void *memory;
    RONDO__TRY(rondo__allocate_zeroed(&device->allocator, sizeof(rondo__lanes), &memory));
    rondo__lanes *lanes = memory;
    lanes->allocator = device->allocator;
    uint32_t streams = (uint32_t)order->lanes.count;
    rondo_status status = lanes_fill(lanes, device, streams, order->events);
    if (status) {
        /* The arrays are as long as was asked for, however far they are filled. */
        uint32_t made = lanes->stream_count;
        for (uint32_t i = 1; i < made; i++) rondo_stream_release(lanes->streams[i]);
        for (uint32_t i = 0; i < lanes->event_count; i++) rondo_event_release(lanes->events[i]);
        if (lanes->streams) rondo__free(&lanes->allocator, lanes->streams, streams * sizeof(rondo_stream *));
        if (lanes->events) rondo__free(&lanes->allocator, lanes->events, order->events * sizeof(rondo_event *));
        rondo__free(&device->allocator, lanes, sizeof *lanes);
        return rondo__status_note(status, "for the lanes of a graph: %u streams and %u events", (unsigned)streams - 1u,
                                  (unsigned)order->events);
    }
    *out_lanes = lanes;
    return RONDO_OK;
}

void rondo__lanes_destroy(rondo__lanes *lanes) {
    if (!lanes) return;
    rondo_allocator allocator = lanes->allocator;
    rondo__lanes_settle(lanes);
    for (uint32_t i = 1; i < lanes->stream_count; i++) rondo_stream_release(lanes->streams[i]);
    for (uint32_t i = 0; i < lanes->event_count; i++) rondo_event_release(lanes->events[i]);
    rondo__free(&allocator, lanes->streams, lanes->stream_count * sizeof(rondo_stream *));
    rondo__free(&allocator, lanes->events, lanes->event_count * sizeof(rondo_event *));
    rondo__free(&allocator, lanes, sizeof *lanes);
}

void rondo__lanes_work_for(const rondo__lanes *lanes, const rondo_stream *stream) {
    for (uint32_t i = 1; i < lanes->stream_count; i++)
        atomic_store_explicit(&lanes->streams[i]->side_of, stream->id, memory_order_relaxed);
}

/* The stream that the lane worked for has its failure from now on: by itself it only knows that something it waited for
 * was not made. Once that stream is gone, its end has told it. */
static void lanes_hand_over(rondo_stream *side) {
    rondo_status status = rondo__stream_synchronize(side);
    if (!status) return;
    uint64_t id = atomic_load_explicit(&side->side_of, memory_order_relaxed);
    rondo_stream *stream = id ? rondo__stream_of_id(side->device, id) : NULL;
    if (!stream) {
        rondo_status_release(status);
        return;
    }
    rondo__mutex_lock(&stream->mutex);
    stream->pending = rondo__status_first(stream->pending, status);
    rondo__mutex_unlock(&stream->mutex);
    rondo__stream_let_go(stream);
}

void rondo__lanes_settle(const rondo__lanes *lanes) {
    for (uint32_t i = 1; i < lanes->stream_count; i++) lanes_hand_over(lanes->streams[i]);
}
