/* SPDX-License-Identifier: Apache-2.0
 *
 * What a test gets: a device of its own, objects that are released for it whatever happens, and checks that end it.
 *
 * A check that fails jumps back to the runner, so a test is written as if nothing could go wrong. Checks belong to the
 * test's own thread: a thread that a test starts, and a host function, hand back values instead.
 */
#ifndef RONDO_CONFORMANCE_CONF_H
#define RONDO_CONFORMANCE_CONF_H

#include <setjmp.h>

#include "conformance.h"

typedef struct conf conf;

/* What a device must say it can do; a test on another is skipped, and says why. */
enum {
    CONF_NEEDS_GRAPH = 1u << 0,
    CONF_NEEDS_HOST_KERNELS = 1u << 1, /* the test brings kernels of its own */
    CONF_NEEDS_TWO_DEVICES = 1u << 2,
    CONF_NEEDS_OWN_MEMORY = 1u << 3, /* memory that is the device's alone, of a known size */
    CONF_NEEDS_HOST_CALLS = 1u << 4,
    CONF_NEEDS_STOP = 1u << 5,      /* work behind a failure does not run */
    CONF_NEEDS_DIRECTION = 1u << 6, /* copies are refused where their addresses contradict their direction */
    CONF_NEEDS_MEMORY_INFO = 1u << 7
};

typedef struct conf_test {
    rondo_conformance_test about;
    uint32_t needs;
    void (*run)(conf *t);
} conf_test;

typedef struct conf_suite {
    const conf_test *tests;
    uint32_t count;
} conf_suite;
#define CONF_SUITE(name, tests) const conf_suite name = {tests, sizeof(tests) / sizeof *(tests)}

enum { CONF_FILL, CONF_ADD, CONF_COPY, CONF_IOTA, CONF_SPIN, CONF_PHILOX, CONF_KERNELS };

typedef enum conf_kind {
    CONF_GONE,
    CONF_DEVICE,
    CONF_STREAM,
    CONF_EVENT,
    CONF_GRAPH,
    CONF_MEMORY,
    CONF_PINNED,
    CONF_HOST,
    CONF_KERNEL,
    CONF_OTHER
} conf_kind;

typedef struct conf_object {
    conf_kind kind;
    void *pointer;
    rondo_device *device; /* of memory and kernels */
    rondo_kernel kernel;
    void (*release)(void *pointer); /* of others */
} conf_object;

struct conf {
    rondo_instance *instance;
    const char *device_name; /* as given */
    const char *settings;
    const char *no_host_calls; /* why the device runs no host functions; null: it does */
    rondo_device *device;
    const rondo_device_properties *properties;
    uint64_t random; /* state of conf_random */
    rondo_kernel kernels[CONF_KERNELS];
    conf_object *objects;
    size_t object_count, object_capacity;
    jmp_buf out;
    rondo_conformance_outcome outcome;
    const char *file;
    int32_t line;
    char message[1024];
};

/* ---- checks */

_Noreturn void conf_fail(conf *t, const char *file, int line, const char *format, ...) RONDO_PRINTF(4, 5);
/* The device lacks what the test is about, and has said so in the way the contract asks for. */
_Noreturn void conf_skip(conf *t, const char *format, ...) RONDO_PRINTF(2, 3);
/* Skips, by the device's own limits, what was out of range while it cannot give 64 streams and events more. */
void conf_want_room(conf *t, rondo_code code, const char *text);
void conf_want_ok(conf *t, rondo_status status, const char *what, const char *file, int line);
void conf_want_code(conf *t, rondo_status status, rondo_code code, const char *what, const char *file, int line);
/* As want_code, and the message or a note holds `text`. */
void conf_want_text(conf *t, rondo_status status, rondo_code code, const char *text, const char *what, const char *file,
                    int line);

#define WANT(t, condition, ...)                                            \
    do {                                                                   \
        if (!(condition)) conf_fail((t), __FILE__, __LINE__, __VA_ARGS__); \
    } while (0)
#define WANT_OK(t, call) conf_want_ok((t), (call), #call, __FILE__, __LINE__)
#define WANT_CODE(t, call, code) conf_want_code((t), (call), RONDO_CODE_##code, #call, __FILE__, __LINE__)
#define WANT_TEXT(t, call, code, text) conf_want_text((t), (call), RONDO_CODE_##code, (text), #call, __FILE__, __LINE__)

/* Releases it and returns its code. */
rondo_code conf_code(rondo_status status);

/* ---- objects (fixture.c): released at the end of the test, the newest first, unless conf_drop did it */

rondo_stream *conf_stream(conf *t);
rondo_event *conf_event(conf *t);
rondo_graph *conf_graph(conf *t);
rondo_graph *conf_graph_kept(conf *t); /* keep_graph */
/* Device memory, filled with zeroes. */
void *conf_memory(conf *t, uint64_t bytes);
void *conf_memory_on(conf *t, rondo_device *device, uint64_t bytes);
void *conf_pinned(conf *t, uint64_t bytes);
/* Host memory of the C library, zeroed. */
void *conf_host(conf *t, uint64_t bytes);
rondo_device *conf_second_device(conf *t);
/* Keeps what the test made by itself. */
void conf_keep(conf *t, conf_kind kind, void *pointer);
void conf_keep_other(conf *t, void *pointer, void (*release)(void *pointer));
/* Releases now. */
void conf_drop(conf *t, void *pointer);
/* The test released it by itself: nothing is left to do. */
void conf_forget(conf *t, void *pointer);
void conf_release_all(conf *t);
/* Closes the device and opens it again. */
void conf_reopen(conf *t, const char *settings);

bool conf_is_inline(const conf *t);
uint64_t conf_random(conf *t);
/* From low to high, both inclusive. */
uint64_t conf_between(conf *t, uint64_t low, uint64_t high);
uint64_t conf_now(void);

/* ---- work */

#define CONF_VALUE(value) \
    { (uint64_t)(value), 0, RONDO_ACCESS_VALUE, 0 }
#define CONF_READ(pointer, bytes) \
    { (uint64_t)(uintptr_t)(pointer), (uint64_t)(bytes), RONDO_ACCESS_READ, 0 }
#define CONF_WRITE(pointer, bytes) \
    { (uint64_t)(uintptr_t)(pointer), (uint64_t)(bytes), RONDO_ACCESS_WRITE, 0 }

/* A contract kernel, prepared once a test. */
rondo_kernel conf_kernel(conf *t, int which);
rondo_status conf_launch(rondo_stream *stream, rondo_kernel kernel, const char *name, const rondo_argument *arguments,
                         uint32_t count);
void conf_fill(conf *t, rondo_stream *stream, void *out, uint64_t count, uint64_t value);
void conf_iota(conf *t, rondo_stream *stream, void *out, uint64_t count, uint64_t start);
void conf_add(conf *t, rondo_stream *stream, const void *a, const void *b, void *out, uint64_t count);
void conf_copy(conf *t, rondo_stream *stream, const void *in, void *out, uint64_t bytes);
void conf_spin(conf *t, rondo_stream *stream, uint64_t nanoseconds);
void conf_philox(conf *t, rondo_stream *stream, void *out, uint64_t count, uint64_t seed, uint64_t offset);

void conf_begin(conf *t, rondo_graph *graph, rondo_stream *stream);
void conf_end(conf *t, rondo_graph *graph, rondo_stream *stream);
void conf_replay(conf *t, rondo_graph *graph, rondo_stream *stream);
void conf_sync(conf *t, rondo_stream *stream);

void conf_upload(conf *t, rondo_stream *stream, void *to, const void *host, uint64_t bytes);
/* Waits, and leaves the bytes in `host`. */
void conf_download(conf *t, rondo_stream *stream, void *host, const void *from, uint64_t bytes);
uint64_t conf_read64(conf *t, rondo_stream *stream, const void *from);
/* After the stream: out[i] == first + i * step for `count` 64-bit numbers. */
void conf_want64(conf *t, rondo_stream *stream, const void *from, uint64_t count, uint64_t first, uint64_t step,
                 const char *what);
/* A host function that adds one to the uint32 it is given, and one that fails. */
int32_t conf_count_call(void *counter);
int32_t conf_failing_call(void *user);
/* The stream's next enqueued work fails: wherever the device reports it, here or at the next synchronise, the code comes
 * back. The stream is synchronised. */
rondo_code conf_failure_of(rondo_stream *stream, rondo_status enqueued, char *text, size_t capacity);
/* The stream runs work as ever. */
void conf_want_usable(conf *t, rondo_stream *stream, const char *after);
/* Philox4x32-10 by the book; the n-th number of the seed's stream. */
uint32_t conf_philox_number(uint64_t seed, uint64_t number);
/* Runs function(argument) in `count` threads of their own, argument i at arguments + i * size, and joins them. */
void conf_threads(conf *t, uint32_t count, void *(*function)(void *), void *arguments, size_t size);

/* ---- the registry */

extern const conf_suite *const conf_suites[];
extern const uint32_t conf_suite_count;

#endif
