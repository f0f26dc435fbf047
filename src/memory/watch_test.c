/* SPDX-License-Identifier: Apache-2.0
 *
 * Edges: one a pair, however often and in whatever order they are asked for. */
#include "memory/watch.h"

#include "harness/harness.h"

#define MANY 40u

typedef struct crowd {
    rondo__watch watch;
    rondo__allocation allocations[MANY];
    rondo__memory_watcher watchers[MANY];
    rondo__allocation anchor, elsewhere; /* of pools */
} crowd;

static crowd the_crowd;

static void crowd_close(crowd *c) { rondo__watch_deinit(&c->watch); }

static crowd *crowd_open(rondo_test *t) {
    crowd *c = &the_crowd;
    *c = (crowd){0};
    rondo__watch_init(&c->watch, rondo_test_allocator(t));
    for (uint32_t i = 0; i < MANY; i++) {
        c->allocations[i] = (rondo__allocation){(i + 1) * 64, 64, i + 1, NULL};
        rondo__memory_watcher_init(&c->watchers[i], i + 1);
    }
    T_DEFER(t, crowd_close, c);
    return c;
}

static size_t edges_of(const rondo__memory_watcher *watcher) {
    size_t count = 0;
    for (const rondo__memory_edge *edge = watcher->edges; edge; edge = edge->watcher_next) count++;
    return count;
}

static void test_one_edge_a_pair(rondo_test *t) {
    crowd *c = crowd_open(t);
    rondo__memory_edge *edge = NULL;
    for (int pass = 0; pass < 3; pass++) {
        for (uint32_t i = 0; i < MANY; i++) {
            for (uint32_t j = 0; j < MANY; j++) {
                /* Watchers take turns, as captures side by side do. */
                T_OK(t, rondo__watch_add(&c->watch, &c->allocations[i], &c->watchers[(j + i) % MANY], &edge));
            }
        }
        T_EQ(t, c->watch.count, MANY * MANY);
    }
    T_EQ(t, edges_of(&c->watchers[7]), MANY);
    rondo__watch_freed(&c->watch, &c->allocations[3], &c->elsewhere);
    T_EQ(t, c->watch.count, MANY * (MANY - 1));
    T_EQ(t, edges_of(&c->watchers[7]), MANY - 1);
    T_TRUE(t, c->allocations[3].edges == NULL);
    while (c->watchers[7].edges) rondo__watch_remove(&c->watch, c->watchers[7].edges);
    T_EQ(t, c->watch.count, (MANY - 1) * (MANY - 1));
    for (uint32_t j = 0; j < MANY; j++) T_EQ(t, atomic_load(&c->watchers[j].stale), 1);
    for (uint32_t i = 0; i < MANY; i++) {
        for (edge = c->allocations[i].edges; edge; edge = edge->allocation_next) {
            T_TRUE(t, edge->allocation == &c->allocations[i] && edge->watcher != &c->watchers[7]);
        }
    }
}

static void test_only_those_who_watch_are_told(rondo_test *t) {
    crowd *c = crowd_open(t);
    rondo__memory_edge *edge = NULL;
    for (uint32_t i = 0; i < MANY; i++) {
        for (uint32_t j = i % 3; j < MANY; j += 3) {
            T_OK(t, rondo__watch_add(&c->watch, &c->allocations[i], &c->watchers[j], &edge));
        }
    }
    rondo__watch_freed(&c->watch, &c->allocations[4], &c->elsewhere);
    for (uint32_t j = 0; j < MANY; j++) T_EQ(t, atomic_load(&c->watchers[j].stale), j % 3 == 1);
}

static void test_own_pools_and_holders(rondo_test *t) {
    crowd *c = crowd_open(t);
    rondo__memory_edge *edges[4];
    T_OK(t, rondo__watch_add(&c->watch, &c->anchor, &c->watchers[1], &edges[0])); /* the pool is theirs */
    T_OK(t, rondo__watch_add(&c->watch, &c->anchor, &c->watchers[3], &edges[0]));
    c->watchers[3].managed = true;
    T_TRUE(t, rondo__watch_find(&c->watch, &c->anchor, &c->watchers[3]) == edges[0]);
    T_TRUE(t, rondo__watch_find(&c->watch, &c->anchor, &c->watchers[0]) == NULL);
    for (uint32_t i = 0; i < 4; i++)
        T_OK(t, rondo__watch_add(&c->watch, &c->allocations[0], &c->watchers[i], &edges[i]));
    edges[2]->holds = true;
    rondo__watch_freed(&c->watch, &c->allocations[0], &c->anchor);
    T_EQ(t, atomic_load(&c->watchers[0].stale), RONDO__STALE_FREED);
    for (uint32_t i = 1; i < 4; i++) T_EQ(t, atomic_load(&c->watchers[i].stale), RONDO__STALE_NOT);
    T_TRUE(t, c->allocations[0].edges == edges[2] && c->watch.count == 3); /* who holds stays */
    for (uint32_t i = 1; i < 4; i++)
        T_OK(t, rondo__watch_add(&c->watch, &c->allocations[1], &c->watchers[i], &edges[i]));
    rondo__watch_gone(&c->watch, &c->allocations[1], &c->anchor, RONDO__STALE_RESTORED);
    T_EQ(t, atomic_load(&c->watchers[1].stale), RONDO__STALE_RESTORED);
    T_EQ(t, atomic_load(&c->watchers[2].stale), RONDO__STALE_FREED);
    T_EQ(t, atomic_load(&c->watchers[3].stale), RONDO__STALE_NOT); /* it answers for the order itself */
    T_OK(t, rondo__watch_add(&c->watch, &c->allocations[2], &c->watchers[1], &edges[1]));
    T_OK(t, rondo__watch_add(&c->watch, &c->allocations[2], &c->watchers[3], &edges[3]));
    rondo__watch_gone(&c->watch, &c->allocations[2], &c->anchor, RONDO__STALE_POOL_RELEASED);
    T_EQ(t, atomic_load(&c->watchers[1].stale), RONDO__STALE_POOL_RELEASED); /* the greatest reason stays */
    T_EQ(t, atomic_load(&c->watchers[3].stale), RONDO__STALE_POOL_RELEASED);
    /* What was freed before does not hide what a restore took away, nor the other way round. */
    T_OK(t, rondo__watch_add(&c->watch, &c->allocations[3], &c->watchers[4], &edges[0]));
    T_OK(t, rondo__watch_add(&c->watch, &c->anchor, &c->watchers[4], &edges[0]));
    rondo__watch_freed(&c->watch, &c->allocations[3], &c->elsewhere);
    T_EQ(t, atomic_load(&c->watchers[4].stale), RONDO__STALE_FREED);
    T_OK(t, rondo__watch_add(&c->watch, &c->allocations[4], &c->watchers[4], &edges[0]));
    rondo__watch_gone(&c->watch, &c->allocations[4], &c->anchor, RONDO__STALE_RESTORED);
    T_EQ(t, atomic_load(&c->watchers[4].stale), RONDO__STALE_RESTORED);
    T_OK(t, rondo__watch_add(&c->watch, &c->allocations[5], &c->watchers[4], &edges[0]));
    rondo__watch_freed(&c->watch, &c->allocations[5], &c->elsewhere);
    T_EQ(t, atomic_load(&c->watchers[4].stale), RONDO__STALE_RESTORED);
    /* The pool itself goes. */
    T_OK(t, rondo__watch_add(&c->watch, &c->anchor, &c->watchers[6], &edges[0]));
    rondo__watch_gone(&c->watch, &c->anchor, &c->anchor, RONDO__STALE_POOL_RELEASED);
    T_EQ(t, atomic_load(&c->watchers[6].stale), RONDO__STALE_POOL_RELEASED);
    T_EQ(t, atomic_load(&c->watchers[4].stale), RONDO__STALE_POOL_RELEASED);
    T_TRUE(t, c->anchor.edges == NULL);
}

RONDO_TEST_MAIN(T(test_one_edge_a_pair), T(test_only_those_who_watch_are_told), T(test_own_pools_and_holders))
