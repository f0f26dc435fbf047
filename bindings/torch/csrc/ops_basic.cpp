// SPDX-License-Identifier: Apache-2.0
//
// Factories, views, copies and fills: what every tensor needs.
#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "allocator.hpp"
#include "node.hpp"
#include "ops.hpp"
#include "runtime.hpp"

namespace rondo_torch {

TensorShape shape_of(const at::Tensor& tensor) {
  return {tensor.scalar_type(), {tensor.sizes().begin(), tensor.sizes().end()},
          {tensor.strides().begin(), tensor.strides().end()}};
}

at::Tensor host_view(const TensorShape& shape, uint64_t address) {
  return at::from_blob(reinterpret_cast<void*>(address), shape.sizes, shape.strides,
                       at::TensorOptions().dtype(shape.dtype).device(at::kCPU));
}

rondo_argument argument_of(const at::Tensor& tensor, uint32_t access) {
  if (!tensor.numel()) return {0, 0, RONDO_ACCESS_VALUE, 0};
  uint64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); i++) last += static_cast<uint64_t>((tensor.size(i) - 1) * tensor.stride(i));
  const void* start = access == RONDO_ACCESS_READ ? tensor.const_data_ptr() : tensor.mutable_data_ptr();
  return {reinterpret_cast<uint64_t>(start), (last + 1) * tensor.element_size(), access, 0};
}

void refuse_in_capture(int device, const char* what) {
  rondo_stream* stream = current_stream(device);
  uint64_t id = 0;
  if (!capturing(stream, &id)) return;
  std::string why = std::string(what) + " cannot be captured in a graph: it needs the host at that moment";
  note_refusal(id, why);
  spoil_capture(stream);
  TORCH_CHECK(false, "rondo: ", why);
}

namespace {

struct CopyNode final : Node {
  TensorShape to, from;
  int32_t run(const uint64_t* words) noexcept override {
    try {
      at::AutoDispatchBelowADInplaceOrView guard;
      host_view(to, words[0]).copy_(host_view(from, words[1]));
      return 0;
    } catch (const std::exception& error) {
      set_failure(error.what());
      return 1;
    }
  }
};

struct FillNode final : Node {
  TensorShape to;
  c10::Scalar value;
  int32_t run(const uint64_t* words) noexcept override {
    try {
      at::AutoDispatchBelowADInplaceOrView guard;
      host_view(to, words[0]).fill_(value);
      return 0;
    } catch (const std::exception& error) {
      set_failure(error.what());
      return 1;
    }
  }
};

bool on_device(const at::Tensor& tensor) { return tensor.device().type() == kType; }

}  // namespace

void enqueue_copy(const at::Tensor& to, const at::Tensor& from) {
  if (!to.numel()) return;
  int device = to.device().index();
  // The same bytes in the same order: the device's own copy.
  if (to.scalar_type() == from.scalar_type() && to.is_contiguous() && from.is_contiguous() && to.is_neg() == from.is_neg() &&
      to.is_conj() == from.is_conj()) {
    check(rondo_stream_copy(current_stream(device), to.mutable_data_ptr(), from.const_data_ptr(), to.nbytes(),
                            RONDO_COPY_DEVICE_TO_DEVICE));
    return;
  }
  auto node = std::make_unique<CopyNode>();
  node->to = shape_of(to);
  node->from = shape_of(from);
  enqueue(device, std::move(node), {argument_of(to, RONDO_ACCESS_WRITE), argument_of(from, RONDO_ACCESS_READ)}, "aten::copy_");
}

namespace {

c10::Device full(std::optional<c10::Device> device) {
  return {kType, static_cast<c10::DeviceIndex>(index_of(device.value_or(c10::Device(kType, -1))))};
}

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<c10::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  c10::DeviceGuard guard(full(device));
  return at::detail::empty_generic(size, device_allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<c10::Device> device, std::optional<bool>) {
  c10::DeviceGuard guard(full(device));
  return at::detail::empty_strided_generic(size, stride, device_allocator(),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype));
}

// Between host and device: whole and compact, through a compact copy on the side that is not.
void copy_across(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  bool up = on_device(to);
  int device = up ? to.device().index() : from.device().index();
  rondo_stream* stream = current_stream(device);
  const at::Tensor& host = up ? from : to;
  bool async = non_blocking && host.is_pinned();
  if (!async) refuse_in_capture(device, "a copy between pageable host memory and the device");
  at::Tensor source = from, target = to;
  bool same = from.scalar_type() == to.scalar_type();
  if (!same || !from.is_contiguous() || from.is_neg() || from.is_conj()) {
    source = up ? from.to(to.scalar_type()).contiguous() : from.contiguous();
  }
  if (!to.is_contiguous() || (!up && !same)) {
    target = at::empty(to.sizes(), to.options().dtype(source.scalar_type()).memory_format(at::MemoryFormat::Contiguous));
  }
  check(rondo_stream_copy(stream, target.mutable_data_ptr(), source.const_data_ptr(), source.nbytes(),
                          up ? RONDO_COPY_HOST_TO_DEVICE : RONDO_COPY_DEVICE_TO_HOST));
  // Data is not copied at the call on devices that run later, so what is temporary has to stay until it is.
  if (!async || !source.is_same(from)) check(rondo_stream_synchronize(stream));
  if (!target.is_same(to)) to.copy_(target);
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool non_blocking) {
  at::Tensor from = self.sizes() == to.sizes() ? self : self.expand(to.sizes());
  if (!to.numel()) return to;
  if (on_device(from) && on_device(to)) {
    c10::DeviceGuard guard(to.device());
    if (from.device() == to.device()) {
      enqueue_copy(to, from);
    } else {
      // From one device to another by way of the host.
      at::Tensor host = at::empty(from.sizes(), from.options().device(at::kCPU));
      copy_across(host, from, false);
      copy_across(to, host, false);
    }
  } else {
    c10::DeviceGuard guard(on_device(to) ? to.device() : from.device());
    copy_across(to, from, non_blocking);
  }
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& to) {
  to.resize_(self.sizes());
  return copy_from(self, to, false);
}

at::Tensor& fill_scalar(at::Tensor& self, const c10::Scalar& value) {
  if (!self.numel()) return self;
  c10::DeviceGuard guard(self.device());
  auto node = std::make_unique<FillNode>();
  node->to = shape_of(self);
  node->value = value;
  enqueue(self.device().index(), std::move(node), {argument_of(self, RONDO_ACCESS_WRITE)}, "aten::fill_");
  return self;
}

at::Tensor& zero(at::Tensor& self) {
  if (!self.numel()) return self;
  if (!self.is_non_overlapping_and_dense()) return fill_scalar(self, 0);
  int device = self.device().index();
  check(rondo_stream_fill(current_stream(device), self.mutable_data_ptr(), 0, self.nbytes()));
  return self;
}

c10::Scalar local_scalar_dense(const at::Tensor& self) {
  int device = self.device().index();
  refuse_in_capture(device, "item()");
  at::Tensor host = at::empty({}, self.options().device(at::kCPU));
  check(rondo_stream_copy(current_stream(device), host.mutable_data_ptr(), self.const_data_ptr(), self.element_size(),
                          RONDO_COPY_DEVICE_TO_HOST));
  check(rondo_stream_synchronize(current_stream(device)));
  return host.item();
}

at::Tensor as_strided(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<int64_t> offset) {
  auto view = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(self.storage()), self.key_set(),
                                                       self.dtype());
  auto* impl = view.unsafeGetTensorImpl();
  impl->set_storage_offset(offset.value_or(self.storage_offset()));
  impl->set_sizes_and_strides(size, stride);
  return view;
}

at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return rondo_torch::as_strided(self, size, stride, std::nullopt);
}

at::Tensor view(const at::Tensor& self, c10::IntArrayRef size) {
  auto sizes = at::infer_size_dv(size, self.numel());
  auto strides = at::detail::computeStride(self.sizes(), self.strides(), sizes);
  TORCH_CHECK(strides.has_value(), "view size is not compatible with input tensor's size and stride (at least one dimension "
              "spans across two contiguous subspaces). Use .reshape(...) instead.");
  return rondo_torch::as_strided(self, sizes, *strides, std::nullopt);
}

void grow(const at::Tensor& self, uint64_t bytes) {
  auto* impl = self.unsafeGetTensorImpl();
  if (bytes > impl->unsafe_storage().nbytes()) {
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(impl->unsafe_storage(), bytes);
  }
}

const at::Tensor& resize(const at::Tensor& self, c10::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  auto* impl = self.unsafeGetTensorImpl();
  auto count = static_cast<uint64_t>(c10::multiply_integers(size) + impl->storage_offset());
  if (count) grow(self, count * impl->itemsize());
  impl->set_sizes_contiguous(size);
  if (format.has_value() && *format != at::MemoryFormat::Contiguous) impl->empty_tensor_restride(*format);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  if (stride.empty() && !size.empty()) impl->set_sizes_contiguous(size);
  else impl->set_sizes_and_strides(size, stride);
  return self;
}

at::Tensor& set_storage_whole(at::Tensor& self, at::Storage source) {
  auto count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage(self, std::move(source), 0, {count}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor& set_nothing(at::Tensor& self) {
  c10::DeviceGuard guard(self.device());
  c10::Storage none(c10::Storage::use_byte_size_t(), 0, device_allocator()->allocate(0), device_allocator(), true);
  return set_storage(self, std::move(none), 0, {0}, {});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", rondo_torch::empty_strided);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("fill_.Scalar", fill_scalar);
  m.impl("zero_", zero);
  m.impl("_local_scalar_dense", local_scalar_dense);
  m.impl("as_strided", rondo_torch::as_strided);
  m.impl("view", rondo_torch::view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("resize_", resize);
  m.impl("set_.source_Storage", set_storage_whole);
  m.impl("set_.source_Storage_storage_offset", set_storage);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("set_", set_nothing);
}

}  // namespace
}  // namespace rondo_torch
