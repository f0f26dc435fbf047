/* SPDX-License-Identifier: Apache-2.0
 *
 * The pass manager: the passes in their order, and which options leave one out. */
#include "compile/compile.h"

#include <string.h>

#include "base/sized.h"
#include "compile/pass.h"

/* Scratch of one compilation. */
#define COMPILE_ARENA_MAX ((size_t)1 << 36)

typedef struct compile_pass {
    const char *name;
    rondo__compile_pass run;
    uint32_t unless; /* left out with one of these flags */
    uint32_t only_for_plan;
} compile_pass;

static const compile_pass compile_passes[] = {
    {"specialise", rondo__compile_specialise, 0, 0},
    {"resolve", rondo__compile_resolve, 0, 0},
    {"dead", rondo__compile_dead, 0, 0},
    {"simplify", rondo__compile_simplify, 0, 0},
    {"duplicates", rondo__compile_duplicates, 0, 0},
    {"fuse bias", rondo__compile_fuse_bias, RONDO_COMPILE_NO_FUSION, 0},
    {"fuse activation", rondo__compile_fuse_activation, RONDO_COMPILE_NO_FUSION, 0},
    {"dead", rondo__compile_dead, 0, 0},
    {"compact", rondo__compile_compact, 0, 0},
    {"emit", rondo__compile_emit, 0, 1},
};

/* What is dead or unused is left behind; from here on the graph is as the caller may see it. */
rondo_status rondo__compile_compact(rondo__compile_state *state) {
    rondo_ir_graph *compact = NULL;
    RONDO__TRY(rondo__ir_clone(state->graph, true, &compact));
    rondo_ir_graph_release(state->graph);
    state->graph = compact;
    return RONDO_OK;
}

static rondo_status compile_run(rondo__compile_state *state, bool plan_wanted) {
    RONDO__TRY(rondo__ir_verify(state->source));
    for (size_t i = 0; i < sizeof compile_passes / sizeof *compile_passes; i++) {
        const compile_pass *pass = &compile_passes[i];
        if (state->options.flags & pass->unless || (pass->only_for_plan && !plan_wanted)) continue;
        RONDO__TRY_NOTE(pass->run(state), "while compiling '%s', in pass '%s'", state->source->name, pass->name);
    }
    return RONDO_OK;
}

static rondo_status compile_options(const rondo_compile_options *given, rondo_compile_options *out) {
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    uint32_t known = RONDO_COMPILE_NO_FUSION | RONDO_COMPILE_NO_FOLDING | RONDO_COMPILE_NO_REUSE;
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_NONE, "rondo_compile_options", given, &options, sizeof options));
    if (options.flags & ~known) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_compile_options: unknown flags %#x", options.flags & ~known);
    }
    if ((options.dim_count > 0 && !options.dims) || (options.value_count > 0 && !options.values)) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_compile_options: sizes or values are counted but null");
    }
    *out = options;
    return RONDO_OK;
}

rondo_status rondo__compile(const rondo_allocator *allocator, const rondo__kernel_set *kernels,
                            const rondo__kernel_set *folder, const char *target, const rondo_ir_graph *graph,
                            const rondo_compile_options *options, rondo_ir_graph **out_compiled,
                            rondo_plan **out_plan) {
    rondo__compile_state state = {
        .allocator = *allocator, .kernels = kernels, .folder = folder, .target = target, .source = graph};
    RONDO__TRY(compile_options(options, &state.options));
    rondo__arena_init(&state.arena, allocator, COMPILE_ARENA_MAX);
    rondo__buffer_init(&state.remarks, allocator, sizeof(const char *), 1u << 20);
    rondo_status status = compile_run(&state, out_plan != NULL);
    if (!status && out_compiled) {
        *out_compiled = state.graph;
        state.graph = NULL;
    }
    if (!status && out_plan) {
        *out_plan = state.plan;
        state.plan = NULL;
    }
    rondo_plan_release(state.plan);
    rondo_ir_graph_release(state.graph);
    rondo__buffer_deinit(&state.remarks);
    rondo__arena_deinit(&state.arena);
    return status;
}
