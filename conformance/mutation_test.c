/* SPDX-License-Identifier: Apache-2.0
 *
 * The suite itself on trial: every deliberate fault of the simulator must fail at least one test, and the simulator
 * without a fault must fail none.
 *
 * Each fault runs in a process of its own, so that one which hangs or crashes the suite is known by its name and does not
 * count as found: a suite that dies reports nothing. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance.h"

enum { MUTATION_SECONDS = 120, MUTATION_MOST = 512 };

typedef struct mutation_result {
    char name[64];
    char failed[2048]; /* names of the tests that found it */
    uint32_t found;
    bool finished;
} mutation_result;

/* In the child: runs until the first failure (all of it when nothing should fail), and writes the names. */
static int mutation_child(const char *settings, bool all, int out) {
    rondo_instance *instance = NULL;
    rondo_conformance_options options = RONDO_CONFORMANCE_OPTIONS_INIT;
    rondo_conformance_report *report = NULL;
    options.settings = settings;
    options.stop_at_first = !all;
    rondo_status status = rondo_instance_create(NULL, &instance);
    if (!status) status = rondo_conformance_run(instance, "sim", &options, &report);
    if (status || !report) {
        rondo_status_release(status);
        return 2;
    }
    for (uint32_t i = 0; i < report->count; ++i) {
        const rondo_conformance_result *result = &report->results[i];
        if (result->outcome != RONDO_CONFORMANCE_FAILED) continue;
        if (dprintf(out, "%s: %s\n", result->name, result->message) < 0) return 2;
    }
    rondo_conformance_report_release(report);
    rondo_instance_release(instance);
    return 0;
}

/* Reads what the child writes, until it ends or the time is over. */
static void mutation_read(int in, mutation_result *result) {
    size_t used = 0;
    struct pollfd wait = {.fd = in, .events = POLLIN};
    for (int left = MUTATION_SECONDS; left > 0 && used + 1 < sizeof result->failed;) {
        int ready = poll(&wait, 1, 1000);
        if (ready == 0) left--;
        if (ready <= 0) continue;
        ssize_t got = read(in, result->failed + used, sizeof result->failed - 1 - used);
        if (got <= 0) break;
        used += (size_t)got;
    }
    result->failed[used] = 0;
}

static bool mutation_run(const char *settings, bool all, mutation_result *result) {
    int ends[2], state = 0;
    if (pipe(ends) != 0) return false;
    (void)fflush(stdout);
    pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
        (void)close(ends[0]);
        (void)alarm(MUTATION_SECONDS);
        _exit(mutation_child(settings, all, ends[1]));
    }
    (void)close(ends[1]);
    mutation_read(ends[0], result);
    (void)close(ends[0]);
    if (waitpid(child, &state, 0) != child) return false;
    result->finished = WIFEXITED(state) && WEXITSTATUS(state) == 0;
    for (const char *c = result->failed; *c; ++c) result->found += *c == '\n';
    return true;
}

/* Refusing "mutate=?", the simulator lists its faults, a note "NAME: sentence" each. The status is the caller's. */
static rondo_status mutation_list(void) {
    rondo_instance *instance = NULL;
    rondo_device *device = NULL;
    rondo_status status = rondo_instance_create(NULL, &instance);
    if (!status) status = rondo_device_open(instance, "sim", "mutate=?", &device);
    rondo_device_release(device);
    rondo_instance_release(instance);
    return status;
}

/* The counter is right where the list would be cut short. */
static uint32_t mutation_count(void) {
    rondo_instance *instance = NULL;
    rondo_device *device = NULL;
    uint64_t count = 0;
    rondo_status status = rondo_instance_create(NULL, &instance);
    if (!status) status = rondo_device_open(instance, "sim", NULL, &device);
    if (!status) status = rondo_device_counter(device, "mutations", &count);
    rondo_status_release(status);
    rondo_device_release(device);
    rondo_instance_release(instance);
    return count < MUTATION_MOST ? (uint32_t)count : MUTATION_MOST;
}

/* True when the fault is found. `all` shows every test that finds it. */
static bool mutation_try(uint32_t number, const char *note, bool all) {
    mutation_result result = {.name = ""};
    snprintf(result.name, sizeof result.name, "mutate=#%u", (unsigned)number);
    bool good = mutation_run(result.name, all, &result) && result.finished && result.found;
    const char *text = !result.finished ? "the suite did not come to its end"
                       : result.found   ? result.failed
                                        : "no test failed";
    printf("%s #%u %.*s: %.*s\n", good ? "found    " : "NOT FOUND", (unsigned)number, (int)strcspn(note, ":"), note,
           (int)(all ? strlen(text) : strcspn(text, "\n")), text);
    (void)fflush(stdout);
    return good;
}

/* Without an argument all of them; with a number that one, and every test that finds it. */
int main(int argc, char **argv) {
    uint32_t count = mutation_count(), found = 0, first = 1, last = count;
    if (argc == 2) first = last = (uint32_t)strtoul(argv[1], NULL, 10);
    mutation_result none = {.name = "none"};
    int failures = 0;
    if (count < 30) {
        printf("the simulator knows only %u faults\n", (unsigned)count);
        failures++;
    }
    if (argc < 2 && (!mutation_run(NULL, true, &none) || !none.finished || none.found)) {
        printf("FAILED without a fault: %s\n", none.finished ? none.failed : "the suite did not come to its end");
        failures++;
    }
    rondo_status list = mutation_list();
    for (uint32_t i = first; i <= last; ++i) found += mutation_try(i, rondo_status_note(list, i - 1u), argc == 2);
    rondo_status_release(list);
    printf("%u of %u faults are found\n", (unsigned)found, (unsigned)(last - first + 1u));
    return failures || found != last - first + 1u;
}
