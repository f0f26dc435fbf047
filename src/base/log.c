/* SPDX-License-Identifier: Apache-2.0
 *
 * A log line is bounded, harmless and made on the stack: logging cannot fail and takes no memory. */
#include "base/log.h"

#include <stdarg.h>

#include "base/escape.h"

#define LOG_LINE_MAX 1024u

void rondo__log_write(const rondo__log *log, rondo_log_level level, const char *format, ...) {
    if (!log || !log->function || level > log->level) return;
    char line[LOG_LINE_MAX + 1];
    va_list arguments;
    va_start(arguments, format);
    (void)rondo__escape_format(line, sizeof line, format, arguments);
    va_end(arguments);
    log->function(log->user, level, line);
}
