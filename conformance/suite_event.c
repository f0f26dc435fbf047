/* SPDX-License-Identifier: Apache-2.0
 *
 * Events: the only order between streams. */
#include "conf.h"

static void event_unrecorded(conf *t) {
    rondo_event *event = conf_event(t);
    rondo_stream *stream = conf_stream(t);
    bool done = false;
    WANT_OK(t, rondo_event_query(event, &done));
    WANT(t, done, "an event that was never recorded is not done");
    WANT_OK(t, rondo_event_synchronize(event));
    WANT_OK(t, rondo_event_wait(event, stream));
    conf_want_usable(t, stream, "a wait for an event that was never recorded");
}

static void event_query_and_synchronize(conf *t) {
    rondo_stream *stream = conf_stream(t);
    for (int round = 0; round < 30; ++round) {
        rondo_event *event = conf_event(t);
        uint32_t *called = conf_host(t, sizeof *called);
        bool done = false;
        conf_spin(t, stream, 100000);
        WANT_OK(t, rondo_stream_host_call(stream, conf_count_call, called));
        WANT_OK(t, rondo_event_record(event, stream));
        WANT_OK(t, rondo_event_query(event, &done));
        bool right = !done || __atomic_load_n(called, __ATOMIC_SEQ_CST) == 1;
        uint64_t start = conf_now();
        if (round % 2) {
            WANT_OK(t, rondo_event_synchronize(event));
        } else {
            while (!done && conf_now() - start < 20000000000u) WANT_OK(t, rondo_event_query(event, &done));
            WANT(t, done, "an event is not done 20 s after 0.1 ms of work");
        }
        uint32_t seen = __atomic_load_n(called, __ATOMIC_SEQ_CST);
        WANT_OK(t, rondo_event_query(event, &done));
        conf_sync(t, stream);
        WANT(t, right && seen == 1, "an event is over before the work that it stands behind");
        WANT(t, done, "an event that was waited for is not done");
        conf_drop(t, event);
    }
}

/* A producer under load, a consumer that waits: the consumer never sees what was there before. */
static void event_cross_stream(conf *t) {
    rondo_stream *producer = conf_stream(t), *consumer = conf_stream(t);
    rondo_event *event = conf_event(t);
    char *shared = conf_memory(t, 800), *out = conf_memory(t, 100 * 8);
    for (uint64_t i = 0; i < 100; ++i) {
        conf_spin(t, producer, 20000);
        conf_fill(t, producer, shared, 100, 1000 + i);
        WANT_OK(t, rondo_event_record(event, producer));
        WANT_OK(t, rondo_event_wait(event, consumer));
        conf_copy(t, consumer, shared + (i % 100) * 8, out + i * 8, 8);
        WANT_OK(t, rondo_event_record(event, consumer));
        WANT_OK(t, rondo_event_wait(event, producer));
    }
    conf_want64(t, consumer, out, 100, 1000, 1, "a stream that waits for another's events");
}

/* A wait means the record before it: a later record of the same event neither moves nor undoes it. */
static void event_recorded_again(conf *t) {
    rondo_stream *first = conf_stream(t), *second = conf_stream(t), *slow = conf_stream(t);
    rondo_event *event = conf_event(t);
    char *a = conf_memory(t, 8), *out = conf_memory(t, 50 * 8);
    for (uint64_t i = 0; i < 50; ++i) {
        conf_iota(t, first, a, 1, i);
        WANT_OK(t, rondo_event_record(event, first));
        WANT_OK(t, rondo_event_wait(event, second));
        conf_spin(t, slow, 1000);
        WANT_OK(t, rondo_event_record(event, slow));
        conf_copy(t, second, a, out + i * 8, 8);
        conf_sync(t, second);
    }
    conf_want64(t, second, out, 50, 0, 1, "a wait for an event that was recorded elsewhere afterwards");
    /* And the newest record is the one that counts from then on. */
    uint32_t *called = conf_host(t, sizeof *called);
    conf_sync(t, slow);
    WANT_OK(t, rondo_event_record(event, first));
    WANT_OK(t, rondo_stream_host_call(slow, conf_count_call, called));
    WANT_OK(t, rondo_event_record(event, slow));
    WANT_OK(t, rondo_event_synchronize(event));
    WANT(t, __atomic_load_n(called, __ATOMIC_SEQ_CST) == 1, "an event stands for an old record");
}

/* A record that comes after the wait does not hold it up. */
static void event_recorded_later(conf *t) {
    rondo_stream *first = conf_stream(t), *second = conf_stream(t);
    rondo_event *event = conf_event(t), *back = conf_event(t);
    void *memory = conf_memory(t, 64);
    WANT_OK(t, rondo_event_record(event, first));
    WANT_OK(t, rondo_event_wait(event, second));
    conf_iota(t, second, memory, 8, 40);
    WANT_OK(t, rondo_event_record(back, second));
    WANT_OK(t, rondo_event_wait(back, first));
    WANT_OK(t, rondo_event_record(event, first)); /* behind second's work: a wait for this one would never end */
    conf_want64(t, second, memory, 8, 40, 1, "a stream whose event was recorded again behind it");
    conf_sync(t, first);
}

/* Five streams in a ring pass a number on. */
static void event_ring(conf *t) {
    enum { STREAMS = 5, ROUNDS = 60 };
    rondo_stream *streams[STREAMS];
    rondo_event *events[STREAMS];
    char *cells = conf_memory(t, (STREAMS * ROUNDS + 1) * 8);
    for (int i = 0; i < STREAMS; ++i) {
        streams[i] = conf_stream(t);
        events[i] = conf_event(t);
    }
    conf_fill(t, streams[STREAMS - 1], cells, 1, 4242);
    WANT_OK(t, rondo_event_record(events[STREAMS - 1], streams[STREAMS - 1]));
    for (int k = 0; k < STREAMS * ROUNDS; ++k) {
        int here = k % STREAMS, before = (k + STREAMS - 1) % STREAMS;
        WANT_OK(t, rondo_event_wait(events[before], streams[here]));
        conf_copy(t, streams[here], cells + k * 8, cells + (k + 1) * 8, 8);
        WANT_OK(t, rondo_event_record(events[here], streams[here]));
    }
    conf_want64(t, streams[STREAMS - 1], cells, STREAMS * ROUNDS + 1, 4242, 0, "a number that went round");
}

/* Many wait for one, and one waits for many. */
static void event_fan(conf *t) {
    enum { WORKERS = 8 };
    rondo_stream *main_stream = conf_stream(t), *workers[WORKERS];
    rondo_event *start = conf_event(t), *ends[WORKERS];
    char *source = conf_memory(t, 8), *out = conf_memory(t, WORKERS * 8), *all = conf_memory(t, WORKERS * 8);
    for (int i = 0; i < WORKERS; ++i) {
        workers[i] = conf_stream(t);
        ends[i] = conf_event(t);
    }
    for (uint64_t round = 0; round < 30; ++round) {
        conf_spin(t, main_stream, 5000);
        conf_fill(t, main_stream, source, 1, 10 + round);
        WANT_OK(t, rondo_event_record(start, main_stream));
        for (int i = 0; i < WORKERS; ++i) {
            WANT_OK(t, rondo_event_wait(start, workers[i]));
            conf_copy(t, workers[i], source, out + i * 8, 8);
            WANT_OK(t, rondo_event_record(ends[i], workers[i]));
            WANT_OK(t, rondo_event_wait(ends[i], main_stream));
        }
        conf_copy(t, main_stream, out, all, WORKERS * 8);
        conf_want64(t, main_stream, all, WORKERS, 10 + round, 0, "what eight streams made");
    }
}

static void event_released_early(conf *t) {
    rondo_stream *first = conf_stream(t), *second = conf_stream(t);
    void *a = conf_memory(t, 800), *b = conf_memory(t, 800);
    for (uint64_t i = 0; i < 20; ++i) {
        rondo_event *event = conf_event(t);
        conf_spin(t, first, 20000);
        conf_iota(t, first, a, 100, i);
        WANT_OK(t, rondo_event_record(event, first));
        WANT_OK(t, rondo_event_wait(event, second));
        conf_drop(t, event);
        conf_copy(t, second, a, b, 800);
        conf_want64(t, second, b, 100, i, 1, "a stream that waits for an event which is gone");
    }
}

static void event_own_stream(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_event *event = conf_event(t);
    void *memory = conf_memory(t, 64);
    conf_iota(t, stream, memory, 8, 1);
    WANT_OK(t, rondo_event_record(event, stream));
    WANT_OK(t, rondo_event_wait(event, stream));
    conf_iota(t, stream, memory, 8, 2);
    conf_want64(t, stream, memory, 8, 2, 1, "a stream that waits for itself");
}

static void event_refuses(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_event *event = conf_event(t);
    bool done;
    WANT_CODE(t, rondo_event_record(NULL, stream), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_event_record(event, NULL), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_event_wait(NULL, stream), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_event_wait(event, NULL), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_event_query(NULL, &done), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_event_query(event, NULL), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_event_synchronize(NULL), INVALID_ARGUMENT);
}

static void event_other_device(conf *t) {
    rondo_stream *far = rondo_stream_default(conf_second_device(t));
    rondo_event *event = conf_event(t);
    WANT_CODE(t, rondo_event_record(event, far), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_event_wait(event, far), INVALID_ARGUMENT);
    conf_want_usable(t, conf_stream(t), "an event that was sent to another device");
}

static const conf_test tests[] = {
    {{"event.unrecorded", "event", "An event that was never recorded is done and holds nothing up."},
     0,
     event_unrecorded},
    {{"event.query_and_synchronize", "event host_call",
      "An event is done when the work before its record is, not sooner."},
     CONF_NEEDS_HOST_CALLS,
     event_query_and_synchronize},
    {{"event.cross_stream", "event stream", "A wait orders two streams, under load."}, 0, event_cross_stream},
    {{"event.recorded_again", "event", "A wait means the record before it; later questions mean the newest."},
     CONF_NEEDS_HOST_CALLS,
     event_recorded_again},
    {{"event.recorded_later", "event", "A record that comes after the wait does not hold it up."},
     0,
     event_recorded_later},
    {{"event.ring", "event stream", "A chain of waits round five streams keeps its order."}, 0, event_ring},
    {{"event.fan", "event stream", "Many streams wait for one event, and one stream for many."}, 0, event_fan},
    {{"event.released_early", "event destruction", "An event may go while it is waited for."}, 0, event_released_early},
    {{"event.own_stream", "event", "A stream may wait for its own event."}, 0, event_own_stream},
    {{"event.refuses", "event", "Null is refused."}, 0, event_refuses},
    {{"event.other_device", "event", "An event of one device is refused on another's stream."},
     CONF_NEEDS_TWO_DEVICES,
     event_other_device},
};
CONF_SUITE(conf_suite_event, tests);
