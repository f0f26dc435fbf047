/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes and waits of small random graphs against brute force: what they order is what the needs order, and with the lanes'
 * own order the very same; every set of waits is tried for one that is smaller. */
#include "compile/plan_streams.h"

#include "harness/harness.h"

#define STEPS 10u

typedef struct streams_case {
    rondo__streams streams;
    rondo__streams_step steps[STEPS];
    uint32_t needs[STEPS * STEPS], count;
    bool needed[STEPS][STEPS]; /* the closure of the needs */
    bool wanted[STEPS][STEPS]; /* and of the lanes' order */
} streams_case;

static uint32_t pick(rondo_test *t, uint32_t below) { return (uint32_t)(rondo_test_random(t) >> 33) % below; }

static void close_over(bool (*order)[STEPS], uint32_t count) {
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t a = 0; a < count; a++)
            for (uint32_t b = 0; b < count; b++) order[a][b] = order[a][b] || (order[a][k] && order[k][b]);
}

static void make(rondo_test *t, streams_case *c, uint32_t steps, uint32_t sides) {
    uint32_t needs = 0;
    memset(c->needed, 0, sizeof c->needed);
    c->count = 1 + pick(t, steps);
    for (uint32_t s = 0; s < c->count; s++) {
        c->steps[s] = (rondo__streams_step){.cost = 1000u * (1 + pick(t, 9)), .first_need = needs};
        for (uint32_t b = 0; b < s; b++) {
            if (pick(t, sides)) continue;
            c->needs[needs++] = b;
            if (pick(t, 4) == 0) c->needs[needs++] = b;
            c->needed[b][s] = true;
            if (needs + 2 * STEPS > STEPS * STEPS) break;
        }
        c->steps[s].need_count = needs - c->steps[s].first_need;
    }
    close_over(c->needed, c->count);
}

static uint32_t wait_of(const streams_case *c, uint32_t i) {
    return *RONDO__BUFFER_AT(&c->streams.waits, const uint32_t, i);
}

/* What lanes and those waits order of which `kept` has the bit. */
static void ordered(const streams_case *c, uint32_t kept, bool (*order)[STEPS]) {
    memset(order, 0, STEPS * sizeof *order);
    for (uint32_t s = 0; s < c->count; s++) {
        for (uint32_t b = 0; b < s; b++) order[b][s] = c->steps[b].lane == c->steps[s].lane;
        for (uint32_t w = 0; w < c->steps[s].wait_count; w++) {
            if (kept >> (c->steps[s].first_wait + w) & 1u) order[wait_of(c, c->steps[s].first_wait + w)][s] = true;
        }
    }
    close_over(order, c->count);
}

static bool covers(const streams_case *c, bool (*order)[STEPS], bool (*want)[STEPS]) {
    for (uint32_t a = 0; a < c->count; a++)
        for (uint32_t b = 0; b < c->count; b++)
            if (want[a][b] && !order[a][b]) return false;
    return true;
}

static void check(rondo_test *t, streams_case *c, uint32_t lanes_max) {
    bool order[STEPS][STEPS];
    uint32_t waits = (uint32_t)c->streams.waits.count;
    T_TRUE(t, waits < 32 && c->streams.lanes >= 1 && c->streams.lanes <= lanes_max);
    memcpy(c->wanted, c->needed, sizeof c->wanted);
    for (uint32_t s = 0; s < c->count; s++) {
        T_TRUE(t, c->steps[s].lane < c->streams.lanes);
        for (uint32_t b = 0; b < s; b++) c->wanted[b][s] = c->wanted[b][s] || c->steps[b].lane == c->steps[s].lane;
    }
    close_over(c->wanted, c->count);
    ordered(c, UINT32_MAX, order);
    for (uint32_t a = 0; a < c->count; a++) {
        bool awaited = false;
        for (uint32_t b = 0; b < c->count; b++) {
            T_EQ(t, order[a][b], c->wanted[a][b]);
            T_EQ(t, a != b && a < rondo__streams_clock(&c->streams, b)[c->steps[a].lane], order[a][b]);
            for (uint32_t w = 0; w < c->steps[b].wait_count; w++)
                awaited = awaited || wait_of(c, c->steps[b].first_wait + w) == a;
        }
        T_EQ(t, c->steps[a].awaited, awaited);
    }
    for (uint32_t w = 0; w < waits; w++) { /* each one is needed */
        ordered(c, ~(1u << w), order);
        T_TRUE(t, !covers(c, order, c->needed));
    }
}

static void random_graphs(rondo_test *t) {
    static streams_case c;
    rondo__streams_init(&c.streams, rondo_test_allocator(t));
    T_DEFER(t, rondo__streams_deinit, &c.streams);
    for (uint32_t round = 0; round < 20000; round++) {
        uint32_t lanes = 1 + pick(t, 5);
        make(t, &c, STEPS, 2 + pick(t, 4));
        T_OK(t, rondo__plan_streams(&c.streams, c.steps, c.count, c.needs, lanes, 500));
        check(t, &c, lanes);
    }
}

/* All sets of waits from earlier steps of other lanes, of steps that are ordered anyway: none that covers is smaller. */
static void least_waits(rondo_test *t, const streams_case *c) {
    uint32_t from[16], to[16], pairs = 0, least = UINT32_MAX;
    for (uint32_t b = 0; b < c->count; b++)
        for (uint32_t a = 0; a < b; a++)
            if (c->wanted[a][b] && c->steps[a].lane != c->steps[b].lane && pairs < 16) from[pairs] = a, to[pairs++] = b;
    for (uint32_t set = 0; set < 1u << pairs; set++) {
        bool order[STEPS][STEPS];
        uint32_t size = (uint32_t)__builtin_popcount(set);
        if (size >= least) continue;
        ordered(c, 0, order);
        for (uint32_t i = 0; i < pairs; i++)
            if (set >> i & 1u) order[from[i]][to[i]] = true;
        close_over(order, c->count);
        if (covers(c, order, (bool(*)[STEPS])(uintptr_t)c->needed)) least = size;
    }
    T_EQ(t, c->streams.waits.count, least);
}

static void every_set_of_waits(rondo_test *t) {
    static streams_case c;
    rondo__streams_init(&c.streams, rondo_test_allocator(t));
    T_DEFER(t, rondo__streams_deinit, &c.streams);
    for (uint32_t round = 0; round < 500; round++) {
        make(t, &c, 6, 3);
        T_OK(t, rondo__plan_streams(&c.streams, c.steps, c.count, c.needs, 1 + pick(t, 4), 500));
        check(t, &c, 4);
        least_waits(t, &c);
    }
}

static void put(streams_case *c, uint64_t cost, uint32_t count, const uint32_t *needs) {
    uint32_t first = c->count ? c->steps[c->count - 1].first_need + c->steps[c->count - 1].need_count : 0;
    c->steps[c->count++] = (rondo__streams_step){.cost = cost, .first_need = first, .need_count = count};
    for (uint32_t i = 0; i < count; i++) c->needs[first + i] = needs[i];
}

/* 0 -> {1 -> 2, 3 -> 4, 5} -> 6: three branches, of which one goes on in the lane of 0. */
static void branches(rondo_test *t) {
    static streams_case c;
    memset(&c, 0, sizeof c);
    rondo__streams_init(&c.streams, rondo_test_allocator(t));
    T_DEFER(t, rondo__streams_deinit, &c.streams);
    put(&c, 10, 0, NULL);
    put(&c, 10, 1, (const uint32_t[]){0});
    put(&c, 10, 1, (const uint32_t[]){1});
    put(&c, 10, 1, (const uint32_t[]){0});
    put(&c, 10, 1, (const uint32_t[]){3});
    put(&c, 10, 1, (const uint32_t[]){0});
    put(&c, 10, 4, (const uint32_t[]){5, 4, 2, 0});
    T_OK(t, rondo__plan_streams(&c.streams, c.steps, c.count, c.needs, 8, 1));
    const uint32_t lanes[] = {0, 0, 0, 1, 1, 2, 0}, waits[] = {0, 0, 0, 1, 0, 1, 2};
    for (uint32_t s = 0; s < 7; s++) {
        T_EQ(t, c.steps[s].lane, lanes[s]);
        T_EQ(t, c.steps[s].wait_count, waits[s]);
    }
    T_EQ(t, c.streams.lanes, 3);
    T_EQ(t, c.streams.waits.count, 4);
    T_EQ(t, c.streams.serial, 70);
    T_EQ(t, c.streams.parallel, 10 + 1 + 20 + 1 + 10 + 1); /* 3 waits for 0, 6 for 4, and the end is waited for */
    /* With two lanes the third branch goes where there is room first. */
    T_OK(t, rondo__plan_streams(&c.streams, c.steps, c.count, c.needs, 2, 1));
    T_EQ(t, c.streams.lanes, 2);
    T_OK(t, rondo__plan_streams(&c.streams, c.steps, c.count, c.needs, 1, 1));
    T_EQ(t, c.streams.waits.count, 0);
    T_EQ(t, c.streams.parallel, 70);
}

/* A row of steps is one lane, however many there may be; lanes that are idle are used again. */
static void rows(rondo_test *t) {
    static streams_case c;
    memset(&c, 0, sizeof c);
    rondo__streams_init(&c.streams, rondo_test_allocator(t));
    T_DEFER(t, rondo__streams_deinit, &c.streams);
    put(&c, 10, 0, NULL);
    for (uint32_t s = 0; s < 3; s++) put(&c, 10, 1, &s);
    T_OK(t, rondo__plan_streams(&c.streams, c.steps, 4, c.needs, 8, 1));
    T_EQ(t, c.streams.lanes, 1);
    memset(c.steps, 0, sizeof c.steps);
    c.count = 0;
    put(&c, 10, 0, NULL); /* 0 -> {1, 2} -> 3 -> {4, 5} -> 6 -> {7, 8} */
    put(&c, 10, 1, (const uint32_t[]){0});
    put(&c, 10, 1, (const uint32_t[]){0});
    put(&c, 10, 2, (const uint32_t[]){1, 2});
    put(&c, 10, 1, (const uint32_t[]){3});
    put(&c, 10, 1, (const uint32_t[]){3});
    put(&c, 10, 2, (const uint32_t[]){4, 5});
    put(&c, 10, 1, (const uint32_t[]){6});
    put(&c, 10, 1, (const uint32_t[]){6});
    T_OK(t, rondo__plan_streams(&c.streams, c.steps, c.count, c.needs, 8, 1));
    T_EQ(t, c.streams.lanes, 2);
    T_EQ(t, c.streams.waits.count, 5);
}

RONDO_TEST_MAIN(T_PLAIN(random_graphs), T_PLAIN(every_set_of_waits), T(branches), T(rows))
