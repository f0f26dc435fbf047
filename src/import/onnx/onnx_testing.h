/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: small ONNX models, written by hand. Nothing is checked, so that wrong models are
 * as easy to write as right ones. The test includes the harness before this. */
#ifndef RONDO_SRC_IMPORT_ONNX_ONNX_TESTING_H
#define RONDO_SRC_IMPORT_ONNX_ONNX_TESTING_H

#include "import/common/common_testing.h"

/* ------------------------------------------------------------------------------------------------------- ONNX */

enum { W_F32 = 1, W_I32 = 6, W_I64 = 7, W_BOOL = 9 };

/* Starts the model's graph; m_end ends it. */
W_UNUSED void m_begin(writer *w, int64_t opset) {
    w->size = w->depth = 0;
    w_int(w, 1, 8);
    w_begin(w, 8);
    w_text(w, 1, "");
    w_int(w, 2, opset);
    w_end(w);
    w_begin(w, 7);
    w_text(w, 2, "main");
}
W_UNUSED void m_end(writer *w) {
    while (w->depth) w_end(w);
}
/* field 11: input, 12: output, 13: value_info. rank -1: no shape; dim -1: open; dim -2 and less: named "N". */
W_UNUSED void m_info(writer *w, uint32_t field, const char *name, int32_t dtype, int rank, const int64_t *dims) {
    w_begin(w, field);
    w_text(w, 1, name);
    w_begin(w, 2);
    w_begin(w, 1);
    w_int(w, 1, dtype);
    if (rank >= 0) {
        w_begin(w, 2);
        for (int i = 0; i < rank; i++) {
            w_begin(w, 1);
            if (dims[i] >= 0) w_int(w, 1, dims[i]);
            else if (dims[i] < -1) w_text(w, 2, "N");
            w_end(w);
        }
        w_end(w);
    }
    w_end(w);
    w_end(w);
    w_end(w);
}
W_UNUSED void m_input(writer *w, const char *name) {
    static const int64_t dims[] = {2, 3, 4};
    m_info(w, 11, name, W_F32, 3, dims);
}
W_UNUSED void m_output(writer *w, const char *name) { m_info(w, 12, name, W_F32, -1, NULL); }
/* Names separated by commas; "a,,b" has an empty one in the middle, "" none. */
W_UNUSED void m_names(writer *w, uint32_t field, const char *names) {
    while (*names) {
        size_t size = strcspn(names, ",");
        w_bytes(w, field, names, size);
        names += size;
        if (*names == ',' && !*++names) w_bytes(w, field, "", 0);
    }
}
/* A node that stays open for attributes until w_end. */
W_UNUSED void m_node(writer *w, const char *type, const char *name, const char *inputs, const char *outputs) {
    w_begin(w, 1);
    m_names(w, 1, inputs);
    m_names(w, 2, outputs);
    if (*name) w_text(w, 3, name);
    w_text(w, 4, type);
}
W_UNUSED void m_simple(writer *w, const char *type, const char *name, const char *inputs, const char *outputs) {
    m_node(w, type, name, inputs, outputs);
    w_end(w);
}
W_UNUSED void m_int(writer *w, const char *name, int64_t value) {
    w_begin(w, 5);
    w_text(w, 1, name);
    w_int(w, 3, value);
    w_int(w, 20, 2);
    w_end(w);
}
W_UNUSED void m_float(writer *w, const char *name, float value) {
    w_begin(w, 5);
    w_text(w, 1, name);
    w_float(w, 2, value);
    w_int(w, 20, 1);
    w_end(w);
}
W_UNUSED void m_ints(writer *w, const char *name, const int64_t *values, size_t count) {
    w_begin(w, 5);
    w_text(w, 1, name);
    for (size_t i = 0; i < count; i++) w_int(w, 8, values[i]);
    w_int(w, 20, 7);
    w_end(w);
}
/* A graph attribute, open until m_graph_end. */
W_UNUSED void m_graph(writer *w, const char *name) {
    w_begin(w, 5);
    w_text(w, 1, name);
    w_int(w, 20, 5);
    w_begin(w, 6);
    w_text(w, 2, name);
}
W_UNUSED void m_graph_end(writer *w) {
    w_end(w);
    w_end(w);
}
/* A tensor that stays open for its data until w_end; field 5: initializer. */
W_UNUSED void m_tensor(writer *w, uint32_t field, const char *name, int32_t dtype, int rank, const int64_t *dims) {
    w_begin(w, field);
    for (int i = 0; i < rank; i++) w_int(w, 1, dims[i]);
    w_int(w, 2, dtype);
    w_text(w, 8, name);
}
W_UNUSED void m_initializer(writer *w, const char *name, int32_t dtype, int rank, const int64_t *dims, const void *raw,
                            size_t size) {
    m_tensor(w, 5, name, dtype, rank, dims);
    w_bytes(w, 9, raw, size);
    w_end(w);
}
W_UNUSED void m_entry(writer *w, const char *key, const char *value) {
    w_begin(w, 13);
    w_text(w, 1, key);
    w_text(w, 2, value);
    w_end(w);
}

W_UNUSED rondo_status m_import(importer *in, const writer *w, rondo_ir_graph **out_graph) {
    return rondo_onnx_import_memory((rondo_instance *)(void *)in, "model", w->data, w->size, NULL, out_graph);
}

#endif
