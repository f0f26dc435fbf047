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

rondo_status rondo__ticket_wait_flying(rondo__ticket *ticket) {
    RONDO__TRY_NOTE(rondo_event_synchronize(ticket->event), "while waiting for the last run in flight");
    ticket->flying = false;
    return RONDO_OK;
}

void rondo__ticket_deinit(rondo__ticket *ticket) {
    if (ticket->flying) RONDO__IGNORE(rondo_event_synchronize(ticket->event));
    rondo_event_release(ticket->event);
    ticket->event = NULL;
    ticket->flying = false;
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
        RONDO__IGNORE(rondo_stream_synchronize(stream));
        ticket->flying = false;
        return rondo__status_note(status, "after the run was enqueued");
    }
    ticket->stream = stream->id;
    ticket->flying = true;
    return RONDO_OK;
}
