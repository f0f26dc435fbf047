/* SPDX-License-Identifier: Apache-2.0
 *
 * The bench: one table; every row with its value, its ratio to a peer measured in the same run, its bar, and whether it
 * holds. A bar that does not hold is not a failure of the program: it says so and exits 0, or 1 with --strict. */
#include <cjson/cJSON.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const char help[] =
    "usage: rondo-bench [NAME...] [--json FILE] [--models FOLDERS] [--peer LIBONNXRUNTIME] [--library LIBRONDO] [--strict]\n"
    "Rows whose name begins with a NAME; all without one. --strict: exit code 1 when a bar does not hold.\n"
    "FOLDERS are joined by ':'. What is not given lies under RONDO_CACHE, where tools/fetch puts it.\n"
    "RONDO_CPU_KERNELS=base|v3|... picks the kernels, as everywhere.\n";

bool bench_wants(const bench_report *report, const char *name) {
    if (!report->wanted_count) return true;
    for (uint32_t i = 0; i < report->wanted_count; ++i)
        if (strncmp(name, report->wanted[i], strlen(report->wanted[i])) == 0) return true;
    return false;
}

static bool holds(const bench_row *row) { return (row->bar_on_ratio ? row->ratio : row->value) <= row->bar; }

static bool judged(const bench_row *row) {
    return !isnan(row->bar) && !isnan(row->bar_on_ratio ? row->ratio : row->value);
}

void bench_add(bench_report *report, const bench_row *row) {
    char ratio[32] = "", bar[32] = "";
    if (!isnan(row->ratio)) snprintf(ratio, sizeof ratio, "%.3f", row->ratio);
    if (!isnan(row->bar)) snprintf(bar, sizeof bar, "%s%.4g", row->bar_on_ratio ? "x" : "", row->bar);
    printf("%-28s %12.3f %-8s %8s %8s %-6s %s\n", row->name, row->value, row->unit, ratio, bar,
           judged(row) ? (holds(row) ? "holds" : "MISSED") : "-", row->note);
    fflush(stdout);
    if (report->count < sizeof report->rows / sizeof *report->rows) report->rows[report->count++] = *row;
}

static cJSON *number_or_null(double value) { return isnan(value) ? cJSON_CreateNull() : cJSON_CreateNumber(value); }

static int write_json(const bench_report *report, const char *path) {
    cJSON *array = cJSON_CreateArray();
    for (uint32_t i = 0; i < report->count; ++i) {
        const bench_row *row = &report->rows[i];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "name", row->name);
        cJSON_AddItemToObject(object, "value", number_or_null(row->value));
        cJSON_AddStringToObject(object, "unit", row->unit);
        cJSON_AddItemToObject(object, "ratio", number_or_null(row->ratio));
        cJSON_AddItemToObject(object, "bar", number_or_null(row->bar));
        cJSON_AddStringToObject(object, "bar_is_for", row->bar_on_ratio ? "ratio" : "value");
        cJSON_AddItemToObject(object, "holds", judged(row) ? cJSON_CreateBool(holds(row)) : cJSON_CreateNull());
        cJSON_AddStringToObject(object, "note", row->note);
        cJSON_AddItemToArray(array, object);
    }
    char *text = cJSON_Print(array);
    FILE *file = fopen(path, "w");
    bool good = file && text && fputs(text, file) >= 0 && fputc('\n', file) >= 0;
    good = (!file || fclose(file) == 0) && good;
    if (!good) fprintf(stderr, "rondo-bench: %s: cannot be written\n", path);
    cJSON_free(text);
    cJSON_Delete(array);
    return good ? 0 : 1;
}

static void open_device(bench_setup *setup) {
    bench_must(rondo_instance_create(NULL, &setup->instance));
    bench_must(rondo_device_open(setup->instance, "cpu", NULL, &setup->device));
    bench_must(rondo_stream_create(setup->device, NULL, &setup->stream));
}

int main(int argc, char **argv) {
    static const struct option options[] = {{"json", required_argument, 0, 'j'},
                                            {"models", required_argument, 0, 'm'},
                                            {"peer", required_argument, 0, 'p'},
                                            {"library", required_argument, 0, 'l'},
                                            {"strict", no_argument, 0, 's'},
                                            {"help", no_argument, 0, 'h'},
                                            {0, 0, 0, 0}};
    static bench_report report;
    bench_setup setup = {0};
    const char *json = NULL, *peer = NULL;
    bool strict = false;
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'j': json = optarg; break;
        case 'm': setup.models = optarg; break;
        case 'p': peer = optarg; break;
        case 'l': setup.library = optarg; break;
        case 's': strict = true; break;
        case 'h': fputs(help, stdout); return 0;
        default: fputs(help, stderr); return 2;
        }
    }
    const char *cache = getenv("RONDO_CACHE");
    static const char *const folders[] = {"silero-vad", "wakeword", "openwakeword", "ocr", "magika"};
    static char models_path[8192], peer_path[4096], library_path[4096];
    if (!setup.models && cache) {
        for (size_t i = 0, used = 0; i < sizeof folders / sizeof *folders && used < sizeof models_path; ++i) {
            const int written =
                snprintf(models_path + used, sizeof models_path - used, "%s%s/%s", i ? ":" : "", cache, folders[i]);
            used += written > 0 ? (size_t)written : 0;
        }
        setup.models = models_path;
    }
    if (!peer && cache) {
        (void)snprintf(peer_path, sizeof peer_path, "%.4000s/onnxruntime/libonnxruntime.so", cache);
        peer = peer_path;
    }
    if (!setup.library) {
        const char *slash = strrchr(argv[0], '/');
        (void)snprintf(library_path, sizeof library_path, "%.*s/../lib/librondo.so", slash ? (int)(slash - argv[0]) : 1,
                       slash ? argv[0] : ".");
        setup.library = library_path;
    }
    report.wanted = (const char *const *)&argv[optind];
    report.wanted_count = (uint32_t)(argc - optind);
    open_device(&setup);
    if (peer) setup.peer = bench_peer_open(peer);
    printf("%-28s %12s %-8s %8s %8s %-6s %s\n", "row", "value", "unit", "ratio", "bar", "", "note");
    bench_replay(&setup, &report);
    bench_capture(&setup, &report);
    bench_compile(&setup, &report);
    bench_memory(&setup, &report);
    bench_trees(&setup, &report);
    bench_models(&setup, &report);
    bench_size(&setup, &report);
    bench_peer_close(setup.peer);
    rondo_stream_release(setup.stream);
    rondo_device_release(setup.device);
    rondo_instance_release(setup.instance);
    if (!report.count) {
        fprintf(stderr, "rondo-bench: no row has such a name\n");
        return 2;
    }
    int code = json ? write_json(&report, json) : 0;
    for (uint32_t i = 0; strict && i < report.count; ++i)
        if (judged(&report.rows[i]) && !holds(&report.rows[i])) code = 1;
    return code;
}
