/* SPDX-License-Identifier: Apache-2.0
 *
 * A caller of yesterday, of today and of tomorrow. */
#include "base/sized.h"

#include "harness/harness.h"

typedef struct sized_today {
    uint32_t struct_size;
    uint32_t first;
    uint64_t second; /* added later */
} sized_today;

typedef struct sized_tomorrow {
    sized_today today;
    uint64_t third;
} sized_tomorrow;

static void test_read(rondo_test *t) {
    const sized_today defaults = {sizeof defaults, 7, 8};
    sized_today own = defaults, given = {8, 1, 2};
    T_OK(t, rondo__sized_read(RONDO_LAYER_INPUT, "options", NULL, &own, sizeof own));
    T_EQ(t, own.first, 7);
    T_OK(t, rondo__sized_read(RONDO_LAYER_INPUT, "options", &given, &own, sizeof own)); /* knows `first` alone */
    T_EQ(t, own.first, 1);
    T_EQ(t, own.second, 8);
    T_EQ(t, own.struct_size, sizeof own);
    sized_tomorrow newer = {{sizeof newer, 3, 4}, 5};
    T_OK(t, rondo__sized_read(RONDO_LAYER_INPUT, "options", &newer, &own, sizeof own));
    T_EQ(t, own.second, 4);
    T_EQ(t, own.struct_size, sizeof own);
    for (uint32_t size = 0; size < sizeof size; size++) {
        given.struct_size = size;
        T_FAILS(t, rondo__sized_read(RONDO_LAYER_INPUT, "rondo_x_options", &given, &own, sizeof own), INVALID_ARGUMENT,
                "rondo_x_options: its struct_size is not set: start from RONDO_X_OPTIONS_INIT");
    }
    T_EQ(t, own.second, 4);
}

static void test_write(rondo_test *t) {
    const sized_today own = {sizeof own, 7, 8};
    sized_today older = {8, 1, 2};
    sized_tomorrow newer = {{sizeof newer, 1, 2}, 3};
    T_FAILS(t, rondo__sized_check(RONDO_LAYER_INPUT, "answer", NULL), INVALID_ARGUMENT, "answer: it is null");
    T_OK(t, rondo__sized_check(RONDO_LAYER_INPUT, "answer", &older));
    rondo__sized_write(&own, sizeof own, &older);
    T_EQ(t, older.struct_size, 8);
    T_EQ(t, older.first, 7);
    T_EQ(t, older.second, 2); /* the caller has no such field: not touched */
    rondo__sized_write(&own, sizeof own, &newer);
    T_EQ(t, newer.today.struct_size, sizeof newer);
    T_EQ(t, newer.today.second, 8);
    T_EQ(t, newer.third, 3);
}

RONDO_TEST_MAIN(T(test_read), T(test_write))
