/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices and contexts. A device has one default context for the process, counted by aclrtSetDevice; whatever belongs to
 * a device goes with its last reference. */
#include "sim.h"

void sim_lock(void) { (void)pthread_mutex_lock(&sim.mutex); }
void sim_unlock(void) { (void)pthread_mutex_unlock(&sim.mutex); }
aclError sim_leave(aclError error) {
    sim_refused(error);
    sim_unlock();
    if (sim_self()->farewells) sim_farewells_say();
    return error;
}

aclError sim_current(sim_context **out_context) {
    sim_thread *self = sim_self();
    sim_context *context = sim_object_find(self->context, SIM_CONTEXT);
    if (!context || context->object.number != self->context_number)
        return sim_fail(ACL_ERROR_RT_CONTEXT_NULL, "the thread has no context: call aclrtSetDevice");
    *out_context = context;
    return ACL_SUCCESS;
}

static void device_make_current(sim_context *context) {
    sim_self()->context = context;
    sim_self()->context_number = context->object.number;
}

static aclError device_check(int32_t device) {
    if (device >= 0 && device < sim.settings.devices) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_RT_INVALID_DEVICEID, "there is no device %d: there are %d", device,
                    (int)sim.settings.devices);
}

static aclError device_context(int32_t device, bool is_default, sim_context **out_context) {
    sim_context *context = sim_allocate(sizeof *context);
    if (!context || !sim_object_add(context, SIM_CONTEXT)) {
        free(context);
        return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a context");
    }
    context->device = device;
    context->is_default = is_default;
    aclError error = sim_stream_make(context, 0, 0, &context->default_stream);
    if (error) {
        sim_object_remove(context);
        free(context);
        return error;
    }
    context->default_stream->is_default = true;
    context->next = sim.contexts;
    sim.contexts = context;
    *out_context = context;
    return ACL_SUCCESS;
}

/* Of the context's own streams, or of another context's that updates a graph of this one. */
static bool device_context_busy(const sim_context *context) {
    for (const sim_stream *stream = context->streams; stream; stream = stream->next)
        if (stream->first) return true;
    for (const sim_model *model = context->models; model; model = model->next)
        if (model->pending) return true;
    return false;
}

/* Work first, while everything that it touches is there. Once `patience` (ms; -1: for ever) is over, what is left is dropped. */
static void device_context_settle(sim_context *context, int64_t patience) {
    struct timespec deadline;
    if (patience >= 0) sim_deadline(patience, &deadline);
    while (device_context_busy(context)) {
        if (sim_wait_changed(patience >= 0 ? &deadline : NULL)) continue;
        patience = -1;
        for (sim_stream *stream = context->streams; stream; stream = stream->next) atomic_store(&stream->aborted, true);
        sim_changed();
    }
}

/* Another thread may be destroying one. */
static void device_streams_end(const sim_context *context) {
    while (context->streams) {
        sim_stream *stream = context->streams;
        while (stream && stream->ending) stream = stream->next;
        if (stream) sim_stream_end(stream, false);
        else (void)sim_wait_changed(NULL);
    }
}

static void device_context_end(sim_context *context, int64_t patience) {
    context->ending = true;
    device_context_settle(context, patience);
    sim_object_remove(context); /* from now on nobody gets at it */
    while (context->models) sim_model_free(context->models);
    device_streams_end(context);
    while (context->events) sim_event_destroy(context->events);
    sim_context **link = &sim.contexts;
    while (*link != context) link = &(*link)->next;
    *link = context->next;
    free(context);
    sim_changed();
}

/* 107000, where one of the context's streams waits for the calling thread. */
static aclError device_context_not_mine(const sim_context *context, const char *what) {
    for (const sim_stream *stream = context->streams; stream; stream = stream->next)
        SIM_CHECK(sim_stream_not_mine(stream, what));
    return ACL_SUCCESS;
}

static sim_context *device_next_context(int32_t device, uint64_t number) {
    sim_context *context = sim.contexts;
    while (context && (context->device != device || context->object.number > number)) context = context->next;
    return context;
}

/* The device goes, with everything of it that was made before: who sets it meanwhile begins anew. */
static void device_release(int32_t device, bool force) {
    uint64_t number = sim.numbers;
    sim.devices[device].context = NULL;
    for (sim_context *context = device_next_context(device, number); context;
         context = device_next_context(device, number)) {
        if (context->ending) (void)sim_wait_changed(NULL);
        else device_context_end(context, force ? sim.settings.destroy_ms : -1);
    }
    sim_memory_release(device, number);
}

aclError aclrtSetDevice(int32_t deviceId) {
    SIM_BEGIN(aclrtSetDevice);
    sim_lock();
    aclError error = device_check(deviceId);
    if (error) return sim_leave(error);
    sim_device *device = &sim.devices[deviceId];
    if (!device->context) error = device_context(deviceId, true, &device->context);
    if (!error) {
        device->references++;
        device_make_current(device->context);
    }
    return sim_leave(error);
}

static aclError device_reset(int32_t id, bool force) {
    aclError error = device_check(id);
    if (error) return error;
    sim_device *device = &sim.devices[id];
    if (!device->references) return sim_fail(ACL_ERROR_RT_INVALID_DEVICEID, "device %d is not set", id);
    bool last = force || device->references == 1;
    for (const sim_context *context = last ? sim.contexts : NULL; context; context = context->next)
        if (context->device == id) SIM_CHECK(device_context_not_mine(context, "resetting its device"));
    device->references = last ? 0 : device->references - 1;
    if (last) device_release(id, force);
    return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t deviceId) {
    SIM_BEGIN(aclrtResetDevice);
    sim_lock();
    return sim_leave(device_reset(deviceId, false));
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
    SIM_BEGIN(aclrtResetDeviceForce);
    sim_lock();
    return sim_leave(device_reset(deviceId, true));
}

aclError aclrtGetDevice(int32_t *deviceId) {
    SIM_BEGIN(aclrtGetDevice);
    if (!deviceId) return sim_fail(ACL_ERROR_INVALID_PARAM, "deviceId is null");
    sim_lock();
    sim_context *context = NULL;
    aclError error = sim_current(&context);
    if (!error) *deviceId = context->device;
    return sim_leave(error);
}

aclError aclrtGetDeviceCount(uint32_t *count) {
    SIM_ENTER(aclrtGetDeviceCount);
    if (!count) return sim_fail(ACL_ERROR_INVALID_PARAM, "count is null");
    sim_lock();
    *count = (uint32_t)sim.settings.devices;
    return sim_leave(*count ? ACL_SUCCESS : sim_fail(ACL_ERROR_RT_NO_DEVICE, "there is no device"));
}

aclError sim_context_wait(sim_context *context, int32_t timeout, bool tell) {
    uint64_t number = context->object.number;
    struct timespec deadline;
    aclError error = device_context_not_mine(context, "waiting for it");
    if (timeout > 0) sim_deadline(timeout, &deadline);
    sim_stream *stream = error ? NULL : sim_stream_after(context, 0);
    while (stream) {
        uint64_t at = stream->object.number;
        if (stream->flags & SIM_STREAM_APART) {
            stream = sim_stream_after(context, at);
            continue;
        }
        sim_stream_hold(stream);
        bool late = sim_stream_idle(stream, timeout > 0 ? &deadline : NULL) == SIM_LATE;
        aclError failure =
            late ? sim_fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "stream %d is not done after %d ms", stream->id, timeout)
            : tell ? sim_stream_failure(stream)
                   : ACL_SUCCESS;
        sim_stream_release(stream);
        if (!error) error = failure;
        /* The context may have gone meanwhile, and with it the work. */
        bool ends = late || !sim_object_is(context, SIM_CONTEXT, number);
        stream = ends ? NULL : sim_stream_after(context, at);
    }
    return error;
}

static aclError device_synchronize(int32_t timeout) {
    sim_context *context = NULL;
    SIM_CHECK(sim_check_timeout(timeout));
    SIM_CHECK(sim_current(&context));
    SIM_CHECK(sim_context_not_captured(context, "synchronising the device"));
    return sim_context_wait(context, timeout, true);
}

aclError aclrtSynchronizeDevice(void) {
    SIM_BEGIN(aclrtSynchronizeDevice);
    sim_lock();
    return sim_leave(device_synchronize(-1));
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
    SIM_BEGIN(aclrtSynchronizeDeviceWithTimeout);
    sim_lock();
    return sim_leave(device_synchronize(timeout));
}

aclError aclrtGetRunMode(aclrtRunMode *runMode) {
    SIM_BEGIN(aclrtGetRunMode);
    if (!runMode) return sim_fail(ACL_ERROR_INVALID_PARAM, "runMode is null");
    *runMode = ACL_HOST;
    return ACL_SUCCESS;
}

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId) {
    SIM_BEGIN(aclrtCreateContext);
    if (!context) return sim_fail(ACL_ERROR_INVALID_PARAM, "context is null");
    sim_lock();
    sim_context *made = NULL;
    aclError error = device_check(deviceId);
    if (!error) error = device_context(deviceId, false, &made);
    if (!error) {
        device_make_current(made);
        *context = made;
    }
    return sim_leave(error);
}

aclError aclrtDestroyContext(aclrtContext context) {
    SIM_BEGIN(aclrtDestroyContext);
    if (!context) return sim_fail(ACL_ERROR_INVALID_PARAM, "context is null");
    sim_lock();
    sim_context *known = sim_object_find(context, SIM_CONTEXT);
    aclError error = ACL_SUCCESS;
    if (!known || known->ending) error = sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such context");
    else if (known->is_default) error = sim_fail(ACL_ERROR_RT_PARAM_INVALID, "a device's default context goes with it");
    if (!error) error = device_context_not_mine(known, "destroying its context");
    if (!error) device_context_end(known, -1);
    return sim_leave(error);
}

aclError aclrtSetCurrentContext(aclrtContext context) {
    SIM_BEGIN(aclrtSetCurrentContext);
    if (!context) return sim_fail(ACL_ERROR_INVALID_PARAM, "context is null");
    sim_lock();
    sim_context *known = sim_object_find(context, SIM_CONTEXT);
    if (!known) return sim_leave(sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such context"));
    device_make_current(known);
    return sim_leave(ACL_SUCCESS);
}

aclError aclrtGetCurrentContext(aclrtContext *context) {
    SIM_BEGIN(aclrtGetCurrentContext);
    if (!context) return sim_fail(ACL_ERROR_INVALID_PARAM, "context is null");
    sim_lock();
    sim_context *current = NULL;
    aclError error = sim_current(&current);
    if (!error) *context = current;
    return sim_leave(error);
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream) {
    SIM_BEGIN(aclrtCtxGetCurrentDefaultStream);
    if (!stream) return sim_fail(ACL_ERROR_INVALID_PARAM, "stream is null");
    sim_lock();
    sim_context *current = NULL;
    aclError error = sim_current(&current);
    if (!error) *stream = current->default_stream;
    return sim_leave(error);
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value) {
    SIM_BEGIN(aclrtGetDeviceInfo);
    if (!value) return sim_fail(ACL_ERROR_INVALID_PARAM, "value is null");
    sim_lock();
    aclError error = deviceId > INT32_MAX ? sim_fail(ACL_ERROR_RT_INVALID_DEVICEID, "there is no such device")
                                          : device_check((int32_t)deviceId);
    if (!error) switch (attr) {
        case ACL_DEV_ATTR_AICPU_CORE_NUM: *value = 1; break;
        case ACL_DEV_ATTR_AICORE_CORE_NUM: *value = 8; break;
        case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = 16; break;
        default: error = sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%d is no attribute that is simulated", (int)attr);
        }
    return sim_leave(error);
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority) {
    SIM_BEGIN(aclrtDeviceGetStreamPriorityRange);
    if (leastPriority) *leastPriority = 7;
    if (greatestPriority) *greatestPriority = 0;
    return ACL_SUCCESS;
}
