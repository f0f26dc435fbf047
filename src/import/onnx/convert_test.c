/* SPDX-License-Identifier: Apache-2.0
 *
 * Each old form against the newest that it must become, and what a version does not allow. */
#include "harness/harness.h"
#include "import/onnx/onnx_testing.h"

static writer w;

typedef void (*convert_case)(void);

/* Model with inputs x [2,3,4] and, for tests of names, v of unknown shape; the case writes the nodes; output y. */
static void convert_model(int64_t opset, convert_case nodes) {
    m_begin(&w, opset);
    m_input(&w, "x");
    m_info(&w, 11, "v", W_F32, -1, NULL);
    nodes();
    m_output(&w, "y");
    m_end(&w);
}

static rondo_ir_graph *convert_import(rondo_test *t, importer *in, int64_t opset, convert_case nodes) {
    rondo_ir_graph *graph = NULL;
    convert_model(opset, nodes);
    T_OK(t, m_import(in, &w, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    return graph;
}

static void convert_expect(rondo_test *t, importer *in, int64_t opset, convert_case nodes, const char *want) {
    char text[600];
    T_STR(t, m_text(convert_import(t, in, opset, nodes), text, sizeof text), want);
}

static void convert_refused(rondo_test *t, importer *in, int64_t opset, convert_case nodes, const char *part) {
    rondo_ir_graph *graph = NULL;
    convert_model(opset, nodes);
    T_FAILS(t, m_import(in, &w, &graph), CORRUPT, part);
    T_TRUE(t, !graph);
}

/* The int64 elements of an input of node 0 must be these. */
static void convert_ints(rondo_test *t, const rondo_ir_graph *graph, uint32_t input, const int64_t *want,
                         size_t count) {
    const rondo__ir_node_data *node = rondo__ir_node_at(graph, 0);
    T_TRUE(t, input < node->input_count);
    const rondo__ir_constant *constant = rondo__ir_value_at(graph, node->inputs[input])->constant;
    T_TRUE(t, constant && constant->dtype == RONDO_DTYPE_I64 && constant->rank == 1);
    T_EQ(t, constant->bytes, count * sizeof *want);
    T_TRUE(t, memcmp(constant->data, want, constant->bytes) == 0);
}

static const int64_t ints[] = {1, -1, 0, 2, 3, 4};

static void with_axes(const char *type) {
    m_node(&w, type, "n", "x", "y");
    m_ints(&w, "axes", ints, 2);
    w_end(&w);
}
static void squeeze(void) { with_axes("Squeeze"); }
static void unsqueeze(void) { with_axes("Unsqueeze"); }
static void reduce_sum(void) { with_axes("ReduceSum"); }
static void reduce_mean(void) { with_axes("ReduceMean"); }
static void reduce_max(void) { with_axes("ReduceMax"); }
static void squeeze_all(void) { m_simple(&w, "Squeeze", "n", "x", "y"); }
static void unsqueeze_bare(void) { m_simple(&w, "Unsqueeze", "n", "x", "y"); }
static void squeeze_new(void) {
    static const int64_t one = 1;
    m_initializer(&w, "k", W_I64, 1, &one, &one, sizeof one);
    m_simple(&w, "Squeeze", "n", "x,k", "y");
}

static void test_axes(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    convert_expect(t, &in, 12, squeeze, "Squeeze(x,axes)->y");
    convert_ints(t, convert_import(t, &in, 11, squeeze), 1, ints, 2);
    convert_expect(t, &in, 12, unsqueeze, "Unsqueeze(x,axes)->y");
    convert_expect(t, &in, 12, reduce_sum, "ReduceSum(x,axes)->y");
    convert_expect(t, &in, 17, reduce_mean, "ReduceMean(x,axes)->y");
    convert_expect(t, &in, 13, reduce_mean, "ReduceMean(x,axes)->y");
    convert_expect(t, &in, 7, reduce_max, "ReduceMax(x,axes)->y");
    convert_expect(t, &in, 12, squeeze_all, "Squeeze(x)->y");
    convert_expect(t, &in, 13, squeeze_new, "Squeeze(x,k)->y");
    /* What a version does not have. */
    convert_refused(t, &in, 13, squeeze, "has attribute 'axes', which version 13 of the operator no longer has");
    convert_refused(t, &in, 13, unsqueeze, "dropped in version 13");
    convert_refused(t, &in, 13, reduce_sum, "dropped in version 13");
    convert_refused(t, &in, 18, reduce_mean, "dropped in version 18");
    convert_refused(t, &in, 12, squeeze_new,
                    "node 'n' (Squeeze) has 2 inputs, but version 12 of the operator has at most 1");
    convert_refused(t, &in, 12, unsqueeze_bare, "version 12 of the operator needs attribute 'axes'");
}

static void split_sizes(void) {
    m_node(&w, "Split", "n", "x", "y,z");
    m_int(&w, "axis", 2);
    m_ints(&w, "split", ints + 3, 2);
    w_end(&w);
}
static void split_equal(void) { m_simple(&w, "Split", "n", "x", "y,z"); }
static void split_number(void) {
    m_node(&w, "Split", "n", "x", "y,z");
    m_int(&w, "num_outputs", 2);
    w_end(&w);
}

static void test_split(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    convert_expect(t, &in, 11, split_sizes, "Split(x,split)->y,z[axis=2]");
    convert_ints(t, convert_import(t, &in, 7, split_sizes), 1, ints + 3, 2);
    convert_expect(t, &in, 11, split_equal, "Split(x)->y,z[num_outputs=2]");
    convert_expect(t, &in, 13, split_equal, "Split(x)->y,z[num_outputs=2]");
    convert_expect(t, &in, 18, split_number, "Split(x)->y,z[num_outputs=2]");
    convert_refused(t, &in, 13, split_number, "does not have yet: it came with version 18");
    convert_refused(t, &in, 13, split_sizes, "'split', which version 13");
}

static void slice_old(void) {
    m_node(&w, "Slice", "n", "x", "y");
    m_ints(&w, "starts", ints, 2);
    m_ints(&w, "ends", ints + 2, 2);
    m_ints(&w, "axes", ints + 4, 2);
    w_end(&w);
}
static void slice_no_axes(void) {
    m_node(&w, "Slice", "n", "x", "y");
    m_ints(&w, "ends", ints + 2, 2);
    m_ints(&w, "starts", ints, 2);
    w_end(&w);
}
static void slice_no_ends(void) {
    m_node(&w, "Slice", "n", "x", "y");
    m_ints(&w, "starts", ints, 2);
    w_end(&w);
}

static void test_slice(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    convert_expect(t, &in, 9, slice_old, "Slice(x,starts,ends,axes)->y");
    const rondo_ir_graph *graph = convert_import(t, &in, 7, slice_old);
    for (uint32_t i = 0; i < 3; i++) convert_ints(t, graph, i + 1, ints + 2 * i, 2);
    convert_expect(t, &in, 9, slice_no_axes, "Slice(x,starts,ends)->y");
    convert_refused(t, &in, 9, slice_no_ends, "needs attribute 'ends'");
    convert_refused(t, &in, 10, slice_old, "no longer has: it was dropped in version 10");
}

static void pad_old(void) {
    m_node(&w, "Pad", "n", "x", "y");
    m_ints(&w, "pads", ints, 6);
    m_float(&w, "value", 2.5f);
    w_end(&w);
}
static void pad_plain(void) {
    m_node(&w, "Pad", "n", "x", "y");
    m_ints(&w, "pads", ints, 6);
    w_end(&w);
}

static float convert_scalar(const rondo_ir_graph *graph, uint32_t node, uint32_t input) {
    const rondo__ir_constant *constant =
        rondo__ir_value_at(graph, rondo__ir_node_at(graph, node)->inputs[input])->constant;
    return constant && constant->dtype == RONDO_DTYPE_F32 && constant->rank == 0 ? *(const float *)constant->data : -99;
}

static void test_pad(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    convert_expect(t, &in, 10, pad_old, "Pad(x,pads,value)->y");
    const rondo_ir_graph *graph = convert_import(t, &in, 7, pad_old);
    convert_ints(t, graph, 1, ints, 6);
    T_TRUE(t, convert_scalar(graph, 0, 2) == 2.5f);
    convert_expect(t, &in, 10, pad_plain, "Pad(x,pads)->y");
    convert_refused(t, &in, 11, pad_plain, "'pads', which version 11 of the operator no longer has");
}

static void clip_old(void) {
    m_node(&w, "Clip", "n", "x", "y");
    m_float(&w, "max", 6);
    m_float(&w, "min", -1);
    w_end(&w);
}
static void clip_plain(void) { m_simple(&w, "Clip", "n", "x", "y"); }
/* The bounds take the type of the data, also when that is only known from a Cast some nodes before. */
static void clip_double(void) {
    m_node(&w, "Cast", "c", "x", "d");
    m_int(&w, "to", 11);
    w_end(&w);
    m_simple(&w, "Neg", "m", "d", "e");
    m_node(&w, "Clip", "n", "e", "y");
    m_float(&w, "max", 6);
    w_end(&w);
}
static void clip_half(void) {
    m_node(&w, "Cast", "c", "x", "d");
    m_int(&w, "to", 10);
    w_end(&w);
    m_node(&w, "Clip", "n", "d", "y");
    m_float(&w, "max", 6);
    w_end(&w);
}

static void test_clip(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    convert_expect(t, &in, 10, clip_old, "Clip(x,min,max)->y");
    const rondo_ir_graph *graph = convert_import(t, &in, 7, clip_old);
    T_TRUE(t, convert_scalar(graph, 0, 1) == -1 && convert_scalar(graph, 0, 2) == 6);
    graph = convert_import(t, &in, 7, clip_plain); /* the defaults of old are the largest floats */
    T_TRUE(t, convert_scalar(graph, 0, 1) == -0x1.fffffep+127f && convert_scalar(graph, 0, 2) == 0x1.fffffep+127f);
    convert_expect(t, &in, 11, clip_plain, "Clip(x)->y");
    convert_refused(t, &in, 11, clip_old, "no longer has");
    rondo_ir_graph *made = NULL;
    m_begin(&w, 9);
    m_input(&w, "x");
    clip_double();
    m_info(&w, 12, "y", 11, -1, NULL);
    m_end(&w);
    T_OK(t, m_import(&in, &w, &made));
    T_DEFER(t, rondo_ir_graph_release, made);
    const rondo__ir_constant *bound = rondo__ir_value_at(made, rondo__ir_node_at(made, 2)->inputs[2])->constant;
    T_TRUE(t, bound->dtype == RONDO_DTYPE_F64 && *(const double *)bound->data == 6.0);
    convert_model(9, clip_half);
    rondo_ir_graph *none = NULL;
    T_FAILS(t, m_import(&in, &w, &none), UNSUPPORTED, "its old form on another type");
}

static void softmax_of(const char *input, bool given, int64_t axis) {
    m_node(&w, "Softmax", "n", input, "y");
    if (given) m_int(&w, "axis", axis);
    w_end(&w);
}
static void softmax_default(void) { softmax_of("x", false, 0); }
static void softmax_1(void) { softmax_of("x", true, 1); }
static void softmax_2(void) { softmax_of("x", true, 2); }
static void softmax_last(void) { softmax_of("x", true, -1); }
static void softmax_unknown(void) { softmax_of("v", true, 2); }
static void softmax_unknown_last(void) { softmax_of("v", true, -1); }
static void softmax_3(void) { softmax_of("x", true, 3); }

static void test_softmax(rondo_test *t) {
    static const char flattened[] =
        "Shape(x)->Shape; Flatten(x)->Flatten[axis=1]; Softmax(Flatten)->Softmax[axis=-1]; Reshape(Softmax,Shape)->y";
    importer in;
    importer_init(&in, t);
    convert_expect(t, &in, 11, softmax_default, flattened);
    convert_expect(t, &in, 12, softmax_1, flattened);
    T_STR(t, rondo__ir_node_at(convert_import(t, &in, 12, softmax_1), 3)->name, "n");
    convert_expect(t, &in, 12, softmax_2, "Softmax(x)->y[axis=-1]");
    convert_expect(t, &in, 12, softmax_last, "Softmax(x)->y[axis=-1]");
    convert_expect(t, &in, 12, softmax_unknown_last, "Softmax(v)->y[axis=-1]");
    convert_expect(t, &in, 7, softmax_unknown,
                   "Shape(v)->Shape; Flatten(v)->Flatten[axis=2]; Softmax(Flatten)->Softmax[axis=-1]; "
                   "Reshape(Softmax,Shape)->y");
    convert_refused(t, &in, 12, softmax_3, "axis 3 of a tensor of rank 3");
    convert_expect(t, &in, 13, softmax_1, "Softmax(x)->y[axis=1]");
    convert_expect(t, &in, 13, softmax_default, "Softmax(x)->y");
}

static void constant_ints(void) {
    m_node(&w, "Constant", "n", "", "k");
    m_ints(&w, "value_ints", ints, 6);
    w_end(&w);
    m_node(&w, "Constant", "m", "", "f");
    m_float(&w, "value_float", 2.5f);
    w_end(&w);
    m_node(&w, "Constant", "l", "", "i");
    m_int(&w, "value_int", -7);
    w_end(&w);
    m_node(&w, "Constant", "o", "", "s");
    w_begin(&w, 5);
    w_text(&w, 1, "value_string");
    w_text(&w, 4, "words");
    w_int(&w, 20, 3);
    w_end(&w);
    w_end(&w);
    static const int64_t two = 2;
    m_node(&w, "Constant", "p", "", "t");
    w_begin(&w, 5);
    w_text(&w, 1, "value");
    m_tensor(&w, 5, "", W_F32, 1, &two);
    w_bytes(&w, 9, "\0\0\x80\x3f\0\0\0\x40", 8);
    w_end(&w);
    w_int(&w, 20, 4);
    w_end(&w);
    w_end(&w);
    m_simple(&w, "Relu", "r", "x", "y");
}
static void constant_none(void) { m_simple(&w, "Constant", "n", "", "y"); }
static void constant_two(void) {
    m_node(&w, "Constant", "n", "", "y");
    m_float(&w, "value_float", 2.5f);
    m_int(&w, "value_int", 1);
    w_end(&w);
}
static void constant_other(void) {
    m_node(&w, "Constant", "n", "", "y");
    m_float(&w, "value_int", 2.5f);
    w_end(&w);
}
static void constant_input(void) {
    m_node(&w, "Constant", "n", "x", "y");
    m_float(&w, "value_float", 2.5f);
    w_end(&w);
}
static void constant_broken(void) {
    static const int64_t two = 2;
    m_node(&w, "Constant", "n", "", "y");
    w_begin(&w, 5);
    w_text(&w, 1, "value");
    m_tensor(&w, 5, "inner", W_F32, 1, &two);
    w_end(&w);
    w_int(&w, 20, 4);
    w_end(&w);
    w_end(&w);
}

static const rondo__ir_constant *convert_constant(const rondo_ir_graph *graph, const char *name) {
    return rondo__ir_value_at(graph, rondo__ir_value_find(graph, name))->constant;
}

static void test_constant(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    const rondo_ir_graph *graph = convert_import(t, &in, 12, constant_ints);
    char text[100];
    T_STR(t, m_text(graph, text, sizeof text), "Relu(x)->y");
    T_EQ(t, graph->nodes_in_model, 6);
    const rondo__ir_constant *k = convert_constant(graph, "k");
    T_TRUE(t, k->dtype == RONDO_DTYPE_I64 && k->rank == 1 && k->dims[0] == 6 && !memcmp(k->data, ints, sizeof ints));
    k = convert_constant(graph, "f");
    T_TRUE(t, k->dtype == RONDO_DTYPE_F32 && k->rank == 0 && *(const float *)k->data == 2.5f);
    k = convert_constant(graph, "i");
    T_TRUE(t, k->dtype == RONDO_DTYPE_I64 && k->rank == 0 && *(const int64_t *)k->data == -7);
    k = convert_constant(graph, "s");
    T_TRUE(t, k->dtype == RONDO_DTYPE_STRING && k->rank == 0);
    T_STR(t, ((const rondo_string *)k->data)->data, "words");
    k = convert_constant(graph, "t");
    T_TRUE(t, k->dtype == RONDO_DTYPE_F32 && k->rank == 1 && ((const float *)k->data)[1] == 2.0f);
    convert_refused(t, &in, 11, constant_ints, "attribute 'value_ints' exists from version 12");
    convert_refused(t, &in, 12, constant_none, "exactly one value, not 0");
    convert_refused(t, &in, 12, constant_two, "exactly one value, not 2");
    convert_refused(t, &in, 12, constant_other, "'value_int' is none of Constant's, or of another kind");
    convert_refused(t, &in, 12, constant_input, "a Constant has no inputs");
    convert_refused(t, &in, 12, constant_broken, "node 'n' (Constant): tensor 'inner': its dims ask for 2 entries");
}

static void where_node(void) {
    m_info(&w, 11, "c", W_BOOL, -1, NULL);
    m_simple(&w, "Where", "n", "c,x,v", "y");
}
static void shape_part(void) {
    m_node(&w, "Shape", "n", "x", "y");
    m_int(&w, "start", 1);
    w_end(&w);
}

static void not_node(void) {
    m_info(&w, 11, "b", W_BOOL, -1, NULL);
    m_simple(&w, "Not", "n", "b", "y");
}
static void add_node(void) { m_simple(&w, "Add", "n", "x,v", "y"); }

/* Each operator has its own oldest form: what never changed is read from the first version on. */
static void test_how_old(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    convert_expect(t, &in, 1, not_node, "Not(b)->y");
    convert_expect(t, &in, 1, softmax_last, "Softmax(x)->y[axis=-1]");
    convert_expect(t, &in, 7, add_node, "Add(x,v)->y");
    rondo_ir_graph *none = NULL;
    convert_model(6, add_node);
    T_FAILS(t, m_import(&in, &w, &none), UNSUPPORTED, "ai.onnx::Add version 6");
}

static void test_what_came_later(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    convert_expect(t, &in, 9, where_node, "Where(c,x,v)->y");
    convert_refused(t, &in, 8, where_node, "the operator came with version 9, the model is of version 8");
    convert_expect(t, &in, 15, shape_part, "Shape(x)->y[start=1]");
    convert_refused(t, &in, 14, shape_part, "does not have yet: it came with version 15");
}

RONDO_TEST_MAIN(T(test_axes), T(test_split), T(test_slice), T(test_pad), T(test_clip), T(test_softmax),
                T(test_constant), T(test_how_old), T(test_what_came_later))
