/* SPDX-License-Identifier: Apache-2.0
 *
 * Gates: whether a compiled function may be graphed, before it ever runs, and if not, why, by name. A host describes the
 * function as data; the gates are asked in a fixed order, and the first that refuses is the reason. They know no device
 * and no framework: what a device can do is asked of its rondo_graph_ops. docs/trees.md shows where they stand.
 */
#ifndef RONDO_GATE_H
#define RONDO_GATE_H

#include <rondo/tree.h>

RONDO_EXTERN_C_BEGIN

/* In the order in which they are asked; a number never changes its meaning.   name, number, sentence */
#define RONDO_GATES(X)                                                                          \
    X(SWITCHED_OFF, 1, "graphs are not switched on")                                            \
    X(ANNOTATION, 2, "an annotation turns graphs off")                                          \
    X(CPP_WRAPPER, 3, "a C++ wrapper calls the kernels, and takes no partitions")               \
    X(SYMBOLIC_SHAPES, 4, "inputs have symbolic shapes, and such graphs are not wanted")        \
    X(INCOMPATIBLE_OP, 5, "an operator cannot be captured")                                     \
    X(CACHING_ALLOCATOR, 6, "the device's caching allocator is off")                            \
    X(CPU_DEVICE, 7, "something is in host memory or runs on the host")                         \
    X(MULTIPLE_DEVICES, 8, "more than one device is used")                                      \
    X(NO_DEVICE, 9, "no device is used")                                                        \
    X(NO_CAPTURE, 10, "the device captures no graphs")                                          \
    X(MUTATED_INPUTS, 11, "it writes to inputs that are not static, and that is not supported") \
    X(MUTATED_STORAGE, 12, "it gives inputs another storage")                                   \
    X(MEMORY_OVERLAP, 13, "elements of an input lie over each other, and not by expansion")     \
    X(NON_TENSOR_INPUTS, 14, "an input is neither a tensor nor a number")                       \
    X(MULTIPLE_STREAMS, 15, "it uses more than one stream")                                     \
    X(POLICY, 16, "the host's policy does not want it")                                         \
    X(DISABLED, 17, "the host has a reason of its own")                                         \
    X(BISECTOR, 18, "a bisection turned graphs off")                                            \
    X(NO_PARTITION, 19, "no part of it can be graphed")                                         \
    X(SIZE_NOT_WANTED, 20, "its size is not one of those to capture")                           \
    X(SIZE_LIMIT, 21, "it has too many sizes")

typedef int32_t rondo_gate;
enum {
    RONDO_GATE_NONE = 0, /* it may be graphed */
#define RONDO_X(name, number, text) RONDO_GATE_##name = number,
    RONDO_GATES(RONDO_X)
#undef RONDO_X
        RONDO_GATE_COUNT = 22
};
RONDO_API const char *rondo_gate_name(rondo_gate gate); /* "CPU_DEVICE"; "unknown" */
RONDO_API const char *rondo_gate_text(rondo_gate gate); /* the sentence; "unknown" */

/* ------------------------------------------------------------------------------------------------------ facts */

/* A device that the function uses. One that stands there more than once counts once, with the first node. */
typedef struct rondo_gate_device {
    const char *type;           /* "cpu" without ops is the host, "meta" is nothing */
    int32_t index;              /* below 0: none */
    uint32_t flags;             /* RONDO_GATE_DEVICE_* */
    const char *node;           /* that brought it in; may be null, as every name and trace here */
    const char *trace;          /* where in the user's program */
    const rondo_graph_ops *ops; /* what it can is asked there, without any lock; null: the flags say it */
} rondo_gate_device;
enum {
    RONDO_GATE_DEVICE_CAPABLE = 1u << 0,    /* captures graphs; with ops they are asked instead */
    RONDO_GATE_DEVICE_UNCACHED = 1u << 1,   /* its caching allocator is off; the same */
    RONDO_GATE_DEVICE_UNAVAILABLE = 1u << 2 /* it is not there: nobody asks for its allocator */
};

typedef struct rondo_gate_input {
    const char *name, *trace;
    uint32_t flags; /* RONDO_GATE_INPUT_* */
    uint32_t reserved;
} rondo_gate_input;
enum {
    RONDO_GATE_INPUT_STATIC = 1u << 0,
    RONDO_GATE_INPUT_MUTATED = 1u << 1, /* the trace is then of what writes it */
    RONDO_GATE_INPUT_STORAGE_MUTATED = 1u << 2,
    RONDO_GATE_INPUT_OVERLAP = 1u << 3,
    RONDO_GATE_INPUT_NOT_TENSOR = 1u << 4, /* nor a number, nor a generator */
    RONDO_GATE_INPUT_SYMBOLIC = 1u << 5,   /* a symbol in its shape, or a symbolic number */
    RONDO_GATE_INPUT_HOST = 1u << 6,       /* a tensor in host memory */
    RONDO_GATE_INPUT_ZERO_DIM = 1u << 7,
    RONDO_GATE_INPUT_UNUSED = 1u << 8 /* where it lies does not matter */
};

typedef struct rondo_gate_operator {
    const char *name; /* "aten::nonzero", "aten::scatter.src", "aten.scatter.src"; without overload: default */
    const char *node, *trace;
    uint32_t tags; /* RONDO_GATE_TAG_* */
    uint32_t reserved;
} rondo_gate_operator;
/* What makes any operator one that cannot be captured.   name, bit, why */
#define RONDO_GATE_TAGS(X)                                                                \
    X(UNSAFE, 0, "it is tagged cudagraph_unsafe")                                         \
    X(UNBACKED, 1, "it makes a size or a number that is only known on the device")        \
    X(DYNAMIC_OUTPUT, 2, "the shape of its result depends on data")                       \
    X(BOOLEAN_INDEX, 3, "a boolean mask is its index: how much it takes depends on data") \
    X(SPARSE_OUTPUT, 4, "its result is sparse")                                           \
    X(CONTROL_FLOW, 5, "the host decides between its branches")                           \
    X(DEVICE_COPY, 6, "it copies between devices")
enum {
#define RONDO_X(name, bit, text) RONDO_GATE_TAG_##name = 1u << (bit),
    RONDO_GATE_TAGS(RONDO_X)
#undef RONDO_X
        RONDO_GATE_TAG_ALL = (1u << 7) - 1u
};

typedef int32_t rondo_gate_annotation;
enum { RONDO_GATE_ANNOTATION_NONE = 0, RONDO_GATE_ANNOTATION_ON = 1, RONDO_GATE_ANNOTATION_OFF = 2 };

typedef struct rondo_gate_facts {
    uint32_t struct_size;
    uint32_t flags; /* RONDO_GATE_FLAG_* */
    uint64_t only;  /* bit n: ask gate n; 0: all */
    rondo_tree_mode mode;
    rondo_gate_annotation forward, backward; /* forward OFF is for both; ON outdoes SWITCHED_OFF */
    uint32_t device_count, input_count, operator_count;
    const rondo_gate_device *devices;
    const rondo_gate_input *inputs;
    const rondo_gate_operator *operators;
    uint32_t stream_count;
    uint32_t partition_count; /* parts that can be graphed; with FLAG_PARTITION */
    uint32_t size_count;      /* numbers in a size: of this call (null: no matter), and of each that is wanted */
    uint32_t wanted_count;    /* 0: every size is wanted */
    const int64_t *size, *wanted;
    uint32_t sizes_seen, size_limit; /* sizes of the function until now, this one included; 0: no limit */
    const char *disabled;            /* not null: refused for this reason of the host's */
} rondo_gate_facts;
#define RONDO_GATE_FACTS_INIT \
    { .struct_size = sizeof(rondo_gate_facts) }
enum {
    RONDO_GATE_FLAG_STRICT = 1u << 0,    /* a refusal is an error */
    RONDO_GATE_FLAG_PARTITION = 1u << 1, /* what cannot be graphed is split off: operators and the host do not matter */
    RONDO_GATE_FLAG_SWITCHED_OFF = 1u << 2,
    RONDO_GATE_FLAG_CPP_WRAPPER = 1u << 3, /* refused with FLAG_PARTITION or FLAG_AHEAD_OF_TIME */
    RONDO_GATE_FLAG_AHEAD_OF_TIME = 1u << 4,
    RONDO_GATE_FLAG_SKIP_SYMBOLIC = 1u << 5, /* functions with symbolic inputs are not graphed */
    RONDO_GATE_FLAG_MUTATION = 1u << 6,      /* mutated inputs are supported: the tree looks at each call */
    RONDO_GATE_FLAG_OVERLAP = 1u << 7,       /* inputs are copied byte by byte, so that overlap is no matter */
    RONDO_GATE_FLAG_STREAMS = 1u << 8,       /* its streams fork from one and join it */
    RONDO_GATE_FLAG_SCALARS = 1u << 9,       /* host tensors of no dimension are moved to the device before each call */
    RONDO_GATE_FLAG_DETERMINISTIC = 1u << 10, /* scatter and index operators take a way through the host */
    RONDO_GATE_FLAG_POLICY_REFUSED = 1u << 11,
    RONDO_GATE_FLAG_BISECTED = 1u << 12
};

/* ---------------------------------------------------------------------------------------------------- verdict */

#define RONDO_GATE_TEXT_MAX 512
typedef struct rondo_gate_verdict {
    uint32_t struct_size;
    rondo_gate gate; /* NONE: it may be graphed */
    uint32_t flags;  /* RONDO_GATE_VERDICT_* */
    uint32_t index;  /* of the first device, input or operator that it is about; else 0 */
    uint32_t count;  /* how many there are; devices are told apart up to 64 */
    uint32_t reserved;
    char text[RONDO_GATE_TEXT_MAX]; /* the reason with its names, one line, cut with "..."; "" for NONE */
} rondo_gate_verdict;
#define RONDO_GATE_VERDICT_INIT \
    { .struct_size = sizeof(rondo_gate_verdict) }
/* Passed, by a device that has a path of its own outside the contract (add_own_path): leave it to that. */
enum { RONDO_GATE_VERDICT_OWN_PATH = 1u << 0 };

/* Rules that a host may add to, and counters. Thread-safe. */
typedef struct rondo_gates rondo_gates;

/* With Rondo's own table: operators of ATen that cannot be captured, and "cuda" as a type with a path of its own. */
RONDO_API RONDO_MUST_USE rondo_status rondo_gates_create(rondo_instance *instance, rondo_gates **out_gates);
RONDO_API void rondo_gates_retain(rondo_gates *gates);
RONDO_API void rondo_gates_release(rondo_gates *gates);

/* One more operator that cannot be captured: "library::name" for all its overloads, "library::name.overload" for one.
 * `why` may be null. ALREADY_EXISTS; OUT_OF_RANGE: a name of more than 255 bytes, or 4096 names. */
RONDO_API RONDO_MUST_USE rondo_status rondo_gates_add_operator(rondo_gates *gates, const char *name, const char *why);
/* Devices of this type capture graphs by a path of their own: without ops they pass, and the verdict says so.
 * ALREADY_EXISTS, OUT_OF_RANGE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_gates_add_own_path(rondo_gates *gates, const char *type);

/* Asks until a gate refuses, and counts it. With FLAG_STRICT a refusal is UNSUPPORTED (tree) with the verdict's text, and
 * the verdict is set, too. Takes no memory but for failures. INVALID_ARGUMENT: an array is missing, a device or operator
 * has no name, an unknown flag, tag or bit. */
RONDO_API RONDO_MUST_USE rondo_status rondo_gates_check(rondo_gates *gates, const rondo_gate_facts *facts,
                                                        rondo_gate_verdict *out_verdict);
/* All that refuse, in their order; counts nothing. *out_count may be above capacity; verdicts may be null with 0.
 * Each verdict starts with its struct_size. */
RONDO_API RONDO_MUST_USE rondo_status rondo_gates_check_all(rondo_gates *gates, const rondo_gate_facts *facts,
                                                            rondo_gate_verdict *out_verdicts, uint32_t capacity,
                                                            uint32_t *out_count);
/* INCOMPATIBLE_OP or NONE for one operator, for a host that splits there; `flags` as in the facts. Counts nothing. */
RONDO_API RONDO_MUST_USE rondo_status rondo_gates_check_operator(rondo_gates *gates, uint32_t flags,
                                                                 const rondo_gate_operator *candidate,
                                                                 rondo_gate_verdict *out_verdict);

typedef struct rondo_gates_counts {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t checks, passed, own_path;  /* own_path are passed, too */
    uint64_t refused[RONDO_GATE_COUNT]; /* [NONE] is 0 */
} rondo_gates_counts;
#define RONDO_GATES_COUNTS_INIT \
    { .struct_size = sizeof(rondo_gates_counts) }
RONDO_API RONDO_MUST_USE rondo_status rondo_gates_get_counts(rondo_gates *gates, rondo_gates_counts *out_counts);
RONDO_API void rondo_gates_reset_counts(rondo_gates *gates);
/* The counts with the sentence and the last text of each gate that refused. A `write` that returns nonzero ends it: IO. */
RONDO_API RONDO_MUST_USE rondo_status rondo_gates_report(rondo_gates *gates, bool json, rondo_memory_write write,
                                                         void *user);

RONDO_EXTERN_C_END

#endif
