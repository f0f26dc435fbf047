/* SPDX-License-Identifier: Apache-2.0
 *
 * Drawing a node of an operator from its prototype: types, ranks, shapes, values, attributes and what is absent.
 *
 * Most draws are near what operators accept (equal shapes, broadcasts, products, one row of channels), some are far from
 * it: the check compares what is accepted with what is refused, and needs both. */
#include <string.h>

#include "ops/operators_check.h"

typedef struct check_draw {
    rondo__check_case *c;
    uint64_t state;
    int32_t rank; /* of the shape that the inputs are made from */
    int64_t base[RONDO_RANK_MAX];
    uint32_t style;
    bool last; /* channels are the last axis, not the second */
    rondo_dtype variables[128];
    const rondo__check_examples *examples;
    int32_t example_axis; /* the axis of all examples that gets another size; -1: none */
    int64_t example_size;
} check_draw;

enum { STYLE_SAME, STYLE_BROADCAST, STYLE_PRODUCT, STYLE_WINDOW, STYLE_CHANNELS, STYLE_FREE };

static uint64_t check_draw_next(check_draw *d) {
    uint64_t z = d->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t check_draw_below(check_draw *d, uint32_t count) { return (uint32_t)(check_draw_next(d) % count); }

static bool check_draw_chance(check_draw *d, uint32_t of, uint32_t in) { return check_draw_below(d, in) < of; }

static int64_t check_draw_size(check_draw *d) {
    static const int64_t sizes[] = {1, 2, 3, 4, 2, 3, 1, 5, 6, 8, 4, 2};
    if (check_draw_chance(d, 1, 40)) return 0;
    return sizes[check_draw_below(d, sizeof sizes / sizeof *sizes)];
}

static void check_draw_base(check_draw *d) {
    static const int32_t ranks[] = {0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5};
    static const uint32_t styles[] = {STYLE_SAME,   STYLE_SAME,   STYLE_SAME,     STYLE_BROADCAST, STYLE_PRODUCT,
                                      STYLE_WINDOW, STYLE_WINDOW, STYLE_CHANNELS, STYLE_CHANNELS,  STYLE_FREE};
    d->style = styles[check_draw_below(d, sizeof styles / sizeof *styles)];
    d->rank = ranks[check_draw_below(d, sizeof ranks / sizeof *ranks)];
    if (d->style == STYLE_WINDOW && d->rank < 3) d->rank = 3 + (int32_t)check_draw_below(d, 2);
    if (d->style == STYLE_PRODUCT && d->rank < 2) d->rank = 2;
    for (int32_t i = 0; i < d->rank; i++) d->base[i] = check_draw_size(d);
    if (d->style == STYLE_WINDOW && check_draw_chance(d, 3, 4))
        for (int32_t i = 2; i < d->rank; i++) d->base[i] += 2; /* a window has somewhere to go */
    d->last = check_draw_chance(d, 1, 3);
    d->example_axis = check_draw_chance(d, 2, 3) ? (int32_t)check_draw_below(d, 4) : -1;
    d->example_size = check_draw_size(d);
}

/* ------------------------------------------------------------------------------------------------------------ types */

static rondo_dtype check_draw_bit(check_draw *d, uint32_t types) {
    uint32_t count = 0;
    for (rondo_dtype t = 1; t < RONDO_DTYPE_COUNT; t++) count += types >> t & 1u;
    if (!count) return RONDO_DTYPE_F32;
    uint32_t pick = check_draw_below(d, count);
    rondo_dtype t = 1;
    while (!(types >> t & 1u) || pick-- > 0) t++;
    return t;
}

static rondo_dtype check_draw_type(check_draw *d, const rondo__ops_operand *operand) {
    const uint32_t usual = RONDO__OPS_BIT(F32) | RONDO__OPS_BIT(I64) | RONDO__OPS_BIT(I32) | RONDO__OPS_BIT(BOOL) |
                           RONDO__OPS_BIT(F64) | RONDO__OPS_BIT(U8);
    uint32_t types = operand->types & ~RONDO__OPS_BIT(STRING);
    rondo_dtype *variable = operand->type_variable ? &d->variables[(uint8_t)operand->type_variable & 127u] : NULL;
    if (check_draw_chance(d, 1, 48)) return check_draw_bit(d, RONDO__OPS_ANY & ~RONDO__OPS_BIT(STRING));
    if (variable && *variable) return *variable;
    rondo_dtype type = types & RONDO__OPS_BIT(F32) && check_draw_chance(d, 1, 2) ? RONDO_DTYPE_F32
                       : types & usual && check_draw_chance(d, 3, 4)             ? check_draw_bit(d, types & usual)
                                                                                 : check_draw_bit(d, types);
    if (variable) *variable = type;
    return type;
}

/* ----------------------------------------------------------------------------------------------------------- shapes */

static void check_draw_set(rondo__check_case *c, uint32_t index, int32_t rank, const int64_t *dims) {
    c->inputs[index].rank = rank;
    for (int32_t i = 0; i < rank; i++) c->dims[index][i] = dims[i];
}

static void check_draw_broadcast(check_draw *d, uint32_t index) {
    int32_t dropped = check_draw_chance(d, 1, 2) ? (int32_t)check_draw_below(d, (uint32_t)d->rank + 1u) : 0;
    check_draw_set(d->c, index, d->rank - dropped, d->base + dropped);
    for (int32_t i = 0; i < d->rank - dropped; i++)
        if (check_draw_chance(d, 1, 4)) d->c->dims[index][i] = 1;
}

/* [.., a, b] and [.., b, c]; what comes after them is a row of c. */
static void check_draw_product(check_draw *d, uint32_t index) {
    int64_t *dims = d->c->dims[index];
    check_draw_set(d->c, index, d->rank, d->base);
    if (index == 1) {
        dims[d->rank - 2] = d->base[d->rank - 1];
        dims[d->rank - 1] = 3;
    } else if (index > 1) {
        check_draw_set(d->c, index, 1, (const int64_t[]){3});
    }
}

/* [n, c, ..] and m windows [m, c, ..], and a row of m. */
static void check_draw_window(check_draw *d, uint32_t index) {
    int64_t *dims = d->c->dims[index];
    check_draw_set(d->c, index, d->rank, d->base);
    if (index == 1) {
        dims[0] = 2;
        for (int32_t i = 2; i < d->rank; i++) dims[i] = 1 + (int64_t)check_draw_below(d, 2);
    } else if (index > 1) {
        check_draw_set(d->c, index, 1, (const int64_t[]){2});
    }
}

static void check_draw_channels(check_draw *d, uint32_t index) {
    check_draw_set(d->c, index, d->rank, d->base);
    if (!index || !d->rank) return;
    int64_t channels = d->last || d->rank < 2 ? d->base[d->rank - 1] : d->base[1];
    check_draw_set(d->c, index, 1, &channels);
}

static void check_draw_free(check_draw *d, uint32_t index) {
    d->c->inputs[index].rank = (int32_t)check_draw_below(d, 5);
    for (int32_t i = 0; i < d->c->inputs[index].rank; i++) d->c->dims[index][i] = check_draw_size(d);
}

static void check_draw_example(check_draw *d, uint32_t index) {
    const rondo_tensor_view *view = &d->examples->views[index];
    check_draw_set(d->c, index, view->rank, view->shape);
    if (d->example_axis >= 0 && d->example_axis < view->rank) d->c->dims[index][d->example_axis] = d->example_size;
}

/* One thing about a shape is another. */
static void check_draw_disturb(check_draw *d, uint32_t index) {
    rondo_operand *input = &d->c->inputs[index];
    int64_t *dims = d->c->dims[index];
    switch (check_draw_below(d, 3)) {
    case 0:
        if (input->rank > 0) input->rank--;
        break;
    case 1:
        if (input->rank < 6) dims[input->rank++] = 1 + (int64_t)check_draw_below(d, 2);
        break;
    default:
        if (input->rank > 0) dims[check_draw_below(d, (uint32_t)input->rank)] = check_draw_size(d);
    }
}

static void check_draw_shape(check_draw *d, uint32_t index) {
    if (index < d->examples->count) {
        check_draw_example(d, index);
    } else {
        switch (d->style) {
        case STYLE_BROADCAST: check_draw_broadcast(d, index); break;
        case STYLE_PRODUCT: check_draw_product(d, index); break;
        case STYLE_WINDOW: check_draw_window(d, index); break;
        case STYLE_CHANNELS: check_draw_channels(d, index); break;
        case STYLE_FREE: check_draw_free(d, index); break;
        default: check_draw_set(d->c, index, d->rank, d->base);
        }
    }
    if (check_draw_chance(d, 1, 20)) check_draw_disturb(d, index);
}

/* An input whose value decides a shape: mostly a short list, of axes, sizes or small numbers. */
static void check_draw_list(check_draw *d, uint32_t index) {
    rondo__check_case *c = d->c;
    const uint32_t rank = (uint32_t)d->rank;
    const uint32_t counts[] = {1, 1, rank, rank, 2, 2u * rank, 0, 3};
    uint32_t count = counts[check_draw_below(d, 8)], how = check_draw_below(d, 4);
    if (count > RONDO__CHECK_VALUES) count = RONDO__CHECK_VALUES;
    bool alone = count == 1 && (check_draw_chance(d, 1, 2) || c->prototype->shape_inputs == 7u);
    check_draw_set(c, index, alone ? 0 : 1, (const int64_t[]){(int64_t)count});
    uint32_t first = rank ? check_draw_below(d, rank) : 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t value = (int64_t)check_draw_below(d, 6) - 1;
        if (how == 0 && rank) value = (int64_t)((first + i) % rank);
        if (how == 1 && i < rank) value = d->base[i];
        if (how == 2) value = 1 + (int64_t)check_draw_below(d, 3);
        c->values[index][i] = value;
    }
    if (check_draw_chance(d, 15, 16)) c->known |= UINT64_C(1) << index;
}

static void check_draw_inputs(check_draw *d) {
    rondo__check_case *c = d->c;
    const rondo__ops_prototype *p = c->prototype;
    c->input_count = p->input_count;
    if (p->input_count && p->inputs[p->input_count - 1u].variadic) c->input_count += check_draw_below(d, 3);
    if (c->input_count < d->examples->count) c->input_count = d->examples->count;
    if (c->input_count > RONDO__CHECK_OPERANDS) c->input_count = RONDO__CHECK_OPERANDS;
    for (uint32_t i = 0; i < c->input_count; i++) {
        const rondo__ops_operand *operand = &p->inputs[i < p->input_count ? i : p->input_count - 1u];
        bool example = i < d->examples->count;
        c->inputs[i].dtype =
            example && check_draw_chance(d, 15, 16) ? d->examples->views[i].dtype : check_draw_type(d, operand);
        check_draw_shape(d, i);
        if (i < 64u && p->shape_inputs >> i & 1u && !example) check_draw_list(d, i);
        bool absent = operand->internal || (operand->optional && check_draw_chance(d, example ? 1 : 2, 5)) ||
                      check_draw_chance(d, 1, 96);
        if (!absent) continue;
        c->inputs[i].dtype = RONDO_DTYPE_UNDEFINED;
        c->inputs[i].rank = 0;
        c->known &= ~(UINT64_C(1) << i);
    }
    while (c->input_count && c->inputs[c->input_count - 1u].dtype == RONDO_DTYPE_UNDEFINED &&
           check_draw_chance(d, 3, 4))
        c->input_count--;
}

/* ------------------------------------------------------------------------------------------------------- attributes */

static void check_draw_ints(check_draw *d, rondo_attribute *attribute, rondo__check_store *store) {
    const int32_t space = d->rank > 2 ? d->rank - 2 : 1;
    const int32_t counts[] = {d->rank, space, space, space, 2 * space, 1, 2};
    attribute->count = (uint32_t)counts[check_draw_below(d, 7)];
    if (attribute->count > RONDO__CHECK_VALUES) attribute->count = RONDO__CHECK_VALUES;
    uint32_t how = check_draw_below(d, 3), first = check_draw_below(d, 4);
    for (uint32_t i = 0; i < attribute->count; i++) {
        store->ints[i] = how == 0 ? 1 : (int64_t)check_draw_below(d, 3);
        if (how == 1 && attribute->count == (uint32_t)d->rank && d->rank)
            store->ints[i] = (int64_t)((first + i) % (uint32_t)d->rank);
    }
}

static void check_draw_string(check_draw *d, const rondo__ops_attribute *known, rondo_string *out) {
    static const char *const words[] = {
        "NOTSET",  "SAME_UPPER", "VALID", "constant", "reflect", "edge",    "linear",        "none", "mean", "sum",
        "forward", "tanh",       "add",   "LEFT",     "RIGHT",   "Sigmoid", "bidirectional", "",     "word"};
    const char *word = known->default_text && known->kind == RONDO_ATTRIBUTE_STRING && check_draw_chance(d, 1, 2)
                           ? known->default_text
                           : words[check_draw_below(d, sizeof words / sizeof *words)];
    *out = (rondo_string){word, strlen(word)};
}

static void check_draw_attribute(check_draw *d, const rondo__ops_attribute *known) {
    static const float floats[] = {0, 1, 0.5f, -1, 2, 1e-5f, 0.25f};
    rondo__check_case *c = d->c;
    rondo_attribute *attribute = &c->attributes[c->attribute_count];
    rondo__check_store *store = &c->stores[c->attribute_count];
    *attribute = (rondo_attribute){.name = known->name, .kind = known->kind, .count = 1};
    switch (known->kind) {
    case RONDO_ATTRIBUTE_INT:
        attribute->value.i =
            check_draw_chance(d, 3, 4) ? (int64_t)check_draw_below(d, 5) - 1 : (int64_t)check_draw_below(d, 20);
        break;
    case RONDO_ATTRIBUTE_FLOAT: attribute->value.f = floats[check_draw_below(d, 7)]; break;
    case RONDO_ATTRIBUTE_STRING: check_draw_string(d, known, &attribute->value.s); break;
    case RONDO_ATTRIBUTE_INTS: check_draw_ints(d, attribute, store); break;
    case RONDO_ATTRIBUTE_FLOATS:
        attribute->count = 1u + check_draw_below(d, 3);
        for (uint32_t i = 0; i < attribute->count; i++) store->floats[i] = floats[check_draw_below(d, 7)];
        break;
    case RONDO_ATTRIBUTE_STRINGS:
        attribute->count = 1u + check_draw_below(d, 3);
        for (uint32_t i = 0; i < attribute->count; i++) check_draw_string(d, known, &store->strings[i]);
        break;
    case RONDO_ATTRIBUTE_TENSOR:
        store->ints[0] = (int64_t)check_draw_below(d, 4); /* the one element, as an int64; a float's bits are those */
        store->ints[1] = 1;
        store->tensor = (rondo_tensor_view){.device_type = 1, .rank = 1, .dtype = RONDO_DTYPE_I64};
        break;
    default: return; /* a graph: only the compiler has them */
    }
    c->attribute_count++;
}

static void check_draw_attributes(check_draw *d) {
    const rondo__ops_prototype *p = d->c->prototype;
    for (uint32_t i = 0; i < p->attribute_count; i++) {
        bool there = p->attributes[i].required ? check_draw_chance(d, 63, 64) : check_draw_chance(d, 1, 3);
        if (there) check_draw_attribute(d, &p->attributes[i]);
    }
}

/* ------------------------------------------------------------------------------------------------------------ whole */

/* What no luck would draw: sizes that hang together by a factor of four. */
static const int64_t check_lstm_shapes[8][3] = {{3, 2, 2}, {1, 8, 2}, {1, 8, 2}, {1, 16},
                                                {2},       {1, 2, 2}, {1, 2, 2}, {1, 6}};
#define CHECK_LSTM(index, rank_, dtype_) \
    {.rank = rank_, .dtype = RONDO_DTYPE_##dtype_, .shape = check_lstm_shapes[index]}
static const rondo_tensor_view check_lstm[] = {CHECK_LSTM(0, 3, F32), CHECK_LSTM(1, 3, F32), CHECK_LSTM(2, 3, F32),
                                               CHECK_LSTM(3, 2, F32), CHECK_LSTM(4, 1, I32), CHECK_LSTM(5, 3, F32),
                                               CHECK_LSTM(6, 3, F32), CHECK_LSTM(7, 2, F32)};
#undef CHECK_LSTM
static const rondo__check_examples check_lstm_examples = {check_lstm, 8};

void rondo__check_link(rondo__check_case *c) {
    for (uint32_t i = 0; i < RONDO__CHECK_OPERANDS; i++) {
        c->inputs[i].dims = c->dims[i];
        c->inputs[i].constant = c->known >> i & 1u ? c->constants[i] : NULL;
        uint32_t bits = rondo_dtype_bits(c->inputs[i].dtype);
        if (c->known >> i & 1u && (bits < 8 || bits > 128)) c->inputs[i].constant = NULL;
        for (uint64_t k = 0; c->inputs[i].constant && k < RONDO__CHECK_VALUES; k++)
            rondo__check_put(c->inputs[i].dtype, c->constants[i], k, 4 * c->values[i][k]);
    }
    for (uint32_t i = 0; i < c->attribute_count; i++) {
        rondo_attribute *attribute = &c->attributes[i];
        rondo__check_store *store = &c->stores[i];
        if (attribute->kind == RONDO_ATTRIBUTE_INTS) attribute->value.ints = store->ints;
        if (attribute->kind == RONDO_ATTRIBUTE_FLOATS) attribute->value.floats = store->floats;
        if (attribute->kind == RONDO_ATTRIBUTE_STRINGS) attribute->value.strings = store->strings;
        if (attribute->kind != RONDO_ATTRIBUTE_TENSOR) continue;
        store->tensor.data = &store->ints[0];
        store->tensor.shape = &store->ints[1];
        attribute->value.tensor = &store->tensor;
    }
    c->request = (rondo_kernel_request)RONDO_KERNEL_REQUEST_INIT;
    c->request.operator_name = c->prototype->name;
    c->request.node_name = "checked";
    c->request.input_count = c->input_count;
    c->request.output_count = c->output_count;
    c->request.attribute_count = c->attribute_count;
    c->request.inputs = c->inputs;
    c->request.outputs = c->outputs;
    c->request.attributes = c->attributes;
}

void rondo__check_draw(rondo__check_case *c, const rondo__ops_prototype *prototype,
                       const rondo__check_examples *examples, uint64_t seed) {
    check_draw d = {.c = c, .state = seed, .examples = examples};
    memset(c, 0, sizeof *c);
    c->prototype = prototype;
    if (!examples->count && prototype == &rondo__ops_LSTM && check_draw_chance(&d, 3, 4))
        d.examples = &check_lstm_examples;
    c->data_seed = check_draw_next(&d);
    check_draw_base(&d);
    check_draw_inputs(&d);
    check_draw_attributes(&d);
    c->output_count = prototype->output_count;
    const rondo__ops_operand *last = &prototype->outputs[prototype->output_count - 1u];
    if (last->variadic) c->output_count += check_draw_below(&d, 3);
    while (c->output_count > 1 && c->output_count <= prototype->output_count &&
           prototype->outputs[c->output_count - 1u].optional && check_draw_chance(&d, 1, 2))
        c->output_count--;
    for (uint32_t i = 0; i < c->output_count && i < prototype->output_count; i++)
        if (prototype->outputs[i].optional && check_draw_chance(&d, 1, 4)) c->unwanted |= UINT64_C(1) << i;
    rondo__check_link(c);
}
