/* SPDX-License-Identifier: Apache-2.0
 *
 * Schemas as text: what can be read, what cannot and where, every prototype written and read again, and a table that does
 * not say what its schema says. The texts that are read were all put to PyTorch's own parser, which agrees. */
#include <rondo/operator.h>

#include <stdio.h>

#include "harness/harness.h"
#include "ops/schema.h"

static void open_instance(rondo_test *t, rondo_instance **out_instance) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    options.ignore_plugin_path = 1;
    options.allocator = rondo_test_allocator(t);
    T_OK(t, rondo_instance_create(&options, out_instance));
}

/* ---------------------------------------------------------------------------------------------------------- reading */

static const struct {
    const char *text, *refused; /* null: it is read */
    uint32_t arguments, returns;
} texts[] = {
    {"my::add_custom(Tensor x, Tensor y, *, float alpha=1.0) -> Tensor", NULL, 3, 1},
    {"f() -> ()", NULL, 0, 0},
    {"f.out(Tensor(a!) x) -> Tensor(a!)", NULL, 1, 1},
    {"a::f.b(Tensor? x=None, Tensor[] xs=[]) -> (Tensor y, Tensor? z)", NULL, 2, 2},
    {"f(int[2] p=[1, 2], int[]? q=None, bool[3] m, str s='a b', str t=\"c\\\"d\") -> Tensor[]", NULL, 5, 1},
    {"f(Scalar a, SymInt b, ScalarType? dtype=None, float e=-1e-05) -> ()", NULL, 4, 0},
    {"f(Tensor x , Tensor y)->Tensor", NULL, 2, 1},
    {"f(Tensor(a -> *) x) -> Tensor(a)[]", NULL, 1, 1},
    {"f(Tensor x", "at 10 (''): ',' or ')' was expected", 0, 0},
    {"f(Tensor x) -> ", "a type was expected", 0, 0},
    {"f(Tensor x)", "at 11 (''): '->' was expected", 0, 0},
    {"f(Tensr x) -> Tensor", "at 2 ('Tensr x) -> Tensor'): there is no such type", 0, 0},
    {"f(Tensor) -> Tensor", "a space was expected behind the type", 0, 0},
    {"f(Tensor x, Tensor x) -> Tensor", "at 19 ('x) -> Tensor'): two arguments have this name", 0, 0},
    {"f(Tensor x=) -> Tensor", "a default was expected", 0, 0},
    {"f(str s=\"abc) -> Tensor", "a text is not closed", 0, 0},
    {"f(int[] s=[1) -> Tensor", "a list is not closed", 0, 0},
    {"f(Tensor(a!", "an alias is not closed", 0, 0},
    {"f(Tensor x) -> Tensor y z", "the end was expected", 0, 0},
    {"f(*, *, Tensor x) -> Tensor", "a type was expected", 0, 0},
    {"::f(Tensor x) -> Tensor", "a namespace was expected", 0, 0},
    {"a::9(Tensor x) -> Tensor", "the name of an operator was expected", 0, 0},
    {"f.(Tensor x) -> Tensor", "the name of an overload was expected", 0, 0},
    {"", "the name of an operator was expected", 0, 0},
    {"f(int[][] x) -> Tensor", "a list of lists has no form here", 0, 0},
};

static void texts_are_read_or_refused_with_their_place(rondo_test *t) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        rondo__schema schema;
        rondo_status status = rondo__schema_parse(texts[i].text, &schema);
        if (texts[i].refused) {
            T_FAILS(t, status, INVALID_ARGUMENT, texts[i].refused);
            continue;
        }
        T_OK(t, status);
        if (schema.argument_count != texts[i].arguments || schema.return_count != texts[i].returns)
            rondo_test_fail(t, __FILE__, __LINE__, "%s: %u arguments, %u results", texts[i].text, schema.argument_count,
                            schema.return_count);
    }
}

static void a_schema_has_limits(rondo_test *t) {
    static char text[RONDO__SCHEMA_TEXT_MAX + 8u];
    rondo__schema schema;
    size_t used = (size_t)snprintf(text, sizeof text, "f(");
    for (int i = 0; i < 65; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%sint a%d", i ? ", " : "", i);
    (void)snprintf(text + used, sizeof text - used, ") -> Tensor");
    T_FAILS(t, rondo__schema_parse(text, &schema), INVALID_ARGUMENT, "more than 64 arguments");
    memset(text, ' ', sizeof text - 1u);
    T_FAILS(t, rondo__schema_parse(text, &schema), OUT_OF_RANGE, "at most 65536 characters");
}

/* ---------------------------------------------------------------------------------------------------------- writing */

typedef struct page {
    char text[4096];
} page;

static int32_t page_write(void *user, const char *data, size_t size) {
    page *p = user;
    if (size >= sizeof p->text) return 1;
    memcpy(p->text, data, size);
    p->text[size] = 0;
    return 0;
}

static void each_prototype_is_what_it_is_written_as(rondo_test *t) {
    rondo_instance *instance = NULL;
    uint32_t written = 0, refused = 0;
    open_instance(t, &instance);
    T_DEFER(t, rondo_instance_release, instance);
    for (uint32_t i = 0; rondo__ops_at(i); i++) {
        const char *name = rondo__ops_at(i)->name;
        page p;
        rondo_status status = rondo_operator_print_schema(instance, name, page_write, &p);
        if (rondo_status_code(status) == RONDO_CODE_UNSUPPORTED) {
            T_FAILS(t, status, UNSUPPORTED, "has no type in the language of schemas");
            refused++;
            continue;
        }
        T_OK(t, status);
        T_OK(t, rondo_operator_check_schema(instance, name, p.text));
        written++;
        if (strcmp(name, "Gemm") == 0)
            T_STR(
                t, p.text,
                "Gemm(Tensor A, Tensor B, Tensor? C=None, *, float alpha=1.0, float beta=1.0, int transA=0, int transB=0) "
                "-> Tensor Y");
        /* Another operator's schema is never its own. */
        if (strcmp(name, "Conv") != 0)
            T_FAILS(t, rondo_operator_check_schema(instance, "Conv", p.text), INVALID_ARGUMENT,
                    "operator 'Conv' and its schema");
    }
    T_TRUE(t, written > 100 && refused >= 2 && refused < 8);
}

/* -------------------------------------------------------------------------------------------------- against a table */

static rondo_status same_as_x(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                              rondo_operator_result *results) {
    (void)api;
    (void)user;
    (void)request;
    (void)results;
    return RONDO_OK;
}

#define TYPES RONDO_OPERATOR_DTYPE(F32)
static const rondo_operator_operand inputs[] = {{"x", TYPES, RONDO_OPERATOR_REQUIRED, 0, {0}},
                                                {"bias", TYPES, RONDO_OPERATOR_OPTIONAL, 0, {0}},
                                                {"rest", TYPES, RONDO_OPERATOR_DYNAMIC, 0, {0}}};
static const rondo_operator_operand outputs[] = {{"y", TYPES, RONDO_OPERATOR_REQUIRED, 0, {0}},
                                                 {"mean", TYPES, RONDO_OPERATOR_OPTIONAL, 0, {0}}};
static const int64_t sizes[] = {3, -4};
static const rondo_operator_attribute attributes[] = {
    {{"axis", RONDO_ATTRIBUTE_INT, 1, {0}}, RONDO_OPERATOR_ATTRIBUTE_REQUIRED, 0},
    {{"alpha", RONDO_ATTRIBUTE_FLOAT, 1, {.f = 0.1f}}, RONDO_OPERATOR_ATTRIBUTE_DEFAULT, 0},
    {{"mode", RONDO_ATTRIBUTE_STRING, 1, {.s = {"a\"b", 3}}}, RONDO_OPERATOR_ATTRIBUTE_DEFAULT, 0},
    {{"sizes", RONDO_ATTRIBUTE_INTS, 2, {.ints = sizes}}, RONDO_OPERATOR_ATTRIBUTE_DEFAULT, 0},
    {{"seed", RONDO_ATTRIBUTE_INT, 1, {0}}, RONDO_OPERATOR_ATTRIBUTE_OPTIONAL, 0}};

static void make(rondo_operator *table, const char *name, const char *schema) {
    *table = (rondo_operator)RONDO_OPERATOR_INIT;
    table->domain = "my";
    table->name = name;
    table->inputs = inputs;
    table->input_count = 3;
    table->outputs = outputs;
    table->output_count = 2;
    table->attributes = attributes;
    table->attribute_count = 5;
    table->meta = same_as_x;
    table->schema = schema;
}

static const char whole[] = "my::Op(Tensor x, Tensor? bias, Tensor[] rest, *, int axis, float alpha=0.100000001, "
                            "str mode=\"a\\\"b\", int[] sizes=[3, -4], int? seed=None) -> (Tensor y, Tensor? mean)";

static const struct {
    const char *schema, *refused;
} tables[] = {
    {NULL, NULL},
    {whole, NULL},
    {"other::name(Tensor x, Tensor? bias, Tensor[] rest, int axis) -> Tensor",
     NULL}, /* what is left out keeps its default */
    {"f(Tensor x, Tensor? bias, Tensor[] rest, int axis, float alpha=0.1, str mode='a\"b', int[2] sizes=[3,-4]) -> Tensor y",
     NULL},
    {"f(Tensor x", "',' or ')' was expected"},
    {"f(Tensor a, Tensor? bias, Tensor[] rest, int axis) -> Tensor",
     "input 0 is 'a' in the schema and 'x' in the prototype"},
    {"f(Tensor x, Tensor bias, Tensor[] rest, int axis) -> Tensor",
     "input 'bias' is Tensor in the schema and Tensor? in"},
    {"f(Tensor x, Tensor? bias, Tensor rest, int axis) -> Tensor",
     "input 'rest' is Tensor in the schema and Tensor[] in"},
    {"f(Tensor x, Tensor? bias, int axis) -> Tensor", "the schema has no input 'rest'"},
    {"f(Tensor x, Tensor? bias, Tensor[] rest, Tensor z, int axis) -> Tensor",
     "the schema has input 'z', the prototype has 3"},
    {"f(Tensor x, Tensor? bias, Tensor[] rest) -> Tensor", "the schema has no attribute 'axis', which is required"},
    {"f(Tensor x, Tensor? bias, Tensor[] rest, float axis) -> Tensor",
     "attribute 'axis' is float in the schema, which is"},
    {"f(Tensor x, Tensor? bias, Tensor[] rest, int axis=0) -> Tensor", "'axis' is optional in the schema and not in"},
    {"f(Tensor x, Tensor? bias, Tensor[] rest, int axis, float alpha) -> Tensor",
     "'alpha' is required in the schema and not"},
    {"f(Tensor x, Tensor? bias, Tensor[] rest, int axis, float alpha=0.2) -> Tensor",
     "'alpha' has the default '0.2' in the"},
    {"f(Tensor x, Tensor? bias, Tensor[] rest, int axis, str mode='ab') -> Tensor",
     "'mode' has the default ''ab'' in the"},
    {"f(Tensor x, Tensor? bias, Tensor[] rest, int axis, int[] sizes=[3]) -> Tensor",
     "'sizes' has the default '[3]' in"},
    {"f(Tensor x, Tensor? bias, Tensor[] rest, int axis, int[] sizes=[3,-4,5]) -> Tensor", "'sizes' has the default"},
    {"f(Tensor x, Tensor? bias, Tensor[] rest, int axis, int seed=1) -> Tensor",
     "'seed' has the default '1' in the schema "
     "and none in the prototype"},
    {"f(Tensor x, Tensor? bias, Tensor[] rest, int axis, int beta=1) -> Tensor",
     "the prototype has no attribute 'beta'"},
    {"f(Tensor x, Tensor? bias, Tensor[] rest, int axis) -> ()", "the schema has no output 'y'"},
    {"f(Tensor x, Tensor? bias, Tensor[] rest, int axis) -> int", "result 0 is int and no tensor"},
    {"f(Tensor x, Tensor? bias, Tensor[] rest, int axis) -> Tensor z", "output 0 is 'z' in the schema and 'y' in"},
    {"f(Tensor x, Tensor? bias, Tensor[] rest, int axis) -> (Tensor y, Tensor mean)", "output 'mean' is Tensor in the"},
};

static void a_table_says_what_its_schema_says(rondo_test *t) {
    rondo_instance *instance = NULL;
    rondo_operator table, all[sizeof tables / sizeof *tables];
    char names[sizeof tables / sizeof *tables][8];
    page p;
    open_instance(t, &instance);
    T_DEFER(t, rondo_instance_release, instance);
    make(&table, "Op", NULL);
    T_OK(t, rondo_operator_register(instance, &table));
    T_OK(t, rondo_operator_print_schema(instance, "my::Op", page_write, &p));
    T_STR(t, p.text, whole);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        (void)snprintf(names[i], sizeof names[i], "Op%d", (int)i);
        make(&all[i], names[i], tables[i].schema);
        if (tables[i].refused) {
            T_FAILS(t, rondo_operator_register(instance, &all[i]), INVALID_ARGUMENT, tables[i].refused);
            T_FAILS(t, rondo_operator_check_schema(instance, "my::Op", tables[i].schema), INVALID_ARGUMENT,
                    tables[i].refused);
        } else {
            T_OK(t, rondo_operator_register(instance, &all[i]));
        }
    }
}

RONDO_TEST_MAIN(T(texts_are_read_or_refused_with_their_place), T_PLAIN(a_schema_has_limits),
                T(each_prototype_is_what_it_is_written_as), T(a_table_says_what_its_schema_says))
