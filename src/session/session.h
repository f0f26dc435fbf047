/* SPDX-License-Identifier: Apache-2.0
 *
 * The insides of a session, for the files of this room. */
#ifndef RONDO_SRC_SESSION_SESSION_H
#define RONDO_SRC_SESSION_SESSION_H

#include <rondo/value.h>

#include "base/buffer.h"
#include "base/thread.h"
#include "compile/compile.h"
#include "device/device.h"
#include "exec/exec.h"
#include "exec/weights.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "session/profile.h"

#define RONDO__SESSION_SPECIALISATIONS_DEFAULT 8u
/* Values of inputs larger than this never reach a guard. */
#define RONDO__SESSION_VALUE_MAX 1024u

/* Device memory of an input or an output, which stays where it is so that a capture can be replayed. */
typedef struct rondo__session_port {
    void *device; /* null: nothing uses it */
    void *host;   /* of an output that the caller has no memory for; made when first asked for */
} rondo__session_port;

/* A context for runs on memory of the caller's. */
typedef struct rondo__session_lane {
    rondo_context *context;
    uint64_t stream; /* id of the one that its last run went to */
    uint64_t used;
    bool captured; /* a capture of the caller's has its addresses: it is never bound again */
} rondo__session_lane;

/* A plan for some sizes and values, ready to run. */
typedef struct rondo__region rondo__region; /* region.h */
typedef struct rondo__specialisation {
    rondo_plan *plan; /* null: all of it runs between plans */
    rondo_executable *executable;
    rondo_context *context;     /* of runs on host tensors; this and what follows is made by the first of them */
    rondo_graph *graph;         /* null until it was captured */
    rondo__session_port *ports; /* inputs, then outputs */
    rondo__region *region;      /* what runs between plans; null: nothing */
    rondo_tensor_view *inputs;  /* that it was made for, where the plan does not say it: data is null */
    uint32_t input_count;
    size_t input_bytes;  /* of them and their shapes */
    rondo__buffer lanes; /* rondo__session_lane: runs on streams of the caller's */
    uint64_t runs;
    uint64_t used; /* the session's clock at the last run */
} rondo__specialisation;

typedef struct rondo__buckets rondo__buckets; /* bucket.c */

typedef struct rondo__session_graph {
    uint32_t id;
    rondo_ir_graph *graph;         /* retained */
    rondo__buffer specialisations; /* rondo__specialisation * */
    rondo__buckets *buckets;       /* null: none */
    rondo_session_info info;
    bool internal;      /* a rest or a body: types come with each run */
    rondo_value **lent; /* outputs of the last run that had no plan of their own; an entry an output */
} rondo__session_graph;

struct rondo_session {
    rondo__ref_count references;
    rondo_allocator allocator;
    rondo__mutex mutex;   /* held by each call from its beginning to its end */
    rondo_device *device; /* retained */
    rondo_stream *stream; /* of its own: the default one may refuse captures */
    rondo_session_options options;
    rondo__kernel_set folder;
    char target[256];     /* the device's catalogues, best first */
    rondo__buffer graphs; /* rondo__session_graph * */
    rondo__buffer kept; /* rondo__specialisation *: of no graph any more, but a capture of the caller's mentions them */
    size_t kept_max;    /* captures so far: kept has room for that many */
    uint64_t clock;
    rondo_profile *profile;     /* retained; null: nobody watches */
    rondo__weights *weights;    /* what its executables share */
    rondo__profile_scope scope; /* of the call in progress */
    uint32_t depth; /* regions inside each other that run now */
};

/* All of these want the mutex held. NOT_FOUND. */
rondo_status rondo__session_find(const rondo_session *session, uint32_t id, rondo__session_graph **out_graph);

/* Host data of an input as compact bytes: the view's own, or a copy in `owned` of `bytes` bytes. */
typedef struct rondo__session_tensor {
    const void *data;
    void *owned;
    size_t bytes;
} rondo__session_tensor;
rondo_status rondo__session_compact(const rondo_session *session, const rondo_tensor_view *view,
                                    rondo__session_tensor *out_tensor);
/* The elements of a host tensor, which may have strides, in order; `bytes` of them. */
rondo_status rondo__session_gather(const rondo_tensor_view *view, void *to, size_t bytes);
void rondo__session_compact_free(const rondo_session *session, rondo__session_tensor *tensor);
bool rondo__session_is_compact(const rondo_tensor_view *view);

/* Compiles for these inputs and loads the weights. Counts into the graph's info. A tensor without data that has bytes is
 * one whose value nobody knows; a view of type UNDEFINED is a sequence or an optional. With `cuts`, what depends on data is
 * left to a region. */
rondo_status rondo__specialisation_create(rondo_session *session, rondo__session_graph *graph,
                                          const rondo_tensor_view *inputs, const rondo__session_tensor *tensors,
                                          bool cuts, rondo__specialisation **out);
/* Context and device memory for runs on host tensors, once. */
rondo_status rondo__specialisation_prepare(rondo_session *session, rondo__specialisation *specialisation);
/* Waits for its runs in flight. */
void rondo__specialisation_destroy(rondo_session *session, rondo__specialisation *specialisation);
/* Takes it from its graph: destroyed, or kept for the captures that mention it. */
void rondo__specialisation_retire(rondo_session *session, rondo__specialisation *specialisation);
/* The graph as folding alone leaves it, and its plan, whose guards say for which values; nothing is counted. */
rondo_status rondo__session_compile_plain(rondo_session *session, rondo__session_graph *graph,
                                          const rondo_tensor_view *inputs, const rondo__session_tensor *tensors,
                                          rondo_ir_graph **out_graph, rondo_plan **out_plan);
bool rondo__session_plan_fits(const rondo_plan *plan, const rondo_tensor_view *inputs,
                              const rondo__session_tensor *tensors);
/* Whether it was made for these sizes and guarded values. */
bool rondo__specialisation_fits(const rondo__specialisation *specialisation, const rondo_tensor_view *inputs,
                                const rondo__session_tensor *tensors);

/* ---- the compile cache's, of compile_api.c and file_api.c */

/* Targets, and the letters that they point to. */
typedef struct rondo__session_targets {
    rondo__targets targets;
    char memory[4096];
} rondo__session_targets;
/* What rondo_compile makes of its options: those that are known, and the targets with the instance's own catalogue. */
rondo_status rondo__compile_target(rondo_instance *instance, const rondo_compile_options *options,
                                   rondo_compile_options *out_known, rondo__session_targets *out_targets);
/* rondo_plan_write, with a key in the file. */
rondo_status rondo__plan_write_keyed(rondo_instance *instance, const rondo_plan *plan, const uint64_t key[2],
                                     const char *path);

/* ---- bucket.c */

void rondo__buckets_destroy(rondo_session *session, rondo__buckets *buckets);
/* A run on host tensors, filled up where a bucket is larger. */
rondo_status rondo__buckets_run(rondo_session *session, rondo__session_graph *graph, const rondo_tensor_view *inputs,
                                const rondo__session_tensor *tensors, rondo_tensor_view *outputs);

/* ---- run.c, for every way to run */

/* A run on host tensors as they are. */
rondo_status rondo__session_run_exact(rondo_session *session, rondo__session_graph *graph,
                                      const rondo_tensor_view *inputs, const rondo__session_tensor *tensors,
                                      rondo_tensor_view *outputs);

/* Of one tensor: dtype, rank, fixed sizes. */
rondo_status rondo__session_check_input(const rondo_ir_graph *graph, uint32_t index, const rondo_tensor_view *view);
/* Counts, dtypes, ranks and fixed sizes. */
rondo_status rondo__session_check_inputs(const rondo__session_graph *graph, const rondo_tensor_view *inputs,
                                         uint32_t input_count, uint32_t output_count);
/* With data, an output must be of the port's type and shape, and compact. */
rondo_status rondo__session_check_output(const rondo__plan_port *port, const rondo_tensor_view *view);
/* The one that fits, or null. */
rondo__specialisation *rondo__session_fitting(const rondo__session_graph *graph, const rondo_tensor_view *inputs,
                                              const rondo__session_tensor *tensors);
/* The one that fits, or a new one (`cuts` as above), for which the oldest may have to go. */
rondo_status rondo__session_specialise(rondo_session *session, rondo__session_graph *graph,
                                       const rondo_tensor_view *inputs, const rondo__session_tensor *tensors, bool cuts,
                                       rondo__specialisation **out);
/* A run of a plan on compact tensors. Outputs with data are written, others lent. */
rondo_status rondo__session_specialised(rondo_session *session, rondo__session_graph *graph, rondo__specialisation *s,
                                        const rondo__session_tensor *tensors, rondo_tensor_view *outputs);
void rondo__session_graph_destroy(rondo_session *session, rondo__session_graph *graph);

/* ---- region.c */

/* Takes the cut, also where it fails. */
rondo_status rondo__region_create(rondo_session *session, rondo__compile_cut *cut, rondo__region **out_region);
void rondo__region_destroy(rondo_session *session, rondo__region *region);
/* A run of a specialisation that has a region, or of any; writes an output for each of the graph's. */
rondo_status rondo__region_specialised(rondo_session *session, rondo__session_graph *graph, rondo__specialisation *s,
                                       rondo_value *const *inputs, rondo_value **outputs);
/* ---- run_values.c */

/* A run on host tensors of a graph that has a region. */
rondo_status rondo__session_run_region(rondo_session *session, rondo__session_graph *graph, rondo__specialisation *s,
                                       const rondo_tensor_view *inputs, const rondo__session_tensor *tensors,
                                       rondo_tensor_view *outputs);
/* What the last run lent. */
void rondo__session_forget_lent(const rondo_session *session, rondo__session_graph *graph);

/* ---- region.c */

/* Adds what the graphs inside of its specialisations count. */
void rondo__region_add_info(const rondo__session_graph *graph, rondo_session_info *info);
/* Why it cannot be enqueued: UNSUPPORTED, naming the node. */
rondo_status rondo__region_refuse(const rondo__session_graph *graph, const rondo__specialisation *s, rondo_layer layer);

#endif
