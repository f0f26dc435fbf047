/* SPDX-License-Identifier: Apache-2.0
 *
 * What random programs found on devices of Rondo's, as programs. */
#include "tree/native/program_kit_testing.h"

#define BOTH(name)                                              \
    static void name##_cpu(rondo_test *t) { name(t, &rn_cpu); } \
    static void name##_sim(rondo_test *t) { name(t, &rn_sim); }
#define ENTRIES(name) T_PLAIN(name##_cpu), T_PLAIN(name##_sim)

static rp_world the_world;

/* Runs it; nothing may be wrong. */
static const rp_totals *run(rondo_test *t, const rp_kit *kit, rp_program *program) {
    for (uint32_t i = 0; i < program->function_count; i++)
        (void)snprintf(program->functions[i].name, sizeof program->functions[i].name, "f%u", i);
    rp_run(&the_world, kit, program, NULL, NULL);
    if (the_world.failure[0]) rondo_test_fail(t, __FILE__, __LINE__, "action %u: %s", the_world.at, the_world.failure);
    return the_world.tally;
}

static void add(rp_program *p, rp_action a) { p->actions[p->action_count++] = a; }

#define OPTIONS \
    { .record_after = 2, .rerecord_limit = 128, .recording_limit = 4096, .loop_limit = 8, .check_pool = 1 }
/* y = x + 1, of a parameter */
#define PARAMETER                                   \
    {                                               \
        .model = {                                  \
            .inputs = 1,                            \
            .outputs = 1,                           \
            .statics = {0},                         \
            .static_count = 1,                      \
            .steps = {P_ADDS(1, 0, 1), P_RETURN(1)} \
        }                                           \
    }

/* A parameter that is another at the same address is as good as the one that was recorded. */
static void same_address(rondo_test *t, const rp_kit *kit, bool flushes) {
    static rp_program p;
    p = (rp_program){.options = OPTIONS, .function_count = 2, .functions = {PARAMETER, PARAMETER}};
    p.options.seal_after = flushes ? 1 : 0;
    p.options.flushes = flushes;
    for (int16_t i = 0; i < 12; i++) {
        add(&p, (rp_action){.what = RP_INVOKE});
        add(&p, (rp_action){.what = RP_NEW, .slot = 3, .size = 40, .value = i});
        add(&p, (rp_action){.what = RP_CALL, .f = 0, .in = {3}, .out = {4}});
        add(&p, (rp_action){.what = RP_CALL, .f = 1, .in = {4 | RP_GIVE}, .out = {5}});
        add(&p, (rp_action){.what = RP_CHECK});
        for (uint8_t slot = 3; slot < 6; slot++) add(&p, (rp_action){.what = RP_DROP, .slot = slot});
    }
    const rp_totals *totals = run(t, kit, &p);
    T_EQ(t, totals->counts[2], 2);  /* recordings */
    T_EQ(t, totals->counts[3], 20); /* replays */
    T_EQ(t, totals->counts[4] > 0, flushes);
}

static void test_parameter_at_the_same_address(rondo_test *t, const rp_kit *kit) { same_address(t, kit, false); }
static void test_parameter_of_a_sealed_sequence(rondo_test *t, const rp_kit *kit) { same_address(t, kit, true); }

/* Some inputs are copied and others bound: the slots of those have no gaps between them. */
static void test_inputs_that_are_copied_and_bound(rondo_test *t, const rp_kit *kit) {
    static rp_program p;
    p = (rp_program){
        .options = OPTIONS,
        .function_count = 1,
        .functions = {{.model = {.inputs = 3, .outputs = 1, .steps = {P_ADD(3, 0, 1), P_ADD(4, 3, 2), P_RETURN(4)}}}}};
    for (int16_t i = 0; i < 6; i++) {
        add(&p, (rp_action){.what = RP_INVOKE});
        add(&p, (rp_action){.what = RP_NEW, .slot = 3, .size = 40, .value = i});
        add(&p, (rp_action){.what = RP_CALL, .f = 0, .size = 40, .in = {3, 3, RP_FRESH}, .out = {4}});
        add(&p, (rp_action){.what = RP_CHECK});
        add(&p, (rp_action){.what = RP_DROP, .slot = 4});
    }
    const rp_totals *totals = run(t, kit, &p);
    T_EQ(t, totals->counts[0], 0); /* direct calls */
    T_EQ(t, totals->counts[3], 4);
}

BOTH(test_parameter_at_the_same_address)
BOTH(test_parameter_of_a_sealed_sequence)
BOTH(test_inputs_that_are_copied_and_bound)

RONDO_TEST_MAIN(ENTRIES(test_parameter_at_the_same_address), ENTRIES(test_parameter_of_a_sealed_sequence),
                ENTRIES(test_inputs_that_are_copied_and_bound))
