/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators in which types meet: Cast between any two, and Pow, whose exponent may have a type of its own.
 *
 * ONNX leaves the conversion of a float to an integer that cannot hold it undefined. Here it is what numpy and ONNX
 * Runtime get from the scalar instructions of x86-64, on every machine:
 *   - the value is truncated toward zero, into 32 bits for int8, uint8, int16, uint16 and int32, else into 64 bits;
 *   - NaN and what does not fit into those become the lowest integer of that width;
 *   - the low bits are kept. uint64 takes the values from 2^63 up to 2^64 as they are, and 0 above. */
#include "ref.h"

#include <math.h>

uint64_t rondo__ref_to_integer(double x, rondo_dtype to) {
    const double two31 = 2147483648.0, two63 = 9223372036854775808.0;
    switch (to) {
    case RONDO_DTYPE_I8:
    case RONDO_DTYPE_U8:
    case RONDO_DTYPE_I16:
    case RONDO_DTYPE_U16:
    case RONDO_DTYPE_I32: return x > -two31 - 1.0 && x < two31 ? (uint64_t)(int64_t)x : (uint64_t)(int64_t)INT32_MIN;
    case RONDO_DTYPE_U64:
        if (x >= two63) return x < 2.0 * two63 ? (uint64_t)x : 0;
        break;
    default: break;
    }
    return x >= -two63 && x < two63 ? (uint64_t)(int64_t)x : (uint64_t)INT64_MIN;
}

/* ---------------------------------------------------------------------------------------------------- Cast */

#define CAST_TYPES (RONDO__REF_ALL_TYPES | RONDO__REF_NARROW_TYPES)

static rondo_status cast_round(rondo__ref_builder *b) {
    static const char *const names[] = {"up", "down", "nearest"};
    const char *mode = "up";
    rondo_status status = rondo__ref_attribute_string(b, "round_mode", &mode);
    if (status) return status;
    int32_t i = 0;
    while (i < 3 && strcmp(names[i], mode) != 0) i++;
    if (i == 3) return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "there is no round_mode '%s'", mode);
    b->kernel->as.cast.round = i;
    return RONDO_OK;
}

/* Cast, and CastLike, whose second input lends no more than its type. */
static rondo_status cast_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *out = rondo__ref_output(k, 0);
    int64_t to = k->input_count > 1 ? rondo__ref_input(k, 1)->dtype : out->dtype, saturate = 1;
    rondo_status status = rondo__ref_need_types(b, "the input", in, CAST_TYPES);
    if (!status) status = rondo__ref_need_types(b, "the output", out, CAST_TYPES);
    if (!status) status = rondo__ref_need_shape_of(b, "the output", out, in);
    if (!status) status = rondo__ref_attribute_int(b, "to", &to);
    if (!status) status = rondo__ref_attribute_int(b, "saturate", &saturate);
    if (!status) status = cast_round(b);
    if (!status && to != out->dtype) {
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "it is to cast to type %lld but the output's type is %d",
                                   (long long)to, (int)out->dtype);
    }
    k->as.cast.saturate = saturate != 0;
    k->needs_no_data = 1u << 1;
    /* Packed elements share bytes, which a write clears before the others were read. */
    if (!status && !rondo__ref_is_packed(in->dtype)) rondo__ref_allow_in_place(k, 0);
    return status;
}

/* To int4, uint4, int2 and uint2 as to int8: the low bits are kept. */
static void cast_put_integer(rondo_dtype to, void *out, int64_t i, double x) {
    uint64_t value =
        to == RONDO_DTYPE_BOOL ? x != 0 : rondo__ref_to_integer(x, rondo__ref_is_packed(to) ? RONDO_DTYPE_I8 : to);
    rondo__ref_put_whole(to, out, i, value);
}

int32_t rondo__ref_run_cast(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo_dtype from = k->tensors[0].dtype, to = k->tensors[k->input_count].dtype;
    const void *in = rondo__ref_address(words[0]);
    void *out = rondo__ref_address(words[k->input_count]);
    const rondo__ref_round round = (rondo__ref_round)k->as.cast.round;
    for (int64_t i = 0; i < k->tensors[0].count; i++) {
        if (rondo__ref_is_real(from)) {
            double x = rondo__ref_get_real(from, in, i);
            if (rondo__ref_is_real(to)) {
                rondo__ref_put_real_as(to, out, i, x, k->as.cast.saturate, round);
            } else {
                cast_put_integer(to, out, i, x);
            }
            continue;
        }
        int64_t x = rondo__ref_get_whole(from, in, i);
        if (!rondo__ref_is_real(to)) {
            rondo__ref_put_whole(to, out, i, (uint64_t)x);
        } else if (to == RONDO_DTYPE_F32) { /* straight from 64 bits: by way of double it would round twice */
            ((float *)out)[i] = from == RONDO_DTYPE_U64 ? (float)(uint64_t)x : (float)x;
        } else {
            double wide = from == RONDO_DTYPE_U64 ? (double)(uint64_t)x : (double)x;
            rondo__ref_put_real_as(to, out, i, wide, k->as.cast.saturate, round);
        }
    }
    return RONDO__REF_OK;
}

/* The same bits under a type of the same width. */
static rondo_status bitcast_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *out = rondo__ref_output(k, 0);
    int64_t to = out->dtype;
    rondo_status status = rondo__ref_attribute_int(b, "to", &to);
    if (!status) status = rondo__ref_need_shape_of(b, "the output", out, in);
    if (!status && (to != out->dtype || in->size != out->size)) {
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "type %d cannot be seen as type %lld, the output has type %d",
                                   (int)in->dtype, (long long)to, (int)out->dtype);
    }
    return status;
}

/* ----------------------------------------------------------------------------------------------------- Pow */

static rondo_status pow_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *base = rondo__ref_input(k, 0), *exponent = rondo__ref_input(k, 1);
    rondo_status status = rondo__ref_need_types(b, "the base", base, RONDO__REF_FLOAT_TYPES | RONDO__REF_INDEX_TYPES);
    if (!status) status = rondo__ref_need_types(b, "the exponent", exponent, RONDO__REF_NUMBER_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", rondo__ref_output(k, 0), base->dtype);
    if (!status) status = rondo__ref_build_walk(b, 0, 2, &k->as.walk);
    if (status) return status;
    rondo__ref_allow_in_place(k, 0);
    rondo__ref_allow_in_place(k, 1);
    return RONDO_OK;
}

/* Exact modulo 2^64. A negative exponent gives the truncated quotient: 0 but for the bases 1 and -1. */
static int32_t pow_integers(int64_t base, int64_t exponent, bool is_unsigned, uint64_t *out) {
    uint64_t power = (uint64_t)exponent, factor = (uint64_t)base, product = 1;
    if (exponent < 0 && !is_unsigned) {
        if (base == 0) return RONDO__REF_ZERO_DIVISOR;
        *out = base == 1 || (base == -1 && power % 2 == 0) ? 1 : base == -1 ? ~(uint64_t)0 : 0;
        return RONDO__REF_OK;
    }
    for (; power > 0; power >>= 1) {
        if (power & 1u) product *= factor;
        factor *= factor;
    }
    *out = product;
    return RONDO__REF_OK;
}

static int32_t pow_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_walk *walk = &k->as.walk;
    const rondo_dtype base_type = k->tensors[0].dtype, type = k->tensors[1].dtype;
    const void *bases = rondo__ref_address(words[0]), *exponents = rondo__ref_address(words[1]);
    void *out = rondo__ref_address(words[2]);
    int64_t index[RONDO_RANK_MAX] = {0};
    for (int64_t i = 0; i < k->tensors[2].count; i++) {
        int64_t at = rondo__ref_offset(walk->rank, walk->strides[0], index);
        int64_t by = rondo__ref_offset(walk->rank, walk->strides[1], index);
        (void)rondo__ref_next(walk->rank, walk->dims, index);
        if (!rondo__ref_is_float(base_type) && !rondo__ref_is_float(type)) {
            uint64_t result;
            int32_t reason = pow_integers(rondo__ref_get_int(base_type, bases, at),
                                          rondo__ref_get_int(type, exponents, by), type == RONDO_DTYPE_U64, &result);
            if (reason) return reason;
            rondo__ref_put_int(base_type, out, i, result);
            continue;
        }
        double x = rondo__ref_is_float(base_type) ? rondo__ref_get(base_type, bases, at)
                                                  : (double)rondo__ref_get_int(base_type, bases, at);
        double y;
        if (rondo__ref_is_float(type)) {
            y = rondo__ref_get(type, exponents, by);
        } else {
            int64_t whole = rondo__ref_get_int(type, exponents, by);
            y = type == RONDO_DTYPE_U64 ? (double)(uint64_t)whole : (double)whole;
        }
        if (rondo__ref_is_float(base_type)) {
            rondo__ref_put(base_type, out, i, pow(x, y));
        } else {
            rondo__ref_put_int(base_type, out, i, rondo__ref_to_integer(pow(x, y), base_type));
        }
    }
    return RONDO__REF_OK;
}

const rondo__ref_operator rondo__ref_cast_operators[] = {
    {"BitCast", 1, 1, 1, 1, "to", bitcast_build, rondo__ref_run_view, NULL},
    {"Cast", 1, 1, 1, 1, "to saturate round_mode", cast_build, rondo__ref_run_cast, NULL},
    {"CastLike", 2, 2, 1, 1, "saturate round_mode", cast_build, rondo__ref_run_cast, NULL},
    {"Pow", 2, 2, 1, 1, "", pow_build, pow_run, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
