/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of the model: their nodes in place of calls, with names, attributes and operator sets of their own. */
#include "harness/harness.h"
#include "import/onnx/onnx_testing.h"

static writer w;

static void opset(uint32_t field, const char *domain, int64_t version) {
    w_begin(&w, field);
    w_text(&w, 1, domain);
    w_int(&w, 2, version);
    w_end(&w);
}

/* A function of domain `own`, open for its nodes until w_end. Its nodes are in field 7, operator sets in field 9. */
static void function(const char *name, const char *inputs, const char *outputs, const char *attributes) {
    w_begin(&w, 25);
    w_text(&w, 1, name);
    m_names(&w, 4, inputs);
    m_names(&w, 5, outputs);
    m_names(&w, 6, attributes);
    w_text(&w, 10, "own");
    opset(9, "", 21);
    opset(9, "own", 1);
}
static void body(const char *domain, const char *type, const char *inputs, const char *outputs) {
    w_begin(&w, 7);
    m_names(&w, 1, inputs);
    m_names(&w, 2, outputs);
    w_text(&w, 4, type);
    w_text(&w, 7, domain);
}
static void simple(const char *domain, const char *type, const char *inputs, const char *outputs) {
    body(domain, type, inputs, outputs);
    w_end(&w);
}
/* An attribute that is the function's; type 1 float, 2 int. */
static void refer(const char *name, const char *to, int64_t type) {
    w_begin(&w, 5);
    w_text(&w, 1, name);
    w_int(&w, 20, type);
    w_text(&w, 21, to);
    w_end(&w);
}
static void call(const char *type, const char *name, const char *inputs, const char *outputs) {
    m_node(&w, type, name, inputs, outputs);
    w_text(&w, 7, "own");
}

static void start(void) {
    w.size = w.depth = 0;
    w_int(&w, 1, 10);
    opset(8, "", 21);
    opset(8, "own", 1);
}

static void finish(const char *result) {
    m_output(&w, result);
    m_end(&w);
}

static void same_text(rondo_test *t, const char *expected) {
    importer in;
    importer_init(&in, t);
    rondo_ir_graph *graph = NULL;
    char text[1024];
    T_OK(t, m_import(&in, &w, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    T_STR(t, m_text(graph, text, sizeof text), expected);
}

static void refused(rondo_test *t, rondo_code code, const char *part) {
    importer in;
    importer_init(&in, t);
    rondo_ir_graph *graph = NULL;
    rondo_status status = m_import(&in, &w, &graph);
    T_TRUE(t, !graph);
    rondo_test_code(t, status, code, part, part, __FILE__, __LINE__);
}

/* Two calls of one function, which calls another: names are kept apart, attributes are given, usual or left out. */
static void test_calls(rondo_test *t) {
    start();
    function("Leak", "x", "y", "slope");
    body("", "LeakyRelu", "x", "y");
    refer("alpha", "slope", 1);
    w_end(&w);
    w_end(&w);
    function("Twice", "a,b", "sum", "");
    for (int i = 0; i < 2; i++) {
        w_begin(&w, 11);
        w_text(&w, 1, i ? "j" : "k");
        w_float(&w, 2, i ? 2.0f : 0.5f);
        w_int(&w, 20, 1);
        w_end(&w);
    }
    body("own", "Leak", "a", "x");
    refer("slope", "k", 1);
    w_end(&w);
    body("own", "Leak", "x", "z");
    refer("slope", "j", 1);
    w_end(&w);
    simple("own", "Leak", "z", "u"); /* and once without */
    simple("", "Add", "u,b", "sum");
    w_end(&w);
    w_begin(&w, 7);
    m_input(&w, "x");
    call("Twice", "first", "x,x", "z");
    w_end(&w);
    call("Twice", "second", "z,x", "y");
    m_float(&w, "k", 0.25f);
    w_end(&w);
    finish("y");
    same_text(t, "LeakyRelu(x)->x[alpha=0.5]; LeakyRelu(x)->z[alpha=2]; LeakyRelu(z)->u; Add(u,x)->z; "
                 "LeakyRelu(z)->x[alpha=0.25]; LeakyRelu(x)->z[alpha=2]; LeakyRelu(z)->u; Add(u,x)->y");
}

/* Outputs that are inputs or constants, outputs that nobody wants, inputs that are not given. */
static void test_edges(rondo_test *t) {
    start();
    function("Odd", "x,low,high", "same,one,cut,rest", "");
    body("", "Constant", "", "one");
    m_float(&w, "value_float", 1);
    w_end(&w);
    simple("", "Clip", "x,low,high", "cut");
    simple("", "Neg", "cut", "rest");
    simple("", "Identity", "x", "same");
    w_end(&w);
    function("Pass", "x", "x", "");
    w_end(&w);
    w_begin(&w, 7);
    m_input(&w, "x");
    call("Odd", "o", "x,,one", "a,one,,b");
    w_end(&w);
    call("Pass", "p", "b", "y");
    w_end(&w);
    m_output(&w, "a");
    finish("y");
    same_text(t, "Clip(x,-,one)->cut; Neg(cut)->b; Identity(x)->a; Identity(b)->y");
}

/* A branch in a function sees the function's values and attributes, and nothing from around the call. */
static void test_branch(rondo_test *t) {
    start();
    function("Pick", "c,x", "y", "slope");
    body("", "If", "c", "y");
    m_graph(&w, "then_branch");
    m_node(&w, "LeakyRelu", "", "x", "t");
    refer("alpha", "slope", 1);
    w_end(&w);
    m_output(&w, "t");
    m_graph_end(&w);
    m_graph(&w, "else_branch");
    m_simple(&w, "Neg", "", "x", "e");
    m_output(&w, "e");
    m_graph_end(&w);
    w_end(&w);
    w_end(&w);
    w_begin(&w, 7);
    m_info(&w, 11, "condition", W_BOOL, 0, NULL);
    m_input(&w, "data");
    call("Pick", "p", "condition,data", "y");
    m_float(&w, "slope", 0.75f);
    w_end(&w);
    finish("y");
    importer in;
    importer_init(&in, t);
    rondo_ir_graph *graph = NULL;
    char text[1024];
    T_OK(t, m_import(&in, &w, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    T_STR(t, m_text(graph, text, sizeof text), "If(condition)->y[then_branch][else_branch]");
    const rondo_ir_graph *branch = *RONDO__BUFFER_AT(&graph->subgraphs, rondo_ir_graph *, 0);
    T_STR(t, m_text(branch, text, sizeof text), "LeakyRelu(data)->t[alpha=0.75]");
}

typedef void (*wrong)(void);
static void wrong_self(void) {
    function("F", "x", "y", "");
    simple("own", "G", "x", "y");
    w_end(&w);
    function("G", "x", "y", "");
    simple("own", "F", "x", "y");
    w_end(&w);
}
static void wrong_outside(void) {
    function("F", "x", "y", "");
    simple("", "Add", "x,outer", "y");
    w_end(&w);
}
static void wrong_twice(void) {
    function("F", "x", "y", "");
    simple("", "Neg", "x", "y");
    simple("", "Neg", "x", "y");
    w_end(&w);
}
static void wrong_shadow(void) {
    function("F", "x", "y", "");
    simple("", "Neg", "x", "x");
    w_end(&w);
}
static void wrong_not_made(void) {
    function("F", "x", "y", "");
    simple("", "Neg", "x", "z");
    w_end(&w);
}
static void wrong_no_output(void) {
    function("F", "x", "", "");
    w_end(&w);
}
static void wrong_attribute(void) {
    function("F", "x", "y", "other");
    simple("", "Neg", "x", "y");
    w_end(&w);
}
static void wrong_kind(void) {
    function("F", "x", "y", "k");
    body("", "LeakyRelu", "x", "y");
    refer("alpha", "k", 2);
    w_end(&w);
    w_end(&w);
}
static void wrong_names(void) {
    for (int i = 0; i < 2; i++) {
        function("F", "x", "y", "");
        w_end(&w);
    }
}
static void wrong_constant(void) {
    function("F", "x", "y", "k");
    body("", "Constant", "", "y");
    refer("value_float", "absent", 1);
    w_end(&w);
    w_end(&w);
}
static void wrong_opset(void) {
    w_begin(&w, 25);
    w_text(&w, 1, "F");
    w_text(&w, 4, "x");
    w_text(&w, 5, "y");
    w_text(&w, 6, "k");
    w_text(&w, 10, "own");
    simple("", "Neg", "x", "y");
    w_end(&w);
}
static void wrong_unknown(void) {
    function("F", "x", "y", "k");
    simple("", "Wonder", "x", "y");
    w_end(&w);
}
/* Each function calls the next twice. */
static void wrong_many(void) {
    char name[8], next[8];
    for (int i = 0; i < 40; i++) {
        (void)snprintf(name, sizeof name, i ? "F%d" : "F", i);
        (void)snprintf(next, sizeof next, "F%d", i + 1);
        function(name, "x", "y", "k");
        simple("own", next, "x", "z");
        simple("own", next, "z", "y");
        w_end(&w);
    }
    function("F40", "x", "y", "");
    simple("", "Neg", "x", "y");
    w_end(&w);
}

static void test_wrong(rondo_test *t) {
    static const struct {
        wrong write;
        rondo_code code;
        const char *part;
    } cases[] = {
        {wrong_self, RONDO_CODE_CORRUPT, "function 'own::F' calls itself"},
        {wrong_outside, RONDO_CODE_CORRUPT, "function 'own::F': node 'y' (Add): its input 'outer' is not defined"},
        {wrong_twice, RONDO_CODE_CORRUPT, "function 'own::F': node 'y' (Neg): it defines 'y' a second time"},
        {wrong_shadow, RONDO_CODE_CORRUPT, "it defines 'x' a second time"},
        {wrong_not_made, RONDO_CODE_CORRUPT, "function 'own::F': its output 'y' is not made"},
        {wrong_no_output, RONDO_CODE_CORRUPT, "node 'f' (F) has 1 inputs and 1 outputs, its function 1 and 0"},
        {wrong_attribute, RONDO_CODE_CORRUPT, "function 'own::F' has no attribute 'k'"},
        {wrong_kind, RONDO_CODE_CORRUPT, "attribute 'alpha': it is of type int, but what the function is given is not"},
        {wrong_names, RONDO_CODE_CORRUPT, "the model has two functions 'own::F'"},
        {wrong_constant, RONDO_CODE_CORRUPT, "the call of its function does not give its value"},
        {wrong_opset, RONDO_CODE_CORRUPT, "the model imports no operator set of domain 'ai.onnx'"},
        {wrong_unknown, RONDO_CODE_UNSUPPORTED, "ai.onnx::Wonder version 21 (used 1 time, first at node 'y')"},
        {wrong_many, RONDO_CODE_OUT_OF_RANGE, "calls of functions make more than"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start();
        cases[i].write();
        w_begin(&w, 7);
        m_input(&w, "x");
        call("F", "f", "x", "y");
        if (cases[i].write != wrong_self && cases[i].write != wrong_outside && cases[i].write != wrong_twice &&
            cases[i].write != wrong_shadow && cases[i].write != wrong_not_made)
            m_float(&w, "k", 1);
        w_end(&w);
        finish("y");
        refused(t, cases[i].code, cases[i].part);
    }
    start();
    w_begin(&w, 7);
    m_input(&w, "x");
    m_node(&w, "LeakyRelu", "l", "x", "y");
    refer("alpha", "k", 1);
    w_end(&w);
    finish("y");
    refused(t, RONDO_CODE_CORRUPT, "a reference to a function's attribute outside a function");
}

RONDO_TEST_MAIN(T(test_calls), T(test_edges), T(test_branch), T_PLAIN(test_wrong))
