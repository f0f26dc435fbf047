/* SPDX-License-Identifier: Apache-2.0
 *
 * Growable arrays and text: what was put in is there, the maximum holds, and a refused step changes nothing. */
#include "base/buffer.h"

#include <stdio.h>

#include "harness/harness.h"

static void test_elements_stay(rondo_test *t) {
    rondo__buffer buffer;
    rondo__buffer_init(&buffer, rondo_test_allocator(t), sizeof(uint32_t), 5000);
    T_DEFER(t, rondo__buffer_deinit, &buffer);
    for (uint32_t i = 0; i < 5000; i++) T_OK(t, rondo__buffer_append(&buffer, &i, 1));
    for (uint32_t i = 0; i < 5000; i++) T_EQ(t, *RONDO__BUFFER_AT(&buffer, uint32_t, i), i);
    T_EQ(t, buffer.capacity, 5000); /* clamped to the maximum, not doubled past it */
    uint32_t one = 1;
    T_FAILS(t, rondo__buffer_append(&buffer, &one, 1), OUT_OF_RANGE, "5001 elements exceed the limit of 5000");
    T_EQ(t, buffer.count, 5000);
    T_FAILS(t, rondo__buffer_append(&buffer, &one, SIZE_MAX), OUT_OF_RANGE, NULL);
    rondo__buffer_deinit(&buffer);
    T_OK(t, rondo__buffer_append(&buffer, NULL, 3));
    for (size_t i = 0; i < 3; i++) T_EQ(t, *RONDO__BUFFER_AT(&buffer, uint32_t, i), 0);
    T_OK(t, rondo__buffer_append(&buffer, NULL, 0));
    T_EQ(t, buffer.count, 3);
}

static void test_sizes_are_checked(rondo_test *t) {
    rondo__buffer buffer;
    rondo__buffer_init(&buffer, rondo_test_allocator(t), 1 << 20, SIZE_MAX);
    T_DEFER(t, rondo__buffer_deinit, &buffer);
    T_FAILS(t, rondo__buffer_reserve(&buffer, SIZE_MAX >> 10), OUT_OF_RANGE, "address space");
    T_FAILS(t, rondo__buffer_reserve(&buffer, SIZE_MAX >> 20), OUT_OF_MEMORY, NULL);
    T_EQ(t, buffer.capacity, 0);
}

static void test_text_grows_piece_by_piece(rondo_test *t) {
    rondo__buffer text;
    rondo__buffer_init(&text, rondo_test_allocator(t), 1, 4000);
    T_DEFER(t, rondo__buffer_deinit, &text);
    T_STR(t, rondo__text(&text), "");
    T_OK(t, rondo__text_append(&text, "%s", ""));
    T_STR(t, rondo__text(&text), "");
    char want[4000] = "";
    for (int i = 0; i < 500; i++) {
        T_OK(t, rondo__text_append(&text, "%d,", i));
        size_t at = strlen(want);
        (void)snprintf(want + at, sizeof want - at, "%d,", i);
        T_EQ(t, text.count, strlen(want));
        T_STR(t, rondo__text(&text), want);
    }
    char filler[4000];
    memset(filler, 'f', sizeof filler);
    T_FAILS(t, rondo__text_append(&text, "%.*s", 3999, filler), OUT_OF_RANGE, "limit of 4000");
    T_STR(t, rondo__text(&text), want); /* terminated where it was */
    T_OK(t, rondo__text_append(&text, "%.*s", (int)(4000 - 1 - text.count), filler));
    T_FAILS(t, rondo__text_append(&text, "x"), OUT_OF_RANGE, NULL);
}

/* The wanted forms are what another JSON writer gives for these, where the standard leaves a choice of ours. */
static void test_json_strings(rondo_test *t) {
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "\"\""},
        {"plain/", "\"plain/\""},
        {"say \"\\\"", "\"say \\\"\\\\\\\"\""},
        {"\b\f\n\r\t\x01\x1f\x7f", "\"\\u0008\\u000c\\n\\r\\t\\u0001\\u001f\\u007f\""},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"a\xff"
         "b\xc3",
         "\"a\xef\xbf\xbd"
         "b\xef\xbf\xbd\""},
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* a surrogate */
    };
    rondo__buffer text;
    rondo__buffer_init(&text, rondo_test_allocator(t), 1, 4000);
    T_DEFER(t, rondo__buffer_deinit, &text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rondo__buffer_deinit(&text);
        T_OK(t, rondo__text_append_json(&text, cases[i].text, strlen(cases[i].text)));
        T_STR(t, rondo__text(&text), cases[i].want);
    }
    rondo__buffer_deinit(&text);
    T_OK(t, rondo__text_append_json(&text, "a\0b", 3));
    T_STR(t, rondo__text(&text), "\"a\\u0000b\"");
}

static void test_strings_and_arrays_of_the_allocator(rondo_test *t) {
    const rondo_allocator *allocator = rondo_test_allocator(t);
    char *copy = NULL;
    void *array = NULL, *wide = NULL;
    T_OK(t, rondo__string_copy(allocator, NULL, &copy));
    T_TRUE(t, copy == NULL);
    rondo__string_free(allocator, NULL);
    T_OK(t, rondo__string_copy(allocator, "name", &copy));
    bool same = strcmp(copy, "name") == 0;
    rondo__string_free(allocator, copy);
    T_TRUE(t, same);
    T_FAILS(t, rondo__allocate_array(allocator, SIZE_MAX / 8, 16, &array), OUT_OF_RANGE, "address space");
    T_FAILS(t, rondo__allocate(allocator, SIZE_MAX, &array), OUT_OF_MEMORY, NULL);
    T_OK(t, rondo__allocate_array(allocator, 0, 16, &array));
    T_TRUE(t, array == NULL);
    T_OK(t, rondo__allocate_array(allocator, 7, 3, &array));
    bool zero = true;
    for (int i = 0; i < 21; i++) zero = zero && ((char *)array)[i] == 0;
    rondo__free(allocator, array, 21);
    T_TRUE(t, zero);
    T_OK(t, rondo__allocate_aligned(allocator, 100, 4096, &wide));
    bool aligned = (uintptr_t)wide % 4096 == 0;
    rondo__free_aligned(allocator, wide, 100, 4096);
    T_TRUE(t, aligned);
}

static void test_default_allocator(rondo_test *t) {
    rondo_allocator allocator = rondo_allocator_default();
    static const size_t alignments[] = {0, 8, 16, 64, 4096};
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        size_t alignment = alignments[i];
        unsigned char *block = allocator.reallocate(allocator.self, NULL, 0, 100, alignment);
        if (!block && rondo_test_failing(t)) return;
        T_TRUE(t, block != NULL);
        bool right = (uintptr_t)block % (alignment ? alignment : 1) == 0;
        memset(block, 7, 100);
        unsigned char *larger = allocator.reallocate(allocator.self, block, 100, 10000, alignment);
        if (!larger) larger = block; /* the old block stays */
        else right = right && (uintptr_t)larger % (alignment ? alignment : 1) == 0;
        for (int k = 0; k < 100; k++) right = right && larger[k] == 7;
        bool freed = !allocator.reallocate(allocator.self, larger, larger == block ? 100 : 10000, 0, alignment);
        T_TRUE(t, right && freed);
        T_TRUE(t, !allocator.reallocate(allocator.self, NULL, 0, SIZE_MAX, alignment));
    }
}

RONDO_TEST_MAIN(T(test_elements_stay), T(test_sizes_are_checked), T(test_text_grows_piece_by_piece),
                T(test_json_strings), T(test_strings_and_arrays_of_the_allocator), T(test_default_allocator))
