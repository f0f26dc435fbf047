/* SPDX-License-Identifier: Apache-2.0
 *
 * Random steps in random lanes with random waits: clocks against a closure that is worked out pair by pair, and races
 * against a look at each pair of steps and each byte. */
#include "plan/plan_order.h"

#include "plan/plan_testing.h"

#define STEPS 12u
#define BYTES 256u

typedef struct random_plan {
    plan_fixture f;
    rondo__plan_buffer buffers[2];
    rondo__plan_operand operands[STEPS * 3];
    rondo__plan_step steps[STEPS];
    uint32_t waits[STEPS][3], count;
    bool before[STEPS][STEPS];
} random_plan;

static uint32_t pick(rondo_test *t, uint32_t below) { return (uint32_t)(rondo_test_random(t) >> 33) % below; }

static void make(rondo_test *t, random_plan *r) {
    rondo_plan *p = r->f.plan;
    uint32_t lanes = 1 + pick(t, 4);
    r->count = 2 + pick(t, STEPS - 1);
    r->buffers[0] = (rondo__plan_buffer){.name = "arena", .kind = RONDO__PLAN_TEMPORARY, .bytes = BYTES};
    r->buffers[1] = (rondo__plan_buffer){.name = "y", .kind = RONDO__PLAN_OUTPUT, .bytes = BYTES};
    memset(r->before, 0, sizeof r->before);
    for (uint32_t s = 0; s < r->count; s++) {
        rondo__plan_step *step = &r->steps[s];
        *step = (rondo__plan_step){.lane = pick(t, lanes), .record = s, .waits = r->waits[s]};
        for (uint32_t i = 0; i < 3; i++) {
            uint64_t offset = pick(t, 16) * 16u, bytes = pick(t, 8) ? 16u : 64u;
            if (offset + bytes > BYTES) bytes = 16;
            r->operands[s * 3 + i] =
                (rondo__plan_operand){.buffer = pick(t, 4) == 0, .offset = offset, .bytes = pick(t, 6) ? bytes : 0};
        }
        step->inputs = &r->operands[s * 3];
        step->input_count = pick(t, 3);
        step->outputs = &r->operands[s * 3 + 2];
        step->output_count = 1;
        if (pick(t, 4) == 0) {
            step->scratch_bytes = 16;
            step->scratch_offset = pick(t, 16) * 16u;
        }
        while (s > 0 && step->wait_count < 3 && pick(t, 2)) r->waits[s][step->wait_count++] = pick(t, s);
        for (uint32_t b = 0; b < s; b++) r->before[b][s] = r->steps[b].lane == step->lane;
        for (uint32_t w = 0; w < step->wait_count; w++) r->before[r->waits[s][w]][s] = true;
    }
    for (uint32_t k = 0; k < r->count; k++)
        for (uint32_t a = 0; a < r->count; a++)
            for (uint32_t b = 0; b < r->count; b++)
                if (r->before[a][k] && r->before[k][b]) r->before[a][b] = true;
    r->f.outputs[0].bytes = BYTES;
    p->buffers = r->buffers;
    p->steps = r->steps;
    p->arena_bytes = BYTES;
    p->buffer_count = 2;
    p->event_count = p->step_count = r->count;
    p->lane_count = lanes;
    p->output_count = 1;
}

/* What a step does to a byte of the arena (0) or the output (1): 0 nothing, 1 reads, 2 writes. */
static int touches(const random_plan *r, uint32_t s, uint32_t buffer, uint64_t byte) {
    const rondo__plan_step *step = &r->steps[s];
    int does = 0;
    for (uint32_t i = 0; i < step->input_count; i++) {
        const rondo__plan_operand *o = &step->inputs[i];
        if (o->buffer == buffer && byte >= o->offset && byte < o->offset + o->bytes) does = 1;
    }
    const rondo__plan_operand *o = &step->outputs[0];
    if (o->buffer == buffer && byte >= o->offset && byte < o->offset + o->bytes) does = 2;
    if (buffer == 0 && byte >= step->scratch_offset && byte < step->scratch_offset + step->scratch_bytes) does = 2;
    return does;
}

static bool races(const random_plan *r, uint32_t a, uint32_t b) {
    if (a == b || r->before[a][b] || r->before[b][a]) return false;
    for (uint32_t buffer = 0; buffer < 2; buffer++) {
        for (uint64_t byte = 0; byte < BYTES; byte++) {
            int x = touches(r, a, buffer, byte), y = touches(r, b, buffer, byte);
            if (x && y && x + y > 2) return true;
        }
    }
    return false;
}

static void random_plans(rondo_test *t) {
    static random_plan r;
    uint32_t found = 0, clean = 0;
    memset(&r, 0, sizeof r);
    pt_open(t, &r.f);
    for (uint32_t round = 0; round < 3000; round++) {
        rondo__plan_order order;
        rondo__plan_race race;
        bool any = false;
        make(t, &r);
        T_OK(t, rondo__plan_order_make(&order, r.f.plan));
        for (uint32_t a = 0; a < r.count; a++) {
            for (uint32_t b = 0; b < r.count; b++) {
                bool before = a != b && a < order.clocks[b * order.lanes + r.steps[a].lane];
                T_EQ(t, before, r.before[a][b]);
                any = any || races(&r, a, b);
            }
        }
        T_OK(t, rondo__plan_find_race(&order, r.f.plan, &race));
        rondo__plan_order_deinit(&order);
        T_EQ(t, race.found, any);
        if (race.found) T_TRUE(t, races(&r, race.first, race.second));
        found += any;
        clean += !any && r.f.plan->lane_count > 1;
    }
    T_TRUE(t, found > 500 && clean > 100); /* both happen */
}

/* Also when memory runs out on the way. */
static void a_race(rondo_test *t) {
    static random_plan r;
    rondo__plan_order order = {.allocator = *rondo_test_allocator(t)};
    rondo__plan_race race = {false, 0, 0};
    memset(&r, 0, sizeof r);
    pt_open(t, &r.f);
    make(t, &r);
    T_DEFER(t, rondo__plan_order_deinit, &order);
    T_OK(t, rondo__plan_order_make(&order, r.f.plan));
    T_OK(t, rondo__plan_find_race(&order, r.f.plan, &race));
}

RONDO_TEST_MAIN(T_PLAIN(random_plans), T(a_race))
