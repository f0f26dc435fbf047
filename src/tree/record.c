/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording: the model runs once under capture, in the pool, on the tree's stream, and what it asked for is replayed once
 * for this call. Inputs that may move get a buffer of the recording's, or are bound at each replay. Whatever goes wrong,
 * nothing has run yet: the call is made directly, with the same inputs, and its result is the call's. */
#include <string.h>

#include "tree/tree.h"

typedef struct recording {
    rondo__tree_call *call;
    rondo__tree_node *node;
    rondo_tensor_facts *facts; /* of the call's inputs; then of what the model was given */
    void **given;              /* what the model gets; consumed by it */
    bool made;                 /* it made outputs */
    bool launched;             /* some of it may have run, and inputs may be written: it is not made again */
} recording;

/* ------------------------------------------------------------------------------------------------------- plan */

static rondo_status record_room(const rondo__tree_call *call, size_t size, void *out_pointer) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_array(&call->tree->allocator, call->input_count, size, &memory));
    memcpy(out_pointer, &memory, sizeof memory);
    return RONDO_OK;
}

static rondo_status record_create_node(rondo__tree_call *call, rondo__tree_node **out_node) {
    rondo_tree *tree = call->tree;
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(&tree->allocator, sizeof(rondo__tree_node), &memory));
    rondo__tree_node *node = memory;
    *out_node = node;
    node->function = call->function;
    node->size = call->size;
    node->parent = tree->current;
    node->depth = tree->current ? tree->current->depth + 1u : 0;
    node->id = tree->nodes++;
    node->statics = rondo__tree_statics(call);
    node->moved = rondo__tree_moved(call->reason);
    RONDO__TRY(record_room(call, sizeof *node->fixed, &node->fixed));
    RONDO__TRY(record_room(call, sizeof *node->moving, &node->moving));
    RONDO__TRY(record_room(call, sizeof *node->copies, &node->copies));
    RONDO__TRY(record_room(call, sizeof *node->values, &node->values));
    RONDO__TRY(record_room(call, sizeof *node->revivals, &node->revivals));
    return record_room(call, sizeof *node->consumed, &node->consumed);
}

static bool record_overlap(const rondo_tensor_facts *input, const rondo_tensor_facts *other) {
    return other->place == RONDO_TENSOR_DEVICE && other->pointer &&
           input->pointer < other->storage + other->storage_bytes && other->storage < input->pointer + input->bytes;
}

/* A constant may be given as an input, too. */
static bool record_is_constant(const recording *r, const rondo_tensor_facts *input) {
    const rondo__tree_function *function = r->call->function;
    const rondo_tensor_host *host = &r->call->tree->host;
    for (uint32_t i = 0; i < function->constant_count; i++) {
        rondo_tensor_facts facts = {0};
        if (!function->constants[i]) continue;
        rondo_status status = host->describe(host->user, function->constants[i], &facts);
        rondo_status_release(status);
        if (status || record_overlap(input, &facts)) return true;
    }
    return false;
}

/* Binding finds an input by its addresses, so nothing else may lie there, and kernels must mention no address before. */
static bool record_may_bind(const recording *r, uint32_t index) {
    const rondo_tree *tree = r->call->tree;
    const rondo_tensor_facts *facts = &r->facts[index];
    if (!(tree->ops.flags & RONDO_GRAPH_OPS_REBIND) || !tree->ops.bind || r->call->function->copy_inputs) return false;
    if (facts->pointer != facts->storage) return false;
    for (uint32_t i = 0; i < r->call->input_count; i++) {
        if (i != index && record_overlap(facts, &r->facts[i])) return false;
    }
    return !record_is_constant(r, facts);
}

static rondo_status record_plan_managed(recording *r, uint32_t index, rondo_tree_lease *lease) {
    const rondo_tensor_host *host = &r->call->tree->host;
    rondo__tree_node *node = r->node;
    rondo__tree_revival *revival = &node->revivals[node->revival_count];
    RONDO__TRY(host->keep(host->user, r->call->inputs[index], false, &revival->metadata));
    revival->index = index;
    revival->lease = lease;
    node->revival_count++;
    /* Managed ones stand first: their mismatch is the better reason. */
    for (uint32_t i = node->fixed_count; i > 0 && !node->fixed[i - 1].managed; i--) node->fixed[i] = node->fixed[i - 1];
    uint32_t at = 0;
    while (at < node->fixed_count && node->fixed[at].managed) at++;
    node->fixed[at] = (rondo__tree_fixed){.pointer = r->facts[index].pointer, .index = index, .managed = 1};
    node->fixed_count++;
    return RONDO_OK;
}

static rondo_status record_plan_input(recording *r, uint32_t index) {
    rondo_tree *tree = r->call->tree;
    rondo__tree_node *node = r->node;
    const rondo_tensor_facts *facts = &r->facts[index];
    if (facts->place == RONDO_TENSOR_HOST && facts->pointer && facts->bytes) {
        rondo__tree_value *value = &node->values[node->value_count++];
        value->index = index;
        value->bytes = (uint32_t)facts->bytes;
        memcpy(value->data, (const void *)(uintptr_t)facts->pointer, facts->bytes);
        return RONDO_OK;
    }
    if (facts->place != RONDO_TENSOR_DEVICE || !facts->pointer || !facts->storage_bytes) return RONDO_OK;
    rondo_tree_lease *lease = rondo__tree_find_covering(tree, facts->pointer);
    if (lease) return record_plan_managed(r, index, lease);
    if (r->call->function->is_static[index]) {
        node->fixed[node->fixed_count++] =
            (rondo__tree_fixed){facts->pointer, facts->storage, facts->storage_bytes, index, 0};
        return RONDO_OK;
    }
    rondo__tree_moving *moving = &node->moving[node->moving_count];
    *moving = (rondo__tree_moving){.bytes = facts->bytes, .index = index};
    moving->bound = record_may_bind(r, index);
    moving->destination = moving->bound ? facts->pointer : 0;
    node->moving_count++;
    return RONDO_OK;
}

/* ----------------------------------------------------------------------------------------------------- inputs */

static rondo_status record_make_buffer(recording *r, rondo__tree_moving *moving) {
    rondo_tree *tree = r->call->tree;
    const rondo_tensor_host *host = &tree->host;
    rondo_tensor_facts facts = {0};
    void **given = &r->given[moving->index];
    RONDO__TRY(host->make_input(host->user, r->call->inputs[moving->index], tree->stream, given));
    RONDO__TRY(host->describe(host->user, *given, &facts));
    if (facts.bytes != moving->bytes) {
        return RONDO__FAIL(INTERNAL, TREE, "the host made a buffer of %llu bytes for input %u, which has %llu",
                           (unsigned long long)facts.bytes, moving->index, (unsigned long long)moving->bytes);
    }
    moving->destination = facts.pointer;
    r->call->held[moving->index] = host->retain(host->user, *given);
    RONDO__TRY(host->keep(host->user, *given, false, &moving->metadata));
    r->facts[moving->index] = facts; /* what lies there is on the caller's input at each replay */
    return RONDO_OK;
}

static rondo_status record_make_buffers(recording *r) {
    rondo_tree *tree = r->call->tree;
    const rondo_graph_ops *ops = &tree->ops;
    rondo__tree_node *node = r->node;
    uint32_t copies = 0;
    for (uint32_t i = 0; i < node->moving_count; i++) copies += !node->moving[i].bound;
    if (!copies) return RONDO_OK;
    RONDO__TRY(ops->begin_allocate_current_thread_to_pool(ops->user, tree->pool));
    rondo_status status = RONDO_OK;
    for (uint32_t i = 0; i < node->moving_count && !status; i++) {
        if (!node->moving[i].bound) status = record_make_buffer(r, &node->moving[i]);
    }
    status = rondo__status_first(status, ops->end_allocate_to_pool(ops->user, tree->pool));
    status = rondo__status_first(status, ops->release_pool(ops->user, tree->pool));
    if (status) return status;
    copies = 0;
    for (uint32_t i = 0; i < node->moving_count; i++) {
        const rondo__tree_moving *moving = &node->moving[i];
        if (moving->bound) continue;
        node->copies[copies++] = (rondo_tree_copy){moving->destination, tree->pointers[moving->index], moving->bytes,
                                                   r->call->inputs[moving->index], moving->metadata};
    }
    return tree->host.copy_inputs ? tree->host.copy_inputs(tree->host.user, r->call->stream, node->copies, copies)
                                  : ops->copy(ops->user, r->call->stream, node->copies, copies);
}

/* What moves has a buffer; outputs of the path are given away, so that they may die; the rest is shared. */
static rondo_status record_give_inputs(recording *r) {
    const rondo_tensor_host *host = &r->call->tree->host;
    rondo__tree_call *call = r->call;
    RONDO__TRY(record_make_buffers(r));
    for (uint32_t i = 0; i < r->node->revival_count; i++) {
        uint32_t index = r->node->revivals[i].index;
        r->given[index] = call->inputs[index];
        call->inputs[index] = NULL;
        r->facts[index].place = RONDO_TENSOR_NONE;
    }
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (!r->given[i] && call->inputs[i]) r->given[i] = host->retain(host->user, call->inputs[i]);
    }
    return RONDO_OK;
}

/* ---------------------------------------------------------------------------------------------------- capture */

static rondo_status record_leave(rondo_tree *tree) {
    if (tree->host.leave) tree->host.leave(tree->host.user, RONDO_TREE_RECORD);
    return tree->ops.prepare_for_capture ? tree->ops.prepare_for_capture(tree->ops.user, true, false) : RONDO_OK;
}

static rondo_status record_run(recording *r) {
    rondo__tree_call *call = r->call;
    rondo_tree *tree = call->tree;
    const rondo_graph_ops *ops = &tree->ops;
    rondo__tree_node *node = r->node;
    rondo_tree_run_context context = {sizeof context,        RONDO_TREE_RECORD, tree, call->function->id, 0,
                                      call->function->model, tree->stream};
    RONDO__TRY(ops->capture_begin(ops->user, node->graph, tree->stream, tree->pool, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    rondo_status status =
        tree->host.run(tree->host.user, &context, r->given, call->input_count, call->outputs, call->output_count);
    r->made = !status;
    if (!status) status = ops->capture_end(ops->user, node->graph, tree->stream, &node->facts);
    if (status) ops->abort(ops->user, node->graph);
    return status;
}

/* Slots are numbered without gaps. Static inputs have one, too, which is their storage: they are compared at each replay,
 * so that other memory at the same address is as good, and the device has nothing to watch. */
static rondo_status record_declare_slots(const recording *r) {
    const rondo_graph_ops *ops = &r->call->tree->ops;
    rondo__tree_node *node = r->node;
    uint32_t slot = 0;
    if (!ops->declare_slot) return RONDO_OK;
    for (uint32_t i = 0; i < node->moving_count; i++) {
        rondo__tree_moving *moving = &node->moving[i];
        if (!moving->bound) continue;
        moving->slot = slot++;
        RONDO__TRY(ops->declare_slot(ops->user, node->graph, moving->slot, moving->destination, moving->bytes));
    }
    for (uint32_t i = 0; i < node->fixed_count; i++) {
        const rondo__tree_fixed *fixed = &node->fixed[i];
        bool declared = !fixed->bytes;
        for (uint32_t k = 0; k < i && !declared; k++) declared = node->fixed[k].storage == fixed->storage;
        if (declared) continue;
        RONDO__TRY(ops->declare_slot(ops->user, node->graph, slot++, fixed->storage, fixed->bytes));
    }
    return RONDO_OK;
}

static rondo_status record_capture(recording *r) {
    rondo_tree *tree = r->call->tree;
    const rondo_graph_ops *ops = &tree->ops;
    rondo__tree_node *node = r->node;
    RONDO__TRY(ops->create_graph(ops->user, r->call->function->name, &node->graph));
    RONDO__TRY(record_declare_slots(r));
    if (ops->prepare_for_capture) RONDO__TRY(ops->prepare_for_capture(ops->user, true, true));
    rondo_status status =
        tree->host.enter ? tree->host.enter(tree->host.user, RONDO_TREE_RECORD, tree->stream) : RONDO_OK;
    if (status) {
        if (ops->prepare_for_capture) RONDO__IGNORE(ops->prepare_for_capture(ops->user, true, false));
        return status;
    }
    status = record_run(r);
    status = rondo__status_first(status, record_leave(tree));
    if (!status && !node->facts.nodes) {
        /* Only views and bookkeeping: there is nothing to replay. */
        ops->release_graph(ops->user, node->graph);
        node->graph = NULL;
        node->facts.bytes = 0;
    }
    return status;
}

/* A graph that cannot be bound keeps the addresses that it was recorded with; the next recording copies. */
static void record_fix_bound(recording *r) {
    rondo__tree_node *node = r->node;
    uint32_t kept = 0;
    if (!node->facts.fixed) return;
    for (uint32_t i = 0; i < node->moving_count; i++) {
        const rondo__tree_moving *moving = &node->moving[i];
        if (!moving->bound) {
            node->moving[kept++] = *moving;
            continue;
        }
        node->fixed[node->fixed_count++] = (rondo__tree_fixed){.pointer = moving->destination, .index = moving->index};
        r->call->function->copy_inputs = true;
        rondo__tree_count(r->call->function, RONDO_TREE_REASON_BIND_FIXED);
    }
    node->moving_count = kept;
}

/* --------------------------------------------------------------------------------------------------- liveness */

/* Notes which outputs of the path are alive before the model runs; those that are over and were not known to be are
 * what a replay has to find over, too. */
static rondo_status record_before(recording *r) {
    rondo_tree *tree = r->call->tree;
    rondo__buffer *found = &tree->pointer_list;
    found->count = 0;
    rondo__tree_mark_dead(tree, tree->current);
    for (rondo__tree_node *node = tree->current; node; node = node->parent) {
        for (uint32_t i = 0; node->group && i < node->group->count; i++) {
            rondo_tree_lease *lease = &node->group->leases[i];
            uint64_t word = (uint64_t)(uintptr_t)lease;
            lease->listed = rondo__tree_live(tree, lease);
            if (!lease->listed && lease->mark != (uint32_t)tree->mark)
                RONDO__TRY(rondo__buffer_append(found, &word, 1));
        }
    }
    return rondo__tree_take_leases(tree, &r->node->dead_before, &r->node->dead_before_count);
}

static rondo_status record_after(recording *r) {
    rondo_tree *tree = r->call->tree;
    rondo__buffer *found = &tree->pointer_list;
    found->count = 0;
    for (rondo__tree_node *node = tree->current; node; node = node->parent) {
        for (uint32_t i = 0; node->group && i < node->group->count; i++) {
            rondo_tree_lease *lease = &node->group->leases[i];
            uint64_t word = (uint64_t)(uintptr_t)lease;
            if (lease->listed && !rondo__tree_live(tree, lease)) RONDO__TRY(rondo__buffer_append(found, &word, 1));
        }
    }
    return rondo__tree_take_leases(tree, &r->node->dead_after, &r->node->dead_after_count);
}

rondo_status rondo__tree_take_leases(rondo_tree *tree, rondo_tree_lease ***out_leases, uint32_t *out_count) {
    const rondo__buffer *found = &tree->pointer_list;
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_array(&tree->allocator, found->count, sizeof(rondo_tree_lease *), &memory));
    rondo_tree_lease **leases = memory;
    for (size_t i = 0; i < found->count; i++) {
        leases[i] = (rondo_tree_lease *)(uintptr_t)*RONDO__BUFFER_AT(found, uint64_t, i);
    }
    *out_leases = leases;
    *out_count = (uint32_t)found->count;
    return RONDO_OK;
}

/* Inputs that the recording may let die: not those that its outputs are on. */
static void record_list_consumed(recording *r) {
    rondo__tree_node *node = r->node;
    for (uint32_t i = 0; i < node->revival_count; i++) {
        bool needed = false;
        for (uint32_t k = 0; k < node->output_count; k++) {
            needed = needed || (node->outputs[k].kind == RONDO_TREE_OUTPUT_PATH &&
                                node->outputs[k].lease == node->revivals[i].lease);
        }
        if (!needed) node->consumed[node->consumed_count++] = node->revivals[i].index;
    }
}

/* ----------------------------------------------------------------------------------------------------- finish */

/* The graph has been recorded: the node is made of what is known of it, hung up, and replayed once, when nothing else can
 * fail any more. */
static rondo_status record_finish(recording *r) {
    rondo__tree_call *call = r->call;
    rondo_tree *tree = call->tree;
    const rondo_graph_ops *ops = &tree->ops;
    rondo__tree_node *node = r->node;
    record_fix_bound(r);
    RONDO__TRY(rondo__tree_take_outputs(call, node, r->facts));
    /* First the layout, then who is alive: who dies in between is freed when the layout comes back. */
    RONDO__TRY(ops->get_checkpoint_state(ops->user, tree->pool, &node->checkpoint));
    RONDO__TRY(record_after(r));
    record_list_consumed(r);
    node->host_bytes = sizeof *node + node->facts.bytes +
                       call->input_count * (sizeof *node->fixed + sizeof *node->moving + sizeof *node->copies +
                                            sizeof *node->values + sizeof *node->revivals + sizeof *node->consumed) +
                       node->output_count * sizeof *node->outputs +
                       (node->dead_before_count + node->dead_after_count) * sizeof(rondo_tree_lease *) +
                       node->fresh_count * sizeof(rondo_tree_lease);
    RONDO__TRY(rondo__tree_attach(tree, node));
    r->launched = true;
    return node->graph ? ops->replay(ops->user, node->graph, call->stream) : RONDO_OK;
}

static void record_log(const rondo__tree_call *call) {
    static const char *const modes[] = {"inference", "forward", "backward"};
    bool again = call->reason != RONDO_TREE_REASON_FIRST;
    rondo__log_write(call->tree->log, RONDO_LOG_DEBUG, "trees: %s function=%u '%s', mode=%s, cuda_graph_id=%llu%s%s",
                     again ? "Re-recording" : "Recording", call->function->id, call->function->name,
                     modes[call->function->mode], (unsigned long long)call->tree->nodes, again ? ", reason=" : "",
                     again ? rondo_tree_reason_text(call->reason) : "");
}

static rondo_status record_try(recording *r) {
    rondo__tree_call *call = r->call;
    rondo_tree *tree = call->tree;
    RONDO__TRY(rondo__tree_open_pool(tree));
    RONDO__TRY(record_create_node(call, &r->node));
    RONDO__TRY(rondo__tree_apply_checkpoint(tree));
    for (uint32_t i = 0; i < call->input_count; i++) RONDO__TRY(record_plan_input(r, i));
    RONDO__TRY(rondo__tree_order(tree, call->stream));
    RONDO__TRY(record_before(r));
    RONDO__TRY(record_give_inputs(r));
    RONDO__TRY(record_capture(r));
    return record_finish(r);
}

/* The call as it was before, and directly. */
static rondo_status record_fall_back(recording *r, rondo_status failure) {
    rondo__tree_call *call = r->call;
    rondo_tree *tree = call->tree;
    rondo__tree_function *function = call->function;
    if (r->made) rondo__tree_release_all(tree, call->outputs, call->output_count);
    rondo__tree_release_all(tree, r->given, call->input_count);
    rondo__tree_release_all(tree, call->held, call->held_count);
    rondo_status status = r->node && !r->launched ? rondo__tree_revive(call, r->node) : RONDO_OK;
    if (r->launched) rondo__tree_drop_node(tree, r->node);
    else if (r->node) rondo__tree_free_node(tree, r->node);
    r->node = NULL;
    if (!status) status = rondo__tree_leave_rest(tree);
    if (status || r->launched) {
        rondo__tree_release_all(tree, call->inputs, call->input_count);
        return r->launched ? rondo__status_first(failure, status) : rondo__status_first(status, failure);
    }
    bool memory = rondo_status_code(failure) == RONDO_CODE_OUT_OF_MEMORY;
    if (!memory || ++function->failures >= 3) {
        rondo__tree_function_stop(tree, function, RONDO_TREE_REASON_REJECTED, rondo_status_message(failure));
    }
    rondo_status_release(failure);
    return rondo__tree_direct(call, RONDO_TREE_REASON_REJECTED);
}

static rondo_status record_done(recording *r, uint64_t spent) {
    rondo__tree_call *call = r->call;
    rondo_tree *tree = call->tree;
    rondo_tree_function_info *info = &call->function->info;
    bool untracked = r->node->untracked;
    tree->current = r->node;
    tree->state = RONDO_TREE_RECORDING;
    r->node->last_used = tree->runs;
    r->node->runs = 1;
    r->node->record_ns = spent;
    if (!info->record_ns || spent < info->record_ns) info->record_ns = spent;
    info->records++;
    tree->info.records++;
    rondo__tree_count(call->function, call->reason);
    rondo__tree_release_all(tree, call->inputs, call->input_count);
    if (untracked) rondo__tree_leave_untracked(call);
    return rondo__tree_own_outputs(call);
}

rondo_status rondo__tree_record(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    recording r = {.call = call};
    rondo_tree_reason reason = RONDO_TREE_REASON_NONE;
    void *given = NULL;
    rondo_status status = rondo__tree_describe(call, &r.facts, &reason);
    if (!status && !reason)
        status = rondo__allocate_array(&tree->allocator, call->input_count, 2u * sizeof(void *), &given);
    r.given = given;
    call->held = given ? r.given + call->input_count : NULL;
    call->held_count = given ? call->input_count : 0;
    if (!status && !reason) {
        record_log(call);
        uint64_t before = rondo__tree_now(tree);
        status = record_try(&r);
        if (!status) status = record_done(&r, rondo__tree_now(tree) - before);
        else status = record_fall_back(&r, status);
    } else if (reason) {
        call->size->refusal = reason;
        status = rondo__tree_direct(call, reason);
    } else {
        rondo__tree_release_all(tree, call->inputs, call->input_count);
    }
    rondo__free(&tree->allocator, given, call->input_count * 2u * sizeof(void *));
    rondo__tree_free_facts(call, r.facts);
    return status;
}
