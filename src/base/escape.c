/* SPDX-License-Identifier: Apache-2.0
 *
 * Escaping is decided character by character: what a terminal or a log would act upon is written as bytes instead. */
#include "base/escape.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ESCAPE_FORMAT_MAX 2048u

size_t rondo__utf8_sequence(const char *text, size_t size, uint32_t *out_point) {
    if (!size) return 0;
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) {
        *out_point = s[0];
        return 1;
    }
    /* The second byte's range rules out overlong forms, surrogates and what lies past U+10FFFF. */
    size_t length = s[0] >= 0xc2 && s[0] <= 0xdf   ? 2
                    : s[0] >= 0xe0 && s[0] <= 0xef ? 3
                    : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                                   : 0;
    if (!length || size < length) return 0;
    unsigned low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    unsigned high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < low || s[1] > high) return 0;
    uint32_t point = s[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        point = point << 6 | (s[i] & 0x3fu);
    }
    *out_point = point;
    return length;
}

/* C0 and C1 controls, line and paragraph separators, marks that reorder what is around them, and the byte order mark. */
static bool escape_is_harmful(uint32_t point) {
    return point < 0x20 || (point >= 0x7f && point < 0xa0) || (point >= 0x200e && point <= 0x200f) ||
           (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069) || point == 0xfeff;
}

size_t rondo__escape(char *out, size_t capacity, const char *text, size_t size) {
    static const char digits[] = "0123456789abcdef";
    size_t at = 0, cut = 0; /* cut: the last place where "..." and the terminator would still fit */
    for (size_t i = 0; i < size;) {
        uint32_t point = 0;
        size_t length = rondo__utf8_sequence(text + i, size - i, &point);
        bool harmful = !length || escape_is_harmful(point);
        if (!length) length = 1;
        size_t need = harmful ? 4 * length : length;
        if (at + 4 <= capacity) cut = at;
        if (at + need + 1 > capacity) {
            memcpy(out + cut, "...", 4);
            return cut + 3;
        }
        for (size_t k = 0; k < length; k++) {
            unsigned char byte = (unsigned char)text[i + k];
            if (harmful) {
                out[at++] = '\\';
                out[at++] = 'x';
                out[at++] = digits[byte >> 4];
                out[at++] = digits[byte & 15];
            } else {
                out[at++] = (char)byte;
            }
        }
        i += length;
    }
    out[at] = 0;
    return at;
}

size_t rondo__escape_format(char *out, size_t capacity, const char *format, va_list arguments) {
    char raw[ESCAPE_FORMAT_MAX + 4];
    int wanted = vsnprintf(raw, sizeof raw, format, arguments);
    if (wanted < 0) {
        static const char unknown[] = "(a message that could not be formatted)";
        return rondo__escape(out, capacity, unknown, sizeof unknown - 1);
    }
    /* Cut text is longer than any capacity, so that escape says so itself and never sees the place of the cut. */
    size_t size = (size_t)wanted < sizeof raw ? (size_t)wanted : sizeof raw - 1;
    return rondo__escape(out, capacity, raw, size);
}
