/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams: order within, none across, what they copy, and how failures come out. */
#include <stdio.h>
#include <string.h>

#include "conf.h"

/* A value is written and copied away again and again: any step that is lost, doubled or moved shows. */
static void stream_order(conf *t) {
    enum { STEPS = 300 };
    rondo_stream *stream = conf_stream(t);
    char *cell = conf_memory(t, 8), *trace = conf_memory(t, STEPS * 8);
    for (uint64_t i = 0; i < STEPS; ++i) {
        if (i % 3 == 0) conf_fill(t, stream, cell, 1, 100 + i);
        if (i % 3 == 1) conf_iota(t, stream, cell, 1, 100 + i);
        if (i % 3 == 2) {
            uint64_t value = 100 + i;
            conf_upload(t, stream, cell, &value, 8);
        }
        if (i % 2) conf_copy(t, stream, cell, trace + i * 8, 8);
        else WANT_OK(t, rondo_stream_copy(stream, trace + i * 8, cell, 8, RONDO_COPY_DEVICE_TO_DEVICE));
    }
    conf_want64(t, stream, trace, STEPS, 100, 1, "the trace of a stream");
}

/* The work of one stream does not depend on how others are waited for. */
static void stream_independent(conf *t) {
    enum { STREAMS = 4, COUNT = 500 };
    rondo_stream *streams[STREAMS];
    void *memory[STREAMS];
    for (uint64_t i = 0; i < STREAMS; ++i) {
        streams[i] = conf_stream(t);
        memory[i] = conf_memory(t, COUNT * 8);
    }
    for (uint64_t round = 0; round < 20; ++round)
        for (uint64_t i = 0; i < STREAMS; ++i) conf_iota(t, streams[i], memory[i], COUNT, round * 10000 + i * 1000);
    for (uint64_t i = STREAMS; i-- > 0;)
        conf_want64(t, streams[i], memory[i], COUNT, 190000 + i * 1000, 1, "one of four streams");
}

static void stream_query(conf *t) {
    rondo_stream *stream = conf_stream(t);
    uint32_t *called = conf_host(t, sizeof *called);
    bool done = false;
    WANT_OK(t, rondo_stream_query(stream, &done));
    WANT(t, done, "a stream without work is not done");
    conf_spin(t, stream, 20000000);
    WANT_OK(t, rondo_stream_host_call(stream, conf_count_call, called));
    uint64_t start = conf_now();
    WANT_OK(t, rondo_stream_query(stream, &done));
    uint32_t seen = __atomic_load_n(called, __ATOMIC_SEQ_CST);
    WANT(t, !done || seen == 1, "a stream is done before its work is");
    while (!done) {
        WANT(t, conf_now() - start < 20000000000u, "a stream with 20 ms of work is not done after 20 s");
        WANT_OK(t, rondo_stream_query(stream, &done));
    }
    WANT(t, __atomic_load_n(called, __ATOMIC_SEQ_CST) == 1, "a stream is done before its work is");
    conf_sync(t, stream);
}

/* Each question is answered truly at every moment. */
static void stream_query_never_early(conf *t) {
    rondo_stream *stream = conf_stream(t), *other = conf_stream(t);
    void *memory = conf_memory(t, 4096);
    for (int round = 0; round < 200; ++round) {
        uint32_t *called = conf_host(t, sizeof *called);
        bool done = false;
        conf_iota(t, other, memory, 512, 0);
        for (int i = 0; i < 5; ++i) WANT_OK(t, rondo_stream_host_call(stream, conf_count_call, called));
        for (int i = 0; i < 1000 && !done; ++i) {
            WANT_OK(t, rondo_stream_query(stream, &done));
            uint32_t seen = __atomic_load_n(called, __ATOMIC_SEQ_CST);
            if (done && seen != 5) {
                conf_sync(t, stream);
                WANT(t, false, "done after %u of 5 calls", (unsigned)seen);
            }
        }
        conf_sync(t, stream);
    }
}

static void stream_synchronize(conf *t) {
    rondo_stream *stream = conf_stream(t);
    uint32_t *called = conf_host(t, sizeof *called);
    for (int i = 0; i < 3; ++i) conf_sync(t, stream);
    for (uint32_t round = 1; round <= 50; ++round) {
        conf_spin(t, stream, 10000);
        for (int i = 0; i < 4; ++i) WANT_OK(t, rondo_stream_host_call(stream, conf_count_call, called));
        conf_sync(t, stream);
        uint32_t seen = __atomic_load_n(called, __ATOMIC_SEQ_CST);
        WANT(t, seen == round * 4, "synchronise came back after %u of %u calls", (unsigned)seen, (unsigned)round * 4);
    }
}

/* A failure is told once: where it was enqueued or at the next synchronise. The stream goes on afterwards. */
static void stream_failure_once(conf *t) {
    rondo_stream *stream = conf_stream(t), *other = conf_stream(t);
    void *memory = conf_memory(t, 800), *far = conf_memory(t, 800);
    for (int round = 0; round < 10; ++round) {
        conf_iota(t, other, far, 100, 5);
        rondo_status enqueued = rondo_stream_host_call(stream, conf_failing_call, NULL);
        WANT(t, !enqueued || conf_is_inline(t),
             "a failure of work came back from enqueueing it on a device that is not inline");
        rondo_code code = conf_failure_of(stream, enqueued, NULL, 0);
        WANT(t, code == RONDO_CODE_KERNEL_FAILED, "a failing host function gave '%s'", rondo_code_name(code));
        conf_sync(t, stream);
        conf_iota(t, stream, memory, 100, 3);
        conf_want64(t, stream, memory, 100, 3, 1, "work after a failure that was told");
        conf_want64(t, other, far, 100, 5, 1, "a stream beside one that failed");
    }
}

static int32_t stream_kernel_fails(const void *context, const uint64_t *words) {
    (void)context;
    return (int32_t)words[0];
}

/* The first failure is the one that is told, by the name that the call had when it was enqueued. */
static void stream_failure_named(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_kernel kernel = {stream_kernel_fails, NULL};
    char name[32] = "first_to_fail", text[1024] = "";
    rondo_argument good[] = {CONF_VALUE(0)}, bad[] = {CONF_VALUE(3)};
    WANT_OK(t, conf_launch(stream, kernel, "good", good, 1));
    rondo_status first = conf_launch(stream, kernel, name, bad, 1);
    memset(name, 'x', sizeof name - 1);
    rondo_status second = conf_launch(stream, kernel, "second_to_fail", bad, 1);
    rondo_status_release(second);
    rondo_code code = conf_failure_of(stream, first, text, sizeof text);
    WANT(t, code == RONDO_CODE_KERNEL_FAILED, "a failing kernel gave '%s'", rondo_code_name(code));
    WANT(t, strstr(text, "first_to_fail"), "the failure does not name its call: %s", text);
    conf_want_usable(t, stream, "two failures");
}

static void stream_failure_is_waited_for(conf *t) {
    rondo_stream *stream = conf_stream(t);
    uint32_t *before = conf_host(t, sizeof *before);
    WANT_OK(t, rondo_stream_host_call(stream, conf_count_call, before));
    rondo_code code = conf_failure_of(stream, rondo_stream_host_call(stream, conf_failing_call, NULL), NULL, 0);
    WANT(t, code == RONDO_CODE_KERNEL_FAILED, "got '%s'", rondo_code_name(code));
    WANT(t, *before == 1, "work before the failure did not run");
    bool done = false;
    WANT_OK(t, rondo_stream_query(stream, &done));
    WANT(t, done, "a stream is not done after its failure was told");
}

/* Arguments, names and pageable host data are the caller's again when the call returns. */
static void stream_copies_what_it_gets(conf *t) {
    rondo_stream *stream = conf_stream(t);
    char *memory = conf_memory(t, 64 * 8), *uploaded = conf_memory(t, 64 * 8);
    rondo_kernel kernel = conf_kernel(t, CONF_IOTA);
    conf_spin(t, stream, 100000);
    for (uint64_t i = 0; i < 64; ++i) {
        rondo_argument arguments[] = {CONF_WRITE(memory + i * 8, 8), CONF_VALUE(1), CONF_VALUE(500 + i)};
        char name[] = "iota";
        uint64_t value = 900 + i;
        WANT_OK(t, conf_launch(stream, kernel, name, arguments, 3));
        conf_upload(t, stream, uploaded + i * 8, &value, 8);
        memset(arguments, 0xff, sizeof arguments);
        memset(name, 0x7f, sizeof name - 1);
        value = 0xdeadbeef;
    }
    conf_want64(t, stream, memory, 64, 500, 1, "calls whose arguments were overwritten afterwards");
    conf_want64(t, stream, uploaded, 64, 900, 1, "copies whose host data was overwritten afterwards");
}

/* The last release waits for the work. */
static void stream_destroyed_with_work(conf *t) {
    rondo_stream *reader = conf_stream(t);
    for (uint64_t round = 0; round < 20; ++round) {
        rondo_stream *stream = conf_stream(t);
        void *memory = conf_memory(t, 8000);
        uint32_t *called = conf_host(t, sizeof *called);
        conf_spin(t, stream, 50000);
        conf_iota(t, stream, memory, 1000, round);
        WANT_OK(t, rondo_stream_host_call(stream, conf_count_call, called));
        conf_drop(t, stream);
        WANT(t, __atomic_load_n(called, __ATOMIC_SEQ_CST) == 1, "a stream went before its work was done");
        conf_want64(t, reader, memory, 1000, round, 1, "the work of a stream that was released");
        conf_drop(t, memory);
    }
}

static void stream_many(conf *t) {
    enum { STREAMS = 64 };
    rondo_stream *streams[STREAMS];
    char *memory = conf_memory(t, STREAMS * 8);
    for (uint64_t i = 0; i < STREAMS; ++i) {
        streams[i] = conf_stream(t);
        for (uint64_t k = 0; k < i; ++k) WANT(t, streams[i] != streams[k], "two streams are one");
    }
    for (uint64_t i = 0; i < STREAMS; ++i) conf_iota(t, streams[i], memory + i * 8, 1, 70 + i);
    for (uint64_t i = 0; i < STREAMS; ++i) conf_sync(t, streams[i]);
    conf_want64(t, streams[0], memory, STREAMS, 70, 1, "64 streams at once");
}

static void stream_references(conf *t) {
    rondo_stream *stream = conf_stream(t);
    void *memory = conf_memory(t, 64);
    rondo_stream_retain(stream);
    rondo_stream_release(stream);
    conf_iota(t, stream, memory, 8, 4);
    conf_want64(t, stream, memory, 8, 4, 1, "a stream that was retained and released");
    WANT(t, rondo_stream_device(stream) == t->device, "a stream belongs to another device");
    rondo_stream_release(NULL);
}

static void stream_options(conf *t) {
    rondo_stream_options options = RONDO_STREAM_OPTIONS_INIT;
    rondo_stream *stream = NULL;
    options.flags = 1;
    rondo_status status = rondo_stream_create(t->device, &options, &stream);
    if (!status) {
        conf_keep(t, CONF_STREAM, stream);
        conf_want_usable(t, stream, "an asynchronous stream");
    } else {
        WANT_CODE(t, status, UNSUPPORTED);
    }
    options.flags = 1u << 31;
    status = rondo_stream_create(t->device, &options, &stream);
    if (!status) conf_keep(t, CONF_STREAM, stream);
    WANT_CODE(t, status, INVALID_ARGUMENT);
    options.flags = 0;
    options.priority = -1;
    WANT_OK(t, rondo_stream_create(t->device, &options, &stream));
    conf_keep(t, CONF_STREAM, stream);
    conf_want_usable(t, stream, "a stream with a priority");
}

static void stream_refuses(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_kernel kernel = conf_kernel(t, CONF_IOTA);
    rondo_argument arguments[RONDO_ARGUMENT_MAX + 1];
    rondo_call call = RONDO_CALL_INIT;
    bool done;
    memset(arguments, 0, sizeof arguments);
    WANT_CODE(t, conf_launch(stream, kernel, "many", arguments, RONDO_ARGUMENT_MAX + 1), INVALID_ARGUMENT);
    WANT_CODE(t, conf_launch(stream, kernel, "none", NULL, 1), INVALID_ARGUMENT);
    arguments[0].access = 4;
    WANT_CODE(t, conf_launch(stream, kernel, "access", arguments, 1), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_stream_launch(stream, NULL), INVALID_ARGUMENT);
    call.struct_size = 0;
    WANT_CODE(t, rondo_stream_launch(stream, &call), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_stream_launch(NULL, &call), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_stream_host_call(stream, NULL, NULL), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_stream_synchronize(NULL), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_stream_query(NULL, &done), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_stream_query(stream, NULL), INVALID_ARGUMENT);
    conf_want_usable(t, stream, "calls that were refused");
}

static const conf_test tests[] = {
    {{"stream.order", "stream", "Work of a stream runs in the order of enqueueing, each piece once."}, 0, stream_order},
    {{"stream.independent", "stream", "Streams do not disturb each other."}, 0, stream_independent},
    {{"stream.query", "stream", "Query says done after the work, and in the end it does."},
     CONF_NEEDS_HOST_CALLS,
     stream_query},
    {{"stream.query_never_early", "stream", "Query never says done while work is left."},
     CONF_NEEDS_HOST_CALLS,
     stream_query_never_early},
    {{"stream.synchronize", "stream host_call", "Synchronise comes back when all work has run."},
     CONF_NEEDS_HOST_CALLS,
     stream_synchronize},
    {{"stream.failure_once", "stream failure", "A failure of work is told once, and others see nothing of it."},
     CONF_NEEDS_HOST_CALLS,
     stream_failure_once},
    {{"stream.failure_named", "stream failure", "The first failure is told, with the name of its call."},
     CONF_NEEDS_HOST_KERNELS,
     stream_failure_named},
    {{"stream.failure_order", "stream failure", "What stood before a failure has run."},
     CONF_NEEDS_HOST_CALLS,
     stream_failure_is_waited_for},
    {{"stream.copies_what_it_gets", "stream", "Arguments, names and pageable data are copied at the call."},
     0,
     stream_copies_what_it_gets},
    {{"stream.destroyed_with_work", "stream destruction", "Releasing a stream waits for its work."},
     CONF_NEEDS_HOST_CALLS,
     stream_destroyed_with_work},
    {{"stream.many", "stream", "Sixty-four streams at once."}, 0, stream_many},
    {{"stream.references", "stream", "References are counted."}, 0, stream_references},
    {{"stream.options", "stream", "Flags and priorities work, or are refused with the right code."}, 0, stream_options},
    {{"stream.refuses", "stream", "Malformed calls are refused and change nothing."}, 0, stream_refuses},
};
CONF_SUITE(conf_suite_stream, tests);
