/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that give the same elements another shape, or tell a shape. */
#include "base/checked.h"
#include "ops/infer.h"

/* ---------------------------------------------------------------------------------------------------- Reshape */

static rondo_status shape_reshape_sizes(rondo__ops_infer *infer, int64_t *sizes, uint32_t count, int32_t *out_open) {
    const rondo_operand *input = &infer->request->inputs[0];
    bool allow_zero = rondo__ops_attribute_int(infer->request, "allowzero", 0) != 0;
    bool zero = false;
    *out_open = -1;
    for (uint32_t i = 0; i < count; i++) {
        if (sizes[i] < -1) {
            return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the new shape holds %lld", (long long)sizes[i]);
        }
        if (sizes[i] == -1) {
            if (*out_open >= 0)
                return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the new shape has two open sizes (-1)");
            *out_open = (int32_t)i;
        } else if (sizes[i] == 0 && allow_zero) {
            zero = true;
        } else if (sizes[i] == 0) {
            if ((int32_t)i >= input->rank) {
                return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT,
                                       "size %u is to be copied (0), but the input has rank %d", i, input->rank);
            }
            sizes[i] = input->dims[i];
        }
    }
    if (zero && *out_open >= 0) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "with allowzero a shape cannot hold both 0 and -1");
    }
    return RONDO_OK;
}

static rondo_status shape_infer_reshape(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    int64_t sizes[RONDO_RANK_MAX], elements, others;
    uint32_t count;
    int32_t open;
    RONDO__TRY(rondo__ops_values(infer, 1, "shape", sizes, RONDO_RANK_MAX, &count));
    RONDO__TRY(shape_reshape_sizes(infer, sizes, count, &open));
    (void)rondo__checked_elements(input->rank, input->dims, &elements); /* the request was checked */
    if (open >= 0) sizes[open] = 1;
    bool counted = rondo__checked_elements((int32_t)count, sizes, &others);
    if (open >= 0 && counted) {
        if (!others || elements % others != 0) {
            return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT,
                                   "%lld elements cannot be divided by the %lld of the sizes that are given",
                                   (long long)elements, (long long)others);
        }
        sizes[open] = elements / others;
        others = elements;
    }
    if (!counted || others != elements) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "%lld elements do not fit into the new shape",
                               (long long)elements);
    }
    rondo__ops_result(infer, 0, input->dtype, (int32_t)count, sizes);
    return RONDO_OK;
}

static const rondo__ops_operand shape_any_data[] = {{"data", RONDO__OPS_ANY, 'T', 0, 0, 0}};
static const rondo__ops_operand shape_any_input[] = {{"input", RONDO__OPS_ANY, 'T', 0, 0, 0}};
static const rondo__ops_operand shape_any_output[] = {{"output", RONDO__OPS_ANY, 'T', 0, 0, 0}};

static const rondo__ops_operand shape_reshape_inputs[] = {{"data", RONDO__OPS_ANY, 'T', 0, 0, 0},
                                                          {"shape", RONDO__OPS_BIT(I64), 0, 0, 0, 0}};
static const rondo__ops_operand shape_reshape_outputs[] = {{"reshaped", RONDO__OPS_ANY, 'T', 0, 0, 0}};
static const rondo__ops_attribute shape_reshape_attributes[] = {{"allowzero", RONDO_ATTRIBUTE_INT, 0, "0"}};
const rondo__ops_prototype rondo__ops_Reshape = {.name = "Reshape",
                                                 .summary = "The same elements in another shape",
                                                 RONDO__OPS_INPUTS(shape_reshape_inputs),
                                                 RONDO__OPS_OUTPUTS(shape_reshape_outputs),
                                                 RONDO__OPS_ATTRIBUTES(shape_reshape_attributes),
                                                 .flags = RONDO__OPS_VIEW,
                                                 .shape_inputs = 1u << 1,
                                                 .infer = shape_infer_reshape};

/* ---------------------------------------------------------------------------------------------------- Flatten */

static rondo_status shape_infer_flatten(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    int64_t axis = rondo__ops_attribute_int(infer->request, "axis", 1);
    if (axis < -(int64_t)input->rank || axis > input->rank) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "axis %lld is not within %d and %d", (long long)axis,
                               -input->rank, input->rank);
    }
    int32_t split = (int32_t)(axis < 0 ? axis + input->rank : axis);
    int64_t sizes[2];
    if (!rondo__checked_elements(split, input->dims, &sizes[0]) ||
        !rondo__checked_elements(input->rank - split, input->dims + split, &sizes[1])) {
        return RONDO__OPS_FAIL(infer, OUT_OF_RANGE, "a size of the result is too large");
    }
    rondo__ops_result(infer, 0, input->dtype, 2, sizes);
    return RONDO_OK;
}

static const rondo__ops_attribute shape_flatten_attributes[] = {{"axis", RONDO_ATTRIBUTE_INT, 0, "1"}};
const rondo__ops_prototype rondo__ops_Flatten = {
    .name = "Flatten",
    .summary = "The same elements as a matrix: the axes before `axis`, and those from it on",
    RONDO__OPS_INPUTS(shape_any_input),
    RONDO__OPS_OUTPUTS(shape_any_output),
    RONDO__OPS_ATTRIBUTES(shape_flatten_attributes),
    .flags = RONDO__OPS_VIEW,
    .infer = shape_infer_flatten};

/* ----------------------------------------------------------------------------------------- Squeeze, Unsqueeze */

static rondo_status shape_infer_squeeze(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    uint32_t mask = 0;
    bool chosen = rondo__ops_input(infer, 1) != NULL;
    if (chosen) RONDO__TRY(rondo__ops_axes(infer, 1, input->rank, true, &mask));
    int64_t dims[RONDO_RANK_MAX];
    int32_t rank = 0;
    for (int32_t i = 0; i < input->rank; i++) {
        if (chosen && mask & 1u << i && input->dims[i] != 1) {
            return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "axis %d has size %lld, only a size of 1 can go", i,
                                   (long long)input->dims[i]);
        }
        bool goes = chosen ? (mask & 1u << i) != 0 : input->dims[i] == 1;
        if (!goes) dims[rank++] = input->dims[i];
    }
    rondo__ops_result(infer, 0, input->dtype, rank, dims);
    return RONDO_OK;
}

static const rondo__ops_operand shape_squeeze_inputs[] = {{"data", RONDO__OPS_ANY, 'T', 0, 0, 0},
                                                          {"axes", RONDO__OPS_BIT(I64), 0, 1, 0, 0}};
static const rondo__ops_operand shape_squeeze_outputs[] = {{"squeezed", RONDO__OPS_ANY, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Squeeze = {
    .name = "Squeeze",
    .summary = "Without the axes of size 1 that are named, or without all of them",
    RONDO__OPS_INPUTS(shape_squeeze_inputs),
    RONDO__OPS_OUTPUTS(shape_squeeze_outputs),
    .flags = RONDO__OPS_VIEW,
    .shape_inputs = 1u << 1,
    .infer = shape_infer_squeeze};

static rondo_status shape_infer_unsqueeze(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    const rondo_operand *axes = &infer->request->inputs[1];
    uint32_t mask;
    int64_t count = axes->rank == 1 ? axes->dims[0] : axes->rank == 0;
    if (count > RONDO_RANK_MAX - input->rank) {
        return RONDO__OPS_FAIL(infer, UNSUPPORTED, "%d axes and %lld more are above the limit of %d", input->rank,
                               (long long)count, RONDO_RANK_MAX);
    }
    int32_t rank = input->rank + (int32_t)count;
    RONDO__TRY(rondo__ops_axes(infer, 1, rank, false, &mask));
    int64_t dims[RONDO_RANK_MAX];
    for (int32_t i = 0, from = 0; i < rank; i++) dims[i] = mask & 1u << i ? 1 : input->dims[from++];
    rondo__ops_result(infer, 0, input->dtype, rank, dims);
    return RONDO_OK;
}

static const rondo__ops_operand shape_unsqueeze_inputs[] = {{"data", RONDO__OPS_ANY, 'T', 0, 0, 0},
                                                            {"axes", RONDO__OPS_BIT(I64), 0, 0, 0, 0}};
static const rondo__ops_operand shape_unsqueeze_outputs[] = {{"expanded", RONDO__OPS_ANY, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Unsqueeze = {.name = "Unsqueeze",
                                                   .summary =
                                                       "With axes of size 1 put in, named as they are in the result",
                                                   RONDO__OPS_INPUTS(shape_unsqueeze_inputs),
                                                   RONDO__OPS_OUTPUTS(shape_unsqueeze_outputs),
                                                   .flags = RONDO__OPS_VIEW,
                                                   .shape_inputs = 1u << 1,
                                                   .infer = shape_infer_unsqueeze};

/* ------------------------------------------------------------------------------------------ Identity, Transpose */

const rondo__ops_prototype rondo__ops_Identity = {.name = "Identity",
                                                  .summary = "The input as it is",
                                                  RONDO__OPS_INPUTS(shape_any_input),
                                                  RONDO__OPS_OUTPUTS(shape_any_output),
                                                  .flags = RONDO__OPS_VIEW,
                                                  .infer = rondo__ops_infer_same};

static rondo_status shape_infer_transpose(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    const int64_t *order;
    RONDO__TRY(rondo__ops_ints(infer, "perm", (uint32_t)input->rank, 0, &order));
    int64_t dims[RONDO_RANK_MAX];
    uint32_t seen = 0;
    for (int32_t i = 0; i < input->rank; i++) {
        int64_t from = order ? order[i] : input->rank - 1 - i;
        if (from >= input->rank || seen & 1u << from) {
            return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute 'perm' must name each of %d axes once",
                                   input->rank);
        }
        seen |= 1u << from;
        dims[i] = input->dims[from];
    }
    rondo__ops_result(infer, 0, input->dtype, input->rank, dims);
    return RONDO_OK;
}

static const rondo__ops_operand shape_transpose_outputs[] = {{"transposed", RONDO__OPS_ANY, 'T', 0, 0, 0}};
static const rondo__ops_attribute shape_transpose_attributes[] = {{"perm", RONDO_ATTRIBUTE_INTS, 0, NULL}};
const rondo__ops_prototype rondo__ops_Transpose = {.name = "Transpose",
                                                   .summary = "The axes in another order, without `perm` in reverse",
                                                   RONDO__OPS_INPUTS(shape_any_data),
                                                   RONDO__OPS_OUTPUTS(shape_transpose_outputs),
                                                   RONDO__OPS_ATTRIBUTES(shape_transpose_attributes),
                                                   .infer = shape_infer_transpose};

/* -------------------------------------------------------------------------------------------------- Shape, Size */

static int64_t shape_clamp_axis(int64_t axis, int32_t rank) {
    if (axis < 0) axis += rank;
    return axis < 0 ? 0 : axis > rank ? rank : axis;
}

static rondo_status shape_infer_shape(rondo__ops_infer *infer) {
    int32_t rank = infer->request->inputs[0].rank;
    int64_t start = shape_clamp_axis(rondo__ops_attribute_int(infer->request, "start", 0), rank);
    int64_t end = shape_clamp_axis(rondo__ops_attribute_int(infer->request, "end", rank), rank);
    int64_t count = end > start ? end - start : 0;
    rondo__ops_result(infer, 0, RONDO_DTYPE_I64, 1, &count);
    return RONDO_OK;
}

static const rondo__ops_operand shape_shape_outputs[] = {{"shape", RONDO__OPS_BIT(I64), 0, 0, 0, 0}};
static const rondo__ops_attribute shape_shape_attributes[] = {{"end", RONDO_ATTRIBUTE_INT, 0, NULL},
                                                              {"start", RONDO_ATTRIBUTE_INT, 0, "0"}};
const rondo__ops_prototype rondo__ops_Shape = {.name = "Shape",
                                               .summary = "The sizes of the axes from `start` to before `end`",
                                               RONDO__OPS_INPUTS(shape_any_data),
                                               RONDO__OPS_OUTPUTS(shape_shape_outputs),
                                               RONDO__OPS_ATTRIBUTES(shape_shape_attributes),
                                               .infer = shape_infer_shape};

static rondo_status shape_infer_size(rondo__ops_infer *infer) {
    rondo__ops_result(infer, 0, RONDO_DTYPE_I64, 0, NULL);
    return RONDO_OK;
}

static const rondo__ops_operand shape_size_outputs[] = {{"size", RONDO__OPS_BIT(I64), 0, 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Size = {.name = "Size",
                                              .summary = "The number of elements",
                                              RONDO__OPS_INPUTS(shape_any_data),
                                              RONDO__OPS_OUTPUTS(shape_size_outputs),
                                              .infer = shape_infer_size};

/* ----------------------------------------------------------------------------------------------------- Expand */

static rondo_status shape_infer_expand(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    int64_t sizes[RONDO_RANK_MAX];
    uint32_t count;
    int32_t rank;
    RONDO__TRY(rondo__ops_values(infer, 1, "shape", sizes, RONDO_RANK_MAX, &count));
    for (uint32_t i = 0; i < count; i++) {
        if (sizes[i] >= 0) continue;
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the shape to expand to holds %lld", (long long)sizes[i]);
    }
    if (!rondo__ops_broadcast(input->rank, input->dims, (int32_t)count, sizes, &rank, sizes)) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the input cannot be expanded to the given shape");
    }
    rondo__ops_result(infer, 0, input->dtype, rank, sizes);
    return RONDO_OK;
}

static const rondo__ops_operand shape_expand_inputs[] = {{"input", RONDO__OPS_CLASSIC, 'T', 0, 0, 0},
                                                         {"shape", RONDO__OPS_BIT(I64), 0, 0, 0, 0}};
static const rondo__ops_operand shape_expand_outputs[] = {{"output", RONDO__OPS_CLASSIC, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Expand = {.name = "Expand",
                                                .summary = "Broadcast with a shape",
                                                RONDO__OPS_INPUTS(shape_expand_inputs),
                                                RONDO__OPS_OUTPUTS(shape_expand_outputs),
                                                .shape_inputs = 1u << 1,
                                                .infer = shape_infer_expand};

/* -------------------------------------------------------------------------------------------- ConstantOfShape */

static rondo_status shape_infer_constant_of_shape(rondo__ops_infer *infer) {
    int64_t sizes[RONDO_RANK_MAX], elements;
    uint32_t count;
    rondo_dtype dtype = RONDO_DTYPE_F32;
    RONDO__TRY(rondo__ops_values(infer, 0, "input", sizes, RONDO_RANK_MAX, &count));
    for (uint32_t i = 0; i < count; i++) {
        if (sizes[i] >= 0) continue;
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the shape holds %lld", (long long)sizes[i]);
    }
    const rondo_attribute *value = rondo__ops_attribute_find(infer->request, "value");
    if (value) {
        const rondo_tensor_view *view = value->value.tensor;
        dtype = view->dtype;
        bool one = view->rank >= 0 && view->rank <= RONDO_RANK_MAX && (!view->rank || view->shape) &&
                   rondo__checked_elements(view->rank, view->shape, &elements) && elements == 1;
        if (!one || dtype <= RONDO_DTYPE_UNDEFINED || dtype >= RONDO_DTYPE_COUNT ||
            !(rondo__ops_ConstantOfShape.outputs[0].types & 1u << dtype)) {
            return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute 'value' must be one number or bool");
        }
    }
    rondo__ops_result(infer, 0, dtype, (int32_t)count, sizes);
    return RONDO_OK;
}

#define SHAPE_FILL_TYPES (RONDO__OPS_ANY & ~RONDO__OPS_COMPLEX & ~RONDO__OPS_BIT(STRING))
static const rondo__ops_operand shape_constant_of_shape_inputs[] = {{"input", RONDO__OPS_BIT(I64), 0, 0, 0, 0}};
static const rondo__ops_operand shape_constant_of_shape_outputs[] = {{"output", SHAPE_FILL_TYPES, 0, 0, 0, 0}};
static const rondo__ops_attribute shape_constant_of_shape_attributes[] = {
    {"value", RONDO_ATTRIBUTE_TENSOR, 0, "0 (float32)"}};
const rondo__ops_prototype rondo__ops_ConstantOfShape = {.name = "ConstantOfShape",
                                                         .summary = "One value in every place of a shape",
                                                         RONDO__OPS_INPUTS(shape_constant_of_shape_inputs),
                                                         RONDO__OPS_OUTPUTS(shape_constant_of_shape_outputs),
                                                         RONDO__OPS_ATTRIBUTES(shape_constant_of_shape_attributes),
                                                         .shape_inputs = 1u << 0,
                                                         .infer = shape_infer_constant_of_shape};
#undef SHAPE_FILL_TYPES
