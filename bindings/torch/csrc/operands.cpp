// SPDX-License-Identifier: Apache-2.0
//
// Tensors of a call: what is kept of them while it waits, and what an operator gets when it runs.
#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>

#include "node.hpp"
#include "ops.hpp"
#include "runtime.hpp"

namespace rondo_torch {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

at::Tensor on_storage(c10::Storage storage, const TensorShape& shape, int64_t offset) {
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), DispatchKeySet(DispatchKey::CPU),
                                                         c10::scalarTypeToTypeMeta(shape.dtype));
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_offset(offset);
  impl->set_sizes_and_strides(shape.sizes, shape.strides);
  if (shape.negative) tensor._set_neg(true);
  if (shape.conjugate) tensor._set_conj(true);
  return tensor;
}

c10::Storage storage_on(uint64_t address, uint64_t bytes) {
  // Some operators give an output a larger size for a while: that is other memory then, and Operands::finish copies it.
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes,
                      c10::DataPtr(reinterpret_cast<void*>(address), c10::Device(c10::kCPU)), c10::GetCPUAllocator(), true);
}

uint64_t extent(const TensorShape& shape) {
  uint64_t last = 0;
  for (size_t i = 0; i < shape.sizes.size(); i++) {
    if (!shape.sizes[i]) return 0;
    last += static_cast<uint64_t>((shape.sizes[i] - 1) * shape.strides[i]);
  }
  return (last + 1) * c10::elementSize(shape.dtype);
}

DispatchKeySet excluded() {
  return c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset |
         DispatchKeySet(DispatchKey::Python) | DispatchKeySet(DispatchKey::PythonTLSSnapshot) |
         DispatchKeySet(DispatchKey::Functionalize);
}

}  // namespace

BelowEverything::BelowEverything() : guard(c10::default_included_set, excluded()) {}

TensorShape shape_of(const at::Tensor& tensor) {
  TensorShape shape;
  shape.dtype = tensor.scalar_type();
  shape.negative = tensor.is_neg();
  shape.conjugate = tensor.is_conj();
  shape.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  shape.strides.assign(tensor.strides().begin(), tensor.strides().end());
  return shape;
}

at::Tensor host_view(const TensorShape& shape, uint64_t address) {
  return on_storage(storage_on(address, extent(shape)), shape, 0);
}

uint64_t check_storage(const at::Tensor& tensor) {
  if (!tensor.numel()) return 0;
  uint64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); i++) last += static_cast<uint64_t>((tensor.size(i) - 1) * tensor.stride(i));
  uint64_t size = (last + 1) * tensor.element_size();
  uint64_t end = static_cast<uint64_t>(tensor.storage_offset()) * tensor.element_size() + size;
  TORCH_CHECK(end <= tensor.storage().nbytes(), "rondo: a tensor of sizes ", tensor.sizes(), " needs ", end,
              " bytes, and its storage was resized to ", tensor.storage().nbytes());
  return size;
}

rondo_argument argument_of(const at::Tensor& tensor, uint32_t access) {
  if (!tensor.numel()) return {0, 0, RONDO_ACCESS_VALUE, 0};
  uint64_t size = check_storage(tensor);
  const void* start = access == RONDO_ACCESS_READ ? tensor.const_data_ptr() : tensor.mutable_data_ptr();
  return {reinterpret_cast<uint64_t>(start), size, access, 0};
}

size_t Operands::add(const at::Tensor& tensor, uint32_t access) {
  TensorShape shape = shape_of(tensor);
  const c10::StorageImpl* storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  if (tensor.numel()) {
    for (size_t i = 0; i < storages_.size(); i++) {
      if (storages_[i] != storage) continue;
      shape.storage = shapes_[i].storage = static_cast<int32_t>(i);
      shared_ = true;
      break;
    }
    shape.offset = tensor.storage_offset() * static_cast<int64_t>(tensor.element_size());
  } else {
    storage = nullptr;  // nothing of it is anybody's
  }
  shapes_.push_back(std::move(shape));
  storages_.push_back(storage);
  arguments_.push_back(argument_of(tensor, access));
  return shapes_.size() - 1;
}

void Operands::close() { storages_.clear(); }

c10::SmallVector<at::Tensor, 8> Operands::views(const uint64_t* words) const {
  c10::SmallVector<at::Tensor, 8> tensors;
  if (!shared_) {
    for (size_t i = 0; i < shapes_.size(); i++) tensors.push_back(host_view(shapes_[i], words[i]));
    return tensors;
  }
  c10::SmallVector<c10::Storage, 8> storages(shapes_.size());
  c10::SmallVector<uint64_t, 8> begins(shapes_.size(), 0), ends(shapes_.size(), 0);
  for (size_t i = 0; i < shapes_.size(); i++) {
    if (shapes_[i].storage < 0) continue;
    auto group = static_cast<size_t>(shapes_[i].storage);
    if (!begins[group]) begins[group] = words[i] - static_cast<uint64_t>(shapes_[i].offset);
    ends[group] = std::max(ends[group], words[i] + extent(shapes_[i]));
  }
  for (size_t i = 0; i < shapes_.size(); i++) {
    if (shapes_[i].storage < 0) {
      tensors.push_back(host_view(shapes_[i], words[i]));
      continue;
    }
    auto group = static_cast<size_t>(shapes_[i].storage);
    if (!storages[group]) storages[group] = storage_on(begins[group], ends[group] - begins[group]);
    auto offset = static_cast<int64_t>((words[i] - begins[group]) / c10::elementSize(shapes_[i].dtype));
    tensors.push_back(on_storage(storages[group], shapes_[i], offset));
  }
  return tensors;
}

void Operands::finish(size_t i, const at::Tensor& view, const uint64_t* words) const {
  if (reinterpret_cast<uint64_t>(view.const_data_ptr()) == words[i] && view.sizes() == shapes_[i].sizes) return;
  if (!view.numel() && !extent(shapes_[i])) return;
  TORCH_CHECK(view.sizes() == shapes_[i].sizes, "an output has sizes ", shapes_[i].sizes, ", and the operator makes ",
              view.sizes());
  host_view(shapes_[i], words[i]).copy_(view);
}

bool on_device(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kType; }

void refuse(int device, const std::string& text) {
  rondo_stream* stream = current_stream(device);
  uint64_t id = 0;
  if (capturing(stream, &id)) {
    note_refusal(id, text);
    spoil_capture(stream);
  }
  TORCH_CHECK(false, "rondo: ", text);
}

void refuse_in_capture(int device, const std::string& what) {
  if (!capturing(current_stream(device))) return;
  refuse(device, what + " cannot be captured in a graph: it needs the host at that moment");
}

}  // namespace rondo_torch
