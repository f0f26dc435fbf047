/* SPDX-License-Identifier: Apache-2.0
 *
 * Several nodes that together are one operator with a kernel of its own: hardswish and GELU written out, and a batch
 * normalization after a convolution, which is another convolution. Only where nothing else uses what lies between, and
 * where a catalogue as good as before has the kernel. Results differ by rounding alone. */
#include <math.h>
#include <string.h>

#include "compile/walk.h"

typedef struct patterns {
    rondo__compile_walk walk;
    rondo__compile_request request;
} patterns;

/* Who makes the value, if it is that operator, the graph's walk may see into it, and nothing else uses it. */
static const rondo__ir_node_data *patterns_made(const patterns *p, rondo_ir_value value, const char *name) {
    if (value == RONDO_IR_NONE) return NULL;
    const rondo__ir_node_data *node = rondo__compile_walk_producer(&p->walk, value);
    if (!node || node->dead || rondo__ir_node_held(node) || strcmp(node->operator_name, name) != 0) return NULL;
    if (node->output_count != 1 || rondo__compile_walk_uses(&p->walk, value) != 1) return NULL;
    return node;
}

/* A constant of one float that is `number` but for its own rounding. */
static bool patterns_is(const patterns *p, rondo_ir_value value, double number) {
    if (value == RONDO_IR_NONE) return false;
    const rondo__ir_constant *c = rondo__ir_value_at(p->walk.graph, value)->constant;
    float f;
    if (!c || c->dtype != RONDO_DTYPE_F32 || c->bytes != sizeof f) return false;
    memcpy(&f, c->data, sizeof f);
    return fabs((double)f - number) <= 1e-6 * fabs(number);
}

/* The operand of a node of two that is not the number; NONE when neither or both are. */
static rondo_ir_value patterns_beside(const patterns *p, const rondo__ir_node_data *node, double number) {
    if (!node || node->input_count != 2) return RONDO_IR_NONE;
    if (patterns_is(p, node->inputs[1], number)) return node->inputs[0];
    return patterns_is(p, node->inputs[0], number) ? node->inputs[1] : RONDO_IR_NONE;
}

/* The same for a value. */
static rondo_ir_value patterns_other(const rondo__ir_node_data *node, rondo_ir_value x) {
    if (!node || node->input_count != 2) return RONDO_IR_NONE;
    return node->inputs[0] == x ? node->inputs[1] : node->inputs[1] == x ? node->inputs[0] : RONDO_IR_NONE;
}

/* x * clip(x + 3, 0, 6), the node that multiplies; x, or NONE. */
static rondo_ir_value patterns_hard_product(const patterns *p, const rondo__ir_node_data *product) {
    for (uint32_t i = 0; product && product->input_count == 2 && i < 2; i++) {
        const rondo__ir_node_data *clip = patterns_made(p, product->inputs[i], "Clip");
        if (!clip || clip->input_count != 3 || !patterns_is(p, clip->inputs[1], 0.0) ||
            !patterns_is(p, clip->inputs[2], 6.0))
            continue;
        const rondo_ir_value x = patterns_beside(p, patterns_made(p, clip->inputs[0], "Add"), 3.0);
        if (x != RONDO_IR_NONE && x == product->inputs[1 - i]) return x;
    }
    return RONDO_IR_NONE;
}

/* ... / 6, or times a sixth. */
static rondo_ir_value patterns_hard_swish(const patterns *p, const rondo__ir_node_data *node) {
    rondo_ir_value product = RONDO_IR_NONE;
    if (strcmp(node->operator_name, "Div") == 0 && node->input_count == 2 && patterns_is(p, node->inputs[1], 6.0))
        product = node->inputs[0];
    if (strcmp(node->operator_name, "Mul") == 0) product = patterns_beside(p, node, 1.0 / 6.0);
    return product == RONDO_IR_NONE ? RONDO_IR_NONE : patterns_hard_product(p, patterns_made(p, product, "Mul"));
}

/* x * (1/2 * (1 + tanh(sqrt(2 / pi) * (x + x * (x * (0.044715 * x)))))). */
static rondo_ir_value patterns_gelu(const patterns *p, const rondo__ir_node_data *node) {
    for (uint32_t i = 0; strcmp(node->operator_name, "Mul") == 0 && node->input_count == 2 && i < 2; i++) {
        const rondo_ir_value x = node->inputs[1 - i];
        const rondo__ir_node_data *half = patterns_made(p, node->inputs[i], "Mul");
        const rondo__ir_node_data *one = patterns_made(p, patterns_beside(p, half, 0.5), "Add");
        const rondo__ir_node_data *tanh = patterns_made(p, patterns_beside(p, one, 1.0), "Tanh");
        const rondo__ir_node_data *scale = tanh ? patterns_made(p, tanh->inputs[0], "Mul") : NULL;
        const rondo__ir_node_data *sum = patterns_made(p, patterns_beside(p, scale, 0.7978845608028654), "Add");
        const rondo__ir_node_data *cube = patterns_made(p, patterns_other(sum, x), "Mul");
        const rondo__ir_node_data *square = patterns_made(p, patterns_other(cube, x), "Mul");
        const rondo__ir_node_data *first = patterns_made(p, patterns_other(square, x), "Mul");
        if (first && patterns_beside(p, first, 0.044715) == x) return x;
    }
    return RONDO_IR_NONE;
}

/* Puts one operator over x in the place of the node, when a catalogue as good as before takes it. */
static rondo_status patterns_replace(patterns *p, rondo__ir_node_data *node, const char *name, rondo_ir_value x,
                                     const rondo_attribute *attributes, uint32_t count) {
    rondo_ir_value inputs[1] = {x}, outputs[1] = {node->outputs[0]};
    rondo__ir_node_data after = *node;
    bool better = false;
    if (rondo__ir_value_at(p->walk.graph, x)->type.dtype != RONDO_DTYPE_F32 ||
        !rondo__compile_same_dims(p->walk.graph, x, node->outputs[0]))
        return RONDO_OK;
    after.operator_name = name;
    after.inputs = inputs;
    after.input_count = 1;
    after.outputs = outputs;
    after.attributes = (rondo_attribute *)(uintptr_t)attributes;
    after.attribute_count = count;
    RONDO__TRY(rondo__compile_prefers(p->walk.state, &p->request, node, &after, &better));
    if (!better) return RONDO_OK;
    RONDO__TRY(rondo__compile_changed(p->walk.state, "node '%s': it and those before it are %s", node->name, name));
    return rondo__compile_walk_rewrite(&p->walk, node, name, inputs, 1, attributes, count);
}

/* ------------------------------------------------------------------------------------------ batch normalization */

/* A constant list of `length` floats; null otherwise. */
static const float *patterns_list(const patterns *p, rondo_ir_value value, uint64_t length) {
    const rondo__ir_constant *c = value == RONDO_IR_NONE ? NULL : rondo__ir_value_at(p->walk.graph, value)->constant;
    return c && c->dtype == RONDO_DTYPE_F32 && c->bytes == length * sizeof(float) ? c->data : NULL;
}

static rondo_status patterns_constant(patterns *p, rondo_ir_value like, int32_t rank, const int64_t *dims,
                                      const float *data, rondo_ir_value *out_value) {
    rondo_ir_graph *graph = p->walk.graph;
    const rondo__ir_constant *constant;
    rondo__ir_type type;
    RONDO__TRY(rondo__ir_constant_make(graph, RONDO_DTYPE_F32, rank, dims, data, true, &constant));
    RONDO__TRY(rondo__ir_type_from_dims(graph, RONDO_DTYPE_F32, rank, dims, &type));
    RONDO__TRY(rondo__ir_value_add(graph, NULL, rondo__ir_value_at(graph, like)->name, &type, out_value));
    rondo__ir_value_at(graph, *out_value)->constant = constant;
    return RONDO_OK;
}

/* scale (conv(x) - mean) / sqrt(variance + epsilon) + shift is a convolution with weights times the factor. */
static rondo_status patterns_norm(patterns *p, rondo__ir_node_data *node) {
    if (strcmp(node->operator_name, "BatchNormalization") != 0 || node->input_count != 5 || node->output_count != 1)
        return RONDO_OK;
    const rondo__ir_node_data *conv = patterns_made(p, node->inputs[0], "Conv");
    if (!conv || rondo__ir_attribute_find(conv, "rondo.activation") || rondo__ir_attribute_find(node, "training_mode"))
        return RONDO_OK;
    const rondo__ir_constant *w = rondo__ir_value_at(p->walk.graph, conv->inputs[1])->constant;
    if (!w || w->dtype != RONDO_DTYPE_F32 || w->rank < 3 || w->bytes == 0) return RONDO_OK;
    const uint64_t outputs = (uint64_t)w->dims[0], each = w->bytes / sizeof(float) / outputs;
    const float *list[4];
    for (uint32_t i = 0; i < 4; i++) {
        list[i] = patterns_list(p, node->inputs[1 + i], outputs);
        if (!list[i]) return RONDO_OK;
    }
    const bool biased = conv->input_count > 2 && conv->inputs[2] != RONDO_IR_NONE;
    const float *bias = biased ? patterns_list(p, conv->inputs[2], outputs) : NULL;
    if (biased && !bias) return RONDO_OK;
    const rondo_attribute *attribute = rondo__ir_attribute_find(node, "epsilon");
    const double epsilon = attribute && attribute->kind == RONDO_ATTRIBUTE_FLOAT ? (double)attribute->value.f : 1e-5;
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&p->walk.state->arena, outputs * (each + 1), sizeof(float), &memory));
    float *weights = memory, *shift = weights + outputs * each;
    const float *from = w->data;
    for (uint64_t m = 0; m < outputs; m++) {
        const double factor = (double)list[0][m] / sqrt((double)list[3][m] + epsilon);
        if (!isfinite(factor)) return RONDO_OK;
        for (uint64_t k = 0; k < each; k++) weights[m * each + k] = (float)((double)from[m * each + k] * factor);
        shift[m] = (float)(((bias ? (double)bias[m] : 0.0) - (double)list[2][m]) * factor + (double)list[1][m]);
    }
    const rondo__ir_node_data before = *conv;
    const int64_t length = (int64_t)outputs;
    rondo_ir_value inputs[3] = {before.inputs[0], RONDO_IR_NONE, RONDO_IR_NONE};
    RONDO__TRY(patterns_constant(p, before.inputs[1], w->rank, w->dims, weights, &inputs[1]));
    RONDO__TRY(patterns_constant(p, node->inputs[2], 1, &length, shift, &inputs[2]));
    RONDO__TRY(rondo__compile_changed(p->walk.state, "node '%s': is in the weights of '%s'", node->name, before.name));
    return rondo__compile_walk_rewrite(&p->walk, node, "Conv", inputs, 3, before.attributes, before.attribute_count);
}

static rondo_status patterns_node(patterns *p, rondo__ir_node_data *node) {
    rondo_attribute approximate = {.name = "approximate", .kind = RONDO_ATTRIBUTE_STRING, .count = 1};
    approximate.value.s = (rondo_string){"tanh", 4};
    if (node->output_count != 1) return RONDO_OK;
    rondo_ir_value x = patterns_hard_swish(p, node);
    if (x != RONDO_IR_NONE) return patterns_replace(p, node, "HardSwish", x, NULL, 0);
    x = patterns_gelu(p, node);
    if (x != RONDO_IR_NONE) return patterns_replace(p, node, "Gelu", x, &approximate, 1);
    return patterns_norm(p, node);
}

rondo_status rondo__compile_patterns(rondo__compile_state *state) {
    patterns p;
    RONDO__TRY(rondo__compile_walk_begin(state, &p.walk));
    rondo__compile_request_init(&p.request, &state->allocator);
    rondo_status status = RONDO_OK;
    for (size_t n = 0; !status && n < state->graph->nodes.count; n++) {
        rondo__ir_node_data *node = rondo__compile_walk_at(&p.walk, n);
        if (node) status = patterns_node(&p, node);
    }
    rondo__compile_request_deinit(&p.request);
    if (status) return status;
    return rondo__compile_walk_end(&p.walk);
}
