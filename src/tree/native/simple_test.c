/* SPDX-License-Identifier: Apache-2.0
 *
 * The non-tree path and the report on devices of Rondo's: real pools, real graphs, streams that are behind. */
#include <stdio.h>
#include <stdlib.h>

#include "tree/native/native_testing.h"

#define COUNT 16
#define BYTES (COUNT * sizeof(float))
#define SEGMENT 2097152ull /* docs/memory.md: up to 1 MiB is cut from one of 2 MiB */

typedef struct simple_world {
    native_world w;
    rondo_stream *other;
    rondo_kernel add;
    rondo_tree *tree;
    rondo_array_model model;
    rondo_array *weight, *kept;
    rondo_array *input; /* made, and not handed over yet */
} simple_world;

/* x + w */
static rondo_status simple_model(void *user, rondo_stream *stream, rondo_array **inputs, uint32_t input_count,
                                 rondo_array **outputs, uint32_t output_count) {
    const simple_world *s = user;
    const int64_t shape = COUNT;
    void *pointers[3];
    (void)input_count, (void)output_count;
    RONDO__TRY(rondo_array_create(stream, RONDO_DTYPE_F32, 1, &shape, &outputs[0]));
    RONDO__TRY(rondo_array_data(inputs[0], &pointers[0]));
    RONDO__TRY(rondo_array_data(inputs[1], &pointers[1]));
    RONDO__TRY(rondo_array_data(outputs[0], &pointers[2]));
    const rondo_argument arguments[3] = {{(uint64_t)(uintptr_t)pointers[0], BYTES, RONDO_ACCESS_READ, 0},
                                         {(uint64_t)(uintptr_t)pointers[1], BYTES, RONDO_ACCESS_READ, 0},
                                         {(uint64_t)(uintptr_t)pointers[2], BYTES, RONDO_ACCESS_WRITE, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel = s->add;
    call.arguments = arguments;
    call.argument_count = 3;
    return rondo_stream_launch(stream, &call);
}

static void simple_close(simple_world *s) {
    rondo_array_release(s->input);
    rondo_array_release(s->kept);
    rondo_array_release(s->weight);
    rondo_tree_release(s->tree);
    if (s->add.function || s->add.context) rondo_kernel_release(s->w.device, s->add);
    rondo_stream_release(s->other);
}

static void simple_open(rondo_test *t, simple_world *s, const char *device) {
    const int64_t shape = COUNT;
    rondo_tree_options options = RONDO_TREE_OPTIONS_INIT;
    memset(s, 0, sizeof *s);
    nt_open(t, &s->w, device, NULL);
    T_DEFER(t, simple_close, s);
    T_OK(t, rondo_stream_create(s->w.device, NULL, &s->other));
    T_OK(t, rondo_kernel_prepare(s->w.device, "Add", 2, RONDO_DTYPE_F32, 1, &shape, &s->add));
    s->model = (rondo_array_model){simple_model, s};
    options.type = device;
    options.ops = &s->w.ops;
    options.host = &s->w.host;
    options.cost_samples = 0;
    T_OK(t, rondo_tree_open(s->w.instance, &options, &s->tree));
    s->w.ops.destroy = NULL; /* the tree's now */
    s->w.host.destroy = NULL;
    T_OK(t, rondo_array_create(s->w.stream, RONDO_DTYPE_F32, 1, &shape, &s->weight));
    nt_fill(&s->w, s->weight, 100);
}

static uint32_t simple_add(simple_world *s, bool simple) {
    static const uint32_t parameter = 1;
    rondo_tree_function function = RONDO_TREE_FUNCTION_INIT;
    uint32_t id = UINT32_MAX;
    function.name = simple ? "simple" : "tree";
    function.model = &s->model;
    function.input_count = 2;
    function.output_count = 1;
    function.static_inputs = &parameter;
    function.static_count = 1;
    function.simple = simple;
    T_OK(s->w.t, rondo_tree_add_function(s->tree, &function, &id));
    return id;
}

/* Consumes x; the result is the caller's. */
static rondo_array *simple_call(simple_world *s, uint32_t id, rondo_stream *stream, rondo_array *x) {
    void *inputs[2] = {x, s->weight}, *output = NULL;
    rondo_array_retain(s->weight);
    T_OK(s->w.t, rondo_tree_run(s->tree, id, stream, inputs, 2, &output, 1));
    return output;
}

static rondo_array *simple_input(simple_world *s, float first) {
    const int64_t shape = COUNT;
    T_OK(s->w.t, rondo_array_create(s->w.stream, RONDO_DTYPE_F32, 1, &shape, &s->input));
    nt_fill(&s->w, s->input, first);
    rondo_array *x = s->input;
    s->input = NULL;
    return x;
}

/* first, first + 2, ... */
static void simple_check(simple_world *s, rondo_stream *stream, const rondo_array *y, float first) {
    rondo_test *t = s->w.t;
    float values[COUNT] = {0};
    void *pointer = NULL;
    T_OK(t, rondo_array_data(y, &pointer));
    T_OK(t, rondo_stream_copy(stream, values, pointer, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_stream_synchronize(stream));
    for (int i = 0; i < COUNT; i++) T_NEAR(t, values[i], first + 2.0f * (float)i, 0);
}

static void let_go(rondo_array **place) {
    rondo_array_release(*place);
    *place = NULL;
}

static void test_calls(rondo_test *t, const char *device) {
    simple_world s;
    rondo_array *first = NULL, *y = NULL;
    simple_open(t, &s, device);
    T_DEFER(t, let_go, &first);
    T_DEFER(t, let_go, &y);
    uint32_t id = simple_add(&s, true);
    for (int i = 0; i < 5; i++) {
        y = simple_call(&s, id, s.w.stream, simple_input(&s, (float)i));
        simple_check(&s, s.w.stream, y, 100 + (float)i);
        if (i) T_TRUE(t, y == first || rondo_test_failing(t)); /* the very object; without memory, a direct call's */
        let_go(&first);
        first = y;
        y = NULL;
    }
    /* Its own output is an input like another; and another stream may call. */
    for (int i = 0; i < 3; i++) {
        rondo_array *x = first;
        first = NULL;
        first = simple_call(&s, id, s.other, x);
    }
    float values[COUNT] = {0};
    void *pointer = NULL;
    T_OK(t, rondo_array_data(first, &pointer));
    T_OK(t, rondo_stream_copy(s.other, values, pointer, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_stream_synchronize(s.other));
    for (int i = 0; i < COUNT; i++) T_NEAR(t, values[i], 404.0f + 5.0f * (float)i, 0); /* 4 + i + 4 (100 + i) */
    if (rondo_test_failing(t)) return;
    rondo_tree_info info = RONDO_TREE_INFO_INIT;
    T_OK(t, rondo_tree_get_info(s.tree, &info));
    T_EQ(t, info.warmups, 1);
    T_EQ(t, info.records, 1);
    T_EQ(t, info.replays, 7);
    T_EQ(t, info.directs, 0);
    T_EQ(t, info.pool_reserved, 0); /* the tree itself has none */
}
NT_BOTH(test_calls)

/* What is alive when the recording goes stays what it is. */
static void test_outputs_outlive_it(rondo_test *t, const char *device) {
    simple_world s;
    simple_open(t, &s, device);
    uint32_t id = simple_add(&s, true);
    s.kept = simple_call(&s, id, s.w.stream, simple_input(&s, 1));
    T_OK(t, rondo_tree_reset(s.tree));
    simple_check(&s, s.w.stream, s.kept, 101);
    for (int i = 0; i < 3; i++) {
        rondo_array *y = simple_call(&s, id, s.w.stream, simple_input(&s, 50));
        T_DEFER(t, rondo_array_release, y);
        simple_check(&s, s.w.stream, y, 150);
        simple_check(&s, s.w.stream, s.kept, 101);
        T_OK(t, i ? rondo_tree_reset(s.tree) : rondo_tree_remove_function(s.tree, id));
        if (!i) id = simple_add(&s, true);
    }
    rondo_tree_release(s.tree);
    s.tree = NULL;
    simple_check(&s, s.w.stream, s.kept, 101);
}
NT_BOTH(test_outputs_outlive_it)

/* ------------------------------------------------------------------------------------------------------ report */

typedef struct written {
    char text[16384];
    size_t size;
} written;

static int32_t written_add(void *user, const char *data, size_t size) {
    written *w = user;
    if (w->size + size >= sizeof w->text) return 1;
    memcpy(w->text + w->size, data, size);
    w->size += size;
    w->text[w->size] = '\0';
    return 0;
}

static uint64_t written_number(rondo_test *t, const written *w, const char *key) {
    char quoted[64];
    (void)snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(w->text, quoted);
    if (!at) rondo_test_fail(t, __FILE__, __LINE__, "the report has no %s", key);
    return at ? strtoull(at + strlen(quoted), NULL, 10) : 0;
}

static void test_report(rondo_test *t, const char *device) {
    static written w;
    simple_world s;
    simple_open(t, &s, device);
    uint32_t simple = simple_add(&s, true), tree = simple_add(&s, false);
    for (int i = 0; i < 4; i++) {
        rondo_array_release(simple_call(&s, simple, s.w.stream, simple_input(&s, 0)));
        rondo_tree_mark_step(s.tree);
        let_go(&s.kept);
        s.kept = simple_call(&s, tree, s.w.stream, simple_input(&s, (float)i));
        simple_check(&s, s.w.stream, s.kept, 100 + (float)i);
    }
    w.size = 0;
    T_OK(t, rondo_tree_report(s.tree, true, written_add, &w));
    if (rondo_test_failing(t)) return;
    /* Inline devices bind the input; others have a copy of it in the pool. */
    const uint64_t copied = rondo_device_info(s.w.device)->capabilities & RONDO_DEVICE_INLINE ? 0 : BYTES;
    T_EQ(t, written_number(t, &w, "reserved_bytes"), SEGMENT);
    T_EQ(t, written_number(t, &w, "allocated_bytes"), 0);
    T_EQ(t, written_number(t, &w, "live_bytes"), BYTES);
    T_EQ(t, written_number(t, &w, "live_outputs"), 1);
    T_EQ(t, written_number(t, &w, "held_bytes"), copied);
    T_EQ(t, written_number(t, &w, "rest_bytes"), SEGMENT - BYTES - copied);
    T_EQ(t, written_number(t, &w, "apart_bytes"), BYTES + copied);
    T_EQ(t, written_number(t, &w, "shared_bytes"), 0);
    T_EQ(t, written_number(t, &w, "simple_bytes"), SEGMENT);
    T_EQ(t, written_number(t, &w, "simple_pools"), 1);
    T_EQ(t, written_number(t, &w, "replayed"), 3 + 2);
    let_go(&s.kept);
    w.size = 0;
    T_OK(t, rondo_tree_report(s.tree, true, written_add, &w));
    T_EQ(t, written_number(t, &w, "live_bytes"), 0);
    T_EQ(t, written_number(t, &w, "held_bytes"), BYTES + copied);
}
NT_BOTH(test_report)

RONDO_TEST_MAIN(NT_ENTRIES(test_calls), NT_ENTRIES(test_outputs_outlive_it), NT_ENTRIES(test_report))
