/* SPDX-License-Identifier: Apache-2.0
 *
 * Making, annotating and passing on failures. */
#ifndef RONDO_SRC_BASE_STATUS_H
#define RONDO_SRC_BASE_STATUS_H

#include <rondo/types.h>

/* Longer texts are cut, and end in "...". */
#define RONDO__STATUS_MESSAGE_MAX 1024u
#define RONDO__STATUS_NOTES_MAX 64u

/* Never returns null, also without memory. `file` must be a literal. Control characters and invalid UTF-8 in the text
 * are written as \xNN, so that a hostile name cannot forge a line. */
rondo_status rondo__status_make(rondo_code code, rondo_layer layer, const char *file, int32_t line, const char *format,
                                ...) RONDO_PRINTF(5, 6) __attribute__((returns_nonnull, cold));
/* Adds a note and returns the same status. Null stays null; a note that finds no memory is dropped. */
rondo_status rondo__status_note(rondo_status status, const char *format, ...) RONDO_PRINTF(2, 3) __attribute__((cold));

/* What every replay goes through, whatever room it is in: these functions lie side by side in the library. Between two calls
 * a program runs code of its own, and fetching the path anew is then half of what a call costs. */
#define RONDO__HOT __attribute__((hot))

#if defined(__clang_analyzer__)
/* The analyser does not believe the attribute. */
static inline rondo_status rondo__status_analysed(rondo_status status) {
    if (!status) __builtin_unreachable();
    return status;
}
#define rondo__status_make(...) rondo__status_analysed(rondo__status_make(__VA_ARGS__))
#endif

/* RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input '%s': ...", name) is a status to return. */
#define RONDO__FAIL(code, layer, ...) \
    rondo__status_make(RONDO_CODE_##code, RONDO_LAYER_##layer, __FILE__, (int32_t)__LINE__, __VA_ARGS__)

/* Returns the failure of an expression from the enclosing function. */
#define RONDO__TRY(expression)                           \
    do {                                                 \
        rondo_status rondo__try_status = (expression);   \
        if (rondo__try_status) return rondo__try_status; \
    } while (0)

/* The same with a note about what was being done. */
#define RONDO__TRY_NOTE(expression, ...)                                                  \
    do {                                                                                  \
        rondo_status rondo__try_status = (expression);                                    \
        if (rondo__try_status) return rondo__status_note(rondo__try_status, __VA_ARGS__); \
    } while (0)

/* Keeps the first of two failures and releases the second. */
rondo_status rondo__status_first(rondo_status first, rondo_status second);
/* Releases a failure that is of no interest here. */
#define RONDO__IGNORE(expression) rondo_status_release(expression)

#endif
