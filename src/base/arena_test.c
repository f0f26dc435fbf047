/* SPDX-License-Identifier: Apache-2.0
 *
 * Arenas: pieces are zeroed, aligned, apart from each other, bounded, and gone together. */
#include "base/arena.h"

#include "harness/harness.h"

static void test_pieces_are_zeroed_aligned_and_apart(rondo_test *t) {
    enum { PIECES = 300 };
    static unsigned char *pieces[PIECES];
    static size_t sizes[PIECES];
    rondo__arena arena;
    rondo__arena_init(&arena, rondo_test_allocator(t), SIZE_MAX);
    T_DEFER(t, rondo__arena_deinit, &arena);
    for (size_t i = 0; i < PIECES; i++) {
        size_t alignment = (size_t)1 << rondo_test_random(t) % 9; /* 1 to 256 */
        sizes[i] = (size_t)(rondo_test_random(t) % (i % 50 == 49 ? 20000 : 200));
        void *piece = NULL;
        T_OK(t, rondo__arena_allocate_aligned(&arena, sizes[i], alignment, &piece));
        pieces[i] = piece;
        T_EQ(t, (uintptr_t)piece % (alignment < 16 ? 16 : alignment), 0);
        for (size_t k = 0; k < sizes[i]; k++) T_EQ(t, pieces[i][k], 0);
        memset(piece, (int)(i % 255 + 1), sizes[i]);
    }
    for (size_t i = 0; i < PIECES; i++)
        for (size_t k = 0; k < sizes[i]; k++) T_EQ(t, pieces[i][k], i % 255 + 1);
}

static void test_maximum_holds(rondo_test *t) {
    rondo__arena arena;
    rondo__arena_init(&arena, rondo_test_allocator(t), 10000);
    T_DEFER(t, rondo__arena_deinit, &arena);
    void *piece = NULL;
    size_t taken = 0;
    rondo_status status = RONDO_OK;
    while (!(status = rondo__arena_allocate(&arena, 100, &piece)) && taken < 20000) taken += 100;
    T_FAILS(t, status, OUT_OF_RANGE, "limit of 10000 bytes");
    T_TRUE(t, piece == NULL);
    T_TRUE(t, arena.total <= 10000);
    T_TRUE(t, taken >= 8000 && taken <= 10000);
    T_FAILS(t, rondo__arena_allocate(&arena, SIZE_MAX, &piece), OUT_OF_RANGE, NULL);
    T_FAILS(t, rondo__arena_allocate(&arena, SIZE_MAX - 8, &piece), OUT_OF_RANGE, NULL);
    T_FAILS(t, rondo__arena_allocate_aligned(&arena, SIZE_MAX - 64, 4096, &piece), OUT_OF_RANGE, NULL);
    T_FAILS(t, rondo__arena_allocate_array(&arena, SIZE_MAX / 2, 3, &piece), OUT_OF_RANGE, "address space");
    T_FAILS(t, rondo__arena_allocate_aligned(&arena, 1, 48, &piece), INVALID_ARGUMENT, "power of two");
    const char *text = NULL;
    T_FAILS(t, rondo__arena_string(&arena, "", SIZE_MAX, &text), OUT_OF_RANGE, NULL);
}

static void test_copies_and_strings(rondo_test *t) {
    rondo__arena arena;
    rondo__arena_init(&arena, rondo_test_allocator(t), SIZE_MAX);
    T_DEFER(t, rondo__arena_deinit, &arena);
    static const int numbers[] = {3, 1, 4, 1, 5};
    void *copy = NULL, *empty = NULL;
    T_OK(t, rondo__arena_copy(&arena, numbers, sizeof numbers, &copy));
    T_TRUE(t, copy != numbers && memcmp(copy, numbers, sizeof numbers) == 0);
    T_OK(t, rondo__arena_copy(&arena, NULL, 0, &empty));
    T_TRUE(t, empty != NULL);
    const char *text = NULL;
    T_OK(t, rondo__arena_string(&arena, "prototype", 5, &text));
    T_STR(t, text, "proto");
    T_OK(t, rondo__arena_string(&arena, NULL, 0, &text));
    T_STR(t, text, "");
}

/* A large piece must not throw away the rest of the block in use. */
static void test_large_pieces_do_not_waste(rondo_test *t) {
    rondo__arena arena;
    rondo__arena_init(&arena, rondo_test_allocator(t), SIZE_MAX);
    T_DEFER(t, rondo__arena_deinit, &arena);
    void *piece = NULL, *small = NULL, *next = NULL;
    T_OK(t, rondo__arena_allocate(&arena, 16, &small));
    T_OK(t, rondo__arena_allocate(&arena, 100000, &piece));
    T_OK(t, rondo__arena_allocate(&arena, 16, &next));
    T_EQ(t, (char *)next - (char *)small, 16);
    for (int i = 0; i < 100; i++) {
        T_OK(t, rondo__arena_allocate(&arena, 16, &piece));
        T_OK(t, rondo__arena_allocate(&arena, 100000, &piece));
        memset(piece, 1, 100000);
    }
    T_TRUE(t, arena.total < 101 * 100000 / 4 * 5 + (1 << 20));
    rondo__arena_deinit(&arena);
    T_EQ(t, arena.total, 0);
    T_TRUE(t, arena.blocks == NULL);
}

RONDO_TEST_MAIN(T(test_pieces_are_zeroed_aligned_and_apart), T(test_maximum_holds), T(test_copies_and_strings),
                T(test_large_pieces_do_not_waste))
