/* SPDX-License-Identifier: Apache-2.0
 *
 * Events. Each record makes a marker; a wait holds the marker that was newest when it was enqueued. */
#include <string.h>

#include "sim.h"

void rondo__sim_marker_release(rondo__sim_device *device, rondo__sim_marker *marker) {
    if (!marker || --marker->references) return;
    rondo__sim_clock_release(device, marker->clock);
    rondo__sim_release(device, marker, sizeof *marker, 0);
}

bool rondo__sim_marker_is_failed(const rondo__sim_device *device, const rondo__sim_marker *marker) {
    const rondo__sim_stream *stream = device->streams;
    if (!marker->failure || marker->failure == RONDO__SIM_FAILURE_NEVER_TOLD) return marker->failure != 0;
    while (stream && stream->failure_number != marker->failure) stream = stream->next;
    return stream != NULL;
}

rondo_status rondo__sim_event_create(void *self, void **out_event) {
    rondo__sim_device *device = self;
    rondo__sim_event *event = rondo__sim_allocate(device, sizeof *event, 0);
    if (!event) return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, DRIVER, "sim: no memory for an event");
    *event = (rondo__sim_event){.device = device};
    *out_event = event;
    return RONDO_OK;
}

void rondo__sim_event_destroy(void *self, void *handle) {
    rondo__sim_device *device = self;
    rondo__sim_event *event = handle;
    (void)pthread_mutex_lock(&device->mutex);
    rondo__sim_marker_release(device, event->last);
    (void)pthread_mutex_unlock(&device->mutex);
    rondo__sim_release(device, event, sizeof *event, 0);
}

static rondo_status sim_event_enqueue_record(rondo__sim_event *event, rondo__sim_stream *stream) {
    rondo__sim_device *device = event->device;
    rondo__sim_operation *operation = NULL;
    rondo_status status = rondo__sim_check_stream(stream, "an event's record");
    if (!status) status = rondo__sim_operation_make(device, RONDO__SIM_RECORD, 0, &operation);
    if (status) return status;
    rondo__sim_marker *marker = rondo__sim_allocate(device, sizeof *marker, 0);
    if (!marker) {
        rondo__sim_release(device, operation, operation->size, 0);
        return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, DRIVER, "sim: no memory to record an event");
    }
    *marker = (rondo__sim_marker){.references = 1};
    operation->marker = marker;
    status = rondo__sim_order_snapshot(stream, &marker->clock);
    if (status) {
        rondo__sim_operation_finish(device, operation, RONDO__SIM_FAILURE_NEVER_TOLD);
        return status;
    }
    status = rondo__sim_push(stream, operation, RONDO__SIM_COUNT_EVENTS);
    if (status) return status;
    rondo__sim_marker_release(device, event->last);
    event->last = marker;
    marker->references++;
    return RONDO_OK;
}

rondo_status rondo__sim_event_record(void *handle, void *stream) {
    rondo__sim_event *event = handle;
    rondo_status status = rondo__sim_enter(event->device, "event record");
    if (status) return status;
    status = sim_event_enqueue_record(event, stream);
    rondo__sim_leave(event->device);
    return status;
}

static rondo_status sim_event_enqueue_wait(rondo__sim_event *event, rondo__sim_stream *stream) {
    rondo__sim_operation *operation = NULL;
    rondo_status status = rondo__sim_check_stream(stream, "a wait for an event");
    if (status || !event->last) return status;
    status = rondo__sim_operation_make(event->device, RONDO__SIM_WAIT, 0, &operation);
    if (status) return status;
    operation->marker = event->last;
    operation->marker->references++;
    operation->forgiven = event->last->failure && !rondo__sim_marker_is_failed(event->device, event->last);
    status = rondo__sim_order_join(stream, event->last->clock);
    if (!status) return rondo__sim_push(stream, operation, RONDO__SIM_COUNT_EVENTS);
    rondo__sim_operation_finish(event->device, operation, RONDO__SIM_FAILURE_NEVER_TOLD);
    return status;
}

rondo_status rondo__sim_event_wait(void *handle, void *stream) {
    rondo__sim_event *event = handle;
    rondo_status status = rondo__sim_enter(event->device, "event wait");
    if (status) return status;
    status = sim_event_enqueue_wait(event, stream);
    rondo__sim_leave(event->device);
    return status;
}

rondo_status rondo__sim_event_query(void *handle, bool *out_done) {
    rondo__sim_event *event = handle;
    rondo_status status = rondo__sim_enter(event->device, "event query");
    if (status) return status;
    if (event->last && !event->last->done) (void)rondo__sim_step(event->device);
    *out_done = !event->last || event->last->done;
    if (event->last && *out_done) rondo__sim_order_host_saw_clock(event->device, event->last->clock);
    rondo__sim_leave(event->device);
    return RONDO_OK;
}

rondo_status rondo__sim_event_synchronize(void *handle) {
    rondo__sim_event *event = handle;
    rondo__sim_device *device = event->device;
    bool goes_on = true;
    rondo_status status = rondo__sim_enter(device, "event synchronize");
    if (status) return status;
    rondo__sim_marker *marker = event->last;
    if (marker) marker->references++;
    while (goes_on && marker && !marker->done) goes_on = rondo__sim_step(device);
    if (!goes_on) {
        status = RONDO_PLUGIN_FAIL(device->host, INTERNAL, DRIVER, "sim: the streams wait for each other");
    } else if (marker && rondo__sim_marker_is_failed(device, marker)) {
        status = RONDO_PLUGIN_FAIL(device->host, KERNEL_FAILED, DRIVER,
                                   "sim: the work before the event failed: "
                                   "synchronize its stream to see how");
    }
    if (goes_on && marker) rondo__sim_order_host_saw_clock(device, marker->clock);
    rondo__sim_marker_release(device, marker);
    rondo__sim_leave(device);
    return status;
}
