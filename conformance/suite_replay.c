/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays: many, on several streams, of random programs and of very long ones; and every order of taking things down. */
#include <stdlib.h>
#include <string.h>

#include "conf.h"

/* One graph on five streams: a replay goes behind the one before, wherever that was. */
static void replay_streams(conf *t) {
    enum { STREAMS = 5, ROUNDS = 200 };
    rondo_stream *streams[STREAMS];
    rondo_graph *graph = conf_graph(t);
    float *host = conf_host(t, 400), *one = conf_memory(t, 400), *sum = conf_memory(t, 400);
    for (int i = 0; i < STREAMS; ++i) streams[i] = conf_stream(t);
    for (int i = 0; i < 100; ++i) host[i] = (float)(i + 1);
    conf_upload(t, streams[0], one, host, 400);
    conf_sync(t, streams[0]);
    conf_begin(t, graph, streams[0]);
    conf_add(t, streams[0], sum, one, sum, 100);
    conf_end(t, graph, streams[0]);
    for (int i = 0; i < ROUNDS; ++i) conf_replay(t, graph, streams[conf_between(t, 0, STREAMS - 1)]);
    conf_replay(t, graph, streams[2]);
    conf_download(t, streams[2], host, sum, 400);
    for (int i = 0; i < 100; ++i)
        WANT(t, host[i] == (float)((ROUNDS + 1) * (i + 1)), "element %d of %d sums is %g", i, ROUNDS + 1,
             (double)host[i]);
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    WANT_OK(t, rondo_graph_get_info(graph, &info));
    WANT(t, info.replays == ROUNDS + 1, "%llu replays are counted", (unsigned long long)info.replays);
}

/* Two graphs that hand a buffer on, with events between streams. */
static void replay_chain(conf *t) {
    rondo_stream *a = conf_stream(t), *b = conf_stream(t);
    rondo_graph *make = conf_graph(t), *take = conf_graph(t);
    rondo_event *made = conf_event(t), *taken = conf_event(t);
    uint64_t *pinned = conf_pinned(t, 8);
    char *cell = conf_memory(t, 8), *out = conf_memory(t, 50 * 8), *slot = conf_memory(t, 8);
    WANT_OK(t, rondo_graph_declare_slot(take, 0, slot, 8, RONDO_ACCESS_WRITE, RONDO_SLOT_REBIND));
    conf_begin(t, make, a);
    conf_spin(t, a, 10000);
    conf_upload(t, a, cell, pinned, 8);
    conf_end(t, make, a);
    conf_begin(t, take, b);
    conf_copy(t, b, cell, slot, 8);
    conf_end(t, take, b);
    for (uint64_t i = 0; i < 50; ++i) {
        conf_sync(t, a); /* the replay before has read the pinned word */
        *pinned = 3000 + i;
        WANT_OK(t, rondo_event_wait(taken, a));
        conf_replay(t, make, a);
        WANT_OK(t, rondo_event_record(made, a));
        WANT_OK(t, rondo_event_wait(made, b));
        WANT_OK(t, rondo_graph_bind(take, 0, out + i * 8));
        conf_replay(t, take, b);
        WANT_OK(t, rondo_event_record(taken, b));
    }
    conf_want64(t, b, out, 50, 3000, 1, "fifty replays of two graphs with events between");
}

static void replay_between_eager(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *cell = conf_memory(t, 8), *other = conf_memory(t, 8), *trace = conf_memory(t, 100 * 8);
    conf_begin(t, graph, stream);
    conf_copy(t, stream, cell, other, 8);
    conf_end(t, graph, stream);
    for (uint64_t i = 0; i < 100; ++i) {
        conf_fill(t, stream, cell, 1, i);
        conf_replay(t, graph, stream);
        conf_fill(t, stream, cell, 1, 12345);
        conf_copy(t, stream, other, trace + i * 8, 8);
    }
    conf_want64(t, stream, trace, 100, 0, 1, "replays between eager work");
}

static void replay_large(conf *t) {
    enum { NODES = 100000 };
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    char *cells = conf_memory(t, NODES * 8);
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    conf_begin(t, graph, stream);
    conf_fill(t, stream, cells, 1, 777);
    for (uint64_t i = 1; i < NODES; ++i) conf_copy(t, stream, cells + (i - 1) * 8, cells + i * 8, 8);
    conf_end(t, graph, stream);
    WANT_OK(t, rondo_graph_get_info(graph, &info));
    WANT(t, info.nodes == NODES, "%llu of %d nodes were recorded", (unsigned long long)info.nodes, NODES);
    for (int round = 0; round < 2; ++round) {
        WANT_OK(t, rondo_stream_fill(stream, cells, 0, NODES * 8));
        conf_replay(t, graph, stream);
        conf_want64(t, stream, cells, NODES, 777, 0, "a number that went through 100000 nodes");
    }
}

/* ---------------------------------------------------------------------------------------------- random programs */

/* Buffers of floats, and what they must hold, worked out here: sums of float32 are the same everywhere, to the bit. */
enum { PROGRAM_BUFFERS = 6, PROGRAM_FLOATS = 64, PROGRAM_STEPS = 60 };

typedef struct program_step {
    int kind, a, b, c;
    uint64_t start, count, value;
} program_step;

typedef struct program {
    program_step steps[PROGRAM_STEPS];
    float *inputs; /* pinned: a row a step */
} program;

static void program_make(conf *t, program *p) {
    for (int i = 0; i < PROGRAM_STEPS; ++i) {
        program_step *s = &p->steps[i];
        *s = (program_step){(int)conf_between(t, 0, 5),
                            (int)conf_between(t, 0, PROGRAM_BUFFERS - 1),
                            (int)conf_between(t, 0, PROGRAM_BUFFERS - 1),
                            (int)conf_between(t, 0, PROGRAM_BUFFERS - 1),
                            0,
                            0,
                            0};
        s->start = conf_between(t, 0, PROGRAM_FLOATS / 2 - 1);
        s->count = conf_between(t, 1, PROGRAM_FLOATS / 2);
        for (int k = 0; k < PROGRAM_FLOATS; ++k) p->inputs[i * PROGRAM_FLOATS + k] = (float)conf_between(t, 0, 100);
    }
}

static void program_step_here(const program *p, int i, float (*buffers)[PROGRAM_FLOATS]) {
    const program_step *s = &p->steps[i];
    float old[PROGRAM_FLOATS];
    memcpy(old, buffers[s->a], sizeof old);
    switch (s->kind) {
    case 0: memset(&buffers[s->a][s->start], 0, s->count * 4); break;
    case 1: memmove(&buffers[s->b][s->start], &old[0], s->count * 4); break;
    case 2: memcpy(&buffers[s->a][s->start], &p->inputs[i * PROGRAM_FLOATS], s->count * 4); break;
    case 3: memmove(&buffers[s->b][0], &old[s->start], s->count * 4); break;
    default:
        for (uint64_t k = 0; k < s->count; ++k) buffers[s->c][k] = old[k] + buffers[s->b][k];
    }
}

static void program_step_there(conf *t, rondo_stream *stream, const program *p, int i, float **buffers) {
    const program_step *s = &p->steps[i];
    switch (s->kind) {
    case 0: WANT_OK(t, rondo_stream_fill(stream, buffers[s->a] + s->start, 0, s->count * 4)); break;
    case 1:
        if (s->a != s->b) conf_copy(t, stream, buffers[s->a], buffers[s->b] + s->start, s->count * 4);
        break;
    case 2: conf_upload(t, stream, buffers[s->a] + s->start, &p->inputs[i * PROGRAM_FLOATS], s->count * 4); break;
    case 3:
        if (s->a != s->b)
            WANT_OK(t, rondo_stream_copy(stream, buffers[s->b], buffers[s->a] + s->start, s->count * 4,
                                         RONDO_COPY_DEVICE_TO_DEVICE));
        break;
    default: conf_add(t, stream, buffers[s->a], buffers[s->b], buffers[s->c], s->count);
    }
}

static bool program_is_kept(const program_step *s) { return s->a != s->b || (s->kind != 1 && s->kind != 3); }

static void program_want(conf *t, rondo_stream *stream, float **buffers, float (*model)[PROGRAM_FLOATS],
                         const char *what, int number) {
    float got[PROGRAM_FLOATS];
    for (int i = 0; i < PROGRAM_BUFFERS; ++i) {
        conf_download(t, stream, got, buffers[i], sizeof got);
        for (int k = 0; k < PROGRAM_FLOATS; ++k)
            WANT(t, memcmp(&got[k], &model[i][k], 4) == 0, "program %d, %s: buffer %d, element %d is %g, not %g",
                 number, what, i, k, (double)got[k], (double)model[i][k]);
    }
}

static void program_here(const program *p, float (*model)[PROGRAM_FLOATS]) {
    for (int i = 0; i < PROGRAM_STEPS; ++i)
        if (program_is_kept(&p->steps[i])) program_step_here(p, i, model);
}

static void replay_programs(conf *t) {
    program *p = conf_host(t, sizeof *p);
    p->inputs = conf_pinned(t, PROGRAM_STEPS * PROGRAM_FLOATS * 4);
    float *buffers[PROGRAM_BUFFERS], *copies[PROGRAM_BUFFERS];
    rondo_stream *stream = conf_stream(t), *other = conf_stream(t);
    for (int i = 0; i < PROGRAM_BUFFERS; ++i) {
        buffers[i] = conf_memory(t, PROGRAM_FLOATS * 4);
        copies[i] = conf_memory(t, PROGRAM_FLOATS * 4);
    }
    for (int number = 0; number < 40; ++number) {
        float model[PROGRAM_BUFFERS][PROGRAM_FLOATS] = {{0}};
        rondo_graph *graph = conf_graph(t);
        program_make(t, p);
        for (int i = 0; i < PROGRAM_BUFFERS; ++i) {
            WANT_OK(t, rondo_stream_fill(stream, buffers[i], 0, PROGRAM_FLOATS * 4));
            WANT_OK(t, rondo_stream_fill(stream, copies[i], 0, PROGRAM_FLOATS * 4));
        }
        conf_sync(t, stream);
        for (int i = 0; i < PROGRAM_STEPS; ++i) program_step_there(t, stream, p, i, buffers);
        program_here(p, model);
        program_want(t, stream, buffers, model, "eagerly", number);
        conf_begin(t, graph, stream);
        for (int i = 0; i < PROGRAM_STEPS; ++i) program_step_there(t, stream, p, i, copies);
        conf_end(t, graph, stream);
        conf_replay(t, graph, other);
        program_want(t, other, copies, model, "replayed", number);
        program_here(p, model); /* once more, from where it stands */
        conf_replay(t, graph, stream);
        program_want(t, stream, copies, model, "replayed again", number);
        conf_drop(t, graph);
    }
}

/* -------------------------------------------------------------------------------------------------- destruction */

/* Stream, event, graph and memory go in every order while a replay is on its way. What it was to make is made. */
static void destruction_orders(conf *t) {
    rondo_stream *reader = conf_stream(t);
    for (int order = 0; order < 24; ++order) {
        rondo_stream *stream = conf_stream(t);
        rondo_event *event = conf_event(t);
        rondo_graph *graph = conf_graph(t);
        char *in = conf_memory(t, 800), *out = conf_memory(t, 800);
        void *things[4] = {stream, event, graph, in};
        conf_begin(t, graph, stream);
        conf_spin(t, stream, 100000);
        conf_copy(t, stream, in, out, 800);
        conf_end(t, graph, stream);
        conf_iota(t, stream, in, 100, (uint64_t)order);
        conf_replay(t, graph, stream);
        WANT_OK(t, rondo_event_record(event, stream));
        int left = 4, number = order;
        while (left) {
            int pick = number % left;
            number /= left;
            conf_drop(t, things[pick]);
            things[pick] = things[--left];
        }
        conf_want64(t, reader, out, 100, (uint64_t)order, 1, "what a replay made while all around it went");
        conf_drop(t, out);
    }
}

/* The device goes last of all, whatever its creator does. */
static void destruction_of_the_device(conf *t) {
    for (int round = 0; round < 4; ++round) {
        rondo_device *device = t->device;
        rondo_stream *stream = conf_stream(t);
        rondo_graph *graph = conf_graph(t);
        rondo_event *event = conf_event(t);
        char *memory = conf_memory(t, 800);
        conf_begin(t, graph, stream);
        conf_iota(t, stream, memory, 100, 1);
        conf_end(t, graph, stream);
        conf_replay(t, graph, stream);
        WANT_OK(t, rondo_event_record(event, stream));
        rondo_device_release(device); /* the others hold it */
        t->device = NULL;             /* a check that fails here has no reference to give back */
        conf_want64(t, stream, memory, 100, 1, 1, "a device that only its streams hold");
        rondo_device_retain(device);
        t->device = device;
        conf_reopen(t, t->settings);
    }
}

#define REPLAY(name, what, function) \
    { {"replay." name, "replay graph", what}, CONF_NEEDS_GRAPH, function }
static const conf_test tests[] = {
    REPLAY("streams", "One graph, many replays on several streams, each behind the one before.", replay_streams),
    REPLAY("chain", "Two graphs on two streams hand data on through events.", replay_chain),
    REPLAY("between_eager", "Replays and eager work of a stream keep their order.", replay_between_eager),
    {{"replay.large", "replay graph slow", "A hundred thousand nodes, each needing the one before."},
     CONF_NEEDS_GRAPH,
     replay_large},
    {{"replay.programs", "replay graph random",
      "Random programs: eager run, replay, and arithmetic done here give the same bits."},
     CONF_NEEDS_GRAPH,
     replay_programs},
    {{"destruction.orders", "destruction graph",
      "Stream, event, graph and memory go in every order, a replay on its way."},
     CONF_NEEDS_GRAPH,
     destruction_orders},
    {{"destruction.device", "destruction device graph", "Streams, events and graphs hold their device."},
     CONF_NEEDS_GRAPH,
     destruction_of_the_device},
};
CONF_SUITE(conf_suite_replay, tests);
