/* SPDX-License-Identifier: Apache-2.0
 *
 * Events, of the kind that captures take (Ex, SYNC). A wait for one that was recorded in a capture makes its stream part of it. */
#include "ascend.h"

enum { EVENT_SYNC = 1 };

rondo_status rondo__ascend_event_create(void *self, void **out_event) {
    rondo__ascend_device *device = self;
    void *before = NULL;
    rondo_status status = rondo__ascend_enter(device, &before);
    if (status) return status;
    rondo__ascend_event *event = rondo__ascend_allocate(device->host, sizeof *event);
    if (!event) status = RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, DRIVER, "ascend: no memory for an event");
    if (!status) status = RONDO__ASCEND_CALL(device->library, aclrtCreateEventExWithFlag, &event->native, EVENT_SYNC);
    if (status) rondo__ascend_free(device->host, event, sizeof *event);
    else {
        event->device = device;
        *out_event = event;
    }
    return rondo__ascend_left(device, before, status);
}

void rondo__ascend_event_destroy(void *self, void *handle) {
    rondo__ascend_device *device = self;
    rondo__ascend_event *event = handle;
    void *before = NULL;
    rondo_status status = rondo__ascend_enter(device, &before);
    if (!status) status = RONDO__ASCEND_CALL(device->library, aclrtDestroyEvent, event->native);
    if (event->outside) (void)RONDO__ASCEND_TRY(device->library, aclrtDestroyEvent, event->outside);
    device->host->status_release(status);
    rondo__ascend_leave(device, before);
    rondo__ascend_free(device->host, event, sizeof *event);
}

/* A capture that the driver did not end may have the event for good: another takes its place. */
static void event_renew(rondo__ascend_event *event) {
    const rondo__ascend_library *library = event->device->library;
    void *fresh = NULL;
    if (RONDO__ASCEND_TRY(library, aclrtCreateEventExWithFlag, &fresh, EVENT_SYNC)) return;
    (void)RONDO__ASCEND_TRY(library, aclrtDestroyEvent, event->native);
    event->native = fresh;
}

rondo_status rondo__ascend_event_record(void *handle, void *stream_handle) {
    rondo__ascend_event *event = handle;
    rondo__ascend_stream *stream = stream_handle;
    void *before = NULL;
    rondo_status status = rondo__ascend_enter(event->device, &before);
    if (status) return status;
    rondo__ascend_count(event->device, RONDO__ASCEND_COUNT_EVENTS);
    if (event->capture_id && !stream->capture && atomic_load(&event->device->abandoned)) event_renew(event);
    void *native = stream->capture || !event->outside ? event->native : event->outside;
    status = RONDO__ASCEND_CALL(event->device->library, aclrtRecordEvent, native, stream->native);
    if (!status) event->capture_id = stream->capture ? stream->capture->id : 0;
    if (!status && !stream->capture) {
        event->recorded = true;
        event->moved = native == event->outside;
    }
    return rondo__ascend_left(event->device, before, status);
}

rondo_status rondo__ascend_event_wait(void *handle, void *stream_handle) {
    rondo__ascend_event *event = handle;
    rondo__ascend_stream *stream = stream_handle;
    void *before = NULL;
    rondo_status status = rondo__ascend_enter(event->device, &before);
    if (status) return status;
    rondo__ascend_count(event->device, RONDO__ASCEND_COUNT_EVENTS);
    void *native = stream->capture || event->capture_id ? event->native : rondo__ascend_event_now(event);
    status = RONDO__ASCEND_CALL(event->device->library, aclrtStreamWaitEvent, stream->native, native);
    if (!status && event->capture_id && !stream->capture) rondo__ascend_graph_join(stream, event->capture_id);
    return rondo__ascend_left(event->device, before, status);
}

rondo_status rondo__ascend_event_query(void *handle, bool *out_done) {
    rondo__ascend_event *event = handle;
    void *before = NULL;
    int complete = 0;
    rondo_status status = rondo__ascend_enter(event->device, &before);
    if (status) return status;
    status =
        RONDO__ASCEND_CALL(event->device->library, aclrtQueryEventStatus, rondo__ascend_event_now(event), &complete);
    if (!status) *out_done = complete == 1;
    return rondo__ascend_left(event->device, before, status);
}

rondo_status rondo__ascend_event_synchronize(void *handle) {
    rondo__ascend_event *event = handle;
    void *before = NULL;
    rondo_status status = rondo__ascend_enter(event->device, &before);
    if (status) return status;
    status = RONDO__ASCEND_CALL(event->device->library, aclrtSynchronizeEvent, rondo__ascend_event_now(event));
    return rondo__ascend_left(event->device, before, status);
}
