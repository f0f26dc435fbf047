/* SPDX-License-Identifier: Apache-2.0
 *
 * rondo passes: what the compiler does, in the order in which it does it. */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "cli.h"

static const char passes_help[] =
    "usage: rondo passes [--json]\n"
    "The compiler's passes in order, each with the level from which on it runs (-O 0 to 3) and what it does. Those of\n"
    "-O0 must run; the others are listed by --passes A,B and left out by --disable-pass NAME.\n";

int cli_list_passes(bool json) {
    rondo_pass_info info = RONDO_PASS_INFO_INIT;
    rondo_status status;
    cJSON *array = cJSON_CreateArray();
    for (uint32_t i = 0; !(status = rondo_compile_pass(i, &info)); ++i) {
        if (!json) {
            printf("%-16s -O%d  %s\n", info.name, info.level - RONDO_COMPILE_O0, info.summary);
            continue;
        }
        cJSON *pass = cJSON_CreateObject();
        cJSON_AddStringToObject(pass, "name", info.name);
        cJSON_AddNumberToObject(pass, "level", info.level - RONDO_COMPILE_O0);
        cJSON_AddBoolToObject(pass, "required", info.required != 0);
        cJSON_AddStringToObject(pass, "summary", info.summary);
        cJSON_AddItemToArray(array, pass);
    }
    bool end = rondo_status_code(status) == RONDO_CODE_NOT_FOUND;
    if (end && json) {
        char *text = cJSON_Print(array);
        puts(text ? text : "[]");
        cJSON_free(text);
    }
    cJSON_Delete(array);
    if (!end) return cli_report(status);
    rondo_status_release(status);
    return CLI_DONE;
}

int cli_passes(int argc, char **argv) {
    cli_options *options = cli_allocate(1, sizeof *options);
    int code = cli_parse(argc, argv, CLI_OPT_JSON, options);
    if (code == CLI_DONE && options->help) {
        fputs(passes_help, stdout);
    } else if (code == CLI_DONE && options->file_count) {
        code = cli_usage("rondo passes takes no file");
    } else if (code == CLI_DONE) {
        code = cli_list_passes(options->json);
    }
    cli_options_free(options);
    free(options);
    return code;
}
