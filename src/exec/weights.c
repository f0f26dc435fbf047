/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights by content. What is to be loaded is made first, then looked up: where the host addresses device memory it is made
 * in a block of its own, which goes again when there is one like it; elsewhere in host memory, from where it is copied when
 * there is none. Equal hashes are a reason to compare, and no more: a model may be made to have the hash of another's
 * weights. */
#include <string.h>

#include "artifact/hash.h"
#include "base/checked.h"
#include "exec/weights.h"

#define WEIGHTS_BUCKETS 256u

struct rondo__weights {
    rondo__ref_count references;
    rondo_allocator allocator;
    rondo_device *device; /* retained */
    rondo__exec_memory memory;
    rondo__mutex mutex; /* of the buckets, their blocks' users and the staging stream */
    rondo__weights_block *buckets[WEIGHTS_BUCKETS];
};

rondo_status rondo__weights_create(rondo_device *device, const rondo_device_memory *source,
                                   rondo__weights **out_weights) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(&device->allocator, sizeof(rondo__weights), &memory));
    rondo__weights *weights = memory;
    rondo__ref_init(&weights->references);
    weights->allocator = device->allocator;
    weights->device = device;
    weights->memory.device = device;
    if (source) weights->memory.source = *source;
    rondo_device_retain(device);
    rondo__mutex_init(&weights->mutex);
    *out_weights = weights;
    return RONDO_OK;
}

void rondo__weights_retain(rondo__weights *weights) {
    if (weights) rondo__ref_retain(&weights->references);
}

/* Every block's user holds the weights, so there is none left. */
void rondo__weights_release(rondo__weights *weights) {
    if (!weights || !rondo__ref_release(&weights->references)) return;
    rondo_allocator allocator = weights->allocator;
    rondo_device *device = weights->device;
    rondo__mutex_deinit(&weights->mutex);
    rondo__free(&allocator, weights, sizeof *weights);
    rondo_device_release(device);
}

static uint64_t weights_hash(const void *data, uint64_t bytes) {
    rondo__hash hash;
    rondo__hash_init(&hash);
    rondo__hash_add(&hash, data, (size_t)bytes);
    return rondo__hash_value(&hash);
}

static void weights_free_block(rondo__weights *weights, rondo__weights_block *block) {
    rondo__exec_free(&weights->memory, block->allocation, block->allocated);
    rondo__free(&weights->allocator, block, sizeof *block);
}

/* A block that is in no bucket. */
static rondo_status weights_new_block(rondo__weights *weights, uint64_t bytes, rondo__weights_block **out_block) {
    void *memory = NULL;
    uint64_t whole;
    if (!rondo__checked_add_u64(bytes, RONDO__EXEC_ALIGNMENT - 1u, &whole) || whole > SIZE_MAX)
        return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "weights of %llu bytes are larger than any memory",
                           (unsigned long long)bytes);
    RONDO__TRY(rondo__allocate_zeroed(&weights->allocator, sizeof(rondo__weights_block), &memory));
    rondo__weights_block *block = memory;
    rondo_status status = rondo__exec_allocate(&weights->memory, whole, &block->allocation);
    if (status) {
        rondo__free(&weights->allocator, block, sizeof *block);
        return status;
    }
    block->allocated = whole;
    block->bytes = bytes;
    block->address = (block->allocation + RONDO__EXEC_ALIGNMENT - 1u) & ~(uint64_t)(RONDO__EXEC_ALIGNMENT - 1u);
    *out_block = block;
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------ looking up */

static bool weights_are_near(const rondo__weights *weights) {
    return (weights->device->properties.capabilities & RONDO_DEVICE_HOST_ADDRESSABLE) != 0;
}

static rondo_status weights_same(rondo__weights *weights, const rondo__weights_block *block, const void *data,
                                 bool *out_same) {
    const void *there = (const void *)(uintptr_t)block->address;
    void *stage = NULL;
    rondo_status status = RONDO_OK;
    if (!weights_are_near(weights)) {
        RONDO__TRY(rondo__allocate(&weights->allocator, (size_t)block->bytes, &stage));
        status = rondo__exec_copy(weights->device, (uint64_t)(uintptr_t)stage, block->address, block->bytes,
                                  RONDO_COPY_DEVICE_TO_HOST);
        there = stage;
    }
    *out_same = !status && memcmp(there, data, (size_t)block->bytes) == 0;
    rondo__free(&weights->allocator, stage, (size_t)block->bytes);
    return status;
}

/* With the mutex held. Null where there is none. */
static rondo_status weights_find(rondo__weights *weights, uint64_t hash, const void *data, uint64_t bytes,
                                 rondo__weights_block **out_block) {
    rondo__weights_block *block = weights->buckets[hash % WEIGHTS_BUCKETS];
    for (*out_block = NULL; block; block = block->next) {
        bool same = false;
        if (block->hash != hash || block->bytes != bytes) continue;
        RONDO__TRY(weights_same(weights, block, data, &same));
        if (!same) continue;
        *out_block = block;
        break;
    }
    return RONDO_OK;
}

static void weights_put(rondo__weights *weights, rondo__weights_block *block, uint64_t hash) {
    block->hash = hash;
    block->next = weights->buckets[hash % WEIGHTS_BUCKETS];
    weights->buckets[hash % WEIGHTS_BUCKETS] = block;
}

/* `made` is the new block that holds the data, or null: then it is made now, from the data. */
static rondo_status weights_enter(rondo__weights *weights, const void *data, uint64_t bytes, rondo__weights_block *made,
                                  rondo__weights_block **out_block) {
    uint64_t hash = weights_hash(data, bytes);
    rondo__weights_block *block = NULL;
    rondo__mutex_lock(&weights->mutex);
    rondo_status status = weights_find(weights, hash, data, bytes, &block);
    if (!status && !block) {
        block = made;
        if (!made) status = weights_new_block(weights, bytes, &block);
        if (!status && !made)
            status = rondo__exec_copy(weights->device, block->address, (uint64_t)(uintptr_t)data, bytes,
                                      RONDO_COPY_HOST_TO_DEVICE);
        if (!status) weights_put(weights, block, hash);
        else if (!made && block) weights_free_block(weights, block);
    }
    if (!status) {
        block->users++;
        *out_block = block;
    }
    rondo__mutex_unlock(&weights->mutex);
    return status;
}

static rondo_status weights_take_near(rondo__weights *weights, uint64_t bytes, rondo__weights_fill fill,
                                      const void *self, rondo__weights_block **out_block) {
    rondo__weights_block *made = NULL, *taken = NULL;
    RONDO__TRY(weights_new_block(weights, bytes, &made));
    void *data = (void *)(uintptr_t)made->address;
    rondo_status status = fill(self, data);
    if (!status) status = weights_enter(weights, data, bytes, made, &taken);
    if (taken != made) weights_free_block(weights, made);
    if (!status) *out_block = taken;
    return status;
}

static rondo_status weights_take_far(rondo__weights *weights, uint64_t bytes, rondo__weights_fill fill,
                                     const void *self, rondo__weights_block **out_block) {
    void *stage = NULL;
    RONDO__TRY(rondo__allocate_aligned(&weights->allocator, (size_t)bytes, RONDO__EXEC_ALIGNMENT, &stage));
    rondo_status status = fill(self, stage);
    if (!status) status = weights_enter(weights, stage, bytes, NULL, out_block);
    rondo__free_aligned(&weights->allocator, stage, (size_t)bytes, RONDO__EXEC_ALIGNMENT);
    return status;
}

rondo_status rondo__weights_take(rondo__weights *weights, uint64_t bytes, rondo__weights_fill fill, const void *self,
                                 rondo__weights_block **out_block) {
    return weights_are_near(weights) ? weights_take_near(weights, bytes, fill, self, out_block)
                                     : weights_take_far(weights, bytes, fill, self, out_block);
}

void rondo__weights_give(rondo__weights *weights, rondo__weights_block *block) {
    rondo__mutex_lock(&weights->mutex);
    bool last = --block->users == 0;
    if (last) {
        rondo__weights_block **link = &weights->buckets[block->hash % WEIGHTS_BUCKETS];
        while (*link != block) link = &(*link)->next;
        *link = block->next;
    }
    rondo__mutex_unlock(&weights->mutex);
    if (last) weights_free_block(weights, block);
}
