/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams, as the interface has them. */
#include "sim.h"

aclError sim_hardware_take(int32_t device, int64_t count, aclError error, const char *what) {
    int64_t used = sim.devices[device].hardware_streams, all = sim.settings.streams;
    if (used + count > all)
        return sim_fail(error,
                        "%s needs %lld hardware stream(s) of device %d; %lld of %lld are in use (stream queues, "
                        "not memory, are what is missing)",
                        what, (long long)count, device, (long long)used, (long long)all);
    sim.devices[device].hardware_streams += count;
    return ACL_SUCCESS;
}

void sim_hardware_give(int32_t device, int64_t count) { sim.devices[device].hardware_streams -= count; }

aclError sim_stream_make(sim_context *context, uint32_t priority, uint32_t flags, sim_stream **out_stream) {
    static int32_t ids;
    SIM_CHECK(sim_hardware_take(context->device, 1, ACL_ERROR_RT_NO_STREAM_RESOURCE, "a stream"));
    sim_stream *stream = sim_allocate(sizeof *stream);
    if (!stream || !sim_object_add(stream, SIM_STREAM)) {
        free(stream);
        sim_hardware_give(context->device, 1);
        return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a stream");
    }
    stream->context = context;
    stream->id = ids++;
    stream->flags = flags;
    stream->priority = priority;
    stream->end = &stream->first;
    stream->updates_end = &stream->updates;
    stream->random = (uint64_t)sim.settings.seed * 1000003u + (uint64_t)stream->id;
    (void)pthread_cond_init(&stream->wake, NULL);
    stream->next = context->streams;
    context->streams = stream;
    *out_stream = stream;
    return ACL_SUCCESS;
}

sim_stream *sim_stream_after(const sim_context *context, uint64_t number) {
    sim_stream *best = NULL;
    for (sim_stream *stream = context->streams; stream; stream = stream->next)
        if (stream->object.number > number && (!best || stream->object.number < best->object.number)) best = stream;
    return best;
}

aclError sim_stream_of(aclrtStream handle, sim_stream **out_stream) {
    sim_context *context = NULL;
    SIM_CHECK(sim_current(&context));
    sim_stream *stream = handle ? sim_object_find(handle, SIM_STREAM) : context->default_stream;
    const sim_lane *lane = stream ? NULL : sim_object_find(handle, SIM_LANE);
    if (lane) sim_concern(lane->model);
    if (lane) return sim_fail(ACL_ERROR_RT_STREAM_MODEL, "the stream belongs to a captured graph: it takes no work");
    if (!stream) return sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such stream");
    sim_concern(stream->model);
    if (stream->context != context)
        return sim_fail(ACL_ERROR_RT_STREAM_CONTEXT, "stream %d is of another context than the current one",
                        stream->id);
    *out_stream = stream;
    return ACL_SUCCESS;
}

aclError sim_stream_not_captured(sim_stream *stream, const char *what) {
    if (!stream->model) return ACL_SUCCESS;
    if (stream->model->built)
        return sim_fail(ACL_ERROR_RT_STREAM_MODEL,
                        "stream %d is bound to graph %u: %s is not allowed (aclmdlRIUnbindStream)", stream->id,
                        stream->model->id, what);
    return sim_fail(ACL_ERROR_RT_STREAM_CAPTURED, "stream %d is captured: %s is not allowed", stream->id, what);
}

static aclError stream_create(aclrtStream *out, uint32_t priority, uint32_t flags) {
    if (!out) return sim_fail(ACL_ERROR_INVALID_PARAM, "stream is null");
    sim_lock();
    sim_context *context = NULL;
    sim_stream *stream = NULL;
    aclError error = sim_current(&context);
    if (!error && flags >= 0x40u) error = sim_fail(ACL_ERROR_RT_PARAM_INVALID, "0x%x are no stream flags", flags);
    if (!error && priority > 7u)
        error = sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%u is no priority (0 to 7 are)", priority);
    if (!error) error = sim_stream_make(context, priority, flags, &stream);
    if (!error) *out = stream;
    return sim_leave(error);
}

aclError aclrtCreateStream(aclrtStream *stream) {
    SIM_BEGIN(aclrtCreateStream);
    return stream_create(stream, 0, 0);
}

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag) {
    SIM_BEGIN(aclrtCreateStreamWithConfig);
    return stream_create(stream, priority, flag);
}

aclError aclrtCreateStreamV2(aclrtStream *stream, const aclrtStreamConfigHandle *handle) {
    SIM_BEGIN(aclrtCreateStreamV2);
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "handle is null");
    return stream_create(stream, handle->priority, (uint32_t)handle->flag);
}

static aclError stream_destroy(aclrtStream handle, bool finish) {
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "stream is null");
    sim_stream *stream = NULL;
    SIM_CHECK(sim_stream_of(handle, &stream));
    if (stream->is_default) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "a default stream goes with its context");
    SIM_CHECK(sim_stream_not_captured(stream, "destroying it"));
    SIM_CHECK(sim_stream_not_mine(stream, "destroying it"));
    if (finish) {
        SIM_CHECK(sim_stream_wait(stream, -1));
        SIM_CHECK(sim_stream_not_captured(stream, "destroying it")); /* a capture may have begun meanwhile */
    }
    sim_stream_end(stream, !finish);
    return ACL_SUCCESS;
}

aclError aclrtDestroyStream(aclrtStream stream) {
    SIM_BEGIN(aclrtDestroyStream);
    sim_lock();
    return sim_leave(stream_destroy(stream, true));
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
    SIM_BEGIN(aclrtDestroyStreamForce);
    sim_lock();
    return sim_leave(stream_destroy(stream, false));
}

static aclError stream_synchronize(aclrtStream handle, int32_t timeout) {
    sim_stream *stream = NULL;
    SIM_CHECK(sim_check_timeout(timeout));
    SIM_CHECK(sim_stream_of(handle, &stream));
    if (stream->flags & SIM_STREAM_APART) return ACL_SUCCESS; /* no such stream is captured */
    SIM_CHECK(sim_stream_not_captured(stream, "waiting for it"));
    SIM_CHECK(sim_stream_not_mine(stream, "waiting for it"));
    struct timespec deadline;
    if (timeout > 0) sim_deadline(timeout, &deadline);
    sim_stream_hold(stream);
    aclError error = ACL_SUCCESS;
    if (sim_stream_idle(stream, timeout > 0 ? &deadline : NULL) == SIM_LATE)
        error = sim_fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "stream %d is not done after %d ms", stream->id, timeout);
    else if (stream->dropped)
        error = sim_fail(ACL_ERROR_RT_STREAM_ABORT, "stream %d was destroyed before its work was done", stream->id);
    else error = sim_stream_failure(stream); /* also of one that was destroyed when all was done */
    sim_stream_release(stream);
    return error;
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
    SIM_BEGIN(aclrtSynchronizeStream);
    sim_lock();
    return sim_leave(stream_synchronize(stream, -1));
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
    SIM_BEGIN(aclrtSynchronizeStreamWithTimeout);
    sim_lock();
    return sim_leave(stream_synchronize(stream, timeout));
}

aclError aclrtStreamQuery(aclrtStream handle, aclrtStreamStatus *status) {
    SIM_BEGIN(aclrtStreamQuery);
    if (!status) return sim_fail(ACL_ERROR_INVALID_PARAM, "status is null");
    sim_lock();
    sim_stream *stream = NULL;
    aclError error = sim_stream_of(handle, &stream);
    if (!error) error = sim_stream_not_captured(stream, "asking whether it is done");
    if (!error) *status = stream->first ? ACL_STREAM_STATUS_NOT_READY : ACL_STREAM_STATUS_COMPLETE;
    return sim_leave(error);
}

aclError aclrtStreamGetId(aclrtStream handle, int32_t *streamId) {
    SIM_BEGIN(aclrtStreamGetId);
    if (!streamId) return sim_fail(ACL_ERROR_INVALID_PARAM, "streamId is null");
    sim_lock();
    const sim_lane *lane = sim_object_find(handle, SIM_LANE);
    sim_stream *stream = NULL;
    aclError error = lane ? ACL_SUCCESS : sim_stream_of(handle, &stream);
    if (!error) *streamId = lane ? lane->id : stream->id;
    return sim_leave(error);
}

/* What is enqueued is dropped; a wait ends. */
aclError aclrtStreamAbort(aclrtStream handle) {
    SIM_BEGIN(aclrtStreamAbort);
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "stream is null");
    sim_lock();
    sim_stream *stream = NULL;
    aclError error = sim_stream_of(handle, &stream);
    if (!error) error = sim_stream_not_captured(stream, "aborting it");
    if (!error) error = sim_stream_not_mine(stream, "aborting it");
    if (error) return sim_leave(error);
    sim_stream_hold(stream);
    stream->aborts++;
    atomic_store(&stream->aborted, true);
    sim_changed();
    (void)sim_stream_idle(stream, NULL);
    if (!--stream->aborts && !stream->ending) atomic_store(&stream->aborted, false);
    sim_stream_release(stream);
    return sim_leave(ACL_SUCCESS);
}

aclError aclrtGetStreamAvailableNum(uint32_t *streamCount) {
    SIM_BEGIN(aclrtGetStreamAvailableNum);
    if (!streamCount) return sim_fail(ACL_ERROR_INVALID_PARAM, "streamCount is null");
    sim_lock();
    sim_context *context = NULL;
    aclError error = sim_current(&context);
    if (!error) *streamCount = (uint32_t)(sim.settings.streams - sim.devices[context->device].hardware_streams);
    return sim_leave(error);
}

static aclError stream_set_failure_mode(sim_stream *stream, uint64_t mode) {
    if (mode > ACL_STOP_ON_FAILURE)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%llu is no failure mode", (unsigned long long)mode);
    stream->failure_mode = mode;
    return ACL_SUCCESS;
}

aclError aclrtSetStreamFailureMode(aclrtStream handle, uint64_t mode) {
    SIM_BEGIN(aclrtSetStreamFailureMode);
    sim_lock();
    sim_stream *stream = NULL;
    aclError error = sim_stream_of(handle, &stream);
    return sim_leave(error ? error : stream_set_failure_mode(stream, mode));
}

aclError aclrtSetStreamAttribute(aclrtStream handle, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue *value) {
    SIM_BEGIN(aclrtSetStreamAttribute);
    if (!value) return sim_fail(ACL_ERROR_INVALID_PARAM, "value is null");
    sim_lock();
    sim_stream *stream = NULL;
    aclError error = sim_stream_of(handle, &stream);
    if (!error &&
        (stmAttrType == ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK || stmAttrType == ACL_STREAM_ATTR_USER_CUSTOM_TAG))
        error = sim_stream_not_captured(stream, "changing its overflow check or tag");
    if (error) return sim_leave(error);
    switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE: error = stream_set_failure_mode(stream, value->failureMode); break;
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK: stream->overflow = value->overflowSwitch; break;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG: stream->tag = value->userCustomTag; break;
    default: error = sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "attribute %d is not simulated", (int)stmAttrType);
    }
    return sim_leave(error);
}

aclError aclrtGetStreamAttribute(aclrtStream handle, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue *value) {
    SIM_BEGIN(aclrtGetStreamAttribute);
    if (!value) return sim_fail(ACL_ERROR_INVALID_PARAM, "value is null");
    sim_lock();
    sim_stream *stream = NULL;
    aclError error = sim_stream_of(handle, &stream);
    if (error) return sim_leave(error);
    memset(value, 0, sizeof *value);
    switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE: value->failureMode = stream->failure_mode; break;
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK: value->overflowSwitch = stream->overflow; break;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG: value->userCustomTag = stream->tag; break;
    case ACL_STREAM_ATTR_PRIORITY: value->priority = stream->priority; break;
    default: error = sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "attribute %d is not simulated", (int)stmAttrType);
    }
    return sim_leave(error);
}

/* Only between streams that are bound to one graph; a task there. */
aclError aclrtActiveStream(aclrtStream activeStream, aclrtStream handle) {
    SIM_BEGIN(aclrtActiveStream);
    sim_lock();
    sim_stream *active = NULL, *stream = NULL;
    aclError error = sim_stream_of(activeStream, &active);
    if (!error) error = sim_stream_of(handle, &stream);
    if (!error && (!stream->model || !stream->model->built || stream->model != active->model))
        error = sim_fail(ACL_ERROR_RT_STREAM_MODEL, "both streams must be bound to one graph");
    if (error) return sim_leave(error);
    sim_task *task = NULL;
    error = sim_task_for(stream, SIM_ACTIVE, &task);
    return sim_leave(error ? error : sim_submit(stream, task));
}
