/* SPDX-License-Identifier: Apache-2.0
 *
 * How the examples treat failures: say what failed and stop. A program of your own would hand the status on. */
#ifndef RONDO_EXAMPLES_MUST_H
#define RONDO_EXAMPLES_MUST_H

#include <rondo/rondo.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline void must(rondo_status status) {
    if (!status) return;
    char text[2048];
    rondo_status_format(status, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static inline void must_be(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
}

static inline double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

#endif
