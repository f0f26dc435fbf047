/* SPDX-License-Identifier: Apache-2.0
 *
 * ModelProto, and the doors of the room. What fails inside gets the file's name in front here, once. */
#include <string.h>

#include "base/instance.h"
#include "base/sized.h"
#include "import/onnx/onnx.h"

enum { MODEL_IR_VERSION = 1, MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_FUNCTION = 25 };

typedef struct model_parts {
    int64_t ir_version;
    rondo__pb_reader graph;
    bool graph_seen, version_seen;
} model_parts;

static rondo_status model_walk(rondo__onnx_context *context, rondo__pb_reader *reader, model_parts *parts) {
    rondo__pb_field field;
    rondo__pb_reader inner;
    while (rondo__pb_next(reader, &field)) {
        switch (field.number) {
        case MODEL_IR_VERSION:
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_int64(reader, &field, &parts->ir_version));
            parts->version_seen = true;
            break;
        case MODEL_GRAPH:
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_enter(reader, &field, &parts->graph));
            parts->graph_seen = true;
            break;
        case MODEL_OPSET:
            RONDO__TRY(rondo__pb_enter(reader, &field, &inner));
            if (context->model_opsets.count == RONDO__ONNX_OPSETS_MAX)
                return RONDO__FAIL(CORRUPT, FILE, "it imports more than %u operator sets", RONDO__ONNX_OPSETS_MAX);
            RONDO__TRY(rondo__onnx_opset_read(context, &inner, &context->model_opsets));
            break;
        case MODEL_FUNCTION:
            RONDO__TRY(rondo__pb_enter(reader, &field, &inner));
            RONDO__TRY(rondo__onnx_function_add(context, &inner));
            break;
        default: break;
        }
    }
    return rondo__pb_end(reader);
}

static rondo_status model_check(const rondo__onnx_context *context, const model_parts *parts) {
    if (!parts->version_seen && !parts->graph_seen) return RONDO__FAIL(CORRUPT, FILE, "it is not an ONNX model");
    if (!parts->graph_seen) return RONDO__FAIL(CORRUPT, FILE, "the model has no graph");
    if (parts->ir_version < 1)
        return RONDO__FAIL(CORRUPT, FILE, "IR version %lld does not exist", (long long)parts->ir_version);
    if (parts->ir_version < RONDO__ONNX_IR_MIN || parts->ir_version > RONDO__ONNX_IR_MAX)
        return RONDO__FAIL(UNSUPPORTED, CONVERTER, "the model is of IR version %lld; versions %d to %d are read",
                           (long long)parts->ir_version, RONDO__ONNX_IR_MIN, RONDO__ONNX_IR_MAX);
    const int64_t opset = context->model_opsets.onnx;
    if (!context->model_opsets.count) return RONDO__FAIL(CORRUPT, FILE, "the model imports no operator set");
    if (opset && (opset < RONDO__ONNX_OPSET_MIN || opset > RONDO__ONNX_OPSET_MAX))
        return RONDO__FAIL(UNSUPPORTED, CONVERTER,
                           "the model uses version %lld of ONNX's operators; versions %d to %d are read",
                           (long long)opset, RONDO__ONNX_OPSET_MIN, RONDO__ONNX_OPSET_MAX);
    return RONDO_OK;
}

/* The graph that was read, or why it cannot be. */
static rondo_status model_finish(rondo__onnx_context *context, rondo_ir_graph *graph) {
    RONDO__TRY(rondo__import_refusals_status(&context->refusals));
    graph->nodes_in_model = context->nodes;
    if (context->unsorted) {
        RONDO__TRY(rondo__ir_sort(graph));
        rondo__log_write(context->log, RONDO_LOG_WARNING,
                         "'%s': its nodes are not in the order that ONNX asks for; they were sorted", context->file);
    }
    return rondo__ir_verify(graph);
}

static rondo_status model_read(rondo__onnx_context *context, const void *data, size_t size,
                               rondo_ir_graph **out_graph) {
    rondo__pb_reader reader;
    rondo__pb_budget_init(&context->budget, data);
    rondo__pb_reader_init(&reader, data, size, &context->budget);
    model_parts parts = {0};
    void *opsets = NULL;
    RONDO__TRY(
        rondo__arena_allocate_array(&context->scratch, RONDO__ONNX_OPSETS_MAX, sizeof(rondo__onnx_opset), &opsets));
    context->model_opsets.entries = opsets;
    context->opsets = &context->model_opsets;
    rondo_status status = model_walk(context, &reader, &parts);
    if (status && !parts.version_seen && !parts.graph_seen)
        status = rondo__import_within(status, "it is not an ONNX model");
    RONDO__TRY(status);
    RONDO__TRY(model_check(context, &parts));
    rondo_ir_graph *graph = NULL;
    RONDO__TRY(rondo__onnx_graph_read(context, NULL, &parts.graph, &graph));
    status = model_finish(context, graph);
    if (status) {
        rondo_ir_graph_release(graph);
        return status;
    }
    *out_graph = graph;
    return RONDO_OK;
}

/* `source` is the file that the bytes are of; null: they came in memory. */
static rondo_status model_import(rondo_instance *instance, const char *name, const rondo__onnx_file *source,
                                 const char *root, const void *data, size_t size, rondo_ir_graph **out_graph) {
    const rondo__instance_base *base = rondo__instance_base_of(instance);
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(&base->allocator, sizeof(rondo__onnx_context), &memory));
    rondo__onnx_context *context = memory;
    context->allocator = base->allocator;
    context->instance = instance;
    context->log = &base->log;
    context->file = name;
    context->source = source;
    rondo__arena_init(&context->scratch, &base->allocator, SIZE_MAX / 4);
    rondo__onnx_store_init(&context->store, &base->allocator, source ? source->path : NULL, root);
    rondo__import_names_init(&context->functions, &base->allocator);
    rondo__buffer_init(&context->function_list, &base->allocator, sizeof(rondo__onnx_function), (size_t)1 << 20);
    rondo__import_refusals_init(&context->refusals, &base->allocator);
    rondo_status status = rondo__import_within(model_read(context, data, size, out_graph), "'%.300s'", name);
    rondo__import_refusals_deinit(&context->refusals);
    rondo__buffer_deinit(&context->function_list);
    rondo__import_names_deinit(&context->functions);
    rondo__onnx_store_deinit(&context->store);
    rondo__arena_deinit(&context->scratch);
    rondo__free(&base->allocator, context, sizeof *context);
    return status;
}

static rondo_status model_options_of(const rondo_onnx_options *options, rondo_onnx_options *out_known) {
    *out_known = (rondo_onnx_options)RONDO_ONNX_OPTIONS_INIT;
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_INPUT, "rondo_onnx_options", options, out_known, sizeof *out_known));
    if (!out_known->file_bytes_max) out_known->file_bytes_max = RONDO__IMPORT_FILE_MAX;
    return RONDO_OK;
}

rondo_status rondo_onnx_import(rondo_instance *instance, const char *path, const rondo_onnx_options *options,
                               rondo_ir_graph **out_graph) {
    if (!instance || !path || !out_graph)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "import needs an instance, a path and a place for the graph");
    *out_graph = NULL;
    rondo_onnx_options known;
    RONDO__TRY(model_options_of(options, &known));
    const rondo__instance_base *base = rondo__instance_base_of(instance);
    rondo__onnx_file file;
    RONDO__TRY(rondo__onnx_file_read(&base->allocator, path, known.file_bytes_max, &file));
    rondo_status status =
        model_import(instance, path, &file, known.external_root, file.bytes.data, file.bytes.size, out_graph);
    rondo__onnx_file_release(&file);
    return status;
}

rondo_status rondo_onnx_import_memory(rondo_instance *instance, const char *name, const void *data, size_t size,
                                      const rondo_onnx_options *options, rondo_ir_graph **out_graph) {
    if (!instance || !out_graph || (size && !data))
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "import needs an instance, data and a place for the graph");
    *out_graph = NULL;
    if (!name) name = "model in memory";
    rondo_onnx_options known;
    RONDO__TRY(model_options_of(options, &known));
    RONDO__TRY(rondo__import_memory_check(name, size, known.file_bytes_max));
    return model_import(instance, name, NULL, NULL, data, size, out_graph);
}
