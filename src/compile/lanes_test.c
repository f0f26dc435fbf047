/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes of compiled graphs: which branch goes where and why, control edges, memory that is used again only where an order
 * says so. Random graphs in lanes are those of random_test. */
#include <rondo/ir.h>

#include "compile/compile_testing.h"

static const rondo__plan_step *step_of(const compile_fixture *f, const char *name) {
    for (uint32_t i = 0; i < f->plan->step_count; i++) {
        if (strcmp(f->plan->steps[i].node_name, name) == 0) return &f->plan->steps[i];
    }
    T_TRUE(f->t, false);
    return NULL;
}

static rondo_ir_value named(compile_fixture *f, const char *type, const char *name, rondo_ir_value a,
                            rondo_ir_value b) {
    rondo_ir_value made = RONDO_IR_NONE;
    ct_nodes(f, name, type, (rondo_ir_value[]){a, b}, b == RONDO_IR_NONE ? 1 : 2, NULL, 0, &made, 1);
    return made;
}

static void compile_lanes(compile_fixture *f, const rondo__kernel_set *set, uint32_t lanes) {
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.lanes = lanes;
    T_OK(f->t, ct_try(f, set, &options));
}

/* root -> {exp, two steps of sin} -> sum. */
static void branchy(compile_fixture *f, int64_t side) {
    rondo_ir_value x = ct_input(f, "x", RONDO_DTYPE_F32, CT_DIMS(side, side));
    rondo_ir_value root = named(f, "Tanh", "root", x, RONDO_IR_NONE);
    rondo_ir_value left = named(f, "Exp", "left", root, RONDO_IR_NONE);
    rondo_ir_value right = named(f, "Sin", "right", root, RONDO_IR_NONE);
    right = named(f, "Cos", "further", right, RONDO_IR_NONE);
    ct_output(f, named(f, "Add", "sum", left, right), "y");
}

static void branches(rondo_test *t) {
    compile_fixture f;
    float x[16];
    void *got[1], *want[1];
    ct_open(t, &f);
    for (int i = 0; i < 16; i++) x[i] = ct_float(t);
    branchy(&f, 4);
    compile_lanes(&f, &f.ref, 4);
    T_EQ(t, f.plan->lane_count, 2);
    T_EQ(t, f.plan->event_count, 2);
    T_EQ(t, step_of(&f, "root")->lane, 0);
    T_EQ(t, step_of(&f, "left")->lane, 0);
    T_EQ(t, step_of(&f, "right")->lane, 1);
    T_EQ(t, step_of(&f, "further")->lane, 1);
    T_EQ(t, step_of(&f, "right")->wait_count, 1);
    T_EQ(t, step_of(&f, "further")->wait_count, 0);
    T_EQ(t, step_of(&f, "sum")->wait_count, 1);
    T_TRUE(t, ct_remarked(&f, "streams: 2 lanes: 2 lanes with 2 waits"));
    T_TRUE(t, ct_remarked(&f, "it was asked for"));
    for (int i = 0; i < 20; i++) {
        ct_run_lanes(&f, &f.ref, (void *[]){x}, got);
        ct_reference(&f, (void *[]){x}, want);
        ct_same(t, want[0], got[0], 16);
    }
    /* One after the other root dies in right; beside each other left may still read it. */
    T_EQ(t, f.plan->arena_bytes, 3 * 64);
    compile_lanes(&f, &f.ref, 1);
    T_EQ(t, f.plan->arena_bytes, 2 * 64);
    T_EQ(t, f.plan->lane_count, 1);
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.lanes = RONDO__PLAN_LANES_MAX + 1;
    T_FAILS(t, ct_try(&f, &f.ref, &options), INVALID_ARGUMENT, "17 lanes");
}

/* Kernels of the host run as one list; others get lanes where the steps are large enough. */
static void what_pays(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    branchy(&f, 1024);
    compile_lanes(&f, &f.ref, 0);
    T_EQ(t, f.plan->lane_count, 1);
    T_TRUE(t, ct_remarked(&f, "streams: 1 lane: its kernels run on the host"));
    rondo_catalogue_table far = *f.ref.catalogues[0].table;
    far.flags &= ~(uint32_t)RONDO_CATALOGUE_HOST;
    rondo__kernel_set set = f.ref;
    set.catalogues[0].table = &far;
    compile_lanes(&f, &set, 0);
    T_EQ(t, f.plan->lane_count, 2);
    T_TRUE(t, ct_remarked(&f, "streams: 2 lanes: 2 lanes with 2 waits would take about"));
    T_TRUE(t, !ct_remarked(&f, "asked"));
    rondo_ir_graph_release(f.graph);
    f.graph = NULL;
    T_OK(t, rondo_ir_graph_create(f.instance, "small", &f.graph));
    branchy(&f, 4);
    compile_lanes(&f, &set, 0);
    T_EQ(t, f.plan->lane_count, 1);
    T_TRUE(t, ct_remarked(&f, "streams: 1 lane: 2 lanes with 2 waits would take about"));
    compile_lanes(&f, &set, 2);
    T_EQ(t, f.plan->lane_count, 2);
}

/* Two branches that a control edge orders: the second waits for what it does not read. A node that is no step itself leaves
 * the order to one lane. */
static void control_edges(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4, 4)), z = RONDO_IR_NONE;
    rondo_ir_value a = named(&f, "Exp", "a", x, RONDO_IR_NONE), b = named(&f, "Sin", "b", x, RONDO_IR_NONE);
    ct_output(&f, a, "oa");
    ct_output(&f, b, "ob");
    compile_lanes(&f, &f.ref, 2);
    T_EQ(t, f.plan->lane_count, 2);
    T_EQ(t, step_of(&f, "a")->wait_count + step_of(&f, "b")->wait_count, 0);
    T_OK(t, rondo_ir_graph_add_control(f.graph, b, a));
    compile_lanes(&f, &f.ref, 2);
    T_EQ(t, f.plan->lane_count, 1); /* nothing else could run beside */
    T_TRUE(t, ct_remarked(&f, "streams: 1 lane: each step needs the one before it"));
    z = named(&f, "Cos", "z", named(&f, "Abs", "c", x, RONDO_IR_NONE), RONDO_IR_NONE);
    ct_output(&f, z, "oz");
    T_OK(t, rondo_ir_graph_add_control(f.graph, b, z));
    compile_lanes(&f, &f.ref, 2);
    T_EQ(t, f.plan->lane_count, 2);
    T_EQ(t, step_of(&f, "b")->wait_count, 1);
    rondo_ir_value flat = named(&f, "Flatten", "flat", x, RONDO_IR_NONE);
    ct_output(&f, named(&f, "Neg", "n", flat, RONDO_IR_NONE), "on");
    T_OK(t, rondo_ir_graph_add_control(f.graph, flat, b));
    compile_lanes(&f, &f.ref, 2);
    T_EQ(t, f.plan->lane_count, 1);
    T_TRUE(t, ct_remarked(&f, "node 'flat' is ordered by hand and is no step"));
}

/* Parts of one storage that are written in several lanes, read as a whole and in pieces. */
static void parts(rondo_test *t) {
    compile_fixture f;
    float x[16];
    void *got[4], *want[4];
    ct_open(t, &f);
    for (int i = 0; i < 16; i++) x[i] = ct_float(t);
    rondo_attribute axis = ct_int("axis", 0);
    rondo_ir_value v = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4, 4));
    rondo_ir_value a = named(&f, "Exp", "a", v, RONDO_IR_NONE), b = named(&f, "Sin", "b", v, RONDO_IR_NONE),
                   c = named(&f, "Cos", "c", v, RONDO_IR_NONE);
    rondo_ir_value whole = CT_NODE_WITH(&f, &axis, "Concat", a, b, c);
    rondo_ir_value piece = CT_NODE(&f, "Slice", whole, CT_I64(&f, 4), CT_I64(&f, 8), CT_I64(&f, 0));
    ct_output(&f, named(&f, "Neg", "of all", whole, RONDO_IR_NONE), "all");
    ct_output(&f, named(&f, "Neg", "of b", piece, RONDO_IR_NONE), "some");
    compile_lanes(&f, &f.ref, 3);
    T_EQ(t, f.plan->lane_count, 3);
    T_EQ(t, step_of(&f, "of all")->wait_count, 2);
    T_TRUE(t, step_of(&f, "of b")->wait_count <= 1); /* c and a are nothing to it */
    for (int i = 0; i < 20; i++) {
        ct_run_lanes(&f, &f.ref, (void *[]){x}, got);
        ct_reference(&f, (void *[]){x}, want);
        ct_agree(&f, got, want, true);
    }
}

RONDO_TEST_MAIN(T(branches), T(what_pays), T(control_edges), T(parts))
