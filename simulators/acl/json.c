/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph for people: an array of trace events, as a browser's trace viewer reads them. A task has no time of its own: its
 * number stands for it. */
#include "sim.h"

static void json_text(FILE *file, const char *text) {
    (void)fputc('"', file);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') (void)fprintf(file, "\\%c", c);
        else if (c < 0x20) (void)fprintf(file, "\\u%04x", c);
        else (void)fputc(c, file);
    }
    (void)fputc('"', file);
}

static const char *json_type(const sim_task *task) {
    static const char *const kernels[] = {"KERNEL_AIVEC", "KERNEL_AICORE", "KERNEL_AICPU"};
    if (task->kind != SIM_KERNEL) return sim_kind_name(task->kind);
    uint32_t kind = atomic_load(&task->as.kernel.now)->function->kind;
    return kernels[kind <= ACLSIM_AICPU ? kind : ACLSIM_VECTOR];
}

static void json_kernel(FILE *file, const sim_task *task, bool verbose) {
    const sim_arguments *arguments = atomic_load(&task->as.kernel.now);
    (void)fprintf(file, ", \"Numblocks\": %u, \"Task Ration\": \"0\", \"Schem Mode\": %u", arguments->blocks,
                  arguments->scheme);
    if (!verbose) return;
    (void)fputs(", \"Kernel Args\": \"", file);
    for (size_t i = 0; !arguments->device && i < arguments->size; i++)
        (void)fprintf(file, "%s%02x", i && i % 8 == 0 ? " " : "", arguments->bytes[i]);
    if (arguments->device) (void)fprintf(file, "%p", arguments->device);
    (void)fprintf(file, "\", \"Kernel Args Size\": %zu", arguments->size);
}

static void json_extend(FILE *file, const sim_task *task) {
    if (task->disabled) (void)fputs(", \"ExtendInfo\": \"disabled\"", file);
    else if (task->group) (void)fputs(", \"ExtendInfo\": \"in a task group\"", file);
    else if (task->external) (void)fputs(", \"ExtendInfo\": \"external\"", file);
    else if (task->kind == SIM_WAIT)
        (void)fprintf(file, ", \"ExtendInfo\": \"waits for task %u\"", task->as.event.record->sequence);
    else if (task->kind == SIM_COPY)
        (void)fprintf(file, ", \"ExtendInfo\": \"%zu bytes from %p to %p\"", task->as.copy.width * task->as.copy.height,
                      (const void *)task->as.copy.from, (const void *)task->as.copy.to);
}

static void json_task(FILE *file, const sim_model *model, const sim_task *task, bool verbose) {
    const sim_lane *lane = model->lanes[task->lane];
    bool kernel = task->kind == SIM_KERNEL;
    (void)fputs("{\"name\": ", file);
    json_text(file, kernel ? atomic_load(&task->as.kernel.now)->function->name : sim_kind_name(task->kind));
    (void)fprintf(
        file,
        ", \"pid\": \"%d\", \"tid\": \"stream %d\", \"ts\": %u, \"dur\": 1, \"ph\": \"X\", \"args\": {\"Model Id\": %u, \"Stream Id\": %d, "
        "\"Task Id\": %u, \"Task Type\": ",
        model->context->device, lane->id, task->sequence, model->id, lane->id, task->sequence);
    json_text(file, json_type(task));
    json_extend(file, task);
    if (task->kind == SIM_ACTIVE) (void)fprintf(file, ", \"Active Stream Id\": %d", lane->id);
    if (kernel) json_kernel(file, task, verbose);
    (void)fputs("}}", file);
}

static aclError json_print(const void *handle, const char *path, bool verbose) {
    const sim_model *model = sim_model_of(handle);
    if (!model) return sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such graph");
    FILE *file = path ? fopen(path, "w") : stderr;
    if (!file) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%.256s cannot be written: its folder must exist", path);
    (void)fputs("[", file);
    for (size_t i = 0; i < model->task_count; i++) {
        (void)fputs(i ? ",\n" : "\n", file);
        json_task(file, model, model->tasks[i], verbose);
    }
    (void)fputs("\n]\n", file);
    bool good = !ferror(file);
    if (path) good = fclose(file) == 0 && good;
    return good ? ACL_SUCCESS
                : sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%.256s could not be written whole", path ? path : "stderr");
}

aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char *path, uint32_t flags) {
    SIM_BEGIN(aclmdlRIDebugJsonPrint);
    if (!modelRI || !path) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    if (flags > 1) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "0 is short, 1 with arguments; %u is neither", flags);
    sim_lock();
    return sim_leave(json_print(modelRI, path, flags == 1));
}

aclError aclmdlRIDebugPrint(aclmdlRI modelRI) {
    SIM_BEGIN(aclmdlRIDebugPrint);
    if (!modelRI) return sim_fail(ACL_ERROR_INVALID_PARAM, "modelRI is null");
    sim_lock();
    return sim_leave(json_print(modelRI, NULL, false));
}
