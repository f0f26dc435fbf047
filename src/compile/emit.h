/* SPDX-License-Identifier: Apache-2.0
 *
 * From the finished graph to a plan, in six moves: which target runs what (emit_partition.c), where values lie
 * (emit_storage.c), which steps there are and who runs them (emit_steps.c), in which lanes (emit_streams.c), where storages lie in the arena (emit_memory.c), and writing
 * it down (emit.c). Private to this room.
 *
 * A storage is a piece of memory of its own: an input, a constant, or what a step makes. A value lies in one storage at
 * an offset; values that are views of each other share one. */
#ifndef RONDO_SRC_COMPILE_EMIT_H
#define RONDO_SRC_COMPILE_EMIT_H

#include <string.h>

#include "compile/pass.h"
#include "compile/plan_streams.h"

typedef int32_t rondo__emit_kind;
enum { RONDO__EMIT_UNUSED = 0, RONDO__EMIT_INPUT, RONDO__EMIT_CONSTANT, RONDO__EMIT_OUTPUT, RONDO__EMIT_TEMPORARY };

enum {
    RONDO__EMIT_NODE_RUNS = 0, /* a step */
    RONDO__EMIT_NODE_VIEW = 1, /* its outputs are pieces of its first input */
    RONDO__EMIT_NODE_PARTS = 2 /* a Concat whose inputs are made where they belong */
};

/* One a value. The first two members say where the value lies; the rest holds for a value that is its own root. */
typedef struct rondo__emit_value {
    rondo_ir_value root;
    uint64_t offset; /* into the root's storage */
    rondo__emit_kind kind;
    uint32_t slot;        /* of inputs and outputs */
    uint32_t buffer;      /* in the plan */
    uint32_t first, last; /* steps that use it; first > last: none */
    uint32_t target;      /* in whose memory it is, of temporaries */
    uint64_t arena;       /* offset in the arena, of temporaries */
    uint32_t chain;       /* root that it shares memory with by running in place; itself at first */
    bool read;            /* a step needs the bytes of this constant when it runs */
    bool is_output;       /* some graph output lies in it */
    bool placed;          /* is part of another storage */
} rondo__emit_value;

/* A node, or a copy of one value. */
typedef struct rondo__emit_step {
    rondo__ir_node_data node; /* operands are values of the graph; of a copy: Identity */
    rondo_ir_value copy_into; /* of a copy that writes a piece of a storage: that root, else RONDO_IR_NONE */
    uint64_t copy_offset;
    uint32_t copy_output; /* of a copy for graph output i: i, else RONDO__PLAN_NONE */
    rondo__compile_choice choice;
    uint64_t scratch_offset;
    rondo_ir_node from; /* RONDO_IR_NONE: it is a copy */
    uint32_t segment;
} rondo__emit_step;

typedef struct rondo__emit {
    rondo__compile_state *state;
    rondo_ir_graph *graph;
    rondo__emit_value *values;
    uint8_t *nodes;                /* RONDO__EMIT_NODE_*, one a node */
    rondo_ir_value *output_copies; /* for each graph output: RONDO_IR_NONE when made in place, else the value to copy */
    rondo__buffer steps;           /* rondo__emit_step */
    rondo__compile_request request;
    rondo__streams streams;
    rondo__streams_step *lanes;               /* one a step */
    uint32_t segment_count, *segment_targets; /* null with one target, as the next two */
    uint32_t *node_order, *node_segments;
    uint64_t arena_bytes[RONDO__PLAN_TARGETS_MAX], arena_bound[RONDO__PLAN_TARGETS_MAX];
} rondo__emit;

static inline rondo__emit_step *rondo__emit_step_at(const rondo__emit *e, size_t index) {
    return RONDO__BUFFER_AT(&e->steps, rondo__emit_step, index);
}
/* The storage's root and the value's offset in it. */
rondo_ir_value rondo__emit_root(const rondo__emit *e, rondo_ir_value value, uint64_t *out_offset);
static inline uint32_t rondo__emit_target(const rondo__emit *e, const rondo__emit_step *step) {
    return e->segment_targets ? e->segment_targets[step->segment] : 0;
}
/* Whether the step is the copy of one value, and no node. */
static inline bool rondo__emit_is_copy(const rondo__emit_step *step) {
    return step->copy_into != RONDO_IR_NONE || step->copy_output != RONDO__PLAN_NONE;
}
static inline bool rondo__emit_is_transfer(const rondo__emit_step *step) {
    return strcmp(step->node.operator_name, RONDO__PLAN_TRANSFER) == 0;
}
/* Whether the value is all of its storage. */
bool rondo__emit_is_whole(const rondo__emit *e, rondo_ir_value value);

rondo_status rondo__emit_partition(rondo__emit *e);
rondo_status rondo__emit_storages(rondo__emit *e);
rondo_status rondo__emit_steps(rondo__emit *e);
rondo_status rondo__emit_streams(rondo__emit *e);
rondo_status rondo__emit_memory(rondo__emit *e);
rondo_status rondo__emit_write(rondo__emit *e, rondo_plan **out_plan);

#endif
