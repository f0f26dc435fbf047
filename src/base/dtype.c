/* SPDX-License-Identifier: Apache-2.0
 *
 * Data types: one table for names and sizes. Elements narrower than a byte are packed. */
#include "base/checked.h"
#include "base/status.h"

typedef struct dtype_row {
    const char *name;
    uint32_t bits;
} dtype_row;

static const dtype_row dtype_rows[RONDO_DTYPE_COUNT] = {
#define RONDO_X(name, number, text, bits) [number] = {text, bits},
    RONDO_DTYPES(RONDO_X)
#undef RONDO_X
};

const char *rondo_dtype_name(rondo_dtype dtype) {
    return dtype >= 0 && dtype < RONDO_DTYPE_COUNT ? dtype_rows[dtype].name : "unknown";
}

uint32_t rondo_dtype_bits(rondo_dtype dtype) {
    return dtype >= 0 && dtype < RONDO_DTYPE_COUNT ? dtype_rows[dtype].bits : 0;
}

rondo_status rondo_dtype_bytes(rondo_dtype dtype, uint64_t elements, uint64_t *out_bytes) {
    uint32_t bits = rondo_dtype_bits(dtype);
    if (!out_bytes) return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_dtype_bytes: out_bytes is null");
    if (!bits)
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "data type %s (%d) has no size in bytes", rondo_dtype_name(dtype),
                           (int)dtype);
    if (bits < 8) {
        uint64_t per_byte = 8u / bits;
        *out_bytes = elements / per_byte + (elements % per_byte != 0);
        return RONDO_OK;
    }
    if (!rondo__checked_mul_u64(elements, bits / 8u, out_bytes))
        return RONDO__FAIL(OUT_OF_RANGE, NONE, "%llu elements of %s take more bytes than 64 bits can say",
                           (unsigned long long)elements, rondo_dtype_name(dtype));
    return RONDO_OK;
}
