/* SPDX-License-Identifier: Apache-2.0
 *
 * The call list: what a graph replays and what a context runs.
 *
 * Hot: an array of 64-byte entries, baked. Side tables: words beyond five, with the trampoline's contexts; the rebind
 * table (slot -> entry, argument, addend); a cold array with names and argument descriptions, for errors, dumps, stale
 * addresses and devices that have no execute_list.
 */
#ifndef RONDO_SRC_GRAPH_LIST_H
#define RONDO_SRC_GRAPH_LIST_H

#include "base/arena.h"
#include "device/device.h"
#include "graph/lanes.h"
#include "graph/order.h"
#include "memory/memory.h"

typedef int32_t rondo__list_kind;
enum {
    RONDO__LIST_KERNEL = 0,
    RONDO__LIST_COPY = 1,
    RONDO__LIST_FILL = 2,
    RONDO__LIST_HOST_CALL = 3,
    RONDO__LIST_CONDITION = 4, /* what follows, up to its end, runs only if it holds */
    RONDO__LIST_RECORD = 5,    /* of an event outside the graph */
    RONDO__LIST_WAIT = 6
};
#define RONDO__LIST_KINDS 7

typedef struct rondo__call_list rondo__call_list;

/* `watcher` may be null: then no argument is resolved (the context's own arena needs none). */
RONDO_MUST_USE rondo_status rondo__call_list_create(rondo_device *device, rondo__memory_watcher *watcher,
                                                    rondo__call_list **out_list);
void rondo__call_list_destroy(rondo__call_list *list);

/* Slots exist before anything is appended. Arguments that fall into [address, address + length) belong to the slot and
 * keep their distance to its start. address 0 with length > 0: a slot without an address yet, whose arguments are named
 * by rondo__call_list_argument_slot. */
RONDO_MUST_USE rondo_status rondo__call_list_add_slot(rondo__call_list *list, uint64_t address, uint64_t length,
                                                      uint32_t *out_slot);

/* What the arguments of the slot may do with it, RONDO_ACCESS_BOTH until said otherwise: an argument that only writes
 * is refused in a slot that is only read, for its writes would be lost. */
void rondo__call_list_slot_access(rondo__call_list *list, uint32_t slot, uint32_t access);
/* From now on no argument falls into the slot by its address: the range belongs to somebody else. */
void rondo__call_list_slot_close(rondo__call_list *list, uint32_t slot);
/* How many arguments are the slot's, and whether one that only writes covers it whole. */
uint64_t rondo__call_list_slot_mentions(const rondo__call_list *list, uint32_t slot, bool *out_covered);

/* Appending copies everything. A failure leaves the list as it was. */
RONDO_MUST_USE rondo_status rondo__call_list_append_call(rondo__call_list *list, const rondo_call *call);
RONDO_MUST_USE rondo_status rondo__call_list_append_copy(rondo__call_list *list, uint64_t destination, uint64_t source,
                                                         uint64_t bytes, rondo_copy_kind kind);
RONDO_MUST_USE rondo_status rondo__call_list_append_fill(rondo__call_list *list, uint64_t address, uint8_t value,
                                                         uint64_t bytes);
RONDO_MUST_USE rondo_status rondo__call_list_append_host(rondo__call_list *list, rondo_host_function function,
                                                         void *user);
/* An event outside the graph, which the list retains. */
RONDO_MUST_USE rondo_status rondo__call_list_append_event(rondo__call_list *list, rondo_event *event, bool wait);
/* What is appended until the end runs only where the int64 at `address` is not 0. UNSUPPORTED where the backend does not
 * run the list as a whole. */
RONDO_MUST_USE rondo_status rondo__call_list_condition(rondo__call_list *list, uint64_t address, uint64_t *out_entry);
void rondo__call_list_condition_end(rondo__call_list *list, uint64_t entry, uint64_t end);
/* What the arguments of what is appended next resolve to, one each, base 0 where nobody knows; null: nobody does. For
 * nodes of another graph, which the list's watcher inherits from. */
void rondo__call_list_inherit(rondo__call_list *list, const rondo__memory_reference *references);
/* The lane of what is appended next. Several lanes need an order; rondo__call_list_order makes it when first asked. */
void rondo__call_list_lane(rondo__call_list *list, uint32_t lane);
RONDO_MUST_USE rondo_status rondo__call_list_order(rondo__call_list *list, rondo__order **out_order);
/* Null while there was never more than one lane and no event. */
rondo__order *rondo__call_list_lanes(const rondo__call_list *list);
/* Whether a run needs streams and events of its own for the lanes. */
bool rondo__call_list_needs_lanes(const rondo__call_list *list);
/* Nodes [first, first + count) are a copy of that graph's: for dumps. */
RONDO_MUST_USE rondo_status rondo__call_list_add_child(rondo__call_list *list, uint64_t first, uint64_t count,
                                                       const char *name);
typedef struct rondo__list_child {
    uint64_t first, count;
    uint32_t name;
    uint32_t reserved;
} rondo__list_child;
const rondo__list_child *rondo__call_list_child(const rondo__call_list *list, size_t index, const char **out_name);

/* Says that argument `argument` of the entry appended last is slot + addend: bind will write it. */
RONDO_MUST_USE rondo_status rondo__call_list_argument_slot(rondo__call_list *list, uint32_t argument, uint32_t slot,
                                                           uint64_t addend);
/* Bakes trampolines, rebind table and flags; no appending afterwards. May be repeated. */
RONDO_MUST_USE rondo_status rondo__call_list_seal(rondo__call_list *list);

/* Writes base + addend into every argument of the slot. Nothing is in flight (the caller waits). O(mentions), no
 * allocation, no lock. */
void rondo__call_list_bind(rondo__call_list *list, uint32_t slot, uint64_t address);
/* Replaces the arguments of entry `entry`: words, lengths, accesses, slots and references. Nothing is in flight. Copies
 * take destination, source, bytes; fills address, value, bytes. INVALID_ARGUMENT on another count, OUT_OF_RANGE past
 * the end, UNSUPPORTED for a host call. A failure changes nothing. */
RONDO_MUST_USE rondo_status rondo__call_list_update(rondo__call_list *list, uint64_t entry,
                                                    const rondo_argument *arguments, uint32_t argument_count);
/* Runs it on a stream: execute_list where the backend has it (host kernels), else entry by entry. Allocates nothing and
 * takes no lock on an inline device. KERNEL_FAILED names the entry. */
RONDO_MUST_USE rondo_status rondo__call_list_run(const rondo__call_list *list, rondo_stream *stream);
/* The same over streams and events of its lanes; null: everything goes to the one stream, in order of capture. */
RONDO_MUST_USE rondo_status rondo__call_list_run_lanes(const rondo__call_list *list, rondo_stream *stream,
                                                       const rondo__lanes *lanes);
/* Node by node, into what the device captures on these streams; where it fails on the way, what did go out is not joined. Events
 * outside of the graph ask for rondo__device_has_outside_events. */
RONDO_MUST_USE rondo_status rondo__call_list_enqueue(const rondo__call_list *list, rondo_stream *stream,
                                                     const rondo__lanes *lanes);
/* Before and behind the launch of a device's own graph of it: no event that it waits for was last recorded in a capture
 * (INVALID_STATE), and those that it records are recorded. */
RONDO_MUST_USE rondo_status rondo__call_list_check_waits(const rondo__call_list *list);
void rondo__call_list_note_records(const rondo__call_list *list);

/* Looking at it. */
/* The entry of the slot's i-th mention; false past the end. */
bool rondo__call_list_mention_at(const rondo__call_list *list, uint32_t slot, size_t index, uint64_t *out_entry);
uint64_t rondo__call_list_count(const rondo__call_list *list);
uint64_t rondo__call_list_bytes(const rondo__call_list *list); /* host memory it takes */
typedef struct rondo__call_list_node {
    rondo__list_kind kind;
    rondo_copy_kind copy_kind; /* of copies */
    uint32_t lane;
    rondo_kernel kernel; /* of kernels */
    rondo_event *event;  /* of records and waits */
    uint64_t end;        /* of conditions: the first entry that they do not concern */
    const char *name;    /* "" without */
    uint32_t argument_count;
    rondo_argument arguments[RONDO_ARGUMENT_MAX]; /* words as they are now */
    rondo__memory_reference references[RONDO_ARGUMENT_MAX];
    uint32_t slots[RONDO_ARGUMENT_MAX]; /* UINT32_MAX: none */
} rondo__call_list_node;
void rondo__call_list_describe(const rondo__call_list *list, uint64_t entry, rondo__call_list_node *out_node);
/* The first argument whose allocation is no longer alive: STALE (memory), naming node, argument, address and why.
 * Null when all are alive. */
rondo_status rondo__call_list_explain_stale(const rondo__call_list *list);
/* Whether a byte of the range is in an allocation that some argument is in. */
bool rondo__call_list_mentions(const rondo__call_list *list, uint64_t address, uint64_t bytes);
void rondo__call_list_counts(const rondo__call_list *list, uint64_t *out_by_kind /* RONDO__LIST_KINDS */);
bool rondo__call_list_unverified(const rondo__call_list *list);

#endif
