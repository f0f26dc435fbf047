/* SPDX-License-Identifier: Apache-2.0
 *
 * How many elements a shape has: a zero wins over an overflow, because an empty tensor needs no memory at all. */
#include "base/checked.h"

bool rondo__checked_elements(int32_t rank, const int64_t *dims, int64_t *out_elements) {
    bool zero = false;
    for (int32_t i = 0; i < rank; i++) {
        if (dims[i] < 0) return false;
        if (dims[i] == 0) zero = true;
    }
    int64_t elements = 1;
    for (int32_t i = 0; i < rank && !zero; i++)
        if (!rondo__checked_mul_i64(elements, dims[i], &elements)) return false;
    *out_elements = zero ? 0 : elements;
    return true;
}
