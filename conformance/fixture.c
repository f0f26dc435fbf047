/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects that a test need not release, and the work that most tests are made of. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conf.h"

/* ------------------------------------------------------------------------------------------------------- checks */

void conf_fail(conf *t, const char *file, int line, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(t->message, sizeof t->message, format, list);
    va_end(list);
    t->outcome = RONDO_CONFORMANCE_FAILED;
    t->file = file;
    t->line = line;
    longjmp(t->out, 1);
}

void conf_skip(conf *t, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(t->message, sizeof t->message, format, list);
    va_end(list);
    t->outcome = RONDO_CONFORMANCE_SKIPPED;
    longjmp(t->out, 1);
}

/* Whether the device cannot give as many streams and events more as any test takes: who finds it out of range then is refused by
 * what the device is. */
static bool fixture_runs_out(conf *t) {
    enum { MORE = 64 };
    rondo_stream *streams[MORE] = {NULL};
    rondo_event *events[MORE] = {NULL};
    rondo_code code = RONDO_CODE_OK;
    for (int i = 0; i < MORE && code == RONDO_CODE_OK; i++) {
        code = conf_code(rondo_stream_create(t->device, NULL, &streams[i]));
        if (code == RONDO_CODE_OK) code = conf_code(rondo_event_create(t->device, &events[i]));
    }
    for (int i = 0; i < MORE; i++) {
        rondo_event_release(events[i]);
        rondo_stream_release(streams[i]);
    }
    return code == RONDO_CODE_OUT_OF_RANGE;
}

void conf_want_room(conf *t, rondo_code code, const char *text) {
    if (code != RONDO_CODE_OUT_OF_RANGE || !fixture_runs_out(t)) return;
    conf_skip(t, "needs more streams or events than the device has: %s", text);
}

void conf_want_ok(conf *t, rondo_status status, const char *what, const char *file, int line) {
    char text[768];
    if (!status) return;
    rondo_status_format(status, text, sizeof text);
    rondo_code code = rondo_status_layer(status) == RONDO_LAYER_DRIVER ? rondo_status_code(status) : RONDO_CODE_OK;
    rondo_status_release(status);
    conf_want_room(t, code, text);
    conf_fail(t, file, line, "%s failed: %s", what, text);
}

void conf_want_text(conf *t, rondo_status status, rondo_code code, const char *text, const char *what, const char *file,
                    int line) {
    char all[1024];
    rondo_code got = rondo_status_code(status);
    rondo_status_format(status, all, sizeof all);
    rondo_status_release(status);
    if (got != code)
        conf_fail(t, file, line, "%s: wanted '%s', got '%s'", what, rondo_code_name(code), got ? all : "ok");
    if (text && !strstr(all, text)) conf_fail(t, file, line, "%s: its answer does not name '%s': %s", what, text, all);
}

void conf_want_code(conf *t, rondo_status status, rondo_code code, const char *what, const char *file, int line) {
    conf_want_text(t, status, code, NULL, what, file, line);
}

rondo_code conf_code(rondo_status status) {
    rondo_code code = rondo_status_code(status);
    rondo_status_release(status);
    return code;
}

/* ------------------------------------------------------------------------------------------------------ objects */

static conf_object *fixture_add(conf *t, conf_kind kind, void *pointer, rondo_device *device) {
    if (t->object_count == t->object_capacity) {
        size_t capacity = t->object_capacity ? t->object_capacity * 2 : 64;
        conf_object *grown = realloc(t->objects, capacity * sizeof *grown);
        if (!grown) conf_fail(t, __FILE__, __LINE__, "no host memory for the test");
        t->objects = grown;
        t->object_capacity = capacity;
    }
    t->objects[t->object_count] = (conf_object){.kind = kind, .pointer = pointer, .device = device};
    return &t->objects[t->object_count++];
}

void conf_keep(conf *t, conf_kind kind, void *pointer) { fixture_add(t, kind, pointer, t->device); }

void conf_keep_other(conf *t, void *pointer, void (*release)(void *pointer)) {
    fixture_add(t, CONF_OTHER, pointer, NULL)->release = release;
}

static void fixture_release(conf_object *object) {
    switch (object->kind) {
    case CONF_GONE: break;
    case CONF_DEVICE: rondo_device_release(object->pointer); break;
    case CONF_STREAM: rondo_stream_release(object->pointer); break;
    case CONF_EVENT: rondo_event_release(object->pointer); break;
    case CONF_GRAPH: rondo_graph_release(object->pointer); break;
    case CONF_MEMORY: rondo_status_release(rondo_memory_free(object->device, object->pointer)); break;
    case CONF_PINNED: rondo_status_release(rondo_memory_host_free(object->device, object->pointer)); break;
    case CONF_HOST: free(object->pointer); break;
    case CONF_KERNEL: rondo_kernel_release(object->device, object->kernel); break;
    case CONF_OTHER: object->release(object->pointer); break;
    }
    object->kind = CONF_GONE;
}

static conf_object *fixture_find(conf *t, const void *pointer) {
    for (size_t i = t->object_count; i-- > 0;)
        if (t->objects[i].kind != CONF_GONE && t->objects[i].pointer == pointer) return &t->objects[i];
    conf_fail(t, __FILE__, __LINE__, "the test lets go of what it does not have");
}

void conf_drop(conf *t, void *pointer) {
    conf_object *object = fixture_find(t, pointer);
    /* Memory that cannot be freed is a failure when a test asks for it. */
    if (object->kind == CONF_MEMORY || object->kind == CONF_PINNED) {
        bool pinned = object->kind == CONF_PINNED;
        object->kind = CONF_GONE;
        WANT_OK(t,
                pinned ? rondo_memory_host_free(object->device, pointer) : rondo_memory_free(object->device, pointer));
    } else {
        fixture_release(object);
    }
}

void conf_forget(conf *t, void *pointer) { fixture_find(t, pointer)->kind = CONF_GONE; }

/* What work may still write to goes last: a test that failed has left some on its way. */
static bool fixture_goes_last(const conf_object *object) {
    return object->kind == CONF_HOST || object->kind == CONF_PINNED || object->kind == CONF_KERNEL;
}

/* Where a test gave its device away and failed, the device goes with the last stream: what is freed through the device
 * goes before, when nothing is on its way any more. */
static void fixture_wait(const conf *t) {
    for (size_t i = 0; i < t->object_count; ++i)
        if (t->objects[i].kind == CONF_STREAM)
            rondo_status_release(rondo_stream_synchronize((rondo_stream *)t->objects[i].pointer));
}

void conf_release_all(conf *t) {
    int late = t->device ? 1 : 0;
    if (!t->device) fixture_wait(t);
    for (int pass = 0; pass < 2; ++pass)
        for (size_t i = t->object_count; i-- > 0;)
            if (fixture_goes_last(&t->objects[i]) == (pass == late)) fixture_release(&t->objects[i]);
    t->object_count = 0;
    memset(t->kernels, 0, sizeof t->kernels);
}

void conf_reopen(conf *t, const char *settings) {
    conf_release_all(t);
    rondo_device_release(t->device);
    t->device = NULL;
    WANT_OK(t, rondo_device_open(t->instance, t->device_name, settings, &t->device));
    t->properties = rondo_device_info(t->device);
}

rondo_stream *conf_stream(conf *t) {
    rondo_stream *stream = NULL;
    WANT_OK(t, rondo_stream_create(t->device, NULL, &stream));
    fixture_add(t, CONF_STREAM, stream, t->device);
    return stream;
}

rondo_event *conf_event(conf *t) {
    rondo_event *event = NULL;
    WANT_OK(t, rondo_event_create(t->device, &event));
    fixture_add(t, CONF_EVENT, event, t->device);
    return event;
}

static rondo_graph *fixture_graph(conf *t, uint32_t keep) {
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    rondo_graph *graph = NULL;
    options.keep_graph = keep;
    options.name = "conformance";
    WANT_OK(t, rondo_graph_create(t->device, &options, &graph));
    fixture_add(t, CONF_GRAPH, graph, t->device);
    return graph;
}

rondo_graph *conf_graph(conf *t) { return fixture_graph(t, 0); }
rondo_graph *conf_graph_kept(conf *t) { return fixture_graph(t, 1); }

void *conf_memory_on(conf *t, rondo_device *device, uint64_t bytes) {
    void *pointer = NULL;
    rondo_stream *stream = rondo_stream_default(device);
    WANT_OK(t, rondo_memory_allocate(device, bytes, &pointer));
    fixture_add(t, CONF_MEMORY, pointer, device);
    WANT_OK(t, rondo_stream_fill(stream, pointer, 0, bytes));
    WANT_OK(t, rondo_stream_synchronize(stream));
    return pointer;
}

void *conf_memory(conf *t, uint64_t bytes) { return conf_memory_on(t, t->device, bytes); }

void *conf_pinned(conf *t, uint64_t bytes) {
    void *pointer = NULL;
    WANT_OK(t, rondo_memory_host_allocate(t->device, bytes, &pointer));
    fixture_add(t, CONF_PINNED, pointer, t->device);
    memset(pointer, 0, (size_t)bytes);
    return pointer;
}

void *conf_host(conf *t, uint64_t bytes) {
    void *pointer = calloc(1, (size_t)bytes + 1u);
    WANT(t, pointer, "no host memory for the test");
    fixture_add(t, CONF_HOST, pointer, NULL);
    return pointer;
}

rondo_device *conf_second_device(conf *t) {
    char name[96];
    uint32_t count = 0;
    rondo_device *device = NULL;
    WANT_OK(t, rondo_device_type_count(t->instance, t->properties->name, &count));
    if (count < 2) conf_skip(t, "there is only one device of type '%s'", t->properties->name);
    snprintf(name, sizeof name, "%s:%d", t->properties->name, t->properties->index == 0 ? 1 : 0);
    WANT_OK(t, rondo_device_open(t->instance, name, NULL, &device));
    fixture_add(t, CONF_DEVICE, device, NULL);
    return device;
}

/* --------------------------------------------------------------------------------------------- numbers and time */

bool conf_is_inline(const conf *t) { return (t->properties->capabilities & RONDO_DEVICE_INLINE) != 0; }

/* splitmix64 */
uint64_t conf_random(conf *t) {
    uint64_t z = (t->random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t conf_between(conf *t, uint64_t low, uint64_t high) { return low + conf_random(t) % (high - low + 1u); }

uint64_t conf_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint32_t conf_philox_number(uint64_t seed, uint64_t number) {
    uint32_t x0 = (uint32_t)(number / 4), x1 = (uint32_t)((number / 4) >> 32), x2 = 0, x3 = 0;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        uint64_t left = 0xD2511F53u * (uint64_t)x0, right = 0xCD9E8D57u * (uint64_t)x2;
        uint32_t y0 = (uint32_t)(right >> 32) ^ x1 ^ k0, y2 = (uint32_t)(left >> 32) ^ x3 ^ k1;
        x1 = (uint32_t)right;
        x3 = (uint32_t)left;
        x0 = y0;
        x2 = y2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return number % 4 == 0 ? x0 : number % 4 == 1 ? x1 : number % 4 == 2 ? x2 : x3;
}

/* --------------------------------------------------------------------------------------------------------- work */

rondo_kernel conf_kernel(conf *t, int which) {
    static const char *const names[] = {"rondo.fill", "rondo.add",  "rondo.copy",
                                        "rondo.iota", "rondo.spin", "rondo.philox"};
    rondo_kernel *kernel = &t->kernels[which];
    if (!kernel->function && !kernel->context) {
        rondo_status status = rondo_kernel_find(t->device, names[which], kernel);
        /* Each catalogue that refuses says why. */
        if (rondo_status_code(status) == RONDO_CODE_UNSUPPORTED && !rondo_status_note_count(status)) {
            rondo_status_release(status);
            conf_skip(t, "the device has no kernel catalogue, and so no %s", names[which]);
        }
        WANT_OK(t, status);
        /* Before the graphs and streams that use it, so that it is released after them. */
        conf_object object = {.kind = CONF_KERNEL, .pointer = NULL, .device = t->device, .kernel = *kernel};
        fixture_add(t, CONF_GONE, NULL, NULL);
        memmove(t->objects + 1, t->objects, (t->object_count - 1u) * sizeof *t->objects);
        t->objects[0] = object;
    }
    return *kernel;
}

rondo_status conf_launch(rondo_stream *stream, rondo_kernel kernel, const char *name, const rondo_argument *arguments,
                         uint32_t count) {
    rondo_call call = RONDO_CALL_INIT;
    call.kernel = kernel;
    call.name = name;
    call.arguments = arguments;
    call.argument_count = count;
    return rondo_stream_launch(stream, &call);
}

void conf_fill(conf *t, rondo_stream *stream, void *out, uint64_t count, uint64_t value) {
    rondo_argument arguments[] = {CONF_WRITE(out, count * 8u), CONF_VALUE(count), CONF_VALUE(value)};
    WANT_OK(t, conf_launch(stream, conf_kernel(t, CONF_FILL), "fill", arguments, 3));
}

void conf_iota(conf *t, rondo_stream *stream, void *out, uint64_t count, uint64_t start) {
    rondo_argument arguments[] = {CONF_WRITE(out, count * 8u), CONF_VALUE(count), CONF_VALUE(start)};
    WANT_OK(t, conf_launch(stream, conf_kernel(t, CONF_IOTA), "iota", arguments, 3));
}

void conf_add(conf *t, rondo_stream *stream, const void *a, const void *b, void *out, uint64_t count) {
    rondo_argument arguments[] = {CONF_READ(a, count * 4u), CONF_READ(b, count * 4u), CONF_WRITE(out, count * 4u),
                                  CONF_VALUE(count)};
    WANT_OK(t, conf_launch(stream, conf_kernel(t, CONF_ADD), "add", arguments, 4));
}

void conf_copy(conf *t, rondo_stream *stream, const void *in, void *out, uint64_t bytes) {
    rondo_argument arguments[] = {CONF_READ(in, bytes), CONF_WRITE(out, bytes), CONF_VALUE(bytes)};
    WANT_OK(t, conf_launch(stream, conf_kernel(t, CONF_COPY), "copy", arguments, 3));
}

void conf_spin(conf *t, rondo_stream *stream, uint64_t nanoseconds) {
    rondo_argument arguments[] = {CONF_VALUE(nanoseconds)};
    WANT_OK(t, conf_launch(stream, conf_kernel(t, CONF_SPIN), "spin", arguments, 1));
}

void conf_philox(conf *t, rondo_stream *stream, void *out, uint64_t count, uint64_t seed, uint64_t offset) {
    rondo_argument arguments[] = {CONF_WRITE(out, count * 4u), CONF_VALUE(count), CONF_VALUE(seed), CONF_VALUE(offset)};
    WANT_OK(t, conf_launch(stream, conf_kernel(t, CONF_PHILOX), "philox", arguments, 4));
}

void conf_begin(conf *t, rondo_graph *graph, rondo_stream *stream) {
    rondo_pool_id none = {0, 0};
    WANT_OK(t, rondo_graph_capture_begin(graph, stream, none, RONDO_CAPTURE_MODE_DEFAULT));
}

void conf_end(conf *t, rondo_graph *graph, rondo_stream *stream) { WANT_OK(t, rondo_graph_capture_end(graph, stream)); }
void conf_replay(conf *t, rondo_graph *graph, rondo_stream *stream) { WANT_OK(t, rondo_graph_replay(graph, stream)); }
void conf_sync(conf *t, rondo_stream *stream) { WANT_OK(t, rondo_stream_synchronize(stream)); }

void conf_upload(conf *t, rondo_stream *stream, void *to, const void *host, uint64_t bytes) {
    WANT_OK(t, rondo_stream_copy(stream, to, host, bytes, RONDO_COPY_HOST_TO_DEVICE));
}

/* By way of memory that outlives a test which fails in between. */
void conf_download(conf *t, rondo_stream *stream, void *host, const void *from, uint64_t bytes) {
    void *bounce = conf_host(t, bytes);
    memcpy(bounce, host, (size_t)bytes);
    WANT_OK(t, rondo_stream_copy(stream, bounce, from, bytes, RONDO_COPY_DEVICE_TO_HOST));
    WANT_OK(t, rondo_stream_synchronize(stream));
    memcpy(host, bounce, (size_t)bytes);
    conf_drop(t, bounce);
}

uint64_t conf_read64(conf *t, rondo_stream *stream, const void *from) {
    uint64_t value = 0;
    conf_download(t, stream, &value, from, sizeof value);
    return value;
}

void conf_want64(conf *t, rondo_stream *stream, const void *from, uint64_t count, uint64_t first, uint64_t step,
                 const char *what) {
    uint64_t *host = conf_host(t, count * 8u);
    conf_download(t, stream, host, from, count * 8u);
    for (uint64_t i = 0; i < count; ++i)
        WANT(t, host[i] == first + i * step, "%s: element %llu is %llu (0x%llx), not %llu", what, (unsigned long long)i,
             (unsigned long long)host[i], (unsigned long long)host[i], (unsigned long long)(first + i * step));
    conf_drop(t, host);
}

int32_t conf_count_call(void *counter) {
    __atomic_fetch_add((uint32_t *)counter, 1u, __ATOMIC_SEQ_CST);
    return 0;
}

int32_t conf_failing_call(void *user) {
    (void)user;
    return 7;
}

rondo_code conf_failure_of(rondo_stream *stream, rondo_status enqueued, char *text, size_t capacity) {
    rondo_status late = rondo_stream_synchronize(stream);
    rondo_status first = enqueued ? enqueued : late;
    if (text) rondo_status_format(first, text, capacity);
    rondo_code code = rondo_status_code(first);
    if (enqueued) rondo_status_release(enqueued);
    rondo_status_release(late);
    return code;
}

void conf_want_usable(conf *t, rondo_stream *stream, const char *after) {
    void *memory = conf_memory(t, 64);
    uint64_t value = conf_random(t);
    conf_iota(t, stream, memory, 8, value);
    conf_want64(t, stream, memory, 8, value, 1, after);
    conf_drop(t, memory);
}

void conf_threads(conf *t, uint32_t count, void *(*function)(void *), void *arguments, size_t size) {
    pthread_t threads[64];
    uint32_t started = 0;
    int error = 0;
    while (started < count && started < 64 && !error) {
        error = pthread_create(&threads[started], NULL, function, (char *)arguments + started * size);
        if (!error) started++;
    }
    for (uint32_t i = 0; i < started; ++i) pthread_join(threads[i], NULL);
    WANT(t, !error && started == count, "could not start %u threads: %s", (unsigned)count, strerror(error));
}
