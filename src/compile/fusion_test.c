/* SPDX-License-Identifier: Apache-2.0
 *
 * What a registered operator keeps apart is told by name: who is not fused, as what, and who stands behind it. */
#include <rondo/operator.h>

#include "compile/compile_testing.h"

static rondo_status same_meta(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                              rondo_operator_result *results) {
    (void)api;
    (void)user;
    results[0].rank = request->inputs[0].rank;
    for (int32_t i = 0; i < results[0].rank; i++) results[0].dims[i] = request->inputs[0].dims[i];
    results[0].dtype = request->inputs[0].dtype;
    return RONDO_OK;
}

static rondo_status never_runs(const rondo_operator_api *api, void *user, rondo_operator_context *context) {
    (void)user;
    (void)context;
    return RONDO_OPERATOR_FAIL(api, INTERNAL, IMPLEMENTATION, "nothing runs here");
}

typedef struct opaque {
    rondo_operator table;
    rondo_operator_implementation implementation;
} opaque;

static const rondo_operator_operand opaque_inputs[] = {
    {"x", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 0, {0}}};
static const rondo_operator_operand opaque_outputs[] = {
    {"y", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 0, {0}}};

static void register_opaque(compile_fixture *f, opaque *o) {
    *o = (opaque){.table = RONDO_OPERATOR_INIT, .implementation = RONDO_OPERATOR_IMPLEMENTATION_INIT};
    o->implementation.execute = never_runs;
    o->table.name = "Opaque";
    o->table.domain = "my";
    o->table.inputs = opaque_inputs;
    o->table.outputs = opaque_outputs;
    o->table.input_count = o->table.output_count = 1;
    o->table.meta = same_meta;
    o->table.implementation = &o->implementation;
    T_OK(f->t, rondo_operator_register(f->instance, &o->table));
}

static rondo_ir_value named(compile_fixture *f, const char *operator_name, const char *name, rondo_ir_value a,
                            rondo_ir_value b) {
    rondo_ir_value made = RONDO_IR_NONE;
    ct_nodes(f, name, operator_name, (rondo_ir_value[]){a, b}, b == RONDO_IR_NONE ? 1 : 2, NULL, 0, &made, 1);
    return made;
}

/* Of remarks that say "not fused". */
static uint32_t stopped(const compile_fixture *f) {
    const char *remark = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; (remark = rondo_plan_remark(f->plan, i)) != NULL; i++)
        count += strstr(remark, "not fused") != NULL;
    return count;
}

static void every_fusion_that_is_stopped(rondo_test *t) {
    static opaque o; /* outlives the instance, as it must */
    compile_fixture f;
    ct_open(t, &f);
    register_opaque(&f, &o);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 3));
    rondo_ir_value bias = ct_random(&f, CT_DIMS(4));
    rondo_ir_value product = named(&f, "MatMul", "product", x, ct_random(&f, CT_DIMS(3, 4)));
    rondo_ir_value first = named(&f, "my::Opaque", "first", product, RONDO_IR_NONE);
    rondo_ir_value sum = named(&f, "Add", "sum", bias, first);
    rondo_ir_value second = named(&f, "my::Opaque", "second", x, RONDO_IR_NONE);
    ct_output(&f, sum, "a");
    ct_output(&f, named(&f, "Relu", "bend", second, RONDO_IR_NONE), "b");
    /* No fusion is stopped here: two use what the operator gives, what comes after it is never fused, and what could be
     * fused has an operator of our own before it. */
    rondo_ir_value third = named(&f, "my::Opaque", "third", x, RONDO_IR_NONE);
    ct_output(&f, named(&f, "Relu", "one of two", third, RONDO_IR_NONE), "c");
    ct_output(&f, named(&f, "Exp", "two of two", third, RONDO_IR_NONE), "d");
    ct_output(&f, named(&f, "Neg", "plain", named(&f, "my::Opaque", "fourth", x, RONDO_IR_NONE), RONDO_IR_NONE), "e");
    ct_output(&f, named(&f, "Relu", "after our own", named(&f, "Sin", "our own", x, RONDO_IR_NONE), RONDO_IR_NONE),
              "g");
    rondo_ir_value free = named(&f, "MatMul", "free", x, ct_random(&f, CT_DIMS(3, 4)));
    ct_output(&f, named(&f, "Add", "free sum", free, bias), "f");
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    /* With rules for equal nodes off, each of the four stays what it is. */
    options.without = "duplicates";
    T_OK(t, rondo_compile(f.instance, f.graph, &options, &f.compiled, &f.plan));
    T_TRUE(t, ct_remarked(&f, "node 'sum' (Add): not fused as bias: 'first' before it is opaque (operator my::Opaque), "
                              "and keeps it from 'product' (MatMul)"));
    T_TRUE(t, ct_remarked(&f, "node 'bend' (Relu): not fused as activation: 'second' before it is opaque (operator "
                              "my::Opaque)"));
    T_EQ(t, stopped(&f), 2);
    T_TRUE(t, ct_remarked(&f, "node 'free': bias of 'free sum' fused"));
    ct_drop(&f);
    options.without = "duplicates,fuse-bias,fuse-activation";
    T_OK(t, rondo_compile(f.instance, f.graph, &options, &f.compiled, &f.plan));
    T_EQ(t, stopped(&f), 0);
}

RONDO_TEST_MAIN(T_PLAIN(every_fusion_that_is_stopped))
