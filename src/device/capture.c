/* SPDX-License-Identifier: Apache-2.0
 *
 * The captures in progress on a device. A call that belongs to no stream, or to one that nobody records, finds them here:
 * to join one by its id, or to ask whether it may be made while they last. What is called under the mutex takes no lock. */
#include "device/device.h"

void rondo__device_capture_begin(rondo_device *device, rondo__recorder *recorder) {
    rondo__mutex_lock(&device->captures_mutex);
    recorder->next = device->captures;
    __atomic_store_n(&device->captures, recorder, __ATOMIC_RELEASE);
    rondo__mutex_unlock(&device->captures_mutex);
}

void rondo__device_capture_end(rondo_device *device, rondo__recorder *recorder) {
    rondo__mutex_lock(&device->captures_mutex);
    if (device->captures == recorder) {
        __atomic_store_n(&device->captures, recorder->next, __ATOMIC_RELEASE);
    } else {
        rondo__recorder *before = device->captures;
        while (before && before->next != recorder) before = before->next;
        if (before) before->next = recorder->next;
    }
    recorder->next = NULL;
    rondo__mutex_unlock(&device->captures_mutex);
}

rondo__recorder *rondo__device_capture(rondo_device *device, uint64_t id) {
    rondo__mutex_lock(&device->captures_mutex);
    rondo__recorder *recorder = device->captures;
    while (recorder && recorder->id != id) recorder = recorder->next;
    if (recorder && !recorder->table->hold(recorder)) recorder = NULL;
    rondo__mutex_unlock(&device->captures_mutex);
    return recorder;
}

rondo_status rondo__device_unsafe(rondo_device *device, const char *what) {
    rondo_status status = RONDO_OK;
    if (!__atomic_load_n(&device->captures, __ATOMIC_ACQUIRE)) return RONDO_OK;
    rondo__mutex_lock(&device->captures_mutex);
    for (rondo__recorder *recorder = device->captures; recorder; recorder = recorder->next) {
        status = rondo__status_first(status, recorder->table->unsafe(recorder, what));
    }
    rondo__mutex_unlock(&device->captures_mutex);
    return status;
}

rondo_status rondo__stream_refuse(const rondo_stream *stream, rondo_status status) {
    rondo__recorder *recorder = status ? rondo__stream_recorder(stream) : NULL;
    if (recorder && recorder->table->missing) recorder->table->missing(recorder, status);
    return status;
}
