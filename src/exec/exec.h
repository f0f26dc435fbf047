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

/* rondo_executable_create_on with memory of the first device from elsewhere; its contexts take theirs from there, too. source
 * may be null, and so may weights: then it shares none; with several devices it shares none either. */
RONDO_MUST_USE rondo_status rondo__executable_create(rondo_device *const *devices, uint32_t device_count,
                                                     rondo_plan *plan, const rondo_device_memory *source,
                                                     rondo__weights *weights, rondo_executable **out_executable);

/* A step made ready for the device. */
typedef struct rondo__exec_step {
    rondo_kernel kernel;
    const rondo_catalogue *catalogue; /* null until prepared */
    uint64_t packed;                  /* device address; 0: none */
    uint64_t load_ns;                 /* what packing and preparing it took */
} rondo__exec_step;

/* What a target of the plan has on its device. */
typedef struct rondo__exec_target {
    rondo_device *device; /* retained */
    uint64_t *
        constants; /* a device address for each buffer of the plan; 0 for those that are no constants, or not its own */
    uint64_t weights; /* the one allocation that holds constants and packed blocks; 0: none */
    uint64_t weights_bytes;
    rondo__exec_memory memory;
} rondo__exec_target;

struct rondo_executable {
    rondo__ref_count references;
    rondo_allocator allocator;
    rondo_device *device; /* of the first target, with the inputs and outputs */
    rondo_plan *plan;     /* retained */
    rondo__exec_step *steps;
    rondo__weights *shared;               /* retained; null: nothing is shared */
    struct rondo__weights_block **blocks; /* of shared, one use each is ours */
    uint32_t block_count;
    rondo__exec_target targets[RONDO__PLAN_TARGETS_MAX];
    uint32_t target_count;
};
static inline const rondo__exec_target *rondo__exec_target_of(const rondo_executable *executable, uint32_t step) {
    return &executable->targets[rondo__plan_target_of(executable->plan, &executable->plan->steps[step])];
}

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

typedef struct rondo__exec_arena {
    uint64_t allocation; /* 0: none */
    uint64_t base;       /* the aligned place in it */
    uint64_t bytes;      /* of the allocation */
} rondo__exec_arena;

/* One value that goes from the memory of a target to that of another, through host memory of the context. */
typedef struct rondo__exec_transfer {
    uint32_t step, from, to;     /* targets */
    uint32_t from_port, to_port; /* RONDO__PLAN_NONE: the address is final; else the distance from the port's */
    uint64_t source, destination, bytes;
    void *stage;
} rondo__exec_transfer;

/* What a plan of several targets has beside the rest: the parts are its segments. */
typedef struct rondo__exec_parts {
    rondo__call_list **lists; /* one a segment */
    uint32_t list_count;
    rondo__exec_transfer *transfers; /* in order of their steps */
    uint32_t transfer_count;
    rondo_stream *streams[RONDO__PLAN_TARGETS_MAX]; /* of all targets but the first, whose stream is the caller's */
    bool busy[RONDO__PLAN_TARGETS_MAX];             /* something was enqueued there that nobody has waited for */
} rondo__exec_parts;

struct rondo_context {
    rondo__ref_count references;
    rondo_allocator allocator;
    rondo_executable *executable; /* retained */
    rondo_device *device;         /* the executable's */
    rondo__exec_arena arenas[RONDO__PLAN_TARGETS_MAX];
    rondo__call_list *list;   /* of a plan with one target; with several it has the slots alone */
    rondo__exec_parts *parts; /* of a plan of several targets; else null */
    rondo__lanes *lanes;      /* of a plan of several lanes: streams and events; else null */
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

/* The step's call: its arguments, and which of them follow ports. */
typedef struct rondo__exec_call {
    rondo_argument arguments[RONDO_ARGUMENT_MAX];
    uint32_t ports[RONDO_ARGUMENT_MAX]; /* RONDO__PLAN_NONE: the address is final */
    uint32_t count;
} rondo__exec_call;

/* Appends the step's call to the list, with its names for eager runs. `used`: of the context's arguments. */
rondo_status rondo__context_add_step(rondo_context *context, rondo__call_list *list, uint32_t index, size_t *used);
rondo_status rondo__context_add_slots(rondo_context *context, rondo__call_list *list);
rondo_status rondo__context_launch(const rondo_context *context, rondo_stream *stream, uint32_t step,
                                   const rondo__exec_observer *observer);
/* What the operand is in the call: a word and whether it follows a port. */
rondo_status rondo__context_operand(const rondo_context *context, uint32_t target, const rondo__plan_operand *operand,
                                    uint32_t access, rondo__exec_call *call);

/* ---- plans of several targets (parts.c) */

RONDO_MUST_USE rondo_status rondo__parts_create(rondo_context *context);
void rondo__parts_destroy(rondo_context *context);
void rondo__parts_bind(const rondo_context *context, uint32_t port, uint64_t address);
/* Segment by segment; waits on the host wherever a value goes from one target to another. */
RONDO_MUST_USE rondo_status rondo__parts_run(rondo_context *context, rondo_stream *stream, bool eager,
                                             const rondo__exec_observer *observer);

#endif
