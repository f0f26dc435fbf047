/* SPDX-License-Identifier: Apache-2.0
 *
 * Task groups: launches of a capture that are replaced later, all of a group at once, by launches of the same number that do
 * not run themselves. */
#include "sim.h"

const char *sim_kind_name(uint32_t kind) {
    static const char *const names[SIM_KIND_COUNT] = {"KERNEL",      "MEMCPY_ASYNC",  "MEMSET_ASYNC",  "HOST_FUNC",
                                                      "CALLBACK",    "EVENT_RECORD",  "EVENT_WAIT",    "EVENT_RESET",
                                                      "VALUE_WRITE", "VALUE_WAIT",    "MODEL_EXECUTE", "TASK_UPDATE",
                                                      "CONDITION",   "STREAM_ACTIVE", "END_OF_STREAM", "OFFLINE_MODEL"};
    return names[kind];
}

static bool group_takes(const sim_task *task) {
    return task->kind == SIM_KERNEL && atomic_load(&task->as.kernel.now)->function->kind != ACLSIM_AICPU;
}

/* Of a task that is captured: the open group takes it, or refuses it, which breaks the capture. */
aclError sim_group_capture(sim_model *model, sim_stream *stream, sim_task *task) {
    sim_group *group = model->open_group;
    if (!group) return ACL_SUCCESS;
    if (group->stream != stream)
        return sim_fail(ACL_ERROR_RT_STREAM_TASK_GROUP_INTR,
                        "a task group is open on stream %d: stream %d has to wait for its end", group->stream->id,
                        stream->id);
    if (!group_takes(task))
        return sim_fail(
            ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT, "%s cannot be in a task group: kernels of cube and vector cores can",
            task->kind == SIM_KERNEL ? atomic_load(&task->as.kernel.now)->function->name : sim_kind_name(task->kind));
    if (!group->count++) group->first = model->task_count;
    task->group = group;
    sim.devices[model->context->device].updatable++;
    return ACL_SUCCESS;
}

static aclError group_captured(aclrtStream handle, sim_stream **out_stream) {
    SIM_CHECK(sim_stream_of(handle, out_stream));
    const sim_stream *stream = *out_stream;
    if (stream->model && !stream->model->built) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "stream %d is not captured", stream->id);
}

static aclError group_broken(sim_model *model, aclError error) {
    sim_invalidate(model, error);
    return error;
}

static aclError group_begin(aclrtStream handle) {
    sim_stream *stream = NULL;
    SIM_CHECK(group_captured(handle, &stream));
    sim_model *model = stream->model;
    if (!sim.settings.task_update)
        return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "the driver is too old for task groups");
    if (model->open_group)
        return group_broken(model, sim_fail(ACL_ERROR_RT_STREAM_TASK_GROUP_STATUS, "a task group is open on stream %d",
                                            model->open_group->stream->id));
    if (sim.devices[stream->context->device].updatable >= sim.settings.updates)
        return sim_fail(ACL_ERROR_RT_OVER_LIMIT, "%lld tasks can be updated already", (long long)sim.settings.updates);
    sim_group *group = sim_allocate(sizeof *group);
    if (!group || !sim_object_add(group, SIM_GROUP)) {
        free(group);
        return sim_stream_no_memory(stream, "a task group");
    }
    group->model = model;
    group->stream = stream;
    group->next = model->groups;
    model->groups = model->open_group = group;
    return ACL_SUCCESS;
}

aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream) {
    SIM_BEGIN(aclmdlRICaptureTaskGrpBegin);
    sim_lock();
    return sim_leave(group_begin(stream));
}

static aclError group_end(aclrtStream handle, aclrtTaskGrp *out) {
    sim_stream *stream = NULL;
    if (!out) return sim_fail(ACL_ERROR_INVALID_PARAM, "handle is null");
    SIM_CHECK(group_captured(handle, &stream));
    sim_model *model = stream->model;
    if (!model->open_group || model->open_group->stream != stream)
        return group_broken(
            model, sim_fail(ACL_ERROR_RT_STREAM_TASK_GROUP_STATUS, "no task group is open on stream %d", stream->id));
    *out = model->open_group;
    model->open_group->stream = NULL;
    model->open_group = NULL;
    return ACL_SUCCESS;
}

aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp *handle) {
    SIM_BEGIN(aclmdlRICaptureTaskGrpEnd);
    sim_lock();
    return sim_leave(group_end(stream, handle));
}

/* ------------------------------------------------------------------------------------------------------ updating */

aclError sim_group_not_updating(const sim_stream *stream) {
    if (!stream->updating && !stream->update_lost) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_RT_STREAM_TASK_GROUP_STATUS, "stream %d updates a task group%s", stream->id,
                    stream->update_lost ? " that went with its graph: aclmdlRICaptureTaskUpdateEnd" : "");
}

void sim_group_forget(sim_stream *stream) {
    if (stream->updating && !stream->updating->queued) stream->updating->updating = NULL;
    stream->updating = NULL;
    sim_arguments_free_all(stream->updates);
    stream->updates = NULL;
    stream->updates_end = &stream->updates;
    stream->update_count = 0;
}

static aclError group_update_begin(aclrtStream handle, const void *group_handle) {
    sim_stream *stream = NULL;
    if (!group_handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "handle is null");
    SIM_CHECK(sim_stream_of(handle, &stream));
    SIM_CHECK(sim_stream_not_captured(stream, "updating tasks"));
    if (!sim.settings.task_update)
        return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "the driver is too old for task groups");
    sim_group *group = sim_object_find(group_handle, SIM_GROUP);
    if (!group) return sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such task group");
    sim_concern(group->model);
    if (group->model->context != stream->context)
        return sim_fail(ACL_ERROR_RT_MODEL_CONTEXT, "graph %u of the task group is of another context than stream %d",
                        group->model->id, stream->id);
    if (group->model->status != SIM_STATUS_READY)
        return sim_fail(ACL_ERROR_RT_STREAM_TASK_GROUP_STATUS, "graph %u of the task group is not ready",
                        group->model->id);
    SIM_CHECK(sim_group_not_updating(stream));
    if (group->updating && group->updating != stream)
        return sim_fail(ACL_ERROR_RT_STREAM_TASK_GROUP_STATUS, "another stream than %d updates the task group",
                        stream->id);
    group->updating = stream;
    stream->updating = group;
    return ACL_SUCCESS;
}

aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle) {
    SIM_BEGIN(aclmdlRICaptureTaskUpdateBegin);
    sim_lock();
    return sim_leave(group_update_begin(stream, handle));
}

aclError sim_group_update(sim_stream *stream, sim_task *task) {
    aclError error = stream->update_lost ? sim_group_not_updating(stream) : ACL_SUCCESS;
    if (!error && !group_takes(task))
        error = sim_fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT, "%s does not replace a task of a group",
                         sim_kind_name(task->kind));
    if (!error) {
        sim_arguments *arguments = atomic_exchange(&task->as.kernel.now, NULL);
        *stream->updates_end = arguments;
        stream->updates_end = &arguments->next;
        stream->update_count++;
    }
    sim_task_free(task);
    return error;
}

static aclError group_update_end(aclrtStream handle) {
    sim_stream *stream = NULL;
    SIM_CHECK(sim_stream_of(handle, &stream));
    SIM_CHECK(sim_stream_not_captured(stream, "updating tasks"));
    sim_group *group = stream->updating;
    if (stream->update_lost) {
        aclError error = sim_group_not_updating(stream);
        stream->update_lost = false;
        return error;
    }
    if (!group) return sim_fail(ACL_ERROR_RT_STREAM_TASK_GROUP_STATUS, "stream %d updates no task group", stream->id);
    uint32_t count = stream->update_count;
    sim_task *task = count == group->count ? sim_task_make(SIM_UPDATE) : NULL;
    if (task) {
        task->as.update.group = group;
        task->as.update.first = stream->updates;
        stream->updates = NULL;
    }
    group->queued += task != NULL;
    sim_group_forget(stream);
    if (task) {
        group->model->pending++; /* it stays until this is over */
        aclError error = sim_submit(stream, task);
        if (error) sim_group_applied(group);
        return error;
    }
    if (count == group->count) return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a task");
    return sim_fail(ACL_ERROR_RT_INTERNAL_ERROR, "task group update error: %u launches for a group of %u", count,
                    group->count);
}

aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream) {
    SIM_BEGIN(aclmdlRICaptureTaskUpdateEnd);
    sim_lock();
    return sim_leave(group_update_end(stream));
}

/* With the lock. What a run may still read is freed when no run is left. */
void sim_group_apply(sim_task *task) {
    sim_model *model = task->as.update.group->model;
    for (size_t i = task->as.update.group->first; i < model->task_count && task->as.update.first; i++) {
        sim_task *recorded = model->tasks[i];
        if (recorded->group != task->as.update.group) continue;
        sim_arguments *next = task->as.update.first;
        task->as.update.first = next->next;
        next->next = NULL;
        sim_arguments *before = atomic_exchange(&recorded->as.kernel.now, next);
        before->next = model->retired;
        model->retired = before;
    }
    model->checked_gone = UINT64_MAX;
}

void sim_group_applied(sim_group *group) {
    group->queued--;
    if (!group->queued && group->updating && group->updating->updating != group) group->updating = NULL;
    sim_model_run_done(group->model);
}
