/* SPDX-License-Identifier: Apache-2.0
 *
 * Gates: asked in the order of their list, counted, and reported; and what a host adds to their rules. */
#include "tree/gate.h"

#include <string.h>

#include "base/instance.h"
#include "base/sized.h"

#define GATE_REPORT_MAX ((size_t)1 << 20)

static const rondo_gate gate_order[] = {
#define RONDO_X(name, number, text) RONDO_GATE_##name,
    RONDO_GATES(RONDO_X)
#undef RONDO_X
};
#define GATE_ORDER_COUNT (sizeof gate_order / sizeof *gate_order)

static const char *const gate_names[RONDO_GATE_COUNT] = {[RONDO_GATE_NONE] = "NONE",
#define RONDO_X(name, number, text) [number] = #name,
                                                         RONDO_GATES(RONDO_X)
#undef RONDO_X
};

static const char *const gate_texts[RONDO_GATE_COUNT] = {[RONDO_GATE_NONE] = "it may be graphed",
#define RONDO_X(name, number, text) [number] = text,
                                                         RONDO_GATES(RONDO_X)
#undef RONDO_X
};

const char *rondo_gate_name(rondo_gate gate) {
    return gate >= 0 && gate < RONDO_GATE_COUNT ? gate_names[gate] : "unknown";
}

const char *rondo_gate_text(rondo_gate gate) {
    return gate >= 0 && gate < RONDO_GATE_COUNT ? gate_texts[gate] : "unknown";
}

/* ---------------------------------------------------------------------------------------------- life, additions */

rondo_status rondo_gates_create(rondo_instance *instance, rondo_gates **out_gates) {
    if (!instance || !out_gates) return RONDO__FAIL(INVALID_ARGUMENT, TREE, "gates need an instance and a place");
    const rondo_allocator *allocator = &rondo__instance_base_of(instance)->allocator;
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(rondo_gates), &memory));
    rondo_gates *gates = memory;
    rondo__ref_init(&gates->references);
    gates->instance = instance;
    gates->allocator = *allocator;
    rondo__mutex_init(&gates->mutex);
    rondo__buffer_init(&gates->operators, allocator, sizeof(rondo__gate_added), RONDO__GATE_ADDED_MAX);
    rondo__buffer_init(&gates->own_paths, allocator, sizeof(rondo__gate_added), RONDO__GATE_ADDED_MAX);
    gates->counts = (rondo_gates_counts)RONDO_GATES_COUNTS_INIT;
    rondo_instance_retain(instance);
    *out_gates = gates;
    return RONDO_OK;
}

void rondo_gates_retain(rondo_gates *gates) {
    if (gates) rondo__ref_retain(&gates->references);
}

static void gate_drop(rondo_gates *gates, rondo__buffer *list) {
    for (size_t i = 0; i < list->count; i++) {
        rondo__gate_added *added = RONDO__BUFFER_AT(list, rondo__gate_added, i);
        rondo__string_free(&gates->allocator, added->name);
        rondo__string_free(&gates->allocator, added->why);
    }
    rondo__buffer_deinit(list);
}

void rondo_gates_release(rondo_gates *gates) {
    if (!gates || !rondo__ref_release(&gates->references)) return;
    rondo_instance *instance = gates->instance;
    const rondo_allocator allocator = gates->allocator;
    gate_drop(gates, &gates->operators);
    gate_drop(gates, &gates->own_paths);
    rondo__mutex_deinit(&gates->mutex);
    rondo__free(&allocator, gates, sizeof *gates);
    rondo_instance_release(instance);
}

const rondo__gate_added *rondo__gate_find_added(const rondo__buffer *list, const char *name) {
    for (size_t i = 0; i < list->count; i++) {
        const rondo__gate_added *added = RONDO__BUFFER_AT(list, rondo__gate_added, i);
        if (!strcmp(added->name, name)) return added;
    }
    return NULL;
}

bool rondo__gate_own_path(const rondo_gates *gates, const char *type) {
    return !strcmp(type, "cuda") || rondo__gate_find_added(&gates->own_paths, type) != NULL;
}

/* The mutex is held. */
static rondo_status gate_append(rondo_gates *gates, rondo__buffer *list, const char *name, const char *why) {
    rondo__gate_added added = {NULL, NULL};
    if (rondo__gate_find_added(list, name)) return RONDO__FAIL(ALREADY_EXISTS, TREE, "'%s' was added before", name);
    RONDO__TRY(rondo__buffer_reserve(list, list->count + 1u));
    RONDO__TRY(rondo__string_copy(&gates->allocator, name, &added.name));
    rondo_status status = rondo__string_copy(&gates->allocator, why, &added.why);
    if (!status) status = rondo__buffer_append(list, &added, 1);
    if (!status) return RONDO_OK;
    rondo__string_free(&gates->allocator, added.name);
    rondo__string_free(&gates->allocator, added.why);
    return status;
}

static rondo_status gate_add(rondo_gates *gates, bool operator_name, const char *name, const char *why) {
    if (!gates || !name || !*name)
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "%s needs gates and a name",
                           operator_name ? "rondo_gates_add_operator" : "rondo_gates_add_own_path");
    if (strlen(name) > RONDO__GATE_NAME_MAX || (why && strlen(why) > RONDO__GATE_NAME_MAX))
        return RONDO__FAIL(OUT_OF_RANGE, TREE, "'%.64s' is or has a text of more than %u bytes", name,
                           RONDO__GATE_NAME_MAX);
    if (operator_name ? rondo__gate_known_operator(name) : !strcmp(name, "cuda"))
        return RONDO__FAIL(ALREADY_EXISTS, TREE, "'%s' is in Rondo's own table", name);
    rondo__mutex_lock(&gates->mutex);
    rondo_status status = gate_append(gates, operator_name ? &gates->operators : &gates->own_paths, name, why);
    rondo__mutex_unlock(&gates->mutex);
    return status;
}

rondo_status rondo_gates_add_operator(rondo_gates *gates, const char *name, const char *why) {
    return gate_add(gates, true, name, why);
}

rondo_status rondo_gates_add_own_path(rondo_gates *gates, const char *type) {
    return gate_add(gates, false, type, NULL);
}

/* ------------------------------------------------------------------------------------------------------ asking */

static rondo_status gate_begin(rondo_gates *gates, const rondo_gate_facts *given, rondo_gate_facts *facts,
                               rondo__gate_question *question) {
    if (!gates) return RONDO__FAIL(INVALID_ARGUMENT, TREE, "asking the gates needs gates");
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_TREE, "rondo_gate_facts", given));
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_TREE, "rondo_gate_facts", given, facts, sizeof *facts));
    RONDO__TRY(rondo__gate_check_facts(facts));
    *question = (rondo__gate_question){.gates = gates, .facts = facts};
    return rondo__gate_ask_devices(question);
}

static bool gate_refuses(const rondo__gate_question *question, rondo_gate gate, rondo_gate_verdict *verdict) {
    *verdict = (rondo_gate_verdict)RONDO_GATE_VERDICT_INIT;
    if (question->facts->only && !(question->facts->only >> gate & 1u)) return false;
    if (!rondo__gate_rules[gate](question, verdict)) {
        *verdict = (rondo_gate_verdict)RONDO_GATE_VERDICT_INIT; /* what it counted on the way */
        return false;
    }
    verdict->gate = gate;
    return true;
}

static void gate_count(rondo_gates *gates, const rondo_gate_verdict *verdict) {
    rondo__mutex_lock(&gates->mutex);
    gates->counts.checks++;
    if (verdict->gate == RONDO_GATE_NONE) {
        gates->counts.passed++;
        if (verdict->flags & RONDO_GATE_VERDICT_OWN_PATH) gates->counts.own_path++;
    } else {
        gates->counts.refused[verdict->gate]++;
        memcpy(gates->last[verdict->gate], verdict->text, sizeof verdict->text);
    }
    rondo__mutex_unlock(&gates->mutex);
}

rondo_status rondo_gates_check(rondo_gates *gates, const rondo_gate_facts *given, rondo_gate_verdict *out_verdict) {
    rondo_gate_facts facts = RONDO_GATE_FACTS_INIT;
    rondo__gate_question question;
    rondo_gate_verdict verdict = RONDO_GATE_VERDICT_INIT;
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_TREE, "rondo_gate_verdict", out_verdict));
    RONDO__TRY(gate_begin(gates, given, &facts, &question));
    for (size_t i = 0; i < GATE_ORDER_COUNT; i++)
        if (gate_refuses(&question, gate_order[i], &verdict)) break;
    if (verdict.gate == RONDO_GATE_NONE && question.own_path) verdict.flags = RONDO_GATE_VERDICT_OWN_PATH;
    gate_count(gates, &verdict);
    rondo__sized_write(&verdict, sizeof verdict, out_verdict);
    if (verdict.gate == RONDO_GATE_NONE || !(facts.flags & RONDO_GATE_FLAG_STRICT)) return RONDO_OK;
    return RONDO__FAIL(UNSUPPORTED, TREE, "%s", verdict.text);
}

rondo_status rondo_gates_check_all(rondo_gates *gates, const rondo_gate_facts *given, rondo_gate_verdict *out_verdicts,
                                   uint32_t capacity, uint32_t *out_count) {
    rondo_gate_facts facts = RONDO_GATE_FACTS_INIT;
    rondo__gate_question question;
    rondo_gate_verdict verdict;
    uint32_t count = 0, size = 0;
    if (!out_count || (capacity && !out_verdicts))
        return RONDO__FAIL(INVALID_ARGUMENT, TREE,
                           "rondo_gates_check_all needs a place for the count and for %u verdicts", capacity);
    if (capacity) {
        RONDO__TRY(rondo__sized_check(RONDO_LAYER_TREE, "rondo_gate_verdict", out_verdicts));
        size = out_verdicts->struct_size;
    }
    RONDO__TRY(gate_begin(gates, given, &facts, &question));
    for (size_t i = 0; i < GATE_ORDER_COUNT; i++) {
        if (!gate_refuses(&question, gate_order[i], &verdict)) continue;
        if (count < capacity) {
            /* The caller's array, in steps of the struct that the caller knows. */
            char *out = (char *)out_verdicts + (size_t)count * size;
            memcpy(out, &size, sizeof size);
            rondo__sized_write(&verdict, sizeof verdict, out);
        }
        count++;
    }
    *out_count = count;
    return RONDO_OK;
}

rondo_status rondo_gates_check_operator(rondo_gates *gates, uint32_t flags, const rondo_gate_operator *candidate,
                                        rondo_gate_verdict *out_verdict) {
    rondo_gate_facts facts = RONDO_GATE_FACTS_INIT;
    rondo_gate_verdict verdict = RONDO_GATE_VERDICT_INIT;
    char why[RONDO_GATE_TEXT_MAX];
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_TREE, "rondo_gate_verdict", out_verdict));
    if (!gates || !candidate)
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_gates_check_operator needs gates and an operator");
    facts.flags = flags;
    facts.operators = candidate;
    facts.operator_count = 1;
    RONDO__TRY(rondo__gate_check_facts(&facts));
    if (rondo__gate_operator_refused(gates, flags, candidate, why)) {
        verdict.gate = RONDO_GATE_INCOMPATIBLE_OP;
        verdict.count = 1;
        rondo__gate_say_operator(&verdict, candidate, why);
    }
    rondo__sized_write(&verdict, sizeof verdict, out_verdict);
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------ counts */

rondo_status rondo_gates_get_counts(rondo_gates *gates, rondo_gates_counts *out_counts) {
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_TREE, "rondo_gates_counts", out_counts));
    if (!gates) return RONDO__FAIL(INVALID_ARGUMENT, TREE, "counts need gates");
    rondo__mutex_lock(&gates->mutex);
    rondo__sized_write(&gates->counts, sizeof gates->counts, out_counts);
    rondo__mutex_unlock(&gates->mutex);
    return RONDO_OK;
}

void rondo_gates_reset_counts(rondo_gates *gates) {
    if (!gates) return;
    rondo__mutex_lock(&gates->mutex);
    gates->counts = (rondo_gates_counts)RONDO_GATES_COUNTS_INIT;
    rondo__mutex_unlock(&gates->mutex);
}

static uint64_t gate_refused(const rondo_gates *gates) { return gates->counts.checks - gates->counts.passed; }

static rondo_status gate_report_json(const rondo_gates *gates, rondo__buffer *text) {
    const char *between = "";
    RONDO__TRY(rondo__text_append(text,
                                  "{\"checks\":%llu,\"passed\":%llu,\"own_path\":%llu,\"refused\":%llu,\"gates\":[",
                                  (unsigned long long)gates->counts.checks, (unsigned long long)gates->counts.passed,
                                  (unsigned long long)gates->counts.own_path, (unsigned long long)gate_refused(gates)));
    for (size_t i = 0; i < GATE_ORDER_COUNT; i++) {
        const rondo_gate gate = gate_order[i];
        if (!gates->counts.refused[gate]) continue;
        RONDO__TRY(rondo__text_append(text, "%s\n{\"gate\":\"%s\",\"number\":%d,\"count\":%llu,\"sentence\":", between,
                                      gate_names[gate], (int)gate, (unsigned long long)gates->counts.refused[gate]));
        RONDO__TRY(rondo__text_append_json(text, gate_texts[gate], strlen(gate_texts[gate])));
        RONDO__TRY(rondo__text_append(text, ",\"last\":"));
        RONDO__TRY(rondo__text_append_json(text, gates->last[gate], strlen(gates->last[gate])));
        RONDO__TRY(rondo__text_append(text, "}"));
        between = ",";
    }
    return rondo__text_append(text, "]}\n");
}

static rondo_status gate_report_text(const rondo_gates *gates, rondo__buffer *text) {
    RONDO__TRY(rondo__text_append(text, "gates: %llu asked, %llu passed (%llu by a path of their own), %llu refused\n",
                                  (unsigned long long)gates->counts.checks, (unsigned long long)gates->counts.passed,
                                  (unsigned long long)gates->counts.own_path, (unsigned long long)gate_refused(gates)));
    for (size_t i = 0; i < GATE_ORDER_COUNT; i++) {
        const rondo_gate gate = gate_order[i];
        if (!gates->counts.refused[gate]) continue;
        RONDO__TRY(rondo__text_append(text, "  %-18s %6llu  %s\n    last: %s\n", gate_names[gate],
                                      (unsigned long long)gates->counts.refused[gate], gate_texts[gate],
                                      gates->last[gate]));
    }
    return RONDO_OK;
}

rondo_status rondo_gates_report(rondo_gates *gates, bool json, rondo_memory_write write, void *user) {
    rondo__buffer text;
    int32_t refused = 0;
    if (!gates || !write) return RONDO__FAIL(INVALID_ARGUMENT, TREE, "a report needs gates and a write function");
    rondo__buffer_init(&text, &gates->allocator, 1, GATE_REPORT_MAX);
    rondo__mutex_lock(&gates->mutex);
    rondo_status status = json ? gate_report_json(gates, &text) : gate_report_text(gates, &text);
    rondo__mutex_unlock(&gates->mutex);
    if (!status) refused = write(user, rondo__text(&text), text.count);
    rondo__buffer_deinit(&text);
    if (status || !refused) return status;
    return RONDO__FAIL(IO, TREE, "the report was not written: its write function returned %d", (int)refused);
}
