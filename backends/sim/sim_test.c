/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulator: nothing runs before it is waited for, any allowed order may come and only those, memory that is not
 * one's own is told apart, and a failure stays until somebody asks. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <rondo/runtime.h>

#include "backends/sim/sim.h"
#include "harness/harness.h"

static char lines[2048];

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

static rondo_device *open_device(rondo_test *t, const char *settings) {
    rondo_device *device = NULL;
    rondo_instance *instance = open_instance(t);
    T_OK(t, rondo_device_open(instance, "sim", settings, &device));
    T_DEFER(t, rondo_device_release, device);
    return device;
}

static rondo_stream *open_stream(rondo_test *t, rondo_device *device) {
    rondo_stream *stream = NULL;
    T_OK(t, rondo_stream_create(device, NULL, &stream));
    T_DEFER(t, rondo_stream_release, stream);
    return stream;
}

static rondo_event *open_event(rondo_test *t, rondo_device *device) {
    rondo_event *event = NULL;
    T_OK(t, rondo_event_create(device, &event));
    T_DEFER(t, rondo_event_release, event);
    return event;
}

static unsigned char *take_memory(rondo_test *t, rondo_device *device, uint64_t size) {
    void *memory = NULL;
    T_OK(t, rondo_memory_allocate(device, size, &memory));
    return memory;
}

/* context: null, or a text whose length is the reason to fail. words[0]: a counter, or 0. */
static int32_t kernel_count(const void *context, const uint64_t *words) {
    if (words[0]) ++*(unsigned char *)(uintptr_t)words[0];
    return context ? (int32_t)strlen(context) : 0;
}

static rondo_status launch(rondo_stream *stream, void *target, uint64_t length, const char *why, const char *name) {
    rondo_argument argument = {(uint64_t)(uintptr_t)target, length, RONDO_ACCESS_BOTH, 0};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel = (rondo_kernel){kernel_count, why};
    call.arguments = &argument;
    call.argument_count = 1;
    call.name = name;
    rondo_status status = rondo_stream_launch(stream, &call);
    argument.word = 1; /* everything was copied */
    return status;
}

static uint64_t counter(rondo_test *t, rondo_device *device, const char *name) {
    uint64_t value = 0;
    T_OK(t, rondo_device_counter(device, name, &value));
    return value;
}

static int32_t host_bump(void *user) {
    ++*(int *)user;
    return 0;
}

/* ------------------------------------------------------------------------------------------------------ delay */

static void test_nothing_runs_before_it_is_waited_for(rondo_test *t) {
    rondo_device *device = open_device(t, NULL);
    rondo_stream *stream = open_stream(t, device);
    unsigned char *a = take_memory(t, device, 4), out[4] = {1, 1, 1, 1};
    int ran = 0, asked = 0;
    bool done = false;
    T_OK(t, rondo_stream_fill(stream, a, 40, 4));
    T_OK(t, launch(stream, a, 4, NULL, "count"));
    T_OK(t, rondo_stream_copy(stream, out, a, 4, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_stream_host_call(stream, host_bump, &ran));
    T_TRUE(t, ran == 0 && out[0] == 1 && a[0] == RONDO__SIM_FRESH);
    while (!done) {
        T_OK(t, rondo_stream_query(stream, &done));
        asked++;
    }
    T_EQ(t, asked, 4); /* one question, one step */
    T_TRUE(t, ran == 1 && out[0] == 41 && out[1] == 40);
    T_OK(t, rondo_stream_synchronize(stream));
    T_EQ(t, counter(t, device, "launches"), 1);
    T_EQ(t, counter(t, device, "copies"), 1);
    T_EQ(t, counter(t, device, "fills"), 1);
    T_EQ(t, counter(t, device, "host_calls"), 1);
    T_EQ(t, counter(t, device, "synchronizes"), 1);
    T_EQ(t, counter(t, device, "allocations"), 1);
    uint64_t value;
    T_FAILS(t, rondo_device_counter(device, "nothing", &value), NOT_FOUND, "no counter 'nothing'");
}

static void test_host_data_is_taken_at_once(rondo_test *t) {
    rondo_device *device = open_device(t, NULL);
    rondo_stream *stream = open_stream(t, device);
    unsigned char *a = take_memory(t, device, 4), in[4] = {1, 2, 3, 4}, out[4] = {0};
    T_OK(t, rondo_stream_copy(stream, a, in, 4, RONDO_COPY_HOST_TO_DEVICE));
    memset(in, 9, sizeof in);
    T_OK(t, rondo_stream_copy(stream, a + 2, a, 2, RONDO_COPY_DEVICE_TO_DEVICE));
    T_OK(t, rondo_stream_copy(stream, out, a, 4, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_stream_synchronize(stream));
    T_TRUE(t, out[0] == 1 && out[1] == 2 && out[2] == 1 && out[3] == 2);
}

/* ------------------------------------------------------------------------------------------------------ order */

#define STREAMS 4
#define STEPS 40

typedef struct story {
    int order[STREAMS * STEPS]; /* which step ran, in the order of running */
    int ran;
} story;

static story the_story;

typedef struct step {
    int number, after; /* after: a step that must have run before, or -1 */
} step;

static int32_t host_step(void *user) {
    const step *s = user;
    the_story.order[the_story.ran++] = s->number;
    return 0;
}

/* Steps are dealt to streams at random, with a record or a wait thrown in. What a wait stands for is kept apart, as the
 * number of the last step before the record. */
static void tell(rondo_test *t, const char *settings, story *out, step *steps, int *stream_of) {
    rondo_device *device = NULL;
    rondo_stream *streams[STREAMS];
    rondo_event *events[STREAMS];
    int last[STREAMS], mark[STREAMS], pending[STREAMS];
    uint64_t random = 12345;
    rondo_instance *instance = NULL;
    T_OK(t, rondo_instance_create(NULL, &instance));
    T_OK(t, rondo_device_open(instance, "sim", settings, &device));
    for (int i = 0; i < STREAMS; i++) {
        T_OK(t, rondo_stream_create(device, NULL, &streams[i]));
        T_OK(t, rondo_event_create(device, &events[i]));
        last[i] = mark[i] = pending[i] = -1;
    }
    the_story.ran = 0;
    for (int i = 0; i < STREAMS * STEPS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int s = (int)((random >> 33) % STREAMS), other = (int)((random >> 40) % STREAMS),
            dice = (int)((random >> 50) % 4);
        if (dice == 0) {
            T_OK(t, rondo_event_record(events[s], streams[s]));
            mark[s] = last[s];
        } else if (dice == 1) {
            T_OK(t, rondo_event_wait(events[other], streams[s]));
            pending[s] = mark[other];
        }
        steps[i] = (step){i, pending[s]};
        stream_of[i] = s;
        pending[s] = -1;
        T_OK(t, rondo_stream_host_call(streams[s], host_step, &steps[i]));
        last[s] = i;
    }
    T_EQ(t, the_story.ran, 0);
    for (int i = 0; i < STREAMS; i++) T_OK(t, rondo_stream_synchronize(streams[i]));
    T_EQ(t, the_story.ran, STREAMS * STEPS);
    for (int i = 0; i < STREAMS; i++) {
        rondo_event_release(events[i]);
        rondo_stream_release(streams[i]);
    }
    rondo_device_release(device);
    rondo_instance_release(instance);
    *out = the_story;
}

static void check_story(rondo_test *t, const story *s, const step *steps, const int *stream_of) {
    bool ran[STREAMS * STEPS] = {false};
    int last[STREAMS] = {-1, -1, -1, -1};
    for (int i = 0; i < STREAMS * STEPS; i++) {
        int number = s->order[i];
        T_TRUE(t, !ran[number] && number > last[stream_of[number]]);
        if (steps[number].after >= 0) T_TRUE(t, ran[steps[number].after]);
        ran[number] = true;
        last[stream_of[number]] = number;
    }
}

static void test_any_allowed_order_and_only_those(rondo_test *t) {
    static step steps[STREAMS * STEPS];
    static int stream_of[STREAMS * STEPS];
    static story first, again, other;
    int different = 0;
    for (int seed = 0; seed < 300; seed++) {
        char settings[32];
        (void)snprintf(settings, sizeof settings, "seed=%d", seed);
        tell(t, settings, &other, steps, stream_of);
        check_story(t, &other, steps, stream_of);
        if (seed % 50 == 0) { /* the same seed tells the same story */
            tell(t, settings, &again, steps, stream_of);
            T_TRUE(t, memcmp(&again, &other, sizeof again) == 0);
        }
        if (seed == 0) first = other;
        if (memcmp(&first, &other, sizeof first) != 0) different++;
    }
    T_EQ(t, different, 299);
}

/* A wait means the record before it, not one that comes later. */
static void test_a_wait_means_the_record_before_it(rondo_test *t) {
    rondo_device *device = open_device(t, NULL);
    rondo_stream *a = open_stream(t, device), *b = open_stream(t, device);
    rondo_event *event = open_event(t, device);
    int early = 0, late = 0, after = 0;
    bool done = true;
    T_OK(t, rondo_stream_host_call(a, host_bump, &early));
    T_OK(t, rondo_event_record(event, a));
    T_OK(t, rondo_event_wait(event, b));
    T_OK(t, rondo_stream_host_call(b, host_bump, &after));
    T_OK(t, rondo_event_record(event, b)); /* anew, behind the wait for the old one */
    T_OK(t, rondo_event_wait(event, a));
    T_OK(t, rondo_stream_host_call(a, host_bump, &late));
    T_OK(t, rondo_event_query(event, &done));
    T_TRUE(t, !done);
    T_OK(t, rondo_event_synchronize(event));
    T_TRUE(t, early == 1 && after == 1);
    T_OK(t, rondo_event_query(event, &done));
    T_TRUE(t, done);
    T_OK(t, rondo_stream_synchronize(a));
    T_EQ(t, late, 1);
    T_EQ(t, counter(t, device, "events"), 4);
}

static void test_an_event_may_go_before_its_work(rondo_test *t) {
    rondo_device *device = open_device(t, NULL);
    rondo_stream *a = open_stream(t, device), *b = open_stream(t, device);
    rondo_event *event = NULL;
    int ran = 0;
    T_OK(t, rondo_event_create(device, &event));
    rondo_status status = rondo_stream_host_call(a, host_bump, &ran);
    if (!status) status = rondo_event_record(event, a);
    if (!status) status = rondo_event_wait(event, b);
    rondo_event_release(event);
    T_OK(t, status);
    T_OK(t, rondo_stream_synchronize(b));
    T_EQ(t, ran, 1);
    T_OK(t, rondo_stream_synchronize(a));
}

/* ----------------------------------------------------------------------------------------------------- memory */

static void test_fresh_and_freed_memory_is_poisoned(rondo_test *t) {
    rondo_device *device = open_device(t, NULL);
    unsigned char *a = take_memory(t, device, 1000), *b = NULL;
    for (int i = 0; i < 1000; i++) T_EQ(t, a[i], RONDO__SIM_FRESH);
    memset(a, 1, 1000);
    T_OK(t, rondo_memory_free(device, a));
    for (int i = 0; i < 1000; i++) T_EQ(t, a[i], RONDO__SIM_FREED); /* kept in quarantine, so this may be looked at */
    b = take_memory(t, device, 1000);
    T_TRUE(t, a != b);
    T_OK(t, rondo_memory_free(device, b));
    T_STR(t, lines, "");
}

static void test_a_late_write_is_noticed(rondo_test *t) {
    rondo_instance *instance = open_instance(t);
    rondo_device *device = NULL;
    void *a = NULL;
    T_OK(t, rondo_device_open(instance, "sim", NULL, &device));
    rondo_status status = rondo_memory_allocate(device, 64, &a);
    if (!status) status = rondo_memory_free(device, a);
    if (!status) ((unsigned char *)a)[63] = 0;
    rondo_device_release(device);
    T_OK(t, status);
    T_TRUE(t, strstr(lines, "sim: freed memory was written") != NULL);
}

static void test_the_limit_holds(rondo_test *t) {
    rondo_device *device = open_device(t, "memory=1000");
    uint64_t free_bytes = 0, total = 0;
    void *a = take_memory(t, device, 600), *b = NULL;
    T_FAILS(t, rondo_memory_allocate(device, 401, &b), OUT_OF_MEMORY,
            rondo_test_failing(t) ? NULL : "no memory for 401 bytes: 600 of 1000 are in use");
    b = take_memory(t, device, 400);
    T_OK(t, rondo_device_memory_info(device, &free_bytes, &total));
    T_TRUE(t, free_bytes == 0 && total == 1000);
    T_OK(t, rondo_memory_free(device, a));
    T_OK(t, rondo_device_memory_info(device, &free_bytes, &total));
    T_EQ(t, free_bytes, 600);
    a = take_memory(t, device, 600); /* what lies in quarantine is not counted */
    T_OK(t, rondo_memory_free(device, a));
    T_OK(t, rondo_memory_free(device, b));
}

static void test_copies_outside_are_refused(rondo_test *t) {
    rondo_device *device = open_device(t, NULL);
    rondo_stream *stream = open_stream(t, device);
    unsigned char *a = take_memory(t, device, 64), *freed = take_memory(t, device, 64), host[64] = {0};
    T_OK(t, rondo_memory_free(device, freed));
    T_FAILS(t, rondo_stream_copy(stream, a + 1, host, 64, RONDO_COPY_HOST_TO_DEVICE), INVALID_ARGUMENT,
            "crosses the end of its allocation");
    T_FAILS(t, rondo_stream_copy(stream, host, freed, 1, RONDO_COPY_DEVICE_TO_HOST), INVALID_ARGUMENT,
            "which was freed");
    T_FAILS(t, rondo_stream_copy(stream, host, host + 32, 1, RONDO_COPY_DEVICE_TO_DEVICE), INVALID_ARGUMENT,
            "is no memory of this device");
    T_FAILS(t, rondo_stream_copy(stream, a, a + 32, 8, RONDO_COPY_HOST_TO_DEVICE), INVALID_ARGUMENT,
            "a copy from the source of 8 bytes");
    T_FAILS(t, rondo_stream_copy(stream, a, a + 32, 8, RONDO_COPY_HOST_TO_DEVICE), INVALID_ARGUMENT,
            "is device memory where the copy's direction says host memory");
    T_FAILS(t, rondo_stream_copy(stream, freed, a, 8, RONDO_COPY_DEVICE_TO_HOST), INVALID_ARGUMENT,
            "is device memory where");
    T_FAILS(t, rondo_stream_fill(stream, a + 60, 1, 5), INVALID_ARGUMENT, "a fill of 5 bytes");
    T_OK(t, rondo_stream_fill(stream, a + 60, 1, 4));
    T_OK(t, rondo_stream_synchronize(stream));
}

static int32_t kernel_is_not_to_run(const void *context, const uint64_t *words) {
    (void)context, (void)words;
    abort();
}

static void check_bad_argument(rondo_test *t, rondo_stream *stream, const rondo_argument *arguments, const char *part) {
    rondo_call call = RONDO_CALL_INIT;
    call.kernel.function = kernel_is_not_to_run;
    call.arguments = arguments;
    call.argument_count = 2;
    call.name = "reader";
    T_OK(t, rondo_stream_launch(stream, &call));
    T_FAILS(t, rondo_stream_synchronize(stream), KERNEL_FAILED, part);
}

static void test_calls_on_memory_that_is_not_theirs(rondo_test *t) {
    rondo_device *device = open_device(t, NULL);
    rondo_stream *stream = open_stream(t, device);
    unsigned char *a = take_memory(t, device, 64), *freed = take_memory(t, device, 64), host[8];
    rondo_argument arguments[2] = {{(uint64_t)(uintptr_t)a, 64, RONDO_ACCESS_BOTH, 0}, {0}};
    T_OK(t, rondo_memory_free(device, freed));
    arguments[1] = (rondo_argument){(uint64_t)(uintptr_t)freed, 8, RONDO_ACCESS_READ, 0};
    check_bad_argument(t, stream, arguments, "sim: call 'reader': argument 1 reads 8 bytes at");
    check_bad_argument(t, stream, arguments, "which was freed");
    arguments[1] = (rondo_argument){(uint64_t)(uintptr_t)a + 1, 64, RONDO_ACCESS_WRITE, 0};
    check_bad_argument(t, stream, arguments, "argument 1 writes 64 bytes");
    check_bad_argument(t, stream, arguments, "crosses the end");
    arguments[1] = (rondo_argument){(uint64_t)(uintptr_t)host, 0, RONDO_ACCESS_BOTH, 0};
    check_bad_argument(t, stream, arguments, "is no memory of this device");
    /* A value is no address, and null is an operand that is absent. */
    arguments[1] = (rondo_argument){(uint64_t)(uintptr_t)host, 0, RONDO_ACCESS_VALUE, 0};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel.function = kernel_count;
    call.arguments = arguments;
    call.argument_count = 2;
    T_OK(t, rondo_stream_launch(stream, &call));
    arguments[1] = (rondo_argument){0, 64, RONDO_ACCESS_READ, 0};
    T_OK(t, rondo_stream_launch(stream, &call));
    T_OK(t, rondo_stream_synchronize(stream));
}

static void test_memory_freed_between(rondo_test *t) {
    rondo_device *device = open_device(t, NULL);
    rondo_stream *stream = open_stream(t, device);
    unsigned char *a = take_memory(t, device, 64);
    int ran = 0;
    T_OK(t, launch(stream, a, 64, NULL, "early"));
    T_OK(t, rondo_stream_host_call(stream, host_bump, &ran));
    T_OK(t, rondo_memory_free(device, a)); /* waits: the work before it is done */
    T_EQ(t, ran, 1);
    T_OK(t, rondo_stream_synchronize(stream));
    T_OK(t, launch(stream, a, 64, NULL, "late"));
    T_FAILS(t, rondo_stream_synchronize(stream), KERNEL_FAILED, "call 'late': argument 0 uses 64 bytes");
}

/* --------------------------------------------------------------------------------------------------- failures */

static void test_a_failure_stays_until_asked_for(rondo_test *t) {
    rondo_device *device = open_device(t, NULL);
    rondo_stream *stream = open_stream(t, device), *other = open_stream(t, device);
    unsigned char *a = take_memory(t, device, 4), *b = take_memory(t, device, 4), host[4] = {7, 7, 7, 7};
    int ran = 0;
    bool done = false;
    T_OK(t, rondo_stream_fill(stream, a, 1, 4));
    T_OK(t, launch(stream, a, 4, "xyz", "bad"));
    T_OK(t, launch(stream, a, 4, NULL, "after"));
    T_OK(t, rondo_stream_copy(stream, host, a, 4, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_stream_fill(stream, a, 9, 4));
    T_OK(t, rondo_stream_host_call(stream, host_bump, &ran));
    T_OK(t, launch(other, b, 1, NULL, "fine"));
    while (!done) T_OK(t, rondo_stream_query(stream, &done)); /* asking is not taking */
    T_OK(t, launch(stream, a, 4, NULL, "later still"));
    T_TRUE(t, ran == 0 && host[0] == 7);
    rondo_status status = rondo_stream_synchronize(stream);
    bool noted = rondo_status_note_count(status) == 1 &&
                 strcmp(rondo_status_note(status, 0), "5 later operations of the stream were dropped") == 0;
    T_FAILS(t, status, KERNEL_FAILED, "sim: call 'bad': its kernel failed with reason 3");
    T_TRUE(t, noted || rondo_test_failing(t));
    T_EQ(t, a[0], 2); /* the fill and the failing call itself */
    T_OK(t, rondo_stream_synchronize(stream));
    T_OK(t, rondo_stream_synchronize(other));
    T_OK(t, launch(stream, a, 4, NULL, "anew"));
    T_OK(t, rondo_stream_synchronize(stream));
    T_EQ(t, a[0], 3);
}

static void test_who_waits_for_failed_work_fails(rondo_test *t) {
    rondo_device *device = open_device(t, NULL);
    rondo_stream *a = open_stream(t, device), *b = open_stream(t, device);
    rondo_event *event = open_event(t, device);
    int ran = 0;
    T_OK(t, launch(a, NULL, 0, "x", "bad"));
    T_OK(t, rondo_event_record(event, a));
    T_OK(t, rondo_event_wait(event, b));
    T_OK(t, rondo_stream_host_call(b, host_bump, &ran));
    T_FAILS(t, rondo_event_synchronize(event), KERNEL_FAILED, "the work before the event failed");
    T_FAILS(t, rondo_stream_synchronize(b), KERNEL_FAILED, "waits for an event whose work failed");
    T_EQ(t, ran, 0);
    T_FAILS(t, rondo_stream_synchronize(a), KERNEL_FAILED, "call 'bad'");
    T_OK(t, rondo_event_record(event, a));
    T_OK(t, rondo_event_wait(event, b));
    T_OK(t, rondo_stream_host_call(b, host_bump, &ran));
    T_OK(t, rondo_stream_synchronize(b));
    T_EQ(t, ran, 1);
}

/* What was enqueued before the failure was told has failed too, whenever it runs; what is enqueued after it has not. */
static void test_a_failure_that_was_told_is_over(rondo_test *t) {
    for (int later_too = 0; later_too < 2; later_too++) {
        rondo_device *device = open_device(t, NULL);
        rondo_stream *a = open_stream(t, device), *b = open_stream(t, device), *c = open_stream(t, device);
        rondo_event *event = open_event(t, device);
        int ran = 0, early = 0;
        bool done = false;
        T_OK(t, launch(a, NULL, 0, "x", "bad"));
        T_OK(t, rondo_event_record(event, a));
        T_OK(t, rondo_event_wait(event, b));
        T_OK(t, rondo_stream_host_call(b, host_bump, &early));
        T_FAILS(t, rondo_stream_synchronize(a), KERNEL_FAILED, "call 'bad'");
        if (later_too) { /* another failure of the stream is another matter */
            T_OK(t, launch(a, NULL, 0, "x", "worse"));
            while (!done) T_OK(t, rondo_stream_query(a, &done));
        }
        T_OK(t, rondo_event_synchronize(event));
        T_OK(t, rondo_event_wait(event, c));
        T_OK(t, rondo_stream_host_call(c, host_bump, &ran));
        T_OK(t, rondo_stream_synchronize(c));
        T_EQ(t, ran, 1);
        T_FAILS(t, rondo_stream_synchronize(b), KERNEL_FAILED, "waits for an event whose work failed");
        T_EQ(t, early, 0);
        if (later_too) T_FAILS(t, rondo_stream_synchronize(a), KERNEL_FAILED, "call 'worse'");
    }
}

static int32_t host_fails(void *user) {
    (void)user;
    return 12;
}

static void test_a_host_function_may_fail(rondo_test *t) {
    rondo_device *device = open_device(t, NULL);
    T_OK(t, rondo_stream_host_call(rondo_stream_default(device), host_fails, NULL));
    T_FAILS(t, rondo_stream_synchronize(rondo_stream_default(device)), KERNEL_FAILED,
            "host function failed with reason 12");
}

/* A failure that frees meet stays with its stream. */
static void test_freeing_takes_no_failure_away(rondo_test *t) {
    rondo_device *device = open_device(t, NULL);
    rondo_stream *stream = open_stream(t, device);
    unsigned char *a = take_memory(t, device, 4);
    T_OK(t, launch(stream, a, 4, "x", "bad"));
    T_OK(t, rondo_memory_free(device, a));
    T_FAILS(t, rondo_stream_synchronize(stream), KERNEL_FAILED, "call 'bad'");
    T_OK(t, rondo_stream_synchronize(stream));
}

typedef struct caller {
    rondo_device *device;
    rondo_stream *stream, *other;
    rondo_event *event;
    void *memory;
    int refused;
} caller;

static int refused(rondo_status status) {
    bool is = rondo_status_code(status) == RONDO_CODE_INVALID_STATE;
    rondo_status_release(status);
    return is;
}

static int32_t host_calls_back(void *user) {
    caller *c = user;
    bool done;
    void *fresh = NULL;
    c->refused += refused(rondo_stream_synchronize(c->stream));
    c->refused += refused(rondo_stream_synchronize(c->other));
    c->refused += refused(rondo_stream_query(c->stream, &done));
    c->refused += refused(rondo_stream_host_call(c->other, host_fails, NULL));
    c->refused += refused(rondo_stream_fill(c->stream, c->memory, 1, 1));
    c->refused += refused(launch(c->stream, NULL, 0, NULL, NULL));
    c->refused += refused(rondo_stream_copy(c->stream, c->memory, c->memory, 1, RONDO_COPY_DEVICE_TO_DEVICE));
    c->refused += refused(rondo_event_record(c->event, c->other));
    c->refused += refused(rondo_event_wait(c->event, c->other));
    c->refused += refused(rondo_event_query(c->event, &done));
    c->refused += refused(rondo_event_synchronize(c->event));
    rondo_status_release(rondo_memory_allocate(c->device, 8, &fresh)); /* allocating waits for nothing */
    return fresh ? 0 : 1;
}

static void test_host_functions_must_not_call_back(rondo_test *t) {
    rondo_device *device = open_device(t, NULL);
    rondo_stream *a = open_stream(t, device), *b = open_stream(t, device);
    caller c = {device, a, b, open_event(t, device), take_memory(t, device, 8), 0};
    T_OK(t, rondo_event_record(c.event, a));
    T_OK(t, rondo_stream_host_call(a, host_calls_back, &c));
    rondo_status status = rondo_stream_synchronize(a);
    if (!rondo_test_failing(t)) T_EQ(t, c.refused, 11);
    if (rondo_test_failing(t)) rondo_status_release(status);
    else T_OK(t, status);
}

/* --------------------------------------------------------------------------------------------------- settings */

static void test_settings(rondo_test *t) {
    rondo_instance *instance = open_instance(t);
    rondo_device *a = NULL, *b = NULL;
    T_FAILS(t, rondo_device_open(instance, "sim", "speed=3", &a), INVALID_ARGUMENT, "there is no setting 'speed'");
    T_FAILS(t, rondo_device_open(instance, "sim", "seed", &a), INVALID_ARGUMENT, "setting 'seed' needs a whole number");
    T_FAILS(t, rondo_device_open(instance, "sim", "seed=", &a), INVALID_ARGUMENT, "whole number");
    T_FAILS(t, rondo_device_open(instance, "sim", "seed=1x", &a), INVALID_ARGUMENT, "whole number");
    T_FAILS(t, rondo_device_open(instance, "sim", "seed=18446744073709551616", &a), INVALID_ARGUMENT, "whole number");
    T_FAILS(t, rondo_device_open(instance, "sim", "seed=1,,", &a), INVALID_ARGUMENT, "there is no setting ''");
    T_FAILS(t, rondo_device_open(instance, "sim:2", NULL, &a), OUT_OF_RANGE, "has 2 devices");
    T_OK(t, rondo_device_open(instance, "sim", "seed=3,memory=4096", &a));
    T_DEFER(t, rondo_device_release, a);
    T_OK(t, rondo_device_open(instance, "sim:1", NULL, &b));
    T_DEFER(t, rondo_device_release, b);
    T_TRUE(t, a != b);
    T_EQ(t, rondo_device_info(a)->memory_total, 4096);
    T_EQ(t, rondo_device_info(b)->memory_total, 1 << 30);
    T_EQ(t, rondo_device_info(b)->index, 1);
    T_TRUE(t, (rondo_device_info(a)->capabilities & RONDO_DEVICE_HOST_ADDRESSABLE) == 0);
    T_TRUE(t, (rondo_device_info(a)->capabilities & RONDO_DEVICE_INLINE) == 0);
    T_TRUE(t, (rondo_device_info(a)->capabilities & RONDO_DEVICE_GRAPH_CAPABLE) != 0);
}

static void test_the_seed_of_the_environment(rondo_test *t) {
    rondo_instance *instance = open_instance(t);
    rondo_device *a = NULL;
    T_EQ(t, setenv("RONDO_SIM_SEED", "oops", 1), 0);
    rondo_status status = rondo_device_open(instance, "sim", NULL, &a);
    T_EQ(t, unsetenv("RONDO_SIM_SEED"), 0);
    T_FAILS(t, status, INVALID_ARGUMENT, "RONDO_SIM_SEED needs a whole number");
}

/* ---------------------------------------------------------------------------------------------------- threads */

typedef struct worker {
    rondo_device *device;
    int failures, ran;
} worker;

static void *worker_run(void *argument) {
    worker *self = argument;
    rondo_stream *stream = NULL;
    rondo_status status = rondo_stream_create(self->device, NULL, &stream);
    for (int i = 0; i < 100 && !status; i++) {
        unsigned char in[64], out[64] = {0};
        void *memory = NULL;
        memset(in, i, sizeof in);
        status = rondo_memory_allocate(self->device, sizeof in, &memory);
        if (!status) status = rondo_stream_copy(stream, memory, in, sizeof in, RONDO_COPY_HOST_TO_DEVICE);
        if (!status) status = launch(stream, memory, 64, NULL, "count");
        if (!status) status = rondo_stream_copy(stream, out, memory, sizeof out, RONDO_COPY_DEVICE_TO_HOST);
        if (!status) status = rondo_stream_host_call(stream, host_bump, &self->ran);
        if (!status && i % 2) status = rondo_stream_synchronize(stream);
        if (!status) status = rondo_memory_free(self->device, memory);
        if (!status && (out[0] != i + 1 || out[1] != i || self->ran != i + 1)) self->failures++;
    }
    if (status) self->failures++;
    rondo_status_release(status);
    rondo_stream_release(stream);
    return NULL;
}

static void test_threads(rondo_test *t) {
    rondo_device *device = open_device(t, NULL);
    worker workers[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (worker){device, 0, 0};
        T_EQ(t, pthread_create(&threads[i], NULL, worker_run, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) T_TRUE(t, workers[i].failures == 0 && workers[i].ran == 100);
}

RONDO_TEST_MAIN(T(test_nothing_runs_before_it_is_waited_for), T(test_host_data_is_taken_at_once),
                T_PLAIN(test_any_allowed_order_and_only_those), T(test_a_wait_means_the_record_before_it),
                T(test_an_event_may_go_before_its_work), T(test_fresh_and_freed_memory_is_poisoned),
                T(test_a_late_write_is_noticed), T(test_the_limit_holds), T(test_copies_outside_are_refused),
                T(test_calls_on_memory_that_is_not_theirs), T(test_memory_freed_between),
                T(test_a_failure_stays_until_asked_for), T(test_who_waits_for_failed_work_fails),
                T(test_a_failure_that_was_told_is_over), T(test_a_host_function_may_fail),
                T(test_freeing_takes_no_failure_away), T(test_host_functions_must_not_call_back), T(test_settings),
                T(test_the_seed_of_the_environment), T_PLAIN(test_threads))
