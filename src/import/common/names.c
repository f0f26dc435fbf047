/* SPDX-License-Identifier: Apache-2.0
 *
 * An open-addressing table that is never more than three quarters full. */
#include "import/common/common.h"

#include <string.h>

#include "base/thread.h"

void rondo__import_names_init(rondo__import_names *names, const rondo_allocator *allocator) {
    memset(names, 0, sizeof *names);
    names->allocator = *allocator;
    names->seed = ((uint64_t)(uintptr_t)names * UINT64_C(0x9e3779b97f4a7c15)) ^ rondo__now_ns();
}

void rondo__import_names_deinit(rondo__import_names *names) {
    rondo__free(&names->allocator, names->slots, names->capacity * sizeof *names->slots);
    names->slots = NULL;
    names->capacity = names->count = 0;
}

static uint64_t names_mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t names_hash(const rondo__import_names *names, rondo__pb_bytes name) {
    uint64_t hash = names->seed ^ (uint64_t)name.size;
    const uint8_t *at = name.data;
    size_t left = name.size;
    while (left >= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = names_mix(hash ^ word, UINT64_C(0xa0761d6478bd642f) ^ names->seed);
        at += 8;
        left -= 8;
    }
    uint64_t word = 0;
    if (left) memcpy(&word, at, left);
    return names_mix(hash ^ word ^ UINT64_C(0xe7037ed1a0b428db), UINT64_C(0x8ebc6af09c88c6e3));
}

static bool names_equal(const rondo__import_names_slot *slot, uint64_t hash, rondo__pb_bytes name) {
    return slot->hash == hash && slot->size == name.size &&
           (name.size == 0 || memcmp(slot->data, name.data, name.size) == 0);
}

/* The slot that holds the name, or the free one where it belongs. Needs one free slot. */
static rondo__import_names_slot *names_slot(const rondo__import_names *names, uint64_t hash, rondo__pb_bytes name) {
    size_t mask = names->capacity - 1;
    size_t at = (size_t)hash & mask;
    while (names->slots[at].data && !names_equal(&names->slots[at], hash, name)) at = (at + 1) & mask;
    return &names->slots[at];
}

uint32_t rondo__import_names_find(const rondo__import_names *names, rondo__pb_bytes name) {
    if (!names->count) return RONDO__IMPORT_NAMES_NONE;
    const rondo__import_names_slot *slot = names_slot(names, names_hash(names, name), name);
    return slot->data ? slot->number : RONDO__IMPORT_NAMES_NONE;
}

static rondo_status names_grow(rondo__import_names *names) {
    rondo__import_names grown = *names;
    grown.capacity = names->capacity ? names->capacity * 2 : 16;
    void *slots = NULL;
    RONDO__TRY(rondo__allocate_array(&names->allocator, grown.capacity, sizeof *grown.slots, &slots));
    grown.slots = slots;
    for (size_t i = 0; i < names->capacity; i++) {
        const rondo__import_names_slot *old = &names->slots[i];
        if (old->data) *names_slot(&grown, old->hash, (rondo__pb_bytes){old->data, old->size}) = *old;
    }
    rondo__free(&names->allocator, names->slots, names->capacity * sizeof *names->slots);
    *names = grown;
    return RONDO_OK;
}

rondo_status rondo__import_names_insert(rondo__import_names *names, rondo__pb_bytes name, uint32_t number,
                                        uint32_t *out_before) {
    if (names->count + 1 > names->capacity / 4 * 3) RONDO__TRY(names_grow(names));
    uint64_t hash = names_hash(names, name);
    rondo__import_names_slot *slot = names_slot(names, hash, name);
    if (slot->data) {
        *out_before = slot->number;
        return RONDO_OK;
    }
    static const uint8_t names_empty = 0;
    *slot = (rondo__import_names_slot){name.data ? name.data : &names_empty, name.size, hash, number};
    names->count++;
    *out_before = RONDO__IMPORT_NAMES_NONE;
    return RONDO_OK;
}
