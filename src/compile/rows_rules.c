/* SPDX-License-Identifier: Apache-2.0
 *
 * What each operator does along an axis. A rule answers for operands that have rows; an operator without one is unknown, and
 * unknown is no. */
#include <string.h>

#include "compile/rows.h"

static const rondo__ir_value_data *rows_input(const rondo__rows_node *n, uint32_t index) {
    if (index >= n->node->input_count || n->node->inputs[index] == RONDO_IR_NONE) return NULL;
    return rondo__ir_value_at(n->graph, n->node->inputs[index]);
}

/* RONDO__ROWS_NONE for what is absent, too. */
static int32_t rows_in(const rondo__rows_node *n, uint32_t index) {
    return rows_input(n, index) ? n->axes[n->node->inputs[index]] : RONDO__ROWS_NONE;
}

static int32_t rows_out(const rondo__rows_node *n, uint32_t index) { return n->axes[n->node->outputs[index]]; }

static int32_t rows_rank_in(const rondo__rows_node *n, uint32_t index) { return rows_input(n, index)->type.rank; }

static int32_t rows_rank_out(const rondo__rows_node *n, uint32_t index) {
    return rondo__ir_value_at(n->graph, n->node->outputs[index])->type.rank;
}

/* Every output that is wanted has its rows at `axis`. */
static bool rows_all_out(const rondo__rows_node *n, int32_t axis) {
    for (uint32_t i = 0; i < n->node->output_count; i++) {
        if (n->node->outputs[i] != RONDO_IR_NONE && rows_out(n, i) != axis) return false;
    }
    return true;
}

/* Inputs from `from` on have none. */
static bool rows_no_others(const rondo__rows_node *n, uint32_t from) {
    for (uint32_t i = from; i < n->node->input_count; i++) {
        if (rows_in(n, i) != RONDO__ROWS_NONE) return false;
    }
    return true;
}

static int32_t rows_axis_attribute(const rondo__rows_node *n, const char *name, int64_t otherwise, int32_t rank) {
    int64_t axis = rondo__ir_attribute_int(n->node, name, otherwise);
    return (int32_t)(axis < 0 ? axis + rank : axis);
}

/* The number at `at` of a constant input of int64 or int32; false where it is not known. */
static bool rows_number(const rondo__rows_node *n, uint32_t index, size_t at, int64_t *out_number) {
    const rondo__ir_value_data *value = rows_input(n, index);
    if (!value || !value->constant) return false;
    if (value->constant->dtype == RONDO_DTYPE_I64 && at < value->constant->bytes / 8u)
        *out_number = ((const int64_t *)value->constant->data)[at];
    else if (value->constant->dtype == RONDO_DTYPE_I32 && at < value->constant->bytes / 4u)
        *out_number = ((const int32_t *)value->constant->data)[at];
    else return false;
    return true;
}

/* Whether `axis` is among the numbers of a constant input, counted from the end where negative; unknown is yes. */
static bool rows_among(const rondo__rows_node *n, uint32_t index, int32_t axis, int32_t rank) {
    const rondo__ir_value_data *value = rows_input(n, index);
    if (!value || !value->constant) return true;
    size_t width = value->constant->dtype == RONDO_DTYPE_I64 ? 8u : value->constant->dtype == RONDO_DTYPE_I32 ? 4u : 0;
    if (!width) return true;
    for (size_t i = 0; i < value->constant->bytes / width; i++) {
        int64_t number = 0;
        if (!rows_number(n, index, i, &number)) return true;
        if ((number < 0 ? number + rank : number) == axis) return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------------------- rules */

/* As far from the end in each operand. */
static bool rows_aligned(const rondo__rows_node *n, uint32_t first_input) {
    for (uint32_t o = 0; o < n->node->output_count; o++) {
        if (n->node->outputs[o] == RONDO_IR_NONE) continue;
        int32_t from_end = rows_rank_out(n, o) - rows_out(n, o);
        for (uint32_t i = first_input; i < n->node->input_count; i++) {
            if (rows_in(n, i) != RONDO__ROWS_NONE && rows_rank_in(n, i) - rows_in(n, i) != from_end) return false;
        }
    }
    return true;
}

static bool rows_rule_matmul(const rondo__rows_node *n) {
    int32_t a = rows_in(n, 0), b = rows_in(n, 1);
    if (rows_rank_in(n, 0) < 2 || rows_rank_in(n, 1) < 2 || !rows_no_others(n, 2)) return false;
    if (a != RONDO__ROWS_NONE && a == rows_rank_in(n, 0) - 1) return false; /* summed over */
    if (b != RONDO__ROWS_NONE && b == rows_rank_in(n, 1) - 2) return false;
    return rows_aligned(n, 0);
}

static bool rows_rule_gemm(const rondo__rows_node *n) {
    int32_t summed_a = rondo__ir_attribute_int(n->node, "transA", 0) ? 0 : 1;
    int32_t summed_b = rondo__ir_attribute_int(n->node, "transB", 0) ? 1 : 0;
    int32_t out = rows_out(n, 0), c = rows_in(n, 2);
    if (rows_in(n, 0) == summed_a || rows_in(n, 1) == summed_b) return false;
    if (rows_in(n, 0) != RONDO__ROWS_NONE && out != 0) return false;
    if (rows_in(n, 1) != RONDO__ROWS_NONE && out != 1) return false;
    return (c == RONDO__ROWS_NONE || rows_rank_in(n, 2) - c == 2 - out) && rows_no_others(n, 3);
}

/* Samples beside each other at axis 0, and all else is weights. */
static bool rows_rule_samples(const rondo__rows_node *n) {
    return rows_in(n, 0) == 0 && rows_no_others(n, 1) && rows_all_out(n, 0);
}

/* Along one axis, which is not that of the rows; the shape stays. */
static bool rows_rule_along(const rondo__rows_node *n) {
    int32_t axis = rows_axis_attribute(n, "axis", -1, rows_rank_in(n, 0));
    return rows_in(n, 0) != RONDO__ROWS_NONE && rows_in(n, 0) != axis && rows_no_others(n, 1) &&
           rows_all_out(n, rows_in(n, 0));
}

/* From one axis on, behind that of the rows. Means and deviations keep it. */
static bool rows_rule_layer(const rondo__rows_node *n) {
    int32_t axis = rows_axis_attribute(n, "axis", -1, rows_rank_in(n, 0));
    return rows_in(n, 0) != RONDO__ROWS_NONE && rows_in(n, 0) < axis && rows_no_others(n, 1) &&
           rows_all_out(n, rows_in(n, 0));
}

static bool rows_rule_reduce(const rondo__rows_node *n) {
    int32_t axis = rows_in(n, 0), rank = rows_rank_in(n, 0), gone = 0;
    if (axis == RONDO__ROWS_NONE || !rows_no_others(n, 1) || rows_among(n, 1, axis, rank)) return false;
    const rondo__ir_value_data *axes = rows_input(n, 1);
    if (!axes->constant->bytes) return false; /* all axes, or none */
    for (int32_t d = 0; d < axis; d++) gone += rows_among(n, 1, d, rank);
    if (rondo__ir_attribute_int(n->node, "keepdims", 1)) gone = 0;
    return rows_all_out(n, axis - gone);
}

static bool rows_rule_arg(const rondo__rows_node *n) {
    int32_t axis = rows_in(n, 0), over = rows_axis_attribute(n, "axis", 0, rows_rank_in(n, 0));
    if (axis == RONDO__ROWS_NONE || axis == over) return false;
    return rows_all_out(n, axis - (over < axis && !rondo__ir_attribute_int(n->node, "keepdims", 1)));
}

static bool rows_rule_transpose(const rondo__rows_node *n) {
    const rondo_attribute *perm = rondo__ir_attribute_find(n->node, "perm");
    int32_t rank = rows_rank_in(n, 0), out = rows_out(n, 0);
    if (!perm || !perm->count) return rows_in(n, 0) == rank - 1 - out;
    return perm->count == (uint32_t)rank && perm->value.ints[out] == rows_in(n, 0);
}

static int64_t rows_before(const rondo__ir_value_data *value, int32_t axis) {
    int64_t product = 1;
    for (int32_t d = 0; d < axis; d++) product *= value->type.dims[d].value;
    return product;
}

/* The same bytes under another shape: rows are the same where as many elements stand before them. */
static bool rows_rule_view(const rondo__rows_node *n) {
    const rondo__ir_value_data *out = rondo__ir_value_at(n->graph, n->node->outputs[0]);
    return rows_in(n, 0) != RONDO__ROWS_NONE && rows_no_others(n, 1) &&
           rows_before(rows_input(n, 0), rows_in(n, 0)) == rows_before(out, rows_out(n, 0));
}

static bool rows_rule_concat(const rondo__rows_node *n) {
    int32_t out = rows_out(n, 0);
    if (rows_axis_attribute(n, "axis", 0, rows_rank_out(n, 0)) == out) return false;
    for (uint32_t i = 0; i < n->node->input_count; i++) {
        if (rows_in(n, i) != out) return false;
    }
    return true;
}

static bool rows_rule_split(const rondo__rows_node *n) {
    int32_t axis = rows_axis_attribute(n, "axis", 0, rows_rank_in(n, 0));
    return rows_in(n, 0) != RONDO__ROWS_NONE && rows_in(n, 0) != axis && rows_no_others(n, 1) &&
           rows_all_out(n, rows_in(n, 0));
}

/* The rows are all there behind it, in few and in many: so they are left alone, or turned round by a step of -1. */
static bool rows_rule_slice(const rondo__rows_node *n) {
    int32_t axis = rows_in(n, 0), rank = rows_rank_in(n, 0);
    if (axis == RONDO__ROWS_NONE || !rows_no_others(n, 1) || !rows_all_out(n, axis)) return false;
    if (!rows_input(n, 4)) return true;
    for (int32_t i = 0; i < rank; i++) {
        int64_t of = i, step = 1;
        if (!rows_number(n, 4, (size_t)i, &step)) return i > 0; /* past the last */
        if (rows_input(n, 3) && !rows_number(n, 3, (size_t)i, &of)) return false;
        if ((of < 0 ? of + rank : of) == axis && step != 1) return false;
    }
    return true;
}

static bool rows_rule_gather(const rondo__rows_node *n) {
    int32_t data = rows_in(n, 0), indices = rows_in(n, 1);
    int32_t axis = rows_axis_attribute(n, "axis", 0, rows_rank_in(n, 0));
    if (data != RONDO__ROWS_NONE && indices != RONDO__ROWS_NONE) return false;
    if (indices != RONDO__ROWS_NONE) return rows_out(n, 0) == axis + indices;
    return data != axis && rows_out(n, 0) == (data < axis ? data : data + rows_rank_in(n, 1) - 1);
}

/* Nothing is added before or behind the rows. */
static bool rows_rule_pad(const rondo__rows_node *n) {
    int32_t axis = rows_in(n, 0), rank = rows_rank_in(n, 0);
    const rondo__ir_value_data *pads = rows_input(n, 1);
    if (axis == RONDO__ROWS_NONE || !rows_no_others(n, 1) || !rows_all_out(n, axis)) return false;
    if (rows_input(n, 3)) return !rows_among(n, 3, axis, rank);
    if (!pads || !pads->constant || pads->constant->bytes != 16u * (size_t)rank) return false;
    const int64_t *numbers = pads->constant->data;
    return numbers[axis] == 0 && numbers[rank + axis] == 0;
}

/* X [T,B,I], or [B,T,I] with layout 1; states [D,B,H], all of Y [T,D,B,H]. */
static bool rows_rule_recurrent(const rondo__rows_node *n) {
    if (rondo__ir_attribute_int(n->node, "layout", 0) || rows_in(n, 0) != 1) return false;
    for (uint32_t i = 1; i < n->node->input_count; i++) {
        bool weights = i < 4 || i > 6;
        if (rows_input(n, i) && rows_in(n, i) != (weights ? RONDO__ROWS_NONE : i == 4 ? 0 : 1)) return false;
    }
    for (uint32_t i = 0; i < n->node->output_count; i++) {
        if (n->node->outputs[i] != RONDO_IR_NONE && rows_out(n, i) != (i == 0 ? 2 : 1)) return false;
    }
    return true;
}

/* What is written once for all rows, from operands that have none. */
static bool rows_rule_expand(const rondo__rows_node *n) { return rows_no_others(n, 1) && rows_aligned(n, 0); }

static const struct {
    const char *name;
    bool (*holds)(const rondo__rows_node *node);
} rows_rules[] = {
    {"MatMul", rows_rule_matmul},
    {"Gemm", rows_rule_gemm},
    {"Conv", rows_rule_samples},
    {"ConvTranspose", rows_rule_samples},
    {"MaxPool", rows_rule_samples},
    {"AveragePool", rows_rule_samples},
    {"LpPool", rows_rule_samples},
    {"GlobalAveragePool", rows_rule_samples},
    {"GlobalMaxPool", rows_rule_samples},
    {"GlobalLpPool", rows_rule_samples},
    {"InstanceNormalization", rows_rule_samples},
    {"GroupNormalization", rows_rule_samples},
    {"LRN", rows_rule_samples},
    {"DepthToSpace", rows_rule_samples},
    {"SpaceToDepth", rows_rule_samples},
    {"Softmax", rows_rule_along},
    {"LogSoftmax", rows_rule_along},
    {"Hardmax", rows_rule_along},
    {"LayerNormalization", rows_rule_layer},
    {"RMSNormalization", rows_rule_layer},
    {"ReduceSum", rows_rule_reduce},
    {"ReduceMean", rows_rule_reduce},
    {"ReduceMax", rows_rule_reduce},
    {"ReduceMin", rows_rule_reduce},
    {"ReduceProd", rows_rule_reduce},
    {"ReduceL1", rows_rule_reduce},
    {"ReduceL2", rows_rule_reduce},
    {"ReduceLogSum", rows_rule_reduce},
    {"ReduceLogSumExp", rows_rule_reduce},
    {"ReduceSumSquare", rows_rule_reduce},
    {"ArgMax", rows_rule_arg},
    {"ArgMin", rows_rule_arg},
    {"Transpose", rows_rule_transpose},
    {"Reshape", rows_rule_view},
    {"Flatten", rows_rule_view},
    {"Squeeze", rows_rule_view},
    {"Unsqueeze", rows_rule_view},
    {"Identity", rows_rule_view},
    {"Concat", rows_rule_concat},
    {"Split", rows_rule_split},
    {"Slice", rows_rule_slice},
    {"Gather", rows_rule_gather},
    {"Pad", rows_rule_pad},
    {"LSTM", rows_rule_recurrent},
    {"GRU", rows_rule_recurrent},
    {"RNN", rows_rule_recurrent},
    {"Expand", rows_rule_expand},
};

/* Batch normalization with running statistics of its own would mix; with given ones it is arithmetic element by element. */
static bool rows_rule_normalized(const rondo__rows_node *n) {
    return !rondo__ir_attribute_int(n->node, "training_mode", 0) && rows_rule_samples(n);
}

bool rondo__rows_rule(const rondo__rows_node *node) {
    const char *name = node->node->operator_name;
    if (node->elementwise) return rows_aligned(node, 0);
    if (strcmp(name, "BatchNormalization") == 0) return rows_rule_normalized(node);
    for (size_t i = 0; i < sizeof rows_rules / sizeof *rows_rules; i++) {
        if (strcmp(rows_rules[i].name, name) == 0) return rows_rules[i].holds(node);
    }
    return false;
}
