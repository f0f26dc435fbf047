/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared libraries of operators, made by the compiler that made the test: what is whole is registered, what is not is
 * refused by the name of what is wrong, and a library of another ABI before any of its code runs. */
#include <rondo/compiler.h>
#include <rondo/operator.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/instance.h"
#include "harness/harness.h"
#include "ops/operators.h"

/* MAJOR and MINOR are the version that it says it has; its constructor leaves a trace in the environment. */
static const char library_source[] =
    "#include <stdlib.h>\n"
    "#include <rondo/operator.h>\n"
    "__attribute__((constructor)) static void constructor(void) { setenv(\"RONDO_TEST_TRACE\", \"ran\", 1); }\n"
    "static rondo_status meta(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,\n"
    "                         rondo_operator_result *results) {\n"
    "    (void)user;\n"
    "    if (request->inputs[0].rank) return RONDO_OPERATOR_FAIL(api, INVALID_ARGUMENT, META, \"not a number\");\n"
    "    results[0].dtype = request->inputs[0].dtype;\n"
    "    results[0].rank = 0;\n"
    "    return 0;\n"
    "}\n"
    "static rondo_status execute(const rondo_operator_api *api, void *user, rondo_operator_context *context) {\n"
    "    void *out = 0;\n"
    "    rondo_status status = api->output(context, 0, 0, 0, RONDO_FORMAT_ND, RONDO_DTYPE_F32, &out);\n"
    "    (void)user;\n"
    "    if (!status) *(float *)out = 2 * *(const float *)api->input(context, 0, RONDO_DTYPE_F32);\n"
    "    return status;\n"
    "}\n"
    "static const rondo_operator_operand x = {\"x\", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 0, {0}};\n"
    "static const rondo_operator_implementation code = {.struct_size = sizeof code, .execute = execute};\n"
    "static const rondo_operator twice = {.struct_size = sizeof twice, .name = \"Twice\", .domain = \"lib\",\n"
    "    .input_count = 1, .output_count = 1, .inputs = &x, .outputs = &x, .meta = meta, .implementation = &code};\n"
    "static const rondo_operator second = {.struct_size = sizeof second, .name = SECOND, .domain = \"lib\",\n"
    "    .input_count = 1, .output_count = 1, .inputs = &x, .outputs = &x, .meta = meta, .implementation = &code};\n"
    "static const rondo_operator *const all[] = {&twice, &second};\n"
    "#ifdef MAJOR\n"
    "#undef RONDO_OPERATOR_ABI_MAJOR\n"
    "#define RONDO_OPERATOR_ABI_MAJOR MAJOR\n"
    "#undef RONDO_OPERATOR_ABI_MINOR\n"
    "#define RONDO_OPERATOR_ABI_MINOR MINOR\n"
    "#endif\n"
    "#ifndef EMPTY\n"
    "RONDO_OPERATOR_LIBRARY(all)\n"
    "#endif\n";

typedef struct shelf {
    rondo_test *t;
    rondo_instance *instance;
    char source[256], path[256], warning[1024];
} shelf;

static void shelf_log(void *user, rondo_log_level level, const char *text) {
    shelf *s = user;
    if (level == RONDO_LOG_WARNING) (void)snprintf(s->warning, sizeof s->warning, "%s", text);
}

static void shelf_close(shelf *s) {
    rondo_instance_release(s->instance);
    s->instance = NULL;
    (void)unsetenv("RONDO_OPERATOR_PATH");
    (void)unsetenv("RONDO_TEST_TRACE");
}

static rondo_status shelf_instance(shelf *s) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    options.allocator = rondo_test_allocator(s->t);
    options.log = shelf_log;
    options.log_user = s;
    rondo_instance_release(s->instance);
    s->instance = NULL;
    s->warning[0] = 0;
    return rondo_instance_create(&options, &s->instance);
}

static void shelf_open(shelf *s, rondo_test *t) {
    *s = (shelf){.t = t};
    T_DEFER(t, shelf_close, s);
    (void)snprintf(s->source, sizeof s->source, "%s/library.c", rondo_test_folder(t));
    FILE *file = fopen(s->source, "wb");
    T_TRUE(t, file != NULL);
    size_t written = fwrite(library_source, 1, sizeof library_source - 1u, file);
    T_TRUE(t, fclose(file) == 0 && written == sizeof library_source - 1u);
    T_OK(t, shelf_instance(s));
}

/* A library of that name in the test's folder; the last is in s->path. */
static void shelf_make(shelf *s, const char *name, const char *options) {
    char command[1400];
    const char *compiler = getenv("CC");
    if (!compiler || !*compiler) compiler = "cc";
    (void)snprintf(s->path, sizeof s->path, "%s/%s", rondo_test_folder(s->t), name);
    if (access("include/rondo/operator.h", R_OK) != 0)
        rondo_test_skip(s->t, "the headers are not where the test looks");
    (void)snprintf(command, sizeof command,
                   "%.300s -shared -fPIC -fvisibility=hidden -Iinclude %s %s -o %s >/dev/null 2>&1", compiler, options,
                   s->source, s->path);
    if (system(command) != 0) rondo_test_skip(s->t, "no C compiler named %s", compiler);
}

static bool shelf_has(const shelf *s, const char *name) {
    rondo__shared *shared = rondo__instance_base_of(s->instance)->operators;
    return rondo__operators_find((rondo__operators *)(void *)shared, name) != NULL;
}

static void loaded_operators_run(rondo_test *t) {
    shelf s;
    rondo_ir_graph *graph = NULL;
    rondo_device *device = NULL;
    rondo_session *session = NULL;
    rondo_ir_value x, y;
    float in = 21, out = 0;
    shelf_open(&s, t);
    shelf_make(&s, "good.so", "-DSECOND='\"Second\"'");
    T_OK(t, rondo_operator_load(s.instance, s.path));
    T_TRUE(t, shelf_has(&s, "lib::Twice") && shelf_has(&s, "lib::Second"));
    T_OK(t, rondo_ir_graph_create(s.instance, "graph", &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    T_OK(t, rondo_device_open(s.instance, "cpu", NULL, &device));
    T_DEFER(t, rondo_device_release, device);
    T_OK(t, rondo_session_create(device, NULL, &session));
    T_DEFER(t, rondo_session_release, session);
    T_OK(t, rondo_ir_graph_add_input(graph, "x", RONDO_DTYPE_F32, 0, NULL, NULL, &x));
    T_OK(t, rondo_ir_graph_add_node(graph, "lib::Twice", "n", &x, 1, NULL, 0, &y, 1));
    T_OK(t, rondo_ir_graph_add_output(graph, y, "y"));
    T_OK(t, rondo_session_add_graph(session, 1, graph));
    rondo_tensor_view view = {.data = &in, .device_type = 1, .dtype = RONDO_DTYPE_F32}, result = view;
    result.data = &out;
    T_OK(t, rondo_session_run(session, 1, &view, 1, &result, 1));
    T_TRUE(t, out == 42);
    rondo_instance_release(s.instance); /* the device keeps it, and the graph keeps the library */
    s.instance = NULL;
}

static void another_abi_runs_no_code(rondo_test *t) {
    static const struct {
        const char *options, *part;
    } cases[] = {
        {"-DSECOND='\"S\"' -DMAJOR=2u -DMINOR=0u", "made for the operator ABI 2.0, this is 1.2; none of its code"},
        {"-DSECOND='\"S\"' -DMAJOR=1u -DMINOR=3u", "made for the operator ABI 1.3"},
        {"-DSECOND='\"S\"' -DMAJOR=0u -DMINOR=9u", "made for the operator ABI 0.9"},
        {"-DSECOND='\"S\"' -DEMPTY", "does not export 'rondo_operator_abi'"}};
    shelf s;
    shelf_open(&s, t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shelf_make(&s, "other.so", cases[i].options);
        T_FAILS(t, rondo_operator_load(s.instance, s.path), UNSUPPORTED, cases[i].part);
        T_TRUE(t, getenv("RONDO_TEST_TRACE") == NULL);
    }
    shelf_make(&s, "good.so", "-DSECOND='\"Second\"'"); /* the trace is one */
    T_OK(t, rondo_operator_load(s.instance, s.path));
    T_TRUE(t, getenv("RONDO_TEST_TRACE") != NULL);
}

static void all_or_none(rondo_test *t) {
    shelf s;
    shelf_open(&s, t);
    shelf_make(&s, "bad.so", "-DSECOND='\"not a name\"'");
    T_FAILS(t, rondo_operator_load(s.instance, s.path), INVALID_ARGUMENT, "its name must be of letters");
    T_TRUE(t, !shelf_has(&s, "lib::Twice"));
    shelf_make(&s, "good.so", "-DSECOND='\"Second\"'");
    T_OK(t, rondo_operator_load(s.instance, s.path));
    T_FAILS(t, rondo_operator_load(s.instance, s.path), ALREADY_EXISTS, "operator 'lib::Twice' is registered already");
    T_TRUE(t, shelf_has(&s, "lib::Twice"));
}

static void the_path_is_searched(rondo_test *t) {
    shelf s;
    shelf_open(&s, t);
    shelf_make(&s, "a-newer.so", "-DSECOND='\"S\"' -DMAJOR=2u -DMINOR=0u");
    shelf_make(&s, "good.so", "-DSECOND='\"Second\"'");
    T_EQ(t, setenv("RONDO_OPERATOR_PATH", rondo_test_folder(t), 1), 0);
    T_OK(t, shelf_instance(&s));
    T_TRUE(t, shelf_has(&s, "lib::Twice"));
    T_TRUE(t, strstr(s.warning, "left out of the operator path: unsupported (loading): operator library '") != NULL);
    T_TRUE(t, strstr(s.warning, "a-newer.so': it is made for the operator ABI 2.0") != NULL);
}

static void files_that_are_no_libraries(rondo_test *t) {
    shelf s;
    shelf_open(&s, t);
    T_FAILS(t, rondo_operator_load(s.instance, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_operator_load(NULL, "a"), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_operator_load(s.instance, "/nowhere/x.so"), NOT_FOUND, "operator library '/nowhere/x.so'");
    T_FAILS(t, rondo_operator_load(s.instance, rondo_test_folder(t)), UNSUPPORTED, "it is not a file");
    T_FAILS(t, rondo_operator_load(s.instance, s.source), UNSUPPORTED, "no shared library for this machine");
}

/* The reader of files meets every cut, and wrong bytes everywhere. It must say something, and read nothing outside. */
static void broken_files_are_read_safely(rondo_test *t) {
    shelf s;
    char broken[256];
    static unsigned char bytes[1 << 20];
    rondo_operator_abi_version abi;
    shelf_open(&s, t);
    shelf_make(&s, "good.so", "-DSECOND='\"Second\"' -s");
    FILE *file = fopen(s.path, "rb");
    T_TRUE(t, file != NULL);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    T_TRUE(t, fclose(file) == 0 && size > 4096 && size < sizeof bytes);
    T_OK(t, rondo__elf_read(s.path, RONDO_OPERATOR_ABI_SYMBOL, &abi, sizeof abi));
    T_TRUE(t, abi.major == RONDO_OPERATOR_ABI_MAJOR && abi.minor == RONDO_OPERATOR_ABI_MINOR);
    (void)snprintf(broken, sizeof broken, "%s/broken", rondo_test_folder(t));
    for (int i = 0; i < 600; i++) {
        uint64_t random = rondo_test_random(t);
        size_t at = i % 3 ? (size_t)(random % size) : (size_t)(random % 512), kept = i % 2 ? size : at;
        unsigned char before = bytes[at];
        bytes[at] = i % 5 ? (unsigned char)(random >> 40) : 0xff;
        file = fopen(broken, "wb");
        T_TRUE(t, file != NULL);
        size_t written = fwrite(bytes, 1, kept, file);
        T_TRUE(t, fclose(file) == 0 && written == kept);
        bytes[at] = before;
        rondo_status status = rondo__elf_read(broken, RONDO_OPERATOR_ABI_SYMBOL, &abi, sizeof abi);
        rondo_code code = rondo_status_code(status);
        rondo_status_release(status);
        T_TRUE(t, code == RONDO_CODE_OK || code == RONDO_CODE_CORRUPT || code == RONDO_CODE_NOT_FOUND);
        if (kept < 64) T_EQ(t, code, RONDO_CODE_CORRUPT);
    }
}

RONDO_TEST_MAIN(T_PLAIN(loaded_operators_run), T_PLAIN(another_abi_runs_no_code), T_PLAIN(all_or_none),
                T_PLAIN(the_path_is_searched), T(files_that_are_no_libraries), T_PLAIN(broken_files_are_read_safely))
