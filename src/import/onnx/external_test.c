/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights beside the model: the right bytes from the right place, and every way out of the folder closed. */
#include <sys/stat.h>
#include <unistd.h>

#include "harness/harness.h"
#include "import/onnx/onnx_testing.h"

static writer w;

/* A model with one weight "k" of `elements` floats in another file. offset and length: null leaves them out. */
static void external_model(const char *location, const char *offset, const char *length, int64_t elements) {
    m_begin(&w, 21);
    m_tensor(&w, 5, "k", W_F32, 1, &elements);
    w_int(&w, 14, 1);
    m_entry(&w, "location", location);
    if (offset) m_entry(&w, "offset", offset);
    if (length) m_entry(&w, "length", length);
    w_end(&w);
    m_input(&w, "x");
    m_simple(&w, "Identity", "i", "x", "y");
    m_output(&w, "y");
    m_end(&w);
}

static void external_file(rondo_test *t, const char *folder, const char *name, const void *data, size_t size) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    T_TRUE(t, file);
    size_t written = fwrite(data, 1, size, file);
    T_TRUE(t, fclose(file) == 0 && written == size);
}

static rondo_status external_import(rondo_test *t, importer *in, const char *folder, const char *root,
                                    rondo_ir_graph **out_graph) {
    char path[600];
    T_TRUE(t, w_save(&w, folder, "m.onnx", path, sizeof path));
    rondo_onnx_options options = RONDO_ONNX_OPTIONS_INIT;
    options.external_root = root;
    return rondo_onnx_import((rondo_instance *)(void *)in, path, &options, out_graph);
}

#define EXTERNAL_REFUSED(t, in, folder, root, code, part)                       \
    do {                                                                        \
        rondo_ir_graph *refused = NULL;                                         \
        T_FAILS(t, external_import(t, in, folder, root, &refused), code, part); \
        T_TRUE(t, !refused);                                                    \
    } while (0)

static void external_accepted(rondo_test *t, importer *in, const char *folder, const char *root, float first) {
    rondo_ir_graph *graph = NULL;
    T_OK(t, external_import(t, in, folder, root, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    const rondo__ir_constant *constant = rondo__ir_value_at(graph, rondo__ir_value_find(graph, "k"))->constant;
    T_EQ(t, (uintptr_t)constant->data % 64, 0);
    if (constant->bytes) T_TRUE(t, *(const float *)constant->data == first);
}

static const float weights[] = {0.5f, 1.5f, 2.5f, 3.5f};

static void test_where_it_lies(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    const char *folder = rondo_test_folder(t);
    char sub[300];
    external_file(t, folder, "w.bin", weights, sizeof weights);
    (void)snprintf(sub, sizeof sub, "%s/sub", folder);
    T_TRUE(t, mkdir(sub, 0700) == 0 || access(sub, F_OK) == 0);
    external_file(t, sub, "w.bin", weights + 2, 8);
    external_model("w.bin", NULL, NULL, 4);
    external_accepted(t, &in, folder, NULL, 0.5f);
    external_model("w.bin", "4", "8", 2);
    external_accepted(t, &in, folder, NULL, 1.5f);
    external_model("w.bin", "12", NULL, 1);
    external_accepted(t, &in, folder, NULL, 3.5f);
    external_model("sub/w.bin", "0", "8", 2);
    external_accepted(t, &in, folder, NULL, 2.5f);
    external_model("./sub/.././/w.bin", "0", "16", 4);
    external_accepted(t, &in, folder, NULL, 0.5f);
    external_model("w.bin", "16", "0", 0); /* at the end, for no elements */
    external_accepted(t, &in, folder, NULL, 0);
    external_model("w.bin", "0", "16", 4);
    rondo_ir_graph *graph = NULL;
    T_FAILS(t, m_import(&in, &w, &graph), UNSUPPORTED, "external data 'w.bin' cannot be found for a model in memory");
}

static void test_past_the_end(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    const char *folder = rondo_test_folder(t);
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 395920384\n";
    external_file(t, folder, "w.bin", weights, sizeof weights);
    external_file(t, folder, "p.bin", pointer, sizeof pointer - 1);
    external_model("w.bin", "16", "4", 1);
    EXTERNAL_REFUSED(t, &in, folder, NULL, CORRUPT,
                     "tensor 'k': external data needs bytes 16 to 20 of 'w.bin', which has 16");
    external_model("w.bin", "13", "4", 1);
    EXTERNAL_REFUSED(t, &in, folder, NULL, CORRUPT, "needs bytes 13 to 17 of 'w.bin', which has 16");
    external_model("w.bin", "17", "0", 0);
    EXTERNAL_REFUSED(t, &in, folder, NULL, CORRUPT, "which has 16");
    external_model("w.bin", "18446744073709551608", "16", 4);
    EXTERNAL_REFUSED(t, &in, folder, NULL, CORRUPT, "offset 18446744073709551608 and 16 bytes exceed 64 bits");
    external_model("w.bin", "0", "4", 1000000);
    EXTERNAL_REFUSED(t, &in, folder, NULL, CORRUPT, "has length 4, but its type needs 4000000 bytes");
    external_model("w.bin", "0", NULL, INT64_C(1) << 50); /* nothing of that size is allocated */
    EXTERNAL_REFUSED(t, &in, folder, NULL, CORRUPT, "which has 16");
    external_model("p.bin", "395907072", "12288", 3072);
    EXTERNAL_REFUSED(t, &in, folder, NULL, CORRUPT, "is the small text that stands for a large file");
    external_model("nothing.bin", NULL, NULL, 1);
    EXTERNAL_REFUSED(t, &in, folder, NULL, NOT_FOUND, "'nothing.bin' is not beside the model");
}

static void test_names_that_leave(rondo_test *t) {
    static const char *const locations[] = {
        "../secret",       "junk/../../secret", "sub/./../..//secret",      "..", "sub/../../inside/../secret",
        "../inside/w.bin", "./../inside/w.bin", "a/b/c/../../../../secret",
    };
    static const char *const odd[] = {"/etc/passwd", "..\\secret", "C:/secret", "sub\\..\\..\\secret", ""};
    importer in;
    importer_init(&in, t);
    char folder[300], sub[320];
    (void)snprintf(folder, sizeof folder, "%s/inside", rondo_test_folder(t));
    (void)snprintf(sub, sizeof sub, "%s/sub", folder);
    T_TRUE(t, mkdir(folder, 0700) == 0 || access(folder, F_OK) == 0);
    T_TRUE(t, mkdir(sub, 0700) == 0 || access(sub, F_OK) == 0);
    external_file(t, rondo_test_folder(t), "secret", weights, sizeof weights);
    external_file(t, folder, "w.bin", weights, sizeof weights);
    for (size_t i = 0; i < sizeof locations / sizeof *locations; i++) {
        external_model(locations[i], "0", "16", 4);
        EXTERNAL_REFUSED(t, &in, folder, NULL, CORRUPT, "leaves the model's folder");
    }
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        external_model(odd[i], "0", "16", 4);
        EXTERNAL_REFUSED(t, &in, folder, NULL, CORRUPT, "location");
    }
    external_model("...", "0", "16", 4); /* a name like any other */
    EXTERNAL_REFUSED(t, &in, folder, NULL, NOT_FOUND, "'...'");
    external_model("sub", "0", "16", 4);
    EXTERNAL_REFUSED(t, &in, folder, NULL, IO, "is a folder");
    static char longest[5000];
    memset(longest, 'x', sizeof longest - 1);
    external_model(longest, "0", "16", 4);
    EXTERNAL_REFUSED(t, &in, folder, NULL, CORRUPT, "has 4999 bytes");
    longest[300] = 0; /* allowed here, not by the file system */
    external_model(longest, "0", "16", 4);
    EXTERNAL_REFUSED(t, &in, folder, NULL, IO, "cannot be opened");
    /* With a wider root the same file is allowed, and what leaves that root is not. */
    external_model("../secret", "0", "16", 4);
    external_accepted(t, &in, folder, rondo_test_folder(t), 0.5f);
    external_model("../../etc/passwd", "0", "16", 4);
    rondo_ir_graph *graph = NULL;
    rondo_status status = external_import(t, &in, folder, rondo_test_folder(t), &graph);
    rondo_code code = rondo_status_code(status); /* there or not, by where temporary folders are */
    rondo_status_release(status);
    T_TRUE(t, code == RONDO_CODE_CORRUPT || code == RONDO_CODE_NOT_FOUND || code == RONDO_CODE_OUT_OF_MEMORY);
    external_model("w.bin", "0", "16", 4);
    EXTERNAL_REFUSED(t, &in, folder, "/nowhere/at/all", NOT_FOUND, "the folder '/nowhere/at/all' for external data");
}

/* A cache of links: snapshot/m.onnx -> ../blobs/H1, snapshot/m.onnx_data -> ../blobs/H2. */
static void test_links(rondo_test *t) {
    importer in;
    rondo_instance *instance = importer_init(&in, t);
    const char *root = rondo_test_folder(t);
    char blobs[300], snapshot[300], path[400], other[400];
    (void)snprintf(blobs, sizeof blobs, "%s/blobs", root);
    (void)snprintf(snapshot, sizeof snapshot, "%s/snapshot", root);
    T_TRUE(t, mkdir(blobs, 0700) == 0 || access(blobs, F_OK) == 0);
    T_TRUE(t, mkdir(snapshot, 0700) == 0 || access(snapshot, F_OK) == 0);
    external_model("m.onnx_data", "0", "16", 4);
    T_TRUE(t, w_save(&w, blobs, "H1", path, sizeof path));
    external_file(t, blobs, "H2", weights, sizeof weights);
    (void)snprintf(path, sizeof path, "%s/m.onnx", snapshot);
    (void)snprintf(other, sizeof other, "%s/m.onnx_data", snapshot);
    T_TRUE(t, symlink("../blobs/H1", path) == 0 || access(path, F_OK) == 0);
    T_TRUE(t, symlink("../blobs/H2", other) == 0 || access(other, F_OK) == 0);
    rondo_ir_graph *graph = NULL;
    T_FAILS(t, rondo_onnx_import(instance, path, NULL, &graph), CORRUPT, "is a link that leads to");
    rondo_onnx_options options = RONDO_ONNX_OPTIONS_INIT;
    options.external_root = root;
    T_OK(t, rondo_onnx_import(instance, path, &options, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    T_TRUE(t, rondo__ir_value_at(graph, rondo__ir_value_find(graph, "k"))->constant->bytes == 16);
    /* A root that is the beginning of the folder's name, not the folder. */
    (void)snprintf(other, sizeof other, "%s/blo", root);
    T_TRUE(t, mkdir(other, 0700) == 0 || access(other, F_OK) == 0);
    options.external_root = other;
    rondo_ir_graph *none = NULL;
    T_FAILS(t, rondo_onnx_import(instance, path, &options, &none), CORRUPT, "that external_root allows");
}

static void test_entries(rondo_test *t) {
    static const struct {
        const char *key, *value, *part;
    } wrong[] = {
        {"__class__", "x", "unknown key '__class__'"}, {"location", "w.bin", "gives 'location' twice"},
        {"offset", "-1", "offset '-1' is not"},        {"offset", "abc", "offset 'abc' is not"},
        {"offset", "1e9", "offset '1e9' is not"},      {"offset", "", "offset '' is not"},
        {"offset", " 1", "offset ' 1' is not"},        {"offset", "18446744073709551616", "is not an unsigned"},
        {"length", "+4", "length '+4' is not"},        {"offset", "9223372036854775808", "which has 16"},
        {"length", "0x10", "length '0x10' is not"},
    };
    importer in;
    importer_init(&in, t);
    const char *folder = rondo_test_folder(t);
    external_file(t, folder, "w.bin", weights, sizeof weights);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        static const int64_t four = 4;
        m_begin(&w, 21);
        m_tensor(&w, 5, "k", W_F32, 1, &four);
        w_int(&w, 14, 1);
        m_entry(&w, "location", "w.bin");
        m_entry(&w, wrong[i].key, wrong[i].value);
        m_end(&w);
        EXTERNAL_REFUSED(t, &in, folder, NULL, CORRUPT, wrong[i].part);
    }
    static const int64_t one = 1;
    m_begin(&w, 21);
    m_tensor(&w, 5, "k", W_F32, 1, &one);
    w_int(&w, 14, 1);
    w_bytes(&w, 9, "abcd", 4);
    m_entry(&w, "location", "w.bin");
    m_end(&w);
    EXTERNAL_REFUSED(t, &in, folder, NULL, CORRUPT, "data in two fields, raw_data and external_data");
    m_begin(&w, 21);
    m_tensor(&w, 5, "k", W_F32, 1, &one);
    m_entry(&w, "location", "w.bin");
    w_bytes(&w, 9, "abcd", 4);
    m_end(&w);
    EXTERNAL_REFUSED(t, &in, folder, NULL, CORRUPT, "data_location says that it is inside");
    m_begin(&w, 21);
    m_tensor(&w, 5, "k", W_F32, 1, &one);
    w_int(&w, 14, 1);
    m_end(&w);
    EXTERNAL_REFUSED(t, &in, folder, NULL, CORRUPT, "without a location");
}

/* Many tensors in one file: it is opened once, and each gets its own part. */
static void test_shared_file(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    const char *folder = rondo_test_folder(t);
    external_file(t, folder, "w.bin", weights, sizeof weights);
    external_file(t, folder, "v.bin", weights + 1, 12);
    m_begin(&w, 21);
    static const char *const names[] = {"a", "b", "c", "d"};
    static const char *const offsets[] = {"0", "4", "8", "0"};
    static const int64_t one = 1;
    for (int i = 0; i < 4; i++) {
        m_tensor(&w, 5, names[i], W_F32, 1, &one);
        w_int(&w, 14, 1);
        m_entry(&w, "location", i == 3 ? "v.bin" : "w.bin");
        m_entry(&w, "offset", offsets[i]);
        w_end(&w);
    }
    m_input(&w, "x");
    m_output(&w, "x");
    m_end(&w);
    rondo_ir_graph *graph = NULL;
    T_OK(t, external_import(t, &in, folder, NULL, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    static const float want[] = {0.5f, 1.5f, 2.5f, 1.5f};
    for (int i = 0; i < 4; i++)
        T_TRUE(t, *(const float *)rondo__ir_value_at(graph, rondo__ir_value_find(graph, names[i]))->constant->data ==
                      want[i]);
}

/* The short way through all of it, for the runs in which an allocation fails. */
static void test_in_short(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    external_file(t, rondo_test_folder(t), "w.bin", weights, sizeof weights);
    external_model("w.bin", "4", "8", 2);
    external_accepted(t, &in, rondo_test_folder(t), NULL, 1.5f);
    external_model("../secret", "4", "8", 2);
    EXTERNAL_REFUSED(t, &in, rondo_test_folder(t), NULL, CORRUPT, "leaves the model's folder");
}

RONDO_TEST_MAIN(T_PLAIN(test_where_it_lies), T_PLAIN(test_past_the_end), T_PLAIN(test_names_that_leave), T(test_links),
                T_PLAIN(test_entries), T(test_shared_file), T(test_in_short))
