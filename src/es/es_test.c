/* SPDX-License-Identifier: Apache-2.0
 *
 * Builders: what they build, whose things are whose, and failures that wait until the graph is built. */
#include <rondo/es.h>
#include <rondo/ir.h>
#include <stdio.h>

#include "harness/harness.h"

typedef struct styles {
    rondo_instance *instance;
    rondo_es_builder *b, *other;
    rondo_ir_graph *graph;
    rondo_tensor *tensor;
} styles;

static void styles_close(styles *s) {
    rondo_es_builder_release(s->other);
    rondo_es_builder_release(s->b);
    rondo_ir_graph_release(s->graph);
    rondo_tensor_release(s->tensor);
    rondo_instance_release(s->instance);
}

static void styles_open(rondo_test *t, styles *s) {
    *s = (styles){0};
    T_DEFER(t, styles_close, s);
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    options.ignore_plugin_path = 1;
    T_OK(t, rondo_instance_create(&options, &s->instance));
    T_OK(t, rondo_es_builder_create(s->instance, NULL, &s->b));
}

static void styles_build(rondo_test *t, styles *s) {
    rondo_ir_graph_release(s->graph);
    s->graph = NULL;
    T_OK(t, rondo_es_build_and_reset(s->b, &s->graph));
}

static rondo_es_tensor *add(rondo_es_tensor *a, rondo_es_tensor *b) {
    rondo_es_tensor *inputs[2] = {a, b};
    rondo_es_node node = RONDO_ES_NODE_INIT;
    node.operator_name = "Add";
    node.inputs = inputs;
    node.input_count = 2;
    node.output_count = 1;
    rondo_es_tensor **made = rondo_es_add(&node);
    return made ? made[0] : NULL;
}

static rondo_es_tensor *unary(const char *type, rondo_es_tensor *a, const rondo_attribute *attributes, uint32_t count) {
    rondo_es_node node = RONDO_ES_NODE_INIT;
    node.operator_name = type;
    node.inputs = &a;
    node.input_count = 1;
    node.attributes = attributes;
    node.attribute_count = count;
    node.output_count = 1;
    rondo_es_tensor **made = rondo_es_add(&node);
    return made ? made[0] : NULL;
}

static const int64_t eight_by_two[2] = {8, 2};

static rondo_es_tensor *input(styles *s, int64_t index, const char *name) {
    return rondo_es_input_with_details(s->b, index, name, RONDO_DTYPE_F32, RONDO_FORMAT_NHWC, eight_by_two, 2);
}

static void test_x_plus_2y(rondo_test *t) {
    styles s;
    rondo_tensor_info info;
    rondo_ir_graph_info facts = RONDO_IR_GRAPH_INFO_INIT;
    rondo_ir_node_info node = RONDO_IR_NODE_INFO_INIT;
    rondo_ir_value_info value = RONDO_IR_VALUE_INFO_INIT;
    styles_open(t, &s);
    for (int round = 0; round < 2; round++) { /* the builder is empty after the first, and used again */
        rondo_es_tensor *y = input(&s, 1, "y"), *x = input(&s, 0, "x"); /* by number, not by order */
        (void)rondo_es_set_output_named(add(add(x, y), y), 0, "output");
        T_TRUE(t, s.b && (rondo_es_failed(s.b) || rondo_es_owner(x) == s.b));
        styles_build(t, &s);
        T_TRUE(t, rondo_es_graph(s.b) == NULL);
        T_OK(t, rondo_ir_graph_get_info(s.graph, &facts));
        T_TRUE(t, facts.inputs == 2 && facts.outputs == 1 && facts.nodes == 2);
        T_STR(t, facts.name, "graph");
        T_OK(t, rondo_ir_graph_input(s.graph, 0, &info));
        T_STR(t, info.name, "x");
        T_OK(t, rondo_ir_graph_output(s.graph, 0, &info));
        T_STR(t, info.name, "output");
        T_OK(t, rondo_ir_graph_get_node(s.graph, rondo_ir_graph_find_node(s.graph, "Add1"), &node));
        T_EQ(t, node.inputs[0], rondo_ir_graph_find_value(s.graph, "Add0:0"));
        T_EQ(t, node.inputs[1], rondo_ir_graph_input_value(s.graph, 1));
        T_OK(t, rondo_ir_graph_get_value(s.graph, rondo_ir_graph_input_value(s.graph, 0), &value));
        T_TRUE(t, value.format == RONDO_FORMAT_NHWC && value.origin_format == RONDO_FORMAT_NHWC);
    }
}

static void test_beginnings(rondo_test *t) {
    styles s;
    rondo_ir_value_info value = RONDO_IR_VALUE_INFO_INIT;
    const char *symbol, *const symbols[2] = {"batch", NULL};
    styles_open(t, &s);
    rondo_es_tensor *v1 = rondo_es_variable(s.b, 7, "late"), *v0 = rondo_es_variable(s.b, 0, NULL);
    rondo_es_tensor *x = rondo_es_input(s.b, 0), *y = rondo_es_input(s.b, 1);
    (void)rondo_es_set_dtype(y, RONDO_DTYPE_I64);
    (void)rondo_es_set_symbol_shape(y, symbols, 2);
    (void)rondo_es_set_shape(v0, (const int64_t[]){4, -1}, 2);
    rondo_es_tensor *c = rondo_es_vector_int64(s.b, (const int64_t[]){5, 6, 7}, 3);
    rondo_es_tensor *d = rondo_es_const_double(s.b, (const double[]){1, 2}, (const int64_t[]){2, 1}, 2);
    rondo_es_tensor *e = rondo_es_scalar_uint32(s.b, 9);
    rondo_es_tensor *all[7] = {x, y, v0, v1, c, d, e};
    for (int i = 0; i < 7; i++) (void)rondo_es_set_output(all[i], i);
    styles_build(t, &s);
    static const char *const names[4] = {"input_0", "input_1", "variable_0", "late"};
    for (uint32_t i = 0; i < 4; i++) {
        T_OK(t, rondo_ir_graph_get_value(s.graph, rondo_ir_graph_input_value(s.graph, i), &value));
        T_STR(t, value.name, names[i]);
        T_EQ(t, value.dtype, i == 1 ? RONDO_DTYPE_I64 : RONDO_DTYPE_F32);
        T_EQ(t, value.rank, i == 1 || i == 2 ? 2 : 0);
        T_EQ(t, value.attribute_count, i >= 2);
        if (i >= 2) T_EQ(t, value.attributes[0].value.i, i == 2 ? 0 : 7);
    }
    T_EQ(t, rondo_ir_graph_value_dim(s.graph, rondo_ir_graph_input_value(s.graph, 1), 0, &symbol), -1);
    T_STR(t, symbol, "batch");
    T_EQ(t, rondo_ir_graph_value_dim(s.graph, rondo_ir_graph_input_value(s.graph, 2), 0, &symbol), 4);
    T_OK(t, rondo_ir_graph_get_value(s.graph, rondo_ir_graph_output_value(s.graph, 4), &value));
    T_TRUE(t, value.dtype == RONDO_DTYPE_I64 && ((const int64_t *)value.constant)[2] == 7);
    T_OK(t, rondo_ir_graph_get_value(s.graph, rondo_ir_graph_output_value(s.graph, 5), &value));
    T_TRUE(t, value.rank == 2 && ((const double *)value.constant)[1] == 2);
    T_OK(t, rondo_ir_graph_get_value(s.graph, rondo_ir_graph_output_value(s.graph, 6), &value));
    T_TRUE(t, value.rank == 0 && *(const uint32_t *)value.constant == 9);
}

static void test_details(rondo_test *t) {
    styles s;
    rondo_ir_node_info node = RONDO_IR_NODE_INFO_INIT;
    rondo_ir_value_info value = RONDO_IR_VALUE_INFO_INIT;
    rondo_attribute alpha = {.name = "alpha", .kind = RONDO_ATTRIBUTE_FLOAT, .count = 1, .value.f = 0.5f};
    rondo_attribute note = {.name = "anything", .kind = RONDO_ATTRIBUTE_INT, .count = 1, .value.i = 4};
    styles_open(t, &s);
    rondo_es_tensor *x = input(&s, 0, "x"), *first = unary("Neg", x, NULL, 0), *last = unary("LeakyRelu", x, NULL, 0);
    rondo_es_tensor *before[1] = {last};
    (void)rondo_es_set_node_name(last, "Leak");
    (void)rondo_es_set_node_attribute(last, &alpha);
    (void)rondo_es_set_tensor_attribute(last, &note);
    (void)rondo_es_add_control_edge(first, before, 1);
    (void)rondo_es_set_output(first, 0);
    (void)rondo_es_set_output(last, 1);
    styles_build(t, &s);
    rondo_ir_value leak = rondo_ir_graph_find_node(s.graph, "Leak"), neg = rondo_ir_graph_find_node(s.graph, "Neg0");
    T_EQ(t, rondo_ir_graph_find_node(s.graph, "LeakyRelu1"), RONDO_IR_NONE);
    T_EQ(t, rondo_ir_graph_control(s.graph, neg, 0), leak);
    T_EQ(t, rondo_ir_graph_node_at(s.graph, 0), leak);
    T_OK(t, rondo_ir_graph_get_node(s.graph, leak, &node));
    T_TRUE(t, node.attribute_count == 1 && node.attributes[0].value.f == 0.5f);
    T_OK(t, rondo_ir_graph_get_value(s.graph, leak, &value));
    T_TRUE(t, value.attribute_count == 1 && value.attributes[0].value.i == 4);
}

/* Each does one thing wrong; what it says comes when the graph is built, and the builder is as new then. */
static void wrong_null(styles *s, rondo_es_tensor *x) {
    (void)s;
    (void)add(x, NULL);
}
static void wrong_type(styles *s, rondo_es_tensor *x) { (void)add(x, rondo_es_scalar_int64(s->b, 1)); }
static void wrong_operator(styles *s, rondo_es_tensor *x) {
    (void)s;
    (void)unary("Nought", x, NULL, 0);
}
static void wrong_attribute(styles *s, rondo_es_tensor *x) {
    (void)s;
    rondo_attribute a = {.name = "nought", .kind = RONDO_ATTRIBUTE_INT, .count = 1};
    (void)unary("Neg", x, &a, 1);
}
static void wrong_input(styles *s, rondo_es_tensor *x) {
    (void)x;
    (void)rondo_es_set_output(input(s, 3, "far"), 1);
}
static void wrong_twice(styles *s, rondo_es_tensor *x) {
    (void)s;
    (void)rondo_es_set_output(x, 0);
}
static void wrong_gap(styles *s, rondo_es_tensor *x) {
    (void)s;
    (void)rondo_es_set_output(x, 2);
}
static void wrong_name(styles *s, rondo_es_tensor *x) {
    (void)x;
    (void)input(s, 1, "x");
}
static void wrong_shape(styles *s, rondo_es_tensor *x) {
    (void)s;
    (void)rondo_es_set_shape(x, eight_by_two, 17);
}
static void wrong_size(styles *s, rondo_es_tensor *x) {
    (void)s;
    (void)rondo_es_set_shape(x, (const int64_t[]){-2}, 1);
}
static void wrong_dtype(styles *s, rondo_es_tensor *x) {
    (void)s;
    (void)rondo_es_set_dtype(x, 99);
}
static void wrong_format(styles *s, rondo_es_tensor *x) {
    (void)s;
    (void)rondo_es_set_format(x, 99);
}
static void wrong_constant(styles *s, rondo_es_tensor *x) {
    (void)x;
    (void)rondo_es_const(s->b, RONDO_DTYPE_F32, NULL, NULL, 99);
}
static void wrong_own_type(styles *s, rondo_es_tensor *x) {
    (void)x;
    (void)rondo_es_set_dtype(rondo_es_scalar_float(s->b, 1), RONDO_DTYPE_I32);
}
static void wrong_node(styles *s, rondo_es_tensor *x) {
    (void)s;
    (void)rondo_es_set_node_name(x, "n");
}
static void wrong_control(styles *s, rondo_es_tensor *x) {
    (void)s;
    rondo_es_tensor *none[1] = {NULL};
    (void)rondo_es_add_control_edge(unary("Neg", x, NULL, 0), none, 1);
}
static void wrong_graph(styles *s, rondo_es_tensor *x) { (void)add(x, rondo_es_input(s->other, 0)); }
static void wrong_list(styles *s, rondo_es_tensor *x) {
    rondo_es_node node = RONDO_ES_NODE_INIT;
    node.operator_name = "Max";
    node.more = &x;
    node.more_count = -1;
    node.owner = s->b;
    node.output_count = 1;
    (void)rondo_es_add(&node);
}

static void test_failures(rondo_test *t) {
    static const struct {
        void (*wrong)(styles *s, rondo_es_tensor *x);
        rondo_code code;
        const char *part;
    } cases[] = {{wrong_null, RONDO_CODE_INVALID_ARGUMENT, "input 1 'B' is missing"},
                 {wrong_type, RONDO_CODE_INVALID_ARGUMENT, "is int64 where the others are float32"},
                 {wrong_operator, RONDO_CODE_NOT_FOUND, "in rondo_es_Nought"},
                 {wrong_attribute, RONDO_CODE_INVALID_ARGUMENT, "no attribute 'nought'"},
                 {wrong_input, RONDO_CODE_INVALID_STATE, "input 1 is missing, there is one of number 3"},
                 {wrong_twice, RONDO_CODE_INVALID_STATE, "output 0 is there twice"},
                 {wrong_gap, RONDO_CODE_INVALID_STATE, "output 1 is missing, there is one of number 2"},
                 {wrong_name, RONDO_CODE_ALREADY_EXISTS, "a value 'x'"},
                 {wrong_shape, RONDO_CODE_INVALID_ARGUMENT, "'x': rank 17"},
                 {wrong_size, RONDO_CODE_INVALID_ARGUMENT, "axis 0 has size -2"},
                 {wrong_dtype, RONDO_CODE_INVALID_ARGUMENT, "99 is no data type"},
                 {wrong_format, RONDO_CODE_INVALID_ARGUMENT, "99 is no format"},
                 {wrong_constant, RONDO_CODE_INVALID_ARGUMENT, "rank 99"},
                 {wrong_own_type, RONDO_CODE_INVALID_ARGUMENT, "is that of its data"},
                 {wrong_node, RONDO_CODE_INVALID_ARGUMENT, "no node makes 'x'"},
                 {wrong_control, RONDO_CODE_INVALID_ARGUMENT, "control edge 0 is from a null tensor"},
                 {wrong_graph, RONDO_CODE_INVALID_ARGUMENT, "cannot use a tensor of graph 'other'"},
                 {wrong_list, RONDO_CODE_INVALID_ARGUMENT, "Max: a list of -1 tensors"}};
    styles s;
    styles_open(t, &s);
    T_OK(t, rondo_es_builder_create(s.instance, "other", &s.other));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rondo_es_tensor *x = input(&s, 0, "x");
        (void)rondo_es_set_output(x, 0);
        cases[i].wrong(&s, x);
        /* What comes behind does no harm and changes no reason. */
        (void)rondo_es_set_output(add(NULL, unary("Neg", NULL, NULL, 0)), 1);
        (void)rondo_es_set_shape(NULL, NULL, 3);
        rondo_status status = rondo_es_build_and_reset(s.b, &s.graph);
        char text[1024];
        (void)rondo_status_format(status, text, sizeof text);
        rondo_code code = rondo_status_code(status);
        T_TRUE(t, s.graph == NULL);
        if (code == RONDO_CODE_OUT_OF_MEMORY) T_OK(t, status);
        rondo_status_release(status);
        if (code != cases[i].code || !(strstr(text, cases[i].part) || rondo_test_failing(t))) {
            rondo_test_fail(t, __FILE__, __LINE__, "case %zu: %s does not say %s", i, text, cases[i].part);
        }
        T_TRUE(t, !rondo_es_failed(s.b));
    }
    T_FAILS(t, rondo_es_build_and_reset(s.b, &s.graph), INVALID_STATE, "output 0 is missing");
    (void)rondo_es_set_output(unary("Neg", input(&s, 0, "x"), NULL, 0), 0);
    styles_build(t, &s);
}

static rondo_es_tensor **choose(rondo_es_tensor *condition, rondo_ir_graph *yes, rondo_ir_graph *no, int64_t outputs) {
    rondo_attribute list[2];
    uint32_t count = 0;
    rondo_es_node node = RONDO_ES_NODE_INIT;
    rondo_es_put_graph(list, &count, "then_branch", yes);
    rondo_es_put_graph(list, &count, "else_branch", no);
    node.operator_name = "If";
    node.inputs = &condition;
    node.input_count = 1;
    node.attributes = list;
    node.attribute_count = count;
    node.output_count = outputs;
    return rondo_es_add(&node);
}

/* One branch uses what lies around it, the other is a graph of its own that the builder takes over. */
static void test_branches(rondo_test *t) {
    styles s;
    rondo_ir_graph *yes = NULL, *no = NULL;
    rondo_ir_graph_info facts = RONDO_IR_GRAPH_INFO_INIT;
    styles_open(t, &s);
    rondo_es_tensor *x = input(&s, 0, "x");
    rondo_es_tensor *condition = rondo_es_input_with_details(s.b, 1, "if", RONDO_DTYPE_BOOL, 0, NULL, 0);
    T_OK(t, rondo_es_builder_create_branch(s.b, "yes", &s.other));
    rondo_es_tensor *one = rondo_es_scalar_float(s.other, 1);
    (void)rondo_es_set_output(add(x, add(rondo_es_outer(s.other, x), one)), 0); /* goes to the inner one */
    T_OK(t, rondo_es_build_and_reset(s.other, &yes));
    rondo_es_builder_release(s.other);
    s.other = NULL;
    T_OK(t, rondo_es_builder_create(s.instance, "no", &s.other));
    (void)rondo_es_set_output(rondo_es_scalar_float(s.other, 2), 0);
    T_OK(t, rondo_es_build_and_reset(s.other, &no));
    rondo_es_tensor **chosen = choose(condition, yes, no, 1);
    (void)rondo_es_set_output(chosen ? chosen[0] : NULL, 0);
    styles_build(t, &s);
    T_OK(t, rondo_ir_graph_get_info(s.graph, &facts));
    T_TRUE(t, facts.nodes == 3 && facts.subgraphs == 2);
}

/* Graphs are taken over where the call fails, and branches that come too late say so. */
static void test_branches_lost(rondo_test *t) {
    styles s;
    rondo_ir_graph *yes = NULL, *none = NULL;
    styles_open(t, &s);
    T_OK(t, rondo_es_builder_create(s.instance, "no", &s.other));
    (void)rondo_es_set_output(rondo_es_scalar_float(s.other, 2), 0);
    T_OK(t, rondo_es_build_and_reset(s.other, &yes));
    T_TRUE(t, choose(NULL, yes, yes, 1) == NULL); /* no builder anywhere: the graph goes all the same */
    (void)rondo_es_set_output(rondo_es_scalar_float(s.other, 2), 0);
    T_OK(t, rondo_es_build_and_reset(s.other, &yes));
    T_TRUE(t, choose(input(&s, 0, "x"), yes, NULL, 1) == NULL);
    T_TRUE(t, rondo_es_failed(s.b));
    rondo_status_release(rondo_es_build_and_reset(s.b, &none));
    rondo_es_builder_release(s.other);
    s.other = NULL;
    T_OK(t, rondo_es_builder_create_branch(s.b, "late", &s.other));
    rondo_es_tensor *x = input(&s, 0, "x");
    rondo_es_tensor *one = rondo_es_scalar_float(s.other, 1);
    if (!one) T_OK(t, rondo_es_build_and_reset(s.other, &none)); /* there was no memory for it */
    (void)rondo_es_set_output(add(x, one), 0);
    (void)rondo_es_set_output(x, 0);
    styles_build(t, &s);
    T_FAILS(t, rondo_es_build_and_reset(s.other, &none), INVALID_STATE, "branch 'late': the graph around it was built");
    T_TRUE(t, none == NULL);
}

RONDO_TEST_MAIN(T(test_x_plus_2y), T(test_beginnings), T(test_details), T(test_failures), T(test_branches),
                T(test_branches_lost))
