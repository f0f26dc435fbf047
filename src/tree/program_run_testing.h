/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a program (program_testing.h) on a tree and, beside it, on plain arrays, and compares after every action: values,
 * which tensors share memory, who may be stale, what the pool holds; at the end that nothing is left over. How tensors are
 * made, read and dropped is the kit's. */
#ifndef RONDO_SRC_TREE_PROGRAM_RUN_TESTING_H
#define RONDO_SRC_TREE_PROGRAM_RUN_TESTING_H

#include <stdarg.h>

#include "harness/harness.h"
#include "tree/host_testing.h"
#include "tree/ops_testing.h"
#include "tree/program_testing.h"

typedef struct rp_world rp_world;

typedef struct rp_look {
    rr_kind kind;
    int64_t number;
    int32_t rank;
    int64_t shape[TH_RANK], strides[TH_RANK];
    const void *storage;
} rp_look;

/* A framework of tensors, from outside. Tensors are references; those that make one give one. */
typedef struct rp_kit {
    const char *name;
    uint64_t segment;                    /* bytes that a pool grows by */
    rondo_status (*open)(rp_world *w);   /* the instance and the rest */
    rondo_status (*tables)(rp_world *w); /* of a tree */
    void (*close)(rp_world *w);          /* all that open made; finds what was left over */
    void (*model)(rp_world *w, uint32_t index, rondo_tree_function *function); /* sets what the host runs */
    rondo_status (*make)(rp_world *w, int64_t count, float first, void **out); /* rp_ramp */
    rondo_status (*wide)(rp_world *w, void *row, void **out);                  /* twice, as a stride of 0 */
    rondo_status (*number)(rp_world *w, int64_t value, void **out);
    rondo_status (*in_host)(rp_world *w, float value, void **out);
    rondo_status (*empty)(rp_world *w, void **out);
    rondo_status (*add)(rp_world *w, void *x, float scalar); /* in place */
    rondo_status (*view)(rp_world *w, void *x, void **out);  /* from element 1 on */
    rondo_status (*fresh)(rp_world *w, void *x, float scalar, void **out);
    rondo_status (*resize)(rp_world *w, void *x, float first); /* null: it does not do that */
    void *(*keep)(rp_world *w, void *x);
    void (*drop)(rp_world *w, void *x);
    void (*look)(rp_world *w, void *x, rp_look *out);
    rondo_status (*usable)(rp_world *w, void *x);
    rondo_status (*read)(rp_world *w, void *x, float *values);
    void (*turn)(rp_world *w);          /* to the other stream */
    rondo_status (*order)(rp_world *w); /* what comes on this stream goes behind what the other has */
    /* What is wrong with the pool, or with how the device was used; null: nothing. */
    const char *(*account)(rp_world *w, const rondo_tree_info *info);
    uint64_t (*drawn)(rp_world *w); /* random numbers so far */
} rp_kit;

#define RP_COUNTS 10u
typedef struct rp_totals {
    uint64_t counts[RP_COUNTS]; /* see rp_tally */
    uint64_t reasons[RONDO_TREE_REASON_COUNT];
} rp_totals;

typedef struct rp_variable_slot {
    void *tensor; /* null: nothing, or not there */
    rr_tensor reference;
    bool there;
} rp_variable_slot;

struct rp_world {
    const rp_kit *kit;
    rondo_test *t; /* null, or: allocations may fail */
    FILE *print;   /* not null: what is done, as a test */
    rp_totals *tally;
    rp_program *program;
    rr_memory *memory;
    bool weak, every; /* every: all is looked at after every action */
    bool troubled;
    bool unordered;    /* the stream does not wait yet for what the other has: the tree's next call sees to that */
    void *called_on;   /* the stream of the tree's last call */
    uint32_t at;       /* the action */
    char failure[600]; /* empty: none */

    rondo_allocator allocator;
    int64_t bytes; /* of the instance's that are in use */
    rondo_instance *instance;
    rondo_graph_ops ops;
    rondo_tensor_host table;
    rondo_tree *tree;
    void *stream;
    uint64_t ticks;
    th_model models[RP_FUNCTIONS];
    uint32_t ids[RP_FUNCTIONS];
    bool removed[RP_FUNCTIONS];
    rr_tensor constants[RP_FUNCTIONS * TH_LIST];
    rp_variable_slot slots[RP_SLOTS];

    /* Of the model framework: */
    tt_faults faults;
    md_device device;
    th_host host;
    md_stream *other;
    void *native; /* of another kit */
};

/* ------------------------------------------------------------------------------------------------------- ends */

static inline void rp_fail(rp_world *w, const char *format, ...) RONDO_PRINTF(2, 3);
static inline void rp_fail(rp_world *w, const char *format, ...) {
    va_list arguments;
    if (w->failure[0]) return;
    va_start(arguments, format);
    (void)vsnprintf(w->failure, sizeof w->failure, format, arguments);
    va_end(arguments);
}

static inline void rp_say(rp_world *w, const char *format, ...) RONDO_PRINTF(2, 3);
static inline void rp_say(rp_world *w, const char *format, ...) {
    va_list arguments;
    if (!w->print) return;
    va_start(arguments, format);
    (void)vfprintf(w->print, format, arguments);
    va_end(arguments);
}

/* Whether somebody was made to fail since the last time. */
static inline bool rp_noticed(rp_world *w) {
    bool fired = w->faults.fired || (w->t && rondo_test_failing(w->t));
    w->faults.fired = false;
    if (!fired) return false;
    w->troubled = true;
    w->memory->now++; /* outputs may have been given up */
    return true;
}

/* True when it succeeded. A failure that was brought about is none of the tree's. */
static inline bool rp_good(rp_world *w, rondo_status status, const char *what) {
    char text[400];
    if (!status) return true;
    rondo_code code = rondo_status_code(status);
    bool made = code == RONDO_CODE_DEVICE_LOST || code == RONDO_CODE_OUT_OF_MEMORY;
    (void)rondo_status_format(status, text, sizeof text);
    rondo_status_release(status);
    if (!made || !rp_noticed(w)) rp_fail(w, "%s failed: %s", what, text);
    return false;
}

static inline void rp_clear(rp_world *w, rp_variable_slot *slot) {
    if (slot->there && slot->tensor) w->kit->drop(w, slot->tensor);
    rr_drop(&slot->reference);
    *slot = (rp_variable_slot){.there = false};
}

static inline void rp_put(rp_world *w, uint32_t index, void *tensor, rr_tensor reference) {
    rp_clear(w, &w->slots[index]);
    w->slots[index] = (rp_variable_slot){tensor, reference, true};
}

/* Before anybody but the tree uses the stream. */
static inline bool rp_ready(rp_world *w) {
    if (w->tree && w->program->options.flushes && !rp_good(w, rondo_tree_flush(w->tree), "flushing")) return false;
    if (w->unordered && !rp_good(w, w->kit->order(w), "ordering streams")) return false;
    w->unordered = false;
    return true;
}

/* ------------------------------------------------------------------------------------------------------- looks */

static inline bool rp_may_be_stale(const rp_world *w, const rr_storage *s) {
    bool moved = w->program->options.conflict == RONDO_TREE_CONFLICT_COPY;
    return !s->lasting && s->born < w->memory->now && (!moved || w->troubled);
}

static inline void rp_check_stale(rp_world *w, uint32_t index, rondo_status status) {
    rr_storage *s = w->slots[index].reference.storage;
    char text[400];
    (void)rondo_status_format(status, text, sizeof text);
    bool named = strstr(text, "overwritten by a subsequent run") || strstr(text, "has been given back");
    if (rondo_status_code(status) != RONDO_CODE_STALE) rp_fail(w, "v[%u] cannot be read: %s", index, text);
    else if (!named && !w->troubled) rp_fail(w, "v[%u] is stale, and is not told why: %s", index, text);
    else if (!rp_may_be_stale(w, s)) rp_fail(w, "v[%u] is stale too early: %s", index, text);
    s->stale = true;
    rondo_status_release(status);
}

static inline void rp_check_values(rp_world *w, uint32_t index) {
    static float values[RR_FLOATS];
    rp_variable_slot *slot = &w->slots[index];
    rr_storage *s = slot->reference.storage;
    rondo_status status = w->kit->read(w, slot->tensor, values);
    if (status && rondo_status_code(status) != RONDO_CODE_STALE) {
        (void)rp_good(w, status, "reading");
        return;
    }
    if (status) {
        rp_check_stale(w, index, status);
        return;
    }
    if (s->stale) rp_fail(w, "v[%u] was stale and is not any more", index);
    for (uint64_t i = 0, count = rr_elements(&slot->reference); i < count && !s->unknown; i++) {
        float want = *rr_at(&slot->reference, i);
        if (memcmp(&want, &values[i], sizeof want) == 0 || (isnan(want) && isnan(values[i]))) continue;
        rp_fail(w, "v[%u] has %g as element %llu of %llu, not %g", index, (double)values[i], (unsigned long long)i,
                (unsigned long long)count, (double)want);
    }
}

static inline void rp_check_slot(rp_world *w, uint32_t index) {
    rp_variable_slot *slot = &w->slots[index];
    const rr_tensor *r = &slot->reference;
    rp_look look = {.kind = RR_NOTHING};
    if (!slot->there) return;
    w->kit->look(w, slot->tensor, &look);
    if (look.kind != r->kind) {
        rp_fail(w, "v[%u] is of kind %d, not %d", index, (int)look.kind, (int)r->kind);
        return;
    }
    if (r->kind == RR_NUMBER && look.number != r->number)
        rp_fail(w, "v[%u] is %lld, not %lld", index, (long long)look.number, (long long)r->number);
    if (!r->storage) return;
    bool same = look.rank == r->rank;
    for (int32_t i = 0; i < r->rank && same; i++)
        same = look.shape[i] == r->shape[i] && (r->shape[i] <= 1 || look.strides[i] == r->strides[i]);
    if (!same) rp_fail(w, "v[%u] has another form than the call that made it gives", index);
    else rp_check_values(w, index);
}

/* Who has memory in common. */
static inline void rp_check_sharing(rp_world *w) {
    rp_look looks[RP_SLOTS];
    for (uint32_t i = 0; i < RP_SLOTS; i++) {
        const rp_variable_slot *a = &w->slots[i];
        if (a->there) w->kit->look(w, a->tensor, &looks[i]);
        for (uint32_t k = 0; k < i; k++) {
            const rp_variable_slot *b = &w->slots[k];
            if (!a->there || !b->there || !a->reference.storage || !b->reference.storage) continue;
            if (a->reference.storage->stale || b->reference.storage->stale) continue;
            if (!rr_elements(&a->reference) || !rr_elements(&b->reference)) continue;
            if (a->reference.kind == RR_HOST) continue; /* frameworks may copy those that are owned, or not */
            bool want = a->reference.storage == b->reference.storage, got = looks[i].storage == looks[k].storage;
            if (want != got) rp_fail(w, "v[%u] and v[%u] are %son one storage", k, i, got ? "" : "not ");
        }
    }
}

static inline void rp_check_all(rp_world *w) {
    if (!rp_ready(w)) return;
    for (uint32_t i = 0; i < RP_SLOTS; i++) rp_check_slot(w, i);
    rp_check_sharing(w);
}

/* What the tree says, among what is done. */
static inline void rp_log(void *user, rondo_log_level level, const char *text) {
    if (level < RONDO_LOG_DEBUG) return;
    rp_say(user, "    /* %s */\n", text);
}

static inline void rp_check_pool(rp_world *w) {
    rondo_tree_info info = RONDO_TREE_INFO_INIT;
    if (!w->tree || !rp_good(w, rondo_tree_get_info(w->tree, &info), "the info")) return;
    static const char *const states[] = {"nothing", "warming", "recording", "executing"};
    rp_say(
        w,
        "    /* %s, depth %u, %llu alive; so far %llu direct, %llu warm-ups, %llu records, %llu replays, %llu sealed */\n",
        states[info.state], info.depth, (unsigned long long)info.live, (unsigned long long)info.directs,
        (unsigned long long)info.warmups, (unsigned long long)info.records, (unsigned long long)info.replays,
        (unsigned long long)info.sealed);
    const char *wrong = w->kit->account(w, &info);
    if (wrong) rp_fail(w, "state %d: %s", (int)info.state, wrong);
}

/* -------------------------------------------------------------------------------------------------------- tree */

static inline uint64_t rp_clock(void *user) {
    rp_world *w = user;
    return w->ticks += 1u + w->ticks * 7u % 5u;
}

static inline void rp_add_function(rp_world *w, uint32_t index) {
    rondo_tree_function f = RONDO_TREE_FUNCTION_INIT;
    const rp_function *from = &w->program->functions[index];
    const th_model *m = &w->models[index];
    f.mode = m->mode;
    f.name = from->name;
    f.input_count = m->inputs;
    f.output_count = m->outputs;
    f.static_inputs = m->statics;
    f.static_count = m->static_count;
    f.mutated_inputs = m->mutated;
    f.mutated_count = m->mutated_count;
    f.constants = (void *const *)m->constants;
    f.constant_count = from->undeclared ? 0 : m->constant_count;
    f.owned_outputs = m->owned;
    f.owned_count = m->owned_count;
    f.skip = m->skip;
    f.simple = from->simple;
    w->kit->model(w, index, &f);
    w->removed[index] = !rp_good(w, rondo_tree_add_function(w->tree, &f, &w->ids[index]), "adding a function");
}

static inline bool rp_open_tree(rp_world *w) {
    const rp_options *o = &w->program->options;
    rondo_tree_options options = RONDO_TREE_OPTIONS_INIT;
    options.type = w->kit->name;
    options.ops = &w->ops;
    options.host = &w->table;
    options.record_after = o->record_after;
    options.always_warm_up = o->always_warm_up;
    options.rerecord_limit = o->rerecord_limit;
    options.size_limit = o->size_limit;
    options.recording_limit = o->recording_limit;
    options.loop_limit = o->loop_limit;
    options.seal_after = o->seal_after;
    options.cost_samples = o->cost_samples;
    options.strict = o->strict;
    options.check_pool = o->check_pool;
    options.conflict = (rondo_tree_conflict)o->conflict;
    options.byte_limit = o->byte_limit * w->kit->segment;
    options.clock = rp_clock;
    options.clock_user = w;
    w->tree = NULL;
    if (!rp_good(w, w->kit->tables(w), "the tables")) return false;
    if (!rp_good(w, rondo_tree_open(w->instance, &options, &w->tree), "opening the tree")) return false;
    for (uint32_t i = 0; i < w->program->function_count; i++) rp_add_function(w, i);
    return true;
}

/* What is alive now stays so. */
static inline void rp_tally(rp_world *w);
static inline void rp_last(rp_world *w) {
    for (uint32_t i = 0; i < RP_SLOTS && !w->troubled; i++) {
        rr_storage *s = w->slots[i].reference.storage;
        if (!s || s->lasting) continue;
        rondo_status status = w->kit->usable(w, w->slots[i].tensor);
        s->lasting = !status;
        rondo_status_release(status);
    }
}

/* -------------------------------------------------------------------------------------------------------- call */

typedef struct rp_calling {
    const rp_action *a;
    const th_model *model;
    uint32_t function;
    int64_t n;
    void *in[TH_REGISTERS], *out[TH_REGISTERS];
    rr_tensor inputs[TH_REGISTERS], outputs[TH_REGISTERS];
    bool stale, broken;
    char text[TH_REGISTERS][48];
} rp_calling;

static inline bool rp_usable_as_input(const rr_tensor *r, rp_input kind, int64_t n) {
    if (kind == RP_IN_HOST) return r->kind == RR_HOST && !r->rank;
    if (r->kind != RR_DEVICE) return false;
    if (kind == RP_WIDE) return r->rank == 2 && !r->strides[0] && r->shape[0] == 2 && r->shape[1] == n;
    if (r->rank != 1 || r->strides[0] != 1 || r->shape[0] != n) return false;
    for (uint64_t i = 0; i < (uint64_t)n; i++) /* not without bounds */
        if (!(fabsf(*rr_at(r, i)) < 1e6f)) return false;
    return true;
}

static inline int64_t rp_size_of_call(const rp_world *w, const rp_calling *c) {
    if (c->a->size) return c->a->size;
    for (uint32_t i = 0; i < c->model->inputs; i++) {
        uint32_t index = c->a->in[i] & RP_SLOT_MASK;
        if (w->program->functions[c->a->f].inputs[i] != RP_FULL || index >= RP_SLOTS) continue;
        const rp_variable_slot *slot = &w->slots[index];
        if (!slot->there || slot->reference.kind != RR_DEVICE || slot->reference.rank != 1) continue;
        if (slot->reference.shape[0] >= 4) return slot->reference.shape[0];
    }
    return 4;
}

static inline void rp_ramp(float *values, int64_t n, float first) {
    for (int64_t i = 0; i < n; i++) values[i] = first + (float)(i % 64);
}

static inline rr_tensor rr_ramp(rr_memory *m, int64_t n, float first) {
    rr_tensor x = rr_new(m, 0, n);
    if (!m->full) rp_ramp(x.storage->data, n, first);
    x.storage->lasting = true;
    return x;
}

static inline void rp_fresh_input(rp_world *w, rp_calling *c, uint32_t i, rp_input kind) {
    const rp_kit *kit = w->kit;
    float first = (float)(c->a->value + 10 * (int)i);
    rondo_status status = RONDO_OK;
    rr_memory *m = w->memory;
    void *row = NULL;
    rr_tensor narrow;
    bool flushes = w->program->options.flushes && kind != RP_NUMBER && kind != RP_NONE;
    if (flushes && !rp_good(w, rondo_tree_flush(w->tree), "flushing")) c->broken = true;
    switch (kind) {
    case RP_NUMBER:
        status = kit->number(w, c->a->value, &c->in[i]);
        c->inputs[i] = rr_number(c->a->value);
        break;
    case RP_IN_HOST:
        status = kit->in_host(w, (float)c->a->value, &c->in[i]);
        c->inputs[i] = rr_in_host(m, false, (float)c->a->value);
        break;
    case RP_NONE: break;
    case RP_EMPTY:
        status = kit->empty(w, &c->in[i]);
        c->inputs[i] = rr_new(m, 0, 0);
        break;
    case RP_WIDE:
        narrow = rr_ramp(m, c->n, first);
        c->inputs[i] = rr_expand(narrow, 2);
        rr_drop(&narrow);
        status = kit->make(w, c->n, first, &row);
        if (!status) status = kit->wide(w, row, &c->in[i]);
        if (row) kit->drop(w, row);
        break;
    default:
        c->inputs[i] = rr_ramp(m, c->n, first);
        status = kit->make(w, c->n, first, &c->in[i]);
        break;
    }
    long long size = c->n;
    if (kind == RP_NONE) (void)snprintf(c->text[i], sizeof c->text[i], "NULL");
    else if (kind == RP_EMPTY) (void)snprintf(c->text[i], sizeof c->text[i], "empty(&w)");
    else if (kind == RP_NUMBER) (void)snprintf(c->text[i], sizeof c->text[i], "tt_number(&w, %d)", c->a->value);
    else if (kind == RP_IN_HOST) (void)snprintf(c->text[i], sizeof c->text[i], "tt_in_host(&w, %d)", c->a->value);
    else if (kind == RP_WIDE) (void)snprintf(c->text[i], sizeof c->text[i], "wide(&w, %lld, %g)", size, (double)first);
    else (void)snprintf(c->text[i], sizeof c->text[i], "tt_new_of(&w, 0, %lld, %g)", size, (double)first);
    if (!rp_good(w, status, "making an input")) c->broken = true;
}

/* Memory that the function writes must be nobody else's in the call. */
static inline bool rp_overlaps(const rp_world *w, const rp_calling *c, uint32_t index, const rr_tensor *r) {
    const th_model *m = c->model;
    bool mutates = false;
    for (uint32_t k = 0; k < m->mutated_count; k++) mutates = mutates || m->mutated[k] == index;
    for (uint32_t i = 0; i < index; i++) {
        bool other = false;
        for (uint32_t k = 0; k < m->mutated_count; k++) other = other || m->mutated[k] == i;
        if ((mutates || other) && c->inputs[i].storage == r->storage) return true;
    }
    for (uint32_t k = 0; k < TH_LIST && mutates; k++)
        if (w->constants[c->function * TH_LIST + k].storage == r->storage) return true;
    return false;
}

static inline void rp_choose_input(rp_world *w, rp_calling *c, uint32_t i) {
    rp_input kind = w->program->functions[c->a->f].inputs[i];
    uint32_t index = c->a->in[i] & RP_SLOT_MASK;
    rp_variable_slot *slot = index < RP_SLOTS ? &w->slots[index] : NULL;
    bool fits =
        slot && slot->there && slot->reference.storage && kind != RP_NUMBER && kind != RP_NONE && kind != RP_EMPTY;
    fits = fits && rp_usable_as_input(&slot->reference, kind, c->n) && !rp_overlaps(w, c, i, &slot->reference);
    rondo_status status = fits ? w->kit->usable(w, slot->tensor) : RONDO_OK;
    bool stale = status != RONDO_OK;
    rondo_status_release(status);
    if (!fits || (stale && !(c->a->in[i] & RP_STALE))) {
        rp_fresh_input(w, c, i, kind);
        return;
    }
    c->stale = c->stale || stale;
    c->inputs[i] = rr_keep(slot->reference);
    c->in[i] = w->kit->keep(w, slot->tensor);
    bool give = (c->a->in[i] & RP_GIVE) != 0;
    (void)snprintf(c->text[i], sizeof c->text[i], give ? "give(&v[%u])" : "tt_keep(&w, v[%u])", index);
    if (give) rp_clear(w, slot);
}

/* Inputs that came from an ended path were copied for the call: what was written to them, and outputs on them, are the
 * copies'. Nobody can tell but by the storage, for the old ones are stale. */
static inline void rp_move_home(rp_world *w, rp_calling *c, uint32_t j) {
    rr_storage *s = c->outputs[j].storage;
    rp_look mine = {.kind = RR_NOTHING}, other = {.kind = RR_NOTHING};
    if (!s || s->lasting || c->outputs[j].kind != RR_DEVICE) return;
    w->kit->look(w, c->out[j], &mine);
    for (uint32_t i = 0; i < RP_SLOTS; i++) {
        if (!w->slots[i].there || w->slots[i].reference.storage != s) continue;
        w->kit->look(w, w->slots[i].tensor, &other);
        if (other.storage == mine.storage) continue;
        rondo_status status = w->kit->usable(w, w->slots[i].tensor);
        if (rondo_status_code(status) != RONDO_CODE_STALE) {
            rp_fail(w, "output %u is not on the storage of v[%u]", j, i);
            rondo_status_release(status);
            return;
        }
        rondo_status_release(status);
        rr_tensor moved = rr_copy(w->memory, c->outputs[j]);
        moved.offset = c->outputs[j].offset;
        memcpy(moved.storage->data, s->data, s->count * sizeof(float));
        moved.storage->count = s->count;
        for (uint32_t k = j; k < c->model->outputs; k++) {
            if (c->outputs[k].storage != s) continue;
            w->kit->look(w, c->out[k], &other);
            if (other.storage != mine.storage) continue;
            s->refs--;
            c->outputs[k].storage = moved.storage;
            moved.storage->refs++;
        }
        rr_drop(&moved);
        return;
    }
}

/* The non-tree path hands out the same tensors at each call: what lay on them before has what the call gave. */
static inline void rp_overwrite(rp_world *w, rp_calling *c) {
    for (uint32_t j = 0; j < c->model->outputs; j++) {
        rr_storage *s = c->outputs[j].storage;
        rp_look mine = {.kind = RR_NOTHING}, other = {.kind = RR_NOTHING};
        if (!s || c->outputs[j].kind != RR_DEVICE || !s->count) continue;
        s->lasting = true;
        w->kit->look(w, c->out[j], &mine);
        for (uint32_t i = 0; i < RP_SLOTS; i++) {
            rr_tensor *r = &w->slots[i].reference;
            if (!w->slots[i].there || r->kind != RR_DEVICE || r->storage == s) continue;
            w->kit->look(w, w->slots[i].tensor, &other);
            if (other.storage != mine.storage || r->storage->count != s->count) continue;
            r->storage->refs--;
            r->storage = s;
            s->refs++;
        }
    }
}

static inline void rp_take_outputs(rp_world *w, rp_calling *c) {
    const th_model *m = c->model;
    if (w->memory->full) return;
    if (w->program->functions[c->function].simple) rp_overwrite(w, c);
    for (uint32_t j = 0; j < m->outputs; j++) rp_move_home(w, c, j);
    for (uint32_t j = 0; j < m->outputs; j++) {
        uint32_t to = c->a->out[j] & RP_SLOT_MASK;
        if (to < RP_SLOTS) {
            rp_put(w, to, c->out[j], c->outputs[j]);
            rp_say(w, "    tt_drop(&w, v[%u]);\n    v[%u] = y[%u];\n", to, to, j);
            continue;
        }
        rp_say(w, "    tt_drop(&w, y[%u]);\n", j);
        if (c->out[j]) w->kit->drop(w, c->out[j]);
        rr_drop(&c->outputs[j]);
    }
}

/* The call failed: is it as it should be? */
static inline void rp_failed_call(rp_world *w, rp_calling *c, rondo_status status) {
    const rp_function *f = &w->program->functions[c->function];
    rondo_code code = rondo_status_code(status);
    char text[400];
    (void)rondo_status_format(status, text, sizeof text);
    rondo_status_release(status);
    for (uint32_t i = 0; i < c->model->outputs; i++)
        if (c->out[i]) rp_fail(w, "a call failed and has output %u: %s", i, text);
    if (code == RONDO_CODE_STALE && c->stale) return;
    if (code == RONDO_CODE_NOT_FOUND && w->removed[c->function]) return;
    if (code == RONDO_CODE_UNSUPPORTED && w->program->options.strict) return;
    if (code == RONDO_CODE_KERNEL_FAILED && f->fails) {
        (void)rr_run(w->memory, w->models, w->constants, c->function, true, c->inputs, c->outputs);
        return;
    }
    bool made = code == RONDO_CODE_DEVICE_LOST || code == RONDO_CODE_OUT_OF_MEMORY;
    if (!made || !rp_noticed(w)) {
        rp_fail(w, "a call of %s failed: %s", f->name, text);
        return;
    }
    for (uint32_t i = 0; i < c->model->mutated_count; i++) {
        rr_tensor *x = &c->inputs[c->model->mutated[i]];
        if (x->storage) x->storage->unknown = true;
    }
    w->memory->drawn = w->kit->drawn(w);
}

static inline void rp_say_call(rp_world *w, const rp_calling *c) {
    rp_say(w, "    status = tt_try(&w, id[%u], ", c->function);
    if (!c->model->inputs) rp_say(w, "0, NULL");
    else rp_say(w, "TT_IN(");
    for (uint32_t i = 0; i < c->model->inputs; i++) rp_say(w, "%s%s", i ? ", " : "", c->text[i]);
    rp_say(w, "%s, %u, y);\n", c->model->inputs ? ")" : "", c->model->outputs);
}

static inline void rp_say_end(rp_world *w, rondo_status status) {
    char name[32] = "";
    const char *code = rondo_code_name(rondo_status_code(status));
    for (size_t i = 0; code[i] && i + 1u < sizeof name; i++)
        name[i] = (char)(code[i] == ' ' ? '_' : code[i] - (code[i] >= 'a' && code[i] <= 'z' ? 'a' - 'A' : 0));
    if (status) rp_say(w, "    T_FAILS(t, status, %s, NULL);\n", name);
    else rp_say(w, "    T_OK(t, status);\n");
}

static inline void rp_do_call(rp_world *w, const rp_action *a) {
    rp_calling c = {.a = a, .function = a->f, .model = &w->models[a->f]};
    const rp_function *f = &w->program->functions[a->f];
    c.n = rp_size_of_call(w, &c);
    for (uint32_t i = 0; i < c.model->inputs; i++) rp_choose_input(w, &c, i);
    bool ready = !c.broken && !w->memory->full;
    if (ready) {
        rp_say_call(w, &c);
        rondo_status status =
            rondo_tree_run(w->tree, w->ids[a->f], w->stream, c.in, c.model->inputs, c.out, c.model->outputs);
        rp_say_end(w, status);
        if (status) (void)rp_ready(w);
        else w->unordered = false;
        w->called_on = w->stream;
        for (uint32_t i = 0; i < c.model->inputs; i++)
            if (c.in[i]) rp_fail(w, "input %u was not consumed", i);
        if (status) {
            rp_failed_call(w, &c, status);
        } else {
            if (c.stale) rp_fail(w, "a stale input was taken");
            if (f->fails == 7u) rp_fail(w, "%s fails whatever the phase, and succeeded", f->name);
            (void)rp_noticed(w);
            (void)rr_run(w->memory, w->models, w->constants, c.function, false, c.inputs, c.outputs);
            rp_take_outputs(w, &c);
        }
    }
    for (uint32_t i = 0; i < c.model->inputs; i++) {
        if (c.in[i]) w->kit->drop(w, c.in[i]);
        rr_drop(&c.inputs[i]);
    }
}

/* ----------------------------------------------------------------------------------------------------- actions */

static inline void rp_do_new(rp_world *w, const rp_action *a) {
    void *x = NULL;
    rp_say(w, "    tt_drop(&w, v[%u]);\n    v[%u] = tt_new_of(&w, 0, %u, %d);\n", a->slot, a->slot, a->size, a->value);
    if (!rp_good(w, w->kit->make(w, a->size, a->value, &x), "making a tensor")) return;
    rp_put(w, a->slot, x, rr_ramp(w->memory, a->size, (float)a->value));
}

/* What one does with a tensor outside of trees. */
static inline void rp_do_eager(rp_world *w, const rp_action *a) {
    rp_variable_slot *slot = &w->slots[a->slot];
    rr_tensor *r = &slot->reference, made = {.kind = RR_NOTHING};
    void *x = NULL;
    rondo_status status = RONDO_OK;
    if (!slot->there || r->kind != RR_DEVICE || r->rank != 1 || r->shape[0] < 2) return;
    if (a->what != RP_VIEW && a->what != RP_SHARE) status = w->kit->usable(w, slot->tensor);
    if (status) {
        rp_check_stale(w, a->slot, status);
        return;
    }
    switch ((rp_what)a->what) {
    case RP_ADD:
        rp_say(w, "    tt_eager_add(&w, v[%u], %d);\n", a->slot, a->value);
        if (rp_good(w, w->kit->add(w, slot->tensor, a->value), "adding")) rr_apply(TH_ADD, *r, *r, NULL, a->value);
        return;
    case RP_RESIZE:
        if (!w->kit->resize || r->storage->refs > 1) return; /* others would lie on memory that is shorter */
        rp_say(w, "    resize(&w, v[%u], %d);\n", a->slot, a->value);
        if (!rp_good(w, w->kit->resize(w, slot->tensor, a->value), "resizing")) return;
        made = rr_ramp(w->memory, r->shape[0], a->value);
        rr_drop(r);
        *r = made;
        return;
    case RP_SHARE:
        rp_say(w, "    x = tt_keep(&w, v[%u]);\n", a->slot);
        x = w->kit->keep(w, slot->tensor);
        made = rr_keep(*r);
        break;
    case RP_VIEW:
        rp_say(w, "    x = tt_eager(&w, (th_step)P_VIEW(1, 0, 1), v[%u]);\n", a->slot);
        status = w->kit->view(w, slot->tensor, &x);
        made = rr_view(*r, 1);
        break;
    default:
        rp_say(w, "    x = tt_eager(&w, (th_step)P_ADDS(1, 0, %d), v[%u]);\n", a->value, a->slot);
        status = w->kit->fresh(w, slot->tensor, a->value, &x);
        made = rr_new(w->memory, 0, r->shape[0]);
        rr_apply(TH_ADD, made, *r, NULL, a->value);
        made.storage->lasting = true;
        break;
    }
    if (!rp_good(w, status, "an operation outside")) {
        rr_drop(&made);
        return;
    }
    rp_say(w, "    tt_drop(&w, v[%u]);\n    v[%u] = x;\n", a->to, a->to);
    rp_put(w, a->to, x, made);
}

static inline void rp_do_constant(rp_world *w, const rp_action *a) {
    th_model *m = &w->models[a->f];
    if (!m->constant_count || !m->constants[0]) return;
    rp_say(w, "    tt_eager_add(&w, f%u.constants[0], %d);\n", a->f, a->value);
    rr_tensor r = w->constants[a->f * TH_LIST];
    if (rp_good(w, w->kit->add(w, m->constants[0], a->value), "adding to a constant"))
        rr_apply(TH_ADD, r, r, NULL, a->value);
}

static inline void rp_do_reopen(rp_world *w) {
    rp_say(w, "    rondo_tree_release(w.tree);\n    tt_start(&w); /* and all functions again */\n");
    rp_last(w);
    rp_tally(w);
    rondo_tree_release(w->tree);
    w->tree = NULL;
    (void)rp_noticed(w);
    (void)rp_open_tree(w);
}

static inline void rp_do_function(rp_world *w, const rp_action *a) {
    bool again = a->what == RP_AGAIN;
    if (w->removed[a->f] != again || w->program->functions[a->f].called) return;
    if (again) {
        rp_say(w, "    id[%u] = tt_add(&w, &f%u);\n", a->f, a->f);
        rp_add_function(w, a->f);
    } else {
        rp_say(w, "    T_OK(t, rondo_tree_remove_function(w.tree, id[%u]));\n", a->f);
        w->removed[a->f] = rp_good(w, rondo_tree_remove_function(w->tree, w->ids[a->f]), "removing a function");
    }
}

static inline void rp_do_reset(rp_world *w) {
    rp_say(w, "    T_OK(t, rondo_tree_reset(w.tree));\n");
    rp_last(w);
    (void)rp_good(w, rondo_tree_reset(w->tree), "reset");
}

static inline void rp_do_step(rp_world *w, const rp_action *a) {
    bool counts = !w->program->options.no_generation;
    if (a->what == RP_MARK) rondo_tree_mark_step(w->tree);
    if (a->what == RP_INVOKE && counts && w->host.generation >= 0) w->host.generation++;
    if (a->what == RP_HOST_MARK && counts) w->host.generation = w->host.generation < 0 ? w->host.generation - 1 : -1;
    if (a->what == RP_MARK) rp_say(w, "    rondo_tree_mark_step(w.tree);\n");
    else if (counts) rp_say(w, a->what == RP_INVOKE ? "    tt_invocation(&w);\n" : "    tt_mark(&w);\n");
    if (a->what == RP_MARK || counts) w->memory->now++;
}

/* The tree waits for what the stream of its last call has; for the rest the caller does. */
static inline void rp_do_stream(rp_world *w) {
    bool known = w->called_on == w->stream && !w->unordered;
    if (!known && !rp_ready(w)) return;
    rp_say(w, "    other_stream(&w, %s);\n", known ? "false" : "true");
    w->kit->turn(w);
    w->unordered = true;
    if (!known) (void)rp_ready(w);
}

static inline void rp_do(rp_world *w, const rp_action *a) {
    bool eager = a->what >= RP_NEW && a->what <= RP_CONSTANT && a->what != RP_DROP && a->what != RP_SHARE;
    if (!w->tree) return;
    if (eager && !rp_ready(w)) return;
    switch ((rp_what)a->what) {
    case RP_CALL: rp_do_call(w, a); break;
    case RP_NEW: rp_do_new(w, a); break;
    case RP_DROP:
        if (w->slots[a->slot].there) rp_say(w, "    tt_drop(&w, v[%u]);\n    v[%u] = NULL;\n", a->slot, a->slot);
        rp_clear(w, &w->slots[a->slot]);
        break;
    case RP_SHARE:
    case RP_ADD:
    case RP_VIEW:
    case RP_EAGER:
    case RP_RESIZE: rp_do_eager(w, a); break;
    case RP_CONSTANT: rp_do_constant(w, a); break;
    case RP_MARK:
    case RP_INVOKE:
    case RP_HOST_MARK: rp_do_step(w, a); break;
    case RP_BACKWARD:
        rp_say(w, "    rondo_tree_set_running_backward(w.tree);\n");
        rondo_tree_set_running_backward(w->tree);
        break;
    case RP_REMOVE:
    case RP_AGAIN: rp_do_function(w, a); break;
    case RP_RESET: rp_do_reset(w); break;
    case RP_STREAM: rp_do_stream(w); break;
    case RP_REOPEN: rp_do_reopen(w); break;
    case RP_FAULT:
        rp_say(w, "    w.faults.entry = TT_FAULT_%s;\n    w.faults.nth = %u;\n", tt_fault_name((tt_fault_entry)a->f),
               a->size);
        w->faults.entry = (tt_fault_entry)a->f;
        w->faults.nth = a->size;
        break;
    default: rp_check_all(w); break;
    }
    (void)rp_noticed(w);
}

/* ----------------------------------------------------------------------------------------------- the whole run */

/* Whether a recording of it may fail: it does what a capture does not bear, or leaves what a replay cannot make. */
static inline bool rp_troubles(const rp_world *w, uint32_t index, bool *out_keeps) {
    const rp_function *f = &w->program->functions[index];
    bool troubles = (f->fails & 4u) != 0;
    *out_keeps = false;
    for (uint32_t i = 0; i < TH_STEPS; i++) {
        const th_op op = f->model.steps[i].op;
        troubles = troubles || op == TH_SYNC || op == TH_BREAK || op == TH_HOST;
        bool gives = op == TH_RETURN || op == TH_SAME; /* an input in host memory cannot be made again */
        if (gives && f->model.steps[i].a < f->model.inputs)
            troubles = troubles || f->inputs[f->model.steps[i].a] == RP_IN_HOST;
        *out_keeps = *out_keeps || op == TH_KEEP;
    }
    return troubles;
}

/* What happened to the tree's functions, before it goes. */
static inline void rp_tally(rp_world *w) {
    rondo_tree_info info = RONDO_TREE_INFO_INIT;
    if (!w->tree || !rp_good(w, rondo_tree_get_info(w->tree, &info), "the info")) return;
    const uint64_t counts[] = {info.directs,     info.warmups, info.records, info.replays,   info.sealed,
                               info.checkpoints, info.steps,   info.carried, info.evacuated, info.evicted};
    for (uint32_t i = 0; i < RP_COUNTS; i++) w->tally->counts[i] += counts[i];
    for (uint32_t i = 0; i < w->program->function_count; i++) {
        rondo_tree_function_info f = RONDO_TREE_FUNCTION_INFO_INIT;
        bool keeps;
        if (w->removed[i] || !rp_good(w, rondo_tree_get_function_info(w->tree, w->ids[i], &f), "a function's info"))
            continue;
        for (uint32_t r = 0; r < RONDO_TREE_REASON_COUNT; r++) w->tally->reasons[r] += f.reasons[r];
        bool troubles = rp_troubles(w, i, &keeps);
        if (w->troubled) continue;
        if (f.stopped == RONDO_TREE_REASON_REJECTED && !troubles)
            rp_fail(w, "f%u was rejected, and nothing is wrong with it", i);
        if (f.stopped == RONDO_TREE_REASON_UNTRACKED && !keeps) rp_fail(w, "f%u keeps nothing, and is said to", i);
    }
}

static inline void *rp_reallocate(void *self, void *pointer, size_t old_size, size_t new_size, size_t alignment) {
    rp_world *w = self;
    rondo_allocator under = rondo_allocator_default();
    void *result = under.reallocate(under.self, pointer, old_size, new_size, alignment);
    if (result || !new_size) w->bytes += (int64_t)new_size - (int64_t)old_size;
    return result;
}

static inline void rp_begin(rp_world *w) {
    for (uint32_t i = 0; i < w->program->function_count; i++) {
        rp_function *f = &w->program->functions[i];
        w->models[i] = f->model;
        w->models[i].name = f->name;
        w->models[i].constant_count = f->constants;
        for (uint32_t k = 0; k < f->constants; k++) {
            void *x = NULL;
            rr_tensor r = rr_ramp(w->memory, RP_CONSTANT_FLOATS, 1);
            w->constants[i * TH_LIST + k] = r;
            if (rp_good(w, w->kit->make(w, RP_CONSTANT_FLOATS, 1, &x), "making a constant"))
                w->models[i].constants[k] = x;
            else w->memory->full = true;
        }
    }
}

static inline void rp_end(rp_world *w) {
    w->faults.nth = 0;
    w->at = UINT32_MAX;
    if (w->tree && !w->memory->full) rp_check_all(w);
    rp_tally(w);
    if (w->program->options.release_first && w->tree) {
        rp_last(w);
        rondo_tree_release(w->tree);
        w->tree = NULL;
        if (!w->memory->full) rp_check_all(w);
    }
    for (uint32_t i = 0; i < RP_SLOTS; i++) rp_clear(w, &w->slots[i]);
    if (w->tree) rp_check_pool(w);
    rondo_tree_release(w->tree);
    w->tree = NULL;
    for (uint32_t i = 0; i < RP_FUNCTIONS * TH_LIST; i++) {
        th_model *m = &w->models[i / TH_LIST];
        rr_drop(&w->constants[i]);
        if (m->constants[i % TH_LIST]) w->kit->drop(w, m->constants[i % TH_LIST]);
        m->constants[i % TH_LIST] = NULL;
    }
}

/* The failure is in w->failure; the action in w->at. */
static inline void rp_run(rp_world *w, const rp_kit *kit, rp_program *program, rondo_test *t, FILE *print) {
    static rr_memory memory;
    static rp_totals totals;
    for (uint32_t i = 0; i < RR_STORAGES; i++) memory.storages[i].refs = 0;
    memory.now = 1;
    memory.full = false;
    memory.seed = 17;
    memory.drawn = 0;
    totals = (rp_totals){.counts = {0}};
    *w = (rp_world){.kit = kit, .t = t, .print = print, .program = program, .memory = &memory, .tally = &totals};
    w->every = program->seed % 2 == 0;
    w->allocator = (rondo_allocator){w, rp_reallocate};
    if (rp_good(w, kit->open(w), "opening")) {
        rp_begin(w);
        (void)(!memory.full && rp_open_tree(w));
        for (w->at = 0; w->at < program->action_count && !w->failure[0] && !memory.full; w->at++) {
            rp_do(w, &program->actions[w->at]);
            if (w->every && w->tree) rp_check_all(w);
            rp_check_pool(w);
            (void)rp_noticed(w);
            if (w->failure[0]) break;
        }
        uint32_t at = w->at;
        bool failed = w->failure[0] != 0;
        rp_end(w);
        if (failed) w->at = at;
    }
    kit->close(w);
    if (w->bytes) rp_fail(w, "%lld bytes of the instance's were not freed", (long long)w->bytes);
    for (uint32_t i = 0; i < RR_STORAGES && !memory.full && !w->failure[0]; i++)
        if (memory.storages[i].refs) rp_fail(w, "the reference itself leaks");
}

#endif
