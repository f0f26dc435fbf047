/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: TensorFlow graphs, written by hand. Nothing is checked, so that wrong graphs are as easy to write as right
 * ones. The test includes the harness before this. */
#ifndef RONDO_SRC_IMPORT_TF_TF_TESTING_H
#define RONDO_SRC_IMPORT_TF_TF_TESTING_H

#include "import/common/common_testing.h"

enum { G_F32 = 1, G_I32 = 3, G_I64 = 9, G_BOOL = 10 };

W_UNUSED void g_begin(writer *w) { w->size = w->depth = 0; }

/* A node that stays open for attributes until w_end. Inputs are separated by commas. */
W_UNUSED void g_node(writer *w, const char *type, const char *name, const char *inputs) {
    w_begin(w, 1);
    w_text(w, 1, name);
    w_text(w, 2, type);
    while (*inputs) {
        const size_t size = strcspn(inputs, ",");
        w_bytes(w, 3, inputs, size);
        inputs += size + (inputs[size] == ',');
    }
}
/* An attribute whose value is open until g_end. */
W_UNUSED void g_attribute(writer *w, const char *key) {
    w_begin(w, 5);
    w_text(w, 1, key);
    w_begin(w, 2);
}
W_UNUSED void g_end(writer *w) {
    w_end(w);
    w_end(w);
}
/* field 3: int, 5: bool, 6: type */
W_UNUSED void g_number(writer *w, const char *key, uint32_t field, int64_t value) {
    g_attribute(w, key);
    w_int(w, field, value);
    g_end(w);
}
W_UNUSED void g_words(writer *w, const char *key, const char *value) {
    g_attribute(w, key);
    w_text(w, 2, value);
    g_end(w);
}
W_UNUSED void g_ints(writer *w, const char *key, const int64_t *values, int count) {
    g_attribute(w, key);
    w_begin(w, 1);
    w_begin(w, 3);
    for (int i = 0; i < count; i++) w_varint(w, (uint64_t)values[i]);
    w_end(w);
    w_end(w);
    g_end(w);
}
W_UNUSED void g_dims(writer *w, uint32_t field, int rank, const int64_t *dims) {
    w_begin(w, field);
    for (int i = 0; i < rank; i++) {
        w_begin(w, 2);
        w_int(w, 1, dims[i]);
        w_end(w);
    }
    w_end(w);
}
/* A node of float32 operands. */
W_UNUSED void g_simple(writer *w, const char *type, const char *name, const char *inputs) {
    g_node(w, type, name, inputs);
    g_number(w, "T", 6, G_F32);
    w_end(w);
}
W_UNUSED void g_input(writer *w, const char *name, int rank, const int64_t *dims) {
    g_node(w, "Placeholder", name, "");
    g_number(w, "dtype", 6, G_F32);
    g_attribute(w, "shape");
    g_dims(w, 7, rank, dims);
    g_end(w);
    w_end(w);
}
/* A Const whose tensor is open for its data until g_constant_end. */
W_UNUSED void g_constant(writer *w, const char *name, int64_t dtype, int rank, const int64_t *dims) {
    g_node(w, "Const", name, "");
    g_number(w, "dtype", 6, dtype);
    g_attribute(w, "value");
    w_begin(w, 8);
    w_int(w, 1, dtype);
    g_dims(w, 2, rank, dims);
}
W_UNUSED void g_constant_end(writer *w) {
    w_end(w);
    g_end(w);
    w_end(w);
}
/* Zeros: one number, which stands for all. */
W_UNUSED void g_zeros(writer *w, const char *name, int rank, const int64_t *dims) {
    g_constant(w, name, G_F32, rank, dims);
    w_float(w, 5, 0);
    g_constant_end(w);
}
W_UNUSED void g_list(writer *w, const char *name, const int64_t *values, int count) {
    const int64_t dims = count;
    g_constant(w, name, G_I32, 1, &dims);
    for (int i = 0; i < count; i++) w_int(w, 7, values[i]);
    g_constant_end(w);
}
W_UNUSED rondo_status g_import(importer *in, const writer *w, const rondo_tf_options *options,
                               rondo_ir_graph **out_graph) {
    return rondo_tf_import_memory((rondo_instance *)(void *)in, "graph", w->data, w->size, options, out_graph);
}

#endif
