/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs that are put together without a capture: persistent streams are bound to one, and what is submitted there becomes
 * its tasks. And what any graph is asked: its name, its number, to stop, whom to tell when it goes. */
#include "sim.h"

static aclError build_of(const void *handle, sim_model **out_model) {
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "modelRI is null");
    *out_model = sim_model_of(handle);
    return *out_model ? ACL_SUCCESS : sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such graph");
}

static aclError build_open(const void *handle, sim_model **out_model) {
    SIM_CHECK(build_of(handle, out_model));
    if ((*out_model)->built && (*out_model)->status == SIM_STATUS_CAPTURING) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "graph %u is not being built", (*out_model)->id);
}

aclError aclmdlRIBuildBegin(aclmdlRI *modelRI, uint32_t flag) {
    SIM_BEGIN(aclmdlRIBuildBegin);
    if (!modelRI) return sim_fail(ACL_ERROR_INVALID_PARAM, "modelRI is null");
    if (flag) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%u is no flag of it", flag);
    sim_lock();
    sim_context *context = NULL;
    sim_model *model = NULL;
    aclError error = sim_current(&context);
    if (!error) error = sim_model_make(context, &model);
    if (!error) {
        model->built = true;
        model->status = SIM_STATUS_CAPTURING;
        *modelRI = model;
    }
    return sim_leave(error);
}

aclError aclmdlRIBindStream(aclmdlRI modelRI, aclrtStream handle, uint32_t flag) {
    SIM_BEGIN(aclmdlRIBindStream);
    if (!modelRI) return sim_fail(ACL_ERROR_INVALID_PARAM, "modelRI is null");
    sim_lock();
    sim_model *model = NULL;
    sim_stream *stream = NULL;
    aclError error = sim_stream_of(handle, &stream);
    if (!error) error = sim_stream_not_captured(stream, "binding it to a graph");
    if (!error) error = build_open(modelRI, &model);
    if (!error && model->context != stream->context)
        error = sim_fail(ACL_ERROR_RT_MODEL_CONTEXT, "graph %u is of another context than stream %d", model->id,
                         stream->id);
    if (!error && flag != ACL_MODEL_STREAM_FLAG_HEAD && flag != ACL_MODEL_STREAM_FLAG_DEFAULT)
        error = sim_fail(ACL_ERROR_RT_PARAM_INVALID, "0x%x is no flag of it", flag);
    if (!error && !(stream->flags & ACL_STREAM_PERSISTENT))
        error = sim_fail(ACL_ERROR_RT_PARAM_INVALID, "stream %d was made without ACL_STREAM_PERSISTENT", stream->id);
    if (!error) error = sim_model_lane(model, stream, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL);
    return sim_leave(error);
}

static aclError build_bound(const void *handle, aclrtStream stream_handle, const char *what, sim_model **out_model,
                            sim_stream **out_stream) {
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "modelRI is null");
    SIM_CHECK(sim_stream_of(stream_handle, out_stream));
    sim_model *captures = (*out_stream)->model;
    if (captures && !captures->built) return sim_stream_not_captured(*out_stream, what);
    SIM_CHECK(build_of(handle, out_model));
    if (captures == *out_model) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_RT_STREAM_MODEL, "stream %d is not bound to graph %u", (*out_stream)->id,
                    (*out_model)->id);
}

aclError aclmdlRIEndTask(aclmdlRI modelRI, aclrtStream handle) {
    SIM_BEGIN(aclmdlRIEndTask);
    sim_lock();
    sim_model *model = NULL;
    sim_stream *stream = NULL;
    aclError error = build_bound(modelRI, handle, "ending its tasks", &model, &stream);
    if (error) return sim_leave(error);
    sim_task *task = NULL;
    error = sim_task_for(stream, SIM_JOIN, &task);
    return sim_leave(error ? error : sim_submit(stream, task));
}

aclError aclmdlRIBuildEnd(aclmdlRI modelRI, void *reserve) {
    SIM_BEGIN(aclmdlRIBuildEnd);
    if (reserve) return sim_fail(ACL_ERROR_INVALID_PARAM, "reserve is not null");
    sim_lock();
    sim_model *model = NULL;
    aclError error = build_open(modelRI, &model);
    bool ended = false;
    for (size_t i = 0; !error && i < model->task_count; i++) ended |= model->tasks[i]->kind == SIM_JOIN;
    if (!error && !ended)
        error = sim_fail(ACL_ERROR_RT_PARAM_INVALID, "graph %u has no end: aclmdlRIEndTask", model->id);
    if (!error) error = sim_model_prepare(model);
    if (!error) model->status = SIM_STATUS_READY;
    return sim_leave(error);
}

aclError aclmdlRIUnbindStream(aclmdlRI modelRI, aclrtStream handle) {
    SIM_BEGIN(aclmdlRIUnbindStream);
    sim_lock();
    sim_model *model = NULL;
    sim_stream *stream = NULL;
    aclError error = build_bound(modelRI, handle, "unbinding it", &model, &stream);
    if (!error) stream->model = NULL;
    return sim_leave(error);
}

/* ----------------------------------------------------------------------------------------------- what it is asked */

aclError aclmdlRISetName(aclmdlRI modelRI, const char *name) {
    SIM_BEGIN(aclmdlRISetName);
    if (!name) return sim_fail(ACL_ERROR_INVALID_PARAM, "name is null");
    sim_lock();
    sim_model *model = NULL;
    aclError error = build_of(modelRI, &model);
    if (!error && strlen(name) >= sizeof model->name)
        error = sim_fail(ACL_ERROR_RT_PARAM_INVALID, "a name has at most %zu bytes", sizeof model->name - 1);
    if (!error) memcpy(model->name, name, strlen(name) + 1);
    return sim_leave(error);
}

aclError aclmdlRIGetName(aclmdlRI modelRI, uint32_t maxLen, char *name) {
    SIM_BEGIN(aclmdlRIGetName);
    if (!name) return sim_fail(ACL_ERROR_INVALID_PARAM, "name is null");
    sim_lock();
    sim_model *model = NULL;
    aclError error = build_of(modelRI, &model);
    if (!error && strlen(model->name) >= maxLen)
        error =
            sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%u bytes are too few for a name of %zu", maxLen, strlen(model->name));
    if (!error) memcpy(name, model->name, strlen(model->name) + 1);
    return sim_leave(error);
}

aclError aclmdlRIGetId(aclmdlRI modelRI, uint32_t *modelRIId) {
    SIM_BEGIN(aclmdlRIGetId);
    if (!modelRIId) return sim_fail(ACL_ERROR_INVALID_PARAM, "modelRIId is null");
    sim_lock();
    sim_model *model = NULL;
    aclError error = build_of(modelRI, &model);
    if (!error) *modelRIId = model->id;
    return sim_leave(error);
}

aclError aclmdlRIAbort(aclmdlRI modelRI) {
    SIM_BEGIN(aclmdlRIAbort);
    sim_lock();
    sim_model *model = NULL;
    aclError error = build_of(modelRI, &model);
    if (!error && !model->built)
        error = sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "a captured graph cannot be aborted");
    if (!error && model->active) {
        atomic_store(&model->aborted, true);
        sim_changed();
    }
    return sim_leave(error);
}

/* Called when the graph is gone and without the lock: they may call the library. */
static aclError build_tell(const void *handle, aclrtCallback function, void *data) {
    enum { MOST = 8 };
    sim_model *model = NULL;
    SIM_CHECK(build_of(handle, &model));
    sim_farewell **end = &model->farewells;
    int count = 0;
    for (; *end; end = &(*end)->next) count++;
    if (count == MOST) return sim_fail(ACL_ERROR_RT_OVER_LIMIT, "graph %u has %d callbacks already", model->id, MOST);
    sim_farewell *farewell = sim_allocate(sizeof *farewell);
    if (!farewell) return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a callback");
    *farewell = (sim_farewell){NULL, function, data, true};
    *end = farewell;
    return ACL_SUCCESS;
}

aclError aclmdlRIDestroyRegisterCallback(aclmdlRI modelRI, aclrtCallback func, void *userData) {
    SIM_BEGIN(aclmdlRIDestroyRegisterCallback);
    if (!func) return sim_fail(ACL_ERROR_INVALID_PARAM, "func is null");
    sim_lock();
    return sim_leave(build_tell(modelRI, func, userData));
}

aclError aclmdlRIDestroyUnregisterCallback(aclmdlRI modelRI, aclrtCallback func) {
    SIM_BEGIN(aclmdlRIDestroyUnregisterCallback);
    if (!func) return sim_fail(ACL_ERROR_INVALID_PARAM, "func is null");
    sim_lock();
    sim_model *model = NULL;
    aclError error = build_of(modelRI, &model);
    if (error) return sim_leave(error);
    sim_farewell **link = &model->farewells;
    while (*link && (*link)->function != func) link = &(*link)->next;
    sim_farewell *found = *link;
    if (!found) return sim_leave(sim_fail(ACL_ERROR_RT_PARAM_INVALID, "the callback is not there"));
    *link = found->next;
    free(found);
    return sim_leave(ACL_SUCCESS);
}
