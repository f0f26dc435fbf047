/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: tasks in the order of their capture, and the prepared list of those that do something. A run is one task of a
 * stream and one loop over the list, unless lanes may have to wait on their own. */
#include <unistd.h>

#include "sim.h"

aclError sim_model_make(sim_context *context, sim_model **out_model) {
    static uint32_t ids;
    sim_model *model = sim_allocate(sizeof *model);
    if (!model || !sim_object_add(model, SIM_MODEL)) {
        free(model);
        return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a graph");
    }
    model->context = context;
    model->id = ids++;
    model->checked_gone = UINT64_MAX;
    model->next = context->models;
    context->models = model;
    *out_model = model;
    return ACL_SUCCESS;
}

sim_model *sim_model_of(const void *handle) {
    sim_model *model = sim_object_find(handle, SIM_MODEL);
    sim_concern(model);
    return model;
}

static void model_free_parts(sim_model *model) {
    for (size_t i = 0; i < model->task_count; i++) sim_task_free(model->tasks[i]);
    for (size_t i = 0; i < model->lane_count; i++) {
        sim_object_remove(model->lanes[i]);
        free(model->lanes[i]);
    }
    while (model->groups) {
        sim_group *group = model->groups;
        model->groups = group->next;
        sim_stream *updating = group->updating;
        if (updating && updating->updating == group) {
            sim_group_forget(updating);
            updating->update_lost = true;
        }
        sim.devices[model->context->device].updatable -= group->count;
        sim_object_remove(group);
        free(group);
    }
    while (model->conditions) {
        sim_condition *condition = model->conditions;
        model->conditions = condition->next;
        (void)sim_memory_give(condition->cell, SIM_MEMORY_DEVICE);
        sim_object_remove(condition);
        free(condition);
    }
    sim_arguments_free_all(model->retired);
}

static void model_free_children(const sim_model *parent) {
    for (sim_model *model = parent->context->models; model;) {
        if (model->parent != parent) {
            model = model->next;
            continue;
        }
        sim_model_free(model);
        model = parent->context->models;
    }
}

/* A part that went before its whole: nothing points to it any more. */
static void model_leave_parent(sim_model *model) {
    for (size_t i = 0; i < model->parent->task_count; i++) {
        sim_task *task = model->parent->tasks[i];
        for (uint32_t k = 0; task->kind == SIM_BRANCH && k < task->as.branch.size; k++)
            if (task->as.branch.models[k] == model) task->as.branch.models[k] = NULL;
    }
}

void sim_model_free(sim_model *model) {
    sim_capture_detach(model);
    model_free_children(model);
    if (model->parent) model_leave_parent(model);
    sim_model **link = &model->context->models;
    while (*link != model) link = &(*link)->next;
    *link = model->next;
    while (model->farewells) {
        sim_farewell *farewell = model->farewells;
        model->farewells = farewell->next;
        sim_farewell_add(farewell);
    }
    model_free_parts(model);
    sim_hardware_give(model->context->device, model->hardware);
    sim.devices[model->context->device].notifies -= model->notifies;
    free(model->tasks);
    free(model->work);
    free(model->lanes);
    sim_object_remove(model);
    free(model);
}

aclError sim_model_lane(sim_model *model, sim_stream *stream, aclError error) {
    char what[96];
    SIM_CHECK(sim_group_not_updating(stream));
    (void)snprintf(what, sizeof what, "a shadow of captured stream %d", stream->id);
    bool holds = !sim.settings.software_sq;
    if (holds) SIM_CHECK(sim_hardware_take(model->context->device, 1, error, what));
    sim_lane *lane = sim_allocate(sizeof *lane);
    if (!lane ||
        !sim_grow((void **)&model->lanes, &model->lane_capacity, model->lane_count + 1, sizeof *model->lanes) ||
        !sim_object_add(lane, SIM_LANE)) {
        free(lane);
        if (holds) sim_hardware_give(model->context->device, 1);
        return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a captured stream");
    }
    model->hardware += holds;
    lane->model = model;
    lane->id = stream->id;
    stream->model = model;
    stream->lane = (uint32_t)model->lane_count;
    model->lanes[model->lane_count++] = lane;
    return ACL_SUCCESS;
}

static aclError model_put(sim_model *model, sim_stream *stream, sim_task *task) {
    if (!sim_grow((void **)&model->tasks, &model->task_capacity, model->task_count + 1, sizeof *model->tasks) ||
        !sim_object_add(task, SIM_TASK))
        return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a task of a graph");
    sim_lane *lane = model->lanes[stream->lane];
    task->lane = stream->lane;
    model->tasks[model->task_count++] = task;
    task->sequence = (uint32_t)model->task_count;
    lane->tasks++;
    lane->last = task;
    return ACL_SUCCESS;
}

/* A queue that is full goes on in another hardware stream, which a task of its own activates. */
static aclError model_cascade(sim_model *model, sim_stream *stream) {
    sim_lane *lane = model->lanes[stream->lane];
    if (sim.settings.queue <= 0 || !lane->tasks || lane->tasks % (uint64_t)sim.settings.queue) return ACL_SUCCESS;
    bool holds = !sim.settings.software_sq;
    if (holds)
        SIM_CHECK(sim_hardware_take(model->context->device, 1, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
                                    "a captured stream that goes on"));
    model->hardware += holds;
    lane->cascades++;
    sim_task *task = sim_task_make(SIM_ACTIVE);
    aclError error = task ? model_put(model, stream, task) : sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a task");
    if (error) sim_task_free(task);
    return error;
}

aclError sim_model_append(sim_model *model, sim_stream *stream, sim_task *task) {
    aclError error = ACL_SUCCESS;
    if (model->status == SIM_STATUS_INVALIDATED)
        error = sim_fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, "the capture was broken: %.300s", model->cause);
    else if (model->status != SIM_STATUS_CAPTURING)
        error = sim_fail(ACL_ERROR_RT_STREAM_MODEL, "graph %u, which stream %d is bound to, is finished", model->id,
                         stream->id);
    if (!error) error = sim_group_capture(model, stream, task);
    if (!error) error = model_cascade(model, stream);
    if (!error) error = model_put(model, stream, task);
    if (!error) return ACL_SUCCESS;
    sim_task_free(task);
    sim_invalidate(model, error);
    return error;
}

/* -------------------------------------------------------------------------------------------------- the prepared list */

static bool model_does_something(const sim_task *task) {
    if (task->disabled || task->kind == SIM_ACTIVE || task->kind == SIM_JOIN) return false;
    bool event = task->kind == SIM_RECORD || task->kind == SIM_WAIT;
    return !event || task->external;
}

/* What a run and its graph have marks for. */
static bool model_marked(const sim_task *task) { return task->kind == SIM_WAIT || task->kind == SIM_RECORD; }

aclError sim_model_prepare(sim_model *model) {
    sim_task **work = sim_allocate((model->task_count + 1) * sizeof *work);
    if (!work) return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for the list of a graph");
    free(model->work);
    model->work = work;
    model->work_count = model->outside_count = 0;
    model->apart = false;
    model->checked_gone = UINT64_MAX;
    for (size_t i = 0; i < model->task_count; i++) {
        sim_task *task = model->tasks[i];
        if (!model_does_something(task)) continue;
        work[model->work_count++] = task;
        model->outside_count += model_marked(task);
        if (task->kind == SIM_WAIT || task->kind == SIM_VALUE_WAIT) model->apart = model->lane_count > 1;
    }
    return ACL_SUCCESS;
}

bool sim_model_take_marks(sim_task *run, uint64_t stream) {
    const sim_model *model = run->as.run.model;
    if (!model->outside_count) return true;
    run->as.run.marks = sim_allocate(model->outside_count * sizeof(sim_record *));
    for (size_t i = 0; run->as.run.marks && i < model->work_count; i++) {
        const sim_task *task = model->work[i];
        if (!model_marked(task)) continue;
        sim_record *mark = task->kind == SIM_RECORD ? sim_event_issue(task->as.event.event, stream)
                                                    : sim_record_hold(task->as.event.event->latest);
        if (!mark && task->kind == SIM_RECORD) {
            sim_model_settle_marks(run, ACL_ERROR_BAD_ALLOC);
            return false;
        }
        run->as.run.marks[run->as.run.mark_count++] = mark;
    }
    return run->as.run.marks != NULL;
}

void sim_model_use_marks(sim_task *run) {
    sim_model *model = run->as.run.model;
    for (size_t i = 0, mark = 0; i < model->work_count && mark < run->as.run.mark_count; i++) {
        if (!model_marked(model->work[i])) continue;
        sim_record_release(model->work[i]->as.event.mark);
        model->work[i]->as.event.mark = sim_record_hold(run->as.run.marks[mark++]);
    }
}

void sim_model_settle_marks(sim_task *run, aclError error) {
    sim_model *model = run->as.run.model;
    for (size_t i = 0, mark = 0; i < model->work_count && mark < run->as.run.mark_count; i++) {
        sim_task *task = model->work[i];
        if (!model_marked(task)) continue;
        sim_record *own = run->as.run.marks[mark++];
        if (task->kind == SIM_RECORD && !own->done) sim_event_record_done(task->as.event.event, own, error);
    }
}

/* Tasks are looked at again only when something has gone since. With the lock. */
static aclError model_check(sim_model *model, char *text) {
    uint64_t gone = sim_memory_frees() + sim_kernel_unloads();
    if (model->checked_gone == gone) return ACL_SUCCESS;
    char why[SIM_TEXT] = "";
    for (size_t i = 0; i < model->work_count; i++) {
        aclError error = sim_task_stale(model->work[i], why);
        if (!error) continue;
        (void)snprintf(text, SIM_TEXT, "graph %u, task %u: %.400s", model->id, model->work[i]->sequence, why);
        return error;
    }
    model->checked_gone = gone;
    return ACL_SUCCESS;
}

/* Whether it may go on, if perhaps only to fail; for a wait of outside. With the lock. */
static bool model_ready(const sim_task *task) {
    char why[SIM_TEXT];
    if (task->kind == SIM_VALUE_WAIT) return sim_task_stale(task, why) || sim_value_reached(task);
    return task->kind != SIM_WAIT || sim_event_reached(task->as.event.event, task->as.event.mark);
}

static aclError model_event(sim_task *task) {
    sim_event *event = task->as.event.event;
    sim_record *mark = NULL;
    if (task->kind == SIM_RESET) event->raised = false;
    else {
        /* The run's own, issued when it was enqueued; graphs of conditions have none. */
        mark = task->as.event.mark ? task->as.event.mark : sim_event_issue(event, 0);
        task->as.event.mark = NULL;
        if (!mark) return ACL_ERROR_BAD_ALLOC;
        sim_event_record_done(event, mark, ACL_SUCCESS);
        sim_record_release(mark);
    }
    sim_changed();
    return ACL_SUCCESS;
}

aclError sim_stop_told(char *text) {
    (void)snprintf(text, SIM_TEXT, "the run was aborted");
    return ACL_ERROR_RT_STREAM_ABORT;
}

static aclError model_step(sim_task *task, const sim_stop *stop, bool wait, char *text) {
    if (sim_stopped(stop)) return sim_stop_told(text);
    switch (task->kind) {
    case SIM_WAIT:
    case SIM_VALUE_WAIT: {
        sim_lock();
        while (wait && !model_ready(task) && !sim_stopped(stop)) (void)sim_wait_changed(NULL);
        aclError stale = sim_task_stale(task, text);
        sim_unlock();
        return sim_stopped(stop) ? sim_stop_told(text) : stale;
    }
    case SIM_BRANCH: return sim_condition_run(task, stop, text);
    case SIM_RECORD:
    case SIM_RESET: sim_lock(); return sim_leave(model_event(task));
    case SIM_VALUE_WRITE: {
        aclError error = sim_task_run(task, text);
        sim_lock();
        sim_changed();
        sim_unlock();
        return error;
    }
    default: return sim_task_run(task, text);
    }
}

static aclError model_failed(const sim_model *model, const sim_task *task, aclError error, char *text) {
    char why[SIM_TEXT];
    (void)snprintf(why, sizeof why, "graph %u, task %u: %.400s", model->id, task->sequence, text);
    memcpy(text, why, sizeof why);
    return error;
}

static aclError model_run_in_order(const sim_model *model, const sim_stop *stop, char *text) {
    for (size_t i = 0; i < model->work_count; i++) {
        aclError error = model_step(model->work[i], stop, true, text);
        if (error) return model_failed(model, model->work[i], error, text);
    }
    return ACL_SUCCESS;
}

/* The lane's next task at or behind `from`; task_count: none. */
static size_t model_next(const sim_model *model, size_t lane, size_t from) {
    while (from < model->task_count && model->tasks[from]->lane != lane) from++;
    return from;
}

static bool model_can_go(const sim_task *task, const bool *done) {
    if (!model_does_something(task)) return task->kind != SIM_WAIT || done[task->as.event.record->sequence - 1];
    sim_lock();
    bool ready = model_ready(task);
    sim_unlock();
    return ready;
}

/* Each lane in its order, and whichever can go on: any order that the graph allows. */
static aclError model_run_apart(const sim_model *model, const sim_stop *stop, char *text) {
    uint64_t random = (uint64_t)sim.settings.seed + model->id;
    bool *done = calloc(model->task_count + 1, sizeof *done);
    size_t *at = calloc(model->lane_count, sizeof *at), left = model->task_count;
    aclError error = done && at ? ACL_SUCCESS : ACL_ERROR_BAD_ALLOC;
    for (size_t lane = 0; !error && lane < model->lane_count; lane++) at[lane] = model_next(model, lane, 0);
    while (!error && left) {
        if (sim.settings.delay) sim_delay(&random);
        else random = random * 6364136223846793005u + 1442695040888963407u;
        size_t first = (size_t)(random >> 40) % model->lane_count;
        size_t tried = 0, lane = first;
        while (tried < model->lane_count &&
               (at[lane] == model->task_count || !model_can_go(model->tasks[at[lane]], done))) {
            tried++;
            lane = (lane + 1) % model->lane_count;
        }
        if (tried == model->lane_count) {
            (void)usleep(20);
            error = sim_stopped(stop) ? sim_stop_told(text) : ACL_SUCCESS;
            continue;
        }
        sim_task *task = model->tasks[at[lane]];
        if (model_does_something(task)) error = model_step(task, stop, false, text);
        if (error) (void)model_failed(model, task, error, text);
        done[at[lane]] = true;
        at[lane] = model_next(model, lane, at[lane] + 1);
        left--;
    }
    free(done);
    free(at);
    return error;
}

aclError sim_model_run(sim_model *model, const sim_stop *stop, char *text) {
    sim_lock();
    aclError error = model_check(model, text);
    sim_condition_start(model);
    bool apart = model->apart || (sim.settings.delay && model->lane_count > 1);
    sim_unlock();
    sim_count_one(SIM_CALL_replays);
    if (error) return error;
    return apart ? model_run_apart(model, stop, text) : model_run_in_order(model, stop, text);
}

/* With software queues they are bound while it runs. */
static void model_give_queues(sim_model *model) {
    if (!sim.settings.software_sq || !model->hardware) return;
    sim_hardware_give(model->context->device, model->hardware);
    model->hardware = 0;
}

void sim_model_run_done(sim_model *model) {
    if (--model->pending) return;
    sim_arguments_free_all(model->retired);
    model->retired = NULL;
    model_give_queues(model);
}

/* ------------------------------------------------------------------------------------------------- the interface */

static aclError model_executable(const void *handle, sim_model **out_model) {
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "modelRI is null");
    sim_model *model = sim_model_of(handle);
    if (!model) return sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such graph");
    if (model->status == SIM_STATUS_CAPTURING || model->status == SIM_STATUS_INVALIDATED || model->unfinished)
        return sim_fail(ACL_ERROR_RT_MODEL_CAPTURED, "graph %u is being captured", model->id);
    if (model->status != SIM_STATUS_READY || model->parent)
        return sim_fail(ACL_ERROR_RT_MODEL_EXECUTE, "graph %u is not ready (%s)", model->id,
                        model->parent                          ? "it is a part of another"
                        : model->status == SIM_STATUS_UPDATING ? "aclmdlRIUpdate comes first"
                                                               : "an update of it failed");
    *out_model = model;
    return ACL_SUCCESS;
}

static aclError model_execute(const void *handle, aclrtStream stream_handle, sim_stream **out_stream) {
    sim_model *model = NULL;
    sim_stream *stream = NULL;
    SIM_CHECK(model_executable(handle, &model));
    SIM_CHECK(sim_stream_of(stream_handle, &stream));
    if (model->context != stream->context)
        return sim_fail(ACL_ERROR_RT_MODEL_CONTEXT, "graph %u is of another context than stream %d", model->id,
                        stream->id);
    SIM_CHECK(sim_stream_not_captured(stream, "launching a graph"));
    if (stream->updating || stream->update_lost)
        return sim_fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT, "a task group has kernels only");
    if (sim.settings.software_sq && !model->hardware) {
        int64_t streams = 0;
        for (size_t i = 0; i < model->lane_count; i++) streams += 1 + (int64_t)model->lanes[i]->cascades;
        SIM_CHECK(sim_hardware_take(stream->context->device, streams, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
                                    "too many streams are captured: running the graph"));
        model->hardware = streams;
    }
    sim_task *task = NULL;
    aclError error = sim_task_for(stream, SIM_RUN, &task);
    if (!error) {
        task->as.run.model = model;
        *out_stream = stream;
        error = sim_submit(stream, task);
    }
    if (error && !model->pending) model_give_queues(model);
    return error;
}

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) {
    SIM_BEGIN(aclmdlRIExecuteAsync);
    sim_lock();
    sim_stream *on = NULL;
    return sim_leave(model_execute(modelRI, stream, &on));
}

aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) {
    SIM_BEGIN(aclmdlRIExecute);
    if (!modelRI) return sim_fail(ACL_ERROR_INVALID_PARAM, "modelRI is null");
    SIM_CHECK(sim_check_timeout(timeout));
    sim_lock();
    sim_stream *stream = NULL;
    aclError error = sim_stream_of(NULL, &stream);
    if (!error) error = sim_stream_not_mine(stream, "waiting for the graph");
    const sim_model *model = error ? NULL : sim_model_of(modelRI);
    if (model) error = sim_model_not_mine(model, "running it"); /* its runs wait for each other */
    if (!error) error = model_execute(modelRI, NULL, &stream);
    if (!error) error = sim_stream_wait(stream, timeout);
    return sim_leave(error ? error : sim_stream_failure(stream));
}

static aclError model_destroy(const void *handle) {
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "modelRI is null");
    sim_model *model = sim_model_of(handle);
    if (!model) return ACL_SUCCESS;
    if (!model->built && (model->status == SIM_STATUS_CAPTURING || model->status == SIM_STATUS_INVALIDATED))
        return sim_fail(ACL_ERROR_RT_MODEL_CAPTURED, "graph %u is being captured", model->id);
    if (model->parent)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "graph %u goes with the graph that it is a part of", model->id);
    SIM_CHECK(sim_model_not_mine(model, "destroying it"));
    struct timespec deadline;
    uint64_t number = model->object.number;
    sim_deadline(sim.settings.destroy_ms, &deadline);
    while (model->pending) {
        bool late = !sim_wait_changed(&deadline);
        if (!sim_object_is(handle, SIM_MODEL, number)) return ACL_SUCCESS; /* another thread was quicker */
        if (late && model->pending)
            return sim_fail(ACL_ERROR_RT_MODEL_RUNNING, "graph %u still runs after %lld ms", model->id,
                            (long long)sim.settings.destroy_ms);
    }
    sim_model_free(model);
    return ACL_SUCCESS;
}

aclError aclmdlRIDestroy(aclmdlRI modelRI) {
    SIM_BEGIN(aclmdlRIDestroy);
    sim_lock();
    return sim_leave(model_destroy(modelRI));
}
