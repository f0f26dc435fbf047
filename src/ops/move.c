/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that cut, join, pick and pad. */
#include <string.h>

#include "base/checked.h"
#include "ops/infer.h"

/* ----------------------------------------------------------------------------------------------------- Concat */

static rondo_status move_infer_concat(rondo__ops_infer *infer) {
    const rondo_operand *first = &infer->request->inputs[0];
    int64_t dims[RONDO_RANK_MAX];
    int32_t axis;
    RONDO__TRY(rondo__ops_axis(infer, "axis", rondo__ops_attribute_int(infer->request, "axis", 0), first->rank, &axis));
    for (int32_t i = 0; i < first->rank; i++) dims[i] = first->dims[i];
    for (uint32_t n = 1; n < infer->request->input_count; n++) {
        const rondo_operand *input = &infer->request->inputs[n];
        bool fits = input->rank == first->rank;
        for (int32_t i = 0; fits && i < first->rank; i++) fits = i == axis || input->dims[i] == dims[i];
        if (!fits) {
            return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input %u differs from the first elsewhere than on axis %d",
                                   n, axis);
        }
        if (!rondo__checked_add_i64(dims[axis], input->dims[axis], &dims[axis])) {
            return RONDO__OPS_FAIL(infer, OUT_OF_RANGE, "the result is too long");
        }
    }
    rondo__ops_result(infer, 0, first->dtype, first->rank, dims);
    return RONDO_OK;
}

static const rondo__ops_operand move_concat_inputs[] = {{"inputs", RONDO__OPS_CLASSIC, 'T', 0, 1, 0}};
static const rondo__ops_operand move_concat_outputs[] = {{"concat_result", RONDO__OPS_CLASSIC, 'T', 0, 0, 0}};
static const rondo__ops_attribute move_concat_attributes[] = {{"axis", RONDO_ATTRIBUTE_INT, 1, NULL}};
const rondo__ops_prototype rondo__ops_Concat = {.name = "Concat",
                                                .summary = "The inputs one after the other along an axis",
                                                RONDO__OPS_INPUTS(move_concat_inputs),
                                                RONDO__OPS_OUTPUTS(move_concat_outputs),
                                                RONDO__OPS_ATTRIBUTES(move_concat_attributes),
                                                .infer = move_infer_concat};

/* ------------------------------------------------------------------------------------------------------ Split */

static rondo_status move_split_even(rondo__ops_infer *infer, int64_t size, uint32_t parts, int64_t *out_part) {
    int64_t part = size / parts + (size % parts != 0);
    int64_t before; /* taken by all parts but the last */
    if (!rondo__checked_mul_i64(part, (int64_t)parts - 1, &before) || before > size) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "a size of %lld cannot be split into %u parts of %lld",
                               (long long)size, parts, (long long)part);
    }
    *out_part = part;
    return RONDO_OK;
}

/* The size of one part: from input 'split', element by element, so that any number of parts needs no memory. */
static rondo_status move_split_given(rondo__ops_infer *infer, int64_t size, uint32_t parts) {
    const rondo_operand *split = &infer->request->inputs[1];
    if (split->rank != 1 || split->dims[0] != (int64_t)parts) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input 'split' must be a list of %u sizes, one an output",
                               parts);
    }
    if (!split->constant) {
        infer->needs_value_of = "split";
        return RONDO__OPS_FAIL(infer, UNSUPPORTED,
                               "the shape of the result depends on the value of input 'split', "
                               "which is only known when the model runs");
    }
    const int64_t *sizes = split->constant;
    int64_t sum = 0;
    for (uint32_t i = 0; i < parts; i++) {
        if (sizes[i] < 0 || !rondo__checked_add_i64(sum, sizes[i], &sum)) {
            return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input 'split' holds %lld", (long long)sizes[i]);
        }
    }
    if (sum != size) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the sizes in 'split' add up to %lld, the axis has %lld",
                               (long long)sum, (long long)size);
    }
    return RONDO_OK;
}

static rondo_status move_infer_split(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    const rondo_operand *split = rondo__ops_input(infer, 1);
    uint32_t parts = infer->request->output_count;
    const rondo_attribute *number = rondo__ops_attribute_find(infer->request, "num_outputs");
    int64_t dims[RONDO_RANK_MAX], part = 0;
    int32_t axis;
    RONDO__TRY(rondo__ops_axis(infer, "axis", rondo__ops_attribute_int(infer->request, "axis", 0), input->rank, &axis));
    int64_t size = input->dims[axis];
    if ((number != NULL) == (split != NULL)) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "either input 'split' or attribute 'num_outputs' is needed");
    }
    if (number && number->value.i != (int64_t)parts) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute 'num_outputs' is %lld, but there are %u outputs",
                               (long long)number->value.i, parts);
    }
    if (number) RONDO__TRY(move_split_even(infer, size, parts, &part));
    if (split) RONDO__TRY(move_split_given(infer, size, parts));
    for (int32_t i = 0; i < input->rank; i++) dims[i] = input->dims[i];
    for (uint32_t i = 0; i < parts; i++) {
        if (split) {
            dims[axis] = ((const int64_t *)split->constant)[i];
        } else {
            dims[axis] = i + 1u < parts ? part : size - part * ((int64_t)parts - 1);
        }
        rondo__ops_result(infer, i, input->dtype, input->rank, dims);
    }
    return RONDO_OK;
}

static const rondo__ops_operand move_split_inputs[] = {{"input", RONDO__OPS_CLASSIC, 'T', 0, 0, 0},
                                                       {"split", RONDO__OPS_BIT(I64), 0, 1, 0, 0}};
static const rondo__ops_operand move_split_outputs[] = {{"outputs", RONDO__OPS_CLASSIC, 'T', 0, 1, 0}};
static const rondo__ops_attribute move_split_attributes[] = {{"axis", RONDO_ATTRIBUTE_INT, 0, "0"},
                                                             {"num_outputs", RONDO_ATTRIBUTE_INT, 0, NULL}};
const rondo__ops_prototype rondo__ops_Split = {
    .name = "Split",
    .summary = "Parts along an axis, of given sizes or of equal ones (the last may be smaller)",
    RONDO__OPS_INPUTS(move_split_inputs),
    RONDO__OPS_OUTPUTS(move_split_outputs),
    RONDO__OPS_ATTRIBUTES(move_split_attributes),
    .shape_inputs = 1u << 1,
    .infer = move_infer_split};

/* ------------------------------------------------------------------------------------------------------ Slice */

static int64_t move_clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

/* How many elements a slice of an axis takes; step is not 0. */
static int64_t move_slice_count(int64_t size, int64_t start, int64_t end, int64_t step) {
    if (!size) return 0;
    if (start < 0) start += size; /* neither sum can overflow: one part is negative, the other not */
    if (end < 0) end += size;
    start = step > 0 ? move_clamp(start, 0, size) : move_clamp(start, 0, size - 1);
    end = step > 0 ? move_clamp(end, 0, size) : move_clamp(end, -1, size - 1);
    int64_t span = step > 0 ? end - start : start - end;
    if (span <= 0) return 0;
    uint64_t stride = step > 0 ? (uint64_t)step : 0u - (uint64_t)step;
    return (int64_t)(((uint64_t)span - 1u) / stride + 1u);
}

typedef struct move_slice {
    int64_t starts[RONDO_RANK_MAX], ends[RONDO_RANK_MAX], axes[RONDO_RANK_MAX], steps[RONDO_RANK_MAX];
    uint32_t count;
} move_slice;

static rondo_status move_slice_read(rondo__ops_infer *infer, move_slice *slice) {
    uint32_t ends, axes, steps;
    RONDO__TRY(rondo__ops_values(infer, 1, "starts", slice->starts, RONDO_RANK_MAX, &slice->count));
    RONDO__TRY(rondo__ops_values(infer, 2, "ends", slice->ends, RONDO_RANK_MAX, &ends));
    RONDO__TRY(rondo__ops_values(infer, 3, "axes", slice->axes, RONDO_RANK_MAX, &axes));
    RONDO__TRY(rondo__ops_values(infer, 4, "steps", slice->steps, RONDO_RANK_MAX, &steps));
    if (!rondo__ops_input(infer, 3)) {
        axes = slice->count;
        for (uint32_t i = 0; i < axes; i++) slice->axes[i] = i;
    }
    if (!rondo__ops_input(infer, 4)) {
        steps = slice->count;
        for (uint32_t i = 0; i < steps; i++) slice->steps[i] = 1;
    }
    if (ends != slice->count || axes != slice->count || steps != slice->count) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "starts, ends, axes and steps have %u, %u, %u and %u elements",
                               slice->count, ends, axes, steps);
    }
    return RONDO_OK;
}

static rondo_status move_infer_slice(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    move_slice slice;
    RONDO__TRY(move_slice_read(infer, &slice));
    int64_t dims[RONDO_RANK_MAX];
    uint32_t seen = 0;
    for (int32_t i = 0; i < input->rank; i++) dims[i] = input->dims[i];
    for (uint32_t i = 0; i < slice.count; i++) {
        int32_t axis;
        RONDO__TRY(rondo__ops_axis(infer, "axis", slice.axes[i], input->rank, &axis));
        if (seen & 1u << axis) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "axis %d is named twice", axis);
        if (!slice.steps[i]) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the step on axis %d is 0", axis);
        seen |= 1u << axis;
        dims[axis] = move_slice_count(input->dims[axis], slice.starts[i], slice.ends[i], slice.steps[i]);
    }
    rondo__ops_result(infer, 0, input->dtype, input->rank, dims);
    return RONDO_OK;
}

static const rondo__ops_operand move_slice_inputs[] = {{"data", RONDO__OPS_CLASSIC, 'T', 0, 0, 0},
                                                       {"starts", RONDO__OPS_INDEX, 'I', 0, 0, 0},
                                                       {"ends", RONDO__OPS_INDEX, 'I', 0, 0, 0},
                                                       {"axes", RONDO__OPS_INDEX, 'I', 1, 0, 0},
                                                       {"steps", RONDO__OPS_INDEX, 'I', 1, 0, 0}};
static const rondo__ops_operand move_slice_outputs[] = {{"output", RONDO__OPS_CLASSIC, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Slice = {.name = "Slice",
                                               .summary = "From start to before end by steps, along some axes",
                                               RONDO__OPS_INPUTS(move_slice_inputs),
                                               RONDO__OPS_OUTPUTS(move_slice_outputs),
                                               .shape_inputs = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,
                                               .infer = move_infer_slice};

/* ----------------------------------------------------------------------------------------------------- Gather */

static rondo_status move_infer_gather(rondo__ops_infer *infer) {
    const rondo_operand *data = &infer->request->inputs[0];
    const rondo_operand *indices = &infer->request->inputs[1];
    int64_t dims[2 * RONDO_RANK_MAX];
    int32_t axis, rank = 0;
    RONDO__TRY(rondo__ops_axis(infer, "axis", rondo__ops_attribute_int(infer->request, "axis", 0), data->rank, &axis));
    for (int32_t i = 0; i < axis; i++) dims[rank++] = data->dims[i];
    for (int32_t i = 0; i < indices->rank; i++) dims[rank++] = indices->dims[i];
    for (int32_t i = axis + 1; i < data->rank; i++) dims[rank++] = data->dims[i];
    if (rank > RONDO_RANK_MAX) {
        return RONDO__OPS_FAIL(infer, UNSUPPORTED, "the result has rank %d, the limit is %d", rank, RONDO_RANK_MAX);
    }
    rondo__ops_result(infer, 0, data->dtype, rank, dims);
    return RONDO_OK;
}

static const rondo__ops_operand move_gather_inputs[] = {{"data", RONDO__OPS_CLASSIC, 'T', 0, 0, 0},
                                                        {"indices", RONDO__OPS_INDEX, 'I', 0, 0, 0}};
static const rondo__ops_operand move_gather_outputs[] = {{"output", RONDO__OPS_CLASSIC, 'T', 0, 0, 0}};
static const rondo__ops_attribute move_gather_attributes[] = {{"axis", RONDO_ATTRIBUTE_INT, 0, "0"}};
const rondo__ops_prototype rondo__ops_Gather = {
    .name = "Gather",
    .summary = "The slices of an axis that the indices name, negative ones from the end",
    RONDO__OPS_INPUTS(move_gather_inputs),
    RONDO__OPS_OUTPUTS(move_gather_outputs),
    RONDO__OPS_ATTRIBUTES(move_gather_attributes),
    .infer = move_infer_gather};

/* -------------------------------------------------------------------------------------------------------- Pad */

static rondo_status move_pad_axes(rondo__ops_infer *infer, int32_t rank, int32_t *axes, uint32_t *out_count) {
    int64_t values[RONDO_RANK_MAX];
    uint32_t seen = 0;
    *out_count = (uint32_t)rank;
    for (int32_t i = 0; i < rank; i++) axes[i] = i;
    if (!rondo__ops_input(infer, 3)) return RONDO_OK;
    RONDO__TRY(rondo__ops_values(infer, 3, "axes", values, RONDO_RANK_MAX, out_count));
    for (uint32_t i = 0; i < *out_count; i++) {
        RONDO__TRY(rondo__ops_axis(infer, "axis", values[i], rank, &axes[i]));
        if (seen & 1u << axes[i]) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "axis %d is named twice", axes[i]);
        seen |= 1u << axes[i];
    }
    return RONDO_OK;
}

static rondo_status move_pad_mode(rondo__ops_infer *infer, bool *out_constant) {
    const char *mode = rondo__ops_attribute_string(infer->request, "mode", "constant");
    *out_constant = strcmp(mode, "constant") == 0;
    if (!*out_constant && strcmp(mode, "reflect") != 0 && strcmp(mode, "edge") != 0 && strcmp(mode, "wrap") != 0) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "there is no mode '%s'", mode);
    }
    const rondo_operand *value = rondo__ops_input(infer, 2);
    int64_t elements;
    if (value && (!rondo__checked_elements(value->rank, value->dims, &elements) || elements != 1)) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input 'constant_value' must be one value");
    }
    return RONDO_OK;
}

static rondo_status move_infer_pad(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    int64_t dims[RONDO_RANK_MAX], pads[2 * RONDO_RANK_MAX];
    int32_t axes[RONDO_RANK_MAX];
    uint32_t axis_count, pad_count;
    bool constant;
    RONDO__TRY(move_pad_mode(infer, &constant));
    RONDO__TRY(move_pad_axes(infer, input->rank, axes, &axis_count));
    RONDO__TRY(rondo__ops_values(infer, 1, "pads", pads, 2 * RONDO_RANK_MAX, &pad_count));
    if (pad_count != 2u * axis_count) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input 'pads' has %u elements, %u axes need %u", pad_count,
                               axis_count, 2u * axis_count);
    }
    for (int32_t i = 0; i < input->rank; i++) dims[i] = input->dims[i];
    for (uint32_t i = 0; i < axis_count; i++) {
        int64_t size = input->dims[axes[i]], begin = pads[i], end = pads[axis_count + i];
        int64_t kept = 0, padded = 0; /* what negative pads leave; the result */
        bool fits = rondo__checked_add_i64(size, begin < 0 ? begin : 0, &kept) &&
                    rondo__checked_add_i64(kept, end < 0 ? end : 0, &kept) &&
                    rondo__checked_add_i64(kept, begin > 0 ? begin : 0, &padded) &&
                    rondo__checked_add_i64(padded, end > 0 ? end : 0, &padded) && padded >= 0;
        /* Filling with a constant is a window that may lie anywhere; the other modes need elements to take from. */
        if (!fits || (!constant && (kept < 0 || (!kept && padded)))) {
            return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "axis %d of size %lld cannot be padded by %lld and %lld",
                                   axes[i], (long long)size, (long long)begin, (long long)end);
        }
        dims[axes[i]] = padded;
    }
    rondo__ops_result(infer, 0, input->dtype, input->rank, dims);
    return RONDO_OK;
}

static const rondo__ops_operand move_pad_inputs[] = {{"data", RONDO__OPS_ANY, 'T', 0, 0, 0},
                                                     {"pads", RONDO__OPS_BIT(I64), 0, 0, 0, 0},
                                                     {"constant_value", RONDO__OPS_ANY, 'T', 1, 0, 0},
                                                     {"axes", RONDO__OPS_INDEX, 0, 1, 0, 0}};
static const rondo__ops_operand move_pad_outputs[] = {{"output", RONDO__OPS_ANY, 'T', 0, 0, 0}};
static const rondo__ops_attribute move_pad_attributes[] = {{"mode", RONDO_ATTRIBUTE_STRING, 0, "constant"}};
const rondo__ops_prototype rondo__ops_Pad = {
    .name = "Pad",
    .summary = "More elements before and after along some axes, fewer where a pad is negative",
    RONDO__OPS_INPUTS(move_pad_inputs),
    RONDO__OPS_OUTPUTS(move_pad_outputs),
    RONDO__OPS_ATTRIBUTES(move_pad_attributes),
    .shape_inputs = 1u << 1 | 1u << 3,
    .infer = move_infer_pad};
