/* SPDX-License-Identifier: Apache-2.0
 *
 * A file whose large weights are left out while it is read gives what the same bytes in memory give: the same graph, or
 * the same refusal. */
#include <stdlib.h>

#include "harness/harness.h"
#include "import/onnx/onnx_testing.h"

static writer w;
enum { LARGE = 40000, SMALL = 5 }; /* numbers: above and below what is left out */
static float numbers[2 * LARGE];

static void model_write(bool wrong_size, uint8_t bad_bool) {
    static const int64_t large = LARGE, small = SMALL, two[] = {2, LARGE}, bools = 70000;
    static uint8_t truths[70000];
    for (uint32_t i = 0; i < 2 * LARGE; i++) numbers[i] = (float)i * 0.5f - 7.0f;
    for (uint32_t i = 0; i < sizeof truths; i++) truths[i] = (uint8_t)(i % 3 == 0);
    truths[69999] = bad_bool;
    m_begin(&w, 17);
    m_initializer(&w, "first", W_F32, 1, &large, numbers, sizeof *numbers * LARGE);
    m_initializer(&w, "little", W_F32, 1, &small, numbers + 100, sizeof *numbers * SMALL);
    m_simple(&w, "Add", "", "first,x", "y");
    m_initializer(&w, "second", W_F32, 2, two, numbers, sizeof *numbers * (wrong_size ? 2 * LARGE - 1 : 2 * LARGE));
    m_initializer(&w, "truths", W_BOOL, 1, &bools, truths, sizeof truths);
    m_tensor(&w, 5, "typed", W_F32, 1, &large);
    w_bytes(&w, 4, numbers + LARGE, sizeof *numbers * LARGE);
    w_end(&w);
    m_info(&w, 11, "x", W_F32, 1, &large);
    m_info(&w, 12, "y", W_F32, 1, &large);
    m_end(&w);
}

static const rondo__ir_constant *constant_of(const rondo_ir_graph *graph, const char *name) {
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const rondo__ir_value_data *value = rondo__ir_value_at(graph, i);
        if (value->name && strcmp(value->name, name) == 0) return value->constant;
    }
    return NULL;
}

static rondo_status import_file(rondo_test *t, rondo_instance *instance, size_t size, rondo_ir_graph **out_graph) {
    char path[600];
    size_t whole = w.size;
    w.size = size;
    T_TRUE(t, w_save(&w, rondo_test_folder(t), "model.onnx", path, sizeof path));
    w.size = whole;
    return rondo_onnx_import(instance, path, NULL, out_graph);
}

static void test_large_weights(rondo_test *t) {
    importer in;
    rondo_instance *instance = importer_init(&in, t);
    rondo_ir_graph *graph = NULL;
    model_write(false, 1);
    T_OK(t, import_file(t, instance, w.size, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    static const struct {
        const char *name;
        uint32_t from, count;
    } wanted[] = {{"first", 0, LARGE}, {"little", 100, SMALL}, {"second", 0, 2 * LARGE}, {"typed", LARGE, LARGE}};
    for (uint32_t i = 0; i < 4; i++) {
        const rondo__ir_constant *found = constant_of(graph, wanted[i].name);
        T_TRUE(t, found && found->bytes == wanted[i].count * sizeof(float) && (uintptr_t)found->data % 64 == 0);
        T_EQ(t, memcmp(found->data, numbers + wanted[i].from, found->bytes), 0);
    }
    const rondo__ir_constant *truths = constant_of(graph, "truths");
    T_TRUE(t, truths && truths->bytes == 70000);
    for (uint32_t i = 0; i < 70000; i++) T_EQ(t, ((const uint8_t *)truths->data)[i], i % 3 == 0 || i == 69999);
}

/* The same code and the same words, but for the name in front. */
static void same_refusal(rondo_test *t, rondo_instance *instance, size_t size) {
    rondo_ir_graph *one = NULL, *other = NULL;
    rondo_status from_file = import_file(t, instance, size, &one);
    rondo_status from_memory = rondo_onnx_import_memory(instance, "model", w.data, size, NULL, &other);
    const char *a = rondo_status_message(from_file), *b = rondo_status_message(from_memory);
    bool same = from_file && from_memory && rondo_status_code(from_file) == rondo_status_code(from_memory);
    a = same ? strstr(a, "': ") : NULL;
    b = same ? strstr(b, "': ") : NULL;
    same = same && a && b && strcmp(a, b) == 0;
    if (!same) (void)fprintf(stderr, "%zu bytes: %s / %s\n", size, a ? a : "none", b ? b : "none");
    rondo_status_release(from_file);
    rondo_status_release(from_memory);
    rondo_ir_graph_release(one);
    rondo_ir_graph_release(other);
    T_TRUE(t, same);
}

static void test_refusals_are_the_same(rondo_test *t) {
    importer in;
    rondo_instance *instance = importer_init(&in, t);
    model_write(true, 1);
    same_refusal(t, instance, w.size);
    model_write(false, 2);
    same_refusal(t, instance, w.size);
    model_write(false, 1);
    for (size_t size = 1; size < w.size; size += 1 + w.size / 97) same_refusal(t, instance, size);
}

/* Lengths and keys of the walk, changed one by one. */
static void test_changed_bytes(rondo_test *t) {
    importer in;
    rondo_instance *instance = importer_init(&in, t);
    model_write(false, 1);
    for (size_t at = 0; at < 60; at++) {
        for (uint32_t bit = 0; bit < 8; bit += 3) {
            rondo_ir_graph *one = NULL, *other = NULL;
            w.data[at] ^= (uint8_t)(1u << bit);
            rondo_status from_file = import_file(t, instance, w.size, &one);
            rondo_status from_memory = rondo_onnx_import_memory(instance, "model", w.data, w.size, NULL, &other);
            bool same = rondo_status_code(from_file) == rondo_status_code(from_memory);
            rondo_status_release(from_file);
            rondo_status_release(from_memory);
            rondo_ir_graph_release(one);
            rondo_ir_graph_release(other);
            w.data[at] ^= (uint8_t)(1u << bit);
            T_TRUE(t, same);
        }
    }
}

RONDO_TEST_MAIN(T(test_large_weights), T_PLAIN(test_refusals_are_the_same), T_PLAIN(test_changed_bytes))
