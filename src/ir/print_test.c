/* SPDX-License-Identifier: Apache-2.0
 *
 * Dumps to the letter, with names that try to break out of them. */
#include <stdio.h>
#include <string.h>

#include "harness/harness.h"
#include "ir/private.h"

typedef struct written {
    char text[1 << 16];
    size_t size;
    int refuse;
} written;

static int32_t write_text(void *user, const char *data, size_t size) {
    written *w = user;
    if (w->refuse || w->size + size >= sizeof w->text) return 1;
    memcpy(w->text + w->size, data, size);
    w->size += size;
    w->text[w->size] = '\0';
    return 0;
}

static void release_graph(rondo_ir_graph **graph) { rondo_ir_graph_release(*graph); }

static rondo_ir_value value_of(rondo_test *t, rondo_ir_graph *graph, const char *name) {
    rondo_ir_value value = RONDO_IR_NONE;
    T_OK(t, rondo__ir_value_add(graph, name, NULL, NULL, &value));
    return value;
}

/* x, and a constant, into an If whose one branch takes x from around it. */
static void make_graph(rondo_test *t, rondo_ir_graph **out) {
    static const int64_t dims[2] = {-1, 3}, two[1] = {2};
    static const float data[2] = {1.5f, -2};
    static const int64_t axes[2] = {0, -1};
    const char *const symbols[2] = {"batch", NULL};
    rondo_ir_graph *g, *branch;
    rondo_ir_value x, c, y = RONDO_IR_NONE, z, outer, inner;
    T_DEFER(t, release_graph, out);
    T_OK(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "main", NULL, out));
    g = *out;
    g->opset = 17;
    T_OK(t, rondo_ir_graph_add_input(g, "x", RONDO_DTYPE_F32, 2, dims, symbols, &x));
    T_OK(t, rondo_ir_graph_add_constant(g, "c", RONDO_DTYPE_F32, 1, two, data, &c));
    T_OK(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "yes", g, &branch));
    T_OK(t, rondo__ir_value_outer(branch, x, &outer));
    inner = value_of(t, branch, "inner");
    T_OK(t, rondo__ir_node_add(branch, "Relu", "r", &outer, 1, &inner, 1, NULL, 0, NULL));
    T_OK(t, rondo__ir_output_add(branch, inner, NULL));
    y = value_of(t, g, "y");
    z = value_of(t, g, "evil\"\n\\name");
    const rondo_attribute attributes[3] = {
        {.name = "axes", .kind = RONDO_ATTRIBUTE_INTS, .count = 2, .value.ints = axes},
        {.name = "body", .kind = RONDO_ATTRIBUTE_GRAPH, .value.graph = branch},
        {.name = "mode", .kind = RONDO_ATTRIBUTE_STRING, .value.s = {"a\"b", 3}}};
    const rondo_ir_value in[3] = {x, RONDO_IR_NONE, c}, outs[2] = {y, RONDO_IR_NONE};
    T_OK(t, rondo__ir_node_add(g, "If", "if", in, 3, outs, 2, attributes, 3, NULL));
    T_OK(t, rondo__ir_node_add(g, "Add", "two words", &y, 1, &z, 1, NULL, 0, NULL));
    T_OK(t, rondo__ir_output_add(g, z, "out"));
}

static void check_dump(rondo_test *t, rondo_dump_format format, const char *want) {
    rondo_ir_graph *g = NULL;
    static written w;
    memset(&w, 0, sizeof w);
    make_graph(t, &g);
    T_OK(t, rondo_ir_graph_dump(g, format, write_text, &w));
    T_STR(t, w.text, want);
}

static void test_text(rondo_test *t) {
    check_dump(t, RONDO_DUMP_TEXT,
               "graph main opset 17\n"
               "input x float32[batch,3]\n"
               "constant c = float32[2][1.5,-2]\n"
               "if: y ?[...], - = If(x, -, c) axes=[0,-1] mode=\"a\\\"b\"\n"
               "    body:\n"
               "        outer x = x\n"
               "        r: inner ?[...] = Relu(x)\n"
               "        output inner ?[...] = inner\n"
               "\"two words\": \"evil\\\"\\n\\\\name\" ?[...] = Add(y)\n"
               "output out ?[...] = \"evil\\\"\\n\\\\name\"\n");
}

static void test_json(rondo_test *t) {
    check_dump(
        t, RONDO_DUMP_JSON,
        "{\"name\":\"main\",\"opset\":17,\n"
        "\"inputs\":[{\"name\":\"x\",\"dtype\":\"float32\",\"shape\":[\"batch\",3]}],\n"
        "\"outer\":{},\n"
        "\"constants\":[{\"name\":\"c\",\"dtype\":\"float32\",\"shape\":[2],\"bytes\":8,\"data\":[1.5,-2]}],\n"
        "\"nodes\":[{\"name\":\"if\",\"operator\":\"If\",\"inputs\":[\"x\",null,\"c\"],"
        "\"outputs\":[{\"name\":\"y\",\"dtype\":null,\"shape\":null},null],\"attributes\":{\"axes\":[0,-1],\"body\":"
        "{\"name\":\"yes\",\"opset\":0,\n\"inputs\":[],\n\"outer\":{\"x\":\"x\"},\n\"constants\":[],\n"
        "\"nodes\":[{\"name\":\"r\",\"operator\":\"Relu\",\"inputs\":[\"x\"],"
        "\"outputs\":[{\"name\":\"inner\",\"dtype\":null,\"shape\":null}],\"attributes\":{}}],\n"
        "\"outputs\":[{\"name\":\"inner\",\"dtype\":null,\"shape\":null,\"value\":\"inner\"}]},"
        "\"mode\":\"a\\\"b\"}},\n"
        "{\"name\":\"two words\",\"operator\":\"Add\",\"inputs\":[\"y\"],"
        "\"outputs\":[{\"name\":\"evil\\\"\\n\\\\name\",\"dtype\":null,\"shape\":null}],\"attributes\":{}}],\n"
        "\"outputs\":[{\"name\":\"out\",\"dtype\":null,\"shape\":null,\"value\":\"evil\\\"\\n\\\\name\"}]}\n");
}

static void test_dot(rondo_test *t) {
    check_dump(t, RONDO_DUMP_DOT,
               "digraph \"main\" {\nnode [fontsize=10];\nedge [fontsize=8];\n"
               "g0_v0 [label=\"x\\nfloat32[batch,3]\",shape=ellipse];\n"
               "g0_v1 [label=\"c\\nfloat32[2]\",shape=note];\n"
               "g0_n0 [shape=box,label=\"If\\nif\"];\n"
               "g0_v0 -> g0_n0 ;\n"
               "g0_v1 -> g0_n0 ;\n"
               "subgraph cluster_1 {\nlabel=\"if body\";\n"
               "g1_v0 [label=\"x\\nfloat32[batch,3]\",shape=plaintext];\n"
               "g1_n0 [shape=box,label=\"Relu\\nr\"];\n"
               "g1_v0 -> g1_n0 ;\n"
               "g1_o0 [label=\"inner\\n?[...]\",shape=ellipse,style=bold];\n"
               "g1_n0 -> g1_o0;\n"
               "}\n"
               "g0_n1 [shape=box,label=\"Add\\ntwo words\"];\n"
               "g0_n0 -> g0_n1 [label=\"y\\n?[...]\"];\n"
               "g0_o0 [label=\"out\\n?[...]\",shape=ellipse,style=bold];\n"
               "g0_n1 -> g0_o0;\n"
               "}\n");
}

static void test_elements(rondo_test *t) {
    static const float odd[3] = {1.0f / 0.0f, 0.0f / 0.0f, -1.0f / 0.0f};
    static const uint16_t half[2] = {0x3c00, 0x8001};
    static const uint8_t nibbles[2] = {0x12, 0x34};
    static const int64_t dims3[1] = {3}, dims2[1] = {2}, dims20[1] = {20};
    static const uint8_t many[20] = {1};
    rondo_ir_graph *g = NULL;
    rondo_ir_value v;
    static written w;
    memset(&w, 0, sizeof w);
    T_DEFER(t, release_graph, &g);
    T_OK(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "g", NULL, &g));
    T_OK(t, rondo_ir_graph_add_constant(g, "odd", RONDO_DTYPE_F32, 1, dims3, odd, &v));
    T_OK(t, rondo_ir_graph_add_constant(g, "half", RONDO_DTYPE_F16, 1, dims2, half, &v));
    T_OK(t, rondo_ir_graph_add_constant(g, "narrow", RONDO_DTYPE_U4, 1, dims3, nibbles, &v));
    T_OK(t, rondo_ir_graph_add_constant(g, "many", RONDO_DTYPE_BOOL, 1, dims20, many, &v));
    T_OK(t, rondo_ir_graph_dump(g, RONDO_DUMP_TEXT, write_text, &w));
    T_STR(t, w.text,
          "graph g\n"
          "constant odd = float32[3][inf,nan,-inf]\n"
          "constant half = float16[2][0x3c00,0x8001]\n"
          "constant narrow = uint4[3] 2 bytes\n"
          "constant many = bool[20][true,false,false,false,false,false,false,false,false,false,false,false,false,false,"
          "false,false,... 20 in all]\n");
    memset(&w, 0, sizeof w);
    T_OK(t, rondo_ir_graph_dump(g, RONDO_DUMP_JSON, write_text, &w));
    T_TRUE(t, strstr(w.text, "\"data\":[\"inf\",\"nan\",\"-inf\"]") && strstr(w.text, "[\"0x3c00\",\"0x8001\"]"));
    T_TRUE(t, strstr(w.text, "\"shape\":[20],\"bytes\":20}")); /* large data is left out */
}

static void test_refusals(rondo_test *t) {
    rondo_ir_graph *g = NULL;
    static written w;
    memset(&w, 0, sizeof w);
    make_graph(t, &g);
    w.refuse = 1;
    T_FAILS(t, rondo_ir_graph_dump(g, RONDO_DUMP_TEXT, write_text, &w), IO, NULL);
    T_FAILS(t, rondo_ir_graph_dump(g, 3, write_text, &w), INVALID_ARGUMENT, "format");
    T_FAILS(t, rondo_ir_graph_dump(g, RONDO_DUMP_TEXT, NULL, &w), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_ir_graph_dump(NULL, RONDO_DUMP_TEXT, write_text, &w), INVALID_ARGUMENT, NULL);
}

RONDO_TEST_MAIN(T(test_text), T(test_json), T(test_dot), T(test_elements), T(test_refusals))
