/* SPDX-License-Identifier: Apache-2.0
 *
 * The sorted list in chunks against a plain array that is searched from end to end. */
#include "memory/ranges.h"

#include <stdlib.h>

#include "harness/harness.h"

#define SLOTS 3000u
#define SLOT_BYTES 64u

typedef struct model {
    rondo__ranges ranges;
    rondo__allocation allocations[SLOTS]; /* slot i covers [(i + 1) * 64, ...) */
    bool live[SLOTS];
} model;

static void model_release(model *m) {
    rondo__ranges_deinit(&m->ranges);
    free(m);
}

static model *model_make(rondo_test *t) {
    model *m = calloc(1, sizeof *m);
    T_TRUE(t, m != NULL);
    return m;
}

static rondo__allocation *naive_below(model *m, uint64_t address) {
    for (size_t i = SLOTS; i > 0; i--) {
        if (m->live[i - 1] && m->allocations[i - 1].base <= address) return &m->allocations[i - 1];
    }
    return NULL;
}

static rondo__allocation *naive_above(model *m, uint64_t address) {
    for (size_t i = 0; i < SLOTS; i++) {
        if (m->live[i] && m->allocations[i].base >= address) return &m->allocations[i];
    }
    return NULL;
}

/* Every chunk has something in it, in order, and says where it starts. */
static void check_order(rondo_test *t, const model *m) {
    uint64_t last = 0, count = 0;
    for (size_t i = 0; i < m->ranges.parts.count; i++) {
        const rondo__ranges_part *part = RONDO__BUFFER_AT(&m->ranges.parts, rondo__ranges_part, i);
        T_TRUE(t, part->chunk->count > 0 && part->chunk->count <= RONDO__RANGES_CHUNK);
        T_EQ(t, part->first, part->chunk->bases[0]);
        for (uint32_t j = 0; j < part->chunk->count; j++, count++) {
            T_TRUE(t, part->chunk->bases[j] > last);
            T_EQ(t, part->chunk->allocations[j]->base, part->chunk->bases[j]);
            last = part->chunk->bases[j];
        }
    }
    T_EQ(t, count, m->ranges.count);
}

static void toggle(rondo_test *t, model *m, size_t slot) {
    if (m->live[slot]) {
        rondo__ranges_remove(&m->ranges, &m->allocations[slot]);
    } else {
        m->allocations[slot] =
            (rondo__allocation){(slot + 1) * SLOT_BYTES, 1 + rondo_test_random(t) % SLOT_BYTES, 0, 0};
        T_OK(t, rondo__ranges_insert(&m->ranges, &m->allocations[slot]));
    }
    m->live[slot] = !m->live[slot];
}

static void test_agrees_with_a_plain_search(rondo_test *t) {
    model *m = model_make(t);
    rondo__ranges_init(&m->ranges, rondo_test_allocator(t));
    T_DEFER(t, model_release, m);
    for (int step = 0; step < 30000; step++) {
        /* Fills, empties and fills again, so that chunks split and join. */
        size_t slot = rondo_test_random(t) % SLOTS;
        bool growing = (step / 6000) % 2 == 0;
        if (m->live[slot] != growing || rondo_test_random(t) % 8 == 0) toggle(t, m, slot);
        uint64_t address = rondo_test_random(t) % ((SLOTS + 3) * SLOT_BYTES);
        T_TRUE(t, rondo__ranges_at_or_below(&m->ranges, address) == naive_below(m, address));
        T_TRUE(t, rondo__ranges_at_or_above(&m->ranges, address) == naive_above(m, address));
        if (step % 1000 == 0) check_order(t, m);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        if (m->live[i]) toggle(t, m, i);
    }
    T_EQ(t, m->ranges.count, 0);
    T_EQ(t, m->ranges.parts.count, 0);
}

static void fill_in_order(rondo_test *t, bool ascending) {
    model *m = model_make(t);
    rondo__ranges_init(&m->ranges, rondo_test_allocator(t));
    T_DEFER(t, model_release, m);
    for (size_t i = 0; i < SLOTS; i++) toggle(t, m, ascending ? i : SLOTS - 1 - i);
    check_order(t, m);
    /* In order of address, chunks stay full; downwards they are at least half full. */
    T_TRUE(t, m->ranges.parts.count <= (ascending ? SLOTS / 255 + 1 : SLOTS / 127 + 1));
}

static void test_fills_upwards(rondo_test *t) { fill_in_order(t, true); }

static void test_fills_downwards(rondo_test *t) { fill_in_order(t, false); }

static void test_refuses_overlap(rondo_test *t) {
    rondo__ranges ranges;
    rondo__allocation a = {1000, 100, 1, 0}, b = {1099, 1, 2, 0}, c = {900, 101, 3, 0}, d = {1000, 1, 4, 0};
    rondo__allocation e = {900, 100, 5, 0}, f = {1100, 1, 6, 0};
    rondo__ranges_init(&ranges, rondo_test_allocator(t));
    T_DEFER(t, rondo__ranges_deinit, &ranges);
    T_OK(t, rondo__ranges_insert(&ranges, &a));
    T_FAILS(t, rondo__ranges_insert(&ranges, &b), ALREADY_EXISTS, "overlap");
    T_FAILS(t, rondo__ranges_insert(&ranges, &c), ALREADY_EXISTS, "overlap");
    T_FAILS(t, rondo__ranges_insert(&ranges, &d), ALREADY_EXISTS, "overlap");
    T_OK(t, rondo__ranges_insert(&ranges, &e));
    T_OK(t, rondo__ranges_insert(&ranges, &f));
    T_EQ(t, ranges.count, 3);
}

/* A refused insert, also one refused in the middle of a split, leaves the list as it was. */
static void test_out_of_memory_changes_nothing(rondo_test *t) {
    rondo__ranges ranges;
    static rondo__allocation allocations[600];
    rondo__ranges_init(&ranges, rondo_test_allocator(t));
    T_DEFER(t, rondo__ranges_deinit, &ranges);
    for (size_t i = 0; i < 600; i++) {
        size_t slot = (i * 7) % 600;
        allocations[slot] = (rondo__allocation){(slot + 1) * 16, 16, i, 0};
        rondo_status status = rondo__ranges_insert(&ranges, &allocations[slot]);
        bool kept = true;
        for (size_t j = 0; j < i && status; j++) {
            const rondo__allocation *a = &allocations[(j * 7) % 600];
            kept = kept && rondo__ranges_at_or_below(&ranges, a->base) == a;
        }
        if (!kept) rondo_status_release(status);
        T_TRUE(t, kept);
        T_OK(t, status);
    }
}

RONDO_TEST_MAIN(T_PLAIN(test_agrees_with_a_plain_search), T_PLAIN(test_fills_upwards), T_PLAIN(test_fills_downwards),
                T(test_refuses_overlap), T(test_out_of_memory_changes_nothing))
