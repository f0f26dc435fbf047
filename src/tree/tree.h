/* SPDX-License-Identifier: Apache-2.0
 *
 * The insides of a tree, for the files of this folder.
 *
 * A function has sizes (what its inputs are like, by their words); a size has recordings: nodes. A node stands below the
 * node that ran before it when it was recorded. The nodes from a root to the current one are the path. Everything here is
 * under the tree's lock but leases, which decide for themselves. */
#ifndef RONDO_SRC_TREE_TREE_H
#define RONDO_SRC_TREE_TREE_H

#include <string.h>

#include "base/log.h"
#include "tree/lease.h"

typedef struct rondo__tree_function rondo__tree_function;
typedef struct rondo__tree_size rondo__tree_size;
typedef struct rondo__tree_node rondo__tree_node;

/* An input whose address must be what it was: static ones, and outputs of the path. */
typedef struct rondo__tree_fixed {
    uint64_t pointer;
    uint64_t storage, bytes; /* what it is a part of; bytes 0: nothing to declare */
    uint32_t index;
    uint32_t managed; /* 1: an output of the path */
} rondo__tree_fixed;

/* An input whose contents are copied, or whose address is bound. */
typedef struct rondo__tree_moving {
    uint64_t destination; /* the recorded buffer; where it is bound now */
    uint64_t bytes;
    uint32_t index;
    uint32_t slot;  /* when bound */
    bool bound;     /* bound instead of copied */
    void *metadata; /* what the host kept of the recorded buffer; null when bound */
} rondo__tree_moving;

/* A small tensor in host memory: its value is part of the recording. */
#define RONDO__TREE_VALUE_MAX 16u
typedef struct rondo__tree_value {
    uint32_t index, bytes;
    uint8_t data[RONDO__TREE_VALUE_MAX];
} rondo__tree_value;

/* How to have an input that is an output of the path again, should a recording fail or a consumed one not have died. */
typedef struct rondo__tree_revival {
    uint32_t index;
    rondo_tree_lease *lease;
    void *metadata;
} rondo__tree_revival;

struct rondo__tree_node {
    rondo__tree_function *function;
    rondo__tree_size *size;
    rondo__tree_node *parent;    /* null: a root */
    rondo__tree_node *next_same; /* of the same size after the same parent */
    rondo__tree_node *first_child, *next_sibling, *previous_sibling;
    rondo__tree_node *hot; /* the child that ran last after this */
    uint64_t id, last_used, runs;
    uint64_t statics;     /* a hash of the addresses of its static inputs */
    uint32_t depth, slot; /* slot: its place in tree->all */
    bool warmup, moved;   /* moved: recorded because an address had changed */
    bool doomed;          /* goes when it leaves the path */
    bool untracked;       /* it left memory in the pool that is none of its outputs */
    void *graph, *checkpoint;
    rondo_tree_graph_facts facts;

    rondo__lease_group *group; /* leases of its outputs, by storage */
    rondo__tree_fixed *fixed;
    rondo__tree_moving *moving;
    rondo__tree_value *values;
    rondo__tree_revival *revivals;
    uint32_t *consumed;                           /* inputs that are released before the replay: outputs of the path */
    rondo_tree_lease **dead_before, **dead_after; /* must be over before the inputs are released, and then; what the
                                                   * nodes above have seen already is left out */
    rondo_tree_output *outputs;
    rondo_tree_copy *copies; /* room for one a moving input */
    uint64_t *pointers;      /* of all inputs at the last replay; null: not asked for */
    uint32_t fixed_count, moving_count, value_count, revival_count, consumed_count;
    uint32_t dead_before_count, dead_after_count, output_count, fresh_count;
    uint64_t record_ns, host_bytes;
};

struct rondo__tree_size {
    rondo__tree_function *function;
    rondo__tree_size *next; /* in its chain of the function's table */
    uint64_t hash, seen, last_used;
    uint32_t recordings;
    bool warmed, again; /* again: its last warm-up asked for another */
    rondo_tree_reason refusal; /* why it is always called directly */
    uint64_t direct_ns, replay_ns, samples;
    uint64_t words[]; /* one an input */
};

struct rondo__tree_function {
    uint32_t id;
    rondo_tree_mode mode;
    bool removed, simple, warned_mutation, warned_size, warned_pending, warned_limit;
    bool copy_inputs; /* a graph of it could not be bound */
    uint32_t busy;    /* direct calls of it that run outside the lock */
    char *name, *skip;
    void *model;
    void (*release_model)(void *model);
    uint32_t input_count, output_count, mutated_count, owned_count, constant_count;
    bool *is_static; /* by input */
    uint32_t *mutated;
    uint32_t *owned;
    void **constants;
    rondo__tree_size **table; /* chains */
    uint32_t table_size, size_count, recorded_sizes;
    rondo__tree_size *last;
    uint32_t recordings, roots, failures;
    rondo_tree_reason stopped;
    char *why; /* the failure that stopped it */
    rondo_tree_function_info info;
    void *simple_state; /* simple.c */
};

/* A sequence of nodes that repeats; seal.c. */
typedef struct rondo__tree_seal rondo__tree_seal;

struct rondo_tree {
    rondo__ref_count references;
    rondo_allocator allocator;
    const rondo__log *log;
    rondo_instance *instance; /* retained */
    rondo_tree *next;         /* of the instance's */
    rondo_tree_options options;
    char *type;
    rondo_graph_ops ops;
    rondo_tensor_host host;
    rondo__tree_book *book;

    /* The lock: the thread inside, 0: none. Only who has to wait takes the mutex. */
    atomic_uint_least64_t owner;
    atomic_uint_least32_t waiting;
    rondo__mutex mutex;
    pthread_cond_t free;

    void *stream, *last_stream;
    rondo_pool_id pool; /* {0, 0}: none yet */
    void *keeper;       /* an empty graph that keeps the pool */
    rondo_tree_state state;
    rondo__tree_node *current;
    int64_t generation;
    atomic_uint_least64_t marks;
    uint64_t marks_seen;
    atomic_bool pending_forward;
    uint64_t runs, nodes, mark;
    uint32_t stalled; /* calls that wait for a backward in this path */
    bool warming, again;  /* a warm-up runs, and has asked for another */
    bool inputs_live; /* some input of this call is an output of the path */

    rondo__buffer functions;   /* rondo__tree_function * */
    rondo__tree_node **lookup; /* (parent, size) -> first node; open addressing */
    uint32_t lookup_size, lookup_count;
    rondo__tree_node *first_root;
    rondo__buffer all; /* rondo__tree_node *: every recording */
    rondo__tree_node *doomed;

    /* Room for one call. */
    uint64_t *pointers, *words;
    void **inputs; /* of a call that goes another way */
    uint32_t room;
    rondo__buffer blocks, pointer_list; /* rondo_tree_block; uint64_t */

    rondo__tree_seal *seal;
    rondo_tree_info info;
};

/* One call on its way. */
typedef struct rondo__tree_call {
    rondo_tree *tree;
    rondo__tree_function *function;
    rondo__tree_size *size;
    void *stream;
    void **inputs, **outputs;
    uint32_t input_count, output_count;
    rondo_tree_reason reason;                /* why no recording fits */
    const struct rondo__tree_sealed *launch; /* of a sealed call: how its graph is launched */
    void **
        held; /* inputs, or copies of them, that live until it is known which outputs lie on them: an address tells no more */
    uint32_t held_count;
} rondo__tree_call;

/* manager.c */
void rondo__tree_lock(rondo_tree *tree);
/* For calls that a call of the tree must not make: INVALID_STATE when this thread is inside. */
RONDO_MUST_USE rondo_status rondo__tree_enter(rondo_tree *tree, const char *what);
void rondo__tree_unlock(rondo_tree *tree);
uint64_t rondo__tree_now(const rondo_tree *tree);
/* The tree's pool and stream, made at their first use. */
RONDO_MUST_USE rondo_status rondo__tree_open_pool(rondo_tree *tree);
/* Leaves the pool to those who live in it, and its recordings with it. */
void rondo__tree_retire_pool(rondo_tree *tree);
rondo__tree_function *rondo__tree_function_at(const rondo_tree *tree, uint32_t id);

/* function.c */
RONDO_MUST_USE rondo_status rondo__tree_find_size(rondo__tree_call *call);
void rondo__tree_function_destroy(rondo_tree *tree, rondo__tree_function *function);
/* Destroys a removed function when nothing of it is left. */
void rondo__tree_function_unused(rondo_tree *tree, rondo__tree_function *function);
void rondo__tree_functions_unused(rondo_tree *tree); /* all of them */
/* No recording of it any more. `why` may be null. */
void rondo__tree_function_stop(rondo_tree *tree, rondo__tree_function *function, rondo_tree_reason reason,
                               const char *why);

/* node.c */
/* The first of those recorded for the size after the current node. */
rondo__tree_node *rondo__tree_candidates(const rondo_tree *tree, const rondo__tree_size *size);
RONDO_MUST_USE rondo_status rondo__tree_attach(rondo_tree *tree, rondo__tree_node *node);
/* With all below it. None of them is on the path. */
void rondo__tree_drop_node(rondo_tree *tree, rondo__tree_node *node);
/* Frees what a node has, attached or not. */
void rondo__tree_free_node(rondo_tree *tree, rondo__tree_node *node);
/* Every recording that is not on the path. */
void rondo__tree_drop_all(rondo_tree *tree);
/* Makes room for one more recording under the limits: the least recently used leaves go. False: the bytes do not fit. */
bool rondo__tree_make_room(rondo_tree *tree);
bool rondo__tree_on_path(const rondo_tree *tree, const rondo__tree_node *node);

/* path.c */
/* Of a lease of the path, asking weak hosts. */
bool rondo__tree_live_watched(rondo_tree *tree, rondo_tree_lease *lease); /* of weak hosts */
static inline bool rondo__tree_live(rondo_tree *tree, rondo_tree_lease *lease) {
    bool watched = (tree->host.flags & RONDO_TENSOR_HOST_WEAK) != 0;
    return watched ? rondo__tree_live_watched(tree, lease) : rondo__lease_live(lease);
}
/* The living lease of the path whose storage begins there; null: none. */
rondo_tree_lease *rondo__tree_find_lease(rondo_tree *tree, uint64_t storage);
/* The same by any address inside. */
rondo_tree_lease *rondo__tree_find_covering(rondo_tree *tree, uint64_t pointer);
/* Ends the path if a new step has begun or all its outputs are over. Inputs of the call that are outputs of the path keep
 * it, or are carried over. */
RONDO_MUST_USE rondo_status rondo__tree_step(rondo__tree_call *call);
/* Ends it now: living outputs are invalidated, or moved. `taker`: function whose run takes the memory. */
void rondo__tree_end_path(rondo_tree *tree, const rondo__tree_function *taker, void *stream);
/* Executing to recording: the allocator has the path's living outputs from now on. No effect in other states. */
RONDO_MUST_USE rondo_status rondo__tree_apply_checkpoint(rondo_tree *tree);
/* The same for a given node, with leases granted anew: after a failed recording. */
RONDO_MUST_USE rondo_status rondo__tree_restore(rondo_tree *tree, rondo__tree_node *node);
bool rondo__tree_all_over(rondo_tree *tree);
/* A hash of the addresses of the call's static inputs. */
uint64_t rondo__tree_statics(const rondo__tree_call *call);
/* Marks the leases that are known to be over at the end of `node`. */
void rondo__tree_mark_dead(rondo_tree *tree, const rondo__tree_node *node);
/* Whether the pool holds what the path has and these blocks, and nothing else. */
RONDO_MUST_USE rondo_status rondo__tree_check_pool(rondo_tree *tree, const uint64_t *more, uint32_t count_more,
                                                   bool *out_equal);

/* After a call that failed: what it left behind in the pool is not the tree's to keep, and the pool is left to it. */
RONDO_MUST_USE rondo_status rondo__tree_leave_rest(rondo_tree *tree);

/* outputs.c: what a warm-up or a recording made becomes the node's. `inputs`: facts of the tensors that the model was
 * given, with place NONE for those that are outputs of the path. A failure leaves the outputs to the caller. */
RONDO_MUST_USE rondo_status rondo__tree_take_outputs(rondo__tree_call *call, rondo__tree_node *node,
                                                     const rondo_tensor_facts *inputs);
/* Replaces outputs that are to be owned. A failure releases all. */
RONDO_MUST_USE rondo_status rondo__tree_own_outputs(rondo__tree_call *call);
void rondo__tree_release_all(const rondo_tree *tree, void **tensors, uint32_t count);

/* warmup.c, record.c, execute.c: they consume the inputs. */
RONDO_MUST_USE rondo_status rondo__tree_direct(rondo__tree_call *call, rondo_tree_reason reason);
/* The stream's work comes after what the tree did last on another. */
RONDO_MUST_USE rondo_status rondo__tree_order(rondo_tree *tree, void *stream);
/* HOST_INPUT, OTHER_DEVICE or NONE. *out_facts: one an input, the caller's to free. */
RONDO_MUST_USE rondo_status rondo__tree_describe(rondo__tree_call *call, rondo_tensor_facts **out_facts,
                                                 rondo_tree_reason *out_reason);
void rondo__tree_free_facts(const rondo__tree_call *call, rondo_tensor_facts *facts);
RONDO_MUST_USE rondo_status rondo__tree_warm_up(rondo__tree_call *call);
RONDO_MUST_USE rondo_status rondo__tree_record(rondo__tree_call *call);
/* What tree->pointer_list holds, as leases in memory of its own. */
RONDO_MUST_USE rondo_status rondo__tree_take_leases(rondo_tree *tree, rondo_tree_lease ***out_leases,
                                                    uint32_t *out_count);
/* After a call that left memory in the pool: the function is stopped, the pool left to it. */
void rondo__tree_leave_untracked(rondo__tree_call *call);
/* Whether the node fits the call as it is; else the reason. */
rondo_tree_reason rondo__tree_fits(const rondo__tree_call *call, const rondo__tree_node *node);
/* *out_done false: an output that the recording consumes is still in use; the inputs are as they were. */
RONDO_MUST_USE rondo_status rondo__tree_execute(rondo__tree_call *call, rondo__tree_node *node, bool *out_done);
/* Brings inputs back whose leases the node's revivals name. */
RONDO_MUST_USE rondo_status rondo__tree_revive(rondo__tree_call *call, const rondo__tree_node *node);

/* limits.c: the reason why the size is called directly now, or NONE. */
rondo_tree_reason rondo__tree_refuses(rondo__tree_call *call);
/* Of those that the re-recording limit counts. */
bool rondo__tree_moved(rondo_tree_reason reason);
void rondo__tree_sampled(rondo_tree *tree, rondo__tree_node *node, uint64_t nanoseconds);

/* seal.c */
void rondo__tree_unseal(rondo_tree *tree);

/* simple.c, report.c */
RONDO_MUST_USE rondo_status rondo__tree_simple_run(rondo__tree_call *call);
void rondo__tree_simple_drop(rondo_tree *tree, rondo__tree_function *function);
/* 1: it has its one recording. */
uint32_t rondo__tree_simple_recorded(const rondo__tree_function *function);

/* Of a function without inputs there is nothing to compare, and perhaps no memory. */
static inline bool rondo__tree_same(const uint64_t *a, const uint64_t *b, size_t bytes) {
    return !bytes || memcmp(a, b, bytes) == 0;
}

static inline void rondo__tree_count(rondo__tree_function *function, rondo_tree_reason reason) {
    function->info.reasons[reason]++;
}

#endif
