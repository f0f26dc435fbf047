/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs over several targets: who runs what and why, segments and copies between them, what nobody can run. Random graphs
 * on random targets are those of random_test. */
#include <rondo/ir.h>
#include <stdio.h>

#include "compile/compile_testing.h"

static rondo_ir_value named(compile_fixture *f, const char *type, const char *name, rondo_ir_value a,
                            rondo_ir_value b) {
    rondo_ir_value made = RONDO_IR_NONE;
    ct_nodes(f, name, type, (rondo_ir_value[]){a, b}, b == RONDO_IR_NONE ? 1 : 2, NULL, 0, &made, 1);
    return made;
}

static rondo_status try_targets(compile_fixture *f, const char *first, const char *second) {
    rondo__targets targets = {
        .at = {{"ref:first", first, f->ref}, {"ref:second", second, f->ref}}, .count = 2, .text = "two"};
    ct_drop(f);
    return rondo__compile_for(rondo_test_allocator(f->t), &targets, &f->ref, f->graph, NULL, &f->compiled, &f->plan);
}

static uint32_t transfers(const compile_fixture *f) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->plan->step_count; i++) count += rondo__plan_is_transfer(&f->plan->steps[i]);
    return count;
}

static void check(compile_fixture *f, void *const *inputs) {
    void *got[8] = {0}, *want[8] = {0};
    ct_run(f, &f->ref, inputs, got);
    ct_reference(f, inputs, want);
    ct_agree(f, got, want, true);
}

/* Tanh and Add on one, Exp and Sin on the other: x -> a -> {b, c} -> d, of which b and c are the other's. Both read a: one
 * copy there, two back. */
static void disjoint(rondo_test *t) {
    compile_fixture f;
    float x[16];
    ct_open(t, &f);
    for (int i = 0; i < 16; i++) x[i] = ct_float(t);
    rondo_ir_value a = named(&f, "Tanh", "a", ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(16)), RONDO_IR_NONE);
    rondo_ir_value b = named(&f, "Exp", "b", a, RONDO_IR_NONE), c = named(&f, "Sin", "c", a, RONDO_IR_NONE);
    ct_output(&f, named(&f, "Add", "d", b, c), "y");
    T_OK(t, try_targets(&f, "Tanh,Add", "Exp,Sin"));
    T_EQ(t, f.plan->target_count, 2);
    T_EQ(t, f.plan->segment_count, 3);
    T_EQ(t, f.plan->segment_targets[0], 0);
    T_EQ(t, f.plan->segment_targets[1], 1);
    T_EQ(t, f.plan->segment_targets[2], 0);
    T_EQ(t, transfers(&f), 3);
    T_EQ(t, f.plan->step_count, 7);
    T_TRUE(t,
           ct_remarked(&f, "node 'b' is on target 1 'ref:second': no implementation of Exp for target 0 'ref:first', "
                           "because: node 'b', operator 'Exp': target 'ref:first' is not meant for it"));
    T_TRUE(t, ct_remarked(&f, "of 64 bytes goes from target 0 to target 1 before segment 1"));
    T_TRUE(t, ct_remarked(&f, "targets: 3 segments on 2 targets, 3 copies between"));
    check(&f, (void *[]){x});
    /* All on the first: no segment, no copy. All on the second: two copies. */
    T_OK(t, try_targets(&f, NULL, "Exp"));
    T_EQ(t, f.plan->segment_count, 1);
    T_EQ(t, transfers(&f), 0);
    check(&f, (void *[]){x});
    T_OK(t, try_targets(&f, "Conv", NULL));
    T_EQ(t, f.plan->segment_count, 2);
    T_EQ(t, f.plan->segment_targets[1], 0);
    T_EQ(t, transfers(&f), 2);
    T_EQ(t, f.plan->targets[0].arena_bytes, 0);
    check(&f, (void *[]){x});
    /* The graph that the caller sees has no copies. */
    T_EQ(t, ct_count(&f, NULL), 4);
}

/* Two rows whose operators alternate, in step: where one is, the other's next can wait. As few segments as one row has. */
static void few_segments(rondo_test *t) {
    compile_fixture f;
    float x[4] = {1, 2, 3, 4};
    ct_open(t, &f);
    rondo_ir_value in = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4)), rows[2] = {in, in};
    char name[16];
    for (int i = 0; i < 6; i++) {
        for (int r = 0; r < 2; r++) {
            (void)snprintf(name, sizeof name, "n%d_%d", r, i);
            rows[r] = named(&f, (i + r) % 2 ? "Sin" : "Tanh", name, rows[r], RONDO_IR_NONE);
        }
    }
    ct_output(&f, rows[0], "y");
    ct_output(&f, rows[1], "z");
    T_OK(t, try_targets(&f, "Tanh", "Sin"));
    T_EQ(t, f.plan->segment_count, 7); /* Tanh Sin ... Tanh Sin of the first row, and the second ends one later */
    check(&f, (void *[]){x});
}

/* What begins on the second target spares a segment: the first does all of its own at once then. */
static void who_begins(rondo_test *t) {
    compile_fixture f;
    float x[4] = {1, 2, 3, 4};
    ct_open(t, &f);
    rondo_ir_value v = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4));
    ct_output(&f, named(&f, "Tanh", "d", v, RONDO_IR_NONE), "d");
    ct_output(&f, named(&f, "Tanh", "c", named(&f, "Exp", "b", v, RONDO_IR_NONE), RONDO_IR_NONE), "c");
    T_OK(t, try_targets(&f, "Tanh", "Exp"));
    T_EQ(t, f.plan->segment_count, 2);
    T_EQ(t, f.plan->segment_targets[0], 1);
    T_EQ(t, transfers(&f), 2);
    check(&f, (void *[]){x});
}

/* Views, parts and constants: pieces are copied, constants are everybody's, parts are made where the whole is. */
static void views_and_parts(rondo_test *t) {
    compile_fixture f;
    float x[16];
    ct_open(t, &f);
    for (int i = 0; i < 16; i++) x[i] = ct_float(t);
    rondo_attribute axis = ct_int("axis", 0);
    rondo_ir_value v = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4, 4));
    rondo_ir_value a = named(&f, "Tanh", "a", v, RONDO_IR_NONE);
    rondo_ir_value row = CT_NODE(&f, "Slice", a, CT_I64(&f, 1), CT_I64(&f, 2), CT_I64(&f, 0));
    rondo_ir_value b = named(&f, "Exp", "b", row, RONDO_IR_NONE);
    rondo_ir_value c = named(&f, "Mul", "c", b, ct_random(&f, 1, (const int64_t[]){4}));
    rondo_ir_value whole = CT_NODE_WITH(&f, &axis, "Concat", a, c, named(&f, "Neg", "n", v, RONDO_IR_NONE));
    ct_output(&f, whole, "y");
    ct_output(&f, row, "row");
    ct_output(&f, v, "same");
    ct_output(&f, c, "c");
    T_OK(t, try_targets(&f, "Tanh,Concat,Mul", "Exp,Neg"));
    for (uint32_t i = 0; i < f.plan->step_count; i++) {
        const rondo__plan_step *step = &f.plan->steps[i];
        if (rondo__plan_is_transfer(step)) T_TRUE(t, step->inputs[0].bytes == 16 || step->inputs[0].bytes == 64);
    }
    check(&f, (void *[]){x});
    T_OK(t, try_targets(&f, "Exp,Neg", "Tanh,Concat,Mul"));
    check(&f, (void *[]){x});
    T_OK(t, try_targets(&f, "Exp", NULL)); /* copies to outputs run on the first, whatever it is meant for */
    check(&f, (void *[]){x});
}

static void control_edges(rondo_test *t) {
    compile_fixture f;
    float x[4] = {1, 2, 3, 4};
    ct_open(t, &f);
    rondo_ir_value v = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4));
    rondo_ir_value a = named(&f, "Tanh", "a", v, RONDO_IR_NONE), b = named(&f, "Sin", "b", v, RONDO_IR_NONE),
                   c = named(&f, "Tanh", "c", v, RONDO_IR_NONE);
    T_OK(t, rondo_ir_graph_add_control(f.graph, b, a));
    T_OK(t, rondo_ir_graph_add_control(f.graph, c, b));
    ct_output(&f, a, "oa");
    ct_output(&f, b, "ob");
    ct_output(&f, c, "oc");
    T_OK(t, try_targets(&f, "Tanh", "Sin"));
    T_EQ(t, f.plan->segment_count, 3);
    const char *order[3] = {0};
    for (uint32_t i = 0, n = 0; i < f.plan->step_count; i++) {
        if (!rondo__plan_is_transfer(&f.plan->steps[i]) && n < 3) order[n++] = f.plan->steps[i].node_name;
    }
    T_STR(t, order[0], "a");
    T_STR(t, order[1], "b");
    T_STR(t, order[2], "c");
    check(&f, (void *[]){x});
}

static void nobody_has_it(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value v = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4));
    ct_output(&f, named(&f, "Exp", "b", named(&f, "Tanh", "a", v, RONDO_IR_NONE), RONDO_IR_NONE), "y");
    rondo_status status = try_targets(&f, "Tanh", "Sin,Cos");
    T_EQ(t, rondo_status_code(status), RONDO_CODE_UNSUPPORTED);
    T_TRUE(t, strstr(rondo_status_message(status), "node 'b', operator 'Exp': none of the 2 targets has it") != NULL);
    T_TRUE(t, rondo_status_note_count(status) >= 2);
    T_TRUE(t, strstr(rondo_status_note(status, 0), "target 0 'ref:first'") != NULL);
    T_TRUE(t, strstr(rondo_status_note(status, 1), "target 1 'ref:second'") != NULL);
    rondo_status_release(status);
}

RONDO_TEST_MAIN(T_PLAIN(disjoint), T(few_segments), T(who_begins), T(views_and_parts), T(control_edges),
                T_PLAIN(nobody_has_it))
