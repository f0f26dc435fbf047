/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations that the node before them does, and those that must stay by themselves. */
#include "compile/compile_testing.h"

static const float bounds[2] = {-0.25f, 0.5f};

static rondo_ir_value producer(compile_fixture *f, int which, rondo_ir_value *out_x) {
    rondo_ir_value x = *out_x = ct_input(f, "x", RONDO_DTYPE_F32, CT_DIMS(1, 4, 6));
    rondo_ir_value y = RONDO_IR_NONE;
    switch (which) {
    case 0: return CT_NODE(f, "Conv", x, ct_random(f, CT_DIMS(3, 4, 2)));
    case 1: return CT_NODE(f, "MatMul", x, ct_random(f, CT_DIMS(6, 5)));
    case 2: return CT_NODE(f, "Add", x, ct_random(f, CT_DIMS(4, 6)));
    default:
        y = CT_NODE(f, "Flatten", x);
        return CT_NODE(f, "Gemm", y, ct_random(f, CT_DIMS(24, 3)), ct_random(f, CT_DIMS(3)));
    }
}

static rondo_ir_value activation(compile_fixture *f, int which, rondo_ir_value v) {
    static const char *const names[] = {"Relu", "Sigmoid", "Tanh"};
    rondo_attribute alpha = {.name = "alpha", .kind = RONDO_ATTRIBUTE_FLOAT, .count = 1};
    alpha.value.f = 0.3f;
    if (which < 3) return CT_NODE(f, names[which], v);
    if (which == 3) return CT_NODE_WITH(f, &alpha, "LeakyRelu", v);
    rondo_ir_value high = ct_constant(f, RONDO_DTYPE_F32, 0, NULL, &bounds[1]);
    if (which == 4) return CT_NODE(f, "Clip", v, ct_constant(f, RONDO_DTYPE_F32, 0, NULL, &bounds[0]), high);
    return CT_NODE(f, "Clip", v, RONDO_IR_NONE, high);
}

static void check(compile_fixture *f, void *const *inputs, void **got, void **want) {
    const rondo__kernel_set *sets[] = {&f->ref, &f->cpu};
    for (int i = 0; i < 2; i++) {
        ct_compile(f, sets[i], 0);
        ct_run(f, sets[i], inputs, got);
        ct_reference(f, inputs, want);
        ct_agree(f, got, want, false);
    }
}

static void each_fuses_into_each(rondo_test *t) {
    compile_fixture f = {.t = t};
    float x[24];
    T_DEFER(t, ct_close, &f);
    for (int i = 0; i < 24; i++) x[i] = ct_float(t);
    for (int p = 0; p < 4; p++) {
        for (int a = 0; a < 6; a++) {
            void *got[1], *want[1];
            rondo_ir_value in;
            ct_again(t, &f);
            ct_output(&f, activation(&f, a, producer(&f, p, &in)), "y");
            check(&f, (void *[]){x}, got, want);
            T_EQ(t, f.plan->step_count, 1);
            ct_compile(&f, &f.ref, 0);
            T_EQ(t, f.plan->step_count, 1);
            T_STR(t,
                  f.plan->steps[0]
                      .attributes[f.plan->steps[0].attribute_count - (a < 3    ? 1
                                                                      : a == 3 ? 2
                                                                               : 3)]
                      .name,
                  "rondo.activation");
            T_TRUE(t, ct_remarked(&f, "fused"));
            ct_compile(&f, &f.ref, RONDO_COMPILE_NO_FUSION);
            T_EQ(t, f.plan->step_count, 2);
            ct_close(&f);
        }
    }
}

static void other_uses_keep_it_apart(rondo_test *t) {
    compile_fixture f;
    void *got[2], *want[2];
    float x[24];
    rondo_ir_value in;
    ct_open(t, &f);
    for (int i = 0; i < 24; i++) x[i] = ct_float(t);
    rondo_ir_value made = producer(&f, 1, &in);
    ct_output(&f, CT_NODE(&f, "Relu", made), "a");
    ct_output(&f, CT_NODE(&f, "Tanh", made), "b");
    check(&f, (void *[]){x}, got, want);
    T_EQ(t, f.plan->step_count, 3);
}

static void one_activation_a_node(rondo_test *t) {
    compile_fixture f;
    void *got[1], *want[1];
    float x[24];
    rondo_ir_value in;
    ct_open(t, &f);
    for (int i = 0; i < 24; i++) x[i] = ct_float(t);
    ct_output(&f, CT_NODE(&f, "Tanh", CT_NODE(&f, "Relu", producer(&f, 0, &in))), "y");
    check(&f, (void *[]){x}, got, want);
    T_EQ(t, f.plan->step_count, 2);
}

/* An unknown bound, another type, another producer. */
static void others_stay(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value in, made = producer(&f, 0, &in), low = ct_input(&f, "low", RONDO_DTYPE_F32, 0, NULL);
    ct_output(&f, CT_NODE(&f, "Clip", made, low), "clip");
    rondo_ir_value d = ct_input(&f, "d", RONDO_DTYPE_F64, CT_DIMS(2));
    ct_output(&f, CT_NODE(&f, "Relu", CT_NODE(&f, "Add", d, d)), "f64");
    ct_output(&f, CT_NODE(&f, "Relu", CT_NODE(&f, "Mul", in, in)), "mul");
    ct_output(&f, CT_NODE(&f, "Relu", in), "input");
    ct_output(&f, CT_NODE(&f, "Exp", CT_NODE(&f, "Sub", CT_NODE(&f, "Add", in, in), in)), "exp");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, "Relu"), 3);
    T_EQ(t, ct_count(&f, "Clip"), 1);
    T_EQ(t, f.plan->step_count, 10);
}

/* LeakyRelu and Max with a constant are one; Max alone, and Max of two values, stay. */
static void a_floor_of_leaky_relu(rondo_test *t) {
    compile_fixture f;
    void *got[1], *want[1];
    float x[24], low = -0.1f;
    rondo_ir_value in;
    ct_open(t, &f);
    for (int i = 0; i < 24; i++) x[i] = ct_float(t);
    rondo_ir_value leaky = activation(&f, 3, producer(&f, 0, &in));
    ct_output(&f, CT_NODE(&f, "Max", leaky, ct_constant(&f, RONDO_DTYPE_F32, 0, NULL, &low)), "y");
    ct_compile(&f, &f.cpu, 0);
    ct_run(&f, &f.cpu, (void *[]){x}, got);
    ct_reference(&f, (void *[]){x}, want);
    ct_agree(&f, got, want, false);
    T_EQ(t, f.plan->step_count, 1);
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, f.plan->step_count, 2);
    ct_close(&f);
    ct_open(t, &f);
    rondo_ir_value plain = producer(&f, 0, &in);
    ct_output(&f, CT_NODE(&f, "Max", plain, ct_constant(&f, RONDO_DTYPE_F32, 0, NULL, &low)), "y");
    ct_compile(&f, &f.cpu, 0);
    T_EQ(t, f.plan->step_count, 2);
}

RONDO_TEST_MAIN(T_PLAIN(each_fuses_into_each), T(other_uses_keep_it_apart), T(one_activation_a_node), T(others_stay),
                T_PLAIN(a_floor_of_leaky_relu))
