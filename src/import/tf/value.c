/* SPDX-License-Identifier: Apache-2.0
 *
 * What converters are made of: a node's inputs, taken as they are or with the channels moved, and nodes of the ir.
 *
 * TensorFlow keeps channels last, the prototypes keep them second. A value of four axes may be there either way; it is
 * turned once, when somebody needs it the other way, so that a chain of convolutions is turned at its ends only. */
#include <stdio.h>
#include <string.h>

#include "import/tf/tf.h"

rondo__tf_value *rondo__tf_value_at(const rondo__tf_node *node, uint32_t input) {
    const rondo__tf_edge edge = node->inputs[input];
    return &node->context->nodes[edge.node].outputs[edge.port];
}

const rondo__ir_constant *rondo__tf_constant_at(const rondo__tf_node *node, uint32_t input) {
    const rondo_ir_value value = rondo__tf_value_at(node, input)->plain;
    return value == RONDO_IR_NONE ? NULL : rondo__ir_value_at(node->context->graph, value)->constant;
}

/* --------------------------------------------------------------------------------------------------------- nodes */

/* Names that are made have a '#', which no name of TensorFlow's has. */
static rondo_status tf_value_name(rondo__tf_node *node, const char **out_name) {
    void *memory = NULL;
    const size_t room = strlen(node->name) + 16;
    RONDO__TRY(rondo__arena_allocate(&node->context->scratch, room, &memory));
    (void)snprintf(memory, room, "%s#%u", node->name, node->context->made++);
    *out_name = memory;
    return RONDO_OK;
}

static rondo_status tf_value_add_node(rondo__tf_node *node, const char *operator_name, const char *name,
                                      const rondo_ir_value *inputs, uint32_t input_count, const rondo_ir_value *outputs,
                                      uint32_t output_count, const rondo_attribute *attributes,
                                      uint32_t attribute_count) {
    rondo_ir_graph *graph = node->context->graph;
    rondo_ir_node made;
    RONDO__TRY(rondo__ir_node_add(graph, operator_name, name, inputs, input_count, outputs, output_count, attributes,
                                  attribute_count, &made));
    return rondo__ops_check_model_node(graph, rondo__ir_node_at(graph, made));
}

rondo_status rondo__tf_steps(rondo__tf_node *node, const char *operator_name, const rondo_ir_value *inputs,
                             uint32_t input_count, const rondo_attribute *attributes, uint32_t attribute_count,
                             rondo_ir_value *out_values, uint32_t output_count) {
    void *memory = NULL;
    const char *name = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&node->context->scratch, output_count, sizeof(rondo_ir_value), &memory));
    rondo_ir_value *made = memory; /* not out_values: those may be the inputs */
    for (uint32_t i = 0; i < output_count; i++) {
        RONDO__TRY(tf_value_name(node, &name));
        RONDO__TRY(rondo__ir_value_add(node->context->graph, name, NULL, NULL, &made[i]));
    }
    RONDO__TRY(tf_value_add_node(node, operator_name, name, inputs, input_count, made, output_count, attributes,
                                 attribute_count));
    memcpy(out_values, made, output_count * sizeof *made);
    return RONDO_OK;
}

rondo_status rondo__tf_step(rondo__tf_node *node, const char *operator_name, const rondo_ir_value *inputs,
                            uint32_t input_count, const rondo_attribute *attributes, uint32_t attribute_count,
                            rondo_ir_value *out_value) {
    return rondo__tf_steps(node, operator_name, inputs, input_count, attributes, attribute_count, out_value, 1);
}

/* What is known of an output before its shape is: its type, and how many axes. */
static rondo_status tf_value_type(rondo__tf_node *node, const rondo__tf_value *value, rondo__ir_type *out_type) {
    void *memory = NULL;
    *out_type = (rondo__ir_type){.dtype = value->dtype, .rank = value->rank};
    RONDO__TRY(rondo__arena_allocate_array(&node->context->scratch, value->rank > 0 ? (size_t)value->rank : 0,
                                           sizeof(rondo__ir_dim), &memory));
    rondo__ir_dim *dims = memory;
    for (int32_t i = 0; i < value->rank; i++) dims[i] = (rondo__ir_dim){.value = -1, .maximum = INT64_MAX};
    out_type->dims = dims;
    return RONDO_OK;
}

static rondo_status tf_value_output(rondo__tf_node *node, uint32_t output, rondo_ir_value *out_value) {
    void *memory = NULL;
    rondo__ir_type type;
    const size_t room = strlen(node->name) + 16;
    RONDO__TRY(rondo__arena_allocate(&node->context->scratch, room, &memory));
    (void)snprintf(memory, room, output ? "%s:%u" : "%s", node->name, output);
    RONDO__TRY(tf_value_type(node, &node->outputs[output], &type));
    return rondo__ir_value_add(node->context->graph, memory, NULL, &type, out_value);
}

rondo_status rondo__tf_end(rondo__tf_node *node, const char *operator_name, const rondo_ir_value *inputs,
                           uint32_t input_count, const rondo_attribute *attributes, uint32_t attribute_count) {
    void *memory = NULL;
    RONDO__TRY(
        rondo__arena_allocate_array(&node->context->scratch, node->output_count, sizeof(rondo_ir_value), &memory));
    rondo_ir_value *outputs = memory;
    for (uint32_t i = 0; i < node->output_count; i++) {
        RONDO__TRY(tf_value_output(node, i, &outputs[i]));
        node->outputs[i].plain = outputs[i];
    }
    return tf_value_add_node(node, operator_name, node->name, inputs, input_count, outputs, node->output_count,
                             attributes, attribute_count);
}

void rondo__tf_alias(rondo__tf_node *node, uint32_t output, rondo_ir_value value) {
    node->outputs[output].plain = value;
}

void rondo__tf_end_moved(rondo__tf_node *node, rondo_ir_value value) {
    node->outputs[0].moved = value;
    node->outputs[0].rank = 4;
}

rondo_status rondo__tf_end_alike(rondo__tf_node *node, bool moved, const char *operator_name,
                                 const rondo_ir_value *inputs, uint32_t input_count, const rondo_attribute *attributes,
                                 uint32_t attribute_count) {
    rondo_ir_value value;
    if (!moved) return rondo__tf_end(node, operator_name, inputs, input_count, attributes, attribute_count);
    RONDO__TRY(rondo__tf_step(node, operator_name, inputs, input_count, attributes, attribute_count, &value));
    rondo__tf_end_moved(node, value);
    return RONDO_OK;
}

/* ----------------------------------------------------------------------------------------------------- constants */

rondo_status rondo__tf_list(rondo__tf_node *node, const int64_t *values, uint32_t count, rondo_ir_value *out_value) {
    const int64_t dims = count;
    const char *name;
    RONDO__TRY(tf_value_name(node, &name));
    return rondo__ir_constant_add(node->context->graph, name, NULL, RONDO_DTYPE_I64, 1, &dims, values, out_value);
}

rondo_status rondo__tf_number(rondo__tf_node *node, rondo_dtype dtype, double number, rondo_ir_value *out_value) {
    const float narrow = (float)number;
    const int64_t whole = (int64_t)number; /* little-endian: its low bytes are the narrower integers */
    const char *name;
    const bool real = dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_BF16;
    const void *data = dtype == RONDO_DTYPE_F64           ? (const void *)&number
                       : dtype == RONDO_DTYPE_F32 || real ? (const void *)&narrow
                                                          : (const void *)&whole;
    RONDO__TRY(tf_value_name(node, &name));
    RONDO__TRY(rondo__ir_constant_add(node->context->graph, name, NULL, real ? RONDO_DTYPE_F32 : dtype, 0, NULL, data,
                                      out_value));
    return real ? rondo__tf_cast(node, *out_value, RONDO_DTYPE_F32, dtype, out_value) : RONDO_OK;
}

/* --------------------------------------------------------------------------------------------------------- steps */

rondo_status rondo__tf_cast(rondo__tf_node *node, rondo_ir_value value, rondo_dtype from, rondo_dtype to,
                            rondo_ir_value *out_value) {
    *out_value = value;
    if (from == to) return RONDO_OK;
    const rondo_attribute attribute = rondo__tf_int("to", to);
    return rondo__tf_step(node, "Cast", &value, 1, &attribute, 1, out_value);
}

rondo_status rondo__tf_transpose(rondo__tf_node *node, rondo_ir_value value, const int64_t *perm, uint32_t rank,
                                 rondo_ir_value *out_value) {
    const rondo_attribute attribute = rondo__tf_ints("perm", perm, rank);
    return rondo__tf_step(node, "Transpose", &value, 1, &attribute, 1, out_value);
}

rondo_status rondo__tf_axes(rondo__tf_node *node, const char *operator_name, rondo_ir_value value, const int64_t *axes,
                            uint32_t count, rondo_ir_value *out_value) {
    rondo_ir_value inputs[2] = {value, RONDO_IR_NONE};
    *out_value = value;
    if (!count) return RONDO_OK;
    RONDO__TRY(rondo__tf_list(node, axes, count, &inputs[1]));
    return rondo__tf_step(node, operator_name, inputs, 2, NULL, 0, out_value);
}

/* -------------------------------------------------------------------------------------------------------- inputs */

rondo_status rondo__tf_take(rondo__tf_node *node, uint32_t input, rondo_ir_value *out_value) {
    static const int64_t back[] = {0, 2, 3, 1};
    rondo__tf_value *value = rondo__tf_value_at(node, input);
    if (value->plain == RONDO_IR_NONE) {
        /* It has the name of the output that it is. */
        rondo__tf_node *from = &node->context->nodes[node->inputs[input].node];
        const char *name;
        rondo_ir_value made;
        const rondo_attribute perm = rondo__tf_ints("perm", back, 4);
        RONDO__TRY(tf_value_name(from, &name));
        RONDO__TRY(tf_value_output(from, node->inputs[input].port, &made));
        RONDO__TRY(tf_value_add_node(from, "Transpose", name, &value->moved, 1, &made, 1, &perm, 1));
        value->plain = made;
    }
    *out_value = value->plain;
    return RONDO_OK;
}

rondo_status rondo__tf_take_moved(rondo__tf_node *node, uint32_t input, rondo_ir_value *out_value) {
    static const int64_t forth[] = {0, 3, 1, 2};
    rondo__tf_value *value = rondo__tf_value_at(node, input);
    if (value->moved == RONDO_IR_NONE)
        RONDO__TRY(rondo__tf_transpose(&node->context->nodes[node->inputs[input].node], value->plain, forth, 4,
                                       &value->moved));
    *out_value = value->moved;
    return RONDO_OK;
}

/* Whether an elementwise operator's input can be had with the channels in second place for nothing. */
static bool tf_value_can_move(const rondo__tf_node *node, uint32_t input) {
    const rondo__tf_value *value = rondo__tf_value_at(node, input);
    return value->moved != RONDO_IR_NONE || value->rank == 0 || value->rank == 1 ||
           (value->rank == 4 && rondo__tf_constant_at(node, input));
}

rondo_status rondo__tf_take_alike(rondo__tf_node *node, rondo_ir_value *values, bool *out_moved) {
    static const int64_t behind[] = {1, 2};
    bool moved = false;
    for (uint32_t i = 0; i < node->input_count; i++)
        moved = moved || rondo__tf_value_at(node, i)->moved != RONDO_IR_NONE;
    for (uint32_t i = 0; i < node->input_count && moved; i++) moved = tf_value_can_move(node, i);
    *out_moved = moved;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const int32_t rank = rondo__tf_value_at(node, i)->rank;
        if (moved && rank == 4) {
            RONDO__TRY(rondo__tf_take_moved(node, i, &values[i]));
            continue;
        }
        RONDO__TRY(rondo__tf_take(node, i, &values[i]));
        /* One axis is that of the channels. */
        if (moved && rank == 1) RONDO__TRY(rondo__tf_axes(node, "Unsqueeze", values[i], behind, 2, &values[i]));
    }
    return RONDO_OK;
}

rondo_status rondo__tf_take_ints(rondo__tf_node *node, uint32_t input, const char *reason,
                                 int64_t values[RONDO_RANK_MAX], uint32_t *out_count) {
    const rondo__ir_constant *constant = rondo__tf_constant_at(node, input);
    *out_count = 0;
    if (!constant) return rondo__tf_refuse(node, reason);
    const int64_t count = constant->rank ? constant->dims[0] : 1;
    const bool wide = constant->dtype == RONDO_DTYPE_I64;
    if (constant->rank > 1 || (!wide && constant->dtype != RONDO_DTYPE_I32) || count > RONDO_RANK_MAX)
        return RONDO__TF_CORRUPT(node, "input %u must be a list of at most %d integers", input, RONDO_RANK_MAX);
    for (int64_t i = 0; i < count; i++)
        values[i] = wide ? ((const int64_t *)constant->data)[i] : ((const int32_t *)constant->data)[i];
    *out_count = (uint32_t)count;
    return RONDO_OK;
}

rondo_status rondo__tf_take_int(rondo__tf_node *node, uint32_t input, const char *reason, int64_t *out_value) {
    int64_t values[RONDO_RANK_MAX] = {0};
    uint32_t count;
    RONDO__TRY(rondo__tf_take_ints(node, input, reason, values, &count));
    *out_value = values[0];
    if (node->refused || count == 1) return RONDO_OK;
    return RONDO__TF_CORRUPT(node, "input %u must be one integer", input);
}

rondo_status rondo__tf_take_list(rondo__tf_node *node, uint32_t input, rondo_ir_value *out_value) {
    const rondo__tf_value *value = rondo__tf_value_at(node, input);
    const rondo__ir_constant *constant = rondo__tf_constant_at(node, input);
    if (constant && constant->rank <= 1 && (constant->rank == 0 || constant->dims[0] <= RONDO_RANK_MAX)) {
        int64_t values[RONDO_RANK_MAX];
        uint32_t count;
        RONDO__TRY(rondo__tf_take_ints(node, input, NULL, values, &count));
        return rondo__tf_list(node, values, count, out_value);
    }
    rondo_ir_value taken[2];
    RONDO__TRY(rondo__tf_take(node, input, &taken[0]));
    RONDO__TRY(rondo__tf_cast(node, taken[0], value->dtype, RONDO_DTYPE_I64, &taken[0]));
    *out_value = taken[0];
    if (value->rank == 1) return RONDO_OK;
    const int64_t all = -1;
    RONDO__TRY(rondo__tf_list(node, &all, 1, &taken[1]));
    return rondo__tf_step(node, "Reshape", taken, 2, NULL, 0, out_value);
}
