/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiler without an instance: a graph, catalogues and options in; a concrete graph and a plan out. The public
 * rondo_compile looks the catalogues up and calls this. */
#ifndef RONDO_SRC_COMPILE_COMPILE_H
#define RONDO_SRC_COMPILE_COMPILE_H

#include "base/arena.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "plan/plan.h"

/* Where a node may run: a list of catalogues, best first, of which a device has the kernels. */
typedef struct rondo__target {
    const char *text;      /* "ref:Add,Neg" or "cpu,ref" */
    const char *operators; /* "Add,Neg": it runs these alone; null: all that its catalogues take */
    rondo__kernel_set kernels;
} rondo__target;

/* In order of preference. */
typedef struct rondo__targets {
    rondo__target at[RONDO__PLAN_TARGETS_MAX];
    uint32_t count;
    const char *text; /* of all */
} rondo__targets;

/* As rondo__compile below. With several targets each node goes to the first that has a kernel for it. */
RONDO_MUST_USE rondo_status rondo__compile_for(const rondo_allocator *allocator, const rondo__targets *targets,
                                               const rondo__kernel_set *folder, const rondo_ir_graph *graph,
                                               const rondo_compile_options *options, rondo_ir_graph **out_compiled,
                                               rondo_plan **out_plan);
/* As rondo_compile. `kernels`: where the plan's kernels are looked for, best first. `folder`: host kernels that
 * evaluate what is constant ("ref"). `target` is written into the plan. options may be null. The results keep a
 * reference to `graph`, whose constants they share. */
RONDO_MUST_USE rondo_status rondo__compile(const rondo_allocator *allocator, const rondo__kernel_set *kernels,
                                           const rondo__kernel_set *folder, const char *target,
                                           const rondo_ir_graph *graph, const rondo_compile_options *options,
                                           rondo_ir_graph **out_compiled, rondo_plan **out_plan);

/* ------------------------------------------------------------------------------------------------------ regions
 *
 * A graph in which something depends on data is cut: what can be compiled becomes a plan, the nodes that wait for nothing
 * but the plan become *steps* that somebody does between plans, and what needs their results is the *rest*, a graph of
 * its own that is compiled, and cut, when they are there. */

/* What an input will be; `hosted`: a sequence or an optional, which no plan sees. */
typedef struct rondo__compile_input {
    rondo_dtype dtype;
    int32_t rank;
    const int64_t *dims;
    bool hosted;
} rondo__compile_input;

/* Where a value of a cut graph comes from: a place of one of these kinds. */
typedef uint32_t rondo__compile_slot;
enum {
    RONDO__COMPILE_FROM_INPUT = 0,
    RONDO__COMPILE_FROM_PLAN = 1, /* an output of the plan */
    RONDO__COMPILE_FROM_STEP = 2,
    RONDO__COMPILE_FROM_REST = 3, /* an output of the rest */
    RONDO__COMPILE_FROM_CONSTANT = 4
};
#define RONDO__COMPILE_SLOT(kind, index) ((rondo__compile_slot)(kind) << 28 | (index))
#define RONDO__COMPILE_SLOT_KIND(slot) ((slot) >> 28)
#define RONDO__COMPILE_SLOT_INDEX(slot) ((slot) & 0x0fffffffu)
#define RONDO__COMPILE_SLOT_NONE UINT32_MAX /* absent, or not wanted */

/* A graph of a step's: a branch or a body. Behind its own inputs it has what it takes from around it. */
typedef struct rondo__compile_body {
    const char *attribute; /* "then_branch" */
    rondo_ir_graph *graph;
    const rondo__compile_slot *captured;
    uint32_t captured_count;
} rondo__compile_body;

typedef struct rondo__compile_step {
    const char *operator_name, *name;
    const char *why;                   /* it is no part of the plan: a sentence */
    const rondo_attribute *attributes; /* without the graphs */
    const rondo__compile_slot *inputs, *outputs;
    const rondo__compile_body *bodies;
    uint32_t attribute_count, input_count, output_count, body_count;
} rondo__compile_step;

typedef struct rondo__compile_cut {
    rondo_allocator allocator;
    rondo__arena arena;    /* all arrays below */
    rondo_ir_graph *holds; /* the constants, and the names of steps */
    rondo_ir_graph *rest;  /* null: nothing is left after the steps */
    const rondo__compile_step *steps;
    const rondo__compile_slot *rest_inputs, *outputs; /* an entry an input of the rest; an output of the graph */
    const rondo__ir_constant *const *constants;
    uint32_t step_count, step_values, rest_input_count, output_count, constant_count;
} rondo__compile_cut;

/* As rondo__compile, but what depends on data is cut off. `inputs` has an entry for each input of the graph, and then sizes of
 * the options are not looked at; null: as the options say. *out_cut is null when nothing was cut off; *out_plan is null
 * when nothing was left for it. The cut is freed with rondo__compile_cut_free, which takes null. */
RONDO_MUST_USE rondo_status rondo__compile_regions(const rondo_allocator *allocator, const rondo__kernel_set *kernels,
                                                   const rondo__kernel_set *folder, const char *target,
                                                   const rondo_ir_graph *graph, const rondo_compile_options *options,
                                                   const rondo__compile_input *inputs, rondo_plan **out_plan,
                                                   rondo__compile_cut **out_cut);
void rondo__compile_cut_free(rondo__compile_cut *cut);

#endif
