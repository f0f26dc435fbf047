/* SPDX-License-Identifier: Apache-2.0
 *
 * A legal plan with one thing wrong at a time: each must be found, and named. */
#include "plan/plan_testing.h"

static void legal(rondo_test *t) {
    plan_fixture f;
    pt_open(t, &f);
    T_OK(t, rondo__plan_verify(f.plan, false));
}

/* One change, and the words by which the failure must name it. */
typedef struct wrong {
    void (*change)(plan_fixture *f);
    const char *says;
} wrong;

static void no_buffers(plan_fixture *f) { f->plan->buffers = NULL; }
static void no_lanes(plan_fixture *f) { f->plan->lane_count = 0; }
static void many_lanes(plan_fixture *f) { f->plan->lane_count = RONDO__PLAN_LANES_MAX + 1; }
static void bound_too_high(plan_fixture *f) { f->plan->arena_lower_bound = 1000; }
static void null_remark(plan_fixture *f) { f->remarks[0] = NULL; }
static void nameless(plan_fixture *f) { f->buffers[PT_T0].name = NULL; }
static void unknown_kind(plan_fixture *f) { f->buffers[PT_C].kind = 9; }
static void foreign_slot(plan_fixture *f) { f->buffers[PT_X].slot = 7; }
static void unaligned(plan_fixture *f) { f->buffers[PT_T0].offset = 8; }
static void outside(plan_fixture *f) { f->buffers[PT_T0].offset = UINT64_MAX - 63; }
static void late_life(plan_fixture *f) { f->buffers[PT_T1].last_step = 3; }
static void early_death(plan_fixture *f) { f->buffers[PT_T1].last_step = 1; }
static void late_birth(plan_fixture *f) { f->buffers[PT_T0].first_step = 1; }
static void port_shape(plan_fixture *f) { f->inputs[1].bytes = 16; }
static void port_type(plan_fixture *f) { f->inputs[1].dtype = RONDO_DTYPE_STRING; }
static void port_rank(plan_fixture *f) { f->outputs[0].rank = 17; }
static void port_buffer(plan_fixture *f) { f->outputs[0].buffer = PT_T1; }
static void port_bytes(plan_fixture *f) { f->buffers[PT_Y].bytes = 32; }
static void no_output(plan_fixture *f) {
    f->outputs[0].buffer = RONDO__PLAN_NONE;
    f->buffers[PT_Y].kind = RONDO__PLAN_TEMPORARY;
    f->buffers[PT_Y].first_step = f->buffers[PT_Y].last_step = 2;
}
static void guard_input(plan_fixture *f) { f->guards[0].input = 2; }
static void guard_size(plan_fixture *f) { f->guards[0].bytes = 4; }
static void operand_range(plan_fixture *f) { f->operands[0].offset = 4; }
static void operand_overflow(plan_fixture *f) { f->operands[0].offset = UINT64_MAX - 3; }
static void operand_aligned(plan_fixture *f) { f->buffers[PT_C].bytes = 32, f->operands[5].offset = 2; }
static void operand_buffer(plan_fixture *f) { f->operands[3].buffer = 5; }
static void operand_absent(plan_fixture *f) { f->operands[5].buffer = RONDO__PLAN_NONE; }
static void operand_bytes(plan_fixture *f) { f->operands[0].bytes = 8; }
static void write_input(plan_fixture *f) { f->operands[1].buffer = PT_X; }
static void write_constant(plan_fixture *f) { f->operands[6].buffer = PT_C; }
static void no_data(plan_fixture *f) { f->buffers[PT_C].data = NULL; }
static void absorbs_unknown(plan_fixture *f) { f->steps[2].absorbed_inputs = 1; }
static void no_operator(plan_fixture *f) { f->steps[0].operator_name = NULL; }
static void no_operands(plan_fixture *f) { f->steps[0].inputs = NULL; }
static void too_many(plan_fixture *f) { f->steps[0].input_count = 63; }
static void too_many_outputs(plan_fixture *f) { f->steps[0].output_count = UINT32_MAX; }
static void scratch_outside(plan_fixture *f) { f->steps[1].scratch_bytes = 65; }
/* In the last step of what has these bytes, which no step turns into scratch. */
static void scratch_overlaps_the_end(plan_fixture *f) {
    f->buffers[PT_T1].offset = 64;
    f->steps[1].scratch_offset = 0;
}
static void scratch_overlap(plan_fixture *f) { f->steps[1].scratch_offset = 0; }
static void many_segments(plan_fixture *f) { f->plan->segment_count = UINT32_MAX; }
static void segment_back(plan_fixture *f) { f->plan->segment_count = 2, f->steps[0].segment = 1; }
static void lane_unknown(plan_fixture *f) { f->steps[1].lane = 1; }
static void same_time_same_place(plan_fixture *f) { f->buffers[PT_T0].last_step = 2; }
static void read_before(plan_fixture *f) { f->operands[0].buffer = PT_Y; }
static void output_never(plan_fixture *f) { f->operands[6].buffer = PT_T1; }
static void event_unknown(plan_fixture *f) { f->steps[0].record = 0; }
static void waits_for_nothing(plan_fixture *f) {
    static const uint32_t event = 0;
    f->plan->event_count = 1;
    f->steps[0].waits = &event;
    f->steps[0].wait_count = 1;
}
/* The output meets half of the input. */
static void half_in_place(plan_fixture *f) {
    f->buffers[PT_T0].bytes = 32;
    f->operands[1].offset = 16;
    f->operands[2].offset = 16;
    f->operands[3].buffer = PT_T0;
    f->operands[3].offset = 8;
    f->operands[4].buffer = PT_T0;
    f->buffers[PT_T0].last_step = 2;
}

static const wrong wrongs[] = {
    {no_buffers, "buffers are declared"},
    {no_lanes, "0 lanes"},
    {many_lanes, "17 lanes"},
    {bound_too_high, "lower bound"},
    {null_remark, "remark 0"},
    {nameless, "buffer 2 has no name"},
    {unknown_kind, "'c' is of unknown kind 9"},
    {foreign_slot, "'x' belongs to no input"},
    {unaligned, "'t0' of 16 bytes"},
    {outside, "'t0' of 16 bytes"},
    {late_life, "'t1' has no legal life"},
    {early_death, "'t1' outside its life"},
    {late_birth, "'t0' outside its life"},
    {port_shape, "'n' says 16 bytes"},
    {port_type, "'n' has a data type without a size"},
    {port_rank, "'y' has an illegal shape"},
    {port_buffer, "'y' belongs to no output"},
    {port_bytes, "output 'y' and buffer 'y' do not fit"},
    {no_output, "output 'y' has no buffer"},
    {guard_input, "guard 0"},
    {guard_size, "guard of input 'n'"},
    {operand_range, "leaves buffer 'x'"},
    {operand_overflow, "leaves buffer 'x'"},
    {operand_aligned, "leaves buffer 'c' or is unaligned"},
    {operand_buffer, "is in no buffer"},
    {operand_absent, "has a type and no buffer"},
    {operand_bytes, "says 8 bytes"},
    {write_input, "writes 'x', which is read only"},
    {write_constant, "writes 'c', which is read only"},
    {no_data, "reads constant 'c', which has no data"},
    {absorbs_unknown, "absorbs input 0"},
    {no_operator, "no operator"},
    {no_operands, "lacks its operands"},
    {too_many, "operands; a call holds"},
    {too_many_outputs, "outputs; a call holds"},
    {scratch_outside, "scratch outside the arena"},
    {scratch_overlaps_the_end, "'t0' and 'Neg' live at the same time at the same place"},
    {scratch_overlap, "live at the same time at the same place"},
    {segment_back, "segment"},
    {many_segments, "4294967295 segments"},
    {lane_unknown, "lane 1"},
    {same_time_same_place, "'t0' and 't1' live at the same time at the same place"},
    {read_before, "reads 'y' before all of it is written"},
    {output_never, "output 'y' is not wholly written"},
    {event_unknown, "records no event of its own"},
    {waits_for_nothing, "waits for an event"},
    {half_in_place, "overlap in 't0'"},
};

static void one_thing_wrong(rondo_test *t) {
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        plan_fixture f;
        pt_open(t, &f);
        wrongs[i].change(&f);
        T_FAILS(t, rondo__plan_verify(f.plan, false), INTERNAL, wrongs[i].says);
        T_FAILS(t, rondo__plan_verify(f.plan, true), CORRUPT, wrongs[i].says);
        pt_close(&f);
    }
}

/* Parts of a buffer written by several steps count together. */
static void written_in_parts(rondo_test *t) {
    plan_fixture f;
    int64_t two = 2;
    pt_open(t, &f);
    f.buffers[PT_T0].last_step = 2;
    f.buffers[PT_T1].offset = 64;
    f.steps[1].scratch_bytes = 0;
    for (uint32_t i = 0; i < 4; i++) {
        f.operands[i].dims = &two;
        f.operands[i].bytes = 8;
    }
    f.operands[2].buffer = PT_X;
    f.operands[3].buffer = PT_T0;
    f.operands[3].offset = 8;
    f.operands[4].buffer = PT_T0;
    T_OK(t, rondo__plan_verify(f.plan, false));
    f.operands[3].offset = 4;
    T_FAILS(t, rondo__plan_verify(f.plan, false), INTERNAL, "reads 't0' before all of it is written");
}

/* Neg in a lane of its own, which Relu's event and its own bind to the other. t1 lies where t0 lay, in place. */
static void in_two_lanes(rondo_test *t, plan_fixture *f) {
    static const uint32_t events[] = {0, 1};
    pt_open(t, f);
    f->plan->lane_count = f->plan->event_count = 2;
    f->steps[0].record = 0;
    f->steps[1].lane = 1;
    f->steps[1].waits = &events[0];
    f->steps[1].wait_count = 1;
    f->steps[1].record = 1;
    f->steps[2].waits = &events[1];
    f->steps[2].wait_count = 1;
    T_OK(t, rondo__plan_verify(f->plan, true));
}

/* Each change leaves a plan that is right one step after the other. */
static void lanes_race(rondo_test *t) {
    plan_fixture f;
    in_two_lanes(t, &f);
    f.steps[1].wait_count = 0; /* reads what Relu writes */
    T_FAILS(t, rondo__plan_verify(f.plan, true), CORRUPT, "step 'Relu' of lane 0 and step 'Neg' of lane 1");
    pt_close(&f);
    in_two_lanes(t, &f);
    f.steps[2].wait_count = 0; /* reads what Neg writes */
    T_FAILS(t, rondo__plan_verify(f.plan, false), INTERNAL, "step 'Neg' of lane 1 and step 'Add' of lane 0");
    pt_close(&f);
    in_two_lanes(t, &f);
    f.steps[2].waits = f.steps[1].waits; /* waits for somebody, but not for Neg */
    T_FAILS(t, rondo__plan_verify(f.plan, false), INTERNAL, "step 'Neg' of lane 1 and step 'Add' of lane 0");
    pt_close(&f);
    in_two_lanes(t, &f); /* Add reads x alone now, and writes y while Neg's scratch and t1 lie elsewhere: no race */
    f.operands[4].buffer = PT_X;
    f.buffers[PT_T1].last_step = 1;
    f.steps[2].wait_count = 0;
    T_OK(t, rondo__plan_verify(f.plan, true));
    f.steps[2].scratch_bytes = 64; /* as long as it needs no scratch where t0 was read and t1 is written, */
    f.steps[2].scratch_offset = 0;
    T_FAILS(t, rondo__plan_verify(f.plan, true), CORRUPT, "step 'Neg' of lane 1 and step 'Add' of lane 0");
    f.steps[2].scratch_offset = 64; /* nor where Neg has its own */
    T_FAILS(t, rondo__plan_verify(f.plan, true), CORRUPT, "step 'Neg' of lane 1 and step 'Add' of lane 0");
    f.plan->arena_bytes = 192;
    f.steps[2].scratch_offset = 128;
    T_OK(t, rondo__plan_verify(f.plan, true));
}

static void empty_is_legal(rondo_test *t) {
    rondo_plan *plan = NULL;
    T_OK(t, rondo__plan_create(rondo_test_allocator(t), NULL, &plan));
    T_DEFER(t, rondo_plan_release, plan);
    plan->lane_count = 1;
    T_OK(t, rondo__plan_verify(plan, true));
}

RONDO_TEST_MAIN(T(legal), T(one_thing_wrong), T(written_in_parts), T(lanes_race), T(empty_is_legal))
