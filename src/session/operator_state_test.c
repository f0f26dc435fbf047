/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator makes of a node before it runs: compiled once, kept in an offline file as the operator's own bytes, and
 * read back from there instead of being compiled. */
#include <rondo/compiler.h>
#include <rondo/file.h>
#include <rondo/operator.h>

#include <stdio.h>
#include <stdlib.h>

#include "artifact/artifact_testing.h"
#include "harness/harness.h"

enum { COUNT = 12, TABLE = 7 };

/* ------------------------------------------------------- y[i] = table[x[i] mod 7], where table[k] = factor * k * k + 1 */

typedef struct lookup {
    bool compile_fails, read_fails, silent; /* silent: it writes no bytes */
    bool garbled, restless;                 /* it reads another table than it wrote; it writes other bytes each time */
    uint32_t compiled, read, released;
    rondo_operator table;
    rondo_operator_implementation implementation;
} lookup;

static rondo_status lookup_meta(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                rondo_operator_result *results) {
    (void)api;
    (void)user;
    results[0].dtype = RONDO_DTYPE_I32;
    results[0].rank = request->inputs[0].rank;
    for (int32_t i = 0; i < results[0].rank; i++) results[0].dims[i] = request->inputs[0].dims[i];
    return RONDO_OK;
}

static rondo_status lookup_new(const rondo_operator_api *api, void **out_state) {
    *out_state = malloc(TABLE * sizeof(int32_t));
    return *out_state ? RONDO_OK : RONDO_OPERATOR_FAIL(api, OUT_OF_MEMORY, IMPLEMENTATION, "no table");
}

static rondo_status lookup_compile(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                   void **out_state) {
    lookup *l = user;
    if (l->compile_fails) return RONDO_OPERATOR_FAIL(api, UNAVAILABLE, IMPLEMENTATION, "there is no compiler");
    rondo_status status = lookup_new(api, out_state);
    if (status) return status;
    const int64_t factor = api->attribute(request, "factor")->value.i;
    for (int32_t k = 0; k < TABLE; k++) ((int32_t *)*out_state)[k] = (int32_t)factor * k * k + 1;
    l->compiled++;
    return RONDO_OK;
}

static void lookup_release(void *user, void *state) {
    ((lookup *)user)->released++;
    free(state);
}

/* In two pieces, since it may. */
static rondo_status lookup_serialize(const rondo_operator_api *api, void *user, const void *state,
                                     rondo_status (*write)(void *sink, const void *data, uint64_t bytes), void *sink) {
    (void)api;
    if (((lookup *)user)->silent) return RONDO_OK;
    const int32_t first = ((lookup *)user)->restless ? (int32_t)((lookup *)user)->compiled : *(const int32_t *)state;
    rondo_status status = write(sink, &first, sizeof first);
    return status ? status : write(sink, (const int32_t *)state + 1, (TABLE - 1) * sizeof(int32_t));
}

static rondo_status lookup_deserialize(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                       const void *data, uint64_t bytes, void **out_state) {
    lookup *l = user;
    if (api->attribute(request, "rondo.own"))
        return RONDO_OPERATOR_FAIL(api, INTERNAL, IMPLEMENTATION, "its bytes are among its attributes");
    if (l->read_fails || bytes != TABLE * sizeof(int32_t) || (uintptr_t)data % 64u)
        return RONDO_OPERATOR_FAIL(api, CORRUPT, IMPLEMENTATION, "%d bytes are no table", (int)bytes);
    rondo_status status = lookup_new(api, out_state);
    if (status) return status;
    memcpy(*out_state, data, (size_t)bytes);
    if (l->garbled) ((int32_t *)*out_state)[0]++;
    l->read++;
    return RONDO_OK;
}

static rondo_status lookup_execute(const rondo_operator_api *api, void *user, rondo_operator_context *context) {
    const rondo_operand *x = &api->request(context)->inputs[0];
    const int32_t *in = api->input(context, 0, RONDO_DTYPE_I32), *table = api->state(context);
    void *out = NULL;
    (void)user;
    rondo_status status = api->output(context, 0, x->rank, x->dims, RONDO_FORMAT_ND, RONDO_DTYPE_I32, &out);
    int64_t count = 1;
    for (int32_t i = 0; i < x->rank; i++) count *= x->dims[i];
    for (int64_t i = 0; !status && i < count; i++) ((int32_t *)out)[i] = table[(in[i] % TABLE + TABLE) % TABLE];
    return status;
}

static const rondo_operator_operand lookup_x[] = {{"x", RONDO_OPERATOR_DTYPE(I32), RONDO_OPERATOR_REQUIRED, 0, {0}}};
static const rondo_operator_attribute lookup_factor[] = {
    {{"factor", RONDO_ATTRIBUTE_INT, 1, {.i = 3}}, RONDO_OPERATOR_ATTRIBUTE_DEFAULT, 0}};

static void lookup_make(lookup *l) {
    *l = (lookup){.table = RONDO_OPERATOR_INIT, .implementation = RONDO_OPERATOR_IMPLEMENTATION_INIT};
    l->implementation.execute = lookup_execute;
    l->implementation.compile = lookup_compile;
    l->implementation.release = lookup_release;
    l->implementation.serialize = lookup_serialize;
    l->implementation.deserialize = lookup_deserialize;
    l->table.name = "Lookup";
    l->table.domain = "my";
    l->table.inputs = lookup_x;
    l->table.outputs = lookup_x;
    l->table.input_count = l->table.output_count = 1;
    l->table.attributes = lookup_factor;
    l->table.attribute_count = 1;
    l->table.meta = lookup_meta;
    l->table.implementation = &l->implementation;
    l->table.user = l;
}

/* --------------------------------------------------------------------------------------------------------- the world */

typedef struct world {
    rondo_test *t;
    lookup operator_;
    rondo_instance *instance;
    rondo_device *device;
    rondo_stream *stream;
    rondo_ir_graph *graph;
    rondo_plan *plan, *opened;
    rondo_executable *executable;
    rondo_context *context;
    void *in, *out;
    at_bytes files[2];
    char path[2][300];
} world;

static void w_release_run(world *w) {
    rondo_context_release(w->context);
    rondo_executable_release(w->executable);
    w->context = NULL;
    w->executable = NULL;
    if (w->in) rondo_status_release(rondo_memory_free(w->device, w->in));
    if (w->out) rondo_status_release(rondo_memory_free(w->device, w->out));
    w->in = w->out = NULL;
}

static void w_close(world *w) {
    w_release_run(w);
    for (int i = 0; i < 2; i++) at_free(&w->files[i]);
    rondo_plan_release(w->opened);
    rondo_plan_release(w->plan);
    rondo_ir_graph_release(w->graph);
    rondo_stream_release(w->stream);
    rondo_device_release(w->device);
    rondo_instance_release(w->instance);
    /* Whatever happened: what was made was released. */
    uint32_t made = w->operator_.compiled + w->operator_.read, released = w->operator_.released;
    *w = (world){.t = w->t};
    T_EQ(w->t, released, made);
}

/* y = Lookup(Lookup(x), factor 5): two nodes, two tables. */
static void w_open(world *w, const char *device) {
    rondo_test *t = w->t;
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    const rondo_attribute factor = {"factor", RONDO_ATTRIBUTE_INT, 1, {.i = 5}};
    rondo_ir_value x, y, z;
    options.ignore_plugin_path = 1;
    options.allocator = rondo_test_allocator(t);
    lookup_make(&w->operator_);
    T_OK(t, rondo_instance_create(&options, &w->instance));
    T_OK(t, rondo_operator_register(w->instance, &w->operator_.table));
    T_OK(t, rondo_device_open(w->instance, device, NULL, &w->device));
    T_OK(t, rondo_stream_create(w->device, NULL, &w->stream));
    T_OK(t, rondo_ir_graph_create(w->instance, "graph", &w->graph));
    T_OK(t, rondo_ir_graph_add_input(w->graph, "x", RONDO_DTYPE_I32, 1, (const int64_t[]){COUNT}, NULL, &x));
    T_OK(t, rondo_ir_graph_add_node(w->graph, "my::Lookup", "one", &x, 1, NULL, 0, &y, 1));
    T_OK(t, rondo_ir_graph_add_node(w->graph, "my::Lookup", "two", &y, 1, &factor, 1, &z, 1));
    T_OK(t, rondo_ir_graph_add_output(w->graph, z, "z"));
    T_OK(t, rondo_compile(w->instance, w->graph, NULL, NULL, &w->plan));
    for (int i = 0; i < 2; i++)
        (void)snprintf(w->path[i], sizeof w->path[i], "%.256s/state%d.rondo", rondo_test_folder(t), i);
}

static rondo_status w_run(world *w, rondo_plan *plan) {
    rondo_test *t = w->t;
    int32_t x[COUNT], z[COUNT];
    for (int i = 0; i < COUNT; i++) x[i] = 5 * i;
    rondo_status status = rondo_executable_create(w->device, plan, &w->executable);
    if (status) return status;
    T_OK(t, rondo_context_create(w->executable, &w->context));
    T_OK(t, rondo_memory_allocate(w->device, sizeof x, &w->in));
    T_OK(t, rondo_memory_allocate(w->device, sizeof z, &w->out));
    T_OK(t, rondo_context_bind_input(w->context, 0, w->in));
    T_OK(t, rondo_context_bind_output(w->context, 0, w->out));
    T_OK(t, rondo_stream_copy(w->stream, w->in, x, sizeof x, RONDO_COPY_HOST_TO_DEVICE));
    for (int i = 0; i < 2; i++) T_OK(t, rondo_context_run(w->context, w->stream));
    T_OK(t, rondo_stream_copy(w->stream, z, w->out, sizeof z, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_stream_synchronize(w->stream));
    for (int i = 0; i < COUNT; i++) {
        int32_t k = x[i] % 7, y = 3 * k * k + 1;
        T_EQ(t, z[i], 5 * (y % 7) * (y % 7) + 1);
    }
    w_release_run(w);
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------------- tests */

static void compiled_once_and_kept_in_the_file(rondo_test *t) {
    world w = {.t = t};
    T_DEFER(t, w_close, &w);
    for (int d = 0; d < 2; d++) {
        w_open(&w, d ? "sim" : "cpu");
        T_OK(t, w_run(&w, w.plan));
        T_EQ(t, w.operator_.compiled, 2);
        T_OK(t, rondo_plan_write(w.instance, w.plan, w.path[0]));
        T_EQ(t, w.operator_.compiled, 4); /* for the bytes; a plan has no state */
        T_OK(t, rondo_plan_open(w.instance, w.path[0], &w.opened));
        T_OK(t, w_run(&w, w.opened));
        T_TRUE(t, w.operator_.compiled == 4 && w.operator_.read == 2);
        /* A plan that is from a file writes the same file. */
        T_OK(t, rondo_plan_write(w.instance, w.opened, w.path[1]));
        T_EQ(t, w.operator_.compiled, 4);
        for (int i = 0; i < 2; i++) at_load(t, w.path[i], &w.files[i]);
        T_EQ(t, w.files[0].size, w.files[1].size);
        T_EQ(t, memcmp(w.files[0].data, w.files[1].data, w.files[0].size), 0);
        uint32_t own = 0;
        rondo_plan_partition part = RONDO_PLAN_PARTITION_INIT;
        for (uint32_t i = 0; i < w.opened->file->part_count; i++) {
            T_OK(t, rondo_plan_get_partition(w.opened, i, &part));
            own += part.kind == RONDO__ARTIFACT_OPERATORS;
        }
        T_EQ(t, own, 1);
        w_close(&w);
    }
}

static void without_bytes_it_compiles_again(rondo_test *t) {
    world w = {.t = t};
    T_DEFER(t, w_close, &w);
    w_open(&w, "cpu");
    w.operator_.silent = true;
    T_OK(t, rondo_plan_write(w.instance, w.plan, w.path[0]));
    T_OK(t, rondo_plan_open(w.instance, w.path[0], &w.opened));
    T_OK(t, w_run(&w, w.opened));
    T_TRUE(t, w.operator_.compiled == 4 && w.operator_.read == 0);
}

static void what_it_refuses_is_its_contract(rondo_test *t) {
    world w = {.t = t};
    T_DEFER(t, w_close, &w);
    w_open(&w, "cpu");
    w.operator_.compile_fails = true;
    T_FAILS(t, w_run(&w, w.plan), UNAVAILABLE,
            "(implementation): node 'one' (my::Lookup): its implementation refuses these inputs: there is no compiler\n"
            "  while it compiled");
    w.operator_.compile_fails = false;
    T_OK(t, rondo_plan_write(w.instance, w.plan, w.path[0]));
    T_OK(t, rondo_plan_open(w.instance, w.path[0], &w.opened));
    w.operator_.read_fails = true;
    T_FAILS(t, w_run(&w, w.opened), CORRUPT, "28 bytes are no table\n  while it read its bytes in the offline file");
}

/* A file that was changed on purpose and sealed again: the bytes must lie in their partition. */
static void bytes_lie_in_their_partition(rondo_test *t) {
    world w = {.t = t};
    uint32_t found = 0;
    T_DEFER(t, w_close, &w);
    w_open(&w, "cpu");
    T_OK(t, rondo_plan_write(w.instance, w.plan, w.path[0]));
    at_load(t, w.path[0], &w.files[0]);
    const rondo__artifact_entry *plan = at_entry(&w.files[0], 1);
    uint64_t *words = (uint64_t *)(void *)((char *)w.files[0].data + plan->offset);
    for (uint64_t i = 0; i + 3 < plan->bytes / 8; i++) {
        if (words[i] != RONDO__ARTIFACT_OWN || words[i + 1] != 1 || words[i + 3] != TABLE * 4) continue;
        const uint64_t wrong[][3] = {{0, words[i + 2], 1u << 20}, {0, words[i + 2], UINT64_MAX - 8},
                                     {0, words[i + 2], 4},        {0, words[i + 2] + 8, TABLE * 4},
                                     {0, UINT64_MAX - 63, 128},   {1, RONDO_ATTRIBUTE_STRING, 0}};
        const uint64_t before[] = {words[i], words[i + 2], words[i + 3]};
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            words[i] = wrong[k][0] ? wrong[k][1] : before[0];
            words[i + 2] = wrong[k][0] ? 0 : wrong[k][1];
            words[i + 3] = wrong[k][0] ? 0 : wrong[k][2];
            at_seal(&w.files[0]);
            T_FAILS(t, rondo__artifact_read(rondo_test_allocator(t), w.files[0].data, w.files[0].size, &w.opened),
                    CORRUPT, wrong[k][0] ? "of a kind that its name does not have" : "lie in no partition");
        }
        words[i] = before[0];
        words[i + 2] = before[1];
        words[i + 3] = before[2];
        found++;
    }
    T_EQ(t, found, 2);
}

static void functions_go_together(rondo_test *t) {
    world w = {.t = t};
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    T_DEFER(t, w_close, &w);
    options.ignore_plugin_path = 1;
    options.allocator = rondo_test_allocator(t);
    T_OK(t, rondo_instance_create(&options, &w.instance));
    lookup_make(&w.operator_);
    w.operator_.implementation.release = NULL;
    T_FAILS(t, rondo_operator_register(w.instance, &w.operator_.table), INVALID_ARGUMENT, "compile and release");
    lookup_make(&w.operator_);
    w.operator_.implementation.deserialize = NULL;
    T_FAILS(t, rondo_operator_register(w.instance, &w.operator_.table), INVALID_ARGUMENT, "serialize and deserialize");
    lookup_make(&w.operator_);
    w.operator_.implementation.compile = NULL;
    w.operator_.implementation.release = NULL;
    T_FAILS(t, rondo_operator_register(w.instance, &w.operator_.table), INVALID_ARGUMENT, "without compile");
}

static void the_check_reads_the_bytes_back(rondo_test *t) {
    world w = {.t = t};
    rondo_operator_check_options options = RONDO_OPERATOR_CHECK_OPTIONS_INIT;
    T_DEFER(t, w_close, &w);
    options.rounds = 40;
    w_open(&w, "cpu");
    T_OK(t, rondo_operator_check(w.instance, "my::Lookup", &options, NULL));
    T_TRUE(t, w.operator_.read > 10);
    w.operator_.garbled = true;
    T_FAILS(
        t, rondo_operator_check(w.instance, "my::Lookup", &options, NULL), INVALID_ARGUMENT,
        "(implementation): operator 'my::Lookup': the bytes that it serializes for an offline file: deserialize makes "
        "another state of them, whose outputs differ\n  input 0 'x' is int32[");
    w.operator_.garbled = false;
    w.operator_.restless = true;
    T_FAILS(t, rondo_operator_check(w.instance, "my::Lookup", &options, NULL), INVALID_ARGUMENT,
            "offline file: written twice, they differ");
    w.operator_.restless = false;
    w.operator_.read_fails = true;
    T_FAILS(t, rondo_operator_check(w.instance, "my::Lookup", &options, NULL), INVALID_ARGUMENT,
            "offline file: deserialize refuses them\n  it says: ");
}

RONDO_TEST_MAIN(T_PLAIN(the_check_reads_the_bytes_back), T(compiled_once_and_kept_in_the_file),
                T(without_bytes_it_compiles_again), T(what_it_refuses_is_its_contract), T(bytes_lie_in_their_partition),
                T(functions_go_together))
