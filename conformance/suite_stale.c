/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses that a graph mentions and that are no longer what they were: never silently wrong. */
#include <string.h>

#include "conf.h"

typedef struct stale_bed {
    rondo_stream *stream;
    rondo_graph *graph;
    char *in, *out;
} stale_bed;

static stale_bed stale_make(conf *t) {
    stale_bed bed = {conf_stream(t), conf_graph(t), conf_memory(t, 4096), conf_memory(t, 4096)};
    rondo_argument arguments[] = {CONF_READ(bed.in, 4096), CONF_WRITE(bed.out, 4096), CONF_VALUE(4096)};
    conf_begin(t, bed.graph, bed.stream);
    conf_spin(t, bed.stream, 0);
    WANT_OK(t, conf_launch(bed.stream, conf_kernel(t, CONF_COPY), "the_copy", arguments, 3));
    conf_end(t, bed.graph, bed.stream);
    conf_iota(t, bed.stream, bed.in, 512, 1);
    conf_replay(t, bed.graph, bed.stream);
    conf_want64(t, bed.stream, bed.out, 512, 1, 1, "a graph before anything is freed");
    return bed;
}

/* The refusal names the node, and nothing has run. */
static void stale_freed(conf *t) {
    stale_bed bed = stale_make(t);
    WANT_OK(t, rondo_stream_fill(bed.stream, bed.out, 0, 4096));
    conf_drop(t, bed.in);
    for (int i = 0; i < 3; ++i) {
        WANT_TEXT(t, rondo_graph_replay(bed.graph, bed.stream), STALE, "the_copy");
        conf_want64(t, bed.stream, bed.out, 512, 0, 0, "the output of a replay that was refused");
    }
    WANT(t, rondo_graph_get_state(bed.graph) == RONDO_GRAPH_READY, "a refused replay changed the state");
    conf_want_usable(t, bed.stream, "a stale replay");
}

/* The same address, given out again, is not the same memory. */
static void stale_reused(conf *t) {
    stale_bed bed = stale_make(t);
    void *others[64];
    bool same = false;
    conf_drop(t, bed.in);
    for (int i = 0; i < 64 && !same; ++i) {
        others[i] = conf_memory(t, 4096);
        same = others[i] == (void *)bed.in;
    }
    WANT_OK(t, rondo_stream_fill(bed.stream, bed.out, 0, 4096));
    WANT_TEXT(t, rondo_graph_replay(bed.graph, bed.stream), STALE, "the_copy");
    conf_want64(t, bed.stream, bed.out, 512, 0, 0, "the output of a replay whose input is another's now");
}

/* What the graph does not mention may come and go. */
static void stale_not_mentioned(conf *t) {
    stale_bed bed = stale_make(t);
    for (uint64_t i = 0; i < 50; ++i) {
        void *other = conf_memory(t, conf_between(t, 1, 10000));
        conf_drop(t, other);
        conf_iota(t, bed.stream, bed.in, 512, i);
        conf_replay(t, bed.graph, bed.stream);
        conf_want64(t, bed.stream, bed.out, 512, i, 1, "a graph beside which memory comes and goes");
    }
}

static void stale_captured_again(conf *t) {
    stale_bed bed = stale_make(t);
    conf_drop(t, bed.out);
    WANT_CODE(t, rondo_graph_replay(bed.graph, bed.stream), STALE);
    char *out = conf_memory(t, 4096);
    rondo_graph_reset(bed.graph);
    conf_begin(t, bed.graph, bed.stream);
    conf_copy(t, bed.stream, bed.in, out, 4096);
    conf_end(t, bed.graph, bed.stream);
    conf_replay(t, bed.graph, bed.stream);
    conf_want64(t, bed.stream, out, 512, 1, 1, "a stale graph that was captured again");
}

static void stale_updated_away(conf *t) {
    stale_bed bed = stale_make(t);
    char *in = conf_memory(t, 4096);
    rondo_argument arguments[] = {CONF_READ(in, 4096), CONF_WRITE(bed.out, 4096), CONF_VALUE(4096)};
    conf_iota(t, bed.stream, in, 512, 30);
    conf_drop(t, bed.in);
    WANT_CODE(t, rondo_graph_replay(bed.graph, bed.stream), STALE);
    WANT_OK(t, rondo_graph_update(bed.graph, 1, arguments, 3));
    conf_replay(t, bed.graph, bed.stream);
    conf_want64(t, bed.stream, bed.out, 512, 30, 1, "a stale graph whose node was updated");
    conf_drop(t, in);
    WANT_CODE(t, rondo_graph_replay(bed.graph, bed.stream), STALE);
}

/* A slot is asked where it is bound now, not where it was declared. */
static void stale_slot(conf *t) {
    for (rondo_slot_policy policy = RONDO_SLOT_REBIND; policy <= RONDO_SLOT_COPY; ++policy) {
        rondo_stream *stream = conf_stream(t);
        rondo_graph *graph = conf_graph(t);
        char *declared = conf_memory(t, 64), *bound = conf_memory(t, 64), *out = conf_memory(t, 64);
        WANT_OK(t, rondo_graph_declare_slot(graph, 0, declared, 64, RONDO_ACCESS_READ, policy));
        conf_begin(t, graph, stream);
        conf_copy(t, stream, declared, out, 64);
        conf_end(t, graph, stream);
        conf_iota(t, stream, bound, 8, 40);
        conf_drop(t, declared);
        WANT_TEXT(t, rondo_graph_replay(graph, stream), STALE, "slot 0");
        WANT_OK(t, rondo_graph_bind(graph, 0, bound));
        conf_replay(t, graph, stream);
        conf_want64(t, stream, out, 8, 40, 1, "a slot whose declared memory is gone");
        conf_drop(t, bound);
        WANT_TEXT(t, rondo_graph_replay(graph, stream), STALE, "slot 0");
    }
}

/* Every node, each kind of mention. */
static void stale_every_kind(conf *t) {
    for (int kind = 0; kind < 6; ++kind) {
        rondo_stream *stream = conf_stream(t);
        rondo_graph *graph = conf_graph(t);
        char *doomed = conf_memory(t, 4096), *other = conf_memory(t, 4096), *pinned = conf_pinned(t, 4096);
        conf_begin(t, graph, stream);
        if (kind == 0) conf_copy(t, stream, doomed + 64, other, 8);
        if (kind == 1) conf_iota(t, stream, doomed + 128, 2, 1);
        if (kind == 2) WANT_OK(t, rondo_stream_copy(stream, other, doomed + 4088, 8, RONDO_COPY_DEVICE_TO_DEVICE));
        if (kind == 3) WANT_OK(t, rondo_stream_copy(stream, doomed, pinned, 8, RONDO_COPY_HOST_TO_DEVICE));
        if (kind == 4) WANT_OK(t, rondo_stream_copy(stream, pinned, doomed + 1, 8, RONDO_COPY_DEVICE_TO_HOST));
        if (kind == 5) WANT_OK(t, rondo_stream_fill(stream, doomed + 100, 1, 1));
        conf_end(t, graph, stream);
        conf_replay(t, graph, stream);
        conf_sync(t, stream);
        conf_drop(t, doomed);
        WANT_CODE(t, rondo_graph_replay(graph, stream), STALE);
    }
}

/* One range beyond its allocation at capture. */
static void stale_crossing(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 4096);
    conf_begin(t, graph, stream);
    rondo_argument arguments[] = {CONF_WRITE(memory + 8, 4096), CONF_VALUE(512), CONF_VALUE(1)};
    WANT_CODE(t, conf_launch(stream, conf_kernel(t, CONF_IOTA), "crossing", arguments, 3), OUT_OF_RANGE);
    WANT_CODE(t, rondo_graph_capture_end(graph, stream), CAPTURE_INVALIDATED);
    conf_want_usable(t, stream, "a call that crossed the end of its memory");
}

#define STALE(name, what, function) \
    { {"stale." name, "stale graph memory", what}, CONF_NEEDS_GRAPH, function }
static const conf_test tests[] = {
    STALE("freed", "A replay that mentions freed memory is refused, names the node, and runs nothing.", stale_freed),
    STALE("reused", "An address that was given out again is still refused.", stale_reused),
    STALE("not_mentioned", "Freeing what the graph does not mention is no concern of its replays.",
          stale_not_mentioned),
    STALE("captured_again", "A stale graph can be captured again.", stale_captured_again),
    STALE("updated_away", "Updating the node that was stale makes the graph whole.", stale_updated_away),
    STALE("slot", "A slot is stale where it is bound now, and a bind mends it.", stale_slot),
    STALE("every_kind", "Every kind of node notices that its memory is gone.", stale_every_kind),
    STALE("crossing", "An argument that crosses the end of its allocation is refused when it is recorded.",
          stale_crossing),
};
CONF_SUITE(conf_suite_stale, tests);
