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

RONDO__HOT int32_t rondo__list_kernel_block(const void *context, const uint64_t *words) {
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
    const uint64_t *words = rondo__list_words(list, entry);
    rondo_call call = RONDO_CALL_INIT;
    call.kernel = rondo__list_kernel_of(list, entry);
    for (uint32_t i = 0; i < node->count; i++) {
        const rondo__list_detail *detail = rondo__list_detail_at(list, details[i]);
        arguments[i] = (rondo_argument){words[i], detail->length, detail->access, 0};
    }
    call.argument_count = node->count;
    call.arguments = arguments;
    call.name = node->name ? rondo__list_name_at(list, node->name) : NULL;
    return rondo__stream_launch(stream, &call);
}

static rondo_status list_check_event(const rondo_event *event) {
    if (!event->capture) return RONDO_OK;
    return RONDO__FAIL(INVALID_STATE, CAPTURE,
                       "the event to wait for was last recorded in a capture: record it "
                       "outside any before the replay");
}

static rondo_status list_enqueue_event(rondo_event *event, rondo_stream *stream, bool wait) {
    if (!wait) return rondo__event_record(event, stream);
    RONDO__TRY(list_check_event(event));
    return rondo__event_wait(event, stream);
}

static rondo_status list_enqueue_kind(const rondo__call_list *list, rondo_stream *stream, uint64_t entry,
                                      bool captured) {
    const rondo__list_node *node = rondo__list_node_at(list, entry);
    const uint64_t *words = list->entries[entry].words;
    switch (node->kind) {
    case RONDO__LIST_COPY: return rondo__stream_copy(stream, words[0], words[1], words[2], node->copy_kind);
    case RONDO__LIST_FILL: return rondo__stream_fill(stream, words[0], (uint8_t)words[1], words[2]);
    case RONDO__LIST_HOST_CALL:
        return rondo__stream_host_call(stream, rondo__list_function_of(words[0]), (void *)(uintptr_t)words[1]);
    case RONDO__LIST_CONDITION: return rondo__stream_condition_begin(stream, words[0]);
    case RONDO__LIST_RECORD:
    case RONDO__LIST_WAIT: {
        rondo_event *event = rondo__list_event_of(words);
        bool wait = node->kind == RONDO__LIST_WAIT;
        return captured ? rondo__event_outside(event, stream, wait) : list_enqueue_event(event, stream, wait);
    }
    default: return list_enqueue_call(list, stream, entry);
    }
}

/* The node did not go out: conditions that have begun before it and not ended do so now, or they would decide about what
 * is enqueued next. They are all of its stream. */
static void list_end_conditions(const rondo__call_list *list, rondo_stream *stream, uint64_t entry) {
    uint64_t open = 0;
    for (uint64_t i = 0; list->counts[RONDO__LIST_CONDITION] && i < entry; i++) {
        open += list->entries[i].operation == RONDO_LIST_JUMP;
        open -= list->entries[i].spare;
    }
    for (; open; open--) rondo__stream_condition_end(stream);
}

static rondo_status list_enqueue_node(const rondo__call_list *list, rondo_stream *stream, uint64_t entry,
                                      bool captured) {
    rondo_status status = list_enqueue_kind(list, stream, entry, captured);
    if (status) list_end_conditions(list, stream, entry);
    else
        for (uint32_t ends = list->entries[entry].spare; ends; ends--) rondo__stream_condition_end(stream);
    return status;
}

static rondo_status list_enqueue_one(const rondo__call_list *list, rondo_stream *stream, bool captured) {
    for (uint64_t i = 0; i < list->entry_count; i++) {
        rondo_status status = list_enqueue_node(list, stream, i, captured);
        if (status) return list_failed(list, status, i);
    }
    return RONDO_OK;
}

/* The steps before node `before`: one lane records, another waits. */
static rondo_status list_enqueue_steps(const rondo__call_list *list, rondo_stream *stream, const rondo__lanes *lanes,
                                       size_t *step, uint64_t before) {
    for (; *step < list->order->steps.count; ++*step) {
        const rondo__order_step *s = RONDO__BUFFER_AT(&list->order->steps, const rondo__order_step, *step);
        if (s->before > before) return RONDO_OK;
        rondo_stream *on = rondo__lanes_stream(lanes, s->lane, stream);
        rondo_event *event = lanes->events[s->event];
        RONDO__TRY_NOTE(s->wait ? rondo__event_wait(event, on) : rondo__event_record(event, on),
                        "where lane %u %s before node %llu", (unsigned)s->lane, s->wait ? "waits" : "is waited for",
                        (unsigned long long)before);
    }
    return RONDO_OK;
}

static rondo_status list_enqueue_lanes(const rondo__call_list *list, rondo_stream *stream, const rondo__lanes *lanes,
                                       bool captured) {
    size_t step = 0;
    rondo__lanes_work_for(lanes, stream);
    for (uint64_t i = 0; i < list->entry_count; i++) {
        RONDO__TRY(list_enqueue_steps(list, stream, lanes, &step, i));
        rondo_stream *on = rondo__lanes_stream(lanes, list->entries[i].lane, stream);
        rondo_status status = list_enqueue_node(list, on, i, captured);
        if (status) return list_failed(list, status, i);
    }
    return list_enqueue_steps(list, stream, lanes, &step, list->entry_count);
}

static rondo_status list_enqueue(const rondo__call_list *list, rondo_stream *stream, const rondo__lanes *lanes,
                                 bool captured) {
    return lanes ? list_enqueue_lanes(list, stream, lanes, captured) : list_enqueue_one(list, stream, captured);
}

rondo_status rondo__call_list_enqueue(const rondo__call_list *list, rondo_stream *stream, const rondo__lanes *lanes) {
    return list_enqueue(list, stream, lanes, true);
}

rondo_status rondo__call_list_check_waits(const rondo__call_list *list) {
    for (uint64_t i = 0; list->counts[RONDO__LIST_WAIT] && i < list->entry_count; i++) {
        if (rondo__list_node_at(list, i)->kind != RONDO__LIST_WAIT) continue;
        rondo_status status = list_check_event(rondo__list_event_of(list->entries[i].words));
        if (status) return list_failed(list, status, i);
    }
    return RONDO_OK;
}

void rondo__call_list_note_records(const rondo__call_list *list) {
    for (uint64_t i = 0; list->counts[RONDO__LIST_RECORD] && i < list->entry_count; i++) {
        if (rondo__list_node_at(list, i)->kind != RONDO__LIST_RECORD) continue;
        rondo_event *event = rondo__list_event_of(list->entries[i].words);
        event->recorded = true;
        event->capture = 0;
    }
}

RONDO__HOT rondo_status rondo__call_list_run_lanes(const rondo__call_list *list, rondo_stream *stream,
                                                   const rondo__lanes *lanes) {
    rondo_status status = RONDO_OK;
    if (!list->lowered) {
        status = list_enqueue(list, stream, lanes, false);
        if (status && lanes) rondo__lanes_settle(lanes); /* what did go out is not joined */
        return status;
    }
    if (!list->baked.count) return RONDO_OK;
    uint64_t failed = UINT64_MAX;
    status = rondo__stream_execute(stream, &list->baked, &failed);
    if (__builtin_expect(list->counts[RONDO__LIST_RECORD] != 0, 0)) rondo__call_list_note_records(list);
    return status || failed != UINT64_MAX ? list_failed(list, status, failed) : RONDO_OK;
}

rondo_status rondo__call_list_run(const rondo__call_list *list, rondo_stream *stream) {
    return rondo__call_list_run_lanes(list, stream, NULL);
}

/* --------------------------------------------------------------------------------------------------- looking at it */

uint64_t rondo__call_list_count(const rondo__call_list *list) { return list->entry_count; }

static uint64_t list_buffer_bytes(const rondo__buffer *buffer) {
    return (uint64_t)buffer->capacity * buffer->element_size;
}

uint64_t rondo__call_list_bytes(const rondo__call_list *list) {
    uint64_t bytes = sizeof *list + (list->memo ? RONDO__LIST_MEMO * sizeof *list->memo : 0u) + list->entries_bytes +
                     list->texts.total;
    bytes += list_buffer_bytes(&list->nodes) + list_buffer_bytes(&list->arguments) + list_buffer_bytes(&list->side);
    bytes += list_buffer_bytes(&list->details) + list_buffer_bytes(&list->references);
    bytes += list_buffer_bytes(&list->names) + list_buffer_bytes(&list->slots);
    bytes += list_buffer_bytes(&list->events) + list_buffer_bytes(&list->children) + rondo__order_bytes(list->order);
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
    out_node->lane = list->entries[entry].lane;
    out_node->kernel = rondo__list_kernel_of(list, entry);
    bool event = node->kind == RONDO__LIST_RECORD || node->kind == RONDO__LIST_WAIT;
    out_node->event = event ? rondo__list_event_of(list->entries[entry].words) : NULL;
    out_node->end = node->kind == RONDO__LIST_CONDITION ? list->entries[entry].words[1] : 0;
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
    /* Blocks of the watcher's pools are temporaries: freed or not, they stay its own. */
    return rondo__memory_alive_for(list->device->memory, r, list->watcher) ? NULL : r;
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

bool rondo__call_list_mentions(const rondo__call_list *list, uint64_t address, uint64_t bytes) {
    for (uint32_t i = RONDO__LIST_REFERENCE_FIRST; i < list->references.count; i++) {
        const rondo__memory_reference *r = RONDO__BUFFER_AT(&list->references, const rondo__memory_reference, i);
        if (address < r->base ? r->base - address < bytes : address - r->base < r->size) return true;
    }
    return false;
}

void rondo__call_list_counts(const rondo__call_list *list, uint64_t *out_by_kind) {
    memcpy(out_by_kind, list->counts, sizeof list->counts);
}

bool rondo__call_list_unverified(const rondo__call_list *list) { return list->foreign != 0; }
