/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks and the tree of free blocks against a plain array. */
#include "memory/marks.h"

#include "harness/harness.h"
#include "memory/tree.h"

typedef struct marked {
    rondo__marks marks;
    const rondo_allocator *allocator;
} marked;

static void marked_close(marked *m) { rondo__marks_deinit(&m->marks, m->allocator); }

static void check_marks(rondo_test *t, uint64_t count) {
    static bool in[300000];
    marked m = {.allocator = rondo_test_allocator(t)};
    memset(in, 0, sizeof in);
    T_OK(t, rondo__marks_init(&m.marks, m.allocator, count));
    T_DEFER(t, marked_close, &m);
    for (int step = 0; step < 3000; step++) {
        uint64_t at = rondo_test_random(t) % count;
        if (step % 3) rondo__marks_add(&m.marks, at);
        else rondo__marks_remove(&m.marks, at);
        in[at] = step % 3 != 0;
        uint64_t asked = rondo_test_random(t) % count, want = asked + 1;
        while (want > 0 && !in[want - 1]) want--;
        T_EQ(t, rondo__marks_at_or_below(&m.marks, asked), want ? want - 1 : UINT64_MAX);
    }
}

static void test_marks_of_one_word(rondo_test *t) { check_marks(t, 50); }

static void test_marks_of_two_levels(rondo_test *t) { check_marks(t, 4096); }

static void test_marks_of_four_levels(rondo_test *t) { check_marks(t, 299999); }

static void test_marks_have_bounds(rondo_test *t) {
    rondo__marks marks;
    T_FAILS(t, rondo__marks_init(&marks, rondo_test_allocator(t), 0), INVALID_ARGUMENT, "parts");
    T_FAILS(t, rondo__marks_init(&marks, rondo_test_allocator(t), (1u << 24) + 1u), OUT_OF_MEMORY, "parts");
}

#define NODES 400u

static rondo__block nodes[NODES];
static bool present[NODES];

static uint32_t naive_best(uint64_t stream, uint64_t size) {
    uint32_t best = NODES;
    for (uint32_t i = 0; i < NODES; i++) {
        if (!present[i] || nodes[i].stream != stream || nodes[i].size < size) continue;
        if (best == NODES || nodes[i].size < nodes[best].size ||
            (nodes[i].size == nodes[best].size && nodes[i].allocation.base < nodes[best].allocation.base)) {
            best = i;
        }
    }
    return best;
}

static void test_the_tree_finds_the_best_fit(rondo_test *t) {
    rondo__block *root = NULL;
    memset(nodes, 0, sizeof nodes);
    memset(present, 0, sizeof present);
    for (uint32_t i = 0; i < NODES; i++) nodes[i].allocation.base = (i * 131u % NODES + 1u) * 64u;
    for (int step = 0; step < 20000; step++) {
        uint32_t i = (uint32_t)(rondo_test_random(t) % NODES);
        if (present[i]) {
            rondo__tree_remove(&root, &nodes[i]);
        } else {
            nodes[i].stream = rondo_test_random(t) % 3;
            nodes[i].size = 1 + rondo_test_random(t) % 20;
            rondo__tree_insert(&root, &nodes[i], (uint32_t)rondo_test_random(t) % 1000u);
        }
        present[i] = !present[i];
        T_EQ(t, rondo__tree_has(root, &nodes[i]), present[i]);
        uint64_t stream = rondo_test_random(t) % 4, size = 1 + rondo_test_random(t) % 22;
        uint32_t want = naive_best(stream, size);
        T_TRUE(t, rondo__tree_best(root, stream, size) == (want == NODES ? NULL : &nodes[want]));
    }
}

/* A tree that was built at once is like one that grew. */
static void test_a_tree_that_was_built_at_once(rondo_test *t) {
    static rondo__block *sorted[NODES];
    memset(nodes, 0, sizeof nodes);
    for (uint32_t i = 0; i < NODES; i++) {
        nodes[i].stream = i / 200;
        nodes[i].size = 1 + i % 200 / 10;
        nodes[i].allocation.base = (i + 1u) * 64u;
        sorted[i] = &nodes[i];
        present[i] = true;
    }
    T_TRUE(t, rondo__tree_build(sorted, 0) == NULL);
    for (size_t count = 1; count <= NODES; count = count * 2 + 1) {
        const rondo__block *root = rondo__tree_build(sorted, count);
        for (size_t i = 0; i < NODES; i++) T_EQ(t, rondo__tree_has(root, &nodes[i]), i < count);
    }
    rondo__block *root = rondo__tree_build(sorted, NODES);
    for (int step = 0; step < 20000; step++) {
        uint32_t i = (uint32_t)(rondo_test_random(t) % NODES);
        if (present[i]) rondo__tree_remove(&root, &nodes[i]);
        else rondo__tree_insert(&root, &nodes[i], (uint32_t)rondo_test_random(t));
        present[i] = !present[i];
        uint64_t stream = rondo_test_random(t) % 3, size = 1 + rondo_test_random(t) % 22;
        uint32_t want = naive_best(stream, size);
        T_TRUE(t, rondo__tree_best(root, stream, size) == (want == NODES ? NULL : &nodes[want]));
    }
}

RONDO_TEST_MAIN(T(test_marks_of_one_word), T(test_marks_of_two_levels), T(test_marks_of_four_levels),
                T(test_marks_have_bounds), T(test_the_tree_finds_the_best_fit), T(test_a_tree_that_was_built_at_once))
