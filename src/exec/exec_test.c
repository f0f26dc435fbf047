/* SPDX-License-Identifier: Apache-2.0
 *
 * Executables and contexts over plans made by hand: one law (own list, captured eager run and eager run agree to the
 * bit), binding, and every refusal. */
#include <pthread.h>

#include "exec/exec_testing.h"
#include "graph/far_testing.h"
#include "graph/graph_testing.h"

typedef struct exec_fixture {
    graph_fixture f;
    exec_plan e;
    rondo_executable *executable;
    rondo_context *context;
} exec_fixture;

static void exec_close(exec_fixture *x) {
    rondo_context_release(x->context);
    rondo_executable_release(x->executable);
}

static void exec_open(rondo_test *t, exec_fixture *x, const char *device) {
    gt_open(t, &x->f, device);
    ep_open(t, &x->e);
    x->executable = NULL;
    x->context = NULL;
    T_DEFER(t, exec_close, x);
}

static void exec_make(rondo_test *t, exec_fixture *x) {
    T_OK(t, rondo_executable_create(x->f.device, x->e.plan, &x->executable));
    T_OK(t, rondo_context_create(x->executable, &x->context));
}

/* y = (x + c0) * x, z = -(x + c0) in place of the temporary's copy. An input w that nobody reads. */
static void exec_plan_two(exec_plan *e, const char *catalogue) {
    uint32_t x = ep_port(e, "x", true), w = ep_port(e, "w", true), y = ep_port(e, "y", false),
             z = ep_port(e, "z", false);
    uint32_t c = ep_constant(e, "c"), s = ep_temporary(e, "s"), n = ep_temporary(e, "n");
    (void)w;
    e->inputs[1].buffer = RONDO__PLAN_NONE;
    e->buffers[w].kind = RONDO__PLAN_CONSTANT; /* the number is used up by a constant that nobody needs */
    ep_step(e, catalogue, "Add", "sum", x, c, s);
    ep_step(e, catalogue, "Mul", "product", s, x, y);
    ep_step(e, catalogue, "Neg", "negated", s, RONDO__PLAN_NONE, n);
    ep_step(e, catalogue, "Add", "out", n, n, z);
}

static void exec_check_two(rondo_test *t, const float *x, const float *y, const float *z) {
    for (uint32_t i = 0; i < EP_FLOATS; i++) {
        double s = (double)x[i] + i + 1.0;
        T_NEAR(t, y[i], s * (double)x[i], 0.0);
        T_NEAR(t, z[i], -2.0 * s, 0.0);
    }
}

static void test_one_law(rondo_test *t, const char *device) {
    exec_fixture x;
    rondo_graph *graph = NULL;
    exec_open(t, &x, device);
    exec_plan_two(&x.e, "ref");
    exec_make(t, &x);
    float **b = x.f.buffers;
    T_OK(t, rondo_context_bind_input(x.context, 0, b[0]));
    T_OK(t, rondo_context_bind_output(x.context, 0, b[1]));
    T_OK(t, rondo_context_bind_output(x.context, 1, b[2]));
    T_OK(t, rondo_context_run(x.context, x.f.stream));
    T_OK(t, rondo_stream_synchronize(x.f.stream));
    exec_check_two(t, b[0], b[1], b[2]);
    T_OK(t, rondo_context_bind_output(x.context, 0, b[3]));
    T_OK(t, rondo_context_bind_output(x.context, 1, b[4]));
    T_OK(t, rondo_context_run_eager(x.context, x.f.stream));
    T_OK(t, rondo_stream_synchronize(x.f.stream));
    T_OK(t, rondo_graph_create(x.f.device, NULL, &graph));
    T_DEFER(t, rondo_graph_release, graph);
    T_OK(t, rondo_context_bind_output(x.context, 0, b[5]));
    T_OK(t, rondo_context_bind_output(x.context, 1, b[6]));
    T_OK(t, gt_begin(&x.f, graph));
    T_OK(t, rondo_context_run_eager(x.context, x.f.stream));
    T_OK(t, rondo_graph_capture_end(graph, x.f.stream));
    T_NEAR(t, b[5][0], 500.0, 0.0); /* recorded only */
    T_OK(t, gt_replay(&x.f, graph));
    T_TRUE(t, memcmp(b[1], b[3], EP_BYTES) == 0 && memcmp(b[1], b[5], EP_BYTES) == 0);
    T_TRUE(t, memcmp(b[2], b[4], EP_BYTES) == 0 && memcmp(b[2], b[6], EP_BYTES) == 0);
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    T_OK(t, rondo_graph_get_info(graph, &info));
    T_EQ(t, info.nodes, 4);
    /* run, too, is recorded when the stream captures. */
    rondo_graph_reset(graph);
    T_OK(t, gt_begin(&x.f, graph));
    T_OK(t, rondo_context_run(x.context, x.f.stream));
    T_OK(t, rondo_graph_capture_end(graph, x.f.stream));
    T_OK(t, rondo_graph_get_info(graph, &info));
    T_EQ(t, info.nodes, 4);
    /* The captured graph mentions the context's arena: without it, it is stale and says so. */
    rondo_context_release(x.context);
    x.context = NULL;
    T_FAILS(t, rondo_graph_replay(graph, x.f.stream), STALE, "node 0 'sum', argument 2");
}
GT_BOTH(test_one_law)

static void test_rebinding(rondo_test *t, const char *device) {
    exec_fixture x;
    exec_open(t, &x, device);
    exec_plan_two(&x.e, "ref");
    exec_make(t, &x);
    float **b = x.f.buffers;
    T_OK(t, rondo_context_bind_output(x.context, 0, b[6]));
    T_OK(t, rondo_context_bind_output(x.context, 1, b[7]));
    for (int i = 0; i < 12; i++) {
        float *in = b[i % 5];
        T_OK(t, rondo_context_bind_input(x.context, 0, in));
        if (i % 2) T_OK(t, rondo_context_run(x.context, x.f.stream));
        else T_OK(t, rondo_context_run_eager(x.context, x.f.stream));
        T_OK(t, rondo_stream_synchronize(x.f.stream));
        exec_check_two(t, in, b[6], b[7]);
    }
    /* In flight, then bound anew: the run before had the old address, and is over when bind returns. */
    memset(b[6], 0, EP_BYTES);
    T_OK(t, rondo_context_run(x.context, x.f.stream));
    T_OK(t, rondo_context_bind_output(x.context, 0, b[5]));
    exec_check_two(t, b[1], b[6], b[7]);
    /* Two streams: one run after the other. */
    T_OK(t, rondo_context_run(x.context, x.f.stream));
    T_OK(t, rondo_context_run(x.context, x.f.other));
    T_OK(t, rondo_stream_synchronize(x.f.other));
    exec_check_two(t, b[1], b[5], b[7]);
}
GT_BOTH(test_rebinding)

/* What a run in flight reads or writes is overwritten behind it, from whichever stream. The simulator runs nothing before
 * somebody waits, and each seed in another order; what has no order fails there. */
static void test_overwriting_waits(rondo_test *t, const char *device) {
    exec_fixture x;
    exec_open(t, &x, device);
    exec_plan_two(&x.e, "ref");
    exec_make(t, &x);
    float **b = x.f.buffers, in[EP_FLOATS];
    memcpy(in, b[0], sizeof in);
    T_OK(t, rondo_context_bind_input(x.context, 0, b[0]));
    T_OK(t, rondo_context_bind_output(x.context, 0, b[1]));
    T_OK(t, rondo_context_bind_output(x.context, 1, b[2]));
    for (int way = 0; way < 6; way++) {
        memcpy(b[0], in, sizeof in);
        if (way % 2) T_OK(t, rondo_context_run(x.context, x.f.stream));
        else T_OK(t, rondo_context_run_eager(x.context, x.f.stream));
        if (way < 2) T_OK(t, rondo_stream_fill(x.f.other, (char *)b[0] + EP_BYTES - 1, 1, 1)); /* one byte is enough */
        else if (way < 4) T_OK(t, rondo_stream_copy(x.f.other, b[0], b[4], EP_BYTES, RONDO_COPY_DEVICE_TO_DEVICE));
        else T_OK(t, rondo_stream_fill(x.f.other, b[1], 0x11, EP_BYTES)); /* an output: the later write stays */
        T_OK(t, rondo_stream_synchronize(x.f.other));
        T_OK(t, rondo_stream_synchronize(x.f.stream));
        if (way < 4) exec_check_two(t, in, b[1], b[2]);
        else T_EQ(t, ((unsigned char *)b[1])[7], 0x11);
    }
    /* Elsewhere nobody waits. */
    uint64_t before = 0, after = 0;
    if (strcmp(device, "cpu") == 0) return;
    T_OK(t, rondo_context_run(x.context, x.f.stream));
    T_OK(t, rondo_device_counter(x.f.device, "events", &before));
    T_OK(t, rondo_stream_fill(x.f.other, b[4], 0, EP_BYTES));
    T_OK(t, rondo_stream_fill(x.f.other, b[3], 0, EP_BYTES));
    T_OK(t, rondo_device_counter(x.f.device, "events", &after));
    T_EQ(t, after, before);
    T_OK(t, rondo_stream_synchronize(x.f.other));
    T_OK(t, rondo_stream_synchronize(x.f.stream));
}
GT_BOTH(test_overwriting_waits)

/* A kernel may write while the plan still reads: an output over an input would be silently wrong. */
static void test_outputs_lie_apart(rondo_test *t, const char *device) {
    exec_fixture x;
    exec_open(t, &x, device);
    exec_plan_two(&x.e, "ref");
    exec_make(t, &x);
    float **b = x.f.buffers;
    T_OK(t, rondo_context_bind_input(x.context, 0, b[0]));
    T_OK(t, rondo_context_bind_output(x.context, 0, b[0]));
    T_OK(t, rondo_context_bind_output(x.context, 1, b[2]));
    T_FAILS(t, rondo_context_run(x.context, x.f.stream), INVALID_ARGUMENT, "lies over input 'x'");
    T_FAILS(t, rondo_context_run_eager(x.context, x.f.stream), INVALID_ARGUMENT, "bind them to memory apart");
    T_OK(t, rondo_context_bind_output(x.context, 0, (char *)b[2] + EP_BYTES - sizeof(float)));
    T_FAILS(t, rondo_context_run(x.context, x.f.stream), INVALID_ARGUMENT, "lies over output");
    T_OK(t, rondo_context_bind_output(x.context, 0, b[1]));
    T_OK(t, rondo_context_run(x.context, x.f.stream));
    T_OK(t, rondo_context_bind_input(x.context, 0, (char *)b[2] + sizeof(float)));
    T_FAILS(t, rondo_context_run(x.context, x.f.stream), INVALID_ARGUMENT, "lies over input 'x'");
    T_OK(t, rondo_context_bind_input(x.context, 0, b[0]));
    T_OK(t, rondo_context_run_eager(x.context, x.f.stream));
    T_OK(t, rondo_stream_synchronize(x.f.stream));
}
GT_BOTH(test_outputs_lie_apart)

static void test_binding_refusals(rondo_test *t) {
    exec_fixture x;
    exec_open(t, &x, "cpu");
    exec_plan_two(&x.e, "ref");
    exec_make(t, &x);
    float **b = x.f.buffers;
    T_FAILS(t, rondo_context_run(x.context, x.f.stream), INVALID_STATE, "input 'x' is not bound");
    T_OK(t, rondo_context_bind_input(x.context, 0, b[0]));
    T_FAILS(t, rondo_context_run(x.context, x.f.stream), INVALID_STATE, "rondo_context_bind_output(context, 0");
    T_OK(t, rondo_context_bind_output(x.context, 0, b[1]));
    T_OK(t, rondo_context_bind_output(x.context, 0, b[2])); /* twice counts once */
    T_FAILS(t, rondo_context_run_eager(x.context, x.f.stream), INVALID_STATE, "output 'z'");
    /* In a capture the run would be missing. */
    rondo_graph *graph = NULL;
    T_OK(t, rondo_graph_create(x.f.device, NULL, &graph));
    T_DEFER(t, rondo_graph_release, graph);
    T_OK(t, gt_begin(&x.f, graph));
    T_FAILS(t, rondo_context_run(x.context, x.f.stream), INVALID_STATE, "output 'z'");
    T_FAILS(t, rondo_graph_capture_end(graph, x.f.stream), CAPTURE_INVALIDATED, "output 'z'");
    T_FAILS(t, rondo_context_bind_input(x.context, 2, b[0]), OUT_OF_RANGE, "2 inputs");
    T_FAILS(t, rondo_context_bind_output(x.context, 2, b[0]), OUT_OF_RANGE, "2 outputs");
    T_FAILS(t, rondo_context_bind_input(x.context, 0, NULL), INVALID_ARGUMENT, "'x' cannot be bound to null");
    T_FAILS(t, rondo_context_bind_input(x.context, 0, (char *)b[0] + 2), INVALID_ARGUMENT, "aligned to 4");
    T_FAILS(t, rondo_context_bind_input(NULL, 0, b[0]), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_context_bind_output(NULL, 0, b[0]), INVALID_ARGUMENT, NULL);
    T_OK(t, rondo_context_bind_output(x.context, 1, b[3]));
    T_OK(t, rondo_context_run(x.context, x.f.stream)); /* w is read by nobody and need not be bound */
    T_OK(t, rondo_context_bind_input(x.context, 1, b[4]));
    T_OK(t, rondo_context_run(x.context, x.f.stream));
    T_FAILS(t, rondo_context_run(NULL, x.f.stream), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_context_run(x.context, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_context_run_eager(NULL, x.f.stream), INVALID_ARGUMENT, NULL);
    rondo_device *sim = NULL;
    T_OK(t, rondo_device_open(x.f.instance, "sim", NULL, &sim));
    T_DEFER(t, rondo_device_release, sim);
    T_FAILS(t, rondo_context_run(x.context, rondo_stream_default(sim)), INVALID_ARGUMENT, "device 'cpu:0'");
}

static void test_executable_refusals(rondo_test *t) {
    exec_fixture x;
    exec_open(t, &x, "cpu");
    exec_plan_two(&x.e, "ref");
    rondo_device *device = x.f.device;
    rondo_plan *plan = x.e.plan;
    T_FAILS(t, rondo_executable_create(NULL, plan, &x.executable), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_executable_create(device, NULL, &x.executable), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_context_create(NULL, &x.context), INVALID_ARGUMENT, NULL);
    x.e.steps[1].catalogue = "npu";
    T_FAILS(t, rondo_executable_create(device, plan, &x.executable), UNSUPPORTED,
            "step 1 'product' wants a kernel of "
            "catalogue 'npu'");
    x.e.steps[1].catalogue = "ref";
    x.e.steps[1].operator_name = "Nonsense";
    T_FAILS(t, rondo_executable_create(device, plan, &x.executable), UNSUPPORTED, "step 1 'product'");
    x.e.steps[1].operator_name = "Mul";
    x.e.steps[1].packed_bytes = 64;
    T_FAILS(t, rondo_executable_create(device, plan, &x.executable), UNSUPPORTED, "compile again");
    x.e.steps[1].packed_bytes = 0;
    plan->segment_count = 2;
    T_FAILS(t, rondo_executable_create(device, plan, &x.executable), UNSUPPORTED, "2 segments");
    plan->segment_count = 1;
    x.e.operands[0].offset = 4;
    T_FAILS(t, rondo_executable_create(device, plan, &x.executable), INTERNAL, NULL);
    x.e.operands[0].offset = 0;
    exec_make(t, &x);
}

/* y = (s * x) + -s with s = x + c: the two terms in lanes of their own. */
static void exec_plan_diamond(exec_fixture *x) {
    static const uint32_t events[] = {0, 1};
    exec_plan *e = &x->e;
    uint32_t in = ep_port(e, "x", true), out = ep_port(e, "y", false), c = ep_constant(e, "c"),
             s = ep_temporary(e, "s"), m = ep_temporary(e, "m"), n = ep_temporary(e, "n");
    e->plan->lane_count = e->plan->event_count = 2;
    ep_step(e, "ref", "Add", "sum", in, c, s)->record = 0;
    ep_step(e, "ref", "Mul", "product", s, in, m);
    rondo__plan_step *negated = ep_step(e, "ref", "Neg", "negated", s, RONDO__PLAN_NONE, n);
    negated->lane = 1;
    negated->waits = &events[0];
    negated->record = 1;
    rondo__plan_step *last = ep_step(e, "ref", "Add", "last", m, n, out);
    last->waits = &events[1];
    negated->wait_count = last->wait_count = 1;
}

static void exec_check_diamond(exec_fixture *x, const char *way) {
    for (uint32_t i = 0; i < EP_FLOATS; i++) {
        double in = (double)x->f.buffers[0][i], s = in + i + 1.0;
        if ((double)x->f.buffers[1][i] != s * in - s) rondo_test_fail(x->f.t, __FILE__, __LINE__, "wrong %s", way);
    }
    memset(x->f.buffers[1], 0x55, EP_BYTES);
}

/* The lanes of a plan are lanes of the context's list, of an eager run, and of what a capture records: a graph that knows
 * which node comes after which. Two waits suffice, and the device is asked for no more. */
static void test_lanes(rondo_test *t, const char *device) {
    exec_fixture x;
    rondo_graph *graph = NULL;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    uint64_t before = 0, after = 0;
    bool sim = strcmp(device, "sim") == 0;
    exec_open(t, &x, device);
    exec_plan_diamond(&x);
    exec_make(t, &x);
    T_OK(t, rondo_context_bind_input(x.context, 0, x.f.buffers[0]));
    T_OK(t, rondo_context_bind_output(x.context, 0, x.f.buffers[1]));
    for (int i = 0; i < 3; i++) {
        if (sim) T_OK(t, rondo_device_counter(x.f.device, "calls.event_wait", &before));
        T_OK(t, rondo_context_run(x.context, x.f.stream));
        if (sim) T_OK(t, rondo_device_counter(x.f.device, "calls.event_wait", &after));
        T_EQ(t, after - before, sim ? 2 : 0);
        T_OK(t, rondo_stream_synchronize(x.f.stream));
        exec_check_diamond(&x, "from the context's list");
        T_OK(t, rondo_context_run_eager(x.context, x.f.stream));
        T_OK(t, rondo_stream_synchronize(x.f.stream));
        exec_check_diamond(&x, "eagerly");
    }
    T_OK(t, rondo_graph_create(x.f.device, NULL, &graph));
    T_DEFER(t, rondo_graph_release, graph);
    for (int i = 0; i < 2; i++) {
        T_OK(t, gt_begin(&x.f, graph));
        T_OK(t, i ? rondo_context_run(x.context, x.f.stream) : rondo_context_run_eager(x.context, x.f.stream));
        T_OK(t, rondo_graph_capture_end(graph, x.f.stream));
        T_OK(t, rondo_graph_get_info(graph, &info));
        T_EQ(t, info.nodes, 4);
        T_EQ(t, info.lanes, 2);
        T_EQ(t, info.edges, 4);
        T_OK(t, gt_replay(&x.f, graph));
        exec_check_diamond(&x, "captured and replayed");
        /* Its streams are free again. */
        T_OK(t, rondo_context_run_eager(x.context, x.f.other));
        T_OK(t, rondo_stream_synchronize(x.f.other));
        exec_check_diamond(&x, "after a capture");
        rondo_graph_reset(graph);
    }
}
GT_BOTH(test_lanes)

/* A plan that a lane begins on its own, and that no step of lane 0 ends: the run's stream begins and ends it. */
static void test_lanes_apart(rondo_test *t, const char *device) {
    exec_fixture x;
    rondo_graph *graph = NULL;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    exec_open(t, &x, device);
    exec_plan *e = &x.e;
    uint32_t in = ep_port(e, "x", true), y = ep_port(e, "y", false), z = ep_port(e, "z", false),
             s = ep_temporary(e, "s");
    e->plan->lane_count = 3;
    ep_step(e, "ref", "Neg", "one", in, RONDO__PLAN_NONE, s)->lane = 1;
    ep_step(e, "ref", "Neg", "two", s, RONDO__PLAN_NONE, y)->lane = 1;
    ep_step(e, "ref", "Neg", "other", in, RONDO__PLAN_NONE, z)->lane = 2;
    exec_make(t, &x);
    float **b = x.f.buffers;
    T_OK(t, rondo_context_bind_input(x.context, 0, b[0]));
    T_OK(t, rondo_context_bind_output(x.context, 0, b[1]));
    T_OK(t, rondo_context_bind_output(x.context, 1, b[2]));
    T_OK(t, rondo_graph_create(x.f.device, NULL, &graph));
    T_DEFER(t, rondo_graph_release, graph);
    for (int way = 0; way < 3; way++) {
        /* What comes before on the stream is seen, and what comes after sees all. */
        T_OK(t, rondo_stream_copy(x.f.stream, b[0], b[3 + way], EP_BYTES, RONDO_COPY_DEVICE_TO_DEVICE));
        if (way == 0) T_OK(t, rondo_context_run(x.context, x.f.stream));
        if (way == 1) T_OK(t, rondo_context_run_eager(x.context, x.f.stream));
        if (way == 2) {
            T_OK(t, gt_begin(&x.f, graph));
            T_OK(t, rondo_context_run(x.context, x.f.stream));
            T_OK(t, rondo_graph_capture_end(graph, x.f.stream));
            T_OK(t, rondo_graph_get_info(graph, &info));
            T_EQ(t, info.lanes, 3);
            T_EQ(t, info.edges, 1);
            T_OK(t, rondo_graph_replay(graph, x.f.stream));
        }
        T_OK(t, rondo_stream_copy(x.f.stream, b[6], b[1], EP_BYTES, RONDO_COPY_DEVICE_TO_DEVICE));
        T_OK(t, rondo_stream_copy(x.f.stream, b[7], b[2], EP_BYTES, RONDO_COPY_DEVICE_TO_DEVICE));
        T_OK(t, rondo_stream_synchronize(x.f.stream));
        for (uint32_t i = 0; i < EP_FLOATS; i++) {
            T_NEAR(t, b[6][i], b[3 + way][i], 0.0);
            T_NEAR(t, b[7][i], -(double)b[3 + way][i], 0.0);
        }
    }
}
GT_BOTH(test_lanes_apart)

/* A plan without a step runs and does nothing. */
static void test_empty_plan(rondo_test *t, const char *device) {
    exec_fixture x;
    exec_open(t, &x, device);
    exec_make(t, &x);
    for (int i = 0; i < 3; i++) {
        T_OK(t, rondo_context_run(x.context, x.f.stream));
        T_OK(t, rondo_context_run_eager(x.context, x.f.stream));
    }
    T_OK(t, rondo_stream_synchronize(x.f.stream));
}
GT_BOTH(test_empty_plan)

/* Views and parts: operands at offsets into inputs, outputs and temporaries. */
static void test_offsets(rondo_test *t, const char *device) {
    exec_fixture x;
    exec_open(t, &x, device);
    exec_plan *e = &x.e;
    uint32_t in = ep_port(e, "x", true), out = ep_port(e, "y", false), s = ep_temporary(e, "s");
    static const int64_t half[1] = {EP_FLOATS / 2};
    ep_step(e, "ref", "Add", "low", in, in, s);
    ep_step(e, "ref", "Add", "high", in, in, s);
    ep_step(e, "ref", "Neg", "turn", s, RONDO__PLAN_NONE, out);
    for (uint32_t i = 0; i < 6; i++) { /* the first two steps work on halves, crosswise */
        e->operands[i].dims = half;
        e->operands[i].bytes = EP_BYTES / 2;
        if (i == 0 || i == 4 || i == 5) e->operands[i].offset = EP_BYTES / 2;
    }
    exec_make(t, &x);
    T_OK(t, rondo_context_bind_input(x.context, 0, x.f.buffers[0]));
    T_OK(t, rondo_context_bind_output(x.context, 0, x.f.buffers[1]));
    T_OK(t, rondo_context_run(x.context, x.f.stream));
    T_OK(t, rondo_stream_synchronize(x.f.stream));
    for (uint32_t i = 0; i < 8; i++) {
        T_NEAR(t, x.f.buffers[1][i], -(2.0 * i + 8.0), 0.0);
        T_NEAR(t, x.f.buffers[1][i + 8], -(2.0 * i + 8.0), 0.0);
    }
}
GT_BOTH(test_offsets)

/* Tensors without elements touch nothing and need not be bound. */
static void test_tensors_without_elements(rondo_test *t) {
    exec_fixture x;
    static const int64_t none[1] = {0};
    exec_open(t, &x, "cpu");
    exec_plan *e = &x.e;
    uint32_t in = ep_port(e, "x", true), out = ep_port(e, "y", false);
    ep_step(e, "ref", "Add", "nothing", in, in, out);
    for (uint32_t i = 0; i < 3; i++) e->operands[i].dims = none, e->operands[i].bytes = 0;
    e->inputs[0].dims = e->outputs[0].dims = none;
    e->inputs[0].bytes = e->outputs[0].bytes = e->buffers[in].bytes = e->buffers[out].bytes = 0;
    exec_make(t, &x);
    T_OK(t, rondo_context_bind_input(x.context, 0, NULL));
    T_OK(t, rondo_context_run(x.context, x.f.stream));
    T_OK(t, rondo_context_run_eager(x.context, x.f.stream));
}

/* Constants and packed blocks reach memory that only copies reach. The block is packed here, or came with the plan for
 * kernel set `set`: then it is another than packing would give, which shows in the result. */
static void far_weights(rondo_test *t, const char *set, double factor) {
    far_fixture f;
    exec_fixture x = {0};
    void *in = NULL, *out = NULL;
    far_fixture_open(t, &f);
    ep_open(t, &x.e);
    exec_plan *e = &x.e;
    uint32_t ix = ep_port(e, "x", true), oy = ep_port(e, "y", false), s = ep_temporary(e, "s");
    uint32_t c = ep_constant(e, "c"), d = ep_constant(e, "d");
    ep_step(e, "far", "Add", "sum", ix, c, s);
    rondo__plan_step *scale = ep_step(e, "far", "Scale", "scale", s, d, oy);
    scale->packed_bytes = EP_BYTES;
    scale->absorbed_inputs = 2;
    e->buffers[d].data = NULL; /* wholly in the packed block */
    _Alignas(64) float block[EP_FLOATS];
    for (uint32_t i = 0; i < EP_FLOATS; i++) block[i] = (float)(i + 1u);
    scale->packed = set ? block : NULL;
    scale->packed_set = set;
    T_DEFER(t, exec_close, &x);
    T_OK(t, rondo_executable_create(f.device, e->plan, &x.executable));
    T_EQ(t, far.host_to_device, 1); /* all weights in one copy */
    T_OK(t, rondo_context_create(x.executable, &x.context));
    T_OK(t, rondo_memory_allocate(f.device, EP_BYTES, &in));
    rondo_status status = rondo_memory_allocate(f.device, EP_BYTES, &out);
    float values[EP_FLOATS];
    for (uint32_t i = 0; i < EP_FLOATS; i++) values[i] = (float)i;
    if (!status) status = rondo_stream_copy(f.stream, in, values, EP_BYTES, RONDO_COPY_HOST_TO_DEVICE);
    if (!status) status = rondo_context_bind_input(x.context, 0, in);
    if (!status) status = rondo_context_bind_output(x.context, 0, out);
    if (!status) status = rondo_context_run(x.context, f.stream);
    if (!status) status = rondo_stream_copy(f.stream, values, out, EP_BYTES, RONDO_COPY_DEVICE_TO_HOST);
    rondo_context_release(x.context);
    x.context = NULL;
    if (out) rondo_status_release(rondo_memory_free(f.device, out));
    rondo_status_release(rondo_memory_free(f.device, in));
    T_OK(t, status);
    for (uint32_t i = 0; i < EP_FLOATS; i++) T_NEAR(t, values[i], (2.0 * i + 1.0) * factor * (i + 1.0), 0.0);
}

static void test_far_weights(rondo_test *t) { far_weights(t, NULL, -2.0); }
static void test_far_weights_packed_before(rondo_test *t) { far_weights(t, "far", 1.0); }
static void test_far_weights_of_another_set(rondo_test *t) { far_weights(t, "farther", -2.0); }

typedef struct exec_thread {
    rondo_executable *executable;
    float in[EP_FLOATS], y[EP_FLOATS], z[EP_FLOATS];
    rondo_code code;
} exec_thread;

static rondo_status exec_thread_runs(exec_thread *work, rondo_context *context, rondo_stream *stream) {
    RONDO__TRY(rondo_context_bind_input(context, 0, work->in));
    RONDO__TRY(rondo_context_bind_output(context, 0, work->y));
    RONDO__TRY(rondo_context_bind_output(context, 1, work->z));
    for (int i = 0; i < 200; i++) RONDO__TRY(rondo_context_run(context, stream));
    return rondo_stream_synchronize(stream);
}

static void *exec_thread_main(void *argument) {
    exec_thread *work = argument;
    rondo_context *context = NULL;
    rondo_stream *stream = NULL;
    rondo_status status = rondo_context_create(work->executable, &context);
    if (!status) status = rondo_stream_create(work->executable->device, NULL, &stream);
    if (!status) status = exec_thread_runs(work, context, stream);
    work->code = rondo_status_code(status);
    rondo_status_release(status);
    rondo_context_release(context);
    rondo_stream_release(stream);
    return NULL;
}

/* One executable, a context a thread. */
static void test_two_threads(rondo_test *t) {
    exec_fixture x;
    static exec_thread work[2];
    pthread_t threads[2];
    exec_open(t, &x, "cpu");
    exec_plan_two(&x.e, "ref");
    T_OK(t, rondo_executable_create(x.f.device, x.e.plan, &x.executable));
    for (int i = 0; i < 2; i++) {
        work[i].executable = x.executable;
        for (uint32_t j = 0; j < EP_FLOATS; j++) work[i].in[j] = (float)(j * (uint32_t)(i + 1));
        T_EQ(t, pthread_create(&threads[i], NULL, exec_thread_main, &work[i]), 0);
    }
    for (int i = 0; i < 2; i++) (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        T_EQ(t, work[i].code, RONDO_CODE_OK);
        exec_check_two(t, work[i].in, work[i].y, work[i].z);
    }
}

RONDO_TEST_MAIN(GT_ENTRIES(test_one_law), GT_ENTRIES(test_rebinding), GT_ENTRIES(test_overwriting_waits),
                GT_ENTRIES(test_outputs_lie_apart), GT_ENTRIES(test_lanes), GT_ENTRIES(test_lanes_apart),
                T(test_binding_refusals), T(test_executable_refusals), GT_ENTRIES(test_empty_plan),
                GT_ENTRIES(test_offsets), T(test_tensors_without_elements), T(test_far_weights),
                T(test_far_weights_packed_before), T(test_far_weights_of_another_set), T_PLAIN(test_two_threads))
