/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract check: all built-in operators agree; an operator that is wrong in one way is caught by the contract that
 * it breaks, with inputs that are small enough to read. */
#include <rondo/operator.h>

#include <stdio.h>
#include <stdlib.h>

#include "harness/harness.h"
#include "ops/ops.h"

static void open_instance(rondo_test *t, rondo_instance **out_instance) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    options.ignore_plugin_path = 1;
    options.allocator = rondo_test_allocator(t);
    T_OK(t, rondo_instance_create(&options, out_instance));
}

/* RONDO_LONG=N draws many more, from seed N. */
static void built_in_operators_agree(rondo_test *t) {
    rondo_instance *instance = NULL;
    const char *longer = getenv("RONDO_LONG");
    open_instance(t, &instance);
    T_DEFER(t, rondo_instance_release, instance);
    for (uint32_t i = 0; rondo__ops_at(i); i++) {
        const char *name = rondo__ops_at(i)->name;
        rondo_operator_check_options options = RONDO_OPERATOR_CHECK_OPTIONS_INIT;
        rondo_operator_check_report report = RONDO_OPERATOR_CHECK_REPORT_INIT;
        options.rounds = longer && *longer ? 20000u : 600u;
        options.seed = longer && *longer ? (uint64_t)strtoull(longer, NULL, 10) : 0u;
        const int64_t boxes[3] = {1, 3, 4}, scores[3] = {1, 2, 3};
        const rondo_tensor_view near[2] = {{.rank = 3, .dtype = RONDO_DTYPE_F32, .shape = boxes},
                                           {.rank = 3, .dtype = RONDO_DTYPE_F32, .shape = scores}};
        if (strcmp(name, "NonMaxSuppression") == 0) { /* shapes that fit each other are hardly ever drawn */
            options.examples = near;
            options.example_count = 2;
        }
        rondo_status status = rondo_operator_check(instance, name, &options, &report);
        if (rondo__ops_at(i)->flags & RONDO__OPS_HOSTED) {
            T_FAILS(t, status, UNSUPPORTED, "sequences or optionals");
        } else if (rondo__ops_at(i)->flags & RONDO__OPS_CONTROL) {
            T_FAILS(t, status, UNSUPPORTED, "its branches decide");
        } else if (strcmp(name, "Constant") == 0) {
            T_FAILS(t, status, NOT_FOUND, "no catalogue has kernels");
        } else {
            T_OK(t, status);
            if (report.accepted < 3 || report.refused < 3 || report.run < 3)
                rondo_test_fail(t, __FILE__, __LINE__, "of %s, %u drawn were accepted, %u refused, %u run", name,
                                report.accepted, report.refused, report.run);
            T_EQ(t, report.accepted + report.refused, report.drawn);
        }
    }
}

/* ------------------------------------------------------------------ z = x + y, equal shapes, and every way to be wrong */

typedef enum fault {
    RIGHT,
    FIXED,          /* its inference takes [8,2048] alone */
    RUN_FIXED,      /* the same, and only execute knows */
    META_FIXED,     /* its meta takes [8,2048] alone */
    BOTH_FIXED,     /* both do, which is no disagreement */
    OTHER_SHAPE,    /* its inference adds a row from 3 on */
    OTHER_TYPE,     /* its inference says int32 for a float64 */
    META_TYPE,      /* its meta answers a type that the schema does not have */
    META_UNSTEADY,  /* its meta accepts every other time */
    UNWRITTEN,      /* the last of more than 1 element is left out */
    PAST_THE_END,   /* one element more is written */
    INTO_INPUT,     /* x is written */
    WORKSPACE_PAST, /* the workspace is overrun */
    IN_PLACE,       /* it claims to run in place, and reads x after it wrote z */
    DIRTY_WORKSPACE /* what the workspace held goes into the result */
} fault;

typedef struct subject {
    fault mood;
    uint32_t asked;
    rondo_operator table;
    rondo_operator_implementation implementation;
} subject;

static bool is_8_2048(const rondo_operand *x) { return x->rank == 2 && x->dims[0] == 8 && x->dims[1] == 2048; }

static rondo_status subject_shape(const rondo_operator_api *api, const rondo_kernel_request *request,
                                  rondo_operator_result *results, rondo_layer layer, bool fixed) {
    const rondo_operand *x = &request->inputs[0], *y = &request->inputs[1];
    bool same = x->rank == y->rank && (!fixed || is_8_2048(x));
    for (int32_t i = 0; same && i < x->rank; i++) same = x->dims[i] == y->dims[i];
    if (!same) return api->status_make(RONDO_CODE_INVALID_ARGUMENT, layer, __FILE__, __LINE__, "not these shapes");
    results[0].rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) results[0].dims[i] = x->dims[i];
    return RONDO_OK;
}

static rondo_status subject_meta(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                 rondo_operator_result *results) {
    subject *s = user;
    results[0].dtype = s->mood == META_TYPE ? RONDO_DTYPE_BOOL : request->inputs[0].dtype;
    if (s->mood == META_UNSTEADY && s->asked++ % 2u)
        return RONDO_OPERATOR_FAIL(api, INVALID_ARGUMENT, META, "not this time");
    return subject_shape(api, request, results, RONDO_LAYER_META, s->mood == META_FIXED || s->mood == BOTH_FIXED);
}

static rondo_status subject_infer_shape(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                        rondo_operator_result *results) {
    subject *s = user;
    rondo_status status =
        subject_shape(api, request, results, RONDO_LAYER_IMPLEMENTATION, s->mood == FIXED || s->mood == BOTH_FIXED);
    if (!status && s->mood == OTHER_SHAPE && results[0].rank && results[0].dims[0] >= 3) results[0].dims[0]++;
    return status;
}

static rondo_status subject_infer_dtype(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                        rondo_operator_result *results) {
    subject *s = user;
    (void)api;
    results[0].dtype = request->inputs[0].dtype;
    if (s->mood == OTHER_TYPE && results[0].dtype == RONDO_DTYPE_F64) results[0].dtype = RONDO_DTYPE_I32;
    return RONDO_OK;
}

static rondo_status subject_workspace(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                      uint64_t *out_bytes) {
    (void)api;
    (void)user;
    (void)request;
    *out_bytes = 16;
    return RONDO_OK;
}

static void subject_sum(const subject *s, rondo_dtype dtype, int64_t count, void *x, const void *y, void *z,
                        unsigned char *w) {
    const int64_t last = s->mood == UNWRITTEN && count > 1 ? count - 1 : s->mood == PAST_THE_END ? count + 1 : count;
    const bool again = s->mood == IN_PLACE && count > 1; /* z[1] takes x[0], which z[0] has overwritten */
    for (int64_t i = 0; i < last; i++) {
        int64_t from = again && i == 1 ? 0 : i;
        if (dtype == RONDO_DTYPE_F64) ((double *)z)[i] = i < count ? ((double *)x)[from] + ((const double *)y)[i] : 1;
        else ((int32_t *)z)[i] = i < count ? ((int32_t *)x)[from] + ((const int32_t *)y)[i] : 1;
    }
    if (s->mood == INTO_INPUT && count) memset(x, 77, 4);
    if (s->mood == WORKSPACE_PAST) w[16] = 1;
    if (s->mood == DIRTY_WORKSPACE && count) *(unsigned char *)z = w[3];
}

static rondo_status subject_execute(const rondo_operator_api *api, void *user, rondo_operator_context *context) {
    const subject *s = user;
    const rondo_operand *x = &api->request(context)->inputs[0];
    void *z = NULL, *w = NULL;
    int64_t count = 1;
    for (int32_t i = 0; i < x->rank; i++) count *= x->dims[i];
    if (s->mood == RUN_FIXED && !is_8_2048(x))
        return RONDO_OPERATOR_FAIL(api, INVALID_ARGUMENT, KERNEL, "only [8,2048]");
    rondo_status status = api->output(context, 0, x->rank, x->dims, RONDO_FORMAT_ND, x->dtype, &z);
    if (!status) status = api->workspace(context, 16, &w);
    if (status) return status;
    subject_sum(s, x->dtype, count, (void *)(uintptr_t)api->input(context, 0, x->dtype),
                api->input(context, 1, x->dtype), z, w);
    return RONDO_OK;
}

#define SUBJECT_TYPES (RONDO_OPERATOR_DTYPE(F64) | RONDO_OPERATOR_DTYPE(I32))
static const rondo_operator_operand subject_inputs[] = {{"x", SUBJECT_TYPES, RONDO_OPERATOR_REQUIRED, 'T', {0}},
                                                        {"y", SUBJECT_TYPES, RONDO_OPERATOR_REQUIRED, 'T', {0}},
                                                        {"hint", SUBJECT_TYPES, RONDO_OPERATOR_OPTIONAL, 0, {0}}};
static const rondo_operator_operand subject_outputs[] = {{"z", SUBJECT_TYPES, RONDO_OPERATOR_REQUIRED, 0, {0}}};
static const rondo_operator_attribute subject_attributes[] = {
    {{"way", RONDO_ATTRIBUTE_STRING, 1, {.s = {"near", 4}}}, RONDO_OPERATOR_ATTRIBUTE_DEFAULT, 0}};

static void subject_make(subject *s, fault mood) {
    *s = (subject){.mood = mood, .table = RONDO_OPERATOR_INIT, .implementation = RONDO_OPERATOR_IMPLEMENTATION_INIT};
    if (mood != RUN_FIXED) {
        s->implementation.infer_shape = subject_infer_shape;
        s->implementation.infer_dtype = subject_infer_dtype;
    }
    s->implementation.workspace = subject_workspace;
    s->implementation.execute = subject_execute;
    s->implementation.in_place_inputs = mood == IN_PLACE || mood == RIGHT ? 1u : 0u;
    s->table.name = "Sum";
    s->table.domain = "my";
    s->table.inputs = subject_inputs;
    s->table.input_count = 3;
    s->table.outputs = subject_outputs;
    s->table.output_count = 1;
    s->table.attributes = subject_attributes;
    s->table.attribute_count = 1;
    s->table.meta = subject_meta;
    s->table.implementation = &s->implementation;
    s->table.user = s;
}

typedef struct verdict {
    rondo_code code;
    rondo_layer layer;
    rondo_operator_check_report report;
    char text[2048]; /* the message and all notes */
} verdict;

static void judge(rondo_test *t, fault mood, rondo_operator_check_options *options, verdict *out) {
    rondo_instance *instance = NULL;
    subject s;
    subject_make(&s, mood);
    *out = (verdict){.report = RONDO_OPERATOR_CHECK_REPORT_INIT};
    open_instance(t, &instance);
    rondo_status status = rondo_operator_register(instance, &s.table);
    if (!status) status = rondo_operator_check(instance, "my::Sum", options, &out->report);
    rondo_instance_release(instance);
    if (rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY) T_OK(t, status);
    out->code = rondo_status_code(status);
    out->layer = rondo_status_layer(status);
    (void)rondo_status_format(status, out->text, sizeof out->text);
    rondo_status_release(status);
}

static void expect(rondo_test *t, const verdict *v, rondo_code code, rondo_layer layer, const char *part) {
    if (v->code == code && v->layer == layer && strstr(v->text, part)) return;
    rondo_test_fail(t, __FILE__, __LINE__, "not %s of %s with '%s': %s", rondo_code_name(code), rondo_layer_name(layer),
                    part, v->text);
}

static const struct {
    fault mood;
    rondo_layer layer;
    const char *part, *also; /* the message, and the smallest inputs that show it */
} wrong[] = {
    {FIXED, RONDO_LAYER_IMPLEMENTATION, "its meta accepts these inputs, its implementation's inference refuses them",
     "input 1 'y' is int32[]\n"},
    {FIXED, RONDO_LAYER_IMPLEMENTATION, "it says: node 'checked' (my::Sum): its implementation refuses",
     "refuses these inputs: not these shapes\n  input 0 'x' is int32[]"},
    {RUN_FIXED, RONDO_LAYER_IMPLEMENTATION, "its implementation (registered) fails on them with reason 1",
     "it says: only [8,2048]\n  input 0 'x' is int32[]"},
    {META_FIXED, RONDO_LAYER_IMPLEMENTATION,
     "its meta refuses these inputs, its implementation's inference accepts them", "input 0 'x' is int32[]\n"},
    {OTHER_SHAPE, RONDO_LAYER_IMPLEMENTATION, "its meta makes output 0 ", "[3], its implementation "},
    {OTHER_SHAPE, RONDO_LAYER_IMPLEMENTATION, "[4]\n", "[3]\n  input 1 'y' is "},
    {OTHER_TYPE, RONDO_LAYER_IMPLEMENTATION, "its meta makes output 0 float64[], its implementation int32[]",
     "input 0 'x' is float64[]\n"},
    {META_TYPE, RONDO_LAYER_META, "its meta gives output 'z' the type bool, which its schema does not", "int32[]\n"},
    {META_UNSTEADY, RONDO_LAYER_META, "its meta, asked twice, refuses these inputs once", "input 0 'x' is "},
    {UNWRITTEN, RONDO_LAYER_IMPLEMENTATION, "run twice on the same inputs, makes two outputs 0", "[2]\n"},
    {PAST_THE_END, RONDO_LAYER_IMPLEMENTATION, "writes past the end of an output", "input 0 'x' is int32[]\n"},
    {INTO_INPUT, RONDO_LAYER_IMPLEMENTATION, "writes into an input", "input 0 'x' is int32[]\n"},
    {WORKSPACE_PAST, RONDO_LAYER_IMPLEMENTATION, "writes past the end of its workspace", "input 0 'x' is int32[]\n"},
    {IN_PLACE, RONDO_LAYER_IMPLEMENTATION, "says that output 0 may be the memory of input 0, and makes another output",
     "[2]\n"},
    {DIRTY_WORKSPACE, RONDO_LAYER_IMPLEMENTATION, "or reads what nobody wrote", "input 0 'x' is int32[]\n"},
};

static void each_disagreement_is_found_and_small(rondo_test *t) {
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        verdict v;
        judge(t, wrong[i].mood, NULL, &v);
        expect(t, &v, RONDO_CODE_INVALID_ARGUMENT, wrong[i].layer, wrong[i].part);
        const char *also = wrong[i].also;
        char both[2048]; /* the type does not matter to most: either is as small */
        (void)snprintf(both, sizeof both, "%s", v.text);
        if (!strstr(v.text, also))
            for (char *at; (at = strstr(both, "float64[")) != NULL;) {
                memmove(at + 5, at + 7, strlen(at + 7) + 1);
                memcpy(at, "int32", 5);
            }
        if (!strstr(both, also)) rondo_test_fail(t, __FILE__, __LINE__, "no '%s' in: %s", also, v.text);
        T_TRUE(t, !strstr(v.text, "attribute 'way'") && !strstr(v.text, "'hint'"));
        T_TRUE(t, strstr(v.text, "of seed 0") != NULL);
    }
}

static void a_right_one_agrees(rondo_test *t) {
    verdict v;
    judge(t, RIGHT, NULL, &v);
    expect(t, &v, RONDO_CODE_OK, RONDO_LAYER_NONE, "ok");
    T_EQ(t, v.report.drawn, 1000);
    T_TRUE(t, v.report.accepted > 100 && v.report.refused > 100 && v.report.run == v.report.accepted);
}

/* Both take [8,2048] alone: nothing that is drawn from nothing is accepted, and an example makes the check one. */
static void an_example_leads_to_what_is_accepted(rondo_test *t) {
    rondo_operator_check_options options = RONDO_OPERATOR_CHECK_OPTIONS_INIT;
    rondo_tensor_view x = {.rank = 2, .dtype = RONDO_DTYPE_F64, .shape = (const int64_t[]){8, 2048}};
    const rondo_tensor_view examples[] = {x, x};
    verdict v;
    judge(t, BOTH_FIXED, NULL, &v);
    expect(t, &v, RONDO_CODE_NOT_FOUND, RONDO_LAYER_INPUT, "none of 1000 drawn inputs was accepted");
    options.examples = examples;
    options.example_count = 2;
    judge(t, BOTH_FIXED, &options, &v);
    expect(t, &v, RONDO_CODE_OK, RONDO_LAYER_NONE, "ok");
    T_TRUE(t, v.report.accepted > 100 && v.report.refused > 100 && v.report.run == v.report.accepted);
    judge(t, META_FIXED, &options, &v);
    expect(t, &v, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_IMPLEMENTATION, "its meta refuses these inputs");
    options.example_count = 4;
    judge(t, RIGHT, &options, &v);
    expect(t, &v, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_INPUT, "4 examples of inputs, operator 'my::Sum' has 3");
}

static void a_seed_is_a_draw(rondo_test *t) {
    rondo_operator_check_options options = RONDO_OPERATOR_CHECK_OPTIONS_INIT;
    verdict first, again, other;
    options.rounds = 200;
    options.seed = 7;
    judge(t, RIGHT, &options, &first);
    judge(t, RIGHT, &options, &again);
    options.seed = 8;
    judge(t, RIGHT, &options, &other);
    T_TRUE(t, first.report.accepted == again.report.accepted && first.report.refused == again.report.refused);
    T_TRUE(t, first.report.accepted != other.report.accepted);
    judge(t, UNWRITTEN, &options, &first);
    judge(t, UNWRITTEN, &options, &again);
    T_STR(t, first.text, again.text);
}

static void converters_use_the_prototypes_names(rondo_test *t) {
    static const char *const xy[] = {"x", "y"}, *const xyh[] = {"x", "y", ""}, *const swapped[] = {"y", "x"};
    static const char *const z[] = {"z"}, *const out[] = {"out"}, *const way[] = {"way"}, *const alpha[] = {"alpha"};
    static const char *const four[] = {"x", "y", "hint", "more"}, *const holes[] = {"x", ""};
    const struct {
        rondo_operator_converter converter;
        const char *part;
    } cases[] = {
        {{"my::sum", xy, z, way, 2, 1, 1, 0}, NULL},
        {{"my::sum", xyh, z, NULL, 3, 1, 0, 0}, NULL},
        {{"my::sum", swapped, z, NULL, 2, 1, 0, 0}, "converter of 'my::sum': it calls input 0 'y', the prototype 'x'"},
        {{"my::sum", xy, out, NULL, 2, 1, 0, 0}, "it calls output 0 'out', the prototype 'z'"},
        {{"my::sum", xy, z, alpha, 2, 1, 1, 0}, "it gives attribute 'alpha', the prototype has none"},
        {{"my::sum", xy, z, NULL, 1, 1, 0, 0}, "it gives no input 'y'"},
        {{"my::sum", holes, z, NULL, 2, 1, 0, 0}, "it calls input 1 '', the prototype 'y'"},
        {{"my::sum", four, z, NULL, 4, 1, 0, 0}, "it gives 4 inputs, the prototype has 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rondo_operator_check_options options = RONDO_OPERATOR_CHECK_OPTIONS_INIT;
        verdict v;
        options.rounds = 20;
        options.converters = &cases[i].converter;
        options.converter_count = 1;
        judge(t, RIGHT, &options, &v);
        if (cases[i].part) expect(t, &v, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_CONVERTER, cases[i].part);
        else expect(t, &v, RONDO_CODE_OK, RONDO_LAYER_NONE, "ok");
    }
}

static void what_is_missing_is_named(rondo_test *t) {
    rondo_instance *instance = NULL;
    subject s;
    subject_make(&s, RIGHT);
    s.table.implementation = NULL;
    open_instance(t, &instance);
    T_DEFER(t, rondo_instance_release, instance);
    T_FAILS(t, rondo_operator_check(instance, "my::Sum", NULL, NULL), NOT_FOUND,
            "(prototype): there is no operator 'my::Sum'");
    T_OK(t, rondo_operator_register(instance, &s.table));
    T_FAILS(t, rondo_operator_check(instance, "my::Sum", NULL, NULL), NOT_FOUND,
            "(implementation): operator 'my::Sum' is registered without an implementation");
}

/* Every allocation of a few rounds, and of making a case smaller, may fail. */
static void memory_may_end(rondo_test *t) {
    rondo_operator_check_options options = RONDO_OPERATOR_CHECK_OPTIONS_INIT;
    verdict v;
    options.rounds = 6;
    options.seed = 3;
    judge(t, RIGHT, &options, &v);
    T_EQ(t, v.code, RONDO_CODE_OK);
    judge(t, OTHER_TYPE, &options, &v);
}

RONDO_TEST_MAIN(T_PLAIN(built_in_operators_agree), T_PLAIN(each_disagreement_is_found_and_small),
                T_PLAIN(a_right_one_agrees), T_PLAIN(an_example_leads_to_what_is_accepted), T_PLAIN(a_seed_is_a_draw),
                T_PLAIN(converters_use_the_prototypes_names), T(what_is_missing_is_named), T(memory_may_end))
