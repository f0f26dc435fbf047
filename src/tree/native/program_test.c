/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs on arrays and devices of Rondo's, against plain arrays. */
#include "tree/native/program_kit_testing.h"
#include "tree/program_search_testing.h"

static void test_programs_on_cpu(rondo_test *t) { rp_search(t, &rn_cpu, 800, false); }
static void test_programs_on_sim(rondo_test *t) { rp_search(t, &rn_sim, 400, false); }

RONDO_TEST_MAIN(T_PLAIN(test_programs_on_cpu), T_PLAIN(test_programs_on_sim))
