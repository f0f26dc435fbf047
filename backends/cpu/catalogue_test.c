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

/* Requests that no compiler makes: any shapes, types, attributes, constants. Each is refused or becomes a kernel; what
 * is accepted with small operands is also run. */
static int64_t catalogue_strange_dim(compare *c, bool small) {
    static const int64_t dims[] = {0, 1, 2, 3, 4, 8, 9, -1, 1 << 20, INT32_MAX, INT64_MAX, INT64_MIN};
    return dims[compare_random(c, small ? 7 : 12)];
}

static void catalogue_strange_attributes(compare *c) {
    static const char *const ints[] = {"axis", "group", "hidden_size", "transA", "transB", "keepdims", "to", "layout"};
    static const char *const lists[] = {"pads", "strides", "dilations", "kernel_shape", "perm"};
    static const char *const words[] = {"edge", "reflect", "wrap", "SAME_UPPER", "VALID", "Relu", "reverse"};
    static const char *const named[] = {"mode", "auto_pad", "rondo.activation", "direction"};
    for (int i = 0; i < 2; i++) compare_int(c, ints[compare_random(c, 8)], catalogue_strange_dim(c, false));
    for (int i = 0; i < 2; i++) {
        int64_t list[5];
        for (int k = 0; k < 5; k++) list[k] = catalogue_strange_dim(c, compare_random(c, 4) > 0);
        compare_ints(c, lists[compare_random(c, 5)], (uint32_t)compare_random(c, 6), list);
    }
    compare_string(c, named[compare_random(c, 4)], words[compare_random(c, 7)]);
}

static void catalogue_strange_once(compare *c) {
    static const rondo_dtype types[] = {RONDO_DTYPE_F32, RONDO_DTYPE_I64, RONDO_DTYPE_I32, RONDO_DTYPE_BOOL};
    uint32_t count = 0;
    while (c->cpu.table->operator_at(c->cpu.self, count)) count++;
    const char *name = c->cpu.table->operator_at(c->cpu.self, (uint32_t)compare_random(c, count));
    if (strncmp(name, "rondo.", 6) == 0) return;
    compare_begin(c, name);
    const uint32_t inputs = (uint32_t)compare_random(c, 5), outputs = (uint32_t)compare_random(c, 3);
    const int32_t rank = (int32_t)compare_random(c, 5);
    const bool small = compare_random(c, 4) > 0;
    for (uint32_t i = 0; i < inputs + outputs; i++) {
        int64_t dims[6];
        const int32_t own = compare_random(c, 3) ? rank : (int32_t)compare_random(c, 6);
        const rondo_dtype type = types[compare_random(c, 6) ? 0 : compare_random(c, 4)];
        for (int32_t d = 0; d < own; d++) dims[d] = compare_random(c, 3) ? 2 : catalogue_strange_dim(c, true);
        if (i < inputs) {
            compare_in(c, type, own, dims, compare_random(c, 2));
        } else {
            compare_out(c, type, own, dims);
        }
        rondo_operand *operand = i < inputs ? &c->inputs[i] : &c->outputs[i - inputs];
        if (!small && !operand->constant && own > 0) {
            compare_operand *block = i < inputs ? &c->in[i] : &c->out[i - inputs];
            block->dims[0] = catalogue_strange_dim(c, false);
        }
    }
    catalogue_strange_attributes(c);
    rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
    rondo_status status = c->cpu.table->find(c->cpu.self, &c->request, &facts);
    if (status) {
        T_FAILS(c->t, status, UNSUPPORTED, NULL);
        return;
    }
    if (!small) {
        rondo_kernel kernel;
        T_OK(c->t, c->cpu.table->prepare(c->cpu.self, &c->request, &kernel));
        c->cpu.table->release(c->cpu.self, kernel);
        return;
    }
    unsigned char *out[COMPARE_OUTPUTS] = {0};
    (void)compare_run_on(c, &c->cpu, out, -1);
    for (uint32_t i = 0; i < COMPARE_OUTPUTS; i++) free(out[i]);
}

/* A good request with one or two things wrong: dims with blocks of that size, types, constants, numbers of attributes. */
static void catalogue_bent_once(compare *c) {
    catalogue_requests(c, (int)compare_random(c, 7));
    for (uint64_t bends = 1 + compare_random(c, 2); bends > 0; bends--) {
        const uint32_t i = (uint32_t)compare_random(c, c->request.input_count + 1);
        const bool in = i < c->request.input_count;
        rondo_operand *operand = in ? &c->inputs[i] : &c->outputs[0];
        compare_operand *block = in ? &c->in[i] : &c->out[0];
        const int64_t before = operand->rank > 0 ? block->dims[operand->rank - 1] : 0;
        switch (compare_random(c, 5)) {
        case 0: operand->constant = NULL; break;
        case 1: operand->constant = in ? block->data : NULL; break;
        case 2:
            if (c->request.attribute_count > 0) c->ints[0][compare_random(c, 2)] = catalogue_strange_dim(c, true);
            break;
        default:
            if (operand->rank > 0)
                block->dims[compare_random(c, (uint64_t)operand->rank)] = catalogue_strange_dim(c, true);
            if (before == 9 && compare_random(c, 2)) operand->rank--;
            block->bytes = (size_t)(rondo__cpu_elements(operand) * rondo__cpu_element_size(operand->dtype));
            free(block->data);
            block->data = calloc(block->bytes ? block->bytes : 1, 1);
            if (operand->constant) operand->constant = block->data;
        }
    }
    unsigned char *out[COMPARE_OUTPUTS] = {0};
    (void)compare_run_on(c, &c->cpu, out, -1);
    for (uint32_t i = 0; i < COMPARE_OUTPUTS; i++) free(out[i]);
}

static void test_strange_requests(rondo_test *t) {
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (int i = 0; i < 30000; i++) catalogue_strange_once(c);
        for (int i = 0; i < 10000; i++) catalogue_bent_once(c);
        compare_clear(c);
    }
}

RONDO_TEST_MAIN(T_PLAIN(test_choose), T_PLAIN(test_operators), T_PLAIN(test_contract), T(test_out_of_memory),
                T_PLAIN(test_strange_requests))
