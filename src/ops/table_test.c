/* SPDX-License-Identifier: Apache-2.0
 *
 * The prototypes against ONNX's own schemas (testdata/schemas.inc), and nodes against prototypes. */
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "ops/infer.h"

static const char *const schemas[] = {
#include "ops/testdata/schemas.inc"
};
#define SCHEMA_COUNT (sizeof schemas / sizeof *schemas)

/* Cuts the text at the next `separator` and gives what lies before it; null at the end. */
static char *cut(char **at, char separator) {
    char *start = *at;
    if (!start) return NULL;
    char *end = strchr(start, separator);
    if (end) *end = '\0';
    *at = end ? end + 1 : NULL;
    return start;
}

static uint32_t check_operands(rondo_test *t, const char *op, char *text, const rondo__ops_operand *operands,
                               uint32_t count) {
    char variables[32][16];
    uint32_t i = 0;
    for (char *item = cut(&text, ' '); item && *item; item = cut(&text, ' '), i++) {
        const char *name = cut(&item, ':'), *type = cut(&item, ':'), *option = cut(&item, ':');
        if (i >= count) rondo_test_fail(t, __FILE__, __LINE__, "%s: operand %s is missing", op, name);
        T_STR(t, operands[i].name, name);
        if (operands[i].types != strtoul(item, NULL, 16)) {
            rondo_test_fail(t, __FILE__, __LINE__, "%s %s: types %x, not %s", op, name, operands[i].types, item);
        }
        T_EQ(t, operands[i].optional, strcmp(option, "Optional") == 0);
        T_EQ(t, operands[i].variadic != 0, strcmp(option, "Variadic") == 0);
        (void)strncpy(variables[i], type, sizeof variables[i] - 1);
        variables[i][sizeof variables[i] - 1] = '\0';
        for (uint32_t k = 0; k < i; k++) {
            bool same = strcmp(variables[k], variables[i]) == 0 && type[1] != 'e'; /* tensor(int64) is no variable */
            bool ours = operands[k].type_variable && operands[k].type_variable == operands[i].type_variable;
            if (same != ours) rondo_test_fail(t, __FILE__, __LINE__, "%s: operands %u and %u", op, k, i);
        }
    }
    return i;
}

static void check_attributes(rondo_test *t, const rondo__ops_prototype *prototype, char *text) {
    uint32_t i = 0;
    for (char *item = cut(&text, ' '); item && *item; item = cut(&text, ' '), i++) {
        const char *name = cut(&item, ':'), *kind = cut(&item, ':');
        if (i >= prototype->attribute_count) {
            rondo_test_fail(t, __FILE__, __LINE__, "%s: attribute %s is missing", prototype->name, name);
        }
        T_STR(t, prototype->attributes[i].name, name);
        T_EQ(t, prototype->attributes[i].kind, atoi(kind));
        T_EQ(t, prototype->attributes[i].required, atoi(item));
    }
    T_EQ(t, i, prototype->attribute_count);
}

static void test_prototypes_are_onnx_schemas(rondo_test *t) {
    for (size_t i = 0; i < SCHEMA_COUNT; i++) {
        char text[1024];
        T_TRUE(t, strlen(schemas[i]) < sizeof text);
        memcpy(text, schemas[i], strlen(schemas[i]) + 1);
        char *at = text;
        const char *name = cut(&at, ';');
        const rondo__ops_prototype *prototype = rondo__ops_find(name);
        if (!prototype) rondo_test_fail(t, __FILE__, __LINE__, "there is no prototype of %s", name);
        T_TRUE(t, prototype == rondo__ops_at((uint32_t)i)); /* both are sorted by name */
        uint32_t inputs = check_operands(t, name, cut(&at, ';'), prototype->inputs, prototype->input_count);
        for (uint32_t k = inputs; k < prototype->input_count; k++) T_TRUE(t, prototype->inputs[k].internal);
        uint32_t outputs = check_operands(t, name, cut(&at, ';'), prototype->outputs, prototype->output_count);
        T_EQ(t, outputs, prototype->output_count);
        check_attributes(t, prototype, at);
        T_TRUE(t, prototype->summary && *prototype->summary);
        T_TRUE(t, prototype->infer || prototype->flags & (RONDO__OPS_CONTROL | RONDO__OPS_HOSTED));
        for (uint32_t bit = prototype->input_count; bit < 64; bit++) T_TRUE(t, !(prototype->shape_inputs >> bit & 1u));
    }
    T_TRUE(t, rondo__ops_at((uint32_t)SCHEMA_COUNT) == NULL);
    T_TRUE(t, rondo__ops_at(UINT32_MAX) == NULL);
}

static void test_find(rondo_test *t) {
    for (uint32_t i = 0; rondo__ops_at(i); i++) {
        T_TRUE(t, rondo__ops_find(rondo__ops_at(i)->name) == rondo__ops_at(i));
        if (i) T_TRUE(t, strcmp(rondo__ops_at(i - 1)->name, rondo__ops_at(i)->name) < 0);
    }
    T_TRUE(t, !rondo__ops_find("") && !rondo__ops_find("conv") && !rondo__ops_find("Convx") && !rondo__ops_find("zzz"));
    T_TRUE(t, !rondo__ops_find(NULL) && !rondo__ops_find("ai.onnx::Conv"));
}

typedef struct fixture {
    rondo_ir_graph *graph;
    rondo_ir_value x, i, b;
} fixture;

static void fixture_release(fixture *f) { rondo_ir_graph_release(f->graph); }

static void fixture_init(rondo_test *t, fixture *f) {
    static const int64_t dims[2] = {2, 3};
    f->graph = NULL;
    T_OK(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "g", NULL, &f->graph));
    T_DEFER(t, fixture_release, f);
    T_OK(t, rondo_ir_graph_add_input(f->graph, "x", RONDO_DTYPE_F32, 2, dims, NULL, &f->x));
    T_OK(t, rondo_ir_graph_add_input(f->graph, "i", RONDO_DTYPE_I64, 2, dims, NULL, &f->i));
    T_OK(t, rondo_ir_graph_add_input(f->graph, "b", RONDO_DTYPE_BOOL, 0, NULL, NULL, &f->b));
}

static void test_add_node(rondo_test *t) {
    fixture f;
    fixture_init(t, &f);
    rondo_ir_value sum[1], none[2] = {0, 0};
    const rondo_ir_value xx[2] = {f.x, f.x}, xi[2] = {f.x, f.i}, x[1] = {f.x}, far[2] = {f.x, 99},
                         gap[2] = {f.x, RONDO_IR_NONE};
    const rondo_ir_value xxx[3] = {f.x, f.x, f.x};
    const rondo_attribute bad[1] = {{.name = "axis", .kind = RONDO_ATTRIBUTE_INT}};
    size_t before = f.graph->values.count;
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "Adder", "n", xx, 2, NULL, 0, sum, 1), NOT_FOUND, "(prototype)");
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "Add", "n", xi, 2, NULL, 0, sum, 1), INVALID_ARGUMENT, "'B' is int64");
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "Add", "n", x, 1, NULL, 0, sum, 1), INVALID_ARGUMENT, "'B' is missing");
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "Add", "n", gap, 2, NULL, 0, sum, 1), INVALID_ARGUMENT, "is missing");
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "Add", "n", far, 2, NULL, 0, sum, 1), INVALID_ARGUMENT, "value 99");
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "Add", "n", xxx, 3, NULL, 0, sum, 1), INVALID_ARGUMENT, "at most 2");
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "Add", "n", xx, 2, NULL, 0, none, 2), INVALID_ARGUMENT, "outputs");
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "Add", "n", xx, 2, NULL, 0, NULL, 0), INVALID_ARGUMENT, "outputs");
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "Add", "n", xx, 2, bad, 1, sum, 1), INVALID_ARGUMENT, "'axis'");
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "Not", "n", x, 1, NULL, 0, sum, 1), INVALID_ARGUMENT, "cannot be");
    T_FAILS(t, rondo_ir_graph_add_node(NULL, "Add", "n", xx, 2, NULL, 0, sum, 1), INVALID_ARGUMENT, NULL);
    T_EQ(t, f.graph->values.count, before); /* what was refused left nothing behind */
    T_OK(t, rondo_ir_graph_add_node(f.graph, "Add", "n", xx, 2, NULL, 0, sum, 1));
    T_OK(t, rondo_ir_graph_add_output(f.graph, sum[0], "y"));
    T_OK(t, rondo_ir_graph_verify(f.graph));
    T_EQ(t, f.graph->nodes_in_model, 1);
    /* One variable through a chain: read as the input before it is written as the output. */
    rondo_ir_value chain = f.x;
    T_OK(t, rondo_ir_graph_add_node(f.graph, "Relu", "r", &chain, 1, NULL, 0, &chain, 1));
    T_OK(t, rondo_ir_graph_add_output(f.graph, chain, "z"));
    T_OK(t, rondo_ir_graph_verify(f.graph));
    T_EQ(t, rondo__ir_node_at(f.graph, 1)->inputs[0], f.x);
    T_STR(t, rondo__ir_value_at(f.graph, chain)->name, "r:0");
}

static void test_attributes(rondo_test *t) {
    fixture f;
    fixture_init(t, &f);
    const rondo_ir_value x[1] = {f.x}, xx[2] = {f.x, f.x}, xxx[3] = {f.x, f.x, f.x};
    rondo_ir_value out[1];
    const rondo_attribute to = {.name = "to", .kind = RONDO_ATTRIBUTE_INT, .count = 1, .value.i = RONDO_DTYPE_I64};
    const rondo_attribute twice[2] = {to, to};
    const rondo_attribute kind[1] = {{.name = "to", .kind = RONDO_ATTRIBUTE_FLOAT, .count = 1}};
    const rondo_attribute internal[2] = {
        to, {.name = "rondo.activation", .kind = RONDO_ATTRIBUTE_STRING, .count = 1, .value.s = {"Relu", 4}}};
    const rondo_attribute empty[1] = {{.name = "perm", .kind = RONDO_ATTRIBUTE_INTS, .count = 2}};
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "Cast", NULL, x, 1, NULL, 0, out, 1), INVALID_ARGUMENT,
            "'to' is missing");
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "Cast", NULL, x, 1, twice, 2, out, 1), INVALID_ARGUMENT, "twice");
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "Cast", NULL, x, 1, kind, 1, out, 1), INVALID_ARGUMENT, "a float");
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "Cast", NULL, x, 1, internal, 2, out, 1), INVALID_ARGUMENT, "rondo.");
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "Transpose", NULL, x, 1, empty, 1, out, 1), INVALID_ARGUMENT,
            "no value");
    T_OK(t, rondo_ir_graph_add_node(f.graph, "Cast", NULL, x, 1, &to, 1, out, 1));
    /* What only the compiler adds is taken from it, and refused from a model. */
    rondo__ir_node_data node = {.operator_name = "Cast",
                                .name = "c",
                                .inputs = (rondo_ir_value *)(uintptr_t)x,
                                .outputs = out,
                                .attributes = (rondo_attribute *)(uintptr_t)internal,
                                .input_count = 1,
                                .output_count = 1,
                                .attribute_count = 2};
    T_OK(t, rondo__ops_check_node(f.graph, &node));
    T_FAILS(t, rondo__ops_check_model_node(f.graph, &node), INVALID_ARGUMENT, "rondo.activation");
    node = (rondo__ir_node_data){.operator_name = "MatMul",
                                 .name = "m",
                                 .inputs = (rondo_ir_value *)(uintptr_t)xxx,
                                 .outputs = out,
                                 .input_count = 3,
                                 .output_count = 1};
    T_OK(t, rondo__ops_check_node(f.graph, &node));
    T_FAILS(t, rondo__ops_check_model_node(f.graph, &node), INVALID_ARGUMENT, "at most 2");
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "MatMul", NULL, xxx, 3, NULL, 0, out, 1), INVALID_ARGUMENT,
            "at most 2");
    T_OK(t, rondo_ir_graph_add_node(f.graph, "MatMul", NULL, xx, 2, NULL, 0, out, 1));
}

static void test_branches_must_be_of_this_graph(rondo_test *t) {
    fixture f;
    fixture_init(t, &f);
    rondo_ir_graph *branch, *other;
    T_OK(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "then", f.graph, &branch));
    T_OK(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "else", f.graph, &other));
    rondo_attribute branches[2] = {
        {.name = "then_branch", .kind = RONDO_ATTRIBUTE_GRAPH, .count = 1, .value.graph = branch},
        {.name = "else_branch", .kind = RONDO_ATTRIBUTE_GRAPH, .count = 1, .value.graph = f.graph}};
    const rondo_ir_value cond[1] = {f.b};
    rondo_ir_value out[2];
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "If", "if", cond, 1, branches, 1, out, 2), INVALID_ARGUMENT,
            "else_branch");
    T_FAILS(t, rondo_ir_graph_add_node(f.graph, "If", "if", cond, 1, branches, 2, out, 2), INVALID_ARGUMENT,
            "not a branch");
    branches[1].value.graph = other;
    T_OK(t, rondo_ir_graph_add_node(f.graph, "If", "if", cond, 1, branches, 2, out, 2));
}

static void test_verify_keeps_prototypes_in_branches(rondo_test *t) {
    fixture f;
    fixture_init(t, &f);
    rondo_ir_graph *branch;
    rondo_ir_value x, y;
    T_OK(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "then", f.graph, &branch));
    T_OK(t, rondo__ir_value_outer(branch, f.x, &x));
    T_OK(t, rondo__ir_value_add(branch, "y", NULL, NULL, &y));
    T_OK(t, rondo__ir_node_add(branch, "Frobnicate", "inside", &x, 1, &y, 1, NULL, 0, NULL));
    T_FAILS(t, rondo_ir_graph_verify(f.graph), NOT_FOUND, "'inside'");
    T_FAILS(t, rondo_ir_graph_verify(NULL), INVALID_ARGUMENT, NULL);
}

RONDO_TEST_MAIN(T_PLAIN(test_prototypes_are_onnx_schemas), T(test_find), T(test_add_node), T(test_attributes),
                T(test_branches_must_be_of_this_graph), T(test_verify_keeps_prototypes_in_branches))
