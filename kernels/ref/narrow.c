/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of every type as a double or as 64 bits: what machines have no type for is coded and decoded here, float16
 * and bfloat16, the 8-bit and 4-bit floats, and integers of 4 and 2 bits, which lie packed, the first in the low bits. */
#include "ref.h"

#include <math.h>

/* How a small float is laid out: a sign bit, exponent bits, fraction bits. */
typedef struct narrow_format {
    int fraction, bias;
    uint32_t largest; /* code of the largest finite number */
    uint32_t nan;     /* code of NaN; 0: there is none */
    uint32_t inf;     /* code of infinity; 0: there is none */
    uint32_t sign;    /* the sign's bit */
    bool one_zero;    /* no negative zero: its code is NaN */
} narrow_format;

static const narrow_format *narrow_format_of(rondo_dtype dtype) {
    static const narrow_format f16 = {10, 15, 0x7bff, 0x7e00, 0x7c00, 0x8000, false};
    static const narrow_format bf16 = {7, 127, 0x7f7f, 0x7fc0, 0x7f80, 0x8000, false};
    static const narrow_format e4m3fn = {3, 7, 0x7e, 0x7f, 0, 0x80, false};
    static const narrow_format e4m3fnuz = {3, 8, 0x7f, 0x80, 0, 0x80, true};
    static const narrow_format e5m2 = {2, 15, 0x7b, 0x7e, 0x7c, 0x80, false};
    static const narrow_format e5m2fnuz = {2, 16, 0x7f, 0x80, 0, 0x80, true};
    static const narrow_format e2m1 = {1, 1, 0x7, 0, 0, 0x8, false};
    switch (dtype) {
    case RONDO_DTYPE_F16: return &f16;
    case RONDO_DTYPE_BF16: return &bf16;
    case RONDO_DTYPE_F8E4M3FN: return &e4m3fn;
    case RONDO_DTYPE_F8E4M3FNUZ: return &e4m3fnuz;
    case RONDO_DTYPE_F8E5M2: return &e5m2;
    case RONDO_DTYPE_F8E5M2FNUZ: return &e5m2fnuz;
    case RONDO_DTYPE_F4E2M1: return &e2m1;
    default: return NULL;
    }
}

static double narrow_decode(const narrow_format *f, uint32_t code) {
    uint32_t magnitude = code & (f->sign - 1u);
    double sign = code & f->sign ? -1.0 : 1.0;
    if (f->one_zero && code == f->nan) return -(double)NAN;
    if (f->inf && magnitude == f->inf) return sign * (double)INFINITY;
    if (!f->one_zero && f->nan && magnitude > f->largest) return (double)NAN;
    uint32_t fraction = magnitude & ((1u << f->fraction) - 1u);
    int exponent = (int)(magnitude >> f->fraction);
    if (exponent == 0) return sign * ldexp((double)fraction, 1 - f->bias - f->fraction);
    return sign * ldexp((double)(fraction | 1u << f->fraction), exponent - f->bias - f->fraction);
}

/* To the nearest, ties to even. Above the largest: that, when `saturate` or there is nothing else; else infinity, or
 * NaN. Infinity itself only stays with the types that IEEE 754 has, or without `saturate`. */
static uint32_t narrow_encode(const narrow_format *f, double x, bool saturate) {
    uint32_t sign = signbit(x) ? f->sign : 0;
    if (x != x && !f->nan) return f->sign ^ sign; /* what others make of it: a zero of the other sign */
    if (x != x) return f->one_zero ? f->nan : f->nan | sign;
    x = fabs(x);
    int exponent;
    (void)frexp(x, &exponent);
    exponent--; /* x is in [2^exponent, 2^(exponent+1)) */
    if (exponent < 1 - f->bias || x == 0) exponent = 1 - f->bias;
    /* The code counts in units of the last place, and a rounding up may carry into the exponent. */
    uint32_t code = UINT32_MAX;
    if (x < 0x1p200) {
        code =
            (uint32_t)((exponent - 1 + f->bias) << f->fraction) + (uint32_t)nearbyint(ldexp(x, f->fraction - exponent));
    }
    if (code > f->largest) code = saturate || (!f->inf && !f->nan) ? f->largest : f->inf ? f->inf : f->nan;
    if (f->one_zero && (code == 0 || code == f->nan)) return code;
    return code | sign;
}

static uint32_t narrow_encode_power(double x, bool saturate, rondo__ref_round round) {
    float single = (float)x;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    uint32_t exponent = bits >> 23 & 0xffu, fraction = bits & 0x7fffffu;
    if (exponent == 0xff) return 0xff;
    bool up = round == RONDO__REF_ROUND_UP ? fraction > 0
                                           : round == RONDO__REF_ROUND_NEAREST && fraction >= 0x400000u &&
                                                 (fraction > 0x400000u || exponent > 0);
    if (up && saturate && exponent == 0xfe) up = false;
    return exponent + (up ? 1u : 0u);
}

static uint32_t narrow_bits(rondo_dtype dtype) {
    switch (dtype) {
    case RONDO_DTYPE_U2:
    case RONDO_DTYPE_I2: return 2;
    case RONDO_DTYPE_U4:
    case RONDO_DTYPE_I4:
    case RONDO_DTYPE_F4E2M1: return 4;
    case RONDO_DTYPE_F16:
    case RONDO_DTYPE_BF16: return 16;
    default: return 8;
    }
}

static uint32_t narrow_read(uint32_t bits, const void *data, int64_t i) {
    if (bits == 16) return ((const uint16_t *)data)[i];
    int64_t in_byte = 8 / (int64_t)bits;
    uint32_t byte = ((const uint8_t *)data)[i / in_byte];
    return byte >> (uint32_t)(i % in_byte) * bits & ((1u << bits) - 1u);
}

static void narrow_write(uint32_t bits, void *data, int64_t i, uint32_t code) {
    if (bits == 16) {
        ((uint16_t *)data)[i] = (uint16_t)code;
        return;
    }
    int64_t in_byte = 8 / (int64_t)bits;
    uint8_t *byte = (uint8_t *)data + i / in_byte;
    uint32_t shift = (uint32_t)(i % in_byte) * bits, mask = ((1u << bits) - 1u) << shift;
    /* The first of a byte clears the others: those past the end stay 0. */
    uint32_t kept = shift ? *byte & ~mask : 0;
    *byte = (uint8_t)(kept | (code << shift & mask));
}

bool rondo__ref_is_packed(rondo_dtype dtype) { return narrow_bits(dtype) < 8; }

bool rondo__ref_is_real(rondo_dtype dtype) {
    return rondo__ref_is_float(dtype) || dtype == RONDO_DTYPE_F8E8M0 || narrow_format_of(dtype) != NULL;
}

double rondo__ref_get_real(rondo_dtype dtype, const void *data, int64_t i) {
    if (rondo__ref_is_float(dtype)) return rondo__ref_get(dtype, data, i);
    uint32_t code = narrow_read(narrow_bits(dtype), data, i);
    if (dtype == RONDO_DTYPE_F8E8M0) return code == 0xff ? (double)NAN : ldexp(1.0, (int)code - 127);
    return narrow_decode(narrow_format_of(dtype), code);
}

void rondo__ref_put_real_as(rondo_dtype dtype, void *data, int64_t i, double value, bool saturate,
                            rondo__ref_round round) {
    if (rondo__ref_is_float(dtype)) {
        rondo__ref_put(dtype, data, i, value);
        return;
    }
    if (dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_BF16) saturate = false;
    uint32_t code = dtype == RONDO_DTYPE_F8E8M0 ? narrow_encode_power(value, saturate, round)
                                                : narrow_encode(narrow_format_of(dtype), value, saturate);
    narrow_write(narrow_bits(dtype), data, i, code);
}

void rondo__ref_put_real(rondo_dtype dtype, void *data, int64_t i, double value) {
    rondo__ref_put_real_as(dtype, data, i, value, false, RONDO__REF_ROUND_UP);
}

int64_t rondo__ref_get_whole(rondo_dtype dtype, const void *data, int64_t i) {
    if (!rondo__ref_is_packed(dtype)) return rondo__ref_get_int(dtype, data, i);
    uint32_t bits = narrow_bits(dtype);
    int64_t code = narrow_read(bits, data, i);
    bool negative = (dtype == RONDO_DTYPE_I4 || dtype == RONDO_DTYPE_I2) && code >> (bits - 1u) != 0;
    return negative ? code - (int64_t)(1u << bits) : code;
}

void rondo__ref_put_whole(rondo_dtype dtype, void *data, int64_t i, uint64_t value) {
    if (rondo__ref_is_packed(dtype)) {
        narrow_write(narrow_bits(dtype), data, i, (uint32_t)value & 0xfu);
    } else {
        rondo__ref_put_int(dtype, data, i, value);
    }
}
