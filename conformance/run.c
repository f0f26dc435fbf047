/* SPDX-License-Identifier: Apache-2.0
 *
 * The runner: picks the tests, gives each a freshly opened device, and says how it ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"

/* ------------------------------------------------------------------------------------------------------ the list */

static const conf_test *run_test_at(uint32_t index) {
    for (uint32_t s = 0; s < conf_suite_count; ++s) {
        if (index < conf_suites[s]->count) return &conf_suites[s]->tests[index];
        index -= conf_suites[s]->count;
    }
    return NULL;
}

const rondo_conformance_test *rondo_conformance_test_at(uint32_t index) {
    const conf_test *test = run_test_at(index);
    return test ? &test->about : NULL;
}

const char *rondo_conformance_outcome_name(rondo_conformance_outcome outcome) {
    static const char *const names[] = {"passed",      "failed",           "skipped",
                                        "unsupported", "expected failure", "stale entry"};
    return outcome >= 0 && outcome <= RONDO_CONFORMANCE_STALE ? names[outcome] : "unknown";
}

static bool run_has_word(const char *words, const char *word) {
    size_t length = strlen(word);
    while (*words) {
        size_t this = strcspn(words, " ");
        if (this == length && memcmp(words, word, length) == 0) return true;
        words += this + (words[this] == ' ');
    }
    return false;
}

/* A pattern is a name, or a prefix and '*'. */
static bool run_matches(const char *pattern, const char *name) {
    size_t length = strlen(pattern);
    if (length && pattern[length - 1u] == '*') return strncmp(pattern, name, length - 1u) == 0;
    return strcmp(pattern, name) == 0;
}

bool rondo_conformance_test_has(const rondo_conformance_test *test, const char *tag) {
    return run_has_word(test->tags, tag) || run_matches(tag, test->name);
}

static bool run_is_wanted(const rondo_conformance_options *options, const rondo_conformance_test *about) {
    if (!options->tag_count) return true;
    for (uint32_t i = 0; i < options->tag_count; ++i)
        if (rondo_conformance_test_has(about, options->tags[i])) return true;
    return false;
}

static const rondo_conformance_expectation *run_expectation(const rondo_conformance_options *options,
                                                            const char *name) {
    for (uint32_t i = 0; i < options->expectation_count; ++i)
        if (run_matches(options->expectations[i].name, name)) return &options->expectations[i];
    return NULL;
}

/* ----------------------------------------------------------------------------------------------------- one test */

static const char *run_lacks(const conf *t, uint32_t needs) {
    uint32_t count = 0;
    if ((needs & CONF_NEEDS_GRAPH) && !(t->properties->capabilities & RONDO_DEVICE_GRAPH_CAPABLE))
        return "the device says that it has no graphs";
    if ((needs & CONF_NEEDS_HOST_KERNELS) && !(t->properties->capabilities & RONDO_DEVICE_HOST_KERNELS))
        return "the device's kernels are no host functions";
    if ((needs & CONF_NEEDS_OWN_MEMORY) &&
        ((t->properties->capabilities & RONDO_DEVICE_HOST_ADDRESSABLE) || !t->properties->memory_total))
        return "the device's memory is the host's, or of unknown size";
    if ((needs & CONF_NEEDS_MEMORY_INFO) && !t->properties->memory_total)
        return "the size of the device's memory is unknown";
    if ((needs & CONF_NEEDS_STOP) && (t->properties->capabilities & RONDO_DEVICE_GOES_ON_AFTER_FAILURE))
        return "the device says that what stands behind failed work may run";
    if ((needs & CONF_NEEDS_DIRECTION) && (t->properties->capabilities & RONDO_DEVICE_COPY_DIRECTION_UNCHECKED))
        return "the device says that it does not check a copy's direction";
    if ((needs & CONF_NEEDS_HOST_CALLS) && t->no_host_calls) return t->no_host_calls;
    if (needs & CONF_NEEDS_TWO_DEVICES) {
        rondo_status status = rondo_device_type_count(t->instance, t->properties->name, &count);
        rondo_status_release(status);
        if (status || count < 2) return "there is only one device of this type";
    }
    return NULL;
}

static void run_fail(conf *t, rondo_status status, const char *what) {
    char text[768];
    rondo_status_format(status, text, sizeof text);
    rondo_status_release(status);
    t->outcome = RONDO_CONFORMANCE_FAILED;
    snprintf(t->message, sizeof t->message, "%s: %s", what, text);
}

static void run_body(conf *t, const conf_test *test) {
    const char *lacks = run_lacks(t, test->needs);
    if (lacks) {
        t->outcome = RONDO_CONFORMANCE_SKIPPED;
        snprintf(t->message, sizeof t->message, "%s", lacks);
        return;
    }
    if (setjmp(t->out) == 0) test->run(t);
}

/* What a test leaves behind is a fault of its own: of the device's or of the core's, since the test releases it all. */
static void run_close(conf *t) {
    uint64_t bytes = 0, allocations = 0;
    conf_release_all(t);
    free(t->objects);
    if (!t->device) return;
    rondo_memory_usage(t->device, &bytes, &allocations);
    if (allocations && t->outcome == RONDO_CONFORMANCE_PASSED) {
        t->outcome = RONDO_CONFORMANCE_FAILED;
        snprintf(t->message, sizeof t->message,
                 "%llu allocations of %llu bytes are alive after everything was released",
                 (unsigned long long)allocations, (unsigned long long)bytes);
    }
    rondo_device_release(t->device);
}

typedef struct run_report {
    rondo_conformance_report report; /* first: this is what the caller sees */
    rondo_conformance_result *results;
    uint32_t capacity;
    char *device;
    char no_host_calls[512]; /* why the device runs no host functions; empty: it does */
} run_report;

static uint64_t run_hash(const char *text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; ++text) hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
    return hash;
}

static void run_one(rondo_instance *instance, const run_report *all, const rondo_conformance_options *options,
                    const conf_test *test, conf *t) {
    memset(t, 0, sizeof *t);
    t->instance = instance;
    t->device_name = all->device;
    t->no_host_calls = *all->no_host_calls ? all->no_host_calls : NULL;
    t->settings = options->settings;
    t->random = options->seed ^ run_hash(test->about.name);
    t->file = "";
    rondo_status status = rondo_device_open(instance, all->device, options->settings, &t->device);
    if (status) {
        run_fail(t, status, "the device cannot be opened again");
        return;
    }
    t->properties = rondo_device_info(t->device);
    run_body(t, test);
    run_close(t);
}

/* ------------------------------------------------------------------------------------------------------ the run */

void rondo_conformance_report_release(rondo_conformance_report *report) {
    if (!report) return;
    run_report *all = (run_report *)(void *)report;
    for (uint32_t i = 0; i < report->count; ++i) {
        free((void *)(uintptr_t)all->results[i].message);
        free((void *)(uintptr_t)all->results[i].name);
    }
    free(all->results);
    free(all->device);
    free(all);
}

static rondo_conformance_result *run_add(run_report *all, const char *name, const char *tags, const conf *t) {
    if (all->report.count == all->capacity) return NULL;
    rondo_conformance_result *result = &all->results[all->report.count];
    char *copied = strdup(name), *message = strdup(t->message);
    if (!copied || !message) {
        free(copied);
        free(message);
        return NULL;
    }
    *result = (rondo_conformance_result){copied, tags, t->outcome, t->line, t->file, message, 0};
    all->report.count++;
    return result;
}

/* What the list says of the test has the last word. */
static void run_judge(const rondo_conformance_expectation *expectation, conf *t) {
    if (!expectation || expectation->unsupported) return;
    if (t->outcome == RONDO_CONFORMANCE_FAILED) {
        char why[sizeof t->message];
        snprintf(why, sizeof why, "%.250s: %.700s", expectation->reason, t->message);
        memcpy(t->message, why, sizeof why);
        t->outcome = RONDO_CONFORMANCE_EXPECTED_FAILURE;
    } else {
        snprintf(t->message, sizeof t->message, "line %u of the list expects a failure, but it %s: take the entry out",
                 (unsigned)expectation->line, t->outcome == RONDO_CONFORMANCE_PASSED ? "passed" : "was skipped");
        t->outcome = RONDO_CONFORMANCE_STALE;
    }
}

static void run_count(rondo_conformance_report *report, rondo_conformance_outcome outcome) {
    switch (outcome) {
    case RONDO_CONFORMANCE_PASSED: report->passed++; break;
    case RONDO_CONFORMANCE_UNSUPPORTED:
        report->unsupported++;
        report->skipped++;
        break;
    case RONDO_CONFORMANCE_EXPECTED_FAILURE:
        report->expected_failures++;
        report->skipped++;
        break;
    case RONDO_CONFORMANCE_SKIPPED: report->skipped++; break;
    default: report->failed++;
    }
}

/* False: no host memory. */
static bool run_test(run_report *all, rondo_instance *instance, const rondo_conformance_options *options,
                     const conf_test *test, conf *t) {
    const rondo_conformance_expectation *expectation = run_expectation(options, test->about.name);
    uint64_t start = conf_now();
    if (expectation && expectation->unsupported) {
        memset(t, 0, sizeof *t);
        t->file = "";
        t->outcome = RONDO_CONFORMANCE_UNSUPPORTED;
        snprintf(t->message, sizeof t->message, "%s", expectation->reason);
    } else {
        run_one(instance, all, options, test, t);
        run_judge(expectation, t);
    }
    rondo_conformance_result *result = run_add(all, test->about.name, test->about.tags, t);
    if (!result) return false;
    result->nanoseconds = conf_now() - start;
    run_count(&all->report, result->outcome);
    if (options->on_end) options->on_end(options->user, result);
    return true;
}

/* Entries that name no test. */
static bool run_check_list(run_report *all, const rondo_conformance_options *options, conf *t) {
    for (uint32_t i = 0; i < options->expectation_count; ++i) {
        const rondo_conformance_expectation *entry = &options->expectations[i];
        const rondo_conformance_test *about;
        bool found = false;
        for (uint32_t k = 0; (about = rondo_conformance_test_at(k)) && !found; ++k)
            found = run_matches(entry->name, about->name);
        if (found) continue;
        memset(t, 0, sizeof *t);
        t->file = "";
        t->outcome = RONDO_CONFORMANCE_STALE;
        snprintf(t->message, sizeof t->message, "line %u of the list names no test", (unsigned)entry->line);
        rondo_conformance_result *result = run_add(all, entry->name, "", t);
        if (!result) return false;
        run_count(&all->report, result->outcome);
        if (options->on_end) options->on_end(options->user, result);
    }
    return true;
}

static uint32_t run_selected(const rondo_conformance_options *options) {
    const rondo_conformance_test *about;
    uint32_t count = 0;
    for (uint32_t i = 0; (about = rondo_conformance_test_at(i)); ++i) count += run_is_wanted(options, about);
    return count;
}

static bool run_all(run_report *all, rondo_instance *instance, const rondo_conformance_options *options, uint32_t count,
                    conf *t) {
    const conf_test *test;
    uint32_t number = 0;
    uint64_t start = conf_now();
    bool good = run_check_list(all, options, t);
    for (uint32_t i = 0; good && (test = run_test_at(i)); ++i) {
        if (!run_is_wanted(options, &test->about)) continue;
        if (options->on_begin) options->on_begin(options->user, &test->about, number, count);
        number++;
        good = run_test(all, instance, options, test, t);
        if (options->stop_at_first && all->report.failed) break;
    }
    all->report.results = all->results;
    all->report.nanoseconds = conf_now() - start;
    return good;
}

static int32_t run_nothing(void *user) {
    (void)user;
    return 0;
}

/* A device that runs no host functions says so to who has one. Asked on a device of its own: some count. */
static void run_probe(rondo_device *device, char *no_host_calls, size_t capacity) {
    rondo_stream *stream = rondo_stream_default(device);
    rondo_status status = rondo_stream_host_call(stream, run_nothing, NULL);
    if (!status) status = rondo_stream_synchronize(stream);
    no_host_calls[0] = '\0';
    if (rondo_status_code(status) == RONDO_CODE_UNSUPPORTED)
        snprintf(no_host_calls, capacity, "the device runs no host functions: %s", rondo_status_message(status));
    rondo_status_release(status);
}

rondo_status rondo_conformance_run(rondo_instance *instance, const char *device,
                                   const rondo_conformance_options *options, rondo_conformance_report **out_report) {
    rondo_conformance_options own = RONDO_CONFORMANCE_OPTIONS_INIT;
    rondo_device *first = NULL;
    if (options) memcpy(&own, options, options->struct_size < sizeof own ? options->struct_size : sizeof own);
    /* Opening shows first of all whether there is anything to test; its failure is the caller's answer. */
    rondo_status status = rondo_device_open(instance, device, own.settings, &first);
    if (status) return status;
    char no_host_calls[512];
    run_probe(first, no_host_calls, sizeof no_host_calls);
    rondo_device_release(first);
    uint32_t count = run_selected(&own);
    conf *t = calloc(1, sizeof *t);
    run_report *all = calloc(1, sizeof *all);
    if (all) {
        all->capacity = count + own.expectation_count;
        all->results = calloc(all->capacity ? all->capacity : 1u, sizeof *all->results);
        all->device = strdup(device);
        memcpy(all->no_host_calls, no_host_calls, sizeof no_host_calls);
    }
    bool good = t && all && all->results && all->device;
    if (good) {
        all->report.device = all->device;
        all->report.seed = own.seed;
        good = run_all(all, instance, &own, count, t);
    }
    free(t);
    if (!good && all) rondo_conformance_report_release(&all->report);
    *out_report = good ? &all->report : NULL;
    return RONDO_OK;
}
