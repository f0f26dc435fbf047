/* SPDX-License-Identifier: Apache-2.0
 *
 * See simple.h. The first call makes a copy of each input that may move, warms up on a side stream, records, and replays;
 * later calls copy and replay. What the one recording cannot serve (another size, a static input elsewhere) is called
 * directly, and counted with its reason. */
#include "tree/simple.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------------------- life */

void rondo__tree_simple_drop(rondo_tree *tree, rondo__tree_function *function) {
    const rondo_tensor_host *host = &tree->host;
    rondo__tree_simple *s = function->simple_state;
    const uint32_t inputs = function->input_count, outputs = function->output_count;
    if (!s) return;
    /* The graph first: it waits for its last replay, and what it mentions may go then. */
    if (s->graph) tree->ops.release_graph(tree->ops.user, s->graph);
    if (s->outputs) rondo__tree_release_all(tree, s->outputs, outputs);
    if (s->buffers) rondo__tree_release_all(tree, s->buffers, inputs);
    for (uint32_t i = 0; i < s->moving_count; i++) {
        if (s->moving[i].metadata) host->drop(host->user, s->moving[i].metadata);
    }
    if (s->pool.automatic || s->pool.user) RONDO__IGNORE(tree->ops.release_pool(tree->ops.user, s->pool));
    s->size->recordings = 0;
    rondo__free(&tree->allocator, s->buffers, inputs * sizeof *s->buffers);
    rondo__free(&tree->allocator, s->outputs, outputs * sizeof *s->outputs);
    rondo__free(&tree->allocator, s->written, outputs * sizeof *s->written);
    rondo__free(&tree->allocator, s->fixed, inputs * sizeof *s->fixed);
    rondo__free(&tree->allocator, s->moving, inputs * sizeof *s->moving);
    rondo__free(&tree->allocator, s->values, inputs * sizeof *s->values);
    rondo__free(&tree->allocator, s->copies, inputs * sizeof *s->copies);
    rondo__free(&tree->allocator, s, sizeof *s);
    function->simple_state = NULL;
}

uint32_t rondo__tree_simple_recorded(const rondo__tree_function *function) {
    return rondo__tree_simple_of(function) != NULL; /* nobody looks in the middle of a call */
}

static rondo_status simple_array(const rondo__tree_call *call, uint32_t count, size_t size, void *out_pointer) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_array(&call->tree->allocator, count, size, &memory));
    memcpy(out_pointer, &memory, sizeof memory);
    return RONDO_OK;
}

/* What there is of it stands in the function, so that drop finds it. */
static rondo_status simple_create(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    const rondo_graph_ops *ops = &tree->ops;
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(&tree->allocator, sizeof(rondo__tree_simple), &memory));
    rondo__tree_simple *s = memory;
    call->function->simple_state = s;
    s->size = call->size;
    RONDO__TRY(simple_array(call, call->input_count, sizeof *s->buffers, &s->buffers));
    RONDO__TRY(simple_array(call, call->output_count, sizeof *s->outputs, &s->outputs));
    RONDO__TRY(simple_array(call, call->output_count, sizeof *s->written, &s->written));
    RONDO__TRY(simple_array(call, call->input_count, sizeof *s->fixed, &s->fixed));
    RONDO__TRY(simple_array(call, call->input_count, sizeof *s->moving, &s->moving));
    RONDO__TRY(simple_array(call, call->input_count, sizeof *s->values, &s->values));
    RONDO__TRY(simple_array(call, call->input_count, sizeof *s->copies, &s->copies));
    if (!tree->stream) RONDO__TRY(ops->create_stream(ops->user, &tree->stream));
    rondo_pool_id pool = {0, 0};
    RONDO__TRY(ops->graph_pool_handle(ops->user, &pool));
    /* Begins for good: the use stays until the function goes. */
    RONDO__TRY(ops->begin_allocate_current_thread_to_pool(ops->user, pool));
    s->pool = pool;
    return ops->end_allocate_to_pool(ops->user, pool);
}

/* ----------------------------------------------------------------------------------------------------- inputs */

static rondo_status simple_make_buffer(rondo__tree_call *call, rondo__tree_simple *s, uint32_t index,
                                       const rondo_tensor_facts *input) {
    const rondo_tensor_host *host = &call->tree->host;
    rondo_tensor_facts facts = {0};
    RONDO__TRY(host->make_input(host->user, call->inputs[index], call->tree->stream, &s->buffers[index]));
    RONDO__TRY(host->describe(host->user, s->buffers[index], &facts));
    if (facts.bytes != input->bytes) {
        return RONDO__FAIL(INTERNAL, TREE, "the host made a buffer of %llu bytes for input %u, which has %llu",
                           (unsigned long long)facts.bytes, index, (unsigned long long)input->bytes);
    }
    rondo__tree_moving *moving = &s->moving[s->moving_count];
    *moving = (rondo__tree_moving){.destination = facts.pointer, .bytes = facts.bytes, .index = index};
    RONDO__TRY(host->keep(host->user, s->buffers[index], false, &moving->metadata));
    s->moving_count++;
    if (!s->low || facts.pointer < s->low) s->low = facts.pointer;
    if (facts.pointer + facts.bytes > s->high) s->high = facts.pointer + facts.bytes;
    return RONDO_OK;
}

static rondo_status simple_plan_input(rondo__tree_call *call, rondo__tree_simple *s, uint32_t index,
                                      const rondo_tensor_facts *facts) {
    if (facts->place == RONDO_TENSOR_HOST && facts->pointer && facts->bytes) {
        rondo__tree_value *value = &s->values[s->value_count++];
        value->index = index;
        value->bytes = (uint32_t)facts->bytes;
        memcpy(value->data, (const void *)(uintptr_t)facts->pointer, facts->bytes);
        return RONDO_OK;
    }
    if (facts->place != RONDO_TENSOR_DEVICE || !facts->pointer || !facts->storage_bytes) return RONDO_OK;
    if (!call->function->is_static[index]) return simple_make_buffer(call, s, index, facts);
    s->fixed[s->fixed_count++] = (rondo__tree_fixed){facts->pointer, facts->storage, facts->storage_bytes, index, 0};
    return RONDO_OK;
}

static rondo_status simple_plan(rondo__tree_call *call, const rondo_tensor_facts *facts) {
    const rondo_graph_ops *ops = &call->tree->ops;
    rondo__tree_simple *s = call->function->simple_state;
    rondo_status status = RONDO_OK;
    RONDO__TRY(ops->begin_allocate_current_thread_to_pool(ops->user, s->pool));
    for (uint32_t i = 0; i < call->input_count && !status; i++) status = simple_plan_input(call, s, i, &facts[i]);
    status = rondo__status_first(status, ops->end_allocate_to_pool(ops->user, s->pool));
    return rondo__status_first(status, ops->release_pool(ops->user, s->pool));
}

static bool simple_overlaps(const rondo__tree_moving *moving, uint64_t pointer, uint64_t bytes) {
    return pointer < moving->destination + moving->bytes && moving->destination < pointer + bytes;
}

/* An output may lie on a static copy, and come back as an input: copies would then read what others have written. Such
 * inputs move out of the way first. */
static rondo_status simple_clear_way(rondo__tree_call *call, rondo__tree_simple *s, void *stream) {
    rondo_tree *tree = call->tree;
    const rondo_tensor_host *host = &tree->host;
    bool moved = false;
    for (uint32_t i = 0; i < s->moving_count; i++) {
        const rondo__tree_moving *to = &s->moving[i];
        const uint64_t source = tree->pointers[to->index];
        bool own = false;
        void *copy = NULL;
        if (source >= s->high || source + to->bytes <= s->low || source == to->destination) continue;
        for (uint32_t k = 0; k < s->moving_count && !own; k++) own = simple_overlaps(&s->moving[k], source, to->bytes);
        if (!own) continue;
        RONDO__TRY(host->own(host->user, stream, call->inputs[to->index], &copy));
        host->release(host->user, &call->inputs[to->index], 1);
        call->inputs[to->index] = copy;
        moved = true;
    }
    if (!moved || host->facts(host->user, call->inputs, call->input_count, tree->pointers, tree->words))
        return RONDO_OK;
    return RONDO__FAIL(INTERNAL, TREE, "an input that was copied cannot be used");
}

static rondo_status simple_copy_inputs(rondo__tree_call *call, rondo__tree_simple *s, void *stream) {
    rondo_tree *tree = call->tree;
    uint64_t count = 0;
    RONDO__TRY(simple_clear_way(call, s, stream));
    for (uint32_t i = 0; i < s->moving_count; i++) {
        const rondo__tree_moving *moving = &s->moving[i];
        const uint64_t source = tree->pointers[moving->index];
        if (source == moving->destination) continue;
        s->copies[count++] = (rondo_tree_copy){moving->destination, source, moving->bytes, call->inputs[moving->index],
                                               moving->metadata};
    }
    if (!count) return RONDO_OK;
    call->function->info.copies += s->runs ? count : 0; /* those before a replay */
    return tree->host.copy_inputs ? tree->host.copy_inputs(tree->host.user, stream, s->copies, count)
                                  : tree->ops.copy(tree->ops.user, stream, s->copies, count);
}

/* What the model is given: the copies, and the rest as it is. */
static void simple_give(const rondo__tree_call *call, const rondo__tree_simple *s, void **given) {
    const rondo_tensor_host *host = &call->tree->host;
    for (uint32_t i = 0; i < call->input_count; i++) {
        void *tensor = s->buffers[i] ? s->buffers[i] : call->inputs[i];
        given[i] = tensor ? host->retain(host->user, tensor) : NULL;
    }
}

/* ------------------------------------------------------------------------------------------- warm-up, recording */

static rondo_status simple_enter(rondo_tree *tree, rondo_tree_phase phase) {
    const rondo_graph_ops *ops = &tree->ops;
    const bool records = phase == RONDO_TREE_RECORD;
    if (ops->prepare_for_capture) RONDO__TRY(ops->prepare_for_capture(ops->user, records, true));
    rondo_status status = tree->host.enter ? tree->host.enter(tree->host.user, phase, tree->stream) : RONDO_OK;
    if (status && ops->prepare_for_capture) RONDO__IGNORE(ops->prepare_for_capture(ops->user, records, false));
    return status;
}

static rondo_status simple_leave(rondo_tree *tree, rondo_tree_phase phase) {
    const rondo_graph_ops *ops = &tree->ops;
    if (tree->host.leave) tree->host.leave(tree->host.user, phase);
    return ops->prepare_for_capture ? ops->prepare_for_capture(ops->user, phase == RONDO_TREE_RECORD, false) : RONDO_OK;
}

static rondo_status simple_run_model(rondo__tree_call *call, rondo_tree_phase phase, void **given) {
    rondo_tree *tree = call->tree;
    rondo_tree_run_context context = {sizeof context,        phase,       tree, call->function->id, 0,
                                      call->function->model, tree->stream};
    simple_give(call, call->function->simple_state, given);
    return tree->host.run(tree->host.user, &context, given, call->input_count, call->outputs, call->output_count);
}

/* Its outputs are nobody's. What it leaves behind in the pool is there for the recording. */
static rondo_status simple_warm_up(rondo__tree_call *call, void **given) {
    rondo_tree *tree = call->tree;
    const rondo_graph_ops *ops = &tree->ops;
    const rondo__tree_simple *s = call->function->simple_state;
    rondo_tree_function_info *info = &call->function->info;
    RONDO__TRY(simple_enter(tree, RONDO_TREE_WARMUP));
    rondo_status status = ops->begin_allocate_current_thread_to_pool(ops->user, s->pool);
    if (!status) {
        const uint64_t before = rondo__tree_now(tree);
        status = simple_run_model(call, RONDO_TREE_WARMUP, given);
        const uint64_t spent = rondo__tree_now(tree) - before;
        if (!status) {
            rondo__tree_release_all(tree, call->outputs, call->output_count);
            if (!info->warmup_ns || spent < info->warmup_ns) info->warmup_ns = spent;
        }
        status = rondo__status_first(status, ops->end_allocate_to_pool(ops->user, s->pool));
        status = rondo__status_first(status, ops->release_pool(ops->user, s->pool));
    }
    status = rondo__status_first(status, simple_leave(tree, RONDO_TREE_WARMUP));
    if (status) return status;
    info->warmups++;
    tree->info.warmups++;
    return RONDO_OK;
}

static rondo_status simple_check_outputs(const rondo__tree_call *call) {
    const rondo_tensor_host *host = &call->tree->host;
    for (uint32_t i = 0; i < call->output_count; i++) {
        rondo_tensor_facts facts = {0};
        if (!call->outputs[i]) continue;
        RONDO__TRY(host->describe(host->user, call->outputs[i], &facts));
        if (facts.place == RONDO_TENSOR_NONE || facts.place == RONDO_TENSOR_DEVICE || !facts.bytes) continue;
        return RONDO__FAIL(UNSUPPORTED, TREE,
                           "output %u of '%s' lies %s, where a recording cannot write it: expected all outputs of a "
                           "recording on its device",
                           i, call->function->name,
                           facts.place == RONDO_TENSOR_HOST ? "in host memory" : "on another device");
    }
    return RONDO_OK;
}

/* Static inputs, by their storages: compared at each replay, so that the device has nothing to watch. */
static rondo_status simple_declare_slots(const rondo__tree_call *call) {
    const rondo_graph_ops *ops = &call->tree->ops;
    const rondo__tree_simple *s = call->function->simple_state;
    uint32_t slot = 0;
    for (uint32_t i = 0; i < s->fixed_count && ops->declare_slot; i++) {
        bool declared = false;
        for (uint32_t k = 0; k < i && !declared; k++) declared = s->fixed[k].storage == s->fixed[i].storage;
        if (declared) continue;
        RONDO__TRY(ops->declare_slot(ops->user, s->graph, slot++, s->fixed[i].storage, s->fixed[i].bytes));
    }
    return RONDO_OK;
}

static rondo_status simple_capture(rondo__tree_call *call, void **given) {
    rondo_tree *tree = call->tree;
    const rondo_graph_ops *ops = &tree->ops;
    rondo__tree_simple *s = call->function->simple_state;
    RONDO__TRY(ops->create_graph(ops->user, call->function->name, &s->graph));
    RONDO__TRY(simple_declare_slots(call));
    RONDO__TRY(simple_enter(tree, RONDO_TREE_RECORD));
    rondo_status status =
        ops->capture_begin(ops->user, s->graph, tree->stream, s->pool, RONDO_CAPTURE_MODE_THREAD_LOCAL);
    if (!status) {
        status = simple_run_model(call, RONDO_TREE_RECORD, given);
        bool made = !status;
        if (!status) status = ops->capture_end(ops->user, s->graph, tree->stream, &s->facts);
        if (status) ops->abort(ops->user, s->graph);
        if (!status) status = simple_check_outputs(call);
        if (status && made) rondo__tree_release_all(tree, call->outputs, call->output_count);
    }
    bool kept = !status;
    status = rondo__status_first(status, simple_leave(tree, RONDO_TREE_RECORD));
    if (status && kept) rondo__tree_release_all(tree, call->outputs, call->output_count);
    return status;
}

/* A static input that is handed out is the caller's, who knows when it changes. */
static bool simple_writes(const rondo__tree_call *call, void *output) {
    const rondo_tensor_host *host = &call->tree->host;
    const rondo__tree_simple *s = call->function->simple_state;
    rondo_tensor_facts facts = {0};
    rondo_status status = output ? host->describe(host->user, output, &facts) : RONDO_OK;
    rondo_status_release(status);
    bool writes = !status && facts.place == RONDO_TENSOR_DEVICE;
    for (uint32_t i = 0; writes && i < s->fixed_count; i++) writes = s->fixed[i].storage != facts.storage;
    return writes;
}

/* The recording's outputs are kept from now on. */
static void simple_keep(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    rondo__tree_simple *s = call->function->simple_state;
    for (uint32_t i = 0; i < call->output_count; i++) {
        s->outputs[i] = call->outputs[i];
        call->outputs[i] = NULL;
        if (simple_writes(call, s->outputs[i])) s->written[s->written_count++] = s->outputs[i];
    }
    if (!s->facts.nodes) {
        tree->ops.release_graph(tree->ops.user, s->graph);
        s->graph = NULL;
    }
    s->size->recordings = 1;
}

/* ------------------------------------------------------------------------------------------------------- runs */

/* Whether the recording serves the call. */
static rondo_tree_reason simple_fits(const rondo__tree_call *call, const rondo__tree_simple *s) {
    const uint64_t *pointers = call->tree->pointers;
    if (call->size != s->size) return RONDO_TREE_REASON_SIZE_LIMIT;
    for (uint32_t i = 0; i < s->fixed_count; i++) {
        if (pointers[s->fixed[i].index] != s->fixed[i].pointer) return RONDO_TREE_REASON_STATIC_MOVED;
    }
    for (uint32_t i = 0; i < s->value_count; i++) {
        const rondo__tree_value *value = &s->values[i];
        const void *now = (const void *)(uintptr_t)pointers[value->index];
        if (!now || memcmp(now, value->data, value->bytes) != 0) return RONDO_TREE_REASON_VALUE_CHANGED;
    }
    return RONDO_TREE_REASON_NONE;
}

/* Launches, and hands out the kept outputs. The inputs have been copied. */
static rondo_status simple_launch(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    const rondo_tensor_host *host = &tree->host;
    rondo__tree_simple *s = call->function->simple_state;
    if (s->graph) RONDO__TRY(tree->ops.replay(tree->ops.user, s->graph, call->stream));
    if (host->overwritten && s->written_count) host->overwritten(host->user, s->written, s->written_count);
    for (uint32_t i = 0; i < call->output_count; i++) {
        call->outputs[i] = s->outputs[i] ? host->retain(host->user, s->outputs[i]) : NULL;
    }
    s->runs++;
    return RONDO_OK;
}

static rondo_status simple_replay(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    rondo__tree_simple *s = call->function->simple_state;
    rondo_tree_function_info *info = &call->function->info;
    const bool timed = s->samples < tree->options.cost_samples;
    const uint64_t before = timed ? rondo__tree_now(tree) : 0;
    rondo_status status = rondo__tree_order(tree, call->stream);
    if (!status) status = simple_copy_inputs(call, s, call->stream);
    if (!status) status = simple_launch(call);
    rondo__tree_release_all(tree, call->inputs, call->input_count);
    if (status) return status;
    info->replays++;
    tree->info.replays++;
    if (timed) {
        const uint64_t spent = rondo__tree_now(tree) - before;
        s->samples++;
        if (!s->replay_ns || spent < s->replay_ns) s->replay_ns = spent;
        if (!info->replay_ns || spent < info->replay_ns) info->replay_ns = spent;
    }
    return call->function->owned_count ? rondo__tree_own_outputs(call) : RONDO_OK;
}

/* *out_warm: it is the model itself that failed, outside any capture. */
static rondo_status simple_record(rondo__tree_call *call, const rondo_tensor_facts *facts, void **given,
                                  bool *out_warm) {
    rondo_tree *tree = call->tree;
    const rondo_graph_ops *ops = &tree->ops;
    *out_warm = false;
    RONDO__TRY(simple_create(call));
    RONDO__TRY(rondo__tree_order(tree, call->stream));
    RONDO__TRY(simple_plan(call, facts));
    /* The buffers are of the tree's stream, and so is the first work on them. */
    RONDO__TRY(ops->stream_wait(ops->user, tree->stream, call->stream));
    RONDO__TRY(simple_copy_inputs(call, call->function->simple_state, tree->stream));
    if (tree->options.record_after > 1) {
        *out_warm = true;
        RONDO__TRY(simple_warm_up(call, given));
        *out_warm = false;
    }
    const uint64_t before = rondo__tree_now(tree);
    RONDO__TRY(simple_capture(call, given));
    simple_keep(call);
    RONDO__TRY(ops->stream_wait(ops->user, call->stream, tree->stream));
    RONDO__TRY(simple_launch(call));
    rondo__tree_simple *s = call->function->simple_state;
    s->record_ns = rondo__tree_now(tree) - before;
    return RONDO_OK;
}

/* The inputs' memory is the caller's stream's again: what still reads it on the side stream comes first. */
static void simple_settle(rondo__tree_call *call) {
    const rondo_graph_ops *ops = &call->tree->ops;
    if (!call->tree->stream) return;
    rondo_status order = ops->stream_wait(ops->user, call->stream, call->tree->stream);
    if (order) RONDO__IGNORE(ops->synchronize(ops->user, call->tree->stream));
    rondo_status_release(order);
}

/* Nothing of the recording is left; the call is made with its inputs as they were. */
static rondo_status simple_fall_back(rondo__tree_call *call, rondo_status failure) {
    rondo__tree_function *function = call->function;
    rondo__tree_simple_drop(call->tree, function);
    const bool memory = rondo_status_code(failure) == RONDO_CODE_OUT_OF_MEMORY;
    if (!memory || ++function->failures >= 3) {
        rondo__tree_function_stop(call->tree, function, RONDO_TREE_REASON_REJECTED, rondo_status_message(failure));
    }
    rondo_status_release(failure);
    return rondo__tree_direct(call, RONDO_TREE_REASON_REJECTED);
}

static rondo_status simple_finish(rondo__tree_call *call) {
    const rondo__tree_simple *s = call->function->simple_state;
    rondo_tree_function_info *info = &call->function->info;
    if (!info->record_ns || s->record_ns < info->record_ns) info->record_ns = s->record_ns;
    info->records++;
    call->tree->info.records++;
    rondo__tree_count(call->function, RONDO_TREE_REASON_FIRST);
    rondo__tree_release_all(call->tree, call->inputs, call->input_count);
    return rondo__tree_own_outputs(call);
}

static rondo_status simple_first(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    rondo_tensor_facts *facts = NULL;
    rondo_tree_reason reason = RONDO_TREE_REASON_NONE;
    void *given = NULL;
    bool warm = false;
    rondo_status status = rondo__tree_describe(call, &facts, &reason);
    if (!status && !reason) status = rondo__allocate_array(&tree->allocator, call->input_count, sizeof(void *), &given);
    if (status) {
        rondo__tree_release_all(tree, call->inputs, call->input_count);
    } else if (reason) {
        call->size->refusal = reason;
        status = rondo__tree_direct(call, reason);
    } else {
        status = simple_record(call, facts, given, &warm);
        if (status) simple_settle(call);
        if (!status) {
            status = simple_finish(call);
        } else if (warm) {
            rondo__tree_simple_drop(tree, call->function);
            rondo__tree_release_all(tree, call->inputs, call->input_count);
        } else {
            status = simple_fall_back(call, status);
        }
    }
    rondo__free(&tree->allocator, given, call->input_count * sizeof(void *));
    rondo__tree_free_facts(call, facts);
    return status;
}

rondo_status rondo__tree_simple_run(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    rondo__tree_function *function = call->function;
    /* Warming up and recording would write twice what one call writes once. */
    if (function->mutated_count) {
        rondo__tree_function_stop(tree, function, RONDO_TREE_REASON_MUTATED, "the simple path takes no mutated inputs");
    }
    if (function->stopped) return rondo__tree_direct(call, function->stopped);
    rondo_status status = rondo__tree_find_size(call);
    if (status) {
        rondo__tree_release_all(tree, call->inputs, call->input_count);
        return status;
    }
    call->size->last_used = ++tree->runs;
    const rondo__tree_simple *s = function->simple_state;
    rondo_tree_reason reason = s ? simple_fits(call, s) : RONDO_TREE_REASON_NONE;
    if (s && !reason) return simple_replay(call);
    call->size->seen++;
    if (reason) return rondo__tree_direct(call, reason);
    if (call->size->refusal) return rondo__tree_direct(call, call->size->refusal);
    if (tree->options.always_warm_up) return rondo__tree_direct(call, RONDO_TREE_REASON_WARMUP);
    return simple_first(call);
}
