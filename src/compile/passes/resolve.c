/* SPDX-License-Identifier: Apache-2.0
 *
 * One walk forward through the source: sizes are inferred, what is constant is evaluated, a condition that is then
 * known replaces its If by the branch taken. Each feeds the next, so they are one pass; every node is seen once.
 *
 * The value of an input that the caller gave is used only where a condition or a shape depends on it; only then it
 * becomes a guard. Until then it and what follows from it is known, but its nodes stay. A word of bits with each known
 * value says which given inputs it rests on. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "compile/passes/resolve.h"

rondo_status rondo__resolve_extend(rondo__resolve *r) {
    while (r->known.count < r->graph->values.count) {
        const rondo__ir_value_data *data = rondo__ir_value_at(r->graph, (rondo_ir_value)r->known.count);
        rondo__resolve_known known = rondo__resolve_constant(data->constant);
        RONDO__TRY(rondo__buffer_append(&r->known, &known, 1));
    }
    return RONDO_OK;
}

static void resolve_commit(rondo__resolve *r, uint64_t rests_on) { r->needed |= rests_on & ~RONDO__RESOLVE_UNFOLDED; }

/* The value as a constant of the graph. */
static rondo_status resolve_materialise(rondo__resolve *r, rondo_ir_value value, rondo_ir_value *out_value) {
    rondo__resolve_known known = *rondo__resolve_at(r, value);
    if (rondo__ir_value_at(r->graph, value)->constant) {
        *out_value = value;
        return RONDO_OK;
    }
    if (known.copy == RONDO_IR_NONE) {
        rondo__ir_type type;
        const rondo__ir_constant *c = known.constant;
        RONDO__TRY(rondo__ir_type_from_dims(r->graph, c->dtype, c->rank, c->dims, &type));
        RONDO__TRY(rondo__ir_value_add(r->graph, NULL, rondo__ir_value_at(r->graph, value)->name, &type, &known.copy));
        rondo__ir_value_at(r->graph, known.copy)->constant = c;
        RONDO__TRY(rondo__resolve_extend(r));
        rondo__resolve_at(r, value)->copy = known.copy;
    }
    *out_value = known.copy;
    return RONDO_OK;
}

/* Why a condition or a shape cannot be known. */
static rondo_status resolve_unknown(const rondo__resolve *r, const rondo__ir_node_data *node, const char *what,
                                    rondo_ir_value value) {
    const rondo__resolve_known *known = rondo__resolve_at(r, value);
    const char *input = known->origin == UINT32_MAX
                            ? "?"
                            : rondo__ir_value_at(r->graph, rondo__ir_input_at(r->graph, known->origin))->name;
    if (known->from == RONDO__RESOLVE_FROM_SMALL_INPUT) {
        return RONDO__FAIL(
            INVALID_ARGUMENT, INPUT,
            "node '%s' (%s): %s depends on the value of input '%s': give that value when compiling (%s=VALUE)",
            node->name, node->operator_name, what, input, input);
    }
    return RONDO__FAIL(UNSUPPORTED, META,
                       "node '%s' (%s): %s depends on data (value '%s'%s%s%s), which is known only while running",
                       node->name, node->operator_name, what, rondo__ir_value_at(r->graph, value)->name,
                       known->origin == UINT32_MAX ? "" : ", made of input '", known->origin == UINT32_MAX ? "" : input,
                       known->origin == UINT32_MAX ? "" : "'");
}

rondo_status rondo__resolve_map(rondo__resolve *r, size_t depth, rondo_ir_value value, rondo_ir_value *out_value) {
    size_t at = depth;
    rondo_ir_value inner = value;
    for (;;) {
        const rondo__resolve_frame *frame = RONDO__BUFFER_AT(&r->frames, rondo__resolve_frame, at);
        if (frame->map[inner] != RONDO_IR_NONE) {
            *out_value = frame->map[inner];
            break;
        }
        const rondo__ir_value_data *data = rondo__ir_value_at(frame->graph, inner);
        if (data->outer != RONDO_IR_NONE && at > 0) {
            inner = data->outer;
            at--;
            continue;
        }
        if (!data->constant) {
            return RONDO__FAIL(CORRUPT, META, "value '%s' of graph '%s' is used before anything makes it", data->name,
                               frame->graph->name);
        }
        RONDO__TRY(rondo__ir_value_add(r->graph, NULL, data->name, &data->type, out_value));
        rondo__ir_value_at(r->graph, *out_value)->constant = data->constant;
        RONDO__TRY(rondo__resolve_extend(r));
        RONDO__BUFFER_AT(&r->frames, rondo__resolve_frame, at)->map[inner] = *out_value;
        break;
    }
    RONDO__BUFFER_AT(&r->frames, rondo__resolve_frame, depth)->map[value] = *out_value;
    return RONDO_OK;
}

static rondo_status resolve_push(rondo__resolve *r, const rondo_ir_graph *graph, const rondo__ir_node_data *around) {
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&r->state->arena, graph->values.count, sizeof(rondo_ir_value), &memory));
    memset(memory, 0xff, graph->values.count * sizeof(rondo_ir_value));
    rondo__resolve_frame frame = {graph, memory, 0, around, NULL};
    if (graph->control_count) {
        size_t count = graph->nodes.count + 1u;
        RONDO__TRY(rondo__arena_allocate_array(&r->state->arena, count, sizeof(uint32_t), &memory));
        frame.begins = memory;
    }
    return rondo__buffer_append(&r->frames, &frame, 1);
}

/* What was made for a node waits for all that was made for those that it waits for: an If stands for the nodes of its
 * branch, and a node that was computed now for none. */
static rondo_status resolve_controls(rondo__resolve *r, const rondo__resolve_frame *done) {
    if (!done->begins) return RONDO_OK;
    done->begins[done->graph->nodes.count] = (uint32_t)r->graph->nodes.count;
    for (size_t n = 0; n < done->graph->nodes.count; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(done->graph, (rondo_ir_node)n);
        for (uint32_t i = 0; i < node->control_count && !node->dead; i++) {
            rondo_ir_node from = node->controls[i];
            for (uint32_t made = done->begins[n]; made < done->begins[n + 1u]; made++) {
                for (uint32_t before = done->begins[from]; before < done->begins[from + 1u]; before++) {
                    RONDO__TRY(rondo__ir_control_add(r->graph, made, before));
                }
            }
        }
    }
    return RONDO_OK;
}

/* The branch is done: what it gives is what the If gives. */
static rondo_status resolve_pop(rondo__resolve *r) {
    size_t depth = r->frames.count - 1;
    rondo__resolve_frame done = *RONDO__BUFFER_AT(&r->frames, rondo__resolve_frame, depth);
    RONDO__TRY(resolve_controls(r, &done));
    if (depth == 0 && r->late.count > 0) {
        RONDO__TRY(rondo__resolve_cut(r, &done));
    } else if (depth == 0) {
        for (size_t i = 0; i < done.graph->outputs.count; i++) {
            rondo_ir_value value = RONDO_IR_NONE;
            RONDO__TRY(rondo__resolve_map(r, 0, rondo__ir_output_at(done.graph, (uint32_t)i), &value));
            rondo_ir_value *output = RONDO__BUFFER_AT(&r->graph->outputs, rondo_ir_value, i);
            rondo__ir_value_at(r->graph, *output)->flags &= ~(uint32_t)RONDO__IR_VALUE_OUTPUT;
            *output = value;
        }
        for (size_t i = 0; i < r->graph->outputs.count; i++) {
            rondo__ir_value_at(r->graph, rondo__ir_output_at(r->graph, (uint32_t)i))->flags |= RONDO__IR_VALUE_OUTPUT;
        }
    } else {
        for (uint32_t i = 0; i < done.around->output_count; i++) {
            rondo_ir_value value = RONDO_IR_NONE;
            if (done.around->outputs[i] == RONDO_IR_NONE) continue;
            RONDO__TRY(rondo__resolve_map(r, depth, rondo__ir_output_at(done.graph, i), &value));
            RONDO__BUFFER_AT(&r->frames, rondo__resolve_frame, depth - 1)->map[done.around->outputs[i]] = value;
        }
    }
    r->frames.count--;
    return RONDO_OK;
}

static rondo_status resolve_if(rondo__resolve *r, const rondo__ir_node_data *node, const rondo_ir_value *inputs) {
    if (node->input_count != 1 || inputs[0] == RONDO_IR_NONE) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s' (If) has no condition", node->name);
    }
    const rondo__resolve_known *known = rondo__resolve_at(r, inputs[0]);
    if (!known->constant && r->state->cuts) {
        return rondo__resolve_leave(r, node, inputs, NULL, "its condition depends on data");
    }
    if (!known->constant) return resolve_unknown(r, node, "its condition", inputs[0]);
    if (known->constant->dtype != RONDO_DTYPE_BOOL || known->constant->bytes != 1) {
        return RONDO__FAIL(INVALID_ARGUMENT, META, "node '%s' (If): its condition is not one bool", node->name);
    }
    resolve_commit(r, known->rests_on);
    bool taken = *(const uint8_t *)known->constant->data != 0;
    const char *name = taken ? "then_branch" : "else_branch";
    const rondo_attribute *branch = rondo__ir_attribute_find(node, name);
    if (!branch || branch->kind != RONDO_ATTRIBUTE_GRAPH || !branch->value.graph) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s' (If) has no '%s'", node->name, name);
    }
    const rondo_ir_graph *graph = branch->value.graph;
    if (graph->outputs.count < node->output_count || graph->inputs.count != 0) {
        return RONDO__FAIL(INVALID_ARGUMENT, META,
                           "node '%s' (If): its %s gives %zu values and takes %zu, not %u and 0", node->name, name,
                           graph->outputs.count, graph->inputs.count, node->output_count);
    }
    RONDO__TRY(rondo__compile_remark(r->state, "node '%s': the condition is %s: %s taken", node->name,
                                     taken ? "true" : "false", name));
    return resolve_push(r, graph, node);
}

/* Values whose contents set a shape must be constants; those that are known become so. */
static rondo_status resolve_shape_inputs(rondo__resolve *r, const rondo__ops_prototype *prototype,
                                         rondo__ir_node_data *node) {
    for (uint32_t i = 0; i < node->input_count && i < 64; i++) {
        if (!(prototype->shape_inputs >> i & 1u) || node->inputs[i] == RONDO_IR_NONE) continue;
        const rondo__resolve_known *known = rondo__resolve_at(r, node->inputs[i]);
        if (!known->constant) continue;
        resolve_commit(r, known->rests_on);
        RONDO__TRY(resolve_materialise(r, node->inputs[i], &node->inputs[i]));
    }
    return RONDO_OK;
}

/* *out_late: a shape depends on data, and there is somebody who can wait for it. */
static rondo_status resolve_infer(rondo__resolve *r, const rondo__ops_prototype *prototype, rondo__ir_node_data *node,
                                  bool *out_late) {
    rondo__compile_request *request = &r->request;
    RONDO__TRY(rondo__compile_request_make(request, r->graph, node));
    /* The request only says which outputs are wanted: inference finds their types. */
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&r->state->arena, node->output_count, sizeof(rondo_operand), &memory));
    rondo_operand *wanted = memory;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != RONDO_IR_NONE) wanted[i].dtype = RONDO_DTYPE_F32;
    }
    request->request.outputs = wanted;
    rondo_status status = rondo__ops_infer_with(prototype, &request->request, request->outputs, request->output_dims);
    request->request.outputs = request->outputs;
    if (rondo_status_code(status) == RONDO_CODE_UNSUPPORTED) {
        for (uint32_t i = 0; i < node->input_count && i < 64; i++) {
            if (!(prototype->shape_inputs >> i & 1u) || node->inputs[i] == RONDO_IR_NONE) continue;
            if (rondo__resolve_at(r, node->inputs[i])->constant) continue;
            rondo_status_release(status);
            *out_late = r->state->cuts;
            return *out_late ? RONDO_OK : resolve_unknown(r, node, "its output's shape", node->inputs[i]);
        }
    }
    if (status) return status;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const rondo_operand *out = &request->outputs[i];
        rondo__ir_type type;
        if (node->outputs[i] == RONDO_IR_NONE) continue;
        if (out->dtype == RONDO_DTYPE_UNDEFINED) {
            return RONDO__FAIL(INVALID_ARGUMENT, META, "node '%s' (%s) does not give its output %u", node->name,
                               node->operator_name, i);
        }
        int64_t elements = 0;
        uint64_t bytes = 0;
        if (!rondo__checked_elements(out->rank, request->output_dims[i], &elements)) {
            return RONDO__FAIL(OUT_OF_RANGE, META, "node '%s' (%s): output %u has more elements than can be counted",
                               node->name, node->operator_name, i);
        }
        RONDO__TRY_NOTE(rondo_dtype_bytes(out->dtype, (uint64_t)elements, &bytes), "output %u of node '%s' (%s)", i,
                        node->name, node->operator_name);
        RONDO__TRY(rondo__ir_type_from_dims(r->graph, out->dtype, out->rank, request->output_dims[i], &type));
        rondo__ir_value_at(r->graph, node->outputs[i])->type = type;
        request->outputs[i].dims = request->output_dims[i];
    }
    return RONDO_OK;
}

/* Shape and Size are known with the sizes, whatever the data. */
static rondo_status resolve_shape_of(rondo__resolve *r, const rondo__ir_node_data *node,
                                     const rondo__ir_constant **out) {
    int64_t dims[RONDO_RANK_MAX] = {0}, elements = 0;
    int32_t rank = rondo__compile_dims(r->graph, node->inputs[0], dims);
    if (strcmp(node->operator_name, "Size") == 0) {
        if (!rondo__checked_elements(rank, dims, &elements)) return RONDO_OK;
        return rondo__ir_constant_make(r->graph, RONDO_DTYPE_I64, 0, NULL, &elements, true, out);
    }
    int64_t start = rondo__ir_attribute_int(node, "start", 0), end = rondo__ir_attribute_int(node, "end", INT64_MAX);
    if (start < 0) start += rank;
    if (end < 0) end += rank;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    int64_t count = end - start;
    return rondo__ir_constant_make(r->graph, RONDO_DTYPE_I64, 1, &count, dims + start, true, out);
}

/* A Constant made by hand; the importer makes constant values at once. */
static rondo_status resolve_constant(rondo__resolve *r, const rondo__ir_node_data *node,
                                     const rondo__ir_constant **out) {
    const rondo_operand *o = &r->request.outputs[0];
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const rondo_attribute *a = &node->attributes[i];
        const void *data = NULL;
        if (strcmp(a->name, "value") == 0 && a->kind == RONDO_ATTRIBUTE_TENSOR) {
            data = (const uint8_t *)a->value.tensor->data + a->value.tensor->byte_offset;
        } else if (a->kind == RONDO_ATTRIBUTE_INT || a->kind == RONDO_ATTRIBUTE_FLOAT) {
            data = &a->value;
        } else if (a->kind == RONDO_ATTRIBUTE_INTS || a->kind == RONDO_ATTRIBUTE_FLOATS) {
            data = a->value.ints;
        }
        if (data) return rondo__ir_constant_make(r->graph, o->dtype, o->rank, o->dims, data, true, out);
    }
    return RONDO_OK;
}

/* What the inputs of a node say about its outputs. */
static rondo__resolve_known resolve_merge(const rondo__resolve *r, const rondo__ir_node_data *node,
                                          bool *out_all_known) {
    rondo__resolve_known merged = rondo__resolve_constant(NULL);
    *out_all_known = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == RONDO_IR_NONE) continue;
        const rondo__resolve_known *known = rondo__resolve_at(r, node->inputs[i]);
        if (!known->constant) *out_all_known = false;
        merged.rests_on |= known->rests_on;
        /* Not known and from nothing: kept back from folding, so data for all that follows. */
        uint8_t from = !known->constant && known->from == RONDO__RESOLVE_FIXED ? RONDO__RESOLVE_FROM_DATA : known->from;
        bool better = merged.origin == UINT32_MAX || (!known->constant && from >= merged.from);
        if (known->origin != UINT32_MAX && better) merged.origin = known->origin;
        if (from > merged.from) merged.from = from;
    }
    return merged;
}

static bool resolve_small(const rondo__resolve *r, const rondo__ir_node_data *node) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
        rondo_ir_value value = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
        if (value == RONDO_IR_NONE) continue;
        uint64_t bytes = rondo__compile_bytes(r->graph, value);
        if (bytes > RONDO__RESOLVE_TENTATIVE_MAX) return false;
        total += bytes;
    }
    return total <= 4u * RONDO__RESOLVE_TENTATIVE_MAX;
}

/* The node on known inputs, where its outputs' sizes are part of the result: so what it rests on is needed. Where that would
 * bind a plan to the value of an input, a session waits for the value instead. */
static rondo_status resolve_sized(rondo__resolve *r, const rondo__ir_node_data *node,
                                  const rondo__ir_constant **constants, rondo__resolve_known *out_known,
                                  bool *out_firm) {
    bool done = false;
    if (r->state->cuts && (out_known->rests_on & ~r->needed) != 0) return RONDO_OK;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == RONDO_IR_NONE) continue;
        r->request.inputs[i].constant = rondo__resolve_at(r, node->inputs[i])->constant->data;
    }
    RONDO__TRY(rondo__compile_evaluate_sized(r->state, &r->request, constants, &done));
    if (!done) return RONDO_OK;
    resolve_commit(r, out_known->rests_on);
    out_known->rests_on &= ~RONDO__RESOLVE_UNFOLDED;
    out_known->constant = constants[0];
    *out_firm = true;
    for (uint32_t i = 0; i < node->output_count; i++) {
        rondo__ir_type type;
        const rondo__ir_constant *c = constants[i];
        if (node->outputs[i] == RONDO_IR_NONE) continue;
        RONDO__TRY(rondo__ir_type_from_dims(r->graph, c->dtype, c->rank, c->dims, &type));
        rondo__ir_value_at(r->graph, node->outputs[i])->type = type;
    }
    return RONDO_OK;
}

/* Finds out what the outputs are, if that can be known; *out_firm: the node is not needed any more. */
static rondo_status resolve_fold(rondo__resolve *r, const rondo__ops_prototype *prototype,
                                 const rondo__ir_node_data *node, const rondo__ir_constant **constants,
                                 rondo__resolve_known *out_known, bool *out_firm) {
    bool all_known = false, done = false;
    *out_firm = false;
    *out_known = resolve_merge(r, node, &all_known);
    bool shape = strcmp(node->operator_name, "Shape") == 0 || strcmp(node->operator_name, "Size") == 0;
    bool folding = !(r->state->options.flags & RONDO_COMPILE_NO_FOLDING);
    if (shape && node->input_count == 1 && node->output_count == 1) {
        *out_known = rondo__resolve_constant(NULL);
        RONDO__TRY(resolve_shape_of(r, node, &constants[0]));
        done = constants[0] != NULL;
    } else if (strcmp(node->operator_name, "Constant") == 0 && node->output_count == 1) {
        RONDO__TRY(resolve_constant(r, node, &constants[0]));
        folding = done = constants[0] != NULL;
    } else if (all_known && prototype->flags & RONDO__OPS_SIZED) {
        return resolve_sized(r, node, constants, out_known, out_firm);
    } else if (all_known && !(prototype->flags & (RONDO__OPS_RANDOM | RONDO__OPS_CONTROL))) {
        bool tentative = (out_known->rests_on & ~r->needed) != 0 || !folding;
        if (tentative && !resolve_small(r, node)) return RONDO_OK;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (node->inputs[i] == RONDO_IR_NONE) continue;
            r->request.inputs[i].constant = rondo__resolve_at(r, node->inputs[i])->constant->data;
        }
        RONDO__TRY(rondo__compile_evaluate(r->state, &r->request, constants, &done));
    }
    if (!done) return RONDO_OK;
    if (!folding) out_known->rests_on |= RONDO__RESOLVE_UNFOLDED;
    *out_firm = (out_known->rests_on & ~r->needed) == 0;
    out_known->constant = constants[0];
    return RONDO_OK;
}

rondo_status rondo__resolve_outputs(rondo__resolve *r, size_t depth, const rondo__ir_node_data *from,
                                    rondo_ir_value *outputs) {
    rondo__ir_type unknown = {
        RONDO__IR_TENSOR, RONDO_DTYPE_UNDEFINED, -1, RONDO_FORMAT_ND, RONDO_FORMAT_ND, NULL, NULL};
    for (uint32_t i = 0; i < from->output_count; i++) {
        outputs[i] = from->outputs[i];
        if (from->outputs[i] == RONDO_IR_NONE) continue;
        if (depth > 0) {
            const rondo__resolve_frame *frame = RONDO__BUFFER_AT(&r->frames, rondo__resolve_frame, depth);
            const char *name = rondo__ir_value_at(frame->graph, from->outputs[i])->name;
            RONDO__TRY(rondo__ir_value_add(r->graph, NULL, name, &unknown, &outputs[i]));
        }
        RONDO__BUFFER_AT(&r->frames, rondo__resolve_frame, depth)->map[from->outputs[i]] = outputs[i];
    }
    return rondo__resolve_extend(r);
}

static rondo_status resolve_add(rondo__resolve *r, const rondo__ir_node_data *node) {
    rondo_ir_node added = 0;
    RONDO__TRY(rondo__ir_node_add(r->graph, node->operator_name, node->name, node->inputs, node->input_count,
                                  node->outputs, node->output_count, node->attributes, node->attribute_count, &added));
    return RONDO_OK;
}

/* Notes that a program left on a node stay behind: no plan depends on them. */
static rondo_status resolve_without_notes(rondo__resolve *r, rondo__ir_node_data *node) {
    static const char note[] = RONDO__OPS_NOTE;
    uint32_t kept = 0;
    while (kept < node->attribute_count && strncmp(node->attributes[kept].name, note, sizeof note - 1u) != 0) kept++;
    if (kept == node->attribute_count) return RONDO_OK;
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&r->state->arena, node->attribute_count, sizeof *node->attributes, &memory));
    rondo_attribute *attributes = memory;
    kept = 0;
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        if (strncmp(node->attributes[i].name, note, sizeof note - 1u) != 0) attributes[kept++] = node->attributes[i];
    }
    node->attributes = attributes;
    node->attribute_count = kept;
    return RONDO_OK;
}

/* What no plan can have: a body that runs as often as data says, values that are no tensors. */
static rondo_status resolve_unplanned(rondo__resolve *r, const rondo__ir_node_data *node, uint32_t flags,
                                      const rondo_ir_value *inputs, bool *out_left) {
    bool late = false, hosted = (flags & RONDO__OPS_HOSTED) != 0;
    if (r->state->cuts) RONDO__TRY(rondo__resolve_is_late(r, node, inputs, &late));
    for (uint32_t i = 0; i < node->input_count; i++) {
        hosted = hosted || (inputs[i] != RONDO_IR_NONE && rondo__resolve_at(r, inputs[i])->hosted);
    }
    bool body = (flags & RONDO__OPS_CONTROL) != 0 && strcmp(node->operator_name, "If") != 0;
    *out_left = late || hosted || body;
    if (!*out_left) return RONDO_OK;
    const char *why = hosted ? "it works on sequences or optionals" : "its body runs as often as data says";
    if (r->state->cuts) return rondo__resolve_leave(r, node, inputs, NULL, late ? NULL : why);
    return RONDO__FAIL(UNSUPPORTED, META, "node '%s' (%s): %s, which a session does between plans and no plan can do",
                       node->name, node->operator_name, why);
}

static rondo_status resolve_operator(rondo__resolve *r, const rondo__ops_prototype *prototype,
                                     const rondo__ir_node_data *from, rondo__ir_node_data *node) {
    void *memory = NULL;
    rondo__resolve_known known;
    bool firm = false, late = false;
    RONDO__TRY(resolve_shape_inputs(r, prototype, node));
    RONDO__TRY(resolve_infer(r, prototype, node, &late));
    if (late) {
        return rondo__resolve_leave(r, from, node->inputs, node->outputs, "its output's shape depends on data");
    }
    RONDO__TRY(rondo__arena_allocate_array(&r->state->arena, from->output_count, sizeof(void *), &memory));
    const rondo__ir_constant **constants = memory;
    RONDO__TRY(resolve_fold(r, prototype, node, constants, &known, &firm));
    if (prototype->flags & RONDO__OPS_SIZED && !firm) {
        static const char why[] = "the size of its output depends on data";
        if (r->state->cuts) return rondo__resolve_leave(r, from, node->inputs, node->outputs, why);
        return RONDO__FAIL(UNSUPPORTED, META,
                           "node '%s' (%s): %s, which is known only while running: a session runs it between plans",
                           node->name, node->operator_name, why);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == RONDO_IR_NONE) continue;
        rondo__resolve_known *entry = rondo__resolve_at(r, node->outputs[i]);
        *entry = known;
        entry->constant = constants[i];
        if (firm) rondo__ir_value_at(r->graph, node->outputs[i])->constant = constants[i];
    }
    return firm ? RONDO_OK : resolve_add(r, node);
}

static rondo_status resolve_node(rondo__resolve *r, const rondo__ir_node_data *from) {
    size_t depth = r->frames.count - 1;
    size_t count = (size_t)from->input_count + from->output_count;
    void *memory = NULL;
    bool left = false;
    RONDO__TRY(rondo__arena_allocate_array(&r->state->arena, count, sizeof(rondo_ir_value), &memory));
    rondo__ir_node_data node = *from;
    node.inputs = memory;
    node.outputs = node.inputs + from->input_count;
    RONDO__TRY(resolve_without_notes(r, &node));
    for (uint32_t i = 0; i < from->input_count; i++) {
        node.inputs[i] = RONDO_IR_NONE;
        if (from->inputs[i] != RONDO_IR_NONE) {
            RONDO__TRY(rondo__resolve_map(r, depth, from->inputs[i], &node.inputs[i]));
        }
    }
    const rondo__ops_prototype *prototype = rondo__ops_lookup(r->graph, from->operator_name);
    if (!prototype) {
        return RONDO__FAIL(UNSUPPORTED, PROTOTYPE, "node '%s': there is no operator '%s'", from->name,
                           from->operator_name);
    }
    RONDO__TRY(resolve_unplanned(r, from, prototype->flags, node.inputs, &left));
    if (left) return RONDO_OK;
    if (strcmp(from->operator_name, "If") == 0) return resolve_if(r, from, node.inputs);
    RONDO__TRY(rondo__resolve_outputs(r, depth, from, node.outputs));
    return resolve_operator(r, prototype, from, &node);
}

static rondo_status resolve_walk(rondo__resolve *r) {
    while (r->frames.count > 0) {
        rondo__resolve_frame *frame = RONDO__BUFFER_AT(&r->frames, rondo__resolve_frame, r->frames.count - 1);
        if (frame->next == frame->graph->nodes.count) {
            RONDO__TRY(resolve_pop(r));
            continue;
        }
        if (frame->begins) frame->begins[frame->next] = (uint32_t)r->graph->nodes.count;
        const rondo__ir_node_data *node = rondo__ir_node_at(frame->graph, (rondo_ir_node)frame->next++);
        if (!node->dead) RONDO__TRY(resolve_node(r, node));
    }
    return RONDO_OK;
}

static rondo_status resolve_start(rondo__resolve *r) {
    rondo__compile_state *state = r->state;
    const rondo_ir_graph *source = state->source;
    RONDO__TRY(rondo__resolve_extend(r));
    for (size_t i = 0; i < source->inputs.count; i++) {
        rondo_ir_value value = rondo__ir_input_at(source, (uint32_t)i);
        bool small = rondo_dtype_bits(rondo__ir_value_at(r->graph, value)->type.dtype) > 0 &&
                     rondo__compile_bytes(r->graph, value) <= RONDO__COMPILE_VALUE_MAX;
        rondo_dtype dtype = rondo__ir_value_at(r->graph, value)->type.dtype;
        bool whole = dtype != RONDO_DTYPE_F32 && dtype != RONDO_DTYPE_F64 && dtype != RONDO_DTYPE_F16 &&
                     dtype != RONDO_DTYPE_BF16;
        rondo__resolve_known *known = rondo__resolve_at(r, value);
        known->origin = (uint32_t)i;
        known->from = small && whole ? RONDO__RESOLVE_FROM_SMALL_INPUT : RONDO__RESOLVE_FROM_DATA;
        known->hosted = state->inputs && state->inputs[i].hosted;
    }
    for (uint32_t i = 0; i < state->binding_count; i++) {
        rondo__resolve_known *known = rondo__resolve_at(r, rondo__ir_input_at(source, state->bindings[i].input));
        known->constant = state->bindings[i].constant;
        known->rests_on = UINT64_C(1) << i;
    }
    RONDO__TRY(resolve_push(r, source, NULL));
    /* Inputs and constants of the source have their own numbers here; what nodes make comes as they are met. */
    rondo__resolve_frame *frame = RONDO__BUFFER_AT(&r->frames, rondo__resolve_frame, 0);
    for (size_t i = 0; i < source->values.count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(source, (rondo_ir_value)i);
        if (data->constant || data->flags & RONDO__IR_VALUE_INPUT) frame->map[i] = (rondo_ir_value)i;
    }
    return RONDO_OK;
}

/* Values that turned out to rest on needed inputs only are constants after all, and so are those inputs. */
static rondo_status resolve_finish(rondo__resolve *r) {
    rondo_ir_graph *graph = r->graph;
    rondo_ir_value *map = NULL;
    size_t count = graph->values.count;
    for (uint32_t i = 0; i < r->state->binding_count; i++) {
        rondo__compile_binding *binding = &r->state->bindings[i];
        rondo_ir_value copy = RONDO_IR_NONE;
        binding->needed = (r->needed >> i & 1u) != 0;
        if (!binding->needed) continue;
        rondo_ir_value value = rondo__ir_input_at(graph, binding->input);
        RONDO__TRY(resolve_materialise(r, value, &copy));
        RONDO__TRY(rondo__compile_remark(r->state, "input '%s': its value sets a condition or a shape, and is a guard",
                                         rondo__ir_value_at(graph, value)->name));
    }
    for (size_t i = 0; i < count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, (rondo_ir_value)i);
        rondo_ir_value copy = RONDO_IR_NONE;
        if (data->producer == RONDO_IR_NONE || !rondo__resolve_is_firm(r, rondo__resolve_at(r, (rondo_ir_value)i)))
            continue;
        RONDO__TRY(resolve_materialise(r, (rondo_ir_value)i, &copy));
    }
    RONDO__TRY(rondo__compile_identity_map(r->state, &map));
    for (size_t i = 0; i < count; i++) {
        const rondo__resolve_known *known = rondo__resolve_at(r, (rondo_ir_value)i);
        if (known->copy != RONDO_IR_NONE && rondo__resolve_is_firm(r, known)) map[i] = known->copy;
    }
    rondo__ir_values_replace(graph, map);
    return RONDO_OK;
}

rondo_status rondo__compile_resolve(rondo__compile_state *state) {
    rondo__resolve r = {.state = state, .graph = state->graph};
    rondo__buffer_init(&r.known, &state->allocator, sizeof(rondo__resolve_known), RONDO__IR_VALUES_MAX);
    rondo__buffer_init(&r.frames, &state->allocator, sizeof(rondo__resolve_frame), 1u << 16);
    rondo__buffer_init(&r.late, &state->allocator, sizeof(rondo__resolve_late), RONDO__IR_NODES_MAX);
    rondo__compile_request_init(&r.request, &state->allocator);
    rondo_status status = resolve_start(&r);
    if (!status) status = resolve_walk(&r);
    if (!status) status = resolve_finish(&r);
    rondo__compile_request_deinit(&r.request);
    rondo__buffer_deinit(&r.late);
    rondo__buffer_deinit(&r.frames);
    rondo__buffer_deinit(&r.known);
    return status;
}
