/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries that are no work: conditions, events outside the graph; and which lane an entry is in, which child it came
 * from. */
#include "graph/list_private.h"

void rondo__call_list_inherit(rondo__call_list *list, const rondo__memory_reference *references) {
    list->inherited = references;
}

void rondo__call_list_lane(rondo__call_list *list, uint32_t lane) { list->lane = lane; }

rondo_status rondo__call_list_order(rondo__call_list *list, rondo__order **out_order) {
    if (!list->order) RONDO__TRY(rondo__order_create(&list->allocator, list->entry_count, &list->order));
    *out_order = list->order;
    return RONDO_OK;
}

rondo__order *rondo__call_list_lanes(const rondo__call_list *list) { return list->order; }

bool rondo__call_list_needs_lanes(const rondo__call_list *list) {
    return list->order && list->order->steps.count && !list->lowered && !rondo__device_is_inline(list->device);
}

/* -------------------------------------------------------------------------------------------------------- events */

rondo_status rondo__call_list_append_event(rondo__call_list *list, rondo_event *event, bool wait) {
    const rondo_argument argument = {(uint64_t)(uintptr_t)event->handle, 0, RONDO_ACCESS_VALUE, 0};
    rondo__list_appended a = {wait ? RONDO__LIST_WAIT : RONDO__LIST_RECORD,
                              0,
                              {NULL, NULL},
                              wait ? "wait for event" : "record event",
                              &argument,
                              1,
                              0};
    RONDO__TRY(rondo__list_room(&list->events, 1));
    RONDO__TRY(rondo__list_append(list, &a));
    list->entries[list->entry_count - 1u].words[1] = (uint64_t)(uintptr_t)event;
    *RONDO__BUFFER_AT(&list->events, rondo_event *, list->events.count) = event;
    list->events.count++;
    rondo_event_retain(event);
    return RONDO_OK;
}

/* ---------------------------------------------------------------------------------------------------- conditions */

rondo_status rondo__list_condition_argument(uint64_t address, rondo_argument *out_argument) {
    if (!address || address % sizeof(int64_t))
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE,
                           "a condition is an int64 in device memory, and 0x%llx is no address of one",
                           (unsigned long long)address);
    *out_argument = (rondo_argument){address, sizeof(int64_t), RONDO_ACCESS_READ, 0};
    return RONDO_OK;
}

rondo_status rondo__call_list_condition(rondo__call_list *list, uint64_t address, uint64_t *out_entry) {
    rondo_argument argument;
    rondo__list_appended a = {RONDO__LIST_CONDITION, 0, {NULL, NULL}, "condition", &argument, 1, 0};
    if (!list->lowered && !list->device->table->stream->condition_begin)
        return RONDO__FAIL(UNSUPPORTED, CAPTURE,
                           "rondo_graph_condition_begin: device '%s:%d' is given its nodes one by one, before anybody "
                           "knows whether a condition holds: conditions need a backend that has some "
                           "(condition_begin), or runs whole lists (execute_list) in memory that the host can address",
                           list->device->properties.name, (int)list->device->properties.index);
    RONDO__TRY(rondo__list_condition_argument(address, &argument));
    RONDO__TRY(rondo__list_append(list, &a));
    *out_entry = list->entry_count - 1u;
    list->entries[*out_entry].words[1] = list->entry_count;
    return RONDO_OK;
}

void rondo__call_list_condition_end(rondo__call_list *list, uint64_t entry, uint64_t end) {
    list->entries[entry].words[1] = end;
}

/* ------------------------------------------------------------------------------------------------------ children */

rondo_status rondo__call_list_add_child(rondo__call_list *list, uint64_t first, uint64_t count, const char *name) {
    rondo__list_child child = {.first = first, .count = count};
    RONDO__TRY(rondo__list_intern_name(list, name, &child.name));
    RONDO__TRY(rondo__list_room(&list->children, 1));
    return rondo__buffer_append(&list->children, &child, 1);
}

const rondo__list_child *rondo__call_list_child(const rondo__call_list *list, size_t index, const char **out_name) {
    if (index >= list->children.count) return NULL;
    const rondo__list_child *child = RONDO__BUFFER_AT(&list->children, const rondo__list_child, index);
    *out_name = rondo__list_name_at(list, child->name);
    return child;
}
