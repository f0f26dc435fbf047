/* SPDX-License-Identifier: Apache-2.0
 *
 * docs/trees.md says what the code has: each reason with its sentence, and the defaults of the options. */
#include <rondo/tree.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/harness.h"

static char page[1u << 17];

static void read_page(rondo_test *t) {
    FILE *file = fopen("docs/trees.md", "r");
    if (!file) rondo_test_skip(t, "docs/trees.md is not here");
    size_t length = fread(page, 1, sizeof page - 1u, file);
    (void)fclose(file);
    page[length] = '\0';
}

/* In the words that tools/tree-reasons writes. */
static void test_reasons(rondo_test *t) {
    char line[256];
    unsigned rows = 0;
    read_page(t);
    const char *begin = strstr(page, "<!-- reasons: tools/tree-reasons writes this -->");
    const char *end = strstr(page, "<!-- end of reasons -->");
    T_TRUE(t, begin && end && begin < end);
    for (rondo_tree_reason i = RONDO_TREE_REASON_NONE + 1; i < RONDO_TREE_REASON_COUNT; i++) {
        (void)snprintf(line, sizeof line, "\n| `%s` | %d | %s |\n", rondo_tree_reason_name(i), (int)i,
                       rondo_tree_reason_text(i));
        const char *row = strstr(begin, line);
        if (!row || row > end) rondo_test_fail(t, __FILE__, __LINE__, "docs/trees.md lacks%s", line);
    }
    for (const char *at = strstr(begin, "\n| `"); at && at < end; at = strstr(at + 1, "\n| `")) rows++;
    T_EQ(t, rows, RONDO_TREE_REASON_COUNT - 1);
}

/* Rows are "| `name`, `name` | default, default | what it does |". */
static void check_default(rondo_test *t, const char *name, uint64_t value) {
    char key[64], row[512];
    (void)snprintf(key, sizeof key, "`%s`", name);
    for (const char *line = page; line; line = strchr(line + 1, '\n')) {
        (void)snprintf(row, sizeof row, "%.*s", (int)strcspn(line + 1, "\n"), line + 1);
        char *cell = strncmp(row, "| `", 3) ? NULL : strchr(row + 2, '|'), *found = strstr(row, key);
        if (!cell || !found || found > cell) continue;
        for (const char *at = row; at < found; at++)
            if (*at == ',') cell = strpbrk(cell + 1, ",|");
        if (!cell || strtoull(cell + 1, NULL, 10) != value)
            rondo_test_fail(t, __FILE__, __LINE__, "the default of %s is %llu, and docs/trees.md says: %s", name,
                            (unsigned long long)value, row);
        return;
    }
    rondo_test_fail(t, __FILE__, __LINE__, "docs/trees.md has no row for %s", name);
}

static void test_defaults(rondo_test *t) {
    const rondo_tree_options options = RONDO_TREE_OPTIONS_INIT;
    read_page(t);
    check_default(t, "record_after", options.record_after);
    check_default(t, "rerecord_limit", options.rerecord_limit);
    check_default(t, "size_limit", options.size_limit);
    check_default(t, "size_warning", options.size_warning);
    check_default(t, "recording_limit", options.recording_limit);
    check_default(t, "byte_limit", options.byte_limit);
    check_default(t, "loop_limit", options.loop_limit);
    check_default(t, "cost_samples", options.cost_samples);
    check_default(t, "seal_after", options.seal_after);
    check_default(t, "check_pool", options.check_pool);
    check_default(t, "strict", options.strict);
}

/* Members that a table of the page leaves out would be left out by who works along it. */
static void test_members(rondo_test *t) {
    static char header[1u << 17];
    char key[80];
    unsigned members = 0;
    FILE *file = fopen("include/rondo/tree.h", "r");
    read_page(t);
    if (!file) rondo_test_skip(t, "include/rondo/tree.h is not here");
    size_t length = fread(header, 1, sizeof header - 1u, file);
    (void)fclose(file);
    header[length] = '\0';
    const char *end = strstr(header, "} rondo_tensor_host;");
    T_TRUE(t, end != NULL);
    /* Function members look like "(*name)(". */
    for (const char *at = strstr(header, "(*"); at && at < end; at = strstr(at + 1, "(*")) {
        size_t size = strcspn(at + 2, ")");
        if (at[size + 2] != ')' || at[size + 3] != '(' || size > 60) continue;
        (void)snprintf(key, sizeof key, "`%.*s`", (int)size, at + 2);
        if (!strstr(page, key)) rondo_test_fail(t, __FILE__, __LINE__, "docs/trees.md does not name %s", key);
        members++;
    }
    T_TRUE(t, members > 45);
}

RONDO_TEST_MAIN(T_PLAIN(test_reasons), T_PLAIN(test_defaults), T_PLAIN(test_members))
