/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs, right and wrong, as a whole: names, order, outputs, channels, what is refused and in which words. What values come
 * out is compared with TensorFlow's own over tests/data/tf. */
#include "harness/harness.h"
#include "import/tf/tf_testing.h"

static writer w;

static const int64_t two_three[] = {2, 3}, picture[] = {1, 8, 8, 3}, ones[] = {1, 1, 1, 1};

#define REFUSED(t, in, code, part)                                \
    do {                                                          \
        rondo_ir_graph *refused = NULL;                           \
        T_FAILS(t, g_import(in, &w, NULL, &refused), code, part); \
        T_TRUE(t, !refused);                                      \
    } while (0)

static void same_text(rondo_test *t, importer *in, const rondo_tf_options *options, const char *expected) {
    rondo_ir_graph *graph = NULL;
    char text[2048];
    T_OK(t, g_import(in, &w, options, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    T_STR(t, m_text(graph, text, sizeof text), expected);
}

/* Nodes in any order, outputs by number, control inputs, results without takers. */
static void test_small_graph(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    g_begin(&w);
    g_simple(&w, "AddV2", "sum", "parts:1,bias,^check");
    g_node(&w, "Split", "parts", "axis,x");
    g_number(&w, "T", 6, G_F32);
    g_number(&w, "num_split", 3, 3);
    w_end(&w);
    g_input(&w, "x", 2, two_three);
    g_zeros(&w, "bias", 2, (const int64_t[]){2, 1});
    g_constant(&w, "axis", G_I32, 0, NULL);
    w_int(&w, 7, 1);
    g_constant_end(&w);
    g_node(&w, "NoOp", "check", "^x");
    w_end(&w);
    g_simple(&w, "Identity", "y", "sum:0");
    g_simple(&w, "Relu", "z", "parts:2");
    rondo_ir_graph *graph = NULL;
    T_OK(t, g_import(&in, &w, NULL, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    char text[512];
    T_STR(t, m_text(graph, text, sizeof text),
          "Split(x)->parts,parts:1,parts:2[axis=1][num_outputs=3]; Add(parts:1,bias)->sum; Relu(parts:2)->z");
    T_EQ(t, graph->inputs.count, 1);
    T_EQ(t, graph->outputs.count, 2);
    T_STR(t, *RONDO__BUFFER_AT(&graph->output_names, const char *, 0), "y");
    T_STR(t, *RONDO__BUFFER_AT(&graph->output_names, const char *, 1), "z");
    T_STR(t, rondo__ir_node_at(graph, 1)->name, "sum");
    const rondo__ir_value_data *bias = rondo__ir_value_at(graph, rondo__ir_value_find(graph, "bias"));
    T_TRUE(t, bias->constant && bias->constant->bytes == 2 * sizeof(float));
    T_EQ(t, rondo__ir_value_at(graph, rondo__ir_value_find(graph, "sum"))->type.rank, 2);
    T_EQ(t, in.lines, 0);
}

/* Only what is wanted is looked at. */
static void test_wanted(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    g_begin(&w);
    g_input(&w, "a", 2, two_three);
    g_input(&w, "b", 2, two_three);
    g_simple(&w, "Relu", "r", "a");
    g_simple(&w, "Tanh", "h", "r");
    g_simple(&w, "Wonder", "other", "b");
    REFUSED(t, &in, UNSUPPORTED, "Wonder (used 1 time, first at node 'other')");
    const char *const names[] = {"h:0", "r"};
    rondo_tf_options options = RONDO_TF_OPTIONS_INIT;
    options.output_count = 2;
    options.outputs = names;
    rondo_ir_graph *graph = NULL;
    T_OK(t, g_import(&in, &w, &options, &graph));
    T_EQ(t, graph->inputs.count, 1);
    T_EQ(t, graph->outputs.count, 2);
    T_EQ(t, graph->nodes_in_model, 3);
    rondo_ir_graph_release(graph);
    static const char *const absent[] = {"nobody", "r:1", "r:", "r:x", "", "r:99999999999999999999", NULL};
    options.output_count = 1;
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        options.outputs = &absent[i];
        graph = NULL;
        rondo_status status = g_import(&in, &w, &options, &graph);
        if (!status && absent[i] && strcmp(absent[i], "r:") == 0) { /* no digits are output 0 */
            rondo_ir_graph_release(graph);
            continue;
        }
        T_FAILS(t, status, NOT_FOUND, "that could be wanted");
        T_TRUE(t, !graph);
    }
    options.outputs = NULL;
    T_FAILS(t, g_import(&in, &w, &options, &graph), INVALID_ARGUMENT, "outputs is null");
}

static void conv(const char *name, const char *inputs) {
    g_node(&w, "Conv2D", name, inputs);
    g_number(&w, "T", 6, G_F32);
    g_ints(&w, "strides", ones, 4);
    g_words(&w, "padding", "SAME");
    w_end(&w);
}

/* Two convolutions with what may lie between: the data are turned once at each end. */
static void test_channels(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    g_begin(&w);
    g_input(&w, "x", 4, picture);
    g_zeros(&w, "f", 4, (const int64_t[]){1, 1, 3, 3});
    g_zeros(&w, "b", 1, (const int64_t[]){3});
    conv("c", "x,f");
    g_simple(&w, "BiasAdd", "biased", "c,b");
    g_simple(&w, "Relu", "r", "biased");
    g_simple(&w, "AddV2", "sum", "r,c");
    conv("d", "sum,f");
    same_text(t, &in, NULL,
              "Transpose(x)->x[perm]; Transpose(f)->c[perm]; Conv(x,c)->c[strides][auto_pad][dilations]; "
              "Unsqueeze(b,biased)->biased; Add(c,biased)->biased; Relu(biased)->r; Add(r,c)->sum; "
              "Transpose(f)->d[perm]; Conv(sum,d)->d[strides][auto_pad][dilations]; Transpose(d)->d[perm]");
}

static void test_all_refusals(rondo_test *t) {
    static const char *const parts[] = {
        "4 operators are not supported, used by 5 nodes",
        "Wonder (used 2 times, first at node 'u')",
        "VarHandleOp (used 1 time, first at node 'v'): a variable: freeze the graph first",
        "helper (used 1 time, first at node 'h')",
        "FusedBatchNormV3 (used 1 time, first at node 'n'): is_training: freeze the graph for inference",
    };
    importer in;
    importer_init(&in, t);
    g_begin(&w);
    g_input(&w, "x", 4, picture);
    g_zeros(&w, "s", 1, (const int64_t[]){3});
    g_simple(&w, "Wonder", "u", "x");
    g_simple(&w, "Wonder", "u2", "u");
    g_simple(&w, "VarHandleOp", "v", "");
    g_simple(&w, "helper", "h", "v");
    g_simple(&w, "FusedBatchNormV3", "n", "x,s,s,s,s");
    g_simple(&w, "Relu", "after", "n");
    w_begin(&w, 2); /* the library has a function `helper` */
    w_begin(&w, 1);
    w_begin(&w, 1);
    w_text(&w, 1, "helper");
    for (int i = 0; i < 3; i++) w_end(&w);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) REFUSED(t, &in, UNSUPPORTED, parts[i]);
}

static void test_loops(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    g_begin(&w);
    g_input(&w, "x", 2, two_three);
    g_simple(&w, "AddV2", "a", "x,b");
    g_simple(&w, "Relu", "b", "a");
    g_simple(&w, "Tanh", "out", "b");
    REFUSED(t, &in, CORRUPT, "it waits for itself");
    g_simple(&w, "NextIteration", "n", "x");
    REFUSED(t, &in, UNSUPPORTED, "NextIteration (used 1 time, first at node 'n'): a loop: its steps depend on data");
    g_begin(&w);
    g_simple(&w, "Relu", "a", "b");
    g_simple(&w, "Relu", "b", "a");
    REFUSED(t, &in, CORRUPT, "it waits for itself");
}

typedef void (*wrong_node)(void);
static void wrong_undefined(void) { g_simple(&w, "Relu", "r", "nobody"); }
static void wrong_control(void) { g_simple(&w, "AddV2", "r", "x,^x,x"); }
static void wrong_control_name(void) { g_simple(&w, "Relu", "r", "x,^nobody"); }
static void wrong_port(void) { g_simple(&w, "Relu", "r", "x:1"); }
static void wrong_digits(void) { g_simple(&w, "Relu", "r", "x:1a"); }
static void wrong_zero(void) { g_simple(&w, "Relu", "r", "x:00"); }
static void wrong_twice(void) { g_simple(&w, "Relu", "x", "x"); }
static void wrong_name(void) { g_simple(&w, "Relu", "r:1", "x"); }
static void wrong_no_name(void) { g_simple(&w, "Relu", "", "x"); }
static void wrong_no_type(void) { g_simple(&w, "", "r", "x"); }
static void wrong_inputs(void) { g_simple(&w, "Relu", "r", "x,x"); }
static void wrong_kind(void) {
    g_node(&w, "Relu", "r", "x");
    g_number(&w, "T", 3, G_F32);
    w_end(&w);
}
static void wrong_attribute(void) {
    g_node(&w, "Relu", "r", "x");
    g_number(&w, "T", 6, G_F32);
    g_number(&w, "T", 6, G_F32);
    w_end(&w);
}
static void wrong_content(void) {
    g_constant(&w, "c", G_F32, 2, two_three);
    w_bytes(&w, 4, "1234", 4);
    g_constant_end(&w);
}
static void wrong_numbers(void) {
    g_constant(&w, "c", G_F32, 0, NULL);
    w_float(&w, 5, 1);
    w_float(&w, 5, 1);
    g_constant_end(&w);
}
static void wrong_field(void) {
    g_constant(&w, "c", G_F32, 0, NULL);
    w_int(&w, 7, 1);
    g_constant_end(&w);
}
static void wrong_both(void) {
    g_constant(&w, "c", G_F32, 0, NULL);
    w_float(&w, 5, 1);
    w_bytes(&w, 4, "1234", 4);
    g_constant_end(&w);
}
static void wrong_bool(void) {
    g_constant(&w, "c", G_BOOL, 0, NULL);
    w_int(&w, 11, 2);
    g_constant_end(&w);
}
static void wrong_dim(void) { g_zeros(&w, "c", 1, (const int64_t[]){-2}); }
static void wrong_open(void) { g_zeros(&w, "c", 1, (const int64_t[]){-1}); }
static void wrong_large(void) { g_zeros(&w, "c", 2, (const int64_t[]){1 << 20, 1 << 20}); }
static void wrong_type(void) {
    g_node(&w, "Const", "c", "");
    g_number(&w, "dtype", 6, G_I32);
    g_attribute(&w, "value");
    w_begin(&w, 8);
    w_int(&w, 1, G_F32);
    g_constant_end(&w);
}
static void wrong_padding(void) {
    g_node(&w, "MaxPool", "p", "four");
    g_number(&w, "T", 6, G_F32);
    g_ints(&w, "strides", ones, 4);
    g_ints(&w, "ksize", ones, 4);
    g_words(&w, "padding", "SOME");
    w_end(&w);
}
static void wrong_strides(void) {
    g_node(&w, "MaxPool", "p", "four");
    g_number(&w, "T", 6, G_F32);
    g_ints(&w, "strides", ones, 3);
    w_end(&w);
}
static void wrong_rank(void) {
    g_node(&w, "MaxPool", "p", "x");
    g_number(&w, "T", 6, G_F32);
    w_end(&w);
}
static void wrong_count(void) {
    g_node(&w, "Unpack", "u", "x");
    g_number(&w, "T", 6, G_F32);
    g_number(&w, "num", 3, 0);
    w_end(&w);
}
static void wrong_parts(void) {
    g_node(&w, "ConcatV2", "u", "x,x,axes");
    g_number(&w, "T", 6, G_F32);
    g_number(&w, "N", 3, 3);
    w_end(&w);
}

static void test_wrong_nodes(rondo_test *t) {
    static const struct {
        wrong_node write;
        const char *part;
    } cases[] = {
        {wrong_undefined, "node 'r' (Relu): its input 'nobody' is not defined"},
        {wrong_control, "input 'x' comes after control inputs"},
        {wrong_control_name, "its input '^nobody' is not defined"},
        {wrong_port, "it takes output 1 of 'x', which has 1"},
        {wrong_digits, "input 'x:1a' names no output"},
        {wrong_zero, "input 'x:00' names no output"},
        {wrong_twice, "node 'x' (Relu): a node of this name was there before"},
        {wrong_name, "no node is called so"},
        {wrong_no_name, "a node without a name"},
        {wrong_no_type, "it names no operator"},
        {wrong_inputs, "2 inputs; the operator has 1 to 1"},
        {wrong_kind, "attribute 'T' is of another kind than its operator's"},
        {wrong_attribute, "attribute 'T' is there twice"},
        {wrong_content, "4 bytes of content where its shape asks for 24"},
        {wrong_numbers, "2 numbers where its shape asks for 1"},
        {wrong_field, "numbers in field 7, but its type has them in field 5"},
        {wrong_both, "bytes and numbers as well"},
        {wrong_bool, "2 is no bool"},
        {wrong_dim, "a dim of -2"},
        {wrong_open, "a shape that no tensor has"},
        {wrong_type, "it says that it is int32, but its value is float32"},
        {wrong_padding, "there is no padding 'SOME'"},
        {wrong_strides, "attribute 'strides' has 3 numbers, not 4"},
        {wrong_rank, "input 0 has 2 axes; the operator takes 4"},
        {wrong_count, "attribute 'num' is 0"},
        {wrong_parts, "2 parts, but N is 3"},
    };
    importer in;
    importer_init(&in, t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        g_begin(&w);
        g_input(&w, "x", 2, two_three);
        g_input(&w, "four", 4, picture);
        g_list(&w, "axes", (const int64_t[]){0, 1}, 2);
        cases[i].write();
        REFUSED(t, &in, CORRUPT, cases[i].part);
    }
    g_begin(&w);
    wrong_large();
    REFUSED(t, &in, OUT_OF_RANGE, "are made in all");
    g_begin(&w);
    REFUSED(t, &in, CORRUPT, "'graph' is empty");
    w_int(&w, 1, 8); /* as an ONNX model begins */
    REFUSED(t, &in, CORRUPT, "it is not a TensorFlow graph");
    g_begin(&w);
    w_text(&w, 4, "");
    REFUSED(t, &in, CORRUPT, "it is not a TensorFlow graph: no node is in it");
}

/* What a file says more than once in other words: the last number stands for those that are missing. */
static void test_repeated(rondo_test *t) {
    static const int64_t dims[] = {5};
    importer in;
    importer_init(&in, t);
    g_begin(&w);
    g_constant(&w, "c", G_I32, 1, dims);
    w_int(&w, 7, 4);
    w_int(&w, 7, -7);
    g_constant_end(&w);
    rondo_ir_graph *graph = NULL;
    T_OK(t, g_import(&in, &w, NULL, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    static const int32_t expected[] = {4, -7, -7, -7, -7};
    const rondo__ir_constant *constant = rondo__ir_value_at(graph, rondo__ir_value_find(graph, "c"))->constant;
    T_EQ(t, constant->bytes, sizeof expected);
    T_TRUE(t, memcmp(constant->data, expected, sizeof expected) == 0);
}

static void test_arguments(rondo_test *t) {
    importer in;
    rondo_instance *instance = importer_init(&in, t);
    rondo_ir_graph *graph = NULL;
    rondo_tf_options options = RONDO_TF_OPTIONS_INIT;
    T_FAILS(t, rondo_tf_import(NULL, "x", NULL, &graph), INVALID_ARGUMENT, "needs an instance");
    T_FAILS(t, rondo_tf_import(instance, "/nowhere/at.pb", NULL, &graph), NOT_FOUND, "/nowhere/at.pb");
    T_FAILS(t, rondo_tf_import_memory(instance, NULL, NULL, 4, NULL, &graph), INVALID_ARGUMENT, "needs an instance");
    T_FAILS(t, rondo_tf_import_memory(instance, NULL, "", 0, NULL, &graph), CORRUPT, "'graph in memory' is empty");
    options.file_bytes_max = 10;
    T_FAILS(t, rondo_tf_import_memory(instance, NULL, "12345678901", 11, &options, &graph), CORRUPT,
            "at most 10 are read");
    options.struct_size = 2;
    T_FAILS(t, rondo_tf_import_memory(instance, NULL, "1", 1, &options, &graph), INVALID_ARGUMENT, "struct_size");
    g_begin(&w);
    g_input(&w, "x", 2, two_three);
    g_simple(&w, "Relu", "y", "x");
    char path[512];
    T_TRUE(t, w_save(&w, rondo_test_folder(t), "graph.pb", path, sizeof path));
    T_OK(t, rondo_tf_import(instance, path, NULL, &graph));
    rondo_ir_graph_release(graph);
    options.struct_size = sizeof options;
    T_FAILS(t, rondo_tf_import(instance, path, &options, &graph), CORRUPT, "at most 10 are read");
    rondo_status large = rondo_tf_import(instance, path, &options, &graph);
    bool advised = strstr(rondo_status_message(large), "external") != NULL; /* such a file has no other place */
    rondo_status_release(large);
    T_TRUE(t, !advised);
}

/* Neither time nor depth of the stack goes with the length of a chain, which stands in the file from its end. */
static void test_long_chain(rondo_test *t) {
    enum { LENGTH = 40000 };
    importer in;
    importer_init(&in, t);
    char name[16], from[16];
    g_begin(&w);
    for (int i = LENGTH; i > 0; i--) {
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)snprintf(from, sizeof from, "n%d", i - 1);
        g_simple(&w, "Relu", name, from);
    }
    g_input(&w, "n0", 2, two_three);
    T_TRUE(t, w.size < sizeof w.data);
    rondo_ir_graph *graph = NULL;
    T_OK(t, g_import(&in, &w, NULL, &graph));
    T_EQ(t, graph->nodes.count, LENGTH);
    rondo_ir_graph_release(graph);
}

RONDO_TEST_MAIN(T(test_small_graph), T(test_wanted), T(test_channels), T(test_all_refusals), T(test_loops),
                T_PLAIN(test_wrong_nodes), T(test_repeated), T(test_arguments), T_PLAIN(test_long_chain))
