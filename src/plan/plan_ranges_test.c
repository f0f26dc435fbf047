/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges put one over the other, against an array with one holder a byte. */
#include "plan/plan_ranges.h"

#include "harness/harness.h"

#define BYTES 97u
#define HOLDERS 60u

static void same_as_byte_by_byte(rondo_test *t) {
    for (uint32_t round = 0; round < 300; round++) {
        rondo__plan_ranges ranges;
        uint32_t held[BYTES], begins[HOLDERS], ends[HOLDERS], until[HOLDERS];
        uint32_t holders = 1 + (uint32_t)(rondo_test_random(t) % HOLDERS);
        T_OK(t, rondo__plan_ranges_init(&ranges, rondo_test_allocator(t), holders));
        for (uint32_t i = 0; i < holders; i++) {
            begins[i] = (uint32_t)(rondo_test_random(t) % (BYTES - 1));
            ends[i] = begins[i] + 1 + (uint32_t)(rondo_test_random(t) % (BYTES - 1 - begins[i]));
            until[i] = (uint32_t)(rondo_test_random(t) % 1000);
            rondo__plan_ranges_cut(&ranges, i, begins[i], ends[i], until[i]);
        }
        T_OK(t, rondo__plan_ranges_ready(&ranges));
        memset(held, 0xff, sizeof held);
        for (uint32_t i = 0; i < holders; i++) {
            uint32_t k = (uint32_t)(rondo_test_random(t) % holders), want = RONDO__PLAN_NOBODY;
            for (uint32_t at = begins[k]; at < ends[k]; at++) {
                if (held[at] != RONDO__PLAN_NOBODY && (want == RONDO__PLAN_NOBODY || until[held[at]] > until[want])) {
                    want = held[at];
                }
            }
            uint32_t got = rondo__plan_ranges_longest(&ranges, begins[k], ends[k]);
            T_EQ(t, got == RONDO__PLAN_NOBODY, want == RONDO__PLAN_NOBODY);
            if (want != RONDO__PLAN_NOBODY) T_EQ(t, until[got], until[want]);
            rondo__plan_ranges_hold(&ranges, i, begins[i], ends[i]);
            for (uint32_t at = begins[i]; at < ends[i]; at++) held[at] = i;
        }
        rondo__plan_ranges_deinit(&ranges);
    }
}

RONDO_TEST_MAIN(T_PLAIN(same_as_byte_by_byte))
