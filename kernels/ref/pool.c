/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling: the largest, the mean or a norm of each window over the axes after batch and channel. Sums are kept in double
 * in row-major order. */
#include "ref.h"

#include <math.h>

enum { POOL_MAX, POOL_AVERAGE, POOL_NORM };

static int pool_kind(const char *name) {
    return strstr(name, "Max") ? POOL_MAX : strstr(name, "Average") ? POOL_AVERAGE : POOL_NORM;
}

/* Size of the output along one axis, and the pads before and after it. */
static bool pool_size(const rondo__ref_pool *p, int32_t d, int64_t size, const char *auto_pad, int64_t *end,
                      int64_t *begin, int64_t *out) {
    int64_t reach = (p->kernel[d] - 1) * p->dilations[d] + 1, stride = p->strides[d];
    if (strncmp(auto_pad, "SAME_", 5) == 0) {
        *out = size / stride + (size % stride != 0);
        int64_t total = (*out - 1) * stride + reach - size;
        if (total < 0) total = 0;
        *begin = strcmp(auto_pad, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
        *end = total - *begin;
        return true;
    }
    int64_t span = size + *begin + *end - reach;
    if (span < 0) return false;
    *out = span / stride + 1;
    /* A window that starts behind all elements is left out. */
    if (p->ceil && span % stride != 0 && *out * stride < size + *begin) ++*out;
    return true;
}

static rondo_status pool_settings(rondo__ref_builder *b, rondo__ref_pool *p) {
    int64_t include = 0, ceil_mode = 0, order = 0;
    rondo_status status = rondo__ref_attribute_int(b, "ceil_mode", &ceil_mode);
    if (!status) status = rondo__ref_attribute_int(b, "count_include_pad", &include);
    if (!status) status = rondo__ref_attribute_int(b, "storage_order", &order);
    if (!status) status = rondo__ref_attribute_int(b, "p", &p->p);
    if (!status && p->p < 1) status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "p is %lld", (long long)p->p);
    p->ceil = ceil_mode != 0;
    p->include = include != 0;
    p->columns = order != 0;
    return status;
}

static rondo_status pool_shape(rondo__ref_builder *b, rondo__ref_pool *p) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0);
    const int32_t spatial = in->rank - 2;
    const uint32_t n = (uint32_t)spatial;
    const int64_t most = INT32_MAX;
    const char *auto_pad = "NOTSET";
    int64_t pads[2 * RONDO_RANK_MAX] = {0}, dims[RONDO_RANK_MAX] = {in->dims[0], in->dims[1]};
    rondo_status status = rondo__ref_attribute_ints(b, "kernel_shape", n, 1, most, p->kernel);
    if (!status) status = rondo__ref_attribute_ints(b, "strides", n, 1, most, p->strides);
    if (!status) status = rondo__ref_attribute_ints(b, "dilations", n, 1, most, p->dilations);
    if (!status) status = rondo__ref_attribute_ints(b, "pads", 2 * n, 0, most, pads);
    if (!status) status = rondo__ref_attribute_string(b, "auto_pad", &auto_pad);
    for (int32_t d = 0; d < spatial && !status; d++) {
        p->begins[d] = pads[d];
        p->ends[d] = pads[spatial + d];
        if (in->dims[2 + d] > most ||
            !pool_size(p, d, in->dims[2 + d], auto_pad, &p->ends[d], &p->begins[d], &dims[2 + d]))
            status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the window does not fit on axis %d", (int)(2 + d));
    }
    return status ? status : rondo__ref_need_dims(b, "the output", rondo__ref_output(k, 0), in->rank, dims);
}

static rondo_status pool_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *out = rondo__ref_output(k, 0);
    const bool whole = strncmp(k->op->name, "Global", 6) == 0;
    uint32_t types = RONDO__REF_REAL_TYPES;
    if (pool_kind(k->op->name) == POOL_MAX && !whole) types |= RONDO__REF_BIT(I8) | RONDO__REF_BIT(U8);
    rondo_status status = rondo__ref_need_types(b, "the input", in, types);
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, in->dtype);
    if (!status && in->rank < (whole ? 2 : 3))
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the input has no axes after batch and channel");
    rondo__ref_pool *p = &k->as.pool;
    for (int32_t d = 0; d < RONDO_RANK_MAX; d++) p->strides[d] = p->dilations[d] = 1;
    for (int32_t d = 2; d < in->rank && whole; d++) p->kernel[d - 2] = in->dims[d] ? in->dims[d] : 1;
    p->p = 2;
    if (!status && !whole && !rondo__ref_attribute(b->request, "kernel_shape"))
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "it needs a kernel_shape");
    if (!status) status = pool_settings(b, p);
    if (!status) status = pool_shape(b, p);
    if (!status && k->output_count > 1 && rondo__ref_output(k, 1)->dtype != RONDO_DTYPE_UNDEFINED) {
        p->indices = true;
        status = rondo__ref_need_same_type(b, "the indices", rondo__ref_output(k, 1), RONDO_DTYPE_I64);
        if (!status) status = rondo__ref_need_shape_of(b, "the indices", rondo__ref_output(k, 1), out);
    }
    return status;
}

typedef struct pool_window {
    double value;  /* the largest, or the sum */
    int64_t count; /* of elements, with those of the pads when they are included */
    int64_t at;    /* the largest one's place in its plane */
} pool_window;

/* Where element `index` of a plane is when the last axis counts most. */
static int64_t pool_by_columns(const rondo__ref_tensor *in, const int64_t *place) {
    int64_t at = 0;
    for (int32_t d = in->rank - 3; d >= 0; d--) at = at * in->dims[2 + d] + place[d];
    return at;
}

static pool_window pool_look(const rondo__ref_kernel *k, const void *data, int64_t base, const int64_t *place) {
    const rondo__ref_pool *p = &k->as.pool;
    const rondo__ref_tensor *in = &k->tensors[0];
    const int kind = pool_kind(k->op->name);
    const int32_t spatial = in->rank - 2;
    const bool real = rondo__ref_is_real(in->dtype);
    pool_window w = {kind == POOL_MAX ? -(double)INFINITY : 0.0, 0, -1};
    int64_t tap[RONDO_RANK_MAX] = {0}, at[RONDO_RANK_MAX];
    do {
        bool inside = true, padded = true;
        int64_t offset = 0;
        for (int32_t d = 0; d < spatial; d++) {
            at[d] = place[d] * p->strides[d] - p->begins[d] + tap[d] * p->dilations[d];
            inside = inside && at[d] >= 0 && at[d] < in->dims[2 + d];
            padded = padded && at[d] < in->dims[2 + d] + p->ends[d];
            offset = offset * in->dims[2 + d] + at[d];
        }
        w.count += inside || (p->include && padded);
        if (!inside) continue;
        double x = real ? rondo__ref_get_real(in->dtype, data, base + offset)
                        : (double)rondo__ref_get_int(in->dtype, data, base + offset);
        if (kind == POOL_AVERAGE) w.value += x;
        if (kind == POOL_NORM) w.value += pow(fabs(x), (double)p->p);
        if (kind == POOL_MAX && (w.at < 0 || x > w.value || x != x)) {
            w.value = x;
            w.at = p->columns ? pool_by_columns(in, at) : offset;
        }
    } while (rondo__ref_next(spatial, p->kernel, tap));
    return w;
}

static int32_t pool_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_pool *p = &k->as.pool;
    const rondo__ref_tensor *in = &k->tensors[0], *out = &k->tensors[1];
    const int kind = pool_kind(k->op->name);
    int64_t plane = 1, results = 1, place[RONDO_RANK_MAX] = {0};
    for (int32_t d = 2; d < in->rank; d++) {
        plane *= in->dims[d];
        results *= out->dims[d];
    }
    int64_t *indices = p->indices ? (int64_t *)rondo__ref_address(words[2]) : NULL;
    for (int64_t i = 0; i < out->count; i++) {
        const int64_t base = i / results * plane;
        pool_window w = pool_look(k, rondo__ref_address(words[0]), base, place);
        double value = kind == POOL_AVERAGE ? w.value / (double)w.count
                       : kind == POOL_NORM  ? pow(w.value, 1.0 / (double)p->p)
                                            : w.value;
        if (rondo__ref_is_real(out->dtype)) {
            rondo__ref_put_real(out->dtype, rondo__ref_address(words[1]), i, value);
        } else {
            rondo__ref_put_int(out->dtype, rondo__ref_address(words[1]), i, (uint64_t)(int64_t)value);
        }
        if (indices) indices[i] = base + w.at;
        (void)rondo__ref_next(in->rank - 2, &out->dims[2], place);
    }
    return RONDO__REF_OK;
}

#define POOL_WINDOW "auto_pad ceil_mode dilations kernel_shape pads strides"

const rondo__ref_operator rondo__ref_pool_operators[] = {
    {"AveragePool", 1, 1, 1, 1, POOL_WINDOW " count_include_pad", pool_build, pool_run, NULL},
    {"GlobalAveragePool", 1, 1, 1, 1, "", pool_build, pool_run, NULL},
    {"GlobalMaxPool", 1, 1, 1, 1, "", pool_build, pool_run, NULL},
    {"LpPool", 1, 1, 1, 1, POOL_WINDOW " p", pool_build, pool_run, NULL},
    {"MaxPool", 1, 1, 1, 2, POOL_WINDOW " storage_order", pool_build, pool_run, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
