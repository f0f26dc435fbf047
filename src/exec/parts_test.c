/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of two targets, made by hand: on two devices of the simulator, and with the CPU as one of them. Values, copies and
 * waits, and what is refused. */
#include "exec/exec_testing.h"
#include "graph/graph_testing.h"

typedef struct parts_fixture {
    graph_fixture f;
    exec_plan e;
    rondo_device *devices[2];
    rondo_executable *executable;
    rondo_context *context;
    rondo_graph *graph;
    rondo__plan_target targets[2];
    uint32_t segments[4];
} parts_fixture;

static void parts_close(parts_fixture *p) {
    rondo_graph_release(p->graph);
    rondo_context_release(p->context);
    rondo_executable_release(p->executable);
    rondo_device_release(p->devices[1]);
}

static uint32_t on_target(parts_fixture *p, const char *name, uint32_t target) {
    uint32_t buffer = ep_temporary(&p->e, name);
    p->e.buffers[buffer].target = target;
    p->e.buffers[buffer].offset = p->targets[target].arena_bytes;
    p->targets[target].arena_bytes += EP_BYTES;
    return buffer;
}

static void transfer(parts_fixture *p, const char *name, uint32_t from, uint32_t to, uint32_t segment) {
    ep_step(&p->e, "rondo", RONDO__PLAN_TRANSFER, name, from, RONDO__PLAN_NONE, to)->segment = segment;
}

/* n = -x and m = x x on target 0; v = n + c and w = v m on target 1; y = w + x on target 0. z = v goes straight out. */
static void parts_plan(parts_fixture *p) {
    static const uint32_t segments[] = {0, 1, 0};
    exec_plan *e = &p->e;
    uint32_t x = ep_port(e, "x", true), y = ep_port(e, "y", false), z = ep_port(e, "z", false), c = ep_constant(e, "c");
    memset(p->targets, 0, sizeof p->targets);
    p->targets[0].name = "ref:a";
    p->targets[1].name = "ref:b";
    memcpy(p->segments, segments, sizeof segments);
    uint32_t n = on_target(p, "n", 0), m = on_target(p, "m", 0), n1 = on_target(p, "n1", 1), m1 = on_target(p, "m1", 1),
             v = on_target(p, "v", 1), w = on_target(p, "w", 1), w0 = on_target(p, "w0", 0);
    ep_step(e, "ref", "Neg", "neg", x, RONDO__PLAN_NONE, n);
    ep_step(e, "ref", "Mul", "square", x, x, m);
    transfer(p, "n goes", n, n1, 1);
    transfer(p, "m goes", m, m1, 1);
    ep_step(e, "ref", "Add", "add", n1, c, v)->segment = 1;
    ep_step(e, "ref", "Mul", "mul", v, m1, w)->segment = 1;
    transfer(p, "w comes", w, w0, 2);
    transfer(p, "v comes", v, z, 2);
    ep_step(e, "ref", "Add", "last", w0, x, y)->segment = 2;
    e->plan->target = "ref:a;ref:b";
    e->plan->targets = p->targets;
    e->plan->segment_targets = p->segments;
    e->plan->target_count = 2;
    e->plan->segment_count = 3;
    e->plan->arena_bytes = p->targets[0].arena_bytes + p->targets[1].arena_bytes;
}

static void parts_open(rondo_test *t, parts_fixture *p, const char *first, const char *second) {
    memset(p, 0, sizeof *p);
    gt_open(t, &p->f, first);
    ep_open(t, &p->e);
    T_DEFER(t, parts_close, p);
    p->devices[0] = p->f.device;
    T_OK(t, rondo_device_open(p->f.instance, second, NULL, &p->devices[1]));
    parts_plan(p);
}

static void parts_check(const parts_fixture *p, const float *x) {
    for (uint32_t i = 0; i < EP_FLOATS; i++) {
        float v = -x[i] + (float)(i + 1), w = v * (x[i] * x[i]);
        T_NEAR(p->f.t, p->f.buffers[1][i], w + x[i], 0.0);
        T_NEAR(p->f.t, p->f.buffers[2][i], v, 0.0);
    }
    memset(p->f.buffers[1], 0x55, EP_BYTES);
    memset(p->f.buffers[2], 0x55, EP_BYTES);
}

static uint64_t counter(const parts_fixture *p, uint32_t device, const char *name) {
    uint64_t value = 0;
    T_OK(p->f.t, rondo_device_counter(p->devices[device], name, &value));
    return value;
}

static void runs(rondo_test *t, parts_fixture *p) {
    T_OK(t, rondo_executable_create_on(p->devices, 2, p->e.plan, &p->executable));
    T_OK(t, rondo_context_create(p->executable, &p->context));
    T_OK(t, rondo_context_bind_output(p->context, 0, p->f.buffers[1]));
    T_OK(t, rondo_context_bind_output(p->context, 1, p->f.buffers[2]));
    for (uint32_t i = 0; i < 6; i++) {
        float *x = p->f.buffers[3 + i % 3];
        T_OK(t, rondo_context_bind_input(p->context, 0, x));
        T_OK(t, i % 2 ? rondo_context_run_eager(p->context, p->f.stream) : rondo_context_run(p->context, p->f.stream));
        T_OK(t, rondo_stream_synchronize(p->f.stream));
        parts_check(p, x);
    }
    /* One right behind the other, on two streams. */
    T_OK(t, rondo_context_run(p->context, p->f.stream));
    T_OK(t, rondo_context_run(p->context, p->f.other));
    T_OK(t, rondo_stream_synchronize(p->f.other));
    parts_check(p, p->f.buffers[5]);
}

static void two_simulators(rondo_test *t) {
    parts_fixture p;
    static const char *const counts[] = {"copies", "synchronizes", "launches"};
    /* A run: two copies leave the first device and two arrive there; one wait each, for both that leave. */
    static const uint64_t want[2][3] = {{4, 1, 3}, {4, 1, 2}};
    uint64_t before[2][3];
    parts_open(t, &p, "sim", "sim:1");
    runs(t, &p);
    T_OK(t, rondo_stream_synchronize(p.f.stream));
    for (uint32_t way = 0; way < 2; way++) {
        for (uint32_t d = 0; d < 2; d++)
            for (uint32_t i = 0; i < 3; i++) before[d][i] = counter(&p, d, counts[i]);
        T_OK(t, way ? rondo_context_run_eager(p.context, p.f.stream) : rondo_context_run(p.context, p.f.stream));
        for (uint32_t d = 0; d < 2; d++)
            for (uint32_t i = 0; i < 3; i++) T_EQ(t, counter(&p, d, counts[i]) - before[d][i], want[d][i]);
        T_OK(t, rondo_stream_synchronize(p.f.stream));
    }
}

static void simulator_and_cpu(rondo_test *t) {
    parts_fixture p;
    parts_open(t, &p, "sim", "cpu");
    runs(t, &p);
}

static void cpu_and_simulator(rondo_test *t) {
    parts_fixture p;
    parts_open(t, &p, "cpu", "sim");
    runs(t, &p);
}

static void refusals(rondo_test *t) {
    parts_fixture p;
    rondo_device *twice[2], *none[2] = {NULL, NULL};
    parts_open(t, &p, "sim", "sim:1");
    twice[0] = twice[1] = p.devices[0];
    T_FAILS(t, rondo_executable_create(p.devices[0], p.e.plan, &p.executable), INVALID_ARGUMENT,
            "is for 2 targets ('ref:a;ref:b'), 1 device is given");
    T_FAILS(t, rondo_executable_create_on(p.devices, 0, p.e.plan, &p.executable), INVALID_ARGUMENT, "needs a device");
    T_FAILS(t, rondo_executable_create_on(none, 2, p.e.plan, &p.executable), INVALID_ARGUMENT, "needs a device");
    T_FAILS(t, rondo_executable_create_on(twice, 9, p.e.plan, &p.executable), INVALID_ARGUMENT, "at most 8 targets");
    p.e.steps[4].catalogue = "npu";
    T_FAILS(t, rondo_executable_create_on(p.devices, 2, p.e.plan, &p.executable), UNSUPPORTED, "device 'sim:1'");
    p.e.steps[4].catalogue = "ref";
    T_OK(t, rondo_executable_create_on(twice, 2, p.e.plan, &p.executable)); /* one device may be both */
    T_OK(t, rondo_context_create(p.executable, &p.context));
    T_OK(t, rondo_context_bind_input(p.context, 0, p.f.buffers[3]));
    T_OK(t, rondo_context_bind_output(p.context, 0, p.f.buffers[1]));
    T_FAILS(t, rondo_context_run(p.context, p.f.stream), INVALID_STATE,
            "output 'z'"); /* which only a transfer writes */
    T_OK(t, rondo_context_bind_output(p.context, 1, p.f.buffers[2]));
    T_OK(t, rondo_context_run(p.context, p.f.stream));
    T_OK(t, rondo_stream_synchronize(p.f.stream));
    parts_check(&p, p.f.buffers[3]);
    T_OK(t, rondo_graph_create(p.f.device, NULL, &p.graph));
    T_OK(t, gt_begin(&p.f, p.graph));
    T_FAILS(t, rondo_context_run(p.context, p.f.stream), UNSUPPORTED, "runs on 2 devices");
    T_FAILS(t, rondo_graph_capture_end(p.graph, p.f.stream), CAPTURE_INVALIDATED, "runs on 2 devices");
}

/* What the verifier says of a plan whose targets do not fit. */
static void wrong_plans(rondo_test *t) {
    parts_fixture p;
    parts_open(t, &p, "sim", "sim:1");
    T_OK(t, rondo__plan_verify(p.e.plan, true));
    p.segments[1] = 2;
    T_FAILS(t, rondo__plan_verify(p.e.plan, true), CORRUPT, "segment 1 is of no target");
    p.segments[1] = 0;
    T_FAILS(t, rondo__plan_verify(p.e.plan, true), CORRUPT, "'n goes' transfers nothing from another target");
    p.segments[1] = 1;
    p.e.buffers[p.e.steps[4].outputs[0].buffer].target = 0; /* add writes into memory of target 0 */
    T_FAILS(t, rondo__plan_verify(p.e.plan, true), CORRUPT, "step 'add' of target 1 uses 'v'");
    p.e.buffers[p.e.steps[4].outputs[0].buffer].target = 2;
    T_FAILS(t, rondo__plan_verify(p.e.plan, true), CORRUPT, "'v' is of no target");
    p.e.buffers[p.e.steps[4].outputs[0].buffer].target = 1;
    p.targets[1].arena_bytes -= 64;
    T_FAILS(t, rondo__plan_verify(p.e.plan, true), CORRUPT, "arenas of its targets");
    p.e.plan->arena_bytes -= 64;
    T_FAILS(t, rondo__plan_verify(p.e.plan, true), CORRUPT, "'w' of 64 bytes");
    p.targets[1].arena_bytes += 64;
    p.e.plan->arena_bytes += 64;
    p.e.steps[2].inputs = p.e.steps[0].outputs - 1; /* x: target 0, fine */
    T_OK(t, rondo__plan_verify(p.e.plan, true));
    p.e.steps[2].input_count = 2;
    T_FAILS(t, rondo__plan_verify(p.e.plan, true), CORRUPT, "'n goes' is no transfer");
    p.e.steps[2].input_count = 1;
    p.e.plan->lane_count = 2;
    T_FAILS(t, rondo__plan_verify(p.e.plan, true), CORRUPT, "several targets and several lanes");
    p.e.plan->lane_count = 1;
    p.e.plan->target_count = 9;
    T_FAILS(t, rondo__plan_verify(p.e.plan, true), CORRUPT, "9 targets");
}

RONDO_TEST_MAIN(T(two_simulators), T(simulator_and_cpu), T(cpu_and_simulator), T(refusals), T(wrong_plans))
