/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking up over catalogues that the test brings itself, and running what was found. */
#include "kernel/kernel.h"

#include <stdio.h>

#include "base/status.h"
#include "harness/harness.h"

typedef struct shelf {
    rondo_catalogue_table table;
    rondo_kernel_facts facts;
    rondo_code refusal; /* OK: accepts */
    int32_t result;     /* of its kernel */
    int found, packed, prepared, released;
} shelf;

/* The one running: kernels see words alone. */
static uint64_t seen[8];
static unsigned char packed_seen, scratch_aligned, packed_aligned;

static const char *shelf_operator_at(void *self, uint32_t index) {
    (void)self;
    return index ? NULL : "Op";
}

static rondo_status shelf_find(void *self, const rondo_kernel_request *request, rondo_kernel_facts *out_facts) {
    shelf *s = self;
    (void)request;
    s->found++;
    if (s->refusal) {
        return rondo__status_make(s->refusal, RONDO_LAYER_KERNEL, __FILE__, 1, "because of %s", s->table.name);
    }
    *out_facts = s->facts;
    return RONDO_OK;
}

static rondo_status shelf_pack(void *self, const rondo_kernel_request *request, void *out) {
    shelf *s = self;
    (void)request;
    s->packed++;
    memset(out, 0x5a, (size_t)s->facts.packed_bytes);
    return RONDO_OK;
}

/* in 0, in 1 (absorbed), out, scratch, packed */
static int32_t shelf_kernel(const void *context, const uint64_t *words) {
    const shelf *s = context;
    memcpy(seen, words, sizeof(uint64_t) * 5);
    scratch_aligned = words[3] % 64 == 0;
    packed_aligned = words[4] % 64 == 0;
    packed_seen = *(const unsigned char *)(uintptr_t)words[4];
    memset((void *)(uintptr_t)words[3], 1, (size_t)s->facts.scratch_bytes);
    *(float *)(uintptr_t)words[2] = *(const float *)(uintptr_t)words[0] + 1;
    return s->result;
}

static rondo_status shelf_prepare(void *self, const rondo_kernel_request *request, rondo_kernel *out_kernel) {
    shelf *s = self;
    (void)request;
    s->prepared++;
    *out_kernel = (rondo_kernel){shelf_kernel, s};
    return RONDO_OK;
}

static void shelf_release(void *self, rondo_kernel kernel) {
    shelf *s = self;
    if (kernel.context == self) s->released++;
}

static void shelf_init(shelf *s, const char *name, uint32_t flags) {
    *s = (shelf){.facts = RONDO_KERNEL_FACTS_INIT};
    s->table = (rondo_catalogue_table){sizeof s->table, flags,      name,          "1",          shelf_operator_at,
                                       shelf_find,      shelf_pack, shelf_prepare, shelf_release};
}

static rondo__kernel_set set_of(shelf *a, shelf *b) {
    rondo__kernel_set set = {.count = 2};
    set.catalogues[0] = (rondo_catalogue){&a->table, a};
    set.catalogues[1] = (rondo_catalogue){&b->table, b};
    return set;
}

static rondo_kernel_request request_of(const char *node) {
    rondo_kernel_request request = RONDO_KERNEL_REQUEST_INIT;
    request.operator_name = "Op";
    request.node_name = node;
    return request;
}

static void test_the_first_that_accepts(rondo_test *t) {
    shelf a, b;
    shelf_init(&a, "a", RONDO_CATALOGUE_HOST);
    shelf_init(&b, "b", RONDO_CATALOGUE_HOST);
    rondo__kernel_set set = set_of(&a, &b);
    rondo_kernel_request request = request_of("n");
    rondo_catalogue found;
    rondo_kernel_facts facts;
    b.facts.scratch_bytes = 5;
    T_OK(t, rondo__kernel_find(&set, &request, &found, &facts));
    T_TRUE(t, found.self == &a && b.found == 0);
    a.refusal = RONDO_CODE_UNSUPPORTED;
    T_OK(t, rondo__kernel_find(&set, &request, &found, &facts));
    T_TRUE(t, found.self == &b && facts.scratch_bytes == 5);
    T_TRUE(t, rondo__kernel_set_named(&set, "b")->self == &b);
    T_TRUE(t, rondo__kernel_set_named(&set, "c") == NULL);
}

static void test_refusals_are_kept(rondo_test *t) {
    shelf a, b;
    shelf_init(&a, "a", 0);
    shelf_init(&b, "b", 0);
    rondo__kernel_set set = set_of(&a, &b);
    rondo_kernel_request request = request_of("n");
    rondo_catalogue found;
    rondo_kernel_facts facts;
    a.refusal = b.refusal = RONDO_CODE_UNSUPPORTED;
    T_FAILS(t, rondo__kernel_find(&set, &request, &found, &facts), UNSUPPORTED, "node 'n', operator 'Op'");
    if (rondo_test_failing(t)) return; /* then notes may be missing */
    T_FAILS(t, rondo__kernel_find(&set, &request, &found, &facts), UNSUPPORTED, "catalogue 'a': because of a");
    T_FAILS(t, rondo__kernel_find(&set, &request, &found, &facts), UNSUPPORTED, "catalogue 'b': because of b");
    request.node_name = NULL;
    T_FAILS(t, rondo__kernel_find(&set, &request, &found, &facts), UNSUPPORTED,
            "operator 'Op': no kernel catalogue accepts");
    set.count = 0;
    T_FAILS(t, rondo__kernel_find(&set, &request, &found, &facts), UNSUPPORTED, "no kernel catalogue to ask");
    request.operator_name = NULL;
    T_FAILS(t, rondo__kernel_find(&set, &request, &found, &facts), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo__kernel_find(&set, NULL, &found, &facts), INVALID_ARGUMENT, NULL);
}

/* No memory is no refusal: the next catalogue is not asked. */
static void test_other_failures_end_the_search(rondo_test *t) {
    shelf a, b;
    shelf_init(&a, "a", 0);
    shelf_init(&b, "b", 0);
    rondo__kernel_set set = set_of(&a, &b);
    rondo_kernel_request request = request_of("n");
    rondo_catalogue found;
    rondo_kernel_facts facts;
    a.refusal = RONDO_CODE_CORRUPT;
    T_FAILS(t, rondo__kernel_find(&set, &request, &found, &facts), CORRUPT, "because of a");
    T_EQ(t, b.found, 0);
}

static void test_runs_on_host_memory(rondo_test *t) {
    shelf a, b;
    float in = 4, out = 0;
    char weights[4];
    shelf_init(&a, "device_only", 0);
    shelf_init(&b, "b", RONDO_CATALOGUE_HOST);
    b.facts.scratch_bytes = 100;
    b.facts.packed_bytes = 10;
    b.facts.absorbed_inputs = 2;
    rondo__kernel_set set = set_of(&a, &b);
    rondo_kernel_request request = request_of("n");
    const void *inputs[2] = {&in, weights};
    void *outputs[1] = {&out};
    request.input_count = 2;
    request.output_count = 1;
    rondo_status status = rondo__kernel_run(&set, rondo_test_allocator(t), &request, inputs, outputs);
    T_EQ(t, a.found, 0); /* its kernels do not run on the host */
    T_EQ(t, b.prepared, b.released);
    T_OK(t, status);
    T_NEAR(t, out, 5, 0);
    T_TRUE(t, seen[0] == (uint64_t)(uintptr_t)&in && seen[1] == 0 && seen[2] == (uint64_t)(uintptr_t)&out);
    T_TRUE(t, packed_seen == 0x5a && packed_aligned && scratch_aligned && b.packed == 1);
    b.result = -3;
    T_FAILS(t, rondo__kernel_run(&set, rondo_test_allocator(t), &request, inputs, outputs), KERNEL_FAILED,
            "node 'n': kernel 'Op' of catalogue 'b' failed with reason -3");
    b.table.pack = NULL;
    T_FAILS(t, rondo__kernel_run(&set, rondo_test_allocator(t), &request, inputs, outputs), INTERNAL, "no pack entry");
    b.facts.scratch_bytes = UINT64_MAX;
    T_FAILS(t, rondo__kernel_run(&set, rondo_test_allocator(t), &request, inputs, outputs), OUT_OF_MEMORY, NULL);
    T_EQ(t, b.prepared, b.released);
}

RONDO_TEST_MAIN(T(test_the_first_that_accepts), T(test_refusals_are_kept), T(test_other_failures_end_the_search),
                T(test_runs_on_host_memory))
