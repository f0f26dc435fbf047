/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of arithmetic: what each takes away, and the values for which its neighbour would be wrong. */
#include "compile/compile_testing.h"

static rondo_ir_value scalar(compile_fixture *f, float value) {
    return ct_constant(f, RONDO_DTYPE_F32, 0, NULL, &value);
}
static rondo_ir_value whole(compile_fixture *f, int32_t value) {
    return ct_constant(f, RONDO_DTYPE_I32, 0, NULL, &value);
}

/* With this pass alone, and dead code taken away after it. */
static void compile_algebra(compile_fixture *f) {
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.passes = "algebra,dead";
    options.flags = RONDO_COMPILE_EXPLAIN | RONDO_COMPILE_VERIFY;
    T_OK(f->t, ct_try(f, &f->ref, &options));
}

static void floats_that_go(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 3)), v = CT_NODE(&f, "Exp", x);
    const float ones[3] = {1, 1, 1};
    v = CT_NODE(&f, "Mul", v, scalar(&f, 1));
    v = CT_NODE(&f, "Mul", ct_constant(&f, RONDO_DTYPE_F32, CT_DIMS(3), ones), v);
    v = CT_NODE(&f, "Add", v, scalar(&f, -0.0f));
    v = CT_NODE(&f, "Add", scalar(&f, -0.0f), v);
    v = CT_NODE(&f, "Sub", v, scalar(&f, 0));
    v = CT_NODE(&f, "Div", v, scalar(&f, 1));
    v = CT_NODE(&f, "Pow", v, scalar(&f, 1));
    v = CT_NODE(&f, "Max", v, v);
    v = CT_NODE(&f, "Sum", v);
    v = CT_NODE(&f, "Neg", CT_NODE(&f, "Neg", v));
    rondo_ir_value yes = ct_constant(&f, RONDO_DTYPE_BOOL, 0, NULL, &(const uint8_t){1});
    v = CT_NODE(&f, "Where", yes, v, scalar(&f, 3));
    ct_output(&f, v, NULL);
    compile_algebra(&f);
    T_EQ(t, ct_count(&f, NULL), 1);
    T_TRUE(t, ct_remarked(&f, "(Sub): x - 0 is x"));
}

/* Each of these shows a value that the rule beside it would lose. */
static void floats_that_stay(rondo_test *t) {
    compile_fixture f;
    void *got[8] = {0}, *want[8] = {0};
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4));
    const float some[4] = {1, 1, 1, 2};
    ct_output(&f, CT_NODE(&f, "Add", x, scalar(&f, 0)), "minus zero becomes zero");
    ct_output(&f, CT_NODE(&f, "Sub", x, scalar(&f, -0.0f)), "minus zero becomes zero, too");
    ct_output(&f, CT_NODE(&f, "Mul", x, scalar(&f, 0)), "NaN and infinity stay NaN");
    ct_output(&f, CT_NODE(&f, "Sub", x, x), "infinity less itself is NaN");
    ct_output(&f, CT_NODE(&f, "Mul", x, ct_constant(&f, RONDO_DTYPE_F32, CT_DIMS(4), some)), "not all are one");
    ct_output(&f,
              CT_NODE(&f, "Mul", ct_input(&f, "y", RONDO_DTYPE_F32, CT_DIMS(1)),
                      ct_constant(&f, RONDO_DTYPE_F32, CT_DIMS(3), (const float[]){1, 1, 1})),
              "it grows");
    ct_output(&f, CT_NODE(&f, "Div", x, scalar(&f, 3)), "no power of two");
    ct_output(&f, CT_NODE(&f, "Div", x, scalar(&f, 0x1p127f)), "its reciprocal is no normal number");
    compile_algebra(&f);
    T_EQ(t, ct_count(&f, NULL), 8);
    float in[4] = {-0.0f, NAN, INFINITY, -3}, y[1] = {7};
    ct_run(&f, &f.ref, (void *[]){in, y}, got);
    ct_reference(&f, (void *[]){in, y}, want);
    T_TRUE(t, !signbit(((float *)got[0])[0]) && !signbit(((float *)got[1])[0]));
    T_TRUE(t, isnan(((float *)got[2])[1]) && isnan(((float *)got[2])[2]) && isnan(((float *)got[3])[2]));
    for (int i = 0; i < 8; i++) ct_same(t, want[i], got[i], f.plan->outputs[i].bytes / 4);
}

/* Signs move into the sum; bits are those of the graph as it was written, minus zero and NaN included. */
static void signs_and_powers_of_two(rondo_test *t) {
    compile_fixture f;
    void *got[7] = {0}, *want[7] = {0};
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(8)),
                   y = ct_input(&f, "y", RONDO_DTYPE_F32, CT_DIMS(8));
    const float powers[8] = {1, 2, 0.5f, -4, 0x1p-126f, 0x1p126f, 1024, -0.125f};
    ct_output(&f, CT_NODE(&f, "Add", x, CT_NODE(&f, "Neg", y)), "a");
    ct_output(&f, CT_NODE(&f, "Add", CT_NODE(&f, "Neg", x), y), "b");
    ct_output(&f, CT_NODE(&f, "Sub", x, CT_NODE(&f, "Neg", y)), "c");
    ct_output(&f, CT_NODE(&f, "Abs", CT_NODE(&f, "Neg", y)), "d");
    ct_output(&f, CT_NODE(&f, "Abs", CT_NODE(&f, "Abs", y)), "e");
    ct_output(&f, CT_NODE(&f, "Div", x, ct_constant(&f, RONDO_DTYPE_F32, CT_DIMS(8), powers)), "f");
    ct_output(&f, CT_NODE(&f, "Relu", CT_NODE(&f, "Neg", y)), "g");
    compile_algebra(&f);
    T_EQ(t, ct_count(&f, "Neg"), 1);
    T_EQ(t, ct_count(&f, "Div"), 0);
    T_EQ(t, ct_count(&f, "Sub"), 2);
    T_EQ(t, ct_count(&f, "Abs"), 2);
    float a[8] = {0, -0.0f, NAN, INFINITY, 1e-45f, 3.4e38f, -7.25f, 1.0000001f};
    float b[8] = {-0.0f, 0, 1, INFINITY, -1e-45f, -3.4e38f, 7.25f, NAN};
    ct_run(&f, &f.ref, (void *[]){a, b}, got);
    ct_reference(&f, (void *[]){a, b}, want);
    for (int i = 0; i < 7; i++) ct_same(t, want[i], got[i], 8);
}

static void whole_numbers(rondo_test *t) {
    compile_fixture f;
    void *got[6] = {0};
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_I32, CT_DIMS(4));
    ct_output(&f, CT_NODE(&f, "Add", CT_NODE(&f, "Add", x, whole(&f, INT32_MAX)), whole(&f, INT32_MAX)), "wraps");
    ct_output(&f, CT_NODE(&f, "Mul", whole(&f, 65537), CT_NODE(&f, "Mul", x, whole(&f, 65536))), "wraps too");
    ct_output(&f, CT_NODE(&f, "Sub", x, x), "zero");
    ct_output(&f, CT_NODE(&f, "Mul", x, whole(&f, 0)), "zero too");
    ct_output(&f, CT_NODE(&f, "Neg", CT_NODE(&f, "Neg", x)), "itself");
    ct_output(&f, CT_NODE(&f, "Add", x, whole(&f, 0)), "itself too");
    compile_algebra(&f);
    T_EQ(t, ct_count(&f, NULL), 2);
    int32_t in[4] = {INT32_MIN, INT32_MAX, -1, 12345};
    ct_run(&f, &f.ref, (void *[]){in}, got);
    for (int i = 0; i < 4; i++) {
        uint32_t u = (uint32_t)in[i];
        T_EQ(t, ((uint32_t *)got[0])[i], u + (uint32_t)INT32_MAX + (uint32_t)INT32_MAX);
        T_EQ(t, ((uint32_t *)got[1])[i], u * 65536u * 65537u);
        T_EQ(t, ((int32_t *)got[2])[i], 0);
        T_EQ(t, ((int32_t *)got[3])[i], 0);
        T_EQ(t, ((int32_t *)got[4])[i], in[i]);
        T_EQ(t, ((int32_t *)got[5])[i], in[i]);
    }
}

/* Floats are not put together; neither is a sum that somebody else needs as it is, nor constants of other sizes. */
static void what_is_not_put_together(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_I32, CT_DIMS(2)),
                   y = ct_input(&f, "y", RONDO_DTYPE_F32, CT_DIMS(2));
    rondo_ir_value shared = CT_NODE(&f, "Add", x, whole(&f, 1));
    ct_output(&f, shared, "shared");
    ct_output(&f, CT_NODE(&f, "Add", shared, whole(&f, 2)), "a");
    ct_output(&f, CT_NODE(&f, "Add", CT_NODE(&f, "Add", y, scalar(&f, 1e8f)), scalar(&f, -1e8f)), "b");
    const int32_t two[2] = {1, 2};
    rondo_ir_value c = ct_constant(&f, RONDO_DTYPE_I32, CT_DIMS(2), two);
    ct_output(&f, CT_NODE(&f, "Mul", CT_NODE(&f, "Mul", x, c), whole(&f, 3)), "c");
    ct_output(&f, CT_NODE(&f, "Add", CT_NODE(&f, "Mul", x, whole(&f, 5)), whole(&f, 3)), "d");
    /* Used once as it is written; the sum with 0 that goes makes it two uses. */
    rondo_ir_value twice = CT_NODE(&f, "Add", ct_input(&f, "z", RONDO_DTYPE_I32, CT_DIMS(2)), whole(&f, 1));
    ct_output(&f, CT_NODE(&f, "Neg", twice), "e");
    ct_output(&f, CT_NODE(&f, "Add", CT_NODE(&f, "Add", twice, whole(&f, 0)), whole(&f, 2)), "f");
    compile_algebra(&f);
    T_EQ(t, ct_count(&f, NULL), 11);
    T_TRUE(t, !ct_remarked(&f, "two constants are one"));
}

static void bools(rondo_test *t) {
    compile_fixture f;
    void *got[8] = {0};
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_BOOL, CT_DIMS(2));
    rondo_ir_value yes = ct_constant(&f, RONDO_DTYPE_BOOL, 0, NULL, &(const uint8_t){1});
    rondo_ir_value no = ct_constant(&f, RONDO_DTYPE_BOOL, 0, NULL, &(const uint8_t){0});
    const rondo_ir_value made[8] = {CT_NODE(&f, "And", x, yes), CT_NODE(&f, "And", no, x),
                                    CT_NODE(&f, "Or", no, x),   CT_NODE(&f, "Or", x, yes),
                                    CT_NODE(&f, "Xor", x, no),  CT_NODE(&f, "Xor", x, x),
                                    CT_NODE(&f, "Or", x, x),    CT_NODE(&f, "Not", CT_NODE(&f, "Not", x))};
    for (int i = 0; i < 8; i++) ct_output(&f, made[i], (const char[]){(char)('a' + i), 0});
    compile_algebra(&f);
    T_EQ(t, ct_count(&f, NULL), 0);
    uint8_t in[2] = {0, 1};
    static const uint8_t want[8][2] = {{0, 1}, {0, 0}, {0, 1}, {1, 1}, {0, 1}, {0, 0}, {0, 1}, {0, 1}};
    ct_run(&f, &f.ref, (void *[]){in}, got);
    for (int i = 0; i < 8; i++) T_TRUE(t, memcmp(got[i], want[i], 2) == 0);
    /* Xor with true is Not: that stays. */
    ct_close(&f);
    ct_again(t, &f);
    x = ct_input(&f, "x", RONDO_DTYPE_BOOL, CT_DIMS(2));
    yes = ct_constant(&f, RONDO_DTYPE_BOOL, 0, NULL, &(const uint8_t){1});
    ct_output(&f, CT_NODE(&f, "Xor", x, yes), NULL);
    compile_algebra(&f);
    T_EQ(t, ct_count(&f, "Xor"), 1);
}

RONDO_TEST_MAIN(T(floats_that_go), T(floats_that_stay), T(signs_and_powers_of_two), T(whole_numbers),
                T(what_is_not_put_together), T(bools))
