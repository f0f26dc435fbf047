/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue of registered operators, and the context that an implementation is called with.
 *
 * A prepared kernel holds a copy of its request; a call adds nothing but the words. So a call takes no lock and no
 * memory, and replays as any other kernel does. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "ops/infer.h"
#include "ops/operators.h"

#define OPERATOR_KERNEL_ARENA_MAX ((size_t)1 << 30)

typedef struct operator_kernel {
    rondo_allocator allocator;
    rondo__arena arena;
    rondo__operators *operators;
    const rondo__operator_entry *entry;
    rondo_kernel_request request; /* in the arena */
    const uint64_t *input_bytes, *output_bytes;
    const uint32_t *open; /* of an operator with bound, for each output: bit d: data decides axis d */
    uint32_t sized;       /* 1: the words have a place for sizes behind the outputs; such an operator */
    uint64_t workspace_bytes;
    void *state;
} operator_kernel;

struct rondo_operator_context {
    const operator_kernel *kernel;
    const uint64_t *words;
    uint64_t made; /* bit i: output i was allocated or referred */
};

/* ----------------------------------------------------------------------------------------------------- the context */

static const rondo_attribute *operator_attribute(const rondo_kernel_request *request, const char *name) {
    return request && name ? rondo__ops_attribute_find(request, name) : NULL;
}

static const rondo_kernel_request *operator_request(const rondo_operator_context *context) {
    return context ? &context->kernel->request : NULL;
}

static void *operator_word(const rondo_operator_context *context, uint64_t index) {
    return (void *)(uintptr_t)context->words[index];
}

static const void *operator_input(const rondo_operator_context *context, uint32_t index, rondo_dtype dtype) {
    if (!context || index >= context->kernel->request.input_count) return NULL;
    const rondo_operand *input = &context->kernel->request.inputs[index];
    if (input->dtype == RONDO_DTYPE_UNDEFINED || input->dtype != dtype) return NULL;
    return operator_word(context, index);
}

#define OPERATOR_FAIL(context, format, ...)                                                                  \
    RONDO__FAIL(INVALID_ARGUMENT, IMPLEMENTATION, "node '%s' (%s): " format,                                 \
                rondo__ops_node_name(&(context)->kernel->request), (context)->kernel->request.operator_name, \
                __VA_ARGS__)

/* Where data decides sizes, what was decided goes behind the outputs. */
static void operator_tell_sizes(const rondo_operator_context *context, uint32_t index, const int64_t *dims) {
    const rondo_kernel_request *request = &context->kernel->request;
    if (!context->kernel->sized) return;
    int64_t *sizes = operator_word(context, (uint64_t)request->input_count + request->output_count);
    for (uint32_t i = 0; i < index; i++)
        if (request->outputs[i].dtype != RONDO_DTYPE_UNDEFINED) sizes += request->outputs[i].rank;
    for (int32_t d = 0; d < request->outputs[index].rank; d++) sizes[d] = dims[d];
}

static rondo_status operator_output(rondo_operator_context *context, uint32_t index, int32_t rank, const int64_t *dims,
                                    rondo_format format, rondo_dtype dtype, void **out_data) {
    if (!context || !out_data || (rank > 0 && !dims))
        return RONDO__FAIL(INVALID_ARGUMENT, IMPLEMENTATION, "an output needs a context, its sizes and a place");
    const rondo_kernel_request *request = &context->kernel->request;
    if (index >= request->output_count)
        return OPERATOR_FAIL(context, "there is no output %u, there are %u", index, request->output_count);
    const rondo_operand *output = &request->outputs[index];
    *out_data = NULL;
    if (output->dtype == RONDO_DTYPE_UNDEFINED) return RONDO_OK;
    if (dtype != output->dtype || format != output->format)
        return OPERATOR_FAIL(context, "it allocates output %u as %s in format %d, what was inferred is %s in format %d",
                             index, rondo_dtype_name(dtype), (int)format, rondo_dtype_name(output->dtype),
                             (int)output->format);
    if (rank != output->rank)
        return OPERATOR_FAIL(context, "it allocates output %u with rank %d, what was inferred is rank %d", index,
                             (int)rank, (int)output->rank);
    const uint32_t open = context->kernel->sized ? context->kernel->open[index] : 0;
    for (int32_t i = 0; i < rank; i++) {
        if (open >> i & 1u && (dims[i] < 0 || dims[i] > output->dims[i]))
            return OPERATOR_FAIL(context, "it makes axis %d of output %u %lld long, its bound said at most %lld",
                                 (int)i, index, (long long)dims[i], (long long)output->dims[i]);
        if (dims[i] != output->dims[i] && !(open >> i & 1u))
            return OPERATOR_FAIL(context, "it allocates axis %d of output %u with %lld, what was inferred is %lld",
                                 (int)i, index, (long long)dims[i], (long long)output->dims[i]);
    }
    operator_tell_sizes(context, index, dims);
    context->made |= UINT64_C(1) << index;
    *out_data = operator_word(context, (uint64_t)request->input_count + index);
    return RONDO_OK;
}

static rondo_status operator_output_refers(rondo_operator_context *context, uint32_t output, uint32_t input) {
    if (!context) return RONDO__FAIL(INVALID_ARGUMENT, IMPLEMENTATION, "referring to an input needs a context");
    const operator_kernel *kernel = context->kernel;
    const rondo_kernel_request *request = &kernel->request;
    if (output >= request->output_count || input >= request->input_count ||
        request->inputs[input].dtype == RONDO_DTYPE_UNDEFINED)
        return OPERATOR_FAIL(context, "output %u cannot be input %u: one of them is not there", output, input);
    if (request->outputs[output].dtype == RONDO_DTYPE_UNDEFINED) return RONDO_OK;
    if (request->outputs[output].dtype != request->inputs[input].dtype ||
        kernel->output_bytes[output] != kernel->input_bytes[input])
        return OPERATOR_FAIL(context, "output %u cannot be input %u: type or size differ", output, input);
    void *to = operator_word(context, (uint64_t)request->input_count + output);
    const void *from = operator_word(context, input);
    if (to != from && kernel->output_bytes[output]) memcpy(to, from, (size_t)kernel->output_bytes[output]);
    operator_tell_sizes(context, output, request->outputs[output].dims);
    context->made |= UINT64_C(1) << output;
    return RONDO_OK;
}

static rondo_status operator_workspace(rondo_operator_context *context, uint64_t bytes, void **out_data) {
    if (!context || !out_data)
        return RONDO__FAIL(INVALID_ARGUMENT, IMPLEMENTATION, "a workspace needs a context and a place");
    if (bytes > context->kernel->workspace_bytes)
        return OPERATOR_FAIL(context, "it asks for a workspace of %llu bytes, its table said %llu",
                             (unsigned long long)bytes, (unsigned long long)context->kernel->workspace_bytes);
    const rondo_kernel_request *request = &context->kernel->request;
    *out_data =
        bytes ? operator_word(context, (uint64_t)request->input_count + request->output_count + context->kernel->sized)
              : NULL;
    return RONDO_OK;
}

static void *operator_state(const rondo_operator_context *context) { return context ? context->kernel->state : NULL; }

const rondo_operator_api rondo__operator_api = {.struct_size = sizeof(rondo_operator_api),
                                                .status_make = rondo__status_make,
                                                .attribute = operator_attribute,
                                                .request = operator_request,
                                                .input = operator_input,
                                                .output = operator_output,
                                                .output_refers = operator_output_refers,
                                                .workspace = operator_workspace,
                                                .state = operator_state};

/* ----------------------------------------------------------------------------------------------------- running */

static rondo_status operator_missing_output(const rondo_operator_context *context) {
    const rondo_kernel_request *request = &context->kernel->request;
    for (uint32_t i = 0; i < request->output_count; i++) {
        if (request->outputs[i].dtype == RONDO_DTYPE_UNDEFINED || context->made >> i & 1u) continue;
        return OPERATOR_FAIL(context, "it has returned without an output %u", i);
    }
    return RONDO_OK;
}

rondo_status rondo__operator_kernel_run(const void *self, const uint64_t *words) {
    const operator_kernel *kernel = self;
    rondo_operator_context context = {kernel, words, 0};
    rondo_status status =
        kernel->entry->implementation.execute(&rondo__operator_api, kernel->entry->given.user, &context);
    return status ? status : operator_missing_output(&context);
}

/* A kernel's number is all that a stream carries: the words are kept for whoever finds the failure. */
static void operator_keep_failure(const operator_kernel *kernel, rondo_status status) {
    rondo__operators *operators = kernel->operators;
    const char *node = rondo__ops_node_name(&kernel->request);
    const char *message = rondo_status_message(status);
    rondo_status named = status;
    if (!strstr(message, node)) {
        named = rondo__status_make(rondo_status_code(status), rondo_status_layer(status), __FILE__, __LINE__,
                                   "node '%s' (%s): %s", node, kernel->entry->prototype.name, message);
        rondo_status_release(status);
    }
    rondo__mutex_lock(&operators->mutex);
    rondo_status before = operators->failure;
    operators->failure = named;
    (void)snprintf(operators->failed_node, sizeof operators->failed_node, "'%.100s", node);
    rondo__mutex_unlock(&operators->mutex);
    rondo_status_release(before);
}

static int32_t operator_call(const void *self, const uint64_t *words) {
    const operator_kernel *kernel = self;
    rondo_status status = rondo__operator_kernel_run(self, words);
    if (!status) return 0;
    char text[1536];
    (void)rondo_status_format(status, text, sizeof text);
    rondo__log_write(kernel->operators->log, RONDO_LOG_ERROR, "node '%s' (%s) failed: %s",
                     rondo__ops_node_name(&kernel->request), kernel->entry->prototype.name, text);
    int32_t reason = rondo_status_code(status);
    operator_keep_failure(kernel, status);
    return reason;
}

rondo_status rondo__operators_explain(rondo__shared *shared, rondo_status status) {
    rondo__operators *operators = (rondo__operators *)(void *)shared;
    rondo_status why = RONDO_OK;
    if (!operators || rondo_status_code(status) != RONDO_CODE_KERNEL_FAILED) return status;
    rondo__mutex_lock(&operators->mutex);
    if (operators->failure && strstr(rondo_status_message(status), operators->failed_node)) {
        why = operators->failure;
        operators->failure = RONDO_OK;
    }
    rondo__mutex_unlock(&operators->mutex);
    if (!why) return status;
    /* What the operator calls a layer is its own; here it is the kernel that failed, or a rule of its contract. */
    const rondo_layer layer =
        rondo_status_layer(why) == RONDO_LAYER_IMPLEMENTATION || rondo_status_layer(why) == RONDO_LAYER_INPUT
            ? rondo_status_layer(why)
            : RONDO_LAYER_KERNEL;
    rondo_status told =
        rondo__status_make(RONDO_CODE_KERNEL_FAILED, layer, __FILE__, __LINE__, "%s", rondo_status_message(why));
    told = rondo__status_note(told, "it is why: %s", rondo_status_message(status));
    for (size_t i = 0; i < rondo_status_note_count(status); i++)
        told = rondo__status_note(told, "%s", rondo_status_note(status, i));
    rondo_status_release(why);
    rondo_status_release(status);
    return told;
}

/* --------------------------------------------------------------------------------------------------- the catalogue */

static const char *operator_catalogue_at(void *self, uint32_t index) {
    rondo__operators *operators = self;
    const char *name = NULL;
    rondo__mutex_lock(&operators->mutex);
    for (size_t i = 0; i < operators->entries.count && !name; i++) {
        const rondo__operator_entry *entry = *RONDO__BUFFER_AT(&operators->entries, rondo__operator_entry *, i);
        if (entry->implemented && index-- == 0) name = entry->prototype.name;
    }
    rondo__mutex_unlock(&operators->mutex);
    return name;
}

/* The implementation has an inference of its own: here, and only here, it is held to what the meta made of the node. */
static rondo_status operator_agrees(const rondo__operator_entry *entry, const rondo_kernel_request *request) {
    rondo_operator_result results[2u * RONDO_OPERATOR_OPERANDS_MAX];
    if (!entry->implementation.infer_shape || !entry->given.meta) return RONDO_OK;
    rondo_status status = rondo__operator_infer(entry, request, false, results);
    if (rondo_status_code(status) == RONDO_CODE_UNSUPPORTED) { /* a refusal here is no invitation to ask others */
        rondo_status refusal = RONDO__FAIL(INVALID_ARGUMENT, IMPLEMENTATION, "%s", rondo_status_message(status));
        rondo_status_release(status);
        status = refusal;
    }
    if (status) return rondo__status_note(status, "its meta accepts them: the two must accept the same");
    for (uint32_t i = 0; i < request->output_count; i++) {
        const rondo_operand *want = &request->outputs[i];
        if (want->dtype == RONDO_DTYPE_UNDEFINED) continue;
        bool same = want->dtype == results[i].dtype && want->rank == results[i].rank;
        for (int32_t d = 0; same && d < want->rank; d++)
            same = want->dims[d] == results[i].dims[d] || results[i].dims[d] == -1;
        if (same) continue;
        char meta[256], own[256];
        rondo__operator_text(want->dtype, want->rank, want->dims, meta, sizeof meta);
        rondo__operator_text(results[i].dtype, results[i].rank, results[i].dims, own, sizeof own);
        return RONDO__FAIL(INVALID_ARGUMENT, IMPLEMENTATION,
                           "node '%s' (%s): its meta makes output %u %s, its implementation %s",
                           rondo__ops_node_name(request), entry->prototype.name, i, meta, own);
    }
    return RONDO_OK;
}

static rondo_status operator_workspace_bytes(const rondo__operator_entry *entry, const rondo_kernel_request *request,
                                             uint64_t *out_bytes) {
    rondo_attribute attributes[RONDO__OPERATOR_REQUEST_ATTRIBUTES];
    rondo_kernel_request complete;
    *out_bytes = 0;
    if (!entry->implementation.workspace) return RONDO_OK;
    RONDO__TRY(rondo__operator_complete(entry, request, attributes, &complete));
    rondo_status status =
        entry->implementation.workspace(&rondo__operator_api, entry->given.user, &complete, out_bytes);
    return status ? rondo__operator_refusal(status, entry, request, RONDO_LAYER_IMPLEMENTATION) : RONDO_OK;
}

/* The request as the operator knows it: what asks for sizes is no part of it. */
static rondo_status operator_own_request(const rondo__operator_entry *entry, const rondo_kernel_request *request,
                                         rondo_kernel_request *out_request) {
    const bool asked = rondo__ops_attribute_find(request, RONDO__KERNEL_SIZES) != NULL;
    *out_request = *request;
    if (asked != (entry->implementation.bound != NULL) || (asked && request->output_count < 2u))
        return RONDO__FAIL(UNSUPPORTED, KERNEL, "node '%s': operator '%s' %s", rondo__ops_node_name(request),
                           entry->prototype.name,
                           asked ? "has no sizes that depend on data" : "runs where somebody asks for its sizes");
    if (asked) out_request->output_count--;
    return RONDO_OK;
}

static rondo_status operator_find(void *self, const rondo_kernel_request *given, rondo_kernel_facts *out_facts) {
    rondo_kernel_request own = *given;
    const rondo_kernel_request *request = &own;
    const rondo__operator_entry *entry = rondo__operators_find(self, request->operator_name);
    if (!entry) return RONDO__FAIL(UNSUPPORTED, KERNEL, "no operator '%s' is registered", request->operator_name);
    if (!entry->implemented)
        return RONDO__FAIL(NOT_FOUND, IMPLEMENTATION,
                           "node '%s': operator '%s' is registered without an implementation",
                           rondo__ops_node_name(request), entry->prototype.name);
    RONDO__TRY(operator_own_request(entry, given, &own));
    if (request->output_count > 2u * RONDO_OPERATOR_OPERANDS_MAX ||
        (uint64_t)request->input_count + request->output_count >= RONDO_ARGUMENT_MAX - 1u)
        return RONDO__FAIL(UNSUPPORTED, KERNEL, "%u inputs and %u outputs are more than a call has",
                           request->input_count, request->output_count);
    RONDO__TRY(operator_agrees(entry, request));
    RONDO__TRY(operator_workspace_bytes(entry, request, &out_facts->scratch_bytes));
    out_facts->in_place_inputs = entry->implementation.in_place_inputs;
    out_facts->variant = "registered by the program";
    return RONDO_OK;
}

/* Compact copies, without constants, which are valid only now. */
static rondo_status operator_copy_operands(rondo__arena *arena, const rondo_operand *from, uint32_t count,
                                           const rondo_operand **out_operands, const uint64_t **out_bytes) {
    void *memory = NULL, *sizes = NULL;
    RONDO__TRY(rondo__arena_allocate_array(arena, count, sizeof(rondo_operand), &memory));
    RONDO__TRY(rondo__arena_allocate_array(arena, count, sizeof(uint64_t), &sizes));
    rondo_operand *operands = memory;
    uint64_t *bytes = sizes;
    for (uint32_t i = 0; i < count; i++) {
        int64_t elements = 0;
        void *dims = NULL;
        operands[i] = from[i];
        operands[i].constant = NULL;
        if (from[i].dtype == RONDO_DTYPE_UNDEFINED) continue;
        RONDO__TRY(rondo__arena_copy(arena, from[i].dims, (size_t)from[i].rank * sizeof(int64_t), &dims));
        operands[i].dims = dims;
        if (!rondo__checked_elements(from[i].rank, from[i].dims, &elements))
            return RONDO__FAIL(OUT_OF_RANGE, KERNEL, "an operand is too large to be counted");
        RONDO__TRY(rondo_dtype_bytes(from[i].dtype, (uint64_t)elements, &bytes[i]));
    }
    *out_operands = operands;
    *out_bytes = bytes;
    return RONDO_OK;
}

static rondo_status operator_copy_tensor(rondo__arena *arena, const rondo_tensor_view *from,
                                         const rondo_tensor_view **out_tensor) {
    int64_t elements = 0;
    uint64_t bytes = 0;
    void *memory = NULL, *shape = NULL, *data = NULL;
    if (!rondo__checked_elements(from->rank, from->shape, &elements) || from->strides)
        return RONDO__FAIL(UNSUPPORTED, KERNEL, "a tensor attribute must be compact");
    RONDO__TRY(rondo_dtype_bytes(from->dtype, (uint64_t)elements, &bytes));
    RONDO__TRY(rondo__arena_copy(arena, from, sizeof *from, &memory));
    RONDO__TRY(rondo__arena_copy(arena, from->shape, (size_t)from->rank * sizeof(int64_t), &shape));
    RONDO__TRY(rondo__arena_copy(arena, (const char *)from->data + from->byte_offset, (size_t)bytes, &data));
    rondo_tensor_view *tensor = memory;
    tensor->shape = shape;
    tensor->data = data;
    tensor->byte_offset = 0;
    *out_tensor = tensor;
    return RONDO_OK;
}

static rondo_status operator_copy_strings(rondo__arena *arena, const rondo_string *from, uint32_t count,
                                          const rondo_string **out_strings) {
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(arena, count, sizeof(rondo_string), &memory));
    rondo_string *strings = memory;
    for (uint32_t i = 0; i < count; i++) {
        strings[i].size = from[i].size;
        RONDO__TRY(rondo__arena_string(arena, from[i].data, from[i].size, &strings[i].data));
    }
    *out_strings = strings;
    return RONDO_OK;
}

static rondo_status operator_copy_attribute(rondo__arena *arena, const rondo_attribute *from, rondo_attribute *out) {
    void *memory = NULL;
    *out = *from;
    RONDO__TRY(rondo__arena_string(arena, from->name, strlen(from->name), &out->name));
    switch (from->kind) {
    case RONDO_ATTRIBUTE_STRING:
        return rondo__arena_string(arena, from->value.s.data, from->value.s.size, &out->value.s.data);
    case RONDO_ATTRIBUTE_INTS:
        RONDO__TRY(rondo__arena_copy(arena, from->value.ints, from->count * sizeof(int64_t), &memory));
        out->value.ints = memory;
        return RONDO_OK;
    case RONDO_ATTRIBUTE_FLOATS:
        RONDO__TRY(rondo__arena_copy(arena, from->value.floats, from->count * sizeof(float), &memory));
        out->value.floats = memory;
        return RONDO_OK;
    case RONDO_ATTRIBUTE_STRINGS:
        return operator_copy_strings(arena, from->value.strings, from->count, &out->value.strings);
    case RONDO_ATTRIBUTE_TENSOR: return operator_copy_tensor(arena, from->value.tensor, &out->value.tensor);
    default: return RONDO_OK;
    }
}

/* Which axes data decides: those that the meta leaves open. */
static rondo_status operator_open_axes(operator_kernel *kernel) {
    const rondo__operator_entry *entry = kernel->entry;
    rondo_operator_result results[2u * RONDO_OPERATOR_OPERANDS_MAX];
    void *memory = NULL;
    RONDO__TRY(rondo__operator_infer(entry, &kernel->request, entry->given.meta != NULL, results));
    RONDO__TRY(rondo__arena_allocate_array(&kernel->arena, kernel->request.output_count, sizeof(uint32_t), &memory));
    uint32_t *open = memory;
    for (uint32_t i = 0; i < kernel->request.output_count; i++)
        for (int32_t d = 0; d < results[i].rank; d++)
            if (results[i].dims[d] == -1) open[i] |= 1u << d;
    kernel->open = open;
    kernel->sized = 1;
    return RONDO_OK;
}

static rondo_status operator_copy_request(operator_kernel *kernel, const rondo_kernel_request *request) {
    rondo_attribute attributes[RONDO__OPERATOR_REQUEST_ATTRIBUTES];
    rondo_kernel_request complete;
    rondo__arena *arena = &kernel->arena;
    rondo_kernel_request *copy = &kernel->request;
    void *memory = NULL;
    RONDO__TRY(rondo__operator_complete(kernel->entry, request, attributes, &complete));
    *copy = complete;
    copy->operator_name = kernel->entry->prototype.name;
    const char *node = rondo__ops_node_name(request);
    RONDO__TRY(rondo__arena_string(arena, node, strlen(node), &copy->node_name));
    RONDO__TRY(
        operator_copy_operands(arena, request->inputs, request->input_count, &copy->inputs, &kernel->input_bytes));
    RONDO__TRY(
        operator_copy_operands(arena, request->outputs, request->output_count, &copy->outputs, &kernel->output_bytes));
    RONDO__TRY(rondo__arena_allocate_array(arena, complete.attribute_count, sizeof(rondo_attribute), &memory));
    copy->attributes = memory;
    for (uint32_t i = 0; i < complete.attribute_count; i++)
        RONDO__TRY(operator_copy_attribute(arena, &attributes[i], (rondo_attribute *)memory + i));
    RONDO__TRY(operator_workspace_bytes(kernel->entry, request, &kernel->workspace_bytes));
    return kernel->entry->implementation.bound ? operator_open_axes(kernel) : RONDO_OK;
}

static void operator_kernel_destroy(operator_kernel *kernel) {
    rondo_allocator allocator = kernel->allocator;
    rondo__operator_state_release(kernel->entry, kernel->state);
    rondo__arena_deinit(&kernel->arena);
    rondo__free(&allocator, kernel, sizeof *kernel);
}

static rondo_status operator_prepare(void *self, const rondo_kernel_request *request, rondo_kernel *out_kernel) {
    rondo__operators *operators = self;
    rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
    void *memory = NULL;
    RONDO__TRY(operator_find(self, request, &facts));
    RONDO__TRY(rondo__allocate_zeroed(&operators->allocator, sizeof(operator_kernel), &memory));
    operator_kernel *kernel = memory;
    kernel->allocator = operators->allocator;
    kernel->operators = operators;
    kernel->entry = rondo__operators_find(operators, request->operator_name);
    rondo__arena_init(&kernel->arena, &kernel->allocator, OPERATOR_KERNEL_ARENA_MAX);
    rondo_kernel_request own;
    rondo_status status = operator_own_request(kernel->entry, request, &own);
    if (!status) status = operator_copy_request(kernel, &own);
    if (!status) status = rondo__operator_state_make(kernel->entry, &own, &kernel->state);
    if (status) {
        operator_kernel_destroy(kernel);
        return status;
    }
    *out_kernel = (rondo_kernel){operator_call, kernel};
    return RONDO_OK;
}

static void operator_release(void *self, rondo_kernel kernel) {
    (void)self;
    operator_kernel_destroy((operator_kernel *)(uintptr_t)kernel.context);
}

static const rondo_catalogue_table operator_catalogue = {.struct_size = sizeof(rondo_catalogue_table),
                                                         .flags = RONDO_CATALOGUE_HOST,
                                                         .name = RONDO__KERNEL_REGISTERED,
                                                         .kernel_set = RONDO__KERNEL_REGISTERED,
                                                         .operator_at = operator_catalogue_at,
                                                         .find = operator_find,
                                                         .prepare = operator_prepare,
                                                         .release = operator_release};

rondo_catalogue rondo__operators_catalogue(rondo__shared *operators) {
    return (rondo_catalogue){&operator_catalogue, operators};
}
