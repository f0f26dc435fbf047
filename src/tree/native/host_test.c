/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of arrays: facts, runs, leases, outputs of replays, copies. Leases are counted by lease_testing.h. */
#include "tree/native/lease_testing.h"

#define OUTPUTS 6u

typedef struct leased {
    native_world w;
    rondo_array *recorded[OUTPUTS]; /* what a recording made */
    rondo_tree_output outputs[OUTPUTS];
    rondo_tree_lease leases[OUTPUTS];
    void *memory; /* that the leases are of */
    void *made[OUTPUTS], *more[OUTPUTS];
    void *inputs[2];
} leased;

static void leased_close(leased *l) {
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        rondo_array_release(l->made[i]);
        rondo_array_release(l->more[i]);
        nt_release(&l->recorded[i]);
        if (l->outputs[i].metadata) l->w.host.drop(l->w.host.user, l->outputs[i].metadata);
        l->outputs[i].metadata = NULL;
    }
    rondo_array_release(l->inputs[0]);
    rondo_array_release(l->inputs[1]);
    if (l->memory) rondo_status_release(rondo_memory_free(l->w.device, l->memory));
}

/* Output 0: [2, 3] at the start of lease 0's 64 bytes. 1: another view of it. 2: [4] of lease 2. */
static void leased_open(rondo_test *t, leased *l, const char *device, const rondo_array_host_options *options) {
    const int64_t shape[] = {2, 3}, three = 3, four = 4;
    memset(l, 0, sizeof *l);
    nt_open(t, &l->w, device, options);
    T_DEFER(t, leased_close, l);
    T_OK(t, rondo_memory_allocate_on(l->w.stream, 64 * OUTPUTS, &l->memory));
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        l->leases[i].pointer = (uint64_t)(uintptr_t)l->memory + 64u * i;
        l->leases[i].bytes = 64;
    }
    T_OK(t, rondo_array_create(l->w.stream, RONDO_DTYPE_F32, 2, shape, &l->recorded[0]));
    T_OK(t, rondo_array_alias(l->recorded[0], 1, &three, NULL, 3, &l->recorded[1]));
    T_OK(t, rondo_array_create(l->w.stream, RONDO_DTYPE_F32, 1, &four, &l->recorded[2]));
    for (uint32_t i = 0; i < 3; i++) {
        T_OK(t, l->w.host.keep(l->w.host.user, l->recorded[i], false, &l->outputs[i].metadata));
    }
    l->outputs[0].kind = l->outputs[2].kind = RONDO_TREE_OUTPUT_FRESH;
    l->outputs[0].lease = &l->leases[0];
    l->outputs[1].kind = RONDO_TREE_OUTPUT_ALIAS;
    l->outputs[2].lease = &l->leases[2];
}

static rondo_status leased_make(leased *l, void **made) {
    l->outputs[0].epoch = lt_grant(&l->leases[0]);
    l->outputs[2].epoch = lt_grant(&l->leases[2]);
    return l->w.host.make_outputs(l->w.host.user, l->outputs, 3, l->inputs, made);
}

static void let_go(void **place) {
    rondo_array_release(*place);
    *place = NULL;
}

/* -------------------------------------------------------------------------------------------------------- facts */

static void test_facts_of_each_place(rondo_test *t) {
    native_world w;
    rondo_device *second = NULL;
    rondo_stream *elsewhere = NULL;
    static rondo_array *arrays[6];
    const int64_t shape[] = {2, 3}, three = 3, empty = 0;
    void *given[7];
    uint64_t pointers[7], words[7];
    rondo_tensor_facts facts;
    memset(arrays, 0, sizeof arrays);
    nt_open(t, &w, "sim", NULL);
    T_OK(t, rondo_device_open(w.instance, "sim:1", NULL, &second));
    T_DEFER(t, rondo_device_release, second);
    T_OK(t, rondo_stream_create(second, NULL, &elsewhere));
    T_DEFER(t, rondo_stream_release, elsewhere);
    for (int i = 0; i < 6; i++) T_DEFER(t, nt_release, &arrays[i]);
    T_OK(t, rondo_array_create(w.stream, RONDO_DTYPE_F32, 2, shape, &arrays[0]));
    T_OK(t, rondo_array_alias(arrays[0], 1, &three, NULL, 2, &arrays[1]));
    T_OK(t, rondo_array_create_host(w.device, RONDO_DTYPE_F32, 2, shape, &arrays[2]));
    T_OK(t, rondo_array_create(elsewhere, RONDO_DTYPE_F32, 2, shape, &arrays[3]));
    T_OK(t, rondo_array_create_value(w.device, 1234, &arrays[4]));
    T_OK(t, rondo_array_create(w.stream, RONDO_DTYPE_F32, 1, &empty, &arrays[5]));
    for (int i = 0; i < 6; i++) given[i] = arrays[i];
    given[6] = NULL;
    T_TRUE(t, w.host.facts(w.host.user, given, 7, pointers, words));
    static const rondo_tensor_place places[] = {RONDO_TENSOR_DEVICE, RONDO_TENSOR_DEVICE, RONDO_TENSOR_HOST,
                                                RONDO_TENSOR_OTHER,  RONDO_TENSOR_NONE,   RONDO_TENSOR_DEVICE,
                                                RONDO_TENSOR_NONE};
    for (int i = 0; i < 7; i++) {
        T_OK(t, w.host.describe(w.host.user, given[i], &facts));
        T_OK(t, w.host.check(w.host.user, given[i]));
        T_EQ(t, facts.place, places[i]);
        T_EQ(t, facts.pointer, pointers[i]);
        T_TRUE(t, facts.lease == NULL);
    }
    T_TRUE(t, pointers[0] && pointers[1] == pointers[0] + 8 && pointers[2] && pointers[3]);
    T_TRUE(t, !pointers[4] && !pointers[5] && !pointers[6]);
    T_EQ(t, words[4], 1234);
    T_TRUE(t, words[0] != words[1] && words[0] != words[2] && words[0] != words[3]);
    T_OK(t, w.host.describe(w.host.user, arrays[1], &facts));
    T_TRUE(t, facts.storage == pointers[0] && facts.storage_bytes == 24 && facts.bytes == 12 && facts.rank == 1);
    T_OK(t, w.host.describe(w.host.user, arrays[5], &facts));
    T_TRUE(t, facts.storage == 0 && facts.bytes == 0);
}

/* ---------------------------------------------------------------------------------------------------------- run */

typedef struct run_case {
    rondo_array *seen[3];
    void *stream;
    bool fails, consumes;
} run_case;

static rondo_status run_model(void *user, rondo_stream *stream, rondo_array **inputs, uint32_t input_count,
                              rondo_array **outputs, uint32_t output_count) {
    run_case *c = user;
    const int64_t shape = 4;
    c->stream = stream;
    for (uint32_t i = 0; i < input_count; i++) c->seen[i] = inputs[i];
    if (c->consumes) {
        rondo_array_release(inputs[0]);
        inputs[0] = NULL;
    }
    outputs[0] = inputs[1]; /* handed on */
    inputs[1] = NULL;
    for (uint32_t i = 1; i < output_count; i++)
        RONDO__TRY(rondo_array_create(stream, RONDO_DTYPE_F32, 1, &shape, &outputs[i]));
    return c->fails ? RONDO__FAIL(KERNEL_FAILED, KERNEL, "on purpose") : RONDO_OK;
}

static void test_a_model_runs(rondo_test *t) {
    native_world w;
    static rondo_array *kept[3];
    static void *outputs[3];
    run_case c = {.consumes = true};
    rondo_array_model model = {run_model, &c};
    rondo_tree_run_context context = {.struct_size = sizeof context, .model = &model};
    const int64_t shape = 4;
    memset(kept, 0, sizeof kept);
    memset(outputs, 0, sizeof outputs);
    nt_open(t, &w, "cpu", NULL);
    context.stream = w.stream;
    for (int i = 0; i < 3; i++) {
        T_DEFER(t, nt_release, &kept[i]);
        T_DEFER(t, let_go, &outputs[i]);
        T_OK(t, rondo_array_create(w.stream, RONDO_DTYPE_F32, 1, &shape, &kept[i]));
    }
    for (int round = 0; round < 4; round++) {
        void *inputs[3];
        c.fails = (round & 1) != 0;
        c.consumes = (round & 2) != 0;
        for (int i = 0; i < 3; i++) inputs[i] = w.host.retain(w.host.user, kept[i]);
        rondo_status status = w.host.run(w.host.user, &context, inputs, 3, outputs, 3);
        for (int i = 0; i < 3; i++) {
            T_TRUE(t, inputs[i] == NULL && c.seen[i] == kept[i]);
            T_TRUE(t, (outputs[i] != NULL) == (status == RONDO_OK));
        }
        T_TRUE(t, c.stream == w.stream);
        if (c.fails) T_FAILS(t, status, KERNEL_FAILED, "on purpose");
        else T_OK(t, status);
        if (!c.fails) T_TRUE(t, outputs[0] == kept[1]);
        w.host.release(w.host.user, outputs, 3);
        for (int i = 0; i < 3; i++) T_EQ(t, atomic_load(&kept[i]->references), 1);
    }
    void *inputs[1] = {w.host.retain(w.host.user, kept[0])};
    context.model = NULL;
    T_FAILS(t, w.host.run(w.host.user, &context, inputs, 1, outputs, 1), INVALID_ARGUMENT, "rondo_array_model");
    T_EQ(t, atomic_load(&kept[0]->references), 1);
}

/* ------------------------------------------------------------------------------------------------------- leases */

static void test_an_adopted_storage_tells_its_end(rondo_test *t, const char *device) {
    leased l;
    rondo_array *view = NULL;
    const int64_t two = 2;
    void *pointer = NULL;
    rondo_tensor_facts facts;
    leased_open(t, &l, device, NULL);
    rondo_tree_lease *lease = &l.leases[3];
    rondo_array *array = l.recorded[0];
    T_OK(t, rondo_array_data(array, &pointer));
    l.recorded[0] = NULL;
    uint64_t live = nt_live(&l.w);
    uint64_t epoch = lt_grant(lease);
    l.w.host.adopt(l.w.host.user, array, lease, epoch);
    nt_release(&l.recorded[1]);
    T_TRUE(t, rondo_tree_lease_storage(lease) == array->storage);
    T_OK(t, l.w.host.describe(l.w.host.user, array, &facts));
    T_TRUE(t, facts.lease == lease && facts.epoch == epoch);
    rondo_status status = rondo_array_alias(array, 1, &two, NULL, 0, &view);
    rondo_array_release(array);
    if (!status) {
        T_EQ(t, atomic_load(&lease->ends), 0); /* the view holds it */
        T_OK(t, rondo_array_data(view, &pointer));
        rondo_array_release(view);
    }
    T_EQ(t, atomic_load(&lease->ends), 1);
    T_EQ(t, atomic_load(&lease->wrong), 0);
    T_TRUE(t, lt_is_over(lease));
    T_EQ(t, nt_live(&l.w), live); /* whose memory it is decides the lease */
    rondo_status freed = rondo_memory_free(l.w.device, pointer);
    T_OK(t, status);
    T_OK(t, freed);
}
NT_BOTH(test_an_adopted_storage_tells_its_end)

static void test_memory_that_was_used_again(rondo_test *t) {
    leased l;
    uint64_t pointers[3], words[3];
    void *pointer = NULL, *copy = NULL;
    leased_open(t, &l, "cpu", NULL);
    T_OK(t, leased_make(&l, l.made));
    T_TRUE(t, l.w.host.facts(l.w.host.user, l.made, 3, pointers, words));
    T_EQ(t, words[0], l.recorded[0]->word);
    T_TRUE(t, pointers[1] == l.leases[0].pointer + 12 && pointers[2] == l.leases[2].pointer);
    (void)lt_grant(&l.leases[0]); /* to another */
    T_TRUE(t, !l.w.host.facts(l.w.host.user, l.made, 3, pointers, words));
    T_TRUE(t, !l.w.host.facts(l.w.host.user, l.made, 1, pointers, words));
    T_TRUE(t, l.w.host.facts(l.w.host.user, &l.made[2], 1, pointers, words));
    T_FAILS(t, l.w.host.check(l.w.host.user, l.made[0]), STALE, "used again");
    T_FAILS(t, l.w.host.check(l.w.host.user, l.made[1]), STALE, "used again");
    T_OK(t, l.w.host.check(l.w.host.user, l.made[2]));
    T_FAILS(t, rondo_array_data(l.made[1], &pointer), STALE, "used again");
    T_FAILS(t, l.w.host.own(l.w.host.user, l.w.stream, l.made[0], &copy), STALE, "used again");
    T_FAILS(t, rondo_array_resize(l.made[0], l.w.stream, 128), STALE, "used again");
}

/* ------------------------------------------------------------------------------------------------------ outputs */

static void test_outputs_are_used_again(rondo_test *t, const char *device) {
    leased l;
    rondo_array_details d = RONDO_ARRAY_DETAILS_INIT;
    leased_open(t, &l, device, NULL);
    T_OK(t, leased_make(&l, l.made));
    const void *first = l.made[0], *alias = l.made[1], *third = l.made[2];
    T_OK(t, rondo_array_get_details(l.made[0], &d));
    T_TRUE(t, d.rank == 2 && d.shape[1] == 3 && d.leased && d.storage_bytes == 64);
    T_OK(t, rondo_array_get_details(l.made[1], &d));
    T_TRUE(t, d.offset == 3 && d.storage == ((rondo_array *)l.made[0])->storage);
    nt_fill(&l.w, l.made[0], 50);
    T_EQ(t, nt_first(&l.w, l.made[1]), 53);
    for (uint64_t round = 1; round < 50; round++) {
        for (uint32_t i = 0; i < 3; i++) let_go(&l.made[round % 3 ? i : 2 - i]);
        T_TRUE(t, lt_is_over(&l.leases[0]) && lt_is_over(&l.leases[2]));
        T_EQ(t, atomic_load(&l.leases[0].ends), round);
        T_OK(t, leased_make(&l, l.made));
        T_TRUE(t, l.made[0] == first && l.made[1] == alias && l.made[2] == third);
    }
    T_EQ(t, atomic_load(&l.leases[0].wrong) + atomic_load(&l.leases[2].wrong), 0);
    /* Held: another one comes, and the next time it is free again. */
    T_OK(t, leased_make(&l, l.more));
    for (uint32_t i = 0; i < 3; i++) T_TRUE(t, l.more[i] != l.made[i]);
    T_TRUE(t, lt_is_over(&l.leases[2]) == false);
    uint64_t ends = atomic_load(&l.leases[2].ends);
    for (uint32_t i = 0; i < 3; i++) let_go(&l.made[i]);
    T_TRUE(t, atomic_load(&l.leases[2].ends) == ends + 1 && !lt_is_over(&l.leases[2])); /* told of an older epoch */
    T_OK(t, leased_make(&l, l.made));
    T_TRUE(t, l.made[0] == first && l.made[1] == alias && l.made[2] == third);
    T_EQ(t, atomic_load(&l.leases[0].wrong) + atomic_load(&l.leases[2].wrong), 0);
}
NT_BOTH(test_outputs_are_used_again)

/* Who looks on: a view of an output keeps its storage, so the unit is not used again before. */
static void test_a_view_keeps_an_output(rondo_test *t) {
    leased l;
    rondo_array *view = NULL;
    const int64_t two = 2;
    leased_open(t, &l, "cpu", NULL);
    T_OK(t, leased_make(&l, l.made));
    const void *third = l.made[2];
    T_DEFER(t, nt_release, &view);
    T_OK(t, rondo_array_alias(l.made[2], 1, &two, NULL, 1, &view));
    let_go(&l.made[2]);
    T_EQ(t, atomic_load(&l.leases[2].ends), 0);
    T_OK(t, leased_make(&l, l.more));
    T_TRUE(t, l.more[2] != third);
    nt_release(&view);
    T_EQ(t, atomic_load(&l.leases[2].ends), 1);
    let_go(&l.more[2]);
    T_EQ(t, atomic_load(&l.leases[2].ends), 2);
}

static void test_outputs_on_what_is_there(rondo_test *t, const char *device) {
    leased l;
    const int64_t shape[] = {2, 3}, one = 1;
    leased_open(t, &l, device, NULL);
    T_OK(t, leased_make(&l, l.made));
    nt_fill(&l.w, l.made[0], 10);
    /* On an output of an earlier run. */
    rondo_tree_output path = {.kind = RONDO_TREE_OUTPUT_PATH,
                              .metadata = l.outputs[1].metadata,
                              .lease = &l.leases[0],
                              .epoch = l.outputs[0].epoch};
    T_OK(t, l.w.host.make_outputs(l.w.host.user, &path, 1, NULL, &l.more[0]));
    T_EQ(t, nt_first(&l.w, l.more[0]), 13);
    let_go(&l.made[1]);
    let_go(&l.made[0]);
    T_EQ(t, atomic_load(&l.leases[0].ends), 0);
    let_go(&l.more[0]);
    T_EQ(t, atomic_load(&l.leases[0].ends), 1);
    T_FAILS(t, l.w.host.make_outputs(l.w.host.user, &path, 1, NULL, &l.more[0]), STALE, "released meanwhile");
    T_TRUE(t, l.more[0] == NULL);
    let_go(&l.made[2]);
    T_OK(t, leased_make(&l, l.made)); /* the memory has another storage now */
    T_FAILS(t, l.w.host.make_outputs(l.w.host.user, &path, 1, NULL, &l.more[0]), STALE, "released meanwhile");
    for (uint32_t i = 0; i < 3; i++) let_go(&l.made[i]);
    /* On an input, behind or before where it begins, wherever that is. */
    rondo_tree_output input = {
        .kind = RONDO_TREE_OUTPUT_INPUT, .index = 1, .metadata = l.outputs[1].metadata, .offset = 12};
    l.inputs[1] = l.w.host.retain(l.w.host.user, l.recorded[0]);
    nt_fill(&l.w, l.recorded[0], 30);
    T_OK(t, l.w.host.make_outputs(l.w.host.user, &input, 1, l.inputs, &l.more[0]));
    T_EQ(t, nt_first(&l.w, l.more[0]), 33);
    let_go(&l.more[0]);
    let_go(&l.inputs[1]);
    rondo_array *part = NULL;
    const int64_t many = 64;
    T_OK(t, rondo_array_create(l.w.stream, RONDO_DTYPE_F32, 1, &many, &l.recorded[3]));
    nt_fill(&l.w, l.recorded[3], 200);
    T_OK(t, rondo_array_alias(l.recorded[3], 2, shape, NULL, 8, &part));
    l.inputs[1] = part;
    T_OK(t, l.w.host.make_outputs(l.w.host.user, &input, 1, l.inputs, &l.more[0]));
    T_EQ(t, nt_first(&l.w, l.more[0]), 211);
    let_go(&l.more[0]);
    input.offset = -16;
    T_OK(t, l.w.host.make_outputs(l.w.host.user, &input, 1, l.inputs, &l.more[0]));
    T_EQ(t, nt_first(&l.w, l.more[0]), 204);
    let_go(&l.more[0]);
    input.offset = -36;
    T_FAILS(t, l.w.host.make_outputs(l.w.host.user, &input, 1, l.inputs, &l.more[0]), OUT_OF_RANGE, NULL);
    input.offset = 12;
    let_go(&l.inputs[1]);
    T_OK(t, rondo_array_create(l.w.stream, RONDO_DTYPE_F32, 1, &one, &part));
    l.inputs[1] = part;
    T_FAILS(t, l.w.host.make_outputs(l.w.host.user, &input, 1, l.inputs, &l.more[0]), OUT_OF_RANGE,
            "storage of 4 bytes");
    T_FAILS(t, l.w.host.make_outputs(l.w.host.user, &input, 1, NULL, &l.more[0]), INTERNAL, "input 1");
    /* The very object. */
    rondo_tree_output kept = {.kind = RONDO_TREE_OUTPUT_KEPT};
    T_OK(t, l.w.host.make_outputs(l.w.host.user, &kept, 1, NULL, &l.more[0]));
    T_TRUE(t, l.more[0] == NULL);
    T_OK(t, l.w.host.keep(l.w.host.user, l.recorded[2], true, &l.outputs[3].metadata));
    kept.metadata = l.outputs[3].metadata;
    T_OK(t, l.w.host.make_outputs(l.w.host.user, &kept, 1, NULL, &l.more[0]));
    T_TRUE(t, l.more[0] == l.recorded[2]);
}
NT_BOTH(test_outputs_on_what_is_there)

/* The last output cannot be made: none is, and no lease is told of a storage that never was. */
static void test_all_outputs_or_none(rondo_test *t) {
    leased l;
    leased_open(t, &l, "cpu", NULL);
    for (uint32_t i = 3; i < OUTPUTS; i++)
        T_OK(t, l.w.host.keep(l.w.host.user, l.recorded[2], false, &l.outputs[i].metadata));
    l.outputs[3].kind = l.outputs[4].kind = RONDO_TREE_OUTPUT_FRESH;
    l.outputs[3].lease = &l.leases[3];
    l.outputs[4].lease = &l.leases[4];
    l.outputs[5].kind = RONDO_TREE_OUTPUT_INPUT;
    uint64_t live = nt_live(&l.w);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < OUTPUTS; i++) {
            if (l.outputs[i].lease) l.outputs[i].epoch = lt_grant(l.outputs[i].lease);
        }
        T_FAILS(t, l.w.host.make_outputs(l.w.host.user, l.outputs, OUTPUTS, l.inputs, l.made), INTERNAL, "input 0");
        for (uint32_t i = 0; i < OUTPUTS; i++) T_TRUE(t, l.made[i] == NULL && atomic_load(&l.leases[i].ends) == 0);
    }
    T_EQ(t, nt_live(&l.w), live);
    l.inputs[0] = l.w.host.retain(l.w.host.user, l.recorded[2]);
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        if (l.outputs[i].lease) l.outputs[i].epoch = lt_grant(l.outputs[i].lease);
    }
    rondo_status status = l.w.host.make_outputs(l.w.host.user, l.outputs, OUTPUTS, l.inputs, l.made);
    if (status) { /* for want of memory: the same */
        for (uint32_t i = 0; i < OUTPUTS; i++) T_TRUE(t, l.made[i] == NULL && atomic_load(&l.leases[i].ends) == 0);
    }
    T_OK(t, status);
    for (uint32_t i = 0; i < OUTPUTS; i++) let_go(&l.made[i]);
    T_EQ(t, atomic_load(&l.leases[4].ends), 1);
    let_go(&l.inputs[0]);
}

/* The recording goes, and the table, while outputs are held. */
static void test_outputs_outlive_their_recording(rondo_test *t) {
    leased l;
    leased_open(t, &l, "cpu", NULL);
    T_OK(t, leased_make(&l, l.made));
    T_OK(t, leased_make(&l, l.more));
    let_go(&l.more[2]);
    for (uint32_t i = 0; i < 3; i++) {
        l.w.host.drop(l.w.host.user, l.outputs[i].metadata);
        l.outputs[i].metadata = NULL;
    }
    l.w.host.drop(l.w.host.user, NULL);
    T_EQ(t, ((rondo_array *)l.made[0])->shape[1], 3);
    let_go(&l.more[0]);
    l.w.host.destroy(l.w.host.user);
    l.w.host.destroy = NULL;
    T_EQ(t, ((rondo_array *)l.more[1])->shape[0], 3);
    let_go(&l.made[2]);
    let_go(&l.more[1]);
    T_EQ(t, atomic_load(&l.leases[2].ends), 2);
    for (uint32_t i = 0; i < OUTPUTS; i++) T_EQ(t, atomic_load(&l.leases[i].wrong), 0);
}

/* ------------------------------------------------------------------------------------------------------- copies */

typedef struct kept_of {
    native_world *w;
    void *metadata;
} kept_of;

static void drop_kept(kept_of *kept) { kept->w->host.drop(kept->w->host.user, kept->metadata); }

static void test_input_buffers_and_their_copies(rondo_test *t, const char *device) {
    native_world w;
    static rondo_array *source, *base, *host;
    static void *buffer, *metadata, *none;
    static kept_of kept;
    const int64_t sixteen = 16, shape[] = {3, 2}, spread[] = {4, 0};
    source = base = host = NULL;
    buffer = metadata = none = NULL;
    nt_open(t, &w, device, NULL);
    T_DEFER(t, nt_release, &base);
    T_DEFER(t, nt_release, &source);
    T_DEFER(t, nt_release, &host);
    T_DEFER(t, let_go, &buffer);
    T_OK(t, rondo_array_create(w.stream, RONDO_DTYPE_F32, 1, &sixteen, &base));
    T_OK(t, rondo_array_alias(base, 2, shape, spread, 2, &source)); /* 2, 2; 6, 6; 10, 10 */
    T_OK(t, w.host.make_input(w.host.user, source, w.stream, &buffer));
    rondo_array *made = buffer;
    T_TRUE(t, made->bytes == 36 && made->offset == 0 && made->strides[0] == 4 && made->strides[1] == 0);
    T_TRUE(t, made->word == source->word && rondo__storage_bytes(made->storage) == 36);
    T_OK(t, w.host.keep(w.host.user, buffer, false, &metadata));
    kept = (kept_of){&w, metadata};
    T_DEFER(t, drop_kept, &kept);
    nt_fill(&w, base, 100);
    uint64_t pointers[2], words[2];
    void *both[] = {made, source};
    T_TRUE(t, w.host.facts(w.host.user, both, 2, pointers, words));
    rondo_tree_copy copy = {pointers[0], pointers[1], 36, source, metadata};
    T_OK(t, w.host.copy_inputs(w.host.user, w.stream, &copy, 1));
    for (uint64_t i = 0; i < 3; i++) T_EQ(t, nt_at(&w, pointers[0] + 16 * i), 102 + 4 * i);
    copy.tensor = base;
    T_FAILS(t, w.host.copy_inputs(w.host.user, w.stream, &copy, 1), INVALID_ARGUMENT, "another form");
    T_OK(t, rondo_array_create_host(w.device, RONDO_DTYPE_F32, 1, &sixteen, &host));
    T_FAILS(t, w.host.make_input(w.host.user, host, w.stream, &none), UNSUPPORTED, "not on device");
}
NT_BOTH(test_input_buffers_and_their_copies)

static void test_copies_to_be_owned(rondo_test *t, const char *device) {
    leased l;
    static void *copies[4];
    rondo_array *host = NULL, *number = NULL;
    const int64_t four = 4;
    void *pointer = NULL;
    memset(copies, 0, sizeof copies);
    leased_open(t, &l, device, NULL);
    for (int i = 0; i < 4; i++) T_DEFER(t, let_go, &copies[i]);
    T_OK(t, leased_make(&l, l.made));
    nt_fill(&l.w, l.made[0], 60);
    T_OK(t, l.w.host.own(l.w.host.user, l.w.stream, l.made[1], &copies[0]));
    let_go(&l.made[1]);
    let_go(&l.made[0]);
    T_EQ(t, atomic_load(&l.leases[0].ends), 1);
    T_EQ(t, nt_first(&l.w, copies[0]), 63);
    rondo_array *copy = copies[0];
    T_TRUE(t, copy->bytes == 12 && copy->offset == 0 && !rondo__storage_lease(copy->storage));
    T_DEFER(t, nt_release, &host);
    T_OK(t, rondo_array_create_host(l.w.device, RONDO_DTYPE_F32, 1, &four, &host));
    T_OK(t, rondo_array_data(host, &pointer));
    for (int i = 0; i < 4; i++) ((float *)pointer)[i] = (float)i;
    T_OK(t, l.w.host.own(l.w.host.user, l.w.stream, host, &copies[1]));
    ((float *)pointer)[2] = 99;
    T_OK(t, rondo_array_data(copies[1], &pointer));
    T_EQ(t, ((float *)pointer)[2], 2);
    copy = copies[1];
    T_TRUE(t, copy->word == host->word && copy->dtype == RONDO_DTYPE_F32 && copy->shape[0] == 4);
    T_DEFER(t, nt_release, &number);
    T_OK(t, rondo_array_create_value(l.w.device, 5, &number));
    T_OK(t, l.w.host.own(l.w.host.user, l.w.stream, number, &copies[2]));
    T_TRUE(t, copies[2] == number);
    T_OK(t, l.w.host.own(l.w.host.user, l.w.stream, NULL, &copies[3]));
    T_TRUE(t, copies[3] == NULL);
}
NT_BOTH(test_copies_to_be_owned)

static void test_outputs_move_out(rondo_test *t, const char *device) {
    leased l;
    leased_open(t, &l, device, NULL);
    T_OK(t, leased_make(&l, l.made));
    nt_fill(&l.w, l.made[0], 70);
    uint64_t live = nt_live(&l.w);
    void *storage = rondo_tree_lease_storage(&l.leases[0]);
    T_OK(t, l.w.host.evacuate(l.w.host.user, l.w.stream, storage, l.leases[0].pointer, 64));
    (void)lt_grant(&l.leases[0]); /* to another */
    T_EQ(t, nt_live(&l.w), live + 1);
    T_EQ(t, nt_first(&l.w, l.made[1]), 73);
    T_OK(t, l.w.host.check(l.w.host.user, l.made[0]));
    T_FAILS(t, l.w.host.evacuate(l.w.host.user, l.w.stream, storage, l.leases[0].pointer, 64), NOT_FOUND,
            "other memory");
    T_EQ(t, nt_live(&l.w), live + 1);
    let_go(&l.made[0]);
    let_go(&l.made[1]);
    T_EQ(t, nt_live(&l.w), live);
    T_EQ(t, atomic_load(&l.leases[0].ends), 0); /* it had forgotten it */
    T_FAILS(t, l.w.host.evacuate(l.w.host.user, l.w.stream, storage, l.leases[0].pointer, 64), NOT_FOUND, "ended");
    /* Resizing moves out, too, and tells. */
    nt_fill(&l.w, l.made[2], 80);
    T_OK(t, rondo_array_resize(l.made[2], l.w.stream, 256));
    T_EQ(t, atomic_load(&l.leases[2].ends), 1);
    T_EQ(t, nt_first(&l.w, l.made[2]), 80);
    let_go(&l.made[2]);
    T_EQ(t, atomic_load(&l.leases[2].ends), 1);
    T_EQ(t, nt_live(&l.w), live);
    T_OK(t, leased_make(&l, l.made)); /* their units are as good as new */
    T_TRUE(t, rondo__storage_address(((rondo_array *)l.made[2])->storage) == l.leases[2].pointer);
}
NT_BOTH(test_outputs_move_out)

static int64_t generation_of(void *user) { return *(int64_t *)user; }

static void test_the_table(rondo_test *t) {
    native_world w;
    int64_t step = -7;
    rondo_array_host_options options = RONDO_ARRAY_HOST_OPTIONS_INIT;
    rondo_tensor_host host = RONDO_TENSOR_HOST_INIT, unset = {0};
    options.generation = generation_of;
    options.generation_user = &step;
    options.serial = 1;
    nt_open(t, &w, "cpu", &options);
    T_EQ(t, w.host.generation(w.host.user), -7);
    T_TRUE(t, w.host.flags == RONDO_TENSOR_HOST_SERIAL && w.host.struct_size == sizeof host);
    T_OK(t, rondo_tensor_host_native(w.device, NULL, &host));
    T_TRUE(t, !host.flags && !host.generation);
    host.destroy(host.user);
    T_FAILS(t, rondo_tensor_host_native(NULL, NULL, &host), INVALID_ARGUMENT, "device");
    T_FAILS(t, rondo_tensor_host_native(w.device, NULL, &unset), INVALID_ARGUMENT, "RONDO_TENSOR_HOST_INIT");
    options.struct_size = 0;
    T_FAILS(t, rondo_tensor_host_native(w.device, &options, &host), INVALID_ARGUMENT, "RONDO_ARRAY_HOST_OPTIONS_INIT");
}

RONDO_TEST_MAIN(NT(test_facts_of_each_place), NT(test_a_model_runs), NT_ENTRIES(test_an_adopted_storage_tells_its_end),
                NT(test_memory_that_was_used_again), NT_ENTRIES(test_outputs_are_used_again),
                NT(test_a_view_keeps_an_output), NT_ENTRIES(test_outputs_on_what_is_there),
                NT(test_all_outputs_or_none), NT(test_outputs_outlive_their_recording),
                NT_ENTRIES(test_input_buffers_and_their_copies), NT_ENTRIES(test_copies_to_be_owned),
                NT_ENTRIES(test_outputs_move_out), NT(test_the_table))
