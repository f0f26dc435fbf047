/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs looked at and edited through the public functions: what is allowed keeps the graph whole, what is not changes
 * nothing and says where. */
#include <rondo/ir.h>
#include <stdio.h>

#include "harness/harness.h"
#include "ir/ir.h"

typedef struct edits {
    rondo_instance *instance;
    rondo_ir_graph *graph;
    rondo_ir_graph *own;              /* another one, while it is the test's */
    rondo_ir_value x, y, sum, result; /* sum = x + y, result = sum + y */
} edits;

static void edits_close(edits *e) {
    rondo_ir_graph_release(e->own);
    rondo_ir_graph_release(e->graph);
    rondo_instance_release(e->instance);
}

static const int64_t two_by_three[2] = {2, 3};

static rondo_ir_value edits_node(rondo_test *t, edits *e, const char *type, const char *name, rondo_ir_value a,
                                 rondo_ir_value b) {
    rondo_ir_value made = RONDO_IR_NONE, inputs[2] = {a, b};
    T_OK(t, rondo_ir_graph_add_node(e->graph, type, name, inputs, b == RONDO_IR_NONE ? 1 : 2, NULL, 0, &made, 1));
    return made;
}

static void edits_open(rondo_test *t, edits *e) {
    *e = (edits){0};
    T_DEFER(t, edits_close, e);
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    options.ignore_plugin_path = 1;
    T_OK(t, rondo_instance_create(&options, &e->instance));
    T_OK(t, rondo_ir_graph_create(e->instance, "main", &e->graph));
    T_OK(t, rondo_ir_graph_add_input(e->graph, "x", RONDO_DTYPE_F32, 2, two_by_three, NULL, &e->x));
    T_OK(t, rondo_ir_graph_add_input(e->graph, "y", RONDO_DTYPE_F32, 2, two_by_three, NULL, &e->y));
    e->sum = edits_node(t, e, "Add", "Add0", e->x, e->y);
    e->result = edits_node(t, e, "Add", "Add1", e->sum, e->y);
    T_OK(t, rondo_ir_graph_add_output(e->graph, e->result, "out"));
}

/* "Add0 Add1", in the order in which they run. */
static void edits_order(rondo_test *t, const edits *e, const char *want) {
    char text[256] = "";
    size_t used = 0;
    rondo_ir_node_info info = RONDO_IR_NODE_INFO_INIT;
    for (uint32_t i = 0; rondo_ir_graph_node_at(e->graph, i) != RONDO_IR_NONE; i++) {
        rondo_ir_value first = rondo_ir_graph_node_at(e->graph, i);
        T_OK(t, rondo_ir_graph_get_node(e->graph, first, &info));
        T_EQ(t, rondo_ir_graph_find_node(e->graph, info.name), first);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "", info.name);
    }
    T_STR(t, text, want);
    T_OK(t, rondo_ir_graph_verify(e->graph));
}

static void edits_input(rondo_test *t, const edits *e, rondo_ir_value node, uint32_t index, rondo_ir_value want) {
    rondo_ir_node_info info = RONDO_IR_NODE_INFO_INIT;
    T_OK(t, rondo_ir_graph_get_node(e->graph, node, &info));
    T_TRUE(t, index < info.input_count);
    T_EQ(t, info.inputs[index], want);
}

static void test_look(rondo_test *t) {
    edits e;
    edits_open(t, &e);
    rondo_ir_value_info value = RONDO_IR_VALUE_INFO_INIT;
    rondo_ir_node_info node = RONDO_IR_NODE_INFO_INIT;
    const char *symbol;
    T_EQ(t, rondo_ir_graph_find_value(e.graph, "Add0:0"), e.sum);
    T_EQ(t, rondo_ir_graph_find_value(e.graph, "nobody"), RONDO_IR_NONE);
    T_EQ(t, rondo_ir_graph_find_node(e.graph, "Add1"), e.result);
    T_EQ(t, rondo_ir_graph_find_node(e.graph, "x"), RONDO_IR_NONE);
    T_EQ(t, rondo_ir_graph_input_value(e.graph, 1), e.y);
    T_EQ(t, rondo_ir_graph_output_value(e.graph, 0), e.result);
    T_EQ(t, rondo_ir_graph_output_value(e.graph, 1), RONDO_IR_NONE);
    T_OK(t, rondo_ir_graph_get_value(e.graph, e.result, &value));
    T_STR(t, value.node_name, "Add1");
    T_STR(t, value.operator_name, "Add");
    T_EQ(t, value.flags, RONDO_IR_VALUE_IS_OUTPUT);
    T_OK(t, rondo_ir_graph_get_value(e.graph, e.x, &value));
    T_TRUE(t, value.node_name == NULL && value.dtype == RONDO_DTYPE_F32 && value.rank == 2);
    T_EQ(t, rondo_ir_graph_value_dim(e.graph, e.x, 1, &symbol), 3);
    T_EQ(t, rondo_ir_graph_value_dim(e.graph, e.x, 2, &symbol), -1);
    T_FAILS(t, rondo_ir_graph_get_value(e.graph, 99, &value), OUT_OF_RANGE, "no value 99");
    T_FAILS(t, rondo_ir_graph_get_node(e.graph, e.x, &node), NOT_FOUND, "no node makes");
    T_OK(t, rondo_ir_graph_get_node(e.graph, e.result, &node));
    T_TRUE(t, node.input_count == 2 && node.inputs[0] == e.sum && node.inputs[1] == e.y && node.outputs[0] == e.result);
}

static void test_controls(rondo_test *t) {
    edits e;
    edits_open(t, &e);
    rondo_ir_value late = edits_node(t, &e, "Neg", "Late", e.x, RONDO_IR_NONE);
    rondo_ir_value later = edits_node(t, &e, "Abs", "Later", late, RONDO_IR_NONE);
    edits_order(t, &e, "Add0 Add1 Late Later");
    /* Add1 waits for Later: it moves behind it, with what that needs in front. */
    T_OK(t, rondo_ir_graph_add_control(e.graph, e.result, later));
    T_OK(t, rondo_ir_graph_add_control(e.graph, e.result, later)); /* once is enough */
    edits_order(t, &e, "Add0 Late Later Add1");
    T_EQ(t, rondo_ir_graph_control(e.graph, e.result, 0), later);
    T_EQ(t, rondo_ir_graph_control(e.graph, e.result, 1), RONDO_IR_NONE);
    T_FAILS(t, rondo_ir_graph_add_control(e.graph, late, e.result), INVALID_ARGUMENT, "node 'Late'");
    T_FAILS(t, rondo_ir_graph_add_control(e.graph, late, late), INVALID_ARGUMENT, "node 'Late'");
    T_FAILS(t, rondo_ir_graph_add_control(e.graph, e.x, late), INVALID_ARGUMENT, "no node makes value 'x'");
    edits_order(t, &e, "Add0 Late Later Add1");
    T_OK(t, rondo_ir_graph_add_control(e.graph, late, e.sum)); /* stands in that order already */
    T_OK(t, rondo_ir_graph_remove_control(e.graph, e.result, later));
    T_FAILS(t, rondo_ir_graph_remove_control(e.graph, e.result, later), NOT_FOUND, "no control edge from 'Later'");
    /* Nothing holds Later any more: a node that goes takes its edges along. */
    T_OK(t, rondo_ir_graph_remove_node(e.graph, later));
    T_OK(t, rondo_ir_graph_remove_node(e.graph, late));
    edits_order(t, &e, "Add0 Add1");
    T_EQ(t, rondo__ir_node_at(e.graph, 0)->awaited, 0);
}

/* Edges through copies, after nodes in between have gone. */
static void test_controls_copied(rondo_test *t) {
    edits e;
    edits_open(t, &e);
    rondo_ir_graph *copy = NULL;
    rondo_ir_value lost = edits_node(t, &e, "Neg", "Lost", e.x, RONDO_IR_NONE);
    rondo_ir_value nodes[9];
    for (int i = 0; i < 9; i++) nodes[i] = edits_node(t, &e, "Neg", NULL, e.x, RONDO_IR_NONE);
    rondo_ir_value last = edits_node(t, &e, "Neg", "Last", e.x, RONDO_IR_NONE);
    for (int i = 0; i < 9; i++) T_OK(t, rondo_ir_graph_add_control(e.graph, last, nodes[i]));
    T_OK(t, rondo_ir_graph_add_control(e.graph, last, lost));
    T_OK(t, rondo_ir_graph_remove_control(e.graph, last, nodes[3]));
    T_OK(t, rondo_ir_graph_remove_node(e.graph, lost));
    T_OK(t, rondo_ir_graph_remove_node(e.graph, nodes[5]));
    T_OK(t, rondo__ir_clone(e.graph, false, &copy));
    T_DEFER(t, rondo_ir_graph_release, copy);
    T_OK(t, rondo_ir_graph_verify(copy));
    T_EQ(t, copy->nodes.count, 11);
    rondo_ir_value in_copy = rondo_ir_graph_find_node(copy, "Last");
    static const int stay[7] = {0, 1, 2, 4, 6, 7, 8};
    for (uint32_t i = 0; i < 7; i++) {
        rondo_ir_value_info want = RONDO_IR_VALUE_INFO_INIT, got = RONDO_IR_VALUE_INFO_INIT;
        T_OK(t, rondo_ir_graph_get_value(e.graph, nodes[stay[i]], &want));
        T_OK(t, rondo_ir_graph_get_value(copy, rondo_ir_graph_control(copy, in_copy, i), &got));
        T_STR(t, got.node_name, want.node_name);
    }
    T_EQ(t, rondo_ir_graph_control(copy, in_copy, 7), RONDO_IR_NONE);
}

static void test_set_input(rondo_test *t) {
    edits e;
    edits_open(t, &e);
    static const int64_t one = 1;
    rondo_ir_value ints, late = edits_node(t, &e, "Neg", "Late", e.x, RONDO_IR_NONE);
    T_OK(t, rondo_ir_graph_add_constant(e.graph, "ints", RONDO_DTYPE_I64, 1, &one, &one, &ints));
    T_FAILS(t, rondo_ir_graph_set_input(e.graph, e.sum, 0, ints), INVALID_ARGUMENT, "node 'Add0' (Add): input 1 'B'");
    T_OK(t, rondo_ir_graph_set_input(e.graph, e.sum, 1, late));
    edits_order(t, &e, "Late Add0 Add1");
    edits_input(t, &e, e.sum, 1, late);
    T_FAILS(t, rondo_ir_graph_set_input(e.graph, e.sum, 0, e.result), INVALID_ARGUMENT,
            "node 'Add0': an input from 'Add1' would close a cycle");
    T_FAILS(t, rondo_ir_graph_set_input(e.graph, e.sum, 0, e.sum), INVALID_ARGUMENT, "cycle");
    T_FAILS(t, rondo_ir_graph_set_input(e.graph, e.sum, 2, e.y), INVALID_ARGUMENT, "'Add0' (Add): 3 inputs");
    T_FAILS(t, rondo_ir_graph_set_input(e.graph, e.sum, 0, RONDO_IR_NONE), INVALID_ARGUMENT, "input 0 'A' is missing");
    T_FAILS(t, rondo_ir_graph_set_input(e.graph, e.sum, 0, 1234), INVALID_ARGUMENT, "value 1234");
    edits_input(t, &e, e.sum, 0, e.x);
    /* An optional input that was left out, past the last one. */
    rondo_ir_value gemm = edits_node(t, &e, "MatMul", "m", e.x, e.y);
    T_OK(t, rondo_ir_graph_remove_node(e.graph, gemm));
    rondo_ir_value clip = edits_node(t, &e, "Clip", "Clip0", e.sum, RONDO_IR_NONE), low;
    T_OK(t, rondo_ir_graph_add_constant(e.graph, "low", RONDO_DTYPE_F32, 0, NULL, &(const float){0}, &low));
    T_OK(t, rondo_ir_graph_set_input(e.graph, clip, 2, low));
    edits_input(t, &e, clip, 1, RONDO_IR_NONE);
    edits_input(t, &e, clip, 2, low);
}

static void test_replace_and_remove(rondo_test *t) {
    edits e;
    edits_open(t, &e);
    rondo_tensor_info out;
    T_FAILS(t, rondo_ir_graph_remove_node(e.graph, e.sum), INVALID_STATE, "'Add0:0' is input 0 of node 'Add1'");
    T_FAILS(t, rondo_ir_graph_remove_node(e.graph, e.result), INVALID_STATE, "is output 0 of graph 'main'");
    T_FAILS(t, rondo_ir_graph_replace_uses(e.graph, e.y, e.sum), INVALID_ARGUMENT, "node 'Add0' makes it from");
    edits_input(t, &e, e.sum, 1, e.y);
    rondo_ir_value ints;
    T_OK(t, rondo_ir_graph_add_input(e.graph, "i", RONDO_DTYPE_I32, 2, two_by_three, NULL, &ints));
    T_FAILS(t, rondo_ir_graph_replace_uses(e.graph, e.y, ints), INVALID_ARGUMENT, "'i' of int32 cannot stand for 'y'");
    /* A node that stands later takes over, and moves up. */
    rondo_ir_value late = edits_node(t, &e, "Neg", "Late", e.x, RONDO_IR_NONE);
    T_OK(t, rondo_ir_graph_replace_uses(e.graph, e.sum, late));
    T_OK(t, rondo_ir_graph_remove_node(e.graph, e.sum));
    edits_order(t, &e, "Late Add1");
    T_OK(t, rondo_ir_graph_replace_uses(e.graph, e.result, late));
    T_OK(t, rondo_ir_graph_remove_node(e.graph, e.result));
    edits_order(t, &e, "Late");
    T_OK(t, rondo_ir_graph_output(e.graph, 0, &out));
    T_STR(t, out.name, "out"); /* an output keeps its name */
    T_EQ(t, rondo_ir_graph_output_value(e.graph, 0), late);
}

static void test_insert(rondo_test *t) {
    edits e;
    edits_open(t, &e);
    rondo_ir_value made = RONDO_IR_NONE;
    T_OK(t, rondo_ir_graph_insert_node(e.graph, e.sum, "Neg", "Neg0", &e.sum, 1, NULL, 0, &made, 1));
    edits_order(t, &e, "Add0 Neg0 Add1");
    edits_input(t, &e, e.result, 0, made);
    edits_input(t, &e, made, 0, e.sum);
    T_OK(t, rondo_ir_graph_insert_node(e.graph, e.result, "Relu", "Relu0", &e.result, 1, NULL, 0, &made, 1));
    T_EQ(t, rondo_ir_graph_output_value(e.graph, 0), made);
    edits_order(t, &e, "Add0 Neg0 Add1 Relu0");
    rondo_ir_value both[2] = {e.sum, e.result};
    T_FAILS(t, rondo_ir_graph_insert_node(e.graph, e.sum, "Mul", "Mul0", both, 2, NULL, 0, &made, 1), INVALID_ARGUMENT,
            "node 'Mul0': input 1, 'Add1:0', is made from 'Add0:0'");
    T_FAILS(t, rondo_ir_graph_insert_node(e.graph, e.sum, "Nought", NULL, both, 1, NULL, 0, &made, 1), NOT_FOUND,
            "no operator 'Nought'");
    edits_order(t, &e, "Add0 Neg0 Add1 Relu0");
    /* Behind an input: every other user. */
    T_OK(t, rondo_ir_graph_insert_node(e.graph, e.y, "Abs", "Abs0", &e.y, 1, NULL, 0, &made, 1));
    edits_input(t, &e, e.sum, 1, made);
    edits_input(t, &e, e.result, 1, made);
    edits_order(t, &e, "Abs0 Add0 Neg0 Add1 Relu0");
}

static void test_attributes(rondo_test *t) {
    edits e;
    edits_open(t, &e);
    rondo_attribute alpha = {.name = "alpha", .kind = RONDO_ATTRIBUTE_FLOAT, .count = 1, .value.f = 0.5f};
    rondo_attribute note = {.name = "user.stage", .kind = RONDO_ATTRIBUTE_INT, .count = 1, .value.i = 7};
    rondo_ir_value leaky = edits_node(t, &e, "LeakyRelu", "L", e.sum, RONDO_IR_NONE);
    T_OK(t, rondo_ir_graph_set_attribute(e.graph, leaky, &alpha));
    alpha.value.f = 0.25f;
    T_OK(t, rondo_ir_graph_set_attribute(e.graph, leaky, &alpha));
    T_OK(t, rondo_ir_graph_set_attribute(e.graph, leaky, &note));
    T_FAILS(t, rondo_ir_graph_set_attribute(e.graph, e.sum, &alpha), INVALID_ARGUMENT, "no attribute 'alpha'");
    alpha.kind = RONDO_ATTRIBUTE_INT;
    T_FAILS(t, rondo_ir_graph_set_attribute(e.graph, leaky, &alpha), INVALID_ARGUMENT, "must be a float");
    rondo_ir_node_info info = RONDO_IR_NODE_INFO_INIT;
    T_OK(t, rondo_ir_graph_get_node(e.graph, leaky, &info));
    T_EQ(t, info.attribute_count, 2);
    T_TRUE(t, info.attributes[0].value.f == 0.25f);
    T_EQ(t, info.attributes[1].value.i, 7);
    T_OK(t, rondo_ir_graph_verify(e.graph));
}

static void test_branches(rondo_test *t) {
    edits e;
    edits_open(t, &e);
    rondo_ir_graph *then_branch, *else_branch;
    rondo_ir_value condition, inner, negative, chosen, c;
    T_OK(t, rondo_ir_graph_add_input(e.graph, "if", RONDO_DTYPE_BOOL, 0, NULL, NULL, &condition));
    T_OK(t, rondo_ir_graph_add_branch(e.graph, "then", &then_branch));
    T_OK(t, rondo_ir_graph_outer_value(then_branch, e.sum, &inner));
    T_OK(t, rondo_ir_graph_add_node(then_branch, "Neg", "Neg0", &inner, 1, NULL, 0, &negative, 1));
    T_OK(t, rondo_ir_graph_add_output(then_branch, negative, NULL));
    /* A graph of its own becomes the other branch. */
    T_OK(t, rondo_ir_graph_create(e.instance, "else", &e.own));
    else_branch = e.own;
    T_OK(t, rondo_ir_graph_add_constant(else_branch, "c", RONDO_DTYPE_F32, 0, NULL, &(const float){1}, &c));
    T_OK(t, rondo_ir_graph_add_output(else_branch, c, NULL));
    T_OK(t, rondo_ir_graph_adopt(e.graph, else_branch));
    e.own = NULL;
    T_OK(t, rondo_ir_graph_adopt(e.graph, else_branch)); /* it is one already */
    rondo_attribute branches[2] = {
        {.name = "then_branch", .kind = RONDO_ATTRIBUTE_GRAPH, .count = 1, .value.graph = then_branch},
        {.name = "else_branch", .kind = RONDO_ATTRIBUTE_GRAPH, .count = 1, .value.graph = else_branch}};
    T_OK(t, rondo_ir_graph_add_node(e.graph, "If", "If0", &condition, 1, branches, 2, &chosen, 1));
    T_OK(t, rondo_ir_graph_add_output(e.graph, chosen, "chosen"));
    edits_order(t, &e, "Add0 Add1 If0");
    T_FAILS(t, rondo_ir_graph_adopt(then_branch, else_branch), INVALID_ARGUMENT, "is a branch of 'main'");
    T_FAILS(t, rondo_ir_graph_adopt(then_branch, e.graph), INVALID_ARGUMENT, "inside itself");
    T_FAILS(t, rondo_ir_graph_outer_value(e.graph, e.sum, &inner), INVALID_ARGUMENT, "around it");
    T_OK(t, rondo_ir_graph_create(e.instance, "loose", &e.own));
    rondo_ir_graph_retain(e.own);
    rondo_status held = rondo_ir_graph_adopt(e.graph, e.own);
    rondo_ir_graph_release(e.own);
    T_FAILS(t, held, INVALID_ARGUMENT, "held by others");
    /* What a branch uses counts as used, orders, and is replaced. */
    T_OK(t, rondo_ir_graph_replace_uses(e.graph, e.result, e.y));
    T_OK(t, rondo_ir_graph_remove_node(e.graph, e.result));
    T_FAILS(t, rondo_ir_graph_remove_node(e.graph, e.sum), INVALID_STATE, "is used in branch 'then'");
    T_FAILS(t, rondo_ir_graph_replace_uses(e.graph, e.sum, chosen), INVALID_ARGUMENT, "'If0' makes it from");
    rondo_ir_value late = edits_node(t, &e, "Abs", "Late", e.x, RONDO_IR_NONE);
    T_OK(t,
         rondo_ir_graph_insert_node(e.graph, e.sum, "Add", "Mid", (rondo_ir_value[]){e.sum, late}, 2, NULL, 0, &c, 1));
    edits_order(t, &e, "Add0 Late Mid If0");
    T_OK(t, rondo_ir_graph_replace_uses(e.graph, c, late));
    T_OK(t, rondo_ir_graph_remove_node(e.graph, c));
    T_OK(t, rondo_ir_graph_remove_node(e.graph, e.sum));
    edits_order(t, &e, "Late If0");
}

RONDO_TEST_MAIN(T(test_look), T(test_controls), T(test_controls_copied), T(test_set_input), T(test_replace_and_remove),
                T(test_insert), T(test_attributes), T(test_branches))
