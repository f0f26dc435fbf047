/* SPDX-License-Identifier: Apache-2.0
 *
 * Making a call list: append, seal, bind, update.
 *
 * Everything that can fail comes before anything is written, so a failed append or update leaves the list as it was.
 */
#include "graph/list.h"

#include <string.h>
#include <sys/mman.h>

#include "graph/list_private.h"
#include "graph/rng.h"

#define LIST_LINE 64u
#define LIST_LONG 4096u /* elements */
#define LIST_GROWTH 8u

/* Long arrays grow faster, so that little is copied on the way; what was taken in advance is not touched, and seal
 * gives it back. */
static size_t list_larger(size_t capacity) {
    if (capacity > RONDO__LIST_ARGUMENTS_MAX / LIST_GROWTH) return RONDO__LIST_ARGUMENTS_MAX;
    return capacity < LIST_LONG ? capacity * 2u : capacity * LIST_GROWTH;
}

/* A long list is walked from end to end at each replay: asking for large pages spares faults now and look-ups then. It
 * is but advice about memory that is ours; whether it is taken does not matter. */
static void list_prefer_huge_pages(const char *memory, size_t bytes) {
#if defined(MADV_HUGEPAGE)
    uintptr_t start = ((uintptr_t)memory + RONDO__LIST_HUGE - 1u) & ~(uintptr_t)(RONDO__LIST_HUGE - 1u);
    uintptr_t end = ((uintptr_t)memory + bytes) & ~(uintptr_t)(RONDO__LIST_HUGE - 1u);
    if (end > start) (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)bytes;
#endif
}

rondo_status rondo__list_grow(rondo__buffer *buffer, size_t count) {
    size_t want;
    if (!rondo__checked_add_size(buffer->count, count, &want))
        return RONDO__FAIL(OUT_OF_RANGE, CAPTURE, "the call list cannot grow by %zu elements", count);
    size_t grown = list_larger(buffer->capacity);
    if (grown > buffer->maximum) grown = buffer->maximum;
    RONDO__TRY(rondo__buffer_reserve(buffer, grown > want ? grown : want));
    list_prefer_huge_pages(buffer->data, buffer->capacity * buffer->element_size);
    return RONDO_OK;
}

rondo_status rondo__call_list_create(rondo_device *device, rondo__memory_watcher *watcher,
                                     rondo__call_list **out_list) {
    const uint32_t host = RONDO_DEVICE_HOST_ADDRESSABLE | RONDO_DEVICE_HOST_KERNELS;
    const rondo__list_detail value = {0, RONDO__LIST_REFERENCE_NONE, RONDO__LIST_NO_SLOT, RONDO_ACCESS_VALUE, 0};
    uint32_t capabilities = device->properties.capabilities;
    void *memory;
    RONDO__TRY(rondo__allocate_zeroed(&device->allocator, sizeof(rondo__call_list), &memory));
    rondo__call_list *list = memory;
    list->allocator = device->allocator;
    list->device = device;
    list->watcher = watcher;
    list->lowered = (capabilities & host) == host && device->table->stream->execute_list;
    list->addressable = (capabilities & RONDO_DEVICE_HOST_ADDRESSABLE) != 0;
    list->slots_low = UINT64_MAX;
    rondo__buffer_init(&list->nodes, &list->allocator, sizeof(rondo__list_node), RONDO__LIST_ENTRIES_MAX);
    rondo__buffer_init(&list->arguments, &list->allocator, sizeof(uint32_t), RONDO__LIST_ARGUMENTS_MAX);
    rondo__buffer_init(&list->side, &list->allocator, sizeof(uint64_t), RONDO__LIST_ARGUMENTS_MAX);
    rondo__buffer_init(&list->slots, &list->allocator, sizeof(rondo__list_slot), UINT32_MAX - 1u);
    rondo__buffer_init(&list->events, &list->allocator, sizeof(rondo_event *), RONDO__LIST_ENTRIES_MAX);
    rondo__buffer_init(&list->children, &list->allocator, sizeof(rondo__list_child), RONDO__LIST_ENTRIES_MAX);
    rondo_status status = rondo__list_intern_init(list);
    if (!status) status = rondo__buffer_append(&list->details, &value, 1);
    if (status) {
        rondo__call_list_destroy(list);
        return status;
    }
    *out_list = list;
    return RONDO_OK;
}

void rondo__call_list_destroy(rondo__call_list *list) {
    if (!list) return;
    for (size_t i = 0; i < list->slots.count; i++)
        rondo__buffer_deinit(&rondo__list_slot_at(list, (uint32_t)i)->mentions);
    for (size_t i = 0; i < list->events.count; i++)
        rondo_event_release(*RONDO__BUFFER_AT(&list->events, rondo_event *, i));
    rondo__buffer_deinit(&list->events);
    rondo__buffer_deinit(&list->children);
    rondo__order_destroy(list->order);
    rondo__list_intern_deinit(list);
    rondo__buffer_deinit(&list->slots);
    rondo__buffer_deinit(&list->side);
    rondo__buffer_deinit(&list->arguments);
    rondo__buffer_deinit(&list->nodes);
    rondo__free(&list->allocator, list->entries_raw, list->entries_bytes);
    rondo_allocator allocator = list->allocator;
    rondo__free(&allocator, list, sizeof *list);
}

/* ------------------------------------------------------------------------------------------------------- slots */

rondo_status rondo__call_list_add_slot(rondo__call_list *list, uint64_t address, uint64_t length, uint32_t *out_slot) {
    uint64_t end;
    if (length == 0) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "a slot of no bytes holds nothing");
    if (!rondo__checked_add_u64(address, length, &end))
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "a slot of %llu bytes from 0x%llx passes the end of memory",
                           (unsigned long long)length, (unsigned long long)address);
    for (size_t i = 0; address && i < list->slots.count; i++) {
        const rondo__list_slot *other = rondo__list_slot_at(list, (uint32_t)i);
        if (other->address && address < other->address + other->length && other->address < end)
            return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "its range overlaps that of slot %zu", i);
    }
    RONDO__TRY(rondo__list_room(&list->slots, 1));
    rondo__list_slot slot = {.address = address, .length = length, .access = RONDO_ACCESS_BOTH};
    rondo__buffer_init(&slot.mentions, &list->allocator, sizeof(rondo__list_mention), RONDO__LIST_ARGUMENTS_MAX);
    *out_slot = (uint32_t)list->slots.count;
    RONDO__TRY(rondo__buffer_append(&list->slots, &slot, 1));
    if (address && address < list->slots_low) list->slots_low = address;
    if (address && end > list->slots_high) list->slots_high = end;
    return RONDO_OK;
}

void rondo__call_list_slot_access(rondo__call_list *list, uint32_t slot, uint32_t access) {
    rondo__list_slot_at(list, slot)->access = access;
}

void rondo__call_list_slot_close(rondo__call_list *list, uint32_t slot) {
    rondo__list_slot_at(list, slot)->address = 0;
    rondo__list_intern_forget(list);
}

uint64_t rondo__call_list_slot_mentions(const rondo__call_list *list, uint32_t slot, bool *out_covered) {
    const rondo__list_slot *s = rondo__list_slot_at(list, slot);
    bool covered = false;
    for (size_t i = 0; i < s->mentions.count && !covered; i++) {
        const rondo__list_mention *m = RONDO__BUFFER_AT(&s->mentions, const rondo__list_mention, i);
        const rondo__list_node *node = rondo__list_node_at(list, m->entry);
        const rondo__list_detail *d =
            rondo__list_detail_at(list, *RONDO__BUFFER_AT(&list->arguments, const uint32_t, node->first + m->argument));
        covered = d->access == RONDO_ACCESS_WRITE && m->addend == 0 && (d->length == 0 || d->length >= s->length);
    }
    *out_covered = covered;
    return s->mentions.count;
}

/* ----------------------------------------------------------------------------------------------------- entries */

/* The hot array grows by the allocator's plain resizing, which moves pages instead of copying them, and starts at the
 * first cache line inside what the allocator gives. */
static rondo_status list_grow_entries(rondo__call_list *list) {
    size_t capacity = list->entry_capacity ? list_larger(list->entry_capacity) : 16u;
    if (list->entry_count >= RONDO__LIST_ENTRIES_MAX)
        return RONDO__FAIL(OUT_OF_RANGE, CAPTURE, "a graph holds at most %zu nodes", RONDO__LIST_ENTRIES_MAX);
    size_t bytes = capacity * sizeof(rondo_list_entry) + LIST_LINE;
    size_t lead = list->entries ? (size_t)((char *)list->entries - (char *)list->entries_raw) : 0;
    RONDO__TRY(rondo__reallocate(&list->allocator, &list->entries_raw, list->entries_bytes, bytes));
    list->entries_bytes = bytes;
    char *raw = list->entries_raw;
    size_t lead_now = (LIST_LINE - (size_t)((uintptr_t)raw % LIST_LINE)) % LIST_LINE;
    if (lead_now != lead && list->entry_count)
        memmove(raw + lead_now, raw + lead, list->entry_count * sizeof(rondo_list_entry));
    list->entries = (rondo_list_entry *)(void *)(raw + lead_now);
    list->entry_capacity = capacity;
    list_prefer_huge_pages(raw, bytes);
    return RONDO_OK;
}

static const uint16_t list_operations[RONDO__LIST_KINDS] = {[RONDO__LIST_CONDITION] = RONDO_LIST_JUMP,
                                                            [RONDO__LIST_RECORD] = RONDO_LIST_RECORD,
                                                            [RONDO__LIST_WAIT] = RONDO_LIST_WAIT};

/* The details of all arguments, and room for the slots' mentions; nothing is written yet. */
static rondo_status list_describe_all(rondo__call_list *list, uint64_t entry, const char *name,
                                      const rondo_argument *arguments, uint32_t count, uint32_t foreign,
                                      uint32_t *details) {
    char text[RONDO__LIST_NODE_TEXT];
    rondo__list_intern_refresh(list);
    bool quick = !foreign && !list->inherited && rondo__list_is_fresh(list);
    for (uint32_t i = 0; i < count; i++) {
        if (quick && rondo__list_recall(list, &arguments[i], &details[i])) continue;
        const rondo__memory_reference *known = list->inherited && list->inherited[i].base ? &list->inherited[i] : NULL;
        rondo_status status =
            rondo__list_intern_argument(list, &arguments[i], i < 32u && ((foreign >> i) & 1u), known, &details[i]);
        if (status)
            return rondo__status_note(status, "argument %u of %s of the capture", (unsigned)i,
                                      rondo__list_node_text(entry, name, text, sizeof text));
    }
    if (!list->slots.count) return RONDO_OK;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = rondo__list_detail_at(list, details[i])->slot;
        if (slot != RONDO__LIST_NO_SLOT)
            RONDO__TRY(rondo__list_room(&rondo__list_slot_at(list, slot)->mentions, count));
    }
    return RONDO_OK;
}

static void list_mention(rondo__call_list *list, uint32_t slot, uint64_t entry, uint32_t argument, uint64_t addend,
                         uint64_t *target) {
    rondo__buffer *mentions = &rondo__list_slot_at(list, slot)->mentions;
    *RONDO__BUFFER_AT(mentions, rondo__list_mention, mentions->count) =
        (rondo__list_mention){target, addend, (uint32_t)entry, argument};
    mentions->count++; /* there is room */
}

static void list_count_foreign(rondo__call_list *list, const uint32_t *details, uint32_t count, bool more) {
    for (uint32_t i = 0; list->any_foreign && i < count; i++) {
        if (rondo__list_detail_at(list, details[i])->reference != RONDO__LIST_REFERENCE_FOREIGN) continue;
        if (more) list->foreign++;
        else list->foreign--;
    }
}

/* A block for words that do not fit; its offset. There is room. */
static size_t list_put_block(rondo__call_list *list, const rondo__list_appended *a, uint64_t entry) {
    size_t offset = list->side.count;
    rondo__list_block *block = (rondo__list_block *)(void *)RONDO__BUFFER_AT(&list->side, uint64_t, offset);
    *block = (rondo__list_block){a->kernel.function, a->kernel.context, entry, a->count};
    for (uint32_t i = 0; i < a->count; i++) block->words[i] = a->arguments[i].word;
    list->side.count += RONDO__LIST_BLOCK_HEAD + a->count;
    return offset;
}

rondo_status rondo__list_append(rondo__call_list *list, const rondo__list_appended *a) {
    uint32_t name;
    uint64_t entry = list->entry_count;
    bool side = a->count > RONDO__LIST_WORDS_IN_ENTRY;
    if (list->sealed) return RONDO__FAIL(INVALID_STATE, CAPTURE, "the call list is sealed: nothing can be appended");
    if (entry == list->entry_capacity) RONDO__TRY(list_grow_entries(list));
    RONDO__TRY(rondo__list_room(&list->nodes, 1));
    RONDO__TRY(rondo__list_room(&list->arguments, a->count + 1u)); /* never nothing: it has an address */
    if (side) RONDO__TRY(rondo__list_room(&list->side, RONDO__LIST_BLOCK_HEAD + a->count));
    if (list->order) RONDO__TRY(rondo__order_reserve(list->order, list->lane));
    RONDO__TRY(rondo__list_intern_name(list, a->name, &name));
    uint32_t *details = RONDO__BUFFER_AT(&list->arguments, uint32_t, list->arguments.count); /* where they will be */
    RONDO__TRY(list_describe_all(list, entry, a->name, a->arguments, a->count, a->foreign, details));

    rondo_list_entry *hot = &list->entries[entry];
    hot->operation = list_operations[a->kind];
    hot->lane = (uint16_t)list->lane;
    hot->spare = 0;
    if (side) {
        hot->function = rondo__list_kernel_block;
        hot->context = (const void *)(uintptr_t)list_put_block(list, a, entry);
        memset(hot->words, 0, sizeof hot->words);
    } else {
        hot->function = a->kernel.function;
        hot->context = a->kernel.context;
        for (uint32_t i = 0; i < RONDO__LIST_WORDS_IN_ENTRY; i++)
            hot->words[i] = i < a->count ? a->arguments[i].word : 0;
    }
    *RONDO__BUFFER_AT(&list->nodes, rondo__list_node, entry) = (rondo__list_node){
        (uint32_t)list->arguments.count, name, (uint8_t)a->count, (uint8_t)a->kind, (uint8_t)a->copy_kind, side};
    list->nodes.count++;
    list->arguments.count += a->count;
    list_count_foreign(list, details, a->count, true);
    for (uint32_t i = 0; list->slots.count && i < a->count; i++) {
        uint32_t slot = rondo__list_detail_at(list, details[i])->slot;
        if (slot != RONDO__LIST_NO_SLOT)
            list_mention(list, slot, entry, i, a->arguments[i].word - rondo__list_slot_at(list, slot)->address, NULL);
    }
    if (list->order) rondo__order_node(list->order, list->lane, entry);
    list->mixed |= hot->operation != RONDO_LIST_CALL;
    list->entry_count++;
    list->counts[a->kind]++;
    return RONDO_OK;
}

rondo_status rondo__call_list_append_call(rondo__call_list *list, const rondo_call *call) {
    if (call->argument_count > RONDO_ARGUMENT_MAX)
        return RONDO__FAIL(OUT_OF_RANGE, CAPTURE, "a call has at most %u arguments, not %u", RONDO_ARGUMENT_MAX,
                           (unsigned)call->argument_count);
    if (call->argument_count && !call->arguments)
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "a call of %u arguments has none",
                           (unsigned)call->argument_count);
    if (!call->kernel.function && (list->device->properties.capabilities & RONDO_DEVICE_HOST_KERNELS))
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "the call has no kernel function");
    rondo__list_appended a = {RONDO__LIST_KERNEL,   0, call->kernel, call->name, call->arguments,
                              call->argument_count, 0};
    return rondo__list_append(list, &a);
}

/* A copy or fill of no bytes touches no memory, so its addresses are but values. */
static uint32_t list_access(uint32_t access, uint64_t bytes) { return bytes ? access : RONDO_ACCESS_VALUE; }

static void list_copy_arguments(rondo_argument *arguments, uint64_t destination, uint64_t source, uint64_t bytes) {
    arguments[0] = (rondo_argument){destination, bytes, list_access(RONDO_ACCESS_WRITE, bytes), 0};
    arguments[1] = (rondo_argument){source, bytes, list_access(RONDO_ACCESS_READ, bytes), 0};
    arguments[2] = (rondo_argument){bytes, 0, RONDO_ACCESS_VALUE, 0};
}

static void list_fill_arguments(rondo_argument *arguments, uint64_t address, uint64_t value, uint64_t bytes) {
    arguments[0] = (rondo_argument){address, bytes, list_access(RONDO_ACCESS_WRITE, bytes), 0};
    arguments[1] = (rondo_argument){value, 0, RONDO_ACCESS_VALUE, 0};
    arguments[2] = (rondo_argument){bytes, 0, RONDO_ACCESS_VALUE, 0};
}

/* Which of a copy's two addresses the device's allocation table knows nothing of. */
static uint32_t list_foreign_sides(const rondo__call_list *list, rondo_copy_kind kind, uint64_t bytes) {
    if (list->addressable || !bytes) return 0;
    return kind == RONDO_COPY_HOST_TO_DEVICE ? 2u : kind == RONDO_COPY_DEVICE_TO_HOST ? 1u : 0u;
}

rondo_status rondo__call_list_append_copy(rondo__call_list *list, uint64_t destination, uint64_t source, uint64_t bytes,
                                          rondo_copy_kind kind) {
    rondo_argument arguments[3];
    if (kind < RONDO_COPY_HOST_TO_DEVICE || kind > RONDO_COPY_DEVICE_TO_DEVICE)
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "copy kind %d is none of RONDO_COPY_*", (int)kind);
    list_copy_arguments(arguments, destination, source, bytes);
    rondo__list_appended a = {RONDO__LIST_COPY, kind, {rondo__list_kernel_copy, NULL},      "copy",
                              arguments,        3,    list_foreign_sides(list, kind, bytes)};
    return rondo__list_append(list, &a);
}

rondo_status rondo__call_list_append_fill(rondo__call_list *list, uint64_t address, uint8_t value, uint64_t bytes) {
    rondo_argument arguments[3];
    list_fill_arguments(arguments, address, value, bytes);
    rondo__list_appended a = {RONDO__LIST_FILL, 0, {rondo__list_kernel_fill, NULL}, "fill", arguments, 3, 0};
    return rondo__list_append(list, &a);
}

rondo_status rondo__call_list_append_host(rondo__call_list *list, rondo_host_function function, void *user) {
    if (!function) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "a host call without a function");
    const rondo_argument arguments[2] = {{rondo__list_word_of(function), 0, RONDO_ACCESS_VALUE, 0},
                                         {(uint64_t)(uintptr_t)user, 0, RONDO_ACCESS_VALUE, 0}};
    rondo__list_appended a = {RONDO__LIST_HOST_CALL, 0, {rondo__list_kernel_host, NULL}, "host call", arguments, 2, 0};
    return rondo__list_append(list, &a);
}

rondo_status rondo__call_list_argument_slot(rondo__call_list *list, uint32_t argument, uint32_t slot, uint64_t addend) {
    if (list->sealed || list->entry_count == 0 || slot >= list->slots.count ||
        argument >= rondo__list_node_at(list, list->entry_count - 1u)->count)
        return RONDO__FAIL(OUT_OF_RANGE, CAPTURE, "argument %u of the newest entry cannot be in slot %u",
                           (unsigned)argument, (unsigned)slot);
    uint64_t entry = list->entry_count - 1u;
    const rondo__list_node *node = rondo__list_node_at(list, entry);
    uint32_t *number = RONDO__BUFFER_AT(&list->arguments, uint32_t, node->first + argument), with_slot;
    rondo__list_detail detail = *rondo__list_detail_at(list, *number);
    if (detail.slot != RONDO__LIST_NO_SLOT)
        return RONDO__FAIL(ALREADY_EXISTS, CAPTURE, "argument %u is already in slot %u", (unsigned)argument,
                           (unsigned)detail.slot);
    detail.slot = slot;
    RONDO__TRY(rondo__list_room(&rondo__list_slot_at(list, slot)->mentions, 1));
    RONDO__TRY(rondo__list_intern_detail(list, &detail, &with_slot));
    *number = with_slot;
    list_mention(list, slot, entry, argument, addend, NULL);
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------- seal, bind, update */

static void list_trim(rondo__call_list *list) {
    rondo__buffer_trim(&list->nodes);
    rondo__buffer_trim(&list->arguments);
    rondo__buffer_trim(&list->side);
    size_t lead = list->entries ? (size_t)((char *)list->entries - (char *)list->entries_raw) : 0;
    size_t bytes = list->entry_count * sizeof(rondo_list_entry) + LIST_LINE;
    if (!list->entries || bytes >= list->entries_bytes) return;
    rondo_status status = rondo__reallocate(&list->allocator, &list->entries_raw, list->entries_bytes, bytes);
    if (status) {
        rondo_status_release(status);
        return;
    }
    char *raw = list->entries_raw;
    size_t lead_now = (LIST_LINE - (size_t)((uintptr_t)raw % LIST_LINE)) % LIST_LINE;
    if (lead_now != lead) memmove(raw + lead_now, raw + lead, list->entry_count * sizeof(rondo_list_entry));
    list->entries = (rondo_list_entry *)(void *)(raw + lead_now);
    list->entries_bytes = bytes;
    list->entry_capacity = list->entry_count;
}

/* Given node by node, a condition's end is a call behind its last node: `spare` says how many end there. */
static void list_mark_ends(rondo__call_list *list) {
    if (list->lowered || !list->counts[RONDO__LIST_CONDITION]) return;
    for (size_t i = 0; i < list->entry_count; i++) list->entries[i].spare = 0;
    for (size_t i = 0; i < list->entry_count; i++) {
        if (list->entries[i].operation == RONDO_LIST_JUMP) list->entries[list->entries[i].words[1] - 1u].spare++;
    }
}

rondo_status rondo__call_list_seal(rondo__call_list *list) {
    if (list->order && !list->sealed) RONDO__TRY(rondo__order_seal(list->order));
    if (!list->sealed) list_trim(list);
    for (size_t at = 0; !list->sealed && at < list->side.count;) {
        rondo__list_block *block = (rondo__list_block *)(void *)RONDO__BUFFER_AT(&list->side, uint64_t, at);
        list->entries[block->entry].context = block;
        at += RONDO__LIST_BLOCK_HEAD + (size_t)block->count;
    }
    list->sealed = true;
    rondo__list_intern_close(list);
    list_mark_ends(list);
    for (uint32_t s = 0; s < list->slots.count; s++) {
        rondo__buffer *mentions = &rondo__list_slot_at(list, s)->mentions;
        for (size_t i = 0; i < mentions->count; i++) {
            rondo__list_mention *m = RONDO__BUFFER_AT(mentions, rondo__list_mention, i);
            m->target = &rondo__list_words(list, m->entry)[m->argument];
        }
    }
    list->baked =
        (rondo_list){sizeof(rondo_list), list->mixed ? 0 : RONDO_LIST_ONLY_CALLS, list->entries, list->entry_count};
    return RONDO_OK;
}

void rondo__call_list_bind(rondo__call_list *list, uint32_t slot, uint64_t address) {
    rondo__list_slot *s = rondo__list_slot_at(list, slot);
    const rondo__buffer *mentions = &s->mentions;
    const rondo__list_mention *m = mentions->data;
    s->bound = address;
    for (size_t i = 0; i < mentions->count; i++) *m[i].target = address + m[i].addend;
}

/* Lengths and accesses of a copy or fill follow from its words, whatever the caller said. */
bool rondo__call_list_mention_at(const rondo__call_list *list, uint32_t slot, size_t index, uint64_t *out_entry) {
    const rondo__buffer *mentions = &rondo__list_slot_at(list, slot)->mentions;
    if (index >= mentions->count) return false;
    *out_entry = RONDO__BUFFER_AT(mentions, const rondo__list_mention, index)->entry;
    return true;
}

static rondo_status list_update_arguments(const rondo__call_list *list, uint64_t entry, const rondo_argument *given,
                                          rondo_argument *arguments) {
    const rondo__list_node *node = rondo__list_node_at(list, entry);
    char text[RONDO__LIST_NODE_TEXT];
    const char *name = rondo__list_node_text(entry, rondo__list_name_at(list, node->name), text, sizeof text);
    switch (node->kind) {
    case RONDO__LIST_COPY: list_copy_arguments(arguments, given[0].word, given[1].word, given[2].word); break;
    case RONDO__LIST_FILL:
        if (given[1].word > UINT8_MAX)
            return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "%s: fill value %llu is not a byte", name,
                               (unsigned long long)given[1].word);
        list_fill_arguments(arguments, given[0].word, given[1].word, given[2].word);
        break;
    case RONDO__LIST_HOST_CALL:
        return RONDO__FAIL(UNSUPPORTED, CAPTURE, "%s is a host call, which cannot be updated: capture again", name);
    case RONDO__LIST_CONDITION: return rondo__list_condition_argument(given[0].word, arguments);
    case RONDO__LIST_RECORD:
    case RONDO__LIST_WAIT:
        return RONDO__FAIL(UNSUPPORTED, CAPTURE, "%s is of an event, which cannot be updated: capture again", name);
    default:
        if (rondo__rng_is_captured(rondo__list_kernel_of(list, entry)))
            return RONDO__FAIL(UNSUPPORTED, CAPTURE,
                               "%s takes random numbers, whose place in the generator's row was fixed by the capture: "
                               "capture again",
                               name);
        if (node->count) memcpy(arguments, given, node->count * sizeof *given);
    }
    return RONDO_OK;
}

static void list_unmention(rondo__call_list *list, uint32_t slot, const uint64_t *target) {
    rondo__buffer *mentions = &rondo__list_slot_at(list, slot)->mentions;
    for (size_t i = 0; i < mentions->count; i++) {
        rondo__list_mention *m = RONDO__BUFFER_AT(mentions, rondo__list_mention, i);
        if (m->target != target) continue;
        *m = *RONDO__BUFFER_AT(mentions, rondo__list_mention, mentions->count - 1u);
        mentions->count--;
        return;
    }
}

rondo_status rondo__call_list_update(rondo__call_list *list, uint64_t entry, const rondo_argument *arguments,
                                     uint32_t argument_count) {
    rondo_argument given[RONDO_ARGUMENT_MAX];
    uint32_t details[RONDO_ARGUMENT_MAX];
    char text[RONDO__LIST_NODE_TEXT];
    if (entry >= list->entry_count)
        return RONDO__FAIL(OUT_OF_RANGE, CAPTURE, "there is no node %llu: the graph has %zu", (unsigned long long)entry,
                           list->entry_count);
    const rondo__list_node *node = rondo__list_node_at(list, entry);
    const char *name = rondo__list_name_at(list, node->name);
    if (argument_count != node->count || (argument_count && !arguments))
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "%s was recorded with %u arguments, not %u",
                           rondo__list_node_text(entry, name, text, sizeof text), (unsigned)node->count,
                           (unsigned)argument_count);
    rondo__list_intern_forget(list);
    RONDO__TRY(list_update_arguments(list, entry, arguments, given));
    uint32_t foreign = node->kind == RONDO__LIST_COPY ? list_foreign_sides(list, node->copy_kind, given[2].word) : 0;
    RONDO__TRY(list_describe_all(list, entry, name, given, argument_count, foreign, details));

    uint32_t *numbers = RONDO__BUFFER_AT(&list->arguments, uint32_t, node->first);
    uint64_t *words = rondo__list_words(list, entry);
    list_count_foreign(list, numbers, argument_count, false);
    list_count_foreign(list, details, argument_count, true);
    for (uint32_t i = 0; i < argument_count; i++) {
        uint32_t before = rondo__list_detail_at(list, numbers[i])->slot;
        uint32_t after = rondo__list_detail_at(list, details[i])->slot;
        if (before != RONDO__LIST_NO_SLOT) list_unmention(list, before, &words[i]);
        words[i] = given[i].word;
        numbers[i] = details[i];
        if (after == RONDO__LIST_NO_SLOT) continue;
        const rondo__list_slot *slot = rondo__list_slot_at(list, after);
        uint64_t addend = given[i].word - slot->address;
        list_mention(list, after, entry, i, addend, &words[i]);
        if (slot->bound) words[i] = slot->bound + addend;
    }
    return RONDO_OK;
}
