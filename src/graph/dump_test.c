/* SPDX-License-Identifier: Apache-2.0
 *
 * Dumps: parsed again where the form has a parser, and whole or not there at all. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <sys/stat.h>

#include "graph/graph_testing.h"

#if defined(__has_include)
#if __has_include(<cjson/cJSON.h>)
#include <cjson/cJSON.h>
#define DUMP_HAS_PARSER 1
#endif
#endif

static const char hostile[] = "Add \"1\"\n\\<b>\xff";

typedef struct dump_fixture {
    graph_fixture f;
    rondo_graph *graph;
    char path[600];
    char text[16384];
} dump_fixture;

static void dump_open(rondo_test *t, dump_fixture *d, const char *ending) {
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    gt_open(t, &d->f, "cpu");
    options.name = "pic\"ture";
    T_OK(t, rondo_graph_create(d->f.device, &options, &d->graph));
    T_DEFER(t, rondo_graph_release, d->graph);
    T_OK(t, rondo_graph_enable_debug_mode(d->graph));
    T_OK(t, rondo_graph_declare_slot(d->graph, 0, d->f.buffers[0], GT_BYTES, RONDO_ACCESS_READ, RONDO_SLOT_REBIND));
    T_OK(t, gt_begin(&d->f, d->graph));
    T_OK(t, gt_add_named(&d->f, d->f.stream, hostile, d->f.buffers[0], d->f.buffers[1], d->f.buffers[2]));
    T_OK(t, rondo_stream_copy(d->f.stream, d->f.buffers[3], d->f.buffers[2], 8, RONDO_COPY_DEVICE_TO_DEVICE));
    T_OK(t, rondo_stream_fill(d->f.stream, d->f.buffers[4], 9, 12));
    T_OK(t, rondo_graph_capture_end(d->graph, d->f.stream));
    (void)snprintf(d->path, sizeof d->path, "%s/graph%s", rondo_test_folder(t), ending);
}

static void dump_read(dump_fixture *d) {
    rondo_test *t = d->f.t;
    FILE *file = fopen(d->path, "rb");
    T_TRUE(t, file != NULL);
    size_t read = fread(d->text, 1, sizeof d->text - 1u, file);
    d->text[read] = '\0';
    (void)fclose(file);
    T_TRUE(t, read > 0);
}

/* Only the finished file is in the folder. */
static unsigned files_in(const char *folder) {
    unsigned count = 0;
    DIR *directory = opendir(folder);
    if (!directory) return 0;
    for (struct dirent *entry; (entry = readdir(directory));) count += entry->d_name[0] != '.';
    (void)closedir(directory);
    return count;
}

#if defined(DUMP_HAS_PARSER)
/* The parser is opened here rather than linked, so that no other test needs it. */
typedef struct dump_parser {
    void *library;
    cJSON *(*parse)(const char *text);
    void (*release)(cJSON *json);
    cJSON *(*member)(const cJSON *object, const char *name);
    cJSON *(*item)(const cJSON *array, int index);
    int (*size)(const cJSON *array);
    cJSON *json;
} dump_parser;

static void parser_close(dump_parser *p) {
    if (p->json) p->release(p->json);
    if (p->library) (void)dlclose(p->library);
}

static void parser_open(rondo_test *t, dump_parser *p) {
    *p = (dump_parser){.library = dlopen("libcjson.so.1", RTLD_NOW)};
    T_DEFER(t, parser_close, p);
    if (!p->library) rondo_test_skip(t, "libcjson.so.1 is not installed");
    *(void **)&p->parse = dlsym(p->library, "cJSON_Parse");
    *(void **)&p->release = dlsym(p->library, "cJSON_Delete");
    *(void **)&p->member = dlsym(p->library, "cJSON_GetObjectItemCaseSensitive");
    *(void **)&p->item = dlsym(p->library, "cJSON_GetArrayItem");
    *(void **)&p->size = dlsym(p->library, "cJSON_GetArraySize");
    T_TRUE(t, p->parse && p->release && p->member && p->item && p->size);
}

static void check_json_nodes(dump_fixture *d, const dump_parser *p) {
    rondo_test *t = d->f.t;
    char word[32];
    const cJSON *nodes = p->member(p->json, "nodes");
    T_EQ(t, p->size(nodes), 3);
    const cJSON *add = p->item(nodes, 0);
    T_STR(t, p->member(add, "kind")->valuestring, "kernel");
    T_TRUE(t, strncmp(p->member(add, "name")->valuestring, hostile, 12) == 0);
    const cJSON *arguments = p->member(add, "arguments");
    T_EQ(t, p->size(arguments), 4);
    const cJSON *in = p->item(arguments, 0), *out = p->item(arguments, 2);
    (void)snprintf(word, sizeof word, "0x%llx", (unsigned long long)gt_word(d->f.buffers[0]));
    T_STR(t, p->member(in, "word")->valuestring, word);
    T_EQ(t, p->member(in, "slot")->valuedouble, 0);
    T_STR(t, p->member(in, "access")->valuestring, "read");
    T_TRUE(t, p->member(out, "slot") == NULL);
    T_STR(t, p->member(out, "access")->valuestring, "write");
    T_EQ(t, p->member(out, "length")->valuedouble, GT_BYTES);
    T_STR(t, p->member(p->item(arguments, 3), "access")->valuestring, "value");
    T_STR(t, p->member(p->item(nodes, 1), "direction")->valuestring, "device_to_device");
    T_STR(t, p->member(p->item(nodes, 2), "kind")->valuestring, "fill");
}

static void test_json(rondo_test *t) {
    dump_fixture d;
    dump_parser p;
    parser_open(t, &p);
    dump_open(t, &d, ".json");
    T_OK(t, rondo_graph_debug_dump(d.graph, d.path));
    dump_read(&d);
    p.json = p.parse(d.text);
    T_TRUE(t, p.json != NULL);
    T_STR(t, p.member(p.json, "graph")->valuestring, "pic\"ture");
    T_STR(t, p.member(p.json, "state")->valuestring, "ready");
    T_STR(t, p.member(p.json, "device")->valuestring, "cpu:0");
    check_json_nodes(&d, &p);
    T_EQ(t, p.size(p.member(p.json, "edges")), 2);
    const cJSON *slots = p.member(p.json, "slots");
    T_EQ(t, p.size(slots), 1);
    T_STR(t, p.member(p.item(slots, 0), "policy")->valuestring, "rebind");
    T_EQ(t, files_in(rondo_test_folder(t)), 1);
}
#else
static void test_json(rondo_test *t) { rondo_test_skip(t, "built without cJSON's header"); }
#endif

/* The json form under failing allocations: written or not, never half. */
static void test_json_is_written_whole(rondo_test *t) {
    dump_fixture d;
    dump_open(t, &d, ".json");
    rondo_status status = rondo_graph_debug_dump(d.graph, d.path);
    bool failed = status != RONDO_OK;
    unsigned files = files_in(rondo_test_folder(t));
    T_OK(t, status);
    T_EQ(t, files, failed ? 0 : 1);
    dump_read(&d);
    T_STR(t, d.text + strlen(d.text) - 3, "]}\n");
}

static void test_dot(rondo_test *t) {
    dump_fixture d;
    dump_open(t, &d, ".dot");
    T_OK(t, rondo_graph_debug_dump(d.graph, d.path));
    dump_read(&d);
    T_TRUE(t, strncmp(d.text, "digraph \"pic\\\"ture\" {\n", 22) == 0);
    T_TRUE(t, strstr(d.text, "n0 -> n1;") && strstr(d.text, "n1 -> n2;"));
    T_TRUE(t, strstr(d.text, "n0 [label=\"0 kernel Add \\\"1\\\"") != NULL);
    T_STR(t, d.text + strlen(d.text) - 2, "}\n");
    T_EQ(t, files_in(rondo_test_folder(t)), 1);
}

static void test_text(rondo_test *t) {
    dump_fixture d;
    dump_open(t, &d, ".txt");
    T_OK(t, rondo_graph_debug_dump(d.graph, d.path));
    dump_read(&d);
    T_TRUE(t, strstr(d.text, "ready, 3 nodes, 1 slots") != NULL);
    T_TRUE(t, strstr(d.text, "slot 0: rebind, read, declared 0x") != NULL);
    T_TRUE(t, strstr(d.text, "     2  fill") != NULL);
}

static void test_refusals(rondo_test *t) {
    dump_fixture d;
    rondo_graph *plain = NULL;
    dump_open(t, &d, ".png");
    T_FAILS(t, rondo_graph_debug_dump(d.graph, d.path), INVALID_ARGUMENT, ".dot, .json, .txt");
    T_FAILS(t, rondo_graph_debug_dump(d.graph, ".json"), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_debug_dump(d.graph, "/nowhere/at/all.json"), IO, "/nowhere/at/all.json");
    T_EQ(t, files_in(rondo_test_folder(t)), 0);
    /* A place that cannot be replaced: nothing else stays behind. */
    (void)snprintf(d.path, sizeof d.path, "%s/folder.json", rondo_test_folder(t));
    T_EQ(t, mkdir(d.path, 0700), 0);
    T_FAILS(t, rondo_graph_debug_dump(d.graph, d.path), IO, "folder.json");
    T_EQ(t, files_in(rondo_test_folder(t)), 1);
    T_OK(t, rondo_graph_create(d.f.device, NULL, &plain));
    T_DEFER(t, rondo_graph_release, plain);
    T_OK(t, gt_begin(&d.f, plain));
    T_OK(t, gt_add(&d.f, d.f.buffers[0], d.f.buffers[1], d.f.buffers[2]));
    T_OK(t, rondo_graph_capture_end(plain, d.f.stream));
    T_FAILS(t, rondo_graph_debug_dump(plain, "x.json"), INVALID_STATE, "rondo_graph_enable_debug_mode");
}

RONDO_TEST_MAIN(T_PLAIN(test_json), T(test_json_is_written_whole), T(test_dot), T(test_text), T(test_refusals))
