/* SPDX-License-Identifier: Apache-2.0
 *
 * The public calls and those for other rooms, over the two caches of a device. */
#include "memory/classes.h"
#include "memory/table.h"

rondo_status rondo__memory_create(rondo_device *device, rondo__memory **out_memory) {
    void *block = NULL;
    RONDO__TRY(rondo__allocate_zeroed(&device->allocator, sizeof(rondo__memory), &block));
    rondo__memory *memory = block;
    memory->device = device;
    memory->allocator = device->allocator;
    memory->next_generation = 1;
    atomic_init(&memory->epoch, 1);
    rondo__mutex_init(&memory->mutex);
    rondo__cache_init(&memory->cache, memory, false);
    rondo__cache_init(&memory->pinned, memory, true);
    rondo__watch_init(&memory->watch, &memory->allocator);
    *out_memory = memory;
    return RONDO_OK;
}

void rondo__memory_destroy(rondo__memory *memory) {
    if (!memory) return;
    uint64_t left = memory->cache.total.allocations, pinned = memory->pinned.total.allocations;
    if (left || pinned) {
        rondo__log_write(memory->device->log, RONDO_LOG_WARNING,
                         "device '%s' closes with %llu allocations of %llu bytes "
                         "and %llu pinned ones alive: they are freed now",
                         memory->device->properties.name, (unsigned long long)left,
                         (unsigned long long)memory->cache.total.requested_bytes, (unsigned long long)pinned);
    }
    rondo__cache_deinit(&memory->cache);
    rondo__cache_deinit(&memory->pinned);
    rondo__watch_deinit(&memory->watch);
    rondo__mutex_deinit(&memory->mutex);
    rondo__free(&memory->allocator, memory, sizeof *memory);
}

static rondo_status memory_allocate(rondo__cache *cache, uint64_t size, bool divert, uint64_t *out_address) {
    rondo__request request = {.stream = RONDO__NO_STREAM};
    if (!size) return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "an allocation needs a size above 0");
    RONDO__TRY(rondo__class_of(cache, size, &request));
    request.divert = divert;
    return rondo__cache_allocate(cache, &request, out_address);
}

rondo_status rondo__memory_allocate(rondo__memory *memory, uint64_t size, uint64_t *out_address) {
    return memory_allocate(&memory->cache, size, false, out_address);
}

rondo_status rondo__memory_free(rondo__memory *memory, uint64_t address) {
    return rondo__cache_free(&memory->cache, address);
}

static rondo_status memory_public_allocate(rondo_device *device, uint64_t size, bool pinned, void **out_pointer) {
    uint64_t address = 0;
    if (!device || !out_pointer) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "an allocation needs a device and a place for the pointer");
    }
    rondo__cache *cache = pinned ? &device->memory->pinned : &device->memory->cache;
    RONDO__TRY(memory_allocate(cache, size, true, &address));
    *out_pointer = (void *)(uintptr_t)address;
    return RONDO_OK;
}

static rondo_status memory_public_free(rondo_device *device, void *pointer, bool pinned) {
    if (!device) return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "freeing needs the device");
    rondo__cache *cache = pinned ? &device->memory->pinned : &device->memory->cache;
    return rondo__cache_free(cache, (uint64_t)(uintptr_t)pointer);
}

rondo_status rondo_memory_allocate(rondo_device *device, uint64_t size, void **out_pointer) {
    return memory_public_allocate(device, size, false, out_pointer);
}

/* Which capture records the stream; 0: none. */
static uint64_t memory_capture_id(rondo_stream *stream) {
    rondo_capture_status status = RONDO_CAPTURE_STATUS_INIT;
    rondo__recorder *recorder = rondo__stream_recorder(stream);
    if (!recorder) return 0;
    recorder->table->status(recorder, &status);
    return status.id;
}

rondo_status rondo_memory_allocate_on(rondo_stream *stream, uint64_t size, void **out_pointer) {
    rondo__request request = {0};
    uint64_t address = 0;
    if (!stream || !out_pointer || !size) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY,
                           "an allocation needs a stream, a size above 0 and a place for the "
                           "pointer");
    }
    rondo__cache *cache = &stream->device->memory->cache;
    RONDO__TRY(rondo__class_of(cache, size, &request));
    request.stream = stream->id;
    request.divert = true;
    request.capture = memory_capture_id(stream);
    RONDO__TRY(rondo__cache_allocate(cache, &request, &address));
    *out_pointer = (void *)(uintptr_t)address;
    return RONDO_OK;
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
        bytes = memory->cache.total.requested_bytes;
        count = memory->cache.total.allocations;
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
