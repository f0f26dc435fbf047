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

static double half_at(uint32_t code, int fraction_bits, int bias, uint32_t special) {
    uint32_t fraction = code & ((1u << fraction_bits) - 1u), exponent = (code & 0x7fffu) >> fraction_bits;
    double sign = code & 0x8000u ? -1.0 : 1.0;
    if (exponent == special) return fraction ? (double)NAN : sign * (double)INFINITY;
    if (!exponent) return sign * ldexp((double)fraction, 1 - bias - fraction_bits);
    return sign * ldexp((double)(fraction | 1u << fraction_bits), (int)exponent - bias - fraction_bits);
}

static double float_at(const rondo_tensor_view *view, uint64_t index) {
    const char *data = (const char *)view->data + view->byte_offset;
    if (view->dtype == RONDO_DTYPE_F16) return half_at(((const uint16_t *)(const void *)data)[index], 10, 15, 31);
    if (view->dtype == RONDO_DTYPE_BF16) return half_at(((const uint16_t *)(const void *)data)[index], 7, 127, 255);
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

/* The bits of an element that is no float; those of less than a byte lie packed, the first in the low bits. */
static bool bits_agree(const rondo_tensor_view *got, const rondo_tensor_view *want, uint64_t index) {
    const unsigned char *g = (const unsigned char *)got->data + got->byte_offset;
    const unsigned char *w = (const unsigned char *)want->data + want->byte_offset;
    uint64_t bits = rondo_dtype_bits(got->dtype);
    if (bits >= 8) return memcmp(g + index * (bits / 8), w + index * (bits / 8), (size_t)(bits / 8)) == 0;
    uint64_t shift = index * bits % 8;
    uint32_t other = (uint32_t)g[index * bits / 8] ^ (uint32_t)w[index * bits / 8];
    return (other >> shift & ((1u << bits) - 1u)) == 0;
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
    if (got->dtype == RONDO_DTYPE_F32 || got->dtype == RONDO_DTYPE_F64 || got->dtype == RONDO_DTYPE_F16 ||
        got->dtype == RONDO_DTYPE_BF16)
        return floats_agree(got, want, count, relative, absolute, whole, reason, capacity);
    for (uint64_t i = 0; i < count; ++i) {
        if (bits_agree(got, want, i)) continue;
        snprintf(reason, capacity, "element %llu differs", (unsigned long long)i);
        return false;
    }
    return true;
}
