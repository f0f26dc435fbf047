/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a schema. One pass, one character ahead; the limits are those of an operator's table. */
#include "ops/schema.h"

#include <string.h>

typedef struct schema_reader {
    const char *text, *at;
} schema_reader;

static rondo_status schema_fail(const schema_reader *r, const char *what) {
    return RONDO__FAIL(INVALID_ARGUMENT, SCHEMA, "schema, at %u ('%.20s'): %s", (unsigned)(r->at - r->text), r->at,
                       what);
}

static bool schema_is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void schema_space(schema_reader *r) {
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n') r->at++;
}

static bool schema_take(schema_reader *r, const char *token) {
    schema_space(r);
    if (strncmp(r->at, token, strlen(token)) != 0) return false;
    r->at += strlen(token);
    return true;
}

static rondo_status schema_word(schema_reader *r, const char *what, rondo__schema_slice *out) {
    schema_space(r);
    *out = (rondo__schema_slice){r->at, 0};
    if (*r->at >= '0' && *r->at <= '9') return schema_fail(r, what);
    while (schema_is_letter(*r->at)) r->at++;
    out->size = (size_t)(r->at - out->data);
    return out->size ? RONDO_OK : schema_fail(r, what);
}

static bool schema_is(rondo__schema_slice slice, const char *word) {
    return slice.size == strlen(word) && memcmp(slice.data, word, slice.size) == 0;
}

/* "my.domain::Name.overload"; the namespace of a domain may have dots and dashes. */
static rondo_status schema_name(schema_reader *r, rondo__schema *s) {
    schema_space(r);
    const char *begin = r->at, *colons = strstr(r->at, "::"), *bracket = strchr(r->at, '(');
    if (colons && bracket && colons < bracket) {
        while (r->at < colons && (schema_is_letter(*r->at) || *r->at == '.' || *r->at == '-')) r->at++;
        if (r->at != colons || r->at == begin) return schema_fail(r, "a namespace was expected before '::'");
        r->at += 2;
    }
    rondo__schema_slice name;
    if (*r->at == ' ') return schema_fail(r, "the name of an operator was expected");
    RONDO__TRY(schema_word(r, "the name of an operator was expected", &name));
    s->name = (rondo__schema_slice){begin, (size_t)(r->at - begin)};
    s->overload = (rondo__schema_slice){r->at, 0};
    if (*r->at != '.') return RONDO_OK;
    r->at++;
    return schema_word(r, "the name of an overload was expected", &s->overload);
}

/* ------------------------------------------------------------------------------------------------------------ types */

/* "(a)", "(a!)", "(a -> *)": what an argument shares its memory with. */
static rondo_status schema_alias(schema_reader *r, rondo__schema_argument *a) {
    if (*r->at != '(') return RONDO_OK;
    while (*r->at && *r->at != ')') {
        if (*r->at == '!') a->written = true;
        if (!schema_is_letter(*r->at) && !strchr("(!->|* ", *r->at)) return schema_fail(r, "an alias is not closed");
        r->at++;
    }
    if (!*r->at) return schema_fail(r, "an alias is not closed");
    r->at++;
    return RONDO_OK;
}

static rondo_status schema_type(schema_reader *r, rondo__schema_argument *a) {
    static const struct {
        const char *name;
        rondo__schema_type type;
    } types[] = {{"Tensor", RONDO__SCHEMA_TENSOR},      {"int", RONDO__SCHEMA_INT},
                 {"SymInt", RONDO__SCHEMA_INT},         {"bool", RONDO__SCHEMA_INT},
                 {"ScalarType", RONDO__SCHEMA_INT},     {"float", RONDO__SCHEMA_FLOAT},
                 {"Scalar", RONDO__SCHEMA_FLOAT},       {"str", RONDO__SCHEMA_STR},
                 {"Device", RONDO__SCHEMA_OTHER},       {"Layout", RONDO__SCHEMA_OTHER},
                 {"MemoryFormat", RONDO__SCHEMA_OTHER}, {"Generator", RONDO__SCHEMA_OTHER},
                 {"Dimname", RONDO__SCHEMA_OTHER},      {"Storage", RONDO__SCHEMA_OTHER},
                 {"Stream", RONDO__SCHEMA_OTHER},       {"QScheme", RONDO__SCHEMA_OTHER}};
    size_t i = 0;
    const char *begin;
    RONDO__TRY(schema_word(r, "a type was expected", &a->type_text));
    begin = a->type_text.data;
    while (i < sizeof types / sizeof *types && !schema_is(a->type_text, types[i].name)) i++;
    if (i == sizeof types / sizeof *types) {
        r->at = begin;
        return schema_fail(r, "there is no such type");
    }
    a->type = types[i].type;
    RONDO__TRY(schema_alias(r, a));
    for (;;) { /* "?", "[]", "[3]", in any order, a list once */
        if (*r->at == '?') {
            if (a->optional && !a->list) return schema_fail(r, "it is optional twice");
            a->optional = true;
            r->at++;
        } else if (*r->at == '[') {
            if (a->list) return schema_fail(r, "a list of lists has no form here");
            a->list = true;
            a->optional = false; /* of the elements; a list of optional tensors has them absent */
            r->at++;
            while (*r->at >= '0' && *r->at <= '9') r->at++;
            if (*r->at != ']') return schema_fail(r, "a list is not closed");
            r->at++;
        } else {
            break;
        }
    }
    RONDO__TRY(schema_alias(r, a));
    a->type_text.size = (size_t)(r->at - begin);
    return RONDO_OK;
}

/* --------------------------------------------------------------------------------------------------------- defaults */

static rondo_status schema_quoted(schema_reader *r) {
    char quote = *r->at++;
    while (*r->at && *r->at != quote) {
        if (*r->at == '\\' && r->at[1]) r->at++;
        r->at++;
    }
    if (!*r->at) return schema_fail(r, "a text is not closed");
    r->at++;
    return RONDO_OK;
}

static rondo_status schema_scalar(schema_reader *r) {
    const char *begin = r->at;
    if (*r->at == '"' || *r->at == '\'') return schema_quoted(r);
    if (*r->at == '-' || *r->at == '+') r->at++;
    while (schema_is_letter(*r->at) || *r->at == '.' ||
           ((*r->at == '-' || *r->at == '+') && r->at > begin && (r->at[-1] == 'e' || r->at[-1] == 'E')))
        r->at++;
    return r->at == begin ? schema_fail(r, "a default was expected") : RONDO_OK;
}

static rondo_status schema_default(schema_reader *r, rondo__schema_argument *a) {
    if (!schema_take(r, "=")) return RONDO_OK;
    schema_space(r);
    a->value.data = r->at;
    if (*r->at == '[') {
        r->at++;
        while (!schema_take(r, "]")) {
            schema_space(r);
            RONDO__TRY(schema_scalar(r));
            schema_space(r);
            if (*r->at == ',') r->at++;
            else if (*r->at != ']') return schema_fail(r, "a list is not closed");
        }
    } else {
        RONDO__TRY(schema_scalar(r));
    }
    a->value.size = (size_t)(r->at - a->value.data);
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------------ lists */

static rondo_status schema_argument(schema_reader *r, rondo__schema *s, bool keyword_only) {
    if (s->argument_count == RONDO__SCHEMA_ARGUMENTS) return schema_fail(r, "there are more than 64 arguments");
    rondo__schema_argument *a = &s->arguments[s->argument_count];
    *a = (rondo__schema_argument){.keyword_only = keyword_only};
    RONDO__TRY(schema_type(r, a));
    if (*r->at != ' ') return schema_fail(r, "a space was expected behind the type");
    RONDO__TRY(schema_word(r, "the name of an argument was expected", &a->name));
    for (uint32_t i = 0; i < s->argument_count; i++) {
        const rondo__schema_slice *other = &s->arguments[i].name;
        if (other->size != a->name.size || memcmp(other->data, a->name.data, other->size) != 0) continue;
        r->at = a->name.data;
        return schema_fail(r, "two arguments have this name");
    }
    RONDO__TRY(schema_default(r, a));
    s->argument_count++;
    return RONDO_OK;
}

static rondo_status schema_arguments(schema_reader *r, rondo__schema *s) {
    bool keyword_only = false;
    if (!schema_take(r, "(")) return schema_fail(r, "'(' was expected");
    if (schema_take(r, ")")) return RONDO_OK;
    for (;;) {
        schema_space(r);
        if (*r->at == '*' && !keyword_only) {
            r->at++;
            keyword_only = true;
        } else {
            RONDO__TRY(schema_argument(r, s, keyword_only));
        }
        if (schema_take(r, ")")) return RONDO_OK;
        if (!schema_take(r, ",")) return schema_fail(r, "',' or ')' was expected");
    }
}

static rondo_status schema_return(schema_reader *r, rondo__schema *s) {
    if (s->return_count == RONDO__SCHEMA_RETURNS) return schema_fail(r, "there are more than 32 results");
    rondo__schema_argument *a = &s->returns[s->return_count];
    *a = (rondo__schema_argument){.name = {"", 0}};
    RONDO__TRY(schema_type(r, a));
    if (*r->at == ' ' && schema_is_letter(r->at[1]))
        RONDO__TRY(schema_word(r, "the name of a result was expected", &a->name));
    s->return_count++;
    return RONDO_OK;
}

static rondo_status schema_returns(schema_reader *r, rondo__schema *s) {
    if (!schema_take(r, "->")) return schema_fail(r, "'->' was expected");
    if (!schema_take(r, "(")) {
        schema_space(r);
        return schema_return(r, s);
    }
    if (schema_take(r, ")")) return RONDO_OK;
    for (;;) {
        schema_space(r);
        RONDO__TRY(schema_return(r, s));
        if (schema_take(r, ")")) return RONDO_OK;
        if (!schema_take(r, ",")) return schema_fail(r, "',' or ')' was expected");
    }
}

rondo_status rondo__schema_parse(const char *text, rondo__schema *out_schema) {
    schema_reader r = {text, text};
    rondo__schema *s = out_schema;
    s->argument_count = s->return_count = 0;
    if (strnlen(text, RONDO__SCHEMA_TEXT_MAX) == RONDO__SCHEMA_TEXT_MAX)
        return RONDO__FAIL(OUT_OF_RANGE, SCHEMA, "a schema has at most %u characters", RONDO__SCHEMA_TEXT_MAX);
    RONDO__TRY(schema_name(&r, s));
    RONDO__TRY(schema_arguments(&r, s));
    RONDO__TRY(schema_returns(&r, s));
    schema_space(&r);
    return *r.at ? schema_fail(&r, "the end was expected") : RONDO_OK;
}
