/* SPDX-License-Identifier: Apache-2.0
 *
 * A shared library with one operator, my.domain::Positives: the elements of a list that are above 0. Data decides how many
 * that are, so the meta leaves the size open, the bound says the most, and execute tells what it is. */
#include <rondo/operator.h>

static rondo_status positives_meta(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                   rondo_operator_result *results) {
    (void)user;
    if (request->inputs[0].rank != 1) return RONDO_OPERATOR_FAIL(api, INVALID_ARGUMENT, META, "x is no list");
    results[0].dtype = request->inputs[0].dtype;
    results[0].rank = 1;
    results[0].dims[0] = -1; /* data decides */
    return RONDO_OK;
}

static rondo_status positives_bound(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                    rondo_operator_result *results) {
    (void)api;
    (void)user;
    results[0].dims[0] = request->inputs[0].dims[0]; /* all of them */
    return RONDO_OK;
}

static rondo_status positives_execute(const rondo_operator_api *api, void *user, rondo_operator_context *context) {
    const int64_t n = api->request(context)->inputs[0].dims[0];
    const float *x = api->input(context, 0, RONDO_DTYPE_F32);
    int64_t found = 0;
    void *y = NULL;
    (void)user;
    if (!x && n > 0) return RONDO_OPERATOR_FAIL(api, INVALID_ARGUMENT, IMPLEMENTATION, "the input is missing");
    for (int64_t i = 0; i < n; i++) found += x[i] > 0;
    rondo_status status = api->output(context, 0, 1, &found, RONDO_FORMAT_ND, RONDO_DTYPE_F32, &y);
    if (status) return status;
    for (int64_t i = 0, at = 0; i < n; i++)
        if (x[i] > 0) ((float *)y)[at++] = x[i];
    return RONDO_OK;
}

static const rondo_operator_operand positives_x[] = {
    {"x", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 'T', {0}}};
static const rondo_operator_operand positives_y[] = {{"y", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 0, {0}}};
static const rondo_operator_implementation positives_implementation = {
    .struct_size = sizeof positives_implementation, .execute = positives_execute, .bound = positives_bound};
static const rondo_operator positives = {.struct_size = sizeof positives,
                                         .input_count = 1,
                                         .output_count = 1,
                                         .name = "Positives",
                                         .domain = "my.domain",
                                         .summary = "The elements above 0",
                                         .inputs = positives_x,
                                         .outputs = positives_y,
                                         .meta = positives_meta,
                                         .implementation = &positives_implementation};

static const rondo_operator *const operators[] = {&positives};
RONDO_OPERATOR_LIBRARY(operators)
