/* SPDX-License-Identifier: Apache-2.0
 *
 * Which passes run: by level, by list, without some; what is refused, by name; and what is told about each run. */
#include <stdio.h>

#include "compile/compile_testing.h"
#include "compile/pass.h"

#define LOG_MAX 64u

typedef struct pass_log {
    const char *names[LOG_MAX];
    uint32_t changes[LOG_MAX], nodes[LOG_MAX], count, remarks;
    char last[256];
    bool graphs;
} pass_log;

static void keep_report(void *user, const rondo_pass_report *report) {
    pass_log *log = user;
    if (log->count == LOG_MAX || report->index != log->count || report->struct_size != sizeof *report) return;
    log->names[log->count] = report->name;
    log->changes[log->count] = report->changes;
    log->nodes[log->count++] = report->nodes;
    log->graphs = report->graph != NULL;
    if (strcmp(report->name, "emit") == 0) return; /* tells how it laid memory and lanes out */
    log->remarks += report->remark_count;
    if (report->remark_count) snprintf(log->last, sizeof log->last, "%s", report->remarks[report->remark_count - 1]);
}

/* y = relu(x w + b) through an Identity, beside a node that nobody needs. */
static void small_graph(compile_fixture *f) {
    rondo_ir_value x = ct_input(f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 3)), unused = RONDO_IR_NONE, same = RONDO_IR_NONE;
    ct_nodes(f, "unused", "Neg", &x, 1, NULL, 0, &unused, 1);
    rondo_ir_value product = CT_NODE(f, "MatMul", x, ct_random(f, CT_DIMS(3, 4)));
    rondo_ir_value sum = CT_NODE(f, "Add", product, ct_random(f, CT_DIMS(4)));
    ct_nodes(f, "same", "Identity", &sum, 1, NULL, 0, &same, 1);
    ct_output(f, CT_NODE(f, "Relu", same), "y");
}

static rondo_status compile_logged(compile_fixture *f, rondo_compile_options *options, pass_log *log) {
    memset(log, 0, sizeof *log);
    options->after_pass = keep_report;
    options->user = log;
    options->flags |= RONDO_COMPILE_VERIFY;
    return ct_try(f, &f->cpu, options);
}

static bool ran(const pass_log *log, const char *const *names, uint32_t count) {
    for (uint32_t i = 0; i < count && i < log->count; i++) {
        if (strcmp(log->names[i], names[i]) != 0) return false;
    }
    return log->count == count;
}
#define RAN(log, ...)                            \
    ran(log, (const char *const[]){__VA_ARGS__}, \
        (uint32_t)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

static void lists_run_in_their_order(rondo_test *t) {
    compile_fixture f;
    pass_log log;
    ct_open(t, &f);
    small_graph(&f);
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.passes = "";
    T_OK(t, compile_logged(&f, &options, &log));
    T_TRUE(t, RAN(&log, "specialise", "resolve", "compact", "emit"));
    T_EQ(t, ct_count(&f, NULL), 5);
    options.passes = "dead, simplify,dead";
    T_OK(t, compile_logged(&f, &options, &log));
    T_TRUE(t, RAN(&log, "specialise", "resolve", "dead", "simplify", "dead", "compact", "emit"));
    T_EQ(t, log.changes[2], 1);
    T_EQ(t, log.changes[3], 1);
    T_EQ(t, log.changes[4], 0);
    T_EQ(t, log.nodes[1], 5);
    T_EQ(t, log.nodes[4], 3);
    T_TRUE(t, log.graphs);
    /* Fusion sees an Identity in between when nobody has taken it away. */
    options.passes = "fuse-bias,fuse-activation,simplify";
    T_OK(t, compile_logged(&f, &options, &log));
    T_EQ(t, ct_count(&f, "Relu"), 1);
    options.passes = "simplify,fuse-bias,fuse-activation";
    T_OK(t, compile_logged(&f, &options, &log));
    T_EQ(t, ct_count(&f, "Relu"), 0);
    options.without = "fuse-activation , dead";
    T_OK(t, compile_logged(&f, &options, &log));
    T_TRUE(t, RAN(&log, "specialise", "resolve", "simplify", "fuse-bias", "compact", "emit"));
    T_EQ(t, ct_count(&f, "Relu"), 1);
    T_EQ(t, ct_count(&f, "Add"), 0);
}

static uint32_t times(const pass_log *log, const char *name) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < log->count; i++) count += strcmp(log->names[i], name) == 0;
    return count;
}

/* Each pass of the table runs from its level on, and at no level before. */
static void levels(rondo_test *t) {
    compile_fixture f;
    pass_log log;
    ct_open(t, &f);
    small_graph(&f);
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    rondo_pass_info info = RONDO_PASS_INFO_INIT;
    for (int32_t level = RONDO_COMPILE_O0; level <= RONDO_COMPILE_O3; level++) {
        uint32_t index = 0;
        rondo_status status = RONDO_OK;
        options.level = level;
        T_OK(t, compile_logged(&f, &options, &log));
        for (; !(status = rondo_compile_pass(index, &info)); index++) {
            T_EQ(t, times(&log, info.name) > 0, info.level <= level);
            T_EQ(t, info.required, info.level == RONDO_COMPILE_O0);
            T_TRUE(t, strlen(info.summary) > 20 && info.summary[strlen(info.summary) - 1] == '.');
        }
        T_FAILS(t, status, NOT_FOUND, "passes, numbered from 0");
        T_TRUE(t, index >= 10);
        T_EQ(t, ct_count(&f, "Identity"), level == RONDO_COMPILE_O0);
        T_EQ(t, ct_count(&f, "Relu"), level <= RONDO_COMPILE_O1);
    }
    options.level = RONDO_COMPILE_LEVEL_DEFAULT;
    T_OK(t, compile_logged(&f, &options, &log));
    T_EQ(t, ct_count(&f, NULL), 1);
    options.level = RONDO_COMPILE_O3 + 1;
    T_FAILS(t, compile_logged(&f, &options, &log), INVALID_ARGUMENT, "there is no level 5");
    options.level = -1;
    T_FAILS(t, compile_logged(&f, &options, &log), INVALID_ARGUMENT, "there is no level -1");
}

static void names_are_checked(rondo_test *t) {
    static const char *const must[] = {"specialise", "resolve", "compact", "emit"};
    compile_fixture f;
    ct_open(t, &f);
    small_graph(&f);
    for (size_t i = 0; i < 4; i++) {
        char text[96];
        rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
        options.without = must[i];
        snprintf(text, sizeof text, "pass '%s' must run, at its place: it cannot be left out", must[i]);
        T_FAILS(t, ct_try(&f, &f.ref, &options), INVALID_ARGUMENT, text);
        options.without = NULL;
        options.passes = must[i];
        snprintf(text, sizeof text, "pass '%s' must run, at its place: it cannot be listed", must[i]);
        T_FAILS(t, ct_try(&f, &f.ref, &options), INVALID_ARGUMENT, text);
    }
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.passes = "dead,deader";
    T_FAILS(t, ct_try(&f, &f.ref, &options), INVALID_ARGUMENT, "there is no pass 'deader'; there are dead, fold");
    options.passes = NULL;
    options.without = "fus";
    T_FAILS(t, ct_try(&f, &f.ref, &options), INVALID_ARGUMENT, "there is no pass 'fus'; there are dead, fold");
    options.without = "emit2";
    T_FAILS(t, ct_try(&f, &f.ref, &options), INVALID_ARGUMENT, "there is no pass 'emit2'");
    /* A program of before knows none of these fields. */
    options.struct_size = (uint32_t)offsetof(rondo_compile_options, passes);
    T_OK(t, ct_try(&f, &f.ref, &options));
}

static void reasons(rondo_test *t) {
    compile_fixture f;
    pass_log log;
    ct_open(t, &f);
    small_graph(&f);
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.passes = "dead";
    T_OK(t, compile_logged(&f, &options, &log));
    T_EQ(t, log.remarks, 0);
    options.flags |= RONDO_COMPILE_EXPLAIN;
    T_OK(t, compile_logged(&f, &options, &log));
    T_EQ(t, log.remarks, 1);
    T_STR(t, log.last, "node 'unused' (Neg): nothing uses what it gives");
    options.passes = "simplify";
    T_OK(t, compile_logged(&f, &options, &log));
    T_TRUE(t, ct_remarked(&f, "node 'same' (Identity): gives what it takes"));
}

/* The limit is for results that are larger than what they are made of. */
static void folding_has_a_limit(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value one = ct_constant(&f, RONDO_DTYPE_F32, 0, NULL, &(const float){1});
    ct_output(&f, CT_NODE(&f, "Expand", one, CT_I64(&f, 1000)), "large");
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    T_OK(t, ct_try(&f, &f.ref, &options));
    T_EQ(t, ct_count(&f, NULL), 0);
    options.fold_bytes_max = 3999;
    T_OK(t, ct_try(&f, &f.ref, &options));
    T_EQ(t, ct_count(&f, "Expand"), 1);
    options.fold_bytes_max = 4000;
    T_OK(t, ct_try(&f, &f.ref, &options));
    T_EQ(t, ct_count(&f, NULL), 0);
    options.without = "fold";
    T_OK(t, ct_try(&f, &f.ref, &options));
    T_EQ(t, ct_count(&f, "Expand"), 1);
}

/* A reduction of the inputs to nothing leaves the inputs: who calls goes by their numbers. */
static void inputs_stay(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2)),
                   y = ct_input(&f, "y", RONDO_DTYPE_F32, CT_DIMS(3));
    (void)CT_NODE(&f, "Neg", x);
    ct_output(&f, CT_NODE(&f, "Exp", y), NULL);
    ct_compile(&f, &f.ref, RONDO_COMPILE_VERIFY);
    T_EQ(t, f.compiled->inputs.count, 2);
    T_EQ(t, f.plan->input_count, 2);
    T_STR(t, f.plan->inputs[0].name, "x");
    T_TRUE(t, f.plan->inputs[0].buffer == RONDO__PLAN_NONE);
    T_EQ(t, ct_count(&f, NULL), 1);
}

RONDO_TEST_MAIN(T(lists_run_in_their_order), T(levels), T(names_are_checked), T(reasons), T(folding_has_a_limit),
                T(inputs_stay))
