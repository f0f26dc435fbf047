/* SPDX-License-Identifier: Apache-2.0
 *
 * When two tensors agree, and how a tensor is described to people. */
#include <math.h>
#include <string.h>

#include "cli.h"

void cli_tensor_text(const rondo_tensor_info *info, char *buffer, size_t capacity) {
    int length = snprintf(buffer, capacity, "%s", rondo_dtype_name(info->dtype));
    if (info->rank < 0) {
        snprintf(buffer + length, capacity - (size_t)length, "[...]");
        return;
    }
    for (int32_t d = 0; d < info->rank && (size_t)length < capacity; ++d) {
        const char *before = d ? "," : "[";
        int64_t size = info->dims[d];
        length += size < 0 ? snprintf(buffer + length, capacity - (size_t)length, "%s?", before)
                           : snprintf(buffer + length, capacity - (size_t)length, "%s%lld", before, (long long)size);
    }
    if ((size_t)length < capacity) snprintf(buffer + length, capacity - (size_t)length, "%s", info->rank ? "]" : "[]");
}

static double float_at(const rondo_tensor_view *view, uint64_t index) {
    const char *data = (const char *)view->data + view->byte_offset;
    if (view->dtype == RONDO_DTYPE_F64) return ((const double *)(const void *)data)[index];
    return (double)((const float *)(const void *)data)[index];
}

static bool same_shape(const rondo_tensor_view *a, const rondo_tensor_view *b) {
    if (a->rank != b->rank) return false;
    for (int32_t d = 0; d < a->rank; ++d)
        if (a->shape[d] != b->shape[d]) return false;
    return true;
}

static bool floats_agree(const rondo_tensor_view *got, const rondo_tensor_view *want, uint64_t count, double relative,
                         double absolute, bool whole, char *reason, size_t capacity) {
    double scale = 0;
    for (uint64_t i = 0; whole && i < count; ++i) {
        double value = fabs(float_at(want, i));
        if (isfinite(value) && value > scale) scale = value;
    }
    for (uint64_t i = 0; i < count; ++i) {
        double g = float_at(got, i), w = float_at(want, i);
        if (g == w || (isnan(g) && isnan(w))) continue;
        double bound = absolute + relative * (whole ? scale : fabs(w));
        if (isfinite(g) && isfinite(w) && fabs(g - w) <= bound) continue;
        snprintf(reason, capacity, "element %llu is %.9g, wanted %.9g within %.3g", (unsigned long long)i, g, w, bound);
        return false;
    }
    return true;
}

bool cli_tensor_agrees(const rondo_tensor_view *got, const rondo_tensor_view *want, double relative, double absolute,
                       bool whole, char *reason, size_t capacity) {
    rondo_tensor_info g = {0}, w = {0};
    g.dtype = got->dtype;
    g.rank = got->rank;
    g.dims = got->shape;
    w.dtype = want->dtype;
    w.rank = want->rank;
    w.dims = want->shape;
    if (got->dtype != want->dtype || !same_shape(got, want)) {
        char a[128], b[128];
        cli_tensor_text(&g, a, sizeof a);
        cli_tensor_text(&w, b, sizeof b);
        snprintf(reason, capacity, "is %s, wanted %s", a, b);
        return false;
    }
    uint64_t count = 1;
    for (int32_t d = 0; d < got->rank; ++d) count *= (uint64_t)got->shape[d];
    if (got->dtype == RONDO_DTYPE_F32 || got->dtype == RONDO_DTYPE_F64)
        return floats_agree(got, want, count, relative, absolute, whole, reason, capacity);
    uint64_t width = rondo_dtype_bits(got->dtype) / 8u;
    for (uint64_t i = 0; i < count; ++i) {
        if (memcmp((const char *)got->data + i * width, (const char *)want->data + i * width, width) == 0) continue;
        snprintf(reason, capacity, "element %llu differs", (unsigned long long)i);
        return false;
    }
    return true;
}
