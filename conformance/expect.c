/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of what is known to be otherwise on a device: one entry a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

static const char expect_blanks[] = " \t\r";

/* Copies [text, text + length) if it fits. */
static bool expect_take(char *to, size_t capacity, const char *text, size_t length) {
    if (!length || length >= capacity) return false;
    memcpy(to, text, length);
    to[length] = 0;
    return true;
}

/* One line without its end; null, or what is wrong. */
static const char *expect_line(const char *line, size_t length, rondo_conformance_expectation *out) {
    static const struct {
        const char *word;
        uint32_t unsupported;
    } kinds[] = {{"unsupported", 1}, {"expected-failure", 0}};
    size_t word = 0, name, end = length;
    while (word < length && !strchr(expect_blanks, line[word])) word++;
    size_t kind = 0;
    while (kind < 2 && !(strlen(kinds[kind].word) == word && memcmp(kinds[kind].word, line, word) == 0)) kind++;
    if (kind == 2) return "starts with neither 'unsupported' nor 'expected-failure'";
    out->unsupported = kinds[kind].unsupported;
    while (word < length && strchr(expect_blanks, line[word])) word++;
    name = word;
    while (word < length && !strchr(expect_blanks, line[word])) word++;
    if (!expect_take(out->name, sizeof out->name, line + name, word - name)) return "names no test";
    while (word < length && strchr(expect_blanks, line[word])) word++;
    while (end > word && strchr(expect_blanks, line[end - 1u])) end--;
    if (!expect_take(out->reason, sizeof out->reason, line + word, end - word))
        return out->unsupported ? "does not say which rule forbids it (in at most 255 bytes)"
                                : "does not say why it fails (in at most 255 bytes)";
    return NULL;
}

const char *rondo_conformance_expectations_parse(const char *text, rondo_conformance_expectation **out_list,
                                                 uint32_t *out_count) {
    static char problem[128]; /* the header says how long it lasts */
    rondo_conformance_expectation *list = NULL;
    uint32_t count = 0, number = 1;
    for (; *text; ++number) {
        size_t length = strcspn(text, "\n"), start = strspn(text, expect_blanks);
        const char *wrong = NULL;
        if (start < length && text[start] != '#') {
            rondo_conformance_expectation *grown = realloc(list, (count + 1u) * sizeof *grown);
            if (grown) {
                list = grown;
                memset(&list[count], 0, sizeof *list);
                list[count].line = number;
                wrong = expect_line(text + start, length - start, &list[count]);
                count++;
            } else {
                wrong = "is too much for the memory there is";
            }
        }
        if (wrong) {
            snprintf(problem, sizeof problem, "line %u %s", (unsigned)number, wrong);
            free(list);
            return problem;
        }
        text += length + (text[length] == '\n');
    }
    *out_list = list;
    *out_count = count;
    return NULL;
}
