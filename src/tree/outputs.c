/* SPDX-License-Identifier: Apache-2.0
 *
 * What a warm-up or a recording made: which storages are new in the pool and get a lease, and which belong to an input,
 * to an earlier run, to another output, or to nobody here. A storage is known by the address where its memory begins:
 * all that are compared are alive, so that no two have the same. */
#include "tree/tree.h"

typedef struct outputs_taking {
    rondo__tree_call *call;
    rondo__tree_node *node;
    const rondo_tensor_facts *inputs;
    rondo_tensor_facts *facts; /* one an output */
    uint64_t *fresh;           /* where new storages begin */
    uint32_t *first;           /* the output that has each */
    uint32_t fresh_count;
} outputs_taking;

void rondo__tree_release_all(const rondo_tree *tree, void **tensors, uint32_t count) {
    if (tensors && count) tree->host.release(tree->host.user, tensors, count);
}

rondo_status rondo__tree_own_outputs(rondo__tree_call *call) {
    const rondo_tensor_host *host = &call->tree->host;
    for (uint32_t i = 0; i < call->function->owned_count; i++) {
        void **output = &call->outputs[call->function->owned[i]], *copy = NULL;
        if (!*output) continue;
        rondo_status status = host->own(host->user, call->stream, *output, &copy);
        if (status) {
            rondo__tree_release_all(call->tree, call->outputs, call->output_count);
            return status;
        }
        host->release(host->user, output, 1);
        *output = copy;
    }
    return RONDO_OK;
}

static bool output_is_constant(const outputs_taking *t, uint64_t storage) {
    const rondo__tree_function *function = t->call->function;
    const rondo_tensor_host *host = &t->call->tree->host;
    for (uint32_t i = 0; i < function->constant_count; i++) {
        rondo_tensor_facts facts = {0};
        if (!function->constants[i]) continue;
        rondo_status status = host->describe(host->user, function->constants[i], &facts);
        rondo_status_release(status);
        if (!status && facts.storage == storage && facts.storage_bytes) return true;
    }
    return false;
}

static rondo_status output_classify(outputs_taking *t, uint32_t i) {
    rondo_tree *tree = t->call->tree;
    const rondo_tensor_host *host = &tree->host;
    rondo_tree_output *output = &t->node->outputs[i];
    rondo_tensor_facts *facts = &t->facts[i];
    *output = (rondo_tree_output){.kind = RONDO_TREE_OUTPUT_KEPT};
    if (!t->call->outputs[i]) return RONDO_OK;
    RONDO__TRY(host->describe(host->user, t->call->outputs[i], facts));
    if (facts->place == RONDO_TENSOR_NONE || !facts->storage || !facts->storage_bytes) return RONDO_OK;
    if (facts->place != RONDO_TENSOR_DEVICE) {
        if (t->node->warmup || !facts->bytes) return RONDO_OK;
        return RONDO__FAIL(UNSUPPORTED, TREE,
                           "output %u of '%s' lies %s, where a recording cannot write it: expected all outputs of a "
                           "recording on its device",
                           i, t->call->function->name,
                           facts->place == RONDO_TENSOR_HOST ? "in host memory" : "on another device");
    }
    rondo_tree_lease *lease = rondo__tree_find_lease(tree, facts->storage);
    if (lease) {
        output->kind = RONDO_TREE_OUTPUT_PATH;
        output->lease = lease;
        return RONDO_OK;
    }
    for (uint32_t k = 0; k < t->fresh_count; k++) {
        if (t->fresh[k] != facts->storage) continue;
        output->kind = RONDO_TREE_OUTPUT_ALIAS;
        output->index = t->first[k];
        output->shared = t->node->outputs[t->first[k]].shared = 1;
        return RONDO_OK;
    }
    for (uint32_t k = 0; k < t->call->input_count; k++) {
        if (t->inputs[k].place != RONDO_TENSOR_DEVICE || t->inputs[k].storage != facts->storage) continue;
        output->kind = RONDO_TREE_OUTPUT_INPUT;
        output->index = k;
        output->offset = (int64_t)(facts->pointer - t->inputs[k].pointer);
        return RONDO_OK;
    }
    if (output_is_constant(t, facts->storage)) return RONDO_OK;
    output->kind = RONDO_TREE_OUTPUT_FRESH;
    t->first[t->fresh_count] = i;
    t->fresh[t->fresh_count++] = facts->storage;
    return RONDO_OK;
}

static bool output_listed(const rondo_tree_block *blocks, uint64_t count, uint64_t pointer) {
    for (uint64_t i = 0; i < count; i++) {
        if (blocks[i].pointer == pointer) return true;
    }
    return false;
}

/* A storage that is not the pool's was there before and stays: it is given back as it is. */
static rondo_status outputs_drop_foreign(outputs_taking *t) {
    rondo_tree *tree = t->call->tree;
    const rondo_graph_ops *ops = &tree->ops;
    if (!ops->memory_snapshot) return RONDO_OK;
    uint64_t count = ops->memory_snapshot(ops->user, tree->pool, NULL, NULL, 0);
    tree->blocks.count = 0;
    RONDO__TRY(rondo__buffer_reserve(&tree->blocks, count));
    uint64_t now = ops->memory_snapshot(ops->user, tree->pool, tree->blocks.data, NULL, count);
    if (now < count) count = now;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < t->fresh_count; k++) {
        if (output_listed(tree->blocks.data, count, t->fresh[k])) {
            t->first[kept] = t->first[k];
            t->fresh[kept++] = t->fresh[k];
            continue;
        }
        for (uint32_t i = t->first[k]; i < t->call->output_count; i++) {
            if (t->facts[i].storage != t->fresh[k]) continue;
            t->node->outputs[i] = (rondo_tree_output){.kind = RONDO_TREE_OUTPUT_KEPT};
        }
    }
    t->fresh_count = kept;
    return RONDO_OK;
}

static rondo_status outputs_check(outputs_taking *t) {
    rondo_tree *tree = t->call->tree;
    bool equal = false;
    if (!tree->options.check_pool) return RONDO_OK;
    RONDO__TRY(rondo__tree_check_pool(tree, t->fresh, t->fresh_count, &equal));
    if (equal) return RONDO_OK;
    RONDO__TRY(outputs_drop_foreign(t));
    RONDO__TRY(rondo__tree_check_pool(tree, t->fresh, t->fresh_count, &equal));
    t->node->untracked = !equal;
    return RONDO_OK;
}

static rondo_status outputs_lease(outputs_taking *t) {
    rondo_tree *tree = t->call->tree;
    const rondo_tensor_host *host = &tree->host;
    rondo__tree_node *node = t->node;
    if (!t->fresh_count) return RONDO_OK;
    RONDO__TRY(rondo__lease_group_create(tree->book, t->call->function->id, tree->runs, t->fresh_count, &node->group));
    for (uint32_t k = 0; k < t->fresh_count; k++) {
        rondo_tree_lease *lease = &node->group->leases[k];
        lease->pointer = t->fresh[k];
        lease->bytes = t->facts[t->first[k]].storage_bytes;
        if (tree->host.flags & RONDO_TENSOR_HOST_WEAK) {
            RONDO__TRY(host->watch(host->user, t->call->outputs[t->first[k]], &lease->weak));
            rondo_tree_lease_set_storage(lease, lease->weak);
        }
        uint64_t epoch = rondo__lease_grant(lease, RONDO__LEASE_ALLOCATOR);
        rondo_tree_output *output = &node->outputs[t->first[k]];
        output->lease = lease;
        output->epoch = epoch;
        if (!lease->weak) host->adopt(host->user, t->call->outputs[t->first[k]], lease, epoch);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i].kind == RONDO_TREE_OUTPUT_ALIAS)
            node->outputs[i].lease = node->outputs[node->outputs[i].index].lease;
    }
    node->fresh_count = t->fresh_count;
    return RONDO_OK;
}

/* An output on the buffer of an input that was copied is one on the caller's input, now as at each replay. */
static rondo_status outputs_move_to_inputs(outputs_taking *t) {
    rondo__tree_call *call = t->call;
    const rondo_tree *tree = call->tree;
    const rondo_tensor_host *host = &tree->host;
    for (uint32_t i = 0; i < t->node->output_count; i++) {
        rondo_tree_output *output = &t->node->outputs[i];
        if (output->kind != RONDO_TREE_OUTPUT_INPUT) continue;
        if (t->inputs[output->index].pointer == tree->pointers[output->index]) continue;
        RONDO__TRY(host->keep(host->user, call->outputs[i], false, &output->metadata));
        host->release(host->user, &call->outputs[i], 1);
        RONDO__TRY(host->make_outputs(host->user, output, 1, call->inputs, &call->outputs[i]));
    }
    return RONDO_OK;
}

static rondo_status outputs_keep(outputs_taking *t) {
    const rondo_tensor_host *host = &t->call->tree->host;
    for (uint32_t i = 0; i < t->node->output_count; i++) {
        rondo_tree_output *output = &t->node->outputs[i];
        if (!t->call->outputs[i] || output->metadata) continue;
        RONDO__TRY(
            host->keep(host->user, t->call->outputs[i], output->kind == RONDO_TREE_OUTPUT_KEPT, &output->metadata));
    }
    return RONDO_OK;
}

rondo_status rondo__tree_take_outputs(rondo__tree_call *call, rondo__tree_node *node,
                                      const rondo_tensor_facts *inputs) {
    const rondo_allocator *allocator = &call->tree->allocator;
    uint32_t count = call->output_count;
    void *facts = NULL, *fresh = NULL, *first = NULL, *outputs = NULL;
    rondo_status status = rondo__allocate_array(allocator, count, sizeof(rondo_tree_output), &outputs);
    if (!status) status = rondo__allocate_array(allocator, count, sizeof(rondo_tensor_facts), &facts);
    if (!status) status = rondo__allocate_array(allocator, count, sizeof(uint64_t), &fresh);
    if (!status) status = rondo__allocate_array(allocator, count, sizeof(uint32_t), &first);
    node->outputs = outputs;
    node->output_count = outputs ? count : 0;
    outputs_taking t = {call, node, inputs, facts, fresh, first, 0};
    for (uint32_t i = 0; i < count && !status; i++) status = output_classify(&t, i);
    if (!status && !node->warmup) status = outputs_move_to_inputs(&t);
    rondo__tree_release_all(call->tree, call->held, call->held_count);
    if (!status) status = outputs_check(&t);
    if (!status) status = outputs_lease(&t);
    if (!status && !node->warmup) status = outputs_keep(&t);
    rondo__free(allocator, facts, count * sizeof(rondo_tensor_facts));
    rondo__free(allocator, fresh, count * sizeof(uint64_t));
    rondo__free(allocator, first, count * sizeof(uint32_t));
    return status;
}
