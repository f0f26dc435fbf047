/* SPDX-License-Identifier: Apache-2.0
 *
 * Which segments a pool keeps when its manager names the layouts that it needs. The model knows addresses: what was given
 * out since a layout was last kept or brought back, and what was alive then. */
#include "memory/memory_testing.h"

#include "memory/checkpoint.h"
#include "memory/table.h"

#define LAYOUTS 6
#define MOST 256
#define SEGMENTS 64

typedef struct trim_list {
    uint64_t at[MOST];
    uint32_t count;
} trim_list;

typedef struct trim_segment {
    uint64_t base, size;
} trim_segment;

typedef struct trim_set {
    trim_segment of[SEGMENTS];
    uint32_t count;
} trim_set;

typedef struct trim_layout {
    rondo_memory_checkpoint *checkpoint;
    trim_list live;
    trim_set occupied, needed; /* segments with live blocks; those, and what was touched */
} trim_layout;

typedef struct trim_model {
    world w;
    rondo_stream *streams[2];
    rondo_pool_id pool;
    trim_list live;
    trim_set touched;
    trim_layout layouts[LAYOUTS];
    uint64_t trimmed; /* segments */
} trim_model;

static trim_model the_model;

static void trim_close(trim_model *m) {
    for (int i = 0; i < LAYOUTS; i++) rondo_memory_checkpoint_release(m->layouts[i].checkpoint);
}

static void trim_open(rondo_test *t, trim_model *m, const char *device) {
    memset(m, 0, sizeof *m);
    world_open(t, &m->w, device, NULL);
    T_DEFER(t, trim_close, m);
    for (int i = 0; i < 2; i++) m->streams[i] = world_stream(t, &m->w);
    m->pool = begin_thread(t, &m->w);
}

static void trim_add(trim_list *list, uint64_t address) {
    if (list->count < MOST) list->at[list->count++] = address;
}

static bool trim_has(const trim_list *list, uint64_t from, uint64_t size) {
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->at[i] - from < size) return true;
    }
    return false;
}

static bool trim_is_in(const trim_set *set, trim_segment wanted) {
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->of[i].base == wanted.base && set->of[i].size == wanted.size) return true;
    }
    return false;
}

static void trim_put(trim_set *set, trim_segment segment) {
    if (!trim_is_in(set, segment) && set->count < SEGMENTS) set->of[set->count++] = segment;
}

static trim_set trim_segments(trim_model *m) {
    rondo__cache *cache = &m->w.memory->cache;
    const rondo__allocation *range;
    trim_set set = {.count = 0};
    for (uint64_t at = 0; (range = rondo__ranges_at_or_above(&cache->segments, at)) != NULL; at = range->base + 1) {
        const rondo__segment *segment = (const rondo__segment *)(const void *)range;
        if (segment->pool->id.user == m->pool.user) trim_put(&set, (trim_segment){range->base, range->size});
    }
    return set;
}

static void trim_allocate(rondo_test *t, trim_model *m) {
    static const uint64_t sizes[] = {512, 4096, 300 * KIB, MIB, 3 * MIB, 12 * MIB};
    uint64_t size = sizes[rondo_test_random(t) % 6];
    if (m->live.count == MOST / 2 || m->touched.count >= SEGMENTS - 1) return;
    uint64_t address = address_of(take(t, m->streams[rondo_test_random(t) % 2], size));
    trim_set now = trim_segments(m);
    trim_add(&m->live, address);
    for (uint32_t i = 0; i < now.count; i++) {
        if (address - now.of[i].base < now.of[i].size) trim_put(&m->touched, now.of[i]);
    }
}

static void trim_free(rondo_test *t, trim_model *m) {
    if (!m->live.count) return;
    uint64_t *place = &m->live.at[rondo_test_random(t) % m->live.count];
    give(t, &m->w, (void *)(uintptr_t)*place);
    *place = m->live.at[--m->live.count];
}

static void trim_keep_layout(rondo_test *t, trim_model *m) {
    trim_layout *layout = &m->layouts[rondo_test_random(t) % LAYOUTS];
    trim_set now = trim_segments(m);
    rondo_memory_checkpoint_release(layout->checkpoint);
    layout->checkpoint = NULL;
    T_OK(t, rondo_memory_checkpoint_create(m->w.device, m->pool, &layout->checkpoint));
    layout->live = m->live;
    layout->occupied.count = layout->needed.count = 0;
    for (uint32_t i = 0; i < now.count; i++) {
        bool occupied = trim_has(&m->live, now.of[i].base, now.of[i].size);
        if (occupied) trim_put(&layout->occupied, now.of[i]);
        if (occupied || trim_is_in(&m->touched, now.of[i])) trim_put(&layout->needed, now.of[i]);
    }
    m->touched.count = 0;
}

/* A layout can come back as long as the segments with its live blocks are there. */
static void trim_restore(rondo_test *t, trim_model *m) {
    trim_layout *layout = &m->layouts[rondo_test_random(t) % LAYOUTS];
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    trim_set now = trim_segments(m);
    bool whole = true, equal = false;
    if (!layout->checkpoint) return;
    for (uint32_t i = 0; i < layout->occupied.count; i++) whole &= trim_is_in(&now, layout->occupied.of[i]);
    if (!whole) {
        T_FAILS(t, rondo_memory_checkpoint_restore(layout->checkpoint, &delta), CORRUPT, "is gone");
        return;
    }
    T_OK(t, rondo_memory_checkpoint_restore(layout->checkpoint, &delta));
    rondo_memory_delta_release(m->w.device, &delta);
    m->live = layout->live;
    m->touched.count = 0;
    const void *live[MOST];
    for (uint32_t i = 0; i < m->live.count; i++) live[i] = (const void *)(uintptr_t)m->live.at[i];
    T_OK(t, rondo_memory_pool_live(m->w.device, m->pool, live, m->live.count, &equal));
    T_TRUE(t, equal);
}

static void trim_some(rondo_test *t, trim_model *m) {
    const rondo_memory_checkpoint *kept[LAYOUTS];
    trim_set before = trim_segments(m), needed = {.count = 0};
    uint32_t given = 0;
    for (uint32_t s = 0; s < before.count; s++) {
        if (trim_has(&m->live, before.of[s].base, before.of[s].size)) trim_put(&needed, before.of[s]);
    }
    for (int i = 0; i < LAYOUTS; i++) {
        trim_layout *layout = &m->layouts[i];
        if (!layout->checkpoint || rondo_test_random(t) % 4 == 0) continue;
        kept[given++] = layout->checkpoint;
        for (uint32_t s = 0; s < before.count; s++) {
            if (trim_is_in(&layout->needed, before.of[s])) trim_put(&needed, before.of[s]);
        }
    }
    T_OK(t, rondo__memory_pool_trim(m->w.memory, m->pool, kept, given));
    trim_set after = trim_segments(m);
    for (uint32_t s = 0; s < before.count; s++)
        T_EQ(t, trim_is_in(&after, before.of[s]), trim_is_in(&needed, before.of[s]));
    T_EQ(t, after.count, needed.count);
    m->trimmed += before.count - after.count;
}

/* In order of address, each once. */
static void trim_walk(rondo_test *t, trim_model *m) {
    uint64_t at = 0, bytes = 0, from = 0;
    uint32_t count = 0;
    for (; rondo__memory_pool_next(m->w.memory, m->pool, from, &at, &bytes); from = at + 1) {
        uint64_t again = 0;
        T_TRUE(t, at >= from && bytes && trim_has(&m->live, at, 1));
        T_TRUE(t, rondo__memory_pool_next(m->w.memory, m->pool, at, &again, &bytes) && again == at);
        count++;
    }
    T_EQ(t, count, m->live.count);
}

static void trim_check(rondo_test *t, const char *device, int steps) {
    trim_model *m = &the_model;
    trim_open(t, m, device);
    for (int step = 0; step < steps; step++) {
        uint64_t what = rondo_test_random(t) % 32;
        if (what < 12) trim_allocate(t, m);
        else if (what < 24) trim_free(t, m);
        else if (what < 27) trim_keep_layout(t, m);
        else if (what < 29) trim_restore(t, m);
        else if (what < 31) trim_some(t, m);
        else trim_walk(t, m);
        T_OK(t, rondo__memory_check(m->w.memory));
    }
    T_TRUE(t, m->trimmed > 20);
}

static void test_agrees_with_the_model_on_cpu(rondo_test *t) { trim_check(t, "cpu", 6000); }

static void test_agrees_with_the_model_on_sim(rondo_test *t) { trim_check(t, "sim", 2000); }

/* A recording whose memory was all temporary, another one after it, and the first forgotten. */
static void test_a_recording_keeps_its_segments(rondo_test *t) {
    trim_model *m = &the_model;
    trim_open(t, m, "cpu");
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    rondo_memory_checkpoint **a = &m->layouts[0].checkpoint, **b = &m->layouts[1].checkpoint;
    give(t, &m->w, take(t, m->streams[0], 12 * MIB));
    T_OK(t, rondo_memory_checkpoint_create(m->w.device, m->pool, a));
    give(t, &m->w, take(t, m->streams[0], 40 * MIB));
    T_OK(t, rondo_memory_checkpoint_create(m->w.device, m->pool, b));
    const rondo_memory_checkpoint *both[] = {*a, *b};
    T_OK(t, rondo__memory_pool_trim(m->w.memory, m->pool, both, 2));
    T_EQ(t, figures_of(t, &m->w, m->pool).reserved_bytes, 52 * MIB);
    T_OK(t, rondo__memory_pool_trim(m->w.memory, m->pool, &both[1], 1));
    T_EQ(t, figures_of(t, &m->w, m->pool).reserved_bytes, 40 * MIB);
    T_OK(t, rondo_memory_checkpoint_restore(*b, &delta)); /* has the segment that is gone, wholly free */
    rondo_memory_delta_release(m->w.device, &delta);
    T_OK(t, rondo__memory_check(m->w.memory));
    T_OK(t, rondo__memory_pool_trim(m->w.memory, m->pool, NULL, 0));
    T_EQ(t, figures_of(t, &m->w, m->pool).segments, 0);
    T_OK(t, rondo__memory_check(m->w.memory));
}

static void test_what_stays_and_what_is_refused(rondo_test *t) {
    trim_model *m = &the_model;
    recorded r;
    uint64_t at = 0, bytes = 0;
    trim_open(t, m, "sim");
    T_FAILS(t, rondo__memory_pool_trim(m->w.memory, (rondo_pool_id){0, 0}, NULL, 0), INVALID_ARGUMENT, "private");
    T_FAILS(t, rondo__memory_pool_trim(m->w.memory, (rondo_pool_id){0, 999}, NULL, 0), NOT_FOUND, "{0, 999}");
    T_TRUE(t, !rondo__memory_pool_next(m->w.memory, (rondo_pool_id){0, 999}, 0, &at, &bytes));
    give(t, &m->w, take(t, m->streams[0], 700));
    record_begin(t, &r, m->streams[0], 7);
    rondo_status status = rondo__memory_pool_trim(m->w.memory, m->pool, NULL, 0);
    record_end(&r);
    T_OK(t, status);
    T_EQ(t, figures_of(t, &m->w, m->pool).segments, 1);
    char *alive = take(t, m->streams[0], 700);
    T_TRUE(t, rondo__memory_pool_next(m->w.memory, m->pool, 0, &at, &bytes));
    T_TRUE(t, at == address_of(alive) && bytes == 700);
    T_TRUE(t, !rondo__memory_pool_next(m->w.memory, m->pool, at + 1, &at, &bytes));
    T_OK(t, rondo__memory_pool_trim(m->w.memory, m->pool, NULL, 0));
    T_EQ(t, figures_of(t, &m->w, m->pool).segments, 1);
    give(t, &m->w, alive);
    T_OK(t, rondo__memory_pool_trim(m->w.memory, m->pool, NULL, 0));
    T_EQ(t, figures_of(t, &m->w, m->pool).segments, 0);
}

RONDO_TEST_MAIN(T(test_a_recording_keeps_its_segments), T(test_what_stays_and_what_is_refused),
                T_PLAIN(test_agrees_with_the_model_on_cpu), T_PLAIN(test_agrees_with_the_model_on_sim))
