/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin's entry, the contract kernels (Philox against the vectors that its authors publish), and requests that no
 * catalogue should trust. */
#include <time.h>

#include "base/status.h"
#include "kernels/ref/ref.h"
#include "tests/harness/harness.h"

rondo_status rondo_plugin_entry_ref(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api);

typedef struct ref_fixture {
    rondo_host_api host;
    const rondo_plugin_api *plugin;
    const rondo_catalogue_table *table;
    void *self;
} ref_fixture;

static void ref_fixture_close(ref_fixture *f) { f->plugin->shutdown(f->plugin->self); }

static void ref_fixture_open(rondo_test *t, ref_fixture *f) {
    *f = (ref_fixture){.host = {.struct_size = sizeof f->host,
                                .abi = RONDO_PLUGIN_ABI,
                                .allocator = *rondo_test_allocator(t),
                                .status_make = rondo__status_make,
                                .status_note = rondo__status_note,
                                .status_code = rondo_status_code,
                                .status_release = rondo_status_release}};
    T_OK(t, rondo_plugin_entry_ref(RONDO_PLUGIN_ABI, &f->host, &f->plugin));
    T_DEFER(t, ref_fixture_close, f);
    f->table = f->plugin->catalogues[0].table;
    f->self = f->plugin->catalogues[0].self;
}

static void test_entry(rondo_test *t) {
    ref_fixture f;
    const rondo_plugin_api *other;
    ref_fixture_open(t, &f);
    T_STR(t, f.plugin->name, "ref");
    T_STR(t, f.table->name, "ref");
    T_EQ(t, f.plugin->backend_count, 0);
    T_EQ(t, f.table->flags, RONDO_CATALOGUE_HOST);
    T_FAILS(t, rondo_plugin_entry_ref(RONDO_PLUGIN_ABI - 1u, &f.host, &other), UNSUPPORTED, "plugin interface");
    uint32_t count = 0;
    for (; f.table->operator_at(f.self, count); count++) {
        for (uint32_t i = 0; i < count; i++) {
            T_TRUE(t, strcmp(f.table->operator_at(f.self, i), f.table->operator_at(f.self, count)) != 0);
        }
    }
    T_EQ(t, count, 134 + 6);
    T_TRUE(t, f.table->operator_at(f.self, UINT32_MAX) == NULL);
}

/* ------------------------------------------------------------------------------------------------ contract kernels */

static int32_t ref_run_contract(rondo_test *t, const ref_fixture *f, const char *name, const uint64_t *words) {
    rondo_kernel_request request = RONDO_KERNEL_REQUEST_INIT;
    rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
    rondo_kernel kernel;
    request.operator_name = name;
    T_OK(t, f->table->find(f->self, &request, &facts));
    T_EQ(t, facts.scratch_bytes, 0);
    T_OK(t, f->table->prepare(f->self, &request, &kernel));
    int32_t reason = kernel.function(kernel.context, words);
    f->table->release(f->self, kernel);
    return reason;
}

static uint64_t ref_word(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

static void test_contract_kernels(rondo_test *t) {
    ref_fixture f;
    ref_fixture_open(t, &f);
    uint64_t numbers[5] = {9, 9, 9, 9, 9};
    const float a[3] = {1, 2, -3}, b[3] = {0.5f, -2, 3};
    float sum[3];
    char text[8] = "-------";
    T_EQ(t, ref_run_contract(t, &f, "rondo.fill", (uint64_t[]){ref_word(numbers), 4, ~(uint64_t)6}), 0);
    T_TRUE(t, numbers[0] == ~(uint64_t)6 && numbers[3] == ~(uint64_t)6 && numbers[4] == 9);
    T_EQ(t, ref_run_contract(t, &f, "rondo.iota", (uint64_t[]){ref_word(numbers), 3, (uint64_t)-1}), 0);
    T_TRUE(t, numbers[0] == UINT64_MAX && numbers[1] == 0 && numbers[2] == 1 && numbers[3] == ~(uint64_t)6);
    T_EQ(t, ref_run_contract(t, &f, "rondo.add", (uint64_t[]){ref_word(a), ref_word(b), ref_word(sum), 3}), 0);
    T_TRUE(t, sum[0] == 1.5f && sum[1] == 0 && sum[2] == 0);
    T_EQ(t, ref_run_contract(t, &f, "rondo.copy", (uint64_t[]){ref_word("abcdefg"), ref_word(text), 3}), 0);
    T_STR(t, text, "abc----");
    struct timespec before, after;
    (void)clock_gettime(CLOCK_MONOTONIC, &before);
    T_EQ(t, ref_run_contract(t, &f, "rondo.spin", (uint64_t[]){2000000}), 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &after);
    T_TRUE(t, (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec >= 2000000);
    static const char *const names[] = {"rondo.fill", "rondo.iota", "rondo.philox"};
    for (int i = 0; i < 3; i++) {
        T_EQ(t, ref_run_contract(t, &f, names[i], (uint64_t[]){0, 0, 1, 0}), 0);
        T_EQ(t, ref_run_contract(t, &f, names[i], (uint64_t[]){0, 1, 1, 0}), RONDO__REF_NO_ADDRESS);
    }
    T_EQ(t, ref_run_contract(t, &f, "rondo.copy", (uint64_t[]){0, 0, 0}), 0);
    T_EQ(t, ref_run_contract(t, &f, "rondo.copy", (uint64_t[]){0, ref_word(text), 1}), RONDO__REF_NO_ADDRESS);
    T_EQ(t, ref_run_contract(t, &f, "rondo.add", (uint64_t[]){ref_word(a), 0, ref_word(sum), 1}),
         RONDO__REF_NO_ADDRESS);
}

/* The known answers for philox4x32 with ten rounds that come with Random123. */
static void test_philox(rondo_test *t) {
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    ref_fixture f;
    ref_fixture_open(t, &f);
    for (int i = 0; i < 3; i++) {
        uint32_t got[4];
        rondo__ref_philox_block(known[i].counter, known[i].key, got);
        for (int w = 0; w < 4; w++) T_EQ(t, got[w], known[i].want[w]);
    }
    uint32_t whole[16], part[16];
    const uint64_t seed = 0x299f31d0a4093822u;
    T_EQ(t, ref_run_contract(t, &f, "rondo.philox", (uint64_t[]){ref_word(whole), 4, 0, 0}), 0);
    for (int w = 0; w < 4; w++) T_EQ(t, whole[w], known[0].want[w]);
    T_EQ(t, ref_run_contract(t, &f, "rondo.philox", (uint64_t[]){ref_word(whole), 16, seed, (uint64_t)3 << 32}), 0);
    for (uint64_t from = 0; from < 7; from++) { /* a stream is the same wherever one begins to read it */
        const uint64_t words[] = {ref_word(part), 9, seed, ((uint64_t)3 << 32) + from};
        T_EQ(t, ref_run_contract(t, &f, "rondo.philox", words), 0);
        T_TRUE(t, memcmp(part, whole + from, 9 * sizeof *part) == 0);
    }
    const uint32_t counter[4] = {3u << 30, 0, 0, 0}, key[2] = {0xa4093822, 0x299f31d0};
    rondo__ref_philox_block(counter, key, part);
    T_TRUE(t, memcmp(part, whole, sizeof counter) == 0);
}

/* -------------------------------------------------------------------------------------------- hostile requests */

static void test_refuses_hostile_requests(rondo_test *t) {
    ref_fixture f;
    ref_fixture_open(t, &f);
    const int64_t two[2] = {2, 2}, negative[2] = {-1, 2}, huge[2] = {INT64_MAX / 2, 3};
    const rondo_operand good = {.dtype = RONDO_DTYPE_F32, .rank = 2, .dims = two};
    rondo_operand in[70], out[1] = {good};
    for (int i = 0; i < 70; i++) in[i] = good;
    rondo_kernel_request request = {.struct_size = sizeof request,
                                    .input_count = 1,
                                    .output_count = 1,
                                    .operator_name = "Relu",
                                    .inputs = in,
                                    .outputs = out};
    rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
    rondo_kernel kernel;
    T_OK(t, f.table->find(f.self, &request, &facts));
    T_EQ(t, facts.in_place_inputs, 1);
    T_EQ(t, facts.packed_bytes, 0);
    T_FAILS(t, f.table->find(f.self, NULL, &facts), INVALID_ARGUMENT, "request");
    request.struct_size = 8;
    T_FAILS(t, f.table->find(f.self, &request, &facts), INVALID_ARGUMENT, "request");
    request.struct_size = sizeof request;
    request.operator_name = "Frobnicate";
    T_FAILS(t, f.table->prepare(f.self, &request, &kernel), UNSUPPORTED, "Frobnicate");
    request.operator_name = "Relu";
    request.node_name = "the node";
#define REF_BAD_INPUT(change, code, part)                                          \
    do {                                                                           \
        in[0] = good;                                                              \
        in[0].change;                                                              \
        T_FAILS(t, f.table->find(f.self, &request, &facts), code, part);           \
        T_FAILS(t, f.table->prepare(f.self, &request, &kernel), code, "the node"); \
    } while (0)
    REF_BAD_INPUT(rank = 17, UNSUPPORTED, "rank 17");
    REF_BAD_INPUT(rank = -1, UNSUPPORTED, "rank -1");
    REF_BAD_INPUT(dims = NULL, INVALID_ARGUMENT, "no dims");
    REF_BAD_INPUT(dims = negative, INVALID_ARGUMENT, "negative");
    REF_BAD_INPUT(dims = huge, INVALID_ARGUMENT, "address space");
    REF_BAD_INPUT(dtype = RONDO_DTYPE_F16, UNSUPPORTED, "data type");
    REF_BAD_INPUT(dtype = RONDO_DTYPE_STRING, UNSUPPORTED, "data type");
    REF_BAD_INPUT(dtype = 99, UNSUPPORTED, "data type");
    REF_BAD_INPUT(dtype = -5, UNSUPPORTED, "data type");
    REF_BAD_INPUT(dtype = RONDO_DTYPE_UNDEFINED, INVALID_ARGUMENT, "absent");
    REF_BAD_INPUT(format = RONDO_FORMAT_NHWC, UNSUPPORTED, "row-major");
    in[0] = good;
    request.input_count = 70;
    T_FAILS(t, f.table->find(f.self, &request, &facts), UNSUPPORTED, "70 inputs");
    request.operator_name = "Max";
    request.input_count = 62;
    T_OK(t, f.table->find(f.self, &request, &facts));
    request.input_count = 0;
    T_FAILS(t, f.table->find(f.self, &request, &facts), INVALID_ARGUMENT, "0 inputs");
    rondo_attribute attribute = {.name = NULL, .kind = RONDO_ATTRIBUTE_INT, .count = 1};
    request.operator_name = "Softmax";
    request.input_count = request.attribute_count = 1;
    request.attributes = &attribute;
    T_FAILS(t, f.table->find(f.self, &request, &facts), UNSUPPORTED, "attribute ''");
    attribute.name = "axi";
    T_FAILS(t, f.table->find(f.self, &request, &facts), UNSUPPORTED, "attribute 'axi'");
    attribute.name = "axis";
    attribute.value.i = INT64_MIN;
    T_FAILS(t, f.table->find(f.self, &request, &facts), INVALID_ARGUMENT, "axis");
    attribute.kind = RONDO_ATTRIBUTE_STRING;
    T_FAILS(t, f.table->find(f.self, &request, &facts), INVALID_ARGUMENT, "integer");
}

/* A dim that would overflow does not matter to a tensor without elements; and no address is asked for it. */
static void test_empty_tensors(rondo_test *t) {
    ref_fixture f;
    ref_fixture_open(t, &f);
    const int64_t dims[4] = {INT64_MAX, 0, INT64_MAX, 7};
    const rondo_operand empty = {.dtype = RONDO_DTYPE_I32, .rank = 4, .dims = dims};
    const rondo_operand in[2] = {empty, empty};
    static const char *const names[] = {"Add", "Mul", "Max", "Div", "Pow"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        rondo_kernel_request request = {.struct_size = sizeof request,
                                        .input_count = 2,
                                        .output_count = 1,
                                        .operator_name = names[i],
                                        .inputs = in,
                                        .outputs = &empty};
        rondo_kernel kernel;
        T_OK(t, f.table->prepare(f.self, &request, &kernel));
        T_EQ(t, kernel.function(kernel.context, (uint64_t[]){0, 0, 0}), 0);
        f.table->release(f.self, kernel);
    }
}

static void test_an_absent_address_stops(rondo_test *t) {
    ref_fixture f;
    ref_fixture_open(t, &f);
    const int64_t dims[1] = {3};
    const rondo_operand x = {.dtype = RONDO_DTYPE_I32, .rank = 1, .dims = dims};
    const rondo_operand in[2] = {x, x};
    int32_t a[3] = {1, 2, 3}, out[3] = {0, 0, 0};
    rondo_kernel_request request = {.struct_size = sizeof request,
                                    .input_count = 2,
                                    .output_count = 1,
                                    .operator_name = "Add",
                                    .inputs = in,
                                    .outputs = &x};
    rondo_kernel kernel;
    T_OK(t, f.table->prepare(f.self, &request, &kernel));
    for (int i = 0; i < 3; i++) {
        uint64_t words[3] = {ref_word(a), ref_word(a), ref_word(out)};
        words[i] = 0;
        T_EQ(t, kernel.function(kernel.context, words), RONDO__REF_NO_ADDRESS);
    }
    T_EQ(t, kernel.function(kernel.context, (uint64_t[]){ref_word(a), ref_word(a), ref_word(out)}), 0);
    T_EQ(t, out[2], 6);
    f.table->release(f.self, kernel);
}

RONDO_TEST_MAIN(T(test_entry), T(test_contract_kernels), T(test_philox), T(test_refuses_hostile_requests),
                T(test_empty_tensors), T(test_an_absent_address_stops))
