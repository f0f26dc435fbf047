/* SPDX-License-Identifier: Apache-2.0
 *
 * The suite itself on trial: every deliberate fault of the simulator must fail at least one test of those that are meant
 * to find it, and the simulator without a fault must fail none.
 *
 * Each fault runs in a process of its own, so that one which hangs or crashes the suite is known by its name and does not
 * count as found: a suite that dies reports nothing. The simulator's own eyes are shut (races, sums), since a device that
 * has none must be seen through by values alone. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance.h"

enum { MUTATION_SECONDS = 120, MUTATION_MOST = 512 };

/* The tests that are meant to find a fault, by their tag. Others may find it too; these must. */
static const struct {
    const char *name, *tag;
} mutation_meant[] = {{"replay_drops", "capture"},
                      {"replay_reorders", "capture"},
                      {"replay_old", "update"},
                      {"launch_drops", "stream"},
                      {"launch_twice", "child"},
                      {"launch_reorders", "kernel"},
                      {"values_narrow", "kernel"},
                      {"five_words", "kernel"},
                      {"words_swapped", "copy"},
                      {"name_lost", "failure"},
                      {"copy_swapped", "copy"},
                      {"copy_short", "copy"},
                      {"copy_shifted", "copy"},
                      {"copy_kind", "copy"},
                      {"copy_drops", "copy"},
                      {"fill_short", "fill"},
                      {"fill_long", "fill"},
                      {"fill_value", "fill"},
                      {"host_twice", "host_call"},
                      {"host_skipped", "host_call"},
                      {"host_early", "host_call"},
                      {"sync_early", "stream"},
                      {"query_true", "stream"},
                      {"error_swallowed", "failure"},
                      {"error_repeated", "failure"},
                      {"error_elsewhere", "failure"},
                      {"error_code", "failure"},
                      {"wait_ignored", "event"},
                      {"record_ignored", "event"},
                      {"event_early", "event"},
                      {"event_query_true", "event"},
                      {"event_sync_early", "event"},
                      {"free_nothing", "memory"},
                      {"unaligned", "memory"},
                      {"overlap", "memory"},
                      {"clobber", "memory"},
                      {"oom_missed", "memory"},
                      {"oom_code", "memory"},
                      {"memory_info", "device"},
                      {"says_inline", "destruction"},
                      {"wrong_index", "device"},
                      {"wrong_alignment", "memory"},
                      {"not_capable", "registry"},
                      {"counter_wrong", "device"},
                      {"counter_any", "device"},
                      {"capture_leaks", "capture"},
                      {"replay_behind", "update"},
                      {"replay_merges", "child"},
                      {"copy_old", "update"},
                      {"upload_old", "random.*"},
                      {"host_once", "failure"},
                      {"fork_lost", "fork"},
                      {"join_lost", "fork"},
                      {"record_once", "fork"},
                      {"record_elsewhere", "event"},
                      {"wait_once", "fork"},
                      {"wait_newest", "event"},
                      {"wait_failed", "fork"},
                      {"error_runs_on", "failure"},
                      {"error_last", "stream"},
                      {"copy_odd", "copy"},
                      {"copy_large", "copy"},
                      {"copy_forward", "copy"},
                      {"upload_late", "random.*"},
                      {"download_early", "copy"},
                      {"fill_wide", "fill"},
                      {"fill_aligned", "fill"},
                      {"host_reorders", "host_call"},
                      {"philox_offset", "random"},
                      {"philox_block", "random"},
                      {"philox_seed", "random"},
                      {"philox_repeats", "random"},
                      {"side_leaks", "fork"},
                      {"blocks_work", "mode"},
                      {"blocks_threads", "mode"},
                      {"blocks_memory", "mode"},
                      {"blocks_waiting", "mode"},
                      {"pinned_twice", "memory"},
                      {"condition_always", "condition"},
                      {"condition_never", "condition"},
                      {"condition_early", "condition"},
                      {"condition_narrow", "condition"},
                      {"condition_inner", "condition"}};
enum { MUTATION_MEANT = sizeof mutation_meant / sizeof *mutation_meant };

typedef struct mutation_result {
    char name[64];
    char failed[2048]; /* names of the tests that found it */
    uint32_t found;
    bool finished;
} mutation_result;

/* In the child: runs until the first failure (all of it when nothing should fail), and writes the names. */
static int mutation_child(const char *settings, const char *tag, bool all, int out) {
    rondo_instance *instance = NULL;
    rondo_conformance_options options = RONDO_CONFORMANCE_OPTIONS_INIT;
    rondo_conformance_report *report = NULL;
    options.settings = settings;
    options.stop_at_first = !all;
    options.tags = &tag;
    options.tag_count = tag ? 1 : 0;
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

static bool mutation_run(const char *settings, const char *tag, bool all, mutation_result *result) {
    int ends[2], state = 0;
    if (pipe(ends) != 0) return false;
    (void)fflush(stdout);
    pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
        (void)close(ends[0]);
        (void)alarm(MUTATION_SECONDS);
        _exit(mutation_child(settings, tag, all, ends[1]));
    }
    (void)close(ends[1]);
    mutation_read(ends[0], result);
    (void)close(ends[0]);
    if (waitpid(child, &state, 0) != child) return false;
    result->finished = WIFEXITED(state) && WEXITSTATUS(state) == 0;
    for (const char *c = result->failed; *c; ++c) result->found += *c == '\n';
    return true;
}

/* What the device itself says. */
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
    return count < MUTATION_MOST - 1 ? (uint32_t)count : MUTATION_MOST - 1;
}

/* Refusing "mutate=?N", the simulator lists its faults from number N on, a note "NAME: sentence" each, as many as a
 * status holds. The status is the caller's. */
static rondo_status mutation_list(uint32_t first) {
    char settings[32];
    rondo_instance *instance = NULL;
    rondo_device *device = NULL;
    snprintf(settings, sizeof settings, "mutate=?%u", (unsigned)first);
    rondo_status status = rondo_instance_create(NULL, &instance);
    if (!status) status = rondo_device_open(instance, "sim", settings, &device);
    rondo_device_release(device);
    rondo_instance_release(instance);
    return status;
}

/* Names by number, from 1 to `count`. */
static bool mutation_read_names(char (*names)[64], uint32_t count) {
    for (uint32_t number = 1; number <= count;) {
        rondo_status list = mutation_list(number);
        size_t got = rondo_status_note_count(list);
        for (size_t i = 0; i < got && number <= count; ++i) {
            const char *note = rondo_status_note(list, i);
            snprintf(names[number++], sizeof names[0], "%.*s", (int)strcspn(note, ":"), note);
        }
        rondo_status_release(list);
        if (!got) return false;
    }
    return true;
}

static const char *mutation_tag(const char *name) {
    for (size_t i = 0; i < MUTATION_MEANT; ++i)
        if (strcmp(mutation_meant[i].name, name) == 0) return mutation_meant[i].tag;
    return NULL;
}

/* True when the fault is found. `all` shows every test that finds it, whoever was meant to. */
static bool mutation_try(uint32_t number, const char *name, bool all) {
    mutation_result result = {.name = ""};
    const char *tag = mutation_tag(name);
    snprintf(result.name, sizeof result.name, "mutate=#%u,races=off,sums=off", (unsigned)number);
    bool good = tag && mutation_run(result.name, all ? NULL : tag, all, &result) && result.finished && result.found;
    const char *text = !tag               ? "no test is meant to find it: add it to mutation_meant"
                       : !result.finished ? "the suite did not come to its end"
                       : result.found     ? result.failed
                                          : "no test failed";
    printf("%s #%u %s (%s): %.*s\n", good ? "found    " : "NOT FOUND", (unsigned)number, name, tag ? tag : "",
           (int)(all ? strlen(text) : strcspn(text, "\n")), text);
    (void)fflush(stdout);
    return good;
}

/* Entries of the list here that the simulator does not know (any more). */
static int mutation_stale(char (*names)[64], uint32_t count) {
    int stale = 0;
    for (size_t i = 0; i < MUTATION_MEANT; ++i) {
        bool known = false;
        for (uint32_t k = 1; k <= count && !known; ++k) known = strcmp(names[k], mutation_meant[i].name) == 0;
        if (!known) printf("the simulator knows no fault '%s'\n", mutation_meant[i].name);
        stale += !known;
    }
    return stale;
}

/* Without an argument all of them; with a number that one, and every test that finds it. */
int main(int argc, char **argv) {
    static char names[MUTATION_MOST][64];
    uint32_t count = mutation_count(), found = 0, first = 1, last = count;
    mutation_result none = {.name = "none"};
    if (argc == 2) first = last = (uint32_t)strtoul(argv[1], NULL, 10);
    if (!first || last > count || count < 30 || !mutation_read_names(names, count)) {
        printf("the simulator counts %u faults and does not list them, or has no such one\n", (unsigned)count);
        return 1;
    }
    int failures = mutation_stale(names, count);
    if (argc < 2 && (!mutation_run("races=off,sums=off", NULL, true, &none) || !none.finished || none.found)) {
        printf("FAILED without a fault: %s\n", none.finished ? none.failed : "the suite did not come to its end");
        failures++;
    }
    for (uint32_t i = first; i <= last; ++i) found += mutation_try(i, names[i], argc == 2);
    printf("%u of %u faults are found\n", (unsigned)found, (unsigned)(last - first + 1u));
    return failures || found != last - first + 1u;
}
