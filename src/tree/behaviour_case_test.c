/* SPDX-License-Identifier: Apache-2.0
 *
 * Troubles that users of graph trees reported elsewhere, each as the smallest sequence that shows it; docs/cases.md lists
 * them. */
#include <rondo/gate.h>

#include "tree/tree_testing.h"

#define INC                                                                                 \
    {                                                                                       \
        .name = "inc", .inputs = 1, .outputs = 1, .steps = { P_ADDS(1, 0, 1), P_RETURN(1) } \
    }
#define BUMP                                                                                                 \
    {                                                                                                        \
        .name = "bump", .inputs = 1, .outputs = 1, .steps = {P_ADDS_IN(0, 1), P_ADDS(1, 0, 0), P_RETURN(1)}, \
        .mutated = {0}, .mutated_count = 1                                                                   \
    }

/* A forward whose outputs are dead waits for no backward; what follows is recorded, and its old outputs say so. */
static void test_b01_dead_forward(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model g = {.name = "forward",
                  .inputs = 1,
                  .outputs = 1,
                  .steps = {P_MULS(1, 0, 2), P_RETURN(1)},
                  .mode = RONDO_TREE_FORWARD};
    th_model f = INC;
    th_tensor *first = NULL;
    tt_open(t, &w, kind);
    uint32_t forward = tt_add(&w, &g), inc = tt_add(&w, &f);
    tt_invocation(&w);
    tt_drop(&w, tt_call(&w, forward, tt_new(&w, 1)));
    for (int i = 0; i < 5; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, inc, tt_new(&w, (float)i));
        tt_ramp(&w, y, (float)i + 1, 1);
        if (first) tt_stale(&w, first, "overwritten by a subsequent run");
        tt_drop(&w, first);
        first = y;
    }
    T_EQ(t, tt_function(&w, inc).warmups, 1);
    T_EQ(t, tt_function(&w, inc).records, 1);
    T_EQ(t, tt_function(&w, inc).replays, 3);
    T_EQ(t, tt_reason(&w, inc, RONDO_TREE_REASON_PENDING_BACKWARD), 0);
    T_EQ(t, w.warnings, 0);
    tt_drop(&w, first);
}

/* g(f(x)), each an invocation: what is handed over survives. */
static void test_b03_output_handed_over(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = INC;
    tt_open(t, &w, kind);
    uint32_t first = tt_add(&w, &f), second = tt_add(&w, &g);
    for (int i = 0; i < 5; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, first, tt_new(&w, (float)i));
        tt_invocation(&w);
        th_tensor *z = tt_call(&w, second, y);
        tt_ramp(&w, z, (float)i + 2, 1);
        tt_drop(&w, z);
    }
    tt_counts(&w, 2, 2, 6, 0);
}

/* An input that is an output of the path is returned as it is, beside another output. */
static void test_b05_input_is_an_output(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    th_model g = {.name = "g", .inputs = 1, .outputs = 2, .steps = {P_ADDS(1, 0, 1), P_RETURN(0), P_RETURN(1)}};
    tt_open(t, &w, kind);
    uint32_t first = tt_add(&w, &f), second = tt_add(&w, &g);
    for (int i = 0; i < 8; i++) {
        th_tensor *a, *b, *y;
        tt_invocation(&w);
        y = tt_call(&w, first, tt_new(&w, (float)i));
        bool keep = i % 2;
        tt_pair(&w, second, keep ? tt_keep(&w, y) : y, &a, &b);
        if (keep) T_TRUE(t, a->storage == y->storage);
        if (keep) tt_drop(&w, y);
        tt_ramp(&w, a, (float)i + 1, 1);
        tt_ramp(&w, b, (float)i + 2, 1);
        tt_drop(&w, a);
        tt_drop(&w, b);
    }
    T_EQ(t, tt_info(&w).directs, 0);
    T_TRUE(t, tt_info(&w).replays >= 10);
}

/* Thousands of sizes: one warning, recordings up to the limit, memory for the largest. */
static void test_b11_many_sizes(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    uint64_t largest = 0;
    tt_prepare(t, &w, kind);
    w.options.recording_limit = 20;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int64_t size = 1; size <= 1500; size++) {
        for (int i = 0; i < 3; i++) {
            float values[256];
            tt_invocation(&w);
            th_tensor *y = tt_call(&w, id, tt_new_of(&w, 0, size, 5)),
                      *last = tt_eager(&w, (th_step)P_VIEW(1, 0, size - 1), y);
            T_OK(t, tt_read(&w, last, values));
            T_NEAR(t, values[0], 5 + size, 0);
            tt_drop(&w, y);
            tt_drop(&w, last);
        }
        T_TRUE(t, tt_info(&w).recordings <= 20);
        largest = tt_info(&w).pool_reserved > largest ? tt_info(&w).pool_reserved : largest;
    }
    T_EQ(t, w.warnings, 1);
    T_TRUE(t, strstr(w.warning, "inc") && strstr(w.warning, "sizes"));
    T_TRUE(t,
           largest <= 2 * (w.device.native ? 1u << 21 : MD_SEGMENT)); /* 1500 floats twice are less than one segment */
    T_EQ(t, tt_info(&w).evicted, 1480);
    T_EQ(t, tt_function(&w, id).recordings, 20);
}

/* A gate's word for `id`, in the function's skip. */
static void gate(tt_world *w, rondo_gate_facts *facts, th_model *model, char *text) {
    rondo_gates *gates = NULL;
    rondo_gate_verdict verdict = RONDO_GATE_VERDICT_INIT;
    T_OK(w->t, rondo_gates_create(w->instance, &gates));
    T_OK(w->t, rondo_gates_check(gates, facts, &verdict));
    rondo_gates_release(gates);
    memcpy(text, verdict.text, RONDO_GATE_TEXT_MAX);
    model->skip = verdict.gate ? text : NULL;
}

/* An input of changing size, an output of a fixed one: the option looks at the input. */
static void test_b13_dynamic_input_static_output(rondo_test *t, tt_kind kind) {
    tt_world w;
    char text[RONDO_GATE_TEXT_MAX];
    th_model f = {
        .name = "f", .inputs = 2, .outputs = 1, .steps = {P_ADD(2, 1, 0), P_RETURN(2)}}; /* rows[0 .. 3] + w */
    rondo_gate_facts facts = RONDO_GATE_FACTS_INIT;
    rondo_gate_device device = {.type = "model"};
    rondo_gate_input inputs[2] = {{.name = "rows", .flags = RONDO_GATE_INPUT_SYMBOLIC}, {.name = "w"}};
    tt_open(t, &w, kind);
    device.ops = &w.ops;
    facts.devices = &device;
    facts.device_count = 1;
    facts.inputs = inputs;
    facts.input_count = 2;
    facts.flags = RONDO_GATE_FLAG_SKIP_SYMBOLIC;
    gate(&w, &facts, &f, text);
    T_TRUE(t, f.skip && strstr(text, "rows"));
    uint32_t id = tt_add(&w, &f);
    static const int64_t sizes[] = {10, 13, 16, 19, 22};
    for (int i = 0; i < 10; i++) {
        tt_invocation(&w);
        th_tensor *y = tt_call2(&w, id, tt_new_of(&w, 0, sizes[i % 5], (float)i), tt_new(&w, 1));
        tt_ramp(&w, y, (float)i + 1, 2);
        tt_drop(&w, y);
    }
    tt_counts(&w, 0, 0, 0, 10);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_SKIPPED), 10);
}

/* An input whose address settles: it is copied no more, where addresses can be bound. */
static void test_b15_addresses_that_settle(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_prepare(t, &w, kind);
    w.ops.flags |= RONDO_GRAPH_OPS_REBIND;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    th_tensor *a = tt_new(&w, 1), *b = tt_new(&w, 2), *c = tt_new(&w, 3);
    for (int i = 0; i < 20; i++) {
        th_tensor *x = i == 0 ? a : i == 1 ? b : c;
        uint64_t bound = w.faults.calls[TT_FAULT_BIND];
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, tt_keep(&w, x));
        tt_ramp(&w, y, i < 2 ? (float)i + 2 : 4, 1);
        tt_drop(&w, y);
        if (!w.device.native) T_EQ(t, w.faults.calls[TT_FAULT_BIND] - bound, i == 2);
    }
    T_EQ(t, tt_function(&w, id).copies, 0);
    T_EQ(t, w.faults.calls[TT_FAULT_COPY_INPUTS], 0);
    tt_counts(&w, 1, 1, 18, 0);
}

/* Which mutated inputs may be in a recording: (a) an ordinary tensor, (b) a parameter, (c) an output of the path, (d) now
 * this, now that. Each call writes once. */
static void test_b17_mutated_inputs(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, a = BUMP, b = BUMP, c = BUMP, d = BUMP;
    tt_open(t, &w, kind);
    b.statics[b.static_count++] = 0;
    uint32_t inc = tt_add(&w, &f), ids[4] = {tt_add(&w, &a), tt_add(&w, &b), tt_add(&w, &c), tt_add(&w, &d)};
    for (int which = 0; which < 4; which++) {
        th_tensor *own = tt_new(&w, 0);
        for (int i = 0; i < 6; i++) {
            tt_invocation(&w);
            th_tensor *y = tt_call(&w, inc, tt_new(&w, -1));
            bool managed = which == 2 || (which == 3 && i % 2 == 0);
            th_tensor *x = managed ? y : own;
            float value = managed ? 1 : which == 3 ? (float)(i / 2 + 1) : (float)(i + 1);
            th_tensor *z = tt_call(&w, ids[which], tt_keep(&w, x));
            tt_ramp(&w, x, value, 1);
            tt_ramp(&w, z, value, 1);
            tt_drop(&w, y);
            tt_drop(&w, z);
        }
        tt_drop(&w, own);
    }
    static const uint64_t directs[] = {6, 0, 0, 3}, replays[] = {0, 4, 4, 1};
    for (int which = 0; which < 4; which++) {
        T_EQ(t, tt_function(&w, ids[which]).directs, directs[which]);
        T_EQ(t, tt_reason(&w, ids[which], RONDO_TREE_REASON_MUTATED), directs[which]);
        T_EQ(t, tt_function(&w, ids[which]).replays, replays[which]);
    }
}

/* Graphs that are silently not used: with `strict` all of them are failures, without it all are counted. */
static void test_b19_not_graphed(rondo_test *t, tt_kind kind) {
    for (int strict = 0; strict < 2; strict++) {
        tt_world w;
        char texts[2][RONDO_GATE_TEXT_MAX];
        th_model host = INC, parts = INC, bump = BUMP;
        rondo_gate_facts facts = RONDO_GATE_FACTS_INIT;
        rondo_gate_device devices[2] = {{.type = "cpu", .node = "add_7"}, {.type = "model"}};
        tt_blank(t, &w, kind);
        tt_fill(&w);
        w.options.strict = (uint32_t)strict;
        tt_start(&w);
        devices[1].ops = &w.ops;
        facts.devices = devices;
        facts.device_count = 2;
        gate(&w, &facts, &host, texts[0]);
        facts.flags = RONDO_GATE_FLAG_PARTITION; /* and no part that can be graphed */
        gate(&w, &facts, &parts, texts[1]);
        T_TRUE(t, host.skip && strstr(host.skip, "add_7"));
        T_TRUE(t, parts.skip != NULL);
        uint32_t ids[3] = {tt_add(&w, &host), tt_add(&w, &parts), tt_add(&w, &bump)};
        for (int i = 0; i < 3; i++) {
            th_tensor *y = NULL;
            rondo_status status = tt_try(&w, ids[i], TT_IN(tt_new(&w, 1)), 1, &y);
            if (strict) T_FAILS(t, status, UNSUPPORTED, i < 2 ? texts[i] : "mutated inputs");
            else T_OK(t, status);
            if (!strict) tt_ramp(&w, y, 2, 1);
            tt_drop(&w, y);
            T_EQ(t, tt_reason(&w, ids[i], i < 2 ? RONDO_TREE_REASON_SKIPPED : RONDO_TREE_REASON_MUTATED), 1);
        }
        tt_close(&w);
    }
}

/* Tensors of two devices. */
static void test_b21_two_devices(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f", .inputs = 2, .outputs = 1, .steps = {P_ADD(2, 0, 1), P_RETURN(2)}};
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 3; i++) {
        th_tensor *x = tt_new(&w, 10);
        tt_invocation(&w);
        x->storage->place = RONDO_TENSOR_OTHER;
        th_tensor *y = tt_call2(&w, id, tt_new(&w, (float)i), tt_keep(&w, x));
        x->storage->place = RONDO_TENSOR_DEVICE;
        tt_ramp(&w, y, (float)i + 10, 2);
        tt_drop(&w, x);
        tt_drop(&w, y);
    }
    tt_counts(&w, 0, 0, 0, 3);
    T_EQ(t, tt_reason(&w, id, RONDO_TREE_REASON_OTHER_DEVICE), 3);
}

/* A model that goes gives its recordings back; a reset gives everything back; the next model begins anew. */
static void test_b23_model_goes(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = INC;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 3; i++) {
        tt_invocation(&w);
        tt_drop(&w, tt_call(&w, id, tt_new_of(&w, 0, 20000, 1)));
    }
    T_TRUE(t, tt_info(&w).pool_reserved >= 80000);
    if (!w.device.native) T_TRUE(t, w.device.graphs != NULL);
    T_OK(t, rondo_tree_remove_function(w.tree, id));
    rondo_tree_mark_step(w.tree);
    id = tt_add(&w, &g);
    th_tensor *y = tt_call(&w, id, tt_new(&w, 1)); /* the step of the old model is over */
    tt_ramp(&w, y, 2, 1);
    T_EQ(t, tt_info(&w).recordings, 0);
    T_EQ(t, tt_info(&w).functions, 1);
    T_TRUE(t, !w.device.graphs);
    T_EQ(t, w.device.states, 0);
    tt_drop(&w, y);
    T_OK(t, rondo_tree_reset(w.tree));
    T_EQ(t, md_pools_used(&w.device), 0);
    T_EQ(t, tt_info(&w).pool_reserved, 0);
    for (int i = 0; i < 4; i++) {
        tt_invocation(&w);
        y = tt_call(&w, id, tt_new(&w, (float)i));
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
    }
    T_EQ(t, tt_info(&w).recordings, 1);
}

/* The pool gets the very memory that a tensor, or an input, had, and an output lies there: it is no alias of that. */
static void test_b25_address_of_an_input_comes_again(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {
        .name = "f", .inputs = 1, .outputs = 1, .steps = {P_DROP(0), P_CONSTANT(1, 0), P_ADDS(2, 1, 1), P_RETURN(2)}};
    th_tensor *before = NULL;
    uint64_t place = 0;
    tt_open(t, &w, kind);
    f.constants[f.constant_count++] = tt_give(tt_new_of(&w, 0, 20000, 7));
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 5; i++) {
        th_tensor *x = tt_new_of(&w, 0, 20000, 3), *gone = i ? NULL : tt_new_of(&w, 0, 20000, 3);
        if (gone) place = th_data(gone);
        tt_drop(&w, gone);
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, id, x); /* the last reference: its memory may be the output's, too */
        if (!i && !w.device.native) T_EQ(t, th_data(y), place);
        T_EQ(t, tt_info(&w).live, 1);
        float values[256];
        th_tensor *end = tt_eager(&w, (th_step)P_VIEW(1, 0, 19999), y);
        T_OK(t, tt_read(&w, end, values));
        T_NEAR(t, values[0], 20007, 0);
        tt_drop(&w, end);
        if (before) tt_stale(&w, before, "overwritten");
        tt_drop(&w, before);
        before = y;
    }
    tt_drop(&w, before);
    tt_counts(&w, 1, 1, 3, 0);
    T_EQ(t, tt_function(&w, id).stopped, RONDO_TREE_REASON_NONE);
}

/* A function that only makes views is no graph: nothing is launched, and the views are of what it was given. */
static void test_b27_views_alone(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f", .inputs = 1, .outputs = 1, .steps = {P_VIEW(1, 0, 1), P_RETURN(1)}};
    th_model g = {.name = "g",
                  .inputs = 1,
                  .outputs = 1,
                  .steps = {P_VIEW(1, 0, 2), P_RETURN(1)},
                  .statics = {0},
                  .static_count = 1};
    tt_open(t, &w, kind);
    uint32_t view = tt_add(&w, &f), of_parameter = tt_add(&w, &g);
    th_tensor *parameter = tt_new(&w, 10);
    for (int i = 0; i < 6; i++) {
        th_tensor *x = tt_new(&w, (float)i);
        uint64_t launches = w.device.launches;
        tt_invocation(&w);
        th_tensor *y = tt_call(&w, view, tt_keep(&w, x)), *z = tt_call(&w, of_parameter, tt_keep(&w, parameter));
        if (i >= 2) T_EQ(t, w.device.launches, launches);
        T_TRUE(t, y->storage == x->storage && z->storage == parameter->storage);
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_ramp(&w, z, 12, 1);
        T_EQ(t, tt_info(&w).live, 0);
        tt_drop(&w, x);
        tt_drop(&w, y);
        tt_drop(&w, z);
    }
    T_TRUE(t, !w.device.graphs);
    T_EQ(t, w.warnings, 0);
    T_EQ(t, tt_info(&w).directs, 0);
}

#define TESTS(EACH, MODEL)                         \
    EACH(test_b01_dead_forward)                    \
    EACH(test_b03_output_handed_over)              \
    EACH(test_b05_input_is_an_output)              \
    EACH(test_b11_many_sizes)                      \
    EACH(test_b13_dynamic_input_static_output)     \
    EACH(test_b15_addresses_that_settle)           \
    EACH(test_b17_mutated_inputs)                  \
    EACH(test_b19_not_graphed)                     \
    EACH(test_b21_two_devices)                     \
    EACH(test_b23_model_goes)                      \
    EACH(test_b25_address_of_an_input_comes_again) \
    EACH(test_b27_views_alone)

TT_MAIN_EACH(TESTS)
