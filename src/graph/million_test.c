/* SPDX-License-Identifier: Apache-2.0
 *
 * A million nodes on two streams that wait for each other all the time. Every node is a step of two numbers that no other
 * order gives; what must come out is that step's matrix raised to a power, by squaring. And what a node costs, in bytes
 * that stay and in bytes that pass through the allocator, must not grow with the graph. */
#include <stdio.h>
#include <stdlib.h>

#include "graph/graph_testing.h"

/* Sanitizers take up to a hundred times as long. */
#define MILLION_PART 1u
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#undef MILLION_PART
#define MILLION_PART 5u
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#undef MILLION_PART
#define MILLION_PART 5u
#endif
#endif

#define MILLION_PERIOD 8u /* nodes between one place and the same place again */
#define MILLION_SEEDS 8u
#define MILLION_BYTES_A_NODE 130u /* at three waits in eight nodes */
#define MILLION_GIVEN_A_NODE 800u
#define MILLION_SIZES 3u

typedef struct million {
    graph_fixture f;
    rondo_allocator allocator;
    uint64_t given; /* bytes that the instance's allocator gave in all */
    rondo_graph *graph;
    rondo_event *events[3];
    uint64_t *a, *b;
} million;

static million millions[MILLION_SEEDS]; /* closed when the test ends */

static void *million_reallocate(void *self, void *pointer, size_t old_size, size_t new_size, size_t alignment) {
    rondo_allocator under = rondo_allocator_default();
    ((million *)self)->given += new_size;
    return under.reallocate(under.self, pointer, old_size, new_size, alignment);
}

static void million_close(million *m) {
    rondo_graph_release(m->graph);
    for (unsigned i = 0; i < 3; i++) rondo_event_release(m->events[i]);
    if (m->a) rondo_status_release(rondo_memory_free(m->f.device, m->a));
    if (m->b) rondo_status_release(rondo_memory_free(m->f.device, m->b));
    gt_close(&m->f);
}

static void million_open(rondo_test *t, million *m, const char *device, const char *settings) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    void *memory;
    *m = (million){.f = {.t = t}};
    m->allocator = (rondo_allocator){m, million_reallocate};
    options.allocator = &m->allocator;
    options.ignore_plugin_path = 1;
    T_DEFER(t, million_close, m);
    T_OK(t, rondo_instance_create(&options, &m->f.instance));
    T_OK(t, rondo_device_open(m->f.instance, device, settings, &m->f.device));
    T_OK(t, rondo_stream_create(m->f.device, NULL, &m->f.stream));
    T_OK(t, rondo_stream_create(m->f.device, NULL, &m->f.other));
    T_OK(t, rondo_memory_allocate(m->f.device, sizeof(uint64_t), &memory));
    m->a = memory;
    T_OK(t, rondo_memory_allocate(m->f.device, sizeof(uint64_t), &memory));
    m->b = memory;
    for (unsigned i = 0; i < 3; i++) T_OK(t, rondo_event_create(m->f.device, &m->events[i]));
}

/* to = to * factor + from + 1, in whole numbers modulo 2^64. */
static int32_t step_kernel(const void *context, const uint64_t *words) {
    (void)context;
    uint64_t *to = (uint64_t *)(uintptr_t)words[0];
    *to = *to * words[2] + *(const uint64_t *)(uintptr_t)words[1] + 1u;
    return 0;
}

static rondo_status step(rondo_stream *stream, uint64_t *to, const uint64_t *from, uint64_t factor) {
    const rondo_argument arguments[3] = {{gt_word(to), sizeof *to, RONDO_ACCESS_BOTH, 0},
                                         {gt_word(from), sizeof *from, RONDO_ACCESS_READ, 0},
                                         {factor, 0, RONDO_ACCESS_VALUE, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.argument_count = 3;
    call.kernel = (rondo_kernel){step_kernel, NULL};
    call.arguments = arguments;
    call.name = factor & 1u ? "odd" : "even";
    return rondo_stream_launch(stream, &call);
}

static rondo_status after(const million *m, unsigned event, rondo_stream *from, rondo_stream *to) {
    RONDO__TRY(rondo_event_record(m->events[event], from));
    return rondo_event_wait(m->events[event], to);
}

/* a is the first stream's, b the second's. Steps of one's own go on beside the other's; in between each reads what the
 * other has, which then must wait before it goes on. Three waits in eight nodes. */
static rondo_status period(const million *m) {
    rondo_stream *first = m->f.stream, *second = m->f.other;
    RONDO__TRY(step(first, m->a, m->a, 3));
    RONDO__TRY(step(second, m->b, m->b, 5));
    RONDO__TRY(step(first, m->a, m->a, 6));
    RONDO__TRY(step(second, m->b, m->b, 7));
    RONDO__TRY(step(first, m->a, m->a, 9));
    RONDO__TRY(after(m, 0, first, second));
    RONDO__TRY(step(second, m->b, m->a, 10)); /* b of a */
    RONDO__TRY(after(m, 1, second, first));
    RONDO__TRY(step(first, m->a, m->b, 11)); /* a of b */
    RONDO__TRY(step(first, m->a, m->b, 12));
    return after(m, 2, first, second); /* b may change again */
}

static rondo_status capture(million *m, uint64_t nodes, uint64_t *out_given) {
    RONDO__TRY(rondo_graph_create(m->f.device, NULL, &m->graph));
    uint64_t before = m->given;
    RONDO__TRY(gt_begin(&m->f, m->graph));
    RONDO__TRY(after(m, 2, m->f.stream, m->f.other));
    for (uint64_t i = 0; i < nodes; i += MILLION_PERIOD) RONDO__TRY(period(m));
    RONDO__TRY(after(m, 1, m->f.other, m->f.stream));
    RONDO__TRY(rondo_graph_capture_end(m->graph, m->f.stream));
    *out_given = m->given - before;
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------- the same by squaring */

/* Of (a, b, 1), modulo 2^64. */
typedef struct matrix {
    uint64_t of[3][3];
} matrix;

/* First x, then y. */
static matrix matrix_then(const matrix *x, const matrix *y) {
    matrix product = {{{0}}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++) product.of[i][j] += y->of[i][k] * x->of[k][j];
    return product;
}

static matrix matrix_of_period(void) {
    static const struct {
        int to, from;
        uint64_t factor;
    } steps[MILLION_PERIOD] = {{0, 0, 3}, {1, 1, 5},  {0, 0, 6},  {1, 1, 7},
                               {0, 0, 9}, {1, 0, 10}, {0, 1, 11}, {0, 1, 12}};
    matrix all = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    for (unsigned i = 0; i < MILLION_PERIOD; i++) {
        matrix one = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
        one.of[steps[i].to][steps[i].to] = steps[i].factor;
        one.of[steps[i].to][steps[i].from] += 1;
        one.of[steps[i].to][2] += 1;
        all = matrix_then(&all, &one);
    }
    return all;
}

static matrix matrix_power(matrix base, uint64_t exponent) {
    matrix power = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    for (; exponent; exponent /= 2u) {
        if (exponent & 1u) power = matrix_then(&power, &base);
        base = matrix_then(&base, &base);
    }
    return power;
}

static void expect_values(million *m, uint64_t a, uint64_t b, uint64_t periods) {
    matrix all = matrix_power(matrix_of_period(), periods);
    T_TRUE(m->f.t, *m->a == all.of[0][0] * a + all.of[0][1] * b + all.of[0][2]);
    T_TRUE(m->f.t, *m->b == all.of[1][0] * a + all.of[1][1] * b + all.of[1][2]);
}

/* ---------------------------------------------------------------------------------------------------------- tests */

static void two_replays(rondo_test *t, million *m, const char *device, const char *settings, uint64_t nodes,
                        double *out_bytes, double *out_given) {
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    uint64_t given = 0;
    million_open(t, m, device, settings);
    T_OK(t, capture(m, nodes, &given));
    T_OK(t, rondo_graph_get_info(m->graph, &info));
    T_EQ(t, info.nodes, nodes);
    T_EQ(t, info.lanes, 2);
    /* Seven in a period, and two from its end to the next. */
    T_EQ(t, info.edges, 9u * (nodes / MILLION_PERIOD) - 2u);
    *m->a = 2;
    *m->b = 3;
    for (uint64_t replay = 1; replay <= 2; replay++) {
        T_OK(t, gt_replay(&m->f, m->graph));
        expect_values(m, 2, 3, replay * (nodes / MILLION_PERIOD));
    }
    *out_bytes = (double)info.bytes / (double)nodes;
    *out_given = (double)given / (double)nodes;
}

/* What stays is the same a node at any size. What went through the allocator on the way depends on how far the last
 * doubling of an array went: the same for sizes a power of two apart, and up to as much again between two powers. */
static void test_a_million_nodes_on_cpu(rondo_test *t) {
    static const uint64_t nodes[MILLION_SIZES] = {100000 / MILLION_PART, 125000 / MILLION_PART, 1000000 / MILLION_PART};
    double bytes[MILLION_SIZES], given[MILLION_SIZES];
    for (unsigned i = 0; i < MILLION_SIZES; i++) {
        two_replays(t, &millions[i], "cpu", NULL, nodes[i], &bytes[i], &given[i]);
        printf("%llu nodes: %.1f bytes a node stay, %.1f went through the allocator\n", (unsigned long long)nodes[i],
               bytes[i], given[i]);
        T_TRUE(t, bytes[i] <= MILLION_BYTES_A_NODE);
        T_TRUE(t, given[i] <= MILLION_GIVEN_A_NODE);
        T_NEAR(t, bytes[i], bytes[0], 0.02 * bytes[0]);
    }
    T_NEAR(t, given[2], given[1], 0.04 * given[1]);
}

/* The simulator finds accesses without an order between them, and each seed is another order that hardware may give. */
static void test_many_nodes_under_every_seed(rondo_test *t) {
    for (unsigned seed = 0; seed < MILLION_SEEDS; seed++) {
        char settings[32];
        double bytes, given;
        (void)snprintf(settings, sizeof settings, "seed=%u", seed + 1u);
        two_replays(t, &millions[seed], "sim", settings, 4000 / MILLION_PART, &bytes, &given);
        million_close(&millions[seed]);
        millions[seed] = (million){.f = {.t = t}};
    }
}

RONDO_TEST_MAIN(T_PLAIN(test_a_million_nodes_on_cpu), T_PLAIN(test_many_nodes_under_every_seed))
