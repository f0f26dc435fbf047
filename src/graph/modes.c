/* SPDX-License-Identifier: Apache-2.0
 *
 * Capture modes as one table: the mode of a capture x the mode of the thread that calls x whether that thread began the
 * capture. A cell says whether an unsafe call, one that could break a capture, may be made; a safe call always may. The
 * code looks here, the test counts it out anew, and tools/capture-modes writes it into docs/graph.md.
 *
 * A thread's own mode is the one thing that is kept in a thread: it is a promise of that thread's about its own calls. */
#include "graph/modes.h"

#include "base/status.h"

/* clang-format off */
const rondo__mode_row rondo__modes[RONDO__MODE_ROWS] = {
    /* capture                         thread                          this thread's  another's */
    {RONDO_CAPTURE_MODE_GLOBAL,        RONDO_CAPTURE_MODE_GLOBAL,       {false,         false}},
    {RONDO_CAPTURE_MODE_GLOBAL,        RONDO_CAPTURE_MODE_THREAD_LOCAL, {false,         true}},
    {RONDO_CAPTURE_MODE_GLOBAL,        RONDO_CAPTURE_MODE_RELAXED,      {true,          true}},
    {RONDO_CAPTURE_MODE_THREAD_LOCAL,  RONDO_CAPTURE_MODE_GLOBAL,       {false,         true}},
    {RONDO_CAPTURE_MODE_THREAD_LOCAL,  RONDO_CAPTURE_MODE_THREAD_LOCAL, {false,         true}},
    {RONDO_CAPTURE_MODE_THREAD_LOCAL,  RONDO_CAPTURE_MODE_RELAXED,      {true,          true}},
    {RONDO_CAPTURE_MODE_RELAXED,       RONDO_CAPTURE_MODE_GLOBAL,       {true,          true}},
    {RONDO_CAPTURE_MODE_RELAXED,       RONDO_CAPTURE_MODE_THREAD_LOCAL, {true,          true}},
    {RONDO_CAPTURE_MODE_RELAXED,       RONDO_CAPTURE_MODE_RELAXED,      {true,          true}},
};
/* clang-format on */

static _Thread_local rondo_capture_mode modes_thread = RONDO_CAPTURE_MODE_GLOBAL;

static const char *const modes_names[RONDO_CAPTURE_MODE_COUNT] = {
#define RONDO_X(name, number, text) [number] = text,
    RONDO_CAPTURE_MODES(RONDO_X)
#undef RONDO_X
};

static bool modes_is(rondo_capture_mode mode) { return mode >= 0 && mode < RONDO_CAPTURE_MODE_COUNT; }

const char *rondo__mode_name(rondo_capture_mode mode) { return modes_is(mode) ? modes_names[mode] : "unknown"; }

rondo_capture_mode rondo__mode_of_thread(void) { return modes_thread; }

/* The default is the first row's. */
static rondo_capture_mode modes_plain(rondo_capture_mode mode) {
    return mode == RONDO_CAPTURE_MODE_DEFAULT ? RONDO_CAPTURE_MODE_GLOBAL : mode;
}

bool rondo_capture_mode_allows(rondo_capture_mode capture, rondo_capture_mode thread, bool other_thread,
                               bool unsafe_call) {
    if (!modes_is(capture) || !modes_is(thread)) return false;
    if (!unsafe_call) return true;
    for (uint32_t i = 0; i < RONDO__MODE_ROWS; i++) {
        const rondo__mode_row *row = &rondo__modes[i];
        if (row->capture == modes_plain(capture) && row->thread == modes_plain(thread))
            return row->allowed[other_thread];
    }
    return false;
}

rondo_status rondo_capture_mode_exchange(rondo_capture_mode mode, rondo_capture_mode *out_before) {
    if (!out_before)
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "exchanging the thread's mode needs a place for the one before");
    if (!modes_is(mode) || mode == RONDO_CAPTURE_MODE_DEFAULT)
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE,
                           "%d is no mode of a thread: there are global (%d), thread_local (%d) and relaxed (%d)",
                           (int)mode, RONDO_CAPTURE_MODE_GLOBAL, RONDO_CAPTURE_MODE_THREAD_LOCAL,
                           RONDO_CAPTURE_MODE_RELAXED);
    *out_before = modes_thread;
    modes_thread = mode;
    return RONDO_OK;
}
