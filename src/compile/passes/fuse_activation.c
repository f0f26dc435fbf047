/* SPDX-License-Identifier: Apache-2.0
 *
 * An activation that is the only use of what Conv, Gemm, MatMul or Add gives is done by that node's kernel, when there
 * is one that does: the values are still in registers. */
#include <math.h>
#include <string.h>

#include "compile/pass.h"

#define FUSE_ACTIVATION_ATTRIBUTES 3u

typedef struct fuse_activation {
    rondo__compile_state *state;
    rondo_ir_graph *graph;
    uint32_t *uses;
    rondo__compile_request request;
} fuse_activation;

static rondo_attribute fuse_activation_float(const char *name, float value) {
    rondo_attribute a = {.name = name, .kind = RONDO_ATTRIBUTE_FLOAT, .count = 1};
    a.value.f = value;
    return a;
}

/* A bound of Clip; false when it is not one known float. */
static bool fuse_activation_bound(const fuse_activation *f, const rondo__ir_node_data *node, uint32_t input,
                                  float otherwise, float *out) {
    *out = otherwise;
    if (input >= node->input_count || node->inputs[input] == RONDO_IR_NONE) return true;
    const rondo__ir_constant *c = rondo__ir_value_at(f->graph, node->inputs[input])->constant;
    if (!c || c->dtype != RONDO_DTYPE_F32 || c->bytes != sizeof(float)) return false;
    memcpy(out, c->data, sizeof *out);
    return true;
}

/* The attributes that say what the node does; their number, 0 when it is no activation that can be fused. */
static uint32_t fuse_activation_describe(const fuse_activation *f, const rondo__ir_node_data *node,
                                         rondo_attribute *attributes) {
    const char *name = node->operator_name;
    if (!rondo__compile_fusion_second(RONDO__COMPILE_FUSION_ACTIVATION, node)) return 0;
    attributes[0] = (rondo_attribute){.name = "rondo.activation", .kind = RONDO_ATTRIBUTE_STRING, .count = 1};
    attributes[0].value.s = (rondo_string){name, strlen(name)};
    if (strcmp(name, "LeakyRelu") == 0) {
        const rondo_attribute *alpha = rondo__ir_attribute_find(node, "alpha");
        if (alpha && alpha->kind != RONDO_ATTRIBUTE_FLOAT) return 0;
        attributes[1] = fuse_activation_float("rondo.alpha", alpha ? alpha->value.f : 0.01f);
        return 2;
    }
    if (strcmp(name, "Clip") == 0) {
        float low = 0, high = 0;
        if (!fuse_activation_bound(f, node, 1, -INFINITY, &low)) return 0;
        if (!fuse_activation_bound(f, node, 2, INFINITY, &high)) return 0;
        attributes[1] = fuse_activation_float("rondo.alpha", low);
        attributes[2] = fuse_activation_float("rondo.beta", high);
        return 3;
    }
    if (strcmp(name, "HardSigmoid") == 0) {
        const rondo_attribute *alpha = rondo__ir_attribute_find(node, "alpha");
        const rondo_attribute *beta = rondo__ir_attribute_find(node, "beta");
        if ((alpha && alpha->kind != RONDO_ATTRIBUTE_FLOAT) || (beta && beta->kind != RONDO_ATTRIBUTE_FLOAT)) return 0;
        attributes[1] = fuse_activation_float("rondo.alpha", alpha ? alpha->value.f : 0.2f);
        attributes[2] = fuse_activation_float("rondo.beta", beta ? beta->value.f : 0.5f);
        return 3;
    }
    if (strcmp(name, "Gelu") == 0) {
        const rondo_attribute *form = rondo__ir_attribute_find(node, "approximate");
        if (!form || form->kind != RONDO_ATTRIBUTE_STRING || form->value.s.size != 4 ||
            memcmp(form->value.s.data, "tanh", 4) != 0)
            return 0;
        attributes[0].value.s = (rondo_string){"GeluTanh", 8};
    }
    return node->input_count == 1 ? 1 : 0;
}

/* Max with a constant after a LeakyRelu that is already the producer's. */
static rondo_status fuse_activation_floor(fuse_activation *f, rondo_ir_node index) {
    rondo_ir_graph *graph = f->graph;
    const rondo__ir_node_data *node = rondo__ir_node_at(graph, index);
    if (strcmp(node->operator_name, "Max") != 0 || node->input_count != 2 || rondo__ir_node_held(node)) return RONDO_OK;
    for (uint32_t side = 0; side < 2; side++) {
        rondo_ir_value made = node->inputs[side], bound = node->inputs[1 - side];
        if (made == RONDO_IR_NONE || bound == RONDO_IR_NONE || f->uses[made] != 1) continue;
        rondo_ir_node producer = rondo__ir_value_at(graph, made)->producer;
        const rondo__ir_constant *c = rondo__ir_value_at(graph, bound)->constant;
        if (producer == RONDO_IR_NONE || !c || c->dtype != RONDO_DTYPE_F32 || c->bytes != sizeof(float)) continue;
        rondo__ir_node_data before = *rondo__ir_node_at(graph, producer), after = before;
        const rondo_attribute *kind = rondo__ir_attribute_find(&before, "rondo.activation");
        if (before.dead || before.output_count != 1 || rondo__ir_node_held(&before) || !kind ||
            kind->value.s.size != 9 || memcmp(kind->value.s.data, "LeakyRelu", 9) != 0 ||
            !rondo__compile_same_dims(graph, made, node->outputs[0]))
            continue;
        void *memory = NULL;
        RONDO__TRY(rondo__arena_allocate_array(&f->state->arena, before.attribute_count + 1, sizeof(rondo_attribute),
                                               &memory));
        rondo_attribute *attributes = memory;
        float floor;
        memcpy(&floor, c->data, sizeof floor);
        memcpy(attributes, before.attributes, before.attribute_count * sizeof *attributes);
        attributes[kind - before.attributes].value.s = (rondo_string){"LeakyReluMax", 12};
        attributes[before.attribute_count] = fuse_activation_float("rondo.beta", floor);
        rondo_ir_value output = node->outputs[0];
        const char *name = node->name;
        bool done = false;
        after.attributes = attributes;
        after.attribute_count = before.attribute_count + 1;
        after.outputs = &output;
        if (floor != floor) return RONDO_OK;
        RONDO__TRY(rondo__compile_prefers(f->state, &f->request, &before, &after, &done));
        if (!done) return RONDO_OK;
        RONDO__TRY(rondo__compile_absorb(f->state, producer, index, &after));
        f->state->changes++;
        return rondo__compile_remark(f->state, "node '%s': Max of '%s' fused", before.name, name);
    }
    return RONDO_OK;
}

static rondo_status fuse_activation_try(fuse_activation *f, rondo_ir_node index) {
    rondo_ir_graph *graph = f->graph;
    const rondo__ir_node_data *node = rondo__ir_node_at(graph, index);
    rondo_attribute added[FUSE_ACTIVATION_ATTRIBUTES];
    uint32_t count = fuse_activation_describe(f, node, added);
    if (count == 0 || node->output_count != 1 || node->inputs[0] == RONDO_IR_NONE) return RONDO_OK;
    rondo_ir_value made = node->inputs[0];
    rondo_ir_node producer = rondo__ir_value_at(graph, made)->producer;
    if (producer == RONDO_IR_NONE || f->uses[made] != 1) return RONDO_OK;
    rondo__ir_node_data before = *rondo__ir_node_at(graph, producer);
    if (rondo__ir_node_held(node) || rondo__ir_node_held(&before)) return RONDO_OK;
    if (before.dead || before.output_count != 1 || rondo__ir_attribute_find(&before, "rondo.activation") ||
        rondo__ir_value_at(graph, made)->type.dtype != RONDO_DTYPE_F32 ||
        !rondo__compile_fusion_first(RONDO__COMPILE_FUSION_ACTIVATION, &before)) {
        return rondo__compile_fusion_stopped(f->state, RONDO__COMPILE_FUSION_ACTIVATION, &before, node);
    }
    void *memory = NULL;
    uint32_t total = before.attribute_count + count;
    RONDO__TRY(rondo__arena_allocate_array(&f->state->arena, total, sizeof(rondo_attribute), &memory));
    rondo_attribute *attributes = memory;
    if (before.attribute_count) memcpy(attributes, before.attributes, before.attribute_count * sizeof *attributes);
    memcpy(attributes + before.attribute_count, added, count * sizeof *attributes);
    rondo__ir_node_data after = before;
    rondo_ir_value output = node->outputs[0];
    const char *name = node->name, *operator_name = node->operator_name;
    bool done = false;
    after.attributes = attributes;
    after.attribute_count = total;
    after.outputs = &output;
    RONDO__TRY(rondo__compile_prefers(f->state, &f->request, &before, &after, &done));
    if (!done) return RONDO_OK;
    RONDO__TRY(rondo__compile_absorb(f->state, producer, index, &after));
    f->state->changes++;
    return rondo__compile_remark(f->state, "node '%s': %s of '%s' fused", before.name, operator_name, name);
}

rondo_status rondo__compile_fuse_activation(rondo__compile_state *state) {
    fuse_activation f = {.state = state, .graph = state->graph};
    rondo__compile_request_init(&f.request, &state->allocator);
    rondo_status status = rondo__compile_count_uses(state, &f.uses);
    for (size_t n = 0; !status && n < f.graph->nodes.count; n++) {
        if (rondo__ir_node_at(f.graph, (rondo_ir_node)n)->dead) continue;
        status = strcmp(rondo__ir_node_at(f.graph, (rondo_ir_node)n)->operator_name, "Max") == 0
                     ? fuse_activation_floor(&f, (rondo_ir_node)n)
                     : fuse_activation_try(&f, (rondo_ir_node)n);
    }
    rondo__compile_request_deinit(&f.request);
    return status;
}
