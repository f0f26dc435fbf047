/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at an instance's operators: built in or registered, one form, and which catalogues have kernels for them. */
#include "ops/operators.h"

#include <string.h>

#include "base/sized.h"
#include "device/device.h"
#include "ops/schema.h"

static rondo_status operators_describe(const rondo__ops_prototype *prototype, rondo_operator_info *out_info) {
    rondo_operator_info info = {.struct_size = sizeof info,
                                .flags = prototype->registered ? RONDO_OPERATOR_INFO_REGISTERED : 0u,
                                .input_count = prototype->input_count,
                                .output_count = prototype->output_count,
                                .attribute_count = prototype->attribute_count,
                                .name = prototype->name,
                                .summary = prototype->summary ? prototype->summary : "",
                                .prototype = prototype};
    rondo__sized_write(&info, sizeof info, out_info);
    return RONDO_OK;
}

static rondo__operators *operators_of(rondo_instance *instance) {
    return (rondo__operators *)(void *)rondo__instance_base_of(instance)->operators;
}

rondo_status rondo_operator_at(rondo_instance *instance, uint32_t index, rondo_operator_info *out_info) {
    uint32_t built_in = 0;
    if (!instance) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "looking at operators needs an instance");
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_INPUT, "rondo_operator_info", out_info));
    const rondo__ops_prototype *prototype = rondo__ops_at(index);
    if (prototype) return operators_describe(prototype, out_info);
    while (rondo__ops_at(built_in)) built_in++;
    rondo__operators *operators = operators_of(instance);
    rondo__mutex_lock(&operators->mutex);
    if (index - built_in < operators->entries.count)
        prototype = &(*RONDO__BUFFER_AT(&operators->entries, rondo__operator_entry *, index - built_in))->prototype;
    rondo__mutex_unlock(&operators->mutex);
    if (prototype) return operators_describe(prototype, out_info);
    return RONDO__FAIL(NOT_FOUND, PROTOTYPE, "there is no operator number %u", index);
}

rondo_status rondo_operator_find(rondo_instance *instance, const char *name, rondo_operator_info *out_info) {
    if (!instance || !name) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "an operator is asked for by name");
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_INPUT, "rondo_operator_info", out_info));
    const rondo__ops_prototype *prototype = rondo__ops_find(name);
    const rondo__operator_entry *entry = prototype ? NULL : rondo__operators_find(operators_of(instance), name);
    if (entry) prototype = &entry->prototype;
    if (prototype) return operators_describe(prototype, out_info);
    return RONDO__FAIL(NOT_FOUND, PROTOTYPE, "there is no operator '%s'", name);
}

static rondo_status operators_operand(const rondo_operator_info *info, bool inputs, uint32_t index,
                                      rondo_operator_operand *out_operand) {
    if (!info || !info->prototype || !out_operand)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "an operand is asked for of an operator that was found");
    const rondo__ops_prototype *prototype = info->prototype;
    uint32_t count = inputs ? prototype->input_count : prototype->output_count;
    if (index >= count)
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "operator '%s' has %u %s", prototype->name, count,
                           inputs ? "inputs" : "outputs");
    const rondo__ops_operand *operand = inputs ? &prototype->inputs[index] : &prototype->outputs[index];
    *out_operand = (rondo_operator_operand){.name = operand->name,
                                            .dtypes = operand->types,
                                            .presence = operand->variadic   ? RONDO_OPERATOR_DYNAMIC
                                                        : operand->optional ? RONDO_OPERATOR_OPTIONAL
                                                                            : RONDO_OPERATOR_REQUIRED,
                                            .same_type = operand->type_variable};
    return RONDO_OK;
}

rondo_status rondo_operator_info_input(const rondo_operator_info *info, uint32_t index,
                                       rondo_operator_operand *out_operand) {
    return operators_operand(info, true, index, out_operand);
}

rondo_status rondo_operator_info_output(const rondo_operator_info *info, uint32_t index,
                                        rondo_operator_operand *out_operand) {
    return operators_operand(info, false, index, out_operand);
}

rondo_status rondo_operator_info_attribute(const rondo_operator_info *info, uint32_t index,
                                           rondo_operator_attribute_info *out_attribute) {
    if (!info || !info->prototype || !out_attribute)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "an attribute is asked for of an operator that was found");
    const rondo__ops_prototype *prototype = info->prototype;
    if (index >= prototype->attribute_count)
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "operator '%s' has %u attributes", prototype->name,
                           prototype->attribute_count);
    const rondo__ops_attribute *attribute = &prototype->attributes[index];
    *out_attribute =
        (rondo_operator_attribute_info){attribute->name, attribute->kind, attribute->required, attribute->default_text};
    return RONDO_OK;
}

rondo_status rondo_operator_print_schema(rondo_instance *instance, const char *name,
                                         int32_t (*write)(void *user, const char *data, size_t size), void *user) {
    rondo_operator_info info = RONDO_OPERATOR_INFO_INIT;
    rondo__buffer text;
    if (!write) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a schema is printed through a function");
    RONDO__TRY(rondo_operator_find(instance, name, &info));
    rondo__buffer_init(&text, &rondo__instance_base_of(instance)->allocator, 1, RONDO__SCHEMA_TEXT_MAX);
    rondo_status status = rondo__schema_print(info.prototype, &text);
    if (!status && write(user, text.data, text.count))
        status = RONDO__FAIL(IO, SCHEMA, "the schema of operator '%s' could not be written", name);
    rondo__buffer_deinit(&text);
    return status;
}

rondo_status rondo_operator_check_schema(rondo_instance *instance, const char *name, const char *schema) {
    rondo_operator_info info = RONDO_OPERATOR_INFO_INIT;
    rondo__schema parsed;
    if (!schema) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "there is no schema to check");
    RONDO__TRY(rondo_operator_find(instance, name, &info));
    RONDO__TRY(rondo__schema_parse(schema, &parsed));
    return rondo__schema_check(&parsed, info.prototype);
}

rondo_status rondo_operator_catalogues(rondo_instance *instance, const char *name,
                                       void (*visit)(void *user, const char *catalogue), void *user) {
    if (!instance || !name || !visit)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "catalogues are asked for by an operator's name, with a visitor");
    rondo_catalogue catalogue;
    for (uint32_t i = 0; rondo__registry_catalogue_at(rondo__instance_registry(instance), i, &catalogue); i++) {
        const char *known;
        bool has = false;
        for (uint32_t k = 0; !has && (known = catalogue.table->operator_at(catalogue.self, k)) != NULL; k++)
            has = strcmp(known, name) == 0;
        if (has) visit(user, catalogue.table->name);
    }
    return RONDO_OK;
}

/* Catalogues are registered plain one first; the check wants it last. */
static void operators_kernels(rondo_instance *instance, const char *name, rondo__kernel_set *set) {
    rondo_catalogue catalogue;
    uint32_t count = 0;
    set->count = 0;
    while (rondo__registry_catalogue_at(rondo__instance_registry(instance), count, &catalogue)) count++;
    while (count-- > 0 && set->count < RONDO__KERNEL_SET_MAX) {
        const char *known;
        bool has = false;
        if (!rondo__registry_catalogue_at(rondo__instance_registry(instance), count, &catalogue)) continue;
        for (uint32_t k = 0; !has && (known = catalogue.table->operator_at(catalogue.self, k)) != NULL; k++)
            has = strcmp(known, name) == 0;
        if (has && catalogue.table->flags & RONDO_CATALOGUE_HOST) set->catalogues[set->count++] = catalogue;
    }
}

rondo_status rondo_operator_check(rondo_instance *instance, const char *name,
                                  const rondo_operator_check_options *options,
                                  rondo_operator_check_report *out_report) {
    rondo_operator_info info = RONDO_OPERATOR_INFO_INIT;
    rondo__kernel_set set;
    if (!instance || !name) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "an operator is checked by name");
    if (options) RONDO__TRY(rondo__sized_check(RONDO_LAYER_INPUT, "rondo_operator_check_options", options));
    if (out_report) RONDO__TRY(rondo__sized_check(RONDO_LAYER_INPUT, "rondo_operator_check_report", out_report));
    RONDO__TRY(rondo_operator_find(instance, name, &info));
    operators_kernels(instance, name, &set);
    return rondo__operator_check(&rondo__instance_base_of(instance)->allocator, info.prototype, &set, options,
                                 out_report);
}
