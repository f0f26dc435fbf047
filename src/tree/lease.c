/* SPDX-License-Identifier: Apache-2.0
 *
 * See lease.h. Every change of a word is one compare and exchange, or a plain store where no other thread can be there. */
#include "tree/lease.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/instance.h"

/* ------------------------------------------------------------------------------------------------------ book */

rondo_status rondo__book_create(rondo_instance *instance, const rondo_graph_ops *ops, rondo__tree_book **out_book) {
    const rondo_allocator *allocator = &rondo__instance_base_of(instance)->allocator;
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(rondo__tree_book), &memory));
    rondo__tree_book *book = memory;
    rondo__ref_init(&book->references);
    rondo_instance_retain(instance);
    book->instance = instance;
    book->allocator = *allocator;
    book->ops = *ops;
    rondo__mutex_init(&book->mutex);
    rondo__buffer_init(&book->names, allocator, sizeof(char *), UINT32_MAX);
    *out_book = book;
    return RONDO_OK;
}

void rondo__book_release(rondo__tree_book *book) {
    if (!book || !rondo__ref_release(&book->references)) return;
    for (size_t i = 0; i < book->names.count; i++) {
        rondo__string_free(&book->allocator, *RONDO__BUFFER_AT(&book->names, char *, i));
    }
    rondo__buffer_deinit(&book->names);
    rondo__mutex_deinit(&book->mutex);
    if (book->ops.destroy) book->ops.destroy(book->ops.user);
    rondo_allocator allocator = book->allocator;
    rondo_instance *instance = book->instance;
    rondo__free(&allocator, book, sizeof *book);
    rondo_instance_release(instance);
}

rondo_status rondo__book_add_name(rondo__tree_book *book, const char *name) {
    char *copy = NULL;
    RONDO__TRY(rondo__string_copy(&book->allocator, name, &copy));
    rondo__mutex_lock(&book->mutex);
    rondo_status status = rondo__buffer_append(&book->names, &copy, 1);
    rondo__mutex_unlock(&book->mutex);
    if (status) rondo__string_free(&book->allocator, copy);
    return status;
}

/* ----------------------------------------------------------------------------------------------------- group */

static size_t group_size(uint32_t count) {
    return sizeof(rondo__lease_group) + (size_t)count * sizeof(rondo_tree_lease);
}

rondo_status rondo__lease_group_create(rondo__tree_book *book, uint32_t function, uint64_t run, uint32_t count,
                                       rondo__lease_group **out_group) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(&book->allocator, group_size(count), &memory));
    rondo__lease_group *group = memory;
    atomic_init(&group->holders, 1u);
    group->book = book;
    rondo__ref_retain(&book->references);
    group->count = count;
    group->function = function;
    group->run = run;
    for (uint32_t i = 0; i < count; i++) group->leases[i].group = group;
    *out_group = group;
    return RONDO_OK;
}

static void group_let_go(rondo__lease_group *group, uint64_t holders) {
    if (atomic_fetch_sub_explicit(&group->holders, holders, memory_order_acq_rel) != holders) return;
    rondo__tree_book *book = group->book;
    rondo__free(&book->allocator, group, group_size(group->count));
    rondo__book_release(book);
}

void rondo__lease_group_orphan(rondo__lease_group *group) {
    if (!group) return;
    /* One holder a lease with storages, on top of the node's own, which goes last. */
    uint64_t surplus = 1;
    (void)atomic_fetch_add_explicit(&group->holders, group->count, memory_order_relaxed);
    for (uint32_t i = 0; i < group->count; i++) {
        uint64_t before = atomic_fetch_or_explicit(&group->leases[i].word, RONDO__LEASE_ORPHAN, memory_order_acq_rel);
        if (!(before & RONDO__LEASE_HELD_MASK)) surplus++;
    }
    group_let_go(group, surplus);
}

/* ------------------------------------------------------------------------------------------ for storages */

RONDO__HOT bool rondo_tree_lease_alive(const rondo_tree_lease *lease, uint64_t epoch) {
    if (!lease) return false;
    uint64_t word = rondo__lease_word(lease);
    return rondo__lease_epoch(word) == epoch && (word & RONDO__LEASE_OWNER_MASK) != RONDO__LEASE_OVER;
}

RONDO__HOT void *rondo_tree_lease_storage(const rondo_tree_lease *lease) {
    return lease ? atomic_load_explicit(&lease->storage, memory_order_acquire) : NULL;
}

RONDO__HOT void rondo_tree_lease_set_storage(rondo_tree_lease *lease, void *storage) {
    if (lease) atomic_store_explicit(&lease->storage, storage, memory_order_release);
}

uint64_t rondo_tree_lease_pointer(const rondo_tree_lease *lease) { return lease ? lease->pointer : 0; }

uint64_t rondo_tree_lease_bytes(const rondo_tree_lease *lease) { return lease ? lease->bytes : 0; }

/* One storage less. The word that it was changed from is `before`. */
static void lease_left(rondo_tree_lease *lease, uint64_t before) {
    bool last = (before & RONDO__LEASE_HELD_MASK) == RONDO__LEASE_HELD;
    if (last && (before & RONDO__LEASE_ORPHAN)) group_let_go(lease->group, 1);
}

static bool lease_change(rondo_tree_lease *lease, uint64_t *word, uint64_t wanted) {
    return atomic_compare_exchange_weak_explicit(&lease->word, word, wanted, memory_order_acq_rel,
                                                 memory_order_acquire);
}

static void lease_release(rondo_tree_lease *lease, uint64_t epoch);

/* Of a replay, and nobody else is there: the common case. */
RONDO__HOT void rondo_tree_lease_release(rondo_tree_lease *lease, uint64_t epoch) {
    const uint64_t odd = RONDO__LEASE_OWNER_MASK | RONDO__LEASE_ORPHAN;
    if (!lease) return;
    uint64_t word = atomic_load_explicit(&lease->word, memory_order_relaxed);
    bool quick = rondo__lease_epoch(word) == epoch && (word & odd) == RONDO__LEASE_REPLAY;
    if (quick && (rondo__alone() || lease->group->book->serial)) {
        word = (word & ~RONDO__LEASE_OWNER_MASK) - RONDO__LEASE_HELD;
        atomic_store_explicit(&lease->word, word, memory_order_relaxed);
    } else {
        lease_release(lease, epoch);
    }
}

static void lease_release(rondo_tree_lease *lease, uint64_t epoch) {
    uint64_t word = rondo__lease_word(lease);
    for (;;) {
        uint64_t owner = word & RONDO__LEASE_OWNER_MASK, rest = word & ~RONDO__LEASE_OWNER_MASK;
        if (rondo__lease_epoch(word) != epoch || owner == RONDO__LEASE_OVER) {
            /* The tree was first. */
            if (!lease_change(lease, &word, word - RONDO__LEASE_HELD)) continue;
            lease_left(lease, word);
            return;
        }
        if (owner == RONDO__LEASE_BUSY) {
            (void)sched_yield();
            word = rondo__lease_word(lease);
        } else if (owner == RONDO__LEASE_REPLAY) {
            if (!lease_change(lease, &word, rest - RONDO__LEASE_HELD)) continue;
            lease_left(lease, word);
            return;
        } else if (lease_change(lease, &word, rest | RONDO__LEASE_BUSY)) {
            /* Held while the block is freed: the group stays, and nobody else decides. */
            const rondo_graph_ops *ops = &lease->group->book->ops;
            RONDO__IGNORE(ops->raw_delete(ops->user, lease->pointer));
            word = rest | RONDO__LEASE_BUSY;
            while (!lease_change(lease, &word, (word & ~RONDO__LEASE_OWNER_MASK) - RONDO__LEASE_HELD)) continue;
            lease_left(lease, word);
            return;
        }
    }
}

static const char *book_name(const rondo__tree_book *book, uint32_t function) {
    return function < book->names.count ? *RONDO__BUFFER_AT(&book->names, char *, function) : "?";
}

static const char lease_advice[] = "copy the output before the next run of the tree, or have it returned as a copy "
                                   "(owned_outputs)";
static const char lease_advice_step[] =
    "or mark where a step begins (rondo_tree_mark_step), so that outputs of one step "
    "are only used in it";

void rondo__lease_message(const rondo_tree_lease *lease, char *buffer, size_t capacity) {
    const rondo__lease_group *group = lease->group;
    rondo__tree_book *book = group->book;
    uint32_t taker = atomic_load_explicit(&lease->taker, memory_order_relaxed);
    uint64_t run = atomic_load_explicit(&lease->taker_run, memory_order_relaxed);
    rondo__mutex_lock(&book->mutex);
    const char *producer = book_name(book, group->function);
    if (taker) {
        (void)snprintf(
            buffer, capacity,
            "accessing an output of '%s' that has been overwritten by a subsequent run: run %llu of the tree, "
            "of '%s'",
            producer, (unsigned long long)run, book_name(book, taker - 1));
    } else {
        (void)snprintf(buffer, capacity, "accessing an output of '%s' that has been given back: its step is over",
                       producer);
    }
    rondo__mutex_unlock(&book->mutex);
}

rondo_status rondo_tree_lease_check(const rondo_tree_lease *lease, uint64_t epoch) {
    char text[512];
    if (!lease) return RONDO__FAIL(INVALID_ARGUMENT, TREE, "no lease was given");
    if (rondo_tree_lease_alive(lease, epoch)) return RONDO_OK;
    rondo__lease_message(lease, text, sizeof text);
    rondo_status status = RONDO__FAIL(STALE, TREE, "%s", text);
    return rondo__status_note(rondo__status_note(status, "%s", lease_advice), "%s", lease_advice_step);
}

/* ------------------------------------------------------------------------------------------------ for the tree */

RONDO__HOT uint64_t rondo__lease_grant(rondo_tree_lease *lease, uint64_t owner) {
    uint64_t word = rondo__lease_word(lease);
    for (;;) {
        uint64_t epoch = rondo__lease_epoch(word) + 1u;
        uint64_t held = (word & (RONDO__LEASE_HELD_MASK | RONDO__LEASE_ORPHAN)) + RONDO__LEASE_HELD;
        uint64_t wanted = (epoch << RONDO__LEASE_EPOCH_SHIFT) | held | owner;
        if (!(word & RONDO__LEASE_HELD_MASK)) {
            /* No storage is left that could change it. */
            atomic_store_explicit(&lease->word, wanted, memory_order_release);
            return epoch;
        }
        if (lease_change(lease, &word, wanted)) return epoch;
    }
}

void rondo__lease_revoke(rondo_tree_lease *lease) {
    uint64_t word = rondo__lease_word(lease);
    while (!lease_change(lease, &word, (word & ~RONDO__LEASE_OWNER_MASK) - RONDO__LEASE_HELD)) continue;
}

RONDO__HOT bool rondo__lease_take(rondo_tree_lease *lease, uint32_t taker, uint64_t run) {
    uint64_t word = rondo__lease_word(lease);
    while ((word & RONDO__LEASE_OWNER_MASK) == RONDO__LEASE_REPLAY) {
        atomic_store_explicit(&lease->taker, taker, memory_order_relaxed);
        atomic_store_explicit(&lease->taker_run, run, memory_order_relaxed);
        uint64_t wanted = word & ~RONDO__LEASE_OWNER_MASK;
        if (lease->group->book->serial || rondo__alone()) {
            atomic_store_explicit(&lease->word, wanted, memory_order_release);
            return true;
        }
        if (lease_change(lease, &word, wanted)) return true;
    }
    return (word & RONDO__LEASE_OWNER_MASK) == RONDO__LEASE_OVER;
}

bool rondo__lease_promote(rondo_tree_lease *lease) {
    uint64_t word = rondo__lease_word(lease);
    while ((word & RONDO__LEASE_OWNER_MASK) == RONDO__LEASE_REPLAY) {
        uint64_t wanted = (word & ~RONDO__LEASE_OWNER_MASK) | RONDO__LEASE_ALLOCATOR;
        if (rondo__alone()) {
            atomic_store_explicit(&lease->word, wanted, memory_order_relaxed);
            return true;
        }
        if (lease_change(lease, &word, wanted)) return true;
    }
    return false;
}

void rondo__lease_wait(const rondo_tree_lease *lease) {
    while ((rondo__lease_word(lease) & RONDO__LEASE_OWNER_MASK) == RONDO__LEASE_BUSY) (void)sched_yield();
}

bool rondo__lease_seize(rondo_tree_lease *lease, uint64_t *out_owner) {
    uint64_t word = rondo__lease_word(lease);
    for (;;) {
        uint64_t owner = word & RONDO__LEASE_OWNER_MASK;
        if (owner == RONDO__LEASE_OVER) return false;
        if (owner == RONDO__LEASE_BUSY) {
            (void)sched_yield();
            word = rondo__lease_word(lease);
        } else if (lease_change(lease, &word, word | RONDO__LEASE_BUSY)) {
            *out_owner = owner;
            return true;
        }
    }
}

void rondo__lease_yield(rondo_tree_lease *lease, uint64_t owner) {
    uint64_t word = rondo__lease_word(lease);
    while (!lease_change(lease, &word, (word & ~RONDO__LEASE_OWNER_MASK) | owner)) continue;
}

void rondo__lease_finish(rondo_tree_lease *lease, bool forgotten, uint32_t taker, uint64_t run) {
    uint64_t word = rondo__lease_word(lease);
    atomic_store_explicit(&lease->taker, taker, memory_order_relaxed);
    atomic_store_explicit(&lease->taker_run, run, memory_order_relaxed);
    uint64_t gone = forgotten ? RONDO__LEASE_HELD : 0u;
    while (!lease_change(lease, &word, (word & ~RONDO__LEASE_OWNER_MASK) - gone)) continue;
    if (forgotten) lease_left(lease, word);
}
