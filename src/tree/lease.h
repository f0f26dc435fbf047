/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases: who has the memory of an output, in one word. The tree gives it to a storage, takes it back, or hands it to the
 * allocator; the storage gives it up from any thread at any time. The word decides who was first.
 *
 *   epoch (40 bits) | storages that hold the lease (21) | orphan (1) | owner (2)
 *
 * The epoch goes up whenever the memory is given to another storage or taken from a living one, so that a storage that
 * comes late means nothing. Leases of a node lie in one group, which lives until the node and all those storages are
 * gone. */
#ifndef RONDO_SRC_TREE_LEASE_H
#define RONDO_SRC_TREE_LEASE_H

#include <rondo/tree.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "base/thread.h"

enum {
    RONDO__LEASE_OVER = 0,
    RONDO__LEASE_REPLAY = 1,    /* alive; the allocator knows nothing of the block */
    RONDO__LEASE_ALLOCATOR = 2, /* alive, on a live block of the allocator's: freed at the end */
    RONDO__LEASE_BUSY = 3       /* somebody decides; soon over */
};

/* What outlives a tree as long as a lease does: the device's ops, and names for messages. */
typedef struct rondo__tree_book {
    rondo__ref_count references;
    rondo_instance *instance; /* retained */
    rondo_allocator allocator;
    rondo_graph_ops ops;
    bool serial;
    rondo__mutex mutex;  /* names */
    rondo__buffer names; /* char *, by function */
} rondo__tree_book;

/* A failure leaves the ops alone. */
RONDO_MUST_USE rondo_status rondo__book_create(rondo_instance *instance, const rondo_graph_ops *ops,
                                               rondo__tree_book **out_book);
void rondo__book_release(rondo__tree_book *book);
RONDO_MUST_USE rondo_status rondo__book_add_name(rondo__tree_book *book, const char *name);

typedef struct rondo__lease_group rondo__lease_group;
struct rondo_tree_lease {
    atomic_uint_least64_t word;
    _Atomic(void *) storage;
    uint64_t pointer, bytes;
    rondo__lease_group *group;
    void *weak;    /* of weak hosts: under the tree's lock */
    uint32_t mark; /* for walks, under the tree's lock, as the next */
    bool listed, granted;
    atomic_uint_least32_t taker; /* function whose run took the memory last; its id + 1, 0: none */
    atomic_uint_least64_t taker_run;
};
struct rondo__lease_group {
    atomic_uint_least64_t holders;
    rondo__tree_book *book; /* retained */
    uint32_t count, function;
    uint64_t run; /* number of the run that recorded it */
    rondo_tree_lease leases[];
};

RONDO_MUST_USE rondo_status rondo__lease_group_create(rondo__tree_book *book, uint32_t function, uint64_t run,
                                                      uint32_t count, rondo__lease_group **out_group);
/* The node is gone; storages that still hold leases keep the group. */
void rondo__lease_group_orphan(rondo__lease_group *group);

#define RONDO__LEASE_EPOCH_SHIFT 24u
#define RONDO__LEASE_HELD ((uint64_t)1 << 3)
#define RONDO__LEASE_HELD_MASK ((((uint64_t)1 << 21) - 1u) << 3)
#define RONDO__LEASE_ORPHAN ((uint64_t)1 << 2)
#define RONDO__LEASE_OWNER_MASK ((uint64_t)3)

static inline uint64_t rondo__lease_word(const rondo_tree_lease *lease) {
    return atomic_load_explicit(&lease->word, memory_order_acquire);
}
static inline uint64_t rondo__lease_epoch(uint64_t word) { return word >> RONDO__LEASE_EPOCH_SHIFT; }
/* Until nobody is deciding about it. */
void rondo__lease_wait(const rondo_tree_lease *lease);
/* One that is about to end has ended: its block may be somebody else's already. */
static inline bool rondo__lease_live(const rondo_tree_lease *lease) {
    uint64_t owner = rondo__lease_word(lease) & RONDO__LEASE_OWNER_MASK;
    if (owner != RONDO__LEASE_BUSY) return owner != RONDO__LEASE_OVER;
    rondo__lease_wait(lease);
    return (rondo__lease_word(lease) & RONDO__LEASE_OWNER_MASK) != RONDO__LEASE_OVER;
}

/* The rest is for the tree, under its lock. */
/* To another storage: a new epoch, which it returns. The lease is over. */
uint64_t rondo__lease_grant(rondo_tree_lease *lease, uint64_t owner);
static inline uint64_t rondo__lease_grant_quick(rondo_tree_lease *lease, uint64_t owner) {
    uint64_t word = rondo__lease_word(lease);
    if (word & RONDO__LEASE_HELD_MASK) return rondo__lease_grant(lease, owner);
    /* No storage is left that could change it. */
    uint64_t epoch = rondo__lease_epoch(word) + 1u;
    uint64_t wanted = (epoch << RONDO__LEASE_EPOCH_SHIFT) | (word & RONDO__LEASE_ORPHAN) | RONDO__LEASE_HELD | owner;
    atomic_store_explicit(&lease->word, wanted, memory_order_release);
    return epoch;
}
/* The storage never came to be: takes the grant back. */
void rondo__lease_revoke(rondo_tree_lease *lease);
/* The tree takes the memory back: of a lease that is over or of replays, the common cases, in one step. False: another. */
bool rondo__lease_take(rondo_tree_lease *lease, uint32_t taker, uint64_t run);
/* Why its use fails, as a text for hosts that want it ahead. */
void rondo__lease_message(const rondo_tree_lease *lease, char *buffer, size_t capacity);
/* Replay to allocator: false when it ended meanwhile (then the block is the caller's to free). */
bool rondo__lease_promote(rondo_tree_lease *lease);
/* Holds the lease of a living storage, so that it cannot end: false when it has ended. */
bool rondo__lease_seize(rondo_tree_lease *lease, uint64_t *out_owner);
/* After seize. Back to what it was, or over; `forgotten`: the storage will not tell its end any more. */
void rondo__lease_yield(rondo_tree_lease *lease, uint64_t owner);
void rondo__lease_finish(rondo_tree_lease *lease, bool forgotten, uint32_t taker, uint64_t run);

#endif
