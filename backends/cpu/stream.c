/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams that run inline: a call has finished when launch returns, so order, events and waiting cost nothing.
 *
 * A list is run by a loop of one indirect call an entry. What costs there is the call itself and bringing in the entry's
 * cache line; so lines are asked for well before they are needed, and nothing else is looked at. */
#include "device.h"

#include <string.h>

/* How many entries ahead to ask for. Far enough for memory beyond the second-level cache at a nanosecond an entry. */
#define RONDO__CPU_AHEAD 16

static rondo_status cpu_stream_create(void *self, uint32_t flags, int32_t priority, void **out_stream) {
    rondo__cpu_device *device = self;
    const rondo_host_api *host = device->host;
    (void)priority; /* there is nobody to be preferred to */
    if (flags == RONDO_STREAM_ASYNCHRONOUS) {
        return RONDO_PLUGIN_FAIL(host, UNSUPPORTED, DRIVER,
                                 "cpu: RONDO_STREAM_ASYNCHRONOUS: streams with a worker of "
                                 "their own do not exist here");
    }
    if (flags) return RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, DRIVER, "cpu: unknown stream flags 0x%x", flags);
    rondo__cpu_stream *stream = host->allocator.reallocate(host->allocator.self, NULL, 0, sizeof(rondo__cpu_stream), 0);
    if (!stream) return RONDO_PLUGIN_FAIL(host, OUT_OF_MEMORY, DRIVER, "cpu: no memory for a stream");
    memset(stream, 0, sizeof *stream);
    stream->device = device;
    (void)pthread_mutex_lock(&device->mutex);
    stream->next = device->streams;
    if (stream->next) stream->next->previous = stream;
    device->streams = stream;
    (void)pthread_mutex_unlock(&device->mutex);
    *out_stream = stream;
    return RONDO_OK;
}

static void cpu_stream_destroy(void *self, void *handle) {
    rondo__cpu_device *device = self;
    rondo__cpu_stream *stream = handle;
    (void)pthread_mutex_lock(&device->mutex);
    for (int i = 0; i < RONDO__CPU_COUNT_OF; i++) {
        rondo__cpu_count(&device->counts, i, atomic_load_explicit(&stream->counts.values[i], memory_order_relaxed));
    }
    if (stream->previous) stream->previous->next = stream->next;
    else device->streams = stream->next;
    if (stream->next) stream->next->previous = stream->previous;
    (void)pthread_mutex_unlock(&device->mutex);
    (void)device->host->allocator.reallocate(device->host->allocator.self, stream, sizeof *stream, 0, 0);
}

static rondo_status cpu_launch(void *self, const rondo_call *call) {
    rondo__cpu_stream *stream = self;
    uint64_t words[RONDO_ARGUMENT_MAX];
    for (uint32_t i = 0; i < call->argument_count; i++) words[i] = call->arguments[i].word;
    rondo__cpu_count(&stream->counts, RONDO__CPU_COUNT_LAUNCHES, 1);
    int32_t reason = call->kernel.function(call->kernel.context, words);
    if (!reason) return RONDO_OK;
    return RONDO_PLUGIN_FAIL(stream->device->host, KERNEL_FAILED, KERNEL,
                             "cpu: call '%s': its kernel failed with "
                             "reason %d",
                             call->name ? call->name : "", (int)reason);
}

static rondo_status cpu_copy(void *self, uint64_t destination, uint64_t source, uint64_t bytes, rondo_copy_kind kind) {
    rondo__cpu_stream *stream = self;
    (void)kind; /* one memory on both sides */
    rondo__cpu_count(&stream->counts, RONDO__CPU_COUNT_COPIES, 1);
    memmove((void *)(uintptr_t)destination, (const void *)(uintptr_t)source, (size_t)bytes);
    return RONDO_OK;
}

static rondo_status cpu_fill(void *self, uint64_t address, uint8_t value, uint64_t bytes) {
    rondo__cpu_stream *stream = self;
    rondo__cpu_count(&stream->counts, RONDO__CPU_COUNT_FILLS, 1);
    memset((void *)(uintptr_t)address, value, (size_t)bytes);
    return RONDO_OK;
}

static rondo_status cpu_host_call(void *self, rondo_host_function function, void *user) {
    rondo__cpu_stream *stream = self;
    rondo__cpu_count(&stream->counts, RONDO__CPU_COUNT_HOST_CALLS, 1);
    int32_t reason = function(user);
    if (!reason) return RONDO_OK;
    return RONDO_PLUGIN_FAIL(stream->device->host, KERNEL_FAILED, KERNEL, "cpu: a host function failed with reason %d",
                             (int)reason);
}

static rondo_status cpu_synchronize(void *self) {
    rondo__cpu_stream *stream = self;
    rondo__cpu_count(&stream->counts, RONDO__CPU_COUNT_SYNCHRONIZES, 1);
    return RONDO_OK;
}

static rondo_status cpu_query(void *self, bool *out_done) {
    (void)self;
    *out_done = true;
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------ events */

/* There is nothing to remember of an event: all work before it has finished. The device stands for every one. */
static rondo_status cpu_event_create(void *device, void **out_event) {
    *out_event = device;
    return RONDO_OK;
}

static void cpu_event_destroy(void *device, void *event) {
    (void)device;
    (void)event;
}

static rondo_status cpu_event_on_stream(void *event, void *self) {
    rondo__cpu_stream *stream = self;
    (void)event;
    rondo__cpu_count(&stream->counts, RONDO__CPU_COUNT_EVENTS, 1);
    return RONDO_OK;
}

static rondo_status cpu_event_query(void *event, bool *out_done) {
    (void)event;
    *out_done = true;
    return RONDO_OK;
}

static rondo_status cpu_event_synchronize(void *event) {
    (void)event;
    return RONDO_OK;
}

/* -------------------------------------------------------------------------------------------------- the call list */

/* Runs calls alone. Returns the entry that failed, or the end. */
__attribute__((hot, noinline, aligned(64))) static const rondo_list_entry *cpu_run_calls(const rondo_list_entry *entry,
                                                                                         const rondo_list_entry *end,
                                                                                         int32_t *out_reason) {
    for (; entry != end; entry++) {
        __builtin_prefetch((const void *)((uintptr_t)entry + RONDO__CPU_AHEAD * sizeof *entry));
        int32_t reason = entry->function(entry->context, entry->words);
        if (__builtin_expect(reason != 0, 0)) {
            *out_reason = reason;
            break;
        }
    }
    return entry;
}

static int32_t cpu_run_host(const rondo_list_entry *entry) {
    rondo_host_function function = NULL;
    memcpy(&function, &entry->words[0], sizeof function);
    return function((void *)(uintptr_t)entry->words[1]);
}

/* Runs any entries. Returns the index that failed, or UINT64_MAX. Waits and records need nothing here. */
static uint64_t cpu_run_mixed(rondo__cpu_stream *stream, const rondo_list *list, int32_t *out_reason) {
    uint64_t index = 0, launches = 0, host_calls = 0, failed = UINT64_MAX;
    while (index < list->count && failed == UINT64_MAX) {
        const rondo_list_entry *entry = &list->entries[index];
        uint64_t next = index + 1u;
        int32_t reason = 0;
        if (entry->operation == RONDO_LIST_CALL) {
            reason = entry->function(entry->context, entry->words);
            launches++;
        } else if (entry->operation == RONDO_LIST_HOST) {
            reason = cpu_run_host(entry);
            host_calls++;
        } else if (entry->operation == RONDO_LIST_JUMP) {
            if (*(const int64_t *)(uintptr_t)entry->words[0] == 0) next = entry->words[1];
        }
        if (reason) {
            *out_reason = reason;
            failed = index;
        }
        index = next;
    }
    rondo__cpu_count(&stream->counts, RONDO__CPU_COUNT_LAUNCHES, launches);
    rondo__cpu_count(&stream->counts, RONDO__CPU_COUNT_HOST_CALLS, host_calls);
    return failed;
}

__attribute__((hot)) static rondo_status cpu_execute_list(void *self, const rondo_list *list, uint64_t *out_failed) {
    rondo__cpu_stream *stream = self;
    int32_t reason = 0;
    uint64_t failed = UINT64_MAX;
    if (list->flags & RONDO_LIST_ONLY_CALLS) {
        const rondo_list_entry *end = list->entries + list->count;
        const rondo_list_entry *stopped = cpu_run_calls(list->entries, end, &reason);
        uint64_t run = (uint64_t)(stopped - list->entries);
        if (stopped != end) failed = run++;
        rondo__cpu_count(&stream->counts, RONDO__CPU_COUNT_LAUNCHES, run);
    } else {
        failed = cpu_run_mixed(stream, list, &reason);
    }
    *out_failed = failed;
    if (__builtin_expect(failed == UINT64_MAX, 1)) return RONDO_OK;
    return RONDO_PLUGIN_FAIL(stream->device->host, KERNEL_FAILED, KERNEL,
                             "cpu: entry %llu of the list failed with "
                             "reason %d",
                             (unsigned long long)failed, (int)reason);
}

const rondo_stream_table rondo__cpu_stream_table = {.struct_size = sizeof(rondo_stream_table),
                                                    .create = cpu_stream_create,
                                                    .destroy = cpu_stream_destroy,
                                                    .launch = cpu_launch,
                                                    .copy = cpu_copy,
                                                    .fill = cpu_fill,
                                                    .host_call = cpu_host_call,
                                                    .synchronize = cpu_synchronize,
                                                    .query = cpu_query,
                                                    .event_create = cpu_event_create,
                                                    .event_destroy = cpu_event_destroy,
                                                    .event_record = cpu_event_on_stream,
                                                    .event_wait = cpu_event_on_stream,
                                                    .event_query = cpu_event_query,
                                                    .event_synchronize = cpu_event_synchronize,
                                                    .execute_list = cpu_execute_list};
