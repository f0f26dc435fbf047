/* SPDX-License-Identifier: Apache-2.0
 *
 * rondo ops: the operators there are, and what one of them takes and gives. */
#include <cjson/cJSON.h>
#include <rondo/operator.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char ops_help[] =
    "usage: rondo ops [NAME...] [--json] [--plugin FILE]\n"
    "Lists the operators with the kernel catalogues that have them, or explains those that are named: inputs, outputs,\n"
    "attributes. Operators of the libraries on RONDO_OPERATOR_PATH are among them.\n";

static const char *const kinds[] = {"", "int", "float", "string", "ints", "floats", "strings", "tensor", "graph"};

static void visit_catalogue(void *user, const char *catalogue) {
    cJSON_AddItemToArray(user, cJSON_CreateString(catalogue));
}

static rondo_status describe_operand(cJSON *list, const rondo_operator_operand *operand) {
    static const char *const presences[] = {"required", "optional", "dynamic"};
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(list, object);
    cJSON_AddStringToObject(object, "name", operand->name);
    cJSON_AddStringToObject(object, "presence", presences[operand->presence]);
    if (operand->same_type) cJSON_AddStringToObject(object, "same_type", (char[]){operand->same_type, 0});
    cJSON *types = cJSON_AddArrayToObject(object, "types");
    for (rondo_dtype d = 1; d < RONDO_DTYPE_COUNT; ++d)
        if (operand->dtypes >> d & 1u) cJSON_AddItemToArray(types, cJSON_CreateString(rondo_dtype_name(d)));
    return RONDO_OK;
}

static int32_t take_schema(void *user, const char *data, size_t size) {
    char *text = cli_allocate(size + 1u, 1);
    memcpy(text, data, size);
    cJSON_AddStringToObject(user, "schema", text);
    free(text);
    return 0;
}

/* What has no form in that language has none here. */
static rondo_status describe_schema(rondo_instance *instance, const char *name, cJSON *object) {
    rondo_status status = rondo_operator_print_schema(instance, name, take_schema, object);
    if (rondo_status_code(status) != RONDO_CODE_UNSUPPORTED) return status;
    rondo_status_release(status);
    return RONDO_OK;
}

static rondo_status describe(rondo_instance *instance, const rondo_operator_info *info, cJSON *array) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(array, object);
    cJSON_AddStringToObject(object, "name", info->name);
    cJSON_AddStringToObject(object, "summary", info->summary);
    cJSON_AddBoolToObject(object, "registered", (info->flags & RONDO_OPERATOR_INFO_REGISTERED) != 0);
    cJSON *inputs = cJSON_AddArrayToObject(object, "inputs"), *outputs = cJSON_AddArrayToObject(object, "outputs");
    cJSON *attributes = cJSON_AddArrayToObject(object, "attributes");
    rondo_operator_operand operand;
    rondo_operator_attribute_info attribute;
    rondo_status status = RONDO_OK;
    for (uint32_t i = 0; i < info->input_count && !status; ++i) {
        status = rondo_operator_info_input(info, i, &operand);
        if (!status) status = describe_operand(inputs, &operand);
    }
    for (uint32_t i = 0; i < info->output_count && !status; ++i) {
        status = rondo_operator_info_output(info, i, &operand);
        if (!status) status = describe_operand(outputs, &operand);
    }
    for (uint32_t i = 0; i < info->attribute_count && !status; ++i) {
        status = rondo_operator_info_attribute(info, i, &attribute);
        if (status) break;
        cJSON *item = cJSON_CreateObject();
        cJSON_AddItemToArray(attributes, item);
        cJSON_AddStringToObject(item, "name", attribute.name);
        cJSON_AddStringToObject(item, "kind", kinds[attribute.kind]);
        cJSON_AddBoolToObject(item, "required", attribute.required != 0);
        if (attribute.default_text) cJSON_AddStringToObject(item, "default", attribute.default_text);
    }
    if (!status) status = describe_schema(instance, info->name, object);
    if (status) return status;
    return rondo_operator_catalogues(instance, info->name, visit_catalogue,
                                     cJSON_AddArrayToObject(object, "catalogues"));
}

static const char *text_of(const cJSON *object, const char *name) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    return text ? text : "";
}

static void print_words(const cJSON *list, const char *between) {
    const cJSON *item;
    cJSON_ArrayForEach(item, list) printf("%s%s", item == list->child ? "" : between, cJSON_GetStringValue(item));
}

static void print_operands(const cJSON *object, const char *list, const char *what) {
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(object, list)) {
        printf("  %s %s, %s: ", what, text_of(item, "name"), text_of(item, "presence"));
        print_words(cJSON_GetObjectItemCaseSensitive(item, "types"), " ");
        putchar('\n');
    }
}

static void print_whole(const cJSON *object) {
    const cJSON *item;
    printf("%s  %s\n", text_of(object, "name"), text_of(object, "summary"));
    print_operands(object, "inputs", "input    ");
    print_operands(object, "outputs", "output   ");
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(object, "attributes")) {
        const char *otherwise = text_of(item, "default");
        bool required = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "required"));
        printf("  attribute %s, %s: %s%s%s\n", text_of(item, "name"), required ? "required" : "optional",
               text_of(item, "kind"), *otherwise ? ", else " : "", otherwise);
    }
    if (*text_of(object, "schema")) printf("  schema    %s\n", text_of(object, "schema"));
    const cJSON *catalogues = cJSON_GetObjectItemCaseSensitive(object, "catalogues");
    printf("  kernels   ");
    print_words(catalogues, ", ");
    puts(catalogues->child ? "" : "none");
}

static void print_line(const cJSON *object) {
    printf("%-24s ", text_of(object, "name"));
    print_words(cJSON_GetObjectItemCaseSensitive(object, "catalogues"), ",");
    putchar('\n');
}

static rondo_status collect(rondo_instance *instance, const cli_options *options, cJSON *array) {
    rondo_operator_info info = RONDO_OPERATOR_INFO_INIT;
    for (uint32_t i = 0; i < options->file_count; ++i) {
        rondo_status status = rondo_operator_find(instance, options->files[i], &info);
        if (!status) status = describe(instance, &info, array);
        if (status) return status;
    }
    for (uint32_t i = 0; !options->file_count; ++i) {
        rondo_status status = rondo_operator_at(instance, i, &info);
        if (rondo_status_code(status) == RONDO_CODE_NOT_FOUND) {
            rondo_status_release(status);
            return RONDO_OK;
        }
        if (!status) status = describe(instance, &info, array);
        if (status) return status;
    }
    return RONDO_OK;
}

int cli_ops(int argc, char **argv) {
    cli_options *options = cli_allocate(1, sizeof *options);
    int code = cli_parse(argc, argv, CLI_OPT_JSON, options);
    rondo_instance *instance = NULL;
    if (code == CLI_DONE && options->help) {
        fputs(ops_help, stdout);
    } else if (code == CLI_DONE) {
        cJSON *array = cJSON_CreateArray();
        const cJSON *item;
        code = cli_report(cli_instance(options, RONDO_LOG_WARNING, &instance));
        if (code == CLI_DONE) code = cli_report(collect(instance, options, array));
        if (code == CLI_DONE && options->json) {
            char *json = cJSON_Print(array);
            puts(json ? json : "[]");
            cJSON_free(json);
        } else if (code == CLI_DONE) {
            cJSON_ArrayForEach(item, array) {
                if (options->file_count) print_whole(item);
                else print_line(item);
            }
        }
        cJSON_Delete(array);
    }
    rondo_instance_release(instance);
    cli_options_free(options);
    free(options);
    return code;
}
