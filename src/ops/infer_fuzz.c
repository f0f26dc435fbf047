/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes to a node: an operator, operands of any type and shape, values and attributes. Inference must answer or refuse,
 * and an answer must be a shape that can be counted. Values lie in blocks of their own, so that a sanitizer sees a read
 * past the end. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "ops/infer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INFER_FUZZ_OPERANDS 10u
#define INFER_FUZZ_ATTRIBUTES 10u
#define INFER_FUZZ_ELEMENTS 40u

typedef struct infer_fuzz {
    const uint8_t *at, *end;
    rondo_operand inputs[INFER_FUZZ_OPERANDS], outputs[INFER_FUZZ_OPERANDS];
    int64_t dims[INFER_FUZZ_OPERANDS][RONDO_RANK_MAX], output_dims[INFER_FUZZ_OPERANDS][RONDO_RANK_MAX];
    void *values[INFER_FUZZ_OPERANDS];
    rondo_attribute attributes[INFER_FUZZ_ATTRIBUTES];
    int64_t ints[INFER_FUZZ_ATTRIBUTES][8];
    float floats[8];
    rondo_string strings[8];
    rondo_tensor_view views[INFER_FUZZ_ATTRIBUTES];
} infer_fuzz;

static uint8_t infer_fuzz_byte(infer_fuzz *f) { return f->at < f->end ? *f->at++ : 0; }

/* Mostly small numbers, sometimes the ones where arithmetic breaks. */
static int64_t infer_fuzz_number(infer_fuzz *f) {
    static const int64_t odd[] = {
        INT64_MIN, INT64_MAX, INT64_MIN + 1, INT64_MAX / 2, INT32_MAX, INT32_MIN, 1ll << 32, 1ll << 62,
        -1,        0,         INT64_MAX - 1, UINT32_MAX,    16,        17,        1000};
    uint8_t b = infer_fuzz_byte(f);
    if (b >= 0xe0) return odd[(b - 0xe0) % 15];
    return b < 0x80 ? b % 8 : (b % 32) - 16;
}

static void infer_fuzz_operand(infer_fuzz *f, uint32_t i, const rondo__ops_prototype *prototype) {
    static const rondo_dtype usual[] = {RONDO_DTYPE_F32, RONDO_DTYPE_I64, RONDO_DTYPE_I32, RONDO_DTYPE_BOOL};
    rondo_operand *input = &f->inputs[i];
    uint8_t kind = infer_fuzz_byte(f);
    input->dtype = kind < 0x80 ? usual[kind % 4] : kind < 0xa0 ? (rondo_dtype)(kind - 0x80) : RONDO_DTYPE_F32;
    /* Inputs that a shape depends on are mostly lists of int64: else little gets past the first checks. */
    bool list = prototype->shape_inputs >> i & 1u && kind < 0xc0;
    if (list) input->dtype = kind & 1u ? RONDO_DTYPE_I64 : input->dtype;
    input->rank = list ? 1 : infer_fuzz_byte(f) % (kind == 0xff ? 20 : 6);
    input->dims = f->dims[i];
    int64_t count = 1;
    for (int32_t a = 0; a < input->rank && a < RONDO_RANK_MAX; a++) f->dims[i][a] = infer_fuzz_number(f);
    bool counted = input->rank <= RONDO_RANK_MAX && rondo__checked_elements(input->rank, input->dims, &count);
    if (!counted || !count || count > (int64_t)INFER_FUZZ_ELEMENTS || !list) return;
    size_t element = input->dtype == RONDO_DTYPE_I64 ? 8 : 4;
    if (rondo_dtype_bits(input->dtype) > 64 || infer_fuzz_byte(f) % 16 == 0) return;
    unsigned char *block = malloc((size_t)count * element);
    for (int64_t n = 0; block && n < count; n++) {
        int64_t wide = infer_fuzz_number(f);
        int32_t narrow = (int32_t)wide;
        memcpy(block + (size_t)n * element, element == 8 ? (const void *)&wide : (const void *)&narrow, element);
    }
    f->values[i] = block;
    input->constant = block;
}

static const char *infer_fuzz_word(infer_fuzz *f) {
    static const char *const words[] = {"",        "NOTSET", "SAME_UPPER", "SAME_LOWER",    "VALID",   "constant",
                                        "reflect", "edge",   "wrap",       "bidirectional", "reverse", "forward"};
    return words[infer_fuzz_byte(f) % 12];
}

static void infer_fuzz_attribute(infer_fuzz *f, uint32_t i, const rondo__ops_attribute *known) {
    rondo_attribute *attribute = &f->attributes[i];
    uint8_t how = infer_fuzz_byte(f);
    attribute->name = known->name;
    attribute->kind = how == 0xff ? infer_fuzz_byte(f) % 10 : known->kind;
    attribute->count = how % 8u;
    for (uint32_t n = 0; n < 8; n++) f->ints[i][n] = n < attribute->count ? infer_fuzz_number(f) : 0;
    switch (attribute->kind) {
    case RONDO_ATTRIBUTE_INT: attribute->value.i = infer_fuzz_number(f); break;
    case RONDO_ATTRIBUTE_STRING:
        attribute->value.s.data = infer_fuzz_word(f);
        attribute->value.s.size = strlen(attribute->value.s.data);
        break;
    case RONDO_ATTRIBUTE_INTS: attribute->value.ints = f->ints[i]; break;
    case RONDO_ATTRIBUTE_FLOATS: attribute->value.floats = f->floats; break;
    case RONDO_ATTRIBUTE_STRINGS: attribute->value.strings = f->strings; break;
    case RONDO_ATTRIBUTE_TENSOR:
        f->views[i] = (rondo_tensor_view){
            .device_type = 1, .rank = infer_fuzz_byte(f) % 8, .dtype = infer_fuzz_byte(f) % 30, .shape = f->ints[i]};
        attribute->value.tensor = &f->views[i];
        break;
    default: break;
    }
}

static void infer_fuzz_check(const infer_fuzz *f, const rondo_kernel_request *request) {
    for (uint32_t i = 0; i < request->output_count; i++) {
        const rondo_operand *output = &f->outputs[i];
        int64_t elements;
        if (output->dtype <= RONDO_DTYPE_UNDEFINED || output->dtype >= RONDO_DTYPE_COUNT) __builtin_trap();
        if (output->rank < 0 || output->rank > RONDO_RANK_MAX) __builtin_trap();
        if (!rondo__checked_elements(output->rank, output->dims, &elements)) __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    infer_fuzz f = {.at = data, .end = data + size};
    uint32_t operators = 0;
    while (rondo__ops_at(operators)) operators++;
    const rondo__ops_prototype *prototype = rondo__ops_at(infer_fuzz_byte(&f) % (operators + 1u)); /* one is unknown */
    uint8_t counts = infer_fuzz_byte(&f);
    rondo_kernel_request request = RONDO_KERNEL_REQUEST_INIT;
    request.operator_name = prototype ? prototype->name : "Nothing";
    request.inputs = f.inputs;
    request.attributes = f.attributes;
    if (!prototype) prototype = rondo__ops_at(0);
    uint32_t most = prototype->input_count + 1u;
    request.input_count = counts % 16u < 12u ? prototype->input_count : counts % most;
    if (prototype->input_count && prototype->inputs[prototype->input_count - 1u].variadic) {
        request.input_count = counts % INFER_FUZZ_OPERANDS;
    }
    if (request.input_count > INFER_FUZZ_OPERANDS) request.input_count = INFER_FUZZ_OPERANDS;
    request.output_count = counts < 0x80 ? prototype->output_count : (counts >> 4) % INFER_FUZZ_OPERANDS;
    for (uint32_t i = 0; i < request.input_count; i++) infer_fuzz_operand(&f, i, prototype);
    for (uint32_t i = 0; i < prototype->attribute_count; i++) {
        if (infer_fuzz_byte(&f) % 2u || prototype->attributes[i].required) {
            infer_fuzz_attribute(&f, request.attribute_count++, &prototype->attributes[i]);
        }
    }
    rondo_status status = rondo__ops_infer_request(&request, f.outputs, f.output_dims);
    if (!status) infer_fuzz_check(&f, &request);
    rondo_status_release(status);
    for (uint32_t i = 0; i < INFER_FUZZ_OPERANDS; i++) free(f.values[i]);
    return 0;
}
