/* SPDX-License-Identifier: Apache-2.0
 *
 * Events outside of a captured graph that it records or waits for each time it runs. What the driver would refuse is said before it
 * does, by event and node; the core replays such a graph node by node. */
#include <stdio.h>

#include "ascend.h"

enum { OUTSIDE_EXTERNAL = 1 };

static const char *outside_verb(bool wait) { return wait ? "waits for" : "records"; }

/* The driver takes an event once a graph, for one of both. */
static rondo_status outside_check(const rondo__ascend_graph *graph, const rondo__ascend_event *event, bool wait) {
    for (const rondo__ascend_outside *other = graph->outside; other; other = other->next) {
        if (other->event != event) continue;
        return RONDO_PLUGIN_FAIL(
            graph->device->host, UNSUPPORTED, CAPTURE,
            "ascend: node %llu %s event %p outside of the graph, which node %llu %s already: the driver's graphs take an "
            "event once, to record it or to wait for it",
            (unsigned long long)graph->node_count, outside_verb(wait), event->native, (unsigned long long)other->node,
            outside_verb(other->wait));
    }
    return RONDO_OK;
}

static rondo_status outside_check_stream(const rondo__ascend_stream *stream, const rondo__ascend_event *event,
                                         bool wait) {
    rondo__ascend_device *device = stream->device;
    if (!stream->capture)
        return RONDO_PLUGIN_FAIL(device->host, INVALID_STATE, CAPTURE,
                                 "ascend: nothing captures the stream that %s event %p outside of a graph",
                                 outside_verb(wait), event->native);
    if (rondo__ascend_can(device, RONDO__ASCEND_GROUP_external)) return outside_check(stream->capture, event, wait);
    char what[2 * RONDO__ASCEND_NAME];
    (void)snprintf(what, sizeof what, "node %llu %s event %p outside of the graph",
                   (unsigned long long)stream->capture->node_count, outside_verb(wait), event->native);
    return rondo__ascend_refusal(device, RONDO__ASCEND_GROUP_external, what);
}

static rondo_status outside_note(rondo__ascend_graph *graph, rondo__ascend_event *event, bool wait,
                                 rondo__ascend_outside **out_note) {
    rondo__ascend_outside *note = rondo__ascend_allocate(graph->device->host, sizeof *note);
    if (!note) return RONDO_PLUGIN_FAIL(graph->device->host, OUT_OF_MEMORY, CAPTURE, "ascend: no memory for a node");
    *note = (rondo__ascend_outside){graph->outside, event, graph->node_count, wait};
    graph->outside = *out_note = note;
    return RONDO_OK;
}

static rondo_status outside_capture(rondo__ascend_event *event, rondo__ascend_stream *stream, bool wait) {
    rondo__ascend_device *device = event->device;
    const rondo__ascend_api *api = &device->library->api;
    rondo__ascend_outside *note = NULL;
    rondo_status status = outside_check_stream(stream, event, wait);
    if (!status && !event->outside) status = rondo__ascend_event_open(device, &event->outside);
    if (!status) status = outside_note(stream->capture, event, wait, &note);
    if (!status) status = rondo__ascend_graph_other(stream);
    if (status) return status;
    int error = wait ? api->aclrtStreamWaitEventWithFlag(stream->native, event->outside, 0, OUTSIDE_EXTERNAL)
                     : api->aclrtRecordEventWithFlag(event->outside, stream->native, OUTSIDE_EXTERNAL);
    char what[2 * RONDO__ASCEND_NAME];
    (void)snprintf(what, sizeof what, "node %llu %s event %p outside of the graph: %s", (unsigned long long)note->node,
                   outside_verb(wait), event->native,
                   wait ? "aclrtStreamWaitEventWithFlag" : "aclrtRecordEventWithFlag");
    status = rondo__ascend_error(device->library, what, error);
    if (error == RONDO__ASCEND_NOT_SUPPORTED)
        rondo__ascend_switch_off(
            device, RONDO__ASCEND_GROUP_external,
            wait ? "aclrtStreamWaitEventWithFlag answered 207000" : "aclrtRecordEventWithFlag answered 207000", NULL);
    return status;
}

static rondo_status outside_at(void *event_handle, void *stream_handle, bool wait) {
    rondo__ascend_event *event = event_handle;
    void *before = NULL;
    rondo_status status = rondo__ascend_enter(event->device, &before);
    if (status) return status;
    rondo__ascend_count(event->device, RONDO__ASCEND_COUNT_EVENTS);
    return rondo__ascend_left(event->device, before, outside_capture(event, stream_handle, wait));
}

rondo_status rondo__ascend_outside_record(void *event, void *stream) { return outside_at(event, stream, false); }
rondo_status rondo__ascend_outside_wait(void *event, void *stream) { return outside_at(event, stream, true); }

/* A record from before any graph had the event is not the graph's event's: its stream waits for it. */
rondo_status rondo__ascend_outside_before(const rondo__ascend_graph *graph, const rondo__ascend_stream *stream) {
    rondo_status status = RONDO_OK;
    for (const rondo__ascend_outside *note = graph->outside; note && !status; note = note->next) {
        if (!note->wait || note->event->moved || !note->event->recorded) continue;
        status = RONDO__ASCEND_CALL(graph->device->library, aclrtStreamWaitEvent, stream->native, note->event->native);
    }
    return status;
}

void rondo__ascend_outside_after(const rondo__ascend_graph *graph) {
    for (const rondo__ascend_outside *note = graph->outside; note; note = note->next) {
        if (note->wait) continue;
        note->event->recorded = note->event->moved = true;
        note->event->capture_id = 0;
    }
}

void rondo__ascend_outside_free(rondo__ascend_graph *graph) {
    while (graph->outside) {
        rondo__ascend_outside *note = graph->outside;
        graph->outside = note->next;
        rondo__ascend_free(graph->device->host, note, sizeof *note);
    }
}
