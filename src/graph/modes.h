/* SPDX-License-Identifier: Apache-2.0
 *
 * Capture modes: the table, and the calling thread's own mode. */
#ifndef RONDO_SRC_GRAPH_MODES_H
#define RONDO_SRC_GRAPH_MODES_H

#include <rondo/runtime.h>

#define RONDO__MODE_ROWS 9

typedef struct rondo__mode_row {
    rondo_capture_mode capture, thread;
    bool allowed[2]; /* an unsafe call, of the thread that began the capture, and of another */
} rondo__mode_row;

extern const rondo__mode_row rondo__modes[RONDO__MODE_ROWS];

const char *rondo__mode_name(rondo_capture_mode mode);
rondo_capture_mode rondo__mode_of_thread(void);

#endif
