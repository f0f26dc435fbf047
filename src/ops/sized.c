/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators whose outputs have as many elements as the data says. Inference gives the most that there can be of each
 * axis; the kernel tells the rest (rondo__kernel_run_sized). */
#include "base/checked.h"
#include "ops/infer.h"

static rondo_status sized_elements(const rondo__ops_infer *infer, const rondo_operand *operand, int64_t *out_elements) {
    if (rondo__checked_elements(operand->rank, operand->dims, out_elements)) return RONDO_OK;
    return RONDO__OPS_FAIL(infer, OUT_OF_RANGE, "its input has more elements than can be counted");
}

/* ------------------------------------------------------------------------------------------------- NonZero, Compress */

static rondo_status sized_infer_nonzero(rondo__ops_infer *infer) {
    const rondo_operand *x = rondo__ops_input(infer, 0);
    int64_t dims[2] = {x->rank, 0};
    RONDO__TRY(sized_elements(infer, x, &dims[1]));
    rondo__ops_result(infer, 0, RONDO_DTYPE_I64, 2, dims);
    return RONDO_OK;
}

static const rondo__ops_operand sized_nonzero_inputs[] = {{"X", RONDO__OPS_CLASSIC, 'T', 0, 0, 0}};
static const rondo__ops_operand sized_nonzero_outputs[] = {{"Y", RONDO__OPS_BIT(I64), 0, 0, 0, 0}};
const rondo__ops_prototype rondo__ops_NonZero = {.name = "NonZero",
                                                 .summary = "Where its input is not zero: a row of indices an axis",
                                                 RONDO__OPS_INPUTS(sized_nonzero_inputs),
                                                 RONDO__OPS_OUTPUTS(sized_nonzero_outputs),
                                                 .flags = RONDO__OPS_SIZED,
                                                 .infer = sized_infer_nonzero};

static rondo_status sized_infer_compress(rondo__ops_infer *infer) {
    const rondo_operand *x = rondo__ops_input(infer, 0), *condition = rondo__ops_input(infer, 1);
    const rondo_attribute *along = rondo__ops_attribute_find(infer->request, "axis");
    int64_t dims[RONDO_RANK_MAX] = {0};
    int32_t axis = 0, rank = along ? x->rank : 1;
    if (condition->rank != 1) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input 'condition' has rank %d, it must be a list (rank 1)",
                               condition->rank);
    }
    if (along) {
        RONDO__TRY(rondo__ops_axis(infer, "axis", along->value.i, x->rank, &axis));
        for (int32_t i = 0; i < rank; i++) dims[i] = x->dims[i];
    } else {
        RONDO__TRY(sized_elements(infer, x, &dims[0]));
    }
    if (condition->dims[0] > dims[axis]) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT,
                               "input 'condition' has %lld elements, there are %lld to choose from",
                               (long long)condition->dims[0], (long long)dims[axis]);
    }
    dims[axis] = condition->dims[0];
    rondo__ops_result(infer, 0, x->dtype, rank, dims);
    return RONDO_OK;
}

static const rondo__ops_operand sized_compress_inputs[] = {{"input", RONDO__OPS_CLASSIC, 'T', 0, 0, 0},
                                                           {"condition", RONDO__OPS_BIT(BOOL), 0, 0, 0, 0}};
static const rondo__ops_operand sized_compress_outputs[] = {{"output", RONDO__OPS_CLASSIC, 'T', 0, 0, 0}};
static const rondo__ops_attribute sized_compress_attributes[] = {{"axis", RONDO_ATTRIBUTE_INT, 0, NULL}};
const rondo__ops_prototype rondo__ops_Compress = {.name = "Compress",
                                                  .summary = "The slices, or elements, where a condition holds",
                                                  RONDO__OPS_INPUTS(sized_compress_inputs),
                                                  RONDO__OPS_OUTPUTS(sized_compress_outputs),
                                                  RONDO__OPS_ATTRIBUTES(sized_compress_attributes),
                                                  .flags = RONDO__OPS_SIZED,
                                                  .infer = sized_infer_compress};

/* ------------------------------------------------------------------------------------------------------------ Unique */

static rondo_status sized_infer_unique(rondo__ops_infer *infer) {
    const rondo_operand *x = rondo__ops_input(infer, 0);
    const rondo_attribute *along = rondo__ops_attribute_find(infer->request, "axis");
    int64_t sorted = rondo__ops_attribute_int(infer->request, "sorted", 1), count = 0;
    int32_t axis = 0;
    if (sorted != 0 && sorted != 1) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute 'sorted' is %lld, it must be 0 or 1",
                               (long long)sorted);
    }
    if (along) {
        RONDO__TRY(rondo__ops_axis(infer, "axis", along->value.i, x->rank, &axis));
        count = x->dims[axis];
        rondo__ops_result(infer, 0, x->dtype, x->rank, x->dims);
    } else {
        RONDO__TRY(sized_elements(infer, x, &count));
        rondo__ops_result(infer, 0, x->dtype, 1, &count);
    }
    for (uint32_t i = 1; i < 4; i++) rondo__ops_result(infer, i, RONDO_DTYPE_I64, 1, &count);
    return RONDO_OK;
}

static const rondo__ops_operand sized_unique_inputs[] = {{"X", RONDO__OPS_CLASSIC, 'T', 0, 0, 0}};
static const rondo__ops_operand sized_unique_outputs[] = {{"Y", RONDO__OPS_CLASSIC, 'T', 0, 0, 0},
                                                          {"indices", RONDO__OPS_BIT(I64), 0, 1, 0, 0},
                                                          {"inverse_indices", RONDO__OPS_BIT(I64), 0, 1, 0, 0},
                                                          {"counts", RONDO__OPS_BIT(I64), 0, 1, 0, 0}};
static const rondo__ops_attribute sized_unique_attributes[] = {{"axis", RONDO_ATTRIBUTE_INT, 0, NULL},
                                                               {"sorted", RONDO_ATTRIBUTE_INT, 0, "1"}};
const rondo__ops_prototype rondo__ops_Unique = {.name = "Unique",
                                                .summary = "Its elements, or slices, without repetitions",
                                                RONDO__OPS_INPUTS(sized_unique_inputs),
                                                RONDO__OPS_OUTPUTS(sized_unique_outputs),
                                                RONDO__OPS_ATTRIBUTES(sized_unique_attributes),
                                                .flags = RONDO__OPS_SIZED,
                                                .infer = sized_infer_unique};

/* ------------------------------------------------------------------------------------------------- NonMaxSuppression */

static rondo_status sized_check_one(const rondo__ops_infer *infer, uint32_t index) {
    const rondo_operand *operand = rondo__ops_input(infer, index);
    if (!operand || operand->rank == 0 || (operand->rank == 1 && operand->dims[0] == 1)) return RONDO_OK;
    return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input '%s' must be one number",
                           infer->prototype->inputs[index].name);
}

static rondo_status sized_infer_suppression(rondo__ops_infer *infer) {
    const rondo_operand *boxes = rondo__ops_input(infer, 0), *scores = rondo__ops_input(infer, 1);
    const rondo_operand *limit = rondo__ops_input(infer, 2);
    int64_t center = rondo__ops_attribute_int(infer->request, "center_point_box", 0), dims[2] = {0, 3};
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[2] != 4 || boxes->dims[0] != scores->dims[0] ||
        boxes->dims[1] != scores->dims[2]) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT,
                               "boxes must be [batches, boxes, 4] and scores [batches, classes, boxes]");
    }
    if (center != 0 && center != 1) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute 'center_point_box' is %lld, it must be 0 or 1",
                               (long long)center);
    }
    for (uint32_t i = 2; i < 5; i++) RONDO__TRY(sized_check_one(infer, i));
    int64_t most = limit ? boxes->dims[1] : 0;
    if (limit && limit->constant) {
        int64_t given = *(const int64_t *)limit->constant;
        most = given < 0 ? 0 : given < most ? given : most;
    }
    if (!rondo__checked_mul_i64(scores->dims[0], scores->dims[1], &dims[0]) ||
        !rondo__checked_mul_i64(dims[0], most, &dims[0])) {
        return RONDO__OPS_FAIL(infer, OUT_OF_RANGE, "there may be more selected boxes than can be counted");
    }
    rondo__ops_result(infer, 0, RONDO_DTYPE_I64, 2, dims);
    return RONDO_OK;
}

static const rondo__ops_operand sized_suppression_inputs[] = {
    {"boxes", RONDO__OPS_BIT(F32), 0, 0, 0, 0},
    {"scores", RONDO__OPS_BIT(F32), 0, 0, 0, 0},
    {"max_output_boxes_per_class", RONDO__OPS_BIT(I64), 0, 1, 0, 0},
    {"iou_threshold", RONDO__OPS_BIT(F32), 0, 1, 0, 0},
    {"score_threshold", RONDO__OPS_BIT(F32), 0, 1, 0, 0}};
static const rondo__ops_operand sized_suppression_outputs[] = {{"selected_indices", RONDO__OPS_BIT(I64), 0, 0, 0, 0}};
static const rondo__ops_attribute sized_suppression_attributes[] = {{"center_point_box", RONDO_ATTRIBUTE_INT, 0, "0"}};
const rondo__ops_prototype rondo__ops_NonMaxSuppression = {
    .name = "NonMaxSuppression",
    .summary = "The boxes of the highest scores that do not overlap each other",
    RONDO__OPS_INPUTS(sized_suppression_inputs),
    RONDO__OPS_OUTPUTS(sized_suppression_outputs),
    RONDO__OPS_ATTRIBUTES(sized_suppression_attributes),
    .flags = RONDO__OPS_SIZED,
    .infer = sized_infer_suppression};
