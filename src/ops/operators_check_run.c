/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a drawn node with the kernel of one catalogue. Outputs and workspace are poisoned and lie between guards, so
 * that two runs show what was not written, and the guards what was written outside. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "ops/operators_check.h"

#define CHECK_GUARD 64u
#define CHECK_GUARD_BYTE 0xc3

/* ---------------------------------------------------------------------------------------------------------- numbers */

static uint32_t contract_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Exact for the small numbers that are drawn: their lowest mantissa bits are zero. */
static uint16_t contract_half(float value) {
    uint32_t bits = contract_bits(value), sign = bits >> 16 & 0x8000u;
    if (!(bits & 0x7fffffffu)) return (uint16_t)sign;
    return (uint16_t)(sign | (((bits >> 23 & 0xffu) - 112u) << 10) | (bits >> 13 & 0x3ffu));
}

static float contract_half_value(uint16_t half) {
    int32_t exponent = half >> 10 & 31, mantissa = half & 1023;
    float value = exponent == 31  ? (mantissa ? NAN : INFINITY)
                  : exponent == 0 ? ldexpf((float)mantissa, -24)
                                  : ldexpf((float)(mantissa | 1024), exponent - 25);
    return half & 0x8000u ? -value : value;
}

void rondo__check_put(rondo_dtype dtype, void *data, uint64_t index, int64_t quarters) {
    const uint32_t bits = rondo_dtype_bits(dtype);
    unsigned char *at = (unsigned char *)data + index * (bits >= 8u ? bits / 8u : 1u);
    const double number = (double)quarters / 4;
    const float narrow = (float)number;
    const int64_t whole = quarters / 4;
    const uint64_t positive = whole < 0 ? (uint64_t)-whole : (uint64_t)whole;
    switch (dtype) {
    case RONDO_DTYPE_F32: memcpy(at, &narrow, sizeof narrow); return;
    case RONDO_DTYPE_F64: memcpy(at, &number, sizeof number); return;
    case RONDO_DTYPE_F16: memcpy(at, &(uint16_t){contract_half(narrow)}, 2); return;
    case RONDO_DTYPE_BF16: memcpy(at, &(uint16_t){(uint16_t)(contract_bits(narrow) >> 16)}, 2); return;
    case RONDO_DTYPE_C64: memcpy(at, (const float[]){narrow, -narrow}, 8); return;
    case RONDO_DTYPE_C128: memcpy(at, (const double[]){number, -number}, 16); return;
    case RONDO_DTYPE_I64: memcpy(at, &whole, 8); return;
    case RONDO_DTYPE_U64: memcpy(at, &positive, 8); return;
    case RONDO_DTYPE_I32: memcpy(at, &(int32_t){(int32_t)whole}, 4); return;
    case RONDO_DTYPE_U32: memcpy(at, &(uint32_t){(uint32_t)positive}, 4); return;
    case RONDO_DTYPE_I16: memcpy(at, &(int16_t){(int16_t)whole}, 2); return;
    case RONDO_DTYPE_U16: memcpy(at, &(uint16_t){(uint16_t)positive}, 2); return;
    case RONDO_DTYPE_I8: *at = (unsigned char)(int8_t)whole; return;
    case RONDO_DTYPE_BOOL: *at = quarters > 0; return;
    default: *at = (unsigned char)positive; /* eight bits and fewer: a byte at a time, and any byte is a number */
    }
}

/* ----------------------------------------------------------------------------------------------------------- blocks */

static bool contract_bytes(const rondo_operand *operand, uint64_t *out_bytes) {
    int64_t elements = 0;
    *out_bytes = 0;
    if (operand->dtype == RONDO_DTYPE_UNDEFINED) return true;
    if (!rondo__checked_elements(operand->rank, operand->dims, &elements)) return false;
    rondo_status status = rondo_dtype_bytes(operand->dtype, (uint64_t)elements, out_bytes);
    bool counted = !status;
    rondo_status_release(status);
    return counted && *out_bytes <= RONDO__CHECK_BYTES_MAX;
}

bool rondo__check_small(const rondo__check_case *c) {
    uint64_t bytes;
    for (uint32_t i = 0; i < c->input_count; i++)
        if (!contract_bytes(&c->inputs[i], &bytes)) return false;
    for (uint32_t i = 0; i < c->output_count; i++)
        if (!contract_bytes(&c->outputs[i], &bytes)) return false;
    return true;
}

static rondo_status contract_block_make(rondo__arena *arena, uint64_t bytes, unsigned char poison,
                                        rondo__check_block *out_block) {
    void *memory = NULL;
    uint64_t whole = 0;
    if (!rondo__checked_align_u64(bytes, CHECK_GUARD, &whole) || whole > SIZE_MAX - 2u * CHECK_GUARD)
        return RONDO__FAIL(OUT_OF_RANGE, KERNEL, "a block of %llu bytes is too large", (unsigned long long)bytes);
    out_block->whole = (size_t)whole + 2u * CHECK_GUARD;
    out_block->bytes = (size_t)bytes;
    RONDO__TRY(rondo__arena_allocate_aligned(arena, out_block->whole, CHECK_GUARD, &memory));
    out_block->memory = memory;
    out_block->data = out_block->memory + CHECK_GUARD;
    memset(memory, CHECK_GUARD_BYTE, out_block->whole);
    memset(out_block->data, poison, out_block->bytes);
    return RONDO_OK;
}

static bool contract_block_kept(const rondo__check_block *block) {
    for (size_t i = 0; i < block->whole; i++) {
        bool inside = i >= CHECK_GUARD && i < CHECK_GUARD + block->bytes;
        if (!inside && block->memory[i] != CHECK_GUARD_BYTE) return false;
    }
    return true;
}

static void contract_fill(const rondo__check_case *c, uint32_t index, uint8_t how, unsigned char *data, size_t bytes) {
    const rondo_operand *input = &c->inputs[index];
    uint32_t bits = rondo_dtype_bits(input->dtype);
    uint64_t count = bytes / (bits >= 8u ? bits / 8u : 1u);
    uint64_t state = c->data_seed + 977u * index;
    if (input->constant) {
        memcpy(data, input->constant, bytes);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int64_t quarters = (int64_t)(state >> 33) % 33 - 16;
        rondo__check_put(input->dtype, data, i, how == 0 ? quarters : how == 1 ? 0 : 4);
    }
}

/* ------------------------------------------------------------------------------------------------------------ a run */

static rondo_status contract_run_blocks(const rondo__check_case *c, rondo__check_how how, rondo__check_run *run) {
    uint64_t bytes;
    for (uint32_t i = 0; i < c->input_count; i++) {
        if (!contract_bytes(&c->inputs[i], &bytes))
            return RONDO__FAIL(INTERNAL, KERNEL, "the case is too large to be run");
        if (c->inputs[i].dtype == RONDO_DTYPE_UNDEFINED) continue;
        RONDO__TRY(contract_block_make(run->arena, bytes, 0, &run->inputs[i]));
        contract_fill(c, i, how.data, run->inputs[i].data, run->inputs[i].bytes);
    }
    for (uint32_t i = 0; i < c->output_count; i++) {
        if (!contract_bytes(&c->outputs[i], &bytes))
            return RONDO__FAIL(INTERNAL, KERNEL, "the case is too large to be run");
        if (c->outputs[i].dtype == RONDO_DTYPE_UNDEFINED) continue;
        RONDO__TRY(contract_block_make(run->arena, bytes, how.poison, &run->outputs[i]));
    }
    if (how.in_place >= 0) run->outputs[0] = run->inputs[how.in_place];
    RONDO__TRY(contract_block_make(run->arena, run->facts.scratch_bytes, how.poison, &run->scratch));
    return contract_block_make(run->arena, run->facts.packed_bytes, how.poison, &run->packed);
}

static void contract_run_words(const rondo__check_case *c, const rondo__check_run *run, uint64_t *words) {
    for (uint32_t i = 0; i < c->input_count; i++) {
        bool absorbed = i < 64u && (run->facts.absorbed_inputs >> i & 1u) != 0;
        *words++ = absorbed ? 0u : (uint64_t)(uintptr_t)run->inputs[i].data;
    }
    for (uint32_t i = 0; i < c->output_count; i++) *words++ = (uint64_t)(uintptr_t)run->outputs[i].data;
    if (run->sizes.memory) *words++ = (uint64_t)(uintptr_t)run->sizes.data;
    if (run->facts.scratch_bytes) *words++ = (uint64_t)(uintptr_t)run->scratch.data;
    if (run->facts.packed_bytes) *words = (uint64_t)(uintptr_t)run->packed.data;
}

/* Inputs hold what they held, except the one that became the output; nothing was written past an end. */
static rondo_status contract_run_watch(const rondo__check_case *c, rondo__check_how how, rondo__check_run *run) {
    for (uint32_t i = 0; i < c->input_count; i++) {
        void *before = NULL;
        if (!run->inputs[i].data) continue;
        if (!contract_block_kept(&run->inputs[i])) run->outside = "past the end of an input";
        if ((int32_t)i == how.in_place || !run->inputs[i].bytes) continue;
        RONDO__TRY(rondo__arena_allocate_aligned(run->arena, run->inputs[i].bytes, CHECK_GUARD, &before));
        memcpy(before, run->inputs[i].data, run->inputs[i].bytes); /* what contract_fill leaves alone stays equal */
        contract_fill(c, i, how.data, before, run->inputs[i].bytes);
        if (memcmp(before, run->inputs[i].data, run->inputs[i].bytes) != 0) run->outside = "into an input";
    }
    for (uint32_t i = 0; i < c->output_count; i++)
        if (run->outputs[i].data && !contract_block_kept(&run->outputs[i])) run->outside = "past the end of an output";
    if (run->sizes.memory && !contract_block_kept(&run->sizes)) run->outside = "past the end of its sizes";
    if (!contract_block_kept(&run->scratch)) run->outside = "past the end of its workspace";
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------- sizes that data decides */

/* The request with what asks for sizes, and the place for them. */
typedef struct contract_sized {
    rondo_operand outputs[RONDO__CHECK_OPERANDS + 1u];
    rondo_attribute attributes[RONDO_OPERATOR_ATTRIBUTES_MAX + 2u];
    rondo_kernel_request request;
    int64_t total;
} contract_sized;

static rondo_status contract_sized_make(const rondo__check_case *c, const rondo_kernel_request *request,
                                        rondo__check_how how, rondo__check_run *run, contract_sized *sized) {
    sized->total = 0;
    for (uint32_t i = 0; i < c->output_count; i++) {
        sized->outputs[i] = request->outputs[i];
        if (request->outputs[i].dtype != RONDO_DTYPE_UNDEFINED) sized->total += request->outputs[i].rank;
    }
    if (request->attribute_count > RONDO_OPERATOR_ATTRIBUTES_MAX + 1u)
        return RONDO__FAIL(OUT_OF_RANGE, KERNEL, "%u attributes are too many", request->attribute_count);
    sized->outputs[c->output_count] = (rondo_operand){.dtype = RONDO_DTYPE_I64, .rank = 1, .dims = &sized->total};
    for (uint32_t i = 0; i < request->attribute_count; i++) sized->attributes[i] = request->attributes[i];
    sized->attributes[request->attribute_count] =
        (rondo_attribute){.name = RONDO__KERNEL_SIZES, .kind = RONDO_ATTRIBUTE_INT, .count = 1, .value = {.i = 1}};
    sized->request = *request;
    sized->request.outputs = sized->outputs;
    sized->request.output_count++;
    sized->request.attributes = sized->attributes;
    sized->request.attribute_count++;
    return contract_block_make(run->arena, (uint64_t)sized->total * sizeof(int64_t), how.poison, &run->sizes);
}

/* What was told must be within what was asked for; only so many elements are looked at. */
static void contract_sized_read(const rondo__check_case *c, rondo__check_run *run) {
    const unsigned char *at = run->sizes.data;
    for (uint32_t i = 0; i < c->output_count && !run->reason; i++) {
        const rondo_operand *output = &c->outputs[i];
        int64_t dims[RONDO_RANK_MAX];
        if (output->dtype == RONDO_DTYPE_UNDEFINED) continue;
        for (int32_t d = 0; d < output->rank; d++, at += sizeof(int64_t)) {
            memcpy(&dims[d], at, sizeof dims[d]);
            if (dims[d] < 0 || dims[d] > output->dims[d]) {
                run->outside = "a size that is beyond its bound";
                return;
            }
        }
        rondo_operand whole = *output;
        uint64_t bytes = 0;
        whole.dims = dims;
        if (contract_bytes(&whole, &bytes)) run->outputs[i].bytes = (size_t)bytes;
    }
}

rondo_status rondo__check_run_request(const rondo__check_case *c, const rondo_kernel_request *request,
                                      const rondo_catalogue *catalogue, rondo__check_how how, rondo__check_run *out_run,
                                      rondo_status *out_refusal) {
    const rondo_catalogue_table *table = catalogue->table;
    uint64_t words[2u * RONDO__CHECK_OPERANDS + 3u] = {0};
    rondo__check_run *run = out_run;
    rondo_kernel kernel = {0};
    contract_sized sized;
    *out_refusal = RONDO_OK;
    if (c->prototype->flags & RONDO__OPS_SIZED) {
        RONDO__TRY(contract_sized_make(c, request, how, run, &sized));
        request = &sized.request;
    }
    run->facts = (rondo_kernel_facts)RONDO_KERNEL_FACTS_INIT;
    rondo_status refusal = table->find(catalogue->self, request, &run->facts);
    if (refusal) {
        *out_refusal = refusal;
        return RONDO_OK;
    }
    if (run->facts.scratch_bytes > 64u * RONDO__CHECK_BYTES_MAX ||
        run->facts.packed_bytes > 64u * RONDO__CHECK_BYTES_MAX)
        return RONDO__FAIL(OUT_OF_RANGE, KERNEL, "catalogue '%s' wants more workspace than a check has", table->name);
    RONDO__TRY(contract_run_blocks(c, how, run));
    if (run->facts.packed_bytes) RONDO__TRY(table->pack(catalogue->self, request, run->packed.data));
    contract_run_words(c, run, words);
    RONDO__TRY(table->prepare(catalogue->self, request, &kernel));
    if (strcmp(table->name, RONDO__KERNEL_REGISTERED) == 0) {
        run->words = rondo__operator_kernel_run(kernel.context, words);
        run->reason = rondo_status_code(run->words);
    } else {
        run->reason = kernel.function(kernel.context, words);
    }
    table->release(catalogue->self, kernel);
    rondo_status status = contract_run_watch(c, how, run);
    if (!status && run->sizes.memory) contract_sized_read(c, run);
    if (status) {
        rondo_status_release(run->words);
        run->words = RONDO_OK;
    }
    return status;
}

rondo_status rondo__check_run_once(const rondo__check_case *c, const rondo_catalogue *catalogue, rondo__check_how how,
                                   rondo__check_run *out_run, rondo_status *out_refusal) {
    return rondo__check_run_request(c, &c->request, catalogue, how, out_run, out_refusal);
}

/* -------------------------------------------------------------------------------------------------------- comparing */

static bool contract_close(double a, double b, double allowed) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b)) return a == b;
    double size = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
    return fabs(a - b) <= allowed * (size > 1 ? size : 1);
}

static double contract_value(rondo_dtype dtype, const unsigned char *data, size_t index) {
    uint16_t half;
    float narrow;
    double wide;
    uint32_t bits;
    switch (dtype) {
    case RONDO_DTYPE_F32: memcpy(&narrow, data + index * 4u, 4); return (double)narrow;
    case RONDO_DTYPE_F64: memcpy(&wide, data + index * 8u, 8); return wide;
    case RONDO_DTYPE_F16: memcpy(&half, data + index * 2u, 2); return (double)contract_half_value(half);
    default:
        memcpy(&half, data + index * 2u, 2);
        bits = (uint32_t)half << 16;
        memcpy(&narrow, &bits, 4);
        return (double)narrow;
    }
}

static bool contract_same(rondo_dtype dtype, const rondo__check_block *a, const rondo__check_block *b, bool exactly) {
    if (a->bytes != b->bytes) return false;
    if (!a->bytes || memcmp(a->data, b->data, a->bytes) == 0) return true;
    double allowed = dtype == RONDO_DTYPE_F32   ? 1e-5
                     : dtype == RONDO_DTYPE_F64 ? 1e-12
                     : dtype == RONDO_DTYPE_F16 ? 2e-3
                                                : 2e-2;
    bool rounds =
        dtype == RONDO_DTYPE_F32 || dtype == RONDO_DTYPE_F64 || dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_BF16;
    if (exactly || !rounds) return false;
    for (size_t i = 0; i < a->bytes / (rondo_dtype_bits(dtype) / 8u); i++)
        if (!contract_close(contract_value(dtype, a->data, i), contract_value(dtype, b->data, i), allowed))
            return false;
    return true;
}

int32_t rondo__check_compare(const rondo__check_case *c, const rondo__check_run *a, const rondo__check_run *b,
                             bool exactly) {
    if (a->sizes.bytes != b->sizes.bytes) return 0;
    if (a->sizes.bytes && memcmp(a->sizes.data, b->sizes.data, a->sizes.bytes) != 0) return 0;
    for (uint32_t i = 0; i < c->output_count; i++)
        if (c->outputs[i].dtype != RONDO_DTYPE_UNDEFINED &&
            !contract_same(c->outputs[i].dtype, &a->outputs[i], &b->outputs[i], exactly))
            return (int32_t)i;
    return -1;
}
