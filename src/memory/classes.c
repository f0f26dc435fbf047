/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounding sizes. */
#include "memory/classes.h"

#include "base/checked.h"
#include "memory/table.h"

/* To the next of `divisions` equal steps between two powers of two. */
static uint64_t class_round_in_steps(uint64_t size, uint64_t divisions) {
    uint64_t power = (uint64_t)1 << (63u - (uint64_t)__builtin_clzll(size));
    if (power == size) return size;
    uint64_t step = power / divisions;
    return (size + step - 1u) & ~(step - 1u);
}

rondo_status rondo__class_round(const rondo__cache *cache, uint64_t size, uint64_t *out_rounded) {
    uint64_t divisions = __atomic_load_n(&cache->divisions, __ATOMIC_RELAXED);
    if (size > SIZE_MAX / 4u) {
        return RONDO__FAIL(OUT_OF_MEMORY, MEMORY, "device '%s': %llu bytes are more than there are addresses",
                           cache->memory->device->properties.name, (unsigned long long)size);
    }
    if (divisions > 1u && size > cache->unit * divisions) size = class_round_in_steps(size, divisions);
    *out_rounded = (size + cache->unit - 1u) & ~(cache->unit - 1u);
    return RONDO_OK;
}

uint64_t rondo__class_segment(const rondo__cache *cache, const rondo__request *request) {
    uint64_t bytes = request->rounded, step = RONDO__CLASS_ROUND_SEGMENT;
    if (bytes <= RONDO__CLASS_SMALL) bytes = RONDO__CLASS_SMALL_SEGMENT;
    else if (bytes < RONDO__CLASS_OWN_SEGMENT) bytes = RONDO__CLASS_LARGE_SEGMENT;
    if (step < cache->unit) step = cache->unit;
    return (bytes + step - 1u) & ~(step - 1u);
}
