/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that choose: Where takes one of two elements by a condition, Clip keeps an element between bounds. */
#include "ref.h"

/* -------------------------------------------------------------------------------------------------- Where */

/* It moves elements of whole bytes, whatever they mean. */
#define WHERE_TYPES (RONDO__REF_ALL_TYPES | RONDO__REF_HALF_TYPES | RONDO__REF_FLOAT8_TYPES | RONDO__REF_BIT(F8E8M0))

static rondo_status where_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *x = rondo__ref_input(k, 1);
    rondo_status status = rondo__ref_need_same_type(b, "the condition", rondo__ref_input(k, 0), RONDO_DTYPE_BOOL);
    if (!status) status = rondo__ref_need_types(b, "input 1", x, WHERE_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "input 2", rondo__ref_input(k, 2), x->dtype);
    if (!status) status = rondo__ref_need_same_type(b, "the output", rondo__ref_output(k, 0), x->dtype);
    if (!status) status = rondo__ref_build_walk(b, 0, 3, &k->as.walk);
    if (status) return status;
    for (uint32_t i = 0; i < 3; i++) rondo__ref_allow_in_place(k, i);
    return RONDO_OK;
}

static int32_t where_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_walk *walk = &k->as.walk;
    const size_t size = k->tensors[1].size;
    if (k->tensors[3].count == 0) return RONDO__REF_OK;
    const uint8_t *condition = (const uint8_t *)rondo__ref_address(words[0]);
    const unsigned char *x = (const unsigned char *)rondo__ref_address(words[1]);
    const unsigned char *y = (const unsigned char *)rondo__ref_address(words[2]);
    unsigned char *out = (unsigned char *)rondo__ref_address(words[3]);
    int64_t index[RONDO_RANK_MAX] = {0};
    do {
        int64_t at = rondo__ref_offset(walk->rank, walk->strides[0], index);
        const unsigned char *from = condition[at]
                                        ? x + rondo__ref_offset(walk->rank, walk->strides[1], index) * (int64_t)size
                                        : y + rondo__ref_offset(walk->rank, walk->strides[2], index) * (int64_t)size;
        memmove(out, from, size);
        out += size;
    } while (rondo__ref_next(walk->rank, walk->dims, index));
    return RONDO__REF_OK;
}

/* --------------------------------------------------------------------------------------------------- Clip */

/* The upper bound is applied last, so it wins where the bounds cross. A NaN element stays; a NaN bound
 * does not bind. */
typedef void (*clip_row)(int64_t n, const void *in, const void *low, const void *high, void *out);

#define CLIP_ROW(dtype, type, suffix, ...)                                                                  \
    static void clip_##suffix(int64_t n, const void *in, const void *low, const void *high, void *out) {    \
        const bool has_low = low != NULL, has_high = high != NULL;                                          \
        const type lowest = has_low ? *(const type *)low : 0, highest = has_high ? *(const type *)high : 0; \
        for (int64_t i = 0; i < n; i++) {                                                                   \
            type x = ((const type *)in)[i];                                                                 \
            if (has_low && x < lowest) x = lowest;                                                          \
            if (has_high && x > highest) x = highest;                                                       \
            ((type *)out)[i] = x;                                                                           \
        }                                                                                                   \
    }
#define CLIP_ENTRY(dtype, type, suffix, ...) [RONDO_DTYPE_##dtype] = clip_##suffix,
RONDO__REF_EACH_NUMBER(CLIP_ROW, )
static const clip_row clip_rows[RONDO_DTYPE_COUNT] = {RONDO__REF_EACH_NUMBER(CLIP_ENTRY, )};

static rondo_status clip_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *out = rondo__ref_output(k, 0);
    rondo_status status = rondo__ref_need_types(b, "the input", in, RONDO__REF_NUMBER_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, in->dtype);
    if (!status) status = rondo__ref_need_shape_of(b, "the output", out, in);
    for (uint32_t i = 1; !status && i < 3; i++) {
        const rondo__ref_tensor *bound = rondo__ref_optional_input(k, i);
        if (!bound) continue;
        status = rondo__ref_need_same_type(b, "a bound", bound, in->dtype);
        if (!status && bound->count != 1) {
            status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "bound %u has %lld elements instead of one", i,
                                       (long long)bound->count);
        }
    }
    if (!status) rondo__ref_allow_in_place(k, 0);
    return status;
}

static int32_t clip_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const void *low = rondo__ref_optional_input(k, 1) ? rondo__ref_address(words[1]) : NULL;
    const void *high = rondo__ref_optional_input(k, 2) ? rondo__ref_address(words[2]) : NULL;
    clip_rows[k->tensors[0].dtype](k->tensors[0].count, rondo__ref_address(words[0]), low, high,
                                   rondo__ref_address(rondo__ref_output_word(k, words, 0)));
    return RONDO__REF_OK;
}

const rondo__ref_operator rondo__ref_select_operators[] = {
    {"Clip", 1, 3, 1, 1, "", clip_build, clip_run, NULL},
    {"Where", 3, 3, 1, 1, "", where_build, where_run, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
