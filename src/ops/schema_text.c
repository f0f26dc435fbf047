/* SPDX-License-Identifier: Apache-2.0
 *
 * A prototype as the text of a schema, and a schema held against a prototype. */
#include <stdlib.h>
#include <string.h>

#include "ops/operators.h"
#include "ops/schema.h"

/* ---------------------------------------------------------------------------------------------------------- writing */

static const char *schema_kind_type(rondo_attribute_kind kind) {
    switch (kind) {
    case RONDO_ATTRIBUTE_INT: return "int";
    case RONDO_ATTRIBUTE_FLOAT: return "float";
    case RONDO_ATTRIBUTE_STRING: return "str";
    case RONDO_ATTRIBUTE_INTS: return "int[]";
    case RONDO_ATTRIBUTE_FLOATS: return "float[]";
    case RONDO_ATTRIBUTE_STRINGS: return "str[]";
    default: return NULL;
    }
}

/* The default of a registered operator; null for built-in ones, whose defaults are text for people. */
static const rondo_attribute *schema_default_of(const rondo__ops_prototype *prototype, uint32_t index) {
    const rondo__operator_entry *entry = prototype->registered;
    if (!entry || entry->given.attributes[index].presence != RONDO_OPERATOR_ATTRIBUTE_DEFAULT) return NULL;
    return &entry->given.attributes[index].attribute;
}

static rondo_status schema_put_string(rondo__buffer *text, const char *data, size_t size) {
    RONDO__TRY(rondo__text_append(text, "\""));
    for (size_t i = 0; i < size; i++)
        RONDO__TRY(rondo__text_append(text, strchr("\"\\", data[i]) ? "\\%c" : "%c", data[i]));
    return rondo__text_append(text, "\"");
}

static rondo_status schema_put_value(rondo__buffer *text, const rondo_attribute *a, uint32_t i) {
    switch (a->kind) {
    case RONDO_ATTRIBUTE_INT: return rondo__text_append(text, "%lld", (long long)a->value.i);
    case RONDO_ATTRIBUTE_INTS: return rondo__text_append(text, "%lld", (long long)a->value.ints[i]);
    case RONDO_ATTRIBUTE_FLOAT: return rondo__text_append(text, "%.9g", (double)a->value.f);
    case RONDO_ATTRIBUTE_FLOATS: return rondo__text_append(text, "%.9g", (double)a->value.floats[i]);
    case RONDO_ATTRIBUTE_STRING: return schema_put_string(text, a->value.s.data, a->value.s.size);
    default: return schema_put_string(text, a->value.strings[i].data, a->value.strings[i].size);
    }
}

/* Of a built-in operator: where its text is a value of the kind. */
static bool schema_is_value(const rondo__ops_attribute *known) {
    char *end = NULL;
    if (!known->default_text) return false;
    if (known->kind == RONDO_ATTRIBUTE_STRING) return true;
    if (known->kind != RONDO_ATTRIBUTE_INT && known->kind != RONDO_ATTRIBUTE_FLOAT) return false;
    (void)strtod(known->default_text, &end);
    return end != known->default_text && !*end;
}

static rondo_status schema_put_attribute(const rondo__ops_prototype *prototype, uint32_t index, rondo__buffer *text) {
    const rondo__ops_attribute *known = &prototype->attributes[index];
    const rondo_attribute *value = schema_default_of(prototype, index);
    const char *type = schema_kind_type(known->kind);
    const bool list = value && value->kind >= RONDO_ATTRIBUTE_INTS;
    for (uint32_t i = 0; i < prototype->input_count; i++)
        if (strcmp(prototype->inputs[i].name, known->name) == 0)
            return RONDO__FAIL(
                UNSUPPORTED, SCHEMA,
                "operator '%s': an input and an attribute are called '%s', and a schema has one of a name",
                prototype->name, known->name);
    if (!type)
        return RONDO__FAIL(UNSUPPORTED, SCHEMA, "operator '%s': attribute '%s' has no type in the language of schemas",
                           prototype->name, known->name);
    if (known->required) return rondo__text_append(text, "%s %s", type, known->name);
    if (!value && (prototype->registered || !schema_is_value(known)))
        return rondo__text_append(text, "%s? %s=None", type, known->name);
    RONDO__TRY(rondo__text_append(text, "%s %s=", type, known->name));
    if (!value && known->kind == RONDO_ATTRIBUTE_STRING)
        return schema_put_string(text, known->default_text, strlen(known->default_text));
    if (!value) return rondo__text_append(text, "%s", known->default_text);
    if (list) RONDO__TRY(rondo__text_append(text, "["));
    for (uint32_t i = 0; i < (list ? value->count : 1u); i++) {
        if (i) RONDO__TRY(rondo__text_append(text, ", "));
        RONDO__TRY(schema_put_value(text, value, i));
    }
    return list ? rondo__text_append(text, "]") : RONDO_OK;
}

static const char *schema_operand_type(const rondo__ops_operand *operand) {
    return operand->variadic ? "Tensor[]" : operand->optional ? "Tensor?" : "Tensor";
}

rondo_status rondo__schema_print(const rondo__ops_prototype *prototype, rondo__buffer *text) {
    const char *between = "";
    RONDO__TRY(rondo__text_append(text, "%s(", prototype->name));
    for (uint32_t i = 0; i < prototype->input_count; i++) {
        const rondo__ops_operand *input = &prototype->inputs[i];
        bool rest = true; /* None can be left out where all that follows can */
        for (uint32_t k = i; k < prototype->input_count; k++) rest = rest && prototype->inputs[k].optional;
        if (input->internal) continue;
        RONDO__TRY(rondo__text_append(text, "%s%s %s%s", between, schema_operand_type(input), input->name,
                                      rest && !input->variadic ? "=None" : ""));
        between = ", ";
    }
    for (uint32_t i = 0; i < prototype->attribute_count; i++) {
        RONDO__TRY(rondo__text_append(text, "%s%s", between, i ? "" : "*, "));
        RONDO__TRY(schema_put_attribute(prototype, i, text));
        between = ", ";
    }
    RONDO__TRY(rondo__text_append(text, ") -> %s", prototype->output_count == 1 ? "" : "("));
    for (uint32_t i = 0; i < prototype->output_count; i++)
        RONDO__TRY(rondo__text_append(text, "%s%s %s", i ? ", " : "", schema_operand_type(&prototype->outputs[i]),
                                      prototype->outputs[i].name));
    return rondo__text_append(text, "%s", prototype->output_count == 1 ? "" : ")");
}

/* -------------------------------------------------------------------------------------------------------- comparing */

#define SCHEMA_DIFFERS(prototype, format, ...) \
    RONDO__FAIL(INVALID_ARGUMENT, SCHEMA, "operator '%s' and its schema: " format, (prototype)->name, __VA_ARGS__)
#define SCHEMA_TEXT(slice) (int)((slice).size < 100 ? (slice).size : 100), (slice).data

static bool schema_same(rondo__schema_slice slice, const char *word) {
    return slice.size == strlen(word) && memcmp(slice.data, word, slice.size) == 0;
}

static rondo_status schema_check_operand(const rondo__ops_prototype *prototype, const char *what, uint32_t index,
                                         const rondo__schema_argument *a, const rondo__ops_operand *operands,
                                         uint32_t count) {
    if (index >= count || operands[index].internal)
        return SCHEMA_DIFFERS(prototype, "the schema has %s '%.*s', the prototype has %u", what, SCHEMA_TEXT(a->name),
                              count);
    const rondo__ops_operand *operand = &operands[index];
    if (a->name.size && !schema_same(a->name, operand->name))
        return SCHEMA_DIFFERS(prototype, "%s %u is '%.*s' in the schema and '%s' in the prototype", what, index,
                              SCHEMA_TEXT(a->name), operand->name);
    if (a->list != (operand->variadic != 0) || a->optional != (operand->optional != 0 && !operand->variadic))
        return SCHEMA_DIFFERS(prototype, "%s '%s' is %.*s in the schema and %s in the prototype", what, operand->name,
                              SCHEMA_TEXT(a->type_text), schema_operand_type(operand));
    return RONDO_OK;
}

static bool schema_kind_fits(const rondo__schema_argument *a, rondo_attribute_kind kind) {
    const rondo_attribute_kind kinds[] = {RONDO_ATTRIBUTE_TENSOR, a->list ? RONDO_ATTRIBUTE_INTS : RONDO_ATTRIBUTE_INT,
                                          a->list ? RONDO_ATTRIBUTE_FLOATS : RONDO_ATTRIBUTE_FLOAT,
                                          a->list ? RONDO_ATTRIBUTE_STRINGS : RONDO_ATTRIBUTE_STRING,
                                          RONDO_ATTRIBUTE_NONE};
    return kinds[a->type] == kind && kind != RONDO_ATTRIBUTE_NONE;
}

/* One value at *at, which goes on behind it. */
static bool schema_value_is(const rondo_attribute *a, uint32_t i, const char **at) {
    char *end = NULL;
    const bool ints = a->kind == RONDO_ATTRIBUTE_INT || a->kind == RONDO_ATTRIBUTE_INTS;
    const bool strings = a->kind == RONDO_ATTRIBUTE_STRING || a->kind == RONDO_ATTRIBUTE_STRINGS;
    if (strings) {
        const rondo_string *s = a->kind == RONDO_ATTRIBUTE_STRING ? &a->value.s : &a->value.strings[i];
        const char quote = *(*at)++;
        size_t n = 0;
        for (; **at && **at != quote; (*at)++, n++) {
            if (**at == '\\') (*at)++;
            if (n >= s->size || s->data[n] != **at) return false;
        }
        if (**at) (*at)++;
        return n == s->size;
    }
    if (ints && (strncmp(*at, "True", 4) == 0 || strncmp(*at, "False", 5) == 0)) {
        const int64_t truth = **at == 'T';
        *at += truth ? 4 : 5;
        return truth == (a->kind == RONDO_ATTRIBUTE_INT ? a->value.i : a->value.ints[i]);
    }
    const long long whole = strtoll(*at, &end, 10);
    const float number = ints ? 0 : strtof(*at, &end);
    const bool read = end != *at;
    *at = end;
    if (ints) return read && whole == (a->kind == RONDO_ATTRIBUTE_INT ? a->value.i : a->value.ints[i]);
    const float want = a->kind == RONDO_ATTRIBUTE_FLOAT ? a->value.f : a->value.floats[i];
    return read && (number == want || (number != number && want != want));
}

/* The text is a slice of what was parsed, which goes on with ',' or ')'. */
static bool schema_default_is(const rondo__schema_argument *a, const rondo_attribute *value) {
    const char *at = a->value.data, *stop = a->value.data + a->value.size;
    const bool list = value->kind >= RONDO_ATTRIBUTE_INTS;
    uint32_t i = 0;
    if (!list) return schema_value_is(value, 0, &at) && at == stop;
    if (*at++ != '[') return false;
    for (;; i++) {
        while (*at == ' ' || *at == ',') at++;
        if (*at == ']') break;
        if (i >= value->count || !schema_value_is(value, i, &at)) return false;
    }
    return i == value->count && at + 1 == stop;
}

static rondo_status schema_check_attribute(const rondo__ops_prototype *prototype, const rondo__schema_argument *a,
                                           uint32_t *mask) {
    uint32_t i = 0;
    while (i < prototype->attribute_count && !schema_same(a->name, prototype->attributes[i].name)) i++;
    if (i == prototype->attribute_count)
        return SCHEMA_DIFFERS(prototype, "the prototype has no attribute '%.*s'", SCHEMA_TEXT(a->name));
    const rondo__ops_attribute *known = &prototype->attributes[i];
    *mask |= 1u << i;
    if (!schema_kind_fits(a, known->kind))
        return SCHEMA_DIFFERS(prototype, "attribute '%s' is %.*s in the schema, which is another kind in the prototype",
                              known->name, SCHEMA_TEXT(a->type_text));
    const bool none = a->value.size == 4 && memcmp(a->value.data, "None", 4) == 0;
    const bool needed = !a->value.size && !a->optional;
    if (needed != (known->required != 0))
        return SCHEMA_DIFFERS(prototype, "attribute '%s' is %s in the schema and not in the prototype", known->name,
                              needed ? "required" : "optional");
    const rondo_attribute *value = schema_default_of(prototype, i);
    const bool open = prototype->registered && !value && !known->required;
    if ((open && a->value.size && !none) || (value && (none || !a->value.size || !schema_default_is(a, value))))
        return SCHEMA_DIFFERS(prototype, "attribute '%s' has the default '%.*s' in the schema and %s in the prototype",
                              known->name, SCHEMA_TEXT(a->value), value ? "another" : "none");
    return RONDO_OK;
}

rondo_status rondo__schema_check(const rondo__schema *schema, const rondo__ops_prototype *prototype) {
    uint32_t input = 0, mask = 0;
    for (uint32_t i = 0; i < schema->argument_count; i++) {
        const rondo__schema_argument *a = &schema->arguments[i];
        if (a->type == RONDO__SCHEMA_TENSOR)
            RONDO__TRY(schema_check_operand(prototype, "input", input++, a, prototype->inputs, prototype->input_count));
        else RONDO__TRY(schema_check_attribute(prototype, a, &mask));
    }
    for (uint32_t i = input; i < prototype->input_count; i++)
        if (!prototype->inputs[i].internal)
            return SCHEMA_DIFFERS(prototype, "the schema has no input '%s'", prototype->inputs[i].name);
    for (uint32_t i = 0; i < prototype->attribute_count; i++)
        if (prototype->attributes[i].required && !(mask >> i & 1u))
            return SCHEMA_DIFFERS(prototype, "the schema has no attribute '%s', which is required",
                                  prototype->attributes[i].name);
    for (uint32_t i = 0; i < schema->return_count; i++) {
        const rondo__schema_argument *a = &schema->returns[i];
        if (a->type != RONDO__SCHEMA_TENSOR)
            return SCHEMA_DIFFERS(prototype, "result %u is %.*s and no tensor", i, SCHEMA_TEXT(a->type_text));
        RONDO__TRY(schema_check_operand(prototype, "output", i, a, prototype->outputs, prototype->output_count));
    }
    for (uint32_t i = schema->return_count; i < prototype->output_count; i++)
        if (!prototype->outputs[i].optional || i == 0)
            return SCHEMA_DIFFERS(prototype, "the schema has no output '%s'", prototype->outputs[i].name);
    return RONDO_OK;
}
