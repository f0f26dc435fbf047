/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a request, and the helpers that every inference function uses. */
#include <string.h>

#include "base/checked.h"
#include "ops/infer.h"

const char *rondo__ops_node_name(const rondo_kernel_request *request) {
    return request->node_name && *request->node_name ? request->node_name : request->operator_name;
}

const rondo_attribute *rondo__ops_attribute_find(const rondo_kernel_request *request, const char *name) {
    for (uint32_t i = 0; i < request->attribute_count; i++) {
        if (strcmp(request->attributes[i].name, name) == 0) return &request->attributes[i];
    }
    return NULL;
}

int64_t rondo__ops_attribute_int(const rondo_kernel_request *request, const char *name, int64_t otherwise) {
    const rondo_attribute *attribute = rondo__ops_attribute_find(request, name);
    return attribute && attribute->kind == RONDO_ATTRIBUTE_INT ? attribute->value.i : otherwise;
}

float rondo__ops_attribute_float(const rondo_kernel_request *request, const char *name, float otherwise) {
    const rondo_attribute *attribute = rondo__ops_attribute_find(request, name);
    return attribute && attribute->kind == RONDO_ATTRIBUTE_FLOAT ? attribute->value.f : otherwise;
}

const char *rondo__ops_attribute_string(const rondo_kernel_request *request, const char *name, const char *otherwise) {
    const rondo_attribute *attribute = rondo__ops_attribute_find(request, name);
    return attribute && attribute->kind == RONDO_ATTRIBUTE_STRING ? attribute->value.s.data : otherwise;
}

bool rondo__ops_broadcast(int32_t rank_a, const int64_t *a, int32_t rank_b, const int64_t *b, int32_t *out_rank,
                          int64_t *out_dims) {
    int32_t rank = rank_a > rank_b ? rank_a : rank_b;
    int64_t dims[RONDO_RANK_MAX];
    if (rank > RONDO_RANK_MAX) return false;
    for (int32_t i = 1; i <= rank; i++) { /* from the last axis on */
        int64_t size_a = i <= rank_a ? a[rank_a - i] : 1;
        int64_t size_b = i <= rank_b ? b[rank_b - i] : 1;
        if (size_a != size_b && size_a != 1 && size_b != 1) return false;
        dims[rank - i] = size_a == 1 ? size_b : size_a;
    }
    for (int32_t i = 0; i < rank; i++) out_dims[i] = dims[i];
    *out_rank = rank;
    return true;
}

void rondo__ops_result(rondo__ops_infer *infer, uint32_t index, rondo_dtype dtype, int32_t rank, const int64_t *dims) {
    if (index >= infer->request->output_count) return;
    int64_t *kept = infer->output_dims[index];
    for (int32_t i = 0; i < rank; i++) kept[i] = dims[i];
    infer->outputs[index] = (rondo_operand){.dtype = dtype, .rank = rank, .dims = kept};
}

rondo_status rondo__ops_axis(const rondo__ops_infer *infer, const char *what, int64_t axis, int32_t count,
                             int32_t *out_axis) {
    if (axis < -(int64_t)count || axis >= count) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "%s %lld is not within %d and %d", what, (long long)axis,
                               -count, count - 1);
    }
    *out_axis = (int32_t)(axis < 0 ? axis + count : axis);
    return RONDO_OK;
}

rondo_status rondo__ops_values(rondo__ops_infer *infer, uint32_t index, const char *name, int64_t *values,
                               uint32_t maximum, uint32_t *out_count) {
    const rondo_operand *operand = rondo__ops_input(infer, index);
    *out_count = 0;
    if (!operand) return RONDO_OK;
    const int64_t elements = operand->rank == 1 ? operand->dims[0] : 1;
    /* Unsqueeze takes one axis without a list around it, as ONNX's own AffineGrid is written. */
    bool alone = operand->rank == 0 && strcmp(infer->request->operator_name, "Unsqueeze") == 0;
    if (operand->rank != 1 && !alone) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input '%s' has rank %d, it must be a list (rank 1)", name,
                               operand->rank);
    }
    if (elements > (int64_t)maximum) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input '%s' has %lld elements, at most %u fit", name,
                               (long long)elements, maximum);
    }
    if (elements && !operand->constant) {
        infer->needs_value_of = name;
        return RONDO__OPS_FAIL(infer, UNSUPPORTED,
                               "the shape of the result depends on the value of input '%s', which is only known when "
                               "the model runs",
                               name);
    }
    uint32_t count = (uint32_t)elements;
    for (uint32_t i = 0; i < count; i++) {
        values[i] = operand->dtype == RONDO_DTYPE_I32 ? ((const int32_t *)operand->constant)[i]
                                                      : ((const int64_t *)operand->constant)[i];
    }
    *out_count = count;
    return RONDO_OK;
}

rondo_status rondo__ops_axes(rondo__ops_infer *infer, uint32_t index, int32_t rank, bool repeats, uint32_t *out_mask) {
    int64_t values[2 * RONDO_RANK_MAX];
    uint32_t count, mask = 0;
    RONDO__TRY(rondo__ops_values(infer, index, "axes", values, 2 * RONDO_RANK_MAX, &count));
    for (uint32_t i = 0; i < count; i++) {
        int32_t axis = 0;
        RONDO__TRY(rondo__ops_axis(infer, "axis", values[i], rank, &axis));
        if (mask & 1u << axis && !repeats) {
            return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "axis %d is named twice", axis);
        }
        mask |= 1u << axis;
    }
    *out_mask = mask;
    return RONDO_OK;
}

rondo_status rondo__ops_ints(const rondo__ops_infer *infer, const char *name, uint32_t count, int64_t minimum,
                             const int64_t **out_ints) {
    const rondo_attribute *attribute = rondo__ops_attribute_find(infer->request, name);
    *out_ints = NULL;
    if (!attribute) return RONDO_OK;
    if (attribute->count != count) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute '%s' has %u elements, the input's rank asks for %u",
                               name, attribute->count, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (attribute->value.ints[i] < minimum) {
            return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute '%s' holds %lld, it must be at least %lld", name,
                                   (long long)attribute->value.ints[i], (long long)minimum);
        }
    }
    *out_ints = attribute->value.ints;
    return RONDO_OK;
}

rondo_status rondo__ops_word(const rondo__ops_infer *infer, const char *name, const char *words) {
    const char *word = rondo__ops_attribute_string(infer->request, name, NULL);
    const size_t length = word ? strlen(word) : 0;
    if (!word) return RONDO_OK;
    for (const char *at = words; *at; at = strchr(at, ' ') + 1)
        if (length == (size_t)(strchr(at, ' ') - at) && memcmp(word, at, length) == 0) return RONDO_OK;
    return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute '%s' is '%s', it must be one of: %s", name, word, words);
}

rondo_status rondo__ops_infer_broadcast(rondo__ops_infer *infer, rondo_dtype dtype) {
    int64_t dims[RONDO_RANK_MAX];
    int32_t rank = 0;
    for (uint32_t i = 0; i < infer->request->input_count; i++) {
        const rondo_operand *input = rondo__ops_input(infer, i);
        if (!input || rondo__ops_broadcast(rank, dims, input->rank, input->dims, &rank, dims)) continue;
        rondo__ir_dim before[RONDO_RANK_MAX], its[RONDO_RANK_MAX];
        char text[2][160];
        for (int32_t a = 0; a < rank; a++) before[a] = (rondo__ir_dim){.value = dims[a]};
        for (int32_t a = 0; a < input->rank; a++) its[a] = (rondo__ir_dim){.value = input->dims[a]};
        rondo__ir_type have = {.dtype = infer->request->inputs[0].dtype, .rank = rank, .dims = before};
        rondo__ir_type want = {.dtype = input->dtype, .rank = input->rank, .dims = its};
        rondo__ir_type_text(&have, text[0], sizeof text[0]);
        rondo__ir_type_text(&want, text[1], sizeof text[1]);
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "%s and %s (input %u) cannot be broadcast together", text[0],
                               text[1], i);
    }
    rondo__ops_result(infer, 0, dtype, rank, dims);
    return RONDO_OK;
}

rondo_status rondo__ops_infer_same(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    rondo__ops_result(infer, 0, input->dtype, input->rank, input->dims);
    return RONDO_OK;
}

static bool ops_type_matches(const rondo__ops_operand *operand, rondo_dtype dtype) {
    return dtype > RONDO_DTYPE_UNDEFINED && dtype < RONDO_DTYPE_COUNT && (operand->types & 1u << dtype) != 0;
}

static rondo_status ops_request_operand(const rondo_kernel_request *request, const rondo__ops_operand *operand,
                                        uint32_t index, rondo_dtype *variables) {
    const rondo_operand *input = &request->inputs[index];
    const char *node = rondo__ops_node_name(request);
    if (input->dtype == RONDO_DTYPE_UNDEFINED) {
        if (operand->optional) return RONDO_OK;
        return RONDO__FAIL(INVALID_ARGUMENT, META, "node '%s' (%s): input %u '%s' is missing", node,
                           request->operator_name, index, operand->name);
    }
    if (!ops_type_matches(operand, input->dtype)) {
        return RONDO__FAIL(INVALID_ARGUMENT, META, "node '%s' (%s): input %u '%s' cannot be %s", node,
                           request->operator_name, index, operand->name, rondo_dtype_name(input->dtype));
    }
    rondo_dtype *variable = operand->type_variable ? &variables[(uint8_t)operand->type_variable & 127u] : NULL;
    if (variable && *variable && *variable != input->dtype) {
        return RONDO__FAIL(INVALID_ARGUMENT, META,
                           "node '%s' (%s): input %u '%s' is %s where the others are %s; cast one of them", node,
                           request->operator_name, index, operand->name, rondo_dtype_name(input->dtype),
                           rondo_dtype_name(*variable));
    }
    if (variable) *variable = input->dtype;
    int64_t elements;
    if (input->rank < 0 || input->rank > RONDO_RANK_MAX || (input->rank && !input->dims) ||
        !rondo__checked_elements(input->rank, input->dims, &elements)) {
        return RONDO__FAIL(INVALID_ARGUMENT, META, "node '%s' (%s): input %u '%s' has an impossible shape", node,
                           request->operator_name, index, operand->name);
    }
    return RONDO_OK;
}

static const rondo__ops_operand *ops_operand_at(const rondo__ops_operand *operands, uint32_t count, uint32_t index) {
    if (index < count) return &operands[index];
    return count && operands[count - 1u].variadic ? &operands[count - 1u] : NULL;
}

static rondo_status ops_request_inputs(const rondo__ops_prototype *prototype, const rondo_kernel_request *request) {
    rondo_dtype variables[128] = {0};
    for (uint32_t i = 0; i < request->input_count; i++) {
        const rondo__ops_operand *operand = ops_operand_at(prototype->inputs, prototype->input_count, i);
        if (!operand) {
            return RONDO__FAIL(INVALID_ARGUMENT, META, "node '%s' (%s): %u inputs, there are at most %u",
                               rondo__ops_node_name(request), request->operator_name, request->input_count,
                               prototype->input_count);
        }
        RONDO__TRY(ops_request_operand(request, operand, i, variables));
    }
    for (uint32_t i = request->input_count; i < prototype->input_count; i++) {
        if (prototype->inputs[i].optional) continue;
        return RONDO__FAIL(INVALID_ARGUMENT, META, "node '%s' (%s): input %u '%s' is missing",
                           rondo__ops_node_name(request), request->operator_name, i, prototype->inputs[i].name);
    }
    return RONDO_OK;
}

rondo_status rondo__ops_check_request(const rondo__ops_prototype *prototype, const rondo_kernel_request *request) {
    RONDO__TRY(rondo__ops_check_attributes(prototype, rondo__ops_node_name(request), request->attributes,
                                           request->attribute_count, true, RONDO_LAYER_META));
    RONDO__TRY(ops_request_inputs(prototype, request));
    if (!request->output_count ||
        !ops_operand_at(prototype->outputs, prototype->output_count, request->output_count - 1u)) {
        return RONDO__FAIL(INVALID_ARGUMENT, META, "node '%s' (%s): %u outputs, there are 1 to %u",
                           rondo__ops_node_name(request), request->operator_name, request->output_count,
                           prototype->output_count);
    }
    return RONDO_OK;
}

rondo_status rondo__ops_infer_request(const rondo_kernel_request *request, rondo_operand *out_outputs,
                                      int64_t (*output_dims)[RONDO_RANK_MAX]) {
    const rondo__ops_prototype *prototype = rondo__ops_find(request->operator_name);
    if (!prototype) {
        return RONDO__FAIL(NOT_FOUND, PROTOTYPE, "node '%s': there is no operator '%s'", rondo__ops_node_name(request),
                           request->operator_name ? request->operator_name : "");
    }
    return rondo__ops_infer_with(prototype, request, out_outputs, output_dims);
}

rondo_status rondo__ops_infer_with(const rondo__ops_prototype *prototype, const rondo_kernel_request *request,
                                   rondo_operand *out_outputs, int64_t (*output_dims)[RONDO_RANK_MAX]) {
    RONDO__TRY(rondo__ops_check_request(prototype, request));
    if (!prototype->infer) {
        return RONDO__FAIL(UNSUPPORTED, META,
                           "node '%s' (%s): its results are those of its branches, which must be "
                           "chosen first",
                           rondo__ops_node_name(request), prototype->name);
    }
    rondo__ops_infer infer = {
        .prototype = prototype, .request = request, .outputs = out_outputs, .output_dims = output_dims};
    for (uint32_t i = 0; i < request->output_count; i++) out_outputs[i] = (rondo_operand){0};
    RONDO__TRY(prototype->infer(&infer));
    for (uint32_t i = 0; i < request->output_count; i++) {
        int64_t elements;
        if (out_outputs[i].rank > RONDO_RANK_MAX ||
            !rondo__checked_elements(out_outputs[i].rank, out_outputs[i].dims, &elements)) {
            return RONDO__FAIL(OUT_OF_RANGE, META, "node '%s' (%s): its result %u is too large to be counted",
                               rondo__ops_node_name(request), prototype->name, i);
        }
    }
    return RONDO_OK;
}
