/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalizations and losses. */
#include <string.h>

#include "ops/infer.h"

#define NORM_OPERAND(name, variable, optional_) \
    { name, RONDO__OPS_FLOATS, variable, optional_, 0, 0 }
#define NORM_PROTOTYPE(operator_, text, infer_)                                                        \
    const rondo__ops_prototype rondo__ops_##operator_ = {.name = #operator_,                           \
                                                         .summary = text,                              \
                                                         RONDO__OPS_INPUTS(norm_in_##operator_),       \
                                                         RONDO__OPS_OUTPUTS(norm_out_##operator_),     \
                                                         RONDO__OPS_ATTRIBUTES(norm_with_##operator_), \
                                                         .infer = infer_}

/* ------------------------------------------------------------------------ LayerNormalization, RMSNormalization */

static rondo_status norm_layer_checked(rondo__ops_infer *infer, int32_t *out_axis) {
    const rondo_operand *input = &infer->request->inputs[0];
    RONDO__TRY(
        rondo__ops_axis(infer, "axis", rondo__ops_attribute_int(infer->request, "axis", -1), input->rank, out_axis));
    for (uint32_t i = 1; i < infer->request->input_count; i++) {
        const rondo_operand *operand = rondo__ops_input(infer, i);
        bool fits = !operand || operand->rank <= input->rank;
        for (int32_t d = 0; operand && fits && d < operand->rank; d++) {
            fits = operand->dims[d] == 1 || operand->dims[d] == input->dims[input->rank - operand->rank + d];
        }
        if (!fits) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input %u does not broadcast to the first", i);
    }
    return RONDO_OK;
}

static rondo_status norm_infer_layer(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    int64_t dims[RONDO_RANK_MAX], stash = rondo__ops_attribute_int(infer->request, "stash_type", RONDO_DTYPE_F32);
    int32_t axis;
    RONDO__TRY(norm_layer_checked(infer, &axis));
    if (stash != RONDO_DTYPE_F32 && stash != RONDO_DTYPE_BF16) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute 'stash_type' is %lld", (long long)stash);
    }
    for (int32_t d = 0; d < input->rank; d++) dims[d] = d < axis ? input->dims[d] : 1;
    for (uint32_t i = 1; i < 3; i++) rondo__ops_result(infer, i, (rondo_dtype)stash, input->rank, dims);
    return rondo__ops_infer_same(infer);
}

static rondo_status norm_infer_rms(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    int32_t axis;
    RONDO__TRY(norm_layer_checked(infer, &axis));
    rondo__ops_result(infer, 0, infer->request->inputs[1].dtype, input->rank, input->dims);
    return RONDO_OK;
}

#define NORM_STATISTIC(name) \
    { name, RONDO__OPS_BIT(F32) | RONDO__OPS_BIT(BF16), 'U', 1, 0, 0 }
static const rondo__ops_operand norm_in_LayerNormalization[] = {
    NORM_OPERAND("X", 'T', 0), NORM_OPERAND("Scale", 'T', 0), NORM_OPERAND("B", 'T', 1)};
static const rondo__ops_operand norm_out_LayerNormalization[] = {NORM_OPERAND("Y", 'T', 0), NORM_STATISTIC("Mean"),
                                                                 NORM_STATISTIC("InvStdDev")};
static const rondo__ops_attribute norm_with_LayerNormalization[] = {{"axis", RONDO_ATTRIBUTE_INT, 0, "-1"},
                                                                    {"epsilon", RONDO_ATTRIBUTE_FLOAT, 0, "1e-05"},
                                                                    {"stash_type", RONDO_ATTRIBUTE_INT, 0, "1"}};
NORM_PROTOTYPE(LayerNormalization, "Mean 0 and deviation 1 over the axes from `axis` on, scaled and shifted",
               norm_infer_layer);
static const rondo__ops_operand norm_in_RMSNormalization[] = {NORM_OPERAND("X", 'T', 0), NORM_OPERAND("scale", 'V', 0)};
static const rondo__ops_operand norm_out_RMSNormalization[] = {NORM_OPERAND("Y", 'V', 0)};
#define norm_with_RMSNormalization norm_with_LayerNormalization
NORM_PROTOTYPE(RMSNormalization, "Mean square 1 over the axes from `axis` on, scaled", norm_infer_rms);
#undef norm_with_RMSNormalization

/* ------------------------------------------------------------------------------ Batch, instance and group */

static rondo_status norm_infer_channels(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    bool batch = infer->request->input_count == 5;
    if (input->rank < (batch ? 1 : 2)) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the input has no channels");
    int64_t channels = input->rank > 1 ? input->dims[1] : 1;
    int64_t groups = rondo__ops_attribute_int(infer->request, "num_groups", 1);
    if (groups < 1 || channels % groups != 0) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "%lld channels cannot be put into %lld groups",
                               (long long)channels, (long long)groups);
    }
    for (uint32_t i = 1; i < infer->request->input_count; i++) {
        const rondo_operand *operand = &infer->request->inputs[i];
        if (operand->rank == 1 && operand->dims[0] == channels) continue;
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input %u must be a list of %lld, one a channel", i,
                               (long long)channels);
    }
    return rondo__ops_infer_same(infer);
}

static rondo_status norm_infer_batch(rondo__ops_infer *infer) {
    if (rondo__ops_attribute_int(infer->request, "training_mode", 0)) {
        return RONDO__OPS_FAIL(infer, UNSUPPORTED, "training_mode 1: only what a trained model does is here");
    }
    if (infer->request->output_count > 1) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the running statistics are only made in training_mode");
    }
    return norm_infer_channels(infer);
}

static const rondo__ops_operand norm_in_BatchNormalization[] = {
    NORM_OPERAND("X", 'T', 0), NORM_OPERAND("scale", 'S', 0), NORM_OPERAND("B", 'S', 0),
    NORM_OPERAND("input_mean", 'M', 0), NORM_OPERAND("input_var", 'M', 0)};
static const rondo__ops_operand norm_out_BatchNormalization[] = {
    NORM_OPERAND("Y", 'T', 0), NORM_OPERAND("running_mean", 'M', 1), NORM_OPERAND("running_var", 'M', 1)};
static const rondo__ops_attribute norm_with_BatchNormalization[] = {{"epsilon", RONDO_ATTRIBUTE_FLOAT, 0, "1e-05"},
                                                                    {"momentum", RONDO_ATTRIBUTE_FLOAT, 0, "0.9"},
                                                                    {"training_mode", RONDO_ATTRIBUTE_INT, 0, "0"}};
NORM_PROTOTYPE(BatchNormalization, "Each channel normalized by the mean and variance given", norm_infer_batch);
static const rondo__ops_operand norm_in_InstanceNormalization[] = {
    NORM_OPERAND("input", 'T', 0), NORM_OPERAND("scale", 'T', 0), NORM_OPERAND("B", 'T', 0)};
static const rondo__ops_operand norm_out_InstanceNormalization[] = {NORM_OPERAND("output", 'T', 0)};
static const rondo__ops_attribute norm_with_InstanceNormalization[] = {{"epsilon", RONDO_ATTRIBUTE_FLOAT, 0, "1e-05"}};
NORM_PROTOTYPE(InstanceNormalization, "Each channel of each batch normalized on its own", norm_infer_channels);
static const rondo__ops_operand norm_in_GroupNormalization[] = {
    NORM_OPERAND("X", 'T', 0), NORM_OPERAND("scale", 'T', 0), NORM_OPERAND("bias", 'T', 0)};
static const rondo__ops_operand norm_out_GroupNormalization[] = {NORM_OPERAND("Y", 'T', 0)};
static const rondo__ops_attribute norm_with_GroupNormalization[] = {{"epsilon", RONDO_ATTRIBUTE_FLOAT, 0, "1e-05"},
                                                                    {"num_groups", RONDO_ATTRIBUTE_INT, 1, NULL},
                                                                    {"stash_type", RONDO_ATTRIBUTE_INT, 0, "1"}};
NORM_PROTOTYPE(GroupNormalization, "Groups of channels of each batch normalized together", norm_infer_channels);

/* ----------------------------------------------------------------------------------- LpNormalization, LRN */

static rondo_status norm_infer_lp(rondo__ops_infer *infer) {
    int64_t p = rondo__ops_attribute_int(infer->request, "p", 2);
    int32_t axis;
    if (p != 1 && p != 2) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute 'p' is %lld", (long long)p);
    RONDO__TRY(rondo__ops_axis(infer, "axis", rondo__ops_attribute_int(infer->request, "axis", -1),
                               infer->request->inputs[0].rank, &axis));
    return rondo__ops_infer_same(infer);
}

static rondo_status norm_infer_lrn(rondo__ops_infer *infer) {
    if (infer->request->inputs[0].rank < 2 || rondo__ops_attribute_int(infer->request, "size", 0) < 1) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "it needs channels, and a size of 1 or more");
    }
    return rondo__ops_infer_same(infer);
}

static const rondo__ops_operand norm_in_LpNormalization[] = {NORM_OPERAND("input", 'T', 0)};
static const rondo__ops_operand norm_out_LpNormalization[] = {NORM_OPERAND("output", 'T', 0)};
static const rondo__ops_attribute norm_with_LpNormalization[] = {{"axis", RONDO_ATTRIBUTE_INT, 0, "-1"},
                                                                 {"p", RONDO_ATTRIBUTE_INT, 0, "2"}};
NORM_PROTOTYPE(LpNormalization, "The values over their norm along an axis", norm_infer_lp);
static const rondo__ops_operand norm_in_LRN[] = {NORM_OPERAND("X", 'T', 0)};
static const rondo__ops_operand norm_out_LRN[] = {NORM_OPERAND("Y", 'T', 0)};
static const rondo__ops_attribute norm_with_LRN[] = {{"alpha", RONDO_ATTRIBUTE_FLOAT, 0, "0.0001"},
                                                     {"beta", RONDO_ATTRIBUTE_FLOAT, 0, "0.75"},
                                                     {"bias", RONDO_ATTRIBUTE_FLOAT, 0, "1"},
                                                     {"size", RONDO_ATTRIBUTE_INT, 1, NULL}};
NORM_PROTOTYPE(LRN, "The values damped by those of `size` channels around them", norm_infer_lrn);

/* -------------------------------------------------------------------------------------------------- losses */

static rondo_status norm_infer_loss(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0], *labels = &infer->request->inputs[1];
    const rondo_operand *weight = rondo__ops_input(infer, 2);
    const char *reduction = rondo__ops_attribute_string(infer->request, "reduction", "mean");
    bool each = strcmp(reduction, "none") == 0;
    if (!each && strcmp(reduction, "mean") != 0 && strcmp(reduction, "sum") != 0) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "there is no reduction '%s'", reduction);
    }
    bool fits = input->rank >= 2 && labels->rank == input->rank - 1 && labels->dims[0] == input->dims[0];
    for (int32_t d = 1; fits && d < labels->rank; d++) fits = labels->dims[d] == input->dims[d + 1];
    if (!fits) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "labels and classes do not fit each other");
    if (weight && (weight->rank != 1 || weight->dims[0] != input->dims[1])) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "there must be a weight for each of %lld classes",
                               (long long)input->dims[1]);
    }
    rondo__ops_result(infer, 0, input->dtype, each ? labels->rank : 0, labels->dims);
    rondo__ops_result(infer, 1, input->dtype, input->rank, input->dims);
    return RONDO_OK;
}

static const rondo__ops_attribute norm_with_NegativeLogLikelihoodLoss[] = {
    {"ignore_index", RONDO_ATTRIBUTE_INT, 0, NULL}, {"reduction", RONDO_ATTRIBUTE_STRING, 0, "mean"}};
static const rondo__ops_operand norm_in_NegativeLogLikelihoodLoss[] = {
    NORM_OPERAND("input", 'T', 0), {"target", RONDO__OPS_INDEX, 0, 0, 0, 0}, NORM_OPERAND("weight", 'T', 1)};
static const rondo__ops_operand norm_out_NegativeLogLikelihoodLoss[] = {NORM_OPERAND("loss", 'T', 0)};
NORM_PROTOTYPE(NegativeLogLikelihoodLoss, "What is lost against the labels, from logarithms of probabilities",
               norm_infer_loss);
#define norm_with_SoftmaxCrossEntropyLoss norm_with_NegativeLogLikelihoodLoss
static const rondo__ops_operand norm_in_SoftmaxCrossEntropyLoss[] = {
    NORM_OPERAND("scores", 'T', 0), {"labels", RONDO__OPS_INDEX, 0, 0, 0, 0}, NORM_OPERAND("weights", 'T', 1)};
static const rondo__ops_operand norm_out_SoftmaxCrossEntropyLoss[] = {NORM_OPERAND("output", 'T', 0),
                                                                      NORM_OPERAND("log_prob", 'T', 1)};
NORM_PROTOTYPE(SoftmaxCrossEntropyLoss, "What is lost against the labels, from scores", norm_infer_loss);
#undef norm_with_SoftmaxCrossEntropyLoss
