/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays for C programs, and the two ready tables that graph trees need: of a native device, and of these arrays.
 *
 *     rondo_graph_ops ops = RONDO_GRAPH_OPS_INIT;
 *     rondo_tensor_host host = RONDO_TENSOR_HOST_INIT;
 *     status = rondo_graph_ops_native(device, &ops);
 *     status = rondo_tensor_host_native(device, NULL, &host);
 *     ... options.ops = &ops; options.host = &host; rondo_tree_open(instance, &options, &tree) takes both over.
 *
 * An array is a view (data type, shape, strides) of a storage; several may share one. The rules of runtime.h hold here,
 * too. Reference counts are thread-safe; an array's properties never change, so any thread may ask for them.
 */
#ifndef RONDO_ARRAY_H
#define RONDO_ARRAY_H

#include <rondo/tree.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_array rondo_array;

/* A compact row-major array in new memory of the stream's device, which comes from where rondo_memory_allocate_on takes
 * it: the pool of a capture or of a diversion, else the device's own. Without elements it has no memory.
 * INVALID_ARGUMENT: shape, data type without a size. OUT_OF_RANGE: more bytes than can be counted. */
RONDO_API RONDO_MUST_USE rondo_status rondo_array_create(rondo_stream *stream, rondo_dtype dtype, int32_t rank,
                                                         const int64_t *shape, rondo_array **out_array);
/* The same in host memory that asynchronous copies of the device may use. */
RONDO_API RONDO_MUST_USE rondo_status rondo_array_create_host(rondo_device *device, rondo_dtype dtype, int32_t rank,
                                                              const int64_t *shape, rondo_array **out_array);
/* A number where an array is expected: it has no memory, and another number is to a tree what another shape is. */
RONDO_API RONDO_MUST_USE rondo_status rondo_array_create_value(rondo_device *device, uint64_t value,
                                                               rondo_array **out_array);
/* Memory of the caller's, which stays the caller's and outlives every array on it. `place`: DEVICE or HOST. strides in
 * elements, none below 0; null: compact row-major. OUT_OF_RANGE: the last element passes `bytes`. */
RONDO_API RONDO_MUST_USE rondo_status rondo_array_wrap(rondo_device *device, rondo_tensor_place place, void *memory,
                                                       uint64_t bytes, rondo_dtype dtype, int32_t rank,
                                                       const int64_t *shape, const int64_t *strides,
                                                       rondo_array **out_array);
/* Another view of the array's storage, of the same data type. `offset`: elements from where the storage begins. Strides
 * as at wrap; 0 repeats. Types of less than a byte: compact only, from a whole byte on. OUT_OF_RANGE: passes the end. */
RONDO_API RONDO_MUST_USE rondo_status rondo_array_alias(rondo_array *array, int32_t rank, const int64_t *shape,
                                                        const int64_t *strides, uint64_t offset,
                                                        rondo_array **out_array);
RONDO_API void rondo_array_retain(rondo_array *array);
/* With its last array a storage ends: its memory is freed as rondo_memory_free frees, or given back to its tree. */
RONDO_API void rondo_array_release(rondo_array *array);

/* Where the array begins: in device or host memory; null when it has none. STALE (tree): it is an output of a tree, whose
 * memory was used again. The pointer is good until the array is released, the storage resized, or the tree called again.
 * INVALID_ARGUMENT: a number. */
RONDO_API RONDO_MUST_USE rondo_status rondo_array_data(const rondo_array *array, void **out_pointer);

typedef struct rondo_array_details {
    uint32_t struct_size;
    rondo_tensor_place place; /* DEVICE, HOST; NONE: a number */
    rondo_dtype dtype;
    int32_t rank;
    const int64_t *shape, *strides; /* borrowed as long as the array lives */
    uint64_t offset;                /* elements from where the storage begins */
    uint64_t bytes;                 /* from the first element to the end of the last */
    uint64_t storage_bytes;
    uint64_t value;
    const void *storage;  /* the same for arrays that share one */
    rondo_device *device; /* borrowed */
    uint32_t leased;      /* 1: its memory is a tree's */
    uint32_t reserved;
} rondo_array_details;
#define RONDO_ARRAY_DETAILS_INIT \
    { .struct_size = sizeof(rondo_array_details) }
RONDO_API RONDO_MUST_USE rondo_status rondo_array_get_details(const rondo_array *array,
                                                              rondo_array_details *out_details);

/* Gives the storage new memory of `bytes`, at least as much as it has, and copies the contents on the stream; the tree
 * that lent it the old one has it back. Nobody else may use the storage meanwhile. The stream is not looked at for host
 * memory. STALE (tree). INVALID_ARGUMENT: fewer bytes, memory of the caller's, a number. */
RONDO_API RONDO_MUST_USE rondo_status rondo_array_resize(rondo_array *array, rondo_stream *stream, uint64_t bytes);
/* Work of `stream` uses the array, too: rondo_memory_record_stream for its memory. Nothing to do for host memory, memory
 * of the caller's and memory of a tree, whose next call is what others have to stay ahead of. */
RONDO_API RONDO_MUST_USE rondo_status rondo_array_record_stream(rondo_array *array, rondo_stream *stream);

/* ----------------------------------------------------------------------------------------------- ready tables */

/* What a tree's function runs: rondo_tree_function.model is the address of one, which lives as long as the function. It
 * enqueues on `stream`, and makes its outputs with rondo_array_create and rondo_array_alias, or hands on inputs. It
 * consumes the inputs: those that it releases (early, so that their memory can be used again) or hands on it sets to null;
 * the others are released for it. On failure the outputs that it made are released, too. A null output is none. */
typedef struct rondo_array_model {
    rondo_status (*function)(void *user, rondo_stream *stream, rondo_array **inputs, uint32_t input_count,
                             rondo_array **outputs, uint32_t output_count);
    void *user;
} rondo_array_model;

typedef struct rondo_array_host_options {
    uint32_t struct_size;
    uint32_t serial; /* 1: arrays of the tree end one at a time, never while another thread is inside the tree */
    int64_t (*generation)(void *user); /* null: rondo_tree_mark_step alone divides steps */
    void *generation_user;
} rondo_array_host_options;
#define RONDO_ARRAY_HOST_OPTIONS_INIT \
    { sizeof(rondo_array_host_options), 0, 0, 0 }
/* The table of arrays on the device. Null options: the defaults. rondo_tree_open takes it over; who does not get that far
 * calls out_host->destroy(out_host->user). Arrays may outlive it. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tensor_host_native(rondo_device *device,
                                                               const rondo_array_host_options *options,
                                                               rondo_tensor_host *out_host);
/* The table of the device: its streams are rondo_stream *, its graphs rondo_graph *. Inputs that move are bound anew on
 * inline devices, and copied elsewhere. Holds the device; taken over, or destroyed, as above. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_ops_native(rondo_device *device, rondo_graph_ops *out_ops);

RONDO_EXTERN_C_END

#endif
