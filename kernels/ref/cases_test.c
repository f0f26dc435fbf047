/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue against what other implementations give: testdata/cases.bin (make_cases.py says whose) holds operators
 * with inputs, attributes and outputs. Integers must be equal, floats within one unit in the last place of float32. */
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "kernels/ref/ref.h"
#include "tests/harness/harness.h"

rondo_status rondo_plugin_entry_ref(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api);

enum { CASES_REFUSED = 255, CASES_OPERANDS = 16, CASES_GUARD = 64, CASES_FILE_MAX = 1 << 20 };

static unsigned char cases_file[CASES_FILE_MAX];
static size_t cases_size;

/* ------------------------------------------------------------------------------------------- reading the file */

typedef struct cases_reader {
    rondo_test *t;
    size_t at;
} cases_reader;

static const void *cases_take(cases_reader *r, size_t size) {
    T_TRUE(r->t, size <= cases_size - r->at);
    const void *data = cases_file + r->at;
    r->at += size;
    return data;
}

#define CASES_NUMBER(name, type)                                   \
    static type name(cases_reader *r) {                            \
        type value;                                                \
        memcpy(&value, cases_take(r, sizeof value), sizeof value); \
        return value;                                              \
    }
CASES_NUMBER(cases_u8, uint8_t)
CASES_NUMBER(cases_u32, uint32_t)
CASES_NUMBER(cases_i64, int64_t)
CASES_NUMBER(cases_f32, float)
CASES_NUMBER(cases_f64, double)

typedef struct cases_operand {
    rondo_operand operand;
    int64_t dims[RONDO_RANK_MAX];
    const void *file; /* unaligned */
    size_t bytes;
} cases_operand;

typedef struct cases_attribute {
    int64_t ints[16];
    float floats[16];
    rondo_string strings[8];
    char text[8][64];
    cases_operand tensor;
    uint64_t value[4];
    rondo_tensor_view view;
} cases_attribute;

typedef struct cases_case {
    uint32_t number;
    char name[32];
    uint8_t reason;
    double tolerance;
    rondo_attribute attributes[16];
    cases_attribute values[16];
    char attribute_names[16][48];
    cases_operand inputs[CASES_OPERANDS], outputs[CASES_OPERANDS];
    rondo_operand in[CASES_OPERANDS], out[CASES_OPERANDS];
    rondo_kernel_request request;
} cases_case;

static void cases_text(cases_reader *r, char *out, size_t capacity) {
    size_t length = cases_u8(r);
    T_TRUE(r->t, length < capacity);
    memcpy(out, cases_take(r, length), length);
    out[length] = '\0';
}

static void cases_read_operand(cases_reader *r, cases_operand *o) {
    o->operand = (rondo_operand){.dtype = cases_u8(r), .rank = cases_u8(r), .dims = o->dims};
    int64_t count = 1;
    T_TRUE(r->t, o->operand.rank <= RONDO_RANK_MAX);
    for (int32_t d = 0; d < o->operand.rank; d++) {
        o->dims[d] = cases_u32(r);
        count *= o->dims[d];
    }
    o->bytes = o->operand.dtype == RONDO_DTYPE_UNDEFINED ? 0 : (size_t)count * (rondo_dtype_bits(o->operand.dtype) / 8);
    o->file = cases_take(r, o->bytes);
}

static void cases_read_attribute(cases_reader *r, rondo_attribute *a, cases_attribute *v, char name[48]) {
    cases_text(r, name, 48);
    *a = (rondo_attribute){.name = name, .kind = cases_u8(r), .count = cases_u32(r)};
    T_TRUE(r->t, a->count <= (a->kind == RONDO_ATTRIBUTE_STRINGS ? 8u : 16u));
    switch (a->kind) {
    case RONDO_ATTRIBUTE_INT: a->value.i = cases_i64(r); break;
    case RONDO_ATTRIBUTE_FLOAT: a->value.f = cases_f32(r); break;
    case RONDO_ATTRIBUTE_INTS:
        for (uint32_t i = 0; i < a->count; i++) v->ints[i] = cases_i64(r);
        a->value.ints = v->ints;
        break;
    case RONDO_ATTRIBUTE_FLOATS:
        for (uint32_t i = 0; i < a->count; i++) v->floats[i] = cases_f32(r);
        a->value.floats = v->floats;
        break;
    case RONDO_ATTRIBUTE_STRING:
    case RONDO_ATTRIBUTE_STRINGS:
        for (uint32_t i = 0; i < a->count; i++) {
            cases_text(r, v->text[i], sizeof v->text[i]);
            v->strings[i] = (rondo_string){v->text[i], strlen(v->text[i])};
        }
        if (a->kind == RONDO_ATTRIBUTE_STRING) {
            a->value.s = v->strings[0];
        } else {
            a->value.strings = v->strings;
        }
        break;
    default:
        T_EQ(r->t, a->kind, RONDO_ATTRIBUTE_TENSOR);
        cases_read_operand(r, &v->tensor);
        memcpy(v->value, v->tensor.file, v->tensor.bytes);
        v->view = (rondo_tensor_view){.data = v->value,
                                      .device_type = 1,
                                      .rank = v->tensor.operand.rank,
                                      .dtype = v->tensor.operand.dtype,
                                      .shape = v->tensor.dims};
        a->value.tensor = &v->view;
    }
}

static void cases_read(cases_reader *r, cases_case *c) {
    cases_text(r, c->name, sizeof c->name);
    c->reason = cases_u8(r);
    c->tolerance = cases_f64(r);
    uint32_t attributes = cases_u8(r), inputs, outputs;
    T_TRUE(r->t, attributes <= 16);
    for (uint32_t i = 0; i < attributes; i++) {
        cases_read_attribute(r, &c->attributes[i], &c->values[i], c->attribute_names[i]);
    }
    inputs = cases_u8(r);
    T_TRUE(r->t, inputs <= CASES_OPERANDS);
    for (uint32_t i = 0; i < inputs; i++) {
        cases_read_operand(r, &c->inputs[i]);
        c->in[i] = c->inputs[i].operand;
    }
    outputs = cases_u8(r);
    T_TRUE(r->t, outputs <= CASES_OPERANDS);
    for (uint32_t i = 0; i < outputs; i++) {
        cases_read_operand(r, &c->outputs[i]);
        c->out[i] = c->outputs[i].operand;
    }
    c->request = (rondo_kernel_request){.struct_size = sizeof c->request,
                                        .input_count = inputs,
                                        .output_count = outputs,
                                        .attribute_count = attributes,
                                        .operator_name = c->name,
                                        .inputs = c->in,
                                        .outputs = c->out,
                                        .attributes = c->attributes,
                                        .node_name = "case"};
}

static uint32_t cases_open(rondo_test *t, cases_reader *r) {
    char path[1024];
    const char *slash = strrchr(__FILE__, '/');
    (void)snprintf(path, sizeof path, "%.*stestdata/cases.bin", slash ? (int)(slash - __FILE__) + 1 : 0, __FILE__);
    if (cases_size == 0) {
        FILE *file = fopen(path, "rb");
        if (!file) rondo_test_fail(t, __FILE__, __LINE__, "cannot open %s", path);
        cases_size = fread(cases_file, 1, sizeof cases_file, file);
        (void)fclose(file);
    }
    *r = (cases_reader){t, 0};
    T_TRUE(t, memcmp(cases_take(r, 8), "RONDOREF", 8) == 0);
    return cases_u32(r);
}

/* ------------------------------------------------------------------------------------------------ the catalogue */

typedef struct cases_host {
    rondo_host_api api;
    const rondo_plugin_api *plugin;
    rondo_catalogue catalogue;
} cases_host;

static void cases_host_close(cases_host *h) {
    if (h->plugin) h->plugin->shutdown(h->plugin->self);
}

static void cases_host_open(rondo_test *t, cases_host *h) {
    *h = (cases_host){.api = {.struct_size = sizeof h->api,
                              .abi = RONDO_PLUGIN_ABI,
                              .allocator = *rondo_test_allocator(t),
                              .status_make = rondo__status_make,
                              .status_note = rondo__status_note,
                              .status_code = rondo_status_code,
                              .status_release = rondo_status_release}};
    T_OK(t, rondo_plugin_entry_ref(RONDO_PLUGIN_ABI, &h->api, &h->plugin));
    T_DEFER(t, cases_host_close, h);
    T_EQ(t, h->plugin->catalogue_count, 1);
    h->catalogue = h->plugin->catalogues[0];
}

typedef struct cases_kernel {
    const cases_host *host;
    rondo_kernel kernel;
} cases_kernel;

static void cases_kernel_release(cases_kernel *k) {
    if (k->kernel.function) k->host->catalogue.table->release(k->host->catalogue.self, k->kernel);
    k->kernel.function = NULL;
}

/* ------------------------------------------------------------------------------------------------------ running */

typedef struct cases_memory {
    unsigned char *in[CASES_OPERANDS], *out[CASES_OPERANDS], *scratch;
    size_t out_bytes[CASES_OPERANDS];
} cases_memory;

static void cases_memory_free(cases_memory *m) {
    for (int i = 0; i < CASES_OPERANDS; i++) {
        free(m->in[i]);
        free(m->out[i]);
    }
    free(m->scratch);
    *m = (cases_memory){.scratch = NULL};
}

static unsigned char *cases_allocate(size_t bytes) {
    unsigned char *p = malloc(bytes ? bytes : 1); /* exact, so that a sanitizer sees one byte too many */
    memset(p, 0xA5, bytes);
    return p;
}

static bool cases_float_equal(rondo_dtype dtype, double got, double want, double tolerance) {
    if (got != got || want != want) return got != got && want != want;
    if (got == want) return true;
    double size = want < 0 ? -want : want, error = got < want ? want - got : got - want;
    double unit = dtype == RONDO_DTYPE_F32 ? size * 1.2e-7 + 1.5e-45 : (size > 1 ? size : 1) * 2e-14;
    return error <= (unit > tolerance ? unit : tolerance);
}

static void cases_compare(rondo_test *t, const cases_case *c, uint32_t output, const unsigned char *got,
                          const char *how) {
    const cases_operand *want = &c->outputs[output];
    size_t size = rondo_dtype_bits(want->operand.dtype) / 8;
    for (size_t i = 0; i < want->bytes / size; i++) {
        const unsigned char *a = got + i * size, *b = (const unsigned char *)want->file + i * size;
        double x = 0, y = 0;
        bool same = memcmp(a, b, size) == 0;
        if (!same && want->operand.dtype == RONDO_DTYPE_F32) {
            float fx, fy;
            memcpy(&fx, a, 4);
            memcpy(&fy, b, 4);
            x = (double)fx;
            y = (double)fy;
            same = cases_float_equal(RONDO_DTYPE_F32, x, y, c->tolerance);
        } else if (!same && want->operand.dtype == RONDO_DTYPE_F64) {
            memcpy(&x, a, 8);
            memcpy(&y, b, 8);
            same = cases_float_equal(RONDO_DTYPE_F64, x, y, c->tolerance);
        }
        if (!same) {
            rondo_test_fail(t, __FILE__, __LINE__,
                            "case %u, %s, type %s, output %u[%zu], %s: %.9g (first byte %u) instead "
                            "of %.9g (%u)",
                            c->number, c->name, rondo_dtype_name(want->operand.dtype), output, i, how, x, a[0], y,
                            b[0]);
        }
    }
}

/* One run; `in_place` is the input whose memory output 0 gets, or -1. */
static void cases_run(rondo_test *t, const cases_case *c, const rondo_kernel_facts *facts, rondo_kernel kernel,
                      cases_memory *m, int in_place) {
    uint64_t words[2 * CASES_OPERANDS + 1] = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->request.input_count; i++) {
        if (c->in[i].dtype != RONDO_DTYPE_UNDEFINED) {
            m->in[i] = cases_allocate(c->inputs[i].bytes);
            memcpy(m->in[i], c->inputs[i].file, c->inputs[i].bytes);
        }
        /* Memory of no element may have no address. */
        words[n++] = c->inputs[i].bytes ? (uint64_t)(uintptr_t)m->in[i] : 0;
    }
    for (uint32_t i = 0; i < c->request.output_count; i++) {
        if (c->out[i].dtype != RONDO_DTYPE_UNDEFINED) m->out[i] = cases_allocate(c->outputs[i].bytes);
        words[n++] = c->outputs[i].bytes ? (uint64_t)(uintptr_t)m->out[i] : 0;
    }
    if (in_place >= 0) words[c->request.input_count] = words[in_place];
    if (facts->scratch_bytes > 0) {
        m->scratch = cases_allocate((size_t)facts->scratch_bytes);
        words[n] = (uint64_t)(uintptr_t)m->scratch;
    }
    int32_t reason = kernel.function(kernel.context, words);
    if (reason != c->reason) {
        rondo_test_fail(t, __FILE__, __LINE__, "case %u, %s, stops with %d, not %u", c->number, c->name, reason,
                        c->reason);
    }
    for (uint32_t i = 0; reason == 0 && i < c->request.output_count; i++) {
        if (c->out[i].dtype == RONDO_DTYPE_UNDEFINED) continue;
        bool shared = i == 0 && in_place >= 0;
        cases_compare(t, c, i, shared ? m->in[in_place] : m->out[i], shared ? "in place" : "apart");
    }
    cases_memory_free(m);
}

static void cases_check(rondo_test *t, const cases_host *h, const cases_case *c, cases_memory *m, cases_kernel *k) {
    rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
    const rondo_catalogue_table *table = h->catalogue.table;
    rondo_status status = table->find(h->catalogue.self, &c->request, &facts);
    if (c->reason == CASES_REFUSED) {
        rondo_code code = rondo_status_code(status);
        bool named = strstr(rondo_status_message(status), c->name) != NULL;
        rondo_status_release(status);
        if (!named || (code != RONDO_CODE_UNSUPPORTED && code != RONDO_CODE_INVALID_ARGUMENT)) {
            rondo_test_fail(t, __FILE__, __LINE__, "case %u, %s, was not refused by name", c->number, c->name);
        }
        return;
    }
    if (status) {
        char text[400];
        (void)rondo_status_format(status, text, sizeof text);
        rondo_status_release(status);
        rondo_test_fail(t, __FILE__, __LINE__, "case %u: %s", c->number, text);
    }
    T_OK(t, table->prepare(h->catalogue.self, &c->request, &k->kernel));
    cases_run(t, c, &facts, k->kernel, m, -1);
    for (int i = 0; i < (int)c->request.input_count; i++) {
        if (facts.in_place_inputs >> i & 1u) cases_run(t, c, &facts, k->kernel, m, i);
    }
    cases_kernel_release(k);
}

static void test_cases(rondo_test *t) {
    cases_reader r;
    cases_host h;
    cases_memory m = {.scratch = NULL};
    static cases_case c;
    cases_host_open(t, &h);
    cases_kernel k = {&h, {NULL, NULL}};
    T_DEFER(t, cases_memory_free, &m);
    T_DEFER(t, cases_kernel_release, &k);
    uint32_t count = cases_open(t, &r);
    T_TRUE(t, count > 1000);
    for (uint32_t i = 0; i < count; i++) {
        c.number = i;
        cases_read(&r, &c);
        cases_check(t, &h, &c, &m, &k);
    }
    T_EQ(t, r.at, cases_size);
}

/* Those have tests of their own (sized_test.c): their outputs are longer than what is written. */
static bool cases_is_sized(const char *name) {
    for (const rondo__ref_operator *op = rondo__ref_sized_operators; op->name; op++) {
        if (strcmp(op->name, name) == 0) return true;
    }
    return false;
}

/* Every operator that the catalogue lists is in the file, but for the contract kernels. */
static void test_every_operator_has_cases(rondo_test *t) {
    cases_host h;
    static cases_case c;
    cases_host_open(t, &h);
    const char *name;
    for (uint32_t i = 0; (name = h.catalogue.table->operator_at(h.catalogue.self, i)) != NULL; i++) {
        cases_reader r;
        uint32_t count = cases_open(t, &r), good = 0;
        if (strncmp(name, "rondo.", 6) == 0 || cases_is_sized(name)) continue;
        for (uint32_t n = 0; n < count; n++) {
            cases_read(&r, &c);
            good += strcmp(c.name, name) == 0 && c.reason == 0;
        }
        if (good < 1) rondo_test_fail(t, __FILE__, __LINE__, "%s has %u cases", name, good);
    }
}

/* Finding, preparing and releasing one good and one refused case of each operator, under failing allocations. */
static void test_find_and_prepare_without_memory(rondo_test *t) {
    cases_reader r;
    cases_host h;
    static cases_case c;
    char done[64][32];
    uint32_t known = 0;
    cases_host_open(t, &h);
    const rondo_catalogue_table *table = h.catalogue.table;
    uint32_t count = cases_open(t, &r);
    for (uint32_t i = 0; i < count; i++) {
        cases_read(&r, &c);
        char key[32];
        (void)snprintf(key, sizeof key, "%c%.30s", c.reason == CASES_REFUSED ? '-' : '+', c.name);
        uint32_t at = 0;
        while (at < known && strcmp(done[at], key) != 0) at++;
        if (at < known || known == 64) continue;
        memcpy(done[known++], key, sizeof key);
        rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
        rondo_kernel kernel;
        if (c.reason == CASES_REFUSED) {
            rondo_status status = table->prepare(h.catalogue.self, &c.request, &kernel);
            T_TRUE(t, status != RONDO_OK);
            if (rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY) T_OK(t, status);
            rondo_status_release(status);
            continue;
        }
        T_OK(t, table->find(h.catalogue.self, &c.request, &facts));
        T_OK(t, table->prepare(h.catalogue.self, &c.request, &kernel));
        table->release(h.catalogue.self, kernel);
    }
    T_TRUE(t, known >= 49);
}

RONDO_TEST_MAIN(T_PLAIN(test_cases), T_PLAIN(test_every_operator_has_cases), T(test_find_and_prepare_without_memory))
