/* SPDX-License-Identifier: Apache-2.0
 *
 * The same sum with vectors of 32 bytes: this file alone is compiled for AVX2 where the processor's family has it
 * (CMakeLists.txt), and its code is entered where the machine has it, too. */
#include "artifact/hash.h"

#ifdef __AVX2__
#define XXH_INLINE_ALL
#include <xxhash.h>

bool rondo__hash_wide(const void *data, size_t bytes, uint64_t *out_sum) {
    if (!__builtin_cpu_supports("avx2")) return false;
    *out_sum = XXH3_64bits(data, bytes);
    return true;
}

#else

bool rondo__hash_wide(const void *data, size_t bytes, uint64_t *out_sum) {
    (void)data;
    (void)bytes;
    (void)out_sum;
    return false;
}

#endif
