/* SPDX-License-Identifier: Apache-2.0
 *
 * Conv in one or two dims: few columns become a product with the outputs in the lanes, many keep space in the lanes. */
#include <string.h>

#include "plan_conv.h"

static rondo_status conv_ints(const rondo__cpu_plan *plan, const char *name, uint32_t count, int64_t otherwise,
                              int64_t *out) {
    rondo_status status = rondo__cpu_attribute_ints(plan, name, count, otherwise, out);
    if (status) return status;
    for (uint32_t i = 0; i < count; i++) {
        if (out[i] < 0 || out[i] > INT32_MAX) return rondo__cpu_refuse(plan, "attribute %s is out of range", name);
    }
    return RONDO_OK;
}

static rondo_status conv_space(rondo__cpu_plan *plan, rondo__cpu_conv_problem *p, uint32_t dims) {
    const rondo_operand *x = rondo__cpu_input(plan, 0), *w = rondo__cpu_input(plan, 1), *y = rondo__cpu_output(plan, 0);
    const bool upper = rondo__cpu_attribute_is(plan, "auto_pad", "SAME_UPPER");
    const bool lower = rondo__cpu_attribute_is(plan, "auto_pad", "SAME_LOWER");
    const bool given = rondo__cpu_attribute_is(plan, "auto_pad", "NOTSET");
    int64_t step[2], spread[2], pads[4];
    rondo_status status = conv_ints(plan, "strides", dims, 1, step);
    if (!status) status = conv_ints(plan, "dilations", dims, 1, spread);
    if (!status) status = conv_ints(plan, "pads", 2 * dims, 0, pads);
    if (status) return status;
    for (uint32_t i = 0; i < 2; i++) p->size[i] = p->out[i] = p->kernel[i] = p->step[i] = p->spread[i] = 1;
    for (uint32_t i = 0; i < dims; i++) {
        const uint32_t at = i + 2 - dims;
        const uint64_t size = (uint64_t)x->dims[2 + i], kernel = (uint64_t)w->dims[2 + i],
                       out = (uint64_t)y->dims[2 + i];
        if (step[i] < 1 || spread[i] < 1 || kernel < 1 || size > INT32_MAX || kernel > INT32_MAX || out > INT32_MAX)
            return rondo__cpu_refuse(plan, "strides, dilations and kernel are at least 1");
        const uint64_t reach = (kernel - 1) * (uint64_t)spread[i] + 1,
                       need = (out ? out - 1 : 0) * (uint64_t)step[i] + reach;
        uint64_t before = given ? (uint64_t)pads[i] : 0, all = given ? before + (uint64_t)pads[dims + i] : 0;
        if (!given && (upper || lower)) {
            all = need > size ? need - size : 0;
            before = upper ? all / 2 : all - all / 2;
        }
        if (size + all < reach || (size + all - reach) / (uint64_t)step[i] + 1 != out)
            return rondo__cpu_refuse(plan, "the output's size does not follow from the input's");
        if (need > INT32_MAX) return rondo__cpu_refuse(plan, "the padded input is too large");
        p->size[at] = size;
        p->out[at] = out;
        p->kernel[at] = kernel;
        p->step[at] = (uint64_t)step[i];
        p->spread[at] = (uint64_t)spread[i];
        p->before[at] = before;
    }
    return RONDO_OK;
}

/* Asked about every weight each time a kernel is looked for, so eight at a time: an exponent of all ones is no number.
 * Vectors of 16 bytes, which every target has. */
static bool conv_finite(const float *w, uint64_t count) {
    typedef uint32_t conv_bits __attribute__((vector_size(16), aligned(4), may_alias));
    const conv_bits exponent = {0x7f800000u, 0x7f800000u, 0x7f800000u, 0x7f800000u};
    conv_bits bad = {0}, also = {0};
    uint64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const conv_bits *bits = (const conv_bits *)(const void *)(w + i);
        bad |= (conv_bits)((bits[0] & exponent) == exponent);
        also |= (conv_bits)((bits[1] & exponent) == exponent);
    }
    bad |= also;
    uint32_t any = bad[0] | bad[1] | bad[2] | bad[3];
    for (; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, w + i, sizeof bits);
        any |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return any == 0;
}

static rondo_status conv_types(const rondo__cpu_plan *plan) {
    const rondo_operand *x = rondo__cpu_input(plan, 0), *w = rondo__cpu_input(plan, 1), *b = rondo__cpu_input(plan, 2);
    const rondo_operand *y = rondo__cpu_output(plan, 0);
    if (!rondo__cpu_is(x, RONDO_DTYPE_F32) || !rondo__cpu_is(w, RONDO_DTYPE_F32) ||
        !rondo__cpu_is(y, RONDO_DTYPE_F32) || (b && !rondo__cpu_is(b, RONDO_DTYPE_F32)))
        return rondo__cpu_refuse(plan, "only float32 has a fast kernel");
    if (x->rank < 3 || x->rank > 4 || w->rank != x->rank || y->rank != x->rank)
        return rondo__cpu_refuse(plan, "only one and two dims have a fast kernel");
    return RONDO_OK;
}

/* A line that goes down lies in memory as one that goes across. */
static void conv_turn_line(rondo__cpu_conv_problem *p) {
    uint64_t *pairs[] = {p->size, p->out, p->kernel, p->step, p->spread, p->before};
    if (p->size[1] != 1 || p->out[1] != 1 || p->kernel[1] != 1 || p->before[1] != 0) return;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const uint64_t down = pairs[i][0];
        pairs[i][0] = pairs[i][1];
        pairs[i][1] = down;
    }
}

static rondo_status conv_read(rondo__cpu_plan *plan, rondo__cpu_conv_problem *p) {
    rondo_status status = rondo__cpu_shape_check(plan, 2, 3, 1);
    if (!status) status = conv_types(plan);
    if (status) return status;
    const rondo_operand *x = rondo__cpu_input(plan, 0), *w = rondo__cpu_input(plan, 1), *b = rondo__cpu_input(plan, 2);
    const rondo_operand *y = rondo__cpu_output(plan, 0);
    const int64_t groups = rondo__cpu_attribute_int(plan, "group", 1);
    *p = (rondo__cpu_conv_problem){.batch = (uint64_t)x->dims[0], .w_constant = w->constant, .bias = b};
    if (groups < 1 || x->dims[1] % groups != 0 || w->dims[0] % groups != 0 || x->dims[1] / groups != w->dims[1] ||
        y->dims[0] != x->dims[0] || y->dims[1] != w->dims[0] || (b && rondo__cpu_elements(b) != (uint64_t)w->dims[0]))
        return rondo__cpu_refuse(plan, "channels and groups do not fit");
    if (rondo__cpu_elements(x) == 0 || rondo__cpu_elements(w) == 0 || rondo__cpu_elements(y) == 0)
        return rondo__cpu_refuse(plan, "an empty convolution");
    p->groups = (uint64_t)groups;
    p->channels = (uint64_t)w->dims[1];
    p->outputs = (uint64_t)w->dims[0] / p->groups;
    status = conv_space(plan, p, (uint32_t)x->rank - 2);
    if (!status) conv_turn_line(p);
    if (!status) status = rondo__cpu_activation_read(plan, &p->activation);
    if (status) return status;
    /* Padding takes part as zeros, and zero times infinity is not zero. What was found is not looked at again. */
    if (plan->looking && w->constant && !conv_finite(w->constant, rondo__cpu_elements(w)))
        return rondo__cpu_refuse(plan, "weights that are not finite");
    return RONDO_OK;
}

/* -------------------------------------------------------------------------------------------------- few columns */

typedef struct conv_few {
    rondo__cpu_gemm_loop loop;
    uint64_t batch, x_batch, y_batch;
    uint32_t x_word, packed_word, bias_word, y_word;
    uint64_t bias_at;
    rondo__cpu_gemm gemm;
    uint64_t x_at; /* floats behind x where the first column begins */
    rondo__cpu_activation activation;
    rondo__cpu_turn_loop turn; /* null: the input is read where it is */
    uint64_t channels, length, before, after;
    uint32_t scratch_word;
    /* For packing. */
    uint64_t pack_taps, pack_depth, w_tap, w_k, w_at, w_output;
} conv_few;

static int32_t conv_few_run(const void *context, const uint64_t *words) {
    const conv_few *c = context;
    const float *x = RONDO__CPU_AT(float, words[c->x_word]), *packed = RONDO__CPU_AT(float, words[c->packed_word]);
    const float *bias =
        c->bias_word == RONDO__CPU_CONV_NO_WORD ? NULL : RONDO__CPU_AT(float, words[c->bias_word]) + c->bias_at;
    float *y = RONDO__CPU_AT(float, words[c->y_word]);
    for (uint64_t n = 0; n < c->batch; n++, x += c->x_batch, y += c->y_batch) {
        const float *from = x + c->x_at;
        if (c->turn) {
            float *turned = RONDO__CPU_AT(float, words[c->scratch_word]);
            c->turn(x, turned, c->channels, c->length, c->before, c->after);
            from = turned + c->x_at;
        }
        c->loop(&c->gemm, from, packed, bias, y);
        if (c->activation.strip) c->activation.strip(y, y, c->y_batch, c->activation.parameter);
    }
    return 0;
}

static void conv_few_pack(const rondo__cpu_plan *plan, void *out) {
    const conv_few *c = plan->kernel.context;
    const float *w = (const float *)plan->request->inputs[1].constant + c->w_at;
    float *packed = out;
    memset(out, 0, plan->facts.packed_bytes);
    if (c->loop == plan->set->dot) {
        for (uint64_t m = 0; m < c->gemm.outputs; m++) {
            for (uint64_t tap = 0; tap < c->pack_taps; tap++) {
                for (uint64_t k = 0; k < c->pack_depth; k++)
                    packed[(m * c->pack_taps + tap) * c->pack_depth + k] =
                        w[m * c->w_output + tap * c->w_tap + k * c->w_k];
            }
        }
    } else {
        rondo__cpu_gemm two = c->gemm;
        two.taps = c->pack_taps;
        two.depth = c->pack_depth;
        rondo__cpu_gemm_pack(plan->set, &two, w, c->w_output, c->w_tap, c->w_k, packed);
    }
    if (c->bias_word == c->packed_word)
        memcpy(packed + c->bias_at, plan->request->inputs[2].constant, c->gemm.outputs * sizeof(float));
}

/* The taps of all columns that meet the input: [first, first + count) of the kernel, never none. */
static void conv_few_taps(const rondo__cpu_conv_problem *p, uint64_t *out_first, uint64_t *out_count) {
    uint64_t first = p->kernel[1], last = 0;
    for (uint64_t t = 0; t < p->kernel[1]; t++) {
        for (uint64_t n = 0; n < p->out[1]; n++) {
            const uint64_t at = n * p->step[1] + t * p->spread[1];
            if (at < p->before[1] || at - p->before[1] >= p->size[1]) continue;
            if (t < first) first = t;
            last = t;
        }
    }
    *out_first = first <= last ? first : 0;
    *out_count = first <= last ? last - first + 1 : 1;
}

/* How x is stepped through, and in which order the weights are packed. */
static void conv_few_steps(const rondo__cpu_conv_problem *p, conv_few *c) {
    uint64_t first, count;
    conv_few_taps(p, &first, &count);
    const uint64_t spread = p->spread[1], step = p->step[1], length = p->size[1], begin = first * spread;
    const uint64_t last = (p->out[1] - 1) * step + begin + (count - 1) * spread; /* in the padded row */
    const uint64_t need = p->before[1] > begin ? p->before[1] - begin : 0;
    const uint64_t after = last >= p->before[1] + length ? last - p->before[1] - length + 1 : 0;
    const uint64_t kernel = p->kernel[1], channels = p->channels;
    c->w_output = channels * kernel;
    c->w_at = first;
    c->x_at = need > 0 ? 0 : begin - p->before[1];
    c->gemm.x_row = step;
    if (need > 0 || after > 0) { /* turned: [padded length][channels] */
        c->before = need;
        c->after = after;
        c->x_at *= channels;
        c->gemm.x_row = step * channels;
        c->gemm.taps = c->pack_taps = count;
        c->gemm.depth = c->pack_depth = channels;
        c->gemm.x_tap = spread * channels;
        c->gemm.x_depth = 1;
        c->w_tap = 1;
        c->w_k = kernel;
        if (spread == 1) c->gemm.depth *= count, c->gemm.taps = 1;
        return;
    }
    const bool by_tap = count > channels; /* the longer run inside */
    c->gemm.taps = c->pack_taps = by_tap ? channels : count;
    c->gemm.depth = c->pack_depth = by_tap ? count : channels;
    c->gemm.x_tap = by_tap ? length : spread;
    c->gemm.x_depth = by_tap ? spread : length;
    c->w_tap = by_tap ? kernel : 1;
    c->w_k = by_tap ? 1 : kernel;
    if (count == length && spread == 1 && c->x_at == 0) { /* all of x, in its own order */
        c->pack_taps = channels;
        c->pack_depth = count;
        c->w_tap = kernel;
        c->w_k = 1;
        c->gemm.taps = 1;
        c->gemm.depth = channels * count;
        c->gemm.x_depth = 1;
    } else if (c->gemm.taps > 1 && c->gemm.x_tap == c->gemm.depth * c->gemm.x_depth) {
        c->gemm.depth *= c->gemm.taps;
        c->gemm.taps = 1;
    }
}

static rondo_status conv_plan_few(rondo__cpu_plan *plan, const rondo__cpu_conv_problem *p) {
    conv_few *c;
    rondo_status status = rondo__cpu_context(plan, sizeof *c, &c);
    if (status) return status;
    c->gemm = (rondo__cpu_gemm){
        .rows = p->out[1], .outputs = p->outputs, .y_row = 1, .y_output = p->out[1], .relu = p->activation.relu};
    if (p->out[1] == 1) c->gemm.y_row = p->outputs;
    conv_few_steps(p, c);
    rondo__cpu_gemm_blocks(plan->set, &c->gemm);
    const bool turned = c->before > 0 || c->after > 0;
    const bool dot = p->outputs <= plan->set->lanes / 2 && c->gemm.taps == 1 && c->gemm.x_depth == 1;
    c->loop = dot ? plan->set->dot : plan->set->gemm;
    if (!p->activation.relu) c->activation = p->activation;
    c->batch = p->batch;
    c->channels = p->channels;
    c->length = p->size[1];
    c->x_batch = p->channels * p->size[1];
    c->y_batch = p->outputs * p->out[1];
    c->y_word = rondo__cpu_word_out(plan, 0);
    if (turned) {
        c->turn = plan->set->turn;
        plan->facts.scratch_bytes = p->channels * (c->before + p->size[1] + c->after) * sizeof(float);
        c->scratch_word = rondo__cpu_word_scratch(plan);
    }
    c->packed_word = rondo__cpu_word_packed(plan);
    const uint64_t weights = dot ? p->outputs * c->gemm.depth : rondo__cpu_gemm_packed(plan->set, &c->gemm);
    plan->facts.packed_bytes = weights * sizeof(float);
    plan->facts.absorbed_inputs = 2;
    c->bias_word = RONDO__CPU_CONV_NO_WORD;
    if (p->bias && p->bias->constant) {
        c->bias_word = c->packed_word;
        c->bias_at = weights;
        plan->facts.packed_bytes += p->outputs * sizeof(float);
        plan->facts.absorbed_inputs |= 4;
    } else if (p->bias) {
        c->bias_word = 2;
    }
    plan->pack = conv_few_pack;
    plan->kernel.function = conv_few_run;
    plan->facts.variant = plan->set->variant[dot      ? RONDO__CPU_VARIANT_DOT
                                             : turned ? RONDO__CPU_VARIANT_CONV_FEW_TURNED
                                                      : RONDO__CPU_VARIANT_CONV_FEW];
    return RONDO_OK;
}

/* -------------------------------------------------------------------------------------------------- many columns */

typedef struct conv_many {
    rondo__cpu_conv_loop loop;
    uint32_t w_word, bias_word, y_word, scratch_word;
    uint64_t bias_at;
    rondo__cpu_activation activation;
    uint64_t y_count;
    uint64_t pack_at; /* floats behind scratch where weights are packed at every run; 0: packed once */
    rondo__cpu_conv conv;
} conv_many;

static void conv_pack_weights(const rondo__cpu_conv *c, const float *w, float *out) {
    for (uint64_t g = 0; g < c->groups; g++, w += c->outputs * c->depth) {
        for (uint64_t m = 0; m < c->outputs; m += c->tile) {
            for (uint64_t k = 0; k < c->depth; k++) {
                for (uint64_t i = 0; i < c->tile; i++) *out++ = m + i < c->outputs ? w[(m + i) * c->depth + k] : 0.0f;
            }
        }
    }
}

static uint64_t conv_packed_floats(const rondo__cpu_conv *c) {
    return c->groups * ((c->outputs + c->tile - 1) / c->tile * c->tile) * c->depth;
}

static int32_t conv_many_run(const void *context, const uint64_t *words) {
    const conv_many *c = context;
    const float *bias =
        c->bias_word == RONDO__CPU_CONV_NO_WORD ? NULL : RONDO__CPU_AT(float, words[c->bias_word]) + c->bias_at;
    const float *w = RONDO__CPU_AT(float, words[c->w_word]);
    float *y = RONDO__CPU_AT(float, words[c->y_word]), *scratch = RONDO__CPU_AT(float, words[c->scratch_word]);
    if (c->pack_at > 0) {
        conv_pack_weights(&c->conv, w, scratch + c->pack_at);
        w = scratch + c->pack_at;
    }
    c->loop(&c->conv, RONDO__CPU_AT(float, words[0]), w, bias, y, scratch);
    if (c->activation.strip) c->activation.strip(y, y, c->y_count, c->activation.parameter);
    return 0;
}

static void conv_many_pack(const rondo__cpu_plan *plan, void *out) {
    const conv_many *c = plan->kernel.context;
    conv_pack_weights(&c->conv, plan->request->inputs[1].constant, out);
    if (c->bias_word == c->w_word)
        memcpy((float *)out + c->bias_at, plan->request->inputs[2].constant,
               c->conv.groups * c->conv.outputs * sizeof(float));
}

static void conv_many_shape(const rondo__cpu_plan *plan, const rondo__cpu_conv_problem *p, rondo__cpu_conv *c) {
    const uint64_t right = p->step[1];
    const uint64_t widest = plan->set->conv_tile;
    *c = (rondo__cpu_conv){.batch = p->batch,
                           .groups = p->groups,
                           .channels = p->channels,
                           .outputs = p->outputs,
                           .height = p->size[0],
                           .width = p->size[1],
                           .out_height = p->out[0],
                           .out_width = p->out[1],
                           .pad_top = p->before[0],
                           .pad_left = p->before[1],
                           .step_down = p->step[0],
                           .step_right = right,
                           .depth = p->channels * p->kernel[0] * p->kernel[1],
                           .relu = p->activation.relu};
    c->tile = p->outputs >= widest && p->outputs % widest == 0 ? (uint32_t)widest
              : p->outputs >= 3                                ? 4
                                                               : (uint32_t)p->outputs;
    c->padded_height = (p->out[0] - 1) * p->step[0] + (p->kernel[0] - 1) * p->spread[0] + 1;
    c->phase_width = p->out[1] + (p->kernel[1] - 1) * p->spread[1] / right;
    c->pitch = c->phase_width * right;
    c->plane = c->pitch * c->padded_height;
}

static void conv_many_offsets(const rondo__cpu_conv_problem *p, const rondo__cpu_conv *c, int32_t *offset) {
    for (uint64_t channel = 0; channel < p->channels; channel++) {
        for (uint64_t ky = 0; ky < p->kernel[0]; ky++) {
            for (uint64_t kx = 0; kx < p->kernel[1]; kx++) {
                const uint64_t across = kx * p->spread[1];
                *offset++ = (int32_t)(channel * c->plane + ky * p->spread[0] * c->pitch +
                                      across % c->step_right * c->phase_width + across / c->step_right);
            }
        }
    }
}

static rondo_status conv_plan_many(rondo__cpu_plan *plan, const rondo__cpu_conv_problem *p) {
    rondo__cpu_conv shape;
    conv_many_shape(plan, p, &shape);
    uint64_t planes;
    if (shape.pitch > INT32_MAX || shape.plane > INT32_MAX ||
        __builtin_mul_overflow(shape.plane, shape.channels, &planes) || planes > INT32_MAX)
        return rondo__cpu_refuse(plan, "the padded input is too large");
    conv_many *c;
    rondo_status status = rondo__cpu_context(plan, sizeof *c + shape.depth * sizeof(int32_t), &c);
    if (status) return status;
    int32_t *offset = (int32_t *)(void *)(c + 1);
    conv_many_offsets(p, &shape, offset);
    c->conv = shape;
    c->conv.offset = offset;
    c->loop = plan->set->conv;
    if (!p->activation.relu) c->activation = p->activation;
    c->y_count = rondo__cpu_elements(rondo__cpu_output(plan, 0));
    c->y_word = rondo__cpu_word_out(plan, 0);
    c->scratch_word = rondo__cpu_word_scratch(plan);
    const uint64_t slack = (uint64_t)plan->set->conv_vectors * plan->set->lanes; /* loads run past the last row */
    const uint64_t scratch = (planes + slack + 15) / 16 * 16, weights = conv_packed_floats(&shape);
    plan->facts.scratch_bytes = scratch * sizeof(float);
    c->bias_word = p->bias ? 2 : RONDO__CPU_CONV_NO_WORD;
    if (p->w_constant) {
        c->w_word = rondo__cpu_word_packed(plan);
        plan->facts.packed_bytes = weights * sizeof(float);
        plan->facts.absorbed_inputs = 2;
        if (p->bias && p->bias->constant) {
            c->bias_word = c->w_word;
            c->bias_at = weights;
            plan->facts.packed_bytes += p->groups * p->outputs * sizeof(float);
            plan->facts.absorbed_inputs |= 4;
        }
        plan->pack = conv_many_pack;
    } else {
        c->w_word = 1;
        c->pack_at = scratch;
        plan->facts.scratch_bytes += weights * sizeof(float);
    }
    plan->kernel.function = conv_many_run;
    plan->facts.variant = plan->set->variant[RONDO__CPU_VARIANT_CONV];
    return RONDO_OK;
}

static rondo_status conv_plan(rondo__cpu_plan *plan) {
    rondo__cpu_conv_problem p;
    rondo_status status = conv_read(plan, &p);
    if (status) return status;
    const bool line = p.size[0] == 1 && p.kernel[0] == 1 && p.out[0] == 1 && p.before[0] == 0;
    const bool few = line && p.groups == 1 && p.w_constant &&
                     (p.out[1] == 1 || (p.out[1] < 2 * plan->set->lanes && p.outputs >= plan->set->lanes));
    if (few) return conv_plan_few(plan, &p);
    return rondo__cpu_flat_takes(plan, &p) ? rondo__cpu_flat_plan(plan, &p) : conv_plan_many(plan, &p);
}

const rondo__cpu_operator rondo__cpu_conv_operators[] = {{"Conv", conv_plan, 0}};
const uint32_t rondo__cpu_conv_operator_count = sizeof rondo__cpu_conv_operators / sizeof *rondo__cpu_conv_operators;
