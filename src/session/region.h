/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs that depend on data: what runs between plans. */
#ifndef RONDO_SRC_SESSION_REGION_H
#define RONDO_SRC_SESSION_REGION_H

#include "compile/compile.h"
#include "session/session.h"
#include "session/value.h"

/* Regions and bodies inside each other, beyond which a graph is refused: each takes room on the stack. */
#define RONDO__REGION_DEPTH_MAX 512u

/* What of a specialisation is no plan. */
struct rondo__region {
    rondo__compile_cut *cut;
    rondo__session_graph *rest;    /* null: nothing */
    rondo__session_graph **bodies; /* of all steps, in order */
    rondo_value **constants;       /* an entry a constant of the cut */
    uint32_t body_count;
};

/* Runs a graph of any depth on host values. Writes an output for each of the graph's, for the caller to release. */
RONDO_MUST_USE rondo_status rondo__region_run(rondo_session *session, rondo__session_graph *graph,
                                              rondo_value *const *inputs, rondo_value **outputs);

/* A step with its inputs (null where absent). It writes outputs that are wanted, which are the caller's. */
typedef struct rondo__region_step {
    rondo_session *session;
    const rondo__compile_step *step;
    rondo__session_graph *const *bodies; /* of the step */
    rondo_value *const *const *captured; /* an entry a body */
    rondo_value *const *inputs;
    rondo_value **outputs;
    const rondo_ir_graph *graph; /* whose registered operators it may name */
} rondo__region_step;

/* Failures are of layer input, and say what; the caller adds the node. */
RONDO_MUST_USE rondo_status rondo__region_step_run(const rondo__region_step *s);
/* ---- control.c: If, Loop, Scan, SequenceMap */
RONDO_MUST_USE rondo_status rondo__region_if(const rondo__region_step *s);
RONDO_MUST_USE rondo_status rondo__region_loop(const rondo__region_step *s);
RONDO_MUST_USE rondo_status rondo__region_scan(const rondo__region_step *s);
RONDO_MUST_USE rondo_status rondo__region_map(const rondo__region_step *s);
/* ---- hosted.c: sequences and optionals; *out_known false: it is no such operator */
RONDO_MUST_USE rondo_status rondo__region_hosted(const rondo__region_step *s, bool *out_known);

/* An attribute of the step, or what it is without. */
int64_t rondo__region_int(const rondo__region_step *s, const char *name, int64_t otherwise);
/* One whole number, or one bool, of a tensor; false when it is none. */
bool rondo__region_number(const rondo_value *value, int64_t *out_number);

#endif
