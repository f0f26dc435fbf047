/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the compiler share: graphs in a few words, a reader of plans that runs them on host memory without
 * the executable, and the same graph evaluated node by node. Only test programs include it. */
#ifndef RONDO_SRC_COMPILE_COMPILE_TESTING_H
#define RONDO_SRC_COMPILE_COMPILE_TESTING_H

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "compile/compile.h"
#include "device/device.h"
#include "harness/harness.h"
#include "ops/ops.h"

#define CT_BUFFERS_MAX 512u

typedef struct compile_fixture {
    rondo_test *t;
    rondo_instance *instance;
    rondo__kernel_set ref, cpu; /* "ref"; "cpu,ref" */
    rondo_ir_graph *graph, *compiled;
    rondo_plan *plan;
    void *memory[CT_BUFFERS_MAX]; /* of ct_run and ct_reference */
    uint32_t memory_count;
    rondo_kernel kernel; /* of a step that is being run */
    const rondo_catalogue *catalogue;
} compile_fixture;

static inline void ct_drop(compile_fixture *f) {
    if (f->catalogue) f->catalogue->table->release(f->catalogue->self, f->kernel);
    f->catalogue = NULL;
    while (f->memory_count > 0) free(f->memory[--f->memory_count]);
    rondo_plan_release(f->plan);
    rondo_ir_graph_release(f->compiled);
    f->plan = NULL;
    f->compiled = NULL;
}

static inline void ct_close(compile_fixture *f) {
    ct_drop(f);
    rondo_ir_graph_release(f->graph);
    rondo_instance_release(f->instance);
    f->graph = NULL;
    f->instance = NULL;
}

/* In a fixture that is closed, and will be again when the test ends. */
static inline void ct_again(rondo_test *t, compile_fixture *f) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    f->t = t;
    options.ignore_plugin_path = 1;
    T_OK(t, rondo_instance_create(&options, &f->instance));
    rondo__registry *registry = rondo__instance_registry(f->instance);
    T_OK(t, rondo__registry_catalogue(registry, "cpu", &f->cpu.catalogues[0]));
    T_OK(t, rondo__registry_catalogue(registry, "ref", &f->cpu.catalogues[1]));
    f->ref.catalogues[0] = f->cpu.catalogues[1];
    f->ref.count = 1;
    f->cpu.count = 2;
    T_OK(t, rondo_ir_graph_create(f->instance, "graph", &f->graph));
}

static inline void ct_open(rondo_test *t, compile_fixture *f) {
    memset(f, 0, sizeof *f);
    T_DEFER(t, ct_close, f);
    ct_again(t, f);
}

/* Dims of a small tensor: CT_DIMS(2, 3). */
#define CT_DIMS(...) \
    (int32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

static inline rondo_ir_value ct_input(compile_fixture *f, const char *name, rondo_dtype dtype, int32_t rank,
                                      const int64_t *dims) {
    rondo_ir_value value = RONDO_IR_NONE;
    T_OK(f->t, rondo_ir_graph_add_input(f->graph, name, dtype, rank, dims, NULL, &value));
    return value;
}

static inline rondo_ir_value ct_constant(compile_fixture *f, rondo_dtype dtype, int32_t rank, const int64_t *dims,
                                         const void *data) {
    rondo_ir_value value = RONDO_IR_NONE;
    T_OK(f->t, rondo_ir_graph_add_constant(f->graph, NULL, dtype, rank, dims, data, &value));
    return value;
}
#define CT_I64(f, ...)                                                                                           \
    ct_constant(f, RONDO_DTYPE_I64, 1, (const int64_t[]){(int64_t)(sizeof((const int64_t[]){__VA_ARGS__}) / 8)}, \
                (const int64_t[]){__VA_ARGS__})

static inline float ct_float(rondo_test *t) { return (float)((double)(rondo_test_random(t) >> 40) / 8388608.0 - 1.0); }

/* A constant of random floats between -1 and 1. */
static inline rondo_ir_value ct_random(compile_fixture *f, int32_t rank, const int64_t *dims) {
    static float data[4096];
    int64_t elements = 1;
    for (int32_t i = 0; i < rank; i++) elements *= dims[i];
    for (int64_t i = 0; i < elements; i++) data[i] = ct_float(f->t);
    return ct_constant(f, RONDO_DTYPE_F32, rank, dims, data);
}

static inline void ct_nodes(compile_fixture *f, const char *name, const char *operator_name,
                            const rondo_ir_value *inputs, uint32_t input_count, const rondo_attribute *attributes,
                            uint32_t attribute_count, rondo_ir_value *outputs, uint32_t output_count) {
    T_OK(f->t, rondo_ir_graph_add_node(f->graph, operator_name, name, inputs, input_count, attributes, attribute_count,
                                       outputs, output_count));
}

static inline rondo_ir_value ct_node(compile_fixture *f, const char *operator_name, const rondo_ir_value *inputs,
                                     uint32_t input_count, const rondo_attribute *attribute) {
    rondo_ir_value output = RONDO_IR_NONE;
    ct_nodes(f, NULL, operator_name, inputs, input_count, attribute, attribute ? 1 : 0, &output, 1);
    return output;
}
#define CT_NODE(f, name, ...)                               \
    ct_node(f, name, (const rondo_ir_value[]){__VA_ARGS__}, \
            (uint32_t)(sizeof((const rondo_ir_value[]){__VA_ARGS__}) / sizeof(rondo_ir_value)), NULL)
#define CT_NODE_WITH(f, attribute, name, ...)               \
    ct_node(f, name, (const rondo_ir_value[]){__VA_ARGS__}, \
            (uint32_t)(sizeof((const rondo_ir_value[]){__VA_ARGS__}) / sizeof(rondo_ir_value)), attribute)

static inline rondo_attribute ct_int(const char *name, int64_t value) {
    rondo_attribute a = {.name = name, .kind = RONDO_ATTRIBUTE_INT, .count = 1};
    a.value.i = value;
    return a;
}

static inline rondo_attribute ct_ints(const char *name, uint32_t count, const int64_t *values) {
    rondo_attribute a = {.name = name, .kind = RONDO_ATTRIBUTE_INTS, .count = count};
    a.value.ints = values;
    return a;
}

static inline void ct_output(compile_fixture *f, rondo_ir_value value, const char *name) {
    T_OK(f->t, rondo_ir_graph_add_output(f->graph, value, name));
}

static inline rondo_status ct_try(compile_fixture *f, const rondo__kernel_set *set,
                                  const rondo_compile_options *options) {
    ct_drop(f);
    return rondo__compile(rondo_test_allocator(f->t), set, &f->ref, "test", f->graph, options, &f->compiled, &f->plan);
}

static inline void ct_compile(compile_fixture *f, const rondo__kernel_set *set, uint32_t flags) {
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.flags = flags;
    T_OK(f->t, ct_try(f, set, &options));
}

/* Nodes of an operator in the compiled graph; null: of any. */
static inline uint32_t ct_count(const compile_fixture *f, const char *operator_name) {
    uint32_t count = 0;
    for (size_t n = 0; n < f->compiled->nodes.count; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(f->compiled, (rondo_ir_node)n);
        if (!node->dead && (!operator_name || strcmp(node->operator_name, operator_name) == 0)) count++;
    }
    return count;
}

static inline const rondo__ir_node_data *ct_find(const compile_fixture *f, const char *operator_name) {
    for (size_t n = 0; n < f->compiled->nodes.count; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(f->compiled, (rondo_ir_node)n);
        if (!node->dead && strcmp(node->operator_name, operator_name) == 0) return node;
    }
    return NULL;
}

static inline bool ct_remarked(const compile_fixture *f, const char *part) {
    const char *remark = NULL;
    for (uint32_t i = 0; (remark = rondo_plan_remark(f->plan, i)) != NULL; i++) {
        if (strstr(remark, part)) return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------------ running a plan */

/* Memory full of a pattern that is no number, so that what nobody wrote shows. */
static inline void *ct_take(compile_fixture *f, size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 127u) / 64u * 64u);
    if (!memory) T_OK(f->t, rondo__status_make(RONDO_CODE_OUT_OF_MEMORY, RONDO_LAYER_MEMORY, __FILE__, 0, "no memory"));
    T_TRUE(f->t, f->memory_count < CT_BUFFERS_MAX);
    f->memory[f->memory_count++] = memory;
    memset(memory, 0xff, bytes);
    return memory;
}

/* Arenas of several targets lie one after the other. */
static inline uint64_t ct_arena_base(const rondo_plan *plan, uint32_t target) {
    uint64_t base = 0;
    for (uint32_t t = 0; t < target; t++) base += rondo__plan_arena_of(plan, t);
    return base;
}

static inline void ct_run_step(compile_fixture *f, const rondo__kernel_set *set, const rondo__plan_step *s,
                               uint8_t *const *places, uint8_t *arena) {
    rondo_operand inputs[RONDO_ARGUMENT_MAX], outputs[RONDO_ARGUMENT_MAX];
    rondo_kernel_request request;
    uint64_t words[RONDO_ARGUMENT_MAX] = {0};
    uint32_t w = 0;
    if (rondo__plan_is_transfer(s)) {
        const rondo__plan_operand *from = &s->inputs[0], *to = &s->outputs[0];
        memcpy(places[to->buffer] + to->offset, places[from->buffer] + from->offset, (size_t)to->bytes);
        return;
    }
    rondo__plan_request(s, inputs, outputs, &request);
    f->catalogue = NULL;
    const rondo_catalogue *catalogue = rondo__kernel_set_named(set, s->catalogue);
    T_TRUE(f->t, catalogue != NULL);
    for (uint32_t i = 0; i < s->input_count; i++, w++) {
        const rondo__plan_operand *o = &s->inputs[i];
        if (o->buffer == RONDO__PLAN_NONE || (i < 64 && (s->absorbed_inputs >> i & 1u))) continue;
        words[w] = (uint64_t)(uintptr_t)(places[o->buffer] + o->offset);
    }
    for (uint32_t i = 0; i < s->output_count; i++, w++) {
        const rondo__plan_operand *o = &s->outputs[i];
        if (o->buffer != RONDO__PLAN_NONE) words[w] = (uint64_t)(uintptr_t)(places[o->buffer] + o->offset);
    }
    if (s->scratch_bytes) {
        uint64_t base = ct_arena_base(f->plan, rondo__plan_target_of(f->plan, s));
        words[w++] = (uint64_t)(uintptr_t)(arena + base + s->scratch_offset);
    }
    if (s->packed_bytes) {
        void *packed = ct_take(f, (size_t)s->packed_bytes);
        T_OK(f->t, catalogue->table->pack(catalogue->self, &request, packed));
        words[w++] = (uint64_t)(uintptr_t)packed;
    }
    T_EQ(f->t, w, rondo__plan_word_count(s));
    T_OK(f->t, catalogue->table->prepare(catalogue->self, &request, &f->kernel));
    f->catalogue = catalogue;
    T_EQ(f->t, f->kernel.function(f->kernel.context, words), 0);
    catalogue->table->release(catalogue->self, f->kernel);
    f->catalogue = NULL;
}

/* Places for all buffers of f->plan, and the arena. */
static inline uint8_t *ct_places(compile_fixture *f, void *const *inputs, void **outputs, uint8_t **places) {
    const rondo_plan *p = f->plan;
    T_TRUE(f->t, p->buffer_count < CT_BUFFERS_MAX);
    uint8_t *arena = ct_take(f, (size_t)p->arena_bytes);
    for (uint32_t i = 0; i < p->buffer_count; i++) {
        const rondo__plan_buffer *b = &p->buffers[i];
        switch (b->kind) {
        case RONDO__PLAN_INPUT: places[i] = inputs[b->slot]; break;
        case RONDO__PLAN_OUTPUT: places[i] = outputs[b->slot] = ct_take(f, (size_t)b->bytes); break;
        case RONDO__PLAN_TEMPORARY: places[i] = arena + ct_arena_base(p, b->target) + b->offset; break;
        default: places[i] = (uint8_t *)(uintptr_t)b->data; break;
        }
    }
    return arena;
}

/* Runs f->plan; outputs[i] is memory of the fixture. */
static inline void ct_run(compile_fixture *f, const rondo__kernel_set *set, void *const *inputs, void **outputs) {
    const rondo_plan *p = f->plan;
    uint8_t *places[CT_BUFFERS_MAX] = {0};
    uint8_t *arena = ct_places(f, inputs, outputs, places);
    for (uint32_t s = 0; s < p->step_count; s++) ct_run_step(f, set, &p->steps[s], places, arena);
}

static inline bool ct_is_ready(const rondo__plan_step *step, const bool *recorded) {
    for (uint32_t w = 0; w < step->wait_count; w++) {
        if (!recorded[step->waits[w]]) return false;
    }
    return true;
}

/* The same in some order that lanes and waits leave open. */
static inline void ct_run_lanes(compile_fixture *f, const rondo__kernel_set *set, void *const *inputs, void **outputs) {
    const rondo_plan *p = f->plan;
    uint8_t *places[CT_BUFFERS_MAX] = {0};
    bool recorded[CT_BUFFERS_MAX] = {false};
    uint32_t next[RONDO__PLAN_LANES_MAX] = {0}, tries = 0;
    uint8_t *arena = ct_places(f, inputs, outputs, places);
    T_TRUE(f->t, p->event_count < CT_BUFFERS_MAX);
    for (uint32_t left = p->step_count; left > 0; tries++) {
        uint32_t lane = (uint32_t)(rondo_test_random(f->t) >> 33) % p->lane_count;
        T_TRUE(f->t, tries < 100000);
        while (next[lane] < p->step_count && p->steps[next[lane]].lane != lane) next[lane]++;
        if (next[lane] == p->step_count || !ct_is_ready(&p->steps[next[lane]], recorded)) continue;
        const rondo__plan_step *step = &p->steps[next[lane]++];
        ct_run_step(f, set, step, places, arena);
        if (step->record != RONDO__PLAN_NONE) recorded[step->record] = true;
        left--;
    }
}

/* f->graph (concrete, without branches) node by node, without any of the compiler. */
static inline void ct_reference(compile_fixture *f, void *const *inputs, void **outputs) {
    const rondo_ir_graph *g = f->graph;
    static int64_t dims[CT_BUFFERS_MAX][RONDO_RANK_MAX];
    rondo_operand operands[CT_BUFFERS_MAX] = {0};
    void *data[CT_BUFFERS_MAX] = {0};
    T_TRUE(f->t, g->values.count < CT_BUFFERS_MAX);
    for (size_t i = 0; i < g->values.count; i++) {
        const rondo__ir_value_data *v = rondo__ir_value_at(g, (rondo_ir_value)i);
        operands[i] = (rondo_operand){.dtype = v->type.dtype, .rank = v->type.rank, .dims = dims[i]};
        for (int32_t d = 0; d < v->type.rank; d++) dims[i][d] = v->type.dims[d].value;
        if (v->constant) operands[i].constant = data[i] = (void *)(uintptr_t)v->constant->data;
    }
    for (size_t i = 0; i < g->inputs.count; i++) data[rondo__ir_input_at(g, (uint32_t)i)] = inputs[i];
    for (size_t n = 0; n < g->nodes.count; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(g, (rondo_ir_node)n);
        rondo_operand in[RONDO_ARGUMENT_MAX] = {0}, wanted[RONDO_ARGUMENT_MAX] = {0}, out[RONDO_ARGUMENT_MAX] = {0};
        int64_t out_dims[RONDO_ARGUMENT_MAX][RONDO_RANK_MAX];
        const void *from[RONDO_ARGUMENT_MAX] = {0};
        void *to[RONDO_ARGUMENT_MAX] = {0};
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (node->inputs[i] == RONDO_IR_NONE) continue;
            in[i] = operands[node->inputs[i]];
            from[i] = data[node->inputs[i]];
        }
        for (uint32_t i = 0; i < node->output_count; i++) wanted[i].dtype = RONDO_DTYPE_F32;
        rondo_kernel_request r = RONDO_KERNEL_REQUEST_INIT;
        r.input_count = node->input_count;
        r.output_count = node->output_count;
        r.attribute_count = node->attribute_count;
        r.operator_name = node->operator_name;
        r.inputs = in;
        r.outputs = wanted;
        r.attributes = node->attributes;
        T_OK(f->t, rondo__ops_infer_request(&r, out, out_dims));
        r.outputs = out;
        for (uint32_t i = 0; i < node->output_count; i++) {
            rondo_ir_value v = node->outputs[i];
            int64_t elements = 1;
            for (int32_t d = 0; d < out[i].rank; d++) elements *= out_dims[i][d];
            memcpy(dims[v], out_dims[i], sizeof dims[v]);
            out[i].dims = dims[v];
            operands[v] = out[i];
            to[i] = data[v] = ct_take(f, (size_t)elements * rondo_dtype_bits(out[i].dtype) / 8u);
        }
        T_OK(f->t, rondo__kernel_run(&f->ref, rondo_test_allocator(f->t), &r, from, to));
    }
    for (size_t i = 0; i < g->outputs.count; i++) outputs[i] = data[rondo__ir_output_at(g, (uint32_t)i)];
}

/* The same bits, minus zero included; a NaN is a NaN. */
static inline void ct_same(rondo_test *t, const void *want, const void *got, uint64_t count) {
    const float *a = want, *b = got;
    for (uint64_t i = 0; i < count; i++) {
        T_TRUE(t, (isnan(a[i]) && isnan(b[i])) || memcmp(&a[i], &b[i], sizeof *a) == 0);
    }
}

/* |got - want| <= 1e-5 + 1e-4 max|want| for every output of f->plan; or the very same numbers. Minus zero is zero: the
 * mean of one element is passed on as it is. */
static inline void ct_agree(compile_fixture *f, void *const *got, void *const *want, bool same) {
    for (uint32_t i = 0; i < f->plan->output_count; i++) {
        const rondo__plan_port *port = &f->plan->outputs[i];
        if (port->dtype != RONDO_DTYPE_F32) {
            T_TRUE(f->t, port->bytes == 0 || memcmp(got[i], want[i], (size_t)port->bytes) == 0);
            continue;
        }
        const float *a = got[i], *b = want[i];
        float most = 0;
        for (uint64_t k = 0; k < port->bytes / 4; k++) most = fmaxf(most, fabsf(b[k]));
        double bound = same ? 0 : 1e-5 + 1e-4 * (double)most;
        for (uint64_t k = 0; k < port->bytes / 4; k++) T_NEAR(f->t, a[k], b[k], bound);
    }
}

#endif
