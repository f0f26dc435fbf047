/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs on the model device and the model framework, against plain arrays. */
#include "tree/program_kit_testing.h"
#include "tree/program_search_testing.h"

static void test_programs_with_leases(rondo_test *t) { rp_search(t, &rk_leases, 1200, true); }
static void test_programs_watched(rondo_test *t) { rp_search(t, &rk_watched, 1200, true); }

RONDO_TEST_MAIN(T_PLAIN(test_programs_with_leases), T_PLAIN(test_programs_watched))
