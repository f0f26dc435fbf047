/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract check: draws nodes of an operator, judges each, and makes the first disagreement small enough to read. */
#include "ops/operators_check.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/sized.h"

#define CHECK_ROUNDS_DEFAULT 1000u
#define CHECK_ROUNDS_MAX 10000000u
#define CHECK_TRIES 2000u
#define CHECK_SIGNATURES 64u

/* -------------------------------------------------------------------------------------------------------- in words */

static void contract_put_text(char *buffer, size_t capacity, size_t *used, const char *text) {
    int length = *used < capacity ? snprintf(buffer + *used, capacity - *used, "%s", text) : 0;
    *used += length > 0 ? (size_t)length : 0;
}

static void contract_attribute_text(const rondo_attribute *a, char *buffer, size_t capacity) {
    char item[64];
    size_t used = 0;
    buffer[0] = 0;
    bool list =
        a->kind == RONDO_ATTRIBUTE_INTS || a->kind == RONDO_ATTRIBUTE_FLOATS || a->kind == RONDO_ATTRIBUTE_STRINGS;
    if (list) contract_put_text(buffer, capacity, &used, "[");
    for (uint32_t i = 0; i < (list ? a->count : 1u); i++) {
        switch (a->kind) {
        case RONDO_ATTRIBUTE_INT: (void)snprintf(item, sizeof item, "%lld", (long long)a->value.i); break;
        case RONDO_ATTRIBUTE_FLOAT: (void)snprintf(item, sizeof item, "%g", (double)a->value.f); break;
        case RONDO_ATTRIBUTE_STRING: (void)snprintf(item, sizeof item, "\"%.40s\"", a->value.s.data); break;
        case RONDO_ATTRIBUTE_INTS: (void)snprintf(item, sizeof item, "%lld", (long long)a->value.ints[i]); break;
        case RONDO_ATTRIBUTE_FLOATS: (void)snprintf(item, sizeof item, "%g", (double)a->value.floats[i]); break;
        case RONDO_ATTRIBUTE_STRINGS: (void)snprintf(item, sizeof item, "\"%.40s\"", a->value.strings[i].data); break;
        default:
            (void)snprintf(item, sizeof item, "int64[1] of %lld", (long long)*(const int64_t *)a->value.tensor->data);
        }
        if (i) contract_put_text(buffer, capacity, &used, ",");
        contract_put_text(buffer, capacity, &used, item);
    }
    if (list) contract_put_text(buffer, capacity, &used, "]");
}

rondo_status rondo__check_describe(rondo_status status, const rondo__check_case *c) {
    const rondo__ops_prototype *p = c->prototype;
    for (uint32_t i = 0; i < c->input_count; i++) {
        const rondo_operand *input = &c->inputs[i];
        const char *name = p->inputs[i < p->input_count ? i : p->input_count - 1u].name;
        char text[256], values[128] = "";
        size_t used = 0;
        if (input->dtype == RONDO_DTYPE_UNDEFINED) {
            status = rondo__status_note(status, "input %u '%s' is absent", i, name);
            continue;
        }
        rondo__operator_text(input->dtype, input->rank, input->dims, text, sizeof text);
        int64_t count = input->rank ? input->dims[0] : 1;
        for (int64_t k = 0; input->constant && k < count && k < (int64_t)RONDO__CHECK_VALUES; k++) {
            char item[32];
            (void)snprintf(item, sizeof item, "%s%lld", k ? "," : " of ", (long long)c->values[i][k]);
            contract_put_text(values, sizeof values, &used, item);
        }
        status = rondo__status_note(status, "input %u '%s' is %s%s", i, name, text, values);
    }
    for (uint32_t i = 0; i < c->attribute_count; i++) {
        char text[256];
        contract_attribute_text(&c->attributes[i], text, sizeof text);
        status = rondo__status_note(status, "attribute '%s' is %s", c->attributes[i].name, text);
    }
    for (uint32_t i = 0; i < c->output_count; i++)
        if (c->unwanted >> i & 1u) status = rondo__status_note(status, "output %u is not wanted", i);
    return status;
}

/* --------------------------------------------------------------------------------------------------- making it small */

static bool contract_is_sized(const rondo__check_case *c, uint32_t input) {
    return c->inputs[input].dtype != RONDO_DTYPE_UNDEFINED && !(c->known >> input & 1u);
}

static void contract_drop_axis(rondo__check_case *c, uint32_t input, int32_t axis) {
    int64_t *dims = c->dims[input];
    for (int32_t i = axis; i + 1 < c->inputs[input].rank; i++) dims[i] = dims[i + 1];
    c->inputs[input].rank--;
}

/* Every size of `from` in inputs that have one becomes `to`; in one input alone where that is not UINT32_MAX. */
static bool contract_resize(rondo__check_case *c, uint32_t alone, int64_t from, int64_t to) {
    bool changed = false;
    for (uint32_t i = 0; i < c->input_count; i++) {
        if (!contract_is_sized(c, i) || (alone != UINT32_MAX && alone != i)) continue;
        for (int32_t d = 0; d < c->inputs[i].rank; d++) {
            if (c->dims[i][d] != from || from == to) continue;
            c->dims[i][d] = to;
            changed = true;
        }
    }
    return changed;
}

static bool contract_drop_axes(rondo__check_case *c, uint32_t alone, int32_t axis) {
    bool changed = false;
    for (uint32_t i = 0; i < c->input_count; i++) {
        if (!contract_is_sized(c, i) || c->inputs[i].rank <= axis || (alone != UINT32_MAX && alone != i)) continue;
        contract_drop_axis(c, i, axis);
        changed = true;
    }
    return changed;
}

/* Step `step` of the ways to make a case smaller; false when it changes nothing. */
static bool contract_smaller(rondo__check_case *c, uint32_t step, bool *out_end) {
    *out_end = false;
    if (step < RONDO_OPERATOR_ATTRIBUTES_MAX) { /* an attribute less */
        if (step >= c->attribute_count) return false;
        for (uint32_t i = step; i + 1u < c->attribute_count; i++) {
            c->attributes[i] = c->attributes[i + 1u];
            c->stores[i] = c->stores[i + 1u];
        }
        c->attribute_count--;
        return true;
    }
    step -= RONDO_OPERATOR_ATTRIBUTES_MAX;
    if (step < RONDO__CHECK_OPERANDS) { /* an input less, an output less */
        const uint32_t last = c->input_count - 1u;
        if (step == 0 && c->output_count > 1) return (c->output_count--, true);
        if (step == 1 && c->unwanted) return (c->unwanted = 0, true);
        if (step >= c->input_count || c->inputs[last - step].dtype == RONDO_DTYPE_UNDEFINED) return false;
        c->inputs[last - step] = (rondo_operand){0};
        c->known &= ~(UINT64_C(1) << (last - step));
        if (step == 0) c->input_count--;
        return true;
    }
    step -= RONDO__CHECK_OPERANDS;
    const uint32_t axes = RONDO_RANK_MAX, whole = axes + 3u * 17u;
    uint32_t which = step / whole, part = step % whole; /* all inputs at once, then each alone */
    if (which > c->input_count) {
        *out_end = true;
        return false;
    }
    uint32_t alone = which ? which - 1u : UINT32_MAX;
    if (part < axes) return contract_drop_axes(c, alone, (int32_t)part);
    part -= axes;
    int64_t from = 17 - (int64_t)(part / 3u), to = part % 3u == 0 ? 1 : part % 3u == 1 ? from / 2 : from - 1;
    return from > 1 && to > 0 && contract_resize(c, alone, from, to);
}

rondo__check_verdict rondo__check_shrink(rondo__check *check, rondo__check_case *c, rondo__check_case *spare,
                                         rondo__check_verdict verdict) {
    bool end = false;
    for (uint32_t step = 0; !end && check->tries_left > 0;) {
        *spare = *c;
        if (!contract_smaller(spare, step++, &end)) continue;
        check->tries_left--;
        rondo__check_link(spare);
        rondo__check_verdict smaller = rondo__check_judge(check, spare);
        if (smaller.kind != verdict.kind) {
            rondo_status_release(smaller.status);
            continue;
        }
        rondo_status_release(verdict.status);
        verdict = smaller;
        *c = *spare;
        rondo__check_link(c);
        step = 0;
    }
    return verdict;
}

/* ------------------------------------------------------------------------------ what the plain catalogue must accept */

/* For built-in operators: the plain kernels may lack a type, not a shape. So of one signature (the types of the operands,
 * and the words and fractions among the attributes) they accept all that inference accepts, or nothing. */
typedef struct contract_signature {
    uint64_t key;
    bool accepted, refused;
    rondo__check_case *example; /* the first that was refused */
} contract_signature;

static uint64_t contract_key(const rondo__check_case *c) {
    uint64_t key = 1469598103934665603u;
    for (uint32_t i = 0; i < c->input_count; i++) key = (key ^ (uint64_t)(c->inputs[i].dtype + 1)) * 1099511628211u;
    for (uint32_t i = 0; i < c->output_count; i++) key = (key ^ (uint64_t)(c->outputs[i].dtype + 1)) * 1099511628211u;
    for (uint32_t i = 0; i < c->attribute_count; i++) {
        const rondo_attribute *a = &c->attributes[i];
        if (a->kind != RONDO_ATTRIBUTE_FLOAT && a->kind != RONDO_ATTRIBUTE_STRING) continue;
        for (const char *at = a->name; *at; at++) key = (key ^ (uint64_t)(unsigned char)*at) * 1099511628211u;
        if (a->kind == RONDO_ATTRIBUTE_FLOAT) key = (key ^ (uint64_t)(int64_t)(a->value.f * 1e6f)) * 1099511628211u;
        for (size_t k = 0; a->kind == RONDO_ATTRIBUTE_STRING && k < a->value.s.size; k++)
            key = (key ^ (uint64_t)(unsigned char)a->value.s.data[k]) * 1099511628211u;
    }
    return key;
}

static rondo_status contract_note_signature(const rondo__check *check, contract_signature *signatures,
                                            const rondo__check_case *c, bool accepted,
                                            contract_signature **out_broken) {
    uint64_t key = contract_key(c);
    uint32_t at = 0;
    void *memory = NULL;
    while (at < CHECK_SIGNATURES && (signatures[at].accepted || signatures[at].refused) && signatures[at].key != key)
        at++;
    if (at == CHECK_SIGNATURES) return RONDO_OK;
    signatures[at].key = key;
    if (!accepted && !signatures[at].refused) {
        RONDO__TRY(rondo__allocate(check->allocator, sizeof *c, &memory));
        signatures[at].example = memory;
        *signatures[at].example = *c;
        rondo__check_link(signatures[at].example);
    }
    if (accepted) signatures[at].accepted = true;
    else signatures[at].refused = true;
    if (signatures[at].accepted && signatures[at].refused) *out_broken = &signatures[at];
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------- the rounds */

typedef struct contract_state {
    rondo__check check;
    rondo_operator_check_report report;
    rondo__check_case *c, *spare;
    contract_signature signatures[CHECK_SIGNATURES];
} contract_state;

static void contract_state_free(contract_state *state) {
    const rondo_allocator *allocator = state->check.allocator;
    for (uint32_t i = 0; i < CHECK_SIGNATURES; i++)
        rondo__free(allocator, state->signatures[i].example, sizeof(rondo__check_case));
    rondo__free(allocator, state->c, sizeof *state->c);
    rondo__free(allocator, state->spare, sizeof *state->spare);
}

static rondo_status contract_broken_signature(contract_state *state, contract_signature *broken) {
    rondo__check_verdict verdict = {RONDO__CHECK_NO_KERNEL, RONDO_OK};
    rondo_status reason = RONDO_OK;
    verdict = rondo__check_judge(&state->check, broken->example);
    verdict = rondo__check_shrink(&state->check, broken->example, state->spare, verdict);
    const rondo_catalogue *last = &state->check.catalogues.catalogues[state->check.catalogues.count - 1u];
    rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
    rondo_status_release(verdict.status);
    verdict = rondo__check_judge(&state->check, broken->example);
    rondo_status_release(verdict.status);
    reason = last->table->find(last->self, &broken->example->request, &facts);
    rondo_status status =
        RONDO__FAIL(INVALID_ARGUMENT, IMPLEMENTATION,
                    "operator '%s': its meta accepts these inputs, the kernels of '%s' do not, though "
                    "they accept other shapes of the same types",
                    state->check.prototype->name, last->table->name);
    status = rondo__status_note(status, "%s says: %s", last->table->name, rondo_status_message(reason));
    rondo_status_release(reason);
    return rondo__check_describe(status, broken->example);
}

static rondo_status contract_round(contract_state *state, const rondo__check_examples *examples, uint64_t seed) {
    contract_signature *broken = NULL;
    rondo__check_draw(state->c, state->check.prototype, examples, seed);
    rondo__check_verdict verdict = rondo__check_judge(&state->check, state->c);
    state->report.drawn++;
    if (verdict.kind == RONDO__CHECK_ERROR) return verdict.status;
    if (verdict.kind > RONDO__CHECK_BROKEN) {
        state->check.tries_left = CHECK_TRIES;
        verdict = rondo__check_shrink(&state->check, state->c, state->spare, verdict);
        return rondo__check_describe(verdict.status, state->c);
    }
    const bool plain = verdict.kind == RONDO__CHECK_AGREES || verdict.kind == RONDO__CHECK_BY_VALUE;
    const bool ran = plain || verdict.kind == RONDO__CHECK_FAST_ONLY;
    if (verdict.kind == RONDO__CHECK_REFUSED) state->report.refused++;
    else state->report.accepted++;
    if (ran) state->report.run++;
    const bool noted = plain || verdict.kind == RONDO__CHECK_NO_KERNEL || verdict.kind == RONDO__CHECK_FAST_ONLY;
    if (!state->check.entry && noted)
        RONDO__TRY(contract_note_signature(&state->check, state->signatures, state->c, plain, &broken));
    if (!broken) return RONDO_OK;
    state->check.tries_left = CHECK_TRIES;
    return contract_broken_signature(state, broken);
}

static rondo_status contract_rounds(contract_state *state, const rondo_operator_check_options *options) {
    const rondo__check_examples examples = {options->examples, options->example_count};
    const char *name = state->check.prototype->name;
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(state->check.allocator, sizeof *state->c, &memory));
    state->c = memory;
    RONDO__TRY(rondo__allocate_zeroed(state->check.allocator, sizeof *state->spare, &memory));
    state->spare = memory;
    for (uint32_t i = 0; i < options->rounds; i++) {
        rondo_status status = contract_round(state, &examples, options->seed * 0x9e3779b97f4a7c15u + i);
        if (status) return rondo__status_note(status, "round %u of seed %llu", i, (unsigned long long)options->seed);
    }
    if (!state->report.accepted)
        return RONDO__FAIL(
            NOT_FOUND, INPUT,
            "operator '%s': none of %u drawn inputs was accepted, so nothing was compared; give an example "
            "of its inputs, or more rounds",
            name, options->rounds);
    return RONDO_OK;
}

static rondo_status contract_examples(const rondo__ops_prototype *prototype,
                                      const rondo_operator_check_options *options) {
    if (options->example_count > RONDO_OPERATOR_OPERANDS_MAX || (options->example_count && !options->examples))
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%u examples of inputs, there may be %u, and all must be there",
                           options->example_count, RONDO_OPERATOR_OPERANDS_MAX);
    bool variadic = prototype->input_count && prototype->inputs[prototype->input_count - 1u].variadic;
    if (options->example_count > prototype->input_count && !variadic)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%u examples of inputs, operator '%s' has %u",
                           options->example_count, prototype->name, prototype->input_count);
    for (uint32_t i = 0; i < options->example_count; i++) {
        const rondo_tensor_view *view = &options->examples[i];
        int64_t elements;
        if (view->rank < 0 || view->rank > RONDO_RANK_MAX || (view->rank && !view->shape) ||
            view->dtype <= RONDO_DTYPE_UNDEFINED || view->dtype >= RONDO_DTYPE_COUNT ||
            !rondo__checked_elements(view->rank, view->shape, &elements))
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "example %u of operator '%s' is no tensor", i, prototype->name);
    }
    return RONDO_OK;
}

static rondo_status contract_whole(contract_state *state, const rondo_operator_check_options *options) {
    const rondo__check *check = &state->check;
    const char *name = check->prototype->name;
    RONDO__TRY(contract_examples(check->prototype, options));
    if (options->rounds > CHECK_ROUNDS_MAX)
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "%u rounds, there may be %u", options->rounds, CHECK_ROUNDS_MAX);
    RONDO__TRY(rondo__operator_check_converters(check->prototype, options->converters, options->converter_count));
    if (check->prototype->flags & RONDO__OPS_HOSTED)
        return RONDO__FAIL(
            UNSUPPORTED, META,
            "operator '%s' works on sequences or optionals: nothing is drawn of them, and no kernel has it", name);
    if (check->prototype->flags & RONDO__OPS_CONTROL || !check->prototype->infer)
        return RONDO__FAIL(UNSUPPORTED, META, "operator '%s' is one of control flow: its branches decide what it gives",
                           name);
    if (check->entry && check->entry->implementation.execute == NULL && check->catalogues.count == 0)
        return RONDO__FAIL(NOT_FOUND, IMPLEMENTATION, "operator '%s' is registered without an implementation", name);
    if (check->catalogues.count == 0)
        return RONDO__FAIL(NOT_FOUND, IMPLEMENTATION, "operator '%s': no catalogue has kernels for it", name);
    return contract_rounds(state, options);
}

rondo_status rondo__operator_check(const rondo_allocator *allocator, const rondo__ops_prototype *prototype,
                                   const rondo__kernel_set *catalogues, const rondo_operator_check_options *options,
                                   rondo_operator_check_report *out_report) {
    rondo_operator_check_options own = RONDO_OPERATOR_CHECK_OPTIONS_INIT;
    void *memory = NULL;
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_INPUT, "rondo_operator_check_options", options, &own, sizeof own));
    if (!own.rounds) own.rounds = CHECK_ROUNDS_DEFAULT;
    RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(contract_state), &memory));
    contract_state *state = memory;
    state->check = (rondo__check){
        .allocator = allocator, .prototype = prototype, .entry = prototype->registered, .catalogues = *catalogues};
    rondo_status status = contract_whole(state, &own);
    state->report.struct_size = sizeof state->report;
    if (out_report) rondo__sized_write(&state->report, sizeof state->report, out_report);
    contract_state_free(state);
    rondo__free(allocator, state, sizeof *state);
    return status;
}
