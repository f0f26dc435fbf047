/* SPDX-License-Identifier: Apache-2.0
 *
 * Failures survive every shortage, and hostile text cannot leave its line. */
#include "base/status.h"

#include <stdio.h>

#include "base/escape.h"
#include "harness/harness.h"

static void status_release_at(void *at) { rondo_status_release(*(rondo_status *)at); }

static void test_success_is_null(rondo_test *t) {
    T_EQ(t, rondo_status_code(RONDO_OK), RONDO_CODE_OK);
    T_EQ(t, rondo_status_layer(RONDO_OK), RONDO_LAYER_NONE);
    T_STR(t, rondo_status_message(RONDO_OK), "");
    T_STR(t, rondo_status_note(RONDO_OK, 0), "");
    T_EQ(t, rondo_status_note_count(RONDO_OK), 0);
    char text[8];
    T_EQ(t, rondo_status_format(RONDO_OK, text, sizeof text), 2);
    T_STR(t, text, "ok");
    T_TRUE(t, rondo__status_note(RONDO_OK, "nothing") == RONDO_OK);
    rondo_status_release(RONDO_OK);
}

/* Also runs with the payload's memory refused: then only code and layer are known, and they are right. */
static void test_failure_keeps_code_and_layer(rondo_test *t) {
    int line = __LINE__ + 1;
    rondo_status status = RONDO__FAIL(NOT_FOUND, INPUT, "input '%s' has no tensor %d", "x", 7);
    T_DEFER(t, status_release_at, &status);
    T_TRUE(t, status != RONDO_OK);
    T_EQ(t, rondo_status_code(status), RONDO_CODE_NOT_FOUND);
    T_EQ(t, rondo_status_layer(status), RONDO_LAYER_INPUT);
    if (rondo_test_failing(t)) {
        T_STR(t, rondo_status_message(status), "no memory for a message");
        T_STR(t, rondo_status_file(status), "");
        T_EQ(t, rondo_status_line(status), 0);
        T_EQ(t, (uintptr_t)status & 1u, 1);
        T_TRUE(t, rondo__status_note(status, "dropped") == status);
        T_EQ(t, rondo_status_note_count(status), 0);
        char text[128];
        (void)rondo_status_format(status, text, sizeof text);
        T_STR(t, text, "not found (input): no memory for a message");
        return;
    }
    T_STR(t, rondo_status_message(status), "input 'x' has no tensor 7");
    T_TRUE(t, strstr(rondo_status_file(status), "status_test.c") != NULL);
    T_EQ(t, rondo_status_line(status), line);
}

/* Every code and layer survives packing. */
static void test_packed_words_hold_every_code(rondo_test *t) {
    for (rondo_code code = 1; code < RONDO_CODE_COUNT; code++)
        for (rondo_layer layer = 0; layer < RONDO_LAYER_COUNT; layer++) {
            rondo_status status = rondo__status_make(code, layer, "f", 1, "m");
            rondo_code got_code = rondo_status_code(status);
            rondo_layer got_layer = rondo_status_layer(status);
            rondo_status_release(status);
            T_EQ(t, got_code, code);
            T_EQ(t, got_layer, layer);
        }
}

static void test_a_wrong_code_is_still_a_failure(rondo_test *t) {
    static const rondo_code codes[] = {RONDO_CODE_OK, -1, RONDO_CODE_COUNT, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        rondo_status status = rondo__status_make(codes[i], 99, "f", 1, "m");
        T_TRUE(t, status != RONDO_OK);
        rondo_code got = rondo_status_code(status);
        rondo_layer layer = rondo_status_layer(status);
        rondo_status_release(status);
        T_EQ(t, got, RONDO_CODE_INTERNAL);
        T_EQ(t, layer, RONDO_LAYER_NONE);
    }
}

static void test_notes_keep_their_order(rondo_test *t) {
    rondo_status status = RONDO__FAIL(CORRUPT, FILE, "bad");
    T_DEFER(t, status_release_at, &status);
    status = rondo__status_note(status, "in node %d", 1);
    status = rondo__status_note(status, "in file '%s'", "m.onnx");
    T_EQ(t, rondo_status_code(status), RONDO_CODE_CORRUPT);
    if (rondo_test_failing(t)) return;
    T_EQ(t, rondo_status_note_count(status), 2);
    T_STR(t, rondo_status_note(status, 0), "in node 1");
    T_STR(t, rondo_status_note(status, 1), "in file 'm.onnx'");
    T_STR(t, rondo_status_note(status, 2), "");
    char text[64];
    const char *whole = "corrupt (file): bad\n  in node 1\n  in file 'm.onnx'";
    T_EQ(t, rondo_status_format(status, text, sizeof text), strlen(whole));
    T_STR(t, text, whole);
    /* As snprintf: whole length, a terminator always, nothing past the capacity. */
    memset(text, 'z', sizeof text);
    T_EQ(t, rondo_status_format(status, text, 10), strlen(whole));
    T_STR(t, text, "corrupt (");
    T_EQ(t, text[10], 'z');
    T_EQ(t, rondo_status_format(status, text, 1), strlen(whole));
    T_EQ(t, text[0], 0);
    T_EQ(t, rondo_status_format(status, NULL, 0), strlen(whole));
}

static void test_notes_are_bounded(rondo_test *t) {
    rondo_status status = RONDO__FAIL(CORRUPT, NONE, "bad");
    T_DEFER(t, status_release_at, &status);
    for (unsigned i = 0; i < 2 * RONDO__STATUS_NOTES_MAX; i++) status = rondo__status_note(status, "%u", i);
    T_TRUE(t, rondo_status_note_count(status) <= RONDO__STATUS_NOTES_MAX);
    if (!rondo_test_failing(t)) T_EQ(t, rondo_status_note_count(status), RONDO__STATUS_NOTES_MAX);
}

static void test_long_messages_end_in_dots(rondo_test *t) {
    char name[5000];
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = 0;
    static const size_t sizes[] = {1022, 1023, 1024, 1025, 2047, 2048, 2049, 2050, 2051, 2052, 4999};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        rondo_status status = RONDO__FAIL(CORRUPT, NONE, "%.*s", (int)sizes[i], name);
        const char *message = rondo_status_message(status);
        size_t length = strlen(message), whole = sizes[i] <= RONDO__STATUS_MESSAGE_MAX;
        bool right = whole ? length == sizes[i] : length <= 1024 && !strcmp(message + length - 4, "a...");
        rondo_status_release(status);
        if (!rondo_test_failing(t)) T_TRUE(t, right);
    }
}

static void escape(rondo_test *t, const char *text, const char *want) {
    char out[64];
    T_EQ(t, rondo__escape(out, sizeof out, text, strlen(text)), strlen(want));
    T_STR(t, out, want);
}

static void test_hostile_text_stays_in_its_line(rondo_test *t) {
    rondo_status status = RONDO__FAIL(CORRUPT, FILE, "node '%s'", "a\nok: all is well\x1b[2J");
    char message[256];
    (void)snprintf(message, sizeof message, "%s", rondo_status_message(status));
    rondo_status_release(status);
    if (!rondo_test_failing(t)) T_STR(t, message, "node 'a\\x0aok: all is well\\x1b[2J'");
    escape(t, "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
    escape(t, "\t\r\x7f", "\\x09\\x0d\\x7f");
    escape(t, "\xff", "\\xff");
    escape(t, "\xc3", "\\xc3");                            /* cut short */
    escape(t, "\xc0\xaf", "\\xc0\\xaf");                   /* overlong */
    escape(t, "\xe0\x80\xaf", "\\xe0\\x80\\xaf");          /* overlong */
    escape(t, "\xed\xa0\x80", "\\xed\\xa0\\x80");          /* surrogate */
    escape(t, "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* past U+10FFFF */
    escape(t,
           "\xc2\x9b"
           "2J",
           "\\xc2\\x9b"
           "2J");                                 /* C1: starts a terminal sequence */
    escape(t, "\xe2\x80\xa8", "\\xe2\\x80\\xa8"); /* line separator */
    escape(t,
           "\xe2\x80\xae"
           "gnp",
           "\\xe2\\x80\\xae"
           "gnp"); /* right-to-left override */
    escape(t,
           "\xe2\x82"
           "a",
           "\\xe2\\x82"
           "a"); /* cut short in the middle */
}

/* Every cut of every text is whole characters, terminated, within the capacity. */
static void test_cuts_are_whole_characters(rondo_test *t) {
    const char *text = "ab\xc3\xa4\xe2\x82\xac\n\xf0\x9f\x98\x80z\xff\xc3\xa4";
    char whole[64];
    size_t length = rondo__escape(whole, sizeof whole, text, strlen(text));
    for (size_t capacity = 8; capacity < 40; capacity++) {
        char out[64];
        memset(out, 'z', sizeof out);
        size_t got = rondo__escape(out, capacity, text, strlen(text));
        T_TRUE(t, got < capacity);
        T_EQ(t, strlen(out), got);
        T_EQ(t, out[capacity], 'z');
        if (length < capacity) {
            T_STR(t, out, whole);
            continue;
        }
        T_STR(t, out + got - 3, "...");
        T_TRUE(t, memcmp(out, whole, got - 3) == 0);
        for (size_t i = 0, size = 0; i < got; i += size) {
            uint32_t point = 0;
            size = rondo__utf8_sequence(out + i, got - i, &point);
            T_TRUE(t, size != 0);
        }
        T_TRUE(t, got + 4 + 4 > capacity || got + 4 > length); /* no more was cut than one character needs */
    }
}

static void test_first_failure_wins(rondo_test *t) {
    rondo_status first = RONDO__FAIL(CORRUPT, NONE, "first"), second = RONDO__FAIL(IO, NONE, "second");
    rondo_status kept = rondo__status_first(first, second);
    rondo_code code = rondo_status_code(kept);
    rondo_status_release(kept);
    T_EQ(t, code, RONDO_CODE_CORRUPT);
    kept = rondo__status_first(RONDO_OK, RONDO__FAIL(IO, NONE, "second"));
    code = rondo_status_code(kept);
    rondo_status_release(kept);
    T_EQ(t, code, RONDO_CODE_IO);
    T_TRUE(t, rondo__status_first(RONDO_OK, RONDO_OK) == RONDO_OK);
}

static rondo_status fails_at_depth(int depth) {
    if (!depth) return RONDO__FAIL(IO, FILE, "deep");
    RONDO__TRY_NOTE(fails_at_depth(depth - 1), "at %d", depth);
    return RONDO_OK;
}

static void test_try_note_adds_on_the_way_out(rondo_test *t) {
    rondo_status status = fails_at_depth(2);
    T_DEFER(t, status_release_at, &status);
    T_EQ(t, rondo_status_code(status), RONDO_CODE_IO);
    if (rondo_test_failing(t)) return;
    T_STR(t, rondo_status_note(status, 0), "at 1");
    T_STR(t, rondo_status_note(status, 1), "at 2");
}

/* What a host's tables return. */
static void test_hosts_make_failures(rondo_test *t) {
    rondo_status status = rondo_status_make(RONDO_CODE_STALE, RONDO_LAYER_TREE, "100% of it\n");
    T_DEFER(t, status_release_at, &status);
    T_EQ(t, rondo_status_code(status), RONDO_CODE_STALE);
    T_EQ(t, rondo_status_layer(status), RONDO_LAYER_TREE);
    if (rondo_test_failing(t)) return;
    T_STR(t, rondo_status_message(status), "100% of it\\x0a");
    T_STR(t, rondo_status_file(status), "");
    rondo_status wrong = rondo_status_make(RONDO_CODE_OK, -1, NULL);
    T_DEFER(t, status_release_at, &wrong);
    T_EQ(t, rondo_status_code(wrong), RONDO_CODE_INTERNAL);
    if (rondo_test_failing(t)) return;
    T_STR(t, rondo_status_message(wrong), "");
}

static void test_names(rondo_test *t) {
    T_STR(t, rondo_code_name(RONDO_CODE_OUT_OF_MEMORY), "out of memory");
    T_STR(t, rondo_code_advice(RONDO_CODE_STALE), "bind the slot again or capture again");
    T_STR(t, rondo_layer_name(RONDO_LAYER_INPUT), "input");
    for (int i = 0; i < RONDO_CODE_COUNT; i++) T_TRUE(t, strcmp(rondo_code_name(i), "unknown") != 0);
    for (int i = 0; i < RONDO_LAYER_COUNT; i++) T_TRUE(t, strcmp(rondo_layer_name(i), "unknown") != 0);
    T_STR(t, rondo_code_name(RONDO_CODE_COUNT), "unknown");
    T_STR(t, rondo_code_name(-1), "unknown");
    T_STR(t, rondo_code_advice(INT32_MIN), "unknown");
    T_STR(t, rondo_layer_name(RONDO_LAYER_COUNT), "unknown");
    T_STR(t, rondo_layer_name(-1), "unknown");
}

RONDO_TEST_MAIN(T(test_success_is_null), T(test_failure_keeps_code_and_layer), T(test_packed_words_hold_every_code),
                T(test_a_wrong_code_is_still_a_failure), T(test_notes_keep_their_order), T(test_notes_are_bounded),
                T(test_long_messages_end_in_dots), T(test_hostile_text_stays_in_its_line),
                T(test_cuts_are_whole_characters), T(test_first_failure_wins), T(test_try_note_adds_on_the_way_out),
                T(test_hosts_make_failures), T(test_names))
