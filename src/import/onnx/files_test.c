/* SPDX-License-Identifier: Apache-2.0
 *
 * The committed models of tests/data/onnx: right ones, wrong ones with what is to be said of each, all of them cut and
 * corrupted; and ONNX's own node tests where they were fetched. */
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/harness.h"
#include "import/onnx/onnx_testing.h"

static writer w;

static bool files_load(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    w.size = fread(w.data, 1, sizeof w.data, file);
    return fclose(file) == 0 && w.size < sizeof w.data;
}

typedef void (*files_visit)(rondo_test *t, importer *in, const char *path);

static void files_each(rondo_test *t, const char *folder, const char *ending, files_visit visit) {
    importer in;
    importer_init(&in, t);
    char place[512], path[1024];
    if (!files_folder(folder, place, sizeof place))
        rondo_test_skip(t, "%s is not found from here: RONDO_SOURCE says where the project is", folder);
    struct dirent **entries = NULL;
    int count = scandir(place, &entries, NULL, alphasort), visited = 0;
    T_TRUE(t, count > 0);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        size_t length = strlen(name), tail = strlen(ending);
        if (name[0] != '.' && length >= tail && strcmp(name + length - tail, ending) == 0) {
            (void)snprintf(path, sizeof path, "%s/%s", place, name);
            visit(t, &in, path);
            visited++;
        }
        free(entries[i]);
    }
    free(entries);
    T_TRUE(t, visited > 0);
}

static void files_right(rondo_test *t, importer *in, const char *path) {
    rondo_ir_graph *graph = NULL;
    T_OK(t, rondo_onnx_import((rondo_instance *)(void *)in, path, NULL, &graph));
    T_TRUE(t, graph && graph->nodes_in_model);
    rondo_ir_graph_release(graph);
}

static void test_right(rondo_test *t) { files_each(t, "tests/data/onnx/models", ".onnx", files_right); }

/* An exact copy on the heap, so that a read past the end is seen by a sanitizer. */
static rondo_status files_import_exact(importer *in, const uint8_t *data, size_t size, rondo_ir_graph **out_graph) {
    uint8_t *exact = malloc(size);
    if (!exact) return RONDO__FAIL(OUT_OF_MEMORY, FILE, "no memory");
    memcpy(exact, data, size);
    rondo_status status = rondo_onnx_import_memory((rondo_instance *)(void *)in, "file", exact, size, NULL, out_graph);
    free(exact);
    return status;
}

static void files_cut(rondo_test *t, importer *in, const char *path) {
    T_TRUE(t, files_load(path));
    for (size_t size = 1; size < w.size; size++) {
        rondo_ir_graph *graph = NULL;
        rondo_status status = files_import_exact(in, w.data, size, &graph);
        /* The operator sets come last in these files: a cut before the whole graph is never a model. */
        T_TRUE(t, !graph);
        T_FAILS(t, status, CORRUPT, "'file': ");
    }
}

static void test_cut(rondo_test *t) { files_each(t, "tests/data/onnx/models", ".onnx", files_cut); }

static void files_corrupt(rondo_test *t, importer *in, const char *path) {
    static uint8_t bad[sizeof w.data];
    T_TRUE(t, files_load(path));
    for (int i = 0; i < 2000; i++) {
        memcpy(bad, w.data, w.size);
        for (uint64_t n = rondo_test_random(t) % 8 + 1; n > 0; n--)
            bad[rondo_test_random(t) % w.size] = (uint8_t)rondo_test_random(t);
        rondo_ir_graph *graph = NULL;
        rondo_status status = files_import_exact(in, bad, w.size, &graph);
        T_TRUE(t, !status == !!graph);
        rondo_ir_graph_release(graph);
        rondo_status_release(status);
    }
}

static void test_corrupted(rondo_test *t) { files_each(t, "tests/data/onnx/models", ".onnx", files_corrupt); }

static void files_old(rondo_test *t, importer *in, const char *path) {
    char model[1100];
    (void)snprintf(model, sizeof model, "%s/model.onnx", path);
    files_right(t, in, model);
}

static void test_old_versions(rondo_test *t) { files_each(t, "tests/data/onnx/versions", "", files_old); }

static void files_close(void *file) { (void)fclose(file); }

static void test_hostile(rondo_test *t) {
    importer in;
    rondo_instance *instance = importer_init(&in, t);
    char folder[512], path[1024], line[512];
    if (!files_folder("tests/data/onnx/hostile", folder, sizeof folder))
        rondo_test_skip(t, "tests/data/onnx/hostile is not found from here: RONDO_SOURCE says where the project is");
    (void)snprintf(path, sizeof path, "%s/expected.txt", folder);
    FILE *expected = fopen(path, "r");
    T_TRUE(t, expected);
    T_DEFER(t, files_close, expected);
    unsigned files = 0;
    while (fgets(line, sizeof line, expected)) {
        if (line[0] == '#') continue;
        line[strcspn(line, "\n")] = 0;
        char *code = strchr(line, '\t'), *part = code ? strchr(code + 1, '\t') : NULL;
        T_TRUE(t, part);
        *code++ = *part++ = 0;
        (void)snprintf(path, sizeof path, "%s/%s", folder, line);
        rondo_ir_graph *graph = NULL;
        rondo_status status = rondo_onnx_import(instance, path, NULL, &graph);
        T_TRUE(t, !graph);
        const char *message = rondo_status_message(status);
        bool right = status && strcmp(rondo_code_name(rondo_status_code(status)), code) == 0 && strstr(message, part) &&
                     strstr(message, line) && !strchr(message, '\n');
        if (!right) (void)fprintf(stderr, "%s: %s\n", line, message);
        rondo_status_release(status);
        T_TRUE(t, right);
        files++;
    }
    T_TRUE(t, files > 40);
}

/* All folders are imported, or refused for operators that are not here: each is a right model. */
static void test_node_tests(rondo_test *t) {
    importer in;
    rondo_instance *instance = importer_init(&in, t);
    char folder[512], path[1024];
    const char *cache = getenv("RONDO_CACHE");
    if (cache) (void)snprintf(folder, sizeof folder, "%s/onnx-node-tests", cache);
    if ((!cache || access(folder, R_OK) != 0) && !files_folder(".cache/onnx-node-tests", folder, sizeof folder))
        rondo_test_skip(t, "ONNX's node tests are not fetched (tools/fetch onnx-node-tests)");
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    unsigned imported = 0, unsupported = 0, refused = 0;
    for (int i = 0; i < count; i++) {
        (void)snprintf(path, sizeof path, "%s/%s/model.onnx", folder, entries[i]->d_name);
        free(entries[i]);
        if (access(path, R_OK) != 0) continue;
        rondo_ir_graph *graph = NULL;
        rondo_status status = rondo_onnx_import(instance, path, NULL, &graph);
        if (!status) imported++;
        else if (rondo_status_code(status) == RONDO_CODE_UNSUPPORTED) unsupported++;
        else {
            refused++;
            (void)fprintf(stderr, "%s\n", rondo_status_message(status));
        }
        rondo_ir_graph_release(graph);
        rondo_status_release(status);
    }
    free(entries);
    T_EQ(t, refused, 0);
    T_TRUE(t, imported >= 500);
    T_TRUE(t, imported + unsupported >= 1700);
}

RONDO_TEST_MAIN(T_PLAIN(test_right), T_PLAIN(test_cut), T_PLAIN(test_corrupted), T_PLAIN(test_old_versions),
                T_PLAIN(test_hostile), T_PLAIN(test_node_tests))
