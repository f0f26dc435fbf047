/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue "cpu": operator names to planners, and find, pack, prepare and release over them. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "planner.h"

typedef struct catalogue_self {
    const rondo_host_api *host;
    const rondo__cpu_set *set;
    rondo_catalogue_table table;
} catalogue_self;

static const struct {
    const rondo__cpu_operator *operators;
    const uint32_t *count;
} catalogue_families[] = {
#define RONDO_X(family) {rondo__cpu_##family##_operators, &rondo__cpu_##family##_operator_count},
    RONDO__CPU_FAMILIES(RONDO_X)
#undef RONDO_X
};
enum { CATALOGUE_FAMILIES = sizeof catalogue_families / sizeof *catalogue_families };

const rondo__cpu_operator *rondo__cpu_operator_find(const char *name) {
    for (size_t f = 0; f < CATALOGUE_FAMILIES; f++) {
        for (uint32_t i = 0; i < *catalogue_families[f].count; i++) {
            const rondo__cpu_operator *operator= &catalogue_families[f].operators[i];
            if (*operator->name == *name && strcmp(operator->name, name) == 0) return operator;
        }
    }
    return NULL;
}

static const char *catalogue_operator_at(void *self, uint32_t index) {
    (void)self;
    for (size_t f = 0; f < CATALOGUE_FAMILIES; f++) {
        if (index < *catalogue_families[f].count) return catalogue_families[f].operators[index].name;
        index -= *catalogue_families[f].count;
    }
    return NULL;
}

static rondo_status catalogue_plan(const catalogue_self *self, const rondo_kernel_request *request, bool looking,
                                   rondo__cpu_plan *plan) {
    *plan = (rondo__cpu_plan){.host = self->host,
                              .set = self->set,
                              .request = request,
                              .looking = looking,
                              .facts = RONDO_KERNEL_FACTS_INIT};
    const rondo__cpu_operator *operator= rondo__cpu_operator_find(request->operator_name);
    if (!operator) return rondo__cpu_refuse(plan, "no kernel of that name");
    rondo_status status = operator->planner(plan);
    if (status) {
        rondo__cpu_context_free(self->host, plan->kernel.context);
        plan->kernel.context = NULL;
    }
    return status;
}

static rondo_status catalogue_find(void *self, const rondo_kernel_request *request, rondo_kernel_facts *out_facts) {
    const catalogue_self *c = self;
    rondo__cpu_plan plan;
    rondo_status status = catalogue_plan(c, request, true, &plan);
    if (status) return status;
    rondo__cpu_context_free(c->host, plan.kernel.context);
    const uint32_t size = out_facts->struct_size;
    memcpy(out_facts, &plan.facts, size < sizeof plan.facts ? size : sizeof plan.facts);
    out_facts->struct_size = size;
    return RONDO_OK;
}

static rondo_status catalogue_pack(void *self, const rondo_kernel_request *request, void *out) {
    const catalogue_self *c = self;
    rondo__cpu_plan plan;
    rondo_status status = catalogue_plan(c, request, false, &plan);
    if (status) return status;
    if (plan.pack) plan.pack(&plan, out);
    rondo__cpu_context_free(c->host, plan.kernel.context);
    return RONDO_OK;
}

static rondo_status catalogue_prepare(void *self, const rondo_kernel_request *request, rondo_kernel *out_kernel) {
    rondo__cpu_plan plan;
    rondo_status status = catalogue_plan(self, request, false, &plan);
    if (!status) *out_kernel = plan.kernel;
    return status;
}

static void catalogue_release(void *self, rondo_kernel kernel) {
    const catalogue_self *c = self;
    rondo__cpu_context_free(c->host, kernel.context);
}

rondo_status rondo__cpu_catalogue_create(const rondo_host_api *host, rondo_catalogue *out) {
    const rondo__cpu_set *set;
    rondo_status status = rondo__cpu_set_choose(host, getenv("RONDO_CPU_KERNELS"), &set);
    if (status) return status;
    catalogue_self *self = host->allocator.reallocate(host->allocator.self, NULL, 0, sizeof *self, 0);
    if (!self) return RONDO_PLUGIN_FAIL(host, OUT_OF_MEMORY, KERNEL, "cpu: no memory for the kernel catalogue");
    *self = (catalogue_self){
        .host = host,
        .set = set,
        .table = {.struct_size = sizeof(rondo_catalogue_table),
                  .flags = RONDO_CATALOGUE_HOST,
                  .name = "cpu",
                  .kernel_set = set->kernel_set,
                  .operator_at = catalogue_operator_at,
                  .find = catalogue_find,
                  .pack = catalogue_pack,
                  .prepare = catalogue_prepare,
                  .release = catalogue_release},
    };
    *out = (rondo_catalogue){.table = &self->table, .self = self};
    return RONDO_OK;
}

void rondo__cpu_catalogue_destroy(void *self) {
    if (!self) return;
    const rondo_allocator allocator = ((catalogue_self *)self)->host->allocator;
    allocator.reallocate(allocator.self, self, sizeof(catalogue_self), 0, 0);
}
