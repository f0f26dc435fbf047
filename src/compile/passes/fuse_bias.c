/* SPDX-License-Identifier: Apache-2.0
 *
 * A constant added to what Gemm, MatMul or Conv gives becomes its bias, when a kernel takes it. */
#include <string.h>

#include "compile/pass.h"

typedef struct fuse_bias {
    rondo__compile_state *state;
    rondo_ir_graph *graph;
    uint32_t *uses;
    rondo__compile_request request;
} fuse_bias;

/* How the constant must lie to be that operator's bias: as it is, or as a list of `length`. */
static bool fuse_bias_shape(const fuse_bias *f, const rondo__ir_node_data *node, rondo_ir_value sum,
                            const rondo__ir_constant *bias, int64_t *out_length) {
    int64_t dims[RONDO_RANK_MAX];
    int32_t rank = rondo__compile_dims(f->graph, sum, dims);
    int64_t elements = (int64_t)(bias->bytes / (rondo_dtype_bits(bias->dtype) / 8u));
    *out_length = 0;
    if (strcmp(node->operator_name, "Gemm") == 0) return node->input_count == 2 || node->inputs[2] == RONDO_IR_NONE;
    if (strcmp(node->operator_name, "MatMul") == 0) {
        if (node->input_count != 2 || rank < 2) return false;
        for (uint32_t i = 0; i < 2; i++) {
            if (rondo__ir_value_at(f->graph, node->inputs[i])->type.rank < 2) return false;
        }
        if (elements != 1 && (elements != dims[rank - 1] || bias->dims[bias->rank - 1] != elements)) return false;
        *out_length = elements;
        return true;
    }
    if (strcmp(node->operator_name, "Conv") == 0) {
        if (node->input_count > 2 && node->inputs[2] != RONDO_IR_NONE) return false;
        /* Only the axis of the channels may differ from 1. */
        int32_t channel = bias->rank - (rank - 1);
        if (rank < 3 || channel < 0 || bias->dims[channel] != dims[1] || elements != dims[1]) return false;
        *out_length = elements;
        return true;
    }
    return false;
}

static rondo_status fuse_bias_value(fuse_bias *f, rondo_ir_value constant, int64_t length, rondo_ir_value *out_value) {
    const rondo__ir_constant *c = rondo__ir_value_at(f->graph, constant)->constant, *list = NULL;
    rondo__ir_type type;
    *out_value = constant;
    if (length == 0 || (c->rank == 1 && c->dims[0] == length)) return RONDO_OK;
    RONDO__TRY(rondo__ir_constant_make(f->graph, c->dtype, 1, &length, c->data, false, &list));
    RONDO__TRY(rondo__ir_type_from_dims(f->graph, c->dtype, 1, &length, &type));
    RONDO__TRY(rondo__ir_value_add(f->graph, NULL, rondo__ir_value_at(f->graph, constant)->name, &type, out_value));
    rondo__ir_value_at(f->graph, *out_value)->constant = list;
    return RONDO_OK;
}

/* Input `side` of the Add is what is made, the other is the constant. */
static rondo_status fuse_bias_try(fuse_bias *f, rondo_ir_node add, uint32_t side, bool *out_done) {
    rondo_ir_graph *graph = f->graph;
    const rondo__ir_node_data *node = rondo__ir_node_at(graph, add);
    rondo_ir_value made = node->inputs[side], constant = node->inputs[1 - side];
    if (made == RONDO_IR_NONE || constant == RONDO_IR_NONE) return RONDO_OK;
    rondo_ir_node producer = rondo__ir_value_at(graph, made)->producer;
    const rondo__ir_constant *bias = rondo__ir_value_at(graph, constant)->constant;
    int64_t length = 0;
    if (producer == RONDO_IR_NONE || !bias || bias->bytes == 0 || f->uses[made] != 1) return RONDO_OK;
    rondo__ir_node_data before = *rondo__ir_node_at(graph, producer);
    if (rondo__ir_node_held(node) || rondo__ir_node_held(&before)) return RONDO_OK;
    if (!rondo__compile_fusion_first(RONDO__COMPILE_FUSION_BIAS, &before)) {
        return rondo__compile_fusion_stopped(f->state, RONDO__COMPILE_FUSION_BIAS, &before, node);
    }
    if (before.dead || before.output_count != 1 || rondo__ir_attribute_find(&before, "rondo.activation") ||
        (bias->dtype != RONDO_DTYPE_F32 && bias->dtype != RONDO_DTYPE_F64) ||
        !rondo__compile_same_dims(graph, made, node->outputs[0]) || !fuse_bias_shape(f, &before, made, bias, &length)) {
        return RONDO_OK;
    }
    const rondo_attribute *beta = rondo__ir_attribute_find(&before, "beta");
    if (beta && (beta->kind != RONDO_ATTRIBUTE_FLOAT || beta->value.f < 1.0f || beta->value.f > 1.0f)) return RONDO_OK;
    rondo__ir_node_data after = before;
    rondo_ir_value inputs[3] = {before.inputs[0], before.inputs[1], RONDO_IR_NONE};
    rondo_ir_value output = node->outputs[0];
    const char *name = node->name;
    RONDO__TRY(fuse_bias_value(f, constant, length, &inputs[2]));
    after.inputs = inputs;
    after.input_count = 3;
    after.outputs = &output;
    RONDO__TRY(rondo__compile_prefers(f->state, &f->request, &before, &after, out_done));
    if (!*out_done) return RONDO_OK;
    RONDO__TRY(rondo__compile_absorb(f->state, producer, add, &after));
    f->state->changes++;
    return rondo__compile_remark(f->state, "node '%s': bias of '%s' fused", before.name, name);
}

static rondo_status fuse_bias_run(fuse_bias *f) {
    RONDO__TRY(rondo__compile_count_uses(f->state, &f->uses));
    for (size_t n = 0; n < f->graph->nodes.count; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(f->graph, (rondo_ir_node)n);
        if (node->dead || !rondo__compile_fusion_second(RONDO__COMPILE_FUSION_BIAS, node) || node->input_count != 2 ||
            node->output_count != 1 || node->attribute_count != 0) {
            continue;
        }
        bool done = false;
        RONDO__TRY(fuse_bias_try(f, (rondo_ir_node)n, 0, &done));
        if (!done) RONDO__TRY(fuse_bias_try(f, (rondo_ir_node)n, 1, &done));
    }
    return RONDO_OK;
}

rondo_status rondo__compile_fuse_bias(rondo__compile_state *state) {
    fuse_bias f = {.state = state, .graph = state->graph};
    rondo__compile_request_init(&f.request, &state->allocator);
    rondo_status status = fuse_bias_run(&f);
    rondo__compile_request_deinit(&f.request);
    return status;
}
