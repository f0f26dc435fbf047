/* SPDX-License-Identifier: Apache-2.0
 *
 * Events. A plain one and an Ex one count their records, and a wait is for the record that was the latest when it was
 * issued; one made with flags is a bit that a record raises and a reset lowers. */
#include "sim.h"

#define EVENT_FLAGS \
    (ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE | ACL_EVENT_DEVICE_USE_ONLY)

bool sim_event_reached(const sim_event *event, const sim_record *mark) {
    return event->kind == SIM_EVENT_FLAG ? event->raised : !mark || mark->done;
}

sim_record *sim_record_hold(sim_record *mark) {
    if (mark) mark->users++;
    return mark;
}

void sim_record_release(sim_record *mark) {
    if (mark && --mark->users == 0) free(mark);
}

sim_record *sim_event_issue(sim_event *event, uint64_t stream) {
    sim_record *mark = sim_allocate(sizeof *mark);
    if (!mark) return NULL;
    mark->users = 1;
    mark->stream = stream;
    sim_record_release(event->latest);
    event->latest = sim_record_hold(mark);
    event->issued++;
    return mark;
}

void sim_event_forgive(uint64_t stream) {
    for (sim_context *context = sim.contexts; context; context = context->next)
        for (sim_event *event = context->events; event; event = event->next)
            if (event->latest && event->latest->stream == stream) event->latest->error = ACL_SUCCESS;
}

void sim_event_record_done(sim_event *event, sim_record *mark, aclError error) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    event->time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    event->raised = true;
    mark->done = true;
    mark->error = error;
}

static void event_free(sim_event *event) {
    sim_record_release(event->latest);
    free(event);
}

void sim_event_release(sim_event *event) {
    if (--event->users == 0 && event->gone) event_free(event);
}

void sim_event_destroy(sim_event *event) {
    sim_event **link = &event->context->events;
    while (*link != event) link = &(*link)->next;
    *link = event->next;
    sim_object_remove(event);
    if (event->has_id) sim.devices[event->context->device].event_ids--;
    event->gone = true;
    if (!event->users) event_free(event);
}

static aclError event_take_id(sim_event *event) {
    if (event->has_id) return ACL_SUCCESS;
    sim_device *device = &sim.devices[event->context->device];
    if (device->event_ids >= sim.settings.events)
        return sim_fail(ACL_ERROR_RT_NO_EVENT_RESOURCE, "all %lld event ids of device %d are in use",
                        (long long)sim.settings.events, event->context->device);
    device->event_ids++;
    event->has_id = true;
    return ACL_SUCCESS;
}

static aclError event_create(aclrtEvent *out, uint32_t kind, uint32_t flags) {
    sim_context *context = NULL;
    SIM_CHECK(sim_current(&context));
    sim_event *event = sim_allocate(sizeof *event);
    if (!event || !sim_object_add(event, SIM_EVENT)) {
        free(event);
        return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for an event");
    }
    event->context = context;
    event->kind = kind;
    event->flags = flags;
    aclError error = kind == SIM_EVENT_FLAG ? event_take_id(event) : ACL_SUCCESS;
    if (error) {
        sim_object_remove(event);
        free(event);
        return error;
    }
    event->next = context->events;
    context->events = event;
    *out = event;
    return ACL_SUCCESS;
}

aclError aclrtCreateEvent(aclrtEvent *event) {
    SIM_BEGIN(aclrtCreateEvent);
    if (!event) return sim_fail(ACL_ERROR_INVALID_PARAM, "event is null");
    sim_lock();
    return sim_leave(event_create(event, SIM_EVENT_PLAIN, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
}

aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag) {
    SIM_BEGIN(aclrtCreateEventWithFlag);
    if (!event) return sim_fail(ACL_ERROR_INVALID_PARAM, "event is null");
    if (flag & ACL_EVENT_IPC)
        return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "events between processes are not simulated");
    if (flag != ACL_EVENT_EXTERNAL && (!flag || flag & ~EVENT_FLAGS))
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "0x%x are no event flags that go together", flag);
    sim_lock();
    bool counted = !(flag & (ACL_EVENT_SYNC | ACL_EVENT_EXTERNAL));
    return sim_leave(event_create(event, counted ? SIM_EVENT_PLAIN : SIM_EVENT_FLAG, flag));
}

aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag) {
    SIM_BEGIN(aclrtCreateEventExWithFlag);
    if (!event) return sim_fail(ACL_ERROR_INVALID_PARAM, "event is null");
    if (flag & ACL_EVENT_IPC)
        return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "events between processes are not simulated");
    if (!flag || flag & ~EVENT_FLAGS)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "0x%x are no flags of an Ex event", flag);
    sim_lock();
    return sim_leave(event_create(event, SIM_EVENT_EX, flag));
}

static aclError event_of(aclrtEvent handle, sim_event **out_event) {
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "event is null");
    *out_event = sim_object_find(handle, SIM_EVENT);
    if (!*out_event) return sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such event");
    sim_concern((*out_event)->model);
    return ACL_SUCCESS;
}

aclError aclrtDestroyEvent(aclrtEvent handle) {
    SIM_BEGIN(aclrtDestroyEvent);
    sim_lock();
    sim_event *event = NULL;
    aclError error = event_of(handle, &event);
    if (!error) sim_event_destroy(event);
    return sim_leave(error);
}

static aclError event_submit(sim_event *event, sim_stream *stream, uint32_t kind, int64_t timeout) {
    sim_task *task = NULL;
    SIM_CHECK(sim_task_for(stream, kind, &task));
    task->external = stream->model != NULL; /* of a graph that is built: it acts when the graph runs */
    task->as.event.event = event;
    task->as.event.timeout = timeout;
    event->users++;
    return sim_submit(stream, task);
}

static bool event_stream_captures(const sim_stream *stream) { return stream->model && !stream->model->built; }

/* Whether a capture has to do with it: the stream's, or the one that the event was recorded in. */
static bool event_captures(const sim_event *event, const sim_stream *stream) {
    return event_stream_captures(stream) || (event->model && event->kind == SIM_EVENT_EX);
}

static aclError event_record(aclrtEvent handle, aclrtStream stream_handle, bool external) {
    sim_event *event = NULL;
    sim_stream *stream = NULL;
    SIM_CHECK(event_of(handle, &event));
    SIM_CHECK(sim_stream_of(stream_handle, &stream));
    if (external || event_captures(event, stream)) {
        /* Recorded outside: no longer captured. */
        bool leaves = !external && !event_stream_captures(stream) && !stream->is_default;
        if (!leaves) return sim_fork_record(event, stream, external);
    }
    SIM_CHECK(event_take_id(event));
    SIM_CHECK(event_submit(event, stream, SIM_RECORD, 0));
    event->model = NULL;
    event->record = NULL;
    return ACL_SUCCESS;
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
    SIM_BEGIN(aclrtRecordEvent);
    sim_lock();
    return sim_leave(event_record(event, stream, false));
}

aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) {
    SIM_BEGIN(aclrtRecordEventWithFlag);
    if (!event) return sim_fail(ACL_ERROR_INVALID_PARAM, "event is null");
    if (flag > ACL_EVENT_RECORD_EXTERNAL) return sim_fail(ACL_ERROR_INVALID_PARAM, "%u is no flag of a record", flag);
    sim_lock();
    return sim_leave(event_record(event, stream, flag == ACL_EVENT_RECORD_EXTERNAL));
}

aclError aclrtResetEvent(aclrtEvent handle, aclrtStream stream_handle) {
    SIM_BEGIN(aclrtResetEvent);
    sim_lock();
    sim_event *event = NULL;
    sim_stream *stream = NULL;
    aclError error = event_of(handle, &event);
    if (!error) error = sim_stream_of(stream_handle, &stream);
    if (!error && event_captures(event, stream)) error = sim_fork_reset(event, stream);
    else if (!error && event->kind != SIM_EVENT_FLAG)
        error = sim_fail(ACL_ERROR_RT_PARAM_INVALID, "only an event made by aclrtCreateEventWithFlag can be reset");
    else if (!error) error = event_submit(event, stream, SIM_RESET, 0);
    return sim_leave(error);
}

static aclError event_wait(aclrtStream stream_handle, aclrtEvent handle, int64_t timeout, bool external) {
    sim_event *event = NULL;
    sim_stream *stream = NULL;
    SIM_CHECK(event_of(handle, &event));
    SIM_CHECK(sim_stream_of(stream_handle, &stream));
    if (external || event_captures(event, stream)) return sim_fork_wait(event, stream, external);
    return event_submit(event, stream, SIM_WAIT, timeout);
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
    SIM_BEGIN(aclrtStreamWaitEvent);
    sim_lock();
    return sim_leave(event_wait(stream, event, 0, false));
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout) {
    SIM_BEGIN(aclrtStreamWaitEventWithTimeout);
    if (!event) return sim_fail(ACL_ERROR_INVALID_PARAM, "event is null");
    SIM_CHECK(sim_check_timeout(timeout));
    sim_lock();
    return sim_leave(event_wait(stream, event, timeout > 0 ? timeout : 0, false));
}

aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout, uint32_t flag) {
    SIM_BEGIN(aclrtStreamWaitEventWithFlag);
    if (!event) return sim_fail(ACL_ERROR_INVALID_PARAM, "event is null");
    if (flag > ACL_EVENT_WAIT_EXTERNAL) return sim_fail(ACL_ERROR_INVALID_PARAM, "%u is no flag of a wait", flag);
    if (flag == ACL_EVENT_WAIT_EXTERNAL && timeout)
        return sim_fail(ACL_ERROR_INVALID_PARAM, "a wait for an event outside of the graph has no timeout");
    sim_lock();
    return sim_leave(event_wait(stream, event, (int64_t)timeout * 1000, flag == ACL_EVENT_WAIT_EXTERNAL));
}

/* ------------------------------------------------------------------------------------------------------- asking */

static aclError event_ask(aclrtEvent handle, sim_event **out_event) {
    SIM_CHECK(event_of(handle, out_event));
    if (!(*out_event)->model) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_RT_EVENT_CAPTURED,
                    "the event was recorded in a capture: it says nothing about work that ran");
}

static bool event_complete(const sim_event *event) {
    if (event->kind == SIM_EVENT_FLAG) return event->raised;
    if (!event->issued) return event->kind == SIM_EVENT_EX;
    return event->latest->done;
}

aclError aclrtQueryEventStatus(aclrtEvent handle, aclrtEventRecordedStatus *status) {
    SIM_BEGIN(aclrtQueryEventStatus);
    if (!status) return sim_fail(ACL_ERROR_INVALID_PARAM, "status is null");
    sim_lock();
    sim_event *event = NULL;
    aclError error = event_ask(handle, &event);
    if (!error)
        *status = event_complete(event) ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return sim_leave(error);
}

static aclError event_not_ex(aclrtEvent handle, sim_event **out_event) {
    SIM_CHECK(event_ask(handle, out_event));
    if ((*out_event)->kind != SIM_EVENT_EX) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "an Ex event is asked by aclrtQueryEventStatus");
}

aclError aclrtQueryEvent(aclrtEvent handle, aclrtEventStatus *status) {
    SIM_BEGIN(aclrtQueryEvent);
    if (!status) return sim_fail(ACL_ERROR_INVALID_PARAM, "status is null");
    sim_lock();
    sim_event *event = NULL;
    aclError error = event_not_ex(handle, &event);
    if (!error) *status = event_complete(event) ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    return sim_leave(error);
}

aclError aclrtQueryEventWaitStatus(aclrtEvent handle, aclrtEventWaitStatus *status) {
    SIM_BEGIN(aclrtQueryEventWaitStatus);
    if (!status) return sim_fail(ACL_ERROR_INVALID_PARAM, "status is null");
    sim_lock();
    sim_event *event = NULL;
    aclError error = event_not_ex(handle, &event);
    if (!error)
        *status = event->waits_done == event->waits ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
    return sim_leave(error);
}

/* Whether some other stream is yet to record it, itself or by a graph: each record raises a flag. */
static bool event_raised_elsewhere(const sim_event *event, uint64_t number) {
    for (const sim_context *context = sim.contexts; context; context = context->next)
        for (const sim_stream *stream = context->streams; stream; stream = stream->next)
            for (const sim_task *task = stream->first; task && stream->object.number != number; task = task->next) {
                if (task->kind == SIM_RECORD && task->as.event.event == event) return true;
                for (size_t i = 0; task->kind == SIM_RUN && i < task->as.run.model->work_count; i++) {
                    const sim_task *inside = task->as.run.model->work[i];
                    if (inside->kind == SIM_RECORD && inside->as.event.event == event) return true;
                }
            }
    return false;
}

/* What is to be waited for comes behind the function that the thread is in. */
static bool event_behind(const sim_event *event) {
    const sim_record *mark = event->latest;
    uint64_t inside = sim_self()->inside;
    if (!inside || !mark || mark->done || mark->stream != inside || sim_event_reached(event, mark)) return false;
    return event->kind != SIM_EVENT_FLAG || !event_raised_elsewhere(event, inside);
}

static aclError event_synchronize(aclrtEvent handle, int32_t timeout) {
    sim_event *event = NULL;
    struct timespec deadline;
    SIM_CHECK(sim_check_timeout(timeout));
    SIM_CHECK(event_ask(handle, &event));
    sim_record *mark = event->latest;
    if (event_behind(event))
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "the event is recorded behind the function that makes this call: "
                                                    "waiting for it would never end");
    if (timeout > 0) sim_deadline(timeout, &deadline);
    (void)sim_record_hold(mark);
    event->users++; /* it may be destroyed meanwhile */
    bool in_time = true;
    while (in_time && mark && !sim_event_reached(event, mark))
        in_time = sim_wait_changed(timeout > 0 ? &deadline : NULL);
    sim_record_release(mark);
    sim_event_release(event);
    return in_time ? ACL_SUCCESS
                   : sim_fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "the event was not reached in %d ms", timeout);
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
    SIM_BEGIN(aclrtSynchronizeEvent);
    sim_lock();
    return sim_leave(event_synchronize(event, -1));
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
    SIM_BEGIN(aclrtSynchronizeEventWithTimeout);
    if (!event) return sim_fail(ACL_ERROR_INVALID_PARAM, "event is null");
    sim_lock();
    return sim_leave(event_synchronize(event, timeout));
}

static aclError event_timed(aclrtEvent handle, sim_event **out_event) {
    SIM_CHECK(event_ask(handle, out_event));
    const sim_event *event = *out_event;
    if (!(event->flags & ACL_EVENT_TIME_LINE) || !event->issued)
        return sim_fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "the event keeps no time (%s)",
                        event->issued ? "it was made without ACL_EVENT_TIME_LINE" : "it was not recorded");
    return event_complete(event) ? ACL_SUCCESS
                                 : sim_fail(ACL_ERROR_RT_EVENT_NOT_COMPLETE, "the event was not reached yet");
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent) {
    SIM_BEGIN(aclrtEventElapsedTime);
    if (!ms || !startEvent || !endEvent) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    sim_lock();
    sim_event *start = NULL, *end = NULL;
    aclError error = event_timed(startEvent, &start);
    if (!error) error = event_timed(endEvent, &end);
    if (!error && end->time < start->time)
        error = sim_fail(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, "the end was reached before the start");
    if (!error) *ms = (float)(end->time - start->time) / 1e6f;
    return sim_leave(error);
}

aclError aclrtEventGetTimestamp(aclrtEvent handle, uint64_t *timestamp) {
    SIM_BEGIN(aclrtEventGetTimestamp);
    if (!timestamp) return sim_fail(ACL_ERROR_INVALID_PARAM, "timestamp is null");
    sim_lock();
    sim_event *event = NULL;
    aclError error = event_timed(handle, &event);
    if (!error) *timestamp = event->time / 1000u;
    return sim_leave(error);
}

aclError aclrtGetEventId(aclrtEvent handle, uint32_t *eventId) {
    SIM_BEGIN(aclrtGetEventId);
    if (!eventId) return sim_fail(ACL_ERROR_INVALID_PARAM, "eventId is null");
    sim_lock();
    sim_event *event = NULL;
    aclError error = event_of(handle, &event);
    if (!error && !event->has_id)
        error = sim_fail(ACL_ERROR_RT_PARAM_INVALID, "the event has no id before its first record");
    if (!error) *eventId = (uint32_t)event->object.number;
    return sim_leave(error);
}

aclError aclrtGetEventAvailNum(uint32_t *eventCount) {
    SIM_BEGIN(aclrtGetEventAvailNum);
    if (!eventCount) return sim_fail(ACL_ERROR_INVALID_PARAM, "eventCount is null");
    sim_lock();
    sim_context *context = NULL;
    aclError error = sim_current(&context);
    if (!error) *eventCount = (uint32_t)(sim.settings.events - sim.devices[context->device].event_ids);
    return sim_leave(error);
}
