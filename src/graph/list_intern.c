/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call list keeps once: names, references to allocations, and the details of arguments.
 *
 * This is where capture spends its time, so the common cases come first: an argument seen just before is found by its
 * address in a small memo, another place of a known allocation by the few references used last; only then is the
 * allocation table asked, which takes a lock. Both short cuts hold as long as nothing that the list mentions was freed,
 * and the watcher says when that ends.
 */
#include <string.h>

#include "graph/list_private.h"

/* For lists that grow no more: every look misses. */
static const rondo__list_memo list_no_memo[RONDO__LIST_MEMO];

rondo_status rondo__list_intern_init(rondo__call_list *list) {
    void *memory = NULL;
    rondo__arena_init(&list->texts, &list->allocator, RONDO__LIST_NAMES_BYTES_MAX);
    rondo__buffer_init(&list->names, &list->allocator, sizeof(rondo__list_name), UINT32_MAX - 2u);
    rondo__buffer_init(&list->details, &list->allocator, sizeof(rondo__list_detail), UINT32_MAX - 2u);
    rondo__buffer_init(&list->references, &list->allocator, sizeof(rondo__memory_reference), UINT32_MAX - 2u);
    list->recall = list_no_memo;
    RONDO__TRY(rondo__allocate_array(&list->allocator, RONDO__LIST_MEMO, sizeof(rondo__list_memo), &memory));
    list->recall = list->memo = memory;
    return RONDO_OK;
}

void rondo__list_intern_close(rondo__call_list *list) {
    rondo__free(&list->allocator, list->memo, RONDO__LIST_MEMO * sizeof *list->memo);
    list->memo = NULL;
    list->recall = list_no_memo;
}

static void list_index_free(rondo__call_list *list, rondo__list_index *index) {
    rondo__free(&list->allocator, index->cells, index->capacity * sizeof(uint32_t));
    *index = (rondo__list_index){0};
}

void rondo__list_intern_deinit(rondo__call_list *list) {
    rondo__list_intern_close(list);
    list_index_free(list, &list->name_index);
    list_index_free(list, &list->detail_index);
    list_index_free(list, &list->reference_index);
    rondo__buffer_deinit(&list->references);
    rondo__buffer_deinit(&list->details);
    rondo__buffer_deinit(&list->names);
    rondo__arena_deinit(&list->texts);
}

void rondo__list_intern_forget(rondo__call_list *list) {
    list->stamp += 4u;
    if (!list->stamp && list->memo) memset(list->memo, 0, RONDO__LIST_MEMO * sizeof *list->memo);
    memset(list->recent, 0, sizeof list->recent);
}

static inline uint64_t list_mix(uint64_t x) {
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

static inline uint64_t list_hash_detail(const rondo__list_detail *d) {
    return list_mix(d->length ^ ((uint64_t)d->reference << 40) ^ ((uint64_t)d->slot << 8) ^ d->access);
}

/* Temporaries that lie at one place, one after the other, are one reference: the newest. A graph uses their memory whether
 * or not a block is there, so which it was does not matter, and a program that frees behind each operator has few of them. */
static inline uint64_t list_hash_reference(const rondo__memory_reference *r) {
    return r->temporary ? list_mix(r->base ^ (r->size << 48) ^ r->size) : list_mix(r->generation);
}

static inline bool list_is_reference(const rondo__memory_reference *a, const rondo__memory_reference *b) {
    if (a->base != b->base || a->temporary != b->temporary) return false;
    return a->temporary ? a->size == b->size : a->generation == b->generation;
}

static uint64_t list_hash_text(const char *text, size_t length) {
    uint64_t hash = length, part;
    for (; length >= 8; text += 8, length -= 8) {
        memcpy(&part, text, 8);
        hash = list_mix(hash ^ part);
    }
    part = 0;
    memcpy(&part, text, length);
    return list_mix(hash ^ part);
}

static uint64_t list_hash_of(const rondo__call_list *list, const rondo__list_index *index, uint32_t number) {
    if (index == &list->name_index) return RONDO__BUFFER_AT(&list->names, rondo__list_name, number)->hash;
    if (index == &list->detail_index) return list_hash_detail(rondo__list_detail_at(list, number));
    return list_hash_reference(RONDO__BUFFER_AT(&list->references, rondo__memory_reference, number));
}

static void list_index_put(rondo__list_index *index, uint64_t hash, uint32_t number) {
    size_t mask = index->capacity - 1u;
    size_t at = (size_t)hash & mask;
    while (index->cells[at]) at = (at + 1u) & mask;
    index->cells[at] = number + 1u;
    index->count++;
}

/* Keeps a cell free for one more, at most half full. */
static rondo_status list_index_room(rondo__call_list *list, rondo__list_index *index) {
    if (index->count < index->capacity / 2u) return RONDO_OK;
    rondo__list_index grown = {.capacity = index->capacity ? index->capacity * 2u : 16u};
    void *cells;
    RONDO__TRY(rondo__allocate_array(&list->allocator, grown.capacity, sizeof(uint32_t), &cells));
    grown.cells = cells;
    for (size_t i = 0; i < index->capacity; i++) {
        if (!index->cells[i]) continue;
        uint32_t number = index->cells[i] - 1u;
        list_index_put(&grown, list_hash_of(list, index, number), number);
    }
    list_index_free(list, index);
    *index = grown;
    return RONDO_OK;
}

/* The numbers in the index that hash there, one after the other: at = hash, then on. */
static inline bool list_index_next(const rondo__list_index *index, size_t *at, uint32_t *out_number) {
    if (!index->capacity) return false;
    size_t mask = index->capacity - 1u;
    uint32_t cell = index->cells[*at & mask];
    if (!cell) return false;
    *at += 1u;
    *out_number = cell - 1u;
    return true;
}

/* Names are short, and mostly the one before: a call would cost more than the loop. */
static inline bool list_is_name(const char *a, const char *b) {
    for (; *a == *b; a++, b++)
        if (!*a) return true;
    return false;
}

rondo_status rondo__list_intern_name(rondo__call_list *list, const char *name, uint32_t *out_name) {
    uint32_t number;
    if (!name || !*name) {
        *out_name = 0;
        return RONDO_OK;
    }
    if (list->last_name && list_is_name(rondo__list_name_at(list, list->last_name), name)) {
        *out_name = list->last_name;
        return RONDO_OK;
    }
    size_t length = strlen(name);
    rondo__list_name entry = {NULL, list_hash_text(name, length)};
    for (size_t at = (size_t)entry.hash; list_index_next(&list->name_index, &at, &number);) {
        const rondo__list_name *known = RONDO__BUFFER_AT(&list->names, rondo__list_name, number);
        if (known->hash == entry.hash && strcmp(known->text, name) == 0) {
            *out_name = list->last_name = number;
            return RONDO_OK;
        }
    }
    if (list->names.count == 0) RONDO__TRY(rondo__buffer_append(&list->names, NULL, 1)); /* number 0 is no name */
    RONDO__TRY(list_index_room(list, &list->name_index));
    RONDO__TRY(rondo__list_room(&list->names, 1));
    RONDO__TRY(rondo__arena_string(&list->texts, name, length, &entry.text));
    number = (uint32_t)list->names.count;
    RONDO__TRY(rondo__buffer_append(&list->names, &entry, 1));
    list_index_put(&list->name_index, entry.hash, number);
    *out_name = list->last_name = number;
    return RONDO_OK;
}

/* The slot whose range the argument is in, or none. What covers a slot only in part is refused: bind could not mend
 * it. */
static rondo_status list_find_slot(const rondo__call_list *list, const rondo_argument *a, uint64_t end,
                                   uint32_t *out_slot) {
    *out_slot = RONDO__LIST_NO_SLOT;
    if (a->word >= list->slots_high || end <= list->slots_low) return RONDO_OK;
    for (size_t i = 0; i < list->slots.count; i++) {
        const rondo__list_slot *slot = rondo__list_slot_at(list, (uint32_t)i);
        if (!slot->address || a->word >= slot->address + slot->length || end <= slot->address) continue;
        if (a->word < slot->address)
            return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE,
                               "address 0x%llx lies %llu bytes before slot %zu and the argument reaches into the slot: "
                               "give its length, or declare one slot over both",
                               (unsigned long long)a->word, (unsigned long long)(slot->address - a->word), i);
        if (a->length > slot->address + slot->length - a->word)
            return RONDO__FAIL(OUT_OF_RANGE, CAPTURE,
                               "address 0x%llx with %llu bytes reaches beyond the end of slot %zu (%llu bytes from "
                               "0x%llx): declare the slot longer",
                               (unsigned long long)a->word, (unsigned long long)a->length, i,
                               (unsigned long long)slot->length, (unsigned long long)slot->address);
        if (a->access == RONDO_ACCESS_WRITE && !(slot->access & RONDO_ACCESS_WRITE))
            return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE,
                               "slot %zu was declared as read only and is written here: declare it with write access",
                               i);
        *out_slot = (uint32_t)i;
        return RONDO_OK;
    }
    return RONDO_OK;
}

static rondo_status list_add_reference(rondo__call_list *list, const rondo__memory_reference *reference,
                                       uint32_t *out_number) {
    uint32_t number;
    uint64_t hash = list_hash_reference(reference);
    for (size_t at = (size_t)hash; list_index_next(&list->reference_index, &at, &number);) {
        rondo__memory_reference *known = RONDO__BUFFER_AT(&list->references, rondo__memory_reference, number);
        if (!list_is_reference(known, reference)) continue;
        known->generation = reference->generation;
        *out_number = number;
        return RONDO_OK;
    }
    if (list->references.count == 0)
        RONDO__TRY(rondo__buffer_append(&list->references, NULL, RONDO__LIST_REFERENCE_FIRST));
    RONDO__TRY(list_index_room(list, &list->reference_index));
    RONDO__TRY(rondo__list_room(&list->references, 1));
    number = (uint32_t)list->references.count;
    RONDO__TRY(rondo__buffer_append(&list->references, reference, 1));
    list_index_put(&list->reference_index, hash, number);
    *out_number = number;
    return RONDO_OK;
}

/* A program that frees a temporary behind each operator comes here as often. Most arguments are where their block starts,
 * so that the memo's cells for it are known; where another place of it was seen (note) all of the memo goes. */
static bool list_drop(rondo__call_list *list, const rondo__memory_reference *ended) {
    uint32_t number;
    for (size_t at = (size_t)list_hash_reference(ended); list_index_next(&list->reference_index, &at, &number);) {
        const rondo__memory_reference *known = RONDO__BUFFER_AT(&list->references, rondo__memory_reference, number);
        if (!list_is_reference(known, ended)) continue;
        if (known->note) return false;
        for (uint32_t access = RONDO_ACCESS_READ; list->memo && access <= RONDO_ACCESS_BOTH; access++) {
            rondo__list_memo *memo = &list->memo[rondo__list_memo_of(ended->base, access)];
            if (memo->word == ended->base) memo->stamp = 0; /* no access: never met */
        }
        for (uint32_t i = 0; i < RONDO__LIST_RECENT; i++)
            if (list->recent[i] == number) list->recent[i] = 0;
        break;
    }
    return ended->base != 0;
}

void rondo__list_intern_drop_ended(rondo__call_list *list) {
    rondo__memory_reference ended[RONDO__MEMORY_ENDED];
    uint32_t count;
    bool known = rondo__memory_take_ended(list->device->memory, list->watcher, ended, &count);
    for (uint32_t i = 0; i < count && known; i++) known = list_drop(list, &ended[i]);
    if (!known) rondo__list_intern_forget(list);
}

static rondo_status list_resolve_known(rondo__call_list *list, const rondo__memory_reference *known,
                                       uint32_t *out_reference) {
    rondo__memory_reference reference = *known;
    RONDO__TRY(rondo__memory_take_over(list->device->memory, &reference, list->watcher));
    return list_add_reference(list, &reference, out_reference);
}

static rondo_status list_resolve(rondo__call_list *list, const rondo_argument *a, const rondo__memory_reference *known,
                                 uint32_t *out_reference) {
    if (known) return list_resolve_known(list, known, out_reference);
    if (rondo__list_is_fresh(list)) {
        for (uint32_t i = 0; i < RONDO__LIST_RECENT; i++) {
            uint32_t number = list->recent[i];
            if (number < RONDO__LIST_REFERENCE_FIRST) continue;
            const rondo__memory_reference *r = RONDO__BUFFER_AT(&list->references, rondo__memory_reference, number);
            uint64_t distance = a->word - r->base;
            if (distance < r->size && a->length <= r->size - distance) {
                *out_reference = number;
                return RONDO_OK;
            }
        }
    }
    rondo__memory_reference found = {0};
    RONDO__TRY(rondo__memory_resolve(list->device->memory, a->word, a->length, list->watcher, &found));
    if (!found.base) {
        *out_reference = RONDO__LIST_REFERENCE_FOREIGN;
        return RONDO_OK;
    }
    RONDO__TRY(list_add_reference(list, &found, out_reference));
    list->recent[list->recent_at++ % RONDO__LIST_RECENT] = *out_reference;
    return RONDO_OK;
}

/* By value: a detail that was just written in halves cannot be read as a whole without waiting for the stores. */
static inline bool list_detail_is(const rondo__list_detail *known, uint64_t length, uint32_t reference, uint32_t slot,
                                  uint32_t access) {
    return known->length == length && known->reference == reference && known->slot == slot && known->access == access;
}

rondo_status rondo__list_intern_detail(rondo__call_list *list, const rondo__list_detail *detail, uint32_t *out_number) {
    uint32_t number;
    const uint64_t length = detail->length;
    const uint32_t reference = detail->reference, slot = detail->slot, access = detail->access;
    /* Most arguments read as another one before them: of that length, in that allocation. */
    uint32_t *last = &list->last_detail[access & 3u];
    if (*last < list->details.count &&
        list_detail_is(rondo__list_detail_at(list, *last), length, reference, slot, access)) {
        *out_number = *last;
        return RONDO_OK;
    }
    uint64_t hash = list_hash_detail(detail);
    for (size_t at = (size_t)hash; list_index_next(&list->detail_index, &at, &number);) {
        if (list_detail_is(rondo__list_detail_at(list, number), length, reference, slot, access)) {
            *out_number = *last = number;
            return RONDO_OK;
        }
    }
    RONDO__TRY(list_index_room(list, &list->detail_index));
    RONDO__TRY(rondo__list_room(&list->details, 1));
    number = (uint32_t)list->details.count;
    RONDO__TRY(rondo__buffer_append(&list->details, detail, 1));
    list_index_put(&list->detail_index, hash, number);
    list->any_foreign |= reference == RONDO__LIST_REFERENCE_FOREIGN;
    *out_number = *last = number;
    return RONDO_OK;
}

static rondo_status list_describe_memory(rondo__call_list *list, const rondo_argument *a,
                                         const rondo__memory_reference *known, rondo__list_detail *detail) {
    uint64_t end;
    if (!rondo__checked_add_u64(a->word, a->length ? a->length : 1u, &end))
        return RONDO__FAIL(OUT_OF_RANGE, CAPTURE, "address 0x%llx with %llu bytes passes the end of the address space",
                           (unsigned long long)a->word, (unsigned long long)a->length);
    RONDO__TRY(list_find_slot(list, a, end, &detail->slot));
    if (detail->slot != RONDO__LIST_NO_SLOT || !list->watcher) return RONDO_OK; /* who binds the slot resolves it */
    RONDO__TRY(list_resolve(list, a, known, &detail->reference));
    if (a->length == 0 && detail->reference >= RONDO__LIST_REFERENCE_FIRST) {
        const rondo__memory_reference *r =
            RONDO__BUFFER_AT(&list->references, rondo__memory_reference, detail->reference);
        RONDO__TRY(list_find_slot(list, a, r->base + r->size, &detail->slot));
    }
    return RONDO_OK;
}

/* Host memory of a device that cannot address it: ours if it is pinned, else nobody can watch it. */
static rondo_status list_describe_host(rondo__call_list *list, const rondo_argument *a,
                                       const rondo__memory_reference *known, rondo__list_detail *detail) {
    rondo__memory *memory = list->device->memory;
    detail->reference = RONDO__LIST_REFERENCE_FOREIGN;
    if (!list->watcher || (!known && !rondo__memory_is_pinned(memory, (const void *)(uintptr_t)a->word, a->length)))
        return RONDO_OK;
    return list_resolve(list, a, known, &detail->reference);
}

rondo_status rondo__list_intern_argument(rondo__call_list *list, const rondo_argument *a, bool foreign,
                                         const rondo__memory_reference *known, uint32_t *out_detail) {
    if (a->access == RONDO_ACCESS_VALUE) {
        *out_detail = RONDO__LIST_DETAIL_VALUE;
        return RONDO_OK;
    }
    if (a->access > RONDO_ACCESS_BOTH)
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "access %u is none of RONDO_ACCESS_*", (unsigned)a->access);
    bool usual = !foreign && !known;
    if (usual && rondo__list_recall(list, a, out_detail) && rondo__list_is_fresh(list)) return RONDO_OK;
    rondo__list_detail detail = {a->length, RONDO__LIST_REFERENCE_NONE, RONDO__LIST_NO_SLOT, a->access, 0};
    if (foreign) RONDO__TRY(list_describe_host(list, a, known, &detail));
    else if (a->word) /* null is an optional operand that is absent */
        RONDO__TRY(list_describe_memory(list, a, known, &detail));
    RONDO__TRY(rondo__list_intern_detail(list, &detail, out_detail));
    if (!usual || !list->memo) return RONDO_OK;
    if (detail.reference >= RONDO__LIST_REFERENCE_FIRST) {
        rondo__memory_reference *r = RONDO__BUFFER_AT(&list->references, rondo__memory_reference, detail.reference);
        r->note |= a->word != r->base;
    }
    list->memo[rondo__list_memo_of(a->word, a->access)] =
        (rondo__list_memo){a->word, a->length, list->stamp | a->access, *out_detail};
    return RONDO_OK;
}
