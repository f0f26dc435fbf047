/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory of huge pages where there are some, at 512 bytes: the driver promises 64, so a block is asked for that has room
 * to move. Pinned host memory. */
#include "ascend.h"

enum { MEMORY_HUGE_FIRST = 0, MEMORY_DRIVER_ALIGNMENT = 64, MEMORY_HOST_ALIGNMENT = 64 };

static rondo_status memory_take(rondo__ascend_device *device, uint64_t size, rondo__ascend_block *block) {
    uint64_t more = RONDO__ASCEND_ALIGNMENT - MEMORY_DRIVER_ALIGNMENT;
    if (size > UINT64_MAX - more || size + more > SIZE_MAX)
        return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, MEMORY, "ascend: %llu bytes are more than can be named",
                                 (unsigned long long)size);
    rondo_status status =
        RONDO__ASCEND_CALL(device->library, aclrtMalloc, &block->base, (size_t)(size + more), MEMORY_HUGE_FIRST);
    if (status) return status;
    uint64_t base = (uint64_t)(uintptr_t)block->base;
    block->address = (base + RONDO__ASCEND_ALIGNMENT - 1u) & ~(uint64_t)(RONDO__ASCEND_ALIGNMENT - 1u);
    return RONDO_OK;
}

static rondo_status memory_allocate(void *self, uint64_t size, uint64_t *out_address) {
    rondo__ascend_device *device = self;
    void *before = NULL;
    rondo_status status = rondo__ascend_enter(device, &before);
    if (status) return status;
    rondo__ascend_block *block = rondo__ascend_allocate(device->host, sizeof *block);
    if (!block) status = RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, MEMORY, "ascend: no memory to note a block");
    if (!status) status = memory_take(device, size, block);
    if (status) rondo__ascend_free(device->host, block, sizeof *block);
    else {
        (void)pthread_mutex_lock(&device->mutex);
        block->next = device->blocks;
        device->blocks = block;
        (void)pthread_mutex_unlock(&device->mutex);
        rondo__ascend_count(device, RONDO__ASCEND_COUNT_ALLOCATIONS);
        *out_address = block->address;
    }
    return rondo__ascend_left(device, before, status);
}

static rondo__ascend_block *memory_forget(rondo__ascend_device *device, rondo__ascend_block **link, uint64_t address) {
    (void)pthread_mutex_lock(&device->mutex);
    while (*link && (*link)->address != address) link = &(*link)->next;
    rondo__ascend_block *block = *link;
    if (block) *link = block->next;
    (void)pthread_mutex_unlock(&device->mutex);
    return block;
}

static void memory_free(void *self, uint64_t address, uint64_t size) {
    rondo__ascend_device *device = self;
    void *before = NULL;
    (void)size;
    rondo__ascend_block *block = memory_forget(device, &device->blocks, address);
    if (!block) return;
    rondo_status status = rondo__ascend_enter(device, &before);
    if (!status) status = RONDO__ASCEND_CALL(device->library, aclrtFree, block->base);
    device->host->status_release(status);
    rondo__ascend_leave(device, before);
    rondo__ascend_free(device->host, block, sizeof *block);
}

/* Where the driver pins none: a copy from there waits for its stream, and captures of the driver refuse it. */
static rondo_status memory_pageable(rondo__ascend_device *device, uint64_t size, void **out_pointer) {
    const rondo_allocator *allocator = &device->host->allocator;
    rondo__ascend_block *block = NULL;
    if (size <= SIZE_MAX - sizeof *block - MEMORY_HOST_ALIGNMENT)
        block =
            allocator->reallocate(allocator->self, NULL, 0, (size_t)size + sizeof *block + MEMORY_HOST_ALIGNMENT, 0);
    if (!block)
        return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, MEMORY, "ascend: no host memory of %llu bytes",
                                 (unsigned long long)size);
    uint64_t behind = (uint64_t)(uintptr_t)(block + 1);
    block->address = (behind + MEMORY_HOST_ALIGNMENT - 1u) & ~(uint64_t)(MEMORY_HOST_ALIGNMENT - 1u);
    (void)pthread_mutex_lock(&device->mutex);
    block->next = device->pageable;
    device->pageable = block;
    (void)pthread_mutex_unlock(&device->mutex);
    *out_pointer = (void *)(uintptr_t)block->address;
    return RONDO_OK;
}

/* False: it is the driver's. */
static bool memory_pageable_free(rondo__ascend_device *device, const void *pointer, uint64_t size) {
    rondo__ascend_block *block = memory_forget(device, &device->pageable, (uint64_t)(uintptr_t)pointer);
    if (block) rondo__ascend_free(device->host, block, (size_t)size + sizeof *block + MEMORY_HOST_ALIGNMENT);
    return block != NULL;
}

static rondo_status memory_host_allocate(void *self, uint64_t size, void **out_pointer) {
    rondo__ascend_device *device = self;
    void *before = NULL;
    if (!rondo__ascend_can(device, RONDO__ASCEND_PINNED)) return memory_pageable(device, size, out_pointer);
    rondo_status status = rondo__ascend_enter(device, &before);
    if (status) return status;
    int error = device->library->api.aclrtMallocHost(out_pointer, (size_t)size);
    if (RONDO__ASCEND_REFUSED(device, RONDO__ASCEND_PINNED, aclrtMallocHost, error))
        status = memory_pageable(device, size, out_pointer);
    else status = rondo__ascend_error(device->library, "aclrtMallocHost", error);
    return rondo__ascend_left(device, before, status);
}

static void memory_host_free(void *self, void *pointer, uint64_t size) {
    rondo__ascend_device *device = self;
    void *before = NULL;
    if (memory_pageable_free(device, pointer, size)) return;
    rondo_status status = rondo__ascend_enter(device, &before);
    if (!status) status = RONDO__ASCEND_CALL(device->library, aclrtFreeHost, pointer);
    device->host->status_release(status);
    rondo__ascend_leave(device, before);
}

const rondo_memory_table rondo__ascend_memory_table = {.struct_size = sizeof(rondo_memory_table),
                                                       .allocate = memory_allocate,
                                                       .free = memory_free,
                                                       .host_allocate = memory_host_allocate,
                                                       .host_free = memory_host_free};
