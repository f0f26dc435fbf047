/* SPDX-License-Identifier: Apache-2.0
 *
 * Models of the model framework: a few lines of arithmetic as data, and the machine that runs them. */
#ifndef RONDO_SRC_TREE_MODELS_TESTING_H
#define RONDO_SRC_TREE_MODELS_TESTING_H

#include "tree/tensors_testing.h"

#define TH_STEPS 24u
#define TH_REGISTERS 24u
#define TH_LIST 8u

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
    TH_ADDH_IN,  /* a, a tensor in host memory, += scalar, by the host and at once */
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
#define P_ADDH_IN(a, scalar) \
    { TH_ADDH_IN, 0, a, 0, scalar, 0 }
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
    call.bytes[0] = th_extent(to);
    call.bytes[1] = th_extent(a);
    call.bytes[2] = b ? th_extent(b) : 0;
    return md_launch(stream, &call);
}

/* ------------------------------------------------------------------------------------------------- the machine */

typedef struct th_frame {
    th_host *h;
    const rondo_tree_run_context *context;
    md_stream *stream; /* the context's */
    th_model *model;
    th_tensor *registers[TH_REGISTERS];
    void **outputs;
    uint32_t returned, output_count;
} th_frame;

static inline rondo_status th_step_arithmetic(th_frame *f, const th_step *s, th_tensor **out) {
    md_stream *stream = f->stream;
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
        md_call call = {.kernel = th_kernel_random, .addresses = 5u, .bytes = {th_extent(*out), 0, 16}};
        call.words[0] = th_data(*out);
        call.words[1] = th_elements(*out);
        call.words[2] = md_address(f->h->cell);
        return md_launch(stream, &call);
    }
    bool two = s->op == TH_ADD || s->op == TH_MUL, times = s->op == TH_MUL || s->op == TH_MULS;
    return th_apply(stream, times ? TH_MUL : TH_ADD, *out, a, two ? b : NULL, scalar);
}

static inline rondo_status th_step_side(th_frame *f, const th_step *s, th_tensor **out) {
    md_device *d = f->h->device;
    md_stream *stream = f->stream, *side = f->h->side;
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
    md_stream *stream = f->stream;
    th_tensor *a = f->registers[s->a];
    switch (s->op) {
    case TH_SAME: *out = th_keep(h, a); return RONDO_OK;
    case TH_CONSTANT: *out = th_keep(h, f->model->constants[s->index]); return RONDO_OK;
    case TH_NUMBER: return th_number(h, s->index, out);
    case TH_EMPTY: return s->index ? th_in_host(h, true, 0, out) : th_compact(h, stream, 0, 0, out);
    case TH_HOST: return th_in_host(h, false, s->scalar, out);
    case TH_ADDH_IN: *(float *)md_memory(th_data(a)) += s->scalar; return RONDO_OK;
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
        if (stream->native) RONDO__IGNORE(rondo_stream_synchronize(stream->native)); /* which a capture forbids */
        return RONDO_OK;
    case TH_FAIL:
        if (!(s->index >> f->context->phase & 1)) return RONDO_OK;
        return RONDO__FAIL(KERNEL_FAILED, KERNEL, "%s fails on purpose", f->model->name);
    case TH_CALL: {
        void *input = th_keep(h, a), *output = NULL;
        rondo_status status =
            rondo_tree_run(f->context->tree, (uint32_t)s->index, f->context->stream, &input, 1, &output, 1);
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
    f.stream = md_of_handle(h->device, context->stream);
    if (!f.stream) status = rondo__status_first(status, th_no_memory());
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

#endif
