/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two halves of the pass share: the walk (resolve.c) and what is cut off it (resolve_cut.c). */
#ifndef RONDO_SRC_COMPILE_PASSES_RESOLVE_H
#define RONDO_SRC_COMPILE_PASSES_RESOLVE_H

#include "compile/pass.h"

/* Rests on folding that was switched off: known to conditions and shapes, not put into the graph. */
#define RONDO__RESOLVE_UNFOLDED (UINT64_C(1) << 63)
/* What rests on a given input is followed only while it is small. */
#define RONDO__RESOLVE_TENTATIVE_MAX 4096u

enum { RONDO__RESOLVE_FIXED = 0, RONDO__RESOLVE_FROM_SMALL_INPUT = 1, RONDO__RESOLVE_FROM_DATA = 2 };

typedef struct rondo__resolve_known {
    const rondo__ir_constant *constant; /* null: not known */
    uint64_t rests_on;                  /* bindings; RONDO__RESOLVE_UNFOLDED */
    rondo_ir_value copy;                /* as a constant of the graph, or RONDO_IR_NONE */
    uint32_t origin;                    /* an input whose data it is made of, for messages */
    uint8_t from;                       /* RONDO__RESOLVE_* */
    bool late;                          /* made between plans, or after that */
    bool hosted;                        /* an input that is no tensor */
    rondo_ir_value rest;                /* in the rest, or RONDO_IR_NONE */
    uint32_t slot;                      /* rondo__compile_slot, once it has one */
} rondo__resolve_known;

typedef struct rondo__resolve_frame {
    const rondo_ir_graph *graph;       /* the source or one of its branches */
    rondo_ir_value *map;               /* its values in the graph under work */
    size_t next;                       /* node */
    const rondo__ir_node_data *around; /* the If whose branch it is; null for the source */
    uint32_t *begins;                  /* where the nodes made for each of its nodes begin; null: no control edges */
} rondo__resolve_frame;

typedef struct rondo__resolve {
    rondo__compile_state *state;
    rondo_ir_graph *graph;
    rondo__buffer known;  /* resolve_known, one a value of the graph */
    rondo__buffer frames; /* resolve_frame */
    rondo__compile_request request;
    rondo__buffer late; /* rondo__resolve_late */
    uint64_t needed;    /* bindings that became guards */
} rondo__resolve;

/* A node that is no part of the plan. */
typedef struct rondo__resolve_late {
    const rondo__ir_node_data *from;
    const rondo_ir_graph *graph;            /* whose node it is */
    const rondo_ir_value *map;              /* that graph's values in the graph under work */
    const rondo_ir_value *inputs, *outputs; /* in the graph under work */
    const char *why;                        /* null: it needs what others of these make */
} rondo__resolve_late;

static inline rondo__resolve_known rondo__resolve_constant(const rondo__ir_constant *constant) {
    return (rondo__resolve_known){.constant = constant,
                                  .copy = RONDO_IR_NONE,
                                  .origin = UINT32_MAX,
                                  .from = RONDO__RESOLVE_FIXED,
                                  .rest = RONDO_IR_NONE,
                                  .slot = RONDO__COMPILE_SLOT_NONE};
}
/* What is known of a value of the graph under work. */
static inline rondo__resolve_known *rondo__resolve_at(const rondo__resolve *r, rondo_ir_value value) {
    return RONDO__BUFFER_AT(&r->known, rondo__resolve_known, value);
}
/* Nothing that could change is behind what is known of it. */
static inline bool rondo__resolve_is_firm(const rondo__resolve *r, const rondo__resolve_known *known) {
    return known->constant && (known->rests_on & ~r->needed) == 0;
}
/* Entries for values that were added since. */
RONDO_MUST_USE rondo_status rondo__resolve_extend(rondo__resolve *r);
/* A value of the frame's graph in the graph under work. A branch may look several levels out. */
RONDO_MUST_USE rondo_status rondo__resolve_map(rondo__resolve *r, size_t depth, rondo_ir_value value,
                                               rondo_ir_value *out_value);
/* Values of the graph under work for the outputs of a node of the innermost frame. */
RONDO_MUST_USE rondo_status rondo__resolve_outputs(rondo__resolve *r, size_t depth, const rondo__ir_node_data *from,
                                                   rondo_ir_value *outputs);

/* ---- resolve_cut.c */

/* Whether the node, or a graph of its own, needs what is only there between plans. */
RONDO_MUST_USE rondo_status rondo__resolve_is_late(rondo__resolve *r, const rondo__ir_node_data *from,
                                                   const rondo_ir_value *inputs, bool *out_late);
/* Leaves the node out of the graph under work; what it makes is late. With `why` it is a step, else part of the rest.
 * `inputs` stay where they are; outputs null: they are made now. */
RONDO_MUST_USE rondo_status rondo__resolve_leave(rondo__resolve *r, const rondo__ir_node_data *from,
                                                 const rondo_ir_value *inputs, const rondo_ir_value *outputs,
                                                 const char *why);
/* The walk is over: the cut, and the graph under work with those outputs that the cut needs. */
RONDO_MUST_USE rondo_status rondo__resolve_cut(rondo__resolve *r, const rondo__resolve_frame *source);

#endif
