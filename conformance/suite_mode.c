/* SPDX-License-Identifier: Apache-2.0
 *
 * Capture modes: the table, counted out anew, and a thread's own mode. */
#include "conf.h"

/* An unsafe call is allowed when either side is relaxed, or when the capture is another thread's and either side says
 * that threads do not concern each other. */
static bool mode_wanted(rondo_capture_mode capture, rondo_capture_mode thread, bool other, bool unsafe_call) {
    if (!unsafe_call) return true;
    if (capture == RONDO_CAPTURE_MODE_RELAXED || thread == RONDO_CAPTURE_MODE_RELAXED) return true;
    return other && (capture == RONDO_CAPTURE_MODE_THREAD_LOCAL || thread == RONDO_CAPTURE_MODE_THREAD_LOCAL);
}

static void mode_table(conf *t) {
    for (rondo_capture_mode capture = 0; capture < RONDO_CAPTURE_MODE_COUNT; ++capture)
        for (rondo_capture_mode thread = RONDO_CAPTURE_MODE_GLOBAL; thread < RONDO_CAPTURE_MODE_COUNT; ++thread)
            for (int other = 0; other < 2; ++other)
                for (int unsafe_call = 0; unsafe_call < 2; ++unsafe_call)
                    WANT(t,
                         rondo_capture_mode_allows(capture, thread, other, unsafe_call) ==
                             mode_wanted(capture, thread, other, unsafe_call),
                         "capture mode %d, thread mode %d, %s thread, %s call", (int)capture, (int)thread,
                         other ? "another" : "the same", unsafe_call ? "an unsafe" : "a safe");
    for (int unsafe_call = 0; unsafe_call < 2; ++unsafe_call)
        WANT(t,
             !rondo_capture_mode_allows(-1, 1, false, unsafe_call) &&
                 !rondo_capture_mode_allows(1, RONDO_CAPTURE_MODE_COUNT, true, unsafe_call),
             "a mode that does not exist allows calls");
}

static rondo_capture_mode mode_set(conf *t, rondo_capture_mode mode) {
    rondo_capture_mode before = -1;
    WANT_OK(t, rondo_capture_mode_exchange(mode, &before));
    return before;
}

static void *mode_other_thread(void *argument) {
    rondo_capture_mode *seen = argument;
    rondo_capture_mode before = -1;
    if (conf_code(rondo_capture_mode_exchange(RONDO_CAPTURE_MODE_THREAD_LOCAL, &before)) == RONDO_CODE_OK)
        *seen = before;
    return NULL;
}

static void mode_exchange(conf *t) {
    rondo_capture_mode before = -1, seen = -1;
    rondo_capture_mode first = mode_set(t, RONDO_CAPTURE_MODE_RELAXED);
    rondo_capture_mode second = mode_set(t, RONDO_CAPTURE_MODE_THREAD_LOCAL);
    rondo_code none = conf_code(rondo_capture_mode_exchange(RONDO_CAPTURE_MODE_DEFAULT, &before));
    rondo_code unknown = conf_code(rondo_capture_mode_exchange(RONDO_CAPTURE_MODE_COUNT, &before));
    conf_threads(t, 1, mode_other_thread, &seen, sizeof seen);
    rondo_capture_mode third = mode_set(t, first);
    WANT(t, second == RONDO_CAPTURE_MODE_RELAXED && third == RONDO_CAPTURE_MODE_THREAD_LOCAL,
         "exchanging gives %d and %d, not what was set", (int)second, (int)third);
    WANT(t, none == RONDO_CODE_INVALID_ARGUMENT && unknown == RONDO_CODE_INVALID_ARGUMENT,
         "modes of no thread give '%s' and '%s'", rondo_code_name(none), rondo_code_name(unknown));
    WANT(t, seen == RONDO_CAPTURE_MODE_GLOBAL, "a new thread starts in mode %d", (int)seen);
}

static const conf_test tests[] = {
    {{"mode.table", "mode capture", "The table of modes: capture x thread x whose x what."}, 0, mode_table},
    {{"mode.exchange", "mode capture thread", "A thread's own mode is its own, and starts as global."},
     0,
     mode_exchange},
};
CONF_SUITE(conf_suite_mode, tests);
