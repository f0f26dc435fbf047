/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM. Every operand's shape follows from the sizes of X, R and the direction. */
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "ops/infer.h"

typedef struct recurrent_sizes {
    int64_t steps, batch, features, hidden, directions;
    bool batch_first; /* layout 1 */
} recurrent_sizes;

/* Case does not matter, as ONNX has it. */
static rondo_status recurrent_activation(const rondo__ops_infer *infer, const char *name) {
    static const char *const known[] = {"Sigmoid",    "Tanh",        "Relu", "Affine",   "LeakyRelu", "ThresholdedRelu",
                                        "ScaledTanh", "HardSigmoid", "Elu",  "Softsign", "Softplus"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (name && strcasecmp(known[i], name) == 0) return RONDO_OK;
    return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "there is no activation '%s'", name ? name : "");
}

static rondo_status recurrent_directions(const rondo__ops_infer *infer, int64_t *out_directions) {
    const char *direction = rondo__ops_attribute_string(infer->request, "direction", "forward");
    bool one = strcmp(direction, "forward") == 0 || strcmp(direction, "reverse") == 0;
    if (!one && strcmp(direction, "bidirectional") != 0) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "there is no direction '%s'", direction);
    }
    *out_directions = one ? 1 : 2;
    return RONDO_OK;
}

static rondo_status recurrent_read(const rondo__ops_infer *infer, recurrent_sizes *sizes) {
    const rondo_operand *x = &infer->request->inputs[0];
    const rondo_operand *r = &infer->request->inputs[2];
    int64_t layout = rondo__ops_attribute_int(infer->request, "layout", 0);
    if (layout != 0 && layout != 1) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "there is no layout %lld", (long long)layout);
    }
    if (x->rank != 3 || r->rank != 3) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "X has rank %d and R %d, both must have 3", x->rank, r->rank);
    }
    RONDO__TRY(recurrent_directions(infer, &sizes->directions));
    sizes->batch_first = layout == 1;
    sizes->steps = x->dims[sizes->batch_first ? 1 : 0];
    sizes->batch = x->dims[sizes->batch_first ? 0 : 1];
    sizes->features = x->dims[2];
    sizes->hidden = r->dims[2];
    int64_t hidden = rondo__ops_attribute_int(infer->request, "hidden_size", sizes->hidden);
    if (hidden < 1 || hidden != sizes->hidden || hidden > INT64_MAX / 8) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "hidden_size is %lld, R is made for %lld", (long long)hidden,
                               (long long)sizes->hidden);
    }
    return RONDO_OK;
}

static rondo_status recurrent_expect(const rondo__ops_infer *infer, uint32_t index, const char *name, int32_t rank,
                                     int64_t a, int64_t b, int64_t c) {
    const rondo_operand *operand = rondo__ops_input(infer, index);
    const int64_t want[3] = {a, b, c};
    if (!operand) return RONDO_OK;
    bool fits = operand->rank == rank;
    for (int32_t i = 0; fits && i < rank; i++) fits = operand->dims[i] == want[i];
    if (fits) return RONDO_OK;
    rondo__ir_dim its[RONDO_RANK_MAX], wanted[3];
    char text[2][160];
    for (int32_t i = 0; i < operand->rank; i++) its[i] = (rondo__ir_dim){.value = operand->dims[i]};
    for (int32_t i = 0; i < rank; i++) wanted[i] = (rondo__ir_dim){.value = want[i]};
    rondo__ir_type have = {.dtype = operand->dtype, .rank = operand->rank, .dims = its};
    rondo__ir_type needed = {.dtype = operand->dtype, .rank = rank, .dims = wanted};
    rondo__ir_type_text(&have, text[0], sizeof text[0]);
    rondo__ir_type_text(&needed, text[1], sizeof text[1]);
    return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input '%s' is %s, it must be %s", name, text[0], text[1]);
}

static rondo_status recurrent_infer_lstm(rondo__ops_infer *infer) {
    recurrent_sizes s = {0};
    RONDO__TRY(recurrent_read(infer, &s));
    int64_t outer = s.batch_first ? s.batch : s.directions, inner = s.batch_first ? s.directions : s.batch;
    RONDO__TRY(recurrent_expect(infer, 1, "W", 3, s.directions, 4 * s.hidden, s.features));
    RONDO__TRY(recurrent_expect(infer, 2, "R", 3, s.directions, 4 * s.hidden, s.hidden));
    RONDO__TRY(recurrent_expect(infer, 3, "B", 2, s.directions, 8 * s.hidden, 0));
    RONDO__TRY(recurrent_expect(infer, 4, "sequence_lens", 1, s.batch, 0, 0));
    RONDO__TRY(recurrent_expect(infer, 5, "initial_h", 3, outer, inner, s.hidden));
    RONDO__TRY(recurrent_expect(infer, 6, "initial_c", 3, outer, inner, s.hidden));
    RONDO__TRY(recurrent_expect(infer, 7, "P", 2, s.directions, 3 * s.hidden, 0));
    const rondo_attribute *activations = rondo__ops_attribute_find(infer->request, "activations");
    if (activations && activations->count != 3u * (uint32_t)s.directions) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "%u activations are named, three a direction are needed",
                               activations->count);
    }
    for (uint32_t i = 0; activations && i < activations->count; i++)
        RONDO__TRY(recurrent_activation(infer, activations->value.strings[i].data));
    rondo_dtype dtype = infer->request->inputs[0].dtype;
    const int64_t by_step[4] = {s.steps, s.directions, s.batch, s.hidden};
    const int64_t by_batch[4] = {s.batch, s.steps, s.directions, s.hidden};
    const int64_t last[3] = {outer, inner, s.hidden};
    rondo__ops_result(infer, 0, dtype, 4, s.batch_first ? by_batch : by_step);
    rondo__ops_result(infer, 1, dtype, 3, last);
    rondo__ops_result(infer, 2, dtype, 3, last);
    return RONDO_OK;
}

static const rondo__ops_operand recurrent_lstm_inputs[] = {{"X", RONDO__OPS_FLOATS, 'T', 0, 0, 0},
                                                           {"W", RONDO__OPS_FLOATS, 'T', 0, 0, 0},
                                                           {"R", RONDO__OPS_FLOATS, 'T', 0, 0, 0},
                                                           {"B", RONDO__OPS_FLOATS, 'T', 1, 0, 0},
                                                           {"sequence_lens", RONDO__OPS_BIT(I32), 0, 1, 0, 0},
                                                           {"initial_h", RONDO__OPS_FLOATS, 'T', 1, 0, 0},
                                                           {"initial_c", RONDO__OPS_FLOATS, 'T', 1, 0, 0},
                                                           {"P", RONDO__OPS_FLOATS, 'T', 1, 0, 0}};
static const rondo__ops_operand recurrent_lstm_outputs[] = {{"Y", RONDO__OPS_FLOATS, 'T', 1, 0, 0},
                                                            {"Y_h", RONDO__OPS_FLOATS, 'T', 1, 0, 0},
                                                            {"Y_c", RONDO__OPS_FLOATS, 'T', 1, 0, 0}};
static const rondo__ops_attribute recurrent_lstm_attributes[] = {
    {"activation_alpha", RONDO_ATTRIBUTE_FLOATS, 0, NULL},
    {"activation_beta", RONDO_ATTRIBUTE_FLOATS, 0, NULL},
    {"activations", RONDO_ATTRIBUTE_STRINGS, 0, "Sigmoid, Tanh, Tanh a direction"},
    {"clip", RONDO_ATTRIBUTE_FLOAT, 0, NULL},
    {"direction", RONDO_ATTRIBUTE_STRING, 0, "forward"},
    {"hidden_size", RONDO_ATTRIBUTE_INT, 0, "that of R"},
    {"input_forget", RONDO_ATTRIBUTE_INT, 0, "0"},
    {"layout", RONDO_ATTRIBUTE_INT, 0, "0"}};
const rondo__ops_prototype rondo__ops_LSTM = {.name = "LSTM",
                                              .summary =
                                                  "A long short-term memory over a sequence, in one direction or both",
                                              RONDO__OPS_INPUTS(recurrent_lstm_inputs),
                                              RONDO__OPS_OUTPUTS(recurrent_lstm_outputs),
                                              RONDO__OPS_ATTRIBUTES(recurrent_lstm_attributes),
                                              .infer = recurrent_infer_lstm};
