/* SPDX-License-Identifier: Apache-2.0
 *
 * Words for messages, and text of a file as C has it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "import/common/common.h"

rondo_status rondo__import_within(rondo_status status, const char *format, ...) {
    if (!status || rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY) return status;
    char prefix[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    rondo_status made =
        rondo__status_make(rondo_status_code(status), rondo_status_layer(status), rondo_status_file(status),
                           rondo_status_line(status), "%s: %s", prefix, rondo_status_message(status));
    size_t notes = rondo_status_note_count(status);
    for (size_t i = 0; i < notes; i++) made = rondo__status_note(made, "%s", rondo_status_note(status, i));
    rondo_status_release(status);
    return made;
}

rondo__pb_bytes rondo__import_field_text(rondo__pb_reader reader, uint32_t number) {
    rondo__pb_bytes found = {0};
    rondo__pb_field field;
    while (rondo__pb_next(&reader, &field))
        if (field.number == number && field.wire == RONDO__PB_BYTES) found = field.payload;
    rondo_status_release(rondo__pb_end(&reader));
    return found;
}

rondo_status rondo__import_text(rondo__arena *arena, rondo__pb_bytes bytes, const char **out_text) {
    return rondo__arena_string(arena, bytes.size ? (const char *)bytes.data : "", bytes.size, out_text);
}

bool rondo__import_is(rondo__pb_bytes bytes, const char *text) {
    size_t size = strlen(text);
    return bytes.size == size && (size == 0 || memcmp(bytes.data, text, size) == 0);
}
