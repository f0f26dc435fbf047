/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of importers: protobuf written by hand, an instance that is enough for importing, and a graph in one line.
 * The test includes the harness before this. */
#ifndef RONDO_SRC_IMPORT_COMMON_COMMON_TESTING_H
#define RONDO_SRC_IMPORT_COMMON_COMMON_TESTING_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

#define FILES_DEPTH 8

/* The folder `wanted` of the project: tests run in build folders inside it, or are told by RONDO_SOURCE. */
W_UNUSED bool files_folder(const char *wanted, char *out, size_t capacity) {
    const char *told = getenv("RONDO_SOURCE");
    char up[3 * FILES_DEPTH + 1] = "";
    for (int i = 0; i < FILES_DEPTH; i++) {
        (void)snprintf(out, capacity, "%s%s%s", told ? told : up, told ? "/" : "", wanted);
        if (access(out, R_OK) == 0) return true;
        if (told) return false;
        memcpy(up + 3 * i, "../", 4);
    }
    /* A build folder elsewhere: where the compiler was told the file is. */
    size_t root = strlen(__FILE__) - strlen("src/import/common/common_testing.h");
    (void)snprintf(out, capacity, "%.*s%s", (int)root, __FILE__, wanted);
    return access(out, R_OK) == 0;
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
