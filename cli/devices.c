/* SPDX-License-Identifier: Apache-2.0
 *
 * rondo devices: backends, devices, and what each can do. */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "cli.h"

static const char devices_help[] =
    "usage: rondo devices [--json] [--plugin FILE]\n"
    "Lists the device types, their devices, and whether graphs and graph trees can be captured on them. What a driver\n"
    "cannot do, or is not asked for, and why, goes to standard error.\n";

static const struct {
    uint32_t bit;
    const char *name;
} capabilities[] = {{RONDO_DEVICE_GRAPH_CAPABLE, "graphs"},
                    {RONDO_DEVICE_TREES_CAPABLE, "trees"},
                    {RONDO_DEVICE_HOST_ADDRESSABLE, "host_addressable"},
                    {RONDO_DEVICE_HOST_KERNELS, "host_kernels"},
                    {RONDO_DEVICE_INLINE, "inline"}};

static cJSON *describe_device(rondo_device *device, bool text) {
    const rondo_device_properties *properties = rondo_device_info(device);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "index", properties->index);
    cJSON_AddStringToObject(object, "description", properties->description);
    cJSON_AddNumberToObject(object, "memory_total", (double)properties->memory_total);
    cJSON *list = cJSON_AddArrayToObject(object, "capabilities");
    if (text) printf("  %s:%d  %s\n      ", properties->name, (int)properties->index, properties->description);
    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; ++i) {
        bool has = (properties->capabilities & capabilities[i].bit) != 0;
        if (has) cJSON_AddItemToArray(list, cJSON_CreateString(capabilities[i].name));
        if (text) printf("%s%s %s", i ? ", " : "", capabilities[i].name, has ? "yes" : "no");
    }
    if (text) putchar('\n');
    return object;
}

/* That there is none, or that one cannot be opened, is an answer here, not a failure: in one line. */
static void say_why(rondo_status status, const char *what, bool text, cJSON *object) {
    cJSON_AddStringToObject(object, "unavailable", rondo_status_message(status));
    if (text) printf("  %snot available: %s\n", what, rondo_status_message(status));
    rondo_status_release(status);
}

static void list_device(rondo_instance *instance, const char *type, uint32_t index, bool text, cJSON *devices) {
    char name[96], what[100];
    rondo_device *device = NULL;
    snprintf(name, sizeof name, "%s:%u", type, (unsigned)index);
    rondo_status status = rondo_device_open(instance, name, NULL, &device);
    if (!status) {
        cJSON_AddItemToArray(devices, describe_device(device, text));
        rondo_device_release(device);
        return;
    }
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(devices, object);
    cJSON_AddNumberToObject(object, "index", index);
    snprintf(what, sizeof what, "%s  ", name);
    say_why(status, what, text, object);
}

static void list_type(rondo_instance *instance, const char *type, bool text, cJSON *array) {
    uint32_t count = 0;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(array, object);
    cJSON_AddStringToObject(object, "type", type);
    cJSON_AddStringToObject(object, "description", rondo_device_type_description(instance, type));
    if (text) printf("%s: %s\n", type, rondo_device_type_description(instance, type));
    rondo_status status = rondo_device_type_count(instance, type, &count);
    if (status) {
        say_why(status, "", text, object);
        return;
    }
    cJSON *devices = cJSON_AddArrayToObject(object, "devices");
    if (text && !count) printf("  none here\n");
    for (uint32_t i = 0; i < count; ++i) list_device(instance, type, i, text, devices);
}

int cli_devices(int argc, char **argv) {
    cli_options *options = cli_allocate(1, sizeof *options);
    int code = cli_parse(argc, argv, CLI_OPT_JSON, options);
    rondo_instance *instance = NULL;
    if (code == CLI_DONE && options->help) {
        fputs(devices_help, stdout);
    } else if (code == CLI_DONE && options->file_count) {
        code = cli_usage("rondo devices takes no files");
    } else if (code == CLI_DONE) {
        code = cli_report(cli_instance(options, RONDO_LOG_INFO, &instance));
        cJSON *array = cJSON_CreateArray();
        const char *type;
        for (uint32_t i = 0; code == CLI_DONE && (type = rondo_device_type_at(instance, i)); ++i)
            list_type(instance, type, !options->json, array);
        if (code == CLI_DONE && options->json) {
            char *json = cJSON_Print(array);
            puts(json ? json : "[]");
            cJSON_free(json);
        }
        cJSON_Delete(array);
    }
    rondo_instance_release(instance);
    cli_options_free(options);
    free(options);
    return code;
}
