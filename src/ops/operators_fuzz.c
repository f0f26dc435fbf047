/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes to a schema, and bytes to a table that is registered. A schema that is read says the same when it is read again
 * from its bytes alone; a table that is accepted is found under its name, and is what its own schema says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "ops/operators.h"
#include "ops/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct table_fuzz {
    const uint8_t *at, *end;
    rondo_operator_operand operands[2][4];
    rondo_operator_attribute attributes[4];
    int64_t ints[4];
    float floats[4];
    rondo_string strings[4];
    char texts[24][24];
    uint32_t used;
} table_fuzz;

static uint8_t table_fuzz_byte(table_fuzz *f) { return f->at < f->end ? *f->at++ : 0; }

/* Mostly words, sometimes any bytes, sometimes none. */
static const char *table_fuzz_text(table_fuzz *f) {
    uint8_t how = table_fuzz_byte(f);
    if (how == 0xff || f->used == 24) return NULL;
    char *text = f->texts[f->used++];
    for (uint32_t i = 0; i < how % 20u; i++) {
        uint8_t b = table_fuzz_byte(f);
        text[i] = how < 0xe0 ? (char)('a' + b % 26) : (char)b;
    }
    text[how % 20u] = 0;
    return text;
}

static void table_fuzz_attribute(table_fuzz *f, uint32_t i) {
    rondo_operator_attribute *a = &f->attributes[i];
    uint8_t how = table_fuzz_byte(f);
    f->ints[i] = (int64_t)table_fuzz_byte(f) - 128;
    f->floats[i] = (float)table_fuzz_byte(f) / 7;
    a->attribute.name = table_fuzz_text(f);
    a->attribute.kind = how % 10;
    a->attribute.count = 1;
    a->presence = how / 10 % 4;
    const char *text = table_fuzz_text(f);
    f->strings[i] = (rondo_string){text, text ? strlen(text) : 0};
    switch (a->attribute.kind) {
    case RONDO_ATTRIBUTE_INT: a->attribute.value.i = f->ints[i]; break;
    case RONDO_ATTRIBUTE_FLOAT: a->attribute.value.f = f->floats[i]; break;
    case RONDO_ATTRIBUTE_STRING: a->attribute.value.s = f->strings[i]; break;
    case RONDO_ATTRIBUTE_INTS: a->attribute.value.ints = how & 64u ? NULL : &f->ints[i]; break;
    case RONDO_ATTRIBUTE_FLOATS: a->attribute.value.floats = &f->floats[i]; break;
    case RONDO_ATTRIBUTE_STRINGS:
        if (!text) a->attribute.kind = RONDO_ATTRIBUTE_INT; /* a null among strings is the caller's fault */
        else a->attribute.value.strings = &f->strings[i];
        break;
    default: break;
    }
}

static rondo_status table_fuzz_infer(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                     rondo_operator_result *results) {
    (void)api;
    (void)user;
    (void)request;
    (void)results;
    return RONDO_OK;
}

static void table_fuzz_accepted(rondo__operators *operators, const rondo_allocator *allocator) {
    const rondo__operator_entry *entry = *RONDO__BUFFER_AT(&operators->entries, rondo__operator_entry *, 0);
    rondo__buffer text;
    rondo__schema schema;
    if (rondo__operators_find(operators, entry->prototype.name) != entry) abort();
    rondo__buffer_init(&text, allocator, 1, RONDO__SCHEMA_TEXT_MAX);
    rondo_status status = rondo__schema_print(&entry->prototype, &text);
    if (!status) {
        status = rondo__buffer_append(&text, "", 1);
        if (!status) status = rondo__schema_parse(text.data, &schema);
        if (!status) status = rondo__schema_check(&schema, &entry->prototype);
        if (status) {
            char why[512];
            (void)rondo_status_format(status, why, sizeof why);
            (void)fprintf(stderr, "%s\n%s\n", (const char *)text.data, why);
            abort();
        }
    }
    rondo_status_release(status);
    rondo__buffer_deinit(&text);
}

static void table_fuzz_run(table_fuzz *f) {
    rondo_allocator allocator = rondo_allocator_default();
    rondo__log log = {0};
    rondo__shared *shared = NULL;
    rondo_operator table = RONDO_OPERATOR_INIT;
    const rondo_operator *tables[] = {&table};
    uint8_t counts = table_fuzz_byte(f);
    table.name = table_fuzz_text(f);
    table.domain = table_fuzz_text(f);
    table.input_count = counts & 3u;
    table.output_count = counts >> 2 & 3u;
    table.attribute_count = counts >> 4 & 3u;
    table.inputs = f->operands[0];
    table.outputs = f->operands[1];
    table.attributes = f->attributes;
    table.meta = counts & 64u ? NULL : table_fuzz_infer;
    for (uint32_t i = 0; i < 8; i++) {
        rondo_operator_operand *operand = &f->operands[i / 4u][i % 4u];
        uint8_t how = table_fuzz_byte(f);
        operand->name = table_fuzz_text(f);
        operand->dtypes = how & 1u ? 2u : (uint32_t)table_fuzz_byte(f) << (how & 15u);
        operand->presence = how / 16 % 4;
        operand->same_type = how >= 0xf0 ? (char)how : 0;
    }
    for (uint32_t i = 0; i < 4; i++) table_fuzz_attribute(f, i);
    rondo_status status = rondo__operators_create(&allocator, &log, &shared);
    rondo__operators *operators = (rondo__operators *)(void *)shared;
    if (!status) status = rondo__operators_add_all(operators, tables, 1, NULL);
    if (!status) table_fuzz_accepted(operators, &allocator);
    rondo_status_release(status);
    rondo__shared_release(shared);
}

static void schema_fuzz_run(const uint8_t *data, size_t size) {
    rondo__schema schema, again;
    char *text = malloc(size + 1u);
    if (!text) return;
    if (size) memcpy(text, data, size);
    text[size] = 0;
    rondo_status status = rondo__schema_parse(text, &schema);
    for (uint32_t i = 0; rondo__ops_at(i); i += 17) { /* whatever it says, it is compared without harm */
        rondo_status differs = status ? RONDO_OK : rondo__schema_check(&schema, rondo__ops_at(i));
        rondo_status_release(differs);
    }
    rondo_status other = rondo__schema_parse(text, &again);
    if (!status != !other || (!status && schema.argument_count != again.argument_count)) abort();
    rondo_status_release(status);
    rondo_status_release(other);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    table_fuzz *f = calloc(1, sizeof *f);
    if (f && size && data[0] & 1u) {
        f->at = data + 1;
        f->end = data + size;
        table_fuzz_run(f);
    } else if (size) {
        schema_fuzz_run(data + 1, size - 1u);
    }
    free(f);
    return 0;
}
