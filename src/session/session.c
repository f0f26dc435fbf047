/* SPDX-License-Identifier: Apache-2.0
 *
 * A session's life, and the graphs in it under the caller's numbers. */
#include "session/session.h"
#include "base/sized.h"

#include <stdio.h>
#include <string.h>

#define SESSION_GRAPHS_MAX (1u << 20)

static rondo__session_graph *session_find(const rondo_session *session, uint32_t id, size_t *out_index) {
    for (size_t i = 0; i < session->graphs.count; i++) {
        rondo__session_graph *graph = *RONDO__BUFFER_AT(&session->graphs, rondo__session_graph *, i);
        if (graph->id != id) continue;
        if (out_index) *out_index = i;
        return graph;
    }
    return NULL;
}

rondo_status rondo__session_find(const rondo_session *session, uint32_t id, rondo__session_graph **out_graph) {
    *out_graph = session_find(session, id, NULL);
    if (*out_graph) return RONDO_OK;
    return RONDO__FAIL(NOT_FOUND, INPUT, "the session has no graph %u: add it first", id);
}

void rondo__session_graph_destroy(rondo_session *session, rondo__session_graph *graph) {
    if (!graph) return;
    rondo__session_forget_lent(session, graph);
    for (size_t i = 0; i < graph->specialisations.count; i++) {
        rondo__specialisation_retire(session, *RONDO__BUFFER_AT(&graph->specialisations, rondo__specialisation *, i));
    }
    rondo__buffer_deinit(&graph->specialisations);
    rondo__buckets_destroy(session, graph->buckets);
    rondo_ir_graph_release(graph->graph);
    rondo__free(&session->allocator, graph, sizeof *graph);
}

static rondo_status session_options(const rondo_session_options *given, rondo_session_options *out) {
    rondo_session_options options = RONDO_SESSION_OPTIONS_INIT;
    uint32_t known = RONDO_COMPILE_NO_FUSION | RONDO_COMPILE_NO_FOLDING | RONDO_COMPILE_NO_REUSE;
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_NONE, "rondo_session_options", given, &options, sizeof options));
    if (options.flags & ~known) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_session_options: unknown flags %#x", options.flags & ~known);
    }
    if (options.level < RONDO_COMPILE_LEVEL_DEFAULT || options.level > RONDO_COMPILE_O3) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_session_options: there is no level %d", (int)options.level);
    }
    if (!options.memory.allocate != !options.memory.release) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY,
                           "rondo_session_options.memory: allocate and release are given together or not at all");
    }
    if (options.specialisations_max == 0) options.specialisations_max = RONDO__SESSION_SPECIALISATIONS_DEFAULT;
    *out = options;
    return RONDO_OK;
}

/* The caller's text, or null, becomes a copy of it. */
static rondo_status session_keep(const rondo_session *session, const char **text) {
    char *copy = NULL;
    const char *given = *text;
    *text = NULL;
    if (!given || !*given) return RONDO_OK;
    RONDO__TRY(rondo__string_copy(&session->allocator, given, &copy));
    *text = copy;
    return RONDO_OK;
}

static rondo_status session_keep_texts(rondo_session *session, const rondo_session_options *given) {
    const char *texts[3] = {given->passes, given->without, given->cache};
    rondo_status status = RONDO_OK;
    for (int i = 0; i < 3; i++) {
        if (!status) status = session_keep(session, &texts[i]);
        else texts[i] = NULL; /* not ours */
    }
    session->options.passes = texts[0];
    session->options.without = texts[1];
    session->options.cache = texts[2];
    return status;
}

static void session_drop(const rondo_session *session, const char *text) {
    rondo__string_free(&session->allocator, (char *)(uintptr_t)text);
}

static rondo_status session_build(rondo_session *session) {
    const rondo__kernel_set *kernels = &session->device->kernels;
    rondo__registry *registry = rondo__instance_registry(session->device->instance);
    size_t used = 0;
    for (uint32_t i = 0; i < kernels->count && used < sizeof session->target; i++) {
        if (strcmp(kernels->catalogues[i].table->name, RONDO__KERNEL_REGISTERED) == 0) continue; /* of no target */
        int length = snprintf(session->target + used, sizeof session->target - used, "%s%s", used ? "," : "",
                              kernels->catalogues[i].table->name);
        used += length > 0 ? (size_t)length : 0;
    }
    session->folder.count = 1;
    RONDO__TRY(rondo__registry_catalogue(registry, "ref", &session->folder.catalogues[0]));
    RONDO__TRY(rondo__weights_create(session->device, &session->options.memory, &session->weights));
    return rondo_stream_create(session->device, NULL, &session->stream);
}

rondo_status rondo_session_create(rondo_device *device, const rondo_session_options *options,
                                  rondo_session **out_session) {
    void *memory = NULL;
    rondo_session_options complete;
    if (!device || !out_session) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_session_create: device or out_session is null");
    }
    RONDO__TRY(session_options(options, &complete));
    RONDO__TRY(rondo__allocate_zeroed(&device->allocator, sizeof(rondo_session), &memory));
    rondo_session *session = memory;
    rondo__ref_init(&session->references);
    session->allocator = device->allocator;
    session->device = device;
    session->options = complete;
    rondo_status status = session_keep_texts(session, &complete);
    rondo_device_retain(device);
    rondo__mutex_init(&session->mutex);
    rondo__buffer_init(&session->graphs, &session->allocator, sizeof(rondo__session_graph *), SESSION_GRAPHS_MAX);
    rondo__buffer_init(&session->kept, &session->allocator, sizeof(rondo__specialisation *), UINT32_MAX);
    if (!status) status = session_build(session);
    if (status) {
        rondo_session_release(session);
        return status;
    }
    *out_session = session;
    return RONDO_OK;
}

void rondo_session_retain(rondo_session *session) {
    if (session) rondo__ref_retain(&session->references);
}

void rondo_session_release(rondo_session *session) {
    if (!session || !rondo__ref_release(&session->references)) return;
    rondo_allocator allocator = session->allocator;
    rondo_device *device = session->device;
    for (size_t i = 0; i < session->graphs.count; i++) {
        rondo__session_graph_destroy(session, *RONDO__BUFFER_AT(&session->graphs, rondo__session_graph *, i));
    }
    rondo__buffer_deinit(&session->graphs);
    for (size_t i = 0; i < session->kept.count; i++) {
        rondo__specialisation_destroy(session, *RONDO__BUFFER_AT(&session->kept, rondo__specialisation *, i));
    }
    rondo__buffer_deinit(&session->kept);
    rondo_stream_release(session->stream);
    session_drop(session, session->options.passes);
    session_drop(session, session->options.without);
    session_drop(session, session->options.cache);
    rondo_profile_release(session->profile);
    rondo__weights_release(session->weights);
    rondo__mutex_deinit(&session->mutex);
    rondo__free(&allocator, session, sizeof *session);
    rondo_device_release(device);
}

/* Takes over a reference to `graph` where it succeeds. */
static rondo_status session_add(rondo_session *session, uint32_t id, rondo_ir_graph *graph) {
    void *memory = NULL;
    RONDO__TRY(rondo__buffer_reserve(&session->graphs, session->graphs.count + 1));
    RONDO__TRY(rondo__allocate_zeroed(&session->allocator, sizeof(rondo__session_graph), &memory));
    rondo__session_graph *added = memory;
    added->id = id;
    added->graph = graph;
    added->info = (rondo_session_info)RONDO_SESSION_INFO_INIT;
    rondo__buffer_init(&added->specialisations, &session->allocator, sizeof(rondo__specialisation *), UINT32_MAX);
    RONDO__IGNORE(rondo__buffer_append(&session->graphs, &added, 1)); /* room was made above */
    return RONDO_OK;
}

static rondo_status session_is_new(const rondo_session *session, uint32_t id) {
    if (!session_find(session, id, NULL)) return RONDO_OK;
    return RONDO__FAIL(ALREADY_EXISTS, INPUT, "the session has a graph %u, which stays: remove it first", id);
}

rondo_status rondo_session_add_graph(rondo_session *session, uint32_t id, rondo_ir_graph *graph) {
    if (!session || !graph) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_session_add_graph: session or graph is null");
    }
    rondo__mutex_lock(&session->mutex);
    rondo_status status = session_is_new(session, id);
    if (!status) status = session_add(session, id, graph);
    if (!status) rondo_ir_graph_retain(graph);
    rondo__mutex_unlock(&session->mutex);
    return status;
}

rondo_status rondo_session_add_graph_copy(rondo_session *session, uint32_t id, const rondo_ir_graph *graph) {
    rondo_ir_graph *copy = NULL;
    if (!session || !graph) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_session_add_graph_copy: session or graph is null");
    }
    rondo__mutex_lock(&session->mutex);
    rondo_status status = session_is_new(session, id);
    if (!status) status = rondo__ir_clone(graph, false, &copy);
    if (!status) status = session_add(session, id, copy);
    if (status) rondo_ir_graph_release(copy);
    rondo__mutex_unlock(&session->mutex);
    return status;
}

rondo_status rondo_session_remove_graph(rondo_session *session, uint32_t id) {
    size_t index = 0;
    rondo_status status = RONDO_OK;
    if (!session) return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_session_remove_graph: session is null");
    rondo__mutex_lock(&session->mutex);
    rondo__session_graph *graph = session_find(session, id, &index);
    if (graph) {
        rondo__session_graph **all = session->graphs.data;
        memmove(all + index, all + index + 1, (session->graphs.count - index - 1) * sizeof *all);
        session->graphs.count--;
        rondo__session_graph_destroy(session, graph);
    } else {
        status = RONDO__FAIL(NOT_FOUND, INPUT, "the session has no graph %u", id);
    }
    rondo__mutex_unlock(&session->mutex);
    return status;
}

rondo_status rondo_session_get_info(rondo_session *session, uint32_t id, rondo_session_info *out_info) {
    rondo__session_graph *graph = NULL;
    if (!session) return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_session_get_info: session is null");
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_NONE, "rondo_session_info", out_info));
    rondo__mutex_lock(&session->mutex);
    rondo_status status = rondo__session_find(session, id, &graph);
    if (!status) {
        rondo_session_info info = graph->info;
        info.specialisations = (uint32_t)graph->specialisations.count;
        rondo__region_add_info(graph, &info);
        rondo__sized_write(&info, sizeof info, out_info);
    }
    rondo__mutex_unlock(&session->mutex);
    return status;
}

rondo_status rondo_session_set_profile(rondo_session *session, rondo_profile *profile) {
    if (!session) return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_session_set_profile: session is null");
    rondo_profile_retain(profile);
    rondo__mutex_lock(&session->mutex);
    rondo_profile *before = session->profile;
    session->profile = profile;
    rondo__mutex_unlock(&session->mutex);
    rondo_profile_release(before);
    return RONDO_OK;
}
