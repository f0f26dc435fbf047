/* SPDX-License-Identifier: Apache-2.0
 *
 * Trees of an instance, one a (type, index, context); the lock; the pool. */
#include <string.h>

#include "base/instance.h"
#include "base/sized.h"
#include "tree/seal.h"

/* ------------------------------------------------------------------------------------------------------ lock */

RONDO__HOT void rondo__tree_lock(rondo_tree *tree) {
    uint64_t nobody = 0, me = rondo__thread_id();
    if (rondo__alone()) {
        atomic_store_explicit(&tree->owner, me, memory_order_relaxed);
        return;
    }
    if (atomic_compare_exchange_strong_explicit(&tree->owner, &nobody, me, memory_order_acq_rel,
                                                memory_order_relaxed)) {
        return;
    }
    rondo__mutex_lock(&tree->mutex);
    (void)atomic_fetch_add(&tree->waiting, 1u);
    for (nobody = 0; !atomic_compare_exchange_strong(&tree->owner, &nobody, me); nobody = 0) {
        (void)pthread_cond_wait(&tree->free, &tree->mutex);
    }
    (void)atomic_fetch_sub(&tree->waiting, 1u);
    rondo__mutex_unlock(&tree->mutex);
}

rondo_status rondo__tree_enter(rondo_tree *tree, const char *what) {
    if (!tree) return RONDO__FAIL(INVALID_ARGUMENT, TREE, "%s needs a tree", what);
    if (atomic_load_explicit(&tree->owner, memory_order_relaxed) == rondo__thread_id()) {
        return RONDO__FAIL(INVALID_STATE, TREE, "%s: this thread is in the middle of a call of the tree", what);
    }
    rondo__tree_lock(tree);
    return RONDO_OK;
}

RONDO__HOT void rondo__tree_unlock(rondo_tree *tree) {
    if (rondo__alone()) {
        atomic_store_explicit(&tree->owner, 0u, memory_order_relaxed);
        return;
    }
    /* Either this sees who waits, or who is about to wait sees that nobody is inside. */
    atomic_store(&tree->owner, 0u);
    if (!atomic_load(&tree->waiting)) return;
    rondo__mutex_lock(&tree->mutex);
    (void)pthread_cond_signal(&tree->free);
    rondo__mutex_unlock(&tree->mutex);
}

uint64_t rondo__tree_now(const rondo_tree *tree) {
    return tree->options.clock ? tree->options.clock(tree->options.clock_user) : rondo__now_ns();
}

/* ------------------------------------------------------------------------------------------------------ pool */

rondo_status rondo__tree_open_pool(rondo_tree *tree) {
    rondo_pool_id pool = {0, 0};
    void *user = tree->ops.user;
    if (!tree->stream) RONDO__TRY(tree->ops.create_stream(user, &tree->stream));
    if (tree->pool.automatic || tree->pool.user) return RONDO_OK;
    RONDO__TRY(tree->ops.graph_pool_handle(user, &pool));
    /* The use that this leaves is the tree's own: the pool is there as long as the tree wants it. */
    RONDO__TRY(tree->ops.begin_allocate_current_thread_to_pool(user, pool));
    rondo_status status = tree->ops.end_allocate_to_pool(user, pool);
    if (status) {
        RONDO__IGNORE(tree->ops.release_pool(user, pool));
        return status;
    }
    tree->pool = pool;
    return RONDO_OK;
}

void rondo__tree_retire_pool(rondo_tree *tree) {
    rondo__tree_unseal(tree);
    while (tree->current) {
        /* Its outputs belong to the allocator, which keeps their memory although the pool goes. */
        rondo__tree_node *node = tree->current;
        tree->current = node->parent;
        if (node->warmup) rondo__tree_free_node(tree, node);
    }
    tree->state = RONDO_TREE_NOTHING;
    rondo__tree_drop_all(tree);
    rondo__tree_functions_unused(tree);
    if (tree->pool.automatic || tree->pool.user) RONDO__IGNORE(tree->ops.release_pool(tree->ops.user, tree->pool));
    tree->pool = (rondo_pool_id){0, 0};
}

/* ---------------------------------------------------------------------------------------------------- create */

/* Members of the tables that are not optional. */
typedef struct tree_member {
    size_t offset;
    const char *name;
} tree_member;
#define TREE_OPS(name) \
    { offsetof(rondo_graph_ops, name), "rondo_graph_ops." #name }
#define TREE_HOST(name) \
    { offsetof(rondo_tensor_host, name), "rondo_tensor_host." #name }
static const tree_member tree_ops_members[] = {TREE_OPS(is_graph_capture_supported),
                                               TREE_OPS(graph_pool_handle),
                                               TREE_OPS(begin_allocate_current_thread_to_pool),
                                               TREE_OPS(end_allocate_to_pool),
                                               TREE_OPS(release_pool),
                                               TREE_OPS(get_checkpoint_state),
                                               TREE_OPS(release_checkpoint_state),
                                               TREE_OPS(set_checkpoint_pool_state),
                                               TREE_OPS(check_pool_live_allocations),
                                               TREE_OPS(raw_delete),
                                               TREE_OPS(create_stream),
                                               TREE_OPS(release_stream),
                                               TREE_OPS(stream_wait),
                                               TREE_OPS(synchronize),
                                               TREE_OPS(create_graph),
                                               TREE_OPS(capture_begin),
                                               TREE_OPS(capture_end),
                                               TREE_OPS(abort),
                                               TREE_OPS(replay),
                                               TREE_OPS(release_graph),
                                               TREE_OPS(copy)};
static const tree_member tree_host_members[] = {
    TREE_HOST(facts),      TREE_HOST(describe), TREE_HOST(run),  TREE_HOST(retain),       TREE_HOST(release),
    TREE_HOST(make_input), TREE_HOST(keep),     TREE_HOST(drop), TREE_HOST(make_outputs), TREE_HOST(own)};

static rondo_status tree_check_members(const void *table, const tree_member *members, size_t count) {
    for (size_t i = 0; i < count; i++) {
        void (*function)(void) = NULL;
        memcpy(&function, (const char *)table + members[i].offset, sizeof function);
        if (!function) {
            return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_tree_open: %s is not optional", members[i].name);
        }
    }
    return RONDO_OK;
}

static rondo_status tree_check_tables(const rondo_graph_ops *ops, const rondo_tensor_host *host) {
    RONDO__TRY(tree_check_members(ops, tree_ops_members, sizeof tree_ops_members / sizeof *tree_ops_members));
    RONDO__TRY(tree_check_members(host, tree_host_members, sizeof tree_host_members / sizeof *tree_host_members));
    bool weak = (host->flags & RONDO_TENSOR_HOST_WEAK) != 0;
    if (weak ? !host->watch || !host->alive || !host->unwatch : !host->adopt) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_tree_open: a %s tensor host needs %s",
                           weak ? "weak" : "lease", weak ? "watch, alive and unwatch" : "adopt");
    }
    if (!ops->declare_slot != !ops->bind) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_tree_open: declare_slot and bind come together");
    }
    return RONDO_OK;
}

static rondo_status tree_read_options(const rondo_tree_options *given, rondo_tree_options *options,
                                      rondo_graph_ops *ops, rondo_tensor_host *host) {
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_TREE, "rondo_tree_options", given));
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_TREE, "rondo_tree_options", given, options, sizeof *options));
    if (!options->type || !options->ops || !options->host) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_tree_open: the options need type, ops and host");
    }
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_TREE, "rondo_graph_ops", options->ops));
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_TREE, "rondo_graph_ops", options->ops, ops, sizeof *ops));
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_TREE, "rondo_tensor_host", options->host));
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_TREE, "rondo_tensor_host", options->host, host, sizeof *host));
    RONDO__TRY(tree_check_tables(ops, host));
    if (!ops->is_graph_capture_supported(ops->user)) {
        return RONDO__FAIL(UNSUPPORTED, TREE, "device '%s:%d' captures no graphs that trees can use", options->type,
                           (int)options->index);
    }
    if (ops->caching_allocator_enabled && !ops->caching_allocator_enabled(ops->user)) {
        return RONDO__FAIL(UNSUPPORTED, TREE,
                           "cudagraph capture requires the caching allocator; current allocator is uncached");
    }
    if (options->conflict == RONDO_TREE_CONFLICT_COPY && !host->evacuate) {
        return RONDO__FAIL(UNSUPPORTED, TREE, "copying on conflict needs a tensor host with evacuate");
    }
    return RONDO_OK;
}

static void tree_destroy(rondo_tree *tree) {
    rondo_allocator allocator = tree->allocator;
    rondo_instance *instance = tree->instance;
    RONDO__IGNORE(rondo_tree_reset(tree));
    for (size_t i = 0; i < tree->functions.count; i++) {
        rondo__tree_function *function = rondo__tree_function_at(tree, (uint32_t)i);
        if (function) rondo__tree_function_destroy(tree, function);
    }
    rondo__tree_seal_deinit(tree);
    if (tree->last_stream && tree->ops.retain_stream) tree->ops.release_stream(tree->ops.user, tree->last_stream);
    if (tree->stream) tree->ops.release_stream(tree->ops.user, tree->stream);
    if (tree->host.destroy) tree->host.destroy(tree->host.user);
    rondo__book_release(tree->book);
    rondo__buffer_deinit(&tree->functions);
    rondo__buffer_deinit(&tree->all);
    rondo__buffer_deinit(&tree->blocks);
    rondo__buffer_deinit(&tree->pointer_list);
    rondo__free(&allocator, tree->lookup, (size_t)tree->lookup_size * sizeof(rondo__tree_node *));
    rondo__free(&allocator, tree->pointers, (size_t)tree->room * 8u);
    rondo__free(&allocator, tree->words, (size_t)tree->room * 8u);
    rondo__string_free(&allocator, tree->type);
    rondo__mutex_deinit(&tree->mutex);
    (void)pthread_cond_destroy(&tree->free);
    rondo__free(&allocator, tree, sizeof *tree);
    rondo_instance_release(instance);
}

static rondo_status tree_create(rondo_instance *instance, const rondo_tree_options *options, const rondo_graph_ops *ops,
                                const rondo_tensor_host *host, rondo_tree **out_tree) {
    const rondo__instance_base *base = rondo__instance_base_of(instance);
    rondo__tree_book *book = NULL;
    void *memory = NULL;
    char *type = NULL;
    RONDO__TRY(rondo__string_copy(&base->allocator, options->type, &type));
    rondo_status status = rondo__allocate_zeroed(&base->allocator, sizeof(rondo_tree), &memory);
    if (!status) status = rondo__book_create(instance, ops, &book);
    if (status) {
        rondo__free(&base->allocator, memory, sizeof(rondo_tree));
        rondo__string_free(&base->allocator, type);
        return status;
    }
    rondo_tree *tree = memory;
    rondo__ref_init(&tree->references);
    tree->allocator = base->allocator;
    tree->log = &base->log;
    rondo_instance_retain(instance);
    tree->instance = instance;
    tree->options = *options;
    tree->type = type;
    tree->options.type = type;
    tree->options.ops = NULL;
    tree->options.host = NULL;
    tree->ops = *ops;
    tree->host = *host;
    tree->book = book;
    book->serial = (host->flags & RONDO_TENSOR_HOST_SERIAL) != 0 && !(host->flags & RONDO_TENSOR_HOST_WEAK);
    rondo__mutex_init(&tree->mutex);
    (void)pthread_cond_init(&tree->free, NULL);
    rondo__buffer_init(&tree->functions, &tree->allocator, sizeof(rondo__tree_function *), UINT32_MAX);
    rondo__buffer_init(&tree->all, &tree->allocator, sizeof(rondo__tree_node *), UINT32_MAX);
    rondo__buffer_init(&tree->blocks, &tree->allocator, sizeof(rondo_tree_block), UINT32_MAX);
    rondo__buffer_init(&tree->pointer_list, &tree->allocator, sizeof(uint64_t), UINT32_MAX);
    *out_tree = tree;
    return RONDO_OK;
}

rondo_status rondo_tree_open(rondo_instance *instance, const rondo_tree_options *given, rondo_tree **out_tree) {
    rondo_tree_options options = RONDO_TREE_OPTIONS_INIT;
    rondo_graph_ops ops = RONDO_GRAPH_OPS_INIT;
    rondo_tensor_host host = RONDO_TENSOR_HOST_INIT;
    rondo_status status = RONDO_OK;
    if (!instance || !out_tree) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_tree_open needs an instance and a place for the tree");
    }
    RONDO__TRY(tree_read_options(given, &options, &ops, &host));
    rondo__instance_base *base = rondo__instance_base_mutable(instance);
    rondo__mutex_lock(&base->trees_mutex);
    rondo_tree *tree = base->trees;
    while (tree && (strcmp(tree->type, options.type) != 0 || tree->options.index != options.index ||
                    tree->options.context != options.context)) {
        tree = tree->next;
    }
    bool found = tree != NULL;
    if (found) {
        rondo__ref_retain(&tree->references);
    } else {
        status = tree_create(instance, &options, &ops, &host, &tree);
        if (!status) {
            tree->next = base->trees;
            base->trees = tree;
        }
    }
    rondo__mutex_unlock(&base->trees_mutex);
    if (status) return status;
    if (found && ops.destroy) ops.destroy(ops.user);
    if (found && host.destroy) host.destroy(host.user);
    *out_tree = tree;
    return RONDO_OK;
}

void rondo_tree_retain(rondo_tree *tree) {
    if (tree) rondo__ref_retain(&tree->references);
}

void rondo_tree_release(rondo_tree *tree) {
    if (!tree) return;
    rondo__instance_base *base = rondo__instance_base_mutable(tree->instance);
    /* Under the mutex, so that nobody finds a tree that is going. */
    rondo__mutex_lock(&base->trees_mutex);
    bool last = rondo__ref_release(&tree->references);
    if (last) {
        rondo_tree **link = &base->trees;
        while (*link != tree) link = &(*link)->next;
        *link = tree->next;
    }
    rondo__mutex_unlock(&base->trees_mutex);
    if (last) tree_destroy(tree);
}

rondo_status rondo_tree_reset(rondo_tree *tree) {
    RONDO__TRY(rondo__tree_enter(tree, "rondo_tree_reset"));
    rondo_status status = rondo__tree_settle(tree);
    status = rondo__status_first(status, rondo__tree_apply_checkpoint(tree));
    /* What cannot be handed to the allocator cannot stay. */
    if (status) rondo__tree_end_path(tree, NULL, tree->last_stream);
    rondo__tree_retire_pool(tree);
    for (size_t i = 0; i < tree->functions.count; i++) {
        rondo__tree_function *function = rondo__tree_function_at(tree, (uint32_t)i);
        if (!function) continue;
        if (function->simple) rondo__tree_simple_drop(tree, function);
        for (uint32_t k = 0; k < function->table_size; k++) {
            for (rondo__tree_size *size = function->table[k]; size; size = size->next) {
                size->warmed = size->again = false;
                size->seen = 0;
            }
        }
    }
    atomic_store(&tree->pending_forward, false);
    rondo__tree_unlock(tree);
    return status;
}

void rondo_tree_mark_step(rondo_tree *tree) {
    if (tree) (void)atomic_fetch_add_explicit(&tree->marks, 1u, memory_order_relaxed);
}

void rondo_tree_set_running_backward(rondo_tree *tree) {
    if (tree) atomic_store(&tree->pending_forward, false);
}

/* ------------------------------------------------------------------------------------------------------ info */

rondo_status rondo_tree_get_info(rondo_tree *tree, rondo_tree_info *out_info) {
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_TREE, "rondo_tree_info", out_info));
    RONDO__TRY(rondo__tree_enter(tree, "rondo_tree_get_info"));
    rondo_tree_info info = tree->info;
    info.struct_size = sizeof info;
    info.state = tree->state;
    info.pool = tree->pool;
    info.recordings = (uint32_t)tree->all.count;
    for (const rondo__tree_node *node = tree->first_root; node; node = node->next_sibling) info.roots++;
    for (size_t i = 0; i < tree->functions.count; i++) {
        const rondo__tree_function *function = rondo__tree_function_at(tree, (uint32_t)i);
        info.functions += function != NULL;
        info.recordings += function && rondo__tree_simple_recorded(function);
    }
    for (size_t i = 0; i < tree->all.count; i++) {
        info.host_bytes += (*RONDO__BUFFER_AT(&tree->all, rondo__tree_node *, i))->host_bytes;
    }
    for (const rondo__tree_node *node = tree->current; node; node = node->parent) {
        info.depth++;
        for (uint32_t k = 0; node->group && k < node->group->count; k++) {
            info.live += rondo__tree_live(tree, &node->group->leases[k]);
        }
    }
    bool pool = tree->ops.pool_bytes && (tree->pool.automatic || tree->pool.user);
    rondo_status status =
        pool ? tree->ops.pool_bytes(tree->ops.user, tree->pool, &info.pool_reserved, &info.pool_allocated) : RONDO_OK;
    rondo__tree_unlock(tree);
    if (!status) rondo__sized_write(&info, sizeof info, out_info);
    return status;
}

static const char *const reason_texts[] = {
#define RONDO_X(name, number, text) text,
    RONDO_TREE_REASONS(RONDO_X)
#undef RONDO_X
};
static const char *const reason_names[] = {
#define RONDO_X(name, number, text) #name,
    RONDO_TREE_REASONS(RONDO_X)
#undef RONDO_X
};

const char *rondo_tree_reason_text(rondo_tree_reason reason) {
    return reason >= 0 && reason < RONDO_TREE_REASON_COUNT ? reason_texts[reason] : "unknown";
}

const char *rondo_tree_reason_name(rondo_tree_reason reason) {
    return reason >= 0 && reason < RONDO_TREE_REASON_COUNT ? reason_names[reason] : "unknown";
}
