/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes, segments, cutting and joining, the settings, and what happens when the device has no more. */
#include "memory/memory_testing.h"

static void test_sizes_and_segments(rondo_test *t) {
    static const struct {
        uint64_t size, rounded, segment;
    } table[] = {{1, 512, 2 * MIB},
                 {512, 512, 2 * MIB},
                 {513, 1024, 2 * MIB},
                 {MIB, MIB, 2 * MIB},
                 {MIB + 1, MIB + 512, 20 * MIB},
                 {10 * MIB - 512, 10 * MIB - 512, 20 * MIB},
                 {10 * MIB, 10 * MIB, 10 * MIB},
                 {10 * MIB + 1, 10 * MIB + 512, 12 * MIB},
                 {37 * MIB, 37 * MIB, 38 * MIB}};
    static world worlds[sizeof table / sizeof table[0]];
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        world_open(t, &worlds[i], "cpu", NULL);
        world w = worlds[i];
        char *a = take(t, rondo_stream_default(w.device), table[i].size);
        rondo_memory_statistics s = figures(t, &w);
        T_EQ(t, s.requested_bytes, table[i].size);
        T_EQ(t, s.reserved_bytes, table[i].segment);
        /* A remainder of a mebibyte or less stays with a large block. */
        uint64_t rest = table[i].segment - table[i].rounded;
        bool cut = table[i].size <= MIB || rest > MIB;
        T_EQ(t, s.allocated_bytes, cut ? table[i].rounded : table[i].segment);
        T_EQ(t, s.inactive_bytes, cut ? rest : 0);
        give(t, &w, a);
        s = figures(t, &w);
        T_EQ(t, s.allocated_bytes, 0);
        T_EQ(t, s.allocated_peak, cut ? table[i].rounded : table[i].segment);
        T_EQ(t, s.reserved_bytes, table[i].segment);
        T_EQ(t, s.inactive_bytes, 0);
        T_OK(t, rondo_memory_trim(w.device));
        T_EQ(t, figures(t, &w).reserved_bytes, 0);
        T_EQ(t, figures(t, &w).segment_frees, 1);
    }
}

static uint64_t device_free(rondo_test *t, world *w) {
    uint64_t free_bytes = 0, total = 0;
    T_OK(t, rondo_device_memory_info(w->device, &free_bytes, &total));
    return free_bytes;
}

static void test_reuse_is_by_stream(rondo_test *t) {
    world w;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = world_stream(t, &w), *other = world_stream(t, &w);
    char *a = take(t, s, 1000);
    give(t, &w, a);
    char *b = take(t, other, 1000);
    T_TRUE(t, a != b);
    char *c = take(t, s, 800);
    if (!rondo_test_failing(t)) T_TRUE(t, a == c);
    give(t, &w, b);
    give(t, &w, c);
    T_OK(t, rondo__memory_check(w.memory));
}

static void test_the_best_fit_wins(rondo_test *t) {
    world w;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = rondo_stream_default(w.device);
    char *blocks[7];
    static const uint64_t sizes[] = {4096, 512, 2048, 512, 2048, 512, 8192};
    for (int i = 0; i < 7; i++) blocks[i] = take(t, s, sizes[i]);
    if (rondo_test_failing(t)) {
        for (int i = 0; i < 7; i++) give(t, &w, blocks[i]);
        return;
    }
    for (int i = 0; i < 7; i += 2) give(t, &w, blocks[i]);
    char *a = take(t, s, 2000), *b = take(t, s, 1500), *c = take(t, s, 2048);
    T_TRUE(t, a == blocks[2] && b == blocks[4] && c == blocks[0]); /* equal ones by address, then the next larger */
    give(t, &w, a);
    give(t, &w, b);
    give(t, &w, c);
    for (int i = 1; i < 7; i += 2) give(t, &w, blocks[i]);
    T_EQ(t, figures(t, &w).inactive_bytes, 0);
    T_OK(t, rondo__memory_check(w.memory));
}

static void test_large_blocks_may_be_kept_whole(rondo_test *t) {
    world w;
    rondo_memory_settings settings = RONDO_MEMORY_SETTINGS_INIT;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = rondo_stream_default(w.device);
    settings.max_split_bytes = 24 * MIB;
    T_OK(t, rondo_memory_configure(w.device, &settings));
    char *big = take(t, s, 40 * MIB);
    give(t, &w, big);
    char *small = take(t, s, 2 * MIB); /* not out of the big one */
    T_TRUE(t, small < big || small >= big + 40 * MIB);
    char *near = take(t, s, 30 * MIB); /* wastes 10 of it, which is allowed */
    T_TRUE(t, near == big);
    T_EQ(t, figures(t, &w).allocated_bytes, 42 * MIB);
    give(t, &w, near);
    settings.max_waste_bytes = 4 * MIB;
    T_OK(t, rondo_memory_configure(w.device, &settings));
    char *far = take(t, s, 30 * MIB);
    T_TRUE(t, far != big);
    give(t, &w, far);
    give(t, &w, small);
}

/* Also on a block that was freed last, and would be given again at once: kept whole is what it would be joined to. */
static void test_settings_act_at_once(rondo_test *t) {
    world w;
    rondo_memory_settings settings = RONDO_MEMORY_SETTINGS_INIT;
    world_open(t, &w, "cpu", NULL);
    rondo_stream *s = rondo_stream_default(w.device);
    for (int i = 0; i < 3; i++) give(t, &w, take(t, s, 4 * MIB));
    T_EQ(t, figures(t, &w).reserved_bytes, 20 * MIB);
    for (int i = 0; i < 3; i++) give(t, &w, take(t, s, 4 * MIB));
    settings.max_split_bytes = 20 * MIB;
    T_OK(t, rondo_memory_configure(w.device, &settings));
    char *other = take(t, s, 4 * MIB);
    T_EQ(t, figures(t, &w).reserved_bytes, 40 * MIB);
    give(t, &w, other);
}

static void test_sizes_in_steps_of_powers(rondo_test *t) {
    static const uint64_t table[][2] = {{512, 512},   {1500, 1536}, {2048, 2048},     {2049, 2560},
                                        {5000, 5120}, {5121, 6144}, {100000, 114688}, {MIB, MIB}};
    world w;
    rondo_memory_settings settings = RONDO_MEMORY_SETTINGS_INIT;
    world_open(t, &w, "cpu", NULL);
    settings.roundup_divisions = 4;
    T_OK(t, rondo_memory_configure(w.device, &settings));
    for (size_t i = 0; i < sizeof table / sizeof table[0] && !rondo_test_failing(t); i++) {
        char *a = take(t, rondo_stream_default(w.device), table[i][0]);
        T_EQ(t, figures(t, &w).allocated_bytes, table[i][1]);
        give(t, &w, a);
    }
}

static void test_settings_are_checked(rondo_test *t) {
    world w;
    rondo_memory_settings s = RONDO_MEMORY_SETTINGS_INIT;
    world_open(t, &w, "cpu", NULL);
    T_FAILS(t, rondo_memory_configure(w.device, NULL), INVALID_ARGUMENT, NULL);
    s.expandable_segments = 1;
    T_FAILS(t, rondo_memory_configure(w.device, &s), UNSUPPORTED, "expandable_segments");
    s = (rondo_memory_settings)RONDO_MEMORY_SETTINGS_INIT;
    s.max_split_bytes = MIB;
    T_FAILS(t, rondo_memory_configure(w.device, &s), INVALID_ARGUMENT, "max_split_bytes");
    s.max_split_bytes = 0;
    s.roundup_divisions = 3;
    T_FAILS(t, rondo_memory_configure(w.device, &s), INVALID_ARGUMENT, "roundup_divisions");
    s.roundup_divisions = 0;
    s.collect_above = 1.0;
    T_FAILS(t, rondo_memory_configure(w.device, &s), INVALID_ARGUMENT, "collect_above");
    T_FAILS(t, rondo_memory_set_fraction(w.device, 0.0), INVALID_ARGUMENT, "fraction");
    T_FAILS(t, rondo_memory_set_fraction(w.device, 1.5), INVALID_ARGUMENT, "fraction");
    T_FAILS(t, rondo_memory_set_fraction(NULL, 0.5), INVALID_ARGUMENT, NULL);
    rondo_memory_statistics figures = {0};
    T_FAILS(t, rondo_memory_get_statistics(w.device, (rondo_pool_id){0, 0}, &figures), INVALID_ARGUMENT, "struct_size");
    figures.struct_size = sizeof figures;
    T_FAILS(t, rondo_memory_get_statistics(w.device, (rondo_pool_id){0, 99}, &figures), NOT_FOUND, "{0, 99}");
    T_FAILS(t, rondo_memory_allocate_on(NULL, 1, (void *[1]){NULL}), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_memory_allocate_on(rondo_stream_default(w.device), 0, (void *[1]){NULL}), INVALID_ARGUMENT,
            "above 0");
    T_FAILS(t, rondo_memory_trim(NULL), INVALID_ARGUMENT, NULL);
}

/* A struct of an older caller is shorter. */
static void test_older_callers_are_served(rondo_test *t) {
    world w;
    rondo_memory_statistics s;
    world_open(t, &w, "cpu", NULL);
    memset(&s, 0x5a, sizeof s);
    s.struct_size = offsetof(rondo_memory_statistics, reserved_bytes);
    T_OK(t, rondo_memory_get_statistics(w.device, (rondo_pool_id){0, 0}, &s));
    T_EQ(t, s.allocations, 0);
    T_EQ(t, s.reserved_bytes, 0x5a5a5a5a5a5a5a5a);
}

static void test_a_part_of_the_device_is_the_limit(rondo_test *t) {
    world w;
    void *b = NULL;
    world_open(t, &w, "sim", "memory=104857600");
    rondo_stream *s = world_stream(t, &w);
    T_OK(t, rondo_memory_set_fraction(w.device, 0.3));
    char *a = take(t, s, 18 * MIB);
    T_FAILS(t, rondo_memory_allocate_on(s, 13 * MIB, &b), OUT_OF_MEMORY,
            rondo_test_failing(t) ? NULL : "pass the limit of 31457280 that was set");
    T_OK(t, rondo_memory_set_fraction(w.device, 1.0));
    b = take(t, s, 13 * MIB);
    give(t, &w, a);
    give(t, &w, b);
}

/* Near the end of memory a segment is just what was asked for, and goes back with its block. */
static void test_the_last_bytes_can_be_had(rondo_test *t) {
    world w;
    world_open(t, &w, "sim", "memory=3145728"); /* 3 MiB */
    rondo_stream *s = world_stream(t, &w);
    char *a = take(t, s, 1000);
    T_EQ(t, device_free(t, &w), rondo_test_failing(t) ? device_free(t, &w) : MIB);
    char *b = take(t, s, MIB - 8);
    give(t, &w, b);
    if (!rondo_test_failing(t)) T_EQ(t, figures(t, &w).reserved_bytes, 2 * MIB);
    give(t, &w, a);
    T_OK(t, rondo__memory_check(w.memory));
    T_OK(t, rondo_memory_trim(w.device));
    T_EQ(t, device_free(t, &w), 3 * MIB);
}

/* What other streams had cached goes back when there is no more. */
static void test_cached_memory_makes_room(rondo_test *t) {
    world w;
    world_open(t, &w, "sim", "memory=104857600"); /* 100 MiB */
    rondo_stream *a = world_stream(t, &w), *b = world_stream(t, &w);
    char *x = take(t, a, 60 * MIB);
    T_OK(t, rondo_stream_fill(a, x, 1, 100));
    give(t, &w, x); /* the fill has not run: the segment may go back only when it has */
    char *y = take(t, b, 60 * MIB);
    T_EQ(t, figures(t, &w).reserved_bytes, 60 * MIB);
    T_EQ(t, figures(t, &w).allocation_retries, 1);
    T_OK(t, rondo_stream_synchronize(a));
    give(t, &w, y);
    /* Not while the stream captures. */
    recorded r;
    record_begin(t, &r, b, 7);
    void *z = NULL;
    rondo_status status = rondo_memory_allocate_on(a, 60 * MIB, &z);
    record_end(&r);
    T_FAILS(t, status, OUT_OF_MEMORY, NULL);
    z = take(t, a, 60 * MIB);
    give(t, &w, z);
}

static void test_old_segments_are_collected(rondo_test *t) {
    world w;
    rondo_memory_settings settings = RONDO_MEMORY_SETTINGS_INIT;
    world_open(t, &w, "sim", "memory=209715200"); /* 200 MiB */
    rondo_stream *s = world_stream(t, &w);
    settings.collect_above = 0.5;
    T_OK(t, rondo_memory_configure(w.device, &settings));
    T_OK(t, rondo_memory_set_fraction(w.device, 1.0));
    give(t, &w, take(t, s, 1000));
    char *old[] = {take(t, s, 30 * MIB), take(t, s, 30 * MIB)}, *fresh = take(t, s, 42 * MIB);
    give(t, &w, old[0]);
    give(t, &w, old[1]);
    for (int i = 0; i < 20; i++) give(t, &w, take(t, s, 1000)); /* time passes */
    give(t, &w, fresh);
    T_EQ(t, figures(t, &w).reserved_bytes, 104 * MIB);
    char *more = take(t, s, 50 * MIB);
    T_EQ(t, figures(t, &w).segment_frees, 1); /* one old one was enough */
    T_EQ(t, figures(t, &w).reserved_bytes, 124 * MIB);
    T_TRUE(t, take(t, s, 42 * MIB) == fresh);
    give(t, &w, fresh);
    give(t, &w, more);
}

typedef struct late {
    world *w;
    void *block;
    rondo_status status;
} late;

static int32_t host_frees(void *user) {
    late *l = user;
    l->status = rondo_memory_free(l->w->device, l->block);
    return 0;
}

/* What is freed while an allocation waits for the device may have work in flight again: it is not given back yet. */
static void test_what_is_freed_meanwhile_stays(rondo_test *t) {
    static late l;
    world w;
    void *z = NULL;
    world_open(t, &w, "sim", "memory=104857600"); /* 100 MiB */
    rondo_stream *a = world_stream(t, &w), *b = world_stream(t, &w);
    give(t, &w, take(t, a, 60 * MIB));
    char *x = take(t, a, 30 * MIB), *y = take(t, a, 30 * MIB); /* both in one segment */
    T_TRUE(t, y == x + 30 * MIB);
    give(t, &w, x);
    l = (late){&w, y, RONDO_OK};
    T_OK(t, rondo_stream_host_call(b, host_frees, &l));
    T_FAILS(t, rondo_memory_allocate_on(b, 60 * MIB, &z), OUT_OF_MEMORY, NULL);
    T_OK(t, l.status);
    z = take(t, b, 60 * MIB);
    give(t, &w, z);
}

/* Of a request's own stream, one large segment that it may not take goes back instead of all. */
static void test_a_block_that_is_too_large_makes_room(rondo_test *t) {
    world w;
    rondo_memory_settings settings = RONDO_MEMORY_SETTINGS_INIT;
    world_open(t, &w, "sim", "memory=188743680"); /* 180 MiB */
    rondo_stream *s = world_stream(t, &w), *other = world_stream(t, &w);
    settings.max_split_bytes = 24 * MIB;
    T_OK(t, rondo_memory_configure(w.device, &settings));
    char *cached = take(t, other, 40 * MIB), *large = take(t, s, 90 * MIB);
    give(t, &w, cached);
    give(t, &w, large);
    char *a = take(t, s, 60 * MIB);
    T_EQ(t, figures(t, &w).reserved_bytes, 100 * MIB); /* what the other stream has cached is there still */
    give(t, &w, a);
}

/* More than the lists of any segment could describe is a matter of bytes like any other, and is counted as one. */
static void test_what_no_segment_could_hold_is_out_of_memory(rondo_test *t) {
    world w;
    void *b = NULL;
    world_open(t, &w, "sim", NULL);
    rondo_stream *s = world_stream(t, &w);
    T_FAILS(t, rondo_memory_allocate_on(s, (uint64_t)1 << 52, &b), OUT_OF_MEMORY, "no memory for 4503599627370496 bytes");
    T_FAILS(t, rondo_memory_allocate_on(s, (uint64_t)1 << 45, &b), OUT_OF_MEMORY, "no memory for 35184372088832 bytes");
    if (!rondo_test_failing(t)) T_EQ(t, figures(t, &w).out_of_memory, 2);
    char *a = take(t, s, 3 * MIB);
    give(t, &w, a);
}

static void test_figures_tell_what_happened(rondo_test *t) {
    world w;
    void *b = NULL;
    world_open(t, &w, "sim", "memory=20971520");
    rondo_stream *s = world_stream(t, &w);
    char *a = take(t, s, 12 * MIB);
    T_FAILS(t, rondo_memory_allocate_on(s, 12 * MIB, &b), OUT_OF_MEMORY, NULL);
    rondo_memory_statistics f = figures(t, &w);
    if (!rondo_test_failing(t)) {
        T_EQ(t, f.out_of_memory, 1);
        T_EQ(t, f.segment_allocations, 1);
        T_EQ(t, f.allocated_peak, 12 * MIB);
        T_EQ(t, f.reserved_peak, 12 * MIB);
    }
    give(t, &w, a);
    T_EQ(t, figures(t, &w).allocated_bytes, 0);
}

/* Figures of two allocations, one freed, and of what comes after the peaks have begun again. */
static void test_peaks_begin_again(rondo_test *t) {
    world w;
    rondo_pool_id unknown = {0, 77};
    world_open(t, &w, "sim", NULL);
    rondo_stream *s = world_stream(t, &w);
    char *a = take(t, s, 1000), *b = take(t, s, 4 * MIB);
    if (rondo_test_failing(t)) return;
    give(t, &w, b);
    rondo_memory_statistics f = figures(t, &w);
    T_EQ(t, f.allocations_peak, 2);
    T_EQ(t, f.requested_peak, 1000 + 4 * MIB);
    T_EQ(t, f.segments_peak, 2);
    T_EQ(t, f.allocations_sum, 2);
    T_EQ(t, f.allocated_sum, 1024 + 4 * MIB);
    T_EQ(t, f.requested_sum, 1000 + 4 * MIB);
    T_EQ(t, f.reserved_sum, f.reserved_bytes);
    T_OK(t, rondo_memory_reset_peaks(w.device, (rondo_pool_id){0, 0}));
    f = figures(t, &w);
    T_EQ(t, f.allocations_peak, 1);
    T_EQ(t, f.allocated_peak, 1024);
    T_EQ(t, f.requested_peak, 1000);
    T_EQ(t, f.reserved_peak, f.reserved_bytes);
    T_EQ(t, f.segments_peak, f.segments);
    T_EQ(t, f.allocations_sum, 2); /* sums stay */
    T_FAILS(t, rondo_memory_reset_peaks(w.device, unknown), NOT_FOUND, NULL);
    T_FAILS(t, rondo_memory_reset_peaks(NULL, unknown), INVALID_ARGUMENT, NULL);
    give(t, &w, a);
}

RONDO_TEST_MAIN(T_PLAIN(test_sizes_and_segments), T(test_reuse_is_by_stream), T(test_the_best_fit_wins),
                T_PLAIN(test_large_blocks_may_be_kept_whole), T(test_settings_act_at_once),
                T(test_sizes_in_steps_of_powers), T(test_settings_are_checked), T(test_older_callers_are_served),
                T(test_a_part_of_the_device_is_the_limit), T(test_the_last_bytes_can_be_had),
                T_PLAIN(test_cached_memory_makes_room), T_PLAIN(test_old_segments_are_collected),
                T_PLAIN(test_what_is_freed_meanwhile_stays), T_PLAIN(test_a_block_that_is_too_large_makes_room),
                T(test_what_no_segment_could_hold_is_out_of_memory), T(test_figures_tell_what_happened), T_PLAIN(test_peaks_begin_again))
