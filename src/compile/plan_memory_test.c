/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory plan against a naive checker and a lower bound worked out step by step, on many random programs. */
#include "compile/plan_memory.h"

#include "harness/harness.h"

#define STEPS 40u
#define MOST 64u

static uint64_t aligned(uint64_t bytes) { return (bytes + 63u) / 64u * 64u; }

/* Every pair that shares a step lies apart; nothing lies beyond the total. */
static void check(rondo_test *t, const rondo__layout_interval *v, size_t count, uint64_t total, uint64_t bound) {
    uint64_t peak = 0, sum = 0;
    for (uint32_t s = 0; s < STEPS; s++) {
        uint64_t alive = 0;
        for (size_t i = 0; i < count; i++) {
            if (v[i].first <= s && s <= v[i].last) alive += aligned(v[i].bytes);
        }
        if (alive > peak) peak = alive;
    }
    T_EQ(t, bound, peak);
    T_TRUE(t, total >= bound);
    for (size_t i = 0; i < count; i++) {
        sum += aligned(v[i].bytes);
        T_EQ(t, v[i].offset % 64u, 0);
        T_TRUE(t, v[i].offset + aligned(v[i].bytes) <= total);
        for (size_t k = 0; k < i; k++) {
            bool together = v[i].first <= v[k].last && v[k].first <= v[i].last;
            bool apart = v[i].offset + v[i].bytes <= v[k].offset || v[k].offset + v[k].bytes <= v[i].offset;
            if (v[i].bytes && v[k].bytes) T_TRUE(t, !together || apart);
        }
    }
    T_TRUE(t, total <= sum);
}

static size_t make(rondo_test *t, rondo__layout_interval *v, uint32_t longest) {
    size_t count = (size_t)(rondo_test_random(t) % MOST);
    for (size_t i = 0; i < count; i++) {
        uint64_t r = rondo_test_random(t);
        uint32_t first = (uint32_t)(r % STEPS), life = (uint32_t)((r >> 8) % longest);
        uint32_t last = first + life < STEPS ? first + life : STEPS - 1;
        uint64_t bytes = (r >> 16) % 8 == 0 ? 0 : (r >> 24) % ((r >> 20) % 4 == 0 ? 100000u : 500u);
        v[i] = (rondo__layout_interval){bytes, first, last, 12345};
    }
    return count;
}

static void test_random(rondo_test *t) {
    rondo__layout_interval v[MOST];
    double waste = 0;
    uint32_t runs = 0;
    for (uint32_t round = 0; round < 3000; round++) {
        uint64_t total = 0, bound = 0;
        size_t count = make(t, v, round % 3 == 0 ? 3 : round % 3 == 1 ? 10 : STEPS);
        T_OK(t, rondo__plan_memory(rondo_test_allocator(t), v, count, round % 2, &total, &bound));
        check(t, v, count, total, bound);
        if (bound > 0) {
            waste += (double)total / (double)bound;
            runs++;
        }
    }
    /* Not a law, but what these two orders reach on such programs; worse means that something broke. */
    T_TRUE(t, waste / runs < 1.05);
}

static void test_chain(rondo_test *t) {
    rondo__layout_interval v[10];
    uint64_t total = 0, bound = 0;
    for (uint32_t i = 0; i < 10; i++) v[i] = (rondo__layout_interval){1000, i, i + 1, 0};
    T_OK(t, rondo__plan_memory(rondo_test_allocator(t), v, 10, false, &total, &bound));
    T_EQ(t, total, 2048);
    T_EQ(t, bound, 2048);
    check(t, v, 10, total, bound);
}

/* In time order a small one sits in the way of the large one; largest first finds the bound. */
static void test_orders_are_compared(rondo_test *t) {
    rondo__layout_interval v[] = {{64, 0, 1, 0}, {64, 0, 3, 0}, {128, 2, 4, 0}, {64, 4, 5, 0}};
    uint64_t total = 0, bound = 0;
    T_OK(t, rondo__plan_memory(rondo_test_allocator(t), v, 4, false, &total, &bound));
    T_EQ(t, bound, 192);
    T_EQ(t, total, 192);
}

static void test_many(rondo_test *t) {
    enum { COUNT = 20000 };
    static rondo__layout_interval v[COUNT];
    uint64_t total = 0, bound = 0;
    for (uint32_t i = 0; i < COUNT; i++) v[i] = (rondo__layout_interval){64 + i % 7 * 64, i, i + 2, 0};
    T_OK(t, rondo__plan_memory(rondo_test_allocator(t), v, COUNT, false, &total, &bound));
    T_TRUE(t, total >= bound && total <= 2 * bound);
}

static void test_overflow(rondo_test *t) {
    rondo__layout_interval v[] = {{UINT64_MAX - 100, 0, 1, 0}, {200, 1, 2, 0}};
    uint64_t total = 0, bound = 0;
    T_FAILS(t, rondo__plan_memory(rondo_test_allocator(t), v, 2, false, &total, &bound), OUT_OF_RANGE, "temporaries");
}

static void test_nothing(rondo_test *t) {
    uint64_t total = 1, bound = 1;
    T_OK(t, rondo__plan_memory(rondo_test_allocator(t), NULL, 0, false, &total, &bound));
    T_EQ(t, total, 0);
    T_EQ(t, bound, 0);
}

RONDO_TEST_MAIN(T_PLAIN(test_random), T(test_chain), T(test_orders_are_compared), T_PLAIN(test_many), T(test_overflow),
                T(test_nothing))
