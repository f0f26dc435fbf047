/* SPDX-License-Identifier: Apache-2.0
 *
 * Judging one drawn node: schema, meta, the implementation's inference and its run are asked, and must say the same. */
#include <string.h>

#include "base/checked.h"
#include "ops/operators_check.h"

#define CHECK_ARENA_MAX ((size_t)1 << 28)

#define CHECK_STATUS(layer, c, format, ...) \
    RONDO__FAIL(INVALID_ARGUMENT, layer, "operator '%s': " format, (c)->prototype->name, ##__VA_ARGS__)

static rondo__check_verdict contract_verdict(rondo__check_kind kind, rondo_status status) {
    return (rondo__check_verdict){kind, status};
}

static bool contract_is_memory(rondo_status status) { return rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY; }

/* A disagreement with the reason that a function gave, which is released. */
static rondo__check_verdict contract_because(rondo__check_kind kind, rondo_status status, rondo_status reason) {
    if (contract_is_memory(reason)) {
        rondo_status_release(status);
        return contract_verdict(RONDO__CHECK_ERROR, reason);
    }
    status = rondo__status_note(status, "it says: %s", rondo_status_message(reason));
    rondo_status_release(reason);
    return contract_verdict(kind, status);
}

/* ------------------------------------------------------------------------------------------- inference against itself */

static rondo_status contract_infer(rondo__check_case *c) {
    rondo_operand outputs[RONDO__CHECK_OPERANDS];
    rondo_status status = rondo__ops_infer_with(c->prototype, &c->request, outputs, c->output_dims);
    if (status) return status;
    for (uint32_t i = 0; i < c->output_count; i++) {
        c->outputs[i] = outputs[i];
        c->outputs[i].dims = c->output_dims[i];
    }
    return RONDO_OK;
}

static bool contract_same_results(uint32_t count, const rondo_operator_result *a, const rondo_operator_result *b,
                                  uint32_t *out_index) {
    for (uint32_t i = 0; i < count; i++) {
        bool same = a[i].dtype == b[i].dtype && a[i].rank == b[i].rank;
        for (int32_t d = 0; same && d < a[i].rank; d++) same = a[i].dims[d] == b[i].dims[d];
        *out_index = i;
        if (!same) return false;
    }
    return true;
}

typedef struct contract_answer {
    rondo_status status;
    bool refused; /* by the operator itself; else what it answered is no answer */
    rondo_operator_result results[2u * RONDO_OPERATOR_OPERANDS_MAX];
} contract_answer;

static void contract_ask(const rondo__operator_entry *entry, const rondo__check_case *c, bool by_meta,
                         contract_answer *answer) {
    answer->refused = false;
    answer->status = rondo__operator_infer_told(entry, &c->request, by_meta, answer->results, &answer->refused);
}

static rondo__check_verdict contract_results_differ(const rondo__check_case *c, rondo__check_kind kind, uint32_t index,
                                                    const rondo_operator_result *a, const rondo_operator_result *b) {
    char first[256], second[256];
    rondo__operator_text(a[index].dtype, a[index].rank, a[index].dims, first, sizeof first);
    rondo__operator_text(b[index].dtype, b[index].rank, b[index].dims, second, sizeof second);
    if (kind == RONDO__CHECK_META_UNSTEADY)
        return contract_verdict(
            kind,
            CHECK_STATUS(META, c, "its meta, asked twice, makes output %u first %s and then %s", index, first, second));
    return contract_verdict(kind, CHECK_STATUS(IMPLEMENTATION, c, "its meta makes output %u %s, its implementation %s",
                                               index, first, second));
}

/* The meta against itself. */
static rondo__check_verdict contract_meta(const rondo__check *check, const rondo__check_case *c, bool by_meta,
                                          contract_answer *meta) {
    contract_answer again;
    uint32_t index = 0;
    contract_ask(check->entry, c, by_meta, meta);
    if (contract_is_memory(meta->status)) return contract_verdict(RONDO__CHECK_ERROR, meta->status);
    contract_ask(check->entry, c, by_meta, &again);
    bool same = !meta->status == !again.status;
    rondo_status_release(again.status);
    if (!same) {
        rondo_status_release(meta->status);
        return contract_verdict(RONDO__CHECK_META_UNSTEADY,
                                CHECK_STATUS(META, c, "its meta, asked twice, refuses these inputs once"));
    }
    if (!meta->status && !contract_same_results(c->output_count, meta->results, again.results, &index))
        return contract_results_differ(c, RONDO__CHECK_META_UNSTEADY, index, meta->results, again.results);
    if (meta->status && !meta->refused && rondo_status_code(meta->status) != RONDO_CODE_UNSUPPORTED)
        return contract_verdict(RONDO__CHECK_META_WRONG, meta->status);
    return contract_verdict(RONDO__CHECK_AGREES, RONDO_OK);
}

/* A registered operator's meta and its implementation's own inference: the same set of inputs, the same answers. */
static rondo__check_verdict contract_inferences(const rondo__check *check, const rondo__check_case *c) {
    contract_answer meta, own;
    uint32_t index = 0;
    const bool by_meta = check->entry->given.meta != NULL;
    rondo__check_verdict verdict = contract_meta(check, c, by_meta, &meta);
    if (verdict.kind != RONDO__CHECK_AGREES) return verdict;
    const bool data = meta.status && !meta.refused; /* a size that depends on data */
    if (!by_meta || !check->entry->implementation.infer_shape || data) {
        rondo__check_kind kind = data ? RONDO__CHECK_NOT_RUN : meta.status ? RONDO__CHECK_REFUSED : RONDO__CHECK_AGREES;
        rondo_status_release(meta.status);
        return contract_verdict(kind, RONDO_OK);
    }
    contract_ask(check->entry, c, false, &own);
    if (own.status && !own.refused && !contract_is_memory(own.status)) {
        rondo_status_release(meta.status);
        return contract_verdict(RONDO__CHECK_OWN_WRONG, own.status);
    }
    if (!meta.status && own.status)
        return contract_because(
            RONDO__CHECK_TAKES_LESS,
            CHECK_STATUS(IMPLEMENTATION, c,
                         "its meta accepts these inputs, its implementation's inference refuses them"),
            own.status);
    rondo_status_release(own.status);
    if (meta.status && !own.status)
        return contract_because(
            RONDO__CHECK_TAKES_MORE,
            CHECK_STATUS(IMPLEMENTATION, c,
                         "its meta refuses these inputs, its implementation's inference accepts them"),
            meta.status);
    if (meta.status) {
        rondo_status_release(meta.status);
        return contract_verdict(RONDO__CHECK_REFUSED, RONDO_OK);
    }
    if (!contract_same_results(c->output_count, meta.results, own.results, &index))
        return contract_results_differ(c, RONDO__CHECK_OTHER_RESULT, index, meta.results, own.results);
    return contract_verdict(RONDO__CHECK_AGREES, RONDO_OK);
}

/* ---------------------------------------------------------------------------------------------------------- running */

static rondo__check_verdict contract_failed(const rondo__check_case *c, const char *catalogue, rondo__check_run *run) {
    rondo_status status = CHECK_STATUS(
        IMPLEMENTATION, c,
        "its meta accepts these inputs, its implementation (%s) fails on them with reason %d, on zeros and "
        "ones too",
        catalogue, (int)run->reason);
    rondo_status words = run->words;
    run->words = RONDO_OK;
    if (!words) return contract_verdict(RONDO__CHECK_RUN_FAILS, status);
    return contract_because(RONDO__CHECK_RUN_FAILS, status, words);
}

static bool contract_can_be_in_place(const rondo__check_case *c, const rondo__check_run *run, uint32_t input) {
    return input < c->input_count && c->inputs[input].dtype != RONDO_DTYPE_UNDEFINED &&
           c->outputs[0].dtype == c->inputs[input].dtype && run->inputs[input].bytes == run->outputs[0].bytes &&
           !(run->facts.absorbed_inputs >> input & 1u);
}

/* One more run; AGREES when it ran. */
static rondo__check_verdict contract_again(const rondo__check_case *c, const rondo_catalogue *catalogue,
                                           rondo__check_how how, rondo__check_run *run) {
    rondo_status refusal = RONDO_OK;
    rondo_status status = rondo__check_run_once(c, catalogue, how, run, &refusal);
    if (!status && refusal) status = refusal;
    if (status) return contract_verdict(RONDO__CHECK_ERROR, status);
    if (!run->outside) return contract_verdict(RONDO__CHECK_AGREES, RONDO_OK);
    rondo_status_release(run->words);
    run->words = RONDO_OK;
    return contract_verdict(RONDO__CHECK_OUTSIDE, CHECK_STATUS(IMPLEMENTATION, c, "its implementation (%s) writes %s",
                                                               catalogue->table->name, run->outside));
}

/* No index leads into an axis without elements. */
static bool contract_has_no_right_value(const rondo__check_case *c) {
    bool empty = false, integers = false;
    for (uint32_t i = 0; i < c->input_count; i++) {
        int64_t elements = 1;
        if (c->inputs[i].dtype == RONDO_DTYPE_UNDEFINED) continue;
        integers = integers || (RONDO__OPS_SIGNED_INTS | RONDO__OPS_UNSIGNED_INTS) >> c->inputs[i].dtype & 1u;
        empty = empty || (rondo__checked_elements(c->inputs[i].rank, c->inputs[i].dims, &elements) && !elements);
    }
    return empty && integers;
}

/* Failing on the drawn data may be its right: an index that is out of range. Failing on zeros and ones too is not. */
static rondo__check_verdict contract_by_value(const rondo__check_case *c, const rondo_catalogue *catalogue,
                                              rondo__check_run *first) {
    for (uint8_t data = 1; data <= 2; data++) {
        rondo__check_run run = {.arena = first->arena};
        rondo__check_verdict verdict = contract_again(c, catalogue, (rondo__check_how){0x5a, data, -1}, &run);
        if (verdict.kind != RONDO__CHECK_AGREES) return verdict;
        bool ran = !run.reason;
        rondo_status_release(run.words);
        if (ran) return contract_verdict(RONDO__CHECK_BY_VALUE, RONDO_OK);
    }
    if (contract_has_no_right_value(c)) return contract_verdict(RONDO__CHECK_BY_VALUE, RONDO_OK);
    return contract_failed(c, catalogue->table->name, first);
}

/* Two runs with other contents before, and one a claim of in-place. The first one's results stay in `first`. */
static rondo__check_verdict contract_steady(const rondo__check_case *c, const rondo_catalogue *catalogue,
                                            rondo__check_run *first) {
    const char *name = catalogue->table->name;
    rondo__check_run second = {.arena = first->arena};
    rondo__check_verdict verdict = contract_again(c, catalogue, (rondo__check_how){0xa5, 0, -1}, &second);
    if (verdict.kind != RONDO__CHECK_AGREES) return verdict;
    rondo_status_release(second.words);
    int32_t output = second.reason ? 0 : rondo__check_compare(c, first, &second, true);
    if (output >= 0)
        return contract_verdict(
            RONDO__CHECK_UNSTEADY,
            CHECK_STATUS(IMPLEMENTATION, c,
                         "its implementation (%s), run twice on the same inputs, makes two outputs %d: "
                         "it leaves elements unwritten, or reads what nobody wrote",
                         name, (int)output));
    for (uint32_t i = 0; i < 32; i++) {
        rondo__check_run run = {.arena = first->arena};
        if (!(first->facts.in_place_inputs >> i & 1u) || !contract_can_be_in_place(c, first, i)) continue;
        verdict = contract_again(c, catalogue, (rondo__check_how){0x5a, 0, (int32_t)i}, &run);
        if (verdict.kind != RONDO__CHECK_AGREES) return verdict;
        rondo_status_release(run.words);
        if (!run.reason && rondo__check_compare(c, first, &run, true) < 0) continue;
        return contract_verdict(
            RONDO__CHECK_IN_PLACE,
            CHECK_STATUS(IMPLEMENTATION, c,
                         "its implementation (%s) says that output 0 may be the memory of input %u, and "
                         "makes another output there",
                         name, i));
    }
    return contract_verdict(RONDO__CHECK_AGREES, RONDO_OK);
}

static rondo__check_verdict contract_bytes_wrong(const rondo__check_case *c, const char *what, rondo_status reason) {
    rondo_status status = CHECK_STATUS(IMPLEMENTATION, c, "the bytes that it serializes for an offline file: %s", what);
    if (!reason) return contract_verdict(RONDO__CHECK_OWN_BYTES, status);
    return contract_because(RONDO__CHECK_OWN_BYTES, status, reason);
}

/* The same node as an offline file would bring it. */
static rondo__check_verdict contract_from_bytes(const rondo__check_case *c, const rondo_catalogue *catalogue,
                                                const rondo__buffer *bytes, rondo__check_run *first) {
    rondo_attribute attributes[RONDO_OPERATOR_ATTRIBUTES_MAX + 1u];
    rondo__check_run run = {.arena = first->arena};
    rondo_kernel_request request = c->request;
    rondo_status refusal = RONDO_OK;
    void *data = NULL; /* where a file would have them: aligned, with a zero behind */
    rondo_status status = rondo__arena_allocate_aligned(first->arena, bytes->count + 1u, 64, &data);
    if (status) return contract_verdict(RONDO__CHECK_ERROR, status);
    memcpy(data, bytes->data, bytes->count);
    if (c->attribute_count) memcpy(attributes, c->attributes, c->attribute_count * sizeof *attributes);
    attributes[request.attribute_count++] = (rondo_attribute){
        .name = RONDO__OPERATOR_OWN, .kind = RONDO_ATTRIBUTE_STRING, .count = 1, .value = {.s = {data, bytes->count}}};
    request.attributes = attributes;
    status = rondo__check_run_request(c, &request, catalogue, (rondo__check_how){0x5a, 0, -1}, &run, &refusal);
    if (!status && refusal) status = refusal;
    if (status) return contract_bytes_wrong(c, "deserialize refuses them", status);
    rondo_status_release(run.words);
    if (!run.reason && rondo__check_compare(c, first, &run, true) < 0)
        return contract_verdict(RONDO__CHECK_AGREES, RONDO_OK);
    return contract_bytes_wrong(c, "deserialize makes another state of them, whose outputs differ", RONDO_OK);
}

/* What it writes for an offline file: the same each time, and as good as what was compiled. */
static rondo__check_verdict contract_own_bytes(const rondo__check *check, const rondo__check_case *c,
                                               const rondo_catalogue *catalogue, rondo__check_run *first) {
    rondo__check_verdict verdict = {RONDO__CHECK_AGREES, RONDO_OK};
    rondo__buffer bytes[2];
    rondo_status status = RONDO_OK;
    if (!check->entry || !check->entry->implementation.serialize) return verdict;
    for (int i = 0; i < 2; i++) rondo__buffer_init(&bytes[i], check->allocator, 1, RONDO__CHECK_BYTES_MAX * 64u);
    for (int i = 0; i < 2 && !status; i++) status = rondo__operator_own(catalogue->self, &c->request, &bytes[i]);
    const bool same = bytes[0].count == bytes[1].count &&
                      (!bytes[0].count || memcmp(bytes[0].data, bytes[1].data, bytes[0].count) == 0);
    if (status) verdict = contract_bytes_wrong(c, "it cannot make them", status);
    else if (!same) verdict = contract_bytes_wrong(c, "written twice, they differ", RONDO_OK);
    else if (bytes[0].count) verdict = contract_from_bytes(c, catalogue, &bytes[0], first);
    for (int i = 0; i < 2; i++) rondo__buffer_deinit(&bytes[i]);
    return verdict;
}

static rondo__check_verdict contract_catalogue(const rondo__check *check, const rondo__check_case *c,
                                               const rondo_catalogue *catalogue, rondo__check_run *first) {
    rondo_status refusal = RONDO_OK;
    rondo_status status = rondo__check_run_once(c, catalogue, (rondo__check_how){0x5a, 0, -1}, first, &refusal);
    if (status) return contract_verdict(RONDO__CHECK_ERROR, status);
    if (refusal && contract_is_memory(refusal)) return contract_verdict(RONDO__CHECK_ERROR, refusal);
    if (refusal && (check->entry || rondo_status_code(refusal) != RONDO_CODE_UNSUPPORTED))
        return contract_because(RONDO__CHECK_FIND_REFUSES,
                                CHECK_STATUS(IMPLEMENTATION, c,
                                             "its meta accepts these inputs, its implementation (%s) refuses them",
                                             catalogue->table->name),
                                refusal);
    rondo_status_release(refusal);
    if (refusal) return contract_verdict(RONDO__CHECK_NO_KERNEL, RONDO_OK);
    if (first->outside) {
        rondo_status_release(first->words);
        first->words = RONDO_OK;
        return contract_verdict(RONDO__CHECK_OUTSIDE,
                                CHECK_STATUS(IMPLEMENTATION, c, "its implementation (%s) writes %s",
                                             catalogue->table->name, first->outside));
    }
    if (!first->reason) {
        rondo__check_verdict steady = contract_steady(c, catalogue, first);
        return steady.kind == RONDO__CHECK_AGREES ? contract_own_bytes(check, c, catalogue, first) : steady;
    }
    /* Sizes beyond its bound are wrong whatever the values are. */
    bool beyond =
        check->prototype->flags & RONDO__OPS_SIZED && rondo_status_layer(first->words) == RONDO_LAYER_IMPLEMENTATION;
    rondo__check_verdict verdict =
        beyond ? contract_failed(c, catalogue->table->name, first) : contract_by_value(c, catalogue, first);
    rondo_status_release(first->words);
    first->words = RONDO_OK;
    return verdict;
}

/* All catalogues, the last of which is the plain one that the others are compared with. */
static rondo__check_verdict contract_run(const rondo__check *check, const rondo__check_case *c, rondo__arena *arena) {
    rondo__check_run runs[RONDO__KERNEL_SET_MAX];
    rondo__check_verdict whole = {RONDO__CHECK_NO_KERNEL, RONDO_OK};
    const rondo__check_run *truth = NULL;
    const char *truth_name = "";
    for (uint32_t i = check->catalogues.count; i-- > 0;) {
        const rondo_catalogue *catalogue = &check->catalogues.catalogues[i];
        runs[i] = (rondo__check_run){.arena = arena};
        rondo__check_verdict verdict = contract_catalogue(check, c, catalogue, &runs[i]);
        if (verdict.kind >= RONDO__CHECK_ERROR) return verdict;
        const bool plain = i + 1u == check->catalogues.count;
        if (plain) whole = verdict;
        else if (verdict.kind == RONDO__CHECK_AGREES && whole.kind == RONDO__CHECK_NO_KERNEL)
            whole.kind = RONDO__CHECK_FAST_ONLY;
        if (verdict.kind != RONDO__CHECK_AGREES) continue;
        int32_t output = truth ? rondo__check_compare(c, truth, &runs[i], false) : -1;
        if (output >= 0)
            return contract_verdict(RONDO__CHECK_CATALOGUES,
                                    CHECK_STATUS(IMPLEMENTATION, c, "catalogues '%s' and '%s' make two outputs %d",
                                                 truth_name, catalogue->table->name, (int)output));
        truth = &runs[i];
        truth_name = catalogue->table->name;
    }
    return whole;
}

rondo__check_verdict rondo__check_judge(const rondo__check *check, rondo__check_case *c) {
    rondo__arena arena;
    rondo_status status = rondo__ops_check_request(check->prototype, &c->request);
    if (contract_is_memory(status)) return contract_verdict(RONDO__CHECK_ERROR, status);
    rondo_status_release(status);
    if (status) return contract_verdict(RONDO__CHECK_REFUSED, RONDO_OK); /* nobody's functions are asked */
    if (check->entry) {
        rondo__check_verdict verdict = contract_inferences(check, c);
        if (verdict.kind != RONDO__CHECK_AGREES) return verdict;
    }
    status = contract_infer(c);
    if (contract_is_memory(status)) return contract_verdict(RONDO__CHECK_ERROR, status);
    if (check->entry && rondo_status_layer(status) == RONDO_LAYER_IMPLEMENTATION) /* of its bound */
        return contract_verdict(RONDO__CHECK_OWN_WRONG, status);
    rondo_status_release(status);
    if (status) return contract_verdict(RONDO__CHECK_REFUSED, RONDO_OK);
    for (uint32_t i = 0; i < c->output_count; i++)
        if (c->unwanted >> i & 1u) c->outputs[i] = (rondo_operand){0};
    if (!rondo__check_small(c)) return contract_verdict(RONDO__CHECK_NOT_RUN, RONDO_OK);
    rondo__arena_init(&arena, check->allocator, CHECK_ARENA_MAX);
    rondo__check_verdict verdict = contract_run(check, c, &arena);
    rondo__arena_deinit(&arena);
    return verdict;
}
