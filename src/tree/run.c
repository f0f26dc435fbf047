/* SPDX-License-Identifier: Apache-2.0
 *
 * One call: which way it goes. Replay where a recording fits; else a recording, a warm-up before it, or the plain call. */
#include <string.h>

#include "tree/seal.h"

/* ----------------------------------------------------------------------------------------------------- direct */

rondo_status rondo__tree_direct(rondo__tree_call *call, rondo_tree_reason reason) {
    rondo_tree *tree = call->tree;
    rondo__tree_function *function = call->function;
    const rondo_tensor_host *host = &tree->host;
    rondo_tree_run_context context = {sizeof context,  RONDO_TREE_DIRECT, tree, function->id, 0,
                                      function->model, call->stream};
    rondo__tree_count(function, reason);
    function->info.directs++;
    tree->info.directs++;
    if (tree->options.strict) {
        rondo__tree_release_all(tree, call->inputs, call->input_count);
        return RONDO__FAIL(UNSUPPORTED, TREE, "'%s' is not graphed, and the tree is strict: %s%s%s", function->name,
                           rondo_tree_reason_text(reason), function->why || function->skip ? ": " : "",
                           function->why    ? function->why
                           : function->skip ? function->skip
                                            : "");
    }
    rondo_status status = rondo__tree_order(tree, call->stream);
    if (status) {
        rondo__tree_release_all(tree, call->inputs, call->input_count);
        return status;
    }
    /* The model is nothing of the tree's: others may come in meanwhile, threads that it waits for among them. */
    function->busy++;
    rondo__tree_unlock(tree);
    uint64_t before = rondo__tree_now(tree);
    status = host->run(host->user, &context, call->inputs, call->input_count, call->outputs, call->output_count);
    uint64_t spent = rondo__tree_now(tree) - before;
    rondo__tree_lock(tree);
    function->busy--;
    if (!status && (!function->info.direct_ns || spent < function->info.direct_ns)) function->info.direct_ns = spent;
    if (!status) status = rondo__tree_own_outputs(call);
    if (function->removed) rondo__tree_function_unused(tree, function);
    return status;
}

/* A call from inside a call of the same thread. */
static rondo_status run_nested(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    const rondo_tensor_host *host = &tree->host;
    rondo_tree_run_context context = {sizeof context,        RONDO_TREE_DIRECT, tree, call->function->id, 0,
                                      call->function->model, call->stream};
    rondo__tree_count(call->function, RONDO_TREE_REASON_NESTED);
    call->function->info.directs++;
    tree->info.directs++;
    RONDO__TRY(host->run(host->user, &context, call->inputs, call->input_count, call->outputs, call->output_count));
    return rondo__tree_own_outputs(call);
}

/* ---------------------------------------------------------------------------------------------------- choose */

rondo_status rondo__tree_order(rondo_tree *tree, void *stream) {
    if (stream == tree->last_stream) return RONDO_OK;
    const rondo_graph_ops *ops = &tree->ops;
    if (tree->last_stream) RONDO__TRY(ops->stream_wait(ops->user, stream, tree->last_stream));
    if (ops->retain_stream) {
        ops->retain_stream(ops->user, stream);
        if (tree->last_stream) ops->release_stream(ops->user, tree->last_stream);
    }
    tree->last_stream = stream;
    return RONDO_OK;
}

/* Mutated inputs must be static, or outputs of the path: what is copied would be mutated in vain. */
static bool run_mutates_outside(rondo__tree_call *call) {
    const rondo__tree_function *function = call->function;
    for (uint32_t i = 0; i < function->mutated_count; i++) {
        uint32_t index = function->mutated[i];
        uint64_t pointer = call->tree->pointers[index];
        if (function->is_static[index] || !pointer) continue;
        if (!rondo__tree_find_covering(call->tree, pointer)) return true;
    }
    return false;
}

static void run_warn_mutation(rondo__tree_call *call) {
    rondo__tree_function *function = call->function;
    if (function->warned_mutation) return;
    function->warned_mutation = true;
    rondo__log_write(call->tree->log, RONDO_LOG_WARNING,
                     "trees: skipping cudagraphs due to mutated inputs (%u instances) of '%s'", function->mutated_count,
                     function->name);
}

/* *out_done: a recording was replayed, or failed to be. */
static rondo_status run_replay(rondo__tree_call *call, bool *out_done) {
    rondo_tree *tree = call->tree;
    *out_done = false;
    if (call->function->stopped || call->size->refusal) return RONDO_OK;
    for (rondo__tree_node *node = rondo__tree_candidates(tree, call->size); node; node = node->next_same) {
        rondo_tree_reason reason = rondo__tree_fits(call, node);
        if (reason) {
            call->reason = reason;
            continue;
        }
        rondo_status status = rondo__tree_execute(call, node, out_done);
        if (status || *out_done) return status;
        call->reason = RONDO_TREE_REASON_INPUT_DIED_NOT;
    }
    return RONDO_OK;
}

/* The way of all calls that no sealed sequence expects. */
/* The end of a path may have sealed a sequence: this call is its first, or another. */
static rondo_status run_replay_or_sealed(rondo__tree_call *call, bool *out_done) {
    if (rondo__tree_is_sealed(call->tree)) {
        rondo_status status = rondo__tree_run_sealed(call, out_done);
        if (status || *out_done) return status;
        rondo__tree_unseal(call->tree);
    }
    return run_replay(call, out_done);
}

static rondo_status run_open(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    rondo__tree_function *function = call->function;
    bool done = false;
    rondo_status status = rondo__tree_settle(tree);
    if (!status && rondo__tree_is_sealed(tree)) rondo__tree_unseal(tree);
    if (!status) status = rondo__tree_find_size(call);
    if (!status) status = rondo__tree_step(call);
    if (!status) {
        call->size->last_used = tree->runs;
        call->reason = RONDO_TREE_REASON_FIRST;
        if (tree->state != RONDO_TREE_WARMING) status = run_replay_or_sealed(call, &done);
    }
    if (!status && !done && tree->current && rondo__tree_all_over(tree)) {
        rondo__tree_end_path(tree, function, call->stream);
        status = run_replay_or_sealed(call, &done);
    }
    if (status && !done) rondo__tree_release_all(tree, call->inputs, call->input_count);
    if (status || done) return status;
    call->size->seen++;
    rondo__tree_trail_break(tree);
    if (run_mutates_outside(call)) {
        run_warn_mutation(call);
        return rondo__tree_direct(call, RONDO_TREE_REASON_MUTATED);
    }
    rondo_tree_reason refusal = rondo__tree_refuses(call);
    if (refusal) return rondo__tree_direct(call, refusal);
    bool warm = (tree->options.record_after <= 1 || call->size->warmed) && !call->size->again;
    if (tree->state == RONDO_TREE_WARMING || !warm || tree->options.always_warm_up) return rondo__tree_warm_up(call);
    return rondo__tree_record(call);
}

static rondo_status run_locked(rondo__tree_call *call) {
    bool done = false;
    call->tree->runs++;
    if (!rondo__tree_is_sealed(call->tree)) return run_open(call);
    rondo_status status = rondo__tree_run_sealed(call, &done);
    if (status && !done) rondo__tree_release_all(call->tree, call->inputs, call->input_count);
    return status || done ? status : run_open(call);
}

/* Outputs of a call that are alive keep forwards waiting for their backward. */
static rondo_status run_mode(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    rondo_tree_mode mode = call->function->mode;
    rondo_status status = run_locked(call);
    if (mode == RONDO_TREE_FORWARD) atomic_store_explicit(&tree->pending_forward, true, memory_order_relaxed);
    if (mode == RONDO_TREE_BACKWARD) atomic_store_explicit(&tree->pending_forward, false, memory_order_relaxed);
    return status;
}

static rondo_status run_check_inputs(rondo__tree_call *call) {
    const rondo_tensor_host *host = &call->tree->host;
    for (uint32_t i = 0; host->check && i < call->input_count; i++) {
        if (!call->inputs[i]) continue;
        rondo_status status = host->check(host->user, call->inputs[i]);
        if (status) return rondo__status_note(status, "it is input %u of '%s'", i, call->function->name);
    }
    return RONDO__FAIL(INVALID_ARGUMENT, TREE, "an input of '%s' cannot be used", call->function->name);
}

static rondo_status run_function(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    const rondo_tensor_host *host = &tree->host;
    rondo__tree_function *function = call->function;
    if (!host->facts(host->user, call->inputs, call->input_count, tree->pointers, tree->words)) {
        rondo_status status = run_check_inputs(call);
        rondo__tree_release_all(tree, call->inputs, call->input_count);
        return status;
    }
    if (function->skip || function->simple) {
        rondo_status status = rondo__tree_settle(tree);
        if (status) rondo__tree_release_all(tree, call->inputs, call->input_count);
        if (status) return status;
        /* A backward that is not graphed is one, too: forwards wait no more. */
        if (function->mode == RONDO_TREE_BACKWARD) rondo_tree_set_running_backward(tree);
        if (function->skip) return rondo__tree_direct(call, RONDO_TREE_REASON_SKIPPED);
        return rondo__tree_simple_run(call);
    }
    return run_mode(call);
}

static rondo_status run_find(rondo__tree_call *call, uint32_t id) {
    rondo__tree_function *function = rondo__tree_function_at(call->tree, id);
    if (!function || function->removed) return RONDO__FAIL(NOT_FOUND, TREE, "the tree has no function %u", id);
    if (call->input_count != function->input_count || call->output_count != function->output_count) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "'%s' has %u inputs and %u outputs, not %u and %u", function->name,
                           function->input_count, function->output_count, call->input_count, call->output_count);
    }
    call->function = function;
    return RONDO_OK;
}

RONDO__HOT rondo_status rondo_tree_run(rondo_tree *tree, uint32_t id, void *stream, void **inputs, uint32_t input_count,
                                       void **outputs, uint32_t output_count) {
    if (!tree || (input_count && !inputs) || (output_count && !outputs)) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_tree_run needs a tree, inputs and room for outputs");
    }
    rondo__tree_call call = {tree, NULL, NULL, stream, inputs, outputs, input_count, output_count, 0, NULL, NULL, 0};
    bool nested = atomic_load_explicit(&tree->owner, memory_order_relaxed) == rondo__thread_id();
    if (!nested) rondo__tree_lock(tree);
    for (uint32_t i = 0; i < output_count; i++) outputs[i] = NULL;
    rondo_status status = run_find(&call, id);
    if (status) rondo__tree_release_all(tree, inputs, input_count);
    else status = nested ? run_nested(&call) : run_function(&call);
    if (!nested) rondo__tree_unlock(tree);
    return status;
}
