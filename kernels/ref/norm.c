/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalizations and losses: mean, variance, norms and sums are taken in double, in row-major order, and rounded where
 * the result is stored. */
#include "ref.h"

#include <math.h>

#define NORM_TYPES RONDO__REF_REAL_TYPES

static int64_t norm_count(const rondo__ref_tensor *t, int64_t from, int64_t to) {
    int64_t count = 1;
    for (int64_t d = from; d < to; d++) count *= t->dims[d];
    return count;
}

static bool norm_given(const rondo__ref_tensor *t) { return t->dtype != RONDO_DTYPE_UNDEFINED; }

static double norm_read(const rondo__ref_tensor *t, uint64_t word, int64_t i) {
    return rondo__ref_get_real(t->dtype, rondo__ref_address(word), i);
}

/* ------------------------------------------------------------------ LayerNormalization, RMSNormalization */

/* Scale and bias broadcast to the input; each fits under the walk of the input's shape. */
static rondo_status norm_layer_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *out = rondo__ref_output(k, 0);
    int64_t stash = 1, dims[RONDO_RANK_MAX];
    rondo_status status = rondo__ref_need_types(b, "the input", in, NORM_TYPES);
    if (!status) status = rondo__ref_need_types(b, "the scale", rondo__ref_input(k, 1), NORM_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, rondo__ref_input(k, 1)->dtype);
    if (!status) status = rondo__ref_need_shape_of(b, "the output", out, in);
    if (!status) status = rondo__ref_attribute_axis(b, -1, in->rank, false, &k->as.norm.axis);
    k->as.norm.epsilon = 1e-5f;
    if (!status) status = rondo__ref_attribute_float(b, "epsilon", &k->as.norm.epsilon);
    if (!status) status = rondo__ref_attribute_int(b, "stash_type", &stash);
    for (int32_t d = 0; d < in->rank; d++) dims[d] = d < k->as.norm.axis ? in->dims[d] : 1;
    for (uint32_t i = 1; i < k->output_count && !status; i++) {
        const rondo__ref_tensor *also = rondo__ref_output(k, i);
        if (!norm_given(also)) continue;
        status = rondo__ref_need_types(b, "a statistic", also, NORM_TYPES);
        if (!status) status = rondo__ref_need_dims(b, "a statistic", also, in->rank, dims);
    }
    for (uint32_t i = 1; i < k->input_count && !status; i++) {
        const rondo__ref_tensor *t = rondo__ref_input(k, i);
        if (!norm_given(t)) continue;
        status = rondo__ref_need_types(b, "scale or bias", t, NORM_TYPES);
        bool fits = t->rank <= in->rank;
        for (int32_t d = 0; fits && d < t->rank; d++) {
            fits = t->dims[d] == 1 || t->dims[d] == in->dims[in->rank - t->rank + d];
        }
        if (!status && !fits)
            status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "input %u does not broadcast to the input", i);
    }
    return status;
}

/* Rows without elements have a mean all the same: that of nothing, which is no number. */
static int32_t norm_of_nothing(const rondo__ref_kernel *k, const uint64_t *words) {
    for (uint32_t i = 1; i < k->output_count; i++) {
        const rondo__ref_tensor *also = &k->tensors[k->input_count + i];
        for (int64_t row = 0; norm_given(also) && row < also->count; row++)
            rondo__ref_put_real(also->dtype, rondo__ref_address(words[k->input_count + i]), row, (double)NAN);
    }
    return RONDO__REF_OK;
}

static int32_t norm_layer_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const bool root = strcmp(k->op->name, "RMSNormalization") == 0;
    const rondo__ref_tensor *in = &k->tensors[0], *out = &k->tensors[k->input_count];
    const int64_t n = norm_count(in, k->as.norm.axis, in->rank);
    if (in->count == 0) return norm_of_nothing(k, words);
    int64_t strides[2][RONDO_RANK_MAX], index[RONDO_RANK_MAX] = {0};
    const rondo__ref_tensor *bias = rondo__ref_optional_input(k, 2);
    rondo__ref_broadcast_strides(&k->tensors[1], in->rank, strides[0]);
    if (bias) rondo__ref_broadcast_strides(bias, in->rank, strides[1]);
    for (int64_t row = 0; row < in->count / n; row++) {
        double mean = 0, sum = 0;
        for (int64_t i = 0; i < n && !root; i++) mean += norm_read(in, words[0], row * n + i);
        mean /= (double)n;
        for (int64_t i = 0; i < n; i++) {
            double x = norm_read(in, words[0], row * n + i) - mean;
            sum += x * x;
        }
        double inverse = 1.0 / sqrt(sum / (double)n + (double)k->as.norm.epsilon);
        for (int64_t i = 0; i < n; i++) {
            double x = (norm_read(in, words[0], row * n + i) - mean) * inverse;
            x *= norm_read(&k->tensors[1], words[1], rondo__ref_offset(in->rank, strides[0], index));
            if (bias) x += norm_read(bias, words[2], rondo__ref_offset(in->rank, strides[1], index));
            rondo__ref_put_real(out->dtype, rondo__ref_address(words[k->input_count]), row * n + i, x);
            (void)rondo__ref_next(in->rank, in->dims, index);
        }
        for (uint32_t i = 1; i < k->output_count; i++) {
            const rondo__ref_tensor *also = &k->tensors[k->input_count + i];
            if (norm_given(also))
                rondo__ref_put_real(also->dtype, rondo__ref_address(words[k->input_count + i]), row,
                                    i == 1 ? mean : inverse);
        }
    }
    return RONDO__REF_OK;
}

/* -------------------------------------------- BatchNormalization (as a model runs), Instance..., Group... */

static rondo_status norm_channel_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *out = rondo__ref_output(k, 0);
    int64_t training = 0, groups = 0, stash = 1;
    float momentum = 0;
    rondo_status status = rondo__ref_need_types(b, "the input", in, NORM_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, in->dtype);
    if (!status) status = rondo__ref_need_shape_of(b, "the output", out, in);
    k->as.norm.epsilon = 1e-5f;
    if (!status) status = rondo__ref_attribute_float(b, "epsilon", &k->as.norm.epsilon);
    if (!status) status = rondo__ref_attribute_float(b, "momentum", &momentum);
    if (!status) status = rondo__ref_attribute_int(b, "training_mode", &training);
    if (!status) status = rondo__ref_attribute_int(b, "num_groups", &groups);
    if (!status) status = rondo__ref_attribute_int(b, "stash_type", &stash);
    if (!status && training) status = RONDO__REF_REFUSE(b, UNSUPPORTED, "training_mode 1");
    if (!status && in->rank < 1 + (k->input_count == 3))
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the input has no channels");
    if (status) return status;
    const int64_t channels = in->rank > 1 ? in->dims[1] : 1;
    k->as.norm.axis = groups ? groups : channels;
    if (k->as.norm.axis < 0 || (channels && channels % k->as.norm.axis != 0))
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "%lld channels in %lld groups", (long long)channels,
                                 (long long)groups);
    for (uint32_t i = 1; i < k->input_count && !status; i++) {
        status = rondo__ref_need_types(b, "a parameter", rondo__ref_input(k, i), NORM_TYPES);
        if (!status) status = rondo__ref_need_dims(b, "a parameter", rondo__ref_input(k, i), 1, &channels);
    }
    return status;
}

/* Mean and the inverse of the deviation of what is normalized together. */
static void norm_statistics(const rondo__ref_kernel *k, const uint64_t *words, int64_t from, int64_t n,
                            double out_statistics[2]) {
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) mean += norm_read(&k->tensors[0], words[0], from + i);
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++) {
        double x = norm_read(&k->tensors[0], words[0], from + i) - mean;
        sum += x * x;
    }
    out_statistics[0] = mean;
    out_statistics[1] = 1.0 / sqrt(sum / (double)n + (double)k->as.norm.epsilon);
}

static int32_t norm_channel_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0];
    const int64_t channels = in->rank > 1 ? in->dims[1] : 1, groups = k->as.norm.axis;
    if (in->count == 0) return RONDO__REF_OK;
    const bool given = k->input_count == 5;
    const int64_t plane = norm_count(in, in->rank > 1 ? 2 : 1, in->rank), together = channels / groups * plane;
    void *out = rondo__ref_address(words[k->input_count]);
    double statistics[2] = {0, 0};
    for (int64_t i = 0; i < in->count; i++) {
        int64_t c = i / plane % channels;
        if (given && i % plane == 0) {
            statistics[0] = norm_read(&k->tensors[3], words[3], c);
            statistics[1] = 1.0 / sqrt(norm_read(&k->tensors[4], words[4], c) + (double)k->as.norm.epsilon);
        } else if (!given && i % together == 0) {
            norm_statistics(k, words, i, together, statistics);
        }
        double x = (norm_read(in, words[0], i) - statistics[0]) * statistics[1];
        x = x * norm_read(&k->tensors[1], words[1], c) + norm_read(&k->tensors[2], words[2], c);
        rondo__ref_put_real(in->dtype, out, i, x);
    }
    return RONDO__REF_OK;
}

/* -------------------------------------------------------------------------------- LpNormalization, LRN */

static rondo_status norm_same_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *out = rondo__ref_output(k, 0);
    rondo_status status = rondo__ref_need_types(b, "the input", in, NORM_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, in->dtype);
    if (!status) status = rondo__ref_need_shape_of(b, "the output", out, in);
    return status;
}

static rondo_status norm_lp_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    int64_t p = 2;
    rondo_status status = norm_same_build(b);
    if (!status) status = rondo__ref_attribute_axis(b, -1, rondo__ref_input(k, 0)->rank, false, &k->as.norm.axis);
    if (!status) status = rondo__ref_attribute_int(b, "p", &p);
    if (!status && p != 1 && p != 2) status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "p is %lld", (long long)p);
    k->as.norm.size = p;
    return status;
}

/* A line of zeros stays. */
static int32_t norm_lp_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0];
    const int64_t n = in->dims[k->as.norm.axis], step = norm_count(in, k->as.norm.axis + 1, in->rank);
    for (int64_t line = 0; in->count && line < in->count / n; line++) {
        int64_t base = line / step * n * step + line % step;
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            double x = norm_read(in, words[0], base + i * step);
            sum += k->as.norm.size == 1 ? fabs(x) : x * x;
        }
        double norm = k->as.norm.size == 1 ? sum : sqrt(sum);
        for (int64_t i = 0; i < n; i++) {
            double x = norm_read(in, words[0], base + i * step);
            rondo__ref_put_real(in->dtype, rondo__ref_address(words[1]), base + i * step, norm == 0 ? 0 : x / norm);
        }
    }
    return RONDO__REF_OK;
}

static rondo_status norm_lrn_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    k->as.norm.epsilon = 1e-4f; /* alpha */
    k->as.norm.beta = 0.75f;
    k->as.norm.bias = 1.0f;
    rondo_status status = norm_same_build(b);
    if (!status) status = rondo__ref_attribute_float(b, "alpha", &k->as.norm.epsilon);
    if (!status) status = rondo__ref_attribute_float(b, "beta", &k->as.norm.beta);
    if (!status) status = rondo__ref_attribute_float(b, "bias", &k->as.norm.bias);
    if (!status) status = rondo__ref_attribute_int(b, "size", &k->as.norm.size);
    if (!status && (k->as.norm.size < 1 || rondo__ref_input(k, 0)->rank < 2))
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "it needs channels and a size of 1 or more");
    return status;
}

static int32_t norm_lrn_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0];
    const int64_t channels = in->dims[1], plane = norm_count(in, 2, in->rank), size = k->as.norm.size;
    for (int64_t i = 0; i < in->count; i++) {
        int64_t c = i / plane % channels, low = c - (size - 1) / 2, high = c + size / 2;
        double sum = 0;
        for (int64_t other = low < 0 ? 0 : low; other <= high && other < channels; other++) {
            double x = norm_read(in, words[0], i + (other - c) * plane);
            sum += x * x;
        }
        double base = (double)k->as.norm.bias + (double)k->as.norm.epsilon / (double)size * sum;
        rondo__ref_put_real(in->dtype, rondo__ref_address(words[1]), i,
                            norm_read(in, words[0], i) / pow(base, (double)k->as.norm.beta));
    }
    return RONDO__REF_OK;
}

/* ------------------------------------------------------- NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss */

enum { NORM_MEAN, NORM_SUM, NORM_EACH };

static rondo_status norm_loss_build(rondo__ref_builder *b) {
    static const char *const names[] = {"mean", "sum", "none"};
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *labels = rondo__ref_input(k, 1);
    const rondo__ref_tensor *weight = rondo__ref_optional_input(k, 2), *out = rondo__ref_output(k, 0);
    const char *name = "mean";
    int32_t mode = 0, rank = 0;
    int64_t dims[RONDO_RANK_MAX];
    rondo_status status = rondo__ref_need_types(b, "the input", in, NORM_TYPES);
    if (!status) status = rondo__ref_need_types(b, "the labels", labels, RONDO__REF_INDEX_TYPES);
    if (!status && norm_given(out)) status = rondo__ref_need_same_type(b, "the output", out, in->dtype);
    if (!status && in->rank < 2) status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the input has no classes");
    if (!status) status = rondo__ref_attribute_string(b, "reduction", &name);
    if (status) return status;
    while (mode < 3 && strcmp(names[mode], name) != 0) mode++;
    if (mode == 3) return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "there is no reduction '%s'", name);
    k->as.norm.mode = mode;
    k->as.norm.ignores = rondo__ref_attribute(b->request, "ignore_index") != NULL;
    status = rondo__ref_attribute_int(b, "ignore_index", &k->as.norm.axis);
    for (int32_t d = 0; d < in->rank; d++) {
        if (d != 1) dims[rank++] = in->dims[d];
    }
    if (!status) status = rondo__ref_need_dims(b, "the labels", labels, rank, dims);
    if (!status && weight) status = rondo__ref_need_same_type(b, "the weights", weight, in->dtype);
    if (!status && weight) status = rondo__ref_need_dims(b, "the weights", weight, 1, &in->dims[1]);
    if (!status && norm_given(out))
        status = rondo__ref_need_dims(b, "the output", out, mode == NORM_EACH ? rank : 0, dims);
    if (!status && k->output_count > 1 && norm_given(rondo__ref_output(k, 1))) {
        status = rondo__ref_need_same_type(b, "log_prob", rondo__ref_output(k, 1), in->dtype);
        if (!status) status = rondo__ref_need_shape_of(b, "log_prob", rondo__ref_output(k, 1), in);
    }
    return status;
}

/* The logarithm of what softmax over the classes sums up, at one place. */
static double norm_log_sum(const rondo__ref_kernel *k, const uint64_t *words, int64_t base, int64_t step) {
    double most = -(double)INFINITY, sum = 0;
    for (int64_t c = 0; c < k->tensors[0].dims[1]; c++) {
        most = fmax(most, norm_read(&k->tensors[0], words[0], base + c * step));
    }
    for (int64_t c = 0; c < k->tensors[0].dims[1]; c++) {
        sum += exp(norm_read(&k->tensors[0], words[0], base + c * step) - most);
    }
    return most + log(sum);
}

static int32_t norm_loss_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const bool soft = strcmp(k->op->name, "SoftmaxCrossEntropyLoss") == 0;
    const rondo__ref_tensor *in = &k->tensors[0], *labels = &k->tensors[1], *out = &k->tensors[k->input_count];
    const rondo__ref_tensor *weight = rondo__ref_optional_input(k, 2);
    const int64_t classes = in->dims[1], step = norm_count(in, 2, in->rank);
    void *to = rondo__ref_address(words[k->input_count]);
    const uint32_t second = k->input_count + 1;
    void *logs = k->output_count > 1 && norm_given(&k->tensors[second]) ? rondo__ref_address(words[second]) : NULL;
    double sum = 0, weights = 0;
    for (int64_t i = 0; i < labels->count; i++) {
        int64_t base = i / step * classes * step + i % step;
        double log_sum = soft ? norm_log_sum(k, words, base, step) : 0, loss = 0;
        for (int64_t c = 0; c < classes && logs; c++) {
            rondo__ref_put_real(in->dtype, logs, base + c * step, norm_read(in, words[0], base + c * step) - log_sum);
        }
        int64_t label = rondo__ref_get_int(labels->dtype, rondo__ref_address(words[1]), i);
        if (!k->as.norm.ignores || label != k->as.norm.axis) {
            if (label < 0 || label >= classes) return RONDO__REF_INDEX_RANGE;
            double by = weight ? norm_read(weight, words[2], label) : 1;
            loss = (log_sum - norm_read(in, words[0], base + label * step)) * by;
            weights += by;
        }
        sum += loss;
        if (k->as.norm.mode == NORM_EACH && norm_given(out)) rondo__ref_put_real(out->dtype, to, i, loss);
    }
    if (k->as.norm.mode != NORM_EACH && norm_given(out))
        rondo__ref_put_real(out->dtype, to, 0, k->as.norm.mode == NORM_MEAN ? sum / weights : sum);
    return RONDO__REF_OK;
}

const rondo__ref_operator rondo__ref_norm_operators[] = {
    {"BatchNormalization", 5, 5, 1, 1, "epsilon momentum training_mode", norm_channel_build, norm_channel_run, NULL},
    {"GroupNormalization", 3, 3, 1, 1, "epsilon num_groups stash_type", norm_channel_build, norm_channel_run, NULL},
    {"InstanceNormalization", 3, 3, 1, 1, "epsilon", norm_channel_build, norm_channel_run, NULL},
    {"LRN", 1, 1, 1, 1, "alpha beta bias size", norm_lrn_build, norm_lrn_run, NULL},
    {"LayerNormalization", 2, 3, 1, 3, "axis epsilon stash_type", norm_layer_build, norm_layer_run, NULL},
    {"LpNormalization", 1, 1, 1, 1, "axis p", norm_lp_build, norm_lp_run, NULL},
    {"NegativeLogLikelihoodLoss", 2, 3, 1, 1, "ignore_index reduction", norm_loss_build, norm_loss_run, NULL},
    {"RMSNormalization", 2, 2, 1, 1, "axis epsilon stash_type", norm_layer_build, norm_layer_run, NULL},
    {"SoftmaxCrossEntropyLoss", 2, 3, 1, 2, "ignore_index reduction", norm_loss_build, norm_loss_run, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
