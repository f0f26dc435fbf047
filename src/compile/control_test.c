/* SPDX-License-Identifier: Apache-2.0
 *
 * Control edges through the compiler: the steps of a plan keep their order, and what somebody waits for runs, is not
 * merged and not fused. */
#include <rondo/ir.h>

#include "compile/compile_testing.h"

/* The place of the node's step in the plan, or -1. */
static int step_of(const compile_fixture *f, const char *name) {
    for (uint32_t i = 0; i < f->plan->step_count; i++) {
        if (strcmp(f->plan->steps[i].node_name, name) == 0) return (int)i;
    }
    return -1;
}

static rondo_ir_value named(compile_fixture *f, const char *type, const char *name, rondo_ir_value input) {
    rondo_ir_value made = RONDO_IR_NONE;
    T_OK(f->t, rondo_ir_graph_add_node(f->graph, type, name, &input, 1, NULL, 0, &made, 1));
    return made;
}

static void order_is_kept(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4));
    rondo_ir_value first = named(&f, "Exp", "First", x), second = named(&f, "Neg", "Second", x);
    ct_output(&f, first, "a");
    ct_output(&f, second, "b");
    ct_compile(&f, &f.cpu, 0);
    T_TRUE(t, step_of(&f, "First") == 0 && step_of(&f, "Second") == 1);
    T_OK(t, rondo_ir_graph_add_control(f.graph, first, second));
    ct_compile(&f, &f.cpu, 0);
    T_TRUE(t, step_of(&f, "Second") == 0 && step_of(&f, "First") == 1);
    const rondo__ir_node_data *node = ct_find(&f, "Exp");
    T_TRUE(t, node && node->control_count == 1);
    T_STR(t, rondo__ir_node_at(f.compiled, node->controls[0])->name, "Second");
    float in[4] = {0, 1, -1, 2};
    void *outputs[2];
    ct_run(&f, &f.cpu, (void *[]){in}, outputs);
    for (int i = 0; i < 4; i++) T_TRUE(t, ((float *)outputs[1])[i] == -in[i]);
}

/* Nobody uses what Side makes, but Last waits for it; Lost is waited for by nobody that runs. */
static void who_is_awaited_runs(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4));
    rondo_ir_value last = named(&f, "Exp", "Last", x), side = named(&f, "Neg", "Side", x);
    rondo_ir_value lost = named(&f, "Abs", "Lost", x), gone = named(&f, "Sqrt", "Gone", x);
    T_OK(t, rondo_ir_graph_add_control(f.graph, last, side));
    T_OK(t, rondo_ir_graph_add_control(f.graph, gone, lost));
    ct_output(&f, last, "out");
    ct_compile(&f, &f.cpu, 0);
    T_EQ(t, f.plan->step_count, 2);
    T_TRUE(t, step_of(&f, "Side") == 0 && step_of(&f, "Last") == 1);
    float in[4] = {0, 1, -1, 2};
    void *outputs[1];
    ct_run(&f, &f.cpu, (void *[]){in}, outputs);
    for (int i = 0; i < 4; i++) T_NEAR(t, ((float *)outputs[0])[i], exp((double)in[i]), 1e-5);
}

static void held_nodes_stay(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4));
    rondo_ir_value a = named(&f, "Abs", "A", x), b = named(&f, "Abs", "B", x), same = named(&f, "Identity", "I", b);
    rondo_ir_value sum = RONDO_IR_NONE;
    T_OK(t, rondo_ir_graph_add_node(f.graph, "Add", "Sum", (rondo_ir_value[]){a, same}, 2, NULL, 0, &sum, 1));
    rondo_ir_value relu = named(&f, "Relu", "R", sum);
    ct_output(&f, relu, "out");
    ct_compile(&f, &f.cpu, 0);
    T_TRUE(t, ct_count(&f, "Abs") == 1 && ct_count(&f, "Identity") == 0);
    uint32_t fused = ct_count(&f, "Relu");
    T_EQ(t, fused, 0); /* else this test shows nothing */
    T_OK(t, rondo_ir_graph_add_control(f.graph, same, a));
    T_OK(t, rondo_ir_graph_add_control(f.graph, relu, b));
    ct_compile(&f, &f.cpu, 0);
    T_TRUE(t, ct_count(&f, "Abs") == 2 && ct_count(&f, "Identity") == 1 && ct_count(&f, "Relu") == 1);
    float in[4] = {0, 1, -1, -2};
    void *outputs[1];
    ct_run(&f, &f.cpu, (void *[]){in}, outputs);
    for (int i = 0; i < 4; i++) T_TRUE(t, ((float *)outputs[0])[i] == 2 * fabsf(in[i]));
}

/* Rules of arithmetic, turns and folding leave them, too, at the end of a row and in between. */
static void held_nodes_are_not_rewritten(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 2)), first = named(&f, "Exp", "First", x);
    rondo_ir_value neg = named(&f, "Neg", "N2", named(&f, "Neg", "N1", x));
    rondo_ir_value between = named(&f, "Tanh", "Between", named(&f, "Transpose", "T1", x));
    rondo_ir_value turned = named(&f, "Transpose", "T2", between);
    ct_output(&f, first, "first");
    ct_output(&f, neg, "neg");
    ct_output(&f, turned, "turned");
    ct_compile(&f, &f.cpu, 0);
    T_TRUE(t, ct_count(&f, "Neg") == 0 && ct_count(&f, "Transpose") == 0); /* else this test shows nothing */
    T_OK(t, rondo_ir_graph_add_control(f.graph, neg, first));
    T_OK(t, rondo_ir_graph_add_control(f.graph, between, first));
    ct_compile(&f, &f.cpu, 0);
    T_TRUE(t, ct_count(&f, "Neg") == 2 && ct_count(&f, "Transpose") == 2);
    T_TRUE(t, step_of(&f, "N2") > step_of(&f, "First") && step_of(&f, "Between") > step_of(&f, "First"));
}

/* The branch that is taken stands for its If; what is computed now has run before everything. */
static void branches_and_constants(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_graph *branches[2];
    rondo_attribute attributes[2];
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4)), inner, made, more, chosen;
    rondo_ir_value after = named(&f, "Exp", "After", x), before = named(&f, "Abs", "Before", x);
    for (int i = 0; i < 2; i++) {
        T_OK(t, rondo_ir_graph_add_branch(f.graph, i ? "else" : "then", &branches[i]));
        T_OK(t, rondo_ir_graph_outer_value(branches[i], x, &inner));
        T_OK(t, rondo_ir_graph_add_node(branches[i], "Neg", i ? "E" : "T", &inner, 1, NULL, 0, &made, 1));
        T_OK(t, rondo_ir_graph_add_node(branches[i], "Sin", i ? "E2" : "T2", &inner, 1, NULL, 0, &more, 1));
        T_OK(t, rondo_ir_graph_add_control(branches[i], made, more));
        T_OK(t, rondo_ir_graph_add_output(branches[i], made, NULL));
        attributes[i] = (rondo_attribute){.name = i ? "else_branch" : "then_branch",
                                          .kind = RONDO_ATTRIBUTE_GRAPH,
                                          .count = 1,
                                          .value.graph = branches[i]};
    }
    rondo_ir_value yes = ct_constant(&f, RONDO_DTYPE_BOOL, 0, NULL, &(const uint8_t){1});
    rondo_ir_value two = ct_constant(&f, RONDO_DTYPE_F32, 0, NULL, &(const float){2});
    rondo_ir_value folded = named(&f, "Neg", "Folded", two), scaled = RONDO_IR_NONE;
    T_OK(t, rondo_ir_graph_add_node(f.graph, "If", "If0", &yes, 1, attributes, 2, &chosen, 1));
    T_OK(t, rondo_ir_graph_add_node(f.graph, "Mul", "Scaled", (rondo_ir_value[]){x, folded}, 2, NULL, 0, &scaled, 1));
    T_OK(t, rondo_ir_graph_add_control(f.graph, chosen, before));
    T_OK(t, rondo_ir_graph_add_control(f.graph, after, chosen));
    T_OK(t, rondo_ir_graph_add_control(f.graph, folded, after));
    T_OK(t, rondo_ir_graph_add_control(f.graph, scaled, folded));
    ct_output(&f, chosen, "c");
    ct_output(&f, after, "a");
    ct_output(&f, scaled, "s");
    ct_compile(&f, &f.cpu, 0);
    T_TRUE(t,
           step_of(&f, "Before") == 0 && step_of(&f, "T2") == 1 && step_of(&f, "T") == 2 && step_of(&f, "After") == 3);
    T_TRUE(t, step_of(&f, "E") < 0 && step_of(&f, "Folded") < 0 && step_of(&f, "Scaled") >= 0);
    T_EQ(t, ct_find(&f, "Exp")->control_count, 2);
    float in[4] = {0, 1, -1, -2};
    void *outputs[3];
    ct_run(&f, &f.cpu, (void *[]){in}, outputs);
    for (int i = 0; i < 4; i++) {
        T_TRUE(t, ((float *)outputs[0])[i] == -in[i] && ((float *)outputs[2])[i] == -2 * in[i]);
    }
}

/* Notes that a program left on nodes and values reach no plan. */
static void notes_change_nothing(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4));
    rondo_ir_value a = named(&f, "Neg", "A", x), b = named(&f, "Neg", "B", x);
    rondo_attribute note = {.name = "user.who", .kind = RONDO_ATTRIBUTE_INT, .count = 1, .value.i = 1};
    T_OK(t, rondo_ir_graph_set_attribute(f.graph, a, &note));
    T_OK(t, rondo__ir_value_attribute_set(f.graph, x, &note));
    ct_output(&f, CT_NODE(&f, "Add", a, b), "out");
    ct_compile(&f, &f.cpu, 0);
    T_EQ(t, ct_count(&f, "Neg"), 1);
    T_EQ(t, ct_find(&f, "Neg")->attribute_count, 0);
}

RONDO_TEST_MAIN(T(order_is_kept), T(who_is_awaited_runs), T(held_nodes_stay), T(held_nodes_are_not_rewritten),
                T(branches_and_constants), T(notes_change_nothing))
