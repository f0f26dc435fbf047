/* SPDX-License-Identifier: Apache-2.0
 *
 * Slots of both policies, and updates of single nodes. */
#include <string.h>

#include "conf.h"

/* A graph that copies slot 0 to slot 1, 8 numbers each. */
typedef struct slot_bed {
    rondo_stream *stream;
    rondo_graph *graph;
    char *in, *out, *in2, *out2;
} slot_bed;

static slot_bed slot_make(conf *t, rondo_slot_policy policy) {
    slot_bed bed = {conf_stream(t),     conf_graph(t),      conf_memory(t, 64),
                    conf_memory(t, 64), conf_memory(t, 64), conf_memory(t, 64)};
    WANT_OK(t, rondo_graph_declare_slot(bed.graph, 0, bed.in, 64, RONDO_ACCESS_READ, policy));
    WANT_OK(t, rondo_graph_declare_slot(bed.graph, 1, bed.out, 64, RONDO_ACCESS_WRITE, policy));
    conf_begin(t, bed.graph, bed.stream);
    conf_copy(t, bed.stream, bed.in, bed.out, 64);
    conf_end(t, bed.graph, bed.stream);
    conf_iota(t, bed.stream, bed.in, 8, 10);
    conf_iota(t, bed.stream, bed.in2, 8, 20);
    conf_sync(t, bed.stream);
    return bed;
}

static void slot_clear(conf *t, const slot_bed *bed) {
    WANT_OK(t, rondo_stream_fill(bed->stream, bed->out, 0, 64));
    WANT_OK(t, rondo_stream_fill(bed->stream, bed->out2, 0, 64));
}

static void slot_policy(conf *t, rondo_slot_policy policy) {
    slot_bed bed = slot_make(t, policy);
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    WANT_OK(t, rondo_graph_get_info(bed.graph, &info));
    WANT(t, info.slots == 2 && info.nodes == 1, "%u slots, %llu nodes", (unsigned)info.slots,
         (unsigned long long)info.nodes);
    slot_clear(t, &bed);
    conf_replay(t, bed.graph, bed.stream);
    conf_want64(t, bed.stream, bed.out, 8, 10, 1, "slots where they were declared");
    WANT_OK(t, rondo_graph_bind(bed.graph, 0, bed.in2));
    slot_clear(t, &bed);
    conf_replay(t, bed.graph, bed.stream);
    conf_want64(t, bed.stream, bed.out, 8, 20, 1, "an input that was bound elsewhere");
    WANT_OK(t, rondo_graph_bind(bed.graph, 1, bed.out2));
    slot_clear(t, &bed);
    conf_replay(t, bed.graph, bed.stream);
    conf_want64(t, bed.stream, bed.out2, 8, 20, 1, "an output that was bound elsewhere");
    conf_want64(t, bed.stream, bed.out, 8, 0, 0, "where the output was bound before");
    WANT_OK(t, rondo_graph_bind(bed.graph, 0, bed.in));
    WANT_OK(t, rondo_graph_bind(bed.graph, 1, bed.out));
    slot_clear(t, &bed);
    conf_replay(t, bed.graph, bed.stream);
    conf_want64(t, bed.stream, bed.out, 8, 10, 1, "slots that came back");
    conf_want64(t, bed.stream, bed.out2, 8, 0, 0, "where the output was bound meanwhile");
}

static void slot_rebind(conf *t) { slot_policy(t, RONDO_SLOT_REBIND); }
static void slot_copy(conf *t) { slot_policy(t, RONDO_SLOT_COPY); }

/* A bind in the middle of replays acts on those that follow, and on no other. */
static void slot_in_flight(conf *t) {
    for (rondo_slot_policy policy = RONDO_SLOT_REBIND; policy <= RONDO_SLOT_COPY; ++policy) {
        rondo_stream *stream = conf_stream(t);
        rondo_graph *graph = conf_graph(t);
        char *in = conf_memory(t, 64), *outs[20];
        for (int i = 0; i < 20; ++i) outs[i] = conf_memory(t, 64);
        WANT_OK(t, rondo_graph_declare_slot(graph, 0, outs[0], 64, RONDO_ACCESS_WRITE, policy));
        conf_begin(t, graph, stream);
        conf_spin(t, stream, 50000);
        conf_copy(t, stream, in, outs[0], 64);
        conf_end(t, graph, stream);
        for (uint64_t i = 0; i < 20; ++i) {
            conf_iota(t, stream, in, 8, 100 * i);
            WANT_OK(t, rondo_graph_bind(graph, 0, outs[i]));
            conf_replay(t, graph, stream);
        }
        for (uint64_t i = 0; i < 20; ++i)
            conf_want64(t, stream, outs[i], 8, 100 * i, 1, "one of twenty bindings in flight");
    }
}

/* An argument inside a slot keeps its distance to the slot's start; what lies outside stays. */
static void slot_inside(conf *t) {
    for (rondo_slot_policy policy = RONDO_SLOT_REBIND; policy <= RONDO_SLOT_COPY; ++policy) {
        rondo_stream *stream = conf_stream(t);
        rondo_graph *graph = conf_graph(t);
        char *area = conf_memory(t, 256), *other = conf_memory(t, 256), *outside = conf_memory(t, 64);
        WANT_OK(t, rondo_graph_declare_slot(graph, 0, area + 64, 128, RONDO_ACCESS_BOTH, policy));
        conf_begin(t, graph, stream);
        conf_iota(t, stream, area + 80, 2, 5);
        conf_iota(t, stream, area + 160, 4, 50);
        conf_iota(t, stream, area, 8, 500); /* beside the slot */
        conf_copy(t, stream, area + 160, outside, 32);
        WANT_OK(t, rondo_stream_fill(stream, area + 64, 7, 8));
        conf_end(t, graph, stream);
        conf_fill(t, stream, other, 32, 1);
        WANT_OK(t, rondo_graph_bind(graph, 0, other + 8));
        conf_replay(t, graph, stream);
        conf_want64(t, stream, other, 1, 1, 0, "before the place that the slot was bound to");
        conf_want64(t, stream, other + 8, 1, 0x0707070707070707u, 0, "a fill in a slot");
        conf_want64(t, stream, other + 8 + 16, 2, 5, 1, "a call near the slot's start");
        conf_want64(t, stream, other + 8 + 32, 8, 1, 0, "the bytes of a slot that no call mentions");
        conf_want64(t, stream, other + 8 + 96, 4, 50, 1, "a call near the slot's end");
        conf_want64(t, stream, area, 8, 500, 1, "a call beside the slot");
        conf_want64(t, stream, area + 64, 16, 0, 0, "where the slot was declared");
        conf_want64(t, stream, outside, 4, 50, 1, "what was read from the slot");
    }
}

/* With policy copy a slot that is read and written goes in and comes out. */
static void slot_copy_both(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    float host[64], *declared = conf_memory(t, sizeof host), *bound = conf_memory(t, sizeof host);
    WANT_OK(t, rondo_graph_declare_slot(graph, 0, declared, sizeof host, RONDO_ACCESS_BOTH, RONDO_SLOT_COPY));
    conf_begin(t, graph, stream);
    conf_add(t, stream, declared, declared, declared, 64);
    conf_end(t, graph, stream);
    for (int i = 0; i < 64; ++i) host[i] = (float)i;
    conf_upload(t, stream, bound, host, sizeof host);
    WANT_OK(t, rondo_graph_bind(graph, 0, bound));
    for (int round = 0; round < 3; ++round) conf_replay(t, graph, stream);
    conf_download(t, stream, host, bound, sizeof host);
    for (int i = 0; i < 64; ++i)
        WANT(t, host[i] == (float)i * 8.0f, "three doublings in a copied slot made %g of %d", (double)host[i], i);
}

static void slot_refuses(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 256);
    WANT_CODE(t, rondo_graph_declare_slot(graph, 1, memory, 64, RONDO_ACCESS_READ, RONDO_SLOT_REBIND), OUT_OF_RANGE);
    WANT_CODE(t, rondo_graph_declare_slot(graph, 0, NULL, 64, RONDO_ACCESS_READ, RONDO_SLOT_REBIND), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_declare_slot(graph, 0, memory, 0, RONDO_ACCESS_READ, RONDO_SLOT_REBIND), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_declare_slot(graph, 0, memory, 64, RONDO_ACCESS_VALUE, RONDO_SLOT_REBIND),
              INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_declare_slot(graph, 0, memory, 64, 4, RONDO_SLOT_REBIND), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_declare_slot(graph, 0, memory, 64, RONDO_ACCESS_READ, 2), INVALID_ARGUMENT);
    WANT_OK(t, rondo_graph_declare_slot(graph, 0, memory, 64, RONDO_ACCESS_BOTH, RONDO_SLOT_REBIND));
    WANT_CODE(t, rondo_graph_declare_slot(graph, 0, memory + 64, 64, RONDO_ACCESS_READ, RONDO_SLOT_REBIND),
              ALREADY_EXISTS);
    WANT_CODE(t, rondo_graph_declare_slot(graph, 1, memory + 63, 64, RONDO_ACCESS_READ, RONDO_SLOT_REBIND),
              INVALID_ARGUMENT);
    WANT_OK(t, rondo_graph_declare_slot(graph, 1, memory + 64, 64, RONDO_ACCESS_READ, RONDO_SLOT_REBIND));
    conf_begin(t, graph, stream);
    conf_copy(t, stream, memory + 64, memory, 64);
    conf_end(t, graph, stream);
    WANT_CODE(t, rondo_graph_bind(graph, 2, memory), OUT_OF_RANGE);
    WANT_CODE(t, rondo_graph_bind(graph, 0, NULL), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_bind(graph, 0, memory + 256 - 8), OUT_OF_RANGE);
    conf_iota(t, stream, memory + 64, 8, 3);
    conf_replay(t, graph, stream);
    conf_want64(t, stream, memory, 8, 3, 1, "slots after refused bindings");
}

/* A call that lies in a slot only in part would be torn apart by a bind. */
static void slot_torn(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 256);
    WANT_OK(t, rondo_graph_declare_slot(graph, 0, memory + 64, 64, RONDO_ACCESS_BOTH, RONDO_SLOT_REBIND));
    conf_begin(t, graph, stream);
    rondo_argument arguments[] = {CONF_WRITE(memory + 56, 64), CONF_VALUE(8), CONF_VALUE(1)};
    WANT_CODE(t, conf_launch(stream, conf_kernel(t, CONF_IOTA), "torn", arguments, 3), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_capture_end(graph, stream), CAPTURE_INVALIDATED);
    conf_want_usable(t, stream, "a call that lay in a slot in part");
}

/* Nobody knows what a host function touches: such a graph is not bound, and goes on as it was. */
static void slot_opaque(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 64), *other = conf_memory(t, 64);
    uint32_t *called = conf_host(t, sizeof *called);
    WANT_OK(t, rondo_graph_declare_slot(graph, 0, memory, 64, RONDO_ACCESS_WRITE, RONDO_SLOT_REBIND));
    conf_begin(t, graph, stream);
    conf_iota(t, stream, memory, 8, 4);
    WANT_OK(t, rondo_stream_host_call(stream, conf_count_call, called));
    conf_end(t, graph, stream);
    WANT_TEXT(t, rondo_graph_bind(graph, 0, other), UNSUPPORTED, "host call");
    conf_replay(t, graph, stream);
    conf_want64(t, stream, memory, 8, 4, 1, "an opaque graph after a refused bind");
    WANT(t, *called == 1, "its host call ran %u times", (unsigned)*called);
}

/* Abort keeps the declared slots, reset forgets them. */
static void slot_lifetimes(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 64), *other = conf_memory(t, 64);
    WANT_OK(t, rondo_graph_declare_slot(graph, 0, memory, 64, RONDO_ACCESS_WRITE, RONDO_SLOT_REBIND));
    conf_begin(t, graph, stream);
    WANT_OK(t, rondo_graph_abort(graph));
    WANT_CODE(t, rondo_graph_declare_slot(graph, 0, memory, 64, RONDO_ACCESS_WRITE, RONDO_SLOT_REBIND), ALREADY_EXISTS);
    conf_begin(t, graph, stream);
    conf_iota(t, stream, memory, 8, 6);
    conf_end(t, graph, stream);
    WANT_OK(t, rondo_graph_bind(graph, 0, other));
    conf_replay(t, graph, stream);
    conf_want64(t, stream, other, 8, 6, 1, "a slot that outlived an abort");
    rondo_graph_reset(graph);
    WANT_OK(t, rondo_graph_declare_slot(graph, 0, memory, 64, RONDO_ACCESS_WRITE, RONDO_SLOT_REBIND));
}

/* ------------------------------------------------------------------------------------------------------- update */

static void update_kinds(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *a = conf_memory(t, 64), *b = conf_memory(t, 64), *c = conf_memory(t, 64), *d = conf_memory(t, 64);
    conf_begin(t, graph, stream);
    conf_iota(t, stream, a, 8, 10);
    WANT_OK(t, rondo_stream_copy(stream, b, a, 64, RONDO_COPY_DEVICE_TO_DEVICE));
    WANT_OK(t, rondo_stream_fill(stream, c, 1, 64));
    conf_end(t, graph, stream);
    conf_replay(t, graph, stream);
    conf_want64(t, stream, b, 8, 10, 1, "before any update");
    rondo_argument kernel[] = {CONF_WRITE(a, 64), CONF_VALUE(8), CONF_VALUE(77)};
    WANT_OK(t, rondo_graph_update(graph, 0, kernel, 3));
    conf_replay(t, graph, stream);
    conf_want64(t, stream, a, 8, 77, 1, "a kernel that was updated");
    conf_want64(t, stream, b, 8, 77, 1, "what follows a kernel that was updated");
    conf_want64(t, stream, c, 8, 0x0101010101010101u, 0, "a node beside one that was updated");
    rondo_argument copy[] = {CONF_WRITE(d, 32), CONF_READ(a, 32), CONF_VALUE(32)};
    WANT_OK(t, rondo_graph_update(graph, 1, copy, 3));
    rondo_argument fill[] = {CONF_WRITE(c, 16), CONF_VALUE(3), CONF_VALUE(16)};
    WANT_OK(t, rondo_graph_update(graph, 2, fill, 3));
    WANT_OK(t, rondo_stream_fill(stream, b, 0, 64));
    conf_replay(t, graph, stream);
    conf_want64(t, stream, d, 4, 77, 1, "a copy that was updated");
    conf_want64(t, stream, d + 32, 4, 0, 0, "past a copy that was made shorter");
    conf_want64(t, stream, b, 8, 0, 0, "where an updated copy went before");
    conf_want64(t, stream, c, 2, 0x0303030303030303u, 0, "a fill that was updated");
    conf_want64(t, stream, c + 16, 6, 0x0101010101010101u, 0, "past a fill that was made shorter");
}

static void update_in_flight(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *cells = conf_memory(t, 40 * 8);
    conf_begin(t, graph, stream);
    conf_spin(t, stream, 20000);
    conf_iota(t, stream, cells, 1, 0);
    conf_end(t, graph, stream);
    for (uint64_t i = 0; i < 40; ++i) {
        rondo_argument arguments[] = {CONF_WRITE(cells + i * 8, 8), CONF_VALUE(1), CONF_VALUE(900 + i)};
        WANT_OK(t, rondo_graph_update(graph, 1, arguments, 3));
        conf_replay(t, graph, stream);
    }
    conf_want64(t, stream, cells, 40, 900, 1, "forty updates in flight");
}

static void update_refuses(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 64);
    uint32_t *called = conf_host(t, sizeof *called);
    rondo_argument arguments[] = {CONF_WRITE(memory, 64), CONF_VALUE(8), CONF_VALUE(2), CONF_VALUE(0)};
    rondo_argument long_one[] = {CONF_WRITE(memory, 1u << 30), CONF_VALUE(8), CONF_VALUE(2)};
    conf_begin(t, graph, stream);
    conf_iota(t, stream, memory, 8, 1);
    WANT_OK(t, rondo_stream_host_call(stream, conf_count_call, called));
    conf_end(t, graph, stream);
    WANT_CODE(t, rondo_graph_update(graph, 2, arguments, 3), OUT_OF_RANGE);
    WANT_CODE(t, rondo_graph_update(graph, 0, arguments, 2), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_update(graph, 0, arguments, 4), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_update(graph, 0, NULL, 3), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_update(graph, 0, long_one, 3), OUT_OF_RANGE);
    WANT(t, conf_code(rondo_graph_update(graph, 1, arguments, 2)), "a host call can be updated");
    conf_replay(t, graph, stream);
    conf_want64(t, stream, memory, 8, 1, 1, "a graph after refused updates");
    WANT(t, *called == 1, "its host call ran %u times", (unsigned)*called);
}

#define SLOT(name, what, function) \
    { {"slot." name, "slot graph", what}, CONF_NEEDS_GRAPH, function }
#define UPDATE(name, what, function) \
    { {"update." name, "update graph", what}, CONF_NEEDS_GRAPH, function }
static const conf_test tests[] = {
    SLOT("rebind", "A rebound slot is used where it is now, and nowhere else.", slot_rebind),
    SLOT("copy", "A copied slot goes in from, and out to, where it is bound.", slot_copy),
    SLOT("in_flight", "A bind acts on the replays that follow it.", slot_in_flight),
    SLOT("inside", "Arguments keep their distance to the slot's start; others stay where they are.", slot_inside),
    SLOT("copy_both", "A copied slot that is read and written goes in and comes out.", slot_copy_both),
    SLOT("refuses", "Gaps, overlaps and impossible ranges are refused.", slot_refuses),
    SLOT("torn", "A call that lies in a slot only in part is refused.", slot_torn),
    {{"slot.opaque", "slot graph", "A graph with host calls refuses to be bound, by name."},
     CONF_NEEDS_GRAPH | CONF_NEEDS_HOST_CALLS,
     slot_opaque},
    SLOT("lifetimes", "Abort keeps the slots, reset forgets them.", slot_lifetimes),
    UPDATE("kinds", "Kernels, copies and fills take new arguments; other nodes stay.", update_kinds),
    UPDATE("in_flight", "An update acts on the replays that follow it.", update_in_flight),
    {{"update.refuses", "update graph", "Wrong nodes, counts and ranges are refused."},
     CONF_NEEDS_GRAPH | CONF_NEEDS_HOST_CALLS,
     update_refuses},
};
CONF_SUITE(conf_suite_slot, tests);
