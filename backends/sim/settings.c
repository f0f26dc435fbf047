/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked for when a device is opened: "key=value,key=value", and two variables of the environment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mutations.h"
#include "sim.h"

#define RONDO__SIM_SEED_VARIABLE "RONDO_SIM_SEED"
#define RONDO__SIM_FAIL_VARIABLE "RONDO_SIM_FAIL"
#define RONDO__SIM_NAME_MAX 64u

/* A part of the text of settings. */
typedef struct sim_text {
    const char *data;
    size_t length;
} sim_text;

static bool sim_text_is(sim_text text, const char *word) {
    return text.length == strlen(word) && memcmp(text.data, word, text.length) == 0;
}

/* For messages. */
static int sim_text_width(sim_text text) {
    return (int)(text.length < RONDO__SIM_NAME_MAX ? text.length : RONDO__SIM_NAME_MAX);
}

/* Cuts off what is in front of the first `end`, and the end itself. */
static sim_text sim_text_take(sim_text *text, char end) {
    const char *found = text->length ? memchr(text->data, end, text->length) : NULL;
    sim_text part = {text->data, found ? (size_t)(found - text->data) : text->length};
    size_t gone = part.length + (found != NULL);
    *text = (sim_text){text->data + gone, text->length - gone};
    return part;
}

/* The decimal number that is exactly the text. */
static bool sim_parse_number(sim_text text, uint64_t *out_number) {
    uint64_t number = 0;
    if (!text.length) return false;
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') return false;
        if (__builtin_mul_overflow(number, (uint64_t)10, &number)) return false;
        if (__builtin_add_overflow(number, (uint64_t)(text.data[i] - '0'), &number)) return false;
    }
    *out_number = number;
    return true;
}

static rondo_status sim_set_number(const rondo_host_api *host, const char *key, sim_text value, uint64_t *target) {
    if (sim_parse_number(value, target)) return RONDO_OK;
    return RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, DRIVER, "sim: setting '%s' needs a whole number", key);
}

static rondo_status sim_set_switch(const rondo_host_api *host, const char *key, sim_text value, bool *target) {
    *target = sim_text_is(value, "on");
    if (*target || sim_text_is(value, "off")) return RONDO_OK;
    return RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, DRIVER, "sim: setting '%s' is 'on' or 'off'", key);
}

/* ------------------------------------------------------------------------------------------------------ faults */

/* As in RONDO_CODES, in small letters. */
static bool sim_parse_code(sim_text text, rondo_code *out_code) {
    static const struct {
        const char *name;
        rondo_code code;
    } codes[] = {
#define RONDO_X(name, number, text, advice) {#name, number},
        RONDO_CODES(RONDO_X)
#undef RONDO_X
    };
    for (size_t i = 1; i < sizeof codes / sizeof codes[0]; i++) {
        size_t length = strlen(codes[i].name), same = 0;
        while (same < length && same < text.length && (codes[i].name[same] | 0x20) == (text.data[same] | 0x20)) same++;
        if (same != length || length != text.length) continue;
        *out_code = codes[i].code;
        return true;
    }
    return false;
}

static rondo_status sim_set_fault(const rondo_host_api *host, sim_text text, rondo__sim_settings *settings) {
    rondo__sim_fault fault = {0, 0, RONDO_CODE_INTERNAL};
    sim_text whole = text, name = sim_text_take(&text, ':'), number = sim_text_take(&text, ':');
    fault.entry = rondo__sim_entry_find(name.data, name.length);
    if (!sim_parse_number(number, &fault.nth) || (text.length && !sim_parse_code(text, &fault.code))) {
        return RONDO_PLUGIN_FAIL(
            host, INVALID_ARGUMENT, DRIVER,
            "sim: setting 'fail': '%.*s' is not ENTRY:N or ENTRY:N:code, as launch:3:out_of_memory",
            sim_text_width(whole), whole.data);
    }
    if (!rondo__sim_entry_fails(fault.entry)) {
        return RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, DRIVER,
                                 "sim: setting 'fail': '%.*s' is no entry of the tables that can fail",
                                 sim_text_width(name), name.data);
    }
    if (settings->fault_count == RONDO__SIM_FAULTS_MAX) {
        return RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, DRIVER, "sim: setting 'fail': more than %u faults",
                                 RONDO__SIM_FAULTS_MAX);
    }
    settings->faults[settings->fault_count++] = fault;
    return RONDO_OK;
}

static rondo_status sim_set_faults(const rondo_host_api *host, sim_text text, rondo__sim_settings *settings) {
    rondo_status status = RONDO_OK;
    settings->fault_count = 0;
    do status = sim_set_fault(host, sim_text_take(&text, '+'), settings);
    while (!status && text.length);
    return status;
}

/* --------------------------------------------------------------------------------------------------- mutations */

static rondo_status sim_no_mutation(const rondo_host_api *host, sim_text value) {
    uint64_t first = 1;
    if (value.length < 2u || value.data[0] != '?' ||
        !sim_parse_number((sim_text){value.data + 1, value.length - 1u}, &first) || !first) {
        first = 1;
    }
    rondo_status status =
        RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, DRIVER, "sim: there is no mutation '%.*s': there are, from #%llu on",
                          sim_text_width(value), value.data, (unsigned long long)first);
    for (uint64_t i = first; i <= RONDO__SIM_MUTATION_LAST; i++) {
        const rondo__sim_mutation *mutation = rondo__sim_mutation_at((int)i);
        status = host->status_note(status, "%s: %s", mutation->name, mutation->sentence);
    }
    return status;
}

static rondo_status sim_set_mutation(const rondo_host_api *host, sim_text value, int *target) {
    uint64_t number = 0;
    if (value.length && value.data[0] == '#' &&
        sim_parse_number((sim_text){value.data + 1, value.length - 1u}, &number) && number >= 1u &&
        number <= (uint64_t)RONDO__SIM_MUTATION_LAST) {
        *target = (int)number;
        return RONDO_OK;
    }
    for (int i = 1; i <= RONDO__SIM_MUTATION_LAST; i++) {
        if (!sim_text_is(value, rondo__sim_mutation_at(i)->name)) continue;
        *target = i;
        return RONDO_OK;
    }
    return sim_no_mutation(host, value);
}

/* --------------------------------------------------------------------------------------------------- the whole */

void rondo__sim_settings_init(rondo__sim_settings *settings) {
    memset(settings, 0, sizeof *settings);
    settings->seed = 1;
    settings->memory = RONDO__SIM_MEMORY;
    settings->races = settings->sums = true;
    settings->mutation = RONDO__SIM_MUTATION_NONE;
}

static rondo_status sim_read_one(const rondo_host_api *host, sim_text key, sim_text value,
                                 rondo__sim_settings *settings) {
    if (sim_text_is(key, "seed")) return sim_set_number(host, "seed", value, &settings->seed);
    if (sim_text_is(key, "memory")) return sim_set_number(host, "memory", value, &settings->memory);
    if (sim_text_is(key, "races")) return sim_set_switch(host, "races", value, &settings->races);
    if (sim_text_is(key, "sums")) return sim_set_switch(host, "sums", value, &settings->sums);
    if (sim_text_is(key, "fail")) return sim_set_faults(host, value, settings);
    if (sim_text_is(key, "mutate")) return sim_set_mutation(host, value, &settings->mutation);
    return RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, DRIVER,
                             "sim: there is no setting '%.*s': there are 'seed', 'memory', 'races', 'sums', 'fail' and "
                             "'mutate'",
                             sim_text_width(key), key.data);
}

static rondo_status sim_read_environment(const rondo_host_api *host, rondo__sim_settings *settings) {
    const char *seed = getenv(RONDO__SIM_SEED_VARIABLE), *fail = getenv(RONDO__SIM_FAIL_VARIABLE);
    if (seed && !sim_parse_number((sim_text){seed, strlen(seed)}, &settings->seed)) {
        return RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, DRIVER,
                                 "sim: the environment variable " RONDO__SIM_SEED_VARIABLE " needs a whole number");
    }
    if (!fail || !*fail) return RONDO_OK;
    rondo_status status = sim_set_faults(host, (sim_text){fail, strlen(fail)}, settings);
    return status ? host->status_note(status, "from the environment variable " RONDO__SIM_FAIL_VARIABLE) : RONDO_OK;
}

rondo_status rondo__sim_settings_read(const rondo_host_api *host, const char *text, rondo__sim_settings *settings) {
    sim_text rest = {text, text ? strlen(text) : 0};
    rondo_status status = sim_read_environment(host, settings);
    while (!status && rest.length) {
        sim_text value = sim_text_take(&rest, ','), key = sim_text_take(&value, '=');
        status = sim_read_one(host, key, value, settings);
    }
    return status;
}
