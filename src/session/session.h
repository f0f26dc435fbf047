/* SPDX-License-Identifier: Apache-2.0
 *
 * The insides of a session, for the files of this room. */
#ifndef RONDO_SRC_SESSION_SESSION_H
#define RONDO_SRC_SESSION_SESSION_H

#include "base/buffer.h"
#include "base/thread.h"
#include "device/device.h"
#include "ir/ir.h"
#include "plan/plan.h"

#define RONDO__SESSION_SPECIALISATIONS_DEFAULT 8u
/* Values of inputs larger than this never reach a guard. */
#define RONDO__SESSION_VALUE_MAX 1024u

/* Device memory of an input or an output, which stays where it is so that a capture can be replayed. */
typedef struct rondo__session_port {
    void *device; /* null: nothing uses it */
    void *host;   /* of an output that the caller has no memory for; made when first asked for */
} rondo__session_port;

/* A plan for some sizes and values, ready to run. */
typedef struct rondo__specialisation {
    rondo_plan *plan;
    rondo_executable *executable;
    rondo_context *context;
    rondo_graph *graph;         /* null until it was captured */
    rondo__session_port *ports; /* inputs, then outputs */
    uint64_t runs;
    uint64_t used; /* the session's clock at the last run */
} rondo__specialisation;

typedef struct rondo__session_graph {
    uint32_t id;
    rondo_ir_graph *graph;         /* retained */
    rondo__buffer specialisations; /* rondo__specialisation * */
    rondo_session_info info;
} rondo__session_graph;

struct rondo_session {
    rondo__ref_count references;
    rondo_allocator allocator;
    rondo_device *device; /* retained */
    rondo_stream *stream; /* of its own: the default one may refuse captures */
    rondo_session_options options;
    rondo__kernel_set folder;
    char target[256];     /* the device's catalogues, best first */
    rondo__buffer graphs; /* rondo__session_graph * */
    uint64_t clock;
};

/* NOT_FOUND. */
rondo_status rondo__session_find(const rondo_session *session, uint32_t id, rondo__session_graph **out_graph);

/* Host data of an input as compact bytes: the view's own, or a copy in `owned` of `bytes` bytes. */
typedef struct rondo__session_tensor {
    const void *data;
    void *owned;
    size_t bytes;
} rondo__session_tensor;
rondo_status rondo__session_compact(const rondo_session *session, const rondo_tensor_view *view,
                                    rondo__session_tensor *out_tensor);
void rondo__session_compact_free(const rondo_session *session, rondo__session_tensor *tensor);
bool rondo__session_is_compact(const rondo_tensor_view *view);

/* Compiles for these inputs and prepares all that a run needs. Counts into the graph's info. */
rondo_status rondo__specialisation_create(rondo_session *session, rondo__session_graph *graph,
                                          const rondo_tensor_view *inputs, const rondo__session_tensor *tensors,
                                          rondo__specialisation **out);
void rondo__specialisation_destroy(rondo_session *session, rondo__specialisation *specialisation);
/* Whether it was made for these sizes and guarded values. */
bool rondo__specialisation_fits(const rondo__specialisation *specialisation, const rondo_tensor_view *inputs,
                                const rondo__session_tensor *tensors);

#endif
