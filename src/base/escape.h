/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that may come from a hostile file, made safe to print: one line, valid UTF-8, nothing that moves a cursor. */
#ifndef RONDO_SRC_BASE_ESCAPE_H
#define RONDO_SRC_BASE_ESCAPE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the valid UTF-8 sequence at text (1 to 4), or 0 when the bytes there are none. *out_point is its number. */
size_t rondo__utf8_sequence(const char *text, size_t size, uint32_t *out_point);

/* Writes the text with control characters, characters that break or reorder a line, and invalid UTF-8 as \xNN a byte.
 * Cuts at a whole character, with "..." at the end, when it does not fit. capacity counts the terminator and is at
 * least 8. Returns the length. */
size_t rondo__escape(char *out, size_t capacity, const char *text, size_t size);

/* The same of a formatted text. Takes no memory. capacity is at most 2048. */
size_t rondo__escape_format(char *out, size_t capacity, const char *format, va_list arguments);

#endif
