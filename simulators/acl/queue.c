/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams run apart from whoever fills them: each has a worker, which takes its tasks in order, holds back those that wait,
 * and lets the lock go while one runs. Seeded delays before each task make the orders differ that are not forced. */
#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "sim.h"

void sim_changed(void) { (void)pthread_cond_broadcast(&sim.changed); }

void sim_deadline(int64_t milliseconds, struct timespec *out_deadline) {
    (void)clock_gettime(CLOCK_REALTIME, out_deadline);
    out_deadline->tv_sec += (time_t)(milliseconds / 1000);
    out_deadline->tv_nsec += (long)(milliseconds % 1000) * 1000000L;
    if (out_deadline->tv_nsec < 1000000000L) return;
    out_deadline->tv_sec++;
    out_deadline->tv_nsec -= 1000000000L;
}

bool sim_wait_changed(const struct timespec *deadline) {
    if (!deadline) return pthread_cond_wait(&sim.changed, &sim.mutex) == 0;
    return pthread_cond_timedwait(&sim.changed, &sim.mutex, deadline) != ETIMEDOUT;
}

aclError sim_check_timeout(int32_t timeout) {
    if (timeout == -1 || timeout > 0) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "a timeout is -1 or above 0, not %d", timeout);
}

void sim_delay(uint64_t *random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    uint64_t draw = *random >> 33, most = (uint64_t)sim.settings.delay;
    if (draw % 4 == 0) (void)usleep((useconds_t)((draw >> 2) % most));
    else if (draw % 4 == 1) (void)sched_yield();
}

/* ------------------------------------------------------------------------------------------------------- tasks */

sim_task *sim_task_make(uint32_t kind) {
    sim_task *task = sim_allocate(sizeof *task);
    if (task) task->kind = kind;
    return task;
}

aclError sim_stream_no_memory(sim_stream *stream, const char *what) {
    if (stream->model) sim_invalidate(stream->model, ACL_ERROR_BAD_ALLOC);
    return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for %s", what);
}

aclError sim_task_for(sim_stream *stream, uint32_t kind, sim_task **out_task) {
    *out_task = sim_task_make(kind);
    return *out_task ? ACL_SUCCESS : sim_stream_no_memory(stream, "a task");
}

void sim_task_free(sim_task *task) {
    if (!task) return;
    switch (task->kind) {
    case SIM_KERNEL:
        sim_arguments_free(atomic_load(&task->as.kernel.now));
        sim_arguments_free(task->as.kernel.edited);
        break;
    case SIM_RECORD:
    case SIM_WAIT:
    case SIM_RESET:
        sim_record_release(task->as.event.mark);
        if (task->as.event.event) sim_event_release(task->as.event.event);
        break;
    case SIM_RUN:
        for (size_t i = 0; i < task->as.run.mark_count; i++) sim_record_release(task->as.run.marks[i]);
        free(task->as.run.marks);
        break;
    case SIM_UPDATE: sim_arguments_free_all(task->as.update.first); break;
    case SIM_BRANCH: free(task->as.branch.models); break;
    case SIM_OFFLINE:
        sim_offline_release(task->as.offline.model);
        free(task->as.offline.addresses);
        break;
    default: break;
    }
    if (task->object.kind) sim_object_remove(task);
    free(task);
}

static void task_run_copy(const sim_task *task) {
    for (size_t row = 0; row < task->as.copy.height; row++)
        memmove(task->as.copy.to + row * task->as.copy.to_pitch, task->as.copy.from + row * task->as.copy.from_pitch,
                task->as.copy.width);
}

aclError sim_task_run(sim_task *task, char *text) {
    if (task->disabled) return ACL_SUCCESS;
    switch (task->kind) {
    case SIM_KERNEL: return sim_arguments_run(atomic_load_explicit(&task->as.kernel.now, memory_order_acquire), text);
    case SIM_COPY: task_run_copy(task); break;
    case SIM_FILL: memset(task->as.fill.to, task->as.fill.value, task->as.fill.count); break;
    case SIM_HOST: task->as.host.function(task->as.host.argument); break;
    case SIM_VALUE_WRITE: __atomic_store_n(task->as.value.address, task->as.value.value, __ATOMIC_RELEASE); break;
    case SIM_OFFLINE: return sim_offline_run(task->as.offline.model, task->as.offline.addresses, text);
    default: break;
    }
    return ACL_SUCCESS;
}

/* One end of a copy, or a cell: the library's own memory, once. */
static aclError task_memory_gone(const void *first, size_t rows, size_t pitch, size_t width, char *text) {
    bool gone = sim_memory_gone(first, (rows - 1) * pitch + width, text, SIM_TEXT);
    return gone ? ACL_ERROR_RT_AICORE_EXCEPTION : ACL_SUCCESS;
}

aclError sim_task_stale(const sim_task *task, char *text) {
    aclError error = ACL_SUCCESS;
    switch (task->kind) {
    case SIM_KERNEL: return sim_arguments_stale(atomic_load(&task->as.kernel.now), text);
    case SIM_COPY:
        error =
            task_memory_gone(task->as.copy.to, task->as.copy.height, task->as.copy.to_pitch, task->as.copy.width, text);
        return error ? error
                     : task_memory_gone(task->as.copy.from, task->as.copy.height, task->as.copy.from_pitch,
                                        task->as.copy.width, text);
    case SIM_OFFLINE: return sim_offline_stale(task->as.offline.model, task->as.offline.addresses, text);
    case SIM_FILL: return task->as.fill.known ? task_memory_gone(task->as.fill.to, 1, 0, task->as.fill.count, text) : 0;
    case SIM_VALUE_WAIT:
    case SIM_VALUE_WRITE: return task_memory_gone(task->as.value.address, 1, 0, 8, text);
    default: return ACL_SUCCESS;
    }
}

/* ------------------------------------------------------------------------------------------------------- worker */

bool sim_value_reached(const sim_task *task) {
    uint64_t now = __atomic_load_n(task->as.value.address, __ATOMIC_ACQUIRE), value = task->as.value.value;
    switch (task->as.value.flag) {
    case ACL_VALUE_WAIT_GEQ: return (int64_t)(now - value) >= 0;
    case ACL_VALUE_WAIT_EQ: return now == value;
    case ACL_VALUE_WAIT_AND: return (now & value) != 0;
    default: return (~(now | value)) != 0;
    }
}

/* Waits with the lock until the task may go on. An error: it was waited for too long. */
static aclError queue_hold(const sim_stream *stream, const sim_task *task, char *text) {
    struct timespec deadline;
    bool timed = task->kind == SIM_WAIT && task->as.event.timeout > 0;
    if (timed) sim_deadline(task->as.event.timeout, &deadline);
    for (;;) {
        bool ready = true;
        aclError error = sim_task_stale(task, text);
        if (error) return error;
        if (task->kind == SIM_WAIT) ready = sim_event_reached(task->as.event.event, task->as.event.mark);
        if (task->kind == SIM_VALUE_WAIT) ready = sim_value_reached(task);
        if (task->kind == SIM_RUN) ready = !task->as.run.model->active;
        if (ready || stream->aborted) return ACL_SUCCESS;
        if (sim_wait_changed(timed ? &deadline : NULL)) continue;
        (void)snprintf(text, SIM_TEXT, "an event was not recorded in time");
        return ACL_ERROR_RT_WAIT_TIMEOUT;
    }
}

static aclError queue_run_model(const sim_stream *stream, sim_task *task, char *text) {
    sim_model *model = task->as.run.model;
    sim_stop stop = {&stream->aborted, &model->aborted};
    model->active = true;
    atomic_store(&model->aborted, false);
    sim_model_use_marks(task);
    sim_unlock();
    aclError error = sim_model_run(model, &stop, text);
    sim_lock();
    model->active = false;
    return error;
}

/* With the lock; work goes without it. */
static aclError queue_execute(sim_stream *stream, sim_task *task, char *text) {
    aclError error = queue_hold(stream, task, text);
    if (error || stream->aborted) return error;
    switch (task->kind) {
    case SIM_WAIT:
        task->as.event.event->waits_done++;
        if (!task->as.event.mark || !task->as.event.mark->error) return ACL_SUCCESS;
        (void)snprintf(text, SIM_TEXT, "what the stream waited for had failed");
        return task->as.event.mark->error;
    case SIM_RESET: task->as.event.event->raised = false; return ACL_SUCCESS;
    case SIM_RECORD:
    case SIM_VALUE_WAIT:
    case SIM_ACTIVE: return ACL_SUCCESS;
    case SIM_CALLBACK: return sim_callback_deliver(stream, task, text);
    case SIM_UPDATE: sim_group_apply(task); return ACL_SUCCESS;
    case SIM_RUN: return queue_run_model(stream, task, text);
    default: break;
    }
    sim_unlock();
    error = sim_task_run(task, text);
    sim_lock();
    return error;
}

static void queue_failed(sim_stream *stream, aclError error, const char *text) {
    if (!stream->error) {
        stream->error = error;
        (void)snprintf(stream->text, sizeof stream->text, "%s", text);
    }
    if (stream->failure_mode == ACL_STOP_ON_FAILURE) stream->dropping = true;
    aclrtExceptionInfoCallback callback = sim.exception;
    if (!callback) return;
    sim_unlock();
    callback(NULL);
    sim_lock();
}

/* The first task is over, run or dropped. */
static void queue_pop(sim_stream *stream) {
    sim_task *task = stream->first;
    if (task->kind == SIM_RECORD)
        sim_event_record_done(task->as.event.event, task->as.event.mark, stream->dropping ? stream->error : 0);
    if (task->kind == SIM_RUN) {
        sim_model_settle_marks(task, stream->dropping ? stream->error : ACL_SUCCESS);
        sim_model_run_done(task->as.run.model);
    }
    if (task->kind == SIM_UPDATE) sim_group_applied(task->as.update.group);
    stream->first = task->next;
    if (!stream->first) stream->end = &stream->first;
    sim_task_free(task);
    sim_changed();
}

static void queue_one(sim_stream *stream) {
    char text[SIM_TEXT] = "";
    if (sim.settings.delay && !stream->aborted) {
        sim_unlock();
        sim_delay(&stream->random);
        sim_lock();
    }
    bool work = stream->first->kind != SIM_RECORD;
    if (!stream->aborted && !(stream->dropping && work)) {
        aclError error = queue_execute(stream, stream->first, text);
        if (error) queue_failed(stream, error, text);
    }
    queue_pop(stream);
}

static void *queue_work(void *argument) {
    sim_stream *stream = argument;
    sim_lock();
    sim_self()->inside = stream->object.number;
    for (;;) {
        while (!stream->first && !stream->ending) (void)pthread_cond_wait(&stream->wake, &sim.mutex);
        if (!stream->first) break;
        queue_one(stream);
        if (!sim_self()->farewells) continue;
        sim_unlock();
        sim_farewells_say();
        sim_lock();
    }
    sim_unlock();
    return NULL;
}

static bool queue_start(sim_stream *stream) {
    if (!stream->started) stream->started = pthread_create(&stream->worker, NULL, queue_work, stream) == 0;
    return stream->started;
}

/* ---------------------------------------------------------------------------------------------------- submitting */

static aclError queue_push(sim_stream *stream, sim_task *task) {
    if (!queue_start(stream)) {
        sim_task_free(task);
        return sim_fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "no thread for stream %d", stream->id);
    }
    if (task->kind == SIM_RECORD) {
        task->as.event.mark = sim_event_issue(task->as.event.event, stream->object.number);
        if (!task->as.event.mark) {
            sim_task_free(task);
            return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a record");
        }
    }
    if (task->kind == SIM_WAIT) {
        task->as.event.mark = sim_record_hold(task->as.event.event->latest);
        task->as.event.event->waits++;
    }
    if (task->kind == SIM_RUN) {
        if (!sim_model_take_marks(task, stream->object.number)) {
            sim_task_free(task);
            return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a run");
        }
        task->as.run.model->pending++;
    }
    *stream->end = task;
    stream->end = &task->next;
    (void)pthread_cond_signal(&stream->wake);
    return ACL_SUCCESS;
}

aclError sim_submit(sim_stream *stream, sim_task *task) {
    if (stream->updating || stream->update_lost) return sim_group_update(stream, task);
    if (stream->model) return sim_model_append(stream->model, stream, task);
    return queue_push(stream, task);
}

/* -------------------------------------------------------------------------------------------------------- waiting */

void sim_stream_hold(sim_stream *stream) { stream->holds++; }

void sim_stream_release(sim_stream *stream) {
    if (--stream->holds || !stream->gone) return;
    (void)pthread_cond_destroy(&stream->wake);
    free(stream);
}

int sim_stream_idle(sim_stream *stream, const struct timespec *deadline) {
    bool in_time = true;
    sim_stream_hold(stream);
    while (stream->first && in_time) in_time = sim_wait_changed(deadline);
    int result = stream->ending ? SIM_GONE : stream->first ? SIM_LATE : SIM_IDLE;
    sim_stream_release(stream);
    return result;
}

aclError sim_stream_not_mine(const sim_stream *stream, const char *what) {
    if (sim_self()->inside != stream->object.number) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_RT_PARAM_INVALID,
                    "stream %d waits for the function that makes this call: %s would never end", stream->id, what);
}

aclError sim_model_not_mine(const sim_model *model, const char *what) {
    const sim_stream *mine = NULL;
    for (const sim_context *context = sim.contexts; context && sim_self()->inside; context = context->next)
        for (const sim_stream *stream = context->streams; stream; stream = stream->next)
            if (stream->object.number == sim_self()->inside) mine = stream;
    for (const sim_task *task = mine ? mine->first : NULL; task; task = task->next)
        if ((task->kind == SIM_RUN && task->as.run.model == model) ||
            (task->kind == SIM_UPDATE && task->as.update.group->model == model))
            return sim_fail(ACL_ERROR_RT_PARAM_INVALID,
                            "stream %d waits for the function that makes this call, and has work of graph %u: %s would "
                            "never end",
                            mine->id, model->id, what);
    return ACL_SUCCESS;
}

aclError sim_stream_wait(sim_stream *stream, int32_t milliseconds) {
    struct timespec deadline;
    int32_t id = stream->id;
    SIM_CHECK(sim_stream_not_mine(stream, "waiting for it"));
    if (milliseconds > 0) sim_deadline(milliseconds, &deadline);
    switch (sim_stream_idle(stream, milliseconds > 0 ? &deadline : NULL)) {
    case SIM_LATE:
        return sim_fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "stream %d is not done after %d ms", id, milliseconds);
    case SIM_GONE: return sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "stream %d was destroyed meanwhile", id);
    default: return ACL_SUCCESS;
    }
}

aclError sim_stream_failure(sim_stream *stream) {
    aclError error = stream->error;
    if (!error) return ACL_SUCCESS;
    stream->error = ACL_SUCCESS;
    stream->dropping = false;
    sim_event_forgive(stream->object.number);
    return sim_fail(error, "stream %d: %s", stream->id, stream->text);
}

void sim_stream_end(sim_stream *stream, bool drop) {
    sim_context *context = stream->context; /* it waits for its streams */
    sim_object_remove(stream);
    stream->ending = true;
    stream->dropped = drop && stream->first;
    if (drop) atomic_store(&stream->aborted, true);
    sim_stream_hold(stream);
    if (stream->started) {
        (void)pthread_cond_signal(&stream->wake);
        sim_changed();
        sim_unlock();
        (void)pthread_join(stream->worker, NULL);
        sim_lock();
    }
    sim_stream **link = &context->streams;
    while (*link != stream) link = &(*link)->next;
    *link = stream->next;
    sim_group_forget(stream);
    sim_hardware_give(context->device, 1);
    stream->gone = true;
    sim_stream_release(stream);
    sim_changed();
}
