/* SPDX-License-Identifier: Apache-2.0
 *
 * Which nodes move no byte: what they give is a contiguous piece of what they take. */
#include <string.h>

#include "compile/pass.h"

typedef struct view_shape {
    int32_t rank;
    int64_t dims[RONDO_RANK_MAX];
    uint64_t element; /* bytes */
} view_shape;

static bool view_is(const rondo__ir_node_data *node, const char *name) {
    return strcmp(node->operator_name, name) == 0;
}

static bool view_read_shape(const rondo_ir_graph *graph, rondo_ir_value value, view_shape *out) {
    out->rank = rondo__compile_dims(graph, value, out->dims);
    uint32_t bits = rondo_dtype_bits(rondo__ir_value_at(graph, value)->type.dtype);
    out->element = bits / 8u;
    return bits >= 8u;
}

/* Elements of the axes [from, to). No overflow: the whole product fits. */
static int64_t view_product(const view_shape *shape, int32_t from, int32_t to) {
    int64_t product = 1;
    for (int32_t i = from; i < to; i++) product *= shape->dims[i];
    return product;
}

static const rondo__ir_constant *view_constant(const rondo_ir_graph *graph, const rondo__ir_node_data *node,
                                               uint32_t input) {
    if (input >= node->input_count || node->inputs[input] == RONDO_IR_NONE) return NULL;
    return rondo__ir_value_at(graph, node->inputs[input])->constant;
}

static size_t view_count(const rondo__ir_constant *constant) {
    return constant->bytes / (constant->dtype == RONDO_DTYPE_I32 ? sizeof(int32_t) : sizeof(int64_t));
}

/* Element i of an int32 or int64 constant. */
static int64_t view_int(const rondo__ir_constant *constant, size_t i) {
    if (constant->dtype == RONDO_DTYPE_I32) return ((const int32_t *)constant->data)[i];
    return ((const int64_t *)constant->data)[i];
}

static bool view_is_ints(const rondo__ir_constant *constant) {
    return constant && (constant->dtype == RONDO_DTYPE_I64 || constant->dtype == RONDO_DTYPE_I32);
}

static bool view_axis(int64_t axis, int32_t rank, int32_t *out_axis) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return false;
    *out_axis = (int32_t)axis;
    return true;
}

/* Axes of size 1 may go anywhere. */
static bool view_transpose(const rondo__ir_node_data *node, const view_shape *in) {
    const rondo_attribute *perm = rondo__ir_attribute_find(node, "perm");
    int64_t before = -1;
    for (int32_t i = 0; i < in->rank; i++) {
        int64_t from = in->rank - 1 - i;
        if (perm) {
            if (perm->kind != RONDO_ATTRIBUTE_INTS || (int64_t)perm->count != in->rank) return false;
            from = perm->value.ints[i];
        }
        if (from < 0 || from >= in->rank) return false;
        if (in->dims[from] == 1) continue;
        if (from < before) return false;
        before = from;
    }
    return true;
}

/* Where each axis of a Slice begins; false when that is not known, or what it takes is not in one piece for its steps.
 * */
static bool view_slice_starts(const rondo_ir_graph *graph, const rondo__ir_node_data *node, const view_shape *in,
                              const view_shape *out, int64_t *start_of) {
    const rondo__ir_constant *starts = view_constant(graph, node, 1), *axes = view_constant(graph, node, 3),
                             *steps = view_constant(graph, node, 4);
    if (!view_is_ints(starts)) return false;
    size_t count = view_count(starts);
    for (size_t i = 0; i < count; i++) {
        int32_t axis = 0;
        int64_t step = steps ? view_int(steps, i) : 1;
        if (!view_axis(axes ? view_int(axes, i) : (int64_t)i, in->rank, &axis)) return false;
        if (step != 1 && out->dims[axis] != 1) return false;
        int64_t start = view_int(starts, i), size = in->dims[axis];
        if (start < 0) start = start < -size ? 0 : start + size;
        /* A negative step starts from the last element at most. */
        int64_t most = step < 0 ? size - 1 : size;
        start_of[axis] = start > most ? most : start;
    }
    return true;
}

/* An optional list of as many integers as there are starts. */
static bool view_slice_list(const rondo_ir_graph *graph, const rondo__ir_node_data *node, uint32_t input) {
    const rondo__ir_constant *starts = view_constant(graph, node, 1), *list = view_constant(graph, node, input);
    if (input >= node->input_count || node->inputs[input] == RONDO_IR_NONE) return true;
    return view_is_ints(starts) && view_is_ints(list) && view_count(list) == view_count(starts);
}

/* All axes before the outermost one that is cut have size 1, and steps are 1: one piece. */
static bool view_slice(const rondo_ir_graph *graph, const rondo__ir_node_data *node, const view_shape *in,
                       const view_shape *out, uint64_t *offset) {
    int64_t start_of[RONDO_RANK_MAX] = {0}, at = 0;
    bool cut = false;
    if (in->rank != out->rank || !view_slice_list(graph, node, 3) || !view_slice_list(graph, node, 4) ||
        !view_slice_starts(graph, node, in, out, start_of)) {
        return false;
    }
    for (int32_t axis = in->rank - 1; axis >= 0; axis--) {
        if (cut && out->dims[axis] != 1) return false;
        if (out->dims[axis] != in->dims[axis]) cut = true;
        at += start_of[axis] * view_product(in, axis + 1, in->rank);
    }
    *offset = (uint64_t)at * in->element;
    return true;
}

/* Constant indices that count up from the first, over an axis with nothing but size 1 before it, or over all of it. */
static bool view_gather(const rondo_ir_graph *graph, const rondo__ir_node_data *node, const view_shape *in,
                        uint64_t *offset) {
    const rondo__ir_constant *indices = view_constant(graph, node, 1);
    int32_t axis = 0;
    if (!view_is_ints(indices) || indices->bytes == 0) return false;
    if (!view_axis(rondo__ir_attribute_int(node, "axis", 0), in->rank, &axis)) return false;
    int64_t first = view_int(indices, 0), size = in->dims[axis];
    if (first < 0) first += size;
    size_t count = view_count(indices);
    if (view_product(in, 0, axis) != 1 && (first != 0 || (uint64_t)size != count)) return false;
    if (first < 0 || first >= size || (uint64_t)(size - first) < count) return false;
    for (size_t i = 1; i < count; i++) {
        int64_t index = view_int(indices, i);
        if ((index < 0 ? index + size : index) != first + (int64_t)i) return false;
    }
    *offset = (uint64_t)(first * view_product(in, axis + 1, in->rank)) * in->element;
    return true;
}

static bool view_split(const rondo_ir_graph *graph, const rondo__ir_node_data *node, const view_shape *in,
                       uint32_t output, uint64_t *offset) {
    int32_t axis = 0;
    if (!view_axis(rondo__ir_attribute_int(node, "axis", 0), in->rank, &axis)) return false;
    if (view_product(in, 0, axis) != 1 && node->output_count != 1) return false;
    int64_t before = 0;
    for (uint32_t i = 0; i < output; i++) {
        view_shape part;
        if (node->outputs[i] == RONDO_IR_NONE || !view_read_shape(graph, node->outputs[i], &part)) return false;
        if (part.rank != in->rank) return false;
        before += part.dims[axis];
    }
    *offset = (uint64_t)(before * view_product(in, axis + 1, in->rank)) * in->element;
    return true;
}

/* Nothing is added or taken away anywhere. */
static bool view_pad(const rondo_ir_graph *graph, const rondo__ir_node_data *node) {
    const rondo__ir_constant *pads = view_constant(graph, node, 1);
    if (!view_is_ints(pads)) return false;
    for (size_t i = 0; i < view_count(pads); i++) {
        if (view_int(pads, i) != 0) return false;
    }
    return true;
}

/* The mean or maximum of one element is that element. */
static bool view_reduce(const rondo__ir_node_data *node, const view_shape *in, const view_shape *out) {
    bool one = view_is(node, "ReduceMean") || view_is(node, "ReduceMax");
    return one && view_product(in, 0, in->rank) == view_product(out, 0, out->rank);
}

static bool view_same(const rondo_ir_graph *graph, const rondo__ir_node_data *node) {
    return node->outputs[0] != RONDO_IR_NONE && node->inputs[0] != RONDO_IR_NONE &&
           rondo__compile_same_dims(graph, node->inputs[0], node->outputs[0]);
}

bool rondo__compile_view_of(const rondo_ir_graph *graph, const rondo__ir_node_data *node, uint32_t output,
                            rondo__compile_view *out_view) {
    view_shape in, out;
    if (node->input_count == 0 || output >= node->output_count || node->inputs[0] == RONDO_IR_NONE ||
        node->outputs[output] == RONDO_IR_NONE) {
        return false;
    }
    if (!view_read_shape(graph, node->inputs[0], &in) || !view_read_shape(graph, node->outputs[output], &out)) {
        return false;
    }
    const rondo__ops_prototype *prototype = rondo__ops_lookup(graph, node->operator_name);
    if (!prototype || prototype->flags & (RONDO__OPS_CONTROL | RONDO__OPS_RANDOM)) return false;
    *out_view = (rondo__compile_view){node->inputs[0], 0};
    if (view_is(node, "Split")) return view_split(graph, node, &in, output, &out_view->offset);
    if (output != 0 || rondo__ir_value_at(graph, node->inputs[0])->type.dtype !=
                           rondo__ir_value_at(graph, node->outputs[0])->type.dtype) {
        return false;
    }
    if (prototype->flags & RONDO__OPS_VIEW) return true;
    if (view_is(node, "Identity")) return true;
    if (view_is(node, "Transpose")) return view_transpose(node, &in);
    if (view_is(node, "Slice")) return view_slice(graph, node, &in, &out, &out_view->offset);
    if (view_is(node, "Gather")) return view_gather(graph, node, &in, &out_view->offset);
    if (view_is(node, "Expand") || view_is(node, "Cast")) return view_same(graph, node);
    if (view_is(node, "Pad")) return view_pad(graph, node);
    if (view_is(node, "Concat")) return node->input_count == 1;
    return view_reduce(node, &in, &out);
}
