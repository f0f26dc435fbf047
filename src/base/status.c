/* SPDX-License-Identifier: Apache-2.0
 *
 * The status word: null is success, an even word points to a payload, an odd word carries code and layer itself, so that
 * a failure never turns into a success for want of memory. Texts are made harmless before they are kept: whoever prints
 * a failure may print names that came from a hostile file. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"

typedef struct status_note {
    struct status_note *next;
    char text[];
} status_note;

struct rondo_status_object {
    rondo_code code;
    rondo_layer layer;
    int32_t line;
    uint32_t note_count;
    const char *file;
    status_note *first, *last;
    char message[];
};

_Static_assert(sizeof(rondo_status) == sizeof(uintptr_t), "a status is one word");

static bool status_is_packed(rondo_status status) { return ((uintptr_t)status & 1u) != 0; }

static rondo_status status_pack(rondo_code code, rondo_layer layer) {
    return (rondo_status)(((uintptr_t)(uint32_t)code << 16) | ((uintptr_t)(uint32_t)layer << 8) | 1u);
}

rondo_code rondo_status_code(rondo_status status) {
    if (!status) return RONDO_CODE_OK;
    if (status_is_packed(status)) return (rondo_code)(((uintptr_t)status >> 16) & 0xffu);
    return status->code;
}

rondo_layer rondo_status_layer(rondo_status status) {
    if (!status) return RONDO_LAYER_NONE;
    if (status_is_packed(status)) return (rondo_layer)(((uintptr_t)status >> 8) & 0xffu);
    return status->layer;
}

const char *rondo_status_message(rondo_status status) {
    if (!status) return "";
    if (status_is_packed(status)) return "no memory for a message";
    return status->message;
}

const char *rondo_status_file(rondo_status status) { return !status || status_is_packed(status) ? "" : status->file; }

int32_t rondo_status_line(rondo_status status) { return !status || status_is_packed(status) ? 0 : status->line; }

size_t rondo_status_note_count(rondo_status status) {
    return !status || status_is_packed(status) ? 0 : status->note_count;
}

const char *rondo_status_note(rondo_status status, size_t index) {
    if (!status || status_is_packed(status) || index >= status->note_count) return "";
    const status_note *note = status->first;
    while (index--) note = note->next;
    return note->text;
}

/* Appends what fits and always counts. */
static void status_put(char *buffer, size_t capacity, size_t *length, const char *text) {
    size_t size = strlen(text);
    if (*length + 1 < capacity) {
        size_t room = capacity - 1 - *length, part = size < room ? size : room;
        memcpy(buffer + *length, text, part);
        buffer[*length + part] = 0;
    }
    *length += size;
}

size_t rondo_status_format(rondo_status status, char *buffer, size_t capacity) {
    size_t length = 0;
    if (!buffer) capacity = 0;
    if (capacity) buffer[0] = 0;
    status_put(buffer, capacity, &length, rondo_code_name(rondo_status_code(status)));
    if (!status) return length;
    if (rondo_status_layer(status) != RONDO_LAYER_NONE) {
        status_put(buffer, capacity, &length, " (");
        status_put(buffer, capacity, &length, rondo_layer_name(rondo_status_layer(status)));
        status_put(buffer, capacity, &length, ")");
    }
    status_put(buffer, capacity, &length, ": ");
    status_put(buffer, capacity, &length, rondo_status_message(status));
    if (status_is_packed(status)) return length;
    for (const status_note *note = status->first; note; note = note->next) {
        status_put(buffer, capacity, &length, "\n  ");
        status_put(buffer, capacity, &length, note->text);
    }
    return length;
}

void rondo_status_release(rondo_status status) {
    if (!status || status_is_packed(status)) return;
    for (status_note *note = status->first; note;) {
        status_note *next = note->next;
        free(note);
        note = next;
    }
    free(status);
}

#undef rondo__status_make
rondo_status rondo__status_make(rondo_code code, rondo_layer layer, const char *file, int32_t line, const char *format,
                                ...) {
    /* A caller that passes a wrong code still reports a failure. */
    if (code <= RONDO_CODE_OK || code >= RONDO_CODE_COUNT) code = RONDO_CODE_INTERNAL;
    if (layer < 0 || layer >= RONDO_LAYER_COUNT) layer = RONDO_LAYER_NONE;
    char text[RONDO__STATUS_MESSAGE_MAX + 1];
    va_list arguments;
    va_start(arguments, format);
    size_t length = rondo__escape_format(text, sizeof text, format, arguments);
    va_end(arguments);
    rondo_status status = malloc(sizeof *status + length + 1);
    if (!status) return status_pack(code, layer);
    *status = (struct rondo_status_object){.code = code, .layer = layer, .line = line, .file = file ? file : ""};
    memcpy(status->message, text, length + 1);
    return status;
}

rondo_status rondo_status_make(rondo_code code, rondo_layer layer, const char *text) {
    return rondo__status_make(code, layer, "", 0, "%s", text ? text : "");
}

rondo_status rondo__status_note(rondo_status status, const char *format, ...) {
    if (!status || status_is_packed(status) || status->note_count >= RONDO__STATUS_NOTES_MAX) return status;
    char text[RONDO__STATUS_MESSAGE_MAX + 1];
    va_list arguments;
    va_start(arguments, format);
    size_t length = rondo__escape_format(text, sizeof text, format, arguments);
    va_end(arguments);
    status_note *note = malloc(sizeof *note + length + 1);
    if (!note) return status;
    note->next = NULL;
    memcpy(note->text, text, length + 1);
    if (status->last) status->last->next = note;
    else status->first = note;
    status->last = note;
    status->note_count++;
    return status;
}

rondo_status rondo__status_first(rondo_status first, rondo_status second) {
    if (!first) return second;
    rondo_status_release(second);
    return first;
}
