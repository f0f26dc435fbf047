/* SPDX-License-Identifier: Apache-2.0
 *
 * The offline file: a plan and its weights, compiled once, opened where they run. Opening needs no compiler and no
 * device; docs/offline-file.md tells the whole.
 *
 * The rules for ownership, threads and statuses are those of runtime.h.
 */
#ifndef RONDO_FILE_H
#define RONDO_FILE_H

#include <rondo/runtime.h>

RONDO_EXTERN_C_BEGIN

/* The first eight bytes of every offline file, as an array's initialiser. */
#define RONDO_PLAN_FILE_MAGIC \
    { 0x89, 'R', 'O', 'N', 'D', 'O', '\r', '\n' }

/* Writes the plan with its constants, and its weights packed by the kernel sets that this machine would use. The file
 * appears whole or not at all, and one that stands there is replaced at once; the same plan gives the same bytes on
 * every run. The plan is not changed. Thread-safe.
 * IO (file): cannot be written. UNSUPPORTED: (kernel) a catalogue of the plan is not in this instance, or refuses a step
 * here; (file) an attribute that a file cannot hold, by name. */
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_write(rondo_instance *instance, const rondo_plan *plan,
                                                       const char *path);

/* Maps the file, verifies every byte of it, and gives a plan that uses it in place; released as any plan is. The file
 * may be replaced or deleted meanwhile (as rondo_plan_write does), but must not be changed in place or cut while a plan
 * of it lives: the system ends a program that reads what is no longer there. Thread-safe.
 * A plan holds for the inputs that rondo_plan_check_input accepts. What device runs it, rondo_executable_create decides:
 * UNSUPPORTED names the target that it was made for. Weights packed for the device's kernel set are used where they lie,
 * those of another set are packed again from the constants.
 * NOT_FOUND, IO (file): cannot be read. CORRUPT (file): not an offline file, cut, changed, inconsistent. UNSUPPORTED
 * (file): a newer major version, another byte order, or a needed partition that this version does not know. */
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_open(rondo_instance *instance, const char *path,
                                                      rondo_plan **out_plan);

/* Whether the plan may run on this tensor as its input `index`: data type and shape, and where the plan is guarded, the
 * value, which must be compact host memory. INVALID_ARGUMENT (input) names the input and what was wanted; OUT_OF_RANGE.
 * Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_check_input(const rondo_plan *plan, uint32_t index,
                                                             const rondo_tensor_view *value);
/* The bytes that input `index` must have, compact, as many as rondo_plan_input says; null where any will do. Borrowed. */
RONDO_API const void *rondo_plan_guard(const rondo_plan *plan, uint32_t index);

typedef struct rondo_plan_file_info {
    uint32_t struct_size;
    uint32_t major, minor; /* of the format */
    uint32_t partitions;
    uint64_t file_bytes;
    const char *writer; /* version of the library that wrote it; borrowed, as all texts here */
    const char *target; /* the catalogues that it was compiled for, best first */
} rondo_plan_file_info;
#define RONDO_PLAN_FILE_INFO_INIT \
    { sizeof(rondo_plan_file_info), 0, 0, 0, 0, 0, 0 }
/* INVALID_STATE: the plan comes from no file. */
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_get_file_info(const rondo_plan *plan, rondo_plan_file_info *out_info);

typedef struct rondo_plan_partition {
    uint32_t struct_size;
    uint32_t kind; /* 1 strings, 2 plan, 3 constants, 4 packed weights; others are not used by this version */
    uint64_t bytes;
    uint64_t checksum;      /* XXH3, 64 bits */
    const char *kernel_set; /* of packed weights; null elsewhere */
} rondo_plan_partition;
#define RONDO_PLAN_PARTITION_INIT \
    { sizeof(rondo_plan_partition), 0, 0, 0, 0 }
/* INVALID_STATE: the plan comes from no file; OUT_OF_RANGE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_get_partition(const rondo_plan *plan, uint32_t index,
                                                               rondo_plan_partition *out_partition);

RONDO_EXTERN_C_END

#endif
