/* SPDX-License-Identifier: Apache-2.0
 *
 * How the tool speaks: one line on standard error, then notes; and which exit code a failure becomes. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"

static int exit_code_of(rondo_status status) {
    rondo_code code = rondo_status_code(status);
    rondo_layer layer = rondo_status_layer(status);
    if (code == RONDO_CODE_OK) return CLI_DONE;
    if (code == RONDO_CODE_UNSUPPORTED || code == RONDO_CODE_UNAVAILABLE) return CLI_UNSUPPORTED;
    if (layer == RONDO_LAYER_DRIVER || layer == RONDO_LAYER_LOADING) return CLI_UNSUPPORTED;
    /* An open size or a value that only the command line can give. */
    if (layer == RONDO_LAYER_INPUT && code == RONDO_CODE_INVALID_ARGUMENT) return CLI_USAGE;
    return CLI_BAD_DATA;
}

int cli_report(rondo_status status) {
    if (!status) return CLI_DONE;
    int exit_code = exit_code_of(status);
    fprintf(stderr, "rondo: %s (%s): %s\n", rondo_code_name(rondo_status_code(status)),
            rondo_layer_name(rondo_status_layer(status)), rondo_status_message(status));
    for (size_t i = 0; i < rondo_status_note_count(status); ++i)
        fprintf(stderr, "  %s\n", rondo_status_note(status, i));
    rondo_status_release(status);
    return exit_code;
}

int cli_fail(int exit_code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("rondo: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    return exit_code;
}

int32_t cli_write(void *user, const char *data, size_t size) {
    return fwrite(data, 1, size, (FILE *)user) == size ? 0 : 1;
}

static void log_line(void *user, rondo_log_level level, const char *text) {
    (void)user;
    fprintf(stderr, "rondo: %s: %s\n",
            level == RONDO_LOG_ERROR     ? "error"
            : level == RONDO_LOG_WARNING ? "warning"
                                         : "note",
            text);
}

rondo_status cli_instance(const cli_options *options, rondo_log_level level, rondo_instance **out_instance) {
    rondo_instance_options instance = RONDO_INSTANCE_OPTIONS_INIT;
    instance.log = log_line;
    instance.log_level = level;
    instance.plugins = options->plugins;
    instance.plugin_count = options->plugin_count;
    return rondo_instance_create(&instance, out_instance);
}

uint64_t cli_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void *cli_allocate(size_t count, size_t size) {
    void *pointer = calloc(count ? count : 1, size ? size : 1);
    if (!pointer) exit(cli_fail(CLI_BAD_DATA, "out of memory: %zu elements of %zu bytes", count, size));
    return pointer;
}

void *cli_grow(void *pointer, size_t count, size_t size) {
    void *grown = reallocarray(pointer, count ? count : 1, size);
    if (!grown) exit(cli_fail(CLI_BAD_DATA, "out of memory: %zu elements of %zu bytes", count, size));
    return grown;
}
