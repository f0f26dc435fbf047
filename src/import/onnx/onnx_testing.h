/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: protobuf written by hand, and small ONNX models on top of it. Nothing is checked, so that wrong models are
 * as easy to write as right ones. The test includes the harness before this. */
#ifndef RONDO_SRC_IMPORT_ONNX_ONNX_TESTING_H
#define RONDO_SRC_IMPORT_ONNX_ONNX_TESTING_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/instance.h"
#include "ir/ir.h"

#define W_UNUSED __attribute__((unused)) static

typedef struct writer {
    uint8_t data[4 << 20];
    size_t size;
    size_t open[512]; /* starts of the messages that are not closed */
    size_t depth;
} writer;

W_UNUSED void w_byte(writer *w, uint8_t byte) {
    if (w->size < sizeof w->data) w->data[w->size++] = byte; /* a model cut short fails its test */
}
W_UNUSED void w_raw(writer *w, const void *data, size_t size) {
    for (size_t i = 0; i < size; i++) w_byte(w, ((const uint8_t *)data)[i]);
}
W_UNUSED void w_varint(writer *w, uint64_t value) {
    while (value > 127) {
        w_byte(w, (uint8_t)(value | 0x80u));
        value >>= 7;
    }
    w_byte(w, (uint8_t)value);
}
W_UNUSED void w_key(writer *w, uint32_t field, uint32_t wire) { w_varint(w, (uint64_t)field << 3 | wire); }
W_UNUSED void w_int(writer *w, uint32_t field, int64_t value) {
    w_key(w, field, 0);
    w_varint(w, (uint64_t)value);
}
W_UNUSED void w_float(writer *w, uint32_t field, float value) {
    w_key(w, field, 5);
    w_raw(w, &value, sizeof value);
}
W_UNUSED void w_bytes(writer *w, uint32_t field, const void *data, size_t size) {
    w_key(w, field, 2);
    w_varint(w, size);
    w_raw(w, data, size);
}
W_UNUSED void w_text(writer *w, uint32_t field, const char *text) { w_bytes(w, field, text, strlen(text)); }
/* A message of any length: its size is put in front when it ends. */
W_UNUSED void w_begin(writer *w, uint32_t field) {
    w_key(w, field, 2);
    w->open[w->depth++] = w->size;
}
W_UNUSED void w_end(writer *w) {
    size_t start = w->open[--w->depth], size = w->size - start, width = 1;
    for (size_t rest = size; rest > 127; rest >>= 7) width++;
    for (size_t i = 0; i < width; i++) w_byte(w, 0);
    if (w->size < start + width + size) return;
    memmove(w->data + start + width, w->data + start, size);
    size_t end = w->size;
    w->size = start;
    w_varint(w, size);
    w->size = end;
}

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

/* Writes the file; false when that failed. */
W_UNUSED int w_save(const writer *w, const char *folder, const char *name, char *path, size_t capacity) {
    (void)snprintf(path, capacity, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file) return 0;
    size_t written = fwrite(w->data, 1, w->size, file);
    return fclose(file) == 0 && written == w->size;
}

/* ----------------------------------------------------------------------------------------------------- import */

/* The part of an instance that importing needs; lines of the log are counted and the last is kept. */
typedef struct importer {
    rondo__instance_base base;
    char line[512];
    unsigned lines;
} importer;

W_UNUSED void importer_log(void *user, rondo_log_level level, const char *text) {
    importer *in = user;
    (void)level;
    in->lines++;
    (void)snprintf(in->line, sizeof in->line, "%s", text);
}
W_UNUSED rondo_instance *importer_init(importer *in, rondo_test *t) {
    memset(in, 0, sizeof *in);
    in->base.allocator = *rondo_test_allocator(t);
    in->base.log = (rondo__log){importer_log, in, RONDO_LOG_WARNING};
    return (rondo_instance *)(void *)in;
}
W_UNUSED rondo_status m_import(importer *in, const writer *w, rondo_ir_graph **out_graph) {
    return rondo_onnx_import_memory((rondo_instance *)(void *)in, "model", w->data, w->size, NULL, out_graph);
}
/* "Op(a,b)->c[attribute=1]; ..." of all nodes, so that a test can say in one line what must come out. Made names are
 * shown without their number. */
W_UNUSED const char *m_text(const rondo_ir_graph *graph, char *out, size_t capacity) {
    size_t used = 0;
    out[0] = 0;
#define M_PUT(...) used += (size_t)snprintf(out + used, used < capacity ? capacity - used : 0, __VA_ARGS__)
    for (uint32_t n = 0; n < graph->nodes.count; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, n);
        M_PUT("%s%s(", n ? "; " : "", node->operator_name);
        for (uint32_t i = 0; i < node->input_count; i++) {
            const char *name =
                node->inputs[i] == RONDO_IR_NONE ? "-" : rondo__ir_value_at(graph, node->inputs[i])->name;
            M_PUT("%s%.*s", i ? "," : "", (int)strcspn(name, "#"), name);
        }
        M_PUT(")->");
        for (uint32_t i = 0; i < node->output_count; i++) {
            const char *name =
                node->outputs[i] == RONDO_IR_NONE ? "-" : rondo__ir_value_at(graph, node->outputs[i])->name;
            M_PUT("%s%.*s", i ? "," : "", (int)strcspn(name, "#"), name);
        }
        for (uint32_t i = 0; i < node->attribute_count; i++) {
            const rondo_attribute *a = &node->attributes[i];
            if (a->kind == RONDO_ATTRIBUTE_INT) M_PUT("[%s=%lld]", a->name, (long long)a->value.i);
            else if (a->kind == RONDO_ATTRIBUTE_FLOAT) M_PUT("[%s=%g]", a->name, (double)a->value.f);
            else M_PUT("[%s]", a->name);
        }
    }
#undef M_PUT
    return out;
}

#endif
