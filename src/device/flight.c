/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs in flight on devices where work goes on after the call. A copy or fill that overwrites what such a run uses, on
 * another stream, is put behind it: on the device where that can be said, else the host waits. */
#include "device/device.h"

#define RONDO__FLIGHTS_AT_ONCE 16u

void rondo__device_flight_begin(rondo_device *device, rondo__flight *flight) {
    rondo__mutex_lock(&device->flights_mutex);
    flight->previous = NULL;
    flight->next = device->flights;
    if (flight->next) flight->next->previous = flight;
    __atomic_store_n(&device->flights, flight, __ATOMIC_RELAXED);
    rondo__mutex_unlock(&device->flights_mutex);
}

void rondo__device_flight_end(rondo_device *device, rondo__flight *flight) {
    rondo__mutex_lock(&device->flights_mutex);
    if (flight->next) flight->next->previous = flight->previous;
    if (flight->previous) flight->previous->next = flight->next;
    else __atomic_store_n(&device->flights, flight->next, __ATOMIC_RELAXED);
    flight->next = flight->previous = NULL;
    rondo__mutex_unlock(&device->flights_mutex);
}

/* Streams after number `after` whose runs use the range, in order of number. */
static uint32_t flight_find(rondo_device *device, const rondo_stream *stream, uint64_t address, uint64_t bytes,
                            uint64_t after, uint64_t ids[RONDO__FLIGHTS_AT_ONCE]) {
    uint32_t count = 0;
    rondo__mutex_lock(&device->flights_mutex);
    for (const rondo__flight *flight = device->flights; flight; flight = flight->next) {
        uint64_t id = flight->stream;
        uint32_t place = count;
        if (id == stream->id || id <= after || !flight->uses(flight, address, bytes)) continue;
        while (place && ids[place - 1u] > id) place--;
        if ((place && ids[place - 1u] == id) || place == RONDO__FLIGHTS_AT_ONCE) continue;
        if (count < RONDO__FLIGHTS_AT_ONCE) count++;
        for (uint32_t i = count - 1u; i > place; i--) ids[i] = ids[i - 1u];
        ids[place] = id;
    }
    rondo__mutex_unlock(&device->flights_mutex);
    return count;
}

/* An event behind all that the other stream has. A capture begins when its stream is done, so there is nothing then. */
static rondo_status flight_wait(rondo_stream *stream, rondo_stream *other) {
    rondo_event *event = NULL;
    RONDO__TRY(rondo_event_create(stream->device, &event));
    rondo__mutex_lock(&other->mutex);
    rondo_status status = rondo__stream_recorder(other) ? RONDO_OK : rondo__event_record(event, other);
    rondo__mutex_unlock(&other->mutex);
    if (!status) status = rondo__event_wait(event, stream);
    rondo_event_release(event);
    return status;
}

rondo_status rondo__stream_await_flights(rondo_stream *stream, uint64_t address, uint64_t bytes) {
    uint64_t ids[RONDO__FLIGHTS_AT_ONCE], after = 0;
    uint32_t count;
    do {
        count = flight_find(stream->device, stream, address, bytes, after, ids);
        for (uint32_t i = 0; i < count; i++) {
            rondo_stream *other = rondo__stream_of_id(stream->device, ids[i]);
            after = ids[i];
            if (!other) continue;
            rondo_status status = flight_wait(stream, other);
            rondo__stream_let_go(other);
            RONDO__TRY_NOTE(status,
                            "while going behind a graph's replay on another stream, which uses %llu bytes from "
                            "0x%llx or some of them",
                            (unsigned long long)bytes, (unsigned long long)address);
        }
    } while (count == RONDO__FLIGHTS_AT_ONCE);
    return RONDO_OK;
}
