/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases without a tree: they count who tells them what. They take the place of the tree's own in a test program. */
#ifndef RONDO_SRC_TREE_NATIVE_LEASE_TESTING_H
#define RONDO_SRC_TREE_NATIVE_LEASE_TESTING_H

#include "tree/native/native_testing.h"

struct rondo_tree_lease {
    _Atomic(void *) storage;
    atomic_uint_least64_t epoch; /* of the storage that has it; 0: over */
    uint64_t pointer, bytes;
    atomic_uint_least64_t ends;  /* how many storages told that they ended */
    atomic_uint_least64_t wrong; /* who told it of an epoch that is not the one, or told twice */
    atomic_uint_least64_t last;  /* epoch that was given last */
};

bool rondo_tree_lease_alive(const rondo_tree_lease *lease, uint64_t epoch) {
    return epoch && atomic_load(&lease->epoch) == epoch;
}

rondo_status rondo_tree_lease_check(const rondo_tree_lease *lease, uint64_t epoch) {
    if (rondo_tree_lease_alive(lease, epoch)) return RONDO_OK;
    return RONDO__FAIL(STALE, TREE, "the memory was used again");
}

void rondo_tree_lease_release(rondo_tree_lease *lease, uint64_t epoch) {
    uint64_t expected = epoch;
    (void)atomic_fetch_add(&lease->ends, 1u);
    if (epoch > atomic_load(&lease->last)) (void)atomic_fetch_add(&lease->wrong, 1u);
    (void)atomic_compare_exchange_strong(&lease->epoch, &expected, 0u);
}

void *rondo_tree_lease_storage(const rondo_tree_lease *lease) { return atomic_load(&lease->storage); }
void rondo_tree_lease_set_storage(rondo_tree_lease *lease, void *storage) { atomic_store(&lease->storage, storage); }
uint64_t rondo_tree_lease_pointer(const rondo_tree_lease *lease) { return lease->pointer; }
uint64_t rondo_tree_lease_bytes(const rondo_tree_lease *lease) { return lease->bytes; }

static inline uint64_t lt_grant(rondo_tree_lease *lease) {
    uint64_t epoch = atomic_fetch_add(&lease->last, 1u) + 1u;
    atomic_store(&lease->epoch, epoch);
    return epoch;
}

static inline bool lt_is_over(const rondo_tree_lease *lease) { return atomic_load(&lease->epoch) == 0; }

#endif
