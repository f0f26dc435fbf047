/* SPDX-License-Identifier: Apache-2.0
 *
 * Pad: an axis is first cut by its negative pads, then extended by its positive ones. Where an element of the extension
 * comes from is one function of a place on the axis, so every mode is the same walk. */
#include "ref.h"

enum { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_WRAP };

static rondo_status pad_build(rondo__ref_builder *b) {
    static const char *const names[] = {"constant", "edge", "reflect", "wrap"};
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *pads = rondo__ref_input(k, 1);
    const rondo__ref_tensor *value = rondo__ref_optional_input(k, 2), *axes = rondo__ref_optional_input(k, 3);
    const char *mode = "constant";
    rondo_status status = rondo__ref_need_types(b, "input 0", in, RONDO__REF_ALL_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", rondo__ref_output(k, 0), in->dtype);
    if (!status) status = rondo__ref_need_same_type(b, "the pads", pads, RONDO_DTYPE_I64);
    if (!status && value) status = rondo__ref_need_same_type(b, "the value", value, in->dtype);
    if (!status && axes) status = rondo__ref_need_types(b, "the axes", axes, RONDO__REF_INDEX_TYPES);
    if (!status) status = rondo__ref_attribute_string(b, "mode", &mode);
    if (status) return status;
    int32_t which = 0;
    while (which <= PAD_WRAP && strcmp(names[which], mode) != 0) which++;
    if (which > PAD_WRAP) return RONDO__REF_REFUSE(b, UNSUPPORTED, "it does not know the mode '%s'", mode);
    if (value && value->count != 1) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the value has %lld elements instead of one",
                                 (long long)value->count);
    }
    int64_t count = axes ? axes->count : in->rank;
    if (pads->rank != 1 || (axes && axes->rank != 1) || count > in->rank || pads->count != 2 * count) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "there must be two pads for each axis; there are %lld for %lld",
                                 (long long)pads->count, (long long)count);
    }
    if (rondo__ref_output(k, 0)->rank != in->rank) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the output has rank %d instead of %d",
                                 (int)rondo__ref_output(k, 0)->rank, (int)in->rank);
    }
    k->as.pad.mode = which;
    return RONDO_OK;
}

/* Place i relative to an axis of n elements, i outside of it too; -1: the pad's value. */
static int64_t pad_source(int32_t mode, int64_t i, int64_t n) {
    if (i >= 0 && i < n) return i;
    int64_t period;
    switch (mode) {
    case PAD_EDGE: return i < 0 ? 0 : n - 1;
    case PAD_WRAP: return (i % n + n) % n;
    case PAD_REFLECT:
        if (n == 1) return 0;
        period = 2 * (n - 1);
        i = (i % period + period) % period;
        return i < n ? i : period - i;
    default: return -1;
    }
}

typedef struct pad_axis {
    int64_t cut;    /* elements dropped at the beginning */
    int64_t before; /* elements added there */
    int64_t kept;   /* what is left between the cuts */
} pad_axis;

static int32_t pad_read(const rondo__ref_kernel *k, const uint64_t *words, pad_axis *plan) {
    const rondo__ref_tensor *in = &k->tensors[0], *out = &k->tensors[k->input_count];
    const rondo__ref_tensor *axes = rondo__ref_optional_input(k, 3);
    const int64_t *pads = (const int64_t *)rondo__ref_address(words[1]), count = k->tensors[1].count / 2;
    int64_t dims[RONDO_RANK_MAX];
    uint32_t seen = 0;
    for (int32_t d = 0; d < in->rank; d++) {
        plan[d] = (pad_axis){0, 0, in->dims[d]};
        dims[d] = in->dims[d];
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = axes ? rondo__ref_get_int(axes->dtype, rondo__ref_address(words[3]), i) : i;
        if (axis < -in->rank || axis >= in->rank) return RONDO__REF_BAD_VALUE;
        if (axis < 0) axis += in->rank;
        if (seen >> axis & 1u) return RONDO__REF_BAD_VALUE;
        seen |= 1u << axis;
        int64_t begin = pads[i], end = pads[count + i], size = in->dims[axis];
        if (begin < -size || end < -size) return RONDO__REF_BAD_VALUE;
        plan[axis].cut = begin < 0 ? -begin : 0;
        plan[axis].before = begin > 0 ? begin : 0;
        plan[axis].kept = size - plan[axis].cut - (end < 0 ? -end : 0);
        if (plan[axis].kept < 0) return RONDO__REF_BAD_VALUE;
        if (__builtin_add_overflow(size, begin, &dims[axis]) || __builtin_add_overflow(dims[axis], end, &dims[axis])) {
            return RONDO__REF_BAD_VALUE;
        }
    }
    int32_t reason = rondo__ref_check_dims(out, in->rank, dims);
    if (reason || out->count == 0 || k->as.pad.mode == PAD_CONSTANT) return reason;
    for (int32_t d = 0; d < in->rank; d++) {
        if (plan[d].kept == 0) return RONDO__REF_BAD_VALUE; /* there is no edge to repeat */
    }
    return RONDO__REF_OK;
}

static int32_t pad_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0], *out = &k->tensors[k->input_count];
    const unsigned char zero[8] = {0};
    pad_axis plan[RONDO_RANK_MAX];
    int32_t reason = pad_read(k, words, plan);
    if (reason || out->count == 0) return reason;
    const unsigned char *from = (const unsigned char *)rondo__ref_address(words[0]);
    const unsigned char *value =
        rondo__ref_optional_input(k, 2) ? (const unsigned char *)rondo__ref_address(words[2]) : zero;
    unsigned char *to = (unsigned char *)rondo__ref_address(rondo__ref_output_word(k, words, 0));
    int64_t strides[RONDO_RANK_MAX], index[RONDO_RANK_MAX] = {0};
    rondo__ref_compact(in->rank, in->dims, strides);
    do {
        int64_t offset = 0;
        bool inside = true;
        for (int32_t d = 0; inside && d < in->rank; d++) {
            int64_t place = pad_source(k->as.pad.mode, index[d] - plan[d].before, plan[d].kept);
            inside = place >= 0;
            offset += (place + plan[d].cut) * strides[d];
        }
        memcpy(to, inside ? from + (size_t)offset * in->size : value, out->size);
        to += out->size;
    } while (rondo__ref_next(out->rank, out->dims, index));
    return RONDO__REF_OK;
}

const rondo__ref_operator rondo__ref_pad_operators[] = {
    {"Pad", 2, 4, 1, 1, "mode", pad_build, pad_run, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
