/* SPDX-License-Identifier: Apache-2.0
 *
 * Gemm and MatMul: which product, where weights and bias come from, and what is left to do after the loop.
 *
 * Constant weights are packed once, with alpha in them, and a constant bias beside them, with beta in it. Weights that
 * a run brings are read where they are when there are few rows, and packed into scratch at every run otherwise. */
#include <string.h>

#include "planner.h"

enum { GEMM_NO_WORD = UINT32_MAX, GEMM_FEW_ROWS = 8 };

typedef struct gemm_context {
    rondo__cpu_gemm_loop loop;
    uint32_t x_word, w_word, bias_word, y_word;
    uint64_t bias_at; /* floats behind the bias' word */
    rondo__cpu_gemm gemm;
    /* Beyond the plain product. */
    rondo__cpu_activation activation;
    const rondo__cpu_set *set; /* weights packed at every run: by this set, into this word */
    uint64_t w_output, w_tap, w_k;
    uint32_t scratch_word;
    uint32_t finish; /* y = alpha * y + beta * c */
    float alpha, beta;
    uint32_t c_word;
    uint64_t c_row, c_output;
    uint64_t batches, y_batch;
    const uint64_t *x_at, *w_at; /* floats where each batch's operand begins */
} gemm_context;

static int32_t gemm_run_plain(const void *context, const uint64_t *words) {
    const gemm_context *c = context;
    const float *bias = c->bias_word == GEMM_NO_WORD ? NULL : RONDO__CPU_AT(float, words[c->bias_word]) + c->bias_at;
    c->loop(&c->gemm, RONDO__CPU_AT(float, words[c->x_word]), RONDO__CPU_AT(float, words[c->w_word]), bias,
            RONDO__CPU_AT(float, words[c->y_word]));
    return 0;
}

static void gemm_finish(const gemm_context *c, const uint64_t *words, float *y) {
    const float *from = c->c_word == GEMM_NO_WORD ? NULL : RONDO__CPU_AT(float, words[c->c_word]);
    for (uint64_t r = 0; r < c->gemm.rows; r++, y += c->gemm.outputs) {
        for (uint64_t m = 0; m < c->gemm.outputs; m++) {
            const float term = from ? c->beta * from[r * c->c_row + m * c->c_output] : 0.0f;
            y[m] = c->alpha * y[m] + term;
        }
    }
}

static int32_t gemm_run_general(const void *context, const uint64_t *words) {
    const gemm_context *c = context;
    const float *bias = c->bias_word == GEMM_NO_WORD ? NULL : RONDO__CPU_AT(float, words[c->bias_word]) + c->bias_at;
    const float *x = RONDO__CPU_AT(float, words[c->x_word]), *w = RONDO__CPU_AT(float, words[c->w_word]);
    float *y = RONDO__CPU_AT(float, words[c->y_word]);
    for (uint64_t n = 0; n < c->batches; n++, y += c->y_batch) {
        const float *weights = w + c->w_at[n];
        if (c->scratch_word != GEMM_NO_WORD) {
            float *packed = RONDO__CPU_AT(float, words[c->scratch_word]);
            if (n == 0 || c->w_at[n] != c->w_at[n - 1])
                rondo__cpu_gemm_pack(c->set, &c->gemm, weights, c->w_output, c->w_tap, c->w_k, packed);
            weights = packed;
        }
        c->loop(&c->gemm, x + c->x_at[n], weights, bias, y);
        if (c->finish) gemm_finish(c, words, y);
        if (c->activation.strip) c->activation.strip(y, y, c->y_batch, c->activation.parameter);
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------------ packing */

void rondo__cpu_gemm_blocks(const rondo__cpu_set *set, rondo__cpu_gemm *gemm) {
    uint64_t vectors = gemm->outputs / set->lanes;
    if (!gemm->w_depth && gemm->outputs % set->lanes != 0) vectors++; /* the last one padded */
    uint32_t widest = gemm->rows == 1 ? set->wide_one : gemm->rows == 2 ? set->wide_two : set->wide_more;
    uint32_t used = 0;
    uint64_t wide = vectors / widest, rest = vectors % widest;
    memset(gemm->width, 0, sizeof gemm->width);
    memset(gemm->number, 0, sizeof gemm->number);
    if (widest < 8 && rest == 1 && wide > 0) { /* one vector alone has too few chains: split the last wide block too */
        wide--;
        rest += widest;
    }
    gemm->width[used] = widest;
    gemm->number[used++] = (uint32_t)wide;
    for (uint32_t width = widest == 8 ? 4 : rest == 5 ? 3 : 2; width > 0 && used < RONDO__CPU_WIDTHS; width--) {
        if (width == 3 && rest != 5) continue;
        gemm->width[used] = width;
        gemm->number[used] = (uint32_t)(rest / width);
        rest %= width;
        if (gemm->number[used] > 0) used++;
    }
}

uint64_t rondo__cpu_gemm_packed(const rondo__cpu_set *set, const rondo__cpu_gemm *gemm) {
    return (gemm->outputs + set->lanes - 1) / set->lanes * set->lanes * gemm->depth * gemm->taps;
}

void rondo__cpu_gemm_pack(const rondo__cpu_set *set, const rondo__cpu_gemm *gemm, const float *w, uint64_t w_output,
                          uint64_t w_tap, uint64_t w_k, float *out) {
    uint64_t m = 0;
    for (uint32_t class = 0; class < RONDO__CPU_WIDTHS; class ++) {
        const uint64_t columns = (uint64_t)gemm->width[class] * set->lanes;
        for (uint32_t n = gemm->number[class]; n > 0; n--, m += columns) {
            const uint64_t real = gemm->outputs - m < columns ? gemm->outputs - m : columns;
            for (uint64_t tap = 0; tap < gemm->taps; tap++) {
                for (uint64_t k = 0; k < gemm->depth; k++, out += columns) {
                    const float *from = w + m * w_output + tap * w_tap + k * w_k;
                    if (w_output == 1) {
                        memcpy(out, from, real * sizeof *out);
                    } else {
                        for (uint64_t i = 0; i < real; i++) out[i] = from[i * w_output];
                    }
                    memset(out + real, 0, (columns - real) * sizeof *out);
                }
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------------------ planning */

/* A product as Gemm and MatMul both see it. */
typedef struct gemm_problem {
    uint64_t rows, outputs, depth;
    uint64_t x_row, x_depth;
    uint64_t w_output, w_k;
    const float *w_constant; /* one matrix, known */
    float alpha, beta;
    const rondo_operand *bias;
    uint64_t batches;
} gemm_problem;

#define GEMM_BATCHES_MAX ((uint64_t)1 << 20)

typedef enum gemm_way { GEMM_PACKED, GEMM_DOT_PACKED, GEMM_DOT, GEMM_STRIDED, GEMM_REPACK } gemm_way;

static gemm_way gemm_choose(const rondo__cpu_plan *plan, const gemm_problem *p) {
    const bool thin = p->outputs <= plan->set->lanes / 2 && p->x_depth == 1;
    if (p->w_constant) return thin ? GEMM_DOT_PACKED : GEMM_PACKED;
    const bool rows_of_w = p->w_k == 1 && p->x_depth == 1; /* its rows are as long as x's */
    if (rows_of_w && (thin || p->rows < RONDO__CPU_ROWS)) return GEMM_DOT;
    if (p->w_output == 1 && p->rows <= GEMM_FEW_ROWS) return GEMM_STRIDED;
    return GEMM_REPACK;
}

/* How a bias of one of the shapes that broadcast to [rows][outputs] is stepped through. */
static bool gemm_bias_steps(const gemm_problem *p, uint64_t *out_row, uint64_t *out_output) {
    const rondo_operand *b = p->bias;
    const uint64_t across = b->rank > 0 ? (uint64_t)b->dims[b->rank - 1] : 1;
    const uint64_t down = b->rank > 1 ? (uint64_t)b->dims[b->rank - 2] : 1;
    if (b->rank > 2 || (across != 1 && across != p->outputs) || (down != 1 && down != p->rows)) return false;
    *out_output = across == 1 ? 0 : 1;
    *out_row = down == 1 ? 0 : across;
    return true;
}

/* What pack needs beside the context. */
static void gemm_fill_packed(const rondo__cpu_plan *plan, void *out);

static rondo_status gemm_problem_of(rondo__cpu_plan *plan, gemm_problem *p, uint64_t *x_at, uint64_t *w_at);

/* Where the bias goes: into the packed block, into the loop, or into the pass after it. */
static rondo_status gemm_plan_bias(rondo__cpu_plan *plan, const gemm_problem *p, gemm_context *c, bool packed) {
    c->bias_word = c->c_word = GEMM_NO_WORD;
    c->alpha = packed ? 1.0f : p->alpha;
    c->beta = p->beta;
    c->finish = c->alpha != 1.0f;
    if (!p->bias || p->beta == 0.0f) return RONDO_OK;
    if (!rondo__cpu_is(p->bias, RONDO_DTYPE_F32)) return rondo__cpu_refuse(plan, "the bias is not float32");
    uint64_t row = 0, output = 0;
    if (!gemm_bias_steps(p, &row, &output)) return rondo__cpu_refuse(plan, "the bias does not broadcast to the output");
    if (packed && p->bias->constant && row == 0) {
        plan->facts.absorbed_inputs |= 4;
        c->bias_word = 0; /* set with the packed word */
        return RONDO_OK;
    }
    if (row == 0 && (output == 1 || p->outputs == 1) && p->beta == 1.0f && !c->finish) {
        c->bias_word = 2;
        return RONDO_OK;
    }
    c->finish = 1;
    c->c_word = 2;
    c->c_row = row;
    c->c_output = output;
    return RONDO_OK;
}

static uint32_t gemm_variant(gemm_way way, uint64_t rows) {
    switch (way) {
    case GEMM_DOT_PACKED:
    case GEMM_DOT: return RONDO__CPU_VARIANT_DOT;
    case GEMM_STRIDED: return RONDO__CPU_VARIANT_GEMM_STRIDED;
    case GEMM_REPACK: return RONDO__CPU_VARIANT_GEMM_REPACK;
    default: break;
    }
    return rows == 1 ? RONDO__CPU_VARIANT_GEMV : rows <= 4 ? RONDO__CPU_VARIANT_GEMM_FEW : RONDO__CPU_VARIANT_GEMM;
}

static void gemm_fill_context(rondo__cpu_plan *plan, const gemm_problem *p, gemm_way way, gemm_context *c) {
    c->gemm = (rondo__cpu_gemm){.rows = p->rows,
                                .outputs = p->outputs,
                                .depth = p->depth,
                                .taps = 1,
                                .x_row = p->x_row,
                                .x_depth = p->x_depth,
                                .y_row = p->outputs,
                                .y_output = 1,
                                .w_depth = way == GEMM_STRIDED ? p->w_k : 0};
    rondo__cpu_gemm_blocks(plan->set, &c->gemm);
    const bool dot = way == GEMM_DOT || way == GEMM_DOT_PACKED;
    c->loop = dot ? plan->set->dot : plan->set->gemm;
    c->set = plan->set;
    c->w_output = p->w_output;
    c->w_k = p->w_k;
    c->batches = p->batches;
    c->y_batch = p->rows * p->outputs;
    c->w_word = 1;
    c->y_word = rondo__cpu_word_out(plan, 0);
    c->scratch_word = GEMM_NO_WORD;
}

static rondo_status gemm_plan(rondo__cpu_plan *plan, const gemm_problem *p, const uint64_t *x_at,
                              const uint64_t *w_at) {
    rondo__cpu_activation activation;
    rondo_status status = rondo__cpu_activation_read(plan, &activation);
    if (status) return status;
    const gemm_way way = gemm_choose(plan, p);
    gemm_context *c;
    status = rondo__cpu_context(plan, sizeof *c + 2 * p->batches * sizeof(uint64_t), &c);
    if (status) return status;
    gemm_fill_context(plan, p, way, c);
    uint64_t *at = (uint64_t *)(void *)(c + 1);
    memcpy(at, x_at, p->batches * sizeof *at);
    memcpy(at + p->batches, w_at, p->batches * sizeof *at);
    c->x_at = at;
    c->w_at = at + p->batches;
    const bool packed = way == GEMM_PACKED || way == GEMM_DOT_PACKED;
    status = gemm_plan_bias(plan, p, c, packed);
    if (status) return status;
    c->gemm.relu = activation.relu && !c->finish;
    if (!c->gemm.relu) c->activation = activation;
    const uint64_t weights =
        way == GEMM_DOT_PACKED ? p->outputs * p->depth : rondo__cpu_gemm_packed(plan->set, &c->gemm);
    if (way == GEMM_REPACK) {
        plan->facts.scratch_bytes = (weights > 0 ? weights : 1) * sizeof(float);
        c->scratch_word = rondo__cpu_word_scratch(plan);
    }
    if (packed) {
        const bool bias = c->bias_word == 0;
        plan->facts.packed_bytes = (weights + (bias ? p->outputs : 0) + 1) * sizeof(float);
        plan->facts.absorbed_inputs |= 2;
        c->w_word = rondo__cpu_word_packed(plan);
        if (bias) c->bias_word = c->w_word, c->bias_at = weights;
        plan->pack = gemm_fill_packed;
    }
    const bool general = p->batches != 1 || c->finish || c->activation.strip || c->scratch_word != GEMM_NO_WORD;
    plan->kernel.function = general ? gemm_run_general : gemm_run_plain;
    plan->facts.variant = plan->set->variant[gemm_variant(way, p->rows)];
    return RONDO_OK;
}

static void gemm_fill_packed(const rondo__cpu_plan *plan, void *out) {
    const gemm_context *c = plan->kernel.context;
    gemm_problem p;
    uint64_t x_at, w_at;
    rondo__cpu_plan again = *plan; /* the problem once more; its parts that matter here cannot fail twice */
    rondo_status status = gemm_problem_of(&again, &p, &x_at, &w_at);
    if (status) {
        plan->host->status_release(status);
        return;
    }
    float *packed = out;
    memset(out, 0, plan->facts.packed_bytes);
    const uint64_t bias_at = c->bias_word == c->w_word ? c->bias_at : plan->facts.packed_bytes / sizeof(float) - 1;
    if (c->loop == plan->set->dot) {
        for (uint64_t m = 0; m < p.outputs; m++) {
            for (uint64_t k = 0; k < p.depth; k++) packed[m * p.depth + k] = p.w_constant[m * p.w_output + k * p.w_k];
        }
    } else {
        rondo__cpu_gemm_pack(plan->set, &c->gemm, p.w_constant, p.w_output, 0, p.w_k, packed);
    }
    for (uint64_t i = 0; p.alpha != 1.0f && i < bias_at; i++) packed[i] *= p.alpha;
    if (c->bias_word != c->w_word) return;
    const float *bias = p.bias->constant;
    const bool scalar = rondo__cpu_elements(p.bias) == 1;
    for (uint64_t m = 0; m < p.outputs; m++) packed[bias_at + m] = p.beta * bias[scalar ? 0 : m];
}

static rondo_status gemm_check_types(const rondo__cpu_plan *plan) {
    for (uint32_t i = 0; i < 2; i++) {
        if (!rondo__cpu_is(rondo__cpu_input(plan, i), RONDO_DTYPE_F32))
            return rondo__cpu_refuse(plan, "only float32 has a fast kernel");
    }
    if (!rondo__cpu_is(rondo__cpu_output(plan, 0), RONDO_DTYPE_F32))
        return rondo__cpu_refuse(plan, "only float32 has a fast kernel");
    return RONDO_OK;
}

/* Gemm's problem, or that of a MatMul whose second operand is one matrix. x_at and w_at get one entry. */
static rondo_status gemm_problem_gemm(rondo__cpu_plan *plan, gemm_problem *p) {
    const rondo_operand *a = rondo__cpu_input(plan, 0), *b = rondo__cpu_input(plan, 1);
    const rondo_operand *out = rondo__cpu_output(plan, 0);
    const bool turn_a = rondo__cpu_attribute_int(plan, "transA", 0) != 0;
    const bool turn_b = rondo__cpu_attribute_int(plan, "transB", 0) != 0;
    if (a->rank != 2 || b->rank != 2 || out->rank != 2) return rondo__cpu_refuse(plan, "Gemm takes matrices");
    const uint64_t rows = (uint64_t)a->dims[turn_a], depth = (uint64_t)a->dims[!turn_a];
    const uint64_t outputs = (uint64_t)b->dims[!turn_b];
    if ((uint64_t)b->dims[turn_b] != depth || (uint64_t)out->dims[0] != rows || (uint64_t)out->dims[1] != outputs)
        return rondo__cpu_refuse(plan, "the shapes do not fit");
    *p = (gemm_problem){.rows = rows,
                        .outputs = outputs,
                        .depth = depth,
                        .x_row = turn_a ? 1 : depth,
                        .x_depth = turn_a ? rows : 1,
                        .w_output = turn_b ? depth : 1,
                        .w_k = turn_b ? 1 : outputs,
                        .w_constant = b->constant,
                        .bias = rondo__cpu_input(plan, 2),
                        .batches = 1,
                        .alpha = rondo__cpu_attribute_float(plan, "alpha", 1.0f),
                        .beta = rondo__cpu_attribute_float(plan, "beta", 1.0f)};
    return RONDO_OK;
}

/* MatMul with its operands as [batches][matrix]: the problem of one batch, or all rows at once over one matrix. */
static rondo_status gemm_problem_matmul(rondo__cpu_plan *plan, gemm_problem *p) {
    const rondo_operand *a = rondo__cpu_input(plan, 0), *b = rondo__cpu_input(plan, 1);
    const rondo_operand *out = rondo__cpu_output(plan, 0);
    if (a->rank < 1 || b->rank < 1) return rondo__cpu_refuse(plan, "MatMul takes no scalar");
    const uint64_t depth = (uint64_t)a->dims[a->rank - 1];
    const uint64_t outputs = b->rank > 1 ? (uint64_t)b->dims[b->rank - 1] : 1;
    uint64_t rows = a->rank > 1 ? (uint64_t)a->dims[a->rank - 2] : 1;
    if ((uint64_t)b->dims[b->rank > 1 ? b->rank - 2 : 0] != depth)
        return rondo__cpu_refuse(plan, "the shapes do not fit");
    const uint64_t total = rondo__cpu_elements(out), w_matrices = b->rank > 2 ? rondo__cpu_span(b, 0, b->rank - 2) : 1;
    const uint64_t x_matrices = a->rank > 2 ? rondo__cpu_span(a, 0, a->rank - 2) : 1;
    uint64_t batches = 1;
    if (w_matrices == 1 && x_matrices >= 1) {
        rows *= x_matrices;
    } else {
        if (rows * outputs == 0 || total == 0) return rondo__cpu_refuse(plan, "an empty batched product");
        batches = total / (rows * outputs);
    }
    if (batches * rows * outputs != total) return rondo__cpu_refuse(plan, "the shapes do not fit");
    *p = (gemm_problem){.rows = rows,
                        .outputs = outputs,
                        .depth = depth,
                        .x_row = depth,
                        .x_depth = 1,
                        .w_output = 1,
                        .w_k = outputs,
                        .w_constant = w_matrices == 1 ? b->constant : NULL,
                        .bias = rondo__cpu_input(plan, 2),
                        .batches = batches,
                        .alpha = 1.0f,
                        .beta = 1.0f};
    if (outputs == 1) p->w_output = depth, p->w_k = 1; /* a column is a row too */
    return RONDO_OK;
}

static rondo_status gemm_problem_of(rondo__cpu_plan *plan, gemm_problem *p, uint64_t *x_at, uint64_t *w_at) {
    *x_at = *w_at = 0;
    return strcmp(plan->request->operator_name, "Gemm") == 0 ? gemm_problem_gemm(plan, p)
                                                             : gemm_problem_matmul(plan, p);
}

/* Where each batch's matrices begin, by numpy's broadcast over the leading dims. False when they do not fit. */
static bool gemm_batch_offsets(const rondo__cpu_plan *plan, const gemm_problem *p, uint64_t *x_at, uint64_t *w_at) {
    const rondo_operand *operand[2] = {rondo__cpu_input(plan, 0), rondo__cpu_input(plan, 1)};
    const rondo_operand *out = rondo__cpu_output(plan, 0);
    const uint64_t matrix[2] = {p->rows * p->depth, p->depth * p->outputs};
    uint64_t *at[2] = {x_at, w_at};
    const int32_t lead = out->rank - (operand[0]->rank > 1 ? 1 : 0) - (operand[1]->rank > 1 ? 1 : 0);
    for (uint32_t side = 0; side < 2; side++) {
        const int32_t own = operand[side]->rank > 2 ? operand[side]->rank - 2 : 0;
        if (own > lead) return false;
        for (int32_t d = 0; d < own; d++) {
            const int64_t dim = operand[side]->dims[d];
            if (dim != 1 && dim != out->dims[lead - own + d]) return false;
        }
        for (uint64_t n = 0; n < p->batches; n++) {
            uint64_t rest = n, stride = matrix[side], offset = 0;
            for (int32_t d = lead - 1; d >= 0; d--) {
                const uint64_t size = (uint64_t)out->dims[d], index = rest % size;
                const int32_t mine = d - (lead - own);
                rest /= size;
                if (mine < 0) continue;
                if (operand[side]->dims[mine] != 1) offset += index * stride;
                stride *= (uint64_t)operand[side]->dims[mine];
            }
            at[side][n] = offset;
        }
    }
    return true;
}

static rondo_status gemm_plan_any(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 2, 3, 1);
    if (!status) status = gemm_check_types(plan);
    gemm_problem p;
    uint64_t x_at = 0, w_at = 0;
    if (!status) status = gemm_problem_of(plan, &p, &x_at, &w_at);
    if (status) return status;
    if (p.batches == 1) {
        status = gemm_plan(plan, &p, &x_at, &w_at);
        return status;
    }
    if (p.batches > GEMM_BATCHES_MAX) return rondo__cpu_refuse(plan, "too many matrices for a table of them");
    if (p.bias && rondo__cpu_elements(p.bias) != 1 && rondo__cpu_elements(p.bias) != p.outputs)
        return rondo__cpu_refuse(plan, "the bias of a batched product has one number an output");
    const rondo_allocator *allocator = &plan->host->allocator;
    const size_t bytes = (size_t)(2 * p.batches * sizeof(uint64_t));
    uint64_t *at = allocator->reallocate(allocator->self, NULL, 0, bytes, 0);
    if (!at) return RONDO_PLUGIN_FAIL(plan->host, OUT_OF_MEMORY, KERNEL, "cpu: no memory to plan a product");
    if (gemm_batch_offsets(plan, &p, at, at + p.batches)) {
        status = gemm_plan(plan, &p, at, at + p.batches);
    } else {
        status = rondo__cpu_refuse(plan, "the batches do not broadcast");
    }
    allocator->reallocate(allocator->self, at, bytes, 0, 0);
    return status;
}

const rondo__cpu_operator rondo__cpu_gemm_operators[] = {{"Gemm", gemm_plan_any, 0}, {"MatMul", gemm_plan_any, 0}};
const uint32_t rondo__cpu_gemm_operator_count = sizeof rondo__cpu_gemm_operators / sizeof *rondo__cpu_gemm_operators;
