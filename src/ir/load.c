/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph from the tokens of its file. Everything that a statement names must stand before it; what the tokens cannot say
 * wrong, the functions that build graphs check. */
#include <string.h>

#include "base/instance.h"
#include "ir/file.h"

#define IR_LOAD_LIST_MAX (1u << 24)
#define IR_LOAD_NESTING_MAX 8u
#define IR_LOAD_ARENA_KEPT ((size_t)1 << 20)

typedef struct ir_load {
    rondo__ir_scanner *scanner;
    rondo_allocator allocator;
    rondo__arena arena;   /* of the statement under work */
    rondo__buffer inputs; /* rondo_ir_value */
    rondo__buffer outputs;
} ir_load;

static rondo_status ir_load_graph(ir_load *l, rondo_ir_graph *graph);

/* A terminated copy in the arena: names hold no zero. */
static rondo_status ir_load_name(ir_load *l, const char **out_name) {
    rondo_string text;
    RONDO__TRY(rondo__ir_scan_text(l->scanner, &text));
    if (memchr(text.data, 0, text.size)) return rondo__ir_scan_fail(l->scanner, "a name holds a zero byte");
    return rondo__arena_string(&l->arena, text.data, text.size, out_name);
}

static rondo_status ir_load_dim(ir_load *l, rondo__ir_dim *out_dim) {
    *out_dim = (rondo__ir_dim){.value = -1};
    if (rondo__ir_scan_at_int(l->scanner)) {
        RONDO__TRY(rondo__ir_scan_int(l->scanner, &out_dim->value));
        return out_dim->value >= 0 ? RONDO_OK : rondo__ir_scan_fail(l->scanner, "a size is negative");
    }
    if (!rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_QUESTION)) RONDO__TRY(ir_load_name(l, &out_dim->symbol));
    if (!rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_OPEN)) return RONDO_OK;
    RONDO__TRY(rondo__ir_scan_int(l->scanner, &out_dim->minimum));
    RONDO__TRY(rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_TO));
    RONDO__TRY(rondo__ir_scan_int(l->scanner, &out_dim->maximum));
    if (out_dim->minimum < 0 || out_dim->maximum < out_dim->minimum) {
        return rondo__ir_scan_fail(l->scanner, "the bounds of a size are the wrong way round");
    }
    return rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_CLOSE);
}

static rondo_status ir_load_dtype(ir_load *l, rondo_dtype *out_dtype) {
    rondo_string text;
    *out_dtype = RONDO_DTYPE_UNDEFINED;
    if (rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_QUESTION)) return RONDO_OK;
    RONDO__TRY(rondo__ir_scan_text(l->scanner, &text));
    for (rondo_dtype i = RONDO_DTYPE_UNDEFINED + 1; i < RONDO_DTYPE_COUNT; i++) {
        const char *name = rondo_dtype_name(i);
        if (strlen(name) != text.size || memcmp(name, text.data, text.size) != 0) continue;
        *out_dtype = i;
        return RONDO_OK;
    }
    return rondo__ir_scan_fail(l->scanner, "'%.*s' is no data type", text.size < 64 ? (int)text.size : 64, text.data);
}

static rondo_status ir_load_tensor_type(ir_load *l, rondo__ir_type *out_type) {
    void *pointer;
    *out_type = (rondo__ir_type){.rank = -1};
    RONDO__TRY(ir_load_dtype(l, &out_type->dtype));
    RONDO__TRY(rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_LEFT));
    if (rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_ANY)) return rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_RIGHT);
    RONDO__TRY(rondo__arena_allocate_array(&l->arena, RONDO_RANK_MAX, sizeof(rondo__ir_dim), &pointer));
    rondo__ir_dim *dims = pointer;
    out_type->rank = 0;
    out_type->dims = dims;
    while (!rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_RIGHT)) {
        if (out_type->rank == RONDO_RANK_MAX) {
            return rondo__ir_scan_fail(l->scanner, "a tensor has more than %d axes", RONDO_RANK_MAX);
        }
        if (out_type->rank) RONDO__TRY(rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_COMMA));
        RONDO__TRY(ir_load_dim(l, &dims[out_type->rank++]));
    }
    return RONDO_OK;
}

static rondo_status ir_load_type(ir_load *l, rondo__ir_type *out_type, uint32_t depth) {
    bool sequence = rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_SEQUENCE);
    if (sequence || rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_OPTIONAL)) {
        void *pointer;
        if (depth == IR_LOAD_NESTING_MAX) return rondo__ir_scan_fail(l->scanner, "a type nests too deep");
        *out_type = (rondo__ir_type){.kind = sequence ? RONDO__IR_SEQUENCE : RONDO__IR_OPTIONAL, .rank = -1};
        RONDO__TRY(rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_OPEN));
        if (rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_CLOSE)) return RONDO_OK;
        RONDO__TRY(rondo__arena_allocate(&l->arena, sizeof *out_type, &pointer));
        RONDO__TRY(ir_load_type(l, pointer, depth + 1u));
        out_type->element = pointer;
        return rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_CLOSE);
    }
    RONDO__TRY(ir_load_tensor_type(l, out_type));
    if (!rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_FORMAT)) return RONDO_OK;
    int64_t format = 0, origin = 0;
    RONDO__TRY(rondo__ir_scan_int(l->scanner, &format));
    RONDO__TRY(rondo__ir_scan_int(l->scanner, &origin));
    if (format < 0 || format > RONDO_FORMAT_PACKED || origin < 0 || origin > RONDO_FORMAT_PACKED) {
        return rondo__ir_scan_fail(l->scanner, "there is no such format of a tensor");
    }
    out_type->format = (rondo_format)format;
    out_type->origin_format = (rondo_format)origin;
    return RONDO_OK;
}

static rondo_status ir_load_strings(ir_load *l, int64_t wanted, uint64_t *out_count, const rondo_string **out_strings) {
    rondo__buffer list;
    rondo__buffer_init(&list, &l->allocator, sizeof(rondo_string), IR_LOAD_LIST_MAX);
    rondo_status status = rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_LEFT);
    while (!status && !rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_RIGHT)) {
        rondo_string text = {NULL, 0};
        if (list.count) status = rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_COMMA);
        if (!status) status = rondo__ir_scan_text(l->scanner, &text);
        if (!status) status = rondo__arena_string(&l->arena, text.data, text.size, &text.data);
        if (!status) status = rondo__buffer_append(&list, &text, 1);
    }
    if (!status && wanted >= 0 && (uint64_t)wanted != list.count) {
        status = rondo__ir_scan_fail(l->scanner, "%lld texts are wanted here, not %zu", (long long)wanted, list.count);
    }
    void *pointer = NULL;
    if (!status) status = rondo__arena_copy(&l->arena, list.data, list.count * sizeof(rondo_string), &pointer);
    *out_count = list.count;
    *out_strings = pointer;
    rondo__buffer_deinit(&list);
    return status;
}

/* The data of a tensor type whose sizes are all known, behind "=". What *out_data points to is in the arena for strings, and
 * else to be freed. */
static rondo_status ir_load_data(ir_load *l, const rondo__ir_type *type, int64_t *dims, size_t *out_bytes,
                                 void **out_data) {
    int64_t elements = 0;
    RONDO__TRY(rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_EQUALS));
    if (!rondo__ir_type_concrete(type, dims)) {
        return rondo__ir_scan_fail(l->scanner, "data needs a type whose sizes are all known");
    }
    RONDO__TRY(rondo__ir_data_size(type->dtype, type->rank, dims, &elements, out_bytes));
    if (type->dtype == RONDO_DTYPE_STRING) {
        uint64_t count = 0;
        const rondo_string *strings = NULL;
        RONDO__TRY(ir_load_strings(l, elements, &count, &strings));
        *out_data = (void *)(uintptr_t)strings;
        return RONDO_OK;
    }
    return rondo__ir_scan_data(l->scanner, type->dtype, elements, *out_bytes, out_data);
}

static void ir_load_data_free(ir_load *l, rondo_dtype dtype, void *data, size_t bytes) {
    if (dtype != RONDO_DTYPE_STRING) rondo__free(&l->allocator, data, bytes ? bytes : 1u);
}

/* Where the type of the value leaves sizes open, the data has a type of its own, behind "tensor". */
static rondo_status ir_load_constant(ir_load *l, rondo_ir_graph *graph, rondo_ir_value value,
                                     const rondo__ir_type *given) {
    const rondo__ir_type *type = given;
    rondo__ir_type own;
    if (rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_KIND_TENSOR)) {
        RONDO__TRY(ir_load_tensor_type(l, &own));
        type = &own;
    }
    int64_t dims[RONDO_RANK_MAX];
    size_t bytes = 0;
    void *data = NULL;
    const rondo__ir_constant *constant = NULL;
    RONDO__TRY(ir_load_data(l, type, dims, &bytes, &data));
    rondo_status status = rondo__ir_constant_make(graph, type->dtype, type->rank, dims, data, true, &constant);
    ir_load_data_free(l, type->dtype, data, bytes);
    if (!status) rondo__ir_value_at(graph, value)->constant = constant;
    return status;
}

static rondo_status ir_load_numbers(ir_load *l, rondo_attribute *out) {
    bool floats = out->kind == RONDO_ATTRIBUTE_FLOATS;
    rondo__buffer list;
    rondo__buffer_init(&list, &l->allocator, floats ? sizeof(float) : sizeof(int64_t), IR_LOAD_LIST_MAX);
    rondo_status status = rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_LEFT);
    while (!status && !rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_RIGHT)) {
        int64_t i = 0;
        float f = 0;
        if (list.count) status = rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_COMMA);
        if (!status) status = floats ? rondo__ir_scan_float(l->scanner, &f) : rondo__ir_scan_int(l->scanner, &i);
        if (!status) status = rondo__buffer_append(&list, floats ? (const void *)&f : (const void *)&i, 1);
    }
    void *pointer = NULL;
    if (!status) status = rondo__arena_copy(&l->arena, list.data, list.count * list.element_size, &pointer);
    out->count = (uint32_t)list.count;
    out->value.ints = pointer;
    rondo__buffer_deinit(&list);
    return status;
}

static rondo_status ir_load_attribute_tensor(ir_load *l, rondo_attribute *out) {
    rondo__ir_type type;
    size_t bytes = 0;
    void *data = NULL, *pointer;
    RONDO__TRY(ir_load_tensor_type(l, &type));
    RONDO__TRY(rondo__arena_allocate_array(&l->arena, RONDO_RANK_MAX, sizeof(int64_t), &pointer));
    int64_t *dims = pointer;
    RONDO__TRY(ir_load_data(l, &type, dims, &bytes, &data));
    /* The node copies its attributes, so this copy is of the statement's arena. */
    rondo_status status = RONDO_OK;
    if (type.dtype != RONDO_DTYPE_STRING) {
        status = rondo__arena_copy(&l->arena, data, bytes, &pointer);
        ir_load_data_free(l, type.dtype, data, bytes);
        data = pointer;
    }
    if (!status) status = rondo__arena_allocate(&l->arena, sizeof(rondo_tensor_view), &pointer);
    if (status) return status;
    rondo_tensor_view *view = pointer;
    *view = (rondo_tensor_view){.data = data, .device_type = 1, .rank = type.rank, .dtype = type.dtype, .shape = dims};
    out->value.tensor = view;
    return RONDO_OK;
}

static rondo_status ir_load_attribute_string(ir_load *l, rondo_attribute *out) {
    rondo_string text;
    RONDO__TRY(rondo__ir_scan_text(l->scanner, &text));
    RONDO__TRY(rondo__arena_string(&l->arena, text.data, text.size, &text.data));
    out->value.s = text;
    return RONDO_OK;
}

/* A branch is loaded with an arena of its own: what this statement collected stays. */
static rondo_status ir_load_branch(ir_load *l, rondo_ir_graph *graph, rondo_attribute *out) {
    rondo_ir_graph *branch;
    const char *name;
    RONDO__TRY(ir_load_name(l, &name));
    RONDO__TRY(rondo__ir_graph_create(&l->allocator, graph->instance, name, graph, &branch));
    out->value.graph = branch;
    ir_load inner = {.scanner = l->scanner, .allocator = l->allocator};
    rondo__arena_init(&inner.arena, &l->allocator, SIZE_MAX / 2u);
    rondo__buffer_init(&inner.inputs, &l->allocator, sizeof(rondo_ir_value), IR_LOAD_LIST_MAX);
    rondo__buffer_init(&inner.outputs, &l->allocator, sizeof(rondo_ir_value), IR_LOAD_LIST_MAX);
    rondo_status status = ir_load_graph(&inner, branch);
    rondo__buffer_deinit(&inner.inputs);
    rondo__buffer_deinit(&inner.outputs);
    rondo__arena_deinit(&inner.arena);
    return status;
}

/* name kind value */
static rondo_status ir_load_attribute(ir_load *l, rondo_ir_graph *graph, bool branches, rondo_attribute *out) {
    static const struct {
        rondo__ir_mark mark;
        rondo_attribute_kind kind;
    } kinds[] = {
        {RONDO__IR_MARK_KIND_INT, RONDO_ATTRIBUTE_INT},       {RONDO__IR_MARK_KIND_FLOAT, RONDO_ATTRIBUTE_FLOAT},
        {RONDO__IR_MARK_KIND_STRING, RONDO_ATTRIBUTE_STRING}, {RONDO__IR_MARK_KIND_INTS, RONDO_ATTRIBUTE_INTS},
        {RONDO__IR_MARK_KIND_FLOATS, RONDO_ATTRIBUTE_FLOATS}, {RONDO__IR_MARK_KIND_STRINGS, RONDO_ATTRIBUTE_STRINGS},
        {RONDO__IR_MARK_KIND_TENSOR, RONDO_ATTRIBUTE_TENSOR}, {RONDO__IR_MARK_GRAPH, RONDO_ATTRIBUTE_GRAPH}};
    *out = (rondo_attribute){.count = 1};
    RONDO__TRY(ir_load_name(l, &out->name));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !out->kind; i++) {
        if (!branches && kinds[i].kind == RONDO_ATTRIBUTE_GRAPH) continue;
        if (rondo__ir_scan_is(l->scanner, kinds[i].mark)) out->kind = kinds[i].kind;
    }
    uint64_t count = 0;
    switch (out->kind) {
    case RONDO_ATTRIBUTE_INT: return rondo__ir_scan_int(l->scanner, &out->value.i);
    case RONDO_ATTRIBUTE_FLOAT: return rondo__ir_scan_float(l->scanner, &out->value.f);
    case RONDO_ATTRIBUTE_STRING: return ir_load_attribute_string(l, out);
    case RONDO_ATTRIBUTE_INTS:
    case RONDO_ATTRIBUTE_FLOATS: return ir_load_numbers(l, out);
    case RONDO_ATTRIBUTE_STRINGS:
        RONDO__TRY(ir_load_strings(l, -1, &count, &out->value.strings));
        out->count = (uint32_t)count;
        return RONDO_OK;
    case RONDO_ATTRIBUTE_TENSOR: return ir_load_attribute_tensor(l, out);
    case RONDO_ATTRIBUTE_GRAPH: return ir_load_branch(l, graph, out);
    default: return rondo__ir_scan_fail(l->scanner, "attribute '%s' has no kind", out->name);
    }
}

/* name type {note} */
static rondo_status ir_load_value(ir_load *l, rondo_ir_graph *graph, rondo_ir_value *out_value,
                                  rondo__ir_type *out_type) {
    const char *name;
    RONDO__TRY(ir_load_name(l, &name));
    RONDO__TRY(ir_load_type(l, out_type, 0));
    RONDO__TRY(rondo__ir_value_add(graph, name, NULL, out_type, out_value));
    while (rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_NOTE)) {
        rondo_attribute note;
        RONDO__TRY(ir_load_attribute(l, graph, false, &note));
        RONDO__TRY(rondo__ir_value_attribute_set(graph, *out_value, &note));
    }
    return RONDO_OK;
}

static rondo_status ir_load_use(ir_load *l, const rondo_ir_graph *graph, rondo_ir_value *out_value) {
    const char *name;
    RONDO__TRY(ir_load_name(l, &name));
    *out_value = rondo__ir_value_find(graph, name);
    if (*out_value != RONDO_IR_NONE) return RONDO_OK;
    return rondo__ir_scan_fail(l->scanner, "value '%.200s' is used before anything makes it", name);
}

static rondo_status ir_load_outer(ir_load *l, rondo_ir_graph *graph) {
    rondo_ir_value value = RONDO_IR_NONE, outer = RONDO_IR_NONE;
    rondo__ir_type type;
    if (!graph->parent) return rondo__ir_scan_fail(l->scanner, "there is nothing around graph '%s'", graph->name);
    RONDO__TRY(ir_load_value(l, graph, &value, &type));
    RONDO__TRY(rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_EQUALS));
    RONDO__TRY(ir_load_use(l, graph->parent, &outer));
    rondo__ir_value_data *data = rondo__ir_value_at(graph, value);
    data->outer = outer;
    data->constant = rondo__ir_value_at(graph->parent, outer)->constant;
    rondo__ir_names_of(graph)->outers_stale = true;
    return RONDO_OK;
}

static rondo_status ir_load_given(ir_load *l, rondo_ir_graph *graph, bool input) {
    rondo_ir_value value = RONDO_IR_NONE;
    rondo__ir_type type;
    RONDO__TRY(ir_load_value(l, graph, &value, &type));
    if (input) RONDO__TRY(rondo__ir_input_add(graph, value));
    const uint8_t *here = l->scanner->at;
    bool data = rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_EQUALS) ||
                rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_KIND_TENSOR);
    l->scanner->at = here;
    return data || !input ? ir_load_constant(l, graph, value, &type) : RONDO_OK;
}

static rondo_status ir_load_operands(ir_load *l, rondo_ir_graph *graph, rondo__buffer *list, bool outputs) {
    RONDO__TRY(rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_OPEN));
    list->count = 0;
    while (!rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_CLOSE)) {
        rondo_ir_value value = RONDO_IR_NONE;
        rondo__ir_type type;
        if (list->count) RONDO__TRY(rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_COMMA));
        if (!rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_ABSENT)) {
            RONDO__TRY(outputs ? ir_load_value(l, graph, &value, &type) : ir_load_use(l, graph, &value));
        }
        RONDO__TRY(rondo__buffer_append(list, &value, 1));
    }
    return RONDO_OK;
}

static rondo_status ir_load_attributes(ir_load *l, rondo_ir_graph *graph, rondo__buffer *list) {
    while (rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_ATTRIBUTE)) {
        rondo_attribute attribute;
        RONDO__TRY(ir_load_attribute(l, graph, true, &attribute));
        RONDO__TRY(rondo__buffer_append(list, &attribute, 1));
    }
    return RONDO_OK;
}

static rondo_status ir_load_node(ir_load *l, rondo_ir_graph *graph) {
    const char *name, *operator_name;
    rondo_ir_node node = RONDO_IR_NONE;
    RONDO__TRY(ir_load_name(l, &name));
    RONDO__TRY(ir_load_name(l, &operator_name));
    if (!*name || rondo__ir_node_find(graph, name) != RONDO_IR_NONE) {
        return rondo__ir_scan_fail(l->scanner, "a node '%.200s' is there already", name);
    }
    RONDO__TRY(ir_load_operands(l, graph, &l->inputs, false));
    RONDO__TRY(rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_ARROW));
    RONDO__TRY(ir_load_operands(l, graph, &l->outputs, true));
    rondo__buffer attributes;
    rondo__buffer_init(&attributes, &l->allocator, sizeof(rondo_attribute), IR_LOAD_LIST_MAX);
    rondo_status status = ir_load_attributes(l, graph, &attributes);
    if (!status) {
        status =
            rondo__ir_node_add(graph, operator_name, name, l->inputs.data, (uint32_t)l->inputs.count, l->outputs.data,
                               (uint32_t)l->outputs.count, attributes.data, (uint32_t)attributes.count, &node);
    }
    rondo__buffer_deinit(&attributes);
    if (status) return status;
    while (rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_AFTER)) {
        RONDO__TRY(ir_load_name(l, &name));
        rondo_ir_node before = rondo__ir_node_find(graph, name);
        if (before == RONDO_IR_NONE) {
            return rondo__ir_scan_fail(l->scanner, "node '%.200s' stands nowhere before", name);
        }
        RONDO__TRY(rondo__ir_control_add(graph, node, before));
    }
    return RONDO_OK;
}

static rondo_status ir_load_output(ir_load *l, rondo_ir_graph *graph) {
    const char *name;
    rondo_ir_value value = RONDO_IR_NONE;
    RONDO__TRY(ir_load_name(l, &name));
    RONDO__TRY(rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_EQUALS));
    RONDO__TRY(ir_load_use(l, graph, &value));
    return rondo__ir_output_add(graph, value, name);
}

static rondo_status ir_load_head_number(ir_load *l, rondo__ir_mark mark, int64_t maximum, int64_t *out_number) {
    *out_number = 0;
    if (!rondo__ir_scan_is(l->scanner, mark)) return RONDO_OK;
    RONDO__TRY(rondo__ir_scan_int(l->scanner, out_number));
    if (*out_number >= 0 && *out_number <= maximum) return RONDO_OK;
    return rondo__ir_scan_fail(l->scanner, "'%s' is out of range", rondo__ir_mark_text(mark));
}

/* What the functions that build graphs refuse does not say where it stood. */
static rondo_status ir_load_where(const ir_load *l, const uint8_t *begin, rondo_status status) {
    if (rondo_status_layer(status) != RONDO_LAYER_PROTOTYPE || rondo_status_note_count(status)) return status;
    if (l->scanner->binary) {
        return rondo__status_note(status, "in the statement at byte %zu", (size_t)(begin - l->scanner->start));
    }
    size_t line = 1;
    for (const uint8_t *c = l->scanner->start; c < begin; c++) line += *c == '\n';
    return rondo__status_note(status, "in the statement of line %zu", line);
}

/* Behind the name. */
static rondo_status ir_load_graph(ir_load *l, rondo_ir_graph *graph) {
    int64_t opset = 0, model = 0;
    RONDO__TRY(ir_load_head_number(l, RONDO__IR_MARK_OPSET, INT64_MAX, &opset));
    RONDO__TRY(ir_load_head_number(l, RONDO__IR_MARK_MODEL, UINT32_MAX, &model));
    graph->opset = opset;
    graph->nodes_in_model = (uint32_t)model;
    while (!rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_END)) {
        rondo_status status;
        const uint8_t *begin = l->scanner->at;
        if (rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_NODE)) status = ir_load_node(l, graph);
        else if (rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_INPUT)) status = ir_load_given(l, graph, true);
        else if (rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_CONSTANT)) status = ir_load_given(l, graph, false);
        else if (rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_OUTER)) status = ir_load_outer(l, graph);
        else if (rondo__ir_scan_is(l->scanner, RONDO__IR_MARK_OUTPUT)) status = ir_load_output(l, graph);
        else status = rondo__ir_scan_fail(l->scanner, "graph '%.200s': a statement or 'end' is missing", graph->name);
        if (status) return ir_load_where(l, begin, status);
        if (l->arena.total > IR_LOAD_ARENA_KEPT) { /* the next statement begins anew */
            rondo__arena_deinit(&l->arena);
            rondo__arena_init(&l->arena, &l->allocator, SIZE_MAX / 2u);
        }
    }
    return RONDO_OK;
}

static rondo_status ir_load_all(ir_load *l, rondo_instance *instance, rondo__shared *operators,
                                rondo_ir_graph **out_graph) {
    const char *name;
    RONDO__TRY(rondo__ir_scan_mark(l->scanner, RONDO__IR_MARK_GRAPH));
    RONDO__TRY(ir_load_name(l, &name));
    RONDO__TRY(rondo__ir_graph_create(&l->allocator, instance, name, NULL, out_graph));
    rondo__ir_graph_share_operators(*out_graph, operators);
    RONDO__TRY(ir_load_graph(l, *out_graph));
    if (!rondo__ir_scan_at_end(l->scanner)) return rondo__ir_scan_fail(l->scanner, "something stands behind the end");
    return rondo__ir_verify(*out_graph);
}

rondo_status rondo__ir_load(const rondo_allocator *allocator, rondo_instance *instance, rondo__shared *operators,
                            const char *name, const void *data, size_t size, rondo_ir_graph **out_graph) {
    rondo__ir_scanner scanner;
    rondo_ir_graph *graph = NULL;
    rondo_status status = rondo__ir_scanner_open(&scanner, allocator, name, data, size);
    ir_load l = {.scanner = &scanner, .allocator = *allocator};
    rondo__arena_init(&l.arena, allocator, SIZE_MAX / 2u);
    rondo__buffer_init(&l.inputs, allocator, sizeof(rondo_ir_value), IR_LOAD_LIST_MAX);
    rondo__buffer_init(&l.outputs, allocator, sizeof(rondo_ir_value), IR_LOAD_LIST_MAX);
    if (!status) status = ir_load_all(&l, instance, operators, &graph);
    if (status && graph) {
        rondo_ir_graph_release(graph);
        status = rondo__status_note(status, "while reading '%s'", name);
    } else if (!status) {
        *out_graph = graph;
    }
    rondo__buffer_deinit(&l.inputs);
    rondo__buffer_deinit(&l.outputs);
    rondo__arena_deinit(&l.arena);
    rondo__ir_scanner_close(&scanner);
    return status;
}
