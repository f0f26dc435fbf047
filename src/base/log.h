/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an instance's lines go. */
#ifndef RONDO_SRC_BASE_LOG_H
#define RONDO_SRC_BASE_LOG_H

#include <rondo/types.h>

typedef struct rondo__log {
    rondo_log_function function; /* null: dropped */
    void *user;
    rondo_log_level level;
} rondo__log;

/* One bounded line. Safe with a null log. */
void rondo__log_write(const rondo__log *log, rondo_log_level level, const char *format, ...) RONDO_PRINTF(3, 4);

#endif
