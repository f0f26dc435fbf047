/* SPDX-License-Identifier: Apache-2.0
 *
 * The graphs of tests/data/tf that TensorFlow froze: each is read; cut at every length and corrupted it is refused or is
 * another sound graph. */
#include <dirent.h>

#include "harness/harness.h"
#include "import/tf/tf_testing.h"

static writer w;

static bool graphs_load(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    w.size = fread(w.data, 1, sizeof w.data, file);
    return fclose(file) == 0 && w.size < sizeof w.data;
}

static void graphs_each(rondo_test *t, void (*visit)(rondo_test *t, importer *in)) {
    importer in;
    importer_init(&in, t);
    char folder[512], path[1024];
    if (!files_folder("tests/data/tf", folder, sizeof folder))
        rondo_test_skip(t, "tests/data/tf is not found from here: RONDO_SOURCE says where the project is");
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort), visited = 0;
    for (int i = 0; i < count; i++) {
        (void)snprintf(path, sizeof path, "%s/%s/model.pb", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && graphs_load(path)) {
            visit(t, &in);
            visited++;
        }
        free(entries[i]);
    }
    free(entries);
    T_TRUE(t, visited >= 30);
}

/* An exact copy on the heap, so that a read past the end is seen by a sanitizer. */
static rondo_status graphs_import(importer *in, const uint8_t *data, size_t size, rondo_ir_graph **out_graph) {
    uint8_t *exact = malloc(size);
    if (!exact) return RONDO__FAIL(OUT_OF_MEMORY, FILE, "no memory");
    memcpy(exact, data, size);
    rondo_status status = rondo_tf_import_memory((rondo_instance *)(void *)in, "file", exact, size, NULL, out_graph);
    free(exact);
    return status;
}

static void graphs_right(rondo_test *t, importer *in) {
    rondo_ir_graph *graph = NULL;
    T_OK(t, graphs_import(in, w.data, w.size, &graph));
    T_TRUE(t, graph && graph->nodes_in_model && graph->outputs.count);
    rondo_ir_graph_release(graph);
}

static void test_right(rondo_test *t) { graphs_each(t, graphs_right); }

/* The end of the part of the file that begins at `start`: its key and length, read another way than the importer does. */
static size_t graphs_next(size_t start) {
    size_t at = start + 1, size = 0, shift = 0;
    do size |= (size_t)(w.data[at] & 127u) << shift, shift += 7;
    while (w.data[at++] & 128u);
    return at + size;
}

static void graphs_cut(rondo_test *t, importer *in) {
    size_t whole = graphs_next(0);
    for (size_t size = 1; size < w.size; size++) {
        rondo_ir_graph *graph = NULL;
        rondo_status status = graphs_import(in, w.data, size, &graph);
        const bool between = size == whole; /* parts fewer are still a graph, or one whose nodes are missing */
        if (between) whole = graphs_next(whole);
        T_TRUE(t, !status == !!graph);
        T_TRUE(t, between || rondo_status_code(status) == RONDO_CODE_CORRUPT);
        rondo_ir_graph_release(graph);
        rondo_status_release(status);
    }
}

static void test_cut(rondo_test *t) { graphs_each(t, graphs_cut); }

static void graphs_corrupt(rondo_test *t, importer *in) {
    static uint8_t bad[sizeof w.data];
    for (int i = 0; i < 500; i++) {
        memcpy(bad, w.data, w.size);
        for (uint64_t n = rondo_test_random(t) % 4 + 1; n > 0; n--)
            bad[rondo_test_random(t) % w.size] = (uint8_t)rondo_test_random(t);
        rondo_ir_graph *graph = NULL;
        rondo_status status = graphs_import(in, bad, w.size, &graph);
        T_TRUE(t, !status == !!graph);
        rondo_ir_graph_release(graph);
        rondo_status_release(status);
    }
}

static void test_corrupted(rondo_test *t) { graphs_each(t, graphs_corrupt); }

/* Each of them with its nth allocation failing; the harness counts what is left behind. */
static void test_without_memory(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    char folder[512], path[1024];
    if (!files_folder("tests/data/tf", folder, sizeof folder))
        rondo_test_skip(t, "tests/data/tf is not found from here: RONDO_SOURCE says where the project is");
    static const char *const names[] = {"strided_slice_computed", "image_model", "attention_model"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s/model.pb", folder, names[i]);
        T_TRUE(t, graphs_load(path));
        rondo_ir_graph *graph = NULL;
        T_OK(t, g_import(&in, &w, NULL, &graph));
        rondo_ir_graph_release(graph);
    }
}

RONDO_TEST_MAIN(T_PLAIN(test_right), T_PLAIN(test_cut), T_PLAIN(test_corrupted), T(test_without_memory))
