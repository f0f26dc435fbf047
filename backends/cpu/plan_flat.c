/* SPDX-License-Identifier: Apache-2.0
 *
 * Direct convolution with flattened output space in the lanes: which taps of a tile's columns leave the input is worked
 * out here, once, as masks; a run reads the input where it lies. */
#include <string.h>

#include "plan_conv.h"

/* Weights up to here stay in the second-level cache while all blocks of outputs pass over a tile's columns; larger ones
 * are read once for a group of columns whose input stays there. */
#define FLAT_WEIGHTS_MAX ((uint64_t)512 << 10)
#define FLAT_INPUT_MAX ((uint64_t)384 << 10)
/* The tables of one kernel, above which a padded copy is the better way. */
#define FLAT_TABLE_MAX ((uint64_t)1 << 20)

typedef struct flat_context {
    rondo__cpu_flat_loop loop;
    uint32_t w_word, bias_word, y_word;
    uint64_t bias_at;
    rondo__cpu_flat flat;
} flat_context;

/* As many columns as rows of the output times its width. A line goes down, with rows of one. */
typedef struct flat_space {
    uint64_t height, width, out_height;
    uint64_t kernel[2], spread[2], before[2];
    uint64_t columns, taps, tiles, vectors, table_bytes;
} flat_space;

static bool flat_space_of(const rondo__cpu_plan *plan, const rondo__cpu_conv_problem *p, flat_space *s) {
    const bool line = p->size[0] == 1 && p->out[0] == 1 && p->kernel[0] == 1 && p->before[0] == 0;
    const uint32_t down = line ? 1 : 0, right = 1 - down;
    if (p->step[down] != 1 || (p->step[right] != 1 && p->out[right] != 1) || p->size[right] != p->out[right])
        return false;
    *s = (flat_space){.height = p->size[down],
                      .width = p->size[right],
                      .out_height = p->out[down],
                      .kernel = {p->kernel[down], p->kernel[right]},
                      .spread = {p->spread[down], p->spread[right]},
                      .before = {p->before[down], p->before[right]},
                      .vectors = plan->set->conv_vectors};
    const uint64_t across = s->vectors * plan->set->lanes;
    if (__builtin_mul_overflow(s->out_height, s->width, &s->columns) || s->columns > INT32_MAX / 2 ||
        s->height * s->width > INT32_MAX / 2)
        return false;
    s->taps = s->kernel[0] * s->kernel[1];
    s->tiles = (s->columns + across - 1) / across;
    if (s->taps > FLAT_TABLE_MAX) return false;
    s->table_bytes = s->tiles * s->taps * (s->vectors * sizeof(uint16_t) + 1) + s->taps * sizeof(int32_t);
    return s->table_bytes <= FLAT_TABLE_MAX;
}

bool rondo__cpu_flat_takes(const rondo__cpu_plan *plan, const rondo__cpu_conv_problem *problem) {
    flat_space space;
    return problem->w_constant && flat_space_of(plan, problem, &space);
}

/* Whether output column `at` meets the input at the tap. */
static bool flat_inside(const flat_space *s, uint64_t at, uint64_t ky, uint64_t kx) {
    const int64_t y = (int64_t)(at / s->width + ky * s->spread[0]) - (int64_t)s->before[0];
    const int64_t x = (int64_t)(at % s->width + kx * s->spread[1]) - (int64_t)s->before[1];
    return at < s->columns && y >= 0 && y < (int64_t)s->height && x >= 0 && x < (int64_t)s->width;
}

/* The masks of one tap of one tile; what the loop has to do with it. */
static uint8_t flat_masks(const flat_space *s, uint32_t lanes, uint64_t tile, uint64_t tap, uint16_t *masks) {
    const uint64_t ky = tap / s->kernel[1], kx = tap % s->kernel[1], start = tile * s->vectors * lanes;
    bool all = true, any = false;
    for (uint64_t v = 0; v < s->vectors; v++) {
        uint32_t bits = 0;
        for (uint32_t lane = 0; lane < lanes; lane++)
            bits |= (uint32_t)flat_inside(s, start + v * lanes + lane, ky, kx) << lane;
        masks[v] = (uint16_t)bits;
        if (start + v * lanes >= s->columns) continue; /* no vector of this tile */
        if (bits != (1u << lanes) - 1u) all = false;
        if (bits) any = true;
    }
    return all ? RONDO__CPU_FLAT_WHOLE : any ? RONDO__CPU_FLAT_PARTLY : RONDO__CPU_FLAT_NOWHERE;
}

static void flat_tables(const rondo__cpu_plan *plan, const flat_space *s, unsigned char *table, rondo__cpu_flat *f) {
    int32_t *shift = (int32_t *)(void *)table;
    uint16_t *masks = (uint16_t *)(void *)(shift + s->taps);
    uint8_t *need = (uint8_t *)(masks + s->tiles * s->taps * s->vectors);
    f->shift = shift;
    f->mask = masks;
    f->need = need;
    for (uint64_t tap = 0; tap < s->taps; tap++) {
        const int64_t down = (int64_t)(tap / s->kernel[1] * s->spread[0]) - (int64_t)s->before[0];
        const int64_t right = (int64_t)(tap % s->kernel[1] * s->spread[1]) - (int64_t)s->before[1];
        shift[tap] = (int32_t)(down * (int64_t)s->width + right);
    }
    for (uint64_t tile = 0; tile < s->tiles; tile++) {
        for (uint64_t tap = 0; tap < s->taps; tap++, masks += s->vectors)
            *need++ = flat_masks(s, plan->set->lanes, tile, tap, masks);
    }
}

static int32_t flat_run(const void *context, const uint64_t *words) {
    const flat_context *c = context;
    const float *bias =
        c->bias_word == RONDO__CPU_CONV_NO_WORD ? NULL : RONDO__CPU_AT(float, words[c->bias_word]) + c->bias_at;
    c->loop(&c->flat, RONDO__CPU_AT(float, words[0]), RONDO__CPU_AT(float, words[c->w_word]), bias,
            RONDO__CPU_AT(float, words[c->y_word]));
    return 0;
}

/* [group][block][tap][channel][tile], outputs beyond the last one zero. */
static void flat_pack(const rondo__cpu_plan *plan, void *out) {
    const flat_context *c = plan->kernel.context;
    const rondo__cpu_flat *f = &c->flat;
    const float *w = plan->request->inputs[1].constant;
    float *packed = out;
    const uint64_t depth = f->channels * f->taps;
    for (uint64_t g = 0; g < f->groups; g++, w += f->outputs * depth) {
        for (uint64_t m = 0; m < f->outputs; m += f->tile) {
            for (uint64_t tap = 0; tap < f->taps; tap++) {
                for (uint64_t k = 0; k < f->channels; k++) {
                    for (uint64_t i = 0; i < f->tile; i++)
                        *packed++ = m + i < f->outputs ? w[(m + i) * depth + k * f->taps + tap] : 0.0f;
                }
            }
        }
    }
    if (c->bias_word == c->w_word)
        memcpy((float *)out + c->bias_at, plan->request->inputs[2].constant, f->groups * f->outputs * sizeof(float));
}

static uint32_t flat_tile(const rondo__cpu_plan *plan, uint64_t outputs) {
    uint32_t tile = plan->set->conv_tile;
    while (tile > 1 && outputs <= tile / 2) tile /= 2;
    return tile;
}

rondo_status rondo__cpu_flat_plan(rondo__cpu_plan *plan, const rondo__cpu_conv_problem *p) {
    flat_space s;
    if (!flat_space_of(plan, p, &s)) return rondo__cpu_refuse(plan, "no direct convolution");
    flat_context *c;
    rondo_status status = rondo__cpu_context(plan, sizeof *c + s.table_bytes, &c);
    if (status) return status;
    c->flat = (rondo__cpu_flat){.batch = p->batch,
                                .groups = p->groups,
                                .channels = p->channels,
                                .outputs = p->outputs,
                                .taps = s.taps,
                                .x_plane = s.height * s.width,
                                .columns = s.columns,
                                .tiles = s.tiles,
                                .tile = flat_tile(plan, p->outputs),
                                .finish = p->activation.finish,
                                .parameter = {p->activation.parameter[0], p->activation.parameter[1]},
                                .strip = p->activation.in_tile ? NULL : p->activation.strip};
    flat_tables(plan, &s, (unsigned char *)(c + 1), &c->flat);
    c->loop = plan->set->flat;
    c->y_word = rondo__cpu_word_out(plan, 0);
    c->w_word = rondo__cpu_word_packed(plan);
    const uint64_t depth = p->channels * s.taps, blocks = (p->outputs + c->flat.tile - 1) / c->flat.tile;
    const uint64_t weights = p->groups * blocks * c->flat.tile * depth;
    const bool grouped = blocks * c->flat.tile * depth * sizeof(float) > FLAT_WEIGHTS_MAX;
    c->flat.together = 1;
    if (grouped) {
        const uint64_t room = FLAT_INPUT_MAX / (p->channels * s.vectors * plan->set->lanes * sizeof(float));
        c->flat.together = room > 1 ? room : 1;
    }
    plan->facts.packed_bytes = weights * sizeof(float);
    plan->facts.absorbed_inputs = 2;
    c->bias_word = p->bias ? 2 : RONDO__CPU_CONV_NO_WORD;
    if (p->bias && p->bias->constant) {
        c->bias_word = c->w_word;
        c->bias_at = weights;
        plan->facts.packed_bytes += p->groups * p->outputs * sizeof(float);
        plan->facts.absorbed_inputs |= 4;
    }
    plan->pack = flat_pack;
    plan->kernel.function = flat_run;
    plan->facts.variant =
        plan->set->variant[grouped ? RONDO__CPU_VARIANT_CONV_FLAT_GROUPS : RONDO__CPU_VARIANT_CONV_FLAT];
    return RONDO_OK;
}
