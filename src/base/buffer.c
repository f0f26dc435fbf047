/* SPDX-License-Identifier: Apache-2.0
 *
 * Growable arrays: geometric growth that stops at a stated maximum, and text on top of it. The terminator of a text
 * takes one of the maximum's elements and is not counted. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/escape.h"

#define BUFFER_FIRST_BYTES 64u

void rondo__buffer_init(rondo__buffer *buffer, const rondo_allocator *allocator, size_t element_size, size_t maximum) {
    *buffer = (rondo__buffer){.allocator = *allocator, .element_size = element_size, .maximum = maximum};
}

void rondo__buffer_deinit(rondo__buffer *buffer) {
    rondo__free(&buffer->allocator, buffer->data, buffer->capacity * buffer->element_size);
    rondo__buffer_init(buffer, &buffer->allocator, buffer->element_size, buffer->maximum);
}

rondo_status rondo__buffer_reserve(rondo__buffer *buffer, size_t count) {
    if (count <= buffer->capacity) return RONDO_OK;
    if (count > buffer->maximum)
        return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "%zu elements exceed the limit of %zu", count, buffer->maximum);
    size_t capacity = buffer->capacity > buffer->maximum / 2 ? buffer->maximum : buffer->capacity * 2;
    size_t first = buffer->element_size < BUFFER_FIRST_BYTES ? BUFFER_FIRST_BYTES / buffer->element_size : 1;
    if (capacity < first) capacity = first < buffer->maximum ? first : buffer->maximum;
    if (capacity < count) capacity = count;
    size_t bytes = 0;
    if (!rondo__checked_mul_size(capacity, buffer->element_size, &bytes) &&
        !rondo__checked_mul_size(capacity = count, buffer->element_size, &bytes))
        return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "%zu elements of %zu bytes exceed the address space", count,
                           buffer->element_size);
    RONDO__TRY(rondo__reallocate(&buffer->allocator, &buffer->data, buffer->capacity * buffer->element_size, bytes));
    buffer->capacity = capacity;
    return RONDO_OK;
}

rondo_status rondo__buffer_append(rondo__buffer *buffer, const void *elements, size_t count) {
    size_t total = 0;
    if (!count) return RONDO_OK;
    if (!rondo__checked_add_size(buffer->count, count, &total))
        return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "%zu elements more exceed the address space", count);
    RONDO__TRY(rondo__buffer_reserve(buffer, total));
    char *end = (char *)buffer->data + buffer->count * buffer->element_size;
    if (elements) memcpy(end, elements, count * buffer->element_size);
    else memset(end, 0, count * buffer->element_size);
    buffer->count = total;
    return RONDO_OK;
}

void rondo__buffer_trim(rondo__buffer *buffer) {
    if (buffer->count == buffer->capacity || !buffer->count) return;
    rondo_status status = rondo__reallocate(&buffer->allocator, &buffer->data, buffer->capacity * buffer->element_size,
                                            buffer->count * buffer->element_size);
    if (!status) buffer->capacity = buffer->count;
    rondo_status_release(status);
}

/* Room for `length` more characters and the terminator. */
static rondo_status buffer_text_reserve(rondo__buffer *buffer, size_t length) {
    size_t total = 0;
    if (!rondo__checked_add_size(buffer->count, length, &total) || !rondo__checked_add_size(total, 1, &total))
        return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "%zu characters more exceed the address space", length);
    return rondo__buffer_reserve(buffer, total);
}

static rondo_status buffer_text_add(rondo__buffer *buffer, const char *text, size_t length) {
    RONDO__TRY(buffer_text_reserve(buffer, length));
    char *end = (char *)buffer->data + buffer->count;
    if (length) memcpy(end, text, length);
    end[length] = 0;
    buffer->count += length;
    return RONDO_OK;
}

rondo_status rondo__text_append(rondo__buffer *buffer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t room = buffer->capacity - buffer->count;
    int length = vsnprintf(room ? (char *)buffer->data + buffer->count : NULL, room, format, arguments);
    va_end(arguments);
    if (length < 0) {
        if (room) ((char *)buffer->data)[buffer->count] = 0;
        return RONDO__FAIL(INTERNAL, NONE, "the text '%s' could not be formatted", format);
    }
    if ((size_t)length >= room) {
        /* The terminator goes back to where it was before the attempt, also when there is no memory for the rest. */
        if (room) ((char *)buffer->data)[buffer->count] = 0;
        RONDO__TRY(buffer_text_reserve(buffer, (size_t)length));
        va_start(arguments, format);
        (void)vsnprintf((char *)buffer->data + buffer->count, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    buffer->count += (size_t)length;
    return RONDO_OK;
}

/* The escape of a character inside a JSON string; null when it stands for itself. */
static const char *buffer_json_escape(uint32_t point, char hex[8]) {
    switch (point) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: break;
    }
    if (point >= 0x20 && point != 0x7f) return NULL;
    (void)snprintf(hex, 8, "\\u%04x", (unsigned)point);
    return hex;
}

rondo_status rondo__text_append_json(rondo__buffer *buffer, const char *text, size_t length) {
    RONDO__TRY(buffer_text_add(buffer, "\"", 1));
    size_t start = 0; /* of the run of characters that stand for themselves */
    for (size_t i = 0; i < length;) {
        uint32_t point = 0;
        char hex[8];
        size_t size = rondo__utf8_sequence(text + i, length - i, &point);
        const char *escape = size ? buffer_json_escape(point, hex) : "\xef\xbf\xbd";
        if (!size) size = 1;
        if (escape) {
            RONDO__TRY(buffer_text_add(buffer, text + start, i - start));
            RONDO__TRY(buffer_text_add(buffer, escape, strlen(escape)));
            start = i + size;
        }
        i += size;
    }
    RONDO__TRY(buffer_text_add(buffer, text + start, length - start));
    return buffer_text_add(buffer, "\"", 1);
}

const char *rondo__text(const rondo__buffer *buffer) { return buffer->data ? buffer->data : ""; }
