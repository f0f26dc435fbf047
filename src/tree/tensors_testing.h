/* SPDX-License-Identifier: Apache-2.0
 *
 * A framework of tensors for the tests of trees: counted tensors over counted storages, views, expanded tensors, tensors in
 * host memory, numbers, and models that are a few lines of arithmetic. In two kinds: storages that hold leases, and
 * storages that know nothing of leases and are watched (RONDO_TENSOR_HOST_WEAK). Whatever it hands out is counted. */
#ifndef RONDO_SRC_TREE_TENSORS_TESTING_H
#define RONDO_SRC_TREE_TENSORS_TESTING_H

#include "tree/device_testing.h"

#define TH_RANK 2
#define TH_STEPS 24u
#define TH_REGISTERS 24u
#define TH_LIST 8u

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

/* ------------------------------------------------------------------------------------------------------ models */

typedef enum th_op {
    TH_END,
    TH_ADDS,     /* out = a + scalar */
    TH_MULS,     /* out = a * scalar */
    TH_ADD,      /* out = a + b, element by element */
    TH_MUL,      /* out = a * b */
    TH_ADDS_IN,  /* a += scalar */
    TH_COPY_IN,  /* a = b */
    TH_ADDN,     /* out = a + the number b */
    TH_ADDH,     /* out = a + the first element of b, a tensor in host memory, as it is now */
    TH_VIEW,     /* out = a from element `index` on */
    TH_EXPAND,   /* out = a, `index` times over, as a stride of 0 */
    TH_SAME,     /* out = a, the very object */
    TH_RANDOM,   /* out = random numbers in the form of a */
    TH_SIDE,     /* out = a + scalar, on another stream, forked and joined */
    TH_CONSTANT, /* out = constant `index` */
    TH_NUMBER,   /* out = the number `index` */
    TH_NOTHING,  /* out = nothing */
    TH_EMPTY,    /* out = a tensor without elements; `index` 1: in host memory */
    TH_HOST,     /* out = a tensor in host memory with one element, scalar */
    TH_DROP,     /* a goes */
    TH_KEEP,     /* somebody outside keeps a */
    TH_RESIZE,   /* a's storage gets new memory of `index` floats, without contents */
    TH_SYNC,     /* somebody reads a on the host */
    TH_BREAK,    /* a capture that this is in is invalid, and nobody says so yet */
    TH_FAIL,     /* fails in the phases of the mask `index` */
    TH_CALL,     /* out = function `index` of the same tree, of a */
    TH_RETURN    /* a is the next output */
} th_op;

typedef struct th_step {
    th_op op;
    uint8_t out, a, b;
    float scalar;
    int64_t index;
} th_step;

#define P_ADDS(out, a, scalar) \
    { TH_ADDS, out, a, 0, scalar, 0 }
#define P_MULS(out, a, scalar) \
    { TH_MULS, out, a, 0, scalar, 0 }
#define P_ADD(out, a, b) \
    { TH_ADD, out, a, b, 0, 0 }
#define P_MUL(out, a, b) \
    { TH_MUL, out, a, b, 0, 0 }
#define P_ADDS_IN(a, scalar) \
    { TH_ADDS_IN, 0, a, 0, scalar, 0 }
#define P_COPY_IN(a, b) \
    { TH_COPY_IN, 0, a, b, 0, 0 }
#define P_ADDN(out, a, b) \
    { TH_ADDN, out, a, b, 0, 0 }
#define P_ADDH(out, a, b) \
    { TH_ADDH, out, a, b, 0, 0 }
#define P_VIEW(out, a, first) \
    { TH_VIEW, out, a, 0, 0, first }
#define P_EXPAND(out, a, times) \
    { TH_EXPAND, out, a, 0, 0, times }
#define P_SAME(out, a) \
    { TH_SAME, out, a, 0, 0, 0 }
#define P_RANDOM(out, a) \
    { TH_RANDOM, out, a, 0, 0, 0 }
#define P_SIDE(out, a, scalar) \
    { TH_SIDE, out, a, 0, scalar, 0 }
#define P_CONSTANT(out, which) \
    { TH_CONSTANT, out, 0, 0, 0, which }
#define P_NUMBER(out, value) \
    { TH_NUMBER, out, 0, 0, 0, value }
#define P_NOTHING(out) \
    { TH_NOTHING, out, 0, 0, 0, 0 }
#define P_EMPTY(out, in_host) \
    { TH_EMPTY, out, 0, 0, 0, in_host }
#define P_HOST(out, value) \
    { TH_HOST, out, 0, 0, value, 0 }
#define P_DROP(a) \
    { TH_DROP, 0, a, 0, 0, 0 }
#define P_KEEP(a) \
    { TH_KEEP, 0, a, 0, 0, 0 }
#define P_RESIZE(a, floats) \
    { TH_RESIZE, 0, a, 0, 0, floats }
#define P_SYNC(a) \
    { TH_SYNC, 0, a, 0, 0, 0 }
#define P_BREAK() \
    { TH_BREAK, 0, 0, 0, 0, 0 }
#define P_FAIL(phases) \
    { TH_FAIL, 0, 0, 0, 0, phases }
#define P_CALL(out, a, function) \
    { TH_CALL, out, a, 0, 0, function }
#define P_RETURN(a) \
    { TH_RETURN, 0, a, 0, 0, 0 }

/* A function as it is declared, and what it does: registers 0, 1, ... are the inputs. What no step drops goes when all are
 * done. */
typedef struct th_model {
    const char *name;
    uint32_t inputs, outputs;
    th_step steps[TH_STEPS];
    rondo_tree_mode mode;
    uint32_t statics[TH_LIST], static_count;
    uint32_t mutated[TH_LIST], mutated_count;
    uint32_t owned[TH_LIST], owned_count;
    th_tensor *constants[TH_LIST];
    uint32_t constant_count;
    const char *skip;
    uint32_t simple;
    /* What happened: */
    uint32_t runs[4]; /* by phase */
    uint32_t released;
    th_tensor *kept[TH_LIST];
    uint32_t kept_count;
} th_model;

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
    bool in_release;      /* the tree must not call now */
    uint64_t called_back; /* times that it did */
    rondo_tree_phase last_phase;
    void *last_stream;
    struct {
        uint64_t seed, drawn;
    } cell; /* of random numbers, as device memory */
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
    if (lease) rondo_tree_lease_release(lease, epoch);
    else if (owner && place == RONDO_TENSOR_DEVICE) md_free(h->device, pointer);
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

/* ----------------------------------------------------------------------------------------------------- kernels */

/* words: out, a, b, rows << 32 | columns, three pairs of strides, operation << 32 | bits of the scalar */
static inline uint64_t th_pair(int64_t high, int64_t low) { return (uint64_t)high << 32 | (uint64_t)(uint32_t)low; }
static inline uint64_t th_strides(const th_tensor *x) {
    return x->rank == 2 ? th_pair(x->strides[0], x->strides[1]) : th_pair(0, x->rank == 1 ? x->strides[0] : 0);
}
static inline uint64_t th_rows(const th_tensor *x) {
    return x->rank == 2 ? th_pair(x->shape[0], x->shape[1]) : th_pair(1, x->rank == 1 ? x->shape[0] : 1);
}

static inline void th_kernel(md_device *device, const uint64_t *words) {
    float *out = md_memory(words[0]);
    const float *a = md_memory(words[1]), *b = md_memory(words[2]);
    uint32_t bits = (uint32_t)words[7];
    float scalar;
    memcpy(&scalar, &bits, sizeof scalar);
    (void)device;
    for (uint64_t r = 0; r < words[3] >> 32; r++) {
        for (uint64_t c = 0; c < (uint32_t)words[3]; c++) {
            float *to = &out[r * (words[4] >> 32) + c * (uint32_t)words[4]];
            float x = a[r * (words[5] >> 32) + c * (uint32_t)words[5]];
            float y = b ? b[r * (words[6] >> 32) + c * (uint32_t)words[6]] : scalar;
            switch (words[7] >> 32) {
            case TH_ADD: *to = x + y; break;
            case TH_MUL: *to = x * y; break;
            default: *to = y; break;
            }
        }
    }
}

static inline void th_kernel_random(md_device *device, const uint64_t *words) {
    float *out = md_memory(words[0]);
    uint64_t *cell = md_memory(words[2]);
    (void)device;
    for (uint64_t i = 0; i < words[1]; i++) {
        uint64_t z = cell[0] + ++cell[1] * 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        out[i] = (float)((z ^ z >> 31) >> 40) / (float)(1u << 24);
    }
}

/* Up to 14 floats, in the words. */
static inline void th_kernel_store(md_device *device, const uint64_t *words) {
    (void)device;
    memcpy(md_memory(words[0]), &words[2], words[1]);
}

/* Why the tensor cannot be used, if so. */
static inline rondo_status th_usable(const th_tensor *x) {
    if (!x || !x->storage) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "this is not a tensor");
    if (x->storage->poisoned) return RONDO__FAIL(STALE, TREE, "%s", x->storage->message);
    return x->storage->lease ? rondo_tree_lease_check(x->storage->lease, x->storage->epoch) : RONDO_OK;
}

static inline uint64_t th_data(const th_tensor *x) {
    return x->storage && x->storage->pointer ? x->storage->pointer + x->offset : 0;
}

/* to = a (operation) b, or (operation) scalar where b is null */
static inline rondo_status th_apply(md_stream *stream, th_op operation, const th_tensor *to, const th_tensor *a,
                                    const th_tensor *b, float scalar) {
    md_call call = {.kernel = th_kernel, .addresses = b ? 7u : 3u};
    uint32_t bits;
    RONDO__TRY(th_usable(to));
    RONDO__TRY(th_usable(a));
    if (b) RONDO__TRY(th_usable(b));
    if (!th_elements(to)) return RONDO_OK;
    memcpy(&bits, &scalar, sizeof bits);
    const uint64_t words[] = {th_data(to),    th_data(a),    b ? th_data(b) : 0,    th_rows(to),
                              th_strides(to), th_strides(a), b ? th_strides(b) : 0, th_pair(operation, bits)};
    memcpy(call.words, words, sizeof words);
    return md_launch(stream, &call);
}

/* ------------------------------------------------------------------------------------------------- the machine */

typedef struct th_frame {
    th_host *h;
    const rondo_tree_run_context *context;
    th_model *model;
    th_tensor *registers[TH_REGISTERS];
    void **outputs;
    uint32_t returned, output_count;
} th_frame;

static inline rondo_status th_step_arithmetic(th_frame *f, const th_step *s, th_tensor **out) {
    md_stream *stream = f->context->stream;
    th_tensor *a = f->registers[s->a], *b = f->registers[s->b], form;
    float scalar = s->scalar;
    if (!a) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%s: there is no input there", f->model->name);
    switch (s->op) {
    case TH_ADDS_IN: return th_apply(stream, TH_ADD, a, a, NULL, scalar);
    case TH_COPY_IN: return th_apply(stream, TH_END, a, a, b, 0);
    case TH_ADDN: scalar = (float)b->number; break;
    case TH_ADDH: scalar = *(const float *)md_memory(th_data(b)); break;
    default: break;
    }
    form = th_form(a);
    if (form.rank) th_shape(&form, form.rank == 2 ? form.shape[0] : 0, form.shape[form.rank - 1]);
    RONDO__TRY(th_empty_like(f->h, stream, &form, out));
    if (s->op == TH_RANDOM) {
        md_call call = {th_kernel_random, {th_data(*out), th_elements(*out), md_address(&f->h->cell)}, 5u};
        return md_launch(stream, &call);
    }
    bool two = s->op == TH_ADD || s->op == TH_MUL, times = s->op == TH_MUL || s->op == TH_MULS;
    return th_apply(stream, times ? TH_MUL : TH_ADD, *out, a, two ? b : NULL, scalar);
}

static inline rondo_status th_step_side(th_frame *f, const th_step *s, th_tensor **out) {
    md_device *d = f->h->device;
    md_stream *stream = f->context->stream, *side = f->h->side;
    RONDO__TRY(md_stream_wait(d, side, stream));
    RONDO__TRY(th_empty_like(f->h, side, f->registers[s->a], out));
    RONDO__TRY(th_apply(side, TH_ADD, *out, f->registers[s->a], NULL, s->scalar));
    return md_stream_wait(d, stream, side);
}

static inline rondo_status th_step_view(th_frame *f, const th_step *s, th_tensor **out) {
    th_tensor *a = f->registers[s->a], form = th_form(a);
    if (s->op == TH_VIEW) {
        form.shape[form.rank - 1] -= s->index;
        form.offset += (uint64_t)s->index * sizeof(float);
    } else {
        form.rank = 2;
        form.shape[0] = s->index;
        form.shape[1] = a->shape[0];
        form.strides[0] = 0;
        form.strides[1] = a->strides[0];
    }
    return th_alias(f->h, a->storage, &form, out);
}

/* New memory for the storage, as resize_ does. */
static inline rondo_status th_resize(th_host *h, md_stream *stream, th_tensor *x, uint64_t floats) {
    uint64_t pointer;
    RONDO__TRY(md_allocate(h->device, stream, floats * sizeof(float), &pointer));
    th_storage_end(h, x->storage);
    th_lock(h);
    x->storage->pointer = pointer;
    x->storage->bytes = floats * sizeof(float);
    x->storage->owner = true;
    x->storage->poisoned = false;
    th_unlock(h);
    x->offset = 0;
    th_shape(x, 0, (int64_t)floats);
    return RONDO_OK;
}

static inline rondo_status th_step_other(th_frame *f, const th_step *s, th_tensor **out) {
    th_host *h = f->h;
    md_stream *stream = f->context->stream;
    th_tensor *a = f->registers[s->a];
    switch (s->op) {
    case TH_SAME: *out = th_keep(h, a); return RONDO_OK;
    case TH_CONSTANT: *out = th_keep(h, f->model->constants[s->index]); return RONDO_OK;
    case TH_NUMBER: return th_number(h, s->index, out);
    case TH_EMPTY: return s->index ? th_in_host(h, true, 0, out) : th_compact(h, stream, 0, 0, out);
    case TH_HOST: return th_in_host(h, false, s->scalar, out);
    case TH_DROP:
        f->registers[s->a] = NULL;
        th_drop(h, a);
        return RONDO_OK;
    case TH_KEEP:
        if (f->model->kept_count < TH_LIST) f->model->kept[f->model->kept_count++] = th_keep(h, a);
        return RONDO_OK;
    case TH_RESIZE: return th_resize(h, stream, a, (uint64_t)s->index);
    case TH_SYNC: return md_synchronize(h->device, stream);
    case TH_BREAK:
        if (stream->capture) stream->capture->invalid = true;
        return RONDO_OK;
    case TH_FAIL:
        if (!(s->index >> f->context->phase & 1)) return RONDO_OK;
        return RONDO__FAIL(KERNEL_FAILED, KERNEL, "%s fails on purpose", f->model->name);
    case TH_CALL: {
        void *input = th_keep(h, a), *output = NULL;
        rondo_status status = rondo_tree_run(f->context->tree, (uint32_t)s->index, stream, &input, 1, &output, 1);
        *out = output;
        return status;
    }
    case TH_RETURN:
        if (f->returned == f->output_count) return RONDO__FAIL(OUT_OF_RANGE, INPUT, "too many outputs");
        f->outputs[f->returned++] = th_keep(h, a);
        return RONDO_OK;
    default: return RONDO_OK; /* TH_NOTHING */
    }
}

static inline rondo_status th_step_run(th_frame *f, const th_step *s) {
    th_tensor *out = NULL;
    rondo_status status;
    if (s->op <= TH_ADDH || s->op == TH_RANDOM) status = th_step_arithmetic(f, s, &out);
    else if (s->op == TH_SIDE) status = th_step_side(f, s, &out);
    else if (s->op == TH_VIEW || s->op == TH_EXPAND) status = th_step_view(f, s, &out);
    else status = th_step_other(f, s, &out);
    if (status) {
        th_drop(f->h, out);
        return status;
    }
    if (out || s->op == TH_NOTHING) {
        th_drop(f->h, f->registers[s->out]);
        f->registers[s->out] = out;
    }
    return RONDO_OK;
}

static inline rondo_status th_run(void *user, const rondo_tree_run_context *context, void **inputs,
                                  uint32_t input_count, void **outputs, uint32_t output_count) {
    th_host *h = user;
    th_frame f = {
        .h = h, .context = context, .model = context->model, .outputs = outputs, .output_count = output_count};
    for (uint32_t i = 0; i < input_count; i++) {
        f.registers[i] = inputs[i];
        inputs[i] = NULL;
    }
    for (uint32_t i = 0; i < output_count; i++) outputs[i] = NULL;
    rondo_status status = tt_fault(h->faults, TT_FAULT_RUN);
    if (!status) {
        f.model->runs[context->phase]++;
        __atomic_store_n(&h->last_phase, context->phase, __ATOMIC_RELAXED); /* plain calls run side by side */
        __atomic_store_n(&h->last_stream, context->stream, __ATOMIC_RELAXED);
    }
    for (uint32_t i = 0; i < TH_STEPS && f.model->steps[i].op && !status; i++)
        status = th_step_run(&f, &f.model->steps[i]);
    for (uint32_t i = 0; i < TH_REGISTERS; i++) th_drop(h, f.registers[i]);
    for (uint32_t i = 0; i < f.returned && status; i++) {
        th_drop(h, outputs[i]);
        outputs[i] = NULL;
    }
    return status;
}

/* ---------------------------------------------------------------------------------------- the host of the tree */

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
    if (h->in_release) h->called_back++;
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
    rondo_status status = th_empty_like(h, stream, like, &x);
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
    md_lock(h->device);
    for (uint64_t i = 0; i < count && !status; i++) {
        const th_tensor *from = copies[i].tensor;
        uint64_t bytes = th_extent(from);
        if (bytes != copies[i].bytes || th_data(from) != copies[i].source)
            md_wrong(h->device, "a copy of something else");
        status = md_copy_one(stream, copies[i].destination, th_data(from), bytes);
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
    RONDO__TRY(th_empty_like(h, stream, tensor, &x));
    md_lock(h->device);
    rondo_status status = md_copy_one(stream, th_data(x), th_data(tensor), th_extent(x));
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
    RONDO__TRY(md_allocate(h->device, stream, bytes, &fresh));
    md_lock(h->device);
    rondo_status status = md_copy_one(stream, fresh, pointer, bytes);
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

/* -------------------------------------------------------------------------------------------------------- host */

static inline void th_open(th_host *h, md_device *device, tt_faults *faults, bool weak) {
    pthread_mutexattr_t attributes;
    *h = (th_host){.faults = faults, .device = device, .weak = weak, .cell = {17, 0}};
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
