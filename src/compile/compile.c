/* SPDX-License-Identifier: Apache-2.0
 *
 * The pass manager: runs the passes of a pipeline, repeats those that clean up, and tells what each did. */
#include "compile/compile.h"

#include <string.h>

#include "base/sized.h"
#include "compile/pass.h"

/* Scratch of one compilation. */
#define COMPILE_ARENA_MAX ((size_t)1 << 36)
/* Each round is linear in the graph; what still changes after so many is good enough as it is. */
#define COMPILE_ROUNDS_MAX 8u

/* What is dead or unused is left behind; from here on the graph is as the caller may see it. */
rondo_status rondo__compile_compact(rondo__compile_state *state) {
    rondo_ir_graph *compact = NULL;
    RONDO__TRY(rondo__ir_clone(state->graph, true, &compact));
    rondo_ir_graph_release(state->graph);
    state->graph = compact;
    return RONDO_OK;
}

static void compile_tell(const rondo__compile_state *state, const rondo__compile_pass_row *row, uint32_t index,
                         size_t remarks, uint64_t ns) {
    rondo_pass_report report = {.struct_size = sizeof report, .index = index, .name = row->name, .ns = ns};
    for (size_t n = 0; n < state->graph->nodes.count; n++) {
        report.nodes += !rondo__ir_node_at(state->graph, (rondo_ir_node)n)->dead;
    }
    report.graph = state->graph;
    report.changes = state->changes;
    report.remark_count = (uint32_t)(state->remarks.count - remarks);
    report.remarks = report.remark_count ? RONDO__BUFFER_AT(&state->remarks, const char *const, remarks) : NULL;
    state->options.after_pass(state->options.user, &report);
}

static rondo_status compile_pass(rondo__compile_state *state, const rondo__compile_pass_row *row, uint32_t *index) {
    size_t remarks = state->remarks.count;
    uint64_t begin = state->options.after_pass ? rondo__now_ns() : 0;
    state->changes = 0;
    RONDO__TRY_NOTE(row->run(state), "while compiling '%s', in pass '%s'", state->source->name, row->name);
    /* What specialise leaves has values and no nodes yet. */
    if (state->options.flags & RONDO_COMPILE_VERIFY && row->run != rondo__compile_specialise) {
        RONDO__TRY_NOTE(rondo__ir_verify(state->graph), "while compiling '%s', after pass '%s'", state->source->name,
                        row->name);
    }
    if (state->options.after_pass) compile_tell(state, row, *index, remarks, rondo__now_ns() - begin);
    ++*index;
    return RONDO_OK;
}

/* Everything was cut off: there is nothing to make a plan of. */
static bool compile_is_empty(const rondo__compile_state *state) {
    return state->cut && state->graph->outputs.count == 0;
}

static rondo_status compile_run(rondo__compile_state *state, const rondo__compile_pipeline *pipeline,
                                bool plan_wanted) {
    uint32_t index = 0, rounds = 1;
    bool changed = false;
    RONDO__TRY(rondo__ir_verify(state->source));
    for (size_t i = 0; i < pipeline->passes.count; i++) {
        const rondo__compile_pass_row *row = *RONDO__BUFFER_AT(&pipeline->passes, const rondo__compile_pass_row *, i);
        if (row->run == rondo__compile_emit && (!plan_wanted || compile_is_empty(state))) continue;
        RONDO__TRY(compile_pass(state, row, &index));
        bool repeated = i >= pipeline->repeat_from && i < pipeline->repeat_to;
        /* Whatever is dead is gone for all passes already. */
        changed = changed || (repeated && state->changes > 0 && row->run != rondo__compile_dead);
        if (!repeated || i + 1 < pipeline->repeat_to || !changed || rounds == COMPILE_ROUNDS_MAX) continue;
        i = pipeline->repeat_from - 1u; /* specialise and resolve come before */
        changed = false;
        rounds++;
    }
    return RONDO_OK;
}

static rondo_status compile_options(const rondo_compile_options *given, rondo_compile_options *out) {
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    uint32_t known = RONDO_COMPILE_NO_FUSION | RONDO_COMPILE_NO_FOLDING | RONDO_COMPILE_NO_REUSE |
                     RONDO_COMPILE_EXPLAIN | RONDO_COMPILE_VERIFY;
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_NONE, "rondo_compile_options", given, &options, sizeof options));
    if (options.flags & ~known) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_compile_options: unknown flags %#x", options.flags & ~known);
    }
    if (options.level < RONDO_COMPILE_LEVEL_DEFAULT || options.level > RONDO_COMPILE_O3) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_compile_options: there is no level %d", options.level);
    }
    if ((options.dim_count > 0 && !options.dims) || (options.value_count > 0 && !options.values)) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_compile_options: sizes or values are counted but null");
    }
    if (options.lanes > RONDO__PLAN_LANES_MAX) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_compile_options: %u lanes; a plan has at most %u",
                           options.lanes, RONDO__PLAN_LANES_MAX);
    }
    if (options.level == RONDO_COMPILE_O0) options.flags |= RONDO_COMPILE_NO_REUSE;
    *out = options;
    return RONDO_OK;
}

static rondo_status compile_with(rondo__compile_state *state, rondo_ir_graph **out_compiled, rondo_plan **out_plan) {
    rondo__compile_pipeline pipeline;
    rondo_status status = rondo__compile_pipeline_make(&state->allocator, &state->options, &pipeline);
    if (!pipeline.folds) state->options.flags |= RONDO_COMPILE_NO_FOLDING;
    if (!status) status = compile_run(state, &pipeline, out_plan != NULL);
    rondo__compile_pipeline_deinit(&pipeline);
    if (!status && out_compiled) {
        *out_compiled = state->graph;
        state->graph = NULL;
    }
    if (!status && out_plan) {
        *out_plan = state->plan;
        state->plan = NULL;
    }
    return status;
}

static rondo_status compile_whole(rondo__compile_state *state, const rondo_compile_options *options,
                                  rondo_ir_graph **out_compiled, rondo_plan **out_plan) {
    RONDO__TRY(compile_options(options, &state->options));
    rondo__arena_init(&state->arena, &state->allocator, COMPILE_ARENA_MAX);
    rondo__buffer_init(&state->remarks, &state->allocator, sizeof(const char *), 1u << 20);
    rondo_status status = compile_with(state, out_compiled, out_plan);
    rondo_plan_release(state->plan);
    rondo_ir_graph_release(state->graph);
    rondo__buffer_deinit(&state->remarks);
    rondo__arena_deinit(&state->arena);
    return status;
}

rondo_status rondo__compile(const rondo_allocator *allocator, const rondo__kernel_set *kernels,
                            const rondo__kernel_set *folder, const char *target, const rondo_ir_graph *graph,
                            const rondo_compile_options *options, rondo_ir_graph **out_compiled,
                            rondo_plan **out_plan) {
    rondo__targets targets = {.at = {{target, NULL, *kernels}}, .count = 1, .text = target};
    return rondo__compile_for(allocator, &targets, folder, graph, options, out_compiled, out_plan);
}

rondo_status rondo__compile_for(const rondo_allocator *allocator, const rondo__targets *targets,
                                const rondo__kernel_set *folder, const rondo_ir_graph *graph,
                                const rondo_compile_options *options, rondo_ir_graph **out_compiled,
                                rondo_plan **out_plan) {
    rondo__compile_state state = {.allocator = *allocator, .targets = targets, .folder = folder, .source = graph};
    return compile_whole(&state, options, out_compiled, out_plan);
}

rondo_status rondo__compile_regions(const rondo_allocator *allocator, const rondo__kernel_set *kernels,
                                    const rondo__kernel_set *folder, const char *target, const rondo_ir_graph *graph,
                                    const rondo_compile_options *options, const rondo__compile_input *inputs,
                                    rondo_plan **out_plan, rondo__compile_cut **out_cut) {
    rondo__targets targets = {.at = {{target, NULL, *kernels}}, .count = 1, .text = target};
    rondo__compile_state state = {.allocator = *allocator,
                                  .targets = &targets,
                                  .folder = folder,
                                  .source = graph,
                                  .inputs = inputs,
                                  .cuts = true};
    *out_plan = NULL;
    rondo_status status = compile_whole(&state, options, NULL, out_plan);
    if (status) rondo__compile_cut_free(state.cut);
    else *out_cut = state.cut;
    return status;
}
