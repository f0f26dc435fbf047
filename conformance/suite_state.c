/* SPDX-License-Identifier: Apache-2.0
 *
 * States x calls: every cell of the table in docs/graph.md, each on a graph that was brought there anew. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"

enum { S_EMPTY, S_CAPTURING, S_INVALIDATED, S_CAPTURED, S_READY, S_READY_KEPT, STATE_COUNT };
enum {
    C_DECLARE,
    C_BEGIN,
    C_END,
    C_ABORT,
    C_INSTANTIATE,
    C_REPLAY,
    C_BIND,
    C_UPDATE,
    C_DEBUG,
    C_DUMP,
    C_RESET,
    C_POOL,
    C_INFO,
    C_RECORD,
    CALL_COUNT
};

static const struct {
    const char *name;
    rondo_graph_state state;
} state_names[STATE_COUNT] = {
    {"empty", RONDO_GRAPH_EMPTY},       {"capturing", RONDO_GRAPH_CAPTURING}, {"invalidated", RONDO_GRAPH_INVALIDATED},
    {"captured", RONDO_GRAPH_CAPTURED}, {"ready", RONDO_GRAPH_READY},         {"ready (keep_graph)", RONDO_GRAPH_READY},
};

/* The code that a call gives, and the state that it leaves: */
enum {
    N = 0, /* INVALID_STATE, no change */
    E,     /* ok, empty */
    P,     /* ok, capturing */
    R,     /* ok, ready */
    S,     /* ok, no change */
    X,     /* CAPTURE_INVALIDATED, empty */
    V,     /* CAPTURE_INVALIDATED, no change */
    O      /* ok: not the graph's, the stream runs it */
};
static const struct {
    const char *name;
    uint8_t cells[STATE_COUNT];
} state_table[CALL_COUNT] = {
    /* clang-format off */
    /*                               empty capt. inval. captured ready ready (keep_graph) */
    [C_DECLARE]     = {"declare_slot",      {S, N, N, N, N, N}},
    [C_BEGIN]       = {"capture_begin",     {P, N, N, N, N, N}},
    [C_END]         = {"capture_end",       {N, R, X, N, N, N}},
    [C_ABORT]       = {"abort",             {N, E, E, N, N, N}},
    [C_INSTANTIATE] = {"instantiate",       {N, N, N, R, N, S}},
    [C_REPLAY]      = {"replay",            {N, N, N, R, S, S}},
    [C_BIND]        = {"bind",              {N, N, N, N, S, S}},
    [C_UPDATE]      = {"update",            {N, N, N, N, S, S}},
    [C_DEBUG]       = {"enable_debug_mode", {S, N, N, N, N, N}},
    [C_DUMP]        = {"debug_dump",        {N, N, N, S, S, S}},
    [C_RESET]       = {"reset",             {S, E, E, E, E, E}},
    [C_POOL]        = {"pool",              {N, N, N, S, S, S}},
    [C_INFO]        = {"get_info",          {N, N, N, S, S, S}},
    [C_RECORD]      = {"work on the stream", {O, S, V, O, O, O}},
    /* clang-format on */
};

typedef struct state_bed {
    rondo_stream *stream, *other;
    rondo_graph *graph;
    char *slot, *elsewhere;
    char path[64];
} state_bed;

static void state_record(conf *t, const state_bed *bed) { conf_iota(t, bed->stream, bed->slot, 8, 70); }

/* Debug mode is on, so that a dump depends on the state alone. */
static void state_bring(conf *t, state_bed *bed, int state) {
    bool kept = state == S_CAPTURED || state == S_READY_KEPT;
    bed->graph = kept ? conf_graph_kept(t) : conf_graph(t);
    WANT_OK(t, rondo_graph_enable_debug_mode(bed->graph));
    WANT_OK(t, rondo_graph_declare_slot(bed->graph, 0, bed->slot, 64, RONDO_ACCESS_WRITE, RONDO_SLOT_REBIND));
    if (state == S_EMPTY) return;
    conf_begin(t, bed->graph, bed->stream);
    state_record(t, bed);
    if (state == S_INVALIDATED) WANT_CODE(t, rondo_stream_synchronize(bed->stream), INVALID_STATE);
    if (state >= S_CAPTURED) conf_end(t, bed->graph, bed->stream);
    if (state == S_READY_KEPT) WANT_OK(t, rondo_graph_instantiate(bed->graph));
}

static rondo_status state_call(conf *t, state_bed *bed, int call) {
    rondo_argument arguments[] = {CONF_WRITE(bed->slot, 64), CONF_VALUE(8), CONF_VALUE(71)};
    rondo_pool_id pool = {0, 0};
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    switch (call) {
    case C_DECLARE:
        return rondo_graph_declare_slot(bed->graph, 1, bed->elsewhere, 64, RONDO_ACCESS_READ, RONDO_SLOT_COPY);
    case C_BEGIN: return rondo_graph_capture_begin(bed->graph, bed->stream, pool, RONDO_CAPTURE_MODE_GLOBAL);
    case C_END: return rondo_graph_capture_end(bed->graph, bed->stream);
    case C_ABORT: return rondo_graph_abort(bed->graph);
    case C_INSTANTIATE: return rondo_graph_instantiate(bed->graph);
    case C_REPLAY: return rondo_graph_replay(bed->graph, bed->other);
    case C_BIND: return rondo_graph_bind(bed->graph, 0, bed->elsewhere);
    case C_UPDATE: return rondo_graph_update(bed->graph, 0, arguments, 3);
    case C_DEBUG: return rondo_graph_enable_debug_mode(bed->graph);
    case C_DUMP: return rondo_graph_debug_dump(bed->graph, bed->path);
    case C_RESET: rondo_graph_reset(bed->graph); return RONDO_OK;
    case C_POOL: return rondo_graph_pool(bed->graph, &pool);
    case C_INFO: return rondo_graph_get_info(bed->graph, &info);
    default: return conf_launch(bed->stream, conf_kernel(t, CONF_IOTA), "iota", arguments, 3);
    }
}

static void state_cell(conf *t, state_bed *bed, int state, int call) {
    static const rondo_code codes[] = {[N] = RONDO_CODE_INVALID_STATE,
                                       [X] = RONDO_CODE_CAPTURE_INVALIDATED,
                                       [V] = RONDO_CODE_CAPTURE_INVALIDATED,
                                       [O] = RONDO_CODE_OK};
    uint8_t cell = state_table[call].cells[state];
    rondo_graph_state wanted = state_names[state].state;
    state_bring(t, bed, state);
    WANT(t, rondo_graph_get_state(bed->graph) == wanted, "a graph cannot be brought to %s", state_names[state].name);
    rondo_status status = state_call(t, bed, call);
    rondo_code code = rondo_status_code(status);
    rondo_layer layer = rondo_status_layer(status);
    rondo_status_release(status);
    if (cell == E || cell == X) wanted = RONDO_GRAPH_EMPTY;
    if (cell == P) wanted = RONDO_GRAPH_CAPTURING;
    if (cell == R) wanted = RONDO_GRAPH_READY;
    WANT(t, code == codes[cell], "%s in %s gives '%s', not '%s'", state_table[call].name, state_names[state].name,
         rondo_code_name(code), rondo_code_name(codes[cell]));
    WANT(t, !code || layer == RONDO_LAYER_CAPTURE, "%s in %s is refused by layer '%s'", state_table[call].name,
         state_names[state].name, rondo_layer_name(layer));
    WANT(t, rondo_graph_get_state(bed->graph) == wanted, "%s in %s leaves state %d, not %d", state_table[call].name,
         state_names[state].name, (int)rondo_graph_get_state(bed->graph), (int)wanted);
}

/* Wherever the call left it: the graph can be used, the stream is free. */
static void state_use_again(conf *t, state_bed *bed, int state, int call) {
    char what[96];
    snprintf(what, sizeof what, "%s in %s, then a new capture", state_table[call].name, state_names[state].name);
    rondo_graph_reset(bed->graph);
    conf_begin(t, bed->graph, bed->stream);
    conf_iota(t, bed->stream, bed->slot, 8, 90);
    conf_end(t, bed->graph, bed->stream);
    conf_replay(t, bed->graph, bed->other);
    conf_want64(t, bed->other, bed->slot, 8, 90, 1, what);
    conf_sync(t, bed->stream);
    conf_drop(t, bed->graph);
}

static void state_every_cell(conf *t) {
    state_bed bed = {
        .stream = conf_stream(t), .other = conf_stream(t), .slot = conf_memory(t, 64), .elsewhere = conf_memory(t, 64)};
    snprintf(bed.path, sizeof bed.path, "/tmp/rondo-conformance-%ld.txt", (long)getpid());
    for (int call = 0; call < CALL_COUNT; ++call) {
        for (int state = 0; state < STATE_COUNT; ++state) {
            state_cell(t, &bed, state, call);
            (void)remove(bed.path);
            state_use_again(t, &bed, state, call);
        }
    }
}

/* A refused call changes nothing: the capture, or the finished graph, is as if it had not been made. */
static void state_refusals_change_nothing(conf *t) {
    state_bed bed = {
        .stream = conf_stream(t), .other = conf_stream(t), .slot = conf_memory(t, 64), .elsewhere = conf_memory(t, 64)};
    snprintf(bed.path, sizeof bed.path, "/tmp/rondo-conformance-%ld.txt", (long)getpid());
    for (int state = S_CAPTURING; state < STATE_COUNT; ++state) {
        if (state == S_INVALIDATED) continue;
        state_bring(t, &bed, state);
        for (int call = 0; call < CALL_COUNT; ++call)
            if (state_table[call].cells[state] == N) WANT_CODE(t, state_call(t, &bed, call), INVALID_STATE);
        if (state == S_CAPTURING) conf_end(t, bed.graph, bed.stream);
        WANT_OK(t, rondo_stream_fill(bed.other, bed.slot, 0, 64));
        conf_replay(t, bed.graph, bed.other);
        conf_want64(t, bed.other, bed.slot, 8, 70, 1, "a graph that refused every wrong call");
        conf_drop(t, bed.graph);
    }
}

static void state_null(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_graph *graph = conf_graph(t);
    rondo_pool_id pool = {0, 0};
    WANT_CODE(t, rondo_graph_create(NULL, NULL, &graph), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_create(t->device, NULL, NULL), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_declare_slot(NULL, 0, &pool, 8, 1, 0), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_capture_end(NULL, stream), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_capture_end(graph, NULL), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_abort(NULL), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_instantiate(NULL), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_replay(NULL, stream), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_replay(graph, NULL), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_bind(NULL, 0, &pool), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_update(NULL, 0, NULL, 0), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_enable_debug_mode(NULL), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_debug_dump(NULL, "x.txt"), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_pool(NULL, &pool), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_graph_get_info(NULL, NULL), INVALID_ARGUMENT);
    rondo_graph_reset(NULL);
    rondo_graph_release(NULL);
    WANT(t, rondo_graph_get_state(NULL) == RONDO_GRAPH_EMPTY, "no graph has a state");
}

static const conf_test tests[] = {
    {{"state.every_cell", "state graph capture",
      "Every call in every state answers and leaves what the table says; afterwards all is usable."},
     CONF_NEEDS_GRAPH,
     state_every_cell},
    {{"state.refusals", "state graph capture", "A call that the state refuses changes nothing."},
     CONF_NEEDS_GRAPH,
     state_refusals_change_nothing},
    {{"state.null", "state graph", "Null is refused by every call on a graph."}, CONF_NEEDS_GRAPH, state_null},
};
CONF_SUITE(conf_suite_state, tests);
