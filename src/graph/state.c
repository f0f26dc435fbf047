/* SPDX-License-Identifier: Apache-2.0
 *
 * One table, state x call, is the whole behaviour of a graph: what is legal when, and what to do where it is not. */
#include "graph/graph.h"

enum { GRAPH_NO = 0, GRAPH_GO = 1, GRAPH_KEEP = 2 /* with keep_graph */ };

static const struct graph_row {
    const char *name;
    uint8_t cells[RONDO__GRAPH_STATE_COUNT];
} graph_table[RONDO__GRAPH_CALL_COUNT] = {
    /* clang-format off */
    /*                                                        empty     capturing invalid.  captured  ready    */
    [RONDO__GRAPH_DECLARE_SLOT]  = {"declare_slot",          {GRAPH_GO, GRAPH_NO, GRAPH_NO, GRAPH_NO, GRAPH_NO}},
    [RONDO__GRAPH_CAPTURE_BEGIN] = {"capture_begin",         {GRAPH_GO, GRAPH_NO, GRAPH_NO, GRAPH_NO, GRAPH_NO}},
    [RONDO__GRAPH_CAPTURE_END]   = {"capture_end",           {GRAPH_NO, GRAPH_GO, GRAPH_GO, GRAPH_NO, GRAPH_NO}},
    [RONDO__GRAPH_ABORT]         = {"abort",                 {GRAPH_NO, GRAPH_GO, GRAPH_GO, GRAPH_NO, GRAPH_NO}},
    [RONDO__GRAPH_INSTANTIATE]   = {"instantiate",           {GRAPH_NO, GRAPH_NO, GRAPH_NO, GRAPH_GO, GRAPH_KEEP}},
    [RONDO__GRAPH_REPLAY]        = {"replay",                {GRAPH_NO, GRAPH_NO, GRAPH_NO, GRAPH_GO, GRAPH_GO}},
    [RONDO__GRAPH_BIND]          = {"bind",                  {GRAPH_NO, GRAPH_NO, GRAPH_NO, GRAPH_NO, GRAPH_GO}},
    [RONDO__GRAPH_UPDATE]        = {"update",                {GRAPH_NO, GRAPH_NO, GRAPH_NO, GRAPH_NO, GRAPH_GO}},
    [RONDO__GRAPH_ENABLE_DEBUG]  = {"enable_debug_mode",     {GRAPH_GO, GRAPH_NO, GRAPH_NO, GRAPH_NO, GRAPH_NO}},
    [RONDO__GRAPH_DEBUG_DUMP]    = {"debug_dump",            {GRAPH_NO, GRAPH_NO, GRAPH_NO, GRAPH_GO, GRAPH_GO}},
    [RONDO__GRAPH_RESET]         = {"reset",                 {GRAPH_GO, GRAPH_GO, GRAPH_GO, GRAPH_GO, GRAPH_GO}},
    [RONDO__GRAPH_POOL]          = {"pool",                  {GRAPH_NO, GRAPH_NO, GRAPH_NO, GRAPH_GO, GRAPH_GO}},
    [RONDO__GRAPH_INFO]          = {"get_info",              {GRAPH_NO, GRAPH_NO, GRAPH_NO, GRAPH_GO, GRAPH_GO}},
    [RONDO__GRAPH_RECORD]        = {"record",                {GRAPH_NO, GRAPH_GO, GRAPH_NO, GRAPH_NO, GRAPH_NO}},
    /* clang-format on */
};

static const struct graph_state_row {
    const char *name;
    const char *advice;
} graph_states[RONDO__GRAPH_STATE_COUNT] = {
    [RONDO_GRAPH_EMPTY] = {"empty", "nothing was captured: capture first"},
    [RONDO_GRAPH_CAPTURING] = {"capturing", "a capture is in progress: end or abort it first"},
    [RONDO_GRAPH_INVALIDATED] = {"invalidated", "an illegal call broke the capture: end or abort it first"},
    [RONDO_GRAPH_CAPTURED] = {"captured", "it is not instantiated: call rondo_graph_instantiate, or reset it first"},
    [RONDO_GRAPH_READY] = {"ready", "it holds a capture: reset it, or use another graph"},
};

bool rondo__graph_legal(rondo_graph_state state, rondo__graph_call call, bool keep_graph) {
    uint8_t cell = graph_table[call].cells[state];
    return cell == GRAPH_GO || (cell == GRAPH_KEEP && keep_graph);
}

const char *rondo__graph_state_name(rondo_graph_state state) {
    return state >= 0 && state < RONDO__GRAPH_STATE_COUNT ? graph_states[state].name : "unknown";
}

rondo_status rondo__graph_check(const rondo_graph *graph, rondo__graph_call call) {
    rondo_graph_state state = rondo__graph_state_of(graph);
    if (rondo__graph_legal(state, call, graph->keep_graph)) return RONDO_OK;
    const char *advice = call == RONDO__GRAPH_INSTANTIATE && state == RONDO_GRAPH_READY
                             ? "capture_end made it ready; only a graph with keep_graph is instantiated again"
                             : graph_states[state].advice;
    return RONDO__FAIL(INVALID_STATE, CAPTURE, "graph '%s': %s is not legal while it is %s: %s", graph->name,
                       graph_table[call].name, graph_states[state].name, advice);
}
