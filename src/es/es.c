/* SPDX-License-Identifier: Apache-2.0
 *
 * Builders, their holders, and failures that stick. */
#include "es/private.h"

#include <rondo/ir.h>
#include <stdlib.h>
#include <string.h>

void rondo__es_fail(rondo_es_builder *builder, rondo_status status) {
    builder->failure = rondo__status_first(builder->failure, status);
}

rondo_status rondo_es_builder_create(rondo_instance *instance, const char *name, rondo_es_builder **out_builder) {
    if (!instance || !out_builder) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a builder needs an instance and a place for the result");
    }
    const rondo_allocator *allocator = &rondo__instance_base_of(instance)->allocator;
    void *pointer;
    RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(rondo_es_builder), &pointer));
    rondo_es_builder *builder = pointer;
    rondo_status status = rondo__string_copy(allocator, name && *name ? name : "graph", &builder->name);
    if (status) {
        rondo__free(allocator, builder, sizeof *builder);
        return status;
    }
    builder->allocator = *allocator;
    builder->instance = instance;
    rondo__arena_init(&builder->arena, allocator, SIZE_MAX / 2u);
    rondo__buffer_init(&builder->inputs, allocator, sizeof(rondo__es_port), RONDO__ES_PORTS_MAX);
    rondo__buffer_init(&builder->outputs, allocator, sizeof(rondo__es_port), RONDO__ES_PORTS_MAX);
    *out_builder = builder;
    return RONDO_OK;
}

rondo_status rondo_es_builder_create_branch(rondo_es_builder *around, const char *name,
                                            rondo_es_builder **out_builder) {
    if (!around) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a branch needs a builder around it");
    RONDO__TRY(rondo_es_builder_create(around->instance, name ? name : "branch", out_builder));
    rondo_es_builder *branch = *out_builder;
    branch->is_branch = true;
    branch->around = around;
    branch->next = around->branches;
    around->branches = branch;
    return RONDO_OK;
}

rondo_ir_graph *rondo__es_graph(rondo_es_builder *builder) {
    if (builder->failure) return NULL;
    if (builder->graph) return builder->graph;
    rondo_status status;
    if (!builder->is_branch) {
        status = rondo_ir_graph_create(builder->instance, builder->name, &builder->graph);
    } else if (!builder->around) {
        status = RONDO__FAIL(INVALID_STATE, PROTOTYPE,
                             "branch '%s': the graph around it was built or given up before this one", builder->name);
    } else {
        rondo_ir_graph *around = rondo__es_graph(builder->around);
        rondo_status why = builder->around->failure;
        status = around ? rondo_ir_graph_add_branch(around, builder->name, &builder->graph)
                        : rondo__status_make(rondo_status_code(why), rondo_status_layer(why), __FILE__, __LINE__,
                                             "branch '%s': the graph around it has failed: %s", builder->name,
                                             rondo_status_message(why));
    }
    if (status) rondo__es_fail(builder, status);
    return builder->graph;
}

/* A branch that was not built ends with the graph around it. */
static void es_cut_branches(rondo_es_builder *builder) {
    for (rondo_es_builder *branch = builder->branches; branch;) {
        rondo_es_builder *next = branch->next;
        es_cut_branches(branch);
        branch->around = branch->next = NULL;
        branch->graph = NULL;
        rondo__es_fail(branch, RONDO__FAIL(INVALID_STATE, PROTOTYPE,
                                           "branch '%s': the graph around it was built or given up before this one",
                                           branch->name));
        branch = next;
    }
    builder->branches = NULL;
}

/* Empty again; a graph that is still here goes, but one inside another belongs to that. */
static void es_reset(rondo_es_builder *builder) {
    es_cut_branches(builder);
    if (!builder->is_branch) rondo_ir_graph_release(builder->graph);
    builder->graph = NULL;
    builder->made = 0;
    builder->inputs.count = builder->outputs.count = 0;
    rondo_status_release(builder->failure);
    builder->failure = RONDO_OK;
    rondo__arena_deinit(&builder->arena);
    rondo__arena_init(&builder->arena, &builder->allocator, SIZE_MAX / 2u);
}

void rondo_es_builder_release(rondo_es_builder *builder) {
    if (!builder) return;
    for (rondo_es_builder **link = builder->around ? &builder->around->branches : NULL; link && *link;
         link = &(*link)->next) {
        if (*link != builder) continue;
        *link = builder->next;
        break;
    }
    es_reset(builder);
    rondo__arena_deinit(&builder->arena);
    rondo__buffer_deinit(&builder->inputs);
    rondo__buffer_deinit(&builder->outputs);
    rondo_allocator allocator = builder->allocator;
    rondo__string_free(&allocator, builder->name);
    rondo__free(&allocator, builder, sizeof *builder);
}

rondo_ir_graph *rondo_es_graph(rondo_es_builder *builder) { return builder ? builder->graph : NULL; }

rondo_es_builder *rondo_es_owner(const rondo_es_tensor *tensor) { return tensor ? tensor->builder : NULL; }

rondo_ir_value rondo_es_value(const rondo_es_tensor *tensor) { return tensor ? tensor->value : RONDO_IR_NONE; }

bool rondo_es_failed(const rondo_es_builder *builder) { return builder && builder->failure != RONDO_OK; }

rondo_status rondo__es_holder(rondo_es_builder *builder, rondo_ir_value value, rondo_es_tensor **out_tensor) {
    void *pointer;
    RONDO__TRY(rondo__arena_allocate(&builder->arena, sizeof(rondo_es_tensor), &pointer));
    rondo_es_tensor *tensor = pointer;
    tensor->builder = builder;
    tensor->value = value;
    *out_tensor = tensor;
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------- building */

static int es_compare_ports(const void *a, const void *b) {
    const rondo__es_port *x = a, *y = b;
    if (x->variable != y->variable) return x->variable ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Sorts the ports, which must be numbered from 0 on, variables by themselves (their numbers need only be distinct). */
static rondo_status es_order(const rondo_es_builder *builder, rondo__buffer *ports, const char *what) {
    rondo__es_port *list = ports->data;
    if (ports->count) qsort(list, ports->count, sizeof *list, es_compare_ports);
    for (size_t i = 0; i < ports->count; i++) {
        if (i && list[i].variable == list[i - 1u].variable && list[i].index == list[i - 1u].index) {
            return RONDO__FAIL(INVALID_STATE, PROTOTYPE, "graph '%s': %s %lld is there twice", builder->name,
                               list[i].variable ? "variable" : what, (long long)list[i].index);
        }
        if (!list[i].variable && list[i].index != (int64_t)i) {
            return RONDO__FAIL(INVALID_STATE, PROTOTYPE, "graph '%s': %s %zu is missing, there is one of number %lld",
                               builder->name, what, i, (long long)list[i].index);
        }
    }
    return RONDO_OK;
}

static rondo_status es_finish(rondo_es_builder *builder) {
    rondo_ir_graph *graph = builder->graph;
    RONDO__TRY(es_order(builder, &builder->inputs, "input"));
    RONDO__TRY(es_order(builder, &builder->outputs, "output"));
    if (!graph || !builder->outputs.count) {
        return RONDO__FAIL(INVALID_STATE, PROTOTYPE,
                           "graph '%s': output 0 is missing (rondo_es_set_output; a null tensor is none)",
                           builder->name);
    }
    for (size_t i = 0; i < builder->inputs.count; i++) {
        *RONDO__BUFFER_AT(&graph->inputs, rondo_ir_value, i) =
            RONDO__BUFFER_AT(&builder->inputs, rondo__es_port, i)->value;
    }
    for (size_t i = 0; i < builder->outputs.count; i++) {
        const rondo__es_port *port = RONDO__BUFFER_AT(&builder->outputs, rondo__es_port, i);
        RONDO__TRY(rondo__ir_output_add(graph, port->value, port->name));
    }
    /* What lies around a branch is not whole yet; the whole is verified with the outermost graph. */
    return builder->is_branch ? RONDO_OK : rondo_ir_graph_verify(graph);
}

rondo_status rondo_es_build_and_reset(rondo_es_builder *builder, rondo_ir_graph **out_graph) {
    if (!builder || !out_graph) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "to build needs a builder and a place for the graph");
    }
    *out_graph = NULL;
    rondo_status status = builder->failure;
    builder->failure = RONDO_OK;
    if (!status) status = es_finish(builder);
    if (!status) {
        *out_graph = builder->graph;
        builder->graph = NULL;
    }
    es_reset(builder);
    return status;
}
