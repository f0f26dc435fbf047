/* SPDX-License-Identifier: Apache-2.0
 *
 * The replay in flight: what it reads is overwritten, through our API, only behind it. The simulator holds work back and
 * finds what has no order, so each of these would fail there if nobody went behind the replay. */
#include <stdio.h>
#include <stdlib.h>

#include "graph/graph_testing.h"

#define FLIGHT_SEEDS 12u

typedef struct flight_fixture {
    graph_fixture f;
    rondo_graph *graph;
    rondo_generator *generator;
} flight_fixture;

static flight_fixture flight_fixtures[FLIGHT_SEEDS]; /* closed when the test ends */

static void flight_close(flight_fixture *c) {
    rondo_generator_release(c->generator);
    rondo_graph_release(c->graph);
}

static void flight_open(rondo_test *t, flight_fixture *c, const char *device) {
    gt_open(t, &c->f, device);
    c->graph = NULL;
    c->generator = NULL;
    T_DEFER(t, flight_close, c);
    T_OK(t, rondo_graph_create(c->f.device, NULL, &c->graph));
    T_OK(t, rondo_generator_create(c->f.device, 1, &c->generator));
}

/* b3 = b1 + b0 by a chain of adds, so that there is something to do. */
static rondo_status flight_capture(flight_fixture *c) {
    RONDO__TRY(gt_begin(&c->f, c->graph));
    for (int i = 0; i < 8; i++) RONDO__TRY(gt_add(&c->f, c->f.buffers[0], c->f.buffers[1], c->f.buffers[3]));
    return rondo_graph_capture_end(c->graph, c->f.stream);
}

static unsigned synchronizes(flight_fixture *c) {
    uint64_t value = 0;
    rondo_status_release(rondo_device_counter(c->f.device, "synchronizes", &value));
    return (unsigned)value;
}

static void flight_overwrite(rondo_test *t, flight_fixture *c) {
    T_OK(t, flight_capture(c));
    for (int way = 0; way < 4; way++) {
        for (unsigned i = 0; i < GT_FLOATS; i++) c->f.buffers[1][i] = 5.0f, c->f.buffers[3][i] = -1.0f;
        T_OK(t, rondo_graph_replay(c->graph, c->f.stream));
        unsigned before = synchronizes(c);
        if (way == 0) T_OK(t, rondo_stream_fill(c->f.other, c->f.buffers[1], 0, GT_BYTES));
        else if (way == 1)
            T_OK(t, rondo_stream_copy(c->f.other, c->f.buffers[1], c->f.buffers[4], GT_BYTES,
                                      RONDO_COPY_DEVICE_TO_DEVICE));
        else if (way == 2)
            T_OK(t,
                 rondo_stream_fill(c->f.other, (char *)c->f.buffers[1] + GT_BYTES - 1, 0, 1)); /* one byte is enough */
        else
            T_OK(t, rondo_random_fill(c->f.other, c->generator, RONDO_DISTRIBUTION_UNIFORM, c->f.buffers[1], GT_FLOATS,
                                      0, 1));
        T_EQ(t, synchronizes(c), before); /* the host did not wait */
        T_OK(t, rondo_stream_synchronize(c->f.other));
        T_OK(t, rondo_stream_synchronize(c->f.stream));
        for (unsigned i = 0; i < GT_FLOATS; i++) T_NEAR(t, c->f.buffers[3][i], 5.0 + i, 0.0);
    }
}

static void test_overwriting_waits_on_cpu(rondo_test *t) {
    flight_open(t, flight_fixtures, "cpu");
    flight_overwrite(t, flight_fixtures);
}

static void test_overwriting_waits_on_sim(rondo_test *t) {
    char seed[16];
    for (unsigned s = 0; s < FLIGHT_SEEDS; s++) {
        (void)snprintf(seed, sizeof seed, "%u", s + 1u);
        (void)setenv("RONDO_SIM_SEED", seed, 1);
        flight_open(t, &flight_fixtures[s], "sim");
        flight_overwrite(t, &flight_fixtures[s]);
    }
    (void)unsetenv("RONDO_SIM_SEED");
}

/* Elsewhere nobody waits; a slot is where it is bound; a graph that is done, updated or gone is no concern. */
static void test_only_what_it_uses(rondo_test *t) {
    flight_fixture *c = &flight_fixtures[0];
    uint64_t events, now;
    flight_open(t, c, "sim");
    T_OK(t, rondo_graph_declare_slot(c->graph, 0, c->f.buffers[1], GT_BYTES, RONDO_ACCESS_READ, RONDO_SLOT_REBIND));
    T_OK(t, flight_capture(c));
    T_OK(t, rondo_graph_bind(c->graph, 0, c->f.buffers[2]));
    T_OK(t, rondo_graph_replay(c->graph, c->f.stream));
    T_OK(t, rondo_device_counter(c->f.device, "events", &events));
    T_OK(t, rondo_stream_fill(c->f.other, c->f.buffers[4], 0, GT_BYTES));
    T_OK(t, rondo_stream_fill(c->f.other, c->f.buffers[1], 0, GT_BYTES));  /* declared, not bound */
    T_OK(t, rondo_stream_fill(c->f.stream, c->f.buffers[0], 0, GT_BYTES)); /* the same stream */
    T_OK(t, rondo_device_counter(c->f.device, "events", &now));
    T_EQ(t, now, events);
    T_OK(t, rondo_stream_fill(c->f.other, c->f.buffers[2], 0, GT_BYTES));
    T_OK(t, rondo_device_counter(c->f.device, "events", &now));
    T_EQ(t, now, events + 2); /* a record and a wait */
    T_OK(t, rondo_stream_synchronize(c->f.other));
    T_OK(t, rondo_stream_synchronize(c->f.stream));
    T_NEAR(t, c->f.buffers[3][1], 202.0, 0.0);
    T_OK(t, rondo_graph_bind(c->graph, 0, c->f.buffers[5])); /* waits: nothing flies any more */
    T_TRUE(t, c->f.device->flights == NULL);
    T_OK(t, rondo_graph_replay(c->graph, c->f.other));
    T_TRUE(t, c->f.device->flights != NULL);
    rondo_graph_reset(c->graph);
    T_TRUE(t, c->f.device->flights == NULL);
    T_OK(t, rondo_stream_fill(c->f.stream, c->f.buffers[5], 0, GT_BYTES));
    T_OK(t, rondo_stream_synchronize(c->f.stream));
}

/* Freeing waits, too, and the graph is stale after it. */
static void test_freeing_waits(rondo_test *t, const char *device) {
    flight_fixture *c = &flight_fixtures[0];
    flight_open(t, c, device);
    T_OK(t, flight_capture(c));
    T_OK(t, rondo_graph_replay(c->graph, c->f.stream));
    T_OK(t, gt_free(&c->f, 1));
    T_NEAR(t, c->f.buffers[3][2], 104.0, 0.0);
    T_FAILS(t, rondo_graph_replay(c->graph, c->f.stream), STALE, "argument 1");
}
GT_BOTH(test_freeing_waits)

/* More replays at once than are looked at in one go. */
static void test_many_flights(rondo_test *t) {
    enum { STREAMS = 40 };
    static rondo_stream *streams[STREAMS];
    static rondo_graph *graphs[STREAMS];
    flight_fixture *c = &flight_fixtures[0];
    flight_open(t, c, "sim");
    for (unsigned i = 0; i < STREAMS; i++) {
        streams[i] = NULL;
        graphs[i] = NULL;
        T_OK(t, rondo_stream_create(c->f.device, NULL, &streams[i]));
        T_DEFER(t, rondo_stream_release, streams[i]);
        T_OK(t, rondo_graph_create(c->f.device, NULL, &graphs[i]));
        T_DEFER(t, rondo_graph_release, graphs[i]);
        T_OK(t, gt_begin(&c->f, graphs[i]));
        T_OK(t, rondo_stream_copy(c->f.stream, (char *)c->f.buffers[2] + i, c->f.buffers[1], 1,
                                  RONDO_COPY_DEVICE_TO_DEVICE));
        T_OK(t, rondo_graph_capture_end(graphs[i], c->f.stream));
    }
    for (unsigned i = STREAMS; i-- > 0;) T_OK(t, rondo_graph_replay(graphs[i], streams[i]));
    T_OK(t, rondo_stream_fill(c->f.other, c->f.buffers[1], 0xff, GT_BYTES));
    T_OK(t, rondo_stream_synchronize(c->f.other));
    for (unsigned i = 0; i < STREAMS; i++) T_OK(t, rondo_stream_synchronize(streams[i]));
    for (unsigned i = 0; i < STREAMS; i++) T_EQ(t, ((unsigned char *)c->f.buffers[2])[i], 0); /* 100.0f starts with 0 */
}

RONDO_TEST_MAIN(T(test_overwriting_waits_on_cpu), T_PLAIN(test_overwriting_waits_on_sim), T(test_only_what_it_uses),
                GT_ENTRIES(test_freeing_waits), T_PLAIN(test_many_flights))
