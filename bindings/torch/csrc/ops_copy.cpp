// SPDX-License-Identifier: Apache-2.0
//
// Copies and fills.
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cstring>

#include "node.hpp"
#include "ops.hpp"
#include "registration.hpp"
#include "runtime.hpp"

namespace rondo_torch {
namespace {

struct CopyNode final : AtenNode {
  Operands operands;
  const char* title() const override { return "aten::copy_"; }
  void work(const uint64_t* words) override {
    auto tensors = operands.views(words);
    tensors[0].copy_(tensors[1]);
  }
};

struct FillNode final : AtenNode {
  TensorShape to;
  c10::Scalar value;
  const char* title() const override { return "aten::fill_"; }
  void work(const uint64_t* words) override { host_view(to, words[0]).fill_(value); }
};

void launch_aten(int device, std::unique_ptr<AtenNode> node, Arguments arguments, const char* name) {
  if (runs_at_once(device)) run_now(device, *node, arguments, name);
  else enqueue(device, std::move(node), arguments, name);
}

// The bytes of one are those of the other, in the same order.
bool same_bytes(const at::Tensor& to, const at::Tensor& from) {
  return to.scalar_type() == from.scalar_type() && to.is_neg() == from.is_neg() && to.is_conj() == from.is_conj() &&
         ((to.is_contiguous() && from.is_contiguous()) ||
          (to.strides() == from.strides() && to.is_non_overlapping_and_dense()));
}

void stream_copy(int device, const at::Tensor& to, const at::Tensor& from, rondo_copy_kind kind) {
  for (const at::Tensor& one : {to, from}) check_storage(one);
  check(rondo_stream_copy(current_stream(device), to.mutable_data_ptr(), from.const_data_ptr(), to.nbytes(), kind));
}

}  // namespace

void enqueue_copy(const at::Tensor& to, const at::Tensor& from) {
  if (!to.numel() || to.is_same(from)) return;
  int device = to.device().index();
  at::assert_no_internal_overlap(to);
  if (to.is_alias_of(from)) at::assert_no_partial_overlap(to, from);
  if (same_bytes(to, from)) {
    if (to.const_data_ptr() != from.const_data_ptr()) stream_copy(device, to, from, RONDO_COPY_DEVICE_TO_DEVICE);
    return;
  }
  auto node = std::make_unique<CopyNode>();
  node->operands.add(to, RONDO_ACCESS_WRITE);
  node->operands.add(from, RONDO_ACCESS_READ);
  node->operands.close();
  const auto arguments = node->operands.arguments();
  launch_aten(device, std::move(node), arguments, "aten::copy_");
}

namespace {

void synchronize_stream(int device) { check(rondo_stream_synchronize(current_stream(device))); }

// Conversions happen on the device, so that a captured copy from pinned memory converts what is there at the replay.
void copy_up(const at::Tensor& to, const at::Tensor& from, bool async) {
  int device = to.device().index();
  at::Tensor source = from;
  if (!from.is_contiguous() || from.is_neg() || from.is_conj()) {
    if (async) refuse_in_capture(device, "a copy from host memory that is not contiguous");
    source = from.resolve_conj().resolve_neg().contiguous();
    async = false;
  }
  at::Tensor target = to;
  if (!same_bytes(to, source)) {
    target = at::empty(source.sizes(), source.options().device(to.device()).pinned_memory(std::nullopt));
  }
  stream_copy(device, target, source, RONDO_COPY_HOST_TO_DEVICE);
  if (!target.is_same(to)) enqueue_copy(to, target);
  if (!async) synchronize_stream(device);
}

void copy_down(const at::Tensor& to, const at::Tensor& from, bool async) {
  int device = from.device().index();
  at::Tensor target = to, source = from;
  if (!to.is_contiguous() || to.is_neg() || to.is_conj()) {
    if (async) refuse_in_capture(device, "a copy to host memory that is not contiguous");
    target = at::empty(to.sizes(), to.options().pinned_memory(std::nullopt));
    async = false;
  }
  if (!same_bytes(target, from)) {
    source = at::empty(from.sizes(), target.options().device(from.device()).pinned_memory(std::nullopt));
    enqueue_copy(source, from);
  }
  stream_copy(device, target, source, RONDO_COPY_DEVICE_TO_HOST);
  if (!async) synchronize_stream(device);
  if (!target.is_same(to)) to.copy_(target);
}

void copy_across(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  const at::Tensor& host = on_device(to) ? from : to;
  int device = on_device(to) ? to.device().index() : from.device().index();
  bool async = non_blocking && host.is_pinned();
  if (!async) {
    refuse_in_capture(device, host.is_pinned() ? "a copy between host and device that waits (non_blocking=True would do)"
                                               : "a copy between pageable host memory and the device");
  }
  if (on_device(to)) copy_up(to, from, async);
  else copy_down(to, from, async);
}

// From one device to another: the second one's stream has the copy, and the first has finished what it copies.
void copy_between(const at::Tensor& to, const at::Tensor& from) {
  for (const at::Tensor& one : {from, to}) refuse_in_capture(one.device().index(), "a copy between two devices");
  at::Tensor host = at::empty(from.sizes(), from.options().device(at::kCPU));
  {
    c10::DeviceGuard guard(from.device());
    copy_down(host, from, false);
  }
  c10::DeviceGuard guard(to.device());
  copy_up(to, host, false);
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool non_blocking) {
  at::Tensor from = self.sizes() == to.sizes() ? self : self.expand(to.sizes());
  for (const at::Tensor& one : {from, to}) {
    TORCH_CHECK_NOT_IMPLEMENTED(one.device().type() == kType || one.device().is_cpu(), "rondo: there is no copy between ",
                                from.device(), " and ", to.device());
    TORCH_CHECK_NOT_IMPLEMENTED(one.layout() == at::kStrided && !one.is_quantized(),
                                "rondo: the device has neither sparse nor quantized tensors to copy from or to");
  }
  if (!to.numel()) return to;
  c10::DeviceGuard guard(on_device(to) ? to.device() : from.device());
  if (!on_device(from) || !on_device(to)) copy_across(to, from, non_blocking);
  else if (from.device() == to.device()) enqueue_copy(to, from);
  else copy_between(to, from);
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& to) {
  to.resize_(self.sizes());
  return copy_from(self, to, false);
}

// Several copies of bytes as one call: from, to, size for each.
constexpr size_t kPairs = RONDO_ARGUMENT_MAX / 3;

int32_t copy_pairs(const void*, const uint64_t* words) {
  for (uint64_t i = 0; i < words[0]; i++) {
    const uint64_t* pair = words + 1 + 3 * i;
    std::memcpy(reinterpret_cast<void*>(pair[0]), reinterpret_cast<const void*>(pair[1]), pair[2]);
  }
  return 0;
}

void foreach_copy(at::TensorList self, at::TensorList source, bool non_blocking) {
  TORCH_CHECK(!self.empty(), "Tensor list must have at least one tensor.");
  TORCH_CHECK(self.size() == source.size(), "Tensor lists must have the same number of tensors, got ", self.size(), " and ",
              source.size());
  std::vector<rondo_argument> words;
  int device = -1;
  c10::OptionalDeviceGuard guard;
  auto flush = [&] {
    if (words.size() <= 1) return;
    words[0].word = (words.size() - 1) / 3;
    enqueue(device, rondo_kernel{copy_pairs, nullptr}, words, "aten::_foreach_copy_");
    words.clear();
  };
  for (size_t i = 0; i < self.size(); i++) {
    const at::Tensor &to = self[i], &from = source[i];
    bool simple = on_device(to) && to.device() == from.device() && to.sizes() == from.sizes() && same_bytes(to, from) &&
                  to.numel() && !to.is_alias_of(from) && (device < 0 || device == to.device().index());
    if (!simple) {
      flush();
      const_cast<at::Tensor&>(to).copy_(from, non_blocking);
      continue;
    }
    if (device < 0) {
      device = to.device().index();
      guard.reset_device(to.device());
    }
    if (words.empty()) words.push_back({0, 0, RONDO_ACCESS_VALUE, 0});
    words.push_back(argument_of(to, RONDO_ACCESS_WRITE));
    words.push_back(argument_of(from, RONDO_ACCESS_READ));
    words.push_back({to.nbytes(), 0, RONDO_ACCESS_VALUE, 0});
    if (words.size() == 1 + 3 * kPairs) flush();
  }
  flush();
}

template <class T>
int32_t fill_words(const void*, const uint64_t* words) {
  T value;
  std::memcpy(&value, &words[2], sizeof value);
  auto* out = reinterpret_cast<T*>(words[0]);
  for (uint64_t i = 0; i < words[1]; i++) out[i] = value;
  return 0;
}

rondo_kernel_function fill_of(size_t size) {
  switch (size) {
    case 1: return fill_words<uint8_t>;
    case 2: return fill_words<uint16_t>;
    case 4: return fill_words<uint32_t>;
    case 8: return fill_words<uint64_t>;
    default: return nullptr;
  }
}

at::Tensor& fill_scalar(at::Tensor& self, const c10::Scalar& value) {
  if (!self.numel()) return self;
  c10::DeviceGuard guard(self.device());
  int device = self.device().index();
  rondo_kernel_function function = fill_of(self.element_size());
  if (function && self.is_non_overlapping_and_dense() && !self.is_neg() && !self.is_conj()) {
    at::Tensor one = at::empty({}, self.options().device(at::kCPU)).fill_(value);  // converts, or says that it cannot
    uint64_t bits = 0;
    std::memcpy(&bits, one.const_data_ptr(), self.element_size());
    rondo_argument words[3] = {argument_of(self, RONDO_ACCESS_WRITE),
                               {static_cast<uint64_t>(self.numel()), 0, RONDO_ACCESS_VALUE, 0},
                               {bits, 0, RONDO_ACCESS_VALUE, 0}};
    enqueue(device, rondo_kernel{function, nullptr}, words, "aten::fill_");
    return self;
  }
  at::assert_no_internal_overlap(self);
  auto node = std::make_unique<FillNode>();
  node->to = shape_of(self);
  node->value = value;
  launch_aten(device, std::move(node), {argument_of(self, RONDO_ACCESS_WRITE)}, "aten::fill_");
  return self;
}

at::Tensor& zero(at::Tensor& self) {
  if (!self.numel()) return self;
  if (!self.is_non_overlapping_and_dense()) return fill_scalar(self, 0);
  c10::DeviceGuard guard(self.device());
  check(rondo_stream_fill(current_stream(self.device().index()), self.mutable_data_ptr(), 0, self.nbytes()));
  return self;
}

c10::Scalar local_scalar_dense(const at::Tensor& self) {
  c10::DeviceGuard guard(self.device());
  int device = self.device().index();
  refuse_in_capture(device, "item() (aten::_local_scalar_dense)");
  at::Tensor plain = self.resolve_conj().resolve_neg();
  at::Tensor host = at::empty({}, self.options().device(at::kCPU));
  stream_copy(device, host, plain, RONDO_COPY_DEVICE_TO_HOST);
  synchronize_stream(device);
  return host.item();
}

RONDO_TORCH_KERNELS(aten, copy, m) {
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_foreach_copy_", foreach_copy);
  m.impl("fill_.Scalar", fill_scalar);
  m.impl("zero_", zero);
  m.impl("_local_scalar_dense", local_scalar_dense);
}

// Copies know what to do with conjugate and negative views: these are not to be made plain by a copy before.
RONDO_TORCH_KERNELS_OF(aten, Conjugate, conjugate_copy, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}
RONDO_TORCH_KERNELS_OF(aten, Negative, negative_copy, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

}  // namespace
}  // namespace rondo_torch
