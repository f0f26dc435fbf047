/* SPDX-License-Identifier: Apache-2.0
 *
 * For this folder's tests: one operator run by this catalogue and by the reference catalogue on the same numbers.
 *
 * Operands lie at the end of blocks of their exact size, so that a sanitizer sees one byte too many; scratch is full of
 * NaN before a run, and outputs too.
 */
#ifndef RONDO_BACKENDS_CPU_COMPARE_H
#define RONDO_BACKENDS_CPU_COMPARE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "cpu.h"
#include "harness/harness.h"
#include "planner.h"

rondo_status rondo_plugin_entry_ref(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api);

enum { COMPARE_INPUTS = 8, COMPARE_OUTPUTS = 8, COMPARE_ATTRIBUTES = 12 };

typedef struct compare_operand {
    int64_t dims[RONDO_RANK_MAX];
    unsigned char *data;
    size_t bytes;
} compare_operand;

typedef struct compare {
    rondo_test *t;
    rondo_host_api host;
    rondo_catalogue cpu, ref;
    const rondo_plugin_api *ref_api;
    rondo_kernel_request request;
    rondo_operand inputs[COMPARE_INPUTS], outputs[COMPARE_OUTPUTS];
    compare_operand in[COMPARE_INPUTS], out[COMPARE_OUTPUTS];
    rondo_attribute attributes[COMPARE_ATTRIBUTES];
    int64_t ints[COMPARE_ATTRIBUTES][RONDO_RANK_MAX];
    bool special;  /* numbers include NaN, infinities, denormals and large ones */
    bool signs;    /* zeros must have the same sign */
    bool refused;  /* by this catalogue, at the last run */
    bool in_place; /* run once more with output 0 over each input that allows it */
    double worst;  /* error over bound, of all runs so far */
} compare;

static inline rondo_status compare_no_catalogue(void *host, const char *name, rondo_catalogue *out) {
    (void)host, (void)out;
    return RONDO__FAIL(NOT_FOUND, LOADING, "no catalogue %s", name);
}

static inline void compare_log(void *host, rondo_log_level level, const char *text) {
    (void)host, (void)level, (void)text;
}

static inline void compare_clear(compare *c) {
    for (uint32_t i = 0; i < COMPARE_INPUTS; i++) free(c->in[i].data);
    for (uint32_t i = 0; i < COMPARE_OUTPUTS; i++) free(c->out[i].data);
    memset(c->in, 0, sizeof c->in);
    memset(c->out, 0, sizeof c->out);
    memset(c->inputs, 0, sizeof c->inputs);
    memset(c->outputs, 0, sizeof c->outputs);
}

static inline void compare_end(compare *c) {
    compare_clear(c);
    rondo__cpu_catalogue_destroy(c->cpu.self);
    if (c->ref_api && c->ref_api->shutdown) c->ref_api->shutdown(c->ref_api->self);
    free(c);
}

/* Gone at the end of the test. Null without memory. */
static inline compare *compare_start(rondo_test *t, const char *set) {
    compare *c = calloc(1, sizeof *c);
    if (!c) return NULL; /* only where a test lets allocations fail */
    c->t = t;
    c->host = (rondo_host_api){.struct_size = sizeof c->host,
                               .abi = RONDO_PLUGIN_ABI,
                               .allocator = *rondo_test_allocator(t),
                               .status_make = rondo__status_make,
                               .status_note = rondo__status_note,
                               .status_code = rondo_status_code,
                               .status_release = rondo_status_release,
                               .log = compare_log,
                               .find_catalogue = compare_no_catalogue};
    setenv("RONDO_CPU_KERNELS", set, 1);
    rondo_status status = rondo__cpu_catalogue_create(&c->host, &c->cpu);
    unsetenv("RONDO_CPU_KERNELS");
    rondo_test_defer(t, (void (*)(void *))compare_end, c);
    T_OK(t, status);
    T_OK(t, rondo_plugin_entry_ref(RONDO_PLUGIN_ABI, &c->host, &c->ref_api));
    c->ref = c->ref_api->catalogues[0];
    return c;
}

/* The sets that run here, for loops over them. */
static inline const char *compare_set(uint32_t index) {
    for (uint32_t i = 0;; i++) {
        const rondo__cpu_set *set = rondo__cpu_set_at(i);
        if (!set) return NULL;
        if (rondo__cpu_set_runs(set) && index-- == 0) return set->name;
    }
}

static inline uint64_t compare_random(compare *c, uint64_t below) { return rondo_test_random(c->t) % below; }

static inline float compare_number(compare *c) {
    static const float special[] = {0.0f, -0.0f, 1e-40f, -1e-42f, 3e38f, -3e38f, 1e30f, 88.0f, -104.0f, 1e-20f};
    const uint64_t r = rondo_test_random(c->t);
    if (c->special && r % 8 == 0) {
        const uint64_t which = (r >> 8) % 13;
        if (which < 10) return special[which];
        return which == 10 ? __builtin_nanf("") : which == 11 ? __builtin_inff() : -__builtin_inff();
    }
    return (float)((double)(r >> 16 & 0xffffff) / 0x1p23 - 1.0) * (r & 1u ? 2.0f : 1.0f);
}

static inline void compare_begin(compare *c, const char *name) {
    compare_clear(c);
    c->request = (rondo_kernel_request){.struct_size = sizeof c->request,
                                        .operator_name = name,
                                        .inputs = c->inputs,
                                        .outputs = c->outputs,
                                        .attributes = c->attributes,
                                        .node_name = "node"};
}

static inline void compare_operand_set(rondo_operand *operand, compare_operand *own, rondo_dtype dtype, int32_t rank,
                                       const int64_t *dims) {
    uint64_t elements = 1;
    for (int32_t i = 0; i < rank; i++) {
        own->dims[i] = dims[i];
        elements *= (uint64_t)dims[i];
    }
    *operand = (rondo_operand){.dtype = dtype, .rank = rank, .dims = own->dims};
    own->bytes = (size_t)(elements * rondo__cpu_element_size(dtype));
    own->data = malloc(own->bytes ? own->bytes : 1);
    if (!own->data) own->bytes = 0;
}

/* A float32 input of random numbers (or the bytes of another type), its value known to the planner or not. */
static inline void *compare_in(compare *c, rondo_dtype dtype, int32_t rank, const int64_t *dims, bool constant) {
    const uint32_t i = c->request.input_count++;
    compare_operand_set(&c->inputs[i], &c->in[i], dtype, rank, dims);
    for (size_t at = 0; dtype == RONDO_DTYPE_F32 && at < c->in[i].bytes / 4; at++) {
        const float number = compare_number(c);
        memcpy(c->in[i].data + 4 * at, &number, 4);
    }
    for (size_t at = 0; dtype != RONDO_DTYPE_F32 && at < c->in[i].bytes; at++) {
        c->in[i].data[at] = (unsigned char)rondo_test_random(c->t);
        if (dtype == RONDO_DTYPE_BOOL) c->in[i].data[at] &= 1u;
    }
    if (constant) c->inputs[i].constant = c->in[i].data;
    return c->in[i].data;
}

static inline void compare_in_ints(compare *c, uint32_t count, const int64_t *values, bool constant) {
    const int64_t dims[1] = {count};
    void *data = compare_in(c, RONDO_DTYPE_I64, 1, dims, constant);
    if (count) memcpy(data, values, count * sizeof *values);
}

static inline void compare_in_absent(compare *c) { c->request.input_count++; }

static inline void compare_out(compare *c, rondo_dtype dtype, int32_t rank, const int64_t *dims) {
    const uint32_t i = c->request.output_count++;
    compare_operand_set(&c->outputs[i], &c->out[i], dtype, rank, dims);
}

static inline void compare_int(compare *c, const char *name, int64_t value) {
    c->attributes[c->request.attribute_count++] =
        (rondo_attribute){.name = name, .kind = RONDO_ATTRIBUTE_INT, .count = 1, .value.i = value};
}

static inline void compare_float(compare *c, const char *name, float value) {
    c->attributes[c->request.attribute_count++] =
        (rondo_attribute){.name = name, .kind = RONDO_ATTRIBUTE_FLOAT, .count = 1, .value.f = value};
}

static inline void compare_string(compare *c, const char *name, const char *value) {
    c->attributes[c->request.attribute_count++] =
        (rondo_attribute){.name = name, .kind = RONDO_ATTRIBUTE_STRING, .count = 1, .value.s = {value, strlen(value)}};
}

static inline void compare_ints(compare *c, const char *name, uint32_t count, const int64_t *values) {
    const uint32_t i = c->request.attribute_count++;
    for (uint32_t k = 0; k < count; k++) c->ints[i][k] = values[k];
    c->attributes[i] =
        (rondo_attribute){.name = name, .kind = RONDO_ATTRIBUTE_INTS, .count = count, .value.ints = c->ints[i]};
}

/* Runs the request on one catalogue; outputs are new blocks. -1: refused. */
static inline int32_t compare_run_on(compare *c, const rondo_catalogue *catalogue, unsigned char **out, int over) {
    rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
    rondo_kernel kernel = {0, 0};
    uint64_t words[COMPARE_INPUTS + COMPARE_OUTPUTS + 2];
    uint32_t n = 0;
    rondo_status status = catalogue->table->find(catalogue->self, &c->request, &facts);
    if (rondo_status_code(status) == RONDO_CODE_UNSUPPORTED) {
        rondo_status_release(status);
        return -1;
    }
    T_OK(c->t, status);
    if (over >= 0 && !(facts.in_place_inputs >> over & 1u && c->in[over].bytes == c->out[0].bytes)) return -1;
    const size_t scratch_bytes = (facts.scratch_bytes + 63) / 64 * 64,
                 packed_bytes = (facts.packed_bytes + 63) / 64 * 64;
    unsigned char *scratch = scratch_bytes ? aligned_alloc(64, scratch_bytes) : NULL;
    unsigned char *packed = packed_bytes ? aligned_alloc(64, packed_bytes) : NULL;
    if (scratch) memset(scratch, 0xff, scratch_bytes);
    if (packed) T_OK(c->t, catalogue->table->pack(catalogue->self, &c->request, packed));
    T_OK(c->t, catalogue->table->prepare(catalogue->self, &c->request, &kernel));
    for (uint32_t i = 0; i < c->request.input_count; i++) {
        const bool absorbed = facts.absorbed_inputs >> i & 1u;
        words[n++] = absorbed || !c->in[i].data ? 0 : (uint64_t)(uintptr_t)c->in[i].data;
    }
    for (uint32_t i = 0; i < c->request.output_count; i++) {
        out[i] = NULL;
        if (c->outputs[i].dtype != RONDO_DTYPE_UNDEFINED) {
            out[i] = malloc(c->out[i].bytes ? c->out[i].bytes : 1);
            memset(out[i], 0xff, c->out[i].bytes);
            if (i == 0 && over >= 0) {
                memcpy(out[i], c->in[over].data, c->out[i].bytes);
                words[over] = (uint64_t)(uintptr_t)out[i];
            }
        }
        words[n++] = (uint64_t)(uintptr_t)out[i];
    }
    if (scratch) words[n++] = (uint64_t)(uintptr_t)scratch;
    if (packed) words[n++] = (uint64_t)(uintptr_t)packed;
    const int32_t reason = kernel.function(kernel.context, words);
    catalogue->table->release(catalogue->self, kernel);
    free(scratch);
    free(packed);
    return reason;
}

static inline void compare_outputs(compare *c, unsigned char **got, unsigned char **want, double bound,
                                   const char *what) {
    for (uint32_t i = 0; i < c->request.output_count; i++) {
        const size_t bytes = c->out[i].bytes;
        if (c->outputs[i].dtype != RONDO_DTYPE_F32) {
            if (bytes && got[i] && memcmp(got[i], want[i], bytes) != 0)
                rondo_test_fail(c->t, __FILE__, __LINE__, "%s %s: output %u differs", c->request.operator_name, what,
                                i);
            continue;
        }
        for (size_t at = 0; got[i] && at < bytes / 4; at++) {
            float g, w;
            memcpy(&g, got[i] + 4 * at, 4);
            memcpy(&w, want[i] + 4 * at, 4);
            if (c->signs && g == 0.0f && w == 0.0f && __builtin_signbit(g) != __builtin_signbit(w))
                rondo_test_fail(c->t, __FILE__, __LINE__, "%s %s: output %u [%zu] is a zero of the wrong sign",
                                c->request.operator_name, what, i, at);
            if (g == w || (g != g && w != w)) continue;
            const double error = fabs((double)g - (double)w), allowed = bound * (1.0 + fabs((double)w));
            if (!(error <= allowed))
                rondo_test_fail(c->t, __FILE__, __LINE__, "%s %s: output %u [%zu] is %.9g, not %.9g",
                                c->request.operator_name, what, i, at, (double)g, (double)w);
            if (error > c->worst * allowed) c->worst = error / allowed;
        }
    }
}

/* Both must agree within bound * (1 + |want|); what this catalogue refuses is left to the other. */
static inline void compare_run(compare *c, double bound) {
    unsigned char *got[COMPARE_OUTPUTS] = {0}, *want[COMPARE_OUTPUTS] = {0};
    const int32_t reason = compare_run_on(c, &c->cpu, got, -1);
    c->refused = reason == -1;
    if (c->refused) return;
    const int32_t ref_reason = compare_run_on(c, &c->ref, want, -1);
    if ((reason != 0) != (ref_reason != 0))
        rondo_test_fail(c->t, __FILE__, __LINE__, "%s: the kernels returned %d and %d", c->request.operator_name,
                        (int)reason, (int)ref_reason);
    if (reason == 0) compare_outputs(c, got, want, bound, "");
    for (int i = 0; reason == 0 && c->request.output_count == 1 && i < (int)c->request.input_count; i++) {
        unsigned char *over[COMPARE_OUTPUTS] = {0};
        if (compare_run_on(c, &c->cpu, over, i) == 0) compare_outputs(c, over, want, bound, "in place");
        free(over[0]);
    }
    for (uint32_t i = 0; i < COMPARE_OUTPUTS; i++) {
        free(got[i]);
        free(want[i]);
    }
}

#endif
