/* SPDX-License-Identifier: Apache-2.0
 *
 * Storages: whose memory it is, and who is told when it ends. */
#include <string.h>

#include "tree/native/native.h"

rondo_status rondo__storage_check(const rondo__storage *storage) {
    const rondo_tree_lease *lease = rondo__storage_lease(storage);
    return lease ? rondo_tree_lease_check(lease, storage->epoch) : RONDO_OK;
}

/* Nothing that goes wrong here can be mended here, so failures go unheard. */
static void storage_free(const rondo__storage *storage) {
    void *pointer = (void *)(uintptr_t)rondo__storage_address(storage);
    uint8_t owns = rondo__storage_owns(storage);
    if (owns == RONDO__STORAGE_BLOCK) RONDO__IGNORE(rondo_memory_free(storage->device, pointer));
    if (owns == RONDO__STORAGE_PINNED) RONDO__IGNORE(rondo_memory_host_free(storage->device, pointer));
}

void rondo__storage_end(rondo__storage *storage) {
    rondo_array *unit = rondo__storage_unit(storage);
    storage_free(storage);
    rondo__unit_end(unit);
}

bool rondo__storage_try_retain(rondo__storage *storage) {
    uint_least32_t count = atomic_load_explicit(&storage->references, memory_order_relaxed);
    while (count) {
        if (atomic_compare_exchange_weak_explicit(&storage->references, &count, count + 1u, memory_order_acquire,
                                                  memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------------------------------------------- other memory */

bool rondo__storage_move(rondo__storage *storage, uint64_t address, uint64_t bytes, rondo_tree_lease **out_lease,
                         uint64_t *out_epoch) {
    rondo__native_host *home = rondo__storage_unit(storage)->home;
    rondo__mutex_lock(&home->mutex);
    rondo_tree_lease *lease = rondo__storage_lease(storage);
    if (lease) {
        *out_lease = lease;
        *out_epoch = storage->epoch;
        rondo__storage_put(storage, address, bytes, RONDO__STORAGE_BLOCK);
        atomic_store_explicit(&storage->lease, NULL, memory_order_release);
    }
    rondo__mutex_unlock(&home->mutex);
    return lease != NULL;
}

static rondo_status storage_resize_host(rondo__storage *storage, uint64_t bytes) {
    void *memory = NULL;
    const void *before = (const void *)(uintptr_t)rondo__storage_address(storage);
    RONDO__TRY(rondo_memory_host_allocate(storage->device, bytes, &memory));
    if (before) memcpy(memory, before, (size_t)rondo__storage_bytes(storage));
    storage_free(storage);
    rondo__storage_put(storage, (uint64_t)(uintptr_t)memory, bytes, RONDO__STORAGE_PINNED);
    return RONDO_OK;
}

static rondo_status storage_copy(const rondo__storage *storage, rondo_stream *stream, void *memory) {
    void *before = (void *)(uintptr_t)rondo__storage_address(storage);
    if (!before) return RONDO_OK;
    RONDO__TRY(rondo_stream_copy(stream, memory, before, rondo__storage_bytes(storage), RONDO_COPY_DEVICE_TO_DEVICE));
    /* The old memory is free for others only when it has been read. What the tree has is no block of the allocator's. */
    rondo_status status = rondo_memory_record_stream(storage->device, before, stream);
    if (rondo_status_code(status) != RONDO_CODE_INVALID_ARGUMENT) return status;
    rondo_status_release(status);
    return RONDO_OK;
}

static rondo_status storage_resize_device(rondo__storage *storage, rondo_stream *stream, uint64_t bytes) {
    rondo_tree_lease *lease = NULL;
    uint64_t epoch = 0;
    void *memory = NULL;
    RONDO__TRY(rondo_memory_allocate_on(stream, bytes, &memory));
    rondo_status status = storage_copy(storage, stream, memory);
    if (status) {
        RONDO__IGNORE(rondo_memory_free(storage->device, memory));
        return status;
    }
    if (rondo__storage_lease(storage) &&
        rondo__storage_move(storage, (uint64_t)(uintptr_t)memory, bytes, &lease, &epoch)) {
        rondo_tree_lease_release(lease, epoch);
        return RONDO_OK;
    }
    storage_free(storage);
    rondo__storage_put(storage, (uint64_t)(uintptr_t)memory, bytes, RONDO__STORAGE_BLOCK);
    return RONDO_OK;
}

rondo_status rondo_array_resize(rondo_array *array, rondo_stream *stream, uint64_t bytes) {
    rondo__storage *storage = array ? array->storage : NULL;
    if (!storage || storage->place == RONDO_TENSOR_NONE || rondo__storage_owns(storage) == RONDO__STORAGE_WRAPPED) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE,
                           "rondo_array_resize needs an array on memory that is not the caller's own");
    }
    if (bytes < rondo__storage_bytes(storage)) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE,
                           "rondo_array_resize: a storage of %llu bytes does not shrink to %llu: others may use it",
                           (unsigned long long)rondo__storage_bytes(storage), (unsigned long long)bytes);
    }
    RONDO__TRY(rondo__storage_check(storage));
    if (bytes == rondo__storage_bytes(storage) && !rondo__storage_lease(storage)) return RONDO_OK;
    if (storage->place == RONDO_TENSOR_HOST) return storage_resize_host(storage, bytes);
    if (!stream || stream->device != storage->device) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_array_resize needs a stream of the array's device");
    }
    return storage_resize_device(storage, stream, bytes);
}

rondo_status rondo_array_record_stream(rondo_array *array, rondo_stream *stream) {
    if (!array || !stream) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_array_record_stream needs an array and a stream");
    }
    const rondo__storage *storage = array->storage;
    if (rondo__storage_owns(storage) != RONDO__STORAGE_BLOCK) return RONDO_OK;
    return rondo_memory_record_stream(storage->device, (void *)(uintptr_t)rondo__storage_address(storage), stream);
}
