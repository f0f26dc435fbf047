/* SPDX-License-Identifier: Apache-2.0
 *
 * What bounds recording: how often a size was seen, how many sizes, how often addresses moved, how many bytes, and whether
 * it gains anything. */
#include "tree/tree.h"

static uint32_t limits_moved(const rondo__tree_call *call) {
    uint32_t count = 0;
    for (const rondo__tree_node *node = rondo__tree_candidates(call->tree, call->size); node; node = node->next_same) {
        count += node->moved;
    }
    return count;
}

static void limits_warn_sizes(rondo__tree_call *call) {
    rondo__tree_function *function = call->function;
    uint32_t limit = call->tree->options.size_warning;
    if (!limit || function->warned_size || function->recorded_sizes < limit || call->size->recordings) return;
    function->warned_size = true;
    rondo__log_write(
        call->tree->log, RONDO_LOG_WARNING,
        "trees: '%s' has been recorded for %u sizes, and each recording takes time and memory. Pad its inputs to "
        "fewer sizes, raise record_after, or set size_limit",
        function->name, function->recorded_sizes);
}

rondo_tree_reason rondo__tree_refuses(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    const rondo_tree_options *options = &tree->options;
    rondo__tree_function *function = call->function;
    if (function->stopped) return function->stopped;
    if (call->size->refusal) return call->size->refusal;
    if (call->size->seen + 1u < options->record_after) return RONDO_TREE_REASON_SIZE_RARE;
    if (rondo__tree_moved(call->reason) && limits_moved(call) >= options->rerecord_limit) {
        if (!function->warned_limit) {
            function->warned_limit = true;
            rondo__log_write(
                tree->log, RONDO_LOG_WARNING,
                "trees: '%s' exceeds the limit of %u recordings after the same run: %s. It is called directly "
                "where it does",
                function->name, options->rerecord_limit, rondo_tree_reason_text(call->reason));
        }
        return RONDO_TREE_REASON_RERECORD_LIMIT;
    }
    if (options->always_warm_up) return RONDO_TREE_REASON_NONE;
    if (options->size_limit && !call->size->recordings && function->recorded_sizes >= options->size_limit) {
        return RONDO_TREE_REASON_SIZE_LIMIT;
    }
    limits_warn_sizes(call);
    return rondo__tree_make_room(tree) ? RONDO_TREE_REASON_NONE : RONDO_TREE_REASON_BYTE_LIMIT;
}

bool rondo__tree_moved(rondo_tree_reason reason) {
    return reason == RONDO_TREE_REASON_STATIC_MOVED || reason == RONDO_TREE_REASON_MANAGED_MOVED ||
           reason == RONDO_TREE_REASON_VALUE_CHANGED;
}

void rondo__tree_sampled(rondo_tree *tree, rondo__tree_node *node, uint64_t nanoseconds) {
    rondo__tree_size *size = node->size;
    rondo_tree_function_info *info = &node->function->info;
    if (!size->replay_ns || nanoseconds < size->replay_ns) size->replay_ns = nanoseconds;
    if (!info->replay_ns || nanoseconds < info->replay_ns) info->replay_ns = nanoseconds;
    if (++size->samples < tree->options.cost_samples || !size->direct_ns || size->replay_ns < size->direct_ns) return;
    /* The least of many replays is not below the least of the calls: the graph gains nothing on this side. */
    size->refusal = RONDO_TREE_REASON_NOT_FASTER;
    rondo__log_write(tree->log, RONDO_LOG_INFO,
                     "trees: '%s' is called directly: a replay takes %llu ns, a call %llu ns", node->function->name,
                     (unsigned long long)size->replay_ns, (unsigned long long)size->direct_ns);
}
