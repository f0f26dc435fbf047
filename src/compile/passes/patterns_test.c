/* SPDX-License-Identifier: Apache-2.0
 *
 * Hardswish, GELU and batch normalization written out: each found where it is whole, left where a number, a use or an
 * order is another. What comes out is compared with the nodes run one by one. */
#include "compile/compile_testing.h"

static rondo_ir_value number(compile_fixture *f, float value) {
    return ct_constant(f, RONDO_DTYPE_F32, 0, NULL, &value);
}

static rondo_ir_value hard_swish(compile_fixture *f, rondo_ir_value x, float three, float six, bool turned) {
    rondo_ir_value low = number(f, 0.0f), high = number(f, 6.0f);
    rondo_ir_value clip = CT_NODE(f, "Clip", CT_NODE(f, "Add", x, number(f, three)), low, high);
    rondo_ir_value product = turned ? CT_NODE(f, "Mul", clip, x) : CT_NODE(f, "Mul", x, clip);
    return turned ? CT_NODE(f, "Mul", product, number(f, 1.0f / six)) : CT_NODE(f, "Div", product, number(f, six));
}

static rondo_ir_value gelu(compile_fixture *f, rondo_ir_value x, float cube, rondo_ir_value other) {
    rondo_ir_value a = CT_NODE(f, "Mul", x, CT_NODE(f, "Mul", x, CT_NODE(f, "Mul", number(f, cube), x)));
    rondo_ir_value u = CT_NODE(f, "Mul", number(f, 0.79788456f), CT_NODE(f, "Add", x, a));
    rondo_ir_value h = CT_NODE(f, "Mul", number(f, 0.5f), CT_NODE(f, "Add", number(f, 1.0f), CT_NODE(f, "Tanh", u)));
    return CT_NODE(f, "Mul", other, h);
}

static void agree(compile_fixture *f, uint32_t steps) {
    float x[24];
    void *got[2], *want[2];
    for (int i = 0; i < 24; i++) x[i] = 4.0f * ct_float(f->t);
    ct_compile(f, &f->cpu, 0);
    ct_run(f, &f->cpu, (void *[]){x}, got);
    ct_reference(f, (void *[]){x}, want);
    ct_agree(f, got, want, false);
    T_EQ(f->t, f->plan->step_count, steps);
}

static void hard_swish_is_found(rondo_test *t) {
    for (int turned = 0; turned < 2; turned++) {
        compile_fixture f = {.t = t};
        T_DEFER(t, ct_close, &f);
        ct_again(t, &f);
        rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4, 6));
        ct_output(&f, hard_swish(&f, x, 3.0f, 6.0f, turned), "y");
        agree(&f, 1);
        T_EQ(t, ct_count(&f, "HardSwish"), 1);
        ct_close(&f);
    }
}

static void hard_swish_is_left(rondo_test *t) {
    static const float numbers[][2] = {{2.5f, 6.0f}, {3.0f, 5.0f}};
    for (int i = 0; i < 2; i++) {
        compile_fixture f = {.t = t};
        T_DEFER(t, ct_close, &f);
        ct_again(t, &f);
        rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4, 6));
        ct_output(&f, hard_swish(&f, x, numbers[i][0], numbers[i][1], false), "y");
        ct_compile(&f, &f.cpu, 0);
        T_EQ(t, ct_count(&f, "HardSwish"), 0);
        ct_close(&f);
    }
}

static void gelu_is_found(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4, 6));
    ct_output(&f, gelu(&f, x, 0.044715f, x), "y");
    agree(&f, 1);
    T_EQ(t, ct_count(&f, "Gelu"), 1);
}

/* Another number, another factor. */
static void gelu_is_left(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4, 6)), n = CT_NODE(&f, "Neg", x);
    ct_output(&f, gelu(&f, x, 0.0447f, x), "y");
    ct_output(&f, gelu(&f, x, 0.044715f, n), "z");
    ct_compile(&f, &f.cpu, 0);
    T_EQ(t, ct_count(&f, "Gelu"), 0);
}

static rondo_ir_value norm(compile_fixture *f, rondo_ir_value made) {
    static const float variance[3] = {0.5f, 2.0f, 1.0f};
    return CT_NODE(f, "BatchNormalization", made, ct_random(f, CT_DIMS(3)), ct_random(f, CT_DIMS(3)),
                   ct_random(f, CT_DIMS(3)), ct_constant(f, RONDO_DTYPE_F32, CT_DIMS(3), variance));
}

static void norm_is_in_the_weights(rondo_test *t) {
    for (int biased = 0; biased < 2; biased++) {
        compile_fixture f = {.t = t};
        T_DEFER(t, ct_close, &f);
        ct_again(t, &f);
        rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(1, 4, 6)), w = ct_random(&f, CT_DIMS(3, 4, 2));
        rondo_ir_value conv = biased ? CT_NODE(&f, "Conv", x, w, ct_random(&f, CT_DIMS(3))) : CT_NODE(&f, "Conv", x, w);
        ct_output(&f, norm(&f, conv), "y");
        agree(&f, 1);
        ct_close(&f);
    }
}

/* Somebody else wants what the convolution gives; or there is none. */
static void norm_stays(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(1, 3, 8));
    rondo_ir_value conv = CT_NODE(&f, "Conv", x, ct_random(&f, CT_DIMS(3, 3, 1)));
    ct_output(&f, norm(&f, conv), "y");
    ct_output(&f, conv, "z");
    agree(&f, 2);
    ct_close(&f);
    ct_open(t, &f);
    x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(1, 3, 8));
    ct_output(&f, norm(&f, CT_NODE(&f, "Tanh", x)), "y");
    agree(&f, 2);
}

RONDO_TEST_MAIN(T_PLAIN(hard_swish_is_found), T_PLAIN(hard_swish_is_left), T(gelu_is_found), T(gelu_is_left),
                T_PLAIN(norm_is_in_the_weights), T_PLAIN(norm_stays))
