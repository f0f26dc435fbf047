/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated device's memory. It is host memory, but nobody outside may know: fresh memory holds a pattern that is no
 * sensible number, freed memory another, and freed blocks are kept a while so that a late write to one is noticed. */
#include <string.h>

#include "sim.h"

/* Room for one more item. */
static bool sim_blocks_reserve(const rondo__sim_device *device, rondo__sim_blocks *blocks) {
    const rondo_allocator *allocator = &device->host->allocator;
    size_t capacity = blocks->capacity ? blocks->capacity * 2u : 64u;
    if (blocks->count < blocks->capacity) return true;
    void *items = allocator->reallocate(allocator->self, blocks->items, blocks->capacity * sizeof *blocks->items,
                                        capacity * sizeof *blocks->items, 0);
    if (!items) return false;
    blocks->items = items;
    blocks->capacity = capacity;
    return true;
}

/* How many blocks start at or below the address. */
static size_t sim_blocks_upto(const rondo__sim_blocks *blocks, uint64_t address) {
    size_t low = 0, high = blocks->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2u;
        if (blocks->items[middle].base <= address) low = middle + 1u;
        else high = middle;
    }
    return low;
}

static void sim_blocks_remove(rondo__sim_blocks *blocks, size_t index) {
    memmove(&blocks->items[index], &blocks->items[index + 1u], (blocks->count - index - 1u) * sizeof *blocks->items);
    blocks->count--;
}

static void sim_blocks_insert(rondo__sim_blocks *blocks, const rondo__sim_block *block) {
    size_t at = sim_blocks_upto(blocks, block->base);
    memmove(&blocks->items[at + 1u], &blocks->items[at], (blocks->count - at) * sizeof *block);
    blocks->items[at] = *block;
    blocks->count++;
}

static void sim_poison(uint64_t address, uint64_t size, int value) {
    memset((void *)(uintptr_t)address, value, (size_t)size);
}

static bool sim_poison_is_whole(const rondo__sim_block *block) {
    const unsigned char *bytes = (const unsigned char *)(uintptr_t)block->base;
    return bytes[0] == RONDO__SIM_FREED && memcmp(bytes, bytes + 1, (size_t)block->size - 1u) == 0;
}

/* The block leaves the quarantine for good. */
static void sim_let_go(rondo__sim_device *device, const rondo__sim_block *block) {
    if (!sim_poison_is_whole(block)) {
        device->host->log(device->host->host, RONDO_LOG_ERROR,
                          "sim: freed memory was written: something went on using "
                          "an allocation after rondo_memory_free");
    }
    rondo__sim_release(device, (void *)(uintptr_t)block->base, (size_t)block->size, RONDO__SIM_ALIGNMENT);
}

/* The oldest blocks go until there are at most so many, of at most so many bytes. */
static void sim_shrink_quarantine(rondo__sim_device *device, uint64_t bytes, size_t blocks) {
    size_t gone = 0;
    while (device->quarantined > bytes || device->quarantine_count - gone > blocks) {
        device->quarantined -= device->quarantine[gone].size;
        sim_let_go(device, &device->quarantine[gone]);
        gone++;
    }
    if (!gone) return;
    device->quarantine_count -= gone;
    memmove(device->quarantine, device->quarantine + gone, device->quarantine_count * sizeof device->quarantine[0]);
}

static rondo_status sim_out_of_memory(const rondo__sim_device *device, uint64_t size) {
    return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, MEMORY,
                             "sim: no memory for %llu bytes: %llu of %llu are in "
                             "use",
                             (unsigned long long)size, (unsigned long long)device->used,
                             (unsigned long long)device->limit);
}

static rondo_status sim_allocate(void *self, uint64_t size, uint64_t *out_address) {
    rondo__sim_device *device = self;
    rondo_status status = RONDO_OK;
    void *pointer = NULL;
    (void)pthread_mutex_lock(&device->mutex);
    if (size <= device->limit - device->used && size <= SIZE_MAX / 2u && sim_blocks_reserve(device, &device->live)) {
        pointer = rondo__sim_allocate(device, (size_t)size, RONDO__SIM_ALIGNMENT);
    }
    if (pointer) {
        rondo__sim_block block = {(uint64_t)(uintptr_t)pointer, size};
        sim_blocks_insert(&device->live, &block);
        device->used += size;
        device->counts[RONDO__SIM_COUNT_ALLOCATIONS]++;
        sim_poison(block.base, size, RONDO__SIM_FRESH);
        *out_address = block.base;
    } else {
        status = sim_out_of_memory(device, size);
    }
    (void)pthread_mutex_unlock(&device->mutex);
    return status;
}

static void sim_free(void *self, uint64_t address, uint64_t size) {
    rondo__sim_device *device = self;
    (void)pthread_mutex_lock(&device->mutex);
    size_t at = sim_blocks_upto(&device->live, address);
    rondo__sim_block block = {address, size};
    if (at) sim_blocks_remove(&device->live, at - 1u);
    device->used -= size;
    rondo__sim_shadow_forget(device, address, size);
    sim_poison(address, size, RONDO__SIM_FREED);
    if (size <= RONDO__SIM_QUARANTINE) {
        sim_shrink_quarantine(device, RONDO__SIM_QUARANTINE - size, RONDO__SIM_QUARANTINE_BLOCKS - 1u);
        device->quarantine[device->quarantine_count++] = block;
        device->quarantined += size;
    } else {
        sim_let_go(device, &block);
    }
    (void)pthread_mutex_unlock(&device->mutex);
}

static rondo_status sim_host_allocate(void *self, uint64_t size, void **out_pointer) {
    rondo__sim_device *device = self;
    void *pointer = NULL;
    (void)pthread_mutex_lock(&device->mutex);
    if (size <= SIZE_MAX / 2u && sim_blocks_reserve(device, &device->pinned)) {
        pointer = rondo__sim_allocate(device, (size_t)size, RONDO__SIM_ALIGNMENT);
    }
    if (pointer) {
        memset(pointer, RONDO__SIM_FRESH, (size_t)size);
        sim_blocks_insert(&device->pinned, &(rondo__sim_block){(uint64_t)(uintptr_t)pointer, size});
    }
    (void)pthread_mutex_unlock(&device->mutex);
    if (!pointer) {
        return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, MEMORY, "sim: no host memory for %llu bytes",
                                 (unsigned long long)size);
    }
    *out_pointer = pointer;
    return RONDO_OK;
}

static void sim_host_free(void *self, void *pointer, uint64_t size) {
    rondo__sim_device *device = self;
    (void)pthread_mutex_lock(&device->mutex);
    size_t at = sim_blocks_upto(&device->pinned, (uint64_t)(uintptr_t)pointer);
    if (at) sim_blocks_remove(&device->pinned, at - 1u);
    rondo__sim_shadow_forget(device, (uint64_t)(uintptr_t)pointer, size);
    (void)pthread_mutex_unlock(&device->mutex);
    memset(pointer, RONDO__SIM_FREED, (size_t)size);
    rondo__sim_release(self, pointer, (size_t)size, RONDO__SIM_ALIGNMENT);
}

/* Nothing that is enqueued uses the range: the core waits before it tells. */
static void sim_on_reuse(void *self, uint64_t address, uint64_t size, bool taken) {
    rondo__sim_device *device = self;
    (void)pthread_mutex_lock(&device->mutex);
    rondo__sim_shadow_forget(device, address, size);
    (void)pthread_mutex_unlock(&device->mutex);
    sim_poison(address, size, taken ? RONDO__SIM_FRESH : RONDO__SIM_FREED);
}

void rondo__sim_memory_close(rondo__sim_device *device) {
    for (size_t i = 0; i < device->live.count; i++) {
        rondo__sim_release(device, (void *)(uintptr_t)device->live.items[i].base, (size_t)device->live.items[i].size,
                           RONDO__SIM_ALIGNMENT);
    }
    sim_shrink_quarantine(device, 0, 0);
    rondo__sim_release(device, device->live.items, device->live.capacity * sizeof *device->live.items, 0);
    rondo__sim_release(device, device->pinned.items, device->pinned.capacity * sizeof *device->pinned.items, 0);
}

/* --------------------------------------------------------------------------------------------- who owns what */

const char *rondo__sim_range_problem(const rondo__sim_device *device, uint64_t address, uint64_t bytes) {
    size_t at = sim_blocks_upto(&device->live, address);
    const rondo__sim_block *block = at ? &device->live.items[at - 1u] : NULL;
    if (block && address - block->base < block->size) {
        return bytes <= block->size - (address - block->base) ? NULL : "crosses the end of its allocation";
    }
    for (size_t i = 0; i < device->quarantine_count; i++) {
        block = &device->quarantine[i];
        if (address - block->base < block->size) return "was freed";
    }
    return "is no memory of this device";
}

uint64_t rondo__sim_range_rest(const rondo__sim_device *device, uint64_t address) {
    size_t at = sim_blocks_upto(&device->live, address);
    const rondo__sim_block *block = at ? &device->live.items[at - 1u] : NULL;
    return block && address - block->base < block->size ? block->size - (address - block->base) : 0;
}

static bool sim_blocks_touch(const rondo__sim_block *block, uint64_t address, uint64_t bytes) {
    return address - block->base < block->size || block->base - address < bytes;
}

bool rondo__sim_range_is_device(const rondo__sim_device *device, uint64_t address, uint64_t bytes) {
    size_t at = sim_blocks_upto(&device->live, address);
    if (at && sim_blocks_touch(&device->live.items[at - 1u], address, bytes)) return true;
    if (at < device->live.count && sim_blocks_touch(&device->live.items[at], address, bytes)) return true;
    for (size_t i = 0; i < device->quarantine_count; i++) {
        if (sim_blocks_touch(&device->quarantine[i], address, bytes)) return true;
    }
    return false;
}

bool rondo__sim_range_is_pinned(const rondo__sim_device *device, uint64_t address, uint64_t bytes) {
    size_t at = sim_blocks_upto(&device->pinned, address);
    if (!at) return false;
    const rondo__sim_block *block = &device->pinned.items[at - 1u];
    uint64_t offset = address - block->base;
    return offset < block->size && bytes <= block->size - offset;
}

const rondo_memory_table rondo__sim_memory_table = {.struct_size = sizeof(rondo_memory_table),
                                                    .allocate = sim_allocate,
                                                    .free = sim_free,
                                                    .host_allocate = sim_host_allocate,
                                                    .host_free = sim_host_free,
                                                    .on_reuse = sim_on_reuse};
