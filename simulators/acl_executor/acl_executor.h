/* SPDX-License-Identifier: Apache-2.0
 *
 * Who runs models from files: libascendcl_executor.so, which lies beside the simulator and is opened with the first model.
 * The simulator knows of it what is here, and so knows nothing of Rondo. */
#ifndef SIMULATORS_ACL_EXECUTOR_ACL_EXECUTOR_H
#define SIMULATORS_ACL_EXECUTOR_ACL_EXECUTOR_H

#include <acl/acl_base.h>

#define SIM_EXECUTOR_VERSION 1u
#define SIM_EXECUTOR_SYMBOL "sim_executor_get"

/* Of a model's input or output. Borrowed from the model. */
typedef struct sim_port {
    const char *name;
    const int64_t *dims;
    int32_t rank;
    aclDataType type;
    size_t bytes;
} sim_port;

/* Texts are sentences of at most `capacity` bytes with their end, written where an error is given. */
typedef struct sim_executor {
    /* A file by its path, or where that is null the bytes, which may go afterwards.
     * 145002: it cannot be read; 100003: it is no offline file of Rondo's, or damaged; 207000: this one cannot be run here;
     * 245000: no memory. */
    aclError (*load)(const char *path, const void *data, size_t size, void **out_model, char *text, size_t capacity);
    void (*unload)(void *model); /* nothing of it runs */
    uint32_t (*inputs)(const void *model);
    uint32_t (*outputs)(const void *model);
    sim_port (*port)(const void *model, bool output, uint32_t index);
    /* One run, done when it returns; runs of one model may overlap. 507011: it failed. 145000: a value that the model is
     * not for. */
    aclError (*run)(void *model, void *const *inputs, void *const *outputs, char *text, size_t capacity);
} sim_executor;

/* Null: another version. */
typedef const sim_executor *(*sim_executor_getter)(uint32_t version);

#endif
