/* SPDX-License-Identifier: Apache-2.0
 *
 * What a device says of itself, and what the registry says of it. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "conf.h"

static void device_properties(conf *t) {
    const rondo_device_properties *p = t->properties;
    size_t type = strcspn(t->device_name, ":");
    WANT(t, strlen(p->name) == type && memcmp(p->name, t->device_name, type) == 0, "it calls itself '%s', not '%.*s'",
         p->name, (int)type, t->device_name);
    for (const char *c = p->name; *c; ++c)
        WANT(t, islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_', "'%s' is no type name", p->name);
    int index = 0;
    if (t->device_name[type] == ':') (void)sscanf(t->device_name + type + 1, "%d", &index);
    WANT(t, p->index == index, "'%s' says that its index is %d", t->device_name, (int)p->index);
    WANT(t, p->description[0], "it has no description");
    WANT(t, p->allocation_alignment && (p->allocation_alignment & (p->allocation_alignment - 1u)) == 0,
         "an alignment of %llu bytes is no power of two", (unsigned long long)p->allocation_alignment);
    WANT(t, p->allocation_alignment >= 16, "an alignment of %llu bytes is below that of any 16-byte type",
         (unsigned long long)p->allocation_alignment);
    WANT(t, p->dlpack_type > 0, "%d is no DLPack device type", (int)p->dlpack_type);
    WANT(t, !(p->capabilities & RONDO_DEVICE_TREES_CAPABLE) || (p->capabilities & RONDO_DEVICE_GRAPH_CAPABLE),
         "it offers trees without graphs");
    WANT(t, rondo_device_info(t->device) == p, "its properties move");
    WANT(t, rondo_device_instance(t->device) == t->instance, "it belongs to another instance");
}

static void device_default_stream(conf *t) {
    rondo_stream *stream = rondo_stream_default(t->device);
    WANT(t, stream && stream == rondo_stream_default(t->device), "there is no one default stream");
    WANT(t, rondo_stream_device(stream) == t->device, "the default stream belongs to another device");
    conf_want_usable(t, stream, "the default stream");
}

static void device_memory_info(conf *t) {
    uint64_t free = 0, total = 0;
    WANT_OK(t, rondo_device_memory_info(t->device, &free, &total));
    WANT(t, total > 0 && free <= total, "%llu of %llu bytes are free", (unsigned long long)free,
         (unsigned long long)total);
    WANT(t, !t->properties->memory_total || t->properties->memory_total == total,
         "its properties say %llu bytes, memory_info says %llu", (unsigned long long)t->properties->memory_total,
         (unsigned long long)total);
}

static void device_memory_info_moves(conf *t) {
    uint64_t before = 0, during = 0, total = 0, size;
    WANT_OK(t, rondo_device_memory_info(t->device, &before, &total));
    size = total / 8;
    void *memory = conf_memory(t, size);
    WANT_OK(t, rondo_device_memory_info(t->device, &during, &total));
    WANT(t, during + size - size / 16 <= before, "%llu bytes were free, %llu are after an allocation of %llu",
         (unsigned long long)before, (unsigned long long)during, (unsigned long long)size);
    conf_drop(t, memory);
    conf_reopen(t, t->settings);
    WANT_OK(t, rondo_device_memory_info(t->device, &during, &total));
    WANT(t, during + size / 16 >= before, "closing the device gave back only %llu of %llu bytes",
         (unsigned long long)during, (unsigned long long)before);
}

static void device_open_twice(conf *t) {
    rondo_device *again = NULL;
    WANT_OK(t, rondo_device_open(t->instance, t->device_name, t->settings, &again));
    conf_keep(t, CONF_DEVICE, again);
    WANT(t, again == t->device, "a second open gave another device");
    WANT_OK(t, rondo_device_open(t->instance, t->device_name, NULL, &again));
    conf_keep(t, CONF_DEVICE, again);
    WANT(t, again == t->device, "a second open without settings gave another device");
    WANT_CODE(t, rondo_device_open(t->instance, t->device_name, "conformance=other", &again), ALREADY_EXISTS);
    conf_want_usable(t, conf_stream(t), "opening twice");
}

static void device_unknown_setting(conf *t) {
    rondo_device *other = NULL;
    rondo_device_release(t->device);
    t->device = NULL;
    rondo_status status = rondo_device_open(t->instance, t->device_name, "conformance_knows_no_such_key=1", &other);
    if (!status) t->device = other;
    WANT_CODE(t, status, INVALID_ARGUMENT);
}

/* A device can be closed and opened for ever; each time it is new. */
static void device_reopen(conf *t) {
    uint64_t before = 0, after = 0, total = 0;
    bool own = !(t->properties->capabilities & RONDO_DEVICE_HOST_ADDRESSABLE);
    WANT_OK(t, rondo_device_memory_info(t->device, &before, &total));
    for (int i = 0; i < 20; ++i) {
        rondo_stream *stream = conf_stream(t);
        void *memory = conf_memory(t, 1u << 20);
        conf_iota(t, stream, memory, 100, (uint64_t)i);
        conf_want64(t, stream, memory, 100, (uint64_t)i, 1, "after opening again");
        conf_reopen(t, t->settings);
    }
    WANT_OK(t, rondo_device_memory_info(t->device, &after, &total));
    WANT(t, !own || after + (1u << 20) >= before, "%llu bytes were free, after 20 openings %llu are",
         (unsigned long long)before, (unsigned long long)after);
}

/* Allocations do not hold a device: what is left goes with it. */
static void device_close_frees(conf *t) {
    uint64_t before = 0, after = 0, total = 0, bytes = 0, count = 0;
    bool own = !(t->properties->capabilities & RONDO_DEVICE_HOST_ADDRESSABLE);
    WANT_OK(t, rondo_device_memory_info(t->device, &before, &total));
    for (int i = 0; i < 8; ++i) {
        void *memory = NULL;
        WANT_OK(t, rondo_memory_allocate(t->device, 3u << 20, &memory));
        WANT_OK(t, rondo_memory_host_allocate(t->device, 4096, &memory));
    }
    conf_reopen(t, t->settings);
    rondo_memory_usage(t->device, &bytes, &count);
    WANT(t, count == 0, "%llu allocations live on in a device that was opened again", (unsigned long long)count);
    WANT_OK(t, rondo_device_memory_info(t->device, &after, &total));
    WANT(t, !own || after + (1u << 20) >= before, "closing freed too little: %llu bytes were free, %llu are",
         (unsigned long long)before, (unsigned long long)after);
}

static bool device_count_of(conf *t, const char *name, uint64_t *out_value) {
    rondo_status status = rondo_device_counter(t->device, name, out_value);
    if (rondo_status_code(status) == RONDO_CODE_NOT_FOUND) {
        rondo_status_release(status);
        return false;
    }
    WANT_OK(t, status);
    return true;
}

/* A backend may keep counts; those that it keeps are right. */
static void device_counters(conf *t) {
    static const char *const names[] = {"launches", "copies", "fills", "host_calls", "synchronizes"};
    static const uint64_t wanted[] = {3, 2, 4, 1, 1};
    rondo_stream *stream = conf_stream(t);
    uint64_t before[5], after = 0;
    bool has[5];
    uint32_t *called = conf_host(t, sizeof *called);
    for (int i = 0; i < 4; ++i)
        WANT(t, !device_count_of(t, names[i], &after) || after == 0, "'%s' is %llu from the start", names[i],
             (unsigned long long)after);
    void *memory = conf_memory(t, 64), *other = conf_memory(t, 64);
    (void)conf_kernel(t, CONF_IOTA);
    for (int i = 0; i < 5; ++i) has[i] = device_count_of(t, names[i], &before[i]);
    for (uint64_t i = 0; i < 3; ++i) conf_iota(t, stream, memory, 8, i);
    for (int i = 0; i < 2; ++i) WANT_OK(t, rondo_stream_copy(stream, other, memory, 64, RONDO_COPY_DEVICE_TO_DEVICE));
    for (int i = 0; i < 4; ++i) WANT_OK(t, rondo_stream_fill(stream, memory, 1, 64));
    WANT_OK(t, rondo_stream_host_call(stream, conf_count_call, called));
    conf_sync(t, stream);
    for (int i = 0; i < 5; ++i) {
        if (!has[i]) continue;
        WANT_OK(t, rondo_device_counter(t->device, names[i], &after));
        WANT(t, after - before[i] == wanted[i], "'%s' went up by %llu, not %llu", names[i],
             (unsigned long long)(after - before[i]), (unsigned long long)wanted[i]);
    }
    WANT_CODE(t, rondo_device_counter(t->device, "conformance_knows_no_such_count", &after), NOT_FOUND);
}

/* Two devices of a type share nothing. */
static void device_two(conf *t) {
    rondo_device *other = conf_second_device(t);
    rondo_stream *stream = rondo_stream_default(other);
    WANT(t, other != t->device && rondo_device_info(other)->index != t->properties->index, "two devices are one");
    void *mine = conf_memory(t, 4096), *theirs = conf_memory_on(t, other, 4096);
    WANT(t, mine != theirs || !(t->properties->capabilities & RONDO_DEVICE_HOST_ADDRESSABLE),
         "two devices share memory");
    WANT_OK(t, rondo_stream_fill(stream, theirs, 0x5a, 4096));
    WANT_OK(t, rondo_stream_synchronize(stream));
    conf_want64(t, rondo_stream_default(t->device), mine, 512, 0, 0, "this device, after work on the other");
    WANT_CODE(t, rondo_memory_free(t->device, theirs), INVALID_ARGUMENT);
}

/* ------------------------------------------------------------------------------------------------- the registry */

static void registry_types(conf *t) {
    bool found = false;
    const char *type;
    uint32_t count = 0;
    for (uint32_t i = 0; (type = rondo_device_type_at(t->instance, i)); ++i) {
        WANT(t, type[0], "type %u has no name", (unsigned)i);
        WANT(t, rondo_device_type_description(t->instance, type), "type '%s' has no description", type);
        for (uint32_t k = 0; k < i; ++k)
            WANT(t, strcmp(type, rondo_device_type_at(t->instance, k)) != 0, "type '%s' is there twice", type);
        found |= strcmp(type, t->properties->name) == 0;
    }
    WANT(t, found, "type '%s' is not in the registry", t->properties->name);
    WANT_OK(t, rondo_device_type_count(t->instance, t->properties->name, &count));
    WANT(t, (uint32_t)t->properties->index < count, "device %d of %u", (int)t->properties->index, (unsigned)count);
    WANT(t, !rondo_device_type_description(t->instance, "conformance_none"), "an unknown type has a description");
    WANT_CODE(t, rondo_device_type_count(t->instance, "conformance_none", &count), NOT_FOUND);
}

static void registry_names(conf *t) {
    rondo_device *device = NULL;
    char name[96];
    WANT_CODE(t, rondo_device_open(t->instance, "conformance_none", NULL, &device), NOT_FOUND);
    WANT_CODE(t, rondo_device_open(t->instance, "", NULL, &device), INVALID_ARGUMENT);
    snprintf(name, sizeof name, "%s:", t->properties->name);
    WANT_CODE(t, rondo_device_open(t->instance, name, NULL, &device), INVALID_ARGUMENT);
    snprintf(name, sizeof name, "%s:x", t->properties->name);
    WANT_CODE(t, rondo_device_open(t->instance, name, NULL, &device), INVALID_ARGUMENT);
    snprintf(name, sizeof name, "%s:4000", t->properties->name);
    WANT_CODE(t, rondo_device_open(t->instance, name, NULL, &device), OUT_OF_RANGE);
}

static void registry_graph_known(conf *t) {
    bool has = false, claims = (t->properties->capabilities & RONDO_DEVICE_GRAPH_CAPABLE) != 0;
    WANT_OK(t, rondo_device_has_graph_impl(t->instance, t->properties->name, &has));
    WANT(t, has == claims, "the registry says %s to graphs, the device %s", has ? "yes" : "no", claims ? "yes" : "no");
    rondo_graph *graph = NULL;
    rondo_status status = rondo_graph_create(t->device, NULL, &graph);
    if (graph) conf_keep(t, CONF_GRAPH, graph);
    if (claims) WANT_OK(t, status);
    else WANT_CODE(t, status, UNSUPPORTED);
}

static void registry_graph_unknown(conf *t) {
    bool has = true;
    WANT_CODE(t, rondo_device_has_graph_impl(t->instance, "conformance_none", &has), NOT_FOUND);
    WANT_CODE(t, rondo_device_has_graph_impl(t->instance, "", &has), NOT_FOUND);
}

/* Null asks for the current accelerator: the first type that has a device and is not the CPU. */
static void registry_graph_current(conf *t) {
    const char *current = NULL, *type;
    bool has = false, wanted = false;
    for (uint32_t i = 0; !current && (type = rondo_device_type_at(t->instance, i)); ++i) {
        uint32_t count = 0;
        rondo_status status = rondo_device_type_count(t->instance, type, &count);
        if (!status && count && strcmp(type, "cpu") != 0) current = type;
        rondo_status_release(status);
    }
    if (!current) {
        WANT_CODE(t, rondo_device_has_graph_impl(t->instance, NULL, &has), NOT_FOUND);
        return;
    }
    WANT_OK(t, rondo_device_has_graph_impl(t->instance, current, &wanted));
    WANT_OK(t, rondo_device_has_graph_impl(t->instance, NULL, &has));
    WANT(t, has == wanted, "the current accelerator is '%s', and null answers otherwise", current);
}

/* Whatever is registered and has no graphs is false, not an error. */
static void registry_graph_every_type(conf *t) {
    const char *type;
    for (uint32_t i = 0; (type = rondo_device_type_at(t->instance, i)); ++i) {
        bool has = false;
        uint32_t count = 0;
        rondo_device *device = NULL;
        WANT_OK(t, rondo_device_has_graph_impl(t->instance, type, &has));
        rondo_status status = rondo_device_type_count(t->instance, type, &count);
        rondo_status_release(status);
        if (status || !count || strcmp(type, t->properties->name) == 0) continue;
        if ((status = rondo_device_open(t->instance, type, NULL, &device))) {
            rondo_status_release(status); /* a device that is busy elsewhere is not what this is about */
            continue;
        }
        conf_keep(t, CONF_DEVICE, device);
        WANT(t, has == ((rondo_device_info(device)->capabilities & RONDO_DEVICE_GRAPH_CAPABLE) != 0),
             "type '%s': the registry says %s to graphs, and its device otherwise", type, has ? "yes" : "no");
    }
}

static const conf_test tests[] = {
    {{"device.properties", "device", "Properties are sane, constant, and those of the device that was named."},
     0,
     device_properties},
    {{"device.default_stream", "device stream", "There is one default stream, and it works."},
     0,
     device_default_stream},
    {{"device.memory_info", "device memory", "Free bytes are at most the total, which is that of the properties."},
     CONF_NEEDS_MEMORY_INFO,
     device_memory_info},
    {{"device.memory_info_moves", "device memory",
      "Allocations take from the free bytes, and closing gives them back."},
     CONF_NEEDS_OWN_MEMORY,
     device_memory_info_moves},
    {{"device.open_twice", "device", "A device is opened once; other settings are refused."}, 0, device_open_twice},
    {{"device.unknown_setting", "device", "A setting that nobody knows is refused."}, 0, device_unknown_setting},
    {{"device.reopen", "device", "A device can be closed and opened again, and loses nothing on the way."},
     CONF_NEEDS_MEMORY_INFO,
     device_reopen},
    {{"device.close_frees", "device memory", "Closing frees the allocations that are left."},
     CONF_NEEDS_MEMORY_INFO,
     device_close_frees},
    {{"device.counters", "device", "The counts that a backend keeps are right, others are not found."},
     CONF_NEEDS_HOST_CALLS,
     device_counters},
    {{"device.two", "device", "Two devices of a type share nothing."}, CONF_NEEDS_TWO_DEVICES, device_two},
    {{"registry.types", "registry", "The device's type is registered once, described and counted."}, 0, registry_types},
    {{"registry.names", "registry", "Names of no device are refused with the right code."}, 0, registry_names},
    {{"registry.graph_known", "registry graph",
      "has_graph_impl says what the device says, and graphs can be made accordingly."},
     0,
     registry_graph_known},
    {{"registry.graph_unknown", "registry graph", "An unknown type is an error."}, 0, registry_graph_unknown},
    {{"registry.graph_current", "registry graph",
      "Null asks for the current accelerator, and is an error when there is none."},
     0,
     registry_graph_current},
    {{"registry.graph_every_type", "registry graph", "A known type without an implementation is false, not an error."},
     0,
     registry_graph_every_type},
};
CONF_SUITE(conf_suite_device, tests);
