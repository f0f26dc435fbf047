/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices and contexts. A device has one default context for the process, counted by aclrtSetDevice; whatever belongs to
 * a device goes with its last reference. */
#include "sim.h"

void sim_lock(void) { (void)pthread_mutex_lock(&sim.mutex); }
void sim_unlock(void) { (void)pthread_mutex_unlock(&sim.mutex); }
aclError sim_leave(aclError error) {
    sim_unlock();
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

static void device_context_free(sim_context *context) {
    while (context->models) sim_model_free(context->models);
    for (sim_stream *stream = context->streams; stream; stream = context->streams) {
        sim_stream_end(stream, true);
        sim_stream_drop(stream);
    }
    while (context->events) sim_event_destroy(context->events);
    sim_context **link = &sim.contexts;
    while (*link != context) link = &(*link)->next;
    *link = context->next;
    sim_object_remove(context);
    free(context);
}

/* Work first, while everything that it touches is there. */
static void device_settle(const sim_context *context) {
    for (sim_stream *stream = sim_stream_after(context, 0); stream;
         stream = sim_stream_after(context, stream->object.number))
        (void)sim_stream_idle(stream, -1);
}

void sim_device_release(int32_t device) {
    for (sim_context *context = sim.contexts; context;) {
        if (context->device != device) {
            context = context->next;
            continue;
        }
        device_settle(context);
        device_context_free(context);
        context = sim.contexts; /* others may have come and gone meanwhile */
    }
    sim_memory_release(device);
    sim.devices[device].context = NULL;
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
    device->references = force ? 0 : device->references - 1;
    if (!device->references) sim_device_release(id);
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

static aclError device_synchronize(int32_t timeout) {
    sim_context *context = NULL;
    SIM_CHECK(sim_check_timeout(timeout));
    SIM_CHECK(sim_current(&context));
    for (sim_stream *stream = context->streams; stream; stream = stream->next)
        if (stream->model && !stream->model->built)
            return sim_illegal(stream->model, sim_fail(ACL_ERROR_RT_STREAM_CAPTURED,
                                                       "stream %d of the context is captured: a device cannot be "
                                                       "synchronised meanwhile",
                                                       stream->id));
    aclError error = ACL_SUCCESS;
    for (sim_stream *stream = sim_stream_after(context, 0); stream;
         stream = sim_stream_after(context, stream->object.number)) {
        if (!sim_stream_idle(stream, timeout))
            return sim_fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "stream %d is not done after %d ms", stream->id, timeout);
        aclError failure = sim_stream_failure(stream);
        if (!error) error = failure;
    }
    return error;
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
    if (!known) error = sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such context");
    else if (known->is_default) error = sim_fail(ACL_ERROR_RT_PARAM_INVALID, "a device's default context goes with it");
    else {
        device_settle(known);
        device_context_free(known);
    }
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
