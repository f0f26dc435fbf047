/* SPDX-License-Identifier: Apache-2.0
 *
 * Gates: each alone with the words that it is known by, all of them in their order, rules that are added, counters that
 * several threads raise, and callers that get everything wrong. */
#include "tree/gate.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/harness.h"

typedef struct gate_fixture {
    rondo_instance *instance;
    rondo_gates *gates;
    rondo_gate_facts facts;
    rondo_gate_device devices[4];
    rondo_gate_input inputs[4];
    rondo_gate_operator operators[4];
    rondo_graph_ops ops;
    rondo_gate_verdict verdict;
    bool capable, cached;
} gate_fixture;

static void fixture_close(gate_fixture *f) {
    rondo_gates_release(f->gates);
    rondo_instance_release(f->instance);
}

static bool fixture_capable(void *user) { return ((gate_fixture *)user)->capable; }
static bool fixture_cached(void *user) { return ((gate_fixture *)user)->cached; }

/* One device "chip:0" that captures and caches: everything passes. */
static void fixture_plain(gate_fixture *f) {
    f->facts = (rondo_gate_facts)RONDO_GATE_FACTS_INIT;
    f->verdict = (rondo_gate_verdict)RONDO_GATE_VERDICT_INIT;
    f->ops = (rondo_graph_ops)RONDO_GRAPH_OPS_INIT;
    f->ops.user = f;
    f->ops.is_graph_capture_supported = fixture_capable;
    f->ops.caching_allocator_enabled = fixture_cached;
    f->capable = f->cached = true;
    memset(f->devices, 0, sizeof f->devices);
    memset(f->inputs, 0, sizeof f->inputs);
    memset(f->operators, 0, sizeof f->operators);
    f->devices[0] = (rondo_gate_device){"chip", 0, 0, "mul", "model.py:7", &f->ops};
    f->facts.devices = f->devices;
    f->facts.device_count = 1;
    f->facts.inputs = f->inputs;
    f->facts.operators = f->operators;
    for (unsigned i = 0; i < 4; i++) f->operators[i].name = "aten::add.Tensor";
}

static void fixture_open(rondo_test *t, gate_fixture *f) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    options.ignore_plugin_path = 1;
    *f = (gate_fixture){0};
    T_DEFER(t, fixture_close, f);
    T_OK(t, rondo_instance_create(&options, &f->instance));
    T_OK(t, rondo_gates_create(f->instance, &f->gates));
    fixture_plain(f);
}

/* The gate that refuses the fixture's facts, with its text; then the facts are plain again. */
static void expect(rondo_test *t, gate_fixture *f, rondo_gate gate, const char *text) {
    T_OK(t, rondo_gates_check(f->gates, &f->facts, &f->verdict));
    T_STR(t, f->verdict.text, text);
    T_EQ(t, f->verdict.gate, gate);
    fixture_plain(f);
}

/* ---------------------------------------------------------------------------------------------------- each gate */

static void test_switches(rondo_test *t) {
    gate_fixture f;
    fixture_open(t, &f);
    expect(t, &f, RONDO_GATE_NONE, "");
    f.facts.flags = RONDO_GATE_FLAG_SWITCHED_OFF;
    expect(t, &f, RONDO_GATE_SWITCHED_OFF, "graphs are not switched on");
    f.facts.flags = RONDO_GATE_FLAG_SWITCHED_OFF;
    f.facts.forward = RONDO_GATE_ANNOTATION_ON;
    expect(t, &f, RONDO_GATE_NONE, "");
    f.facts.flags = RONDO_GATE_FLAG_SWITCHED_OFF;
    f.facts.backward = RONDO_GATE_ANNOTATION_ON; /* of the backward alone, and this is an inference */
    expect(t, &f, RONDO_GATE_SWITCHED_OFF, "graphs are not switched on");
    f.facts.flags = RONDO_GATE_FLAG_SWITCHED_OFF;
    f.facts.backward = RONDO_GATE_ANNOTATION_ON;
    f.facts.mode = RONDO_TREE_BACKWARD;
    expect(t, &f, RONDO_GATE_NONE, "");
    for (rondo_tree_mode mode = RONDO_TREE_INFERENCE; mode <= RONDO_TREE_BACKWARD; mode++) {
        f.facts.mode = mode;
        f.facts.forward = RONDO_GATE_ANNOTATION_OFF;
        expect(t, &f, RONDO_GATE_ANNOTATION, "annotation (override_cudagraphs fwd=False)");
        f.facts.mode = mode;
        f.facts.backward = RONDO_GATE_ANNOTATION_OFF;
        if (mode == RONDO_TREE_BACKWARD)
            expect(t, &f, RONDO_GATE_ANNOTATION, "annotation (override_cudagraphs bwd=False)");
        else expect(t, &f, RONDO_GATE_NONE, "");
    }
    f.facts.flags = RONDO_GATE_FLAG_CPP_WRAPPER;
    expect(t, &f, RONDO_GATE_NONE, "");
    f.facts.flags = RONDO_GATE_FLAG_CPP_WRAPPER | RONDO_GATE_FLAG_PARTITION;
    expect(t, &f, RONDO_GATE_CPP_WRAPPER, "cpp wrapper enabled: it does not support graph partition yet");
    f.facts.flags = RONDO_GATE_FLAG_CPP_WRAPPER | RONDO_GATE_FLAG_AHEAD_OF_TIME;
    expect(t, &f, RONDO_GATE_CPP_WRAPPER, "cpp wrapper enabled: compiled ahead of time");
    f.facts.flags = RONDO_GATE_FLAG_POLICY_REFUSED;
    expect(t, &f, RONDO_GATE_POLICY, "the policy does not wrap it");
    f.facts.disabled = "skipped when it was compiled";
    expect(t, &f, RONDO_GATE_DISABLED, "skipped when it was compiled");
    f.facts.disabled = "";
    expect(t, &f, RONDO_GATE_DISABLED, "disabled by the host, which gives no reason");
    f.facts.flags = RONDO_GATE_FLAG_BISECTED;
    expect(t, &f, RONDO_GATE_BISECTOR, "the compiler bisector");
}

static void test_devices(rondo_test *t) {
    gate_fixture f;
    fixture_open(t, &f);
    /* A device of the contract passes whatever its name, and a registered one that says no does not. */
    f.devices[0].type = "cuda";
    expect(t, &f, RONDO_GATE_NONE, "");
    f.devices[0].type = "cpu";
    expect(t, &f, RONDO_GATE_NONE, "");
    f.capable = false;
    expect(t, &f, RONDO_GATE_NO_CAPTURE, "device(type='chip', index=0) answers that it captures no graphs");
    f.ops.is_graph_capture_supported = NULL;
    expect(t, &f, RONDO_GATE_NO_CAPTURE, "device(type='chip', index=0) answers that it captures no graphs");
    f.ops.caching_allocator_enabled = NULL; /* optional: true */
    expect(t, &f, RONDO_GATE_NONE, "");
    /* A table of yesterday ends before the answer. */
    f.ops.struct_size = (uint32_t)offsetof(rondo_graph_ops, caching_allocator_enabled);
    f.cached = false;
    expect(t, &f, RONDO_GATE_NONE, "");
    f.devices[0].ops = NULL;
    f.devices[0].index = -1;
    expect(t, &f, RONDO_GATE_NO_CAPTURE, "device(type='chip') has no graph implementation");
    f.devices[0].ops = NULL;
    f.devices[0].flags = RONDO_GATE_DEVICE_CAPABLE;
    expect(t, &f, RONDO_GATE_NONE, "");
    f.devices[1] = (rondo_gate_device){"cpu", -1, 0, "arg0_1", "model.py:12", NULL};
    f.facts.device_count = 2;
    expect(t, &f, RONDO_GATE_CPU_DEVICE, "cpu device (arg0_1). Found from : model.py:12");
    f.devices[1] = (rondo_gate_device){"cpu", -1, 0, NULL, NULL, NULL};
    f.facts.device_count = 2;
    expect(t, &f, RONDO_GATE_CPU_DEVICE, "cpu device (without a name)");
    f.devices[1] = (rondo_gate_device){"cpu", -1, 0, "arg0_1", NULL, NULL};
    f.facts.device_count = 2;
    f.facts.partition_count = 1;
    f.facts.flags = RONDO_GATE_FLAG_PARTITION;
    expect(t, &f, RONDO_GATE_NONE, "");
    f.devices[1] = (rondo_gate_device){"meta", -1, 0, "shape", NULL, NULL};
    f.facts.device_count = 2;
    expect(t, &f, RONDO_GATE_NONE, "");
    f.devices[1] = (rondo_gate_device){"chip", 1, 0, "add", NULL, &f.ops};
    f.devices[2] = f.devices[0]; /* the same again counts once */
    f.facts.device_count = 3;
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    T_EQ(t, f.verdict.count, 2);
    T_EQ(t, f.verdict.index, 0);
    expect(t, &f, RONDO_GATE_MULTIPLE_DEVICES,
           "multiple devices: device(type='chip', index=0), device(type='chip', index=1)");
    f.devices[1] = (rondo_gate_device){"chop", 0, 0, "add", NULL, &f.ops};
    f.facts.device_count = 2;
    expect(t, &f, RONDO_GATE_MULTIPLE_DEVICES,
           "multiple devices: device(type='chip', index=0), device(type='chop', index=0)");
    f.facts.device_count = 0;
    expect(t, &f, RONDO_GATE_NO_DEVICE, "no device: nothing of it runs on one that captures graphs");
    f.devices[0] = (rondo_gate_device){"cpu", -1, 0, "arg0_1", NULL, NULL};
    expect(t, &f, RONDO_GATE_CPU_DEVICE, "cpu device (arg0_1)");
    f.devices[0] = (rondo_gate_device){"cpu", -1, 0, "arg0_1", NULL, NULL};
    f.facts.flags = RONDO_GATE_FLAG_PARTITION;
    expect(t, &f, RONDO_GATE_NO_DEVICE, "no device: nothing of it runs on one that captures graphs");
}

/* No accelerator: passes. There and uncached: refused, with the words that are known. Gone: passes. */
static void test_allocator(rondo_test *t) {
    static const char text[] = "cudagraph capture requires the caching allocator; current allocator is uncached";
    gate_fixture f;
    fixture_open(t, &f);
    const uint64_t only = (uint64_t)1 << RONDO_GATE_CACHING_ALLOCATOR;
    f.facts.only = only;
    f.facts.device_count = 0;
    expect(t, &f, RONDO_GATE_NONE, "");
    f.devices[0] = (rondo_gate_device){"cpu", -1, RONDO_GATE_DEVICE_UNCACHED, "arg0_1", NULL, NULL};
    f.facts.only = only;
    expect(t, &f, RONDO_GATE_NONE, "");
    f.cached = false;
    expect(t, &f, RONDO_GATE_CACHING_ALLOCATOR, text);
    f.cached = false;
    f.devices[0].flags = RONDO_GATE_DEVICE_UNAVAILABLE;
    expect(t, &f, RONDO_GATE_NONE, "");
    f.devices[1] = (rondo_gate_device){"cuda", 0, RONDO_GATE_DEVICE_UNCACHED, NULL, NULL, NULL};
    f.facts.device_count = 2;
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    T_EQ(t, f.verdict.index, 1);
    expect(t, &f, RONDO_GATE_CACHING_ALLOCATOR, text);
    /* Asked before the device: upstream's order. */
    f.cached = f.capable = false;
    expect(t, &f, RONDO_GATE_CACHING_ALLOCATOR, text);
}

/* cuda is capable and yet not in the registry; others can be named. */
static void test_own_path(rondo_test *t) {
    gate_fixture f;
    rondo_gates_counts counts = RONDO_GATES_COUNTS_INIT;
    fixture_open(t, &f);
    f.devices[0] = (rondo_gate_device){"cuda", 0, 0, "add", NULL, NULL};
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    T_EQ(t, f.verdict.flags, RONDO_GATE_VERDICT_OWN_PATH);
    expect(t, &f, RONDO_GATE_NONE, "");
    f.devices[0].type = "cuda"; /* through the contract: no path of its own */
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    T_EQ(t, f.verdict.flags, 0);
    f.devices[0] = (rondo_gate_device){"mtia", 0, 0, "add", NULL, NULL};
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    T_EQ(t, f.verdict.gate, RONDO_GATE_NO_CAPTURE);
    T_OK(t, rondo_gates_add_own_path(f.gates, "mtia"));
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    T_EQ(t, f.verdict.gate, RONDO_GATE_NONE);
    T_EQ(t, f.verdict.flags, RONDO_GATE_VERDICT_OWN_PATH);
    f.facts.stream_count = 2; /* what refuses has no path */
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    T_EQ(t, f.verdict.flags, 0);
    T_FAILS(t, rondo_gates_add_own_path(f.gates, "mtia"), ALREADY_EXISTS, "'mtia' was added before");
    T_FAILS(t, rondo_gates_add_own_path(f.gates, "cuda"), ALREADY_EXISTS, "'cuda' is in Rondo's own table");
    T_OK(t, rondo_gates_get_counts(f.gates, &counts));
    T_EQ(t, counts.checks, 6);
    T_EQ(t, counts.passed, 4);
    T_EQ(t, counts.own_path, 3);
    T_EQ(t, counts.refused[RONDO_GATE_NO_CAPTURE], 1);
    T_EQ(t, counts.refused[RONDO_GATE_MULTIPLE_STREAMS], 1);
}

static void test_inputs(rondo_test *t) {
    gate_fixture f;
    fixture_open(t, &f);
    f.facts.input_count = 4;
    f.inputs[0] = (rondo_gate_input){"p0", "a.py:1", RONDO_GATE_INPUT_MUTATED | RONDO_GATE_INPUT_STATIC, 0};
    expect(t, &f, RONDO_GATE_NONE, "");
    f.facts.input_count = 4;
    f.inputs[0] = (rondo_gate_input){"p0", "a.py:1", RONDO_GATE_INPUT_MUTATED | RONDO_GATE_INPUT_STATIC, 0};
    f.inputs[2] = (rondo_gate_input){"x", NULL, RONDO_GATE_INPUT_MUTATED, 0};
    f.inputs[3] = (rondo_gate_input){"y", "a.py:3", RONDO_GATE_INPUT_MUTATED, 0};
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    T_EQ(t, f.verdict.index, 2);
    T_EQ(t, f.verdict.count, 2);
    f.facts.flags = RONDO_GATE_FLAG_MUTATION;
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    T_EQ(t, f.verdict.gate, RONDO_GATE_NONE);
    f.facts.flags = 0;
    expect(t, &f, RONDO_GATE_MUTATED_INPUTS, "mutated inputs (2 instances). Found from : a.py:3");
    f.facts.input_count = 2;
    f.inputs[1] = (rondo_gate_input){"x", "a.py:9", RONDO_GATE_INPUT_STORAGE_MUTATED | RONDO_GATE_INPUT_STATIC, 0};
    expect(t, &f, RONDO_GATE_MUTATED_STORAGE, "input storage mutation (1 instances). Found from : a.py:9");
    f.facts.input_count = 1;
    f.inputs[0] = (rondo_gate_input){"x", NULL, RONDO_GATE_INPUT_OVERLAP, 0};
    expect(t, &f, RONDO_GATE_MEMORY_OVERLAP, "complex memory overlap (x)");
    f.facts.input_count = 1;
    f.facts.flags = RONDO_GATE_FLAG_OVERLAP;
    f.inputs[0] = (rondo_gate_input){"x", NULL, RONDO_GATE_INPUT_OVERLAP, 0};
    expect(t, &f, RONDO_GATE_NONE, "");
    f.facts.input_count = 1;
    f.inputs[0] = (rondo_gate_input){"lock", NULL, RONDO_GATE_INPUT_NOT_TENSOR, 0};
    expect(t, &f, RONDO_GATE_NON_TENSOR_INPUTS, "non-Tensor inputs (lock)");
    f.facts.input_count = 3;
    f.inputs[2] = (rondo_gate_input){"n", "a.py:4", RONDO_GATE_INPUT_SYMBOLIC, 0};
    expect(t, &f, RONDO_GATE_NONE, "");
    f.facts.input_count = 3;
    f.inputs[2] = (rondo_gate_input){"n", "a.py:4", RONDO_GATE_INPUT_SYMBOLIC, 0};
    f.facts.flags = RONDO_GATE_FLAG_SKIP_SYMBOLIC;
    expect(t, &f, RONDO_GATE_SYMBOLIC_SHAPES, "graph with symbolic shapes inputs (n). Found from : a.py:4");
    f.facts.input_count = 3;
    f.inputs[2] = (rondo_gate_input){"n", "a.py:4", RONDO_GATE_INPUT_SYMBOLIC, 0};
    f.facts.flags = RONDO_GATE_FLAG_SKIP_SYMBOLIC | RONDO_GATE_FLAG_PARTITION;
    f.facts.partition_count = 1;
    expect(t, &f, RONDO_GATE_NONE, "");
}

/* Host inputs by dimension, use, and what the host does for them: the rule is written out, not looked up. */
static void test_host_inputs(rondo_test *t) {
    gate_fixture f;
    fixture_open(t, &f);
    for (unsigned i = 0; i < 16; i++) {
        const bool zero_dim = i & 1u, unused = i & 2u, moved = i & 4u, partition = i & 8u;
        const bool refused = !partition && !unused && !(zero_dim && moved);
        f.facts.input_count = 2;
        f.inputs[1] = (rondo_gate_input){"scale", NULL, RONDO_GATE_INPUT_HOST, 0};
        if (zero_dim) f.inputs[1].flags |= RONDO_GATE_INPUT_ZERO_DIM;
        if (unused) f.inputs[1].flags |= RONDO_GATE_INPUT_UNUSED;
        if (moved) f.facts.flags |= RONDO_GATE_FLAG_SCALARS;
        if (partition) f.facts.flags |= RONDO_GATE_FLAG_PARTITION;
        f.facts.partition_count = 1;
        expect(t, &f, refused ? RONDO_GATE_CPU_DEVICE : RONDO_GATE_NONE, refused ? "cpu device (scale)" : "");
    }
}

static void test_sizes_streams_partitions(rondo_test *t) {
    static const int64_t wanted[] = {1, 16, 2, 16, 8, 16}, there[] = {2, 16}, other[] = {2, 8},
                         long_one[] = {1, 2, 3, 4, 5, 6, 7, 8, -9};
    gate_fixture f;
    fixture_open(t, &f);
    f.facts.wanted = wanted;
    f.facts.wanted_count = 3;
    f.facts.size_count = 2;
    f.facts.size = there;
    expect(t, &f, RONDO_GATE_NONE, "");
    f.facts.wanted = wanted;
    f.facts.wanted_count = 3;
    f.facts.size_count = 2;
    f.facts.size = other;
    expect(t, &f, RONDO_GATE_SIZE_NOT_WANTED, "size (2, 8) is none of the 3 to capture");
    f.facts.wanted = long_one;
    f.facts.wanted_count = 1;
    f.facts.size_count = 1;
    f.facts.size = long_one + 8;
    expect(t, &f, RONDO_GATE_SIZE_NOT_WANTED, "size (-9) is none of the 1 to capture");
    f.facts.wanted = (const int64_t[9]){0};
    f.facts.wanted_count = 1;
    f.facts.size_count = 9;
    f.facts.size = long_one;
    expect(t, &f, RONDO_GATE_SIZE_NOT_WANTED, "size (1, 2, 3, 4, 5, 6, 7, 8, ...) is none of the 1 to capture");
    for (uint32_t seen = 0; seen < 12; seen++) {
        f.facts.sizes_seen = seen;
        f.facts.size_limit = 8;
        if (seen <= 8) expect(t, &f, RONDO_GATE_NONE, "");
        else break;
    }
    f.facts.sizes_seen = 9;
    expect(t, &f, RONDO_GATE_SIZE_LIMIT, "dynamic shapes: 9 distinct sizes, and the limit is 8");
    f.facts.sizes_seen = 9; /* 0: no limit */
    expect(t, &f, RONDO_GATE_NONE, "");
    f.facts.stream_count = 1;
    expect(t, &f, RONDO_GATE_NONE, "");
    f.facts.stream_count = 3;
    expect(t, &f, RONDO_GATE_MULTIPLE_STREAMS, "multiple streams: 3, and they do not fork from one and join it");
    f.facts.stream_count = 3;
    f.facts.flags = RONDO_GATE_FLAG_STREAMS;
    expect(t, &f, RONDO_GATE_NONE, "");
    f.facts.flags = RONDO_GATE_FLAG_PARTITION;
    expect(t, &f, RONDO_GATE_NO_PARTITION, "no partition that can be graphed");
}

/* --------------------------------------------------------------------------------------------------- operators */

static bool refused(rondo_test *t, gate_fixture *f, const char *name, uint32_t tags, uint32_t flags) {
    const rondo_gate_operator candidate = {name, "n", NULL, tags, 0};
    T_OK(t, rondo_gates_check_operator(f->gates, flags, &candidate, &f->verdict));
    T_TRUE(t, f->verdict.gate == RONDO_GATE_NONE || f->verdict.gate == RONDO_GATE_INCOMPATIBLE_OP);
    T_EQ(t, f->verdict.text[0] != '\0', f->verdict.gate != RONDO_GATE_NONE);
    return f->verdict.gate != RONDO_GATE_NONE;
}

static void test_operator_names(rondo_test *t) {
    static const char *const always[] = {"run_and_save_rng_state",
                                         "run_with_rng_state",
                                         "aten._local_scalar_dense.default",
                                         "aten::_assert_scalar",
                                         "aten::item",
                                         "aten.nonzero.default",
                                         "aten::nonzero",
                                         "aten::nonzero.out",
                                         "aten::masked_select",
                                         "aten::_linalg_eigh",
                                         "aten::_fused_moving_avg_obs_fq_helper.default",
                                         "aten::_fused_moving_avg_obs_fq_helper_functional",
                                         "fbgemm::dense_to_jagged",
                                         "fbgemm.jagged_to_padded_dense.default"};
    static const char *const deterministic[] = {"aten::index_put",
                                                "aten.index_put_.default",
                                                "aten::_unsafe_index_put",
                                                "aten::scatter.src",
                                                "aten.scatter.reduce",
                                                "aten::_unsafe_masked_index_put_accumulate",
                                                "aten::scatter.value_reduce",
                                                "aten::scatter_add",
                                                "aten::scatter_add_",
                                                "aten::scatter_reduce.two",
                                                "aten::scatter_reduce.two_out",
                                                "aten::scatter_reduce_.two"};
    static const char *const never[] = {"aten::add.Tensor",
                                        "aten::nonzero_static",
                                        "aten::scatter.value",
                                        "aten::scatter",
                                        "nonzero",
                                        "mine::nonzero",
                                        "aten::nonzer",
                                        "aten::",
                                        "aten",
                                        "::nonzero",
                                        "",
                                        ".",
                                        "aten::scatter_reduce",
                                        "aten.nonzero_.default",
                                        "run_with_rng_state_2"};
    gate_fixture f;
    fixture_open(t, &f);
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (!refused(t, &f, always[i], 0, 0)) rondo_test_fail(t, __FILE__, __LINE__, "%s passes", always[i]);
    for (size_t i = 0; i < sizeof deterministic / sizeof *deterministic; i++) {
        if (refused(t, &f, deterministic[i], 0, 0)) rondo_test_fail(t, __FILE__, __LINE__, "%s", deterministic[i]);
        if (!refused(t, &f, deterministic[i], 0, RONDO_GATE_FLAG_DETERMINISTIC))
            rondo_test_fail(t, __FILE__, __LINE__, "%s passes", deterministic[i]);
    }
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (refused(t, &f, never[i], 0, RONDO_GATE_FLAG_DETERMINISTIC))
            rondo_test_fail(t, __FILE__, __LINE__, "%s is refused", never[i]);
    for (uint32_t bit = 0; bit < 7; bit++) T_TRUE(t, refused(t, &f, "aten::add.Tensor", 1u << bit, 0));
    T_TRUE(t, refused(t, &f, "mine::op", RONDO_GATE_TAG_UNSAFE, 0));
    T_STR(t, f.verdict.text, "incompatible op mine::op (node n): it is tagged cudagraph_unsafe");
}

static void test_operator_added(rondo_test *t) {
    gate_fixture f;
    fixture_open(t, &f);
    T_TRUE(t, !refused(t, &f, "aten::cumsum", 0, 0));
    T_OK(t, rondo_gates_add_operator(f.gates, "aten::cumsum", NULL));
    T_TRUE(t, refused(t, &f, "aten.cumsum.default", 0, 0));
    T_STR(t, f.verdict.text, "incompatible op aten.cumsum.default (node n): the host named it");
    T_OK(t, rondo_gates_add_operator(f.gates, "mine::sort.stable", "it asks the device"));
    T_TRUE(t, !refused(t, &f, "mine::sort", 0, 0));
    T_TRUE(t, refused(t, &f, "mine.sort.stable", 0, 0));
    T_STR(t, f.verdict.text, "incompatible op mine.sort.stable (node n): it asks the device");
    T_OK(t, rondo_gates_add_operator(f.gates, "mine::one.default", NULL));
    T_TRUE(t, refused(t, &f, "mine::one", 0, 0));
    T_FAILS(t, rondo_gates_add_operator(f.gates, "aten::cumsum", NULL), ALREADY_EXISTS, "'aten::cumsum'");
    T_FAILS(t, rondo_gates_add_operator(f.gates, "aten::nonzero", NULL), ALREADY_EXISTS, "Rondo's own table");
    T_OK(t, rondo_gates_add_operator(f.gates, "aten::scatter.src", NULL)); /* now always, not only deterministic */
    T_TRUE(t, refused(t, &f, "aten::scatter.src", 0, 0));
}

static void test_operator_limit(rondo_test *t) {
    gate_fixture f;
    char name[16];
    fixture_open(t, &f);
    for (unsigned i = 0; i < RONDO__GATE_ADDED_MAX; i++) {
        (void)snprintf(name, sizeof name, "x::op%u", i);
        T_OK(t, rondo_gates_add_operator(f.gates, name, NULL));
    }
    T_FAILS(t, rondo_gates_add_operator(f.gates, "x::one_too_many", NULL), OUT_OF_RANGE, "4096");
    T_TRUE(t, refused(t, &f, "x::op4095", 0, 0));
    T_TRUE(t, !refused(t, &f, "x::one_too_many", 0, 0));
}

static void test_operator_gate(rondo_test *t) {
    gate_fixture f;
    fixture_open(t, &f);
    f.facts.operator_count = 4;
    expect(t, &f, RONDO_GATE_NONE, "");
    f.facts.operator_count = 4;
    f.operators[1] = (rondo_gate_operator){"aten.nonzero.default", "nonzero", "a.py:5", 0, 0};
    f.operators[3] = (rondo_gate_operator){"aten.index_put.default", "put", NULL, RONDO_GATE_TAG_BOOLEAN_INDEX, 0};
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    T_EQ(t, f.verdict.index, 1);
    T_EQ(t, f.verdict.count, 2);
    expect(t, &f, RONDO_GATE_INCOMPATIBLE_OP,
           "incompatible op aten.nonzero.default (node nonzero): the shape of its result depends on data. "
           "Found from : a.py:5");
    f.facts.operator_count = 4;
    f.operators[1].name = "aten::nonzero";
    f.facts.flags = RONDO_GATE_FLAG_PARTITION; /* it is split off */
    f.facts.partition_count = 2;
    expect(t, &f, RONDO_GATE_NONE, "");
}

/* ---------------------------------------------------------------------------------------------- order and strict */

/* Facts that every gate refuses that can refuse beside the others, and the order in which they do. */
static void everything(gate_fixture *f) {
    static const int64_t size[] = {1}, other[] = {2};
    f->facts.flags = RONDO_GATE_FLAG_SWITCHED_OFF | RONDO_GATE_FLAG_CPP_WRAPPER | RONDO_GATE_FLAG_AHEAD_OF_TIME |
                     RONDO_GATE_FLAG_SKIP_SYMBOLIC | RONDO_GATE_FLAG_POLICY_REFUSED | RONDO_GATE_FLAG_BISECTED;
    f->facts.backward = RONDO_GATE_ANNOTATION_OFF;
    f->facts.mode = RONDO_TREE_BACKWARD;
    f->facts.input_count = 1;
    f->inputs[0].flags = RONDO_GATE_INPUT_SYMBOLIC | RONDO_GATE_INPUT_MUTATED | RONDO_GATE_INPUT_STORAGE_MUTATED |
                         RONDO_GATE_INPUT_OVERLAP | RONDO_GATE_INPUT_NOT_TENSOR;
    f->facts.operator_count = 1;
    f->operators[0].name = "aten::nonzero";
    f->cached = false;
    f->devices[1] = (rondo_gate_device){"chip", 1, 0, NULL, NULL, &f->ops};
    f->devices[2] = (rondo_gate_device){"cpu", -1, 0, NULL, NULL, NULL};
    f->facts.device_count = 3;
    f->facts.stream_count = 2;
    f->facts.disabled = "mine";
    f->facts.size_count = 1;
    f->facts.wanted_count = 1;
    f->facts.size = size;
    f->facts.wanted = other;
    f->facts.sizes_seen = 3;
    f->facts.size_limit = 2;
}

static void test_order(rondo_test *t) {
    static const rondo_gate order[] = {
        RONDO_GATE_SWITCHED_OFF,     RONDO_GATE_ANNOTATION,       RONDO_GATE_CPP_WRAPPER,
        RONDO_GATE_SYMBOLIC_SHAPES,  RONDO_GATE_INCOMPATIBLE_OP,  RONDO_GATE_CACHING_ALLOCATOR,
        RONDO_GATE_CPU_DEVICE,       RONDO_GATE_MULTIPLE_DEVICES, RONDO_GATE_MUTATED_INPUTS,
        RONDO_GATE_MUTATED_STORAGE,  RONDO_GATE_MEMORY_OVERLAP,   RONDO_GATE_NON_TENSOR_INPUTS,
        RONDO_GATE_MULTIPLE_STREAMS, RONDO_GATE_POLICY,           RONDO_GATE_DISABLED,
        RONDO_GATE_BISECTOR,         RONDO_GATE_SIZE_NOT_WANTED,  RONDO_GATE_SIZE_LIMIT};
    const uint32_t wanted = sizeof order / sizeof *order;
    gate_fixture f;
    rondo_gate_verdict verdicts[RONDO_GATE_COUNT] = {RONDO_GATE_VERDICT_INIT};
    uint32_t count = 0;
    rondo_gates_counts counts = RONDO_GATES_COUNTS_INIT;
    fixture_open(t, &f);
    everything(&f);
    T_OK(t, rondo_gates_check_all(f.gates, &f.facts, verdicts, RONDO_GATE_COUNT, &count));
    T_EQ(t, count, wanted);
    for (uint32_t i = 0; i < wanted; i++) {
        T_EQ(t, verdicts[i].gate, order[i]);
        T_EQ(t, verdicts[i].struct_size, sizeof *verdicts);
        T_TRUE(t, verdicts[i].text[0] != '\0');
    }
    T_OK(t, rondo_gates_get_counts(f.gates, &counts));
    T_EQ(t, counts.checks, 0); /* looking is not asking */
    /* With the first gates left out, the first that is left is the one that answers. */
    uint64_t only = ((uint64_t)1 << RONDO_GATE_COUNT) - 2u;
    for (uint32_t i = 0; i < wanted; i++) {
        f.facts.only = only;
        T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
        T_EQ(t, f.verdict.gate, order[i]);
        T_STR(t, f.verdict.text, verdicts[i].text);
        only &= ~((uint64_t)1 << order[i]);
    }
    /* Room for fewer: the count is whole, and nothing is written past the room. */
    rondo_gate_verdict few[3] = {RONDO_GATE_VERDICT_INIT};
    few[2].gate = 77;
    f.facts.only = 0;
    T_OK(t, rondo_gates_check_all(f.gates, &f.facts, few, 2, &count));
    T_EQ(t, count, wanted);
    T_EQ(t, few[1].gate, RONDO_GATE_ANNOTATION);
    T_EQ(t, few[2].gate, 77);
    T_OK(t, rondo_gates_check_all(f.gates, &f.facts, NULL, 0, &count));
    T_EQ(t, count, wanted);
}

static void test_strict(rondo_test *t) {
    gate_fixture f;
    rondo_gates_counts counts = RONDO_GATES_COUNTS_INIT;
    fixture_open(t, &f);
    f.facts.flags = RONDO_GATE_FLAG_STRICT;
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    /* A function of the host alone; one without a part that can be graphed; one that writes its input. */
    f.devices[0] = (rondo_gate_device){"cpu", -1, 0, "add", "a.py:2", NULL};
    T_FAILS(t, rondo_gates_check(f.gates, &f.facts, &f.verdict), UNSUPPORTED,
            "unsupported (tree): cpu device (add). Found from : a.py:2");
    T_STR(t, f.verdict.text, "cpu device (add). Found from : a.py:2");
    fixture_plain(&f);
    f.facts.flags = RONDO_GATE_FLAG_STRICT | RONDO_GATE_FLAG_PARTITION;
    T_FAILS(t, rondo_gates_check(f.gates, &f.facts, &f.verdict), UNSUPPORTED, "no partition that can be graphed");
    fixture_plain(&f);
    f.facts.flags = RONDO_GATE_FLAG_STRICT;
    f.facts.input_count = 1;
    f.inputs[0].flags = RONDO_GATE_INPUT_MUTATED;
    T_FAILS(t, rondo_gates_check(f.gates, &f.facts, &f.verdict), UNSUPPORTED, "mutated inputs (1 instances)");
    T_OK(t, rondo_gates_get_counts(f.gates, &counts));
    T_EQ(t, counts.checks, 4);
    T_EQ(t, counts.passed, 1);
    T_EQ(t, counts.refused[RONDO_GATE_CPU_DEVICE], 1);
    T_EQ(t, counts.refused[RONDO_GATE_NO_PARTITION], 1);
    T_EQ(t, counts.refused[RONDO_GATE_MUTATED_INPUTS], 1);
}

/* ------------------------------------------------------------------------------------------------ hostile callers */

/* A text is one line of clean characters, ends inside its room, and says that it was cut. */
static void test_hostile_names(rondo_test *t) {
    gate_fixture f;
    static char huge[70000];
    fixture_open(t, &f);
    memset(huge, 'n', sizeof huge - 1u);
    f.devices[1] = (rondo_gate_device){"cpu", -1, 0, "a\n\x1b[31mb\xff\"", "f\r.py:1", NULL};
    f.facts.device_count = 2;
    expect(t, &f, RONDO_GATE_CPU_DEVICE, "cpu device (a\\x0a\\x1b[31mb\\xff\"). Found from : f\\x0d.py:1");
    f.devices[1] = (rondo_gate_device){"cpu", -1, 0, huge, huge, NULL};
    f.facts.device_count = 2;
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    char wanted[RONDO_GATE_TEXT_MAX];
    (void)snprintf(wanted, sizeof wanted, "cpu device (%.*s...). Found from : %.*s...", 125, huge, 253, huge);
    expect(t, &f, RONDO_GATE_CPU_DEVICE, wanted);
    f.facts.disabled = huge;
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    T_EQ(t, strlen(f.verdict.text), RONDO_GATE_TEXT_MAX - 1);
    T_STR(t, f.verdict.text + RONDO_GATE_TEXT_MAX - 5, "n...");
    fixture_plain(&f);
    f.facts.operator_count = 1;
    f.operators[0] = (rondo_gate_operator){huge, huge + 1, huge, RONDO_GATE_TAG_UNSAFE, 0};
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    T_TRUE(t, strlen(f.verdict.text) < RONDO_GATE_TEXT_MAX);
    T_TRUE(t, strstr(f.verdict.text, "n...): it is tagged cudagraph_unsafe. Found from : nnn") != NULL);
    T_FAILS(t, rondo_gates_add_operator(f.gates, huge, NULL), OUT_OF_RANGE, "more than 255 bytes");
    T_FAILS(t, rondo_gates_add_operator(f.gates, "x::y", huge), OUT_OF_RANGE, "more than 255 bytes");
    T_OK(t, rondo_gates_add_operator(f.gates, huge + sizeof huge - 256, NULL));
    T_TRUE(t, refused(t, &f, huge + sizeof huge - 256, 0, 0));
}

static void test_many_devices(rondo_test *t) {
    gate_fixture f;
    static rondo_gate_device devices[1000];
    fixture_open(t, &f);
    for (int i = 0; i < 1000; i++) devices[i] = (rondo_gate_device){"chip", i % 100, 0, NULL, NULL, &f.ops};
    f.facts.devices = devices;
    f.facts.device_count = 1000;
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    T_EQ(t, f.verdict.gate, RONDO_GATE_MULTIPLE_DEVICES);
    T_EQ(t, f.verdict.count, 64);
    const size_t length = strlen(f.verdict.text);
    T_TRUE(t, length < RONDO_GATE_TEXT_MAX);
    T_STR(t, f.verdict.text + length - 3, "...");
    T_TRUE(t, !strncmp(f.verdict.text, "multiple devices: device(type='chip', index=0), device(type='chip', index=1)",
                       76));
}

static void test_wrong_arguments(rondo_test *t) {
    gate_fixture f;
    rondo_gates_counts counts = RONDO_GATES_COUNTS_INIT;
    uint32_t count = 0;
    fixture_open(t, &f);
    T_FAILS(t, rondo_gates_create(NULL, &f.gates), INVALID_ARGUMENT, "instance");
    T_FAILS(t, rondo_gates_create(f.instance, NULL), INVALID_ARGUMENT, "place");
    rondo_gates_retain(NULL);
    rondo_gates_release(NULL);
    rondo_gates_reset_counts(NULL);
    T_FAILS(t, rondo_gates_check(NULL, &f.facts, &f.verdict), INVALID_ARGUMENT, "gates");
    T_FAILS(t, rondo_gates_check(f.gates, NULL, &f.verdict), INVALID_ARGUMENT, "rondo_gate_facts: it is null");
    T_FAILS(t, rondo_gates_check(f.gates, &f.facts, NULL), INVALID_ARGUMENT, "rondo_gate_verdict: it is null");
    T_FAILS(t, rondo_gates_check_all(f.gates, &f.facts, NULL, 1, &count), INVALID_ARGUMENT, "1 verdicts");
    T_FAILS(t, rondo_gates_check_all(f.gates, &f.facts, NULL, 0, NULL), INVALID_ARGUMENT, "place");
    T_FAILS(t, rondo_gates_check_all(NULL, &f.facts, NULL, 0, &count), INVALID_ARGUMENT, "gates");
    T_FAILS(t, rondo_gates_check_operator(f.gates, 0, NULL, &f.verdict), INVALID_ARGUMENT, "operator");
    T_FAILS(t, rondo_gates_check_operator(NULL, 0, f.operators, &f.verdict), INVALID_ARGUMENT, "gates");
    T_FAILS(t, rondo_gates_check_operator(f.gates, 0, f.operators, NULL), INVALID_ARGUMENT, "null");
    T_FAILS(t, rondo_gates_check_operator(f.gates, 1u << 31, f.operators, &f.verdict), INVALID_ARGUMENT, "flags");
    T_FAILS(t, rondo_gates_add_operator(f.gates, NULL, NULL), INVALID_ARGUMENT, "name");
    T_FAILS(t, rondo_gates_add_operator(f.gates, "", NULL), INVALID_ARGUMENT, "name");
    T_FAILS(t, rondo_gates_add_operator(NULL, "a::b", NULL), INVALID_ARGUMENT, "gates");
    T_FAILS(t, rondo_gates_add_own_path(NULL, "a"), INVALID_ARGUMENT, "rondo_gates_add_own_path");
    T_FAILS(t, rondo_gates_get_counts(NULL, &counts), INVALID_ARGUMENT, "gates");
    T_FAILS(t, rondo_gates_get_counts(f.gates, NULL), INVALID_ARGUMENT, "rondo_gates_counts");
    T_FAILS(t, rondo_gates_report(NULL, true, NULL, NULL), INVALID_ARGUMENT, "gates");
    T_FAILS(t, rondo_gates_report(f.gates, true, NULL, NULL), INVALID_ARGUMENT, "write");
    T_STR(t, rondo_gate_name(-1), "unknown");
    T_STR(t, rondo_gate_text(RONDO_GATE_COUNT), "unknown");
    T_STR(t, rondo_gate_name(RONDO_GATE_NONE), "NONE");
    T_STR(t, rondo_gate_name(RONDO_GATE_CPU_DEVICE), "CPU_DEVICE");
    T_STR(t, rondo_gate_text(RONDO_GATE_SIZE_LIMIT), "it has too many sizes");
    T_OK(t, rondo_gates_get_counts(f.gates, &counts));
    T_EQ(t, counts.checks, 0); /* nothing of this was an answer */
}

static void test_wrong_facts(rondo_test *t) {
    static const int64_t one = 1;
    gate_fixture f;
    fixture_open(t, &f);
    for (unsigned i = 0; i < 16; i++) {
        const char *part = "";
        fixture_plain(&f);
        switch (i) {
        case 0: f.facts.devices = NULL, part = "an array is null"; break;
        case 1: f.facts.inputs = NULL, f.facts.input_count = 1, part = "1 inputs"; break;
        case 2: f.facts.operators = NULL, f.facts.operator_count = 9, part = "9 operators"; break;
        case 3: f.devices[0].type = NULL, part = "device 0 has no type"; break;
        case 4: f.devices[0].type = "", part = "device 0 has no type"; break;
        case 5: f.devices[0].flags = 8, part = "unknown flags 0x8"; break;
        case 6: f.inputs[0].flags = 512, f.facts.input_count = 1, part = "input 0 has unknown flags"; break;
        case 7: f.operators[1].name = NULL, f.facts.operator_count = 2, part = "operator 1 has no name"; break;
        case 8: f.operators[0].tags = 128, f.facts.operator_count = 1, part = "operator 0 has an unknown tag"; break;
        case 9: f.facts.flags = 1u << 13, part = "unknown flags 0x2000"; break;
        case 10: f.facts.only = 1, part = "a gate that does not exist"; break;
        case 11: f.facts.only = (uint64_t)1 << RONDO_GATE_COUNT, part = "a gate that does not exist"; break;
        case 12: f.facts.mode = 3, part = "unknown mode 3"; break;
        case 13: f.facts.forward = -1, part = "annotation -1"; break;
        case 14: f.facts.size = &one, f.facts.size_count = f.facts.wanted_count = 1, part = "wanted"; break;
        default: f.facts.struct_size = 0, part = "RONDO_GATE_FACTS_INIT"; break;
        }
        T_FAILS(t, rondo_gates_check(f.gates, &f.facts, &f.verdict), INVALID_ARGUMENT, part);
    }
    fixture_plain(&f);
    f.ops.struct_size = 0;
    T_FAILS(t, rondo_gates_check(f.gates, &f.facts, &f.verdict), INVALID_ARGUMENT, "RONDO_GRAPH_OPS_INIT");
    fixture_plain(&f);
    f.verdict.struct_size = 8; /* of a caller that knows the gate alone */
    f.verdict.flags = 99;
    f.facts.stream_count = 2;
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    T_EQ(t, f.verdict.gate, RONDO_GATE_MULTIPLE_STREAMS);
    T_EQ(t, f.verdict.flags, 99);
    f.facts.struct_size = offsetof(rondo_gate_facts, stream_count); /* of one that knows no streams */
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    T_EQ(t, f.verdict.gate, RONDO_GATE_NONE);
}

/* ------------------------------------------------------------------------------------------------------ reports */

typedef struct page {
    char text[16384];
    size_t length;
    int32_t refuse;
} page;

static int32_t page_write(void *user, const char *data, size_t size) {
    page *p = user;
    if (p->refuse || p->length + size >= sizeof p->text) return p->refuse ? p->refuse : 9;
    memcpy(p->text + p->length, data, size);
    p->length += size;
    p->text[p->length] = '\0';
    return 0;
}

static void test_report(rondo_test *t) {
    gate_fixture f;
    page p = {.length = 0};
    fixture_open(t, &f);
    T_OK(t, rondo_gates_report(f.gates, true, page_write, &p));
    T_STR(t, p.text, "{\"checks\":0,\"passed\":0,\"own_path\":0,\"refused\":0,\"gates\":[]}\n");
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    for (unsigned i = 0; i < 3; i++) {
        f.facts.stream_count = 2 + i;
        T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    }
    fixture_plain(&f);
    f.facts.disabled = "it said \"no\"\n";
    T_OK(t, rondo_gates_check(f.gates, &f.facts, &f.verdict));
    p.length = 0;
    T_OK(t, rondo_gates_report(f.gates, false, page_write, &p));
    T_STR(t, p.text,
          "gates: 5 asked, 1 passed (0 by a path of their own), 4 refused\n"
          "  MULTIPLE_STREAMS        3  it uses more than one stream\n"
          "    last: multiple streams: 4, and they do not fork from one and join it\n"
          "  DISABLED                1  the host has a reason of its own\n"
          "    last: it said \"no\"\\x0a\n");
    p.length = 0;
    T_OK(t, rondo_gates_report(f.gates, true, page_write, &p));
    T_STR(t, p.text,
          "{\"checks\":5,\"passed\":1,\"own_path\":0,\"refused\":4,\"gates\":[\n"
          "{\"gate\":\"MULTIPLE_STREAMS\",\"number\":15,\"count\":3,\"sentence\":\"it uses more than one stream\","
          "\"last\":\"multiple streams: 4, and they do not fork from one and join it\"},\n"
          "{\"gate\":\"DISABLED\",\"number\":17,\"count\":1,\"sentence\":\"the host has a reason of its own\","
          "\"last\":\"it said \\\"no\\\"\\\\x0a\"}]}\n");
    p.refuse = 7;
    T_FAILS(t, rondo_gates_report(f.gates, true, page_write, &p), IO, "returned 7");
    p.refuse = 0;
    p.length = 0;
    rondo_gates_reset_counts(f.gates);
    T_OK(t, rondo_gates_report(f.gates, false, page_write, &p));
    T_STR(t, p.text, "gates: 0 asked, 0 passed (0 by a path of their own), 0 refused\n");
}

/* ------------------------------------------------------------------------------------------------------ threads */

#define THREADS 4u
#define ROUNDS 2000u

typedef struct worker {
    pthread_t thread;
    rondo_gates *gates;
    unsigned number;
    unsigned wrong;
} worker;

/* Thread n is refused by its own gate two times of three, and now and then reads, adds and reports. */
static void *worker_run(void *argument) {
    static const uint32_t flags[THREADS] = {RONDO_GATE_FLAG_SWITCHED_OFF, RONDO_GATE_FLAG_POLICY_REFUSED,
                                            RONDO_GATE_FLAG_BISECTED, 0};
    static const rondo_gate gates[THREADS] = {RONDO_GATE_SWITCHED_OFF, RONDO_GATE_POLICY, RONDO_GATE_BISECTOR,
                                              RONDO_GATE_INCOMPATIBLE_OP};
    worker *w = argument;
    const rondo_gate_device device = {"chip", 0, RONDO_GATE_DEVICE_CAPABLE, NULL, NULL, NULL};
    const rondo_gate_operator candidate = {"aten::nonzero", NULL, NULL, 0, 0};
    for (unsigned i = 0; i < ROUNDS; i++) {
        rondo_gate_facts facts = RONDO_GATE_FACTS_INIT;
        rondo_gate_verdict verdict = RONDO_GATE_VERDICT_INIT;
        rondo_gates_counts counts = RONDO_GATES_COUNTS_INIT;
        const rondo_gate want = i % 3u ? gates[w->number] : RONDO_GATE_NONE;
        page p = {.length = 0};
        char name[32];
        facts.devices = &device;
        facts.device_count = 1;
        facts.operators = &candidate;
        if (i % 3u) facts.flags = flags[w->number];
        if (i % 3u && w->number == 3) facts.operator_count = 1;
        rondo_status status = rondo_gates_check(w->gates, &facts, &verdict);
        if (status || verdict.gate != want) w->wrong++;
        rondo_status_release(status);
        if (i % 100u) continue;
        (void)snprintf(name, sizeof name, "x::op_%u_%u", w->number, i);
        status = rondo_gates_add_operator(w->gates, name, NULL);
        if (!status) status = rondo_gates_report(w->gates, true, page_write, &p);
        if (!status) status = rondo_gates_get_counts(w->gates, &counts);
        uint64_t sum = counts.passed;
        for (unsigned k = 0; k < RONDO_GATE_COUNT; k++) sum += counts.refused[k];
        if (status || sum != counts.checks) w->wrong++;
        rondo_status_release(status);
    }
    return NULL;
}

static void test_threads(rondo_test *t) {
    gate_fixture f;
    worker workers[THREADS];
    rondo_gates_counts counts = RONDO_GATES_COUNTS_INIT;
    fixture_open(t, &f);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){.gates = f.gates, .number = i};
        T_EQ(t, pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) (void)pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < THREADS; i++) T_EQ(t, workers[i].wrong, 0);
    const unsigned passed = (ROUNDS + 2u) / 3u, each = ROUNDS - passed;
    T_OK(t, rondo_gates_get_counts(f.gates, &counts));
    T_EQ(t, counts.checks, THREADS * ROUNDS);
    T_EQ(t, counts.passed, THREADS * passed);
    T_EQ(t, counts.refused[RONDO_GATE_SWITCHED_OFF], each);
    T_EQ(t, counts.refused[RONDO_GATE_POLICY], each);
    T_EQ(t, counts.refused[RONDO_GATE_BISECTOR], each);
    T_EQ(t, counts.refused[RONDO_GATE_INCOMPATIBLE_OP], each);
}

/* Numbers are part of the contract: names and numbers as they were given out. */
static void test_numbers(rondo_test *t) {
    static const char *const names[] = {"NONE",
                                        "SWITCHED_OFF",
                                        "ANNOTATION",
                                        "CPP_WRAPPER",
                                        "SYMBOLIC_SHAPES",
                                        "INCOMPATIBLE_OP",
                                        "CACHING_ALLOCATOR",
                                        "CPU_DEVICE",
                                        "MULTIPLE_DEVICES",
                                        "NO_DEVICE",
                                        "NO_CAPTURE",
                                        "MUTATED_INPUTS",
                                        "MUTATED_STORAGE",
                                        "MEMORY_OVERLAP",
                                        "NON_TENSOR_INPUTS",
                                        "MULTIPLE_STREAMS",
                                        "POLICY",
                                        "DISABLED",
                                        "BISECTOR",
                                        "NO_PARTITION",
                                        "SIZE_NOT_WANTED",
                                        "SIZE_LIMIT"};
    for (rondo_gate i = 0; i < (rondo_gate)(sizeof names / sizeof *names); i++) {
        T_STR(t, rondo_gate_name(i), names[i]);
        T_TRUE(t, strlen(rondo_gate_text(i)) > 8);
        T_TRUE(t, (rondo__gate_rules[i] != NULL) == (i != RONDO_GATE_NONE));
    }
    T_EQ(t, sizeof names / sizeof *names, RONDO_GATE_COUNT);
}

RONDO_TEST_MAIN(T(test_switches), T(test_devices), T(test_allocator), T(test_own_path), T(test_inputs),
                T_PLAIN(test_host_inputs), T(test_sizes_streams_partitions), T_PLAIN(test_operator_names),
                T(test_operator_added), T_PLAIN(test_operator_limit), T(test_operator_gate), T(test_order),
                T(test_strict), T(test_hostile_names), T_PLAIN(test_many_devices), T(test_wrong_arguments),
                T(test_wrong_facts), T(test_report), T_PLAIN(test_threads), T_PLAIN(test_numbers))
