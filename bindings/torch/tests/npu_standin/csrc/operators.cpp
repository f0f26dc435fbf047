// SPDX-License-Identifier: Apache-2.0
//
// Every operator is ATen's on the CPU, run as a kernel on the driver's stream, so that a capture by the driver has it.
// The sizes of new tensors are those that PyTorch's meta kernels give.
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "npu.hpp"

namespace npu {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor make(c10::IntArrayRef size, c10::IntArrayRef stride, at::ScalarType dtype, int device) {
  c10::DeviceGuard guard(c10::Device(kType, static_cast<c10::DeviceIndex>(device)));
  return at::detail::empty_strided_generic(size, stride, memory(), kKeys, dtype);
}

int index_or_current(std::optional<c10::Device> device) {
  return device.has_value() && device->index() >= 0 ? device->index() : current_device();
}

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<c10::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  c10::DeviceGuard guard(c10::Device(kType, static_cast<c10::DeviceIndex>(index_or_current(device))));
  return at::detail::empty_generic(size, memory(), kKeys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_with_strides(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                              std::optional<at::Layout>, std::optional<c10::Device> device, std::optional<bool>) {
  return make(size, stride, c10::dtype_or_default(dtype), index_or_current(device));
}

at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::native::as_strided_tensorimpl(self, size, stride, self.storage_offset());
}

bool is_ours(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kType; }

// A tensor without memory of its own: what a kernel may keep.
struct Place {
  void* pointer;
  std::vector<int64_t> sizes, strides;
  at::ScalarType dtype;
  explicit Place(const at::Tensor& t)
      : pointer(t.numel() ? t.mutable_data_ptr() : nullptr), sizes(t.sizes().vec()), strides(t.strides().vec()),
        dtype(t.scalar_type()) {}
  at::Tensor on_host() const { return at::from_blob(pointer, sizes, strides, at::TensorOptions(dtype)); }
  at::Tensor on_meta() const {
    return at::empty_strided(sizes, strides, at::TensorOptions(dtype).device(c10::kMeta));
  }
};

at::Tensor contiguous_like(const at::Tensor& other, at::ScalarType dtype, int device) {
  auto strides = at::empty(other.sizes(), at::TensorOptions(dtype).device(c10::kMeta)).strides().vec();
  return make(other.sizes(), strides, dtype, device);
}

void copy_between(const at::Tensor& from, const at::Tensor& to) {
  int device = to.device().index();
  launch(device, [source = Place(from), target = Place(to)] {
    at::AutoDispatchBelowADInplaceOrView guard;
    target.on_host().copy_(source.on_host());
  });
}

// Pageable memory: the driver waits for the stream, and refuses while it captures.
void copy_in(const at::Tensor& self, const at::Tensor& to) {
  int device = to.device().index();
  at::Tensor host = self.to(to.scalar_type()).expand(to.sizes()).contiguous();
  at::Tensor target = to.is_contiguous() ? to : contiguous_like(to, to.scalar_type(), device);
  NPU_CALL(aclrtMemcpyAsync, target.mutable_data_ptr(), target.nbytes(), host.const_data_ptr(), host.nbytes(),
           ACL_MEMCPY_HOST_TO_DEVICE, current_stream(device));
  if (!target.is_same(to)) copy_between(target, to);
}

void copy_out(const at::Tensor& self, const at::Tensor& to) {
  int device = self.device().index();
  at::Tensor source = self;
  if (!self.is_contiguous()) {
    source = contiguous_like(self, self.scalar_type(), device);
    copy_between(self, source);
  }
  at::Tensor host = at::empty(self.sizes(), at::TensorOptions(self.scalar_type()));
  aclrtStream stream = current_stream(device);
  NPU_CALL(aclrtSynchronizeStream, stream);
  NPU_CALL(aclrtMemcpyAsync, host.mutable_data_ptr(), host.nbytes(), source.const_data_ptr(), source.nbytes(),
           ACL_MEMCPY_DEVICE_TO_HOST, stream);
  NPU_CALL(aclrtSynchronizeStream, stream);
  to.copy_(host);
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool) {
  if (!to.numel()) return to;
  if (is_ours(self) && is_ours(to)) copy_between(self, to);
  else if (is_ours(self)) copy_out(self, to);
  else copy_in(self, to);
  return to;
}

at::Scalar read(const at::Tensor& self) {
  at::Tensor host = at::empty({}, at::TensorOptions(self.scalar_type()));
  copy_out(self, host);
  return host.item();
}

// -------------------------------------------------------------------------------------------------------- all others

// An argument of an operator: the value itself, a place, or a list of these.
struct Argument {
  c10::IValue value;
  std::optional<Place> place;
  std::vector<Argument> list;
  bool is_list = false, optional = false;

  c10::IValue as(bool meta) const {
    if (place) return meta ? place->on_meta() : place->on_host();
    if (!is_list) return meta && value.isDevice() ? c10::IValue(c10::Device(c10::kMeta)) : value;
    if (optional) {
      c10::List<std::optional<at::Tensor>> all;
      for (const Argument& one : list) all.push_back(one.as(meta).toOptional<at::Tensor>());
      return all;
    }
    c10::List<at::Tensor> all;
    for (const Argument& one : list) all.push_back(one.as(meta).toTensor());
    return all;
  }
};

Argument argument_of(const c10::IValue& value, int* device) {
  Argument result;
  if (value.isTensor() && is_ours(value.toTensor())) {
    result.place.emplace(value.toTensor());
    *device = value.toTensor().device().index();
  } else if (value.isTensor() && value.toTensor().defined() && value.toTensor().is_cpu()) {
    result.value = value.toTensor().clone();  // its contents now: the kernel runs later
  } else if (value.isTensorList() || value.isOptionalTensorList()) {
    result.is_list = true;
    result.optional = value.isOptionalTensorList();
    for (const c10::IValue& one : value.toListRef()) result.list.push_back(argument_of(one, device));
  } else if (value.isDevice() && value.toDevice().type() == kType) {
    *device = index_or_current(value.toDevice());
    result.value = c10::Device(c10::kCPU);
  } else {
    result.value = value;
  }
  return result;
}

std::vector<c10::IValue> call(const c10::OperatorHandle& op, const std::vector<Argument>& arguments, bool meta) {
  at::AutoDispatchBelowADInplaceOrView guard;
  torch::jit::Stack stack;
  for (const Argument& one : arguments) stack.push_back(one.as(meta));
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

// Results that came without a size get one.
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
    trial[i].value = trial[i].place->on_meta();
    trial[i].place.reset();
  }
  (void)call(op, trial, true);
  for (size_t i : blank) {
    at::Tensor sized = trial[i].value.toTensor(), target = given[i].toTensor();
    at::Tensor made = make(sized.sizes(), sized.strides(), sized.scalar_type(), device);
    target.unsafeGetTensorImpl()->set_storage_keep_dtype(made.storage());
    target.unsafeGetTensorImpl()->set_sizes_and_strides(sized.sizes(), sized.strides());
    (*arguments)[i].place.emplace(target);
  }
}

// Operators of which only a run tells the sizes: the stream is waited for, which a capture refuses.
std::vector<c10::IValue> run_now(const c10::OperatorHandle& op, const std::vector<Argument>& arguments, int device) {
  NPU_CALL(aclrtSynchronizeStream, current_stream(device));
  std::vector<c10::IValue> results = call(op, arguments, false);
  for (c10::IValue& result : results) {
    if (!result.isTensor() || !result.toTensor().defined()) continue;
    at::Tensor host = result.toTensor(), made = make(host.sizes(), host.strides(), host.scalar_type(), device);
    copy_in(host, made);
    result = made;
  }
  return results;
}

std::vector<c10::IValue> make_results(const c10::OperatorHandle& op, const std::vector<Argument>& arguments,
                                      int device) {
  std::vector<c10::IValue> results;
  try {
    results = call(op, arguments, true);
  } catch (const c10::Error&) {
    return run_now(op, arguments, device);
  }
  std::vector<Place> places;
  for (c10::IValue& result : results) {
    if (!result.isTensor() || !result.toTensor().defined()) return run_now(op, arguments, device);
    at::Tensor sized = result.toTensor();
    result = make(sized.sizes(), sized.strides(), sized.scalar_type(), device);
    places.emplace_back(result.toTensor());
  }
  launch(device, [op, arguments, places] {
    std::vector<c10::IValue> found = call(op, arguments, false);
    for (size_t i = 0; i < found.size(); i++) places[i].on_host().copy_(found[i].toTensor());
  });
  return results;
}

void all_others(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  std::vector<c10::IValue> given = torch::jit::pop(*stack, schema.arguments().size());
  std::vector<Argument> arguments;
  int device = current_device();
  for (const c10::IValue& value : given) arguments.push_back(argument_of(value, &device));
  if (!schema.is_mutable()) {
    for (c10::IValue& result : make_results(op, arguments, device)) stack->push_back(std::move(result));
    return;
  }
  size_results(op, given, &arguments, device);
  launch(device, [op, arguments] { (void)call(op, arguments, false); });
  for (const c10::Argument& result : schema.returns()) {
    int index = same_as(schema, result);
    TORCH_CHECK(index >= 0, "npu: ", op.operator_name(), " both writes to its arguments and makes tensors");
    stack->push_back(given[static_cast<size_t>(index)]);
  }
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&all_others>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_with_strides);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("_copy_from", copy_from);
  m.impl("_local_scalar_dense", read);
}

}  // namespace
}  // namespace npu
