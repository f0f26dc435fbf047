/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices of a backend that the test brings itself: opened once, closed once, refused when their tables have holes; and
 * what the core does where the backend leaves optional entries out. */
#include "device/device.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "harness/harness.h"

/* ------------------------------------------------------------------------------------------------ the fake backend */

typedef struct fake {
    const rondo_host_api *host;
    rondo_backend_table backend_table;
    rondo_backend backend;
    rondo_plugin_api api;
    rondo_device_table device;
    rondo_memory_table memory;
    rondo_stream_table stream;
    int opens, closes, creates, destroys, allocations;
    bool crowded, unavailable, fail_synchronize, no_device;
    uint64_t alignment;
    const char *catalogues[12];
    char log[512]; /* one letter a stream entry */
    size_t logged;
} fake;

static fake the_fake;

static void fake_note(char what) {
    fake *f = &the_fake;
    if (f->logged + 1 < sizeof f->log) f->log[f->logged++] = what;
    f->log[f->logged] = 0;
}

static rondo_status fake_enumerate(void *self, uint32_t *out_count) {
    const fake *f = self;
    if (f->unavailable) return RONDO_PLUGIN_FAIL(f->host, UNAVAILABLE, DRIVER, "fake: the driver is not installed");
    *out_count = f->no_device ? 0 : 2;
    return RONDO_OK;
}

static rondo_status fake_open(void *self, uint32_t index, const char *settings, const rondo_device_table **out_table,
                              void **out_device) {
    fake *f = self;
    (void)index;
    if (settings && strcmp(settings, "bad") == 0) {
        return RONDO_PLUGIN_FAIL(f->host, INVALID_ARGUMENT, DRIVER, "fake: there is no setting 'bad'");
    }
    void *device = f->host->allocator.reallocate(f->host->allocator.self, NULL, 0, 16, 0);
    if (!device) return RONDO_PLUGIN_FAIL(f->host, OUT_OF_MEMORY, DRIVER, "fake: no memory");
    f->opens++;
    *out_table = &f->device;
    *out_device = device;
    return RONDO_OK;
}

static void fake_close(void *device) {
    the_fake.closes++;
    (void)the_fake.host->allocator.reallocate(the_fake.host->allocator.self, device, 16, 0, 0);
}

static rondo_status fake_properties(void *device, rondo_device_properties *out) {
    (void)device;
    (void)snprintf(out->name, sizeof out->name, "fake");
    out->allocation_alignment = the_fake.alignment;
    return RONDO_OK;
}

static rondo_status fake_memory_info(void *device, uint64_t *out_free, uint64_t *out_total) {
    (void)device;
    *out_free = 1;
    *out_total = 2;
    return RONDO_OK;
}

static const char *fake_catalogue_at(void *device, uint32_t index) {
    (void)device;
    return index < 12 ? the_fake.catalogues[index] : NULL;
}

static rondo_status fake_allocate(void *device, uint64_t size, uint64_t *out_address) {
    (void)device, (void)size;
    *out_address = (uint64_t)__atomic_add_fetch(&the_fake.allocations, 1, __ATOMIC_RELAXED) << 20;
    return RONDO_OK;
}

static void fake_free(void *device, uint64_t address, uint64_t size) { (void)device, (void)address, (void)size; }

static rondo_status fake_create(void *device, uint32_t flags, int32_t priority, void **out_stream) {
    const rondo_allocator *allocator = &the_fake.host->allocator;
    (void)device, (void)flags, (void)priority;
    int *stream = allocator->reallocate(allocator->self, NULL, 0, sizeof *stream, 0);
    if (!stream) return RONDO_PLUGIN_FAIL(the_fake.host, OUT_OF_MEMORY, DRIVER, "fake: no memory");
    *stream = 0; /* how many are in it */
    (void)__atomic_add_fetch(&the_fake.creates, 1, __ATOMIC_RELAXED);
    *out_stream = stream;
    return RONDO_OK;
}

static void fake_destroy(void *device, void *stream) {
    const rondo_allocator *allocator = &the_fake.host->allocator;
    (void)device;
    (void)__atomic_add_fetch(&the_fake.destroys, 1, __ATOMIC_RELAXED);
    (void)allocator->reallocate(allocator->self, stream, sizeof(int), 0, 0);
}

static rondo_status fake_launch(void *stream, const rondo_call *call) {
    (void)stream;
    fake_note('l');
    uint64_t words[RONDO_ARGUMENT_MAX];
    for (uint32_t i = 0; i < call->argument_count; i++) words[i] = call->arguments[i].word;
    int32_t reason = call->kernel.function ? call->kernel.function(call->kernel.context, words) : 0;
    if (!reason) return RONDO_OK;
    return RONDO_PLUGIN_FAIL(the_fake.host, KERNEL_FAILED, KERNEL, "fake: reason %d", (int)reason);
}

static rondo_status fake_copy(void *stream, uint64_t to, uint64_t from, uint64_t bytes, rondo_copy_kind kind) {
    (void)stream, (void)to, (void)from, (void)bytes, (void)kind;
    fake_note('c');
    return RONDO_OK;
}

static rondo_status fake_fill(void *stream, uint64_t address, uint8_t value, uint64_t bytes) {
    (void)stream, (void)address, (void)value, (void)bytes;
    fake_note('f');
    return RONDO_OK;
}

static rondo_status fake_host_call(void *stream, rondo_host_function function, void *user) {
    (void)stream;
    fake_note('h');
    return function(user) ? RONDO_PLUGIN_FAIL(the_fake.host, KERNEL_FAILED, KERNEL, "fake: host") : RONDO_OK;
}

/* Two threads at once on one stream show. */
static rondo_status fake_synchronize(void *stream) {
    if (__atomic_add_fetch((int *)stream, 1, __ATOMIC_SEQ_CST) > 1) {
        __atomic_store_n(&the_fake.crowded, true, __ATOMIC_SEQ_CST);
    }
    (void)sched_yield(); /* gives others a chance to come in */
    (void)__atomic_sub_fetch((int *)stream, 1, __ATOMIC_SEQ_CST);
    if (!the_fake.fail_synchronize) return RONDO_OK;
    the_fake.fail_synchronize = false;
    return RONDO_PLUGIN_FAIL(the_fake.host, KERNEL_FAILED, KERNEL, "fake: call 'x' failed");
}

static rondo_status fake_query(void *stream, bool *out_done) {
    (void)stream;
    *out_done = false;
    return RONDO_OK;
}

static rondo_status fake_event_create(void *device, void **out_event) {
    *out_event = device;
    return RONDO_OK;
}

static void fake_event_destroy(void *device, void *event) {
    (void)device, (void)event;
    fake_note('d');
}

static rondo_status fake_event_record(void *event, void *stream) {
    (void)event, (void)stream;
    fake_note('r');
    return RONDO_OK;
}

static rondo_status fake_event_wait(void *event, void *stream) {
    (void)event, (void)stream;
    fake_note('w');
    return RONDO_OK;
}

static rondo_status fake_event_query(void *event, bool *out_done) { return fake_query(event, out_done); }

static rondo_status fake_event_synchronize(void *event) {
    (void)event;
    fake_note('s');
    return RONDO_OK;
}

static rondo_status fake_entry(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api) {
    (void)abi;
    the_fake.host = host;
    *out_api = &the_fake.api;
    return RONDO_OK;
}

static void fake_reset(void) {
    fake *f = &the_fake;
    *f = (fake){0};
    f->alignment = 64;
    f->memory = (rondo_memory_table){.struct_size = sizeof f->memory, .allocate = fake_allocate, .free = fake_free};
    f->stream = (rondo_stream_table){.struct_size = sizeof f->stream,
                                     .create = fake_create,
                                     .destroy = fake_destroy,
                                     .launch = fake_launch,
                                     .copy = fake_copy,
                                     .fill = fake_fill,
                                     .host_call = fake_host_call,
                                     .synchronize = fake_synchronize,
                                     .query = fake_query,
                                     .event_create = fake_event_create,
                                     .event_destroy = fake_event_destroy,
                                     .event_record = fake_event_record,
                                     .event_wait = fake_event_wait,
                                     .event_query = fake_event_query,
                                     .event_synchronize = fake_event_synchronize};
    f->device = (rondo_device_table){.struct_size = sizeof f->device,
                                     .memory = &f->memory,
                                     .stream = &f->stream,
                                     .properties = fake_properties,
                                     .memory_info = fake_memory_info,
                                     .catalogue_at = fake_catalogue_at,
                                     .close = fake_close};
    f->backend_table = (rondo_backend_table){sizeof f->backend_table, 0, "fake", "a fake", fake_enumerate, fake_open};
    f->backend = (rondo_backend){&f->backend_table, f};
    f->api = (rondo_plugin_api){.struct_size = sizeof f->api,
                                .abi = RONDO_PLUGIN_ABI,
                                .name = "fake",
                                .version = "1",
                                .backend_count = 1,
                                .backends = &f->backend};
}

static char lines[1024];

static void take_line(void *user, rondo_log_level level, const char *text) {
    (void)user, (void)level;
    size_t used = strlen(lines);
    (void)snprintf(lines + used, sizeof lines - used, "%s\n", text);
}

static rondo_instance *instance_open(rondo_test *t) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    rondo_instance *instance = NULL;
    fake_reset();
    lines[0] = 0;
    options.allocator = rondo_test_allocator(t);
    options.ignore_plugin_path = 1;
    options.log = take_line;
    T_OK(t, rondo_instance_create(&options, &instance));
    T_DEFER(t, rondo_instance_release, instance);
    T_OK(t, rondo__registry_add(rondo__instance_registry(instance), "fake", fake_entry, NULL));
    return instance;
}

static rondo_device *device_open(rondo_test *t, rondo_instance *instance, const char *name) {
    rondo_device *device = NULL;
    T_OK(t, rondo_device_open(instance, name, NULL, &device));
    T_DEFER(t, rondo_device_release, device);
    return device;
}

/* --------------------------------------------------------------------------------------------------------- opening */

static void test_opened_once(rondo_test *t) {
    rondo_instance *instance = instance_open(t);
    rondo_device *a = device_open(t, instance, "fake"), *b = device_open(t, instance, "fake:0"), *c = NULL;
    rondo_device *other = device_open(t, instance, "fake:1");
    T_TRUE(t, a == b && a != other);
    T_EQ(t, the_fake.opens, 2);
    T_FAILS(t, rondo_device_open(instance, "fake", "x=1", &c), ALREADY_EXISTS, "open with settings ''");
    T_OK(t, rondo_device_open(instance, "fake", "", &c));
    rondo_device_release(c);
    T_EQ(t, the_fake.closes, 0);
    T_TRUE(t, rondo_device_instance(a) == instance);
    T_STR(t, rondo_device_info(a)->name, "fake");
}

static void test_closed_with_the_last_reference(rondo_test *t) {
    rondo_instance *instance = instance_open(t);
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    T_OK(t, rondo_device_open(instance, "fake", "x=1", &device));
    rondo_status status = rondo_stream_create(device, NULL, &stream);
    rondo_device_release(device);
    T_EQ(t, the_fake.closes, status ? 1 : 0); /* the stream holds the device */
    if (!status) rondo_stream_retain(stream);
    rondo_stream_release(stream);
    rondo_stream_release(status ? NULL : stream);
    T_EQ(t, the_fake.closes, 1);
    T_EQ(t, the_fake.creates, the_fake.destroys);
    T_OK(t, status);
    T_OK(t, rondo_device_open(instance, "fake", "x=2", &device)); /* anew, with other settings */
    rondo_stream *own = rondo_stream_default(device);
    rondo_stream_retain(own);
    rondo_device_release(device);
    T_EQ(t, the_fake.closes, 1); /* who keeps the default stream keeps the device */
    rondo_stream_release(own);
    T_EQ(t, the_fake.closes, 2);
}

static void test_names(rondo_test *t) {
    rondo_instance *instance = instance_open(t);
    rondo_device *d = NULL;
    T_FAILS(t, rondo_device_open(instance, "nothing", NULL, &d), NOT_FOUND, "there is no device type 'nothing'");
    T_FAILS(t, rondo_device_open(instance, "nothing", NULL, &d), NOT_FOUND,
            rondo_test_failing(t) ? NULL : "there is 'fake'");
    T_FAILS(t, rondo_device_open(instance, "fake:2", NULL, &d), OUT_OF_RANGE, "type 'fake' has 2 devices");
    T_FAILS(t, rondo_device_open(instance, "fake:99999999999999999999", NULL, &d), OUT_OF_RANGE, "at most");
    T_FAILS(t, rondo_device_open(instance, "fake:", NULL, &d), INVALID_ARGUMENT, "is a number");
    T_FAILS(t, rondo_device_open(instance, "fake:1x", NULL, &d), INVALID_ARGUMENT, "is a number");
    T_FAILS(t, rondo_device_open(instance, "fake:-1", NULL, &d), INVALID_ARGUMENT, "is a number");
    T_FAILS(t, rondo_device_open(instance, "", NULL, &d), INVALID_ARGUMENT, "names no device");
    T_FAILS(t, rondo_device_open(instance, ":1", NULL, &d), INVALID_ARGUMENT, "names no device");
    T_FAILS(t, rondo_device_open(instance, "fake", "bad", &d), INVALID_ARGUMENT, "no setting 'bad'");
    T_FAILS(t, rondo_device_open(NULL, "fake", NULL, &d), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_device_open(instance, NULL, NULL, &d), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_device_open(instance, "fake", NULL, NULL), INVALID_ARGUMENT, NULL);
    the_fake.unavailable = true;
    T_FAILS(t, rondo_device_open(instance, "fake", NULL, &d), UNAVAILABLE, "driver is not installed");
    T_EQ(t, the_fake.opens, 0);
}

typedef struct hole {
    const char *text;
    size_t offset;
} hole;

#define HOLE(field, table) \
    { "'" #field "' of its " #table " table", offsetof(fake, table.field) }

static void test_each_hole_in_a_device_is_named(rondo_test *t) {
    static const hole holes[] = {HOLE(memory, device),       HOLE(stream, device),
                                 HOLE(properties, device),   HOLE(memory_info, device),
                                 HOLE(catalogue_at, device), HOLE(close, device),
                                 HOLE(allocate, memory),     HOLE(free, memory),
                                 HOLE(create, stream),       HOLE(destroy, stream),
                                 HOLE(launch, stream),       HOLE(copy, stream),
                                 HOLE(fill, stream),         HOLE(host_call, stream),
                                 HOLE(synchronize, stream),  HOLE(query, stream),
                                 HOLE(event_create, stream), HOLE(event_destroy, stream),
                                 HOLE(event_record, stream), HOLE(event_wait, stream),
                                 HOLE(event_query, stream),  HOLE(event_synchronize, stream)};
    rondo_instance *instance = instance_open(t);
    rondo_device *d = NULL;
    for (size_t i = 0; i < sizeof holes / sizeof holes[0]; i++) {
        const void *null = NULL;
        void *kept;
        char *place = (char *)&the_fake + holes[i].offset;
        if (strstr(holes[i].text, "'close'")) continue; /* then nobody can close what was opened */
        memcpy(&kept, place, sizeof kept);
        memcpy(place, &null, sizeof null);
        rondo_status status = rondo_device_open(instance, "fake", NULL, &d);
        memcpy(place, &kept, sizeof kept);
        T_FAILS(t, status, CORRUPT, holes[i].text);
        T_EQ(t, the_fake.opens, the_fake.closes);
    }
    the_fake.stream.struct_size -= 8;
    T_FAILS(t, rondo_device_open(instance, "fake", NULL, &d), CORRUPT, "stream table has a struct_size");
    the_fake.stream.struct_size += 8;
    the_fake.memory.host_free = (void (*)(void *, void *, uint64_t))(void (*)(void))fake_close;
    T_FAILS(t, rondo_device_open(instance, "fake", NULL, &d), CORRUPT, "host_allocate and host_free");
    the_fake.memory.host_free = NULL;
    the_fake.alignment = 48;
    T_FAILS(t, rondo_device_open(instance, "fake", NULL, &d), CORRUPT, "allocation_alignment 48 is no power of two");
    the_fake.alignment = 64;
    for (int i = 0; i < 12; i++) the_fake.catalogues[i] = "ref";
    T_FAILS(t, rondo_device_open(instance, "fake", NULL, &d), OUT_OF_RANGE, "more than 8 catalogues");
    T_EQ(t, the_fake.opens, the_fake.closes);
}

static void test_a_missing_catalogue_is_a_line(rondo_test *t) {
    rondo_instance *instance = instance_open(t);
    rondo_kernel kernel;
    the_fake.catalogues[0] = "nobody_has_it";
    rondo_device *device = device_open(t, instance, "fake");
    T_TRUE(t, rondo_test_failing(t) || strstr(lines, "asks for kernel catalogue 'nobody_has_it'") != NULL);
    T_EQ(t, device->kernels.count, 0);
    T_FAILS(t, rondo_kernel_find(device, "rondo.add", &kernel), UNSUPPORTED, "no kernel catalogue of device 'fake'");
}

static void test_types(rondo_test *t) {
    rondo_instance *instance = instance_open(t);
    uint32_t count = 9;
    bool has = true;
    T_STR(t, rondo_device_type_at(instance, 0), "cpu");
    T_STR(t, rondo_device_type_at(instance, 1), "sim");
    T_STR(t, rondo_device_type_at(instance, 2), "ascend");
    T_STR(t, rondo_device_type_at(instance, 3), "fake");
    T_TRUE(t, rondo_device_type_at(instance, 4) == NULL && rondo_device_type_at(NULL, 0) == NULL);
    T_STR(t, rondo_device_type_description(instance, "fake"), "a fake");
    T_TRUE(t, rondo_device_type_description(instance, "x") == NULL);
    T_OK(t, rondo_device_type_count(instance, "fake", &count));
    T_EQ(t, count, 2);
    T_FAILS(t, rondo_device_type_count(instance, "x", &count), NOT_FOUND, "'x'");
    T_OK(t, rondo_device_has_graph_impl(instance, "cpu", &has));
    T_TRUE(t, has);
    T_OK(t, rondo_device_has_graph_impl(instance, "fake", &has));
    T_TRUE(t, !has); /* known, and without */
    T_FAILS(t, rondo_device_has_graph_impl(instance, "x", &has), NOT_FOUND, "'x'");
    T_OK(t, rondo_device_has_graph_impl(instance, NULL, &has));
    T_TRUE(t, has); /* sim comes before fake */
    T_FAILS(t, rondo_device_has_graph_impl(NULL, NULL, &has), INVALID_ARGUMENT, NULL);
}

/* The current accelerator in a registry of its own: types without devices or without a driver are passed over. */
static void test_the_current_accelerator(rondo_test *t) {
    rondo_instance *instance = instance_open(t);
    rondo__registry *registry = rondo__instance_registry(instance);
    size_t count = registry->entries.count;
    rondo__registry_entry *entries = registry->entries.data;
    rondo__registry_entry cpu = entries[0], sim = entries[1], own = entries[3];
    bool has = true;
    entries[0] = cpu, entries[1] = own, entries[3] = sim;
    rondo_status status = rondo_device_has_graph_impl(instance, NULL, &has);
    bool first = has;
    rondo_status_release(status);
    the_fake.no_device = true;
    status = rondo__status_first(status ? RONDO_OK : status, rondo_device_has_graph_impl(instance, NULL, &has));
    bool second = has;
    the_fake.unavailable = true;
    has = false;
    rondo_status third = rondo_device_has_graph_impl(instance, NULL, &has);
    registry->entries.count = 2; /* cpu, and a type without a driver */
    rondo_status none = rondo_device_has_graph_impl(instance, NULL, &has);
    registry->entries.count = count;
    entries[1] = sim, entries[3] = own;
    rondo_code none_code = rondo_status_code(none);
    rondo_status_release(none);
    T_OK(t, rondo__status_first(status, third));
    if (rondo_test_failing(t)) return;
    T_TRUE(t, !first && second && has);
    T_EQ(t, none_code, RONDO_CODE_NOT_FOUND);
}

/* -------------------------------------------------------------------------------------------------- left-out entries */

static int32_t add_words(const void *context, const uint64_t *words) {
    uint64_t *sum = (uint64_t *)(uintptr_t)words[0];
    *sum += words[1] * words[4];
    return context ? 7 : 0;
}

static int32_t host_one(void *user) {
    ++*(int *)user;
    return 0;
}

static rondo_list_entry call_entry(uint64_t *sum, uint64_t value, const void *context) {
    return (rondo_list_entry){add_words, context, {(uint64_t)(uintptr_t)sum, value, 0, 0, 1}, RONDO_LIST_CALL, 0, 0};
}

static void test_a_list_goes_entry_by_entry(rondo_test *t) {
    rondo_instance *instance = instance_open(t);
    rondo_device *device = device_open(t, instance, "fake");
    rondo_stream *stream = rondo_stream_default(device);
    uint64_t sum = 0, failed = 0, function = 0;
    int host = 0;
    rondo_host_function pointer = host_one;
    memcpy(&function, &pointer, sizeof pointer);
    rondo_list_entry entries[5] = {call_entry(&sum, 1, NULL), call_entry(&sum, 10, NULL)};
    entries[2] = (rondo_list_entry){NULL, NULL, {function, (uint64_t)(uintptr_t)&host}, RONDO_LIST_HOST, 0, 0};
    entries[3] = (rondo_list_entry){NULL, NULL, {0}, RONDO_LIST_RECORD, 0, 0};
    entries[4] = (rondo_list_entry){NULL, NULL, {0}, RONDO_LIST_WAIT, 0, 0};
    rondo_list list = {sizeof list, 0, entries, 5};
    T_OK(t, rondo__stream_execute(stream, &list, &failed));
    T_TRUE(t, failed == UINT64_MAX && sum == 11 && host == 1);
    T_STR(t, the_fake.log, "llhrw");
    entries[1].context = "bad";
    T_FAILS(t, rondo__stream_execute(stream, &list, &failed), KERNEL_FAILED, "reason 7");
    T_EQ(t, failed, 1);
    T_EQ(t, sum, 22);
    T_EQ(t, host, 1); /* nothing after it ran */
    entries[1] = (rondo_list_entry){NULL, NULL, {0}, RONDO_LIST_JUMP, 0, 0};
    T_FAILS(t, rondo__stream_execute(stream, &list, &failed), UNSUPPORTED, "operation 3");
    T_EQ(t, failed, 1);
}

static void test_what_is_left_out_is_said(rondo_test *t) {
    rondo_instance *instance = instance_open(t);
    rondo_device *device = device_open(t, instance, "fake");
    rondo_stream *stream = NULL;
    uint64_t value = 0, total = 0;
    T_FAILS(t, rondo_stream_wrap(device, NULL, &stream), UNSUPPORTED, "'fake' cannot wrap a native stream");
    T_FAILS(t, rondo_device_counter(device, "launches", &value), NOT_FOUND, "keeps no counts");
    T_FAILS(t, rondo_device_counter(device, NULL, &value), INVALID_ARGUMENT, NULL);
    T_OK(t, rondo_device_memory_info(device, &value, &total));
    T_TRUE(t, value == 1 && total == 2);
    T_FAILS(t, rondo_device_memory_info(device, NULL, &total), INVALID_ARGUMENT, NULL);
}

/* ------------------------------------------------------------------------------------------ failures find their place */

static void test_a_failure_waits_for_its_stream(rondo_test *t) {
    rondo_instance *instance = instance_open(t);
    rondo_device *device = device_open(t, instance, "fake");
    rondo_stream *stream = rondo_stream_default(device);
    void *a = NULL;
    T_OK(t, rondo_memory_allocate(device, 10, &a));
    the_fake.fail_synchronize = true;
    T_OK(t, rondo_memory_free(device, a)); /* not the freeing's failure */
    T_TRUE(t, !the_fake.fail_synchronize); /* and yet it waited */
    T_FAILS(t, rondo_stream_synchronize(stream), KERNEL_FAILED, "call 'x' failed");
    T_OK(t, rondo_stream_synchronize(stream));
    the_fake.fail_synchronize = true;
    T_FAILS(t, rondo__device_synchronize(device), KERNEL_FAILED, "call 'x' failed");
    T_OK(t, rondo__device_synchronize(device));
    /* Nobody asks any more: then there is a line. */
    rondo_stream *other = NULL;
    T_OK(t, rondo_stream_create(device, NULL, &other));
    the_fake.fail_synchronize = true;
    rondo_stream_release(other);
    T_TRUE(t, rondo_test_failing(t) || strstr(lines, "nobody asked for: kernel failed") != NULL);
}

typedef struct worker {
    rondo_device *device;
    rondo_stream *stream;
    int failures;
} worker;

static void *worker_run(void *argument) {
    worker *self = argument;
    for (int i = 0; i < 300; i++) {
        void *a = NULL;
        rondo_stream *stream = NULL;
        rondo_status status = rondo_memory_allocate(self->device, 10, &a);
        status = rondo__status_first(status, rondo_stream_create(self->device, NULL, &stream));
        status = rondo__status_first(status, rondo_stream_synchronize(self->stream));
        status = rondo__status_first(status, rondo_memory_free(self->device, a));
        rondo_stream_release(stream);
        if (status) self->failures++;
        rondo_status_release(status);
    }
    return NULL;
}

/* Streams come and go while others wait for all of them; the backend never sees two calls on one stream at once. */
static void test_streams_of_several_threads(rondo_test *t) {
    rondo_instance *instance = instance_open(t);
    rondo_device *device = device_open(t, instance, "fake");
    worker workers[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (worker){device, NULL, 0};
        T_OK(t, rondo_stream_create(device, NULL, &workers[i].stream));
        T_EQ(t, pthread_create(&threads[i], NULL, worker_run, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        (void)pthread_join(threads[i], NULL);
        rondo_stream_release(workers[i].stream);
    }
    for (int i = 0; i < 4; i++) T_EQ(t, workers[i].failures, 0);
    T_EQ(t, the_fake.creates - the_fake.destroys, 1);
    T_TRUE(t, !the_fake.crowded);
}

static void *opener_run(void *argument) {
    rondo_instance *instance = argument;
    for (int i = 0; i < 500; i++) {
        rondo_device *device = NULL;
        rondo_status_release(rondo_device_open(instance, "fake", NULL, &device));
        rondo_device_release(device);
    }
    return NULL;
}

static void test_opening_from_several_threads(rondo_test *t) {
    rondo_instance *instance = instance_open(t);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) T_EQ(t, pthread_create(&threads[i], NULL, opener_run, instance), 0);
    for (int i = 0; i < 4; i++) (void)pthread_join(threads[i], NULL);
    T_TRUE(t, the_fake.opens > 0);
    T_EQ(t, the_fake.opens, the_fake.closes);
    T_EQ(t, the_fake.creates, the_fake.destroys);
}

static void test_events_of_a_fake(rondo_test *t) {
    rondo_instance *instance = instance_open(t);
    rondo_device *device = device_open(t, instance, "fake"), *other = device_open(t, instance, "fake:1");
    rondo_stream *stream = rondo_stream_default(device);
    rondo_event *event = NULL;
    bool done = false;
    T_OK(t, rondo_event_create(device, &event));
    rondo_event_retain(event);
    rondo_event_release(event);
    T_DEFER(t, rondo_event_release, event);
    T_OK(t, rondo_event_wait(event, stream)); /* never recorded: holds nothing up */
    T_OK(t, rondo_event_query(event, &done));
    T_TRUE(t, done);
    T_OK(t, rondo_event_synchronize(event));
    T_STR(t, the_fake.log, "");
    T_OK(t, rondo_event_record(event, stream));
    T_OK(t, rondo_event_wait(event, stream));
    T_OK(t, rondo_event_query(event, &done));
    T_TRUE(t, !done);
    T_OK(t, rondo_event_synchronize(event));
    T_STR(t, the_fake.log, "rws");
    T_FAILS(t, rondo_event_record(event, rondo_stream_default(other)), INVALID_ARGUMENT,
            "the event belongs to device 'fake:0', the stream to 'fake:");
    T_FAILS(t, rondo_event_wait(NULL, stream), INVALID_ARGUMENT, "the event is null");
    T_FAILS(t, rondo_event_wait(event, NULL), INVALID_ARGUMENT, "the stream is null");
    T_FAILS(t, rondo_event_query(event, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_event_synchronize(NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_event_create(device, NULL), INVALID_ARGUMENT, NULL);
}

RONDO_TEST_MAIN(T(test_opened_once), T(test_closed_with_the_last_reference), T(test_names),
                T(test_each_hole_in_a_device_is_named), T(test_a_missing_catalogue_is_a_line), T(test_types),
                T(test_the_current_accelerator), T(test_a_list_goes_entry_by_entry), T(test_what_is_left_out_is_said),
                T(test_a_failure_waits_for_its_stream), T_PLAIN(test_streams_of_several_threads),
                T_PLAIN(test_opening_from_several_threads), T(test_events_of_a_fake))
