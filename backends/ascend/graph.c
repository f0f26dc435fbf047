/* SPDX-License-Identifier: Apache-2.0
 *
 * Captured graphs of the driver (aclmdlRI). There is nothing to instantiate: what was captured is what runs. Where task groups are
 * there, each kernel is captured in one of its own, through which its arguments change later. */
#include <stdio.h>
#include <string.h>

#include "ascend.h"

/* By row: PyTorch's default and global are ACL's 0, thread_local 1, relaxed 2. */
static const struct {
    rondo_capture_mode mode;
    int acl;
} graph_modes[] = {{RONDO_CAPTURE_MODE_DEFAULT, 0},
                   {RONDO_CAPTURE_MODE_GLOBAL, 0},
                   {RONDO_CAPTURE_MODE_THREAD_LOCAL, 1},
                   {RONDO_CAPTURE_MODE_RELAXED, 2}};
enum { GRAPH_MODES = sizeof graph_modes / sizeof graph_modes[0] };

rondo_status rondo__ascend_mode(const rondo_host_api *host, rondo_capture_mode mode, int *out_mode) {
    for (int i = 0; i < GRAPH_MODES; i++) {
        if (graph_modes[i].mode != mode) continue;
        *out_mode = graph_modes[i].acl;
        return RONDO_OK;
    }
    return RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, CAPTURE, "ascend: %d is no capture mode", (int)mode);
}

static rondo_status graph_thread_mode(void *self, rondo_capture_mode mode, rondo_capture_mode *out_before) {
    rondo__ascend_device *device = self;
    int acl = 0;
    rondo_status status = rondo__ascend_mode(device->host, mode, &acl);
    if (status) return status;
    if (!rondo__ascend_has(device->library, RONDO__ASCEND_GROUP_capture))
        return rondo__ascend_refusal(device, RONDO__ASCEND_GROUP_capture, "the thread's capture mode");
    if (!rondo__ascend_can(device, RONDO__ASCEND_THREAD_MODE))
        return rondo__ascend_refusal(device, RONDO__ASCEND_THREAD_MODE, "the thread's capture mode");
    int error = device->library->api.aclmdlRICaptureThreadExchangeMode(&acl);
    if (RONDO__ASCEND_REFUSED(device, RONDO__ASCEND_THREAD_MODE, aclmdlRICaptureThreadExchangeMode, error))
        return rondo__ascend_refusal(device, RONDO__ASCEND_THREAD_MODE, "the thread's capture mode");
    if (error) return rondo__ascend_error(device->library, "aclmdlRICaptureThreadExchangeMode", error);
    *out_before = acl == 0   ? RONDO_CAPTURE_MODE_GLOBAL
                  : acl == 1 ? RONDO_CAPTURE_MODE_THREAD_LOCAL
                             : RONDO_CAPTURE_MODE_RELAXED;
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------ capture */

/* Of one word at least, so that there is something to keep. */
static size_t graph_words_size(uint32_t count) { return (count ? count : 1u) * sizeof(uint64_t); }

static void graph_free(rondo__ascend_graph *graph) {
    const rondo_host_api *host = graph->device->host;
    for (size_t i = 0; i < graph->node_count; i++) {
        rondo__ascend_node *node = &graph->nodes[i];
        rondo__ascend_free(host, node->words, graph_words_size(node->count));
        if (node->name) rondo__ascend_free(host, node->name, strlen(node->name) + 1);
    }
    rondo__ascend_free(host, graph->nodes, graph->node_capacity * sizeof *graph->nodes);
    rondo__ascend_host_calls_free(host, graph->host_calls);
    rondo__ascend_outside_free(graph);
    rondo__ascend_fate_release(host, graph->fate);
    rondo__ascend_free(host, graph, sizeof *graph);
}

static rondo_status graph_make(rondo__ascend_device *device, rondo__ascend_graph **out_graph) {
    rondo__ascend_graph *graph = rondo__ascend_allocate(device->host, sizeof *graph);
    rondo__ascend_fate *fate = graph ? rondo__ascend_fate_make(device->host) : NULL;
    if (!fate) {
        rondo__ascend_free(device->host, graph, sizeof *graph);
        return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, CAPTURE, "ascend: no memory for a graph");
    }
    graph->device = device;
    graph->fate = fate;
    *out_graph = graph;
    return RONDO_OK;
}

static rondo_status graph_begin_at(rondo__ascend_stream *stream, int mode) {
    rondo__ascend_device *device = stream->device;
    rondo__ascend_graph *graph = NULL;
    if (stream->capture)
        return RONDO_PLUGIN_FAIL(device->host, INVALID_STATE, CAPTURE, "ascend: the stream is part of a capture");
    if (!rondo__ascend_can(device, RONDO__ASCEND_GROUP_capture))
        return rondo__ascend_refusal(device, RONDO__ASCEND_GROUP_capture, "a capture");
    rondo_status status = graph_make(device, &graph);
    if (status) return status;
    if (!rondo__ascend_streams_left(device, &graph->streams_left)) graph->streams_left = UINT32_MAX;
    int error = device->library->api.aclmdlRICaptureBegin(stream->native, mode);
    if (RONDO__ASCEND_REFUSED(device, RONDO__ASCEND_GROUP_capture, aclmdlRICaptureBegin, error))
        status = rondo__ascend_refusal(device, RONDO__ASCEND_GROUP_capture, "a capture");
    else status = rondo__ascend_error(device->library, "aclmdlRICaptureBegin", error);
    if (status) {
        graph_free(graph);
        return status;
    }
    (void)pthread_mutex_lock(&device->mutex);
    graph->id = ++device->capture_ids;
    graph->next = device->captures;
    device->captures = graph;
    graph->streams = stream;
    stream->next = NULL;
    stream->capture = graph;
    (void)pthread_mutex_unlock(&device->mutex);
    return RONDO_OK;
}

static rondo_status graph_capture_begin(void *self, rondo_capture_mode mode) {
    rondo__ascend_stream *stream = self;
    void *before = NULL;
    int acl = 0;
    rondo_status status = rondo__ascend_mode(stream->device->host, mode, &acl);
    if (!status) status = rondo__ascend_enter(stream->device, &before);
    if (status) return status;
    return rondo__ascend_left(stream->device, before, graph_begin_at(stream, acl));
}

void rondo__ascend_graph_join(rondo__ascend_stream *stream, uint64_t capture_id) {
    rondo__ascend_device *device = stream->device;
    (void)pthread_mutex_lock(&device->mutex);
    rondo__ascend_graph *graph = device->captures;
    while (graph && graph->id != capture_id) graph = graph->next;
    if (graph) {
        stream->capture = graph;
        stream->next = graph->streams;
        graph->streams = stream;
    }
    (void)pthread_mutex_unlock(&device->mutex);
}

/* The streams are free again, whatever comes of the graph. */
static void graph_close(rondo__ascend_graph *graph) {
    rondo__ascend_device *device = graph->device;
    (void)pthread_mutex_lock(&device->mutex);
    rondo__ascend_graph **link = &device->captures;
    while (*link != graph) link = &(*link)->next;
    *link = graph->next;
    graph->next = NULL;
    for (rondo__ascend_stream *stream = graph->streams, *next = NULL; stream; stream = next) {
        next = stream->next;
        stream->next = NULL;
        stream->capture = NULL;
    }
    graph->streams = NULL;
    (void)pthread_mutex_unlock(&device->mutex);
}

/* For who looks at the process with the driver's tools. */
static void graph_name(const rondo__ascend_graph *graph) {
    char name[48];
    if (!rondo__ascend_can(graph->device, RONDO__ASCEND_GROUP_name)) return;
    (void)snprintf(name, sizeof name, "rondo graph %llu", (unsigned long long)graph->id);
    int error = graph->device->library->api.aclmdlRISetName(graph->native, name);
    if (!RONDO__ASCEND_REFUSED(graph->device, RONDO__ASCEND_GROUP_name, aclmdlRISetName, error))
        (void)rondo__ascend_tolerate(graph->device->library, error);
}

/* ---------------------------------------------------------------------------------------- an end that fails */

/* Whether the driver captures the stream, and what; `ended`, what it last said to an end, is what there is to go by where it
 * does not say. */
static bool graph_goes_on(const rondo__ascend_library *library, void *native, int ended, void **out_model) {
    enum { NOT_CAPTURED = 107029 };
    int state = 0;
    *out_model = NULL;
    if (RONDO__ASCEND_TRY(library, aclmdlRICaptureGetInfo, native, &state, out_model)) return ended != NOT_CAPTURED;
    return state != 0;
}

/* As if nothing had been captured there: with a stream of its own anew, where it is Rondo's. */
static void graph_renew(rondo__ascend_stream *stream) {
    rondo__ascend_device *device = stream->device;
    void *fresh = NULL;
    if (!stream->owned) return;
    rondo_status status = rondo__ascend_stream_open(device, &fresh);
    if (!status) {
        (void)RONDO__ASCEND_TRY(device->library, aclrtDestroyStream, stream->native); /* it may well refuse */
        stream->native = fresh;
    }
    device->host->status_release(status);
}

/* A driver that fails to end and captures on would have each later wait for the stream fail. It is asked once more, and what comes
 * of that is nobody's; where that does not help either, no graph is its own any more. */
static rondo_status graph_insist(rondo__ascend_graph *graph, rondo__ascend_stream *stream, rondo_status status,
                                 int error) {
    rondo__ascend_device *device = graph->device;
    const rondo__ascend_library *library = device->library;
    void *model = NULL, *ended = NULL;
    if (!graph_goes_on(library, stream->native, error, &model)) return status;
    error = RONDO__ASCEND_TRY(library, aclmdlRICaptureEnd, stream->native, &ended);
    if (!error && ended) (void)RONDO__ASCEND_TRY(library, aclmdlRIDestroy, ended);
    if (!error || !graph_goes_on(library, stream->native, error, &model)) return status;
    if (model) error = RONDO__ASCEND_TRY(library, aclmdlRIDestroy, model);
    if (!graph_goes_on(library, stream->native, error, &model)) return status;
    rondo__ascend_switch_off(device, RONDO__ASCEND_GROUP_capture,
                             "aclmdlRICaptureEnd failed and left its stream captured", NULL);
    atomic_store(&device->abandoned, true);
    for (rondo__ascend_stream *other = graph->streams; other; other = other->next) graph_renew(other);
    return stream->owned ? status
                         : device->host->status_note(status, "the driver captures the stream of another library on: "
                                                             "nothing can be waited for there any more");
}

static rondo_status graph_end(rondo__ascend_graph *graph, rondo__ascend_stream *stream) {
    rondo__ascend_device *device = graph->device;
    int error = device->library->api.aclmdlRICaptureEnd(stream->native, &graph->native);
    if (!error) return RONDO_OK;
    rondo_status status = rondo__ascend_error(device->library, "aclmdlRICaptureEnd", error);
    graph->native = NULL;
    if (error == RONDO__ASCEND_NOT_SUPPORTED)
        rondo__ascend_switch_off(device, RONDO__ASCEND_GROUP_capture, "aclmdlRICaptureEnd answered 207000", NULL);
    return graph_insist(graph, stream, status, error);
}

/* Where chip and driver bind hardware streams when a graph runs, one that needs more than there are would be captured, and be
 * refused at each run. Those of another library's streams are not counted: some of their forks are not known. */
static rondo_status graph_check_streams(rondo__ascend_graph *graph, const rondo__ascend_stream *stream) {
    rondo__ascend_device *device = graph->device;
    uint32_t left = 0, needs = 0, before = graph->streams_left;
    if (!stream->owned || before == UINT32_MAX || !rondo__ascend_streams_left(device, &left)) return RONDO_OK;
    for (const rondo__ascend_stream *other = graph->streams; other; other = other->next) needs++;
    bool holds = before > left && before - left >= needs; /* they were taken when it was captured */
    if (holds || needs <= left + 1u) return RONDO_OK;     /* one more: the stream that it was captured on */
    (void)RONDO__ASCEND_TRY(device->library, aclmdlRIDestroy, graph->native);
    graph->native = NULL;
    return RONDO_PLUGIN_FAIL(device->host, OUT_OF_RANGE, DRIVER,
                             "ascend:%d: a run of the graph takes %u hardware streams, and %u are left",
                             (int)device->index, needs, left + 1u);
}

static rondo_status graph_capture_end(void *self, void **out_graph) {
    rondo__ascend_stream *stream = self;
    rondo__ascend_device *device = stream->device;
    rondo__ascend_graph *graph = stream->capture;
    void *before = NULL;
    if (!graph)
        return RONDO_PLUGIN_FAIL(device->host, INVALID_STATE, CAPTURE, "ascend: the stream is not part of a capture");
    rondo_status status = rondo__ascend_enter(device, &before);
    if (status) return status;
    status = graph_end(graph, stream);
    if (!status) status = graph_check_streams(graph, stream);
    graph_close(graph);
    if (status) graph_free(graph);
    else {
        rondo__ascend_count(device, RONDO__ASCEND_COUNT_GRAPHS);
        graph_name(graph);
        *out_graph = graph;
    }
    return rondo__ascend_left(device, before, status);
}

/* -------------------------------------------------------------------------------------------------------- nodes */

static rondo_status graph_add(rondo__ascend_graph *graph, rondo__ascend_node **out_node) {
    const rondo_host_api *host = graph->device->host;
    if (graph->node_count == graph->node_capacity) {
        size_t capacity = graph->node_capacity ? graph->node_capacity * 2 : 32;
        void *bigger =
            host->allocator.reallocate(host->allocator.self, graph->nodes, graph->node_capacity * sizeof *graph->nodes,
                                       capacity * sizeof *graph->nodes, 0);
        if (!bigger)
            return RONDO_PLUGIN_FAIL(host, OUT_OF_MEMORY, CAPTURE, "ascend: no memory for the nodes of a graph");
        graph->nodes = bigger;
        graph->node_capacity = capacity;
    }
    *out_node = &graph->nodes[graph->node_count++];
    memset(*out_node, 0, sizeof **out_node);
    return RONDO_OK;
}

rondo_status rondo__ascend_graph_other(rondo__ascend_stream *stream) {
    rondo__ascend_node *node = NULL;
    return graph_add(stream->capture, &node);
}

/* What an update needs: the kernel and its words. */
static rondo_status graph_note_call(rondo__ascend_graph *graph, rondo__ascend_node *node, const rondo_call *call) {
    const rondo_host_api *host = graph->device->host;
    node->kernel = call->kernel;
    node->count = call->argument_count;
    node->words = rondo__ascend_allocate(host, graph_words_size(node->count));
    if (call->name) node->name = rondo__ascend_allocate(host, strlen(call->name) + 1);
    if (!node->words || (call->name && !node->name)) {
        if (node->name) rondo__ascend_free(host, node->name, strlen(call->name) + 1);
        rondo__ascend_free(host, node->words, graph_words_size(node->count));
        memset(node, 0, sizeof *node);
        return RONDO_PLUGIN_FAIL(host, OUT_OF_MEMORY, CAPTURE, "ascend: no memory for a node");
    }
    if (call->name) memcpy(node->name, call->name, strlen(call->name) + 1);
    for (uint32_t i = 0; i < node->count; i++) node->words[i] = call->arguments[i].word;
    return RONDO_OK;
}

/* The group is closed whatever came of the launch: with one open, the driver refuses all that follows. An end that fails is asked
 * for once more; the capture cannot be ended well after one. */
static rondo_status graph_group_end(rondo__ascend_stream *stream, rondo__ascend_node *node, rondo_status status) {
    rondo__ascend_device *device = stream->device;
    int error = device->library->api.aclmdlRICaptureTaskGrpEnd(stream->native, &node->group);
    rondo_status end = RONDO_OK;
    if (error) {
        node->group = NULL;
        if (RONDO__ASCEND_REFUSED(device, RONDO__ASCEND_GROUP_taskgroup, aclmdlRICaptureTaskGrpEnd, error))
            end = rondo__ascend_refusal(device, RONDO__ASCEND_GROUP_taskgroup, "the end of a task group");
        else end = rondo__ascend_error(device->library, "aclmdlRICaptureTaskGrpEnd", error);
        void *group = NULL;
        (void)RONDO__ASCEND_TRY(device->library, aclmdlRICaptureTaskGrpEnd, stream->native, &group);
    }
    if (!status) return end;
    device->host->status_release(end);
    return status;
}

rondo_status rondo__ascend_graph_launch(rondo__ascend_stream *stream, const rondo_call *call) {
    rondo__ascend_graph *graph = stream->capture;
    rondo__ascend_device *device = graph->device;
    rondo__ascend_node *node = NULL;
    rondo_status status = graph_add(graph, &node);
    if (!status) status = graph_note_call(graph, node, call);
    if (status) return status;
    bool grouped = device->updates && rondo__ascend_can(device, RONDO__ASCEND_GROUP_taskgroup);
    if (grouped) {
        int error = device->library->api.aclmdlRICaptureTaskGrpBegin(stream->native);
        grouped = !RONDO__ASCEND_REFUSED(device, RONDO__ASCEND_GROUP_taskgroup, aclmdlRICaptureTaskGrpBegin, error);
        if (grouped) status = rondo__ascend_error(device->library, "aclmdlRICaptureTaskGrpBegin", error);
    }
    if (status) return status;
    status =
        rondo__ascend_launch(device, stream->native, node->kernel, node->words, node->count, node->name, graph->fate);
    return grouped ? graph_group_end(stream, node, status) : status;
}

/* ------------------------------------------------------------------------------------------------------ running */

static rondo_status graph_launch_at(rondo__ascend_graph *graph, rondo__ascend_stream *stream) {
    const rondo__ascend_library *library = graph->device->library;
    if (graph->updated) {
        rondo_status status = RONDO__ASCEND_CALL(library, aclrtStreamWaitEvent, stream->native, graph->update_event);
        if (status) return status;
        graph->updated = false;
    }
    rondo_status status = rondo__ascend_outside_before(graph, stream);
    if (!status) status = rondo__ascend_stream_ran(stream, graph->fate);
    if (status) return status;
    int error = library->api.aclmdlRIExecuteAsync(graph->native, stream->native);
    if (RONDO__ASCEND_REFUSED(graph->device, RONDO__ASCEND_GROUP_capture, aclmdlRIExecuteAsync, error))
        return rondo__ascend_refusal(graph->device, RONDO__ASCEND_GROUP_capture, "a replay");
    if (!error) rondo__ascend_outside_after(graph);
    return rondo__ascend_error(library, "aclmdlRIExecuteAsync", error);
}

static rondo_status graph_launch(void *executable, void *stream_handle) {
    rondo__ascend_graph *graph = executable;
    rondo__ascend_stream *stream = stream_handle;
    void *before = NULL;
    if (stream->capture)
        return RONDO_PLUGIN_FAIL(graph->device->host, INVALID_STATE, CAPTURE,
                                 "ascend: graphs are not launched into a capture: the driver has no child graphs");
    rondo_status status = rondo__ascend_enter(graph->device, &before);
    if (status) return status;
    rondo__ascend_count(graph->device, RONDO__ASCEND_COUNT_REPLAYS);
    return rondo__ascend_left(graph->device, before, graph_launch_at(graph, stream));
}

/* ----------------------------------------------------------------------------------------------------- updating */

static rondo_status graph_update_stream(rondo__ascend_graph *graph) {
    const rondo__ascend_library *library = graph->device->library;
    rondo_status status = RONDO_OK;
    if (!graph->update_stream)
        status = RONDO__ASCEND_CALL(library, aclrtCreateStreamWithConfig, &graph->update_stream, 0, 0);
    if (!status && !graph->update_event) status = rondo__ascend_event_open(graph->device, &graph->update_event);
    return status;
}

static rondo_status graph_update_at(rondo__ascend_graph *graph, rondo__ascend_node *node, const uint64_t *words) {
    rondo__ascend_device *device = graph->device;
    rondo_status status = graph_update_stream(graph);
    if (status) return status;
    int error = device->library->api.aclmdlRICaptureTaskUpdateBegin(graph->update_stream, node->group);
    if (RONDO__ASCEND_REFUSED(device, RONDO__ASCEND_GROUP_taskgroup, aclmdlRICaptureTaskUpdateBegin, error))
        return rondo__ascend_refusal(device, RONDO__ASCEND_GROUP_taskgroup, "an update");
    if (error) return rondo__ascend_error(device->library, "aclmdlRICaptureTaskUpdateBegin", error);
    status =
        rondo__ascend_launch(device, graph->update_stream, node->kernel, words, node->count, node->name, graph->fate);
    /* The group is closed whatever came of the launch. */
    error = device->library->api.aclmdlRICaptureTaskUpdateEnd(graph->update_stream);
    if (!status) status = rondo__ascend_error(device->library, "aclmdlRICaptureTaskUpdateEnd", error);
    if (rondo__ascend_tolerate(device->library, error)) { /* whatever it left open is that stream's */
        (void)RONDO__ASCEND_TRY(device->library, aclrtDestroyStream, graph->update_stream);
        graph->update_stream = NULL;
    }
    if (status) return status;
    memcpy(node->words, words, node->count * sizeof *words);
    rondo__ascend_count(device, RONDO__ASCEND_COUNT_UPDATES);
    graph->updated = true;
    return rondo__ascend_event_mark(device, graph->update_event, graph->update_stream, &graph->update_has_id);
}

static rondo_status graph_update(void *executable, uint64_t index, const rondo_argument *arguments,
                                 uint32_t argument_count) {
    rondo__ascend_graph *graph = executable;
    const rondo_host_api *host = graph->device->host;
    uint64_t words[RONDO_ARGUMENT_MAX];
    void *before = NULL;
    if (index >= graph->node_count)
        return RONDO_PLUGIN_FAIL(host, OUT_OF_RANGE, CAPTURE, "ascend: there is no node %llu",
                                 (unsigned long long)index);
    rondo__ascend_node *node = &graph->nodes[index];
    if (!node->group)
        return RONDO_PLUGIN_FAIL(host, UNSUPPORTED, CAPTURE,
                                 "ascend: node %llu is in no task group: only kernels can be",
                                 (unsigned long long)index);
    if (argument_count != node->count)
        return RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, CAPTURE, "ascend: node %llu has %u arguments, not %u",
                                 (unsigned long long)index, node->count, argument_count);
    for (uint32_t i = 0; i < argument_count; i++) words[i] = arguments[i].word;
    if (memcmp(words, node->words, argument_count * sizeof *words) == 0) return RONDO_OK; /* nothing changes */
    rondo_status status = rondo__ascend_enter(graph->device, &before);
    if (status) return status;
    return rondo__ascend_left(graph->device, before, graph_update_at(graph, node, words));
}

/* ------------------------------------------------------------------------------------------------------ the end */

static void graph_destroy(void *self, void *handle, void *executable) {
    rondo__ascend_device *device = self;
    rondo__ascend_graph *graph = handle;
    void *before = NULL;
    (void)executable; /* the same */
    rondo_status status = rondo__ascend_enter(device, &before);
    if (!status && graph->update_stream) {
        (void)RONDO__ASCEND_TRY(device->library, aclrtSynchronizeStream, graph->update_stream);
        (void)RONDO__ASCEND_TRY(device->library, aclrtDestroyStream, graph->update_stream);
    }
    if (!status && graph->update_event)
        (void)rondo__ascend_event_shut(device, graph->update_event, graph->update_has_id);
    if (!status) status = RONDO__ASCEND_CALL(device->library, aclmdlRIDestroy, graph->native);
    if (status)
        device->host->log(device->host->host, RONDO_LOG_WARNING, "ascend: a captured graph could not be destroyed");
    device->host->status_release(status);
    rondo__ascend_leave(device, before);
    graph_free(graph);
}

static rondo_status graph_debug_print(void *handle, const char *path) {
    const rondo__ascend_graph *graph = handle;
    enum { WITH_ARGUMENTS = 1 };
    rondo__ascend_device *device = graph->device;
    if (!rondo__ascend_can(device, RONDO__ASCEND_GROUP_json))
        return rondo__ascend_refusal(device, RONDO__ASCEND_GROUP_json, "a picture of the graph");
    int error = device->library->api.aclmdlRIDebugJsonPrint(graph->native, path, WITH_ARGUMENTS);
    if (RONDO__ASCEND_REFUSED(device, RONDO__ASCEND_GROUP_json, aclmdlRIDebugJsonPrint, error))
        return rondo__ascend_refusal(device, RONDO__ASCEND_GROUP_json, "a picture of the graph");
    return rondo__ascend_error(device->library, "aclmdlRIDebugJsonPrint", error);
}

#define GRAPH_TABLE(record, wait)                                                                                   \
    {                                                                                                               \
        .struct_size = sizeof(rondo_graph_table), .capture_begin = graph_capture_begin,                             \
        .capture_end = graph_capture_end, .launch = graph_launch, .update = graph_update, .destroy = graph_destroy, \
        .debug_print = graph_debug_print, .thread_mode = graph_thread_mode, .event_record = (record),               \
        .event_wait = (wait)                                                                                        \
    }
const rondo_graph_table rondo__ascend_graph_table =
    GRAPH_TABLE(rondo__ascend_outside_record, rondo__ascend_outside_wait);
const rondo_graph_table rondo__ascend_graph_table_plain = GRAPH_TABLE(NULL, NULL);
