/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph's streams and tasks, seen and changed one by one. Changes count from aclmdlRIUpdate on; until then the graph does not
 * run. */
#include "sim.h"

static aclError edit_supported(void) {
    return sim.settings.software_sq ? ACL_SUCCESS
                                    : sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "editing tasks needs software queues");
}

static aclError edit_room(uint32_t count, void *const *array, uint32_t *in_out_count) {
    uint32_t room = *in_out_count;
    *in_out_count = count;
    if (!array || room >= count) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY, "there is room for %u, there are %u", room, count);
}

aclError aclmdlRIGetStreams(aclmdlRI modelRI, aclrtStream *streams, uint32_t *numStreams) {
    SIM_BEGIN(aclmdlRIGetStreams);
    if (!modelRI || !numStreams) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    sim_lock();
    const sim_model *model = sim_model_of(modelRI);
    aclError error = model ? edit_supported() : sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such graph");
    if (!error) error = edit_room((uint32_t)model->lane_count, streams, numStreams);
    for (size_t i = 0; !error && streams && i < model->lane_count; i++) streams[i] = model->lanes[i];
    return sim_leave(error);
}

aclError aclmdlRIGetTasksByStream(aclrtStream stream, aclmdlRITask *tasks, uint32_t *numTasks) {
    SIM_BEGIN(aclmdlRIGetTasksByStream);
    if (!stream || !numTasks) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    sim_lock();
    const sim_lane *lane = sim_object_find(stream, SIM_LANE);
    if (lane) sim_concern(lane->model);
    aclError error = lane ? edit_supported() : sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "it is no stream of a graph");
    if (!error) error = edit_room(lane->tasks, tasks, numTasks);
    for (size_t i = 0, put = 0; !error && tasks && i < lane->model->task_count; i++)
        if (lane->model->lanes[lane->model->tasks[i]->lane] == lane) tasks[put++] = lane->model->tasks[i];
    return sim_leave(error);
}

static sim_model *edit_model(const sim_task *task) {
    for (sim_context *context = sim.contexts; context; context = context->next)
        for (sim_model *model = context->models; model; model = model->next)
            if (task->sequence <= model->task_count && model->tasks[task->sequence - 1] == task) return model;
    return NULL;
}

static aclError edit_task(const void *handle, sim_task **out_task) {
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "task is null");
    SIM_CHECK(edit_supported());
    *out_task = sim_object_find(handle, SIM_TASK);
    if (!*out_task) return sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such task");
    sim_concern(edit_model(*out_task));
    return ACL_SUCCESS;
}

static aclmdlRITaskType edit_type(const sim_task *task) {
    switch (task->kind) {
    case SIM_KERNEL: return ACL_MODEL_RI_TASK_KERNEL;
    case SIM_RECORD: return ACL_MODEL_RI_TASK_EVENT_RECORD;
    case SIM_WAIT: return ACL_MODEL_RI_TASK_EVENT_WAIT;
    case SIM_RESET: return ACL_MODEL_RI_TASK_EVENT_RESET;
    case SIM_VALUE_WRITE: return ACL_MODEL_RI_TASK_VALUE_WRITE;
    case SIM_VALUE_WAIT: return ACL_MODEL_RI_TASK_VALUE_WAIT;
    default: return ACL_MODEL_RI_TASK_DEFAULT;
    }
}

aclError aclmdlRITaskGetType(aclmdlRITask handle, aclmdlRITaskType *type) {
    SIM_BEGIN(aclmdlRITaskGetType);
    if (!type) return sim_fail(ACL_ERROR_INVALID_PARAM, "type is null");
    sim_lock();
    sim_task *task = NULL;
    aclError error = edit_task(handle, &task);
    if (!error) *type = edit_type(task);
    return sim_leave(error);
}

aclError aclmdlRITaskGetSeqId(aclmdlRITask handle, uint32_t *id) {
    SIM_BEGIN(aclmdlRITaskGetSeqId);
    if (!id) return sim_fail(ACL_ERROR_INVALID_PARAM, "id is null");
    sim_lock();
    sim_task *task = NULL;
    aclError error = edit_task(handle, &task);
    if (!error) *id = task->sequence;
    return sim_leave(error);
}

/* What was set last, also before aclmdlRIUpdate. */
static void edit_describe(const sim_task *task, aclmdlRITaskParams *params) {
    memset(params, 0, sizeof *params);
    params->type = edit_type(task);
    params->taskGrp = task->group;
    if (task->kind == SIM_KERNEL) {
        const sim_arguments *now = task->as.kernel.edited ? task->as.kernel.edited : atomic_load(&task->as.kernel.now);
        const void *arguments = now->device ? now->device : now->bytes, *function = now->function;
        memcpy(&params->kernelTaskParams.args, &arguments, sizeof arguments);
        memcpy(&params->kernelTaskParams.funcHandle, &function, sizeof function);
        params->kernelTaskParams.isHostArgs = now->device == NULL;
        params->kernelTaskParams.argsSize = now->size;
        params->kernelTaskParams.numBlocks = now->blocks;
    } else if (task->kind == SIM_VALUE_WRITE || task->kind == SIM_VALUE_WAIT) {
        /* The two start alike. */
        params->valueWaitTaskParams.devAddr = task->as.value.edit ? task->as.value.new_address : task->as.value.address;
        params->valueWaitTaskParams.value = task->as.value.edit ? task->as.value.new_value : task->as.value.value;
        if (task->kind == SIM_VALUE_WAIT)
            params->valueWaitTaskParams.flag = task->as.value.edit ? task->as.value.new_flag : task->as.value.flag;
    } else if (params->type != ACL_MODEL_RI_TASK_DEFAULT) {
        params->eventRecordTaskParams.event = task->external ? task->as.event.event : NULL;
        params->eventRecordTaskParams.eventFlag = task->external ? task->as.event.event->flags : ACL_EVENT_SYNC;
        params->eventRecordTaskParams.eventRecordFlag = task->external;
    }
}

aclError aclmdlRITaskGetParams(aclmdlRITask handle, aclmdlRITaskParams *params) {
    SIM_BEGIN(aclmdlRITaskGetParams);
    if (!params) return sim_fail(ACL_ERROR_INVALID_PARAM, "params is null");
    sim_lock();
    sim_task *task = NULL;
    aclError error = edit_task(handle, &task);
    if (!error) edit_describe(task, params);
    return sim_leave(error);
}

static aclError edit_open(const sim_task *task, sim_model **out_model) {
    sim_model *model = edit_model(task);
    if (!model || model->parent)
        return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "tasks of a graph inside of another are not edited");
    if (model->pending || model->status == SIM_STATUS_CAPTURING || model->status == SIM_STATUS_INVALIDATED)
        return sim_fail(ACL_ERROR_RT_MODEL_UPDATE_FAILED, "graph %u %s", model->id,
                        model->pending ? "runs" : "is being captured");
    *out_model = model;
    return ACL_SUCCESS;
}

/* One that failed is over with the next that succeeds, of that task. */
static void edit_done(sim_model *model, sim_task *task, aclError error) {
    task->faulty = error != ACL_SUCCESS;
    model->status = SIM_STATUS_UPDATING;
    for (size_t i = 0; i < model->task_count; i++)
        if (model->tasks[i]->faulty) model->status = SIM_STATUS_FAULT;
}

static aclError edit_kernel(sim_task *task, const aclmdlRIKernelTaskParams *params) {
    sim_function *function = NULL;
    SIM_CHECK(sim_function_of(params->funcHandle, &function));
    if (!params->numBlocks || (!params->args && params->argsSize))
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "0 blocks, or no arguments");
    if (!params->isHostArgs) SIM_CHECK(sim_launch_check_device(params->args, params->argsSize));
    sim_arguments *made = sim_arguments_make(function, params->numBlocks, params->isHostArgs ? params->argsSize : 0);
    if (!made) return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for arguments");
    if (params->isHostArgs) memcpy(made->bytes, params->args, params->argsSize);
    else {
        made->device = params->args;
        made->size = params->argsSize;
    }
    sim_arguments_free(task->as.kernel.edited);
    task->as.kernel.edited = made;
    return ACL_SUCCESS;
}

static aclError edit_set(sim_task *task, const aclmdlRITaskParams *params) {
    if (params->type != edit_type(task)) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "the task is of another type");
    if (task->kind == SIM_KERNEL) return edit_kernel(task, &params->kernelTaskParams);
    /* The two start alike. */
    uint32_t flag = task->kind == SIM_VALUE_WAIT ? params->valueWaitTaskParams.flag : 0;
    if (!params->valueWriteTaskParams.devAddr) return sim_fail(ACL_ERROR_INVALID_PARAM, "devAddr is null");
    SIM_CHECK(sim_value_check(params->valueWriteTaskParams.devAddr, flag, task->kind));
    task->as.value.edit = true;
    task->as.value.new_value = params->valueWriteTaskParams.value;
    task->as.value.new_address = params->valueWriteTaskParams.devAddr;
    task->as.value.new_flag = flag;
    return ACL_SUCCESS;
}

aclError aclmdlRITaskSetParams(aclmdlRITask handle, aclmdlRITaskParams *params) {
    SIM_BEGIN(aclmdlRITaskSetParams);
    if (!params) return sim_fail(ACL_ERROR_INVALID_PARAM, "params is null");
    sim_lock();
    sim_task *task = NULL;
    sim_model *model = NULL;
    aclError error = edit_task(handle, &task);
    if (!error && task->kind != SIM_KERNEL && task->kind != SIM_VALUE_WRITE && task->kind != SIM_VALUE_WAIT)
        error = sim_fail(ACL_ERROR_RT_PARAM_INVALID, "kernels, value writes and value waits can be set, no %s",
                         sim_kind_name(task->kind));
    if (!error) error = edit_open(task, &model);
    if (!error) {
        error = edit_set(task, params);
        if (!error) task->disabled = false; /* it is there again */
        edit_done(model, task, error);
    }
    return sim_leave(error);
}

aclError aclmdlRITaskDisable(aclmdlRITask handle) {
    SIM_BEGIN(aclmdlRITaskDisable);
    sim_lock();
    sim_task *task = NULL;
    sim_model *model = NULL;
    aclError error = edit_task(handle, &task);
    if (!error && task->kind != SIM_KERNEL && task->kind != SIM_VALUE_WRITE && task->kind != SIM_VALUE_WAIT)
        error = sim_fail(ACL_ERROR_RT_PARAM_INVALID, "kernels, value writes and value waits can be left out, no %s",
                         sim_kind_name(task->kind));
    if (!error) error = edit_open(task, &model);
    if (!error) {
        task->disabled = true;
        edit_done(model, task, ACL_SUCCESS);
    }
    return sim_leave(error);
}

static void edit_apply(sim_task *task) {
    if (task->kind == SIM_KERNEL && task->as.kernel.edited) {
        sim_arguments_free(atomic_exchange(&task->as.kernel.now, task->as.kernel.edited));
        task->as.kernel.edited = NULL;
    }
    if ((task->kind != SIM_VALUE_WRITE && task->kind != SIM_VALUE_WAIT) || !task->as.value.edit) return;
    task->as.value.value = task->as.value.new_value;
    task->as.value.address = task->as.value.new_address;
    task->as.value.flag = task->as.value.new_flag;
    task->as.value.edit = false;
}

static aclError edit_update(const void *handle) {
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "modelRI is null");
    SIM_CHECK(edit_supported());
    sim_model *model = sim_model_of(handle);
    if (!model) return sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such graph");
    if (model->parent) return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "a graph inside of another is not edited");
    if (model->pending || model->status == SIM_STATUS_CAPTURING || model->status == SIM_STATUS_INVALIDATED ||
        model->status == SIM_STATUS_FAULT)
        return sim_fail(ACL_ERROR_RT_MODEL_UPDATE_FAILED, "graph %u runs, is being captured, or an edit of it failed",
                        model->id);
    for (size_t i = 0; i < model->task_count; i++) edit_apply(model->tasks[i]);
    SIM_CHECK(sim_model_prepare(model));
    model->status = SIM_STATUS_READY;
    return ACL_SUCCESS;
}

aclError aclmdlRIUpdate(aclmdlRI modelRI) {
    SIM_BEGIN(aclmdlRIUpdate);
    sim_lock();
    return sim_leave(edit_update(modelRI));
}
