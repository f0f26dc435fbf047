/* SPDX-License-Identifier: Apache-2.0
 *
 * The insides of a captured graph, for the files of this folder.
 *
 * A graph is a state, a call list, and what ties the list to the world: slots, the watcher of the memory it mentions, a
 * ticket for the replay in flight. While it captures it is also the recorder on its stream.
 */
#ifndef RONDO_SRC_GRAPH_GRAPH_H
#define RONDO_SRC_GRAPH_GRAPH_H

#include "base/checked.h"
#include "graph/driver.h"
#include "graph/list.h"
#include "graph/modes.h"
#include "graph/rng.h"
#include "graph/ticket.h"

#define RONDO__GRAPH_ERROR_MAX 512u

/* What can be asked of a graph: a row of the table in state.c. */
typedef int32_t rondo__graph_call;
enum {
    RONDO__GRAPH_DECLARE_SLOT,
    RONDO__GRAPH_CAPTURE_BEGIN,
    RONDO__GRAPH_CAPTURE_END,
    RONDO__GRAPH_ABORT,
    RONDO__GRAPH_INSTANTIATE,
    RONDO__GRAPH_REPLAY,
    RONDO__GRAPH_BIND,
    RONDO__GRAPH_UPDATE,
    RONDO__GRAPH_ENABLE_DEBUG,
    RONDO__GRAPH_DEBUG_DUMP,
    RONDO__GRAPH_RESET,
    RONDO__GRAPH_POOL,
    RONDO__GRAPH_INFO,
    RONDO__GRAPH_RECORD, /* work that reaches the capturing stream */
    RONDO__GRAPH_CALL_COUNT
};
#define RONDO__GRAPH_STATE_COUNT 5

/* [address, address + length) as it was declared, and where it is now. */
typedef struct rondo__graph_slot {
    uint64_t address, length;
    uint64_t bound;                    /* address now: the declared one until bind */
    rondo__memory_reference declared;  /* the allocation that the declared range was in when the capture began */
    rondo__memory_reference reference; /* the allocation that `bound` is in; base 0: not ours */
    uint64_t own;                      /* the graph's buffer, of policy copy; 0 while there is none */
    uint32_t access;
    rondo_slot_policy policy;
    bool copy_in, copy_out; /* what a replay does around the list, of policy copy */
} rondo__graph_slot;

/* A stream that the capture records; the first is the one that it began on, in lane 0. */
typedef struct rondo__graph_stream {
    rondo_stream *stream; /* not retained: a stream that goes away abandons its capture */
    uint32_t lane;
} rondo__graph_stream;

struct rondo_graph {
    rondo__recorder recorder; /* first: a recorder is its graph */
    rondo__ref_count references;
    rondo_allocator allocator;
    rondo_device *device; /* retained */
    char *name;           /* "" when none was given */
    bool keep_graph, debug;
    bool told;    /* that keep_graph has no effect */
    bool managed; /* of a tree: see rondo__graph_manage */
    atomic_int_least32_t state;

    /* The capture. Under the mutex, since abort may come from any thread. */
    rondo__mutex mutex;
    rondo_stream *stream;  /* that it began on; null: no capture */
    rondo__buffer streams; /* rondo__graph_stream: all that it records */
    rondo__buffer idle;    /* uint32_t: lanes of no stream that nobody uses now */
    rondo__buffer open;    /* uint64_t: entries of conditions that have not ended */
    uint32_t open_lane;    /* theirs */
    uint64_t thread, capture_id;
    rondo_capture_mode mode;
    char first_error[RONDO__GRAPH_ERROR_MAX]; /* of an invalidated capture */
    const char *unsafe;                       /* the call that broke it from outside, atomic; null: none */

    /* What was captured. */
    rondo__call_list *list;
    rondo__lanes *lanes; /* null where nothing runs apart */
    rondo__driver_graph driver;
    bool direct;              /* the driver's capture, of another's stream: the list has events of outside alone */
    rondo_pool_id pool;       /* one use of it is ours; {0, 0}: none */
    bool copies;              /* some slot is copied around the list */
    bool around;              /* a replay has to do something before or after the list */
    rondo__buffer generators; /* rondo__rng_use */
    rondo__memory_watcher watcher;
    rondo__buffer slots; /* rondo__graph_slot */
    rondo__ticket ticket;
    uint64_t replays;
};

/* graph.c: before its capture. The graph belongs to somebody who brings its pool back to layouts between replays, and
 * answers for their order: a restore does not make it stale, the memory of its slots is not watched, and that it captures
 * nothing is worth no warning. */
void rondo__graph_manage(rondo_graph *graph);

/* state.c */
/* Null when the call is legal in the graph's state; else INVALID_STATE (capture), which says what to do first. */
RONDO_MUST_USE rondo_status rondo__graph_check(const rondo_graph *graph, rondo__graph_call call);
/* The table's cell: for tests and documentation. */
bool rondo__graph_legal(rondo_graph_state state, rondo__graph_call call, bool keep_graph);
const char *rondo__graph_state_name(rondo_graph_state state);

static inline rondo_graph_state rondo__graph_state_of(const rondo_graph *graph) {
    return atomic_load_explicit(&graph->state, memory_order_acquire);
}
static inline void rondo__graph_set_state(rondo_graph *graph, rondo_graph_state state) {
    atomic_store_explicit(&graph->state, state, memory_order_release);
}
static inline rondo__graph_slot *rondo__graph_slot_at(const rondo_graph *graph, uint32_t slot) {
    return RONDO__BUFFER_AT(&graph->slots, rondo__graph_slot, slot);
}

/* record.c: the recorder. */
extern const rondo__recorder_table rondo__graph_recorder;
/* The graph that captures the stream, or null. */
rondo_graph *rondo__graph_of(const rondo_stream *stream);
/* Takes the mutex and says whether work of the stream may be recorded, and in which lane: the list's from now on. Gives
 * the mutex back when it may not. */
RONDO_MUST_USE rondo_status rondo__graph_enter(rondo_graph *graph, const rondo_stream *stream, uint32_t *out_lane);
/* Gives the mutex back. Work that was refused is missing from the graph, so its capture is over. */
rondo_status rondo__graph_leave(rondo_graph *graph, rondo_status status);
/* Keeps the first error of a capture. Under the mutex. */
void rondo__graph_invalidate(rondo_graph *graph, rondo_status why);
/* The same text, also when the call came from outside. */
const char *rondo__graph_first_error(rondo_graph *graph);
/* A copy as a node: checked, and its pinned memory held. */
RONDO_MUST_USE rondo_status rondo__graph_append_copy(rondo_graph *graph, uint64_t destination, uint64_t source,
                                                     uint64_t bytes, rondo_copy_kind kind);
/* INVALID_STATE (capture) where a condition of the capture is open. */
RONDO_MUST_USE rondo_status rondo__graph_check_closed(const rondo_graph *graph, const char *what);

/* fork.c: what an event does to a capture. */
RONDO_MUST_USE rondo_status rondo__graph_event_record(rondo__recorder *recorder, rondo_event *event,
                                                      rondo_stream *stream, bool external);
RONDO_MUST_USE rondo_status rondo__graph_event_wait(rondo__recorder *recorder, rondo_event *event, rondo_stream *stream,
                                                    bool external);
/* CAPTURE_UNJOINED names lane and node. */
RONDO_MUST_USE rondo_status rondo__graph_check_joined(const rondo_graph *graph);

/* child.c: the child's nodes become nodes of the capture on the stream. */
RONDO_MUST_USE rondo_status rondo__graph_embed(const rondo_graph *child, rondo_stream *stream);

/* random.c: generators of a capture and of its replays. */
RONDO_MUST_USE rondo_status rondo__graph_use_generator(rondo_graph *graph, rondo_generator *generator,
                                                       rondo__rng_use **out_use);
/* The capture is over: who uses them may ask and set them again. */
void rondo__graph_close_generators(rondo_graph *graph);
void rondo__graph_free_generators(rondo_graph *graph);
/* Before a replay: seed and offset of each, which it moves on. */
RONDO_MUST_USE rondo_status rondo__graph_write_cells(rondo_graph *graph, rondo_stream *stream);
/* That replay did not begin: its numbers go to the next, unless somebody took others since. */
void rondo__graph_give_numbers_back(rondo_graph *graph);

/* slots.c: rondo_graph_bind for whoever manages the graph, knows that it holds no host call, and binds at each replay. */
RONDO_MUST_USE rondo_status rondo__graph_bind(rondo_graph *graph, uint32_t slot, uint64_t address);
/* slots.c: whether a replay may touch a byte of the range. */
bool rondo__graph_uses(const rondo__flight *flight, uint64_t address, uint64_t bytes);

/* capture.c */
/* What the stream still had to do is waited for; a failure of it stays with the stream. */
void rondo__graph_settle(rondo_stream *stream);
/* Ends a capture without a word: the state is empty afterwards. No effect in other states. */
void rondo__graph_drop_capture(rondo_graph *graph);
/* Everything captured, and the graph's own buffers. Nothing is in flight. Slots stay declared. */
void rondo__graph_forget(rondo_graph *graph);
/* Whether host memory of a copy may be recorded: INVALID_ARGUMENT (capture) for pageable memory. */
RONDO_MUST_USE rondo_status rondo__graph_check_copy(const rondo_graph *graph, uint64_t destination, uint64_t source,
                                                    uint64_t bytes, rondo_copy_kind kind);

/* slots.c */
/* At the beginning of a capture: resolves the declared ranges, makes the buffers of policy copy, tells the list. A
 * failure leaves buffers for rondo__graph_forget. */
RONDO_MUST_USE rondo_status rondo__graph_open_slots(rondo_graph *graph);
/* When the list is sealed: points arguments to the graph's own buffers and sees which copies a replay needs. */
void rondo__graph_close_slots(rondo_graph *graph);
/* The copies before (in) or after the list. */
RONDO_MUST_USE rondo_status rondo__graph_copy_slots(const rondo_graph *graph, rondo_stream *stream, bool in);
/* STALE names the slot whose memory is gone. */
rondo_status rondo__graph_explain_slots(const rondo_graph *graph);
bool rondo__graph_slots_unverified(const rondo_graph *graph);
void rondo__graph_free_slots(rondo_graph *graph);

#endif
