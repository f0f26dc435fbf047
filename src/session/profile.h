/* SPDX-License-Identifier: Apache-2.0
 *
 * The insides of a profile: rows under part and name, rows of a plan's nodes, events for the trace. */
#ifndef RONDO_SRC_SESSION_PROFILE_H
#define RONDO_SRC_SESSION_PROFILE_H

#include <rondo/profile.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/thread.h"
#include "exec/exec.h"

typedef struct rondo__profile_row {
    rondo_profile_part part;
    uint32_t waited;
    const char *name; /* this and what follows: of the arena or of a plan */
    const char *plan, *operator_name, *shapes, *kernel_set, *variant;
    uint64_t calls, total_ns, min_ns, max_ns, kernel_ns, launch_ns, load_ns;
} rondo__profile_row;

/* A plan whose nodes have rows. It is held, so that its address stays its own. */
typedef struct rondo__profile_plan {
    rondo_plan *plan;
    uint32_t first_row; /* of step 0; the others follow */
} rondo__profile_plan;

/* Where an event is drawn: a host thread, or a stream of a device. */
typedef struct rondo__profile_lane {
    bool device;
    uint64_t id;
    char name[96];
} rondo__profile_lane;

typedef struct rondo__profile_event {
    uint64_t begin, end;
    uint32_t row, lane;
    rondo_profile_part part;
} rondo__profile_event;

struct rondo_profile {
    rondo__ref_count references;
    rondo_allocator allocator;
    rondo_instance *instance; /* retained */
    rondo_profile_options options;
    rondo__mutex mutex; /* of all that follows; taken last of all but an arena's or allocator's own */
    rondo__arena arena;
    rondo__buffer rows;   /* rondo__profile_row */
    rondo__buffer plans;  /* rondo__profile_plan */
    rondo__buffer lanes;  /* rondo__profile_lane */
    rondo__buffer events; /* rondo__profile_event */
    uint32_t *index;      /* rows that have a name of their own, by hash: row + 1 */
    uint32_t index_size;  /* a power of two, or 0 */
    uint32_t indexed;
    uint64_t begun; /* zero of the trace */
    uint64_t lost;  /* pieces of time that found no memory where nobody could be told */
    rondo_profile_info info;
};

/* Of the whole room, with the mutex held. */
RONDO_MUST_USE rondo_status rondo__profile_named(rondo_profile *profile, rondo_profile_part part, const char *name,
                                                 uint32_t *out_row);
RONDO_MUST_USE rondo_status rondo__profile_lane_of(rondo_profile *profile, const rondo_stream *stream,
                                                   uint32_t *out_lane); /* null: the calling thread's */
RONDO_MUST_USE rondo_status rondo__profile_event_add(rondo_profile *profile, uint32_t row, uint32_t lane,
                                                     rondo_profile_part part, uint64_t begin, uint64_t end);
void rondo__profile_row_add(rondo__profile_row *row, uint64_t ns);
/* Takes the mutex. */
RONDO_MUST_USE rondo_status rondo__profile_put(rondo_profile *profile, rondo_profile_part part, const char *name,
                                               uint64_t begin, uint64_t end);

/* The same where nobody can be told of a failure: it is counted, and told to who asks for the numbers. */
void rondo__profile_put_quietly(rondo_profile *profile, rondo_profile_part part, const char *name, uint64_t begin,
                                uint64_t end);
/* What writing down took: OTHER, without an event, as it is many short pieces between all others. */
void rondo__profile_put_watching(rondo_profile *profile, uint64_t ns);
/* The sentences of rondo_profile_verdict, from these numbers alone. */
size_t rondo__profile_judge(const rondo_profile_info *info, char *buffer, size_t capacity);

/* ---- a call of a session, cut into parts that follow each other */

typedef struct rondo__profile_scope {
    rondo_profile *profile; /* null: nobody watches, and nothing below does anything */
    uint64_t begin, mark;
    uint64_t watching; /* what writing down took, between the parts */
} rondo__profile_scope;

void rondo__profile_scope_begin(rondo__profile_scope *scope, rondo_profile *profile);
void rondo__profile_scope_mark(rondo__profile_scope *scope, rondo_profile_part part, const char *name);
void rondo__profile_scope_end(rondo__profile_scope *scope, const char *name);

static inline void rondo__profile_open(rondo__profile_scope *scope, rondo_profile *profile) {
    if (profile) rondo__profile_scope_begin(scope, profile);
}
/* What moved the mark wrote down its part itself, which took until now. */
static inline void rondo__profile_again(rondo__profile_scope *scope) {
    uint64_t now = rondo__now_ns();
    scope->watching += now - scope->mark;
    scope->mark = now;
}
/* All since the last mark was for this. */
static inline void rondo__profile_mark(rondo__profile_scope *scope, rondo_profile_part part, const char *name) {
    if (scope->profile) rondo__profile_scope_mark(scope, part, name);
}
/* The rest was of OTHER, and the whole was a CALL. */
static inline void rondo__profile_close(rondo__profile_scope *scope, const char *name) {
    if (scope->profile) rondo__profile_scope_end(scope, name);
}

#endif
