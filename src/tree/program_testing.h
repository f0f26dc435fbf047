/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs: functions that somebody might compile, and what a caller might do with them and their outputs. Every
 * action means something in every condition (an input that does not fit is made afresh, what is not there is not
 * dropped), so that a program stays one when actions are taken out. */
#ifndef RONDO_SRC_TREE_PROGRAM_TESTING_H
#define RONDO_SRC_TREE_PROGRAM_TESTING_H

#include "tree/reference_testing.h"

#define RP_SLOTS 12u
#define RP_PARAMETERS 3u /* the first slots: inputs that rarely move */
#define RP_FUNCTIONS 6u
#define RP_ACTIONS 1500u
#define RP_IO 5u
#define RP_CONSTANT_FLOATS 4

typedef enum rp_input { RP_FULL, RP_WIDE, RP_NUMBER, RP_IN_HOST, RP_NONE, RP_EMPTY } rp_input;

typedef enum rp_what {
    RP_CALL,      /* f, with `in`, into `out` */
    RP_NEW,       /* slot = a tensor of `size` floats, value, value + 1, ... */
    RP_DROP,      /* slot */
    RP_SHARE,     /* to = slot, the same tensor */
    RP_ADD,       /* slot += value, by whoever has it */
    RP_VIEW,      /* to = slot from element 1 on */
    RP_EAGER,     /* to = slot + value */
    RP_RESIZE,    /* slot's storage gets other memory */
    RP_CONSTANT,  /* constant 0 of f += value */
    RP_MARK,      /* rondo_tree_mark_step */
    RP_INVOKE,    /* the framework begins an invocation of compiled code */
    RP_HOST_MARK, /* somebody marks a step in the framework */
    RP_BACKWARD,  /* rondo_tree_set_running_backward */
    RP_REMOVE,    /* f */
    RP_AGAIN,     /* f is added again */
    RP_RESET,     /* rondo_tree_reset */
    RP_STREAM,    /* the caller goes on on its other stream */
    RP_REOPEN,    /* the tree goes, another is opened */
    RP_FAULT,     /* the size'th call from now on of entry f of the device or the framework fails */
    RP_CHECK,     /* all values are looked at */
    RP_WHATS
} rp_what;

#define RP_FRESH 15u /* no slot: a new tensor; an output that is dropped at once */
#define RP_SLOT_MASK 15u
#define RP_GIVE (1u << 7)  /* the slot's reference is given away */
#define RP_STALE (1u << 6) /* although it may be stale */

typedef struct rp_action {
    uint8_t what, f, slot, to;
    uint8_t in[RP_IO], out[RP_IO];
    uint16_t size; /* of a call: 0: that of its first tensor */
    int16_t value;
} rp_action;

typedef struct rp_function {
    th_model model; /* constants are made when it runs */
    uint8_t inputs[RP_IO];
    uint32_t constants;
    bool undeclared; /* its constants are nobody's business but its own */
    uint8_t fails;   /* phases in which it does */
    bool called;     /* from another: stays */
    bool simple;     /* the non-tree path */
    char name[16];
} rp_function;

typedef struct rp_options {
    uint32_t record_after, always_warm_up, rerecord_limit, size_limit, recording_limit, loop_limit, seal_after;
    uint32_t cost_samples, strict, check_pool, conflict, byte_limit;
    bool no_generation, rebind, children, flushes, serial, release_first;
} rp_options;

typedef struct rp_program {
    uint64_t seed;
    bool faulty, calm; /* calm: nothing but what is meant to be graphed */
    rp_options options;
    uint32_t function_count, action_count;
    rp_function functions[RP_FUNCTIONS];
    rp_action actions[RP_ACTIONS];
} rp_program;

/* ------------------------------------------------------------------------------------------------------ chance */

typedef struct rp_dice {
    uint64_t state;
} rp_dice;

static inline uint64_t rp_draw(rp_dice *d) {
    uint64_t z = d->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static inline uint32_t rp_below(rp_dice *d, uint32_t limit) { return (uint32_t)(rp_draw(d) % limit); }
static inline bool rp_percent(rp_dice *d, uint32_t percent) { return rp_below(d, 100) < percent; }
/* The index of one of `count` weights. */
static inline uint32_t rp_pick(rp_dice *d, const uint8_t *weights, uint32_t count) {
    uint32_t sum = 0, at = 0;
    for (uint32_t i = 0; i < count; i++) sum += weights[i];
    uint32_t drawn = rp_below(d, sum);
    while (drawn >= weights[at]) drawn -= weights[at++];
    return at;
}

/* --------------------------------------------------------------------------------------------------- functions */

/* What a register has, as far as it can be said beforehand: lengths are n - cut of the call's n, or a constant's. */
typedef struct rp_register {
    rp_input kind;
    bool constant, wide; /* wide: some elements are one */
    uint8_t cut, rows;
    uint8_t group; /* registers that may share memory */
    bool writable, returned, there;
} rp_register;

typedef struct rp_making {
    rp_dice *dice;
    rp_program *program;
    rp_function *f;
    uint32_t index, steps;
    rp_register registers[TH_REGISTERS];
    uint8_t count, groups;
} rp_making;

static inline void rp_emit(rp_making *m, th_step step) { m->f->model.steps[m->steps++] = step; }

/* A register of the kind; `like` not null: of the same form. TH_REGISTERS: none. */
static inline uint8_t rp_choose(rp_making *m, rp_input kind, const rp_register *like, bool writable) {
    uint8_t fit[TH_REGISTERS], count = 0;
    for (uint8_t i = 0; i < m->count; i++) {
        const rp_register *r = &m->registers[i];
        if (!r->there || r->kind != kind || (writable && (!r->writable || r->wide))) continue;
        if (like && (r->constant != like->constant || r->cut != like->cut || r->rows != like->rows)) continue;
        fit[count++] = i;
    }
    if (!count) return TH_REGISTERS;
    /* The later ones more often, so that steps build on each other. */
    uint32_t a = rp_below(m->dice, count), b = rp_below(m->dice, count);
    return fit[a > b ? a : b];
}

static inline uint8_t rp_out(rp_making *m, rp_register r) {
    r.there = true;
    m->registers[m->count] = r;
    return m->count++;
}

static inline rp_register rp_fresh_like(rp_making *m, const rp_register *a) {
    rp_register r = *a;
    r.kind = RP_FULL;
    r.wide = r.returned = false;
    r.writable = true;
    r.group = m->groups++;
    return r;
}

static inline float rp_scalar(rp_dice *d) {
    static const float scalars[] = {1, -1, 2, 0.5f, 3, -2, 0.25f, 10};
    return scalars[rp_below(d, 8)];
}

/* One tensor in, one tensor of the same form out, and nothing that depends on how it is called. */
static inline bool rp_callable(const rp_function *f) {
    const th_model *model = &f->model;
    if (model->inputs != 1 || model->outputs != 1 || f->inputs[0] != RP_FULL || f->fails) return false;
    if (model->mutated_count || model->owned_count || model->skip || f->constants || f->simple) return false;
    if (model->steps[0].op > TH_MUL) return false;
    for (uint32_t i = 0; i < TH_STEPS && model->steps[i].op; i++) {
        const th_step *s = &model->steps[i];
        if (s->op == TH_RETURN ? !s->a : s->op > TH_ADDS_IN) return false;
    }
    return true;
}

static inline void rp_make_call(rp_making *m, uint8_t a) {
    uint32_t start = rp_below(m->dice, RP_FUNCTIONS);
    for (uint32_t i = 0; i < m->index; i++) {
        rp_function *callee = &m->program->functions[(start + i) % m->index];
        if (!rp_callable(callee)) continue;
        callee->called = true;
        uint8_t out = rp_out(m, rp_fresh_like(m, &m->registers[a]));
        rp_emit(m, (th_step){TH_CALL, out, a, 0, 0, (start + i) % m->index});
        return;
    }
}

static inline void rp_make_arithmetic(rp_making *m, uint8_t a) {
    static const uint8_t weights[] = {6, 3, 4, 2};
    const rp_register *ra = &m->registers[a];
    th_op op = (th_op)(TH_ADDS + rp_pick(m->dice, weights, 4));
    uint8_t b = op == TH_ADD || op == TH_MUL ? rp_choose(m, RP_FULL, ra, false) : a;
    uint8_t out = rp_out(m, rp_fresh_like(m, ra));
    rp_emit(m, (th_step){op, out, a, b, rp_scalar(m->dice), 0});
}

static inline void rp_make_in_place(rp_making *m) {
    uint8_t a = rp_choose(m, RP_FULL, NULL, true);
    if (a == TH_REGISTERS) return;
    uint8_t b = rp_choose(m, RP_FULL, &m->registers[a], false);
    if (rp_percent(m->dice, 60)) rp_emit(m, (th_step)P_ADDS_IN(a, rp_scalar(m->dice)));
    else rp_emit(m, (th_step)P_COPY_IN(a, b));
}

static inline void rp_make_view(rp_making *m, uint8_t a) {
    rp_register r = m->registers[a];
    bool expand = !r.rows && rp_percent(m->dice, 25);
    if (!expand && r.cut >= 2) return;
    r.returned = false;
    if (expand) {
        r.rows = 2;
        r.wide = true;
    } else {
        r.cut++;
    }
    uint8_t out = rp_out(m, r);
    if (expand) rp_emit(m, (th_step)P_EXPAND(out, a, 2));
    else rp_emit(m, (th_step)P_VIEW(out, a, 1));
}

/* Numbers, tensors in host memory, nothing, tensors without elements, constants. */
static inline void rp_make_odd(rp_making *m, uint8_t a) {
    static const uint8_t weights[] = {3, 3, 3, 3, 1, 1, 6};
    uint32_t what = rp_pick(m->dice, weights, 7);
    uint8_t b;
    if (a == TH_REGISTERS && what < 2) return;
    switch (what) {
    case 0:
        b = rp_choose(m, RP_NUMBER, NULL, false);
        if (b != TH_REGISTERS) rp_emit(m, (th_step)P_ADDN(rp_out(m, rp_fresh_like(m, &m->registers[a])), a, b));
        break;
    case 1:
        b = rp_choose(m, RP_IN_HOST, NULL, false);
        if (b != TH_REGISTERS) rp_emit(m, (th_step)P_ADDH(rp_out(m, rp_fresh_like(m, &m->registers[a])), a, b));
        break;
    case 2: rp_emit(m, (th_step)P_NUMBER(rp_out(m, (rp_register){.kind = RP_NUMBER, .group = 201}), 7)); break;
    case 3: rp_emit(m, (th_step)P_EMPTY(rp_out(m, (rp_register){.kind = RP_EMPTY, .group = 201}), 0)); break;
    case 4: rp_emit(m, (th_step)P_EMPTY(rp_out(m, (rp_register){.kind = RP_EMPTY, .group = 201}), 1)); break;
    case 5:
        if (m->program->calm) return;
        rp_emit(m, (th_step)P_HOST(rp_out(m, (rp_register){.kind = RP_EMPTY, .group = 201}), 5));
        break;
    default:
        if (!m->f->constants) return;
        b = (uint8_t)rp_below(m->dice, m->f->constants);
        rp_emit(m, (th_step)P_CONSTANT(rp_out(m, (rp_register){.kind = RP_FULL, .constant = true, .group = 200}), b));
        break;
    }
}

static inline void rp_make_step(rp_making *m) {
    static const uint8_t weights[] = {40, 8, 12, 3, 10, 3, 3, 4, 3, 1};
    uint8_t a = rp_choose(m, RP_FULL, NULL, false);
    if (m->count >= TH_REGISTERS - 1u) return;
    uint32_t what = rp_pick(m->dice, weights, 10);
    if (a == TH_REGISTERS) {
        if (what != 7) rp_make_odd(m, a);
        return;
    }
    switch (what) {
    case 0: rp_make_arithmetic(m, a); break;
    case 1: rp_make_in_place(m); break;
    case 2: rp_make_view(m, a); break;
    case 3: rp_emit(m, (th_step)P_SAME(rp_out(m, m->registers[a]), a)); break;
    case 4: rp_make_odd(m, a); break;
    case 5: rp_emit(m, (th_step)P_RANDOM(rp_out(m, rp_fresh_like(m, &m->registers[a])), a)); break;
    case 6: {
        if (m->registers[a].rows) return;
        float scalar = rp_scalar(m->dice);
        rp_emit(m, (th_step)P_SIDE(rp_out(m, rp_fresh_like(m, &m->registers[a])), a, scalar));
        break;
    }
    case 7:
        m->registers[a].there = false;
        rp_emit(m, (th_step)P_DROP(a));
        break;
    case 8:
        if (m->index) rp_make_call(m, a);
        break;
    default:
        if (m->program->options.check_pool && !m->program->calm) rp_emit(m, (th_step)P_KEEP(a));
        break;
    }
}

static inline void rp_make_inputs(rp_making *m) {
    static const uint8_t counts[] = {5, 35, 30, 18, 7, 5}, kinds[] = {82, 5, 4, 4, 3, 2};
    rp_function *f = m->f;
    th_model *model = &f->model;
    model->inputs = rp_pick(m->dice, counts, 6);
    for (uint8_t i = 0; i < model->inputs; i++) {
        f->inputs[i] = (uint8_t)rp_pick(m->dice, kinds, 6);
        rp_register r = {.kind = f->inputs[i], .group = m->groups++};
        if (r.kind == RP_WIDE) {
            r.kind = RP_FULL;
            r.rows = 2;
            r.wide = true;
        }
        if (f->inputs[i] == RP_FULL && rp_percent(m->dice, 12)) {
            model->mutated[model->mutated_count++] = i;
            r.writable = true;
        }
        (void)rp_out(m, r);
        if (f->inputs[i] <= RP_WIDE && rp_percent(m->dice, r.writable ? 60 : 30))
            model->statics[model->static_count++] = i;
        if (r.writable) rp_emit(m, (th_step)P_ADDS_IN(i, rp_scalar(m->dice)));
    }
}

static inline void rp_make_outputs(rp_making *m) {
    static const uint8_t counts[] = {8, 45, 25, 12, 6, 4};
    th_model *model = &m->f->model;
    uint32_t wanted = rp_pick(m->dice, counts, 6);
    for (uint32_t i = 0; i < wanted; i++) {
        uint8_t fit[TH_REGISTERS], fits = 0;
        bool any = rp_percent(m->dice, 35);
        for (uint8_t k = 0; k < m->count; k++) {
            const rp_register *r = &m->registers[k];
            bool fresh = r->kind == RP_FULL && r->writable && !r->returned && k >= model->inputs;
            if (r->there && (any || fresh)) fit[fits++] = k;
        }
        uint8_t reg = fits ? fit[rp_below(m->dice, fits)] : TH_REGISTERS;
        if (reg == TH_REGISTERS) continue;
        m->registers[reg].returned = true;
        rp_emit(m, (th_step)P_RETURN(reg));
        if (rp_percent(m->dice, 5)) model->owned[model->owned_count++] = model->outputs;
        model->outputs++;
    }
}

/* It fails, or it does what a capture does not bear, at a random place. */
static inline void rp_make_trouble(rp_making *m) {
    static const uint8_t masks[] = {4, 4, 4, 6, 7, 2, 1, 3};
    if (m->program->calm) return;
    if (rp_percent(m->dice, 8)) {
        m->f->fails = masks[rp_below(m->dice, 8)];
        rp_emit(m, (th_step)P_FAIL(m->f->fails));
    }
    if (rp_percent(m->dice, 4)) {
        th_step sync = P_SYNC(0), breaks = P_BREAK();
        rp_emit(m, rp_percent(m->dice, 50) ? sync : breaks);
    }
}

/* The non-tree path runs a model twice, and hands out buffers of its own: what it is given draws no numbers, writes to no
 * input and gives none back. */
static inline bool rp_may_be_simple(const rp_making *m) {
    const th_model *model = &m->f->model;
    if (model->mutated_count || model->skip) return false;
    for (uint32_t i = 0; i < TH_STEPS && model->steps[i].op; i++) {
        const th_step *s = &model->steps[i];
        if (s->op == TH_RANDOM || s->op == TH_KEEP || s->op == TH_CALL) return false;
        if (s->op == TH_RETURN && m->registers[s->a].group < model->inputs) return false;
    }
    return true;
}

static inline void rp_make_function(rp_program *p, uint32_t index, rp_dice *dice) {
    static const uint8_t modes[] = {70, 17, 13};
    rp_function *f = &p->functions[index];
    rp_making m = {.dice = dice, .program = p, .f = f, .index = index};
    *f = (rp_function){.constants = rp_percent(dice, 25) ? 1u + rp_below(dice, 2) : 0};
    (void)snprintf(f->name, sizeof f->name, "f%u", index);
    f->undeclared = f->constants && p->options.check_pool && rp_percent(dice, 15);
    f->model.mode = (rondo_tree_mode)rp_pick(dice, modes, 3);
    if (!p->calm && rp_percent(dice, 5)) f->model.skip = "a gate says so";
    rp_make_inputs(&m);
    uint32_t steps = rp_below(dice, 8), trouble = rp_below(dice, 10);
    for (uint32_t i = 0; i < steps && m.steps < 14u; i++) {
        rp_make_step(&m);
        if (i == trouble) rp_make_trouble(&m);
    }
    rp_make_outputs(&m);
    f->simple = rp_percent(dice, 15) && rp_may_be_simple(&m);
}

/* ----------------------------------------------------------------------------------------------------- options */

static inline uint32_t rp_one_of(rp_dice *d, const uint32_t *values, uint32_t count) {
    return values[rp_below(d, count)];
}
#define RP_ONE_OF(d, ...) \
    rp_one_of(d, (const uint32_t[]){__VA_ARGS__}, (uint32_t)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)))

static inline void rp_make_options(rp_options *o, rp_dice *d, bool calm) {
    *o = (rp_options){.record_after = RP_ONE_OF(d, 1, 1, 2, 2, 2),
                      .rerecord_limit = 128,
                      .recording_limit = 4096,
                      .loop_limit = RP_ONE_OF(d, 8, 8, 1, 2, 3),
                      .seal_after = RP_ONE_OF(d, 16, 0, 1, 2, 3),
                      .check_pool = 1};
    o->conflict = rp_percent(d, 30);
    o->no_generation = rp_percent(d, 20);
    o->rebind = rp_percent(d, 35);
    o->children = rp_percent(d, 40);
    o->flushes = rp_percent(d, 40);
    o->serial = rp_percent(d, 30);
    o->release_first = rp_percent(d, 50);
    if (calm) return;
    o->record_after = RP_ONE_OF(d, 1, 1, 2, 2, 2, 3, 4);
    o->always_warm_up = rp_percent(d, 3);
    o->rerecord_limit = RP_ONE_OF(d, 128, 128, 128, 0, 1, 2);
    o->size_limit = RP_ONE_OF(d, 0, 0, 0, 1, 2);
    o->recording_limit = RP_ONE_OF(d, 4096, 4096, 4096, 1, 2, 3, 8);
    o->cost_samples = RP_ONE_OF(d, 0, 0, 0, 3, 20);
    o->strict = rp_percent(d, 3);
    o->check_pool = rp_percent(d, 90);
    o->byte_limit = RP_ONE_OF(d, 0, 0, 0, 0, 1, 2); /* segments */
}

/* ----------------------------------------------------------------------------------------------------- actions */

static inline uint8_t rp_slot(rp_dice *d) { return (uint8_t)rp_below(d, RP_SLOTS); }
static inline uint8_t rp_variable(rp_dice *d) {
    return (uint8_t)(RP_PARAMETERS + rp_below(d, RP_SLOTS - RP_PARAMETERS));
}

/* What a piece of program has put somewhere, so that what follows takes it up. */
typedef struct rp_recent {
    uint8_t slots[8];
    uint32_t count;
} rp_recent;

static inline uint8_t rp_taken_up(rp_dice *d, const rp_recent *recent) {
    if (!recent->count || rp_percent(d, 15)) return rp_variable(d);
    return recent->slots[(recent->count - 1u - rp_below(d, recent->count < 4u ? recent->count : 4u)) % 8u];
}

static inline rp_action rp_make_a_call(const rp_program *p, rp_dice *d, const uint16_t *sizes, rp_recent *recent) {
    rp_action a = {.what = RP_CALL, .f = (uint8_t)rp_below(d, p->function_count)};
    const th_model *model = &p->functions[a.f].model;
    if (rp_percent(d, 60)) a.size = sizes[rp_below(d, 3)];
    a.value = (int16_t)rp_below(d, 4);
    for (uint32_t i = 0; i < RP_IO; i++) {
        bool parameter = false;
        for (uint32_t k = 0; k < model->static_count; k++) parameter = parameter || model->statics[k] == i;
        a.in[i] = rp_percent(d, 75) ? rp_taken_up(d, recent) : (uint8_t)RP_FRESH;
        if (rp_percent(d, 40)) a.in[i] |= RP_GIVE;
        if (rp_percent(d, 20)) a.in[i] |= RP_STALE;
        if (parameter && rp_percent(d, 80)) a.in[i] = (uint8_t)rp_below(d, RP_PARAMETERS);
        a.out[i] = rp_percent(d, 85) ? rp_variable(d) : (uint8_t)RP_FRESH;
    }
    for (uint32_t i = 0; i < model->outputs; i++)
        if (a.out[i] != RP_FRESH) recent->slots[recent->count++ % 8u] = a.out[i];
    return a;
}

static inline rp_action rp_make_action(const rp_program *p, rp_dice *d, const uint16_t *sizes, rp_recent *recent) {
    static const uint8_t often[RP_WHATS] = {
        [RP_CALL] = 110,   [RP_NEW] = 5,    [RP_DROP] = 30,    [RP_SHARE] = 4, [RP_ADD] = 9,    [RP_VIEW] = 5,
        [RP_EAGER] = 5,    [RP_RESIZE] = 1, [RP_CONSTANT] = 2, [RP_MARK] = 3,  [RP_INVOKE] = 6, [RP_HOST_MARK] = 1,
        [RP_BACKWARD] = 2, [RP_REMOVE] = 1, [RP_AGAIN] = 1,    [RP_RESET] = 1, [RP_STREAM] = 3, [RP_CHECK] = 4};
    static const uint8_t calmly[RP_WHATS] = {[RP_CALL] = 110, [RP_DROP] = 30, [RP_SHARE] = 4, [RP_ADD] = 9,
                                             [RP_VIEW] = 5,   [RP_EAGER] = 3, [RP_CHECK] = 4, [RP_BACKWARD] = 2};
    uint32_t what = rp_pick(d, p->calm ? calmly : often, RP_WHATS);
    if (p->faulty && rp_percent(d, 6)) what = RP_FAULT;
    if (!p->calm && rp_below(d, 300) == 0) what = RP_REOPEN;
    if (what == RP_CALL) return rp_make_a_call(p, d, sizes, recent);
    rp_action a = {.what = (uint8_t)what, .slot = rp_taken_up(d, recent), .to = rp_variable(d)};
    a.f = (uint8_t)rp_below(d, what == RP_FAULT ? TT_FAULT_COUNT : p->function_count);
    a.size = what == RP_FAULT ? (uint16_t)(1u + rp_below(d, 4)) : sizes[rp_below(d, 3)];
    a.value = (int16_t)(1 + (int)rp_below(d, 5));
    if (rp_percent(d, 10)) a.slot = rp_slot(d);
    return a;
}

/* Nearly the same: an input is given away or kept, or another is taken, or an output goes elsewhere. */
static inline rp_action rp_perturb(rp_dice *d, rp_action a, const rp_recent *recent) {
    uint32_t i = rp_below(d, RP_IO);
    if (a.what != RP_CALL) return a;
    switch (rp_below(d, 4)) {
    case 0:
    case 1: a.in[i % 2u] ^= RP_GIVE; break;
    case 2: a.in[i % 2u] = rp_taken_up(d, recent); break;
    default: a.out[i % 2u] = rp_variable(d); break;
    }
    return a;
}

static inline void rp_push(rp_program *p, rp_action a) {
    if (p->action_count < RP_ACTIONS) p->actions[p->action_count++] = a;
}

/* A piece of program that is run again and again, now and then with a difference. */
static inline void rp_make_loop(rp_program *p, rp_dice *d, const uint16_t *sizes) {
    rp_action body[16];
    rp_recent recent = {.count = 0};
    uint32_t count = 1u + rp_below(d, 10), rounds = rp_percent(d, 20) ? 1u + rp_below(d, 2) : 3u + rp_below(d, 12);
    uint32_t step = rp_below(d, 10), restless = RP_ONE_OF(d, 0, 0, 5, 15, 30);
    bool tidy = rp_percent(d, 60);
    for (uint32_t i = 0; i < count; i++) body[i] = rp_make_action(p, d, sizes, &recent);
    for (uint32_t round = 0; round < rounds; round++) {
        if (step < 6) rp_push(p, (rp_action){.what = RP_INVOKE});
        else if (step < 8) rp_push(p, (rp_action){.what = RP_MARK});
        for (uint32_t i = 0; i < count; i++) {
            uint32_t otherwise = rp_percent(d, restless) ? rp_below(d, 8) : 9u;
            if (otherwise == 0 || (otherwise < 4u && body[i].what == RP_DROP)) continue;
            if (otherwise == 1) rp_push(p, rp_make_action(p, d, sizes, &recent));
            if (otherwise == 2) rp_push(p, (rp_action){.what = RP_DROP, .slot = rp_taken_up(d, &recent)});
            rp_push(p, otherwise > 2u && otherwise < 9u ? rp_perturb(d, body[i], &recent) : body[i]);
        }
        if (p->action_count && rp_percent(d, 30)) rp_push(p, (rp_action){.what = RP_CHECK});
        for (uint8_t i = RP_PARAMETERS; tidy && i < RP_SLOTS; i++) rp_push(p, (rp_action){.what = RP_DROP, .slot = i});
    }
}

/* The program of that number. */
static inline void rp_make(rp_program *p, uint64_t seed) {
    static const uint16_t all[] = {4, 5, 6, 7, 8, 16, 33, 130, 700, 1500};
    rp_dice d = {seed * 0x9e3779b97f4a7c15u + 12345u};
    uint16_t sizes[3];
    *p = (rp_program){.seed = seed};
    p->calm = rp_percent(&d, 50);
    p->faulty = rp_percent(&d, p->calm ? 10 : 30);
    rp_make_options(&p->options, &d, p->calm);
    p->function_count = 1u + rp_below(&d, p->calm ? 3 : RP_FUNCTIONS);
    for (uint32_t i = 0; i < p->function_count; i++) rp_make_function(p, i, &d);
    for (uint32_t i = 0; i < 3; i++) sizes[i] = all[rp_below(&d, rp_percent(&d, 15) ? 10 : 7)];
    if (rp_percent(&d, p->calm ? 80 : 50)) sizes[1] = sizes[2] = sizes[0];
    for (uint8_t i = 0; i < RP_PARAMETERS; i++)
        rp_push(p, (rp_action){.what = RP_NEW, .slot = i, .size = sizes[i], .value = (int16_t)(10 * (i + 1))});
    uint32_t loops = 1u + rp_below(&d, 5);
    for (uint32_t i = 0; i < loops; i++) rp_make_loop(p, &d, sizes);
}

#endif
