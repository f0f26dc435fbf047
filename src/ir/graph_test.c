/* SPDX-License-Identifier: Apache-2.0
 *
 * Building graphs by hand: names, types, constants, attributes, edges, branches, and what one may ask. */
#include <stdio.h>
#include <string.h>

#include "base/instance.h"
#include "harness/harness.h"
#include "ir/private.h"
#include "ir/tensor.h"

static void release_graph(rondo_ir_graph **graph) { rondo_ir_graph_release(*graph); }

/* The graph is in *out; the caller's variable lives as long as the body. */
static void make_graph(rondo_test *t, rondo_ir_graph **out) {
    *out = NULL;
    T_DEFER(t, release_graph, out);
    T_OK(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "main", NULL, out));
}

static rondo_ir_value add_value(rondo_test *t, rondo_ir_graph *graph, const char *name) {
    rondo_ir_value value = RONDO_IR_NONE;
    T_OK(t, rondo__ir_value_add(graph, name, NULL, NULL, &value));
    return value;
}

static rondo_ir_node add_node(rondo_test *t, rondo_ir_graph *graph, const char *name, rondo_ir_value in,
                              rondo_ir_value out) {
    rondo_ir_node node = RONDO_IR_NONE;
    T_OK(t, rondo__ir_node_add(graph, "Op", name, &in, 1, &out, 1, NULL, 0, &node));
    return node;
}

static void test_names(rondo_test *t) {
    rondo_ir_graph *g;
    make_graph(t, &g);
    rondo_ir_value value, made;
    for (int i = 0; i < 40; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "a rather long name of value %d", i);
        T_EQ(t, add_value(t, g, name), i);
    }
    for (int i = 0; i < 40; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "a rather long name of value %d", i);
        T_EQ(t, rondo__ir_value_find(g, name), i);
    }
    T_EQ(t, rondo__ir_value_find(g, "a rather long name of value 4 "), RONDO_IR_NONE);
    T_EQ(t, rondo__ir_value_find(g, NULL), RONDO_IR_NONE);
    T_FAILS(t, rondo__ir_value_add(g, "a rather long name of value 7", NULL, NULL, &value), ALREADY_EXISTS, "value 7'");
    T_FAILS(t, rondo__ir_value_add(g, "", NULL, NULL, &value), INVALID_ARGUMENT, "needs a name");
    /* A made name steps aside for one that is there. */
    T_OK(t, rondo__ir_value_add(g, "sum#0", NULL, NULL, &value));
    T_OK(t, rondo__ir_value_add(g, NULL, "sum", NULL, &made));
    T_TRUE(t, strncmp(rondo__ir_value_at(g, made)->name, "sum#", 4) == 0 && made != value);
    T_EQ(t, rondo__ir_value_find(g, rondo__ir_value_at(g, made)->name), made);
}

static void test_types(rondo_test *t) {
    rondo_ir_graph *g;
    make_graph(t, &g);
    rondo_ir_value v, w;
    char symbol[] = "batch", text[64];
    rondo__ir_dim dims[3] = {{.value = -1, .symbol = symbol}, {.value = 576}, {.value = -1, .maximum = 9}};
    rondo__ir_type type = {.dtype = RONDO_DTYPE_F32, .rank = 3, .dims = dims};
    T_OK(t, rondo__ir_value_add(g, "v", NULL, &type, &v));
    symbol[0] = 'X'; /* the graph keeps its own */
    const rondo__ir_type *kept = &rondo__ir_value_at(g, v)->type;
    rondo__ir_type_text(kept, text, sizeof text);
    T_STR(t, text, "float32[batch,576,?]");
    T_EQ(t, kept->dims[0].maximum, INT64_MAX);
    T_EQ(t, kept->dims[1].minimum, 576);
    T_EQ(t, kept->dims[1].maximum, 576);
    T_EQ(t, kept->dims[2].maximum, 9);
    int64_t sizes[RONDO_RANK_MAX];
    T_TRUE(t, !rondo__ir_type_concrete(kept, sizes));
    rondo__ir_type_text(kept, text, 9); /* cut, but terminated */
    T_STR(t, text, "float32[");
    rondo__ir_type of = {.kind = RONDO__IR_OPTIONAL, .rank = -1, .element = &type};
    rondo__ir_type sequence = {.kind = RONDO__IR_SEQUENCE, .rank = -1, .element = &of};
    T_OK(t, rondo__ir_value_add(g, "w", NULL, &sequence, &w));
    rondo__ir_type_text(&rondo__ir_value_at(g, w)->type, text, sizeof text);
    T_STR(t, text, "sequence(optional(float32[Xatch,576,?]))");
    T_OK(t, rondo__ir_value_add(g, "unknown", NULL, NULL, &w));
    rondo__ir_type_text(&rondo__ir_value_at(g, w)->type, text, sizeof text);
    T_STR(t, text, "?[...]");
    static const int64_t fixed[2] = {4, 5};
    rondo__ir_type made;
    T_OK(t, rondo__ir_type_from_dims(g, RONDO_DTYPE_I64, 2, fixed, &made));
    T_TRUE(t, rondo__ir_type_concrete(&made, sizes) && sizes[0] == 4 && sizes[1] == 5);
}

static void test_types_refused(rondo_test *t) {
    rondo_ir_graph *g;
    make_graph(t, &g);
    rondo_ir_value v;
    rondo__ir_dim dims[1] = {{.value = -2}};
    rondo__ir_type negative = {.dtype = RONDO_DTYPE_F32, .rank = 1, .dims = dims};
    rondo__ir_type tall = {.dtype = RONDO_DTYPE_F32, .rank = RONDO_RANK_MAX + 1, .dims = dims};
    rondo__ir_type bare = {.dtype = RONDO_DTYPE_F32, .rank = 1};
    rondo__ir_type odd = {.dtype = RONDO_DTYPE_COUNT};
    rondo__ir_type endless = {.kind = RONDO__IR_SEQUENCE, .rank = -1};
    endless.element = &endless;
    T_FAILS(t, rondo__ir_value_add(g, "v", NULL, &negative, &v), INVALID_ARGUMENT, "size -2");
    T_FAILS(t, rondo__ir_value_add(g, "v", NULL, &tall, &v), INVALID_ARGUMENT, "rank 17");
    T_FAILS(t, rondo__ir_value_add(g, "v", NULL, &bare, &v), INVALID_ARGUMENT, "rank 1");
    T_FAILS(t, rondo__ir_value_add(g, "v", NULL, &odd, &v), INVALID_ARGUMENT, "no data type");
    T_FAILS(t, rondo__ir_value_add(g, "v", NULL, &endless, &v), OUT_OF_RANGE, "deeper than");
    T_EQ(t, g->values.count, 0);
}

static void test_inputs_and_outputs(rondo_test *t) {
    rondo_ir_graph *g;
    make_graph(t, &g);
    static const int64_t dims[3] = {-1, 16, -1}, small[1] = {7}, bad[1] = {-3};
    const char *const names[3] = {"batch", "ignored", NULL};
    rondo_ir_value x, y, z;
    rondo_tensor_info info;
    T_OK(t, rondo_ir_graph_add_input(g, "x", RONDO_DTYPE_F32, 3, dims, names, &x));
    T_OK(t, rondo_ir_graph_add_input(g, "y", RONDO_DTYPE_I64, 1, small, NULL, &y));
    T_FAILS(t, rondo_ir_graph_add_input(g, "x", RONDO_DTYPE_F32, 1, small, NULL, &z), ALREADY_EXISTS, "'x'");
    T_FAILS(t, rondo_ir_graph_add_input(g, "z", RONDO_DTYPE_F32, 1, bad, NULL, &z), INVALID_ARGUMENT, "size -3");
    T_FAILS(t, rondo_ir_graph_add_input(g, "z", RONDO_DTYPE_UNDEFINED, 1, small, NULL, &z), INVALID_ARGUMENT, "type");
    T_FAILS(t, rondo_ir_graph_add_input(g, "z", RONDO_DTYPE_F32, 17, small, NULL, &z), INVALID_ARGUMENT, "rank 17");
    T_FAILS(t, rondo_ir_graph_add_input(g, NULL, RONDO_DTYPE_F32, 0, NULL, NULL, &z), INVALID_ARGUMENT, NULL);
    T_OK(t, rondo_ir_graph_add_output(g, y, NULL));
    T_OK(t, rondo_ir_graph_add_output(g, y, "again"));
    T_FAILS(t, rondo_ir_graph_add_output(g, x, "again"), ALREADY_EXISTS, "'again'");
    T_FAILS(t, rondo_ir_graph_add_output(g, 99, NULL), INVALID_ARGUMENT, "99");
    T_OK(t, rondo_ir_graph_input(g, 0, &info));
    T_STR(t, info.name, "x");
    T_EQ(t, info.dtype, RONDO_DTYPE_F32);
    T_EQ(t, info.rank, 3);
    T_EQ(t, info.dims[0], -1);
    T_EQ(t, info.dims[1], 16);
    T_EQ(t, info.bytes, 0);
    T_OK(t, rondo_ir_graph_output(g, 1, &info));
    T_STR(t, info.name, "again");
    T_EQ(t, info.bytes, 56);
    /* A type that a pass changes later is seen. */
    T_OK(t, rondo__ir_type_from_dims(g, RONDO_DTYPE_F64, 1, dims + 1, &rondo__ir_value_at(g, y)->type));
    T_OK(t, rondo_ir_graph_output(g, 1, &info));
    T_EQ(t, info.bytes, 128);
    T_FAILS(t, rondo_ir_graph_input(g, 2, &info), OUT_OF_RANGE, "2 inputs");
    T_FAILS(t, rondo_ir_graph_output(g, 2, &info), OUT_OF_RANGE, "2 outputs");
    T_STR(t, rondo_ir_graph_input_symbol(g, 0, 0), "batch");
    T_TRUE(t, !rondo_ir_graph_input_symbol(g, 0, 1) && !rondo_ir_graph_input_symbol(g, 0, 2));
    T_TRUE(t, !rondo_ir_graph_input_symbol(g, 0, -1) && !rondo_ir_graph_input_symbol(g, 0, 3));
    T_TRUE(t, !rondo_ir_graph_input_symbol(g, 7, 0) && !rondo_ir_graph_input_symbol(NULL, 0, 0));
}

static void test_constants(rondo_test *t) {
    rondo_ir_graph *g;
    make_graph(t, &g);
    static const int64_t dims[2] = {2, 2}, huge[2] = {INT64_MAX, 2}, none[2] = {0, INT64_MAX}, bad[1] = {-1};
    float data[4] = {1, 2, 3, 4};
    rondo_ir_value c, d;
    T_OK(t, rondo_ir_graph_add_constant(g, "c", RONDO_DTYPE_F32, 2, dims, data, &c));
    data[0] = 9;
    const rondo__ir_constant *constant = rondo__ir_value_at(g, c)->constant;
    T_EQ(t, ((const float *)constant->data)[0], 1);
    T_EQ(t, (uintptr_t)constant->data % 64u, 0);
    T_EQ(t, constant->bytes, 16);
    T_OK(t, rondo_ir_graph_add_constant(g, NULL, RONDO_DTYPE_F32, 2, none, NULL, &d));
    T_FAILS(t, rondo_ir_graph_add_constant(g, "d", RONDO_DTYPE_F32, 2, huge, data, &d), OUT_OF_RANGE, "'d'");
    T_FAILS(t, rondo_ir_graph_add_constant(g, "d", RONDO_DTYPE_F32, 1, bad, data, &d), INVALID_ARGUMENT, "-1");
    T_FAILS(t, rondo_ir_graph_add_constant(g, "d", RONDO_DTYPE_F32, 2, dims, NULL, &d), INVALID_ARGUMENT, "no data");
    T_FAILS(t, rondo_ir_graph_add_constant(g, "d", RONDO_DTYPE_UNDEFINED, 2, dims, data, &d), INVALID_ARGUMENT, NULL);
    char word[] = "word";
    const rondo_string strings[1] = {{word, 4}}, broken[1] = {{NULL, 4}};
    const int64_t one[1] = {1};
    T_OK(t, rondo_ir_graph_add_constant(g, "s", RONDO_DTYPE_STRING, 1, one, strings, &d));
    word[0] = 'x';
    constant = rondo__ir_value_at(g, d)->constant;
    T_STR(t, ((const rondo_string *)constant->data)->data, "word");
    T_FAILS(t, rondo_ir_graph_add_constant(g, "u", RONDO_DTYPE_STRING, 1, one, broken, &d), INVALID_ARGUMENT, "bytes");
}

static void test_nodes(rondo_test *t) {
    rondo_ir_graph *g;
    make_graph(t, &g);
    rondo_ir_value a = add_value(t, g, "a"), b = add_value(t, g, "b"), c = add_value(t, g, "c");
    rondo_ir_value twice[2] = {c, c}, far[1] = {77};
    rondo_ir_node n = add_node(t, g, "n", a, b);
    T_EQ(t, rondo__ir_value_at(g, b)->producer, n);
    T_FAILS(t, rondo__ir_node_add(g, "Op", "m", &a, 1, &b, 1, NULL, 0, &n), INVALID_ARGUMENT, "'b' is made elsewhere");
    T_FAILS(t, rondo__ir_node_add(g, "Op", "m", &a, 1, twice, 2, NULL, 0, &n), INVALID_ARGUMENT, "'c' twice");
    T_EQ(t, rondo__ir_value_at(g, c)->producer, RONDO_IR_NONE);
    T_FAILS(t, rondo__ir_node_add(g, "Op", "m", far, 1, &c, 1, NULL, 0, &n), INVALID_ARGUMENT, "value 77");
    T_FAILS(t, rondo__ir_node_add(g, "Op", "m", &a, 1, far, 1, NULL, 0, &n), INVALID_ARGUMENT, "value 77");
    T_FAILS(t, rondo__ir_node_add(g, "", "m", &a, 1, &c, 1, NULL, 0, &n), INVALID_ARGUMENT, "no operator");
    T_EQ(t, g->nodes.count, 1);
    n = add_node(t, g, "n", b, c); /* a name that is taken gets a number */
    T_TRUE(t, strncmp(rondo__ir_node_at(g, n)->name, "n#", 2) == 0);
    n = add_node(t, g, NULL, b, add_value(t, g, "d"));
    T_TRUE(t, strncmp(rondo__ir_node_at(g, n)->name, "Op#", 3) == 0);
    T_TRUE(t, rondo__ir_node_at(g, 0)->operator_name == rondo__ir_node_at(g, n)->operator_name); /* kept once */
}

static void test_attributes(rondo_test *t) {
    rondo_ir_graph *g;
    make_graph(t, &g);
    int64_t ints[2] = {3, 4};
    float floats[1] = {0.5f};
    float matrix[4] = {1, 2, 3, 4};
    const int64_t shape[2] = {2, 2}, turned[2] = {1, 2};
    const rondo_string words[2] = {{"one", 3}, {"two", 3}};
    const rondo_tensor_view view = {
        .data = matrix, .device_type = 1, .rank = 2, .dtype = RONDO_DTYPE_F32, .shape = shape, .strides = turned};
    rondo_attribute all[] = {{.name = "i", .kind = RONDO_ATTRIBUTE_INT, .value.i = -5},
                             {.name = "is", .kind = RONDO_ATTRIBUTE_INTS, .count = 2, .value.ints = ints},
                             {.name = "fs", .kind = RONDO_ATTRIBUTE_FLOATS, .count = 1, .value.floats = floats},
                             {.name = "ss", .kind = RONDO_ATTRIBUTE_STRINGS, .count = 2, .value.strings = words},
                             {.name = "s", .kind = RONDO_ATTRIBUTE_STRING, .value.s = {"xyz", 2}},
                             {.name = "t", .kind = RONDO_ATTRIBUTE_TENSOR, .value.tensor = &view}};
    rondo_ir_value a = add_value(t, g, "a"), b = add_value(t, g, "b");
    rondo_ir_node n = RONDO_IR_NONE;
    T_OK(t, rondo__ir_node_add(g, "Op", "n", &a, 1, &b, 1, all, 6, &n));
    ints[0] = 0;
    const rondo__ir_node_data *node = rondo__ir_node_at(g, n);
    T_EQ(t, rondo__ir_attribute_int(node, "i", 0), -5);
    T_EQ(t, rondo__ir_attribute_int(node, "is", 8), 8);
    T_EQ(t, rondo__ir_attribute_int(node, "none", 8), 8);
    T_EQ(t, rondo__ir_attribute_find(node, "is")->value.ints[0], 3);
    T_STR(t, rondo__ir_attribute_find(node, "s")->value.s.data, "xy");
    T_STR(t, rondo__ir_attribute_find(node, "ss")->value.strings[1].data, "two");
    const rondo_tensor_view *kept = rondo__ir_attribute_find(node, "t")->value.tensor;
    T_TRUE(t, !kept->strides && ((const float *)kept->data)[1] == 3 && ((const float *)kept->data)[2] == 2);
    rondo_attribute change = {.name = "i", .kind = RONDO_ATTRIBUTE_INT, .value.i = 6};
    T_OK(t, rondo__ir_attribute_set(g, n, &change));
    change.name = "new";
    T_OK(t, rondo__ir_attribute_set(g, n, &change));
    node = rondo__ir_node_at(g, n);
    T_EQ(t, node->attribute_count, 7);
    T_EQ(t, rondo__ir_attribute_int(node, "i", 0), 6);
    T_EQ(t, rondo__ir_attribute_int(node, "new", 0), 6);
    rondo_attribute wrong = {.name = "w", .kind = RONDO_ATTRIBUTE_INTS, .count = 3};
    T_FAILS(t, rondo__ir_attribute_set(g, n, &wrong), INVALID_ARGUMENT, "no elements");
    wrong.kind = 99;
    T_FAILS(t, rondo__ir_attribute_set(g, n, &wrong), INVALID_ARGUMENT, "(99)");
    wrong.name = "";
    T_FAILS(t, rondo__ir_attribute_set(g, n, &wrong), INVALID_ARGUMENT, "needs a name");
}

static void test_branches(rondo_test *t) {
    rondo_ir_graph *g, *inner, *deep;
    make_graph(t, &g);
    rondo_ir_value a = add_value(t, g, "a"), b = add_value(t, g, "b"), got, again, other;
    T_OK(t, rondo__ir_input_add(g, a));
    T_OK(t, rondo__ir_input_add(g, b));
    T_OK(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "then", g, &inner));
    rondo_ir_value own = add_value(t, inner, "b");
    T_OK(t, rondo__ir_value_outer(inner, a, &got));
    T_OK(t, rondo__ir_value_outer(inner, a, &again));
    T_EQ(t, got, again);
    T_EQ(t, rondo__ir_value_find(inner, "a"), got);
    T_OK(t, rondo__ir_value_outer(inner, b, &other)); /* its name is taken: another is made */
    T_TRUE(t, other != own && rondo__ir_value_at(inner, other)->outer == b);
    T_FAILS(t, rondo__ir_value_outer(inner, 12, &other), INVALID_ARGUMENT, "no value 12");
    T_FAILS(t, rondo__ir_value_outer(g, 0, &other), INVALID_ARGUMENT, "around");
    rondo__ir_value_replace(g, a, b);
    T_EQ(t, rondo__ir_value_at(inner, got)->outer, b);
    T_OK(t, rondo__ir_value_outer(inner, a, &again)); /* what stands for b now is not given out for a */
    T_TRUE(t, again != got && rondo__ir_value_at(inner, again)->outer == a);
    T_OK(t, rondo__ir_value_outer(inner, b, &again));
    T_EQ(t, rondo__ir_value_at(inner, again)->outer, b);
    rondo_ir_value map[2] = {a, a}; /* the same by a map, back again */
    rondo__ir_values_replace(g, map);
    T_EQ(t, rondo__ir_value_at(inner, got)->outer, a);
    T_OK(t, rondo__ir_value_outer(inner, b, &again));
    T_TRUE(t, again != got && rondo__ir_value_at(inner, again)->outer == b);
    deep = inner;
    for (uint32_t depth = 2; depth < RONDO__IR_DEPTH_MAX; depth++) {
        T_OK(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "deeper", deep, &deep));
    }
    T_FAILS(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "d", deep, &deep), OUT_OF_RANGE, "deeper than 64");
    T_OK(t, rondo__ir_verify(g));
    T_FAILS(t, rondo__ir_clone(inner, false, &deep), INVALID_ARGUMENT, "a branch");
}

static void test_replace(rondo_test *t) {
    rondo_ir_graph *g;
    make_graph(t, &g);
    rondo_ir_value a = add_value(t, g, "a"), b = add_value(t, g, "b"), c = add_value(t, g, "c"),
                   d = add_value(t, g, "d");
    T_OK(t, rondo__ir_input_add(g, a));
    (void)add_node(t, g, "first", a, b);
    (void)add_node(t, g, "second", b, c);
    (void)add_node(t, g, "third", c, d);
    T_OK(t, rondo__ir_output_add(g, d, "out"));
    T_OK(t, rondo__ir_output_add(g, c, NULL));
    rondo_ir_value map[4] = {a, a, b, d}; /* c -> b -> a */
    rondo__ir_values_replace(g, map);
    T_EQ(t, map[2], a);
    T_EQ(t, rondo__ir_node_at(g, 2)->inputs[0], a);
    T_EQ(t, rondo__ir_output_at(g, 1), a);
    T_TRUE(t, rondo__ir_value_at(g, a)->flags & RONDO__IR_VALUE_OUTPUT);
    T_TRUE(t, !(rondo__ir_value_at(g, c)->flags & RONDO__IR_VALUE_OUTPUT));
    rondo_tensor_info info;
    T_OK(t, rondo_ir_graph_output(g, 1, &info));
    T_STR(t, info.name, "c"); /* the output keeps its name */
    rondo__ir_value_replace(g, d, a);
    T_EQ(t, rondo__ir_output_at(g, 0), a);
}

typedef struct counted {
    char text[128];
} counted;

static void count_visit(void *user, const char *name, uint32_t count) {
    counted *c = user;
    size_t used = strlen(c->text);
    (void)snprintf(c->text + used, sizeof c->text - used, "%s=%u ", name, count);
}

static void test_info(rondo_test *t) {
    rondo_ir_graph *g, *inner;
    make_graph(t, &g);
    rondo_ir_value a = add_value(t, g, "a"), b = add_value(t, g, "b"), c, x, y, z;
    const float one = 1;
    T_OK(t, rondo__ir_input_add(g, a));
    T_OK(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "then", g, &inner));
    T_OK(t, rondo__ir_constant_add(g, NULL, "c", RONDO_DTYPE_F32, 0, NULL, &one, &c));
    T_OK(t, rondo__ir_value_outer(inner, c, &x));
    T_OK(t, rondo__ir_constant_add(inner, NULL, "c", RONDO_DTYPE_F32, 0, NULL, &one, &z));
    T_OK(t, rondo__ir_value_add(inner, "y", NULL, NULL, &y));
    T_OK(t, rondo__ir_node_add(inner, "Add", NULL, &x, 1, &y, 1, NULL, 0, NULL));
    (void)add_node(t, g, NULL, a, b);
    (void)add_node(t, g, NULL, b, add_value(t, g, "e"));
    (void)add_node(t, g, NULL, b, add_value(t, g, "f"));
    rondo__ir_node_at(g, 2)->dead = true;
    rondo_ir_graph_info info = RONDO_IR_GRAPH_INFO_INIT, older = {.struct_size = 8};
    T_OK(t, rondo_ir_graph_get_info(g, &info));
    T_EQ(t, info.nodes, 3);
    T_EQ(t, info.subgraphs, 1);
    T_EQ(t, info.inputs, 1);
    T_EQ(t, info.constant_bytes, 8);
    T_STR(t, info.name, "main");
    T_OK(t, rondo_ir_graph_get_info(g, &older)); /* a caller of an older struct gets what fits */
    T_EQ(t, older.inputs, 1);
    T_EQ(t, older.outputs, 0);
    T_EQ(t, older.struct_size, 8);
    older.struct_size = 0;
    T_FAILS(t, rondo_ir_graph_get_info(g, &older), INVALID_ARGUMENT, "struct_size");
    counted count = {{0}};
    T_OK(t, rondo_ir_graph_count_operators(g, count_visit, &count));
    T_STR(t, count.text, "Add=1 Op=2 ");
    T_FAILS(t, rondo_ir_graph_count_operators(g, NULL, NULL), INVALID_ARGUMENT, NULL);
}

static void release_tensor(rondo_tensor **tensor) { rondo_tensor_release(*tensor); }

static void test_tensor(rondo_test *t) {
    rondo__instance_base base = {.allocator = *rondo_test_allocator(t)};
    rondo_instance *instance = (rondo_instance *)(void *)&base;
    rondo_tensor *tensor = NULL, *empty = NULL;
    static const int64_t dims[2] = {3, 5}, zero[2] = {0, 5}, bad[2] = {-1, 5}, huge[2] = {INT64_MAX, INT64_MAX};
    T_DEFER(t, release_tensor, &tensor);
    T_DEFER(t, release_tensor, &empty);
    T_OK(t, rondo_tensor_create(instance, RONDO_DTYPE_I16, 2, dims, &tensor));
    const rondo_tensor_view *view = rondo_tensor_get_view(tensor);
    T_EQ(t, rondo_tensor_bytes(tensor), 30);
    T_EQ(t, (uintptr_t)view->data % 64u, 0);
    T_TRUE(t, view->rank == 2 && view->shape[1] == 5 && view->dtype == RONDO_DTYPE_I16 && !view->strides);
    for (int i = 0; i < 15; i++) T_EQ(t, ((const int16_t *)view->data)[i], 0);
    rondo_tensor_retain(tensor);
    rondo_tensor_release(tensor);
    T_OK(t, rondo_tensor_create(instance, RONDO_DTYPE_F32, 2, zero, &empty));
    T_TRUE(t, rondo_tensor_get_view(empty)->data && rondo_tensor_bytes(empty) == 0);
    rondo_tensor *none;
    T_FAILS(t, rondo_tensor_create(instance, RONDO_DTYPE_F32, 2, bad, &none), INVALID_ARGUMENT, "-1");
    T_FAILS(t, rondo_tensor_create(instance, RONDO_DTYPE_F32, 2, huge, &none), OUT_OF_RANGE, NULL);
    T_FAILS(t, rondo_tensor_create(instance, RONDO_DTYPE_F32, 17, dims, &none), INVALID_ARGUMENT, "17");
    T_FAILS(t, rondo_tensor_create(instance, RONDO_DTYPE_STRING, 2, dims, &none), INVALID_ARGUMENT, "strings");
    T_FAILS(t, rondo_tensor_create(NULL, RONDO_DTYPE_F32, 2, dims, &none), INVALID_ARGUMENT, "instance");
    rondo_tensor_release(NULL);
    rondo_tensor_retain(NULL);
}

static void test_public_create(rondo_test *t) {
    rondo__instance_base base = {.allocator = *rondo_test_allocator(t)};
    rondo_ir_graph *g = NULL;
    T_DEFER(t, release_graph, &g);
    T_OK(t, rondo_ir_graph_create((rondo_instance *)(void *)&base, NULL, &g));
    T_STR(t, g->name, "graph");
    rondo_ir_graph_retain(g);
    rondo_ir_graph_release(g);
    rondo_ir_graph_release(NULL);
    T_FAILS(t, rondo_ir_graph_create(NULL, "g", &g), INVALID_ARGUMENT, "instance");
}

RONDO_TEST_MAIN(T(test_names), T(test_types), T(test_types_refused), T(test_inputs_and_outputs), T(test_constants),
                T(test_nodes), T(test_attributes), T(test_branches), T(test_replace), T(test_info), T(test_tensor),
                T(test_public_create))
