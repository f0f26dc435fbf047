/* SPDX-License-Identifier: Apache-2.0
 *
 * Capture: what is recorded, that nothing runs meanwhile, and what a finished graph says of itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf.h"

static const rondo_pool_id no_pool = {0, 0};

static rondo_graph_info capture_info(conf *t, rondo_graph *graph) {
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    WANT_OK(t, rondo_graph_get_info(graph, &info));
    return info;
}

/* Each kind of node, alone: it does not run in the capture, and runs once a replay. */
static void capture_nothing_runs(conf *t) {
    rondo_stream *stream = conf_stream(t);
    uint64_t *pinned = conf_pinned(t, 64), *back = conf_pinned(t, 64);
    char *a = conf_memory(t, 64), *b = conf_memory(t, 64), *c = conf_memory(t, 64), *d = conf_memory(t, 64);
    uint32_t *called = conf_host(t, sizeof *called);
    for (int i = 0; i < 8; ++i) pinned[i] = 10u + (unsigned)i;
    rondo_graph *graph = conf_graph(t);
    conf_begin(t, graph, stream);
    conf_upload(t, stream, a, pinned, 64);
    WANT_OK(t, rondo_stream_copy(stream, b, a, 64, RONDO_COPY_DEVICE_TO_DEVICE));
    WANT_OK(t, rondo_stream_copy(stream, back, b, 64, RONDO_COPY_DEVICE_TO_HOST));
    conf_iota(t, stream, c, 8, 500);
    WANT_OK(t, rondo_stream_fill(stream, d, 1, 64));
    WANT_OK(t, rondo_stream_host_call(stream, conf_count_call, called));
    conf_end(t, graph, stream);
    conf_sync(t, stream);
    WANT(t, *called == 0 && back[0] == 0, "work ran while it was captured");
    conf_want64(t, stream, a, 8, 0, 0, "a copy to the device, captured and not replayed");
    conf_want64(t, stream, b, 8, 0, 0, "a copy on the device, captured and not replayed");
    conf_want64(t, stream, c, 8, 0, 0, "a kernel, captured and not replayed");
    conf_want64(t, stream, d, 8, 0, 0, "a fill, captured and not replayed");
    for (uint32_t round = 1; round <= 3; ++round) {
        conf_replay(t, graph, stream);
        conf_sync(t, stream);
        WANT(t, *called == round, "after %u replays the host function ran %u times", (unsigned)round,
             (unsigned)*called);
    }
    for (unsigned i = 0; i < 8; ++i)
        WANT(t, back[i] == 10u + i, "element %u came back as %llu", i, (unsigned long long)back[i]);
    conf_want64(t, stream, a, 8, 10, 1, "a replayed copy to the device");
    conf_want64(t, stream, b, 8, 10, 1, "a replayed copy on the device");
    conf_want64(t, stream, c, 8, 500, 1, "a replayed kernel");
    conf_want64(t, stream, d, 8, 0x0101010101010101u, 0, "a replayed fill");
}

static void capture_counts(conf *t) {
    rondo_stream *stream = conf_stream(t);
    uint64_t *pinned = conf_pinned(t, 64);
    char *a = conf_memory(t, 64), *b = conf_memory(t, 64);
    uint32_t *called = conf_host(t, sizeof *called);
    rondo_graph *graph = conf_graph(t);
    conf_begin(t, graph, stream);
    for (unsigned i = 0; i < 5; ++i) conf_iota(t, stream, a, 8, i);
    WANT_OK(t, rondo_stream_copy(stream, b, a, 64, RONDO_COPY_DEVICE_TO_DEVICE));
    conf_upload(t, stream, a, pinned, 64);
    WANT_OK(t, rondo_stream_copy(stream, pinned, b, 64, RONDO_COPY_DEVICE_TO_HOST));
    for (int i = 0; i < 4; ++i) WANT_OK(t, rondo_stream_fill(stream, a, 0, 64));
    for (int i = 0; i < 2; ++i) WANT_OK(t, rondo_stream_host_call(stream, conf_count_call, called));
    conf_end(t, graph, stream);
    rondo_graph_info info = capture_info(t, graph);
    WANT(t, info.kernels == 5 && info.copies == 3 && info.fills == 4 && info.host_calls == 2 && info.nodes == 14,
         "5 kernels, 3 copies, 4 fills, 2 host calls: the graph says %llu, %llu, %llu, %llu of %llu nodes",
         (unsigned long long)info.kernels, (unsigned long long)info.copies, (unsigned long long)info.fills,
         (unsigned long long)info.host_calls, (unsigned long long)info.nodes);
    WANT(t,
         info.opaque && !info.empty && info.lanes >= 1 && info.bytes > 0 && info.state == RONDO_GRAPH_READY &&
             info.replays == 0 && info.slots == 0,
         "a graph with host calls says other things of itself");
    for (int i = 0; i < 3; ++i) conf_replay(t, graph, stream);
    conf_sync(t, stream);
    WANT(t, capture_info(t, graph).replays == 3, "three replays are counted as %llu",
         (unsigned long long)capture_info(t, graph).replays);
}

/* Captured work keeps its order: every step leaves a trace that the next one overwrites. */
static void capture_order(conf *t) {
    enum { STEPS = 200 };
    rondo_stream *stream = conf_stream(t);
    char *cell = conf_memory(t, 8), *trace = conf_memory(t, STEPS * 8);
    uint64_t *pinned = conf_pinned(t, STEPS * 8);
    rondo_graph *graph = conf_graph(t);
    conf_begin(t, graph, stream);
    for (uint64_t i = 0; i < STEPS; ++i) {
        pinned[i] = 100 + i;
        if (i % 3 == 0) conf_fill(t, stream, cell, 1, 100 + i);
        if (i % 3 == 1) conf_iota(t, stream, cell, 1, 100 + i);
        if (i % 3 == 2) conf_upload(t, stream, cell, &pinned[i], 8);
        if (i % 2) conf_copy(t, stream, cell, trace + i * 8, 8);
        else WANT_OK(t, rondo_stream_copy(stream, trace + i * 8, cell, 8, RONDO_COPY_DEVICE_TO_DEVICE));
    }
    conf_end(t, graph, stream);
    for (int round = 0; round < 3; ++round) {
        WANT_OK(t, rondo_stream_fill(stream, trace, 0, STEPS * 8));
        conf_replay(t, graph, stream);
        conf_want64(t, stream, trace, STEPS, 100, 1, "the trace of a replay");
    }
}

/* Words and pageable data of a call are the caller's again when it returns; a graph keeps what it recorded. */
static void capture_copies_arguments(conf *t) {
    rondo_stream *stream = conf_stream(t);
    char *memory = conf_memory(t, 64 * 8);
    rondo_kernel kernel = conf_kernel(t, CONF_IOTA);
    rondo_graph *graph = conf_graph(t);
    conf_begin(t, graph, stream);
    for (uint64_t i = 0; i < 64; ++i) {
        char name[] = "iota";
        rondo_argument arguments[] = {CONF_WRITE(memory + i * 8, 8), CONF_VALUE(1), CONF_VALUE(i)};
        WANT_OK(t, conf_launch(stream, kernel, name, arguments, 3));
        memset(arguments, 0xff, sizeof arguments);
        memset(name, 0x7f, sizeof name - 1);
    }
    conf_end(t, graph, stream);
    conf_replay(t, graph, stream);
    conf_want64(t, stream, memory, 64, 0, 1, "calls whose arguments were overwritten after the capture");
}

/* A copy from pinned memory reads it at each replay, not at the capture. */
static void capture_reads_pinned_late(conf *t) {
    rondo_stream *stream = conf_stream(t);
    uint64_t *pinned = conf_pinned(t, 8);
    char *memory = conf_memory(t, 8);
    rondo_graph *graph = conf_graph(t);
    *pinned = 1;
    conf_begin(t, graph, stream);
    conf_upload(t, stream, memory, pinned, 8);
    conf_end(t, graph, stream);
    for (uint64_t i = 5; i < 25; ++i) {
        *pinned = i;
        conf_replay(t, graph, stream);
        conf_want64(t, stream, memory, 1, i, 0, "pinned memory that changes between replays");
    }
}

static void capture_empty(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    conf_begin(t, graph, stream);
    conf_end(t, graph, stream);
    rondo_graph_info info = capture_info(t, graph);
    WANT(t, info.empty == 1 && info.nodes == 0 && info.state == RONDO_GRAPH_READY, "an empty graph has %llu nodes",
         (unsigned long long)info.nodes);
    for (int i = 0; i < 3; ++i) conf_replay(t, graph, stream);
    conf_want_usable(t, stream, "replays of an empty graph");
}

static void capture_keep_graph(conf *t) {
    rondo_stream *stream = conf_stream(t);
    char *memory = conf_memory(t, 64);
    rondo_graph *graph = conf_graph_kept(t);
    conf_begin(t, graph, stream);
    conf_iota(t, stream, memory, 8, 11);
    conf_end(t, graph, stream);
    WANT(t, rondo_graph_get_state(graph) == RONDO_GRAPH_CAPTURED, "keep_graph does not lead to captured");
    for (int i = 0; i < 3; ++i) {
        WANT_OK(t, rondo_graph_instantiate(graph));
        WANT(t, rondo_graph_get_state(graph) == RONDO_GRAPH_READY, "instantiate does not lead to ready");
        WANT_OK(t, rondo_stream_fill(stream, memory, 0, 64));
        conf_replay(t, graph, stream);
        conf_want64(t, stream, memory, 8, 11, 1, "a graph that was instantiated again");
    }
    rondo_graph *other = conf_graph_kept(t);
    conf_begin(t, other, stream);
    conf_iota(t, stream, memory, 8, 12);
    conf_end(t, other, stream);
    conf_replay(t, other, stream); /* instantiates first */
    WANT(t, rondo_graph_get_state(other) == RONDO_GRAPH_READY, "a replay does not instantiate");
    conf_want64(t, stream, memory, 8, 12, 1, "a graph that its replay instantiated");
}

static void capture_modes(conf *t) {
    rondo_stream *stream = conf_stream(t);
    char *memory = conf_memory(t, 64);
    rondo_graph *graph = conf_graph(t);
    for (rondo_capture_mode mode = 0; mode < RONDO_CAPTURE_MODE_COUNT; ++mode) {
        rondo_capture_status status = RONDO_CAPTURE_STATUS_INIT;
        WANT_OK(t, rondo_graph_capture_begin(graph, stream, no_pool, mode));
        WANT_OK(t, rondo_stream_capture_status(stream, &status));
        WANT(t, status.active && status.mode == mode, "a capture of mode %d is seen as mode %d", (int)mode,
             (int)status.mode);
        conf_iota(t, stream, memory, 8, 20u + (unsigned)mode);
        conf_end(t, graph, stream);
        conf_replay(t, graph, stream);
        conf_want64(t, stream, memory, 8, 20u + (unsigned)mode, 1, "a capture in one of four modes");
        rondo_graph_reset(graph);
    }
    WANT_CODE(t, rondo_graph_capture_begin(graph, stream, no_pool, -1), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_capture_begin(graph, stream, no_pool, RONDO_CAPTURE_MODE_COUNT), INVALID_ARGUMENT);
    WANT(t, rondo_graph_get_state(graph) == RONDO_GRAPH_EMPTY, "a refused begin is no empty graph");
    conf_want_usable(t, stream, "modes that do not exist");
}

static void capture_refused_begins(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t), *other = conf_graph(t);
    rondo_pool_id both = {1, 1};
    char *memory = conf_memory(t, 64);
    WANT_CODE(t, rondo_graph_capture_begin(NULL, stream, no_pool, 0), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_capture_begin(graph, NULL, no_pool, 0), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_capture_begin(graph, stream, both, 0), INVALID_ARGUMENT);
    conf_begin(t, graph, stream);
    conf_iota(t, stream, memory, 8, 1);
    WANT_CODE(t, rondo_graph_capture_begin(other, stream, no_pool, 0), INVALID_STATE);
    WANT(t, rondo_graph_get_state(other) == RONDO_GRAPH_EMPTY && rondo_graph_get_state(graph) == RONDO_GRAPH_CAPTURING,
         "a second begin on a stream changed something");
    conf_iota(t, stream, memory, 8, 2);
    conf_end(t, graph, stream);
    conf_replay(t, graph, stream);
    conf_want64(t, stream, memory, 8, 2, 1, "a capture that another tried to join");
}

static void capture_default_stream(conf *t) {
    rondo_stream *stream = rondo_stream_default(t->device);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 64);
    rondo_status status = rondo_graph_capture_begin(graph, stream, no_pool, RONDO_CAPTURE_MODE_DEFAULT);
    if (t->properties->capabilities & RONDO_DEVICE_CAPTURE_NOT_ON_DEFAULT_STREAM) {
        WANT_CODE(t, status, INVALID_ARGUMENT);
    } else {
        WANT_OK(t, status);
        conf_iota(t, stream, memory, 8, 9);
        conf_end(t, graph, stream);
        conf_replay(t, graph, stream);
        conf_want64(t, stream, memory, 8, 9, 1, "a capture on the default stream");
    }
    conf_want_usable(t, stream, "a capture that the default stream was asked for");
}

static void capture_other_device(conf *t) {
    rondo_device *device = conf_second_device(t);
    rondo_stream *far = rondo_stream_default(device), *stream = conf_stream(t), *other = NULL;
    char *memory = conf_memory(t, 64);
    rondo_graph *graph = conf_graph(t);
    WANT_OK(t, rondo_stream_create(device, NULL, &other));
    conf_keep(t, CONF_STREAM, other);
    WANT_CODE(t, rondo_graph_capture_begin(graph, other, no_pool, 0), INVALID_ARGUMENT);
    conf_begin(t, graph, stream);
    conf_iota(t, stream, memory, 8, 1);
    WANT_CODE(t, rondo_graph_capture_end(graph, other), INVALID_STATE);
    conf_end(t, graph, stream);
    WANT_CODE(t, rondo_graph_replay(graph, other), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_replay(graph, far), INVALID_ARGUMENT);
    conf_replay(t, graph, stream);
    conf_want64(t, stream, memory, 8, 1, 1, "a graph that another device was asked to replay");
}

static void capture_wrong_end(conf *t) {
    rondo_stream *stream = conf_stream(t), *other = conf_stream(t);
    char *memory = conf_memory(t, 64);
    rondo_graph *graph = conf_graph(t);
    conf_begin(t, graph, stream);
    conf_iota(t, stream, memory, 8, 1);
    WANT_CODE(t, rondo_graph_capture_end(graph, other), INVALID_STATE);
    WANT(t, rondo_graph_get_state(graph) == RONDO_GRAPH_CAPTURING, "an end on another stream ended the capture");
    conf_iota(t, stream, memory, 8, 31);
    conf_end(t, graph, stream);
    conf_replay(t, graph, other);
    conf_want64(t, other, memory, 8, 31, 1, "a capture that another stream tried to end");
}

static void capture_status(conf *t) {
    rondo_stream *stream = conf_stream(t), *other = conf_stream(t);
    rondo_capture_status status = RONDO_CAPTURE_STATUS_INIT;
    uint64_t ids[8];
    WANT_OK(t, rondo_stream_capture_status(stream, &status));
    WANT(t, !status.active && !status.id && !status.invalidated, "a stream captures from the start");
    for (int i = 0; i < 8; ++i) {
        rondo_graph *graph = conf_graph(t);
        conf_begin(t, graph, stream);
        WANT_OK(t, rondo_stream_capture_status(stream, &status));
        WANT(t, status.active == 1 && status.id && !status.invalidated, "a stream that captures says that it does not");
        ids[i] = status.id;
        for (int k = 0; k < i; ++k)
            WANT(t, ids[k] != ids[i], "two captures have the id %llu", (unsigned long long)ids[i]);
        WANT_OK(t, rondo_stream_capture_status(other, &status));
        WANT(t, !status.active && !status.id, "a stream captures because another does");
        if (i % 2) conf_end(t, graph, stream);
        else WANT_OK(t, rondo_graph_abort(graph));
        WANT_OK(t, rondo_stream_capture_status(stream, &status));
        WANT(t, !status.active && !status.id, "a stream captures after the end");
    }
}

/* Eager work on another stream goes on during a capture. */
static void capture_beside_eager(conf *t) {
    rondo_stream *stream = conf_stream(t), *other = conf_stream(t);
    char *a = conf_memory(t, 800), *b = conf_memory(t, 800);
    rondo_graph *graph = conf_graph(t);
    conf_iota(t, stream, a, 100, 3); /* before the capture: runs */
    conf_begin(t, graph, stream);
    conf_iota(t, stream, a, 100, 4);
    conf_iota(t, other, b, 100, 5);
    conf_want64(t, other, b, 100, 5, 1, "a stream beside one that captures");
    conf_want64(t, other, a, 100, 3, 1, "what was enqueued before a capture");
    conf_end(t, graph, stream);
    conf_replay(t, graph, stream);
    conf_want64(t, stream, a, 100, 4, 1, "a graph whose capture had eager work beside it");
}

static void capture_pageable(conf *t) {
    rondo_stream *stream = conf_stream(t);
    uint64_t *host = conf_host(t, 64);
    char *memory = conf_memory(t, 64);
    rondo_graph *graph = conf_graph(t);
    bool addressable = (t->properties->capabilities & RONDO_DEVICE_HOST_ADDRESSABLE) != 0;
    for (int direction = 0; direction < 2; ++direction) {
        conf_begin(t, graph, stream);
        rondo_status status = direction ? rondo_stream_copy(stream, host, memory, 64, RONDO_COPY_DEVICE_TO_HOST)
                                        : rondo_stream_copy(stream, memory, host, 64, RONDO_COPY_HOST_TO_DEVICE);
        if (addressable) {
            WANT_OK(t, status);
            conf_end(t, graph, stream);
            rondo_graph_reset(graph);
            continue;
        }
        WANT(t, rondo_status_layer(status) == RONDO_LAYER_CAPTURE, "the refusal comes from layer '%s'",
             rondo_layer_name(rondo_status_layer(status)));
        WANT_CODE(t, status, INVALID_ARGUMENT);
        WANT_CODE(t, rondo_graph_capture_end(graph, stream), CAPTURE_INVALIDATED);
    }
    conf_want_usable(t, stream, "pageable copies in a capture");
}

/* Memory comes and goes during a capture, as long as the graph does not mention what goes. */
static void capture_allocates(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    void *gone = conf_memory(t, 4096), *kept = NULL, *passing = NULL;
    conf_begin(t, graph, stream);
    rondo_status status = rondo_memory_allocate(t->device, 4096, &kept);
    if (!status) conf_keep(t, CONF_MEMORY, kept);
    WANT_OK(t, status);
    conf_iota(t, stream, kept, 512, 60);
    WANT_OK(t, rondo_memory_allocate(t->device, 100, &passing));
    WANT_OK(t, rondo_memory_free(t->device, passing));
    conf_drop(t, gone);
    conf_end(t, graph, stream);
    conf_replay(t, graph, stream);
    conf_want64(t, stream, kept, 512, 60, 1, "memory that was allocated during the capture");
}

static void capture_again(conf *t) {
    rondo_stream *stream = conf_stream(t);
    char *memory = conf_memory(t, 64);
    rondo_graph *graph = conf_graph(t);
    for (uint64_t i = 0; i < 50; ++i) {
        conf_begin(t, graph, stream);
        for (uint64_t k = 0; k <= i % 7; ++k) conf_iota(t, stream, memory, 8, i * 10 + k);
        conf_end(t, graph, stream);
        WANT(t, capture_info(t, graph).nodes == i % 7 + 1, "round %llu has %llu nodes", (unsigned long long)i,
             (unsigned long long)capture_info(t, graph).nodes);
        conf_replay(t, graph, stream);
        rondo_graph_reset(graph); /* waits for the replay */
        WANT(t, rondo_graph_get_state(graph) == RONDO_GRAPH_EMPTY, "reset does not lead to empty");
        conf_want64(t, stream, memory, 8, i * 10 + i % 7, 1, "a graph that is captured again and again");
    }
}

static bool capture_file_has(const char *path, const char *text) {
    char bytes[65536];
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    size_t size = fread(bytes, 1, sizeof bytes - 1, file);
    fclose(file);
    bytes[size] = 0;
    return strstr(bytes, text) != NULL;
}

static void capture_dump(conf *t) {
    static const char *const endings[] = {"dot", "json", "txt"};
    char folder[] = "/tmp/rondo-conformance-XXXXXX", path[96];
    rondo_stream *stream = conf_stream(t);
    char *memory = conf_memory(t, 64);
    rondo_graph *graph = conf_graph(t), *plain = conf_graph(t);
    rondo_code codes[4];
    bool named[3];
    WANT_OK(t, rondo_graph_enable_debug_mode(graph));
    conf_begin(t, graph, stream);
    rondo_argument arguments[] = {CONF_WRITE(memory, 64), CONF_VALUE(8), CONF_VALUE(1)};
    WANT_OK(t, conf_launch(stream, conf_kernel(t, CONF_IOTA), "named_in_the_dump", arguments, 3));
    conf_end(t, graph, stream);
    conf_begin(t, plain, stream);
    conf_iota(t, stream, memory, 8, 1);
    conf_end(t, plain, stream);
    WANT(t, mkdtemp(folder), "no folder for the dumps below /tmp");
    for (int i = 0; i < 3; ++i) {
        snprintf(path, sizeof path, "%s/graph.%s", folder, endings[i]);
        codes[i] = conf_code(rondo_graph_debug_dump(graph, path));
        named[i] = capture_file_has(path, "named_in_the_dump");
        (void)remove(path);
    }
    snprintf(path, sizeof path, "%s/graph.conformance", folder);
    codes[3] = conf_code(rondo_graph_debug_dump(graph, path));
    snprintf(path, sizeof path, "%s/plain.txt", folder);
    rondo_code undebugged = conf_code(rondo_graph_debug_dump(plain, path));
    (void)remove(path);
    (void)rmdir(folder);
    for (int i = 0; i < 3; ++i)
        WANT(t, !codes[i] && named[i], "a dump as .%s: '%s', or without the node", endings[i],
             rondo_code_name(codes[i]));
    WANT(t, codes[3], "a dump of an unknown form succeeds");
    WANT(t, undebugged, "a graph without debug mode or keep_graph can be dumped");
    snprintf(path, sizeof path, "/nonexistent-%s/graph.txt", "conformance");
    WANT_CODE(t, rondo_graph_debug_dump(graph, path), IO);
}

static void capture_releases(conf *t) {
    rondo_stream *stream = conf_stream(t);
    char *memory = conf_memory(t, 64);
    rondo_graph *graph = conf_graph(t);
    rondo_graph_retain(graph);
    rondo_graph_release(graph);
    rondo_graph_release(NULL);
    conf_begin(t, graph, stream);
    conf_iota(t, stream, memory, 8, 1);
    conf_drop(t, graph); /* in the middle of its capture */
    conf_want_usable(t, stream, "a graph that was released while it captured");
    conf_want64(t, stream, memory, 8, 0, 0, "what a graph that is gone had captured");
    graph = conf_graph(t);
    rondo_stream *short_lived = conf_stream(t);
    conf_begin(t, graph, short_lived);
    conf_iota(t, short_lived, memory, 8, 1);
    conf_drop(t, short_lived);
    WANT(t, rondo_graph_get_state(graph) == RONDO_GRAPH_EMPTY, "a graph goes on capturing on a stream that is gone");
    conf_begin(t, graph, stream);
    conf_iota(t, stream, memory, 8, 6);
    conf_end(t, graph, stream);
    conf_replay(t, graph, stream);
    conf_want64(t, stream, memory, 8, 6, 1, "a graph whose first stream went while it captured");
}

#define CAPTURE(name, what, function) \
    { {"capture." name, "capture graph", what}, CONF_NEEDS_GRAPH, function }
static const conf_test tests[] = {
    {{"capture.nothing_runs", "capture graph", "Every kind of node is recorded, runs in replays, and not before."},
     CONF_NEEDS_GRAPH | CONF_NEEDS_HOST_CALLS,
     capture_nothing_runs},
    {{"capture.counts", "capture graph", "A graph counts its nodes by kind, and its replays."},
     CONF_NEEDS_GRAPH | CONF_NEEDS_HOST_CALLS,
     capture_counts},
    CAPTURE("order", "Recorded work keeps its order.", capture_order),
    CAPTURE("copies_arguments", "A graph keeps what it recorded, whatever becomes of the caller's arguments.",
            capture_copies_arguments),
    CAPTURE("pinned_is_read_late", "A copy from pinned memory reads it at each replay.", capture_reads_pinned_late),
    CAPTURE("empty", "A capture of nothing succeeds and says that it is empty.", capture_empty),
    CAPTURE("keep_graph", "keep_graph leads to captured, and may be instantiated again.", capture_keep_graph),
    CAPTURE("modes", "All four modes capture; others are refused.", capture_modes),
    CAPTURE("refused_begins", "A begin that is refused changes nothing.", capture_refused_begins),
    CAPTURE("default_stream", "The default stream captures where the device allows it, else it is refused.",
            capture_default_stream),
    {{"capture.other_device", "capture graph", "Streams of another device are refused at begin, end and replay."},
     CONF_NEEDS_GRAPH | CONF_NEEDS_TWO_DEVICES,
     capture_other_device},
    CAPTURE("wrong_end", "An end on another stream is refused, and the capture goes on.", capture_wrong_end),
    CAPTURE("status", "A stream tells whether it captures; ids are never used again.", capture_status),
    CAPTURE("beside_eager", "Other streams run while one captures.", capture_beside_eager),
    CAPTURE("pageable", "Asynchronous copies of pageable memory are refused where they must be.", capture_pageable),
    CAPTURE("allocates", "Memory may come and go during a capture.", capture_allocates),
    CAPTURE("again", "A graph can be reset and captured again.", capture_again),
    CAPTURE("dump", "Dumps in three forms name the nodes; they need debug mode.", capture_dump),
    CAPTURE("released", "A graph or a stream may go in the middle of a capture.", capture_releases),
};
CONF_SUITE(conf_suite_capture, tests);
