/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/hash.h"

#include "artifact/artifact.h"

#if !__has_include(<xxhash.h>)
#error "xxhash.h is not here: install libxxhash-dev (./dev build does it)"
#endif
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { HASH_WIDE_FROM = 1024 }; /* below, it would not pay */

_Static_assert(sizeof(XXH3_state_t) <= sizeof(rondo__hash), "the state of XXH3 fits");
_Static_assert(_Alignof(XXH3_state_t) <= _Alignof(rondo__hash), "and lies well");

void rondo__hash_init(rondo__hash *hash) { (void)XXH3_64bits_reset((XXH3_state_t *)(void *)hash); }

void rondo__hash_add(rondo__hash *hash, const void *data, size_t bytes) {
    if (bytes) (void)XXH3_64bits_update((XXH3_state_t *)(void *)hash, data, bytes);
}

uint64_t rondo__hash_value(const rondo__hash *hash) {
    return XXH3_64bits_digest((const XXH3_state_t *)(const void *)hash);
}

uint64_t rondo__artifact_checksum(const void *data, size_t bytes) {
    uint64_t sum;
    if (bytes >= HASH_WIDE_FROM && rondo__hash_wide(data, bytes, &sum)) return sum;
    return XXH3_64bits(bytes ? data : "", bytes);
}
