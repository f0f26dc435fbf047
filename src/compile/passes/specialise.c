/* SPDX-License-Identifier: Apache-2.0
 *
 * The first pass: a graph of one's own whose inputs have the sizes that the caller gave, and whose constants are the
 * source's. Sizes come by input and axis or by symbol, and follow from equal symbols. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "compile/pass.h"

/* A symbol and the size that something gave it. */
typedef struct specialise_symbol {
    const char *name;
    int64_t size;
    const char *from; /* input that settled it; null: given by name */
} specialise_symbol;

typedef struct specialise {
    rondo__compile_state *state;
    int64_t (*sizes)[RONDO_RANK_MAX]; /* of each input; -1: still open */
    int32_t *ranks;
    rondo__buffer symbols; /* specialise_symbol; models have few */
} specialise;

static uint32_t specialise_find_input(const rondo_ir_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->inputs.count; i++) {
        rondo_ir_value value = rondo__ir_input_at(graph, (uint32_t)i);
        if (strcmp(rondo__ir_value_at(graph, value)->name, name) == 0) return (uint32_t)i;
    }
    return UINT32_MAX;
}

static const rondo__ir_value_data *specialise_input(const specialise *s, uint32_t index) {
    return rondo__ir_value_at(s->state->source, rondo__ir_input_at(s->state->source, index));
}

static specialise_symbol *specialise_find_symbol(const specialise *s, const char *name) {
    for (size_t i = 0; i < s->symbols.count; i++) {
        specialise_symbol *symbol = RONDO__BUFFER_AT(&s->symbols, specialise_symbol, i);
        if (strcmp(symbol->name, name) == 0) return symbol;
    }
    return NULL;
}

static rondo_status specialise_settle_symbol(specialise *s, const char *name, int64_t size, const char *from) {
    specialise_symbol *known = specialise_find_symbol(s, name);
    if (!known) {
        specialise_symbol symbol = {name, size, from};
        return rondo__buffer_append(&s->symbols, &symbol, 1);
    }
    if (known->size == size) return RONDO_OK;
    return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                       "size '%s' is %" PRId64 " by %s%s%s and %" PRId64
                       " by %s%s%s: equal names must have equal sizes",
                       name, known->size, known->from ? "input '" : "name", known->from ? known->from : "",
                       known->from ? "'" : "", size, from ? "input '" : "name", from ? from : "", from ? "'" : "");
}

static rondo_status specialise_bind_axis(specialise *s, const rondo_dim_binding *binding) {
    uint32_t input = specialise_find_input(s->state->source, binding->input);
    if (input == UINT32_MAX) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a size is given for input '%s', which the model does not have",
                           binding->input);
    }
    const rondo__ir_value_data *value = specialise_input(s, input);
    int32_t rank = value->type.rank;
    if (binding->axis < 0 || binding->axis >= (rank < 0 ? RONDO_RANK_MAX : rank)) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input '%s' has %d axes, a size is given for axis %d", value->name,
                           rank, binding->axis);
    }
    if (rank >= 0) {
        const rondo__ir_dim *dim = &value->type.dims[binding->axis];
        if (dim->value >= 0 && dim->value != binding->size) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                               "input '%s': axis %d has the size %" PRId64 " in the model, not %" PRId64, value->name,
                               binding->axis, dim->value, binding->size);
        }
        if (dim->value < 0 && dim->symbol) {
            RONDO__TRY(specialise_settle_symbol(s, dim->symbol, binding->size, value->name));
        }
    } else if (binding->axis >= s->ranks[input]) {
        s->ranks[input] = binding->axis + 1;
    }
    int64_t *size = &s->sizes[input][binding->axis];
    if (*size >= 0 && *size != binding->size) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                           "input '%s': axis %d is given twice, as %" PRId64 " and as %" PRId64, value->name,
                           binding->axis, *size, binding->size);
    }
    *size = binding->size;
    return RONDO_OK;
}

static bool specialise_has_symbol(const rondo_ir_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->inputs.count; i++) {
        const rondo__ir_type *type = &rondo__ir_value_at(graph, rondo__ir_input_at(graph, (uint32_t)i))->type;
        for (int32_t axis = 0; axis < type->rank; axis++) {
            if (type->dims[axis].symbol && strcmp(type->dims[axis].symbol, name) == 0) return true;
        }
    }
    return false;
}

static rondo_status specialise_bindings(specialise *s) {
    const rondo_compile_options *options = &s->state->options;
    for (uint32_t i = 0; i < options->dim_count; i++) {
        const rondo_dim_binding *binding = &options->dims[i];
        if (binding->size < 0 || (!binding->input && !binding->symbol)) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "size %u of the options (%" PRId64 ") needs %s", i,
                               binding->size, binding->size < 0 ? "a value of 0 or more" : "an input or a symbol");
        }
        if (binding->input) {
            RONDO__TRY(specialise_bind_axis(s, binding));
        } else if (!specialise_has_symbol(s->state->source, binding->symbol)) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a value is given for size '%s', which no input mentions",
                               binding->symbol);
        } else {
            RONDO__TRY(specialise_settle_symbol(s, binding->symbol, binding->size, NULL));
        }
    }
    return RONDO_OK;
}

static rondo_status specialise_check_dim(const char *input, int32_t axis, const rondo__ir_dim *dim, int64_t size) {
    bool low = size<dim->minimum, high = dim->maximum> 0 && size > dim->maximum;
    if (dim->value >= 0 || (!low && !high)) return RONDO_OK;
    return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                       "input '%s': axis %d is given as %" PRId64 ", the model allows %" PRId64 " to %" PRId64, input,
                       axis, size, dim->minimum, dim->maximum);
}

/* Somebody has the tensor. No plan sees what is none; it stands there as one element. */
static rondo_status specialise_known_input(specialise *s, uint32_t input, const rondo__compile_input *known) {
    if (!known->hosted && (known->rank < 0 || known->rank > RONDO_RANK_MAX)) {
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "input '%s' has rank %d", specialise_input(s, input)->name, known->rank);
    }
    s->ranks[input] = known->hosted ? 0 : known->rank;
    for (int32_t i = 0; i < s->ranks[input]; i++) s->sizes[input][i] = known->dims[i];
    return RONDO_OK;
}

static rondo_dtype specialise_dtype(const specialise *s, uint32_t input) {
    if (!s->state->inputs) return specialise_input(s, input)->type.dtype;
    return s->state->inputs[input].hosted ? RONDO_DTYPE_BOOL : s->state->inputs[input].dtype;
}

static rondo_status specialise_solve_input(specialise *s, uint32_t input) {
    const rondo__ir_value_data *value = specialise_input(s, input);
    if (s->state->inputs) return specialise_known_input(s, input, &s->state->inputs[input]);
    if (value->type.kind != RONDO__IR_TENSOR) {
        return RONDO__FAIL(UNSUPPORTED, INPUT,
                           "input '%s' is no tensor: sequences and optionals cannot be compiled so far", value->name);
    }
    if (value->type.rank < 0 && s->ranks[input] == 0) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                           "input '%s' has no shape in the model: give the size of each of its axes (%s.0=N, ...)",
                           value->name, value->name);
    }
    if (value->type.rank >= 0) s->ranks[input] = value->type.rank;
    for (int32_t axis = 0; axis < s->ranks[input]; axis++) {
        int64_t *size = &s->sizes[input][axis];
        const rondo__ir_dim *dim = value->type.rank >= 0 ? &value->type.dims[axis] : NULL;
        if (dim && dim->value >= 0) *size = dim->value;
        if (*size < 0 && dim && dim->symbol) {
            const specialise_symbol *symbol = specialise_find_symbol(s, dim->symbol);
            if (symbol) *size = symbol->size;
        }
        if (*size >= 0) {
            if (dim) RONDO__TRY(specialise_check_dim(value->name, axis, dim, *size));
            continue;
        }
        if (dim && dim->symbol) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                               "input '%s': axis %d, '%s', is open in the model: give its size as %s.%d=N or %s=N",
                               value->name, axis, dim->symbol, value->name, axis, dim->symbol);
        }
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                           "input '%s': axis %d is open in the model: give its size as %s.%d=N", value->name, axis,
                           value->name, axis);
    }
    return RONDO_OK;
}

/* ----------------------------------------------------------------------------------------------- given values */

static void specialise_gather(const rondo_tensor_view *view, size_t element, uint8_t *to) {
    const uint8_t *data = (const uint8_t *)view->data + view->byte_offset;
    int64_t index[RONDO_RANK_MAX] = {0};
    for (int64_t more = 1; more;) {
        int64_t at = 0;
        for (int32_t d = 0; d < view->rank; d++) at += index[d] * view->strides[d];
        memcpy(to, data + at * (int64_t)element, element);
        to += element;
        int32_t d = view->rank - 1;
        while (d >= 0 && ++index[d] == view->shape[d]) index[d--] = 0;
        more = d >= 0;
    }
}

/* Compact bytes of a view in the graph's arena; the view fits the input and is small. */
static rondo_status specialise_copy_value(specialise *s, const rondo_tensor_view *view, uint64_t bytes,
                                          const rondo__ir_constant **out_constant) {
    uint8_t compact[RONDO__COMPILE_VALUE_MAX] = {0};
    if (bytes > 0 && view->strides) {
        specialise_gather(view, rondo_dtype_bits(view->dtype) / 8u, compact);
    } else if (bytes > 0) {
        memcpy(compact, (const uint8_t *)view->data + view->byte_offset, (size_t)bytes);
    }
    return rondo__ir_constant_make(s->state->graph, view->dtype, view->rank, view->shape, compact, true, out_constant);
}

static bool specialise_small_type(rondo_dtype dtype) {
    switch (dtype) {
    case RONDO_DTYPE_BOOL:
    case RONDO_DTYPE_U8:
    case RONDO_DTYPE_I8:
    case RONDO_DTYPE_U16:
    case RONDO_DTYPE_I16:
    case RONDO_DTYPE_U32:
    case RONDO_DTYPE_I32:
    case RONDO_DTYPE_U64:
    case RONDO_DTYPE_I64: return true;
    default: return false;
    }
}

static rondo_status specialise_value(specialise *s, const rondo_value_binding *given) {
    if (!given->input || !given->value) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a value of the options lacks its input's name or its tensor");
    }
    uint32_t input = specialise_find_input(s->state->source, given->input);
    if (input == UINT32_MAX) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a value is given for input '%s', which the model does not have",
                           given->input);
    }
    const rondo_tensor_view *view = given->value;
    rondo_dtype dtype = specialise_dtype(s, input);
    if (view->dtype != dtype) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input '%s' has the type %s, its value is given as %s",
                           given->input, rondo_dtype_name(dtype), rondo_dtype_name(view->dtype));
    }
    bool fits = view->rank == s->ranks[input] && (view->rank == 0 || view->shape);
    for (int32_t axis = 0; fits && axis < view->rank; axis++) fits = view->shape[axis] == s->sizes[input][axis];
    if (!fits) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the value given for input '%s' has another shape than the input",
                           given->input);
    }
    int64_t elements = 0;
    uint64_t bytes = 0;
    if (!specialise_small_type(dtype) || !rondo__checked_elements(view->rank, view->shape, &elements)) return RONDO_OK;
    RONDO__TRY(rondo_dtype_bytes(dtype, (uint64_t)elements, &bytes));
    if (bytes > RONDO__COMPILE_VALUE_MAX || s->state->binding_count == RONDO__COMPILE_BINDINGS_MAX) return RONDO_OK;
    if (bytes > 0 && !view->data) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the value given for input '%s' has no data", given->input);
    }
    for (uint32_t i = 0; i < s->state->binding_count; i++) {
        if (s->state->bindings[i].input == input) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the value of input '%s' is given twice", given->input);
        }
    }
    rondo__compile_binding *binding = &s->state->bindings[s->state->binding_count];
    *binding = (rondo__compile_binding){input, false, NULL};
    RONDO__TRY(specialise_copy_value(s, view, bytes, &binding->constant));
    s->state->binding_count++;
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------- the graph */

/* All values of the source under their names and numbers, so that whatever is added later cannot take a name away. */
static rondo_status specialise_copy_values(specialise *s) {
    const rondo_ir_graph *source = s->state->source;
    rondo_ir_graph *graph = s->state->graph;
    rondo__ir_type unknown = {
        RONDO__IR_TENSOR, RONDO_DTYPE_UNDEFINED, -1, RONDO_FORMAT_ND, RONDO_FORMAT_ND, NULL, NULL};
    for (size_t i = 0; i < source->values.count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(source, (rondo_ir_value)i);
        bool typed = data->constant || data->flags & RONDO__IR_VALUE_INPUT;
        rondo_ir_value value = RONDO_IR_NONE;
        RONDO__TRY(rondo__ir_value_add(graph, data->name, NULL, typed ? &data->type : &unknown, &value));
        if (data->constant && !(data->flags & RONDO__IR_VALUE_INPUT)) {
            rondo__ir_value_at(graph, value)->constant = data->constant;
        }
    }
    for (size_t i = 0; i < source->inputs.count; i++) {
        rondo_ir_value value = rondo__ir_input_at(source, (uint32_t)i);
        rondo__ir_value_data *data = rondo__ir_value_at(graph, value);
        rondo__ir_type type;
        int64_t elements = 0;
        uint64_t bytes = 0;
        if (!rondo__checked_elements(s->ranks[i], s->sizes[i], &elements)) {
            return RONDO__FAIL(OUT_OF_RANGE, INPUT, "input '%s' has more elements than can be counted", data->name);
        }
        rondo_dtype dtype = specialise_dtype(s, (uint32_t)i);
        RONDO__TRY_NOTE(rondo_dtype_bytes(dtype, (uint64_t)elements, &bytes), "input '%s'", data->name);
        RONDO__TRY(rondo__ir_type_from_dims(graph, dtype, s->ranks[i], s->sizes[i], &type));
        rondo__ir_value_at(graph, value)->type = type;
        RONDO__TRY(rondo__ir_input_add(graph, value));
    }
    for (size_t i = 0; i < source->outputs.count; i++) {
        RONDO__TRY(rondo__ir_output_add(graph, rondo__ir_output_at(source, (uint32_t)i),
                                        *RONDO__BUFFER_AT(&source->output_names, const char *, i)));
    }
    return RONDO_OK;
}

static rondo_status specialise_run(specialise *s) {
    const rondo_ir_graph *source = s->state->source;
    size_t inputs = source->inputs.count;
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&s->state->arena, inputs, sizeof *s->sizes, &memory));
    s->sizes = memory;
    memset(s->sizes, 0xff, inputs * sizeof *s->sizes);
    RONDO__TRY(rondo__arena_allocate_array(&s->state->arena, inputs, sizeof *s->ranks, &memory));
    s->ranks = memory;
    RONDO__TRY(specialise_bindings(s));
    for (size_t i = 0; i < inputs; i++) RONDO__TRY(specialise_solve_input(s, (uint32_t)i));
    RONDO__TRY(rondo__ir_graph_create(&s->state->allocator, source->instance, source->name, NULL, &s->state->graph));
    /* The copy shares the source's constants, so it keeps the source alive. */
    rondo_ir_graph *kept = (rondo_ir_graph *)(uintptr_t)source;
    rondo_ir_graph_retain(kept);
    s->state->graph->source = kept;
    rondo__ir_graph_share_operators(s->state->graph, source->operators);
    s->state->graph->opset = source->opset;
    s->state->graph->nodes_in_model = source->nodes_in_model;
    for (uint32_t i = 0; i < s->state->options.value_count; i++) {
        RONDO__TRY(specialise_value(s, &s->state->options.values[i]));
    }
    return specialise_copy_values(s);
}

rondo_status rondo__compile_specialise(rondo__compile_state *state) {
    specialise s = {.state = state};
    rondo__buffer_init(&s.symbols, &state->allocator, sizeof(specialise_symbol), 1u << 20);
    rondo_status status = specialise_run(&s);
    rondo__buffer_deinit(&s.symbols);
    return status;
}
