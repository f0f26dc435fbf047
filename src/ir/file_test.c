/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs to files and back, in both forms: nothing is lost, and what is no such file is refused wherever it is broken. */
#include <locale.h>
#include <math.h>
#include <rondo/ir.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "ir/file.h"

typedef struct files {
    rondo_ir_graph *graph, *loaded;
    rondo__buffer first, second; /* of chars */
} files;

static void files_close(files *f) {
    rondo_ir_graph_release(f->graph);
    rondo_ir_graph_release(f->loaded);
    rondo__buffer_deinit(&f->first);
    rondo__buffer_deinit(&f->second);
}

static void files_open(rondo_test *t, files *f) {
    *f = (files){0};
    rondo__buffer_init(&f->first, rondo_test_allocator(t), 1, SIZE_MAX / 2u);
    rondo__buffer_init(&f->second, rondo_test_allocator(t), 1, SIZE_MAX / 2u);
    T_DEFER(t, files_close, f);
}

static int32_t files_append(void *user, const char *data, size_t size) {
    rondo_status status = rondo__buffer_append(user, data, size);
    rondo_status_release(status);
    return status != NULL;
}

static rondo_status files_try_save(rondo_test *t, const rondo_ir_graph *graph, rondo_ir_file_format format,
                                   rondo__buffer *out) {
    out->count = 0;
    rondo_status status = rondo_ir_graph_save(graph, format, files_append, out);
    if (!rondo_test_failing(t) || rondo_status_code(status) != RONDO_CODE_IO) return status;
    rondo_status_release(status); /* it was the buffer of this test that found no memory */
    return rondo_status_make(RONDO_CODE_OUT_OF_MEMORY, RONDO_LAYER_MEMORY, "the test's own buffer");
}

static void files_save(rondo_test *t, const rondo_ir_graph *graph, rondo_ir_file_format format, rondo__buffer *out) {
    T_OK(t, files_try_save(t, graph, format, out));
}

static rondo_status files_load(rondo_test *t, files *f, const void *data, size_t size) {
    rondo_ir_graph_release(f->loaded);
    f->loaded = NULL;
    return rondo__ir_load(rondo_test_allocator(t), NULL, NULL, "g", data, size, &f->loaded);
}

static rondo_status files_load_text(rondo_test *t, files *f, const char *text) {
    return files_load(t, f, text, strlen(text));
}

/* graph -> bytes -> graph -> bytes: the bytes are equal, in each form and across them. */
static void files_round(rondo_test *t, files *f) {
    static const rondo_ir_file_format forms[2] = {RONDO_IR_FILE_TEXT, RONDO_IR_FILE_BINARY};
    for (int i = 0; i < 2; i++) {
        files_save(t, f->graph, forms[i], &f->first);
        T_TRUE(t, rondo_ir_graph_is_file(f->first.data, f->first.count));
        T_OK(t, files_load(t, f, f->first.data, f->first.count));
        files_save(t, f->loaded, forms[i], &f->second);
        T_EQ(t, f->second.count, f->first.count);
        T_TRUE(t, memcmp(f->first.data, f->second.data, f->first.count) == 0);
        files_save(t, f->loaded, forms[1 - i], &f->second);
        files_save(t, f->graph, forms[1 - i], &f->first);
        T_EQ(t, f->second.count, f->first.count);
        T_TRUE(t, memcmp(f->first.data, f->second.data, f->first.count) == 0);
    }
}

static const char sample[] = "rondo-graph 1\n"
                             "\n"
                             "graph main opset 17 model 3\n"
                             "input x float32[batch(1 to 8),3]\n"
                             "input \"odd name\\\"\" ?[...]\n"
                             "constant c float32[2] note user.why string because = [1, -0.5]\n"
                             "input mode int64[] = [1]\n"
                             "node Add0 Add (x, c) -> (Add0:0 float32[batch(1 to 8),3])\n"
                             "node If0 If (mode, -) -> (-, y sequence(optional(float64[?,4] format 2 1)))\n"
                             "    attribute axis int -3\n"
                             "    attribute alpha float 0.100000001\n"
                             "    attribute name string \"\"\n"
                             "    attribute bytes string \"a\\x00\\xff\"\n"
                             "    attribute perm ints [1, 0]\n"
                             "    attribute none ints []\n"
                             "    attribute scales floats [1, nan:7fc00001, -inf]\n"
                             "    attribute words strings [a, \"b c\", \"\"]\n"
                             "    attribute value tensor int32[2,1] = [7, -8]\n"
                             "    attribute then_branch graph then\n"
                             "        outer inner ?[...] = Add0:0\n"
                             "        node Neg0 Neg (inner) -> (n ?[...])\n"
                             "        output n = n\n"
                             "        end\n"
                             "    after Add0\n"
                             "node Last Op () -> (z ?[...])\n"
                             "    after If0\n"
                             "    after Add0\n"
                             "output out = y\n"
                             "output \"out 2\" = x\n"
                             "end\n";

/* The sample says all that a text can; its own form is what saving gives. */
static void test_sample(rondo_test *t) {
    files f;
    files_open(t, &f);
    T_OK(t, files_load_text(t, &f, sample));
    files_save(t, f.loaded, RONDO_IR_FILE_TEXT, &f.first);
    T_OK(t, rondo__buffer_append(&f.first, NULL, 1));
    T_STR(t, f.first.data, sample);
    const rondo_ir_graph *g = f.loaded;
    T_EQ(t, g->opset, 17);
    T_EQ(t, g->inputs.count, 3);
    const rondo__ir_value_data *x = rondo__ir_value_at(g, rondo__ir_value_find(g, "x"));
    T_TRUE(t, x->type.dims[0].value == -1 && x->type.dims[0].minimum == 1 && x->type.dims[0].maximum == 8);
    const rondo__ir_value_data *mode = rondo__ir_value_at(g, rondo__ir_value_find(g, "mode"));
    T_TRUE(t, mode->constant && *(const int64_t *)mode->constant->data == 1 && mode->flags & RONDO__IR_VALUE_INPUT);
    const rondo__ir_node_data *node = rondo__ir_node_at(g, rondo__ir_node_find(g, "If0"));
    T_TRUE(t, node->inputs[1] == RONDO_IR_NONE && node->outputs[0] == RONDO_IR_NONE && node->control_count == 1);
    T_EQ(t, rondo__ir_attribute_int(node, "axis", 0), -3);
    T_TRUE(t, rondo__ir_attribute_find(node, "alpha")->value.f == 0.1f);
    const rondo_attribute *bytes = rondo__ir_attribute_find(node, "bytes");
    T_TRUE(t, bytes->value.s.size == 3 && memcmp(bytes->value.s.data, "a\0\xff", 3) == 0);
    uint32_t nan;
    memcpy(&nan, &rondo__ir_attribute_find(node, "scales")->value.floats[1], sizeof nan);
    T_EQ(t, nan, 0x7fc00001);
    T_EQ(t, ((const int32_t *)rondo__ir_attribute_find(node, "value")->value.tensor->data)[1], -8);
    f.graph = f.loaded;
    f.loaded = NULL;
    files_round(t, &f);
}

/* Freer forms of a text: comments, no lines, spaces. */
static void test_free_form(rondo_test *t) {
    files f;
    files_open(t, &f);
    T_OK(t, files_load_text(t, &f,
                            "rondo-graph 1 ; a comment ) graph\r\n\tgraph g input x float32 [ 2 , 1 ]node n Op(x,x)->(y"
                            " ?[...])output y=y end;"));
    T_EQ(t, f.loaded->nodes.count, 1);
    T_OK(t, files_load_text(t, &f, "rondo-graph 1 graph g constant c uint8[4] = base64 < AQ\n ID B A = = > end"));
    const rondo__ir_value_data *c = rondo__ir_value_at(f.loaded, 0);
    T_TRUE(t, memcmp(c->constant->data, (const uint8_t[]){1, 2, 3, 4}, 4) == 0);
    T_OK(t, files_load_text(t, &f, "rondo-graph 1 graph g constant c float64[3] = [1e300,-1.5e-7,+2.5E+2] end"));
    c = rondo__ir_value_at(f.loaded, 0);
    T_TRUE(t, memcmp(c->constant->data, (const double[]){1e300, -1.5e-7, 250}, 24) == 0);
}

static void add_constant(rondo_test *t, rondo_ir_graph *g, rondo_dtype dtype, int64_t elements, const void *data) {
    rondo_ir_value value;
    T_OK(t, rondo_ir_graph_add_constant(g, NULL, dtype, 1, &elements, data, &value));
}

/* Every type, every bit: numbers that print badly, and arbitrary bytes, in lists and as base64. */
static void test_constants(rondo_test *t) {
    files f;
    files_open(t, &f);
    uint8_t bytes[1024];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)rondo_test_random(t);
    T_OK(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "constants", NULL, &f.graph));
    for (rondo_dtype dtype = RONDO_DTYPE_F32; dtype < RONDO_DTYPE_COUNT; dtype++) {
        if (dtype == RONDO_DTYPE_STRING) continue;
        for (int64_t elements = 0; elements < 5; elements++)
            add_constant(t, f.graph, dtype, elements, bytes + 64 * elements);
        add_constant(t, f.graph, dtype, 63, bytes);
        add_constant(t, f.graph, dtype, 64, bytes);
    }
    const float odd[] = {0.0f, -0.0f, 1e-45f, 3.4e38f, 0.1f, 1.0f / 3.0f, -INFINITY, 16777217.0f, 1.17549435e-38f};
    const double wide[] = {5e-324, 1.7976931348623157e308, 0.1, 1.0 / 3.0, -0.0, 9007199254740993.0};
    const int64_t ints[] = {INT64_MIN, INT64_MAX, 0, -1};
    const rondo_string strings[3] = {{"", 0}, {"a \"b\" \\ \n \x7f \xe2\x82\xac \xe2\x82", 18}, {"0", 1}};
    add_constant(t, f.graph, RONDO_DTYPE_F32, 9, odd);
    add_constant(t, f.graph, RONDO_DTYPE_F64, 6, wide);
    add_constant(t, f.graph, RONDO_DTYPE_I64, 4, ints);
    add_constant(t, f.graph, RONDO_DTYPE_STRING, 3, strings);
    files_round(t, &f);
    T_EQ(t, f.loaded->values.count, f.graph->values.count);
    for (size_t i = 0; i < f.graph->values.count; i++) {
        const rondo__ir_constant *a = rondo__ir_value_at(f.graph, (rondo_ir_value)i)->constant;
        const rondo__ir_constant *b = rondo__ir_value_at(f.loaded, (rondo_ir_value)i)->constant;
        T_TRUE(t, a->dtype == b->dtype && a->bytes == b->bytes);
        if (a->dtype != RONDO_DTYPE_STRING) T_TRUE(t, !a->bytes || memcmp(a->data, b->data, a->bytes) == 0);
    }
    const rondo__ir_constant *last =
        rondo__ir_value_at(f.loaded, (rondo_ir_value)(f.loaded->values.count - 1u))->constant;
    const rondo_string *got = last->data;
    for (int i = 0; i < 3; i++) {
        T_TRUE(t, got[i].size == strings[i].size && memcmp(got[i].data, strings[i].data, got[i].size) == 0);
    }
}

/* A point stays a point where the locale has a comma. */
static void test_locale(rondo_test *t) {
    files f;
    files_open(t, &f);
    const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "fr_FR.utf8"};
    size_t i = 0;
    while (i < sizeof names / sizeof *names && !setlocale(LC_NUMERIC, names[i])) i++;
    if (i == sizeof names / sizeof *names) rondo_test_skip(t, "no locale with a decimal comma is installed");
    const double values[2] = {0.5, -1.25e-100};
    rondo_status status = rondo__ir_graph_create(rondo_test_allocator(t), NULL, "g", NULL, &f.graph);
    rondo_ir_value value;
    if (!status) {
        status = rondo_ir_graph_add_constant(f.graph, "c", RONDO_DTYPE_F64, 1, &(const int64_t){2}, values, &value);
    }
    if (!status) status = files_try_save(t, f.graph, RONDO_IR_FILE_TEXT, &f.first);
    if (!status) status = files_load(t, &f, f.first.data, f.first.count);
    (void)setlocale(LC_NUMERIC, "C");
    T_OK(t, status);
    T_OK(t, rondo__buffer_append(&f.first, NULL, 1));
    T_TRUE(t, strstr(f.first.data, "[0.5, -1.25e-100]") != NULL);
    T_TRUE(t, memcmp(rondo__ir_value_at(f.loaded, 0)->constant->data, values, sizeof values) == 0);
}

/* Cut anywhere, a text is refused, or whole but for what follows its end; bytes are always refused. */
static void test_cut(rondo_test *t) {
    files f;
    files_open(t, &f);
    for (size_t size = 0; size + 2 < sizeof sample - 1u; size++) {
        void *exact = NULL; /* of that size, so that a sanitizer sees a read past the end */
        T_OK(t, rondo__allocate(rondo_test_allocator(t), size, &exact));
        if (size) memcpy(exact, sample, size);
        rondo_status status = files_load(t, &f, exact, size);
        rondo__free(rondo_test_allocator(t), exact, size);
        T_TRUE(t, status != NULL);
        rondo_status_release(status);
    }
    T_OK(t, files_load_text(t, &f, sample));
    files_save(t, f.loaded, RONDO_IR_FILE_BINARY, &f.first);
    for (size_t size = 0; size < f.first.count; size++) {
        T_FAILS(t, files_load(t, &f, f.first.data, size), CORRUPT, "'g'");
    }
    for (size_t i = 0; i < f.first.count; i++) {
        uint8_t *byte = (uint8_t *)f.first.data + i;
        *byte ^= 0x40;
        rondo_status status = files_load(t, &f, f.first.data, f.first.count);
        T_TRUE(t, status != NULL);
        rondo_status_release(status);
        *byte ^= 0x40;
    }
}

static void test_refusals(rondo_test *t) {
#define G "rondo-graph 1\ngraph g\n"
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"ir", "no graph's file"},
        {"rondo-graph x", "line 1: "},
        {G "input x float32[2]\nend end", "something stands behind the end"},
        {G "input x float33[2] end", "line 3: 'float33' is no data type"},
        {G "input x float32[-2] end", "a size is negative"},
        {G "input x float32[n(5 to 2)] end", "wrong way round"},
        {G "input x float32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] end", "more than 16 axes"},
        {G "constant c float32[n] = [1] end", "sizes are all known"},
        {G "constant c float32[2] end", "'=' is missing"},
        {G "constant c float32[2] = [1] end", "',' is missing"},
        {G "constant c float32[1] = [1, 2] end", "']' is missing"},
        {G "constant c float32[1] = [1e99] end", "'1e99' is no number"},
        {G "constant c float32[1] = [nan] end", "'nan' is no number"},
        {G "constant c float32[1] = [nan:7f800000] end", "no NaN"},
        {G "constant c uint8[1] = [256] end", "from 0 to 255"},
        {G "constant c int8[1] = [-129] end", "from -128 to 127"},
        {G "constant c float16[1] = [1] end", "base64"},
        {G "constant c uint8[3] = base64 <AQ==> end", "3 bytes of base64 are wanted"},
        {G "constant c uint8[3] = base64 <AQ", "base64 data is cut"},
        {G "constant c uint8[1] = base64 <AQIDBA==> end", "1 bytes of base64 are wanted"},
        {G "constant c uint8[1] = base64 <AQI=>             end", "1 bytes of base64 are wanted"},
        {G "constant c uint8[1000000000000] = base64 <A> end", "more than there is left"},
        {G "constant c int8[100000,100000] = [1] end", "more than there is left"},
        {G "constant c string[2] = [a] end", "2 texts are wanted here, not 1"},
        {G "constant c string[1] = [\"a\\q\"] end", "an escape"},
        {G "constant c string[1] = [\"a] end", "does not end in its line"},
        {G "node n Op (x) -> (y ?[...]) end", "value 'x' is used before"},
        {G "node n Op () -> (y ?[...]) after n2 end", "'n2' stands nowhere before"},
        {G "node n Op () -> (y ?[...])\nnode n Op () -> (z ?[...]) end", "line 4: a node 'n' is there already"},
        {G "outer o ?[...] = x end", "nothing around graph 'g'"},
        {G "output o = x end", "value 'x' is used before"},
        {G "node n Op () -> (y ?[...]) attribute a end", "attribute 'a' has no kind"},
        {G "input x ?[...] note a graph b end end", "attribute 'a' has no kind"},
        {G "input x sequence(sequence(sequence(sequence(sequence(sequence(sequence(sequence(sequence())))))))))",
         "too deep"},
        {G "what", "a statement or 'end' is missing"},
        {G "node \"a\\x00b\" Op () -> () end", "a zero byte"},
        {"rondo-graph 1 graph g opset -1 end", "'opset' is out of range"},
    };
    files f;
    files_open(t, &f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        T_FAILS(t, files_load_text(t, &f, cases[i].text), CORRUPT, cases[i].part);
    }
    T_FAILS(t, files_load_text(t, &f, "rondo-graph 2 graph"), UNSUPPORTED, "version 2");
    T_FAILS(t, files_load_text(t, &f, G "input x ?[...]\ninput x ?[...]\nend"), ALREADY_EXISTS,
            "in the statement of line 4");
    T_FAILS(t, files_load_text(t, &f, G "input x ?[...]\nconstant c float32[] = [1]\noutput a = c\noutput a = x\nend"),
            ALREADY_EXISTS, "output 'a'");
#undef G
}

static void test_deep(rondo_test *t) {
    files f;
    files_open(t, &f);
    T_OK(t, rondo__buffer_append(&f.first, "rondo-graph 1 graph g ", 22));
    for (int i = 0; i < 70; i++) {
        static const char more[] = "node n Op () -> (y ?[...]) attribute b graph g ";
        T_OK(t, rondo__buffer_append(&f.first, more, sizeof more - 1u));
    }
    T_FAILS(t, files_load(t, &f, f.first.data, f.first.count), OUT_OF_RANGE, "64 branches");
}

static int32_t refuse(void *user, const char *data, size_t size) {
    (void)user;
    (void)data;
    (void)size;
    return 1;
}

static void test_save_refusals(rondo_test *t) {
    files f;
    files_open(t, &f);
    T_OK(t, files_load_text(t, &f, sample));
    T_FAILS(t, rondo_ir_graph_save(f.loaded, RONDO_IR_FILE_TEXT, refuse, NULL), IO, "was not taken");
    T_FAILS(t, rondo_ir_graph_save(f.loaded, RONDO_IR_FILE_BINARY, refuse, NULL), IO, "was not taken");
    T_FAILS(t, rondo_ir_graph_save(f.loaded, 2, files_append, &f.first), INVALID_ARGUMENT, "no format");
    const rondo__ir_node_data *node = rondo__ir_node_at(f.loaded, rondo__ir_node_find(f.loaded, "If0"));
    const rondo_ir_graph *branch = rondo__ir_attribute_find(node, "then_branch")->value.graph;
    T_FAILS(t, rondo_ir_graph_save(branch, RONDO_IR_FILE_TEXT, files_append, &f.first), INVALID_ARGUMENT,
            "is a branch");
}

RONDO_TEST_MAIN(T(test_sample), T(test_free_form), T(test_constants), T(test_locale), T_PLAIN(test_cut),
                T(test_refusals), T(test_deep), T(test_save_refusals))
