/* SPDX-License-Identifier: Apache-2.0
 *
 * Random operations against a naive model of the whole allocator: lists that are searched from end to end. It foretells
 * the address of every block that does not come from a new segment, the layout after every restore, and the figures. */
#include "memory/memory_testing.h"

/* One thread has nothing that a thread sanitizer could find, and takes minutes under it. */
#if defined(__SANITIZE_THREAD__)
#define SLOWER 4
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLOWER 4
#endif
#endif
#ifndef SLOWER
#define SLOWER 1
#endif

#define SEGMENTS 256u
#define BLOCKS 512u
#define STREAMS 3u
#define POOLS 4u /* 0 is the device's own */
#define LIVE 200u
#define LIVE_BY_ALLOCATING 90u /* a restore may bring as many again */

typedef struct model_block {
    uint64_t size, requested; /* requested 0: free */
} model_block;

typedef struct model_segment {
    uint64_t base, size, stream;
    uint32_t pool;
    bool large;
    uint32_t count;
    model_block blocks[BLOCKS];
} model_segment;

typedef struct model_live {
    uint64_t address;
    rondo_lease lease;
    bool leased;
} model_live;

typedef struct model {
    world w;
    rondo_stream *streams[STREAMS];
    rondo_pool_id ids[POOLS];
    bool exists[POOLS];
    uint32_t diverted; /* the pool that allocations go to */
    uint32_t count;
    model_segment segments[SEGMENTS];
    model_live live[LIVE];
    uint32_t lives;
    uint64_t freed_size; /* of the block that was freed last, and its stream */
    uint32_t freed_stream;
    rondo_memory_checkpoint *checkpoint;
    uint32_t checkpoint_pool, saved_count;
    model_segment saved[SEGMENTS];
} model;

static model the_model;

static void model_close(model *m) { rondo_memory_checkpoint_release(m->checkpoint); }

static uint64_t model_round(uint64_t size) { return (size + 511u) / 512u * 512u; }

static uint64_t model_segment_size(uint64_t rounded) {
    if (rounded <= MIB) return 2 * MIB;
    if (rounded < 10 * MIB) return 20 * MIB;
    return (rounded + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

static bool model_is_free(const model_segment *s) { return s->count == 1 && !s->blocks[0].requested; }

static uint64_t model_address(const model_segment *s, uint32_t index) {
    uint64_t at = s->base;
    for (uint32_t i = 0; i < index; i++) at += s->blocks[i].size;
    return at;
}

typedef struct model_place {
    uint32_t segment, block;
    uint64_t size, address;
} model_place;

/* The smallest that is large enough, the lowest among equals; false: there is none. `whole`: only a wholly free segment of
 * just that size. */
static bool model_find(const model *m, uint32_t pool, uint64_t stream, uint64_t rounded, uint64_t size, bool whole,
                       model_place *out) {
    bool found = false;
    for (uint32_t i = 0; i < m->count; i++) {
        const model_segment *s = &m->segments[i];
        if (s->pool != pool || s->stream != stream || s->large != (rounded > MIB)) continue;
        if (whole && (!model_is_free(s) || s->size != size)) continue;
        uint64_t address = s->base;
        for (uint32_t b = 0; b < s->count; address += s->blocks[b++].size) {
            if (s->blocks[b].requested || s->blocks[b].size < size) continue;
            if (found &&
                (s->blocks[b].size > out->size || (s->blocks[b].size == out->size && address > out->address))) {
                continue;
            }
            *out = (model_place){i, b, s->blocks[b].size, address};
            found = true;
        }
    }
    return found;
}

static void model_insert(rondo_test *t, model_segment *s, uint32_t index, model_block block) {
    T_TRUE(t, s->count < BLOCKS);
    memmove(&s->blocks[index + 1], &s->blocks[index], (s->count - index) * sizeof block);
    s->blocks[index] = block;
    s->count++;
}

static void model_give(rondo_test *t, model_segment *s, uint32_t index, uint64_t rounded, uint64_t size) {
    uint64_t rest = s->blocks[index].size - rounded;
    if (s->large ? rest > MIB : rest >= 512) {
        model_insert(t, s, index + 1, (model_block){rest, 0});
        s->blocks[index].size = rounded;
    }
    s->blocks[index].requested = size;
}

static void model_join(model_segment *s) {
    uint32_t out = 0;
    for (uint32_t i = 1; i < s->count; i++) {
        if (!s->blocks[i].requested && !s->blocks[out].requested) s->blocks[out].size += s->blocks[i].size;
        else s->blocks[++out] = s->blocks[i];
    }
    s->count = out + 1;
}

static void model_allocate_of(rondo_test *t, model *m, uint64_t size, uint32_t stream) {
    uint64_t rounded = model_round(size);
    if (m->lives >= LIVE_BY_ALLOCATING) return;
    model_place place;
    uint64_t address = address_of(take(t, m->streams[stream], size)), key = m->streams[stream]->id;
    if (model_find(m, m->diverted, key, rounded, rounded, false, &place)) {
        T_EQ(t, address, place.address);
    } else if (m->diverted && model_find(m, 0, key, rounded, model_segment_size(rounded), true, &place)) {
        T_EQ(t, address, place.address);
        m->segments[place.segment].pool = m->diverted;
    } else {
        T_TRUE(t, m->count < SEGMENTS);
        model_segment *s = &m->segments[m->count];
        *s = (model_segment){address, model_segment_size(rounded), key, m->diverted, rounded > MIB, 1, {{0, 0}}};
        s->blocks[0].size = s->size;
        place = (model_place){m->count++, 0, s->size, address};
    }
    model_give(t, &m->segments[place.segment], place.block, rounded, size);
    model_live *live = &m->live[m->lives++];
    *live = (model_live){.address = address, .leased = rondo_test_random(t) % 2 != 0};
    if (live->leased)
        T_OK(t, rondo_memory_lease(m->w.device, (void *)(uintptr_t)address, RONDO_LEASE_REPLAY, &live->lease));
}

static void model_allocate(rondo_test *t, model *m) {
    static const uint64_t most[] = {600, 600, 5000, 5000, 100 * KIB, MIB, 4 * MIB, 14 * MIB};
    uint64_t size = 1 + rondo_test_random(t) % most[rondo_test_random(t) % 8];
    uint32_t stream = (uint32_t)(rondo_test_random(t) % STREAMS);
    bool again = rondo_test_random(t) % 3 == 0; /* as the last one that was freed */
    model_allocate_of(t, m, again ? m->freed_size : size, again ? m->freed_stream : stream);
}

static model_block *model_at(model *m, uint64_t address, model_segment **out_segment) {
    for (uint32_t i = 0; i < m->count; i++) {
        model_segment *s = &m->segments[i];
        if (address < s->base || address - s->base >= s->size) continue;
        uint64_t at = s->base;
        for (uint32_t b = 0; b < s->count; at += s->blocks[b++].size) {
            if (at != address) continue;
            *out_segment = s;
            return &s->blocks[b];
        }
    }
    return NULL;
}

/* The segments of a released pool go to the device's own pool when they are wholly free. */
static void model_adopt(model *m) {
    for (uint32_t i = 0; i < m->count; i++) {
        model_segment *s = &m->segments[i];
        if (s->pool && s->pool < POOLS && !m->exists[s->pool]) s->pool = POOLS + s->pool;
        if (s->pool >= POOLS && model_is_free(s)) s->pool = 0;
    }
}

/* The lease's word moves with the last one: take it away first. */
static void model_forget(rondo_test *t, model *m, uint32_t index) {
    model_live *last = &m->live[--m->lives];
    if (last->leased && index != m->lives) rondo_memory_unlease(m->w.device, &last->lease);
    m->live[index] = *last;
    model_live *moved = &m->live[index];
    if (!moved->leased || index == m->lives) return;
    T_OK(t, rondo_memory_lease(m->w.device, (void *)(uintptr_t)moved->address, RONDO_LEASE_REPLAY, &moved->lease));
}

static void model_free_one(rondo_test *t, model *m, uint32_t index) {
    model_live *live = &m->live[index];
    model_segment *segment = NULL;
    model_block *block = model_at(m, live->address, &segment);
    T_TRUE(t, block && block->requested);
    give(t, &m->w, (void *)(uintptr_t)live->address);
    if (live->leased) T_TRUE(t, live->lease.block == 0 && live->lease.owner == RONDO_LEASE_OVER);
    m->freed_size = block->requested;
    for (uint32_t i = 0; i < STREAMS; i++) {
        if (m->streams[i]->id == segment->stream) m->freed_stream = i;
    }
    block->requested = 0;
    model_join(segment);
    model_adopt(m);
    live->leased = false;
    model_forget(t, m, index);
}

static void model_free(rondo_test *t, model *m) {
    if (m->lives) model_free_one(t, m, (uint32_t)(rondo_test_random(t) % m->lives));
}

/* One block comes and goes, with something else freed or allocated now and then before it goes. */
static void model_churn(rondo_test *t, model *m) {
    for (int i = 0; i < 6; i++) {
        uint32_t last = m->lives - 1u;
        if (!m->lives) return;
        if (i && rondo_test_random(t) % 4 == 0) {
            uint32_t other = (uint32_t)(rondo_test_random(t) % m->lives);
            uint64_t address = m->live[last].address;
            if (other != last && rondo_test_random(t) % 3) model_free_one(t, m, other);
            else model_allocate(t, m);
            for (last = 0; m->live[last].address != address;) last++;
        }
        model_free_one(t, m, last);
        model_allocate_of(t, m, m->freed_size, m->freed_stream);
    }
}

static void model_pools(rondo_test *t, model *m) {
    rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
    uint32_t pool = 1 + (uint32_t)(rondo_test_random(t) % (POOLS - 1));
    if (m->diverted) {
        T_OK(t, rondo_memory_pool_end(m->w.device, m->ids[m->diverted]));
        m->diverted = 0;
    } else if (m->exists[pool] && rondo_test_random(t) % 4 == 0) {
        T_OK(t, rondo_memory_pool_release(m->w.device, m->ids[pool]));
        m->exists[pool] = false;
        model_adopt(m);
        if (m->checkpoint && m->checkpoint_pool == pool) {
            rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
            T_FAILS(t, rondo_memory_checkpoint_restore(m->checkpoint, &delta), NOT_FOUND, "released");
            rondo_memory_checkpoint_release(m->checkpoint);
            m->checkpoint = NULL;
        }
        T_FAILS(t, rondo_memory_pool_begin(m->w.device, m->ids[pool], &filter), NOT_FOUND, "never used again");
    } else {
        if (!m->exists[pool]) m->ids[pool] = rondo_pool_handle(m->w.instance);
        T_OK(t, rondo_memory_pool_begin(m->w.device, m->ids[pool], &filter));
        if (m->exists[pool]) T_OK(t, rondo_memory_pool_release(m->w.device, m->ids[pool])); /* one use is enough */
        m->exists[pool] = true;
        m->diverted = pool;
    }
}

static void model_keep(rondo_test *t, model *m) {
    uint32_t pool = 1 + (uint32_t)(rondo_test_random(t) % (POOLS - 1));
    if (!m->exists[pool]) return;
    rondo_memory_checkpoint_release(m->checkpoint);
    m->checkpoint = NULL;
    T_OK(t, rondo_memory_checkpoint_create(m->w.device, m->ids[pool], &m->checkpoint));
    m->checkpoint_pool = pool;
    m->saved_count = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->segments[i].pool == pool) m->saved[m->saved_count++] = m->segments[i];
    }
}

static bool is_listed(void **pointers, uint64_t count, uint64_t address) {
    for (uint64_t i = 0; i < count; i++) {
        if (address_of(pointers[i]) == address) return true;
    }
    return false;
}

/* What the layout before had and the one after has not is freed; and the other way round. Returns how many. */
static uint64_t model_differences(rondo_test *t, const model_segment *a, const model_segment *b, void **pointers,
                                  uint64_t count) {
    uint64_t found = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        uint64_t address = model_address(a, i);
        bool same = false;
        for (uint32_t j = 0; j < b->count && a->blocks[i].requested; j++) {
            if (model_address(b, j) != address) continue;
            same = b->blocks[j].requested && b->blocks[j].size == a->blocks[i].size;
        }
        if (!a->blocks[i].requested) continue;
        T_EQ(t, is_listed(pointers, count, address), !same);
        found += !same;
    }
    return found;
}

static void model_restore_segment(rondo_test *t, model *m, model_segment *s, const rondo_memory_delta *delta,
                                  uint64_t *freed, uint64_t *created) {
    model_segment whole = {s->base, s->size, s->stream, s->pool, s->large, 1, {{s->size, 0}}};
    const model_segment *to = &whole;
    for (uint32_t i = 0; i < m->saved_count; i++) {
        if (m->saved[i].base == s->base) to = &m->saved[i];
    }
    *freed += model_differences(t, s, to, delta->freed, delta->freed_count);
    *created += model_differences(t, to, s, delta->created, delta->created_count);
    /* The sizes that were asked for stay those of a block that stays. */
    model_segment next = *to;
    for (uint32_t i = 0; i < next.count; i++) {
        for (uint32_t j = 0; j < s->count; j++) {
            if (model_address(s, j) == model_address(&next, i) && s->blocks[j].size == next.blocks[i].size &&
                s->blocks[j].requested && next.blocks[i].requested) {
                next.blocks[i].requested = s->blocks[j].requested;
            }
        }
    }
    *s = next;
}

static void model_restore(rondo_test *t, model *m) {
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    uint64_t freed = 0, created = 0;
    if (!m->checkpoint) return;
    T_OK(t, rondo_memory_checkpoint_restore(m->checkpoint, &delta));
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->segments[i].pool == m->checkpoint_pool) {
            model_restore_segment(t, m, &m->segments[i], &delta, &freed, &created);
        }
    }
    T_EQ(t, delta.freed_count, freed);
    T_EQ(t, delta.created_count, created);
    for (uint32_t i = m->lives; i-- > 0;) {
        if (!is_listed(delta.freed, delta.freed_count, m->live[i].address)) continue;
        if (m->live[i].leased) T_EQ(t, m->live[i].lease.block, 0);
        m->live[i].leased = false;
        model_forget(t, m, i);
    }
    for (uint64_t i = 0; i < delta.created_count; i++) {
        T_TRUE(t, m->lives < LIVE);
        m->live[m->lives++] = (model_live){.address = address_of(delta.created[i])};
    }
    rondo_memory_delta_release(m->w.device, &delta);
}

static void model_trim(rondo_test *t, model *m) {
    T_OK(t, rondo_memory_trim(m->w.device));
    for (uint32_t i = m->count; i-- > 0;) {
        if (!m->segments[i].pool && model_is_free(&m->segments[i])) m->segments[i] = m->segments[--m->count];
    }
}

static void model_check(rondo_test *t, model *m) {
    rondo_memory_statistics s = figures(t, &m->w), own[POOLS] = {{0}};
    uint64_t allocated = 0, reserved = 0, requested = 0, inactive = 0, live = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        const model_segment *each = &m->segments[i];
        reserved += each->size;
        if (each->pool < POOLS) own[each->pool].reserved_bytes += each->size;
        for (uint32_t b = 0; b < each->count; b++) {
            const model_block *block = &each->blocks[b];
            if (block->requested) allocated += block->size, live++;
            else if (each->count > 1) inactive += block->size;
            requested += block->requested;
            if (block->requested && each->pool < POOLS) own[each->pool].allocations++;
        }
    }
    T_EQ(t, s.allocated_bytes, allocated);
    T_EQ(t, s.requested_bytes, requested);
    T_EQ(t, s.reserved_bytes, reserved);
    T_EQ(t, s.inactive_bytes, inactive);
    T_EQ(t, s.allocations, live);
    T_EQ(t, live, m->lives);
    T_EQ(t, s.segments, m->count);
    T_EQ(t, s.pending_bytes, 0);
    for (uint32_t p = 1; p < POOLS; p++) {
        if (!m->exists[p]) continue;
        rondo_memory_statistics of = figures_of(t, &m->w, m->ids[p]);
        T_EQ(t, of.reserved_bytes, own[p].reserved_bytes);
        T_EQ(t, of.allocations, own[p].allocations);
    }
    T_OK(t, rondo__memory_check(m->w.memory));
}

static void check_model(rondo_test *t, const char *device, int steps) {
    model *m = &the_model;
    memset(m, 0, sizeof *m);
    world_open(t, &m->w, device, NULL);
    T_DEFER(t, model_close, m);
    for (uint32_t i = 1; i < STREAMS; i++) m->streams[i] = world_stream(t, &m->w);
    m->streams[0] = rondo_stream_default(m->w.device);
    m->freed_size = 1;
    for (int step = 0; step < steps; step++) {
        uint64_t what = rondo_test_random(t) % 64;
        if (what < 29) model_allocate(t, m);
        else if (what < 57) model_free(t, m);
        else if (what < 60) model_pools(t, m);
        else if (what < 61) model_keep(t, m);
        else if (what < 63) model_restore(t, m);
        else if (rondo_test_random(t) % 16 == 0) model_trim(t, m);
        else model_churn(t, m);
        /* Figures join what rests, so they are not always asked for. */
        if (rondo_test_random(t) % 2) model_check(t, m);
        else T_OK(t, rondo__memory_check(m->w.memory));
    }
}

static void test_agrees_with_the_model_on_cpu(rondo_test *t) { check_model(t, "cpu", 40000 / SLOWER); }

static void test_agrees_with_the_model_on_sim(rondo_test *t) { check_model(t, "sim", 10000 / SLOWER); }

RONDO_TEST_MAIN(T_PLAIN(test_agrees_with_the_model_on_cpu), T_PLAIN(test_agrees_with_the_model_on_sim))
