/* SPDX-License-Identifier: Apache-2.0
 *
 * Gates, inside: one function a gate, and the table of operators that cannot be captured. */
#ifndef RONDO_SRC_TREE_GATE_H
#define RONDO_SRC_TREE_GATE_H

#include <rondo/gate.h>

#include "base/buffer.h"
#include "base/thread.h"

#define RONDO__GATE_NAME_MAX 255u
#define RONDO__GATE_ADDED_MAX 4096u
#define RONDO__GATE_DEVICES_MAX 64u

/* What a host added: operators, types with a path of their own. */
typedef struct rondo__gate_added {
    char *name;
    char *why; /* may be null */
} rondo__gate_added;

struct rondo_gates {
    rondo__ref_count references;
    rondo_instance *instance;
    rondo_allocator allocator;
    rondo__mutex mutex;                 /* guards all below; nothing of the host's is called under it */
    rondo__buffer operators, own_paths; /* rondo__gate_added */
    rondo_gates_counts counts;
    char last[RONDO_GATE_COUNT][RONDO_GATE_TEXT_MAX]; /* text of the last refusal */
};

/* One question: facts that were checked, and what was found out about the devices before any gate is asked. */
typedef struct rondo__gate_question {
    rondo_gates *gates;
    const rondo_gate_facts *facts;
    const rondo_gate_device *devices[RONDO__GATE_DEVICES_MAX]; /* distinct, without those that do not matter */
    uint32_t device_count;
    uint32_t host;        /* index + 1 of the device that is the host; 0: none, or it does not matter */
    uint32_t own_path;    /* 1: the one device keeps its own path */
    bool capable, cached; /* of the devices: the first's, all's */
    uint32_t uncached;    /* index of the first that is not cached */
} rondo__gate_question;

/* True: it refuses, and has filled index, count and text. */
typedef bool (*rondo__gate_refuses)(const rondo__gate_question *question, rondo_gate_verdict *verdict);
extern const rondo__gate_refuses rondo__gate_rules[RONDO_GATE_COUNT]; /* [NONE] is null */

/* Arrays, names, flags. */
RONDO_MUST_USE rondo_status rondo__gate_check_facts(const rondo_gate_facts *facts);
/* Asks the devices; called without the mutex. */
RONDO_MUST_USE rondo_status rondo__gate_ask_devices(rondo__gate_question *question);

/* Why the operator cannot be captured, written at `why` (RONDO_GATE_TEXT_MAX bytes), or false. Locks. */
bool rondo__gate_operator_refused(rondo_gates *gates, uint32_t flags, const rondo_gate_operator *candidate, char *why);
/* The verdict's text for it. */
void rondo__gate_say_operator(rondo_gate_verdict *verdict, const rondo_gate_operator *candidate, const char *why);
/* Adds to the verdict's text, escaped and cut. */
void rondo__gate_say(rondo_gate_verdict *verdict, const char *format, ...) RONDO_PRINTF(2, 3);
void rondo__gate_say_name(rondo_gate_verdict *verdict, const char *name, size_t most);
void rondo__gate_say_trace(rondo_gate_verdict *verdict, const char *trace);
/* Whether the type has a path of its own. The mutex is held, as for find. */
bool rondo__gate_own_path(const rondo_gates *gates, const char *type);
const rondo__gate_added *rondo__gate_find_added(const rondo__buffer *list, const char *name);
/* A rule's name and an operator's: the rule may leave the overload open, the operator's then is "default". */
bool rondo__gate_same_operator(const char *rule, const char *name);
bool rondo__gate_known_operator(const char *name); /* in Rondo's own table, by that very name */

#endif
