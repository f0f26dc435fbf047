/* SPDX-License-Identifier: Apache-2.0
 *
 * A converter's names against the prototype's: what a framework's node becomes must be a node that there is. */
#include <string.h>

#include "ops/operators.h"

#define CONVERTER_FAIL(prototype, converter, format, ...)                                                    \
    RONDO__FAIL(INVALID_ARGUMENT, CONVERTER, "operator '%s', converter of '%s': " format, (prototype)->name, \
                (converter)->from ? (converter)->from : "?", __VA_ARGS__)

static const rondo__ops_operand *converter_operand(const rondo__ops_operand *operands, uint32_t count, uint32_t index) {
    if (index < count) return &operands[index];
    return count && operands[count - 1u].variadic ? &operands[count - 1u] : NULL;
}

/* Names are in the prototype's order; "" leaves an optional one out. */
static rondo_status converter_operands(const rondo__ops_prototype *prototype, const rondo_operator_converter *converter,
                                       bool inputs) {
    const char *what = inputs ? "input" : "output";
    const char *const *names = inputs ? converter->inputs : converter->outputs;
    uint32_t given = inputs ? converter->input_count : converter->output_count;
    const rondo__ops_operand *operands = inputs ? prototype->inputs : prototype->outputs;
    uint32_t count = inputs ? prototype->input_count : prototype->output_count;
    if (given && !names) return CONVERTER_FAIL(prototype, converter, "its %ss are null", what);
    for (uint32_t i = 0; i < given; i++) {
        const rondo__ops_operand *operand = converter_operand(operands, count, i);
        if (!operand || operand->internal)
            return CONVERTER_FAIL(prototype, converter, "it gives %u %ss, the prototype has %u", given, what, count);
        if (!names[i] || (strcmp(names[i], operand->name) != 0 && (*names[i] || !operand->optional)))
            return CONVERTER_FAIL(prototype, converter, "it calls %s %u '%s', the prototype '%s'", what, i,
                                  names[i] ? names[i] : "", operand->name);
    }
    for (uint32_t i = given; i < count; i++)
        if (!operands[i].optional && (inputs || i == 0))
            return CONVERTER_FAIL(prototype, converter, "it gives no %s '%s'", what, operands[i].name);
    return RONDO_OK;
}

static rondo_status converter_attributes(const rondo__ops_prototype *prototype,
                                         const rondo_operator_converter *converter) {
    if (converter->attribute_count && !converter->attributes)
        return CONVERTER_FAIL(prototype, converter, "its %s are null", "attributes");
    for (uint32_t i = 0; i < converter->attribute_count; i++) {
        const char *name = converter->attributes[i] ? converter->attributes[i] : "";
        bool known = false;
        for (uint32_t k = 0; k < prototype->attribute_count && !known; k++)
            known = strcmp(prototype->attributes[k].name, name) == 0;
        if (!known)
            return CONVERTER_FAIL(prototype, converter, "it gives attribute '%s', the prototype has none", name);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(converter->attributes[k], name) == 0)
                return CONVERTER_FAIL(prototype, converter, "it gives attribute '%s' twice", name);
    }
    for (uint32_t k = 0; k < prototype->attribute_count; k++) {
        const char *name = prototype->attributes[k].name;
        bool given = !prototype->attributes[k].required;
        for (uint32_t i = 0; i < converter->attribute_count && !given; i++)
            given = strcmp(converter->attributes[i], name) == 0;
        if (!given)
            return CONVERTER_FAIL(prototype, converter, "it gives no attribute '%s', which must be there", name);
    }
    return RONDO_OK;
}

rondo_status rondo__operator_check_converters(const rondo__ops_prototype *prototype,
                                              const rondo_operator_converter *converters, uint32_t count) {
    if (count && !converters)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%u converters of operator '%s' are null", count, prototype->name);
    for (uint32_t i = 0; i < count; i++) {
        RONDO__TRY(converter_operands(prototype, &converters[i], true));
        RONDO__TRY(converter_operands(prototype, &converters[i], false));
        RONDO__TRY(converter_attributes(prototype, &converters[i]));
    }
    return RONDO_OK;
}
