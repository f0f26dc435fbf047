/* SPDX-License-Identifier: Apache-2.0
 *
 * Rondo's vocabulary: status, data types, tensor views, attributes, calls and the call list.
 * Everything here is plain data with a fixed layout: both the application headers and plugin.h build on it.
 *
 * Versioning: a struct that crosses the library's edge starts with `struct_size`, set by its _INIT macro to the size
 * the caller was compiled with. Structs only grow at the end; fields beyond the caller's size take their defaults.
 * Enums are fixed-width typedefs with named constants, made from the X-macro lists below.
 */
#ifndef RONDO_TYPES_H
#define RONDO_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RONDO_VERSION_MAJOR 0
#define RONDO_VERSION_MINOR 1
#define RONDO_VERSION_PATCH 0
#define RONDO_VERSION_STRING "0.1.0"

#if defined(__cplusplus)
#define RONDO_EXTERN_C_BEGIN extern "C" {
#define RONDO_EXTERN_C_END }
#else
#define RONDO_EXTERN_C_BEGIN
#define RONDO_EXTERN_C_END
#endif

#if defined(__GNUC__)
#define RONDO_API __attribute__((visibility("default")))
#define RONDO_MUST_USE __attribute__((warn_unused_result))
#define RONDO_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#else
#define RONDO_API
#define RONDO_MUST_USE
#define RONDO_PRINTF(format_index, first_argument)
#endif

RONDO_EXTERN_C_BEGIN

/* ---------------------------------------------------------------------------------------------------- status */

/* A code says what the caller should do next.            name, number, what to do */
#define RONDO_CODES(X)                                                                                              \
    X(OK, 0, "ok", "nothing: it worked")                                                                            \
    X(INVALID_ARGUMENT, 1, "invalid argument", "fix the call or its data")                                          \
    X(INVALID_STATE, 2, "invalid state", "bring the object into a legal state first")                               \
    X(NOT_FOUND, 3, "not found", "name something that exists")                                                      \
    X(ALREADY_EXISTS, 4, "already exists", "use the existing one or another name")                                  \
    X(OUT_OF_MEMORY, 5, "out of memory", "free something, then retry")                                              \
    X(OUT_OF_RANGE, 6, "out of range", "stay within the stated limit")                                              \
    X(UNSUPPORTED, 7, "unsupported", "choose another way: this one does not exist here")                            \
    X(UNAVAILABLE, 8, "unavailable", "install or attach the device or driver, or use another")                      \
    X(CORRUPT, 9, "corrupt", "get a good copy of the file")                                                         \
    X(IO, 10, "input/output error", "look at the operating system's reason")                                        \
    X(BUSY, 11, "busy", "wait for the work in flight, then retry")                                                  \
    X(STALE, 12, "stale address", "bind the slot again or capture again")                                           \
    X(CAPTURE_INVALIDATED, 13, "capture invalidated", "end or abort the capture, mend its first error, start anew") \
    X(CAPTURE_UNJOINED, 14, "capture has unjoined streams", "join every forked stream before the end")              \
    X(CAPTURE_MERGED, 15, "captures merged", "keep two captures apart: no event may connect them")                  \
    X(KERNEL_FAILED, 16, "kernel failed", "look at the node's inputs: its kernel refused or failed")                \
    X(DEVICE_LOST, 17, "device lost", "release everything of the device and open it again")                         \
    X(ABORTED, 18, "aborted", "nothing: somebody asked for it")                                                     \
    X(INTERNAL, 19, "internal error", "report it: an invariant of Rondo's own does not hold")

typedef int32_t rondo_code;
enum {
#define RONDO_X(name, number, text, advice) RONDO_CODE_##name = number,
    RONDO_CODES(RONDO_X)
#undef RONDO_X
        RONDO_CODE_COUNT = 20
};

/* The layer that refused. */
#define RONDO_LAYERS(X)                    \
    X(NONE, 0, "none")                     \
    X(LOADING, 1, "loading")               \
    X(SCHEMA, 2, "schema")                 \
    X(PROTOTYPE, 3, "prototype")           \
    X(META, 4, "meta")                     \
    X(CONVERTER, 5, "converter")           \
    X(IMPLEMENTATION, 6, "implementation") \
    X(KERNEL, 7, "kernel")                 \
    X(CAPTURE, 8, "capture")               \
    X(MEMORY, 9, "memory")                 \
    X(TREE, 10, "tree")                    \
    X(DRIVER, 11, "driver")                \
    X(FILE, 12, "file")                    \
    X(INPUT, 13, "input")

typedef int32_t rondo_layer;
enum {
#define RONDO_X(name, number, text) RONDO_LAYER_##name = number,
    RONDO_LAYERS(RONDO_X)
#undef RONDO_X
        RONDO_LAYER_COUNT = 14
};

/* One pointer-sized word. Null is success. A failure owns a bounded message and notes; whoever receives it releases it
 * or hands it on. When there is no memory for the payload, code and layer are packed in the word itself (lowest bit
 * set), so a failure never turns into a success for want of memory. */
typedef struct rondo_status_object *rondo_status;
#define RONDO_OK ((rondo_status)0)

/* All of these are thread-safe on distinct statuses, accept null, and never fail. */
RONDO_API rondo_code rondo_status_code(rondo_status status);
RONDO_API rondo_layer rondo_status_layer(rondo_status status);
/* Borrowed until the status is released; never null. */
RONDO_API const char *rondo_status_message(rondo_status status);
/* Where the failure was made; "" and 0 when unknown. */
RONDO_API const char *rondo_status_file(rondo_status status);
RONDO_API int32_t rondo_status_line(rondo_status status);
RONDO_API size_t rondo_status_note_count(rondo_status status);
/* Notes in the order in which they were added on the way out; "" past the end. */
RONDO_API const char *rondo_status_note(rondo_status status, size_t index);
/* Writes "code (layer): message" and one "\n  note" a note, always terminated when capacity > 0. Returns the length
 * that the whole text needs without its terminator, as snprintf does. */
RONDO_API size_t rondo_status_format(rondo_status status, char *buffer, size_t capacity);
RONDO_API void rondo_status_release(rondo_status status);

/* A failure, for tables that a host brings (rondo_tensor_host, say). Never null, also without memory and for a wrong code;
 * longer texts are cut, and control characters are made visible. */
RONDO_API rondo_status rondo_status_make(rondo_code code, rondo_layer layer, const char *text);

/* Names of the lists above; "unknown" outside them. */
RONDO_API const char *rondo_code_name(rondo_code code);
RONDO_API const char *rondo_code_advice(rondo_code code);
RONDO_API const char *rondo_layer_name(rondo_layer layer);

/* -------------------------------------------------------------------------------------------------- allocator */

/* The host allocator is a value passed down. One function allocates (old_size 0), resizes, and frees (new_size 0), and
 * always learns the old size. alignment is 0 (as malloc) or a power of two, the same at every call for a block.
 * Returns null on failure (the old block stays) and when freeing. Must be thread-safe. */
typedef struct rondo_allocator {
    void *self;
    void *(*reallocate)(void *self, void *pointer, size_t old_size, size_t new_size, size_t alignment);
} rondo_allocator;

/* Over the C library's allocator. */
RONDO_API rondo_allocator rondo_allocator_default(void);

/* ------------------------------------------------------------------------------------------------------- log */

typedef int32_t rondo_log_level;
enum { RONDO_LOG_ERROR = 0, RONDO_LOG_WARNING = 1, RONDO_LOG_INFO = 2, RONDO_LOG_DEBUG = 3 };

/* Called with one complete line without its end. May be called from any thread. */
typedef void (*rondo_log_function)(void *user, rondo_log_level level, const char *text);

/* ------------------------------------------------------------------------------------------------- data types */

/* Numbers are those of TensorProto.DataType in onnx.proto (onnx 1.22).   name, number, text, bits an element */
#define RONDO_DTYPES(X)                    \
    X(UNDEFINED, 0, "undefined", 0)        \
    X(F32, 1, "float32", 32)               \
    X(U8, 2, "uint8", 8)                   \
    X(I8, 3, "int8", 8)                    \
    X(U16, 4, "uint16", 16)                \
    X(I16, 5, "int16", 16)                 \
    X(I32, 6, "int32", 32)                 \
    X(I64, 7, "int64", 64)                 \
    X(STRING, 8, "string", 0)              \
    X(BOOL, 9, "bool", 8)                  \
    X(F16, 10, "float16", 16)              \
    X(F64, 11, "float64", 64)              \
    X(U32, 12, "uint32", 32)               \
    X(U64, 13, "uint64", 64)               \
    X(C64, 14, "complex64", 64)            \
    X(C128, 15, "complex128", 128)         \
    X(BF16, 16, "bfloat16", 16)            \
    X(F8E4M3FN, 17, "float8e4m3fn", 8)     \
    X(F8E4M3FNUZ, 18, "float8e4m3fnuz", 8) \
    X(F8E5M2, 19, "float8e5m2", 8)         \
    X(F8E5M2FNUZ, 20, "float8e5m2fnuz", 8) \
    X(U4, 21, "uint4", 4)                  \
    X(I4, 22, "int4", 4)                   \
    X(F4E2M1, 23, "float4e2m1", 4)         \
    X(F8E8M0, 24, "float8e8m0", 8)         \
    X(U2, 25, "uint2", 2)                  \
    X(I2, 26, "int2", 2)

typedef int32_t rondo_dtype;
enum {
#define RONDO_X(name, number, text, bits) RONDO_DTYPE_##name = number,
    RONDO_DTYPES(RONDO_X)
#undef RONDO_X
        RONDO_DTYPE_COUNT = 27
};

RONDO_API const char *rondo_dtype_name(rondo_dtype dtype); /* "unknown" outside the list */
RONDO_API uint32_t rondo_dtype_bits(rondo_dtype dtype);    /* 0 for string, undefined and unknown */
/* Bytes that `elements` packed elements take, sub-byte types rounded up to a whole byte. INVALID_ARGUMENT for types
 * without a size, OUT_OF_RANGE on overflow. */
RONDO_API RONDO_MUST_USE rondo_status rondo_dtype_bytes(rondo_dtype dtype, uint64_t elements, uint64_t *out_bytes);

/* How the elements of a tensor lie in memory: as the model says (plain, row-major), or in a form a target prefers. */
typedef int32_t rondo_format;
enum { RONDO_FORMAT_ND = 0, RONDO_FORMAT_NCHW = 1, RONDO_FORMAT_NHWC = 2, RONDO_FORMAT_PACKED = 3 };

#define RONDO_RANK_MAX 16

/* A view of memory somebody else owns, with the fields, order and offsets of DLPack's DLTensor; dtype stands where
 * DLPack has {code, bits, lanes}. strides are in elements, null means compact row-major. */
typedef struct rondo_tensor_view {
    void *data;
    int32_t device_type; /* DLPack's number: 1 CPU; others by the plugin */
    int32_t device_index;
    int32_t rank;
    rondo_dtype dtype;
    const int64_t *shape;
    const int64_t *strides;
    uint64_t byte_offset;
} rondo_tensor_view;

/* -------------------------------------------------------------------------------------------------- attributes */

typedef int32_t rondo_attribute_kind;
enum {
    RONDO_ATTRIBUTE_NONE = 0,
    RONDO_ATTRIBUTE_INT = 1,
    RONDO_ATTRIBUTE_FLOAT = 2,
    RONDO_ATTRIBUTE_STRING = 3, /* bytes, with a terminator after the last that is not counted */
    RONDO_ATTRIBUTE_INTS = 4,
    RONDO_ATTRIBUTE_FLOATS = 5,
    RONDO_ATTRIBUTE_STRINGS = 6,
    RONDO_ATTRIBUTE_TENSOR = 7,
    RONDO_ATTRIBUTE_GRAPH = 8 /* only inside the ir; never reaches a catalogue */
};

typedef struct rondo_string {
    const char *data;
    size_t size;
} rondo_string;

typedef struct rondo_attribute {
    const char *name;
    rondo_attribute_kind kind;
    uint32_t count; /* elements of ints, floats, strings; else 1 */
    union {
        int64_t i;
        float f;
        rondo_string s;
        const int64_t *ints;
        const float *floats;
        const rondo_string *strings;
        const rondo_tensor_view *tensor;
        void *graph;
    } value;
} rondo_attribute;

/* ------------------------------------------------------------------------------------------------ kernels, calls */

/* A prepared kernel. `words` are the call's argument words in order. Returns 0, or a nonzero reason that stops the run
 * and is reported with the node's name. Must not throw, block on the host or allocate. The function of a kernel that
 * runs elsewhere than on the host is null; its context is the device's own handle. */
typedef int32_t (*rondo_kernel_function)(const void *context, const uint64_t *words);

typedef struct rondo_kernel {
    rondo_kernel_function function;
    const void *context;
} rondo_kernel;

/* Access of an argument: 0 is an immediate value, all else makes the word an address. */
enum { RONDO_ACCESS_VALUE = 0, RONDO_ACCESS_READ = 1, RONDO_ACCESS_WRITE = 2, RONDO_ACCESS_BOTH = 3 };

typedef struct rondo_argument {
    uint64_t word;
    uint64_t length; /* bytes from the address; 0 means to the end of its allocation */
    uint32_t access; /* who does not know says RONDO_ACCESS_BOTH */
    uint32_t reserved;
} rondo_argument;

#define RONDO_ARGUMENT_MAX 64

/* What a stream executes and a graph records. Everything is copied when it is enqueued; the kernel's context must
 * outlive every graph that recorded it. */
typedef struct rondo_call {
    uint32_t struct_size;
    uint32_t argument_count; /* at most RONDO_ARGUMENT_MAX */
    rondo_kernel kernel;
    const rondo_argument *arguments;
    const char *name; /* for errors and dumps; may be null */
} rondo_call;
#define RONDO_CALL_INIT \
    { sizeof(rondo_call), 0, {0, 0}, 0, 0 }

/* A host function in a stream. Its memory is unknown, which makes a graph that holds it opaque. Nonzero fails the
 * stream's work as a kernel's does. */
typedef int32_t (*rondo_host_function)(void *user);

typedef int32_t rondo_copy_kind;
enum { RONDO_COPY_HOST_TO_DEVICE = 1, RONDO_COPY_DEVICE_TO_HOST = 2, RONDO_COPY_DEVICE_TO_DEVICE = 3 };

/* ----------------------------------------------------------------------------------------------- the call list */

/* One entry of the replay structure: a cache line. A call reads function, context and words and nothing else. A call
 * of more than five words goes through a trampoline whose context holds the kernel and a pointer to its words, so the
 * loop over a list has no branch on the number of arguments. */
typedef struct rondo_list_entry {
    rondo_kernel_function function;
    const void *context;
    uint64_t words[5];
    uint16_t operation;
    uint16_t lane;
    uint32_t spare;
} rondo_list_entry;

/* CALL: function(context, words).  WAIT and RECORD: words[0] is an event of the graph.  JUMP: words[0] is the address
 * of an int64 condition, words[1] the entry to go on with when it is 0.  HOST: words[0] function, words[1] user. */
enum { RONDO_LIST_CALL = 0, RONDO_LIST_WAIT = 1, RONDO_LIST_RECORD = 2, RONDO_LIST_JUMP = 3, RONDO_LIST_HOST = 4 };

typedef struct rondo_list {
    uint32_t struct_size;
    uint32_t flags; /* RONDO_LIST_ONLY_CALLS */
    const rondo_list_entry *entries;
    uint64_t count;
} rondo_list;
enum { RONDO_LIST_ONLY_CALLS = 1u << 0 };

/* ---------------------------------------------------------------------------------------------------- pool id */

/* Names a memory pool. Exactly one part is nonzero: `automatic` for pools a graph made for itself, `user` for handles a
 * program asked for. {0, 0} means no preference. */
typedef struct rondo_pool_id {
    uint64_t automatic;
    uint64_t user;
} rondo_pool_id;

/* ---------------------------------------------------------------------------------------------- capture modes */

/* Values of GraphCaptureMode in PyTorch's GraphImplInterface. */
#define RONDO_CAPTURE_MODES(X)         \
    X(DEFAULT, 0, "default")           \
    X(GLOBAL, 1, "global")             \
    X(THREAD_LOCAL, 2, "thread_local") \
    X(RELAXED, 3, "relaxed")

typedef int32_t rondo_capture_mode;
enum {
#define RONDO_X(name, number, text) RONDO_CAPTURE_MODE_##name = number,
    RONDO_CAPTURE_MODES(RONDO_X)
#undef RONDO_X
        RONDO_CAPTURE_MODE_COUNT = 4
};

/* ------------------------------------------------------------------------------------------- device properties */

/* Capabilities of a device. */
enum {
    RONDO_DEVICE_GRAPH_CAPABLE = 1u << 0,    /* graphs can be captured and replayed */
    RONDO_DEVICE_TREES_CAPABLE = 1u << 1,    /* has the pool operations that graph trees need */
    RONDO_DEVICE_HOST_ADDRESSABLE = 1u << 2, /* the host may read and write device memory between runs */
    RONDO_DEVICE_HOST_KERNELS = 1u << 3,     /* kernels are host functions, rondo_kernel.function is never null */
    RONDO_DEVICE_INLINE = 1u << 4,           /* enqueued work has finished when the enqueueing call returns */
    RONDO_DEVICE_CAPTURE_NOT_ON_DEFAULT_STREAM = 1u << 5,
    RONDO_DEVICE_COPY_DIRECTION_UNCHECKED = 1u << 6, /* a copy whose addresses contradict its direction may go through */
    RONDO_DEVICE_GOES_ON_AFTER_FAILURE = 1u << 7     /* what stands behind failed work of a stream may run all the same */
};

typedef struct rondo_device_properties {
    uint32_t struct_size;
    uint32_t capabilities;
    char name[64];         /* "cpu", "sim" */
    char description[128]; /* for people */
    int32_t index;
    int32_t dlpack_type;           /* DLDeviceType's number, 12 (kDLExtDev) when DLPack has none */
    uint64_t allocation_alignment; /* bytes */
    uint64_t memory_total;         /* bytes; 0 when unknown */
} rondo_device_properties;

RONDO_EXTERN_C_END

#endif
