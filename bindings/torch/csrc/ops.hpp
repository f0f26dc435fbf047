// SPDX-License-Identifier: Apache-2.0
//
// Tensors as calls see them: an address in a word, and a description without memory.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <rondo/rondo.h>

#include <string>
#include <vector>

namespace rondo_torch {

struct TensorShape {
  at::ScalarType dtype = at::kFloat;
  bool negative = false, conjugate = false;
  int32_t storage = -1;    // tensors of one call that lie in one storage have the same number; -1: nobody else does
  int64_t offset = 0;      // bytes from the storage's beginning
  c10::SmallVector<int64_t, 5> sizes, strides;
};
TensorShape shape_of(const at::Tensor& tensor);
// A CPU tensor on device memory that the host can address, for as long as a call runs.
at::Tensor host_view(const TensorShape& shape, uint64_t address);

// The tensors of one call, with the storages that they share: an operator must see which of them overlap, or it would
// neither refuse what it refuses on a CPU nor take care of an output that is also an input.
class Operands {
 public:
  // The number of the tensor, which is that of its word.
  size_t add(const at::Tensor& tensor, uint32_t access);
  size_t size() const { return shapes_.size(); }
  const std::vector<rondo_argument>& arguments() const { return arguments_; }
  // Before the call is enqueued: what is only for finding out who shares goes.
  void close();
  // While it runs: one CPU tensor an operand, valid as long as the call runs.
  c10::SmallVector<at::Tensor, 8> views(const uint64_t* words) const;
  // After it: what the operator has written to an output that it gave other memory.
  void finish(size_t i, const at::Tensor& view, const uint64_t* words) const;

 private:
  std::vector<TensorShape> shapes_;
  std::vector<rondo_argument> arguments_;
  c10::SmallVector<const c10::StorageImpl*, 8> storages_;
  bool shared_ = false;
};

// What a call of ATen's runs under, on whatever thread and inside whatever modes that thread is in.
struct BelowEverything {
  BelowEverything();
  c10::impl::ForceDispatchKeyGuard guard;
};

// Throws for a tensor whose storage was made smaller under it; else the bytes from its first element to its last one's end.
uint64_t check_storage(const at::Tensor& tensor);
// Those bytes, as an argument.
rondo_argument argument_of(const at::Tensor& tensor, uint32_t access);
// Contents of `from` into `to`, both of one device, in stream order.
void enqueue_copy(const at::Tensor& to, const at::Tensor& from);
// Refuses, by name, what a capture cannot hold, and spoils the capture.
void refuse_in_capture(int device, const std::string& what);
// Spoils a capture of the current stream, if there is one, and throws.
[[noreturn]] void refuse(int device, const std::string& text);
bool on_device(const at::Tensor& tensor);
}  // namespace rondo_torch
