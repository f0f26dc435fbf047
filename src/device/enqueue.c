/* SPDX-License-Identifier: Apache-2.0
 *
 * The public side of a stream: arguments are looked at here, once, for recorders and backends alike. */
#include "base/sized.h"
#include "device/device.h"

#include <string.h>

static rondo_status enqueue_no_stream(const char *what) {
    return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%s: the stream is null", what);
}

static rondo_status enqueue_bad_argument(const rondo_call *call, uint32_t index) {
    return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "call '%s': argument %u has access %u, which is none of 0 to %u",
                       call->name ? call->name : "", index, call->arguments[index].access, (unsigned)RONDO_ACCESS_BOTH);
}

static rondo_status enqueue_bad_call(const rondo_call *call) {
    if (!call || call->struct_size < sizeof *call) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                           "rondo_stream_launch: the call is null or its struct_size is not "
                           "set: start from RONDO_CALL_INIT");
    }
    if (call->argument_count > RONDO_ARGUMENT_MAX) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "call '%s': %u arguments are more than %u",
                           call->name ? call->name : "", call->argument_count, (unsigned)RONDO_ARGUMENT_MAX);
    }
    return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "call '%s': its %s null", call->name ? call->name : "",
                       call->argument_count && !call->arguments ? "arguments are" : "kernel's function is");
}

rondo_status rondo_stream_launch(rondo_stream *stream, const rondo_call *call) {
    if (!stream) return enqueue_no_stream("rondo_stream_launch");
    if (!call || call->struct_size < sizeof *call || call->argument_count > RONDO_ARGUMENT_MAX ||
        (call->argument_count && !call->arguments) ||
        (!call->kernel.function && (stream->device->properties.capabilities & RONDO_DEVICE_HOST_KERNELS) != 0)) {
        return rondo__stream_refuse(stream, enqueue_bad_call(call));
    }
    for (uint32_t i = 0; i < call->argument_count; i++) {
        if (call->arguments[i].access > RONDO_ACCESS_BOTH)
            return rondo__stream_refuse(stream, enqueue_bad_argument(call, i));
    }
    rondo__recorder *recorder = rondo__stream_recorder(stream);
    return recorder ? recorder->table->launch(recorder, stream, call) : rondo__stream_launch(stream, call);
}

static rondo_status enqueue_bad_range(const rondo_stream *stream, const char *what, const char *side, uint64_t address,
                                      uint64_t bytes) {
    rondo_status status =
        address ? RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%s: %llu bytes from the %s 0x%llx pass the end of all memory",
                              what, (unsigned long long)bytes, side, (unsigned long long)address)
                : RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%s: the %s is null", what, side);
    return rondo__stream_refuse(stream, status);
}

static bool enqueue_range_is_good(uint64_t address, uint64_t bytes) {
    uint64_t end;
    return address && !__builtin_add_overflow(address, bytes, &end);
}

/* What is known of the memory of work that is not recorded: a recorder looks itself. Host memory of a device that cannot
 * address it is another matter, even if the numbers are alike. */
static rondo_status enqueue_check_known(const rondo_stream *stream, const char *what, uint64_t to, uint64_t from,
                                        uint64_t bytes, rondo_copy_kind kind) {
    rondo_device *device = stream->device;
    if (!device->check_ranges) return RONDO_OK;
    if (!(device->properties.capabilities & RONDO_DEVICE_HOST_ADDRESSABLE)) {
        if (kind == RONDO_COPY_HOST_TO_DEVICE) from = 0;
        if (kind == RONDO_COPY_DEVICE_TO_HOST) to = 0;
    }
    RONDO__TRY_NOTE(device->check_ranges(device, to, from, bytes), "%s: nothing was enqueued", what);
    return RONDO_OK;
}

rondo_status rondo_stream_copy(rondo_stream *stream, void *destination, const void *source, uint64_t bytes,
                               rondo_copy_kind kind) {
    static const char what[] = "rondo_stream_copy";
    uint64_t to = (uint64_t)(uintptr_t)destination, from = (uint64_t)(uintptr_t)source;
    if (!stream) return enqueue_no_stream(what);
    if (kind < RONDO_COPY_HOST_TO_DEVICE || kind > RONDO_COPY_DEVICE_TO_DEVICE) {
        return rondo__stream_refuse(stream,
                                    RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%s: %d is no direction", what, (int)kind));
    }
    if (!bytes) return RONDO_OK;
    if (!enqueue_range_is_good(to, bytes)) return enqueue_bad_range(stream, what, "destination", to, bytes);
    if (!enqueue_range_is_good(from, bytes)) return enqueue_bad_range(stream, what, "source", from, bytes);
    rondo__recorder *recorder = rondo__stream_recorder(stream);
    if (recorder) return recorder->table->copy(recorder, stream, to, from, bytes, kind);
    RONDO__TRY(enqueue_check_known(stream, what, to, from, bytes, kind));
    if (rondo__device_has_flights(stream->device)) RONDO__TRY(rondo__stream_await_flights(stream, to, bytes));
    return rondo__stream_copy(stream, to, from, bytes, kind);
}

rondo_status rondo_stream_fill(rondo_stream *stream, void *destination, uint8_t value, uint64_t bytes) {
    static const char what[] = "rondo_stream_fill";
    uint64_t to = (uint64_t)(uintptr_t)destination;
    if (!stream) return enqueue_no_stream(what);
    if (!bytes) return RONDO_OK;
    if (!enqueue_range_is_good(to, bytes)) return enqueue_bad_range(stream, what, "destination", to, bytes);
    rondo__recorder *recorder = rondo__stream_recorder(stream);
    if (recorder) return recorder->table->fill(recorder, stream, to, value, bytes);
    RONDO__TRY(enqueue_check_known(stream, what, to, 0, bytes, RONDO_COPY_DEVICE_TO_DEVICE));
    if (rondo__device_has_flights(stream->device)) RONDO__TRY(rondo__stream_await_flights(stream, to, bytes));
    return rondo__stream_fill(stream, to, value, bytes);
}

rondo_status rondo_stream_host_call(rondo_stream *stream, rondo_host_function function, void *user) {
    if (!stream) return enqueue_no_stream("rondo_stream_host_call");
    if (!function)
        return rondo__stream_refuse(
            stream, RONDO__FAIL(INVALID_ARGUMENT, INPUT, "rondo_stream_host_call: the function is null"));
    rondo__recorder *recorder = rondo__stream_recorder(stream);
    return recorder ? recorder->table->host_call(recorder, stream, function, user)
                    : rondo__stream_host_call(stream, function, user);
}

rondo_status rondo_stream_synchronize(rondo_stream *stream) {
    if (!stream) return enqueue_no_stream("rondo_stream_synchronize");
    rondo__recorder *recorder = rondo__stream_recorder(stream);
    return recorder ? recorder->table->refuse(recorder, stream, "rondo_stream_synchronize")
                    : rondo__stream_synchronize(stream);
}

rondo_status rondo_stream_query(rondo_stream *stream, bool *out_done) {
    if (!stream) return enqueue_no_stream("rondo_stream_query");
    if (!out_done) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "rondo_stream_query: no place for the answer");
    rondo__recorder *recorder = rondo__stream_recorder(stream);
    return recorder ? recorder->table->refuse(recorder, stream, "rondo_stream_query")
                    : rondo__stream_query(stream, out_done);
}

RONDO__HOT rondo_status rondo_stream_capture_status(rondo_stream *stream, rondo_capture_status *out_status) {
    rondo_capture_status own = RONDO_CAPTURE_STATUS_INIT;
    if (!stream) return enqueue_no_stream("rondo_stream_capture_status");
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_INPUT, "rondo_capture_status", out_status));
    rondo__recorder *recorder = rondo__stream_recorder(stream);
    if (recorder) recorder->table->status(recorder, &own);
    rondo__sized_write(&own, sizeof own, out_status);
    return RONDO_OK;
}
