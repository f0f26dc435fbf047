/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources, and operators that give another shape or say what the shape is. */
#include <string.h>

#include "import/tf/tf.h"

/* ------------------------------------------------------------------------------------------------------ sources */

static rondo_status tf_shape_named(rondo__tf_node *node, const rondo__ir_type *type, rondo_ir_value *out) {
    RONDO__TRY(rondo__ir_value_add(node->context->graph, node->name, NULL, type, out));
    node->outputs[0].plain = *out;
    return RONDO_OK;
}

rondo_status rondo__tf_convert_placeholder(rondo__tf_node *node) {
    int64_t dims[RONDO_RANK_MAX];
    rondo__ir_dim open[RONDO_RANK_MAX];
    rondo__ir_type type = {.dtype = node->outputs[0].dtype};
    rondo_ir_value value;
    RONDO__TRY(rondo__tf_attr_shape(node, "shape", &type.rank, dims));
    for (int32_t i = 0; i < type.rank; i++) {
        const bool known = dims[i] >= 0;
        open[i] = (rondo__ir_dim){dims[i], NULL, known ? dims[i] : 0, known ? dims[i] : INT64_MAX};
    }
    type.dims = open;
    node->outputs[0].rank = type.rank;
    RONDO__TRY(tf_shape_named(node, &type, &value));
    return rondo__ir_input_add(node->context->graph, value);
}

rondo_status rondo__tf_convert_const(rondo__tf_node *node) {
    const rondo__ir_constant *constant;
    rondo__ir_type type;
    rondo_ir_value value;
    RONDO__TRY(rondo__tf_attr_tensor(node, "value", &constant));
    if (node->refused) return RONDO_OK;
    if (constant->dtype != node->outputs[0].dtype)
        return RONDO__TF_CORRUPT(node, "it says that it is %s, but its value is %s",
                                 rondo_dtype_name(node->outputs[0].dtype), rondo_dtype_name(constant->dtype));
    RONDO__TRY(rondo__ir_type_from_dims(node->context->graph, constant->dtype, constant->rank, constant->dims, &type));
    RONDO__TRY(tf_shape_named(node, &type, &value));
    rondo__ir_value_at(node->context->graph, value)->constant = constant;
    node->outputs[0].rank = constant->rank;
    return RONDO_OK;
}

/* Its inputs are its outputs. */
rondo_status rondo__tf_convert_same(rondo__tf_node *node) {
    for (uint32_t i = 0; i < node->output_count; i++) node->outputs[i] = *rondo__tf_value_at(node, i);
    return RONDO_OK;
}

/* It has effects only, and none that counts here. */
rondo_status rondo__tf_convert_nothing(rondo__tf_node *node) {
    (void)node;
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------- reshape */

/* How many numbers a list has, as far as that is known: the rank of what it is a shape of. */
static int32_t tf_shape_length(const rondo__tf_node *node, uint32_t input) {
    const rondo__ir_constant *constant = rondo__tf_constant_at(node, input);
    return constant && constant->rank == 1 && constant->dims[0] <= RONDO_RANK_MAX ? (int32_t)constant->dims[0] : -1;
}

rondo_status rondo__tf_convert_reshape(rondo__tf_node *node) {
    rondo_ir_value x[2];
    const rondo_attribute zero = rondo__tf_int("allowzero", 1); /* a 0 is a size */
    node->outputs[0].rank = tf_shape_length(node, 1);
    RONDO__TRY(rondo__tf_take(node, 0, &x[0]));
    RONDO__TRY(rondo__tf_take_list(node, 1, &x[1]));
    return rondo__tf_end(node, "Reshape", x, 2, &zero, 1);
}

static bool tf_shape_is(const int64_t *perm, uint32_t count, int64_t a, int64_t b, int64_t c, int64_t d) {
    return count == 4 && perm[0] == a && perm[1] == b && perm[2] == c && perm[3] == d;
}

/* A model's own turns between the two places of channels cost nothing. */
rondo_status rondo__tf_convert_transpose(rondo__tf_node *node) {
    rondo_ir_value x;
    int64_t perm[RONDO_RANK_MAX];
    uint32_t count;
    RONDO__TRY(rondo__tf_take_ints(node, 1, "a permutation that is not a constant", perm, &count));
    if (node->refused) return RONDO_OK;
    const rondo__tf_value *value = rondo__tf_value_at(node, 0);
    node->outputs[0].rank = (int32_t)count;
    if (tf_shape_is(perm, count, 0, 3, 1, 2) && value->moved != RONDO_IR_NONE) {
        rondo__tf_alias(node, 0, value->moved);
        return RONDO_OK;
    }
    RONDO__TRY(rondo__tf_take(node, 0, &x));
    if (tf_shape_is(perm, count, 0, 2, 3, 1)) {
        rondo__tf_end_moved(node, x);
        return RONDO_OK;
    }
    const rondo_attribute attribute = rondo__tf_ints("perm", perm, count);
    return rondo__tf_end(node, "Transpose", &x, 1, &attribute, 1);
}

rondo_status rondo__tf_convert_expand_dims(rondo__tf_node *node) {
    rondo_ir_value x[2];
    const int32_t rank = rondo__tf_value_at(node, 0)->rank;
    node->outputs[0].rank = rank < 0 ? -1 : rank + 1;
    RONDO__TRY(rondo__tf_take(node, 0, &x[0]));
    RONDO__TRY(rondo__tf_take_list(node, 1, &x[1]));
    return rondo__tf_end(node, "Unsqueeze", x, 2, NULL, 0);
}

rondo_status rondo__tf_convert_squeeze(rondo__tf_node *node) {
    rondo_ir_value x[2];
    int64_t axes[RONDO_RANK_MAX];
    uint32_t count = 0;
    RONDO__TRY(rondo__tf_attr_ints(node, "squeeze_dims", RONDO_RANK_MAX, axes, &count));
    const rondo__tf_value *value = rondo__tf_value_at(node, 0);
    node->outputs[0].rank = count && value->rank >= (int32_t)count ? value->rank - (int32_t)count : -1;
    /* Behind a pool over a whole picture: what is left is in the same order either way. */
    const bool spatial = count == 2 && value->moved != RONDO_IR_NONE &&
                         ((axes[0] == 1 && axes[1] == 2) || (axes[0] == -3 && axes[1] == -2));
    if (spatial) {
        axes[0] = 2;
        axes[1] = 3;
        RONDO__TRY(rondo__tf_take_moved(node, 0, &x[0]));
    } else {
        RONDO__TRY(rondo__tf_take(node, 0, &x[0]));
    }
    if (count) RONDO__TRY(rondo__tf_list(node, axes, count, &x[1]));
    return rondo__tf_end(node, "Squeeze", x, count ? 2 : 1, NULL, 0);
}

rondo_status rondo__tf_convert_broadcast_to(rondo__tf_node *node) {
    rondo_ir_value x[2];
    node->outputs[0].rank = tf_shape_length(node, 1);
    RONDO__TRY(rondo__tf_take(node, 0, &x[0]));
    RONDO__TRY(rondo__tf_take_list(node, 1, &x[1]));
    return rondo__tf_end(node, "Expand", x, 2, NULL, 0);
}

rondo_status rondo__tf_convert_fill(rondo__tf_node *node) {
    rondo_ir_value x[2];
    node->outputs[0].rank = tf_shape_length(node, 0);
    RONDO__TRY(rondo__tf_take(node, 1, &x[0]));
    RONDO__TRY(rondo__tf_take_list(node, 0, &x[1]));
    return rondo__tf_end(node, "Expand", x, 2, NULL, 0);
}

/* ZerosLike, OnesLike. */
rondo_status rondo__tf_convert_like(rondo__tf_node *node) {
    rondo_ir_value x[2];
    RONDO__TRY(rondo__tf_take(node, 0, &x[1]));
    RONDO__TRY(rondo__tf_step(node, "Shape", &x[1], 1, NULL, 0, &x[1]));
    RONDO__TRY(rondo__tf_number(node, node->outputs[0].dtype, strcmp(node->type, "OnesLike") == 0, &x[0]));
    return rondo__tf_end(node, "Expand", x, 2, NULL, 0);
}

/* ---------------------------------------------------------------------------------------------------- shapes told */

/* The prototypes tell sizes as int64, TensorFlow mostly as int32. */
static rondo_status tf_shape_told(rondo__tf_node *node, uint32_t output, rondo_ir_value value, rondo_dtype dtype) {
    node->outputs[output].dtype = dtype;
    if (dtype != RONDO_DTYPE_I32 && dtype != RONDO_DTYPE_I64)
        return rondo__tf_refuse(node, "sizes that are neither int32 nor int64");
    RONDO__TRY(rondo__tf_cast(node, value, RONDO_DTYPE_I64, dtype, &value));
    rondo__tf_alias(node, output, value);
    return RONDO_OK;
}

rondo_status rondo__tf_convert_shape(rondo__tf_node *node) {
    rondo_dtype dtype = RONDO_DTYPE_I32;
    RONDO__TRY(rondo__tf_attr_type(node, "out_type", &dtype));
    for (uint32_t i = 0; i < node->output_count && !node->refused; i++) {
        rondo_ir_value x;
        RONDO__TRY(rondo__tf_take(node, i, &x));
        RONDO__TRY(rondo__tf_step(node, "Shape", &x, 1, NULL, 0, &x));
        node->outputs[i].rank = 1;
        RONDO__TRY(tf_shape_told(node, i, x, dtype));
    }
    return RONDO_OK;
}

rondo_status rondo__tf_convert_size(rondo__tf_node *node) {
    rondo_dtype dtype = RONDO_DTYPE_I32;
    rondo_ir_value x;
    RONDO__TRY(rondo__tf_attr_type(node, "out_type", &dtype));
    RONDO__TRY(rondo__tf_take(node, 0, &x));
    RONDO__TRY(rondo__tf_step(node, "Size", &x, 1, NULL, 0, &x));
    node->outputs[0].rank = 0;
    return tf_shape_told(node, 0, x, dtype);
}

rondo_status rondo__tf_convert_rank(rondo__tf_node *node) {
    rondo_ir_value x;
    RONDO__TRY(rondo__tf_take(node, 0, &x));
    RONDO__TRY(rondo__tf_step(node, "Shape", &x, 1, NULL, 0, &x));
    RONDO__TRY(rondo__tf_step(node, "Size", &x, 1, NULL, 0, &x));
    node->outputs[0].rank = 0;
    return tf_shape_told(node, 0, x, RONDO_DTYPE_I32);
}

/* ------------------------------------------------------------------------------------------------ joining, cutting */

rondo_status rondo__tf_convert_concat(rondo__tf_node *node) {
    static const int64_t moved_axis[4] = {0, 2, 3, 1};
    const bool first = strcmp(node->type, "Concat") == 0; /* the old form has its axis in front */
    const uint32_t parts = node->input_count - 1, start = first ? 1 : 0;
    int64_t axis, given = parts;
    RONDO__TRY(rondo__tf_attr_int(node, "N", &given));
    if (given != parts) return RONDO__TF_CORRUPT(node, "%u parts, but N is %lld", parts, (long long)given);
    RONDO__TRY(rondo__tf_take_int(node, first ? 0 : parts, "an axis that is not a constant", &axis));
    if (node->refused) return RONDO_OK;
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&node->context->scratch, parts, sizeof(rondo_ir_value), &memory));
    rondo_ir_value *values = memory;
    bool moved = false, four = true;
    for (uint32_t i = 0; i < parts; i++) {
        const rondo__tf_value *value = rondo__tf_value_at(node, start + i);
        moved = moved || value->moved != RONDO_IR_NONE;
        four = four && value->rank == 4;
    }
    moved = moved && four && axis >= -4 && axis < 4;
    for (uint32_t i = 0; i < parts; i++)
        RONDO__TRY(moved ? rondo__tf_take_moved(node, start + i, &values[i])
                         : rondo__tf_take(node, start + i, &values[i]));
    node->outputs[0].rank = rondo__tf_value_at(node, start)->rank;
    const rondo_attribute attribute = rondo__tf_int("axis", moved ? moved_axis[axis < 0 ? axis + 4 : axis] : axis);
    return rondo__tf_end_alike(node, moved, "Concat", values, parts, &attribute, 1);
}

/* Of the sizes one may be open, -1: what the others leave. */
static rondo_status tf_shape_part_sizes(rondo__tf_node *node, rondo_ir_value value, int64_t axis, rondo_ir_value *out) {
    int64_t sizes[RONDO_RANK_MAX];
    uint32_t count, open = UINT32_MAX;
    int64_t others = 0;
    if (tf_shape_length(node, 1) < 0) return rondo__tf_take_list(node, 1, out);
    RONDO__TRY(rondo__tf_take_ints(node, 1, NULL, sizes, &count));
    for (uint32_t i = 0; i < count; i++) {
        if (sizes[i] == -1 && open == UINT32_MAX) open = i;
        else if (sizes[i] < 0 || sizes[i] > INT32_MAX)
            return RONDO__TF_CORRUPT(node, "a part of %lld", (long long)sizes[i]);
        else others += sizes[i];
    }
    if (open == UINT32_MAX) return rondo__tf_take_list(node, 1, out);
    rondo_attribute part[2] = {rondo__tf_int("start", axis), rondo__tf_int("end", axis + 1)};
    const rondo_attribute along = rondo__tf_int("axis", 0);
    rondo_ir_value x[2], parts[3];
    uint32_t used = 0;
    RONDO__TRY(rondo__tf_step(node, "Shape", &value, 1, part, axis == -1 ? 1 : 2, &x[0]));
    RONDO__TRY(rondo__tf_list(node, &others, 1, &x[1]));
    if (open) RONDO__TRY(rondo__tf_list(node, sizes, open, &parts[used++]));
    RONDO__TRY(rondo__tf_step(node, "Sub", x, 2, NULL, 0, &parts[used++]));
    if (open + 1 < count) RONDO__TRY(rondo__tf_list(node, sizes + open + 1, count - open - 1, &parts[used++]));
    return rondo__tf_step(node, "Concat", parts, used, &along, 1, out);
}

rondo_status rondo__tf_convert_split(rondo__tf_node *node) {
    const bool sized = strcmp(node->type, "SplitV") == 0; /* value, sizes, axis; else axis, value */
    rondo_ir_value x[2];
    int64_t axis;
    RONDO__TRY(rondo__tf_take_int(node, sized ? 2 : 0, "an axis that is not a constant", &axis));
    if (node->refused) return RONDO_OK;
    for (uint32_t i = 0; i < node->output_count; i++)
        node->outputs[i].rank = rondo__tf_value_at(node, sized ? 0 : 1)->rank;
    RONDO__TRY(rondo__tf_take(node, sized ? 0 : 1, &x[0]));
    if (sized) RONDO__TRY(tf_shape_part_sizes(node, x[0], axis, &x[1]));
    const rondo_attribute attributes[2] = {rondo__tf_int("axis", axis),
                                           rondo__tf_int("num_outputs", node->output_count)};
    return rondo__tf_end(node, "Split", x, sized ? 2 : 1, attributes, sized ? 1 : 2);
}

/* A list of numbers that are known: written out, since steps and axes must be constants. */
static rondo_status tf_shape_pack_known(rondo__tf_node *node, bool *out_done) {
    int64_t values[RONDO_RANK_MAX];
    int32_t narrow[RONDO_RANK_MAX];
    const int64_t count = node->input_count;
    const rondo_dtype dtype = rondo__tf_value_at(node, 0)->dtype;
    *out_done = false;
    if (count > RONDO_RANK_MAX || (dtype != RONDO_DTYPE_I32 && dtype != RONDO_DTYPE_I64)) return RONDO_OK;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const rondo__ir_constant *constant = rondo__tf_constant_at(node, i);
        if (!constant || constant->rank || constant->dtype != dtype) return RONDO_OK;
        RONDO__TRY(rondo__tf_take_int(node, i, NULL, &values[i]));
        narrow[i] = (int32_t)values[i];
    }
    *out_done = true;
    node->outputs[0].rank = 1;
    return rondo__ir_constant_add(node->context->graph, node->name, NULL, dtype, 1, &count,
                                  dtype == RONDO_DTYPE_I64 ? (const void *)values : (const void *)narrow,
                                  &node->outputs[0].plain);
}

rondo_status rondo__tf_convert_pack(rondo__tf_node *node) {
    int64_t axis = 0;
    bool done;
    RONDO__TRY(tf_shape_pack_known(node, &done));
    if (done) return RONDO_OK;
    void *memory = NULL;
    RONDO__TRY(rondo__tf_attr_int(node, "axis", &axis));
    RONDO__TRY(
        rondo__arena_allocate_array(&node->context->scratch, node->input_count, sizeof(rondo_ir_value), &memory));
    rondo_ir_value *values = memory;
    for (uint32_t i = 0; i < node->input_count; i++) {
        RONDO__TRY(rondo__tf_take(node, i, &values[i]));
        RONDO__TRY(rondo__tf_axes(node, "Unsqueeze", values[i], &axis, 1, &values[i]));
    }
    const int32_t rank = rondo__tf_value_at(node, 0)->rank;
    node->outputs[0].rank = rank < 0 ? -1 : rank + 1;
    const rondo_attribute attribute = rondo__tf_int("axis", axis);
    return rondo__tf_end(node, "Concat", values, node->input_count, &attribute, 1);
}

rondo_status rondo__tf_convert_unpack(rondo__tf_node *node) {
    int64_t axis = 0;
    void *memory = NULL;
    rondo_ir_value x;
    RONDO__TRY(rondo__tf_attr_int(node, "axis", &axis));
    RONDO__TRY(
        rondo__arena_allocate_array(&node->context->scratch, node->output_count, sizeof(rondo_ir_value), &memory));
    rondo_ir_value *parts = memory;
    RONDO__TRY(rondo__tf_take(node, 0, &x));
    const rondo_attribute attributes[2] = {rondo__tf_int("axis", axis),
                                           rondo__tf_int("num_outputs", node->output_count)};
    RONDO__TRY(rondo__tf_steps(node, "Split", &x, 1, attributes, 2, parts, node->output_count));
    const int32_t rank = rondo__tf_value_at(node, 0)->rank;
    for (uint32_t i = 0; i < node->output_count; i++) {
        RONDO__TRY(rondo__tf_axes(node, "Squeeze", parts[i], &axis, 1, &parts[i]));
        rondo__tf_alias(node, i, parts[i]);
        node->outputs[i].rank = rank > 0 ? rank - 1 : -1;
    }
    return RONDO_OK;
}

rondo_status rondo__tf_convert_tile(rondo__tf_node *node) {
    rondo_ir_value x[2];
    RONDO__TRY(rondo__tf_take(node, 0, &x[0]));
    RONDO__TRY(rondo__tf_take_list(node, 1, &x[1]));
    return rondo__tf_end(node, "Tile", x, 2, NULL, 0);
}

/* Two numbers an axis here; there first all fronts, then all ends. */
static rondo_status tf_shape_pads(rondo__tf_node *node, rondo_ir_value *out) {
    static const int64_t turned[] = {1, 0}, all = -1;
    const rondo__tf_value *value = rondo__tf_value_at(node, 1);
    rondo_ir_value x[2];
    RONDO__TRY(rondo__tf_take(node, 1, &x[0]));
    RONDO__TRY(rondo__tf_cast(node, x[0], value->dtype, RONDO_DTYPE_I64, &x[0]));
    RONDO__TRY(rondo__tf_transpose(node, x[0], turned, 2, &x[0]));
    RONDO__TRY(rondo__tf_list(node, &all, 1, &x[1]));
    return rondo__tf_step(node, "Reshape", x, 2, NULL, 0, out);
}

/* The same when the paddings are known and the channels are in second place. */
static rondo_status tf_shape_pads_moved(rondo__tf_node *node, const rondo__ir_constant *pads, rondo_ir_value *out) {
    static const uint32_t axes[4] = {0, 3, 1, 2};
    int64_t values[8];
    for (uint32_t i = 0; i < 8; i++) {
        const uint32_t at = 2 * axes[i % 4] + i / 4;
        values[i] =
            pads->dtype == RONDO_DTYPE_I64 ? ((const int64_t *)pads->data)[at] : ((const int32_t *)pads->data)[at];
    }
    return rondo__tf_list(node, values, 8, out);
}

rondo_status rondo__tf_convert_pad(rondo__tf_node *node) {
    const char *mode = NULL;
    rondo_ir_value x[3];
    RONDO__TRY(rondo__tf_attr_text(node, "mode", &mode));
    if (mode && strcmp(mode, "REFLECT") != 0) return rondo__tf_refuse(node, "a mode of padding other than REFLECT");
    const rondo__ir_constant *pads = rondo__tf_constant_at(node, 1);
    const bool moved = rondo__tf_value_at(node, 0)->moved != RONDO_IR_NONE && pads && pads->rank == 2 &&
                       pads->dims[0] == 4 && pads->dims[1] == 2 &&
                       (pads->dtype == RONDO_DTYPE_I32 || pads->dtype == RONDO_DTYPE_I64);
    if (moved) {
        RONDO__TRY(rondo__tf_take_moved(node, 0, &x[0]));
        RONDO__TRY(tf_shape_pads_moved(node, pads, &x[1]));
    } else {
        RONDO__TRY(rondo__tf_take(node, 0, &x[0]));
        RONDO__TRY(tf_shape_pads(node, &x[1]));
    }
    if (node->input_count > 2) RONDO__TRY(rondo__tf_take(node, 2, &x[2]));
    const rondo_attribute attribute =
        mode ? rondo__tf_text("mode", "reflect", 7) : rondo__tf_text("mode", "constant", 8);
    return rondo__tf_end_alike(node, moved, "Pad", x, node->input_count, &attribute, 1);
}

rondo_status rondo__tf_convert_range(rondo__tf_node *node) {
    rondo_ir_value x[3];
    for (uint32_t i = 0; i < 3; i++) RONDO__TRY(rondo__tf_take(node, i, &x[i]));
    node->outputs[0].rank = 1;
    return rondo__tf_end(node, "Range", x, 3, NULL, 0);
}
