/* SPDX-License-Identifier: Apache-2.0
 *
 * Events: a point in a stream that other streams and the host can wait for. */
#include "device/device.h"

rondo_status rondo_event_create(rondo_device *device, rondo_event **out_event) {
    void *memory = NULL;
    if (!device || !out_event) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "an event needs a device and a place for the event");
    }
    RONDO__TRY(rondo__allocate_zeroed(&device->allocator, sizeof(rondo_event), &memory));
    rondo_event *event = memory;
    rondo__ref_init(&event->references);
    event->device = device;
    rondo_status status = device->table->stream->event_create(device->handle, &event->handle);
    if (status) {
        rondo__free(&device->allocator, event, sizeof *event);
        return status;
    }
    rondo_device_retain(device);
    *out_event = event;
    return RONDO_OK;
}

void rondo_event_retain(rondo_event *event) {
    if (event) rondo__ref_retain(&event->references);
}

void rondo_event_release(rondo_event *event) {
    if (!event || !rondo__ref_release(&event->references)) return;
    rondo_device *device = event->device;
    device->table->stream->event_destroy(device->handle, event->handle);
    rondo__free(&device->allocator, event, sizeof *event);
    rondo_device_release(device);
}

/* Both there, and of one device. */
static rondo_status event_check(const char *what, const rondo_event *event, const rondo_stream *stream) {
    if (!stream) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%s: the stream is null", what);
    if (!event)
        return rondo__stream_refuse(stream, RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%s: the event is null", what));
    if (event->device == stream->device) return RONDO_OK;
    rondo_status status =
        RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%s: the event belongs to device '%s:%d', the stream to '%s:%d'", what,
                    event->device->properties.name, (int)event->device->properties.index,
                    stream->device->properties.name, (int)stream->device->properties.index);
    return rondo__stream_refuse(stream, status);
}

rondo_status rondo__event_record(rondo_event *event, rondo_stream *stream) {
    rondo__mutex_lock(&stream->mutex);
    rondo_status status = stream->device->table->stream->event_record(event->handle, stream->handle);
    if (!status) {
        event->recorded = true;
        event->capture = 0;
    }
    rondo__mutex_unlock(&stream->mutex);
    return status;
}

rondo_status rondo__event_wait(rondo_event *event, rondo_stream *stream) {
    if (!event->recorded) return RONDO_OK;
    rondo__mutex_lock(&stream->mutex);
    rondo_status status = stream->device->table->stream->event_wait(event->handle, stream->handle);
    rondo__mutex_unlock(&stream->mutex);
    return status;
}

bool rondo__device_has_outside_events(const rondo_device *device) {
    const rondo_graph_table *table = device->table->graph;
    return table && table->struct_size >= sizeof *table && table->event_record && table->event_wait;
}

rondo_status rondo__event_outside(rondo_event *event, rondo_stream *stream, bool wait) {
    const rondo_graph_table *table = stream->device->table->graph;
    rondo__mutex_lock(&stream->mutex);
    rondo_status status =
        wait ? table->event_wait(event->handle, stream->handle) : table->event_record(event->handle, stream->handle);
    rondo__mutex_unlock(&stream->mutex);
    return status;
}

static rondo_status event_record(const char *what, rondo_event *event, rondo_stream *stream, bool external) {
    RONDO__TRY(event_check(what, event, stream));
    rondo__recorder *recorder = rondo__stream_recorder(stream);
    if (!recorder) return rondo__event_record(event, stream);
    if (!recorder->table->event_record) return recorder->table->refuse(recorder, stream, what);
    return recorder->table->event_record(recorder, event, stream, external);
}

static rondo_status event_captured(const char *what) {
    return RONDO__FAIL(INVALID_STATE, CAPTURE,
                       "%s: the event was recorded in a capture, so it marks a place in a graph and nothing that runs: "
                       "record it anew outside any capture",
                       what);
}

/* A stream that nobody records waits for an event of a capture: it joins. */
static rondo_status event_join(const char *what, rondo_event *event, rondo_stream *stream) {
    rondo__recorder *recorder = rondo__device_capture(stream->device, event->capture);
    if (!recorder) return event_captured(what);
    rondo_status status = recorder->table->event_wait(recorder, event, stream, false);
    recorder->table->let_go(recorder);
    return status;
}

static rondo_status event_wait(const char *what, rondo_event *event, rondo_stream *stream, bool external) {
    RONDO__TRY(event_check(what, event, stream));
    rondo__recorder *recorder = rondo__stream_recorder(stream);
    if (!recorder) return event->capture ? event_join(what, event, stream) : rondo__event_wait(event, stream);
    if (!recorder->table->event_wait) return recorder->table->refuse(recorder, stream, what);
    return recorder->table->event_wait(recorder, event, stream, external);
}

rondo_status rondo_event_record(rondo_event *event, rondo_stream *stream) {
    return event_record("rondo_event_record", event, stream, false);
}

rondo_status rondo_event_wait(rondo_event *event, rondo_stream *stream) {
    return event_wait("rondo_event_wait", event, stream, false);
}

rondo_status rondo_event_record_external(rondo_event *event, rondo_stream *stream) {
    return event_record("rondo_event_record_external", event, stream, true);
}

rondo_status rondo_event_wait_external(rondo_event *event, rondo_stream *stream) {
    return event_wait("rondo_event_wait_external", event, stream, true);
}

rondo_status rondo_event_query(rondo_event *event, bool *out_done) {
    bool done = true;
    if (!event || !out_done) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "rondo_event_query: the event or the place for the answer is null");
    }
    if (event->capture) return event_captured("rondo_event_query");
    if (event->recorded) RONDO__TRY(event->device->table->stream->event_query(event->handle, &done));
    *out_done = done;
    return RONDO_OK;
}

rondo_status rondo_event_synchronize(rondo_event *event) {
    if (!event) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "rondo_event_synchronize: the event is null");
    if (event->capture) return event_captured("rondo_event_synchronize");
    if (!event->recorded) return RONDO_OK;
    return event->device->table->stream->event_synchronize(event->handle);
}
