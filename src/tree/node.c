/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings: where they hang, how they are found, and how they go. A table finds the first recording of a size after a
 * node; the others of the same size and place are chained behind it. */
#include <string.h>

#include "tree/tree.h"

/* ---------------------------------------------------------------------------------------------------- look-up */

static uint32_t lookup_place(const rondo_tree *tree, const rondo__tree_node *parent, const rondo__tree_size *size) {
    uint64_t hash = (uint64_t)(uintptr_t)parent * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)size;
    hash *= 0xff51afd7ed558ccdu;
    return (uint32_t)(hash >> 32) & (tree->lookup_size - 1u);
}

rondo__tree_node *rondo__tree_candidates(const rondo_tree *tree, const rondo__tree_size *size) {
    const rondo__tree_node *parent = tree->current;
    if (!tree->lookup_size || !size->recordings) return NULL;
    for (uint32_t i = lookup_place(tree, parent, size); tree->lookup[i]; i = (i + 1u) & (tree->lookup_size - 1u)) {
        if (tree->lookup[i]->parent == parent && tree->lookup[i]->size == size) return tree->lookup[i];
    }
    return NULL;
}

static void lookup_put(rondo_tree *tree, rondo__tree_node *node) {
    uint32_t i = lookup_place(tree, node->parent, node->size);
    while (tree->lookup[i] && (tree->lookup[i]->parent != node->parent || tree->lookup[i]->size != node->size)) {
        i = (i + 1u) & (tree->lookup_size - 1u);
    }
    if (!tree->lookup[i]) {
        node->next_same = NULL;
        tree->lookup[i] = node;
        tree->lookup_count++;
        return;
    }
    /* Behind those that are there, in the order of recording. */
    rondo__tree_node *last = tree->lookup[i];
    while (last->next_same) last = last->next_same;
    last->next_same = node;
    node->next_same = NULL;
}

static rondo_status lookup_grow(rondo_tree *tree) {
    void *memory = NULL;
    if ((tree->lookup_count + 1u) * 2u <= tree->lookup_size) return RONDO_OK;
    uint32_t before = tree->lookup_size, wanted = before ? before * 2u : 16u;
    RONDO__TRY(rondo__allocate_array(&tree->allocator, wanted, sizeof(rondo__tree_node *), &memory));
    rondo__tree_node **old = tree->lookup;
    tree->lookup = memory;
    tree->lookup_size = wanted;
    for (uint32_t k = 0; k < before; k++) {
        if (!old[k]) continue;
        uint32_t i = lookup_place(tree, old[k]->parent, old[k]->size);
        while (tree->lookup[i]) i = (i + 1u) & (wanted - 1u);
        tree->lookup[i] = old[k];
    }
    rondo__free(&tree->allocator, old, (size_t)before * sizeof(rondo__tree_node *));
    return RONDO_OK;
}

/* Entries behind a gap move up, so that a search may stop at the first gap. */
static void lookup_close(rondo_tree *tree, uint32_t gap) {
    uint32_t mask = tree->lookup_size - 1u;
    for (uint32_t i = (gap + 1u) & mask; tree->lookup[i]; i = (i + 1u) & mask) {
        uint32_t home = lookup_place(tree, tree->lookup[i]->parent, tree->lookup[i]->size);
        if (((i - home) & mask) < ((i - gap) & mask)) continue;
        tree->lookup[gap] = tree->lookup[i];
        gap = i;
    }
    tree->lookup[gap] = NULL;
    tree->lookup_count--;
}

static void lookup_take(rondo_tree *tree, rondo__tree_node *node) {
    uint32_t i = lookup_place(tree, node->parent, node->size);
    while (tree->lookup[i]->parent != node->parent || tree->lookup[i]->size != node->size) {
        i = (i + 1u) & (tree->lookup_size - 1u);
    }
    if (tree->lookup[i] == node) {
        if (node->next_same) tree->lookup[i] = node->next_same;
        else lookup_close(tree, i);
        return;
    }
    rondo__tree_node *before = tree->lookup[i];
    while (before->next_same != node) before = before->next_same;
    before->next_same = node->next_same;
}

/* ----------------------------------------------------------------------------------------------------- attach */

rondo_status rondo__tree_attach(rondo_tree *tree, rondo__tree_node *node) {
    RONDO__TRY(lookup_grow(tree));
    RONDO__TRY(rondo__buffer_append(&tree->all, &node, 1));
    node->slot = (uint32_t)tree->all.count - 1u;
    lookup_put(tree, node);
    rondo__tree_node **first = node->parent ? &node->parent->first_child : &tree->first_root;
    node->next_sibling = *first;
    if (*first) (*first)->previous_sibling = node;
    *first = node;
    if (!node->size->recordings++) node->function->recorded_sizes++;
    node->function->recordings++;
    if (!node->parent) node->function->roots++;
    return RONDO_OK;
}

void rondo__tree_free_node(rondo_tree *tree, rondo__tree_node *node) {
    const rondo_allocator *allocator = &tree->allocator;
    const rondo_tensor_host *host = &tree->host;
    if (node->graph) tree->ops.release_graph(tree->ops.user, node->graph);
    if (node->checkpoint) tree->ops.release_checkpoint_state(tree->ops.user, node->checkpoint);
    for (uint32_t i = 0; i < node->moving_count; i++) {
        if (node->moving[i].metadata) host->drop(host->user, node->moving[i].metadata);
    }
    for (uint32_t i = 0; i < node->revival_count; i++) host->drop(host->user, node->revivals[i].metadata);
    for (uint32_t i = 0; node->outputs && i < node->output_count; i++) {
        if (node->outputs[i].metadata) host->drop(host->user, node->outputs[i].metadata);
    }
    for (uint32_t i = 0; node->group && i < node->group->count; i++) {
        rondo_tree_lease *lease = &node->group->leases[i];
        uint64_t owner = 0;
        if (!lease->weak) continue;
        host->unwatch(host->user, lease->weak);
        lease->weak = NULL;
        /* A watched storage never tells its end: the lease of one that lives on ends here. */
        if (rondo__lease_seize(lease, &owner)) rondo__lease_finish(lease, true, 0, 0);
    }
    rondo__lease_group_orphan(node->group);
    uint32_t inputs = node->function->input_count;
    rondo__free(allocator, node->fixed, inputs * sizeof *node->fixed);
    rondo__free(allocator, node->moving, inputs * sizeof *node->moving);
    rondo__free(allocator, node->copies, inputs * sizeof *node->copies);
    rondo__free(allocator, node->pointers, (size_t)inputs * 8u);
    rondo__free(allocator, node->values, inputs * sizeof *node->values);
    rondo__free(allocator, node->revivals, inputs * sizeof *node->revivals);
    rondo__free(allocator, node->consumed, inputs * sizeof *node->consumed);
    rondo__free(allocator, node->outputs, node->output_count * sizeof *node->outputs);
    rondo__free(allocator, node->dead_before, node->dead_before_count * sizeof *node->dead_before);
    rondo__free(allocator, node->dead_after, node->dead_after_count * sizeof *node->dead_after);
    rondo__free(allocator, node, sizeof *node);
}

static void node_detach(rondo_tree *tree, rondo__tree_node *node) {
    lookup_take(tree, node);
    rondo__tree_node *last = *RONDO__BUFFER_AT(&tree->all, rondo__tree_node *, tree->all.count - 1u);
    *RONDO__BUFFER_AT(&tree->all, rondo__tree_node *, node->slot) = last;
    last->slot = node->slot;
    tree->all.count--;
    rondo__tree_node **first = node->parent ? &node->parent->first_child : &tree->first_root;
    if (*first == node) *first = node->next_sibling;
    else node->previous_sibling->next_sibling = node->next_sibling;
    if (node->next_sibling)
        node->next_sibling->previous_sibling = *first == node->next_sibling ? NULL : node->previous_sibling;
    if (node->parent && node->parent->hot == node) node->parent->hot = NULL;
    if (!--node->size->recordings) node->function->recorded_sizes--;
    node->function->recordings--;
    if (!node->parent) node->function->roots--;
}

void rondo__tree_drop_node(rondo_tree *tree, rondo__tree_node *node) {
    rondo__tree_node *stop = node->parent, *at = node;
    rondo__tree_unseal(tree);
    /* Leaves first; without recursion, since a path can be long. */
    for (;;) {
        while (at->first_child) at = at->first_child;
        rondo__tree_node *up = at->parent;
        bool last = at == node;
        node_detach(tree, at);
        rondo__tree_free_node(tree, at);
        if (last) return;
        at = up == stop ? node : up;
    }
}

bool rondo__tree_on_path(const rondo_tree *tree, const rondo__tree_node *node) {
    const rondo__tree_node *at = tree->current;
    while (at && at->depth > node->depth) at = at->parent;
    return at == node;
}

void rondo__tree_drop_all(rondo_tree *tree) {
    while (tree->first_root) rondo__tree_drop_node(tree, tree->first_root);
}

/* --------------------------------------------------------------------------------------------------- eviction */

static rondo__tree_node *node_oldest(const rondo_tree *tree) {
    rondo__tree_node *oldest = NULL;
    for (size_t i = 0; i < tree->all.count; i++) {
        rondo__tree_node *node = *RONDO__BUFFER_AT(&tree->all, rondo__tree_node *, i);
        if (node->first_child || (oldest && oldest->last_used <= node->last_used)) continue;
        if (!rondo__tree_on_path(tree, node)) oldest = node;
    }
    return oldest;
}

static bool node_evict(rondo_tree *tree) {
    rondo__tree_node *oldest = node_oldest(tree);
    if (!oldest) return false;
    rondo__tree_count(oldest->function, RONDO_TREE_REASON_EVICTED);
    tree->info.evicted++;
    rondo__tree_drop_node(tree, oldest);
    return true;
}

/* The pool gives back what the recordings that are left do not need. */
static void node_trim(rondo_tree *tree) {
    if (!tree->ops.trim_pool || !(tree->pool.automatic || tree->pool.user)) return;
    tree->pointer_list.count = 0;
    rondo_status status = rondo__buffer_reserve(&tree->pointer_list, tree->all.count + 1u);
    if (status) {
        rondo_status_release(status);
        return;
    }
    void **states = tree->pointer_list.data;
    for (size_t i = 0; i < tree->all.count; i++) {
        states[i] = (*RONDO__BUFFER_AT(&tree->all, rondo__tree_node *, i))->checkpoint;
    }
    RONDO__IGNORE(tree->ops.trim_pool(tree->ops.user, tree->pool, states, tree->all.count));
}

static bool node_bytes_fit(rondo_tree *tree) {
    uint64_t reserved = 0, allocated = 0;
    if (!tree->options.byte_limit || !tree->ops.pool_bytes || !(tree->pool.automatic || tree->pool.user)) return true;
    rondo_status status = tree->ops.pool_bytes(tree->ops.user, tree->pool, &reserved, &allocated);
    rondo_status_release(status);
    return status || reserved <= tree->options.byte_limit;
}

bool rondo__tree_make_room(rondo_tree *tree) {
    bool dropped = false;
    while (tree->options.recording_limit && tree->all.count >= tree->options.recording_limit && node_evict(tree)) {
        dropped = true;
    }
    if (dropped) node_trim(tree);
    while (!node_bytes_fit(tree)) {
        if (!node_evict(tree)) return false;
        node_trim(tree);
    }
    return true;
}
