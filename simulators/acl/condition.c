/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs inside of graphs, run as an 8-byte cell of device memory says: once, while it is not 0, or the one that it names. */
#include "sim.h"

static aclError condition_create(const void *handle, uint32_t value, aclmdlRICondHandleFlag flag,
                                 aclmdlRICondHandle *out) {
    if (!handle || !out) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    if ((uint32_t)flag > ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%u is no flag of it", (uint32_t)flag);
    sim_model *model = sim_model_of(handle);
    if (!model) return sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such graph");
    if (model->built) return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "graph %u is no captured one", model->id);
    if (model->status != SIM_STATUS_CAPTURING)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "graph %u is not being captured", model->id);
    if (!sim.settings.software_sq) return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "conditions need software queues");
    sim_condition *condition = sim_allocate(sizeof *condition);
    void *cell = NULL;
    aclError error = condition ? sim_memory_take(model->context->device, 8, SIM_MEMORY_DEVICE, &cell)
                               : sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a condition");
    if (!error && !sim_object_add(condition, SIM_CONDITION)) {
        (void)sim_memory_give(cell, SIM_MEMORY_DEVICE);
        error = sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a condition");
    }
    if (error) {
        free(condition);
        return error;
    }
    sim_memory_own(cell);
    condition->model = model;
    condition->cell = cell;
    condition->value = value;
    condition->flag = flag;
    *condition->cell = value;
    condition->next = model->conditions;
    model->conditions = condition;
    *out = condition;
    return ACL_SUCCESS;
}

aclError aclmdlRICondHandleCreate(aclmdlRI modelRI, uint32_t defaultLaunchValue, aclmdlRICondHandleFlag flag,
                                  aclmdlRICondHandle *handle) {
    SIM_BEGIN(aclmdlRICondHandleCreate);
    sim_lock();
    return sim_leave(condition_create(modelRI, defaultLaunchValue, flag, handle));
}

aclError aclmdlRICondHandleGetCondPtr(aclmdlRICondHandle handle, uint64_t **condPtr) {
    SIM_BEGIN(aclmdlRICondHandleGetCondPtr);
    if (!handle || !condPtr) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    sim_lock();
    const sim_condition *condition = sim_object_find(handle, SIM_CONDITION);
    if (!condition) return sim_leave(sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such condition"));
    *condPtr = condition->cell;
    return sim_leave(ACL_SUCCESS);
}

static bool condition_size_fits(const aclmdlRICondTaskParams *p) {
    switch (p->type) {
    case ACL_MODEL_RI_COND_TYPE_IF: return p->size == 1 || p->size == 2;
    case ACL_MODEL_RI_COND_TYPE_WHILE: return p->size == 1;
    case ACL_MODEL_RI_COND_TYPE_SWITCH: return p->size > 0;
    default: return false;
    }
}

static aclError condition_children(sim_model *parent, sim_task *task) {
    for (uint32_t i = 0; i < task->as.branch.size; i++) {
        SIM_CHECK(sim_model_make(parent->context, &task->as.branch.models[i]));
        task->as.branch.models[i]->parent = parent;
        task->as.branch.models[i]->unfinished = true;
    }
    return ACL_SUCCESS;
}

static aclError condition_add(const aclmdlRICondTaskParams *p, aclrtStream handle) {
    sim_stream *stream = NULL;
    SIM_CHECK(sim_stream_of(handle, &stream));
    sim_condition *condition = sim_object_find(p->handle, SIM_CONDITION);
    if (!condition) return sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such condition");
    sim_concern(condition->model);
    if (!condition_size_fits(p))
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%u graphs do not go with type %d", p->size, (int)p->type);
    if (!stream->model || stream->model != condition->model)
        return sim_fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "stream %d does not capture the graph of the condition",
                        stream->id);
    sim_model *parent = stream->model;
    sim_task *task = NULL;
    SIM_CHECK(sim_task_for(stream, SIM_BRANCH, &task));
    sim_model **models = sim_allocate(p->size * sizeof *models);
    if (!models) {
        sim_task_free(task);
        return sim_stream_no_memory(stream, "a condition");
    }
    task->as.branch.condition = condition;
    task->as.branch.type = p->type;
    task->as.branch.size = p->size;
    task->as.branch.models = models;
    aclError error = condition_children(parent, task);
    if (error) {
        for (uint32_t i = 0; i < p->size && models[i]; i++) sim_model_free(models[i]);
        sim_task_free(task);
        sim_invalidate(parent, error);
        return error;
    }
    aclmdlRI *out = p->modelRIArray;
    for (uint32_t i = 0; i < p->size; i++) out[i] = models[i];
    return sim_submit(stream, task);
}

aclError aclmdlRIAddCondTask(aclmdlRICondTaskParams params, aclrtStream stream, uint32_t flag) {
    SIM_BEGIN(aclmdlRIAddCondTask);
    if (!params.handle || !params.modelRIArray) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    if (flag) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%u is no flag of it", flag);
    sim_lock();
    return sim_leave(condition_add(&params, stream));
}

/* ------------------------------------------------------------------------------------------------------- running */

void sim_condition_start(const sim_model *model) {
    for (const sim_condition *condition = model->conditions; condition; condition = condition->next)
        if (condition->flag == ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT) *condition->cell = condition->value;
}

static uint64_t condition_now(const sim_task *task) {
    return __atomic_load_n(task->as.branch.condition->cell, __ATOMIC_ACQUIRE);
}

aclError sim_condition_run(const sim_task *task, const sim_stop *stop, char *text) {
    sim_model *const *models = task->as.branch.models;
    uint64_t now = condition_now(task);
    uint32_t size = task->as.branch.size;
    aclError error = ACL_SUCCESS;
    switch (task->as.branch.type) {
    case ACL_MODEL_RI_COND_TYPE_WHILE:
        for (; now && !error; now = condition_now(task)) {
            error = sim_model_run(models[0], stop, text);
            if (!error && sim_stopped(stop)) error = sim_stop_told(text); /* also where the part is empty */
        }
        return error;
    case ACL_MODEL_RI_COND_TYPE_SWITCH: return now < size ? sim_model_run(models[now], stop, text) : ACL_SUCCESS;
    default:
        if (now) return sim_model_run(models[0], stop, text);
        return size == 2 ? sim_model_run(models[1], stop, text) : ACL_SUCCESS;
    }
}
