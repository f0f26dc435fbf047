/* SPDX-License-Identifier: Apache-2.0
 *
 * Registering operators: what a table must be, the prototype made of it, and finding it again. */
#include "ops/operators.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/sized.h"
#include "ops/infer.h"
#include "ops/schema.h"

#define OPERATORS_ARENA_MAX ((size_t)1 << 20)
#define OPERATORS_NAME_MAX 200u
#define OPERATORS_DTYPES ((RONDO__OPS_ANY) & ~RONDO__OPS_BIT(STRING))

static rondo__operators *registry_of(rondo__shared *shared) { return (rondo__operators *)(void *)shared; }

static void operators_entry_destroy(const rondo_allocator *allocator, rondo__operator_entry *entry) {
    rondo__arena_deinit(&entry->arena);
    rondo__free(allocator, entry, sizeof *entry);
}

static void operators_destroy(rondo__shared *shared) {
    rondo__operators *operators = registry_of(shared);
    rondo_allocator allocator = operators->allocator;
    for (size_t i = 0; i < operators->entries.count; i++) {
        operators_entry_destroy(&allocator, *RONDO__BUFFER_AT(&operators->entries, rondo__operator_entry *, i));
    }
    rondo__buffer_deinit(&operators->entries);
    for (size_t i = operators->libraries.count; i > 0; i--)
        (void)dlclose(*RONDO__BUFFER_AT(&operators->libraries, void *, i - 1u));
    rondo__buffer_deinit(&operators->libraries);
    rondo__mutex_deinit(&operators->mutex);
    rondo_status_release(operators->failure);
    rondo__free(&allocator, operators, sizeof *operators);
}

rondo_status rondo__operators_create(const rondo_allocator *allocator, const rondo__log *log,
                                     rondo__shared **out_operators) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(rondo__operators), &memory));
    rondo__operators *operators = memory;
    rondo__ref_init(&operators->shared.references);
    operators->shared.destroy = operators_destroy;
    operators->allocator = *allocator;
    operators->log = log;
    rondo__mutex_init(&operators->mutex);
    rondo__buffer_init(&operators->entries, allocator, sizeof(rondo__operator_entry *), RONDO__OPERATORS_MAX);
    rondo__buffer_init(&operators->libraries, allocator, sizeof(void *), RONDO__OPERATORS_MAX);
    *out_operators = &operators->shared;
    return RONDO_OK;
}

/* ---------------------------------------------------------------------------------------------------- looking up */

static rondo__operator_entry *operators_named(const rondo__operators *operators, const char *name) {
    for (size_t i = 0; i < operators->entries.count; i++) {
        rondo__operator_entry *entry = *RONDO__BUFFER_AT(&operators->entries, rondo__operator_entry *, i);
        if (strcmp(entry->prototype.name, name) == 0) return entry;
    }
    return NULL;
}

static rondo__operator_entry *operators_meant(const rondo__operators *operators, const char *domain, const char *type) {
    for (size_t i = 0; i < operators->entries.count; i++) {
        rondo__operator_entry *entry = *RONDO__BUFFER_AT(&operators->entries, rondo__operator_entry *, i);
        if (strcmp(entry->onnx_domain, domain) == 0 && strcmp(entry->onnx_name, type) == 0) return entry;
    }
    return NULL;
}

const rondo__operator_entry *rondo__operators_find(rondo__operators *operators, const char *name) {
    rondo__mutex_lock(&operators->mutex);
    const rondo__operator_entry *entry = operators_named(operators, name);
    rondo__mutex_unlock(&operators->mutex);
    return entry;
}

const rondo__ops_prototype *rondo__ops_lookup(const rondo_ir_graph *graph, const char *operator_name) {
    const rondo__ops_prototype *known = rondo__ops_find(operator_name);
    if (known || !operator_name || !graph->operators) return known;
    const rondo__operator_entry *entry = rondo__operators_find(registry_of(graph->operators), operator_name);
    return entry ? &entry->prototype : NULL;
}

const rondo__ops_prototype *rondo__ops_lookup_onnx(const rondo_ir_graph *graph, const char *domain, const char *type,
                                                   int64_t version) {
    if (!graph->operators) return NULL;
    rondo__operators *operators = registry_of(graph->operators);
    rondo__mutex_lock(&operators->mutex);
    const rondo__operator_entry *entry = operators_meant(operators, domain, type);
    rondo__mutex_unlock(&operators->mutex);
    return entry && version >= entry->given.onnx_since ? &entry->prototype : NULL;
}

/* ------------------------------------------------------------------------------------------- what a table must be */

#define OPERATORS_FAIL(layer, name, format, ...) \
    RONDO__FAIL(INVALID_ARGUMENT, layer, "operator '%s': " format, name, ##__VA_ARGS__)

static bool operators_is_word(const char *text, const char *others) {
    size_t length = 0;
    if (!text || (*text >= '0' && *text <= '9')) return false;
    for (; text[length] && length <= OPERATORS_NAME_MAX; length++) {
        char c = text[length];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!good && !strchr(others, c)) return false;
    }
    return length > 0 && length <= OPERATORS_NAME_MAX;
}

static rondo_status operators_check_operands(const char *name, const char *what, const rondo_operator_operand *operands,
                                             uint32_t count, bool inputs) {
    if (count > RONDO_OPERATOR_OPERANDS_MAX || (count && !operands))
        return OPERATORS_FAIL(SCHEMA, name, "%u %ss, there may be %u, and all must be there", count, what,
                              RONDO_OPERATOR_OPERANDS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const rondo_operator_operand *operand = &operands[i];
        if (!operators_is_word(operand->name, ""))
            return OPERATORS_FAIL(SCHEMA, name, "%s %u has no name of letters, digits and '_'", what, i);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(operands[k].name, operand->name) == 0)
                return OPERATORS_FAIL(SCHEMA, name, "two %ss are called '%s'", what, operand->name);
        if (!operand->dtypes || operand->dtypes & ~OPERATORS_DTYPES)
            return OPERATORS_FAIL(SCHEMA, name, "%s '%s' needs types, each a number's", what, operand->name);
        if (operand->presence < RONDO_OPERATOR_REQUIRED || operand->presence > RONDO_OPERATOR_DYNAMIC)
            return OPERATORS_FAIL(SCHEMA, name, "%s '%s' is neither required, optional nor dynamic", what,
                                  operand->name);
        if (operand->presence == RONDO_OPERATOR_DYNAMIC && i + 1u < count)
            return OPERATORS_FAIL(SCHEMA, name, "%s '%s' is dynamic and not the last", what, operand->name);
        if (operand->same_type && (!inputs || operand->same_type < 'A' || operand->same_type > 'Z'))
            return OPERATORS_FAIL(SCHEMA, name, "%s '%s' has a same_type, which is a letter A to Z of an input", what,
                                  operand->name);
    }
    return RONDO_OK;
}

static rondo_status operators_check_attributes(const char *name, const rondo_operator *given) {
    if (given->attribute_count > RONDO_OPERATOR_ATTRIBUTES_MAX || (given->attribute_count && !given->attributes))
        return OPERATORS_FAIL(SCHEMA, name, "%u attributes, there may be %u, and all must be there",
                              given->attribute_count, RONDO_OPERATOR_ATTRIBUTES_MAX);
    for (uint32_t i = 0; i < given->attribute_count; i++) {
        const rondo_operator_attribute *a = &given->attributes[i];
        if (!operators_is_word(a->attribute.name, ""))
            return OPERATORS_FAIL(SCHEMA, name, "attribute %u has no name of letters, digits and '_'", i);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(given->attributes[k].attribute.name, a->attribute.name) == 0)
                return OPERATORS_FAIL(SCHEMA, name, "two attributes are called '%s'", a->attribute.name);
        if (a->attribute.kind == RONDO_ATTRIBUTE_GRAPH)
            return RONDO__FAIL(UNSUPPORTED, SCHEMA,
                               "operator '%s': attribute '%s' is a graph: registered operators cannot have branches",
                               name, a->attribute.name);
        if (a->attribute.kind < RONDO_ATTRIBUTE_INT || a->attribute.kind > RONDO_ATTRIBUTE_TENSOR)
            return OPERATORS_FAIL(SCHEMA, name, "attribute '%s' is of no kind that there is", a->attribute.name);
        if (a->presence < RONDO_OPERATOR_ATTRIBUTE_REQUIRED || a->presence > RONDO_OPERATOR_ATTRIBUTE_OPTIONAL)
            return OPERATORS_FAIL(SCHEMA, name, "attribute '%s' is neither required, optional nor with a default",
                                  a->attribute.name);
        if (a->presence == RONDO_OPERATOR_ATTRIBUTE_DEFAULT && !rondo__ops_attribute_present(&a->attribute))
            return OPERATORS_FAIL(SCHEMA, name, "attribute '%s' has a default without a value", a->attribute.name);
    }
    return RONDO_OK;
}

static rondo_status operators_check(const rondo_operator *given, const char *name) {
    if (!operators_is_word(given->name, ""))
        return OPERATORS_FAIL(SCHEMA, name, "its name must be of letters, digits and '_', and not start with a digit");
    if (given->domain && !operators_is_word(given->domain, ".-"))
        return OPERATORS_FAIL(SCHEMA, name, "its domain must be of letters, digits, '_', '.' and '-'");
    if (given->domain && (strcmp(given->domain, "ai.onnx") == 0 || strcmp(given->domain, "rondo") == 0))
        return OPERATORS_FAIL(SCHEMA, name, "the domain '%s' is not for others", given->domain);
    if (given->onnx_domain && *given->onnx_domain && !operators_is_word(given->onnx_domain, ".-"))
        return OPERATORS_FAIL(SCHEMA, name, "its onnx_domain is no domain");
    if (given->onnx_name && !operators_is_word(given->onnx_name, ""))
        return OPERATORS_FAIL(SCHEMA, name, "its onnx_name is no name of an operator");
    RONDO__TRY(operators_check_operands(name, "input", given->inputs, given->input_count, true));
    RONDO__TRY(operators_check_operands(name, "output", given->outputs, given->output_count, false));
    if (!given->output_count) return OPERATORS_FAIL(SCHEMA, name, "it has no output");
    return operators_check_attributes(name, given);
}

static rondo_status operators_check_functions(const rondo__operator_entry *entry) {
    const char *name = entry->prototype.name;
    const rondo_operator_implementation *implementation = &entry->implementation;
    if (entry->implemented && !implementation->execute)
        return OPERATORS_FAIL(IMPLEMENTATION, name, "its implementation has no execute");
    if ((implementation->infer_shape != NULL) != (implementation->infer_dtype != NULL))
        return OPERATORS_FAIL(IMPLEMENTATION, name, "infer_shape and infer_dtype go together: one is missing");
    if ((implementation->compile != NULL) != (implementation->release != NULL))
        return OPERATORS_FAIL(IMPLEMENTATION, name, "compile and release go together: one is missing");
    if ((implementation->serialize != NULL) != (implementation->deserialize != NULL))
        return OPERATORS_FAIL(IMPLEMENTATION, name, "serialize and deserialize go together: one is missing");
    if (implementation->serialize && !implementation->compile)
        return OPERATORS_FAIL(IMPLEMENTATION, name, "serialize has nothing to write without compile");
    if (!entry->given.meta && !implementation->infer_shape)
        return OPERATORS_FAIL(META, name,
                              "nothing infers its outputs: it has no meta, and no implementation that does");
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------- the prototype */

static rondo_status operators_operands(rondo__operator_entry *entry, const rondo_operator_operand *given,
                                       uint32_t count, const rondo__ops_operand **out_operands) {
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&entry->arena, count, sizeof(rondo__ops_operand), &memory));
    rondo__ops_operand *operands = memory;
    for (uint32_t i = 0; i < count; i++) {
        operands[i] = (rondo__ops_operand){.name = given[i].name,
                                           .types = given[i].dtypes,
                                           .type_variable = given[i].same_type,
                                           .optional = given[i].presence == RONDO_OPERATOR_OPTIONAL,
                                           .variadic = given[i].presence == RONDO_OPERATOR_DYNAMIC};
    }
    *out_operands = operands;
    return RONDO_OK;
}

static rondo_status operators_default_text(rondo__operator_entry *entry, const rondo_operator_attribute *given,
                                           const char **out_text) {
    char text[128];
    int length = 0;
    *out_text = NULL;
    if (given->presence != RONDO_OPERATOR_ATTRIBUTE_DEFAULT) return RONDO_OK;
    switch (given->attribute.kind) {
    case RONDO_ATTRIBUTE_INT: length = snprintf(text, sizeof text, "%lld", (long long)given->attribute.value.i); break;
    case RONDO_ATTRIBUTE_FLOAT: length = snprintf(text, sizeof text, "%g", (double)given->attribute.value.f); break;
    case RONDO_ATTRIBUTE_STRING: length = snprintf(text, sizeof text, "%.100s", given->attribute.value.s.data); break;
    default: length = snprintf(text, sizeof text, "%u elements", given->attribute.count);
    }
    return rondo__arena_string(&entry->arena, text, length > 0 ? strlen(text) : 0, out_text);
}

static rondo_status operators_registered_infer(rondo__ops_infer *infer) {
    const rondo__operator_entry *entry = infer->prototype->registered;
    rondo_operator_result results[2u * RONDO_OPERATOR_OPERANDS_MAX];
    RONDO__TRY(rondo__operator_infer(entry, infer->request, entry->given.meta != NULL, results));
    if (entry->implementation.bound) RONDO__TRY(rondo__operator_bound(entry, infer->request, results));
    for (uint32_t i = 0; i < infer->request->output_count; i++)
        rondo__ops_result(infer, i, results[i].dtype, results[i].rank, results[i].dims);
    return RONDO_OK;
}

static rondo_status operators_prototype(rondo__operator_entry *entry, const char *name) {
    const rondo_operator *given = &entry->given;
    rondo__ops_prototype *prototype = &entry->prototype;
    void *memory = NULL;
    RONDO__TRY(rondo__arena_string(&entry->arena, name, strlen(name), &prototype->name));
    RONDO__TRY(operators_operands(entry, given->inputs, given->input_count, &prototype->inputs));
    RONDO__TRY(operators_operands(entry, given->outputs, given->output_count, &prototype->outputs));
    RONDO__TRY(
        rondo__arena_allocate_array(&entry->arena, given->attribute_count, sizeof(rondo__ops_attribute), &memory));
    rondo__ops_attribute *attributes = memory;
    for (uint32_t i = 0; i < given->attribute_count; i++) {
        const rondo_operator_attribute *a = &given->attributes[i];
        attributes[i] = (rondo__ops_attribute){.name = a->attribute.name,
                                               .kind = a->attribute.kind,
                                               .required = a->presence == RONDO_OPERATOR_ATTRIBUTE_REQUIRED};
        RONDO__TRY(operators_default_text(entry, a, &attributes[i].default_text));
    }
    prototype->attributes = attributes;
    prototype->summary = given->summary ? given->summary : "";
    prototype->input_count = given->input_count;
    prototype->output_count = given->output_count;
    prototype->attribute_count = given->attribute_count;
    prototype->infer = operators_registered_infer;
    prototype->flags = entry->implementation.bound ? RONDO__OPS_SIZED : 0;
    prototype->registered = entry;
    entry->onnx_domain = given->onnx_domain ? given->onnx_domain : given->domain ? given->domain : "";
    entry->onnx_name = given->onnx_name ? given->onnx_name : given->name;
    return RONDO_OK;
}

/* --------------------------------------------------------------------------------------------------- registering */

static rondo_status operators_check_schema(const rondo__operator_entry *entry) {
    rondo__schema schema;
    if (!entry->given.schema) return RONDO_OK;
    RONDO__TRY_NOTE(rondo__schema_parse(entry->given.schema, &schema), "the schema of operator '%s'",
                    entry->prototype.name);
    return rondo__schema_check(&schema, &entry->prototype);
}

static rondo_status operators_fill(rondo__operator_entry *entry, const rondo_operator *table) {
    char name[2u * OPERATORS_NAME_MAX + 3u];
    entry->given = (rondo_operator)RONDO_OPERATOR_INIT;
    entry->implementation = (rondo_operator_implementation)RONDO_OPERATOR_IMPLEMENTATION_INIT;
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_SCHEMA, "rondo_operator", table, &entry->given, sizeof entry->given));
    const rondo_operator *given = &entry->given;
    (void)snprintf(name, sizeof name, "%.200s%s%.200s", given->domain ? given->domain : "", given->domain ? "::" : "",
                   given->name ? given->name : "");
    RONDO__TRY(operators_check(given, name));
    entry->implemented = given->implementation != NULL;
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_IMPLEMENTATION, "rondo_operator_implementation", given->implementation,
                                 &entry->implementation, sizeof entry->implementation));
    RONDO__TRY(operators_prototype(entry, name));
    RONDO__TRY(operators_check_schema(entry));
    return operators_check_functions(entry);
}

static rondo_status operators_add(rondo__operators *operators, rondo__operator_entry *entry) {
    const char *name = entry->prototype.name;
    if (rondo__ops_find(name))
        return RONDO__FAIL(ALREADY_EXISTS, SCHEMA, "operator '%s' is built in: it has one definition", name);
    if (operators_named(operators, name))
        return RONDO__FAIL(ALREADY_EXISTS, SCHEMA, "operator '%s' is registered already: it has one definition", name);
    if (!*entry->onnx_domain && rondo__ops_find(entry->onnx_name))
        return RONDO__FAIL(ALREADY_EXISTS, SCHEMA, "operator '%s': ONNX's own '%s' is built in", name,
                           entry->onnx_name);
    const rondo__operator_entry *other = operators_meant(operators, entry->onnx_domain, entry->onnx_name);
    if (other)
        return RONDO__FAIL(ALREADY_EXISTS, SCHEMA,
                           "operator '%s': nodes '%s' of domain '%s' mean operator '%s' already", name,
                           entry->onnx_name, entry->onnx_domain, other->prototype.name);
    return rondo__buffer_append(&operators->entries, &entry, 1);
}

static rondo_status operators_add_one(rondo__operators *operators, const rondo_operator *table) {
    void *memory = NULL;
    if (!table) return RONDO__FAIL(INVALID_ARGUMENT, SCHEMA, "an operator of the list is null");
    RONDO__TRY(rondo__allocate_zeroed(&operators->allocator, sizeof(rondo__operator_entry), &memory));
    rondo__operator_entry *entry = memory;
    rondo__arena_init(&entry->arena, &operators->allocator, OPERATORS_ARENA_MAX);
    rondo_status status = operators_fill(entry, table);
    if (!status) status = operators_add(operators, entry);
    if (status) operators_entry_destroy(&operators->allocator, entry);
    return status;
}

rondo_status rondo__operators_add_all(rondo__operators *operators, const rondo_operator *const *tables, uint32_t count,
                                      void *library) {
    rondo__mutex_lock(&operators->mutex);
    size_t before = operators->entries.count;
    rondo_status status = RONDO_OK;
    for (uint32_t i = 0; i < count && !status; i++) status = operators_add_one(operators, tables[i]);
    if (!status && library) status = rondo__buffer_append(&operators->libraries, &library, 1);
    while (status && operators->entries.count > before) {
        size_t last = --operators->entries.count;
        operators_entry_destroy(&operators->allocator,
                                *RONDO__BUFFER_AT(&operators->entries, rondo__operator_entry *, last));
    }
    rondo__mutex_unlock(&operators->mutex);
    return status;
}

rondo_status rondo_operator_register(rondo_instance *instance, const rondo_operator *operator_table) {
    if (!instance || !operator_table)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "registering needs an instance and an operator");
    rondo__operators *operators = registry_of(rondo__instance_base_of(instance)->operators);
    return rondo__operators_add_all(operators, &operator_table, 1, NULL);
}
