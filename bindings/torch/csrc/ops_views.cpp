// SPDX-License-Identifier: Apache-2.0
//
// Factories, views, and what gives a tensor another memory.
#include <ATen/EmptyTensor.h>
#include <ATen/TensorUtils.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "allocator.hpp"
#include "ops.hpp"
#include "registration.hpp"
#include "runtime.hpp"

namespace rondo_torch {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::Device full(std::optional<c10::Device> device) {
  return {kType, static_cast<c10::DeviceIndex>(index_of(device.value_or(c10::Device(kType, -1))))};
}

void check_options(std::optional<at::Layout> layout, std::optional<bool> pinned) {
  TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(at::kStrided) == at::kStrided, "rondo: tensors of layout ", *layout,
                              " do not exist on the device; it has strided ones only");
  TORCH_CHECK(!pinned.value_or(false), "Only dense CPU tensors can be pinned");
}

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                 std::optional<c10::Device> device, std::optional<bool> pinned, std::optional<at::MemoryFormat> format) {
  check_options(layout, pinned);
  c10::DeviceGuard guard(full(device));
  return at::detail::empty_generic(size, device_allocator(), kKeys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> layout, std::optional<c10::Device> device, std::optional<bool> pinned) {
  check_options(layout, pinned);
  c10::DeviceGuard guard(full(device));
  return at::detail::empty_strided_generic(size, stride, device_allocator(), kKeys, c10::dtype_or_default(dtype));
}

// Zeros without memory, which autograd makes for directions that nothing goes in.
at::Tensor efficient_zeros(c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                           std::optional<c10::Device> device, std::optional<bool> pinned) {
  check_options(layout, pinned);
  c10::DeviceGuard guard(full(device));
  at::native::ZeroTensorAllocator nothing(full(device));
  return at::detail::empty_generic(size, &nothing, kKeys | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor),
                                   c10::dtype_or_default(dtype), std::nullopt);
}

// A stack of sentences of different lengths is none of nested tensors here: who asks goes on with the padded one.
bool never_nested(const at::Tensor&, const at::Tensor&) { return false; }

at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::native::as_strided_tensorimpl(self, size, stride, self.storage_offset());
}

void grow(c10::TensorImpl* impl, int64_t bytes) {
  if (static_cast<uint64_t>(bytes) > impl->unsafe_storage().nbytes()) {
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(impl->unsafe_storage(), static_cast<size_t>(bytes));
  }
}

const at::Tensor& resize(const at::Tensor& self, c10::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  for (int64_t one : size) TORCH_CHECK(one >= 0, "Trying to create tensor with negative dimension ", one, ": ", size);
  auto* impl = self.unsafeGetTensorImpl();
  if (self.sizes() != size) {
    int64_t bytes = at::detail::computeStorageNbytesContiguous(size, impl->itemsize(), impl->storage_offset());
    if (c10::multiply_integers(size)) grow(impl, bytes);
    impl->set_sizes_contiguous(size);
  }
  if (!format.has_value()) return self;
  TORCH_CHECK(*format != at::MemoryFormat::Preserve, "Unsupported memory format", *format);
  impl->empty_tensor_restride(*format);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride) {
  at::native::checkSetStorage(self, std::move(source), offset, size, stride);
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(offset);
  bool compact = stride.data() == nullptr;
  int64_t bytes = compact ? at::detail::computeStorageNbytesContiguous(size, impl->itemsize(), offset)
                          : at::detail::computeStorageNbytes(size, stride, impl->itemsize(), offset);
  if (c10::multiply_integers(size)) grow(impl, bytes);
  if (compact) impl->set_sizes_contiguous(size);
  else impl->set_sizes_and_strides(size, stride);
  return self;
}

at::Tensor& set_storage_whole(at::Tensor& self, at::Storage source) {
  auto count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage(self, std::move(source), 0, {count}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor& set_nothing(at::Tensor& self) {
  c10::DeviceGuard guard(self.device());
  c10::Storage none(c10::Storage::use_byte_size_t(), 0, device_allocator()->allocate(0), device_allocator(), true);
  return set_storage(self, std::move(none), 0, {0}, {});
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  TORCH_CHECK(stream.device() == self.device(), "rondo: a tensor of ", self.device(), " is not used by a stream of ",
              stream.device());
  const void* start = self.storage().data();
  if (!start) return;
  int index = self.device().index();
  // Memory that a tree lends out is no block of the allocator's now: its order is the tree's.
  rondo_status_release(
      rondo_memory_record_stream(device(index), const_cast<void*>(start), stream_of(index, stream.id())));
}

RONDO_TORCH_KERNELS(aten, views, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", rondo_torch::empty_strided);
  m.impl("_efficientzerotensor", efficient_zeros);
  m.impl("_nested_tensor_from_mask_left_aligned", never_nested);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("view.dtype", at::native::view_dtype);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("unfold", at::native::unfold);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("resize_", resize);
  m.impl("set_.source_Storage", set_storage_whole);
  m.impl("set_.source_Storage_storage_offset", set_storage);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("set_", set_nothing);
  m.impl("record_stream", record_stream);
}

}  // namespace
}  // namespace rondo_torch
