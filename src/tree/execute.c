/* SPDX-License-Identifier: Apache-2.0
 *
 * Replay: compare addresses, look at leases, copy in what moves, launch, hand out the outputs. This is the path that
 * costs have to be kept off: no allocation but the host's own handles, one pass over each list. */
#include <string.h>

#include "tree/seal.h"

/* ------------------------------------------------------------------------------------------------------- fits */

RONDO__HOT static bool execute_any_live(rondo_tree *tree, rondo_tree_lease *const *leases, uint32_t count) {
    bool weak = (tree->host.flags & RONDO_TENSOR_HOST_WEAK) != 0;
    for (uint32_t i = 0; i < count; i++) {
        if (weak ? rondo__tree_live(tree, leases[i]) : rondo__lease_live(leases[i])) return true;
    }
    return false;
}

RONDO__HOT rondo_tree_reason rondo__tree_fits(const rondo__tree_call *call, const rondo__tree_node *node) {
    rondo_tree *tree = call->tree;
    const uint64_t *pointers = tree->pointers;
    for (uint32_t i = 0; i < node->fixed_count; i++) {
        const rondo__tree_fixed *fixed = &node->fixed[i];
        if (pointers[fixed->index] == fixed->pointer) continue;
        return fixed->managed ? RONDO_TREE_REASON_MANAGED_MOVED : RONDO_TREE_REASON_STATIC_MOVED;
    }
    for (uint32_t i = 0; i < node->value_count; i++) {
        const rondo__tree_value *value = &node->values[i];
        const void *now = (const void *)(uintptr_t)pointers[value->index];
        if (!now || memcmp(now, value->data, value->bytes) != 0) return RONDO_TREE_REASON_VALUE_CHANGED;
    }
    return execute_any_live(tree, node->dead_before, node->dead_before_count) ? RONDO_TREE_REASON_OUTPUT_LIVE
                                                                              : RONDO_TREE_REASON_NONE;
}

/* ----------------------------------------------------------------------------------------------------- revive */

/* Watches the storage of an output that has just been made. */
static rondo_status execute_watch(rondo_tree *tree, rondo_tree_lease *lease, void *tensor) {
    if (!(tree->host.flags & RONDO_TENSOR_HOST_WEAK)) return RONDO_OK;
    if (lease->weak) tree->host.unwatch(tree->host.user, lease->weak);
    lease->weak = NULL;
    RONDO__TRY(tree->host.watch(tree->host.user, tensor, &lease->weak));
    rondo_tree_lease_set_storage(lease, lease->weak);
    return RONDO_OK;
}

static rondo_status revive_one(rondo__tree_call *call, const rondo__tree_revival *revival, bool fresh) {
    rondo_tree *tree = call->tree;
    const rondo_tensor_host *host = &tree->host;
    rondo_tree_output output = {.kind = fresh ? RONDO_TREE_OUTPUT_FRESH : RONDO_TREE_OUTPUT_PATH,
                                .shared = 1,
                                .metadata = revival->metadata,
                                .lease = revival->lease};
    output.epoch = rondo__lease_epoch(rondo__lease_word(revival->lease));
    rondo_status status = host->make_outputs(host->user, &output, 1, NULL, &call->inputs[revival->index]);
    if (status && fresh) rondo__lease_revoke(revival->lease);
    if (!status && fresh) status = execute_watch(tree, revival->lease, call->inputs[revival->index]);
    return status;
}

rondo_status rondo__tree_revive(rondo__tree_call *call, const rondo__tree_node *node) {
    rondo_tree *tree = call->tree;
    bool replaying = tree->state == RONDO_TREE_EXECUTING, restore = false;
    rondo_status status = RONDO_OK;
    /* Nothing has run since they were given up: their memory is as it was. */
    for (uint32_t i = 0; i < node->revival_count; i++) {
        rondo_tree_lease *lease = node->revivals[i].lease;
        lease->listed = false;
        if (call->inputs[node->revivals[i].index] || lease->granted || rondo__tree_live(tree, lease)) continue;
        (void)rondo__lease_grant(lease, RONDO__LEASE_REPLAY);
        lease->granted = true;
        restore = !replaying;
    }
    for (uint32_t i = 0; i < node->revival_count; i++) {
        const rondo__tree_revival *revival = &node->revivals[i];
        bool fresh = revival->lease->granted;
        revival->lease->granted = false;
        if (call->inputs[revival->index]) continue;
        if (!status) status = revive_one(call, revival, fresh);
        else if (fresh) rondo__lease_revoke(revival->lease);
    }
    /* Those that are there now get their blocks. */
    return status || !restore ? status : rondo__tree_restore(tree, tree->current);
}

/* -------------------------------------------------------------------------------------------------------- run */

static rondo_status execute_inputs(rondo__tree_call *call, rondo__tree_node *node) {
    rondo_tree *tree = call->tree;
    const rondo_graph_ops *ops = &tree->ops;
    uint32_t copies = 0;
    for (uint32_t i = 0; i < node->moving_count; i++) {
        rondo__tree_moving *moving = &node->moving[i];
        uint64_t source = tree->pointers[moving->index];
        if (source == moving->destination) continue;
        if (moving->bound) {
            RONDO__TRY(ops->bind(ops->user, node->graph, moving->slot, source));
            moving->destination = source;
        } else {
            node->copies[copies++] = (rondo_tree_copy){moving->destination, source, moving->bytes,
                                                       call->inputs[moving->index], moving->metadata};
        }
    }
    if (!copies) return RONDO_OK;
    call->function->info.copies += copies;
    return tree->host.copy_inputs ? tree->host.copy_inputs(tree->host.user, call->stream, node->copies, copies)
                                  : ops->copy(ops->user, call->stream, node->copies, copies);
}

/* The outputs could not all be made, or not be watched: leases whose storages never came to be are taken back. */
static rondo_status execute_undo_outputs(rondo__tree_call *call, rondo__tree_node *node, rondo_status status) {
    const rondo_tensor_host *host = &call->tree->host;
    bool weak = (host->flags & RONDO_TENSOR_HOST_WEAK) != 0;
    for (uint32_t i = 0; i < node->output_count; i++) {
        rondo_tree_lease *lease = node->outputs[i].lease;
        if (node->outputs[i].kind != RONDO_TREE_OUTPUT_FRESH) continue;
        /* Storages that are watched tell nobody that they end, below. */
        if (weak && lease->weak) host->unwatch(host->user, lease->weak);
        lease->weak = NULL;
        if (weak || !call->outputs[i]) rondo__lease_revoke(lease);
    }
    rondo__tree_release_all(call->tree, call->outputs, call->output_count);
    return status;
}

static rondo_status execute_outputs(rondo__tree_call *call, rondo__tree_node *node) {
    rondo_tree *tree = call->tree;
    const rondo_tensor_host *host = &tree->host;
    for (uint32_t i = 0; i < node->output_count; i++) {
        rondo_tree_output *output = &node->outputs[i];
        if (output->kind == RONDO_TREE_OUTPUT_FRESH) {
            output->epoch = rondo__lease_grant_quick(output->lease, RONDO__LEASE_REPLAY);
        } else if (output->kind == RONDO_TREE_OUTPUT_PATH) {
            output->epoch = rondo__lease_epoch(rondo__lease_word(output->lease));
        }
    }
    rondo_status status =
        host->make_outputs(host->user, node->outputs, node->output_count, call->inputs, call->outputs);
    for (uint32_t i = 0; !status && (host->flags & RONDO_TENSOR_HOST_WEAK) && i < node->output_count; i++) {
        if (node->outputs[i].kind != RONDO_TREE_OUTPUT_FRESH) continue;
        status = execute_watch(tree, node->outputs[i].lease, call->outputs[i]);
    }
    return status ? execute_undo_outputs(call, node, status) : RONDO_OK;
}

static rondo_status execute_launch(const rondo__tree_call *call, const rondo__tree_node *node) {
    rondo_tree *tree = call->tree;
    const rondo_graph_ops *ops = &tree->ops;
    const rondo__tree_sealed *sealed = call->launch;
    if (!node->graph || (sealed && sealed->waits)) return RONDO_OK;
    if (sealed && sealed->graph) {
        if (tree->seal->waiting == sealed->before) {
            RONDO__TRY(ops->replay(ops->user, sealed->graph, call->stream));
            tree->seal->waiting = 0;
            return RONDO_OK;
        }
        /* Some of those were flushed, and must not be launched again. */
        RONDO__TRY(rondo__tree_settle(tree));
    }
    return ops->replay(ops->user, node->graph, call->stream);
}

RONDO__HOT rondo_status rondo__tree_execute(rondo__tree_call *call, rondo__tree_node *node, bool *out_done) {
    rondo_tree *tree = call->tree;
    const rondo_tensor_host *host = &tree->host;
    rondo_status status = RONDO_OK;
    *out_done = false;
    for (uint32_t i = 0; i < node->consumed_count; i++) host->release(host->user, &call->inputs[node->consumed[i]], 1);
    if (node->dead_after_count && execute_any_live(tree, node->dead_after, node->dead_after_count)) {
        return rondo__tree_revive(call, node);
    }
    *out_done = true;
    bool timed = node->size->samples < tree->options.cost_samples && !call->launch;
    uint64_t before = timed ? rondo__tree_now(tree) : 0;
    if (call->stream != tree->last_stream) status = rondo__tree_order(tree, call->stream);
    if (!status && node->graph && node->moving_count) status = execute_inputs(call, node);
    if (!status) status = execute_launch(call, node);
    if (!status) status = execute_outputs(call, node);
    if (!status && call->launch && call->launch->waits) rondo__tree_seal_hold(call);
    else if (call->input_count) host->release(host->user, call->inputs, call->input_count);
    if (status) return status;
    tree->current = node;
    tree->state = RONDO_TREE_EXECUTING;
    node->last_used = tree->runs;
    node->runs++;
    call->function->info.replays++;
    tree->info.replays++;
    if (!call->launch) rondo__tree_trail(tree, node);
    if (timed) rondo__tree_sampled(tree, node, rondo__tree_now(tree) - before);
    return call->function->owned_count ? rondo__tree_own_outputs(call) : RONDO_OK;
}
