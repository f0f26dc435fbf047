/* SPDX-License-Identifier: Apache-2.0
 *
 * A report in three forms: for people, for programs, and for the pages that build servers show. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "conformance.h"

typedef struct report_sink {
    int32_t (*write)(void *user, const char *data, size_t size);
    void *user;
    bool good;
} report_sink;

static void report_put(report_sink *sink, const char *data, size_t size) {
    if (sink->good && size && sink->write(sink->user, data, size) != 0) sink->good = false;
}

static void report_format(report_sink *sink, const char *format, ...) RONDO_PRINTF(2, 3);
static void report_format(report_sink *sink, const char *format, ...) {
    char text[2048];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (length > 0) report_put(sink, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1u);
}

static double report_seconds(uint64_t nanoseconds) { return (double)nanoseconds / 1e9; }

/* --------------------------------------------------------------------------------------------------------- text */

static void report_text(report_sink *sink, const rondo_conformance_report *report) {
    for (uint32_t i = 0; i < report->count; ++i) {
        const rondo_conformance_result *result = &report->results[i];
        if (result->outcome == RONDO_CONFORMANCE_PASSED) continue;
        report_format(sink, "%s: %s\n", rondo_conformance_outcome_name(result->outcome), result->name);
        if (result->line) report_format(sink, "    %s:%d: %s\n", result->file, (int)result->line, result->message);
        else report_format(sink, "    %s\n", result->message);
    }
    if (report->unsupported || report->expected_failures)
        report_format(sink, "of those skipped, %u are unsupported by rule and %u are expected to fail\n",
                      (unsigned)report->unsupported, (unsigned)report->expected_failures);
    report_format(sink, "%s, seed %llu, %.1f s\n", report->device, (unsigned long long)report->seed,
                  report_seconds(report->nanoseconds));
    report_format(sink, "%u passed, %u failed, %u skipped\n", (unsigned)report->passed, (unsigned)report->failed,
                  (unsigned)report->skipped);
}

/* --------------------------------------------------------------------------------------------------------- json */

/* Bytes that are no UTF-8 of their own kind do not come up: names are ours, messages are the library's. */
static void report_json_string(report_sink *sink, const char *text) {
    report_put(sink, "\"", 1);
    for (; *text; ++text) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') report_format(sink, "\\%c", c);
        else if (c < 0x20) report_format(sink, "\\u%04x", c);
        else report_put(sink, text, 1);
    }
    report_put(sink, "\"", 1);
}

static void report_json_field(report_sink *sink, const char *name, const char *text) {
    report_format(sink, "\"%s\": ", name);
    report_json_string(sink, text);
    report_put(sink, ", ", 2);
}

static void report_json(report_sink *sink, const rondo_conformance_report *report) {
    report_put(sink, "{", 1);
    report_json_field(sink, "device", report->device);
    report_json_field(sink, "version", RONDO_VERSION_STRING);
    report_format(sink, "\"seed\": %llu, \"passed\": %u, \"failed\": %u, \"skipped\": %u, \"unsupported\": %u, ",
                  (unsigned long long)report->seed, (unsigned)report->passed, (unsigned)report->failed,
                  (unsigned)report->skipped, (unsigned)report->unsupported);
    report_format(sink, "\"expected_failures\": %u, \"seconds\": %.6f,\n \"tests\": [",
                  (unsigned)report->expected_failures, report_seconds(report->nanoseconds));
    for (uint32_t i = 0; i < report->count; ++i) {
        const rondo_conformance_result *result = &report->results[i];
        report_put(sink, i ? ",\n  {" : "\n  {", i ? 5 : 4);
        report_json_field(sink, "name", result->name);
        report_json_field(sink, "tags", result->tags);
        report_json_field(sink, "outcome", rondo_conformance_outcome_name(result->outcome));
        report_json_field(sink, "message", result->message);
        report_json_field(sink, "file", result->file);
        report_format(sink, "\"line\": %d, \"seconds\": %.6f}", (int)result->line, report_seconds(result->nanoseconds));
    }
    report_put(sink, "\n ]}\n", 5);
}

/* -------------------------------------------------------------------------------------------------------- junit */

static void report_xml_string(report_sink *sink, const char *text) {
    for (; *text; ++text) {
        unsigned char c = (unsigned char)*text;
        if (c == '<') report_put(sink, "&lt;", 4);
        else if (c == '>') report_put(sink, "&gt;", 4);
        else if (c == '&') report_put(sink, "&amp;", 5);
        else if (c == '"') report_put(sink, "&quot;", 6);
        else if (c == '\n') report_put(sink, "&#10;", 5);
        else if (c < 0x20) report_put(sink, " ", 1);
        else report_put(sink, text, 1);
    }
}

static void report_junit_case(report_sink *sink, const char *device, const rondo_conformance_result *result) {
    size_t suite = strcspn(result->name, ".");
    report_format(sink, "  <testcase classname=\"conformance.%s.%.*s\" name=\"", device, (int)suite, result->name);
    report_xml_string(sink, result->name);
    report_format(sink, "\" time=\"%.6f\"", report_seconds(result->nanoseconds));
    if (result->outcome == RONDO_CONFORMANCE_PASSED) {
        report_put(sink, "/>\n", 3);
        return;
    }
    bool failed = result->outcome == RONDO_CONFORMANCE_FAILED || result->outcome == RONDO_CONFORMANCE_STALE;
    report_format(sink, ">\n    <%s message=\"%s: ", failed ? "failure" : "skipped",
                  rondo_conformance_outcome_name(result->outcome));
    report_xml_string(sink, result->message);
    report_put(sink, "\"", 1);
    if (failed && result->line) {
        report_put(sink, ">", 1);
        report_xml_string(sink, result->file);
        report_format(sink, ":%d</failure>\n", (int)result->line);
    } else {
        report_put(sink, "/>\n", 3);
    }
    report_put(sink, "  </testcase>\n", 14);
}

static void report_junit(report_sink *sink, const rondo_conformance_report *report) {
    report_format(sink,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"conformance.%s\" tests=\"%u\" "
                  "failures=\"%u\" skipped=\"%u\" time=\"%.6f\">\n",
                  report->device, (unsigned)report->count, (unsigned)report->failed, (unsigned)report->skipped,
                  report_seconds(report->nanoseconds));
    report_format(sink, "  <properties><property name=\"seed\" value=\"%llu\"/></properties>\n",
                  (unsigned long long)report->seed);
    for (uint32_t i = 0; i < report->count; ++i) report_junit_case(sink, report->device, &report->results[i]);
    report_put(sink, "</testsuite>\n", 13);
}

bool rondo_conformance_report_write(const rondo_conformance_report *report, rondo_conformance_format format,
                                    int32_t (*write)(void *user, const char *data, size_t size), void *user) {
    report_sink sink = {write, user, true};
    if (format == RONDO_CONFORMANCE_JSON) report_json(&sink, report);
    else if (format == RONDO_CONFORMANCE_JUNIT) report_junit(&sink, report);
    else report_text(&sink, report);
    return sink.good;
}
