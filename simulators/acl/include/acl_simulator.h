/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program may know of the simulator beyond the vendor's interface. It exports no symbol for it: both doors lead through
 * calls that the vendor's library has, too, and that refuse there.
 *
 * Kernels: a table of C functions by name is an image for aclrtBinaryLoadFromData. A shared library for
 * aclrtBinaryLoadFromFile exports such functions by their names.
 *
 * Control: aclrtBinaryGetFunction(null, "acl_simulator_control", &handle) gives a pointer to an aclsim_control.
 */
#ifndef ACL_SIMULATOR_H
#define ACL_SIMULATOR_H

#include <stdint.h>

#define ACLSIM_MAGIC "acl simulator 1"

/* What a kernel is given, once a block. */
typedef struct aclsim_launch {
    const void *arguments;
    uint64_t size;  /* bytes of arguments */
    uint32_t block; /* of [0, blocks) */
    uint32_t blocks;
} aclsim_launch;

/* Nonzero: the kernel failed, which its stream reports as 507015. */
typedef int32_t (*aclsim_function)(const aclsim_launch *launch);

/* What kind of core the kernel is for: cube and vector kernels may be in a task group. */
enum { ACLSIM_VECTOR = 0, ACLSIM_CUBE = 1, ACLSIM_AICPU = 2 };

typedef struct aclsim_kernel {
    const char *name;
    aclsim_function function;
    uint32_t kind;
    uint32_t words; /* arguments of 8 bytes, for aclrtLaunchKernelWithArgsArray; 0: it cannot be launched so */
} aclsim_kernel;

typedef struct aclsim_image {
    char magic[16]; /* ACLSIM_MAGIC */
    uint64_t count;
    /* They and their names stay until the binary is unloaded, their code until what runs of it has ended. */
    const aclsim_kernel *kernels;
} aclsim_image;

#define ACLSIM_CONTROL "acl_simulator_control"

typedef struct aclsim_control {
    uint32_t struct_size;
    uint32_t reserved;
    /* How often the function was called since the last clear_counts; "replays" counts runs of prepared lists. UINT64_MAX: no such name. */
    uint64_t (*count)(const char *name);
    void (*clear_counts)(void);
    /* The nth call from now of the function gives the error instead of doing anything; 0 calls it off. "alloc" is the
     * simulator's own memory. 0: done; else there is no such name. */
    int32_t (*fail)(const char *name, uint64_t nth, int32_t error);
    /* One of the settings of the environment, by its name there without RONDO_ACL_, for what is made afterwards. 0: done. */
    int32_t (*set)(const char *name, int64_t value);
    /* What is alive now: "streams", "events", "models", "contexts", "memory" (bytes), "host" (bytes), "blocks", "notifies",
     * "hardware_streams". UINT64_MAX: no such name. */
    uint64_t (*alive)(const char *name);
} aclsim_control;

#endif
