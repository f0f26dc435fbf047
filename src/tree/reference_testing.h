/* SPDX-License-Identifier: Apache-2.0
 *
 * What models give when they are called, on plain arrays: no device, no streams, no leases, no tree. Storages are counted
 * pieces of a fixed field, so that nothing here asks for memory. Kernels work in the same order, element by element, on
 * the same numbers as those of the model framework, so that values are equal to the bit. */
#ifndef RONDO_SRC_TREE_REFERENCE_TESTING_H
#define RONDO_SRC_TREE_REFERENCE_TESTING_H

#include "tree/models_testing.h"

#define RR_STORAGES 128u
#define RR_FLOATS 3072u

typedef enum rr_kind { RR_NOTHING, RR_DEVICE, RR_HOST, RR_NUMBER } rr_kind;

typedef struct rr_storage {
    uint64_t refs, count; /* tensors; floats */
    uint64_t born;        /* rr_memory.now when it was made */
    bool lasting;         /* no tree ever takes its memory */
    bool unknown;         /* somebody failed while he wrote to it */
    bool stale;           /* its tensors were seen to be stale */
    float data[RR_FLOATS];
} rr_storage;

/* Counted by whoever has one. */
typedef struct rr_tensor {
    rr_kind kind;
    rr_storage *storage; /* null: a number, or nothing */
    int64_t number;
    uint64_t offset; /* elements */
    int32_t rank;
    int64_t shape[TH_RANK], strides[TH_RANK];
} rr_tensor;

typedef struct rr_memory {
    rr_storage storages[RR_STORAGES];
    uint64_t now;         /* counts steps and whatever else may end what outputs live on */
    bool full;            /* the field was too small: nothing that follows means anything */
    uint64_t seed, drawn; /* of random numbers */
} rr_memory;

/* ----------------------------------------------------------------------------------------------------- tensors */

static inline rr_tensor rr_keep(rr_tensor x) {
    if (x.storage) x.storage->refs++;
    return x;
}

static inline void rr_drop(rr_tensor *x) {
    if (x->storage) x->storage->refs--;
    *x = (rr_tensor){.kind = RR_NOTHING};
}

static inline uint64_t rr_elements(const rr_tensor *x) {
    uint64_t count = x->storage ? 1 : 0;
    for (int32_t i = 0; i < x->rank; i++) count *= (uint64_t)x->shape[i];
    return count;
}

/* Element i, counted row by row. */
static inline float *rr_at(const rr_tensor *x, uint64_t i) {
    if (x->rank == 0) return &x->storage->data[x->offset];
    uint64_t columns = (uint64_t)x->shape[x->rank - 1], row = i / columns, column = i % columns;
    uint64_t at = x->offset + column * (uint64_t)x->strides[x->rank - 1];
    if (x->rank == 2) at += row * (uint64_t)x->strides[0];
    return &x->storage->data[at];
}

/* Compact; rows 0: rank 1. */
static inline rr_tensor rr_new(rr_memory *m, int64_t rows, int64_t columns) {
    rr_tensor x = {.kind = RR_DEVICE, .rank = rows ? 2 : 1, .shape = {rows ? rows : columns, columns}};
    x.strides[0] = rows ? columns : 1;
    x.strides[1] = 1;
    for (uint32_t i = 0; i < RR_STORAGES && !x.storage; i++)
        if (!m->storages[i].refs) x.storage = &m->storages[i];
    uint64_t count = (uint64_t)(rows ? rows * columns : columns);
    if (!x.storage || count > RR_FLOATS) {
        m->full = true;
        x.storage = &m->storages[RR_STORAGES - 1u];
        x.storage->refs++;
        return x;
    }
    x.storage->refs = 1;
    x.storage->count = count;
    x.storage->born = m->now;
    x.storage->lasting = x.storage->unknown = x.storage->stale = false;
    return x;
}

static inline rr_tensor rr_number(int64_t value) { return (rr_tensor){.kind = RR_NUMBER, .number = value}; }

static inline rr_tensor rr_in_host(rr_memory *m, bool empty, float value) {
    rr_tensor x = rr_new(m, 0, empty ? 0 : 1);
    x.kind = RR_HOST;
    x.rank = empty;
    x.storage->data[0] = value;
    x.storage->lasting = true;
    return x;
}

static inline rr_tensor rr_view(rr_tensor a, int64_t first) {
    a.shape[a.rank - 1] -= first;
    a.offset += (uint64_t)first;
    return rr_keep(a);
}

static inline rr_tensor rr_expand(rr_tensor a, int64_t times) {
    a.rank = 2;
    a.shape[1] = a.shape[0];
    a.strides[1] = a.strides[0];
    a.shape[0] = times;
    a.strides[0] = 0;
    return rr_keep(a);
}

/* The same values in memory of its own, strides and all. */
static inline rr_tensor rr_copy(rr_memory *m, rr_tensor a) {
    if (!a.storage) return a;
    rr_tensor x = rr_new(m, 0, (int64_t)(a.storage->count - a.offset));
    memcpy(x.storage->data, &a.storage->data[a.offset], x.storage->count * sizeof(float));
    x.storage->unknown = a.storage->unknown;
    rr_storage *storage = x.storage;
    x = a;
    x.storage = storage;
    x.offset = 0;
    return x;
}

/* -------------------------------------------------------------------------------------------------- arithmetic */

/* to = a (operation) b, or scalar where b is null */
static inline void rr_apply(th_op operation, rr_tensor to, rr_tensor a, const rr_tensor *b, float scalar) {
    to.storage->unknown = to.storage->unknown || a.storage->unknown || (b && b->storage->unknown);
    for (uint64_t i = 0, count = rr_elements(&to); i < count; i++) {
        float x = *rr_at(&a, i), y = b ? *rr_at(b, i) : scalar;
        *rr_at(&to, i) = operation == TH_ADD ? x + y : operation == TH_MUL ? x * y : y;
    }
}

/* The generator of the model framework, from its description: a seed and how many were drawn. */
static inline void rr_random(rr_memory *m, rr_tensor to) {
    for (uint64_t i = 0, count = rr_elements(&to); i < count; i++) {
        uint64_t z = m->seed + ++m->drawn * 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        *rr_at(&to, i) = (float)((z ^ z >> 31) >> 40) / (float)(1u << 24);
    }
}

/* --------------------------------------------------------------------------------------------------- the calls */

typedef struct rr_frame {
    rr_memory *memory;
    const th_model *models; /* what TH_CALL counts in */
    const th_model *model;
    const rr_tensor *constants; /* TH_LIST a model */
    rr_tensor registers[TH_REGISTERS];
    rr_tensor *outputs;
    uint32_t returned;
} rr_frame;

static inline bool rr_run(rr_memory *m, const th_model *models, const rr_tensor *constants, uint32_t index, bool fails,
                          const rr_tensor *inputs, rr_tensor *outputs);

static inline rr_tensor rr_arithmetic(rr_frame *f, const th_step *s) {
    rr_tensor a = f->registers[s->a], b = f->registers[s->b];
    float scalar = s->scalar;
    if (s->op == TH_ADDN) scalar = (float)b.number;
    if (s->op == TH_ADDH) scalar = *rr_at(&b, 0);
    bool two = s->op == TH_ADD || s->op == TH_MUL, times = s->op == TH_MUL || s->op == TH_MULS;
    rr_tensor out = rr_new(f->memory, a.rank == 2 ? a.shape[0] : 0, a.shape[a.rank - 1]);
    if (s->op == TH_RANDOM) rr_random(f->memory, out);
    else rr_apply(times ? TH_MUL : TH_ADD, out, a, two ? &b : NULL, scalar);
    return out;
}

/* False: the step fails. */
static inline bool rr_step(rr_frame *f, const th_step *s, bool fails) {
    rr_tensor a = f->registers[s->a], out = {.kind = RR_NOTHING};
    switch (s->op) {
    case TH_ADDS_IN: rr_apply(TH_ADD, a, a, NULL, s->scalar); return true;
    case TH_COPY_IN: rr_apply(TH_END, a, a, &f->registers[s->b], 0); return true;
    case TH_FAIL: return !fails;
    case TH_RETURN: f->outputs[f->returned++] = rr_keep(a); return true;
    case TH_DROP: rr_drop(&f->registers[s->a]); return true;
    case TH_KEEP:
    case TH_SYNC:
    case TH_BREAK: return true;
    case TH_VIEW: out = rr_view(a, s->index); break;
    case TH_EXPAND: out = rr_expand(a, s->index); break;
    case TH_SAME: out = rr_keep(a); break;
    case TH_CONSTANT: out = rr_keep(f->constants[s->index]); break;
    case TH_NUMBER: out = rr_number(s->index); break;
    case TH_NOTHING: break;
    case TH_EMPTY: out = s->index ? rr_in_host(f->memory, true, 0) : rr_new(f->memory, 0, 0); break;
    case TH_HOST: out = rr_in_host(f->memory, false, s->scalar); break;
    case TH_CALL:
        if (!rr_run(f->memory, f->models, f->constants - (size_t)(f->model - f->models) * TH_LIST, (uint32_t)s->index,
                    fails, &a, &out))
            return false;
        break;
    default: out = rr_arithmetic(f, s); break;
    }
    rr_drop(&f->registers[s->out]);
    f->registers[s->out] = out;
    return true;
}

/* One call of models[index]. `fails`: it meets its TH_FAIL. False: it failed, and there are no outputs; what it had written
 * by then is written. */
static inline bool rr_run(rr_memory *m, const th_model *models, const rr_tensor *constants, uint32_t index, bool fails,
                          const rr_tensor *inputs, rr_tensor *outputs) {
    const th_model *model = &models[index];
    rr_frame f = {.memory = m, .models = models, .model = model, .outputs = outputs};
    bool good = true;
    f.constants = constants + (size_t)index * TH_LIST;
    for (uint32_t i = 0; i < model->inputs; i++) f.registers[i] = rr_keep(inputs[i]);
    for (uint32_t i = 0; i < model->outputs; i++) outputs[i] = (rr_tensor){.kind = RR_NOTHING};
    for (uint32_t i = 0; i < TH_STEPS && model->steps[i].op && good; i++) good = rr_step(&f, &model->steps[i], fails);
    for (uint32_t i = 0; i < TH_REGISTERS; i++) rr_drop(&f.registers[i]);
    for (uint32_t i = 0; i < f.returned && !good; i++) rr_drop(&outputs[i]);
    for (uint32_t i = 0; i < model->owned_count && good; i++) {
        rr_tensor *owned = &outputs[model->owned[i]];
        if (owned->kind != RR_DEVICE) continue;
        rr_tensor copy = rr_copy(m, *owned);
        copy.storage->lasting = true;
        rr_drop(owned);
        *owned = copy;
    }
    return good;
}

#endif
