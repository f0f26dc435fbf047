/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs many programs. One that goes wrong is made as short as it still goes wrong, and printed on the standard error as a
 * test for tree_testing.h. Of the environment: RONDO_RANDOM_PROGRAMS (how many), RONDO_RANDOM_FIRST (from which number on),
 * RONDO_RANDOM_APART=1 (each in a process of its own, for those that crash), RONDO_RANDOM_SHOWN (how many of those that
 * went wrong are made short), RONDO_RANDOM_TALLY=1 (what was done, counted). */
#ifndef RONDO_SRC_TREE_PROGRAM_SEARCH_TESTING_H
#define RONDO_SRC_TREE_PROGRAM_SEARCH_TESTING_H

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tree/program_run_testing.h"

#define RP_TEXT 600u

/* -------------------------------------------------------------------------------------------------------- runs */

typedef struct rp_outcome {
    bool failed;
    uint32_t at;
    char text[RP_TEXT];
    rp_totals totals;
} rp_outcome;

static inline void rp_outcome_of(const rp_kit *kit, const rp_program *program, rp_outcome *out) {
    static rp_program copy;
    static rp_world world;
    copy = *program;
    rp_run(&world, kit, &copy, NULL, NULL);
    *out = (rp_outcome){.failed = world.failure[0] != 0, .at = world.at, .totals = *world.tally};
    (void)snprintf(out->text, sizeof out->text, "%s", world.failure);
}

/* In a process of its own, so that one that crashes is made shorter, too. */
static inline void rp_outcome_apart(const rp_kit *kit, const rp_program *program, rp_outcome *out) {
    int ends[2], ended = 0;
    *out = (rp_outcome){.failed = true, .at = UINT32_MAX};
    (void)snprintf(out->text, sizeof out->text, "there is no other process");
    if (pipe(ends)) return;
    (void)fflush(NULL);
    pid_t child = fork();
    if (!child) {
        rp_outcome mine;
        (void)signal(SIGSEGV, SIG_DFL); /* the frame would tell at length */
        (void)signal(SIGFPE, SIG_DFL);
        (void)signal(SIGILL, SIG_DFL);
        rp_outcome_of(kit, program, &mine);
        ssize_t written = write(ends[1], &mine, sizeof mine);
        _exit(written == (ssize_t)sizeof mine ? 0 : 98);
    }
    (void)close(ends[1]);
    rp_outcome got;
    bool whole = child > 0 && read(ends[0], &got, sizeof got) == (ssize_t)sizeof got;
    (void)close(ends[0]);
    if (child > 0) (void)waitpid(child, &ended, 0);
    if (whole) *out = got;
    else if (child > 0) (void)snprintf(out->text, sizeof out->text, "it crashes (%d)", ended);
}

/* ------------------------------------------------------------------------------------------------------ shorter */

typedef struct rp_shrinking {
    const rp_kit *kit;
    rp_program *best, trial;
    char text[24]; /* how the failure begins */
} rp_shrinking;

static inline bool rp_still(rp_shrinking *s) {
    rp_outcome outcome;
    rp_outcome_apart(s->kit, &s->trial, &outcome);
    if (!outcome.failed || strncmp(outcome.text, s->text, strcspn(s->text, "0123456789")) != 0) return false;
    if (outcome.at < s->trial.action_count) s->trial.action_count = outcome.at + 1u;
    *s->best = s->trial;
    return true;
}

static inline void rp_shrink_actions(rp_shrinking *s) {
    for (uint32_t chunk = s->best->action_count / 2u + 1u; chunk; chunk /= 2u) {
        for (uint32_t at = 0; at < s->best->action_count;) {
            uint32_t count = s->best->action_count - at < chunk ? s->best->action_count - at : chunk;
            s->trial = *s->best;
            memmove(&s->trial.actions[at], &s->trial.actions[at + count],
                    (s->trial.action_count - at - count) * sizeof *s->trial.actions);
            s->trial.action_count -= count;
            if (!rp_still(s)) at += count;
        }
    }
}

static inline void rp_shrink_options(rp_shrinking *s) {
    const rp_options plain = {.record_after = 2,
                              .rerecord_limit = 128,
                              .recording_limit = 4096,
                              .loop_limit = 8,
                              .seal_after = 0,
                              .check_pool = 1};
#define RP_PLAIN(member)                    \
    s->trial = *s->best;                    \
    s->trial.options.member = plain.member; \
    if (memcmp(&s->trial.options, &s->best->options, sizeof plain) != 0) (void)rp_still(s);
    RP_PLAIN(record_after)
    RP_PLAIN(always_warm_up)
    RP_PLAIN(rerecord_limit)
    RP_PLAIN(size_limit)
    RP_PLAIN(recording_limit)
    RP_PLAIN(loop_limit)
    RP_PLAIN(seal_after)
    RP_PLAIN(cost_samples)
    RP_PLAIN(strict)
    RP_PLAIN(check_pool)
    RP_PLAIN(conflict)
    RP_PLAIN(byte_limit)
    RP_PLAIN(no_generation)
    RP_PLAIN(rebind)
    RP_PLAIN(children)
    RP_PLAIN(flushes)
    RP_PLAIN(serial)
#undef RP_PLAIN
}

/* A step that goes must leave the others what they need: registers are not used before they are set. */
static inline void rp_shrink_function(rp_shrinking *s, uint32_t f) {
    for (uint32_t i = 0; i < TH_STEPS && s->best->functions[f].model.steps[i].op; i++) {
        s->trial = *s->best;
        th_model *m = &s->trial.functions[f].model;
        const th_step gone = m->steps[i];
        if (gone.op == TH_RETURN) continue;
        bool used = false, makes = gone.op != TH_ADDS_IN && gone.op != TH_COPY_IN && gone.op < TH_DROP;
        for (uint32_t k = i + 1u; makes && k < TH_STEPS && m->steps[k].op; k++)
            used = used || m->steps[k].a == gone.out || m->steps[k].b == gone.out;
        if (used) continue;
        memmove(&m->steps[i], &m->steps[i + 1u], (TH_STEPS - 1u - i) * sizeof *m->steps);
        m->steps[TH_STEPS - 1u].op = TH_END;
        if (rp_still(s)) i--;
    }
}

static inline void rp_shrink_calls(rp_shrinking *s) {
    for (uint32_t i = 0; i < s->best->action_count; i++) {
        for (uint32_t k = 0; s->best->actions[i].what == RP_CALL && k < RP_IO; k++) {
            s->trial = *s->best;
            s->trial.actions[i].in[k] = RP_FRESH;
            if (s->best->actions[i].in[k] != RP_FRESH) (void)rp_still(s);
            s->trial = *s->best;
            s->trial.actions[i].out[k] = RP_FRESH;
            if (s->best->actions[i].out[k] != RP_FRESH) (void)rp_still(s);
        }
    }
}

static inline void rp_shrink(const rp_kit *kit, rp_program *program, const rp_outcome *outcome) {
    static rp_shrinking s;
    s.kit = kit;
    s.best = program;
    (void)snprintf(s.text, sizeof s.text, "%.20s", outcome->text);
    if (outcome->at < program->action_count) program->action_count = outcome->at + 1u;
    for (int round = 0; round < 3; round++) {
        rp_shrink_actions(&s);
        rp_shrink_options(&s);
        for (uint32_t f = 0; f < program->function_count; f++) rp_shrink_function(&s, f);
        rp_shrink_calls(&s);
    }
}

/* ------------------------------------------------------------------------------------------------------ printed */

static inline void rp_print_list(FILE *to, const char *name, const uint32_t *list, uint32_t count) {
    if (!count) return;
    (void)fprintf(to, ", .%s = {", name);
    for (uint32_t i = 0; i < count; i++) (void)fprintf(to, "%s%u", i ? ", " : "", list[i]);
    (void)fprintf(to, "}");
}

static inline void rp_print_step(FILE *to, const th_step *s) {
    static const char *const names[] = {"END",      "ADDS",   "MULS",    "ADD",    "MUL",  "ADDS_IN", "COPY_IN",
                                        "ADDN",     "ADDH",   "VIEW",    "EXPAND", "SAME", "RANDOM",  "SIDE",
                                        "CONSTANT", "NUMBER", "NOTHING", "EMPTY",  "HOST", "DROP",    "KEEP",
                                        "RESIZE",   "SYNC",   "BREAK",   "FAIL",   "CALL", "RETURN"};
    if (s->op == TH_RETURN) (void)fprintf(to, "P_RETURN(%u)", s->a);
    else
        (void)fprintf(to, "{TH_%s, %u, %u, %u, %g, %lld}", names[s->op], s->out, s->a, s->b, (double)s->scalar,
                      (long long)s->index);
}

static inline void rp_print_function(FILE *to, const rp_program *p, uint32_t index) {
    static const char *const modes[] = {"INFERENCE", "FORWARD", "BACKWARD"};
    const rp_function *f = &p->functions[index];
    const th_model *m = &f->model;
    (void)fprintf(to, "    th_model f%u = {.name = \"f%u\", .inputs = %u, .outputs = %u, .mode = RONDO_TREE_%s", index,
                  index, m->inputs, m->outputs, modes[m->mode]);
    rp_print_list(to, "statics", m->statics, m->static_count);
    if (m->static_count) (void)fprintf(to, ", .static_count = %u", m->static_count);
    rp_print_list(to, "mutated", m->mutated, m->mutated_count);
    if (m->mutated_count) (void)fprintf(to, ", .mutated_count = %u", m->mutated_count);
    rp_print_list(to, "owned", m->owned, m->owned_count);
    if (m->owned_count) (void)fprintf(to, ", .owned_count = %u", m->owned_count);
    if (m->skip) (void)fprintf(to, ", .skip = \"%s\"", m->skip);
    if (f->simple) (void)fprintf(to, ", .simple = 1");
    (void)fprintf(to, ",\n        .steps = {");
    for (uint32_t i = 0; i < TH_STEPS && m->steps[i].op; i++) {
        if (i) (void)fprintf(to, ", ");
        rp_print_step(to, &m->steps[i]);
    }
    (void)fprintf(to, "}};\n");
    for (uint32_t k = 0; k < f->constants; k++)
        (void)fprintf(to, "    f%u.constants[%u] = th_keep(&w.host, tt_new(&w, 1));%s\n", index, k,
                      f->undeclared ? " /* and not declared */" : "");
}

static inline void rp_print_options(FILE *to, const rp_options *o) {
#define RP_OPTION(member, usual) \
    if (o->member != (usual)) (void)fprintf(to, "    w.options." #member " = %u;\n", o->member);
    RP_OPTION(record_after, 2)
    RP_OPTION(always_warm_up, 0)
    RP_OPTION(rerecord_limit, 128)
    RP_OPTION(size_limit, 0)
    RP_OPTION(recording_limit, 4096)
    RP_OPTION(loop_limit, 8)
    RP_OPTION(seal_after, 16)
    RP_OPTION(cost_samples, 0)
    RP_OPTION(strict, 0)
    RP_OPTION(check_pool, 1)
    RP_OPTION(conflict, 0)
    RP_OPTION(byte_limit, 0)
#undef RP_OPTION
    if (o->no_generation) (void)fprintf(to, "    w.table.generation = NULL;\n");
    if (o->rebind) (void)fprintf(to, "    w.ops.flags |= RONDO_GRAPH_OPS_REBIND;\n");
    if (o->children) (void)fprintf(to, "    w.ops.flags |= RONDO_GRAPH_OPS_CHILD_GRAPHS;\n");
    if (o->flushes) (void)fprintf(to, "    w.table.flags |= RONDO_TENSOR_HOST_FLUSHES;\n");
    if (o->serial) (void)fprintf(to, "    w.table.flags |= RONDO_TENSOR_HOST_SERIAL;\n");
}

/* Runs it once more, and lets it say what it does. */
static inline void rp_print(FILE *to, const rp_kit *kit, const rp_program *program) {
    static rp_program copy;
    static rp_world world;
    copy = *program;
    (void)fprintf(to, "/* program %llu, on '%s' */\nstatic void test_program_%llu(rondo_test *t, tt_kind kind) {\n",
                  (unsigned long long)program->seed, kit->name, (unsigned long long)program->seed);
    (void)fprintf(
        to,
        "    tt_world w;\n    th_tensor *v[%u] = {NULL}, *y[%u], *x;\n    rondo_status status;\n    uint32_t id[%u];\n    tt_prepare(t, &w, kind);\n",
        RP_SLOTS, RP_IO, RP_FUNCTIONS);
    rp_print_options(to, &program->options);
    (void)fprintf(to, "    tt_start(&w);\n");
    for (uint32_t i = 0; i < program->function_count; i++) {
        bool used = program->functions[i].called;
        for (uint32_t k = 0; k < program->action_count; k++)
            used = used || (program->actions[k].what == RP_CALL && program->actions[k].f == i);
        if (!used) continue;
        rp_print_function(to, program, i);
        (void)fprintf(to, "    id[%u] = tt_add(&w, &f%u);\n", i, i);
    }
    (void)fflush(to);
    pid_t child = fork();
    if (!child) {
        (void)signal(SIGSEGV, SIG_DFL);
        rp_run(&world, kit, &copy, NULL, to);
        (void)fprintf(to, "    /* %s */\n", world.failure);
        (void)fflush(to);
        _exit(0);
    }
    int ended = 0;
    if (child > 0) (void)waitpid(child, &ended, 0);
    (void)fprintf(to, "}\n");
}

/* ------------------------------------------------------------------------------------------------------- search */

static inline uint64_t rp_setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static inline void rp_add_totals(rp_totals *to, const rp_totals *from) {
    for (uint32_t i = 0; i < RP_COUNTS; i++) to->counts[i] += from->counts[i];
    for (uint32_t i = 0; i < RONDO_TREE_REASON_COUNT; i++) to->reasons[i] += from->reasons[i];
}

static inline void rp_check_total(rondo_test *t, const char *name, uint64_t count) {
    if (rp_setting("RONDO_RANDOM_TALLY", 0)) (void)fprintf(stderr, "%s: %llu\n", name, (unsigned long long)count);
    if (!count) rondo_test_fail(t, __FILE__, __LINE__, "no program came to %s", name);
}

/* All that a tree may do was done. */
static inline void rp_check_totals(rondo_test *t, const rp_totals *totals, bool all) {
    static const char *const names[RP_COUNTS] = {"directs",     "warmups", "records", "replays",   "sealed",
                                                 "checkpoints", "steps",   "carried", "evacuated", "evicted"};
    for (uint32_t i = 0; i < RP_COUNTS; i++) rp_check_total(t, names[i], totals->counts[i]);
    for (rondo_tree_reason i = RONDO_TREE_REASON_WARMUP; all && i < RONDO_TREE_REASON_COUNT; i++) {
        bool never = i == RONDO_TREE_REASON_OTHER_DEVICE || i == RONDO_TREE_REASON_BIND_FIXED ||
                     i == RONDO_TREE_REASON_HOST_INPUT;
        if (!never || totals->reasons[i]) rp_check_total(t, rondo_tree_reason_name(i), totals->reasons[i]);
    }
}

/* `usual` programs, unless the environment says otherwise. `all`: every reason why a call is not replayed has to come up. */
static inline void rp_search(rondo_test *t, const rp_kit *kit, uint64_t usual, bool all) {
    static rp_program program;
    static rp_totals totals;
    const uint64_t first = rp_setting("RONDO_RANDOM_FIRST", 1), count = rp_setting("RONDO_RANDOM_PROGRAMS", usual);
    const bool apart = rp_setting("RONDO_RANDOM_APART", 0) != 0;
    uint64_t failed = 0;
    totals = (rp_totals){.counts = {0}};
    for (uint64_t seed = first; seed < first + count && failed < 10; seed++) {
        rp_outcome outcome;
        rp_make(&program, seed);
        if (apart) rp_outcome_apart(kit, &program, &outcome);
        else rp_outcome_of(kit, &program, &outcome);
        rp_add_totals(&totals, &outcome.totals);
        if (!outcome.failed) continue;
        (void)fprintf(stderr, "program %llu on '%s', action %u: %s\n", (unsigned long long)seed, kit->name, outcome.at,
                      outcome.text);
        if (failed++ >= rp_setting("RONDO_RANDOM_SHOWN", 1)) continue;
        rp_shrink(kit, &program, &outcome);
        rp_print(stderr, kit, &program);
    }
    if (failed) rondo_test_fail(t, __FILE__, __LINE__, "%llu programs failed", (unsigned long long)failed);
    else if (count >= usual) rp_check_totals(t, &totals, all);
}

#endif
