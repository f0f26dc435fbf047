/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in flight: an event behind the last replay or run, so that whoever changes the list or frees its memory waits
 * for it, and a run on another stream goes behind it. On inline devices nothing is ever in flight, and a ticket is
 * nothing but the test that says so. Thread-compatible.
 */
#ifndef RONDO_SRC_GRAPH_TICKET_H
#define RONDO_SRC_GRAPH_TICKET_H

#include "device/device.h"

typedef struct rondo__ticket {
    rondo__flight flight; /* its `uses` is the owner's, or null: then nobody is told */
    rondo_device *device; /* not retained: the owner of the ticket does */
    rondo_event *event;   /* null on inline devices, and until prepared */
    uint64_t stream;      /* id of the stream that the last run went to */
    bool immediate;       /* inline device */
    bool flying;
} rondo__ticket;

/* Takes nothing yet, so it cannot fail. */
void rondo__ticket_init(rondo__ticket *ticket, rondo_device *device);
/* Makes the event where one is needed. May be repeated. */
RONDO_MUST_USE rondo_status rondo__ticket_prepare(rondo__ticket *ticket);
/* Waits until nothing flies. A run that failed is no failure of the wait: its stream tells it. */
RONDO_MUST_USE rondo_status rondo__ticket_wait_flying(rondo__ticket *ticket);
/* Waits, whatever the work's fate, and gives the event back. Usable again after init. */
void rondo__ticket_deinit(rondo__ticket *ticket);

RONDO_MUST_USE rondo_status rondo__ticket_order(rondo__ticket *ticket, rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo__ticket_record(rondo__ticket *ticket, rondo_stream *stream);

/* Before a run: it goes behind the last one. */
static inline rondo_status rondo__ticket_before(rondo__ticket *ticket, rondo_stream *stream) {
    return ticket->immediate ? RONDO_OK : rondo__ticket_order(ticket, stream);
}
/* After a run was enqueued. */
static inline rondo_status rondo__ticket_after(rondo__ticket *ticket, rondo_stream *stream) {
    return ticket->immediate ? RONDO_OK : rondo__ticket_record(ticket, stream);
}
/* Before what a run reads is changed. */
static inline rondo_status rondo__ticket_wait(rondo__ticket *ticket) {
    return ticket->flying ? rondo__ticket_wait_flying(ticket) : RONDO_OK;
}

#endif
