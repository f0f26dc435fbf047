/* SPDX-License-Identifier: Apache-2.0
 *
 * Events in captures. A record there is a task of the graph, and a wait for it an edge; a stream that waits for one joins the
 * capture. Events of outside are tasks that act when the graph runs. What goes wrong here breaks the capture. */
#include "sim.h"

static aclError fork_broken(sim_model *model, aclError error) {
    if (model) sim_invalidate(model, error);
    return error;
}

static aclError fork_task(sim_model *model, sim_stream *stream, uint32_t kind, sim_event *event, sim_task **out_task) {
    sim_task *task = NULL;
    SIM_CHECK(sim_task_for(stream, kind, &task));
    task->external = event != NULL;
    task->as.event.event = event;
    if (event) event->users++;
    *out_task = task;
    return sim_model_append(model, stream, task);
}

/* An event that counts, with the flag that captures ask for. */
static aclError fork_check_kind(const sim_event *event) {
    if (event->kind == SIM_EVENT_EX && (event->flags & ACL_EVENT_SYNC)) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                    "events of captures are made by aclrtCreateEventExWithFlag(ACL_EVENT_SYNC)");
}

static bool fork_is_old_external(const sim_event *event) {
    return event->kind == SIM_EVENT_FLAG && event->flags == ACL_EVENT_EXTERNAL;
}

/* By the flag of the call. Once an event has been of one use it keeps to it, and a graph has one task of it. */
static aclError fork_check_external(const sim_event *event, const sim_stream *stream) {
    if (!sim.settings.software_sq)
        return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "external records and waits need software queues");
    if (!stream->model || stream->model->built)
        return sim_fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "stream %d is not captured: external is a flag for captures",
                        stream->id);
    SIM_CHECK(fork_check_kind(event));
    if (stream->model->parent)
        return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "graphs of conditions have no external events");
    if (event->use == 1)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "the event was used inside of captures: it cannot change");
    for (size_t i = 0; i < stream->model->task_count; i++) {
        const sim_task *task = stream->model->tasks[i];
        bool of_event = task->kind == SIM_RECORD || task->kind == SIM_WAIT;
        if (of_event && task->external && task->as.event.event == event)
            return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "the graph has an external %s of the event already",
                            task->kind == SIM_RECORD ? "record" : "wait");
    }
    return ACL_SUCCESS;
}

static aclError fork_external(sim_event *event, sim_stream *stream, uint32_t kind) {
    aclError error = fork_check_external(event, stream);
    if (error) return error == ACL_ERROR_RT_STREAM_NOT_CAPTURED ? error : fork_broken(stream->model, error);
    event->use = 2;
    sim_task *task = NULL;
    return fork_task(stream->model, stream, kind, event, &task);
}

static aclError fork_implicit(const char *what) {
    return sim_fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
                    "the default stream would become part of a capture: %s of an event that was captured", what);
}

static aclError fork_check_use(const sim_event *event) {
    SIM_CHECK(fork_check_kind(event));
    return event->use == 2 ? sim_fail(ACL_ERROR_RT_PARAM_INVALID, "the event was used as external: it cannot change")
                           : ACL_SUCCESS;
}

aclError sim_fork_record(sim_event *event, sim_stream *stream, bool external) {
    if (external) return fork_external(event, stream, SIM_RECORD);
    if (!stream->model) return fork_implicit("recording");
    if (fork_is_old_external(event)) {
        sim_task *outside = NULL;
        return fork_task(stream->model, stream, SIM_RECORD, event, &outside);
    }
    aclError error = fork_check_use(event);
    if (error) return fork_broken(stream->model, error);
    sim_task *task = NULL;
    SIM_CHECK(fork_task(stream->model, stream, SIM_RECORD, NULL, &task));
    event->use = 1;
    event->model = stream->model;
    event->record = task;
    return ACL_SUCCESS;
}

static aclError fork_join(sim_event *event, sim_stream *stream) {
    sim_model *model = event->model;
    if (stream->is_default) return fork_implicit("waiting");
    if (stream->context != model->context)
        return fork_broken(model, sim_fail(ACL_ERROR_RT_STREAM_CONTEXT,
                                           "stream %d is of another context than the capture", stream->id));
    if (model->status == SIM_STATUS_INVALIDATED)
        return sim_fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, "the capture was broken: %.300s", model->cause);
    aclError error = sim_capture_check_flags(stream);
    if (!error) error = sim_model_lane(model, stream, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL);
    if (error) return fork_broken(model, error);
    model->lanes[stream->lane]->forked_by = event->record;
    return ACL_SUCCESS;
}

static aclError fork_wait_inside(sim_event *event, sim_stream *stream) {
    sim_model *model = stream->model;
    SIM_CHECK(fork_check_use(event));
    if (!event->model)
        return sim_fail(ACL_ERROR_RT_CAPTURE_DEPENDENCY,
                        "the event has no record in this capture: what happened outside "
                        "cannot be waited for inside");
    if (event->model == model) return ACL_SUCCESS;
    (void)fork_broken(event->model, ACL_ERROR_RT_STREAM_CAPTURE_CONFLICT);
    return sim_fail(ACL_ERROR_RT_STREAM_CAPTURE_CONFLICT,
                    "the event was recorded in another capture: two captures are kept apart");
}

aclError sim_fork_wait(sim_event *event, sim_stream *stream, bool external) {
    if (external) return fork_external(event, stream, SIM_WAIT);
    sim_task *task = NULL;
    if (stream->model && fork_is_old_external(event)) return fork_task(stream->model, stream, SIM_WAIT, event, &task);
    aclError error = ACL_SUCCESS;
    if (!stream->model) SIM_CHECK(fork_join(event, stream));
    else error = fork_wait_inside(event, stream);
    if (error) return fork_broken(stream->model, error);
    sim_task *record = event->record;
    SIM_CHECK(fork_task(stream->model, stream, SIM_WAIT, NULL, &task));
    task->as.event.record = record;
    record->as.event.waited_by = stream->lane + 1u;
    return ACL_SUCCESS;
}

aclError sim_fork_reset(sim_event *event, sim_stream *stream) {
    if (stream->is_default) return fork_implicit("resetting");
    if (!stream->model)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "only an event made by aclrtCreateEventWithFlag can be reset");
    sim_task *task = NULL;
    if (fork_is_old_external(event)) return fork_task(stream->model, stream, SIM_RESET, event, &task);
    return fork_broken(stream->model,
                       sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "only an event of outside is reset in a capture"));
}

/* --------------------------------------------------------------------------------------------------- joining back */

/* The lane's last task is a record that lane 0, or a lane that is joined, waits for. */
static bool fork_joined(const sim_model *model, size_t lane, size_t depth) {
    if (lane == 0) return true;
    const sim_task *last = model->lanes[lane]->last;
    if (!last || last->kind != SIM_RECORD || last->external || !last->as.event.waited_by || depth > model->lane_count)
        return false;
    return fork_joined(model, last->as.event.waited_by - 1u, depth + 1);
}

aclError sim_fork_check(const sim_model *model) {
    for (size_t i = 1; i < model->lane_count; i++) {
        if (fork_joined(model, i, 0)) continue;
        const sim_lane *lane = model->lanes[i];
        return sim_fail(
            ACL_ERROR_RT_STREAM_UNJOINED,
            "stream %d was forked into the capture by the record that is task %u, and is not joined: its last "
            "task is %u, %s",
            lane->id, lane->forked_by ? lane->forked_by->sequence : 0, lane->last ? lane->last->sequence : 0,
            lane->last ? sim_kind_name(lane->last->kind) : "none");
    }
    return ACL_SUCCESS;
}
