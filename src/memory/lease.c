/* SPDX-License-Identifier: Apache-2.0
 *
 * A lease on a block: a word of the holder's that says whether the block is alive, cleared where the block ends. */
#include "memory/table.h"

rondo_status rondo_memory_lease(rondo_device *device, void *pointer, uint32_t owner, rondo_lease *lease) {
    rondo_status status = RONDO_OK;
    if (!device || !lease || (owner != RONDO_LEASE_REPLAY && owner != RONDO_LEASE_ALLOCATOR)) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "a lease needs a device, an owner and a place");
    }
    rondo__memory *memory = device->memory;
    rondo__mutex_lock(&memory->mutex);
    rondo__block *block = rondo__cache_live(&memory->cache, (uint64_t)(uintptr_t)pointer);
    if (!block) {
        status = RONDO__FAIL(INVALID_ARGUMENT, MEMORY,
                             "rondo_memory_lease: 0x%llx is not the start of a live allocation "
                             "of device '%s'",
                             (unsigned long long)(uintptr_t)pointer, device->properties.name);
    } else if (block->lease) {
        status = RONDO__FAIL(ALREADY_EXISTS, MEMORY, "rondo_memory_lease: the block at 0x%llx has a lease",
                             (unsigned long long)(uintptr_t)pointer);
    } else {
        *lease = (rondo_lease){block->allocation.base, block->allocation.generation, owner, 0};
        block->lease = lease;
    }
    rondo__mutex_unlock(&memory->mutex);
    return status;
}

void rondo_memory_unlease(rondo_device *device, rondo_lease *lease) {
    if (!device || !lease) return;
    rondo__memory *memory = device->memory;
    rondo__mutex_lock(&memory->mutex);
    rondo__block *block = lease->block ? rondo__cache_live(&memory->cache, lease->block) : NULL;
    if (block && block->lease == lease) block->lease = NULL;
    __atomic_store_n(&lease->owner, RONDO_LEASE_OVER, __ATOMIC_RELAXED);
    __atomic_store_n(&lease->block, 0u, __ATOMIC_RELEASE);
    rondo__mutex_unlock(&memory->mutex);
}
