/* SPDX-License-Identifier: Apache-2.0
 *
 * A framework of tensors for the tests of trees: counted tensors over counted storages, views, expanded tensors, tensors in
 * host memory, numbers. In two kinds: storages that hold leases, and storages that know nothing of leases and are watched
 * (RONDO_TENSOR_HOST_WEAK). Whatever it hands out is counted. */
#ifndef RONDO_SRC_TREE_TENSORS_TESTING_H
#define RONDO_SRC_TREE_TENSORS_TESTING_H

#include "tree/device_testing.h"

#define TH_RANK 2

/* ----------------------------------------------------------------------------------------------------- tensors */

typedef struct th_host th_host;

typedef struct th_storage {
    uint64_t refs, watchers; /* tensors; weak references */
    uint64_t pointer, bytes;
    rondo_tensor_place place;
    bool owner; /* its end frees the memory */
    bool poisoned;
    char message[400];
    rondo_tree_lease *lease;
    uint64_t epoch;
} th_storage;

typedef struct th_tensor {
    struct th_tensor *next;
    uint64_t refs, held; /* all references; those of the test */
    th_storage *storage; /* null: a number, or nothing */
    int64_t number;
    uint64_t offset; /* bytes */
    int32_t rank;
    int64_t shape[TH_RANK], strides[TH_RANK]; /* elements */
} th_tensor;

typedef struct th_weak {
    th_storage *storage;
    uint64_t pointer; /* as it was when it was watched */
} th_weak;

typedef struct th_metadata {
    th_tensor *itself;
    uint64_t offset;
    int32_t rank;
    int64_t shape[TH_RANK], strides[TH_RANK];
} th_metadata;

struct th_host {
    pthread_mutex_t mutex; /* recursive; never held while a lease or the device is called */
    tt_faults *faults;
    md_device *device;
    md_stream *side;
    th_tensor *tensors;
    uint64_t tensor_count, storage_count, weak_count, metadata_count, leased;
    uint64_t entered, left, poisoned, evacuated, flushed;
    bool weak;
    int64_t generation;
    uint64_t called_back; /* times that the tree called in the middle of a release */
    rondo_tree_phase last_phase;
    void *last_stream;
    uint64_t *cell, own_cell[2]; /* of random numbers, in device memory: seed, numbers drawn */
};

static inline void th_lock(th_host *h) { (void)pthread_mutex_lock(&h->mutex); }
static inline void th_unlock(th_host *h) { (void)pthread_mutex_unlock(&h->mutex); }

/* ---------------------------------------------------------------------------------------- making and releasing */

static inline uint64_t th_elements(const th_tensor *x) {
    uint64_t count = 1;
    for (int32_t i = 0; i < x->rank; i++) count *= (uint64_t)x->shape[i];
    return count;
}

/* Bytes from the first to the end of the last element. */
static inline uint64_t th_extent(const th_tensor *x) {
    uint64_t last = 0;
    if (!th_elements(x)) return 0;
    for (int32_t i = 0; i < x->rank; i++) last += (uint64_t)((x->shape[i] - 1) * x->strides[i]);
    return (last + 1u) * sizeof(float);
}

/* This thread tells a lease its end: the framework must not be called. */
static _Thread_local bool th_releasing;

/* The storage must not have been released: its lease, if it has one, is told. Takes and gives no lock of the host. */
static inline void th_storage_end(th_host *h, th_storage *s) {
    th_lock(h);
    rondo_tree_lease *lease = s->lease;
    uint64_t epoch = s->epoch, pointer = s->pointer;
    bool owner = s->owner;
    rondo_tensor_place place = s->place;
    s->lease = NULL;
    s->owner = false;
    h->leased -= lease != NULL;
    th_unlock(h);
    bool before = th_releasing;
    th_releasing = true;
    if (lease) rondo_tree_lease_release(lease, epoch);
    th_releasing = before;
    if (lease) return;
    if (owner && place == RONDO_TENSOR_DEVICE) md_free(h->device, pointer);
    else if (owner && pointer) free(md_memory(pointer));
}

static inline void th_storage_unref(th_host *h, th_storage *s) {
    th_lock(h);
    bool over = --s->refs == 0;
    if (over) s->watchers++; /* keeps the struct until its memory is given back */
    th_unlock(h);
    if (!over) return;
    th_storage_end(h, s);
    th_lock(h);
    bool gone = --s->watchers == 0;
    h->storage_count--;
    th_unlock(h);
    if (gone) free(s);
}

static inline th_tensor *th_tensor_new(th_host *h) {
    th_tensor *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    x->refs = 1;
    th_lock(h);
    x->next = h->tensors;
    h->tensors = x;
    h->tensor_count++;
    th_unlock(h);
    return x;
}

static inline void th_drop(th_host *h, th_tensor *x) {
    if (!x) return;
    th_lock(h);
    bool over = --x->refs == 0;
    if (over) {
        th_tensor **link = &h->tensors;
        while (*link != x) link = &(*link)->next;
        *link = x->next;
        h->tensor_count--;
    }
    th_unlock(h);
    if (!over) return;
    if (x->storage) th_storage_unref(h, x->storage);
    free(x);
}

static inline th_tensor *th_keep(th_host *h, th_tensor *x) {
    th_lock(h);
    if (x) x->refs++;
    th_unlock(h);
    return x;
}

static inline rondo_status th_no_memory(void) { return RONDO__FAIL(OUT_OF_MEMORY, MEMORY, "no memory for a tensor"); }

/* A storage with one reference, which the tensor gets. */
static inline rondo_status th_storage_new(th_host *h, th_tensor *x, uint64_t pointer, uint64_t bytes, bool owner,
                                          rondo_tensor_place place) {
    th_storage *s = calloc(1, sizeof *s);
    if (!s) return th_no_memory();
    *s = (th_storage){.refs = 1, .pointer = pointer, .bytes = bytes, .owner = owner, .place = place};
    th_lock(h);
    h->storage_count++;
    th_unlock(h);
    x->storage = s;
    return RONDO_OK;
}

/* Compact, of rows x columns (rows 0: rank 1). */
static inline void th_shape(th_tensor *x, int64_t rows, int64_t columns) {
    x->rank = rows ? 2 : 1;
    x->shape[0] = rows ? rows : columns;
    x->shape[1] = columns;
    x->strides[0] = rows ? columns : 1;
    x->strides[1] = 1;
}

/* Memory for the extent of a tensor whose form is set. */
static inline rondo_status th_fill_storage(th_host *h, md_stream *stream, th_tensor *x) {
    uint64_t bytes = th_extent(x), pointer = 0;
    if (bytes) RONDO__TRY(md_allocate(h->device, stream, bytes, &pointer));
    rondo_status status = th_storage_new(h, x, pointer, bytes, bytes != 0, RONDO_TENSOR_DEVICE);
    if (status && bytes) md_free(h->device, pointer);
    return status;
}

/* The same form in new memory. */
static inline rondo_status th_empty_like(th_host *h, md_stream *stream, const th_tensor *like, th_tensor **out_tensor) {
    th_tensor *x = th_tensor_new(h);
    if (!x) return th_no_memory();
    x->rank = like->rank;
    memcpy(x->shape, like->shape, sizeof x->shape);
    memcpy(x->strides, like->strides, sizeof x->strides);
    rondo_status status = th_fill_storage(h, stream, x);
    if (status) {
        th_drop(h, x);
        return status;
    }
    *out_tensor = x;
    return RONDO_OK;
}

static inline rondo_status th_compact(th_host *h, md_stream *stream, int64_t rows, int64_t columns,
                                      th_tensor **out_tensor) {
    th_tensor form = {0};
    th_shape(&form, rows, columns);
    return th_empty_like(h, stream, &form, out_tensor);
}

static inline rondo_status th_number(th_host *h, int64_t value, th_tensor **out_tensor) {
    th_tensor *x = th_tensor_new(h);
    if (!x) return th_no_memory();
    x->number = value;
    *out_tensor = x;
    return RONDO_OK;
}

/* In host memory; rank 0 for one element, rank 1 for none. */
static inline rondo_status th_in_host(th_host *h, bool empty, float value, th_tensor **out_tensor) {
    th_tensor *x = th_tensor_new(h);
    float *memory = empty ? NULL : malloc(sizeof *memory);
    if (!x || (!memory && !empty)) {
        th_drop(h, x);
        free(memory);
        return th_no_memory();
    }
    if (memory) *memory = value;
    x->rank = empty;
    rondo_status status =
        th_storage_new(h, x, md_address(memory), empty ? 0 : sizeof *memory, !empty, RONDO_TENSOR_HOST);
    if (status) {
        th_drop(h, x);
        free(memory);
        return status;
    }
    *out_tensor = x;
    return RONDO_OK;
}

/* Shape, strides and offset: the rest is not for copying, since it counts. */
static inline th_tensor th_form(const th_tensor *x) {
    th_tensor form = {.rank = x->rank, .offset = x->offset};
    memcpy(form.shape, x->shape, sizeof form.shape);
    memcpy(form.strides, x->strides, sizeof form.strides);
    return form;
}

/* Another tensor on the same storage. */
static inline rondo_status th_alias(th_host *h, th_storage *storage, const th_tensor *form, th_tensor **out_tensor) {
    th_tensor *x = th_tensor_new(h);
    if (!x) return th_no_memory();
    x->rank = form->rank;
    x->offset = form->offset;
    memcpy(x->shape, form->shape, sizeof x->shape);
    memcpy(x->strides, form->strides, sizeof x->strides);
    th_lock(h);
    storage->refs++;
    th_unlock(h);
    x->storage = storage;
    *out_tensor = x;
    return RONDO_OK;
}

#endif
