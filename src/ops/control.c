/* SPDX-License-Identifier: Apache-2.0
 *
 * Constant, which importers turn into a constant value, and the operators with graphs of their own: If, Loop, Scan and
 * SequenceMap. What is known of them while compiling is unrolled; a session does the rest between plans. */
#include <string.h>

#include "base/checked.h"
#include "ops/infer.h"

static rondo_status control_constant_tensor(rondo__ops_infer *infer, const rondo_tensor_view *view) {
    int64_t elements;
    if (view->dtype <= RONDO_DTYPE_UNDEFINED || view->dtype >= RONDO_DTYPE_COUNT || view->rank < 0 ||
        view->rank > RONDO_RANK_MAX || (view->rank && !view->shape) ||
        !rondo__checked_elements(view->rank, view->shape, &elements)) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute 'value' has an impossible type or shape");
    }
    rondo__ops_result(infer, 0, view->dtype, view->rank, view->shape);
    return RONDO_OK;
}

static rondo_status control_infer_constant(rondo__ops_infer *infer) {
    static const struct {
        const char *name;
        rondo_dtype dtype;
        int32_t rank;
    } forms[] = {{"value_float", RONDO_DTYPE_F32, 0},     {"value_floats", RONDO_DTYPE_F32, 1},
                 {"value_int", RONDO_DTYPE_I64, 0},       {"value_ints", RONDO_DTYPE_I64, 1},
                 {"value_string", RONDO_DTYPE_STRING, 0}, {"value_strings", RONDO_DTYPE_STRING, 1}};
    uint32_t found = 0;
    const rondo_attribute *value = rondo__ops_attribute_find(infer->request, "value");
    if (value) {
        found++;
        RONDO__TRY(control_constant_tensor(infer, value->value.tensor));
    }
    for (uint32_t i = 0; i < RONDO__OPS_COUNT(forms); i++) {
        const rondo_attribute *attribute = rondo__ops_attribute_find(infer->request, forms[i].name);
        if (!attribute) continue;
        int64_t count = attribute->count;
        found++;
        rondo__ops_result(infer, 0, forms[i].dtype, forms[i].rank, &count);
    }
    if (found != 1) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "%u of the value attributes are there, one is needed", found);
    }
    return RONDO_OK;
}

static const rondo__ops_operand control_constant_outputs[] = {{"output", RONDO__OPS_ANY, 0, 0, 0, 0}};
static const rondo__ops_attribute control_constant_attributes[] = {
    {"value", RONDO_ATTRIBUTE_TENSOR, 0, NULL},         {"value_float", RONDO_ATTRIBUTE_FLOAT, 0, NULL},
    {"value_floats", RONDO_ATTRIBUTE_FLOATS, 0, NULL},  {"value_int", RONDO_ATTRIBUTE_INT, 0, NULL},
    {"value_ints", RONDO_ATTRIBUTE_INTS, 0, NULL},      {"value_string", RONDO_ATTRIBUTE_STRING, 0, NULL},
    {"value_strings", RONDO_ATTRIBUTE_STRINGS, 0, NULL}};
const rondo__ops_prototype rondo__ops_Constant = {.name = "Constant",
                                                  .summary = "The value of its attribute",
                                                  RONDO__OPS_OUTPUTS(control_constant_outputs),
                                                  RONDO__OPS_ATTRIBUTES(control_constant_attributes),
                                                  .infer = control_infer_constant};

static const rondo__ops_operand control_if_inputs[] = {{"cond", RONDO__OPS_BIT(BOOL), 0, 0, 0, 0}};
static const rondo__ops_operand control_if_outputs[] = {{"outputs", RONDO__OPS_ANY, 0, 0, 1, 0}};
static const rondo__ops_attribute control_if_attributes[] = {{"else_branch", RONDO_ATTRIBUTE_GRAPH, 1, NULL},
                                                             {"then_branch", RONDO_ATTRIBUTE_GRAPH, 1, NULL}};
const rondo__ops_prototype rondo__ops_If = {.name = "If",
                                            .summary = "The outputs of one of two graphs",
                                            RONDO__OPS_INPUTS(control_if_inputs),
                                            RONDO__OPS_OUTPUTS(control_if_outputs),
                                            RONDO__OPS_ATTRIBUTES(control_if_attributes),
                                            .flags = RONDO__OPS_CONTROL};

static const rondo__ops_operand control_loop_inputs[] = {{"M", RONDO__OPS_BIT(I64), 0, 1, 0, 0},
                                                         {"cond", RONDO__OPS_BIT(BOOL), 0, 1, 0, 0},
                                                         {"v_initial", RONDO__OPS_ANY, 0, 0, RONDO__OPS_ANY_NUMBER, 0}};
static const rondo__ops_operand control_loop_outputs[] = {{"v_final_and_scan_outputs", RONDO__OPS_ANY, 0, 0, 1, 0}};
static const rondo__ops_attribute control_loop_attributes[] = {{"body", RONDO_ATTRIBUTE_GRAPH, 1, NULL}};
const rondo__ops_prototype rondo__ops_Loop = {.name = "Loop",
                                              .summary = "A graph again and again, with values carried over",
                                              RONDO__OPS_INPUTS(control_loop_inputs),
                                              RONDO__OPS_OUTPUTS(control_loop_outputs),
                                              RONDO__OPS_ATTRIBUTES(control_loop_attributes),
                                              .flags = RONDO__OPS_CONTROL};

static const rondo__ops_operand control_scan_inputs[] = {{"initial_state_and_scan_inputs", RONDO__OPS_ANY, 0, 0, 1, 0}};
static const rondo__ops_operand control_scan_outputs[] = {{"final_state_and_scan_outputs", RONDO__OPS_ANY, 0, 0, 1, 0}};
static const rondo__ops_attribute control_scan_attributes[] = {
    {"body", RONDO_ATTRIBUTE_GRAPH, 1, NULL},
    {"num_scan_inputs", RONDO_ATTRIBUTE_INT, 1, NULL},
    {"scan_input_axes", RONDO_ATTRIBUTE_INTS, 0, "0 each"},
    {"scan_input_directions", RONDO_ATTRIBUTE_INTS, 0, "0 each"},
    {"scan_output_axes", RONDO_ATTRIBUTE_INTS, 0, "0 each"},
    {"scan_output_directions", RONDO_ATTRIBUTE_INTS, 0, "0 each"}};
const rondo__ops_prototype rondo__ops_Scan = {.name = "Scan",
                                              .summary = "A graph over slices of its inputs, with values carried over",
                                              RONDO__OPS_INPUTS(control_scan_inputs),
                                              RONDO__OPS_OUTPUTS(control_scan_outputs),
                                              RONDO__OPS_ATTRIBUTES(control_scan_attributes),
                                              .flags = RONDO__OPS_CONTROL};
