/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known without data is worked out: shapes, constants, branches inside branches; what is large, or not asked
 * for, is left. */
#include "compile/compile_testing.h"

static void shapes_are_known(rondo_test *t) {
    compile_fixture f;
    float x[6] = {1, 2, 3, 4, 5, 6};
    void *outputs[2];
    ct_open(t, &f);
    rondo_ir_value v = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 3));
    rondo_ir_value size = CT_NODE(&f, "Size", CT_NODE(&f, "Exp", v));
    rondo_ir_value last = CT_NODE(&f, "Gather", CT_NODE(&f, "Shape", v), CT_I64(&f, 1));
    rondo_attribute axis = ct_int("axis", 0);
    rondo_ir_value shape = CT_NODE_WITH(&f, &axis, "Concat", last, CT_I64(&f, -1));
    ct_output(&f, CT_NODE(&f, "Reshape", v, shape), "r");
    ct_output(&f, size, "n");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, "Reshape"), 1);
    T_EQ(t, ct_count(&f, NULL), 1);
    T_EQ(t, f.plan->outputs[0].dims[0], 3);
    ct_run(&f, &f.ref, (void *[]){x}, outputs);
    T_EQ(t, *(int64_t *)outputs[1], 6);
    /* Without folding the nodes stay, but what a shape needs is known all the same. */
    ct_compile(&f, &f.ref, RONDO_COMPILE_NO_FOLDING);
    T_EQ(t, f.plan->outputs[0].dims[0], 3);
    T_EQ(t, ct_count(&f, "Size"), 1);
    ct_run(&f, &f.ref, (void *[]){x}, outputs);
    T_EQ(t, *(int64_t *)outputs[1], 6);
}

static void a_part_of_a_shape(rondo_test *t) {
    static const int64_t cases[][4] = {{0, 9, 0, 3},  {1, 9, 1, 2}, {-1, 9, 2, 1},
                                       {0, -1, 0, 2}, {2, 1, 0, 0}, {-9, -9, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        compile_fixture f;
        ct_open(t, &f);
        rondo_ir_value v = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(7, 8, 9)), made = RONDO_IR_NONE;
        rondo_attribute range[2] = {ct_int("start", cases[i][0]), ct_int("end", cases[i][1])};
        ct_nodes(&f, NULL, "Shape", &v, 1, range, 2, &made, 1);
        ct_output(&f, made, "s");
        ct_compile(&f, &f.ref, 0);
        T_EQ(t, f.plan->outputs[0].dims[0], cases[i][3]);
        void *outputs[1];
        ct_run(&f, &f.ref, (void *[]){NULL}, outputs);
        for (int64_t k = 0; k < cases[i][3]; k++) T_EQ(t, ((int64_t *)outputs[0])[k], 7 + cases[i][2] + k);
        ct_close(&f);
    }
}

static void constants_fold(rondo_test *t) {
    compile_fixture f;
    const float c[2] = {3, 4};
    void *outputs[1];
    ct_open(t, &f);
    rondo_ir_value a = ct_constant(&f, RONDO_DTYPE_F32, CT_DIMS(2), c);
    ct_output(&f, CT_NODE(&f, "Sqrt", CT_NODE(&f, "Mul", a, a)), "y");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, NULL), 0);
    ct_run(&f, &f.ref, NULL, outputs);
    T_TRUE(t, ((float *)outputs[0])[1] == 4);
    ct_compile(&f, &f.ref, RONDO_COMPILE_NO_FOLDING);
    T_EQ(t, ct_count(&f, NULL), 2);
}

static void a_constant_by_node(rondo_test *t) {
    compile_fixture f;
    const float c[2] = {3, 4};
    const int64_t two = 2, list[3] = {5, 6, 7};
    ct_open(t, &f);
    rondo_tensor_view view = {.data = (void *)(uintptr_t)c, .rank = 1, .dtype = RONDO_DTYPE_F32, .shape = &two};
    rondo_attribute value = {.name = "value", .kind = RONDO_ATTRIBUTE_TENSOR, .count = 1};
    value.value.tensor = &view;
    rondo_attribute ints = ct_ints("value_ints", 3, list), one = ct_int("value_int", 9);
    rondo_ir_value made[3];
    ct_nodes(&f, NULL, "Constant", NULL, 0, &value, 1, &made[0], 1);
    ct_nodes(&f, NULL, "Constant", NULL, 0, &ints, 1, &made[1], 1);
    ct_nodes(&f, NULL, "Constant", NULL, 0, &one, 1, &made[2], 1);
    for (int i = 0; i < 3; i++) ct_output(&f, made[i], NULL);
    for (uint32_t flags = 0; flags <= RONDO_COMPILE_NO_FOLDING; flags += RONDO_COMPILE_NO_FOLDING) {
        void *outputs[3];
        ct_compile(&f, &f.ref, flags);
        T_EQ(t, ct_count(&f, NULL), 0);
        ct_run(&f, &f.ref, NULL, outputs);
        T_TRUE(t, ((float *)outputs[0])[1] == 4);
        T_EQ(t, ((int64_t *)outputs[1])[2], 7);
        T_EQ(t, *(int64_t *)outputs[2], 9);
    }
}

/* 5000 x 5000 floats from one: not worth keeping. */
static void what_grows_large_stays(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value one = ct_constant(&f, RONDO_DTYPE_F32, 0, NULL, &(const float){1});
    ct_output(&f, CT_NODE(&f, "Expand", one, CT_I64(&f, 5000, 5000)), "y");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, "Expand"), 1);
    rondo_ir_value small = CT_NODE(&f, "Expand", one, CT_I64(&f, 10));
    ct_output(&f, CT_NODE(&f, "Neg", small), "z");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, NULL), 1);
}

/* A kernel that fails on what is constant leaves its node, and the run says why. */
static void what_fails_is_left(rondo_test *t) {
    compile_fixture f;
    const int64_t seven = 7;
    ct_open(t, &f);
    rondo_ir_value list = CT_I64(&f, 1, 2), at = ct_constant(&f, RONDO_DTYPE_I64, 0, NULL, &seven);
    ct_output(&f, CT_NODE(&f, "Gather", list, at), "y");
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    rondo_status status = ct_try(&f, &f.ref, &options);
    if (rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY) T_OK(t, status);
    if (!status) T_EQ(t, ct_count(&f, "Gather"), 1);
    rondo_status_release(status);
}

/* `depth` branches inside one another, each with what the ones around it made; all conditions follow from shapes. */
static rondo_ir_graph *nest(compile_fixture *f, rondo_ir_graph *parent, rondo_ir_value x, uint32_t depth) {
    rondo_ir_graph *branch = NULL;
    rondo_ir_value outer, sum, condition, result;
    rondo__ir_type unknown = {.rank = -1};
    T_OK(f->t, rondo__ir_graph_create(&f->graph->allocator, f->instance, "nest", parent, &branch));
    T_OK(f->t, rondo__ir_value_outer(branch, x, &outer));
    T_OK(f->t, rondo__ir_value_add(branch, NULL, "sum", &unknown, &sum));
    T_OK(f->t, rondo__ir_node_add(branch, "Add", "add", (rondo_ir_value[]){outer, outer}, 2, &sum, 1, NULL, 0, NULL));
    result = sum;
    if (depth > 0) {
        rondo_attribute branches[2];
        for (int i = 0; i < 2; i++) {
            rondo_ir_graph *inner = nest(f, branch, sum, i ? 0 : depth - 1);
            branches[i] =
                (rondo_attribute){.name = i ? "else_branch" : "then_branch", .kind = RONDO_ATTRIBUTE_GRAPH, .count = 1};
            branches[i].value.graph = inner;
        }
        T_OK(f->t,
             rondo__ir_constant_add(branch, "yes", NULL, RONDO_DTYPE_BOOL, 0, NULL, &(const uint8_t){1}, &condition));
        T_OK(f->t, rondo__ir_value_add(branch, NULL, "result", &unknown, &result));
        T_OK(f->t, rondo__ir_node_add(branch, "If", "if", &condition, 1, &result, 1, branches, 2, NULL));
    }
    T_OK(f->t, rondo__ir_output_add(branch, result, NULL));
    return branch;
}

static void branches_nest(rondo_test *t) {
    compile_fixture f;
    void *outputs[1];
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, 0, NULL), result, condition;
    rondo__ir_type unknown = {.rank = -1};
    rondo_attribute branches[2];
    for (int i = 0; i < 2; i++) {
        branches[i] =
            (rondo_attribute){.name = i ? "then_branch" : "else_branch", .kind = RONDO_ATTRIBUTE_GRAPH, .count = 1};
        branches[i].value.graph = nest(&f, f.graph, x, i ? 5 : 0);
    }
    condition = ct_constant(&f, RONDO_DTYPE_BOOL, 0, NULL, &(const uint8_t){1});
    T_OK(t, rondo__ir_value_add(f.graph, "result", NULL, &unknown, &result));
    T_OK(t, rondo__ir_node_add(f.graph, "If", "if", &condition, 1, &result, 1, branches, 2, NULL));
    ct_output(&f, result, "y");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, "Add"), 6);
    T_EQ(t, ct_count(&f, NULL), 6);
    float one = 1;
    ct_run(&f, &f.ref, (void *[]){&one}, outputs);
    T_TRUE(t, *(float *)outputs[0] == 64);
    T_OK(t, rondo__ir_verify(f.compiled));
}

static void a_condition_of_data_is_refused(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, 0, NULL), result;
    rondo_ir_value zero = ct_constant(&f, RONDO_DTYPE_F32, 0, NULL, &(const float){0});
    rondo_ir_value condition = CT_NODE(&f, "Greater", x, zero);
    rondo__ir_type unknown = {.rank = -1};
    rondo_attribute branches[2];
    for (int i = 0; i < 2; i++) {
        branches[i] =
            (rondo_attribute){.name = i ? "then_branch" : "else_branch", .kind = RONDO_ATTRIBUTE_GRAPH, .count = 1};
        branches[i].value.graph = nest(&f, f.graph, x, 0);
    }
    T_OK(t, rondo__ir_value_add(f.graph, "result", NULL, &unknown, &result));
    T_OK(t, rondo__ir_node_add(f.graph, "If", "choose", &condition, 1, &result, 1, branches, 2, NULL));
    ct_output(&f, result, "y");
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    T_FAILS(t, ct_try(&f, &f.ref, &options), UNSUPPORTED, "node 'choose' (If): its condition depends on data");
    T_FAILS(t, ct_try(&f, &f.ref, &options), UNSUPPORTED, "made of input 'x'");
}

RONDO_TEST_MAIN(T(shapes_are_known), T(a_part_of_a_shape), T(constants_fold), T(a_constant_by_node),
                T(what_grows_large_stays), T(what_fails_is_left), T(branches_nest), T(a_condition_of_data_is_refused))
