/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges in a tree, against a list that is looked through from end to end. */
#include "backends/sim/sim.h"
#include "harness/harness.h"

enum { SPANS = 300, ROUNDS = 60000 };

static uint64_t next_random(uint64_t *random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random >> 33;
}

/* The lowest base of those that touch the range; UINT64_MAX: none does. */
static uint64_t plain_first(const rondo__sim_span *spans, const bool *in, uint64_t base, uint64_t end) {
    uint64_t lowest = UINT64_MAX;
    for (int i = 0; i < SPANS; i++) {
        if (in[i] && spans[i].base < end && base < spans[i].end && spans[i].base < lowest) lowest = spans[i].base;
    }
    return lowest;
}

/* Overlapping, equal, nested and apart; all come and go. */
static void test_against_a_list(rondo_test *t) {
    static rondo__sim_span spans[SPANS];
    static bool in[SPANS];
    rondo__sim_spans tree = {0};
    uint64_t random = 1, found = 0, none = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t i = next_random(&random) % SPANS, base = next_random(&random) % 5000u;
        uint64_t end = base + 1u + next_random(&random) % (round % 3 ? 20u : 400u);
        if (in[i]) {
            rondo__sim_span_remove(&tree, &spans[i]);
        } else {
            spans[i] = (rondo__sim_span){.base = base, .end = end};
            rondo__sim_span_add(&tree, &spans[i]);
        }
        in[i] = !in[i];
        base = next_random(&random) % 5200u;
        end = base + 1u + next_random(&random) % 8u;
        const rondo__sim_span *first = rondo__sim_span_first(&tree, base, end);
        uint64_t want = plain_first(spans, in, base, end);
        T_EQ(t, first ? first->base : UINT64_MAX, want);
        if (first) T_TRUE(t, first->base < end && base < first->end && in[first - spans]);
        found += first != NULL;
        none += first == NULL;
    }
    T_TRUE(t, found > ROUNDS / 10 && none > ROUNDS / 10);
    for (int i = 0; i < SPANS; i++) {
        if (in[i]) rondo__sim_span_remove(&tree, &spans[i]);
        in[i] = false;
    }
    T_TRUE(t, tree.root == NULL);
}

/* In rising, falling and scattered order: what adding, asking and removing costs grows with the logarithm. */
static void test_steps(rondo_test *t) {
    enum { MANY = 1 << 15 };
    static rondo__sim_span spans[MANY];
    for (int order = 0; order < 3; order++) {
        rondo__sim_spans tree = {0};
        for (uint64_t i = 0; i < MANY; i++) {
            uint64_t place = order == 0 ? i : order == 1 ? MANY - 1u - i : i * 7919u % MANY;
            spans[i] = (rondo__sim_span){.base = place * 8u, .end = place * 8u + 8u};
            rondo__sim_span_add(&tree, &spans[i]);
        }
        for (uint64_t i = 0; i < MANY; i++) {
            const rondo__sim_span *first = rondo__sim_span_first(&tree, spans[i].base + 3u, spans[i].base + 4u);
            T_TRUE(t, first == &spans[i]);
        }
        for (uint64_t i = 0; i < MANY; i++) rondo__sim_span_remove(&tree, &spans[i]);
        T_TRUE(t, tree.root == NULL);
        /* Each of three questions a range, 15 levels at best, some twice that as treaps go. */
        T_TRUE(t, tree.steps < (uint64_t)MANY * 3u * 15u * 3u);
    }
}

RONDO_TEST_MAIN(T_PLAIN(test_against_a_list), T_PLAIN(test_steps))
