/* SPDX-License-Identifier: Apache-2.0
 *
 * Products and convolution. The compiler may add an activation to them, and a bias to MatMul. */
#include <string.h>

#include "base/checked.h"
#include "ops/infer.h"

/* ------------------------------------------------------------------------------------------------------- Gemm */

static rondo_status nn_infer_gemm(rondo__ops_infer *infer) {
    const rondo_operand *a = &infer->request->inputs[0];
    const rondo_operand *b = &infer->request->inputs[1];
    const rondo_operand *c = rondo__ops_input(infer, 2);
    if (a->rank != 2 || b->rank != 2) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "A has rank %d and B has rank %d, both must be matrices",
                               a->rank, b->rank);
    }
    bool turn_a = rondo__ops_attribute_int(infer->request, "transA", 0) != 0;
    bool turn_b = rondo__ops_attribute_int(infer->request, "transB", 0) != 0;
    int64_t dims[2] = {a->dims[turn_a ? 1 : 0], b->dims[turn_b ? 0 : 1]};
    int64_t inner_a = a->dims[turn_a ? 0 : 1], inner_b = b->dims[turn_b ? 1 : 0];
    if (inner_a != inner_b) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "A has %lld columns, B has %lld rows", (long long)inner_a,
                               (long long)inner_b);
    }
    for (int32_t i = 1; c && i <= c->rank; i++) {
        int64_t size = c->dims[c->rank - i];
        if (i <= 2 && (size == 1 || size == dims[2 - i])) continue;
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "C cannot be broadcast to the %lld by %lld of the result",
                               (long long)dims[0], (long long)dims[1]);
    }
    rondo__ops_result(infer, 0, a->dtype, 2, dims);
    return RONDO_OK;
}

#define NN_PRODUCT_TYPES (RONDO__OPS_FLOATS | RONDO__OPS_WIDE_INTS)
static const rondo__ops_operand nn_gemm_inputs[] = {{"A", NN_PRODUCT_TYPES, 'T', 0, 0, 0},
                                                    {"B", NN_PRODUCT_TYPES, 'T', 0, 0, 0},
                                                    {"C", NN_PRODUCT_TYPES, 'T', 1, 0, 0}};
static const rondo__ops_operand nn_gemm_outputs[] = {{"Y", NN_PRODUCT_TYPES, 'T', 0, 0, 0}};
static const rondo__ops_attribute nn_gemm_attributes[] = {{"alpha", RONDO_ATTRIBUTE_FLOAT, 0, "1.0"},
                                                          {"beta", RONDO_ATTRIBUTE_FLOAT, 0, "1.0"},
                                                          {"transA", RONDO_ATTRIBUTE_INT, 0, "0"},
                                                          {"transB", RONDO_ATTRIBUTE_INT, 0, "0"}};
const rondo__ops_prototype rondo__ops_Gemm = {.name = "Gemm",
                                              .summary = "alpha * A * B + beta * C for matrices",
                                              RONDO__OPS_INPUTS(nn_gemm_inputs),
                                              RONDO__OPS_OUTPUTS(nn_gemm_outputs),
                                              RONDO__OPS_ATTRIBUTES(nn_gemm_attributes),
                                              .infer = nn_infer_gemm};

/* ----------------------------------------------------------------------------------------------------- MatMul */

static rondo_status nn_matmul_bias(const rondo__ops_infer *infer, int64_t columns) {
    const rondo_operand *bias = rondo__ops_input(infer, 2);
    if (!bias) return RONDO_OK;
    bool fits = bias->rank == 1 || (bias->rank == 2 && bias->dims[0] == 1);
    int64_t size = fits ? bias->dims[bias->rank - 1] : 0;
    if (!fits || (size != columns && size != 1)) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "a bias must have one element, or one a column (%lld)",
                               (long long)columns);
    }
    return RONDO_OK;
}

static rondo_status nn_infer_matmul(rondo__ops_infer *infer) {
    const rondo_operand *a = &infer->request->inputs[0];
    const rondo_operand *b = &infer->request->inputs[1];
    if (!a->rank || !b->rank) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "a factor is a scalar; use Mul");
    int64_t inner_a = a->dims[a->rank - 1], inner_b = b->dims[b->rank > 1 ? b->rank - 2 : 0];
    if (inner_a != inner_b) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "A has %lld columns, B has %lld rows", (long long)inner_a,
                               (long long)inner_b);
    }
    int64_t dims[RONDO_RANK_MAX];
    int32_t rank;
    int32_t batch_a = a->rank > 2 ? a->rank - 2 : 0, batch_b = b->rank > 2 ? b->rank - 2 : 0;
    if (!rondo__ops_broadcast(batch_a, a->dims, batch_b, b->dims, &rank, dims)) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the leading axes of the factors cannot be broadcast together");
    }
    if (a->rank > 1) dims[rank++] = a->dims[a->rank - 2]; /* a vector on the left gives no row axis */
    if (b->rank > 1) dims[rank++] = b->dims[b->rank - 1];
    RONDO__TRY(nn_matmul_bias(infer, b->rank > 1 ? b->dims[b->rank - 1] : 1));
    rondo__ops_result(infer, 0, a->dtype, rank, dims);
    return RONDO_OK;
}

static const rondo__ops_operand nn_matmul_inputs[] = {{"A", NN_PRODUCT_TYPES, 'T', 0, 0, 0},
                                                      {"B", NN_PRODUCT_TYPES, 'T', 0, 0, 0},
                                                      {"rondo.bias", NN_PRODUCT_TYPES, 'T', 1, 0, 1}};
static const rondo__ops_operand nn_matmul_outputs[] = {{"Y", NN_PRODUCT_TYPES, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_MatMul = {.name = "MatMul",
                                                .summary =
                                                    "Matrix product over the last two axes, the others broadcast",
                                                RONDO__OPS_INPUTS(nn_matmul_inputs),
                                                RONDO__OPS_OUTPUTS(nn_matmul_outputs),
                                                .infer = nn_infer_matmul};
#undef NN_PRODUCT_TYPES

/* ------------------------------------------------------------------------------------------------------- Conv */

typedef struct nn_conv {
    const rondo_operand *x, *w;
    uint32_t spatial; /* axes after batch and channel */
    int64_t group;
    const int64_t *pads, *strides, *dilations; /* null: 0, 1, 1 */
    enum { NN_PAD_EXPLICIT, NN_PAD_SAME, NN_PAD_VALID } padding;
} nn_conv;

static rondo_status nn_conv_channels(const rondo__ops_infer *infer, const nn_conv *conv) {
    int64_t channels = conv->x->dims[1], outputs = conv->w->dims[0], taken;
    if (conv->group < 1 || channels % conv->group || outputs % conv->group) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "%lld channels and %lld outputs cannot be cut into %lld groups",
                               (long long)channels, (long long)outputs, (long long)conv->group);
    }
    if (!rondo__checked_mul_i64(conv->w->dims[1], conv->group, &taken) || taken != channels) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT,
                               "the input has %lld channels, the weights are for %lld in each of %lld groups",
                               (long long)channels, (long long)conv->w->dims[1], (long long)conv->group);
    }
    const rondo_operand *bias = rondo__ops_input(infer, 2);
    if (bias && (bias->rank != 1 || bias->dims[0] != outputs)) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the bias must be a list of %lld numbers", (long long)outputs);
    }
    return RONDO_OK;
}

static rondo_status nn_conv_padding(const rondo__ops_infer *infer, nn_conv *conv) {
    const char *mode = rondo__ops_attribute_string(infer->request, "auto_pad", "NOTSET");
    RONDO__TRY(rondo__ops_ints(infer, "pads", 2u * conv->spatial, 0, &conv->pads));
    if (strcmp(mode, "NOTSET") == 0) {
        conv->padding = NN_PAD_EXPLICIT;
        return RONDO_OK;
    }
    if (strcmp(mode, "VALID") == 0) {
        conv->padding = NN_PAD_VALID;
    } else if (strcmp(mode, "SAME_UPPER") == 0 || strcmp(mode, "SAME_LOWER") == 0) {
        conv->padding = NN_PAD_SAME;
    } else {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "there is no auto_pad '%s'", mode);
    }
    for (uint32_t i = 0; conv->pads && i < 2u * conv->spatial; i++) {
        if (!conv->pads[i]) continue;
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "auto_pad '%s' and pads exclude each other", mode);
    }
    conv->pads = NULL;
    return RONDO_OK;
}

static rondo_status nn_conv_read(const rondo__ops_infer *infer, nn_conv *conv) {
    conv->x = &infer->request->inputs[0];
    conv->w = &infer->request->inputs[1];
    if (conv->x->rank < 3 || conv->w->rank != conv->x->rank) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT,
                               "the input has rank %d and the weights %d: both need batch or output, channel, and the "
                               "same axes after them",
                               conv->x->rank, conv->w->rank);
    }
    conv->spatial = (uint32_t)conv->x->rank - 2u;
    conv->group = rondo__ops_attribute_int(infer->request, "group", 1);
    const int64_t *kernel;
    RONDO__TRY(nn_conv_channels(infer, conv));
    RONDO__TRY(rondo__ops_ints(infer, "kernel_shape", conv->spatial, 1, &kernel));
    RONDO__TRY(rondo__ops_ints(infer, "strides", conv->spatial, 1, &conv->strides));
    RONDO__TRY(rondo__ops_ints(infer, "dilations", conv->spatial, 1, &conv->dilations));
    RONDO__TRY(nn_conv_padding(infer, conv));
    for (uint32_t i = 0; i < conv->spatial; i++) {
        int64_t size = conv->w->dims[2u + i];
        if (size >= 1 && (!kernel || kernel[i] == size)) continue;
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the weights have size %lld on axis %u%s", (long long)size,
                               i + 2u, kernel ? ", which is not what kernel_shape says" : "");
    }
    return RONDO_OK;
}

static rondo_status nn_conv_size(const rondo__ops_infer *infer, const nn_conv *conv, uint32_t i, int64_t *out_size) {
    int64_t size = conv->x->dims[2u + i];
    int64_t stride = conv->strides ? conv->strides[i] : 1;
    if (conv->padding == NN_PAD_SAME) {
        *out_size = size / stride + (size % stride != 0);
        return RONDO_OK;
    }
    int64_t padded = size, reach; /* what the kernel covers less one */
    bool counted = rondo__checked_add_i64(padded, conv->pads ? conv->pads[i] : 0, &padded) &&
                   rondo__checked_add_i64(padded, conv->pads ? conv->pads[conv->spatial + i] : 0, &padded) &&
                   rondo__checked_mul_i64(conv->w->dims[2u + i] - 1, conv->dilations ? conv->dilations[i] : 1, &reach);
    if (!counted) return RONDO__OPS_FAIL(infer, OUT_OF_RANGE, "the sizes on axis %u are too large", i + 2u);
    if (padded <= reach) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT,
                               "the kernel reaches over %llu elements on axis %u, the padded input has %lld",
                               (unsigned long long)reach + 1u, i + 2u, (long long)padded);
    }
    *out_size = (padded - reach - 1) / stride + 1;
    return RONDO_OK;
}

static rondo_status nn_infer_conv(rondo__ops_infer *infer) {
    nn_conv conv;
    RONDO__TRY(nn_conv_read(infer, &conv));
    int64_t dims[RONDO_RANK_MAX] = {conv.x->dims[0], conv.w->dims[0]};
    for (uint32_t i = 0; i < conv.spatial; i++) RONDO__TRY(nn_conv_size(infer, &conv, i, &dims[2u + i]));
    rondo__ops_result(infer, 0, conv.x->dtype, conv.x->rank, dims);
    return RONDO_OK;
}

static const rondo__ops_operand nn_conv_inputs[] = {{"X", RONDO__OPS_FLOATS, 'T', 0, 0, 0},
                                                    {"W", RONDO__OPS_FLOATS, 'T', 0, 0, 0},
                                                    {"B", RONDO__OPS_FLOATS, 'T', 1, 0, 0}};
static const rondo__ops_operand nn_conv_outputs[] = {{"Y", RONDO__OPS_FLOATS, 'T', 0, 0, 0}};
static const rondo__ops_attribute nn_conv_attributes[] = {{"auto_pad", RONDO_ATTRIBUTE_STRING, 0, "NOTSET"},
                                                          {"dilations", RONDO_ATTRIBUTE_INTS, 0, "[1,...]"},
                                                          {"group", RONDO_ATTRIBUTE_INT, 0, "1"},
                                                          {"kernel_shape", RONDO_ATTRIBUTE_INTS, 0, "that of W"},
                                                          {"pads", RONDO_ATTRIBUTE_INTS, 0, "[0,...]"},
                                                          {"strides", RONDO_ATTRIBUTE_INTS, 0, "[1,...]"}};
const rondo__ops_prototype rondo__ops_Conv = {.name = "Conv",
                                              .summary = "Convolution over the axes after batch and channel",
                                              RONDO__OPS_INPUTS(nn_conv_inputs),
                                              RONDO__OPS_OUTPUTS(nn_conv_outputs),
                                              RONDO__OPS_ATTRIBUTES(nn_conv_attributes),
                                              .infer = nn_infer_conv};
