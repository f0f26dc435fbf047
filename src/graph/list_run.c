/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a call list, and looking at one.
 *
 * Where the backend runs whole lists, copies, fills, host calls and long calls have become calls of the host functions
 * below, so that its loop knows one kind of entry. Elsewhere the list is enqueued node by node through the stream
 * table.
 */
#include <stdio.h>
#include <string.h>

#include "graph/list_private.h"

int32_t rondo__list_kernel_copy(const void *context, const uint64_t *words) {
    (void)context;
    if (words[2]) memmove((void *)(uintptr_t)words[0], (const void *)(uintptr_t)words[1], (size_t)words[2]);
    return 0;
}

int32_t rondo__list_kernel_fill(const void *context, const uint64_t *words) {
    (void)context;
    if (words[2]) memset((void *)(uintptr_t)words[0], (int)words[1], (size_t)words[2]);
    return 0;
}

int32_t rondo__list_kernel_host(const void *context, const uint64_t *words) {
    (void)context;
    return rondo__list_function_of(words[0])((void *)(uintptr_t)words[1]);
}

int32_t rondo__list_kernel_block(const void *context, const uint64_t *words) {
    const rondo__list_block *block = context;
    (void)words;
    return block->function(block->context, block->words);
}

const char *rondo__list_node_text(uint64_t entry, const char *name, char *buffer, size_t capacity) {
    if (name && *name) (void)snprintf(buffer, capacity, "node %llu '%s'", (unsigned long long)entry, name);
    else (void)snprintf(buffer, capacity, "node %llu", (unsigned long long)entry);
    return buffer;
}

static const char *list_text_of(const rondo__call_list *list, uint64_t entry, char *buffer, size_t capacity) {
    if (entry >= list->entry_count) return "an unknown node";
    const char *name = rondo__list_name_at(list, rondo__list_node_at(list, entry)->name);
    return rondo__list_node_text(entry, name, buffer, capacity);
}

/* The backend knows the entry's number, the list its name. */
static rondo_status list_failed(const rondo__call_list *list, rondo_status status, uint64_t failed) {
    char text[RONDO__LIST_NODE_TEXT];
    const char *name = list_text_of(list, failed, text, sizeof text);
    if (!status) return RONDO__FAIL(KERNEL_FAILED, KERNEL, "%s failed: the nodes behind it did not run", name);
    if (failed == UINT64_MAX) return status;
    if (rondo_status_code(status) != RONDO_CODE_KERNEL_FAILED) return rondo__status_note(status, "at %s", name);
    rondo_status named = RONDO__FAIL(KERNEL_FAILED, KERNEL, "%s failed: %s; the nodes behind it did not run", name,
                                     rondo_status_message(status));
    rondo_status_release(status);
    return named;
}

static rondo_status list_enqueue_call(const rondo__call_list *list, rondo_stream *stream, uint64_t entry) {
    rondo_argument arguments[RONDO_ARGUMENT_MAX];
    const rondo__list_node *node = rondo__list_node_at(list, entry);
    const uint32_t *details = RONDO__BUFFER_AT(&list->arguments, const uint32_t, node->first);
    rondo_call call = RONDO_CALL_INIT;
    const uint64_t *words;
    if (node->side) {
        const rondo__list_block *block = rondo__list_block_of(list, entry);
        call.kernel = (rondo_kernel){block->function, block->context};
        words = block->words;
    } else {
        call.kernel = (rondo_kernel){list->entries[entry].function, list->entries[entry].context};
        words = list->entries[entry].words;
    }
    for (uint32_t i = 0; i < node->count; i++) {
        const rondo__list_detail *detail = rondo__list_detail_at(list, details[i]);
        arguments[i] = (rondo_argument){words[i], detail->length, detail->access, 0};
    }
    call.argument_count = node->count;
    call.arguments = arguments;
    call.name = node->name ? rondo__list_name_at(list, node->name) : NULL;
    return rondo__stream_launch(stream, &call);
}

static rondo_status list_enqueue(const rondo__call_list *list, rondo_stream *stream) {
    for (uint64_t i = 0; i < list->entry_count; i++) {
        const rondo__list_node *node = rondo__list_node_at(list, i);
        const uint64_t *words = list->entries[i].words;
        rondo_status status;
        switch (node->kind) {
        case RONDO__LIST_COPY:
            status = rondo__stream_copy(stream, words[0], words[1], words[2], node->copy_kind);
            break;
        case RONDO__LIST_FILL: status = rondo__stream_fill(stream, words[0], (uint8_t)words[1], words[2]); break;
        case RONDO__LIST_HOST_CALL:
            status = rondo__stream_host_call(stream, rondo__list_function_of(words[0]), (void *)(uintptr_t)words[1]);
            break;
        default: status = list_enqueue_call(list, stream, i);
        }
        if (status) return list_failed(list, status, i);
    }
    return RONDO_OK;
}

rondo_status rondo__call_list_run(const rondo__call_list *list, rondo_stream *stream) {
    if (!list->lowered) return list_enqueue(list, stream);
    if (!list->baked.count) return RONDO_OK;
    uint64_t failed = UINT64_MAX;
    rondo_status status = rondo__stream_execute(stream, &list->baked, &failed);
    return status || failed != UINT64_MAX ? list_failed(list, status, failed) : RONDO_OK;
}

/* --------------------------------------------------------------------------------------------------- looking at it */

uint64_t rondo__call_list_count(const rondo__call_list *list) { return list->entry_count; }

static uint64_t list_buffer_bytes(const rondo__buffer *buffer) {
    return (uint64_t)buffer->capacity * buffer->element_size;
}

uint64_t rondo__call_list_bytes(const rondo__call_list *list) {
    uint64_t bytes = sizeof *list + list->entries_bytes + list->texts.total;
    bytes += list_buffer_bytes(&list->nodes) + list_buffer_bytes(&list->arguments) + list_buffer_bytes(&list->side);
    bytes += list_buffer_bytes(&list->details) + list_buffer_bytes(&list->references);
    bytes += list_buffer_bytes(&list->names) + list_buffer_bytes(&list->slots);
    for (uint32_t i = 0; i < list->slots.count; i++)
        bytes += list_buffer_bytes(&rondo__list_slot_at(list, i)->mentions);
    return bytes + sizeof(uint32_t) *
                       (list->detail_index.capacity + list->reference_index.capacity + list->name_index.capacity);
}

void rondo__call_list_describe(const rondo__call_list *list, uint64_t entry, rondo__call_list_node *out_node) {
    const rondo__list_node *node = rondo__list_node_at(list, entry);
    const uint64_t *words = rondo__list_words(list, entry);
    out_node->kind = node->kind;
    out_node->copy_kind = node->copy_kind;
    out_node->name = rondo__list_name_at(list, node->name);
    out_node->argument_count = node->count;
    for (uint32_t i = 0; i < node->count; i++) {
        const rondo__list_detail *detail =
            rondo__list_detail_at(list, *RONDO__BUFFER_AT(&list->arguments, const uint32_t, node->first + i));
        out_node->arguments[i] = (rondo_argument){words[i], detail->length, detail->access, 0};
        out_node->references[i] = (rondo__memory_reference){0};
        if (detail->reference >= RONDO__LIST_REFERENCE_FIRST)
            out_node->references[i] =
                *RONDO__BUFFER_AT(&list->references, const rondo__memory_reference, detail->reference);
        out_node->slots[i] = detail->slot;
    }
}

static const rondo__memory_reference *list_dead(const rondo__call_list *list, uint32_t reference) {
    if (reference < RONDO__LIST_REFERENCE_FIRST) return NULL;
    const rondo__memory_reference *r = RONDO__BUFFER_AT(&list->references, const rondo__memory_reference, reference);
    return rondo__memory_alive(list->device->memory, r) ? NULL : r;
}

rondo_status rondo__call_list_explain_stale(const rondo__call_list *list) {
    bool any = false;
    for (uint32_t r = RONDO__LIST_REFERENCE_FIRST; r < list->references.count && !any; r++)
        any = list_dead(list, r) != NULL;
    uint32_t alive = RONDO__LIST_REFERENCE_NONE; /* the one looked at last: neighbours mostly share it */
    for (uint64_t i = 0; any && i < list->entry_count; i++) {
        const rondo__list_node *node = rondo__list_node_at(list, i);
        for (uint32_t a = 0; a < node->count; a++) {
            uint32_t reference =
                rondo__list_detail_at(list, *RONDO__BUFFER_AT(&list->arguments, const uint32_t, node->first + a))
                    ->reference;
            if (reference == alive) continue;
            const rondo__memory_reference *dead = list_dead(list, reference);
            alive = reference;
            if (!dead) continue;
            char text[RONDO__LIST_NODE_TEXT], why[256];
            rondo__memory_explain(list->device->memory, dead, why, sizeof why);
            return RONDO__FAIL(
                STALE, MEMORY,
                "%s, argument %u: address 0x%llx lies in memory that is gone (%llu bytes from 0x%llx): %s",
                list_text_of(list, i, text, sizeof text), (unsigned)a,
                (unsigned long long)rondo__list_words(list, i)[a], (unsigned long long)dead->size,
                (unsigned long long)dead->base, why);
        }
    }
    return RONDO_OK;
}

void rondo__call_list_counts(const rondo__call_list *list, uint64_t *out_by_kind) {
    memcpy(out_by_kind, list->counts, sizeof list->counts);
}

bool rondo__call_list_unverified(const rondo__call_list *list) { return list->foreign != 0; }
