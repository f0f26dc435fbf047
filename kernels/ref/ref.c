/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference catalogue and the plugin's entry: looks operators up, checks what every request has in common, and
 * keeps a prepared kernel in one block of memory. */
#include "ref.h"

typedef struct rondo__ref_plugin {
    const rondo_host_api *host;
    rondo_catalogue catalogue;
    rondo_plugin_api api;
} rondo__ref_plugin;

static void ref_free(const rondo_host_api *host, void *block, size_t bytes) {
    (void)host->allocator.reallocate(host->allocator.self, block, bytes, 0, 0);
}

static void *ref_allocate(const rondo_host_api *host, size_t bytes) {
    void *block = host->allocator.reallocate(host->allocator.self, NULL, 0, bytes, 0);
    if (block) memset(block, 0, bytes);
    return block;
}

static const rondo__ref_operator *const ref_families[] = {
    rondo__ref_unary_operators, rondo__ref_binary_operators, rondo__ref_select_operators, rondo__ref_cast_operators,
    rondo__ref_shape_operators, rondo__ref_move_operators,   rondo__ref_reduce_operators, rondo__ref_product_operators,
    rondo__ref_conv_operators,  rondo__ref_lstm_operators,   rondo__ref_pad_operators,    rondo__ref_math_operators,
    rondo__ref_scan_operators,  rondo__ref_index_operators,  rondo__ref_norm_operators,   rondo__ref_pool_operators,
    rondo__ref_sized_operators,
};

static const rondo__ref_operator *ref_find_operator(const char *name) {
    for (size_t f = 0; f < sizeof ref_families / sizeof *ref_families; f++) {
        for (const rondo__ref_operator *op = ref_families[f]; op->name; op++) {
            if (strcmp(op->name, name) == 0) return op;
        }
    }
    return NULL;
}

static const char *ref_operator_at(void *self, uint32_t index) {
    (void)self;
    for (size_t f = 0; f < sizeof ref_families / sizeof *ref_families; f++) {
        for (const rondo__ref_operator *op = ref_families[f]; op->name; op++) {
            if (index-- == 0) return op->name;
        }
    }
    return rondo__ref_contract_at(index);
}

/* ------------------------------------------------------------------------------------ what requests have in common */

static size_t ref_element_size(rondo_dtype dtype) {
    switch (dtype) {
    case RONDO_DTYPE_BOOL:
    case RONDO_DTYPE_U8:
    case RONDO_DTYPE_F8E4M3FN:
    case RONDO_DTYPE_F8E4M3FNUZ:
    case RONDO_DTYPE_F8E5M2:
    case RONDO_DTYPE_F8E5M2FNUZ:
    case RONDO_DTYPE_F8E8M0:
    case RONDO_DTYPE_I8: return 1;
    case RONDO_DTYPE_F16:
    case RONDO_DTYPE_BF16:
    case RONDO_DTYPE_U16:
    case RONDO_DTYPE_I16: return 2;
    case RONDO_DTYPE_F32:
    case RONDO_DTYPE_U32:
    case RONDO_DTYPE_I32: return 4;
    case RONDO_DTYPE_F64:
    case RONDO_DTYPE_U64:
    case RONDO_DTYPE_I64: return 8;
    default: return 0;
    }
}

static rondo_status ref_copy_operand(rondo__ref_builder *b, const char *what, uint32_t index,
                                     const rondo_operand *operand, rondo__ref_tensor *t) {
    t->dtype = operand->dtype;
    if (operand->dtype == RONDO_DTYPE_UNDEFINED) return RONDO_OK;
    t->size = ref_element_size(operand->dtype);
    /* Packed elements have no size in bytes; only conversions reach them one by one. */
    if (b->kernel->op->run == rondo__ref_run_cast && rondo__ref_is_packed(operand->dtype)) t->size = 1;
    if (t->size == 0) {
        return RONDO__REF_REFUSE(b, UNSUPPORTED, "%s %u has data type number %d, which it does not know", what, index,
                                 (int)operand->dtype);
    }
    if (operand->format != RONDO_FORMAT_ND && operand->format != RONDO_FORMAT_NCHW) {
        return RONDO__REF_REFUSE(b, UNSUPPORTED, "%s %u is not in plain row-major order", what, index);
    }
    if (operand->rank < 0 || operand->rank > RONDO_RANK_MAX) {
        return RONDO__REF_REFUSE(b, UNSUPPORTED, "%s %u has rank %d; at most %d is possible", what, index,
                                 (int)operand->rank, RONDO_RANK_MAX);
    }
    if (operand->rank > 0 && !operand->dims) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "%s %u has a rank but no dims", what, index);
    }
    t->rank = operand->rank;
    bool empty = false, overflow = false;
    int64_t bytes = (int64_t)t->size;
    for (int32_t d = 0; d < t->rank; d++) {
        t->dims[d] = operand->dims[d];
        if (t->dims[d] < 0) {
            return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "%s %u has the negative dim %lld", what, index,
                                     (long long)t->dims[d]);
        }
        empty |= t->dims[d] == 0;
        /* An overflow does not count when another dim makes the tensor empty. */
        if (!overflow && !empty) overflow = __builtin_mul_overflow(bytes, t->dims[d], &bytes);
    }
    if (overflow && !empty) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "%s %u is larger than the address space", what, index);
    }
    t->count = empty ? 0 : bytes / (int64_t)t->size;
    return RONDO_OK;
}

/* Whether `names`, separated by spaces, has this one. */
static bool ref_names_have(const char *names, const char *name) {
    size_t length = strlen(name);
    if (length == 0) return false;
    for (const char *p = names; (p = strstr(p, name)) != NULL; p += length) {
        if ((p == names || p[-1] == ' ') && (p[length] == '\0' || p[length] == ' ')) return true;
    }
    return false;
}

static rondo_status ref_check_request(rondo__ref_builder *b) {
    const rondo_kernel_request *request = b->request;
    const rondo__ref_operator *op = b->kernel->op;
    if (request->input_count < op->inputs_min || request->input_count > op->inputs_max) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "%u inputs were given; %u to %u are possible",
                                 request->input_count, op->inputs_min, op->inputs_max);
    }
    if (request->output_count < op->outputs_min || request->output_count > op->outputs_max) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "%u outputs are wanted; %u to %u are possible",
                                 request->output_count, op->outputs_min, op->outputs_max);
    }
    /* An attribute that nobody looks at would be an operator silently not done. */
    for (uint32_t i = 0; i < request->attribute_count; i++) {
        const char *name = request->attributes[i].name;
        if (!name || !ref_names_have(op->attributes, name)) {
            return RONDO__REF_REFUSE(b, UNSUPPORTED, "it does not know the attribute '%s'", name ? name : "");
        }
    }
    for (uint32_t i = 0; i < request->input_count; i++) {
        rondo_status status = ref_copy_operand(b, "input", i, &request->inputs[i], rondo__ref_input(b->kernel, i));
        if (status) return status;
        if (i < op->inputs_min && request->inputs[i].dtype == RONDO_DTYPE_UNDEFINED) {
            return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "input %u is absent", i);
        }
    }
    for (uint32_t i = 0; i < request->output_count; i++) {
        rondo_status status = ref_copy_operand(b, "output", i, &request->outputs[i], rondo__ref_output(b->kernel, i));
        if (status) return status;
        if (i < op->outputs_min && request->outputs[i].dtype == RONDO_DTYPE_UNDEFINED && op->outputs_max == 1) {
            return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "its only output is not wanted");
        }
    }
    return RONDO_OK;
}

/* ---------------------------------------------------------------------------------------------- the catalogue */

/* Runs a prepared kernel after a look at its addresses. */
static int32_t ref_run(const void *context, const uint64_t *words) {
    const rondo__ref_kernel *k = (const rondo__ref_kernel *)context;
    uint32_t operands = k->input_count + k->output_count;
    for (uint32_t i = 0; i < operands; i++) {
        if (i < 32 && i < k->input_count && (k->needs_no_data >> i & 1u)) continue;
        if (k->tensors[i].dtype != RONDO_DTYPE_UNDEFINED && k->tensors[i].count > 0 && words[i] == 0) {
            return RONDO__REF_NO_ADDRESS;
        }
    }
    if (k->scratch_bytes > 0 && words[operands] == 0) return RONDO__REF_NO_ADDRESS;
    return k->op->run(k, words);
}

static rondo_status ref_build(const rondo_host_api *host, const rondo_kernel_request *request,
                              rondo__ref_kernel **out_kernel) {
    rondo__ref_builder b = {host, request, NULL};
    const rondo__ref_operator *op = ref_find_operator(request->operator_name);
    if (!op) return RONDO__REF_REFUSE(&b, UNSUPPORTED, "there is no such kernel in the reference catalogue");
    if (request->input_count > RONDO_ARGUMENT_MAX || request->output_count > RONDO_ARGUMENT_MAX ||
        request->input_count + request->output_count > RONDO_ARGUMENT_MAX - 1u) {
        return RONDO__REF_REFUSE(&b, UNSUPPORTED, "%u inputs and %u outputs are more than a call can have",
                                 request->input_count, request->output_count);
    }
    size_t operands = request->input_count + request->output_count;
    size_t bytes = sizeof(rondo__ref_kernel) + operands * sizeof(rondo__ref_tensor);
    rondo__ref_kernel *kernel = (rondo__ref_kernel *)ref_allocate(host, bytes);
    if (!kernel) return RONDO__REF_REFUSE(&b, OUT_OF_MEMORY, "no memory for its context");
    kernel->op = op;
    kernel->bytes = bytes;
    kernel->input_count = request->input_count;
    kernel->output_count = request->output_count;
    b.kernel = kernel;
    rondo_status status = ref_check_request(&b);
    if (!status) status = op->build(&b);
    if (status) {
        ref_free(host, kernel, bytes);
        return status;
    }
    *out_kernel = kernel;
    return RONDO_OK;
}

static rondo_status ref_check_header(const rondo_host_api *host, const rondo_kernel_request *request) {
    if (!request || request->struct_size < sizeof(rondo_kernel_request) || !request->operator_name) {
        return RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, KERNEL, "the kernel request has no size or no operator name");
    }
    return RONDO_OK;
}

static rondo_status ref_find(void *self, const rondo_kernel_request *request, rondo_kernel_facts *out_facts) {
    const rondo_host_api *host = ((const rondo__ref_plugin *)self)->host;
    rondo_status status = ref_check_header(host, request);
    if (status) return status;
    rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
    if (rondo__ref_contract_find(request->operator_name)) {
        facts.variant = "contract";
    } else {
        rondo__ref_kernel *kernel;
        status = ref_build(host, request, &kernel);
        if (status) return status;
        facts.in_place_inputs = kernel->in_place;
        facts.scratch_bytes = kernel->scratch_bytes;
        facts.variant = "scalar reference";
        ref_free(host, kernel, kernel->bytes);
    }
    size_t size = out_facts->struct_size; /* of the caller's struct, which may be an older one */
    if (size == 0 || size > sizeof facts) size = sizeof facts;
    memcpy(out_facts, &facts, size);
    out_facts->struct_size = (uint32_t)size;
    return RONDO_OK;
}

static rondo_status ref_prepare(void *self, const rondo_kernel_request *request, rondo_kernel *out_kernel) {
    const rondo_host_api *host = ((const rondo__ref_plugin *)self)->host;
    rondo_status status = ref_check_header(host, request);
    if (status) return status;
    rondo_kernel_function contract = rondo__ref_contract_find(request->operator_name);
    if (contract) {
        *out_kernel = (rondo_kernel){contract, NULL};
        return RONDO_OK;
    }
    rondo__ref_kernel *kernel;
    status = ref_build(host, request, &kernel);
    if (status) return status;
    *out_kernel = (rondo_kernel){ref_run, kernel};
    return RONDO_OK;
}

static void ref_release(void *self, rondo_kernel kernel) {
    if (kernel.function != ref_run || !kernel.context) return;
    union {
        const void *given;
        rondo__ref_kernel *ours;
    } context = {kernel.context};
    ref_free(((const rondo__ref_plugin *)self)->host, context.ours, context.ours->bytes);
}

static const rondo_catalogue_table ref_table = {
    .struct_size = sizeof(rondo_catalogue_table),
    .flags = RONDO_CATALOGUE_HOST,
    .name = "ref",
    .kernel_set = "ref",
    .operator_at = ref_operator_at,
    .find = ref_find,
    .prepare = ref_prepare,
    .release = ref_release,
};

static void ref_shutdown(void *self) {
    rondo__ref_plugin *plugin = (rondo__ref_plugin *)self;
    ref_free(plugin->host, plugin, sizeof *plugin);
}

rondo_status rondo_plugin_entry_ref(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api);

rondo_status rondo_plugin_entry_ref(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api) {
    if (abi < RONDO_PLUGIN_ABI) {
        return RONDO_PLUGIN_FAIL(host, UNSUPPORTED, LOADING,
                                 "the reference catalogue needs plugin interface %u; this host has %u",
                                 RONDO_PLUGIN_ABI, abi);
    }
    rondo__ref_plugin *plugin = (rondo__ref_plugin *)ref_allocate(host, sizeof *plugin);
    if (!plugin) return RONDO_PLUGIN_FAIL(host, OUT_OF_MEMORY, LOADING, "no memory for the reference catalogue");
    plugin->host = host;
    plugin->catalogue = (rondo_catalogue){&ref_table, plugin};
    plugin->api = (rondo_plugin_api){
        .struct_size = sizeof(rondo_plugin_api),
        .abi = RONDO_PLUGIN_ABI,
        .name = "ref",
        .version = RONDO_VERSION_STRING,
        .catalogue_count = 1,
        .catalogues = &plugin->catalogue,
        .self = plugin,
        .shutdown = ref_shutdown,
    };
    *out_api = &plugin->api;
    return RONDO_OK;
}
