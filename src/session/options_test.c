/* SPDX-License-Identifier: Apache-2.0
 *
 * How a session compiles: level, passes, and the cache, seen by the steps of its plans and by who compiled. */
#include <stdio.h>

#include "session/session.h"
#include "session/session_testing.h"

/* z = max(x + 2 y, (x + 2 y) - x): a sum that is there twice. */
static void ot_graph(sum_fixture *f) {
    const char *n = "n";
    rondo_ir_value x, y, two, twice, sum, less, more, z;
    T_OK(f->t, rondo_ir_graph_create(f->instance, "chain", &f->graph));
    rondo_ir_graph *g = f->graph;
    T_OK(f->t, rondo_ir_graph_add_input(g, "x", RONDO_DTYPE_F32, 1, (const int64_t[]){-1}, &n, &x));
    T_OK(f->t, rondo_ir_graph_add_input(g, "y", RONDO_DTYPE_F32, 1, (const int64_t[]){-1}, &n, &y));
    T_OK(f->t, rondo_ir_graph_add_constant(g, "two", RONDO_DTYPE_F32, 0, NULL, &(const float){2}, &two));
    T_OK(f->t, rondo_ir_graph_add_node(g, "Mul", NULL, (rondo_ir_value[]){y, two}, 2, NULL, 0, &twice, 1));
    T_OK(f->t, rondo_ir_graph_add_node(g, "Add", NULL, (rondo_ir_value[]){x, twice}, 2, NULL, 0, &sum, 1));
    T_OK(f->t, rondo_ir_graph_add_node(g, "Add", NULL, (rondo_ir_value[]){x, twice}, 2, NULL, 0, &less, 1));
    T_OK(f->t, rondo_ir_graph_add_node(g, "Sub", NULL, (rondo_ir_value[]){less, x}, 2, NULL, 0, &more, 1));
    T_OK(f->t, rondo_ir_graph_add_node(g, "Max", NULL, (rondo_ir_value[]){sum, more}, 2, NULL, 0, &z, 1));
    T_OK(f->t, rondo_ir_graph_add_output(g, z, "z"));
}

static void ot_open(rondo_test *t, sum_fixture *f, const rondo_session_options *options) {
    memset(f, 0, sizeof *f);
    T_DEFER(t, sum_close, f);
    sum_open(t, f, "cpu", options);
    rondo_ir_graph_release(f->graph);
    f->graph = NULL;
    ot_graph(f);
    T_OK(t, rondo_session_add_graph(f->session, 1, f->graph));
}

/* Steps of the one plan there is. x = seed + i and y = 10 i, so that x + 2 y is the larger. */
static uint32_t ot_steps(sum_fixture *f) {
    rondo__session_graph *graph = NULL;
    T_OK(f->t, sum_run(f, 1, 5, 3));
    T_OK(f->t, rondo__session_find(f->session, 1, &graph));
    T_EQ(f->t, graph->specialisations.count, 1);
    return (*RONDO__BUFFER_AT(&graph->specialisations, rondo__specialisation *, 0))->plan->step_count;
}

static void test_levels_and_passes(rondo_test *t) {
    sum_fixture f;
    rondo_session_options options = RONDO_SESSION_OPTIONS_INIT;
    char text[] = "duplicates";
    options.level = RONDO_COMPILE_O0;
    ot_open(t, &f, &options);
    T_EQ(t, ot_steps(&f), 5); /* what is written is what runs */
    sum_close(&f);
    options.level = RONDO_COMPILE_O1;
    ot_open(t, &f, &options);
    T_EQ(t, ot_steps(&f), 4); /* one sum less */
    sum_close(&f);
    options.without = text;
    ot_open(t, &f, &options);
    memset(text, 'x', sizeof text - 1); /* the session has its own */
    T_EQ(t, ot_steps(&f), 5);
    sum_close(&f);
    options.level = RONDO_COMPILE_LEVEL_DEFAULT;
    options.without = NULL;
    options.passes = "dead";
    ot_open(t, &f, &options);
    T_EQ(t, ot_steps(&f), 5);
    sum_close(&f);
    options.passes = "duplicates";
    ot_open(t, &f, &options);
    T_EQ(t, ot_steps(&f), 4);
    sum_close(&f);
    options.passes = "polish";
    ot_open(t, &f, &options);
    T_FAILS(t, sum_run(&f, 1, 5, 3), INVALID_ARGUMENT, "polish");
    T_FAILS(t, sum_run(&f, 2, 5, 3), NOT_FOUND, "no graph 2");
    sum_close(&f);
    options.level = 5;
    T_OK(t, rondo_instance_create(NULL, &f.instance));
    T_OK(t, rondo_device_open(f.instance, "cpu", NULL, &f.device));
    T_FAILS(t, rondo_session_create(f.device, &options, &f.session), INVALID_ARGUMENT, "level 5");
}

static rondo_session_info ot_info(sum_fixture *f) {
    rondo_session_info info = RONDO_SESSION_INFO_INIT;
    T_OK(f->t, rondo_session_get_info(f->session, 1, &info));
    return info;
}

/* What one session compiled another takes; another level is another entry. */
static void test_cache(rondo_test *t) {
    sum_fixture f;
    char folder[512];
    rondo_session_options options = RONDO_SESSION_OPTIONS_INIT;
    (void)snprintf(folder, sizeof folder, "%s/sessions", rondo_test_folder(t));
    options.cache = folder;
    for (unsigned i = 0; i < 6; i++) {
        options.level = i < 3 ? RONDO_COMPILE_LEVEL_DEFAULT : RONDO_COMPILE_O0;
        ot_open(t, &f, &options);
        T_EQ(t, ot_steps(&f), i < 3 ? 4 : 5);
        T_EQ(t, ot_info(&f).compiles, 1);
        T_EQ(t, ot_info(&f).cache_hits, i % 3 != 0);
        T_OK(t,
             sum_run(&f, 1, 7, 1)); /* another size, which the runs before this one did not leave behind at i % 3 = 0 */
        T_EQ(t, ot_info(&f).cache_hits, i % 3 != 0 ? 2 : 0);
        T_OK(t, sum_run(&f, 1, 5, 2));
        T_EQ(t, ot_info(&f).compiles, 2);
        sum_close(&f);
    }
    options.cache = "/nowhere/at/all"; /* no failure */
    ot_open(t, &f, &options);
    T_EQ(t, ot_steps(&f), 5);
    T_EQ(t, ot_info(&f).cache_hits, 0);
}

RONDO_TEST_MAIN(T(test_levels_and_passes), T_PLAIN(test_cache))
