/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM, forward, with the default activations: packs the gates for the fused step and walks the sequence. */
#include <string.h>

#include "planner.h"

enum { LSTM_NO_WORD = UINT32_MAX, LSTM_GATES = 4 };

typedef struct lstm_context {
    rondo__cpu_lstm_step step;
    rondo__cpu_lstm_size size;
    uint64_t sequence, batch;
    uint32_t packed_word, scratch_word;  /* scratch: zeros [hidden], h [2][batch][hidden], c [batch][hidden] */
    uint32_t h_word, c_word;             /* first state; absent: zeros */
    uint32_t y_word, y_h_word, y_c_word; /* absent: not wanted */
} lstm_context;

static const float *lstm_first(const lstm_context *c, const uint64_t *words, uint32_t word, const float *zeros,
                               uint64_t row) {
    return word == LSTM_NO_WORD ? zeros : RONDO__CPU_AT(float, words[word]) + row * c->size.hidden;
}

static int32_t lstm_run(const void *context, const uint64_t *words) {
    const lstm_context *c = context;
    const uint64_t hidden = c->size.hidden, state = c->batch * hidden;
    const float *x = RONDO__CPU_AT(float, words[0]), *packed = RONDO__CPU_AT(float, words[c->packed_word]);
    float *zeros = RONDO__CPU_AT(float, words[c->scratch_word]), *turns = zeros + hidden;
    float *y = c->y_word == LSTM_NO_WORD ? NULL : RONDO__CPU_AT(float, words[c->y_word]);
    float *cell = c->y_c_word == LSTM_NO_WORD ? turns + 2 * state : RONDO__CPU_AT(float, words[c->y_c_word]);
    const float *last = NULL;
    if (c->h_word == LSTM_NO_WORD || c->c_word == LSTM_NO_WORD) memset(zeros, 0, hidden * sizeof *zeros);
    for (uint64_t t = 0; t < c->sequence; t++) {
        float *out = y ? y + t * state : turns + (t & 1) * state;
        for (uint64_t row = 0; row < c->batch; row++, x += c->size.input) {
            const float *h = t > 0 ? last + row * hidden : lstm_first(c, words, c->h_word, zeros, row);
            const float *before = t > 0 ? cell + row * hidden : lstm_first(c, words, c->c_word, zeros, row);
            c->step(&c->size, packed, x, h, before, out + row * hidden, cell + row * hidden);
        }
        last = out;
    }
    if (c->y_h_word != LSTM_NO_WORD) memcpy(RONDO__CPU_AT(float, words[c->y_h_word]), last, state * sizeof *last);
    return 0;
}

/* A block: for each gate (i, o, f, c, as ONNX has them) two vectors of units. */
static void lstm_pack(const rondo__cpu_plan *plan, void *out) {
    const lstm_context *c = plan->kernel.context;
    const uint64_t hidden = c->size.hidden, input = c->size.input, units = 2u * plan->set->lanes;
    const uint64_t columns = LSTM_GATES * units, blocks = (hidden + units - 1) / units;
    const float *w = plan->request->inputs[1].constant, *r = plan->request->inputs[2].constant;
    const rondo_operand *b = rondo__cpu_input(plan, 3);
    float *bias = out, *weights = bias + blocks * columns;
    memset(out, 0, plan->facts.packed_bytes);
    for (uint64_t block = 0; block < blocks; block++) {
        for (uint64_t gate = 0; gate < LSTM_GATES; gate++) {
            for (uint64_t unit = 0; unit < units && block * units + unit < hidden; unit++) {
                const uint64_t row = gate * hidden + block * units + unit, at = gate * units + unit;
                float *column = weights + block * columns * (input + hidden) + at;
                for (uint64_t k = 0; k < input; k++) column[k * columns] = w[row * input + k];
                for (uint64_t k = 0; k < hidden; k++) column[(input + k) * columns] = r[row * hidden + k];
                if (!b) continue;
                const float *given = b->constant;
                bias[block * columns + at] = given[row] + given[LSTM_GATES * hidden + row];
            }
        }
    }
}

static bool lstm_default_activations(const rondo__cpu_plan *plan) {
    static const char *const names[] = {"Sigmoid", "Tanh", "Tanh"};
    const rondo_attribute *a = rondo__cpu_attribute(plan, "activations");
    if (!a) return true;
    if (a->kind != RONDO_ATTRIBUTE_STRINGS || a->count != 3) return a->count == 0;
    for (uint32_t i = 0; i < 3; i++) {
        const rondo_string *s = &a->value.strings[i];
        if (s->size != strlen(names[i]) || memcmp(s->data, names[i], s->size) != 0) return false;
    }
    return true;
}

static rondo_status lstm_check_attributes(const rondo__cpu_plan *plan) {
    if (!rondo__cpu_attribute_is(plan, "direction", "forward"))
        return rondo__cpu_refuse(plan, "only the direction forward has a fast kernel");
    if (!lstm_default_activations(plan) || rondo__cpu_attribute(plan, "activation_alpha") ||
        rondo__cpu_attribute(plan, "activation_beta"))
        return rondo__cpu_refuse(plan, "only the default activations have a fast kernel");
    if (rondo__cpu_attribute(plan, "clip") || rondo__cpu_attribute_int(plan, "input_forget", 0) != 0 ||
        rondo__cpu_attribute_int(plan, "layout", 0) != 0)
        return rondo__cpu_refuse(plan, "clip, input_forget and layout 1 have no fast kernel");
    return RONDO_OK;
}

static bool lstm_is(const rondo_operand *operand, int32_t rank, uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t want[3] = {a, b, c};
    if (operand->dtype != RONDO_DTYPE_F32 || operand->rank != rank) return false;
    for (int32_t i = 0; i < rank; i++) {
        if ((uint64_t)operand->dims[i] != want[i]) return false;
    }
    return true;
}

/* Lengths that all are the whole sequence say nothing. */
static bool lstm_lengths_whole(const rondo_operand *lengths, uint64_t batch, int64_t sequence) {
    int64_t value[64];
    uint32_t count;
    if (!lengths) return true;
    if (!rondo__cpu_constant_ints(lengths, value, 64, &count) || count != batch) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (value[i] != sequence) return false;
    }
    return true;
}

static rondo_status lstm_check_outputs(const rondo__cpu_plan *plan, uint64_t sequence, uint64_t batch,
                                       uint64_t hidden) {
    const rondo_operand *y = rondo__cpu_output(plan, 0), *y_h = rondo__cpu_output(plan, 1);
    const rondo_operand *y_c = rondo__cpu_output(plan, 2);
    if ((y && (y->dtype != RONDO_DTYPE_F32 || rondo__cpu_elements(y) != sequence * batch * hidden)) ||
        (y_h && !lstm_is(y_h, 3, 1, batch, hidden)) || (y_c && !lstm_is(y_c, 3, 1, batch, hidden)))
        return rondo__cpu_refuse(plan, "the outputs' shapes do not fit");
    return RONDO_OK;
}

static rondo_status lstm_check(const rondo__cpu_plan *plan, uint64_t hidden) {
    const rondo_operand *x = rondo__cpu_input(plan, 0), *w = rondo__cpu_input(plan, 1), *r = rondo__cpu_input(plan, 2);
    const rondo_operand *b = rondo__cpu_input(plan, 3), *h = rondo__cpu_input(plan, 5), *c = rondo__cpu_input(plan, 6);
    if (x->dtype != RONDO_DTYPE_F32 || x->rank != 3) return rondo__cpu_refuse(plan, "X is not float32 of rank 3");
    const uint64_t sequence = (uint64_t)x->dims[0], batch = (uint64_t)x->dims[1], input = (uint64_t)x->dims[2];
    uint64_t state, all;
    if (sequence == 0 || batch == 0 || hidden == 0) return rondo__cpu_refuse(plan, "an empty sequence");
    if (__builtin_mul_overflow(batch, hidden, &state) || __builtin_mul_overflow(state, sequence, &all) ||
        all > (uint64_t)1 << 56)
        return rondo__cpu_refuse(plan, "the state is too large");
    if (!lstm_is(w, 3, 1, LSTM_GATES * hidden, input) || !lstm_is(r, 3, 1, LSTM_GATES * hidden, hidden) ||
        (b && !lstm_is(b, 2, 1, 2 * LSTM_GATES * hidden, 0)) || (h && !lstm_is(h, 3, 1, batch, hidden)) ||
        (c && !lstm_is(c, 3, 1, batch, hidden)))
        return rondo__cpu_refuse(plan, "the shapes do not fit");
    if (!w->constant || !r->constant || (b && !b->constant))
        return rondo__cpu_refuse(plan, "only constant weights have a fast kernel");
    if (rondo__cpu_input(plan, 7)) return rondo__cpu_refuse(plan, "peepholes have no fast kernel");
    if (!lstm_lengths_whole(rondo__cpu_input(plan, 4), batch, x->dims[0]))
        return rondo__cpu_refuse(plan, "sequences of different lengths have no fast kernel");
    return lstm_check_outputs(plan, sequence, batch, hidden);
}

static rondo_status lstm_plan(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 3, 8, 3);
    if (!status) status = lstm_check_attributes(plan);
    if (status) return status;
    const rondo_operand *x = rondo__cpu_input(plan, 0), *r = rondo__cpu_input(plan, 2);
    const uint64_t hidden = r->rank == 3 ? (uint64_t)r->dims[2] : 0;
    status = lstm_check(plan, hidden);
    if (status) return status;
    lstm_context *c;
    status = rondo__cpu_context(plan, sizeof *c, &c);
    if (status) return status;
    const uint64_t batch = (uint64_t)x->dims[1], units = 2u * plan->set->lanes;
    const uint64_t blocks = (hidden + units - 1) / units;
    *c = (lstm_context){.step = plan->set->lstm,
                        .size = {(uint64_t)x->dims[2], hidden},
                        .sequence = (uint64_t)x->dims[0],
                        .batch = batch};
    plan->facts.scratch_bytes = (hidden + 3 * batch * hidden) * sizeof(float);
    plan->facts.packed_bytes = blocks * units * LSTM_GATES * (1 + c->size.input + hidden) * sizeof(float);
    plan->facts.absorbed_inputs = 2 | 4;
    if (rondo__cpu_input(plan, 3)) plan->facts.absorbed_inputs |= 8;
    if (rondo__cpu_input(plan, 4)) plan->facts.absorbed_inputs |= 16;
    c->packed_word = rondo__cpu_word_packed(plan);
    c->scratch_word = rondo__cpu_word_scratch(plan);
    c->h_word = rondo__cpu_input(plan, 5) ? 5 : LSTM_NO_WORD;
    c->c_word = rondo__cpu_input(plan, 6) ? 6 : LSTM_NO_WORD;
    c->y_word = rondo__cpu_output(plan, 0) ? rondo__cpu_word_out(plan, 0) : LSTM_NO_WORD;
    c->y_h_word = rondo__cpu_output(plan, 1) ? rondo__cpu_word_out(plan, 1) : LSTM_NO_WORD;
    c->y_c_word = rondo__cpu_output(plan, 2) ? rondo__cpu_word_out(plan, 2) : LSTM_NO_WORD;
    plan->pack = lstm_pack;
    plan->kernel.function = lstm_run;
    plan->facts.variant = plan->set->variant[RONDO__CPU_VARIANT_LSTM];
    return RONDO_OK;
}

const rondo__cpu_operator rondo__cpu_lstm_operators[] = {{"LSTM", lstm_plan, 0}};
const uint32_t rondo__cpu_lstm_operator_count = sizeof rondo__cpu_lstm_operators / sizeof *rondo__cpu_lstm_operators;
