/* SPDX-License-Identifier: Apache-2.0
 *
 * What nobody uses goes, what somebody uses stays; optional outputs are asked for only when they are used. */
#include "compile/compile_testing.h"

static void unused_chains_go(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4));
    rondo_ir_value kept = CT_NODE(&f, "Tanh", x), lost = CT_NODE(&f, "Exp", x);
    CT_NODE(&f, "Neg", CT_NODE(&f, "Abs", lost));
    ct_output(&f, kept, NULL);
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, NULL), 1);
    T_EQ(t, ct_count(&f, "Tanh"), 1);
    T_EQ(t, f.plan->step_count, 1);
    T_EQ(t, f.plan->nodes_in, f.graph->nodes_in_model);
}

static void one_used_output_keeps_the_node(rondo_test *t) {
    compile_fixture f;
    rondo_ir_value parts[3];
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 6));
    rondo_attribute attributes[2] = {ct_int("axis", 1), ct_int("num_outputs", 3)};
    ct_nodes(&f, NULL, "Split", &x, 1, attributes, 2, parts, 3);
    ct_output(&f, parts[1], NULL);
    ct_compile(&f, &f.ref, 0);
    const rondo__ir_node_data *split = ct_find(&f, "Split");
    T_TRUE(t, split && split->outputs[0] != RONDO_IR_NONE); /* Split's outputs are not optional */
    float in[12], want[4] = {2, 3, 8, 9};
    void *outputs[1];
    for (int i = 0; i < 12; i++) in[i] = (float)i;
    ct_run(&f, &f.ref, (void *[]){in}, outputs);
    T_TRUE(t, memcmp(outputs[0], want, sizeof want) == 0);
}

static void optional_outputs_are_dropped(rondo_test *t) {
    compile_fixture f;
    rondo_ir_value made[3];
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(1, 1, 2));
    rondo_ir_value w = ct_random(&f, CT_DIMS(1, 12, 2)), r = ct_random(&f, CT_DIMS(1, 12, 3));
    rondo_attribute hidden = ct_int("hidden_size", 3);
    ct_nodes(&f, NULL, "LSTM", (rondo_ir_value[]){x, w, r}, 3, &hidden, 1, made, 3);
    ct_output(&f, made[1], NULL);
    ct_compile(&f, &f.ref, 0);
    const rondo__ir_node_data *lstm = ct_find(&f, "LSTM");
    T_TRUE(t, lstm && lstm->outputs[0] == RONDO_IR_NONE && lstm->outputs[1] != RONDO_IR_NONE);
    T_TRUE(t, lstm->outputs[2] == RONDO_IR_NONE);
}

RONDO_TEST_MAIN(T(unused_chains_go), T(one_used_output_keeps_the_node), T(optional_outputs_are_dropped))
