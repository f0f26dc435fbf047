/* SPDX-License-Identifier: Apache-2.0
 *
 * Conv in any number of spatial dimensions: for each output element, the taps of the kernel window in row-major order,
 * and for each tap a sum over the group's channels. Products and sums are double, bias included, rounded once. */
#include "ref.h"

/* The output's size along one axis and the padding before it; false when it cannot be. */
static bool conv_axis(const char *auto_pad, int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                      int64_t *begin, int64_t end, int64_t *out) {
    int64_t window, padded;
    if (__builtin_mul_overflow(kernel - 1, dilation, &window)) return false;
    if (__builtin_add_overflow(window, 1, &window)) return false;
    if (strncmp(auto_pad, "SAME", 4) == 0) {
        *out = in / stride + (in % stride != 0);
        int64_t total = *out == 0 ? 0 : (*out - 1) * stride;
        if (__builtin_add_overflow(total, window, &total)) return false;
        total = total > in ? total - in : 0;
        *begin = strcmp(auto_pad, "SAME_LOWER") == 0 ? total - total / 2 : total / 2;
        return true;
    }
    if (strcmp(auto_pad, "VALID") == 0) *begin = end = 0;
    if (__builtin_add_overflow(in, *begin, &padded) || __builtin_add_overflow(padded, end, &padded)) return false;
    if (padded < window) return false;
    *out = (padded - window) / stride + 1;
    return true;
}

static rondo_status conv_build_axes(rondo__ref_builder *b, int64_t *dims) {
    static const char *const modes[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    rondo__ref_conv *c = &b->kernel->as.conv;
    const rondo__ref_tensor *x = rondo__ref_input(b->kernel, 0), *w = rondo__ref_input(b->kernel, 1);
    const uint32_t n = (uint32_t)c->spatial;
    const int64_t most = INT32_MAX;
    int64_t pads[2 * RONDO_RANK_MAX] = {0}, shape[RONDO_RANK_MAX];
    const char *auto_pad = "NOTSET";
    for (uint32_t d = 0; d < n; d++) {
        c->strides[d] = c->dilations[d] = 1;
        shape[d] = w->dims[2 + d];
    }
    rondo_status status = rondo__ref_attribute_ints(b, "strides", n, 1, most, c->strides);
    if (!status) status = rondo__ref_attribute_ints(b, "dilations", n, 1, most, c->dilations);
    if (!status) status = rondo__ref_attribute_ints(b, "pads", 2 * n, 0, most, pads);
    if (!status) status = rondo__ref_attribute_ints(b, "kernel_shape", n, 0, most, shape);
    if (!status) status = rondo__ref_attribute_string(b, "auto_pad", &auto_pad);
    if (status) return status;
    uint32_t mode = 0;
    while (mode < 4 && strcmp(modes[mode], auto_pad) != 0) mode++;
    if (mode == 4) return RONDO__REF_REFUSE(b, UNSUPPORTED, "it does not know the auto_pad '%s'", auto_pad);
    for (uint32_t d = 0; d < n; d++) {
        if (shape[d] != w->dims[2 + d] || shape[d] < 1) {
            return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "kernel_shape and the weights differ along axis %u, or are 0",
                                     d);
        }
        c->begins[d] = pads[d];
        if (!conv_axis(auto_pad, x->dims[2 + d], shape[d], c->strides[d], c->dilations[d], &c->begins[d], pads[n + d],
                       &dims[2 + d])) {
            return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the kernel is larger than the padded input along axis %u",
                                     d);
        }
    }
    return RONDO_OK;
}

static rondo_status conv_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    rondo__ref_conv *c = &k->as.conv;
    const rondo__ref_tensor *x = rondo__ref_input(k, 0), *w = rondo__ref_input(k, 1);
    const rondo__ref_tensor *bias = rondo__ref_optional_input(k, 2);
    int64_t dims[RONDO_RANK_MAX];
    rondo_status status = rondo__ref_need_types(b, "input 0", x, RONDO__REF_FLOAT_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the weights", w, x->dtype);
    if (!status && bias) status = rondo__ref_need_same_type(b, "the bias", bias, x->dtype);
    if (!status) status = rondo__ref_need_same_type(b, "the output", rondo__ref_output(k, 0), x->dtype);
    if (status) return status;
    if (x->rank < 3 || w->rank != x->rank) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT,
                                 "input and weights must have one rank of at least 3, not %d and %d", (int)x->rank,
                                 (int)w->rank);
    }
    c->spatial = x->rank - 2;
    c->group = 1;
    status = rondo__ref_attribute_int(b, "group", &c->group);
    if (!status) status = rondo__ref_attribute_activation(b);
    if (status) return status;
    int64_t channels;
    if (c->group < 1 || __builtin_mul_overflow(w->dims[1], c->group, &channels) || channels != x->dims[1] ||
        w->dims[0] % c->group != 0) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT,
                                 "%lld channels, weights for %lld and %lld outputs do not make %lld "
                                 "groups",
                                 (long long)x->dims[1], (long long)w->dims[1], (long long)w->dims[0],
                                 (long long)c->group);
    }
    dims[0] = x->dims[0];
    dims[1] = w->dims[0];
    status = conv_build_axes(b, dims);
    if (!status) status = rondo__ref_need_dims(b, "the output", rondo__ref_output(k, 0), x->rank, dims);
    if (!status && bias) status = rondo__ref_need_dims(b, "the bias", bias, 1, &w->dims[0]);
    return status;
}

/* One output element: `x` and `w` begin at the group's first channel and the output channel's weights. */
static double conv_element(const rondo__ref_kernel *k, const unsigned char *x, const unsigned char *w,
                           const int64_t *place) {
    const rondo__ref_conv *c = &k->as.conv;
    const rondo__ref_tensor *in = &k->tensors[0], *weights = &k->tensors[1];
    int64_t strides[RONDO_RANK_MAX], tap[RONDO_RANK_MAX] = {0}, tap_number = 0;
    const int64_t taps = weights->count / (weights->dims[0] * weights->dims[1]);
    rondo__ref_compact(in->rank, in->dims, strides);
    double sum = 0;
    do {
        int64_t offset = 0;
        bool inside = true;
        for (int32_t d = 0; d < c->spatial; d++) {
            int64_t at = place[d] * c->strides[d] - c->begins[d] + tap[d] * c->dilations[d];
            inside = inside && at >= 0 && at < in->dims[2 + d];
            offset += at * strides[2 + d];
        }
        if (inside) {
            sum += rondo__ref_dot(in->dtype, weights->dims[1], x + (size_t)offset * in->size, strides[1],
                                  w + (size_t)tap_number * in->size, taps);
        }
        tap_number++;
    } while (rondo__ref_next(c->spatial, &weights->dims[2], tap));
    return sum;
}

static int32_t conv_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_conv *c = &k->as.conv;
    const rondo__ref_tensor *x = &k->tensors[0], *w = &k->tensors[1], *out = &k->tensors[k->input_count];
    if (out->count == 0) return RONDO__REF_OK;
    const void *bias = rondo__ref_optional_input(k, 2) ? rondo__ref_address(words[2]) : NULL;
    void *to = rondo__ref_address(rondo__ref_output_word(k, words, 0));
    /* Without channels there are no weights: the result is the bias. */
    const bool sums = w->count > 0 && x->count > 0;
    const int64_t image = x->count / x->dims[0], weights = w->count / w->dims[0];
    const int64_t group_in = sums ? image / c->group : 0, group_out = w->dims[0] / c->group;
    int64_t at = 0;
    for (int64_t n = 0; n < x->dims[0]; n++) {
        for (int64_t m = 0; m < w->dims[0]; m++) {
            int64_t place[RONDO_RANK_MAX] = {0};
            do {
                double sum = 0;
                if (sums) {
                    const size_t from = (size_t)(n * image + m / group_out * group_in) * x->size;
                    sum = conv_element(
                        k, (const unsigned char *)rondo__ref_address(words[0]) + from,
                        (const unsigned char *)rondo__ref_address(words[1]) + (size_t)(m * weights) * x->size, place);
                }
                if (bias) sum += rondo__ref_get(x->dtype, bias, m);
                rondo__ref_put(x->dtype, to, at++, sum);
            } while (rondo__ref_next(c->spatial, &out->dims[2], place));
        }
    }
    rondo__ref_activate(&k->activation, out->dtype, to, out->count);
    return RONDO__REF_OK;
}

const rondo__ref_operator rondo__ref_conv_operators[] = {
    {"Conv", 2, 3, 1, 1, "auto_pad dilations group kernel_shape pads strides rondo.activation rondo.alpha rondo.beta",
     conv_build, conv_run, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
