/* SPDX-License-Identifier: Apache-2.0
 *
 * Instances: what the options do, two of them side by side, and what lives as long as what. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/instance.h"
#include "device/device.h"
#include "harness/harness.h"

/* Counts what it gives out, and checks that it is freed with the size it was allocated with. */
typedef struct purse {
    rondo_allocator inner;
    uint64_t bytes, blocks;
    bool wrong;
} purse;

static void *purse_reallocate(void *self, void *pointer, size_t old_size, size_t new_size, size_t alignment) {
    purse *p = self;
    void *result = p->inner.reallocate(p->inner.self, pointer, old_size, new_size, alignment);
    if (new_size && !result) return NULL;
    if ((pointer == NULL) != (old_size == 0) || p->bytes < old_size) p->wrong = true;
    p->bytes = p->bytes - old_size + new_size;
    p->blocks = p->blocks + (pointer == NULL) - (new_size == 0);
    return result;
}

typedef struct notes {
    char text[1024];
} notes;

static void take_line(void *user, rondo_log_level level, const char *text) {
    notes *n = user;
    size_t used = strlen(n->text);
    (void)snprintf(n->text + used, sizeof n->text - used, "%d:%s\n", (int)level, text);
}

static void test_options(rondo_test *t) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    rondo_instance *instance = NULL;
    rondo_allocator nothing = {0};
    const char *missing = "/nowhere/plugin.so";
    T_FAILS(t, rondo_instance_create(NULL, NULL), INVALID_ARGUMENT, NULL);
    options.struct_size = 0;
    T_FAILS(t, rondo_instance_create(&options, &instance), INVALID_ARGUMENT, "struct_size");
    options.struct_size = sizeof options;
    options.plugin_count = 1;
    T_FAILS(t, rondo_instance_create(&options, &instance), INVALID_ARGUMENT, "count 1 plugins and list none");
    options.plugins = &missing;
    T_FAILS(t, rondo_instance_create(&options, &instance), NOT_FOUND, "plugin '/nowhere/plugin.so'");
    options.plugin_count = 0;
    options.allocator = &nothing;
    T_FAILS(t, rondo_instance_create(&options, &instance), INVALID_ARGUMENT, "allocator");
    options.struct_size = 8; /* from a time when there was no allocator to name */
    T_OK(t, rondo_instance_create(&options, &instance));
    rondo_instance_retain(instance);
    rondo_instance_release(instance);
    rondo_instance_release(instance);
    rondo_instance_release(NULL);
    rondo_instance_retain(NULL);
    T_STR(t, rondo_version(), RONDO_VERSION_STRING);
}

static void test_everything_goes_through_the_allocator(rondo_test *t) {
    purse p = {*rondo_test_allocator(t), 0, 0, false};
    rondo_allocator allocator = {&p, purse_reallocate};
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    rondo_instance *instance = NULL;
    rondo_device *device = NULL;
    rondo_kernel kernel;
    void *memory = NULL;
    options.allocator = &allocator;
    options.ignore_plugin_path = 1;
    rondo_status status = rondo_instance_create(&options, &instance);
    if (!status) status = rondo_device_open(instance, "sim", "seed=4", &device);
    if (!status) status = rondo_memory_allocate(device, 100, &memory);
    if (!status) status = rondo_kernel_find(device, "rondo.iota", &kernel);
    if (!status) T_TRUE(t, p.bytes > 100);
    rondo_instance_release(instance); /* the device keeps it */
    rondo_device_release(device);
    T_TRUE(t, !p.wrong);
    T_EQ(t, p.bytes, 0);
    T_EQ(t, p.blocks, 0);
    T_OK(t, status);
}

static void test_two_instances_know_nothing_of_each_other(rondo_test *t) {
    rondo_instance *a = NULL, *b = NULL;
    rondo_device *da = NULL, *db = NULL;
    notes na = {0}, nb = {0};
    uint64_t bytes = 0, count = 0;
    void *memory = NULL;
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    options.allocator = rondo_test_allocator(t);
    options.ignore_plugin_path = 1;
    options.log = take_line;
    options.log_user = &na;
    T_OK(t, rondo_instance_create(&options, &a));
    T_DEFER(t, rondo_instance_release, a);
    options.log_user = &nb;
    T_OK(t, rondo_instance_create(&options, &b));
    T_DEFER(t, rondo_instance_release, b);
    T_OK(t, rondo_device_open(a, "sim", "seed=1", &da));
    rondo_status status = rondo_device_open(b, "sim", "seed=2", &db); /* other settings: another device */
    if (!status) status = rondo_memory_allocate(da, 10, &memory);
    if (!status) {
        T_TRUE(t, da != db && rondo_device_instance(da) == a && rondo_device_instance(db) == b);
        rondo_memory_usage(db, &bytes, &count);
        T_EQ(t, bytes, 0);
    }
    rondo_device_release(da);
    rondo_device_release(db);
    T_OK(t, status);
    T_STR(t, nb.text, "");
    T_TRUE(t, rondo_test_failing(t) || strstr(na.text, "1:device 'sim' closes with 1 allocations of 10 bytes") != NULL);
}

static void test_lines_above_the_level_are_dropped(rondo_test *t) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    rondo_instance *instance = NULL;
    notes n = {0};
    options.allocator = rondo_test_allocator(t);
    options.ignore_plugin_path = 1;
    options.log = take_line;
    options.log_user = &n;
    options.log_level = RONDO_LOG_ERROR;
    T_OK(t, rondo_instance_create(&options, &instance));
    T_DEFER(t, rondo_instance_release, instance);
    rondo__registry *registry = rondo__instance_registry(instance);
    registry->host_api.log(registry->host_api.host, RONDO_LOG_WARNING, "no");
    registry->host_api.log(registry->host_api.host, RONDO_LOG_ERROR, "yes");
    T_STR(t, n.text, "0:yes\n");
    T_TRUE(t, rondo__instance_base_of(instance)->log.level == RONDO_LOG_ERROR);
}

static void test_the_plugin_path(rondo_test *t) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    rondo_instance *instance = NULL;
    notes n = {0};
    options.allocator = rondo_test_allocator(t);
    options.log = take_line;
    options.log_user = &n;
    T_EQ(t, setenv("RONDO_PLUGIN_PATH", "/nowhere/a.so:/nowhere/b", 1), 0);
    rondo_status status = rondo_instance_create(&options, &instance);
    if (!status) rondo_instance_release(instance);
    bool told = strstr(n.text, "/nowhere/a.so") != NULL && strstr(n.text, "/nowhere/b") != NULL;
    n.text[0] = 0;
    options.ignore_plugin_path = 1;
    if (!status) status = rondo_instance_create(&options, &instance);
    if (!status) rondo_instance_release(instance);
    T_EQ(t, unsetenv("RONDO_PLUGIN_PATH"), 0);
    T_OK(t, status);
    T_TRUE(t, told || rondo_test_failing(t));
    T_STR(t, n.text, "");
}

static void *worker_run(void *argument) {
    int *failures = argument;
    for (int i = 0; i < 20; i++) {
        rondo_instance *instance = NULL;
        rondo_device *a = NULL, *b = NULL;
        rondo_status status = rondo_instance_create(NULL, &instance);
        if (!status) status = rondo_device_open(instance, "cpu", NULL, &a);
        if (!status) status = rondo_device_open(instance, "sim:1", NULL, &b);
        rondo_instance_release(instance);
        rondo_device_release(a);
        rondo_device_release(b);
        if (status) ++*failures;
        rondo_status_release(status);
    }
    return NULL;
}

static void test_instances_of_several_threads(rondo_test *t) {
    pthread_t threads[4];
    int failures[4] = {0};
    for (int i = 0; i < 4; i++) T_EQ(t, pthread_create(&threads[i], NULL, worker_run, &failures[i]), 0);
    for (int i = 0; i < 4; i++) (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) T_EQ(t, failures[i], 0);
}

RONDO_TEST_MAIN(T(test_options), T(test_everything_goes_through_the_allocator),
                T(test_two_instances_know_nothing_of_each_other), T(test_lines_above_the_level_are_dropped),
                T(test_the_plugin_path), T_PLAIN(test_instances_of_several_threads))
