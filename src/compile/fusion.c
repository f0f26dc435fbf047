/* SPDX-License-Identifier: Apache-2.0
 *
 * Which operators are fused into which: the table that the fusing passes read, and the report of what an operator that
 * nobody can see into keeps apart. */
#include <string.h>

#include "compile/pass.h"

#define FUSION_NAMES_MAX 10u

typedef struct fusion_pattern {
    const char *what;                     /* of the second node, as the remark calls it */
    const char *first[FUSION_NAMES_MAX];  /* operators whose kernels take it in */
    const char *second[FUSION_NAMES_MAX]; /* operators that are taken in */
} fusion_pattern;

static const fusion_pattern fusion_patterns[] = {
    [RONDO__COMPILE_FUSION_BIAS] = {"bias", {"Conv", "Gemm", "MatMul"}, {"Add"}},
    [RONDO__COMPILE_FUSION_ACTIVATION] = {"activation",
                                          {"Conv", "Gemm", "MatMul", "Add"},
                                          {"Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid", "HardSwish",
                                           "Gelu"}},
};

static bool fusion_has(const char *const *names, const char *name) {
    for (uint32_t i = 0; i < FUSION_NAMES_MAX && names[i]; i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

bool rondo__compile_fusion_first(rondo__compile_fusion fusion, const rondo__ir_node_data *node) {
    return fusion_has(fusion_patterns[fusion].first, node->operator_name);
}

bool rondo__compile_fusion_second(rondo__compile_fusion fusion, const rondo__ir_node_data *node) {
    return fusion_has(fusion_patterns[fusion].second, node->operator_name);
}

rondo_status rondo__compile_fusion_stopped(rondo__compile_state *state, rondo__compile_fusion fusion,
                                           const rondo__ir_node_data *first, const rondo__ir_node_data *second) {
    const rondo_ir_graph *graph = state->graph;
    const rondo__ops_prototype *prototype = rondo__ops_lookup(graph, first->operator_name);
    const rondo__ir_node_data *behind = NULL;
    if (!prototype || !prototype->registered) return RONDO_OK;
    for (uint32_t i = 0; i < first->input_count && !behind; i++) {
        if (first->inputs[i] == RONDO_IR_NONE) continue;
        rondo_ir_node maker = rondo__ir_value_at(graph, first->inputs[i])->producer;
        if (maker == RONDO_IR_NONE) continue;
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, maker);
        if (!node->dead && rondo__compile_fusion_first(fusion, node)) behind = node;
    }
    return rondo__compile_remark(
        state, "node '%s' (%s): not fused as %s: '%s' before it is opaque (operator %s)%s%s%s%s%s", second->name,
        second->operator_name, fusion_patterns[fusion].what, first->name, first->operator_name,
        behind ? ", and keeps it from '" : "", behind ? behind->name : "", behind ? "' (" : "",
        behind ? behind->operator_name : "", behind ? ")" : "");
}
