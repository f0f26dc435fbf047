/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM with all that ONNX gives it: both directions, both layouts, peepholes, sequence lengths, clip, coupled gates and
 * any of its activation functions. One row of the batch runs through all its steps before the next one; the state stays
 * in double from step to step and is rounded where it is written out.
 *
 *   i = f(Wi x + Ri h + Pi c + b)      f = f(Wf x + Rf h + Pf c + b), or 1 - i when they are coupled
 *   g = g(Wc x + Rc h + b)             C = f c + i g
 *   o = f(Wo x + Ro h + Po C + b)      H = o h(C) */
#include "ref.h"

#include <math.h>
#include <strings.h>

/* ---------------------------------------------------------------------------------------- activation functions */

enum {
    LSTM_SIGMOID,
    LSTM_TANH,
    LSTM_RELU,
    LSTM_AFFINE,
    LSTM_LEAKY_RELU,
    LSTM_THRESHOLDED_RELU,
    LSTM_SCALED_TANH,
    LSTM_HARD_SIGMOID,
    LSTM_ELU,
    LSTM_SOFTSIGN,
    LSTM_SOFTPLUS
};

static const struct lstm_function {
    const char *name;
    bool takes_alpha, takes_beta;
    double alpha, beta; /* where the node gives none */
} lstm_functions[] = {
    [LSTM_SIGMOID] = {"Sigmoid", false, false, 0, 0},
    [LSTM_TANH] = {"Tanh", false, false, 0, 0},
    [LSTM_RELU] = {"Relu", false, false, 0, 0},
    [LSTM_AFFINE] = {"Affine", true, true, 1, 0},
    [LSTM_LEAKY_RELU] = {"LeakyRelu", true, false, 0.01, 0},
    [LSTM_THRESHOLDED_RELU] = {"ThresholdedRelu", true, false, 1, 0},
    [LSTM_SCALED_TANH] = {"ScaledTanh", true, true, 1, 1},
    [LSTM_HARD_SIGMOID] = {"HardSigmoid", true, true, 0.2, 0.5},
    [LSTM_ELU] = {"Elu", true, false, 1, 0},
    [LSTM_SOFTSIGN] = {"Softsign", false, false, 0, 0},
    [LSTM_SOFTPLUS] = {"Softplus", false, false, 0, 0},
};

static double lstm_apply(const rondo__ref_gate *gate, double x) {
    double y;
    switch (gate->function) {
    case LSTM_SIGMOID: return rondo__ref_sigmoid(x);
    case LSTM_TANH: return tanh(x);
    case LSTM_RELU: return x < 0 ? 0 : x;
    case LSTM_AFFINE: return gate->alpha * x + gate->beta;
    case LSTM_LEAKY_RELU: return x < 0 ? gate->alpha * x : x;
    case LSTM_THRESHOLDED_RELU: return x < gate->alpha ? 0 : x;
    case LSTM_SCALED_TANH: return gate->alpha * tanh(gate->beta * x);
    case LSTM_HARD_SIGMOID: y = gate->alpha * x + gate->beta; return y < 0 ? 0 : y > 1 ? 1 : y;
    case LSTM_ELU: return x < 0 ? gate->alpha * expm1(x) : x;
    case LSTM_SOFTSIGN: return x / (1 + fabs(x));
    default: return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    }
}

/* The parameters lists hold one entry for each function that takes one, in the order of the functions. */
static rondo_status lstm_build_gates(rondo__ref_builder *b) {
    rondo__ref_lstm *l = &b->kernel->as.lstm;
    const rondo_attribute *names = rondo__ref_attribute(b->request, "activations");
    const rondo_attribute *lists[2] = {rondo__ref_attribute(b->request, "activation_alpha"),
                                       rondo__ref_attribute(b->request, "activation_beta")};
    static const char *const usual[3] = {"Sigmoid", "Tanh", "Tanh"};
    uint32_t used[2] = {0, 0};
    if (names && (names->kind != RONDO_ATTRIBUTE_STRINGS || names->count != 3 * l->directions)) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "there must be three activations for each direction");
    }
    for (int i = 0; i < 2; i++) {
        if (lists[i] && lists[i]->kind != RONDO_ATTRIBUTE_FLOATS) {
            return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the activations' parameters must be floats");
        }
    }
    for (int64_t i = 0; i < 3 * l->directions; i++) {
        rondo__ref_gate *gate = &l->gates[i / 3][i % 3];
        const char *name = names ? names->value.strings[i].data : usual[i % 3];
        const int32_t count = (int32_t)(sizeof lstm_functions / sizeof *lstm_functions);
        int32_t f = 0;
        while (f < count && strcasecmp(lstm_functions[f].name, name ? name : "") != 0) f++;
        if (f == count) {
            return RONDO__REF_REFUSE(b, UNSUPPORTED, "it does not know the activation '%s'", name ? name : "");
        }
        *gate = (rondo__ref_gate){f, lstm_functions[f].alpha, lstm_functions[f].beta};
        if (lstm_functions[f].takes_alpha && lists[0] && used[0] < lists[0]->count) {
            gate->alpha = (double)lists[0]->value.floats[used[0]++];
        }
        if (lstm_functions[f].takes_beta && lists[1] && used[1] < lists[1]->count) {
            gate->beta = (double)lists[1]->value.floats[used[1]++];
        }
    }
    return RONDO_OK;
}

/* ---------------------------------------------------------------------------------------------------- shapes */

enum { LSTM_X, LSTM_W, LSTM_R, LSTM_B, LSTM_LENGTHS, LSTM_H0, LSTM_C0, LSTM_P };

static rondo_status lstm_need(rondo__ref_builder *b, const char *what, const rondo__ref_tensor *t, int32_t rank,
                              int64_t d0, int64_t d1, int64_t d2, int64_t d3) {
    const int64_t dims[4] = {d0, d1, d2, d3};
    if (!t || t->dtype == RONDO_DTYPE_UNDEFINED) return RONDO_OK;
    rondo_status status = rondo__ref_need_same_type(b, what, t, rondo__ref_input(b->kernel, LSTM_X)->dtype);
    return status ? status : rondo__ref_need_dims(b, what, t, rank, dims);
}

static rondo_status lstm_need_shapes(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_lstm *l = &k->as.lstm;
    const int64_t n = l->directions, h = l->hidden;
    const rondo__ref_tensor *lengths = rondo__ref_optional_input(k, LSTM_LENGTHS);
    const rondo__ref_tensor *outs[3] = {NULL, NULL, NULL};
    for (uint32_t i = 0; i < k->output_count; i++) outs[i] = rondo__ref_output(k, i);
    const int64_t first = l->layout ? l->batch : n, second = l->layout ? n : l->batch; /* of the states */
    rondo_status status = lstm_need(b, "W", rondo__ref_input(k, LSTM_W), 3, n, 4 * h, l->features, 0);
    if (!status) status = lstm_need(b, "R", rondo__ref_input(k, LSTM_R), 3, n, 4 * h, h, 0);
    if (!status) status = lstm_need(b, "B", rondo__ref_optional_input(k, LSTM_B), 2, n, 8 * h, 0, 0);
    if (!status) status = lstm_need(b, "initial_h", rondo__ref_optional_input(k, LSTM_H0), 3, first, second, h, 0);
    if (!status) status = lstm_need(b, "initial_c", rondo__ref_optional_input(k, LSTM_C0), 3, first, second, h, 0);
    if (!status) status = lstm_need(b, "P", rondo__ref_optional_input(k, LSTM_P), 2, n, 3 * h, 0, 0);
    if (!status && lengths) status = rondo__ref_need_same_type(b, "sequence_lens", lengths, RONDO_DTYPE_I32);
    if (!status && lengths) status = rondo__ref_need_dims(b, "sequence_lens", lengths, 1, &l->batch);
    if (!status && l->layout) status = lstm_need(b, "Y", outs[0], 4, l->batch, l->steps, n, h);
    if (!status && !l->layout) status = lstm_need(b, "Y", outs[0], 4, l->steps, n, l->batch, h);
    if (!status) status = lstm_need(b, "Y_h", outs[1], 3, first, second, h, 0);
    if (!status) status = lstm_need(b, "Y_c", outs[2], 3, first, second, h, 0);
    return status;
}

static rondo_status lstm_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    rondo__ref_lstm *l = &k->as.lstm;
    const rondo__ref_tensor *x = rondo__ref_input(k, LSTM_X), *r = rondo__ref_input(k, LSTM_R);
    const char *direction = "forward";
    int64_t coupled = 0;
    float clip = 0;
    rondo_status status = rondo__ref_need_types(b, "X", x, RONDO__REF_FLOAT_TYPES);
    if (status) return status;
    if (x->rank != 3 || r->rank != 3) return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "X and R must have rank 3");
    l->hidden = r->dims[2];
    status = rondo__ref_attribute_string(b, "direction", &direction);
    if (!status) status = rondo__ref_attribute_int(b, "hidden_size", &l->hidden);
    if (!status) status = rondo__ref_attribute_int(b, "layout", &l->layout);
    if (!status) status = rondo__ref_attribute_int(b, "input_forget", &coupled);
    if (!status) status = rondo__ref_attribute_float(b, "clip", &clip);
    if (status) return status;
    l->reverse = strcmp(direction, "reverse") == 0;
    l->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    if (!l->reverse && l->directions == 1 && strcmp(direction, "forward") != 0) {
        return RONDO__REF_REFUSE(b, UNSUPPORTED, "it does not know the direction '%s'", direction);
    }
    if (l->layout != 0 && l->layout != 1) {
        return RONDO__REF_REFUSE(b, UNSUPPORTED, "it does not know the layout %lld", (long long)l->layout);
    }
    if (l->hidden < 1 || l->hidden > INT32_MAX) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "hidden_size is %lld", (long long)l->hidden);
    }
    l->steps = x->dims[l->layout ? 1 : 0];
    l->batch = x->dims[l->layout ? 0 : 1];
    l->features = x->dims[2];
    l->input_forget = coupled != 0;
    l->has_clip = rondo__ref_attribute(b->request, "clip") != NULL && clip > 0;
    l->clip = (double)clip;
    k->scratch_bytes = 3 * (uint64_t)l->hidden * sizeof(double);
    status = lstm_build_gates(b);
    return status ? status : lstm_need_shapes(b);
}

/* --------------------------------------------------------------------------------------------------- running */

/* One direction of one row of the batch. */
typedef struct lstm_row {
    const rondo__ref_lstm *l;
    rondo_dtype dtype;
    size_t size;
    const rondo__ref_gate *gates;
    const unsigned char *x, *w, *r; /* x: this step's; w and r: this direction's */
    const unsigned char *b, *p;     /* null when absent */
    double *h, *c, *next;           /* state, and the h being made */
} lstm_row;

static double lstm_clip(const rondo__ref_lstm *l, double x) {
    if (!l->has_clip) return x;
    x = x < -l->clip ? -l->clip : x;
    return x > l->clip ? l->clip : x;
}

/* What goes into gate number `gate` (of i, o, f, c) of unit j before the peephole. */
static double lstm_sum(const lstm_row *row, int gate, int64_t j) {
    const rondo__ref_lstm *l = row->l;
    const int64_t unit = gate * l->hidden + j;
    double sum = 0;
    if (l->features > 0) {
        sum = rondo__ref_dot(row->dtype, l->features, row->x, 1, row->w + (size_t)(unit * l->features) * row->size, 1);
    }
    for (int64_t i = 0; i < l->hidden; i++) {
        sum += rondo__ref_get(row->dtype, row->r, unit * l->hidden + i) * row->h[i];
    }
    if (row->b) {
        sum += rondo__ref_get(row->dtype, row->b, unit) + rondo__ref_get(row->dtype, row->b, 4 * l->hidden + unit);
    }
    return sum;
}

/* Peephole number `which` (of i, o, f) of unit j. */
static double lstm_peep(const lstm_row *row, int which, int64_t j, double c) {
    return row->p ? rondo__ref_get(row->dtype, row->p, which * row->l->hidden + j) * c : 0;
}

static void lstm_step(lstm_row *row) {
    const rondo__ref_lstm *l = row->l;
    for (int64_t j = 0; j < l->hidden; j++) {
        double i = lstm_apply(&row->gates[0], lstm_clip(l, lstm_sum(row, 0, j) + lstm_peep(row, 0, j, row->c[j])));
        double f = 1 - i;
        if (!l->input_forget) {
            f = lstm_apply(&row->gates[0], lstm_clip(l, lstm_sum(row, 2, j) + lstm_peep(row, 2, j, row->c[j])));
        }
        double g = lstm_apply(&row->gates[1], lstm_clip(l, lstm_sum(row, 3, j)));
        double c = f * row->c[j] + i * g;
        double o = lstm_apply(&row->gates[0], lstm_clip(l, lstm_sum(row, 1, j) + lstm_peep(row, 1, j, c)));
        row->c[j] = c;
        row->next[j] = o * lstm_apply(&row->gates[2], c);
    }
    double *made = row->next;
    row->next = row->h;
    row->h = made;
}

/* A state's place in [directions, batch, hidden], or with the batch first. */
static int64_t lstm_state_at(const rondo__ref_lstm *l, int64_t direction, int64_t n) {
    return (l->layout ? n * l->directions + direction : direction * l->batch + n) * l->hidden;
}

static int64_t lstm_y_at(const rondo__ref_lstm *l, int64_t step, int64_t direction, int64_t n) {
    if (l->layout) return ((n * l->steps + step) * l->directions + direction) * l->hidden;
    return ((step * l->directions + direction) * l->batch + n) * l->hidden;
}

static void lstm_write(const lstm_row *row, uint64_t word, int64_t at, const double *values) {
    if (!word) return;
    for (int64_t j = 0; j < row->l->hidden; j++) {
        rondo__ref_put(row->dtype, rondo__ref_address(word), at + j, values ? values[j] : 0);
    }
}

static void lstm_run_row(lstm_row *row, const rondo__ref_kernel *k, const uint64_t *words, int64_t direction, int64_t n,
                         int64_t length) {
    const rondo__ref_lstm *l = row->l;
    uint64_t outs[3] = {0, 0, 0}; /* stays 0 where unwanted */
    for (uint32_t i = 0; i < k->output_count; i++) {
        if (k->tensors[k->input_count + i].dtype != RONDO_DTYPE_UNDEFINED) outs[i] = words[k->input_count + i];
    }
    const bool backward = l->reverse || direction == 1;
    const int64_t at = lstm_state_at(l, direction, n);
    const void *h0 = rondo__ref_optional_input(k, LSTM_H0) ? rondo__ref_address(words[LSTM_H0]) : NULL;
    const void *c0 = rondo__ref_optional_input(k, LSTM_C0) ? rondo__ref_address(words[LSTM_C0]) : NULL;
    for (int64_t j = 0; j < l->hidden; j++) {
        row->h[j] = h0 ? rondo__ref_get(row->dtype, h0, at + j) : 0;
        row->c[j] = c0 ? rondo__ref_get(row->dtype, c0, at + j) : 0;
    }
    const unsigned char *x = (const unsigned char *)rondo__ref_address(words[LSTM_X]);
    for (int64_t i = 0; i < length; i++) {
        const int64_t step = backward ? length - 1 - i : i;
        const int64_t from = (l->layout ? n * l->steps + step : step * l->batch + n) * l->features;
        row->x = l->features > 0 ? x + (size_t)from * row->size : NULL;
        lstm_step(row);
        lstm_write(row, outs[0], lstm_y_at(l, step, direction, n), row->h);
    }
    for (int64_t step = length; step < l->steps; step++) {
        lstm_write(row, outs[0], lstm_y_at(l, step, direction, n), NULL);
    }
    lstm_write(row, outs[1], at, row->h);
    lstm_write(row, outs[2], at, row->c);
}

static int32_t lstm_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_lstm *l = &k->as.lstm;
    const rondo__ref_tensor *x = &k->tensors[LSTM_X];
    const int64_t h = l->hidden;
    const int32_t *lengths =
        rondo__ref_optional_input(k, LSTM_LENGTHS) ? (const int32_t *)rondo__ref_address(words[LSTM_LENGTHS]) : NULL;
    for (int64_t n = 0; lengths && n < l->batch; n++) {
        if (lengths[n] < 0 || lengths[n] > l->steps) return RONDO__REF_BAD_VALUE;
    }
    double *scratch = (double *)rondo__ref_address(words[k->input_count + k->output_count]);
    for (int64_t d = 0; d < l->directions; d++) {
        lstm_row row = {.l = l, .dtype = x->dtype, .size = x->size, .gates = l->gates[d]};
        if (l->features > 0) {
            row.w =
                (const unsigned char *)rondo__ref_address(words[LSTM_W]) + (size_t)(d * 4 * h * l->features) * x->size;
        }
        row.r = (const unsigned char *)rondo__ref_address(words[LSTM_R]) + (size_t)(d * 4 * h * h) * x->size;
        if (rondo__ref_optional_input(k, LSTM_B)) {
            row.b = (const unsigned char *)rondo__ref_address(words[LSTM_B]) + (size_t)(d * 8 * h) * x->size;
        }
        if (rondo__ref_optional_input(k, LSTM_P)) {
            row.p = (const unsigned char *)rondo__ref_address(words[LSTM_P]) + (size_t)(d * 3 * h) * x->size;
        }
        for (int64_t n = 0; n < l->batch; n++) {
            row.h = scratch;
            row.next = scratch + h;
            row.c = scratch + 2 * h;
            lstm_run_row(&row, k, words, d, n, lengths ? lengths[n] : l->steps);
        }
    }
    return RONDO__REF_OK;
}

const rondo__ref_operator rondo__ref_lstm_operators[] = {
    {"LSTM", 3, 8, 1, 3, "activation_alpha activation_beta activations clip direction hidden_size input_forget layout",
     lstm_build, lstm_run, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
