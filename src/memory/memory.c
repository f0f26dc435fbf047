/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocating and freeing: the backend's raw memory, with an entry in the table for every live block. */
#include "memory/table.h"

#define RONDO__MEMORY_HOST_ALIGNMENT 64u

rondo_status rondo__memory_create(rondo_device *device, rondo__memory **out_memory) {
    void *block = NULL;
    RONDO__TRY(rondo__allocate_zeroed(&device->allocator, sizeof(rondo__memory), &block));
    rondo__memory *memory = block;
    memory->device = device;
    memory->allocator = device->allocator;
    memory->next_generation = 1;
    atomic_init(&memory->epoch, 1);
    rondo__mutex_init(&memory->mutex);
    rondo__ranges_init(&memory->device_ranges, &memory->allocator);
    rondo__ranges_init(&memory->pinned_ranges, &memory->allocator);
    rondo__watch_init(&memory->watch, &memory->allocator);
    *out_memory = memory;
    return RONDO_OK;
}

static void memory_give_back(rondo__memory *memory, uint64_t address, uint64_t size, bool pinned) {
    const rondo_memory_table *table = memory->device->table->memory;
    void *pointer = (void *)(uintptr_t)address;
    if (!pinned) {
        table->free(memory->device->handle, address, size);
    } else if (table->host_free) {
        table->host_free(memory->device->handle, pointer, size);
    } else {
        rondo__free_aligned(&memory->allocator, pointer, (size_t)size, RONDO__MEMORY_HOST_ALIGNMENT);
    }
}

static void memory_destroy_ranges(rondo__memory *memory, rondo__ranges *ranges, bool pinned) {
    rondo__allocation *allocation;
    while ((allocation = rondo__ranges_at_or_above(ranges, 0)) != NULL) {
        rondo__watch_freed(&memory->watch, allocation);
        rondo__ranges_remove(ranges, allocation);
        memory_give_back(memory, allocation->base, allocation->size, pinned);
        rondo__free(&memory->allocator, allocation, sizeof *allocation);
    }
    rondo__ranges_deinit(ranges);
}

void rondo__memory_destroy(rondo__memory *memory) {
    if (!memory) return;
    uint64_t left = memory->device_ranges.count, pinned = memory->pinned_ranges.count;
    if (left || pinned) {
        rondo__log_write(memory->device->log, RONDO_LOG_WARNING,
                         "device '%s' closes with %llu allocations of %llu bytes "
                         "and %llu pinned ones alive: they are freed now",
                         memory->device->properties.name, (unsigned long long)left, (unsigned long long)memory->bytes,
                         (unsigned long long)pinned);
    }
    memory_destroy_ranges(memory, &memory->device_ranges, false);
    memory_destroy_ranges(memory, &memory->pinned_ranges, true);
    rondo__watch_deinit(&memory->watch);
    rondo__mutex_deinit(&memory->mutex);
    rondo__free(&memory->allocator, memory, sizeof *memory);
}

/* Raw memory of either kind. */
static rondo_status memory_take(rondo__memory *memory, uint64_t size, bool pinned, uint64_t *out_address) {
    const rondo_memory_table *table = memory->device->table->memory;
    void *pointer = NULL;
    if (size > SIZE_MAX / 2u) {
        return RONDO__FAIL(OUT_OF_MEMORY, MEMORY, "device '%s': %llu bytes are more than there are addresses",
                           memory->device->properties.name, (unsigned long long)size);
    }
    if (!pinned) return table->allocate(memory->device->handle, size, out_address);
    if (table->host_allocate) {
        RONDO__TRY(table->host_allocate(memory->device->handle, size, &pointer));
    } else {
        RONDO__TRY(rondo__allocate_aligned(&memory->allocator, (size_t)size, RONDO__MEMORY_HOST_ALIGNMENT, &pointer));
    }
    *out_address = (uint64_t)(uintptr_t)pointer;
    return RONDO_OK;
}

static rondo_status memory_check_address(const rondo__memory *memory, uint64_t address, uint64_t size, bool pinned) {
    uint64_t alignment = pinned ? 1u : memory->device->properties.allocation_alignment, end = 0;
    if (address && (address & (alignment - 1u)) == 0 && !__builtin_add_overflow(address, size, &end)) return RONDO_OK;
    return RONDO__FAIL(INTERNAL, MEMORY, "the backend of '%s' gave out 0x%llx, which is not aligned to %llu bytes",
                       memory->device->properties.name, (unsigned long long)address, (unsigned long long)alignment);
}

static rondo_status memory_enter(rondo__memory *memory, rondo__allocation *allocation, bool pinned) {
    rondo__mutex_lock(&memory->mutex);
    rondo_status status = rondo__ranges_insert(pinned ? &memory->pinned_ranges : &memory->device_ranges, allocation);
    if (!status) {
        allocation->generation = memory->next_generation++;
        if (!pinned) memory->bytes += allocation->size;
    }
    rondo__mutex_unlock(&memory->mutex);
    return status;
}

static rondo_status memory_allocate(rondo__memory *memory, uint64_t size, bool pinned, uint64_t *out_address) {
    void *block = NULL;
    uint64_t address = 0;
    if (!size) return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "an allocation needs a size above 0");
    RONDO__TRY(rondo__allocate_zeroed(&memory->allocator, sizeof(rondo__allocation), &block));
    rondo__allocation *allocation = block;
    rondo_status status = memory_take(memory, size, pinned, &address);
    if (status) {
        rondo__free(&memory->allocator, allocation, sizeof *allocation);
        return status;
    }
    allocation->base = address;
    allocation->size = size;
    status = memory_check_address(memory, address, size, pinned);
    if (!status) status = memory_enter(memory, allocation, pinned);
    if (status) {
        memory_give_back(memory, address, size, pinned);
        rondo__free(&memory->allocator, allocation, sizeof *allocation);
        return status;
    }
    *out_address = address;
    return RONDO_OK;
}

/* Takes the allocation out of the table; null when no live one starts there. From here on graphs that mention it are
 * stale, before anybody else can be given its address. */
static rondo__allocation *memory_leave(rondo__memory *memory, uint64_t address, bool pinned) {
    rondo__ranges *ranges = pinned ? &memory->pinned_ranges : &memory->device_ranges;
    rondo__mutex_lock(&memory->mutex);
    rondo__allocation *allocation = rondo__ranges_at_or_below(ranges, address);
    if (allocation && allocation->base != address) allocation = NULL;
    if (allocation) {
        rondo__watch_freed(&memory->watch, allocation);
        rondo__ranges_remove(ranges, allocation);
        if (!pinned) memory->bytes -= allocation->size;
        memory->frees++;
        memory->history[memory->frees % RONDO__MEMORY_HISTORY] =
            (rondo__memory_past){allocation->generation, memory->frees, pinned};
        (void)atomic_fetch_add_explicit(&memory->epoch, 1u, memory_order_release);
    }
    rondo__mutex_unlock(&memory->mutex);
    return allocation;
}

static rondo_status memory_free(rondo__memory *memory, uint64_t address, bool pinned) {
    rondo__device_drain(memory->device);
    rondo__allocation *allocation = memory_leave(memory, address, pinned);
    if (!allocation) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY,
                           "%s: 0x%llx is not the start of a live %sallocation of device '%s'",
                           pinned ? "rondo_memory_host_free" : "rondo_memory_free", (unsigned long long)address,
                           pinned ? "host " : "", memory->device->properties.name);
    }
    memory_give_back(memory, allocation->base, allocation->size, pinned);
    rondo__free(&memory->allocator, allocation, sizeof *allocation);
    return RONDO_OK;
}

rondo_status rondo__memory_allocate(rondo__memory *memory, uint64_t size, uint64_t *out_address) {
    return memory_allocate(memory, size, false, out_address);
}

rondo_status rondo__memory_free(rondo__memory *memory, uint64_t address) { return memory_free(memory, address, false); }

static rondo_status memory_public_allocate(rondo_device *device, uint64_t size, bool pinned, void **out_pointer) {
    uint64_t address = 0;
    if (!device || !out_pointer) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "an allocation needs a device and a place for the pointer");
    }
    RONDO__TRY(memory_allocate(device->memory, size, pinned, &address));
    *out_pointer = (void *)(uintptr_t)address;
    return RONDO_OK;
}

static rondo_status memory_public_free(rondo_device *device, void *pointer, bool pinned) {
    if (!device) return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "freeing needs the device");
    return memory_free(device->memory, (uint64_t)(uintptr_t)pointer, pinned);
}

rondo_status rondo_memory_allocate(rondo_device *device, uint64_t size, void **out_pointer) {
    return memory_public_allocate(device, size, false, out_pointer);
}

rondo_status rondo_memory_free(rondo_device *device, void *pointer) {
    return memory_public_free(device, pointer, false);
}

rondo_status rondo_memory_host_allocate(rondo_device *device, uint64_t size, void **out_pointer) {
    return memory_public_allocate(device, size, true, out_pointer);
}

rondo_status rondo_memory_host_free(rondo_device *device, void *pointer) {
    return memory_public_free(device, pointer, true);
}

void rondo_memory_usage(const rondo_device *device, uint64_t *out_bytes, uint64_t *out_allocations) {
    uint64_t bytes = 0, count = 0;
    if (device) {
        rondo__memory *memory = device->memory;
        rondo__mutex_lock(&memory->mutex);
        bytes = memory->bytes;
        count = memory->device_ranges.count;
        rondo__mutex_unlock(&memory->mutex);
    }
    if (out_bytes) *out_bytes = bytes;
    if (out_allocations) *out_allocations = count;
}

rondo_pool_id rondo_pool_handle(rondo_instance *instance) {
    rondo_pool_id pool = {0, 0};
    if (instance) pool.user = rondo__registry_next_id(rondo__instance_registry(instance));
    return pool;
}
