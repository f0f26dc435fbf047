/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as an offline file: as they are, and with a right head and right checksums, so that the words of the plan
 * are reached. What is accepted must dump, and become an executable or be refused in words. */
#include <rondo/file.h>
#include <stdlib.h>

#include "artifact/seal_testing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_FILE_MAX ((size_t)1 << 20)

static int32_t fuzz_count(void *user, const char *data, size_t size) {
    (void)data;
    *(size_t *)user += size;
    return 0;
}

static rondo_device *fuzz_device(void) {
    static rondo_device *device; /* opened once: it costs more than all the rest */
    static rondo_instance *instance;
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    options.ignore_plugin_path = 1;
    if (!device && (rondo_instance_create(&options, &instance) || rondo_device_open(instance, "cpu", NULL, &device)))
        abort();
    return device;
}

static void fuzz_use(const at_bytes *bytes) {
    rondo_allocator allocator = rondo_allocator_default();
    rondo_plan *plan = NULL;
    rondo_executable *executable = NULL;
    char text[8192];
    size_t written = 0;
    rondo_status status = rondo__artifact_read(&allocator, bytes->data, bytes->size, &plan);
    if (!status == !plan) __builtin_trap();
    if (plan) {
        rondo_status_release(rondo_plan_dump(plan, RONDO_DUMP_JSON, fuzz_count, &written));
        rondo_device *devices[RONDO__PLAN_TARGETS_MAX];
        for (uint32_t i = 0; i < RONDO__PLAN_TARGETS_MAX; i++) devices[i] = fuzz_device();
        status = rondo_executable_create_on(devices, rondo__plan_target_count(plan), plan, &executable);
    }
    if (status && rondo_status_format(status, text, sizeof text) == 0) __builtin_trap();
    rondo_status_release(status);
    rondo_executable_release(executable);
    rondo_plan_release(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t magic[8] = RONDO_PLAN_FILE_MAGIC;
    if (size > FUZZ_FILE_MAX) return 0;
    /* To the end of a block, so that a sanitizer sees the first byte past it. */
    size_t whole = (size + 63u) & ~(size_t)63u;
    uint8_t *memory = aligned_alloc(64, whole ? whole : 64);
    if (!memory) return 0;
    memset(memory, 0, whole ? whole : 64);
    if (size) memcpy(memory, data, size);
    at_bytes bytes = {memory, size};
    fuzz_use(&bytes);
    rondo__artifact_header header;
    if (size >= sizeof header) {
        memcpy(&header, memory, sizeof header);
        memcpy(header.magic, magic, sizeof magic);
        header.order = RONDO__ARTIFACT_ORDER;
        header.major = RONDO__ARTIFACT_MAJOR;
        header.file_bytes = size;
        memcpy(memory, &header, sizeof header);
        at_seal(&bytes);
        fuzz_use(&bytes);
    }
    free(memory);
    return 0;
}
