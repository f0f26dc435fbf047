/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract as a program: tests that any device must pass, through the public headers alone.
 *
 * The tool's `rondo conformance` is a thin shell around this; a backend's author may also link the library and call it
 * from a test of their own. Not thread-safe: one run at a time.
 */
#ifndef RONDO_CONFORMANCE_H
#define RONDO_CONFORMANCE_H

#include <rondo/runtime.h>

RONDO_EXTERN_C_BEGIN

/* One line about a test, as data. Strings are static. */
typedef struct rondo_conformance_test {
    const char *name;   /* "event.cross_stream": suite, point, what */
    const char *tags;   /* words with blanks between them; the suite's name is one */
    const char *proves; /* one sentence */
} rondo_conformance_test;
/* The index-th test; null past the end. */
const rondo_conformance_test *rondo_conformance_test_at(uint32_t index);
/* Whether `tag` is one of the test's tags, its name, or, ending in '*', what its name starts with. */
bool rondo_conformance_test_has(const rondo_conformance_test *test, const char *tag);

typedef int32_t rondo_conformance_outcome;
enum {
    RONDO_CONFORMANCE_PASSED = 0,
    RONDO_CONFORMANCE_FAILED = 1,
    RONDO_CONFORMANCE_SKIPPED = 2,          /* the device says that it lacks what the test is about */
    RONDO_CONFORMANCE_UNSUPPORTED = 3,      /* listed so, with the rule that forbids it; not run */
    RONDO_CONFORMANCE_EXPECTED_FAILURE = 4, /* listed so, and it failed */
    RONDO_CONFORMANCE_STALE = 5             /* an entry of the list that is no longer true; counts as failed */
};
const char *rondo_conformance_outcome_name(rondo_conformance_outcome outcome);

typedef struct rondo_conformance_result {
    const char *name;
    const char *tags;
    rondo_conformance_outcome outcome;
    int32_t line;        /* of the check that failed; 0 */
    const char *file;    /* "" */
    const char *message; /* why it failed or was skipped; "" when it passed */
    uint64_t nanoseconds;
} rondo_conformance_result;

/* What is known to be otherwise on a device, and stays with its backend's sources. `name` is a test's, or a prefix of
 * tests' that ends in '*'. Unsupported is for good, and `reason` is the rule that forbids it; an expected failure is to
 * go away. An entry that names no test, or an expected failure that passes, fails the run. */
typedef struct rondo_conformance_expectation {
    char name[96];
    char reason[256];
    uint32_t unsupported; /* 0: an expected failure */
    uint32_t line;        /* of the file it came from */
} rondo_conformance_expectation;

typedef struct rondo_conformance_report {
    const char *device;
    uint64_t seed;
    const rondo_conformance_result *results;
    uint32_t count;
    uint32_t passed, failed, skipped; /* stale counts as failed; unsupported and expected failures as skipped */
    uint32_t unsupported, expected_failures;
    uint64_t nanoseconds;
} rondo_conformance_report;

typedef struct rondo_conformance_options {
    uint32_t struct_size;
    uint32_t tag_count;
    const char *const *tags; /* tests that have any of them; none: all */
    const char *settings;    /* the device's, may be null */
    uint64_t seed;           /* of everything random; the same seed gives the same run */
    const rondo_conformance_expectation *expectations;
    uint32_t expectation_count;
    uint32_t stop_at_first; /* 1: no test after the first that fails */
    void (*on_begin)(void *user, const rondo_conformance_test *test, uint32_t index, uint32_t count);
    void (*on_end)(void *user, const rondo_conformance_result *result);
    void *user;
} rondo_conformance_options;
#define RONDO_CONFORMANCE_OPTIONS_INIT \
    { sizeof(rondo_conformance_options), 0, 0, 0, 1, 0, 0, 0, 0, 0, 0 }

/* Runs the tests on `device` ("type" or "type:index"), each on a freshly opened device; the caller must not hold it open
 * meanwhile. A failure is what rondo_device_open answers for the device. Success means that the run took place: look at
 * `failed`, and at `count`, which is 0 when the tags select no test. The report belongs to the caller; it is null when
 * the host has no memory for it. options may be null. */
RONDO_MUST_USE rondo_status rondo_conformance_run(rondo_instance *instance, const char *device,
                                                  const rondo_conformance_options *options,
                                                  rondo_conformance_report **out_report);
void rondo_conformance_report_release(rondo_conformance_report *report);

typedef int32_t rondo_conformance_format;
enum { RONDO_CONFORMANCE_TEXT = 0, RONDO_CONFORMANCE_JSON = 1, RONDO_CONFORMANCE_JUNIT = 2 };
/* A `write` that returns nonzero ends it: false. */
bool rondo_conformance_report_write(const rondo_conformance_report *report, rondo_conformance_format format,
                                    int32_t (*write)(void *user, const char *data, size_t size), void *user);

/* Reads expectations, one a line:   unsupported NAME RULE...   or   expected-failure NAME REASON...
 * Empty lines and what follows a '#' at the start of a line are left out. On success the list is the caller's to free().
 * Returns null and the number of entries, or a sentence that names the line (static until the next call). */
const char *rondo_conformance_expectations_parse(const char *text, rondo_conformance_expectation **out_list,
                                                 uint32_t *out_count);

RONDO_EXTERN_C_END

#endif
