// SPDX-License-Identifier: Apache-2.0
//
// Every operator is ATen's on the CPU, on the device's memory, which is the host's. In a capture it is recorded; where
// it makes new tensors it also runs once, to learn their shapes.
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "second.hpp"

namespace second {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor make(c10::IntArrayRef size, c10::IntArrayRef stride, at::ScalarType dtype, int device) {
  c10::DeviceGuard guard(c10::Device(kType, static_cast<c10::DeviceIndex>(device)));
  return at::detail::empty_strided_generic(size, stride, memory(), kKeys, dtype);
}

int index_of(std::optional<c10::Device> device) {
  return device.has_value() && device->index() >= 0 ? device->index() : current_device();
}

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<c10::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  c10::DeviceGuard guard(c10::Device(kType, static_cast<c10::DeviceIndex>(index_of(device))));
  return at::detail::empty_generic(size, memory(), kKeys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_with_strides(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                              std::optional<at::Layout>, std::optional<c10::Device> device, std::optional<bool>) {
  return make(size, stride, c10::dtype_or_default(dtype), index_of(device));
}

at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::native::as_strided_tensorimpl(self, size, stride, self.storage_offset());
}

at::Tensor& set_part(at::Tensor& self, at::Storage source, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
  if (stride.empty() && !size.empty()) {
    self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
    self.unsafeGetTensorImpl()->set_storage_offset(offset);
  } else {
    self.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
  }
  return self;
}

at::Tensor& set_whole(at::Tensor& self, at::Storage source) {
  auto count = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_part(self, std::move(source), 0, {count}, {});
}

// A tensor without memory of its own: what a recorded call may keep.
struct Place {
  void* pointer;
  std::vector<int64_t> sizes, strides;
  at::ScalarType dtype;
  explicit Place(const at::Tensor& t)
      : pointer(t.numel() ? t.mutable_data_ptr() : nullptr), sizes(t.sizes().vec()), strides(t.strides().vec()),
        dtype(t.scalar_type()) {}
  at::Tensor on_host() const { return at::from_blob(pointer, sizes, strides, at::TensorOptions(dtype)); }
};

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool) {
  int device = self.device().type() == kType ? self.device().index() : to.device().index();
  bool both = self.device().type() == kType && to.device().type() == kType;
  if (!both) refuse(device, "a copy between host and device");
  at::Tensor from = self.device().type() == kType ? at::Tensor() : self;
  at::Tensor into = to.device().type() == kType ? at::Tensor() : to;
  std::optional<Place> source, target;
  if (!from.defined()) source.emplace(self);
  if (!into.defined()) target.emplace(to);
  enqueue(device, [=] {
    at::AutoDispatchBelowADInplaceOrView guard;
    (target ? target->on_host() : into).copy_(source ? source->on_host() : from);
  });
  return to;
}

at::Scalar read(const at::Tensor& self) {
  refuse(self.device().index(), "item()");
  return Place(self).on_host().item();
}

// An argument of an operator: the value itself, a place, or a list of these.
struct Argument {
  c10::IValue value;
  std::optional<Place> place;
  std::vector<Argument> list;
  bool is_list = false, optional = false;

  c10::IValue on_host() const {
    if (place) return place->on_host();
    if (!is_list) return value;
    if (optional) {
      c10::List<std::optional<at::Tensor>> all;
      for (const Argument& one : list) all.push_back(one.on_host().toOptional<at::Tensor>());
      return all;
    }
    c10::List<at::Tensor> all;
    for (const Argument& one : list) all.push_back(one.on_host().toTensor());
    return all;
  }
};

Argument argument_of(const c10::IValue& value, int* device) {
  Argument result;
  if (value.isTensor() && value.toTensor().defined() && value.toTensor().device().type() == kType) {
    result.place.emplace(value.toTensor());
    *device = value.toTensor().device().index();
  } else if (value.isTensor() && value.toTensor().defined() && recording(current_device())) {
    result.value = value.toTensor().clone();  // its contents now: a number that came as a tensor
  } else if (value.isTensorList() || value.isOptionalTensorList()) {
    result.is_list = true;
    result.optional = value.isOptionalTensorList();
    for (const c10::IValue& one : value.toListRef()) result.list.push_back(argument_of(one, device));
  } else if (value.isDevice() && value.toDevice().type() == kType) {
    *device = index_of(value.toDevice());
    result.value = c10::Device(c10::kCPU);
  } else {
    result.value = value;
  }
  return result;
}

std::vector<c10::IValue> call(const c10::OperatorHandle& op, const std::vector<Argument>& arguments) {
  at::AutoDispatchBelowADInplaceOrView guard;
  torch::jit::Stack stack;
  for (const Argument& one : arguments) stack.push_back(one.on_host());
  op.callBoxed(stack);
  return stack;
}

// The argument that a result is, for operators that write to their arguments; -1 for a new one.
int same_as(const c10::FunctionSchema& schema, const c10::Argument& result) {
  if (!result.alias_info() || !result.alias_info()->isWrite()) return -1;
  for (size_t i = 0; i < schema.arguments().size(); i++) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    if (alias && *alias == *result.alias_info()) return static_cast<int>(i);
  }
  return -1;
}

// Results that came without a size get one: the operator is tried on tensors of the host's that can grow.
void size_results(const c10::OperatorHandle& op, const std::vector<c10::IValue>& given,
                  std::vector<Argument>* arguments, int device) {
  std::vector<size_t> blank;
  for (size_t i = 0; i < given.size(); i++) {
    const c10::AliasInfo* alias = op.schema().arguments()[i].alias_info();
    if (!alias || !alias->isWrite() || !(*arguments)[i].place) continue;
    if (given[i].toTensor().numel()) return;
    blank.push_back(i);
  }
  if (blank.empty()) return;
  std::vector<Argument> trial = *arguments;
  for (size_t i : blank) {
    trial[i].place.reset();
    trial[i].value = at::empty({0}, at::TensorOptions(given[i].toTensor().scalar_type()));
  }
  (void)call(op, trial);
  for (size_t i : blank) {
    at::Tensor host = trial[i].value.toTensor(), target = given[i].toTensor();
    at::Tensor made = make(host.sizes(), host.strides(), host.scalar_type(), device);
    target.unsafeGetTensorImpl()->set_storage_keep_dtype(made.storage());
    target.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides());
    (*arguments)[i].place.emplace(target);
  }
}

void all_others(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  size_t count = schema.arguments().size();
  std::vector<c10::IValue> given(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  stack->erase(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  int device = current_device();
  std::vector<Argument> arguments;
  for (const c10::IValue& value : given) arguments.push_back(argument_of(value, &device));
  if (schema.is_mutable()) {
    size_results(op, given, &arguments, device);
    enqueue(device, [op, arguments] { (void)call(op, arguments); });
    for (const c10::Argument& result : schema.returns()) {
      int index = same_as(schema, result);
      TORCH_CHECK(index >= 0, "second: ", op.operator_name(), " both writes to its arguments and makes tensors");
      stack->push_back(given[static_cast<size_t>(index)]);
    }
    return;
  }
  std::vector<c10::IValue> results = call(op, arguments);
  std::vector<Place> places;
  for (c10::IValue& result : results) {
    if (!result.isTensor() || !result.toTensor().defined()) {
      refuse(device, toString(op.operator_name()));
      continue;
    }
    at::Tensor host = result.toTensor(), made = make(host.sizes(), host.strides(), host.scalar_type(), device);
    places.emplace_back(made);
    if (!recording(device)) places.back().on_host().copy_(host);
    result = made;
  }
  if (recording(device)) {
    enqueue(device, [op, arguments, places] {
      std::vector<c10::IValue> again = call(op, arguments);
      for (size_t i = 0; i < again.size(); i++) places[i].on_host().copy_(again[i].toTensor());
    });
  }
  for (c10::IValue& result : results) stack->push_back(std::move(result));
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&all_others>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_with_strides);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("set_.source_Storage", set_whole);
  m.impl("set_.source_Storage_storage_offset", set_part);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("_copy_from", copy_from);
  m.impl("_local_scalar_dense", read);
}

}  // namespace
}  // namespace second
