/* SPDX-License-Identifier: Apache-2.0
 *
 * A shared library with one operator, my.domain::AddCustom: z = x + y, for float32 of any one shape. It links nothing. */
#include <rondo/operator.h>

static rondo_status add_infer_shape(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                    rondo_operator_result *results) {
    const rondo_operand *x = &request->inputs[0], *y = &request->inputs[1];
    (void)user;
    if (x->rank != y->rank) return RONDO_OPERATOR_FAIL(api, INVALID_ARGUMENT, IMPLEMENTATION, "x and y differ in rank");
    results[0].rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) {
        if (x->dims[i] != y->dims[i])
            return RONDO_OPERATOR_FAIL(api, INVALID_ARGUMENT, IMPLEMENTATION, "x and y differ along axis %d", (int)i);
        results[0].dims[i] = x->dims[i];
    }
    return RONDO_OK;
}

static rondo_status add_infer_dtype(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                    rondo_operator_result *results) {
    (void)api;
    (void)user;
    results[0].dtype = request->inputs[0].dtype;
    return RONDO_OK;
}

static rondo_status add_execute(const rondo_operator_api *api, void *user, rondo_operator_context *context) {
    const rondo_operand *x = &api->request(context)->inputs[0];
    const float *a = api->input(context, 0, RONDO_DTYPE_F32), *b = api->input(context, 1, RONDO_DTYPE_F32);
    int64_t count = 1;
    void *z = NULL;
    (void)user;
    if (!a || !b) return RONDO_OPERATOR_FAIL(api, INVALID_ARGUMENT, IMPLEMENTATION, "an input is missing");
    rondo_status status = api->output(context, 0, x->rank, x->dims, RONDO_FORMAT_ND, RONDO_DTYPE_F32, &z);
    if (status) return status;
    for (int32_t i = 0; i < x->rank; i++) count *= x->dims[i];
    for (int64_t i = 0; i < count; i++) ((float *)z)[i] = a[i] + b[i];
    return RONDO_OK;
}

static const rondo_operator_operand add_inputs[] = {
    {"x", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 'T', {0}},
    {"y", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 'T', {0}}};
static const rondo_operator_operand add_outputs[] = {{"z", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 0, {0}}};
static const rondo_operator_implementation add_implementation = {.struct_size = sizeof add_implementation,
                                                                 .in_place_inputs = 3,
                                                                 .infer_shape = add_infer_shape,
                                                                 .infer_dtype = add_infer_dtype,
                                                                 .execute = add_execute};
static const rondo_operator add_custom = {.struct_size = sizeof add_custom,
                                          .input_count = 2,
                                          .output_count = 1,
                                          .name = "AddCustom",
                                          .domain = "my.domain",
                                          .summary = "x + y, element by element",
                                          .inputs = add_inputs,
                                          .outputs = add_outputs,
                                          .implementation = &add_implementation};

static const rondo_operator *const operators[] = {&add_custom};
RONDO_OPERATOR_LIBRARY(operators)
