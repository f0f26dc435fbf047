/* SPDX-License-Identifier: Apache-2.0
 *
 * What the passes of one compilation share. Private to this room.
 *
 * The graph under work is made by `specialise` and `resolve`; from then on every type is concrete, every value is an
 * input, a constant or made by a node, and nodes stand in an order in which values are made before they are used. */
#ifndef RONDO_SRC_COMPILE_PASS_H
#define RONDO_SRC_COMPILE_PASS_H

#include "base/arena.h"
#include "base/buffer.h"
#include "compile/compile.h"
#include "ops/ops.h"

/* Larger values of inputs are not used for conditions and shapes. */
#define RONDO__COMPILE_VALUE_MAX 1024u
/* Inputs whose values are given, beyond which further values are not used: each has a bit in a word. */
#define RONDO__COMPILE_BINDINGS_MAX 62u

/* The value of an input that the caller gave, and whether something needed it: then it is a guard of the plan. */
typedef struct rondo__compile_binding {
    uint32_t input;
    bool needed;
    const rondo__ir_constant *constant;
} rondo__compile_binding;

typedef struct rondo__compile_state {
    rondo_allocator allocator;
    const rondo__targets *targets;
    const rondo__kernel_set *folder;
    const rondo_ir_graph *source;
    rondo_compile_options options;
    rondo_ir_graph *graph; /* under work */
    rondo__arena arena;    /* of this compilation */
    rondo__buffer remarks; /* const char *, in the arena */
    rondo__compile_binding bindings[RONDO__COMPILE_BINDINGS_MAX];
    uint32_t binding_count;
    const rondo__compile_input *inputs; /* what the inputs will be; null: as the options say */
    bool cuts;                          /* what depends on data is cut off, and not refused */
    rondo__compile_cut *cut;            /* made by resolve when it had to cut */
    rondo_plan *plan;                   /* made by emit */
    uint32_t changes;                   /* of the pass that runs, so far */
} rondo__compile_state;

typedef rondo_status (*rondo__compile_pass)(rondo__compile_state *state);

/* In the order of the table in pipeline.c. */
rondo_status rondo__compile_specialise(rondo__compile_state *state);
rondo_status rondo__compile_resolve(rondo__compile_state *state);
rondo_status rondo__compile_fold(rondo__compile_state *state);
rondo_status rondo__compile_simplify(rondo__compile_state *state);
rondo_status rondo__compile_algebra(rondo__compile_state *state);
rondo_status rondo__compile_casts(rondo__compile_state *state);
rondo_status rondo__compile_transposes(rondo__compile_state *state);
rondo_status rondo__compile_reshapes(rondo__compile_state *state);
rondo_status rondo__compile_patterns(rondo__compile_state *state);
rondo_status rondo__compile_duplicates(rondo__compile_state *state);
rondo_status rondo__compile_fuse_bias(rondo__compile_state *state);
rondo_status rondo__compile_fuse_activation(rondo__compile_state *state);
rondo_status rondo__compile_dead(rondo__compile_state *state);
rondo_status rondo__compile_compact(rondo__compile_state *state);
rondo_status rondo__compile_emit(rondo__compile_state *state);

/* ---------------------------------------------------------------------------------------------------- pipeline */

typedef struct rondo__compile_pass_row {
    const char *name;
    const char *summary;
    rondo__compile_pass run;
    int32_t level; /* RONDO_COMPILE_O0: it must run */
    bool cleans;   /* belongs to the passes that are repeated as long as one of them changes something */
} rondo__compile_pass_row;

/* Which passes run, in which order. Those of [repeat_from, repeat_to) again and again, until none changes anything. */
typedef struct rondo__compile_pipeline {
    rondo__buffer passes; /* const rondo__compile_pass_row * */
    size_t repeat_from, repeat_to;
    bool folds; /* what is constant is worked out */
} rondo__compile_pipeline;

/* Null past the end. */
const rondo__compile_pass_row *rondo__compile_pass_at(uint32_t index);
/* From the options. INVALID_ARGUMENT: a name that there is not, listing all; one that must run. */
RONDO_MUST_USE rondo_status rondo__compile_pipeline_make(const rondo_allocator *allocator,
                                                         const rondo_compile_options *options,
                                                         rondo__compile_pipeline *out_pipeline);
void rondo__compile_pipeline_deinit(rondo__compile_pipeline *pipeline);

/* ------------------------------------------------------------------------------------------- shared by passes */

rondo_status rondo__compile_remark(rondo__compile_state *state, const char *format, ...) RONDO_PRINTF(2, 3);
/* Counts a change; its reason becomes a remark when somebody asked for all of them. */
rondo_status rondo__compile_changed(rondo__compile_state *state, const char *format, ...) RONDO_PRINTF(2, 3);

/* A kernel request made of a node, with room that is used again for the next one. */
typedef struct rondo__compile_request {
    rondo__buffer operands; /* rondo_operand: inputs, then outputs */
    rondo__buffer dims;     /* int64_t[RONDO_RANK_MAX] each */
    rondo_operand *inputs, *outputs;
    int64_t (*output_dims)[RONDO_RANK_MAX];
    rondo_kernel_request request;
} rondo__compile_request;

void rondo__compile_request_init(rondo__compile_request *request, const rondo_allocator *allocator);
void rondo__compile_request_deinit(rondo__compile_request *request);
/* The operands are those of the node's values, constants included; every type must be concrete. */
RONDO_MUST_USE rondo_status rondo__compile_request_make(rondo__compile_request *request, const rondo_ir_graph *graph,
                                                        const rondo__ir_node_data *node);

/* Uses of each value by live nodes and as graph outputs; in the compilation's arena. */
RONDO_MUST_USE rondo_status rondo__compile_count_uses(rondo__compile_state *state, uint32_t **out_uses);
/* An identity map over the graph's values, for rondo__ir_values_replace; in the compilation's arena. */
RONDO_MUST_USE rondo_status rondo__compile_identity_map(rondo__compile_state *state, rondo_ir_value **out_map);

/* Concrete sizes of a value; its rank. */
int32_t rondo__compile_dims(const rondo_ir_graph *graph, rondo_ir_value value, int64_t *dims);
uint64_t rondo__compile_bytes(const rondo_ir_graph *graph, rondo_ir_value value);
bool rondo__compile_same_dims(const rondo_ir_graph *graph, rondo_ir_value a, rondo_ir_value b);

/* Runs the node on constant inputs and writes into `constants` what its outputs are; *out_done is false when the folder
 * has no kernel for it, its kernel failed, or the result is too large to be worth it. */
RONDO_MUST_USE rondo_status rondo__compile_evaluate(rondo__compile_state *state, const rondo__compile_request *request,
                                                    const rondo__ir_constant **constants, bool *out_done);

/* The same for an operator that tells the sizes of its outputs: they are those of the constants. */
RONDO_MUST_USE rondo_status rondo__compile_evaluate_sized(rondo__compile_state *state,
                                                          const rondo__compile_request *request,
                                                          const rondo__ir_constant **constants, bool *out_done);

/* Where the bytes of an output already are: output `output` of the node is `bytes` bytes of the value `source` from
 * byte `offset` on. False when a kernel must make them. */
typedef struct rondo__compile_view {
    rondo_ir_value source;
    uint64_t offset;
} rondo__compile_view;
bool rondo__compile_view_of(const rondo_ir_graph *graph, const rondo__ir_node_data *node, uint32_t output,
                            rondo__compile_view *out_view);

/* Who makes a node's outputs: the first catalogue of the first target that accepts it, by its place in the order of
 * preference. */
typedef struct rondo__compile_choice {
    rondo_catalogue catalogue;
    rondo_kernel_facts facts;
    uint32_t preference;
    uint32_t target;
} rondo__compile_choice;
/* The same among the catalogues of one target; with `anything` whatever operators it is meant for. */
RONDO_MUST_USE rondo_status rondo__compile_choose_on(rondo__compile_state *state, rondo__compile_request *request,
                                                     const rondo__ir_node_data *node, uint32_t target, bool anything,
                                                     rondo__compile_choice *out_choice);
RONDO_MUST_USE rondo_status rondo__compile_choose(rondo__compile_state *state, rondo__compile_request *request,
                                                  const rondo__ir_node_data *node, rondo__compile_choice *out_choice);
/* Whether `after` has a kernel from a catalogue at least as good as that of `before`. */
RONDO_MUST_USE rondo_status rondo__compile_prefers(rondo__compile_state *state, rondo__compile_request *request,
                                                   const rondo__ir_node_data *before, const rondo__ir_node_data *after,
                                                   bool *out_prefers);
/* The table of what is fused into what (fusion.c). */
typedef int32_t rondo__compile_fusion;
enum { RONDO__COMPILE_FUSION_BIAS = 0, RONDO__COMPILE_FUSION_ACTIVATION = 1 };
/* Whether the operator is one whose kernels take another in, or one that is taken in. */
bool rondo__compile_fusion_first(rondo__compile_fusion fusion, const rondo__ir_node_data *node);
bool rondo__compile_fusion_second(rondo__compile_fusion fusion, const rondo__ir_node_data *node);
/* Remarks on it when `second` could be fused, but comes after an operator that a program registered. */
rondo_status rondo__compile_fusion_stopped(rondo__compile_state *state, rondo__compile_fusion fusion,
                                           const rondo__ir_node_data *first, const rondo__ir_node_data *second);
/* Puts `fused` in the place of `node`, whose only output it takes from `absorbed`, which dies. Arrays are copied. */
RONDO_MUST_USE rondo_status rondo__compile_absorb(rondo__compile_state *state, rondo_ir_node node,
                                                  rondo_ir_node absorbed, const rondo__ir_node_data *fused);

#endif
