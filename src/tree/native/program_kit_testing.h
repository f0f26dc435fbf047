/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs (program_testing.h) on arrays and a device of Rondo's: the same models, in terms of rondo_array. */
#ifndef RONDO_SRC_TREE_NATIVE_PROGRAM_KIT_TESTING_H
#define RONDO_SRC_TREE_NATIVE_PROGRAM_KIT_TESTING_H

#include <rondo/array.h>

#include "tree/program_run_testing.h"

typedef struct rn_model {
    rp_world *w;
    uint32_t index;
    rondo_array *kept[TH_LIST];
    uint32_t kept_count;
} rn_model;

typedef struct rn_device {
    rondo_device *device;
    rondo_stream *stream, *other, *side; /* stream and other change places */
    rondo_event *events[2];
    uint64_t *cell; /* of random numbers: seed, drawn */
    rn_model models[RP_FUNCTIONS];
    rondo_array_model given[RP_FUNCTIONS];
    rondo_tree_phase phase;
    rondo_status (*run)(void *user, const rondo_tree_run_context *context, void **inputs, uint32_t input_count,
                        void **outputs, uint32_t output_count);
} rn_device;

/* ----------------------------------------------------------------------------------------------------- kernels */

static inline int32_t rn_kernel_apply(const void *context, const uint64_t *words) {
    (void)context;
    th_kernel(NULL, words);
    return 0;
}

static inline int32_t rn_kernel_ramp(const void *context, const uint64_t *words) {
    uint32_t bits = (uint32_t)words[2];
    float first;
    (void)context;
    memcpy(&first, &bits, sizeof first);
    rp_ramp(md_memory(words[0]), (int64_t)words[1], first);
    return 0;
}

static inline int32_t rn_kernel_random(const void *context, const uint64_t *words) {
    (void)context;
    th_kernel_random(NULL, words);
    return 0;
}

static inline rondo_status rn_launch(rondo_stream *stream, rondo_kernel_function function, const char *name,
                                     const rondo_argument *arguments, uint32_t count) {
    rondo_call call = RONDO_CALL_INIT;
    call.kernel = (rondo_kernel){function, NULL};
    call.arguments = arguments;
    call.argument_count = count;
    call.name = name;
    return rondo_stream_launch(stream, &call);
}

static inline rondo_array_details rn_details(const rondo_array *x) {
    rondo_array_details details = RONDO_ARRAY_DETAILS_INIT;
    rondo_status_release(rondo_array_get_details(x, &details));
    return details;
}

static inline uint64_t rn_elements(const rondo_array_details *x) {
    uint64_t count = 1;
    for (int32_t i = 0; i < x->rank; i++) count *= (uint64_t)x->shape[i];
    return count;
}

static inline uint64_t rn_strides(const rondo_array_details *x) {
    return x->rank == 2 ? th_pair(x->strides[0], x->strides[1]) : th_pair(0, x->rank == 1 ? x->strides[0] : 0);
}

static inline rondo_status rn_address(const rondo_array *x, uint64_t *out_address) {
    void *data = NULL;
    RONDO__TRY(rondo_array_data(x, &data));
    *out_address = md_address(data);
    return RONDO_OK;
}

/* to = a (operation) b, or (operation) scalar where b is null */
static inline rondo_status rn_apply(rondo_stream *stream, th_op operation, const rondo_array *to, const rondo_array *a,
                                    const rondo_array *b, float scalar) {
    const rondo_array_details d = rn_details(to), e = rn_details(a), f = rn_details(b ? b : a);
    uint64_t out = 0, left = 0, right = 0;
    uint32_t bits;
    RONDO__TRY(rn_address(to, &out));
    RONDO__TRY(rn_address(a, &left));
    if (b) RONDO__TRY(rn_address(b, &right));
    if (!rn_elements(&d)) return RONDO_OK;
    memcpy(&bits, &scalar, sizeof bits);
    const uint64_t form = d.rank == 2 ? th_pair(d.shape[0], d.shape[1]) : th_pair(1, d.rank == 1 ? d.shape[0] : 1);
    const rondo_argument arguments[] = {{out, d.bytes, RONDO_ACCESS_BOTH, 0},
                                        {left, e.bytes, RONDO_ACCESS_READ, 0},
                                        {right, b ? f.bytes : 0, b ? RONDO_ACCESS_READ : RONDO_ACCESS_VALUE, 0},
                                        {form, 0, RONDO_ACCESS_VALUE, 0},
                                        {rn_strides(&d), 0, RONDO_ACCESS_VALUE, 0},
                                        {rn_strides(&e), 0, RONDO_ACCESS_VALUE, 0},
                                        {b ? rn_strides(&f) : 0, 0, RONDO_ACCESS_VALUE, 0},
                                        {th_pair(operation, bits), 0, RONDO_ACCESS_VALUE, 0}};
    return rn_launch(stream, rn_kernel_apply, "apply", arguments, 8);
}

static inline rondo_status rn_fill(rondo_stream *stream, const rondo_array *x, float first) {
    const rondo_array_details d = rn_details(x);
    uint64_t address = 0;
    uint32_t bits;
    RONDO__TRY(rn_address(x, &address));
    memcpy(&bits, &first, sizeof bits);
    const rondo_argument arguments[] = {{address, d.bytes, RONDO_ACCESS_WRITE, 0},
                                        {rn_elements(&d), 0, RONDO_ACCESS_VALUE, 0},
                                        {bits, 0, RONDO_ACCESS_VALUE, 0}};
    return rn_launch(stream, rn_kernel_ramp, "ramp", arguments, 3);
}

static inline rondo_status rn_random(rn_device *n, rondo_stream *stream, const rondo_array *x) {
    const rondo_array_details d = rn_details(x);
    uint64_t address = 0;
    RONDO__TRY(rn_address(x, &address));
    const rondo_argument arguments[] = {{address, d.bytes, RONDO_ACCESS_WRITE, 0},
                                        {rn_elements(&d), 0, RONDO_ACCESS_VALUE, 0},
                                        {md_address(n->cell), 16, RONDO_ACCESS_BOTH, 0}};
    return rn_launch(stream, rn_kernel_random, "random", arguments, 3);
}

/* ------------------------------------------------------------------------------------------------- the machine */

typedef struct rn_frame {
    rn_device *n;
    rn_model *m;
    const th_model *model;
    rondo_stream *stream;
    rondo_array *registers[TH_REGISTERS];
    rondo_array **outputs;
    uint32_t returned;
} rn_frame;

static inline rondo_status rn_compact_like(rondo_stream *stream, const rondo_array *like, rondo_array **out) {
    const rondo_array_details d = rn_details(like);
    return rondo_array_create(stream, RONDO_DTYPE_F32, d.rank, d.shape, out);
}

static inline rondo_status rn_alias(rondo_array *a, bool expand, int64_t index, rondo_array **out) {
    const rondo_array_details d = rn_details(a);
    int64_t shape[2] = {0}, strides[2] = {0};
    for (int32_t i = 0; i < d.rank; i++) shape[i] = d.shape[i], strides[i] = d.strides[i];
    if (!expand) {
        shape[d.rank - 1] -= index;
        return rondo_array_alias(a, d.rank, shape, strides, d.offset + (uint64_t)index, out);
    }
    shape[1] = shape[0];
    strides[1] = strides[0];
    shape[0] = index;
    strides[0] = 0;
    return rondo_array_alias(a, 2, shape, strides, d.offset, out);
}

static inline rondo_status rn_side(rn_frame *f, const rondo_array *a, float scalar, rondo_array **out) {
    rn_device *n = f->n;
    RONDO__TRY(rondo_event_record(n->events[0], f->stream));
    RONDO__TRY(rondo_event_wait(n->events[0], n->side));
    RONDO__TRY(rn_compact_like(n->side, a, out));
    RONDO__TRY(rn_apply(n->side, TH_ADD, *out, a, NULL, scalar));
    RONDO__TRY(rondo_event_record(n->events[1], n->side));
    return rondo_event_wait(n->events[1], f->stream);
}

static inline rondo_status rn_arithmetic(rn_frame *f, const th_step *s, rondo_array **out) {
    rondo_array *a = f->registers[s->a], *b = f->registers[s->b];
    float scalar = s->scalar;
    void *data = NULL;
    if (s->op == TH_ADDS_IN) return rn_apply(f->stream, TH_ADD, a, a, NULL, scalar);
    if (s->op == TH_COPY_IN) return rn_apply(f->stream, TH_END, a, a, b, 0);
    if (s->op == TH_ADDN) scalar = (float)rn_details(b).value;
    if (s->op == TH_ADDH) {
        RONDO__TRY(rondo_array_data(b, &data));
        memcpy(&scalar, data, sizeof scalar);
    }
    bool two = s->op == TH_ADD || s->op == TH_MUL, times = s->op == TH_MUL || s->op == TH_MULS;
    RONDO__TRY(rn_compact_like(f->stream, a, out));
    if (s->op == TH_RANDOM) return rn_random(f->n, f->stream, *out);
    return rn_apply(f->stream, times ? TH_MUL : TH_ADD, *out, a, two ? b : NULL, scalar);
}

static inline rondo_status rn_in_host(rondo_device *device, bool empty, float value, rondo_array **out) {
    const int64_t none = 0;
    void *data = NULL;
    RONDO__TRY(rondo_array_create_host(device, RONDO_DTYPE_F32, empty, &none, out));
    if (empty) return RONDO_OK;
    RONDO__TRY(rondo_array_data(*out, &data));
    memcpy(data, &value, sizeof value);
    return RONDO_OK;
}

static inline rondo_status rn_other(rn_frame *f, const th_step *s, rondo_array **out) {
    rn_device *n = f->n;
    rondo_array *a = f->registers[s->a];
    const int64_t none = 0;
    switch (s->op) {
    case TH_SAME:
    case TH_CONSTANT:
        *out = s->op == TH_SAME ? a : (rondo_array *)(void *)f->model->constants[s->index];
        rondo_array_retain(*out);
        return RONDO_OK;
    case TH_NUMBER: return rondo_array_create_value(n->device, (uint64_t)s->index, out);
    case TH_EMPTY:
        if (s->index) return rn_in_host(n->device, true, 0, out);
        return rondo_array_create(f->stream, RONDO_DTYPE_F32, 1, &none, out);
    case TH_HOST: return rn_in_host(n->device, false, s->scalar, out);
    case TH_DROP:
        rondo_array_release(a);
        f->registers[s->a] = NULL;
        return RONDO_OK;
    case TH_KEEP:
        rondo_array_retain(a);
        if (f->m->kept_count < TH_LIST) f->m->kept[f->m->kept_count++] = a;
        else rondo_array_release(a);
        return RONDO_OK;
    case TH_SYNC: return rondo_stream_synchronize(f->stream);
    case TH_BREAK:
        rondo_status_release(rondo_stream_synchronize(f->stream)); /* and nobody says so yet */
        return RONDO_OK;
    case TH_FAIL:
        if (!(s->index >> n->phase & 1)) return RONDO_OK;
        return RONDO__FAIL(KERNEL_FAILED, KERNEL, "%s fails on purpose", f->model->name);
    case TH_CALL: {
        void *input = a, *output = NULL;
        rondo_array_retain(a);
        rondo_tree_phase phase = n->phase;
        rondo_status status = rondo_tree_run(f->m->w->tree, f->m->w->ids[s->index], f->stream, &input, 1, &output, 1);
        n->phase = phase;
        *out = output;
        return status;
    }
    case TH_RETURN:
        if (a) rondo_array_retain(a);
        f->outputs[f->returned++] = a;
        return RONDO_OK;
    default: return RONDO_OK;
    }
}

static inline rondo_status rn_step(rn_frame *f, const th_step *s) {
    rondo_array *out = NULL;
    rondo_status status;
    if (s->op <= TH_ADDH || s->op == TH_RANDOM) status = rn_arithmetic(f, s, &out);
    else if (s->op == TH_SIDE) status = rn_side(f, f->registers[s->a], s->scalar, &out);
    else if (s->op == TH_VIEW || s->op == TH_EXPAND)
        status = rn_alias(f->registers[s->a], s->op == TH_EXPAND, s->index, &out);
    else status = rn_other(f, s, &out);
    if (status) {
        rondo_array_release(out);
        return status;
    }
    if (out || s->op == TH_NOTHING) {
        rondo_array_release(f->registers[s->out]);
        f->registers[s->out] = out;
    }
    return RONDO_OK;
}

static inline rondo_status rn_model_run(void *user, rondo_stream *stream, rondo_array **inputs, uint32_t input_count,
                                        rondo_array **outputs, uint32_t output_count) {
    rn_model *m = user;
    rn_frame f = {.n = m->w->native, .m = m, .model = &m->w->models[m->index], .stream = stream, .outputs = outputs};
    rondo_status status = RONDO_OK;
    (void)output_count;
    for (uint32_t i = 0; i < input_count; i++) {
        f.registers[i] = inputs[i];
        inputs[i] = NULL;
    }
    for (uint32_t i = 0; i < TH_STEPS && f.model->steps[i].op && !status; i++) status = rn_step(&f, &f.model->steps[i]);
    for (uint32_t i = 0; i < TH_REGISTERS; i++) rondo_array_release(f.registers[i]);
    return status;
}

/* Models are not told the phase, which those that fail on purpose want to know. */
static inline rondo_status rn_run(void *user, const rondo_tree_run_context *context, void **inputs,
                                  uint32_t input_count, void **outputs, uint32_t output_count) {
    const rondo_array_model *model = context->model;
    rn_device *n = ((rn_model *)model->user)->w->native;
    n->phase = context->phase;
    return n->run(user, context, inputs, input_count, outputs, output_count);
}

/* --------------------------------------------------------------------------------------------------------- kit */

static inline int64_t rn_generation(void *user) { return ((rp_world *)user)->host.generation; }

static inline rondo_status rn_open(rp_world *w, rn_device *n, const char *device, const char *settings) {
    rondo_instance_options instance = RONDO_INSTANCE_OPTIONS_INIT;
    void *memory = NULL;
    *n = (rn_device){.device = NULL};
    w->native = n;
    instance.allocator = &w->allocator;
    instance.ignore_plugin_path = 1;
    instance.log = w->print ? rp_log : NULL;
    instance.log_user = w;
    instance.log_level = RONDO_LOG_DEBUG;
    RONDO__TRY(rondo_instance_create(&instance, &w->instance));
    RONDO__TRY(rondo_device_open(w->instance, device, settings, &n->device));
    RONDO__TRY(rondo_stream_create(n->device, NULL, &n->stream));
    RONDO__TRY(rondo_stream_create(n->device, NULL, &n->other));
    RONDO__TRY(rondo_stream_create(n->device, NULL, &n->side));
    for (int i = 0; i < 2; i++) RONDO__TRY(rondo_event_create(n->device, &n->events[i]));
    RONDO__TRY(rondo_memory_allocate(n->device, 16, &memory));
    n->cell = memory;
    const uint64_t cell[2] = {w->memory->seed, 0};
    RONDO__TRY(rondo_stream_copy(n->stream, memory, cell, sizeof cell, RONDO_COPY_HOST_TO_DEVICE));
    w->stream = n->stream;
    return RONDO_OK;
}

static inline rondo_status rn_tables(rp_world *w) {
    rn_device *n = w->native;
    rondo_array_host_options host = RONDO_ARRAY_HOST_OPTIONS_INIT;
    const rp_options *o = &w->program->options;
    w->ops = (rondo_graph_ops)RONDO_GRAPH_OPS_INIT;
    w->table = (rondo_tensor_host)RONDO_TENSOR_HOST_INIT;
    host.serial = o->serial;
    if (!o->no_generation) host.generation = rn_generation;
    host.generation_user = w;
    RONDO__TRY(rondo_graph_ops_native(n->device, &w->ops));
    rondo_status status = rondo_tensor_host_native(n->device, &host, &w->table);
    if (status) {
        w->ops.destroy(w->ops.user);
        return status;
    }
    n->run = w->table.run;
    w->table.run = rn_run;
    if (o->children) w->ops.flags |= RONDO_GRAPH_OPS_CHILD_GRAPHS;
    if (o->flushes) w->table.flags |= RONDO_TENSOR_HOST_FLUSHES;
    return RONDO_OK;
}

static inline void rn_close(rp_world *w) {
    rn_device *n = w->native;
    uint64_t bytes = 0, count = 0;
    for (uint32_t i = 0; i < RP_FUNCTIONS; i++)
        while (n->models[i].kept_count) rondo_array_release(n->models[i].kept[--n->models[i].kept_count]);
    if (n->cell) {
        rondo_status_release(rondo_stream_synchronize(w->stream));
        rondo_status_release(rondo_memory_free(n->device, n->cell));
    }
    if (n->device) rondo_memory_usage(n->device, &bytes, &count);
    if (count) rp_fail(w, "%llu blocks of the device are left over", (unsigned long long)count);
    for (int i = 0; i < 2; i++) rondo_event_release(n->events[i]);
    rondo_stream_release(n->side);
    rondo_stream_release(n->other);
    rondo_stream_release(n->stream);
    rondo_device_release(n->device);
    rondo_instance_release(w->instance);
}

static inline void rn_set_model(rp_world *w, uint32_t index, rondo_tree_function *f) {
    rn_device *n = w->native;
    n->models[index].w = w;
    n->models[index].index = index;
    n->given[index] = (rondo_array_model){rn_model_run, &n->models[index]};
    f->model = &n->given[index];
}

static inline rondo_status rn_finish(rondo_status status, rondo_array *const *x, void **out) {
    if (status) rondo_array_release(*x);
    else *out = *x;
    return status;
}

static inline rondo_status rn_make(rp_world *w, int64_t count, float first, void **out) {
    rondo_array *x = NULL;
    RONDO__TRY(rondo_array_create(w->stream, RONDO_DTYPE_F32, 1, &count, &x));
    return rn_finish(count ? rn_fill(w->stream, x, first) : RONDO_OK, &x, out);
}

static inline rondo_status rn_wide(rp_world *w, void *row, void **out) {
    rondo_array *x = NULL;
    (void)w;
    return rn_finish(rn_alias(row, true, 2, &x), &x, out);
}

static inline rondo_status rn_view(rp_world *w, void *tensor, void **out) {
    rondo_array *x = NULL;
    (void)w;
    return rn_finish(rn_alias(tensor, false, 1, &x), &x, out);
}

static inline rondo_status rn_number(rp_world *w, int64_t value, void **out) {
    rondo_array *x = NULL;
    return rn_finish(rondo_array_create_value(((rn_device *)w->native)->device, (uint64_t)value, &x), &x, out);
}

static inline rondo_status rn_scalar(rp_world *w, float value, void **out) {
    rondo_array *x = NULL;
    return rn_finish(rn_in_host(((rn_device *)w->native)->device, false, value, &x), &x, out);
}

static inline rondo_status rn_empty(rp_world *w, void **out) { return rn_make(w, 0, 0, out); }

static inline rondo_status rn_add(rp_world *w, void *x, float scalar) {
    return rn_apply(w->stream, TH_ADD, x, x, NULL, scalar);
}

static inline rondo_status rn_fresh(rp_world *w, void *tensor, float scalar, void **out) {
    rondo_array *x = NULL;
    RONDO__TRY(rn_compact_like(w->stream, tensor, &x));
    return rn_finish(rn_apply(w->stream, TH_ADD, x, tensor, NULL, scalar), &x, out);
}

static inline rondo_status rn_resize(rp_world *w, void *x, float first) {
    RONDO__TRY(rondo_array_resize(x, w->stream, rn_details(x).storage_bytes + 64u));
    return rn_fill(w->stream, x, first);
}

static inline void *rn_keep(rp_world *w, void *x) {
    (void)w;
    rondo_array_retain(x);
    return x;
}

static inline void rn_drop(rp_world *w, void *x) {
    (void)w;
    rondo_array_release(x);
}

static inline void rn_look(rp_world *w, void *tensor, rp_look *out) {
    (void)w;
    *out = (rp_look){.kind = RR_NOTHING};
    if (!tensor) return;
    const rondo_array_details d = rn_details(tensor);
    out->kind = d.place == RONDO_TENSOR_NONE ? RR_NUMBER : d.place == RONDO_TENSOR_HOST ? RR_HOST : RR_DEVICE;
    out->number = (int64_t)d.value;
    out->rank = d.rank;
    for (int32_t i = 0; i < d.rank && i < TH_RANK; i++) out->shape[i] = d.shape[i], out->strides[i] = d.strides[i];
    out->storage = d.storage;
}

static inline rondo_status rn_usable(rp_world *w, void *x) {
    void *data = NULL;
    (void)w;
    return x && rn_details(x).place != RONDO_TENSOR_NONE ? rondo_array_data(x, &data) : RONDO_OK;
}

static inline rondo_status rn_read(rp_world *w, void *tensor, float *values) {
    static float bytes[RR_FLOATS];
    const rondo_array_details d = rn_details(tensor);
    const float *from = bytes;
    void *data = NULL;
    RONDO__TRY(rondo_array_data(tensor, &data));
    if (d.place == RONDO_TENSOR_HOST) {
        if (rn_elements(&d)) memcpy(bytes, data, d.bytes);
    } else if (d.bytes) {
        RONDO__TRY(rondo_stream_copy(w->stream, bytes, data, d.bytes, RONDO_COPY_DEVICE_TO_HOST));
        RONDO__TRY(rondo_stream_synchronize(w->stream));
    }
    int64_t rows = d.rank == 2 ? d.shape[0] : 1, columns = d.rank ? d.shape[d.rank - 1] : 1;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            *values++ = from[(d.rank == 2 ? r * d.strides[0] : 0) + c * (d.rank ? d.strides[d.rank - 1] : 0)];
    return RONDO_OK;
}

static inline void rn_turn(rp_world *w) {
    rn_device *n = w->native;
    rondo_stream *stream = n->stream;
    n->stream = n->other;
    n->other = stream;
    w->stream = n->stream;
}

static inline rondo_status rn_order(rp_world *w) {
    rn_device *n = w->native;
    RONDO__TRY(rondo_event_record(n->events[0], n->other));
    return rondo_event_wait(n->events[0], n->stream);
}

/* Arrays that live on memory of trees: those of the slots, and those that models kept. */
static inline const char *rn_account(rp_world *w, const rondo_tree_info *info) {
    rn_device *n = w->native;
    rondo_tree_block blocks[256];
    const void *seen[RP_SLOTS];
    uint64_t leased = 0, count = 0, kept = 0;
    for (uint32_t i = 0; i < RP_SLOTS; i++) {
        const rp_variable_slot *slot = &w->slots[i];
        seen[i] = NULL;
        if (!slot->there || slot->reference.kind != RR_DEVICE) continue;
        const rondo_array_details d = rn_details(slot->tensor);
        bool again = !d.leased;
        for (uint32_t k = 0; k < i; k++) again = again || seen[k] == d.storage;
        rondo_status status = w->kit->usable(w, slot->tensor);
        if (!again && !status) {
            seen[i] = d.storage;
            leased++;
        }
        rondo_status_release(status);
    }
    for (uint32_t i = 0; i < RP_FUNCTIONS; i++) kept += n->models[i].kept_count;
    if (info->live > leased + kept) return "the tree counts outputs as alive that are not";
    if (!info->pool.user) return NULL;
    count = w->ops.memory_snapshot(w->ops.user, info->pool, blocks, NULL, 256);
    bool mirrored = info->state == RONDO_TREE_WARMING || info->state == RONDO_TREE_RECORDING;
    if (mirrored && count != info->live) return "the pool has other live blocks than there are living outputs";
    if (info->state == RONDO_TREE_NOTHING && count) return "the allocator has live blocks in the pool";
    return NULL;
}

static inline uint64_t rn_drawn(rp_world *w) {
    rn_device *n = w->native;
    uint64_t cell[2] = {0, 0};
    rondo_status_release(rondo_stream_copy(w->stream, cell, n->cell, sizeof cell, RONDO_COPY_DEVICE_TO_HOST));
    rondo_status_release(rondo_stream_synchronize(w->stream));
    return cell[1];
}

static rn_device rn_the_device;
static inline rondo_status rn_open_cpu(rp_world *w) { return rn_open(w, &rn_the_device, "cpu", NULL); }
static inline rondo_status rn_open_sim(rp_world *w) {
    char settings[32];
    (void)snprintf(settings, sizeof settings, "seed=%llu", (unsigned long long)w->program->seed);
    return rn_open(w, &rn_the_device, "sim", settings);
}

#define RN_KIT(name, open)                                                                                          \
    {                                                                                                               \
        name, 2u << 20, open, rn_tables, rn_close, rn_set_model, rn_make, rn_wide, rn_number, rn_scalar, rn_empty,  \
            rn_add, rn_view, rn_fresh, rn_resize, rn_keep, rn_drop, rn_look, rn_usable, rn_read, rn_turn, rn_order, \
            rn_account, rn_drawn                                                                                    \
    }
static const rp_kit rn_cpu = RN_KIT("arrays, cpu", rn_open_cpu);
static const rp_kit rn_sim = RN_KIT("arrays, sim", rn_open_sim);

#endif
