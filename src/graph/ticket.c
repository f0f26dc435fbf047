/* SPDX-License-Identifier: Apache-2.0
 *
 * Tickets: one event an owner, recorded anew behind each run. */
#include "graph/ticket.h"

void rondo__ticket_init(rondo__ticket *ticket, rondo_device *device) {
    *ticket = (rondo__ticket){.device = device, .immediate = rondo__device_is_inline(device)};
}

rondo_status rondo__ticket_prepare(rondo__ticket *ticket) {
    if (ticket->immediate || ticket->event) return RONDO_OK;
    return rondo_event_create(ticket->device, &ticket->event);
}

/* It is over, or goes elsewhere. */
static void ticket_land(rondo__ticket *ticket) {
    if (ticket->flying && ticket->flight.uses) rondo__device_flight_end(ticket->device, &ticket->flight);
    ticket->flying = false;
}

static void ticket_fly(rondo__ticket *ticket, const rondo_stream *stream) {
    if (ticket->flying && ticket->stream == stream->id) return;
    ticket_land(ticket);
    ticket->stream = ticket->flight.stream = stream->id;
    ticket->flying = true;
    if (ticket->flight.uses) rondo__device_flight_begin(ticket->device, &ticket->flight);
}

/* A run that failed is over like any other. Its failure is its stream's to tell, once, by name: whoever waits here only
 * wants to know that nothing runs. */
static rondo_status ticket_wait_over(rondo__ticket *ticket) {
    rondo_status status = rondo_event_synchronize(ticket->event);
    if (rondo_status_code(status) == RONDO_CODE_KERNEL_FAILED) {
        rondo_status_release(status);
        status = RONDO_OK;
    }
    if (!status) ticket_land(ticket);
    return status;
}

rondo_status rondo__ticket_wait_flying(rondo__ticket *ticket) {
    RONDO__TRY_NOTE(ticket_wait_over(ticket), "while waiting for the last run in flight");
    return RONDO_OK;
}

/* What the last run reads is about to go, and nobody is there to be told: when its event cannot be waited for, all of
 * the device is, and the log has why. */
static void ticket_wait_anyhow(rondo__ticket *ticket) {
    rondo_status status = ticket_wait_over(ticket);
    if (!status) return;
    rondo__log_write(ticket->device->log, RONDO_LOG_WARNING, "a run in flight could not be waited for by its event: %s",
                     rondo_status_message(status));
    rondo_status_release(status);
    status = rondo__device_synchronize(ticket->device);
    if (status)
        rondo__log_write(ticket->device->log, RONDO_LOG_ERROR,
                         "nor could the device; what the run reads is released all the same: %s",
                         rondo_status_message(status));
    rondo_status_release(status);
}

void rondo__ticket_deinit(rondo__ticket *ticket) {
    if (ticket->flying) ticket_wait_anyhow(ticket);
    rondo_event_release(ticket->event);
    ticket->event = NULL;
    ticket_land(ticket);
}

rondo_status rondo__ticket_order(rondo__ticket *ticket, rondo_stream *stream) {
    RONDO__TRY(rondo__ticket_prepare(ticket));
    if (!ticket->flying || ticket->stream == stream->id) return RONDO_OK; /* the stream's own order is enough */
    return rondo_event_wait(ticket->event, stream);
}

rondo_status rondo__ticket_record(rondo__ticket *ticket, rondo_stream *stream) {
    rondo_status status = rondo_event_record(ticket->event, stream);
    if (status) {
        /* The run is on its way and nothing marks its end: wait for it here rather than lose it. */
        ticket_land(ticket);
        status = rondo__status_note(status, "after the run was enqueued");
        return rondo__status_first(rondo_stream_synchronize(stream), status); /* the run's own failure comes first */
    }
    ticket_fly(ticket, stream);
    return RONDO_OK;
}
