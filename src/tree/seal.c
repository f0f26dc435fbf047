/* SPDX-License-Identifier: Apache-2.0
 *
 * See seal.h. */
#include "tree/seal.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------ trail */

static rondo_status trail_open(rondo_tree *tree) {
    void *memory = NULL;
    if (tree->seal) return RONDO_OK;
    RONDO__TRY(rondo__allocate_zeroed(&tree->allocator, sizeof(rondo__tree_seal), &memory));
    tree->seal = memory;
    rondo__buffer_init(&tree->seal->trail, &tree->allocator, sizeof(rondo__tree_node *), UINT32_MAX);
    rondo__buffer_init(&tree->seal->before, &tree->allocator, sizeof(rondo__tree_node *), UINT32_MAX);
    rondo__buffer_init(&tree->seal->held, &tree->allocator, sizeof(void *), UINT32_MAX);
    tree->seal->steady = true;
    return RONDO_OK;
}

void rondo__tree_trail(rondo_tree *tree, rondo__tree_node *node) {
    size_t bytes = (size_t)node->function->input_count * 8u;
    if (!tree->options.seal_after || rondo__tree_is_sealed(tree)) return;
    rondo_status status = trail_open(tree);
    if (!status && !node->pointers) {
        void *memory = NULL;
        status = rondo__allocate(&tree->allocator, bytes, &memory);
        node->pointers = memory;
        if (memory) memset(memory, 0xff, bytes);
    }
    if (!status) status = rondo__buffer_append(&tree->seal->trail, &node, 1);
    if (status) { /* without memory nothing is sealed */
        rondo_status_release(status);
        rondo__tree_trail_break(tree);
        return;
    }
    if (!rondo__tree_same(node->pointers, tree->pointers, bytes)) {
        memcpy(node->pointers, tree->pointers, bytes);
        tree->seal->steady = false;
    }
}

void rondo__tree_trail_break(rondo_tree *tree) {
    if (tree->seal) tree->seal->steady = false;
}

/* ------------------------------------------------------------------------------------------------------- held */

void rondo__tree_seal_hold(rondo__tree_call *call) {
    rondo__buffer *held = &call->tree->seal->held;
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (call->inputs[i]) *RONDO__BUFFER_AT(held, void *, held->count++) = call->inputs[i];
        call->inputs[i] = NULL;
    }
}

static bool seal_has_room(rondo__tree_seal *seal, uint32_t count) {
    rondo_status status = rondo__buffer_reserve(&seal->held, seal->held.count + count);
    bool room = !status;
    rondo_status_release(status);
    return room;
}

static void seal_let_go(rondo_tree *tree) {
    rondo__buffer *held = &tree->seal->held;
    if (!held->count) return;
    rondo__tree_release_all(tree, held->data, (uint32_t)held->count);
    held->count = 0;
}

/* ------------------------------------------------------------------------------------------------------- seal */

static void seal_open(rondo_tree *tree) {
    rondo__tree_seal *seal = tree->seal;
    if (!seal->sequence) return;
    for (uint32_t i = 0; i < seal->count; i++) {
        if (seal->sequence[i].graph) tree->ops.release_graph(tree->ops.user, seal->sequence[i].graph);
    }
    rondo__free(&tree->allocator, seal->sequence, seal->count * sizeof(rondo__tree_sealed));
    seal->sequence = NULL;
    seal->count = seal->position = 0;
}

void rondo__tree_unseal(rondo_tree *tree) {
    rondo__tree_seal *seal = tree->seal;
    if (!seal) return;
    /* Who unseals has settled, or drops the nodes that are owed: then there is nobody left to see what they write. */
    seal_open(tree);
    seal_let_go(tree);
    seal->waiting = seal->repeats = 0;
    seal->trail.count = seal->before.count = 0;
    seal->steady = false;
}

void rondo__tree_seal_deinit(rondo_tree *tree) {
    if (!tree->seal) return;
    rondo__tree_unseal(tree);
    rondo__buffer_deinit(&tree->seal->trail);
    rondo__buffer_deinit(&tree->seal->before);
    rondo__buffer_deinit(&tree->seal->held);
    rondo__free(&tree->allocator, tree->seal, sizeof *tree->seal);
    tree->seal = NULL;
}

/* Whether its launch can come later than its call: nothing is copied or bound at the call. */
static bool seal_waits(const rondo__tree_node *node) {
    for (uint32_t i = 0; i < node->moving_count; i++) {
        if (node->moving[i].bound) return false;
    }
    return node->graph != NULL && !node->function->owned_count;
}

static int seal_compare(const void *a, const void *b) {
    uint64_t left = ((const rondo__tree_fixed *)a)->storage, right = ((const rondo__tree_fixed *)b)->storage;
    return (left > right) - (left < right);
}

/* Static inputs are slots of the one graph, too: see record.c. Ranges that overlap are refused, and nothing is joined. */
static rondo_status seal_declare_slots(rondo_tree *tree, void *graph, uint32_t first, uint32_t last) {
    const rondo_graph_ops *ops = &tree->ops;
    uint64_t room = 0, count = 0;
    void *memory = NULL;
    if (!ops->declare_slot) return RONDO_OK;
    for (uint32_t i = first; i <= last; i++) room += tree->seal->sequence[i].node->fixed_count;
    RONDO__TRY(rondo__allocate_array(&tree->allocator, room, sizeof(rondo__tree_fixed), &memory));
    rondo__tree_fixed *fixed = memory;
    for (uint32_t i = first; i <= last; i++) {
        const rondo__tree_node *node = tree->seal->sequence[i].node;
        for (uint32_t k = 0; k < node->fixed_count; k++) {
            if (node->fixed[k].bytes) fixed[count++] = node->fixed[k];
        }
    }
    if (count) qsort(fixed, (size_t)count, sizeof *fixed, seal_compare);
    rondo_status status = RONDO_OK;
    uint32_t slot = 0;
    for (uint64_t i = 0; i < count && !status; i++) {
        bool again = i && fixed[i].storage == fixed[i - 1u].storage && fixed[i].bytes == fixed[i - 1u].bytes;
        if (!again) status = ops->declare_slot(ops->user, graph, slot++, fixed[i].storage, fixed[i].bytes);
    }
    rondo__free(&tree->allocator, memory, room * sizeof(rondo__tree_fixed));
    return status;
}

static rondo_status seal_join(rondo_tree *tree, uint32_t first, uint32_t last) {
    const rondo_graph_ops *ops = &tree->ops;
    rondo__tree_sealed *sequence = tree->seal->sequence;
    rondo_tree_graph_facts facts = {0};
    void *graph = NULL;
    RONDO__TRY(ops->create_graph(ops->user, "sealed sequence", &graph));
    rondo_status status = seal_declare_slots(tree, graph, first, last);
    if (!status)
        status = ops->capture_begin(ops->user, graph, tree->stream, tree->pool, RONDO_CAPTURE_MODE_THREAD_LOCAL);
    if (!status) {
        for (uint32_t i = first; i <= last && !status; i++) {
            status = ops->replay(ops->user, sequence[i].node->graph, tree->stream);
        }
        if (!status) status = ops->capture_end(ops->user, graph, tree->stream, &facts);
        if (status) ops->abort(ops->user, graph);
    }
    if (status) {
        ops->release_graph(ops->user, graph);
        return status;
    }
    sequence[last].graph = graph;
    sequence[last].before = last - first;
    for (uint32_t i = first; i < last; i++) sequence[i].waits = true;
    return RONDO_OK;
}

/* Runs of nodes whose launches may wait for the last; only the first of a run may have inputs to copy. */
static void seal_join_all(rondo_tree *tree) {
    rondo__tree_seal *seal = tree->seal;
    bool may = (tree->host.flags & RONDO_TENSOR_HOST_FLUSHES) && (tree->ops.flags & RONDO_GRAPH_OPS_CHILD_GRAPHS);
    for (uint32_t first = 0; may && first < seal->count; first++) {
        uint32_t last = first;
        if (!seal_waits(seal->sequence[first].node)) continue;
        while (last + 1u < seal->count && seal_waits(seal->sequence[last + 1u].node) &&
               !seal->sequence[last + 1u].node->moving_count) {
            last++;
        }
        if (last == first) continue;
        rondo_status status = seal_join(tree, first, last);
        if (status) {
            rondo__log_write(tree->log, RONDO_LOG_INFO,
                             "trees: a sequence of %u launches could not be made one graph: %s", last - first + 1u,
                             rondo_status_message(status));
            rondo_status_release(status);
        }
        first = last;
    }
}

static void seal_close(rondo_tree *tree) {
    rondo__tree_seal *seal = tree->seal;
    void *memory = NULL;
    rondo_status status =
        rondo__allocate_array(&tree->allocator, seal->before.count, sizeof(rondo__tree_sealed), &memory);
    if (status) {
        rondo_status_release(status);
        return;
    }
    seal->sequence = memory;
    seal->count = (uint32_t)seal->before.count;
    for (uint32_t i = 0; i < seal->count; i++) {
        seal->sequence[i].node = *RONDO__BUFFER_AT(&seal->before, rondo__tree_node *, i);
        seal->sequence[i].pointers = seal->sequence[i].node->pointers;
    }
    seal->position = 0;
    seal_join_all(tree);
    rondo__log_write(tree->log, RONDO_LOG_DEBUG, "trees: sealed a sequence of %u calls", seal->count);
}

RONDO__HOT void rondo__tree_trail_end(rondo_tree *tree) {
    rondo__tree_seal *seal = tree->seal;
    if (!seal) return;
    if (seal->sequence) {
        seal->position = 0;
        return;
    }
    size_t bytes = seal->trail.count * sizeof(rondo__tree_node *);
    bool same = seal->steady && seal->trail.count && seal->trail.count == seal->before.count &&
                memcmp(seal->trail.data, seal->before.data, bytes) == 0;
    seal->repeats = same ? seal->repeats + 1u : 0;
    rondo__buffer trail = seal->before;
    seal->before = seal->trail;
    seal->trail = trail;
    seal->trail.count = 0;
    seal->steady = true;
    if (seal->repeats >= tree->options.seal_after) seal_close(tree);
}

/* -------------------------------------------------------------------------------------------------------- run */

rondo_status rondo__tree_settle(rondo_tree *tree) {
    rondo__tree_seal *seal = tree->seal;
    /* What cannot be launched stays owed. */
    while (seal && seal->waiting) {
        const rondo__tree_node *node = seal->sequence[seal->position - seal->waiting].node;
        RONDO__TRY(tree->ops.replay(tree->ops.user, node->graph, seal->waiting_stream));
        seal->waiting--;
    }
    if (seal) seal_let_go(tree);
    return RONDO_OK;
}

rondo_status rondo_tree_flush(rondo_tree *tree) {
    RONDO__TRY(rondo__tree_enter(tree, "rondo_tree_flush"));
    rondo_status status = rondo__tree_settle(tree);
    rondo__tree_unlock(tree);
    return status;
}

/* Whether the step that the call is in is the one that the sequence expects: a new one at its beginning, else the same,
 * or one that the path feeds. Ends the path at the beginning. */
RONDO__HOT static bool sealed_step(rondo__tree_call *call, const rondo__tree_node *node) {
    rondo_tree *tree = call->tree;
    int64_t generation = tree->host.generation ? tree->host.generation(tree->host.user) : tree->generation;
    uint64_t marks = atomic_load_explicit(&tree->marks, memory_order_relaxed);
    bool marked = marks != tree->marks_seen || (generation != tree->generation && generation < 0);
    bool fresh = marked || generation != tree->generation;
    if (tree->seal->position) {
        if (marked || (fresh && !node->revival_count)) return false;
    } else if (tree->current) {
        bool waits = !marks && generation >= 0 && atomic_load_explicit(&tree->pending_forward, memory_order_relaxed);
        if (fresh ? waits : !rondo__tree_all_over(tree)) return false;
        rondo__tree_end_path(tree, call->function, call->stream);
    }
    tree->generation = generation;
    tree->marks_seen = marks;
    return true;
}

RONDO__HOT rondo_status rondo__tree_run_sealed(rondo__tree_call *call, bool *out_done) {
    rondo_tree *tree = call->tree;
    rondo__tree_seal *seal = tree->seal;
    *out_done = false;
    if (seal->position == seal->count) seal->position = 0;
    const rondo__tree_sealed *step = &seal->sequence[seal->position];
    rondo__tree_node *node = step->node;
    size_t bytes = (size_t)call->input_count * 8u;
    if (node->function != call->function || !rondo__tree_same(step->pointers, tree->pointers, bytes) ||
        !rondo__tree_same(node->size->words, tree->words, bytes) || (tree->current != node->parent && seal->position)) {
        return RONDO_OK;
    }
    if (seal->waiting && call->stream != seal->waiting_stream) return RONDO_OK;
    if (step->waits && !seal_has_room(seal, call->input_count)) return RONDO_OK;
    if (!sealed_step(call, node)) return RONDO_OK;
    if (rondo__tree_fits(call, node)) return RONDO_OK;
    call->size = node->size;
    call->launch = step;
    rondo_status status = rondo__tree_execute(call, node, out_done);
    call->launch = NULL;
    if (status || !*out_done) return status;
    seal->position++;
    seal->waiting = step->waits ? seal->waiting + 1u : 0;
    if (!step->waits) seal_let_go(tree);
    seal->waiting_stream = call->stream;
    node->function->last = node->size;
    tree->info.sealed++;
    return RONDO_OK;
}
