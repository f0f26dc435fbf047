/* SPDX-License-Identifier: Apache-2.0
 *
 * The path: which of its outputs are alive, when it ends, and how the allocator learns of it. */
#include <string.h>

#include "tree/seal.h"

/* --------------------------------------------------------------------------------------------------- liveness */

bool rondo__tree_live_watched(rondo_tree *tree, rondo_tree_lease *lease) {
    if (!rondo__lease_live(lease)) return false;
    if (lease->weak && tree->host.alive(tree->host.user, lease->weak)) return true;
    /* A watched storage frees its own memory, if it has any; it never tells. */
    if (lease->weak) tree->host.unwatch(tree->host.user, lease->weak);
    lease->weak = NULL;
    uint64_t owner = 0;
    if (rondo__lease_seize(lease, &owner)) rondo__lease_finish(lease, true, 0, 0);
    return false;
}

rondo_tree_lease *rondo__tree_find_covering(rondo_tree *tree, uint64_t pointer) {
    for (rondo__tree_node *node = tree->current; node; node = node->parent) {
        for (uint32_t i = 0; node->group && i < node->group->count; i++) {
            rondo_tree_lease *lease = &node->group->leases[i];
            if (pointer - lease->pointer < lease->bytes && rondo__tree_live(tree, lease)) return lease;
        }
    }
    return NULL;
}

rondo_tree_lease *rondo__tree_find_lease(rondo_tree *tree, uint64_t storage) {
    for (rondo__tree_node *node = tree->current; node; node = node->parent) {
        for (uint32_t i = 0; node->group && i < node->group->count; i++) {
            rondo_tree_lease *lease = &node->group->leases[i];
            if (lease->pointer == storage && rondo__tree_live(tree, lease)) return lease;
        }
    }
    return NULL;
}

bool rondo__tree_all_over(rondo_tree *tree) {
    for (rondo__tree_node *node = tree->current; node; node = node->parent) {
        for (uint32_t i = 0; node->group && i < node->group->count; i++) {
            if (rondo__tree_live(tree, &node->group->leases[i])) return false;
        }
    }
    return true;
}

void rondo__tree_mark_dead(rondo_tree *tree, const rondo__tree_node *node) {
    if (++tree->mark > UINT32_MAX) tree->mark = 1;
    for (; node; node = node->parent) {
        for (uint32_t i = 0; i < node->dead_before_count; i++) node->dead_before[i]->mark = (uint32_t)tree->mark;
        for (uint32_t i = 0; i < node->dead_after_count; i++) node->dead_after[i]->mark = (uint32_t)tree->mark;
    }
}

/* -------------------------------------------------------------------------------------------------------- end */

/* Of a lease that is seized: its storage gets other memory, and the lease is over. A failure changes nothing. */
static rondo_status path_move(rondo_tree *tree, rondo_tree_lease *lease, uint64_t owner, void *stream) {
    const rondo_tensor_host *host = &tree->host;
    void *storage = lease->weak ? lease->weak : rondo_tree_lease_storage(lease);
    RONDO__TRY(rondo__tree_order(tree, stream));
    RONDO__TRY(host->evacuate(host->user, stream, storage, lease->pointer, lease->bytes));
    tree->info.evacuated++;
    if (owner == RONDO__LEASE_ALLOCATOR) RONDO__IGNORE(tree->ops.raw_delete(tree->ops.user, lease->pointer));
    if (lease->weak) host->unwatch(host->user, lease->weak);
    lease->weak = NULL;
    rondo__lease_finish(lease, true, 0, tree->runs);
    return RONDO_OK;
}

static void path_poison(rondo_tree *tree, rondo_tree_lease *lease) {
    char text[512];
    void *storage = lease->weak ? lease->weak : rondo_tree_lease_storage(lease);
    if (!tree->host.poison || !storage) return;
    rondo__lease_message(lease, text, sizeof text);
    tree->host.poison(tree->host.user, storage, text);
}

static bool path_moves(const rondo_tree *tree, const rondo_tree_lease *lease) {
    return tree->options.conflict == RONDO_TREE_CONFLICT_COPY && (lease->weak || rondo_tree_lease_storage(lease));
}

static void path_invalidate(rondo_tree *tree, rondo_tree_lease *lease, uint32_t taker, void *stream) {
    uint64_t owner = 0;
    bool plain = !tree->host.poison && tree->options.conflict == RONDO_TREE_CONFLICT_ERROR;
    if (plain && !lease->weak && rondo__lease_take(lease, taker, tree->runs)) return;
    if (!rondo__tree_live(tree, lease) || !rondo__lease_seize(lease, &owner)) return;
    if (path_moves(tree, lease)) {
        rondo_status status = path_move(tree, lease, owner, stream);
        if (!status) return;
        rondo__log_write(tree->log, RONDO_LOG_WARNING,
                         "trees: an output could not be copied before its memory is used again: %s",
                         rondo_status_message(status));
        rondo_status_release(status);
    }
    atomic_store_explicit(&lease->taker, taker, memory_order_relaxed);
    atomic_store_explicit(&lease->taker_run, tree->runs, memory_order_relaxed);
    path_poison(tree, lease);
    if (owner == RONDO__LEASE_ALLOCATOR) RONDO__IGNORE(tree->ops.raw_delete(tree->ops.user, lease->pointer));
    bool weak = lease->weak != NULL;
    if (weak) tree->host.unwatch(tree->host.user, lease->weak);
    lease->weak = NULL;
    rondo__lease_finish(lease, weak, taker, tree->runs);
}

RONDO__HOT void rondo__tree_end_path(rondo_tree *tree, const rondo__tree_function *taker, void *stream) {
    uint32_t taker_id = taker ? taker->id + 1u : 0;
    if (!tree->current) return;
    rondo__tree_trail_end(tree);
    /* Moving one frees another, perhaps: nothing of the host's may find a path that is half gone. */
    for (rondo__tree_node *node = tree->current; node; node = node->parent) {
        for (uint32_t i = 0; node->group && i < node->group->count; i++) {
            if (!rondo__lease_live(&node->group->leases[i])) continue;
            path_invalidate(tree, &node->group->leases[i], taker_id, stream);
        }
    }
    rondo__tree_node *node = tree->current, *up = NULL;
    tree->current = NULL;
    tree->state = RONDO_TREE_NOTHING;
    tree->stalled = 0;
    atomic_store_explicit(&tree->pending_forward, false,
                          memory_order_relaxed); /* of which nothing is left to wait for */
    tree->info.steps++;
    bool removed = false;
    for (; node; node = up) {
        removed = removed || node->function->removed;
        up = node->parent;
        if (node->warmup) rondo__tree_free_node(tree, node);
        else if (node->doomed) rondo__tree_drop_node(tree, node);
    }
    /* Only now: several nodes may be of one function. */
    if (removed) rondo__tree_functions_unused(tree);
}

/* ------------------------------------------------------------------------------------------------------- step */

/* How often the function is on the path already, with the same static inputs. */
static uint32_t path_repeats(const rondo__tree_call *call) {
    uint32_t count = 0;
    uint64_t statics = rondo__tree_statics(call);
    for (const rondo__tree_node *node = call->tree->current; node; node = node->parent) {
        count += node->function == call->function && node->statics == statics;
    }
    return count;
}

uint64_t rondo__tree_statics(const rondo__tree_call *call) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (call->function->is_static[i]) hash = (hash ^ call->tree->pointers[i]) * 0x9e3779b97f4a7c15u;
    }
    return hash;
}

/* The value of an input on that lease comes over to the next path: in the storage, where those move anyway, so that it
 * stays the caller's, else in a copy. */
static rondo_status path_carry_one(rondo__tree_call *call, uint32_t index, rondo_tree_lease *lease) {
    rondo_tree *tree = call->tree;
    const rondo_tensor_host *host = &tree->host;
    void *copy = NULL;
    uint64_t owner = 0;
    if (path_moves(tree, lease) && rondo__lease_seize(lease, &owner)) {
        rondo_status status = path_move(tree, lease, owner, call->stream);
        if (status) rondo__lease_yield(lease, owner);
        return status;
    }
    RONDO__TRY(rondo__tree_order(tree, call->stream));
    RONDO__TRY(host->own(host->user, call->stream, call->inputs[index], &copy));
    host->release(host->user, &call->inputs[index], 1);
    call->inputs[index] = copy;
    return RONDO_OK;
}

static rondo_status path_carry(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    const rondo_tensor_host *host = &tree->host;
    for (uint32_t i = 0; i < call->input_count; i++) {
        rondo_tree_lease *lease = tree->pointers[i] ? rondo__tree_find_covering(tree, tree->pointers[i]) : NULL;
        if (!lease) continue;
        RONDO__TRY(path_carry_one(call, i, lease));
        tree->info.carried++;
    }
    if (!host->facts(host->user, call->inputs, call->input_count, tree->pointers, tree->words)) {
        return RONDO__FAIL(INTERNAL, TREE, "an input that was copied cannot be used");
    }
    return RONDO_OK;
}

static bool path_feeds(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    for (const rondo__tree_node *node = tree->current; node; node = node->parent) {
        for (uint32_t k = 0; node->group && k < node->group->count; k++) {
            rondo_tree_lease *lease = &node->group->leases[k];
            if (!rondo__lease_live(lease)) continue;
            for (uint32_t i = 0; i < call->input_count; i++) {
                if (tree->pointers[i] - lease->pointer < lease->bytes && rondo__tree_live(tree, lease)) return true;
            }
        }
    }
    return false;
}

/* The same forward again and again, with a backward that never comes: said once a function. */
static void path_stalls(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    rondo__tree_function *function = call->function;
    rondo__tree_count(function, RONDO_TREE_REASON_PENDING_BACKWARD);
    if (function->warned_pending || path_repeats(call) < 2) return;
    function->warned_pending = true;
    rondo__log_write(
        tree->log, RONDO_LOG_WARNING,
        "trees: unable to hit fast path of CUDAGraphs because of pending, uninvoked backwards: '%s' runs again "
        "and again in one step. Run it without gradients, or mark where a step begins (rondo_tree_mark_step)",
        function->name);
}

rondo_status rondo__tree_step(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    int64_t generation = tree->host.generation ? tree->host.generation(tree->host.user) : tree->generation;
    uint64_t marks = atomic_load_explicit(&tree->marks, memory_order_relaxed);
    bool marked = marks != tree->marks_seen || (generation != tree->generation && generation < 0);
    bool fresh = marked || generation != tree->generation;
    bool ever_marked = marks || generation < 0;
    tree->generation = generation;
    tree->marks_seen = marks;
    if (!fresh || !tree->current) return RONDO_OK;
    bool waits = !ever_marked && atomic_load_explicit(&tree->pending_forward, memory_order_relaxed);
    if (waits && !rondo__tree_all_over(tree)) {
        path_stalls(call);
        return RONDO_OK;
    }
    if (path_feeds(call)) {
        bool stays =
            !marked && (rondo__tree_candidates(tree, call->size) || path_repeats(call) < tree->options.loop_limit);
        if (stays) return RONDO_OK;
        RONDO__TRY(path_carry(call));
    }
    rondo__tree_end_path(tree, call->function, call->stream);
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------- checkpoint */

/* Lists the path's living blocks, and those that the recording left alive and that are over now. */
static rondo_status path_list(rondo_tree *tree, rondo__tree_node *last) {
    rondo__tree_mark_dead(tree, last);
    tree->blocks.count = tree->pointer_list.count = 0;
    for (rondo__tree_node *node = last; node; node = node->parent) {
        uint32_t count = node->group ? node->group->count : 0;
        RONDO__TRY(rondo__buffer_reserve(&tree->blocks, tree->blocks.count + count));
        RONDO__TRY(rondo__buffer_reserve(&tree->pointer_list, tree->pointer_list.count + count));
        for (uint32_t i = 0; i < count; i++) {
            rondo_tree_lease *lease = &node->group->leases[i];
            lease->listed = rondo__tree_live(tree, lease);
            if (lease->listed) {
                void *storage = lease->weak ? lease->weak : rondo_tree_lease_storage(lease);
                RONDO__BUFFER_AT(&tree->blocks, rondo_tree_block, tree->blocks.count++)
                [0] = (rondo_tree_block){lease->pointer, storage};
            } else if (lease->mark != (uint32_t)tree->mark) {
                *RONDO__BUFFER_AT(&tree->pointer_list, uint64_t, tree->pointer_list.count++) = lease->pointer;
            }
        }
    }
    return RONDO_OK;
}

rondo_status rondo__tree_restore(rondo_tree *tree, rondo__tree_node *last) {
    const rondo_graph_ops *ops = &tree->ops;
    RONDO__TRY(path_list(tree, last));
    RONDO__TRY(ops->set_checkpoint_pool_state(ops->user, tree->pool, last->checkpoint, tree->blocks.data,
                                              tree->blocks.count, tree->pointer_list.data, tree->pointer_list.count));
    for (rondo__tree_node *node = last; node; node = node->parent) {
        for (uint32_t i = 0; node->group && i < node->group->count; i++) {
            rondo_tree_lease *lease = &node->group->leases[i];
            if (!lease->listed) continue;
            uint64_t owner = rondo__lease_word(lease) & RONDO__LEASE_OWNER_MASK;
            if (owner == RONDO__LEASE_ALLOCATOR || owner == RONDO__LEASE_BUSY || rondo__lease_promote(lease)) continue;
            /* It ended while the layout was brought back. */
            RONDO__IGNORE(ops->raw_delete(ops->user, lease->pointer));
        }
    }
    tree->info.checkpoints++;
    return RONDO_OK;
}

rondo_status rondo__tree_apply_checkpoint(rondo_tree *tree) {
    if (tree->state != RONDO_TREE_EXECUTING || !tree->current) return RONDO_OK;
    RONDO__TRY(rondo__tree_restore(tree, tree->current));
    tree->state = RONDO_TREE_RECORDING;
    return RONDO_OK;
}

/* Where the living outputs of the path lie, and `more`. */
static rondo_status path_list_pointers(rondo_tree *tree, const uint64_t *more, uint32_t count_more) {
    tree->pointer_list.count = 0;
    if (count_more) RONDO__TRY(rondo__buffer_append(&tree->pointer_list, more, count_more));
    for (rondo__tree_node *node = tree->current; node; node = node->parent) {
        uint32_t count = node->group ? node->group->count : 0;
        RONDO__TRY(rondo__buffer_reserve(&tree->pointer_list, tree->pointer_list.count + count));
        for (uint32_t i = 0; i < count; i++) {
            rondo_tree_lease *lease = &node->group->leases[i];
            if (!rondo__tree_live(tree, lease)) continue;
            *RONDO__BUFFER_AT(&tree->pointer_list, uint64_t, tree->pointer_list.count++) = lease->pointer;
        }
    }
    return RONDO_OK;
}

rondo_status rondo__tree_check_pool(rondo_tree *tree, const uint64_t *more, uint32_t count_more, bool *out_equal) {
    const rondo_graph_ops *ops = &tree->ops;
    uint64_t before = UINT64_MAX;
    *out_equal = false;
    RONDO__TRY(path_list_pointers(tree, more, count_more));
    /* Storages may end on other threads meanwhile, and none begins: a difference is one when none has ended. A block is
     * free before its lease is over, and whoever is between the two is waited for. */
    while (!*out_equal && tree->pointer_list.count != before) {
        before = tree->pointer_list.count;
        RONDO__TRY(ops->check_pool_live_allocations(ops->user, tree->pool, tree->pointer_list.data, before, out_equal));
        if (!*out_equal) RONDO__TRY(path_list_pointers(tree, more, count_more));
    }
    return RONDO_OK;
}

rondo_status rondo__tree_leave_rest(rondo_tree *tree) {
    bool equal = true;
    if (!tree->options.check_pool || tree->state == RONDO_TREE_EXECUTING) return RONDO_OK;
    if (!tree->pool.automatic && !tree->pool.user) return RONDO_OK;
    RONDO__TRY(rondo__tree_check_pool(tree, NULL, 0, &equal));
    if (!equal) rondo__tree_retire_pool(tree);
    return RONDO_OK;
}
