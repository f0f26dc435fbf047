/* SPDX-License-Identifier: Apache-2.0
 *
 * What cannot be imported is collected, so that one message names all of it. */
#include <stdio.h>
#include <string.h>

#include "import/common/common.h"

void rondo__import_refusals_init(rondo__import_refusals *refusals, const rondo_allocator *allocator) {
    rondo__import_names_init(&refusals->seen, allocator);
    rondo__buffer_init(&refusals->entries, allocator, sizeof(rondo__import_refusal), (size_t)1 << 26);
}

void rondo__import_refusals_deinit(rondo__import_refusals *refusals) {
    rondo__import_names_deinit(&refusals->seen);
    rondo__buffer_deinit(&refusals->entries);
}

rondo_status rondo__import_refuse(rondo__import_refusals *refusals, rondo__arena *arena,
                                  const rondo__import_refusal *refusal) {
    const char *reason = refusal->reason ? refusal->reason : "";
    size_t room = strlen(refusal->operator_name) + strlen(reason) + 40;
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate(arena, room, &memory));
    int size = snprintf(memory, room, "%s\n%lld\n%s", refusal->operator_name, (long long)refusal->version, reason);
    uint32_t before;
    RONDO__TRY(rondo__import_names_insert(&refusals->seen, (rondo__pb_bytes){memory, (size_t)size},
                                          (uint32_t)refusals->entries.count, &before));
    if (before != RONDO__IMPORT_NAMES_NONE) {
        RONDO__BUFFER_AT(&refusals->entries, rondo__import_refusal, before)->uses += refusal->uses;
        return RONDO_OK;
    }
    rondo__import_refusal entry = *refusal;
    RONDO__TRY(
        rondo__arena_string(arena, refusal->operator_name, strlen(refusal->operator_name), &entry.operator_name));
    RONDO__TRY(rondo__arena_string(arena, refusal->node, strlen(refusal->node), &entry.node));
    return rondo__buffer_append(&refusals->entries, &entry, 1);
}

rondo_status rondo__import_refusals_status(const rondo__import_refusals *refusals) {
    size_t count = refusals->entries.count;
    if (!count) return RONDO_OK;
    const rondo__import_refusal *entries = refusals->entries.data;
    uint64_t uses = 0;
    for (size_t i = 0; i < count; i++) uses += entries[i].uses;
    rondo_status status =
        RONDO__FAIL(UNSUPPORTED, CONVERTER, "%zu operator%s not supported, used by %llu node%s", count,
                    count == 1 ? " is" : "s are", (unsigned long long)uses, uses == 1 ? "" : "s");
    /* One note is kept for what does not fit, and one for whoever hands the failure on. */
    size_t room = RONDO__STATUS_NOTES_MAX - 2;
    for (size_t i = 0; i < count && i < room; i++) {
        const rondo__import_refusal *entry = &entries[i];
        char version[40] = "";
        if (entry->version) (void)snprintf(version, sizeof version, " version %lld", (long long)entry->version);
        status =
            rondo__status_note(status, "%.200s%s (used %llu time%s, first at node '%.180s')%s%s", entry->operator_name,
                               version, (unsigned long long)entry->uses, entry->uses == 1 ? "" : "s", entry->node,
                               entry->reason ? ": " : "", entry->reason ? entry->reason : "");
    }
    if (count > room) status = rondo__status_note(status, "and %zu more", count - room);
    return status;
}
