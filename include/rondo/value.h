/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that are more than one tensor: sequences of tensors, and optionals, which hold something or nothing.
 *
 * A value is made whole and never changed, counts its references, and may be shared by threads. The rules for ownership and
 * statuses are those of runtime.h.
 */
#ifndef RONDO_VALUE_H
#define RONDO_VALUE_H

#include <rondo/compiler.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_value rondo_value;

typedef int32_t rondo_value_kind;
enum { RONDO_VALUE_TENSOR = 0, RONDO_VALUE_SEQUENCE = 1, RONDO_VALUE_OPTIONAL = 2 };

/* A copy of a host tensor, which may have strides. INVALID_ARGUMENT (input): no data; OUT_OF_RANGE: too large;
 * UNSUPPORTED: a type without a size (strings). */
RONDO_API RONDO_MUST_USE rondo_status rondo_value_from_tensor(rondo_instance *instance, const rondo_tensor_view *view,
                                                              rondo_value **out_value);
/* Holds the tensors. `dtype` is theirs; it is all that is known of an empty sequence, and may be UNDEFINED. INVALID_ARGUMENT
 * (input): one of them is null, no tensor, or of another type. */
RONDO_API RONDO_MUST_USE rondo_status rondo_value_from_sequence(rondo_instance *instance, rondo_dtype dtype,
                                                                rondo_value *const *tensors, uint32_t count,
                                                                rondo_value **out_value);
/* Holds a tensor or a sequence, or with null nothing. INVALID_ARGUMENT (input): an optional. */
RONDO_API RONDO_MUST_USE rondo_status rondo_value_from_optional(rondo_instance *instance, rondo_value *element,
                                                                rondo_value **out_value);
/* A file with one serialised onnx.TensorProto, SequenceProto or OptionalProto, as `kind` says. IO, CORRUPT (file),
 * UNSUPPORTED (type). */
RONDO_API RONDO_MUST_USE rondo_status rondo_value_read_onnx(rondo_instance *instance, const char *path,
                                                            rondo_value_kind kind, rondo_value **out_value);
RONDO_API void rondo_value_retain(rondo_value *value);
RONDO_API void rondo_value_release(rondo_value *value);

RONDO_API rondo_value_kind rondo_value_get_kind(const rondo_value *value);
/* Of a tensor, compact: borrowed, as long as the value lives. False for another kind. */
RONDO_API bool rondo_value_tensor(const rondo_value *value, rondo_tensor_view *out_view);
/* How many tensors a sequence has; 1 or 0 for an optional that holds something or nothing; 0 for a tensor. */
RONDO_API uint32_t rondo_value_count(const rondo_value *value);
/* Tensor `index` of a sequence, or what an optional holds: borrowed. Null past the end. */
RONDO_API rondo_value *rondo_value_item(const rondo_value *value, uint32_t index);

/* What kind of value an input or an output of a graph is, as far as the graph says; a tensor where it says nothing. OUT_OF_RANGE
 * past the end. */
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_input_kind(const rondo_ir_graph *graph, uint32_t index,
                                                                rondo_value_kind *out_kind);
RONDO_API RONDO_MUST_USE rondo_status rondo_ir_graph_output_kind(const rondo_ir_graph *graph, uint32_t index,
                                                                 rondo_value_kind *out_kind);

/* rondo_session_run for graphs whose inputs or outputs are of any kind. The outputs are the caller's to release; they stay as
 * they are whatever the session does. Codes as of rondo_session_run; INVALID_ARGUMENT (input) also for another kind. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_run_values(rondo_session *session, uint32_t id,
                                                               rondo_value *const *inputs, uint32_t input_count,
                                                               rondo_value **outputs, uint32_t output_count);

RONDO_EXTERN_C_END

#endif
