/* SPDX-License-Identifier: Apache-2.0
 *
 * Checked sizes, lines of the log, threads and clocks. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/thread.h"
#include "harness/harness.h"

static void test_overflow_is_said_and_leaves_the_result(rondo_test *t) {
    size_t size = 5;
    T_TRUE(t, !rondo__checked_add_size(SIZE_MAX, 1, &size) && size == 5);
    T_TRUE(t, rondo__checked_add_size(SIZE_MAX - 1, 1, &size) && size == SIZE_MAX);
    T_TRUE(t, !rondo__checked_mul_size(SIZE_MAX / 2 + 1, 2, &size) && size == SIZE_MAX);
    T_TRUE(t, rondo__checked_mul_size(SIZE_MAX, 0, &size) && size == 0);
    uint64_t u = 5;
    T_TRUE(t, !rondo__checked_add_u64(UINT64_MAX, UINT64_MAX, &u) && u == 5);
    T_TRUE(t, !rondo__checked_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &u) && u == 5);
    T_TRUE(t, !rondo__checked_align_u64(UINT64_MAX, 2, &u) && u == 5);
    T_TRUE(t, rondo__checked_align_u64(65, 64, &u) && u == 128);
    T_TRUE(t, rondo__checked_align_u64(64, 64, &u) && u == 64);
    int64_t i = 5;
    T_TRUE(t, !rondo__checked_add_i64(INT64_MAX, 1, &i) && i == 5);
    T_TRUE(t, !rondo__checked_mul_i64(INT64_MIN, -1, &i) && i == 5);
    T_TRUE(t, rondo__checked_mul_i64(-3, 4, &i) && i == -12);
}

static void test_elements_of_a_shape(rondo_test *t) {
    int64_t elements = 5;
    T_TRUE(t, rondo__checked_elements(0, NULL, &elements) && elements == 1);
    T_TRUE(t, rondo__checked_elements(3, (int64_t[]){2, 3, 4}, &elements) && elements == 24);
    T_TRUE(t, rondo__checked_elements(3, (int64_t[]){INT64_MAX, 0, INT64_MAX}, &elements) && elements == 0);
    T_TRUE(t, !rondo__checked_elements(3, (int64_t[]){INT64_MAX, 2, 1}, &elements) && elements == 0);
    T_TRUE(t, !rondo__checked_elements(3, (int64_t[]){0, 2, -1}, &elements)); /* a zero does not excuse it */
    T_TRUE(t, rondo__checked_elements(2, (int64_t[]){INT64_MAX, 1}, &elements) && elements == INT64_MAX);
}

typedef struct lines {
    int count;
    rondo_log_level level;
    char last[2000];
} lines;

static void keep_line(void *user, rondo_log_level level, const char *text) {
    lines *kept = user;
    kept->count++;
    kept->level = level;
    (void)snprintf(kept->last, sizeof kept->last, "%s", text);
}

static void test_log_lines_are_filtered_bounded_and_harmless(rondo_test *t) {
    lines kept = {0};
    rondo__log log = {keep_line, &kept, RONDO_LOG_WARNING};
    rondo__log_write(&log, RONDO_LOG_INFO, "dropped");
    T_EQ(t, kept.count, 0);
    rondo__log_write(&log, RONDO_LOG_WARNING, "kept %d", 1);
    T_EQ(t, kept.count, 1);
    T_EQ(t, kept.level, RONDO_LOG_WARNING);
    T_STR(t, kept.last, "kept 1");
    rondo__log_write(&log, RONDO_LOG_ERROR, "%s", "two\nlines");
    T_STR(t, kept.last, "two\\x0alines");
    rondo__log_write(&log, RONDO_LOG_ERROR, "%5000d", 1);
    T_EQ(t, strlen(kept.last), 1024);
    T_STR(t, kept.last + 1020, " ...");
    rondo__log_write(NULL, RONDO_LOG_ERROR, "nowhere");
    log.function = NULL;
    rondo__log_write(&log, RONDO_LOG_ERROR, "nowhere");
    T_EQ(t, kept.count, 3);
}

typedef struct counted {
    rondo__mutex mutex;
    rondo__ref_count references;
    atomic_uint last_seen; /* how many threads saw themselves be the last */
    uint64_t value, ids[4];
    atomic_uint next;
} counted;

static void *count_up(void *argument) {
    counted *shared = argument;
    shared->ids[atomic_fetch_add(&shared->next, 1u)] = rondo__thread_id();
    for (int i = 0; i < 20000; i++) {
        rondo__mutex_lock(&shared->mutex);
        shared->value++;
        rondo__mutex_unlock(&shared->mutex);
        rondo__ref_retain(&shared->references);
        if (rondo__ref_release(&shared->references)) atomic_fetch_add(&shared->last_seen, 1u);
    }
    if (rondo__ref_release(&shared->references)) atomic_fetch_add(&shared->last_seen, 1u);
    return NULL;
}

static void test_threads_count_together(rondo_test *t) {
    static counted shared;
    rondo__mutex_init(&shared.mutex);
    rondo__ref_init(&shared.references);
    pthread_t threads[4];
    for (int i = 0; i < 3; i++) rondo__ref_retain(&shared.references);
    for (int i = 0; i < 4; i++) T_EQ(t, pthread_create(&threads[i], NULL, count_up, &shared), 0);
    for (int i = 0; i < 4; i++) T_EQ(t, pthread_join(threads[i], NULL), 0);
    rondo__mutex_deinit(&shared.mutex);
    T_EQ(t, shared.value, 80000);
    T_EQ(t, shared.last_seen, 1);
    for (int i = 0; i < 4; i++) T_TRUE(t, shared.ids[i] != 0 && shared.ids[i] != rondo__thread_id());
    T_EQ(t, rondo__thread_id(), rondo__thread_id());
}

static void test_time_goes_on(rondo_test *t) {
    uint64_t before = rondo__now_ns(), now = before;
    for (int i = 0; i < 10000000 && now == before; i++) now = rondo__now_ns();
    T_TRUE(t, now > before);
}

RONDO_TEST_MAIN(T(test_overflow_is_said_and_leaves_the_result), T(test_elements_of_a_shape),
                T(test_log_lines_are_filtered_bounded_and_harmless), T_PLAIN(test_threads_count_together),
                T_PLAIN(test_time_goes_on))
