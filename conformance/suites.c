/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of all suites, in the order in which they run: what later ones build on comes first. */
#include "conf.h"

#define CONF_SUITES(X)    \
    X(conf_suite_device)  \
    X(conf_suite_memory)  \
    X(conf_suite_stream)  \
    X(conf_suite_event)   \
    X(conf_suite_copy)    \
    X(conf_suite_kernel)  \
    X(conf_suite_pool)    \
    X(conf_suite_capture) \
    X(conf_suite_state)   \
    X(conf_suite_slot)    \
    X(conf_suite_stale)   \
    X(conf_suite_failure) \
    X(conf_suite_replay)  \
    X(conf_suite_mode)    \
    X(conf_suite_fork)    \
    X(conf_suite_child)   \
    X(conf_suite_random)  \
    X(conf_suite_tree)    \
    X(conf_suite_thread)

#define X(suite) extern const conf_suite suite;
CONF_SUITES(X)
#undef X

const conf_suite *const conf_suites[] = {
#define X(suite) &suite,
    CONF_SUITES(X)
#undef X
};
const uint32_t conf_suite_count = sizeof conf_suites / sizeof *conf_suites;
