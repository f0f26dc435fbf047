/* SPDX-License-Identifier: Apache-2.0
 *
 * A million calls of two functions over random sizes, under limits: most come from a few sizes, some from many, so that
 * recordings come and go all the time. What the pool, the process and the system give stays what it was. */
#include <dirent.h>
#include <stdio.h>

#include "tree/native/native_testing.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SOAK_PART 20u
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SOAK_PART 20u
#endif
#endif
#ifndef SOAK_PART
#define SOAK_PART 1u
#endif
#define SOAK_CALLS (1000000u / SOAK_PART)
#define SOAK_HOT 8u              /* sizes that come often */
#define SOAK_SIZES 512u          /* all of them: 1 to 512 elements */
#define SOAK_RECORDINGS 48u      /* the tree's limit */
#define SOAK_SLACK (64u * 1024u) /* which recordings live at a moment differs */

typedef struct soak {
    native_world w;
    rondo_tree *tree;
    rondo_kernel add;
    rondo_array_model model;
    uint32_t functions[2];
    rondo_array *inputs[SOAK_SIZES + 1u];
} soak;

static soak the_soak;

/* Twice its input. */
static rondo_status soak_double(void *user, rondo_stream *stream, rondo_array **inputs, uint32_t input_count,
                                rondo_array **outputs, uint32_t output_count) {
    const soak *s = user;
    (void)input_count;
    (void)output_count;
    RONDO__TRY(rondo_array_create(stream, RONDO_DTYPE_F32, 1, inputs[0]->shape, &outputs[0]));
    uint64_t in = rondo__storage_address(inputs[0]->storage), out = rondo__storage_address(outputs[0]->storage);
    const rondo_argument arguments[4] = {{in, inputs[0]->bytes, RONDO_ACCESS_READ, 0},
                                         {in, inputs[0]->bytes, RONDO_ACCESS_READ, 0},
                                         {out, inputs[0]->bytes, RONDO_ACCESS_WRITE, 0},
                                         {inputs[0]->bytes / sizeof(float), 0, RONDO_ACCESS_VALUE, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.argument_count = 4;
    call.kernel = s->add;
    call.arguments = arguments;
    call.name = "add";
    return rondo_stream_launch(stream, &call);
}

static void soak_close(soak *s) {
    for (uint32_t i = 1; i <= SOAK_SIZES; i++) nt_release(&s->inputs[i]);
    rondo_tree_release(s->tree);
    if (s->add.function) rondo_kernel_release(s->w.device, s->add);
}

static void soak_open(rondo_test *t, soak *s) {
    rondo_tree_options options = RONDO_TREE_OPTIONS_INIT;
    *s = (soak){0};
    nt_open(t, &s->w, "cpu", NULL);
    T_DEFER(t, soak_close, s);
    T_OK(t, rondo_kernel_find(s->w.device, "rondo.add", &s->add));
    options.type = "cpu";
    options.ops = &s->w.ops;
    options.host = &s->w.host;
    options.record_after = 3;
    options.recording_limit = SOAK_RECORDINGS;
    options.size_warning = 0;
    options.cost_samples = 0;
    T_OK(t, rondo_tree_open(s->w.instance, &options, &s->tree));
    s->w.ops = (rondo_graph_ops)RONDO_GRAPH_OPS_INIT;
    s->w.host = (rondo_tensor_host)RONDO_TENSOR_HOST_INIT;
    s->model = (rondo_array_model){soak_double, s};
    for (uint32_t i = 0; i < 2; i++) {
        rondo_tree_function function = RONDO_TREE_FUNCTION_INIT;
        function.name = i ? "second" : "first";
        function.model = &s->model;
        function.input_count = function.output_count = 1;
        T_OK(t, rondo_tree_add_function(s->tree, &function, &s->functions[i]));
    }
    for (uint32_t i = 1; i <= SOAK_SIZES; i++) {
        T_OK(t, rondo_array_create(s->w.stream, RONDO_DTYPE_F32, 1, (const int64_t[]){i}, &s->inputs[i]));
        float *values = (float *)(uintptr_t)rondo__storage_address(s->inputs[i]->storage);
        for (uint32_t k = 0; k < i; k++) values[k] = (float)(i + k);
    }
}

static uint64_t soak_files(void) {
    DIR *folder = opendir("/proc/self/fd");
    uint64_t count = 0;
    while (folder && readdir(folder)) count++;
    if (folder) (void)closedir(folder);
    return count;
}

/* One step: the second function on what the first made. */
static void soak_step(soak *s) {
    rondo_test *t = s->w.t;
    bool hot = rondo_test_random(t) % 100u < 97u;
    uint32_t size = (uint32_t)(1u + rondo_test_random(t) % (hot ? SOAK_HOT : SOAK_SIZES));
    void *given = s->inputs[size], *between = NULL, *out = NULL;
    rondo_array_retain(s->inputs[size]);
    rondo_tree_mark_step(s->tree);
    T_OK(t, rondo_tree_run(s->tree, s->functions[0], s->w.stream, &given, 1, &between, 1));
    T_OK(t, rondo_tree_run(s->tree, s->functions[1], s->w.stream, &between, 1, &out, 1));
    const float *values = (const float *)(uintptr_t)rondo__storage_address(((rondo_array *)out)->storage);
    T_TRUE(t, values[size - 1u] == 4.0f * (float)(2u * size - 1u));
    rondo_array_release(out);
}

static void test_a_million_calls(rondo_test *t) {
    soak *s = &the_soak;
    rondo_tree_info first = RONDO_TREE_INFO_INIT, now = RONDO_TREE_INFO_INIT;
    soak_open(t, s);
    uint64_t files = soak_files();
    rondo_test_heap heap = {0};
    for (uint32_t tenth = 1; tenth <= 10; tenth++) {
        for (uint32_t i = 0; i < SOAK_CALLS / 20u; i++) soak_step(s);
        T_OK(t, rondo_tree_get_info(s->tree, &now));
        rondo_test_heap current = rondo_test_heap_now(t);
        if (tenth <= 5) { /* the limit of recordings has been reached by then, in short runs, too */
            first = now;
            heap = current;
        }
        T_TRUE(t, now.recordings <= SOAK_RECORDINGS);
        T_EQ(t, now.pool_reserved, first.pool_reserved);
        T_TRUE(t, current.bytes <= heap.bytes + SOAK_SLACK);
        T_EQ(t, soak_files(), files);
    }
    T_TRUE(t, now.evicted > SOAK_CALLS / 1000u && now.replays > SOAK_CALLS / 2u);
    printf("%llu calls replayed, %llu recorded, %llu recordings dropped; pool of %llu bytes all the while\n",
           (unsigned long long)now.replays, (unsigned long long)now.records, (unsigned long long)now.evicted,
           (unsigned long long)now.pool_reserved);
}

RONDO_TEST_MAIN(T_PLAIN(test_a_million_calls))
