/* SPDX-License-Identifier: Apache-2.0
 *
 * The unit tests' frame over cmocka: every test body also runs with its nth allocation failing, for every n.
 *
 *     static void test_grows(rondo_test *t) {
 *         rondo__buffer b;
 *         rondo__buffer_init(&b, rondo_test_allocator(t), 1, 100);
 *         T_DEFER(t, release_buffer, &b);
 *         T_OK(t, rondo__buffer_append(&b, "x", 1));
 *         T_EQ(t, b.count, 1);
 *     }
 *     RONDO_TEST_MAIN(T(test_grows), T_PLAIN(test_slow_one))
 *
 * T: the body runs once plainly, then again and again with the nth allocation failing (each n to 2,000, or to
 * RONDO_TEST_EACH, then geometrically, until a run meets no failure). In such a run T_OK on a status OUT_OF_MEMORY ends the body quietly; the
 * deferred functions run in reverse order; then no allocation may be left. T_PLAIN: runs once, without that.
 * Allocations are counted under malloc and its kin (linker's --wrap), so statuses and default allocators take part.
 */
#ifndef RONDO_TESTS_HARNESS_H
#define RONDO_TESTS_HARNESS_H

#include <rondo/types.h>
#include <string.h>

typedef struct rondo_test rondo_test;
typedef void (*rondo_test_function)(rondo_test *t);

/* The C library's allocator, counted. */
const rondo_allocator *rondo_test_allocator(rondo_test *t);
/* True in a run in which an allocation was made to fail. */
bool rondo_test_failing(const rondo_test *t);
/* What is allocated now, of all that is allocated under malloc and its kin since the body began: blocks, and their bytes as
 * they were asked for. The program's own part; what the C library allocates inside itself is not seen. */
typedef struct rondo_test_heap {
    uint64_t blocks, bytes;
} rondo_test_heap;
rondo_test_heap rondo_test_heap_now(rondo_test *t);
/* A folder of this run's own, removed afterwards. */
const char *rondo_test_folder(rondo_test *t);
/* How far apart the cases are to lie that a test takes of many like ones, as each call that may fail: 1, or
 * RONDO_TEST_STRIDE where everything takes many times as long. */
uint64_t rondo_test_stride(void);
/* A pseudo-random 64-bit number; the seed is the test's name, so that runs repeat. */
uint64_t rondo_test_random(rondo_test *t);

/* Do not call these: use the macros. They end the body (longjmp) when the check fails. */
void rondo_test_fail(rondo_test *t, const char *file, int line, const char *format, ...) RONDO_PRINTF(4, 5);
void rondo_test_ok(rondo_test *t, rondo_status status, const char *text, const char *file, int line);
void rondo_test_code(rondo_test *t, rondo_status status, rondo_code code, const char *part, const char *text,
                     const char *file, int line);
void rondo_test_defer(rondo_test *t, void (*function)(void *), void *argument);
/* Ends the whole test with a reason, which is counted as skipped. */
void rondo_test_skip(rondo_test *t, const char *format, ...) RONDO_PRINTF(2, 3);

/* Success is expected. */
#define T_OK(t, expression) rondo_test_ok(t, (expression), #expression, __FILE__, __LINE__)
/* A failure of that code is expected, whose formatted text contains `part` (null: any). */
#define T_FAILS(t, expression, code, part) \
    rondo_test_code(t, (expression), RONDO_CODE_##code, part, #expression, __FILE__, __LINE__)
#define T_TRUE(t, condition)                                                                  \
    do {                                                                                      \
        if (!(condition)) rondo_test_fail(t, __FILE__, __LINE__, "not true: %s", #condition); \
    } while (0)
#define T_EQ(t, got, want)                                                                                         \
    do {                                                                                                           \
        long long rondo_test_got = (long long)(got), rondo_test_want = (long long)(want);                          \
        if (rondo_test_got != rondo_test_want)                                                                     \
            rondo_test_fail(t, __FILE__, __LINE__, "%s is %lld, not %lld", #got, rondo_test_got, rondo_test_want); \
    } while (0)
#define T_STR(t, got, want)                                                                                            \
    do {                                                                                                               \
        const char *rondo_test_got = (got), *rondo_test_want = (want);                                                 \
        if (strcmp(rondo_test_got, rondo_test_want) != 0)                                                              \
            rondo_test_fail(t, __FILE__, __LINE__, "%s is \"%s\", not \"%s\"", #got, rondo_test_got, rondo_test_want); \
    } while (0)
/* |got - want| <= bound; NaN equals NaN. */
#define T_NEAR(t, got, want, bound) \
    rondo_test_near(t, (double)(got), (double)(want), (double)(bound), #got, __FILE__, __LINE__)
void rondo_test_near(rondo_test *t, double got, double want, double bound, const char *text, const char *file,
                     int line);
/* Runs at the end of the body, however it ends, in reverse order. */
#define T_DEFER(t, function, argument) rondo_test_defer(t, (void (*)(void *))(function), argument)

typedef struct rondo_test_entry {
    const char *name;
    rondo_test_function function;
    bool plain;
} rondo_test_entry;
int rondo_test_main(const char *program, const rondo_test_entry *entries, size_t count);
#define T(function) \
    { #function, function, false }
#define T_PLAIN(function) \
    { #function, function, true }
#define RONDO_TEST_MAIN(...)                                                                                          \
    int main(void) {                                                                                                  \
        static const rondo_test_entry rondo_test_entries[] = {__VA_ARGS__};                                           \
        return rondo_test_main(__FILE__, rondo_test_entries, sizeof rondo_test_entries / sizeof *rondo_test_entries); \
    }

#endif
