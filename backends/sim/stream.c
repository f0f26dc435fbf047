/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues. Whatever is enqueued is copied into a block of its own, so that the caller's arguments, names and host data
 * are free again when the call returns: a program that relied on anything else would be found out. */
#include <string.h>

#include "sim.h"

static rondo_status sim_stream_create(void *self, uint32_t flags, int32_t priority, void **out_stream) {
    rondo__sim_device *device = self;
    (void)priority; /* the seed alone decides */
    if (flags & ~(uint32_t)RONDO_STREAM_ASYNCHRONOUS) {
        return RONDO_PLUGIN_FAIL(device->host, INVALID_ARGUMENT, DRIVER, "sim: unknown stream flags 0x%x", flags);
    }
    rondo__sim_stream *stream = rondo__sim_allocate(device, sizeof *stream, 0);
    if (!stream) return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, DRIVER, "sim: no memory for a stream");
    memset(stream, 0, sizeof *stream);
    stream->device = device;
    stream->end = &stream->first;
    (void)pthread_mutex_lock(&device->mutex);
    rondo_status status = rondo__sim_slot_take(stream);
    if (status) {
        (void)pthread_mutex_unlock(&device->mutex);
        rondo__sim_release(device, stream, sizeof *stream, 0);
        return status;
    }
    rondo__sim_stream *last = device->streams;
    while (last && last->next) last = last->next;
    stream->previous = last;
    if (last) last->next = stream;
    else device->streams = stream;
    (void)pthread_mutex_unlock(&device->mutex);
    *out_stream = stream;
    return RONDO_OK;
}

static void sim_stream_destroy(void *self, void *handle) {
    rondo__sim_device *device = self;
    rondo__sim_stream *stream = handle;
    (void)pthread_mutex_lock(&device->mutex);
    while (stream->first) {
        rondo__sim_operation *operation = stream->first;
        stream->first = operation->next;
        rondo__sim_operation_finish(device, operation, RONDO__SIM_FAILURE_NEVER_TOLD);
    }
    while (stream->ends) {
        rondo__sim_operation *end = stream->ends;
        stream->ends = end->next;
        rondo__sim_release(device, end, end->size, 0);
    }
    if (stream->previous) stream->previous->next = stream->next;
    else device->streams = stream->next;
    if (stream->next) stream->next->previous = stream->previous;
    rondo__sim_slot_give_back(stream);
    (void)pthread_mutex_unlock(&device->mutex);
    device->host->status_release(stream->failure);
    rondo__sim_release(device, stream, sizeof *stream, 0);
}

rondo_status rondo__sim_check_stream(const rondo__sim_stream *stream, const char *what) {
    if (!stream->capturing) return RONDO_OK;
    return RONDO_PLUGIN_FAIL(stream->device->host, INVALID_STATE, CAPTURE,
                             "sim: %s reached a stream that a capture "
                             "records",
                             what);
}

rondo_status rondo__sim_operation_make(rondo__sim_device *device, rondo__sim_kind kind, size_t extra,
                                       rondo__sim_operation **out_operation) {
    rondo__sim_operation *operation = NULL;
    size_t size = 0;
    if (!__builtin_add_overflow(sizeof *operation, extra, &size)) operation = rondo__sim_allocate(device, size, 0);
    if (!operation) {
        return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, DRIVER, "sim: no memory to enqueue %zu bytes", extra);
    }
    memset(operation, 0, sizeof *operation);
    operation->kind = kind;
    operation->size = size;
    operation->name = "";
    operation->writes = operation->own_writes;
    *out_operation = operation;
    return RONDO_OK;
}

rondo_status rondo__sim_push(rondo__sim_stream *stream, rondo__sim_operation *operation, int count) {
    rondo_status status = rondo__sim_order_enqueue(stream, operation);
    if (!status) status = rondo__sim_shadow_enter(stream->device, operation, stream->slot, stream->time);
    if (status) {
        rondo__sim_operation_finish(stream->device, operation, RONDO__SIM_FAILURE_NEVER_TOLD);
        return status;
    }
    *stream->end = operation;
    stream->end = &operation->next;
    stream->device->counts[count]++;
    return RONDO_OK;
}

/* Enters the device and looks whether the stream may get work. */
static rondo_status sim_stream_enter(const rondo__sim_stream *stream, const char *what) {
    rondo_status status = rondo__sim_enter(stream->device, what);
    if (status) return status;
    status = rondo__sim_check_stream(stream, what);
    if (status) rondo__sim_leave(stream->device);
    return status;
}

/* Behind the operation: words, arguments, sums, writes, name. */
static void sim_fill_launch(rondo__sim_operation *operation, const rondo_call *call, size_t name_size) {
    uint64_t *words = (uint64_t *)(void *)(operation + 1);
    rondo_argument *arguments = (rondo_argument *)(void *)(words + call->argument_count);
    uint64_t *sums = (uint64_t *)(void *)(arguments + call->argument_count);
    rondo__sim_span *writes = (rondo__sim_span *)(void *)(sums + call->argument_count);
    char *name = (char *)(writes + call->argument_count);
    for (uint32_t i = 0; i < call->argument_count; i++) {
        words[i] = call->arguments[i].word;
        arguments[i] = call->arguments[i];
    }
    if (name_size) memcpy(name, call->name, name_size);
    operation->kernel = call->kernel;
    operation->argument_count = call->argument_count;
    operation->words = words;
    operation->arguments = arguments;
    operation->sums = sums;
    operation->writes = writes;
    if (name_size) operation->name = name;
}

static rondo_status sim_launch(void *self, const rondo_call *call) {
    rondo__sim_stream *stream = self;
    rondo__sim_operation *operation = NULL;
    size_t name_size = call->name ? strlen(call->name) + 1u : 0;
    size_t argument = 2u * sizeof(uint64_t) + sizeof(rondo_argument) + sizeof(rondo__sim_span);
    size_t extra = call->argument_count * argument + name_size;
    rondo_status status = sim_stream_enter(stream, "launch");
    if (status) return status;
    status = rondo__sim_operation_make(stream->device, RONDO__SIM_LAUNCH, extra, &operation);
    if (!status) {
        sim_fill_launch(operation, call, name_size);
        status = rondo__sim_push(stream, operation, RONDO__SIM_COUNT_LAUNCHES);
    }
    rondo__sim_leave(stream->device);
    return status;
}

static rondo_status sim_bad_range(const rondo__sim_device *device, const char *what, uint64_t address, uint64_t bytes,
                                  const char *problem) {
    return RONDO_PLUGIN_FAIL(device->host, INVALID_ARGUMENT, MEMORY, "sim: %s of %llu bytes at 0x%llx, which %s", what,
                             (unsigned long long)bytes, (unsigned long long)address, problem);
}

static rondo_status sim_check_device_side(const rondo__sim_device *device, const char *what, uint64_t address,
                                          uint64_t bytes) {
    const char *problem = rondo__sim_range_problem(device, address, bytes);
    return problem ? sim_bad_range(device, what, address, bytes, problem) : RONDO_OK;
}

static rondo_status sim_check_host_side(const rondo__sim_device *device, const char *what, uint64_t address,
                                        uint64_t bytes) {
    if (!rondo__sim_range_is_device(device, address, bytes)) return RONDO_OK;
    return sim_bad_range(device, what, address, bytes, "is device memory where the copy's direction says host memory");
}

static rondo_status sim_check_copy(const rondo__sim_device *device, uint64_t destination, uint64_t source,
                                   uint64_t bytes, rondo_copy_kind kind) {
    static const char read[] = "a copy from the source", write[] = "a copy to the destination";
    rondo_status status = kind == RONDO_COPY_HOST_TO_DEVICE ? sim_check_host_side(device, read, source, bytes)
                                                            : sim_check_device_side(device, read, source, bytes);
    if (status) return status;
    return kind == RONDO_COPY_DEVICE_TO_HOST ? sim_check_host_side(device, write, destination, bytes)
                                             : sim_check_device_side(device, write, destination, bytes);
}

static rondo_status sim_copy(void *self, uint64_t destination, uint64_t source, uint64_t bytes, rondo_copy_kind kind) {
    rondo__sim_stream *stream = self;
    rondo__sim_operation *operation = NULL;
    size_t extra = kind == RONDO_COPY_HOST_TO_DEVICE ? (size_t)bytes : 0;
    rondo_status status = sim_stream_enter(stream, "copy");
    if (status) return status;
    status = sim_check_copy(stream->device, destination, source, bytes, kind);
    if (!status) status = rondo__sim_operation_make(stream->device, RONDO__SIM_COPY, extra, &operation);
    if (!status) {
        operation->destination = destination;
        operation->source = source;
        operation->bytes = bytes;
        operation->direction = kind;
        operation->sums = &operation->own_sum;
        if (extra) {
            if (rondo__sim_range_is_pinned(stream->device, source, bytes)) operation->pinned = source;
            memcpy(operation + 1, (const void *)(uintptr_t)source, extra);
            operation->source = (uint64_t)(uintptr_t)(operation + 1);
        }
        status = rondo__sim_push(stream, operation, RONDO__SIM_COUNT_COPIES);
    }
    rondo__sim_leave(stream->device);
    return status;
}

static rondo_status sim_fill(void *self, uint64_t address, uint8_t value, uint64_t bytes) {
    rondo__sim_stream *stream = self;
    rondo__sim_operation *operation = NULL;
    rondo_status status = sim_stream_enter(stream, "fill");
    if (status) return status;
    status = sim_check_device_side(stream->device, "a fill", address, bytes);
    if (!status) status = rondo__sim_operation_make(stream->device, RONDO__SIM_FILL, 0, &operation);
    if (!status) {
        operation->destination = address;
        operation->bytes = bytes;
        operation->value = value;
        status = rondo__sim_push(stream, operation, RONDO__SIM_COUNT_FILLS);
    }
    rondo__sim_leave(stream->device);
    return status;
}

static rondo_status sim_host_call(void *self, rondo_host_function function, void *user) {
    rondo__sim_stream *stream = self;
    rondo__sim_operation *operation = NULL;
    rondo_status status = sim_stream_enter(stream, "host call");
    if (status) return status;
    status = rondo__sim_operation_make(stream->device, RONDO__SIM_HOST_CALL, 0, &operation);
    if (!status) {
        operation->function = function;
        operation->user = user;
        status = rondo__sim_push(stream, operation, RONDO__SIM_COUNT_HOST_CALLS);
    }
    rondo__sim_leave(stream->device);
    return status;
}

static rondo_status sim_condition_begin(void *self, uint64_t address) {
    rondo__sim_stream *stream = self;
    rondo__sim_device *device = stream->device;
    rondo__sim_operation *begin = NULL, *end = NULL;
    rondo_status status = sim_stream_enter(stream, "condition");
    if (status) return status;
    status = sim_check_device_side(device, "a condition", address, sizeof(int64_t));
    if (!status) status = rondo__sim_operation_make(device, RONDO__SIM_END, 0, &end);
    if (!status) status = rondo__sim_operation_make(device, RONDO__SIM_BEGIN, 0, &begin);
    if (!status) {
        begin->source = address;
        begin->bytes = sizeof(int64_t);
        begin->sums = &begin->own_sum;
        status = rondo__sim_push(stream, begin, RONDO__SIM_COUNT_CONDITIONS);
    }
    if (!status) {
        end->next = stream->ends;
        stream->ends = end;
    } else if (end) {
        rondo__sim_release(device, end, end->size, 0);
    }
    rondo__sim_leave(device);
    return status;
}

/* It has no place in the order of streams: it uses nothing. */
static void sim_condition_end(void *self) {
    rondo__sim_stream *stream = self;
    (void)pthread_mutex_lock(&stream->device->mutex);
    rondo__sim_operation *end = stream->ends;
    if (end) {
        stream->ends = end->next;
        end->next = NULL;
        *stream->end = end;
        stream->end = &end->next;
    }
    (void)pthread_mutex_unlock(&stream->device->mutex);
}

static rondo_status sim_take_failure(rondo__sim_stream *stream) {
    rondo_status status = stream->failure;
    if (status && stream->dropped) {
        status = stream->device->host->status_note(status, "%llu later operations of the stream were dropped",
                                                   (unsigned long long)stream->dropped);
    }
    stream->failure = RONDO_OK;
    stream->failure_number = 0;
    stream->dropped = 0;
    return status;
}

static rondo_status sim_synchronize(void *self) {
    rondo__sim_stream *stream = self;
    rondo__sim_device *device = stream->device;
    bool goes_on = true;
    rondo_status status = sim_stream_enter(stream, "synchronize");
    if (status) return status;
    device->counts[RONDO__SIM_COUNT_SYNCHRONIZES]++;
    while (goes_on && !rondo__sim_stream_is_done(stream)) goes_on = rondo__sim_step(device);
    if (goes_on) {
        rondo__sim_order_host_saw(stream);
        rondo__sim_shadow_settle(device);
        status = sim_take_failure(stream);
    } else {
        status = RONDO_PLUGIN_FAIL(device->host, INTERNAL, DRIVER, "sim: the streams wait for each other");
    }
    rondo__sim_leave(device);
    return status;
}

/* Every question lets one operation run, so that asking again and again gets an end. */
static rondo_status sim_query(void *self, bool *out_done) {
    rondo__sim_stream *stream = self;
    rondo_status status = sim_stream_enter(stream, "query");
    if (status) return status;
    if (!rondo__sim_stream_is_done(stream)) (void)rondo__sim_step(stream->device);
    *out_done = rondo__sim_stream_is_done(stream);
    if (*out_done) rondo__sim_order_host_saw(stream);
    rondo__sim_leave(stream->device);
    return RONDO_OK;
}

static void sim_capture_changed(void *self, bool active, rondo_capture_mode mode) {
    rondo__sim_stream *stream = self;
    (void)mode;
    (void)pthread_mutex_lock(&stream->device->mutex);
    stream->capturing = active;
    (void)pthread_mutex_unlock(&stream->device->mutex);
}

/* No execute_list: lists reach this device call by call, as they do every device that leaves it out. */
const rondo_stream_table rondo__sim_stream_table = {.struct_size = sizeof(rondo_stream_table),
                                                    .create = sim_stream_create,
                                                    .destroy = sim_stream_destroy,
                                                    .launch = sim_launch,
                                                    .copy = sim_copy,
                                                    .fill = sim_fill,
                                                    .host_call = sim_host_call,
                                                    .synchronize = sim_synchronize,
                                                    .query = sim_query,
                                                    .event_create = rondo__sim_event_create,
                                                    .event_destroy = rondo__sim_event_destroy,
                                                    .event_record = rondo__sim_event_record,
                                                    .event_wait = rondo__sim_event_wait,
                                                    .event_query = rondo__sim_event_query,
                                                    .event_synchronize = rondo__sim_event_synchronize,
                                                    .capture_changed = sim_capture_changed,
                                                    .condition_begin = sim_condition_begin,
                                                    .condition_end = sim_condition_end};
