/* SPDX-License-Identifier: Apache-2.0
 *
 * Slots: address ranges that are declared before capture and may lie elsewhere at each replay.
 *
 * Policy rebind writes the new address into every call that mentions the slot. Policy copy gives the graph a buffer of
 * its own and copies around the list, beside the nodes, so that these keep their numbers.
 * The declared range is the slot's name during capture; afterwards it names it only as long as its allocation lives.
 */
#include "graph/graph.h"

#include <stddef.h>

rondo_status rondo_graph_declare_slot(rondo_graph *graph, uint32_t slot, void *address, uint64_t length,
                                      uint32_t access, rondo_slot_policy policy) {
    uint64_t start = (uint64_t)(uintptr_t)address, end;
    if (!graph) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "declare_slot without a graph");
    RONDO__TRY(rondo__graph_check(graph, RONDO__GRAPH_DECLARE_SLOT));
    if (slot < graph->slots.count)
        return RONDO__FAIL(ALREADY_EXISTS, CAPTURE, "graph '%s': slot %u is declared already", graph->name,
                           (unsigned)slot);
    if (slot > graph->slots.count)
        return RONDO__FAIL(OUT_OF_RANGE, CAPTURE,
                           "graph '%s': slots are numbered without gaps: the next one is %zu, not %u", graph->name,
                           graph->slots.count, (unsigned)slot);
    if (!start || !length || !rondo__checked_add_u64(start, length, &end))
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "graph '%s': slot %u needs an address and a length", graph->name,
                           (unsigned)slot);
    if (access < RONDO_ACCESS_READ || access > RONDO_ACCESS_BOTH)
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "graph '%s': slot %u: access %u is not read, write or both",
                           graph->name, (unsigned)slot, (unsigned)access);
    if (policy != RONDO_SLOT_REBIND && policy != RONDO_SLOT_COPY)
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "graph '%s': slot %u: %d is no policy", graph->name,
                           (unsigned)slot, (int)policy);
    for (uint32_t i = 0; i < graph->slots.count; i++) {
        const rondo__graph_slot *other = rondo__graph_slot_at(graph, i);
        if (start < other->address + other->length && other->address < end)
            return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "graph '%s': the range of slot %u overlaps that of slot %u",
                               graph->name, (unsigned)slot, (unsigned)i);
    }
    rondo__graph_slot declared = {
        .address = start, .length = length, .bound = start, .access = access, .policy = policy};
    return rondo__buffer_append(&graph->slots, &declared, 1);
}

/* Whoever manages a graph compares addresses at each replay and binds what has moved: other memory at the same address is
 * as good, so there is nothing to watch. */
static rondo_status slots_resolve(rondo_graph *graph, uint32_t slot, uint64_t address,
                                  rondo__memory_reference *out_reference) {
    *out_reference = (rondo__memory_reference){0};
    if (graph->managed) return RONDO_OK;
    RONDO__TRY_NOTE(rondo__memory_resolve(graph->device->memory, address, rondo__graph_slot_at(graph, slot)->length,
                                          &graph->watcher, out_reference),
                    "slot %u of graph '%s'", (unsigned)slot, graph->name);
    return RONDO_OK;
}

rondo_status rondo__graph_open_slots(rondo_graph *graph) {
    for (uint32_t i = 0; i < graph->slots.count; i++) {
        rondo__graph_slot *slot = rondo__graph_slot_at(graph, i);
        uint32_t number;
        slot->bound = slot->address;
        RONDO__TRY(slots_resolve(graph, i, slot->address, &slot->reference));
        slot->declared = slot->reference;
        RONDO__TRY(rondo__call_list_add_slot(graph->list, slot->address, slot->length, &number));
        rondo__call_list_slot_access(graph->list, number, slot->access);
        if (slot->policy == RONDO_SLOT_COPY)
            RONDO__TRY_NOTE(rondo__memory_allocate(graph->device->memory, slot->length, &slot->own),
                            "the buffer for slot %u of graph '%s'", (unsigned)i, graph->name);
    }
    return RONDO_OK;
}

void rondo__graph_free_slots(rondo_graph *graph) {
    for (uint32_t i = 0; i < graph->slots.count; i++) {
        rondo__graph_slot *slot = rondo__graph_slot_at(graph, i);
        if (slot->own) RONDO__IGNORE(rondo__memory_free(graph->device->memory, slot->own));
        slot->own = 0;
        slot->bound = slot->address;
        slot->reference = slot->declared = (rondo__memory_reference){0};
        slot->copy_in = slot->copy_out = false;
    }
    graph->copies = false;
}

static void slots_choose_copies(rondo_graph *graph) {
    graph->copies = false;
    for (uint32_t i = 0; i < graph->slots.count; i++) {
        rondo__graph_slot *slot = rondo__graph_slot_at(graph, i);
        bool covered,
            used = rondo__call_list_slot_mentions(graph->list, i, &covered) && slot->policy == RONDO_SLOT_COPY;
        /* What is only written, but not wholly, keeps its other bytes: they must be brought in to be carried out. */
        slot->copy_in = used && ((slot->access & RONDO_ACCESS_READ) || !covered);
        slot->copy_out = used && (slot->access & RONDO_ACCESS_WRITE);
        graph->copies |= used;
    }
    graph->around = graph->copies || graph->generators.count;
}

void rondo__graph_close_slots(rondo_graph *graph) {
    for (uint32_t i = 0; i < graph->slots.count; i++) {
        const rondo__graph_slot *slot = rondo__graph_slot_at(graph, i);
        rondo__call_list_bind(graph->list, i, slot->own ? slot->own : slot->bound);
    }
    slots_choose_copies(graph);
}

rondo_status rondo__graph_copy_slots(const rondo_graph *graph, rondo_stream *stream, bool in) {
    for (uint32_t i = 0; i < graph->slots.count; i++) {
        const rondo__graph_slot *slot = rondo__graph_slot_at(graph, i);
        if (!(in ? slot->copy_in : slot->copy_out)) continue;
        uint64_t to = in ? slot->own : slot->bound, from = in ? slot->bound : slot->own;
        RONDO__TRY_NOTE(rondo__stream_copy(stream, to, from, slot->length, RONDO_COPY_DEVICE_TO_DEVICE),
                        "while copying slot %u of graph '%s' %s", (unsigned)i, graph->name, in ? "in" : "out");
    }
    return RONDO_OK;
}

static rondo_status slots_refuse_opaque(const rondo_graph *graph, uint32_t slot) {
    rondo__call_list_node node;
    for (uint64_t i = 0; i < rondo__call_list_count(graph->list); i++) {
        rondo__call_list_describe(graph->list, i, &node);
        if (node.kind != RONDO__LIST_HOST_CALL) continue;
        return RONDO__FAIL(
            UNSUPPORTED, CAPTURE,
            "graph '%s' is opaque: node %llu is a host call, which may use the memory of slot %u in ways "
            "that nobody can see, so the slot cannot be bound: capture again, or leave the call out",
            graph->name, (unsigned long long)i, (unsigned)slot);
    }
    return RONDO_OK;
}

/* Into the list, and into the device's own graph. */
static void slots_write(rondo_graph *graph, uint32_t slot, uint64_t address) {
    uint64_t entry;
    rondo__call_list_bind(graph->list, slot, address);
    if (!graph->driver.graph) return;
    for (size_t i = 0; rondo__call_list_mention_at(graph->list, slot, i, &entry); i++)
        rondo__driver_graph_follow(&graph->driver, graph->list, entry);
}

rondo_status rondo_graph_bind(rondo_graph *graph, uint32_t slot, void *address) {
    uint64_t start = (uint64_t)(uintptr_t)address, counts[RONDO__LIST_KINDS], end;
    rondo__memory_reference reference;
    if (!graph) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "bind without a graph");
    RONDO__TRY(rondo__graph_check(graph, RONDO__GRAPH_BIND));
    if (slot >= graph->slots.count)
        return RONDO__FAIL(OUT_OF_RANGE, CAPTURE, "graph '%s' has %zu slots: there is no slot %u", graph->name,
                           graph->slots.count, (unsigned)slot);
    rondo__graph_slot *s = rondo__graph_slot_at(graph, slot);
    if (!start || !rondo__checked_add_u64(start, s->length, &end))
        return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "graph '%s': slot %u cannot be bound to %p", graph->name,
                           (unsigned)slot, address);
    rondo__call_list_counts(graph->list, counts);
    if (counts[RONDO__LIST_HOST_CALL]) RONDO__TRY(slots_refuse_opaque(graph, slot));
    RONDO__TRY(rondo__ticket_wait(&graph->ticket));
    RONDO__TRY(slots_resolve(graph, slot, start, &reference));
    s->bound = start;
    s->reference = reference;
    if (!s->own) slots_write(graph, slot, start); /* else the next replay copies from there */
    return RONDO_OK;
}

rondo_status rondo__graph_bind(rondo_graph *graph, uint32_t slot, uint64_t address) {
    bool plain = graph->managed && graph->ticket.immediate && rondo__graph_state_of(graph) == RONDO_GRAPH_READY;
    if (!plain || slot >= graph->slots.count || !address || rondo__graph_slot_at(graph, slot)->own) {
        return rondo_graph_bind(graph, slot, (void *)(uintptr_t)address);
    }
    rondo__graph_slot_at(graph, slot)->bound = address;
    slots_write(graph, slot, address);
    return RONDO_OK;
}

/* An argument that now lies where a slot was declared is the slot's, unless that memory has become somebody else's. */
static void slots_close_dead(rondo_graph *graph) {
    for (uint32_t i = 0; i < graph->slots.count; i++) {
        const rondo__graph_slot *slot = rondo__graph_slot_at(graph, i);
        if (slot->declared.base && !rondo__memory_alive(graph->device->memory, &slot->declared))
            rondo__call_list_slot_close(graph->list, i);
    }
}

static rondo_status slots_check_updated_copy(const rondo_graph *graph, uint64_t node, const rondo_argument *arguments,
                                             uint32_t argument_count) {
    rondo__call_list_node described;
    if (node >= rondo__call_list_count(graph->list) || argument_count != 3 || !arguments) return RONDO_OK;
    rondo__call_list_describe(graph->list, node, &described);
    if (described.kind != RONDO__LIST_COPY) return RONDO_OK;
    return rondo__graph_check_copy(graph, arguments[0].word, arguments[1].word, arguments[2].word, described.copy_kind);
}

rondo_status rondo_graph_update(rondo_graph *graph, uint64_t node, const rondo_argument *arguments,
                                uint32_t argument_count) {
    if (!graph) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "update without a graph");
    RONDO__TRY(rondo__graph_check(graph, RONDO__GRAPH_UPDATE));
    if (graph->direct)
        return RONDO__FAIL(
            UNSUPPORTED, CAPTURE,
            "graph '%s' was captured by the driver on another library's stream: its nodes are not known here",
            graph->name);
    RONDO__TRY_NOTE(slots_check_updated_copy(graph, node, arguments, argument_count),
                    "update of node %llu of graph '%s'", (unsigned long long)node, graph->name);
    RONDO__TRY(rondo__ticket_wait(&graph->ticket));
    slots_close_dead(graph);
    RONDO__TRY_NOTE(rondo__call_list_update(graph->list, node, arguments, argument_count), "update of graph '%s'",
                    graph->name);
    rondo__driver_graph_follow(&graph->driver, graph->list, node);
    slots_choose_copies(graph);
    /* A slot that nobody mentioned may be mentioned now, and its memory gone long since: the next replay looks. */
    rondo__memory_raise_stale(&graph->watcher, RONDO__STALE_FREED);
    return RONDO_OK;
}

/* Whether a replay touches the memory that the slot is bound to. */
static bool slots_in_use(const rondo_graph *graph, uint32_t slot) {
    const rondo__graph_slot *s = rondo__graph_slot_at(graph, slot);
    bool covered;
    if (s->policy == RONDO_SLOT_COPY) return s->copy_in || s->copy_out;
    return rondo__call_list_slot_mentions(graph->list, slot, &covered) != 0;
}

static bool slots_meet(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
    return a < b ? b - a < a_bytes : a - b < b_bytes;
}

bool rondo__graph_uses(const rondo__flight *flight, uint64_t address, uint64_t bytes) {
    const rondo_graph *graph =
        (const rondo_graph *)(const void *)((const char *)flight - offsetof(rondo_graph, ticket.flight));
    for (uint32_t i = 0; i < graph->slots.count; i++) {
        const rondo__graph_slot *slot = rondo__graph_slot_at(graph, i);
        if (slots_meet(address, bytes, slot->bound, slot->length) && slots_in_use(graph, i)) return true;
    }
    return rondo__call_list_mentions(graph->list, address, bytes);
}

rondo_status rondo__graph_explain_slots(const rondo_graph *graph) {
    char why[256];
    for (uint32_t i = 0; i < graph->slots.count; i++) {
        const rondo__graph_slot *slot = rondo__graph_slot_at(graph, i);
        if (!slots_in_use(graph, i) ||
            rondo__memory_alive_for(graph->device->memory, &slot->reference, &graph->watcher))
            continue;
        rondo__memory_explain(graph->device->memory, &slot->reference, why, sizeof why);
        return RONDO__FAIL(STALE, MEMORY,
                           "slot %u: address 0x%llx, %s, lies in memory that is gone: %s. Bind the slot anew",
                           (unsigned)i, (unsigned long long)slot->bound,
                           slot->bound == slot->address ? "where it was declared" : "where it was bound", why);
    }
    return RONDO_OK;
}

bool rondo__graph_slots_unverified(const rondo_graph *graph) {
    for (uint32_t i = 0; i < graph->slots.count; i++) {
        if (!rondo__graph_slot_at(graph, i)->reference.base && slots_in_use(graph, i)) return true;
    }
    return false;
}
