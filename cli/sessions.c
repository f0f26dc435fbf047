/* SPDX-License-Identifier: Apache-2.0
 *
 * Models that depend on data: what a session does between plans, and values that are no tensors. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

bool cli_session_can(rondo_status status) {
    return rondo_status_code(status) == RONDO_CODE_UNSUPPORTED && rondo_status_layer(status) == RONDO_LAYER_META;
}

bool cli_value_agrees(const rondo_value *got, const rondo_value *want, double relative, double absolute, char *reason,
                      size_t capacity) {
    rondo_tensor_view g, w;
    if (rondo_value_get_kind(got) != rondo_value_get_kind(want) || rondo_value_count(got) != rondo_value_count(want)) {
        snprintf(reason, capacity, "is of kind %d with %u items, wanted kind %d with %u", rondo_value_get_kind(got),
                 rondo_value_count(got), rondo_value_get_kind(want), rondo_value_count(want));
        return false;
    }
    if (rondo_value_tensor(got, &g) && rondo_value_tensor(want, &w))
        return cli_tensor_agrees(&g, &w, relative, absolute, false, reason, capacity);
    for (uint32_t i = 0; i < rondo_value_count(got); ++i)
        if (!cli_value_agrees(rondo_value_item(got, i), rondo_value_item(want, i), relative, absolute, reason,
                              capacity))
            return false;
    return true;
}

static void release_values(rondo_value **values, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        rondo_value_release(values[i]);
        values[i] = NULL;
    }
}

rondo_status cli_session_run(cli_model *model, rondo_value *const *inputs, rondo_value **outputs, uint32_t output_count,
                             uint64_t runs, char *differs, size_t capacity) {
    rondo_session *session = NULL;
    rondo_session_options options = RONDO_SESSION_OPTIONS_INIT;
    rondo_value **before = cli_allocate(output_count, sizeof *before);
    differs[0] = 0;
    options.record_after = 1; /* eagerly, then captured, then replayed */
    rondo_status status = rondo_session_create(model->device, &options, &session);
    if (!status) status = rondo_session_add_graph(session, 0, model->ir);
    for (uint64_t run = 0; run < runs && !status; ++run) {
        release_values(before, output_count);
        memcpy(before, outputs, output_count * sizeof *before);
        status = rondo_session_run_values(session, 0, inputs, model->input_count, outputs, output_count);
        for (uint32_t i = 0; i < output_count && !status && run > 0 && !*differs; ++i)
            (void)cli_value_agrees(outputs[i], before[i], 0, 0, differs, capacity);
    }
    release_values(before, output_count);
    free(before);
    rondo_session_release(session);
    return status;
}

rondo_status cli_model_output(const cli_model *model, uint32_t index, rondo_tensor_info *out_info) {
    if (model->plan) return rondo_plan_output(model->plan, index, out_info);
    rondo_status status = rondo_ir_graph_output(model->ir, index, out_info);
    if (status) return status;
    const rondo_tensor_view *view = rondo_tensor_get_view(model->outputs[index].host);
    out_info->dtype = view->dtype;
    out_info->rank = view->rank;
    out_info->dims = view->shape;
    return NULL;
}

static rondo_status take_output(cli_model *model, uint32_t index, const rondo_value *value, bool *out_tensor) {
    rondo_tensor_view view;
    cli_port *port = &model->outputs[index];
    *out_tensor = rondo_value_tensor(value, &view);
    if (!*out_tensor) return NULL;
    rondo_status status = rondo_tensor_create(model->instance, view.dtype, view.rank, view.shape, &port->host);
    if (status) return status;
    port->bytes = rondo_tensor_bytes(port->host);
    if (port->bytes) memcpy(rondo_tensor_get_view(port->host)->data, view.data, (size_t)port->bytes);
    return NULL;
}

int cli_session_run_model(const cli_options *options, cli_model *model) {
    rondo_ir_graph_info info = RONDO_IR_GRAPH_INFO_INIT;
    rondo_status status = rondo_ir_graph_get_info(model->ir, &info);
    if (status) return cli_report(status);
    rondo_value **inputs = cli_allocate(model->input_count, sizeof *inputs);
    rondo_value **outputs = cli_allocate(info.outputs, sizeof *outputs);
    char differs[256];
    int code = CLI_DONE;
    for (uint32_t i = 0; i < model->input_count && !status; ++i)
        status = rondo_value_from_tensor(model->instance, rondo_tensor_get_view(model->inputs[i].host), &inputs[i]);
    if (!status)
        status = cli_session_run(model, inputs, outputs, info.outputs, options->repeat, differs, sizeof differs);
    code = cli_report(status);
    model->outputs = cli_allocate(info.outputs, sizeof *model->outputs);
    model->output_count = info.outputs;
    for (uint32_t i = 0; i < info.outputs && code == CLI_DONE; ++i) {
        bool tensor = true;
        code = cli_report(take_output(model, i, outputs[i], &tensor));
        if (!tensor)
            code = cli_fail(CLI_UNSUPPORTED, "output %u is a sequence or an optional, which no file here can hold", i);
    }
    release_values(inputs, model->input_count);
    release_values(outputs, info.outputs);
    free(inputs);
    free(outputs);
    return code;
}
