/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of this kernel set. */
#include "kernels.h"

const rondo__cpu_set V_NAME(set) = {
    .name = V_TEXT(RONDO__CPU_TAG),
    .kernel_set = "cpu." V_TEXT(RONDO__CPU_TAG) ".1",
    .lanes = V_LANES,
    .wide_one = V_WIDE_ONE,
    .wide_two = V_WIDE_TWO,
    .wide_more = V_WIDE_MORE,
    .conv_tile = V_CONV_TILE,
    .conv_vectors = V_CONV_VECTORS,
    .unary = V_NAME(unary_strips),
    .binary = V_NAME(binary_strips),
    .gemm = V_NAME(gemm),
    .dot = V_NAME(dot),
    .conv = V_NAME(conv),
    .flat = V_NAME(flat),
    .turn = V_NAME(turn),
    .lstm = V_NAME(lstm),
    .sum = V_NAME(sum),
    .maximum = V_NAME(maximum),
    .maximum_pairs = V_NAME(maximum_pairs),
    .softmax = V_NAME(softmax),
    .variant =
        {
#define RONDO_X(id, text) [RONDO__CPU_VARIANT_##id] = text ", " V_TEXT(RONDO__CPU_TAG),
            RONDO__CPU_VARIANTS(RONDO_X)
#undef RONDO_X
        },
};
