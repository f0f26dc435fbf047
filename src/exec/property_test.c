/* SPDX-License-Identifier: Apache-2.0
 *
 * Random plans: a context's own list, an eager run, a captured eager run and plain C on the host agree to the bit. */
#include <stdlib.h>

#include "exec/exec_testing.h"
#include "graph/graph_testing.h"

#define STEPS_MAX 12u
#define VALUES_MAX (4u + STEPS_MAX)

/* Value v of the plan: a buffer, and its numbers as plain C has them. */
typedef struct property_value {
    uint32_t buffer;
    float model[EP_FLOATS];
} property_value;

typedef struct property {
    graph_fixture f;
    exec_plan e;
    uint32_t lanes;
    uint32_t waits[STEPS_MAX][2];
    rondo_executable *executable;
    rondo_context *context;
    rondo_graph *graph;
    property_value values[VALUES_MAX];
    uint32_t count;
} property;

static uint32_t property_pick(rondo_test *t, uint32_t below) { return (uint32_t)(rondo_test_random(t) >> 33) % below; }

static void property_drop(property *p) {
    rondo_graph_release(p->graph);
    rondo_context_release(p->context);
    rondo_executable_release(p->executable);
    ep_close(&p->e);
    p->graph = NULL;
    p->context = NULL;
    p->executable = NULL;
    p->e.plan = NULL;
}

static void property_compute(property_value *out, const char *name, const float *a, const float *b) {
    for (uint32_t i = 0; i < EP_FLOATS; i++)
        out->model[i] = name[0] == 'A' ? a[i] + b[i] : name[0] == 'M' ? a[i] * b[i] : -a[i];
}

/* Inputs x0 and x1, constants, and a chain of steps whose last two results are the outputs. */
static void property_make(rondo_test *t, property *p) {
    static const char *const operators[] = {"Add", "Mul", "Neg"};
    static const char *const names[] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11"};
    exec_plan *e = &p->e;
    memset(e, 0, sizeof *e);
    T_OK(t, rondo__plan_create(rondo_test_allocator(t), "random", &e->plan));
    e->dims[0] = EP_FLOATS;
    e->plan->target = "ref";
    e->plan->buffers = e->buffers;
    e->plan->steps = e->steps;
    e->plan->inputs = e->inputs;
    e->plan->outputs = e->outputs;
    e->plan->segment_count = e->plan->lane_count = 1;
    p->count = 0;
    for (uint32_t i = 0; i < 2; i++) {
        property_value *v = &p->values[p->count++];
        v->buffer = ep_port(e, i ? "x1" : "x0", true);
        memcpy(v->model, p->f.buffers[i], EP_BYTES);
    }
    for (uint32_t i = 0; i < 2; i++) {
        property_value *v = &p->values[p->count++];
        v->buffer = ep_constant(e, i ? "c1" : "c0");
        memcpy(v->model, e->constants[i], EP_BYTES);
    }
    uint32_t steps = 2u + property_pick(t, STEPS_MAX - 1u);
    for (uint32_t s = 0; s < steps; s++) {
        const char *name = operators[property_pick(t, 3)];
        const property_value *a = &p->values[property_pick(t, p->count)], *b = &p->values[property_pick(t, p->count)];
        property_value *out = &p->values[p->count++];
        out->buffer = s + 2u < steps ? ep_temporary(e, names[s]) : ep_port(e, names[s], false);
        (void)ep_step(e, "ref", name, names[s], a->buffer, name[0] == 'N' ? RONDO__PLAN_NONE : b->buffer, out->buffer);
        property_compute(out, name, a->model, b->model);
    }
}

/* Each step in some lane; it waits for whoever of another lane makes what it reads. Temporaries lie apart. */
static void property_spread(rondo_test *t, property *p) {
    rondo_plan *plan = p->e.plan;
    plan->lane_count = p->lanes;
    plan->event_count = plan->step_count;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        rondo__plan_step *step = &p->e.steps[s];
        step->lane = property_pick(t, p->lanes);
        step->record = s;
        step->waits = p->waits[s];
        for (uint32_t b = 0; b < s; b++) {
            bool reads = false;
            for (uint32_t i = 0; i < step->input_count; i++)
                reads = reads || step->inputs[i].buffer == p->e.steps[b].outputs[0].buffer;
            if (reads && p->e.steps[b].lane != step->lane) p->waits[s][step->wait_count++] = b;
        }
    }
}

static void property_check(property *p, const char *way) {
    for (uint32_t i = 0; i < 2; i++)
        if (memcmp(p->f.buffers[2 + i], p->values[p->count - 2u + i].model, EP_BYTES) != 0)
            rondo_test_fail(p->f.t, __FILE__, __LINE__, "output %u differs %s", (unsigned)i, way);
    memset(p->f.buffers[2], 0x55, EP_BYTES);
    memset(p->f.buffers[3], 0x55, EP_BYTES);
}

static void property_run(rondo_test *t, property *p) {
    graph_fixture *f = &p->f;
    T_OK(t, rondo_executable_create(f->device, p->e.plan, &p->executable));
    T_OK(t, rondo_context_create(p->executable, &p->context));
    for (uint32_t i = 0; i < 2; i++) {
        T_OK(t, rondo_context_bind_input(p->context, i, f->buffers[i]));
        T_OK(t, rondo_context_bind_output(p->context, i, f->buffers[2 + i]));
    }
    T_OK(t, rondo_context_run(p->context, f->stream));
    T_OK(t, rondo_stream_synchronize(f->stream));
    property_check(p, "from the context's list");
    T_OK(t, rondo_context_run_eager(p->context, f->stream));
    T_OK(t, rondo_stream_synchronize(f->stream));
    property_check(p, "eagerly");
    T_OK(t, rondo_graph_create(f->device, NULL, &p->graph));
    T_OK(t, gt_begin(f, p->graph));
    T_OK(t, rondo_context_run_eager(p->context, f->stream));
    T_OK(t, rondo_graph_capture_end(p->graph, f->stream));
    T_OK(t, gt_replay(f, p->graph));
    property_check(p, "captured and replayed");
}

static property properties[6]; /* closed when the test ends */

static void test_plans_of(rondo_test *t, const char *device, uint32_t lanes, property *p) {
    memset(p, 0, sizeof *p);
    p->lanes = lanes;
    gt_open(t, &p->f, device);
    T_DEFER(t, property_drop, p);
    for (int i = 0; i < 200; i++) {
        property_make(t, p);
        if (p->lanes > 1) property_spread(t, p);
        property_run(t, p);
        property_drop(p);
    }
}
static void test_plans(rondo_test *t, const char *device) { test_plans_of(t, device, 1, &properties[0]); }
GT_BOTH(test_plans)

/* On the simulator no two steps may touch the same bytes without an order between them, and each seed is another order. */
static void test_lanes(rondo_test *t, const char *device) {
    static const char *const seeds[] = {"1", "2", "3", "4", "5", "6"};
    for (uint32_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        (void)setenv("RONDO_SIM_SEED", seeds[i], 1);
        test_plans_of(t, device, 2 + i % 4, &properties[i]);
    }
    (void)unsetenv("RONDO_SIM_SEED");
}
GT_BOTH(test_lanes)

RONDO_TEST_MAIN(GT_PLAIN_ENTRIES(test_plans), GT_PLAIN_ENTRIES(test_lanes))
