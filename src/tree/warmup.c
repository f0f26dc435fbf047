/* SPDX-License-Identifier: Apache-2.0
 *
 * Warm-up: the plain call, but in the pool and on the tree's stream, so that what a first run sets up is set up, and the
 * memory it needs is there. A warm-up cannot be replayed, so what follows it in a path is a warm-up, too. */
#include "tree/tree.h"

rondo_status rondo__tree_describe(rondo__tree_call *call, rondo_tensor_facts **out_facts,
                                  rondo_tree_reason *out_reason) {
    const rondo_tensor_host *host = &call->tree->host;
    void *memory = NULL;
    *out_reason = RONDO_TREE_REASON_NONE;
    RONDO__TRY(rondo__allocate_array(&call->tree->allocator, call->input_count, sizeof(rondo_tensor_facts), &memory));
    rondo_tensor_facts *facts = memory;
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (!call->inputs[i]) continue;
        rondo_status status = host->describe(host->user, call->inputs[i], &facts[i]);
        if (status) {
            rondo__tree_free_facts(call, facts);
            return status;
        }
        if (facts[i].place == RONDO_TENSOR_OTHER) *out_reason = RONDO_TREE_REASON_OTHER_DEVICE;
        if (facts[i].place != RONDO_TENSOR_HOST || *out_reason) continue;
        if (facts[i].rank || facts[i].bytes > RONDO__TREE_VALUE_MAX) *out_reason = RONDO_TREE_REASON_HOST_INPUT;
    }
    *out_facts = facts;
    return RONDO_OK;
}

void rondo__tree_free_facts(const rondo__tree_call *call, rondo_tensor_facts *facts) {
    rondo__free(&call->tree->allocator, facts, call->input_count * sizeof(rondo_tensor_facts));
}

static rondo_status warmup_enter(rondo_tree *tree) {
    const rondo_graph_ops *ops = &tree->ops;
    if (ops->prepare_for_capture) RONDO__TRY(ops->prepare_for_capture(ops->user, false, true));
    rondo_status status =
        tree->host.enter ? tree->host.enter(tree->host.user, RONDO_TREE_WARMUP, tree->stream) : RONDO_OK;
    if (!status) {
        status = ops->begin_allocate_current_thread_to_pool(ops->user, tree->pool);
        if (status && tree->host.leave) tree->host.leave(tree->host.user, RONDO_TREE_WARMUP);
    }
    if (status && ops->prepare_for_capture) RONDO__IGNORE(ops->prepare_for_capture(ops->user, false, false));
    return status;
}

static rondo_status warmup_leave(rondo_tree *tree) {
    const rondo_graph_ops *ops = &tree->ops;
    rondo_status status = ops->end_allocate_to_pool(ops->user, tree->pool);
    status = rondo__status_first(status, ops->release_pool(ops->user, tree->pool));
    if (tree->host.leave) tree->host.leave(tree->host.user, RONDO_TREE_WARMUP);
    if (ops->prepare_for_capture)
        status = rondo__status_first(status, ops->prepare_for_capture(ops->user, false, false));
    return status;
}

/* Runs the model in the pool. Consumes the inputs. */
static rondo_status warmup_run(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    const rondo_tensor_host *host = &tree->host;
    rondo_tree_run_context context = {sizeof context,        RONDO_TREE_WARMUP, tree, call->function->id, 0,
                                      call->function->model, tree->stream};
    rondo_status status = rondo__tree_order(tree, call->stream);
    if (!status) status = tree->ops.stream_wait(tree->ops.user, tree->stream, call->stream);
    if (!status) status = warmup_enter(tree);
    if (status) {
        rondo__tree_release_all(tree, call->inputs, call->input_count);
        return status;
    }
    tree->warming = true;
    tree->again = false;
    status = host->run(host->user, &context, call->inputs, call->input_count, call->outputs, call->output_count);
    tree->warming = false;
    bool made = !status;
    status = rondo__status_first(status, warmup_leave(tree));
    rondo_status order = tree->ops.stream_wait(tree->ops.user, call->stream, tree->stream);
    /* The inputs' memory is the caller's stream's again: the work that still reads it cannot be left behind. */
    if (order) RONDO__IGNORE(tree->ops.synchronize(tree->ops.user, tree->stream));
    status = rondo__status_first(status, order);
    if (status && made) rondo__tree_release_all(tree, call->outputs, call->output_count);
    return status;
}

static rondo_status warmup_finish(rondo__tree_call *call, rondo__tree_node *node, const rondo_tensor_facts *facts) {
    rondo_tree *tree = call->tree;
    rondo_status status = rondo__tree_take_outputs(call, node, facts);
    if (status) {
        rondo__tree_release_all(tree, call->outputs, call->output_count);
        rondo__tree_free_node(tree, node);
        return rondo__status_first(status, rondo__tree_leave_rest(tree));
    }
    call->size->warmed = true;
    call->size->again = tree->again;
    tree->current = node;
    tree->state = RONDO_TREE_WARMING;
    call->function->info.warmups++;
    tree->info.warmups++;
    if (node->untracked) rondo__tree_leave_untracked(call);
    return rondo__tree_own_outputs(call);
}

void rondo_tree_mark_warmup_incomplete(rondo_tree *tree) {
    bool inside = tree && atomic_load_explicit(&tree->owner, memory_order_relaxed) == rondo__thread_id();
    if (inside && tree->warming) tree->again = true;
}

void rondo__tree_leave_untracked(rondo__tree_call *call) {
    rondo__tree_function_stop(call->tree, call->function, RONDO_TREE_REASON_UNTRACKED,
                              "keep such memory outside: allocate it before the first call, or return it");
    rondo__tree_count(call->function, RONDO_TREE_REASON_UNTRACKED);
    rondo__tree_retire_pool(call->tree);
}

static rondo_status warmup_begin(rondo__tree_call *call, rondo_tensor_facts **out_facts, rondo_tree_reason *out_reason,
                                 rondo__tree_node **out_node) {
    rondo_tree *tree = call->tree;
    void *memory = NULL;
    RONDO__TRY(rondo__tree_describe(call, out_facts, out_reason));
    if (*out_reason) return RONDO_OK;
    RONDO__TRY(rondo__tree_open_pool(tree));
    RONDO__TRY(rondo__tree_apply_checkpoint(tree));
    RONDO__TRY(rondo__allocate_array(&tree->allocator, call->input_count, sizeof(void *), &memory));
    call->held = memory;
    call->held_count = call->input_count;
    RONDO__TRY(rondo__allocate_zeroed(&tree->allocator, sizeof(rondo__tree_node), &memory));
    rondo__tree_node *node = memory;
    node->function = call->function;
    node->size = call->size;
    node->parent = tree->current;
    node->depth = tree->current ? tree->current->depth + 1u : 0;
    node->statics = rondo__tree_statics(call);
    node->warmup = true;
    *out_node = node;
    return RONDO_OK;
}

/* Outputs of the path are known by their leases; all other inputs live until it is known which outputs lie on them: the
 * pool may get the memory of one that goes. */
static void warmup_hold(rondo__tree_call *call, rondo_tensor_facts *facts) {
    rondo_tree *tree = call->tree;
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (facts[i].place != RONDO_TENSOR_DEVICE) continue;
        if (rondo__tree_find_covering(tree, facts[i].pointer)) facts[i].place = RONDO_TENSOR_NONE;
        else call->held[i] = tree->host.retain(tree->host.user, call->inputs[i]);
    }
}

static void warmup_release_held(rondo__tree_call *call) {
    rondo__tree_release_all(call->tree, call->held, call->held_count);
    rondo__free(&call->tree->allocator, call->held, call->held_count * sizeof(void *));
    call->held = NULL;
    call->held_count = 0;
}

rondo_status rondo__tree_warm_up(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    rondo_tensor_facts *facts = NULL;
    rondo__tree_node *node = NULL;
    rondo_tree_reason reason = RONDO_TREE_REASON_NONE;
    rondo_status status = warmup_begin(call, &facts, &reason, &node);
    if (status) rondo__tree_release_all(tree, call->inputs, call->input_count);
    if (status || reason) {
        rondo__tree_free_facts(call, facts);
        warmup_release_held(call);
        if (status) return status;
        call->size->refusal = reason;
        return rondo__tree_direct(call, reason);
    }
    warmup_hold(call, facts);
    rondo__tree_count(call->function,
                      tree->state == RONDO_TREE_WARMING ? RONDO_TREE_REASON_WARMUP_PATH : RONDO_TREE_REASON_WARMUP);
    uint64_t before = rondo__tree_now(tree);
    status = warmup_run(call);
    uint64_t spent = rondo__tree_now(tree) - before;
    rondo_tree_function_info *info = &call->function->info;
    if (!status && (!info->warmup_ns || spent < info->warmup_ns)) info->warmup_ns = spent;
    if (!status && (!call->size->direct_ns || spent < call->size->direct_ns)) call->size->direct_ns = spent;
    if (status) {
        rondo__tree_free_node(tree, node);
        status = rondo__status_first(status, rondo__tree_leave_rest(tree));
    } else {
        status = warmup_finish(call, node, facts);
    }
    rondo__tree_free_facts(call, facts);
    warmup_release_held(call);
    return status;
}
