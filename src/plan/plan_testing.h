/* SPDX-License-Identifier: Apache-2.0
 *
 * A small legal plan for the tests of this room: x -> Relu -> t0 -> Neg (in place) -> t1, with scratch -> Add(t1, c) ->
 * y. */
#ifndef RONDO_SRC_PLAN_PLAN_TESTING_H
#define RONDO_SRC_PLAN_PLAN_TESTING_H

#include "harness/harness.h"
#include "plan/plan.h"

enum { PT_X = 0, PT_Y = 1, PT_T0 = 2, PT_T1 = 3, PT_C = 4 };

typedef struct plan_fixture {
    rondo_plan *plan;
    int64_t dims[1];
    float constant[4];
    int64_t guard;
    rondo__plan_buffer buffers[5];
    rondo__plan_operand operands[8];
    rondo__plan_step steps[3];
    rondo__plan_guard guards[1];
    rondo__plan_port inputs[2], outputs[1];
    rondo_attribute attributes[8];
    int64_t ints[2];
    float floats[2];
    rondo_string strings[2];
    rondo_tensor_view view;
    const char *remarks[1];
} plan_fixture;

static inline void pt_close(plan_fixture *f) {
    rondo_plan_release(f->plan);
    f->plan = NULL;
}

static inline rondo__plan_operand pt_operand(plan_fixture *f, uint32_t buffer) {
    return (rondo__plan_operand){buffer, RONDO_DTYPE_F32, 1, RONDO_FORMAT_ND, f->dims, 0, 16, NULL};
}

static inline void pt_step(plan_fixture *f, uint32_t index, const char *name, uint32_t first, uint32_t inputs) {
    f->steps[index] = (rondo__plan_step){.operator_name = name,
                                         .node_name = name,
                                         .catalogue = "ref",
                                         .inputs = &f->operands[first],
                                         .outputs = &f->operands[first + inputs],
                                         .input_count = inputs,
                                         .output_count = 1,
                                         .record = RONDO__PLAN_NONE};
}

static inline void pt_attributes(plan_fixture *f) {
    static const char *const names[] = {"i", "f", "s", "is", "fs", "ss", "t", "nan"};
    f->ints[0] = -7;
    f->ints[1] = 8;
    f->floats[1] = 1.0f / 0.0f;
    f->strings[0] = (rondo_string){"a\"b", 3};
    f->strings[1] = (rondo_string){"\xff", 1};
    f->view = (rondo_tensor_view){.data = f->constant, .rank = 1, .dtype = RONDO_DTYPE_F32, .shape = f->dims};
    for (uint32_t i = 0; i < 8; i++) {
        f->attributes[i] = (rondo_attribute){.name = names[i], .kind = (rondo_attribute_kind)(i + 1), .count = 1};
    }
    f->attributes[0].value.i = -5;
    f->attributes[1].value.f = 0.5f;
    f->attributes[2].value.s = f->strings[0];
    f->attributes[3].value.ints = f->ints;
    f->attributes[3].count = 2;
    f->attributes[4].value.floats = f->floats;
    f->attributes[4].count = 2;
    f->attributes[5].value.strings = f->strings;
    f->attributes[5].count = 2;
    f->attributes[6].value.tensor = &f->view;
    f->attributes[7].kind = RONDO_ATTRIBUTE_FLOAT;
    f->attributes[7].value.f = __builtin_nanf("");
}

static inline void pt_open(rondo_test *t, plan_fixture *f) {
    memset(f, 0, sizeof *f);
    T_DEFER(t, pt_close, f);
    T_OK(t, rondo__plan_create(rondo_test_allocator(t), "small \"plan\"", &f->plan));
    f->dims[0] = 4;
    f->guard = 3;
    f->buffers[PT_X] = (rondo__plan_buffer){.name = "x", .kind = RONDO__PLAN_INPUT, .bytes = 16};
    f->buffers[PT_Y] = (rondo__plan_buffer){.name = "y", .kind = RONDO__PLAN_OUTPUT, .bytes = 16};
    f->buffers[PT_T0] =
        (rondo__plan_buffer){.name = "t0", .kind = RONDO__PLAN_TEMPORARY, .bytes = 16, .first_step = 0, .last_step = 1};
    f->buffers[PT_T1] =
        (rondo__plan_buffer){.name = "t1", .kind = RONDO__PLAN_TEMPORARY, .bytes = 16, .first_step = 1, .last_step = 2};
    f->buffers[PT_C] =
        (rondo__plan_buffer){.name = "c", .kind = RONDO__PLAN_CONSTANT, .bytes = 16, .data = f->constant};
    const uint32_t used[] = {PT_X, PT_T0, PT_T0, PT_T1, PT_T1, PT_C, PT_Y};
    for (uint32_t i = 0; i < 7; i++) f->operands[i] = pt_operand(f, used[i]);
    f->operands[5].constant = f->constant;
    pt_step(f, 0, "Relu", 0, 1);
    pt_step(f, 1, "Neg", 2, 1);
    pt_step(f, 2, "Add", 4, 2);
    f->steps[1].scratch_bytes = 64;
    f->steps[1].scratch_offset = 64;
    pt_attributes(f);
    f->steps[2].attributes = f->attributes;
    f->steps[2].attribute_count = 8;
    f->inputs[0] = (rondo__plan_port){"x", RONDO_DTYPE_F32, 1, f->dims, 16, PT_X};
    f->inputs[1] = (rondo__plan_port){"n", RONDO_DTYPE_I64, 0, NULL, 8, RONDO__PLAN_NONE};
    f->outputs[0] = (rondo__plan_port){"y", RONDO_DTYPE_F32, 1, f->dims, 16, PT_Y};
    f->guards[0] = (rondo__plan_guard){1, 1, &f->guard, 8};
    f->remarks[0] = "a remark";
    rondo_plan *p = f->plan;
    p->target = "ref";
    p->buffers = f->buffers;
    p->steps = f->steps;
    p->guards = f->guards;
    p->inputs = f->inputs;
    p->outputs = f->outputs;
    p->remarks = f->remarks;
    p->buffer_count = 5;
    p->step_count = 3;
    p->guard_count = 1;
    p->input_count = 2;
    p->output_count = 1;
    p->remark_count = 1;
    p->segment_count = p->lane_count = 1;
    p->nodes_in = 9;
    p->arena_bytes = 128;
    p->arena_lower_bound = 80;
    p->constant_bytes = 16;
}

#endif
