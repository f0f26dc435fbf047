/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams: one look at the recorder, then the backend.
 *
 * A backend never sees two calls on one stream at once. On an inline device only the stream's own thread calls; on
 * others freeing memory waits for everybody's streams, so each call there takes the stream's mutex. The mutex is
 * recursive: a host function that calls back on its own stream reaches the backend, which refuses it by name. */
#include "base/sized.h"
#include "device/device.h"

/* ------------------------------------------------------------------------------------------------- life */

static void stream_mutex_init(rondo__mutex *mutex) {
    pthread_mutexattr_t attributes;
    if (pthread_mutexattr_init(&attributes) != 0) {
        rondo__mutex_init(mutex);
        return;
    }
    (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(mutex, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
}

/* The list is in order of id, so that it can be walked with a number and without the mutex held. */
static void stream_link(rondo_stream *stream) {
    rondo_device *device = stream->device;
    rondo__mutex_lock(&device->mutex);
    rondo_stream *last = device->streams;
    while (last && last->next) last = last->next;
    stream->previous = last;
    if (last) last->next = stream;
    else device->streams = stream;
    stream->id = last ? last->id + 1u : 1u;
    stream->born = ++device->born;
    rondo__mutex_unlock(&device->mutex);
}

static void stream_unlink(rondo_stream *stream) {
    rondo_device *device = stream->device;
    rondo__mutex_lock(&device->mutex);
    if (stream->previous) stream->previous->next = stream->next;
    else device->streams = stream->next;
    if (stream->next) stream->next->previous = stream->previous;
    rondo__mutex_unlock(&device->mutex);
}

static rondo_status stream_make(rondo_device *device, rondo_stream **out_stream) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(&device->allocator, sizeof(rondo_stream), &memory));
    rondo_stream *stream = memory;
    rondo__ref_init(&stream->references);
    stream->device = device;
    stream_mutex_init(&stream->mutex);
    *out_stream = stream;
    return RONDO_OK;
}

static void stream_unmake(rondo_stream *stream) {
    rondo_allocator allocator = stream->device->allocator;
    rondo_status_release(stream->pending);
    rondo__mutex_deinit(&stream->mutex);
    rondo__free(&allocator, stream, sizeof *stream);
}

rondo_status rondo__stream_open(rondo_device *device, uint32_t flags, int32_t priority, bool owned,
                                rondo_stream **out_stream) {
    rondo_stream *stream = NULL;
    RONDO__TRY(stream_make(device, &stream));
    rondo_status status = device->table->stream->create(device->handle, flags, priority, &stream->handle);
    if (status) {
        stream_unmake(stream);
        return status;
    }
    stream_link(stream);
    if (!owned) rondo_device_retain(device);
    *out_stream = stream;
    return RONDO_OK;
}

void rondo__stream_close(rondo_stream *stream) {
    char text[512];
    rondo_device *device = stream->device;
    rondo__recorder *recorder = rondo__stream_recorder(stream);
    if (recorder) recorder->table->abandon(recorder, stream);
    rondo_status status = rondo__stream_synchronize(stream);
    if (status) {
        (void)rondo_status_format(status, text, sizeof text);
        rondo__log_write(device->log, RONDO_LOG_WARNING,
                         "a stream of '%s' was released with a failure that nobody "
                         "asked for: %s",
                         device->properties.name, text);
        rondo_status_release(status);
    }
    stream_unlink(stream);
    device->table->stream->destroy(device->handle, stream->handle);
    stream_unmake(stream);
}

rondo_status rondo_stream_create(rondo_device *device, const rondo_stream_options *options, rondo_stream **out_stream) {
    rondo_stream_options own = RONDO_STREAM_OPTIONS_INIT;
    if (!device || !out_stream) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a stream needs a device and a place to be put");
    }
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_INPUT, "rondo_stream_options", options, &own, sizeof own));
    return rondo__stream_open(device, own.flags, own.priority, false, out_stream);
}

rondo_status rondo_stream_wrap(rondo_device *device, void *native, rondo_stream **out_stream) {
    rondo_stream *stream = NULL;
    if (!device || !out_stream) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "wrapping a stream needs a device and a place for the stream");
    }
    if (!device->table->stream->wrap) {
        return RONDO__FAIL(UNSUPPORTED, DRIVER, "device type '%s' cannot wrap a native stream: it has none of its own",
                           device->properties.name);
    }
    RONDO__TRY(stream_make(device, &stream));
    rondo_status status = device->table->stream->wrap(device->handle, native, &stream->handle);
    if (status) {
        stream_unmake(stream);
        return status;
    }
    stream->wrapped = true;
    stream_link(stream);
    rondo_device_retain(device);
    *out_stream = stream;
    return RONDO_OK;
}

/* The default stream lives as long as its device: a reference to it is one to the device. */
void rondo_stream_retain(rondo_stream *stream) {
    if (!stream) return;
    if (stream == stream->device->default_stream) rondo_device_retain(stream->device);
    else rondo__ref_retain(&stream->references);
}

static void stream_drop(rondo_stream *stream) {
    rondo_device *device = stream->device;
    if (!rondo__ref_release(&stream->references)) return;
    rondo__stream_close(stream);
    rondo_device_release(device);
}

void rondo_stream_release(rondo_stream *stream) {
    if (!stream) return;
    if (stream == stream->device->default_stream) rondo_device_release(stream->device);
    else stream_drop(stream);
}

rondo_stream *rondo_stream_default(rondo_device *device) { return device ? device->default_stream : NULL; }

rondo_device *rondo_stream_device(const rondo_stream *stream) { return stream ? stream->device : NULL; }

void rondo__stream_record(rondo_stream *stream, rondo__recorder *recorder, rondo_capture_mode mode) {
    const rondo_stream_table *table = stream->device->table->stream;
    rondo__mutex_lock(&stream->mutex);
    __atomic_store_n(&stream->recorder, recorder, __ATOMIC_RELEASE);
    if (table->capture_changed) table->capture_changed(stream->handle, recorder != NULL, mode);
    rondo__mutex_unlock(&stream->mutex);
}

/* The stream after `id`, with a reference. A stream whose last reference is going is passed over: its own release waits
 * for it. */
static rondo_stream *stream_after(rondo_device *device, uint64_t id) {
    rondo__mutex_lock(&device->mutex);
    rondo_stream *stream = device->streams;
    for (; stream; stream = stream->next) {
        if (stream->id <= id) continue;
        uint_least32_t count = atomic_load_explicit(&stream->references, memory_order_relaxed);
        while (count && !atomic_compare_exchange_weak_explicit(&stream->references, &count, count + 1u,
                                                               memory_order_relaxed, memory_order_relaxed)) {}
        if (count) break;
    }
    rondo__mutex_unlock(&device->mutex);
    return stream;
}

/* --------------------------------------------------------------------------- past the recorder: the backend */

static inline void stream_enter(rondo_stream *stream) {
    if (!rondo__device_is_inline(stream->device)) rondo__mutex_lock(&stream->mutex);
}

static inline void stream_leave(rondo_stream *stream) {
    if (!rondo__device_is_inline(stream->device)) rondo__mutex_unlock(&stream->mutex);
}

rondo_status rondo__stream_launch(rondo_stream *stream, const rondo_call *call) {
    stream_enter(stream);
    rondo_status status = stream->device->table->stream->launch(stream->handle, call);
    stream_leave(stream);
    return status;
}

rondo_status rondo__stream_copy(rondo_stream *stream, uint64_t destination, uint64_t source, uint64_t bytes,
                                rondo_copy_kind kind) {
    stream_enter(stream);
    rondo_status status = stream->device->table->stream->copy(stream->handle, destination, source, bytes, kind);
    stream_leave(stream);
    return status;
}

rondo_status rondo__stream_fill(rondo_stream *stream, uint64_t address, uint8_t value, uint64_t bytes) {
    stream_enter(stream);
    rondo_status status = stream->device->table->stream->fill(stream->handle, address, value, bytes);
    stream_leave(stream);
    return status;
}

rondo_status rondo__stream_host_call(rondo_stream *stream, rondo_host_function function, void *user) {
    stream_enter(stream);
    rondo_status status = stream->device->table->stream->host_call(stream->handle, function, user);
    stream_leave(stream);
    return status;
}

rondo_status rondo__stream_condition_begin(rondo_stream *stream, uint64_t address) {
    stream_enter(stream);
    rondo_status status = stream->device->table->stream->condition_begin(stream->handle, address);
    stream_leave(stream);
    return status;
}

void rondo__stream_condition_end(rondo_stream *stream) {
    stream_enter(stream);
    stream->device->table->stream->condition_end(stream->handle);
    stream_leave(stream);
}

rondo_stream *rondo__stream_of_id(rondo_device *device, uint64_t id) {
    rondo_stream *stream = stream_after(device, id - 1u);
    if (!stream || stream->id == id) return stream;
    stream_drop(stream);
    return NULL;
}

void rondo__stream_let_go(rondo_stream *stream) { stream_drop(stream); }

uint64_t rondo__stream_born(rondo_device *device, uint64_t id) {
    rondo__mutex_lock(&device->mutex);
    const rondo_stream *stream = device->streams;
    while (stream && stream->id != id) stream = stream->next;
    uint64_t born = stream ? stream->born : 0;
    rondo__mutex_unlock(&device->mutex);
    return born;
}

static rondo_status stream_wait(rondo_stream *stream) {
    stream_enter(stream);
    rondo_status status = stream->device->table->stream->synchronize(stream->handle);
    if (stream->pending) {
        status = rondo__status_first(stream->pending, status);
        stream->pending = RONDO_OK;
    }
    stream_leave(stream);
    return status;
}

/* The streams that worked for this one know what went wrong; here one only learns that something did, and where work goes on after
 * a failure not even that. */
static rondo_status stream_blame_sides(rondo_stream *stream, rondo_status status) {
    rondo_stream *side;
    for (uint64_t id = 0; (side = stream_after(stream->device, id)) != NULL;) {
        id = side->id;
        if (atomic_load_explicit(&side->side_of, memory_order_relaxed) == stream->id) {
            rondo_status cause = stream_wait(side);
            if (cause) {
                rondo_status_release(status);
                status = cause;
            }
        }
        stream_drop(side);
    }
    return status;
}

rondo_status rondo__stream_synchronize(rondo_stream *stream) {
    rondo_status status = stream_wait(stream);
    bool hidden = (stream->device->properties.capabilities & RONDO_DEVICE_GOES_ON_AFTER_FAILURE) != 0;
    bool ask = !rondo__device_is_inline(stream->device) && (status || hidden);
    return ask ? stream_blame_sides(stream, status) : status;
}

rondo_status rondo__stream_query(rondo_stream *stream, bool *out_done) {
    bool done = false;
    stream_enter(stream);
    rondo_status status = stream->device->table->stream->query(stream->handle, &done);
    stream_leave(stream);
    if (!status) *out_done = done;
    return status;
}

/* A list without the backend's help: what it learns of an argument is the word alone. */
static rondo_status stream_execute_entry(rondo_stream *stream, const rondo_list_entry *entry) {
    const rondo_stream_table *table = stream->device->table->stream;
    rondo_argument arguments[5];
    rondo_call call = RONDO_CALL_INIT;
    rondo_host_function function = NULL;
    switch (entry->operation) {
    case RONDO_LIST_CALL:
        for (uint32_t i = 0; i < 5u; i++) {
            arguments[i] = (rondo_argument){entry->words[i], 0, RONDO_ACCESS_VALUE, 0};
        }
        call.kernel = (rondo_kernel){entry->function, entry->context};
        call.arguments = arguments;
        call.argument_count = 5;
        return table->launch(stream->handle, &call);
    case RONDO_LIST_HOST:
        __builtin_memcpy(&function, &entry->words[0], sizeof function);
        return table->host_call(stream->handle, function, (void *)(uintptr_t)entry->words[1]);
    case RONDO_LIST_WAIT: return table->event_wait((void *)(uintptr_t)entry->words[0], stream->handle);
    case RONDO_LIST_RECORD: return table->event_record((void *)(uintptr_t)entry->words[0], stream->handle);
    default:
        return RONDO__FAIL(UNSUPPORTED, DRIVER, "device type '%s' cannot run a list entry of operation %u by itself",
                           stream->device->properties.name, (unsigned)entry->operation);
    }
}

RONDO__HOT rondo_status rondo__stream_execute(rondo_stream *stream, const rondo_list *list, uint64_t *out_failed) {
    const rondo_stream_table *table = stream->device->table->stream;
    rondo_status status = RONDO_OK;
    *out_failed = UINT64_MAX;
    stream_enter(stream);
    if (table->execute_list) {
        status = table->execute_list(stream->handle, list, out_failed);
    } else {
        for (uint64_t i = 0; i < list->count && !status; i++) {
            status = stream_execute_entry(stream, &list->entries[i]);
            if (status) *out_failed = i;
        }
    }
    stream_leave(stream);
    return status;
}

/* ----------------------------------------------------------------------------------------- the whole device */

static void stream_drain(rondo_stream *stream) {
    rondo__mutex_lock(&stream->mutex);
    if (!stream->recorder) {
        rondo_status status = stream->device->table->stream->synchronize(stream->handle);
        stream->pending = rondo__status_first(stream->pending, status);
    }
    rondo__mutex_unlock(&stream->mutex);
}

rondo_status rondo__device_synchronize(rondo_device *device) {
    rondo_status status = RONDO_OK;
    rondo_stream *stream;
    for (uint64_t id = 0; (stream = stream_after(device, id)) != NULL;) {
        id = stream->id;
        if (!rondo__stream_recorder(stream)) status = rondo__status_first(status, rondo__stream_synchronize(stream));
        stream_drop(stream);
    }
    return status;
}

void rondo__device_drain(rondo_device *device) {
    rondo_stream *stream;
    if (rondo__device_is_inline(device)) return;
    for (uint64_t id = 0; (stream = stream_after(device, id)) != NULL;) {
        id = stream->id;
        stream_drain(stream);
        stream_drop(stream);
    }
}
