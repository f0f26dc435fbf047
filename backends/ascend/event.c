/* SPDX-License-Identifier: Apache-2.0
 *
 * Events, of the kind that captures take (Ex, SYNC). A wait for one that was recorded in a capture makes its stream part of it. */
#include "ascend.h"

enum { EVENT_SYNC = 1 };

static bool event_ids_left(rondo__ascend_device *device, uint32_t *out_left) {
    if (!rondo__ascend_can(device, RONDO__ASCEND_GROUP_ids)) return false;
    int error = device->library->api.aclrtGetEventAvailNum(out_left);
    if (RONDO__ASCEND_REFUSED(device, RONDO__ASCEND_GROUP_ids, aclrtGetEventAvailNum, error)) return false;
    return !rondo__ascend_tolerate(device->library, error);
}

/* An event of this kind gets its id when it is first recorded, behind work that is on its way by then: what the driver would refuse
 * there is said here. */
rondo_status rondo__ascend_event_open(rondo__ascend_device *device, void **out_native) {
    uint32_t left = 0, aside = atomic_fetch_add(&device->events_aside, 1u);
    rondo_status status = RONDO_OK;
    if (event_ids_left(device, &left) && left <= aside)
        status = RONDO_PLUGIN_FAIL(device->host, OUT_OF_RANGE, DRIVER,
                                   "ascend:%d: no event is left: %u ids are, for %u events that were not recorded yet; "
                                   "release some",
                                   (int)device->index, left, aside);
    if (!status) status = RONDO__ASCEND_CALL(device->library, aclrtCreateEventExWithFlag, out_native, EVENT_SYNC);
    if (status) atomic_fetch_sub(&device->events_aside, 1u);
    return status;
}

int rondo__ascend_event_shut(rondo__ascend_device *device, void *native, bool has_id) {
    if (!has_id) atomic_fetch_sub(&device->events_aside, 1u);
    return RONDO__ASCEND_TRY(device->library, aclrtDestroyEvent, native);
}

rondo_status rondo__ascend_event_mark(rondo__ascend_device *device, void *native, void *stream, bool *has_id) {
    rondo_status status = RONDO__ASCEND_CALL(device->library, aclrtRecordEvent, native, stream);
    if (!status && !*has_id) {
        *has_id = true;
        atomic_fetch_sub(&device->events_aside, 1u);
    }
    return status;
}

rondo_status rondo__ascend_event_create(void *self, void **out_event) {
    rondo__ascend_device *device = self;
    void *before = NULL;
    rondo_status status = rondo__ascend_enter(device, &before);
    if (status) return status;
    rondo__ascend_event *event = rondo__ascend_allocate(device->host, sizeof *event);
    if (!event) status = RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, DRIVER, "ascend: no memory for an event");
    if (!status) status = rondo__ascend_event_open(device, &event->native);
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
    (void)rondo__ascend_event_shut(device, event->native, event->has_id);
    if (event->outside) (void)rondo__ascend_event_shut(device, event->outside, event->outside_has_id);
    device->host->status_release(status);
    rondo__ascend_leave(device, before);
    rondo__ascend_free(device->host, event, sizeof *event);
}

/* A capture that the driver did not end may have the event for good: another takes its place. */
static void event_renew(rondo__ascend_event *event) {
    rondo__ascend_device *device = event->device;
    void *fresh = NULL;
    rondo_status status = rondo__ascend_event_open(device, &fresh);
    bool made = !status;
    device->host->status_release(status);
    if (!made) return;
    (void)rondo__ascend_event_shut(device, event->native, event->has_id);
    event->native = fresh;
    event->has_id = false;
}

rondo_status rondo__ascend_event_record(void *handle, void *stream_handle) {
    rondo__ascend_event *event = handle;
    rondo__ascend_stream *stream = stream_handle;
    void *before = NULL;
    rondo_status status = rondo__ascend_enter(event->device, &before);
    if (status) return status;
    rondo__ascend_count(event->device, RONDO__ASCEND_COUNT_EVENTS);
    if (event->capture_id && !stream->capture && atomic_load(&event->device->abandoned)) event_renew(event);
    bool outside = !stream->capture && event->outside;
    void *native = outside ? event->outside : event->native;
    if (stream->capture) status = RONDO__ASCEND_CALL(event->device->library, aclrtRecordEvent, native, stream->native);
    else
        status = rondo__ascend_event_mark(event->device, native, stream->native,
                                          outside ? &event->outside_has_id : &event->has_id);
    if (!status) event->capture_id = stream->capture ? stream->capture->id : 0;
    if (!status && !stream->capture) {
        event->recorded = true;
        event->moved = outside;
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
