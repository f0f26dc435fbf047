/* SPDX-License-Identifier: Apache-2.0
 *
 * The frame judged from outside: bodies with known faults run under it, its report goes to a file, and each fault must be
 * in the report by name. */
#include "harness/harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Sanitizers report a crash in their own way, and end the program. */
#define HARNESS_TEST_CRASH 1
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef HARNESS_TEST_CRASH
#define HARNESS_TEST_CRASH 0
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#undef HARNESS_TEST_CRASH
#define HARNESS_TEST_CRASH 0
#endif
#endif

static void free_at(void *at) { free(*(void **)at); }

static void good(rondo_test *t) {
    void *first = malloc(10);
    T_DEFER(t, free_at, &first);
    void *second = first ? calloc(2, 5) : NULL;
    T_DEFER(t, free_at, &second);
    T_TRUE(t, second || rondo_test_failing(t));
    void *grown = second ? realloc(second, 30) : NULL;
    if (grown) second = grown;
    rondo_test_heap now = rondo_test_heap_now(t);
    T_EQ(t, now.blocks, (first != NULL) + (second != NULL));
    T_EQ(t, now.bytes, (first ? 10 : 0) + (grown ? 30 : second ? 10 : 0));
}

static void leaks(rondo_test *t) {
    (void)t;
    void *volatile lost = malloc(33);
    (void)lost;
}

/* Only when the second allocation fails is the first one lost. */
static void leaks_on_a_path(rondo_test *t) {
    void *first = malloc(44), *second = first ? malloc(1) : NULL;
    if (!second) return;
    free(second);
    free(first);
    (void)t;
}

static void gives_back_a_wrong_size(rondo_test *t) {
    const rondo_allocator *allocator = rondo_test_allocator(t);
    void *block = allocator->reallocate(allocator->self, NULL, 0, 55, 0);
    if (block) (void)allocator->reallocate(allocator->self, block, 54, 0, 0);
}

#if HARNESS_TEST_CRASH
static void crashes_without_memory(rondo_test *t) {
    (void)t;
    char *volatile block = malloc(8);
    *block = 1;
    free(block);
}
#endif

static void takes_a_failure_for_success(rondo_test *t) {
    void *block = malloc(66);
    T_DEFER(t, free_at, &block);
    T_TRUE(t, block != NULL);
}

static void is_wrong(rondo_test *t) { T_EQ(t, 6 * 7, 54); }

static void wants_another_failure(rondo_test *t) { T_FAILS(t, RONDO_OK, CORRUPT, NULL); }

static void is_not_near(rondo_test *t) { T_NEAR(t, 1.0, 1.5, 0.25); }

static void skips(rondo_test *t) { rondo_test_skip(t, "the %s is not here", "file"); }

static int order[3], order_count;
static void note_order(void *number) { order[order_count++] = *(int *)number; }
static void fails_with_defers(rondo_test *t) {
    int one = 1, two = 2, three = 3;
    T_DEFER(t, note_order, &one);
    T_DEFER(t, note_order, &two);
    T_DEFER(t, note_order, &three);
    order_count = 0;
    T_TRUE(t, order_count == 3);
}

static int many_runs;
static void many(rondo_test *t) {
    (void)t;
    many_runs++;
    for (int i = 0; i < 100; i++) free(malloc(1));
}

static int check(bool right, const char *what) {
    if (!right) printf("harness: not so: %s\n", what);
    return !right;
}

int main(void) {
    static const rondo_test_entry entries[] = {
        T(good),
        T(leaks),
        T(leaks_on_a_path),
        T(gives_back_a_wrong_size),
        T(takes_a_failure_for_success),
        T(is_wrong),
        T(wants_another_failure),
        T(is_not_near),
        T(skips),
        T(fails_with_defers),
#if HARNESS_TEST_CRASH
        T(crashes_without_memory),
#else
        T_PLAIN(good),
#endif
    };
    size_t count = sizeof entries / sizeof *entries;
    const char *const wanted[] = {
        "leaks: 1 allocations are left; the first is number 1, of 33 bytes",
        "leaks_on_a_path: with allocation 2 failing: 1 allocations are left; the first is number 1, of 44 bytes",
        "gives_back_a_wrong_size: a block of 55 bytes was given back as one of 54 bytes",
        "takes_a_failure_for_success: with allocation 1 failing: ",
        "not true: block != ",
        "6 * 7 is 42, not 54",
        "wants_another_failure: ",
        "\"ok\", not the failure \"corrupt\"",
        "1.0 is 1, not 1.5 within 0.25",
        "skips: skipped: the file is not here",
        "not true: order_count == 3",
    };
    (void)unsetenv("RONDO_TEST_PLAIN");
    (void)unsetenv("RONDO_TEST_EACH");
    (void)unsetenv("RONDO_TEST_ONLY");
    (void)unsetenv("RONDO_TEST_NTH");
    char path[] = "/tmp/rondo-harness-XXXXXX";
    static char report[1 << 16];
    int file = mkstemp(path), out = dup(1), error = dup(2);
    if (file < 0 || out < 0 || error < 0 || dup2(file, 1) < 0 || dup2(file, 2) < 0) return 1;
    int result = rondo_test_main(__FILE__, entries, count);
    static const rondo_test_entry entry = T(many);
    (void)rondo_test_main(__FILE__, &entry, 1);
    int all = many_runs;
    (void)setenv("RONDO_TEST_EACH", "10", 1);
    (void)rondo_test_main(__FILE__, &entry, 1);
    int fewer = many_runs - all;
    (void)fflush(NULL);
    if (dup2(out, 1) < 0 || dup2(error, 2) < 0) return 1;
    ssize_t size = pread(file, report, sizeof report - 1, 0);
    (void)close(file);
    (void)unlink(path);
    int problems = check(result == 1, "a program with faults ends with 1") + check(size > 0, "there is a report");
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) problems += check(strstr(report, wanted[i]), wanted[i]);
    const char *closing =
        HARNESS_TEST_CRASH ? "\n1 passed, 9 failed, 1 skipped\n" : "\n2 passed, 8 failed, 1 skipped\n";
    problems += check(strstr(report, closing), closing + 1);
    problems += check(order_count == 3 && order[0] == 3 && order[2] == 1, "deferred functions run in reverse order");
    /* Plainly, each of 100 alone and with all that follow, and the run that meets no failure. */
    problems += check(all == 1 + 100 * 2 + 1, "each allocation fails");
    /* 1 to 16, 18 20 22 24 27 30 33 37 41 46 51 57 64 72 81 91, and 102. */
    problems += check(fewer == 1 + 32 * 2 + 1, "each of the first ten allocations fails, then fewer");
    if (problems) printf("%s", report);
    size_t checks = sizeof wanted / sizeof *wanted + 6;
    printf("%zu passed, %d failed, 0 skipped\n", checks - (size_t)problems, problems);
    return problems != 0;
}
