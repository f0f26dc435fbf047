/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes before what, by clocks. Every operation has a time in its stream's slot; every stream has a clock of the
 * times that it knows to be over: through events that it waited for, and through what the host had seen the end of when
 * it enqueued. The host is one party: threads of a program are taken to tell each other. */
#include <string.h>

#include "sim.h"

#define RONDO__SIM_SLOTS_FIRST 8u

static uint64_t sim_clock_at(const rondo__sim_clock *clock, uint32_t slot) {
    return clock && slot < clock->count ? clock->times[slot] : 0;
}

static size_t sim_clock_size(uint32_t count) { return sizeof(rondo__sim_clock) + count * sizeof(uint64_t); }

void rondo__sim_clock_release(rondo__sim_device *device, rondo__sim_clock *clock) {
    if (clock && --clock->references == 0) rondo__sim_release(device, clock, sim_clock_size(clock->count), 0);
}

static rondo_status sim_clock_copy(const rondo__sim_device *device, const rondo__sim_clock *clock,
                                   rondo__sim_clock **out_clock) {
    uint32_t count = device->slot_count;
    rondo__sim_clock *copy = rondo__sim_allocate(device, sim_clock_size(count), 0);
    if (!copy) return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, DRIVER, "sim: no memory for a stream's clock");
    copy->references = 1;
    copy->count = count;
    for (uint32_t i = 0; i < count; i++) copy->times[i] = sim_clock_at(clock, i);
    *out_clock = copy;
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------ slots */

static bool sim_slots_grow(rondo__sim_device *device) {
    uint32_t count = device->slot_count ? device->slot_count * 2u : RONDO__SIM_SLOTS_FIRST;
    uint64_t *times = rondo__sim_allocate(device, count * sizeof *times, 0);
    uint64_t *host = rondo__sim_allocate(device, count * sizeof *host, 0);
    bool *used = rondo__sim_allocate(device, count * sizeof *used, 0);
    if (!times || !host || !used) {
        rondo__sim_release(device, times, count * sizeof *times, 0);
        rondo__sim_release(device, host, count * sizeof *host, 0);
        rondo__sim_release(device, used, count * sizeof *used, 0);
        return false;
    }
    memset(times, 0, count * sizeof *times);
    memset(host, 0, count * sizeof *host);
    memset(used, 0, count * sizeof *used);
    if (device->slot_count) {
        memcpy(times, device->slot_times, device->slot_count * sizeof *times);
        memcpy(host, device->host_times, device->slot_count * sizeof *host);
        memcpy(used, device->slot_used, device->slot_count * sizeof *used);
    }
    rondo__sim_order_close(device);
    device->slot_times = times;
    device->host_times = host;
    device->slot_used = used;
    device->slot_count = count;
    return true;
}

rondo_status rondo__sim_slot_take(rondo__sim_stream *stream) {
    rondo__sim_device *device = stream->device;
    uint32_t slot = 0;
    while (slot < device->slot_count && device->slot_used[slot]) slot++;
    if (slot == device->slot_count && !sim_slots_grow(device)) {
        return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, DRIVER, "sim: no memory for a stream's slot");
    }
    device->slot_used[slot] = true;
    stream->slot = slot;
    stream->time = device->slot_times[slot];
    return RONDO_OK;
}

/* The core has synchronised, so whoever gets the slot next comes after everything that had it. */
void rondo__sim_slot_give_back(rondo__sim_stream *stream) {
    rondo__sim_device *device = stream->device;
    rondo__sim_order_host_saw(stream);
    device->slot_used[stream->slot] = false;
    rondo__sim_clock_release(device, stream->clock);
    stream->clock = NULL;
}

void rondo__sim_order_close(rondo__sim_device *device) {
    rondo__sim_release(device, device->slot_times, device->slot_count * sizeof *device->slot_times, 0);
    rondo__sim_release(device, device->host_times, device->slot_count * sizeof *device->host_times, 0);
    rondo__sim_release(device, device->slot_used, device->slot_count * sizeof *device->slot_used, 0);
}

/* --------------------------------------------------------------------------------------------------- learning */

static rondo_status sim_order_learn(rondo__sim_stream *stream, const uint64_t *times, uint32_t count) {
    rondo__sim_clock *clock = stream->clock;
    bool news = false;
    for (uint32_t i = 0; i < count && !news; i++) news = i != stream->slot && times[i] > sim_clock_at(clock, i);
    if (!news) return RONDO_OK;
    if (!clock || clock->references > 1u || clock->count < count) {
        rondo_status status = sim_clock_copy(stream->device, stream->clock, &clock);
        if (status) return status;
        rondo__sim_clock_release(stream->device, stream->clock);
        stream->clock = clock;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (times[i] > clock->times[i]) clock->times[i] = times[i];
    }
    return RONDO_OK;
}

static rondo_status sim_order_learn_from_host(rondo__sim_stream *stream) {
    const rondo__sim_device *device = stream->device;
    if (stream->host_version == device->host_version) return RONDO_OK;
    rondo_status status = sim_order_learn(stream, device->host_times, device->slot_count);
    if (!status) stream->host_version = device->host_version;
    return status;
}

rondo_status rondo__sim_order_join(rondo__sim_stream *stream, const rondo__sim_clock *clock) {
    return clock ? sim_order_learn(stream, clock->times, clock->count) : RONDO_OK;
}

rondo_status rondo__sim_order_enqueue(rondo__sim_stream *stream, rondo__sim_operation *operation) {
    rondo_status status = sim_order_learn_from_host(stream);
    if (status) return status;
    stream->device->slot_times[stream->slot] = ++stream->time;
    operation->clock = stream->clock;
    if (operation->clock) operation->clock->references++;
    return RONDO_OK;
}

rondo_status rondo__sim_order_snapshot(rondo__sim_stream *stream, rondo__sim_clock **out_clock) {
    rondo_status status = sim_order_learn_from_host(stream);
    if (!status) status = sim_clock_copy(stream->device, stream->clock, out_clock);
    if (!status) (*out_clock)->times[stream->slot] = stream->time;
    return status;
}

static void sim_order_host_learn(rondo__sim_device *device, uint32_t slot, uint64_t time) {
    if (time <= device->host_times[slot]) return;
    device->host_times[slot] = time;
    device->host_version++;
}

void rondo__sim_order_host_saw_clock(rondo__sim_device *device, const rondo__sim_clock *clock) {
    for (uint32_t i = 0; clock && i < clock->count; i++) sim_order_host_learn(device, i, clock->times[i]);
}

void rondo__sim_order_host_saw(rondo__sim_stream *stream) {
    rondo__sim_order_host_saw_clock(stream->device, stream->clock);
    sim_order_host_learn(stream->device, stream->slot, stream->time);
}

bool rondo__sim_order_host_saw_all(const rondo__sim_device *device) {
    for (uint32_t i = 0; i < device->slot_count; i++) {
        if (device->host_times[i] < device->slot_times[i]) return false;
    }
    return true;
}

bool rondo__sim_order_before(const rondo__sim_label *label, uint32_t slot, const rondo__sim_clock *clock) {
    return label->slot == slot || sim_clock_at(clock, label->slot) >= label->time;
}
