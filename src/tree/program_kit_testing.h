/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs on the model device and the model framework (device_testing.h, tensors_testing.h): with leases, and watched. */
#ifndef RONDO_SRC_TREE_PROGRAM_KIT_TESTING_H
#define RONDO_SRC_TREE_PROGRAM_KIT_TESTING_H

#include "tree/program_run_testing.h"

static inline rondo_status rk_open(rp_world *w, bool weak) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    void *stream = NULL;
    w->weak = weak;
    md_open(&w->device, &w->faults);
    th_open(&w->host, &w->device, &w->faults, weak);
    options.allocator = &w->allocator;
    options.ignore_plugin_path = 1;
    options.log = w->print ? rp_log : NULL;
    options.log_user = w;
    options.log_level = RONDO_LOG_DEBUG;
    RONDO__TRY(rondo_instance_create(&options, &w->instance));
    RONDO__TRY(md_create_stream(&w->device, &stream));
    w->stream = stream;
    RONDO__TRY(md_create_stream(&w->device, &stream));
    w->other = stream;
    RONDO__TRY(md_create_stream(&w->device, &stream));
    w->host.side = stream;
    return RONDO_OK;
}

static inline rondo_status rk_tables(rp_world *w) {
    const rp_options *o = &w->program->options;
    md_ops(&w->device, &w->ops);
    th_table(&w->host, &w->table);
    if (o->no_generation) w->table.generation = NULL;
    if (o->rebind) w->ops.flags |= RONDO_GRAPH_OPS_REBIND;
    if (o->children) w->ops.flags |= RONDO_GRAPH_OPS_CHILD_GRAPHS;
    if (o->flushes) w->table.flags |= RONDO_TENSOR_HOST_FLUSHES;
    if (o->serial) w->table.flags |= RONDO_TENSOR_HOST_SERIAL;
    return RONDO_OK;
}

static inline rondo_status rk_open_leases(rp_world *w) { return rk_open(w, false); }
static inline rondo_status rk_open_weak(rp_world *w) { return rk_open(w, true); }

static inline void rk_left(rp_world *w, uint64_t count, const char *what) {
    if (count) rp_fail(w, "%llu %s are left over", (unsigned long long)count, what);
}

static inline void rk_close(rp_world *w) {
    for (uint32_t i = 0; i < RP_FUNCTIONS; i++) {
        th_model *m = &w->models[i];
        while (m->kept_count) th_drop(&w->host, m->kept[--m->kept_count]);
    }
    rk_left(w, w->host.tensor_count, "tensors");
    rk_left(w, w->host.storage_count, "storages");
    rk_left(w, w->host.leased, "leased storages");
    rk_left(w, w->host.weak_count, "weak references");
    rk_left(w, w->host.metadata_count, "things that were kept for outputs");
    rk_left(w, w->device.states, "states of pools");
    rk_left(w, w->device.graphs != NULL, "graphs (or more)");
    rk_left(w, md_live(&w->device, UINT64_MAX, NULL), "blocks");
    rk_left(w, md_pools_used(&w->device), "pools");
    rk_left(w, w->host.entered - w->host.left, "phases");
    rk_left(w, w->device.prepared - w->device.unprepared, "preparations");
    rk_left(w, w->host.called_back, "calls from inside a release");
    if (w->device.wrong) rp_fail(w, "the device was misused: %s", w->device.wrong_text);
    while (w->host.tensors) { /* of a run that has failed already */
        w->host.tensors->refs = 1;
        th_drop(&w->host, w->host.tensors);
    }
    rondo_instance_release(w->instance);
    md_close(&w->device);
    th_close(&w->host);
}

static inline void rk_model(rp_world *w, uint32_t index, rondo_tree_function *f) { f->model = &w->models[index]; }

/* words: address, how many, bits of the first; see rp_ramp. */
static inline void rk_kernel_ramp(md_device *device, const uint64_t *words) {
    uint32_t bits = (uint32_t)words[2];
    float first;
    (void)device;
    memcpy(&first, &bits, sizeof first);
    rp_ramp(md_memory(words[0]), (int64_t)words[1], first);
}

static inline rondo_status rk_fill(rp_world *w, const th_tensor *x, float first) {
    uint32_t bits;
    memcpy(&bits, &first, sizeof bits);
    md_call call = {rk_kernel_ramp, {th_data(x), th_elements(x), bits}, 1u, {th_extent(x)}};
    return md_launch(w->stream, &call);
}

static inline rondo_status rk_make(rp_world *w, int64_t count, float first, void **out) {
    th_tensor *x = NULL;
    RONDO__TRY(th_compact(&w->host, w->stream, 0, count, &x));
    rondo_status status = rk_fill(w, x, first);
    if (status) th_drop(&w->host, x);
    else *out = x;
    return status;
}

static inline rondo_status rk_wide(rp_world *w, void *row, void **out) {
    th_tensor form = *(th_tensor *)row, *x = NULL;
    form.rank = 2;
    form.shape[1] = form.shape[0];
    form.strides[1] = form.strides[0];
    form.shape[0] = 2;
    form.strides[0] = 0;
    RONDO__TRY(th_alias(&w->host, form.storage, &form, &x));
    *out = x;
    return RONDO_OK;
}

static inline rondo_status rk_view(rp_world *w, void *tensor, void **out) {
    th_tensor form = *(th_tensor *)tensor, *x = NULL;
    form.shape[0]--;
    form.offset += sizeof(float);
    RONDO__TRY(th_alias(&w->host, form.storage, &form, &x));
    *out = x;
    return RONDO_OK;
}

static inline rondo_status rk_number(rp_world *w, int64_t value, void **out) {
    th_tensor *x = NULL;
    RONDO__TRY(th_number(&w->host, value, &x));
    *out = x;
    return RONDO_OK;
}

static inline rondo_status rk_in_host(rp_world *w, float value, void **out) {
    th_tensor *x = NULL;
    RONDO__TRY(th_in_host(&w->host, false, value, &x));
    *out = x;
    return RONDO_OK;
}

static inline rondo_status rk_empty(rp_world *w, void **out) {
    th_tensor *x = NULL;
    RONDO__TRY(th_compact(&w->host, w->stream, 0, 0, &x));
    *out = x;
    return RONDO_OK;
}

static inline rondo_status rk_add(rp_world *w, void *x, float scalar) {
    return th_apply(w->stream, TH_ADD, x, x, NULL, scalar);
}

static inline rondo_status rk_fresh(rp_world *w, void *tensor, float scalar, void **out) {
    th_tensor *x = NULL;
    RONDO__TRY(th_compact(&w->host, w->stream, 0, ((th_tensor *)tensor)->shape[0], &x));
    rondo_status status = th_apply(w->stream, TH_ADD, x, tensor, NULL, scalar);
    if (status) th_drop(&w->host, x);
    else *out = x;
    return status;
}

static inline rondo_status rk_resize(rp_world *w, void *x, float first) {
    RONDO__TRY(th_resize(&w->host, w->stream, x, th_elements(x)));
    return rk_fill(w, x, first);
}

static inline void *rk_keep(rp_world *w, void *x) { return th_keep(&w->host, x); }
static inline void rk_drop(rp_world *w, void *x) { th_drop(&w->host, x); }

static inline void rk_look(rp_world *w, void *tensor, rp_look *out) {
    const th_tensor *x = tensor;
    (void)w;
    *out = (rp_look){.kind = RR_NOTHING};
    if (!x) return;
    out->kind = !x->storage ? RR_NUMBER : x->storage->place == RONDO_TENSOR_HOST ? RR_HOST : RR_DEVICE;
    out->number = x->number;
    out->rank = x->rank;
    memcpy(out->shape, x->shape, sizeof out->shape);
    memcpy(out->strides, x->strides, sizeof out->strides);
    out->storage = x->storage;
}

static inline rondo_status rk_usable(rp_world *w, void *x) {
    (void)w;
    return x && ((th_tensor *)x)->storage ? th_usable(x) : RONDO_OK;
}

static inline rondo_status rk_read(rp_world *w, void *tensor, float *values) {
    const th_tensor *x = tensor;
    RONDO__TRY(th_usable(x));
    md_lock(&w->device);
    md_drain(w->stream, ((md_stream *)w->stream)->count);
    md_unlock(&w->device);
    int64_t rows = x->rank == 2 ? x->shape[0] : 1, columns = x->rank ? x->shape[x->rank - 1] : 1;
    const float *data = md_memory(th_data(x));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            *values++ = data[(x->rank == 2 ? r * x->strides[0] : 0) + c * (x->rank ? x->strides[x->rank - 1] : 0)];
    return RONDO_OK;
}

static inline void rk_turn(rp_world *w) {
    md_stream *stream = w->stream;
    w->stream = w->other;
    w->other = stream;
}

static inline rondo_status rk_order(rp_world *w) { return md_stream_wait(&w->device, w->stream, w->other); }

/* A storage counts as alive on its memory when nobody has taken it. */
static inline bool rk_has_memory(const th_storage *s) {
    if (s->place != RONDO_TENSOR_DEVICE || !s->pointer || s->poisoned) return false;
    return !s->lease || rondo_tree_lease_alive(s->lease, s->epoch);
}

/* How many storages begin there, and are alive. */
static inline uint64_t rk_storages_at(const th_host *h, uint64_t address) {
    const th_storage *seen = NULL;
    uint64_t count = 0;
    for (const th_tensor *x = h->tensors; x; x = x->next) {
        const th_storage *s = x->storage;
        if (!s || s == seen || s->pointer != address || !rk_has_memory(s)) continue;
        count++;
        seen = s;
    }
    return count;
}

static inline bool rk_in_pool(const md_device *d, uint64_t address, uint64_t pool) {
    for (const md_segment *s = d->segments; s; s = s->next)
        if (address >= md_address(s->memory) && address < md_address(s->memory) + s->bytes) return s->pool == pool;
    return false;
}

static inline const char *rk_account(rp_world *w, const rondo_tree_info *info) {
    md_device *d = &w->device;
    uint64_t pool = info->pool.user, blocks = md_live(d, pool, NULL), storages = 0;
    bool mirrored = info->state == RONDO_TREE_WARMING || info->state == RONDO_TREE_RECORDING;
    if (d->wrong) return d->wrong_text;
    if (!pool) return NULL;
    if (info->state == RONDO_TREE_NOTHING && blocks) return "the allocator has live blocks in the pool";
    for (const md_segment *s = d->segments; s; s = s->next) {
        if (s->pool != pool) continue;
        for (const md_block *b = s->blocks; b; b = b->next) {
            uint64_t here = rk_storages_at(&w->host, b->address);
            if (here > 1) return "two storages lie on one block";
            if (b->live && !here) return "a live block of the pool has no storage";
            if (mirrored && !b->live && here) return "a storage lies on a block of the pool that is free";
            storages += mirrored ? here : 0;
        }
    }
    /* Blocks of replays are known to leases alone: their addresses can be anywhere in a free piece. */
    for (const th_tensor *x = w->host.tensors; !mirrored && x; x = x->next) {
        bool first = x->storage && rk_has_memory(x->storage) && rk_in_pool(d, x->storage->pointer, pool);
        for (const th_tensor *y = w->host.tensors; first && y != x; y = y->next) first = y->storage != x->storage;
        storages += first;
    }
    return storages == info->live ? NULL : "the tree counts other living outputs than there are";
}

static inline uint64_t rk_drawn(rp_world *w) {
    md_lock(&w->device);
    for (md_stream *s = w->device.streams; s; s = s->next) md_drain(s, s->count);
    md_unlock(&w->device);
    return w->host.cell[1];
}

#define RK_KIT(name, open)                                                                                          \
    {                                                                                                               \
        name, MD_SEGMENT, open, rk_tables, rk_close, rk_model, rk_make, rk_wide, rk_number, rk_in_host, rk_empty,   \
            rk_add, rk_view, rk_fresh, rk_resize, rk_keep, rk_drop, rk_look, rk_usable, rk_read, rk_turn, rk_order, \
            rk_account, rk_drawn                                                                                    \
    }
static const rp_kit rk_leases = RK_KIT("model, leases", rk_open_leases);
static const rp_kit rk_watched = RK_KIT("model, watched", rk_open_weak);

#endif
