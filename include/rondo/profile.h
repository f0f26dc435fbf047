/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles: what the time of runs went into, by node and in total.
 *
 *     rondo_profile *profile;
 *     status = rondo_profile_create(instance, NULL, &profile);
 *     status = rondo_session_set_profile(session, profile);   its runs are watched from now on
 *     ... rondo_session_run(session, ...) ...
 *     status = rondo_profile_write(profile, RONDO_PROFILE_TEXT, write, user);
 *
 * A profile is rows. A row is a node of a plan, or one name of a part of the time: the copies of input 'x', the compiling of
 * graph 'g', whole calls. The parts of a call follow each other without gaps, so that they add up to it; kernels that run
 * beside the host's own work are counted where the host waits for them, and `overlapped_ns` says how much it did not
 * wait for. docs/profile.md has how each is measured, and what measuring costs.
 *
 * The rules of runtime.h hold here, too. Thread-safe: any number of threads and sessions may fill one profile. Strings of rows
 * are the profile's, valid until its release.
 */
#ifndef RONDO_PROFILE_H
#define RONDO_PROFILE_H

#include <rondo/compiler.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_profile rondo_profile;

typedef struct rondo_profile_options {
    uint32_t struct_size;
    uint32_t as_is;      /* 1: sessions replay what they captured; 0: they run step by step, so that nodes have times */
    uint64_t events_max; /* kept for the trace; those that come later are counted in rows alone; 0: 1,048,576 */
} rondo_profile_options;
#define RONDO_PROFILE_OPTIONS_INIT \
    { sizeof(rondo_profile_options), 0, 0 }

/* Holds the instance. options may be null. */
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_create(rondo_instance *instance,
                                                           const rondo_profile_options *options,
                                                           rondo_profile **out_profile);
RONDO_API void rondo_profile_retain(rondo_profile *profile);
RONDO_API void rondo_profile_release(rondo_profile *profile);

/* ------------------------------------------------------------------------------------------------- filling it */

/* What a piece of time went into. */
typedef int32_t rondo_profile_part;
enum {
    RONDO_PROFILE_CALL = 0,    /* a whole call: the wall time, of which the others are parts */
    RONDO_PROFILE_IMPORT = 1,  /* reading a model */
    RONDO_PROFILE_COMPILE = 2, /* from graph to plan */
    RONDO_PROFILE_LOAD = 3,    /* kernels prepared, weights packed and copied, memory taken */
    RONDO_PROFILE_CAPTURE = 4,
    RONDO_PROFILE_COPY_IN = 5,
    RONDO_PROFILE_COPY_OUT = 6,
    RONDO_PROFILE_LAUNCH = 7,  /* the host's time for enqueuing */
    RONDO_PROFILE_KERNEL = 8,  /* kernels, as far as the host ran them itself or waited for them */
    RONDO_PROFILE_WAIT = 9,    /* the host waited, and no kernel that can be timed ran */
    RONDO_PROFILE_REPLAY = 10, /* of a captured graph, kernels included, waited for */
    RONDO_PROFILE_EAGER = 11,  /* the same calls one by one, unwatched, kernels included, waited for */
    RONDO_PROFILE_OTHER = 12,  /* looking for a specialisation, checks, what the program says */
    RONDO_PROFILE_PASS = 13,   /* a pass of the compiler: within COMPILE, and in no sum */
    RONDO_PROFILE_PARTS = 14
};
/* "call", "import", "compile", "load", "capture", "copy in", "copy out", "launch", "kernel", "wait", "replay", "eager", "other",
 * "pass"; null for other numbers. */
RONDO_API const char *rondo_profile_part_name(rondo_profile_part part);

/* The clock of profiles: nanoseconds, monotonic. */
RONDO_API uint64_t rondo_profile_now(void);
/* A piece of time that the program measured itself: it goes into row (part, name), which is made when it is new. LAUNCH, KERNEL
 * and WAIT are rondo_profile_run's, INVALID_ARGUMENT here; so is an end before its beginning. */
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_add(rondo_profile *profile, rondo_profile_part part,
                                                        const char *name, uint64_t begin_ns, uint64_t end_ns);
/* One run of the context step by step, each step timed, and waited for: rondo_context_run_eager and
 * rondo_stream_synchronize, with their failures. The times are LAUNCH, KERNEL, WAIT and the plan's nodes'. They begin at
 * *mark, where the part before ended, and *mark is moved to where they end; null: they begin now.
 * INVALID_STATE (capture): the stream captures. */
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_run(rondo_profile *profile, rondo_context *context,
                                                        rondo_stream *stream, uint64_t *mark);
/* The same unwatched, as one piece of EAGER. */
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_run_eager(rondo_profile *profile, rondo_context *context,
                                                              rondo_stream *stream, uint64_t *mark);
/* One replay of any captured graph, waited for, as one piece of REPLAY. Codes of rondo_graph_replay and the stream's. */
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_replay(rondo_profile *profile, rondo_graph *graph,
                                                           rondo_stream *stream, uint64_t *mark);
/* The calls of this session go into the profile from now on, which it holds; null: no longer. Runs on streams are waited
 * for meanwhile, but for those that a capture records, which are not watched. Legal in every state of a session. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_set_profile(rondo_session *session, rondo_profile *profile);

/* ------------------------------------------------------------------------------------------------ looking at it */

typedef struct rondo_profile_info {
    uint32_t struct_size;
    uint32_t rows;
    uint64_t runs, replays, eager_runs; /* watched runs, and pieces of REPLAY and of EAGER */
    uint64_t events, events_lost;       /* of the trace */
    uint64_t ns[RONDO_PROFILE_PARTS];   /* totals; [CALL] is the wall time, PASS lies within COMPILE */
    uint64_t parts_ns;                  /* all that is neither CALL nor PASS: what adds up to the wall time */
    uint64_t device_ns;                 /* all kernels of nodes, waited for or not */
    uint64_t overlapped_ns;             /* kernels that ran while the host did something else */
    uint64_t clock_ns;                  /* one reading of the clock */
    uint64_t clock_readings;            /* in watched runs: two a launch, two a kernel that the host runs */
} rondo_profile_info;
#define RONDO_PROFILE_INFO_INIT \
    { sizeof(rondo_profile_info), 0, 0, 0, 0, 0, 0, {0}, 0, 0, 0, 0, 0 }
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_get_info(rondo_profile *profile, rondo_profile_info *out_info);

typedef struct rondo_profile_row {
    uint32_t struct_size;
    rondo_profile_part part; /* KERNEL for nodes */
    const char *name;        /* of the node, the tensor, the graph, ... */
    const char *plan;        /* of nodes, as all that follows; else null */
    const char *operator_name;
    const char *shapes;     /* "float32[1,576], float32[64,576] -> float32[1,64]" */
    const char *kernel_set; /* "cpu x86-64-v4": the catalogue and its kernel set */
    const char *variant;    /* which kernel the catalogue picked */
    uint64_t calls;
    uint64_t total_ns;         /* of nodes kernel and launch */
    uint64_t min_ns, max_ns;   /* of one call */
    uint64_t kernel_ns;        /* of nodes */
    uint64_t launch_ns;        /* of nodes */
    uint64_t load_ns;          /* of nodes: weights packed and kernel prepared, once */
    uint32_t kernel_is_waited; /* 1: the device has no kernels of the host's: kernel_ns is waiting behind each launch */
    uint32_t reserved;
} rondo_profile_row;
#define RONDO_PROFILE_ROW_INIT \
    { sizeof(rondo_profile_row), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* In the order in which they came; rows never go. OUT_OF_RANGE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_get_row(rondo_profile *profile, uint32_t index,
                                                            rondo_profile_row *out_row);
/* One or two sentences: whether capturing helps, by what was measured, and what the time goes into where it does not.
 * Bounded to `capacity`, always terminated; the length that it would have. */
RONDO_API size_t rondo_profile_verdict(rondo_profile *profile, char *buffer, size_t capacity);

typedef int32_t rondo_profile_format;
enum {
    RONDO_PROFILE_TEXT = 0, /* a table of parts and one of rows, the largest first, and the verdict */
    RONDO_PROFILE_JSON = 1, /* info and all rows */
    RONDO_PROFILE_TRACE = 2 /* Chrome's trace events: a lane a host thread, a lane a stream of the device */
};
/* The whole is made before the first piece is handed out. IO: `write` returned nonzero. */
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_write(rondo_profile *profile, rondo_profile_format format,
                                                          rondo_write_function write, void *user);

RONDO_EXTERN_C_END

#endif
