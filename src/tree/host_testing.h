/* SPDX-License-Identifier: Apache-2.0
 *
 * The model framework's table for trees. */
#ifndef RONDO_SRC_TREE_HOST_TESTING_H
#define RONDO_SRC_TREE_HOST_TESTING_H

#include "tree/models_testing.h"

static inline uint64_t th_mix(uint64_t word, uint64_t value) {
    word = (word ^ value) * 0xbf58476d1ce4e5b9u;
    return word ^ word >> 29;
}

static inline uint64_t th_word(const th_tensor *x) {
    if (!x) return 1;
    if (!x->storage) return th_mix(2, (uint64_t)x->number);
    uint64_t word = th_mix(3 + (uint64_t)x->storage->place, (uint64_t)x->rank);
    for (int32_t i = 0; i < x->rank; i++) word = th_mix(th_mix(word, (uint64_t)x->shape[i]), (uint64_t)x->strides[i]);
    return word;
}

static inline void th_called(th_host *h) {
    if (th_releasing) h->called_back++;
}

static inline rondo_status th_check(void *user, void *tensor) {
    th_tensor *x = tensor;
    (void)user;
    return x && x->storage ? th_usable(x) : RONDO_OK;
}

static inline bool th_facts(void *user, void *const *tensors, uint32_t count, uint64_t *pointers, uint64_t *words) {
    bool good = true;
    th_called(user);
    for (uint32_t i = 0; i < count; i++) {
        const th_tensor *x = tensors[i];
        pointers[i] = x ? th_data(x) : 0;
        words[i] = th_word(x);
        if (!x || !x->storage) continue;
        if (x->storage->poisoned ||
            (x->storage->lease && !rondo_tree_lease_alive(x->storage->lease, x->storage->epoch)))
            good = false;
    }
    return good;
}

static inline rondo_status th_describe(void *user, void *tensor, rondo_tensor_facts *out_facts) {
    const th_tensor *x = tensor;
    th_called(user);
    *out_facts = (rondo_tensor_facts){0};
    if (!x || !x->storage) return RONDO_OK;
    *out_facts = (rondo_tensor_facts){.place = x->storage->place,
                                      .rank = x->rank,
                                      .pointer = th_data(x),
                                      .bytes = th_extent(x),
                                      .storage = x->storage->pointer,
                                      .storage_bytes = x->storage->bytes,
                                      .lease = x->storage->lease,
                                      .epoch = x->storage->epoch};
    return RONDO_OK;
}

static inline void *th_retain(void *user, void *tensor) { return th_keep(user, tensor); }

static inline void th_release(void *user, void **tensors, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        th_drop(user, tensors[i]);
        tensors[i] = NULL;
    }
}

static inline rondo_status th_make_input(void *user, void *like, void *stream, void **out_tensor) {
    th_host *h = user;
    th_tensor *x = NULL;
    th_called(h);
    RONDO__TRY(tt_fault(h->faults, TT_FAULT_MAKE_INPUT));
    md_lock(h->device);
    h->device->clean = true; /* the copy that comes is on another stream */
    rondo_status status = th_empty_like(h, md_of_handle(h->device, stream), like, &x);
    h->device->clean = false;
    md_unlock(h->device);
    *out_tensor = x;
    return status;
}

static inline rondo_status th_copy_inputs(void *user, void *stream, const rondo_tree_copy *copies, uint64_t count) {
    th_host *h = user;
    th_called(h);
    RONDO__TRY(tt_fault(h->faults, TT_FAULT_COPY_INPUTS));
    rondo_status status = RONDO_OK;
    md_stream *on = md_of_handle(h->device, stream);
    md_lock(h->device);
    for (uint64_t i = 0; i < count && !status; i++) {
        const th_tensor *from = copies[i].tensor;
        uint64_t bytes = th_extent(from);
        if (bytes != copies[i].bytes || th_data(from) != copies[i].source)
            md_wrong(h->device, "a copy of something else");
        status = md_copy_one(on, copies[i].destination, th_data(from), bytes);
    }
    md_unlock(h->device);
    return status;
}

static inline rondo_status th_keep_form(void *user, void *tensor, bool itself, void **out_metadata) {
    th_host *h = user;
    const th_tensor *x = tensor;
    th_called(h);
    RONDO__TRY(tt_fault(h->faults, TT_FAULT_KEEP));
    th_metadata *m = calloc(1, sizeof *m);
    if (!m) return th_no_memory();
    if (itself) m->itself = th_keep(h, tensor);
    if (x) {
        m->offset = x->offset;
        m->rank = x->rank;
        memcpy(m->shape, x->shape, sizeof m->shape);
        memcpy(m->strides, x->strides, sizeof m->strides);
    }
    th_lock(h);
    h->metadata_count++;
    th_unlock(h);
    *out_metadata = m;
    return RONDO_OK;
}

static inline void th_drop_form(void *user, void *metadata) {
    th_host *h = user;
    th_metadata *m = metadata;
    if (!m) return;
    th_drop(h, m->itself);
    free(m);
    th_lock(h);
    h->metadata_count--;
    th_unlock(h);
}

static inline void th_adopt(void *user, void *tensor, rondo_tree_lease *lease, uint64_t epoch) {
    th_host *h = user;
    th_tensor *x = tensor;
    th_called(h);
    if (h->weak || x->storage->lease) md_wrong(h->device, "a storage was to get a lease that has one, or wants none");
    if (rondo_tree_lease_pointer(lease) != x->storage->pointer) md_wrong(h->device, "a lease on other memory");
    th_lock(h);
    x->storage->lease = lease;
    x->storage->epoch = epoch;
    x->storage->owner = false;
    h->leased++;
    th_unlock(h);
    rondo_tree_lease_set_storage(lease, x->storage);
}

static inline rondo_status th_make_output(th_host *h, const rondo_tree_output *o, void *const *inputs, void **made,
                                          void **out_tensor) {
    const th_metadata *m = o->metadata;
    *out_tensor = NULL;
    if (!m) return RONDO_OK; /* nothing */
    th_tensor form = {.offset = m->offset, .rank = m->rank}, *x = NULL;
    memcpy(form.shape, m->shape, sizeof form.shape);
    memcpy(form.strides, m->strides, sizeof form.strides);
    switch (o->kind) {
    case RONDO_TREE_OUTPUT_KEPT: x = th_keep(h, m->itself); break;
    case RONDO_TREE_OUTPUT_ALIAS: RONDO__TRY(th_alias(h, ((th_tensor *)made[o->index])->storage, &form, &x)); break;
    case RONDO_TREE_OUTPUT_PATH: {
        void *storage = rondo_tree_lease_storage(o->lease);
        RONDO__TRY(th_alias(h, h->weak ? ((th_weak *)storage)->storage : storage, &form, &x));
        break;
    }
    case RONDO_TREE_OUTPUT_INPUT: {
        const th_tensor *input = inputs[o->index];
        form.offset = input->offset + (uint64_t)o->offset;
        RONDO__TRY(th_alias(h, input->storage, &form, &x));
        break;
    }
    default: {
        uint64_t pointer = rondo_tree_lease_pointer(o->lease), bytes = rondo_tree_lease_bytes(o->lease);
        if (!(x = th_tensor_new(h))) return th_no_memory();
        x->rank = form.rank;
        x->offset = form.offset;
        memcpy(x->shape, form.shape, sizeof x->shape);
        memcpy(x->strides, form.strides, sizeof x->strides);
        rondo_status status = th_storage_new(h, x, pointer, bytes, false, RONDO_TENSOR_DEVICE);
        if (status) {
            th_drop(h, x);
            return status;
        }
        break;
    }
    }
    *out_tensor = x;
    return RONDO_OK;
}

static inline rondo_status th_make_outputs(void *user, const rondo_tree_output *outputs, uint32_t count,
                                           void *const *inputs, void **out_tensors) {
    th_host *h = user;
    th_called(h);
    RONDO__TRY(tt_fault(h->faults, TT_FAULT_MAKE_OUTPUTS));
    rondo_status status = RONDO_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (outputs[i].kind != RONDO_TREE_OUTPUT_ALIAS) continue;
        if (!outputs[i].shared || !outputs[outputs[i].index].shared || outputs[i].index >= i)
            md_wrong(h->device, "outputs that share a storage were not said to, or in the wrong order");
    }
    uint32_t made = 0;
    for (; made < count && !status; made += !status)
        status = th_make_output(h, &outputs[made], inputs, out_tensors, &out_tensors[made]);
    if (status) {
        while (made--) th_drop(h, out_tensors[made]), out_tensors[made] = NULL;
        return status;
    }
    /* Leases are taken when nothing can fail any more. */
    for (uint32_t i = 0; i < count && !h->weak; i++) {
        if (outputs[i].kind != RONDO_TREE_OUTPUT_FRESH) continue;
        th_storage *s = ((th_tensor *)out_tensors[i])->storage;
        s->lease = outputs[i].lease;
        s->epoch = outputs[i].epoch;
        rondo_tree_lease_set_storage(s->lease, s);
        th_lock(h);
        h->leased++;
        th_unlock(h);
    }
    return RONDO_OK;
}

static inline rondo_status th_own(void *user, void *stream, void *tensor, void **out_tensor) {
    th_host *h = user;
    th_tensor *x = NULL;
    th_called(h);
    RONDO__TRY(tt_fault(h->faults, TT_FAULT_OWN));
    if (!((th_tensor *)tensor)->storage || ((th_tensor *)tensor)->storage->place != RONDO_TENSOR_DEVICE) {
        *out_tensor = th_keep(h, tensor); /* no memory of a pool */
        return RONDO_OK;
    }
    md_stream *on = md_of_handle(h->device, stream);
    RONDO__TRY(th_empty_like(h, on, tensor, &x));
    md_lock(h->device);
    rondo_status status = md_copy_one(on, th_data(x), th_data(tensor), th_extent(x));
    md_unlock(h->device);
    if (status) th_drop(h, x);
    else *out_tensor = x;
    return status;
}

static inline void th_poison(void *user, void *storage, const char *message) {
    th_host *h = user;
    th_storage *s = h->weak ? ((th_weak *)storage)->storage : storage;
    th_lock(h);
    h->poisoned++;
    s->poisoned = true;
    s->owner = false;
    (void)snprintf(s->message, sizeof s->message, "%s", message);
    th_unlock(h);
}

static inline rondo_status th_evacuate(void *user, void *stream, void *storage, uint64_t pointer, uint64_t bytes) {
    th_host *h = user;
    th_storage *s = h->weak ? ((th_weak *)storage)->storage : storage;
    uint64_t fresh;
    th_called(h);
    RONDO__TRY(tt_fault(h->faults, TT_FAULT_EVACUATE));
    md_stream *on = md_of_handle(h->device, stream);
    RONDO__TRY(md_allocate(h->device, on, bytes, &fresh));
    md_lock(h->device);
    rondo_status status = md_copy_one(on, fresh, pointer, bytes);
    md_unlock(h->device);
    if (status) {
        md_free(h->device, fresh);
        return status;
    }
    th_lock(h);
    h->leased -= s->lease != NULL;
    h->evacuated++;
    s->lease = NULL;
    s->pointer = fresh;
    s->owner = true;
    th_unlock(h);
    return RONDO_OK;
}

static inline rondo_status th_enter(void *user, rondo_tree_phase phase, void *stream) {
    th_host *h = user;
    (void)phase, (void)stream;
    RONDO__TRY(tt_fault(h->faults, TT_FAULT_ENTER));
    h->entered++;
    return RONDO_OK;
}

static inline void th_leave(void *user, rondo_tree_phase phase) {
    (void)phase;
    ((th_host *)user)->left++;
}

static inline int64_t th_generation(void *user) { return ((th_host *)user)->generation; }

static inline rondo_status th_watch(void *user, void *tensor, void **out_weak) {
    th_host *h = user;
    th_tensor *x = tensor;
    RONDO__TRY(tt_fault(h->faults, TT_FAULT_WATCH));
    th_weak *weak = malloc(sizeof *weak);
    if (!weak) return th_no_memory();
    *weak = (th_weak){x->storage, x->storage->pointer};
    th_lock(h);
    x->storage->watchers++;
    h->weak_count++;
    th_unlock(h);
    *out_weak = weak;
    return RONDO_OK;
}

static inline bool th_alive(void *user, void *weak) {
    th_host *h = user;
    const th_weak *w = weak;
    th_lock(h);
    bool alive = w->storage->refs && w->storage->pointer == w->pointer;
    th_unlock(h);
    return alive;
}

static inline void th_unwatch(void *user, void *weak) {
    th_host *h = user;
    th_weak *w = weak;
    th_lock(h);
    bool gone = --w->storage->watchers == 0 && !w->storage->refs;
    h->weak_count--;
    th_unlock(h);
    if (gone) free(w->storage);
    free(w);
}

/* What a device does to a storage that a checkpoint says is alive: from now on it frees its memory. */
static inline void th_own_storage(void *user, void *weak) {
    th_host *h = user;
    if (h->weak) ((th_weak *)weak)->storage->owner = true;
}

static inline void th_open(th_host *h, md_device *device, tt_faults *faults, bool weak) {
    pthread_mutexattr_t attributes;
    *h = (th_host){.faults = faults, .device = device, .weak = weak, .own_cell = {17, 0}};
    h->cell = h->own_cell;
    (void)pthread_mutexattr_init(&attributes);
    (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(&h->mutex, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
    device->own_storage = th_own_storage;
    device->own_user = h;
}

static inline void th_close(th_host *h) { (void)pthread_mutex_destroy(&h->mutex); }

static inline void th_table(th_host *h, rondo_tensor_host *out_table) {
    *out_table = (rondo_tensor_host){
        .struct_size = sizeof(rondo_tensor_host),
        .flags = h->weak ? RONDO_TENSOR_HOST_WEAK : 0,
        .user = h,
        .facts = th_facts,
        .check = th_check,
        .describe = th_describe,
        .run = th_run,
        .retain = th_retain,
        .release = th_release,
        .make_input = th_make_input,
        .copy_inputs = th_copy_inputs,
        .keep = th_keep_form,
        .drop = th_drop_form,
        .adopt = th_adopt,
        .make_outputs = th_make_outputs,
        .own = th_own,
        .poison = h->weak ? th_poison : NULL,
        .evacuate = th_evacuate,
        .enter = th_enter,
        .leave = th_leave,
        .generation = th_generation,
        .watch = th_watch,
        .alive = th_alive,
        .unwatch = th_unwatch,
    };
}

#endif
