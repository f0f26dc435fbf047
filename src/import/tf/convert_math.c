/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise operators, comparisons, reductions and products. */
#include <math.h>
#include <string.h>

#include "import/tf/tf.h"

#define TF_MATH_INPUTS_MAX 3u

static bool tf_math_is_real(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_F32 || dtype == RONDO_DTYPE_F64 || dtype == RONDO_DTYPE_F16 ||
           dtype == RONDO_DTYPE_BF16;
}

static rondo_dtype tf_math_dtype(const rondo__tf_node *node) { return rondo__tf_value_at(node, 0)->dtype; }

/* An operator of one or two values on the way. */
static rondo_status tf_math_do(rondo__tf_node *node, const char *operator_name, rondo_ir_value a, rondo_ir_value b,
                               rondo_ir_value *out) {
    const rondo_ir_value inputs[2] = {a, b};
    return rondo__tf_step(node, operator_name, inputs, b == RONDO_IR_NONE ? 1 : 2, NULL, 0, out);
}

static rondo_status tf_math_end(rondo__tf_node *node, bool moved, const char *operator_name, rondo_ir_value a,
                                rondo_ir_value b) {
    const rondo_ir_value inputs[2] = {a, b};
    return rondo__tf_end_alike(node, moved, operator_name, inputs, b == RONDO_IR_NONE ? 1 : 2, NULL, 0);
}

static rondo_status tf_math_where(rondo__tf_node *node, bool moved, rondo_ir_value condition, rondo_ir_value yes,
                                  rondo_ir_value no) {
    const rondo_ir_value inputs[3] = {condition, yes, no};
    return rondo__tf_end_alike(node, moved, "Where", inputs, 3, NULL, 0);
}

static rondo_status tf_math_simple(rondo__tf_node *node, const rondo_attribute *attribute) {
    rondo_ir_value inputs[TF_MATH_INPUTS_MAX];
    bool moved;
    RONDO__TRY(rondo__tf_take_alike(node, inputs, &moved));
    return rondo__tf_end_alike(node, moved, node->row->operator_name, inputs, node->input_count, attribute,
                               attribute ? 1 : 0);
}

rondo_status rondo__tf_convert_unary(rondo__tf_node *node) { return tf_math_simple(node, NULL); }

rondo_status rondo__tf_convert_binary(rondo__tf_node *node) { return tf_math_simple(node, NULL); }

rondo_status rondo__tf_convert_leaky(rondo__tf_node *node) {
    float alpha = 0.2f;
    RONDO__TRY(rondo__tf_attr_float(node, "alpha", &alpha));
    const rondo_attribute attribute = rondo__tf_float("alpha", alpha);
    return tf_math_simple(node, &attribute);
}

rondo_status rondo__tf_convert_cast(rondo__tf_node *node) {
    bool truncate = false;
    RONDO__TRY(rondo__tf_attr_bool(node, "Truncate", &truncate));
    if (truncate) return rondo__tf_refuse(node, "attribute Truncate, which cuts bits instead of rounding");
    const rondo_attribute attribute = rondo__tf_int("to", node->outputs[0].dtype);
    return tf_math_simple(node, &attribute);
}

/* The remainder of TruncateMod has the sign of the first, that of FloorMod the sign of the second. */
rondo_status rondo__tf_convert_modulo(rondo__tf_node *node) {
    const rondo_attribute attribute = rondo__tf_int("fmod", strcmp(node->type, "FloorMod") != 0);
    return tf_math_simple(node, &attribute);
}

rondo_status rondo__tf_convert_not_equal(rondo__tf_node *node) {
    rondo_ir_value x[2];
    bool moved;
    RONDO__TRY(rondo__tf_take_alike(node, x, &moved));
    RONDO__TRY(tf_math_do(node, "Equal", x[0], x[1], &x[0]));
    return tf_math_end(node, moved, "Not", x[0], RONDO_IR_NONE);
}

rondo_status rondo__tf_convert_rsqrt(rondo__tf_node *node) {
    rondo_ir_value x;
    bool moved;
    RONDO__TRY(rondo__tf_take_alike(node, &x, &moved));
    RONDO__TRY(tf_math_do(node, "Sqrt", x, RONDO_IR_NONE, &x));
    return tf_math_end(node, moved, "Reciprocal", x, RONDO_IR_NONE);
}

rondo_status rondo__tf_convert_square(rondo__tf_node *node) {
    rondo_ir_value x;
    bool moved;
    RONDO__TRY(rondo__tf_take_alike(node, &x, &moved));
    return tf_math_end(node, moved, "Mul", x, x);
}

rondo_status rondo__tf_convert_squared_difference(rondo__tf_node *node) {
    rondo_ir_value x[2];
    bool moved;
    RONDO__TRY(rondo__tf_take_alike(node, x, &moved));
    RONDO__TRY(tf_math_do(node, "Sub", x[0], x[1], &x[0]));
    return tf_math_end(node, moved, "Mul", x[0], x[0]);
}

rondo_status rondo__tf_convert_relu6(rondo__tf_node *node) {
    rondo_ir_value x[3];
    bool moved;
    RONDO__TRY(rondo__tf_take_alike(node, x, &moved));
    RONDO__TRY(rondo__tf_number(node, tf_math_dtype(node), 0, &x[1]));
    RONDO__TRY(rondo__tf_number(node, tf_math_dtype(node), 6, &x[2]));
    return rondo__tf_end_alike(node, moved, "Clip", x, 3, NULL, 0);
}

/* exp(x) - 1 without the loss near 0: below it Elu is that function, above it 2 sinh(x / 2) exp(x / 2) is. */
rondo_status rondo__tf_convert_expm1(rondo__tf_node *node) {
    rondo_ir_value x, zero, two, half, grown, above, below;
    bool moved;
    RONDO__TRY(rondo__tf_take_alike(node, &x, &moved));
    RONDO__TRY(rondo__tf_number(node, tf_math_dtype(node), 0, &zero));
    RONDO__TRY(rondo__tf_number(node, tf_math_dtype(node), 2, &two));
    RONDO__TRY(tf_math_do(node, "Div", x, two, &half));
    RONDO__TRY(tf_math_do(node, "Exp", half, RONDO_IR_NONE, &grown));
    RONDO__TRY(tf_math_do(node, "Sinh", half, RONDO_IR_NONE, &above));
    RONDO__TRY(tf_math_do(node, "Mul", above, grown, &above));
    RONDO__TRY(tf_math_do(node, "Mul", above, two, &above));
    RONDO__TRY(tf_math_do(node, "Elu", x, RONDO_IR_NONE, &below));
    RONDO__TRY(tf_math_do(node, "Greater", x, zero, &zero));
    return tf_math_where(node, moved, zero, above, below);
}

/* log(1 + x) without the loss near 0: there it is 2 atanh(x / (x + 2)). */
rondo_status rondo__tf_convert_log1p(rondo__tf_node *node) {
    rondo_ir_value x, one, two, half, near, far, size;
    bool moved;
    RONDO__TRY(rondo__tf_take_alike(node, &x, &moved));
    RONDO__TRY(rondo__tf_number(node, tf_math_dtype(node), 1, &one));
    RONDO__TRY(rondo__tf_number(node, tf_math_dtype(node), 2, &two));
    RONDO__TRY(rondo__tf_number(node, tf_math_dtype(node), 0.5, &half));
    RONDO__TRY(tf_math_do(node, "Add", x, two, &near));
    RONDO__TRY(tf_math_do(node, "Div", x, near, &near));
    RONDO__TRY(tf_math_do(node, "Atanh", near, RONDO_IR_NONE, &near));
    RONDO__TRY(tf_math_do(node, "Mul", near, two, &near));
    RONDO__TRY(tf_math_do(node, "Add", x, one, &far));
    RONDO__TRY(tf_math_do(node, "Log", far, RONDO_IR_NONE, &far));
    RONDO__TRY(tf_math_do(node, "Abs", x, RONDO_IR_NONE, &size));
    RONDO__TRY(tf_math_do(node, "Less", size, half, &size));
    return tf_math_where(node, moved, size, near, far);
}

rondo_status rondo__tf_convert_erfc(rondo__tf_node *node) {
    rondo_ir_value x, one;
    bool moved;
    RONDO__TRY(rondo__tf_take_alike(node, &x, &moved));
    RONDO__TRY(rondo__tf_number(node, tf_math_dtype(node), 1, &one));
    RONDO__TRY(tf_math_do(node, "Erf", x, RONDO_IR_NONE, &x));
    return tf_math_end(node, moved, "Sub", one, x);
}

rondo_status rondo__tf_convert_finite(rondo__tf_node *node) {
    rondo_ir_value x, infinite;
    bool moved;
    RONDO__TRY(rondo__tf_take_alike(node, &x, &moved));
    RONDO__TRY(tf_math_do(node, "IsInf", x, RONDO_IR_NONE, &infinite));
    RONDO__TRY(tf_math_do(node, "IsNaN", x, RONDO_IR_NONE, &x));
    RONDO__TRY(tf_math_do(node, "Or", x, infinite, &x));
    return tf_math_end(node, moved, "Not", x, RONDO_IR_NONE);
}

/* Of integers (x - x mod y) / y is exact. */
rondo_status rondo__tf_convert_floor_divide(rondo__tf_node *node) {
    rondo_ir_value x[2], rest;
    bool moved;
    RONDO__TRY(rondo__tf_take_alike(node, x, &moved));
    if (tf_math_is_real(tf_math_dtype(node))) {
        RONDO__TRY(tf_math_do(node, "Div", x[0], x[1], &x[0]));
        return tf_math_end(node, moved, "Floor", x[0], RONDO_IR_NONE);
    }
    RONDO__TRY(tf_math_do(node, "Mod", x[0], x[1], &rest));
    RONDO__TRY(tf_math_do(node, "Sub", x[0], rest, &rest));
    return tf_math_end(node, moved, "Div", rest, x[1]);
}

/* DivNoNan, MulNoNan: 0 where the second is 0. */
rondo_status rondo__tf_convert_no_nan(rondo__tf_node *node) {
    rondo_ir_value x[2], zero, value, none;
    bool moved;
    RONDO__TRY(rondo__tf_take_alike(node, x, &moved));
    RONDO__TRY(rondo__tf_number(node, tf_math_dtype(node), 0, &zero));
    RONDO__TRY(tf_math_do(node, node->row->operator_name, x[0], x[1], &value));
    RONDO__TRY(tf_math_do(node, "Equal", x[1], zero, &none));
    return tf_math_where(node, moved, none, zero, value);
}

/* Select takes a condition of the same shape, a scalar, or one number a row; SelectV2 broadcasts. */
rondo_status rondo__tf_convert_select(rondo__tf_node *node) {
    rondo_ir_value x[3];
    bool moved;
    const rondo__tf_value *condition = rondo__tf_value_at(node, 0), *yes = rondo__tf_value_at(node, 1);
    node->outputs[0].rank = strcmp(node->type, "Select") == 0 ? yes->rank : node->outputs[0].rank;
    if (strcmp(node->type, "Select") != 0 || condition->rank == 0) return tf_math_simple(node, NULL);
    if (condition->rank < 0 || yes->rank < 0) return rondo__tf_refuse(node, "a condition or a value of unknown rank");
    if (condition->rank != 1 || yes->rank == 1) return tf_math_simple(node, NULL);
    for (uint32_t i = 0; i < 3; i++) RONDO__TRY(rondo__tf_take(node, i, &x[i]));
    int64_t axes[RONDO_RANK_MAX];
    for (int32_t i = 1; i < yes->rank; i++) axes[i - 1] = i;
    RONDO__TRY(rondo__tf_axes(node, "Unsqueeze", x[0], axes, (uint32_t)yes->rank - 1u, &x[0]));
    moved = false;
    return tf_math_where(node, moved, x[0], x[1], x[2]);
}

rondo_status rondo__tf_convert_clip(rondo__tf_node *node) {
    rondo_ir_value x[3];
    bool moved;
    RONDO__TRY(rondo__tf_take_alike(node, x, &moved));
    RONDO__TRY(tf_math_do(node, "Max", x[0], x[1], &x[0]));
    return tf_math_end(node, moved, "Min", x[0], x[2]);
}

rondo_status rondo__tf_convert_add_n(rondo__tf_node *node) {
    rondo_ir_value sum, next;
    if (node->input_count == 1) return rondo__tf_convert_same(node);
    RONDO__TRY(rondo__tf_take(node, 0, &sum));
    for (uint32_t i = 1; i + 1 < node->input_count; i++) {
        RONDO__TRY(rondo__tf_take(node, i, &next));
        RONDO__TRY(tf_math_do(node, "Add", sum, next, &sum));
    }
    RONDO__TRY(rondo__tf_take(node, node->input_count - 1, &next));
    return tf_math_end(node, false, "Add", sum, next);
}

/* --------------------------------------------------------------------------------------------------- reductions */

/* Where an axis of TensorFlow's is when the channels are in second place. */
static const int64_t tf_math_moved_axis[4] = {0, 2, 3, 1};

/* Whether the axes are known, come once each, and what is left stands in the same order either way. */
static bool tf_math_reduces_moved(const rondo__tf_node *node, bool keep, int64_t *axes, uint32_t count) {
    const rondo__tf_value *value = rondo__tf_value_at(node, 0);
    uint32_t seen = 0;
    if (value->moved == RONDO_IR_NONE) return false;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + 4 : axes[i];
        if (axis < 0 || axis > 3 || seen >> axis & 1u) return false;
        seen |= 1u << axis;
        axes[i] = tf_math_moved_axis[axis];
    }
    return keep || seen >> 3 & 1u || (seen & 6u) == 6u;
}

static rondo_status tf_math_reduce(rondo__tf_node *node, bool keep, const rondo_attribute *attributes) {
    rondo_ir_value x[2];
    int64_t axes[RONDO_RANK_MAX];
    uint32_t count = 0;
    const bool known = rondo__tf_constant_at(node, 1) != NULL;
    if (known) RONDO__TRY(rondo__tf_take_ints(node, 1, NULL, axes, &count));
    const int32_t rank = rondo__tf_value_at(node, 0)->rank;
    if (rank >= 0 && (keep || known)) node->outputs[0].rank = keep ? rank : rank - (int32_t)count;
    if (node->outputs[0].rank < -1) return RONDO__TF_CORRUPT(node, "%u axes of %d", count, rank);
    if (known && tf_math_reduces_moved(node, keep, axes, count)) {
        RONDO__TRY(rondo__tf_take_moved(node, 0, &x[0]));
        RONDO__TRY(rondo__tf_list(node, axes, count, &x[1]));
        return rondo__tf_end_alike(node, keep, node->row->operator_name, x, 2, attributes, 2);
    }
    RONDO__TRY(rondo__tf_take(node, 0, &x[0]));
    RONDO__TRY(rondo__tf_take_list(node, 1, &x[1]));
    return rondo__tf_end(node, node->row->operator_name, x, 2, attributes, 2);
}

/* No axes are none here, as in TensorFlow. */
rondo_status rondo__tf_convert_reduce(rondo__tf_node *node) {
    bool keep = false;
    RONDO__TRY(rondo__tf_attr_bool(node, "keep_dims", &keep));
    const rondo_attribute attributes[2] = {rondo__tf_int("keepdims", keep), rondo__tf_int("noop_with_empty_axes", 1)};
    return tf_math_reduce(node, keep, attributes);
}

rondo_status rondo__tf_convert_arg(rondo__tf_node *node) {
    rondo_ir_value x;
    int64_t axis;
    rondo_dtype dtype = RONDO_DTYPE_I64;
    RONDO__TRY(rondo__tf_attr_type(node, "output_type", &dtype));
    RONDO__TRY(rondo__tf_take_int(node, 1, "an axis that is not a constant", &axis));
    if (node->refused) return RONDO_OK;
    if (dtype == RONDO_DTYPE_UNDEFINED) return rondo__tf_refuse(node, "a type of elements that is not supported");
    const int32_t rank = rondo__tf_value_at(node, 0)->rank;
    node->outputs[0] = (rondo__tf_value){RONDO_IR_NONE, RONDO_IR_NONE, dtype, rank > 0 ? rank - 1 : -1};
    const rondo_attribute attributes[2] = {rondo__tf_int("axis", axis), rondo__tf_int("keepdims", 0)};
    RONDO__TRY(rondo__tf_take(node, 0, &x));
    if (dtype == RONDO_DTYPE_I64) return rondo__tf_end(node, node->row->operator_name, &x, 1, attributes, 2);
    RONDO__TRY(rondo__tf_step(node, node->row->operator_name, &x, 1, attributes, 2, &x));
    const rondo_attribute to = rondo__tf_int("to", dtype);
    return rondo__tf_end(node, "Cast", &x, 1, &to, 1);
}

rondo_status rondo__tf_convert_cumulate(rondo__tf_node *node) {
    rondo_ir_value x[2];
    bool exclusive = false, reverse = false;
    RONDO__TRY(rondo__tf_attr_bool(node, "exclusive", &exclusive));
    RONDO__TRY(rondo__tf_attr_bool(node, "reverse", &reverse));
    for (uint32_t i = 0; i < 2; i++) RONDO__TRY(rondo__tf_take(node, i, &x[i]));
    const rondo_attribute attributes[2] = {rondo__tf_int("exclusive", exclusive), rondo__tf_int("reverse", reverse)};
    return rondo__tf_end(node, node->row->operator_name, x, 2, attributes, 2);
}

rondo_status rondo__tf_convert_l2_loss(rondo__tf_node *node) {
    rondo_ir_value x[2];
    const rondo_attribute attribute = rondo__tf_int("keepdims", 0);
    RONDO__TRY(rondo__tf_take(node, 0, &x[0]));
    RONDO__TRY(rondo__tf_step(node, "ReduceSumSquare", x, 1, &attribute, 1, &x[0]));
    RONDO__TRY(rondo__tf_number(node, tf_math_dtype(node), 2, &x[1]));
    node->outputs[0].rank = 0;
    return rondo__tf_end(node, "Div", x, 2, NULL, 0);
}

/* Along the last axis, which is that of the channels. */
rondo_status rondo__tf_convert_softmax(rondo__tf_node *node) {
    rondo_ir_value x;
    bool moved;
    RONDO__TRY(rondo__tf_take_alike(node, &x, &moved));
    const rondo_attribute axis = rondo__tf_int("axis", moved ? 1 : -1);
    return rondo__tf_end_alike(node, moved, node->row->operator_name, &x, 1, &axis, 1);
}

/* ----------------------------------------------------------------------------------------------------- products */

static rondo_status tf_math_factor(rondo__tf_node *node, uint32_t input, bool turned, rondo_ir_value *out) {
    int64_t perm[RONDO_RANK_MAX];
    const int32_t rank = rondo__tf_value_at(node, input)->rank;
    RONDO__TRY(rondo__tf_take(node, input, out));
    if (!turned) return RONDO_OK;
    if (rank < 0) return rondo__tf_refuse(node, "a factor of unknown rank that is to be transposed");
    if (rank < 2) return RONDO__TF_CORRUPT(node, "a factor of %d axes", rank);
    for (int32_t i = 0; i < rank; i++) perm[i] = i;
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    return rondo__tf_transpose(node, *out, perm, (uint32_t)rank, out);
}

rondo_status rondo__tf_convert_matmul(rondo__tf_node *node) {
    static const char *const names[2][2] = {{"transpose_a", "transpose_b"}, {"adj_x", "adj_y"}};
    const bool batch = strncmp(node->type, "Batch", 5) == 0;
    rondo_ir_value x[2];
    rondo_dtype right = RONDO_DTYPE_UNDEFINED;
    RONDO__TRY(rondo__tf_attr_type(node, "Tb", &right));
    if (right != RONDO_DTYPE_UNDEFINED && (right != tf_math_dtype(node) || right != node->outputs[0].dtype))
        return rondo__tf_refuse(node, "factors of different types");
    for (uint32_t i = 0; i < 2; i++) {
        bool turned = false;
        RONDO__TRY(rondo__tf_attr_bool(node, names[batch][i], &turned));
        if (!batch && rondo__tf_value_at(node, i)->rank < 0) rondo__tf_value_at(node, i)->rank = 2;
        RONDO__TRY(tf_math_factor(node, i, turned, &x[i]));
        if (node->refused) return RONDO_OK;
    }
    if (!batch) node->outputs[0].rank = 2;
    return rondo__tf_end(node, "MatMul", x, 2, NULL, 0);
}
