/* SPDX-License-Identifier: Apache-2.0
 *
 * Two compilations of one graph, side by side. Types say which axis of each value has the rows; the rest is that nodes,
 * attributes and constants are the same, and that each node with rows keeps them apart. A constant that has rows, too
 * (positions, masks), is right where the smaller one is its beginning. */
#include <string.h>

#include "compile/rows.h"
#include "ops/ops.h"

typedef struct rows_pair {
    const rondo_ir_graph *few, *many;
    int64_t rows, more;
    int32_t *axes;          /* of few's values */
    rondo_ir_value *others; /* few's value -> many's; RONDO_IR_NONE: not seen yet */
} rows_pair;

static rondo_status rows_differs(const rondo__ir_node_data *node) {
    return RONDO__FAIL(UNSUPPORTED, META, "node '%s' (%s): the graph is another for other sizes here", node->name,
                       node->operator_name);
}

/* The axis on which the types differ, by rows and more; RONDO__ROWS_NONE where they do not. False: otherwise. */
static bool rows_axis(const rows_pair *pair, const rondo__ir_type *few, const rondo__ir_type *many, int32_t *out_axis) {
    *out_axis = RONDO__ROWS_NONE;
    if (few->kind != RONDO__IR_TENSOR || many->kind != RONDO__IR_TENSOR || few->dtype != many->dtype ||
        few->rank != many->rank || few->rank < 0)
        return false;
    for (int32_t d = 0; d < few->rank; d++) {
        if (few->dims[d].value == many->dims[d].value) continue;
        if (*out_axis != RONDO__ROWS_NONE || few->dims[d].value != pair->rows || many->dims[d].value != pair->more)
            return false;
        *out_axis = d;
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------- what is the same */

/* Whether the smaller constant is the beginning of the larger one along the axis; with none, all of it. */
static bool rows_begins(const rondo__ir_constant *few, const rondo__ir_constant *many, int32_t axis) {
    uint64_t outer = 1, a = few->bytes, b = many->bytes;
    if (few->dtype == RONDO_DTYPE_STRING) return false;
    for (int32_t d = 0; d < axis; d++) outer *= (uint64_t)few->dims[d];
    if (!outer || !a) return few->bytes == 0;
    if (a % outer || b % outer) return false; /* elements of less than a byte */
    a /= outer;
    b /= outer;
    for (uint64_t i = 0; i < outer; i++) {
        if (memcmp((const char *)few->data + i * a, (const char *)many->data + i * b, (size_t)a) != 0) return false;
    }
    return true;
}

/* The operator makes a shape of this input's value, which the types of its output have shown already. */
static bool rows_is_shape(const rondo__ir_node_data *node, uint32_t index) {
    if (index == 2) return strcmp(node->operator_name, "Slice") == 0; /* where it ends: how long it is */
    return index == 1 && (strcmp(node->operator_name, "Reshape") == 0 || strcmp(node->operator_name, "Expand") == 0);
}

static rondo_status rows_input_pair(rows_pair *pair, const rondo__ir_node_data *node, uint32_t index,
                                    rondo_ir_value few, rondo_ir_value many) {
    const rondo__ir_value_data *a = rondo__ir_value_at(pair->few, few), *b = rondo__ir_value_at(pair->many, many);
    if (!a->constant != !b->constant) return rows_differs(node);
    if (!a->constant) return pair->others[few] == many ? RONDO_OK : rows_differs(node);
    if (rows_is_shape(node, index)) return a->constant->bytes == b->constant->bytes ? RONDO_OK : rows_differs(node);
    if (!rows_axis(pair, &a->type, &b->type, &pair->axes[few]) ||
        !rows_begins(a->constant, b->constant, pair->axes[few])) {
        return RONDO__FAIL(UNSUPPORTED, META,
                           "node '%s' (%s): its operand '%s' is worked out from the size of the axis", node->name,
                           node->operator_name, a->name);
    }
    pair->others[few] = many;
    return RONDO_OK;
}

/* -------------------------------------------------------------------------------------------------------- nodes */

static rondo_status rows_mixes(const rondo__ir_node_data *node) {
    return RONDO__FAIL(UNSUPPORTED, META,
                       "node '%s' (%s) does not keep the rows of the axis apart, as far as is known: run without "
                       "buckets, or for a size that is one",
                       node->name, node->operator_name);
}

/* Its outputs: axes from types, then the rule where rows come in or go out. */
static rondo_status rows_output_pair(rows_pair *pair, const rondo__ir_node_data *a, const rondo__ir_node_data *b) {
    bool rows_in = false, rows_out = false;
    for (uint32_t i = 0; i < a->input_count; i++)
        rows_in = rows_in || (a->inputs[i] != RONDO_IR_NONE && pair->axes[a->inputs[i]] != RONDO__ROWS_NONE);
    for (uint32_t i = 0; i < a->output_count; i++) {
        rondo_ir_value few = a->outputs[i], many = b->outputs[i];
        int32_t axis = RONDO__ROWS_NONE;
        if ((few == RONDO_IR_NONE) != (many == RONDO_IR_NONE)) return rows_differs(a);
        if (few == RONDO_IR_NONE) continue;
        if (!rows_axis(pair, &rondo__ir_value_at(pair->few, few)->type, &rondo__ir_value_at(pair->many, many)->type,
                       &axis))
            return rows_mixes(a);
        if (rows_in && axis == RONDO__ROWS_NONE) return rows_mixes(a);
        pair->axes[few] = axis;
        pair->others[few] = many;
        rows_out = rows_out || axis != RONDO__ROWS_NONE;
    }
    const rondo__ops_prototype *prototype = rondo__ops_lookup(pair->few, a->operator_name);
    if (!prototype || (prototype->flags & RONDO__OPS_RANDOM))
        return rows_mixes(a); /* numbers come in the order of rows */
    if (!rows_in && !rows_out) return RONDO_OK;
    bool elementwise = (prototype->flags & RONDO__OPS_ELEMENTWISE) != 0 && !prototype->registered;
    const rondo__rows_node node = {pair->few, a, pair->axes, elementwise};
    return rondo__rows_rule(&node) ? RONDO_OK : rows_mixes(a);
}

static rondo_status rows_node_pair(rows_pair *pair, const rondo__ir_node_data *a, const rondo__ir_node_data *b) {
    if (strcmp(a->operator_name, b->operator_name) != 0 || a->input_count != b->input_count ||
        a->output_count != b->output_count ||
        !rondo__ir_attributes_equal(a->attributes, a->attribute_count, b->attributes, b->attribute_count))
        return rows_differs(a);
    for (uint32_t i = 0; i < a->input_count; i++) {
        if ((a->inputs[i] == RONDO_IR_NONE) != (b->inputs[i] == RONDO_IR_NONE)) return rows_differs(a);
        if (a->inputs[i] != RONDO_IR_NONE) RONDO__TRY(rows_input_pair(pair, a, i, a->inputs[i], b->inputs[i]));
    }
    return rows_output_pair(pair, a, b);
}

/* The next node that is alive, or null. */
static const rondo__ir_node_data *rows_next(const rondo_ir_graph *graph, uint32_t *at) {
    while (*at < graph->nodes.count) {
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, (*at)++);
        if (!node->dead) return node;
    }
    return NULL;
}

static rondo_status rows_nodes(rows_pair *pair) {
    uint32_t at = 0, there = 0;
    for (;;) {
        const rondo__ir_node_data *a = rows_next(pair->few, &at), *b = rows_next(pair->many, &there);
        if (!a && !b) return RONDO_OK;
        if (!a || !b) return rows_differs(a ? a : b);
        RONDO__TRY(rows_node_pair(pair, a, b));
    }
}

/* ------------------------------------------------------------------------------------------------------- graphs */

static rondo_status rows_inputs(rows_pair *pair) {
    if (pair->few->inputs.count != pair->many->inputs.count)
        return RONDO__FAIL(INTERNAL, META, "two compilations of one graph have other inputs");
    for (uint32_t i = 0; i < pair->few->inputs.count; i++) {
        rondo_ir_value few = rondo__ir_input_at(pair->few, i), many = rondo__ir_input_at(pair->many, i);
        const rondo__ir_value_data *a = rondo__ir_value_at(pair->few, few);
        if (!rows_axis(pair, &a->type, &rondo__ir_value_at(pair->many, many)->type, &pair->axes[few]))
            return RONDO__FAIL(UNSUPPORTED, META, "input '%s' has the size on more than one axis", a->name);
        pair->others[few] = many;
    }
    return RONDO_OK;
}

static rondo_status rows_outputs(const rows_pair *pair, int32_t *out_axes) {
    for (uint32_t i = 0; i < pair->few->outputs.count; i++) {
        rondo_ir_value few = rondo__ir_output_at(pair->few, i), many = rondo__ir_output_at(pair->many, i);
        const rondo__ir_value_data *a = rondo__ir_value_at(pair->few, few), *b = rondo__ir_value_at(pair->many, many);
        out_axes[i] = pair->axes[few];
        if (pair->others[few] == many) continue;
        if (!a->constant || !b->constant || !rows_axis(pair, &a->type, &b->type, &out_axes[i]) ||
            !rows_begins(a->constant, b->constant, out_axes[i]))
            return RONDO__FAIL(UNSUPPORTED, META, "output '%s' is worked out from the size of the axis", a->name);
    }
    return RONDO_OK;
}

rondo_status rondo__rows_independent(const rondo_allocator *allocator, const rondo_ir_graph *few,
                                     const rondo_ir_graph *many, int64_t rows, int64_t more, int32_t *out_axes) {
    rows_pair pair = {few, many, rows, more, NULL, NULL};
    size_t count = few->values.count;
    void *axes = NULL, *others = NULL;
    RONDO__TRY(rondo__allocate_array(allocator, count, sizeof(int32_t), &axes));
    rondo_status status = rondo__allocate_array(allocator, count, sizeof(rondo_ir_value), &others);
    pair.axes = axes;
    pair.others = others;
    for (size_t i = 0; !status && i < count; i++) {
        pair.axes[i] = RONDO__ROWS_NONE;
        pair.others[i] = RONDO_IR_NONE;
    }
    if (!status) status = rows_inputs(&pair);
    if (!status) status = rows_nodes(&pair);
    if (!status) status = rows_outputs(&pair, out_axes);
    rondo__free(allocator, others, count * sizeof(rondo_ir_value));
    rondo__free(allocator, axes, count * sizeof(int32_t));
    return status;
}
