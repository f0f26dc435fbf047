/* SPDX-License-Identifier: Apache-2.0
 *
 * Models, right and wrong, as a whole: names, scopes, order, versions, what is unsupported, and time. */
#include <stdlib.h>

#include "base/thread.h"
#include "harness/harness.h"
#include "import/onnx/onnx_testing.h"

static writer w;

#define MODEL_REFUSED(t, in, code, part)                    \
    do {                                                    \
        rondo_ir_graph *refused = NULL;                     \
        T_FAILS(t, m_import(in, &w, &refused), code, part); \
        T_TRUE(t, !refused);                                \
    } while (0)

static const int64_t one = 1, three = 3;

static void test_small_model(rondo_test *t) {
    static const float bias[] = {1, 2, 3};
    static const int64_t dims[] = {-2, 5, -1};
    importer in;
    importer_init(&in, t);
    m_begin(&w, 21);
    m_info(&w, 11, "x", W_F32, 3, dims);
    m_input(&w, "z");
    m_initializer(&w, "bias", W_F32, 1, &three, bias, sizeof bias);
    m_simple(&w, "Add", "sum", "x,z", "s");
    m_simple(&w, "Relu", "", "s", "y");
    m_info(&w, 13, "s", W_F32, 1, &three);
    m_output(&w, "y");
    m_output(&w, "bias");
    m_end(&w);
    rondo_ir_graph *graph = NULL;
    T_OK(t, m_import(&in, &w, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    char text[512];
    T_STR(t, m_text(graph, text, sizeof text), "Add(x,z)->s; Relu(s)->y");
    T_STR(t, graph->name, "main");
    T_EQ(t, graph->opset, 21);
    T_EQ(t, graph->nodes_in_model, 2);
    T_EQ(t, graph->inputs.count, 2);
    T_EQ(t, graph->outputs.count, 2);
    T_STR(t, rondo__ir_node_at(graph, 0)->name, "sum");
    T_STR(t, rondo__ir_node_at(graph, 1)->name, "y"); /* called by what it makes */
    const rondo__ir_type *type = &rondo__ir_value_at(graph, rondo__ir_input_at(graph, 0))->type;
    T_EQ(t, type->rank, 3);
    T_STR(t, type->dims[0].symbol, "N");
    T_EQ(t, type->dims[0].value, -1);
    T_EQ(t, type->dims[1].value, 5);
    T_TRUE(t, type->dims[2].value == -1 && !type->dims[2].symbol);
    T_EQ(t, rondo__ir_value_at(graph, rondo__ir_value_find(graph, "s"))->type.rank, 1);
    T_EQ(t, rondo__ir_value_at(graph, rondo__ir_value_find(graph, "y"))->type.rank, -1);
    T_EQ(t, in.lines, 0);
}

static void test_kinds_of_types(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    m_begin(&w, 21);
    for (uint32_t kind = 4; kind <= 9; kind += 5) { /* a sequence, an optional of strings */
        w_begin(&w, 11);
        w_text(&w, 1, kind == 4 ? "sequence" : "optional");
        w_begin(&w, 2);
        w_begin(&w, kind);
        w_begin(&w, 1);
        w_begin(&w, 1);
        w_int(&w, 1, 8);
        for (int i = 0; i < 5; i++) w_end(&w);
    }
    m_input(&w, "x");
    m_output(&w, "x");
    m_end(&w);
    rondo_ir_graph *graph = NULL;
    T_OK(t, m_import(&in, &w, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    static const rondo__ir_kind kinds[] = {RONDO__IR_SEQUENCE, RONDO__IR_OPTIONAL};
    for (uint32_t i = 0; i < 2; i++) {
        const rondo__ir_type *type = &rondo__ir_value_at(graph, rondo__ir_input_at(graph, i))->type;
        T_EQ(t, type->kind, kinds[i]);
        T_TRUE(t, type->element && type->element->kind == RONDO__IR_TENSOR);
        T_EQ(t, type->element->dtype, RONDO_DTYPE_STRING);
    }
    m_begin(&w, 21);
    w_begin(&w, 11);
    w_text(&w, 1, "m");
    w_begin(&w, 2);
    w_begin(&w, 5);
    for (int i = 0; i < 3; i++) w_end(&w);
    m_output(&w, "m");
    m_end(&w);
    MODEL_REFUSED(t, &in, UNSUPPORTED, "input 'm' is a map");
}

static void test_names(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    m_begin(&w, 21);
    m_input(&w, "x");
    m_simple(&w, "Add", "sum", "x,nothing", "y");
    m_output(&w, "y");
    m_end(&w);
    MODEL_REFUSED(t, &in, CORRUPT, "'model': node 'sum' (Add): its input 'nothing' is not defined");
    m_begin(&w, 21);
    m_input(&w, "x");
    m_simple(&w, "Relu", "first", "x", "y");
    m_simple(&w, "Relu", "second", "x", "y");
    m_output(&w, "y");
    m_end(&w);
    MODEL_REFUSED(t, &in, CORRUPT, "node 'second' (Relu): graph 'main' defines 'y' a second time");
    m_begin(&w, 21);
    m_input(&w, "x");
    m_simple(&w, "Relu", "n", "x", "x");
    m_output(&w, "x");
    m_end(&w);
    MODEL_REFUSED(t, &in, CORRUPT, "defines 'x' a second time");
    m_begin(&w, 21);
    m_input(&w, "x");
    m_input(&w, "x");
    m_output(&w, "x");
    m_end(&w);
    MODEL_REFUSED(t, &in, CORRUPT, "defines 'x' a second time");
    m_begin(&w, 21);
    m_input(&w, "x");
    m_output(&w, "x");
    m_output(&w, "x");
    m_end(&w);
    MODEL_REFUSED(t, &in, CORRUPT, "two outputs 'x'");
    m_begin(&w, 21);
    m_input(&w, "x");
    m_output(&w, "y");
    m_end(&w);
    MODEL_REFUSED(t, &in, CORRUPT, "graph 'main': its output 'y' is not defined");
    m_begin(&w, 21);
    m_input(&w, "x");
    m_end(&w);
    MODEL_REFUSED(t, &in, CORRUPT, "graph 'main' has no outputs");
    /* A name that a converter made up cannot be used by the model. */
    m_begin(&w, 11);
    m_input(&w, "x");
    m_node(&w, "Squeeze", "s", "x", "y");
    m_ints(&w, "axes", &one, 1);
    w_end(&w);
    m_simple(&w, "Relu", "r", "axes#0", "z");
    m_output(&w, "z");
    m_end(&w);
    MODEL_REFUSED(t, &in, CORRUPT, "node 'r' (Relu): its input 'axes#0' is not defined");
}

static void test_repeated_node_names(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    m_begin(&w, 21);
    m_input(&w, "x");
    m_simple(&w, "Relu", "n", "x", "a");
    m_simple(&w, "Relu", "n", "a", "b");
    m_output(&w, "b");
    m_end(&w);
    rondo_ir_graph *graph = NULL;
    T_OK(t, m_import(&in, &w, &graph)); /* nothing refers to a node by its name */
    T_DEFER(t, rondo_ir_graph_release, graph);
    T_TRUE(t, strcmp(rondo__ir_node_at(graph, 0)->name, rondo__ir_node_at(graph, 1)->name) != 0);
}

static void test_absent_operands(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    static const float high = 6;
    m_begin(&w, 21);
    m_input(&w, "x");
    m_initializer(&w, "high", W_F32, 0, NULL, &high, 4);
    m_simple(&w, "Clip", "a", "x,,high", "c");
    m_simple(&w, "Clip", "b", "c,high,", "d");
    m_simple(&w, "Clip", "e", "d,,", "y");
    m_output(&w, "y");
    m_end(&w);
    rondo_ir_graph *graph = NULL;
    char text[512];
    T_OK(t, m_import(&in, &w, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    T_STR(t, m_text(graph, text, sizeof text), "Clip(x,-,high)->c; Clip(c,high)->d; Clip(d)->y");
}

/* Every operator with no inputs, and each of too many, is told by the prototype. */
static void test_arity(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    static const char *const operators[] = {"Conv",       "Gemm", "Squeeze", "Unsqueeze", "Softmax",
                                            "ReduceMean", "Pad",  "Slice",   "Clip",      "Split",
                                            "If",         "LSTM", "Relu",    "Concat",    "Reshape"};
    static const int64_t opsets[] = {7, 11, 13, 21};
    for (size_t o = 0; o < sizeof opsets / sizeof *opsets; o++) {
        for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
            m_begin(&w, opsets[o]);
            m_input(&w, "x");
            m_simple(&w, operators[i], "n", "", "y");
            m_output(&w, "y");
            m_end(&w);
            rondo_ir_graph *graph = NULL;
            rondo_status status = m_import(&in, &w, &graph);
            T_TRUE(t, status && rondo_status_layer(status) == RONDO_LAYER_PROTOTYPE);
            T_FAILS(t, status, INVALID_ARGUMENT, "node 'n'");
            m_begin(&w, opsets[o]);
            m_input(&w, "x");
            m_simple(&w, operators[i], "n", "x,x,x,x,x,x,x,x,x,x,x,x", "");
            m_output(&w, "x");
            m_end(&w);
            status = m_import(&in, &w, &graph);
            T_TRUE(t, status && !graph);
            rondo_status_release(status);
        }
    }
}

static void test_attributes(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    m_begin(&w, 21);
    m_input(&w, "x");
    m_node(&w, "LeakyRelu", "n", "x", "y");
    m_float(&w, "alpha", 0.5f);
    m_float(&w, "alpha", 0.25f);
    w_end(&w);
    m_output(&w, "y");
    m_end(&w);
    MODEL_REFUSED(t, &in, CORRUPT, "node 'n' (LeakyRelu) gives attribute 'alpha' twice");
    static const struct {
        int type;
        const char *part;
    } wrong[] = {{0, "attribute type 0 does not exist"}, {2, "says that it is of type int"}, {99, "99 does not exist"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        m_begin(&w, 21);
        m_input(&w, "x");
        m_node(&w, "LeakyRelu", "n", "x", "y");
        w_begin(&w, 5);
        w_text(&w, 1, "alpha");
        w_float(&w, 2, 0.5f);
        w_int(&w, 20, wrong[i].type);
        w_end(&w);
        w_end(&w);
        m_output(&w, "y");
        m_end(&w);
        MODEL_REFUSED(t, &in, CORRUPT, wrong[i].part);
    }
    m_begin(&w, 21);
    m_input(&w, "x");
    m_node(&w, "LeakyRelu", "n", "x", "y");
    m_int(&w, "alpha", 1);
    w_end(&w);
    m_output(&w, "y");
    m_end(&w);
    MODEL_REFUSED(t, &in, INVALID_ARGUMENT, "'alpha'"); /* by the prototype */
    m_begin(&w, 21);
    m_input(&w, "x");
    m_node(&w, "Relu", "n", "x", "y");
    m_int(&w, "rondo.activation", 1);
    w_end(&w);
    m_output(&w, "y");
    m_end(&w);
    MODEL_REFUSED(t, &in, CORRUPT, "'rondo.activation' is not one of ONNX's");
}

static void model_versions(int64_t ir, int64_t opset, const char *domain) {
    w.size = w.depth = 0;
    if (ir) w_int(&w, 1, ir);
    if (opset) {
        w_begin(&w, 8);
        w_text(&w, 1, domain);
        w_int(&w, 2, opset);
        w_end(&w);
    }
    w_begin(&w, 7);
    m_input(&w, "x");
    m_simple(&w, "Relu", "n", "x", "y");
    m_output(&w, "y");
    m_end(&w);
}

static void test_versions(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    rondo_ir_graph *graph = NULL;
    model_versions(0, 13, "");
    MODEL_REFUSED(t, &in, CORRUPT, "IR version 0");
    model_versions(2, 13, "");
    MODEL_REFUSED(t, &in, UNSUPPORTED, "IR version 2; versions 3 to 13");
    model_versions(14, 13, "");
    MODEL_REFUSED(t, &in, UNSUPPORTED, "IR version 14");
    model_versions(-1, 13, "");
    MODEL_REFUSED(t, &in, CORRUPT, "IR version -1");
    model_versions(8, 0, "");
    MODEL_REFUSED(t, &in, CORRUPT, "imports no operator set");
    model_versions(8, 13, "other");
    MODEL_REFUSED(t, &in, CORRUPT, "node 'n' (Relu): the model imports no operator set of domain 'ai.onnx'");
    model_versions(8, 5, "");
    MODEL_REFUSED(t, &in, UNSUPPORTED,
                  "ai.onnx::Relu version 5 (used 1 time, first at node 'n'): a form of it that is older");
    model_versions(8, 28, "");
    MODEL_REFUSED(t, &in, UNSUPPORTED, "version 28 of ONNX's operators");
    model_versions(8, -5, "");
    MODEL_REFUSED(t, &in, CORRUPT, "version -5");
    model_versions(8, 13, "ai.onnx"); /* the same domain by its long name */
    T_OK(t, m_import(&in, &w, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
}

static void test_not_a_model(rondo_test *t) {
    importer in;
    rondo_instance *instance = importer_init(&in, t);
    rondo_ir_graph *graph = NULL;
    static const char text[] = "# A text\n\nwith a few words.\n";
    T_FAILS(t, rondo_onnx_import_memory(instance, "t", text, sizeof text - 1, NULL, &graph), CORRUPT,
            "'t': it is not an ONNX model");
    T_FAILS(t, rondo_onnx_import_memory(instance, "t", text, 0, NULL, &graph), CORRUPT, "'t' is empty");
    T_FAILS(t, rondo_onnx_import_memory(instance, "t", "\x12\x01x", 3, NULL, &graph), CORRUPT, "not an ONNX model");
    T_FAILS(t, rondo_onnx_import_memory(instance, "t", "\x08\x08", 2, NULL, &graph), CORRUPT, "the model has no graph");
    T_FAILS(t, rondo_onnx_import(instance, rondo_test_folder(t), NULL, &graph), IO, "is a folder");
    T_FAILS(t, rondo_onnx_import(instance, "/nowhere/m.onnx", NULL, &graph), NOT_FOUND, "/nowhere/m.onnx");
    T_FAILS(t, rondo_onnx_import(instance, "/dev/null", NULL, &graph), IO, "not a regular file");
    T_FAILS(t, rondo_onnx_import(NULL, "x", NULL, &graph), INVALID_ARGUMENT, "instance");
    char path[512];
    w.size = 0;
    T_TRUE(t, w_save(&w, rondo_test_folder(t), "empty", path, sizeof path));
    T_FAILS(t, rondo_onnx_import(instance, path, NULL, &graph), CORRUPT, "empty' is empty");
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 395920384\n";
    w_raw(&w, pointer, sizeof pointer - 1);
    T_TRUE(t, w_save(&w, rondo_test_folder(t), "pointer", path, sizeof path));
    T_FAILS(t, rondo_onnx_import(instance, path, NULL, &graph), CORRUPT, "stands for a large file");
    rondo_onnx_options options = RONDO_ONNX_OPTIONS_INIT;
    options.file_bytes_max = sizeof pointer - 2;
    T_FAILS(t, rondo_onnx_import(instance, path, &options, &graph), CORRUPT,
            "at most 71 are read. Store large weights as external data");
    static char longest[5000]; /* the reason is there, however long the path */
    memset(longest, 'x', sizeof longest - 1);
    T_FAILS(t, rondo_onnx_import(instance, longest, NULL, &graph), IO, "cannot be opened");
    T_TRUE(t, !graph);
}

static void test_all_that_is_unsupported(rondo_test *t) {
    importer in;
    rondo_instance *instance = importer_init(&in, t);
    m_begin(&w, 16);
    m_input(&w, "x");
    m_simple(&w, "Relu", "r", "x", "a");
    m_simple(&w, "Wobble", "w1", "a", "b");
    m_simple(&w, "Wobble", "w2", "b", "c");
    m_node(&w, "Stroll", "loop", ",,c", "d");
    m_graph(&w, "body");
    m_info(&w, 11, "i", W_I64, 0, NULL);
    m_info(&w, 11, "cond", W_BOOL, 0, NULL);
    m_input(&w, "carried");
    m_simple(&w, "Inner", "", "carried", "e"); /* found inside, and without a name */
    m_output(&w, "cond");
    m_output(&w, "e");
    m_graph_end(&w);
    w_end(&w);
    m_node(&w, "Constant", "k", "", "f");
    w_begin(&w, 5);
    w_text(&w, 1, "sparse_value");
    w_begin(&w, 22);
    w_end(&w);
    w_int(&w, 20, 11);
    w_end(&w);
    w_end(&w);
    m_output(&w, "d");
    m_end(&w);
    rondo_ir_graph *graph = NULL;
    rondo_status status = m_import(&in, &w, &graph);
    if (!rondo_test_failing(t)) {
        T_STR(t, rondo_status_message(status), "'model': 4 operators are not supported, used by 5 nodes");
        T_EQ(t, rondo_status_note_count(status), 4);
        T_STR(
            t, rondo_status_note(status, 0),
            "ai.onnx::Constant version 16 (used 1 time, first at node 'k'): an attribute of a type that is not supported");
        T_STR(t, rondo_status_note(status, 1), "ai.onnx::Wobble version 16 (used 2 times, first at node 'w1')");
        T_STR(t, rondo_status_note(status, 2), "ai.onnx::Stroll version 16 (used 1 time, first at node 'loop')");
        T_STR(t, rondo_status_note(status, 3), "ai.onnx::Inner version 16 (used 1 time, first at node 'e')");
        T_EQ(t, rondo_status_layer(status), RONDO_LAYER_CONVERTER);
    }
    T_FAILS(t, status, UNSUPPORTED, NULL);
    (void)instance;
}

static void test_domains(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    w.size = w.depth = 0;
    w_int(&w, 1, 10);
    static const char *const domains[] = {"", "own", "com.other"};
    for (int i = 0; i < 3; i++) {
        w_begin(&w, 8);
        w_text(&w, 1, domains[i]);
        w_int(&w, 2, i == 0 ? 21 : i);
        w_end(&w);
    }
    w_begin(&w, 7);
    m_input(&w, "x");
    m_node(&w, "Twice", "f", "x", "a");
    w_text(&w, 7, "own");
    w_end(&w);
    m_node(&w, "Relu", "o", "a", "y");
    w_text(&w, 7, "com.other");
    w_end(&w);
    m_output(&w, "y");
    m_end(&w);
    rondo_ir_graph *graph = NULL;
    rondo_status status = m_import(&in, &w, &graph);
    if (!rondo_test_failing(t)) {
        T_STR(t, rondo_status_note(status, 0), "own::Twice version 1 (used 1 time, first at node 'f')");
        T_STR(t, rondo_status_note(status, 1), "com.other::Relu version 2 (used 1 time, first at node 'o')");
    }
    T_FAILS(t, status, UNSUPPORTED, "2 operators are not supported");
}

static void test_many_unsupported(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    m_begin(&w, 21);
    m_input(&w, "x");
    for (int i = 0; i < 200; i++) {
        char type[16], output[16];
        (void)snprintf(type, sizeof type, "Odd%d", i);
        (void)snprintf(output, sizeof output, "y%d", i);
        m_simple(&w, type, "", "x", output);
    }
    m_output(&w, "y0");
    m_end(&w);
    rondo_ir_graph *graph = NULL;
    rondo_status status = m_import(&in, &w, &graph);
    T_EQ(t, rondo_status_note_count(status), 63);
    T_STR(t, rondo_status_note(status, 62), "and 138 more");
    T_FAILS(t, status, UNSUPPORTED, "200 operators are not supported");
}

static void test_order(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    m_begin(&w, 21);
    m_input(&w, "x");
    m_simple(&w, "Add", "c", "b,k", "y");
    m_simple(&w, "Relu", "b", "a", "b");
    m_simple(&w, "Neg", "a", "x", "a");
    m_node(&w, "Constant", "k", "", "k");
    m_float(&w, "value_float", 2.0f);
    w_end(&w);
    m_output(&w, "y");
    m_end(&w);
    rondo_ir_graph *graph = NULL;
    char text[512];
    T_OK(t, m_import(&in, &w, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    T_STR(t, m_text(graph, text, sizeof text), "Neg(x)->a; Relu(a)->b; Add(b,k)->y");
    T_EQ(t, in.lines, 1);
    T_TRUE(t, strstr(in.line, "sorted"));
    static const char *const cycles[][3] = {{"n3", "n1", "n2"}, {"n1", "n1", "n1"}};
    for (int i = 0; i < 2; i++) {
        m_begin(&w, 21);
        m_input(&w, "x");
        m_simple(&w, "Add", "one", i ? "x,n1" : "x,n3", "n1");
        m_simple(&w, "Relu", "two", "n1", "n2");
        m_simple(&w, "Relu", "three", "n2", "n3");
        m_output(&w, cycles[i][0]);
        m_end(&w);
        MODEL_REFUSED(t, &in, CORRUPT, "cycle");
    }
}

/* If with two branches that each add something to a value from outside. */
static void model_branches(const char *condition, const char *outer) {
    static const char *const branches[] = {"then_branch", "else_branch"};
    m_node(&w, "If", "if", condition, "y");
    for (int i = 0; i < 2; i++) {
        char inputs[64];
        m_graph(&w, branches[i]);
        (void)snprintf(inputs, sizeof inputs, "%s,%s", outer, outer);
        m_simple(&w, i ? "Mul" : "Add", "in", inputs, "r"); /* siblings may use one name */
        m_output(&w, "r");
        m_graph_end(&w);
    }
    w_end(&w);
}

static void test_scopes(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    m_begin(&w, 21);
    m_input(&w, "x");
    m_info(&w, 11, "c", W_BOOL, 0, NULL);
    m_simple(&w, "Relu", "r", "x", "a");
    model_branches("c", "a");
    m_output(&w, "y");
    m_end(&w);
    rondo_ir_graph *graph = NULL;
    char text[512];
    T_OK(t, m_import(&in, &w, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    T_STR(t, m_text(graph, text, sizeof text), "Relu(x)->a; If(c)->y[then_branch][else_branch]");
    T_EQ(t, graph->nodes_in_model, 4);
    const rondo_ir_graph *branch = rondo__ir_node_at(graph, 1)->attributes[0].value.graph;
    T_STR(t, m_text(branch, text, sizeof text), "Add(a,a)->r");
    T_TRUE(t, branch->parent == graph);
    rondo_ir_value inner = rondo__ir_node_at(branch, 0)->inputs[0];
    T_EQ(t, rondo__ir_value_at(branch, inner)->outer, rondo__ir_value_find(graph, "a"));
    /* The branch uses what is made after the If: sorted. */
    m_begin(&w, 21);
    m_input(&w, "x");
    m_info(&w, 11, "c", W_BOOL, 0, NULL);
    model_branches("c", "a");
    m_simple(&w, "Relu", "r", "x", "a");
    m_output(&w, "y");
    m_end(&w);
    rondo_ir_graph *sorted = NULL;
    T_OK(t, m_import(&in, &w, &sorted));
    T_DEFER(t, rondo_ir_graph_release, sorted);
    T_STR(t, m_text(sorted, text, sizeof text), "Relu(x)->a; If(c)->y[then_branch][else_branch]");
    /* A cycle that goes through a branch only. */
    m_begin(&w, 21);
    m_input(&w, "x");
    m_info(&w, 11, "c", W_BOOL, 0, NULL);
    model_branches("c", "y");
    m_output(&w, "y");
    m_end(&w);
    MODEL_REFUSED(t, &in, CORRUPT, "cycle");
    m_begin(&w, 21);
    m_input(&w, "x");
    m_info(&w, 11, "c", W_BOOL, 0, NULL);
    model_branches("c", "nowhere");
    m_output(&w, "y");
    m_end(&w);
    MODEL_REFUSED(t, &in, CORRUPT, "node 'in' (Add): its input 'nowhere' is not defined");
}

static void test_branches_that_are_wrong(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    static const char *const parts[] = {"its then_branch has inputs", "has 1 outputs, but its then_branch has 2",
                                        "defines 'x' a second time: a graph around it has it", "has no outputs",
                                        "its output 'gone' is not defined"};
    for (int i = 0; i < 5; i++) {
        m_begin(&w, 21);
        m_input(&w, "x");
        m_info(&w, 11, "c", W_BOOL, 0, NULL);
        m_node(&w, "If", "if", "c", "y");
        m_graph(&w, "then_branch");
        if (i == 0) m_input(&w, "p");
        m_simple(&w, "Relu", "in", "x", i == 2 ? "x" : "r");
        if (i == 1) m_output(&w, "x");
        if (i == 4) m_output(&w, "gone");
        else if (i != 3) m_output(&w, "r");
        m_graph_end(&w);
        w_end(&w);
        m_output(&w, "y");
        m_end(&w);
        MODEL_REFUSED(t, &in, CORRUPT, parts[i]);
    }
}

static void test_declared_and_real(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    static const float data[] = {1, 2, 3};
    static const struct {
        uint32_t field;
        int32_t dtype;
        int rank;
        int64_t dim;
    } wrong[] = {{11, W_I64, 1, 3}, {11, W_F32, 1, 4}, {11, W_F32, 2, 3}, {13, W_I64, 1, 3}, {12, W_I32, 1, 3}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int64_t dims[] = {wrong[i].dim, 1};
        m_begin(&w, 21);
        m_info(&w, wrong[i].field, "k", wrong[i].dtype, wrong[i].rank, dims);
        m_initializer(&w, "k", W_F32, 1, &three, data, sizeof data);
        m_input(&w, "x");
        m_output(&w, "x");
        m_end(&w);
        MODEL_REFUSED(t, &in, CORRUPT, "'k' is declared as");
    }
    /* As old models do: an initializer that is also an input is a constant. */
    m_begin(&w, 21);
    m_info(&w, 11, "k", W_F32, 1, &three);
    m_input(&w, "x");
    m_initializer(&w, "k", W_F32, 1, &three, data, sizeof data);
    m_simple(&w, "Add", "n", "x,k", "y");
    m_output(&w, "y");
    m_end(&w);
    rondo_ir_graph *graph = NULL;
    T_OK(t, m_import(&in, &w, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    T_EQ(t, graph->inputs.count, 1);
    T_TRUE(t, rondo__ir_value_at(graph, rondo__ir_value_find(graph, "k"))->constant);
}

static void model_nested(writer *out, uint32_t depth, uint32_t left) {
    char name[16];
    (void)snprintf(name, sizeof name, "y%u", left);
    if (!left) {
        m_simple(out, "Relu", "", "x", name);
        m_output(out, name);
        return;
    }
    m_node(out, "If", "", "c", name);
    m_graph(out, "then_branch");
    model_nested(out, depth, left - 1);
    m_graph_end(out);
    m_graph(out, "else_branch");
    m_output(out, "x");
    m_graph_end(out);
    w_end(out);
    m_output(out, name);
}

static void model_of_depth(uint32_t depth) {
    m_begin(&w, 21);
    m_input(&w, "x");
    m_info(&w, 11, "c", W_BOOL, 0, NULL);
    model_nested(&w, depth, depth);
    m_end(&w);
}

static void test_depth(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    rondo_ir_graph *graph = NULL;
    model_of_depth(60);
    T_OK(t, m_import(&in, &w, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    T_EQ(t, graph->nodes_in_model, 61);
    model_of_depth(64);
    MODEL_REFUSED(t, &in, CORRUPT, "nested deeper than");
}

/* A model cut anywhere is refused, with the file's name and without a word about it being right. */
static void test_cut_anywhere(rondo_test *t) {
    importer in;
    rondo_instance *instance = importer_init(&in, t);
    model_of_depth(5);
    for (size_t size = 1; size < w.size; size++) {
        uint8_t *exact = malloc(size); /* so that a read past the end is seen */
        T_TRUE(t, exact);
        memcpy(exact, w.data, size);
        rondo_ir_graph *graph = NULL;
        rondo_status status = rondo_onnx_import_memory(instance, "cut", exact, size, NULL, &graph);
        free(exact);
        T_TRUE(t, !graph);
        T_FAILS(t, status, CORRUPT, "'cut'");
    }
}

static void test_corrupted(rondo_test *t) {
    importer in;
    rondo_instance *instance = importer_init(&in, t);
    model_of_depth(5);
    static uint8_t bytes[sizeof w.data];
    for (int i = 0; i < 20000; i++) {
        memcpy(bytes, w.data, w.size);
        for (uint64_t n = rondo_test_random(t) % 4 + 1; n > 0; n--)
            bytes[rondo_test_random(t) % w.size] = (uint8_t)rondo_test_random(t);
        rondo_ir_graph *graph = NULL;
        rondo_status status = rondo_onnx_import_memory(instance, "c", bytes, w.size, NULL, &graph);
        T_TRUE(t, !status == !!graph);
        rondo_ir_graph_release(graph);
        rondo_status_release(status);
    }
}

/* What the header promises of every struct that starts with its size. */
static void test_options_need_their_size(rondo_test *t) {
    importer in;
    rondo_instance *instance = importer_init(&in, t);
    rondo_onnx_options options = RONDO_ONNX_OPTIONS_INIT;
    rondo_ir_graph *graph = NULL;
    options.struct_size = 0;
    T_FAILS(t, rondo_onnx_import_memory(instance, "m", "", 0, &options, &graph), INVALID_ARGUMENT,
            "RONDO_ONNX_OPTIONS_INIT");
    T_FAILS(t, rondo_onnx_import(instance, "m.onnx", &options, &graph), INVALID_ARGUMENT, "RONDO_ONNX_OPTIONS_INIT");
}

/* Anything quadratic in the nodes would not end before the test's limit. */
static void test_many_nodes(rondo_test *t) {
    importer in;
    const int count = 100000;
    importer_init(&in, t);
    m_begin(&w, 21);
    m_input(&w, "x");
    for (int i = 0; i < count; i++) {
        char output[16];
        (void)snprintf(output, sizeof output, "y%d", i);
        m_simple(&w, "Relu", "", "x", output);
    }
    m_output(&w, "y0");
    m_end(&w);
    rondo_ir_graph *graph = NULL;
    T_OK(t, m_import(&in, &w, &graph));
    T_EQ(t, graph->nodes_in_model, count);
    rondo_ir_graph_release(graph);
}

RONDO_TEST_MAIN(T(test_small_model), T(test_kinds_of_types), T(test_names), T(test_repeated_node_names),
                T(test_absent_operands), T_PLAIN(test_arity), T(test_attributes), T(test_versions), T(test_not_a_model),
                T(test_all_that_is_unsupported), T(test_domains), T_PLAIN(test_many_unsupported), T(test_order),
                T(test_scopes), T(test_branches_that_are_wrong), T(test_declared_and_real), T_PLAIN(test_depth),
                T_PLAIN(test_cut_anywhere), T_PLAIN(test_corrupted), T_PLAIN(test_many_nodes),
                T(test_options_need_their_size))
