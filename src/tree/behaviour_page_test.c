/* SPDX-License-Identifier: Apache-2.0
 *
 * docs/trees-tests.md and docs/cases.md name tests: each is where the page says. */
#include <stdio.h>
#include <stdlib.h>

#include "harness/harness.h"

#define NAMES 16
#define FILE_MAX ((size_t)1 << 20)

/* Below the repository, where tests run; null: there is no such file. The caller's to free. */
static char *read_file(rondo_test *t, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *text = malloc(FILE_MAX);
    T_TRUE(t, text != NULL);
    size_t size = fread(text, 1, FILE_MAX - 1, file);
    (void)fclose(file);
    T_TRUE(t, size < FILE_MAX - 1);
    text[size] = '\0';
    return text;
}

/* "path" of the page of trees' tests is src/tree/behaviour_path_test.c; "graph/fork" is src/graph/fork_test.c, and
 * "simulators/acl/group" and "backends/ascend/ascend" stand for themselves. */
static char *read_tests(rondo_test *t, const char *room, int length) {
    static const char *const forms[] = {"src/tree/behaviour_%.*s_test.c", "src/tree/%.*s_test.c", "src/%.*s_test.c",
                                        "%.*s_test.c"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char path[256];
        (void)snprintf(path, sizeof path, forms[i], length, room); /* NOLINT: the forms are above */
        char *text = read_file(t, path);
        if (text) return text;
    }
    return NULL;
}

/* Whether one of the rooms, "graph/property, exec/property", has the test. */
static bool has_test(rondo_test *t, const char *rooms, int length, const char *name) {
    char wanted[128];
    bool found = false;
    (void)snprintf(wanted, sizeof wanted, "static void %s(", name);
    for (int at = 0; at < length;) {
        int size = (int)strcspn(rooms + at, ",)");
        char *text = read_tests(t, rooms + at, size);
        if (!text) rondo_test_fail(t, __FILE__, __LINE__, "there are no tests in %.*s", size, rooms + at);
        found = found || (text && strstr(text, wanted));
        free(text);
        at += size + 2; /* ", " */
    }
    return found;
}

/* Names in backquotes, then the room of all of them in brackets. */
static unsigned check_page(rondo_test *t, const char *path) {
    char names[NAMES][96];
    unsigned waiting = 0, checked = 0;
    char *page = read_file(t, path);
    if (!page) rondo_test_fail(t, __FILE__, __LINE__, "%s is not there", path);
    /* What follows is held to the tests in Python by one of them. */
    char *others = page ? strstr(page, "\n## Through torch.compile") : NULL;
    if (others) *others = 0;
    for (const char *at = page; at && *at; at++) {
        if (!strncmp(at, "`test_", 6) && at[6] != '`' && strcspn(at + 1, "`\n") < sizeof names[0]) {
            int length = (int)strcspn(at + 1, "`\n");
            T_TRUE(t, waiting < NAMES);
            (void)snprintf(names[waiting++], sizeof names[0], "%.*s", length, at + 1);
            at += length + 1;
        } else if (*at == '(' && waiting) {
            int length = (int)strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_/, ");
            if (at[1 + length] != ')' || !length) continue;
            for (unsigned i = 0; i < waiting; i++)
                if (!has_test(t, at + 1, length, names[i]))
                    rondo_test_fail(t, __FILE__, __LINE__, "%s: %.*s has no %s", path, length, at + 1, names[i]);
            checked += waiting;
            waiting = 0;
        }
    }
    T_EQ(t, waiting, 0);
    free(page);
    return checked;
}

static void test_tests_of_trees(rondo_test *t) { T_TRUE(t, check_page(t, "docs/trees-tests.md") >= 100); }
static void test_tests_of_cases(rondo_test *t) { T_TRUE(t, check_page(t, "docs/cases.md") >= 50); }

RONDO_TEST_MAIN(T_PLAIN(test_tests_of_trees), T_PLAIN(test_tests_of_cases))
