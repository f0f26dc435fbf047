/* SPDX-License-Identifier: Apache-2.0
 *
 * The layer "trace": what a device was told and what it did, with times, as a Chrome trace that Perfetto opens.
 *
 * Process 1 is the host: each thread's calls. Process 2 is the device: for each stream what ran on it. Kernels that are
 * host functions, and host calls, are timed where they run, by a function of the layer's in their place; copies and fills
 * of a device that has finished when the call returns are timed by the call. Of other work only the enqueueing is known.
 *
 * Lists reach this layer node by node, so that each node of a replay has its name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/layers/layer.h"

#define RONDO__TRACE_BUCKETS 4096u
#define RONDO__TRACE_TARGETS_MAX 262144u
#define RONDO__TRACE_THREADS_MAX 256u
#define RONDO__TRACE_BYTES_MAX ((size_t)1 << 30)
#define RONDO__TRACE_HOST 1
#define RONDO__TRACE_DEVICE 2

typedef struct trace_layer trace_layer;

/* What runs in the place of a kernel or host function, and what it stands for. Kept to the end: nobody says when the
 * last run of it is over. */
typedef struct trace_target {
    struct trace_target *next;
    trace_layer *trace;
    rondo_kernel kernel;          /* of a launch */
    rondo_host_function function; /* of a host call */
    void *user;
    uint32_t stream;
    size_t size;
    char name[];
} trace_target;

struct trace_layer {
    rondo__layer layer; /* first */
    rondo__buffer text; /* the events, one a line; under the layer's mutex, as all below */
    uint64_t start, events, dropped;
    uint64_t threads[RONDO__TRACE_THREADS_MAX];
    uint32_t thread_count;
    trace_target *buckets[RONDO__TRACE_BUCKETS];
    uint32_t target_count;
    char *file, *name;
};

static trace_layer *trace_of(rondo__layer *layer) { return (trace_layer *)layer; }

/* ------------------------------------------------------------------------------------------------------ events */

/* A small number for the calling thread; the last one stands for all that come late. */
static unsigned trace_thread(trace_layer *trace) {
    uint64_t self = rondo__thread_id();
    uint32_t i = 0;
    while (i < trace->thread_count && trace->threads[i] != self) i++;
    if (i == trace->thread_count && i < RONDO__TRACE_THREADS_MAX) trace->threads[trace->thread_count++] = self;
    return i + 1u;
}

typedef struct trace_event {
    const char *name, *category;
    char phase;
    int process;
    unsigned track; /* 0: the calling thread */
    uint64_t began, ended;
    const char *detail; /* members of "args" */
} trace_event;

static rondo_status trace_append(trace_layer *trace, const trace_event *event, unsigned track) {
    uint64_t began = event->began - trace->start, lasted = event->ended - event->began;
    RONDO__TRY(rondo__text_append(&trace->text, "%s{\"name\":", trace->events ? ",\n" : ""));
    RONDO__TRY(rondo__text_append_json(&trace->text, event->name, strlen(event->name)));
    RONDO__TRY(rondo__text_append(&trace->text, ",\"cat\":\"%s\",\"ph\":\"%c\",\"pid\":%d,\"tid\":%u,\"ts\":%llu.%03u",
                                  event->category, event->phase, event->process, track,
                                  (unsigned long long)(began / 1000u), (unsigned)(began % 1000u)));
    if (event->phase == 'X') {
        RONDO__TRY(rondo__text_append(&trace->text, ",\"dur\":%llu.%03u", (unsigned long long)(lasted / 1000u),
                                      (unsigned)(lasted % 1000u)));
    } else {
        RONDO__TRY(rondo__text_append(&trace->text, ",\"s\":\"t\""));
    }
    return rondo__text_append(&trace->text, ",\"args\":{%s}}", event->detail ? event->detail : "");
}

/* What finds no memory is counted and left out, whole. */
static void trace_emit_locked(trace_layer *trace, const trace_event *event) {
    size_t before = trace->text.count;
    unsigned track = event->track ? event->track : trace_thread(trace);
    rondo_status status = trace_append(trace, event, track);
    if (!status) {
        trace->events++;
        return;
    }
    rondo_status_release(status);
    trace->text.count = before;
    trace->dropped++;
}

static void trace_emit(trace_layer *trace, const trace_event *event) {
    rondo__mutex_lock(&trace->layer.mutex);
    trace_emit_locked(trace, event);
    rondo__mutex_unlock(&trace->layer.mutex);
}

/* ----------------------------------------------------------------------------------------------------- targets */

static void trace_ran(const trace_target *target, uint64_t began, int32_t reason) {
    char detail[48];
    (void)snprintf(detail, sizeof detail, "\"reason\":%d", (int)reason);
    trace_emit(target->trace, &(trace_event){.name = target->name,
                                             .category = target->function ? "host" : "kernel",
                                             .phase = 'X',
                                             .process = RONDO__TRACE_DEVICE,
                                             .track = target->stream,
                                             .began = began,
                                             .ended = rondo__now_ns(),
                                             .detail = reason ? detail : NULL});
}

static int32_t trace_run_kernel(const void *context, const uint64_t *words) {
    const trace_target *target = context;
    uint64_t began = rondo__now_ns();
    int32_t reason = target->kernel.function(target->kernel.context, words);
    trace_ran(target, began, reason);
    return reason;
}

static int32_t trace_run_host(void *user) {
    const trace_target *target = user;
    uint64_t began = rondo__now_ns();
    int32_t reason = target->function(target->user);
    trace_ran(target, began, reason);
    return reason;
}

static bool trace_target_is(const trace_target *target, const trace_target *key, const char *name) {
    return target->kernel.function == key->kernel.function && target->kernel.context == key->kernel.context &&
           target->function == key->function && target->user == key->user && target->stream == key->stream &&
           strcmp(target->name, name) == 0;
}

static uint32_t trace_hash(const trace_target *key, const char *name) {
    uint64_t h = (uint64_t)(uintptr_t)key->kernel.context ^ ((uint64_t)(uintptr_t)key->user << 1) ^ key->stream;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    h *= 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 40) % RONDO__TRACE_BUCKETS;
}

/* Null: there is no room, and what it is for goes untimed. */
static trace_target *trace_target_locked(trace_layer *trace, const trace_target *key, const char *name) {
    trace_target **bucket = &trace->buckets[trace_hash(key, name)];
    size_t length = strlen(name), size = sizeof(trace_target) + length + 1u;
    void *memory = NULL;
    for (trace_target *target = *bucket; target; target = target->next) {
        if (trace_target_is(target, key, name)) return target;
    }
    if (trace->target_count == RONDO__TRACE_TARGETS_MAX) return NULL;
    rondo_status status = rondo__allocate(&trace->layer.allocator, size, &memory);
    if (status) {
        rondo_status_release(status);
        return NULL;
    }
    trace_target *target = memory;
    *target = *key;
    target->trace = trace;
    target->size = size;
    memcpy(target->name, name, length + 1u);
    target->next = *bucket;
    *bucket = target;
    trace->target_count++;
    return target;
}

static trace_target *trace_target_of(trace_layer *trace, const trace_target *key, const char *name) {
    rondo__mutex_lock(&trace->layer.mutex);
    trace_target *target = trace_target_locked(trace, key, name);
    if (!target) trace->dropped++;
    rondo__mutex_unlock(&trace->layer.mutex);
    return target;
}

/* ------------------------------------------------------------------------------------------------------- calls */

static rondo_status trace_before(rondo__layer *layer, rondo__layer_call *call) {
    trace_layer *trace = trace_of(layer);
    if (call->entry == RONDO__LAYER_LAUNCH && call->call->kernel.function) {
        trace_target key = {.kernel = call->call->kernel, .stream = call->object->id};
        trace_target *target = trace_target_of(trace, &key, call->call->name ? call->call->name : "a call");
        if (target) {
            call->changed = *call->call;
            call->changed.kernel = (rondo_kernel){trace_run_kernel, target};
            call->call = &call->changed;
        }
    } else if (call->entry == RONDO__LAYER_HOST_CALL) {
        trace_target key = {.function = call->function, .user = call->user, .stream = call->object->id};
        trace_target *target = trace_target_of(trace, &key, "a host call");
        if (target) {
            call->function = trace_run_host;
            call->user = target;
        }
    }
    call->began = rondo__now_ns();
    return RONDO_OK;
}

/* Copies and fills, on the track of their stream. */
static void trace_moved(trace_layer *trace, const rondo__layer_call *call, uint64_t ended, const char *detail) {
    static const char *const names[] = {"copy", "copy host to device", "copy device to host", "copy device to device"};
    if (!(trace->layer.properties.capabilities & RONDO_DEVICE_INLINE)) return;
    trace_emit(trace, &(trace_event){.name = call->entry == RONDO__LAYER_FILL ? "fill" : names[call->kind & 3],
                                     .category = "memory",
                                     .phase = 'X',
                                     .process = RONDO__TRACE_DEVICE,
                                     .track = call->object->id,
                                     .began = call->began,
                                     .ended = ended,
                                     .detail = detail});
}

static void trace_capture(trace_layer *trace, const rondo__layer_call *call) {
    static const char *const modes[RONDO_CAPTURE_MODE_COUNT] = {
#define RONDO_X(name, number, text) text,
        RONDO_CAPTURE_MODES(RONDO_X)
#undef RONDO_X
    };
    char detail[64];
    bool known = call->mode >= 0 && call->mode < RONDO_CAPTURE_MODE_COUNT;
    (void)snprintf(detail, sizeof detail, "\"mode\":\"%s\"", known ? modes[call->mode] : "unknown");
    trace_emit(trace, &(trace_event){.name = call->active ? "capture begins" : "capture ends",
                                     .category = "capture",
                                     .phase = 'i',
                                     .process = RONDO__TRACE_DEVICE,
                                     .track = call->object->id,
                                     .began = call->began,
                                     .detail = call->active ? detail : NULL});
}

static rondo_status trace_after(rondo__layer *layer, rondo__layer_call *call, rondo_status status) {
    trace_layer *trace = trace_of(layer);
    const rondo__layer_object *stream = call->stream ? call->stream : call->object;
    const char *entry = rondo__layer_entry_name(call->entry);
    char name[128], detail[192];
    uint64_t ended = rondo__now_ns();
    if (call->entry == RONDO__LAYER_QUERY || call->entry == RONDO__LAYER_EVENT_QUERY) return status;
    if (call->entry == RONDO__LAYER_CAPTURE_CHANGED) trace_capture(trace, call);
    (void)snprintf(name, sizeof name, "%s%s%.96s", entry, call->call ? " " : "",
                   call->call && call->call->name ? call->call->name : "");
    int used = snprintf(detail, sizeof detail, "\"stream\":%u",
                        stream && stream->type == RONDO__LAYER_STREAM ? (unsigned)stream->id : 0u);
    if (call->bytes) {
        used +=
            snprintf(detail + used, sizeof detail - (size_t)used, ",\"bytes\":%llu", (unsigned long long)call->bytes);
    }
    if (call->destination) {
        used += snprintf(detail + used, sizeof detail - (size_t)used, ",\"address\":\"0x%llx\"",
                         (unsigned long long)call->destination);
    }
    if (!status && (call->entry == RONDO__LAYER_COPY || call->entry == RONDO__LAYER_FILL)) {
        trace_moved(trace, call, ended, detail);
    }
    if (status) {
        (void)snprintf(detail + used, sizeof detail - (size_t)used, ",\"failed\":\"%s\"",
                       rondo_code_name(rondo_status_code(status)));
    }
    trace_emit(trace, &(trace_event){.name = name,
                                     .category = "call",
                                     .phase = 'X',
                                     .process = RONDO__TRACE_HOST,
                                     .began = call->began,
                                     .ended = ended,
                                     .detail = detail});
    return status;
}

/* ----------------------------------------------------------------------------------------------------- the file */

static rondo_status trace_io(const char *file, const char *what) {
    char reason[128] = "";
    return RONDO__FAIL(IO, FILE, "the trace file '%s' cannot be %s: %s", file, what,
                       strerror_r(errno, reason, sizeof reason));
}

static void trace_title(FILE *stream, int process, const char *kind, const char *name) {
    (void)fprintf(stream, ",\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"%s %s\"}}",
                  process, kind, name);
}

static void trace_print(const trace_layer *trace, FILE *stream) {
    (void)fprintf(stream,
                  "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"device\":\"%s\",\"dropped\":%llu},\n"
                  "\"traceEvents\":[\n"
                  "{\"name\":\"rondo\",\"ph\":\"M\",\"pid\":%d,\"args\":{}}",
                  trace->name, (unsigned long long)trace->dropped, RONDO__TRACE_HOST);
    trace_title(stream, RONDO__TRACE_HOST, "host of", trace->name);
    trace_title(stream, RONDO__TRACE_DEVICE, "device", trace->name);
    for (uint32_t i = 1; i <= trace->layer.ids[RONDO__LAYER_STREAM]; i++) {
        (void)fprintf(stream,
                      ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"args\":{\"name\":"
                      "\"stream %u\"}}",
                      RONDO__TRACE_DEVICE, (unsigned)i, (unsigned)i);
    }
    if (trace->events) (void)fprintf(stream, ",\n%s", rondo__text(&trace->text));
    (void)fputs("\n]}\n", stream);
}

/* Into a file beside it, which then takes its name: whole or not at all. */
static rondo_status trace_write_beside(const trace_layer *trace, char *beside) {
    int descriptor = mkstemp(beside);
    if (descriptor < 0) return trace_io(trace->file, "made");
    (void)fchmod(descriptor, 0644); /* readable as any file that a program writes, not as a secret */
    FILE *stream = fdopen(descriptor, "w");
    if (!stream) {
        rondo_status status = trace_io(trace->file, "opened");
        (void)close(descriptor);
        (void)unlink(beside);
        return status;
    }
    trace_print(trace, stream);
    bool bad = ferror(stream) != 0;
    bad = fclose(stream) != 0 || bad;
    if (!bad && rename(beside, trace->file) == 0) return RONDO_OK;
    rondo_status status = trace_io(trace->file, "written");
    (void)unlink(beside);
    return status;
}

static rondo_status trace_beside(const trace_layer *trace, rondo__buffer *out_name) {
    rondo__buffer_init(out_name, &trace->layer.allocator, 1, 8192);
    return rondo__text_append(out_name, "%s.XXXXXX", trace->file);
}

static rondo_status trace_write(const trace_layer *trace) {
    rondo__buffer beside;
    rondo_status status = trace_beside(trace, &beside);
    if (!status) status = trace_write_beside(trace, beside.data);
    rondo__buffer_deinit(&beside);
    return status;
}

/* A place that cannot be written is said at once and not at the end. */
static rondo_status trace_try_file(const trace_layer *trace) {
    rondo__buffer beside;
    rondo_status status = trace_beside(trace, &beside);
    if (!status) {
        int descriptor = mkstemp(beside.data);
        if (descriptor < 0) {
            status = trace_io(trace->file, "made");
        } else {
            (void)close(descriptor);
            (void)unlink(beside.data);
        }
    }
    rondo__buffer_deinit(&beside);
    return status;
}

/* -------------------------------------------------------------------------------------------------------- life */

static void trace_destroy(trace_layer *trace) {
    rondo_allocator allocator = trace->layer.allocator;
    for (uint32_t i = 0; i < RONDO__TRACE_BUCKETS; i++) {
        trace_target *next;
        for (trace_target *target = trace->buckets[i]; target; target = next) {
            next = target->next;
            rondo__free(&allocator, target, target->size);
        }
    }
    rondo__buffer_deinit(&trace->text);
    rondo__string_free(&allocator, trace->file);
    rondo__string_free(&allocator, trace->name);
    rondo__free(&allocator, trace, sizeof *trace);
}

static void trace_close(rondo__layer *layer) {
    trace_layer *trace = trace_of(layer);
    layer->lower->close(layer->device);
    rondo_status status = trace_write(trace);
    if (status) {
        rondo__log_write(&layer->log, RONDO_LOG_WARNING, "layer 'trace': %s", rondo_status_message(status));
        rondo_status_release(status);
    }
    rondo__layer_deinit(layer);
    trace_destroy(trace);
}

static const rondo__layer_hooks trace_hooks = {
    .name = "trace", .hides_lists = true, .before = trace_before, .after = trace_after, .close = trace_close};

static rondo_status trace_prepare(trace_layer *trace, const rondo__log *log, const rondo_device_table *lower,
                                  void *device, const char *file, const char *name) {
    const rondo_allocator allocator = trace->layer.allocator;
    RONDO__TRY(rondo__string_copy(&allocator, file, &trace->file));
    RONDO__TRY(rondo__string_copy(&allocator, name, &trace->name));
    RONDO__TRY(trace_try_file(trace));
    return rondo__layer_init(&trace->layer, &trace_hooks, &allocator, log, lower, device);
}

rondo_status rondo__trace_create(const rondo_allocator *allocator, const rondo__log *log,
                                 const rondo_device_table *lower, void *device, const char *file, const char *name,
                                 rondo__layer **out_layer) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(trace_layer), &memory));
    trace_layer *trace = memory;
    trace->layer.allocator = *allocator;
    trace->start = rondo__now_ns();
    rondo__buffer_init(&trace->text, allocator, 1, RONDO__TRACE_BYTES_MAX);
    rondo_status status = trace_prepare(trace, log, lower, device, file, name);
    if (status) {
        trace_destroy(trace);
        return status;
    }
    *out_layer = &trace->layer;
    return RONDO_OK;
}
