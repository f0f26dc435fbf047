/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that cannot be captured: by name and by tag, as data, and what a host added to it. A name is a library, a
 * name and an overload, whichever way a framework joins them. */
#include <string.h>

#include "tree/gate.h"

#define OPERATORS_TEXT 97u /* bytes of a verdict that are for one name */

typedef struct operators_rule {
    const char *name, *why;
    bool deterministic; /* only where results must not depend on the order of threads */
} operators_rule;

static const char operators_random[] = "it saves and sets the state of a random generator";
static const char operators_waits[] = "the host waits for a value of the device";
static const char operators_shape[] = "the shape of its result depends on data";
static const char operators_observer[] = "it updates statistics of quantisation on the host";
static const char operators_sorted[] = "its deterministic form sorts, and asks the device how much there is";

static const operators_rule operators_rules[] = {
    {"run_and_save_rng_state", operators_random, false},
    {"run_with_rng_state", operators_random, false},
    {"aten::_local_scalar_dense", operators_waits, false},
    {"aten::_assert_scalar", operators_waits, false},
    {"aten::item", operators_waits, false},
    {"aten::nonzero", operators_shape, false},
    {"aten::masked_select", operators_shape, false},
    {"aten::_linalg_eigh", "its driver decides on the host how to go on", false},
    {"aten::_fused_moving_avg_obs_fq_helper", operators_observer, false},
    {"aten::_fused_moving_avg_obs_fq_helper_functional", operators_observer, false},
    {"fbgemm::dense_to_jagged", operators_shape, false},
    {"fbgemm::jagged_to_padded_dense", operators_shape, false},
    {"aten::index_put", operators_sorted, true},
    {"aten::index_put_", operators_sorted, true},
    {"aten::_unsafe_index_put", operators_sorted, true},
    {"aten::_unsafe_masked_index_put_accumulate", operators_sorted, true},
    {"aten::scatter.src", operators_sorted, true},
    {"aten::scatter.reduce", operators_sorted, true},
    {"aten::scatter.value_reduce", operators_sorted, true},
    {"aten::scatter_add", operators_sorted, true},
    {"aten::scatter_add_", operators_sorted, true},
    {"aten::scatter_reduce.two", operators_sorted, true},
    {"aten::scatter_reduce.two_out", operators_sorted, true},
    {"aten::scatter_reduce_.two", operators_sorted, true},
};

static const char *const operators_tags[] = {
#define RONDO_X(name, bit, text) [bit] = text,
    RONDO_GATE_TAGS(RONDO_X)
#undef RONDO_X
};

typedef struct operators_part {
    const char *text;
    size_t length;
} operators_part;
enum { OPERATORS_LIBRARY = 0, OPERATORS_NAME = 1, OPERATORS_OVERLOAD = 2, OPERATORS_PARTS = 3 };

static bool operators_part_equal(operators_part a, operators_part b) {
    return a.length == b.length && (!a.length || memcmp(a.text, b.text, a.length) == 0);
}

/* "library::name.overload" or "library.name.overload"; a name alone has neither. */
static void operators_split(const char *text, operators_part parts[OPERATORS_PARTS]) {
    const char *colons = strstr(text, "::");
    const char *rest = text;
    memset(parts, 0, OPERATORS_PARTS * sizeof *parts);
    if (colons) {
        parts[OPERATORS_LIBRARY] = (operators_part){text, (size_t)(colons - text)};
        rest = colons + 2;
    } else {
        const char *dot = strchr(text, '.');
        if (dot) {
            parts[OPERATORS_LIBRARY] = (operators_part){text, (size_t)(dot - text)};
            rest = dot + 1;
        }
    }
    const char *end = strchr(rest, '.');
    parts[OPERATORS_NAME] = (operators_part){rest, end ? (size_t)(end - rest) : strlen(rest)};
    if (end) parts[OPERATORS_OVERLOAD] = (operators_part){end + 1, strlen(end + 1)};
}

bool rondo__gate_same_operator(const char *rule, const char *name) {
    static const operators_part usual = {"default", sizeof "default" - 1u};
    operators_part wanted[OPERATORS_PARTS], got[OPERATORS_PARTS];
    operators_split(rule, wanted);
    operators_split(name, got);
    if (!operators_part_equal(wanted[OPERATORS_LIBRARY], got[OPERATORS_LIBRARY]) ||
        !operators_part_equal(wanted[OPERATORS_NAME], got[OPERATORS_NAME]))
        return false;
    if (!wanted[OPERATORS_OVERLOAD].length) return true;
    return operators_part_equal(wanted[OPERATORS_OVERLOAD],
                                got[OPERATORS_OVERLOAD].length ? got[OPERATORS_OVERLOAD] : usual);
}

bool rondo__gate_known_operator(const char *name) {
    for (size_t i = 0; i < sizeof operators_rules / sizeof *operators_rules; i++)
        if (!operators_rules[i].deterministic && !strcmp(operators_rules[i].name, name)) return true;
    return false;
}

/* Rondo's own table; null: it may. */
static const char *operators_why(uint32_t flags, const rondo_gate_operator *candidate) {
    for (size_t i = 0; i < sizeof operators_tags / sizeof *operators_tags; i++)
        if ((candidate->tags & (1u << i)) != 0) return operators_tags[i];
    for (size_t i = 0; i < sizeof operators_rules / sizeof *operators_rules; i++) {
        const operators_rule *rule = &operators_rules[i];
        if (rule->deterministic && !(flags & RONDO_GATE_FLAG_DETERMINISTIC)) continue;
        if (rondo__gate_same_operator(rule->name, candidate->name)) return rule->why;
    }
    return NULL;
}

static void operators_put(char *out, const char *text) {
    size_t length = strlen(text);
    if (length >= RONDO_GATE_TEXT_MAX) length = RONDO_GATE_TEXT_MAX - 1u;
    memcpy(out, text, length);
    out[length] = '\0';
}

bool rondo__gate_operator_refused(rondo_gates *gates, uint32_t flags, const rondo_gate_operator *candidate, char *why) {
    const char *own = operators_why(flags, candidate);
    if (own) {
        operators_put(why, own);
        return true;
    }
    bool refused = false;
    rondo__mutex_lock(&gates->mutex);
    for (size_t i = 0; i < gates->operators.count && !refused; i++) {
        const rondo__gate_added *added = RONDO__BUFFER_AT(&gates->operators, rondo__gate_added, i);
        if (!rondo__gate_same_operator(added->name, candidate->name)) continue;
        operators_put(why, added->why ? added->why : "the host named it");
        refused = true;
    }
    rondo__mutex_unlock(&gates->mutex);
    return refused;
}

void rondo__gate_say_operator(rondo_gate_verdict *verdict, const rondo_gate_operator *candidate, const char *why) {
    rondo__gate_say(verdict, "incompatible op ");
    rondo__gate_say_name(verdict, candidate->name, OPERATORS_TEXT);
    if (candidate->node && *candidate->node && strcmp(candidate->node, candidate->name) != 0) {
        rondo__gate_say(verdict, " (node ");
        rondo__gate_say_name(verdict, candidate->node, OPERATORS_TEXT);
        rondo__gate_say(verdict, ")");
    }
    rondo__gate_say(verdict, ": ");
    rondo__gate_say_name(verdict, why, OPERATORS_TEXT);
    rondo__gate_say_trace(verdict, candidate->trace);
}
