/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan: the relocatable program where compiler and runtime meet. Plain data, immutable once sealed.
 *
 * A plan is concrete: every size is a number, and guards say for which sizes and values it was made. Steps name a
 * kernel by what it must do (operator, attributes, operands) and the catalogue that accepted it; addresses are buffers,
 * which the executable and the context turn into memory. The program is cut into segments, joined by host steps; one
 * segment is the good case. Everything a plan points to lives in its arena.
 */
#ifndef RONDO_SRC_PLAN_PLAN_H
#define RONDO_SRC_PLAN_PLAN_H

#include <rondo/compiler.h>
#include <rondo/plugin.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/thread.h"

#define RONDO__PLAN_NONE UINT32_MAX
#define RONDO__PLAN_LANES_MAX 16u
#define RONDO__PLAN_TARGETS_MAX 8u
/* The operator of a step that is no kernel: it brings its input, which is in the memory of another target, to its own. */
#define RONDO__PLAN_TRANSFER "rondo.transfer"
/* A string attribute of steps from an offline file: the bytes that a custom operator wrote there for itself. */
#define RONDO__PLAN_OWN "rondo.own"

typedef int32_t rondo__plan_buffer_kind;
enum {
    RONDO__PLAN_INPUT = 0,     /* bound by the user: slot = index among the inputs */
    RONDO__PLAN_OUTPUT = 1,    /* bound by the user: slot = index among the outputs */
    RONDO__PLAN_TEMPORARY = 2, /* in the arena, at offset */
    RONDO__PLAN_CONSTANT = 3   /* data in the plan; copied to the device once an executable */
};

typedef struct rondo__plan_buffer {
    const char *name;
    rondo__plan_buffer_kind kind;
    uint32_t slot; /* of inputs and outputs */
    uint64_t bytes;
    uint64_t offset;                /* of temporaries, aligned to 64 */
    const void *data;               /* of constants; null when no step needs it at run time (all uses absorbed) */
    uint32_t first_step, last_step; /* life of temporaries: defined at first, last used at last */
    uint32_t target;                /* of temporaries: whose arena; inputs and outputs are in the memory of target 0 */
} rondo__plan_buffer;

/* An operand of a step: which bytes, described how. Views of one buffer are operands with their own dims. */
typedef struct rondo__plan_operand {
    uint32_t buffer; /* RONDO__PLAN_NONE: absent */
    rondo_dtype dtype;
    int32_t rank;
    rondo_format format;
    const int64_t *dims;
    uint64_t offset; /* bytes into the buffer */
    uint64_t bytes;
    const void *constant; /* value known when the plan was made: kernels may read it in find, pack and prepare */
} rondo__plan_operand;

typedef struct rondo__plan_step {
    const char *operator_name;
    const char *node_name;
    const char *catalogue;
    const char *variant; /* what the catalogue said; static text of the catalogue or arena */
    const rondo__plan_operand *inputs;
    const rondo__plan_operand *outputs;
    const rondo_attribute *attributes;
    uint32_t input_count, output_count, attribute_count;
    uint64_t absorbed_inputs;
    uint64_t packed_bytes;
    uint64_t scratch_bytes;
    uint64_t scratch_offset; /* in the arena */
    uint32_t lane;           /* steps of a lane run in their order; lane 0 begins and ends the run */
    uint32_t segment;
    uint32_t wait_count; /* events of other lanes to wait for before the step */
    const uint32_t *waits;
    uint32_t record; /* event recorded after the step, or RONDO__PLAN_NONE */
    /* The packed block, made earlier, and the tag of the kernel set that it was packed for. Null: the executable packs.
     * Aligned to 64 bytes. */
    const void *packed;
    const char *packed_set;
} rondo__plan_step;

/* What runs segments, each a device when the plan runs. */
typedef struct rondo__plan_target {
    const char *name; /* "cpu,ref": its catalogues */
    uint64_t arena_bytes, arena_lower_bound;
} rondo__plan_target;

/* What this plan was made for: the run's input must have exactly this. */
typedef struct rondo__plan_guard {
    uint32_t input;
    uint32_t has_value; /* 0: shape only, which every input has anyway. 1: also the bytes of the value */
    const void *value;
    uint64_t bytes;
} rondo__plan_guard;

typedef struct rondo__plan_port {
    const char *name;
    rondo_dtype dtype;
    int32_t rank;
    const int64_t *dims;
    uint64_t bytes;
    uint32_t buffer; /* RONDO__PLAN_NONE: an input that no step reads; outputs always have one */
} rondo__plan_port;

struct rondo_plan {
    rondo__ref_count references;
    rondo_allocator allocator;
    rondo__arena arena;
    rondo_ir_graph
        *keeps; /* whose constants the plan points to, retained; may be null. Only the pointer is known here */
    void (*keeps_release)(rondo_ir_graph *graph);
    struct rondo__artifact *file; /* the offline file that the plan points into; null: it was compiled here */
    void (*file_release)(struct rondo__artifact *file);
    const char *name;
    const char *target; /* "cpu,ref" */
    rondo__plan_buffer *buffers;
    rondo__plan_step *steps;
    rondo__plan_guard *guards;
    rondo__plan_port *inputs;
    rondo__plan_port *outputs;
    const char **remarks;
    uint32_t buffer_count, step_count, guard_count, input_count, output_count, remark_count;
    uint32_t segment_count, lane_count, event_count, nodes_in;
    rondo__plan_target *targets; /* null with one target */
    uint32_t *segment_targets;   /* one a segment; null with one target */
    uint32_t target_count;       /* 0 or 1: one */
    uint64_t arena_bytes; /* temporaries and scratch, without overlap of what lives at the same time; of all targets */
    uint64_t arena_lower_bound; /* peak of live bytes: what no plan can beat */
    uint64_t constant_bytes;
};

/* An empty plan with one reference. */
RONDO_MUST_USE rondo_status rondo__plan_create(const rondo_allocator *allocator, const char *name, rondo_plan **out);
/* Ranges, overlaps of live temporaries, definitions before uses, alignment, guards: INTERNAL when it does not hold for
 * a plan of our own compiler, CORRUPT for one from a file (`from_file`). */
RONDO_MUST_USE rondo_status rondo__plan_verify(const rondo_plan *plan, bool from_file);
/* The request of a step: points into the plan, plus operand arrays that the caller gives (input_count and output_count
 * of the step). */
void rondo__plan_request(const rondo__plan_step *step, rondo_operand *inputs, rondo_operand *outputs,
                         rondo_kernel_request *out_request);
static inline uint32_t rondo__plan_target_count(const rondo_plan *plan) {
    return plan->target_count > 1 ? plan->target_count : 1u;
}
static inline uint32_t rondo__plan_target_of(const rondo_plan *plan, const rondo__plan_step *step) {
    return plan->target_count > 1 ? plan->segment_targets[step->segment] : 0;
}
static inline uint64_t rondo__plan_arena_of(const rondo_plan *plan, uint32_t target) {
    return plan->target_count > 1 ? plan->targets[target].arena_bytes : plan->arena_bytes;
}
bool rondo__plan_is_transfer(const rondo__plan_step *step);
/* Number of words of the step's call, in the order that plugin.h states. */
uint32_t rondo__plan_word_count(const rondo__plan_step *step);

#endif
