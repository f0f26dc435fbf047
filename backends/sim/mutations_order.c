/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutations of waiting, failing, events, and of what a capture does to other work. */
#include "mutant.h"

rondo_status rondo__sim_mutant_refuse(const rondo__sim_device *device, const char *what) {
    return RONDO_PLUGIN_FAIL(device->host, INVALID_STATE, CAPTURE, "sim: %s while another stream captures", what);
}

static bool mutant_blocks_waiting(const rondo__sim_device *device) {
    return RONDO__SIM_IS(device, BLOCKS_WAITING) && rondo__sim_mutant_is_captured(device);
}

/* --------------------------------------------------------------------------------------- between two operations */

static bool mutant_keeps_failures(const rondo__sim_device *device) {
    return RONDO__SIM_IS(device, ERROR_RUNS_ON) || RONDO__SIM_IS(device, ERROR_LAST);
}

static bool mutant_looks_between(const rondo__sim_device *device) {
    return RONDO__SIM_IS(device, WAIT_FAILED) || mutant_keeps_failures(device);
}

/* Before the next operation: no wait finds that the work failed which it is for. With the mutex. */
static void mutant_before_step(rondo__sim_device *device) {
    if (!RONDO__SIM_IS(device, WAIT_FAILED)) return;
    for (rondo__sim_stream *stream = device->streams; stream; stream = stream->next) {
        for (rondo__sim_operation *operation = stream->first; operation; operation = operation->next) {
            if (operation->kind == RONDO__SIM_WAIT) operation->marker->failure = 0;
        }
    }
}

/* After it: a failure is set aside, so that what follows runs. With the mutex. */
static void mutant_after_step(rondo__sim_device *device) {
    if (!mutant_keeps_failures(device)) return;
    for (rondo__sim_stream *stream = device->streams; stream; stream = stream->next) {
        rondo_status old = (rondo_status)(uintptr_t)stream->mutant;
        if (!stream->failure) continue;
        bool fresh = !old || RONDO__SIM_IS(device, ERROR_LAST);
        device->host->status_release(fresh ? old : stream->failure);
        if (fresh) stream->mutant = (uint64_t)(uintptr_t)stream->failure;
        stream->failure = RONDO_OK;
    }
}

/* Runs until the stream, or the record, is over. What is left then for the entry itself is nothing. */
static void mutant_run(rondo__sim_device *device, const rondo__sim_stream *stream, rondo__sim_marker *marker) {
    rondo_status status = mutant_looks_between(device) ? rondo__sim_enter(device, "a mutation") : RONDO_OK;
    bool goes_on = !status && mutant_looks_between(device) && !(stream && stream->capturing);
    if (status || !mutant_looks_between(device)) {
        device->host->status_release(status);
        return;
    }
    if (marker) marker->references++;
    while (goes_on && (stream ? !rondo__sim_stream_is_done(stream) : marker && !marker->done)) {
        mutant_before_step(device);
        goes_on = rondo__sim_step(device);
        mutant_after_step(device);
    }
    mutant_before_step(device);
    rondo__sim_marker_release(device, marker);
    rondo__sim_leave(device);
}

/* ----------------------------------------------------------------------------------------------------- waiting */

/* The stream's last operation is lost. */
static void mutant_forget_last(rondo__sim_stream *stream) {
    (void)pthread_mutex_lock(&stream->device->mutex);
    rondo__sim_operation **link = &stream->first;
    while (*link && (*link)->next) link = &(*link)->next;
    rondo__sim_operation *last = *link;
    if (last && rondo__sim_mutant_is_work(last)) {
        *link = NULL;
        stream->end = link;
        rondo__sim_operation_finish(stream->device, last, RONDO__SIM_FAILURE_NEVER_TOLD);
    }
    (void)pthread_mutex_unlock(&stream->device->mutex);
}

/* True when another stream took the failure. */
static bool mutant_give_away(rondo__sim_stream *stream, rondo_status status) {
    rondo__sim_device *device = stream->device;
    (void)pthread_mutex_lock(&device->mutex);
    rondo__sim_stream *other = device->streams;
    while (other && (other == stream || other->failure)) other = other->next;
    if (other) other->failure = status;
    (void)pthread_mutex_unlock(&device->mutex);
    return other != NULL;
}

rondo_status rondo__sim_mutant_remade(const rondo__sim_device *device, rondo_code code) {
    return device->host->status_make(code, RONDO_LAYER_DRIVER, __FILE__, (int32_t)__LINE__, "sim: a call failed");
}

/* What was set aside is the stream's again. */
static void mutant_bring_back(rondo__sim_stream *stream) {
    rondo__sim_device *device = stream->device;
    if (!mutant_keeps_failures(device)) return;
    (void)pthread_mutex_lock(&device->mutex);
    device->host->status_release(stream->failure);
    stream->failure = (rondo_status)(uintptr_t)stream->mutant;
    stream->mutant = 0;
    (void)pthread_mutex_unlock(&device->mutex);
}

static rondo_status mutant_spoil_failure(rondo__sim_stream *stream, rondo_status status) {
    rondo__sim_device *device = stream->device;
    if (RONDO__SIM_IS(device, ERROR_SWALLOWED)) {
        device->host->status_release(status);
        return RONDO_OK;
    }
    if (RONDO__SIM_IS(device, ERROR_ELSEWHERE) && mutant_give_away(stream, status)) return RONDO_OK;
    if (RONDO__SIM_IS(device, ERROR_CODE) && device->host->status_code(status) == RONDO_CODE_KERNEL_FAILED) {
        device->host->status_release(status);
        return rondo__sim_mutant_remade(device, RONDO_CODE_INTERNAL);
    }
    if (RONDO__SIM_IS(device, ERROR_REPEATED)) {
        (void)pthread_mutex_lock(&device->mutex);
        if (stream->mutant++ % 2u == 0)
            stream->failure = rondo__sim_mutant_remade(device, device->host->status_code(status));
        (void)pthread_mutex_unlock(&device->mutex);
    }
    return status;
}

rondo_status rondo__sim_mutant_synchronize(void *handle) {
    rondo__sim_stream *stream = handle;
    if (mutant_blocks_waiting(stream->device)) return rondo__sim_mutant_refuse(stream->device, "a synchronize");
    if (RONDO__SIM_IS(stream->device, SYNC_EARLY)) mutant_forget_last(stream);
    mutant_run(stream->device, stream, NULL);
    mutant_bring_back(stream);
    rondo_status status = rondo__sim_fault_stream_table.synchronize(stream);
    return status ? mutant_spoil_failure(stream, status) : RONDO_OK;
}

/* A question runs one operation. */
static void mutant_ask(rondo__sim_device *device, void (*look)(rondo__sim_device *device)) {
    if (!mutant_looks_between(device)) return;
    (void)pthread_mutex_lock(&device->mutex);
    look(device);
    (void)pthread_mutex_unlock(&device->mutex);
}

rondo_status rondo__sim_mutant_query(void *stream, bool *out_done) {
    rondo__sim_device *device = rondo__sim_mutant_device(stream);
    if (mutant_blocks_waiting(device)) return rondo__sim_mutant_refuse(device, "a query");
    mutant_ask(device, mutant_before_step);
    rondo_status status = rondo__sim_fault_stream_table.query(stream, out_done);
    mutant_ask(device, mutant_after_step);
    if (!status && RONDO__SIM_IS(device, QUERY_TRUE)) *out_done = true;
    return status;
}

/* ------------------------------------------------------------------------------------------------------ events */

/* Waits that have not run yet are for the event's newest record. */
static void mutant_wait_for_newest(rondo__sim_event *event, rondo__sim_marker *old) {
    rondo__sim_device *device = event->device;
    for (rondo__sim_stream *stream = device->streams; old && stream; stream = stream->next) {
        for (rondo__sim_operation *operation = stream->first; operation; operation = operation->next) {
            if (operation->kind != RONDO__SIM_WAIT || operation->marker != old) continue;
            rondo__sim_marker_release(device, old);
            operation->marker = event->last;
            event->last->references++;
        }
    }
}

static rondo_status mutant_record_newest(rondo__sim_event *event, void *stream) {
    rondo__sim_device *device = event->device;
    (void)pthread_mutex_lock(&device->mutex);
    rondo__sim_marker *old = event->last;
    if (old) old->references++;
    (void)pthread_mutex_unlock(&device->mutex);
    rondo_status status = rondo__sim_fault_stream_table.event_record(event, stream);
    (void)pthread_mutex_lock(&device->mutex);
    if (!status) mutant_wait_for_newest(event, old);
    rondo__sim_marker_release(device, old);
    (void)pthread_mutex_unlock(&device->mutex);
    return status;
}

rondo_status rondo__sim_mutant_event_record(void *handle, void *stream) {
    rondo__sim_event *event = handle;
    rondo__sim_device *device = event->device;
    if (RONDO__SIM_IS(device, RECORD_IGNORED)) return RONDO_OK;
    if (RONDO__SIM_IS(device, RECORD_ONCE) && event->last) return RONDO_OK;
    if (RONDO__SIM_IS(device, RECORD_ELSEWHERE)) stream = device->streams;
    if (RONDO__SIM_IS(device, FORK_LOST) || RONDO__SIM_IS(device, JOIN_LOST)) {
        event->mutant = ((const rondo__sim_stream *)stream)->slot;
    }
    if (RONDO__SIM_IS(device, WAIT_NEWEST)) return mutant_record_newest(event, stream);
    rondo_status status = rondo__sim_fault_stream_table.event_record(event, stream);
    if (!status && RONDO__SIM_IS(device, EVENT_EARLY)) {
        (void)pthread_mutex_lock(&device->mutex);
        event->last->done = true;
        (void)pthread_mutex_unlock(&device->mutex);
    }
    return status;
}

rondo_status rondo__sim_mutant_event_wait(void *handle, void *stream) {
    rondo__sim_event *event = handle;
    const rondo__sim_device *device = event->device;
    uint32_t slot = ((const rondo__sim_stream *)stream)->slot;
    bool captured = rondo__sim_mutant_has_captured(device);
    if (RONDO__SIM_IS(device, WAIT_IGNORED)) return RONDO_OK;
    if (RONDO__SIM_IS(device, WAIT_ONCE) && event->mutant++) return RONDO_OK;
    if (RONDO__SIM_IS(device, FORK_LOST) && captured && event->mutant < slot) return RONDO_OK;
    if (RONDO__SIM_IS(device, JOIN_LOST) && captured && event->mutant > slot) return RONDO_OK;
    return rondo__sim_fault_stream_table.event_wait(handle, stream);
}

rondo_status rondo__sim_mutant_event_query(void *handle, bool *out_done) {
    const rondo__sim_event *event = handle;
    rondo__sim_device *device = event->device;
    if (mutant_blocks_waiting(device)) return rondo__sim_mutant_refuse(device, "an event's query");
    if (!RONDO__SIM_IS(device, EVENT_QUERY_TRUE)) {
        mutant_ask(device, mutant_before_step);
        rondo_status status = rondo__sim_fault_stream_table.event_query(handle, out_done);
        mutant_ask(device, mutant_after_step);
        return status;
    }
    *out_done = true;
    return RONDO_OK;
}

rondo_status rondo__sim_mutant_event_synchronize(void *handle) {
    const rondo__sim_event *event = handle;
    rondo__sim_device *device = event->device;
    if (mutant_blocks_waiting(device)) return rondo__sim_mutant_refuse(device, "an event's synchronize");
    if (RONDO__SIM_IS(device, EVENT_SYNC_EARLY)) return RONDO_OK;
    mutant_run(device, NULL, event->last);
    return rondo__sim_fault_stream_table.event_synchronize(handle);
}

/* ---------------------------------------------------------------------------------------------------- captures */

/* Which streams capture, and who began. True: the stream is a further one of a capture that is there already. */
static bool mutant_note_capture(rondo__sim_device *device, bool active) {
    rondo__sim_mutant_memory *memory = device->mutant;
    (void)pthread_mutex_lock(&device->mutex);
    bool further = memory->capturing != 0;
    if (active && !further) memory->capturer = pthread_self();
    uint64_t capturing = memory->capturing + (active ? 1u : 0u - (uint64_t)further);
    __atomic_store_n(&memory->capturing, capturing, __ATOMIC_RELAXED);
    (void)pthread_mutex_unlock(&device->mutex);
    return further;
}

void rondo__sim_mutant_capture_changed(void *handle, bool active, rondo_capture_mode mode) {
    rondo__sim_stream *stream = handle;
    rondo__sim_device *device = stream->device;
    rondo__sim_mutant_memory *memory = device->mutant;
    bool further = mutant_note_capture(device, active);
    if (!active) (void)rondo__sim_mutant_count(&memory->captures);
    if (!active && RONDO__SIM_IS(device, CAPTURE_LEAKS)) return;
    if (RONDO__SIM_IS(device, SIDE_LEAKS)) {
        if (active) stream->mutant = further;
        else if (stream->mutant) return;
    }
    rondo__sim_fault_stream_table.capture_changed(stream, active, mode);
}

/* A stream that refuses work could not be waited for when it goes. */
void rondo__sim_mutant_destroy(void *self, void *handle) {
    rondo__sim_stream *stream = handle;
    stream->capturing = false;
    if (mutant_keeps_failures(stream->device)) {
        stream->device->host->status_release((rondo_status)(uintptr_t)stream->mutant);
    }
    rondo__sim_fault_stream_table.destroy(self, stream);
}
