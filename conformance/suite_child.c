/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs in graphs: a replay on a stream that captures; and parts of a graph that a condition decides about. */
#include <string.h>

#include "conf.h"

static rondo_graph *child_make(conf *t, rondo_stream *stream, void *memory, uint64_t start) {
    rondo_graph *graph = conf_graph(t);
    conf_begin(t, graph, stream);
    conf_iota(t, stream, memory, 8, start);
    conf_end(t, graph, stream);
    return graph;
}

static void child_simple(conf *t) {
    rondo_stream *stream = conf_stream(t);
    char *a = conf_memory(t, 64), *b = conf_memory(t, 64), *c = conf_memory(t, 64);
    rondo_graph *child = child_make(t, stream, a, 5), *parent = conf_graph(t);
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    conf_begin(t, parent, stream);
    conf_iota(t, stream, a, 8, 1);
    conf_copy(t, stream, a, b, 64);
    conf_replay(t, child, stream);
    conf_copy(t, stream, a, c, 64);
    conf_end(t, parent, stream);
    conf_want64(t, stream, a, 8, 0, 0, "a child that was only captured");
    WANT_OK(t, rondo_graph_get_info(parent, &info));
    WANT(t, info.kernels == 4, "a graph of three calls and a child of one has %llu", (unsigned long long)info.kernels);
    conf_drop(t, child); /* its calls were copied */
    for (int round = 0; round < 3; ++round) {
        WANT_OK(t, rondo_stream_fill(stream, b, 0, 64));
        WANT_OK(t, rondo_stream_fill(stream, c, 0, 64));
        conf_replay(t, parent, stream);
        conf_want64(t, stream, b, 8, 1, 1, "what stands before a child");
        conf_want64(t, stream, c, 8, 5, 1, "what stands behind a child");
    }
}

static void child_is_a_copy(conf *t) {
    rondo_stream *stream = conf_stream(t);
    char *a = conf_memory(t, 64);
    rondo_graph *child = child_make(t, stream, a, 5), *parent = conf_graph(t);
    rondo_argument other[] = {CONF_WRITE(a, 64), CONF_VALUE(8), CONF_VALUE(50)};
    conf_begin(t, parent, stream);
    conf_replay(t, child, stream);
    conf_end(t, parent, stream);
    WANT_OK(t, rondo_graph_update(child, 0, other, 3));
    conf_replay(t, parent, stream);
    conf_want64(t, stream, a, 8, 5, 1, "a parent whose child was updated afterwards");
    conf_replay(t, child, stream);
    conf_want64(t, stream, a, 8, 50, 1, "a child that was updated");
    rondo_graph_reset(child);
    conf_replay(t, parent, stream);
    conf_want64(t, stream, a, 8, 5, 1, "a parent whose child was reset");
}

static void child_nested(conf *t) {
    rondo_stream *stream = conf_stream(t);
    float *host = conf_host(t, 400), *one = conf_memory(t, 400), *sum = conf_memory(t, 400);
    rondo_graph *graph = conf_graph(t);
    for (int i = 0; i < 100; ++i) host[i] = (float)i;
    conf_upload(t, stream, one, host, 400);
    conf_sync(t, stream);
    conf_begin(t, graph, stream);
    conf_add(t, stream, sum, one, sum, 100);
    conf_end(t, graph, stream);
    for (int depth = 0; depth < 5; ++depth) { /* each holds the one before twice */
        rondo_graph *parent = conf_graph(t);
        conf_begin(t, parent, stream);
        conf_replay(t, graph, stream);
        conf_replay(t, graph, stream);
        conf_end(t, parent, stream);
        conf_drop(t, graph);
        graph = parent;
    }
    conf_replay(t, graph, stream);
    conf_download(t, stream, host, sum, 400);
    for (int i = 0; i < 100; ++i)
        WANT(t, host[i] == (float)(32 * i), "32 sums in children of children make %g of %d", (double)host[i], i);
}

static void child_stale(conf *t) {
    rondo_stream *stream = conf_stream(t);
    char *a = conf_memory(t, 64);
    rondo_graph *child = child_make(t, stream, a, 5), *parent = conf_graph(t);
    conf_begin(t, parent, stream);
    conf_replay(t, child, stream);
    conf_end(t, parent, stream);
    conf_drop(t, a);
    WANT_CODE(t, rondo_graph_replay(parent, stream), STALE);
    WANT_CODE(t, rondo_graph_replay(child, stream), STALE);
    conf_want_usable(t, stream, "a parent whose child's memory is gone");
}

static void child_of_itself(conf *t) {
    rondo_stream *stream = conf_stream(t);
    char *a = conf_memory(t, 64);
    rondo_graph *graph = conf_graph(t);
    conf_begin(t, graph, stream);
    conf_iota(t, stream, a, 8, 1);
    WANT_CODE(t, rondo_graph_replay(graph, stream), INVALID_STATE);
    WANT_OK(t, rondo_graph_abort(graph));
    conf_want_usable(t, stream, "a graph that was to hold itself");
}

/* --------------------------------------------------------------------------------------------------- conditions */

/* Begins a condition, or skips where the device answers, by contract, that it has none. */
static void condition_begin(conf *t, rondo_graph *graph, rondo_stream *stream, const void *condition) {
    rondo_status status = rondo_graph_condition_begin(stream, condition);
    if (rondo_status_code(status) == RONDO_CODE_UNSUPPORTED) {
        char text[512];
        rondo_status_format(status, text, sizeof text);
        rondo_status_release(status);
        WANT(t, strstr(text, "rondo_graph_condition_begin") && strstr(text, t->properties->name),
             "the refusal of a condition does not name itself and the device: %s", text);
        WANT_OK(t, rondo_graph_abort(graph));
        conf_want_usable(t, stream, "a condition that the device does not have");
        conf_skip(t, "%s", text);
    }
    WANT_OK(t, status);
}

static void condition_decides(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    static const uint64_t values[] = {0, 1, 0, UINT64_MAX, 1ull << 63, 0, 1ull << 32};
    char *condition = conf_memory(t, 8), *inside = conf_memory(t, 64), *outside = conf_memory(t, 64);
    conf_begin(t, graph, stream);
    conf_iota(t, stream, outside, 8, 1);
    condition_begin(t, graph, stream, condition);
    conf_iota(t, stream, inside, 8, 2);
    conf_iota(t, stream, inside, 8, 3);
    WANT_OK(t, rondo_graph_condition_end(stream));
    conf_iota(t, stream, outside, 8, 4);
    conf_end(t, graph, stream);
    for (size_t i = 0; i < sizeof values / sizeof *values; ++i) {
        WANT_OK(t, rondo_stream_fill(stream, inside, 0, 64));
        WANT_OK(t, rondo_stream_fill(stream, outside, 0, 64));
        conf_fill(t, stream, condition, 1, values[i]);
        conf_replay(t, graph, stream);
        conf_want64(t, stream, inside, 8, values[i] ? 3 : 0, values[i] ? 1 : 0, "the inside of a condition");
        conf_want64(t, stream, outside, 8, 4, 1, "what follows a condition");
    }
}

/* The condition is read when the replay gets there: work before it may set it. */
static void condition_nested(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *source = conf_memory(t, 16), *outer = conf_memory(t, 8), *inner = conf_memory(t, 8),
         *trace = conf_memory(t, 32);
    conf_begin(t, graph, stream);
    WANT_OK(t, rondo_stream_fill(stream, trace, 0, 32));
    conf_copy(t, stream, source, outer, 8);
    condition_begin(t, graph, stream, outer);
    conf_iota(t, stream, trace, 1, 1);
    conf_copy(t, stream, source + 8, inner, 8);
    condition_begin(t, graph, stream, inner);
    conf_iota(t, stream, trace + 8, 1, 2);
    WANT_OK(t, rondo_graph_condition_end(stream));
    conf_iota(t, stream, trace + 16, 1, 3);
    WANT_OK(t, rondo_graph_condition_end(stream));
    conf_iota(t, stream, trace + 24, 1, 4);
    conf_end(t, graph, stream);
    for (uint64_t bits = 0; bits < 4; ++bits) {
        uint64_t got[4], want[4] = {bits & 1, bits == 3 ? 2 : 0, bits & 1 ? 3 : 0, 4};
        conf_fill(t, stream, source, 1, bits & 1);
        conf_fill(t, stream, source + 8, 1, bits >> 1);
        conf_replay(t, graph, stream);
        conf_download(t, stream, got, trace, sizeof got);
        for (int i = 0; i < 4; ++i)
            WANT(t, got[i] == want[i], "conditions %llu and %llu: step %d left %llu", (unsigned long long)(bits & 1),
                 (unsigned long long)(bits >> 1), i, (unsigned long long)got[i]);
    }
}

static void condition_refuses(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *condition = conf_memory(t, 8);
    WANT(t, conf_code(rondo_graph_condition_begin(stream, condition)), "a condition outside a capture is accepted");
    WANT(t, conf_code(rondo_graph_condition_end(stream)), "the end of a condition outside a capture is accepted");
    conf_want_usable(t, stream, "conditions outside a capture");
    conf_begin(t, graph, stream);
    condition_begin(t, graph, stream, condition);
    WANT(t, conf_code(rondo_graph_capture_end(graph, stream)), "a capture ends inside a condition");
    rondo_graph_reset(graph);
    conf_want_usable(t, stream, "an end inside a condition");
}

#define CHILD(name, what, function) \
    { {"child." name, "child graph capture", what}, CONF_NEEDS_GRAPH, function }
#define CONDITION(name, what, function) \
    { {"condition." name, "condition graph capture", what}, CONF_NEEDS_GRAPH, function }
static const conf_test tests[] = {
    CHILD("simple", "A replay on a capturing stream becomes part of the graph.", child_simple),
    CHILD("copy", "What becomes of the child later is no concern of its parent.", child_is_a_copy),
    CHILD("nested", "Children have children.", child_nested),
    CHILD("stale", "A parent is stale when its child's memory is gone.", child_stale),
    CHILD("itself", "No graph is its own child.", child_of_itself),
    CONDITION("decides", "What stands in a condition runs when it is not zero.", condition_decides),
    CONDITION("nested", "Conditions nest, and are read when the replay gets there.", condition_nested),
    CONDITION("refuses", "Conditions belong in captures, and end before them.", condition_refuses),
};
CONF_SUITE(conf_suite_child, tests);
