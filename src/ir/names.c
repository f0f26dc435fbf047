/* SPDX-License-Identifier: Apache-2.0
 *
 * Names to numbers by open addressing with linear probing; growth doubles and is checked. */
#include "ir/names.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"

#define IR_TABLE_FIRST_CAPACITY 16u

static uint64_t ir_table_fold(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint32_t ir_table_hash(const rondo__ir_table *table, const char *name, size_t length) {
    uint64_t hash = table->seed ^ (uint64_t)length * UINT64_C(0x9e3779b97f4a7c15);
    while (length >= 8) {
        uint64_t word;
        memcpy(&word, name, 8);
        hash = ir_table_fold(hash ^ word, UINT64_C(0xd6e8feb86659fd93) ^ table->seed);
        name += 8;
        length -= 8;
    }
    uint64_t rest = 0;
    memcpy(&rest, name, length);
    hash = ir_table_fold(hash ^ rest, UINT64_C(0xa0761d6478bd642f) ^ table->seed);
    return (uint32_t)(hash ^ (hash >> 32));
}

void rondo__ir_table_init(rondo__ir_table *table, const rondo_allocator *allocator, uint64_t seed) {
    memset(table, 0, sizeof *table);
    table->allocator = *allocator;
    table->seed = seed | 1u;
}

void rondo__ir_table_deinit(rondo__ir_table *table) {
    rondo__free(&table->allocator, table->slots, table->capacity * sizeof *table->slots);
    table->slots = NULL;
    table->capacity = 0;
    table->count = 0;
}

void rondo__ir_table_clear(rondo__ir_table *table) {
    if (table->slots) memset(table->slots, 0, table->capacity * sizeof *table->slots);
    table->count = 0;
}

/* The slot that holds the name, or the free one where it belongs. */
static rondo__ir_name_slot *ir_table_slot(const rondo__ir_table *table, const char *name, uint32_t hash) {
    size_t mask = table->capacity - 1u;
    size_t at = hash & mask;
    for (;;) {
        rondo__ir_name_slot *slot = &table->slots[at];
        if (!slot->name || (slot->hash == hash && strcmp(slot->name, name) == 0)) return slot;
        at = (at + 1u) & mask;
    }
}

rondo_status rondo__ir_table_reserve(rondo__ir_table *table) {
    if (table->count < table->capacity - table->capacity / 4u) return RONDO_OK;
    size_t capacity = IR_TABLE_FIRST_CAPACITY;
    if (table->capacity && !rondo__checked_mul_size(table->capacity, 2u, &capacity)) {
        return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "a graph holds too many names");
    }
    void *pointer;
    RONDO__TRY(rondo__allocate_array(&table->allocator, capacity, sizeof *table->slots, &pointer));
    rondo__ir_table grown = *table;
    grown.slots = pointer;
    grown.capacity = capacity;
    for (size_t i = 0; i < table->capacity; i++) {
        const rondo__ir_name_slot *old = &table->slots[i];
        if (!old->name) continue;
        size_t at = old->hash & (capacity - 1u);
        while (grown.slots[at].name) at = (at + 1u) & (capacity - 1u);
        grown.slots[at] = *old;
    }
    rondo__free(&table->allocator, table->slots, table->capacity * sizeof *table->slots);
    *table = grown;
    return RONDO_OK;
}

uint32_t rondo__ir_table_find(const rondo__ir_table *table, const char *name) {
    if (!table->count) return RONDO_IR_NONE;
    const rondo__ir_name_slot *slot = ir_table_slot(table, name, ir_table_hash(table, name, strlen(name)));
    return slot->name ? slot->item : RONDO_IR_NONE;
}

const char *rondo__ir_table_key(const rondo__ir_table *table, const char *name) {
    if (!table->count) return NULL;
    return ir_table_slot(table, name, ir_table_hash(table, name, strlen(name)))->name;
}

void rondo__ir_table_insert(rondo__ir_table *table, const char *name, uint32_t item) {
    uint32_t hash = ir_table_hash(table, name, strlen(name));
    rondo__ir_name_slot *slot = ir_table_slot(table, name, hash);
    if (!slot->name) table->count++;
    slot->name = name;
    slot->hash = hash;
    slot->item = item;
}

rondo_status rondo__ir_name_make(rondo_ir_graph *graph, const rondo__ir_table *table, const char *stem,
                                 const char **out_name) {
    rondo__ir_names *names = rondo__ir_names_of(graph);
    size_t length = strlen(stem);
    size_t capacity;
    if (!rondo__checked_add_size(length, 12u, &capacity)) {
        return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "a name is too long");
    }
    void *pointer;
    RONDO__TRY(rondo__arena_allocate(&graph->arena, capacity, &pointer));
    char *text = pointer;
    memcpy(text, stem, length);
    do {
        if (names->made == UINT32_MAX) return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "a graph holds too many names");
        (void)snprintf(text + length, capacity - length, "#%u", names->made++);
    } while (rondo__ir_table_find(table, text) != RONDO_IR_NONE);
    *out_name = text;
    return RONDO_OK;
}
