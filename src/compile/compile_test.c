/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiler as a whole: x + 2y by hand, sizes and values that must be given, options, and random graphs whose plans
 * must give what the graph gives node by node. */
#include "compile/compile_testing.h"

/* ------------------------------------------------------------------------------------------------------ by hand */

static void x_plus_2y(rondo_test *t) {
    compile_fixture f;
    float x[6] = {1, 2, 3, 4, 5, 6}, y[3] = {10, 20, 30};
    void *outputs[1];
    ct_open(t, &f);
    rondo_ir_value a = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 3));
    rondo_ir_value b = ct_input(&f, "y", RONDO_DTYPE_F32, CT_DIMS(3));
    rondo_ir_value two = ct_constant(&f, RONDO_DTYPE_F32, 0, NULL, &(const float){2});
    ct_output(&f, CT_NODE(&f, "Add", a, CT_NODE(&f, "Mul", b, two)), "z");
    const rondo__kernel_set *sets[] = {&f.ref, &f.cpu};
    for (int i = 0; i < 2; i++) {
        ct_compile(&f, sets[i], 0);
        T_EQ(t, f.plan->step_count, 2);
        T_EQ(t, f.plan->nodes_in, f.graph->nodes_in_model);
        T_STR(t, f.plan->outputs[0].name, "z");
        ct_run(&f, sets[i], (void *[]){x, y}, outputs);
        for (int k = 0; k < 6; k++) T_TRUE(t, ((float *)outputs[0])[k] == x[k] + 2 * y[k % 3]);
    }
}

/* ------------------------------------------------------------------------------------------------------- sizes */

static void open_graph(compile_fixture *f) {
    rondo_ir_value x = RONDO_IR_NONE, y = RONDO_IR_NONE;
    const char *names[] = {"batch", NULL};
    T_OK(f->t, rondo_ir_graph_add_input(f->graph, "x", RONDO_DTYPE_F32, 2, (const int64_t[]){-1, -1}, names, &x));
    T_OK(f->t, rondo_ir_graph_add_input(f->graph, "y", RONDO_DTYPE_F32, 2, (const int64_t[]){-1, 1}, names, &y));
    ct_output(f, CT_NODE(f, "Add", x, y), NULL);
}

static rondo_status with_dims(compile_fixture *f, uint32_t count, const rondo_dim_binding *dims) {
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.dim_count = count;
    options.dims = dims;
    return ct_try(f, &f->ref, &options);
}

static void sizes(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    open_graph(&f);
    rondo_dim_binding d[3] = {{"x", NULL, 4, 0, 0}, {"x", NULL, 5, 1, 0}, {NULL, "batch", 4, 0, 0}};
    /* The size of y follows from the name that it shares with x. */
    T_OK(t, with_dims(&f, 2, d));
    T_EQ(t, f.plan->inputs[1].dims[0], 4);
    T_EQ(t, f.plan->outputs[0].dims[1], 5);
    T_OK(t, with_dims(&f, 2, d + 1));
    T_EQ(t, f.plan->inputs[0].dims[0], 4);
    T_OK(t, with_dims(&f, 3, d));
    T_FAILS(t, with_dims(&f, 1, d), INVALID_ARGUMENT, "input 'x': axis 1 is open in the model: give its size as x.1=N");
    T_FAILS(t, with_dims(&f, 1, d + 1), INVALID_ARGUMENT,
            "'batch', is open in the model: give its size as x.0=N or batch=N");
    d[2].size = 6;
    T_FAILS(t, with_dims(&f, 3, d), INVALID_ARGUMENT, "size 'batch' is 4 by input 'x' and 6 by name");
    d[2] = (rondo_dim_binding){"y", NULL, 2, 1, 0};
    T_FAILS(t, with_dims(&f, 3, d), INVALID_ARGUMENT, "input 'y': axis 1 has the size 1 in the model, not 2");
    d[2] = (rondo_dim_binding){"z", NULL, 2, 1, 0};
    T_FAILS(t, with_dims(&f, 3, d), INVALID_ARGUMENT, "input 'z', which the model does not have");
    d[2] = (rondo_dim_binding){NULL, "depth", 2, 1, 0};
    T_FAILS(t, with_dims(&f, 3, d), INVALID_ARGUMENT, "size 'depth', which no input mentions");
    d[2] = (rondo_dim_binding){"x", NULL, 2, 2, 0};
    T_FAILS(t, with_dims(&f, 3, d), INVALID_ARGUMENT, "a size is given for axis 2");
    d[2] = (rondo_dim_binding){"x", NULL, -2, 1, 0};
    T_FAILS(t, with_dims(&f, 3, d), INVALID_ARGUMENT, "a value of 0 or more");
    d[2] = (rondo_dim_binding){"x", NULL, 6, 1, 0};
    T_FAILS(t, with_dims(&f, 3, d), INVALID_ARGUMENT, "given twice, as 5 and as 6");
    d[0].size = INT64_MAX / 2;
    T_FAILS(t, with_dims(&f, 2, d), OUT_OF_RANGE, "input 'x' has more elements");
    T_OK(t, with_dims(&f, 2, (const rondo_dim_binding[]){{"x", NULL, 0, 0, 0}, {"x", NULL, 5, 1, 0}}));
    T_EQ(t, f.plan->step_count, 0);
}

/* ------------------------------------------------------------------------------------------------------ values */

/* if n == 3: x reshaped by [n, -1], else -x. */
static void branching_graph(compile_fixture *f, rondo_ir_value *out_x) {
    rondo_ir_value n = ct_input(f, "n", RONDO_DTYPE_I64, 0, NULL);
    rondo_ir_value x = *out_x = ct_input(f, "x", RONDO_DTYPE_F32, CT_DIMS(6));
    rondo_ir_value spare = ct_input(f, "spare", RONDO_DTYPE_I64, CT_DIMS(2));
    rondo_ir_value three = ct_constant(f, RONDO_DTYPE_I64, 0, NULL, &(const int64_t){3});
    rondo_ir_value equal = CT_NODE(f, "Equal", n, three);
    rondo_attribute branches[2];
    for (int i = 0; i < 2; i++) {
        rondo_ir_graph *branch = NULL;
        rondo_ir_value outer = RONDO_IR_NONE, outer_n = RONDO_IR_NONE, one = RONDO_IR_NONE, made = RONDO_IR_NONE;
        rondo__ir_type unknown = {.rank = -1};
        T_OK(f->t, rondo__ir_graph_create(&f->graph->allocator, f->instance, "branch", f->graph, &branch));
        T_OK(f->t, rondo__ir_value_outer(branch, x, &outer));
        T_OK(f->t, rondo__ir_value_add(branch, "made", NULL, &unknown, &made));
        if (i == 0) {
            rondo_ir_value shape = RONDO_IR_NONE, list = RONDO_IR_NONE, rest = RONDO_IR_NONE;
            T_OK(f->t, rondo__ir_value_outer(branch, n, &outer_n));
            T_OK(f->t, rondo__ir_constant_add(branch, "zero", NULL, RONDO_DTYPE_I64, 1, (const int64_t[]){1},
                                              (const int64_t[]){0}, &one));
            T_OK(f->t, rondo__ir_constant_add(branch, "rest", NULL, RONDO_DTYPE_I64, 1, (const int64_t[]){1},
                                              (const int64_t[]){-1}, &rest));
            T_OK(f->t, rondo__ir_value_add(branch, "list", NULL, &unknown, &list));
            T_OK(f->t, rondo__ir_value_add(branch, "shape", NULL, &unknown, &shape));
            rondo_attribute axis = ct_int("axis", 0);
            T_OK(f->t, rondo__ir_node_add(branch, "Unsqueeze", NULL, (rondo_ir_value[]){outer_n, one}, 2, &list, 1,
                                          NULL, 0, NULL));
            T_OK(f->t, rondo__ir_node_add(branch, "Concat", NULL, (rondo_ir_value[]){list, rest}, 2, &shape, 1, &axis,
                                          1, NULL));
            T_OK(f->t, rondo__ir_node_add(branch, "Reshape", NULL, (rondo_ir_value[]){outer, shape}, 2, &made, 1, NULL,
                                          0, NULL));
        } else {
            T_OK(f->t, rondo__ir_node_add(branch, "Neg", NULL, &outer, 1, &made, 1, NULL, 0, NULL));
        }
        T_OK(f->t, rondo__ir_output_add(branch, made, NULL));
        branches[i] =
            (rondo_attribute){.name = i ? "else_branch" : "then_branch", .kind = RONDO_ATTRIBUTE_GRAPH, .count = 1};
        branches[i].value.graph = branch;
    }
    rondo_ir_value result = RONDO_IR_NONE, sum = RONDO_IR_NONE;
    rondo__ir_type unknown = {.rank = -1};
    T_OK(f->t, rondo__ir_value_add(f->graph, "result", NULL, &unknown, &result));
    T_OK(f->t, rondo__ir_node_add(f->graph, "If", "choice", &equal, 1, &result, 1, branches, 2, NULL));
    /* Known when values are given, needed by nothing: stays a step. */
    T_OK(f->t, rondo__ir_value_add(f->graph, "sum", NULL, &unknown, &sum));
    T_OK(f->t, rondo__ir_node_add(f->graph, "Add", NULL, (rondo_ir_value[]){spare, spare}, 2, &sum, 1, NULL, 0, NULL));
    ct_output(f, result, "y");
    ct_output(f, sum, "s");
}

static rondo_status with_value(compile_fixture *f, const int64_t *n, uint32_t flags) {
    static const int64_t spare[2] = {7, 8}, two[1] = {2};
    rondo_tensor_view views[2] = {
        {.data = (void *)(uintptr_t)n, .dtype = RONDO_DTYPE_I64},
        {.data = (void *)(uintptr_t)spare, .dtype = RONDO_DTYPE_I64, .rank = 1, .shape = two}};
    rondo_value_binding values[2] = {{"n", &views[0]}, {"spare", &views[1]}};
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.flags = flags;
    options.value_count = n ? 2 : 0;
    options.values = values;
    return ct_try(f, &f->ref, &options);
}

static void values_become_guards(rondo_test *t) {
    compile_fixture f;
    rondo_ir_value x = RONDO_IR_NONE;
    void *outputs[2];
    ct_open(t, &f);
    branching_graph(&f, &x);
    T_FAILS(t, with_value(&f, NULL, 0), INVALID_ARGUMENT,
            "node 'choice' (If): its condition depends on the value of input 'n': give that value");
    for (uint32_t flags = 0; flags <= RONDO_COMPILE_NO_FOLDING; flags += RONDO_COMPILE_NO_FOLDING) {
        T_OK(t, with_value(&f, &(const int64_t){3}, flags));
        T_EQ(t, f.plan->guard_count, 1);
        T_EQ(t, f.plan->guards[0].input, 0);
        T_EQ(t, *(const int64_t *)f.plan->guards[0].value, 3);
        T_EQ(t, f.plan->outputs[0].rank, 2);
        T_EQ(t, f.plan->outputs[0].dims[0], 3);
        T_EQ(t, f.plan->outputs[0].dims[1], 2);
        T_TRUE(t, f.plan->inputs[0].buffer == RONDO__PLAN_NONE);
        T_TRUE(t, f.plan->inputs[2].buffer != RONDO__PLAN_NONE);
        T_TRUE(t, ct_remarked(&f, "'choice': the condition is true: then_branch taken"));
        int64_t n = 3, spare[2] = {100, 200};
        float in[6] = {1, 2, 3, 4, 5, 6};
        ct_run(&f, &f.ref, (void *[]){&n, in, spare}, outputs);
        for (int i = 0; i < 6; i++) T_TRUE(t, ((float *)outputs[0])[i] == in[i]);
        T_EQ(t, ((int64_t *)outputs[1])[1], 400);
    }
    T_OK(t, with_value(&f, &(const int64_t){4}, 0));
    T_EQ(t, f.plan->outputs[0].rank, 1);
    T_EQ(t, f.plan->guard_count, 1);
    T_EQ(t, ct_count(&f, "Neg"), 1);
    T_EQ(t, ct_count(&f, "If"), 0);
}

static void values_are_checked(rondo_test *t) {
    compile_fixture f;
    rondo_ir_value x = RONDO_IR_NONE;
    ct_open(t, &f);
    branching_graph(&f, &x);
    int64_t n = 3, one = 1;
    rondo_tensor_view view = {.data = &n, .dtype = RONDO_DTYPE_I32};
    rondo_value_binding values[2] = {{"n", &view}, {"n", &view}};
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.values = values;
    options.value_count = 1;
    T_FAILS(t, ct_try(&f, &f.ref, &options), INVALID_ARGUMENT,
            "input 'n' has the type int64, its value is given as int32");
    view.dtype = RONDO_DTYPE_I64;
    view.rank = 1;
    view.shape = &one;
    T_FAILS(t, ct_try(&f, &f.ref, &options), INVALID_ARGUMENT, "has another shape");
    view.rank = 0;
    options.value_count = 2;
    T_FAILS(t, ct_try(&f, &f.ref, &options), INVALID_ARGUMENT, "'n' is given twice");
    values[0].input = "m";
    T_FAILS(t, ct_try(&f, &f.ref, &options), INVALID_ARGUMENT, "input 'm', which the model does not have");
    values[0].input = NULL;
    T_FAILS(t, ct_try(&f, &f.ref, &options), INVALID_ARGUMENT, "lacks its input's name");
    options.flags = 1u << 30;
    T_FAILS(t, ct_try(&f, &f.ref, &options), INVALID_ARGUMENT, "unknown flags");
    options.struct_size = 0;
    T_FAILS(t, ct_try(&f, &f.ref, &options), INVALID_ARGUMENT, "struct_size");
}

static void shapes_that_depend_on_data(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2));
    rondo_attribute to = ct_int("to", RONDO_DTYPE_I64);
    rondo_ir_value shape = CT_NODE_WITH(&f, &to, "Cast", x), made = RONDO_IR_NONE;
    ct_nodes(&f, "grow", "Expand", (rondo_ir_value[]){x, shape}, 2, NULL, 0, &made, 1);
    ct_output(&f, made, NULL);
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    T_FAILS(t, ct_try(&f, &f.ref, &options), UNSUPPORTED, "node 'grow' (Expand): its output's shape depends on data");
    T_FAILS(t, ct_try(&f, &f.ref, &options), UNSUPPORTED, "made of input 'x'");
}

static void every_node_without_a_kernel(rondo_test *t) {
    compile_fixture f;
    rondo__kernel_set none = {.count = 0};
    rondo_ir_value r = RONDO_IR_NONE, n = RONDO_IR_NONE;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2));
    ct_nodes(&f, "first", "Relu", &x, 1, NULL, 0, &r, 1);
    ct_nodes(&f, "second", "Neg", &r, 1, NULL, 0, &n, 1);
    ct_output(&f, n, NULL);
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    T_FAILS(t, ct_try(&f, &none, &options), UNSUPPORTED, "node 'first'");
    T_FAILS(t, ct_try(&f, &none, &options), UNSUPPORTED, "node 'second'");
    T_FAILS(t, ct_try(&f, &none, &options), UNSUPPORTED, "2 nodes have no kernel");
}

static void sizes_that_do_not_fit(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2)),
                   y = ct_input(&f, "y", RONDO_DTYPE_F32, CT_DIMS(3));
    rondo_ir_value sum = RONDO_IR_NONE;
    ct_nodes(&f, "sum", "Add", (rondo_ir_value[]){x, y}, 2, NULL, 0, &sum, 1);
    ct_output(&f, sum, NULL);
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    T_FAILS(t, ct_try(&f, &f.ref, &options), INVALID_ARGUMENT, "sum");
}

/* ------------------------------------------------------------------------------------------------ random graphs */

#define POOL 24u

typedef struct pool {
    compile_fixture *f;
    rondo_ir_value values[POOL];
    int64_t dims[POOL][4];
    int32_t ranks[POOL];
    uint32_t count;
} pool;

static uint64_t roll(const pool *p, uint64_t sides) { return rondo_test_random(p->f->t) % sides; }

static void put(pool *p, rondo_ir_value value, int32_t rank, const int64_t *dims) {
    uint32_t at = p->count < POOL ? p->count++ : (uint32_t)roll(p, POOL);
    p->values[at] = value;
    p->ranks[at] = rank;
    for (int32_t i = 0; i < rank; i++) p->dims[at][i] = dims[i];
}

static void add_shaped(pool *p, uint32_t a) {
    int64_t dims[4];
    int32_t rank = p->ranks[a];
    memcpy(dims, p->dims[a], sizeof dims);
    int32_t axis = (int32_t)roll(p, (uint64_t)rank);
    rondo_ir_value v = p->values[a];
    compile_fixture *f = p->f;
    int64_t elements = 1;
    for (int32_t i = 0; i < rank; i++) elements *= dims[i];
    switch (roll(p, 7)) {
    case 0: {
        int64_t flat[2] = {1, elements};
        put(p, CT_NODE(f, "Reshape", v, CT_I64(f, 1, elements)), 2, flat);
        return;
    }
    case 1: { /* a slice of one axis */
        int64_t from = (int64_t)roll(p, (uint64_t)dims[axis]),
                to = from + 1 + (int64_t)roll(p, (uint64_t)(dims[axis] - from));
        dims[axis] = to - from;
        put(p, CT_NODE(f, "Slice", v, CT_I64(f, from), CT_I64(f, to), CT_I64(f, axis)), rank, dims);
        return;
    }
    case 2: { /* the same twice along an axis */
        rondo_attribute a0 = ct_int("axis", axis);
        rondo_ir_value other = CT_NODE(f, "Tanh", v);
        dims[axis] *= 2;
        if (dims[axis] < 40) put(p, CT_NODE_WITH(f, &a0, "Concat", v, other), rank, dims);
        return;
    }
    case 3: {
        rondo_attribute a0 = ct_int("axis", axis);
        dims[axis] = 1;
        put(p, CT_NODE_WITH(f, &a0, "Gather", v, CT_I64(f, 0)), rank, dims);
        return;
    }
    case 4: {
        int64_t perm[4] = {0}, moved[4] = {0};
        for (int32_t i = 0; i < rank; i++) perm[i] = rank - 1 - i, moved[i] = dims[rank - 1 - i];
        rondo_attribute a0 = ct_ints("perm", (uint32_t)rank, perm);
        put(p, CT_NODE_WITH(f, &a0, "Transpose", v), rank, moved);
        return;
    }
    case 5: {
        rondo_ir_value parts[2];
        if (dims[axis] % 2) return;
        rondo_attribute a0[2] = {ct_int("axis", axis), ct_int("num_outputs", 2)};
        ct_nodes(f, NULL, "Split", &v, 1, a0, 2, parts, 2);
        dims[axis] /= 2;
        put(p, parts[0], rank, dims);
        put(p, parts[1], rank, dims);
        return;
    }
    default:
        dims[axis] = 1;
        put(p, CT_NODE(f, "ReduceMean", v, CT_I64(f, axis)), rank, dims);
        return;
    }
}

static void add_product(pool *p, uint32_t a) {
    int64_t dims[4], weights[2];
    int32_t rank = p->ranks[a];
    if (rank < 2) return;
    memcpy(dims, p->dims[a], sizeof dims);
    weights[0] = dims[rank - 1];
    weights[1] = 1 + (int64_t)roll(p, 6);
    rondo_ir_value w = ct_random(p->f, 2, weights), bias = ct_random(p->f, 1, &weights[1]), made;
    made = CT_NODE(p->f, "MatMul", p->values[a], w);
    dims[rank - 1] = weights[1];
    if (roll(p, 4) == 0) put(p, made, rank, dims); /* then it has other uses as well */
    if (roll(p, 2)) made = CT_NODE(p->f, "Add", made, bias);
    if (roll(p, 2)) made = CT_NODE(p->f, "Relu", made);
    put(p, made, rank, dims);
}

static void add_plain(pool *p, uint32_t a) {
    static const char *const unary[] = {"Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Identity", "LeakyRelu"};
    static const char *const binary[] = {"Add", "Sub", "Mul", "Max", "Min"};
    if (roll(p, 3) == 0) {
        put(p, CT_NODE(p->f, unary[roll(p, 7)], p->values[a]), p->ranks[a], p->dims[a]);
        return;
    }
    /* Another of the same shape, or a constant that broadcasts. */
    rondo_ir_value other = ct_random(p->f, 1, &p->dims[a][p->ranks[a] - 1]);
    for (uint32_t b = 0; b < p->count; b++) {
        if (p->ranks[b] == p->ranks[a] && roll(p, 3) == 0 &&
            memcmp(p->dims[a], p->dims[b], (size_t)p->ranks[a] * sizeof(int64_t)) == 0) {
            other = p->values[b];
        }
    }
    put(p, CT_NODE(p->f, binary[roll(p, 5)], p->values[a], other), p->ranks[a], p->dims[a]);
}

static void grow(pool *p) {
    uint32_t nodes = 1 + (uint32_t)roll(p, 16);
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t a = (uint32_t)roll(p, p->count);
        switch (roll(p, 5)) {
        case 0: add_product(p, a); break;
        case 1:
        case 2: add_shaped(p, a); break;
        default: add_plain(p, a); break;
        }
    }
    /* One in ten constants only, one in ten an input as it is. */
    if (roll(p, 10) == 0)
        put(p, CT_NODE(p->f, "Neg", ct_random(p->f, 1, (const int64_t[]){3})), 1, (const int64_t[]){3});
    uint32_t outputs = 1 + (uint32_t)roll(p, 4);
    for (uint32_t i = 0; i < outputs; i++) {
        char name[8] = {'o', (char)('0' + i), 0};
        ct_output(p->f, p->values[roll(p, 4) ? p->count - 1 - i % p->count : roll(p, p->count)], name);
    }
}

static void random_graphs(rondo_test *t) {
    static const uint32_t flags[] = {0, RONDO_COMPILE_NO_FUSION, RONDO_COMPILE_NO_FOLDING, RONDO_COMPILE_NO_REUSE,
                                     RONDO_COMPILE_NO_FUSION | RONDO_COMPILE_NO_FOLDING | RONDO_COMPILE_NO_REUSE};
    compile_fixture f = {.t = t};
    T_DEFER(t, ct_close, &f);
    for (uint32_t round = 0; round < 300; round++) {
        pool p = {.f = &f};
        float x[24], y[6];
        ct_again(t, &f);
        put(&p, ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 3, 4)), 3, (const int64_t[]){2, 3, 4});
        put(&p, ct_input(&f, "y", RONDO_DTYPE_F32, CT_DIMS(1, 6)), 2, (const int64_t[]){1, 6});
        for (int i = 0; i < 24; i++) x[i] = ct_float(t);
        for (int i = 0; i < 6; i++) y[i] = ct_float(t);
        grow(&p);
        for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
            for (int fast = 0; fast < 2; fast++) {
                const rondo__kernel_set *set = fast ? &f.cpu : &f.ref;
                void *got[4] = {0}, *want[4] = {0}, *inputs[2] = {x, y};
                ct_compile(&f, set, flags[i]);
                ct_run(&f, set, inputs, got);
                ct_reference(&f, inputs, want);
                /* A fused bias is added before the rounding: one rounding less than node by node. */
                ct_agree(&f, got, want, !fast && (flags[i] & RONDO_COMPILE_NO_FUSION));
            }
        }
        ct_close(&f);
    }
}

RONDO_TEST_MAIN(T(x_plus_2y), T(sizes), T(values_become_guards), T(values_are_checked), T(shapes_that_depend_on_data),
                T(every_node_without_a_kernel), T(sizes_that_do_not_fit), T_PLAIN(random_graphs))
