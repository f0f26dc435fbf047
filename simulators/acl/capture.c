/* SPDX-License-Identifier: Apache-2.0
 *
 * Captures: what reaches the stream becomes a task of a graph instead of running. Begin, end, and what is said of it. */
#include "sim.h"

void sim_invalidate(sim_model *model, aclError error) {
    if (model->status != SIM_STATUS_CAPTURING || model->built) return;
    model->status = SIM_STATUS_INVALIDATED;
    (void)snprintf(model->cause, sizeof model->cause, "%s answered %d", sim_call_name(), error);
}

void sim_concern(sim_model *model) {
    sim_thread *self = sim_self();
    if (!model || model->built || model->status != SIM_STATUS_CAPTURING) return;
    for (uint32_t i = 0; i < self->about_count; i++)
        if (self->about[i].model == model) return;
    if (self->about_count == sizeof self->about / sizeof self->about[0]) return;
    self->about[self->about_count++] = (struct sim_about){model, model->object.number};
}

void sim_concern_stream(const void *handle) {
    const sim_stream *stream = sim_object_find(handle, SIM_STREAM);
    if (stream) sim_concern(stream->model);
}

void sim_refused(aclError error) {
    sim_thread *self = sim_self();
    for (uint32_t i = 0; error && sim.settings.strict && i < self->about_count; i++)
        if (sim_object_is(self->about[i].model, SIM_MODEL, self->about[i].number))
            sim_invalidate(self->about[i].model, error);
    self->about_count = 0;
}

void sim_illegal(const sim_context *context, aclError error) {
    for (sim_model *model = context->models; model && sim.settings.strict; model = model->next)
        sim_invalidate(model, error);
}

aclError sim_context_not_captured(const sim_context *context, const char *what) {
    for (const sim_stream *stream = context->streams; stream; stream = stream->next) {
        if (!stream->model || stream->model->built) continue;
        sim_illegal(context, ACL_ERROR_RT_STREAM_CAPTURED);
        return sim_fail(ACL_ERROR_RT_STREAM_CAPTURED, "stream %d of the context is captured: %s is not allowed",
                        stream->id, what);
    }
    return ACL_SUCCESS;
}

aclError sim_capture_check_flags(const sim_stream *stream) {
    if (!(stream->flags & SIM_STREAM_APART)) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "stream %d has flags 0x%x: such streams are not captured", stream->id,
                    stream->flags);
}

void sim_capture_detach(sim_model *model) {
    for (sim_stream *stream = model->context->streams; stream; stream = stream->next)
        if (stream->model == model) stream->model = NULL;
    /* An event may be of another context than the streams that it was recorded on. */
    for (sim_context *context = sim.contexts; context; context = context->next)
        for (sim_event *event = context->events; event; event = event->next) {
            if (event->model != model) continue;
            event->model = NULL;
            event->record = NULL;
        }
    model->origin = NULL;
}

static aclError capture_start(sim_model *model, sim_stream *stream, aclmdlRICaptureMode mode) {
    model->mode = mode;
    model->thread = sim_self_number();
    model->status = SIM_STATUS_CAPTURING;
    aclError error = sim_model_lane(model, stream, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL);
    if (error) model->status = SIM_STATUS_NONE;
    else model->origin = stream;
    return error;
}

static aclError capture_check(aclrtStream handle, aclmdlRICaptureMode mode, sim_stream **out_stream) {
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "the default stream cannot be captured: make one");
    sim_concern_stream(handle);
    if ((unsigned)mode > ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%d is no capture mode (0 to 2 are)", (int)mode);
    SIM_CHECK(sim_stream_of(handle, out_stream));
    sim_stream *stream = *out_stream;
    SIM_CHECK(sim_stream_not_captured(stream, "beginning another capture"));
    if (stream->is_default)
        return sim_fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, "the default stream cannot be captured: make one");
    SIM_CHECK(sim_capture_check_flags(stream));
    return sim_group_not_updating(stream);
}

aclError aclmdlRICaptureBegin(aclrtStream handle, aclmdlRICaptureMode mode) {
    SIM_BEGIN(aclmdlRICaptureBegin);
    sim_lock();
    sim_stream *stream = NULL;
    sim_model *model = NULL;
    aclError error = capture_check(handle, mode, &stream);
    if (!error) error = sim_model_make(stream->context, &model);
    if (!error) error = capture_start(model, stream, mode);
    if (error && model) sim_model_free(model);
    return sim_leave(error);
}

aclError aclmdlRICaptureToModelRIBegin(aclrtStream handle, aclmdlRI modelRI, aclmdlRICaptureMode mode) {
    SIM_BEGIN(aclmdlRICaptureToModelRIBegin);
    if (!modelRI) return sim_fail(ACL_ERROR_INVALID_PARAM, "modelRI is null");
    sim_lock();
    sim_stream *stream = NULL;
    sim_model *model = sim_model_of(modelRI);
    aclError error = capture_check(handle, mode, &stream);
    if (!error && (!model || !model->parent))
        error = sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "it is no graph inside of another");
    if (!error && model->context != stream->context)
        error = sim_fail(ACL_ERROR_RT_MODEL_CONTEXT, "graph %u is of another context than stream %d", model->id,
                         stream->id);
    if (!error && (!model->unfinished || model->status != SIM_STATUS_NONE))
        error = sim_fail(ACL_ERROR_RT_MODEL_CAPTURED, "the graph was captured, or is being captured");
    if (!error) error = capture_start(model, stream, mode);
    return sim_leave(error);
}

static int capture_status(const sim_model *model) {
    if (!model || model->built) return ACL_MODEL_RI_CAPTURE_STATUS_NONE;
    return model->status == SIM_STATUS_INVALIDATED ? ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED
                                                   : ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
}

aclError aclmdlRICaptureGetInfo(aclrtStream handle, aclmdlRICaptureStatus *status, aclmdlRI *modelRI) {
    SIM_BEGIN(aclmdlRICaptureGetInfo);
    if (!status && !modelRI) return sim_fail(ACL_ERROR_INVALID_PARAM, "both pointers are null");
    sim_lock();
    sim_stream *stream = NULL;
    aclError error = sim_stream_of(handle, &stream);
    if (error) return sim_leave(error);
    int now = capture_status(stream->model);
    if (status) *status = (aclmdlRICaptureStatus)now;
    if (modelRI) *modelRI = now == ACL_MODEL_RI_CAPTURE_STATUS_NONE ? NULL : stream->model;
    return sim_leave(ACL_SUCCESS);
}

/* ----------------------------------------------------------------------------------------------------------- end */

static bool capture_has_unfinished(const sim_model *model) {
    for (const sim_model *other = model->context->models; other; other = other->next)
        if (other->parent == model && other->unfinished) return true;
    return false;
}

static aclError capture_take_notify(sim_model *model) {
    sim_device *device = &sim.devices[model->context->device];
    if (device->notifies >= sim.settings.notifies)
        return sim_fail(ACL_ERROR_RT_NO_NOTIFY_RESOURCE,
                        "all %lld notify ids of device %d are in use: each graph keeps one",
                        (long long)sim.settings.notifies, model->context->device);
    device->notifies++;
    model->notifies++;
    return ACL_SUCCESS;
}

/* In this order. Each failure ends the capture. */
static aclError capture_judge(sim_model *model) {
    if (model->thread != sim_self_number() && model->mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
        return sim_fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD,
                        "another thread began the capture, and it is not RELAXED: it is dropped");
    if (model->status == SIM_STATUS_INVALIDATED)
        return sim_fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, "the capture was broken: %.300s", model->cause);
    if (capture_has_unfinished(model))
        return sim_fail(ACL_ERROR_RT_SUB_ACLGRAPH_IS_CAPTURING, "a graph of a condition was not captured yet");
    if (model->open_group)
        return sim_fail(ACL_ERROR_RT_STREAM_TASK_GROUP_STATUS, "a task group is open: aclmdlRICaptureTaskGrpEnd");
    SIM_CHECK(sim_fork_check(model));
    return capture_take_notify(model);
}

/* A graph whose capture failed goes. The one that it was to be a part of cannot do without it. */
static void capture_fail(sim_model *model, aclError error) {
    if (model->parent) sim_invalidate(model->parent, error);
    sim_model_free(model); /* its streams are free */
}

static aclError capture_finish(sim_model *model, aclmdlRI *out) {
    aclError error = capture_judge(model);
    if (!error) error = sim_model_prepare(model);
    if (error) {
        capture_fail(model, error);
        return error;
    }
    sim_capture_detach(model);
    model->status = SIM_STATUS_READY;
    model->unfinished = false;
    if (out) *out = model;
    return ACL_SUCCESS;
}

/* A failure that was asked for ends the capture, as each other one of the end does. */
static aclError capture_told_to_fail(aclrtStream handle, aclError told) {
    sim_lock();
    const sim_stream *stream = sim_object_find(handle, SIM_STREAM);
    sim_model *model = stream ? stream->model : NULL;
    if (model && !model->built && model->origin == stream) capture_fail(model, told);
    return sim_leave(told);
}

aclError aclmdlRICaptureEnd(aclrtStream handle, aclmdlRI *modelRI) {
    aclError told = sim_enter_ready(SIM_CALL_aclmdlRICaptureEnd);
    if (told) {
        if (modelRI) *modelRI = NULL;
        return capture_told_to_fail(handle, told);
    }
    sim_lock();
    if (modelRI) *modelRI = NULL;
    sim_stream *stream = sim_object_find(handle, SIM_STREAM);
    if (!modelRI && (!stream || !stream->model || !stream->model->parent)) /* a part may do without */
        return sim_leave(sim_fail(ACL_ERROR_INVALID_PARAM, "modelRI is null"));
    aclError error = sim_stream_of(handle, &stream);
    if (error) return sim_leave(error);
    sim_model *model = stream->model;
    if (!model || model->built)
        return sim_leave(sim_fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "stream %d is not captured", stream->id));
    if (model->origin != stream)
        return sim_leave(sim_fail(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED,
                                  "stream %d joined the capture: it ends on stream %d, and goes on", stream->id,
                                  model->origin->id));
    return sim_leave(capture_finish(model, modelRI));
}
