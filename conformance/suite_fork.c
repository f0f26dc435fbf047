/* SPDX-License-Identifier: Apache-2.0
 *
 * Several streams in one capture: fork and join by events, and what must not come together. */
#include <string.h>

#include "conf.h"

static const rondo_pool_id no_pool = {0, 0};

static void fork_to(conf *t, rondo_event *event, rondo_stream *from, rondo_stream *to) {
    WANT_OK(t, rondo_event_record(event, from));
    WANT_OK(t, rondo_event_wait(event, to));
}

static void fork_simple(conf *t) {
    rondo_stream *main_stream = conf_stream(t), *side = conf_stream(t);
    rondo_event *out = conf_event(t), *back = conf_event(t);
    rondo_graph *graph = conf_graph(t);
    rondo_capture_status status = RONDO_CAPTURE_STATUS_INIT, other = RONDO_CAPTURE_STATUS_INIT;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    char *a = conf_memory(t, 800), *b = conf_memory(t, 800), *c = conf_memory(t, 800);
    conf_begin(t, graph, main_stream);
    conf_spin(t, main_stream, 10000);
    conf_iota(t, main_stream, a, 100, 5);
    fork_to(t, out, main_stream, side);
    WANT_OK(t, rondo_stream_capture_status(main_stream, &status));
    WANT_OK(t, rondo_stream_capture_status(side, &other));
    WANT(t, other.active && other.id == status.id, "a stream that waits for a capture's event does not belong to it");
    conf_spin(t, side, 10000);
    conf_copy(t, side, a, b, 800);
    fork_to(t, back, side, main_stream);
    conf_copy(t, main_stream, b, c, 800);
    conf_end(t, graph, main_stream);
    WANT_OK(t, rondo_stream_capture_status(side, &other));
    WANT(t, !other.active, "the side stream still captures after the end");
    WANT_OK(t, rondo_graph_get_info(graph, &info));
    WANT(t, info.nodes == 5 && info.kernels == 5, "%llu nodes were recorded: order is no work",
         (unsigned long long)info.nodes);
    conf_want64(t, side, c, 100, 0, 0, "work of a fork that was only captured");
    for (int round = 0; round < 5; ++round) {
        WANT_OK(t, rondo_stream_fill(side, c, 0, 800));
        conf_sync(t, side);
        conf_replay(t, graph, main_stream);
        conf_want64(t, main_stream, c, 100, 5, 1, "a fork and a join");
    }
    conf_want_usable(t, side, "a stream that was part of a capture");
}

/* Random programs on four streams: each step waits for those it conflicts with, and for no other. */
enum { FORK_STREAMS = 4, FORK_CELLS = 12, FORK_STEPS = 80 };

typedef struct fork_step {
    int stream, from, to; /* from < 0: iota */
    uint64_t value;
} fork_step;

typedef struct fork_program {
    fork_step steps[FORK_STEPS];
    rondo_stream *streams[FORK_STREAMS];
    rondo_event *events[FORK_STEPS], *start, *ends[FORK_STREAMS];
} fork_program;

static bool fork_conflict(const fork_step *a, const fork_step *b) {
    return a->to == b->to || a->to == b->from || a->from == b->to;
}

static void fork_run(conf *t, const fork_program *p, char *cells) {
    WANT_OK(t, rondo_event_record(p->start, p->streams[0]));
    for (int i = 1; i < FORK_STREAMS; ++i) WANT_OK(t, rondo_event_wait(p->start, p->streams[i]));
    for (int i = 0; i < FORK_STEPS; ++i) {
        const fork_step *s = &p->steps[i];
        rondo_stream *stream = p->streams[s->stream];
        for (int k = 0; k < i; ++k)
            if (p->steps[k].stream != s->stream && fork_conflict(&p->steps[k], s))
                WANT_OK(t, rondo_event_wait(p->events[k], stream));
        if (s->from < 0) conf_iota(t, stream, cells + s->to * 8, 1, s->value);
        else conf_copy(t, stream, cells + s->from * 8, cells + s->to * 8, 8);
        WANT_OK(t, rondo_event_record(p->events[i], stream));
    }
    for (int i = 1; i < FORK_STREAMS; ++i) {
        WANT_OK(t, rondo_event_record(p->ends[i], p->streams[i]));
        WANT_OK(t, rondo_event_wait(p->ends[i], p->streams[0]));
    }
}

static void fork_want(conf *t, const fork_program *p, const char *cells, const char *what, int number) {
    uint64_t model[FORK_CELLS] = {0}, got[FORK_CELLS];
    for (int i = 0; i < FORK_STEPS; ++i) {
        const fork_step *s = &p->steps[i];
        model[s->to] = s->from < 0 ? s->value : model[s->from];
    }
    conf_download(t, p->streams[0], got, cells, sizeof got);
    for (int i = 0; i < FORK_CELLS; ++i)
        WANT(t, got[i] == model[i], "program %d, %s: cell %d is %llu, not %llu", number, what, i,
             (unsigned long long)got[i], (unsigned long long)model[i]);
}

static void fork_programs(conf *t) {
    fork_program *p = conf_host(t, sizeof *p);
    char *cells = conf_memory(t, FORK_CELLS * 8);
    p->start = conf_event(t);
    for (int i = 0; i < FORK_STREAMS; ++i) {
        p->streams[i] = conf_stream(t);
        p->ends[i] = conf_event(t);
    }
    for (int i = 0; i < FORK_STEPS; ++i) p->events[i] = conf_event(t);
    for (int number = 0; number < 30; ++number) {
        rondo_graph *graph = conf_graph(t);
        for (int i = 0; i < FORK_STEPS; ++i) {
            fork_step *s = &p->steps[i];
            *s = (fork_step){(int)conf_between(t, 0, FORK_STREAMS - 1), (int)conf_between(t, 0, FORK_CELLS) - 1,
                             (int)conf_between(t, 0, FORK_CELLS - 1), conf_random(t)};
            if (s->from == s->to) s->from = -1;
        }
        for (int round = 0; round < 3; ++round) {
            WANT_OK(t, rondo_stream_fill(p->streams[0], cells, 0, FORK_CELLS * 8));
            if (round == 0) fork_run(t, p, cells);
            if (round == 1) {
                conf_sync(t, p->streams[0]);
                conf_begin(t, graph, p->streams[0]);
                fork_run(t, p, cells);
                conf_end(t, graph, p->streams[0]);
            }
            if (round) conf_replay(t, graph, p->streams[0]);
            fork_want(t, p, cells, round == 0 ? "eagerly" : "replayed", number);
        }
        conf_drop(t, graph);
    }
}

/* A fork of a fork, joined through its parent and straight to the first. */
static void fork_nested(conf *t) {
    for (int straight = 0; straight < 2; ++straight) {
        rondo_stream *a = conf_stream(t), *b = conf_stream(t), *c = conf_stream(t);
        rondo_event *events[5];
        rondo_graph *graph = conf_graph(t);
        char *cells = conf_memory(t, 4 * 8);
        for (int i = 0; i < 5; ++i) events[i] = conf_event(t);
        conf_begin(t, graph, a);
        conf_iota(t, a, cells, 1, 77);
        fork_to(t, events[0], a, b);
        conf_copy(t, b, cells, cells + 8, 8);
        fork_to(t, events[1], b, c);
        conf_spin(t, c, 20000);
        conf_copy(t, c, cells + 8, cells + 16, 8);
        if (straight) {
            fork_to(t, events[2], c, a);
            fork_to(t, events[3], b, a);
        } else {
            fork_to(t, events[2], c, b);
            fork_to(t, events[3], b, a);
        }
        conf_copy(t, a, cells + 16, cells + 24, 8);
        conf_end(t, graph, a);
        conf_replay(t, graph, a);
        conf_want64(t, a, cells, 4, 77, 0, "a fork of a fork");
        conf_want_usable(t, c, "a fork of a fork");
    }
}

/* A stream may be joined and forked again, and go on after its last join only as an unjoined one. */
static void fork_unjoined(conf *t) {
    rondo_stream *a = conf_stream(t), *b = conf_stream(t);
    rondo_event *event = conf_event(t), *back = conf_event(t);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 64);
    for (int joined_first = 0; joined_first < 2; ++joined_first) {
        conf_begin(t, graph, a);
        conf_iota(t, a, memory, 8, 1);
        fork_to(t, event, a, b);
        conf_iota(t, b, memory, 8, 2);
        if (joined_first) {
            fork_to(t, back, b, a);
            conf_iota(t, b, memory, 8, 3); /* behind its join */
        }
        WANT_CODE(t, rondo_graph_capture_end(graph, a), CAPTURE_UNJOINED);
        WANT(t, rondo_graph_get_state(graph) == RONDO_GRAPH_EMPTY, "an unjoined capture does not lead to empty");
        conf_want_usable(t, a, "an unjoined capture");
        conf_want_usable(t, b, "a stream that was not joined");
    }
    conf_want64(t, a, memory, 8, 0, 0, "what an unjoined capture had recorded");
}

static void fork_merged(conf *t) {
    rondo_stream *a = conf_stream(t), *b = conf_stream(t);
    rondo_event *event = conf_event(t);
    rondo_graph *first = conf_graph(t), *second = conf_graph(t);
    char *memory = conf_memory(t, 64);
    conf_begin(t, first, a);
    conf_begin(t, second, b);
    conf_iota(t, a, memory, 8, 1);
    WANT_OK(t, rondo_event_record(event, a));
    WANT_CODE(t, rondo_event_wait(event, b), CAPTURE_MERGED);
    WANT(t,
         rondo_graph_get_state(first) == RONDO_GRAPH_INVALIDATED &&
             rondo_graph_get_state(second) == RONDO_GRAPH_INVALIDATED,
         "a wait across captures does not invalidate both");
    rondo_code one = conf_code(rondo_graph_capture_end(first, a)), two = conf_code(rondo_graph_capture_end(second, b));
    WANT(t,
         (one == RONDO_CODE_CAPTURE_INVALIDATED || one == RONDO_CODE_CAPTURE_MERGED) &&
             (two == RONDO_CODE_CAPTURE_INVALIDATED || two == RONDO_CODE_CAPTURE_MERGED),
         "merged captures end with '%s' and '%s'", rondo_code_name(one), rondo_code_name(two));
    conf_want_usable(t, a, "captures that met");
    conf_want_usable(t, b, "captures that met");
    conf_want64(t, a, memory, 8, 0, 0, "what merged captures had recorded");
}

static void fork_outside_event(conf *t) {
    rondo_stream *a = conf_stream(t), *b = conf_stream(t);
    rondo_event *event = conf_event(t);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 64);
    conf_iota(t, b, memory, 8, 1);
    WANT_OK(t, rondo_event_record(event, b));
    conf_begin(t, graph, a);
    rondo_status status = rondo_event_wait(event, a);
    WANT(t, rondo_status_layer(status) == RONDO_LAYER_CAPTURE, "the refusal comes from layer '%s'",
         rondo_layer_name(rondo_status_layer(status)));
    WANT_CODE(t, status, INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_capture_end(graph, a), CAPTURE_INVALIDATED);
    conf_want_usable(t, a, "a wait for an event from outside");
    conf_want64(t, b, memory, 8, 1, 1, "the stream outside");
}

static void fork_event_questions(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_event *event = conf_event(t);
    rondo_graph *graph = conf_graph(t);
    bool done;
    conf_begin(t, graph, stream);
    WANT_OK(t, rondo_event_record(event, stream));
    WANT_CODE(t, rondo_event_query(event, &done), INVALID_STATE);
    WANT_CODE(t, rondo_event_synchronize(event), INVALID_STATE);
    WANT_OK(t, rondo_graph_abort(graph));
    WANT_OK(t, rondo_event_record(event, stream));
    WANT_OK(t, rondo_event_synchronize(event));
    WANT_OK(t, rondo_event_query(event, &done));
    WANT(t, done, "an event that a capture had recorded does not come back");
}

static void fork_end_on_side(conf *t) {
    rondo_stream *a = conf_stream(t), *b = conf_stream(t);
    rondo_event *event = conf_event(t), *back = conf_event(t);
    rondo_graph *graph = conf_graph(t);
    char *memory = conf_memory(t, 64);
    conf_begin(t, graph, a);
    fork_to(t, event, a, b);
    conf_iota(t, b, memory, 8, 7);
    WANT_CODE(t, rondo_graph_capture_end(graph, b), INVALID_STATE);
    fork_to(t, back, b, a);
    conf_end(t, graph, a);
    conf_replay(t, graph, b);
    conf_want64(t, b, memory, 8, 7, 1, "a capture that its side stream tried to end");
}

/* However a capture with three streams is given up, all three are free. */
static void fork_given_up(conf *t) {
    rondo_stream *streams[3] = {conf_stream(t), conf_stream(t), conf_stream(t)};
    rondo_event *event = conf_event(t);
    char *memory = conf_memory(t, 64);
    for (int way = 0; way < 4; ++way) {
        rondo_graph *graph = conf_graph(t);
        WANT_OK(t, rondo_graph_capture_begin(graph, streams[0], no_pool, RONDO_CAPTURE_MODE_RELAXED));
        fork_to(t, event, streams[0], streams[1]);
        fork_to(t, event, streams[1], streams[2]);
        conf_iota(t, streams[2], memory, 8, 9);
        if (way == 0) WANT_OK(t, rondo_graph_abort(graph));
        if (way == 1) rondo_graph_reset(graph);
        if (way == 2) WANT_CODE(t, rondo_stream_synchronize(streams[2]), INVALID_STATE);
        if (way == 2) WANT_CODE(t, rondo_graph_capture_end(graph, streams[0]), CAPTURE_INVALIDATED);
        conf_drop(t, graph);
        for (int i = 0; i < 3; ++i) conf_want_usable(t, streams[i], "a capture of three streams that was given up");
    }
    conf_want64(t, streams[0], memory, 8, 0, 0, "what captures that were given up had recorded");
}

/* A node that fails on a side stream is told, once and by name, to who waits for the stream of the replay; what stands
 * behind the join does not run. */
static int32_t fork_failing_kernel(const void *context, const uint64_t *words) {
    (void)words;
    return __atomic_load_n((const int32_t *)context, __ATOMIC_SEQ_CST);
}

static void fork_failure(conf *t) {
    rondo_stream *a = conf_stream(t), *b = conf_stream(t);
    rondo_event *out = conf_event(t), *back = conf_event(t);
    rondo_graph *graph = conf_graph(t);
    int32_t *reason = conf_host(t, sizeof *reason);
    rondo_kernel kernel = {fork_failing_kernel, reason};
    rondo_argument none[] = {CONF_VALUE(0)};
    char *before = conf_memory(t, 64), *behind = conf_memory(t, 64), text[1024];
    conf_begin(t, graph, a);
    conf_iota(t, a, before, 8, 1);
    fork_to(t, out, a, b);
    WANT_OK(t, conf_launch(b, kernel, "fails_on_the_side", none, 1));
    fork_to(t, back, b, a);
    conf_iota(t, a, behind, 8, 2);
    conf_end(t, graph, a);
    for (int round = 0; round < 6; ++round) {
        bool fails = round % 3 != 1; /* twice in a row, too */
        *reason = fails ? 9 : 0;
        WANT_OK(t, rondo_stream_fill(a, before, 0, 64));
        WANT_OK(t, rondo_stream_fill(a, behind, 0, 64));
        conf_sync(t, a);
        rondo_code code = conf_failure_of(a, rondo_graph_replay(graph, a), text, sizeof text);
        WANT(t, code == (fails ? RONDO_CODE_KERNEL_FAILED : RONDO_CODE_OK), "round %d gave '%s'", round,
             rondo_code_name(code));
        WANT(t, !fails || strstr(text, "fails_on_the_side"), "the failure does not name its call: %s", text);
        conf_want64(t, a, before, 8, 1, 1, "what stands before a fork that fails");
        conf_want64(t, a, behind, 8, fails ? 0 : 2, fails ? 0 : 1, "what stands behind a join");
        conf_want_usable(t, b, "a stream of a fork that failed");
    }
}

/* ----------------------------------------------------------------------------------------------------- external */

static void external_record(conf *t) {
    rondo_stream *stream = conf_stream(t), *outside = conf_stream(t);
    rondo_event *event = conf_event(t), *read = conf_event(t);
    rondo_graph *graph = conf_graph(t);
    uint64_t *pinned = conf_pinned(t, 8);
    char *cell = conf_memory(t, 8), *out = conf_memory(t, 30 * 8);
    conf_begin(t, graph, stream);
    conf_spin(t, stream, 10000);
    conf_upload(t, stream, cell, pinned, 8);
    WANT_OK(t, rondo_event_record_external(event, stream));
    conf_end(t, graph, stream);
    for (uint64_t i = 0; i < 30; ++i) {
        conf_sync(t, stream);
        *pinned = 60 + i;
        WANT_OK(t, rondo_event_wait(read, stream));
        conf_replay(t, graph, stream);
        WANT_OK(t, rondo_event_wait(event, outside));
        conf_copy(t, outside, cell, out + i * 8, 8);
        WANT_OK(t, rondo_event_record(read, outside));
    }
    conf_want64(t, outside, out, 30, 60, 1, "a stream that waits for an event which replays record");
}

static void external_wait(conf *t) {
    rondo_stream *stream = conf_stream(t), *outside = conf_stream(t);
    rondo_event *event = conf_event(t), *read = conf_event(t);
    rondo_graph *graph = conf_graph(t);
    char *cell = conf_memory(t, 8), *slot = conf_memory(t, 8), *out = conf_memory(t, 30 * 8);
    WANT_OK(t, rondo_graph_declare_slot(graph, 0, slot, 8, RONDO_ACCESS_WRITE, RONDO_SLOT_REBIND));
    WANT_OK(t, rondo_event_record(event, outside));
    conf_begin(t, graph, stream);
    WANT_OK(t, rondo_event_wait_external(event, stream));
    conf_copy(t, stream, cell, slot, 8);
    conf_end(t, graph, stream);
    for (uint64_t i = 0; i < 30; ++i) {
        WANT_OK(t, rondo_event_wait(read, outside));
        conf_spin(t, outside, 10000);
        conf_iota(t, outside, cell, 1, 80 + i);
        WANT_OK(t, rondo_event_record(event, outside));
        WANT_OK(t, rondo_graph_bind(graph, 0, out + i * 8));
        conf_replay(t, graph, stream);
        WANT_OK(t, rondo_event_record(read, stream));
    }
    conf_want64(t, stream, out, 30, 80, 1, "replays that wait for an event from outside");
}

static void external_outside_a_capture(conf *t) {
    rondo_stream *a = conf_stream(t), *b = conf_stream(t);
    rondo_event *event = conf_event(t);
    char *x = conf_memory(t, 800), *y = conf_memory(t, 800);
    for (uint64_t i = 0; i < 20; ++i) {
        conf_spin(t, a, 10000);
        conf_iota(t, a, x, 100, i);
        WANT_OK(t, rondo_event_record_external(event, a));
        WANT_OK(t, rondo_event_wait_external(event, b));
        conf_copy(t, b, x, y, 800);
        conf_want64(t, b, y, 100, i, 1, "external forms outside a capture");
    }
}

#define FORK(name, what, function) \
    { {"fork." name, "fork event capture graph", what}, CONF_NEEDS_GRAPH, function }
static const conf_test tests[] = {
    FORK("simple", "A stream joins a capture by waiting for its event, and comes back the same way.", fork_simple),
    {{"fork.programs", "fork event capture graph random",
      "Random programs on four streams: eager run, replay and arithmetic agree."},
     CONF_NEEDS_GRAPH,
     fork_programs},
    FORK("nested", "A fork may fork, and be joined anywhere.", fork_nested),
    FORK("unjoined", "An end with an unjoined stream is CAPTURE_UNJOINED, and all is usable.", fork_unjoined),
    FORK("merged", "A wait across two captures is CAPTURE_MERGED and breaks both.", fork_merged),
    FORK("outside_event", "A capture does not wait for an event from outside.", fork_outside_event),
    FORK("event_questions", "An event of a capture cannot be asked or waited for by the host.", fork_event_questions),
    FORK("end_on_side", "A capture ends on the stream that began it.", fork_end_on_side),
    FORK("given_up", "However a capture of three streams is given up, all are free.", fork_given_up),
    {{"fork.failure", "fork event capture graph failure", "A failure on a side stream is told by the replay's stream."},
     CONF_NEEDS_GRAPH | CONF_NEEDS_HOST_KERNELS | CONF_NEEDS_STOP,
     fork_failure},
    FORK("external_record", "Replays record an event that others wait for.", external_record),
    FORK("external_wait", "Replays wait for an event that others record.", external_wait),
    {{"fork.external_plain", "fork event", "Outside a capture the external forms are the plain ones."},
     0,
     external_outside_a_capture},
};
CONF_SUITE(conf_suite_fork, tests);
