/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the mutations share: what one remembers, and the entries that it spoils. */
#ifndef RONDO_BACKENDS_SIM_MUTANT_H
#define RONDO_BACKENDS_SIM_MUTANT_H

#include "mutations.h"

#define RONDO__SIM_MUTANT_CALLS 256u /* calls, copies, uploads and host functions that are remembered, of each */
#define RONDO__SIM_MUTANT_WORDS 8u
#define RONDO__SIM_MUTANT_UPLOAD 64u /* bytes */
#define RONDO__SIM_MUTANT_LARGE 65536u

#define RONDO__SIM_IS(device, name) ((device)->settings.mutation == RONDO__SIM_MUTATION_##name)

typedef struct rondo__sim_known_call {
    rondo_kernel kernel;
    char name[32];
    uint32_t count;
    uint64_t words[RONDO__SIM_MUTANT_WORDS];
} rondo__sim_known_call;

typedef struct rondo__sim_known_copy {
    uint64_t key, destination, source, bytes;
} rondo__sim_known_copy;

typedef struct rondo__sim_known_upload {
    uint64_t destination, bytes;
    unsigned char data[RONDO__SIM_MUTANT_UPLOAD];
} rondo__sim_known_upload;

typedef struct rondo__sim_known_host {
    rondo_host_function function;
    void *user;
} rondo__sim_known_host;

typedef struct rondo__sim_mutant_memory {
    uint64_t captures, launches, copies, host_calls; /* so far; captures: ended */
    uint64_t last, last_size;                        /* allocation */
    uint64_t hollow;                                 /* an allocation that is much smaller than it says */
    uint64_t shared;                                 /* how often the last one was given out again */
    void *pinned;                                    /* the last, its size, and how often it was given out again */
    uint64_t pinned_size, pinned_shared;
    uint64_t capturing; /* streams */
    pthread_t capturer; /* who began the first of them */
    uint64_t cells;     /* conditions of our own: 0, 1, and one to be written */
    rondo_kernel_function philox;
    uint32_t call_count, copy_count, upload_count, host_call_count;
    rondo__sim_known_call known_calls[RONDO__SIM_MUTANT_CALLS];
    rondo__sim_known_copy known_copies[RONDO__SIM_MUTANT_CALLS];
    rondo__sim_known_upload known_uploads[RONDO__SIM_MUTANT_CALLS];
    rondo__sim_known_host known_host_calls[RONDO__SIM_MUTANT_CALLS];
} rondo__sim_mutant_memory;

static inline rondo__sim_device *rondo__sim_mutant_device(void *stream) {
    return ((const rondo__sim_stream *)stream)->device;
}
static inline uint64_t rondo__sim_mutant_count(uint64_t *count) {
    return __atomic_add_fetch(count, 1u, __ATOMIC_RELAXED);
}
/* Whether a capture has ended on the device: from then on work may be that of replays. */
static inline bool rondo__sim_mutant_has_captured(const rondo__sim_device *device) {
    const rondo__sim_mutant_memory *memory = device->mutant;
    return __atomic_load_n(&memory->captures, __ATOMIC_RELAXED) != 0;
}
static inline bool rondo__sim_mutant_is_work(const rondo__sim_operation *operation) {
    return rondo__sim_kind_is_work(operation->kind);
}
/* While a stream captures: what a device that takes captures too strictly refuses. */
static inline bool rondo__sim_mutant_is_captured(const rondo__sim_device *device) {
    const rondo__sim_mutant_memory *memory = device->mutant;
    return __atomic_load_n(&memory->capturing, __ATOMIC_RELAXED) != 0;
}
rondo_status rondo__sim_mutant_refuse(const rondo__sim_device *device, const char *what);
/* A failure that says nothing. */
rondo_status rondo__sim_mutant_remade(const rondo__sim_device *device, rondo_code code);

/* mutations_work.c */
rondo_status rondo__sim_mutant_launch(void *stream, const rondo_call *call);
rondo_status rondo__sim_mutant_copy(void *stream, uint64_t destination, uint64_t source, uint64_t bytes,
                                    rondo_copy_kind kind);
rondo_status rondo__sim_mutant_fill(void *stream, uint64_t address, uint8_t value, uint64_t bytes);
rondo_status rondo__sim_mutant_condition_begin(void *stream, uint64_t address);
void rondo__sim_mutant_condition_end(void *stream);
rondo_status rondo__sim_mutant_host_call(void *stream, rondo_host_function function, void *user);

/* mutations_order.c */
rondo_status rondo__sim_mutant_synchronize(void *stream);
rondo_status rondo__sim_mutant_query(void *stream, bool *out_done);
rondo_status rondo__sim_mutant_event_record(void *event, void *stream);
rondo_status rondo__sim_mutant_event_wait(void *event, void *stream);
rondo_status rondo__sim_mutant_event_query(void *event, bool *out_done);
rondo_status rondo__sim_mutant_event_synchronize(void *event);
void rondo__sim_mutant_capture_changed(void *stream, bool active, rondo_capture_mode mode);
void rondo__sim_mutant_destroy(void *device, void *stream);

#endif
