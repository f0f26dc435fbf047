/* SPDX-License-Identifier: Apache-2.0
 *
 * Which handles there are. A program's handle is a pointer that is looked up before anything behind it is touched, so
 * that one that is gone, or never was, is an error and no crash. */
#include "sim.h"

static sim_object **object_table; /* open addressing; capacity is a power of two */
static size_t object_capacity, object_used;
static uint64_t object_counts[32];

void *sim_allocate(size_t bytes) {
    aclError error = 0;
    sim_count_one(SIM_CALL_alloc);
    if (sim_fault_due(SIM_CALL_alloc, &error)) return NULL;
    return calloc(1, bytes ? bytes : 1);
}

bool sim_grow(void **array, size_t *capacity, size_t count, size_t element) {
    if (count <= *capacity) return true;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    while (wanted < count) wanted *= 2;
    void *bigger = sim_allocate(wanted * element);
    if (!bigger) return false;
    if (*array) memcpy(bigger, *array, *capacity * element);
    free(*array);
    *array = bigger;
    *capacity = wanted;
    return true;
}

static size_t object_slot(const void *handle) {
    uint64_t hash = (uint64_t)(uintptr_t)handle * 0x9E3779B97F4A7C15u;
    return (size_t)(hash >> 20) & (object_capacity - 1);
}

static void object_put(sim_object *object) {
    size_t slot = object_slot(object);
    while (object_table[slot]) slot = (slot + 1) & (object_capacity - 1);
    object_table[slot] = object;
}

static bool object_make_room(void) {
    if (object_used * 2 < object_capacity) return true;
    size_t old = object_capacity;
    sim_object **table = sim_allocate((old ? old * 2 : 256) * sizeof *table), **before = object_table;
    if (!table) return false;
    object_capacity = old ? old * 2 : 256;
    object_table = table;
    for (size_t i = 0; i < old; i++)
        if (before[i]) object_put(before[i]);
    free(before);
    return true;
}

bool sim_object_add(void *object, uint32_t kind) {
    if (!object_make_room()) return false;
    sim_object *header = object;
    header->kind = kind;
    header->number = ++sim.numbers;
    object_put(header);
    object_used++;
    object_counts[kind]++;
    return true;
}

void sim_object_remove(void *object) {
    if (!object_capacity) return;
    size_t slot = object_slot(object);
    while (object_table[slot] && object_table[slot] != object) slot = (slot + 1) & (object_capacity - 1);
    if (!object_table[slot]) return;
    object_counts[object_table[slot]->kind]--;
    object_table[slot] = NULL;
    object_used--;
    for (size_t next = (slot + 1) & (object_capacity - 1); object_table[next];
         next = (next + 1) & (object_capacity - 1)) {
        sim_object *moved = object_table[next];
        object_table[next] = NULL;
        object_put(moved);
    }
}

void *sim_object_find(const void *handle, uint32_t kind) {
    if (!handle || !object_capacity) return NULL;
    size_t slot = object_slot(handle);
    while (object_table[slot] && object_table[slot] != handle) slot = (slot + 1) & (object_capacity - 1);
    sim_object *object = object_table[slot];
    return object && object->kind == kind ? object : NULL;
}

bool sim_object_is(const void *handle, uint32_t kind, uint64_t number) {
    const sim_object *object = sim_object_find(handle, kind);
    return object && object->number == number;
}

uint64_t sim_object_count(uint32_t kind) { return object_counts[kind]; }
