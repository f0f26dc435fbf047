/* SPDX-License-Identifier: Apache-2.0
 *
 * For authors of operators: a prototype, what it makes of which inputs, and how it is computed.
 *
 * An operator is a table of plain data and functions. Its contracts, each checked against the others:
 *   schema           the name, typed inputs, outputs and attributes; one definition, duplicates refused
 *   meta             type and shape of the outputs without data, and which inputs are accepted
 *   implementation   its own inference, which must agree with the meta's, and the computation
 * A failure's layer says which of them was broken.
 *
 * A registered operator is used as any other: nodes are built or imported with it, plans, sessions, eager runs and
 * captures run it, on every device whose kernels are host functions.
 *
 * Rules for the functions of a table. They may be called from any thread, several at once. They reach the library only
 * through the rondo_operator_api that they get, so that a shared library of operators needs nothing to link with.
 */
#ifndef RONDO_OPERATOR_H
#define RONDO_OPERATOR_H

#include <rondo/plugin.h>
#include <rondo/runtime.h>
#include <rondo/types.h>

RONDO_EXTERN_C_BEGIN

#define RONDO_OPERATOR_OPERANDS_MAX 32u
#define RONDO_OPERATOR_ATTRIBUTES_MAX 32u

typedef int32_t rondo_operator_presence;
enum {
    RONDO_OPERATOR_REQUIRED = 0,
    RONDO_OPERATOR_OPTIONAL = 1,
    RONDO_OPERATOR_DYNAMIC = 2 /* one or more; the last of its list only */
};

/* RONDO_OPERATOR_DTYPE(F32) | RONDO_OPERATOR_DTYPE(F64) */
#define RONDO_OPERATOR_DTYPE(name) (1u << RONDO_DTYPE_##name)

typedef struct rondo_operator_operand {
    const char *name;
    uint32_t dtypes; /* a bit a type that it may have; strings have no kernels and are refused */
    rondo_operator_presence presence;
    char same_type; /* inputs of one letter, A to Z, have one type; 0: on its own */
    char reserved[7];
} rondo_operator_operand;

typedef int32_t rondo_operator_attribute_presence;
enum {
    RONDO_OPERATOR_ATTRIBUTE_REQUIRED = 0,
    RONDO_OPERATOR_ATTRIBUTE_DEFAULT = 1, /* absent means the value that stands in the table */
    RONDO_OPERATOR_ATTRIBUTE_OPTIONAL = 2 /* absent means absent */
};

typedef struct rondo_operator_attribute {
    rondo_attribute attribute; /* name, kind, and the default where there is one */
    rondo_operator_attribute_presence presence;
    uint32_t reserved;
} rondo_operator_attribute;

/* What inference answers for one output. It comes with dtype UNDEFINED and rank -1. A dim of -1 says that the size depends on
 * data: a session runs such an operator between plans where its implementation has `bound`; it is UNSUPPORTED, by name, when
 * a plan is made. */
typedef struct rondo_operator_result {
    rondo_dtype dtype;
    int32_t rank;
    int64_t dims[RONDO_RANK_MAX];
} rondo_operator_result;

/* One call of an implementation. */
typedef struct rondo_operator_context rondo_operator_context;

typedef struct rondo_operator_api {
    uint32_t struct_size;
    uint32_t reserved;
    /* Makes a failure, as the host table of plugin.h does. Never null. */
    rondo_status (*status_make)(rondo_code code, rondo_layer layer, const char *file, int32_t line, const char *format,
                                ...) RONDO_PRINTF(5, 6);
    /* The attribute, its default included; null when absent. */
    const rondo_attribute *(*attribute)(const rondo_kernel_request *request, const char *name);

    /* The rest is for execute alone. All accept an index past the end and say so, or give null. */
    /* Node, operands with concrete shapes, and attributes. No operand has a constant. */
    const rondo_kernel_request *(*request)(const rondo_operator_context *context);
    /* The elements of an input; null when it is absent, past the end, or of another type than `dtype`. */
    const void *(*input)(const rondo_operator_context *context, uint32_t index, rondo_dtype dtype);
    /* Memory of an output of this description, which must be the one that was inferred, or within `bound` where data decides:
     * INVALID_ARGUMENT (implementation) for another. Null, and success, for an optional output that nobody wants. */
    rondo_status (*output)(rondo_operator_context *context, uint32_t index, int32_t rank, const int64_t *dims,
                           rondo_format format, rondo_dtype dtype, void **out_data);
    /* The output is the input: of the same size and type. They share memory where in_place_inputs allows it and the plan
     * does so, else the bytes are copied now. */
    rondo_status (*output_refers)(rondo_operator_context *context, uint32_t output, uint32_t input);
    /* Up to as many bytes as the table's workspace function said, aligned to 64, with any contents; one block a call:
     * a second request gets the same. */
    rondo_status (*workspace)(rondo_operator_context *context, uint64_t bytes, void **out_data);
    /* What compile or deserialize made for this node; null where the table has neither. */
    void *(*state)(const rondo_operator_context *context);
} rondo_operator_api;

/* RONDO_OPERATOR_FAIL(api, INVALID_ARGUMENT, META, "...") is a status to return. */
#define RONDO_OPERATOR_FAIL(api, code, layer, ...) \
    ((api)->status_make(RONDO_CODE_##code, RONDO_LAYER_##layer, __FILE__, (int32_t)__LINE__, __VA_ARGS__))

/* Fills request->output_count results, or refuses. The operands of the request have concrete shapes, the right types
 * and presence; of its outputs only their number is known. Attributes have their defaults. */
typedef rondo_status (*rondo_operator_infer)(const rondo_operator_api *api, void *user,
                                             const rondo_kernel_request *request, rondo_operator_result *results);

typedef struct rondo_operator_implementation {
    uint32_t struct_size;
    uint32_t in_place_inputs; /* bit i: output 0 may be the very memory of input i, given equal type and size */
    /* Its own inference, in two parts: both or none. It must give what the meta gives and refuse what the meta refuses;
     * a node where it does not is INVALID_ARGUMENT (implementation) when its plan is made. */
    rondo_operator_infer infer_shape; /* rank and dims */
    rondo_operator_infer infer_dtype; /* dtype */
    /* Bytes that execute will ask for. (optional: none) */
    rondo_status (*workspace)(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                              uint64_t *out_bytes);
    /* Runs as the stream's own work, also when it is replayed: it must not wait for a stream. Every output that is wanted
     * must have been allocated or referred. A failure stops the run with KERNEL_FAILED, whose reason is the failure's
     * code; its words are logged as an error, and are what a session's run answers, under the layer that it names:
     * implementation, input (a value is out of its constraints), else kernel. */
    rondo_status (*execute)(const rondo_operator_api *api, void *user, rondo_operator_context *context);
    /* What a node needs beyond its inputs, generated code or a table, made once before its first run; release frees it.
     * Both or none. Operands whose value is known when the plan is made have it (constant), during the call alone. The
     * state may serve several runs at once: execute must not write to it. */
    rondo_status (*compile)(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                            void **out_state);
    void (*release)(void *user, void *state);
    /* The state as bytes, which enter an offline file, and back: where such a file is opened, compile is not called.
     * Both or none, and only with compile. The same state gives the same bytes. `write` appends, as often as it is called.
     * deserialize is given bytes that serialize wrote, perhaps in another version of the operator: it refuses what it
     * does not know (CORRUPT or UNSUPPORTED). They are aligned to 64 and stay as long as the state. */
    rondo_status (*serialize)(const rondo_operator_api *api, void *user, const void *state,
                              rondo_status (*write)(void *sink, const void *data, uint64_t bytes), void *sink);
    rondo_status (*deserialize)(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                const void *data, uint64_t bytes, void **out_state);
    /* For an operator some of whose sizes depend on data (a dim of -1 in what the meta answers): the most that each can be,
     * everything else being as inferred. Results come as the meta filled them in. The operands of a request that execute sees
     * are then as long as this says; execute calls `output` with the dims that there are, once an output, which must be
     * within. The memory holds the elements compact under those dims. Such an operator runs between the plans of a session.
     * (optional: no size depends on data) */
    rondo_operator_infer bound;
} rondo_operator_implementation;
#define RONDO_OPERATOR_IMPLEMENTATION_INIT \
    { sizeof(rondo_operator_implementation), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct rondo_operator {
    uint32_t struct_size;
    uint32_t input_count, output_count, attribute_count;
    const char *name;    /* letters, digits and '_', not starting with a digit */
    const char *domain;  /* letters, digits, '_', '.' and '-'; null: none */
    const char *summary; /* a sentence for people; may be null */
    const rondo_operator_operand *inputs, *outputs;
    const rondo_operator_attribute *attributes;
    /* The nodes of ONNX models that mean this operator. */
    const char *onnx_domain;   /* null: domain */
    const char *onnx_name;     /* null: name */
    int64_t onnx_since;        /* models of an older version of the domain do not mean it; 0: all do */
    rondo_operator_infer meta; /* null: the implementation's inference is the meta */
    const rondo_operator_implementation
        *implementation; /* null: prototype only, a plan needs a catalogue that has it */
    void *user;          /* passed to the functions */
    /* The same in PyTorch's schema language, held against the table when it is registered; null: none.
     * "my::add_custom(Tensor x, Tensor y, *, float alpha=1.0) -> Tensor": inputs in order and by name, "?" where they
     * are optional, "[]" where they are dynamic; attributes by name, with their kinds and defaults; results in order. */
    const char *schema;
} rondo_operator;
#define RONDO_OPERATOR_INIT \
    { sizeof(rondo_operator), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Adds an operator to the instance; its name is "domain::name", or "name". The table and all that it points to must stay
 * as they are until the instance and every graph of it are gone. Thread-safe. A registered operator stays.
 * ALREADY_EXISTS (schema): that name, or those nodes of ONNX models, have an operator already, built in or registered.
 * INVALID_ARGUMENT (schema): the table is malformed, or its schema says something else; the message says where.
 * INVALID_ARGUMENT (meta): nothing infers its outputs. INVALID_ARGUMENT (implementation): it has no execute, or one of
 * two functions that go together. UNSUPPORTED (schema): an attribute that is a graph. */
RONDO_API RONDO_MUST_USE rondo_status rondo_operator_register(rondo_instance *instance,
                                                              const rondo_operator *operator_table);

/* -------------------------------------------------------------------------------------------- looking at operators */

enum { RONDO_OPERATOR_INFO_REGISTERED = 1u << 0 /* by the program or a library; else built in */ };

/* Everything is valid as long as the instance. */
typedef struct rondo_operator_info {
    uint32_t struct_size;
    uint32_t flags;
    uint32_t input_count, output_count, attribute_count;
    uint32_t reserved;
    const char *name;
    const char *summary;
    const void *prototype; /* for the functions below */
} rondo_operator_info;
#define RONDO_OPERATOR_INFO_INIT \
    { sizeof(rondo_operator_info), 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct rondo_operator_attribute_info {
    const char *name;
    rondo_attribute_kind kind;
    uint32_t required;
    const char *default_text; /* null: none */
} rondo_operator_attribute_info;

/* The built-in operators, sorted by name, then the registered ones in their order. NOT_FOUND past the end. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_operator_at(rondo_instance *instance, uint32_t index,
                                                        rondo_operator_info *out_info);
/* By name. NOT_FOUND (prototype). Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_operator_find(rondo_instance *instance, const char *name,
                                                          rondo_operator_info *out_info);
/* Operands and attributes of an operator that was asked for; OUT_OF_RANGE past the end. */
RONDO_API RONDO_MUST_USE rondo_status rondo_operator_info_input(const rondo_operator_info *info, uint32_t index,
                                                                rondo_operator_operand *out_operand);
RONDO_API RONDO_MUST_USE rondo_status rondo_operator_info_output(const rondo_operator_info *info, uint32_t index,
                                                                 rondo_operator_operand *out_operand);
RONDO_API RONDO_MUST_USE rondo_status rondo_operator_info_attribute(const rondo_operator_info *info, uint32_t index,
                                                                    rondo_operator_attribute_info *out_attribute);
/* The operator as a schema in PyTorch's language, in one piece: it says names, presence, kinds and defaults, not types.
 * NOT_FOUND (prototype); UNSUPPORTED (schema): an attribute has no type there (a tensor, a graph), or an input's name;
 * IO: write gave nonzero. */
RONDO_API RONDO_MUST_USE rondo_status rondo_operator_print_schema(rondo_instance *instance, const char *name,
                                                                  int32_t (*write)(void *user, const char *data,
                                                                                   size_t size),
                                                                  void *user);
/* A schema in that language against an operator, which may have another name. INVALID_ARGUMENT (schema): it cannot be
 * read, with the place, or says something else than the prototype, naming what. NOT_FOUND (prototype). Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_operator_check_schema(rondo_instance *instance, const char *name,
                                                                  const char *schema);
/* Calls visit with the name of each kernel catalogue of the instance that has kernels for the operator. */
RONDO_API RONDO_MUST_USE rondo_status rondo_operator_catalogues(rondo_instance *instance, const char *name,
                                                                void (*visit)(void *user, const char *catalogue),
                                                                void *user);

/* ---------------------------------------------------------------------------------------- checking the contracts */

/* What a converter makes of a node of some framework: names in the prototype's order, "" where it leaves an optional
 * operand out. */
typedef struct rondo_operator_converter {
    const char *from; /* "my::add_custom", for messages; may be null */
    const char *const *inputs, *const *outputs, *const *attributes;
    uint32_t input_count, output_count, attribute_count;
    uint32_t reserved;
} rondo_operator_converter;

typedef struct rondo_operator_check_options {
    uint32_t struct_size;
    uint32_t rounds; /* nodes to draw; 0: 1000 */
    uint64_t seed;   /* the same seed draws the same nodes */
    /* Inputs to draw around, for an operator that accepts few: type, rank and shape of the first ones, data is not
     * looked at. */
    const rondo_tensor_view *examples;
    const rondo_operator_converter *converters;
    uint32_t example_count, converter_count;
} rondo_operator_check_options;
#define RONDO_OPERATOR_CHECK_OPTIONS_INIT \
    { sizeof(rondo_operator_check_options), 0, 0, 0, 0, 0, 0 }

typedef struct rondo_operator_check_report {
    uint32_t struct_size;
    uint32_t drawn;    /* nodes */
    uint32_t refused;  /* of those, by schema and meta, and so by the implementation */
    uint32_t accepted; /* by the meta, and so by the implementation */
    uint32_t run; /* accepted and run; the others are too large, have no kernel for their types, or depend on data */
    uint32_t reserved;
} rondo_operator_check_report;
#define RONDO_OPERATOR_CHECK_REPORT_INIT \
    { sizeof(rondo_operator_check_report), 0, 0, 0, 0, 0 }

/* Draws nodes of an operator, built in or registered (types, ranks, shapes, attributes, what is absent), and asks its
 * contracts of each other: the meta twice; the implementation's inference, which must accept, refuse and answer the
 * same; its run on each host catalogue that has it, which must not fail on what the meta accepts, must write all of its
 * outputs and nothing else, the same on every run and in place where it claims so, sizes that data decides within `bound`; two catalogues must agree within the
 * type's rounding; what it serializes must be the same each time, and run the same when it was read back. Converters' names are held against the prototype's first.
 *
 * The first disagreement is INVALID_ARGUMENT with the contract that is broken as its layer, and the inputs that show
 * it, made as small as they get, as its notes. NOT_FOUND: (prototype) no such operator, (implementation) nothing that runs
 * it, (input) no drawn input was accepted. UNSUPPORTED (meta): an operator of control flow.
 * options and out_report may be null; the report is also filled where a disagreement is found. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_operator_check(rondo_instance *instance, const char *name,
                                                           const rondo_operator_check_options *options,
                                                           rondo_operator_check_report *out_report);

/* ------------------------------------------------------------------------------------------------ shared libraries */

/* The major number is raised when a table changes its meaning, the minor one when it grows. */
#define RONDO_OPERATOR_ABI_MAJOR 1u
#define RONDO_OPERATOR_ABI_MINOR 2u

/* Read from the file, before any code of the library runs. */
typedef struct rondo_operator_abi_version {
    uint32_t major, minor;
} rondo_operator_abi_version;

typedef struct rondo_operator_library {
    uint32_t struct_size;
    uint32_t operator_count;
    const rondo_operator *const *operators;
} rondo_operator_library;

#define RONDO_OPERATOR_ABI_SYMBOL "rondo_operator_abi"
#define RONDO_OPERATOR_LIBRARY_SYMBOL "rondo_operator_library_table"

#if defined(__GNUC__)
#define RONDO_OPERATOR_VISIBLE __attribute__((visibility("default")))
#else
#define RONDO_OPERATOR_VISIBLE
#endif
/* Once, in a shared library of operators: RONDO_OPERATOR_LIBRARY(array) of `const rondo_operator *`. It links nothing of
 * Rondo. */
#define RONDO_OPERATOR_LIBRARY(list)                                                                               \
    RONDO_EXTERN_C_BEGIN                                                                                           \
    extern RONDO_OPERATOR_VISIBLE const rondo_operator_abi_version rondo_operator_abi;                             \
    extern RONDO_OPERATOR_VISIBLE const rondo_operator_library rondo_operator_library_table;                       \
    const rondo_operator_abi_version rondo_operator_abi = {RONDO_OPERATOR_ABI_MAJOR, RONDO_OPERATOR_ABI_MINOR};    \
    const rondo_operator_library rondo_operator_library_table = {sizeof(rondo_operator_library),                   \
                                                                 (uint32_t)(sizeof(list) / sizeof *(list)), list}; \
    RONDO_EXTERN_C_END

/* Registers all operators of a shared library, or none. It stays loaded until the instance and every graph of it are gone.
 * An instance does the same, when it is made, with what the environment variable RONDO_OPERATOR_PATH names: files, and
 * folders of files that end in ".so", with ':' between; what cannot be used is left out with a warning. It does not where
 * its options say ignore_plugin_path.
 * NOT_FOUND (loading): there is no such file. UNSUPPORTED (loading): it is no such library, or was made for another major
 * or a newer minor ABI; then none of its code has run. Else as rondo_operator_register. */
RONDO_API RONDO_MUST_USE rondo_status rondo_operator_load(rondo_instance *instance, const char *path);

RONDO_EXTERN_C_END

#endif
