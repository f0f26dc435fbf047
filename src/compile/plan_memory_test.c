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
        v[i] = (rondo__layout_interval){.bytes = bytes, .first = first, .last = last, .until = last, .offset = 12345};
    }
    return count;
}

static void test_random(rondo_test *t) {
    rondo__layout_interval v[MOST];
    double waste = 0;
    uint32_t runs = 0;
    for (uint32_t round = 0; round < 3000; round++) {
        rondo__layout_result r;
        size_t count = make(t, v, round % 3 == 0 ? 3 : round % 3 == 1 ? 10 : STEPS);
        T_OK(t, rondo__plan_memory(rondo_test_allocator(t), v, count, 1, round % 2, &r));
        check(t, v, count, r.total, r.bound);
        if (r.bound > 0) {
            waste += (double)r.total / (double)r.bound;
            runs++;
        }
    }
    /* Not a law, but what these two orders reach on such programs; worse means that something broke. */
    T_TRUE(t, waste / runs < 1.05);
}

/* ------------------------------------------------------------------------------------------------ several lanes */

#define LANES 4u

typedef struct lanes_case {
    uint32_t lane[STEPS];
    bool before[STEPS][STEPS];
    uint64_t users[MOST]; /* a bit a step */
    uint32_t ends[MOST][LANES], begins[MOST][LANES];
} lanes_case;

static void make_order(rondo_test *t, lanes_case *c) {
    memset(c->before, 0, sizeof c->before);
    for (uint32_t s = 0; s < STEPS; s++) {
        c->lane[s] = (uint32_t)(rondo_test_random(t) >> 33) % LANES;
        for (uint32_t b = 0; b < s; b++)
            c->before[b][s] = c->lane[b] == c->lane[s] || rondo_test_random(t) % (STEPS * 2) == 0;
    }
    for (uint32_t k = 0; k < STEPS; k++)
        for (uint32_t a = 0; a < STEPS; a++)
            for (uint32_t b = 0; b < STEPS; b++) c->before[a][b] |= c->before[a][k] && c->before[k][b];
}

/* Whether all that use the one come before all that use the other. */
static bool all_before(const lanes_case *c, uint64_t one, uint64_t other) {
    for (uint32_t a = 0; a < STEPS; a++)
        for (uint32_t b = 0; b < STEPS; b++)
            if ((one >> a & 1u) && (other >> b & 1u) && !c->before[a][b]) return false;
    return true;
}

static void make_interval(rondo_test *t, lanes_case *c, rondo__layout_interval *v, size_t i) {
    uint32_t first = (uint32_t)(rondo_test_random(t) % STEPS);
    c->users[i] = UINT64_C(1) << first;
    for (uint32_t s = first + 1; s < STEPS && s < first + 8; s++)
        if (rondo_test_random(t) % 3 == 0) c->users[i] |= UINT64_C(1) << s;
    v[i] = (rondo__layout_interval){.bytes = rondo_test_random(t) % 2000, .first = first, .ends = c->ends[i]};
    v[i].begins = c->begins[i];
    for (uint32_t l = 0; l < LANES; l++) {
        c->ends[i][l] = 0;
        c->begins[i][l] = STEPS;
        for (uint32_t s = 0; s < STEPS; s++) {
            uint32_t known = 0;
            if (!(c->users[i] >> s & 1u)) continue;
            if (c->lane[s] == l) c->ends[i][l] = s + 1;
            for (uint32_t b = 0; b < STEPS; b++)
                if (c->lane[b] == l && c->before[b][s]) known = b + 1;
            if (known < c->begins[i][l]) c->begins[i][l] = known;
            if (s > v[i].last) v[i].last = s;
        }
    }
    for (v[i].until = STEPS - 1; v[i].until > v[i].last; v[i].until--)
        if (!all_before(c, c->users[i], UINT64_C(1) << v[i].until)) break;
}

static void test_lanes(rondo_test *t) {
    static lanes_case c;
    rondo__layout_interval v[MOST];
    uint32_t shared = 0;
    for (uint32_t round = 0; round < 1000; round++) {
        rondo__layout_result r;
        size_t count = (size_t)(rondo_test_random(t) % MOST);
        make_order(t, &c);
        for (size_t i = 0; i < count; i++) make_interval(t, &c, v, i);
        T_OK(t, rondo__plan_memory(rondo_test_allocator(t), v, count, LANES, false, &r));
        check(t, v, count, r.total, r.bound);
        for (size_t i = 0; i < count; i++) {
            for (size_t k = 0; k < i; k++) {
                bool apart = v[i].offset + v[i].bytes <= v[k].offset || v[k].offset + v[k].bytes <= v[i].offset;
                if (apart || !v[i].bytes || !v[k].bytes) continue;
                T_TRUE(t, all_before(&c, c.users[i], c.users[k]) || all_before(&c, c.users[k], c.users[i]));
                shared++;
            }
        }
    }
    T_TRUE(t, shared > 1000);
}

static void test_chain(rondo_test *t) {
    rondo__layout_interval v[10];
    rondo__layout_result r;
    for (uint32_t i = 0; i < 10; i++) v[i] = (rondo__layout_interval){1000, i, i + 1, i + 1, NULL, NULL, 0};
    T_OK(t, rondo__plan_memory(rondo_test_allocator(t), v, 10, 1, false, &r));
    T_EQ(t, r.total, 2048);
    T_EQ(t, r.bound, 2048);
    check(t, v, 10, r.total, r.bound);
}

/* In time order a small one sits in the way of the large one; largest first finds the bound. */
static void test_orders_are_compared(rondo_test *t) {
    rondo__layout_interval v[] = {{64, 0, 1, 1, NULL, NULL, 0},
                                  {64, 0, 3, 3, NULL, NULL, 0},
                                  {128, 2, 4, 4, NULL, NULL, 0},
                                  {64, 4, 5, 5, NULL, NULL, 0}};
    rondo__layout_result r;
    T_OK(t, rondo__plan_memory(rondo_test_allocator(t), v, 4, 1, false, &r));
    T_EQ(t, r.bound, 192);
    T_EQ(t, r.total, 192);
    T_EQ(t, r.largest_first, 192);
    T_EQ(t, r.in_time, 256);
}

static void test_many(rondo_test *t) {
    enum { COUNT = 20000 };
    static rondo__layout_interval v[COUNT];
    rondo__layout_result r;
    for (uint32_t i = 0; i < COUNT; i++)
        v[i] = (rondo__layout_interval){64 + i % 7 * 64, i, i + 2, i + 2, NULL, NULL, 0};
    T_OK(t, rondo__plan_memory(rondo_test_allocator(t), v, COUNT, 1, false, &r));
    T_TRUE(t, r.total >= r.bound && r.total <= 2 * r.bound);
    T_EQ(t, r.largest_first, UINT64_MAX); /* too many to try */
}

static void test_overflow(rondo_test *t) {
    rondo__layout_interval v[] = {{UINT64_MAX - 100, 0, 1, 1, NULL, NULL, 0}, {200, 1, 2, 2, NULL, NULL, 0}};
    rondo__layout_result r;
    T_FAILS(t, rondo__plan_memory(rondo_test_allocator(t), v, 2, 1, false, &r), OUT_OF_RANGE, "temporaries");
}

static void test_nothing(rondo_test *t) {
    rondo__layout_result r;
    T_OK(t, rondo__plan_memory(rondo_test_allocator(t), NULL, 0, 1, false, &r));
    T_EQ(t, r.total, 0);
    T_EQ(t, r.bound, 0);
}

RONDO_TEST_MAIN(T_PLAIN(test_random), T_PLAIN(test_lanes), T(test_chain), T(test_orders_are_compared),
                T_PLAIN(test_many), T(test_overflow), T(test_nothing))
