/* SPDX-License-Identifier: Apache-2.0
 *
 * Child graphs: a replay into a capture copies. And conditions. */
#include <stdio.h>
#include <stdlib.h>

#include "graph/graph_testing.h"

typedef struct child_fixture {
    graph_fixture f;
    rondo_graph *child, *parent;
    rondo_event *events[4];
} child_fixture;

static void child_close(child_fixture *c) {
    rondo_graph_release(c->child);
    rondo_graph_release(c->parent);
    for (unsigned i = 0; i < 4; i++) rondo_event_release(c->events[i]);
}

static void child_open(rondo_test *t, child_fixture *c, const char *device) {
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    gt_open(t, &c->f, device);
    c->child = c->parent = NULL;
    memset(c->events, 0, sizeof c->events);
    T_DEFER(t, child_close, c);
    options.name = "child";
    T_OK(t, rondo_graph_create(c->f.device, &options, &c->child));
    options.name = "parent";
    options.keep_graph = 1;
    T_OK(t, rondo_graph_create(c->f.device, &options, &c->parent));
    for (unsigned i = 0; i < 4; i++) T_OK(t, rondo_event_create(c->f.device, &c->events[i]));
}

static rondo_status add_to(child_fixture *c, rondo_stream *stream, unsigned a, unsigned b, unsigned out) {
    return gt_add_named(&c->f, stream, "add", c->f.buffers[a], c->f.buffers[b], c->f.buffers[out]);
}

static int32_t count_call(void *user) {
    ++*(int *)user;
    return 0;
}

static int child_calls;

/* A child of two lanes: b2 = b0 + b1; b3 = b2 + b0 beside b4 = b2 + b1; b5 = b3 + b4. A fill, a copy, a host call. */
static rondo_status capture_child(child_fixture *c) {
    rondo_stream *s = c->f.stream, *o = c->f.other;
    RONDO__TRY(gt_begin(&c->f, c->child));
    RONDO__TRY(add_to(c, s, 0, 1, 2));
    RONDO__TRY(rondo_event_record(c->events[0], s));
    RONDO__TRY(rondo_event_wait(c->events[0], o));
    RONDO__TRY(add_to(c, o, 2, 1, 4));
    RONDO__TRY(add_to(c, s, 2, 0, 3));
    RONDO__TRY(rondo_event_record(c->events[1], o));
    RONDO__TRY(rondo_event_wait(c->events[1], s));
    RONDO__TRY(add_to(c, s, 3, 4, 5));
    RONDO__TRY(rondo_stream_fill(s, c->f.buffers[6], 0, 8));
    RONDO__TRY(rondo_stream_copy(s, (char *)c->f.buffers[6] + 8, c->f.buffers[5], 8, RONDO_COPY_DEVICE_TO_DEVICE));
    RONDO__TRY(rondo_stream_host_call(s, count_call, &child_calls));
    return rondo_graph_capture_end(c->child, s);
}

static double five(double zero, double one) { return (zero + one + zero) + (zero + one + one); }

/* Twice the same child and nodes around it; the second time with its input changed by the parent in between. */
static void test_child_of_two_lanes(rondo_test *t, const char *device) {
    child_fixture c;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    child_open(t, &c, device);
    child_calls = 0;
    T_OK(t, capture_child(&c));
    T_EQ(t, child_calls, 0);
    T_OK(t, gt_begin(&c.f, c.parent));
    T_OK(t, rondo_graph_replay(c.child, c.f.stream));
    T_OK(t, add_to(&c, c.f.stream, 5, 5, 7));
    T_OK(t, rondo_stream_copy(c.f.stream, c.f.buffers[0], c.f.buffers[1], GT_BYTES, RONDO_COPY_DEVICE_TO_DEVICE));
    T_OK(t, rondo_graph_replay(c.child, c.f.stream));
    T_OK(t, rondo_graph_capture_end(c.parent, c.f.stream));
    rondo_graph_release(c.child); /* the parent stands alone */
    c.child = NULL;
    T_OK(t, rondo_graph_get_info(c.parent, &info));
    T_EQ(t, info.children, 2);
    T_EQ(t, info.nodes, 16);
    T_EQ(t, info.lanes, 2); /* the second child uses the lane of the first again */
    T_EQ(t, info.host_calls, 2);
    T_EQ(t, info.edges, 2u * 7u + 3u);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < GT_FLOATS; i++) c.f.buffers[0][i] = (float)i;
        T_OK(t, rondo_graph_replay(c.parent, round == 1 ? c.f.other : c.f.stream));
        T_OK(t, rondo_stream_synchronize(round == 1 ? c.f.other : c.f.stream));
        for (unsigned i = 0; i < GT_FLOATS; i++) {
            T_NEAR(t, c.f.buffers[7][i], 2 * five(i, 100.0 + i), 0.0);
            T_NEAR(t, c.f.buffers[5][i], five(100.0 + i, 100.0 + i), 0.0);
        }
        T_NEAR(t, c.f.buffers[6][0], 0.0, 0.0);
        T_NEAR(t, c.f.buffers[6][2], five(100.0, 100.0), 0.0);
    }
    T_EQ(t, child_calls, 6);
}
GT_BOTH(test_child_of_two_lanes)

/* A child in a lane of its own beside other work, and a child that is a parent. */
static void test_child_in_a_lane(rondo_test *t, const char *device) {
    child_fixture c;
    rondo_graph *outer = NULL;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    child_open(t, &c, device);
    child_calls = 0;
    T_OK(t, rondo_graph_create(c.f.device, NULL, &outer));
    T_DEFER(t, rondo_graph_release, outer);
    T_OK(t, capture_child(&c));
    T_OK(t, gt_begin(&c.f, c.parent));
    T_OK(t, rondo_event_record(c.events[2], c.f.stream));
    T_OK(t, rondo_event_wait(c.events[2], c.f.other));
    T_OK(t, rondo_graph_replay(c.child, c.f.other));
    T_OK(t, add_to(&c, c.f.stream, 0, 0, 7));
    T_OK(t, rondo_event_record(c.events[3], c.f.other));
    T_OK(t, rondo_event_wait(c.events[3], c.f.stream));
    T_OK(t, add_to(&c, c.f.stream, 5, 7, 1));
    T_OK(t, rondo_graph_capture_end(c.parent, c.f.stream));
    T_OK(t, gt_begin(&c.f, outer));
    T_OK(t, rondo_graph_replay(c.parent, c.f.stream)); /* captured, not instantiated yet */
    T_OK(t, rondo_graph_capture_end(outer, c.f.stream));
    T_OK(t, rondo_graph_get_info(outer, &info));
    T_EQ(t, info.nodes, 9);
    T_EQ(t, info.lanes, 3);
    rondo_graph_reset(c.parent);
    rondo_graph_reset(c.child);
    T_OK(t, gt_replay(&c.f, outer));
    for (unsigned i = 0; i < GT_FLOATS; i++) T_NEAR(t, c.f.buffers[1][i], five(i, 100.0 + i) + 2.0 * i, 0.0);
}
GT_BOTH(test_child_in_a_lane)

/* Slots of the child are where they were bound when it became one; the parent's nodes are updated as any. */
static void test_child_with_slots(rondo_test *t, const char *device) {
    child_fixture c;
    child_open(t, &c, device);
    T_OK(t, rondo_graph_declare_slot(c.child, 0, c.f.buffers[0], GT_BYTES, RONDO_ACCESS_READ, RONDO_SLOT_REBIND));
    T_OK(t, rondo_graph_declare_slot(c.child, 1, c.f.buffers[1], GT_BYTES, RONDO_ACCESS_BOTH, RONDO_SLOT_COPY));
    T_OK(t, gt_begin(&c.f, c.child));
    T_OK(t, add_to(&c, c.f.stream, 0, 1, 2));
    T_OK(t, add_to(&c, c.f.stream, 2, 2, 1));
    T_OK(t, rondo_graph_capture_end(c.child, c.f.stream));
    T_OK(t, rondo_graph_bind(c.child, 0, c.f.buffers[3]));
    T_OK(t, rondo_graph_bind(c.child, 1, c.f.buffers[4]));
    T_OK(t, gt_begin(&c.f, c.parent));
    T_OK(t, rondo_graph_replay(c.child, c.f.stream));
    T_OK(t, rondo_graph_capture_end(c.parent, c.f.stream));
    T_OK(t, rondo_graph_bind(c.child, 0, c.f.buffers[5])); /* too late to matter */
    rondo_graph_reset(c.child);
    T_OK(t, gt_replay(&c.f, c.parent));
    for (unsigned i = 0; i < GT_FLOATS; i++) {
        T_NEAR(t, c.f.buffers[2][i], 700.0 + 2 * i, 0.0);
        T_NEAR(t, c.f.buffers[4][i], 1400.0 + 4 * i, 0.0);
        T_NEAR(t, c.f.buffers[1][i], 100.0 + i, 0.0);
    }
    const rondo_argument arguments[4] = {{gt_word(c.f.buffers[5]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(c.f.buffers[5]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(c.f.buffers[2]), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                         {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    T_OK(t, rondo_graph_update(c.parent, 0, arguments, 4));
    T_OK(t, gt_replay(&c.f, c.parent));
    T_NEAR(t, c.f.buffers[4][1], 4 * 501.0, 0.0);
}
GT_BOTH(test_child_with_slots)

/* What cannot become a child breaks the capture by name. */
static void test_stale_child(rondo_test *t, const char *device) {
    child_fixture c;
    child_open(t, &c, device);
    T_OK(t, gt_begin(&c.f, c.child));
    T_OK(t, add_to(&c, c.f.stream, 0, 1, 2));
    T_OK(t, rondo_graph_capture_end(c.child, c.f.stream));
    T_OK(t, gt_begin(&c.f, c.parent));
    T_FAILS(t, rondo_graph_replay(c.parent, c.f.stream), INVALID_STATE, "replay is not legal while it is capturing");
    T_OK(t, gt_free(&c.f, 1));
    T_FAILS(t, rondo_graph_replay(c.child, c.f.stream), STALE, "node 0 'add', argument 1");
    T_FAILS(t, rondo_graph_capture_end(c.parent, c.f.stream), CAPTURE_INVALIDATED, "node 0 'add', argument 1");
    /* A child's memory is the parent's to watch. */
    T_OK(t, rondo_memory_allocate(c.f.device, GT_BYTES, (void **)&c.f.buffers[1]));
    rondo_graph_reset(c.child);
    T_OK(t, gt_begin(&c.f, c.child));
    T_OK(t, add_to(&c, c.f.stream, 0, 3, 2));
    T_OK(t, rondo_graph_capture_end(c.child, c.f.stream));
    T_OK(t, gt_begin(&c.f, c.parent));
    T_OK(t, rondo_graph_replay(c.child, c.f.stream));
    T_OK(t, rondo_graph_capture_end(c.parent, c.f.stream));
    rondo_graph_reset(c.child);
    T_OK(t, gt_free(&c.f, 3));
    T_FAILS(t, rondo_graph_replay(c.parent, c.f.stream), STALE, "node 0 'add', argument 1");
}
GT_BOTH(test_stale_child)

static void read_file(rondo_test *t, const char *path, char *out, size_t capacity) {
    FILE *file = fopen(path, "r");
    T_TRUE(t, file != NULL);
    size_t length = fread(out, 1, capacity - 1u, file);
    (void)fclose(file);
    out[length] = '\0';
}

static void test_dumps_of_lanes_and_children(rondo_test *t, const char *device) {
    static const char *const endings[] = {"txt", "json", "dot"};
    static const char *const parts[3][4] = {
        {"lane 1   kernel", "waits for node 0", "waits for node 1", "child 'child': 7 nodes from node 0"},
        {"\"lanes\": 2", "\"lane\": 1", "[0, 1], [0, 2], [2, 3], [1, 3]",
         "\"children\": [{\"name\": \"child\", \"first\": 0, \"count\": 7}]"},
        {"n0 -> n1;", "n0 -> n2;", "n2 -> n3;", "subgraph cluster_0"},
    };
    child_fixture c;
    static char text[1u << 16], path[512];
    child_open(t, &c, device);
    T_OK(t, capture_child(&c));
    T_OK(t, gt_begin(&c.f, c.parent));
    T_OK(t, rondo_graph_replay(c.child, c.f.stream));
    T_OK(t, rondo_graph_capture_end(c.parent, c.f.stream));
    for (unsigned i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s/child.%s", rondo_test_folder(t), endings[i]);
        T_OK(t, rondo_graph_debug_dump(c.parent, path));
        read_file(t, path, text, sizeof text);
        for (unsigned p = 0; p < 4; p++)
            if (!strstr(text, parts[i][p])) rondo_test_fail(t, __FILE__, __LINE__, "no '%s' in %s", parts[i][p], text);
    }
}
GT_BOTH(test_dumps_of_lanes_and_children)

/* ---------------------------------------------------------------------------------------------------- conditions */

static void set_condition(child_fixture *c, unsigned buffer, int64_t value) {
    memcpy(c->f.buffers[buffer], &value, sizeof value);
}

/* rondo.fill writes 64-bit integers: a kernel of the graph that sets the condition. */
static rondo_status fill_word(child_fixture *c, void *out, int64_t value) {
    const rondo_argument arguments[3] = {{gt_word(out), 8, RONDO_ACCESS_WRITE, 0},
                                         {1, 0, RONDO_ACCESS_VALUE, 0},
                                         {(uint64_t)value, 0, RONDO_ACCESS_VALUE, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.argument_count = 3;
    call.kernel = c->f.fill;
    call.arguments = arguments;
    call.name = "set";
    return rondo_stream_launch(c->f.stream, &call);
}

/* outer: b2 = b0 + b0; [6]: b3 = b0 + b0, [7]: b4 = b0 + b0, end; b5 = b0 + b0, end; the rest always. */
static rondo_status capture_nested(child_fixture *c, rondo_graph *graph) {
    rondo_stream *s = c->f.stream;
    RONDO__TRY(gt_begin(&c->f, graph));
    RONDO__TRY(rondo_graph_condition_begin(s, c->f.buffers[6]));
    RONDO__TRY(add_to(c, s, 0, 0, 3));
    RONDO__TRY(rondo_graph_condition_begin(s, c->f.buffers[7]));
    RONDO__TRY(add_to(c, s, 0, 0, 4));
    RONDO__TRY(rondo_graph_condition_end(s));
    RONDO__TRY(add_to(c, s, 0, 0, 5));
    RONDO__TRY(rondo_graph_condition_end(s));
    RONDO__TRY(add_to(c, s, 0, 0, 2));
    return rondo_graph_capture_end(graph, s);
}

static void expect_nested(child_fixture *c, rondo_graph *graph, int64_t outer, int64_t inner) {
    rondo_test *t = c->f.t;
    for (unsigned b = 2; b < 6; b++) c->f.buffers[b][1] = -1.0f;
    set_condition(c, 6, outer);
    set_condition(c, 7, inner);
    T_OK(t, gt_replay(&c->f, graph));
    T_NEAR(t, c->f.buffers[2][1], 2.0, 0.0);
    T_NEAR(t, c->f.buffers[3][1], outer ? 2.0 : -1.0, 0.0);
    T_NEAR(t, c->f.buffers[4][1], outer && inner ? 2.0 : -1.0, 0.0);
    T_NEAR(t, c->f.buffers[5][1], outer ? 2.0 : -1.0, 0.0);
}

static void test_nested_conditions(rondo_test *t, const char *device) {
    child_fixture c;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    child_open(t, &c, device);
    T_OK(t, capture_nested(&c, c.parent));
    T_OK(t, rondo_graph_get_info(c.parent, &info));
    T_EQ(t, info.conditions, 2);
    T_EQ(t, info.nodes, 6);
    for (int64_t outer = -1; outer < 2; outer++)
        for (int64_t inner = 0; inner < 2; inner++) expect_nested(&c, c.parent, outer, inner);
    expect_nested(&c, c.parent, INT64_C(1) << 40, 1); /* all 64 bits count */
    /* As a child the jumps lead to the child's own ends. */
    T_OK(t, gt_begin(&c.f, c.child));
    T_OK(t, add_to(&c, c.f.stream, 0, 0, 1));
    T_OK(t, rondo_graph_replay(c.parent, c.f.stream));
    T_OK(t, rondo_graph_capture_end(c.child, c.f.stream));
    for (int64_t both = 0; both < 4; both++) expect_nested(&c, c.child, both & 1, both >> 1);
    /* Another place to look at. */
    rondo_graph_reset(c.child);
    T_OK(t, rondo_graph_instantiate(c.parent));
    const rondo_argument argument = {gt_word(c.f.buffers[7]), 0, RONDO_ACCESS_VALUE, 0};
    T_OK(t, rondo_graph_update(c.parent, 0, &argument, 1));
    set_condition(&c, 6, 0);
    set_condition(&c, 7, 1);
    c.f.buffers[3][1] = -1.0f;
    T_OK(t, gt_replay(&c.f, c.parent));
    T_NEAR(t, c.f.buffers[3][1], 2.0, 0.0);
    T_FAILS(t, rondo_graph_update(c.parent, 0, &(rondo_argument){gt_word(c.f.buffers[7]) + 4, 0, 0, 0}, 1),
            INVALID_ARGUMENT, "no address of one");
    T_OK(t, gt_free(&c.f, 7));
    T_FAILS(t, rondo_graph_replay(c.parent, c.f.stream), STALE, "node 0 'condition', argument 0");
}
GT_BOTH(test_nested_conditions)

static void test_condition_set_by_the_graph(rondo_test *t, const char *device) {
    child_fixture c;
    child_open(t, &c, device);
    for (int64_t value = 0; value < 2; value++) {
        set_condition(&c, 6, !value);
        T_OK(t, gt_begin(&c.f, c.parent));
        T_OK(t, fill_word(&c, c.f.buffers[6], value));
        T_OK(t, rondo_graph_condition_begin(c.f.stream, c.f.buffers[6]));
        T_OK(t, fill_word(&c, c.f.buffers[2], 77));
        T_OK(t, rondo_graph_condition_end(c.f.stream));
        T_OK(t, rondo_graph_capture_end(c.parent, c.f.stream));
        set_condition(&c, 2, 5);
        T_OK(t, gt_replay(&c.f, c.parent));
        int64_t got;
        memcpy(&got, c.f.buffers[2], sizeof got);
        T_EQ(t, got, value ? 77 : 5);
        rondo_graph_reset(c.parent);
    }
}
GT_BOTH(test_condition_set_by_the_graph)

static void test_condition_rules(rondo_test *t, const char *device) {
    child_fixture c;
    child_open(t, &c, device);
    T_FAILS(t, rondo_graph_condition_begin(NULL, c.f.buffers[6]), INVALID_ARGUMENT, "without a stream");
    T_FAILS(t, rondo_graph_condition_begin(c.f.stream, c.f.buffers[6]), INVALID_STATE, "does not capture");
    T_FAILS(t, rondo_graph_condition_end(c.f.stream), INVALID_STATE, "does not capture");
    /* Open at the end: the capture goes on. */
    T_OK(t, gt_begin(&c.f, c.parent));
    T_OK(t, rondo_graph_condition_begin(c.f.stream, c.f.buffers[6]));
    T_FAILS(t, rondo_graph_capture_end(c.parent, c.f.stream), INVALID_STATE, "rondo_graph_condition_end");
    T_OK(t, rondo_graph_condition_end(c.f.stream));
    T_FAILS(t, rondo_graph_condition_end(c.f.stream), INVALID_STATE, "without a condition");
    T_FAILS(t, rondo_graph_capture_end(c.parent, c.f.stream), CAPTURE_INVALIDATED, "without a condition");
    for (unsigned way = 0; way < 4; way++) { /* what may not stand inside */
        T_OK(t, gt_begin(&c.f, c.parent));
        T_OK(t, rondo_event_record(c.events[0], c.f.stream));
        T_OK(t, rondo_event_wait(c.events[0], c.f.other));
        if (way == 3) {
            T_FAILS(t, rondo_graph_condition_begin(c.f.stream, NULL), INVALID_ARGUMENT, "int64 in device memory");
        } else {
            T_OK(t, rondo_graph_condition_begin(c.f.stream, c.f.buffers[6]));
            rondo_status status = way == 0   ? add_to(&c, c.f.other, 0, 0, 1)
                                  : way == 1 ? rondo_event_record(c.events[1], c.f.stream)
                                             : rondo_event_wait(c.events[0], c.f.stream);
            T_FAILS(t, status, INVALID_STATE, "rondo_graph_condition_begin and _end");
        }
        T_FAILS(t, rondo_graph_capture_end(c.parent, c.f.stream), CAPTURE_INVALIDATED, NULL);
    }
}
GT_BOTH(test_condition_rules)

/* A09. The body is put in while a sibling stream is not joined yet: what follows it on the stream depends on the
 * condition alone, what joins depends on both. */
static void test_a09_condition_beside_a_fork(rondo_test *t, const char *device) {
    child_fixture c;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    child_open(t, &c, device);
    T_OK(t, gt_begin(&c.f, c.parent));
    T_OK(t, add_to(&c, c.f.stream, 0, 0, 1)); /* k1 */
    T_OK(t, rondo_event_record(c.events[0], c.f.stream));
    T_OK(t, rondo_event_wait(c.events[0], c.f.other));
    T_OK(t, rondo_graph_condition_begin(c.f.stream, c.f.buffers[6]));
    T_OK(t, add_to(&c, c.f.stream, 1, 0, 2));
    T_OK(t, rondo_graph_condition_end(c.f.stream));
    T_OK(t, add_to(&c, c.f.other, 1, 1, 3));  /* k2 */
    T_OK(t, add_to(&c, c.f.stream, 2, 0, 4)); /* k3 */
    T_OK(t, rondo_event_record(c.events[1], c.f.other));
    T_OK(t, rondo_event_wait(c.events[1], c.f.stream));
    T_OK(t, add_to(&c, c.f.stream, 3, 4, 5)); /* k4 */
    T_OK(t, rondo_graph_capture_end(c.parent, c.f.stream));
    T_OK(t, rondo_graph_get_info(c.parent, &info));
    T_EQ(t, info.edges, 6);
    for (int64_t on = 0; on < 2; on++) {
        set_condition(&c, 6, on);
        c.f.buffers[2][1] = 9.0f;
        T_OK(t, gt_replay(&c.f, c.parent));
        T_NEAR(t, c.f.buffers[5][1], 4.0 + (on ? 3.0 : 9.0) + 1.0, 0.0);
    }
}
GT_BOTH(test_a09_condition_beside_a_fork)

RONDO_TEST_MAIN(GT_ENTRIES(test_child_of_two_lanes), GT_ENTRIES(test_child_in_a_lane),
                GT_ENTRIES(test_child_with_slots), GT_ENTRIES(test_stale_child),
                GT_ENTRIES(test_dumps_of_lanes_and_children), GT_ENTRIES(test_nested_conditions),
                GT_ENTRIES(test_condition_set_by_the_graph), GT_ENTRIES(test_condition_rules),
                GT_ENTRIES(test_a09_condition_beside_a_fork))
