/* SPDX-License-Identifier: Apache-2.0
 *
 * The scheduler. Nothing runs by itself: whoever waits or asks runs operations, one at a time, each of a stream picked by
 * the seed among those that can go on. Within a stream the order is that of enqueueing; across streams only events
 * bind. Any order it picks is one that a real device might pick, so a program must be right under every seed. */
#include <string.h>

#include "sim.h"

/* splitmix64 */
static uint64_t sim_random(rondo__sim_device *device) {
    uint64_t z = (device->random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static bool sim_is_ready(const rondo__sim_stream *stream) {
    const rondo__sim_operation *operation = stream->first;
    return operation && !stream->running && (operation->kind != RONDO__SIM_WAIT || operation->marker->done);
}

static rondo__sim_stream *sim_pick(rondo__sim_device *device) {
    uint64_t ready = 0;
    for (const rondo__sim_stream *stream = device->streams; stream; stream = stream->next)
        ready += sim_is_ready(stream);
    if (!ready) return NULL;
    uint64_t number = ready > 1u ? sim_random(device) % ready : 0;
    rondo__sim_stream *stream = device->streams;
    for (; stream; stream = stream->next) {
        if (sim_is_ready(stream) && number-- == 0) break;
    }
    return stream;
}

/* ------------------------------------------------------------------------------------------- before it runs */

static const char *sim_access_text(uint32_t access) {
    return access == RONDO_ACCESS_READ ? "reads" : access == RONDO_ACCESS_WRITE ? "writes" : "uses";
}

/* A null word stands for an operand that is absent. */
static rondo_status sim_check_launch(const rondo__sim_device *device, const rondo__sim_operation *operation) {
    for (uint32_t i = 0; i < operation->argument_count; i++) {
        const rondo_argument *argument = &operation->arguments[i];
        if (argument->access == RONDO_ACCESS_VALUE || !argument->word) continue;
        const char *problem = rondo__sim_range_problem(device, argument->word, argument->length);
        if (!problem) continue;
        return RONDO_PLUGIN_FAIL(device->host, KERNEL_FAILED, MEMORY,
                                 "sim: call '%s': argument %u %s %llu bytes at "
                                 "0x%llx, which %s",
                                 operation->name, i, sim_access_text(argument->access),
                                 (unsigned long long)argument->length, (unsigned long long)argument->word, problem);
    }
    return RONDO_OK;
}

static rondo_status sim_check_range(const rondo__sim_device *device, const char *what, uint64_t address,
                                    uint64_t bytes) {
    const char *problem = rondo__sim_range_problem(device, address, bytes);
    if (!problem) return RONDO_OK;
    return RONDO_PLUGIN_FAIL(device->host, KERNEL_FAILED, MEMORY, "sim: %s %llu bytes at 0x%llx, which %s", what,
                             (unsigned long long)bytes, (unsigned long long)address, problem);
}

/* Memory was alive when the operation was enqueued; is it still? */
static rondo_status sim_check(const rondo__sim_device *device, const rondo__sim_operation *operation) {
    rondo_status status = RONDO_OK;
    if (operation->kind == RONDO__SIM_LAUNCH) return sim_check_launch(device, operation);
    if (operation->kind == RONDO__SIM_FILL) {
        return sim_check_range(device, "a fill writes", operation->destination, operation->bytes);
    }
    if (operation->kind == RONDO__SIM_BEGIN) {
        return sim_check_range(device, "a condition reads", operation->source, operation->bytes);
    }
    if (operation->kind != RONDO__SIM_COPY) return RONDO_OK;
    if (operation->direction != RONDO_COPY_HOST_TO_DEVICE) {
        status = sim_check_range(device, "a copy reads", operation->source, operation->bytes);
    }
    if (!status && operation->direction != RONDO_COPY_DEVICE_TO_HOST) {
        status = sim_check_range(device, "a copy writes", operation->destination, operation->bytes);
    }
    return status;
}

/* ------------------------------------------------------------------------------------------------- running */

static rondo_status sim_run_function(const rondo__sim_device *device, const rondo__sim_operation *operation) {
    if (operation->kind == RONDO__SIM_LAUNCH) {
        int32_t reason = operation->kernel.function(operation->kernel.context, operation->words);
        if (!reason) return RONDO_OK;
        return RONDO_PLUGIN_FAIL(device->host, KERNEL_FAILED, KERNEL,
                                 "sim: call '%s': its kernel failed with reason %d", operation->name, (int)reason);
    }
    int32_t reason = operation->function(operation->user);
    if (!reason) return RONDO_OK;
    return RONDO_PLUGIN_FAIL(device->host, KERNEL_FAILED, KERNEL, "sim: a host function failed with reason %d",
                             (int)reason);
}

/* Without the mutex: kernels and host functions are other people's code. */
static rondo_status sim_run(const rondo__sim_device *device, const rondo__sim_operation *operation) {
    void *destination = (void *)(uintptr_t)operation->destination;
    switch (operation->kind) {
    case RONDO__SIM_LAUNCH:
    case RONDO__SIM_HOST_CALL: return sim_run_function(device, operation);
    case RONDO__SIM_COPY:
        memmove(destination, (const void *)(uintptr_t)operation->source, (size_t)operation->bytes);
        return RONDO_OK;
    case RONDO__SIM_FILL: memset(destination, operation->value, (size_t)operation->bytes); return RONDO_OK;
    case RONDO__SIM_RECORD:
    case RONDO__SIM_WAIT:
    case RONDO__SIM_BEGIN:
    case RONDO__SIM_END: break;
    }
    return RONDO_OK;
}

void rondo__sim_operation_finish(rondo__sim_device *device, rondo__sim_operation *operation, uint64_t failure) {
    if (operation->kind == RONDO__SIM_RECORD) {
        operation->marker->done = true;
        operation->marker->failure = failure;
    }
    rondo__sim_marker_release(device, operation->marker);
    rondo__sim_shadow_leave(device, operation, !failure && !operation->passed_over);
    rondo__sim_clock_release(device, operation->clock);
    rondo__sim_release(device, operation, operation->size, 0);
}

static rondo_status sim_execute_work(rondo__sim_device *device, rondo__sim_operation *operation) {
    rondo_status status = sim_check(device, operation);
    if (!status) status = rondo__sim_shadow_check(device, operation);
    if (status) return status;
    device->executing = true;
    device->executor = pthread_self();
    (void)pthread_mutex_unlock(&device->mutex);
    status = sim_run(device, operation);
    (void)pthread_mutex_lock(&device->mutex);
    device->executing = false;
    (void)pthread_cond_broadcast(&device->idle);
    return status;
}

/* What a condition that is passed over itself, or cannot be read, would decide about is passed over too. */
static rondo_status sim_execute_begin(rondo__sim_device *device, rondo__sim_stream *stream,
                                      rondo__sim_operation *operation) {
    int64_t value = 0;
    rondo_status status = RONDO_OK;
    operation->passed_over = stream->skipping || stream->failure;
    if (!operation->passed_over) {
        status = sim_check(device, operation);
        if (!status) status = rondo__sim_shadow_check(device, operation);
        if (!status) memcpy(&value, (const void *)(uintptr_t)operation->source, sizeof value);
    }
    if (!value) stream->skipping++;
    return status;
}

/* Work that follows a failure in its stream is dropped until the stream is synchronised; a stream that waits for it has
 * failed too, since what it waits for was never made. Once that was told, whoever waits anew knows what they do. */
static void sim_execute(rondo__sim_device *device, rondo__sim_stream *stream, rondo__sim_operation *operation) {
    rondo_status status = RONDO_OK;
    if (operation->kind == RONDO__SIM_BEGIN) {
        status = sim_execute_begin(device, stream, operation);
    } else if (operation->kind == RONDO__SIM_END) {
        if (stream->skipping) stream->skipping--;
    } else if (operation->kind == RONDO__SIM_WAIT && operation->marker->failure && !operation->forgiven &&
               !stream->failure) {
        status = RONDO_PLUGIN_FAIL(device->host, KERNEL_FAILED, DRIVER,
                                   "sim: the stream waits for an event whose work "
                                   "failed: synchronize the event's stream to see how");
    }
    if (rondo__sim_kind_is_work(operation->kind)) {
        operation->passed_over = stream->skipping != 0;
        stream->dropped += stream->failure && !operation->passed_over;
        if (!stream->failure && !operation->passed_over) status = sim_execute_work(device, operation);
    }
    if (status) {
        stream->failure = status;
        stream->failure_number = ++device->failures;
    }
    rondo__sim_operation_finish(device, operation, stream->failure ? stream->failure_number : 0);
}

bool rondo__sim_step(rondo__sim_device *device) {
    if (device->executing) {
        (void)pthread_cond_wait(&device->idle, &device->mutex);
        return true;
    }
    rondo__sim_stream *stream = sim_pick(device);
    if (!stream) return false;
    rondo__sim_operation *operation = stream->first;
    stream->first = operation->next;
    if (!stream->first) stream->end = &stream->first;
    stream->running = true;
    sim_execute(device, stream, operation);
    stream->running = false;
    return true;
}
