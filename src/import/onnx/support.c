/* SPDX-License-Identifier: Apache-2.0
 *
 * Words for messages. A name from a file may be long: it is cut, so that the reason behind it is never pushed out of the
 * message. */
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

rondo_status rondo__onnx_refuse(rondo__onnx_node *node, const char *reason) {
    rondo__onnx_context *context = node->scope->context;
    node->refused = true;
    const char *domain = "ai.onnx", *type;
    if (node->domain.size) RONDO__TRY(rondo__import_text(&context->scratch, node->domain, &domain));
    RONDO__TRY(rondo__import_text(&context->scratch, node->type, &type));
    size_t room = strlen(domain) + strlen(type) + 3;
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate(&context->scratch, room, &memory));
    (void)snprintf(memory, room, "%s::%s", domain, type);
    rondo__pb_bytes called = node->name;
    for (uint32_t i = 0; i < node->output_name_count && !called.size; i++) called = node->output_names[i];
    rondo__import_refusal refusal = {memory, reason, rondo__onnx_shown(context, called), node->version, 1};
    return rondo__import_refuse(&context->refusals, &context->scratch, &refusal);
}
