/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugins: what is whole is registered, what is not is refused by the name of what is wrong, and nothing is left. */
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/device.h"
#include "harness/harness.h"

/* --------------------------------------------------------------------------------------- a plugin of the test's own */

typedef struct fake {
    rondo_plugin_api api;
    rondo_backend backends[2];
    rondo_catalogue catalogues[2];
    rondo_backend_table backend;
    rondo_catalogue_table catalogue;
    const rondo_host_api *host;
    uint32_t abi_given;
    int shutdowns;
    bool refuse, give_nothing;
} fake;

static fake the_fake;
static int shutdown_order;

static rondo_status fake_enumerate(void *self, uint32_t *out_count) {
    (void)self;
    *out_count = 3;
    return RONDO_OK;
}

static rondo_status fake_open(void *self, uint32_t index, const char *settings, const rondo_device_table **out_table,
                              void **out_device) {
    const fake *f = self;
    (void)index, (void)settings, (void)out_table, (void)out_device;
    return RONDO_PLUGIN_FAIL(f->host, UNAVAILABLE, DRIVER, "fake: no hardware");
}

static const char *fake_operator_at(void *self, uint32_t index) {
    (void)self;
    return index ? NULL : "Nothing";
}

static rondo_status fake_find(void *self, const rondo_kernel_request *request, rondo_kernel_facts *out_facts) {
    const fake *f = self;
    (void)request, (void)out_facts;
    return RONDO_PLUGIN_FAIL(f->host, UNSUPPORTED, KERNEL, "fake: nothing");
}

static rondo_status fake_prepare(void *self, const rondo_kernel_request *request, rondo_kernel *out_kernel) {
    (void)out_kernel;
    return fake_find(self, request, NULL);
}

static void fake_release(void *self, rondo_kernel kernel) { (void)self, (void)kernel; }

static void fake_shutdown(void *self) {
    fake *f = self;
    f->shutdowns = ++shutdown_order;
}

static rondo_status fake_entry(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api) {
    fake *f = &the_fake;
    f->host = host;
    f->abi_given = abi;
    if (f->refuse) return RONDO_PLUGIN_FAIL(host, UNSUPPORTED, LOADING, "it needs plugin ABI 2");
    if (!f->give_nothing) *out_api = &f->api;
    return RONDO_OK;
}

static void fake_reset(void) {
    fake *f = &the_fake;
    *f = (fake){0};
    f->backend = (rondo_backend_table){sizeof f->backend, RONDO_DEVICE_GRAPH_CAPABLE, "fake", "a fake", fake_enumerate,
                                       fake_open};
    f->catalogue = (rondo_catalogue_table){
        sizeof f->catalogue, RONDO_CATALOGUE_HOST, "fake_kernels", "fake_1", fake_operator_at, fake_find, NULL,
        fake_prepare,        fake_release};
    f->backends[0] = (rondo_backend){&f->backend, f};
    f->catalogues[0] = (rondo_catalogue){&f->catalogue, f};
    f->api = (rondo_plugin_api){sizeof f->api, RONDO_PLUGIN_ABI, "fake", "1",          1, 1,
                                f->backends,   f->catalogues,    f,      fake_shutdown};
}

/* ------------------------------------------------------------------------------------------------------- helpers */

typedef struct place {
    rondo__registry registry;
    rondo__log log;
    char lines[2048];
    size_t used;
} place;

static void place_line(void *user, rondo_log_level level, const char *text) {
    place *p = user;
    int n = snprintf(p->lines + p->used, sizeof p->lines - p->used, "%d %s\n", (int)level, text);
    if (n > 0 && (size_t)n < sizeof p->lines - p->used) p->used += (size_t)n;
}

static void place_close(place *p) { rondo__registry_deinit(&p->registry); }

static void place_open(rondo_test *t, place *p) {
    memset(p, 0, sizeof *p);
    p->log = (rondo__log){place_line, p, RONDO_LOG_DEBUG};
    fake_reset();
    T_OK(t, rondo__registry_init(&p->registry, rondo_test_allocator(t), &p->log));
    T_DEFER(t, place_close, p);
}

static rondo_status place_add(place *p) { return rondo__registry_add(&p->registry, "test.so", fake_entry, NULL); }

/* --------------------------------------------------------------------------------------------------------- tests */

static void test_a_whole_plugin_is_registered(rondo_test *t) {
    place p;
    rondo_catalogue catalogue;
    place_open(t, &p);
    T_OK(t, place_add(&p));
    T_EQ(t, the_fake.abi_given, RONDO_PLUGIN_ABI);
    const rondo__registry_entry *entry = rondo__registry_find(&p.registry, "fake");
    T_TRUE(t, entry && entry->backend.table == &the_fake.backend);
    T_TRUE(t, rondo__registry_find(&p.registry, "other") == NULL);
    T_OK(t, the_fake.host->find_catalogue(the_fake.host->host, "fake_kernels", &catalogue));
    T_TRUE(t, catalogue.self == &the_fake);
    T_FAILS(t, rondo__registry_catalogue(&p.registry, "other", &catalogue), NOT_FOUND, "'other'");
    T_FAILS(t, place_add(&p), ALREADY_EXISTS, "device type 'fake' is there already");
    T_TRUE(t, the_fake.shutdowns != 0); /* the second one was shut down; the first is still there */
    T_TRUE(t, rondo__registry_find(&p.registry, "fake") != NULL);
    the_fake.host->log(the_fake.host->host, RONDO_LOG_INFO, "hello");
    T_STR(t, p.lines, "2 hello\n");
}

static void test_a_second_name_takes_nothing(rondo_test *t) {
    place p;
    place_open(t, &p);
    T_OK(t, place_add(&p));
    /* Its type would be new, its catalogue is not: neither stays. */
    static rondo_backend_table fresh;
    fresh = the_fake.backend;
    fresh.name = "fresh";
    the_fake.backends[1] = (rondo_backend){&fresh, &the_fake};
    the_fake.api.backends = &the_fake.backends[1];
    T_FAILS(t, place_add(&p), ALREADY_EXISTS, "catalogue 'fake_kernels' is there already");
    T_TRUE(t, rondo__registry_find(&p.registry, "fresh") == NULL);
    the_fake.api.backends = the_fake.backends;
}

typedef struct defect {
    const char *text;
    size_t offset; /* in fake, of a pointer that becomes null */
} defect;

#define DEFECT(field, text) \
    { text, offsetof(fake, field) }

static void test_each_missing_entry_is_named(rondo_test *t) {
    static const defect defects[] = {
        DEFECT(api.name, "entry 'name' of its api"),
        DEFECT(api.version, "entry 'version' of its api"),
        DEFECT(api.backends, "list of backends is null"),
        DEFECT(api.catalogues, "list of catalogues is null"),
        DEFECT(backends[0].table, "it has no backend table"),
        DEFECT(catalogues[0].table, "it has no catalogue table"),
        DEFECT(backend.name, "entry 'name' of its backend table"),
        DEFECT(backend.description, "entry 'description' of its backend table"),
        DEFECT(backend.enumerate, "entry 'enumerate' of its backend table"),
        DEFECT(backend.open, "entry 'open' of its backend table"),
        DEFECT(catalogue.name, "entry 'name' of its catalogue table"),
        DEFECT(catalogue.kernel_set, "entry 'kernel_set' of its catalogue table"),
        DEFECT(catalogue.operator_at, "entry 'operator_at' of its catalogue table"),
        DEFECT(catalogue.find, "entry 'find' of its catalogue table"),
        DEFECT(catalogue.prepare, "entry 'prepare' of its catalogue table"),
        DEFECT(catalogue.release, "entry 'release' of its catalogue table"),
    };
    place p;
    place_open(t, &p);
    for (size_t i = 0; i < sizeof defects / sizeof defects[0]; i++) {
        const void *null = NULL;
        fake_reset();
        memcpy((char *)&the_fake + defects[i].offset, &null, sizeof null);
        T_FAILS(t, place_add(&p), CORRUPT, defects[i].text);
        T_TRUE(t, the_fake.shutdowns != 0);
        T_TRUE(t, rondo__registry_find(&p.registry, "fake") == NULL);
    }
    fake_reset();
    T_OK(t, place_add(&p));
}

static void test_sizes_names_and_abi(rondo_test *t) {
    place p;
    place_open(t, &p);
    the_fake.api.struct_size = 8;
    T_FAILS(t, place_add(&p), CORRUPT, "its api has a struct_size of 8 bytes");
    T_EQ(t, the_fake.shutdowns, 0); /* nobody knows whether there is one */
    fake_reset();
    the_fake.api.abi = 7;
    T_FAILS(t, place_add(&p), UNSUPPORTED, "made for plugin ABI 7, this library has 1");
    fake_reset();
    the_fake.backend.struct_size = 12;
    T_FAILS(t, place_add(&p), CORRUPT, "its backend table has a struct_size of 12 bytes");
    fake_reset();
    the_fake.catalogue.struct_size = 0;
    T_FAILS(t, place_add(&p), CORRUPT, "its catalogue table has a struct_size of 0 bytes");
    fake_reset();
    the_fake.backend.name = "Fake";
    T_FAILS(t, place_add(&p), CORRUPT, "device type name 'Fake' has characters other than");
    the_fake.backend.name = "";
    T_FAILS(t, place_add(&p), CORRUPT, "needs 1 to 63 characters");
    the_fake.backend.name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    T_FAILS(t, place_add(&p), CORRUPT, "needs 1 to 63 characters");
    fake_reset();
    the_fake.catalogue.name = "a:b";
    T_FAILS(t, place_add(&p), CORRUPT, "catalogue name 'a:b'");
    fake_reset();
    the_fake.api.backend_count = 100000;
    T_FAILS(t, place_add(&p), CORRUPT, "offers 100000 backends");
    fake_reset();
    the_fake.give_nothing = true;
    T_FAILS(t, place_add(&p), CORRUPT, "gave no api");
    fake_reset();
    the_fake.refuse = true;
    T_FAILS(t, place_add(&p), UNSUPPORTED, "needs plugin ABI 2");
    T_EQ(t, p.registry.plugins.count, 0);
}

static void test_ids_are_never_used_twice(rondo_test *t) {
    place p;
    place_open(t, &p);
    uint64_t a = rondo__registry_next_id(&p.registry), b = rondo__registry_next_id(&p.registry);
    T_TRUE(t, a != 0 && b > a);
}

/* --------------------------------------------------------------------------------------------------------- files */

static void write_file(rondo_test *t, char *path, size_t capacity, const char *name, const char *text) {
    (void)snprintf(path, capacity, "%s/%s", rondo_test_folder(t), name);
    FILE *file = fopen(path, "w");
    T_TRUE(t, file != NULL);
    (void)fputs(text, file);
    (void)fclose(file);
}

static void test_files_that_are_no_plugins(rondo_test *t) {
    place p;
    char path[256], list[600];
    place_open(t, &p);
    T_OK(t, rondo__registry_load_path(&p.registry, NULL));
    T_OK(t, rondo__registry_load_path(&p.registry, ""));
    T_FAILS(t, rondo__registry_load(&p.registry, ""), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo__registry_load(&p.registry, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo__registry_load(&p.registry, "/nowhere/x.so"), NOT_FOUND, "plugin '/nowhere/x.so': No such file");
    T_FAILS(t, rondo__registry_load(&p.registry, rondo_test_folder(t)), UNSUPPORTED, "it is not a file");
    write_file(t, path, sizeof path, "text.so", "this is no library\n");
    T_FAILS(t, rondo__registry_load(&p.registry, path), UNSUPPORTED, "text.so");
    /* On the path the same files are only told about, and a folder is looked into. */
    (void)snprintf(list, sizeof list, ":/nowhere/x.so::%s:%s:", rondo_test_folder(t), path);
    T_OK(t, rondo__registry_load_path(&p.registry, list));
    if (rondo_test_failing(t)) return; /* then a line may have lost its text */
    T_TRUE(t, strstr(p.lines, "1 left out of the plugin path: not found (loading): plugin '/nowhere/x.so'") != NULL);
    const char *first = strstr(p.lines, "text.so");
    T_TRUE(t, first != NULL && strstr(first + 1, "text.so") != NULL);
}

/* The first shared library of the process that lies in a file of its own. The program comes before all others: dlopen
 * refuses it, and with some sanitizers it is also where the C library's functions are found by name. */
static int library_next(struct dl_phdr_info *info, size_t size, void *user) {
    char *path = user;
    (void)size;
    if (!path[0]) {
        (void)snprintf(path, PATH_MAX, "the program");
        return 0;
    }
    if (info->dlpi_name[0] != '/') return 0;
    (void)snprintf(path, PATH_MAX, "%s", info->dlpi_name);
    return 1;
}

/* A real library without the symbol: the C library, or whatever else the test itself is linked to. */
static void test_a_library_without_the_entry(rondo_test *t) {
    place p;
    char path[PATH_MAX] = "";
    place_open(t, &p);
    if (!dl_iterate_phdr(library_next, path)) rondo_test_skip(t, "the test is linked to no shared library");
    T_FAILS(t, rondo__registry_load(&p.registry, path), UNSUPPORTED, "does not export 'rondo_plugin_entry'");
}

static const char plugin_source[] =
    "#include <rondo/plugin.h>\n"
    "static rondo_status count(void *s, uint32_t *n) { (void)s; *n = 0; return RONDO_OK; }\n"
    "static rondo_status open(void *s, uint32_t i, const char *o, const rondo_device_table **t, void **d) {\n"
    "    (void)s; (void)i; (void)o; (void)t; (void)d; return RONDO_OK; }\n"
    "static const rondo_backend_table table = {sizeof table, 0, \"loaded\", \"from a file\", count, open};\n"
    "static const rondo_backend backend = {&table, 0};\n"
    "static const rondo_plugin_api api = {sizeof api, RONDO_PLUGIN_ABI, \"loaded\", \"1\", 1, 0, &backend, 0, 0, 0};\n"
    "rondo_status rondo_plugin_entry(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out);\n"
    "rondo_status rondo_plugin_entry(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out) {\n"
    "    if (REFUSE) return RONDO_PLUGIN_FAIL(host, UNSUPPORTED, LOADING, \"made for another ABI than %u\", abi);\n"
    "    *out = &api;\n"
    "    return RONDO_OK;\n"
    "}\n";

/* Tests run from the repository, its build folder or a folder below; the headers are looked for upwards. */
static bool find_include(char *out, size_t capacity) {
    static const char *const up[] = {"include", "../include", "../../include", "../../../include"};
    char path[64];
    for (size_t i = 0; i < sizeof up / sizeof up[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/rondo/plugin.h", up[i]);
        if (access(path, R_OK) != 0) continue;
        (void)snprintf(out, capacity, "%s", up[i]);
        return true;
    }
    return false;
}

/* Two plugins, one that works and one that refuses, made with the compiler that made the test: ctest says which that is.
 * The machine's own need not be for the same processor. */
static void test_plugins_made_by_a_compiler(rondo_test *t) {
    place p;
    char source[256], command[2400], good[300], bad[300], include[64];
    const char *compiler = getenv("CC");
    if (!compiler || !*compiler) compiler = "cc";
    place_open(t, &p);
    write_file(t, source, sizeof source, "plugin.c", plugin_source);
    (void)snprintf(good, sizeof good, "%s/good.so", rondo_test_folder(t));
    (void)snprintf(bad, sizeof bad, "%s/bad.so", rondo_test_folder(t));
    if (!find_include(include, sizeof include)) rondo_test_skip(t, "the headers are not where the test looks");
    (void)snprintf(command, sizeof command,
                   "%.300s -shared -fPIC -I%s -DREFUSE=0 %s -o %s >/dev/null 2>&1 && "
                   "%.300s -shared -fPIC -I%s -DREFUSE=1 %s -o %s >/dev/null 2>&1",
                   compiler, include, source, good, compiler, include, source, bad);
    if (system(command) != 0) rondo_test_skip(t, "no C compiler named %s", compiler);
    rondo_status status = rondo__registry_load(&p.registry, bad);
    /* The plugin is gone from memory; what it said must not be. */
    T_FAILS(t, status, UNSUPPORTED, "made for another ABI than 1");
    T_OK(t, rondo__registry_load_path(&p.registry, rondo_test_folder(t)));
    T_TRUE(t, rondo__registry_find(&p.registry, "loaded") != NULL);
    T_FAILS(t, rondo__registry_load(&p.registry, good), ALREADY_EXISTS, "device type 'loaded'");
}

RONDO_TEST_MAIN(T(test_a_whole_plugin_is_registered), T(test_a_second_name_takes_nothing),
                T(test_each_missing_entry_is_named), T(test_sizes_names_and_abi), T(test_ids_are_never_used_twice),
                T(test_files_that_are_no_plugins), T_PLAIN(test_a_library_without_the_entry),
                T_PLAIN(test_plugins_made_by_a_compiler))
