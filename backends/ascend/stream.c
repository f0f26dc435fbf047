/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams: a driver call an entry. A stream that was made stops at the first failure of its work; who waits for it is told which
 * call that was. While the driver captures a stream, what comes here becomes nodes of its graph. */
#include <string.h>

#include "ascend.h"

/* An address's attributes: device, type, size of its pages, and four words of nothing yet. */
enum { STREAM_FAST_LAUNCH = 1, STREAM_FAST_SYNC = 2, STREAM_STOP_ON_FAILURE = 1, STREAM_POINTER_WORDS = 7 };

bool rondo__ascend_streams_left(rondo__ascend_device *device, uint32_t *out_left) {
    if (!rondo__ascend_can(device, RONDO__ASCEND_GROUP_limits)) return false;
    int error = device->library->api.aclrtGetStreamAvailableNum(out_left);
    if (RONDO__ASCEND_REFUSED(device, RONDO__ASCEND_GROUP_limits, aclrtGetStreamAvailableNum, error)) return false;
    return !rondo__ascend_tolerate(device->library, error);
}

/* A stream costs one of few hardware queues: said before the driver does. */
static rondo_status stream_check_budget(rondo__ascend_device *device) {
    uint32_t left = 0;
    if (!rondo__ascend_streams_left(device, &left) || left) return RONDO_OK;
    return RONDO_PLUGIN_FAIL(
        device->host, OUT_OF_RANGE, DRIVER,
        "ascend:%d: no hardware stream is left: streams, and captured graphs, hold them; release some",
        (int)device->index);
}

static rondo_status stream_make(rondo__ascend_device *device, void *native, bool owned, void **out_stream) {
    rondo__ascend_stream *stream = rondo__ascend_allocate(device->host, sizeof *stream);
    rondo__ascend_fate *fate = stream ? rondo__ascend_fate_make(device->host) : NULL;
    if (!fate) {
        rondo__ascend_free(device->host, stream, sizeof *stream);
        return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, DRIVER, "ascend: no memory for a stream");
    }
    stream->device = device;
    stream->native = native;
    stream->owned = owned;
    stream->fate = fate;
    *out_stream = stream;
    return RONDO_OK;
}

rondo_status rondo__ascend_stream_open(rondo__ascend_device *device, void **out_native) {
    (void)pthread_mutex_lock(&device->mutex);
    *out_native = device->spare;
    device->spare = NULL;
    (void)pthread_mutex_unlock(&device->mutex);
    if (*out_native) return RONDO_OK;
    rondo_status status = stream_check_budget(device);
    if (!status)
        status = RONDO__ASCEND_CALL(device->library, aclrtCreateStreamWithConfig, out_native, 0,
                                    STREAM_FAST_LAUNCH | STREAM_FAST_SYNC);
    if (status || !rondo__ascend_can(device, RONDO__ASCEND_GROUP_failure)) return status;
    int error = device->library->api.aclrtSetStreamFailureMode(*out_native, STREAM_STOP_ON_FAILURE);
    if (!RONDO__ASCEND_REFUSED(device, RONDO__ASCEND_GROUP_failure, aclrtSetStreamFailureMode, error))
        (void)rondo__ascend_tolerate(device->library, error);
    return RONDO_OK;
}

/* Asked before the device says what it can do. The stream is the first one's; one that cannot be made is no answer. */
void rondo__ascend_stream_probe(rondo__ascend_device *device) {
    uint32_t about[STREAM_POINTER_WORDS] = {0};
    void *first = NULL;
    rondo_status status = rondo__ascend_stream_open(device, &first);
    device->host->status_release(status);
    if (!status) device->spare = first;
    if (!rondo__ascend_can(device, RONDO__ASCEND_GROUP_pointer)) return;
    int error = device->library->api.aclrtPointerGetAttributes(device, about);
    if (!RONDO__ASCEND_REFUSED(device, RONDO__ASCEND_GROUP_pointer, aclrtPointerGetAttributes, error))
        (void)rondo__ascend_tolerate(device->library, error);
}

static rondo_status stream_create(void *self, uint32_t flags, int32_t priority, void **out_stream) {
    rondo__ascend_device *device = self;
    void *before = NULL, *native = NULL;
    (void)priority;
    if (flags & ~(uint32_t)RONDO_STREAM_ASYNCHRONOUS)
        return RONDO_PLUGIN_FAIL(device->host, INVALID_ARGUMENT, DRIVER, "ascend: unknown stream flags 0x%x", flags);
    rondo_status status = rondo__ascend_enter(device, &before);
    if (status) return status;
    status = rondo__ascend_stream_open(device, &native);
    if (!status) {
        status = stream_make(device, native, true, out_stream);
        if (status) (void)RONDO__ASCEND_TRY(device->library, aclrtDestroyStream, native);
    }
    return rondo__ascend_left(device, before, status);
}

static rondo_status stream_wrap(void *self, void *native, void **out_stream) {
    return stream_make(self, native, false, out_stream);
}

/* Nothing runs there any more: host functions either ran or were dropped. */
static void stream_forget(rondo__ascend_stream *stream) {
    const rondo_host_api *host = stream->device->host;
    rondo__ascend_host_calls_free(host, stream->host_calls);
    stream->host_calls = NULL;
    for (size_t i = 0; i < stream->launched_count; i++) rondo__ascend_fate_release(host, stream->launched[i]);
    stream->launched_count = 0;
}

static void stream_destroy(void *self, void *handle) {
    rondo__ascend_device *device = self;
    rondo__ascend_stream *stream = handle;
    void *before = NULL;
    rondo_status status = rondo__ascend_enter(device, &before);
    if (!status && stream->owned) status = RONDO__ASCEND_CALL(device->library, aclrtDestroyStream, stream->native);
    device->host->status_release(status);
    rondo__ascend_leave(device, before);
    stream_forget(stream);
    rondo__ascend_free(device->host, stream->launched, stream->launched_capacity * sizeof(rondo__ascend_fate *));
    rondo__ascend_fate_release(device->host, stream->fate);
    rondo__ascend_free(device->host, stream, sizeof *stream);
}

/* ------------------------------------------------------------------------------------------------------- work */

static rondo_status stream_launch(void *self, const rondo_call *call) {
    rondo__ascend_stream *stream = self;
    rondo__ascend_device *device = stream->device;
    uint64_t words[RONDO_ARGUMENT_MAX];
    void *before = NULL;
    rondo_status status = rondo__ascend_enter(device, &before);
    if (status) return status;
    rondo__ascend_count(device, RONDO__ASCEND_COUNT_LAUNCHES);
    if (stream->capture) return rondo__ascend_left(device, before, rondo__ascend_graph_launch(stream, call));
    for (uint32_t i = 0; i < call->argument_count; i++) words[i] = call->arguments[i].word;
    status = rondo__ascend_launch(device, stream->native, call->kernel, words, call->argument_count, call->name,
                                  stream->fate);
    return rondo__ascend_left(device, before, status);
}

/* A copy is asked for in a direction; the driver would take it as advice. */
static rondo_status stream_check_side(rondo__ascend_device *device, uint64_t address, bool on_device,
                                      const char *side) {
    enum { LOCATION_DEVICE = 1, TYPE = 1 };
    uint32_t about[STREAM_POINTER_WORDS] = {0};
    const void *pointer = (const void *)(uintptr_t)address;
    if (!rondo__ascend_can(device, RONDO__ASCEND_GROUP_pointer)) return RONDO_OK;
    if (RONDO__ASCEND_TRY(device->library, aclrtPointerGetAttributes, pointer, about)) return RONDO_OK;
    bool is = about[TYPE] == LOCATION_DEVICE;
    if (is == on_device) return RONDO_OK;
    return RONDO_PLUGIN_FAIL(device->host, INVALID_ARGUMENT, DRIVER,
                             "ascend: the %s of the copy, 0x%llx, is %s device memory", side,
                             (unsigned long long)address, is ? "" : "not");
}

static rondo_status stream_copy_at(rondo__ascend_stream *stream, uint64_t destination, uint64_t source, uint64_t bytes,
                                   rondo_copy_kind kind) {
    rondo__ascend_device *device = stream->device;
    rondo_status status = stream_check_side(device, destination, kind != RONDO_COPY_DEVICE_TO_HOST, "destination");
    if (!status) status = stream_check_side(device, source, kind != RONDO_COPY_HOST_TO_DEVICE, "source");
    if (!status && stream->capture) status = rondo__ascend_graph_other(stream);
    if (status) return status;
    /* Numbers of the direction are the driver's: 1 to the device, 2 back, 3 on it. */
    return RONDO__ASCEND_CALL(device->library, aclrtMemcpyAsync, (void *)(uintptr_t)destination, (size_t)bytes,
                              (const void *)(uintptr_t)source, (size_t)bytes, (int)kind, stream->native);
}

static rondo_status stream_copy(void *self, uint64_t destination, uint64_t source, uint64_t bytes,
                                rondo_copy_kind kind) {
    rondo__ascend_stream *stream = self;
    void *before = NULL;
    rondo__ascend_count(stream->device, RONDO__ASCEND_COUNT_COPIES);
    if (!bytes && !stream->capture) return RONDO_OK;
    if (!bytes) return rondo__ascend_graph_other(stream); /* it has its number all the same */
    rondo_status status = rondo__ascend_enter(stream->device, &before);
    if (status) return status;
    return rondo__ascend_left(stream->device, before, stream_copy_at(stream, destination, source, bytes, kind));
}

static rondo_status stream_fill(void *self, uint64_t address, uint8_t value, uint64_t bytes) {
    rondo__ascend_stream *stream = self;
    void *before = NULL;
    rondo__ascend_count(stream->device, RONDO__ASCEND_COUNT_FILLS);
    rondo_status status = stream->capture ? rondo__ascend_graph_other(stream) : RONDO_OK;
    if (!bytes || status) return status;
    status = rondo__ascend_enter(stream->device, &before);
    if (status) return status;
    status = RONDO__ASCEND_CALL(stream->device->library, aclrtMemsetAsync, (void *)(uintptr_t)address, (size_t)bytes,
                                value, (size_t)bytes, stream->native);
    return rondo__ascend_left(stream->device, before, status);
}

/* Those at the front that ran are done with. */
static void stream_reap(rondo__ascend_stream *stream) {
    while (stream->host_calls && atomic_load(&stream->host_calls->done)) {
        rondo__ascend_host_call *call = stream->host_calls;
        stream->host_calls = call->next;
        rondo__ascend_free(stream->device->host, call, sizeof *call);
    }
}

static rondo_status stream_host_call(void *self, rondo_host_function function, void *user) {
    rondo__ascend_stream *stream = self;
    rondo__ascend_device *device = stream->device;
    void *before = NULL;
    rondo__ascend_host_call *call = rondo__ascend_allocate(device->host, sizeof *call);
    if (!call) return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, DRIVER, "ascend: no memory for a host function");
    call->function = function;
    call->user = user;
    call->fate = stream->capture ? stream->capture->fate : stream->fate;
    rondo__ascend_count(device, RONDO__ASCEND_COUNT_HOST_CALLS);
    rondo_status status = stream->capture ? rondo__ascend_graph_other(stream) : RONDO_OK;
    if (!status) status = rondo__ascend_enter(device, &before);
    if (status) {
        rondo__ascend_free(device->host, call, sizeof *call);
        return status;
    }
    stream_reap(stream);
    /* It is kept even where only what follows it failed: the driver may have it. */
    if (stream->capture) {
        call->next = stream->capture->host_calls;
        stream->capture->host_calls = call;
    } else {
        if (!stream->host_calls) stream->host_calls_end = &stream->host_calls;
        *stream->host_calls_end = call;
        stream->host_calls_end = &call->next;
    }
    return rondo__ascend_left(device, before, rondo__ascend_host_call_enqueue(device, stream->native, call));
}

/* --------------------------------------------------------------------------------------------------- waiting */

rondo_status rondo__ascend_stream_ran(rondo__ascend_stream *stream, rondo__ascend_fate *fate) {
    const rondo_host_api *host = stream->device->host;
    for (size_t i = 0; i < stream->launched_count; i++)
        if (stream->launched[i] == fate) return RONDO_OK;
    if (stream->launched_count == stream->launched_capacity) {
        size_t capacity = stream->launched_capacity ? stream->launched_capacity * 2 : 8;
        void *bigger = host->allocator.reallocate(host->allocator.self, stream->launched,
                                                  stream->launched_capacity * sizeof *stream->launched,
                                                  capacity * sizeof *stream->launched, 0);
        if (!bigger)
            return RONDO_PLUGIN_FAIL(host, OUT_OF_MEMORY, DRIVER, "ascend: no memory to note that a graph ran");
        stream->launched = bigger;
        stream->launched_capacity = capacity;
    }
    atomic_fetch_add(&fate->references, 1);
    stream->launched[stream->launched_count++] = fate;
    return RONDO_OK;
}

/* The call that failed, by name, and forgotten; null: none of ours. */
static rondo_status stream_take_fate(const rondo__ascend_stream *stream, rondo__ascend_fate *fate) {
    if (atomic_load(&fate->state) != 2) return RONDO_OK;
    rondo_status status =
        RONDO_PLUGIN_FAIL(stream->device->host, KERNEL_FAILED, KERNEL, "%s%s%s failed: it returned %d",
                          fate->host ? "" : "'", fate->name, fate->host ? "" : "'", (int)fate->reason);
    atomic_store(&fate->state, 0);
    return status;
}

static rondo_status stream_verdict(const rondo__ascend_stream *stream, rondo_status status) {
    const rondo_host_api *host = stream->device->host;
    rondo_status named = stream_take_fate(stream, stream->fate);
    for (size_t i = 0; i < stream->launched_count && !named; i++) named = stream_take_fate(stream, stream->launched[i]);
    if (!named) return status;
    if (status && host->status_code(status) != RONDO_CODE_KERNEL_FAILED)
        named = host->status_note(named, "and its stream failed, too");
    host->status_release(status);
    return named;
}

static rondo_status stream_synchronize(void *self) {
    rondo__ascend_stream *stream = self;
    void *before = NULL;
    rondo_status status = rondo__ascend_enter(stream->device, &before);
    if (status) return status;
    rondo__ascend_count(stream->device, RONDO__ASCEND_COUNT_SYNCHRONIZES);
    int error = stream->device->library->api.aclrtSynchronizeStream(stream->native);
    status = rondo__ascend_error(stream->device->library, "aclrtSynchronizeStream", error);
    rondo__ascend_leave(stream->device, before);
    if (stream->capture) return status;
    status = stream_verdict(stream, status);
    stream_forget(stream);
    return status;
}

static rondo_status stream_query(void *self, bool *out_done) {
    rondo__ascend_stream *stream = self;
    void *before = NULL;
    int busy = 0;
    rondo_status status = rondo__ascend_enter(stream->device, &before);
    if (status) return status;
    status = RONDO__ASCEND_CALL(stream->device->library, aclrtStreamQuery, stream->native, &busy);
    if (!status) *out_done = busy == 0;
    return rondo__ascend_left(stream->device, before, status);
}

const rondo_stream_table rondo__ascend_stream_table = {.struct_size = sizeof(rondo_stream_table),
                                                       .create = stream_create,
                                                       .wrap = stream_wrap,
                                                       .destroy = stream_destroy,
                                                       .launch = stream_launch,
                                                       .copy = stream_copy,
                                                       .fill = stream_fill,
                                                       .host_call = stream_host_call,
                                                       .synchronize = stream_synchronize,
                                                       .query = stream_query,
                                                       .event_create = rondo__ascend_event_create,
                                                       .event_destroy = rondo__ascend_event_destroy,
                                                       .event_record = rondo__ascend_event_record,
                                                       .event_wait = rondo__ascend_event_wait,
                                                       .event_query = rondo__ascend_event_query,
                                                       .event_synchronize = rondo__ascend_event_synchronize};
