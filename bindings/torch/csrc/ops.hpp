// SPDX-License-Identifier: Apache-2.0
//
// Tensors as calls see them: an address in a word, and a description without memory.
#pragma once
#include <ATen/core/Tensor.h>
#include <rondo/rondo.h>

#include <vector>

namespace rondo_torch {

struct TensorShape {
  at::ScalarType dtype;
  c10::SmallVector<int64_t, 5> sizes, strides;
};
TensorShape shape_of(const at::Tensor& tensor);
// A CPU tensor on device memory that the host can address, for as long as a call runs.
at::Tensor host_view(const TensorShape& shape, uint64_t address);
// The bytes from the first element to the end of the last.
rondo_argument argument_of(const at::Tensor& tensor, uint32_t access);
// Contents of `from` into `to`, both of one device, in stream order.
void enqueue_copy(const at::Tensor& to, const at::Tensor& from);
// Refuses, by name, what a capture cannot hold, and spoils the capture.
void refuse_in_capture(int device, const char* what);
}  // namespace rondo_torch
