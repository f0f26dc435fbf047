/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of the host in a stream: run by the stream's own worker, which holds up what comes behind, or handed to a thread
 * of the program that asks for reports. */
#include "sim.h"

typedef struct host_report {
    struct host_report *next;
    uint64_t thread;
    aclrtCallback function;
    void *argument;
    uint64_t stream;        /* the number of the one that waits for it; 0: none does */
    bool taken, done, left; /* run now; over, and for who waits to free; nobody waits any more */
} host_report;

static host_report *host_reports;

static aclError host_function(aclrtStream handle, aclrtHostFunc function, void *argument) {
    sim_stream *stream = NULL;
    sim_task *task = NULL;
    SIM_CHECK(sim_stream_of(handle, &stream));
    SIM_CHECK(sim_task_for(stream, SIM_HOST, &task));
    task->as.host.function = function;
    task->as.host.argument = argument;
    return sim_submit(stream, task);
}

static aclError host_callback(aclrtStream handle, aclrtCallback function, void *argument, bool block) {
    sim_stream *stream = NULL;
    sim_task *task = NULL;
    SIM_CHECK(sim_stream_of(handle, &stream));
    if (stream->model)
        return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "callbacks cannot be captured: aclrtLaunchHostFunc can");
    if (!stream->subscriber)
        return sim_fail(ACL_ERROR_RT_STREAM_NO_CB_REG, "no thread subscribed to stream %d", stream->id);
    SIM_CHECK(sim_task_for(stream, SIM_CALLBACK, &task));
    task->as.callback.function = function;
    task->as.callback.argument = argument;
    task->as.callback.thread = stream->subscriber;
    task->as.callback.block = block;
    return sim_submit(stream, task);
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args) {
    SIM_BEGIN(aclrtLaunchHostFunc);
    if (!fn) return sim_fail(ACL_ERROR_INVALID_PARAM, "fn is null");
    sim_lock();
    return sim_leave(host_function(stream, fn, args));
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream handle) {
    SIM_BEGIN(aclrtSubscribeReport);
    sim_lock();
    sim_stream *stream = NULL;
    aclError error = sim_stream_of(handle, &stream);
    if (!error && stream->subscriber)
        error = sim_fail(ACL_ERROR_RT_STREAM_SUBSCRIBE, "stream %d has a thread already", stream->id);
    if (!error && !threadId) error = sim_fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, "0 is no thread");
    if (!error) stream->subscriber = threadId;
    return sim_leave(error);
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream handle) {
    SIM_BEGIN(aclrtUnSubscribeReport);
    sim_lock();
    sim_stream *stream = NULL;
    aclError error = sim_stream_of(handle, &stream);
    if (!error && (!stream->subscriber || stream->subscriber != threadId))
        error = sim_fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, "the thread is not subscribed to stream %d", stream->id);
    if (!error) stream->subscriber = 0;
    return sim_leave(error);
}

aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType, aclrtStream stream) {
    SIM_BEGIN(aclrtLaunchCallback);
    if (!fn) return sim_fail(ACL_ERROR_INVALID_PARAM, "fn is null");
    if (blockType != ACL_CALLBACK_NO_BLOCK && blockType != ACL_CALLBACK_BLOCK)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%d is no way to block", (int)blockType);
    sim_lock();
    return sim_leave(host_callback(stream, fn, userData, blockType == ACL_CALLBACK_BLOCK));
}

aclError sim_callback_deliver(const sim_stream *stream, const sim_task *task, char *text) {
    host_report *report = sim_allocate(sizeof *report);
    if (!report) {
        (void)snprintf(text, SIM_TEXT, "no memory for a report");
        return ACL_ERROR_BAD_ALLOC;
    }
    report->thread = task->as.callback.thread;
    report->function = task->as.callback.function;
    report->argument = task->as.callback.argument;
    report->stream = task->as.callback.block ? stream->object.number : 0;
    host_report **end = &host_reports;
    while (*end) end = &(*end)->next;
    *end = report;
    sim_changed();
    if (!report->stream) return ACL_SUCCESS;
    while (!report->done && !stream->aborted) (void)sim_wait_changed(NULL);
    report->left = report->taken && !report->done;
    if (report->left) return ACL_SUCCESS; /* who runs it frees it */
    for (host_report **link = &host_reports; *link && !report->taken; link = &(*link)->next) {
        if (*link != report) continue;
        *link = report->next;
        break;
    }
    free(report);
    return ACL_SUCCESS;
}

static host_report *host_take(uint64_t thread) {
    for (host_report **link = &host_reports; *link; link = &(*link)->next) {
        host_report *report = *link;
        if (report->thread != thread) continue;
        *link = report->next;
        return report;
    }
    return NULL;
}

aclError aclrtProcessReport(int32_t timeout) {
    SIM_BEGIN(aclrtProcessReport);
    SIM_CHECK(sim_check_timeout(timeout));
    uint64_t self = (uint64_t)pthread_self();
    struct timespec deadline;
    if (timeout > 0) sim_deadline(timeout, &deadline);
    sim_lock();
    host_report *report = host_take(self);
    while (!report && sim_wait_changed(timeout > 0 ? &deadline : NULL)) report = host_take(self);
    if (!report) return sim_leave(sim_fail(ACL_ERROR_RT_REPORT_TIMEOUT, "no report in %d ms", timeout));
    report->taken = true;
    uint64_t before = sim_self()->inside;
    if (report->stream) sim_self()->inside = report->stream;
    sim_unlock();
    report->function(report->argument);
    sim_lock();
    sim_self()->inside = before;
    report->done = true;
    if (!report->stream || report->left) free(report);
    sim_changed();
    return sim_leave(ACL_SUCCESS);
}
