/* SPDX-License-Identifier: Apache-2.0
 *
 * rondo info: inputs, outputs, nodes by type and sizes of a model. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char info_help[] =
    "usage: rondo info FILE [--json]\n"
    "Shows inputs, outputs, nodes by type and sizes of an ONNX model, a TensorFlow graph or a saved graph; of an offline\n"
    "file its version, target, inputs, outputs, sizes and partitions. A size that is open is shown by its symbol or '?'.\n";

static void port_text(const rondo_ir_graph *graph, const rondo_tensor_info *port, uint32_t index, bool input,
                      char *text, size_t capacity) {
    size_t used =
        (size_t)snprintf(text, capacity, "%s%s", rondo_dtype_name(port->dtype), port->rank < 0 ? "[...]" : "[");
    for (int32_t d = 0; d < port->rank && used < capacity; ++d) {
        const char *symbol = input ? rondo_ir_graph_input_symbol(graph, index, d) : NULL;
        const char *separator = d ? "," : "";
        used +=
            (size_t)(port->dims[d] >= 0
                         ? snprintf(text + used, capacity - used, "%s%lld", separator, (long long)port->dims[d])
                         : snprintf(text + used, capacity - used, "%s%s", separator, symbol && *symbol ? symbol : "?"));
    }
    if (port->rank >= 0 && used < capacity) snprintf(text + used, capacity - used, "]");
}

static int list_ports(const rondo_ir_graph *graph, uint32_t count, bool input, bool text, cJSON *array) {
    for (uint32_t i = 0; i < count; ++i) {
        rondo_tensor_info port;
        rondo_status status = input ? rondo_ir_graph_input(graph, i, &port) : rondo_ir_graph_output(graph, i, &port);
        if (status) return cli_report(status);
        char shape[512];
        port_text(graph, &port, i, input, shape, sizeof shape);
        if (text) printf("  %s %s: %s\n", input ? "input " : "output", port.name, shape);
        cJSON *object = cJSON_CreateObject();
        cJSON_AddItemToArray(array, object);
        cJSON_AddStringToObject(object, "name", port.name);
        cJSON_AddStringToObject(object, "dtype", rondo_dtype_name(port.dtype));
        cJSON *dims = cJSON_AddArrayToObject(object, "shape");
        for (int32_t d = 0; d < port.rank; ++d) {
            const char *symbol = input ? rondo_ir_graph_input_symbol(graph, i, d) : NULL;
            cJSON_AddItemToArray(dims, port.dims[d] >= 0   ? cJSON_CreateNumber((double)port.dims[d])
                                       : symbol && *symbol ? cJSON_CreateString(symbol)
                                                           : cJSON_CreateNull());
        }
    }
    return CLI_DONE;
}

typedef struct operator_visit {
    cJSON *object;
    bool text;
} operator_visit;

static void visit_operator(void *user, const char *name, uint32_t count) {
    operator_visit *visit = user;
    cJSON_AddNumberToObject(visit->object, name, count);
    if (visit->text) printf("  %6u %s\n", count, name);
}

static int show(const rondo_ir_graph *graph, bool json) {
    rondo_ir_graph_info info = RONDO_IR_GRAPH_INFO_INIT;
    rondo_status status = rondo_ir_graph_get_info(graph, &info);
    if (status) return cli_report(status);
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "name", info.name ? info.name : "");
    cJSON_AddNumberToObject(root, "opset", (double)info.opset);
    cJSON_AddNumberToObject(root, "nodes", info.nodes);
    cJSON_AddNumberToObject(root, "subgraphs", info.subgraphs);
    cJSON_AddNumberToObject(root, "constant_bytes", (double)info.constant_bytes);
    if (!json)
        printf("%s: opset %lld, %u nodes in %u graphs, %llu bytes of constants\n",
               info.name && *info.name ? info.name : "model", (long long)info.opset, info.nodes, info.subgraphs + 1u,
               (unsigned long long)info.constant_bytes);
    int code = list_ports(graph, info.inputs, true, !json, cJSON_AddArrayToObject(root, "inputs"));
    if (code == CLI_DONE) code = list_ports(graph, info.outputs, false, !json, cJSON_AddArrayToObject(root, "outputs"));
    operator_visit visit = {cJSON_AddObjectToObject(root, "operators"), !json};
    if (code == CLI_DONE) code = cli_report(rondo_ir_graph_count_operators(graph, visit_operator, &visit));
    if (code == CLI_DONE && json) {
        char *text = cJSON_Print(root);
        puts(text ? text : "{}");
        cJSON_free(text);
    }
    cJSON_Delete(root);
    return code;
}

/* ---- offline files */

static int list_plan_ports(const rondo_plan *plan, uint32_t count, bool input, bool text, cJSON *array) {
    for (uint32_t i = 0; i < count; ++i) {
        rondo_tensor_info port;
        char shape[512];
        rondo_status status = input ? rondo_plan_input(plan, i, &port) : rondo_plan_output(plan, i, &port);
        if (status) return cli_report(status);
        bool guarded = input && rondo_plan_guard(plan, i);
        cli_tensor_text(&port, shape, sizeof shape);
        if (text)
            printf("  %s %s: %s%s\n", input ? "input " : "output", port.name, shape,
                   guarded ? ", for one value only" : "");
        cJSON *object = cJSON_CreateObject();
        cJSON_AddItemToArray(array, object);
        cJSON_AddStringToObject(object, "name", port.name);
        cJSON_AddStringToObject(object, "dtype", rondo_dtype_name(port.dtype));
        cJSON *dims = cJSON_AddArrayToObject(object, "shape");
        for (int32_t d = 0; d < port.rank; ++d) cJSON_AddItemToArray(dims, cJSON_CreateNumber((double)port.dims[d]));
        if (input) cJSON_AddBoolToObject(object, "guarded", guarded);
    }
    return CLI_DONE;
}

static int list_partitions(const rondo_plan *plan, uint32_t count, bool text, cJSON *array) {
    static const char *const names[] = {"unknown", "strings", "plan", "constants", "packed weights"};
    for (uint32_t i = 0; i < count; ++i) {
        rondo_plan_partition part = RONDO_PLAN_PARTITION_INIT;
        rondo_status status = rondo_plan_get_partition(plan, i, &part);
        if (status) return cli_report(status);
        const char *name = names[part.kind < sizeof names / sizeof *names ? part.kind : 0];
        char checksum[20];
        snprintf(checksum, sizeof checksum, "%016llx", (unsigned long long)part.checksum);
        if (text)
            printf("  %-14s %12llu bytes  xxh3 %s%s%s\n", name, (unsigned long long)part.bytes, checksum,
                   part.kernel_set ? "  for kernel set " : "", part.kernel_set ? part.kernel_set : "");
        cJSON *object = cJSON_CreateObject();
        cJSON_AddItemToArray(array, object);
        cJSON_AddStringToObject(object, "kind", name);
        cJSON_AddNumberToObject(object, "bytes", (double)part.bytes);
        cJSON_AddStringToObject(object, "xxh3", checksum);
        if (part.kernel_set) cJSON_AddStringToObject(object, "kernel_set", part.kernel_set);
    }
    return CLI_DONE;
}

static int show_plan(const rondo_plan *plan, bool json) {
    rondo_plan_file_info file = RONDO_PLAN_FILE_INFO_INIT;
    rondo_plan_info info = RONDO_PLAN_INFO_INIT;
    rondo_status status = rondo_plan_get_file_info(plan, &file);
    if (!status) status = rondo_plan_get_info(plan, &info);
    if (status) return cli_report(status);
    cJSON *root = cJSON_CreateObject();
    char version[32];
    snprintf(version, sizeof version, "%u.%u", file.major, file.minor);
    cJSON_AddStringToObject(root, "format", version);
    cJSON_AddStringToObject(root, "writer", file.writer);
    cJSON_AddStringToObject(root, "target", file.target);
    cJSON_AddNumberToObject(root, "file_bytes", (double)file.file_bytes);
    cJSON_AddNumberToObject(root, "nodes", info.nodes_in);
    cJSON_AddNumberToObject(root, "calls", info.calls);
    cJSON_AddNumberToObject(root, "arena_bytes", (double)info.arena_bytes);
    cJSON_AddNumberToObject(root, "weight_bytes", (double)info.weight_bytes);
    if (!json)
        printf("offline file %s by version %s for target %s, %llu bytes\n"
               "%u nodes -> %u calls in %u segment%s; arena %llu bytes, weights %llu bytes\n",
               version, file.writer, file.target, (unsigned long long)file.file_bytes, info.nodes_in, info.calls,
               info.segments, info.segments == 1 ? "" : "s", (unsigned long long)info.arena_bytes,
               (unsigned long long)info.weight_bytes);
    int code = list_plan_ports(plan, info.inputs, true, !json, cJSON_AddArrayToObject(root, "inputs"));
    if (code == CLI_DONE)
        code = list_plan_ports(plan, info.outputs, false, !json, cJSON_AddArrayToObject(root, "outputs"));
    if (code == CLI_DONE)
        code = list_partitions(plan, file.partitions, !json, cJSON_AddArrayToObject(root, "partitions"));
    if (code == CLI_DONE && json) {
        char *text = cJSON_Print(root);
        puts(text ? text : "{}");
        cJSON_free(text);
    }
    cJSON_Delete(root);
    return code;
}

int cli_info(int argc, char **argv) {
    cli_options *options = cli_allocate(1, sizeof *options);
    int code = cli_parse(argc, argv, CLI_OPT_JSON, options);
    rondo_instance *instance = NULL;
    rondo_ir_graph *graph = NULL;
    rondo_plan *plan = NULL;
    if (code == CLI_DONE && options->help) {
        fputs(info_help, stdout);
    } else if (code == CLI_DONE && options->file_count != 1) {
        code = cli_usage("exactly one model file is wanted, %u were given", options->file_count);
    } else if (code == CLI_DONE) {
        code = cli_report(cli_instance(options, RONDO_LOG_WARNING, &instance));
        bool file = cli_is_plan_file(options->files[0]);
        if (code == CLI_DONE && file) code = cli_report(rondo_plan_open(instance, options->files[0], &plan));
        else if (code == CLI_DONE) code = cli_report(cli_graph_read(instance, options->files[0], &graph));
        if (code == CLI_DONE) code = file ? show_plan(plan, options->json) : show(graph, options->json);
    }
    rondo_plan_release(plan);
    rondo_ir_graph_release(graph);
    rondo_instance_release(instance);
    cli_options_free(options);
    free(options);
    return code;
}
