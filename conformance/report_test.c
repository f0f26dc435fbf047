/* SPDX-License-Identifier: Apache-2.0
 *
 * The runner on trial: lists that are no longer true fail the run, faults that are listed do not, and a run is the same
 * for the same seed. What the tests find is mutation_test's concern. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

static int report_failures;

static void report_want(bool good, const char *what) {
    if (good) return;
    printf("FAILED: %s\n", what);
    report_failures++;
}

/* Runs with settings, a list and tags; null when it did not take place. */
static rondo_conformance_report *report_run(const char *settings, const char *list, const char *tag) {
    rondo_conformance_options options = RONDO_CONFORMANCE_OPTIONS_INIT;
    rondo_conformance_expectation *expectations = NULL;
    rondo_conformance_report *report = NULL;
    rondo_instance *instance = NULL;
    options.settings = settings;
    options.tags = &tag;
    options.tag_count = tag != NULL;
    report_want(!rondo_conformance_expectations_parse(list, &expectations, &options.expectation_count),
                "the list is read");
    options.expectations = expectations;
    rondo_status status = rondo_instance_create(NULL, &instance);
    if (!status) status = rondo_conformance_run(instance, "sim", &options, &report);
    report_want(!status, "the run takes place");
    rondo_status_release(status);
    rondo_instance_release(instance);
    free(expectations);
    return report;
}

static void report_want_run(const char *settings, const char *list, const char *tag, uint32_t passed, uint32_t failed,
                            uint32_t skipped, const char *what) {
    rondo_conformance_report *report = report_run(settings, list, tag);
    if (!report) return;
    report_want(report->passed == passed && report->failed == failed && report->skipped == skipped, what);
    if (report->passed != passed || report->failed != failed || report->skipped != skipped)
        printf("    %u passed, %u failed, %u skipped\n", report->passed, report->failed, report->skipped);
    report_want(report->count == report->passed + report->failed + report->skipped, "every result is counted once");
    rondo_conformance_report_release(report);
}

static void report_lists(void) {
    report_want_run(NULL, "", "event.ring", 1, 0, 0, "a test alone");
    report_want_run(NULL, "unsupported event.ring it is forbidden", "event.ring", 0, 0, 1,
                    "an unsupported test is skipped");
    report_want_run(NULL, "unsupported event.r* it is forbidden", "event.ring", 0, 0, 1, "a prefix names tests");
    report_want_run(NULL, "expected-failure event.ring it fails", "event.ring", 0, 1, 0,
                    "an expected failure that passes fails the run");
    report_want_run(NULL, "expected-failure event.rong it fails", "event.ring", 1, 1, 0,
                    "an entry that names no test fails the run");
    report_want_run(NULL, "unsupported event.rong it is forbidden", "event.ring", 1, 1, 0,
                    "an unsupported entry that names no test, too");
    report_want_run("mutate=wait_ignored", "", "event.ring", 0, 1, 0, "a fault fails the test");
    report_want_run("mutate=wait_ignored", "expected-failure event.ring it fails", "event.ring", 0, 0, 1,
                    "a failure that is expected");
    report_want_run(NULL, "", "no_such_tag", 0, 0, 0, "a tag that nobody has");
}

static void report_bad_lists(void) {
    static const struct {
        const char *text, *problem;
    } bad[] = {{"event.ring", "line 1 starts with neither"},
               {"unsupported", "line 1 names no test"},
               {"\n# x\nunsupported event.ring", "line 3 does not say which rule"},
               {"expected-failure event.ring  ", "does not say why"},
               {"Unsupported a b", "starts with neither"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        rondo_conformance_expectation *list = NULL;
        uint32_t count = 0;
        const char *problem = rondo_conformance_expectations_parse(bad[i].text, &list, &count);
        report_want(problem && strstr(problem, bad[i].problem), bad[i].problem);
        if (!problem) free(list);
    }
    rondo_conformance_expectation *list = NULL;
    uint32_t count = 0;
    const char *good = "# a\n\n  unsupported a.b  some  rule \t\r\nexpected-failure c.* why\n";
    report_want(!rondo_conformance_expectations_parse(good, &list, &count) && count == 2, "a good list is read");
    report_want(count == 2 && list[0].unsupported && strcmp(list[0].name, "a.b") == 0 &&
                    strcmp(list[0].reason, "some  rule") == 0 && list[0].line == 3 && !list[1].unsupported &&
                    strcmp(list[1].name, "c.*") == 0,
                "entry by entry");
    free(list);
}

typedef struct report_text {
    char *bytes;
    size_t size;
    int fails_after;
} report_text;

static int32_t report_write(void *user, const char *data, size_t size) {
    report_text *text = user;
    if (text->fails_after-- == 0) return 1;
    char *grown = realloc(text->bytes, text->size + size + 1);
    if (!grown) return 1;
    memcpy(grown + text->size, data, size);
    text->bytes = grown;
    text->size += size;
    grown[text->size] = 0;
    return 0;
}

/* Forms are read by real parsers in the end to end tests; here: what must be in them, and a writer that fails. */
static void report_forms(void) {
    static const char *const wanted[] = {"0 passed, 1 failed, 0 skipped", "\"outcome\": \"failed\"",
                                         "<failure message=\"failed: "};
    rondo_conformance_report *report = report_run("mutate=wait_ignored", "", "event.ring");
    if (!report) return;
    for (rondo_conformance_format format = RONDO_CONFORMANCE_TEXT; format <= RONDO_CONFORMANCE_JUNIT; ++format) {
        report_text text = {NULL, 0, -1};
        report_want(rondo_conformance_report_write(report, format, report_write, &text), "a report is written");
        report_want(text.bytes && strstr(text.bytes, wanted[format]) && strstr(text.bytes, "event.ring"),
                    wanted[format]);
        free(text.bytes);
        for (int i = 0; i < 3; ++i) {
            text = (report_text){NULL, 0, i};
            report_want(!rondo_conformance_report_write(report, format, report_write, &text),
                        "a writer that fails ends it");
            free(text.bytes);
        }
    }
    rondo_conformance_report_release(report);
    rondo_conformance_report_release(NULL);
}

/* Names are unique, and each test says what it proves. */
static void report_registry(void) {
    const rondo_conformance_test *test, *other;
    uint32_t count = 0;
    for (; (test = rondo_conformance_test_at(count)); ++count) {
        const char *dot = strchr(test->name, '.');
        report_want(dot && dot[1] && test->tags[0] && strlen(test->proves) > 10, test->name);
        for (uint32_t i = 0; i < count && (other = rondo_conformance_test_at(i)); ++i)
            report_want(strcmp(other->name, test->name) != 0, "a name is there twice");
    }
    report_want(count > 100, "there are more than a hundred tests");
}

int main(void) {
    report_registry();
    report_lists();
    report_bad_lists();
    report_forms();
    printf("%s\n", report_failures ? "the runner is wrong" : "the runner is right");
    return report_failures != 0;
}
