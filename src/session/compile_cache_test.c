/* SPDX-License-Identifier: Apache-2.0
 *
 * The compile cache: what is one entry and what is another, entries that are damaged, the limit, several processes. */
#include <dirent.h>
#include <fcntl.h>
#include <rondo/cache.h>
#include <rondo/file.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "artifact/artifact.h"
#include "session/session_testing.h"

typedef struct cache_fixture {
    sum_fixture f;
    rondo_plan *plan;
    char folder[512];
    rondo_dim_binding dim;
    rondo_compile_options options;
    rondo_cache_options limits;
    rondo_cache_report report;
} cache_fixture;

static void ct_close(cache_fixture *c) {
    rondo_plan_release(c->plan);
    sum_close(&c->f);
}

static void ct_open(rondo_test *t, cache_fixture *c) {
    memset(c, 0, sizeof *c);
    c->f.t = t;
    T_DEFER(t, ct_close, c);
    sum_open(t, &c->f, "cpu", NULL);
    static unsigned runs;
    (void)snprintf(c->folder, sizeof c->folder, "%s/cache%u", rondo_test_folder(t), runs++);
    c->dim = (rondo_dim_binding){NULL, "n", 4, 0, 0};
    c->options = (rondo_compile_options)RONDO_COMPILE_OPTIONS_INIT;
    c->options.dims = &c->dim;
    c->options.dim_count = 1;
    c->limits = (rondo_cache_options)RONDO_CACHE_OPTIONS_INIT;
}

static rondo_cache_outcome ct_compile(cache_fixture *c) {
    rondo_plan_release(c->plan);
    c->plan = NULL;
    c->report = (rondo_cache_report)RONDO_CACHE_REPORT_INIT;
    T_OK(c->f.t,
         rondo_compile_cached(c->f.instance, c->f.graph, &c->options, c->folder, &c->limits, &c->plan, &c->report));
    T_EQ(c->f.t, c->plan->inputs[0].dims[0], c->dim.size);
    return c->report.outcome;
}

static void ct_path(const cache_fixture *c, char *path, size_t size) {
    (void)snprintf(path, size, "%s/%016llx%016llx.rondo", c->folder, (unsigned long long)c->report.key[0],
                   (unsigned long long)c->report.key[1]);
}

static unsigned ct_entries(const cache_fixture *c) {
    unsigned count = 0;
    const struct dirent *at;
    DIR *folder = opendir(c->folder);
    while (folder && (at = readdir(folder)) != NULL) count += at->d_name[0] != '.';
    if (folder) (void)closedir(folder);
    return count;
}

static int32_t ct_append(void *user, const char *data, size_t size) {
    char *text = user;
    size_t used = strlen(text);
    if (used + size < 8192) memcpy(text + used, data, size);
    return 0;
}

static void a_hit_is_what_was_made(rondo_test *t) {
    cache_fixture c;
    char made[8192] = {0}, hit[8192] = {0};
    ct_open(t, &c);
    T_EQ(t, ct_compile(&c), RONDO_CACHE_MISS);
    T_TRUE(t, c.plan->file == NULL);
    T_OK(t, rondo_plan_dump(c.plan, RONDO_DUMP_TEXT, ct_append, made));
    for (int i = 0; i < 2; i++) {
        T_EQ(t, ct_compile(&c), RONDO_CACHE_HIT);
        T_TRUE(t, c.plan->file != NULL);
    }
    T_OK(t, rondo_plan_dump(c.plan, RONDO_DUMP_TEXT, ct_append, hit));
    T_TRUE(t, strlen(made) > 100);
    T_STR(t, hit, made);
    T_EQ(t, ct_entries(&c), 1);
    T_FAILS(t, rondo_compile_cached(c.f.instance, c.f.graph, NULL, "", NULL, &c.plan, NULL), INVALID_ARGUMENT, NULL);
}

/* Each change makes another entry, and the way back finds the first. */
static void what_is_another_entry(rondo_test *t) {
    cache_fixture c;
    rondo_ir_value x, more;
    const int64_t one = 1, number = 5, other = 6;
    rondo_tensor_view value = {
        .data = (void *)(uintptr_t)&number, .device_type = 1, .rank = 1, .dtype = RONDO_DTYPE_I64, .shape = &one};
    const rondo_value_binding binding = {"w", &value};
    ct_open(t, &c);
    const rondo_compile_options plain = c.options;
    for (unsigned change = 0, entries = 0; change < 10; change++) {
        c.options = plain;
        c.dim.size = 4;
        if (change == 1) c.dim.size = 5;
        if (change == 2) c.options.level = RONDO_COMPILE_O0;
        if (change == 3) c.options.flags = RONDO_COMPILE_NO_REUSE;
        if (change == 4) c.options.catalogues = "ref";
        if (change == 5) c.options.without = "dead";
        if (change == 6) c.options.passes = "dead";
        if (change == 9) c.options.lanes = 2;
        if (change >= 7) {
            c.options.values = &binding;
            c.options.value_count = 1;
        }
        if (change == 7) {
            T_OK(t, rondo_ir_graph_add_input(c.f.graph, "w", RONDO_DTYPE_I64, 1, &one, NULL, &x));
            T_OK(t, rondo_ir_graph_add_node(c.f.graph, "Neg", NULL, &x, 1, NULL, 0, &more, 1));
            T_OK(t, rondo_ir_graph_add_output(c.f.graph, more, "more"));
        }
        if (change == 8) value.data = (void *)(uintptr_t)&other;
        T_EQ(t, ct_compile(&c), RONDO_CACHE_MISS);
        T_EQ(t, ct_entries(&c), ++entries);
        T_EQ(t, ct_compile(&c), RONDO_CACHE_HIT);
    }
    c.options = plain;
    T_EQ(t, ct_compile(&c), RONDO_CACHE_MISS); /* the longer graph without a value */
}

static void ct_read(const char *path, uint8_t **out_data, size_t *out_size) {
    FILE *file = fopen(path, "rb");
    *out_size = file ? fread(*out_data, 1, 65536, file) : 0;
    if (file) (void)fclose(file);
}

static void ct_write(const char *path, const uint8_t *data, size_t size) {
    FILE *file = fopen(path, "wb");
    if (file) (void)fwrite(data, 1, size, file);
    if (file) (void)fclose(file);
}

static void damaged_entries_are_made_again(rondo_test *t) {
    cache_fixture c;
    char path[600], second[600];
    static uint8_t buffer[65536];
    uint8_t *data = buffer;
    size_t size = 0;
    ct_open(t, &c);
    T_EQ(t, ct_compile(&c), RONDO_CACHE_MISS);
    ct_path(&c, path, sizeof path);
    ct_read(path, &data, &size);
    T_TRUE(t, size > 64 && size < sizeof buffer);
    for (size_t at = 0; at < size; at += size / 37 + 1) {
        data[at] ^= 0x40;
        ct_write(path, data, size);
        data[at] ^= 0x40;
        T_EQ(t, ct_compile(&c), RONDO_CACHE_REMADE);
        T_TRUE(t, c.report.reason[0] != 0);
        T_EQ(t, ct_compile(&c), RONDO_CACHE_HIT);
    }
    ct_write(path, data, size / 2);
    T_EQ(t, ct_compile(&c), RONDO_CACHE_REMADE);
    ct_write(path, data, 0);
    T_EQ(t, ct_compile(&c), RONDO_CACHE_REMADE);
    /* A whole file under the name of another. */
    c.dim.size = 8;
    T_EQ(t, ct_compile(&c), RONDO_CACHE_MISS);
    ct_path(&c, second, sizeof second);
    T_EQ(t, rename(path, second), 0);
    T_EQ(t, ct_compile(&c), RONDO_CACHE_REMADE);
    T_TRUE(t, strstr(c.report.reason, "another's") != NULL);
    T_EQ(t, ct_compile(&c), RONDO_CACHE_HIT);
}

static void ct_age(const cache_fixture *c, time_t seconds) {
    char path[600];
    struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ct_path(c, path, sizeof path);
    (void)utimensat(AT_FDCWD, path, times, 0);
}

static void the_oldest_goes(rondo_test *t) {
    cache_fixture c;
    char path[600];
    struct stat facts;
    ct_open(t, &c);
    for (int i = 0; i < 3; i++) {
        c.dim.size = 4 + i;
        T_EQ(t, ct_compile(&c), RONDO_CACHE_MISS);
        ct_age(&c, 1000 + i);
    }
    ct_path(&c, path, sizeof path);
    T_EQ(t, stat(path, &facts), 0);
    c.dim.size = 4;
    T_EQ(t, ct_compile(&c), RONDO_CACHE_HIT); /* used again: 5 is the oldest now */
    c.limits.bytes_max = (uint64_t)facts.st_size * 3 + (uint64_t)facts.st_size / 2;
    c.dim.size = 7;
    T_EQ(t, ct_compile(&c), RONDO_CACHE_MISS);
    T_EQ(t, ct_entries(&c), 3);
    const rondo_cache_outcome after[] = {RONDO_CACHE_HIT, RONDO_CACHE_MISS};
    for (int i = 0; i < 2; i++) {
        c.dim.size = 4 + i;
        T_EQ(t, ct_compile(&c), after[i]);
    }
}

static void no_folder_is_no_failure(rondo_test *t) {
    cache_fixture c;
    ct_open(t, &c);
    (void)snprintf(c.folder, sizeof c.folder, "/nowhere/at/all");
    T_EQ(t, ct_compile(&c), RONDO_CACHE_NOT_STORED);
    T_TRUE(t, strstr(c.report.reason, "/nowhere/at/all") != NULL);
}

/* Children that all want the same few entries, with a limit that lets few of them stay. */
static void several_processes(rondo_test *t) {
    enum { CHILDREN = 4 };
    cache_fixture c;
    pid_t children[CHILDREN];
    ct_open(t, &c);
    c.limits.bytes_max = 6000;
    for (int k = 0; k < CHILDREN; k++) {
        children[k] = fork();
        T_TRUE(t, children[k] >= 0);
        if (children[k]) continue;
        int wrong = 0;
        for (int i = 0; i < 40; i++) {
            rondo_plan *plan = NULL;
            c.dim.size = 4 + (i + k) % 3;
            c.report = (rondo_cache_report)RONDO_CACHE_REPORT_INIT;
            rondo_status status =
                rondo_compile_cached(c.f.instance, c.f.graph, &c.options, c.folder, &c.limits, &plan, &c.report);
            wrong += status || plan->inputs[0].dims[0] != c.dim.size || c.report.outcome == RONDO_CACHE_REMADE ||
                     c.report.outcome == RONDO_CACHE_NOT_STORED;
            rondo_status_release(status);
            rondo_plan_release(plan);
        }
        _exit(wrong);
    }
    for (int k = 0; k < CHILDREN; k++) {
        int result = 0;
        T_EQ(t, waitpid(children[k], &result, 0), children[k]);
        T_EQ(t, result, 0);
    }
    T_TRUE(t, ct_entries(&c) <= 3);
}

RONDO_TEST_MAIN(T(a_hit_is_what_was_made), T_PLAIN(what_is_another_entry), T_PLAIN(damaged_entries_are_made_again),
                T_PLAIN(the_oldest_goes), T_PLAIN(no_folder_is_no_failure), T_PLAIN(several_processes))
