/* SPDX-License-Identifier: Apache-2.0
 *
 * The insides of an executable and a context, for the files of this folder. */
#ifndef RONDO_SRC_EXEC_EXEC_H
#define RONDO_SRC_EXEC_EXEC_H

#include <rondo/compiler.h>

#include "graph/list.h"
#include "graph/ticket.h"
#include "plan/plan.h"

#define RONDO__EXEC_ALIGNMENT 64u

/* Where weights and arenas come from: the device, or whoever made the session. */
typedef struct rondo__exec_memory {
    rondo_device *device;       /* not retained */
    rondo_device_memory source; /* allocate null: the device's own memory */
} rondo__exec_memory;
RONDO_MUST_USE rondo_status rondo__exec_allocate(const rondo__exec_memory *memory, uint64_t bytes,
                                                 uint64_t *out_address);
/* 0 is accepted. Nothing may use it any more. */
void rondo__exec_free(const rondo__exec_memory *memory, uint64_t address, uint64_t bytes);
/* Through a stream of its own, and waited for: the default one may be capturing. */
RONDO_MUST_USE rondo_status rondo__exec_copy(rondo_device *device, uint64_t destination, uint64_t source,
                                             uint64_t bytes, rondo_copy_kind kind);

typedef struct rondo__weights rondo__weights; /* weights.h */

/* rondo_executable_create with memory from elsewhere; its contexts take theirs from there, too. source may be null, and so may
 * weights: then it shares none. */
RONDO_MUST_USE rondo_status rondo__executable_create(rondo_device *device, rondo_plan *plan,
                                                     const rondo_device_memory *source, rondo__weights *weights,
                                                     rondo_executable **out_executable);

/* A step made ready for the device. */
typedef struct rondo__exec_step {
    rondo_kernel kernel;
    const rondo_catalogue *catalogue; /* null until prepared */
    uint64_t packed;                  /* device address; 0: none */
    uint64_t load_ns;                 /* what packing and preparing it took */
} rondo__exec_step;

struct rondo_executable {
    rondo__ref_count references;
    rondo_allocator allocator;
    rondo_device *device; /* retained */
    rondo_plan *plan;     /* retained */
    rondo__exec_step *steps;
    uint64_t *constants; /* a device address for each buffer of the plan; 0 for those that are no constants */
    uint64_t weights;    /* the one allocation that holds constants and packed blocks; 0: none */
    uint64_t weights_bytes;
    rondo__weights *shared;               /* retained; null: nothing is shared */
    struct rondo__weights_block **blocks; /* of shared, one use each is ours */
    uint32_t block_count;
    rondo__exec_memory memory;
};

/* An input or output of a context, by one number: inputs first. The same number is the list's slot. */
typedef struct rondo__exec_port {
    uint64_t address; /* 0: not bound */
    uint64_t alignment;
    bool required; /* some step uses it */
    bool placed;   /* known to lie apart from the others since it was bound */
} rondo__exec_port;

/* An argument of an eager call that follows a port. */
typedef struct rondo__exec_mention {
    uint32_t argument; /* of context->arguments */
    uint32_t port;
    uint64_t addend;
} rondo__exec_mention;

struct rondo_context {
    rondo__ref_count references;
    rondo_allocator allocator;
    rondo_executable *executable; /* retained */
    rondo_device *device;         /* the executable's */
    uint64_t arena;               /* allocation; 0: none */
    uint64_t arena_base;          /* the aligned place in it */
    uint64_t arena_bytes;         /* of the allocation */
    rondo__call_list *list;
    rondo__lanes *lanes; /* of a plan of several lanes: streams and events; else null */
    rondo__exec_port *ports;
    rondo_call *calls;         /* one a step, for eager runs */
    rondo_argument *arguments; /* of all calls */
    size_t argument_count;
    rondo__buffer mentions; /* rondo__exec_mention */
    uint32_t port_count, unbound;
    bool moved;    /* a port was bound since the last eager run */
    bool unplaced; /* a port was bound since the last run of any kind */
    rondo__ticket ticket;
};

/* Told of each step of a run while it is enqueued: `before` gives the call that goes out, the step's own or one made of it,
 * which lives until the stream is through with it; `after` gets the stream that it went to. */
typedef struct rondo__exec_observer {
    void *self;
    rondo_status (*before)(void *self, uint32_t step, const rondo_call *call, const rondo_call **out_call);
    rondo_status (*after)(void *self, uint32_t step, rondo_stream *stream);
} rondo__exec_observer;
/* rondo_context_run_eager with somebody who looks on; null: nobody. What a capture records is not looked at. */
RONDO_MUST_USE rondo_status rondo__context_run_observed(rondo_context *context, rondo_stream *stream,
                                                        const rondo__exec_observer *observer);

#endif
