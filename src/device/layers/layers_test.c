/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers on cpu and on sim, alone and on each other: they change nothing for who does right, validate says what is wrong
 * before the backend is called, and trace writes a file that holds what happened. */
#include "device/layers/layers.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rondo/runtime.h>

#include "device/device.h"
#include "harness/harness.h"

#define BYTES 64u

static char lines[4096];

static void take_line(void *user, rondo_log_level level, const char *text) {
    (void)user, (void)level;
    size_t used = strlen(lines);
    (void)snprintf(lines + used, sizeof lines - used, "%s\n", text);
}

static rondo_instance *open_instance(rondo_test *t) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    rondo_instance *instance = NULL;
    lines[0] = 0;
    options.allocator = rondo_test_allocator(t);
    options.ignore_plugin_path = 1;
    options.log = take_line;
    T_OK(t, rondo_instance_create(&options, &instance));
    T_DEFER(t, rondo_instance_release, instance);
    return instance;
}

static rondo_device *open_device(rondo_test *t, rondo_instance *instance, const char *name, const char *settings) {
    rondo_device *device = NULL;
    T_OK(t, rondo_device_open(instance, name, settings, &device));
    T_DEFER(t, rondo_device_release, device);
    return device;
}

static uint64_t counter(rondo_test *t, rondo_device *device, const char *name) {
    uint64_t value = 0;
    T_OK(t, rondo_device_counter(device, name, &value));
    return value;
}

/* ---------------------------------------------------------------------------------------------------- settings */

static void check_read(rondo_test *t, const char *settings, uint32_t count, const char *rest, const char *file) {
    rondo__layers layers;
    T_OK(t, rondo__layers_read(rondo_test_allocator(t), settings, &layers));
    bool same = layers.count == count && (rest ? layers.rest && strcmp(layers.rest, rest) == 0 : !layers.rest) &&
                (file ? layers.trace_file && strcmp(layers.trace_file, file) == 0 : !layers.trace_file);
    rondo__layers_deinit(&layers);
    if (!same) rondo_test_fail(t, __FILE__, __LINE__, "'%s' is taken apart wrongly", settings ? settings : "");
}

static void check_bad(rondo_test *t, const char *settings, const char *part) {
    rondo__layers layers;
    T_FAILS(t, rondo__layers_read(rondo_test_allocator(t), settings, &layers), INVALID_ARGUMENT, part);
}

static void test_settings_are_taken_apart(rondo_test *t) {
    T_EQ(t, unsetenv("RONDO_LAYERS"), 0);
    check_read(t, NULL, 0, NULL, NULL);
    check_read(t, "", 0, NULL, NULL);
    check_read(t, "seed=3,memory=5", 0, "seed=3,memory=5", NULL);
    check_read(t, "seed=1,,", 0, "seed=1,,", NULL);
    check_read(t, "layers=validate", 1, NULL, NULL);
    check_read(t, "layers=none,seed=3", 0, "seed=3", NULL);
    check_read(t, "seed=3,layers=validate", 1, "seed=3", NULL);
    check_read(t, "a=1,layers=validate+trace+validate,b=2,trace=x/y.json,c=3", 3, "a=1,b=2,c=3", "x/y.json");
    check_bad(t, "layers=validat", "no layer 'validat'");
    check_bad(t, "layers=trace", "needs a file to write");
    check_bad(t, "trace=x", "needs the layer");
    check_bad(t, "layers=trace,trace=", "needs a file's name");
    check_bad(t, "layers=validate+validate+validate+validate+validate+validate+validate+validate+validate",
              "more than");
}

static void test_the_environment(rondo_test *t) {
    rondo__layers layers;
    T_EQ(t, setenv("RONDO_LAYERS", "validate+trace,trace=here", 1), 0);
    rondo_status first = rondo__layers_read(rondo_test_allocator(t), "seed=1", &layers);
    uint32_t count = first ? 0 : layers.count;
    if (!first) rondo__layers_deinit(&layers);
    rondo_status second = rondo__layers_read(rondo_test_allocator(t), "layers=none", &layers);
    uint32_t none = second ? 9 : layers.count;
    if (!second) rondo__layers_deinit(&layers);
    T_EQ(t, setenv("RONDO_LAYERS", "validate,seed=1", 1), 0);
    rondo_status third = rondo__layers_read(rondo_test_allocator(t), NULL, &layers);
    T_EQ(t, unsetenv("RONDO_LAYERS"), 0);
    rondo_status_release(second);
    T_FAILS(t, third, INVALID_ARGUMENT, "RONDO_LAYERS");
    T_OK(t, first);
    T_TRUE(t, count == 2 && (none == 0 || rondo_test_failing(t)));
}

static void test_opening_again(rondo_test *t) {
    rondo_instance *instance = open_instance(t);
    rondo_device *other = NULL;
    (void)open_device(t, instance, "sim", "layers=validate,seed=2");
    T_FAILS(t, rondo_device_open(instance, "sim", "seed=2", &other), ALREADY_EXISTS, "layers=validate,seed=2");
    T_FAILS(t, rondo_device_open(instance, "sim:1", "layers=validate,speed=2", &other), INVALID_ARGUMENT,
            "no setting 'speed'");
    T_FAILS(t, rondo_device_open(instance, "sim:1", "layers=trace,trace=/no/such/place/x", &other), IO,
            "trace file '/no/such/place/x' cannot be made");
    T_FAILS(t, rondo_device_open(instance, "sim:1", "layers=validate,fail=properties:1", &other), INTERNAL, "as asked");
}

/* --------------------------------------------------------------------------------------- what changes nothing */

static int32_t kernel_add(const void *context, const uint64_t *words) {
    unsigned char *bytes = (unsigned char *)(uintptr_t)words[0];
    (void)context;
    for (uint64_t i = 0; i < BYTES; i++) bytes[i] = (unsigned char)(bytes[i] + words[1]);
    return 0;
}

static int32_t kernel_fails(const void *context, const uint64_t *words) {
    (void)context, (void)words;
    return 5;
}

static int32_t host_count(void *user) {
    ++*(int *)user;
    return 0;
}

static rondo_status add_at(rondo_stream *stream, uint64_t address, uint64_t length, uint64_t amount, const char *name) {
    rondo_argument arguments[2] = {{address, length, RONDO_ACCESS_BOTH, 0}, {amount, 0, RONDO_ACCESS_VALUE, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel.function = kernel_add;
    call.arguments = arguments;
    call.argument_count = 2;
    call.name = name;
    return rondo_stream_launch(stream, &call);
}

static rondo_status add(rondo_stream *stream, void *target, uint64_t amount, const char *name) {
    return add_at(stream, (uint64_t)(uintptr_t)target, BYTES, amount, name);
}

/* Outlive every stream. */
static unsigned char in[BYTES], out[BYTES];
static int host_calls;

typedef struct world {
    rondo_device *device;
    rondo_stream *one, *two;
    rondo_event *event;
    rondo_graph *graph;
    void *memory, *pinned;
} world;

static void world_open(rondo_test *t, const char *name, const char *settings, world *w) {
    w->device = open_device(t, open_instance(t), name, settings);
    T_OK(t, rondo_stream_create(w->device, NULL, &w->one));
    T_DEFER(t, rondo_stream_release, w->one);
    T_OK(t, rondo_stream_create(w->device, NULL, &w->two));
    T_DEFER(t, rondo_stream_release, w->two);
    T_OK(t, rondo_event_create(w->device, &w->event));
    T_DEFER(t, rondo_event_release, w->event);
    T_OK(t, rondo_graph_create(w->device, NULL, &w->graph));
    T_DEFER(t, rondo_graph_release, w->graph);
    T_OK(t, rondo_memory_allocate(w->device, BYTES, &w->memory));
    T_OK(t, rondo_memory_host_allocate(w->device, BYTES, &w->pinned));
}

static void tell_the_story(rondo_test *t, const char *name, const char *settings) {
    world w;
    bool done = false;
    world_open(t, name, settings, &w);
    host_calls = 0;
    memset(in, 1, sizeof in);
    T_OK(t, rondo_stream_copy(w.one, w.memory, in, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    T_OK(t, add(w.one, w.memory, 2, "eager \"one\""));
    T_OK(t, rondo_event_record(w.event, w.one));
    T_OK(t, rondo_event_wait(w.event, w.two));
    T_OK(t, rondo_stream_host_call(w.two, host_count, &host_calls));
    T_OK(t, rondo_stream_copy(w.two, out, w.memory, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_event_query(w.event, &done));
    T_OK(t, rondo_event_synchronize(w.event));
    T_OK(t, rondo_stream_synchronize(w.two));
    T_OK(t, rondo_stream_synchronize(w.one));
    T_TRUE(t, out[0] == 3 && out[BYTES - 1u] == 3 && host_calls == 1);
    memset(w.pinned, 10, BYTES);
    T_OK(t, rondo_graph_capture_begin(w.graph, w.one, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_RELAXED));
    T_OK(t, rondo_stream_copy(w.one, w.memory, w.pinned, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    T_OK(t, add(w.one, w.memory, 5, "captured"));
    T_OK(t, add(w.one, w.memory, 6, "captured too"));
    T_OK(t, rondo_graph_capture_end(w.graph, w.one));
    for (int i = 0; i < 3; i++) {
        T_OK(t, rondo_graph_replay(w.graph, i % 2 ? w.two : w.one));
        T_OK(t, rondo_stream_synchronize(i % 2 ? w.two : w.one));
    }
    T_OK(t, rondo_stream_copy(w.one, out, w.memory, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_stream_synchronize(w.one));
    T_TRUE(t, out[5] == 21);
    rondo_graph_reset(w.graph);
    T_OK(t, rondo_memory_free(w.device, w.memory));
    T_OK(t, rondo_memory_host_free(w.device, w.pinned));
    T_STR(t, lines, "");
}

static void test_validate_lets_pass(rondo_test *t) { tell_the_story(t, "cpu", "layers=validate"); }
static void test_validate_lets_pass_on_sim(rondo_test *t) { tell_the_story(t, "sim", "layers=validate,seed=4"); }

/* -------------------------------------------------------------------------------------------------------- trace */

static const char *trace_path(rondo_test *t, const char *name) {
    static char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", rondo_test_folder(t), name);
    return path;
}

static cJSON *read_json(rondo_test *t, const char *path) {
    static char text[1 << 18];
    FILE *file = fopen(path, "r");
    if (!file) rondo_test_fail(t, __FILE__, __LINE__, "'%s' is not there", path);
    size_t size = fread(text, 1, sizeof text - 1u, file);
    (void)fclose(file);
    text[size] = 0;
    cJSON *json = cJSON_Parse(text);
    if (!json) rondo_test_fail(t, __FILE__, __LINE__, "'%s' is no JSON: %.300s", path, text);
    return json;
}

typedef struct seen {
    int count;
    double first, lasted, track, last_track;
    const cJSON *arguments;
} seen;

/* Events of a name and process. Every one must have what the format asks for. */
static seen find_events(rondo_test *t, const cJSON *json, const char *name, int process) {
    seen s = {0};
    const cJSON *event;
    cJSON_ArrayForEach(event, cJSON_GetObjectItem(json, "traceEvents")) {
        const char *phase = cJSON_GetStringValue(cJSON_GetObjectItem(event, "ph"));
        const cJSON *time = cJSON_GetObjectItem(event, "ts"), *lasted = cJSON_GetObjectItem(event, "dur");
        T_TRUE(t, phase && strlen(phase) == 1 && cJSON_IsNumber(cJSON_GetObjectItem(event, "pid")));
        if (*phase == 'M') continue;
        T_TRUE(t, cJSON_IsNumber(time) && time->valuedouble >= 0 && cJSON_IsNumber(cJSON_GetObjectItem(event, "tid")));
        T_TRUE(t, *phase == 'i' || (*phase == 'X' && cJSON_IsNumber(lasted) && lasted->valuedouble >= 0));
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(event, "name")), name) != 0) continue;
        if (cJSON_GetObjectItem(event, "pid")->valueint != process) continue;
        s.last_track = cJSON_GetObjectItem(event, "tid")->valuedouble;
        if (!s.count++) {
            s.first = time->valuedouble;
            s.lasted = lasted ? lasted->valuedouble : 0;
            s.track = cJSON_GetObjectItem(event, "tid")->valuedouble;
            s.arguments = cJSON_GetObjectItem(event, "args");
        }
    }
    return s;
}

static void check_trace(rondo_test *t, const char *path, bool inlined) {
    cJSON *json = read_json(t, path);
    seen one = find_events(t, json, "eager \"one\"", 2), enqueued = find_events(t, json, "launch eager \"one\"", 1);
    seen captured = find_events(t, json, "captured", 2), too = find_events(t, json, "captured too", 2);
    seen begins = find_events(t, json, "capture begins", 2), ends = find_events(t, json, "capture ends", 2);
    T_TRUE(t, one.count == 1 && enqueued.count == 1 && one.first >= enqueued.first);
    T_TRUE(t, inlined == (one.first + one.lasted <= enqueued.first + enqueued.lasted + 1e-3));
    T_TRUE(t, captured.count == 3 && too.count == 3);
    T_TRUE(t, begins.count == 1 && ends.count == 1 && begins.first <= ends.first && ends.first <= captured.first);
    T_STR(t, cJSON_GetStringValue(cJSON_GetObjectItem(begins.arguments, "mode")), "relaxed");
    T_TRUE(t, captured.first + captured.lasted <= too.first + 1e-3 && captured.track == too.track);
    seen both = find_events(t, json, "on both", 2);
    T_TRUE(t, both.count == 2 && both.track + 1 == both.last_track); /* one kernel, two streams */
    T_EQ(t, find_events(t, json, "a host call", 2).count, 1);
    T_EQ(t, find_events(t, json, "copy host to device", 2).count, inlined ? 4 : 0);
    T_EQ(t, find_events(t, json, "copy", 1).count, 6);
    T_TRUE(t, find_events(t, json, "synchronize", 1).count >= 5);
    T_TRUE(t, find_events(t, json, "allocate", 1).count >= 1);
    T_EQ(t, cJSON_GetObjectItem(cJSON_GetObjectItem(json, "otherData"), "dropped")->valueint, 0);
    cJSON_Delete(json);
}

static void trace_story(rondo_test *t, const char *device, const char *layers, const char *name) {
    char settings[640];
    (void)snprintf(settings, sizeof settings, "layers=%s,trace=%s", layers, trace_path(t, name));
    tell_the_story(t, device, settings);
}

/* The file is written when the device closes. */
typedef struct traced {
    const char *device, *layers, *file, *written;
} traced;
static const traced traces[] = {{"cpu", "trace", "a.json", "a.json"},
                                {"sim", "trace", "b-{device}.json", "b-sim-0.json"},
                                {"cpu", "validate+trace", "c.json", "c.json"},
                                {"sim", "trace+validate", "d.json", "d.json"}};

static void test_traces_are_written(rondo_test *t) {
    for (size_t i = 0; i < sizeof traces / sizeof traces[0]; i++) {
        rondo_instance *instance = NULL;
        rondo_device *device = NULL;
        char settings[640];
        (void)snprintf(settings, sizeof settings, "layers=%s,trace=%s", traces[i].layers,
                       trace_path(t, traces[i].file));
        T_OK(t, rondo_instance_create(NULL, &instance));
        rondo_status status = rondo_device_open(instance, traces[i].device, settings, &device);
        T_TRUE(t, access(trace_path(t, traces[i].written), F_OK) != 0);
        rondo_device_release(device);
        rondo_instance_release(instance);
        T_OK(t, status);
        cJSON_Delete(read_json(t, trace_path(t, traces[i].written)));
    }
}

static void test_trace_changes_nothing(rondo_test *t) { trace_story(t, "cpu", "trace", "x.json"); }
static void test_trace_changes_nothing_on_sim(rondo_test *t) { trace_story(t, "sim", "trace", "x.json"); }
static void test_both_change_nothing(rondo_test *t) { trace_story(t, "cpu", "validate+trace", "x.json"); }
static void test_both_change_nothing_on_sim(rondo_test *t) { trace_story(t, "sim", "trace+validate", "x.json"); }

/* The stories above close their devices at the end of their bodies; this one is closed and then looked at. */
static void run_story(rondo_test *t, const traced *story) {
    world w = {0};
    rondo_instance *instance = NULL;
    char settings[640];
    (void)snprintf(settings, sizeof settings, "layers=%s,trace=%s", story->layers, trace_path(t, story->file));
    T_OK(t, rondo_instance_create(NULL, &instance));
    T_OK(t, rondo_device_open(instance, story->device, settings, &w.device));
    T_OK(t, rondo_stream_create(w.device, NULL, &w.one));
    T_OK(t, rondo_stream_create(w.device, NULL, &w.two));
    T_OK(t, rondo_graph_create(w.device, NULL, &w.graph));
    T_OK(t, rondo_memory_allocate(w.device, BYTES, &w.memory));
    T_OK(t, rondo_memory_host_allocate(w.device, BYTES, &w.pinned));
    T_OK(t, rondo_stream_copy(w.one, w.memory, in, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    T_OK(t, add(w.one, w.memory, 2, "eager \"one\""));
    T_OK(t, rondo_stream_host_call(w.one, host_count, &host_calls));
    T_OK(t, rondo_stream_copy(w.one, out, w.memory, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_stream_synchronize(w.one));
    T_OK(t, rondo_graph_capture_begin(w.graph, w.one, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_RELAXED));
    T_OK(t, rondo_stream_copy(w.one, w.memory, w.pinned, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    T_OK(t, add(w.one, w.memory, 5, "captured"));
    T_OK(t, add(w.one, w.memory, 6, "captured too"));
    T_OK(t, rondo_graph_capture_end(w.graph, w.one));
    for (int i = 0; i < 3; i++) {
        T_OK(t, rondo_graph_replay(w.graph, w.two));
        T_OK(t, rondo_stream_synchronize(w.two));
    }
    T_OK(t, rondo_stream_copy(w.one, out, w.memory, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_stream_synchronize(w.one));
    T_TRUE(t, out[0] == 11 + ((unsigned char *)w.pinned)[0]);
    T_OK(t, add(w.one, w.memory, 1, "on both"));
    T_OK(t, rondo_stream_synchronize(w.one));
    T_OK(t, add(w.two, w.memory, 1, "on both"));
    T_OK(t, rondo_stream_synchronize(w.two));
    rondo_graph_release(w.graph);
    T_OK(t, rondo_memory_free(w.device, w.memory));
    T_OK(t, rondo_memory_host_free(w.device, w.pinned));
    rondo_stream_release(w.one);
    rondo_stream_release(w.two);
    rondo_device_release(w.device);
    rondo_instance_release(instance);
}

static void test_traces_tell_what_happened(rondo_test *t) {
    for (size_t i = 0; i < sizeof traces / sizeof traces[0]; i++) {
        run_story(t, &traces[i]);
        check_trace(t, trace_path(t, traces[i].written), strcmp(traces[i].device, "cpu") == 0);
    }
}

/* The place is gone when the device closes: no file, no remains, a warning. */
static void test_a_trace_is_whole_or_not_there(rondo_test *t) {
    char folder[512], settings[640];
    (void)snprintf(folder, sizeof folder, "%s/goneXXXXXX", rondo_test_folder(t));
    T_TRUE(t, mkdtemp(folder) != NULL);
    (void)snprintf(settings, sizeof settings, "layers=trace,trace=%s/t.json", folder);
    rondo_instance *instance = open_instance(t);
    rondo_device *device = NULL;
    T_OK(t, rondo_device_open(instance, "cpu", settings, &device));
    T_EQ(t, rmdir(folder), 0); /* nothing lies in it before the end */
    rondo_device_release(device);
    T_TRUE(t, strstr(lines, "layer 'trace': the trace file") != NULL && access(folder, F_OK) != 0);
}

/* ----------------------------------------------------------------------------------------------------- validate */

/* The tables as the core sees them. */
typedef struct tables {
    const rondo_device_table *device;
    const rondo_memory_table *memory;
    const rondo_stream_table *stream;
    void *handle;
} tables;

static tables tables_of(rondo_test *t, const char *name) {
    rondo_device *device = open_device(t, open_instance(t), name, "layers=validate");
    return (tables){device->table, device->table->memory, device->table->stream, device->handle};
}

static rondo_status launch_at(const tables *at, void *stream, uint64_t address, uint64_t length) {
    rondo_argument arguments[2] = {{address, length, RONDO_ACCESS_BOTH, 0}, {1, 0, RONDO_ACCESS_VALUE, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel.function = kernel_add;
    call.arguments = arguments;
    call.argument_count = 2;
    call.name = "add";
    return at->stream->launch(stream, &call);
}

static void expect_line(rondo_test *t, const char *part) {
    bool there = strstr(lines, part) != NULL;
    if (!there && !rondo_test_failing(t)) rondo_test_fail(t, __FILE__, __LINE__, "no line says '%s': %s", part, lines);
    lines[0] = 0;
}

static void wrong_handles(rondo_test *t, const char *name) {
    tables at = tables_of(t, name);
    void *stream = NULL, *event = NULL;
    bool done = false;
    T_OK(t, at.stream->create(at.handle, 0, 0, &stream));
    rondo_status status = at.stream->event_create(at.handle, &event);
    if (status) at.stream->destroy(at.handle, stream);
    T_OK(t, status);
    at.stream->destroy(at.handle, stream);
    T_FAILS(t, at.stream->synchronize(stream), INVALID_STATE, "was destroyed");
    T_FAILS(t, at.stream->query(stream, &done), INVALID_STATE, "was destroyed");
    T_FAILS(t, at.stream->event_record(event, stream), INVALID_STATE, "event_record: stream");
    at.stream->destroy(at.handle, stream);
    expect_line(t, "destroy: stream 2 was destroyed");
    at.stream->event_destroy(at.handle, event);
    T_FAILS(t, at.stream->event_query(event, &done), INVALID_STATE, "event_query: event 1 was destroyed");
    at.stream->event_destroy(at.handle, event);
    expect_line(t, "event 1 was destroyed");
    T_FAILS(t, at.stream->synchronize(event), INVALID_ARGUMENT, "a event was given, not a stream");
    T_FAILS(t, at.stream->create(at.handle, 64, 0, &stream), INVALID_ARGUMENT, "unknown stream flags");
}

static void wrong_memory(rondo_test *t, const char *name, bool shared) {
    tables at = tables_of(t, name);
    uint64_t a = 0, errors = 0;
    void *stream = NULL;
    T_OK(t, at.stream->create(at.handle, 0, 0, &stream));
    rondo_status status = at.memory->allocate(at.handle, 4096, &a);
    if (status) at.stream->destroy(at.handle, stream);
    T_OK(t, status);
    rondo_status bad[] = {launch_at(&at, stream, a + 4000, 97),
                          launch_at(&at, stream, a, UINT64_MAX),
                          at.stream->fill(stream, a + 4095, 1, 2),
                          at.stream->fill(stream, 0, 1, 2),
                          at.stream->copy(stream, a, a + 4090, 7, RONDO_COPY_DEVICE_TO_DEVICE),
                          at.stream->copy(stream, a, a + 64, 7, 9),
                          at.stream->host_call(stream, NULL, NULL)};
    at.memory->free(at.handle, a + 1, 4096);
    expect_line(t, "is not what allocate gave");
    at.memory->free(at.handle, a, 4095);
    expect_line(t, "has 4096 bytes, not 4095");
    at.memory->free(at.handle, a, 4096);
    rondo_status late = launch_at(&at, stream, a + 5, 5), copy = at.stream->fill(stream, a, 1, 1);
    at.memory->free(at.handle, a, 4096);
    expect_line(t, "was freed already");
    rondo_status foreign = launch_at(&at, stream, (uint64_t)(uintptr_t)out, 8);
    rondo_status counted = at.device->counter(at.handle, "validate.errors", &errors);
    rondo_status_release(at.stream->synchronize(stream));
    at.stream->destroy(at.handle, stream);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) T_FAILS(t, bad[i], INVALID_ARGUMENT, "layer 'validate'");
    T_FAILS(t, late, INVALID_ARGUMENT, "launch of call 'add': argument 0, 5 bytes");
    T_FAILS(t, copy, INVALID_ARGUMENT, "was freed");
    if (shared) T_OK(t, foreign); /* the host's own memory is as good */
    else T_FAILS(t, foreign, INVALID_ARGUMENT, "is no memory of this device");
    T_OK(t, counted);
    T_EQ(t, errors, shared ? 12 : 13);
}

static void wrong_states(rondo_test *t, const char *name) {
    tables at = tables_of(t, name);
    void *stream = NULL, *event = NULL;
    T_OK(t, at.stream->create(at.handle, 0, 0, &stream));
    rondo_status status = at.stream->event_create(at.handle, &event);
    if (status) at.stream->destroy(at.handle, stream);
    T_OK(t, status);
    at.stream->capture_changed(stream, true, RONDO_CAPTURE_MODE_GLOBAL);
    rondo_status bad[] = {at.stream->host_call(stream, host_count, &host_calls), at.stream->synchronize(stream),
                          at.stream->event_record(event, stream), at.stream->event_wait(event, stream)};
    at.stream->capture_changed(stream, true, RONDO_CAPTURE_MODE_GLOBAL);
    expect_line(t, "is recorded already");
    at.stream->capture_changed(stream, false, RONDO_CAPTURE_MODE_GLOBAL);
    at.stream->capture_changed(stream, false, RONDO_CAPTURE_MODE_GLOBAL);
    expect_line(t, "is not recorded");
    rondo_status good = at.stream->host_call(stream, host_count, &host_calls);
    at.stream->event_destroy(at.handle, event);
    at.stream->destroy(at.handle, stream);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) T_FAILS(t, bad[i], INVALID_STATE, "recorded by a capture");
    T_OK(t, good);
    expect_line(t, "has work that nobody waited for");
}

static void test_wrong_handles_on_cpu(rondo_test *t) { wrong_handles(t, "cpu"); }
static void test_wrong_handles_on_sim(rondo_test *t) { wrong_handles(t, "sim"); }
static void test_wrong_memory_on_cpu(rondo_test *t) { wrong_memory(t, "cpu", true); }
static void test_wrong_memory_on_sim(rondo_test *t) { wrong_memory(t, "sim", false); }
static void test_wrong_states_on_cpu(rondo_test *t) { wrong_states(t, "cpu"); }
static void test_wrong_states_on_sim(rondo_test *t) { wrong_states(t, "sim"); }

static void test_another_devices_handles(rondo_test *t) {
    rondo_instance *instance = open_instance(t);
    rondo_device *a = open_device(t, instance, "sim", "layers=validate");
    rondo_device *b = open_device(t, instance, "sim:1", "layers=validate");
    void *event = NULL;
    T_OK(t, a->table->stream->event_create(a->handle, &event));
    rondo_status status = a->table->stream->event_record(event, b->default_stream->handle);
    b->table->stream->event_destroy(b->handle, event);
    a->table->stream->event_destroy(a->handle, event);
    T_FAILS(t, status, INVALID_ARGUMENT, "stream 1 belongs to device 'sim:1', not to 'sim:0'");
    expect_line(t, "event_destroy: event 1 belongs to device 'sim:0', not to 'sim:1'");
    T_STR(t, lines, "");
}

/* What is left is said at the end. */
static void test_what_is_left(rondo_test *t) {
    rondo_instance *instance = open_instance(t);
    rondo_device *device = NULL;
    void *event = NULL;
    uint64_t address = 0;
    T_OK(t, rondo_device_open(instance, "cpu", "layers=validate", &device));
    rondo_status status = device->table->stream->event_create(device->handle, &event);
    rondo_status taken = device->table->memory->allocate(device->handle, 64, &address);
    if (!taken && status) device->table->memory->free(device->handle, address, 64);
    if (taken && !status) device->table->stream->event_destroy(device->handle, event);
    bool left = !status && !taken;
    if (left) device->table->memory->free(device->handle, address, 64);
    rondo_device_release(device);
    T_OK(t, rondo_test_failing(t) && taken ? taken : (rondo_status_release(taken), RONDO_OK));
    T_OK(t, status);
    if (left) expect_line(t, "is closed with 1 handles and 0 allocations alive");
}

/* A backend that breaks its promises is told apart from its caller. */
static void test_what_a_backend_gave(rondo_test *t) {
    rondo_instance *instance = open_instance(t);
    rondo_device *device = NULL;
    uint64_t a = 0, b = 0;
    T_OK(t, rondo_device_open(instance, "sim", "layers=validate,mutate=overlap", &device));
    rondo_status one = device->table->memory->allocate(device->handle, 64, &a);
    rondo_status two = device->table->memory->allocate(device->handle, 64, &b);
    if (!one) device->table->memory->free(device->handle, a, 64);
    rondo_device_release(device);
    T_OK(t, one);
    T_FAILS(t, two, CORRUPT, "overlap 64 live ones");
    T_OK(t, rondo_device_open(instance, "sim", "layers=validate,mutate=unaligned", &device));
    T_DEFER(t, rondo_device_release, device);
    T_FAILS(t, device->table->memory->allocate(device->handle, 64, &a), CORRUPT, "not aligned to its own 256");
}

static int32_t host_waits(void *user) {
    pthread_barrier_t *barriers = user;
    (void)pthread_barrier_wait(&barriers[0]);
    (void)pthread_barrier_wait(&barriers[1]);
    return 0;
}

typedef struct caller {
    const rondo_stream_table *table;
    void *stream;
    rondo_status status;
} caller;

static void *caller_run(void *argument) {
    caller *self = argument;
    self->status = self->table->synchronize(self->stream);
    return NULL;
}

static void test_two_threads_in_a_stream(rondo_test *t) {
    tables at = tables_of(t, "sim");
    pthread_barrier_t barriers[2];
    pthread_t thread;
    bool done = false;
    caller c = {at.stream, NULL, RONDO_OK};
    (void)pthread_barrier_init(&barriers[0], NULL, 2);
    (void)pthread_barrier_init(&barriers[1], NULL, 2);
    T_OK(t, at.stream->create(at.handle, 0, 0, &c.stream));
    T_OK(t, at.stream->host_call(c.stream, host_waits, barriers));
    T_EQ(t, pthread_create(&thread, NULL, caller_run, &c), 0);
    (void)pthread_barrier_wait(&barriers[0]);
    rondo_status status = at.stream->query(c.stream, &done);
    (void)pthread_barrier_wait(&barriers[1]);
    (void)pthread_join(thread, NULL);
    at.stream->destroy(at.handle, c.stream);
    T_OK(t, c.status);
    T_FAILS(t, status, INVALID_STATE, "is in a call of another thread");
    (void)pthread_barrier_destroy(&barriers[0]);
    (void)pthread_barrier_destroy(&barriers[1]);
}

/* A failing kernel keeps its reason and its name through both layers. */
static void test_failures_come_through(rondo_test *t) {
    char settings[640];
    (void)snprintf(settings, sizeof settings, "layers=validate+trace,trace=%s", trace_path(t, "f.json"));
    rondo_device *device = open_device(t, open_instance(t), "sim", settings);
    rondo_call call = RONDO_CALL_INIT;
    call.kernel.function = kernel_fails;
    call.name = "bad";
    T_OK(t, rondo_stream_launch(rondo_stream_default(device), &call));
    T_FAILS(t, rondo_stream_synchronize(rondo_stream_default(device)), KERNEL_FAILED,
            "call 'bad': its kernel failed with reason 5");
    T_EQ(t, counter(t, device, "launches"), 1);
    T_EQ(t, counter(t, device, "validate.errors"), 0);
}

RONDO_TEST_MAIN(T(test_settings_are_taken_apart), T(test_the_environment), T(test_opening_again),
                T(test_validate_lets_pass), T(test_validate_lets_pass_on_sim), T(test_trace_changes_nothing),
                T(test_trace_changes_nothing_on_sim), T(test_both_change_nothing), T(test_both_change_nothing_on_sim),
                T_PLAIN(test_traces_are_written), T_PLAIN(test_traces_tell_what_happened),
                T_PLAIN(test_a_trace_is_whole_or_not_there), T(test_wrong_handles_on_cpu), T(test_wrong_handles_on_sim),
                T(test_wrong_memory_on_cpu), T(test_wrong_memory_on_sim), T(test_wrong_states_on_cpu),
                T(test_wrong_states_on_sim), T(test_another_devices_handles), T(test_what_is_left),
                T(test_what_a_backend_gave), T_PLAIN(test_two_threads_in_a_stream), T(test_failures_come_through))
