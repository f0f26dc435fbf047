/* SPDX-License-Identifier: Apache-2.0
 *
 * The public way into the compiler: names of catalogues become catalogues of the instance's registry. */
#include <string.h>

#include "base/instance.h"
#include "base/sized.h"
#include "compile/compile.h"
#include "device/device.h"
#include "session/session.h"

#define COMPILE_API_TARGET "cpu,ref"
#define COMPILE_API_NAME_MAX 64u

/* "cpu,ref": in that order, spaces around a name do not matter. */
static rondo_status compile_api_catalogues(rondo__registry *registry, const char *names, rondo__kernel_set *out_set) {
    out_set->count = 0;
    while (*names) {
        char name[COMPILE_API_NAME_MAX];
        size_t length = strcspn(names, ",");
        const char *begin = names, *end = names + length;
        while (begin < end && *begin == ' ') begin++;
        while (end > begin && end[-1] == ' ') end--;
        names += length + (names[length] == ',' ? 1u : 0u);
        if (begin == end) continue;
        if ((size_t)(end - begin) >= sizeof name || out_set->count == RONDO__KERNEL_SET_MAX) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "catalogues '%s': at most %u names of fewer than %u letters",
                               begin, RONDO__KERNEL_SET_MAX, COMPILE_API_NAME_MAX);
        }
        memcpy(name, begin, (size_t)(end - begin));
        name[end - begin] = 0;
        RONDO__TRY(rondo__registry_catalogue(registry, name, &out_set->catalogues[out_set->count]));
        out_set->count++;
    }
    if (out_set->count == 0) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "no kernel catalogue is named");
    return RONDO_OK;
}

/* What was registered with the instance runs beside every target's own kernels. */
static rondo_status compile_api_registered(rondo__registry *registry, rondo__kernel_set *set) {
    if (set->count == RONDO__KERNEL_SET_MAX || rondo__kernel_set_named(set, RONDO__KERNEL_REGISTERED)) return RONDO_OK;
    RONDO__TRY(rondo__registry_catalogue(registry, RONDO__KERNEL_REGISTERED, &set->catalogues[set->count]));
    set->count++;
    return RONDO_OK;
}

/* "ref:Add,Neg": catalogues, then the operators that it is meant for. The text is cut into pieces. */
static rondo_status compile_api_target(rondo__registry *registry, char *text, const char *whole,
                                       rondo__target *target) {
    char *operators = strchr(text, ':');
    target->text = whole;
    target->operators = NULL;
    if (operators) {
        *operators = 0;
        target->operators = operators + 1;
        for (const char *c = target->operators; *c; c++) {
            if (*c == ' ')
                return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "target '%s': operators stand without spaces", whole);
        }
    }
    RONDO__TRY(compile_api_catalogues(registry, text, &target->kernels));
    return compile_api_registered(registry, &target->kernels);
}

/* Each target's text twice: as it is named, and to be cut. */
static rondo_status compile_api_targets(rondo__registry *registry, rondo__session_targets *out) {
    const char *text = out->targets.text;
    size_t used = 0;
    out->targets.count = 0;
    for (;;) {
        size_t length = strcspn(text, ";");
        rondo__target *target = &out->targets.at[out->targets.count];
        if (out->targets.count == RONDO__PLAN_TARGETS_MAX) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "at most %u targets", RONDO__PLAN_TARGETS_MAX);
        }
        if (length + 1u > (sizeof out->memory - used) / 2u) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "targets of more than %zu letters", sizeof out->memory / 2u);
        }
        char *named = out->memory + used, *cut = named + length + 1u;
        for (int i = 0; i < 2; i++) {
            memcpy(i ? cut : named, text, length);
            (i ? cut : named)[length] = 0;
        }
        used += 2u * (length + 1u);
        RONDO__TRY(compile_api_target(registry, cut, named, target));
        out->targets.count++;
        text += length;
        if (!*text) return RONDO_OK;
        text++;
    }
}

rondo_status rondo__compile_target(rondo_instance *instance, const rondo_compile_options *options,
                                   rondo_compile_options *out_known, rondo__session_targets *out_targets) {
    *out_known = (rondo_compile_options)RONDO_COMPILE_OPTIONS_INIT;
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_NONE, "rondo_compile_options", options, out_known, sizeof *out_known));
    if (!out_known->catalogues) out_known->catalogues = COMPILE_API_TARGET;
    out_targets->targets.text = out_known->catalogues;
    return compile_api_targets(rondo__instance_registry(instance), out_targets);
}

rondo_status rondo_compile(rondo_instance *instance, const rondo_ir_graph *graph, const rondo_compile_options *options,
                           rondo_ir_graph **out_compiled, rondo_plan **out_plan) {
    if (!instance || !graph) return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_compile: instance or graph is null");
    rondo_compile_options known;
    rondo__session_targets targets;
    rondo__kernel_set folder = {.count = 1};
    RONDO__TRY(rondo__compile_target(instance, options, &known, &targets));
    RONDO__TRY(rondo__registry_catalogue(rondo__instance_registry(instance), "ref", &folder.catalogues[0]));
    return rondo__compile_for(&rondo__instance_base_of(instance)->allocator, &targets.targets, &folder, graph, options,
                              out_compiled, out_plan);
}
