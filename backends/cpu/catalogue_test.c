/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue itself: choosing a kernel set, the contract kernels, and find, pack, prepare and release when memory
 * runs out at every possible place. */
#include "compare_testing.h"

static void test_choose(rondo_test *t) {
    compare *c = compare_start(t, "base");
    T_STR(t, c->cpu.table->name, "cpu");
    T_STR(t, c->cpu.table->kernel_set, "cpu.base.1");
    T_EQ(t, c->cpu.table->flags, RONDO_CATALOGUE_HOST);
    rondo_catalogue other;
    setenv("RONDO_CPU_KERNELS", "v9", 1);
    rondo_status status = rondo__cpu_catalogue_create(&c->host, &other);
    setenv("RONDO_CPU_KERNELS", "", 1);
    T_FAILS(t, status, INVALID_ARGUMENT, "RONDO_CPU_KERNELS=v9");
    status = rondo__cpu_catalogue_create(&c->host, &other);
    unsetenv("RONDO_CPU_KERNELS");
    T_OK(t, status);
    uint32_t last = 0;
    while (compare_set(last + 1)) last++;
    const char *name = strchr(other.table->kernel_set, '.') + 1;
    const bool widest = strncmp(name, compare_set(last), strlen(compare_set(last))) == 0;
    rondo__cpu_catalogue_destroy(other.self);
    T_TRUE(t, widest);
}

static void test_operators(rondo_test *t) {
    compare *c = compare_start(t, "base");
    uint32_t n = 0;
    for (const char *name; (name = c->cpu.table->operator_at(c->cpu.self, n)) != NULL; n++) {
        for (uint32_t i = 0; i < n; i++) T_TRUE(t, strcmp(name, c->cpu.table->operator_at(c->cpu.self, i)) != 0);
    }
    T_TRUE(t, n > 40);
    T_TRUE(t, c->cpu.table->operator_at(c->cpu.self, n + 1000) == NULL);
}

static void catalogue_contract(compare *c, const rondo_catalogue *catalogue, const char *name, const uint64_t *words) {
    rondo_kernel kernel;
    rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
    compare_begin(c, name);
    T_OK(c->t, catalogue->table->find(catalogue->self, &c->request, &facts));
    T_EQ(c->t, facts.scratch_bytes + facts.packed_bytes, 0);
    T_OK(c->t, catalogue->table->prepare(catalogue->self, &c->request, &kernel));
    const int32_t reason = kernel.function(kernel.context, words);
    catalogue->table->release(catalogue->self, kernel);
    T_EQ(c->t, reason, 0);
}

static uint64_t catalogue_at(const void *p) { return (uint64_t)(uintptr_t)p; }

static void test_contract(rondo_test *t) {
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        const rondo_catalogue *cpu = &c->cpu;
        uint64_t numbers[7], copy[7];
        float a[37], b[37], sum[37];
        uint32_t random[19], other[19];
        catalogue_contract(c, cpu, "rondo.fill", (uint64_t[]){catalogue_at(numbers), 7, 0x123456789abcdef0u});
        for (int i = 0; i < 7; i++) T_TRUE(t, numbers[i] == 0x123456789abcdef0u);
        catalogue_contract(c, cpu, "rondo.iota", (uint64_t[]){catalogue_at(numbers), 7, 40});
        for (int i = 0; i < 7; i++) T_EQ(t, numbers[i], 40 + i);
        catalogue_contract(c, cpu, "rondo.copy", (uint64_t[]){catalogue_at(numbers), catalogue_at(copy), sizeof copy});
        T_TRUE(t, memcmp(numbers, copy, sizeof copy) == 0);
        for (int i = 0; i < 37; i++) {
            a[i] = (float)i;
            b[i] = 0.5f * (float)i;
            sum[i] = -1.0f;
        }
        catalogue_contract(c, cpu, "rondo.add", (uint64_t[]){catalogue_at(a), catalogue_at(b), catalogue_at(sum), 36});
        for (int i = 0; i < 36; i++) T_TRUE(t, sum[i] == 1.5f * (float)i);
        T_TRUE(t, sum[36] == -1.0f);
        catalogue_contract(c, cpu, "rondo.spin", (uint64_t[]){1000});
        for (uint64_t offset = 0; offset < 6; offset++) {
            const uint64_t seed = 0x1badcafe12345678u, far = offset == 5 ? 0xffffffffffu : offset;
            catalogue_contract(c, cpu, "rondo.philox", (uint64_t[]){catalogue_at(random), 19, seed, far});
            catalogue_contract(c, &c->ref, "rondo.philox", (uint64_t[]){catalogue_at(other), 19, seed, far});
            T_TRUE(t, memcmp(random, other, sizeof random) == 0);
        }
        /* The published answer for a zero key and counter. */
        catalogue_contract(c, cpu, "rondo.philox", (uint64_t[]){catalogue_at(random), 4, 0, 0});
        static const uint32_t known[4] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
        T_TRUE(t, memcmp(random, known, sizeof known) == 0);
    }
}

/* One request of each family with a context, a packed block or scratch. */
static void catalogue_requests(compare *c, int which) {
    static const int64_t m[2] = {3, 20}, k[2] = {20, 9}, y[2] = {3, 9}, x3[3] = {1, 4, 9}, w3[3] = {12, 4, 3};
    static const int64_t y3[3] = {1, 12, 9}, batch[3] = {2, 3, 20}, matrices[3] = {2, 20, 9}, products[3] = {2, 3, 9};
    static const int64_t lx[3] = {2, 1, 5}, lw[3] = {1, 24, 5}, lr[3] = {1, 24, 6}, ly[4] = {2, 1, 1, 6};
    switch (which) {
    case 0:
        compare_begin(c, "Gemm");
        compare_in(c, RONDO_DTYPE_F32, 2, m, false);
        compare_in(c, RONDO_DTYPE_F32, 2, k, true);
        compare_out(c, RONDO_DTYPE_F32, 2, y);
        break;
    case 1:
        compare_begin(c, "MatMul");
        compare_in(c, RONDO_DTYPE_F32, 3, batch, false);
        compare_in(c, RONDO_DTYPE_F32, 3, matrices, false);
        compare_out(c, RONDO_DTYPE_F32, 3, products);
        break;
    case 2:
        compare_begin(c, "Conv");
        compare_in(c, RONDO_DTYPE_F32, 3, x3, false);
        compare_in(c, RONDO_DTYPE_F32, 3, w3, true);
        compare_ints(c, "pads", 2, (int64_t[]){1, 1});
        compare_out(c, RONDO_DTYPE_F32, 3, y3);
        break;
    case 3:
        compare_begin(c, "LSTM");
        compare_in(c, RONDO_DTYPE_F32, 3, lx, false);
        compare_in(c, RONDO_DTYPE_F32, 3, lw, true);
        compare_in(c, RONDO_DTYPE_F32, 3, lr, true);
        compare_out(c, RONDO_DTYPE_F32, 4, ly);
        break;
    case 4:
        compare_begin(c, "Add");
        compare_in(c, RONDO_DTYPE_F32, 2, m, false);
        compare_in(c, RONDO_DTYPE_F32, 1, m + 1, false);
        compare_out(c, RONDO_DTYPE_F32, 2, m);
        break;
    case 5:
        compare_begin(c, "Transpose");
        compare_in(c, RONDO_DTYPE_F32, 2, m, false);
        compare_out(c, RONDO_DTYPE_F32, 2, (int64_t[]){20, 3});
        break;
    default:
        compare_begin(c, "Gather");
        compare_in(c, RONDO_DTYPE_F32, 2, m, false);
        compare_in(c, RONDO_DTYPE_I64, 1, m, true);
        if (c->in[1].data) memset(c->in[1].data, 0, c->in[1].bytes);
        compare_out(c, RONDO_DTYPE_F32, 2, m);
        break;
    }
}

/* Blocks of the requests fail too; then there is nothing to ask. */
static bool catalogue_whole(const compare *c) {
    for (uint32_t i = 0; i < c->request.input_count; i++) {
        if (!c->in[i].data) return false;
    }
    return c->out[0].data != NULL;
}

typedef struct catalogue_prepared {
    compare *c;
    rondo_kernel kernel;
} catalogue_prepared;

static void catalogue_release_prepared(catalogue_prepared *p) { p->c->cpu.table->release(p->c->cpu.self, p->kernel); }

static void test_out_of_memory(rondo_test *t) {
    static unsigned char packed[1 << 16] __attribute__((aligned(64)));
    static catalogue_prepared prepared[7]; /* the deferred calls outlive this frame */
    compare *c = compare_start(t, compare_set(0));
    if (!c) return;
    for (int which = 0; which < 7; which++) {
        rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
        catalogue_requests(c, which);
        if (!catalogue_whole(c)) return;
        T_OK(t, c->cpu.table->find(c->cpu.self, &c->request, &facts));
        T_TRUE(t, facts.packed_bytes <= sizeof packed);
        if (facts.packed_bytes > 0) T_OK(t, c->cpu.table->pack(c->cpu.self, &c->request, packed));
        prepared[which].c = c;
        T_OK(t, c->cpu.table->prepare(c->cpu.self, &c->request, &prepared[which].kernel));
        T_DEFER(t, catalogue_release_prepared, &prepared[which]);
    }
    /* Refused after its context was made: an index past the axis. */
    catalogue_requests(c, 6);
    if (!catalogue_whole(c)) return;
    rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
    memset(c->in[1].data, 1, c->in[1].bytes);
    const rondo_status status = c->cpu.table->find(c->cpu.self, &c->request, &facts);
    if (rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY) T_OK(t, status);
    T_FAILS(t, status, UNSUPPORTED, NULL);
}

RONDO_TEST_MAIN(T_PLAIN(test_choose), T_PLAIN(test_operators), T_PLAIN(test_contract), T(test_out_of_memory))
