/* SPDX-License-Identifier: Apache-2.0
 *
 * The report: its figures by arithmetic, read back by a JSON parser, and the same in the text. */
#include <cjson/cJSON.h>

#include "tree/simple.h"
#include "tree/tree_testing.h"

#define INC                                                                                 \
    {                                                                                       \
        .name = "inc", .inputs = 1, .outputs = 1, .steps = { P_ADDS(1, 0, 1), P_RETURN(1) } \
    }
#define SHIFT                                                                                               \
    {                                                                                                       \
        .name = "shift", .inputs = 2, .outputs = 1, .steps = {P_ADD(2, 0, 1), P_RETURN(2)}, .statics = {1}, \
        .static_count = 1                                                                                   \
    }

/* The whole report as JSON, which goes with the test. */
static cJSON *parse(tt_world *w) {
    static tt_text text;
    const char *end = NULL;
    tt_report(w, true, &text);
    cJSON *json = cJSON_ParseWithOpts(text.data, &end, true);
    if (!json) rondo_test_fail(w->t, __FILE__, __LINE__, "not JSON: %.200s", text.data);
    T_DEFER(w->t, cJSON_Delete, json);
    return json;
}

/* "functions.0.sizes.1.replays" */
static const cJSON *at(tt_world *w, const cJSON *json, const char *path) {
    char part[64];
    const char *rest = path;
    while (json && *rest) {
        size_t length = strcspn(rest, ".");
        (void)snprintf(part, sizeof part, "%.*s", (int)length, rest);
        json =
            cJSON_IsArray(json) ? cJSON_GetArrayItem(json, atoi(part)) : cJSON_GetObjectItemCaseSensitive(json, part);
        rest += length + (rest[length] == '.');
    }
    if (!json) rondo_test_fail(w->t, __FILE__, __LINE__, "the report has no %s", path);
    return json;
}

static double number(tt_world *w, const cJSON *json, const char *path) {
    const cJSON *item = at(w, json, path);
    if (!cJSON_IsNumber(item)) rondo_test_fail(w->t, __FILE__, __LINE__, "%s is no number", path);
    return item->valuedouble;
}

static const char *string(tt_world *w, const cJSON *json, const char *path) {
    const cJSON *item = at(w, json, path);
    return cJSON_IsNull(item) ? "null" : cJSON_IsString(item) ? item->valuestring : "no string";
}

#define NUMBER(w, json, path, want) T_NEAR((w)->t, number(w, json, path), want, 0)
#define STRING(w, json, path, want) T_STR((w)->t, string(w, json, path), want)

static uint64_t tick(void *user) {
    uint64_t *now = user;
    return *now += 1500;
}

/* ------------------------------------------------------------------------------------------------------ figures */

static void test_empty(rondo_test *t, tt_kind kind) {
    tt_world w;
    tt_text text;
    tt_open(t, &w, kind);
    const cJSON *json = parse(&w);
    STRING(&w, json, "device", "model");
    STRING(&w, json, "state", "nothing");
    T_EQ(t, cJSON_GetArraySize(at(&w, json, "functions")), 0);
    NUMBER(&w, json, "memory.reserved_bytes", 0);
    NUMBER(&w, json, "memory.live_bytes", 0);
    NUMBER(&w, json, "limits.record_after", 2);
    NUMBER(&w, json, "limits.rerecord", 128);
    tt_report(&w, false, &text);
    T_STR(t, text.data,
          "tree model:0, context 0: nothing, 0 deep\n"
          "  calls: 0 replayed (0 sealed), 0 recorded, 0 warmed up, 0 direct\n"
          "  0 steps, 0 checkpoints, 0 inputs carried over, 0 outputs moved, 0 recordings dropped\n"
          "memory: pool (0, 0), 0 bytes reserved, 0 of them live blocks of the allocator\n"
          "             0  live: 0 outputs that are in use\n"
          "             0  dead, and held: outputs and input copies of recordings, for their next replay\n"
          "             0  held besides: temporaries of recordings, rounding, free parts\n"
          "             0  shared: of more than one recording; apart they would take 0 bytes\n");
}

/* One function, two addresses of its parameter, a clock that goes on by 1.5 us each time somebody looks. */
static void test_figures(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = SHIFT;
    uint64_t now = 0;
    tt_text text;
    tt_prepare(t, &w, kind);
    w.options.clock = tick;
    w.options.clock_user = &now;
    w.options.cost_samples = 100;
    w.options.context = 7;
    w.options.index = 3;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    th_tensor *a = tt_new(&w, 100), *b = tt_new(&w, 200);
    for (int i = 0; i < 8; i++) { /* a: warm-up, recording, 3 replays; b: recording, 2 replays */
        tt_invocation(&w);
        tt_drop(&w, tt_call2(&w, id, tt_new(&w, (float)i), tt_keep(&w, i < 5 ? a : b)));
    }
    const cJSON *json = parse(&w);
    NUMBER(&w, json, "index", 3);
    NUMBER(&w, json, "context", 7);
    STRING(&w, json, "state", "executing");
    NUMBER(&w, json, "calls.replayed", 5);
    NUMBER(&w, json, "calls.recorded", 2);
    NUMBER(&w, json, "calls.warmed_up", 1);
    NUMBER(&w, json, "calls.direct", 0);
    NUMBER(&w, json, "checkpoints", 0);
    NUMBER(&w, json, "functions.0.function", id);
    STRING(&w, json, "functions.0.name", "shift");
    STRING(&w, json, "functions.0.mode", "inference");
    STRING(&w, json, "functions.0.state", "graphed");
    STRING(&w, json, "functions.0.stopped", "null");
    STRING(&w, json, "functions.0.why", "null");
    NUMBER(&w, json, "functions.0.calls", 8);
    NUMBER(&w, json, "functions.0.replayed", 5);
    NUMBER(&w, json, "functions.0.recordings", 2);
    NUMBER(&w, json, "functions.0.roots", 2);
    NUMBER(&w, json, "functions.0.inputs_copied", 5);
    NUMBER(&w, json, "functions.0.input_bytes", 2 * TT_BYTES);
    NUMBER(&w, json, "functions.0.output_bytes", 2 * TT_BYTES);
    NUMBER(&w, json, "functions.0.least_us.warmup", 1.5);
    NUMBER(&w, json, "functions.0.least_us.record", 1.5);
    NUMBER(&w, json, "functions.0.least_us.replay", 1.5);
    T_TRUE(t, cJSON_IsNull(at(&w, json, "functions.0.least_us.direct")));
    T_EQ(t, cJSON_GetArraySize(at(&w, json, "functions.0.sizes")), 1);
    NUMBER(&w, json, "functions.0.sizes.0.recordings", 2);
    NUMBER(&w, json, "functions.0.sizes.0.replays", 5);
    NUMBER(&w, json, "functions.0.sizes.0.other_calls", 3);
    NUMBER(&w, json, "functions.0.sizes.0.copied_bytes", TT_BYTES);
    NUMBER(&w, json, "functions.0.sizes.0.nodes", 2 * 2); /* the fill of the fresh output, and the sum */
    STRING(&w, json, "functions.0.sizes.0.refused", "null");
    T_EQ(t, cJSON_GetArraySize(at(&w, json, "functions.0.not_replayed")), 3);
    STRING(&w, json, "functions.0.not_replayed.0.reason", "WARMUP");
    STRING(&w, json, "functions.0.not_replayed.1.reason", "FIRST");
    STRING(&w, json, "functions.0.not_replayed.2.reason", "STATIC_MOVED");
    STRING(&w, json, "functions.0.not_replayed.2.sentence", "static input data pointer changed");
    NUMBER(&w, json, "functions.0.not_replayed.2.count", 1);
    T_NEAR(t, number(&w, json, "functions.0.host_bytes"), tt_info(&w).host_bytes, 0);
    tt_report(&w, false, &text);
    static const char *const lines[] = {
        "tree model:3, context 7: executing, 1 deep\n",
        "  calls: 5 replayed (0 sealed), 2 recorded, 1 warmed up, 0 direct\n",
        "function 0 'shift' (inference): graphed\n",
        "  2 recordings (2 roots) of 1 sizes; 5 of 8 calls replayed, 5 inputs copied\n",
        "  least us: direct -, warm-up 1.500, record 1.500, replay 1.500\n",
        "  bytes: 32 of outputs and 32 of input copies in the pool, ",
        ": 2 recordings of 4 nodes, 5 replays, 3 other calls; 16 bytes copied in; us: call 1.500, replay 1.500\n",
        "         1  WARMUP: warm-up before the recording\n",
        "         1  FIRST: recorded for the first time here\n",
        "         1  STATIC_MOVED: static input data pointer changed\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(text.data, lines[i]))
            rondo_test_fail(t, __FILE__, __LINE__, "no \"%s\" in:\n%s", lines[i], text.data);
    T_TRUE(t, !strstr(text.data, "\n         0  ")); /* what never happened is no line */
    tt_drop(&w, a);
    tt_drop(&w, b);
}

/* Two functions that never run in one path lie on the same memory; a third behind the second does not. */
static void test_memory(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC, g = INC, h = INC;
    tt_text text;
    tt_open(t, &w, kind);
    uint32_t one = tt_add(&w, &f), two = tt_add(&w, &g), behind = tt_add(&w, &h);
    th_tensor *y = NULL, *z = NULL;
    for (int i = 0; i < 3; i++) {
        tt_invocation(&w);
        tt_drop(&w, tt_call(&w, one, tt_new(&w, 0)));
        tt_invocation(&w);
        y = tt_call(&w, two, tt_new(&w, 0));
        z = tt_call(&w, behind, tt_keep(&w, y));
        if (i < 2) tt_drop(&w, y), tt_drop(&w, z);
    }
    /* Each has an output; the first two have an input copy, the third works on the second's output. */
    const double b = TT_BYTES;
    const cJSON *json = parse(&w);
    NUMBER(&w, json, "memory.reserved_bytes", MD_SEGMENT);
    NUMBER(&w, json, "memory.allocated_bytes", 0); /* the allocator knows nothing of outputs of replays */
    NUMBER(&w, json, "memory.live_bytes", 2 * b);
    NUMBER(&w, json, "memory.live_outputs", 2);
    NUMBER(&w, json, "memory.apart_bytes", 5 * b);
    /* The third may lie where the second's input copy was: all is on two or three places of 16 bytes. */
    const double used = number(&w, json, "memory.live_bytes") + number(&w, json, "memory.held_bytes");
    T_NEAR(t, number(&w, json, "memory.rest_bytes"), MD_SEGMENT - used, 0);
    double places[5];
    size_t count = 0, distinct = 0, twice = 0;
    for (size_t i = 0; i < w.tree->all.count; i++) { /* counted anew, one place at a time */
        const rondo__tree_node *node = *RONDO__BUFFER_AT(&w.tree->all, rondo__tree_node *, i);
        for (uint32_t k = 0; k < node->moving_count; k++) places[count++] = (double)node->moving[k].destination;
        places[count++] = (double)node->group->leases[0].pointer;
    }
    T_EQ(t, count, 5);
    for (size_t i = 0; i < count; i++) {
        size_t before = 0, same = 0;
        for (size_t k = 0; k < count; k++) same += places[k] == places[i], before += k < i && places[k] == places[i];
        distinct += !before;
        twice += !before && same > 1;
    }
    T_NEAR(t, used, b * (double)distinct, 0);
    NUMBER(&w, json, "memory.shared_bytes", b * (double)twice);
    T_TRUE(t, twice >= 2);
    tt_drop(&w, z);
    json = parse(&w);
    NUMBER(&w, json, "memory.live_bytes", b);
    NUMBER(&w, json, "memory.held_bytes", b * (double)(distinct - 1));
    NUMBER(&w, json, "memory.rest_bytes", MD_SEGMENT - b * (double)distinct);
    tt_report(&w, false, &text);
    T_TRUE(t, strstr(text.data, "            16  live: 1 outputs that are in use\n") != NULL);
    T_TRUE(t, strstr(text.data, "apart they would take 80 bytes\n") != NULL);
    tt_drop(&w, y);
}

/* An input that is bound has no copy. */
static void test_memory_of_bound_inputs(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_prepare(t, &w, kind);
    w.ops.flags |= RONDO_GRAPH_OPS_REBIND;
    tt_start(&w);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 3; i++) {
        th_tensor *y = tt_call(&w, id, tt_new(&w, (float)i));
        tt_ramp(&w, y, (float)i + 1, 1);
        tt_drop(&w, y);
    }
    const cJSON *json = parse(&w);
    NUMBER(&w, json, "functions.0.inputs_copied", 0);
    NUMBER(&w, json, "functions.0.input_bytes", 0);
    NUMBER(&w, json, "functions.0.sizes.0.copied_bytes", 0);
    NUMBER(&w, json, "functions.0.output_bytes", TT_BYTES);
    NUMBER(&w, json, "memory.apart_bytes", TT_BYTES);
}

/* What has no bytes is nowhere. */
static void test_memory_of_nothing(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    th_tensor *x = tt_new(&w, 0), *empty = tt_eager(&w, (th_step)P_VIEW(1, 0, TT_FLOATS), x);
    for (int i = 0; i < 3; i++) tt_drop(&w, tt_call(&w, id, tt_keep(&w, empty)));
    const cJSON *json = parse(&w);
    NUMBER(&w, json, "functions.0.recordings", 1);
    NUMBER(&w, json, "memory.apart_bytes", 0);
    NUMBER(&w, json, "memory.held_bytes", 0);
    NUMBER(&w, json, "memory.shared_bytes", 0);
    for (int i = 0; i < 3; i++) tt_drop(&w, tt_call(&w, id, tt_keep(&w, x)));
    json = parse(&w);
    NUMBER(&w, json, "functions.0.recordings", 2);
    NUMBER(&w, json, "memory.held_bytes", 2 * TT_BYTES);
    NUMBER(&w, json, "memory.shared_bytes", 0);
    tt_drop(&w, x);
    tt_drop(&w, empty);
}

/* A warm-up's outputs are alive in the pool, and of no recording. */
static void test_memory_of_warmups(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    tt_open(t, &w, kind);
    th_tensor *y = tt_call(&w, tt_add(&w, &f), tt_new(&w, 0));
    const cJSON *json = parse(&w);
    STRING(&w, json, "state", "warming up");
    STRING(&w, json, "functions.0.state", "warmed up");
    NUMBER(&w, json, "memory.live_bytes", TT_BYTES);
    NUMBER(&w, json, "memory.held_bytes", 0);
    NUMBER(&w, json, "memory.apart_bytes", 0);
    NUMBER(&w, json, "memory.allocated_bytes", MD_ALIGN); /* as the allocator rounds */
    tt_drop(&w, y);
}

/* ------------------------------------------------------------------------------------------------------- states */

static void test_states(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model never = INC, skipped = INC, simple = INC,
             broken = {.name = "broken",
                       .inputs = 1,
                       .outputs = 1,
                       .steps = {P_ADDS(1, 0, 1), P_FAIL(1 << RONDO_TREE_RECORD), P_RETURN(1)}};
    th_model in_host = {.name = "in_host", .inputs = 2, .outputs = 1, .steps = {P_ADDS(2, 0, 1), P_RETURN(2)}};
    tt_text text;
    th_tensor *x = NULL;
    tt_open(t, &w, kind);
    skipped.skip = "cpu device (arg0_1)";
    skipped.mode = RONDO_TREE_BACKWARD;
    simple.simple = 1;
    (void)tt_add(&w, &never);
    uint32_t ids[] = {tt_add(&w, &skipped), tt_add(&w, &simple), tt_add(&w, &broken)}, host = tt_add(&w, &in_host);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            tt_invocation(&w);
            tt_drop(&w, tt_call(&w, ids[k], tt_new(&w, 0)));
        }
        T_OK(t, th_in_host(&w.host, true, 0, &x));
        tt_drop(&w, tt_call2(&w, host, tt_new(&w, 0), tt_held(x)));
    }
    const cJSON *json = parse(&w);
    STRING(&w, json, "functions.0.state", "not called");
    STRING(&w, json, "functions.1.state", "skipped");
    STRING(&w, json, "functions.1.mode", "backward");
    STRING(&w, json, "functions.1.why", "cpu device (arg0_1)");
    STRING(&w, json, "functions.1.not_replayed.0.reason", "SKIPPED");
    NUMBER(&w, json, "functions.1.not_replayed.0.count", 3);
    NUMBER(&w, json, "functions.1.calls", 3);
    STRING(&w, json, "functions.2.state", "graphed");
    T_TRUE(t, cJSON_IsTrue(at(&w, json, "functions.2.simple")));
    T_TRUE(t, cJSON_IsFalse(at(&w, json, "functions.1.simple")));
    NUMBER(&w, json, "functions.2.recordings", 1);
    NUMBER(&w, json, "functions.2.calls", 3);
    NUMBER(&w, json, "functions.2.replayed", 2);
    NUMBER(&w, json, "functions.2.sizes.0.replays", 2);
    NUMBER(&w, json, "functions.2.sizes.0.other_calls", 1);
    NUMBER(&w, json, "functions.2.sizes.0.copied_bytes", TT_BYTES);
    NUMBER(&w, json, "memory.simple_pools", 1);
    NUMBER(&w, json, "memory.simple_bytes", MD_SEGMENT);
    STRING(&w, json, "functions.3.state", "stopped");
    STRING(&w, json, "functions.3.stopped", "REJECTED");
    STRING(&w, json, "functions.3.why", "broken fails on purpose");
    STRING(&w, json, "functions.4.state", "direct");
    STRING(&w, json, "functions.4.sizes.0.refused", "HOST_INPUT");
    tt_report(&w, false, &text);
    T_TRUE(t, strstr(text.data, "function 1 'inc' (backward): skipped: cpu device (arg0_1)\n") != NULL);
    T_TRUE(t, strstr(text.data, "function 2 'inc' (inference, simple): graphed\n") != NULL);
    T_TRUE(t, strstr(text.data, "(inference): stopped: it cannot be captured: broken fails on purpose\n") != NULL);
    T_TRUE(t, strstr(text.data, "; direct: an input is a tensor in host memory\n") != NULL);
    T_TRUE(t, strstr(text.data, " 16384  in 1 pools of simple functions\n") != NULL);
    T_OK(t, rondo_tree_remove_function(w.tree, 1));
    json = parse(&w);
    T_EQ(t, cJSON_GetArraySize(at(&w, json, "functions")), 4);
    NUMBER(&w, json, "functions.1.function", 2);
    /* One that goes, but whose output keeps it. */
    th_tensor *y = tt_call(&w, 0, tt_new(&w, 0));
    T_OK(t, rondo_tree_remove_function(w.tree, 0));
    json = parse(&w);
    T_EQ(t, cJSON_GetArraySize(at(&w, json, "functions")), 3);
    tt_drop(&w, y);
}

static void test_many_sizes(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = {.name = "f", .inputs = 2, .outputs = 1, .steps = {P_ADDN(2, 0, 1), P_RETURN(2)}};
    tt_text text;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < (i == 4 || i == 6 ? i + 1 : 1); k++) {
            tt_invocation(&w);
            tt_drop(&w, tt_call2(&w, id, tt_new(&w, 0), tt_number(&w, i)));
        }
    }
    const cJSON *json = parse(&w);
    T_EQ(t, cJSON_GetArraySize(at(&w, json, "functions.0.sizes")), 20);
    NUMBER(&w, json, "functions.0.sizes.0.recordings", 0); /* the last one stands first */
    NUMBER(&w, json, "functions.0.sizes.0.other_calls", 1);
    NUMBER(&w, json, "functions.0.sizes.15.recordings", 1);
    NUMBER(&w, json, "functions.0.sizes.15.replays", 3);
    NUMBER(&w, json, "functions.0.sizes.15.output_bytes", TT_BYTES);
    NUMBER(&w, json, "functions.0.sizes.13.recordings", 1);
    NUMBER(&w, json, "functions.0.sizes.13.replays", 5);
    NUMBER(&w, json, "functions.0.output_bytes", 2 * TT_BYTES);
    tt_report(&w, false, &text);
    T_TRUE(t, strstr(text.data, "of 20 sizes; 8 of 30 calls replayed") != NULL);
    T_TRUE(t, strstr(text.data, "  and 4 sizes more\n") != NULL);
    unsigned lines = 0;
    for (const char *line = text.data; (line = strstr(line, "\n  size ")) != NULL; line++) lines++;
    T_EQ(t, lines, 16);
}

static void test_hostile_names(rondo_test *t, tt_kind kind) {
    static char name[1000];
    tt_world w;
    th_model f = INC, g = INC;
    tt_text text;
    f.name = "a\"b\\\n\x1b[31m\xff";
    memset(name, 'n', sizeof name - 1u);
    g.name = name;
    tt_open(t, &w, kind);
    (void)tt_add(&w, &f);
    (void)tt_add(&w, &g);
    const cJSON *json = parse(&w);
    STRING(&w, json, "functions.0.name", "a\"b\\\n\x1b[31m\xef\xbf\xbd");
    STRING(&w, json, "functions.1.name", name);
    tt_report(&w, false, &text);
    T_TRUE(t, strstr(text.data, "function 0 'a\"b\\\\x0a\\x1b[31m\\xff' (inference)") != NULL);
    T_TRUE(t, strstr(text.data, "nnn...' (inference)") != NULL);
}

/* ------------------------------------------------------------------------------------------------------ trouble */

static int32_t refuse(void *user, const char *data, size_t size) {
    (void)user, (void)data, (void)size;
    return 5;
}

static void test_arguments(rondo_test *t, tt_kind kind) {
    tt_world w;
    tt_text text;
    tt_prepare(t, &w, kind);
    w.ops.pool_bytes = NULL;
    tt_start(&w);
    T_FAILS(t, rondo_tree_report(NULL, true, tt_write, &text), INVALID_ARGUMENT, "tree");
    T_FAILS(t, rondo_tree_report(w.tree, true, NULL, &text), INVALID_ARGUMENT, "write");
    T_FAILS(t, rondo_tree_report(w.tree, true, refuse, &text), IO, "returned 5");
    const cJSON *json = parse(&w);
    T_TRUE(t, cJSON_IsNull(at(&w, json, "memory.reserved_bytes")));
    T_TRUE(t, cJSON_IsNull(at(&w, json, "memory.rest_bytes")));
    tt_report(&w, false, &text);
    T_TRUE(t, strstr(text.data, "the device does not tell its bytes\n") != NULL);
}

static void test_failures(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = SHIFT, g = INC;
    tt_text text;
    unsigned failed = 0;
    tt_open(t, &w, kind);
    g.simple = 1;
    uint32_t id = tt_add(&w, &f), simple = tt_add(&w, &g);
    th_tensor *weight = tt_new(&w, 1);
    for (int i = 0; i < 3; i++) tt_drop(&w, tt_call2(&w, id, tt_new(&w, 0), tt_keep(&w, weight)));
    tt_drop(&w, tt_call(&w, simple, tt_new(&w, 0)));
    for (int json = 0; json < 2; json++) {
        bool again = true;
        for (uint64_t n = 1; again; n++) {
            w.refused = false;
            w.refuse = n;
            text.size = 0;
            rondo_status status = rondo_tree_report(w.tree, json, tt_write, &text);
            w.refuse = 0;
            again = w.refused;
            failed += again;
            if (status) T_FAILS(t, status, OUT_OF_MEMORY, NULL);
            else T_TRUE(t, !again);
        }
        for (uint64_t n = 1; n < 3; n++) {
            w.faults = (tt_faults){.entry = TT_FAULT_POOL_BYTES, .nth = n};
            T_FAILS(t, rondo_tree_report(w.tree, json, tt_write, &text), DEVICE_LOST, "POOL_BYTES");
        }
    }
    T_TRUE(t, failed > 8);
    (void)parse(&w);
    tt_drop(&w, weight);
}

typedef struct reporter {
    tt_world *w;
    atomic_bool over;
    unsigned reports, wrong;
} reporter;

static void *reporter_run(void *user) {
    reporter *r = user;
    static tt_text text;
    while (!atomic_load(&r->over)) {
        text.size = 0;
        tt_enter(r->w);
        rondo_status status = rondo_tree_report(r->w->tree, r->reports % 2u != 0, tt_write, &text);
        tt_leave(r->w);
        if (status || !strstr(text.data, "inc")) r->wrong++;
        rondo_status_release(status);
        r->reports++;
        /* Who takes a lock again at once leaves nobody else a turn: with a sanitizer the calls waited for minutes. */
        nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
    }
    return NULL;
}

static void test_threads(rondo_test *t, tt_kind kind) {
    tt_world w;
    th_model f = INC;
    pthread_t thread;
    tt_open(t, &w, kind);
    uint32_t id = tt_add(&w, &f);
    reporter r = {.w = &w};
    T_EQ(t, pthread_create(&thread, NULL, reporter_run, &r), 0);
    for (int i = 0; i < 300; i++) {
        th_tensor *y = NULL, *x = tt_new(&w, (float)i);
        tt_invocation(&w);
        rondo_status status = tt_try(&w, id, 1, &x, 1, &y);
        if (status) r.wrong++;
        rondo_status_release(status);
        tt_drop(&w, y);
    }
    atomic_store(&r.over, true);
    (void)pthread_join(thread, NULL);
    T_EQ(t, r.wrong, 0);
    tt_counts(&w, 1, 1, 298, 0);
}

#define TESTS(X)                   \
    X(test_empty)                  \
    X(test_figures)                \
    X(test_memory)                 \
    X(test_memory_of_bound_inputs) \
    X(test_memory_of_nothing)      \
    X(test_memory_of_warmups)      \
    X(test_states)                 \
    X(test_many_sizes)             \
    X(test_hostile_names)          \
    X(test_arguments)              \
    X(test_failures)               \
    X(test_threads)
TT_MAIN(TESTS)
