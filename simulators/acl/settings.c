/* SPDX-License-Identifier: Apache-2.0
 *
 * What the environment sets (RONDO_ACL_ and a name), and the table through which a program asks and sets. */
#include "sim.h"

sim_state sim = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static const struct {
    const char *name;
    size_t offset;
    int64_t value;
} settings_table[] = {
#define SIM_X(field, name, value) {name, offsetof(sim_settings, field), value},
    SIM_SETTINGS(SIM_X)
#undef SIM_X
};
#define SETTINGS_COUNT (sizeof settings_table / sizeof settings_table[0])

static int64_t *settings_field(size_t index) {
    return (int64_t *)(void *)((char *)&sim.settings + settings_table[index].offset);
}

static void settings_write_counts(void) {
    const char *path = getenv("RONDO_ACL_COUNTS");
    FILE *file = path && *path ? fopen(path, "w") : NULL;
    if (!file) return;
    static const char *const names[] = {
#define ACL_CALL(header, group, result, name, arguments) #name,
#define ACL_REFUSED(header, result, name, arguments) #name,
#include "abi.def"
        "alloc", "replays"};
    for (int i = 0; i < SIM_CALL_COUNT; i++)
        if (sim_count(i)) (void)fprintf(file, "%s %llu\n", names[i], (unsigned long long)sim_count(i));
    (void)fclose(file);
}

__attribute__((constructor)) static void settings_read(void) {
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        char variable[64];
        (void)snprintf(variable, sizeof variable, "RONDO_ACL_%s", settings_table[i].name);
        const char *text = getenv(variable);
        char *end = NULL;
        long long value = text && *text ? strtoll(text, &end, 0) : 0;
        *settings_field(i) = end && !*end && value >= 0 ? value : settings_table[i].value;
        if (end && (*end || value < 0)) (void)fprintf(stderr, "acl simulator: %s=%s is no number\n", variable, text);
    }
    if (sim.settings.devices > SIM_DEVICES) sim.settings.devices = SIM_DEVICES;
    sim_fault_parse(getenv("RONDO_ACL_FAIL"));
    const char *counts = getenv("RONDO_ACL_COUNTS");
    if (counts && *counts) (void)atexit(settings_write_counts);
}

/* --------------------------------------------------------------------------------------------------- the control */

static uint64_t control_count(const char *name) {
    int call = sim_call_find(name);
    return call < 0 ? UINT64_MAX : sim_count(call);
}

static int32_t control_set(const char *name, int64_t value) {
    for (size_t i = 0; name && i < SETTINGS_COUNT; i++) {
        if (strcmp(settings_table[i].name, name) != 0) continue;
        sim_lock();
        *settings_field(i) = value;
        if (sim.settings.devices > SIM_DEVICES) sim.settings.devices = SIM_DEVICES;
        sim_unlock();
        return 0;
    }
    return -1;
}

static uint64_t control_of(const char *name) {
    int64_t hardware = 0, notifies = 0;
    for (int i = 0; i < SIM_DEVICES; i++) {
        hardware += sim.devices[i].hardware_streams;
        notifies += sim.devices[i].notifies;
    }
    if (strcmp(name, "streams") == 0) return sim_object_count(SIM_STREAM);
    if (strcmp(name, "events") == 0) return sim_object_count(SIM_EVENT);
    if (strcmp(name, "models") == 0) return sim_object_count(SIM_MODEL);
    if (strcmp(name, "contexts") == 0) return sim_object_count(SIM_CONTEXT);
    if (strcmp(name, "memory") == 0) return sim_memory_bytes(SIM_MEMORY_DEVICE);
    if (strcmp(name, "host") == 0) return sim_memory_bytes(SIM_MEMORY_PINNED);
    if (strcmp(name, "blocks") == 0) return sim_memory_blocks();
    if (strcmp(name, "notifies") == 0) return (uint64_t)notifies;
    if (strcmp(name, "hardware_streams") == 0) return (uint64_t)hardware;
    return UINT64_MAX;
}

static uint64_t control_alive(const char *name) {
    if (!name) return UINT64_MAX;
    sim_lock();
    uint64_t value = control_of(name);
    sim_unlock();
    return value;
}

static const aclsim_control control_table = {.struct_size = sizeof(aclsim_control),
                                             .count = control_count,
                                             .clear_counts = sim_count_clear,
                                             .fail = sim_fault_set,
                                             .set = control_set,
                                             .alive = control_alive};

const void *sim_control(void) { return &control_table; }
