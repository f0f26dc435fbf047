/* SPDX-License-Identifier: Apache-2.0
 *
 * Words for messages, and the list of what cannot be imported. A name from a file may be long: it is cut, so that the
 * reason behind it is never pushed out of the message. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "import/onnx/onnx.h"

const char *rondo__onnx_shown(rondo__onnx_context *context, rondo__pb_bytes text) {
    char *out = context->shown[context->shown_next++ % 4u];
    size_t room = sizeof context->shown[0] - 4;
    size_t size = text.size < room ? text.size : room;
    for (size_t i = 0; i < size; i++) out[i] = text.data[i] ? (char)text.data[i] : '?';
    memcpy(out + size, size < text.size ? "..." : "", size < text.size ? 4 : 1);
    return out;
}

const char *rondo__onnx_label(rondo__onnx_node *node) {
    rondo__onnx_context *context = node->scope->context;
    rondo__pb_bytes name = node->name;
    for (uint32_t i = 0; i < node->output_name_count && !name.size; i++) name = node->output_names[i];
    int name_size = (int)(name.size < 100 ? name.size : 100),
        type_size = (int)(node->type.size < 40 ? node->type.size : 40);
    char *out = context->shown[context->shown_next++ % 4u];
    (void)snprintf(out, sizeof context->shown[0], "'%.*s%s' (%.*s%s)", name_size,
                   name.size ? (const char *)name.data : "", name.size > 100 ? "..." : "", type_size,
                   node->type.size ? (const char *)node->type.data : "", node->type.size > 40 ? "..." : "");
    return out;
}

rondo_status rondo__onnx_within(rondo_status status, const char *format, ...) {
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

rondo__pb_bytes rondo__onnx_field_text(rondo__pb_reader reader, uint32_t number) {
    rondo__pb_bytes found = {0};
    rondo__pb_field field;
    while (rondo__pb_next(&reader, &field))
        if (field.number == number && field.wire == RONDO__PB_BYTES) found = field.payload;
    rondo_status_release(rondo__pb_end(&reader));
    return found;
}

rondo_status rondo__onnx_text(rondo__arena *arena, rondo__pb_bytes bytes, const char **out_text) {
    return rondo__arena_string(arena, bytes.size ? (const char *)bytes.data : "", bytes.size, out_text);
}

bool rondo__onnx_is(rondo__pb_bytes bytes, const char *text) {
    size_t size = strlen(text);
    return bytes.size == size && (size == 0 || memcmp(bytes.data, text, size) == 0);
}

rondo_status rondo__onnx_refuse(rondo__onnx_node *node, const char *reason) {
    rondo__onnx_context *context = node->scope->context;
    node->refused = true;
    const char *domain = "ai.onnx";
    if (node->domain.size) RONDO__TRY(rondo__onnx_text(&context->scratch, node->domain, &domain));
    const char *type;
    RONDO__TRY(rondo__onnx_text(&context->scratch, node->type, &type));
    size_t room = strlen(domain) + strlen(type) + (reason ? strlen(reason) : 0) + 40;
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate(&context->scratch, room, &memory));
    char *key = memory;
    int operator_size = snprintf(key, room, "%s::%s", domain, type);
    int size = snprintf(key, room, "%s::%s\n%lld\n%s", domain, type, (long long)node->version, reason ? reason : "");
    uint32_t before;
    RONDO__TRY(rondo__onnx_names_insert(&context->refusals_seen, (rondo__pb_bytes){(const uint8_t *)key, (size_t)size},
                                        (uint32_t)context->refusals.count, &before));
    if (before != RONDO__ONNX_NAMES_NONE) {
        RONDO__BUFFER_AT(&context->refusals, rondo__onnx_unsupported, before)->uses++;
        return RONDO_OK;
    }
    rondo__onnx_unsupported entry = {.reason = reason, .version = node->version, .uses = 1};
    RONDO__TRY(rondo__arena_string(&context->scratch, key, (size_t)operator_size, &entry.operator_name));
    rondo__pb_bytes called = node->name;
    for (uint32_t i = 0; i < node->output_name_count && !called.size; i++) called = node->output_names[i];
    const char *shown = rondo__onnx_shown(context, called);
    RONDO__TRY(rondo__arena_string(&context->scratch, shown, strlen(shown), &entry.node));
    return rondo__buffer_append(&context->refusals, &entry, 1);
}

rondo_status rondo__onnx_refusals(rondo__onnx_context *context) {
    size_t count = context->refusals.count;
    if (!count) return RONDO_OK;
    const rondo__onnx_unsupported *entries = context->refusals.data;
    uint64_t uses = 0;
    for (size_t i = 0; i < count; i++) uses += entries[i].uses;
    rondo_status status =
        RONDO__FAIL(UNSUPPORTED, CONVERTER, "%zu operator%s not supported, used by %llu node%s", count,
                    count == 1 ? " is" : "s are", (unsigned long long)uses, uses == 1 ? "" : "s");
    /* One note is kept for what does not fit, and one for whoever hands the failure on. */
    size_t room = RONDO__STATUS_NOTES_MAX - 2;
    for (size_t i = 0; i < count && i < room; i++) {
        const rondo__onnx_unsupported *entry = &entries[i];
        status = rondo__status_note(status, "%.200s version %lld (used %llu time%s, first at node '%s')%s%s",
                                    entry->operator_name, (long long)entry->version, (unsigned long long)entry->uses,
                                    entry->uses == 1 ? "" : "s", entry->node, entry->reason ? ": " : "",
                                    entry->reason ? entry->reason : "");
    }
    if (count > room) status = rondo__status_note(status, "and %zu more", count - room);
    return status;
}
